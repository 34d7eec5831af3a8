"""A stand-in for NVIDIA's `cudnn` module (nvidia-cudnn-frontend) over NumPy, for the operations that the plugin asks for.

It executes what a graph says, from the attributes that were set, on the memory at the addresses that are given; and it
refuses what the frontend 1.32 with cuDNN 9.28 refuses, as tried with them: sizes that do not follow from each other,
results without strides, heads that 8 does not divide, addresses that are not multiples of 16, plans that were ruled out.
Each graph has several plans: one written in Python, which has no launch by addresses, one that rounds to TF32, one that
is not deterministic, and a plain one. `log` holds what ran. `install()` puts it where `import cudnn` finds it.
"""

from __future__ import annotations

import ctypes
import enum
import sys
import threading
import types
import weakref
from typing import Any

import fake_runtime
import numpy as np
from fake_array import BF
from fake_cupy import _rounded

__version__ = "1.32.0"
VERSION = 92800
log: list[tuple[str, str]] = []  # (operation, plan) of each launch
planned: list[str] = []  # operations for which plans were made

data_type = enum.Enum("data_type", "NOT_SET FLOAT DOUBLE HALF BFLOAT16 INT32 BOOLEAN")
heur_mode = enum.Enum("heur_mode", "A B FALLBACK OPENSOURCE")
numerical_note = enum.Enum(
    "numerical_note", "TENSOR_CORE DOWN_CONVERT_INPUTS REDUCED_PRECISION_REDUCTION NONDETERMINISTIC"
)
build_plan_policy = enum.Enum("build_plan_policy", "HEURISTICS_CHOICE ALL")
_TYPES = {
    data_type.FLOAT: np.dtype(np.float32), data_type.DOUBLE: np.dtype(np.float64), data_type.HALF: np.dtype(np.float16),
    data_type.BFLOAT16: BF,
}  # fmt: skip
_TF32 = 77


class cudnnGraphNotSupportedError(RuntimeError):
    """There is no plan for the graph."""


def backend_version() -> int:
    """Return the library's version."""
    return VERSION


class Handle:
    """A handle of one thread on one device."""

    def __init__(self) -> None:
        self.backend_handle = id(self)
        self.device, self.stream = fake_runtime._local.device, 0
        _handles[self.backend_handle] = self


_handles: dict[int, Handle] = {}


def create_handle() -> Handle:
    """Make a handle on the current device."""
    return Handle()


def set_stream(handle: Handle, stream: int) -> None:
    """Send later work to a stream."""
    handle.stream = stream


class Tensor:
    """A tensor of a graph; setters give it back."""

    def __init__(self, dim: Any = (), stride: Any = (), kind: Any = None, uid: int = -1, virtual: bool = True) -> None:
        self.dim, self.stride, self.data_type, self.uid, self.virtual = list(dim), list(stride), kind, uid, virtual

    def set_output(self, value: bool) -> Tensor:
        """Say whether memory is given for it."""
        self.virtual = not value
        return self

    def _set(name: str) -> Any:  # type: ignore[misc]  # noqa: N805
        def setter(self: Tensor, value: Any) -> Tensor:
            setattr(self, name, value)
            return self

        return setter

    set_uid, set_dim, set_stride, set_data_type = _set("uid"), _set("dim"), _set("stride"), _set("data_type")

    def check(self) -> None:
        """Refuse a tensor whose memory is not described."""
        if not self.dim or len(self.dim) != len(self.stride) or self.data_type not in _TYPES:
            raise ValueError(f"tensor {self.uid}: dim {self.dim}, stride {self.stride}, type {self.data_type}")
        if any(type(n) is not int or n < 1 for n in (*self.dim, *self.stride)):
            raise ValueError(f"tensor {self.uid}: dim {self.dim} and stride {self.stride} must be positive ints")

    def at(self, address: int) -> Any:
        """Return the memory there as an array."""
        if address % 16:
            raise RuntimeError(f"CUDNN_STATUS_BAD_PARAM: tensor {self.uid} is not aligned")
        kind = _TYPES[self.data_type]
        extent = (sum((n - 1) * s for n, s in zip(self.dim, self.stride)) + 1) * kind.itemsize
        block = np.frombuffer((ctypes.c_char * extent).from_address(address), np.uint8).view(kind)
        return np.lib.stride_tricks.as_strided(block, self.dim, [s * kind.itemsize for s in self.stride])


