"""Answers what `test_cudnn_plans` asks: makes the plugin's graph for sizes, and tells what cuDNN makes of it."""

from __future__ import annotations

from typing import Any

import cudnn_without_gpu
import ml_dtypes
import numpy as np

from mortice.backends import cudnn as switches
from mortice_cuda_cupy.cudnn import attention, convolution, library, plans

_DTYPES = {n: np.dtype(getattr(ml_dtypes, n, None) or n) for n in ("float16", "bfloat16", "float32", "float64")}
_places: dict[int, Any] = {}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return the plan's name and workspace, and the operands as they were declared and as cuDNN has them; or why not."""
    version = question["version"]
    place = (
        _places.setdefault(version, None)
        or _places.update({version: cudnn_without_gpu.place(version)})
        or _places[version]
    )
    with switches.flags(enabled=True, **{"allow_tf32": True, **question.get("flags", {})}):
        build = _convolution if "sizes" in question else _attention
        count, declared, graph = build(question, _DTYPES[question["dtype"]])
        found = plans.make(place, question["kind"], graph, _DTYPES[question["dtype"]], [0] * count)
    if found is None:
        return {"plan": None, "why": library.state()[1]}
    backend = getattr(found.graph, "_lowered_graph", found.graph)  # older frontends are C++ throughout
    operands = []
    for uid in range(1, count + 1):
        tensor = backend.query_tensor_attributes_of_uid(uid)
        operands.append([list(tensor.get_dim()), list(tensor.get_stride()), tensor.get_data_type().name])
    return {
        "plan": found.graph.get_plan_name_at_index(found.index), "workspace": found.workspace,
        "old": backend is found.graph, "by_address": found._launch.__name__ == "by_address", "operands": operands, "declared": declared,
    }  # fmt: skip


def _convolution(question: dict[str, Any], dtype: Any) -> Any:
    x, w, stride, padding, dilation = question["sizes"]
    y = [x[0], w[0], *convolution._counts(x, w, stride, padding, dilation)]
    dims = {"conv": (x, w, y), "conv_input_grad": (y, w, x), "conv_weight_grad": (y, x, w)}[question["kind"]]
    strides = convolution._last_strides if question["last"] else plans.rows
    declared = [[list(d), list(strides(d)), plans.NAMES[dtype]] for d in dims]

    def graph(place: Any) -> Any:
        return convolution.build(place, question["kind"], dtype, dims, question["last"], stride, padding, dilation)

    return 3, declared, graph


def _attention(question: dict[str, Any], dtype: Any) -> Any:
    length, keys, value = question.get("length", 64), question.get("keys", 64), question.get("value", 64)
    q, k, v, o = (2, 4, length, 64), (2, 4, keys, 64), (2, 4, keys, value), (2, 4, length, value)
    back = question["kind"] == "attention_grad"
    shapes = [q, k, v, o, o] if back else [q, k, v]
    if question.get("joint"):
        strides = [(s[2] * 3 * s[1] * s[3], s[3], 3 * s[1] * s[3], 1) for s in shapes[:3]]
        apart = (length * 4 * value, value, 4 * value, 1)
        strides += [apart, apart][: len(shapes) - 3]
        outs = [apart] if not back else [apart] * 3
    else:
        strides = [plans.rows(s) for s in shapes]
        outs = [plans.rows(s) for s in ([q, k, v] if back else [o])]
    out_shapes = [q, k, v] if back else [o]
    bias = question.get("bias") and (*question["bias"], length, keys)
    stats = (*q[:3], 1)
    name = plans.NAMES[dtype]
    declared = [[list(s), list(t), name] for s, t in zip(shapes, strides)]
    lse = [list(stats), list(plans.rows(stats)), "FLOAT"]
    results = [[list(s), list(t), name] for s, t in zip(out_shapes, outs)]
    declared += [lse, *results] if back else [*results, lse]
    if bias:
        declared.append([list(bias), list(plans.rows(bias)), name])
    dropout = question.get("dropout", False)
    if dropout:
        scores = (*q[:3], keys)
        declared.append([list(scores), list(plans.rows(scores)), name])
        declared += [[[1] * 4, [1] * 4, "FLOAT"]] * (2 if back else 1)

    def graph(place: Any) -> Any:
        build = attention.backward if back else attention.forward
        return build(
            place, dtype, shapes, strides, out_shapes, outs, bias, dropout, question.get("causal", False), 0.125
        )

    return len(declared), declared, graph
