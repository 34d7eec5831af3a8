"""Methods by which other libraries see a tensor's memory: NumPy, DLPack, Python's buffers, CUDA pointers, storages."""

from __future__ import annotations

from mortice.backends.plugins import resolve
from mortice.interop import to_numpy
from mortice.layout import channels_last, contiguous_format
from mortice.lazy import family
from mortice.modes import modes
from mortice.ops import data, movement
from mortice.shape import prod
from mortice.strides import layout
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.ops import storage as storages
else:
    storages = family("ops.storage")

_TYPE_CODES = {"b": "|b1", "u": "<u", "i": "<i", "f": "<f", "c": "<c"}


def _in_graph(t: Any) -> str:
    """Say which tensor of the user's has a graph, by its name where it has one: it is mostly met in a list to plot."""
    from mortice.tracing import places

    at = places.caller()
    found = "" if at is None else places.name_of(t, at)
    name = found.partition(" ")[0] or "x"
    made = "" if t._node is None else f", made by {t._node.name().removesuffix('0').removesuffix('Backward')}"
    use = f"{name}.detach()" if prod(t.shape) != 1 else f"{name}.item() or {name}.detach()"
    return f" It is {found or 'a tensor'} of shape {tuple(t.shape)}{made}; to plot or keep it use {use}."


