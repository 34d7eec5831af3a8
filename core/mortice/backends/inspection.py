"""What an array-API namespace says of itself, or shows when it is tried: functions, dtypes, devices, mutability.

Nothing here knows a library by its name.
"""

from __future__ import annotations

import warnings
from itertools import count

from mortice.dtype import DTYPES, DType
from mortice.errors import PluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# What NamespaceBackend calls, by the version of the standard that brought it.
FUNCTIONS = {
    "2021.12": "abs add arange argmax argsort asarray bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift "
    "bitwise_xor broadcast_to concat cos divide equal exp floor floor_divide full isnan less log logical_not matmul max "
    "min multiply negative not_equal permute_dims pow prod remainder reshape sign sin sqrt subtract sum tanh where zeros",
    "2022.12": "take",
    "2023.12": "astype cumulative_sum maximum minimum searchsorted",
}
COMPLEX = "conj real imag"
DERIVED = "take_along_axis, scatter_add, writing into arrays, slices with negative steps, sums and products of bools"
# The standard leaves these out, so a listing of dtypes does not tell about them.
_BEYOND = ("float16", "bfloat16")
# Without them there is no index, no mask and no number.
_VITAL = ("bool", "int64", "float32")


def check_functions(xp: Any, given: Iterable[str] = ()) -> None:
    """Refuse a namespace without the functions that required kernels need, with the list; those in `given` need none."""
    needed = " ".join([*FUNCTIONS.values(), *([COMPLEX] if hasattr(xp, "complex64") else [])])
    missing = [n for n in sorted(set(needed.split()) - set(given)) if not hasattr(xp, n)]
    if missing:
        raise PluginError(
            f"namespace {title(xp)}: required kernels need functions that it lacks: {', '.join(missing)}. Write them as "
            f"kernels={{'{missing[0]}': function, ...}}. What is derived where it is absent: {DERIVED}."
        )


def dtype_on_arrays(xp: Any, name: str, device: Any) -> Any:
    """Return the dtype as arrays of the namespace show it, None where it has none."""
    try:
        return xp.zeros((0,), dtype=getattr(xp, name), device=device).dtype
    except Exception:  # a library refuses a dtype with whatever it likes
        return None


def dtypes_on(xp: Any, device: Any) -> dict[DType, Any]:
    """Return mortice's dtype -> the namespace's own, for those that a device computes in."""
    try:
        listed = xp.__array_namespace_info__().dtypes(device=device)
    except Exception:  # without the inspection API, what can be made counts
        listed = None
    found: dict[DType, Any] = {}
    for d in DTYPES:
        if listed is not None and d.name not in listed and d.name not in _BEYOND:
            continue
        native = dtype_on_arrays(xp, d.name, device)
        # A namespace that narrows in silence shows the same dtype under two names: the wider is not there.
        if native is not None and native not in found.values():
            found[d] = native
    return found


def kept_only(xp: Any, device: Any) -> dict[DType, Any]:
    """Return unsigned integers that the namespace does not list, but can keep: arrays of them are made."""
    found = dtypes_on(xp, device)
    more = {d: dtype_on_arrays(xp, d.name, device) for d in DTYPES if d.kind == "u" and d not in found}
    return {d: native for d, native in more.items() if native is not None and native not in found.values()}


def check_vital(xp: Any, found: dict[DType, Any], device: str, native: Any) -> None:
    """Refuse a device without the dtypes that nothing works without."""
    lacking = [n for n in _VITAL if n not in {d.name for d in found}]
    if lacking:
        try:
            said = f"gave an array of {xp.zeros((0,), dtype=getattr(xp, lacking[0]), device=native).dtype}"
        except Exception as error:
            said = f"raised {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise PluginError(
            f"namespace {title(xp)}: expected {', '.join(_VITAL)} on device '{device}'; {', '.join(lacking)} "
            f"{'is' if len(lacking) == 1 else 'are'} not there: zeros((0,), dtype={lacking[0]}, device={native!r}) {said}. Where the "
            "library has 64-bit types behind a switch, set the switch first; or name other devices by devices={...}."
        )


