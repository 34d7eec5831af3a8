"""Op and `@op`: one block holds an operation's body, dtype rule, shape rule and gradient formulas.

The rules have their names in `rules`; what becomes of a call is `call`, of a gradient formula `formula`.
"""

from __future__ import annotations

import functools
from importlib import import_module

from mortice.call import binary, general, unary, unary_with_attributes, viewing
from mortice.catalog import OPS as CATALOG
from mortice.dtype import check_kind, float32, no_float8
from mortice.formula import Differentiable, signature
from mortice.node import TENSOR_KERNELS
from mortice.rules import fit_number, promote, same, to_scalar
from mortice.shape import broadcast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mortice.dtype import DType

    Rule = Callable[["Op", DType], tuple[DType, Any]]
    OPS: dict[str, Op]  # every op by its name

_ops: dict[str, Op] = {}  # those of the modules that have been imported


def __getattr__(name: str) -> Any:
    if name != "OPS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in CATALOG:
        import_module(f"mortice.{module}")
    return globals().setdefault("OPS", _ops)


class Op(Differentiable):
    """An operation: everything the core knows about it."""

    __slots__ = ()

    def __init__(
        self,
        body: Callable[..., Any],
        *,
        result: Rule | None,
        shape: Callable[..., Any] | None,
        kernel: str | None,
        dtypes: str,
        view: bool,
        outputs: tuple[str, ...],
        differentiable: int | None,
        holomorphic: bool,
        check: Callable[..., Any] | None,
        grad_name: str | None,
        grad_name_of: Callable[[Any], str] | None,
        scalars: bool | str,
        name: str | None,
        scatter: Callable[..., Any] | None,
        strides: Callable[..., Any] | None,
        start: Callable[..., int] | None,
        fixed: tuple[str, ...],
        number: Callable[..., Any] | None,
        operand: Callable[..., Any] | None,
        keeps_format: Callable[[int, Any], bool] | None,
        float8: str,
    ) -> None:
        super().__init__()
        self.name = (name or body.__name__).strip("_")
        self.body = body if kernel is None else lambda k, *operands, **attrs: getattr(k, kernel)(*operands, **attrs)
        self.result, self.shape, self.kernel, self.dtypes = result, shape, kernel, dtypes
        self.view, self.outputs, self.holomorphic, self.check, self.scalars = view, outputs, holomorphic, check, scalars
        self.differentiable = len(outputs) if differentiable is None else differentiable
        self.grad_name = grad_name or "".join(p.title() for p in self.name.split("_")) + "Backward0"
        self.grad_name_of = grad_name_of
        self.doc = body.__doc__
        self.scatter, self.strides, self.start, self.number = scatter, strides, start, number or fit_number
        self.operand = operand
        self.keeps_format, self.float8 = keeps_format, float8 or ("moved" if view else "")
        positional, star, self.attrs = signature(body)
        if positional[:1] != ["k"]:
            raise TypeError(f"op {self.name!r}: expected a body (k, operands..., /, *, attributes...); got ({', '.join(positional)}).")
        self.variadic = bool(star)
        self.inputs = positional[1:] + star
        self.fixed = frozenset(i for i, n in enumerate(self.inputs) if n in fixed)
        self.same_dtype: dict[DType, Any] = {}
        self.fn: Any = None
        self.observer: Callable[..., None] | None = None
        if not body.__module__.startswith("mortice."):
            __getattr__("OPS")  # a name that one of these has must be refused here, not when its family is imported
        if self.name in _ops:
            first = _ops[self.name].fn.__module__
            raise TypeError(f"op {self.name!r} is defined twice: in {first} and in {body.__module__}. Give one of them a `name`.")
        _ops[self.name] = self

    def rule(self, d: DType) -> tuple[DType, Any]:
        """Return (compute dtype, result dtype) for operands of dtype `d`; refuse dtypes that the op does not take."""
        assert self.result is not None
        compute, result = self.result(self, d)
        if d.stored is not d and self.float8 != "moved":  # float8 is stored and converted, and hardly more
            if self.float8 != "read":
                raise no_float8(self.name, d)
            compute = float32
        check_kind(self.name, compute, self.dtypes, d)
        if compute is d and self.observer is None and (d.stored is d or not self.scalars):
            self.same_dtype[d] = result
        return compute, result

    def observe(self, observer: Callable[..., None] | None) -> None:
        """Show each call from now on, as `observer(op, operands, attributes, result)`; None ends it.

        Views are not shown: their fast cases ask nothing of the dtype.
        """
        self.observer = observer
        self.same_dtype.clear()  # the fast cases look here first, and leave to `slow` what they do not find

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def op(
    *given: Any,
    result: Rule | None = promote,
    shape: Callable[..., Any] | None = None,
    kernel: str | None = None,
    dtypes: str = "buifc",
    view: bool = False,
    outputs: tuple[str, ...] = (),
    differentiable: int | None = None,
    holomorphic: bool = True,
    check: Callable[..., Any] | None = None,
    grad_name: str | None = None,
    grad_name_of: Callable[[Any], str] | None = None,
    scalars: bool | str | None = None,
    name: str | None = None,
    scatter: Callable[..., Any] | None = None,
    strides: Callable[..., Any] | None = None,
    start: Callable[..., int] | None = None,
    fixed: tuple[str, ...] = (),
    number: Callable[..., Any] | None = None,
    operand: Callable[..., Any] | None = None,
    keeps_format: Callable[[int, Any], bool] | None = None,
    float8: str = "",
) -> Callable[[Callable[..., Any]], Any]:
    """Declare an operation by its body, `(k, operands..., /, *, attributes...)` with k the kernels; returns the function that
    users call, with `.vjp`, `.no_grad` and `.op` on it.

    Args:
        result: the dtype rule (`promote`, `floating`, `comparison`, ...), by default the operands' common dtype.
        shape: the shape rule `(op name, shapes..., **attributes) -> Size`; None asks the backend afterwards.
        kernel: the kernel that computes the op, when one does alone; of the body its parameters and docstring count then.
        dtypes: the kinds (of "buifc") that the op computes in.
        view: the result shares memory with the first operand.
        outputs: names of the outputs, when there are several; the first `differentiable` have gradients.
        holomorphic: False when the formulas treat complex numbers themselves (abs, real, conj, ...).
        check: called as `check(op name, operands..., **attributes)` once dtypes are settled.
        grad_name: the name of the grad_fn, when it is not the op's own.
        grad_name_of: called with a node, returns the name of this one, where PyTorch has several functions for the op.
        scalars: whether Python numbers may stand for operands, by default for elementwise ops; "alone" also for all of them.
        name: the op's name, when the body's is taken.
        scatter: for a view, `scatter(k, x, part, **attributes)` returns x with what the view shows replaced by part.
        strides: for a view, `strides(shape, strides, **attributes)` returns the view's strides.
        start: for a view, takes the same and returns how many of its elements farther it begins, if it does.
        fixed: inputs such as indices and conditions that keep their dtype and take no part in promotion.
        number: the rule for Python numbers, by default that integer dtypes take those that they can hold. Where a call has been
            seen with its dtypes, floats beside floating tensors are handed on unasked.
        operand: called as `operand(op, dtype)` with the dtype of each operand as it came, to refuse some.
        keeps_format: tells of the dims of an operand, and the attributes, whether the result has the memory format that one of the
            first two operands has, and their gradients too.
        float8: what is done with float8, which no kernel computes in: "moved" as views are, whatever the elements are; "read",
            that is computed in float32; by default it is refused.
    """

    if given:
        raise TypeError(f"op: expected arguments by name, as in `@op()`; got {given[0]!r}.")

    def declare(body: Callable[..., Any]) -> Any:
        allow = shape is broadcast if scalars is None else scalars
        made = Op(
            body, result=result, shape=shape, kernel=kernel, dtypes=dtypes, view=view, outputs=outputs or ("out",),
            differentiable=differentiable, holomorphic=holomorphic, check=check, grad_name=grad_name, scalars=allow,
            grad_name_of=grad_name_of, name=name, scatter=scatter, strides=strides, start=start, fixed=fixed,
            number=number, operand=operand, keeps_format=keeps_format, float8=float8,
        )  # fmt: skip
        plain = not (made.variadic or outputs or view or check or fixed or shape is None)
        count = len(made.inputs)
        if view and count == 1 and result is promote and made.attrs:
            fn: Any = viewing(made)
        elif plain and made.attrs and count == 1:
            fn = unary_with_attributes(made)
        elif plain and not made.attrs and (count == 2 or (count == 1 and shape in (same, to_scalar))):
            fn = (unary, binary)[count - 1](made)
        else:
            fn = general(made)
        functools.update_wrapper(fn, body, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
        del fn.__wrapped__
        fn.op, fn.vjp, fn.no_grad = made, made.vjp, made.no_grad
        made.fn = fn
        TENSOR_KERNELS.define(kernel or made.name, fn)
        return fn

    return declare
