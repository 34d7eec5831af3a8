"""The metrics against scikit-learn's, over random cases: ties, missing classes, weights, degenerate inputs."""

from __future__ import annotations

import math
import warnings

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed: metrics are not compared with scikit-learn's")
sk = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed: metrics are not compared with its")

import mortice as mt  # noqa: E402
from mortice import metrics  # noqa: E402

CASES = 50  # of each kind; each is its own seed


def draw(seed, classes):
    """Return labels, predicted labels, scores with ties (rows that sum to one), weights that are exact in binary."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(classes * 3, 60))
    target = rng.integers(0, classes, n)
    target[:classes] = np.arange(classes)  # scikit-learn's scores need all classes
    scores = rng.integers(1, 6, (n, classes)).astype(float) if seed % 2 else rng.uniform(0.1, 1, (n, classes))
    scores /= scores.sum(1, keepdims=True)
    scores = np.round(scores, 12)
    return target, rng.integers(0, classes, n), scores, rng.integers(1, 16, n) / 8 if seed % 3 else None


def host(found):
    return found.cpu() if isinstance(found, mt.Tensor) else found


def agree(found, want):
    assert np.allclose(np.asarray(host(found)), np.asarray(want), rtol=1e-12, atol=1e-13, equal_nan=True), (found, want)


def quietly(call, *args, **options):
    """Call; return the result and which kinds of warning came."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = call(*args, **options)
    return result, {w.category.__name__ for w in seen}


@pytest.mark.parametrize("seed", range(CASES))
def test_labels(seed):
    classes = 2 + seed % 5
    target, said, _, weight = draw(seed, classes)
    if seed % 4 == 1:  # classes that nobody predicts, and classes that are not there
        said, target = np.minimum(said, classes - 2), np.maximum(target, 1)
    p, t, w = mt.tensor(said), mt.tensor(target), None if weight is None else mt.tensor(weight)
    known = list(range(max(said.max(), target.max(), 1) + 1))
    agree(metrics.accuracy(p, t, sample_weight=w), sk.accuracy_score(target, said, sample_weight=weight))
    for normalize in (None, "true", "pred", "all"):
        agree(
            metrics.confusion_matrix(p, t, sample_weight=w, normalize=normalize),
            sk.confusion_matrix(target, said, sample_weight=weight, normalize=normalize, labels=known),
        )
    for ours, theirs in (
        (metrics.precision, sk.precision_score),
        (metrics.recall, sk.recall_score),
        (metrics.f1, sk.f1_score),
    ):
        for average in ("micro", "macro", "weighted", None, *(["binary"] if classes == 2 else [])):
            for zero in ("warn", (0, 1, math.nan)[seed % 3]):
                labels = {"labels": known} if average is None else {}
                want, warned = quietly(
                    theirs, target, said, sample_weight=weight, average=average, zero_division=zero, **labels
                )
                found, told = quietly(ours, p, t, average, sample_weight=w, zero_division=zero)
                agree(found, want)
                assert told == warned, (ours, average, zero)
    if classes == 2:
        agree(metrics.f1(p, t, pos_label=0, zero_division=0), sk.f1_score(target, said, pos_label=0, zero_division=0))


