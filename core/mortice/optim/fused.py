"""FusedOptimizer: an optimiser whose step is one kernel over many parameters, and the checks that such optimisers share."""

from __future__ import annotations

import struct
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import mortice
from mortice import Tensor
from mortice.optim.optimizer import Optimizer

HELD = "held"  # among a plan's numbers: the one that lies on the parameter's device, in its state
_PLAIN = frozenset((float, int, bool))  # types of options that kernels take as they are


class FusedOptimizer(Optimizer):
    """A base for optimisers that only say which kernel makes their step, and from which options and state.

    A subclass names its kernel, the options that the kernel takes under their own names, and its state.
    """

    _kernel = ""
    _options: tuple[str, ...] = ()
    _averages: tuple[str, ...] = ()  # the state, where options leave out none of it
    _counts = True  # whether state has a step count
    _by_count = False  # whether plans of a group differ by nothing else

    def _start(self, group: dict[str, Any], p: Any) -> dict[str, Any]:
        """Return the state of a parameter before its first step, but for the step count."""
        return {name: zeros(p) for name in self._names(group) if name}

    def _names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        """Return which state the kernel takes, None for what options leave out."""
        return self._averages

    def _plan(self, group: dict[str, Any], p: Any) -> tuple[tuple[str | None, ...], tuple[tuple[str, Any], ...]]:
        """Return which state the kernel takes, and the numbers of this step by name.

        Parameters with the same plan share a call of the kernel.
        """
        return self._names(group), ()

    _fits = False  # whether the parameters are known to be such as `fused=True` takes
    found_inf: Any = None  # while a captured GradScaler.step runs: a tensor, not 0 where the step is to change nothing

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; a closure computes the loss anew and returns it."""
        loss = closure_loss(closure)
        if mortice._capturing():
            self._check_captured()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if group.get("fused") and not self._fits:
                check_fused_parameters(params)
                self._fits = bool(params)
            if "mortice.sparse" in sys.modules:  # else no gradient is sparse, and none need be asked
                params = self._sparse_steps(group, params)
            batches: dict[Any, list[Any]] = {}
            if params and self._counts and self._count(group, params) and self._by_count:
                batches[self._plan(group, params[0])] = params
            else:
                for p in params:
                    batches.setdefault(self._plan(group, p), []).append(p)
            for (names, numbers), members in batches.items():
                options = {}
                for name in self._options:
                    option = group[name]
                    if type(option) not in _PLAIN:
                        option = [option] * len(members) if _held(group, option, members) else value_of(group, option)
                    options[name] = option
                for name, number in numbers:
                    options[name] = [self.state[p][name] for p in members] if number is HELD else number
                if self.found_inf is not None:
                    options["skip"] = [self.found_inf] * len(members)
                states = [self.state[p] for p in members] if any(names) else []
                mortice._fused_step_(
                    self._kernel, members, [p.grad for p in members],
                    [[state[name] for state in states] if name else [] for name in names],
                    options, bool(group.get("differentiable")),
                )  # fmt: skip
        return loss

    def _sparse_steps(self, group: dict[str, Any], params: list[Any]) -> list[Any]:
        """Update the parameters whose gradients are sparse, and return the others."""
        for p in params:
            if p.grad.is_sparse:
                with mortice.no_grad():
                    self._sparse_step(group, p, -p.grad if group.get("maximize") else p.grad)
        return [p for p in params if not p.grad.is_sparse]

    def _sparse_step(self, group: dict[str, Any], p: Any, grad: Any) -> None:
        """Update one parameter by a sparse gradient; most optimisers have no such step."""
        name = type(self).__name__
        hint = ", please consider SparseAdam instead" if name == "Adam" else ". Use SparseAdam, SGD or Adagrad"
        raise RuntimeError(f"{name} does not support sparse gradients{hint}")

    def _check_captured(self) -> None:
        if not all([group.get("capturable", True) for group in self.param_groups]):
            raise RuntimeError(
                f"Attempting CUDA graph capture of step() for an instance of {type(self).__name__} but param_groups' "
                "capturable is False."
            )

    def _first(self) -> None:
        """Refuse to capture what makes state: each replay would make it anew."""
        if mortice._capturing():
            raise RuntimeError(
                f"{type(self).__name__}.step: the first step makes the optimiser's state, and each replay would make it anew. "
                "Run a step in a side stream before the capture."
            )

    def _begin(self, group: dict[str, Any], p: Any) -> None:
        self._first()
        try:
            self._hold(p, "step", 0.0, p.device if group.get("capturable") or group.get("fused") else None)
            self.state[p].update(self._start(group, p))
        except BaseException:  # an interrupt, or memory has ended: state that is there in part would not be begun again
            self.state.pop(p, None)
            raise

    # ---- numbers kept as tensors in the state: their values are known here, since reading one waits for its device ----

    def _known(self) -> defaultdict[str, dict[int, tuple[Any, int, float]]]:
        """Return (tensor, version, value) by name and parameter."""
        found = self.__dict__.get("_known_numbers")
        if found is None:
            found = self.__dict__["_known_numbers"] = defaultdict(dict)
        return found

    def _hold(self, p: Any, name: str, value: float, device: Any = None) -> None:
        """Put a number into the state."""
        double = mortice.get_default_dtype() is mortice.float64
        t = self.state[p][name] = mortice.tensor(value, dtype=mortice.float64 if double else mortice.float32, device=device)
        self._known()[name][id(p)] = (t, t._version, rounded(t.dtype, value))

    def _read(self, p: Any, name: str) -> float:
        """Return a number of the state; one that someone else wrote is read once."""
        if mortice._capturing():
            raise RuntimeError(
                f"{type(self).__name__}.step: it computes with '{name}' in Python, which a replay would repeat; it cannot be "
                "captured. Capture the rest of the step, or use Adam or AdamW with capturable=True."
            )
        t = self.state[p][name]
        known = self._known()[name]
        found = known.get(id(p))
        if found is None or found[0] is not t or found[1] != t._version:
            if not isinstance(t, Tensor):  # as PyTorch kept it once
                self._hold(p, name, float(t))
                t = self.state[p][name]
            found = known[id(p)] = (t, t._version, float(t.item()))
        return found[2]

    def _number(self, group: dict[str, Any], p: Any, name: str) -> Any:
        """Return a number of the state for a plan: HELD where it stays on the device."""
        return HELD if _stays(group, p) else self._read(p, name)

    def _write(self, p: Any, name: str, value: float) -> float:
        """Change a number of the state; return it as it is held there."""
        t = self.state[p][name]
        value = rounded(t.dtype, value)
        mortice._fused_step_("hold_step", [t], None, (), {"value": value})
        self._known()[name][id(p)] = (t, t._version, value)
        return value

    def _count(self, group: dict[str, Any], params: list[Any]) -> bool:
        """Add 1 to the step counts, and begin state that is not there; tell whether all have counted as far."""
        for p in params:
            if not self.state.get(p):
                self._begin(group, p)
        known = self._known()["step"]
        if group.get("capturable") and all([_stays(group, p) for p in params]):
            # A replay counts where Python does not see it.
            for p in params:
                known.pop(id(p), None)
                count = self.state[p]["step"]
                if not isinstance(count, Tensor) or count.device != p.device:  # loaded from where it was kept otherwise
                    self.state[p]["step"] = mortice.as_tensor(count, device=p.device)
            counts = [self.state[p]["step"] for p in params]
            if self.found_inf is None:
                mortice._fused_step_("count_step", counts, None, (), {})
            else:
                mortice._fused_step_("count_unless_step", counts, None, (), {"skip": [self.found_inf] * len(counts)})
            return True
        # What `_read` finds, without a call for each where nobody else has written.
        values, counts, capturing = [], [], mortice._capturing()
        for p in params:
            state, found = self.state[p], known.get(id(p))
            fresh = found and found[0] is state["step"] and found[1] == found[0]._version and not capturing
            values.append(found[2] if fresh else self._read(p, "step"))
            counts.append(state["step"])
        mortice._fused_step_("count_step", counts, None, (), {})
        for p, t, value in zip(params, counts, values):
            known[id(p)] = (t, t._version, value + 1)
        return not group.get("capturable") and values.count(values[0]) == len(values)


def _stays(group: dict[str, Any], p: Any) -> bool:
    """Tell whether numbers of p's state stay on its device, for captured steps to count with."""
    return bool(group.get("capturable")) and not group.get("differentiable") and mortice._captures(p)


