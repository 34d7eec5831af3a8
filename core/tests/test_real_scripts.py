"""What public PyTorch repositories do and once failed here: each test is the smallest form of a line that some program has."""

import copy
import importlib
import io
import pickle
import re
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

import mortice as mt
from mortice import nn
from mortice.utils import _pytree as pytree

# ---- vision transformers assert what their tracers can see ----


def test_assert_takes_bools_and_tensors():
    mt._assert(mt.ones(2).sum() == 2, "unused")
    with pytest.raises(AssertionError, match="Wrong height: 3"):
        mt._assert(3 == 4, "Wrong height: 3")


# ---- DenseNets and box operations name private decorators of torch.jit ----


def test_private_decorators_of_jit_return_the_function():
    def forward():
        return 1

    for decorate in (mt.jit._overload, mt.jit._overload_method, mt.jit._script_if_tracing):
        assert decorate(forward) is forward


# ---- a language model saves itself whole and reads itself with safe_globals ----


def whole(model):
    file = io.BytesIO()
    mt.save(model, file)
    file.seek(0)
    return file


def test_whole_module_loads_once_its_classes_are_vouched_for():
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 1, enable_nested_tensor=False
    )
    x = mt.rand(1, 3, 4)
    classes = {type(m) for m in model.modules()} | {nn.functional.relu}
    with mt.serialization.safe_globals(list(classes)):
        loaded = mt.load(whole(model))
    assert mt.equal(loaded(x), model(x))
    loaded.register_forward_hook(lambda module, args, out: out + 1)
    assert mt.equal(loaded(x), model(x) + 1)
    with pytest.raises(pickle.UnpicklingError, match="mortice.nn"):
        mt.load(whole(model))


def test_hooks_and_their_options_survive_a_copy():
    layer = nn.Linear(2, 2)
    layer.register_forward_pre_hook(add_one, with_kwargs=True)
    for made in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert mt.equal(made(mt.zeros(1, 2)), layer(mt.zeros(1, 2)))
        assert mt.equal(made(mt.zeros(1, 2)), nn.functional.linear(mt.ones(1, 2), made.weight, made.bias))


def add_one(module, args, kwargs):
    return (args[0] + 1,), kwargs


def test_a_hook_is_nothing_to_load_without_a_word():
    layer = nn.Linear(2, 2)
    layer.register_forward_pre_hook(add_one, with_kwargs=True)
    with mt.serialization.safe_globals([nn.Linear]), pytest.raises(pickle.UnpicklingError, match="add_one"):
        mt.load(whole(layer))


# ---- transformers' caches are nests that _pytree takes apart ----

Pair = namedtuple("Pair", "left right")


class Box:
    def __init__(self, inside):
        self.inside = inside


@pytest.fixture
def box():
    pytree.register_pytree_node(Box, lambda b: ([b.inside], None), lambda children, _: Box(next(iter(children))))
    yield Box
    del pytree.SUPPORTED_NODES[Box]


def test_pytree_gives_leaves_in_order_and_rebuilds():
    tree = {"b": [1, (2, Pair(3, None))], "a": OrderedDict(z=deque([4], maxlen=2)), "c": defaultdict(list, k="s")}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, None, 4, "s"] and spec.num_leaves == 6 and spec.type is dict and spec.num_children == 3
    made = pytree.tree_unflatten(leaves, spec)
    assert made == tree and type(made["b"][1][1]) is Pair and made["a"]["z"].maxlen == 2
    assert made["c"]["new"] == [] and pytree.tree_structure(tree) == spec
    with pytest.raises(ValueError, match="expected 6 leaves, as the treespec has; got 1"):
        pytree.tree_unflatten([1], spec)


def test_pytree_opens_sizes():
    leaves, spec = pytree.tree_flatten([mt.Size([2, 3]), mt.Size()])
    made = pytree.tree_unflatten(leaves, spec)
    assert leaves == [2, 3] and made == [(2, 3), ()] and all(type(s) is mt.Size for s in made)


def test_pytree_maps_over_several_nests_and_chosen_leaves():
    x = mt.ones(2)
    assert pytree.tree_map(lambda a, b: a + b, {"p": 1, "q": [2]}, {"q": [20], "p": 10}) == {"p": 11, "q": [22]}
    assert pytree.tree_map_only(int, lambda i: -i, [1, "a", 2.5]) == [-1, "a", 2.5]
    assert pytree.tree_map_only(mt.Tensor, lambda t: t * 2, (x, 3))[0].tolist() == [2.0, 2.0]
    assert pytree.tree_leaves([x.shape, (1,)], is_leaf=lambda t: isinstance(t, tuple)) == [x.shape, (1,)]
    assert pytree.tree_leaves(x.shape) == [2]
    assert pytree.tree_any(lambda t: t == 1, [2, 1]) and not pytree.tree_all_only(int, lambda t: t == 1, [2, "1"])
    for other in ([1, 2], {"p": 1}, {"p": 1, "r": 2}):
        with pytest.raises(ValueError, match="expected a node"):
            pytree.tree_map(max, {"p": 1, "q": 2}, other)


