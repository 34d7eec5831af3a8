"""Convolution and attention by cuDNN against the core's bodies on the same device: on a GPU, or on the stand-in through `test_emulated`."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mortice as mt
from mortice import cuda
from mortice.backends import cuda as ways
from mortice.backends import cudnn
from mortice.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not cuda.is_available(), reason="no GPU here; test_emulated runs these on the stand-in"),
    pytest.mark.skipif(not cudnn.is_available(), reason="nvidia-cudnn-frontend or libcudnn is not installed"),
]
HALVES = [mt.float16, mt.bfloat16]
FLOATS = [*HALVES, mt.float32, mt.float64]
ULPS = {mt.float16: 2e-3, mt.bfloat16: 1.6e-2, mt.float32: 1e-5, mt.float64: 1e-12}


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Without TF32, whose digits are few."""
    with cudnn.flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=False):
        yield


def plans() -> dict[Any, Any]:
    """Return what this thread keeps for the first device."""
    from mortice_cuda_cupy.cudnn import library

    place = library.here(0)
    assert place is not None
    return place.plans


def drawn(*shape: int, dtype: Any = mt.float32, seed: int = 0, grad: bool = True) -> Any:
    """Return normal numbers on the device, the same ones each time."""
    x = mt.randn(*shape, generator=mt.Generator().manual_seed(seed)).to("cuda").to(dtype)
    return x.requires_grad_() if grad else x


def both(run: Callable[..., Any], *inputs: Any) -> tuple[list[Any], list[Any]]:
    """Return the result and the gradients, computed by cuDNN and by the core's bodies."""
    found = []
    for enabled in (True, False):
        with cudnn.flags(enabled=enabled, allow_tf32=cudnn.allow_tf32, deterministic=cudnn.deterministic):
            for x in inputs:
                x.grad = None
            out = run(*inputs)
            weights = drawn(*out.shape, dtype=out.dtype, seed=7, grad=False)
            (out * weights).sum().backward()
            found.append([out.detach(), *[x.grad for x in inputs if x.requires_grad]])
    return found[0], found[1]


def agree(found: list[Any], wanted: list[Any]) -> None:
    for x, y in zip(found, wanted, strict=True):
        assert x.shape == y.shape and x.dtype is y.dtype and x.device == y.device
        x, y = x.cpu().double(), y.cpu().double()
        assert mt.isfinite(x).all() and mt.isfinite(y).all()
        limit = ULPS[found[0].dtype] * max(float(y.abs().max()), 1.0)
        assert float((x - y).abs().max()) <= limit


def computed(case: str) -> int:
    """Return how many plans there are of a kind."""
    return sum(key[0] == case and ready is not None for key, ready in plans().items())


def test_signatures_are_the_default_bodies() -> None:
    from mortice.backends import NamespaceBackend
    from mortice_cuda_cupy.cudnn import CudnnKernels

    names = {n for part in CudnnKernels.__mro__[:-2] for n in vars(part) if not n.startswith("_")} - {"libraries"}
    assert names == {"conv", "conv_input_grad", "conv_weight_grad", "attention", "attention_grad"}
    for name in names:
        ours, theirs = (
            [(p.name, p.kind, p.default) for p in inspect.signature(getattr(owner, name)).parameters.values()]
            for owner in (CudnnKernels, NamespaceBackend)
        )
        assert ours == theirs


# ---- convolution ----

CASES = [
    (1, (2, 4, 20), (6, 4, 3), {}),
    (1, (2, 4, 20), (6, 2, 5), {"stride": 2, "padding": 1, "groups": 2}),
    (2, (2, 8, 9, 11), (4, 8, 3, 2), {"padding": (1, 0), "stride": (2, 1), "dilation": (1, 2)}),
    (2, (3, 8, 7, 7), (8, 1, 3, 3), {"padding": 1, "groups": 8}),
    (2, (2, 3, 6, 6), (5, 3, 1, 1), {}),
    (3, (2, 4, 5, 6, 7), (8, 2, 3, 2, 3), {"padding": 1, "groups": 2, "stride": (1, 2, 1)}),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[1]}-{c[2]}")
