"""Lists and dicts that refuse to change: the arguments of nodes, whose users must be told of every change."""

from __future__ import annotations

from typing import Any, NoReturn

from mortice.utils import _pytree as pytree


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify the kwargs or args of a "
        "torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n"
        "    new_args = ... # copy and mutate args\n    node.args = new_args\n"
    )


class immutable_list(list):  # type: ignore[type-arg]
    """A list that refuses to change."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse  # type: ignore[assignment]
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):  # type: ignore[type-arg]
    """A dict that refuses to change."""

    clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]
    __delitem__ = __ior__ = __setitem__ = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


def _register(kind: Any, base: type) -> None:
    node = pytree.SUPPORTED_NODES[base]

    def made(values: Any, context: Any) -> Any:
        return kind(node.unflatten_fn(values, context))

    pytree.register_pytree_node(kind, node.flatten_fn, made, flatten_with_keys_fn=node.flatten_with_keys_fn)


_register(immutable_list, list)
_register(immutable_dict, dict)