def test_pytree_knows_kinds_of_dictionaries_and_of_named_tuples():
    Other = namedtuple("Other", "left right")
    swapped = pytree.tree_map(lambda a, b: (a, b), {"p": 1, "q": 2}, OrderedDict(q=20, p=10))
    assert swapped == {"p": (1, 10), "q": (2, 20)}
    assert pytree.tree_map(max, deque([1, 2]), deque([3, 0], maxlen=5)) == deque([3, 2])
    assert pytree._get_node_type(Pair(1, 2)) in pytree.SUPPORTED_NODES
    assert pytree._get_node_type(mt.ones(1)) not in pytree.SUPPORTED_NODES
    with pytest.raises(ValueError, match="expected a node"):
        pytree.tree_map(max, Pair(1, 2), Other(1, 2))


def test_pytree_names_the_path_to_each_leaf(box):
    tree = {"b": [1, (2,)], "a": Pair(3, None)}
    leaves, spec = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in leaves] == ["['b'][0]", "['b'][1][0]", "['a'].left", "['a'].right"]
    assert [pytree.key_get(tree, path) for path, _ in leaves] == [leaf for _, leaf in leaves] == [1, 2, 3, None]
    assert spec == pytree.tree_structure(tree) and pytree.tree_leaves_with_path(5) == [((), 5)]
    named = pytree.tree_map_with_path(lambda path, x, y: (len(path), x, y), tree, {"a": Pair(6, 7), "b": [8, (9,)]})
    assert named == {"b": [(2, 1, 8), ((3, 2, 9),)], "a": Pair((2, 3, 6), (2, None, 7))}
    with pytest.raises(ValueError, match="expected a flatten_with_keys_fn"):
        pytree.tree_leaves_with_path([box(1)])


def test_pytree_takes_registered_classes(box):
    assert pytree.tree_map(lambda i: i + 1, [box(1)])[0].inside == 2
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(box, None, None)


def test_pytree_takes_an_object_of_a_constant_class_for_a_part_of_the_shape():
    class Mode(str):
        pass

    pytree.register_constant(Mode)
    leaves, shape = pytree.tree_flatten([Mode("fast"), 1])
    assert leaves == [1] and pytree.tree_unflatten([2], shape) == ["fast", 2]
    assert shape != pytree.tree_structure([Mode("slow"), 1])


def test_pytree_takes_dataclasses_by_their_fields():
    @dataclass
    class Point:
        x: object
        y: object = None
        made: object = field(default=3, init=False)

    pytree.register_dataclass(Point)
    for point, count in ((Point(1), 1), (Point(1, [2, 3]), 3)):
        leaves, shape = pytree.tree_flatten(point)
        assert leaves == [1, 2, 3][:count] and pytree.tree_unflatten(leaves, shape) == point
    assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Point(1, [2]))] == [".x", ".y[0]"]

    @dataclass
    class Named:
        x: object
        name: str = "default"

    with pytest.raises(ValueError, match="field_names does not include all dataclass fields"):
        pytree.register_dataclass(Named, field_names=["x"])
    pytree.register_dataclass(Named, field_names=["x"], drop_field_names=["name"])
    assert pytree.tree_map(lambda x: x + 1, Named(1, "other")) == Named(2)
    with pytest.raises(ValueError, match="is not a dataclass"):
        pytree.register_dataclass(object)


# ---- programs for one process or many ask which it is ----


def test_distributed_says_that_there_is_one_process():
    import mortice.distributed as dist
    from mortice.distributed import nn as differentiable

    assert not dist.is_available() and not dist.is_initialized() and dist.group.WORLD is None
    for ask in (dist.get_rank, lambda: differentiable.all_reduce(mt.ones(1))):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            ask()
    with pytest.raises(NotImplementedError, match="left out: expected world_size 1 and rank 0; got 4 and 1"):
        dist.init_process_group("gloo", world_size=4, rank=1)