@pytest.mark.parametrize("seed", range(CASES))
def test_scores_of_two_classes(seed):
    target, _, scores, weight = draw(seed, 2)
    score = scores[:, 1]
    p, t, w = mt.tensor(score), mt.tensor(target), None if weight is None else mt.tensor(weight)
    agree(metrics.roc_auc(p, t, sample_weight=w), sk.roc_auc_score(target, score, sample_weight=weight))
    agree(
        metrics.average_precision(p, t, sample_weight=w),
        sk.average_precision_score(target, score, sample_weight=weight),
    )
    agree(
        metrics.average_precision(p, t, sample_weight=w, pos_label=0),
        sk.average_precision_score(target, score, sample_weight=weight, pos_label=0),
    )
    for drop in (True, False):
        options = {"sample_weight": weight, "drop_intermediate": drop}
        for found, want in zip(
            metrics.roc_curve(p, t, sample_weight=w, drop_intermediate=drop),
            sk.roc_curve(target, score, **options),
            strict=True,
        ):
            agree(found, want)
        for found, want in zip(
            metrics.precision_recall_curve(p, t, sample_weight=w, drop_intermediate=drop),
            sk.precision_recall_curve(target, score, **options),
            strict=True,
        ):
            agree(found, want)
    agree(metrics.log_loss(p, t, sample_weight=w), sk.log_loss(target, y_proba=score, sample_weight=weight))
    agree(metrics.accuracy(p, t, sample_weight=w), sk.accuracy_score(target, score > 0.5, sample_weight=weight))


@pytest.mark.parametrize("seed", range(CASES))
def test_scores_of_several_classes(seed):
    classes = 3 + seed % 4
    target, _, scores, weight = draw(seed, classes)
    p, t, w = mt.tensor(scores), mt.tensor(target), None if weight is None else mt.tensor(weight)
    for average in ("macro", "weighted", "micro", None):
        agree(
            metrics.roc_auc(p, t, sample_weight=w, average=average, multi_class="ovr"),
            sk.roc_auc_score(target, scores, sample_weight=weight, average=average, multi_class="ovr"),
        )
        agree(
            metrics.average_precision(p, t, sample_weight=w, average=average),
            sk.average_precision_score(target, scores, sample_weight=weight, average=average),
        )
    for average in ("macro", "weighted"):
        agree(
            metrics.roc_auc(p, t, average=average, multi_class="ovo"),
            sk.roc_auc_score(target, scores, average=average, multi_class="ovo"),
        )
    for k in range(1, classes):
        agree(
            metrics.top_k_accuracy(p, t, k, sample_weight=w),
            sk.top_k_accuracy_score(target, scores, k=k, sample_weight=weight),
        )
    agree(metrics.log_loss(p, t, sample_weight=w), sk.log_loss(target, y_proba=scores, sample_weight=weight))
    logits = mt.tensor(scores).log() + 3
    agree(
        metrics.perplexity(logits, t, sample_weight=w),
        math.exp(sk.log_loss(target, y_proba=scores, sample_weight=weight)),
    )


@pytest.mark.parametrize("seed", range(CASES))
def test_numbers(seed):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(2, 40)), *([3] if seed % 2 else []))
    target, said = rng.normal(5, 2, shape), rng.normal(5, 2, shape)
    weight = rng.uniform(0.1, 2, shape[0]) if seed % 3 else None
    if seed % 5 == 0:
        target[...] = 1.5
    if seed % 10 == 0:
        said[...] = target
    p, t, w = mt.tensor(said), mt.tensor(target), None if weight is None else mt.tensor(weight)
    for ours, theirs in (
        (metrics.mean_squared_error, sk.mean_squared_error), (metrics.mean_absolute_error, sk.mean_absolute_error),
        (metrics.r2, sk.r2_score),
    ):  # fmt: skip
        for how in ("uniform_average", "raw_values", *(["variance_weighted"] if ours is metrics.r2 else [])):
            want = theirs(target, said, sample_weight=weight, multioutput=how)
            if ours is metrics.r2 and seed % 5 == 0 and weight is not None:
                continue  # the spread of constants is rounding in both: 1e-32, or none at all
            agree(ours(p, t, sample_weight=w, multioutput=how), want)


# ---- degenerate inputs ----