def title(xp: Any) -> str:
    """Return what people call the namespace."""
    return str(getattr(xp, "__name__", type(xp).__name__)).removeprefix("array_api_compat.")


# ---- devices ----


def find_devices(xp: Any) -> dict[str, Any]:
    """Return mortice's device names -> the namespace's devices, its default first; those that cannot be used are left out."""
    usual = _device_of_new(xp, None)
    if usual is None:
        return {"cpu": None}  # arrays tell no device, so there is nothing to choose
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a library may warn of kinds of devices that it had once
            listed = list(xp.__array_namespace_info__().devices())
    except Exception:
        listed = []
    places = [usual]
    for native in listed:
        if native is not None and native not in places and _device_of_new(xp, native) == native and _usable(xp, native):
            places.append(native)
    types = [_device_type(xp, native) for native in places]
    numbers = {t: count() for t in types}
    return {t if types.count(t) == 1 and t == "cpu" else f"{t}:{next(numbers[t])}": p for t, p in zip(types, places)}


def _device_of_new(xp: Any, native: Any) -> Any:
    try:
        return xp.zeros((1,), device=native).device
    except Exception:  # a listed device may be absent, or not be one at all
        return None


def _usable(xp: Any, native: Any) -> bool:
    """Tell whether elements can be made there and read."""
    try:
        x = xp.asarray([3], dtype=xp.int64, device=native)
        return bool(x.dtype == xp.int64) and int(x[0]) == 3
    except Exception:  # no memory behind it, or no 64-bit integers
        return False


def _device_type(xp: Any, native: Any) -> str:
    """Return the type under which mortice would have the device: DLPack's, else the library's own word made a name."""
    import re

    from mortice.backends.dlpack import device_name

    try:
        return device_name(xp.zeros((1,), device=native).__dlpack_device__()).partition(":")[0]
    except Exception:  # a library that lends nothing by DLPack
        word = re.sub(r"\W+", "_", str(native).partition(":")[0]).strip("_").lower()
        return word if word.isidentifier() else "device"


# ---- behaviour ----


def writes_in_place(xp: Any, device: Any) -> bool:
    """Tell, by trying, whether arrays can be written and every basic view shows it: the meaning of `mutable`."""
    views: Any = (
        lambda x: x[1:, ...], lambda x: x[::-1, ...], lambda x: xp.reshape(x, (-1,)),
        lambda x: xp.permute_dims(x, (1, 0)), lambda x: xp.broadcast_to(x, (1, 2, 2)),
    )  # fmt: skip
    try:
        for view in views:
            x = xp.zeros((2, 2), dtype=xp.float32, device=device)
            view(x)[...] = 1
            if not float(xp.sum(x)):
                return False
        return True
    except Exception:  # a library refuses to write, or to make the view, with whatever it likes
        return False


def reverses(xp: Any) -> bool:
    """Tell, by trying, whether slices may have negative steps, as the standard says they may."""
    try:
        return int(xp.arange(3)[slice(2, None, -2), ...][0]) == 2
    except Exception:
        return False


def updates(xp: Any, device: Any) -> bool:
    """Tell, by trying, whether arrays have `x.at[key].set(value)` and `.add`, the usual words where none can be written."""
    try:
        x = xp.zeros((2,), dtype=xp.float32, device=device)
        at = (xp.asarray([1, 1], dtype=xp.int64, device=device),)
        x = (
            x.at[(slice(0, 1), ...)]
            .set(xp.sum(x) + 4.0)
            .at[at]
            .add(xp.full((2,), 1.0, dtype=xp.float32, device=device))
        )
        return (float(x[0]), float(x[1])) == (4.0, 2.0)
    except Exception:
        return False
