"""Nests of containers as PyTorch's `_pytree` takes them apart and puts them together; libraries name it, private as it is.

Only exact types are containers; those of users register. None, a string and a Size are leaves.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

PyTree = Any
IsLeaf = Callable[[Any], bool] | None


class NodeDef(NamedTuple):
    """How one kind of container gives its children with a context, and is made from them."""

    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]


class MappingKey(NamedTuple):
    """The step of a path that goes into a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(context, values))


SUPPORTED_NODES: dict[Any, NodeDef] = {
    dict: NodeDef(_dict_flatten, _dict_unflatten),
    OrderedDict: NodeDef(lambda d: (d.values(), list(d)), lambda values, keys: OrderedDict(zip(keys, values))),
    defaultdict: NodeDef(
        lambda d: (d.values(), [d.default_factory, list(d)]),
        lambda values, context: defaultdict(context[0], zip(context[1], values)),
    ),
    list: NodeDef(lambda x: (x, None), lambda values, _: list(values)),
    tuple: NodeDef(lambda x: (x, None), lambda values, _: tuple(values)),
    deque: NodeDef(lambda x: (x, x.maxlen), deque),
}
_NAMED = NodeDef(lambda x: (x, type(x)), lambda values, kind: kind(*values))


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    **options: Any,
) -> None:
    """Make a class a container; the options, for serialising and for paths, have no effect."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)


class TreeSpec(NamedTuple):
    """The form of a nest: the type and context of its container (None for a leaf) and the forms of the children."""

    type: Any
    context: Any
    children_specs: tuple[TreeSpec, ...]

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
        found = _node(tree, None)
        if found is None or found[0] is not self.type:
            raise ValueError(f"tree: expected a node of type {self.type}; got {type(tree)}.")
        _, definition = found
        children, context = definition.flatten_fn(tree)
        by_key = self.type is dict or self.type is OrderedDict
        if by_key and set(context) == set(self.context):
            children = [tree[key] for key in self.context]
        children = list(children)
        if len(children) != len(self.children_specs) or (by_key and set(context) != set(self.context)):
            raise ValueError(f"tree: expected a node with {self.context or len(self.children_specs)}; got {tree!r}.")
        return [leaf for spec, child in zip(self.children_specs, children) for leaf in spec.flatten_up_to(child)]


LEAF = TreeSpec(None, None, ())


def _node(tree: PyTree, is_leaf: IsLeaf) -> tuple[Any, NodeDef] | None:
    """Return the type that a form notes for a container and how to take it apart, None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    kind = type(tree)
    definition = SUPPORTED_NODES.get(kind)
    if definition is not None:
        return kind, definition
    return (kind, _NAMED) if isinstance(tree, tuple) and hasattr(kind, "_fields") else None


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a nest and its form."""
    leaves: list[Any] = []

    def visit(tree: PyTree) -> TreeSpec:
        found = _node(tree, is_leaf)
        if found is None:
            leaves.append(tree)
            return LEAF
        kind, definition = found
        children, context = definition.flatten_fn(tree)
        return TreeSpec(kind, context, tuple([visit(child) for child in children]))

    return leaves, visit(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Return a nest of a form with the leaves."""
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: expected {treespec.num_leaves} leaves, as the treespec has; got {len(values)}."
        )
    rest = iter(values)

    def build(spec: TreeSpec) -> PyTree:
        if spec.type is None:
            return next(rest)
        children = [build(child) for child in spec.children_specs]
        return SUPPORTED_NODES.get(spec.type, _NAMED).unflatten_fn(children, spec.context)

    return build(treespec)


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
