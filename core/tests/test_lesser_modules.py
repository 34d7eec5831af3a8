"""Modules that scripts import now and then: library, utils.benchmark, mps, xpu, cuda.nvtx, flex_attention."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

import pytest

import mortice as mt
from mortice.nn.attention.flex_attention import (
    AuxRequest,
    _mask_mod_signature,
    _score_mod_signature,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
)
from mortice.utils import benchmark
from mortice.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


def test_a_custom_op_has_the_gradient_that_is_registered():
    @mt.library.custom_op("tests::scaled_sin", mutates_args=())
    def scaled_sin(x: mt.Tensor, k: float = 2.0) -> mt.Tensor:
        return mt.sin(x) * k

    x = mt.tensor([0.0, 1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        scaled_sin(x).sum().backward()

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    scaled_sin.register_autograd(lambda ctx, g: (g * ctx.saved_tensors[0].cos() * ctx.k * 10, None), setup_context=setup)
    assert mt.library.register_fake("tests::scaled_sin", lambda x, k=2.0: mt.empty_like(x)) is not None
    y = mt.ops.tests.scaled_sin(x, k=3.0)
    y.sum().backward()
    mt.testing.assert_close(y, 3 * x.sin())
    assert scaled_sin._opoverload(x).equal(scaled_sin(x))
    mt.testing.assert_close(x.grad, 30 * x.detach().cos())  # the registered one, which is ten times the true one
    with pytest.raises(ValueError, match="namespace::name"):
        mt.library.custom_op("bare", mutates_args=())(lambda x: x)


def test_an_op_that_may_launch_kernels_of_triton_is_one_like_others():
    @mt.library.triton_op("tests::launched", mutates_args=())
    def launched(x: mt.Tensor) -> mt.Tensor:
        return x * 2

    assert mt.ops.tests.launched(mt.ones(2)).tolist() == [2, 2] == launched(mt.ones(2)).tolist()


def test_a_custom_op_may_write_and_have_keywords_and_several_results():
    @mt.library.custom_op("tests::add_to", mutates_args={"out"})
    def add_to(x: mt.Tensor, out: mt.Tensor, *, alpha: float = 1.0) -> None:
        out.add_(x, alpha=alpha)

    out = mt.zeros(2)
    assert add_to(mt.ones(2), out, alpha=2.0) is None and out.tolist() == [2, 2]

    @mt.library.custom_op("tests::both", mutates_args=())
    def both(x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        return x * 2, x * 3

    mt.library.register_autograd("tests::both", lambda ctx, a, b: 2 * a + 3 * b)
    x = mt.ones(2, requires_grad=True)
    (both(x)[0] + both(x)[1]).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_an_operator_takes_and_returns_lists_and_tells_its_schema():
    @mt.library.custom_op("tests::mix", mutates_args=())
    def mix(xs: list[mt.Tensor], by: float = 2.0) -> list[mt.Tensor]:
        return [x * by for x in xs]

    def setup(ctx, inputs, output):
        ctx.by = inputs[1]
        assert type(inputs[0]) is type(output) is list and ctx.needs_input_grad == ([True, False], False)

    mix.register_autograd(lambda ctx, grads: ([g * ctx.by for g in grads], None), setup_context=setup)
    x = mt.ones(2, requires_grad=True)
    first, second = mix([x, mt.ones(3)], 5.0)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [5, 5] and second.tolist() == [5, 5, 5]

    def told(
        x: mt.Tensor, y: list[mt.Tensor], n: int | None = None, low: int | float | bool | None = None, *, s: str = "a,b",
        d: mt.dtype = mt.float32,
    ) -> tuple[mt.Tensor, mt.Tensor]: ...  # fmt: skip

    want = (
        '(Tensor x, Tensor(a1!)[] y, SymInt? n=None, Scalar? low=None, *, str s="a,b", ScalarType d=float32)'
        " -> (Tensor, Tensor)"
    )
    assert mt.library.infer_schema(told, mutates_args={"y"}) == want
    with pytest.raises(ValueError, match="{'z'} in mutates_args were not found"):
        mt.library.infer_schema(told, mutates_args={"z"})
    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        mt.library.custom_op("tests::bare", mutates_args=())(lambda x: x)


def test_an_operator_says_what_it_writes_and_returns_nothing_that_it_was_given():
    @mt.library.custom_op("tests::fill_seven", mutates_args={"x"})
    def fill_seven(x: mt.Tensor) -> None:
        x.data[0] = 7.0  # which the count of writes does not see

    x = mt.zeros(2)
    version = x._version
    fill_seven(x)
    assert x.tolist() == [7, 0] and x._version > version
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        fill_seven.register_autograd(lambda ctx, g: g)
    for name, same in (("itself", lambda x: x), ("a_view", lambda x: x.view(-1))):
        op = mt.library.custom_op(f"tests::{name}", same, mutates_args=(), schema="(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="may not alias any inputs"):
            op(x)


def test_a_custom_op_has_the_batch_rule_that_is_registered():
    seen = []

    @mt.library.custom_op("tests::times", mutates_args=())
    def times(x: mt.Tensor, y: mt.Tensor, *, by: float = 1.0) -> mt.Tensor:
        return mt.tensor([[a * by for a in row] for row in (x * y).tolist()] if x.dim() > 1 else [a * by for a in (x * y).tolist()])

    @times.register_vmap
    def _(info, in_dims, x, y, *, by):
        seen.append((info.batch_size, in_dims))
        return times(x.movedim(in_dims[0], 0), y, by=by), 0

    made = mt.vmap(lambda x, y: times(x, y, by=2.0), (1, None))(mt.arange(6.0).reshape(3, 2), mt.ones(3))
    assert made.tolist() == [[0, 4, 8], [2, 6, 10]] and seen == [(2, (0, None))]
    doubled = times.register_kernel(mt.ones(1).device.type)(lambda x, y, by: x * y * by * 100)
    assert doubled(mt.ones(1), mt.ones(1), 1.0).tolist() == [100] == times(mt.ones(1), mt.ones(1)).tolist()
    with times.set_kernel_enabled(mt.ones(1).device.type, False):
        assert times(mt.ones(1), mt.ones(1)).tolist() == [1]


def test_a_library_defines_operators_by_schema():
    made = mt.library.Library("tests_lib", "DEF")
    assert made.define("scaled.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)") == "scaled.out"
    made.define("scaled(Tensor x, int[2] k=[2, 3], str s='a,b', *, float by=1.0, int z) -> Tensor")
    made.impl("scaled", lambda x, k, s, *, by, z: x * sum(k) * by * z, mt.ones(1).device.type.upper())
    made.impl("scaled.out", lambda x, *, out: out.copy_(x), "CompositeExplicitAutograd")
    op, x = mt.ops.tests_lib.scaled, mt.ones(1, requires_grad=True)
    op(x, z=2).backward()  # without a formula the gradient is that of what the function does
    assert x.grad.tolist() == [10] and op.default(x, z=1).item() == 5
    out = mt.zeros(1)
    assert op(x.detach(), out=out) is not None and out.tolist() == [1] == op.out(x.detach(), out=out).tolist()

    def setup(ctx, inputs, keyword_only_inputs, output):
        assert inputs[1:] == ([2, 3], "a,b") and keyword_only_inputs.keys() == {"by", "z"}

    mt.library.register_autograd("tests_lib::scaled", lambda ctx, g: g * 8, setup_context=setup, lib=made)
    assert mt.autograd.grad(op(x, z=2), x)[0].tolist() == [8]
    mt.library.register_fake("tests_lib::scaled", lambda x, *a, **kw: mt.empty_like(x))
    assert op(mt.ones(3, device="meta"), z=1).shape == (3,)
    mt.library.define("tests_lib::empty", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="expected tensors of a device that has a kernel"):
        mt.ops.tests_lib.empty(x)
    mt.library.impl("tests_lib::empty", mt.ones(1).device.type)(lambda x: x + 1)
    assert mt.ops.tests_lib.empty(x).tolist() == [2]
    with pytest.raises(RuntimeError, match="with the same name and overload name"):
        mt.library.define("tests_lib::empty", "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="missing a required argument: 'x'"):
        mt.ops.tests_lib.empty()
    with pytest.raises(AttributeError):
        _ = op.nothing


def test_a_timer_measures_and_a_table_compares():
    found = []
    for name in ("mul", "add"):
        timer = benchmark.Timer(f"torch.{name}(x, x)", globals={"x": mt.ones(2)}, label="ops", sub_label="2", description=name)
        found.append(timer.blocked_autorange(min_run_time=0.005))
    assert timer.timeit(10).number_per_run == 10 and timer.adaptive_autorange(max_run_time=0.05).times
    assert found[0].median > 0 and found[0].iqr >= 0 and found[0].label == "ops"
    table = str(benchmark.Compare(found))
    assert "[" in table and "mul" in table and "1 threads: " in table and "Times are in" in table


def test_a_timed_statement_may_be_indented_and_its_report_says_what_ran_first():
    setup = """
        x = torch.ones(2)
        y = 2 * x
    """
    once = benchmark.Timer("x * y", setup, sub_label="two").timeit(10)
    assert repr(once).splitlines()[1:5] == ["x * y: two", "setup:", "  x = torch.ones(2)", "  y = 2 * x"]
    assert repr(once).endswith("\n  1 measurement, 10 runs , 1 thread")
    spec = benchmark.TaskSpec("a\nb", "pass", description="d")
    found = repr(benchmark.Measurement(2, [2.0, 4.0, 6.0, 8.0], spec)).splitlines()
    assert found[1:6] == ["stmt:", "  a", "  b", "", "d"]
    report = ["  Median: 2.50 s", "  IQR:    1.50 s (1.75 to 3.25)", "  4 measurements, 2 runs per measurement, 1 thread"]
    assert found[6:] == report


def test_only_python_is_timed():
    assert benchmark.Timer("pass", language=benchmark.Language.PYTHON).timeit(1).number_per_run == 1
    with pytest.raises(ValueError, match="statements in C\\+\\+ are not compiled here"):
        benchmark.Timer("pass", language=benchmark.Language.CPP)


@pytest.mark.parametrize(("name", "error"), [("mps", RuntimeError), ("xpu", AssertionError)])
def test_absent_accelerators_say_so(name, error):
    module = getattr(mt, name)
    assert not module.is_available() and module.device_count() == 0 and module.manual_seed(0) is None
    assert not hasattr(module, "Event") and not hasattr(module, "__wrapped__")
    with pytest.raises(error, match="no backend offers this device"):
        module.synchronize()


def test_nvtx_refuses():
    for use in (lambda: mt.cuda.nvtx.range_push("a"), lambda: mt.cuda.nvtx.range("a").__enter__()):
        with pytest.raises(RuntimeError, match="NVTX functions not installed"):
            use()


def test_selective_checkpointing_computes_the_same():
    layer, x = mt.nn.Linear(2, 2), mt.ones(1, 2, requires_grad=True)
    contexts = lambda: create_selective_checkpoint_contexts(lambda *a, **k: CheckpointPolicy.MUST_SAVE)  # noqa: E731
    checkpoint(layer, x, use_reentrant=False, context_fn=contexts).sum().backward()
    mt.testing.assert_close(x.grad, layer.weight.detach().sum(0, keepdim=True))


def test_programs_that_checkpoint_themselves_find_the_steps():
    from mortice.utils.checkpoint import check_backward_validity, detach_variable

    x = mt.ones(2, requires_grad=True)
    made, number, plain = detach_variable((x * 2, 3, mt.ones(1)))
    assert made.is_leaf and made.requires_grad and made.tolist() == [2, 2] and number == 3 and not plain.requires_grad
    check_backward_validity((1, x))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        check_backward_validity((1, x.detach()))
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        detach_variable([x])


def test_dictionaries_tell_tensors_apart_by_identity_and_let_go_of_them():
    from mortice.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

    x, same = mt.ones(2), mt.ones(2)
    seen, ref = WeakTensorKeyDictionary({x: 1}), TensorWeakRef(x)
    seen[same] = 2
    assert ref() is x and (seen[x], seen.get(same), len(seen)) == (1, 2, 2) and mt.ones(2) not in seen and 3 not in seen
    assert seen == seen.copy() == (seen | {}) and seen.setdefault(x, 5) == 1 and copy.deepcopy(seen)[same] == 2
    del x
    assert ref() is None and [k is same for k in seen] == [True] and TensorWeakRef(same) == TensorWeakRef(same) != ref
    assert seen.pop(same) == 2 and seen.pop(same, 7) == 7 and not seen
    with pytest.raises(KeyError):
        del seen[same]
    with pytest.raises(TypeError, match="cannot create weak reference"):
        seen[3] = 1


def test_a_device_has_the_module_of_its_type():
    assert mt.get_device_module("cpu") is mt.cpu and mt.get_device_module(mt.device("cpu", 0)) is mt.cpu
    with pytest.raises(RuntimeError, match="Device 'meta' does not have a corresponding module"):
        mt.get_device_module("meta")
    with pytest.raises(RuntimeError, match="Invalid value of device '3'"):
        mt.get_device_module(3)


def test_flex_attention_has_gradients_and_groups_and_says_what_it_needs():
    q, k = mt.rand(1, 2, 3, 4, dtype=mt.float64, requires_grad=True), mt.rand(1, 1, 3, 4, dtype=mt.float64)
    causal = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 3, 3)
    expected = mt.nn.functional.scaled_dot_product_attention(q, k.expand(1, 2, 3, 4), k.expand(1, 2, 3, 4), is_causal=True)
    found = flex_attention(q, k, k, block_mask=causal, enable_gqa=True)
    mt.testing.assert_close(found, expected)
    for a, b in zip(mt.autograd.grad(found.sum(), q), mt.autograd.grad(expected.sum(), q)):
        mt.testing.assert_close(a, b)
    with pytest.raises(ValueError, match="enable_gqa=True"):
        flex_attention(q, k, k)
    with pytest.raises(ValueError, match="Create it anew"):
        flex_attention(mt.rand(1, 1, 5, 4), mt.rand(1, 1, 5, 4), mt.rand(1, 1, 5, 4), block_mask=causal)
    assert flex_attention(q, q, q, return_aux=AuxRequest(lse=True))[1].lse.shape == (1, 2, 3)
    assert _mask_mod_signature == _score_mod_signature == Callable[..., Any]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:flex_attention called without", "ignore:return_lse is deprecated")
def test_flex_attention_gives_what_pytorch_gives():
    torch = pytest.importorskip("torch")
    theirs = importlib.import_module("torch.nn.attention.flex_attention")
    data = [mt.randn(2, 4, 6, 8).tolist() for _ in range(3)]

    def answers(library, here):
        flex, block_mask = here["flex_attention"], here["create_block_mask"]
        slopes, document = library.tensor([0.5, 0.25, 0.125, 0.0625]), library.tensor([0, 0, 1, 1, 1, 2])
        same = lambda b, h, q, kv: document[q] == document[kv]  # noqa: E731
        causal = lambda b, h, q, kv: q >= kv  # noqa: E731
        later = lambda b, h, q, kv: q < kv  # noqa: E731
        given = [library.tensor(d) for d in data]
        made = [flex(*given, score_mod=lambda s, b, h, q, kv: s + (kv - q) * slopes[h], scale=0.3)]
        for mod in (causal, later, here["and_masks"](causal, same), here["or_masks"](later, same)):
            mask = block_mask(mod, None, None, 6, 6, device="cpu", BLOCK_SIZE=2)
            made += [flex(*given, block_mask=mask), mask.to_dense(), here["create_mask"](mod, 1, 1, 6, 6, device="cpu").int()]
        made += flex(*given, score_mod=lambda s, b, h, q, kv: library.where(q >= kv, s, -float("inf")), return_lse=True)
        return [library.Tensor.tolist(m.float()) for m in made]

    ours = {"flex_attention": flex_attention, "create_block_mask": create_block_mask, "create_mask": create_mask}
    found = answers(mt, {**ours, "and_masks": and_masks, "or_masks": or_masks})
    for a, b in zip(found, answers(torch, vars(theirs))):
        mt.testing.assert_close(mt.tensor(a), mt.tensor(b))


def _told_of_blocks(library, create, mod, sizes, block):
    mask = create(mod, *sizes, device="cpu", BLOCK_SIZE=block)
    told = [str(mask), mask.to_string(grid_size=2, limit=1), mask.numel(), mask.sparsity(), mask.BLOCK_SIZE, tuple(mask.shape)]
    for name in ("kv", "full_kv"):
        count, places = getattr(mask, f"{name}_num_blocks"), getattr(mask, f"{name}_indices")
        told += [count.tolist(), str(count.dtype).split(".")[-1]]
        told += [r[:n] for n, r in zip(count.flatten().tolist(), places.flatten(0, 2).tolist())]
    for index in (0, (-1,), (0, 0), (slice(None), slice(None), library.tensor([0]))):
        part = mask[index]
        told += [tuple(part.shape), part.kv_num_blocks.tolist(), part.to_dense().tolist()]
    with pytest.raises(RuntimeError):
        part.mask_mod(0, 0, 0, 0)
    return told


@pytest.mark.oracle
@pytest.mark.parametrize(("sizes", "block"), [((1, 1, 8, 8), 2), ((None, None, 5, 5), 128), ((2, 3, 24, 30), (4, 5)), ((3, 2, 99, 70), 4)])
def test_block_masks_list_and_draw_their_blocks_as_pytorchs(sizes, block):
    torch = pytest.importorskip("torch")
    theirs = importlib.import_module("torch.nn.attention.flex_attention").create_block_mask
    mod = lambda b, h, q, kv: (q - kv < 9 + b) & (q >= kv - h)  # noqa: E731
    assert _told_of_blocks(mt, create_block_mask, mod, sizes, block) == _told_of_blocks(torch, theirs, mod, sizes, block)


def test_a_block_mask_lists_its_blocks():
    mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4, BLOCK_SIZE=2)
    assert mask.kv_num_blocks.tolist() == [[[1, 1]]] and mask.full_kv_num_blocks.tolist() == [[[0, 1]]]
    assert mask.sparsity() == 25 and str(mask) == "BlockMask(shape=(1, 1, 4, 4), sparsity=25.00%, \n(0, 0)\n██  \n████\n)"
    assert mask[:, :, 1].kv_num_blocks.tolist() == [[[1]]]


@pytest.mark.parametrize("lengths", [(3, 5), (4, 4), (2, 7)])
@pytest.mark.parametrize("corner", ["upper_left", "lower_right"])
def test_causal_biases_are_the_masks_of_their_corner(corner, lengths):
    from mortice.nn.attention import bias
    from mortice.nn.functional import scaled_dot_product_attention as attend

    rows, columns = lengths
    q, k, v = mt.randn(1, 2, rows, 8), mt.randn(1, 2, columns, 8), mt.randn(1, 2, columns, 8)
    shift = columns - rows if corner == "lower_right" else 0
    mask = mt.tensor([[j <= i + shift for j in range(columns)] for i in range(rows)])
    own = getattr(bias, f"causal_{corner}")(rows, columns)
    assert own.shape == (rows, columns) and own.dtype is mt.bool and isinstance(own, bias.CausalBias)
    assert repr(own) == repr(mask.cpu()) and type(own._materialize()) is mt.Tensor
    assert mt.equal(attend(q, k, v, own), attend(q, k, v, mask))
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        attend(q, k, v, own, is_causal=True)


def test_causal_biases_say_when_queries_see_nothing():
    from mortice.nn.attention import bias

    with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs"):
        bias.causal_lower_right(5, 3)
    with pytest.raises(AssertionError, match="expected two sizes"):
        bias.causal_upper_left(3)


def test_opcheck_finds_what_an_operator_does_beside_its_schema() -> None:
    def made(fn: Any, fake: Any = torch_like) -> Any:
        op = mt.library.custom_op(f"checked::{fn.__name__}", mutates_args=(), schema="(Tensor x) -> Tensor")(fn)
        op.register_fake(fake)
        return op

    def doubled(x: Any) -> Any:
        return x * 2

    def writing(x: Any) -> Any:
        return x.mul_(2).clone()

    def same(x: Any) -> Any:
        return x

    def longer(x: Any) -> Any:
        return mt.cat([x, x])

    x = mt.ones(2, requires_grad=True)
    good = made(doubled)
    assert set(mt.library.opcheck(good, (x.detach(),)).values()) == {"SUCCESS"}
    assert list(mt.library.opcheck(good, (x,), test_utils="test_schema")) == ["test_schema"]
    with pytest.raises(mt.library.OpCheckError, match="test_aot_dispatch_dynamic failed with .* no autograd formula"):
        mt.library.opcheck(good, (x,))
    good.register_autograd(lambda ctx, g: g * 2)
    assert len(mt.library.opcheck(good, (x,))) == 4
    with pytest.raises(mt.library.OpCheckError, match="test_schema failed with Argument x is not defined as mutable but was mutated"):
        mt.library.opcheck(made(writing), (x.detach(),))
    with pytest.raises(mt.library.OpCheckError, match="test_schema failed with .* must not also be an input"):
        mt.library.opcheck(made(same), (x.detach(),))
    found = mt.library.opcheck(made(longer), (x.detach(),), raise_exception=False)
    assert found["test_schema"] == "SUCCESS" and "of shape" in str(found["test_faketensor"])
    with pytest.raises(mt.library.OpCheckError, match="no fake impl registered"):
        mt.library.opcheck(mt.library.custom_op("checked::bare", mutates_args=(), schema="(Tensor x) -> Tensor")(doubled), (x.detach(),))


def test_what_writes_and_returns_nothing_needs_no_shape() -> None:
    seen = []

    def into(x: Any, out: Any) -> None:
        seen.append(x.device.type)
        out.copy_(x * 2)

    op = mt.library.custom_op("checked::into", mutates_args=("out",), schema="(Tensor x, Tensor(a!) out) -> ()")(into)
    assert set(mt.library.opcheck(op, (mt.ones(2), mt.zeros(2))).values()) == {"SUCCESS"}
    assert op(mt.ones(2, device="meta"), mt.ones(2, device="meta")) is None and set(seen) == {mt.ones(2).device.type}


def torch_like(x: Any) -> Any:
    return mt.empty_like(x)
