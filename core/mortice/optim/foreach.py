"""`_foreach_*`: one operation on each of a list of tensors. Optimisers of other libraries name them, private as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mortice
from mortice import Tensor


def _lists(name: str, tensors: Any, others: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the operands of each call: lists are walked together, and what is no list is every call's."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name}: expected a list or tuple of Tensors; got {type(tensors).__name__}. Put it into a list.")
    if not tensors:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    columns = []
    for other in others:
        if isinstance(other, Tensor) and other.ndim:
            raise RuntimeError(
                f"{name}: scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and {other.numel()} elements. "
                "Give a list for one operand a tensor."
            )
        column = other if isinstance(other, (list, tuple)) else [other] * len(tensors)
        if len(column) != len(tensors):
            if not any(isinstance(x, Tensor) for x in column):
                raise RuntimeError(
                    f"{name}: Tensor list must have same number of elements as scalar list. They are {len(tensors)} and {len(column)}."
                )
            raise RuntimeError(
                f"{name}: Tensor lists must have the same number of tensors, got {len(tensors)} and {len(column)}."
            )
        columns.append(column)
    return list(zip(tensors, *columns))


def _at_once(name: str, self: Any, others: Sequence[Any]) -> bool:
    """Have a backend that can do so change all tensors of a list by one call; lists of operands come before numbers."""
    lists = [self, *[x for x in others if isinstance(x, (list, tuple))]]
    return mortice._each_(name, lists, others[len(lists) - 1 :], (Tensor, mortice.nn.Parameter))


def _each(name: str, op: str = "") -> Callable[..., Any]:
    """Return what applies the operation of that name, a function here or a method that writes in place, to each tensor.

    `op` is the operation where its own name is another.
    """
    foreach, op = f"_foreach_{name}", op or name

    def new(self: Any, *others: Any, **options: Any) -> tuple[Any, ...]:
        fn = getattr(mortice, op)
        return tuple(fn(*operands, **options) for operands in _lists(foreach, self, others))

    def in_place(self: Any, *others: Any, **options: Any) -> Any:
        calls = _lists(foreach, self, others)
        if not _at_once(op, self, (*others, *options.values())):
            for t, *operands in calls:
                getattr(t, op)(*operands, **options)
        return self

    made = in_place if name.endswith("_") else new
    made.__name__ = made.__qualname__ = foreach
    made.__doc__ = f"Apply {name} to each tensor of a list" + (" in place; the list comes back." if name.endswith("_") else ", as a tuple.")
    return made


def _both(name: str, op: str = "") -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what gives new tensors, and what writes in place."""
    return _each(name, op), _each(f"{name}_", op and f"{op}_")


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    """Return the vector norm of each tensor of a list."""
    return tuple(mortice.linalg.vector_norm(t, ord, dtype=dtype) for (t,) in _lists("_foreach_norm", self, ()))


def _foreach_max(self: Any) -> tuple[Any, ...]:
    """Return the largest element of each tensor of a list."""
    return tuple(t.max() for (t,) in _lists("_foreach_max", self, ()))


def _foreach_pow(self: Any, exponent: Any) -> tuple[Any, ...]:
    """Raise each tensor of a list to a power, or one number to each of them."""
    if isinstance(self, (int, float, complex)):
        return tuple(mortice.pow(self, e) for (e,) in _lists("_foreach_pow", exponent, ()))
    return tuple(mortice.pow(t, e) for t, e in _lists("_foreach_pow", self, (exponent,)))


