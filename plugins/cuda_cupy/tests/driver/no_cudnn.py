"""NVIDIA's `cudnn` module with graphs that do nothing, in the shape that frontend 1.32 has: for what the host takes for a convolution.

What a graph says is not looked at; the emulator's `fake_cudnn.py` does that.
"""

from __future__ import annotations

import enum
import sys
import types
from typing import Any

runs = 0


class _Anything:
    """A tensor of a graph: whatever is set gives it back, and its uid is noted."""

    def __init__(self, uids: list[int]) -> None:
        self._uids = uids

    def __getattr__(self, name: str) -> Any:
        return lambda *values, **options: self

    def set_uid(self, uid: int) -> _Anything:
        self._uids.append(uid)
        return self


class _Lowered:
    def __init__(self, uids: list[int]) -> None:
        self._uids = uids

    def _prepare_variant_pack_template(self) -> None: ...

    def _get_variant_pack_uids_sorted(self) -> list[int]:
        return sorted(self._uids)

    def _execute_with_raw_ptrs(self, start: int, count: int, workspace: int, handle: int, at: int) -> None:
        global runs
        runs += 1


class pygraph:  # noqa: N801
    """A graph with one plan, which asks for memory to work in."""

    def __init__(self, **options: Any) -> None:
        self._uids: list[int] = []
        self._lowered_graph, self.plans = _Lowered(self._uids), [types.SimpleNamespace(cpp_index=0)]

    def __getattr__(self, name: str) -> Any:
        return lambda *values, **options: None

    def tensor(self, *, uid: int, **options: Any) -> _Anything:
        return _Anything(self._uids).set_uid(uid)

    def conv_fprop(self, **operands: Any) -> _Anything:
        return _Anything(self._uids)

    conv_dgrad = conv_wgrad = conv_fprop

    def get_execution_plan_count(self) -> int:
        return 1

    def get_workspace_size_plan_at_index(self, index: int) -> int:
        return 1 << 20


def install() -> None:
    """Put it where `import cudnn` finds it."""
    made = types.ModuleType("cudnn", __doc__)
    made.backend_version = lambda: 92800  # type: ignore[attr-defined]
    made.create_handle = lambda: types.SimpleNamespace(backend_handle=16)  # type: ignore[attr-defined]
    made.set_stream = lambda handle, stream: None  # type: ignore[attr-defined]
    made.pygraph = pygraph  # type: ignore[attr-defined]
    for name, members in (
        ("data_type", "FLOAT DOUBLE HALF BFLOAT16"), ("heur_mode", "A FALLBACK"),
        ("numerical_note", "TENSOR_CORE DOWN_CONVERT_INPUTS NONDETERMINISTIC"),
    ):  # fmt: skip
        setattr(made, name, enum.Enum(name, members))
    sys.modules["cudnn"] = made
