"""What users of gradients import: backward, grad, modes, Function, derivatives of functions, checks."""

from mortice.autograd import anomaly, forward_ad, functional, grad_mode, graph, variable
from mortice.autograd.anomaly import detect_anomaly, set_detect_anomaly
from mortice.autograd.checkpoint import _is_checkpoint_valid, checkpoint  # noqa: F401 - libraries ask it of this module
from mortice.autograd.function import Function, FunctionCtx, InplaceFunction, once_differentiable
from mortice.autograd.grad_mode import set_multithreading_enabled
from mortice.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from mortice.autograd.gradients import backward, grad
from mortice.autograd.variable import Variable
from mortice.graph import RemovableHandle
from mortice.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "Function", "FunctionCtx", "GradcheckError", "InplaceFunction", "RemovableHandle", "Variable", "anomaly",
    "backward", "detect_anomaly", "enable_grad", "forward_ad", "functional", "grad", "grad_mode", "gradcheck",
    "gradgradcheck", "graph", "inference_mode", "no_grad", "once_differentiable", "set_detect_anomaly",
    "set_grad_enabled", "set_multithreading_enabled", "variable",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in ("profiler", "_profiler_enabled", "_disable_profiler"):
        raise AttributeError(f"module 'mortice.autograd' has no attribute {name!r}")
    import importlib

    module = importlib.import_module("mortice.autograd.profiler")
    return module if name == "profiler" else getattr(module, name)