def test_convolution_and_its_gradients(case: Any, dtype: Any) -> None:
    axes, x_shape, w_shape, how = case
    before = [computed(n) for n in ("conv", "conv_input_grad", "conv_weight_grad")]
    bias = drawn(w_shape[0], dtype=dtype, seed=2)
    function = getattr(F, f"conv{axes}d")
    agree(
        *both(
            lambda x, w, b: function(x, w, b, **how),
            drawn(*x_shape, dtype=dtype),
            drawn(*w_shape, dtype=dtype, seed=1),
            bias,
        )
    )
    after = [computed(n) for n in ("conv", "conv_input_grad", "conv_weight_grad")]
    assert [a - b for a, b in zip(after, before)] == [1, 1, 1] or after == before  # a second run finds them


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    "how", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "dilation": 2}], ids=str
)
def test_transposed_convolution(axes: int, how: Any) -> None:
    function = getattr(F, f"conv_transpose{axes}d")
    w = drawn(4, 3, *[3] * axes, seed=1)
    agree(*both(lambda x, w: function(x, w, **how), drawn(2, 4, *[5] * axes), w))
    assert computed("conv_input_grad")


def test_second_gradients_go_through_it() -> None:
    def twice(x: Any, w: Any) -> Any:
        (g,) = mt.autograd.grad(F.conv2d(x, w, padding=1).square().sum(), x, create_graph=True)
        return g * 2

    agree(*both(twice, drawn(2, 3, 5, 5), drawn(4, 3, 3, 3, seed=1)))


def test_more_room_than_the_windows_need_goes_to_the_core() -> None:
    # Two windows more would fit into the result: no convolution of cuDNN says that.
    agree(
        *both(
            lambda x, w: F.conv_transpose1d(x, w, stride=1, output_padding=2, dilation=3),
            drawn(2, 4, 6),
            drawn(4, 3, 3, seed=1),
        )
    )


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.transpose(2, 3), lambda x: x[:, :, 1:, 1:], lambda x: x[:1].expand(2, -1, -1, -1),
        lambda x: x.contiguous(memory_format=mt.channels_last), lambda x: x.reshape(-1)[3:].reshape(-1)[: 2 * 4 * 6 * 5].view(2, 4, 6, 5),
    ],
    ids=["transposed", "sliced", "expanded", "channels last", "not aligned"],
)  # fmt: skip
def test_layouts_of_the_input(view: Any) -> None:
    plans().clear()
    agree(*both(lambda x, w: F.conv2d(view(x), w, padding=1), drawn(2, 4, 7, 7), drawn(4, 4, 3, 3, seed=1)))
    assert [computed(n) for n in ("conv", "conv_input_grad", "conv_weight_grad")] == [1, 1, 1]


def test_channels_last_stays_so() -> None:
    x = drawn(2, 8, 6, 6, grad=False).contiguous(memory_format=mt.channels_last)
    out = F.conv2d(x, drawn(8, 8, 3, 3, seed=1, grad=False), padding=1)
    assert out.is_contiguous(memory_format=mt.channels_last) and not out.is_contiguous()


@pytest.mark.parametrize("x_shape", [(0, 3, 5), (2, 3, 5)])
def test_what_cudnn_does_not_take_is_computed_all_the_same(x_shape: Any) -> None:
    x = drawn(*x_shape, grad=False)
    w = drawn(4, 3, 3, seed=1, grad=False)
    assert F.conv1d(x, w).shape == (x_shape[0], 4, 3)
    ints = (x * 4).to(mt.int32), (w * 4).to(mt.int32)
    assert F.conv1d(*ints).cpu().tolist() == F.conv1d(*[v.cpu() for v in ints]).tolist()


# ---- switches ----


def test_disabled_it_is_not_asked() -> None:
    x, w = drawn(2, 3, 8, 13, grad=False), drawn(4, 3, 3, 3, seed=1, grad=False)
    with cudnn.flags(enabled=False):
        before = dict(plans_when_enabled())
        F.conv2d(x, w)
    assert plans() == before


def plans_when_enabled() -> dict[Any, Any]:
    with cudnn.flags(enabled=True):
        return plans()