class _Entry:
    def __init__(self, name: str, cpp_index: int | None, notes: Any = (), workspace: int = 0) -> None:
        self.name, self.cpp_index, self.notes, self.workspace = name, cpp_index, set(notes), workspace
        self.built = False


class _Lowered:
    """The part of the frontend that is C++: where plans are launched by addresses."""

    def __init__(self, graph: pygraph) -> None:
        self._graph, self._ready = graph, False

    def _prepare_variant_pack_template(self) -> None:
        self._ready = True

    def _get_variant_pack_uids_sorted(self) -> list[int]:
        return sorted(t.uid for t in self._graph._outside()) if self._ready else []

    def _execute_with_raw_ptrs(self, start: int, count: int, workspace: int, handle: int, index: int = -1) -> None:
        uids = sorted(t.uid for t in self._graph._outside())
        addresses = list((ctypes.c_uint64 * count).from_address(start))
        entry = next(e for e in self._graph.plans if e.cpp_index == index)
        self._graph._launch(dict(zip(uids, addresses, strict=True)), workspace, entry, _handles[handle])


def _more(bias: Any, dropout: Any, count: int) -> dict[str, Tensor]:
    """Return the operands that attention may have."""
    if dropout is not None and len(dropout) != count:
        raise ValueError(f"emulator: dropout by a mask takes {count} tensors")
    named = zip(("kept", "scale", "inverse"), dropout or ())
    return {n: t for n, t in (("bias", bias), *named) if t is not None}


