"""The conformance kit with CuPy itself on a driver that does nothing: prints what CuPy or the plugin raised, and what strayed.

Values are not compared, as there are none. What fails for want of them, in the core or in the kit, does not count; what
CuPy does by other libraries (FFT, long sorts) is left out. Every check runs in a stream of its own, to which all its
work must go, and what ops do with float32 is captured too: that goes through, or is refused before CUDA does.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import stub

COUNTS = stub.install(Path(sys.argv[1]))
stub.plugin()

import cupy  # noqa: E402
import cupy_backends  # noqa: E402

import mortice_cuda_cupy  # noqa: E402
from mortice import cuda  # noqa: E402
from mortice.backends import services  # noqa: E402
from mortice_conformance import catalog, record, runner  # noqa: E402
from mortice_conformance.subject import Failure, Skip, Subject  # noqa: E402

OURS = tuple([str(Path(m.__file__).parent) for m in (cupy, cupy_backends, mortice_cuda_cupy)])
OF_OTHERS = ("libcufft", "inside CUB", "radix_sort", "merge_sort", "libcurand", "libcusolver")
REFUSED = "not permitted when stream is capturing"


def blamed(error: Exception) -> bool:
    """Tell whether it was CuPy or the plugin that raised, and not for want of values or of other libraries."""
    if isinstance(error, (Skip, AssertionError, services.OutOfMemoryError)) or any(
        name in str(error) for name in OF_OTHERS
    ):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return last.startswith(OURS) or last.startswith("cupy")  # Cython names its sources


def captured(subject: Subject, sample: record.Sample) -> None:
    """Capture what a sample's first case does with float32, after it ran."""
    dtype = catalog.representative(sample, subject.available)
    if dtype is None or (sample.call is None and sample.record is None):
        return
    case = sample.cases[0]
    tensors = subject.operands(sample, case, dtype)[1]
    sample.apply(tensors, case.attrs)
    graph = cuda.CUDAGraph()
    try:
        with cuda.graph(graph):
            sample.apply(tensors, case.attrs)
    except RuntimeError as error:
        if REFUSED not in str(error):
            raise
    else:
        graph.replay()


def zeros(size: int) -> Any:
    """Allocate memory that is zero: what was there before may be a size that nobody has."""
    made = cupy.get_default_memory_pool().malloc(size)
    if size:
        ctypes.memset(made.ptr, 0, size)
    return made


def main() -> None:
    """Run everything."""
    subject, failed, strayed = Subject("cuda_cupy"), [], []
    cupy.cuda.set_allocator(zeros)
    Subject.close = lambda *args, **numbers: None  # type: ignore[method-assign]
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    side = cuda.Stream()
    items: list[tuple[str, Any]] = [
        (item.id, lambda item=item: runner.execute(item, subject)) for item in catalog.catalog(subject)
    ]
    samples = record.load_samples().values()
    items += [(f"captured[{sample.id}]", lambda sample=sample: captured(subject, sample)) for sample in samples]
    gc.freeze()  # each capture begins with a collection, which would go through the whole catalog
    for name, run in items:
        if only not in name:
            continue
        own = 0 if "stream" in name or "thread" in name or name.startswith("captured") else side.cuda_stream
        try:
            with cuda.stream(side):
                stub.strays(own)
                run()
        except (Skip, Failure):
            pass
        except Exception as error:
            if blamed(error):
                failed.append(f"{name}\n{traceback.format_exc()}")
        if stub.strays(0):
            strayed.append(name)
    print(
        json.dumps({"ran": len(items), "failed": failed, "strayed": strayed, **{n: c.value for n, c in COUNTS.items()}})
    )


main()