def test_a_process_group_of_one_exchanges_nothing(monkeypatch):
    import mortice.distributed as dist
    from mortice.distributed import nn as differentiable

    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("gloo", init_method="env://")
    try:
        with pytest.raises(ValueError, match="initialize the default process group twice"):
            dist.init_process_group("gloo", world_size=1, rank=0)
        group = dist.new_group([0])
        assert group is dist.group.WORLD is dist.GroupMember.WORLD is dist.distributed_c10d._get_default_group()
        assert dist.new_subgroups(1) == (group, [group]) and dist.reduce_op.SUM is dist.ReduceOp.SUM
        with pytest.raises(ValueError, match=r"^new_subgroups: The arg 'group_size' \(2\) must not exceed the world size \(1\)"):
            dist.new_subgroups(group_size=2)
        assert dist.Backend.GLOO == dist.Backend("GLOO") == dist.get_backend() and type(dist.Backend("nccl")) is str
        with pytest.raises(ValueError, match="^Backend: constructor parameter must be string-ish; got 3"):
            dist.Backend(3)
        assert dist.is_initialized() and (dist.get_rank(), dist.get_world_size(group), dist.get_backend()) == (0, 1, "gloo")
        assert (group.rank(), group.size()) == (0, 1)
        x, into = mt.tensor([1.0, 2.0], requires_grad=True), mt.zeros(1, 2)
        assert dist.all_reduce(x, dist.ReduceOp.AVG) is dist.broadcast(x, 0) is dist.barrier() is None
        assert dist.all_reduce(x, async_op=True).wait() and x.tolist() == [1, 2]
        for write in (dist.all_gather, dist.reduce_scatter, dist.gather):
            rows = [mt.zeros(2)]
            write(*((rows[0], [x]) if write is dist.reduce_scatter else (rows, x) if write is dist.all_gather else (x, rows)))
            assert rows[0].tolist() == [1, 2] and not rows[0].requires_grad, write.__name__
        received, whole, part = [mt.zeros(2)], mt.zeros(2), mt.zeros(2)
        dist.all_to_all(received, [x])
        assert dist.all_to_all_single(whole, x, async_op=True).wait() and dist.reduce_scatter_tensor(part, x) is None
        assert received[0].tolist() == whole.tolist() == part.tolist() == [1, 2]
        assert dist.get_process_group_ranks(group) == [0] and dist.get_global_rank(group, 0) == dist.get_group_rank(group, 0) == 0
        dist.all_gather_into_tensor(into, x)
        objects = [None]
        dist.all_gather_object(objects, {"a": 1})
        assert into.tolist() == [[1, 2]] and objects == [{"a": 1}]
        (mt.cat(differentiable.all_gather(x)) * differentiable.all_reduce(x)).sum().backward()
        assert x.grad.tolist() == [2, 4]
        with pytest.raises(ValueError, match="Invalid destination rank"):
            dist.send(x, 0)
        with pytest.raises(ValueError, match="Invalid source rank"):
            dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, 0)])
        assert isinstance(dist.all_reduce(x, async_op=True), dist.Work)
        layer = nn.Linear(2, 1)
        net = nn.parallel.DistributedDataParallel(layer, device_ids=None, find_unused_parameters=True)
        with net.no_sync():
            net(x).sum().backward()
        assert list(net.state_dict()) == ["module.weight", "module.bias"] and layer.weight.grad.tolist() == [[1, 2]]
        with pytest.raises(RuntimeError, match="any parameters that require a gradient"):
            nn.parallel.DistributedDataParallel(nn.ReLU())
        assert sorted(mt.utils.data.DistributedSampler(range(5))) == [0, 1, 2, 3, 4]
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized() and dist.get_world_size.__name__ == "get_world_size"


# ---- tutorials import torch.functional, print type(x), and index what reductions gave ----


def test_functional_holds_the_functions_of_the_top_level():
    import mortice.functional as F

    assert F.einsum is mt.einsum and all(getattr(F, n) is getattr(mt, n) for n in F.__all__)
    assert not hasattr(F, "ones") and F.F is nn.functional and F.Tensor is mt.Tensor  # as editors import them
    for place in (nn.modules.activation, nn.modules.module, nn.modules.transformer):
        assert place.F is nn.functional and place.Tensor is mt.Tensor and place.Parameter is nn.Parameter and place.init is nn.init
    with pytest.MonkeyPatch.context() as patched:  # so are those that ask classes, which `mortice.overrides` puts there
        patched.setattr(mt, "einsum", len)
        assert F.einsum is len


def test_the_class_of_a_tensor_prints_where_users_find_it():
    assert str(type(mt.ones(2))) == "<class 'mortice.Tensor'>"
    assert pickle.loads(pickle.dumps(mt.Tensor)) is mt.Tensor


def test_indexing_a_number_says_to_use_item():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor. Use `tensor.item\\(\\)`"):
        mt.ones(3).sum().data[0]


# ---- a diffusion model puts layers of einops, which are PyTorch's modules, between ours ----


def test_a_module_of_another_library_is_named():
    theirs = type("Rearrange", (type("Module", (), {"__module__": "torch.nn.modules.module"}),), {})
    with pytest.raises(TypeError, match="Rearrange is not a Module subclass; it is a module of torch. Layers of einops are"):
        nn.Sequential(theirs())
    with pytest.raises(TypeError, match="int is not a Module subclass$"):
        nn.Sequential(3)


# ---- frameworks around PyTorch name what stands beside training ----


def test_futures_bring_values_errors_and_what_is_made_of_them():
    from mortice.futures import Future, collect_all, wait_all

    first, second = Future(), mt.Future()
    both, doubled = collect_all([first, second]), first.then(lambda f: f.value() * 2)
    with pytest.raises(RuntimeError, match="expected a Future that is done"):
        first.value()
    first.set_result(3)
    assert doubled.wait() == 6 and not both.done()
    second.set_exception(KeyError("k"))
    assert both.done() and collect_all([]).wait() == [] and collect_all([first, doubled]).wait() == [first, doubled]
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        first.set_result(4)
    for wait in (both.wait, lambda: wait_all([first, second])):
        with pytest.raises(KeyError):
            wait()
    with pytest.raises(RuntimeError, match="^Got the following error when running the callback: KeyError: 'k'"):
        second.then(lambda f: f.wait()).wait()
    for refused in (wait_all, collect_all):
        with pytest.raises(RuntimeError, match="^Future can't be None$"):
            refused((first, None))
    with pytest.raises(RuntimeError, match="^Can not pickle"):
        pickle.dumps(first)


def test_nests_are_scattered_and_gathered():
    from mortice.nn.parallel.scatter_gather import gather, scatter

    x = mt.arange(6).reshape(3, 2)
    parts = scatter({"x": x, "rest": (Pair(x, 1), [])}, ["cpu", "cpu"])
    assert [p["x"].tolist() for p in parts] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert [p["rest"][0].right for p in parts] == [1, 1] and type(parts[1]["rest"][0]) is Pair
    whole = gather([{"x": p["x"], "y": (p["x"].sum(), None)} for p in parts], "cpu")
    assert whole["x"].tolist() == x.tolist() and whole["y"][0].tolist() == [6, 9] and whole["y"][1] is None
    called = nn.parallel.parallel_apply(nn.parallel.replicate(lambda x, by=1: x * by, [0, 1]), [x, (x,)], [{}, {"by": 2}])
    assert [c.tolist() for c in called] == [x.tolist(), (x * 2).tolist()]