def test_each_setting_has_a_plan_of_its_own() -> None:
    x, w = drawn(2, 3, 8, 17, grad=False), drawn(4, 3, 3, 3, seed=1, grad=False)
    before = computed("conv")
    for how in ({}, {"allow_tf32": False}, {"deterministic": True}, {"benchmark": True}, {"benchmark": True}):
        with cudnn.flags(enabled=True, **how):
            F.conv2d(x, w)
    assert computed("conv") - before == 4


def test_version_and_library() -> None:
    assert cudnn.version() >= 90000  # type: ignore[operator]
    assert cudnn.is_acceptable(drawn(1)) and not cudnn.is_acceptable(mt.ones(1))
    from mortice.__main__ import survey, text

    assert f"with cudnn {cudnn.version()}" in text(survey())


def test_threads_have_handles_and_plans_of_their_own() -> None:
    x, w = drawn(2, 3, 8, 19, grad=False), drawn(4, 3, 3, 3, seed=1, grad=False)
    wanted, found, kept = F.conv2d(x, w), [], []

    def run() -> None:
        found.append(F.conv2d(x, w).cpu())
        kept.append(len(plans()))

    for _ in range(2):  # one after the other: the second has the handle of the first
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert kept == [1, 1] and all(mt.equal(f, wanted.cpu()) for f in found)


@pytest.mark.skipif(cuda.device_count() < 2, reason="takes two GPUs")
def test_each_device_has_its_own() -> None:
    x, w = drawn(2, 3, 8, 8, grad=False), drawn(4, 3, 3, 3, seed=1, grad=False)
    there = F.conv2d(x.to("cuda:1"), w.to("cuda:1"))
    assert str(there.device) == "cuda:1" and mt.allclose(there.cpu(), F.conv2d(x, w).cpu(), atol=1e-4)


def test_streams_are_followed_and_work_is_captured() -> None:
    x, w = drawn(2, 3, 8, 21, grad=False), drawn(4, 3, 3, 3, seed=1, grad=False)
    wanted, side, graph = F.conv2d(x, w).cpu(), cuda.Stream(), cuda.CUDAGraph()
    with cuda.stream(side):
        assert mt.equal(F.conv2d(x, w).cpu(), wanted)
    cuda.synchronize()
    with cudnn.flags(enabled=True, benchmark=True, allow_tf32=False), cuda.graph(graph):
        out = F.conv2d(x, w)
    plans().clear()
    gc.collect()
    x.copy_(x * 2)
    graph.replay()
    cuda.synchronize()
    assert mt.allclose(out.cpu(), wanted * 2, atol=1e-4)


def test_the_cache_is_bounded(monkeypatch: Any) -> None:
    from mortice_cuda_cupy.cudnn import plans as module

    plans().clear()
    monkeypatch.setattr(module, "LIMIT", 3)
    w = drawn(4, 3, 3, seed=1, grad=False)
    for n in range(5, 10):
        F.conv1d(drawn(1, 3, n, grad=False), w)
    assert len(plans()) == 3


# ---- attention ----


def heads(*shape: int, dtype: Any, seed: int) -> Any:
    return drawn(*shape, dtype=dtype, seed=seed)


def attend(mask: Any = None, **how: Any) -> Callable[..., Any]:
    return lambda q, t, v: F.scaled_dot_product_attention(q, t, v, attn_mask=mask, **how)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("how", [{}, {"is_causal": True}, {"scale": 0.3}], ids=str)
@pytest.mark.parametrize("sizes", [(2, 3, 20, 20, 16, 16), (1, 2, 33, 17, 8, 24)], ids=str)
def test_attention_and_its_gradients(sizes: Any, how: Any, dtype: Any) -> None:
    b, h, n, m, e, f = sizes
    qkv = [heads(b, h, r, c, dtype=dtype, seed=i) for i, (r, c) in enumerate([(n, e), (m, e), (m, f)])]
    plans().clear()
    agree(*both(attend(**how), *qkv))
    assert computed("attention") == computed("attention_grad") == 1


