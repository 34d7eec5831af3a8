"""Sample records: what the kit knows about an op, as data. `sample(...)` adds one; the checks read nothing else."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mortice.backends import DTYPES, DType
from mortice.dtype import int64, promote_types
from mortice.errors import DTypeError
from mortice.op import OPS, Op
from mortice_conformance import domain as domains
from mortice_conformance.arrays import BY_NAME, limits, native, rounded, wide, widened
from mortice_conformance.domain import Domain

Shape = tuple[int, ...]
SAMPLES: dict[str, Sample] = {}
_MISUSE: list[tuple[str, Callable[[], Any], str]] = []

# What an op without `shapes` is called with: usual sizes with a tail for vector units, then 0-d and empty ones.
UNARY: list[Any] = [(2, 3), (37,)]
UNARY_EDGES: list[Any] = [(), (0,), (2, 0, 3), (1,)]
BINARY: list[Any] = [((2, 3), (2, 3)), ((2, 3), (3,)), ((4, 1), (3,)), ((2, 1, 3), (4, 1)), ((37,), (37,))]
BINARY_EDGES: list[Any] = [((), ()), ((3,), ()), ((0,), (1,)), ((2, 0), (0,)), ((), (2, 0))]
REDUCED: list[Any] = [(4, 5), (37,), (2, 3, 4)]
MATRICES: list[Any] = [(3, 3), (2, 4, 4), (1, 1)]

# Edge values that every elementwise op meets: signed zeros, infinities, nan, and the ends of the range.
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float("inf"), float("-inf"), float("nan"), "tiny", "max", "-max")

# The dtype of a result by the name of the op's rule, for operands of dtype d; the kit's own copy of the rules.
_FLOAT32 = BY_NAME["float32"]
RESULTS: dict[str, Callable[[DType], DType]] = {
    "promote": lambda d: d,
    "floating": lambda d: _FLOAT32 if d.kind in "bui" else d,
    "comparison": lambda d: BY_NAME["bool"],
    "logical": lambda d: BY_NAME["bool"],
    "accumulate": lambda d: int64 if d.kind in "bui" else d,
    "indices": lambda d: int64,
    "real_part": lambda d: d.to_real(),
    "complex_part": lambda d: d.to_complex(),
}


@dataclass(frozen=True)
class Case:
    """One call: a shape per operand (None: the operand is absent) and the attributes."""

    shapes: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def __str__(self) -> str:
        attrs = "".join(f" {k}={v!r}" for k, v in self.attrs.items())
        return (self.name or " ".join("-" if s is None else str(list(s)) for s in self.shapes)) + attrs


@dataclass(frozen=True)
class Given:
    """A call on operands that are written out, because usual ones do not show a certain fault.

    Attributes:
        operands: a nested list each; None where one is absent.
        attrs: the attributes.
        dtypes: kinds of "buifc", or names, of the dtypes that it is for. Those that cannot hold an operand are left out.
        why: what a backend that fails it has most likely overlooked.
    """

    operands: tuple[Any, ...]
    attrs: dict[str, Any]
    dtypes: Any
    why: str


@dataclass
class Sample:
    """What the kit knows about one op; `sample` has the meaning of the fields."""

    id: str
    op: str
    reference: Callable[..., Any]
    call: Callable[..., Any] | None
    domains: tuple[Domain, ...]
    cases: list[Case]
    edges: list[Case]
    kinds: Any
    values: tuple[Any, ...]
    kind: str
    result: Any
    grad: Any
    grad_domains: tuple[Domain, ...]
    misuse: tuple[tuple[Callable[[], Any], str], ...]
    tolerance: dict[str, float]
    terms: int
    transfers: int
    zeros: bool
    reason: str
    layouts: bool
    shares: bool
    given: tuple[Given, ...]

    # ---- the op ----

    @property
    def record(self) -> Op | None:
        """The op's own record in core, None for a plain function."""
        return OPS.get(self.op)

    def apply(self, tensors: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
        """Call the op and return its outputs as a tuple of tensors."""
        fn = self.call or OPS[self.op].fn
        out = fn(*tensors, **attrs)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    # ---- dtypes ----

    def accepts(self, dtype: DType) -> bool:
        """Tell whether the op takes operands of that dtype."""
        if self.kinds is None:
            return not self.refuses(dtype)
        return dtype.kind in self.kinds if isinstance(self.kinds, str) else dtype.name in self.kinds

    def refuses(self, dtype: DType) -> bool:
        """Tell whether the op's own rule refuses operands of that dtype."""
        return self.record is not None and self.record.result is not None and not _allows(self.record.rule, dtype)

    def takes(self, dtype: DType) -> bool:
        """Tell whether the op takes an operand of that dtype beside others of wider ones."""
        record = self.record
        return record is None or record.operand is None or _allows(record.operand, record, dtype)

    def dtypes(self, available: Any) -> list[DType]:
        """Return the dtypes to test: those that a device has, as it has what results from them."""
        have = [d for d in DTYPES if d in available and self.accepts(d)]
        return [d for d in have if available.issuperset(self.results(d))]

    def widest(self, available: Any, kind: str = "f") -> DType | None:
        """Return the widest float (or complex) dtype of the device that the op takes."""
        for d in reversed(self.dtypes(available)):
            if d.kind == kind:
                return d
        return None

    def results(self, dtype: DType) -> tuple[DType, ...]:
        """Return the dtype of each output."""
        rule = self.result
        record = self.record
        if rule is None and record is not None and record.result is not None:
            rule = record.result.__name__
            if rule not in RESULTS:
                rule = record.result(record, dtype)[1]
        rules = rule if isinstance(rule, tuple) else (rule or "promote",)
        return tuple(r if isinstance(r, DType) else BY_NAME[r] if r in BY_NAME else RESULTS[r](dtype) for r in rules)

    def computes_in(self, dtype: DType) -> DType:
        """Return the dtype that operands are cast to before the kernel."""
        record = self.record
        if record is not None and record.result is not None:
            return record.result(record, dtype)[0]
        first = self.results(dtype)[0]
        return first if first.kind in "fc" and dtype.kind in "bui" else dtype

    # ---- operands and what they should give ----

    def draw(self, case: Case, dtype: DType, smooth: bool = False) -> list[Any]:
        """Draw the operands of a case, the same ones every time."""
        seed = zlib.crc32(f"{self.id}|{case}".encode())
        rng = np.random.Generator(np.random.PCG64(seed))
        chosen = self.grad_domains if smooth else self.domains
        return [None if s is None else d.values(rng, s, dtype, case) for s, d in zip(case.shapes, _cycle(chosen, case))]

    def operand_dtypes(self, case: Case, dtype: DType) -> list[DType]:
        """Return each operand's dtype when the sample's is `dtype`."""
        return [d.of(dtype) for d in _cycle(self.domains, case)]

    def follows(self, case: Case) -> list[bool]:
        """Tell which operands take the sample's dtype, rather than one of their own."""
        return [s is not None and d.dtype is None for s, d in zip(case.shapes, _cycle(self.domains, case))]

    def expected(self, case: Case, arrays: Sequence[Any], dtype: DType) -> tuple[Any, ...]:
        """Return the reference's outputs as wide arrays."""
        compute = wide(self.computes_in(dtype))
        ready = [None if a is None else widened(a) for a in arrays]
        ready = [
            a.astype(compute) if follows and a.dtype.kind in "bui" else a
            for a, follows in zip(ready, self.follows(case))
        ]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = self.reference(*ready, **case.attrs)
        return tuple(np.asarray(o) for o in out) if isinstance(out, (tuple, list)) else (np.asarray(out),)

    def edge_case(self, dtype: DType) -> tuple[Case, list[Any]] | None:
        """Return a call on every combination of the edge values that the dtype holds."""
        values = [v for v in (_edge(v, dtype) for v in self.values) if v is not None]
        if not values:
            return None
        following = self.domains[0].dtype is None
        if not following:
            return None
        attrs = self.cases[0].attrs
        count = len(self.cases[0].shapes)
        columns = list(zip(*itertools.product(values, repeat=count)))
        arrays = [rounded(np.array(c, np.float64 if dtype.kind == "f" else object), dtype) for c in columns]
        arrays = [np.asarray(a, native(dtype)) for a in arrays]
        return Case(tuple(a.shape for a in arrays), attrs, "edge values"), arrays

    def given_cases(self, dtype: DType) -> Iterator[tuple[Case, list[Any], str]]:
        """Yield the calls on written operands that the dtype can hold, each with what its failure means."""
        for g in self.given:
            if not (dtype.kind in g.dtypes if isinstance(g.dtypes, str) else dtype.name in g.dtypes):
                continue
            shapes = tuple(None if o is None else np.shape(o) for o in g.operands)
            case = Case(shapes, g.attrs, "given " + ", ".join(_short(o) for o in g.operands))
            own = self.operand_dtypes(case, dtype)
            arrays = [None if o is None else _held(o, d) for o, d in zip(g.operands, own)]
            if all(a is not None or o is None for a, o in zip(arrays, g.operands)):
                yield case, arrays, g.why

    # ---- gradients ----

    @property
    def differentiable(self) -> bool:
        """Whether gradients are to be checked."""
        if self.grad is False or isinstance(self.grad, str):
            return False
        return self.record is None or self.record.no_grad_reason is None

    def grad_operands(self, case: Case) -> list[int]:
        """Return the numbers of the operands that have gradients."""
        record = self.record
        found = []
        for i, follows in enumerate(self.follows(case)):
            named = record is None or self.call is not None or record.joint is not None or record.variadic
            if follows and (named or (record.inputs[i] in record.formulas)):  # type: ignore[union-attr]
                found.append(i)
        return found if not isinstance(self.grad, (tuple, list)) else [i for i in found if i in self.grad]


def _allows(rule: Callable[..., Any], *args: Any) -> bool:
    try:
        rule(*args)
    except DTypeError:
        return False
    return True


def _cycle(chosen: tuple[Domain, ...], case: Case) -> list[Domain]:
    """Return a domain per operand: the last one serves all that follow."""
    return [chosen[min(i, len(chosen) - 1)] for i in range(len(case.shapes))]


def _short(operand: Any) -> str:
    text = str(operand)
    return text if len(text) < 100 else f"{text[:30]}... of shape {list(np.shape(operand))}"


def _held(operand: Any, dtype: DType) -> Any:
    """Return an operand rounded to a dtype, None where it does not hold one of its values."""
    if dtype.kind in "ui":
        flat = np.array(operand, object).ravel()
        bottom, top = limits(dtype)
        return np.array(operand, native(dtype)) if all(bottom <= v <= top for v in flat) else None
    wanted = np.array(operand, np.complex128 if dtype.kind == "c" else np.float64)
    found = rounded(wanted, dtype)
    return found if np.array_equal(np.isfinite(found), np.isfinite(wanted)) else None


def _edge(value: Any, dtype: DType) -> Any:
    """Return an edge value as the dtype holds it, None when it does not."""
    if dtype.kind == "c":
        return None
    if isinstance(value, str):
        sign, name = (-1, value[1:]) if value.startswith("-") else (1, value)
        if dtype.kind == "f":
            info = {"max": limits(dtype)[1], "min": limits(dtype)[0], "tiny": 0.0}
            value = sign * (_tiny(dtype) if name == "tiny" else info[name])
        elif name in ("max", "min"):
            found = limits(dtype)[name == "max"]
            value = sign * found if sign > 0 or dtype.kind == "i" and name == "max" else None
        else:
            return None
    if value is None or dtype.kind == "f":
        return value
    bottom, top = limits(dtype)
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if bottom <= value <= top else None


def _tiny(dtype: DType) -> float:
    from mortice.dtype import finfo

    return finfo(dtype).tiny


def sample(
    op: str,
    reference: Callable[..., Any],
    *operand_domains: Domain,
    call: Callable[..., Any] | None = None,
    variant: str = "",
    shapes: Sequence[Any] | None = None,
    attrs: Sequence[dict[str, Any]] = ({},),
    cases: Sequence[tuple[Any, dict[str, Any]]] | None = None,
    edges: Sequence[Any] | None = None,
    dtypes: str | Sequence[str] | None = None,
    values: Sequence[Any] = (),
    kind: str = "elementwise",
    result: Any = None,
    grad: Any = None,
    grad_domain: Domain | Sequence[Domain] | None = None,
    misuse: Sequence[tuple[Callable[[], Any], str]] = (),
    tolerance: dict[str, float] | float | None = None,
    terms: int = 0,
    reason: str = "",
    transfers: int = 0,
    zeros: bool = False,
    layouts: bool = True,
    shares: bool = False,
    given: Sequence[tuple[Sequence[Any], dict[str, Any], Any, str]] = (),
    into: dict[str, Sample] | None = None,
) -> None:
    """Add the record of an op.

    Args:
        op: its name in `mortice.op.OPS`.
        reference: NumPy's way to compute it, on wide arrays and with the same attributes.
        operand_domains: where each operand is drawn from; the last serves the operands after it. `real` when none is given.
        call: what to call instead of the op's own function; gets tensors and the attributes.
        variant: tells several records of one op apart.
        shapes: a shape per call, or a tuple of shapes for several operands; None stands for an absent operand.
        attrs: attributes; every shape is called with each of them.
        cases: pairs (shapes, attributes), instead of `shapes` and `attrs`.
        edges: shapes, or pairs, of 0-d and empty calls; derived where the shape rule is elementwise.
        dtypes: kinds of "buifc" that it takes, or names of dtypes; by default what the op's rule accepts.
        values: edge values; of several operands every combination is called.
        kind: the class in the tolerance table.
        result: name of the dtype rule or dtype of each output; by default the op's rule.
        grad: False or a reason to leave gradients out, or the numbers of the operands to check.
        grad_domain: the domain for gradients, away from kinks and ties.
        misuse: pairs (callable, exact text of the error).
        tolerance: ulp instead of the table's, for all dtypes or by name; needs a `reason`.
        terms: how many go into each element, where sums are measured and the operands' sizes do not tell.
        transfers: how often it may read on the host, because its shape or its check depends on data; needs a `reason`.
        zeros: also compare the sign of zeros.
        shares: the result may share memory with its operand: core uses the op only where that does no harm.
        given: calls on operands that are written out: (operands, attributes, dtypes, what a failure most likely means).
        layouts: False where the op is about memory order itself; needs a `reason`.
        into: the records to add to, instead of the ops' own.
    """
    into = SAMPLES if into is None else into
    name = f"{op}:{variant}" if variant else op
    if name in into:
        raise ValueError(f"sample: {name!r} is there already; give a variant.")
    if (tolerance is not None or transfers or not layouts) and not reason:
        raise ValueError(f"sample: {name}: an exception needs its reason.")
    chosen = operand_domains or (domains.real,)
    record = OPS.get(op)
    rule = record.shape.__name__ if record is not None and record.shape is not None else ""
    if shapes is None and cases is None:
        if rule == "broadcast":
            shapes, edges = _repeat(BINARY, record), _repeat(BINARY_EDGES, record) if edges is None else edges
        else:
            shapes, edges = UNARY, UNARY_EDGES if edges is None and rule == "same" else edges
    listed = [Case(_shapes(s), dict(a)) for s, a in (cases or itertools.product(shapes or (), attrs))]
    ends = [_edge_case(e, listed[0].attrs) for e in edges or ()]
    smooth = (
        chosen if grad_domain is None else (grad_domain,) if isinstance(grad_domain, Domain) else tuple(grad_domain)
    )
    bounds = dict.fromkeys(BY_NAME, tolerance) if isinstance(tolerance, (int, float)) else tolerance or {}
    into[name] = Sample(
        name, op, reference, call, chosen, listed, ends, dtypes, tuple(values), kind, result, grad, smooth,
        tuple(misuse), bounds, terms, transfers, zeros, reason, layouts, shares, tuple(Given(tuple(g[0]), *g[1:]) for g in given),
    )  # fmt: skip


def _repeat(pairs: list[Any], record: Any) -> list[Any]:
    """Fit the standard shapes to an elementwise op of one, two or more operands."""
    n = len(record.inputs)
    return [s[:n] if n <= len(s) else (*s, *(s[-1],) * (n - len(s))) for s in pairs]


def _shapes(s: Any) -> tuple[Any, ...]:
    """Read one shape, or a tuple of shapes."""
    return (tuple(s),) if all(isinstance(n, int) for n in s) else tuple(None if p is None else tuple(p) for p in s)


def _edge_case(edge: Any, attrs: dict[str, Any]) -> Case:
    if len(edge) == 2 and isinstance(edge[1], dict):
        return Case(_shapes(edge[0]), edge[1])
    return Case(_shapes(edge), attrs)


def misuse(name: str, wrong: Callable[[], Any], text: str) -> None:
    """Add a misuse with the exact text of its error to a record, where the record's own line has no room for it."""
    _MISUSE.append((name, wrong, text))


def load_samples() -> dict[str, Sample]:
    """Import every module of samples and return the records, by op."""
    import mortice_conformance.samples as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    while _MISUSE:
        name, wrong, text = _MISUSE.pop()
        SAMPLES[name].misuse = ((wrong, text), *SAMPLES[name].misuse)
    return SAMPLES


def promoted(dtypes: Sequence[DType]) -> DType | None:
    """Return the common dtype, None where there is none."""
    found = dtypes[0]
    try:
        for d in dtypes[1:]:
            found = promote_types(found, d)
    except DTypeError:
        return None
    return found