@pytest.mark.needs("cpu")
def test_programs_that_split_batches_themselves_find_the_steps():
    from mortice.nn.parallel._functions import Broadcast, Gather, ReduceAddCoalesced, Scatter

    from mortice.nn.parallel.parallel_apply import parallel_apply
    from mortice.nn.parallel.replicate import _broadcast_coalesced_reshape, replicate
    from mortice.nn.parallel.scatter_gather import scatter_kwargs

    assert nn.parallel.replicate is replicate and nn.parallel.parallel_apply is parallel_apply
    assert _broadcast_coalesced_reshape([mt.ones(1)], [0, 1]) == [[mt.ones(1)]] * 2
    devices, layer, x = ["cpu", "cpu"], nn.Linear(2, 1), mt.arange(6.0).reshape(3, 2).requires_grad_()
    rows, named = scatter_kwargs((x,), {}, devices)
    assert [r[0].tolist() for r in rows] == [[[0, 1], [2, 3]], [[4, 5]]] and named == ({}, {})
    parts = parallel_apply(replicate(layer, devices), rows, named, devices)
    whole = Gather.apply("cpu", 0, *parts)
    assert whole.tolist() == layer(x).tolist()
    whole.sum().backward()
    assert x.grad.tolist() == layer.weight.tolist() * 3
    assert [p.tolist() for p in Scatter.apply(devices, [1, 2], 0, x)] == [[[0, 1]], [[2, 3], [4, 5]]]
    sums = ReduceAddCoalesced.apply("cpu", 2, *Broadcast.apply(devices, mt.ones(1), mt.ones(2)))
    assert [s.tolist() for s in sums] == [[2], [2, 2]]


def test_names_that_compiled_programs_take_are_there():
    from mortice.jit.annotations import List, Optional
    from mortice.nn.modules.conv import _ConvNd, _ConvTransposeMixin
    from mortice.nn.modules.padding import _CircularPadNd, _ConstantPadNd, _ReflectionPadNd, _ReplicationPadNd
    from mortice.nn.modules.transformer import _get_activation_fn
    from mortice.utils.data._utils.collate import default_collate_err_msg_format, np_str_obj_array_pattern

    import mortice._C

    assert issubclass(mt.nn.ZeroPad2d, mt.nn.ConstantPad2d) and issubclass(mt.nn.ConstantPad2d, _ConstantPadNd)
    assert issubclass(mt.nn.CircularPad1d, _CircularPadNd)
    assert issubclass(_ConvTransposeMixin, _ConvNd) and not issubclass(mt.nn.ConvTranspose2d, _ConvTransposeMixin)
    assert issubclass(mt.nn.ReflectionPad1d, _ReflectionPadNd) and issubclass(mt.nn.ReplicationPad3d, _ReplicationPadNd)
    assert np_str_obj_array_pattern.search("<U3") and not np_str_obj_array_pattern.search("<f4")
    with pytest.raises(TypeError, match=re.escape(default_collate_err_msg_format.format(object))):
        mt.utils.data.default_collate([object()])
    assert List[int] and Optional[int] and _get_activation_fn("gelu") is mt.nn.functional.gelu
    assert mortice._C._jit_set_profiling_mode(False) is mortice._C._jit_set_profiling_executor(True) is False
    assert mortice._C._LinAlgError is mt.linalg.LinAlgError
    for name in ("Generator", "Size", "device", "dtype", "layout", "DisableTorchFunctionSubclass", "is_grad_enabled", "get_default_dtype"):
        assert getattr(mortice._C, name) is getattr(mt, name)
    assert mortice._C._TensorBase is mortice._C.TensorBase and issubclass(mt.nn.Parameter, mortice._C._TensorBase)
    for name in ("add", "nn", "is_nothing", "_absent"):
        with pytest.raises(AttributeError, match=f"module 'mortice._C' has no attribute '{name}'"):
            getattr(mortice._C, name)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:(TypedStorage|_aminmax) is deprecated")
def test_names_of_libraries_give_what_pytorch_s_do():
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    seen = []
    for lib in (mt, torch):
        x = lib.tensor([[3.0, 1.0], [2.0, 5.0]])
        made = [*lib._aminmax(x), *lib._aminmax(x, 1), *lib._aminmax(x, 0, True), lib._shape_as_tensor(x), lib._shape_as_tensor(x.sum())]
        found = [[lib.empty(0).dtype == t.dtype, list(t.shape), [round(v, 4) for v in t.flatten().tolist()]] for t in made]
        is_instance = [isinstance(x.storage(), lib.Storage), isinstance(x.double().storage(), lib.Storage)]
        seen.append([found, is_instance, lib._disable_dynamo(lambda: 1)(), lib._disable_dynamo(recursive=False)(lambda: 1)()])
    assert seen[0] == seen[1]