class Exchange(TensorBase):
    """Memory shared with other libraries."""

    __slots__ = ()

    # ---- other tensors ----

    def module_load(self, other: Any, assign: bool = False) -> Any:
        """Return what `load_state_dict` swaps a parameter or buffer with: `other`, or with its values itself."""
        own: Any = self
        return other.detach() if assign else own.copy_(other).detach()

    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """Return the dims from the outermost in memory to the innermost.

        Args:
            ambiguity_check: True raises where another order would do as well; memory formats, where it is not that of
                exactly one of them either.
        """
        formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
        if not isinstance(formats, list) or not all(isinstance(f, type(contiguous_format)) for f in formats):
            raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
        strides, shape = layout(self), self.shape
        if ambiguity_check is not False and (1 in shape or any(s == t for s, t in zip(strides, strides[1:]))):
            if sum(movement.is_contiguous(self, f) for f in formats) != 1:
                raise RuntimeError(
                    "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
                )
        plain, last = movement.is_contiguous(self), self.ndim == 4 and movement.is_contiguous(self, channels_last)
        if plain is not last:
            return tuple(range(self.ndim)) if plain else (0, 2, 3, 1)
        # Dims that repeat memory stay where they are.
        moved = iter(sorted((d for d in range(self.ndim) if strides[d]), key=lambda d: (-strides[d], -shape[d])))
        return tuple(next(moved) if strides[d] else d for d in range(self.ndim))

    # ---- NumPy ----

    def numpy(self, *, force: bool = False) -> Any:
        """Return a NumPy array over the same memory; needs a CPU tensor outside the graph, no_grad, or `force=True`."""
        x = self
        if force:
            x = x.detach().cpu()
        if x._rg and modes.grad:
            raise RuntimeError(
                f"Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.{_in_graph(self)}"
            )
        if x._device.level is not None:
            raise x._device.level.no_memory("numpy")
        if x._device.is_outline:
            raise RuntimeError(".numpy() is not supported for tensor subclasses. Take it of the tensor inside, or of tolist().")
        if x._device.type != "cpu":
            raise TypeError(
                f"can't convert {x.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
            )
        (x._storage or x.own_storage()).aliases.pinned = True
        return to_numpy(x)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = self.numpy()
        if dtype is not None and found.dtype != dtype:
            if copy is False:
                raise ValueError(f"__array__: a copy is needed to convert {self.dtype} to {dtype}; got copy=False.")
            return found.astype(dtype)
        return found.copy() if copy else found

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: Any = False) -> Any:
        # What NumPy calls with the result of one of its functions, so that np.sin(tensor) is a tensor; bools are uint8 in PyTorch.
        return data.as_tensor(array.astype("uint8") if array.dtype == bool else array)

    # ---- buffers and pointers ----

    def __buffer__(self, flags: int) -> memoryview:
        """Show the elements to whoever reads PEP 3118 buffers, such as memoryview from Python 3.12 on."""
        data.check_lendable(self)
        host = self._host()
        if not self.is_cpu or host.raw:
            raise BufferError(f"__buffer__: expected a dtype with a PEP 3118 code, on the CPU; got {self.dtype} on {self.device}.")
        self.own_storage().pinned = True
        return host.view

    def data_ptr(self) -> int:
        """Return the address of the first element, 0 if there is none, where the backend has addresses."""
        self.own_storage().pinned = True
        return self._device.backend.address(self._buffer) if prod(self.shape) else 0

    @property
    def _cdata(self) -> int:
        """A number of this very tensor, by which libraries written for PyTorch tell tensors apart."""
        return id(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._device.type != "cuda":
            raise AttributeError(
                f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()}. Use tensor.cuda() to copy it "
                "to a CUDA device."
            )
        if self._rg:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad. Use var.detach() first.")
        size = self.dtype.itemsize
        code = "<V2" if self.dtype.name == "bfloat16" else _TYPE_CODES[self.dtype.kind]
        strides = None if movement.is_row_major(self) else tuple(s * size for s in layout(self))
        return {
            "typestr": code if code[2:] else f"{code}{size}", "shape": tuple(self.shape), "strides": strides,
            "data": (self.data_ptr(), False), "version": 2,
        }  # fmt: skip

    # ---- DLPack ----

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Return DLPack's kind of the device, and its number."""
        from mortice.backends.dlpack import DLDeviceType

        kind, index = self._device.backend.dlpack_device(self._buffer)
        return DLDeviceType(kind), index

    def __dlpack__(
        self, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Return a DLPack capsule, through which another library sees the same memory.

        `stream` is that of the borrower, which may read once work queued so far is done; -1 asks for no waiting.
        """
        from mortice.backends.dlpack import device_name, mark_copied, on_host

        data.check_lendable(self)
        if stream is not None and type(stream) is not int:
            raise TypeError(f"__dlpack__: expected stream to be an int or None; got {type(stream).__name__}.")
        here, x = None, self
        try:
            here = self.__dlpack_device__()
        except BufferError:  # from where DLPack does not reach, a copy can still go to where it is wanted
            if dl_device is None:
                raise
        if dl_device is not None and tuple(dl_device) != here:
            if copy is False:
                raise BufferError(f"__dlpack__: cannot move from {here} to {tuple(dl_device)} without a copy.")
            x = movement.transfer(x, resolve(device_name(dl_device)))
        elif copy:
            x = movement.clone(x)
        if on_host(x):
            if stream not in (None, -1):
                raise AssertionError(f"stream should be None on cpu; got {stream}.")
            stream = None
        x.own_storage().pinned = True
        capsule = x._device.backend.to_dlpack(x._buffer, stream=stream, max_version=max_version)
        return capsule if x is self else mark_copied(capsule)

    # ---- the array API standard ----

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """Return the functions of the array API standard for tensors: `mortice.array_api`."""
        from mortice.lazy import load

        return load("mortice.array_api", "namespace_for")(api_version)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Move to a device, as the array API standard calls it; the copy goes over the current stream."""
        if stream is not None:
            raise ValueError(f"to_device: expected no stream; got {stream!r}. Make it current with mortice.cuda.stream.")
        return movement.transfer(self, resolve(device))

    # ---- storages ----

    untyped_storage, storage, _typed_storage = storages.untyped_storage, storages.storage, storages.typed_storage
    set_, resize_, resize_as_ = storages.set_, storages.resize_, storages.resize_as_
    share_memory_, is_shared = storages.share_memory_, storages.is_shared
    pin_memory, is_pinned, record_stream = storages.pin_memory, storages.is_pinned, storages.record_stream
