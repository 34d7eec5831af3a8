"""MaskedTensor: a tensor some of whose elements are masked out, in what is computed of it too."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import Tensor
from mortice.masked import _ops
from mortice.notice import warn
from mortice.overrides import DisableTorchFunctionSubclass

_DTYPES = (
    mortice.float16, mortice.float32, mortice.float64, mortice.bool, mortice.int8, mortice.int16, mortice.int32, mortice.int64,
)  # fmt: skip
_REDUCED = frozenset("sum mean amin amax argmin argmax prod all norm var std".split())
_UNARY = frozenset(
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp "
    "clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 "
    "logit i0 isnan nan_to_num neg negative positive pow rad2deg reciprocal relu round rsqrt sigmoid sign sgn signbit sin sinc sinh "
    "sqrt square tan tanh trunc detach clone to float double half int long bool contiguous ones_like zeros_like __invert__".split()
)
_BINARY = frozenset(
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod "
    "logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt "
    "less_equal lt less maximum minimum fmax fmin not_equal __eq__ __ne__ __rsub__ __rtruediv__ __and__ __or__ __xor__ "
    "__floordiv__".split()
)
_PLACED = frozenset(  # what moves elements does the same to the mask
    "select transpose split t expand view reshape flatten cat unsqueeze squeeze stack unfold permute chunk unbind narrow "
    "__getitem__ expand_as view_as concat swapaxes".split()
)
_OWN = frozenset("requires_grad_ backward retain_grad register_hook".split())


def is_masked_tensor(obj: Any, /) -> bool:
    """Tell whether an object is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def _map(fn: Any, value: Any) -> Any:
    """Return what holds the values of `value`, with each MaskedTensor after `fn`."""
    if isinstance(value, (list, tuple)):
        return type(value)([_map(fn, v) for v in value])
    return fn(value) if is_masked_tensor(value) else value


def _data(value: Any) -> Any:
    return _map(MaskedTensor.get_data, value)


def _counted(data: Any, mask: Any) -> Any:
    """Return data whose gradient is 0 where they are masked out, whatever is computed of them there."""
    return mortice.where(mask, data, data.detach()) if data.requires_grad else data


def _made(data: Any, mask: Any) -> Any:
    """Return data with its mask, in the graph that it is in."""
    if isinstance(data, (list, tuple)):
        return type(data)([_made(d, m) for d, m in zip(data, mask)])
    data.__class__ = MaskedTensor
    data._masked_mask = mask
    return data


