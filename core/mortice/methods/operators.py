"""What Python's operators do with tensors."""

from __future__ import annotations

from mortice.call import asked, binary, slow, slow_two
from mortice.interop import is_ndarray, is_number, numpys_dtype
from mortice.lazy import family
from mortice.mutation import inplace
from mortice.node import named
from mortice.ops import data
from mortice.ops.movement import cast
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.ops import compare, elementwise, index, unary
    from mortice.ops import matmul as matmul_ops
else:
    compare, elementwise, index = family("ops.compare"), family("ops.elementwise"), family("ops.index")
    unary, matmul_ops = family("ops.unary"), family("ops.matmul")


_NUMPYS = {"floordiv": "floor_divide"}  # functions of NumPy, where neither op nor kernel has the name
_SHORT = {"rdiv": "div", "remainder": "mod", "bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift"}  # as Python's operators


def _foreign(op: Any, x: Any, y: Any, out: Any) -> Any:
    """Apply an operator where an operand may be of another type, which may then answer with its own operator."""
    other = y if isinstance(x, TensorBase) else x
    if isinstance(other, TensorBase) or (op.scalars and isinstance(other, (int, float, complex))):
        return slow_two(op, x, y, out)
    mine, name = x if other is y else y, op.name
    if mine is y or name == "floordiv":  # of which no method has the op's name
        name = f"__{'r' * (mine is y)}{_SHORT.get(name, name)}__"
    answer = asked(name, mine, other)
    if answer is not NotImplemented or not data.is_array(other):
        return answer
    if not is_ndarray(other) and getattr(other, "shape", None) == ():
        return slow(op, (x, y), {}, out) if op.scalars else answer
    if op.name == "rdiv":
        return mine.reciprocal() * other
    array = data.as_tensor(other, device=mine._device)
    if is_ndarray(other):  # PyTorch leaves the two to NumPy, whose dtypes it gives
        dtype = numpys_dtype(_NUMPYS.get(op.name, op.kernel or op.name), mine.dtype, array.dtype)
        mine, array = cast(mine, dtype), cast(array, dtype)
    return slow(op, (mine, array) if other is y else (array, mine), {}, out)


def _operator(fn: Any) -> Any:
    """Make the operator of an op function: the compiled call itself, so that `x + y` costs no frame more."""
    return binary(fn.op, _foreign)


def _reflected(fn: Any) -> Any:
    """Make the operator with the tensor on the right; PyTorch has another function there for differences."""
    operator, name = _operator(fn), {"sub": "RsubBackward1"}.get(fn.op.name)

    def method(self: Any, other: Any) -> Any:
        t = operator(other, self)
        return named(t, name) if name and self._rg and isinstance(t, TensorBase) and t._rg else t

    return method


def _augmented(fn: Any) -> Any:
    """Make the operator in place; an array makes a tensor anew, as in PyTorch, which leaves it to the operator itself."""

    def brought(self: Any, other: Any) -> Any:
        return fn(self, other) if isinstance(other, (TensorBase, int, float, complex)) or is_number(other) else NotImplemented

    brought.op, brought.__name__ = fn.op, fn.__name__
    return inplace(brought)


class Operators(TensorBase):
    """Operators, in place ones too; what is no tensor may answer with its own."""

    __slots__ = ()

    __hash__ = TensorBase.__hash__
    __add__ = __radd__ = elementwise._add.then(_operator)
    __sub__, __rsub__ = elementwise._sub.then(_operator), elementwise._sub.then(_reflected)
    __mul__ = __rmul__ = elementwise.mul.then(_operator)
    __truediv__, __rtruediv__ = elementwise._div.then(_operator), elementwise._rdiv.then(_reflected)
    __div__, __rdiv__ = __truediv__, __rtruediv__
    __floordiv__, __rfloordiv__ = elementwise.floordiv.then(_operator), elementwise.floordiv.then(_reflected)
    __mod__, __rmod__ = elementwise.remainder.then(_operator), elementwise.remainder.then(_reflected)
    __pow__, __rpow__ = elementwise._pow.then(_operator), elementwise._pow.then(_reflected)
    __lt__, __le__ = compare.lt.then(_operator), compare.le.then(_operator)
    __gt__, __ge__ = compare.gt.then(_operator), compare.ge.then(_operator)
    __eq__, __ne__ = compare.eq.then(_operator), compare.ne.then(_operator)
    __and__ = __rand__ = compare.bitwise_and.then(_operator)
    __or__ = __ror__ = compare.bitwise_or.then(_operator)
    __xor__ = __rxor__ = compare.bitwise_xor.then(_operator)
    __lshift__, __rlshift__ = compare.bitwise_left_shift.then(_operator), compare.bitwise_left_shift.then(_reflected)
    __rshift__, __rrshift__ = compare.bitwise_right_shift.then(_operator), compare.bitwise_right_shift.then(_reflected)
    __neg__, __pos__, __abs__, __invert__ = unary.neg, unary.positive, unary.abs, compare.bitwise_not
    __iadd__, __isub__, __imul__ = elementwise._add.then(_augmented), elementwise._sub.then(_augmented), elementwise.mul.then(_augmented)
    __itruediv__, __ifloordiv__ = elementwise._div.then(_augmented), elementwise.floordiv.then(_augmented)
    __imod__, __ipow__ = elementwise.remainder.then(_augmented), elementwise._pow.then(_augmented)
    __iand__, __ior__, __ixor__ = (
        compare.bitwise_and.then(_augmented), compare.bitwise_or.then(_augmented), compare.bitwise_xor.then(_augmented))  # fmt: skip
    __ilshift__, __irshift__ = compare.bitwise_left_shift.then(_augmented), compare.bitwise_right_shift.then(_augmented)
    __getitem__ = index.getitem
    __setitem__ = index.setitem

    __matmul__, __rmatmul__ = matmul_ops._matmul.then(_operator), matmul_ops._matmul.then(_reflected)
