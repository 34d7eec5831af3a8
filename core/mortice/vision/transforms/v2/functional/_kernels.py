"""Which function serves which kind of input: each function of the package has a kernel for every kind that it takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mortice import Tensor
from mortice.vision import tv_tensors
from mortice.vision._pillow import is_pil
from mortice.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video


class PIL:
    """Stands for PIL's images, so that Pillow need not be there."""


IMAGES = (Tensor, PIL, Image, Video)
_BUILT_IN = {Image, Video, Mask, BoundingBoxes, KeyPoints, TVTensor}
_KERNELS: dict[Any, dict[type, Callable[..., Any]]] = {}


def is_pure_tensor(inpt: Any) -> bool:
    """Tell whether an input is a tensor that does not say what it is."""
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)


def plain_input(inpt: Any, name: str, kind: type, what: str, *given: Any) -> Any:
    """Return the plain tensor; what a tv_tensor knows itself must be given for plain ones, and for them alone."""
    if is_pure_tensor(inpt):
        if None in given:
            raise ValueError(f"For pure tensor inputs, {what} has to be passed.")
        return inpt
    if not isinstance(inpt, kind):
        raise TypeError(f"Input can either be a plain tensor or a {name} tv_tensor, but got {type(inpt)} instead.")
    if any(v is not None for v in given):
        raise ValueError(f"For {name} tv_tensor inputs, {what} must not be passed.")
    return inpt.as_subclass(Tensor)  # type: ignore[attr-defined]


def kernel_for(functional: Any, inpt: Any, passes: bool = False) -> Callable[..., Any]:
    """Return the kernel of a function for an input; where there is none it may pass as it is."""
    known = _KERNELS.get(functional)
    if known is None:
        raise ValueError(f"No kernel registered for functional {getattr(functional, '__name__', functional)}.")
    if isinstance(inpt, Tensor):
        for cls in type(inpt).__mro__:
            if cls in known:
                return known[cls]
            if cls is TVTensor:  # a class of somebody's own is no plain tensor
                break
    elif PIL in known and is_pil(inpt):
        return known[PIL]
    if passes:
        return lambda inpt, *args, **kwargs: inpt
    names = ", ".join([cls.__name__ for cls in known])
    raise TypeError(f"Functional F.{functional.__name__} supports inputs of type {names}, but got {type(inpt)} instead.")


def _wrapped(image: Callable[..., Any]) -> Callable[..., Any]:
    def call(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        out = image(inpt.as_subclass(Tensor), *args, **kwargs)
        if isinstance(out, tuple):
            return tuple([tv_tensors.wrap(one, like=inpt) for one in out])
        return tv_tensors.wrap(out, like=inpt)

    return call


def functional(*kinds: type, wraps: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Make the kernel of images the function that picks a kernel; `image` of that is the kernel itself.

    Args:
        kinds: what the kernel of images serves.
        wraps: whether the results are of the class of the input.
    """

    def make(image: Callable[..., Any]) -> Any:
        @functools.wraps(image)
        def call(inpt: Any, *args: Any, **kwargs: Any) -> Any:
            return kernel_for(call, inpt)(inpt, *args, **kwargs)

        _KERNELS[call] = {kind: _wrapped(image) if wraps and issubclass(kind, TVTensor) else image for kind in kinds}
        call.image = image  # type: ignore[attr-defined]
        return call

    return make


def kernel(functional: Any, kind: type, wraps: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the kernel of a function for masks, boxes or points.

    It gets what it has parameters for: arguments of the call, and what the input knows of itself. It returns a tensor, or
    that and the new size of the canvas. Without `wraps` it gets the input itself and returns what it likes.
    """
    names = list(inspect.signature(functional).parameters)[1:]
    known = set(names)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        takes = set(inspect.signature(function).parameters)
        fields = [name for name in kind._fields if name in takes]  # type: ignore[attr-defined]

        def call(inpt: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > len(names) or not known.issuperset(kwargs):
                functional.image(inpt, *args, **kwargs)  # which refuses them by its parameters
            kwargs = {name: v for name, v in {**dict(zip(names, args)), **kwargs}.items() if name in takes}
            out = function(inpt.as_subclass(Tensor), **{name: getattr(inpt, name) for name in fields}, **kwargs)
            if isinstance(out, tuple):
                return tv_tensors.wrap(out[0], like=inpt, canvas_size=out[1])
            return tv_tensors.wrap(out, like=inpt)

        _KERNELS[functional][kind] = call if wraps else function
        return function

    return register


def register_kernel(functional: Any, tv_tensor_cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the kernel of a function, or of its name, for a class of one's own; it gets and returns what it likes."""
    if isinstance(functional, str):
        from mortice.vision.transforms.v2 import functional as functions

        if not hasattr(functions, functional):
            raise ValueError(f"Could not find functional with name '{functional}' in mortice.vision.transforms.v2.functional.")
        functional = getattr(functions, functional)
    if functional not in _KERNELS:
        raise ValueError(
            f"Kernels can only be registered on functionals from mortice.vision.transforms.v2.functional, but got {functional}."
        )
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, TVTensor)):
        raise ValueError(f"Kernels can only be registered for subclasses of TVTensor, but got {tv_tensor_cls}.")
    if tv_tensor_cls in _BUILT_IN:
        raise ValueError(f"Kernels cannot be registered for the builtin tv_tensor classes, but got {tv_tensor_cls}")
    if tv_tensor_cls in _KERNELS[functional]:
        raise ValueError(f"Functional {functional} already has a kernel registered for type {tv_tensor_cls}.")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _KERNELS[functional][tv_tensor_cls] = function
        return function

    return register