class pygraph:
    """A graph of one operation."""

    def __init__(
        self, *, io_data_type: Any, intermediate_data_type: Any, compute_data_type: Any, handle: Handle
    ) -> None:
        wide = data_type.DOUBLE if io_data_type is data_type.DOUBLE else data_type.FLOAT
        if compute_data_type is not wide or intermediate_data_type is not wide:
            raise ValueError("emulator: the type to compute in")
        self._io, self._handle, self._tensors = io_data_type, handle, []
        self._thread = threading.get_ident()
        self._operation: Any = None
        self.plans: list[_Entry] = []

    def tensor(self, *, dim: Any, stride: Any, data_type: Any, uid: int, name: str = "") -> Tensor:
        """Declare an operand."""
        if any(t.uid == uid for t in self._tensors):
            raise ValueError(f"uid {uid} is already user-assigned")
        made = Tensor(dim, stride, data_type, uid, virtual=False)
        self._tensors.append(made)
        return made

    def _node(self, name: str, inputs: dict[str, Tensor], outputs: int, **how: Any) -> list[Tensor]:
        if self._operation is not None:
            raise ValueError("emulator: one operation a graph")
        if not all(isinstance(t, Tensor) for t in inputs.values()):
            raise TypeError(f"{name}(): tensors are expected")
        made = [Tensor() for _ in range(outputs)]
        self._operation = (name, inputs, made, how)
        return made

    def conv_fprop(self, *, image: Tensor, weight: Tensor, padding: Any, stride: Any, dilation: Any) -> Tensor:
        """Correlate."""
        return self._node("conv_fprop", {"x": image, "w": weight}, 1, p=padding, s=stride, d=dilation)[0]

    def conv_dgrad(self, *, loss: Tensor, filter: Tensor, padding: Any, stride: Any, dilation: Any) -> Tensor:
        """The gradient of the image."""
        return self._node("conv_dgrad", {"y": loss, "w": filter}, 1, p=padding, s=stride, d=dilation)[0]

    def conv_wgrad(self, *, image: Tensor, loss: Tensor, padding: Any, stride: Any, dilation: Any) -> Tensor:
        """The gradient of the filter."""
        return self._node("conv_wgrad", {"x": image, "y": loss}, 1, p=padding, s=stride, d=dilation)[0]

    def sdpa(
        self, *, q: Tensor, k: Tensor, v: Tensor, generate_stats: bool, attn_scale: float, use_causal_mask: bool,
        bias: Tensor | None = None, dropout: Any = None,
    ) -> list[Tensor]:  # fmt: skip
        """Attention."""
        if not generate_stats:
            raise ValueError("emulator: the statistics are expected")
        inputs = {"q": q, "k": k, "v": v} | _more(bias, dropout, 2)
        return self._node("sdpa", inputs, 2, scale=attn_scale, causal=use_causal_mask)

    def sdpa_backward(
        self, *, q: Tensor, k: Tensor, v: Tensor, o: Tensor, dO: Tensor, stats: Tensor, attn_scale: float,
        use_causal_mask: bool, bias: Tensor | None = None, use_deterministic_algorithm: bool = False, dropout: Any = None,
    ) -> list[Tensor]:  # fmt: skip
        """The gradients of attention."""
        inputs = {"q": q, "k": k, "v": v, "o": o, "g": dO, "stats": stats} | _more(bias, dropout, 3)
        return self._node(
            "sdpa_backward", inputs, 3, scale=attn_scale, causal=use_causal_mask, fixed=use_deterministic_algorithm
        )

    def _outside(self) -> list[Tensor]:
        return [*self._operation[1].values(), *self._operation[2]]

    def validate(self) -> None:
        """Check what was declared."""
        name, inputs, outputs, how = self._operation
        if len({t.uid for t in self._outside()}) != len(self._outside()):
            raise ValueError("emulator: two tensors of one uid")
        for t in self._outside():
            if t.virtual or t.uid < 0:
                raise ValueError("emulator: a result without memory")
            t.check()
        (_check_conv if name.startswith("conv") else _check_sdpa)(name, inputs, outputs, how)

    def build_operation_graph(self) -> None:
        """Do nothing."""

    def create_execution_plans(self, modes: Any) -> None:
        """List the plans."""
        if not modes or not all(isinstance(m, heur_mode) for m in modes):
            raise ValueError("emulator: heuristics")
        planned.append(self._operation[0])
        note = numerical_note
        entries = [_Entry("python", None), _Entry("fails", 0)]
        if self._io is data_type.FLOAT:
            entries += [
                _Entry("halves", 1, [note.DOWN_CONVERT_INPUTS, note.TENSOR_CORE]),
                _Entry("tf32", 2, [note.TENSOR_CORE], 64),
            ]
        entries += [_Entry("atomic", 3, [note.NONDETERMINISTIC]), _Entry("plain", 4, (), 1000)]
        if self._operation[0] == "sdpa_backward" and self._operation[3]["fixed"]:
            entries = [e for e in entries if e.name != "atomic"]
        self.plans, self._lowered_graph, self._barred = entries, _Lowered(self), set()

    def deselect_numeric_notes(self, notes: Any) -> None:
        """Rule plans out."""
        self._barred |= set(notes)

    def get_execution_plan_count(self) -> int:
        """Return how many plans there are."""
        return len(self.plans)

    def build_plan_at_index(self, index: int) -> None:
        """Compile a plan."""
        entry = self.plans[index]
        if entry.notes & self._barred:
            raise cudnnGraphNotSupportedError("Deselecting execution plan")
        if entry.name == "fails":
            raise cudnnGraphNotSupportedError("CUDNN_STATUS_NOT_SUPPORTED")
        entry.built = True

    def get_workspace_size_plan_at_index(self, index: int) -> int:
        """Return the bytes that a plan needs."""
        return self.plans[index].workspace

    def execute_plan_at_index(self, pack: Any, workspace: int = 0, index: int = 0, handle: Any = None) -> None:
        """Launch a plan by uids."""
        self._launch(pack, workspace, self.plans[index], handle)

    def _launch(self, pack: dict[int, int], workspace: int, entry: _Entry, handle: Handle) -> None:
        stream = fake_runtime.get_current_stream()
        if (
            handle is not self._handle
            or threading.get_ident() != self._thread
            or handle.device != fake_runtime._local.device
        ):
            raise RuntimeError("emulator: the handle is another thread's or device's")
        if handle.stream != stream.ptr:
            raise RuntimeError("emulator: the handle is on another stream than the current one")
        if not entry.built or entry.cpp_index is None or bool(workspace) != bool(entry.workspace):
            raise RuntimeError(f"emulator: plan {entry.name!r} cannot be launched so")
        name, inputs, outputs, how = self._operation
        arrays = {n: t.at(pack[t.uid]) for n, t in inputs.items()}
        results = [t.at(pack[t.uid]) for t in outputs]
        log.append((name, entry.name))
        alive, io = weakref.ref(self), self._io

        def step() -> None:
            if alive() is None:
                raise RuntimeError("emulator: the plan's kernels were unloaded before the graph was replayed")
            if entry.workspace:
                ctypes.memset(workspace, 0xFF, entry.workspace)
            wide = np.float64 if io is data_type.DOUBLE else np.float32
            xs = {n: a.astype(wide) for n, a in arrays.items()}
            if entry.name == "tf32":
                xs = {n: _rounded(a, _TF32) for n, a in xs.items()}
            compute = _SDPA.get(name) or _conv
            for out, found in zip(results, compute(name, xs, how, [t.dim for t in outputs])):
                out[...] = found.astype(out.dtype)

        fake_runtime._do(step)


