"""Nests of containers as PyTorch's `_pytree` takes them apart and puts them together; libraries name it, private as it is.

Only exact types are containers; those of users register. None and a string are leaves, a Size is none.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from mortice import Size
from mortice.autograd.trees import REGISTERED

Context = PyTree = Any
IsLeaf = Callable[[Any], bool] | None


class NodeDef(NamedTuple):
    """How one kind of container gives its children with a context, is made from them, and names the way to each."""

    type: Any
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None


class MappingKey(NamedTuple):
    """The step of a path that goes into a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self[0]!r}]"

    def get(self, nest: Any) -> Any:
        """Take the step."""
        return nest[self[0]]


class SequenceKey(NamedTuple):
    """The step of a path that goes into a sequence."""

    idx: int
    __str__, get = MappingKey.__str__, MappingKey.get


class GetAttrKey(NamedTuple):
    """The step of a path that goes into an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Take the step."""
        return getattr(obj, self.name)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(context, values))


def _list_flatten(x: list[Any]) -> tuple[list[Any], None]:
    return x, None


def _list_unflatten(values: Iterable[Any], context: None) -> list[Any]:
    return list(values)


def _sequence_flatten_with_keys(x: Iterable[Any]) -> tuple[list[tuple[SequenceKey, Any]], None]:
    return [(SequenceKey(i), value) for i, value in enumerate(x)], None


_list_flatten_with_keys = _sequence_flatten_with_keys


def is_structseq_instance(obj: Any) -> bool:
    """Tell whether a value is what a function with several results returns, as of `return_types`."""
    return isinstance(obj, tuple) and hasattr(obj, "n_sequence_fields")


def is_namedtuple(obj: Any) -> bool:
    """Tell whether a value, or a class, is of named tuples."""
    kind = obj if isinstance(obj, type) else type(obj)
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not hasattr(kind, "n_sequence_fields")


def is_namedtuple_class(cls: Any) -> bool:
    """Tell it of a class."""
    return isinstance(cls, type) and is_namedtuple(cls)


def is_namedtuple_instance(obj: Any) -> bool:
    """Tell it of a value."""
    return is_namedtuple(type(obj))


def _namedtuple_flatten(x: Any) -> tuple[list[Any], Any]:
    return list(x), type(x)


def _namedtuple_unflatten(values: Iterable[Any], kind: Any) -> Any:
    return kind(*values)


def _named_flatten_with_keys(x: Any) -> tuple[list[tuple[GetAttrKey, Any]], Any]:
    return [(GetAttrKey(name), value) for name, value in zip(x._fields, x)], type(x)


# Every class of named tuples stands under `namedtuple`, its own class being the context.
SUPPORTED_NODES: dict[Any, NodeDef] = {
    definition.type: definition
    for definition in (
        NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
        NodeDef(
            OrderedDict, _dict_flatten, lambda values, keys: OrderedDict(zip(keys, values)), _dict_flatten_with_keys
        ),
        NodeDef(
            defaultdict,
            lambda d: (list(d.values()), [d.default_factory, list(d)]),
            lambda values, context: defaultdict(context[0], zip(context[1], values)),
            _dict_flatten_with_keys,
        ),
        NodeDef(list, _list_flatten, _list_unflatten, _sequence_flatten_with_keys),
        NodeDef(tuple, lambda x: (x, None), lambda values, _: tuple(values), _sequence_flatten_with_keys),
        NodeDef(Size, lambda x: (x, None), lambda values, _: Size(values), _sequence_flatten_with_keys),
        NodeDef(deque, lambda x: (x, x.maxlen), deque, _sequence_flatten_with_keys),
        NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _named_flatten_with_keys),
    )
}
_DICTS = (dict, OrderedDict, defaultdict)


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
    **options: Any,
) -> None:
    """Make a class a container; the other options, for serialising, have no effect."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    REGISTERED[cls] = flatten_fn, unflatten_fn  # for transforms


def register_constant(cls: type) -> None:
    """Make a class a container of nothing: what a tree has of it belongs to the tree's shape."""
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x)


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None, **options: Any
) -> None:
    """Make a dataclass a container of the fields that it is made with, but the dropped ones; those of None are none of its leaves.

    ValueError: the names are not those of these fields, or the class is no dataclass and there are none.
    """
    if is_dataclass(cls):
        made = [f.name for f in fields(cls) if f.init]
        if field_names is not None and {*made} - {*(drop_field_names or ())} != {*field_names}:
            raise ValueError(f"register_dataclass: field_names does not include all dataclass fields; expected {made}, "
                             f"got {field_names}. Give what is to be left out as drop_field_names.")  # fmt: skip
    elif field_names is None:
        raise ValueError(f"register_dataclass: field_names must be specified, as {cls} is not a dataclass.")
    names = made if field_names is None else field_names

    def named(x: Any) -> tuple[list[tuple[GetAttrKey, Any]], Any]:
        held = {name: getattr(x, name) for name in names}
        there = [(GetAttrKey(name), value) for name, value in held.items() if value is not None]
        return there, [[key.name for key, _ in there], [name for name in names if held[name] is None]]

    def flatten(x: Any) -> tuple[list[Any], Any]:
        there, context = named(x)
        return [value for _, value in there], context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], values)), **dict.fromkeys(context[1]))

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=named, **options)


_register_pytree_node = _private_register_pytree_node = register_pytree_node  # its first name, and that without checks