@pytest.mark.parametrize("shape", [(16, 24), (2, 1, 16, 24), (3, 16, 24), (2, 1, 1, 24), (2, 3, 16, 1), (24,)], ids=str)
@pytest.mark.parametrize("kind", ["bool", "added"])
def test_masks_and_queries_that_may_look_at_nothing(kind: str, shape: Any) -> None:
    dtype = mt.float16
    mask = drawn(*shape, seed=5, grad=False) > -0.5
    if len(shape) > 1 and shape[-2] > 1:
        mask[..., 3, :] = False
    if kind == "added":
        mask = mt.where(mask, drawn(*shape, seed=6, grad=False), float("-inf")).to(dtype)
    qkv = [heads(2, 3, n, 16, dtype=dtype, seed=i) for i, n in enumerate((16, 24, 24))]
    plans().clear()
    found, wanted = both(attend(mask), *qkv)
    agree(found, wanted)
    assert computed("attention") == computed("attention_grad") == 1
    if len(shape) > 1 and shape[-2] > 1:
        assert not found[0][:, :, 3].cpu().any()


def test_attention_of_a_joint_projection_makes_no_copies() -> None:
    x = drawn(2, 20, 3, 4, 16, dtype=mt.float16)

    def run(x: Any) -> Any:
        q, t, v = x.permute(2, 0, 3, 1, 4).unbind(0)
        out = F.scaled_dot_product_attention(q, t, v, is_causal=True)
        return out.transpose(1, 2).reshape(2, 20, 64)

    plans().clear()
    agree(*both(run, x))
    assert computed("attention") == 1
    q = x.detach().permute(2, 0, 3, 1, 4)[0]
    out = F.scaled_dot_product_attention(q, q, q)
    assert out.transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_dropout_drops_what_the_common_stream_says(masked: bool, dtype: Any) -> None:
    mask = (drawn(20, 24, seed=5, grad=False) > -1.0) if masked else None
    qkv = [heads(2, 3, n, 16, dtype=dtype, seed=i) for i, n in enumerate((20, 24, 24))]

    def run(*qkv: Any) -> Any:
        mt.manual_seed(3)
        return attend(mask, dropout_p=0.25, is_causal=not masked)(*qkv)

    plans().clear()
    agree(*both(run, *qkv))
    assert computed("attention") == computed("attention_grad") == 1


@pytest.mark.parametrize("lead", [(), (3,), (2, 2, 3)])
def test_leading_axes(lead: Any) -> None:
    qkv = [heads(*lead, 16, 8, dtype=mt.bfloat16, seed=i) for i in range(3)]
    plans().clear()
    agree(*both(attend(), *qkv))
    assert computed("attention") == 1


def test_what_cudnn_does_not_take_of_attention() -> None:
    cases = [
        ([(2, 16, 12)] * 3, mt.float16, {}), ([(2, 16, 8)] * 3, mt.float32, {}), ([(2, 4, 8)] * 3, mt.float16, {}),
        ([(2, 16, 8), (1, 16, 8), (1, 16, 8)], mt.float16, {}),
    ]  # fmt: skip
    plans().clear()
    for shapes, dtype, how in cases:
        qkv = [heads(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes)]
        agree(*both(attend(**how), *qkv))
    mask = drawn(16, 16, dtype=mt.float16, seed=4)
    q = heads(2, 16, 8, dtype=mt.float16, seed=1)
    agree(*both(lambda q, mask: attend(mask)(q, q, q), q, mask))
    assert computed("attention_grad") == 0
    x = heads(2, 16, 8, dtype=mt.float16, seed=1).detach()
    out = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
    assert out.shape == x.shape and mt.isfinite(out).all()


def test_attention_by_cudnn_can_be_switched_off() -> None:
    from mortice.nn.attention import SDPBackend, sdpa_kernel

    x = heads(2, 16, 8, dtype=mt.float16, seed=1).detach()
    plans().clear()
    with pytest.warns(FutureWarning, match="sdpa_kernel"), ways.sdp_kernel(enable_cudnn=False):
        F.scaled_dot_product_attention(x, x, x)
    with sdpa_kernel(SDPBackend.MATH):
        F.scaled_dot_product_attention(x, x, x)
    assert not plans() and ways.cudnn_sdp_enabled()
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        F.scaled_dot_product_attention(x, x, x)
    assert computed("attention") == 1


# ---- what only the stand-in tells ----

emulated = pytest.mark.skipif("fake_cudnn" not in sys.modules, reason="looks into the stand-in")


