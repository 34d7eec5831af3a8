"""GradScaler: losses scaled up so that small gradients survive float16, and steps skipped where they overflow.

The scale is a number of Python's. Where a step is captured it moves to the device and stays there: each replay scales by
what the last one left, and skips and adapts without the host.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from inspect import signature
from typing import Any

import mortice
from mortice import Tensor
from mortice.notice import warn

_NARROW = (mortice.float16, mortice.bfloat16)


class OptState(Enum):
    """How far an optimiser is since the last update."""

    READY, UNSCALED, STEPPED = range(3)


class _Progress:
    """What happened to an optimiser since the last update: how far it is, and whether its gradients were finite."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.overflow: Any = None  # a tensor, 1 or 0; once a step has read it, a bool


class _Held:
    """The scale and the count of updates since it changed, on a device, where replays read and write them."""

    def __init__(self, device: Any, scale: float, count: int) -> None:
        # Made at once: captured, each replay would make them anew.
        with mortice._beside_capture(device):
            self.scale = mortice.full((), scale, dtype=mortice.float32, device=device)
            self.count = mortice.full((), count, dtype=mortice.int32, device=device)
        for t in (self.scale, self.count):
            t.own_storage().pinned = True  # replays know them by their memory

    def set(self, scale: Any, count: Any = None) -> None:
        """Write a scale, and a count if one is given, where they are."""
        for t, value in ((self.scale, scale), (self.count, count)):
            if isinstance(value, Tensor):
                t.copy_(value.reshape(()))
            elif value is not None:
                t.fill_(value)

    def adapt(self, overflow: Any, growth: float, backoff: float, interval: int) -> None:
        """Shrink the scale after an overflow, grow it after as many updates without."""
        bad = overflow > 0
        grown, reached = self.scale * growth, self.count + 1 == interval
        grown = mortice.where(reached & grown.isfinite(), grown, self.scale)
        self.set(mortice.where(bad, self.scale * backoff, grown), mortice.where(bad | reached, 0, self.count + 1))


