"""FREE kernels of optimiser steps: one call updates all parameters of a group, so a backend can do it in one pass.

A kernel takes lists of buffers (parameters, gradients, then each kind of state; an empty list where an option leaves
that state out) and the step's numbers; of a backend that captures work, a number may be a list with a one-element
buffer for each parameter, which a replay reads anew, and the number `skip`, which no rule knows, leaves a parameter and its
state as they are where it is not 0. It returns the changed lists, parameters and state in the order they came; a
mutable backend may write them in place. Below, each is the rule for one parameter; `run_step` repeats it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mortice.backends.kernel_tools import KernelMixin
from mortice.dtype import DType, bfloat16, float32

Rule = Callable[..., tuple[Any, ...]]
Pair = tuple[float, float]


def step(rule: Rule) -> Rule:
    """Make a kernel over lists from the elementwise rule for one parameter; complex ones are seen as pairs of reals."""
    return _kernel(rule, True)


def whole_step(rule: Rule) -> Rule:
    """Make a kernel over lists from a rule that must see the whole parameter at once."""
    return _kernel(rule, False)


def _kernel(rule: Rule, elementwise: bool) -> Rule:
    @functools.wraps(rule)
    def kernel(self: Any, *lists: Sequence[Any], **numbers: Any) -> tuple[list[Any], ...]:
        return self.run_step(rule, lists, numbers, elementwise)  # type: ignore[no-any-return]

    return kernel


def uphill(k: Any, p: Any, g: Any, weight_decay: Any, maximize: bool) -> Any:
    """Return the gradient to descend: of the opposite to maximise, with weight decay in it."""
    if maximize:
        g = k.negative(g)
    return k.plus(g, p, weight_decay) if weight_decay else g


def decay(k: Any, p: Any, g: Any, lr: Any, weight_decay: Any, decoupled: bool, maximize: bool) -> tuple[Any, Any]:
    """Apply weight decay to the parameter itself when decoupled, else to the gradient; return both."""
    if decoupled and weight_decay:
        p = k.multiply(p, 1 - lr * weight_decay)
    return p, uphill(k, p, g, 0 if decoupled else weight_decay, maximize)


def low_precision(k: Any, x: Any) -> DType:
    """Return bfloat16 where x's device has it, else float32."""
    device = k.device_of(x)
    return bfloat16 if bfloat16 in device.backend.dtypes(device) else float32


