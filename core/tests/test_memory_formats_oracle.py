"""How results and gradients lie in memory, beside PyTorch's: images, volumes and rows whose channels are last."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(mt.default_backend() == "strict", reason="its buffers tell no strides"),
]

MADE = {
    "image": lambda m: m.ones(2, 4, 8, 6).contiguous(memory_format=m.channels_last),
    "volume": lambda m: m.ones(2, 4, 8, 6, 6).contiguous(memory_format=m.channels_last_3d),
    "row": lambda m: m.ones(2, 8, 4).transpose(1, 2),
    "one volume": lambda m: m.ones(1, 4, 8, 6, 6).contiguous(memory_format=m.channels_last_3d)[0],
}
IMAGE = {
    "conv2d": lambda m, f, x: f.conv2d(x, m.ones(3, 4, 3, 3)),
    "depthwise": lambda m, f, x: f.conv2d(x, m.ones(4, 1, 3, 3), groups=4),
    "conv_transpose2d": lambda m, f, x: f.conv_transpose2d(x, m.ones(4, 3, 3, 3)),
    "max_pool2d": lambda m, f, x: f.max_pool2d(x, 2),
    "avg_pool2d": lambda m, f, x: f.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda m, f, x: f.adaptive_avg_pool2d(x, 2),
    "adaptive_avg_pool2d to one": lambda m, f, x: f.adaptive_avg_pool2d(x, 1),
    "adaptive_max_pool2d": lambda m, f, x: f.adaptive_max_pool2d(x, 2),
}
BATCH = {
    "batch_norm": lambda m, f, x: f.batch_norm(x, None, None, training=True),
    "batch_norm of given statistics": lambda m, f, x: f.batch_norm(x, m.zeros(4), m.ones(4)),
    "group_norm": lambda m, f, x: f.group_norm(x, 2),
}
VOLUME = {
    "conv3d": lambda m, f, x: f.conv3d(x, m.ones(3, 4, 3, 3, 3)),
    "max_pool3d": lambda m, f, x: f.max_pool3d(x, 2),
    "adaptive_avg_pool3d to one": lambda m, f, x: f.adaptive_avg_pool3d(x, 1),
}
ROW = {
    "max_pool1d": lambda m, f, x: f.max_pool1d(x, 2),
    "avg_pool1d": lambda m, f, x: f.avg_pool1d(x, 2),
    "adaptive_avg_pool1d": lambda m, f, x: f.adaptive_avg_pool1d(x, 2),
    "adaptive_max_pool1d": lambda m, f, x: f.adaptive_max_pool1d(x, 2),
    "conv1d": lambda m, f, x: f.conv1d(x, m.ones(3, 4, 3)),
}
CASES = {f"{name}, {kind}": (kind, run) for kind, runs in (
    ("image", IMAGE | BATCH), ("volume", VOLUME | BATCH), ("row", ROW),
) for name, run in runs.items()}  # fmt: skip


def both(body: Any) -> None:
    assert body(mt, mt.nn.functional) == body(torch, torch.nn.functional)


@pytest.mark.parametrize("case", CASES)
def test_results_and_gradients_lie_as_in_pytorch(case):
    kind, run = CASES[case]

    def body(m: Any, f: Any) -> Any:
        x = MADE[kind](m).requires_grad_()
        out = run(m, f, x)
        like = m.autograd.grad(out, x, m.ones_like(out), retain_graph=True)[0]
        row_major = m.autograd.grad(out, x, m.ones(out.shape), retain_graph=True)[0]
        found = [out, like, row_major]
        if "norm" not in case:  # whose second formulas PyTorch writes in other steps
            found.append(m.autograd.grad(out, x, m.ones(out.shape), create_graph=True)[0])
        return [t.stride() for t in found]

    both(body)


@pytest.mark.parametrize("case", CASES)
def test_a_gradient_lies_not_as_the_one_that_comes_in(case):
    kind, run = CASES[case]

    def body(m: Any, f: Any) -> Any:
        x = MADE[kind](m).contiguous().requires_grad_()
        out = run(m, f, x)
        g = m.ones(*out.shape[:1], *out.shape[2:], out.shape[1]).movedim(-1, 1)
        return [m.autograd.grad(out, x, g, retain_graph=True, create_graph=c)[0].stride() for c in (False, "norm" not in case)]

    both(body)


@pytest.mark.parametrize("kind", ["image", "volume", "row"])
def test_rms_norm_and_its_gradient_keep_channels_last(kind):
    def body(m: Any, f: Any) -> Any:
        x = MADE[kind](m).requires_grad_()
        out = f.rms_norm(x, x.shape[-1:])
        return out.stride(), m.autograd.grad(out, x, m.ones_like(out))[0].stride()

    both(body)


@pytest.mark.parametrize("kind", ["image", "volume"])
@pytest.mark.parametrize("last", ["input", "weight"])
def test_gradients_of_a_convolution_have_the_format_of_either_operand(kind, last):
    def body(m: Any, f: Any) -> Any:
        x, w = MADE[kind](m), m.arange(3 * 4 * 27.0)[: 3 * 4 * (9 if kind == "image" else 27)]
        w = w.reshape(3, 4, *[3] * (x.ndim - 2))
        if last == "weight":
            x, w = x.contiguous(), w.contiguous(memory_format=m.channels_last if kind == "image" else m.channels_last_3d)
        out = (f.conv2d if kind == "image" else f.conv3d)(x.requires_grad_(), w.requires_grad_())
        grads = m.autograd.grad(out, (x, w), m.ones(out.shape))
        return [(g.stride(), g.sum().item()) for g in (out, *grads)]

    both(body)


@pytest.mark.parametrize("grad", [False, True])
def test_a_volume_of_a_batch_keeps_its_channels_last_in_max_pool3d(grad):
    def body(m: Any, f: Any) -> Any:
        out, places = f.max_pool3d(MADE["one volume"](m).requires_grad_(grad), 2, return_indices=True)
        return out.stride(), places.stride(), type(out.grad_fn).__name__, f.avg_pool3d(MADE["one volume"](m), 2).stride()

    if mt.default_backend() == "cpu_cext" and mt.get_default_device().backend.keeps_formats:  # by kernels of its own
        both(body)


@pytest.mark.parametrize("kind", ["image", "row"])
def test_gradients_that_lie_as_their_tensors_stay_so(kind):
    def body(m: Any, f: Any) -> Any:
        x = MADE[kind](m).requires_grad_()
        found = [m.autograd.grad(x.abs(), x, m.ones_like(x))[0].stride()]
        (x**3).sum().backward(create_graph=True, inputs=[x])
        return [*found, x.grad.stride(), x.grad.requires_grad]

    both(body)


@pytest.mark.parametrize("compare", ["gt", "ge", "lt", "eq"])
def test_a_comparison_lies_as_its_first_operand(compare):
    def body(m: Any, f: Any) -> Any:
        x = MADE["image"](m)
        return getattr(x, compare)(m.ones(x.shape)).stride(), getattr(m.ones(x.shape), compare)(x).stride()

    if mt.default_backend() == "cpu_cext" and mt.get_default_device().backend.keeps_formats:  # by kernels of its own
        both(body)


@pytest.mark.parametrize("repeats", [1, 2])
def test_repeat_interleave_lies_row_by_row(repeats):
    def body(m: Any, f: Any) -> Any:
        x = MADE["image"](m)
        return [t.repeat_interleave(repeats, dim).stride() for t in (x, x[0], x.mT) for dim in (0, 1)]

    both(body)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 2, 3, 4, 1), (0, 2, 1), (0, 1)])
def test_rows_that_indices_take_lie_as_they_lay(order):
    found = []
    for m in (mt, torch):
        shape = [3, *range(4, 3 + len(order))]
        x = m.arange(m.Size(shape).numel()).to(m.float32).mul(7).remainder(31)
        x = x.reshape(shape).permute([order.index(d) for d in range(len(order))]).detach().requires_grad_()
        made = [x[[1, 0, 1]], x[m.tensor([False, True, True])]]
        (made[0] * x[:1]).sum().backward()
        found.append([(y.stride(), y.tolist()) for y in (*made, x.grad)] + [type(made[0].grad_fn).__name__])
    assert found[0] == found[1]
