"""Data types: those that tensors have, the promotion table, and the limits of each (`finfo`, `iinfo`)."""

from __future__ import annotations

import builtins
import os

from mortice.errors import DTypeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = [
    "bfloat16", "can_cast", "complex128", "complex32", "complex64", "finfo", "float16", "float32", "float64",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "get_default_dtype", "get_type_promotion", "iinfo", "int1", "int16", "int2", "int3", "int32", "int4", "int5", "int6", "int64",
    "int7", "int8", "promote_types", "qint32", "qint8", "quint4x2", "quint8", "set_default_dtype", "set_type_promotion",
    "uint1", "uint16", "uint2", "uint3", "uint32", "uint4", "uint5", "uint6", "uint64", "uint7", "uint8",
]  # fmt: skip


class DType:
    """An element type. There is one object per type: compare with `is` or `==`."""

    __slots__ = ("name", "kind", "itemsize", "index", "is_floating_point", "is_complex", "is_signed", "stored")

    def __init__(self, name: str, kind: str, itemsize: int, index: int) -> None:
        self.name = name
        self.kind = kind
        self.itemsize = itemsize
        self.index = index
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self.is_signed = kind in "ifc"
        self.stored = self  # the dtype of buffers, which of float8 are codes

    def __repr__(self) -> str:
        return f"mortice.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (by_name, (self.name,))

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: Any) -> DType:
        return self

    def to_real(self) -> DType:
        """Return the dtype of the real part."""
        return {"complex32": float16, "complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> DType:
        """Return the complex dtype that holds this one."""
        if self.is_complex:
            return self
        if not self.is_floating_point:
            raise RuntimeError(f"to_complex: Unknown Complex ScalarType for {CLASS_NAMES[self.name]}")
        return complex128 if self is float64 else complex64


def _make() -> dict[str, DType]:
    kinds = [("bool", "b", 1)]
    kinds += [(f"uint{8 * n}", "u", n) for n in (1, 2, 4, 8)]
    kinds += [(f"int{8 * n}", "i", n) for n in (1, 2, 4, 8)]
    kinds += [("float16", "f", 2), ("bfloat16", "f", 2), ("float32", "f", 4), ("float64", "f", 8)]
    kinds += [("complex64", "c", 8), ("complex128", "c", 16)]
    return {name: DType(name, kind, size, i) for i, (name, kind, size) in enumerate(kinds)}


_BY_NAME = _make()
DTYPES: tuple[DType, ...] = tuple(_BY_NAME.values())
bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64 = DTYPES[:9]
float16, bfloat16, float32, float64, complex64, complex128 = DTYPES[9:]

# PyTorch's dtypes that no backend has: programs name them in tables, and ask whether a tensor is of one. Those of float8 are
# stored in uint8, see `backends.float8`; of the others there are no tensors.
complex32 = DType("complex32", "c", 4, len(DTYPES))
FLOAT8 = tuple([DType(f"float8_{bits}", "f", 1, len(DTYPES)) for bits in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")])
float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu = FLOAT8
float8_e8m0fnu.is_signed = False
for _d in FLOAT8:
    _d.stored = uint8
qint8, qint32 = [DType(f"qint{8 * n}", "i", n, len(DTYPES)) for n in (1, 4)]
quint8, quint4x2 = [DType(name, "u", 1, len(DTYPES)) for name in ("quint8", "quint4x2")]
PACKED = tuple([DType(f"{sign}int{n}", sign or "i", 1, len(DTYPES)) for sign in ("u", "") for n in range(1, 8)])
uint1, uint2, uint3, uint4, uint5, uint6, uint7, int1, int2, int3, int4, int5, int6, int7 = PACKED
_BY_NAME |= {
    d.name: d
    for d in (complex32, *FLOAT8, qint8, qint32, quint8, quint4x2, *PACKED)
}

# What PyTorch calls them in the names of its classes of tensors, and in errors.
CLASS_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    **{d.name: d.name.capitalize() for d in FLOAT8},
}  # fmt: skip

# And in other errors, where the compiler wrote them.
C_NAMES = CLASS_NAMES | {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
    "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip

FLOATS = (float16, bfloat16, float32, float64)
INTEGERS = DTYPES[1:9]


def no_float8(name: str, d: DType) -> DTypeError:
    """Return the error for what is not done in float8, which is stored and converted and hardly more."""
    return DTypeError(f"{name}: not implemented for '{CLASS_NAMES[d.name]}'; got {d}. Convert with .float() first, and back.")


_KINDS = {"b": "bool", "u": "unsigned integer", "i": "integer", "f": "floating point", "c": "complex"}


def check_kind(name: str, d: DType, kinds: str, own: DType | None = None) -> None:
    """Refuse a dtype, which may stand for that of the caller's own tensor, unless it is of these kinds (of "buifc")."""
    if d.kind not in kinds:
        own = own or d
        told = ", ".join([_KINDS[kind] for kind in kinds])
        raise DTypeError(f"{name}: not implemented for '{CLASS_NAMES[own.name]}'; got {own}. Convert to one of: {told}.")


def by_name(name: str) -> DType:
    """Return the dtype of that name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise DTypeError(f"dtype: expected one of {', '.join([d.name for d in DTYPES])}; got {name!r}.") from None


def _promote_pair(x: DType, y: DType) -> DType | None:
    """Spell the rule behind the table: the smallest type that holds both, kinds ordered bool < int < float < complex."""
    if x is y:
        return x
    if x.kind == y.kind:
        if {x, y} == {float16, bfloat16}:
            return float32
        return x if x.itemsize > y.itemsize else y
    x, y = sorted((x, y), key=lambda d: "buifc".index(d.kind))
    if x.kind == "b":
        return y
    if x.kind == "u" and y.kind == "i":
        if y.itemsize > x.itemsize:
            return y
        return None if x is uint64 else by_name(f"int{16 * x.itemsize}")
    if y.kind == "c" and x is float64:
        return complex128
    return y


_TABLE: list[list[DType | None]] = [[_promote_pair(x, y) for y in DTYPES] for x in DTYPES]


def promote_types(type1: DType, type2: DType) -> DType:
    """Return the dtype of an operation on both.

    Raises:
        DTypeError: for uint64 with a signed integer, which no integer dtype holds.
    """
    try:
        result = _TABLE[type1.index][type2.index]
    except AttributeError:
        known = [_BUILTIN.get(d, d) if isinstance(d, type) else d for d in (type1, type2)]
        if known == [type1, type2]:
            raise TypeError(f"promote_types: expected two dtypes; got {type1!r} and {type2!r}.") from None
        return promote_types(*known)
    except IndexError:
        if type1 is type2:
            return type1
        names = " and ".join([CLASS_NAMES.get(d.name, d.name) for d in (type1, type2)])
        if type1 in FLOAT8 or type2 in FLOAT8:
            raise DTypeError(f"Promotion for Float8 Types is not supported, attempted to promote {names}") from None
        raise DTypeError(f"promote_types: expected dtypes that tensors have; got {names}.") from None
    if result is None:
        raise DTypeError(
            f"promote_types: no integer dtype holds both operands; got {type1.name} and {type2.name}. "
            "Convert one of them with .to(dtype) first."
        )
    return result


# Python's own types stand for the widest dtype of their kind.
_BUILTIN = {builtins.float: float64, builtins.int: int64, builtins.bool: bool_, builtins.complex: complex128}


def as_dtype(name: str, d: Any) -> DType:
    """Return a dtype as a user may give it, Python's float, int, bool and complex among them."""
    if isinstance(d, DType):
        return d
    try:
        return _BUILTIN[d]
    except (KeyError, TypeError):
        own = d if isinstance(d, str) else str(getattr(d, "name", getattr(d, "__name__", "")))  # NumPy's have theirs
        advice = f" Use mortice.{own}." if own in CLASS_NAMES else ""
        raise TypeError(f"{name}: expected dtype to be a mortice dtype; got {d!r}.{advice}") from None


class _Default:
    float: DType = float32
    promotion = "standard"


def get_default_dtype() -> DType:
    """Return the dtype of new floating point tensors."""
    return _Default.float


def set_default_dtype(d: DType) -> None:
    """Set the dtype of new floating point tensors."""
    if not isinstance(d, DType) or not d.is_floating_point or d.itemsize == 1:
        raise TypeError(f"set_default_dtype: expected a floating point dtype; got {d!r}.")
    _Default.float = d


def scalar_dtype(value: Any) -> DType:
    """Return the dtype that a Python number has by itself."""
    kind = type(value)
    if kind is builtins.float or isinstance(value, builtins.float):
        return _Default.float
    if kind is builtins.bool:
        return bool_
    if isinstance(value, int):
        return int64
    return _Default.float.to_complex()


def promote_scalar(d: DType, value: Any) -> DType:
    """Return the dtype of a tensor of dtype `d` with a Python number: the number is weak and only raises the kind."""
    if isinstance(value, builtins.bool):
        return d
    if isinstance(value, int):
        return int64 if d is bool_ else d
    if isinstance(value, builtins.float):
        return d if d.kind in "fc" else _Default.float
    return d.to_complex() if d.kind in "fc" else _Default.float.to_complex()


_TYPE_PROMOTIONS = ("standard", "pytorch")


def get_type_promotion() -> str:
    """Return the rule by which tensors of several dtypes meet: "standard" or "pytorch"."""
    return _Default.promotion


def set_type_promotion(rule: str) -> None:
    """Choose how much tensors without dims count where dtypes meet: "standard" as much as any, "pytorch" less.

    The array API standard, NumPy 2 and JAX know one rule for all shapes. In PyTorch a tensor without dims gives way to those
    that have some, unless it is of a higher kind: float32 of shape (3,) times float64 of shape () is float32. Programs that
    were written for PyTorch may lean on that, and `python -m mortice run` begins with it. It holds for the whole process,
    operators of arrays in `mortice.array_api` among it. The environment variable MORTICE_TYPE_PROMOTION sets it at the start.

    Raises:
        ValueError: for another name.
    """
    if rule not in _TYPE_PROMOTIONS:
        known = " or ".join(map(repr, _TYPE_PROMOTIONS))
        raise ValueError(f"set_type_promotion: expected {known}; got {rule!r}.")
    _Default.promotion = rule


if "MORTICE_TYPE_PROMOTION" in os.environ:
    set_type_promotion(os.environ["MORTICE_TYPE_PROMOTION"])


def dtype_of_all(tensors: Iterable[Any], numbers: Iterable[Any] = ()) -> DType:
    """Return the dtype in which tensors and Python numbers, at least one of either, meet."""
    found: DType | None = None
    weak: DType | None = None  # of tensors without dims, where they count less
    dims_decide = _Default.promotion == "pytorch"
    for t in tensors:
        if dims_decide and not t.shape:
            weak = t.dtype if weak is None else promote_types(weak, t.dtype)
        elif t.dtype is not found:
            found = t.dtype if found is None else promote_types(found, t.dtype)
    if weak is not None:
        for value in numbers:
            weak = promote_scalar(weak, value)
        return weak if found is None else raised(found, weak)
    for value in numbers:
        found = scalar_dtype(value) if found is None else promote_scalar(found, value)
    assert found is not None
    return found


def raised(d: DType, weak: DType) -> DType:
    """Return the dtype of what has dims, raised to the kind of what has none."""
    if d.kind in "fc":
        return d.to_complex() if weak.kind == "c" else d
    return promote_types(d, weak) if d.kind == "b" or weak.kind in "fc" else d


def can_cast(from_: DType, to: DType) -> builtins.bool:
    """Tell whether a result of dtype `from_` may be written into `to`: the kind must not go down."""
    from_, to = as_dtype("can_cast", from_), as_dtype("can_cast", to)
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    return order[from_.kind] <= order[to.kind]


_FLOAT_BITS = {"float16": (16, 10, 5), "bfloat16": (16, 7, 8), "float32": (32, 23, 8), "float64": (64, 52, 11)}


# Those of float8, which follow no one rule: eps, max, min and the smallest normal number.
_FLOAT8 = {
    "float8_e4m3fn": (0.125, 448.0, -448.0, 2.0**-6), "float8_e5m2": (0.25, 57344.0, -57344.0, 2.0**-14),
    "float8_e4m3fnuz": (0.125, 240.0, -240.0, 2.0**-7), "float8_e5m2fnuz": (0.125, 57344.0, -57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127),
}  # fmt: skip
_LIMITS: dict[DType, dict[str, Any]] = {}  # what is known of floating point dtypes: programs ask in loops


class finfo:
    """Limits of a floating point dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    def __init__(self, type: DType | None = None) -> None:
        d = _Default.float if type is None else as_dtype("finfo", type)
        if d.kind not in "fc":
            raise DTypeError(f"finfo: expected a floating point dtype; got {d!r}. Use iinfo for integers.")
        known = _LIMITS.get(d)
        if known is not None:
            self.__dict__.update(known)
            return
        real = d.to_real()
        if real.itemsize == 1:
            self.bits, self.resolution = 8, 1.0
            self.eps, self.max, self.min, self.tiny = _FLOAT8[real.name]
        else:
            self.bits, fraction, exponent = _FLOAT_BITS[real.name]
            bias = 2 ** (exponent - 1) - 1
            self.eps = 2.0**-fraction
            self.max = (2 - 2.0**-fraction) * 2.0**bias
            self.min = -self.max
            self.tiny = 2.0 ** (1 - bias)
            self.resolution = 10.0 ** -int(fraction * 0.30103)
        self.smallest_normal = self.tiny
        self.dtype = real.name
        _LIMITS[d] = dict(self.__dict__)

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.dtype == other.dtype

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype: bits, min, max."""

    def __init__(self, type: DType) -> None:
        d = as_dtype("iinfo", type)
        if d.kind not in "iu" or d in PACKED:
            raise DTypeError(f"iinfo: expected an integer dtype; got {type!r}. Use finfo for floating point.")
        self.bits = 8 * d.itemsize
        self.min = -(2 ** (self.bits - 1)) if d.kind == "i" else 0
        self.max = 2 ** (self.bits - (d.kind == "i")) - 1
        self.dtype = d.name

    __eq__ = finfo.__eq__

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
