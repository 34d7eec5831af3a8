"""Functions of one's own as operators with a gradient: PyTorch's torch.library."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace, UnionType
from typing import Any

import mortice
from mortice import Tensor
from mortice.autograd import Function
from mortice.autograd.graph import increment_version
from mortice.autograd.trees import leaves, rebuild

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "impl_abstract", "infer_schema", "opcheck", "register_autograd",
    "register_fake", "register_kernel", "register_vmap", "triton_op",
]  # fmt: skip

_defined: dict[str, CustomOpDef] = {}
# The keys of PyTorch's dispatcher that have a meaning here; None serves every device.
_KEYS = {"": None, "Default": None, "CompositeImplicitAutograd": None, "CompositeExplicitAutograd": None, "Meta": "meta"}


# ---- what arguments an operator has ----


class Schema:
    """The arguments of an operator, read from `name(Tensor x, Tensor(a!)[] out, *, float k=1.0) -> Tensor`."""

    def __init__(self, text: str) -> None:
        head = re.fullmatch(r"\s*([\w:.]*)\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
        if head is None:
            raise RuntimeError(f"library: expected a schema like 'name(Tensor x, int k=1) -> Tensor'; got {text!r}.")
        self.name, arguments, self.returns = head.groups()
        kind, found = inspect.Parameter.POSITIONAL_OR_KEYWORD, []
        self.mutated: set[str] = set()
        self.keyword_tensors = False
        for part in re.findall(r"""(?:"[^"]*"|'[^']*'|\([^)]*\)|\[[^]]*\]|[^,])+""", arguments.strip()):
            if part.strip() == "*":
                kind = inspect.Parameter.KEYWORD_ONLY
                continue
            one = re.fullmatch(r"\s*(\S+)\s+(\w+)\s*(?:=\s*(.*?))?\s*", part)
            if one is None:
                raise RuntimeError(f"library: expected 'type name' or 'type name=default' for each argument; got {part!r}.")
            type_, name, default = one.groups()
            if "!" in type_:
                self.mutated.add(name)
            if kind is inspect.Parameter.KEYWORD_ONLY and type_.startswith("Tensor"):
                self.keyword_tensors = True
            value = inspect.Parameter.empty if default is None else _value(default)
            found.append(inspect.Parameter(name, kind, default=value))
        self.signature = inspect.Signature(found)
        self.keywords = [p.name for p in found if p.kind is inspect.Parameter.KEYWORD_ONLY]


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return getattr(mortice, text, text)


def _basic(annotation: Any) -> str | None:
    """Return a schema's word for a type, or None."""
    words = {int: "SymInt", float: "float", bool: "bool", str: "str", mortice.dtype: "ScalarType", mortice.device: "Device"}
    if isinstance(annotation, type) and issubclass(annotation, Tensor):
        return "Tensor"
    if annotation == typing.Union[int, float, bool]:  # noqa: UP007, PyTorch's Number
        return "Scalar"
    return words.get(annotation) if isinstance(annotation, type) else None


def _type(annotation: Any) -> str | None:
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, UnionType) and type(None) in parts:
        inner = _type(typing.Union[tuple(p for p in parts if p is not type(None))])  # noqa: UP007, as many as there are
        return inner and inner + "?"
    if origin in (list, Sequence) and len(parts) == 1:
        inner = _type(parts[0])
        return inner and inner + "[]"
    return _basic(annotation)


