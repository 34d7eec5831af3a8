"""Backend: what a plugin subclasses. The first screen lists what must be written; everything else is inherited."""

from __future__ import annotations

from functools import lru_cache, partial

from mortice.backends.kernels import FreeKernels
from mortice.backends.services import Services
from mortice.device import Device, intern
from mortice.dtype import DTYPES, DType, bool_, float32, int64
from mortice.errors import DTypeError, PluginError
from mortice.shape import contiguous_strides, prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# REQUIRED: kernels in array-API names over buffers of equal dtype; a Python number may stand for one operand.
REQUIRED = {
    "creation": "full arange astype copy",
    "movement": "reshape permute_dims broadcast_to concat getitem setitem",
    "elementwise": "negative abs sign exp log sqrt sin cos tanh floor isnan logical_not",
    "arithmetic": "add subtract multiply divide floor_divide remainder pow maximum minimum equal less where",
    "bits": "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift",
    "reduction": "sum prod max min argmax cumulative_sum",
    "linear algebra and indexing": "matmul take take_along_axis scatter_add argsort",
    "housekeeping": "device_names dtypes from_host to_host synchronize shape_of dtype_of device_of",
}
REQUIRED_NAMES = tuple(" ".join(REQUIRED.values()).split())
# REQUIRED too, of a backend whose `dtypes` include complex ones.
REQUIRED_COMPLEX = ("conj", "real", "imag")

# FREE: every other kernel (see `kernels.FreeKernels`). Overriding one is the declaration that the backend has it.


class KernelTable(dict):  # type: ignore[type-arg]
    """A backend's compiled kernels: op -> function of raw buffers, made at first use."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def __missing__(self, op: Any) -> Any:
        found: Any = getattr(self.backend, op.kernel, None) if op.kernel else partial(op.body, self.backend)
        if found is None:
            has = f"backend {self.backend.name} has no kernel {op.kernel!r}"
            raise AttributeError(f"{op.name}: {has}. Name one that it has, or give no `kernel`: the body computes.")
        if op.keeps_format and not self.backend.keeps_formats:
            found = _keeping_format(op, found, self.backend)
        if not _dtypes(self.backend).issuperset(DTYPES):
            found = _naming_dtypes(op, found, self.backend)
        self[op] = found
        return found


@lru_cache(4096)  # shapes recur
def channels_last(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Tell whether channels, axis 1 of 3 to 5, lie closest together, as PyTorch judges it; row-major strides are none."""
    least = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * shape[d]
    return strides[1] > 0


def any_channels_last(op: Any, backend: Any, operands: Sequence[Any], attrs: Any) -> bool:
    """Tell whether one of an op's first two operands has its channels last in memory, as the result then has."""
    for x in operands[:2]:
        if x is not None and not backend.is_contiguous(x):
            shape, strides = backend.shape_of(x), backend.strides_of(x)
            if op.keeps_format(len(shape), attrs) and strides is not None and channels_last(shape, strides):
                return True
    return False


def with_channels_last(k: Any, x: Any, ndim: int) -> Any:
    """Return x with its channels last in memory, if it has so many dims."""
    shape = k.shape_of(x)
    if len(shape) != ndim or channels_last(shape, k.strides_of(x) or contiguous_strides(shape)):
        return x
    lying = k.contiguous(k.permute_dims(x, (0, *range(2, ndim), 1)))
    return k.permute_dims(lying, (0, ndim - 1, *range(1, ndim - 1)))


def _keeping_format(op: Any, kernel: Any, backend: Any) -> Any:
    """Return the kernel with results whose channels are last in memory where those of one of the first two operands are."""

    def kept(*operands: Any, **attrs: Any) -> Any:
        out = kernel(*operands, **attrs)
        if not any_channels_last(op, backend, operands, attrs):
            return out
        ndim = len(backend.shape_of(operands[0]))
        return tuple([with_channels_last(backend, o, ndim) for o in out]) if type(out) is tuple else with_channels_last(backend, out, ndim)

    return kept


