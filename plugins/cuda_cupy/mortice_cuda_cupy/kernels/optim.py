"""Optimiser steps: each rule of `mortice.backends.optim` becomes a kernel that updates many parameters in one launch.

A rule is run once over symbols instead of buffers, which gives its operations as CUDA C++; numbers become arguments, so
that a learning rate may change without a new kernel; numbers that lie on the device are read and counted with there,
once for each parameter. Addresses of parameters, gradients and state go in a table, which is an
argument itself: a copy to the device would cost each step more than the launch.
"""

from __future__ import annotations

import functools
import itertools
import operator
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.optim import unless
from mortice_cuda_cupy.kernels.launch import FLOATS, MAX_BLOCKS, Program, all_in_order, dense, empty, float32, lie_alike
from mortice_cuda_cupy.kernels.tape import Tape

CHUNK = 1 << 12  # elements that a block takes at a time: small models have blocks for all multiprocessors too
WORDS = 464  # of a table: arguments may have 4 KiB in all, which is 77 parameters of Adam in a launch
_TABLE = np.dtype([("words", np.int64, (WORDS,))])  # CuPy passes one such thing by value


class Scalar:
    """A number that the device knows, with the arithmetic of rules: it is written down, in double precision."""

    def __init__(self, symbols: Symbols, text: str) -> None:
        self.symbols, self.text = symbols, text

    def _line(self, form: str, other: Any, *, swapped: bool = False) -> Scalar:
        known = self.symbols
        pair = [self.text, other.text if isinstance(other, Scalar) else known.number(other)]
        known.scalars.append(form.format(*(reversed(pair) if swapped else pair)))
        return Scalar(known, f"s[{len(known.scalars) - 1}]")

    def __add__(self, y: Any) -> Scalar:
        return self._line("{} + {}", y)

    def __sub__(self, y: Any) -> Scalar:
        return self._line("{} - {}", y)

    def __rsub__(self, y: Any) -> Scalar:
        return self._line("{} - {}", y, swapped=True)

    def __mul__(self, y: Any) -> Scalar:
        return self._line("{} * {}", y)

    def __truediv__(self, y: Any) -> Scalar:
        return self._line("{} / {}", y)

    def __rtruediv__(self, y: Any) -> Scalar:
        return self._line("{} / {}", y, swapped=True)

    def __pow__(self, y: Any) -> Scalar:
        return self._line("pow({}, {})", y)

    def __rpow__(self, y: Any) -> Scalar:
        return self._line("pow({}, {})", y, swapped=True)

    __radd__, __rmul__ = __add__, __mul__


