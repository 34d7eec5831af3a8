"""autocast: which operations compute in which dtype while it is on, and the casts.

The call path asks `modes.autocast` (a `_Casting`, None while autocast is off everywhere) for an op's operands; functions
made of several ops are shown to it as one by `modes.autocasting`. What an operation's name asks for is in `lists`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mortice.amp import lists
from mortice.backends.plugins import devices_of
from mortice.device import TYPES, Device, Local
from mortice.dtype import DType, bfloat16, float16, float32, float64
from mortice.errors import switch
from mortice.modes import modes, settle
from mortice.notice import warn
from mortice.ops.movement import cast
from mortice.tensor import TensorBase

__all__ = [
    "autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache",
    "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_available",
    "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype",
    "set_autocast_enabled", "set_autocast_gpu_dtype",
]  # fmt: skip

_FALLBACK = {"cpu": bfloat16, "xla": bfloat16, "tpu": bfloat16}  # the lower dtype of a device type; float16 of others


class _State(Local):
    """What a thread has switched, by device type."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, DType] = {}
        self.cache_enabled = True
        self.nesting = 0
        self.cache: dict[Any, tuple[Any, int, Any]] = {}


_state = _State()


class _Casting:
    """What the call path asks for operands."""

    def operands(self, name: str, args: Sequence[Any]) -> list[Any]:
        """Return the operands as the operation of that name computes with them."""
        rule, kind = _rule(name, args)
        return list(args) if rule in (None, lists.KEEP) else _converted(args, _target(rule, kind, args), kind)

    def switches(self) -> tuple[dict[str, bool], dict[str, DType], bool]:
        """Return what is switched in this thread, for `switched`."""
        return dict(_state.enabled), dict(_state.dtypes), _state.cache_enabled

    @contextlib.contextmanager
    def switched(self, switches: tuple[dict[str, bool], dict[str, DType], bool] | None) -> Iterator[None]:
        """Have everything switched inside as it was when `switches` was read; None is off."""
        before, casting = self.switches(), modes.autocast
        _state.nesting += 1
        try:
            _state.enabled, _state.dtypes, _state.cache_enabled = switches or ({}, dict(_state.dtypes), True)
            _switch()
            yield
        finally:
            _state.enabled, _state.dtypes, _state.cache_enabled = before
            modes.autocast, _state.nesting = casting, _state.nesting - 1
            _left()

    def call(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function that counts as one operation: its arguments are cast and nothing inside is."""
        values = [*args, *kwargs.values()]
        rule, kind = _rule(fn.__name__.removeprefix("torch_"), values)  # torch.qr is not linalg.qr
        if rule is None or kwargs.get("out") is not None:
            return fn(*args, **kwargs)
        if rule == lists.BANNED:
            raise RuntimeError(lists.BANNED_TEXT)
        if rule != lists.KEEP:
            values = _converted(values, _target(rule, kind, values), kind)
        before = modes.autocast
        try:
            modes.autocast = None
            settle()
            return fn(*values[: len(args)], **dict(zip(kwargs, values[len(args) :])))
        finally:
            modes.autocast = before
            settle()


_casting = _Casting()


def _rule(name: str, args: Sequence[Any]) -> tuple[str | None, str]:
    """Return what the operation asks for on its operands' device type, None when autocast is off there."""
    for a in _tensors(args):
        kind = a._device.type
        if _state.enabled.get(kind):
            return (lists.CPU if kind == "cpu" else lists.ACCELERATOR).get(name), kind
    return None, ""


def _tensors(args: Any) -> list[Any]:
    found = []
    for a in args:
        if isinstance(a, TensorBase):
            found.append(a)
        elif type(a) in (tuple, list):
            found += _tensors(a)
    return found


def _target(rule: str | None, kind: str, args: Sequence[Any]) -> DType:
    lower = get_autocast_dtype(kind)
    if rule == lists.LOWER:
        return lower
    if rule == lists.FLOAT32:
        return float32
    dtypes = {t.dtype for t in _tensors(args) if t.dtype.kind == "f"}  # lists.PROMOTE
    return float64 if float64 in dtypes else float32 if float32 in dtypes else lower


def _converted(args: Any, dtype: DType, kind: str) -> list[Any]:
    """Cast what is of a floating dtype other than float64, on the device type."""
    made: list[Any] = []
    for a in args:
        if isinstance(a, TensorBase):
            eligible = a.dtype.kind == "f" and a.dtype is not float64 and a.dtype is not dtype and a._device.type == kind
            made.append(_cast(a, dtype) if eligible else a)
        else:
            made.append(type(a)(_converted(a, dtype, kind)) if type(a) in (tuple, list) else a)
    return made


def _cast(t: Any, dtype: DType) -> Any:
    """Cast; a float32 parameter only once while autocast is on."""
    if not (_state.cache_enabled and t.dtype is float32 and t.requires_grad and t.is_leaf and t._base is None):
        return cast(t, dtype)
    # What was cast without recording has no way back to the parameter; a parameter may be written in between.
    key = (id(t), dtype, modes.grad)
    found = _state.cache.get(key)
    if found is None or found[0] is not t or found[1] != t._version:
        found = _state.cache[key] = (t, t._version, cast(t, dtype))
    return found[2]


def _switch() -> None:
    """Tell the call path whether to ask."""
    modes.autocast = _casting if any(_state.enabled.values()) else None
    settle()


# ---- the context manager ----


def _left() -> None:
    """Settle after a block."""
    if _state.nesting == 0:
        clear_autocast_cache()
    _switch()


def old_name(device: str, name: str, arguments: str | None = None) -> None:
    """Warn that a name of `mortice.cuda.amp` or `mortice.cpu.amp` is one of `mortice.amp` now."""
    warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}({arguments or f'{device!r}, args...'})` instead.",
        FutureWarning,
    )


class autocast:
    """Let operations of a device type compute in the dtype that suits each: products lower, sensitive ones in float32.

    Works as a context manager and as a decorator. Operations take part by the lists in `mortice.amp.lists`; gradients come
    back in each tensor's own dtype.

    Args:
        device_type: such as "cpu" or "cuda"; tensors on other devices are left alone.
        dtype: the lower dtype, by default bfloat16 on the CPU and float16 elsewhere.
        enabled: whether to switch it on or off for the block.
        cache_enabled: whether to keep casts of parameters until the outermost block ends.
    """

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type = _kind(device_type)
        self.fast_dtype = dtype if dtype is not None else get_autocast_dtype(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._enabled = enabled
        self._cache_enabled = _state.cache_enabled if cache_enabled is None else cache_enabled
        if enabled and self.fast_dtype not in (bfloat16, float16):
            warn(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{device_type.upper()} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            self._enabled = False
        if self._enabled and device_type == "cuda" and not devices_of("cuda"):
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            self._enabled = False

    def __enter__(self) -> autocast:
        self._before = (_state.enabled.get(self.device, False), get_autocast_dtype(self.device), _state.cache_enabled)
        self._casting = modes.autocast
        _state.nesting += 1
        try:
            _state.enabled[self.device] = self._enabled
            _state.dtypes[self.device] = self.fast_dtype
            _state.cache_enabled = self._cache_enabled
            _switch()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        _state.enabled[self.device], _state.dtypes[self.device], _state.cache_enabled = self._before
        modes.autocast, _state.nesting = self._casting, _state.nesting - 1
        _left()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return func(*args, **kwargs)

        return run

    def _again(self) -> autocast:
        # Each call has a state of its own to return to: a decorated function may call itself.
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__)
        return fresh


# ---- the switches one by one ----


def _kind(device: str) -> str:
    """Return the device type that is named, maybe as that of a device, such as "cuda:0"; unknown ones are refused."""
    return device if device in TYPES else Device(device).type


def is_autocast_available(device_type: str) -> bool:
    """Tell whether autocast knows the device type: the CPU, CUDA, and what any backend offers."""
    from mortice.backends.plugins import entries

    kind = _kind(device_type)
    return kind in ("cpu", "cuda") or any(
        entry.info is not None and kind in entry.info.device_types for entry in entries().values()
    )


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Tell whether autocast is on in this thread for a device type."""
    return _state.enabled.get(_kind(device_type), False)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast on or off in this thread; with one argument, for CUDA."""
    kind, on = ("cuda", device_type) if enabled is None else (device_type, enabled)
    _state.enabled[_kind(kind)] = switch("set_autocast_enabled", "enabled", on)
    _switch()


def get_autocast_dtype(device_type: str) -> DType:
    """Return the lower dtype for a device type."""
    kind = _kind(device_type)
    return _state.dtypes.get(kind) or _FALLBACK.get(kind, float16)


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Choose the lower dtype for a device type."""
    _state.dtypes[_kind(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Tell whether casts of parameters are kept."""
    return _state.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Choose whether casts of parameters are kept."""
    _state.cache_enabled = switch("set_autocast_cache_enabled", "enabled", enabled)


def clear_autocast_cache() -> None:
    """Forget the casts of parameters."""
    _state.cache.clear()


def autocast_increment_nesting() -> int:
    """Count one block more; return how many are open."""
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Count one block less; return how many are open."""
    _state.nesting -= 1
    return _state.nesting


is_autocast_cpu_enabled = functools.partial(is_autocast_enabled, "cpu")
set_autocast_cpu_enabled = functools.partial(set_autocast_enabled, "cpu")
get_autocast_cpu_dtype = functools.partial(get_autocast_dtype, "cpu")
set_autocast_cpu_dtype = functools.partial(set_autocast_dtype, "cpu")
get_autocast_gpu_dtype = functools.partial(get_autocast_dtype, "cuda")
set_autocast_gpu_dtype = functools.partial(set_autocast_dtype, "cuda")
for _name, _made in list(globals().items()):
    if isinstance(_made, functools.partial):
        vars(_made)["__name__"] = _name  # as functions have
