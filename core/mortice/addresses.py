"""PyTorch's own addresses of what lives elsewhere here: `torch.optim.adamw`, `torch.utils.model_zoo` and others.

A module of such a name is made when somebody imports it, and hands on what the module here has.
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# The address below torch -> the module below mortice, or after a colon one of another name.
_LEAD = {
    "_C._functorch": "_C",
    "ao.nn": "ao", "quantization": "ao.quantization",
    **{
        f"{above}nn.{name}": f"ao.quantization.{there}" for above in ("", "ao.") for name, there in (
            ("intrinsic", "intrinsic"), ("intrinsic.qat", "intrinsic_qat"), ("qat", "qat"), ("quantized", "quantize"),
        )
    },
    "_VF": ":mortice", "_vmap_internals": "func.vmap", "_dynamo": "compiler", "_dynamo.config": "compiler", "_functorch": "compiler",
    "_functorch.config": "compiler", "_functorch.vmap": "utils.vmap_steps", "_guards": "_dynamo.eval_frame",
    "_inductor": "compiler", "_inductor.config": "compiler", "_inductor.decomposition": "_dynamo.utils",
    "_inductor.config.triton": "compiler", "_library": "library",
    "_library.infer_schema": "library", "_subclasses": "_dynamo.eval_frame",
    "_subclasses.fake_tensor": "_dynamo.eval_frame", "_tensor": "methods", "_tensor_str": "printing",
    "autograd.anomaly_mode": "autograd.anomaly", "cuda._utils": "cuda.devices", "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.common": "cuda.amp", "cuda.amp.grad_scaler": "cuda.amp", "cuda.profiler": "cuda.nvtx", "cuda.random": "cuda",
    "distributed._composable": "distributed",
    "distributed._composable.fsdp": "distributed.fsdp", "distributed._tensor": "distributed.tensor",
    "distributed.checkpoint": "distributed.fsdp", "distributed.checkpoint.state_dict": "distributed.fsdp",
    "distributed.device_mesh": "distributed.tensor", "distributed.distributed_c10d": "distributed", "distributed.elastic": "distributed",
    "distributed.elastic.multiprocessing": "distributed",
    "distributed.elastic.multiprocessing.errors": "distributed", "distributed.rpc.api": "distributed.rpc",
    "distributed.fsdp.api": "distributed.fsdp", "distributed.fsdp.fully_sharded_data_parallel": "distributed.fsdp",
    "distributed.fsdp.wrap": "distributed.fsdp",
    "distributed._tensor.experimental": "distributed.tensor", "fx._compatibility": "fx", "fx._pytree": "fx.pytree",
    "fx.experimental": "fx", "fx.experimental.optimization": "fx.optimization",
    "fx.experimental.proxy_tensor": "_dynamo.eval_frame", "fx.passes": "fx", "fx.passes.shape_prop": "fx.shape_prop",
    "functorch.experimental": "functorch", "functorch.experimental.control_flow": "_higher_order_ops", "jit.annotations": "_jit_internal",
    "nn.utils._named_member_accessor": "func.modules", "utils._contextlib": "modes",
    "nn.parallel._functions": "nn.parallel.scatter_gather", "onnx.operators": "onnx", "optim._adafactor": "optim.adaptive",
    "optim._multi_tensor": "optim", "optim._muon": "optim.sgd", "optim.adadelta": "optim.adaptive", "optim.adagrad": "optim.adaptive",
    "optim.adamax": "optim.adam", "optim.adamw": "optim.adam", "optim.asgd": "optim.sgd", "optim.nadam": "optim.adam",
    "optim.radam": "optim.adam", "optim.rmsprop": "optim.adaptive", "optim.rprop": "optim.adaptive",
    "optim.sparse_adam": "optim.adam", "profiler.profiler": "profiler", "testing._comparison": "testing", "utils.data._utils": "utils.data",
    "utils.data._utils.collate": "utils.data.collate", "utils.data._utils.pin_memory": "utils.data.collate",
    "utils.data._utils.worker": "utils.data.worker", "utils.data.datapipes": "utils.data",
    "utils.data.datapipes.iter": "utils.data", "utils.data.datapipes.iter.combinatorics": "utils.data",
    "sparse._triton_ops_meta": "_dynamo.utils", "utils._triton": "_dynamo.utils",
    "utils._foreach_utils": "optim.foreach", "utils._mode_utils": "subclasses.classes", "utils.file_baton": "utils.cpp_extension",
    "utils.hooks": "nn.hooks", "utils.mobile_optimizer": "jit", "utils.model_zoo": "hub",
    "vision._internally_replaced_utils": "hub", "vision.models._api": "vision.models.weights",
}  # fmt: skip
# Distributions of their own, which may not be installed.
_PARTS = (
    "ao.quantization distributions doctor fx library masked metrics nn.utils.prune sparse subclasses utils.summary utils.tensorboard vision"
).split()
# Switches of `backends.flags`, which are modules that no file holds.
_FLAGS = "backends."


def find_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module that leads elsewhere; None where nothing is meant by the name.

    Raises:
        ModuleNotFoundError: for a part of mortice that is not installed.
    """
    below = name.removeprefix("mortice.")
    if below in _PARTS:
        part = below.rpartition(".")[2]
        raise ModuleNotFoundError(
            f"{name} is a distribution of its own, and not installed. Run: pip install 'mortice[{part}]'",
            name=f"mortice-{part}",  # an error with the module's name is not told by `from mortice import fx`
        )
    if not (below in _LEAD or _flag(below)):
        return None
    return ModuleSpec(name, _Loader(), is_package=any(other.startswith(f"{below}.") for other in _LEAD))  # type: ignore[arg-type]


def attribute(module: str, name: str) -> Any:
    """Return what a package has at an address below it, which need not have been imported: its `__getattr__`."""
    if f"{module}.{name}".removeprefix("mortice.") in _LEAD:
        return import_module(f"{module}.{name}")
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


class _Loader:
    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module of a switch; others are made as modules are."""
        return _flag(spec.name.removeprefix("mortice."))

    def exec_module(self, module: ModuleType) -> None:
        """Let the module hand on what the other has."""
        below = module.__name__.removeprefix("mortice.")
        if below not in _LEAD:
            return
        there = import_module(f"mortice.{_LEAD[below]}".rpartition(":")[2])
        module.__doc__ = f"What PyTorch keeps in torch.{below}."
        module.__getattr__ = lambda name: _handed_on(module, there, name)  # type: ignore[method-assign]
        module.__dir__ = lambda: sorted({*vars(module), *dir(there)})  # type: ignore[method-assign]


def _handed_on(module: ModuleType, there: ModuleType, name: str) -> Any:
    if not name.startswith("__") or name == "__all__":
        try:
            return getattr(there, name)
        except AttributeError:
            pass
    return attribute(module.__name__, name)


def _flag(below: str) -> ModuleType | None:
    if not below.startswith(_FLAGS):
        return None
    flags = import_module("mortice.backends.flags")
    name = below.removeprefix(_FLAGS)
    return getattr(flags, name) if name in flags.FLAGS else None
