"""Captured work: what a program does on a device is written down once and launched again as a whole.

Replaying does the same work at the same addresses: values change by writing into the tensors that were there, and every
number that Python knew at capture stays as it was. Random numbers go on from where their generators are at each replay.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from typing import Any

from mortice.autograd import Function, grad
from mortice.backends.plugins import devices_of
from mortice.cuda.devices import TYPE, place, synchronize
from mortice.cuda.memory import empty_cache
from mortice.cuda.streams import Stream, StreamContext, current_stream, is_current_stream_capturing
from mortice.modes import modes
from mortice.random import CapturedDraws, Generator
from mortice.tensor import TensorBase

__all__ = [
    "CUDAGraph", "MemPool", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables",
    "use_mem_pool",
]  # fmt: skip


def graph_pool_handle() -> Any:
    """Return memory that several captures may share, if they are replayed in the order of their capture."""
    where = place("graph_pool_handle", None)
    return where.backend.capture_pool(where)


class MemPool:
    """Memory of the current device that is kept apart; `id` is what captures take as their `pool`."""

    def __init__(self, allocator: None = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        self._place = place("MemPool", None)
        self.id = self._place.backend.capture_pool(self._place)


class use_mem_pool:
    """Let this thread's new tensors of a block have their memory from a pool."""

    def __init__(self, pool: MemPool, device: Any = None) -> None:
        self._pool = pool

    def __enter__(self) -> None:
        self._context = self._pool._place.backend.use_pool(self._pool.id)
        self._context.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._context.__exit__(*exc)


class CUDAGraph:
    """Work that was captured.

    Every generator that the work draws from is carried along: replays draw what the same work would have drawn.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        if not devices_of(TYPE):
            raise RuntimeError("cuda.CUDAGraph: requires a CUDA device; no backend offers one.")
        self._capture: Any = None
        self._work: Any = None
        self._draws: CapturedDraws | None = None

    def register_generator_state(self, generator: Generator) -> None:
        """Do nothing but check: generators that the work draws from are carried along by themselves."""
        if not isinstance(generator, Generator):
            raise TypeError(f"register_generator_state: expected a mortice.Generator; got {type(generator).__name__}.")

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Begin to capture the work of the current stream; `pool` is that of another graph or of `graph_pool_handle`."""
        if self._work is not None or self._capture is not None:
            raise RuntimeError("CUDAGraph: it holds captured work already. Call reset() first.")
        stream = current_stream()
        if modes.capture is not None:
            raise RuntimeError("CUDAGraph: this thread captures work already. End that capture first.")
        _stay_where_they_are(stream.device)
        self._capture = stream.device.backend.begin_capture(stream._queue, pool, capture_error_mode)
        self._device = stream.device
        modes.capture = self._draws = CapturedDraws(stream.device, beside_capture)

    def capture_end(self) -> None:
        """End the capture."""
        if self._capture is None:
            raise RuntimeError("CUDAGraph: nothing is being captured. Call capture_begin() first.")
        capture, self._capture = self._capture, None
        modes.capture = None
        self._work = self._device.backend.end_capture(capture)
        # What was made inside, too: a replay writes where it lies.
        _stay_where_they_are(self._device)

    def _abandon(self) -> None:
        """End a capture that an error broke off, and keep nothing of it."""
        try:
            self.capture_end()
        except Exception:  # noqa: BLE001  what broke it off is what the program is told
            self._capture = modes.capture = None
        self.reset()

    def replay(self) -> None:
        """Do the captured work again, in the current stream."""
        if self._work is None:
            raise RuntimeError("CUDAGraph: no work was captured. Use mortice.cuda.graph first.")
        if self._draws is not None:
            self._draws.replay()
        self._work.launch()

    def reset(self) -> None:
        """Forget the captured work."""
        self._work = self._draws = None

    def pool(self) -> Any:
        """Return the memory that the work uses, for other captures to share."""
        held = self._work or self._capture
        if held is None:
            raise RuntimeError("CUDAGraph: no work was captured. Use mortice.cuda.graph first.")
        return held.pool


def _stay_where_they_are(device: Any) -> None:
    """Have writes to the tensors of today go to the memory that they have: a write otherwise may bring other memory along."""
    for found in gc.get_objects():
        # By its type: isinstance asks an object for its class too, at which other libraries' may warn or import much.
        if issubclass(type(found), TensorBase) and getattr(found, "_device", None) is device:
            found.own_storage().pinned = True


@contextlib.contextmanager
def beside_capture(device: Any) -> Iterator[Stream]:
    """Do a block's work at once although this thread captures; all of it is done when the block ends.

    What it makes lies apart from the captured work's memory, which that work has written to before and will again.
    """
    backend, side = device.backend, Stream(device)
    with StreamContext(side), backend.use_pool(backend.capture_pool(device)):
        yield side
        side.synchronize()


_side: dict[Any, Stream] = {}


class graph:
    """Capture the work of a block into a CUDAGraph, in a stream of its own; a block that raises leaves the graph empty."""

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global",
        enable_annotations: bool = False, check_input_liveness: bool = False,
    ) -> None:  # fmt: skip
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        where = place("graph", None)
        if stream is None:
            stream = _side.get(where) or _side.setdefault(where, Stream(where))
        self.capture_stream, self.stream_ctx = stream, StreamContext(stream)

    def __enter__(self) -> None:
        synchronize(self.capture_stream.device)
        gc.collect()
        empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self.cuda_graph.capture_end() if exc[0] is None else self.cuda_graph._abandon()
        finally:
            self.stream_ctx.__exit__(*exc)


