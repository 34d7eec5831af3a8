"""Graphs made faster for inference: normalisations folded into convolutions, dropout left out."""

from __future__ import annotations

import copy
from typing import Any

from mortice import nn
from mortice.fx._symbolic_trace import symbolic_trace
from mortice.fx.graph_module import GraphModule
from mortice.fx.interpreter import Transformer
from mortice.fx.node import Node
from mortice.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


def matches_module_pattern(pattern: Any, node: Node, modules: dict[str, Any]) -> bool:
    """Tell whether a node calls a module of the last type, and its input is a call of one of the type before."""
    if not node.args:
        return False
    for kind, called in zip(pattern, (node.args[0], node)):
        if not isinstance(called, Node) or called.op != "call_module" or type(modules.get(called.target)) is not kind:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Let a node's call be that of another module, at the same name."""
    path, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[path], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Return a model in evaluation mode with each normalisation folded into the convolution or linear layer before it."""
    model = model if inplace else copy.deepcopy(model)
    made = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(made.named_modules())
    layers = ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d), (nn.Linear, nn.BatchNorm1d))
    for pattern in layers:
        for node in made.graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            first, bn = modules[node.args[0].target], modules[node.target]
            if not bn.track_running_stats:
                continue
            fold = fuse_linear_bn_eval if pattern[0] is nn.Linear else fuse_conv_bn_eval
            replace_node_module(node.args[0], modules, fold(first, bn))
            node.replace_all_uses_with(node.args[0])
            made.graph.erase_node(node)
    return GraphModule(made, made.graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """Return a model without its Dropout layers."""

    class Without(Transformer):
        def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return Without(symbolic_trace(model)).transform()
