"""The kit as pytest tests: each takes one item of the catalog. What is checked is in `checks` and `suites`."""

from __future__ import annotations

from typing import Any

import pytest

from mortice_conformance.runner import execute
from mortice_conformance.subject import Skip


def _run(mortice_item: Any) -> None:
    __tracebackhide__ = True
    subject, item = mortice_item
    try:
        execute(item, subject)
    except Skip as skip:
        pytest.skip(str(skip))


# ---- L0, L1 ----


def test_storage(mortice_item: Any) -> None:
    _run(mortice_item)


def test_kernel(mortice_item: Any) -> None:
    _run(mortice_item)


# ---- L2: from the samples ----


def test_values(mortice_item: Any) -> None:
    _run(mortice_item)


def test_shapes(mortice_item: Any) -> None:
    _run(mortice_item)


def test_dtypes(mortice_item: Any) -> None:
    _run(mortice_item)


def test_layouts(mortice_item: Any) -> None:
    _run(mortice_item)


def test_device(mortice_item: Any) -> None:
    _run(mortice_item)


def test_unmodified(mortice_item: Any) -> None:
    _run(mortice_item)


def test_deterministic(mortice_item: Any) -> None:
    _run(mortice_item)


def test_transfers(mortice_item: Any) -> None:
    _run(mortice_item)


def test_inplace(mortice_item: Any) -> None:
    _run(mortice_item)


# ---- L3 ----


def test_gradient(mortice_item: Any) -> None:
    _run(mortice_item)


def test_second_gradient(mortice_item: Any) -> None:
    _run(mortice_item)


def test_gradient_dtypes(mortice_item: Any) -> None:
    _run(mortice_item)


def test_jvp(mortice_item: Any) -> None:
    _run(mortice_item)


# ---- L4 to L6 ----


def test_random(mortice_item: Any) -> None:
    _run(mortice_item)


def test_training(mortice_item: Any) -> None:
    _run(mortice_item)


def test_misuse(mortice_item: Any) -> None:
    _run(mortice_item)


def test_robust(mortice_item: Any) -> None:
    _run(mortice_item)


def test_memory(mortice_item: Any) -> None:
    _run(mortice_item)


def test_threads(mortice_item: Any) -> None:
    _run(mortice_item)
