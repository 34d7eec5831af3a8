"""L5: every optimiser's step kernel, beside the textbook's formula in NumPy float64."""

from __future__ import annotations

from typing import Any

import numpy as np

import mortice as mt
import mortice.optim
from mortice_conformance.checks.behaviour import on_subject
from mortice_conformance.subject import Failure, Skip, Subject
from mortice_conformance.suites import suite
from mortice_conformance.suites.training import fixed

STEPS = 4
SHAPES = [(3, 4), (5, 2)]
# How far a parameter of size 1 may be from the formula's; Muon rounds to bfloat16 on the way.
BOUND = {"float64": 1e-6, "float32": 2e-5, "complex64": 2e-5}
MUON = 2e-2


def mean(state: dict[str, Any], name: str, value: Any, share: float) -> Any:
    """Keep a running mean and return it."""
    state[name] = share * state.get(name, 0.0) + (1 - share) * value
    return state[name]


# ---- the formulas: (parameter, gradient, state, number of the step, options) -> parameter ----


def sgd(p: Any, g: Any, s: Any, t: int, lr: float, momentum: float = 0, nesterov: bool = False, weight_decay: float = 0) -> Any:
    g = g + weight_decay * p
    s["v"] = momentum * s.get("v", 0.0) + g
    return p - lr * (g + momentum * s["v"] if nesterov else s["v"])


def asgd(p: Any, g: Any, s: Any, t: int, lr: float, lambd: float, alpha: float, t0: float) -> Any:
    eta = lr / (1 + lambd * lr * (t - 1)) ** alpha
    return p * (1 - lambd * eta) - eta * g


def adam(p: Any, g: Any, s: Any, t: int, lr: float, weight_decay: float = 0, amsgrad: bool = False) -> Any:
    m = mean(s, "m", g + weight_decay * p, 0.9) / (1 - 0.9**t)
    v = mean(s, "v", (g + weight_decay * p) ** 2, 0.999)
    s["top"] = np.maximum(s.get("top", 0.0), v)
    return p - lr * m / (np.sqrt((s["top"] if amsgrad else v) / (1 - 0.999**t)) + 1e-8)


def adamw(p: Any, g: Any, s: Any, t: int, lr: float, weight_decay: float) -> Any:
    return adam(p * (1 - lr * weight_decay), g, s, t, lr)


def adamax(p: Any, g: Any, s: Any, t: int, lr: float) -> Any:
    s["u"] = np.maximum(0.999 * s.get("u", 0.0), np.abs(g) + 1e-8)
    return p - lr / (1 - 0.9**t) * mean(s, "m", g, 0.9) / s["u"]


def nadam(p: Any, g: Any, s: Any, t: int, lr: float) -> Any:
    now, ahead = [0.9 * (1 - 0.5 * 0.96 ** (n * 0.004)) for n in (t, t + 1)]
    s["product"] = s.get("product", 1.0) * now
    m = ahead * mean(s, "m", g, 0.9) / (1 - s["product"] * ahead) + (1 - now) * g / (1 - s["product"])
    return p - lr * m / (np.sqrt(mean(s, "v", g * g, 0.999) / (1 - 0.999**t)) + 1e-8)


def radam(p: Any, g: Any, s: Any, t: int, lr: float, betas: tuple[float, float]) -> Any:
    b1, b2 = betas
    m, v = mean(s, "m", g, b1) / (1 - b1**t), mean(s, "v", g * g, b2)
    most = 2 / (1 - b2) - 1
    length = most - 2 * t * b2**t / (1 - b2**t)
    if length <= 5:
        return p - lr * m
    r = np.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
    return p - lr * r * m * np.sqrt(1 - b2**t) / (np.sqrt(v) + 1e-8)


def rmsprop(p: Any, g: Any, s: Any, t: int, lr: float, momentum: float = 0, centered: bool = False) -> Any:
    v = mean(s, "v", g * g, 0.99)
    v = v - mean(s, "m", g, 0.99) ** 2 if centered else v
    s["b"] = momentum * s.get("b", 0.0) + g / (np.sqrt(v) + 1e-8)
    return p - lr * s["b"]


def adagrad(p: Any, g: Any, s: Any, t: int, lr: float, lr_decay: float) -> Any:
    s["sum"] = s.get("sum", 0.0) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + 1e-10)


def adadelta(p: Any, g: Any, s: Any, t: int, lr: float) -> Any:
    v = mean(s, "v", g * g, 0.9)
    change = g * np.sqrt(s.get("d", 0.0) + 1e-6) / np.sqrt(v + 1e-6)
    mean(s, "d", change**2, 0.9)
    return p - lr * change


def rprop(p: Any, g: Any, s: Any, t: int, lr: float) -> Any:
    agree = np.sign(g * s.get("g", 0.0))
    s["size"] = np.clip(s.get("size", lr) * np.choose((agree + 1).astype(int), [0.5, 1.0, 1.2]), 1e-6, 50)
    s["g"] = np.where(agree < 0, 0.0, g)
    return p - np.sign(s["g"]) * s["size"]


