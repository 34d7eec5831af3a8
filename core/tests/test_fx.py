"""torch.fx: programs as graphs, changed and written as Python again."""

from __future__ import annotations

import copy
import functools
import math
import pickle
import subprocess
import sys
from typing import Any

import pytest

import mortice as mt
from mortice import fx, nn
from mortice.fx.immutable_collections import immutable_dict, immutable_list
from mortice.fx.optimization import fuse, remove_dropout
from mortice.fx.shape_prop import ShapeProp
from mortice.nn import functional as F
from mortice.nn.functional import relu
from mortice.utils import _pytree as pytree

ACTIVATIONS = {"silu": F.silu}


@fx.wrap
def leaf(x: Any, times: int) -> Any:
    return x * times if times > 2 else x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.act = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()
        self.drop, self.lin, self.scale = nn.Dropout(), nn.Linear(8, 2), nn.Parameter(mt.full((2,), 2.0))
        self.register_buffer("shift", mt.ones(2))

    def forward(self, x):  # type: ignore[no-untyped-def]
        x = mt.flatten(self.act(self.bn(self.conv(x))), 1)
        return mt.relu(self.lin(self.drop(x))) * self.scale + self.shift


CODE = """


def forward(self, x):
    conv = self.conv(x);  x = None
    bn = self.bn(conv);  conv = None
    act = self.act(bn);  bn = None
    flatten = torch.flatten(act, 1);  act = None
    drop = self.drop(flatten);  flatten = None
    lin = self.lin(drop);  drop = None
    relu = torch.relu(lin);  lin = None
    scale = self.scale
    mul = relu * scale;  relu = scale = None
    shift = self.shift
    add = mul + shift;  mul = shift = None
    return add
    """


def lines(program: Any, **options: Any) -> list[str]:
    """Return the generated statements, without what is set free."""
    code = program.code if isinstance(program, fx.GraphModule) else fx.symbolic_trace(program, **options).code
    return [line.partition(";")[0].strip() for line in code.strip().split("\n") if line.strip()]


def test_a_module_is_recorded_and_written() -> None:
    net = Net().eval()
    made = fx.symbolic_trace(net)
    assert made.code == CODE
    x = mt.randn(2, 1, 4, 4)
    assert mt.equal(made(x), net(x)) and type(made).__name__ == "Net" and isinstance(made, fx.GraphModule)
    assert type(made).__qualname__.endswith("GraphModuleImpl")  # by this Accelerate knows where to replace forward
    assert [n.op for n in made.graph.nodes][:2] == ["placeholder", "call_module"] and made.conv is net.conv
    assert str(made.graph).splitlines()[4] == (
        "    %act : [num_users=1] = call_module[target=act](args = (%bn,), kwargs = {})"
    )
    relu_node = made.graph.find_nodes(op="call_function", target=mt.relu)[0]
    assert relu_node.target is mt.relu and str(relu_node.args) == "(lin,)" and list(relu_node.users)[0].name == "mul"


def test_functions_are_recorded_wherever_they_are_held() -> None:
    def program(x):  # type: ignore[no-untyped-def]
        return leaf(relu(x), 4) + ACTIVATIONS["silu"](x) + F.dropout(x, training=False)

    assert lines(program)[:-1] == [
        f'torch.fx._symbolic_trace.wrap("{__name__.replace(".", "_")}_leaf")',
        "def forward(self, x):",
        "relu = torch.nn.functional.relu(x, inplace = False)",
        f"leaf = {__name__.replace('.', '_')}_leaf(relu, 4)",
        "silu = torch.nn.functional.silu(x, inplace = False)",
        "add = leaf + silu",
        "dropout = torch.nn.functional.dropout(x, p = 0.5, training = False, inplace = False)",
        "add_1 = add + dropout",
    ]
    x = mt.ones(2)
    assert mt.equal(fx.symbolic_trace(program)(x), program(x)) and leaf(3, 3) == 9