def test_what_sklearn_warns_of_warns_here():
    scores, ones = [0.2, 0.7, 0.4], [1, 1, 1]
    for call, want in (
        (lambda: metrics.roc_auc(scores, ones), lambda: sk.roc_auc_score(ones, scores)),
        (lambda: metrics.roc_curve(scores, ones)[0], lambda: sk.roc_curve(ones, scores)[0]),
        (lambda: metrics.roc_curve(scores, [0, 0, 0])[1], lambda: sk.roc_curve([0, 0, 0], scores)[1]),
        (lambda: metrics.average_precision(scores, [0, 0, 0]), lambda: sk.average_precision_score([0, 0, 0], scores)),
        (lambda: metrics.r2([1.0], [2.0]), lambda: sk.r2_score([2.0], [1.0])),
        (lambda: metrics.top_k_accuracy([[0.1, 0.2, 0.7]] * 3, [0, 1, 2], 3),
         lambda: sk.top_k_accuracy_score([0, 1, 2], [[0.1, 0.2, 0.7]] * 3, k=3)),
        (lambda: metrics.log_loss([[0.5, 0.3], [0.2, 0.2]], [0, 1]),
         lambda: sk.log_loss([0, 1], y_proba=np.array([[0.5, 0.3], [0.2, 0.2]], "f4"))),
    ):  # fmt: skip
        (found, told), (wanted, warned) = quietly(call), quietly(want)
        assert told == warned and told, (told, warned)
        assert np.allclose(np.asarray(host(found)), wanted, equal_nan=True, rtol=1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs", "arguments"),
    [
        (metrics.accuracy, sk.accuracy_score, ([], [])),
        (metrics.accuracy, sk.accuracy_score, ([0, 1], [0, 1, 1])),
        (metrics.f1, sk.f1_score, ([0, 1, 2], [0, 1, 2])),
        (metrics.roc_auc, sk.roc_auc_score, ([0.5, math.nan], [0, 1])),
        (metrics.roc_auc, sk.roc_auc_score, ([[0.5, 0.5], [0.5, 0.5]], [0, 1])),
        (metrics.roc_auc, sk.roc_auc_score, ([[0.5, 0.2, 0.3], [0.5, 0.1, 0.4]], [0, 1])),
        (metrics.roc_curve, sk.roc_curve, ([0.1, 0.2, 0.3], [0, 1, 2])),
        (metrics.log_loss, lambda t, p: sk.log_loss(t, y_proba=p), ([1.5, 0.2], [0, 1])),
        (metrics.mean_squared_error, sk.mean_squared_error, ([1.0], [1.0, 2.0])),
    ],
)  # fmt: skip
def test_what_sklearn_refuses_is_refused(ours, theirs, arguments):
    preds, target = arguments
    with pytest.raises(ValueError):
        theirs(target, preds)
    with pytest.raises(ValueError, match=r"^\w+: expected "):
        ours(mt.tensor(preds), mt.tensor(target, dtype=None if target else mt.int64))


# ---- the notes: scikit-learn takes the tensors, and which column to give it (ME01) ----


@pytest.mark.needs("cpu")
@pytest.mark.seed("ME01")
def test_sklearn_takes_tensors_and_the_other_column_gives_one_minus_auc():
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed: its data are not used")
    images, digits = datasets.load_digits(return_X_y=True)
    kept = digits < 2
    x, y = mt.tensor(images[kept] / 16, dtype=mt.float32), mt.tensor(digits[kept])
    mt.manual_seed(0)
    model = mt.nn.Linear(64, 2)
    model.weight.data[:, 1:] += 0.02 * mt.randn(2, 63)
    probability = model(x).softmax(1)
    assert probability.requires_grad
    auc = metrics.roc_auc(probability[:, 1], y)
    assert sk.roc_auc_score(y, probability[:, 1].detach()) == pytest.approx(auc.item(), abs=1e-12)
    assert sk.roc_auc_score(y, probability[:, 1].detach().numpy()) == pytest.approx(auc.item(), abs=1e-12)
    with pytest.warns(UserWarning, match="preds look like the probability of the NEGATIVE class"):
        other = metrics.roc_auc(probability[:, 0], y)
    assert other.item() == pytest.approx(1 - auc.item(), abs=1e-12)
    assert sk.confusion_matrix(y, probability.argmax(1)).tolist() == metrics.confusion_matrix(probability, y).tolist()