@pytest.mark.oracle
def test_pytree_tells_named_tuples_and_results_of_several_values():
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    told = []
    for lib in (mt, torch):
        trees, result = lib.utils._pytree, lib.ones(2).max(0)
        of_value = [trees.is_namedtuple, trees.is_namedtuple_instance, trees.is_structseq_instance]
        of_class = [trees.is_namedtuple, trees.is_namedtuple_class]
        values = (Pair(1, 2), result, (1, 2), [1], None)
        told.append([[f(v) for f in of_value for v in values], [f(type(v)) for f in of_class for v in values], [f(1) for f in of_class]])
        assert trees.PyTreeSpec is trees.TreeSpec
    assert told[0] == told[1]


def test_flops_of_a_block_are_counted_by_module(capsys):
    from mortice.utils.flop_counter import FlopCounterMode

    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 5))
    x = mt.ones(2, 2, 4, 4)
    with FlopCounterMode() as counted:
        model(x)
    conv, linear = 2 * (2 * 3 * 4) * 18, 2 * 2 * 5 * 12
    assert counted.get_total_flops() == conv + linear
    by = {name: sum(row.values()) for name, row in counted.get_flop_counts().items()}
    want = {"Global": conv + linear, "Sequential": conv + linear, "Sequential.0": conv, "Sequential.3": linear}
    assert by == want and "Sequential.3" in capsys.readouterr().out
    with FlopCounterMode(display=False) as counted:
        model(x).sum().backward()
    # The first layer's input needs no gradient; every other product is done twice more.
    assert counted.get_total_flops() == 2 * conv + 3 * linear and not capsys.readouterr().out
    model(x)
    assert counted.get_total_flops() == 2 * conv + 3 * linear


def test_names_that_frameworks_ask_for():
    layer = mt.jit.script(nn.Linear(2, 2))
    assert not isinstance(layer, mt.jit.ScriptModule) and not isinstance(layer, mt.fx.GraphModule)
    with pytest.raises(AttributeError, match=r"'Linear' object has no attribute 'save': save its state_dict\(\) with mortice.save"):
        layer.save("layer.pt")
    assert not hasattr(layer, "save")
    assert not isinstance(2, mt.SymInt) and mt.types.SymInt is mt.SymInt
    assert mt._C._nn._parse_to("cpu", mt.float64)[:2] == (mt.device("cpu"), mt.float64)
    assert mt._C._nn._parse_to(mt.float16)[:2] == (None, mt.float16)
    assert pytree.LeafSpec() == pytree.tree_structure(1) and pytree._register_pytree_node is pytree.register_pytree_node
    spec = pytree.tree_structure([1, (2, {"a": 3}), [4]])
    lines = "TreeSpec(list, None, [*,", "  TreeSpec(tuple, None, [*,", "    TreeSpec(dict, ['a'], [*])]),", "  TreeSpec(list, None, [*])])"
    assert repr(spec) == "\n".join(lines)
    hooks = mt.nn.hooks.HookDict([(1, print)])
    assert dict(hooks) == {1: print} and not hooks.options
    with pytest.raises(NotImplementedError, match="NVIDIA's profilers"), mt.autograd.profiler.emit_nvtx():
        pass


def test_a_class_of_weights_makes_itself_on_a_tensors_storage():
    class Point(mt.Tensor):
        def __new__(cls, data, place="here"):
            made = mt.Tensor._make_subclass(cls, data, True)
            made.place = place
            return made

    x = mt.ones(3)
    point = Point(x, "there")
    assert type(point) is Point and point.place == "there" and point.requires_grad and point.is_leaf
    (point * 2).sum().backward()
    assert point.grad.tolist() == [2.0] * 3 and not x.requires_grad
    with mt.no_grad():
        point.mul_(3)
    assert x.tolist() == [3.0] * 3 and not mt.Tensor._make_subclass(Point, x).requires_grad


def test_a_dense_tensor_is_dense():
    x = mt.ones(2)
    assert x.to_dense() is x and x.to_dense(mt.float64).dtype is mt.float64
    with pytest.raises(TypeError):
        x.to_dense("a")


# ---- names that libraries read when they are imported ----

NAMED = "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex32".split()
PACKED = [f"{sign}int{n}" for sign in ("", "u") for n in range(1, 8)]
QUANTISED = "qint8 qint32 quint4x2 quint8".split() + PACKED


def test_dtypes_that_no_tensor_has_are_names_to_compare_with():
    x = mt.ones(2)
    for name in NAMED + QUANTISED:
        d = getattr(mt, name)
        assert x.dtype != d and {d: 1}[d] == 1 and copy.deepcopy(d) is pickle.loads(pickle.dumps(d)) is d
        assert repr(d) == f"mortice.{name}" and mt.promote_types(d, d) is d
        for make in () if "float8" in name else (mt.zeros_like, mt.Tensor.to, mt.sum, mt.cumsum):
            with pytest.raises(RuntimeError, match=f"has no {name}"):
                make(x, **({"dim": 0} if make is mt.cumsum else {}), dtype=d)
        for other in (mt.float32, mt.bool):
            with pytest.raises(RuntimeError, match=f"(got|attempted to promote) .*{name.capitalize()}|got .*{name}"):
                mt.promote_types(other, d)
    with pytest.raises(TypeError, match="expected a floating point dtype"):
        mt.set_default_dtype(mt.float8_e5m2)
    with pytest.raises(TypeError, match="iinfo: expected an integer dtype; got mortice.int4"):
        mt.iinfo(mt.int4)
    assert mt.finfo(mt.float8_e4m3fn).max == 448 and mt.finfo(mt.complex32).dtype == "float16" and mt.chalf is mt.complex32


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMED)
def test_their_limits_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    mine, theirs = getattr(mt, name), getattr(torch, name)
    assert repr(mt.finfo(mine)) == repr(torch.finfo(theirs))
    for asked in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
        assert getattr(mt.finfo(mine), asked) == getattr(torch.finfo(theirs), asked)
    for asked in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(mine, asked) == getattr(theirs, asked)


