"""Tensor: the public class. Its methods are the functions of `mortice.ops`, listed here so that an editor finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mortice.backends.host import HostBuffer
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import DType, bool_, float16, float32, float64, int64
from mortice.layout import strided as strided_layout
from mortice.mutation import inplace, layout
from mortice.op import binary, slow
from mortice.ops import (
    arrange,
    blend,
    compare,
    creation,
    elementwise,
    index,
    movement,
    reduce,
    scan,
    special,
    statistics,
    strided,
    unary,
    views,
)
from mortice.ops import complex as complex_ops
from mortice.ops import gather as gather_ops
from mortice.ops import linalg as linalg_ops
from mortice.ops import linalg_derived as derived
from mortice.ops import matmul as matmul_ops
from mortice.ops import nn as nn_ops
from mortice.ops import random as randoms
from mortice.ops import sort as sort_ops
from mortice.printing import tensor_repr
from mortice.shape import Size, SizeMember, check_dim, prod
from mortice.tensor import TensorBase


def _foreign(op: Any, x: Any, y: Any, out: Any) -> Any:
    """Apply an operator where an operand may be of another type, which may then answer with its own operator."""
    other = y if isinstance(x, TensorBase) else x
    if isinstance(other, (TensorBase, int, float, complex)):
        return slow(op, (x, y), {}, out)
    if not creation.is_array(other) or isinstance(other, (memoryview, bytearray)):
        return NotImplemented
    mine = x if other is y else y
    array = other.item() if getattr(other, "shape", None) == () else creation.as_tensor(other, device=mine._device)
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


class Tensor(TensorBase):
    """A multi-dimensional array of one dtype on one device, that can record what is computed with it.

    `Tensor(2, 3)` is uninitialised floats of that size and `Tensor([2, 3])` is data, as in PyTorch; prefer
    `mortice.tensor` and `mortice.empty`.
    """

    __slots__ = ()
    # NumPy must leave `ndarray + tensor` to the tensor.
    __array_priority__ = 1000

    def __new__(cls, *data: Any, device: Any = None) -> Any:
        if len(data) == 1 and not isinstance(data[0], int):
            made = data[0].detach() if isinstance(data[0], TensorBase) else creation.tensor(
                data[0], dtype=creation.get_default_dtype(), device=device
            )  # fmt: skip
        else:
            made = creation.empty(*data, device=device) if data else creation.empty(0, device=device)
        t = object.__new__(cls)
        t._data, t._device, t.dtype, t.shape = made._data, made._device, made.dtype, made.shape
        t._rg = False
        t._node = t._storage = t._leaf = None
        if made._storage is not None:
            t.set_storage(made._storage, made._steps)
        return t

    # ---- what it is ----

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    nelement = numel

    @property
    def size(self) -> SizeMember:
        """The number of elements; called, `size()` is the shape and `size(dim)` one size."""
        return SizeMember(self.shape)

    ndimension = TensorBase.dim

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides in elements, or that of one dim."""
        strides = layout(self)
        return tuple(strides) if dim is None else strides[check_dim("stride", dim, len(self.shape))]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Tell whether the elements lie in row-major order."""
        return movement._is_row_major(self)

    @property
    def layout(self) -> Any:
        """The kind of storage: always strided."""
        return strided_layout

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is a float."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Tell whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Tell whether the dtype has negative numbers."""
        return self.dtype.is_signed

    @property
    def is_cuda(self) -> bool:
        """Whether it lives on a CUDA device."""
        return self._device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether it lives on the CPU."""
        return self._device.type == "cpu"

    def get_device(self) -> int:
        """Return the index of the device, -1 for the CPU."""
        return -1 if self._device.index is None else self._device.index

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return tuple.__getitem__(self.shape, 0)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(len(self))])

    # ---- values on the host ----

    def _host(self) -> HostBuffer:
        return self._device.backend.to_host(self._data)  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """Return nested lists of Python numbers, or one number when 0-d."""
        return self._host().tolist()

    def item(self) -> Any:
        """Return the Python number of a one-element tensor."""
        if prod(self.shape) != 1:
            raise RuntimeError(f"item: a Tensor with {self.numel()} elements cannot be converted to Scalar.")
        return self._device.backend.item(self._data)

    def __bool__(self) -> bool:
        n = prod(self.shape)
        if n == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        if n > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous. Use .any() or .all().")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iub" or prod(self.shape) != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.shape and spec else str(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return tensor_repr(self)

    def __contains__(self, item: Any) -> bool:
        if not isinstance(item, (TensorBase, int, float, complex)):
            raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar; got {type(item).__name__}.")
        return bool((self == item).any().item())

    def numpy(self, *, force: bool = False) -> Any:
        """Return a NumPy array over the same memory; needs a CPU tensor outside the graph, or `force=True`."""
        x = self
        if force:
            x = x.detach().cpu()
        if x._rg:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        if not x.is_cpu:
            raise TypeError(
                f"can't convert {x.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        from mortice.interop import to_numpy

        x.own_storage().pinned = True
        return to_numpy(x)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = self.numpy()
        if dtype is not None and found.dtype != dtype:
            return found.astype(dtype)
        return found.copy() if copy else found

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: Any = False) -> Any:
        # What NumPy calls with the result of one of its functions, so that np.sin(tensor) is a tensor.
        return creation.as_tensor(array)

    def data_ptr(self) -> int:
        """Return the address of the first element, where the backend has one."""
        self.own_storage().pinned = True
        return self._device.backend.address(self._data)  # type: ignore[no-any-return]

    # ---- conversion and moving ----

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`, `to(backend=...)`; self if unchanged."""
        device, dtype, copy, backend = _to_arguments(args, kwargs)
        t = self
        if device is not None or backend is not None:
            if backend is None and Device(device) == self._device:
                target = self._device
            else:
                target = resolve(device if device is not None else None, backend) if (
                    device is not None or backend is not None) else self._device  # fmt: skip
            t = movement.transfer(t, target)
        if dtype is not None:
            t = movement.cast(t, dtype)
        return movement.clone(t) if copy and t is self else t

    def type(self, dtype: Any = None) -> Any:
        """Convert to a dtype; without one, return the name of PyTorch's class for this dtype."""
        if isinstance(dtype, str):
            name = dtype.rpartition(".")[2].removesuffix("Tensor")
            found = next((d for d, class_name in _CLASS_NAMES.items() if class_name == name), None)
            if found is None or not dtype.endswith("Tensor"):
                raise ValueError(f"type: invalid type: {dtype!r}; expected a dtype or a name such as 'mortice.FloatTensor'.")
            dtype = creation_dtype(found)
        if dtype is not None:
            return self.to(dtype)
        return f"mortice.{_CLASS_NAMES[self.dtype.name]}Tensor"

    def type_as(self, other: Any) -> Any:
        """Convert to the dtype of another tensor."""
        return self.to(other.dtype)

    def cpu(self, memory_format: Any = None) -> Any:
        """Return it on the CPU; self if it is there."""
        return self if self.is_cpu else self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Return it on a CUDA device."""
        return self.to("cuda" if device is None else Device(device))

    def contiguous(self, memory_format: Any = None) -> Any:
        """Return it in row-major order; self if it is."""
        return self if movement._is_row_major(self) else arrange.row_major(self)

    # fmt: off
    def float(self, memory_format: Any = None) -> Any: return self.to(float32)
    def double(self, memory_format: Any = None) -> Any: return self.to(float64)
    def half(self, memory_format: Any = None) -> Any: return self.to(float16)
    def bfloat16(self, memory_format: Any = None) -> Any: return self.to(creation_dtype("bfloat16"))
    def long(self, memory_format: Any = None) -> Any: return self.to(int64)
    def int(self, memory_format: Any = None) -> Any: return self.to(creation_dtype("int32"))
    def short(self, memory_format: Any = None) -> Any: return self.to(creation_dtype("int16"))
    def char(self, memory_format: Any = None) -> Any: return self.to(creation_dtype("int8"))
    def byte(self, memory_format: Any = None) -> Any: return self.to(creation_dtype("uint8"))
    def bool(self, memory_format: Any = None) -> Any: return self.to(bool_)
    def cfloat(self, memory_format: Any = None) -> Any: return self.to(creation_dtype("complex64"))
    def cdouble(self, memory_format: Any = None) -> Any: return self.to(creation_dtype("complex128"))
    # fmt: on

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
    ) -> None:
        """Compute the gradients of this tensor with respect to the leaves and add them to their `.grad`."""
        from mortice.autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def detach_(self) -> Any:
        """Leave the graph in place."""
        if self._base is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self._node, self._rg = None, False
        return self

    def __copy__(self) -> Any:
        # The same memory, so that a shallow copy of a module trains the module's own parameters.
        alias = self.detach()
        t = object.__new__(type(self))
        for name in ("_data", "_device", "dtype", "shape"):
            setattr(t, name, getattr(alias, name))
        t._rg, t._node, t._storage, t._leaf = self._rg, None, None, None
        if alias._storage is not None:
            t.set_storage(alias._storage, alias._steps)
        t.__dict__.update(self.__dict__)
        return t

    def __deepcopy__(self, memo: Any) -> Any:
        if self._node is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        if id(self) in memo:
            return memo[id(self)]
        import copy

        made = movement.clone(self.detach())
        t = object.__new__(type(self))
        for name in ("_data", "_device", "dtype", "shape"):
            setattr(t, name, getattr(made, name))
        t._rg, t._node, t._storage, t._leaf = self._rg, None, None, None
        memo[id(self)] = t
        t.__dict__.update(copy.deepcopy(self.__dict__, memo))
        if self._leaf is not None and self._leaf.grad is not None:
            t._state().grad = copy.deepcopy(self._leaf.grad, memo)
        return t

    def __reduce_ex__(self, protocol: Any) -> Any:
        host = self.detach()._host()
        state = (host.tobytes(), tuple(self.shape), self.dtype, str(self._device), self._rg, dict(self.__dict__))
        return (_rebuild, (type(self), state))

    # ---- operators ----

    __hash__ = TensorBase.__hash__
    __add__ = __radd__ = _operator(elementwise._add)
    __sub__, __rsub__ = _operator(elementwise._sub), _reflected(elementwise._sub)
    __mul__ = __rmul__ = _operator(elementwise.mul)
    __truediv__, __rtruediv__ = _operator(elementwise._div), _reflected(elementwise._div)
    __div__, __rdiv__ = __truediv__, __rtruediv__
    __floordiv__, __rfloordiv__ = _operator(elementwise.floor_divide), _reflected(elementwise.floor_divide)
    __mod__, __rmod__ = _operator(elementwise.remainder), _reflected(elementwise.remainder)
    __pow__, __rpow__ = _operator(elementwise.pow), _reflected(elementwise.pow)
    __lt__, __le__ = _operator(compare.lt), _operator(compare.le)
    __gt__, __ge__ = _operator(compare.gt), _operator(compare.ge)
    __eq__, __ne__ = _operator(compare.eq), _operator(compare.ne)  # type: ignore[assignment]
    __and__ = __rand__ = _operator(compare.bitwise_and)
    __or__ = __ror__ = _operator(compare.bitwise_or)
    __xor__ = __rxor__ = _operator(compare.bitwise_xor)
    __lshift__, __rlshift__ = _operator(compare.bitwise_left_shift), _reflected(compare.bitwise_left_shift)
    __rshift__, __rrshift__ = _operator(compare.bitwise_right_shift), _reflected(compare.bitwise_right_shift)
    __neg__, __pos__, __abs__, __invert__ = unary.neg, unary.positive, unary.abs, compare.bitwise_not
    __iadd__, __isub__, __imul__ = inplace(elementwise._add), inplace(elementwise._sub), inplace(elementwise.mul)
    __itruediv__, __ifloordiv__ = inplace(elementwise._div), inplace(elementwise.floor_divide)
    __imod__, __ipow__ = inplace(elementwise.remainder), inplace(elementwise.pow)
    __iand__, __ior__, __ixor__ = (
        inplace(compare.bitwise_and), inplace(compare.bitwise_or), inplace(compare.bitwise_xor))  # fmt: skip
    __ilshift__, __irshift__ = inplace(compare.bitwise_left_shift), inplace(compare.bitwise_right_shift)
    __getitem__ = index.getitem
    __setitem__ = index.setitem

    # ---- elementwise: two operands ----

    add, sub, subtract, mul = elementwise.add, elementwise.sub, elementwise.subtract, elementwise.mul
    multiply, div, divide, true_divide = (
        elementwise.multiply, elementwise.div, elementwise.divide, elementwise.true_divide)  # fmt: skip
    floor_divide, remainder, fmod, pow = (
        elementwise.floor_divide, elementwise.remainder, elementwise.fmod, elementwise.pow)  # fmt: skip
    float_power, ldexp, maximum, minimum = (
        elementwise.float_power, elementwise.ldexp, elementwise.maximum, elementwise.minimum)  # fmt: skip
    fmax, fmin, clamp, clip = elementwise.fmax, elementwise.fmin, elementwise.clamp, elementwise.clip
    clamp_min, clamp_max, addcmul, addcdiv = (
        elementwise.clamp_min, elementwise.clamp_max, blend.addcmul, blend.addcdiv)  # fmt: skip
    lerp, copysign, heaviside, nextafter = (
        blend.lerp, elementwise.copysign, elementwise.heaviside, elementwise.nextafter)  # fmt: skip
    add_, sub_, subtract_ = inplace(elementwise.add), inplace(elementwise.sub), inplace(elementwise.subtract)
    mul_, multiply_, div_ = inplace(elementwise.mul), inplace(elementwise.multiply), inplace(elementwise.div)
    divide_, true_divide_ = inplace(elementwise.divide), inplace(elementwise.true_divide)
    floor_divide_, remainder_ = inplace(elementwise.floor_divide), inplace(elementwise.remainder)
    fmod_, pow_, float_power_ = (
        inplace(elementwise.fmod), inplace(elementwise.pow), inplace(elementwise.float_power_into, "float_power_"))  # fmt: skip
    ldexp_, clamp_, clip_ = inplace(elementwise.ldexp), inplace(elementwise.clamp), inplace(elementwise.clip)
    clamp_min_, clamp_max_ = inplace(elementwise.clamp_min), inplace(elementwise.clamp_max)
    addcmul_, addcdiv_, lerp_ = (
        inplace(blend.addcmul), inplace(blend.addcdiv), inplace(blend.lerp))  # fmt: skip
    copysign_, heaviside_ = inplace(elementwise.copysign), inplace(elementwise.heaviside)
    nextafter_ = inplace(elementwise.nextafter)

    def where(self, condition: Any, other: Any) -> Any:
        """Choose own elements where the condition holds, else those of `other`."""
        return elementwise.where(condition, self, other)

    # ---- elementwise: one operand ----

    neg, negative, positive, abs, absolute, sign = (
        unary.neg, unary.negative, unary.positive, unary.abs, unary.absolute, unary.sign)  # fmt: skip
    sgn, sqrt, rsqrt, square, reciprocal, exp, exp2 = (
        unary.sgn, unary.sqrt, unary.rsqrt, unary.square, unary.reciprocal, unary.exp, unary.exp2)  # fmt: skip
    expm1, log, log2, log10, log1p, sigmoid, sin = (
        unary.expm1, unary.log, unary.log2, unary.log10, unary.log1p, unary.sigmoid, unary.sin)  # fmt: skip
    cos, tan, asin, arcsin, acos, arccos, atan = (
        unary.cos, unary.tan, unary.asin, unary.arcsin, unary.acos, unary.arccos, unary.atan)  # fmt: skip
    arctan, atan2, arctan2, sinh, cosh, tanh, asinh = (
        unary.arctan, unary.atan2, unary.arctan2, unary.sinh, unary.cosh, unary.tanh, unary.asinh)  # fmt: skip
    arcsinh, acosh, arccosh, atanh, arctanh, hypot = (
        unary.arcsinh, unary.acosh, unary.arccosh, unary.atanh, unary.arctanh, unary.hypot)  # fmt: skip
    logaddexp, logaddexp2, floor, ceil, trunc, fix = (
        unary.logaddexp, unary.logaddexp2, unary.floor, unary.ceil, unary.trunc, unary.fix)  # fmt: skip
    round, frac, deg2rad, rad2deg, nan_to_num = (
        unary.round, unary.frac, unary.deg2rad, unary.rad2deg, unary.nan_to_num)  # fmt: skip
    neg_, negative_, abs_, absolute_ = (
        inplace(unary.neg), inplace(unary.negative), inplace(unary.abs_into, "abs_"), inplace(unary.abs_into, "abs_"))  # fmt: skip
    sign_, sgn_, sqrt_, rsqrt_ = (
        inplace(unary.sign), inplace(unary.sgn), inplace(unary.sqrt), inplace(unary.rsqrt))  # fmt: skip
    square_, reciprocal_, exp_, exp2_ = (
        inplace(unary.square), inplace(unary.reciprocal), inplace(unary.exp), inplace(unary.exp2))  # fmt: skip
    expm1_, log_, log2_, log10_ = (
        inplace(unary.expm1), inplace(unary.log), inplace(unary.log2), inplace(unary.log10))  # fmt: skip
    log1p_, sigmoid_, sin_, cos_ = (
        inplace(unary.log1p), inplace(unary.sigmoid), inplace(unary.sin), inplace(unary.cos))  # fmt: skip
    tan_, asin_, arcsin_, acos_ = (
        inplace(unary.tan), inplace(unary.asin), inplace(unary.arcsin), inplace(unary.acos))  # fmt: skip
    arccos_, atan_, arctan_, atan2_ = (
        inplace(unary.arccos), inplace(unary.atan), inplace(unary.arctan), inplace(unary.atan2))  # fmt: skip
    arctan2_, sinh_, cosh_, tanh_ = (
        inplace(unary.arctan2), inplace(unary.sinh), inplace(unary.cosh), inplace(unary.tanh))  # fmt: skip
    asinh_, arcsinh_, acosh_, arccosh_ = (
        inplace(unary.asinh), inplace(unary.arcsinh), inplace(unary.acosh), inplace(unary.arccosh))  # fmt: skip
    atanh_, arctanh_, hypot_, floor_ = (
        inplace(unary.atanh), inplace(unary.arctanh), inplace(unary.hypot), inplace(unary.floor))  # fmt: skip
    ceil_, trunc_, fix_, round_ = (
        inplace(unary.ceil), inplace(unary.trunc), inplace(unary.fix), inplace(unary.round))  # fmt: skip
    frac_, deg2rad_, rad2deg_ = inplace(unary.frac), inplace(unary.deg2rad), inplace(unary.rad2deg)
    nan_to_num_ = inplace(unary.nan_to_num)
    erf, erfc, erfinv, lgamma, digamma = (
        special.erf, special.erfc, special.erfinv, special.lgamma, special.digamma)  # fmt: skip
    polygamma, mvlgamma, logit, sinc, xlogy = (
        special.polygamma, special.mvlgamma, special.logit, special.sinc, special.xlogy)  # fmt: skip
    erf_, erfc_, erfinv_ = inplace(special.erf), inplace(special.erfc), inplace(special.erfinv)
    lgamma_, digamma_, polygamma_ = (
        inplace(special.lgamma), inplace(special.digamma), inplace(special.polygamma))  # fmt: skip
    mvlgamma_, logit_, sinc_ = inplace(special.mvlgamma), inplace(special.logit), inplace(special.sinc)
    xlogy_ = inplace(special.xlogy)
    angle, conj, conj_physical, resolve_conj = (
        complex_ops.angle, complex_ops.conj, complex_ops.conj_physical, complex_ops.resolve_conj)  # fmt: skip
    resolve_neg = complex_ops.resolve_neg
    conj_physical_ = inplace(complex_ops.conj_physical)
    real = property(complex_ops.real)
    imag = property(complex_ops.imag)

    def is_conj(self) -> bool:
        """Tell whether conjugation is pending; it never is."""
        return False

    is_neg = is_conj

    # ---- comparison, logic, bits ----

    eq, ne, lt, le, gt, ge, not_equal = (
        compare.eq, compare.ne, compare.lt, compare.le, compare.gt, compare.ge, compare.not_equal)  # fmt: skip
    less, less_equal, greater, greater_equal = (
        compare.less, compare.less_equal, compare.greater, compare.greater_equal)  # fmt: skip
    logical_and, logical_or, logical_xor, logical_not = (
        compare.logical_and, compare.logical_or, compare.logical_xor, compare.logical_not)  # fmt: skip
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = (
        compare.bitwise_and, compare.bitwise_or, compare.bitwise_xor, compare.bitwise_not)  # fmt: skip
    bitwise_left_shift, bitwise_right_shift, isnan, isinf = (
        compare.bitwise_left_shift, compare.bitwise_right_shift, compare.isnan, compare.isinf)  # fmt: skip
    isfinite, isposinf, isneginf, isreal, isclose = (
        compare.isfinite, compare.isposinf, compare.isneginf, compare.isreal, compare.isclose)  # fmt: skip
    allclose, equal, signbit = compare.allclose, compare.equal, compare.signbit
    eq_, ne_, lt_, le_ = inplace(compare.eq), inplace(compare.ne), inplace(compare.lt), inplace(compare.le)
    gt_, ge_, not_equal_ = inplace(compare.gt), inplace(compare.ge), inplace(compare.not_equal)
    less_, less_equal_, greater_ = inplace(compare.less), inplace(compare.less_equal), inplace(compare.greater)
    greater_equal_, logical_and_, logical_or_ = (
        inplace(compare.greater_equal), inplace(compare.logical_and), inplace(compare.logical_or))  # fmt: skip
    logical_xor_, logical_not_, bitwise_and_ = (
        inplace(compare.logical_xor), inplace(compare.logical_not), inplace(compare.bitwise_and))  # fmt: skip
    bitwise_or_, bitwise_xor_, bitwise_not_ = (
        inplace(compare.bitwise_or), inplace(compare.bitwise_xor), inplace(compare.bitwise_not))  # fmt: skip
    bitwise_left_shift_, bitwise_right_shift_ = (
        inplace(compare.bitwise_left_shift), inplace(compare.bitwise_right_shift))  # fmt: skip

    # ---- reductions ----

    sum, prod, mean, nansum, nanmean, any = (
        reduce.sum, reduce.prod, reduce.mean, reduce.nansum, reduce.nanmean, reduce.any)  # fmt: skip
    all, count_nonzero, max, min, amax, amin = (
        reduce.all, reduce.count_nonzero, reduce.max, reduce.min, reduce.amax, reduce.amin)  # fmt: skip
    aminmax, argmax, argmin = reduce.aminmax, reduce.argmax, reduce.argmin
    std, var, norm, dist, logsumexp = (
        statistics.std, statistics.var, statistics.norm, statistics.dist, statistics.logsumexp)  # fmt: skip
    median, nanmedian, mode, kthvalue = (
        statistics.median, statistics.nanmedian, statistics.mode, statistics.kthvalue)  # fmt: skip
    quantile, nanquantile, bincount, histc = (
        statistics.quantile, statistics.nanquantile, statistics.bincount, statistics.histc)  # fmt: skip
    cumsum, cumprod, cummax, cummin, logcumsumexp, diff = (
        scan.cumsum, scan.cumprod, scan.cummax, scan.cummin, scan.logcumsumexp, scan.diff)  # fmt: skip
    cumsum_, cumprod_ = inplace(scan.cumsum), inplace(scan.cumprod)

    # ---- neural networks ----

    relu, relu_, softmax, log_softmax = nn_ops.relu, nn_ops.relu_, nn_ops.softmax, nn_ops.log_softmax
    prelu, hardshrink = nn_ops.prelu, nn_ops.hardshrink

    # ---- sorting ----

    sort, argsort, msort, topk, unique = (
        sort_ops.sort, sort_ops.argsort, sort_ops.msort, sort_ops.topk, sort_ops.unique)  # fmt: skip
    unique_consecutive = sort_ops.unique_consecutive

    # ---- movement ----

    view, reshape, permute, transpose, t = (
        movement.view, movement.reshape, movement.permute, movement.transpose, movement.t)  # fmt: skip
    expand, broadcast_to, squeeze, unsqueeze = (
        movement.expand, movement.broadcast_to, movement.squeeze, movement.unsqueeze)  # fmt: skip
    clone = movement.clone
    view_as, reshape_as, expand_as, flatten, unflatten, ravel = (
        views.view_as, views.reshape_as, views.expand_as, views.flatten, views.unflatten, views.ravel)  # fmt: skip
    movedim, moveaxis, swapaxes, swapdims, adjoint, select, narrow = (
        views.movedim, views.moveaxis, views.swapaxes, views.swapdims, views.adjoint, views.select, views.narrow)  # fmt: skip
    unbind, split, split_with_sizes, chunk, tensor_split, hsplit, vsplit, dsplit = (
        views.unbind, views.split, views.split_with_sizes, views.chunk, views.tensor_split, views.hsplit, views.vsplit,
        views.dsplit)  # fmt: skip
    unsafe_split, unsafe_chunk = views.unsafe_split, views.unsafe_chunk
    diagonal, unfold, as_strided, storage_offset = (
        strided.diagonal, strided.unfold, strided.as_strided, strided.storage_offset)  # fmt: skip
    T, mT = property(views.property_T), property(views.property_mT)
    H, mH = property(views.property_H), property(views.property_mH)
    flip, fliplr, flipud, roll, rot90, repeat, tile, repeat_interleave = (
        arrange.flip, arrange.fliplr, arrange.flipud, arrange.roll, arrange.rot90, arrange.repeat, arrange.tile,
        arrange.repeat_interleave)  # fmt: skip
    tril, triu, diag, diag_embed, diagflat, diagonal_scatter, resize_, sum_to_size = (
        arrange.tril, arrange.triu, arrange.diag, arrange.diag_embed, arrange.diagflat, arrange.diagonal_scatter,
        arrange.resize_, arrange.sum_to_size)  # fmt: skip
    tril_, triu_ = inplace(arrange.tril), inplace(arrange.triu)
    narrow_copy, resize_as_, as_strided_ = views.narrow_copy, arrange.resize_as_, arrange.as_strided_
    squeeze_, unsqueeze_, t_, transpose_, swapaxes_, swapdims_ = (
        arrange.squeeze_, arrange.unsqueeze_, arrange.t_, arrange.transpose_, arrange.swapaxes_, arrange.swapdims_)  # fmt: skip

    # ---- indexing ----

    index_put, index_put_, copy_ = index.index_put, index.index_put_, index.copy_
    gather, scatter, scatter_add, scatter_reduce, index_select, index_add = (
        gather_ops.gather, gather_ops.scatter, gather_ops.scatter_add, gather_ops.scatter_reduce,
        gather_ops.index_select, gather_ops.index_add)  # fmt: skip
    index_copy, index_fill, index_reduce, take, put, take_along_dim = (
        gather_ops.index_copy, gather_ops.index_fill, gather_ops.index_reduce, gather_ops.take, gather_ops.put,
        gather_ops.take_along_dim)  # fmt: skip
    masked_fill, masked_select, masked_scatter, nonzero, argwhere = (
        gather_ops.masked_fill, gather_ops.masked_select, gather_ops.masked_scatter, gather_ops.nonzero,
        gather_ops.argwhere)  # fmt: skip
    select_scatter, slice_scatter = gather_ops.select_scatter, gather_ops.slice_scatter
    scatter_, scatter_add_, scatter_reduce_, index_add_, index_copy_, index_fill_, index_reduce_ = (
        gather_ops.scatter_, gather_ops.scatter_add_, gather_ops.scatter_reduce_, gather_ops.index_add_,
        gather_ops.index_copy_, gather_ops.index_fill_, gather_ops.index_reduce_)  # fmt: skip
    put_, masked_fill_, masked_scatter_, fill_, zero_ = (
        gather_ops.put_, gather_ops.masked_fill_, gather_ops.masked_scatter_, gather_ops.fill_, gather_ops.zero_)  # fmt: skip

    # ---- matrices ----

    __matmul__, __rmatmul__ = matmul_ops.matmul_operator, matmul_ops.rmatmul_operator
    matmul, mm, bmm, mv, dot, vdot, inner, outer, ger = (
        matmul_ops.matmul, matmul_ops.mm, matmul_ops.bmm, matmul_ops.mv, matmul_ops.dot, matmul_ops.vdot,
        matmul_ops.inner, matmul_ops.outer, matmul_ops.ger)  # fmt: skip
    addmm, addmv, addr, addbmm, baddbmm, kron, trace, cross, cov, corrcoef = (
        matmul_ops.addmm, matmul_ops.addmv, matmul_ops.addr, matmul_ops.addbmm, matmul_ops.baddbmm, matmul_ops.kron,
        matmul_ops.trace, matmul_ops.cross, matmul_ops.cov, matmul_ops.corrcoef)  # fmt: skip
    addmm_, addmv_, addr_, addbmm_, baddbmm_ = (
        matmul_ops.addmm_, matmul_ops.addmv_, matmul_ops.addr_, matmul_ops.addbmm_, matmul_ops.baddbmm_)  # fmt: skip
    cholesky, cholesky_solve, cholesky_inverse, inverse, pinverse, det, logdet, slogdet = (
        linalg_ops.torch_cholesky, linalg_ops.cholesky_solve, linalg_ops.cholesky_inverse, linalg_ops.inverse,
        derived.pinverse, linalg_ops.det, linalg_ops.logdet, linalg_ops.slogdet)  # fmt: skip
    orgqr = derived.orgqr
    qr, svd, lu, lu_solve, matrix_power, matrix_exp, triangular_solve = (
        linalg_ops.torch_qr, linalg_ops.torch_svd, linalg_ops.method_lu, linalg_ops.torch_lu_solve,
        derived.matrix_power, derived.matrix_exp, linalg_ops.triangular_solve)  # fmt: skip

    # ---- random ----

    uniform_, normal_, bernoulli_, random_ = randoms.uniform_, randoms.normal_, randoms.bernoulli_, randoms.random_
    exponential_, cauchy_, geometric_ = randoms.exponential_, randoms.cauchy_, randoms.geometric_
    log_normal_, bernoulli, multinomial = randoms.log_normal_, randoms.bernoulli, randoms.multinomial

    # ---- creation ----

    new_zeros, new_ones, new_empty = creation.new_zeros, creation.new_ones, creation.new_empty
    new_full, new_tensor = creation.new_full, creation.new_tensor


_CLASS_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip


def creation_dtype(name: str) -> DType:
    """Return a dtype by name, inside the class whose methods are called like dtypes."""
    from mortice.dtype import by_name

    return by_name(name)


def _to_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Sort the arguments of `to`."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    backend, copy = kwargs.pop("backend", None), kwargs.pop("copy", False)
    other = kwargs.pop("other", None)
    kwargs.pop("non_blocking", None), kwargs.pop("memory_format", None)
    if kwargs:
        raise TypeError(f"to: unexpected arguments {', '.join(kwargs)}.")
    flags = 0
    for a in args:
        if isinstance(a, DType):
            dtype = a
        elif isinstance(a, TensorBase):
            other = a
        elif isinstance(a, (str, Device)) or (isinstance(a, int) and not isinstance(a, bool)):
            device = a
        elif isinstance(a, bool):
            copy = a if flags else copy
            flags += 1
        elif a is not None:
            raise TypeError(f"to: expected a dtype, a device or a Tensor; got {a!r}.")
    if other is not None:
        device, dtype = other._device, other.dtype
    if dtype is not None and not isinstance(dtype, DType):
        raise TypeError(f"to: expected dtype to be a mortice dtype; got {dtype!r}.")
    return device, dtype, copy, backend


def _rebuild(cls: Any, state: Any) -> Any:
    """Rebuild a pickled tensor, on its device where it exists, else on the default one."""
    data, shape, dtype, device, requires_grad, extra = state
    try:
        where = resolve(device)
    except RuntimeError:
        where = resolve()
    t = object.__new__(cls)
    t._data = where.backend.from_host(HostBuffer(bytearray(data), shape, dtype), where)
    t._device, t.dtype, t.shape = where, dtype, Size(shape)
    t._rg, t._node, t._storage, t._leaf = requires_grad, None, None, None
    t.__dict__.update(extra)
    return t


TensorBase.cls = Tensor
