"""vmap and jvp over the kit's samples of every op: computed for a whole batch, and compared with one call a sample."""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import mortice as mt
from mortice.func import jvp, vmap
from mortice.levels import mapped_rules
from mortice.levels.mapped import MappedBackend
from mortice.op import OPS
from mortice.shape import broadcast
from mortice_conformance.record import Case, Sample, load_samples

LANES = 3
DTYPES = ("float64", "complex128", "int64", "bool")
# What cannot be computed for a batch, and why; everything else must be.
DYNAMIC = {
    "unique_all": "how many values are distinct differs from sample to sample",
    "unique_rows": "how many rows are distinct differs from sample to sample",
}
f64 = mt.float64


def draw(*shape: int) -> mt.Tensor:
    return mt.randn(*shape, dtype=f64)


def same(a: Any, b: Any, atol: float = 1e-10) -> bool:
    return a.shape == b.shape and mt.allclose(a, b, rtol=1e-8, atol=atol)


def dtype_for(sample: Sample) -> Any:
    """Return the first dtype of the list that a sample takes."""
    for name in DTYPES:
        d = getattr(mt, name)
        if sample.accepts(d):
            return d
    return None


def lanes(sample: Sample, case: Case, dtype: Any, smooth: bool = False) -> list[list[Any]]:
    """Return the operands of a call, drawn anew for each lane."""
    return [
        sample.draw(dataclasses.replace(case, name=f"{case} lane {i}"), dtype, smooth) for i in range(LANES)
    ]


def patterns(operands: list[Any]) -> Iterator[list[bool]]:
    """Say which operands to map: all, and each alone."""
    there = [x is not None for x in operands]
    yield there
    if sum(there) > 1:
        for i, present in enumerate(there):
            if present:
                yield [i == j for j in range(len(there))]


def tensor(array: Any) -> Any:
    return mt.from_numpy(np.array(array, copy=True, order="C")) if array is not None else None


def check_vmap(sample: Sample, case: Case, dtype: Any) -> str | None:
    """Compare a batch with a loop; return what differs."""
    drawn = lanes(sample, case, dtype)
    for mapped in patterns(drawn[0]):
        rows = [[drawn[i][j] if on else drawn[0][j] for j, on in enumerate(mapped)] for i in range(LANES)]
        flat = [
            None if row is None else tensor(np.stack([r[j] for r in rows])) if mapped[j] else tensor(row)
            for j, row in enumerate(rows[0])
        ]
        try:
            want = [sample.apply([tensor(x) for x in row], case.attrs) for row in rows]
        except Exception:  # noqa: BLE001 - a sample that draws something invalid compares nothing
            continue
        dims = tuple([0 if on else None for on in mapped])
        try:
            got = vmap(lambda *xs: sample.apply(xs, case.attrs), in_dims=dims)(*flat)
        except Exception as error:  # noqa: BLE001
            return f"{case} mapped {mapped}: {type(error).__name__}: {str(error)[:150]}"
        for n, g in enumerate(got):
            expected = [w[n].cpu().numpy() for w in want]
            if len({e.shape for e in expected}) > 1 or tuple(g.shape)[1:] != expected[0].shape:
                return f"{case} mapped {mapped}: output {n} has shape {tuple(g.shape)}, not {expected[0].shape}"
            e = np.stack(expected)
            if g.dtype is not want[0][n].dtype:
                return f"{case} mapped {mapped}: output {n} is {g.dtype}, not {want[0][n].dtype}"
            if not np.allclose(g.cpu().numpy(), e, rtol=1e-8, atol=1e-9, equal_nan=True):
                return f"{case} mapped {mapped}: output {n} differs by {np.nanmax(np.abs(g.cpu().numpy() - e))}"
    return None


