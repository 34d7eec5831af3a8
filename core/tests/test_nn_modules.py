"""Module and containers: registration, state, hooks, copies, repr. Values beside PyTorch are in test_nn_oracle.py."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import textwrap
from collections import OrderedDict

import numpy as np
import pytest

import mortice as mt
from mortice import nn


def small() -> nn.Sequential:
    return nn.Sequential(OrderedDict(first=nn.Linear(2, 3), norm=nn.BatchNorm1d(3), act=nn.ReLU()))


def test_assignment_registers_parameters_buffers_and_modules():
    m = nn.Module()
    m.w, m.inner, m.seen = nn.Parameter(mt.zeros(2)), nn.Linear(1, 1, bias=False), nn.Buffer(mt.ones(1))
    m.plain = mt.ones(3)
    assert [n for n, _ in m.named_parameters()] == ["w", "inner.weight"]
    assert [n for n, _ in m.named_buffers()] == ["seen"]
    assert list(m.state_dict()) == ["w", "seen", "inner.weight"]


def test_members_that_are_made_when_asked_for_are_each_told():
    m = nn.Sequential(*(nn.Linear(1, 1) for _ in range(8)))

    def doubles(module):  # one that is freed at once, whose id the next may get
        return [("double", module.weight * 2)] if isinstance(module, nn.Linear) else []

    assert [n for n, _ in m._named_members(doubles)] == [f"{i}.double" for i in range(8)]


def test_a_list_made_by_a_library_finds_its_modules_by_their_names():
    class Listed(nn.ModuleList):
        def __getitem__(self, index):
            return self._modules[self._get_abs_string_index(index)]

    m = Listed([nn.ReLU(), nn.Tanh()])
    assert isinstance(m[-1], nn.Tanh) and isinstance(m[0], nn.ReLU)
    with pytest.raises(IndexError, match="index 2 is out of range"):
        m[2]


def test_state_dict_shares_memory_and_names_follow_torch():
    net = small()
    state = net.state_dict()
    assert list(state) == [
        "first.weight", "first.bias", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
        "norm.num_batches_tracked",
    ]  # fmt: skip
    state["first.bias"].fill_(7)
    assert net.first.bias.tolist() == [7.0, 7.0, 7.0]
    assert not state["first.bias"].requires_grad


def test_loading_lists_every_mismatch():
    net = small()
    state = dict(net.state_dict())
    del state["first.bias"]
    state["first.weight"] = mt.zeros(4, 2)
    state["extra.w"] = mt.zeros(1)
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    assert str(error.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "first.bias". \n'
        '\tUnexpected key(s) in state_dict: "extra.w". \n'
        "\tsize mismatch for first.weight: copying a param with shape mortice.Size([4, 2]) from checkpoint, the "
        "shape in "
        "current model is mortice.Size([3, 2])."
    )


def test_loading_without_strict_reports_what_did_not_match():
    net = small()
    state = dict(net.state_dict())
    del state["first.bias"]
    state["extra.w"] = mt.zeros(1)
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["first.bias"] and found.unexpected_keys == ["extra.w"]
    assert repr(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"


def test_loading_keeps_the_parameters_themselves():
    net, other = small(), small()
    before = net.first.weight
    net.load_state_dict(other.state_dict())
    assert net.first.weight is before and before.tolist() == other.first.weight.tolist()


def test_conversion_keeps_the_parameters_themselves():
    net = small()
    before = list(net.parameters())
    assert net.double() is net
    assert all(p is q for p, q in zip(before, net.parameters()))
    assert net.first.weight.dtype is mt.float64 and net.norm.num_batches_tracked.dtype is mt.int64
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        net.to(mt.int32)


def test_a_copy_has_memory_of_its_own():
    net = small()
    twin = copy.deepcopy(net)
    twin.first.weight.data.fill_(5)
    assert 5 not in net.first.weight.flatten().tolist()
    assert isinstance(twin.first.weight, nn.Parameter) and twin.first.weight.requires_grad


def test_a_module_that_lacks_tables_as_in_old_files_is_pickled_and_has_them_again():
    layer = nn.Linear(2, 1)
    del layer._forward_pre_hooks, layer._state_dict_hooks, layer._load_state_dict_pre_hooks, layer._non_persistent_buffers_set
    again = pickle.loads(pickle.dumps(layer))
    assert again(mt.ones(2)).shape == (1,) and again.weight.equal(layer.weight) and "_forward_pre_hooks" in vars(again)


def test_pickling_keeps_values_types_and_names():
    net = small()
    twin = pickle.loads(pickle.dumps(net))
    assert repr(twin) == repr(net) and isinstance(twin.first.weight, nn.Parameter)
    assert twin.first.weight.tolist() == net.first.weight.tolist()


def test_the_state_that_a_class_takes_from_is_a_copy():
    class Without(nn.Sequential):
        def __getstate__(self):
            state = super().__getstate__()
            del state["handle"]
            return state

    net = Without(nn.ReLU())
    net.handle = open
    for _ in range(2):
        assert not hasattr(copy.deepcopy(net), "handle") and net.handle is open


def test_sizes_may_be_integers_of_numpy():
    n = np.int64(3)
    assert nn.LayerNorm(n).normalized_shape == (3,) and nn.RMSNorm(n)(mt.ones(2, 3)).shape == (2, 3)
    for pool in (nn.MaxPool2d(n), nn.AvgPool2d(n), nn.MaxPool2d(3, n)):
        assert pool(mt.ones(1, 3, 3)).tolist() == [[[1]]]


def test_sizes_of_padding_are_repeated_from_the_last():
    assert nn.modules.utils._reverse_repeat_tuple((1, 2, 3), 2) == (3, 3, 2, 2, 1, 1)


def test_forgetting_super_init_says_so():
    class Forgot(nn.Module):
        def __init__(self):
            self.inner = nn.ReLU()

    with pytest.raises(AttributeError, match="cannot assign module"):
        Forgot()

    class ForgotQuietly(nn.Module):
        def __init__(self):
            self.n = 1

    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) first"):
        ForgotQuietly()(1)


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("weight", 3, TypeError, "cannot assign 'int' as parameter 'weight'"),
        ("weight", "x", TypeError, "cannot assign 'str' as parameter 'weight'"),
    ],
)
def test_a_parameter_is_not_replaced_by_something_else(name, value, error, text):
    with pytest.raises(error, match=text):
        setattr(nn.Linear(1, 1), name, value)


def test_repr_is_nested_with_settings():
    assert repr(nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.Sequential(nn.ReLU(True)))) == (
        "Sequential(\n"
        "  (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), bias=False)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU(inplace=True)\n"
        "  )\n"
        ")"
    )


def test_module_list_writes_equal_modules_on_one_line():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    assert repr(layers) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n  (2): ReLU()\n)"
    )


def test_apply_visits_children_first():
    seen = []
    net = small()
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "BatchNorm1d", "ReLU", "Sequential"]


def test_train_and_eval_are_recursive_and_return_self():
    net = small()
    assert net.eval() is net and not net.norm.training
    assert net.train() is net and net.norm.training
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        net.train(1)


def test_shared_parameters_count_once():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    b.weight = a.weight
    assert len(list(nn.Sequential(a, b).parameters())) == 3


# ---- hooks ----


def test_forward_hooks_run_in_order_and_may_replace():
    layer, log = nn.Linear(2, 2), []
    handle = layer.register_forward_pre_hook(lambda m, args: (args[0] * 0,))
    layer.register_forward_hook(lambda m, args, out: log.append(("second", out.tolist())))
    layer.register_forward_hook(lambda m, args, out: out * 0 + 1, prepend=True)
    assert layer(mt.ones(1, 2)).tolist() == [[1.0, 1.0]]
    assert log == [("second", [[1.0, 1.0]])]
    handle.remove()
    assert len(layer._forward_pre_hooks) == 0


def test_hooks_with_kwargs_see_and_change_them():
    class Scale(nn.Module):
        def forward(self, x, *, by=1):
            return x * by

    scale = Scale()
    scale.register_forward_pre_hook(lambda m, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    assert scale(mt.ones(1), by=2).tolist() == [3.0]


def test_a_hook_that_is_always_called_sees_failures():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("no")

    seen, fails = [], Fails()
    fails.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(KeyError):
        fails(1)
    assert seen == [None]


def test_full_backward_hooks_see_and_change_gradients():
    layer, log = nn.Linear(2, 3), []
    layer.register_full_backward_pre_hook(lambda m, grads: log.append(tuple(grads[0].shape)))
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    x = mt.ones(4, 2, requires_grad=True)
    layer(x).sum().backward()
    assert log == [(4, 3)]
    expected = layer.weight.detach().sum(0) * 10
    assert mt.allclose(x.grad, expected.expand(4, 2))


def test_backward_hooks_run_when_no_input_wants_a_gradient():
    layer, log = nn.Linear(2, 3), []
    layer.register_full_backward_hook(lambda m, gi, go: log.append((gi, tuple(go[0].shape))))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(mt.ones(4, 2)).sum().backward()
    assert log == [((None,), (4, 3))]


def test_state_dict_hooks_run_around_saving_and_loading():
    layer, log = nn.Linear(2, 2), []
    layer.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update({prefix + "more": 1}))
    layer.register_load_state_dict_pre_hook(lambda m, state, prefix, *rest: state.pop("more"))
    layer.register_load_state_dict_post_hook(lambda m, keys: log.append(keys.missing_keys))
    state = layer.state_dict()
    assert state["more"] == 1
    layer.load_state_dict(state)
    assert log == [[]]


def lay_by(module, state, prefix, *rest):
    module.seen = [*state]


def test_libraries_call_the_hooks_before_loading_themselves():
    layer = nn.Linear(2, 2)
    layer.register_load_state_dict_pre_hook(lay_by)
    layer._register_load_state_dict_pre_hook(lambda state, prefix, *rest: state.update({prefix + "more": 1}))
    file = io.BytesIO()
    for made in (layer, copy.deepcopy(layer)):
        for hook in made._load_state_dict_pre_hooks.values():
            hook({"a": 1}, "", {}, True, [], [], [])
        assert made.seen == ["a"]
        del made.seen
    alone = nn.Linear(2, 2)
    alone.register_load_state_dict_pre_hook(lay_by)
    mt.save(alone, file)
    for made in (mt.load(io.BytesIO(file.getvalue()), weights_only=False), pickle.loads(pickle.dumps(alone))):
        made.load_state_dict(made.state_dict())
        assert made.seen == ["weight", "bias"] and not hasattr(alone, "seen")


def test_global_hooks_see_every_module_until_removed():
    from mortice.nn.hooks import register_module_forward_hook

    log = []
    with register_module_forward_hook(lambda m, args, out: log.append(type(m).__name__)):
        small()(mt.ones(2, 2))
    small()(mt.ones(2, 2))
    assert log == ["Linear", "BatchNorm1d", "ReLU", "Sequential"]


def test_global_hooks_are_read_and_replaced_where_pytorch_keeps_them():
    from mortice.nn.modules import module

    log, x = [], mt.ones(2, 2)
    handle = module.register_module_forward_hook(lambda m, args, kwargs, out: log.append(1), with_kwargs=True)
    assert list(module._global_forward_hooks) == list(module._global_forward_hooks_with_kwargs) == [handle.id]
    assert not module._global_forward_hooks_always_called and not module._global_backward_hooks
    module._global_forward_hooks = {}
    nn.Linear(2, 2)(x)
    assert log == [] and not module._global_forward_hooks
    handle.remove()
    module._global_forward_pre_hooks = {3: lambda m, args: log.append(2)}
    nn.Linear(2, 2)(x)
    module._global_forward_pre_hooks = {}
    nn.Linear(2, 2)(x)
    assert log == [2]
    with pytest.raises(AttributeError, match="no attribute '_global_tea'"):
        module._global_tea  # noqa: B018


def test_what_hooks_asked_for_is_read_as_in_pytorch():
    layer = nn.Linear(2, 2)
    handle = layer.register_forward_hook(lambda m, args, kwargs, out: None, with_kwargs=True, always_call=True)
    pre = layer.register_forward_pre_hook(lambda m, args, kwargs: None, with_kwargs=True)
    assert handle.id in layer._forward_hooks_with_kwargs and handle.id in layer._forward_hooks_always_called
    assert pre.id in layer._forward_pre_hooks_with_kwargs
    handle.remove()
    assert not layer._forward_hooks_with_kwargs and not layer._forward_hooks_always_called


# ---- initialisation, gradients of all parameters ----


def test_initialisers_fill_in_place_outside_the_graph():
    w = nn.Parameter(mt.empty(6, 4))
    for fill in (nn.init.xavier_uniform_, nn.init.kaiming_normal_, nn.init.orthogonal_, nn.init.trunc_normal_, nn.init.zeros_):
        assert fill(w) is w and w.grad_fn is None
    nn.init.orthogonal_(w, gain=2)
    assert mt.allclose(w.detach().t() @ w.detach(), mt.eye(4) * 4, atol=1e-5)
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_normal_(mt.zeros(3))


def test_the_default_weights_lie_within_torch_bounds():
    layer = nn.Conv2d(3, 64, 3)
    bound = (3 * 9) ** -0.5
    for p in layer.parameters():
        assert 0.9 * bound < p.abs().max().item() <= bound


def test_clipping_scales_all_gradients_to_the_norm():
    net = nn.Linear(3, 2)
    (net(mt.ones(1, 3)) * 100).sum().backward()
    before = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    assert float(before) == pytest.approx(100 * 8**0.5)
    assert float(nn.utils.get_total_norm([p.grad for p in net.parameters()])) == pytest.approx(1, rel=1e-5)
    nn.utils.clip_grad_value_(net.parameters(), 0.1)
    assert float(net.weight.grad.abs().max()) == pytest.approx(0.1)


def test_parameters_go_to_a_vector_and_back():
    net = nn.Linear(3, 2)
    assert tuple(nn.utils.parameters_to_vector(net.parameters()).shape) == (8,)
    nn.utils.vector_to_parameters(mt.arange(8.0), net.parameters())
    assert net.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and net.bias.tolist() == [6, 7]


def test_load_state_dict_leaves_no_reference_cycle():
    # In a process of its own, where nobody else leaves any meanwhile.
    code = """
        import gc
        from mortice import nn
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        state = net.state_dict()
        net.load_state_dict(state)  # what is loaded at its first use may leave some
        gc.collect()
        net.load_state_dict(state)
        print(gc.collect())
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert out.stdout == "0\n", out.stderr


