"""A model as TensorBoard's graph: the backward graph of one forward pass, with modules as scopes."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import Tensor
from mortice.utils._pytree import tree_leaves
from mortice.utils.tensorboard.wire import message
from mortice.utils.undisturbed import undisturbed


def graph(model: Any, inputs: Any) -> bytes:
    """Run a model once and return its GraphDef: ops by their gradient nodes, parameters and inputs as their sources.

    What has no gradient (integers, comparisons) is not in it. The pass leaves no trace in gradients.
    """
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    if any(isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()) for x in inputs):
        inputs = [
            x.detach().requires_grad_() if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()) else x
            for x in inputs
        ]
    names: dict[Any, str] = {}  # of gradient nodes; the nodes are kept, so that none takes another's identity
    order: list[Any] = []
    used: dict[str, int] = {}

    def name_it(node: Any, scope: str, kind: str) -> None:
        base = "/".join(filter(None, (scope, kind)))
        used[base] = used.get(base, -1) + 1
        names[node] = base if not used[base] else f"{base}_{used[base]}"
        order.append(node)

    def collect(outputs: Any, scope: str) -> None:
        stack = [t.grad_fn for t in tree_leaves(outputs) if isinstance(t, Tensor) and t.grad_fn is not None]
        while stack:
            node = stack.pop()
            if node in names:
                continue
            own = getattr(node, "variable", None)
            if own is not None:
                name_it(node, *_leaf(own, sources))
            else:
                name_it(node, scope, node.name().removesuffix("0").removesuffix("Backward"))
            stack += [following for following, _ in node.next_functions if following is not None]

    root = type(model).__name__
    scopes = {
        name: f"{root}/{'/'.join(f'{part}' for part in name.split('.'))}" if name else root
        for name, _ in model.named_modules()
    }
    sources = {id(p): (f"{root}/{n.replace('.', '/')}", "parameter") for n, p in model.named_parameters()}
    sources.update({id(x): ("", f"input_{i}") for i, x in enumerate(inputs)})
    handles = [
        module.register_forward_hook(lambda m, a, out, scope=scopes[name]: collect(out, scope))
        for name, module in model.named_modules()
    ]
    try:
        with undisturbed(model), mortice.enable_grad():
            outputs = model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    collect(outputs, root)
    nodes = [_node(names[n], _kind(n), [names[f] for f, _ in n.next_functions if f is not None]) for n in order]
    ends = [t for t in tree_leaves(outputs) if isinstance(t, Tensor)]
    nodes += [
        _node(f"output_{i}", "IO Node", [names[t.grad_fn]] if t.grad_fn is not None else [], tuple(t.shape))
        for i, t in enumerate(ends)
    ]
    return message(f1=nodes, f4=message(f1=22))


def _leaf(variable: Any, sources: dict[int, tuple[str, str]]) -> tuple[str, str]:
    return sources.get(id(variable), ("", "constant"))


def _kind(node: Any) -> str:
    return (
        "IO Node"
        if getattr(node, "variable", None) is not None
        else node.name().removesuffix("0").removesuffix("Backward")
    )


def _node(name: str, kind: str, inputs: list[str], shape: tuple[int, ...] | None = None) -> bytes:
    attributes = None
    if shape is not None:
        sizes = message(f2=[message(f1=n) for n in shape])
        attributes = message(f1="_output_shapes", f2=message(f1=message(f7=[sizes])))
    return message(f1=name, f2=kind, f3=inputs, f5=attributes)