class MaskedTensor(Tensor):
    """A tensor with a mask, True where an element counts.

    Differs from torch: data and mask are strided; sparse ones are refused. Gradients of plain tensors are plain, and get
    nothing from what is masked out.
    """

    _masked_mask: Any

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        """Return a copy of the data, with a copy of the mask."""
        for name, value in (("data", data), ("mask", mask)):
            if is_masked_tensor(value) or not mortice.is_tensor(value):
                raise TypeError(f"{name} must be a Tensor")
            if value.layout is not mortice.strided:
                raise TypeError(f"MaskedTensor: expected strided {name}; got {value.layout}. Call to_dense() first.")
        warn(
            "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github "
            "issue for features requests and see our documentation on the torch.masked module for further information about "
            "the project."
        )
        if data.requires_grad:
            warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
                "data.detach().clone()"
            )
        _check(data, mask)
        made = _made(data.detach().clone(), mask.clone())
        with DisableTorchFunctionSubclass():
            return made.requires_grad_(requires_grad)

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, func.__name__
        plain, inplace = name, name.endswith("_") and not name.endswith("__")
        if inplace:
            plain = name[:-1]
        if name in _REDUCED:
            return _reduced(name, *args, **kwargs)
        if name in _OWN:
            with DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if name == "grad":  # mortice.autograd.grad, of these outputs and inputs themselves
            with DisableTorchFunctionSubclass():
                found = func(*args, **kwargs)
            return tuple([_made(g, x._masked_mask) if is_masked_tensor(x) and g is not None else g for g, x in zip(found, args[1])])
        values, named = _data(args), {k: _data(v) for k, v in kwargs.items()}
        if name == "__get__":
            name, plain = "get", ""
        if plain in _BINARY:
            masks = [a._masked_mask for a in args[:2] if is_masked_tensor(a)]
            if len(masks) > 1 and not mortice.equal(*masks):
                raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
            guarded = [
                _counted(v, masks[0]) if mortice.is_tensor(v) and v is a and not (inplace and v is args[0]) else v
                for v, a in zip(values, args)
            ]
            made = func(*guarded, **named)
            return args[0] if inplace else _made(made, masks[0].expand_as(made))
        if plain in _UNARY:
            made = func(*values, **named)
            return args[0] if inplace else _made(made, args[0]._masked_mask)
        if name in _PLACED:
            return _made(func(*values, **named), func(*_map(MaskedTensor.get_mask, args), **kwargs))
        if name == "softmax":
            filled = mortice.where(args[0]._masked_mask, values[0], -mortice.inf)
            return _made(func(filled, *args[1:], **kwargs), args[0]._masked_mask)
        if name == "where":
            masks = [a._masked_mask if is_masked_tensor(a) else mortice.ones_like(a, dtype=mortice.bool) for a in args[1:3]]
            return _made(mortice.where(*values), mortice.where(args[0], *masks))
        if name == "item" and not bool(args[0]._masked_mask):
            raise ValueError("item: expected an element that counts; got one that is masked out.")
        made = func(*values, **named)
        if any([isinstance(m, Tensor) for m in (made if isinstance(made, (list, tuple)) else (made,))]):
            raise TypeError(
                f"no implementation found for 'torch.{name}' on types that implement __torch_function__: [MaskedTensor]. "
                "Use get_data() or to_tensor(value)."
            )
        return made

    @property
    def grad(self) -> Any:
        """The gradient, with the tensor's own mask."""
        found = Tensor.grad.__get__(self)
        return None if found is None else _made(found.clone(), self._masked_mask)

    @grad.setter
    def grad(self, value: Any) -> None:
        Tensor.grad.__set__(self, _data(value))

    def get_data(self) -> Any:
        """Return all elements as a tensor."""
        return self.as_subclass(Tensor)

    def get_mask(self) -> Any:
        """Return the mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Any:
        """Return a tensor with `value` for what is masked out."""
        return self.get_data().masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self) -> bool:
        """Return False."""
        return False

    def is_sparse_csr(self) -> bool:
        """Return False."""
        return False

    def __repr__(self, **options: Any) -> str:
        data, mask = self.get_data().detach(), self._masked_mask
        if data.dim() == 0:
            return f"MaskedTensor({_element(data.item()) if mask.item() else '--'}, {mask.item()})"
        return f"MaskedTensor(\n{_indented(_text(data, mask))}\n)"

    __str__ = __repr__


def _check(data: Any, mask: Any) -> None:
    if mask.dtype is not mortice.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")


def _reduced(name: str, input: Any, *args: Any, **kwargs: Any) -> Any:
    data, mask = input.get_data(), input._masked_mask
    if name == "all":
        return _made(data.masked_fill(~mask, True).all(*args, **kwargs), mask.any(*args, **kwargs))
    if not args and not kwargs:
        return _made(getattr(_ops, name)(data, mask=mask), mask.any())
    return _over_dims(name, data, mask, *args, **kwargs)


def _over_dims(name: str, data: Any, mask: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    made = getattr(_ops, name)(data, dim=dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return _made(made, mask.any(dim, keepdim))


def _element(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def _text(data: Any, mask: Any) -> str:
    if data.dim() > 1:
        return "[\n" + ",\n".join(_indented(_text(d, m)) for d, m in zip(data, mask)) + "\n]"
    texts = [_element(v) if m else None for v, m in zip(data.tolist(), mask.tolist())]
    width = max((8 if text is None else len(text) for text in texts), default=0)
    return f"[{', '.join('--'.rjust(width) if text is None else text for text in texts)}]"


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """Return a MaskedTensor of copies, which begins a graph of its own."""
    return MaskedTensor(data, mask, requires_grad)  # type: ignore[no-any-return]


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """Return a MaskedTensor that is in the graph of the data."""
    _check(data, mask)
    return _made(_counted(data.clone(), mask), mask)  # type: ignore[no-any-return]