# ---- convolution ----


def _check_conv(name: str, inputs: Any, outputs: Any, how: Any) -> None:
    sizes = {n: t.dim for n, t in inputs.items()}
    sizes[({"x", "w", "y"} - sizes.keys()).pop()] = outputs[0].dim
    x, w, y = (sizes[n] for n in "xwy")
    axes = len(x) - 2
    if axes not in (2, 3) or not len(w) == len(y) == axes + 2 or any(len(how[n]) != axes for n in "psd"):
        raise cudnnGraphNotSupportedError(f"{name}: two or three spatial axes")
    counts = [
        (n + 2 * p - d * (m - 1) - 1) // s + 1 for n, m, p, s, d in zip(x[2:], w[2:], how["p"], how["s"], how["d"])
    ]
    if list(y) != [x[0], w[0], *counts] or x[1] % w[1] or w[0] % (x[1] // w[1]):
        raise cudnnGraphNotSupportedError(f"{name}: sizes {x}, {w} and {y} do not belong together")


def _conv(name: str, xs: Any, how: Any, dims: Any) -> list[Any]:
    """Go through the taps: each adds a product of a strided part of the padded image."""
    x, w, y = (xs.get(n) for n in "xwy")
    wide = next(iter(xs.values())).dtype
    x_dim = dims[0] if x is None else x.shape
    w_dim = dims[0] if w is None else w.shape
    y_dim = dims[0] if y is None else y.shape
    padded = np.zeros([*x_dim[:2], *[n + 2 * p for n, p in zip(x_dim[2:], how["p"])]], wide)
    inside = (slice(None), slice(None), *[slice(p, p + n) for n, p in zip(x_dim[2:], how["p"])])
    if x is not None:
        padded[inside] = x
    groups = x_dim[1] // w_dim[1]
    out_w, out_y = np.zeros(w_dim, wide), np.zeros(y_dim, wide)
    for tap in np.ndindex(*w_dim[2:]):
        where = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, s, n in zip(tap, how["d"], how["s"], y_dim[2:])
        )
        for g in range(groups):
            into = slice(g * w_dim[1], (g + 1) * w_dim[1])
            of = slice(g * w_dim[0] // groups, (g + 1) * w_dim[0] // groups)
            part = padded[(slice(None), into, *where)]
            if name == "conv_fprop":
                out_y[:, of] += np.einsum("oc,nc...->no...", w[(of, slice(None), *tap)], part)
            elif name == "conv_dgrad":
                part += np.einsum("oc,no...->nc...", w[(of, slice(None), *tap)], y[:, of])
            else:
                flat = part.reshape(*part.shape[:2], -1), y[:, of].reshape(y_dim[0], of.stop - of.start, -1)
                out_w[(of, slice(None), *tap)] = np.einsum("ncl,nol->oc", *flat)
    return [{"conv_fprop": out_y, "conv_dgrad": padded[inside], "conv_wgrad": out_w}[name]]


# ---- attention ----


def _check_sdpa(name: str, inputs: Any, outputs: Any, how: Any) -> None:
    q, k, v = (inputs[n].dim for n in "qkv")
    if not len(q) == len(k) == len(v) == 4 or q[:2] != k[:2] or q[:2] != v[:2] or q[3] != k[3] or k[2] != v[2]:
        raise cudnnGraphNotSupportedError(f"{name}: query {q}, key {k} and value {v} do not belong together")
    if q[3] % 8 or v[3] % 8:
        raise cudnnGraphNotSupportedError("hidden_dim should be multiple of 8")
    if any(t.stride[3] != 1 for n, t in inputs.items() if n in "qkvog"):
        raise cudnnGraphNotSupportedError(
            "The stride for the last dimension corresponding to the embedding size should be 1"
        )
    if type(how["scale"]) is not float or type(how["causal"]) is not bool:
        raise TypeError(f"{name}: attn_scale and use_causal_mask")
    bias = inputs.get("bias")
    if bias is not None and (bias.dim[2:] != [q[2], k[2]] or any(n not in (1, m) for n, m in zip(bias.dim, q[:2]))):
        raise cudnnGraphNotSupportedError(f"{name}: bias {bias.dim}")
    out, stats = [*q[:3], v[3]], [*q[:3], 1]
    if "kept" in inputs and (inputs["kept"].dim != [*q[:3], k[2]] or inputs["scale"].dim != [1, 1, 1, 1]):
        raise cudnnGraphNotSupportedError(f"{name}: dropout of {inputs['kept'].dim}")
    wanted = [out, stats] if name == "sdpa" else [q, k, v]
    if [t.dim for t in outputs] != wanted:
        raise ValueError(f"{name}: results of {[t.dim for t in outputs]}; expected {wanted}")
    kinds = [inputs[n].data_type for n in "qkv"] + [t.data_type for t in outputs if t.dim != stats or name != "sdpa"]
    if len(set(kinds)) != 1 or (name == "sdpa" and outputs[1].data_type is not data_type.FLOAT):
        raise ValueError(f"{name}: types {kinds}")
    if name != "sdpa" and (inputs["stats"].dim != stats or inputs["stats"].data_type is not data_type.FLOAT):
        raise ValueError(f"{name}: statistics of {inputs['stats'].dim}")


def _scores(xs: Any, how: Any) -> Any:
    scores = np.einsum("bhle,bhse->bhls", xs["q"], xs["k"]) * np.float32(how["scale"])
    if "bias" in xs:
        scores = scores + xs["bias"]
    if how["causal"]:
        length, keys = scores.shape[2:]
        scores = np.where(np.arange(length)[:, None] < np.arange(keys), np.float32(-np.inf), scores)
    return scores


def _sdpa(name: str, xs: Any, how: Any, dims: Any) -> list[Any]:
    scores = _scores(xs, how)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top)
    total = e.sum(-1, keepdims=True)
    weights = e / total * (xs["kept"] * xs["scale"] if "kept" in xs else 1)
    return [np.einsum("bhls,bhsv->bhlv", weights, xs["v"]), top + np.log(total)]