class Symbols:
    """The kernel namespace of rules, over the names of values; it writes down what a rule computes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[Any] = []
        self.scalars: list[str] = []  # what s[i] is, of the numbers that the device knows

    def held(self, row: int, native: str) -> Scalar:
        """Return a number that lies at the address in a row of the table."""
        self.scalars.append(f"*reinterpret_cast<const {native} *>(held[{row} * count])")
        return Scalar(self, f"s[{len(self.scalars) - 1}]")

    def number(self, x: Any) -> str:
        """Return the name of the argument that a number becomes."""
        self.numbers.append(x)
        return f"n{len(self.numbers) - 1}"

    def __getattr__(self, name: str) -> Callable[..., str]:
        form = _FORMS[name]
        return lambda *operands: self._line(form.format(*[self._operand(x) for x in operands]))

    def _operand(self, x: Any) -> str:
        if isinstance(x, str):
            return x
        return f"W({x.text if isinstance(x, Scalar) else self.number(x)})"

    def _line(self, expression: str, kind: str = "W") -> str:
        self.lines.append(f"  const {kind} t{len(self.lines)} = {expression};")
        return f"t{len(self.lines) - 1}"

    def less(self, x: Any, y: Any) -> str:
        return self._line(f"{self._operand(x)} < {self._operand(y)}", "bool")

    def ones_like(self, x: str) -> str:
        return "W(1)"

    def copy(self, x: str) -> str:
        return x


_FORMS = {
    "add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "divide": "{} / {}", "negative": "-{}",
    "abs": "abs({})", "sqrt": "sqrt({})", "sign": "sign({})", "where": "{} ? {} : {}",
    "maximum": "maximum({}, {})", "minimum": "minimum({}, {})",
    "toward": "{0} + ({1} - {0}) * {2}", "toward_square": "{0} * {2} + {1} * {1} * (W(1) - {2})",
    "fade": "{} * {} + {}", "plus": "{} + {} * {}", "downhill": "{} - {} * {}",
}  # fmt: skip
_HELD = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
_PRELUDE = """
template <class W> __device__ __forceinline__ W maximum(W x, W y) { return x > y || x != x ? x : y; }
template <class W> __device__ __forceinline__ W minimum(W x, W y) { return x < y || x != x ? x : y; }
template <class W> __device__ __forceinline__ W sign(W x) { return x > W(0) ? W(1) : x < W(0) ? W(-1) : x; }
"""


_known: dict[Any, tuple[Program, Tape, list[int]]] = {}
_KEPT = 256


def _step(rule: Callable[..., Any], present: tuple[bool, ...], numbers: dict[str, Any]) -> tuple[Program, list[float]]:
    """Return the program of a rule, and the numbers to call it with.

    A rule is traced once: a learning rate or a count of steps that changes only has its numbers computed anew, unless the rule
    asks something of them, and is answered otherwise.
    """
    given = [x for x in numbers.values() if x.__class__ is float]
    kinds = [float if x.__class__ is float else x[0].dtype if x.__class__ is list else x for x in numbers.values()]
    key = rule, present, *numbers, *kinds, *map(type, kinds)  # 1 and True are equal, and not the same to a rule
    if found := _known.get(key):
        made, tape, places = found
        values = tape.again(given)
        if values is not None:
            return made, [float(values[at]) for at in places]
    tape = Tape(given)
    seen = iter(tape.numbers())
    text, values = trace(rule, present, {name: next(seen) if x.__class__ is float else x for name, x in numbers.items()})
    if len(_known) >= _KEPT:
        _known.clear()
    _known[key] = program(text), tape, [tape.place(x) for x in values]
    return program(text), [float(x) for x in values]


def trace(rule: Callable[..., Any], present: Sequence[bool], numbers: dict[str, Any]) -> tuple[str, list[float]]:
    """Return the text that makes a kernel of a rule, and the numbers to call it with; absent lists are None to it."""
    k = Symbols()
    held = [name for name, value in numbers.items() if type(value) is list]
    numbers = numbers | {name: k.held(i, _HELD[numbers[name][0].dtype]) for i, name in enumerate(held)}
    skip = numbers.pop("skip", None)
    places = iter(range(len(present)))
    values = [f"v[{next(places)}]" if here else None for here in present]
    results = rule(k, *values, **numbers)
    changed = [values[0], *values[2:]]
    writes = [(place, made) for place, made in zip(changed, results) if place and made and place != made]
    copies = [f"  const W r{i} = {made};" for i, (_, made) in enumerate(writes)]
    unless = f"{skip.text} != 0.0 ? {{}} : " if skip is not None else ""
    stores = [f"  {place} = {unless.format(place)}r{i};" for i, (place, _) in enumerate(writes)]
    mask = sum(1 << int(place[2:-1]) for place, _ in writes)
    names = [f"n{i}" for i in range(len(k.numbers))]
    declared = "".join(f", double {n}" for n in names)
    body = "\n".join([*k.lines, *copies, *stores])
    scalars = "\n".join([f"  s[{i}] = {line};" for i, line in enumerate(k.scalars)])
    text = (
        f"{_PRELUDE}constexpr int kLists = {sum(present)};\nconstexpr unsigned kWritten = {mask};\n"
        f"constexpr i64 kChunk = {CHUNK};\nconstexpr int kWords = {WORDS};\n"
        f"#define NUMBERS {declared}\n#define NUMBER_NAMES {''.join(f', {n}' for n in names)}\n"
        f"constexpr int kScalars = {len(k.scalars)};\n"
        f"__device__ __forceinline__ void scalars(double *s, const i64 *held, i64 count{declared}) {{\n{scalars}\n}}\n"
        f"template <class W> __device__ __forceinline__ void rule(W (&v)[kLists], const double *s{declared}) {{\n{body}\n}}\n"
    )
    return text, k.numbers


@functools.cache
def program(text: str) -> Program:
    """Return the program of a traced rule."""
    return Program("optim.cu", "optimiser_step<{T}>", prelude=text)


# What takes lists, but has no rule of its own.
LISTS = Program("optim.cu", "unscale<{T}>", "chunk_squares<{T}>", "chunk_roots<{T}>", prelude=trace(lambda k, x: (x,), (True,), {})[0])


def _scaled(k: Any, x: Any, factor: float) -> Any:
    return x if factor == 1 else k.multiply(x, factor)


# In place, on lists: the operands, then numbers. Half precision is computed in float32, and rounded once.
def _add(k: Any, x: Any, y: Any, alpha: float = 1) -> tuple[Any]:
    return (k.add(x, _scaled(k, y, alpha)),)


def _sub(k: Any, x: Any, y: Any, alpha: float = 1) -> tuple[Any]:
    return (k.subtract(x, _scaled(k, y, alpha)),)


def _mul(k: Any, x: Any, y: Any) -> tuple[Any]:
    return (k.multiply(x, y),)


def _div(k: Any, x: Any, y: Any) -> tuple[Any]:
    return (k.divide(x, y),)


def _lerp(k: Any, x: Any, y: Any, weight: float) -> tuple[Any]:
    span = k.subtract(y, x)
    if abs(weight) < 0.5:
        return (k.add(x, k.multiply(span, weight)),)
    return (k.subtract(y, k.multiply(span, 1.0 - weight)),)


def _addcmul(k: Any, x: Any, a: Any, b: Any, value: float = 1) -> tuple[Any]:
    return (k.add(x, _scaled(k, k.multiply(a, b), value)),)


def _addcdiv(k: Any, x: Any, a: Any, b: Any, value: float = 1) -> tuple[Any]:
    return (k.add(x, _scaled(k, k.divide(a, b), value)),)


def _copied(k: Any, x: Any, y: Any) -> tuple[Any]:
    return (y,)


def _zero(k: Any, x: Any) -> tuple[Any]:
    return (k.multiply(k.ones_like(x), 0),)


def _sqrt(k: Any, x: Any) -> tuple[Any]:
    return (k.sqrt(x),)


def _neg(k: Any, x: Any) -> tuple[Any]:
    return (k.negative(x),)


def _abs(k: Any, x: Any) -> tuple[Any]:
    return (k.abs(x),)


EACH = {
    "add_": _add, "sub_": _sub, "mul_": _mul, "div_": _div, "lerp_": _lerp, "addcmul_": _addcmul, "addcdiv_": _addcdiv,
    "copy_": _copied, "zero_": _zero, "sqrt_": _sqrt, "neg_": _neg, "abs_": _abs,
}  # fmt: skip
# How many lists each takes: what is a float is the same number for all.
AT_ONCE = {name: [*rule.__annotations__.values()].count("Any") - 1 for name, rule in EACH.items()}


_shape, _dtype = operator.attrgetter("shape"), operator.attrgetter("dtype")


def _alike(held: Sequence[Any]) -> bool:
    """Tell whether numbers that lie on the device have one dtype, and one that kernels read."""
    natives = {*map(_dtype, held)}
    return len(natives) == 1 and natives <= _HELD.keys()


class OptimKernels(KernelMixin):
    """Parameters and state are written in place; half precision is computed in float32."""

    def run_step(
        self, rule: Any, lists: Sequence[Sequence[Any]], numbers: dict[str, Any], elementwise: bool
    ) -> tuple[Sequence[Any], ...]:
        rows = [buffers for buffers in lists if buffers]
        shapes = [*map(_shape, rows[0])]
        whole = self.dtype_of(rows[0][0])
        if elementwise and whole in FLOATS and all([_alike(n) for n in numbers.values() if type(n) is list]):
            # Nearly always; and this is on the way of every step.
            natives = {rows[0][0].dtype}
            for row in rows:
                if [*map(_shape, row)] != shapes or {*map(_dtype, row)} != natives or not all_in_order(row):
                    break
            else:
                _launch(self, whole, rule, lists, numbers)
                return (lists[0], *lists[2:])
        groups: dict[Any, list[int]] = {}
        held = {name: value for name, value in numbers.items() if type(value) is list}
        readable = all([x.dtype in _HELD for value in held.values() for x in value])
        for i, arrays in enumerate(zip(*[buffers for buffers in lists if buffers])):
            p = arrays[0]
            shape, native, dtype = p.shape, p.dtype, self.dtype_of(p)
            fits = elementwise and readable and dtype.to_real() in FLOATS
            for a in arrays[1:]:
                fits = fits and a.dtype == native and a.shape == shape
            if not fits or not lie_alike(arrays):
                own = {**numbers, **{name: value[i : i + 1] for name, value in held.items()}}
                self._step_apart(rule, lists, own, elementwise, i)
            elif p.size:
                groups.setdefault(dtype, []).append(i)
        for dtype, chosen in groups.items():
            if len(chosen) == len(lists[0]):
                _launch(self, dtype, rule, lists, numbers)
                continue
            rows = [[buffers[i] for i in chosen] if buffers else [] for buffers in lists]
            own = {**numbers, **{name: [value[i] for i in chosen] for name, value in held.items()}}
            _launch(self, dtype, rule, rows, own)
        return (lists[0], *lists[2:])

    def count_step(self, counts: Sequence[Any]) -> tuple[Sequence[Any]]:
        return self.run_step(_count, [counts], {}, True)[:1]  # type: ignore[no-any-return]

    def count_unless_step(self, counts: Sequence[Any], *, skip: Sequence[Any]) -> tuple[Sequence[Any]]:
        return self.run_step(_count, [counts], {"skip": skip}, True)[:1]  # type: ignore[no-any-return]

    def hold_step(self, numbers: Sequence[Any], *, value: float) -> tuple[Sequence[Any]]:
        return self.run_step(_hold, [numbers], {"value": value}, True)[:1]  # type: ignore[no-any-return]

    def scale_step(self, xs: Sequence[Any], *, factor: Sequence[Any]) -> tuple[Sequence[Any]]:
        return self.run_step(_scale, [xs], {"factor": factor}, True)[:1]  # type: ignore[no-any-return]

    def unscale_step(self, xs: Sequence[Any], *, factor: Any) -> tuple[Sequence[Any], Any]:
        groups, held = _groups(self, xs), None if type(factor) is float else factor
        if groups is None or (held is not None and self.dtype_of(held) is not float32):
            return NamespaceBackend.unscale_step(self, xs, factor=factor)
        found = self.new_full(xs[0], (), 0, float32)
        for dtype, members in groups.items():
            kernel = LISTS.get(dtype, "unscale<{T}>")
            for count, table, chunks in _tables(self, [members]):
                if chunks:
                    kernel((min(chunks, MAX_BLOCKS),), (512,), (table, count, found, held, factor if held is None else 1.0))
        return xs, found

    def each_step(self, name: str, lists: Sequence[Sequence[Any]], numbers: Sequence[float]) -> Sequence[Any]:
        rule = EACH[name]
        names = rule.__code__.co_varnames[1 + len(lists) : rule.__code__.co_argcount]
        if len(numbers) > len(names):
            raise TypeError(f"{name}: expected at most {len(names)} numbers; got {len(numbers)}.")
        return self.run_step(rule, lists, dict(zip(names, numbers)), True)[0]

    def vector_norms(self, xs: Sequence[Any], *, p: float) -> Any:
        groups = _groups(self, xs) if p == 2 else None
        if groups is None or len(groups) > 1:
            return NamespaceBackend.vector_norms(self, xs, p=p)
        [(dtype, members)] = groups.items()
        norms, done = empty((len(xs),), xs[0].dtype), 0
        for count, table, chunks in _tables(self, [members]):
            sums = empty((chunks,), xs[0].dtype if dtype.itemsize > 2 else np.dtype(np.float32))
            if chunks:
                LISTS.get(dtype, "chunk_squares<{T}>")((min(chunks, MAX_BLOCKS),), (512,), (table, count, sums))
            LISTS.get(dtype, "chunk_roots<{T}>")((count,), (256,), (table, count, sums, norms[done : done + count]))
            done += count
        return norms

    def _step_apart(
        self, rule: Any, lists: Sequence[Sequence[Any]], numbers: dict[str, Any], elementwise: bool, i: int
    ) -> None:
        """Take the core's way for parameter i, and write what it gives in place."""
        one = [[buffers[i]] if buffers else [] for buffers in lists]
        made = (
            NamespaceBackend.run_step(self, rule, one, numbers, elementwise)
            if one[1:]
            else _alone(self, rule, one, numbers)
        )
        for buffers, results in zip([lists[0], *lists[2:]], made):
            for result in results:
                if result is not buffers[i]:
                    buffers[i][...] = result