class TreeSpec(NamedTuple):
    """The form of a nest: the type and context of its container (None for a leaf) and the forms of the children."""

    type: Any
    context: Any
    children_specs: tuple[TreeSpec, ...]

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        children = ",\n".join(map(repr, self.children_specs)).replace("\n", "\n  ")
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    def is_leaf(self) -> bool:
        """Tell whether it is the form of one leaf."""
        return self.type is None

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.type is None else sum(child.num_leaves for child in self.children_specs)

    @property
    def num_nodes(self) -> int:
        """The number of containers and leaves."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

    @property
    def num_children(self) -> int:
        """The number of children of the outermost container."""
        return len(self.children_specs)

    def children(self) -> list[TreeSpec]:
        """Return the forms of the children."""
        return list(self.children_specs)

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """Return a nest of this form with the leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: PyTree) -> list[Any]:
        """Return what a nest has where this form has leaves."""
        if self.type is None:
            return [tree]
        kind, definition = _node(tree, None) or (None, None)
        by_key = kind in _DICTS and self.type in _DICTS
        if definition is None or (kind is not self.type and not by_key):
            raise ValueError(f"tree: expected a node of type {self.type}; got {type(tree)}.")
        children, context = definition.flatten_fn(tree)
        if by_key:
            keys = self.context[1] if self.type is defaultdict else self.context
            alike = set(keys) == set(tree)
            children = [tree[key] for key in keys] if alike else []
        else:
            children = list(children)
            alike = kind is deque or context == self.context
        if len(children) != len(self.children_specs) or not alike:
            raise ValueError(f"tree: expected a node with {self.context or len(self.children_specs)}; got {tree!r}.")
        return [leaf for spec, child in zip(self.children_specs, children) for leaf in spec.flatten_up_to(child)]


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The form of one leaf."""

    def __new__(cls) -> LeafSpec:
        """Return it; one is as good as another."""
        return super().__new__(cls, None, None, ())


LEAF = LeafSpec()


def _get_node_type(tree: Any) -> Any:
    """Return what a value's kind is registered under, if it is."""
    kind = type(tree)
    return namedtuple if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple) else kind


def _node(tree: PyTree, is_leaf: IsLeaf) -> tuple[Any, NodeDef] | None:
    """Return the type that a form notes for a container and how to take it apart, None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    kind = _get_node_type(tree)
    definition = SUPPORTED_NODES.get(kind)
    return None if definition is None else (kind, definition)


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a nest and its form."""
    leaves: list[Any] = []
    return leaves, _visit(tree, is_leaf, leaves)


# No function within the other: one that calls itself keeps the leaves until the garbage collector comes.
def _visit(tree: PyTree, is_leaf: IsLeaf, leaves: list[Any]) -> TreeSpec:
    found = _node(tree, is_leaf)
    if found is None:
        leaves.append(tree)
        return LEAF
    kind, definition = found
    children, context = definition.flatten_fn(tree)
    return TreeSpec(kind, context, tuple([_visit(child, is_leaf, leaves) for child in children]))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Return a nest of a form with the leaves."""
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: expected {treespec.num_leaves} leaves, as the treespec has; got {len(values)}."
        )
    return _build(treespec, iter(values))


def _build(spec: TreeSpec, rest: Iterator[Any]) -> PyTree:
    if spec.type is None:
        return next(rest)
    children = [_build(child, rest) for child in spec.children_specs]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Return what a nest has for each leaf of a form, one value for all below it; None where the forms do not meet."""
    found = _node(tree, is_leaf)
    if found is None:
        return [tree] * treespec.num_leaves
    children, context = found[1].flatten_fn(tree)
    children = list(children)
    if found[0] is not treespec.type or len(children) != len(treespec.children_specs) or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(*pair, is_leaf) for pair in zip(children, treespec.children_specs)]
    return None if None in parts else [leaf for part in parts for leaf in part or ()]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Yield the leaves of a nest."""
    return iter(tree_flatten(tree, is_leaf)[0])


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a nest."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the form of a nest."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Tell whether a value is a leaf."""
    return _node(tree, is_leaf) is None


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return a nest with what the function makes of each leaf, and of what the other nests have in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(func, leaves, *map(spec.flatten_up_to, rests)), spec)


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call the function on each leaf, as `tree_map` does; return the nest itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """Return the leaves of a nest, each after the path that leads to it."""
    found = _node(tree, is_leaf)
    if found is None:
        return [((), tree)]
    kind, definition = found
    if definition.flatten_with_keys_fn is None:
        raise ValueError(f"tree: expected a flatten_with_keys_fn for {kind}; give it to register_pytree_node.")
    return [
        ((key, *path), leaf)
        for key, child in definition.flatten_with_keys_fn(tree)[0]
        for path, leaf in tree_leaves_with_path(child, is_leaf)
    ]


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """Return the leaves of a nest, each after the path that leads to it, and the form of the nest."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Do as `tree_map`, giving the function the path to the leaf first."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    paths = [path for path, _ in leaves]
    return tree_unflatten(map(func, paths, *map(spec.flatten_up_to, (tree, *rests))), spec)


def keystr(kp: Iterable[Any]) -> str:
    """Write a path as the code that follows it."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """Follow a path from a nest."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _chooses(chosen: Any) -> Callable[[Any], bool]:
    """Return the predicate that types, or a predicate, stand for."""
    is_predicate = callable(chosen) and not isinstance(chosen, type)
    return chosen if is_predicate else lambda leaf: isinstance(leaf, chosen)


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Apply a function to the leaves of some types, or that a predicate takes; the others stay."""
    takes = _chooses(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if takes(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Call a function on the leaves of some types, or that a predicate takes; return the nest itself."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Tell whether the predicate holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Tell whether the predicate holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Tell whether the predicate holds for every leaf of some types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Tell whether the predicate holds for some leaf of some types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))
