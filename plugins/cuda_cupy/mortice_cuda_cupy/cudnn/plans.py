"""From a graph of cuDNN to something that runs: which of its plans is taken, the cache of those, and their launch.

Whatever depends on shapes is decided once and kept; a later call costs a look into a dict, the result's memory and the
launch. Nothing here waits for the device but the measurement that `backends.cudnn.benchmark` asks for.

Not tried for lack of a GPU: launches, their time, and whether every plan may be captured.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import cupy
import ml_dtypes
import numpy as np

from mortice.backends import cudnn as switches
from mortice.backends.services import OutOfMemoryError
from mortice.settings import settings
from mortice_cuda_cupy.cudnn.library import Place, module, refuse
from mortice_cuda_cupy.graphs import current_capture

FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = (np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
NAMES = {FLOAT16: "HALF", BFLOAT16: "BFLOAT16", FLOAT32: "FLOAT", FLOAT64: "DOUBLE"}
ALIGNED = 15  # cuDNN takes every pointer for a multiple of 16
LIMIT = 1024  # plans that a thread keeps for a device; the oldest goes
_SHARE = 16  # of the device's memory, what a plan may ask for on top
_ROUNDS = 3
_PATIENCE = 10  # plans that are measured unless `benchmark_limit` says otherwise, as in PyTorch


def setting() -> tuple[Any, ...]:
    """Return the switches that choose among plans."""
    return (
        switches.benchmark and (switches.benchmark_limit,), switches.deterministic or settings.deterministic > 0,
        switches.allow_tf32,
    )  # fmt: skip


def type_of(dtype: Any) -> Any:
    """Return cuDNN's name of a dtype."""
    return getattr(module().data_type, NAMES[dtype])


def new_graph(place: Place, dtype: Any) -> Any:
    """Start a graph whose operands have a dtype; it computes in that or in float32, whichever is wider."""
    wide = type_of(FLOAT64 if dtype == FLOAT64 else FLOAT32)
    return module().pygraph(
        io_data_type=type_of(dtype), intermediate_data_type=wide, compute_data_type=wide, **place.device
    )


def operand(graph: Any, uid: int, dims: Sequence[int], strides: Sequence[int], dtype: Any) -> Any:
    """Declare an operand; strides count elements."""
    return graph.tensor(dim=list(dims), stride=list(strides), data_type=type_of(dtype), uid=uid, name=f"operand {uid}")


def result(tensor: Any, uid: int, dims: Sequence[int], strides: Sequence[int], dtype: Any) -> None:
    """Declare what an operation returned as a result of the graph."""
    tensor.set_output(True).set_uid(uid).set_data_type(type_of(dtype)).set_dim(list(dims)).set_stride(list(strides))