def test_to_refuses_copy_since_a_module_changes_in_place():
    with pytest.raises(RuntimeError, match=r"\.to\(\) does not accept copy argument"):
        small().to("cpu", copy=True)


def test_the_prefix_of_a_parallel_wrapper_can_be_taken_off_a_state_dict():
    state = nn.DataParallel(small()).state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == list(small().state_dict())
    assert dict(state._metadata) == dict(small().state_dict()._metadata)
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    small().load_state_dict(state)
    plain = {"module.a": 1, "b": 2}
    nn.modules.utils.consume_prefix_in_state_dict_if_present(plain, "module.")
    assert plain == {"a": 1, "b": 2}


def test_a_module_may_call_an_attribute_persistent():
    layer = nn.Linear(1, 1)
    layer._persistent = {"a": False}
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_an_op_that_is_an_attribute_of_a_module_is_called_without_the_module():
    class Block(nn.Module):
        act, pool, scale, norm = mt.tanh, mt.softmax, 2, staticmethod(mt.exp)

        def doubled(self, x):
            return self.scale * self.act(x)

    class Wide(Block):
        pool = mt.cumsum

    x = mt.zeros(2)
    assert Block().doubled(x).tolist() == [0, 0] and Block.act is mt.tanh
    assert Block().pool(x, 0).tolist() == [0.5, 0.5] and Wide().pool(x + 1, 0).tolist() == [1, 2]
    assert Block().norm(x).tolist() == [1, 1]


def test_a_buffer_is_printed_as_the_tensor_that_it_is():
    assert repr(nn.Buffer(mt.ones(2))) == repr(mt.ones(2))


def test_unflatten_takes_a_dim_that_is_numpy_s():
    assert nn.Unflatten(np.int64(1), (2, 2))(mt.ones(3, 4)).shape == (3, 2, 2)
    with pytest.raises(TypeError, match="unflattened_size must be tuple of ints, but found element of type tuple at pos 0"):
        nn.Unflatten("features", (("height", 2), ("width", 2)))