_foreach_clamp_max, _foreach_clamp_max_ = _both("clamp_max")
_foreach_clamp_min, _foreach_clamp_min_ = _both("clamp_min")
_foreach_maximum, _foreach_maximum_ = _both("maximum", "clamp_min")  # of numbers too
_foreach_minimum, _foreach_minimum_ = _both("minimum", "clamp_max")
_foreach_add, _foreach_add_ = _both("add")
_foreach_sub, _foreach_sub_ = _both("sub")
_foreach_mul, _foreach_mul_ = _both("mul")
_foreach_div, _foreach_div_ = _both("div")
_foreach_pow_, _foreach_copy_, _foreach_zero_ = _each("pow_"), _each("copy_"), _each("zero_")
_foreach_mm = _each("mm")
_foreach_lerp, _foreach_lerp_ = _both("lerp")
_foreach_abs, _foreach_abs_ = _both("abs")
_foreach_acos, _foreach_acos_ = _both("acos")
_foreach_asin, _foreach_asin_ = _both("asin")
_foreach_atan, _foreach_atan_ = _both("atan")
_foreach_ceil, _foreach_ceil_ = _both("ceil")
_foreach_clone = _each("clone")
_foreach_cos, _foreach_cos_ = _both("cos")
_foreach_cosh, _foreach_cosh_ = _both("cosh")
_foreach_erf, _foreach_erf_ = _both("erf")
_foreach_erfc, _foreach_erfc_ = _both("erfc")
_foreach_exp, _foreach_exp_ = _both("exp")
_foreach_expm1, _foreach_expm1_ = _both("expm1")
_foreach_floor, _foreach_floor_ = _both("floor")
_foreach_frac, _foreach_frac_ = _both("frac")
_foreach_lgamma, _foreach_lgamma_ = _both("lgamma")
_foreach_log, _foreach_log_ = _both("log")
_foreach_log10, _foreach_log10_ = _both("log10")
_foreach_log1p, _foreach_log1p_ = _both("log1p")
_foreach_log2, _foreach_log2_ = _both("log2")
_foreach_neg, _foreach_neg_ = _both("neg")
_foreach_reciprocal, _foreach_reciprocal_ = _both("reciprocal")
_foreach_round, _foreach_round_ = _both("round")
_foreach_rsqrt, _foreach_rsqrt_ = _both("rsqrt")
_foreach_sigmoid, _foreach_sigmoid_ = _both("sigmoid")
_foreach_sign, _foreach_sign_ = _both("sign")
_foreach_sin, _foreach_sin_ = _both("sin")
_foreach_sinh, _foreach_sinh_ = _both("sinh")
_foreach_sqrt, _foreach_sqrt_ = _both("sqrt")
_foreach_tan, _foreach_tan_ = _both("tan")
_foreach_tanh, _foreach_tanh_ = _both("tanh")
_foreach_trunc, _foreach_trunc_ = _both("trunc")


def _weighted(name: str) -> Callable[..., Any]:
    """Return addcmul or addcdiv of lists, whose factor is one number, a list of them or a tensor of one a call."""

    def operands(self: Any, first: Any, second: Any, value: Any, scalars: Any) -> list[tuple[Any, ...]]:
        factors = value if scalars is None else scalars
        if isinstance(factors, Tensor):
            if factors.ndim != 1:
                raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {factors.ndim} instead.")
            if not factors.is_contiguous():
                raise RuntimeError("Expected scalars to be contiguous.")
            if len(factors) != len(self):
                raise RuntimeError(f"Expected length of scalars to match input of length {len(self)} but got {len(factors)} instead.")
            factors = factors.tolist()
        return _lists(f"_foreach_{name}", self, (first, second, factors))

    def new(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> tuple[Any, ...]:
        fn = getattr(mortice, name)
        return tuple(fn(t, x, y, value=v) for t, x, y, v in operands(self, tensor1, tensor2, value, scalars))

    def in_place(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> Any:
        calls = operands(self, tensor1, tensor2, value, scalars)
        if scalars is not None or not _at_once(name, self, (tensor1, tensor2, value)):
            for t, x, y, v in calls:
                getattr(t, name)(x, y, value=v)
        return self

    made = in_place if name.endswith("_") else new
    made.__name__ = made.__qualname__ = f"_foreach_{name}"
    made.__doc__ = f"Apply {name} to each tensor of a list."
    return made


_foreach_addcmul, _foreach_addcmul_ = _weighted("addcmul"), _weighted("addcmul_")
_foreach_addcdiv, _foreach_addcdiv_ = _weighted("addcdiv"), _weighted("addcdiv_")


# ---- what PyTorch keeps in torch.utils._foreach_utils: which tensors are taken together ----


_GROUPED = "_group_tensors_by_device_and_dtype"


def _group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> dict[Any, tuple[list[Any], list[int]]]:
    """Divide lists that belong together by the device and dtype of the first one's tensors; an empty list stays empty."""
    lengths = [len(given) for given in tensorlistlist]
    if not lengths or not lengths[0] or {0, *lengths} != {0, lengths[0]}:
        raise RuntimeError(f"{_GROUPED}: expected a first list of tensors, and others as long or empty; got the lengths {lengths}.")
    groups: dict[Any, tuple[list[Any], list[int]]] = {}
    for i, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(f"{_GROUPED}: expected tensors alone in the first list; got None at {i}.")
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for held, given in zip(lists, tensorlistlist):
            held.extend(given[i : i + 1])
        if with_indices:
            indices.append(i)
    return groups


def _device_has_foreach_support(device: Any) -> bool:
    """Say that `_foreach_*` takes the tensors of a device."""
    return bool(device.type != "meta")


def _has_foreach_support(tensors: Any, device: Any) -> bool:
    """Tell whether `_foreach_*` takes these: subclasses of Tensor, and parameters, go one by one."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)

__all__ = [name for name in dir() if name.startswith("_foreach_")]
