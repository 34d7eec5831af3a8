"""What Python's operators do with tensors."""

from __future__ import annotations

from typing import Any

from mortice.mutation import inplace
from mortice.op import binary, slow
from mortice.ops import compare, data, elementwise, index, unary
from mortice.ops import matmul as matmul_ops
from mortice.tensor import TensorBase


def _foreign(op: Any, x: Any, y: Any, out: Any) -> Any:
    """Apply an operator where an operand may be of another type, which may then answer with its own operator."""
    other = y if isinstance(x, TensorBase) else x
    if isinstance(other, (TensorBase, int, float, complex)):
        return slow(op, (x, y), {}, out)
    if not data.is_array(other):
        return NotImplemented
    mine = x if other is y else y
    array = other.item() if getattr(other, "shape", None) == () else data.as_tensor(other, device=mine._device)
    return slow(op, (x, array) if other is y else (array, y), {}, out)


def _operator(fn: Any) -> Any:
    """Make the operator of an op function: the compiled call itself, so that `x + y` costs no frame more."""
    return binary(fn.op, _foreign)


def _reflected(fn: Any) -> Any:
    """Make the operator with the tensor on the right."""
    operator = _operator(fn)

    def method(self: Any, other: Any) -> Any:
        return operator(other, self)

    return method


def _augmented(fn: Any) -> Any:
    """Make the operator in place: it takes what the operator takes."""

    def brought(self: Any, other: Any) -> Any:
        mine = isinstance(other, (TensorBase, int, float, complex)) or not data.is_array(other)
        return fn(self, other if mine else data.as_tensor(other, device=self._device))

    brought.op, brought.__name__ = fn.op, fn.__name__  # type: ignore[attr-defined]
    return inplace(brought)


class Operators(TensorBase):
    """Operators, in place ones too; what is no tensor may answer with its own."""

    __slots__ = ()

    __hash__ = TensorBase.__hash__
    __add__ = __radd__ = _operator(elementwise._add)
    __sub__, __rsub__ = _operator(elementwise._sub), _reflected(elementwise._sub)
    __mul__ = __rmul__ = _operator(elementwise.mul)
    __truediv__, __rtruediv__ = _operator(elementwise._div), _reflected(elementwise._div)
    __div__, __rdiv__ = __truediv__, __rtruediv__
    __floordiv__, __rfloordiv__ = _operator(elementwise.floor_divide), _reflected(elementwise.floor_divide)
    __mod__, __rmod__ = _operator(elementwise.remainder), _reflected(elementwise.remainder)
    __pow__, __rpow__ = _operator(elementwise._pow), _reflected(elementwise._pow)
    __lt__, __le__ = _operator(compare.lt), _operator(compare.le)
    __gt__, __ge__ = _operator(compare.gt), _operator(compare.ge)
    __eq__, __ne__ = _operator(compare.eq), _operator(compare.ne)  # type: ignore[assignment]
    __and__ = __rand__ = _operator(compare.bitwise_and)
    __or__ = __ror__ = _operator(compare.bitwise_or)
    __xor__ = __rxor__ = _operator(compare.bitwise_xor)
    __lshift__, __rlshift__ = _operator(compare.bitwise_left_shift), _reflected(compare.bitwise_left_shift)
    __rshift__, __rrshift__ = _operator(compare.bitwise_right_shift), _reflected(compare.bitwise_right_shift)
    __neg__, __pos__, __abs__, __invert__ = unary.neg, unary.positive, unary.abs, compare.bitwise_not
    __iadd__, __isub__, __imul__ = _augmented(elementwise._add), _augmented(elementwise._sub), _augmented(elementwise.mul)
    __itruediv__, __ifloordiv__ = _augmented(elementwise._div), _augmented(elementwise.floor_divide)
    __imod__, __ipow__ = _augmented(elementwise.remainder), _augmented(elementwise._pow)
    __iand__, __ior__, __ixor__ = (
        _augmented(compare.bitwise_and), _augmented(compare.bitwise_or), _augmented(compare.bitwise_xor))  # fmt: skip
    __ilshift__, __irshift__ = _augmented(compare.bitwise_left_shift), _augmented(compare.bitwise_right_shift)
    __getitem__ = index.getitem
    __setitem__ = index.setitem

    __matmul__, __rmatmul__ = matmul_ops.matmul_operator, matmul_ops.rmatmul_operator
