"""From sources to launches: which templates a source is compiled with, and geometry.

A program is compiled when it is first asked for, and the result kept on disk. Kernels go to the current stream of the
current device; nothing here waits for them. None stands for an operand that is not there. What is launched again and again with the same
sizes goes by `launcher`, whose plans are kept by what they depend on.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import struct
import threading
from collections.abc import Callable, Sequence
from importlib.resources import files
from math import prod
from typing import Any

from mortice.backends import DTYPES, DType
from mortice_cuda_cupy.kernels.build import Everywhere, Module

_BY_NAME = {d.name: d for d in DTYPES}
bfloat16, float16, float32, float64, bool_, uint8, int32, int64 = (
    _BY_NAME[n] for n in "bfloat16 float16 float32 float64 bool uint8 int32 int64".split()
)

FLOATS = {float16: "half_t", bfloat16: "bf16_t", float32: "float", float64: "double"}
INTEGERS = {int32: "int", int64: "i64"}
NAMES = {**FLOATS, **INTEGERS, bool_: "bool", uint8: "unsigned char"}  # of all types that kernels have
OPTIONS = ("-std=c++17",)
THREADS = 256
# Blocks of a kernel whose threads stride over the grid: enough to fill any device several times over.
MAX_BLOCKS = 1 << 14
PROGRAMS: list[Program] = []
build: Callable[..., Any] = Module
# A kernel is compiled when it is first asked for, which takes NVRTC a moment; with True, with all others of its source.
WHOLE_SOURCES = False


class Program:
    """A source file and the kernels wanted of it: name expressions, with {T} for the type of the elements.

    `prelude` is text that goes before the source.
    """

    def __init__(self, source: str, *kernels: str, types: Sequence[DType] = tuple(FLOATS), prelude: str = "") -> None:
        self.source, self.kernels, self.types, self.prelude = source, kernels, tuple(types), prelude
        PROGRAMS.append(self)

    def code(self) -> str:
        """Return the whole text that is compiled."""
        return _text("common.cuh") + self.prelude + f'#line 1 "{self.source}"\n' + _text(self.source)

    def expressions(self, dtype: DType) -> tuple[str, ...]:
        """Return the kernels' name expressions for elements of a dtype."""
        return tuple(kernel.replace("{T}", NAMES[dtype]) for kernel in self.kernels)

    @functools.cache  # noqa: B019  a program lives as long as the process
    def get(self, dtype: DType, kernel: str) -> Callable[..., None]:
        """Return a kernel for elements of a dtype."""
        name = kernel.replace("{T}", NAMES[dtype])
        return self._module(self.expressions(dtype) if WHOLE_SOURCES else (name,)).get_function(name)  # type: ignore[no-any-return]

    @functools.cache  # noqa: B019
    def _module(self, expressions: tuple[str, ...]) -> Any:
        return build(self.code(), OPTIONS, expressions)