def _count(k: Any, x: Any) -> tuple[Any]:
    return (k.add(x, 1),)


def _hold(k: Any, x: Any, *, value: float) -> tuple[Any]:
    return (k.add(k.multiply(x, 0), value),)


def _scale(k: Any, x: Any, *, factor: Any) -> tuple[Any]:
    return (k.multiply(x, factor[0] if type(factor) is list else factor),)


def _alone(k: Any, rule: Any, lists: Sequence[Sequence[Any]], numbers: dict[str, Any]) -> tuple[list[Any]]:
    numbers = dict(numbers)
    skip = numbers.pop("skip", None)
    old = lists[0][0]
    made = rule(k, *[buffers[0] for buffers in lists], **numbers)[0]
    return ([made if skip is None else unless(k, skip[0], made, old)],)


def _launch(k: Any, dtype: Any, rule: Any, lists: Sequence[Sequence[Any]], numbers: dict[str, Any]) -> None:
    present = tuple([bool(buffers) for buffers in lists])
    lying = [value for value in numbers.values() if type(value) is list]
    made, values = _step(rule, present, numbers)
    kernel = made.get(dtype.to_real(), "optimiser_step<{T}>")
    rows = [*[buffers for buffers in lists if buffers], *lying]
    for count, table, chunks in _tables(k, rows, 2 if dtype.is_complex else 1):
        if chunks:
            kernel((min(chunks, MAX_BLOCKS),), (512,), (table, count, *values))


