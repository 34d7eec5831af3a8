"""Models that return what some of their nodes give: layers, and functions between them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mortice import fx, nn
from mortice.fx.graph_module import _put
from mortice.notice import warn
from mortice.vision import ops

__all__ = ["create_feature_extractor", "get_graph_node_names"]


class LeafModuleAwareTracer(fx.Tracer):  # type: ignore[name-defined,misc]
    """A tracer that keeps modules of some classes as one call each."""

    def __init__(self, *args: Any, leaf_modules: Sequence[type] = (), **kwargs: Any) -> None:
        self.leaf_modules = tuple(leaf_modules)
        super().__init__(*args, **kwargs)

    def is_leaf_module(self, m: nn.Module, module_qualname: str) -> bool:
        return isinstance(m, self.leaf_modules) or super().is_leaf_module(m, module_qualname)


class NodePathTracer(LeafModuleAwareTracer):
    """A tracer that names each node by the module it is in: "layer1.0.add", with _1, _2 ... for further ones of the name."""

    current_module_qualname = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.node_to_qualname: dict[Any, str] = {}

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        before, self.current_module_qualname = self.current_module_qualname, self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current_module_qualname = before

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, *more: Any, **named: Any) -> Any:
        proxy = super().create_proxy(kind, target, args, kwargs, *more, **named)
        parts = [self.current_module_qualname, *([] if kind == "call_module" else [str(proxy.node)])]
        name = re.sub(r"(?<=.)_[0-9]+$", "", ".".join(filter(None, parts)))
        for other in reversed(self.node_to_qualname.values()):
            again = re.fullmatch(rf"{re.escape(name)}(?:_([0-9]+))?", other)
            if again:
                name = f"{name}_{int(again[1] or 0) + 1}"
                break
        self.node_to_qualname[proxy.node] = name
        return proxy


def _traced(model: nn.Module, tracer_kwargs: dict[str, Any] | None, concrete_args: Any) -> dict[bool, Any]:
    """Return the tracers of a model in training and in evaluation, which its own mode outlives."""
    given = dict(tracer_kwargs or {})
    kinds = [kind for kind in vars(ops).values() if isinstance(kind, type) and issubclass(kind, nn.Module)]
    given["leaf_modules"] = [*given.get("leaf_modules", ()), *kinds]
    given["autowrap_modules"] = (*given.get("autowrap_modules", ()), math, ops)
    mode, tracers = model.training, {}
    try:
        for training in (True, False):
            tracers[training] = NodePathTracer(**given)
            tracers[training].trace(model.train(training), concrete_args=concrete_args)
    finally:
        model.train(mode)
    return tracers


def _warn_of_differences(tracers: dict[bool, Any]) -> None:
    train, evaluation = (list(tracers[training].node_to_qualname.values()) for training in (True, False))
    if train == evaluation:
        return
    text = "The nodes obtained by tracing the model in train mode are different to those obtained in eval mode. "
    for part, whole, of, other in ((evaluation, train, "eval", "train"), (train, evaluation, "train", "eval")):
        rest = iter(whole)
        if all(name in rest for name in part):
            text = (
                f"NOTE: The nodes obtained by tracing the model in {of} mode are a subsequence of those obtained in "
                f"{other} mode. "
            )
            break
    warn(
        f"{text}When choosing nodes for feature extraction, you may need to specify output nodes for train and eval mode "
        "separately."
    )


def get_graph_node_names(
    model: nn.Module,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> tuple[list[str], list[str]]:
    """Return the names of a model's nodes in the order in which they run, in training and in evaluation."""
    tracers = _traced(model, tracer_kwargs, concrete_args)
    if not suppress_diff_warning:
        _warn_of_differences(tracers)
    return list(tracers[True].node_to_qualname.values()), list(tracers[False].node_to_qualname.values())


class DualGraphModule(fx.GraphModule):  # type: ignore[name-defined,misc]
    """A module with a graph for training and one for evaluation."""

    def __init__(self, root: nn.Module, train_graph: Any, eval_graph: Any, class_name: str = "GraphModule") -> None:
        super().__init__(root, train_graph if root.training else eval_graph, class_name)
        for graph in (train_graph, eval_graph):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    value: Any = root
                    for part in node.target.split("."):
                        value = getattr(value, part)
                    _put(self, node.target, value, root)
            graph.lint()
        self.train_graph, self.eval_graph = train_graph, eval_graph

    def train(self, mode: bool = True) -> Any:
        """Change to the graph of training or of evaluation."""
        if mode != self.training:
            self.graph = self.train_graph if mode else self.eval_graph
        return super().train(mode)


def _named(nodes: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    return {str(k): str(v) for k, v in (nodes.items() if isinstance(nodes, Mapping) else zip(nodes, nodes))}


def _returning(tracer: Any, wanted: dict[str, str]) -> Any:
    """Return a tracer's graph with another output: the last node of each name."""
    graph, names = tracer.graph, tracer.node_to_qualname
    for query in wanted:
        if not any(name == query or name.startswith(f"{query}.") for name in names.values()):
            raise ValueError(
                f"node: '{query}' is not present in model. Hint: use `get_graph_node_names` to make sure the `return_nodes` "
                "you specified are present. It may even be that you need to specify `train_return_nodes` and "
                "`eval_return_nodes` separately."
            )
    graph.erase_node(graph.output_node())
    found, missing = {}, dict(wanted)
    for node in reversed(graph.nodes):
        path = names.get(node, "").split(".")
        query = next((q for q in missing if ".".join(path[: q.count(".") + 1]) == q), None)
        if query is not None:
            found[missing.pop(query)] = node
    graph.output(dict(reversed(found.items())))
    graph.owning_module = tracer.root
    graph.eliminate_dead_code()
    return graph


def create_feature_extractor(
    model: nn.Module,
    return_nodes: Sequence[str] | Mapping[str, str] | None = None,
    train_return_nodes: Sequence[str] | Mapping[str, str] | None = None,
    eval_return_nodes: Sequence[str] | Mapping[str, str] | None = None,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> Any:
    """Return a module of a model's layers that gives a dict of what some of its nodes give, by their names.

    A module's name stands for the last node in it. The layers are the model's own; those not needed are left out.
    """
    if return_nodes is None and train_return_nodes is None and eval_return_nodes is None:
        raise ValueError(
            "Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, should be specified"
        )
    if (train_return_nodes is None) != (eval_return_nodes is None):
        raise ValueError(
            "If any of `train_return_nodes` and `eval_return_nodes` are specified, then both should be specified"
        )
    if (return_nodes is None) == (train_return_nodes is None):
        raise ValueError("If `train_return_nodes` and `eval_return_nodes` are specified, then both should be specified")
    tracers = _traced(model, tracer_kwargs, concrete_args)
    wanted = {True: train_return_nodes or return_nodes, False: eval_return_nodes or return_nodes}
    graphs = [_returning(tracers[training], _named(wanted[training] or ())) for training in (True, False)]
    if not suppress_diff_warning:
        _warn_of_differences(tracers)
    return DualGraphModule(model, *graphs, class_name=type(model).__name__)
