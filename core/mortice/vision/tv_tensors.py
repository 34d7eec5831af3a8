"""Tensors that say what they are: images, videos, masks, boxes, key points; torchvision.tv_tensors' names.

`transforms.v2` gives back the class that it was given. Other operations give plain tensors, unless `set_return_type` says
otherwise; `wrap` puts what such a tensor knows onto a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar

import mortice
from mortice import Tensor
from mortice.overrides import DisableTorchFunctionSubclass
from mortice.utils import _pytree
from mortice.vision._pillow import is_pil
from mortice.vision._planes import pixels

__all__ = [
    "BoundingBoxFormat", "BoundingBoxes", "Image", "KeyPoints", "Mask", "TVTensor", "Video", "is_rotated_bounding_format",
    "set_return_type", "wrap",
]  # fmt: skip


# ---- what operations give ----

_class_is_kept = False


class _ReturnType:
    """Puts back, when left, what operations gave before."""

    def __init__(self, before: bool) -> None:
        self.before = before

    def __enter__(self) -> _ReturnType:
        return self

    def __exit__(self, *_: object) -> None:
        global _class_is_kept
        _class_is_kept = self.before


def set_return_type(return_type: str) -> _ReturnType:
    """Say what operations on a TVTensor give: "TVTensor", or "Tensor", as at first; for good, or in a `with`."""
    global _class_is_kept
    before, choices = _class_is_kept, {"tensor": False, "tvtensor": True}
    if return_type.lower() not in choices:
        raise ValueError(f"return_type must be 'TVTensor' or 'Tensor', got {return_type}")
    _class_is_kept = choices[return_type.lower()]
    return _ReturnType(before)


# What gives the class of the tensor in either case.
_KEPT = frozenset((Tensor.clone, Tensor.to, Tensor.detach, Tensor.requires_grad_, Tensor.pin_memory))


class TVTensor(Tensor):
    """The base of the classes here. Subclasses name the attributes that belong to a tensor of theirs in `_fields`."""

    _fields: ClassVar[tuple[str, ...]] = ()
    shape, ndim, dtype, device = Tensor.shape, Tensor.ndim, Tensor.dtype, Tensor.device  # read often, and never asked for

    @staticmethod
    def _to_tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Tensor:
        if requires_grad is None:
            requires_grad = isinstance(data, Tensor) and data.requires_grad
        t: Any = mortice.as_tensor(data, dtype=dtype, device=device)
        return t if t.requires_grad == requires_grad else t.requires_grad_(requires_grad)

    def _rewrap(self, tensor: Any, **changed: Any) -> Any:
        """Make a tensor of this class of another one, with the attributes of this one but for some."""
        made = tensor.as_subclass(type(self))
        for name in self._fields:
            setattr(made, name, changed.get(name, getattr(self, name)))
        return made

    @classmethod
    def wrap(cls, tensor: Any, like: Any, **kwargs: Any) -> Any:
        """Make a tensor of this class of another one, with the attributes of a third, but for those given."""
        return TVTensor._rewrap(like, tensor, **kwargs)

    @classmethod
    def _wrap_output(cls, output: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """Make the tensors among results tensors of this class, with the attributes of the first argument that is one."""
        like = next(x for x in _pytree.tree_leaves((args, kwargs)) if isinstance(x, cls))
        return _pytree.tree_map_only(Tensor, lambda t: t if isinstance(t, TVTensor) else like._rewrap(t), output)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
            if _class_is_kept or (func in _KEPT and isinstance(args[0], cls)):
                return cls._wrap_output(out, args, kwargs)
            return out.as_subclass(Tensor) if isinstance(out, cls) else out

    def _make_repr(self, **known: Any) -> str:
        """Write the tensor with what it knows."""
        return f"{Tensor.__repr__(self)[:-1]}, {', '.join([f'{name}={value}' for name, value in known.items()])})"

    def __deepcopy__(self, memo: Any) -> Any:
        return self.detach().clone().requires_grad_(self.requires_grad)


def wrap(wrappee: Any, *, like: Any, **kwargs: Any) -> Any:
    """Make a tensor of the class of `like`, with its attributes but for those that are given."""
    if hasattr(type(like), "wrap"):
        return type(like).wrap(wrappee, like, **kwargs)
    return wrappee.as_subclass(type(like))


def _described(self: Any, *, tensor_contents: Any = None) -> str:
    return self._make_repr(**{name: getattr(self, name) for name in self._fields})  # type: ignore[no-any-return]


# ---- pictures ----


def _pixels(data: Any) -> Any:
    return pixels(data) if is_pil(data) else data


class Image(TVTensor):
    """An image (..., C, H, W), of a tensor, of what `mortice.as_tensor` takes, or of a PIL image; (H, W) gets a channel."""

    __repr__ = _described

    def __new__(cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Any:
        t = cls._to_tensor(_pixels(data), dtype, device, requires_grad)
        if t.ndim < 2:
            raise ValueError(f"Tensor must be 2D or higher, got {t.ndim}D tensor.")
        return (t.unsqueeze(0) if t.ndim == 2 else t).as_subclass(cls)


class Video(TVTensor):
    """A video (..., T, C, H, W)."""

    __repr__ = _described

    def __new__(cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Any:
        t = cls._to_tensor(data, dtype, device, requires_grad)
        if t.ndim < 4:
            raise ValueError(f"Video: expected a tensor (..., T, C, H, W); got {t.ndim} dimensions.")
        return t.as_subclass(cls)


class Mask(TVTensor):
    """Masks for segmentation or detection (..., H, W), also of a PIL image."""

    def __new__(cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None) -> Any:
        return cls._to_tensor(_pixels(data), dtype, device, requires_grad).as_subclass(cls)


# ---- boxes and points ----


class BoundingBoxFormat(Enum):
    """How boxes are written: by corners, by corner and size, by centre and size; with R they are turned by degrees.

    XYXYXYXY are the corners of turned boxes, clockwise from the upper left.
    """

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"
    XYWHR = "XYWHR"
    CXCYWHR = "CXCYWHR"
    XYXYXYXY = "XYXYXYXY"


def is_rotated_bounding_format(format: BoundingBoxFormat | str) -> bool:
    """Tell whether boxes of a format may be turned."""
    if not isinstance(format, (BoundingBoxFormat, str)):
        raise ValueError(f"format should be str or BoundingBoxFormat, got {type(format)}")
    return (format if isinstance(format, str) else format.value) in ("XYWHR", "CXCYWHR", "XYXYXYXY")


def box_format(format: BoundingBoxFormat | str) -> BoundingBoxFormat:
    """Return a format, also for its name."""
    return BoundingBoxFormat[format.upper()] if isinstance(format, str) else format


class BoundingBoxes(TVTensor):
    """Boxes (N, 4), or (N, 5) and (N, 8) for turned ones, on a canvas of (height, width).

    `clamping_mode` says what transforms do with what comes to lie outside of the canvas: "soft", "hard" or None.
    """

    _fields = ("format", "canvas_size", "clamping_mode")
    __repr__ = _described
    format: BoundingBoxFormat
    canvas_size: tuple[int, int]
    clamping_mode: str | None

    def __new__(
        cls, data: Any, *, format: BoundingBoxFormat | str, canvas_size: tuple[int, int],
        clamping_mode: str | None = "soft", dtype: Any = None, device: Any = None, requires_grad: bool | None = None,
    ) -> Any:  # fmt: skip
        t = cls._to_tensor(data, dtype, device, requires_grad)
        if not t.is_floating_point() and is_rotated_bounding_format(format):
            raise ValueError(f"Rotated bounding boxes should be floating point tensors, got {t.dtype}.")
        return cls._wrap(t, format=format, canvas_size=canvas_size, clamping_mode=clamping_mode)

    @classmethod
    def _wrap(
        cls, tensor: Any, *, format: Any, canvas_size: Any, clamping_mode: str | None = "soft", check_dims: bool = True
    ) -> Any:
        if check_dims and tensor.ndim not in (1, 2):
            raise ValueError(f"Expected a 1D or 2D tensor, got {tensor.ndim}D")
        if clamping_mode not in (None, "hard", "soft"):
            raise ValueError(f"clamping_mode must be None, hard or soft, got {clamping_mode}.")
        made = (tensor.unsqueeze(0) if check_dims and tensor.ndim == 1 else tensor).as_subclass(cls)
        made.format, made.canvas_size, made.clamping_mode = box_format(format), canvas_size, clamping_mode
        return made

    @classmethod
    def wrap(cls, tensor: Any, like: Any, **kwargs: Any) -> Any:
        """Make boxes of a tensor, with the attributes of others, but for those given."""
        return cls._wrap(tensor, **{name: kwargs.get(name, getattr(like, name)) for name in cls._fields})


class KeyPoints(TVTensor):
    """Points (..., 2) of x and y on a canvas of (height, width)."""

    _fields = ("canvas_size",)
    __repr__ = _described
    canvas_size: tuple[int, int]

    def __new__(
        cls, data: Any, *, canvas_size: Sequence[int], dtype: Any = None, device: Any = None,
        requires_grad: bool | None = None,
    ) -> Any:  # fmt: skip
        return cls._wrap(cls._to_tensor(data, dtype, device, requires_grad), canvas_size=canvas_size)

    @classmethod
    def _wrap(cls, tensor: Any, *, canvas_size: Any, check_dims: bool = True) -> Any:
        if check_dims and tensor.ndim > 1 and tensor.shape[-1] != 2:
            raise ValueError(f"Expected a tensor of shape (..., 2), not {tensor.shape}")
        made = (tensor.unsqueeze(0) if check_dims and tensor.ndim == 1 else tensor).as_subclass(cls)
        made.canvas_size = canvas_size
        return made

    @classmethod
    def wrap(cls, tensor: Any, like: Any, **kwargs: Any) -> Any:
        """Make points of a tensor, with the canvas of others, unless one is given."""
        return cls._wrap(tensor, canvas_size=kwargs.get("canvas_size", like.canvas_size))
