"""Libraries that people use beside tensors, in their own words: einops, matplotlib, pandas, scikit-learn, SciPy, tqdm, Pillow."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import warnings

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed: no library that stands on it is tried")

import mortice as mt  # noqa: E402


def library(name):
    """Import a library, or skip aloud."""
    return pytest.importorskip(name, reason=f"{name} is not installed: it is not tried with tensors")


# ---- einops ----

PATTERNS = {
    "rearrange": (lambda e, x: e.rearrange(x, "a b c -> (a c) b"), lambda a: a.transpose(0, 2, 1).reshape(-1, 3)),
    "split": (lambda e, x: e.rearrange(x, "a b (c d) -> d a b c", d=2), lambda a: a.reshape(2, 3, 2, 2).transpose(3, 0, 1, 2)),
    "list": (lambda e, x: e.rearrange([x, x], "n a b c -> a n b c"), lambda a: np.stack([a, a], 1)),
    "mean": (lambda e, x: e.reduce(x, "a b (c d) -> a d", "mean", d=2), lambda a: a.reshape(2, 3, 2, 2).mean((1, 2))),
    "sum": (lambda e, x: e.reduce(x, "a b c -> ", "sum"), lambda a: a.sum()),
    "max": (lambda e, x: e.reduce(x, "a b c -> b 1", "max"), lambda a: a.max((0, 2))[:, None]),
    "min": (lambda e, x: e.reduce(x, "a (b k) c -> a c b", "min", k=3), lambda a: a.min(1)[..., None]),
    "prod": (lambda e, x: e.reduce(x, "a b c -> b", "prod"), lambda a: a.prod((0, 2))),
    "repeat": (lambda e, x: e.repeat(x, "a b c -> a b (c r) q", r=2, q=3),
               lambda a: np.broadcast_to(np.repeat(a, 2, 2)[..., None], (2, 3, 8, 3))),
    "einsum": (lambda e, x: e.einsum(x, x, "one two three, one four three -> two four"), lambda a: np.einsum("abc,adc->bd", a, a)),
    "pack": (lambda e, x: e.pack([x, x[:, 0]], "a * c")[0], lambda a: np.concatenate([a, a[:, :1]], 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_einops_works_and_gradients_flow(name):
    einops = library("einops")
    call, reference = PATTERNS[name]
    values = np.random.default_rng(0).uniform(1, 2, (2, 3, 4))
    x = mt.tensor(values, requires_grad=True)
    found, want = call(einops, x), reference(values)
    assert tuple(found.shape) == want.shape and np.allclose(found.detach().cpu(), want)
    assert mt.autograd.gradcheck(lambda t: call(einops, t), (x,))


def test_einops_reads_and_unpacks():
    einops = library("einops")
    x = mt.arange(24).reshape(2, 3, 4)
    assert einops.parse_shape(x, "a _ c") == {"a": 2, "c": 4} and isinstance(einops.asnumpy(x), np.ndarray)
    packed, shapes = einops.pack([x, x[:, 0]], "a * c")
    assert [tuple(t.shape) for t in einops.unpack(packed, shapes, "a * c")] == [(2, 3, 4), (2, 4)]
    assert einops.reduce(x > 3, "a b c -> a", "any").tolist() == [True, True]
    with pytest.raises(einops.EinopsError, match="Error while processing rearrange"):
        einops.rearrange(x, "a b -> b a")


@pytest.mark.parametrize("order", ["einops, mortice", "mortice, einops"])
def test_einops_knows_tensors_whichever_is_imported_first(order):
    library("einops")
    code = f"import {order}; print(einops.rearrange(mortice.ones(2, 3), 'a b -> b a').shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "mortice.Size([3, 2])\n", done.stderr


def test_a_bridge_that_breaks_warns_and_lets_the_library_through():
    library("einops")
    code = (
        "import sys, warnings, mortice; sys.modules['mortice.utils.einops'] = None\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always'); import einops\n"
        "print(len(seen), seen[0].category.__name__, einops.rearrange.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "1 RuntimeWarning rearrange\n", done.stderr


def test_layers_of_einops_train():
    library("einops")
    from mortice.utils.einops.layers import EinMix, Rearrange, Reduce

    mt.manual_seed(0)
    net = mt.nn.Sequential(
        Rearrange("n h w -> n (h w)"), mt.nn.Linear(12, 6), Reduce("n (g k) -> n g k", "mean", g=2, k=3),
        EinMix("n g k -> n o", weight_shape="g k o", bias_shape="o", g=2, k=3, o=5),
    )  # fmt: skip
    x = mt.rand(4, 3, 4)
    assert net(x).shape == (4, 5) and [tuple(p.shape) for p in net.parameters()][-2:] == [(2, 3, 5), (1, 5)]
    optimizer = mt.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert again(x).tolist() == net(x).tolist() and "Rearrange('n h w -> n (h w)')" in repr(again)


# ---- the others ----


@pytest.mark.needs("cpu")
def test_matplotlib_draws_tensors():
    library("matplotlib").use("Agg")
    from matplotlib import pyplot

    x = mt.linspace(0, 1, 20)
    figure, (left, right) = pyplot.subplots(1, 2)
    line = left.plot(x, x**2)[0]
    assert np.allclose(line.get_xydata()[:, 1], (x**2).numpy())
    assert left.hist(x, bins=5)[0].sum() == 20 and len(left.plot(mt.rand(10, 3))) == 3
    left.scatter(x, x, c=x, s=x * 10)
    left.errorbar(x, x, yerr=x)
    left.axhline(mt.tensor(0.5))
    left.set_title(f"{x.mean():.2f}")
    assert right.imshow(mt.rand(4, 5)).get_array().shape == (4, 5)
    right.imshow(mt.ones(4, 5, 3, dtype=mt.uint8))
    right.contour(mt.rand(4, 5))
    figure.savefig(io.BytesIO())
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\)"):
        warnings.simplefilter("ignore")  # matplotlib first asks whether a number of it is finite
        left.plot(x.requires_grad_())
    pyplot.close(figure)


@pytest.mark.needs("cpu")
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # where pandas lends its memory to be read alone
def test_pandas_holds_tensors_and_gives_them_back():
    pandas = library("pandas")
    frame = pandas.DataFrame(mt.rand(3, 2), columns=["a", "b"])
    assert frame.shape == (3, 2) and frame.a.dtype == np.float32
    assert pandas.DataFrame({"a": mt.arange(3), "b": mt.rand(3)}).dtypes.tolist() == [np.int64, np.float32]
    assert pandas.Series(mt.arange(3)).sum() == 3 and frame.assign(c=mt.ones(3)).c.sum() == 3
    assert frame.iloc[mt.tensor([0, 2])].shape == (2, 2) and frame.loc[(mt.arange(3) > 0).numpy()].shape == (2, 2)
    assert mt.tensor(pandas.Series([1, 2.5])).tolist() == [1, 2.5] and mt.as_tensor(frame).shape == (3, 2)
    assert mt.from_numpy(frame.to_numpy()).dtype is mt.float32


@pytest.mark.needs("cpu")
def test_scikit_learn_takes_tensors():
    library("sklearn")
    from sklearn import linear_model, metrics, model_selection, preprocessing

    mt.manual_seed(1)
    truth, guess, score = mt.tensor([0, 1, 1, 0]), mt.tensor([0, 1, 0, 0]), mt.tensor([0.1, 0.9, 0.4, 0.2])
    assert metrics.accuracy_score(truth, guess) == 0.75 and metrics.confusion_matrix(truth, guess).tolist() == [[2, 0], [1, 1]]
    assert metrics.roc_auc_score(truth, score) == 1 and metrics.mean_squared_error(score, score) == 0
    x = mt.rand(30, 3)
    y = (x.sum(1) > 1.5).long()
    train, test, *_ = model_selection.train_test_split(x, y, test_size=0.5)
    assert isinstance(train, mt.Tensor) and len(test) == 15
    assert linear_model.LogisticRegression(C=100).fit(x, y).score(x, y) > 0.8
    assert mt.as_tensor(preprocessing.StandardScaler().fit_transform(x)).mean().abs() < 1e-6


@pytest.mark.needs("cpu")
def test_scipy_takes_tensors():
    library("scipy")
    import scipy.ndimage
    import scipy.sparse
    import scipy.spatial
    import scipy.stats

    x = mt.rand(6, 3)
    assert scipy.spatial.distance.cdist(x, x).shape == (6, 6) and scipy.ndimage.gaussian_filter(x, 1).shape == (6, 3)
    assert scipy.stats.pearsonr(x[:, 0], x[:, 0]).statistic == pytest.approx(1) and scipy.sparse.csr_matrix(x).nnz == 18


def test_tqdm_counts_loaders():
    tqdm = library("tqdm").tqdm
    loader = mt.utils.data.DataLoader(mt.utils.data.TensorDataset(mt.rand(10, 2)), batch_size=4)
    text = io.StringIO()
    bar = tqdm(loader, file=text)
    for (batch,) in bar:
        bar.set_postfix(loss=batch.mean())
    assert "3/3" in text.getvalue() and len(list(tqdm(mt.rand(5, 2), file=text))) == 5


@pytest.mark.needs("cpu")
def test_pillow_images_become_tensors():
    image = library("PIL.Image")
    t = mt.as_tensor(image.new("RGB", (3, 2), (1, 2, 3)))
    assert t.dtype is mt.uint8 and t.shape == (2, 3, 3) and t[0, 0].tolist() == [1, 2, 3]
    assert image.fromarray(t.numpy()).size == (3, 2)


@pytest.mark.needs("addresses")
def test_arrays_of_pytorch_are_shared():
    torch = library("torch")
    theirs = torch.arange(6.0).reshape(2, 3)
    for ours in (mt.from_dlpack(theirs.t()), mt.as_tensor(theirs.t()), mt.asarray(theirs.t(), copy=False)):
        assert ours.stride() == (1, 3) and ours.data_ptr() == theirs.data_ptr()
    ours[0, 1] = 50
    assert theirs[1, 0] == 50 and mt.tensor(theirs).data_ptr() != theirs.data_ptr()
    back = torch.from_dlpack(mt.arange(4.0)[1:])
    assert back.tolist() == [1, 2, 3] and torch.utils.dlpack.from_dlpack(mt.to_dlpack(mt.ones(2))).tolist() == [1, 1]
    for name in ("bfloat16", "bool", "complex64", "float16", "uint8"):
        lent = mt.ones(3, dtype=getattr(mt, name))
        borrowed = torch.from_dlpack(lent)
        assert borrowed.dtype is getattr(torch, name) and borrowed.data_ptr() == lent.data_ptr()
        assert mt.from_dlpack(borrowed).dtype is lent.dtype and mt.from_dlpack(borrowed).data_ptr() == lent.data_ptr()
    with pytest.raises(BufferError):
        mt.from_dlpack(torch.ones(1, requires_grad=True))
