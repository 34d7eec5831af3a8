"""Activations that are more than a line of other kernels, softmax, and dropout, each with its gradient."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from mortice.backends.kernel_tools import KernelMixin, in_float32

_ROOT_HALF = sqrt(0.5)
_DENSITY = 1 / sqrt(2 * pi)
_TANH_SCALE = sqrt(2 / pi)
_TANH_CUBIC = 0.044715


class ActivationKernels(KernelMixin):
    """FREE: elementwise but for softmax; low precision is computed in float32 and rounded once."""

    def relu(self, x: Any) -> Any:
        """Replace what is negative by 0; nan stays."""
        return self.maximum(x, 0)

    def relu_grad(self, g: Any, out: Any) -> Any:
        """Let the gradient through where the result is not 0."""
        return self.where(self.less_equal(out, 0), 0, g)

    @in_float32
    def hardtanh_grad(self, g: Any, x: Any, *, low: Any, high: Any) -> Any:
        """Let the gradient through inside the limits."""
        return self.where(self.logical_and(self.less(low, x), self.less(x, high)), g, 0)

    def leaky_relu(self, x: Any, *, slope: float) -> Any:
        """Multiply what is not positive by a slope."""
        return self.where(self.less(0, x), x, self.multiply(x, slope))

    def prelu(self, x: Any, weight: Any) -> Any:
        """Multiply what is not positive by a weight, broadcasting."""
        made = self.multiply(x, weight)
        return self.into(made, self.where, self.less(0, x), x, made)

    def leaky_relu_grad(self, g: Any, x: Any, *, slope: float) -> Any:
        """Multiply the gradient by the slope where x is not positive."""
        return self.where(self.less(0, x), g, self.multiply(g, slope))

    def hardshrink(self, x: Any, *, lambd: float) -> Any:
        """Replace what lies within [-lambd, lambd] by 0."""
        size = self.abs(x)
        return self.into(size, self.where, self.less_equal(size, lambd), 0, x)

    @in_float32
    def softshrink(self, x: Any, *, lambd: float) -> Any:
        """Move towards 0 by lambd, no further than 0: what lies between becomes a zero of its sign."""
        made = self.subtract(x, self.clip(x, -lambd, lambd))
        return self.into(made, self.copysign, made, x)

    @in_float32
    def hardsigmoid(self, x: Any) -> Any:
        """Compute x / 6 + 1 / 2, limited to [0, 1]."""
        return self.divide(self.clip(self.add(x, 3), 0, 6), 6)

    @in_float32
    def hardsigmoid_grad(self, g: Any, x: Any) -> Any:
        """Compute g / 6 between -3 and 3."""
        return self.divide(self.hardtanh_grad(g, x, low=-3, high=3), 6)

    @in_float32
    def hardswish(self, x: Any) -> Any:
        """Compute x times its hardsigmoid."""
        return self.divide(self.multiply(x, self.clip(self.add(x, 3), 0, 6)), 6)

    @in_float32
    def hardswish_grad(self, g: Any, x: Any) -> Any:
        """Compute g * (x / 3 + 1 / 2) between -3 and 3, 0 below, g above."""
        inside = self.multiply(g, self.add(self.divide(x, 3), 0.5))
        return self.where(self.less_equal(x, -3), 0, self.where(self.less(x, 3), inside, g))

    @in_float32
    def elu(self, x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
        """Compute scale * x above 0 and scale * alpha * (exp(input_scale * x) - 1) below."""
        below = self.multiply(self.expm1(self.multiply(self.minimum(x, 0), input_scale)), alpha * scale)
        return self.where(self.less(0, x), self.multiply(x, scale), below)

    @in_float32
    def elu_grad(self, g: Any, x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
        """Compute g times elu's derivative."""
        slope = self.exp(self.multiply(self.where(self.less(x, 0), x, 0), input_scale))  # at 0 without a second derivative
        return self.multiply(g, self.where(self.less_equal(x, 0), self.multiply(slope, alpha * scale * input_scale), scale))

    @in_float32
    def logsigmoid(self, x: Any) -> Any:
        """Compute the logarithm of sigmoid without leaving the logarithmic scale."""
        return self.subtract(self.minimum(x, 0), self.log1p(self.exp(self.negative(self.abs(x)))))

    @in_float32
    def logsigmoid_grad(self, g: Any, x: Any) -> Any:
        """Compute g * sigmoid(-x)."""
        return self.multiply(g, self.sigmoid(self.negative(x)))

    @in_float32
    def softplus_grad(self, g: Any, x: Any, *, beta: float, threshold: float) -> Any:
        """Compute g * sigmoid(beta * x); g itself where beta * x exceeds the threshold."""
        scaled = self.multiply(x, beta)
        return self.where(self.less(threshold, scaled), g, self.multiply(g, self.sigmoid(scaled)))

    @in_float32
    def mish(self, x: Any) -> Any:
        """Compute x * tanh(softplus(x))."""
        return self.multiply(x, self.tanh(self.negative(self.logsigmoid(self.negative(x)))))

    @in_float32
    def mish_grad(self, g: Any, x: Any) -> Any:
        """Compute g times mish's derivative."""
        t = self.tanh(self.negative(self.logsigmoid(self.negative(x))))
        slope = self.multiply(self.multiply(x, self.sigmoid(x)), self.subtract(1, self.multiply(t, t)))
        return self.multiply(g, self.add(t, slope))

    def sigmoid_grad(self, g: Any, out: Any) -> Any:
        """Compute g * out * (1 - out)."""
        return self.multiply(self.multiply(g, out), self.subtract(1, out))

    def tanh_grad(self, g: Any, out: Any) -> Any:
        """Compute g * (1 - out) * (1 + out): 1 - out**2 would be rounded otherwise where a machine multiplies and adds in one."""
        return self.multiply(g, self.multiply(self.subtract(1, out), self.add(1, out)))

    @in_float32
    def silu(self, x: Any) -> Any:
        """Compute x * sigmoid(x)."""
        return self.multiply(x, self.sigmoid(x))

    @in_float32
    def silu_grad(self, g: Any, x: Any) -> Any:
        """Compute g * s * (1 + x * (1 - s)) with s = sigmoid(x)."""
        s = self.sigmoid(x)
        slope = self.multiply(s, self.add(self.multiply(x, self.subtract(1, s)), 1))
        return self.multiply(g, slope)

    @in_float32
    def gelu(self, x: Any, *, approximate: str = "none") -> Any:
        """Compute x times the normal distribution function of x, exactly or through tanh."""
        if approximate == "tanh":
            half = self.multiply(self.add(self.tanh(_tanh_argument(self, x)), 1), 0.5)
        else:
            half = self.multiply(self.add(self.erf(self.multiply(x, _ROOT_HALF)), 1), 0.5)
        return self.multiply(x, half)

    @in_float32
    def gelu_grad(self, g: Any, x: Any, *, approximate: str = "none") -> Any:
        """Compute gelu's derivative times g."""
        if approximate == "tanh":
            t = self.tanh(_tanh_argument(self, x))
            inner = self.multiply(
                self.add(self.multiply(self.multiply(x, x), 3 * _TANH_CUBIC), 1), _TANH_SCALE
            )
            slope = self.multiply(self.multiply(self.subtract(1, self.multiply(t, t)), inner), x)
            slope = self.multiply(self.add(self.add(t, 1), slope), 0.5)
        else:
            below = self.multiply(self.add(self.erf(self.multiply(x, _ROOT_HALF)), 1), 0.5)
            density = self.multiply(self.exp(self.multiply(self.multiply(x, x), -0.5)), _DENSITY)
            slope = self.add(below, self.multiply(x, density))
        return self.multiply(g, slope)

    # ---- softmax ----

    @in_float32
    def softmax(self, x: Any, *, axis: int) -> Any:
        """Exponentiate and divide by the sum along an axis."""
        shape = tuple(self.shape_of(x))
        if 0 in shape:
            return self.copy(x)
        if not shape:
            return self.reshape(self.softmax(self.reshape(x, (1,)), axis=0), ())
        x = self.contiguous(x)
        e = self.exp(self.subtract(x, self.max(x, axis=axis, keepdims=True)))
        return self.divide(e, self.sum(e, axis=axis, keepdims=True))

    @in_float32
    def softmax_grad(self, g: Any, out: Any, *, axis: int) -> Any:
        """Compute out * (g - sum(g * out))."""
        if not self.shape_of(g):
            return self.multiply(g, 0)
        pulled = self.multiply(g, out)
        total = self.sum(pulled, axis=axis, keepdims=True)
        return self.subtract(pulled, self.multiply(out, total))

    @in_float32
    def log_softmax(self, x: Any, *, axis: int) -> Any:
        """Compute the logarithm of softmax without leaving the logarithmic scale."""
        shape = tuple(self.shape_of(x))
        if 0 in shape:
            return self.copy(x)
        if not shape:
            return self.reshape(self.log_softmax(self.reshape(x, (1,)), axis=0), ())
        x = self.contiguous(x)
        x = self.subtract(x, self.max(x, axis=axis, keepdims=True))
        total = self.sum(self.exp(x), axis=axis, keepdims=True)
        return self.subtract(x, self.log(total))

    @in_float32
    def log_softmax_grad(self, g: Any, out: Any, *, axis: int) -> Any:
        """Compute g - softmax * sum(g)."""
        if not self.shape_of(g):
            return self.multiply(g, 0)
        total = self.sum(g, axis=axis, keepdims=True)
        return self.subtract(g, self.multiply(self.exp(out), total))

    # ---- dropout ----

    def dropout(self, x: Any, keep: Any, *, p: float) -> Any:
        """Zero what the bool buffer `keep` does not keep and scale the rest by 1 / (1 - p); its own gradient."""
        scale = 0.0 if p >= 1 else 1 / (1 - p)
        return self.multiply(x, self.multiply(self.astype(keep, self.dtype_of(x)), scale))


def _tanh_argument(k: Any, x: Any) -> Any:
    cubic = k.add(k.multiply(k.multiply(x, x), _TANH_CUBIC), 1)
    return k.multiply(k.multiply(x, cubic), _TANH_SCALE)
