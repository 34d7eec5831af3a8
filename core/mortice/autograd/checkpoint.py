"""Checkpointing: forget what forward saved, and run it again when backward needs it. Public as `utils.checkpoint`."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mortice import random
from mortice.autograd.function import Function
from mortice.autograd.gradients import backward
from mortice.autograd.graph import saved_tensors_hooks
from mortice.lazy import load
from mortice.modes import enable_grad, modes
from mortice.notice import warn
from mortice.saved import modified_in_place
from mortice.tensor import TensorBase


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function differs from the first."""


class _Stop(Exception):
    """Ends a second run when everything that backward asked for is there."""


_early_stop = [True]


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Say whether second runs of what is called inside end as soon as the last saved tensor is there; on by default."""
    before, _early_stop[0] = _early_stop[0], enable
    try:
        yield
    finally:
        _early_stop[0] = before


class CheckpointPolicy(enum.Enum):
    """Whether a result is kept or computed again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told besides the operator and its arguments: the result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Return what `context_fn` gives to keep the results of some operators: of those listed, or as a policy says.

    The policy is called as `policy(context, op, *args, **kwargs)`, at each call of an operator.
    """
    return load("mortice.subclasses.selective", "contexts")(policy_fn_or_list, allow_cache_entry_mutation)  # type: ignore[no-any-return]


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return the indices of the accelerators that hold tensors among `args`, and the random state of each.

    One generator serves all devices, so each state is that one's.
    """
    devices = [a.device.index or 0 for a in args if isinstance(a, TensorBase) and a.device.type not in ("cpu", "meta")]
    return devices, [random.get_rng_state() for _ in devices]


def set_device_states(devices: list[int], states: list[Any], *, device_type: str | None = None) -> None:
    """Return to the states of `get_device_states`."""
    for _, state in zip(devices, states, strict=False):
        random.set_rng_state(state)


def _facts(t: Any) -> dict[str, Any]:
    return {"shape": tuple(t.shape), "dtype": t.dtype, "device": t.device}


class _Setting:
    """What a second run needs of the first one's surroundings: autocast, and where random numbers begin."""

    def __init__(self, preserve_rng_state: bool) -> None:
        self.rng = random.get_rng_state() if preserve_rng_state else None
        self.autocast = modes.autocast
        self.switches = None if self.autocast is None else self.autocast.switches()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Have them as they were, and record."""
        autocast = self.autocast or modes.autocast
        casts = contextlib.nullcontext() if autocast is None else autocast.switched(self.switches)
        with random.fork_rng(enabled=self.rng is not None), enable_grad(), casts:
            if self.rng is not None:
                random.set_rng_state(self.rng)
            yield


class _Run:
    """One checkpointed call: what its nodes saved is known by number only, until a second run brings the values."""

    def __init__(
        self, fn: Callable[..., Any], args: Any, kwargs: Any, setting: _Setting, context: Any, check: bool, stop: bool
    ) -> None:
        self.fn, self.args, self.kwargs, self.setting, self.context = fn, args, kwargs, setting, context
        self.check, self.stop = check, stop and _early_stop[0]
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, TensorBase)]
        self.versions = [(t, t._version) for t in tensors]
        self.facts: list[dict[str, Any]] = []
        self.values: dict[int, Any] = {}
        self.over = False  # whether the first run has ended; a gradient taken inside it begins a second one before

    def pack(self, t: Any) -> int:
        self.facts.append(_facts(t))
        return len(self.facts) - 1

    def unpack(self, number: int) -> Any:
        if number not in self.values:
            self.again()
        # Dropped at once, so that memory shrinks as backward goes; a second backward runs the function anew.
        return self.values.pop(number)

    def again(self) -> None:
        """Run the function a second time and keep what its nodes save."""
        for t, version in self.versions:
            if t._version != version:
                raise RuntimeError(modified_in_place(t.dtype, t.shape, t._version, version, t._node))
        values: dict[int, Any] = {}

        def keep(t: Any) -> Any:
            values[len(values)] = t
            if self.stop and len(values) == len(self.facts):
                raise _Stop
            return t

        with self.setting.again(), contextlib.suppress(_Stop), self.context, saved_tensors_hooks(keep, lambda t: t):
            self.fn(*self.args, **self.kwargs)
        if self.check:
            self.compare(values)
        self.values = values

    def compare(self, values: dict[int, Any]) -> None:
        if self.over and len(values) != len(self.facts):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.facts)}\nNumber of tensors saved during "
                f"recomputation: {len(values)}. Make the function do the same each time."
            )
        for i, (t, facts) in enumerate(zip(values.values(), self.facts)):
            if _facts(t) != facts:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                    f"forward pass.\ntensor at position {i}:\nsaved metadata: {facts}\nrecomputed metadata: {_facts(t)}\n"
                )


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the tensors as leaves of a graph of their own that require grad as before, and the rest as it is."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple([a.detach().requires_grad_(a._rg) if isinstance(a, TensorBase) else a for a in inputs])


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor requires grad."""
    if not any(a._rg for a in inputs if isinstance(a, TensorBase)):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


def _is_checkpoint_valid() -> bool:
    """Tell whether a running backward goes to all leaves, so that one inside it may add to their gradients; libraries ask."""
    return modes.running is None or not modes.running.selective


class CheckpointFunction(Function):
    """The reentrant kind: a node of its own whose backward runs the function and a backward inside."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        ctx.run_function, ctx.args = run_function, args
        ctx.setting = _Setting(preserve_rng_state)
        ctx.save_for_backward(*[a for a in args if isinstance(a, TensorBase)])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                "passing the `inputs` argument."
            )
        saved = iter(ctx.saved_tensors)
        args = [next(saved)._share().requires_grad_(a._rg) if isinstance(a, TensorBase) else a for a in ctx.args]
        with ctx.setting.again():
            outs = ctx.run_function(*args)
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads) if isinstance(o, TensorBase) and o._rg]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[a.grad if isinstance(a, TensorBase) else None for a in args])


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping what backward needs; backward runs it again.

    Args:
        use_reentrant: False is recommended; True is PyTorch's older way, which works with `.backward()` alone and
            needs an input that requires grad. None warns and means True.
        preserve_rng_state: whether random numbers are the same in the second run; True unless given.
    """
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        if not any(isinstance(a, TensorBase) and a._rg for a in args):
            warn("None of the inputs have requires_grad=True. Gradients will be None")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], got {determinism_check}")
    first, second = context_fn()
    if not modes.grad:
        with first:
            return function(*args, **kwargs)
    run = _Run(function, args, kwargs, _Setting(preserve), second, determinism_check == "default", early_stop)
    with saved_tensors_hooks(run.pack, run.unpack), first:
        result = function(*args, **kwargs)
    run.over = True
    return result


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run functions one after another in `segments` parts, each checkpointed but the last."""
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for step in steps[start:end]:
                x = step(x)
            return x

        return run

    size, end = len(steps) // segments, 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end, len(steps))(input)
