"""The device "meta": every op gives the shape and dtype there that it gives where it computes, and so do gradients."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import mortice as mt
from mortice import nn
from mortice.backends.plugins import list_backends
from mortice_conformance.record import Case, Sample, load_samples

DTYPES = ("float32", "float64", "complex64", "int64", "bool")
# The sizes of these results, or of the work, are found in the operands' values.
VALUES = ("unique_all", "unique_rows", "masked index", *[f"{n}_polynomial_{k}" for n, k in
          (("hermite", "h"), ("hermite", "he"), ("laguerre", "l"), ("legendre", "p"))])  # fmt: skip
SAMPLES = {name: sample for name, sample in load_samples().items() if name not in VALUES}


def outlines(outputs: Any) -> list[Any]:
    """Return what is known of tensors without reading them."""
    return [None if t is None else (tuple(t.shape), t.dtype) for t in outputs if t is None or isinstance(t, mt.Tensor)]


def leaves(sample: Sample, case: Case, dtype: Any) -> tuple[list[Any], list[Any]]:
    """Draw the operands of a call: where they have values, and on "meta"."""
    arrays = sample.draw(case, dtype, True)
    dtypes = sample.operand_dtypes(case, dtype)
    there = [None if a is None else mt.as_tensor(a).to(d) for a, d in zip(arrays, dtypes)]
    on = [None if t is None else t.to("meta") for t in there]
    for i in sample.grad_operands(case) if dtype.kind in "fc" else ():
        there[i].requires_grad_()
        on[i].requires_grad_()
    return there, on


def gradients(outputs: Any, operands: list[Any]) -> list[Any]:
    """Return the operands' gradients of everything that has any."""
    live = [t for t in outputs if isinstance(t, mt.Tensor) and t.requires_grad]
    wanted = [t for t in operands if t is not None and t.requires_grad]
    if not live or not wanted:
        return []
    try:
        return list(mt.autograd.grad(live, wanted, [mt.ones_like(t) for t in live], allow_unused=True))
    except NotImplementedError:  # which is then so on both
        return [None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLES)
def test_what_an_op_gives(name: str) -> None:
    sample = SAMPLES[name]
    dtypes = [d for n in DTYPES if sample.accepts(d := getattr(mt, n))]
    assert dtypes and sample.cases
    for dtype in dtypes:
        for case in [*sample.cases, *sample.edges]:
            there, on = leaves(sample, case, dtype)
            want, got = sample.apply(there, case.attrs), sample.apply(on, case.attrs)
            back = gradients(want, there)
            assert outlines(got) == outlines(want), f"{dtype} {case}"
            assert all(t.is_meta for t in got if isinstance(t, mt.Tensor)), f"{dtype} {case}"
            assert outlines(gradients(got, on)) == outlines(back), f"{dtype} {case}: gradients"


@pytest.mark.parametrize("name", VALUES)
def test_what_needs_values_is_refused(name: str) -> None:
    sample = load_samples()[name]
    _, on = leaves(sample, sample.cases[0], mt.float32)
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        sample.apply(on, sample.cases[0].attrs)


def test_it_is_formatted_as_it_is_shown() -> None:
    x = mt.empty((), device="meta")
    assert f"{x}" == repr(x)
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{x:.2f}"


def test_views_have_their_strides_and_offsets() -> None:
    x = mt.empty(4, 6, device="meta")
    real = mt.empty(4, 6)
    for view in (
        lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[:, None, 3], lambda t: t.view(2, 2, 6), lambda t: t[2].expand(3, 6),
        lambda t: t.unfold(1, 3, 2), lambda t: t.as_strided((2, 2), (1, 3), 4), lambda t: t.diagonal(1), lambda t: t.t().contiguous(),
        lambda t: t.t().reshape(-1), lambda t: t[..., -1], lambda t: t.flip(0),
    ):  # fmt: skip
        a, b = view(x), view(real)
        steps = [[step for n, step in zip(t.shape, t.stride()) if n > 1] for t in (a, b)]  # those of one element lead nowhere
        assert (a.shape, steps[0], a.storage_offset()) == (b.shape, steps[1], b.storage_offset())
        assert (a._base is x) == (b._base is real)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.t().view(-1)


def test_what_reads_values_only_to_check_or_to_scale_them_needs_none() -> None:
    at, table = mt.zeros(4, dtype=mt.int64, device="meta"), mt.ones(5, 3, device="meta")
    assert nn.EmbeddingBag(5, 3, device="meta")(at, at[:2]).shape == (2, 3)
    assert nn.functional.embedding(at, table, max_norm=1.0).shape == (4, 3)
    assert mt.matrix_exp(mt.ones(2, 3, 3, device="meta")).shape == (2, 3, 3)


@pytest.mark.parametrize("device", [None, "meta"])
def test_parts_of_what_was_sorted_or_extended_lie_close(device: str | None) -> None:
    x = mt.ones(5, 10, 5, device=device)
    assert [t.stride() for t in x.topk(3)] == [(30, 3, 1)] * 2
    assert [t.stride() for t in x.kthvalue(2)] == [(10, 1)] * 2
    for mode in ("replicate", "reflect"):
        assert nn.functional.pad(x, (-1, 2), mode=mode).stride() == (60, 6, 1)


