"""Checks of gradients: finite differences in one random direction, at order one and two, dtypes, and declared jvps."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mortice.autograd import grad
from mortice.backends import DType
from mortice_conformance.arrays import rounded, spacing, widened
from mortice_conformance.record import Case, Sample
from mortice_conformance.subject import Failure, Skip, Subject, magnitude
from mortice_conformance.tolerance import allowed

# The step of central differences: its cube is about the rounding of one value.
STEP = {"float64": 2.0**-17, "complex128": 2.0**-17, "float32": 2.0**-7, "complex64": 2.0**-7}
CASES = 3


class Problem:
    """One case as a function of the operands that have gradients, at float values in a wide dtype."""

    def __init__(self, subject: Subject, sample: Sample, case: Case, dtype: DType) -> None:
        self.subject, self.sample, self.case, self.dtype = subject, sample, case, dtype
        self.at = sample.grad_operands(case)
        self.points = [widened(a) if a is not None else None for a in sample.draw(case, dtype, smooth=True)]
        self.rng = np.random.Generator(np.random.PCG64(zlib.crc32(f"{sample.id}|{case}|gradient".encode())))
        self.what = f"{sample.id} {dtype.name} {case}"

    def tensors(self, points: Sequence[Any], leaves: bool) -> list[Any]:
        own = self.sample.operand_dtypes(self.case, self.dtype)
        return [
            None if p is None else self.subject.tensor(rounded(p, d), d, leaves and i in self.at)
            for i, (p, d) in enumerate(zip(points, own))
        ]

    def outputs(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the outputs that have gradients; with no leaf among the operands, those of a float dtype."""
        out = self.sample.apply(tensors, self.case.attrs)
        record = self.sample.record
        count = len(out) if record is None or self.sample.call is not None else record.differentiable
        return [t for t in out[:count] if t.dtype.kind in "fc"]

    def like(self, array: Any) -> Any:
        """Draw a direction for an array's shape and kind, rounded to the dtype."""
        v = self.rng.uniform(-1, 1, np.shape(array))
        if np.asarray(array).dtype.kind == "c":
            v = v + 1j * self.rng.uniform(-1, 1, np.shape(array))
        return widened(
            rounded(v, self.dtype.to_complex() if np.asarray(array).dtype.kind == "c" else self.dtype.to_real())
        )

    def moved(self, directions: Sequence[Any], step: float) -> list[Any]:
        points = list(self.points)
        for i, v in zip(self.at, directions):
            points[i] = points[i] + step * v
        return points


def dot(x: Any, y: Any) -> float:
    """Return the real inner product."""
    return float(np.sum(np.real(np.conj(x) * y))) if np.size(x) else 0.0


def _agree(what: str, got: float, want: float, scale: float, dtype: DType, kind: str) -> None:
    bound = allowed(kind, dtype) * float(spacing(max(scale, 1e-3), dtype.to_real()))
    if not abs(got - want) <= bound:
        raise Failure(f"{what}: expected {want:.10g} by finite differences; got {got:.10g} ({bound:.2g} allowed).")


def _grads(
    problem: Problem, points: Sequence[Any], seeds: Sequence[Any], graph: bool = False
) -> tuple[list[Any], list[Any]]:
    """Return (leaves, gradients as Tensors) of <seeds, outputs>."""
    tensors = problem.tensors(points, True)
    leaves = [tensors[i] for i in problem.at]
    out = problem.outputs(tensors)
    found = [(t, s) for t, s in zip(out, seeds) if t.requires_grad]
    if not found:
        raise Failure(f"{problem.what}: no output requires grad though an operand does.")
    given = [s if hasattr(s, "_buffer") else problem.subject.tensor(rounded(s, t.dtype), t.dtype) for t, s in found]
    return leaves, list(grad([t for t, _ in found], leaves, given, create_graph=graph, materialize_grads=True))


def _cases(sample: Sample) -> list[Case]:
    return [c for c in sample.cases if sample.grad_operands(c)][:CASES]