def _naming_dtypes(op: Any, kernel: Any, backend: Any) -> Any:
    """Return the kernel of a backend that lacks dtypes: where one is looked up and not found, the error says so."""

    def named(*operands: Any, **attrs: Any) -> Any:
        try:
            return kernel(*operands, **attrs)
        except KeyError as error:
            lacking = error.args[0] if error.args else None
            if not isinstance(lacking, DType):
                raise
            raise DTypeError(
                f"{op.name}: backend {backend.name} has no {lacking.name}, which the result or a step to it needs. "
                f"Move the operands to another backend with .to(backend=...)."
            ) from None

    return named


class Backend(Services, FreeKernels):
    """A backend: the required kernels and housekeeping over its own buffers; free kernels come along.

    Attributes:
        name: the name users select it by.
        mutable: whether `setitem` writes in place and basic `getitem`, `reshape`, `permute_dims` and `broadcast_to`
            return views of the same memory where strides allow. Otherwise in-place operations rebind.
    """

    name = "backend"
    mutable = False
    # Whether a storage keeps its first buffer: views are derived from it anew, or their strides are. Set at load.
    rooted = True
    # Whether its buffers have elements to read: on "meta" they have none, and checks of values are left out.
    has_values = True
    # Whether its kernels give results whose channels are last in memory where those of the operand are, as PyTorch's do.
    # Otherwise the core copies such results.
    keeps_formats = False
    # Optional, to save a reshape's bookkeeping: `reshape_view(x, shape)` takes a row-major buffer and sizes as the user
    # gave them (one may be -1) and returns a view that has a `shape`, or raises ValueError or TypeError.
    reshape_view: Any = None
    # Optional, to index by several tensors in one step: `flat_index(*indices, sizes)` takes int64 buffers, one for each
    # of some dims of those sizes, and returns their common positions over these dims together as a vector, negative ones
    # wrapped; None where one is out of range. Of a vector in which nothing changes it may return the buffer itself.
    flat_index: Any = None
    # Optional, to round to float8 in one step: `float8_codes(x, table)` returns uint8 codes of float32 numbers, from a table of
    # `float8.codes`.
    float8_codes: Any = None
    # Optional, to draw counts in one step: `count_terms(number, first, odds, trials)` counts, in float64, how many terms of a
    # distribution sum up to less than a number, 63 at most: term k is the one before it times `odds * (1 / k)`, where trials
    # are given times `odds * (max(trials - (k - 1), 0) * (1 / k))`.
    count_terms: Any = None
    # Optional, to draw PyTorch's numbers fast: a class with `getstate`, `setstate` and `randbytes` as `random.Random` has
    # them, and draws from its words as methods of `mt19937.MT19937` make them: `uniform(shape, dtype, low=0,
    # high=1)`, `normal(shape, dtype)` of blocks of 16, of float32 or float64, `integers(shape, low, count, one_word)` and
    # `permutation(n)`; it may have `start(seed)`, which goes to the start of a stream, and `log_gammas(shapes, kept)`, given the
    # normal number that is kept back or None, which returns that too.
    twister: Any = None

    # ---- housekeeping, REQUIRED ----

    def device_names(self) -> list[str]:
        """Return the devices it offers now, such as ["cpu"] or ["cuda:0", "cuda:1"]; the first is its default."""
        raise NotImplementedError

    def dtypes(self, device: Device) -> frozenset[DType]:
        """Return the dtypes that the device computes in."""
        raise NotImplementedError

    def from_host(self, host: Any, device: Device) -> Any:
        """Copy a HostBuffer to the device."""
        raise NotImplementedError

    def to_host(self, x: Any) -> Any:
        """Return a HostBuffer with the elements of x; it may share x's memory."""
        raise NotImplementedError

    def synchronize(self, device: Device) -> None:
        """Wait until all work on the device is done."""
        raise NotImplementedError

    def shape_of(self, x: Any) -> tuple[int, ...]:
        """Return the sizes of a buffer."""
        raise NotImplementedError

    def dtype_of(self, x: Any) -> DType:
        """Return the dtype of a buffer."""
        raise NotImplementedError

    def device_of(self, x: Any) -> Device:
        """Return the device of a buffer."""
        raise NotImplementedError

    # ---- housekeeping, FREE ----

    def share_host(self, host: Any, device: Device) -> Any:
        """Return a buffer over the host memory itself where the backend can; otherwise a copy."""
        return self.from_host(host, device)

    def share_buffer(self, lender: Any) -> Any:
        """Return a buffer over what an object of PEP 3118 lends for writing, the short way; None leaves it to `share_host`."""
        return None

    def copy_to(self, x: Any, device: Device) -> Any:
        """Copy between two devices of this backend."""
        return self.from_host(self.to_host(x), device)

    def into(self, target: Any, kernel: Any, /, *operands: Any, **attrs: Any) -> Any:
        """Run a kernel and return what it returns; `target` itself where its result could be written there at once.

        The result is to have the shape and dtype of `target`, which may be one of the operands.
        """
        return kernel(*operands, **attrs)

    def put_rows(self, x: Any, indices: Any, values: Any, *, axis: int, add: bool) -> bool:
        """Do as `index_write`, or `index_add`, in the memory of x itself; False where that cannot be, and nothing is written.

        It spares the copy of a large x of which little changes. x may be a view; nobody records what is written.
        """
        return False

    def dlpack_device(self, x: Any) -> tuple[int, int]:
        """Return DLPack's name of the device that the buffer is on."""
        from mortice.backends.dlpack import device_code

        return device_code(self.device_of(x))

    def to_dlpack(self, x: Any, *, stream: Any = None, max_version: Any = None) -> Any:
        """Lend the memory of a buffer: return a DLPack capsule that keeps it until the borrower is done."""
        raise BufferError(f"__dlpack__: backend '{self.name}' does not lend its memory. Use .cpu() first, which copies.")

    @property
    def copies_host(self) -> bool:
        """Whether memory of the host is copied where it could be shared: nobody has written how to share it."""
        return type(self).share_host is Backend.share_host and type(self).from_dlpack is Backend.from_dlpack

    def from_dlpack(self, source: Any, device: Device) -> Any:
        """Return a buffer over the memory of an object that has `__dlpack__`; here of one on the host, by `share_host`."""
        from mortice.backends.dlpack import borrow

        loan = borrow(source)
        if loan.memory.dtype not in self.dtypes(device):
            raise DTypeError(f"from_dlpack: {device} of backend {self.name} has no {loan.memory.dtype.name}.")
        if not prod(loan.shape):
            return self.full(loan.shape, 0, dtype=loan.memory.dtype, device=device)
        x = self.share_host(loan.memory, device)
        if loan.row_major:
            return self.reshape(x, loan.shape)
        return self.strided(x, shape=loan.shape, strides=loan.strides, offset=loan.offset)

    def set_num_threads(self, n: int) -> None:
        """Use that many threads for a kernel, where the backend can choose; called when the user asks for a number."""

    def empty_cache(self, device: Device) -> None:
        """Give unused memory of the device back to the system, where the backend keeps any."""

    def memory_allocated(self, device: Device) -> int:
        """Return the bytes that buffers on the device occupy, 0 where the backend does not count."""
        return 0

    def memory_stats(self, device: Device) -> dict[str, int]:
        """Return what it counts of the device's memory, in bytes: of reserved, peak_allocated, peak_reserved, free, total."""
        return {}

    def reset_peak_memory(self, device: Device) -> None:
        """Start the peaks of `memory_stats` anew, where the backend keeps any."""

    def device_label(self, device: Device) -> str:
        """Return what people call the device, such as the model of a GPU."""
        return str(device)

    def device_properties(self, device: Device) -> dict[str, Any]:
        """Return what it knows of the device: of major, minor, total_memory, multi_processor_count, and others by name."""
        return {}

    def strides_of(self, x: Any) -> tuple[int, ...] | None:
        """Return the strides in elements, None where buffers have none: row-major is then assumed."""
        return None

    def whole(self, x: Any) -> tuple[Any, int]:
        """Return the memory that x is a part of as a 1-D buffer, and where in it x begins, in elements."""
        if not self.is_contiguous(x):
            raise RuntimeError(f"storage: backend '{self.name}' does not tell what lies around a tensor; use .contiguous().")
        return self.reshape(x, (prod(self.shape_of(x)),)), 0

    def address(self, x: Any) -> int:
        """Return the address of the first element, for libraries that take pointers."""
        raise RuntimeError(f"data_ptr: expected a backend whose buffers have addresses; got '{self.name}'.")

    def owns(self, x: Any) -> bool:
        """Tell whether a buffer that a kernel has just returned has memory of its own: no view, nothing shared."""
        return not self.mutable

    def is_contiguous(self, x: Any) -> bool:
        """Tell whether the elements lie in row-major order."""
        strides = self.strides_of(x)
        return strides is None or strides == contiguous_strides(self.shape_of(x))

    def item(self, x: Any) -> Any:
        """Return the Python number in a buffer of one element: a transfer, for results whose shape depends on data."""
        value = self.to_host(x).tolist()
        while isinstance(value, list):
            value = value[0]
        return value

    # ---- what the core uses ----

    def __init__(self) -> None:
        self.table: Any = KernelTable(self)
        self.interned: dict[Any, Device] = {}

    def device(self, name: str) -> Device:
        """Return the Device of that name ("cuda:1") on this backend."""
        type_, _, number = name.partition(":")
        return intern(type_, int(number) if number else None, self)

    def does(self, name: str) -> bool:
        """Tell whether this backend does a free kernel itself."""
        mine = self.__dict__.get(name)
        if mine is not None and getattr(mine, "own", True):
            return True
        return getattr(type(self), name, None) is not getattr(FreeKernels, name)

    @property
    def overridden(self) -> tuple[str, ...]:
        """The free kernels that this backend does itself."""
        free = {n for n in dir(FreeKernels) if not n.startswith("_")} - set(REQUIRED_NAMES) - set(REQUIRED_COMPLEX)
        mine = {n for n, kernel in self.__dict__.items() if getattr(kernel, "own", True)}  # `tracing` has stand-ins here
        return tuple(sorted(n for n in free if getattr(type(self), n, None) is not getattr(FreeKernels, n) or n in mine))

    @property
    def unwritten(self) -> tuple[str, ...]:
        """The required kernels that are there in name only: all that they do is to raise NotImplementedError."""
        names = (n for n in (*REQUIRED_NAMES, *REQUIRED_COMPLEX) if n not in self.__dict__)
        codes = ((n, getattr(getattr(type(self), n, None), "__code__", None)) for n in names)
        return tuple(n for n, code in codes if code is not None and code.co_names == ("NotImplementedError",))


