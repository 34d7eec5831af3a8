"""L1: each required kernel on its own, straight on the backend's buffers, as the boundary describes it."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mortice.backends import DTYPES, DType
from mortice.backends.backend import REQUIRED_NAMES
from mortice.dtype import bool_, iinfo
from mortice.shape import Size
from mortice.tensor import make
from mortice_conformance import record
from mortice_conformance.arrays import limits
from mortice_conformance.catalog import representative
from mortice_conformance.checks.behaviour import check_deterministic
from mortice_conformance.checks.values import check_layouts, check_shapes, check_values
from mortice_conformance.domain import Domain, bools, indices_into, nonzero, positive, real, shift, tied
from mortice_conformance.new import signature
from mortice_conformance.record import BINARY, BINARY_EDGES, EDGES, REDUCED, UNARY, UNARY_EDGES, Case, Sample
from mortice_conformance.subject import Failure, Skip, Subject
from mortice_conformance.suites import suite

KERNELS: dict[str, Sample] = {}


def kernel(
    name: str, reference: Any, *domains: Domain, variant: str = "", variadic: bool = False, **options: Any
) -> None:
    """Add the record of a required kernel: as `sample`, called on buffers."""

    def call(*tensors: Any, **attrs: Any) -> Any:
        return _pure(tensors[0]._device, name, [t._buffer for t in tensors], attrs, variadic)

    record.sample(name, reference, *domains, call=call, variant=variant, into=KERNELS, **options)
    # The kernel, not the op that happens to have its name.
    for made in KERNELS.values():
        made.op = made.op if made.op.startswith("kernel ") else f"kernel {made.op}"


def _pure(device: Any, name: str, operands: list[Any], attrs: dict[str, Any], variadic: bool = False) -> Any:
    """Call a kernel on buffers and numbers, make a tensor of the result, and see that no operand was written."""
    k = device.backend
    buffers = [(i, x) for i, x in enumerate(operands) if not isinstance(x, (bool, int, float, complex))]
    before = [k.to_host(x).tobytes() for _, x in buffers]
    # Several come as a list or as a tuple.
    given: list[Any] = [tuple(operands) if len(operands) == 2 else operands] if variadic else operands
    out = getattr(k, name)(*given, **attrs)
    if type(out) in (type(None), bool, int, float, complex, tuple, list):
        raise Failure(f"kernel {name} {' '.join(_shape(k, x) for x in operands)}: expected a buffer; got {type(out).__name__} {out!r}.")
    for (i, x), old in zip(buffers, before):
        if k.to_host(x).tobytes() != old:
            raise Failure(f"kernel {name} {k.dtype_of(x).name} {list(k.shape_of(x))}: it wrote over its operand {i}. Others still "
                          "use that memory: a kernel writes its result into memory of its own.")  # fmt: skip
    return make(out, device, k.dtype_of(out), Size(k.shape_of(out)))


def _shape(k: Any, x: Any) -> str:
    return repr(x) if isinstance(x, (bool, int, float, complex)) else f"{k.dtype_of(x).name} {list(k.shape_of(x))}"


# What a failure of the written operands means most likely.
_LARGE = ("int64", "uint64")
_EXACT = "Integers beyond 2**53 are no float64: compute with integers."
_HALVES = ("float16", "bfloat16")
_SHORT = "A sum in 16 bits stops where 1 is less than half an ulp of it: add up in float32 and round the result."
_QUADRANTS = "The principal value is asked for, in all four quadrants."
_BOTH_PARTS = "Both parts of a complex number count."
_WRAP = "Integers wrap around: they are not cut at the ends of their range."
_IN_PLACE = "Each element is where it is to be: the result is a copy."
_NAN, _INF = float("nan"), float("inf")


def _exact(*operands: Any, **attrs: Any) -> list[Any]:
    """Return a call on integers that float64 would round."""
    return [(operands, attrs, _LARGE, _EXACT)]


def _wraps(*operands: Any, kinds: str = "ui", **attrs: Any) -> list[Any]:
    """Return a call on the ends of each integer dtype of some kinds: "max" and "min" stand for them in nested lists."""

    def end(x: Any, at: Any) -> Any:
        return [end(v, at) for v in x] if isinstance(x, list) else {"max": at.max, "min": at.min}.get(x, x)

    return [(tuple(end(o, iinfo(d)) for o in operands), attrs, (d.name,), _WRAP) for d in DTYPES if d.kind in kinds]


def _unary(
    name: str, reference: Any, *domains: Domain, dtypes: str = "fc", values: Any = EDGES, **options: Any
) -> None:
    kernel(name, reference, *domains, dtypes=dtypes, shapes=UNARY, edges=UNARY_EDGES, values=values, **options)


def _binary(
    name: str, reference: Any, *domains: Domain, dtypes: str = "uifc", values: Any = EDGES, **options: Any
) -> None:
    edges = [*BINARY_EDGES, ((1, 3), (1, 1)), ((1, 1), ())]
    kernel(name, reference, *domains, dtypes=dtypes, shapes=BINARY, edges=edges, values=values, **options)


# ---- elementwise ----
_unary("negative", np.negative, dtypes="uifc", kind="exact", zeros=True, given=_wraps(["min", "max"]))
_unary("abs", np.abs, dtypes="buifc", zeros=True, result="real_part",
       given=[(([3e30 + 4e30j, 3e-30 + 4e-30j],), {}, "c", "The squares overflow or vanish where the result does not: use hypot."),
              *_exact([-(2**53) - 1, 2**53 + 1]), *_wraps(["min"])])  # fmt: skip
_unary("sign", lambda x: x if x.dtype.kind == "b" else np.sign(x), dtypes="buif", kind="exact")
_unary("exp", np.exp)
_FOUR = [(([-3 + 4j, -3 - 4j, 3 - 4j, 3 + 4j],), {}, "c", _QUADRANTS)]
_unary("log", np.log, positive, given=_FOUR)
_unary("sqrt", np.sqrt, positive, kind="arithmetic", zeros=True, given=_FOUR)
_unary("sin", np.sin)
_unary("cos", np.cos)
_unary("tanh", np.tanh)
_unary("floor", np.floor, dtypes="f", kind="exact", zeros=True)
_unary("isnan", np.isnan, dtypes="f", kind="exact", result="bool")
_unary("logical_not", np.logical_not, dtypes="buifc", kind="exact", result="bool", given=[(([0j, 1j, 1 + 0j],), {}, "c", _BOTH_PARTS)])
_unary("conj", np.conj, dtypes="c", kind="exact", values=())
_unary("real", np.real, dtypes="c", kind="exact", values=(), result="real_part")
_unary("imag", np.imag, dtypes="c", kind="exact", values=(), result="real_part")
# ---- arithmetic ----
_binary("add", np.add, dtypes="buifc", kind="arithmetic", zeros=True, given=_wraps(["max", "min"], ["max", "min"]))
_binary("subtract", np.subtract, kind="arithmetic", zeros=True, given=_wraps(["min", 0], ["max", "min"]))
_binary("multiply", np.multiply, dtypes="buifc", kind="arithmetic", zeros=True,
        given=_wraps(["max", "min", "max"], ["max", "max", 3]))  # fmt: skip
_binary("divide", np.divide, nonzero, dtypes="fc", kind="arithmetic", zeros=True)
_BY_ZERO = "Floats are divided by zero without an error: inf, -inf and nan."
_ROUNDED = "The quotient was rounded up to a whole number before its floor was taken: (x - remainder(x, y)) / y is exact."
_binary("floor_divide", np.floor_divide, nonzero, dtypes="uif", values=(), kind="exact",
        given=[(([1.0, -1.0, 7.0], [0.1, -0.1, 0.7]), {}, "f", _ROUNDED), *_exact([2**53 + 1, 2**62 + 1], [1, 3]),
               (([1.0, -1.0, 0.0], [0.0, 0.0, 0.0]), {}, "f", _BY_ZERO),
               (([2**63 + 5], [2]), {}, ("uint64",), "Beyond 2**63 an unsigned number is not negative."),
               (([7, -7, -7, 6], [-2, 2, -2, -3]), {}, "i", "Rounded down, not towards zero: -7 // 2 is -4."),
               *_wraps(["min"], [-1], kinds="i")])  # fmt: skip
_binary("remainder", np.remainder, nonzero, dtypes="uif", values=(),
        given=[(([5.0, -5.0, 5.0, -5.0], [_INF, _INF, -_INF, -_INF]), {}, "f",
                "Divided by infinity a finite number stays, or becomes that infinity where the signs differ."),
               (([1.0, 0.0], [0.0, 0.0]), {}, "f", "Divided by zero floats leave nan, without an error."),
               (([7, -7, -7, 6], [-2, 2, -2, -3]), {}, "i", "What is left has the sign of the divisor."),
               *_exact([2**53 + 1, 2**62 + 1], [2, 3]), *_wraps(["min"], [-1], kinds="i")])  # fmt: skip
_binary("pow", np.power, positive, real, dtypes="f", values=(0.5, 1.0, 2.0, 3.0),
        given=[(([-2.0, -1.5, -2.0, -8.0], [3.0, 2.0, -1.0, 0.5]), {}, "f",
                "A negative base has whole powers: exp(y * log(x)) is not enough. Others are nan."),
               (([0.0, 2.0, 0.5, 1.0, _NAN, 0.0, _INF, _INF], [0.0, _INF, _INF, _NAN, 0.0, -1.0, 0.0, -1.0]), {}, "f",
                "As IEEE 754 has it: what is raised to 0 is 1, and so is each power of 1, of nan and with nan too.")])  # fmt: skip
_binary("pow", np.power, positive, dtypes="ui", values=(), variant="integers",
        given=[*_exact([3, 7], [37, 20]), *_wraps(["max", "min", 3, 0], [2, 3, 60, 0])])  # fmt: skip
_binary("maximum", np.maximum, dtypes="buif", kind="exact")
_binary("minimum", np.minimum, dtypes="buif", kind="exact")
_binary("equal", np.equal, tied, dtypes="buifc", kind="exact", result="bool",
        given=[(([1 + 1j, 1 + 2j, 2 + 1j], [1 + 1j, 1 + 1j, 1 + 1j]), {}, "c", _BOTH_PARTS), *_exact([2**53], [2**53 + 1])])  # fmt: skip
_binary("less", np.less, tied, dtypes="buif", kind="exact", result="bool", given=_exact([2**53], [2**53 + 1]))
kernel("where", np.where, bools, real, real, dtypes="buifc", kind="exact",
       shapes=[((2, 3),) * 3, ((3,), (2, 1), (2, 3))],
       edges=[((), (), ()), ((0,), (0,), (1,)), ((), (3,), (2, 1)), ((1, 1), (1,), ())],
       given=[(([True, False, True, False], [1.0, _NAN, 2.0, _INF], [_NAN, 2.0, -_INF, 3.0]), {}, "f",
               "What is not taken must leave no trace: cond * x + (1 - cond) * y lets nan and inf through.")])  # fmt: skip
# ---- bits ----
_binary("bitwise_and", np.bitwise_and, dtypes="bui", kind="exact")
_binary("bitwise_or", np.bitwise_or, dtypes="bui", kind="exact")
_binary("bitwise_xor", np.bitwise_xor, dtypes="bui", kind="exact")
_binary("bitwise_left_shift", np.left_shift, real, shift, dtypes="ui", values=(), kind="exact",
        given=[*_exact([1, 3], [40, 61]), *_wraps(["max", "min", 1], [1, 1, 7])])  # fmt: skip
_binary("bitwise_right_shift", np.right_shift, real, shift, dtypes="ui", values=(), kind="exact",
        given=_exact([2**62 + 2**40, 2**53 + 1], [40, 0]))  # fmt: skip

# ---- reduction ----
_AXES = [{}, {"axis": 0}, {"axis": 0, "keepdims": True}, {"axis": (0,)}, {"axis": None, "keepdims": True}]
_LOWEST = "It begins with an infinity, not with the largest finite number."
_TWO = [((2, 3, 4), {"axis": (0, 2)}), ((2, 3, 4), {"axis": -1}), ((2, 3, 4), {"axis": (1, 2), "keepdims": True}),
        ((2, 3, 2, 2), {"axis": (0, 1, 3)}), ((2, 1), {"axis": 1}),
        ((2, 3, 4), {"axis": (-2, -1)}), ((2, 3, 4), {"axis": (2, 0)}), ((1, 3, 1), {"axis": 1})]


def _reductions(shapes: list[Any], axes: list[Any]) -> list[Any]:
    return [(s, a) for s in shapes for a in axes] + _TWO


def _keeping(fn: Any) -> Any:
    return lambda x, **attrs: fn(x, dtype=x.dtype, **attrs)


_EMPTY = [((0,), {}), ((2, 0), {"axis": 1}), ((2, 0), {"axis": 0}), ((), {})]
_FULL = [((), {}), ((1,), {"axis": 0}), ((0, 2), {"axis": 1})]
kernel("sum", _keeping(np.sum), dtypes="uifc", kind="reduction", cases=_reductions(REDUCED, _AXES), edges=_EMPTY,
       given=[(([1.0] * 4100,), {}, _HALVES, _SHORT), *_exact([2**53, 1]), *_wraps(["max", "max"])])  # fmt: skip
kernel("prod", _keeping(np.prod), dtypes="uifc", kind="reduction", cases=_reductions([(4, 2), (7,)], _AXES), edges=_EMPTY,
       given=[*_exact([2**27 + 1, 2**27 + 1]), *_wraps(["max", 3])])  # fmt: skip
kernel("max", np.max, dtypes="uif", kind="exact", cases=_reductions(REDUCED, _AXES), edges=_FULL, values=EDGES,
       given=[*_exact([2**53, 2**53 + 1]), (([-_INF, -_INF],), {}, "f", _LOWEST)])  # fmt: skip
kernel("min", np.min, dtypes="uif", kind="exact", cases=_reductions(REDUCED, _AXES), edges=_FULL, values=EDGES,
       given=[*_exact([2**53 + 2, 2**53 + 1]), (([_INF, _INF],), {}, "f", _LOWEST)])  # fmt: skip
_ONE = [{}, {"axis": 0}, {"axis": 0, "keepdims": True}, {"axis": -1}]
kernel("argmax", np.argmax, tied, dtypes="uif", kind="exact", result="int64",
       cases=[(s, a) for s in REDUCED for a in _ONE], edges=_FULL, values=EDGES, given=_exact([2**53, 2**53 + 1]))  # fmt: skip
kernel("cumulative_sum", lambda x, axis: np.cumsum(x, axis, dtype=x.dtype), dtypes="uifc", kind="reduction",
       cases=[((4, 5), {"axis": 0}), ((4, 5), {"axis": 1}), ((37,), {"axis": 0}), ((2, 3, 4), {"axis": -2}),
              ((2, 3, 4), {"axis": -1})],
       edges=[((0,), {"axis": 0}), ((2, 0), {"axis": 0}), ((1,), {"axis": 0})],
       given=[*_exact([2**53, 1], axis=0), *_wraps(["max", 1, 1], axis=0)])  # fmt: skip

# ---- linear algebra and indexing ----
kernel("matmul", np.matmul, dtypes="uifc", kind="matmul",
       shapes=[((3, 4), (4, 5)), ((7,), (7,)), ((3, 4), (4,)), ((4,), (4, 2)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
               ((33, 17), (17, 9)), ((2, 3, 4), (1, 4, 2)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3))],
       edges=[((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,)), ((0, 2, 3), (3, 2)), ((1, 1), (1, 1))],
       given=[(([[1.0] * 4100], [[1.0]] * 4100), {}, _HALVES, _SHORT), *_exact([[2**53, 1]], [[1], [1]]),
              (([[2**24, 1]], [[1], [1]]), {}, ("int32", "uint32"), "Integers beyond 2**24 are no float32: compute with integers."),
              (([[_NAN, 1.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, _INF]]), {}, "f",
               "0 times nan or infinity is nan: nothing is left out."),
              *_wraps([["max", "max"]], [["max"], [1]])])  # fmt: skip
kernel("take", np.take, real, indices_into(), dtypes="buifc", kind="exact",
       cases=[(((5, 3), (4,)), {"axis": 0}), (((5, 3), (7,)), {"axis": 1}), (((6,), (2,)), {"axis": 0}),
              (((2, 3, 4), (3,)), {"axis": -1})],
       edges=[(((4, 2), (0,)), {"axis": 0}), (((3, 0), (2,)), {"axis": 0}), (((4, 2), (0,)), {"axis": 1}),
              (((5, 3), (1,)), {"axis": 1})],
       given=[*_exact([2**53 + 1, 2**62 + 1], [1, 0], axis=0),
              (([[1, 0], [1, 1]], [0, 1]), {"axis": 0}, "buifc", _IN_PLACE)])  # fmt: skip
kernel("take_along_axis", np.take_along_axis, real, indices_into(), dtypes="buifc", kind="exact",
       cases=[(((5, 3), (4, 3)), {"axis": 0}), (((5, 3), (5, 1)), {"axis": 1}), (((6,), (9,)), {"axis": 0}),
              (((2, 3, 4), (2, 3, 4)), {"axis": -1})],
       edges=[(((4, 2), (0, 2)), {"axis": 0})],
       given=[(([[1, 0], [1, 1]], [[0, 0], [1, 1]]), {"axis": 0}, "buifc", _IN_PLACE)])  # fmt: skip


def _scatter_add(x: Any, indices: Any, values: Any, axis: int) -> Any:
    out = np.array(x)
    for at in np.ndindex(*indices.shape):
        to = list(at)
        to[axis] = indices[at]
        out[tuple(to)] += values[at]
    return out


kernel("scatter_add", _scatter_add, real, indices_into(), real, dtypes="buifc", kind="reduction",
       cases=[(((5, 3), (4, 3), (4, 3)), {"axis": 0}), (((5, 3), (2, 7), (2, 7)), {"axis": 1}),
              (((6,), (40,), (40,)), {"axis": 0}), (((2, 3, 4), (2, 3, 6), (2, 3, 6)), {"axis": -1})],
       edges=[(((4,), (0,), (0,)), {"axis": 0})],
       given=[*_exact([2**53, 0], [0, 1], [1, 2**53 + 1], axis=0), *_wraps(["max", 0], [0, 0], ["max", 1], axis=0),
              (([1, 0, 1], [2, 0], [0, 0]), {"axis": 0}, "buifc", "Added to by 0, all stays.")])  # fmt: skip


def _argsort(x: Any, axis: int, descending: bool = False) -> Any:
    if not descending:
        return np.argsort(x, axis, kind="stable")
    order = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - order


_DOWN = "Downwards the largest come first, nan before them: the order of -x differs at nan, 0 of unsigned and the least of signed."
_UP_DOWN = [{"axis": -1}, {"axis": 0}, {"axis": 0, "descending": True}]
kernel("argsort", _argsort, tied, dtypes="buif", kind="exact", result="int64",
       cases=[(s, a) for s in REDUCED for a in _UP_DOWN], values=EDGES,
       edges=[((0,), {"axis": 0}), ((2, 0), {"axis": 1}), ((1,), {"axis": 0}), *[((1100,), a) for a in _UP_DOWN]],
       given=[*_exact([2**53 + 1, 2**53], axis=0), (([1.0, _NAN, _INF, -_INF, _NAN],), _UP_DOWN[2], "f", _DOWN),
              (([0, 1, -128, 127],), _UP_DOWN[2], ("int8",), _DOWN), (([1, 0, 2],), _UP_DOWN[2], "u", _DOWN)])  # fmt: skip

# ---- movement ----
kernel("copy", np.array, dtypes="buifc", kind="exact", shapes=UNARY, edges=UNARY_EDGES)
kernel("reshape", lambda x, shape: x.reshape(shape), dtypes="buifc", kind="exact",
       cases=[((2, 3), {"shape": (6,)}), ((2, 3), {"shape": (3, 1, 2)}), ((4, 3, 2), {"shape": (2, 12)})],
       edges=[((), {"shape": (1, 1)}), ((1,), {"shape": ()}), ((0, 3), {"shape": (3, 0)})])  # fmt: skip
kernel("permute_dims", lambda x, axes: x.transpose(axes), dtypes="buifc", kind="exact",
       cases=[((2, 3), {"axes": (1, 0)}), ((2, 3, 4), {"axes": (2, 0, 1)}), ((2, 3, 4), {"axes": (0, 2, 1)})],
       edges=[((), {"axes": ()}), ((0, 3), {"axes": (1, 0)})])  # fmt: skip
kernel("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), dtypes="buifc", kind="exact",
       cases=[((3,), {"shape": (2, 3)}), ((2, 1), {"shape": (2, 4)}), ((1, 3), {"shape": (2, 2, 3)})],
       edges=[((), {"shape": (2, 2)}), ((1,), {"shape": (0,)}), ((2,), {"shape": (2,)}),
              ((3,), {"shape": (1, 3)}), ((), {"shape": (1, 1)})])  # fmt: skip
kernel("concat", lambda *arrays, axis: np.concatenate(arrays, axis), dtypes="buifc", kind="exact", variadic=True,
       cases=[(((2, 3), (4, 3)), {"axis": 0}), (((2, 3), (2, 1), (2, 2)), {"axis": 1}), (((3,), (0,)), {"axis": 0}),
              (((2, 3, 1), (2, 3, 2)), {"axis": -1}), (((2, 3),), {"axis": 0}), (((1, 3), (1, 2)), {"axis": 1}),
              (((2,),) * 20, {"axis": 0})],
       edges=[(((0,), (0,)), {"axis": 0}), (((2, 3), (0, 3)), {"axis": 0})])  # fmt: skip

_KEYS: list[Any] = [
    (1,), (-1,), (slice(None, None, -1),), (slice(1, None, 2), 0), (Ellipsis, 2), (None, Ellipsis, None),
    (slice(None), None, slice(2, 0, -1)), (slice(0, 0),), (), (Ellipsis,), (1, 2), (slice(-3, None),),
]  # fmt: skip
kernel("getitem", lambda x, key: x[key], dtypes="buifc", kind="exact", cases=[((4, 5), {"key": key}) for key in _KEYS],
       edges=[((), {"key": ()}), ((), {"key": (None,)}), ((0, 2), {"key": (slice(None), 1)})])  # fmt: skip


def _setitem(x: Any, value: Any, key: Any) -> Any:
    out = np.array(x)
    out[key] = value
    return out


def _call_setitem(*tensors: Any, key: Any) -> Any:
    x, value = tensors
    k = x._device.backend
    out = k.setitem(k.copy(x._buffer) if k.mutable else x._buffer, key, value._buffer)  # which returns another where it is not
    return make(out, x._device, k.dtype_of(out), Size(k.shape_of(out)))


record.sample("setitem", _setitem, call=_call_setitem, into=KERNELS, dtypes="buifc", kind="exact",
              cases=[(((4, 5), (5,)), {"key": (1,)}), (((4, 5), ()), {"key": (slice(None, None, 2),)}),
                     (((4, 5), (4, 2)), {"key": (slice(None), slice(4, 0, -2))}), (((4, 5), (1, 5)), {"key": (Ellipsis,)}),
                     (((4,), ()), {"key": (-1,)})],
              edges=[(((), ()), {"key": (Ellipsis,)}), (((3, 0), (0,)), {"key": (1,)})])  # fmt: skip
KERNELS["setitem"].op = "kernel setitem"

# With a Python number as either operand, of the operand's own kind.
_NUMBERS = (
    "add subtract multiply divide floor_divide remainder pow maximum minimum equal less where "
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
).split()


def _named(sample: Sample) -> str:
    return sample.id


def _kernel(sample: Sample) -> list[str]:
    return [sample.id.partition(":")[0]]


@suite("kernel", 1)
def check_signatures(subject: Subject) -> None:
    """Take the arguments that the kernel is called with: those before * by position, the others by name."""
    wrong = []
    for name in (*REQUIRED_NAMES, *subject.backend.overridden):
        kernel = getattr(subject.backend, name)
        if not callable(kernel):  # what only says how kernels behave, such as `mixed_norms`
            continue
        try:
            own = inspect.signature(kernel)
        except ValueError:  # of a function in C that does not tell
            continue
        due = signature(name)
        by_name = [p.name for p in due.parameters.values() if p.kind is p.KEYWORD_ONLY]
        try:
            own.bind(*[None] * (len(due.parameters) - len(by_name)), **dict.fromkeys(by_name))
        except TypeError as error:
            wrong.append(f"{name}: expected {name}{due}; got {name}{own}: {error}.")
    if wrong:
        raise Failure(" ".join(wrong))


@suite("kernel", 1, each=list(KERNELS.values()), to=_named, due=_kernel)
def check_values_and_shapes(subject: Subject, sample: Sample) -> None:
    """Compare with the reference in every dtype it must take, on usual, 0-d, empty and broadcast operands."""
    dtypes = sample.dtypes(subject.available)
    if not dtypes:
        raise Skip("the device has none of its dtypes")
    for dtype in dtypes:
        check_values(subject, sample, dtype)
    check_shapes(subject, sample, dtypes[0])
    usual = representative(sample, subject.available)
    if usual is not None:
        check_shapes(subject, sample, usual)


@suite("kernel", 1, each=list(KERNELS.values()), to=_named, due=_kernel)
def check_operands(subject: Subject, sample: Sample) -> None:
    """Take operands of any memory order, leave them alone, give results memory of their own, and repeat them bit by bit."""
    dtype = representative(sample, subject.available)
    if dtype is None:
        raise Skip("the device has none of its dtypes")
    check_layouts(subject, sample, dtype)
    check_deterministic(subject, sample, dtype)
    _check_repeated(subject, sample, dtype)
    for case in (*sample.cases, *sample.edges):
        _check_memory(subject, sample, case, dtype, sample.draw(case, dtype))
    case = sample.cases[0]
    if not case.attrs:  # of ones most functions give ones: a result that could be an operand as it is
        ones = Case(case.shapes, {}, f"{case} of ones")
        _check_memory(subject, sample, ones, dtype, [np.ones_like(a) for a in sample.draw(case, dtype)])
    for given, arrays, _ in sample.given_cases(dtype):
        _check_memory(subject, sample, given, dtype, arrays)
    for other in sample.dtypes(subject.available):  # nothing is to compute in the abs of unsigned, say
        if other is not dtype:
            _check_memory(subject, sample, case, other, sample.draw(case, other))


# Whose results may be a part of the operand.
_VIEWS = ("reshape", "permute_dims", "broadcast_to", "getitem", "real", "imag")


def _check_repeated(subject: Subject, sample: Sample, dtype: DType) -> None:
    """Read operands in which one row stands for all, without memory for each."""
    case = sample.cases[0]
    own = sample.operand_dtypes(case, dtype)
    first = [a[:1] if a.ndim else a for a in sample.draw(case, dtype)]
    arrays = [np.broadcast_to(a, s) for a, s in zip(first, case.shapes)]
    tensors = [subject.tensor(a, d).expand(s) for a, d, s in zip(first, own, case.shapes)]
    laid = Case(case.shapes, case.attrs, f"{case} broadcast along the first axis")
    subject.compare(sample, laid, dtype, sample.apply(tensors, case.attrs), sample.expected(case, arrays, dtype), arrays)


def _check_memory(subject: Subject, sample: Sample, case: Case, dtype: DType, arrays: Sequence[Any]) -> None:
    what, tensors = f"kernel {sample.id} {dtype.name} {case}", _written(subject, subject.tensors(sample, case, dtype, arrays))
    before = [subject.bits(t) for t in tensors]
    made = sample.apply(tensors, case.attrs)
    _check_unchanged(subject, f"{what}: the call", tensors, before, ". Return a new buffer.")
    kept = [subject.bits(t) for t in made]
    sample.apply(subject.tensors(sample, case, dtype, [np.roll(a, 1) for a in arrays]), case.attrs)
    if kept != [subject.bits(t) for t in made]:
        raise Failure(f"{what}: the next call changed the result. Each has memory of its own.")
    if sample.id not in _VIEWS:
        _check_own_memory(subject, what, tensors, before, made)


def _written(subject: Subject, tensors: Sequence[Any]) -> list[Any]:
    """Return copies, as a program has them: made by a kernel. What `from_host` gives may be memory that nobody can write."""
    return [subject.wrap(subject.backend.copy(t._buffer), t.dtype) for t in tensors]


def _check_unchanged(subject: Subject, cause: str, tensors: Sequence[Any], before: Sequence[bytes], advice: str) -> None:
    for i, (t, old) in enumerate(zip(tensors, before)):
        if subject.bits(t) != old:
            raise Failure(f"{cause} changed operand {i}{advice}")


def _check_own_memory(subject: Subject, what: str, tensors: Sequence[Any], before: Sequence[bytes], made: Sequence[Any]) -> None:
    """Write the results of a call: its operands stay. Where nothing is written in place a result may be an operand itself."""
    for t, value in itertools.product(made if subject.backend.mutable else (), (1, 0)):
        subject.backend.setitem(t._buffer, (Ellipsis,), value)
        _check_unchanged(subject, f"{what}: a write to its result", tensors, before,
                         ": they share memory. Return a copy where there is nothing to compute.")  # fmt: skip


# The number by which an operand stays as it is.
_STAY = {"add": 0, "subtract": 0, "bitwise_or": 0, "bitwise_xor": 0, "bitwise_left_shift": 0, "bitwise_right_shift": 0,
         "multiply": 1, "divide": 1, "floor_divide": 1, "pow": 1}  # fmt: skip
# Beside a number, and as one, their operands are small and not negative.
_SMALL = ("pow", "bitwise_left_shift", "bitwise_right_shift")


def _numbers(name: str, dtype: DType) -> list[Any]:
    """Return the numbers to call a kernel with: usual ones, the largest, nan, one that changes nothing."""
    if dtype.kind == "b":
        return [True, False]
    found = {"u": [2], "i": [2, -3], "f": [1.5, _NAN], "c": [1.5 - 0.5j]}[dtype.kind]
    if dtype.kind in "ui":
        found = found[:1] if name in _SMALL else [*found, limits(dtype)[1]]
    return [*found, _STAY[name]] if name in _STAY else found


@suite("kernel", 1, each=_NUMBERS, due=lambda name: [name])
def check_numbers(subject: Subject, name: str) -> None:
    """Take a Python number as either operand; it has the other operand's dtype."""
    for sample in (s for s in KERNELS.values() if _kernel(s) == [name]):
        for dtype in sample.dtypes(subject.available):
            numbers = _numbers(name, dtype)
            for number, first in itertools.product(numbers, (False, True)):
                for shape in ((2, 3), ()) if number == numbers[0] else ((2, 3),):
                    _check_number(subject, name, sample, dtype, number, first, shape)


