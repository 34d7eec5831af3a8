"""The part of Module that converts and moves parameters and buffers, in place and recursively."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import mortice
from mortice import no_grad
from mortice.__future__ import get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion
from mortice.lazy import load
from mortice.nn.parameter import Parameter, is_lazy
from mortice.nn.swap import swap_tensors
from mortice.notice import warn


def _wraps(t: Any) -> bool:
    return load("mortice.utils._python_dispatch", "is_traceable_wrapper_subclass")(t)


class Movable:
    """The part of Module that changes all tensors; parameters and their gradients keep their identity."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    children: Callable[[], Iterator[Any]]

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace every tensor by `fn(tensor)`; parameters and their gradients keep their identity."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        overwrite = get_overwrite_module_params_on_conversion()
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                changed = fn(param)
                gradient = None if param.grad is None else fn(param.grad)
            if not is_lazy(param) and (overwrite or changed.layout is not param.layout):
                new = self._parameters[name] = Parameter(changed, param.requires_grad)
                new.grad = gradient
                continue
            grad = param.grad
            if changed is not param:
                if get_swap_module_params_on_conversion() or _wraps(changed):
                    param.grad = None  # swapping would hold it to the new dtype
                    swap_tensors(param, Parameter(changed, param.requires_grad))  # a wrapper's tensors are attributes
                else:
                    param.data = changed
            if gradient is not grad:
                grad.data = gradient
            if param.grad is not grad:
                param.grad = grad
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                buffer.data = fn(buffer)
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and convert parameters and buffers in place; a dtype applies to floating point ones only."""
        from mortice.methods import _to_arguments

        device, dtype, copy, backend, memory_format, later = _to_arguments(args, kwargs)
        if copy:
            raise RuntimeError("Module.to: .to() does not accept copy argument; use copy.deepcopy(module).to(...).")
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warn("Complex modules are a new feature, and some modules do not work with complex tensors.")

        def convert(t: Any) -> Any:
            change = dtype if t.is_floating_point() or t.is_complex() else None
            # A lazy parameter has no dims yet.
            ordered = memory_format if memory_format is not None and t.dim() in (4, 5) else None
            return t.to(device=device, dtype=change, backend=backend, memory_format=ordered, non_blocking=later)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without the values."""
        return self._apply(lambda t: mortice.empty_like(t, device=device), recurse)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def _floats_to(self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._floats_to(mortice.float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._floats_to(mortice.float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._floats_to(mortice.float16)

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16."""
        return self._floats_to(mortice.bfloat16)

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def _to_type(self, kind: str, device: Any) -> Self:
        return self.to(kind if device is None else f"{kind}:{device}" if isinstance(device, int) else device)

    def xpu(self, device: Any = None) -> Self:
        """Move to an XPU device."""
        return self._to_type("xpu", device)

    def ipu(self, device: Any = None) -> Self:
        """Move to an IPU device."""
        return self._to_type("ipu", device)

    def mtia(self, device: Any = None) -> Self:
        """Move to an MTIA device."""
        return self._to_type("mtia", device)

    def share_memory(self) -> Self:
        """Move parameters and buffers to memory that processes share which are forked from now on."""
        return self._apply(lambda t: t.share_memory_())