class GradScaler:
    """Scale losses, unscale gradients before a step, skip the step where they are not finite, and adapt the scale.

    Example:
        >>> import mortice as mt
        >>> p = mt.nn.Parameter(mt.ones(2))
        >>> optimizer, scaler = mt.optim.SGD([p], lr=0.1), GradScaler("cpu")
        >>> scaler.scale(p.sum()).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()

    Args:
        device: the type of the devices in use; for "cuda" without a CUDA device the scaler is disabled with a warning.
        init_scale: the first scale.
        growth_factor: the scale is multiplied by it after `growth_interval` updates in a row without overflow.
        backoff_factor: the scale is multiplied by it after an overflow.
        enabled: False makes every method pass its argument through.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not mortice.cuda.is_available():
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"GradScaler: The growth factor must be > 1.0; got {growth_factor}.")
        if backoff_factor >= 1.0:
            raise AssertionError(f"GradScaler: The backoff factor must be < 1.0; got {backoff_factor}.")
        self._init_scale = float(init_scale)
        self._scale: float | None = None  # None until the first loss is scaled
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._growth_tracker = 0
        self._held: _Held | None = None
        self._progress: defaultdict[int, _Progress] = defaultdict(_Progress)

    # ---- one iteration: scale, unscale_, step, update ----

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor, or each of an iterable of tensors, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = self._init_scale
            held = self._on_device(outputs)
            factor = self._scale if held is None else held.scale.to(outputs.device)
            # The scale need not fit into a narrow dtype, only the product.
            wide = outputs.float() if outputs.dtype in _NARROW else outputs
            return (wide * factor).to(outputs.dtype)
        if isinstance(outputs, Iterable):
            scaled = [self.scale(value) for value in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimiser's parameters by the scale, to look at or clip them before `step`."""
        if not self._enabled:
            return
        scale = self._started("unscale_")
        progress = self._progress[id(optimizer)]
        if progress.stage == OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage == OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        first = next((p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None), None)
        held = self._held if first is None else self._on_device(first)
        inverse = 1.0 / scale if held is None else held.scale.double().reciprocal().float()
        found: Any = None
        if getattr(self._unscale_grads_, "__func__", None) is not GradScaler._unscale_grads_:  # what replaces it reads tensors
            like = held.scale if held else mortice.empty((), device=None if first is None else first.device)
            inverse, found = like.new_full((), inverse) if held is None else inverse, mortice.zeros_like(like)
        progress.overflow = _together(self._unscale_grads_(optimizer, inverse, found, False).values())
        progress.stage = OptState.UNSCALED

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> dict[Any, Any]:
        """Multiply an optimiser's gradients by `inv_scale`; return for each device a tensor, 1 where one was not finite.

        Programs that keep gradients in float16 replace it, with one that calls it with `allow_fp16`.
        """
        return _unscale(_gradients(optimizer, allow_fp16), inv_scale)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients if that has not been done, and step unless one of them is not finite.

        Returns what `optimizer.step` returns, None when it was skipped.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        progress = self._progress[id(optimizer)]
        if progress.stage == OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._own_step(optimizer, progress, args, kwargs)
        if progress.stage == OptState.READY:
            self.unscale_(optimizer)
        if progress.overflow is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        progress.stage = OptState.STEPPED
        if mortice._capturing():
            return _captured_step(optimizer, progress.overflow if self._held else None, args, kwargs)
        if self._held is None:  # read once, and only now: other work may come between
            progress.overflow = bool(progress.overflow)
        return None if bool(progress.overflow) else optimizer.step(*args, **kwargs)

    def _own_step(self, optimizer: Any, progress: _Progress, args: Any, kwargs: Any) -> Any:
        """Let an optimiser step that unscales, and leaves steps out, by itself."""
        old = "grad_scaler" in signature(optimizer.step).parameters
        if old:
            kwargs["grad_scaler"] = self
        else:
            scale = getattr(optimizer, "grad_scale", None)
            if progress.stage == OptState.READY:
                gradients = _gradients(optimizer, half=True)
                progress.overflow = _together(_unscale(gradients, 1.0).values())
                scale = mortice.tensor(self.get_scale()) * (1 if scale is None else scale)
            optimizer.grad_scale, optimizer.found_inf = scale, progress.overflow
        result = optimizer.step(*args, **kwargs)
        progress.stage = OptState.STEPPED
        if not old:
            del optimizer.grad_scale, optimizer.found_inf
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adapt the scale to what the steps since the last update found, or set it."""
        if not self._enabled:
            return
        scale = self._started("update")
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                raise AssertionError(
                    "new_scale should be a float or a 1-element FloatTensor with requires_grad=False; got "
                    f"{list(new_scale.shape)} with requires_grad={new_scale.requires_grad}."
                )
            if self._held is None:
                self._scale = float(new_scale)
            else:
                self._held.set(new_scale)
        else:
            found = [p.overflow for p in self._progress.values() if p.overflow is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if self._held is None:
                self._adapt(scale, any(found))
            else:
                held = self._held
                found = [f if isinstance(f, Tensor) else held.scale.new_full((), float(f)) for f in found]
                self._held.adapt(
                    functools.reduce(mortice.maximum, [f.to(held.scale.device) for f in found]), self._growth_factor,
                    self._backoff_factor, self._growth_interval,
                )  # fmt: skip
        self._progress.clear()

    def _on_device(self, like: Any) -> _Held | None:
        """Return the scale on a device, if it is there; it goes there when work on that device is captured."""
        if self._held is None and mortice._capturing() and mortice._captures(like):
            self._held = _Held(like.device, self._started("scale"), self._growth_tracker)
        return self._held

    def _adapt(self, scale: float, overflow: bool) -> None:
        if overflow:
            self._scale, self._growth_tracker = scale * self._backoff_factor, 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            self._growth_tracker = 0
            if scale * self._growth_factor < float("inf"):
                self._scale = scale * self._growth_factor

    def _started(self, name: str) -> float:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    # ---- what it is set to ----

    def get_scale(self) -> float:
        """Return the scale, 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        if self._held is not None:
            return float(self._held.scale.item())
        return self._init_scale if self._scale is None else self._scale

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the updates without overflow after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose the updates without overflow after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Tell whether it scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and what governs it; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker if self._held is None else int(self._held.count.item()),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of `state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale = state_dict["scale"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
        if self._held is not None:
            self._held.set(float(state_dict["scale"]), int(state_dict["_growth_tracker"]))

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and self._progress:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
            )
        state = dict(self.__dict__)
        if self._enabled and self._held is not None:
            kept = self.state_dict()
            state.update(_held=None, _scale=kept["scale"], _growth_tracker=kept["_growth_tracker"])
        return state


def _gradients(optimizer: Any, half: bool = False) -> list[Any]:
    owners = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    for p in [p for p in owners if p.grad.dtype == mortice.float16]:
        if not half:
            raise ValueError("Attempting to unscale FP16 gradients.")
        if p.grad.is_sparse:
            p.grad = p.grad.coalesce()  # the sum at a place may overflow
    return [p.grad for p in owners]


def _unscale(gradients: list[Any], factor: Any) -> dict[Any, Any]:
    """Multiply gradients, in place; return for each device a tensor, 1 where one was not finite."""
    lists: dict[Any, list[Any]] = {}
    for g in [g._values() if g.is_sparse else g for g in gradients]:
        lists.setdefault(g.device, []).append(g)
    found = {}
    for device, some in lists.items():
        own = factor.to(device) if isinstance(factor, Tensor) else factor
        parts = [some] if mortice._apart(some) else [[g] for g in some]
        found[device] = _together([mortice._unscale_(part, own) for part in parts])
    return found


def _together(found: Iterable[Any]) -> Any:
    """Return 1 if one of what was found is, on the device of the first; None where there is nothing."""
    found = list(found)
    return functools.reduce(mortice.maximum, [f.to(found[0].device) for f in found]) if found else None


def _amp_foreach_non_finite_check_and_unscale_(grads: list[Any], found_inf: Any, inv_scale: Any) -> None:
    """Multiply gradients of one device by `inv_scale`, in place; set `found_inf` to 1 where one was not finite."""
    for overflow in _unscale(grads, inv_scale).values():
        found_inf.copy_(mortice.maximum(found_inf, overflow.reshape(found_inf.shape)))


def _captured_step(optimizer: Any, overflow: Any, args: Any, kwargs: Any) -> Any:
    """Step where the device finds that nothing overflowed, which is decided in each replay."""
    from mortice.optim.fused import FusedOptimizer

    if not isinstance(optimizer, FusedOptimizer) or not isinstance(overflow, Tensor):
        raise RuntimeError(
            f"GradScaler.step: expected an optimiser that can leave a step out on the device; got {type(optimizer).__name__}. "
            "Capture the work up to its gradients, and step outside."
        )
    optimizer.found_inf = overflow
    try:
        return optimizer.step(*args, **kwargs)
    finally:
        del optimizer.found_inf
