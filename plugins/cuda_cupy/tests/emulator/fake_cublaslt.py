"""A stand-in for what the plugin calls of cuBLASLt, over NumPy: descriptions by number, and products with a bias."""

from __future__ import annotations

import ctypes
from typing import Any

_SIZES = {"MatmulDesc": {3: 4, 4: 4, 7: 4, 8: 8}, "MatmulPreference": {1: 8, **dict.fromkeys((5, 6, 7, 8), 4)}}


class CublasLt:
    """cuBLASLt for a stand-in of cuBLAS, whose handles it takes."""

    def __init__(self, cublas: Any) -> None:
        self._cublas = cublas
        self.held: dict[int, Any] = {}
        self._next = 0x100

    def functions(self) -> dict[str, Any]:
        """Return the functions by name."""
        found: dict[str, Any] = {"cublasLtMatmulAlgoGetHeuristic": self._choose, "cublasLtMatmul": self._matmul}
        for kind in ("MatmulDesc", "MatrixLayout", "MatmulPreference"):
            found[f"cublasLt{kind}Create"] = lambda place, *numbers, kind=kind: self._create(kind, place, numbers)
            found[f"cublasLt{kind}SetAttribute"] = self._set
            found[f"cublasLt{kind}Destroy"] = lambda at: self.held.pop(_number(at)) and None
        return found

    def _create(self, kind: str, place: Any, numbers: Any) -> None:
        place._obj.value = self._next
        self.held[self._next] = {"kind": kind, "numbers": numbers}
        self._next += 16

    def _set(self, at: Any, attribute: int, value: Any, size: int) -> int:
        held = self.held[_number(at)]
        if _SIZES[held["kind"]].get(attribute) != size:
            return 7
        held[attribute] = value._obj.value
        return 0

    def _choose(self, handle: int, how: Any, a: Any, b: Any, c: Any, d: Any, wanted: Any, most: int, choice: Any, found: Any) -> int:
        if ctypes.sizeof(choice._obj) != 96 or self.held[_number(how)][8] % 16 or not self.held[_number(wanted)][1]:
            return 7
        choice._obj.algorithm[0], found._obj.value = 0x5EED, 1
        return 0

    def _matmul(self, handle: int, how: Any, one: int, a: int, lay_a: Any, b: int, lay_b: Any, zero: int, c: int, lay_c: Any,
                d: int, lay_d: Any, choice: Any, room: int, size: int, stream: int) -> int:  # fmt: skip
        how, (kind, rows, columns, lead) = self.held[_number(how)], self.held[_number(lay_d)]["numbers"]
        compute, scale = how["numbers"]
        of_a, of_b = (self.held[_number(x)]["numbers"] for x in (lay_a, lay_b))
        turned = how.get(3, 0), how.get(4, 0)
        inner = of_a[1] if turned[0] else of_a[2]
        if (of_a[2] if turned[0] else of_a[1]) != rows or (of_b[1] if turned[1] else of_b[2]) != columns:
            return 7
        if inner != (of_b[2] if turned[1] else of_b[1]) or scale != 0 or choice._obj.algorithm[0] != 0x5EED or how[7] != 4:
            return 7
        if (room, size) != self._cublas._rooms[handle] or stream != self._cublas._streams[handle]:
            raise RuntimeError("emulator: a map works elsewhere than the handle's products")
        numbers = (*turned, rows, columns, inner, one, a, kind, of_a[3], 0, b, kind, of_b[3], 0, zero, d, kind, lead, 0, 1, compute, -1)
        return self._cublas._many(handle, *numbers, bias=how[8])  # type: ignore[no-any-return]


def _number(at: Any) -> int:
    return at.value if isinstance(at, ctypes.c_void_p) else at