@pytest.mark.oracle
@pytest.mark.parametrize("name", QUANTISED)
def test_dtypes_of_quantised_tensors_are_of_pytorchs_size(name):
    torch = pytest.importorskip("torch")
    for asked in ("itemsize", "is_floating_point", "is_complex"):
        assert getattr(getattr(mt, name), asked) == getattr(getattr(torch, name), asked)


def test_layouts_are_compared_and_pickled_as_themselves():
    sparse = mt.eye(2).to_sparse()
    for other in (mt.sparse_csr, mt.sparse_csc, mt.sparse_bsr, mt.sparse_bsc):
        assert sparse.layout != other and mt.ones(2).layout != other and pickle.loads(pickle.dumps(other)) is other


def test_the_compilers_private_names_do_nothing():
    from mortice._dynamo import config, disable, mark_static_address
    from mortice._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    from mortice._dynamo.eval_frame import OptimizedModule

    config.suppress_errors = True
    net, x = nn.Linear(1, 1), mt.arange(4.0)
    mark_static_address(x)
    assert mt._dynamo.eval_frame.OptimizedModule is OptimizedModule
    assert disable(net) is net and isinstance(mt.compile(net), OptimizedModule) and not mt._dynamo.is_compiling()
    assert mt.compile(net).dynamo_ctx(net.forward) == net.forward  # Lightning compiles a forward so
    with TransformGetItemToIndex():
        assert mt.vmap(lambda i: x[i] * 2)(mt.tensor([3, 1])).tolist() == [6.0, 2.0]


def test_nothing_is_ever_exported_or_traced():
    assert mt.onnx.is_in_onnx_export() is mt._C._is_tracing() is False
    with pytest.raises(NotImplementedError, match=r"onnx.export: exporting to ONNX is left out"):
        mt.onnx.export(nn.Linear(1, 1), mt.ones(1, 1), "file")


def test_what_an_exporter_would_follow_is_plain():
    x = mt.ones(2, 3)
    operators = importlib.import_module("mortice.onnx.operators")
    assert operators is mt.onnx.operators and list(mt.onnx.OperatorExportTypes)[0].name == "ONNX"
    assert operators.shape_as_tensor(x).tolist() == [2, 3]
    assert operators.reshape_from_tensor_shape(x, mt.tensor([3, -1])).shape == (3, 2)
    with pytest.raises(NotImplementedError, match="jit.optimize_for_mobile: there are no compiled programs"):
        importlib.import_module("mortice.utils.mobile_optimizer").optimize_for_mobile(nn.Linear(1, 1))
    assert mt.jit._unwrap_optional(x) is x
    with pytest.raises(AssertionError, match="Unwrapping null optional"):
        mt.jit._unwrap_optional(None)


def test_losses_of_others_ask_functional_for_numbers_of_reductions():
    assert [nn.functional._Reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]


def test_the_first_tensor_of_what_a_replica_gets():
    from mortice.nn.parallel.parallel_apply import get_a_var

    x = mt.ones(1)
    assert get_a_var((1, [{"a": x}, mt.ones(2)])) is x and get_a_var({"a": 1}) is get_a_var(2) is None


@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_a_convolution_of_a_programs_own_is_made_from_the_base_of_all(mode):
    from mortice.nn.modules.conv import _ConvNd, _pair

    class Own(_ConvNd):
        def __init__(self, i, o, size, padding):
            super().__init__(i, o, _pair(size), _pair(1), _pair(padding), _pair(1), False, _pair(0), 2, True, mode)

        def forward(self, x):
            if self.padding_mode != "zeros":
                x = nn.functional.pad(x, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return nn.functional.conv2d(x, self.weight, self.bias, self.stride, 0 if mode != "zeros" else self.padding, 1, self.groups)

    own, layer = Own(2, 4, 3, (1, 2)), nn.Conv2d(2, 4, 3, padding=(1, 2), groups=2, padding_mode=mode)
    own.load_state_dict(layer.state_dict())
    x = mt.randn(1, 2, 5, 5)
    assert mt.allclose(own(x), layer(x)) and repr(own) == repr(layer).replace("Conv2d", "Own") and own.nd == 2
    assert own._reversed_padding_repeated_twice == layer._reversed_padding_repeated_twice == (2, 2, 1, 1) and not own.transposed


def test_layers_of_a_programs_own_call_what_their_bases_have():
    from mortice.nn.modules.batchnorm import _NormBase

    class Norm(_NormBase):
        def forward(self, x):
            return nn.functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, True, self.momentum, self.eps)

    class Table(nn.Embedding):
        def reset_parameters(self):
            nn.init.ones_(self.weight)
            self._fill_padding_idx_with_zero()

    own, layer, x = Norm(3), nn.BatchNorm1d(3), mt.randn(4, 3)
    assert mt.allclose(own(x), layer(x)) and mt.allclose(own.running_var, layer.running_var)
    assert list(own.state_dict()) == list(layer.state_dict()) and Norm(3, affine=False, bias=False).weight is None
    assert Table(3, 2, padding_idx=1).weight.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_layers_are_copied_as_transformers_do_and_a_cpu_has_no_stream_for_copies():
    layer = nn.Linear(2, 2)
    clones = importlib.import_module("mortice.nn.modules.transformer")._get_clones(layer, 3)
    assert len(clones) == 3 and layer not in list(clones) and clones[2].weight.equal(layer.weight)
    stream = importlib.import_module("mortice.nn.parallel._functions")._get_stream
    assert stream(mt.device("cpu")) is stream("cpu") is None