def _held(group: dict[str, Any], option: Any, members: list[Any]) -> bool:
    """Tell whether an option is a tensor that kernels read themselves, so that it may change between replays."""
    return isinstance(option, Tensor) and all([_stays(group, p) and p.device == option.device for p in members])


def rounded(dtype: Any, value: float) -> float:
    """Return a number as float32 holds it, if that is the dtype."""
    return float(struct.unpack("f", struct.pack("f", value))[0]) if dtype is mortice.float32 else value


def value_of(group: dict[str, Any], option: Any) -> Any:
    """Return an option as kernels take it; only a differentiable step takes tensors."""
    if isinstance(option, (tuple, list)):
        return tuple([value_of(group, item) for item in option])
    if isinstance(option, Tensor) and group.get("differentiable"):
        return option
    return option.item() if hasattr(option, "item") else option  # NumPy's scalars have it too


def add_rows(p: Any, grad: Any, scale: float = 1) -> None:
    """Add a sparse tensor, times a number, to a dense one in place: only the rows that it has are touched."""
    rows = grad._indices()
    if len(rows) == 1:
        p.index_add_(0, rows[0], grad._values().to(p.dtype), alpha=scale)
    else:
        p.add_(grad, alpha=scale)


def with_values(like: Any, values: Any) -> Any:
    """Return a coalesced sparse tensor of other values at the places of `like`."""
    return mortice.sparse_coo_tensor(like.indices(), values, like.shape, is_coalesced=True)