def check_backend(backend: Any, name: str, device_types: Any = None) -> None:
    """Refuse a backend that lacks a required kernel, with the list, or that cannot be one at all."""
    if not isinstance(backend, Backend):
        raise PluginError(f"backend {name}: load() must return a Backend; got {type(backend).__name__}.")
    if "table" not in backend.__dict__:
        raise PluginError(f"backend {name}: its __init__ must call super().__init__().")
    own, kind = backend.__dict__, type(backend)
    missing = [n for n in REQUIRED_NAMES if n not in own and getattr(kind, n, None) in (None, getattr(Backend, n, None))]
    dtypes = frozenset() if missing else _dtypes(backend)
    if dtypes and not dtypes >= {bool_, int64, float32}:
        raise PluginError(f"backend {name}: dtypes() must have mortice's bool, int64 and float32; got {', '.join(map(repr, dtypes))}.")
    if any(d.is_complex for d in dtypes):
        missing = [n for n in REQUIRED_COMPLEX if not hasattr(backend, n)]
    if missing:
        raise PluginError(f"backend {name}: required kernels are missing: {', '.join(missing)}.")
    strangers = [d for d in backend.device_names() if device_types and d.partition(":")[0] not in device_types]
    backend.rooted = not backend.mutable or getattr(type(backend), "strides_of", None) is Backend.strides_of
    if strangers:
        raise PluginError(
            f"backend {name}: every device must be of a claimed type ({', '.join(device_types)}); got {', '.join(strangers)}."
        )


def _dtypes(backend: Any) -> frozenset[DType]:
    names = backend.device_names()
    return frozenset(backend.dtypes(backend.device(names[0]))) if names else frozenset()