def test_a_model_is_built_and_trained_in_no_memory() -> None:
    with mt.device("meta"):
        model = nn.Sequential(nn.Linear(10**6, 10**6), nn.ReLU(), nn.LayerNorm(10**6), nn.Dropout(), nn.Linear(10**6, 7))
        optimizer = mt.optim.Adam(model.parameters())
        x, y = mt.randn(5, 10**6), mt.randint(7, (5,))
    assert sum(p.numel() for p in model.parameters()) > 10**12
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    assert str(loss.device) == "meta" and not loss.shape
    assert model[0].weight.grad.shape == (10**6, 10**6)


@pytest.mark.needs("cpu")
def test_a_module_gets_memory_and_values() -> None:
    model = nn.Linear(3, 2, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!.*to_empty"):
        model.to("cpu")
    values = nn.Linear(3, 2).state_dict()
    with pytest.warns(UserWarning) as told:
        model.load_state_dict(values)
    assert [str(w.message).partition(":")[0] for w in told] == ["for weight", "for bias"]
    model.load_state_dict(values, assign=True)
    assert model.weight.is_cpu and model.weight.requires_grad and mt.equal(model.weight, values["weight"])
    empty = nn.Linear(3, 2, device="meta").to_empty(device="cpu")
    assert empty.weight.is_cpu and isinstance(empty.weight, nn.Parameter)
    assert nn.Linear(3, 2).to("meta").weight.is_meta


def test_values_are_refused() -> None:
    x = mt.ones(2, device="meta")
    for read in (lambda: x.sum().item(), lambda: bool(x.sum()), lambda: x.nonzero(), lambda: x[x > 0], lambda: mt.allclose(x, x)):
        with pytest.raises(RuntimeError, match="item.. cannot be called on meta tensors"):
            read()
    for read in (lambda: x.tolist(), lambda: x.cpu(), lambda: mt.zeros(2).copy_(x)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            read()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="on the same device"):
        x + mt.zeros(2)


def test_comparison_looks_at_what_there_is() -> None:
    x = mt.ones(2, device="meta")
    mt.testing.assert_close(x, mt.zeros(2, device="meta"))
    for other in (mt.ones(3, device="meta"), x.double(), mt.ones(2)):
        with pytest.raises(AssertionError, match="do not match"):
            mt.testing.assert_close(x, other)


def test_it_is_printed_and_kept() -> None:
    x = mt.empty(3, 4, device="meta", dtype=mt.int32).t()
    assert repr(x) == "tensor(..., device='meta', size=(4, 3), dtype=mortice.int32)"
    assert repr(mt.empty((), device="meta")) == "tensor(..., device='meta', size=())"
    module = nn.Linear(2, 3, device="meta")
    file = io.BytesIO()
    mt.save({"x": x, "module": module.state_dict(), "weight": module.weight}, file)
    file.seek(0)
    loaded = mt.load(file, map_location="cpu")
    assert (loaded["x"].shape, loaded["x"].stride(), loaded["x"].dtype) == (x.shape, x.stride(), x.dtype)
    assert loaded["x"].is_meta and loaded["module"]["bias"].is_meta
    assert isinstance(loaded["weight"], nn.Parameter) and loaded["weight"].requires_grad
    for again in (copy.deepcopy(module.weight), pickle.loads(pickle.dumps(module.weight))):
        assert again.is_meta and again.shape == (3, 2) and again.requires_grad


def test_no_program_gets_it_unasked() -> None:
    assert "meta" not in list_backends()
    with pytest.raises(RuntimeError) as error:
        mt.empty(2, device="mta")
    assert "meta" not in str(error.value).partition("available:")[2]


@pytest.mark.needs("cpu")
def test_a_number_on_the_cpu_joins_elementwise_what_is_elsewhere() -> None:
    x, number = mt.ones(2, 3, device="meta"), mt.tensor(2.0, requires_grad=True)
    for out in (x * number, number - x, mt.where(x > 0, x, number), mt.lerp(x, x, number)):
        assert out.is_meta and out.shape == (2, 3)
    with pytest.raises(RuntimeError, match="cat: Expected all tensors to be on the same device"):
        mt.cat([x[0], number[None]])
    strict = mt.tensor([1.0, 2.0]).to(backend="strict")
    (strict * number).sum().backward()
    assert number.grad.is_cpu and number.grad.item() == 3
    assert strict.mul_(number.detach()).tolist() == [2.0, 4.0]


@pytest.mark.oracle
def test_checkpoints_cross_to_torch_and_back() -> None:
    torch = pytest.importorskip("torch", reason="the files are PyTorch's; it is not installed here")
    file = io.BytesIO()
    mt.save({"x": mt.empty(3, 4, device="meta").t(), "p": nn.Linear(2, 3, device="meta").weight}, file)
    file.seek(0)
    theirs = torch.load(file)
    assert theirs["x"].device.type == "meta" and theirs["x"].stride() == (1, 4) and theirs["p"].requires_grad
    file = io.BytesIO()
    torch.save(theirs, file)
    file.seek(0)
    ours = mt.load(file)
    assert ours["x"].is_meta and ours["x"].stride() == (1, 4) and isinstance(ours["p"], nn.Parameter)


def test_repetition_by_a_tensor_takes_its_size_from_the_call() -> None:
    counts = mt.ones(3, dtype=mt.int32, device="meta")
    assert mt.repeat_interleave(counts, output_size=5).shape == (5,) and mt.repeat_interleave(counts, output_size=5).dtype is mt.int32
    assert mt.ones(3, 2, device="meta").repeat_interleave(counts, 0, output_size=5).shape == (5, 2)
    with pytest.raises(RuntimeError, match="meta tensors"):
        mt.repeat_interleave(counts)