def check_gradient(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Agree with central differences of the op itself, along a random direction."""
    for case in _cases(sample):
        p = Problem(subject, sample, case, dtype)
        values = [widened(subject.read(t)) for t in p.outputs(p.tensors(p.points, False))]
        seeds = [p.like(v) for v in values]
        directions = [p.like(p.points[i]) for i in p.at]
        _, grads = _grads(p, p.points, seeds)
        step = STEP[dtype.name]

        def loss(points: list[Any], p: Problem = p, seeds: list[Any] = seeds) -> float:
            out = p.outputs(p.tensors(points, False))
            return sum(dot(s, widened(p.subject.read(t))) for s, t in zip(seeds, out))

        want = _slope(lambda h, p=p, v=directions: loss(p.moved(v, h)), step)
        got = scale = 0.0
        for i, g, v in zip(p.at, grads, directions):
            subject.inspect(g, f"{p.what} gradient {i}")
            if tuple(g.shape) != np.shape(p.points[i]) or g.dtype is not dtype:
                raise Failure(
                    f"{p.what} gradient {i}: expected {np.shape(p.points[i])} of {dtype.name}; got {tuple(g.shape)} "
                    f"of {g.dtype.name}."
                )
            array = widened(subject.read(g))
            got += dot(array, v)
            scale += float(np.sum(np.abs(array) * np.abs(v)))
        # Rounding of the loss itself, seen through the step, counts too.
        scale += magnitude(values) * 1e-3
        _agree(f"{p.what} gradient", got, want, scale, dtype, "difference")


def _slope(f: Callable[[float], float], h: float) -> float:
    """Return the derivative at 0 by central differences of fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def check_second_gradient(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Agree with central differences of the first gradient, under create_graph and for the incoming gradient too."""
    for case in _cases(sample)[:2]:
        p = Problem(subject, sample, case, dtype)
        outputs = p.outputs(p.tensors(p.points, False))
        values = [widened(subject.read(t)) for t in outputs]
        seeds = [p.like(v) for v in values]
        seed_directions = [p.like(v) for v in values]
        directions = [p.like(p.points[i]) for i in p.at]
        weights = [p.like(p.points[i]) for i in p.at]
        given = [subject.tensor(rounded(s, t.dtype), t.dtype, True) for s, t in zip(seeds, outputs)]
        leaves, firsts = _grads(p, p.points, given, graph=True)
        _, plain = _grads(p, p.points, seeds)
        for i, first, raw in zip(p.at, firsts, plain):
            apart = np.abs(widened(subject.read(first)) - widened(subject.read(raw)))
            size = max(magnitude([widened(subject.read(raw))]), 1e-3)
            if apart.size and not apart.max() <= allowed("gradient", dtype) * float(spacing(size, dtype.to_real())):
                raise Failure(f"{p.what} gradient {i}: create_graph=True gives another value than a plain backward.")
        inner = [(f, w) for f, w in zip(firsts, weights) if f.requires_grad]
        wanted = [*leaves, *given]
        if inner:
            tops = [subject.tensor(rounded(w, f.dtype), f.dtype) for f, w in inner]
            second = grad([f for f, _ in inner], wanted, tops, materialize_grads=True)
        else:
            second = ()

        def slope_at(h: float, p: Problem = p, seeds: list[Any] = seeds, moves: Any = (directions, seed_directions),
                     weights: list[Any] = weights) -> float:  # fmt: skip
            there = [s + h * v for s, v in zip(seeds, moves[1])]
            _, found = _grads(p, p.moved(moves[0], h), there)
            return sum(dot(w, widened(p.subject.read(g))) for w, g in zip(weights, found))

        want = _slope(slope_at, STEP[dtype.name])
        got = scale = 0.0
        for t, v in zip(second, [*directions, *seed_directions]):
            array = widened(subject.read(t))
            got += dot(array, v)
            scale += float(np.sum(np.abs(array) * np.abs(v)))
        scale += magnitude([widened(subject.read(g)) for g in plain]) * 1e-3
        _agree(f"{p.what} second gradient", got, want, scale, dtype, "second difference")


def check_gradient_dtypes(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Agree with the gradient in the widest dtype, and have the operand's dtype."""
    widest = sample.widest(subject.available, dtype.kind)
    if widest is None or widest is dtype:
        raise Skip("it is the widest dtype of its kind here")
    case = _cases(sample)[0]
    narrow = Problem(subject, sample, case, dtype)
    exact = Problem(subject, sample, case, widest)
    exact.points = narrow.points
    values = [widened(subject.read(t)) for t in exact.outputs(exact.tensors(exact.points, False))]
    seeds = [narrow.like(v) for v in values]
    _, got = _grads(narrow, narrow.points, seeds)
    _, want = _grads(exact, narrow.points, seeds)
    scale = magnitude([widened(subject.read(g)) for g in want])
    for i, g, w in zip(narrow.at, got, want):
        subject.inspect(g, f"{narrow.what} gradient {i}")
        if g.dtype is not dtype:
            raise Failure(f"{narrow.what} gradient {i}: expected dtype {dtype.name}; got {g.dtype.name}.")
        apart = np.abs(widened(subject.read(g)) - widened(subject.read(w)))
        bound = allowed("gradient", dtype) * float(spacing(max(scale, 1e-3), dtype.to_real()))
        if apart.size and not apart.max() <= bound:
            raise Failure(
                f"{narrow.what} gradient {i}: differs from {widest.name}'s by {apart.max():.3g} ({bound:.2g} allowed)."
            )


# ---- forward mode ----


def check_jvp(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Agree with central differences where a jvp is declared as "elementwise", "linear" or "bilinear"."""
    record = sample.record
    declared = record.jvp if record is not None else None
    if declared not in ("elementwise", "linear", "bilinear"):
        raise Skip("no jvp is declared by name")
    if declared == "elementwise" and dtype.is_complex and not record.holomorphic:  # type: ignore[union-attr]
        raise Skip("a complex function that is not holomorphic has no single factor to compare with")
    for case in _cases(sample)[:2]:
        p = Problem(subject, sample, case, dtype)
        if declared == "elementwise" and len({np.shape(a) for a in p.points if a is not None}) > 1:
            continue
        directions = [p.like(p.points[i]) for i in p.at]
        if declared == "elementwise":
            got = _elementwise_jvp(p, directions)
        else:
            got = _linear_jvp(p, directions, joint=declared == "linear")
        h = STEP[dtype.name]
        ends = [
            [widened(subject.read(t)) for t in p.outputs(p.tensors(p.moved(directions, s * h), False))]
            for s in (1, -1, 2, -2)
        ]
        for i, g in enumerate(got):
            want = (8 * (ends[0][i] - ends[1][i]) - (ends[2][i] - ends[3][i])) / (12 * h)
            bound = allowed("difference", dtype) * float(spacing(max(magnitude([want]), 1.0), dtype.to_real()))
            if np.size(want) and not np.max(np.abs(g - want)) <= bound:
                raise Failure(f"{p.what}: its jvp, declared {declared!r}, differs from finite differences.")


def _elementwise_jvp(p: Problem, directions: Sequence[Any]) -> list[Any]:
    """Pull each tangent back through its own input: a diagonal Jacobian is its own transpose."""
    total: list[Any] | None = None
    for number, v in zip(p.at, directions):
        tensors = p.tensors(p.points, False)
        tensors[number]._rg = True
        (out,) = p.outputs(tensors)
        # The engine gives J^H g; conj(J^H conj(v)) is J v.
        seed = p.subject.tensor(rounded(np.conj(v), out.dtype), out.dtype)
        (g,) = grad([out], [tensors[number]], [seed], materialize_grads=True)
        part = np.conj(widened(p.subject.read(g)))
        total = [part] if total is None else [total[0] + part]
    return total or []


def _linear_jvp(p: Problem, directions: Sequence[Any], joint: bool) -> list[Any]:
    """Apply the op to the tangents: all together, or one at a time beside the other operands."""
    pairs = list(zip(p.at, directions))
    # Bilinear in the first two; what more there is (a bias) is added, and takes its tangent with the second.
    groups = [pairs] if joint else [pairs[:1], pairs[1:]]
    total: list[Any] | None = None
    for group in groups:
        points = list(p.points)
        if not joint:
            for i in p.at[2:]:
                points[i] = np.zeros_like(points[i])
        for i, v in group:
            points[i] = v
        found = [widened(p.subject.read(t)) for t in p.outputs(p.tensors(points, False))]
        total = found if total is None else [a + b for a, b in zip(total, found)]
    return total or []