def check_jvp(sample: Sample, case: Case, dtype: Any) -> str | None:
    """Compare a Jacobian-vector product with the transpose of the gradient: <u, Jt> = <vjp(u), t>."""
    operands = sample.draw(case, dtype, True)
    at = sample.grad_operands(case)
    if not at:
        return None
    rng = np.random.Generator(np.random.PCG64(5))

    def direction(a: Any) -> Any:
        v = rng.uniform(-1, 1, np.shape(a))
        return np.asarray(v + 1j * rng.uniform(-1, 1, np.shape(a)) if np.asarray(a).dtype.kind == "c" else v, np.asarray(a).dtype)

    ts = [direction(operands[i]) for i in at]
    record = sample.record

    def f(*xs: Any) -> Any:
        full = [tensor(o) for o in operands]
        for i, x in zip(at, xs):
            full[i] = x
        out = sample.apply(full, case.attrs)
        count = len(out) if record is None or sample.call is not None else record.differentiable
        return tuple([o for o in out[:count] if o.dtype.kind in "fc"])

    leaves = [tensor(operands[i]).requires_grad_() for i in at]
    outs = f(*leaves)
    live = [o for o in outs if o.requires_grad]
    us = [tensor(direction(o.detach().cpu().numpy())) for o in outs]
    if not live:
        return None
    grads = mt.autograd.grad(live, leaves, [u for o, u in zip(outs, us) if o.requires_grad], allow_unused=True)
    want = sum(float(np.sum(np.real(np.conj(g.cpu().numpy()) * t))) for g, t in zip(grads, ts) if g is not None)
    primals = tuple([tensor(operands[i]) for i in at])
    value, pushed = jvp(f, primals, tuple([tensor(t) for t in ts]))
    for v, o, p in zip(value, outs, pushed):
        if not np.allclose(v.cpu().numpy(), o.detach().cpu().numpy(), equal_nan=True):
            return f"{case}: the value differs"
        if p.shape != o.shape or p.dtype is not o.dtype:
            return f"{case}: the tangent is {p.dtype} {list(p.shape)}, not {o.dtype} {list(o.shape)}"
    if any(np.isnan(v.cpu().numpy()).any() for v in value):  # of no elements: there is nothing to differentiate
        return None
    got = sum(float(np.sum(np.real(np.conj(u.cpu().numpy()) * p.cpu().numpy()))) for u, p, o in zip(us, pushed, outs) if o.requires_grad)
    if not np.isclose(got, want, rtol=1e-6, atol=1e-7, equal_nan=True):
        return f"{case}: <u, Jt> is {got}, <vjp(u), t> is {want}"
    return None


def check_gradients(sample: Sample, case: Case, dtype: Any) -> str | None:
    """Compare gradients of each sample, taken inside vmap and through it from outside, with a loop."""
    drawn = lanes(sample, case, dtype, True)
    at = sample.grad_operands(case)
    if not at:
        return None
    record = sample.record

    def loss(operands: list[Any]) -> Any:
        out = sample.apply(operands, case.attrs)
        count = len(out) if record is None or sample.call is not None else record.differentiable
        parts = [o for o in out[:count] if o.dtype.kind in "fc"]
        return sum((o.abs() ** 2 if o.dtype.is_complex else o * o.cos()).sum() for o in parts)

    def gradients(*operands: Any) -> Any:
        full = list(operands)
        for i in at:
            full[i] = full[i].detach().requires_grad_()
        value = loss(full)
        if not value.requires_grad:
            return tuple([mt.zeros_like(full[i]) for i in at])
        return mt.autograd.grad(value, [full[i] for i in at], materialize_grads=True)

    want = [gradients(*[tensor(x) for x in row]) for row in drawn]
    stacked = [None if x is None else tensor(np.stack([row[j] for row in drawn])) for j, x in enumerate(drawn[0])]
    dims = tuple([None if x is None else 0 for x in stacked])
    inside = vmap(gradients, in_dims=dims)(*stacked)
    for i in at:
        stacked[i].requires_grad_()
    whole = vmap(lambda *xs: loss(list(xs)), in_dims=dims)(*stacked).sum()
    leaves = [stacked[i] for i in at]
    outside = mt.autograd.grad(whole, leaves, materialize_grads=True) if whole.requires_grad else inside
    for n in range(len(at)):
        expected = np.stack([w[n].cpu().numpy() for w in want])
        for how, got in (("inside", inside[n].cpu().numpy()), ("outside", outside[n].cpu().numpy())):
            if got.shape != expected.shape or not np.allclose(got, expected, rtol=1e-7, atol=1e-8, equal_nan=True):
                return f"{case}: the gradient {how} vmap of operand {at[n]} differs"
    return None


def kind_of_rule(name: str) -> str:
    """Say how an op is computed for a batch."""
    op = OPS[name]
    if name in DYNAMIC:
        return "refused"
    if name in mapped_rules._looped:
        return "loop"
    if op.shape is broadcast or op.jvp == "elementwise" or name in mapped_rules.ELEMENTWISE_OPS:
        return "elementwise"
    if name in mapped_rules.FREE_LEADING_OPS or (op.kernel is not None and op.kernel in MappedBackend.__dict__):
        return "rule"
    return "body"


def kinds() -> Counter[str]:
    """Count the ops by how they are computed for a batch."""
    return Counter(map(kind_of_rule, OPS))


def sweep(check: Any, names: list[str] | None = None) -> tuple[Counter[str], dict[str, str]]:
    """Run a check over all samples; return how many ran, by kind of rule, and what failed."""
    counts: Counter[str] = Counter()
    failed: dict[str, str] = {}
    for key, sample in load_samples().items():
        if (names and sample.op not in names) or sample.op in DYNAMIC:
            continue
        dtype = dtype_for(sample)
        if dtype is None or (check is not check_vmap and (dtype.kind not in "fc" or not sample.differentiable)):
            continue
        ran = False
        for case in (*sample.cases, *sample.edges):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    problem = check(sample, case, dtype)
                except Exception as error:  # noqa: BLE001
                    problem = f"{case}: {type(error).__name__}: {str(error)[:150]}"
            ran = True
            if problem:
                failed[key] = problem
                break
        counts["samples"] += ran
    return counts, failed
