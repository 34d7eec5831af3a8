"""torch.fx beside PyTorch's: the same programs give the same nodes, the same source and the same printed graphs."""

from __future__ import annotations

import sys
import types
import warnings
from importlib import import_module

import pytest

import mortice

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

PROGRAMS = '''
import math
from typing import Optional

def arguments(x, y=3): return torch.relu(x) + y * F.gelu(x)
def written_in_python(x):
    return torch.split(x, 2, dim=1)[0], F.relu(x, inplace=True), F.dropout(x, 0.5, training=False), torch.cat([x, x], dim=1)
def shapes(x):
    n, c = x.shape[0], x.size(1)
    y = x.view(n, -1).permute(1, 0)
    y += 1
    return {"a": y, "b": [x[:, 0], x[..., None], x[0:c]]}
def operators(x):
    return (math.sqrt(x.shape[0]) * x, torch.einsum("ij,kj->ik", x, x), torch.zeros_like(x), x.to(torch.float64), -x, ~(x > 0),
            2 - x, 2**x, x @ x.t(), x / 2, x // 2, x % 2, abs(x), float("inf") * x, x.new_zeros(2, device=torch.device("cpu")))
def annotated(x: torch.Tensor, flag: bool = True, z: Optional[torch.Tensor] = None) -> torch.Tensor:
    return F.softmax(x, dim=-1) + F.log_softmax(x, 1)
def stars(x, *args, **kwargs): return x + 1
def keywords(a, *, b=2): return a * b
def names(device, inf, x): return x.to(device) * inf
def layers(x):
    return (F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, (1, 1)), F.interpolate(x, scale_factor=2.0),
            F.pad(x, (1, 1)), F.layer_norm(x, x.shape[1:]), F.conv2d(x, torch.ones(1, 2, 1, 1)), F.sigmoid(x), F.tanh(x),
            F.cross_entropy(x, x), F.scaled_dot_product_attention(x, x, x), F.logsigmoid(x), F.one_hot(x))
def constants(x): return torch.ones(3) + x, torch.ones(3).mul(x), torch.where(x > 0, x, torch.zeros(3)), torch.ones(3)[x]
def families(x): return torch.linalg.norm(x) + torch.fft.fft(x) + torch.special.entr(x) + torch.matmul(x, x) + torch.expm1(x)
def unpacked(x):
    a, b = torch.chunk(x, 2)
    return torch.max(x, dim=0)[0] + torch.norm(x) + a.sum(dim=0, keepdim=True).mean(), b.dtype

class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.w = nn.Linear(4, 5), nn.Parameter(torch.ones(5))
        self.register_buffer("buf", torch.ones(5))
        self.seq, self.act = nn.Sequential(nn.ReLU(), nn.Linear(5, 2)), F.relu
        self.acts, self.bn = nn.ModuleList([nn.ReLU(), nn.Tanh()]), nn.BatchNorm1d(5)
    def forward(self, x, scale: float = 1.0):
        x = self.act(self.bn(self.lin(x) * self.w + self.buf))
        for act in self.acts:
            x = act(x)
        return self.seq(x) * scale + self.buf.add(x)
class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(inplace=True)
    def forward(self, x):
        out = self.relu(self.bn(self.conv(x)))
        out += x
        return self.relu(out)
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(3, 4, 3), nn.Sequential(Block(4), Block(4))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 2)
    def forward(self, x):
        torch._assert(x.shape[0] == 1, "one at a time")
        return self.fc(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))
class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.mha, self.lstm = nn.Embedding(9, 8), nn.MultiheadAttention(8, 2), nn.LSTM(8, 4)
        self.register_buffer("mask", torch.tril(torch.ones(4, 4)))
    def forward(self, idx, mask: Optional[torch.Tensor] = None):
        b, t = idx.size()
        q = self.emb(idx).view(b, t, 2, 4).transpose(1, 2)
        att = ((q @ q.transpose(-2, -1)) * (1.0 / math.sqrt(4))).masked_fill(self.mask == 0, float("-inf"))
        y = (F.softmax(att, dim=-1) @ q).transpose(1, 2).contiguous().view(b, t, 8)
        y, _ = self.mha(y, y, y)
        out, (h, c) = self.lstm(y)
        return out + h + getattr(y, "ndim")
'''  # fmt: skip
USES = """
import copy, operator, pickle
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.act, self.lin = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Linear(8, 2)
    def forward(self, x):
        return torch.relu(self.lin(torch.flatten(self.act(self.bn(self.conv(x))), 1)))
net = Net().eval()
gm = fx.symbolic_trace(net)
for n in gm.graph.nodes:
    if n.target == torch.relu:
        with gm.graph.inserting_after(n):
            new = gm.graph.call_function(F.gelu, n.args, n.kwargs)
        n.replace_all_uses_with(new)
        gm.graph.erase_node(n)
    if n.op == "call_module" and isinstance(gm.get_submodule(n.target), nn.ReLU):
        gm.add_submodule("new", nn.Hardswish())
        n.target = "new"
gm.delete_all_unused_submodules()
gm.graph.lint()
gm.recompile()
show(gm, copy.deepcopy(gm), copy.copy(gm), fx.symbolic_trace(gm).code)
x = torch.ones(2, 1, 4, 4)
ShapeProp(gm).propagate(x)
show([(n.name, *n.meta["tensor_meta"][:5]) for n in gm.graph.nodes], gm.print_readable(False))
show(fuse(net), remove_dropout(nn.Sequential(nn.Linear(2, 2), nn.Dropout())))
t = fx.symbolic_trace(lambda x, w1, w2: x + torch.cat([w1, w2]).sum().max() + torch.cat([w1, w2]).sum())
ms = fx.replace_pattern(t, lambda w1, w2: torch.cat([w1, w2]).sum(), lambda w1, w2: torch.stack([w1, w2]))
show(t.code, [(m.anchor, list(m.nodes_map.items())) for m in ms])
show(fx.symbolic_trace(lambda x, flag=True: x + 1 if flag else x - 1, concrete_args={"flag": False}).code)
show(fx.symbolic_trace(lambda x, m=None: x + 1 if m is None else x - 1, concrete_args={"m": None}).code)
show(fx.symbolic_trace(lambda x: x["a"] + x["b"][0], concrete_args={"x": {"a": fx.PH, "b": [fx.PH]}}).code)
class Through(fx.Tracer):
    def is_leaf_module(self, m, name): return isinstance(m, nn.BatchNorm2d)
graph = Through().trace(net)
show(graph, fx.GraphModule(net, graph).code, [(n.name, list(n.meta.get("nn_module_stack", ()))) for n in graph.nodes])
class Buffers(fx.Tracer): proxy_buffer_attributes = True
class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(2)); self.t = torch.ones(2)
    def forward(self, x): return x * self.b + self.t, self.b + x
show(Buffers().trace(B()), fx.Tracer().trace(B()))
class Point(metaclass=fx.ProxyableClassMeta):
    def __init__(self, a, b): self.a = a; self.b = b
show(fx.Tracer().trace(lambda x: Point(x, x + 1)))
class Shapes(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(2, 3))
    def forward(self, x): return x + self.w.numel() if self.w.shape[0] == 2 and self.w.dim() == 2 else x
show(fx.Tracer(param_shapes_constant=True).trace(Shapes()))
g = fx.Graph(); a = g.placeholder("x"); b = g.call_module("lin", (a,)); g.output(g.call_function(torch.add, (b, 2), {"alpha": 3}))
made = fx.GraphModule({"lin": nn.Linear(2, 2)}, g, "Hand"); show(made, g, a.users, b.prev, b.next)
class Listed(fx.CodeGen):
    def gen_fn_def(self, free_vars, maybe_return_annotation):
        return f"def forward(self, args_list){maybe_return_annotation}:\\n    {', '.join(free_vars)}, = args_list"
    def process_inputs(self, *inputs): return inputs[0]
g = fx.symbolic_trace(lambda x, y: x + y); g.graph.set_codegen(Listed()); g.recompile()
show(g.code, g([1, 2]), fx.Interpreter(g).run([1, 2]))
g = fx.symbolic_trace(lambda x: x + 1); g.graph.on_generate_code(lambda before: lambda body: ["pass\\n", *body]); g.recompile()
show(g.code)
"""