@functools.cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def over_elements(n: int, each: int = 1) -> tuple[tuple[int], tuple[int]]:
    """Return grid and block for n elements, of which a thread takes `each` at a time and then strides on."""
    return (min(max(-(-n // (THREADS * each)), 1), MAX_BLOCKS),), (THREADS,)


def tiles(n: int, itemsize: int, loads: int) -> tuple[int]:
    """Return the grid for n elements, of which a thread takes `loads` times 16 bytes."""
    return (-(-n // (THREADS * loads * (16 // itemsize))),)


def over_rows(rows: int, n: int) -> tuple[tuple[int], tuple[int, int]]:
    """Return grid and block for rows of n elements: a warp each where they are short, else a block."""
    if n <= 1024:
        return (min(max(-(-rows // 8), 1), MAX_BLOCKS),), (32, 8)
    return (min(max(rows, 1), MAX_BLOCKS),), (256 if n <= 8192 else 1024, 1)


# Whether elements lie in row-major order; `flags` makes an object to say it.
in_order = operator.attrgetter("_c_contiguous")


_PLANS = 4096  # kept of each kernel


class Plans(dict):  # type: ignore[type-arg]
    """Plans by what they depend on, such as dtype and shapes; a plan is False where there is no kernel for it."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make

    def __missing__(self, key: Any) -> Any:
        if len(self) >= _PLANS:
            self.clear()
        found = self[key] = self.make(*key) or False
        return found


def _dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Any:
    """Return the axes in the order in which an array lies, and their places; None where it has gaps or lies in order."""
    axes = sorted(range(len(shape)), key=lambda i: (-strides[i], i))
    step = itemsize
    for i in reversed(axes):
        if shape[i] != 1:
            if strides[i] != step:
                return None
            step *= shape[i]
    return tuple(axes), tuple([axes.index(i) for i in range(len(axes))])


axes_of = Plans(_dense)


def dense(x: Any) -> bool:
    """Tell whether an array's elements fill its memory, in whatever order."""
    return in_order(x) or bool(axes_of[x.shape, x.strides, x.itemsize])


def all_in_order(arrays: Sequence[Any]) -> bool:
    """Tell whether all arrays lie in row-major order."""
    return all(map(in_order, arrays))


def lie_alike(arrays: Sequence[Any]) -> bool:
    """Tell whether arrays of one shape fill their memory in the same order."""
    first = arrays[0]
    return all_in_order(arrays) or (dense(first) and all([x.strides == first.strides for x in arrays]))


@functools.cache
def array_maker() -> Callable[[tuple[int, ...], Any], Any]:
    """Return `cupy.empty` for shapes that are tuples and native dtypes, without the layers of Python that it goes through."""
    import cupy

    cls = getattr(cupy, "ndarray", None)
    init = getattr(cls and cls.__mro__[1], "_init", None)
    if init is None:  # another CuPy than is known, or a stand-in
        return cupy.empty  # type: ignore[no-any-return]
    new = cls.__mro__[1].__new__  # type: ignore[union-attr]

    def make(shape: tuple[int, ...], dtype: Any) -> Any:
        x = new(cls)
        init(x, shape, dtype)
        return x

    return make


def empty(shape: Sequence[int], dtype: Any) -> Any:
    """Return new memory for an array, of a native dtype."""
    return array_maker()(shape if shape.__class__ is tuple else tuple(shape), dtype)


# ---- launches whose geometry is known ----

_MOST = 64  # parameters of a kernel


class _Words:
    """A word for each parameter of a launch, and the array of where they are; `mine` while no other launch has written there."""

    __slots__ = ("_held", "mine", "places", "words")

    def __init__(self) -> None:
        self.words, self.mine = bytearray(8 * _MOST), False
        held = (ctypes.c_char * len(self.words)).from_buffer(self.words)
        start = ctypes.addressof(held)
        self._held = held, (ctypes.c_void_p * _MOST)(*range(start, start + 8 * _MOST, 8))
        self.places = ctypes.addressof(self._held[1])


class _Thread(threading.local):
    """The words of each thread."""

    def __init__(self) -> None:
        import cupy

        # The driver asks for a context of the thread; what CuPy does has one made, but memory of its pool takes nothing.
        cupy.cuda.runtime.memGetInfo()
        self.own = _Words()


_thread = functools.cache(_Thread)
# How what each letter of `launcher` stands for is written; all take a word.
_GIVEN = {"x": "{}.data.ptr", "o": "0 if {0} is None else {0}.data.ptr", "m": "{}.ptr"}  # the rest as they are
_FORMS = {"f": "d", "i": "q"}  # the rest are words without a sign


@functools.cache
def together_at_most() -> int:
    """Return how many blocks of 256 threads with 128 registers each device here runs at a time; 0 where blocks may not wait for others."""
    import cupy

    runtime = getattr(getattr(cupy, "cuda", None), "runtime", None)
    ask = getattr(runtime, "deviceGetAttribute", None)
    if ask is None:  # a stand-in
        return 2 * 132
    multiprocessors, cooperative = 16, 95  # cudaDeviceAttr
    return min([2 * ask(multiprocessors, i) if ask(cooperative, i) else 0 for i in range(runtime.getDeviceCount())])  # type: ignore[union-attr]


def launcher(kernel: Any, grid: Any, block: Any, takes: str, *known: Any, together: bool = False) -> Callable[..., None]:
    """Return a kernel's launch in one geometry, as a function of what differs between calls.

    `takes` has a letter for each parameter: "x" an array, "o" an array or None, "m" memory by `scratch`, "i" an int, "w" a word
    without a sign, such as an address, "f" a float, and "=" the next of `known`. CuPy looks at each argument's class; here what each is
    has been decided before. With an "s", an array or None that is the same for a series of launches, what is returned takes these
    first, and returns the launch for as long as the caller holds them. With `together` all blocks run at a time or the launch fails, so
    that they may wait for each other.
    """
    if isinstance(kernel, Everywhere):
        found: dict[Any, Callable[..., Any]] = {}

        def here(*given: Any) -> Any:
            own = kernel.here()
            if own not in found:
                found[own] = launcher(own, grid, block, takes, *known, together=together)
            return found[own](*given)

        return here
    handle = getattr(kernel, "ptr", None)  # for good: programs keep their kernels
    if handle is None:  # a stand-in's
        how = {"together": True} if together else {}

        def series(*same: Any) -> Callable[..., None]:
            def launch(*given: Any) -> None:
                left = {"=": iter(known), "s": iter(same)}
                rest = iter(given)
                values = [next(left.get(letter, rest)) for letter in takes]
                kernel(grid, block, tuple([float(x) if letter == "f" else x for x, letter in zip(values, takes)]), **how)

            return launch

        return series if "s" in takes else series()
    import cupy

    sizes = [n for given in (grid, block) for n in (*given, 1, 1)[:3]]
    kinds = iter(["f" if isinstance(x, float) else "i" for x in known])
    layout = [_FORMS.get(next(kinds) if letter == "=" else letter, "Q") for letter in takes]
    pack, driver = struct.Struct(f"={''.join(layout)}").pack_into, cupy.cuda.driver
    run = driver.launchCooperativeKernel if together else driver.launchKernel
    numbers = [0 if x is None else x if isinstance(x, float) else int(x) for x in known]
    return _written(takes, together)(_thread(), cupy.cuda.get_current_stream, run, handle, *sizes, pack, *numbers)  # type: ignore[no-any-return]


@functools.cache
def _written(takes: str, together: bool) -> Any:
    """Return what makes such a function, written out: a loop over the parameters would take longer than the launch.

    A signal's handler or a finalizer that launches may come between the words and their launch: then they are written again.
    """
    names = [f"x{i}" for i in range(len(takes))]
    values = [_GIVEN.get(letter, "{}").format(name) for name, letter in zip(names, takes)]
    of = lambda letters: [name for name, letter in zip(names, takes) if letter in letters]
    known, same, given = of("="), of("s"), [name for name, letter in zip(names, takes) if letter not in "=s"]
    text = f"def make({', '.join(['here', 'stream', 'run', 'kernel', *'abcdef', 'pack', *known])}):\n"
    if same:
        text += f" def series({', '.join(same)}):\n"
        text += "".join([f"  {name} = {_GIVEN['o'].format(name)}\n" for name in same])
    text += (
        f"  def launch({', '.join(given)}):\n"
        "   at = stream().ptr\n"
        "   own = here.own\n"
        "   own.mine = False\n"
        "   while not own.mine:\n"
        "    own.mine = True\n"
        f"    pack(own.words, 0, {', '.join(values)})\n"
        f"   run(kernel, a, b, c, d, e, f, 0, at, own.places{', 0' * (not together)})\n"
        "   own.mine = False\n"
        "  return launch\n"
    )
    text += " return series\n" if same else ""
    found: dict[str, Any] = {}
    exec(text, found)
    return found["make"]


@functools.cache
def _allocator() -> Any:
    import cupy

    return getattr(getattr(cupy, "cuda", None), "alloc", None) if array_maker() is not getattr(cupy, "empty", None) else None


def scratch(size: int) -> Any:
    """Return memory of some bytes for a kernel to work in: without an array around it, which takes longer to make."""
    alloc = _allocator()
    return empty((size,), "u1") if alloc is None else alloc(size)


__all__ = [
    "FLOATS", "INTEGERS", "NAMES", "PROGRAMS", "Plans", "Program", "all_in_order", "array_maker", "axes_of", "bfloat16", "bool_", "dense",
    "empty", "float16", "float32", "float64", "in_order", "int32", "int64", "launcher", "lie_alike", "over_elements", "over_rows", "prod",
    "scratch", "tiles", "together_at_most", "uint8",
]  # fmt: skip