def orthogonalized(k: Any, x: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """Approach the orthogonal matrix nearest to x by a quintic Newton-Schulz iteration, rounded to bfloat16."""
    a, b, c = coefficients
    rows, columns = k.shape_of(x)
    low = low_precision(k, x)

    def rounded(y: Any) -> Any:
        return k.astype(k.astype(y, low), float32)

    y = rounded(k.matrix_transpose(x) if rows > columns else x)
    y = rounded(k.divide(y, k.maximum(rounded(norm(k, y)), eps)))
    for _ in range(steps):
        gram = rounded(k.matmul(y, k.matrix_transpose(y)))
        update = rounded(k.add(k.multiply(gram, b), k.multiply(k.matmul(gram, gram), c)))
        y = rounded(k.add(k.multiply(y, a), k.matmul(update, y)))
    return k.astype(k.matrix_transpose(y) if rows > columns else y, k.dtype_of(x))


def norm(k: Any, x: Any) -> Any:
    """Return the square root of the sum of squares, without dims."""
    return k.sqrt(k.sum(k.multiply(x, x), axis=None))


def mean_square(k: Any, x: Any, axis: int) -> Any:
    """Return the mean of squares along an axis, which stays."""
    return k.divide(k.sum(k.multiply(x, x), axis=axis, keepdims=True), k.shape_of(x)[axis])


class Held:
    """A number in the memory of a device, with the arithmetic that rules do on numbers."""

    def __init__(self, k: Any, x: Any) -> None:
        self.k, self.x = k, x

    def _with(self, kernel: str, *operands: Any) -> Held:
        return Held(self.k, getattr(self.k, kernel)(*[o.x if isinstance(o, Held) else o for o in operands]))

    def __add__(self, y: Any) -> Held:
        return self._with("add", self, y)

    def __sub__(self, y: Any) -> Held:
        return self._with("subtract", self, y)

    def __rsub__(self, y: Any) -> Held:
        return self._with("subtract", y, self)

    def __mul__(self, y: Any) -> Held:
        return self._with("multiply", self, y)

    def __truediv__(self, y: Any) -> Held:
        return self._with("divide", self, y)

    def __rtruediv__(self, y: Any) -> Held:
        return self._with("divide", y, self)

    def __pow__(self, y: Any) -> Held:
        return self._with("pow", self, y)

    def __rpow__(self, y: Any) -> Held:
        return self._with("pow", y, self)

    __radd__, __rmul__ = __add__, __mul__


def held_number(k: Any, x: Any) -> Held:
    """Return the number in a buffer of one element, counted with as exactly as its device can."""
    return Held(k, k.astype(k.reshape(x, ()), k.device_of(x).widest_float))


def unless(k: Any, skip: Any, out: Any, old: Any) -> Any:
    """Return what a step makes, or what was there where the number in a buffer of one element is not 0."""
    return k.where(k.not_equal(k.reshape(skip, ()), 0), old, out)


class _Taking:
    """Kernels of a backend that take Held numbers beside buffers."""

    def __init__(self, k: Any) -> None:
        self._k = k

    def __getattr__(self, name: str) -> Any:
        kernel, k = getattr(self._k, name), self._k

        def call(*operands: Any) -> Any:
            held = [isinstance(o, Held) for o in operands]
            if not any(held):
                return kernel(*operands)
            like = next(k.dtype_of(o) for o, h in zip(operands, held) if not h and not isinstance(o, (bool, int, float)))
            return kernel(*[k.astype(o.x, like) if h else o for o, h in zip(operands, held)])

        return call


class OptimKernels(KernelMixin):
    """The steps; state is called what PyTorch's state_dict calls it, numbers what the optimiser's options are."""

    def run_step(
        self, rule: Rule, lists: Sequence[Sequence[Any]], numbers: dict[str, Any], elementwise: bool
    ) -> tuple[list[Any], ...]:
        """Apply a rule to each parameter in turn; a faster way to do so speeds up every step.

        An elementwise rule may be given any part of a parameter, with the same part of its gradient and state.
        """
        results: tuple[list[Any], ...] = tuple([] for _ in lists[1:])
        skip = numbers.get("skip")
        numbers = {name: value for name, value in numbers.items() if name != "skip"}
        held = {name: value for name, value in numbers.items() if type(value) is list}
        k = _Taking(self) if held else self
        for i, p in enumerate(lists[0]):
            operands = [buffers[i] if buffers else None for buffers in lists]
            pairs = elementwise and self.dtype_of(p).is_complex
            if pairs:
                operands = [None if x is None else self.view_as_real(x) for x in operands]
            own = {name: held_number(self, value[i]) for name, value in held.items()}
            changed = [operands[0], *operands[2:]]
            for made, out, old in zip(results, rule(k, *operands, **{**numbers, **own}), changed):
                if out is not None:
                    out = out if skip is None else unless(self, skip[i], out, old)
                    made.append(self.view_as_complex(out) if pairs else out)
        return results

    # What changes a parameter or its state. A rule does not look at x again, so a backend's `run_step` may hand rules a
    # namespace that writes x in place and returns it.

    def toward(self, x: Any, y: Any, weight: Any) -> Any:
        """Go the share `weight` of the way from x to y."""
        return self.lerp(x, y, weight)

    def toward_square(self, x: Any, y: Any, keep: Any) -> Any:
        """Keep the share `keep` of x and take the rest from y's square."""
        return self.addcmul(self.multiply(x, keep), y, y, 1 - keep)

    def fade(self, x: Any, keep: Any, y: Any) -> Any:
        """Keep the share `keep` of x and add y."""
        return self.add(self.multiply(x, keep), y)

    def plus(self, x: Any, y: Any, times: Any) -> Any:
        """Add y * times to x, which stays as it was; rounded once where addcmul is."""
        return self.addcmul(x, y, times, 1)

    def downhill(self, x: Any, direction: Any, length: Any) -> Any:
        """Move x against a direction."""
        return self.addcmul(x, direction, length, -1)

    def count_step(self, counts: Sequence[Any]) -> tuple[list[Any]]:
        """Add 1 to step counts."""
        return ([self.add(count, 1) for count in counts],)

    def count_unless_step(self, counts: Sequence[Any], *, skip: Sequence[Any]) -> tuple[list[Any]]:
        """Add 1 to step counts where the number in `skip` is 0."""
        return ([unless(self, no, self.add(count, 1), count) for count, no in zip(counts, skip)],)

    def scale_step(self, xs: Sequence[Any], *, factor: Sequence[Any]) -> tuple[list[Any]]:
        """Multiply each of xs by its factor, a buffer of its dtype without dims."""
        return ([self.multiply(x, f) for x, f in zip(xs, factor)],)

    def unscale_step(self, xs: Sequence[Any], *, factor: Any) -> tuple[list[Any], Any]:
        """Multiply each of xs by a number, or by a buffer of one; return also a float32, 1 if an element was not finite, else 0."""
        made, finite = [], []
        for x in xs:
            finite.append(self.all(self.isfinite(x)))
            own = self.dtype_of(x)
            wide, held = float32 if own.itemsize == 2 else own, type(factor) is not float
            y = self.multiply(self.astype(x, wide), self.astype(self.reshape(factor, ()), wide) if held else factor)
            made.append(self.astype(y, own) if wide is not own else y)
        return made, self.astype(self.logical_not(functools.reduce(self.logical_and, finite)), float32)

    def each_step(self, name: str, lists: Sequence[Sequence[Any]], numbers: Sequence[float]) -> Sequence[Any]:
        """Change the floats of lists[0], by those of the other lists, which have the same shapes, and numbers; return them."""
        raise NotImplementedError(name)

    def vector_norms(self, xs: Sequence[Any], *, p: float) -> Any:
        """Return the norms of all xs in one buffer."""
        return self.stack([self.vector_norm(x, p=p) for x in xs], 0)

    def hold_step(self, numbers: Sequence[Any], *, value: float) -> tuple[list[Any]]:
        """Put a value into buffers that hold a number of the state."""
        return ([self.full_like(number, value) for number in numbers],)

    @step
    def sgd_step(
        self, p: Any, g: Any, momentum_buffer: Any, *, lr: float, momentum: float, dampening: float,
        weight_decay: float, nesterov: bool, maximize: bool, first: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Step down the gradient, with momentum if its buffers are given; `first` starts them with the gradient."""
        k, m = self, momentum_buffer
        g = uphill(k, p, g, weight_decay, maximize)
        if m is not None:
            m = k.copy(g) if first else k.plus(k.multiply(m, momentum), g, 1 - dampening) if dampening else k.fade(m, momentum, g)
            g = k.plus(g, m, momentum) if nesterov else m
        return k.downhill(p, g, lr), m

    @step
    def asgd_step(
        self, p: Any, g: Any, ax: Any, *, lambd: float, weight_decay: float, maximize: bool, eta: float, mu: float
    ) -> tuple[Any, ...]:
        """Step by `eta` and let the average follow by the share `mu`."""
        g = uphill(self, p, g, weight_decay, maximize)
        p = self.downhill(self.multiply(p, 1 - lambd * eta), g, eta)
        return p, self.copy(p) if mu == 1 else self.add(ax, self.multiply(self.subtract(p, ax), mu))

    @step
    def adam_step(
        self, p: Any, g: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any, *, lr: float, betas: Pair,
        eps: float, weight_decay: float, decoupled_weight_decay: bool, maximize: bool, step: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Take step number `step` of Adam, or of AdamW when decay is decoupled; amsgrad if it has maxima."""
        k, beta1, beta2 = self, *betas
        p, g = decay(k, p, g, lr, weight_decay, decoupled_weight_decay, maximize)
        m = k.toward(exp_avg, g, 1 - beta1)
        v = k.toward_square(exp_avg_sq, g, beta2)
        top = None if max_exp_avg_sq is None else k.maximum(max_exp_avg_sq, v)
        bottom = k.add(k.divide(k.sqrt(v if top is None else top), (1 - beta2**step) ** 0.5), eps)
        return k.downhill(p, k.divide(k.multiply(m, lr / (1 - beta1**step)), bottom), 1), m, v, top

    @step
    def adamax_step(
        self, p: Any, g: Any, exp_avg: Any, exp_inf: Any, *, lr: float, betas: Pair, eps: float, weight_decay: float,
        maximize: bool, step: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Take a step of Adam with the largest gradient so far, slowly forgotten, in place of the root of squares."""
        k, beta1, beta2 = self, *betas
        m = k.toward(exp_avg, g := uphill(k, p, g, weight_decay, maximize), 1 - beta1)
        u = k.maximum(k.multiply(exp_inf, beta2), k.add(k.abs(g), eps))
        return k.downhill(p, k.divide(k.multiply(m, lr / (1 - beta1**step)), u), 1), m, u

    @step
    def nadam_step(
        self, p: Any, g: Any, exp_avg: Any, exp_avg_sq: Any, *, lr: float, betas: Pair, eps: float,
        weight_decay: float, decoupled_weight_decay: bool, maximize: bool, step: float, mu: float, next_mu: float,
        mu_product: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Take a step of Adam with Nesterov's momentum; `mu_product` is the product of the momenta to this step."""
        k, beta1, beta2 = self, *betas
        p, g = decay(k, p, g, lr, weight_decay, decoupled_weight_decay, maximize)
        m = k.toward(exp_avg, g, 1 - beta1)
        v = k.toward_square(exp_avg_sq, g, beta2)
        bottom = k.add(k.sqrt(k.divide(v, 1 - beta2**step)), eps)
        p = k.downhill(p, k.divide(k.multiply(g, lr * (1 - mu) / (1 - mu_product)), bottom), 1)
        return k.downhill(p, k.divide(k.multiply(m, lr * next_mu / (1 - mu_product * next_mu)), bottom), 1), m, v

    @step
    def radam_step(
        self, p: Any, g: Any, exp_avg: Any, exp_avg_sq: Any, *, lr: float, betas: Pair, eps: float,
        weight_decay: float, decoupled_weight_decay: bool, maximize: bool, step: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Take a step of Adam that leaves the adaptive part out until its variance is known, then rectifies it."""
        k, beta1, beta2 = self, *betas
        p, g = decay(k, p, g, lr, weight_decay, decoupled_weight_decay, maximize)
        m = k.toward(exp_avg, g, 1 - beta1)
        v = k.toward_square(exp_avg_sq, g, beta2)
        whole, left = k.multiply(k.divide(m, 1 - beta1**step), lr), 1 - beta2**step
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / left  # of the average that approximates the moving one
        counted = isinstance(length, float)  # here; otherwise only the device knows
        if counted and length <= 5:
            return k.downhill(p, whole, 1), m, v
        rectified = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
        adapted = k.multiply(k.divide(1.0, k.add(k.sqrt(v), eps)), left**0.5)
        made = k.multiply(k.multiply(whole, adapted), rectified**0.5)
        return k.downhill(p, made if counted else k.where(k.less(5, length), made, whole), 1), m, v

    @step
    def rmsprop_step(
        self, p: Any, g: Any, square_avg: Any, momentum_buffer: Any, grad_avg: Any, *, lr: float, alpha: float,
        eps: float, weight_decay: float, momentum: float, maximize: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Divide the gradient by the root of its mean square; centred if it has means, with momentum if it has buffers."""
        k, m = self, momentum_buffer
        g = uphill(k, p, g, weight_decay, maximize)
        v = variance = k.toward_square(square_avg, g, alpha)
        if grad_avg is not None:
            grad_avg = k.toward(grad_avg, g, 1 - alpha)
            variance = k.plus(v, k.negative(grad_avg), grad_avg)
        bottom = k.add(k.sqrt(variance), eps)
        if m is None:
            return k.downhill(p, k.divide(k.multiply(g, lr), bottom), 1), v, m, grad_avg
        m = k.fade(m, momentum, k.divide(g, bottom))
        return k.downhill(p, m, lr), v, m, grad_avg

    @step
    def adagrad_step(
        self, p: Any, g: Any, total: Any, *, lr: float, lr_decay: float, weight_decay: float, eps: float,
        maximize: bool, step: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Divide the gradient by the root of the sum of all its squares."""
        k, g = self, uphill(self, p, g, weight_decay, maximize)
        v = k.plus(total, g, g)
        return k.downhill(p, k.divide(k.multiply(g, lr / (1 + (step - 1) * lr_decay)), k.add(k.sqrt(v), eps)), 1), v

    @step
    def adadelta_step(
        self, p: Any, g: Any, square_avg: Any, acc_delta: Any, *, lr: float, rho: float, eps: float,
        weight_decay: float, maximize: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Divide the gradient by the root of its mean square, times that of the changes so far."""
        k, g = self, uphill(self, p, g, weight_decay, maximize)
        v = k.toward_square(square_avg, g, rho)
        change = k.multiply(k.divide(k.sqrt(k.add(acc_delta, eps)), k.sqrt(k.add(v, eps))), g)
        return k.downhill(p, change, lr), v, k.toward_square(acc_delta, change, rho)

    @step
    def rprop_step(
        self, p: Any, g: Any, prev: Any, step_size: Any, *, etas: Pair, step_sizes: Pair, maximize: bool
    ) -> tuple[Any, ...]:
        """Step by the sign of the gradient; steps grow while it stays and shrink where it turns."""
        k, g = self, uphill(self, p, g, 0, maximize)
        agreement = k.multiply(g, prev)
        turned, stayed = k.less(agreement, 0), k.less(0, agreement)
        factor = k.where(turned, etas[0], k.where(stayed, etas[1], k.ones_like(g)))
        size = k.minimum(k.maximum(k.multiply(step_size, factor), step_sizes[0]), step_sizes[1])
        g = k.where(turned, 0, g)
        return k.subtract(p, k.multiply(k.sign(g), size)), g, size

    @whole_step
    def adafactor_step(
        self, p: Any, g: Any, row_var: Any, col_var: Any, variance: Any, *, lr: float, beta2_decay: float,
        eps: tuple[float, float], d: float, weight_decay: float, maximize: bool, step: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Take a step with the squares of a matrix's gradient known by rows and columns only; others have `variance`."""
        k, (eps1, eps2) = self, eps
        root = max(1, functools.reduce(lambda n, m: n * m, k.shape_of(p), 1)) ** 0.5
        size = k.maximum(k.divide(norm(k, p), root), eps2)
        p, g = decay(k, p, g, lr, weight_decay, True, maximize)
        new = step**beta2_decay
        if variance is None:
            row_var = k.toward(row_var, mean_square(k, g, -1), new)
            col_var = k.toward(col_var, mean_square(k, g, -2), new)
            total = k.sum(row_var, axis=-2, keepdims=True)
            average = k.divide(total, k.shape_of(row_var)[-2])
            estimate = k.divide(k.matmul(row_var, col_var), k.maximum(average, eps1))
        else:
            estimate = variance = k.toward(variance, k.multiply(g, g), new)
        update = k.divide(g, k.sqrt(k.maximum(estimate, eps1 * eps1)))
        clipped = k.maximum(k.divide(norm(k, update), root * d), 1)
        length = k.divide(k.multiply(size, min(lr, step**-0.5)), clipped)
        return k.subtract(p, k.multiply(update, length)), row_var, col_var, variance

    @whole_step
    def muon_step(
        self, p: Any, g: Any, momentum_buffer: Any, *, lr: float, weight_decay: float, momentum: float,
        nesterov: bool, ns_coefficients: tuple[float, float, float], eps: float, ns_steps: int, scale: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Step a matrix along its momentum made orthogonal, `scale` times as far as the learning rate says."""
        k = self
        m = k.toward(momentum_buffer, g, 1 - momentum)
        update = orthogonalized(k, k.toward(g, m, momentum) if nesterov else m, ns_coefficients, ns_steps, eps)
        return k.downhill(k.multiply(p, 1 - lr * weight_decay), update, lr * scale), m
