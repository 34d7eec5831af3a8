"""Dispatch modes, which are told of every operator below autograd, in PyTorch's names and arguments."""

from __future__ import annotations

import contextlib
import copy
import importlib
import pickle
import threading
import weakref
from typing import Any

import pytest

import mortice as mt
from mortice.nn import functional as F
from mortice.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, is_traceable_wrapper_subclass
from mortice.utils._pytree import tree_map

aten = mt.ops.aten


class Log(TorchDispatchMode):
    """Writes down what it is told, and computes it."""

    def __init__(self, name: str = "", log: list[str] | None = None) -> None:
        super().__init__()
        self.name, self.log = name, [] if log is None else log

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.log.append(f"{self.name}{func}")
        return func(*args, **(kwargs or {}))


def test_a_mode_is_told_of_operators_with_their_arguments() -> None:
    told = []

    class Told(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told.append((func, types, args, kwargs))
            return func(*args, **(kwargs or {}))

    x, y = mt.ones(2, 3), mt.ones(2, 3)
    with Told():
        z = x + y
        z.sum(1, keepdim=True)
        F.linear(x, y)
        mt.zeros(2, 3, dtype=mt.int64)
        x.mul_(2)
        x[0, 1:] = 5.0
    funcs = [t[0] for t in told]
    assert funcs == [
        aten.add.Tensor, aten.sum.dim_IntList, aten.t.default, aten.mm.default, aten.zeros.default, aten.mul_.Tensor,
        aten.select.int, aten.slice.Tensor, aten.fill_.Tensor,
    ]  # fmt: skip
    assert told[0][1] == () and told[0][2][0] is x and told[0][2][1] is y
    assert told[1][2][0] is z and told[1][2][1:] == ([1], True)
    assert told[4][2] == ([2, 3],) and told[4][3] == {"dtype": mt.int64}
    assert x.tolist() == [[2, 5, 5], [2, 2, 2]]


@pytest.mark.parametrize("flag", [False, True])
def test_options_reach_the_operators_whatever_their_default_is(flag: bool) -> None:
    x, i = mt.tensor([[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]]), mt.tensor([[2, 0], [1, 1]])
    calls = [
        lambda: x.topk(2, largest=flag)[0], lambda: x.topk(2, 0, flag)[1], lambda: x.sort(descending=flag)[0],
        lambda: x.sort(0, descending=flag)[1], lambda: x.argsort(descending=flag), lambda: x.argmax(1, keepdim=flag),
        lambda: x.argmin(0, flag), lambda: x.amax(1, flag), lambda: x.amin((0, 1), keepdim=flag), lambda: x.max(1, flag)[0],
        lambda: x.min(0, keepdim=flag)[1], lambda: x.sum(0, flag), lambda: x.mean(1, keepdim=flag), lambda: x.prod(1, flag),
        lambda: (x > 2).all(1, keepdim=flag), lambda: (x > 2).any(0, flag), lambda: x.var(1, unbiased=flag),
        lambda: x.std(0, correction=int(flag), keepdim=flag), lambda: x.gather(1, i, sparse_grad=flag), lambda: x.tril(int(flag)),
        lambda: x.norm(dim=1, keepdim=flag), lambda: x.logsumexp(1, flag), lambda: x.median(1, flag)[0], lambda: x.kthvalue(2, 1, flag)[0],
        lambda: mt.searchsorted(x.sort()[0], x, right=flag), lambda: mt.bucketize(x, mt.arange(9.0), right=flag),
        lambda: mt.cumsum(x, int(flag)), lambda: x.unique(return_counts=flag)[0], lambda: mt.triu(x, -flag),
    ]  # fmt: skip
    for number, call in enumerate(calls):
        plain = call()
        with Log():
            made = call()
        assert (made.tolist(), made.dtype) == (plain.tolist(), plain.dtype), number


def test_modes_nest_and_end() -> None:
    log: list[str] = []
    with Log("outer ", log):
        with Log("inner ", log):
            mt.ones(2) + 1
        with _disable_current_modes():
            mt.ones(2) + 1
    mt.ones(2) + 1
    ones, add = "aten.ones.default", "aten.add.Tensor"
    assert log == [f"inner {ones}", f"outer {ones}", f"inner {add}", f"outer {add}"]
    from mortice.modes import modes

    assert not modes.dispatch and not modes.rerouted
    with pytest.raises(ZeroDivisionError), Log("", log):
        raise ZeroDivisionError
    with Log() as last:
        pass
    mt.ones(2) * 2
    assert not last.log and len(log) == 4


def test_what_a_mode_returns_is_recorded_by_the_operators_own_formula() -> None:
    class Double(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            assert not isinstance(out, mt.Tensor) or func is aten.mul_.Tensor or not out.requires_grad
            return out * 2 if func is aten.mul.Tensor else out

    x = mt.tensor([1.0, 2.0], requires_grad=True)
    with Double():
        y = x * 3
        values, indices = y.max(0)
    assert y.tolist() == [6, 12] and y.grad_fn.name() == "MulBackward0" and indices == 1
    (y.sum() + values).backward()
    assert x.grad.tolist() == [3, 6]

    class Same(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return args[0]

    x.grad = None
    with Same():
        z = x.exp()
    assert z is not x and x.is_leaf and z.grad_fn.name() == "ExpBackward0"

    class Refused(TorchDispatchMode):
        pass

    with Refused(), pytest.raises(NotImplementedError, match="Refused: give it a method __torch_dispatch__"):
        x + 1


def test_the_same_tensors_come_out_as_the_mode_has_seen() -> None:
    seen: dict[int, Any] = {}

    class Memory(TorchDispatchMode):
        live = peak = 0

        def track(self, t: Any) -> None:
            if isinstance(t, mt.Tensor) and id(t) not in seen:
                seen[id(t)] = weakref.finalize(t, self.gone, id(t), t.nbytes)
                self.live += t.nbytes
                self.peak = max(self.peak, self.live)

        def gone(self, key: int, size: int) -> None:
            self.live -= size
            del seen[key]

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            tree_map(self.track, out)
            return out

    w = mt.ones(10, 10, requires_grad=True)
    with Memory() as memory:
        a = mt.ones(10, 10) * 2
        b = (a @ w).relu()
        values, indices = b.topk(3)
        assert {id(a), id(b), id(values), id(indices)} <= seen.keys()
        c = mt.ones(10, 10) + 1
        before = memory.live
        del c
        assert memory.live == before - 400 < memory.peak


def test_nests_are_mapped_without_cycles() -> None:
    leaf = mt.ones(2)
    known = weakref.ref(leaf)
    assert tree_map(lambda t: None, [leaf]) == [None] and tree_map(lambda t: t, leaf) is leaf
    del leaf
    assert known() is None  # what a memory tracker maps over dies when its program drops it


def test_backward_is_told_of_and_gives_the_same_gradients() -> None:
    def step() -> tuple[Any, ...]:
        mt.manual_seed(0)
        net = mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.LayerNorm(8), mt.nn.GELU(), mt.nn.Dropout(0.5), mt.nn.Linear(8, 3))
        loss = F.cross_entropy(net(mt.randn(5, 4)), mt.arange(5) % 3)
        loss.backward()
        optimizer = mt.optim.AdamW(net.parameters())
        optimizer.step()
        return loss, *[p.grad for p in net.parameters()], *net.parameters()

    plain = step()
    with Log() as log:
        told = step()
    for a, b in zip(plain, told):
        mt.testing.assert_close(a, b)
    backward = log.log[log.log.index("aten.nll_loss_forward.default") + 1 :]
    assert "aten.addmm.default" in log.log and "aten.mm.default" in backward and "aten.native_layer_norm.default" in log.log
    x = mt.ones(2, requires_grad=True)
    with Log() as log:
        (g,) = mt.autograd.grad((x * x).sum(), x)
        (second,) = mt.autograd.grad(mt.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum(), x)
    assert g.tolist() == [2, 2] and second.tolist() == [6, 6] and "aten.mul.Tensor" in log.log


def test_writes_and_views_are_recorded_under_a_mode() -> None:
    def run() -> tuple[Any, Any]:
        x = mt.arange(6.0).reshape(2, 3).requires_grad_()
        y = x * 2
        y[0] *= 3
        y[1, 1:].add_(x[0, 1:])
        y.t()[0].mul_(x[:, 0])
        y[mt.tensor([1])] = x[mt.tensor([0])] ** 2
        y.relu_().sum().backward()
        return y.detach(), x.grad

    plain = run()
    with Log() as log:
        told = run()
    assert [t.tolist() for t in told] == [t.tolist() for t in plain] and "aten.index_put_.default" in log.log
    with Log():
        x = mt.arange(4.0)
        v = x[1:3]
        v.fill_(7)
        assert x.tolist() == [0, 7, 7, 3] and v._base is x
        w = mt.ones(2, requires_grad=True)
        v.copy_(w)  # a view made while recording may be written by what is recorded
        x.sum().backward()
        with mt.no_grad():
            hidden = x.detach()[1:]
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
            hidden.copy_(w[:1])
    grad = w.grad
    with Log():
        (w * 2).sum().backward()
    assert w.grad is grad and grad.tolist() == [3, 3]
    leaf = mt.ones(2, requires_grad=True)
    with Log() as log:
        copied = leaf.detach().contiguous()[None].expand(1, 2).reshape(2)
        F.relu(leaf).sum().backward()
        leaf.grad.zero_()
        seen = mt.ones(2).view(mt.int32)
    assert not leaf.grad.requires_grad and copied.tolist() == [1, 1] and "aten.le.Scalar" in log.log
    assert seen.dtype is mt.int32 and seen.tolist() == [0x3F800000] * 2
    table = mt.nn.Embedding(3, 2, sparse=True)
    with Log():
        table(mt.tensor([1])).sum().backward()
    assert table.weight.grad.is_sparse
    with Log(), pytest.raises(RuntimeError, match="2 elements cannot be converted"):
        w.detach().item()


def test_a_mode_is_told_within_transforms_and_beside_other_modes() -> None:
    x = mt.arange(6.0).reshape(2, 3)
    with Log() as log:
        assert mt.vmap(lambda row: (row * 2).sum())(x).tolist() == [6, 24]
        assert mt.func.grad(lambda t: (t**2).sum())(x).tolist() == (2 * x).tolist()
        with mt.inference_mode():
            assert x.exp().is_inference()
    assert {"aten.mul.Tensor", "aten.sum.default", "aten.exp.default"} <= {*log.log}
    from mortice.overrides import BaseTorchFunctionMode
    from mortice.utils.flop_counter import FlopCounterMode

    with Log() as log, FlopCounterMode(display=False) as flops, BaseTorchFunctionMode():
        mt.zeros(2, 3) @ x.t()
    assert log.log == ["aten.zeros.default", "aten.t.default", "aten.mm.default"] and flops.get_total_flops() == 24
    if x.device.type == "cpu":
        with Log() as log, mt.autocast("cpu"):  # which casts above the operators
            assert F.linear(x, x).dtype is mt.bfloat16
        assert log.log == ["aten._to_copy.default"] * 2 + ["aten.t.default", "aten.mm.default"]


def test_a_mode_can_be_left_for_a_block() -> None:
    from mortice.utils import _python_dispatch as found

    with Log() as log:
        with found._pop_mode_temporarily() as left:
            assert left is log and not found.is_in_torch_dispatch_mode()
            mt.ones(2).exp()
        assert found.is_in_torch_dispatch_mode() and not log.log
        mt.ones(2)
    assert log.log == ["aten.ones.default"] and not found.is_in_torch_dispatch_mode()


def test_other_threads_are_not_told_of() -> None:
    found: list[Any] = []
    with Log() as log:
        thread = threading.Thread(target=lambda: found.append((mt.ones(2) + 1).tolist()))
        thread.start()
        thread.join()
    assert found == [[2, 2]] and not log.log


def test_operators_have_names_and_schemas() -> None:
    f, default = aten.add.Tensor, aten.exp.default
    assert (f.name(), default.name(), str(f), f.namespace, f._overloadname) == (
        "aten::add.Tensor", "aten::exp", "aten.add.Tensor", "aten", "Tensor",
    )  # fmt: skip
    assert f.overloadpacket is f._overloadpacket is aten.add and not hasattr(f, "_op_dk") and not hasattr(f, "default")
    assert (f._schema.name, f._schema.overload_name) == ("aten::add", "Tensor")
    assert aten.add_.Tensor._schema.is_mutable and not f._schema.is_mutable
    assert copy.deepcopy({f: 1}) == {f: 1} == pickle.loads(pickle.dumps({f: 1})) and f(mt.ones(1), 1) == 2
    x = mt.tensor([[1.0, 3.0]])
    assert aten._softmax.default(x, 1, False).tolist() == F.softmax(x, 1).tolist()
    made = aten.native_layer_norm.default(x, [2], None, None, 1e-5)
    assert len(made) == 3 and made[0].tolist() == F.layer_norm(x, [2]).tolist()
    assert aten._to_copy.default(x, dtype=mt.int64).dtype is mt.int64
    assert aten.linalg_vector_norm.default(x, 1) == 4 and aten.special_expm1.default(x * 0).tolist() == [[0, 0]]
    assert aten.unfold.default(x, 1, 2, 1).shape == (1, 1, 2) and aten.alias.default(x)._base is x
    assert aten.im2col.default(x[None, None], [1, 2], [1, 1], [0, 0], [1, 1]).tolist() == [[[1], [3]]]
    assert aten.threshold_backward.default(x, x, 1).tolist() == [[0, 3]] and aten.tanh_backward.default(x, x).tolist() == [[0, -24]]
    with pytest.raises(NotImplementedError, match="got 'linalg_nothing', which has none here"):
        aten.linalg_nothing.default(x)
    assert aten.rsub.Scalar(x, 1).tolist() == [[0, -2]] and not is_traceable_wrapper_subclass(x)


POLICIES = [
    lambda lib, policy: lambda *args, **kwargs: policy.MUST_SAVE, lambda lib, policy: lambda *args, **kwargs: policy.PREFER_RECOMPUTE,
    lambda lib, policy: lambda context, op, *args, **kwargs: "mm" in str(op), lambda lib, policy: [lib.ops.aten.mm.default],
]  # fmt: skip
REGIONS = [
    lambda lib, f, x, w, b: lib.sigmoid(x @ w @ w) * 2, lambda lib, f, x, w, b: f.linear(f.relu(f.linear(x, w, b)), w).sin(),
    lambda lib, f, x, w, b: f.layer_norm(x @ w, (4,), b) + x, lambda lib, f, x, w, b: f.gelu(x[None].matmul(w) + b).tanh().exp(),
    lambda lib, f, x, w, b: f.scaled_dot_product_attention(x[None, None], (x @ w)[None, None], x[None, None]).sin(),
    lambda lib, f, x, w, b: (x.t() @ x).max(1).values * 2, lambda lib, f, x, w, b: (x @ w).chunk(2, 1)[1].sin() * x.unbind(1)[1][:, None],
    lambda lib, f, x, w, b: lib.addmm(b, x, w).masked_fill(x > 1.5, 0.0)[b[:2].long()].sin(),
]  # fmt: skip


def _checkpointed(package: str, region: int, policy: int) -> Any:
    lib, inside = importlib.import_module(package), importlib.import_module(f"{package}.utils.checkpoint")
    x, w, b = [t.requires_grad_() for t in (lib.arange(12.0).reshape(3, 4) / 10, lib.arange(16.0).reshape(4, 4) / 7 - 1, lib.ones(4))]
    given, asked = POLICIES[policy](lib, inside.CheckpointPolicy), []

    def policy_of(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append((str(op), context.is_recompute, len(args), isinstance(context.op_output, lib.Tensor)))
        return given(context, op, *args, **kwargs)

    contexts = lambda: inside.create_selective_checkpoint_contexts(given if isinstance(given, list) else policy_of)  # noqa: E731
    run = lambda *a: REGIONS[region](lib, lib.nn.functional, *a)  # noqa: E731
    out = inside.checkpoint(run, x, w, b, use_reentrant=False, context_fn=contexts).sum()
    first = [*asked]
    out.backward(retain_graph=True)
    try:
        out.backward()
        again = "ran"
    except RuntimeError as error:
        again = str(error)
    assert asked == first  # in the first run only
    return asked, again, [None if t.grad is None else t.grad.tolist() for t in (x, w, b)]


@pytest.mark.oracle
@pytest.mark.parametrize("region", range(len(REGIONS)))
@pytest.mark.parametrize("policy", range(len(POLICIES)))
def test_a_checkpoint_asks_its_policy_and_keeps_what_that_says_as_in_pytorch(region: int, policy: int) -> None:
    pytest.importorskip("torch")
    ours, theirs = [_checkpointed(package, region, policy) for package in ("mortice", "torch")]
    assert ours[:2] == theirs[:2]
    for a, b in zip(ours[2], theirs[2]):
        assert (a is None) == (b is None) and (a is None or mt.allclose(mt.tensor(a), mt.tensor(b), rtol=1e-4, atol=1e-4))


def test_a_checkpoint_keeps_results_by_policy_and_computes_the_rest_again() -> None:
    from mortice.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    x, w = mt.ones(2, 3, requires_grad=True), mt.ones(3, 3, requires_grad=True)
    counts = {}
    for keeps in ([], [aten.mm.default], [aten.mm.default, aten.sin.default]):
        out = checkpoint(
            lambda x: ((x @ w).sin() @ w).cos(), x, use_reentrant=False,
            context_fn=lambda keeps=keeps: create_selective_checkpoint_contexts(keeps),
        )  # fmt: skip
        with Log() as log:
            out.sum().backward()
        counts[len(keeps)] = [sum(name == str(op) for name in log.log) for op in (aten.mm.default, aten.sin.default)]
    assert counts == {0: [6, 2], 1: [4, 2], 2: [4, 1]}


def test_a_checkpoint_refuses_what_is_no_policy_and_what_was_written_since() -> None:
    from mortice.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    with pytest.raises(ValueError, match="aten.mm of type .*specific OpOverload, e.g. torch.ops.aten.mm to torch.ops.aten.mm.default"):
        create_selective_checkpoint_contexts([aten.mm])
    with pytest.raises(TypeError, match="policy_fn_or_list must be either a function or a list of ops"):
        create_selective_checkpoint_contexts(3)

    def writing(x: Any) -> Any:
        y = x @ x
        z = y.sin()
        y.detach().add_(1)
        return z.cos()

    for mutable in (False, True):
        x, contexts = mt.eye(2, requires_grad=True), lambda m=mutable: create_selective_checkpoint_contexts([aten.mm.default], m)
        out = checkpoint(writing, x, use_reentrant=False, context_fn=contexts).sum()
        with contextlib.nullcontext() if mutable else pytest.raises(RuntimeError, match="has been mutated"):
            out.backward()
    steps = []

    def other(x: Any) -> Any:
        steps.append(1)
        return x.sin().exp() if len(steps) == 1 else x.sin().sin().exp()

    contexts = lambda: create_selective_checkpoint_contexts([aten.mm.default])  # noqa: E731
    out = checkpoint(other, mt.ones(2, requires_grad=True), use_reentrant=False, early_stop=False, context_fn=contexts)
    with pytest.raises(RuntimeError, match="aten.sin.default invocation index 1 encountered during backward but not found in storage"):
        out.sum().backward()


CASES = """\
F.scaled_dot_product_attention(z4, z4, z4)
F.scaled_dot_product_attention(z4, z4, z4, is_causal=True)
F.scaled_dot_product_attention(z4, z4, z4, b.new_zeros(3, 3), scale=0.3)
z3 @ w.t()
z4 @ z4.new_ones(2, 2, 4, 5)
x + y
x + 1
1 + x
x - 1
1 - x
x * 2
x / 2
x // 2
x ** 2
x ** y
2 ** x
x % 2
-x
x == y
x > 1
i + 1.5
i + x[0]
x.exp()
x.relu()
x.abs()
x.sum()
x.sum(1)
x.sum(1, keepdim=True)
x.mean()
x.max(1)
x.amax(1)
x.argmax()
x.argmax(1)
x.prod()
x.cumsum(0)
x.any()
x.clone()
x.detach()
x.contiguous()
x.t()
x.reshape(4,3)
x.t().reshape(-1)
x.flatten()
x.unsqueeze(0)
x[None].squeeze(0)
x[0]
x[0, 1]
x[:, 1]
x[1:]
x[:, 1:3]
x[i[:2]]
x[x > 3]
x[..., None]
x.select(0, 1)
x.narrow(0, 0, 2)
x.split(2)
x.unbind()
torch.where(x > 1, x, y)
x.masked_fill(x > 1, 0)
x.index_select(0, i[:2])
x.to(torch.float64)
x.long()
x.item() if False else x[0,0].item()
x.clamp(0, 1)
x.clamp(min=0)
x @ y.t()
torch.mm(x, y.t())
x @ y[0]
y[0] @ y[0]
torch.bmm(z3, z3.transpose(1,2))
F.linear(x, w)
F.linear(x, w, b)
F.linear(z3, w, b)
torch.addmm(b, x, w.t())
F.log_softmax(x, 1)
F.silu(x)
F.sigmoid(x)
F.layer_norm(x, (4,))
F.layer_norm(x, (4,), y[0], y[0])
F.conv2d(im, k)
F.conv2d(im, k, padding=1, stride=2)
F.dropout(x, 0.5, False)
torch.zeros(2, 3)
torch.ones(2)
torch.empty(2)
torch.full((2,), 1.0)
torch.arange(3)
torch.rand(2)
torch.randn(2)
torch.zeros_like(x)
torch.ones_like(x)
torch.rand_like(x)
x.new_zeros(2)
x.add_(1)
x.mul_(y)
x.zero_()
x.fill_(1)
x.copy_(y)
x.relu_()
x.sub_(y, alpha=2)
x.uniform_()
F.cross_entropy(x, i[:3])
F.group_norm(im, 2)
F.group_norm(im, 2, b[:2], b[:2])
F.max_pool2d(im, 2)
F.max_pool2d(im, 3, stride=1, padding=1, ceil_mode=True)
F.max_pool2d(im, 2, return_indices=True)
F.avg_pool2d(im, 2)
F.avg_pool2d(im, 3, 2, 1)
F.adaptive_avg_pool2d(im, 2)
F.adaptive_max_pool2d(im, 2)
F.pad(x, (1, 2))
F.pad(x, (1, 2, 3, 4), value=2.0)
F.pad(im, (1, 1, 2, 2), mode='reflect')
F.pad(z3, (1, 2), mode='replicate')
x.scatter(1, x.long() % 4, y)
torch.argsort(x)
torch.argsort(x, dim=0, descending=True)
torch.sort(x)
torch.topk(x, 2)
torch.topk(x, 2, dim=0)
torch.kthvalue(x, 2)
torch.mode(x)
torch.median(x)
torch.median(x, 1)
torch.nanmedian(x, 1, True)
torch.square(x)
torch.norm(x)
torch.linalg.vector_norm(x)
torch.linalg.vector_norm(x, 1.0, [0], True)
F.glu(x)
F.unfold(im, 2)
F.fold(z3.new_ones(1, 4, 9), (4, 4), 2)
F.grid_sample(im, z4.new_zeros(1, 2, 2, 2), align_corners=False)
F.conv_transpose2d(im, w.new_ones(2, 3, 3, 3), stride=2, output_padding=1)
torch.linalg.svd(x)
torch.linalg.eigh(x.t() @ x)
torch.linalg.qr(x)
torch.div(x, 2, rounding_mode='floor')
torch.div(x, y, rounding_mode='trunc')
torch.searchsorted(b, x)
torch.searchsorted(b, x, right=True)
torch.count_nonzero(x)
torch.cdist(x, y)
"""


def _logged(package: str) -> dict[str, str]:
    lib: Any = importlib.import_module(package)
    base = importlib.import_module(f"{package}.utils._python_dispatch").TorchDispatchMode
    log: list[str] = []

    def show(a: Any) -> str:
        if isinstance(a, lib.Tensor):
            return f"T{list(a.shape)}"
        if isinstance(a, (list, tuple)):
            return "[" + ",".join(map(show, a)) + "]"
        return str(a).replace(package, "torch")

    class Shown(base):  # type: ignore[misc, valid-type]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            # PyTorch's parser adds these to what makes tensors.
            named = [f"{k}={show(v)}" for k, v in (kwargs or {}).items() if k not in ("device", "pin_memory")]
            log.append(f"{func}({','.join([*map(show, args), *named])})")
            return func(*args, **(kwargs or {}))

    found = {}
    for case in CASES.splitlines():
        scope = {
            "torch": lib, "F": lib.nn.functional, "x": lib.arange(12.0).reshape(3, 4), "y": lib.ones(3, 4), "i": lib.arange(4),
            "w": lib.ones(5, 4), "b": lib.ones(5), "z3": lib.ones(2, 3, 4), "z4": lib.ones(2, 2, 3, 4), "im": lib.ones(1, 2, 8, 8),
            "k": lib.ones(3, 2, 3, 3),
        }  # fmt: skip
        log.clear()
        with Shown():
            eval(case, scope)
        found[case] = "; ".join(log)
    return found


@pytest.mark.oracle
def test_operators_are_those_that_pytorch_tells_of() -> None:
    pytest.importorskip("torch")
    assert _logged("mortice") == _logged("torch")


def test_every_op_gives_under_a_mode_what_it_gives_without() -> None:
    record = pytest.importorskip("mortice_conformance.record", reason="the kit, whose samples these are, is not installed")
    from mortice_conformance.catalog import representative
    from mortice_conformance.subject import Subject

    subject, log, tried = Subject(mt.default_backend()), Log(), 0
    for sample in record.load_samples().values():
        dtype = representative(sample, subject.available)
        for case in sample.cases[:3] if dtype else ():
            found = []
            for block in (contextlib.nullcontext(), log):
                mt.manual_seed(0)
                tensors = subject.operands(sample, case, dtype)[1]
                with block:
                    out = sample.apply(tensors, case.attrs)
                found.append([out] if isinstance(out, mt.Tensor) else [t for t in out if isinstance(t, mt.Tensor)])
            for a, b in zip(*found, strict=True):
                mt.testing.assert_close(b, a, rtol=1e-4, atol=1e-5, equal_nan=True, msg=f"{sample.id} {case}: {a} {b}")
            tried += 1
    assert tried > 700 and sum(name.startswith("mortice.") for name in {*log.log}) < 120