def run(library, text):
    """Run a text with a library for torch; return its names, and what it showed."""
    names = types.ModuleType("programs")
    shown = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's are written with what it deprecates
        places = ("fx", "fx.experimental.optimization", "fx.passes.shape_prop")
        fx, optimization, shapes = (import_module(f"{library.__name__}.{place}") for place in places)
    vars(names).update(
        torch=library, nn=library.nn, F=library.nn.functional, fx=fx, fuse=optimization.fuse, ShapeProp=shapes.ShapeProp,
        remove_dropout=optimization.remove_dropout,
        show=lambda *values: shown.extend(str(value).replace("mortice", "torch") for value in values),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "programs", names)
        exec(compile(text, "programs", "exec"), vars(names))
    return vars(names), shown


MINE, THEIRS = run(mortice, PROGRAMS)[0], run(torch, PROGRAMS)[0]


@pytest.mark.parametrize("name", [n for n, v in THEIRS.items() if getattr(v, "__module__", "") == "programs" and n != "Block"])
def test_programs_are_recorded_as_by_pytorch(name, monkeypatch):
    traced = []
    for names, library in ((MINE, mortice), (THEIRS, torch)):
        monkeypatch.setitem(sys.modules, "programs", types.SimpleNamespace(**names))
        program = names[name]() if isinstance(names[name], type) else names[name]
        traced.append(library.fx.symbolic_trace(program))
    mine, want = traced
    assert mine.code == want.code
    assert str(mine.graph) == str(want.graph)
    assert mine.print_readable(print_output=False) == want.print_readable(print_output=False)
    for one, other in zip(mine.graph.nodes, want.graph.nodes, strict=True):
        assert (one.op, one.name) == (other.op, other.name)
        assert str((one.args, one.kwargs)).replace("mortice", "torch") == str((other.args, other.kwargs))


def test_graphs_are_used_as_pytorchs():
    mine, want = run(mortice, USES)[1], run(torch, USES)[1]
    for one, other in zip(mine, want, strict=True):
        assert one == other


def test_what_profilers_write_into_a_graph_is_called_as_in_pytorch():
    found = []
    for m in (torch, mortice):
        graph = m.fx.Graph()
        x = graph.placeholder("x")
        record = graph.call_function(m.ops.profiler._record_function_enter_new, ("foo",))
        y = graph.call_function(m.relu, (x,))
        graph.call_function(m.ops.profiler._record_function_exit, (record,))
        graph.output(y)
        module = m.fx.GraphModule(m.nn.Module(), graph)
        found.append((module.code, str(graph), module(m.tensor([-1.0, 2.0])).tolist()))
    assert found[0] == found[1]