def _sdpa_backward(name: str, xs: Any, how: Any, dims: Any) -> list[Any]:
    weights = np.exp(_scores(xs, how) - xs["stats"])
    kept = xs["kept"] * xs["scale"] if "kept" in xs else np.float32(1)
    if "kept" in xs and not np.allclose(xs["scale"] * xs["inverse"], 1):
        raise RuntimeError("emulator: the inverse of the scale")
    delta = (xs["g"] * xs["o"]).sum(-1, keepdims=True)
    of_scores = weights * (kept * np.einsum("bhlv,bhsv->bhls", xs["g"], xs["v"]) - delta) * np.float32(how["scale"])
    return [
        np.einsum("bhls,bhse->bhle", of_scores, xs["k"]), np.einsum("bhls,bhle->bhse", of_scores, xs["q"]),
        np.einsum("bhls,bhlv->bhsv", weights * kept, xs["g"]),
    ]  # fmt: skip


_SDPA = {"sdpa": _sdpa, "sdpa_backward": _sdpa_backward}


def install() -> Any:
    """Let `import cudnn` find the emulator in this process."""
    module = types.ModuleType("cudnn", "The emulator of cuDNN's frontend; no GPU is here.")
    for name, value in globals().items():
        if not name.startswith("_") or name == "__version__":
            setattr(module, name, value)
    sys.modules["cudnn"] = module
    return module
