"""What is compared: PyTorch's operator table (`op_db`), its samples cut to size, and what each op can be asked."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

DTYPES = (
    torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool,
    torch.complex64, torch.complex128, torch.float16, torch.bfloat16,
)  # fmt: skip
GRADIENT_DTYPES = (torch.float32, torch.float64, torch.complex128)
VARIANT_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)

MOST_SAMPLES = 60
MOST_ELEMENTS = 25_000
# `torch.manual_seed` tells devices too, and where there are none keeps what to tell them, each time with all of its stack as text:
# a millisecond, and memory for good.
seed = torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed
# Their results hold whatever was in memory.
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_strided",
    "empty_permuted",
    "new_empty",
    "new_empty_strided",
    "resize_",
}


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


def rows(file: str) -> list[list[str]]:
    """Read a list of names beside this file: words by line."""
    lines = Path(__file__).with_name(file).read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


@functools.cache
def surface() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Read surface.txt: name -> (level, checks that apply). Needs no table of PyTorch, so collecting is quick."""
    return {name: (level, tuple(checks)) for name, level, *checks in rows("surface.txt")}


@functools.cache
def names() -> dict[str, str]:
    """Read names.txt: names of the surface that have no samples, and their level."""
    return {name: level for name, level in rows("names.txt")}


def missing(subject: Any, level: str) -> list[str]:
    """Return the names of a level that a Subject has not."""
    ops = [name for name, (there, _) in surface().items() if there == level and not subject.has(name)]
    return ops + [name for name, there in names().items() if there == level and subject.find(name) is None]


def applicable(name: str) -> tuple[str, ...]:
    """Say which checks apply to an op, by PyTorch's table."""
    ops = table()[name]
    asked = {
        "values": True,
        "gradients": any(op.supports_autograd and op.backward_dtypes.intersection(GRADIENT_DTYPES) for op in ops),
        "second_gradients": any(op.supports_gradgrad and torch.float64 in op.backward_dtypes for op in ops),
        "methods": any(op.method_variant or op.operator_variant or op.aliases for op in ops),
        "inplace": any(op.inplace_variant or op.inplace_operator_variant for op in ops),
        "out": any(op.supports_out for op in ops),
        "errors": any(map(errors, ops)),
    }
    return tuple(check for check, applies in asked.items() if applies)


def tensors(value: Any, cls: Any = torch.Tensor) -> Iterator[Any]:
    """Yield the tensors in a nest of lists, tuples and dicts."""
    if isinstance(value, cls):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()), cls)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item, cls)


def parts(sample: Any) -> tuple[Any, ...]:
    """Return all that a sample passes."""
    return (sample.input, *sample.args, sample.kwargs)


class NothingLeftOver(TorchFunctionMode):
    """Makes samples the same each time: PyTorch's table takes some from `torch.empty`, whose memory may hold anything.

    Ones stand there instead. What was left over may be no weights at all for `multinomial`, say.
    """

    def __enter__(self) -> NothingLeftOver:
        seed(0)
        random.seed(0)
        np.random.seed(0)
        return super().__enter__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **kwargs or {})
        return made.fill_(1) if func is torch.empty else made


def errors(op: Any) -> list[Any]:
    """Return the op's samples of misuse with the words of their errors, but for operators' methods called on no tensor,
    as Python never does.
    """
    if op.error_inputs_func is None:
        return []
    with NothingLeftOver():
        made = list(op.error_inputs_func(op, "cpu"))
    return [one for one in made if not op.name.startswith("__") or isinstance(one.sample_input.input, torch.Tensor)]


def take(op: Any, dtype: torch.dtype, *, grad: bool = False, most: int = MOST_SAMPLES) -> list[Any]:
    """Return the op's samples of a dtype: all, or the same scattered choice each time, none of them huge."""
    with NothingLeftOver():
        made = list(op.sample_inputs_func(op, "cpu", dtype, grad))
    made = [sample for sample in made if all(t.numel() <= MOST_ELEMENTS for t in tensors(parts(sample)))]
    return scattered(made, most)


def scattered(made: list[Any], most: int) -> list[Any]:
    """Return all samples, or where there are more than so many a scattered choice of them, the same each time."""
    if len(made) <= most:
        return made
    return [made[i] for i in sorted(random.Random(0).sample(range(len(made)), most))]


def draws(op: Any) -> bool:
    """Whether the op may use random numbers."""
    code = getattr(op.op, "__code__", None)
    return code is not None and "wrapper_set_seed" in code.co_names


def describe(value: Any) -> str:
    """Write a sample or a result on one line, tensors with their values where they are few."""
    if isinstance(value, torch.Tensor):
        strides = "" if value.is_contiguous() else f" strides {tuple(value.stride())}"
        values = f" {value.detach().tolist()}" if value.numel() <= 12 and value.device.type == "cpu" else ""
        return f"<{str(value.dtype)[6:]} {tuple(value.shape)}{strides}{values}>"
    if isinstance(value, dict):
        return ", ".join(f"{key}={describe(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(describe(item) for item in value) + ")"
    return repr(value)