@emulated
@pytest.mark.seed("CU01")
def test_which_plan_runs() -> None:
    import fake_cudnn

    x, w = drawn(2, 3, 8, 23, grad=False), drawn(4, 3, 3, 3, seed=1, grad=False)

    def ran(**how: Any) -> set[str]:
        with cudnn.flags(enabled=True, **how):
            fake_cudnn.log.clear()
            F.conv2d(x, w)
            return {name for _, name in fake_cudnn.log}

    assert ran() == {"tf32"} and ran(allow_tf32=False) == {"atomic"}
    assert ran(allow_tf32=False, deterministic=True) == {"plain"}
    mt.use_deterministic_algorithms(True)
    try:
        assert ran(allow_tf32=False) == {"plain"}
    finally:
        mt.use_deterministic_algorithms(False)
    assert ran(benchmark=True) == {"tf32", "atomic", "plain"}  # measured once
    assert len(ran(benchmark=True)) == 1


@emulated
def test_a_case_without_a_plan_is_told_and_computed(monkeypatch: Any) -> None:
    import fake_cudnn

    def refuse(*args: Any) -> None:
        raise fake_cudnn.cudnnGraphNotSupportedError("No valid engine configs for this\nand more")

    x, w = drawn(2, 3, 8, 27, grad=False), drawn(4, 3, 3, 3, seed=1, grad=False)
    monkeypatch.setattr(fake_cudnn.pygraph, "create_execution_plans", refuse)
    fake_cudnn.log.clear()
    F.conv2d(x, w)
    F.conv2d(x, w)
    assert not fake_cudnn.log
    note = x.device.backend.libraries()["cudnn"][1]
    assert (
        "no plan for conv 2x3x8x27 by 4x3x3x3 float32: No valid engine configs for this" in note
        and "and more" not in note
    )


@emulated
def test_a_plan_that_fails_to_run_is_given_up(monkeypatch: Any) -> None:
    import fake_cudnn

    x, w = drawn(2, 3, 8, 29, grad=False), drawn(4, 3, 3, 3, seed=1, grad=False)
    wanted = F.conv2d(x, w)

    def fail(*args: Any) -> None:
        raise RuntimeError("CUDNN_STATUS_EXECUTION_FAILED")

    with monkeypatch.context() as patch:
        patch.setattr(fake_cudnn.pygraph, "_launch", fail)
        assert mt.allclose(F.conv2d(x, w).cpu(), wanted.cpu(), atol=1e-4)
    fake_cudnn.log.clear()
    F.conv2d(x, w)
    assert not fake_cudnn.log


@emulated
def test_frontends_without_a_launch_by_addresses_are_called_by_uid(monkeypatch: Any) -> None:
    import fake_cudnn

    monkeypatch.delattr(fake_cudnn._Lowered, "_execute_with_raw_ptrs")
    fake_cudnn.log.clear()
    agree(*both(lambda x, w: F.conv2d(x, w), drawn(2, 3, 8, 31), drawn(4, 3, 3, 3, seed=1)))
    assert [name for name, _ in fake_cudnn.log] == ["conv_fprop", "conv_dgrad", "conv_wgrad"] or len(
        fake_cudnn.log
    ) == 3


def test_a_launch_that_comes_into_another_of_its_plan_leaves_it_its_own_operands() -> None:
    import ctypes
    from types import SimpleNamespace

    from mortice_cuda_cupy.cudnn import plans

    seen: list[list[int]] = []
    lowered = SimpleNamespace(
        _prepare_variant_pack_template=lambda: None, _get_variant_pack_uids_sorted=lambda: [1, 2],
        _execute_with_raw_ptrs=lambda start, count, *rest: seen.append(list((ctypes.c_uint64 * count).from_address(start))),
    )  # fmt: skip
    graph, place = SimpleNamespace(_lowered_graph=lowered, plans=[SimpleNamespace(cpp_index=0)]), SimpleNamespace(number=1)
    launch = plans._launcher(graph, 0, 2)

    class Addresses(list):  # type: ignore[type-arg]
        def __getitem__(self, i: Any) -> Any:
            if i == 1 and not seen:
                launch([30, 40], 0, place)  # as a signal's handler would
            return super().__getitem__(i)

    launch(Addresses([10, 20]), 0, place)
    assert seen == [[30, 40], [10, 20]]