def _check_number(
    subject: Subject, name: str, sample: Sample, dtype: DType, number: Any, first: bool, shape: tuple[int, ...]
) -> None:
    small = name in _SMALL
    domain = shift if small and dtype.kind in "ui" else positive if small else nonzero
    array = np.array(domain.values(np.random.default_rng(0), shape, dtype, None))
    if dtype.kind in "ui" and shape and not (small and first):
        array[0] = [limits(dtype)[1], limits(dtype)[0] or 1, limits(dtype)[1] - 1]
    other = np.full(shape, number, array.dtype)
    truth = np.arange(array.size).reshape(shape) % 2 == 0
    operands, arrays = [subject.tensor(array, dtype)], [other, array] if first else [array, other]
    if name == "where":
        operands, arrays = [subject.tensor(truth, bool_), *operands], [truth, *arrays]
    operands = _written(subject, operands)
    before = [subject.bits(t) for t in operands]
    *mask, own = [t._buffer for t in operands]
    case = Case((shape,) * len(arrays), {}, f"{list(shape)} with the number {number} {'first' if first else 'second'}")
    made = [_pure(subject.device, name, [*mask, number, own] if first else [*mask, own, number], {})]
    try:
        subject.compare(sample, case, dtype, made, sample.expected(case, arrays, dtype), arrays)
    except Failure as failure:
        wraps = f" {_WRAP}" if dtype.kind in "ui" else ""
        raise Failure(f"{failure} A number has the dtype of the other operand.{wraps}") from None
    _check_own_memory(subject, f"kernel {name} {dtype.name} {case}", operands, before, made)
