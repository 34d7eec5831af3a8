"""What is compared: PyTorch's operator table (`op_db`), its samples cut to size, and what each op can be asked."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

DTYPES = (
    torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool,
    torch.complex64, torch.complex128, torch.float16, torch.bfloat16,
)  # fmt: skip
GRADIENT_DTYPES = (torch.float32, torch.float64, torch.complex128)
VARIANT_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)

MOST_SAMPLES = 60
MOST_ELEMENTS = 25_000
# Their results hold whatever was in memory.
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_"}


@functools.cache
def table() -> dict[str, list[Any]]:
    """Return the OpInfos of `op_db` by name; a name has several where PyTorch tests several forms of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    torch.set_num_threads(1)
    ops: dict[str, list[Any]] = {}
    for op in op_db:
        ops.setdefault(op.name, []).append(op)
    return ops


@functools.cache
def surface() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Read surface.txt: name -> (level, checks that apply beyond values). Needs no torch table, so collecting is quick."""
    lines = Path(__file__).with_name("surface.txt").read_text().splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return {name: (level, tuple(checks)) for name, level, *checks in rows}


def applicable(name: str) -> tuple[str, ...]:
    """Say which checks apply to an op, from PyTorch's table."""
    ops = table()[name]
    asked = {
        "gradients": any(op.supports_autograd and op.backward_dtypes.intersection(GRADIENT_DTYPES) for op in ops),
        "second_gradients": any(op.supports_gradgrad and torch.float64 in op.backward_dtypes for op in ops),
        "methods": any(op.method_variant or op.operator_variant or op.aliases for op in ops),
        "inplace": any(op.inplace_variant or op.inplace_operator_variant for op in ops),
        "out": any(op.supports_out for op in ops),
        "errors": any(op.error_inputs_func for op in ops),
    }
    return tuple(check for check, applies in asked.items() if applies)


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a nest of lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def parts(sample: Any) -> tuple[Any, ...]:
    """Return all that a sample passes."""
    return (sample.input, *sample.args, sample.kwargs)


def take(op: Any, dtype: torch.dtype, *, grad: bool = False, most: int = MOST_SAMPLES) -> list[Any]:
    """Return the op's samples of a dtype: all, or the same scattered choice each time, none of them huge."""
    made = [
        sample
        for sample in op.sample_inputs("cpu", dtype, requires_grad=grad)
        if all(t.numel() <= MOST_ELEMENTS for t in tensors(parts(sample)))
    ]
    if len(made) <= most:
        return made
    return [made[i] for i in sorted(random.Random(0).sample(range(len(made)), most))]


def draws(op: Any) -> bool:
    """Whether the op may use random numbers."""
    code = getattr(op.op, "__code__", None)
    return code is not None and "wrapper_set_seed" in code.co_names


def conditions(sample: Any) -> frozenset[str]:
    """Name what differences.toml may ask of a sample (`when`)."""
    found = set()
    present = list(tensors(parts(sample)))
    if any(t.ndim == 0 for t in present) and len({t.dtype for t in present}) > 1:
        found.add("mixed_0d")
    return frozenset(found)


def describe(value: Any) -> str:
    """Write a sample or a result on one line, tensors with their values where they are few."""
    if isinstance(value, torch.Tensor):
        strides = "" if value.is_contiguous() else f" strides {tuple(value.stride())}"
        values = f" {value.detach().tolist()}" if value.numel() <= 12 else ""
        return f"<{str(value.dtype)[6:]} {tuple(value.shape)}{strides}{values}>"
    if isinstance(value, dict):
        return ", ".join(f"{key}={describe(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(describe(item) for item in value) + ")"
    return repr(value)