# ---- functions and modules ----


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """Return versions of functions or modules whose forward and backward passes are replayed.

    Arguments must be tensors of the samples' shapes, dtypes and `requires_grad`; a module is changed in place, and is
    replayed in the mode (training or not) that it has now.
    """
    single = not isinstance(callables, tuple)
    functions, samples = ((callables,), (sample_args,)) if single else (callables, sample_args)
    if len(functions) != len(samples):
        raise RuntimeError(
            f"make_graphed_callables: expected sample_args for each of {len(functions)}; got {len(samples)}."
        )
    plans = [_Plan(f, args, allow_unused_input) for f, args in zip(functions, samples)]
    pool = pool or graph_pool_handle()
    where = place("make_graphed_callables", None)
    synchronize(where)
    with StreamContext(Stream(where)):
        for plan in plans:
            for _ in range(num_warmup_iters):
                plan.warm_up()
    synchronize(where)
    # Backward passes in the other order, so that what a forward pass keeps is not overwritten before it is used.
    for plan in plans:
        plan.capture_forward(pool)
    for plan in reversed(plans):
        plan.capture_backward(pool)
    made = tuple(plan.callable() for plan in plans)
    return made[0] if single else made


class _Plan:
    """One callable, the tensors that it works on, and its two graphs."""

    def __init__(self, function: Any, args: Any, allow_unused: bool) -> None:
        self.function, self.args, self.allow_unused = function, tuple(args), allow_unused
        if not all(isinstance(a, TensorBase) for a in self.args):
            raise TypeError("make_graphed_callables: expected sample_args to be a tuple of Tensors.")
        self.module = function if hasattr(function, "parameters") and hasattr(function, "forward") else None
        self.run = self.module.forward if self.module is not None else function
        if self.module is not None and any(b.requires_grad for b in self.module.buffers()):
            raise RuntimeError("make_graphed_callables: expected buffers that do not require gradients.")
        self.inputs = (*self.args, *(self.module.parameters() if self.module is not None else ()))
        self.wanted = [i for i, t in enumerate(self.inputs) if t.requires_grad]
        self.forward, self.backward = CUDAGraph(), CUDAGraph()

    def _gradients(self, outputs: list[Any], arriving: list[Any]) -> list[Any]:
        """Return gradients of the inputs; None where none is wanted or arrives."""
        found: list[Any] = [None] * len(self.inputs)
        roots = [i for i, out in enumerate(outputs) if out.requires_grad]
        if self.wanted and roots:
            given = grad(
                [outputs[i] for i in roots], [self.inputs[i] for i in self.wanted], [arriving[i] for i in roots],
                allow_unused=self.allow_unused,
            )  # fmt: skip
            for i, g in zip(self.wanted, given):
                found[i] = g
        return found

    def warm_up(self) -> None:
        """Run both passes once, so that whatever is made at the first use is there."""
        outputs = _tensors(self.run(*self.args))
        self._gradients(outputs, [out.detach().clone() for out in outputs])

    def capture_forward(self, pool: Any) -> None:
        """Capture the forward pass."""
        with graph(self.forward, pool):
            self.result = self.run(*self.args)
        self.outputs = _tensors(self.result)
        self.arriving = [out.detach().clone() for out in self.outputs]

    def capture_backward(self, pool: Any) -> None:
        """Capture the backward pass, from gradients that will be written to `arriving`."""
        with graph(self.backward, pool):
            self.gradients = self._gradients(self.outputs, self.arriving)
        self.shown = [out.detach() for out in self.outputs]

    def callable(self) -> Any:
        """Return what replays; for a module the module itself."""
        plan = self

        class Graphed(Function):
            """Both passes by replay."""

            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                for mine, given in zip(plan.args, inputs):
                    if mine.shape != given.shape or mine.dtype is not given.dtype:
                        raise RuntimeError(
                            f"make_graphed_callables: expected {mine.dtype} {tuple(mine.shape)} as in sample_args; got "
                            f"{given.dtype} {tuple(given.shape)}."
                        )
                    if given is not mine:
                        mine.detach().copy_(given)
                plan.forward.replay()
                return tuple(out.detach() for out in plan.shown)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                for mine, given in zip(plan.arriving, grads):
                    if given is not None:
                        mine.copy_(given)
                    else:
                        mine.zero_()
                plan.backward.replay()
                # Copies: the next replay writes over what is here, and a gradient may be kept until after it.
                return tuple(None if g is None else g.detach().clone() for g in plan.gradients)

        def replayed(*args: Any) -> Any:
            if len(args) != len(plan.args):
                raise TypeError(
                    f"make_graphed_callables: expected {len(plan.args)} tensors as in sample_args; got {len(args)}."
                )
            outputs = Graphed.apply(*args, *plan.inputs[len(plan.args) :])
            return _rebuilt(plan.result, iter(outputs if isinstance(outputs, tuple) else (outputs,)))

        if self.module is None:
            return replayed
        module, eager, training = weakref.proxy(self.module), self.run, self.module.training
        self.module.forward = lambda *args: replayed(*args) if module.training == training else eager(*args)
        return self.module


def _tensors(result: Any) -> list[Any]:
    """Return the tensors of a result: one, or those in tuples, lists and dicts."""
    if isinstance(result, TensorBase):
        return [result]
    if isinstance(result, dict):
        return [t for part in result.values() for t in _tensors(part)]
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in _tensors(part)]
    raise TypeError(
        f"make_graphed_callables: expected tensors, in tuples, lists or dicts, as results; got {type(result).__name__}."
    )


def _rebuilt(like: Any, tensors: Any) -> Any:
    """Put tensors where those of a result were."""
    if isinstance(like, dict):
        return {key: _rebuilt(part, tensors) for key, part in like.items()}
    if isinstance(like, (tuple, list)):
        parts = [_rebuilt(part, tensors) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
    return next(tensors)