def _groups(k: Any, xs: Sequence[Any]) -> dict[Any, list[Any]] | None:
    """Return arrays by dtype, None where one is not real floats without gaps."""
    groups: dict[Any, list[Any]] = {}
    for x in xs:
        groups.setdefault(k.dtype_of(x), []).append(x)
    return groups if groups.keys() <= FLOATS.keys() and all(map(dense, xs)) else None


def _tables(k: Any, rows: Sequence[Sequence[Any]], real: int = 1) -> Iterator[tuple[int, Any, int]]:
    """Yield arrays in as many as a table has room for: how many they are, their table, and its chunks."""
    most = (WORDS - 1) // (len(rows) + 2)
    for begin in range(0, len(rows[0]), most):
        some = [row[begin : begin + most] for row in rows]
        sizes = [p.size * real for p in some[0]]
        starts = [0, *itertools.accumulate([-(-n // CHUNK) for n in sizes])]
        words = array("q", itertools.chain(starts, sizes, *[map(k.address, row) for row in some]))
        words.frombytes(bytes(8 * (WORDS - len(words))))
        yield len(sizes), _by_value()(words), starts[-1]


@functools.cache
def _by_value() -> Callable[[Any], Any]:
    """Return what makes an argument of words that are there until the launch: a thing of NumPy's is described anew each time."""
    try:
        from cupy.cuda.function import CPointer
    except ImportError:  # another CuPy than is known, or a stand-in
        return lambda words: np.frombuffer(words, _TABLE)
    return lambda words: CPointer(words.buffer_info()[0])