def test_the_index_that_a_device_names():
    index = importlib.import_module("mortice.cuda._utils")._get_device_index
    assert [index(d) for d in (1, "cuda:1", mt.device("cuda", 2))] == [1, 1, 2] and index("cpu", allow_cpu=True) == -1
    assert index(None, optional=True) is index("cuda", True) is None
    for nothing in ("cuda", None, 1.5):
        with pytest.raises(ValueError, match=f"Expected a torch.device with a specified index or an integer, but got:{nothing}"):
            index(nothing)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        index("cpu")


def test_no_tensor_is_spread_over_processes():
    from mortice.distributed.tensor import DTensor

    assert not isinstance(mt.ones(1), DTensor)


def test_fills_have_their_inner_names():
    x = nn.Parameter(mt.empty(50))
    assert nn.init._no_grad_uniform_(x, 2.0, 3.0) is x and 2 <= x.min() and x.max() <= 3
    assert nn.init._no_grad_trunc_normal_(x, 0.0, 1.0, -0.5, 0.5).abs().max() <= 0.5
    assert nn.init._no_grad_normal_(x, 9.0, 0.1).min() > 5
    assert nn.init._no_grad_fill_(x, 4.0).sum() == 200 and nn.init._no_grad_zero_(x).sum() == 0


def test_the_key_of_extra_state_has_its_name():
    from mortice.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys

    class Counting(nn.Module):
        def get_extra_state(self):
            return 3

        def set_extra_state(self, state):
            self.count = state

    net = nn.Sequential(Counting())
    assert list(net.state_dict()) == [f"0.{_EXTRA_STATE_KEY_SUFFIX}"]
    assert net.load_state_dict(net.state_dict()) == _IncompatibleKeys([], []) and net[0].count == 3


# ---- a course splits row numbers with random_split, and indexes a tensor with the parts ----


class Rows:
    def __init__(self, *rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def test_any_sequence_is_an_index_as_a_list_is():
    x = mt.arange(120).reshape(40, 3)
    part = mt.utils.data.Subset(mt.arange(40), list(range(35)))
    assert mt.equal(x[part], x[:35])
    assert x[Rows(0, 2)].tolist() == [[0, 1, 2], [6, 7, 8]] and x[1, Rows(0, 2)].tolist() == [3, 5]
    with pytest.warns(UserWarning, match="is deprecated"):  # less than 32 items, and not all of them numbers
        assert x[Rows(mt.tensor(1), mt.tensor(2))] == 5 and x[Rows(slice(0, 2), 1)].tolist() == [1, 4]
    with pytest.raises(IndexError, match="valid indices"):
        x[{0: 1}]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([[1, 2], [3]], "length 2 at dim 1 .got 1"), ([[[1, 2]], [[1, 2, 3]]], "length 2 at dim 2 .got 3"),
        ([memoryview(b"abcd"), memoryview(b"ab")], "length 4 at dim 1 .got 2"),
        ([memoryview(b"abcd"), ()], "length 4 at dim 1 .got 0"), ([[1], 2], "length 1 at dim 1 .got a number"),
    ],
)  # fmt: skip
def test_ragged_data_is_refused_with_the_dim(data, text):
    with pytest.raises(ValueError, match=f"expected sequence of {text}"):
        mt.tensor(data)


# ---- optimizers beside PyTorch's import its line search and its older vmap ----


def test_line_search_and_vmap_by_their_private_names():
    from mortice._vmap_internals import _vmap

    from mortice.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    def bowl(x, t, d):
        return ((x + t * d) ** 2).sum(), 2 * (x + t * d)

    x = mt.tensor([3.0, -4.0])
    loss, g = bowl(x, 0, x)
    found, slope, t, calls = _strong_wolfe(bowl, x, 1.0, -g, loss, g, -g.dot(g))
    assert t == 0.5 and found == 0 and slope.tolist() == [0, 0] and calls == 2
    assert _cubic_interpolate(*map(mt.tensor, (0.0, 5.0, -3.0, 1.0, 4.0, 2.0)), bounds=(0.3, 0.4)) == 0.4
    w = mt.tensor([1.0, 2.0], requires_grad=True)
    y = w**3
    rows = _vmap(lambda v: mt.autograd.grad(y, w, v, retain_graph=True)[0])(mt.eye(2))
    assert rows.tolist() == [[3, 0], [0, 12]]


# ---- a library of optimisation maps the directions of all outputs at once, with the parts of functional.jacobian ----


