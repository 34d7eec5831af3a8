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
    **{
        f"{above}nn.{name}": f"ao.quantization.{there}" for above in ("", "ao.") for name, there in (
            ("intrinsic", "intrinsic"), ("intrinsic.qat", "intrinsic_qat"), ("qat", "qat"), ("quantized", "quantize"),
        )
    },
    **{
        name: there for there, names in {
            "_dynamo.eval_frame": "_guards _subclasses _subclasses.fake_tensor fx.experimental.proxy_tensor",
            "_dynamo.utils": "_inductor.decomposition sparse._triton_ops_meta utils._triton",
            "compiler": "_dynamo _dynamo.config _functorch _functorch.config _inductor _inductor.config _inductor.config.triton",
            "cuda.amp": "cuda.amp.autocast_mode cuda.amp.common cuda.amp.grad_scaler",
            "distributed": "distributed._composable distributed.distributed_c10d distributed.elastic distributed.elastic.multiprocessing "
            "distributed.elastic.multiprocessing.errors",
            "distributed.fsdp": "distributed._composable.fsdp distributed.checkpoint distributed.checkpoint.state_dict "
            "distributed.fsdp.api distributed.fsdp.fully_sharded_data_parallel distributed.fsdp.wrap",
            "distributed.tensor": "distributed._tensor distributed._tensor.experimental distributed.device_mesh",
            "fx": "fx._compatibility fx.experimental fx.passes", "hub": "utils.model_zoo vision._internally_replaced_utils",
            "library": "_library _library.infer_schema",
            "optim.adam": "optim.adamax optim.adamw optim.nadam optim.radam optim.sparse_adam",
            "optim.adaptive": "optim._adafactor optim.adadelta optim.adagrad optim.rmsprop optim.rprop",
            "optim.sgd": "optim._muon optim.asgd",
            "utils.data": "utils.data._utils utils.data.datapipes utils.data.datapipes.iter utils.data.datapipes.iter.combinatorics",
            "utils.data.collate": "utils.data._utils.collate utils.data._utils.pin_memory",
        }.items() for name in names.split()
    },
    "_C._functorch": "_C", "_VF": ":mortice", "_functorch.vmap": "utils.vmap_steps", "_tensor": "methods", "_tensor_str": "printing",
    "_vmap_internals": "func.vmap", "ao.nn": "ao", "autograd.anomaly_mode": "autograd.anomaly", "cuda._utils": "cuda.devices",
    "cuda.profiler": "cuda.nvtx", "cuda.random": "cuda", "distributed.rpc.api": "distributed.rpc",
    "functorch.experimental": "functorch", "functorch.experimental.control_flow": "_higher_order_ops", "fx._pytree": "fx.pytree",
    "fx.experimental.optimization": "fx.optimization", "fx.passes.shape_prop": "fx.shape_prop", "jit.annotations": "_jit_internal",
    "nn.parallel._functions": "nn.parallel.scatter_gather", "nn.utils._named_member_accessor": "func.modules",
    "onnx.operators": "onnx", "optim._multi_tensor": "optim", "profiler.profiler": "profiler", "quantization": "ao.quantization",
    "testing._comparison": "testing", "utils._contextlib": "modes", "utils._foreach_utils": "optim.foreach",
    "utils._mode_utils": "subclasses.classes", "utils.data._utils.worker": "utils.data.worker",
    "utils.file_baton": "utils.cpp_extension", "utils.hooks": "nn.hooks", "utils.mobile_optimizer": "jit",
    "vision.models._api": "vision.models.weights",
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
    return ModuleSpec(name, _Loader(), is_package=any(other.startswith(f"{below}.") for other in _LEAD))


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
        module.__getattr__ = lambda name: _handed_on(module, there, name)
        module.__dir__ = lambda: sorted({*vars(module), *dir(there)})


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
