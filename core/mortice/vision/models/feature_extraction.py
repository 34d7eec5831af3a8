"""Models that return what some of their layers give."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mortice import nn

__all__ = ["create_feature_extractor", "get_graph_node_names"]


class _Found(Exception):
    """All that was wanted is there: the rest of the model need not run."""


def _is_leaf(module: nn.Module) -> bool:
    return type(module).__module__.startswith("mortice.nn.") and not isinstance(module, nn.Sequential)


class _FeatureExtractor(nn.Module):
    """A model that stops when its last wanted layer has run; parameters, buffers and layers are the model's own, by its names."""

    def __init__(self, model: nn.Module, train_nodes: dict[str, str], eval_nodes: dict[str, str]) -> None:
        super().__init__()
        self.__dict__.update({name: model.__dict__[name] for name in ("_parameters", "_buffers", "_modules")})
        self.__dict__["_whole"], self._nodes = model, {True: train_nodes, False: eval_nodes}
        self._places = {node: _place(model, node) for node in (*train_nodes, *eval_nodes)}
        self.train(model.training)

    def train(self, mode: bool = True) -> Any:
        self._whole.train(mode)
        return super().train(mode)

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        nodes, layers = self._nodes[self.training], dict(self.named_modules())
        wanted: dict[str, dict[int, list[str]]] = {}
        for node, name in nodes.items():
            path, call = self._places[node]
            wanted.setdefault(path, {}).setdefault(call, []).append(name)
        found: dict[str, Any] = {}
        calls = dict.fromkeys(wanted, 0)

        def keep(path: str, module: Any, args: Any, out: Any) -> None:
            found.update(dict.fromkeys(wanted[path].get(calls[path], ()), out))
            calls[path] += 1
            if len(found) == len(nodes):
                raise _Found

        hooks = [layers[path].register_forward_hook(partial(keep, path)) for path in wanted]
        try:
            self._whole(*args, **kwargs)
        except _Found:
            return found
        finally:
            for hook in hooks:
                hook.remove()
        missing = sorted(set(nodes.values()) - set(found))
        raise ValueError(f"create_feature_extractor: {missing} did not run; got {list(found)}. Leave them out of return_nodes.")


def _place(model: nn.Module, node: str) -> tuple[str, int]:
    """Return the layer of a node and which of its calls it is: "relu_1" is the second of "relu"."""
    layers = dict(model.named_modules())
    again = re.fullmatch(r"(.+)_(\d+)", node)
    if node not in layers and again and again[1] in layers:
        return again[1], int(again[2])
    if node not in layers or not node:
        raise ValueError(
            f"node: '{node}' is not present in model. Hint: use `get_graph_node_names` to make sure the `return_nodes` you "
            "specified are present: the names of layers, with _1, _2 ... behind for their later calls."
        )
    return node, 0


def _named(nodes: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    return {str(k): str(v) for k, v in (nodes.items() if isinstance(nodes, Mapping) else zip(nodes, nodes))}


def create_feature_extractor(
    model: nn.Module,
    return_nodes: Sequence[str] | Mapping[str, str] | None = None,
    train_return_nodes: Sequence[str] | Mapping[str, str] | None = None,
    eval_return_nodes: Sequence[str] | Mapping[str, str] | None = None,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> nn.Module:
    """Return a copy of a model that gives a dict of what some of its layers give.

    Differs from torch: nodes are layers (by their paths, with _1, _2 ... for later calls) and not functions between them,
    and the layers that are not needed stay, though they do not run.
    """
    if return_nodes is None and (train_return_nodes is None or eval_return_nodes is None):
        raise ValueError(
            "Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, should be specified"
        )
    if return_nodes is not None and (train_return_nodes is not None or eval_return_nodes is not None):
        raise ValueError("If `train_return_nodes` or `eval_return_nodes` is specified, both should be specified")
    given = (return_nodes, return_nodes) if return_nodes is not None else (train_return_nodes, eval_return_nodes)
    train_nodes, eval_nodes = (_named(nodes or ()) for nodes in given)
    return _FeatureExtractor(copy.deepcopy(model), train_nodes, eval_nodes)


def get_graph_node_names(
    model: nn.Module,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> tuple[list[str], list[str]]:
    """Return the names of a model's layers that have none within, for training and for evaluation.

    Differs from torch: they are in the order in which they were made, each once, and functions between them are not named.
    """
    names = [name for name, layer in model.named_modules() if name and (_is_leaf(layer) or not list(layer.children()))]
    return names, list(names)