def zeros(p: Any) -> Any:
    """Return state for a parameter: zeros in its memory format."""
    return mortice.zeros_like(p, requires_grad=False)


def closure_loss(closure: Callable[[], Any] | None) -> Any:
    """Evaluate a closure with gradients on; None without one."""
    if closure is None:
        return None
    with mortice.enable_grad():
        return closure()


# ---- checks of options ----


def check(condition: Any, text: str) -> None:
    """Refuse a bad option."""
    if not condition:
        raise ValueError(text)


def check_lr(lr: Any, message: str = "Invalid learning rate: {}") -> None:
    """Refuse a learning rate that is negative or of several elements."""
    check(not isinstance(lr, Tensor) or lr.numel() == 1, "Tensor lr must be 1-element")
    check(lr >= 0.0, message.format(lr))


def check_not_negative(**options: Any) -> None:
    """Refuse negative options."""
    for name, value in options.items():
        check(value >= 0.0, f"Invalid {'epsilon' if name == 'eps' else name} value: {value}")


def check_betas(betas: Any) -> None:
    """Refuse coefficients of running averages outside [0, 1)."""
    for i in range(2):
        check(0.0 <= betas[i] < 1.0, f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused_parameters(params: list[Any]) -> None:
    """Refuse parameters that `fused=True` has no kernel for."""
    for p in params:
        if not p.is_floating_point() or p.is_meta:
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices, which meta is not; got "
                f"{p.dtype} on {p.device}."
            )


def check_fused(options: dict[str, Any]) -> None:
    """Refuse what cannot go with `fused=True`."""
    if options["fused"] and options["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if options["fused"] and options["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