def _returns(annotation: Any) -> str | None:
    if annotation is None or annotation is type(None):
        return "()"
    if typing.get_origin(annotation) is tuple:
        found = [_type(p) for p in typing.get_args(annotation)]
        return f"({', '.join(map(str, found))})" if all(found) else None
    return _type(annotation)


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """Return the schema that the annotations of a function say."""
    told = inspect.signature(prototype_function)

    def refuse(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {told})")

    try:
        signature = inspect.signature(prototype_function, eval_str=True)
    except NameError as e:
        raise refuse(f"expected annotations that name what the function's module has; {e}.") from e
    written: list[str] = []
    starred = False
    for name, p in signature.parameters.items():
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise refuse("We do not support positional-only args, varargs, or varkwargs.")
        if p.kind is p.KEYWORD_ONLY and not starred:
            starred = True
            written.append("*")
        if p.annotation is p.empty:
            raise refuse(f"Parameter {name} must have a type annotation.")
        if (type_ := _type(p.annotation)) is None:
            raise refuse(f"Parameter {name} has unsupported type {p.annotation}.")
        if "Tensor" in type_ and (name in mutates_args or mutates_args == "unknown"):
            type_ = type_.replace("Tensor", f"Tensor(a{len(written) - starred}!)")
        default = p.default
        if default is p.empty:
            written.append(f"{type_} {name}")
        elif default is None or isinstance(default, (int, float, bool)):
            written.append(f"{type_} {name}={default}")
        elif isinstance(default, mortice.dtype):
            written.append(f"{type_} {name}={str(default).rpartition('.')[2]}")
        elif isinstance(default, (str, mortice.device)):
            written.append(f'{type_} {name}="{default}"')
        else:
            raise refuse(f"Parameter {name} has an unsupported default value type {type(default)}.")
    if mutates_args != "unknown" and (extra := set(mutates_args) - set(signature.parameters)):
        raise refuse(
            f"{extra} in mutates_args were not found in the custom op's signature. mutates_args should contain the names of all "
            "args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    if signature.return_annotation is signature.empty:
        raise refuse("No return type annotation was provided. Please add one.")
    if (returns := _returns(signature.return_annotation)) is None:
        raise refuse(f"Return has unsupported type {signature.return_annotation}.")
    return f"{op_name or ''}({', '.join(written)}) -> {returns}"


# ---- operators ----


class _Layout:
    """The form of a call's arguments, whose leaves a Function takes, and of its result."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.args, self.listed = rebuild(args, iter([None] * sum(1 for _ in leaves(args)))), False


def _memory(x: Any) -> Any:
    """Return what is the same for tensors that share memory: their storage, once one of them has been made of another."""
    return (x if x._storage is None else x._storage) if isinstance(x, Tensor) else None


class CustomOpDef:
    """A function that runs as one step of the graph; what it does inside is not recorded."""

    def __init__(self, name: str, schema: str, kernels: dict[Any, Any], *, composite: bool = False) -> None:
        self._qualname, self._schema, self._kernels = name, Schema(schema), kernels
        self._overloads: dict[str, CustomOpDef] = {}
        self._off: set[Any] = set()
        # An operator of a Library without a gradient of its own has those of what its kernel does.
        self._composite = composite
        self._backward: Any = None
        self._setup: Any = None
        space, _, short = name.partition("::")
        self.__name__ = short
        steps = {"forward": self._forward, "setup_context": self._keep, "backward": self._pull}
        self._step: Any = type(self.__name__, (Function,), {n: staticmethod(f) for n, f in steps.items()})
        _defined[name] = self
        if not hasattr(mortice.ops, space):
            setattr(mortice.ops, space, SimpleNamespace())
        if isinstance(found := getattr(mortice.ops, space), SimpleNamespace):
            short, _, overload = short.partition(".")
            other = getattr(found, short, None)
            if isinstance(other, CustomOpDef) and other._qualname != name:
                self._overloads = other._overloads
            else:
                setattr(found, short, self)
            self._overloads[overload or "default"] = self

    def __getattr__(self, name: str) -> CustomOpDef:
        if (found := self.__dict__.get("_overloads", {}).get("default" if name == "_opoverload" else name)) is None:
            raise AttributeError(f"operator {self.__dict__.get('_qualname')} has no overload and no attribute {name!r}")
        return found

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _split(self, values: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Part the values of all arguments into those given by place and those by keyword."""
        names = self._schema.keywords
        rest = len(values) - len(names)
        return tuple(values[:rest]), dict(zip(names, values[rest:]))

    def _compute(self, args: Any) -> Any:
        device = next((a.device.type for a in leaves(args) if isinstance(a, Tensor)), "cpu")
        found = None if device in self._off else self._kernels.get(device)
        if (found := found or self._kernels.get(None)) is None:
            served = ", ".join(sorted(filter(None, self._kernels))) or "none"
            raise NotImplementedError(
                f"{self._qualname}: expected tensors of a device that has a kernel ({served}); got {device!r}. Register one for it."
            )
        inputs, keywords = self._split(args)
        return found(*inputs, **keywords)

    def _forward(self, layout: _Layout, *flat: Any) -> Any:
        output = self._compute(rebuild(layout.args, iter(flat)))
        known = {id(m) for a in flat if (m := _memory(a)) is not None}
        for place in [id(m) for o in leaves(output) if (m := _memory(o)) is not None]:
            if place in known:
                raise RuntimeError(
                    f"{self._qualname}: The output of this custom operator (1) must not also be an input to this custom operator "
                    "and (2) may not alias any inputs to this custom operator or other returns. Return a clone of it, or nothing."
                )
            known.add(place)
        layout.listed = isinstance(output, list)
        return tuple(output) if layout.listed else output

    def _keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx._layout, (layout, *flat) = inputs[0], inputs
        ctx.needs_input_grad = self._split(rebuild(layout.args, iter(ctx.needs_input_grad[1:])))[0]
        if self._setup is not None:
            given, keywords = self._split(rebuild(layout.args, iter(flat)))
            output = list(output) if layout.listed else output
            self._setup(ctx, given, output=output, **({"keyword_only_inputs": keywords} if keywords else {}))

    def _pull(self, ctx: Any, *grads: Any) -> Any:
        if self._backward is None:
            raise RuntimeError(
                f"Trying to backward through {self._qualname} but no autograd formula was registered. Call "
                "register_autograd on it."
            )
        found = self._backward(ctx, *([list(grads)] if ctx._layout.listed else grads))
        found = list(found) if isinstance(found, tuple) else [found]
        flat: list[Any] = [None]
        for form, grad in zip(ctx._layout.args, found + [None] * (len(ctx._layout.args) - len(found))):
            count = sum(1 for _ in leaves(form))
            got = [None] * count if grad is None and isinstance(form, (list, tuple)) else list(leaves(grad))
            if len(got) != count:
                raise RuntimeError(
                    f"{self._qualname}: expected the return from backward to be of the same structure as the inputs; "
                    f"got {len(got)} gradients for an argument of {count} tensors."
                )
            flat += got
        return tuple(flat)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        error = None
        for op in (self, *self._overloads.values()):
            try:
                bound = op._schema.signature.bind(*args, **kwargs)
            except TypeError as e:
                error = error or e
                continue
            bound.apply_defaults()
            return op._run(tuple(bound.arguments.values()))
        raise RuntimeError(f"{self._qualname}: {error}.")

    def _run(self, values: tuple[Any, ...]) -> Any:
        if self._composite and self._backward is None:
            return self._compute(values)
        layout = _Layout(values)
        output = self._step.apply(layout, *leaves(values))
        if self._schema.mutated:
            for name, value in zip(self._schema.signature.parameters, values):
                if name in self._schema.mutated:
                    increment_version([a for a in leaves(value) if isinstance(a, Tensor)])
        return list(output) if layout.listed else output

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Give the gradient: `setup_context(ctx, inputs, output)` keeps what `backward(ctx, *grads)` needs."""
        if self._schema.mutated:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator {self}.")
        if self._schema.keyword_tensors:
            raise NotImplementedError(f"register_autograd with kwarg-only Tensor args; got {self}. Make them positional.")
        self._backward, self._setup = backward, setup_context

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Let the function that gives the result's shape serve tensors of the device "meta"."""
        self._kernels["meta"] = fn
        return fn

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Let another function serve tensors of some types of devices."""
        types = device_types if isinstance(device_types, Iterable) and not isinstance(device_types, str) else [device_types]

        def register(fn: Any) -> Any:
            self._kernels.update(dict.fromkeys(types, fn))
            return fn

        return register if fn is None else register(fn)

    def register_vmap(self, func: Any = None, /) -> Any:
        """Give what vmap does with the operator: `func(info, in_dims, *args)` returns the output and where its batch dim is."""

        def register(func: Any) -> Any:
            def mapped(info: Any, in_dims: tuple[Any, ...], layout: _Layout, *flat: Any) -> Any:
                dims, _ = self._split(rebuild(layout.args, iter(in_dims[1:])))
                inputs, keywords = self._split(rebuild(layout.args, iter(flat)))
                return func(info, dims, *inputs, **keywords)

            self._step.vmap = staticmethod(mapped)
            return func

        return register if func is None else register(func)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Do without the kernel for a type of device, or with it again, within a `with` block."""
        before = set(self._off)
        (self._off.discard if enabled else self._off.add)(device_type)
        try:
            yield
        finally:
            self._off = before


def custom_op(
    name: str, fn: Any = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None, tags: Any = None
) -> Any:
    """Make an operator of a function, or return the decorator that does; it is `mortice.ops.namespace.name` as well."""
    if name.count("::") != 1:
        raise ValueError(f"custom_op: expected a name of the form namespace::name; got {name!r}.")

    def inner(fn: Any) -> CustomOpDef:
        types = [device_types] if device_types is None or isinstance(device_types, str) else device_types
        told = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
        read = Schema(told)
        if mutates_args != "unknown" and read.mutated != set(mutates_args):
            raise ValueError(
                f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={told}. The schema suggests that "
                f"the op mutates {read.mutated} which is different from what was provided to us in `mutates_args`."
            )
        if read.keyword_tensors:
            raise NotImplementedError(f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {told}")
        kernels = dict.fromkeys(types, fn)
        if read.mutated and read.returns == "()":  # there is no result whose shape register_fake would have to give
            kernels = {"meta": lambda *args, **kwargs: None, **kernels}
        made = CustomOpDef(name, told, kernels)
        made.__doc__ = fn.__doc__
        return made

    return inner if fn is None else inner(fn)


triton_op = custom_op  # nothing looks into it for kernels to compile


class Library:
    """The operators of a namespace, defined by schemas: PyTorch's torch.library.Library."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Library: expected a kind of DEF, FRAGMENT or IMPL; got {kind!r}.")
        if ns in ("aten", "prim", "prims"):
            raise NotImplementedError(f"Library: the operators of {ns!r} are the library's own here. Use another namespace.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator and its arguments; `impl` gives what it does."""
        name = f"{self.ns}::{Schema(schema).name}"
        if name in _defined:
            raise RuntimeError(f"Tried to register an operator ({self.ns}::{schema}) with the same name and overload name multiple times.")
        CustomOpDef(name, schema, {}, composite=True)
        self._names.append(name)
        return name.partition("::")[2]

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = False) -> None:
        """Let a function serve tensors of the device that a dispatch key names, or of all."""
        key = dispatch_key or self.dispatch_key
        name = op_name._qualname if isinstance(op_name, CustomOpDef) else op_name if "::" in op_name else f"{self.ns}::{op_name}"
        if key.startswith("Autograd"):
            raise NotImplementedError("Library.impl: expected the key of a device. Give gradients with register_autograd.")
        _op(name)._kernels[_KEYS.get(key, key.lower())] = fn

    def _destroy(self) -> None:
        for name in self._names:
            vars(getattr(mortice.ops, self.ns)).pop(name.partition("::")[2], None)
            _defined.pop(name, None)


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Name an operator `namespace::name` and its arguments; `impl` gives what it does."""
    space, _, name = qualname.partition("::")
    (lib or Library(space, "FRAGMENT")).define(name + schema)


def impl(qualname: str, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Let a function serve an operator on some types of devices, or return the decorator that does."""

    def register(func: Any) -> Any:
        for type_ in (types,) if isinstance(types, str) else types:
            Library(qualname.partition("::")[0], "IMPL").impl(qualname, func, "" if type_ == "default" else type_)
        return func

    return register if func is None else register(func)


def _op(op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else _defined.get(op)
    if found is None:
        raise RuntimeError(f"library: expected an operator that custom_op or define made, or its name; got {op!r}.")
    return found


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None) -> None:
    """Give an operator its gradient."""
    _op(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: Any, func: Any = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = False) -> Any:
    """Let the function that gives the shape of an operator's result serve the device "meta"."""
    return _op(op).register_fake if func is None else _op(op).register_fake(func)


impl_abstract = register_fake  # its name before


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Let another function serve tensors of some types of devices."""
    return _op(op).register_kernel(device_types, func)


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Give what vmap does with an operator."""
    return _op(op).register_vmap(func)


class OpCheckError(Exception):
    """What `opcheck` raises."""


def _schema_kept(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    values = op._schema.signature.bind(*args, **kwargs)
    before = [[a.clone() for a in leaves(v) if isinstance(a, Tensor)] for v in values.arguments.values()]
    op(*args, **kwargs)
    for (name, value), was in zip(values.arguments.items(), before):
        now = [a for a in leaves(value) if isinstance(a, Tensor)]
        if name not in op._schema.mutated and not all(mortice.allclose(a, b, 0, 0, True) for a, b in zip(now, was)):
            raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")


def _shapes_agree(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    if op._kernels.get("meta") is None and not op._composite:
        raise RuntimeError(f"There was no fake impl registered for {op}. Give it one with register_fake.")
    real, given = op(*args, **kwargs), (args, kwargs)
    moved = rebuild(given, iter([a.detach().to("meta") if isinstance(a, Tensor) else a for a in leaves(given)]))
    for a, b in zip(leaves(real), leaves(op(*moved[0], **moved[1]))):
        if isinstance(a, Tensor) and (a.shape, a.dtype) != (b.shape, b.dtype):
            raise RuntimeError(f"{op}: what register_fake got makes {b.dtype} of shape {b.shape}; got {a.dtype} of shape {a.shape}.")


def _gradient_runs(op: CustomOpDef, args: Any, kwargs: Any) -> None:
    made = [o for o in leaves(op(*args, **kwargs)) if isinstance(o, Tensor) and o.requires_grad]
    if made:
        sources = [a for a in leaves((args, kwargs)) if isinstance(a, Tensor) and a.requires_grad]
        mortice.autograd.grad(made, sources, made, allow_unused=True)


_CHECKS = {
    "test_schema": _schema_kept, "test_autograd_registration": lambda op, args, kwargs: None, "test_faketensor": _shapes_agree,
    "test_aot_dispatch_dynamic": _gradient_runs, "test_aot_dispatch_static": _gradient_runs,
}  # fmt: skip


def opcheck(
    op: Any, args: Any, kwargs: Any = None, *, test_utils: Any = tuple(_CHECKS)[:4], raise_exception: bool = True, atol: Any = None,
    rtol: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Check an operator on samples: that it writes what its schema says alone, its shapes on "meta", that its gradient runs.

    Return "SUCCESS" or the error of each check; with `raise_exception` raise the first.
    """
    found: dict[str, Any] = {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        given = args, kwargs or {}
        copies = [a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in leaves(given)]
        try:
            _CHECKS[name](_op(op), *rebuild(given, iter(copies)))
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            found[name] = error
    return found
