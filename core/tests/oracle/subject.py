"""One side of the comparison: a torch-shaped module, with the way of samples into it and of results out of it.

Both sides are Subjects and are fed from the same NumPy copies, so neither can change what the other one sees.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch


class Unconvertible(Exception):
    """A sample that holds something with no counterpart in the subject: it is skipped, and counted."""


def lookup(root: Any, dotted: str) -> Any:
    """Return the attribute at a dotted path, or None; submodules that nothing has imported yet count."""
    for part in dotted.split("."):
        parent, root = root, None
        with contextlib.suppress(ImportError):  # of a name that is loaded when it is asked for
            root = getattr(parent, part, None)
        if root is None and hasattr(parent, "__path__"):
            with contextlib.suppress(ImportError):
                root = importlib.import_module(f"{parent.__name__}.{part}")
        if root is None:
            return None
    return root


def dtype_name(dtype: Any) -> str:
    """Return the bare name of a dtype of either side."""
    return str(dtype).rpartition(".")[2]


def is_wrapper(function: Any) -> bool:
    """Whether an OpInfo calls through a lambda of PyTorch's test tables rather than an operator itself."""
    return isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing")


def no_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Stand for the tables' `wrapper_set_seed`: random values are not compared."""
    return op(*args, **kwargs)