def test_the_parts_of_a_jacobian_are_as_private_as_in_pytorch():
    from mortice.autograd.functional import (
        _as_tuple,
        _construct_standard_basis_for,
        _grad_postprocess,
        _tuple_postprocess,
    )

    several, outs = _as_tuple((mt.ones(2), mt.ones(1, dtype=mt.float64)), "outputs", "jacobian")
    first, second = _construct_standard_basis_for(outs, (2, 1))
    assert first.tolist() == [[1, 0], [0, 1], [0, 0]] and second.tolist() == [[0], [0], [1]]
    assert several and second.dtype == mt.float64
    with pytest.raises(TypeError, match="The outputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        _as_tuple([mt.ones(2)], "outputs", "jacobian")
    x = mt.ones(2, requires_grad=True)
    assert not _grad_postprocess((x,), create_graph=False)[0].requires_grad and _grad_postprocess((x,), True)[0] is x
    rows = ((1, 2), (3, 4))
    found = [_tuple_postprocess(rows, (outer, inner)) for outer in (True, False) for inner in (True, False)]
    assert found == [rows, (1, 3), (1, 2), 1]
    assert _tuple_postprocess((5,), False) == 5 and _tuple_postprocess((5,), True) == (5,)


# ---- programs ask what PyTorch was built with by names that it keeps with a warning, and for its progress bar ----


def test_old_names_say_what_there_is(monkeypatch):
    for name, there in (("has_cuda", mt.backends.cuda.is_built()), ("has_mps", mt.backends.mps.is_built())):
        with pytest.warns(UserWarning, match=f"'{name}' is deprecated, please use 'torch.backends"):
            assert getattr(mt, name) is there
    bar = object()
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=bar))
    assert mt.utils.model_zoo.tqdm is bar and not hasattr(mt.hub, "no_such_name")
    mt._C._set_grad_enabled(False)
    try:
        assert not mt.is_grad_enabled()
    finally:
        mt._C._set_grad_enabled(True)
    assert mt.is_grad_enabled()


def test_limits_of_pythons_types_are_those_of_their_dtypes():
    assert mt.finfo(float) == mt.finfo(mt.float64) == mt.finfo(complex) and mt.iinfo(int) == mt.iinfo(mt.int64)
    for ask, given in ((mt.finfo, int), (mt.finfo, [float]), (mt.iinfo, float), (mt.iinfo, bool), (mt.iinfo, "int64")):
        with pytest.raises(TypeError, match=f"{ask.__name__}: expected"):
            ask(given)


# ---- what tensordict and torchrl ask of PyTorch's inner modules ----


def test_tensors_and_modules_as_containers_ask_of_them():
    x = mt.ones(3)
    assert mt._C._is_alias_of(x, x[1:]) and not mt._C._is_alias_of(x, x.clone())
    assert isinstance(x.untyped_storage(), mt.StorageBase) and not isinstance(x, mt._C._distributed_rpc.PyRRef)
    assert not mt._C._is_torch_function_mode_enabled()
    with mt.overrides.TorchFunctionMode():
        assert mt._C._is_torch_function_mode_enabled()
    inner = importlib.import_module("mortice._utils")
    assert inner._get_device_module("cpu") is mt.cpu and inner._get_available_device_type() in (None, "cuda")

    swap = importlib.import_module("mortice.nn.utils._named_member_accessor").swap_tensor
    layer, weight = mt.nn.Linear(1, 1), mt.ones(1, 1)
    before = swap(layer, "weight", weight)
    assert before.requires_grad and swap(layer, "weight", before) is weight and layer.weight is before
    assert swap(layer, "extra", x, allow_missing=True) is None and swap(layer, "extra", None, allow_missing=True) is x
    with pytest.raises(AttributeError, match="swap_tensor: Linear has no attribute 'extra'"):
        swap(layer, "extra", x)

    spec = pytree.tree_flatten(({"a": 1}, [2, 3]))[1]
    assert pytree._broadcast_to_and_flatten((0, [1, None]), spec) == [0, 1, None]
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0] and pytree._broadcast_to_and_flatten([0], spec) is None
    assert pytree.is_structseq_instance(mt.max(x, 0)) and not pytree.is_structseq_instance((1,))


def test_a_decorator_enters_a_clone_for_each_call():
    inner = importlib.import_module("mortice.utils._contextlib")

    class Noted(inner._DecoratorContextManager):
        def __init__(self, notes):
            self.notes = notes

        def clone(self):
            return Noted(self.notes)

        def __enter__(self):
            self.notes.append(self)

        def __exit__(self, *error):
            self.notes.append(self)

    notes = []
    assert Noted(notes)(lambda: 1)() == 1 and len(set(notes)) == 1

    @Noted(notes)
    def twice():
        yield from (1, 2)

    assert list(twice()) == [1, 2] and len(notes) % 2 == 0


def test_a_transform_of_ones_own_may_keep_its_inverse():
    class Own(mt.distributions.ExpTransform):
        @property
        def inv(self):
            assert self._inv is None
            return super().inv

    assert Own().inv(mt.ones(1)) == 0
    kept = pickle.loads(pickle.dumps(mt.distributions.ExpTransform().inv))
    assert kept(mt.ones(1)) == 0


def test_a_worker_seeds_numpy_as_pytorch_does():
    worker = importlib.import_module("mortice.utils.data._utils.worker")
    assert worker._generate_state(2**33 + 5, 1) == [4081438446, 2562806936, 523543908, 3117774235]
