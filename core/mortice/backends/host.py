"""Host buffers: how data crosses between Python, backends and other libraries, by PEP 3118 and without an array library."""

from __future__ import annotations

import struct

from mortice.dtype import DType, by_name
from mortice.errors import DTypeError
from mortice.shape import Size, prod, remembered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONG = struct.calcsize("l") == 8  # of two codes for 8 bytes the one of NumPy's int64, which is another type than its longlong
_CODES = {
    "bool": "?", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "L" if _LONG else "Q", "int8": "b", "int16": "h",
    "int32": "i", "int64": "l" if _LONG else "q", "float16": "e", "float32": "f", "float64": "d", "complex64": "Zf", "complex128": "Zd",
}  # fmt: skip
_NAMES = {code: name for name, code in _CODES.items()}
_LISTED = frozenset("?BHIQbhiqlLfd")  # the formats of which a memoryview makes lists by itself


class HostBuffer:
    """A block of host memory: a PEP 3118 view, with the shape and dtype that say how to read it.

    `view` is either a view whose own shape and strides are the tensor's, or raw bytes ("B", one-dimensional) in
    row-major order: bfloat16 has no PEP 3118 code and always travels as bytes.
    """

    __slots__ = ("view", "shape", "dtype")

    def __init__(self, view: Any, shape: Any, dtype: DType) -> None:
        self.view = view if view.__class__ is memoryview else memoryview(view)
        self.shape = shape if shape.__class__ is Size else remembered(tuple(shape))
        self.dtype = dtype.stored

    @property
    def raw(self) -> bool:
        """Whether `view` is plain bytes rather than a shaped view."""
        return self.view.format == "B" and (self.dtype.name != "uint8" or self.view.shape != tuple(self.shape))

    def shaped(self) -> memoryview | None:
        """Return a view with the tensor's own shape and format, None where PEP 3118 cannot say it."""
        if not self.raw:
            return self.view
        code = _CODES.get(self.dtype.name, "")
        if code not in _LISTED or not prod(self.shape):  # a memoryview cannot be cast to other codes
            return None
        return self.view.cast("B").cast(code, list(self.shape))  # type: ignore[call-overload, no-any-return]

    def tobytes(self) -> bytes:
        """Return the elements in row-major order."""
        return self.view.tobytes()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers (one number when 0-d)."""
        view = self.view
        if view.format in _LISTED and (view.format != "B" or not self.raw):
            return view.tolist()
        return nested(unpack(self.tobytes(), self.dtype), self.shape)


def unpack(data: bytes, d: DType) -> list[Any]:
    """Read elements of dtype `d` from bytes."""
    if d.stored is not d:
        from mortice.backends.float8 import values

        return [values(d)[code] for code in data]
    if d.name == "bfloat16":
        halves = memoryview(data).cast("H")
        widened = struct.pack(f"={len(halves)}I", *[h << 16 for h in halves])
        return memoryview(widened).cast("f").tolist()
    if d.is_complex:
        parts = memoryview(data).cast("f" if d.itemsize == 8 else "d").tolist()
        return [complex(re, im) for re, im in zip(parts[::2], parts[1::2])]
    if d.name == "float16":
        return list(struct.unpack(f"={len(data) // 2}e", data))
    plain: Any = memoryview(data)
    return plain.cast(_CODES[d.name]).tolist()  # type: ignore[no-any-return]


def pack(values: list[Any], d: DType) -> bytes:
    """Write Python numbers as elements of dtype `d`."""
    if d.stored is not d:
        from mortice.backends.float8 import code_of

        return bytes([code_of(v, d) for v in values])
    if d.name == "bfloat16":
        words = memoryview(pack(values, by_name("float32"))).cast("I")
        # Round to nearest, ties to even; a nan must stay a nan when its low bits are dropped.
        out = [((w >> 16) | 64) if (w & 0x7FFFFFFF) > 0x7F800000 else (w + 0x7FFF + ((w >> 16) & 1)) >> 16 for w in words]
        return struct.pack(f"={len(out)}H", *[w & 0xFFFF for w in out])
    if d.is_complex:
        values, d = [p for v in values for p in (complex(v).real, complex(v).imag)], d.to_real()
    try:
        return struct.pack(f"{len(values)}{_CODES[d.name]}", *values)
    except OverflowError:
        # struct refuses finite numbers beyond float16 and float32; IEEE rounds them to infinity.
        import math

        top = {"float16": 65520.0, "float32": 3.4028235677973366e38}[d.name]  # halfway to the next, which would be even
        clipped = [math.copysign(math.inf, v) if abs(v) >= top else v for v in values]
        return struct.pack(f"{len(values)}{_CODES[d.name]}", *clipped)


def nested(flat: list[Any], shape: Any) -> Any:
    """Fold a flat list into nested lists of that shape."""
    if not shape:
        return flat[0]
    if prod(shape) == 0:
        return _empty(tuple(shape))
    for n in reversed(shape[1:]):
        flat = [flat[i : i + n] for i in range(0, len(flat), n)]
    return flat


def _empty(shape: tuple[int, ...]) -> list[Any]:
    return [] if shape[0] == 0 else [_empty(shape[1:]) for _ in range(shape[0])] if len(shape) > 1 else []


def from_buffer(value: Any) -> HostBuffer:
    """Read any object that speaks PEP 3118, without copying."""
    view = memoryview(value)
    code = view.format.lstrip("@=<") if view.format[:1] in "@=<" else view.format
    sign = {"l": "", "q": "", "L": "u", "Q": "u"}.get(code)
    name = _NAMES.get(code) if sign is None else f"{sign}int{8 * view.itemsize}"
    if name is None:
        raise DTypeError(
            f"from_buffer: can't convert a buffer of format {view.format!r}. The supported dtypes are: {', '.join(_CODES)}."
        )
    return HostBuffer(view, view.shape, by_name(name))