def adafactor(p: Any, g: Any, s: Any, t: int, lr: float, eps: tuple[float, float]) -> Any:
    share = 1 - t**-0.8
    rows, columns = mean(s, "r", (g * g).mean(1), share), mean(s, "c", (g * g).mean(0), share)
    u = g / np.sqrt(np.maximum(np.outer(rows, columns) / max(rows.mean(), eps[0]), eps[0] ** 2))
    root = lambda x: np.sqrt((x * x).mean())
    return p - max(eps[1], root(p)) * min(lr, t**-0.5) * u / max(1, root(u))


def muon(p: Any, g: Any, s: Any, t: int, lr: float) -> Any:
    m = mean(s, "m", g, 0.95)
    x = 0.05 * g + 0.95 * m
    left, sizes, right = np.linalg.svd(x / np.linalg.norm(x), full_matrices=False)
    for _ in range(5):
        sizes = 3.4445 * sizes - 4.775 * sizes**3 + 2.0315 * sizes**5
    return p * (1 - lr * 0.1) - lr * max(1, p.shape[0] / p.shape[1]) ** 0.5 * (left * sizes) @ right


FORMULAS: list[tuple[str, Any, dict[str, Any]]] = [
    ("SGD", sgd, dict(lr=0.1)),
    ("SGD", sgd, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
    ("ASGD", asgd, dict(lr=0.1, lambd=0.3, alpha=0.5, t0=1e6)),
    ("Adam", adam, dict(lr=0.1)),
    ("Adam", adam, dict(lr=0.1, weight_decay=0.1, amsgrad=True)),
    ("AdamW", adamw, dict(lr=0.1, weight_decay=0.2)),
    ("Adamax", adamax, dict(lr=0.1)),
    ("NAdam", nadam, dict(lr=0.1)),
    ("RAdam", radam, dict(lr=0.1, betas=(0.8, 0.999))),
    ("RAdam", radam, dict(lr=0.1, betas=(0.8, 0.9))),
    ("RMSprop", rmsprop, dict(lr=0.02)),
    ("RMSprop", rmsprop, dict(lr=0.02, momentum=0.5, centered=True)),
    ("Adagrad", adagrad, dict(lr=0.2, lr_decay=0.1)),
    ("Adadelta", adadelta, dict(lr=20.0)),
    ("Rprop", rprop, dict(lr=0.05)),
    ("Adafactor", adafactor, dict(lr=0.1, eps=(1e-7, 1e-3))),
    ("Muon", muon, dict(lr=0.1)),
]


def _gradient(shape: tuple[int, ...], step: int) -> Any:
    return fixed(*shape, seed=2.0 + step)


def _steps(subject: Subject, name: str, options: dict[str, Any], dtype: Any) -> list[Any]:
    """Return the parameters after the steps; complex ones hold two columns in one."""
    params = [_tensor(subject, fixed(*shape), dtype).requires_grad_() for shape in SHAPES]
    made = getattr(mt.optim, name)(params, **options)
    for step in range(1, STEPS + 1):
        for p, shape in zip(params, SHAPES):
            p.grad = _tensor(subject, _gradient(shape, step), dtype)
        made.step()
    return params


def _tensor(subject: Subject, array: Any, dtype: Any) -> Any:
    array = np.ascontiguousarray(array)
    return subject.tensor(array.view(np.complex128) if dtype.is_complex else array, dtype)


def _label(case: Any) -> str:
    (name, _, options), dtype = case
    number = [options for other, _, options in FORMULAS if other == name].index(options) + 1
    return f"{name}-{number}-{dtype}"


@suite("training", 5, each=[(case, d) for case in FORMULAS for d in BOUND], to=_label)
def check_steps(subject: Subject, case: Any) -> None:
    """Take the steps of the formula."""
    (name, formula, options), dtype_name = case
    dtype = next((d for d in subject.available if d.name == dtype_name), None)
    if dtype is None or (dtype.is_complex and name in ("Adafactor", "Muon")):
        raise Skip(f"{subject.device} has no {dtype_name}" if dtype is None else f"{name} refuses complex parameters")
    bound = MUON if name == "Muon" else BOUND[dtype_name]
    with on_subject(subject):
        params = _steps(subject, name, options, dtype)
    for t, shape in zip(params, SHAPES):
        want, state = fixed(*shape), {}  # type: ignore[var-annotated]
        for step in range(1, STEPS + 1):
            want = formula(want, _gradient(shape, step), state, step, **options)
        read = subject.read(t.detach())
        got = read.view(read.real.dtype) if dtype.is_complex else read
        subject.inspect(t, f"{name} in {dtype_name}")
        worst = float(np.abs(got.astype(np.float64) - want).max())
        if not worst <= bound * max(1.0, float(np.abs(want).max())):
            raise Failure(f"{name} {options} in {dtype_name}: after {STEPS} steps expected the formula's; off by {worst:.3g}.")


@suite("training", 5, each=sorted({name for name, _, _ in FORMULAS}))
def check_steps_on_the_device(subject: Subject, name: str) -> None:
    """Take steps without bringing anything to the host."""
    dtype = next(d for d in subject.available if d.name == "float32")
    with on_subject(subject), subject.counting() as seen:
        _steps(subject, name, {}, dtype)
    if seen:
        raise Failure(f"{name}: {STEPS} steps read {len(seen)} times on the host: {', '.join(seen)}.")
