"""What `affine` tells cuBLASLt, held against the library itself and its header, which `make cudnn` brings: no GPU is needed."""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import cudnn_without_gpu  # noqa: E402

pytest.importorskip("cupy", reason="CuPy is not installed here")
LIBRARIES = cudnn_without_gpu._libraries("cu13/lib/libcublasLt.so.*")
HEADERS = cudnn_without_gpu._libraries("cu13/include/cublasLt.h")
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="nvidia-cublas is not installed; `make cudnn` fetches it")


@pytest.fixture
def affine(monkeypatch: pytest.MonkeyPatch) -> Any:
    from mortice_cuda_cupy import affine, cublas

    library = ctypes.CDLL(LIBRARIES[0])
    functions: dict[str, Any] = {}

    def function(name: str) -> Any:
        if name not in functions:
            found = functions[name] = getattr(library, name)
            found.argtypes, found.restype = cublas._FUNCTIONS[name], ctypes.c_int
        return functions[name]

    monkeypatch.setattr(affine, "function", function)
    return affine


def test_descriptions_are_taken_by_the_library(affine: Any) -> None:
    how = affine.Description("MatmulDesc", 68, 0)
    for attribute in affine._TRANSPOSED:
        how.set(attribute, ctypes.c_int32(1))
    how.set(affine._EPILOGUE, ctypes.c_int32(affine._WITH_BIAS))
    how.set(affine._BIAS_POINTER, ctypes.c_uint64(1 << 20))
    with pytest.raises(affine._Unserved):
        how.set(affine._BIAS_POINTER, ctypes.c_uint32(16))  # not of its size
    assert affine.Description("MatrixLayout", 14, 3, 5, 8).at
    wanted = affine.Description("MatmulPreference")
    wanted.set(affine._MOST_WORKSPACE, ctypes.c_uint64(32 << 20))
    for attribute in affine._ALIGNMENTS:
        wanted.set(attribute, ctypes.c_uint32(16))
    read, size = ctypes.c_int32(), ctypes.c_size_t()
    get = ctypes.CDLL(LIBRARIES[0]).cublasLtMatmulDescGetAttribute
    assert not get(how.at, affine._EPILOGUE, ctypes.byref(read), ctypes.c_size_t(4), ctypes.byref(size)) and read.value == 4


@pytest.mark.skipif(not HEADERS, reason="the headers of cuBLAS are not here")
def test_numbers_are_those_of_the_header(affine: Any) -> None:
    text = Path(HEADERS[0]).read_text()
    number = lambda name: int(re.search(rf"\b{name} = (\d+)", text)[1])  # type: ignore[index]
    desc, wanted = "CUBLASLT_MATMUL_DESC_", "CUBLASLT_MATMUL_PREF_"
    assert affine._TRANSPOSED == (number(f"{desc}TRANSA"), number(f"{desc}TRANSB"))
    assert (affine._EPILOGUE, affine._BIAS_POINTER) == (number(f"{desc}EPILOGUE"), number(f"{desc}BIAS_POINTER"))
    assert affine._WITH_BIAS == number("CUBLASLT_EPILOGUE_BIAS")
    assert affine._MOST_WORKSPACE == number(f"{wanted}MAX_WORKSPACE_BYTES")
    assert affine._ALIGNMENTS == tuple(number(f"{wanted}MIN_ALIGNMENT_{x}_BYTES") for x in "ABCD")
    words = int(re.search(r"uint64_t data\[(\d+)\];\s*\} cublasLtMatmulAlgo_t", text)[1])  # type: ignore[index]
    fields = re.search(r"(\w+ \w+;[^}]*)\} cublasLtMatmulHeuristicResult_t", text[text.index("cublasLtMatmulAlgo_t algo;") :])
    assert words == 8 and fields and re.findall(r"^\s*(\w+ \w+)(?:\[\d+\])?;", fields[1], re.M) == [
        "cublasLtMatmulAlgo_t algo", "size_t workspaceSize", "cublasStatus_t state", "float wavesCount", "int reserved",
    ]  # fmt: skip
    assert ctypes.sizeof(affine._Choice) == 8 * words + 8 + 4 + 4 + 16