def rows(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of row-major order."""
    out = [1]
    for n in reversed(shape[1:]):
        out.append(out[-1] * n)
    return tuple(out[::-1])


class Plan:
    """A graph with a plan chosen: takes the addresses of its operands in the order of their uids, which count from 1."""

    __slots__ = ("_launch", "graph", "index", "workspace")

    def __init__(self, graph: Any, index: int, count: int) -> None:
        self.graph, self.index = graph, index
        self.workspace = graph.get_workspace_size_plan_at_index(index)
        self._launch = _launcher(graph, index, count)

    def run(self, place: Place, *addresses: int) -> None:
        """Launch it on the place's stream."""
        capture = current_capture()
        if capture is not None:
            capture.pool.kept.append(self)  # the kernels that it compiled are gone with it
        if self.workspace:
            # CuPy's pool hands memory out in the order of the stream, so that it may go back at once.
            scratch = cupy.cuda.alloc(self.workspace)
            self._launch(addresses, scratch.ptr, place)
        else:
            self._launch(addresses, 0, place)


def _launcher(graph: Any, index: int, count: int) -> Callable[..., None]:
    """Return what launches a plan.

    The documented call, a dict of uids, describes every operand anew in Python, which took longer than many a kernel
    does (frontend 1.32). Its last step takes an array of addresses; where there is none, the documented call remains.
    """
    backend = getattr(graph, "_lowered_graph", None)
    launch = getattr(backend, "_execute_with_raw_ptrs", None)
    if launch is not None:
        backend._prepare_variant_pack_template()
        if list(backend._get_variant_pack_uids_sorted()) == list(range(1, count + 1)):
            slots = (ctypes.c_uint64 * count)()
            start = ctypes.addressof(slots)
            at = graph.plans[index].cpp_index
            mine = [False]  # while no other launch has written to the slots

            def by_address(addresses: Sequence[int], workspace: int, place: Place) -> None:
                # A signal's handler or a finalizer that launches it too may come between: then they are written again.
                mine[0] = False
                while not mine[0]:
                    mine[0] = True
                    slots[:] = addresses
                launch(start, count, workspace, place.number, at)
                mine[0] = False

            return by_address

    def by_uid(addresses: Sequence[int], workspace: int, place: Place) -> None:
        graph.execute_plan_at_index(dict(enumerate(addresses, 1)), workspace, index, place.handle)

    return by_uid


def make(place: Place, case: str, graph: Callable[[Place], Any], dtype: Any, addresses: Sequence[int]) -> Plan | None:
    """Choose a plan; None where there is none, with the reason noted.

    Args:
        place: where it is to run.
        case: what the graph does, for people.
        graph: builds it.
        dtype: of its operands.
        addresses: of all operands and results, in the order of their uids.
    """
    try:
        return _choose(place, graph(place), dtype, addresses)
    except Exception as error:  # whatever the frontend dislikes about a case: the core's body computes it
        refuse(case, error)
        return None


def keep(place: Place, key: Any, found: Any) -> None:
    """Remember what was decided for a key, unless it would be measured were the stream not captured."""
    if switches.benchmark and _capturing():
        return
    plans = place.plans
    if len(plans) >= LIMIT:
        del plans[next(iter(plans))]
    plans[key] = found


def launched(plan: Plan, place: Place, case: str, key: Any, *addresses: int) -> bool:
    """Run a plan; one that cuDNN cannot run after all is not asked again."""
    try:
        plan.run(place, *addresses)
    except OutOfMemoryError:
        raise
    except RuntimeError as error:
        refuse(case, error)
        place.plans[key] = None
        return False
    return True


def _capturing() -> bool:
    stream = cupy.cuda.get_current_stream()
    return bool(stream.ptr) and stream.is_capturing()


def _choose(place: Place, graph: Any, dtype: Any, addresses: Sequence[int]) -> Plan:
    """Return the first plan that can be built, or the fastest of those that are measured."""
    library = module()
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
    unwanted = _unwanted(library.numerical_note, dtype)
    if unwanted:
        graph.deselect_numeric_notes(unwanted)
    limit: float = 1
    if switches.benchmark and not _capturing():
        limit = _PATIENCE if switches.benchmark_limit is None else switches.benchmark_limit or inf
    built: list[Plan] = []
    why: Exception = RuntimeError("its heuristics propose nothing")
    for index in range(graph.get_execution_plan_count()):
        if getattr(_entry(graph, index), "cpp_index", index) is None:
            continue  # written in Python by NVIDIA, compiled by another library, and launched in another way
        try:
            graph.build_plan_at_index(index)
            one = Plan(graph, index, len(addresses))
        except Exception as error:
            why = error.with_traceback(None)  # whose frames would keep this one, and with it the operands
            continue
        if one.workspace > place.memory // _SHARE:
            why = RuntimeError(f"{one.workspace} bytes of workspace are too many")
            continue
        built.append(one)
        if len(built) >= limit:
            break
    if not built:
        raise why
    return built[0] if len(built) == 1 else _fastest(place, built, addresses)


def _entry(graph: Any, index: int) -> Any:
    plans = getattr(graph, "plans", None)  # older frontends have none
    return None if plans is None else plans[index]


def _unwanted(note: Any, dtype: Any) -> list[Any]:
    """Return the notes of plans that the switches rule out."""
    unwanted = []
    if switches.deterministic or settings.deterministic:
        unwanted.append(note.NONDETERMINISTIC)
    if dtype == FLOAT32:
        unwanted.append(note.DOWN_CONVERT_INPUTS)
        if not switches.allow_tf32:
            unwanted.append(note.TENSOR_CORE)
    return unwanted


def _fastest(place: Place, plans: Sequence[Plan], addresses: Sequence[int]) -> Plan:
    """Measure plans, each after a first run; one that fails loses."""
    best, least, why = None, inf, None
    for one in plans:
        try:
            one.run(place, *addresses)
            for _ in range(_ROUNDS):
                start, end = cupy.cuda.Event(), cupy.cuda.Event()
                start.record()
                one.run(place, *addresses)
                end.record()
                end.synchronize()
                took = cupy.cuda.get_elapsed_time(start, end)
                if took < least:
                    best, least = one, took
        except RuntimeError as error:
            why = error.with_traceback(None)
    if best is None:
        raise why or RuntimeError("no plan could be measured")
    return best
