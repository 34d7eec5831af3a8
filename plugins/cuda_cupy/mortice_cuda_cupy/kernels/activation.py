"""Activations and dropout, each a single walk over memory, with their gradients."""

from __future__ import annotations

import functools
from typing import Any

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice_cuda_cupy.kernels.copying import contiguous, turns
from mortice_cuda_cupy.kernels.launch import FLOATS, THREADS, Plans, Program, empty, launcher, tiles

_ONE = "LeakyRelu Hardsigmoid Hardswish Elu Sigmoid Logsigmoid Softplus Mish Silu Gelu GeluTanh"
_TWO = (
    "ReluGrad HardtanhGrad LeakyReluGrad HardsigmoidGrad HardswishGrad EluGrad LogsigmoidGrad SoftplusGrad MishGrad "
    "SigmoidGrad TanhGrad SiluGrad GeluGrad GeluTanhGrad"
)
ACTIVATION = Program(
    "activation.cu",
    *[f"one<{{T}}, {op}>" for op in _ONE.split()],
    *[f"two<{{T}}, {op}>" for op in _TWO.split()],
    "dropout<{T}>",
)


def alike(method: Any) -> Any:
    """Take buffers of one shape and one floating dtype; leave all others to the core's default body."""
    default = getattr(NamespaceBackend, method.__name__)

    @functools.wraps(method)
    def wrapped(self: Any, x: Any, *others: Any, **attributes: Any) -> Any:
        fits = self.dtype_of(x) in FLOATS
        for y in others:
            fits = fits and y.shape == x.shape and y.dtype == x.dtype
        return (method if fits else default)(self, x, *others, **attributes)

    return wrapped


class ActivationKernels(KernelMixin):
    """Half precision is computed in float32 and rounded once."""

    @alike
    def relu_grad(self, g: Any, out: Any) -> Any:
        return _two(self, "ReluGrad", g, out)

    @alike
    def hardtanh_grad(self, g: Any, x: Any, *, low: Any, high: Any) -> Any:
        return _two(self, "HardtanhGrad", g, x, low, high)

    @alike
    def leaky_relu(self, x: Any, *, slope: float) -> Any:
        return _one(self, "LeakyRelu", x, slope)

    @alike
    def leaky_relu_grad(self, g: Any, x: Any, *, slope: float) -> Any:
        return _two(self, "LeakyReluGrad", g, x, slope)

    @alike
    def hardsigmoid(self, x: Any) -> Any:
        return _one(self, "Hardsigmoid", x)

    @alike
    def hardsigmoid_grad(self, g: Any, x: Any) -> Any:
        return _two(self, "HardsigmoidGrad", g, x)

    @alike
    def hardswish(self, x: Any) -> Any:
        return _one(self, "Hardswish", x)

    @alike
    def hardswish_grad(self, g: Any, x: Any) -> Any:
        return _two(self, "HardswishGrad", g, x)

    @alike
    def elu(self, x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
        return _one(self, "Elu", x, alpha, scale, input_scale)

    @alike
    def elu_grad(self, g: Any, x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
        return _two(self, "EluGrad", g, x, alpha, scale, input_scale)

    @alike
    def sigmoid(self, x: Any) -> Any:
        return _one(self, "Sigmoid", x)

    @alike
    def sigmoid_grad(self, g: Any, out: Any) -> Any:
        return _two(self, "SigmoidGrad", g, out)

    @alike
    def tanh_grad(self, g: Any, out: Any) -> Any:
        return _two(self, "TanhGrad", g, out)

    @alike
    def logsigmoid(self, x: Any) -> Any:
        return _one(self, "Logsigmoid", x)

    @alike
    def logsigmoid_grad(self, g: Any, x: Any) -> Any:
        return _two(self, "LogsigmoidGrad", g, x)

    def softplus(self, x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
        if self.dtype_of(x) not in FLOATS:
            return NamespaceBackend.softplus(self, x, beta, threshold)
        return _one(self, "Softplus", x, beta, threshold)

    @alike
    def softplus_grad(self, g: Any, x: Any, *, beta: float, threshold: float) -> Any:
        return _two(self, "SoftplusGrad", g, x, beta, threshold)

    @alike
    def mish(self, x: Any) -> Any:
        return _one(self, "Mish", x)

    @alike
    def mish_grad(self, g: Any, x: Any) -> Any:
        return _two(self, "MishGrad", g, x)

    @alike
    def silu(self, x: Any) -> Any:
        return _one(self, "Silu", x)

    @alike
    def silu_grad(self, g: Any, x: Any) -> Any:
        return _two(self, "SiluGrad", g, x)

    @alike
    def gelu(self, x: Any, *, approximate: str = "none") -> Any:
        return _one(self, "GeluTanh" if approximate == "tanh" else "Gelu", x)

    @alike
    def gelu_grad(self, g: Any, x: Any, *, approximate: str = "none") -> Any:
        return _two(self, "GeluTanhGrad" if approximate == "tanh" else "GeluGrad", g, x)

    def dropout(self, x: Any, keep: Any, *, p: float) -> Any:
        if self.dtype_of(x) not in FLOATS or x.shape != keep.shape:
            return NamespaceBackend.dropout(self, x, keep, p=p)
        out, n, dtype = empty(x.shape, x.dtype), x.size, self.dtype_of(x)
        if n:
            scale = 0.0 if p >= 1 else 1 / (1 - p)
            kernel = ACTIVATION.get(dtype, "dropout<{T}>")
            kernel(tiles(n, dtype.itemsize, 2), (THREADS,), (contiguous(x), contiguous(keep), out, n, float(scale)))
        return out


def _one(k: Any, op: str, x: Any, *numbers: float) -> Any:
    if axes := turns(x):
        return _one(k, op, x.transpose(axes[0]), *numbers).transpose(axes[1])
    x = contiguous(x)
    launch = _plans[op, k.dtype_of(x), x.size, 1, len(numbers)]
    out = empty(x.shape, x.dtype)
    if launch:
        launch(x, out, *map(float, numbers))
    return out


def _two(k: Any, op: str, g: Any, x: Any, *numbers: float) -> Any:
    if axes := turns(g, x):
        return _two(k, op, g.transpose(axes[0]), x.transpose(axes[0]), *numbers).transpose(axes[1])
    launch = _plans[op, k.dtype_of(x), x.size, 2, len(numbers)]
    out = empty(x.shape, x.dtype)
    if launch:
        launch(contiguous(g), contiguous(x), out, *map(float, numbers))
    return out


def _plan(op: str, dtype: Any, n: int, arrays: int, numbers: int) -> Any:
    """Return the launch for n elements, None for none; three numbers are passed, of which so many are given."""
    if not n:
        return None
    kernel = ACTIVATION.get(dtype, f"{('one', 'two')[arrays - 1]}<{{T}}, {op}>")
    takes = "x" * (arrays + 1) + "=" + "f" * numbers + "=" * (3 - numbers)
    return launcher(kernel, tiles(n, dtype.itemsize, 4 if arrays == 1 else 2), (THREADS,), takes, n, *[0.0] * (3 - numbers))


_plans = Plans(_plan)