def test_nothing_of_a_trace_stays() -> None:
    code = (
        "import sys, mortice as mt\n"
        "assert not [m for m in sys.modules if m.startswith(('mortice.fx', 'mortice.masked', 'mortice.asking'))]\n"
        "from mortice import fx, nn; from mortice.fx import wrap\n"
        "assert 'mortice.fx.proxy' not in sys.modules\n"
        "names, methods = dict(vars(mt)), dict(vars(mt.Tensor)); call = nn.Module.__call__\n"
        "for program in (lambda x: mt.exp(x) + mt.erfc(x) + nn.functional.relu(x) + mt.ones(1), lambda x: 1 / 0):\n"
        "    try: fx.symbolic_trace(program)\n"
        "    except ZeroDivisionError: pass\n"
        "assert all(vars(mt)[name] is value for name, value in names.items())\n"
        "assert all(type(v).__name__ not in ('_Recording', 'Overridable') for v in vars(mt).values())\n"
        "assert type(vars(nn.functional)['relu']).__name__ != '_Recording' and nn.Module.__call__ is call\n"
        "assert set(vars(mt.Tensor)) == set(methods) and '_Method' not in [type(v).__name__ for v in vars(mt.Tensor).values()]\n"
        "assert 'mortice.overrides' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_depends_on_values_is_refused() -> None:
    with pytest.raises(fx.proxy.TraceError, match="cannot be used as inputs to control flow; got a truth value asked of"):
        fx.symbolic_trace(lambda x: 1 if x.sum() > 0 else 2)
    with pytest.raises(fx.proxy.TraceError, match="Proxy object cannot be iterated"):
        fx.symbolic_trace(lambda x: list(x))
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing by default"):
        fx.symbolic_trace(lambda x: len(x))
    with pytest.raises(NotImplementedError, match="^argument of type: <class 'function'>"):
        fx.symbolic_trace(lambda x: mt.exp(x, lines))
    with pytest.raises(RuntimeError, match="Must be either a callable or string name; got int"):
        fx.wrap(3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module"):
        fx.wrap("leaf")


def test_activations_are_replaced_as_in_a_pass_before_quantisation() -> None:
    net = Net().eval()
    made = fx.symbolic_trace(net)
    for node in made.graph.nodes:
        if node.op == "call_module" and isinstance(made.get_submodule(node.target), nn.ReLU):
            assert made.add_submodule("quantised.act", nn.Hardtanh(0, 6))
            node.target = "quantised.act"
        elif node.target in (mt.relu, F.relu):
            with made.graph.inserting_after(node):
                new = made.graph.call_function(mt.clamp, (node.args[0], 0, 6))
            node.replace_all_uses_with(new)
            made.graph.erase_node(node)
    made.delete_all_unused_submodules()
    made.graph.lint()
    made.recompile()
    assert "act = self.quantised.act(bn)" in made.code and "clamp = torch.clamp(lin, 0, 6)" in made.code
    assert not hasattr(made, "act")
    x = mt.randn(2, 1, 4, 4)
    hidden = F.relu6(net.lin(mt.flatten(F.relu6(net.bn(net.conv(x))), 1)))
    assert mt.equal(made(x), hidden * net.scale + net.shift)
    assert not made.delete_submodule("quantised.nothing") and made.delete_submodule("quantised.act")


def test_normalisations_are_folded_and_dropout_is_left_out() -> None:
    net = Net().train()
    for _ in range(3):
        net(mt.randn(4, 1, 4, 4))
    net.eval()
    made = fuse(net)
    x = mt.randn(2, 1, 4, 4)
    assert "bn" not in made.code and isinstance(net.bn, nn.BatchNorm2d)
    mt.testing.assert_close(made(x), net(x), rtol=1e-4, atol=1e-5)
    assert "drop" not in remove_dropout(net).code


def test_modules_are_copied_and_pickled() -> None:
    made = fx.symbolic_trace(Net().eval())
    x = mt.randn(2, 1, 4, 4)
    for other in (copy.deepcopy(made), copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert other.code == made.code and mt.equal(other(x), made(x)) and list(other.state_dict()) == list(made.state_dict())
    assert copy.deepcopy(made).conv is not made.conv and copy.copy(made).conv is made.conv


def test_graphs_are_run_and_made_anew_node_by_node() -> None:
    class Counted(fx.Interpreter):
        calls: list[str] = []

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            self.calls.append(target.__name__)
            return super().call_function(target, args, kwargs)

    class Swapped(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return mt.neg(*args, **kwargs) if target == mt.sigmoid else super().call_function(target, args, kwargs)

    made = fx.symbolic_trace(lambda x, y=2: mt.sigmoid(x) + y)
    x = mt.ones(2)
    assert mt.equal(Counted(made).run(x, 2), made(x)) and Counted.calls == ["sigmoid", "add"]
    assert mt.equal(fx.Interpreter(made).run(x), made(x))
    assert lines(Swapped(made).transform())[1] == "neg = torch.neg(x)"
    with pytest.raises(RuntimeError, match=r"While executing %matmul : \[num_users=1\]"):
        fx.Interpreter(fx.symbolic_trace(lambda x: x @ x)).run(mt.ones(2, 3))
    net = fx.symbolic_trace(Net().eval())
    ShapeProp(net).propagate(mt.ones(2, 1, 4, 4))
    shapes = {n.name: tuple(n.meta["tensor_meta"].shape) for n in net.graph.nodes}
    assert shapes["conv"] == (2, 2, 2, 2) and shapes["flatten"] == (2, 8) and shapes["output"] == (2, 2)
    assert 'conv: "f32[2, 2, 2, 2]" = self.conv(x);  x = None' in net.print_readable(print_output=False)


def test_traces_run_in_traces_and_classes_are_derived_in_them() -> None:
    class Nested(fx.Tracer):
        def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
            if not self.is_leaf_module(m, ""):
                inner.append(fx.Tracer().trace(m))
            return super().call_module(m, forward, args, kwargs)

    inner: list[fx.Graph] = []
    program = nn.Sequential(Net(), nn.ReLU())
    graph = Nested().trace(program)
    assert inner[0].find_nodes(op="call_function", target=mt.relu)[0].target is mt.relu
    assert [n.name for n in graph.nodes][1:3] == ["_0_conv", "_0_bn"] and len(inner) == 1
    code = (
        "import mortice as mt; from mortice import fx\n"
        "class Asks:\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None): return 'asked'\n"
        "fx.symbolic_trace(lambda x: (__import__('mortice.overrides'), mt.exp(x))[1])\n"
        "assert mt.exp(Asks()) == mt.erfc(Asks()) == 'asked'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_patterns_are_replaced() -> None:
    made = fx.symbolic_trace(lambda x, y: F.relu(x + 1) * F.relu(y + 1) - F.relu(x))
    found = fx.replace_pattern(made, lambda a: F.relu(a + 1), lambda a: mt.tanh(a))
    assert len(found) == 2 and lines(made)[1:-1] == [
        "tanh = torch.tanh(x)", "tanh_1 = torch.tanh(y)", "mul = tanh * tanh_1",
        "relu_2 = torch.nn.functional.relu(x, inplace = False)", "sub = mul - relu_2",
    ]  # fmt: skip
    used_outside = fx.symbolic_trace(lambda x: (x + 1).relu() * (x + 1) + (s := x + 2).relu() + s)
    found = fx.replace_pattern(used_outside, lambda a, b: (a + b).relu(), lambda a, b: mt.mul(a, b))
    assert [str(match.nodes_map[match.anchor]) for match in found] == ["relu"]  # the other's sum is taken elsewhere too


def test_graphs_are_built_and_changed_by_hand() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(mt.add, (x, 2), {"alpha": 3})
    end = graph.output(graph.call_method("relu", (y,)))
    with graph.inserting_before(y):
        z = graph.call_function(mt.neg, (x,))
    y.replace_input_with(x, z)
    graph.lint()
    assert x < z < y < end and y.prev is z and list(x.users) == [z] and y.all_input_nodes == [z]
    made = fx.GraphModule(nn.Module(), graph)
    assert made(mt.tensor([-8.0])).tolist() == [14.0]
    with pytest.raises(RuntimeError, match="Tried to erase Node neg but it still had 1 users in the graph: {add: None}!"):
        graph.erase_node(z)
    with pytest.raises(NotImplementedError, match="'immutable_list' object does not support mutation"):
        graph.call_function(mt.cat, ([x, y],)).args[0].append(x)
    with graph.inserting_before(end):
        graph.call_function(mt.sin, (x,))
    assert graph.eliminate_dead_code() and not graph.find_nodes(op="call_function", target=mt.sin)
    with pytest.raises(ValueError, match="target foo has type str but a Callable is expected"):
        fx.Node(graph, "q", "call_function", "foo", (), {})
    assert graph.call_function(mt.arctan, (x,)).name in ("arctan", "atan") and graph.call_function(mt.linalg.norm).name == "linalg_norm"
    assert fx.Proxy(x).tracer.graph is graph and mt.tanh(fx.Proxy(x)).node.format_node() == (
        "%tanh : [num_users=0] = call_function[target=torch.tanh](args = (%x,), kwargs = {})"
    )
    mt._assert(fx.Proxy(x) == 1, "one")  # an assertion is recorded outside of a trace too
    assert next(reversed(graph.nodes)).target == mt._assert


def test_a_function_of_two_namespaces_goes_by_its_name_at_the_root() -> None:
    traced = fx.symbolic_trace(lambda x: mt.special.expm1(x) + mt.expm1(x) + mt.linalg.matmul(x, x))
    assert [node.name for node in traced.graph.nodes][1:] == ["expm1", "expm1_1", "add", "matmul", "add_1", "output"]
    assert "torch.matmul(x, x)" in traced.code and "special" not in traced.code


def test_a_transformer_keeps_where_nodes_come_from_and_copies_may_hold_themselves():
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(mt.ones(1))

        def forward(self, x):
            return self.weight + x

    gm = fx.symbolic_trace(Weighted())
    for node in gm.graph.nodes:
        node.meta.update({"nn_module_stack": node.name, "stack_trace": "here", "mine": 1})
    kept = [node.meta for node in fx.Transformer(gm).transform().graph.nodes if node.op in ("get_attr", "call_function")]
    assert kept == [{"nn_module_stack": name, "stack_trace": "here"} for name in ("weight", "add")]
    gm.meta["itself"] = gm
    copied = copy.deepcopy(gm)
    assert copied.meta["itself"] is copied and copied(mt.ones(1)).tolist() == [2]


def test_a_tracer_may_refuse_functions_by_their_names():
    class Careful(fx.Tracer):
        def create_node(self, kind, target, *args, **kwargs):
            name = target if isinstance(target, str) else mt.typename(target)
            if name.endswith("_"):
                raise RuntimeError("In-place operations are not supported")
            return super().create_node(kind, target, *args, **kwargs)

    for wrong in (lambda x: mt.log_(x), lambda x: x.add_(3.0)):
        with pytest.raises(RuntimeError, match="In-place"):
            Careful().trace(wrong)
    assert len(Careful().trace(lambda x: mt.log(x)).nodes) == 3
    assert mt.typename(len) == "len" and mt.typename(nn.functional.relu).endswith(".relu") and mt.typename(None) == "NoneType"


def test_tracers_that_write_trace_again_take_its_parts_from_where_pytorch_has_them() -> None:
    import mortice.fx._symbolic_trace as st

    class Whole(nn.Module):  # its call is not that of Module, so that a tracer has to put one there
        __call__ = nn.Module.__call__

        def forward(self, x: Any) -> Any:
            return F.relu(x)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.whole, self.lin, self.scale = Whole(), nn.Linear(2, 2), nn.Parameter(mt.ones(2))

        def forward(self, x: Any, n: Any) -> Any:
            return mt.relu(self.lin(self.whole(x))) * self.scale * math.sqrt(n)

    class Tracer(fx.Tracer):
        def is_leaf_module(self, m: Any, name: str) -> bool:
            return True

        @st.compatibility(is_backward_compatible=True)
        def trace(self, root: Any, concrete_args: Any = None) -> Any:
            assert not isinstance(root, st.ScriptObject)
            self.root, self.graph, self.tensor_attrs = root, fx.Graph(tracer_cls=type(self)), {}
            self.submodule_paths = {m: name for name, m in root.named_modules()}
            fn, args = self.create_args_for_root(type(root).forward, True, concrete_args)
            proxies: dict[str, Any] = {}

            @st.functools.wraps(st._orig_module_getattr)
            def get(mod: Any, attr: str) -> Any:
                return self.getattr(attr, st._orig_module_getattr(mod, attr), proxies)

            @st.functools.wraps(st._orig_module_call)
            def call(mod: Any, *args: Any, **kwargs: Any) -> Any:
                return self.call_module(mod, functools.partial(st._orig_module_call, mod), args, kwargs)

            with st._Patcher() as patcher:
                patcher.patch_method(nn.Module, "__getattr__", get, deduplicate=False)
                patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
                patcher.patch_method(Whole, "__call__", call, deduplicate=False)
                st._patch_wrapped_functions(patcher)
                st._autowrap_check(patcher, fn.__globals__, self._autowrap_function_ids)
                for module in self._autowrap_search:
                    st._autowrap_check(patcher, vars(module), self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {})
            return self.graph

    before = nn.Module.__call__, nn.Module.__getattr__, math.sqrt, mt.relu
    model = Model()
    graph = Tracer().trace(model)
    assert [str(n.target) for n in graph.nodes if n.op in ("call_module", "get_attr")] == ["whole", "lin", "scale"]
    assert {n.target for n in graph.nodes if n.op == "call_function"} >= {mt.relu, math.sqrt}
    assert before == (nn.Module.__call__, nn.Module.__getattr__, math.sqrt, mt.relu)
    x = mt.randn(3, 2)
    assert mt.equal(fx.GraphModule(model, graph)(x, 4.0), model(x, 4.0))


def test_a_tracer_is_copied_before_and_after_a_trace() -> None:
    tracer = fx.Tracer()
    fresh = copy.deepcopy(tracer)
    graph = tracer.trace(lambda x, y: (x + y).relu())
    assert str(copy.deepcopy(tracer).graph) == str(graph) and str(fresh.trace(lambda x, y: (x + y).relu())) == str(graph)


def test_a_graph_module_is_replicated() -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    x = mt.randn(3, 2)
    replica = traced._replicate_for_data_parallel()
    assert replica._is_replica and mt.equal(replica(x), traced(x))
    assert all(mt.equal(made(x), traced(x)) for made in nn.parallel.replicate(traced, [0, 1]))


def test_lists_and_dicts_that_refuse_to_change_are_containers_of_pytrees() -> None:
    for tree in (immutable_list([3, [1, 42]]), immutable_dict(a=3, b=[1, 42])):
        leaves, spec = pytree.tree_flatten(tree)
        made = pytree.tree_unflatten(leaves, spec)
        assert leaves == [3, 1, 42] and made == tree and type(made) is type(tree)
    assert [str(path[0]) for path, _ in pytree.tree_leaves_with_path(immutable_list("ab"))] == ["[0]", "[1]"]


def test_values_of_trees_are_found_by_their_keys_and_by_another_trace() -> None:
    ph = fx.PH
    traced = fx.symbolic_trace(lambda d, pair: d["a"] - d["z"][0] * pair[1], concrete_args={"d": {"a": ph, "z": [ph]}, "pair": (ph, ph)})
    a, b, c = mt.tensor(5.0), mt.tensor(2.0), mt.tensor(3.0)
    assert traced({"z": [b], "a": a}, (a, c)).item() == -1
    assert fx.symbolic_trace(traced)({"z": [b], "a": a}, (a, c)).item() == -1
