"""Shapes: `Size`, broadcasting, dimension numbers, strides. The wording of each shape error exists here once."""

from __future__ import annotations

import operator
from functools import lru_cache
from math import prod as prod

from mortice.errors import DimError, OutOfMemoryError, ShapeError, too_big

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, NoReturn


class Size(tuple):  # type: ignore[type-arg]
    """The sizes of a tensor: a tuple of ints."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        made = tuple.__new__(cls, sizes)
        for n in made:
            if n.__class__ is not int:
                return tuple.__new__(cls, map(_whole, made, range(len(made))))
        return made

    def __repr__(self) -> str:
        return f"mortice.Size({list(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_sized, (tuple(self),))  # by a function, which stays here when the class is shown as PyTorch's

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self)

    def __getitem__(self, item: Any) -> Any:
        return _sized(tuple.__getitem__(self, item))

    def __add__(self, other: Any) -> Any:
        return _sized(tuple(self) + other)

    def __radd__(self, other: Any) -> Any:
        return _sized(other + tuple(self))

    def __mul__(self, other: Any) -> Any:
        return _sized(tuple(self) * other)

    __rmul__ = __mul__


def _whole(n: Any, at: int) -> int:
    try:
        return operator.index(n) + 0  # bools too
    except TypeError:
        raise TypeError(f"mortice.Size() takes an iterable of 'int' (item {at} is '{type(n).__name__}')") from None


def _sized(found: Any) -> Any:
    return Size(found) if type(found) is tuple else found


class SizeMember(int):
    """The number of elements, callable as `x.size()` and `x.size(dim)`."""

    shape: Size

    def __new__(cls, shape: Size) -> SizeMember:
        self = int.__new__(cls, prod(shape))
        self.shape = shape
        return self

    def __call__(self, dim: int | None = None) -> Any:
        if dim.__class__ is int:
            try:
                return tuple.__getitem__(self.shape, dim)
            except IndexError:
                pass  # worded below
        return self.shape if dim is None else tuple.__getitem__(self.shape, check_dim("size", dim, len(self.shape)))


MEMBERS: dict[Size, SizeMember] = {}


def size_member(shape: Size) -> SizeMember:
    """Return the member of a shape, which recurs."""
    found = MEMBERS.get(shape)
    if found is None:
        if len(MEMBERS) >= 4096:
            MEMBERS.clear()
        found = MEMBERS[shape] = SizeMember(shape)
    return found


def overflowed(name: str, shape: Any) -> RuntimeError:
    """Return the error of sizes whose memory, or whose steps where there are no elements, 64 bits cannot count."""
    what = "Storage size" if prod(shape) else "Stride"
    return RuntimeError(f"{name}: {what} calculation overflowed with sizes={list(shape)}")


def out_of_memory(name: str, shape: Any, dtype: Any, error: Exception) -> Exception:
    """Return the error of an operation for whose result, or a step to it, the backend had no memory."""
    dtype = dtype[0] if type(dtype) is tuple else dtype  # several results of one shape
    asked = dtype.itemsize * prod([n or 1 for n in shape]) if type(shape) is Size else 0  # strides count sizes of 0 as 1
    if asked >> 63:
        return overflowed(name, shape)
    if isinstance(error, OutOfMemoryError):  # which says how much
        return OutOfMemoryError(f"{name}: {error}")
    if not isinstance(error, MemoryError):
        return error
    bytes = f"you tried to allocate {asked} bytes." if asked else str(error)
    return OutOfMemoryError(f"{name}: DefaultCPUAllocator: can't allocate memory: {bytes}")


def channels_hint(shape: Any, channels: int, batched: bool = True) -> str:
    """Say what to do when the channels that a layer wants are the last dim of its input."""
    n = len(shape)
    if n < 3 or shape[-1] != channels:
        return ""
    order = (0, n - 1, *range(1, n - 1)) if batched else (n - 1, *range(n - 1))
    return f". The last dim is {channels}, as if channels came last; use x.permute{order}."


SCALAR = Size()
SIZES: dict[tuple[int, ...], Size] = {}  # to look a Size up costs half of making one


def remembered(shape: tuple[int, ...]) -> Size:
    """Return the Size for a shape, and keep it for the next to ask."""
    found = SIZES.get(shape)
    if found is None:
        if shape and min(shape) < 0:  # what is kept stands for sizes that were checked
            return Size(shape)
        if len(SIZES) >= 4096:
            SIZES.clear()
        found = SIZES[tuple(shape)] = Size(shape)
    return found


def broadcast(op: str, *shapes: Sequence[int]) -> Size:
    """Return the common shape of several, the array API's and PyTorch's rule."""
    try:
        return _BROADCAST[shapes]
    except (KeyError, TypeError):  # not seen yet, or given as lists
        pass
    first = shapes[0]
    if all([s == first for s in shapes]):
        if type(first) is not Size:
            return Size(first)
        if len(_BROADCAST) < 4096:
            _BROADCAST[shapes] = first
        return first
    ndim = max(map(len, shapes))
    out = [1] * ndim
    for count, shape in enumerate(shapes, 1):
        offset = ndim - len(shape)
        for i in range(ndim - 1, offset - 1, -1):  # PyTorch, too, tells of the last that differs
            if (n := shape[i - offset]) != 1 and out[i] != n:
                if out[i] != 1:
                    dim = i - ndim + max(map(len, shapes[:count]))
                    raise ShapeError(
                        f"{op}: The size of tensor a ({out[i]}) must match the size of tensor b ({n}) at non-singleton "
                        f"dimension {dim}; got {' and '.join(str(tuple(s)) for s in shapes)}. Reshape or expand one of them."
                    )
                out[i] = n
    size = Size(out)
    if all([type(s) is Size or s == () for s in shapes]):  # a number has no sizes
        if len(_BROADCAST) >= 4096:
            _BROADCAST.clear()
        _BROADCAST[shapes] = size
    return size


def spreads_to(part: Sequence[int], shape: Sequence[int]) -> bool:
    """Tell whether a shape broadcasts to another one."""
    lead = len(shape) - len(part)
    return lead >= 0 and all([n in (1, m) for n, m in zip(part, tuple(shape)[lead:])])


_BROADCAST: dict[tuple[Sequence[int], ...], Size] = {}


def check_dim(op: str, dim: Any, ndim: int) -> int:
    """Return a dimension number wrapped into [0, ndim); a bool, such as another argument out of its place, is none."""
    if dim.__class__ is int and -ndim <= dim < ndim:
        return dim + ndim if dim < 0 else dim
    try:
        if dim.__class__ is bool:
            raise TypeError
        dim = operator.index(dim)
    except TypeError:
        raise TypeError(f"{op}: expected dim to be an int; got {type(dim).__name__}.") from None
    bound = ndim or 1
    if not -bound <= dim < bound:
        raise DimError(
            f"{op}: Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})."
        )
    return dim + bound if dim < 0 else dim  # type: ignore[no-any-return]


def check_dims(op: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Return dimension numbers as a tuple: None or () is all of them; repeats are refused."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (tuple, list)):
        if not dim:
            return tuple(range(ndim))
        dims = tuple([check_dim(op, d, ndim) for d in dim])
        if len(set(dims)) != len(dims):
            twice = next(d for i, d in enumerate(dims) if d in dims[:i])
            raise ShapeError(f"{op}: dim {twice} appears multiple times in the list of dims; got {tuple(dim)}.")
        return dims
    return (check_dim(op, dim, ndim),)


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdims: bool) -> Size:
    """Return the shape after reducing `dims` (already wrapped)."""
    if keepdims:
        return Size([1 if i in dims else n for i, n in enumerate(shape)])
    return Size([n for i, n in enumerate(shape) if i not in dims])


def check_region(op: str, given: Size, wanted: Size) -> None:
    """Refuse what is to replace a region of another shape."""
    if given != wanted:
        raise ShapeError(
            f"{op}: expected src to have a size equal to the slice of self. src size = {list(given)}, slice size = {list(wanted)}"
        )


def missing(op: str, what: str = "size") -> NoReturn:
    """Refuse a call that leaves out what it needs, such as sizes: those of a tensor without dims are `()`."""
    raise TypeError(f'{op}() missing 1 required positional arguments: "{what}"')


def as_sizes(op: str, sizes: tuple[Any, ...], what: str = "size") -> Size:
    """Read sizes given as separate ints, as one sequence, or as one int."""
    if not sizes:
        missing(op, what)
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        if sizes[0].__class__ is Size:
            return sizes[0]
        sizes = tuple(sizes[0])
    try:
        return Size(sizes)
    except TypeError:
        raise TypeError(f"{op}: expected sizes as ints; got {sizes!r}.") from None


def check_sizes(op: str, sizes: tuple[Any, ...]) -> Size:
    """Read sizes that must not be negative."""
    plain = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    for n in plain:
        if n.__class__ is not int or n < 0:
            break
    else:
        return remembered(plain)
    size = as_sizes(op, sizes)
    if size and min(size) < 0:
        raise ShapeError(f"{op}: Trying to create tensor with negative dimension {next(n for n in size if n < 0)}: {list(size)}.")
    return size


def infer_shape(op: str, shape: Sequence[int], numel: int) -> Size:
    """Fill in one -1 so that the shape holds `numel` elements."""
    known, unknown = 1, -1
    for i, n in enumerate(shape):
        if n == -1:
            if unknown >= 0:
                raise ShapeError(f"{op}: only one dimension can be inferred; got {list(shape)}.")
            unknown = i
        elif n < 0:
            raise ShapeError(f"{op}: invalid shape dimension {n}; got {list(shape)}.")
        elif n.bit_length() > 63:
            raise too_big(op, "size", n)
        else:
            known *= n
    if unknown >= 0:
        if known == 0 and numel == 0:
            raise ShapeError(
                f"{op}: cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
                "dimension size -1 can be any value and is ambiguous."
            )
        if known and numel % known == 0:
            filled = list(shape)
            filled[unknown] = numel // known
            return Size(filled)
    elif known == numel:
        return shape if type(shape) is Size else Size(shape)
    raise ShapeError(f"{op}: shape '{list(shape)}' is invalid for input of size {numel}.")


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return row-major strides in elements, as PyTorch counts them for empty tensors too."""
    strides, step = [], 1
    for n in reversed(tuple(shape)):  # of a Size each size would be a call
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


@lru_cache(1024)  # shapes recur
def view_strides(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides of a reshape that copies nothing, or None when only a copy can do it."""
    if 0 in shape:
        return strides if shape == new else contiguous_strides(new)
    out: list[int] = []
    left, base, old, seen = list(new), strides[-1] if strides else 1, 1, 1
    # Merge old dims that lie in memory as one, and cut new ones out of each block.
    for d in range(len(shape) - 1, -1, -1):
        old *= shape[d]
        if d and (shape[d - 1] == 1 or strides[d - 1] == old * base):
            continue
        while left and (seen < old or left[-1] == 1):
            out.append(seen * base)
            seen *= left.pop()
        if seen != old:
            return None
        if d:
            base, old, seen = strides[d - 1], 1, 1
    return tuple(reversed(out + [1] * len(left)))
