"""What the plugin takes for granted of CuPy itself; most of it can be asked without a GPU, where CuPy is installed."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")
ml_dtypes = pytest.importorskip("ml_dtypes")
if "stand-in" in (cupy.__doc__ or "") or "emulator" in (cupy.__doc__ or ""):
    pytest.skip("this is the stand-in", allow_module_level=True)

import numpy as np  # noqa: E402

PLUGIN = Path(__file__).parents[1] / "mortice_cuda_cupy"
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def _names() -> set[str]:
    """Return every dotted name that the plugin asks CuPy for."""
    found = set()
    for path in PLUGIN.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = []
            while isinstance(node, ast.Attribute):
                parts.append(node.attr)
                node = node.value
            if parts and isinstance(node, ast.Name) and node.id in ("cupy", "cupyx"):
                found.add(".".join([node.id, *reversed(parts)]))
    return found


def test_every_name_that_the_plugin_uses_is_there() -> None:
    import cupyx

    missing = []
    for name in sorted(_names()):
        value: Any = {"cupy": cupy, "cupyx": cupyx}[name.partition(".")[0]]
        for part in name.split(".")[1:]:
            try:
                value = getattr(value, part)
            except AttributeError:
                missing.append(name)
                break
    assert not missing and len(_names()) > 60


def test_functions_take_what_they_are_given() -> None:
    for name, taken in {
        "sum": "axis dtype keepdims", "prod": "axis dtype keepdims", "max": "axis keepdims", "min": "axis keepdims",
        "argmax": "axis keepdims", "cumsum": "axis dtype", "argsort": "axis", "take": "axis", "concatenate": "axis",
        "stack": "axis", "flip": "axis",
    }.items():  # fmt: skip
        assert set(taken.split()) <= set(inspect.signature(getattr(cupy, name)).parameters)
    assert cupy.cuda.get_allocator().__self__ is cupy.get_default_memory_pool()


def test_elementwise_functions_have_the_dtypes_that_are_asked_of_them() -> None:
    source = ast.parse((PLUGIN / "backend.py").read_text())
    one, two = (
        eval(compile(ast.Expression(node.value), "backend", "eval"))  # two literal tables
        for node in source.body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("_ONE", "_TWO")  # type: ignore[attr-defined]
    )
    lacking = {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}
    for native in {*one.values(), *two.values()}:
        loops = {np.dtype(t) for op in getattr(cupy, native)._ops.ops for t in op.in_types}
        assert (BFLOAT16 in loops) == (native not in lacking), native
    for lacks in (cupy.logical_not, cupy.logical_xor):
        assert not any(np.dtype(t) == BFLOAT16 for op in lacks._ops.ops for t in op.in_types)
    assert np.result_type(0.0, BFLOAT16) == np.float64  # why numbers beside bfloat16 are converted


@pytest.fixture
def array() -> Any:
    """An array of CuPy over memory of the host, of which only shape and strides are asked."""
    block = np.zeros(24, np.float32)
    memory = cupy.cuda.UnownedMemory(block.ctypes.data, block.nbytes, block, 0)
    return cupy.ndarray((4, 6), np.float32, cupy.cuda.MemoryPointer(memory, 0))


def test_views_know_what_they_are_views_of(array: Any) -> None:
    for view in (
        array[1:, ::2], array.reshape(3, 8), array.T.reshape(6, 4), cupy.broadcast_to(array, (2, 4, 6)), cupy.flip(array, 1),
        array[..., None], array[0, 0], array.view(np.uint16), array.transpose((1, 0)), array[:, 5:0:-2], array[9:],
    ):  # fmt: skip
        assert view.base is array
    assert array[0].T.base is array and array.base is None and array[0, 0].shape == ()


def test_arrays_say_quickly_whether_they_are_in_order(array: Any) -> None:
    assert array._c_contiguous and not array._f_contiguous
    assert array.T._f_contiguous and not array.T._c_contiguous and not array[:, ::2]._c_contiguous
    assert array.data.device_id == 0


def test_strided_views_have_no_base_and_take_none(array: Any) -> None:
    from cupy.lib.stride_tricks import as_strided

    view = as_strided(array, (2, 2), (4, 4))
    assert view.base is None and view.data.ptr == array.data.ptr
    with pytest.raises(AttributeError, match="not writable"):
        view.base = array
    with pytest.raises(AttributeError):
        view.anything = 1
    import weakref

    assert weakref.ref(view)() is view


def test_nothing_is_converted_to_numpy_in_silence(array: Any) -> None:
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(array)


def test_kernels_are_compiled_once_and_flush_nothing(monkeypatch: Any, tmp_path: Path) -> None:
    import nvrtc as finder

    from mortice_cuda_cupy.kernels import build

    if finder.library() is None:  # CuPy takes what is loaded
        pytest.skip("libnvrtc is not here; `make cuda` brings it")
    loaded: list[bytes] = []
    asked: list[tuple[str, ...]] = []

    class Module:
        def load(self, cubin: bytes) -> None:
            loaded.append(cubin)

        def get_function(self, name: str) -> str:
            return name

    class Device:
        compute_capability = "90"

    compiler, nvrtc = cupy.cuda.compiler, cupy.cuda.compiler.nvrtc
    compile_program = nvrtc.compileProgram
    monkeypatch.setattr(nvrtc, "compileProgram", lambda at, options: (asked.append(options), compile_program(at, options)))
    monkeypatch.setattr(compiler, "_get_arch_for_options_for_nvrtc", lambda arch=None: ("-arch=sm_90", "cubin"))
    monkeypatch.setattr(cupy.cuda, "Module", Module)
    monkeypatch.setattr(cupy.cuda, "Device", Device)
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: 0)
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 1)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kept"))
    code = "template <class T> __global__ void twice(T *x) { *x += *x; } __global__ void one(int *x) { *x = 1; }"
    names = ("twice<float>", "one", "twice<double>")
    made = []
    for _ in range(2):
        module = build.Module(code, ("-std=c++17",), names)
        made.append([module.get_function(name) for name in names])
    assert made[0] == made[1] and "twice" in made[0][0] and "one" in made[0][1] and made[0][0] != made[0][2]
    assert len(asked) == 1 and not any("ftz" in option for option in asked[0])
    assert len(loaded) == 2 and loaded[0] == loaded[1]
    # What is not whole is compiled anew.
    [file] = (tmp_path / "kept").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    build.Module(code, ("-std=c++17",), names).get_function("one")
    assert len(asked) == 2
    # A container may run as somebody who is nobody.
    for name in ("CUPY_CACHE_DIR", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    monkeypatch.chdir(tmp_path)
    build.Module(code, ("-std=c++17",), names).get_function("one")