class Subject:
    """A torch-shaped module under comparison."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.Tensor = module.Tensor
        self.moved: dict[Any, Any] = {}

    @contextlib.contextmanager
    def pytorchs_promotion(self) -> Iterator[None]:
        """Let dtypes meet as they do in PyTorch, in a module that has a switch for it."""
        switch = getattr(self.module, "set_type_promotion", None)
        if switch is None:
            yield
            return
        before = self.module.get_type_promotion()
        switch("pytorch")
        try:
            yield
        finally:
            switch(before)

    # ---- functions ----

    def find(self, dotted: str) -> Any:
        """Return the module's attribute at a dotted path, or None."""
        return lookup(self.module, dotted)

    def has(self, name: str) -> bool:
        """Whether an op of that name is here: as a function, a Tensor method or an in-place method."""
        places = (self.find(name), lookup(self.Tensor, name), lookup(self.Tensor, name + "_"))
        return any(place is not None for place in places)

    def function(self, op: Any) -> Any:
        """Return what the OpInfo calls, as this module spells it, or None."""
        if not self.has(op.name):
            return None
        return self.counterpart(op.op, op.name)

    def counterpart(self, function: Any, name: str) -> Any:
        """Return this module's own form of a function or method of torch, or None."""
        if is_wrapper(function):
            return self.transplant(function)
        if isinstance(function, functools.partial):
            inner = self.find(f"nn.functional.{function.func.__name__}")
            return inner and functools.partial(inner, *function.args, **function.keywords)
        if lookup(torch, name) is function:
            return self.find(name)
        return getattr(self.Tensor, getattr(function, "__name__", name), None)

    def own(self, function: Any) -> Any:
        """Return a function of PyTorch's tables with `torch` in it meaning this module; others as they are."""
        return self.transplant(function) if is_wrapper(function) else function

    def transplant(self, function: Any) -> Any:
        """Rebuild a lambda of PyTorch's tables so that `torch` in it means this module."""
        if function not in self.moved:
            scope = {**function.__globals__, "torch": self.module, "wrapper_set_seed": no_seed}
            scope["F"] = self.find("nn.functional")
            code, name = function.__code__, function.__name__
            moved = types.FunctionType(code, scope, name, function.__defaults__, function.__closure__)
            moved.__kwdefaults__ = function.__kwdefaults__
            self.moved[function] = moved
        return self.moved[function]

    # ---- samples in ----

    def arguments(self, sample: Any) -> tuple[tuple[Any, ...], dict[str, Any], list[Any]]:
        """Return fresh (args, kwargs, leaves): the leaves are the tensors that require grad, in order."""
        memo: dict[int, Any] = {}
        args = tuple(self.convert(arg, memo) for arg in (sample.input, *sample.args))
        kwargs = {name: self.convert(arg, memo) for name, arg in sample.kwargs.items()}
        return args, kwargs, [made for made in memo.values() if made.requires_grad]

    def convert(self, value: Any, memo: dict[int, Any]) -> Any:
        """Return a torch value as this module's; a tensor met twice stays one tensor."""
        if isinstance(value, torch.Tensor):
            if id(value) not in memo:
                memo[id(value)] = self.tensor(value)
            return memo[id(value)]
        if isinstance(value, torch.dtype):
            return self.named(dtype_name(value))
        if isinstance(value, (torch.memory_format, torch.layout)):
            return self.named(dtype_name(value))
        if isinstance(value, torch.device):
            return self.named("device")(str(value))
        if isinstance(value, torch.Size):
            return self.named("Size")(value)
        if isinstance(value, dict):
            return {key: self.convert(item, memo) for key, item in value.items()}
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            return self.named("nn.utils.rnn.PackedSequence")(*[self.convert(item, memo) for item in value])
        if isinstance(value, (list, tuple)):
            return type(value)([self.convert(item, memo) for item in value])
        if isinstance(value, slice):
            return slice(*(self.convert(x, memo) for x in (value.start, value.stop, value.step)))
        if is_wrapper(value):
            return self.transplant(value)
        if isinstance(value, torch.nn.Module):
            return self.whole(value)
        if callable(value) and getattr(torch.nn.functional, getattr(value, "__name__", ""), None) is value:
            return self.named(f"nn.functional.{value.__name__}")
        if type(value).__module__.startswith("torch"):
            given = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else {}
            return self.named(f"nn.{type(value).__name__}")(**self.convert(given, memo))
        return value

    def whole(self, module: torch.nn.Module) -> Any:
        """Return a module of torch's tables as this side's: one made of no arguments, or an encoder layer."""
        cls = self.named(f"nn.{type(module).__name__}")
        if not isinstance(module, torch.nn.TransformerEncoderLayer):
            return cls()
        first, attention = module.linear1, module.self_attn
        made = cls(
            first.in_features, attention.num_heads, first.out_features, module.dropout.p,
            self.convert(module.activation, {}), module.norm1.eps, attention.batch_first, module.norm_first,
            first.bias is not None, dtype=self.convert(first.weight.dtype, {}),
        )  # fmt: skip
        made.load_state_dict({key: self.convert(value, {}) for key, value in module.state_dict().items()})
        return made.train(module.training)

    def named(self, name: str) -> Any:
        """Return the module's counterpart of a name of torch's."""
        found = self.find(name)
        if found is None:
            raise Unconvertible(f"no counterpart of torch.{name}")
        return found

    def tensor(self, source: torch.Tensor) -> Any:
        """Return the same values here, with the strides of the source in kind: transposed, expanded, spread."""
        if source.layout is not torch.strided:
            raise Unconvertible("a sparse tensor")
        if source.device.type != "cpu":
            raise Unconvertible(f"a tensor on {source.device}")
        if source.ndim > 64:
            raise Unconvertible("more dimensions than NumPy has")
        dtype = self.named(dtype_name(source.dtype))
        plain = source.detach().resolve_conj().resolve_neg()
        if plain.is_contiguous() or plain.numel() == 0:
            made = self.plain(plain, dtype)
        else:
            for dim, stride in enumerate(plain.stride()):
                plain = plain.narrow(dim, 0, 1) if stride == 0 else plain
            order = sorted(range(plain.ndim), key=lambda dim: -source.stride(dim))
            dense = plain.permute(order)
            made = self.plain(dense, dtype)
            if not dense.is_contiguous():
                made = self.module.stack([made, made], -1)[..., 0]
            made = made.permute([order.index(dim) for dim in range(plain.ndim)]).expand(tuple(source.shape))
        return made.requires_grad_(True) if source.requires_grad else made

    def plain(self, source: torch.Tensor, dtype: Any) -> Any:
        """Return a contiguous copy in memory of its own; bfloat16 travels as float32, which holds it exactly."""
        half = source.dtype is torch.bfloat16
        made = self.module.from_numpy(np.array((source.float() if half else source).numpy(), order="C"))
        return made.to(dtype) if half else made.clone()

    # ---- results out ----

    def back(self, tensor: Any) -> torch.Tensor:
        """Return a result as a torch tensor of the dtype of that name."""
        tensor = tensor.detach()
        name = dtype_name(tensor.dtype)
        if name == "bfloat16":
            tensor = tensor.to(self.module.float32)
        if isinstance(tensor, torch.Tensor):
            host = tensor.numpy(force=True)  # undoes lazy conjugates, negatives and zeros
        else:
            host = tensor.numpy()
        return torch.from_numpy(np.array(host, order="C")).to(getattr(torch, name))
