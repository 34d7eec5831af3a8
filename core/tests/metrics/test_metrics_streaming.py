"""The metrics over batches, devices and backends: what streams, merges, saves, stays on its device, and says what is wrong."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys

import pytest

import mortice as mt
from mortice import metrics
from mortice.backends import plugins

STRICT = "strict" in plugins.list_backends()
DEVICES = ["cpu", *(["strict", "strict_f32"] if STRICT else [])]


def sample(n=48, classes=4, device="cpu", seed=0):
    """Return scores that sum to one, labels, and numbers; the same values on each device."""
    g = mt.Generator().manual_seed(seed)
    scores = (mt.randint(0, 8, (n, classes), generator=g) / 4).softmax(1)
    target = mt.cat([mt.arange(classes), mt.randint(0, classes, (n - classes,), generator=g)])
    values = mt.randn(n, 2, generator=g)
    return scores.to(device), target.to(device), values.to(device), (values + 0.1 * values.flip(0)).to(device)


# What makes the metric, and what it is given: of scores, labels, values and predicted values.
KINDS = {
    "accuracy": (metrics.Accuracy, lambda s, t, v, w: (s, t)),
    "accuracy of probabilities": (metrics.Accuracy, lambda s, t, v, w: (s[:, 1], t == 1)),
    "top k": (lambda: metrics.TopKAccuracy(2), lambda s, t, v, w: (s, t)),
    "confusion matrix": (lambda: metrics.ConfusionMatrix(4), lambda s, t, v, w: (s.argmax(1), t)),
    "precision": (
        lambda: metrics.Precision("macro", num_classes=4, zero_division=0),
        lambda s, t, v, w: (s.argmax(1), t),
    ),
    "recall": (lambda: metrics.Recall("weighted", ignore_index=0, zero_division=0), lambda s, t, v, w: (s, t)),
    "f1": (lambda: metrics.F1Score(zero_division=0), lambda s, t, v, w: (s[:, 1], (t == 1).long())),
    "auc": (metrics.AUROC, lambda s, t, v, w: (s[:, 1], (t == 1).long())),
    "auc of classes": (lambda: metrics.AUROC(multi_class="ovo"), lambda s, t, v, w: (s, t)),
    "average precision": (metrics.AveragePrecision, lambda s, t, v, w: (s, t)),
    "roc": (metrics.ROC, lambda s, t, v, w: (s[:, 1], t == 1)),
    "precision recall": (metrics.PrecisionRecallCurve, lambda s, t, v, w: (s[:, 1], t == 1)),
    "log loss": (metrics.LogLoss, lambda s, t, v, w: (s, t)),
    "perplexity": (lambda: metrics.Perplexity(ignore_index=3), lambda s, t, v, w: (s.log(), t)),
    "mse": (metrics.MeanSquaredError, lambda s, t, v, w: (w, v)),
    "mae": (lambda: metrics.MeanAbsoluteError(multioutput="raw_values"), lambda s, t, v, w: (w, v)),
    "r2": (metrics.R2Score, lambda s, t, v, w: (w, v + 100)),
    "mean": (metrics.MeanMetric, lambda s, t, v, w: (v,)),
}


def near(a, b, tolerance=1e-5):
    a, b = (x if isinstance(x, tuple) else (x,) for x in (a, b))
    return len(a) == len(b) and all(
        x.shape == y.shape and mt.allclose(x.cpu().double(), y.cpu().double(), rtol=tolerance, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def batches(given, size=11):
    n = len(given[0])
    return [tuple(x[i : i + size] for x in given) for i in range(0, n, size)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_batches_give_what_all_at_once_gives_on_every_device(kind, device):
    make, choose = KINDS[kind]
    whole = make().update(*choose(*sample())).compute()
    given = choose(*sample(device=device))
    metric = make()
    values = [metric(*batch) for batch in batches(given)] if "auc" not in kind and kind != "average precision" else []
    if not values:
        for batch in batches(given):
            assert metric.update(*batch) is metric
    found = metric.compute()
    assert near(found, whole) and all(
        str(x.device).split(":")[0] == device for x in (found if isinstance(found, tuple) else (found,))
    )
    assert not values or near(values[0], make().update(*batches(given)[0]).compute(), 1e-12)
    metric.reset()
    with pytest.raises(RuntimeError, match=r"compute: expected a batch before; got none\. Call update\(\) first\."):
        metric.compute()
    metric.update(*given)
    assert near(metric.compute(), whole)


@pytest.mark.parametrize("device", DEVICES[:2])
@pytest.mark.parametrize("kind", KINDS)
def test_update_reads_nothing_back_from_the_device(kind, device):
    make, choose = KINDS[kind]
    given = choose(*sample(device=device))
    metric = make().update(*given)
    with mt.explain() as report:
        metric.update(*given)
    assert report.totals["to_host"] == 0, report.transfers


@pytest.mark.parametrize("kind", KINDS)
def test_states_merge_and_are_saved_across_backends(kind, tmp_path):
    make, choose = KINDS[kind]
    whole = make().update(*choose(*sample())).compute()
    first, *others = batches(choose(*sample()))
    places = [name for name in plugins.list_backends() if name in ("cpu_numpy", "cpu_cext")] + (
        ["strict:0"] if STRICT else []
    )
    metric, parts = make().update(*first), []
    for i, batch in enumerate(others):
        where = (
            {"backend": places[i % len(places)]}
            if places[i % len(places)].startswith("cpu")
            else {"device": "strict:0"}
        )
        parts.append(make().update(*(x.to(**where) for x in batch)))
    metric.merge_state(parts[0]).merge_state(iter(parts[1:]))
    assert near(metric.compute(), whole)
    mt.save(metric.state_dict(), tmp_path / "state.pt")
    again = make()
    assert again.state_dict() == {}
    again.load_state_dict(mt.load(tmp_path / "state.pt"))
    for same in (again, make().merge_state(metric.state_dict()), pickle.loads(pickle.dumps(metric))):
        assert near(same.compute(), metric.compute(), 1e-12)
    if STRICT:
        moved = metric.to("strict_f32").compute()
        assert near(moved, whole) and str((moved[0] if isinstance(moved, tuple) else moved).device) == "strict_f32"


def test_batches_of_several_backends_go_into_one_metric():
    metric = metrics.MetricCollection({"auc": metrics.AUROC(), "accuracy": metrics.Accuracy()})
    scores, target, _, _ = sample()
    pairs = batches((scores[:, 1], (target == 1).long()))
    for i, (s, t) in enumerate(pairs):
        where = ("cpu", *DEVICES[1:])[i % len(DEVICES)]
        metric.update(s.to(where), t.to(where))
    found = metric.compute()
    assert near(found["auc"], metrics.roc_auc(scores[:, 1], (target == 1).long()))
    assert near(found["accuracy"], metrics.accuracy(scores[:, 1], target == 1))
    other = metrics.MetricCollection({"auc": metrics.AUROC(), "accuracy": metrics.Accuracy()})
    other.load_state_dict(metric.state_dict())
    assert near(other.compute()["auc"], found["auc"], 1e-12)
    other.reset()
    assert near(other.merge_state(metric).compute()["auc"], found["auc"], 1e-12)
    assert set(metrics.MetricCollection([metrics.Accuracy(), metrics.F1Score()])(*pairs[0])) == {"Accuracy", "F1Score"}


def test_what_is_written_over_after_update_does_not_matter():
    score, target = mt.tensor([0.1, 0.9, 0.4]), mt.tensor([0, 1, 1])
    metric = metrics.AUROC().update(score, target)
    score.zero_()
    target.fill_(1)
    assert metric.compute().item() == 1.0


def test_weights_and_predictions_carry_no_gradients():
    logits = mt.randn(6, 3, requires_grad=True)
    found = metrics.log_loss(logits.softmax(1), mt.tensor([0, 1, 2, 0, 1, 2]))
    assert not found.requires_grad and found.dtype == mt.float64


def test_shapes_of_segmentation_and_of_language():
    scores, target = mt.rand(2, 3, 4, 5), mt.randint(0, 3, (2, 4, 5))
    right = (scores.argmax(1) == target).double().mean()
    assert near(metrics.accuracy(scores, target), right)
    assert metrics.confusion_matrix(scores, target).sum() == 40
    logits, tokens = mt.randn(2, 7, 11), mt.randint(0, 11, (2, 7))
    loss = mt.nn.functional.cross_entropy(logits.double().flatten(0, 1), tokens.flatten())
    assert near(metrics.perplexity(logits, tokens), loss.exp())
    tokens[0, :4] = -100
    loss = mt.nn.functional.cross_entropy(logits.double().flatten(0, 1), tokens.flatten())
    assert near(metrics.perplexity(logits, tokens, ignore_index=-100), loss.exp())
    assert metrics.perplexity(logits.bfloat16(), tokens, ignore_index=-100).dtype == mt.float64


def test_the_spread_of_far_off_numbers_survives_streaming():
    target = 1e8 + mt.randn(400, dtype=mt.float64)
    preds = target + 0.3
    metric = metrics.R2Score()
    for p, t in zip(preds.split(7), target.split(7), strict=True):
        metric.update(p, t)
    assert near(metric.compute(), metrics.r2(preds, target), 1e-6)
    assert abs(metric.compute().item() - (1 - 0.09 / target.var(correction=0).item())) < 1e-6


MISTAKES = [
    (lambda: metrics.roc_auc([1, 0, 1], [1, 0, 0]),
     "roc_auc: expected scores, floats that grow with the chance of the positive class; got mortice.int64, which looks like hard "
     "labels. Give probabilities, softmax(logits)[:, 1] or sigmoid(logit), from before any argmax or threshold."),
    (lambda: metrics.roc_auc(mt.rand(3, 2), [1, 0, 0]),
     "roc_auc: expected scores of the positive class (N,); got both columns (3, 2). Give preds[:, 1]; with the other column the "
     "result would be of class 0: 1 - AUC."),
    (lambda: metrics.roc_auc(mt.rand(3, 3), [1, 0, 2]),
     "roc_auc: expected multi_class for scores of several classes to be one of 'ovr', 'ovo'; got None."),
    (lambda: metrics.roc_auc(mt.rand(3, 3) + 1, [1, 0, 2], multi_class="ovr"),
     "roc_auc: expected probabilities, rows that sum to one; got others. Give softmax(logits, 1)."),
    (lambda: metrics.roc_auc(mt.ones(3, 3) / 3, [1, 0, 1], multi_class="ovr"),
     "roc_auc: expected targets of each of the 3 classes that there are scores of, and no others; got classes [0, 1]."),
    (lambda: metrics.f1([0, 2, 1], [0, 1, 1]),
     "f1: expected labels from 0 to 1; 1 are not. For more than two classes choose average='micro', 'macro', 'weighted' or None."),
    (lambda: metrics.Precision("macro").update(mt.tensor([1]), mt.tensor([1])),
     "precision: expected num_classes, which labels do not say; got None. Give it to Precision."),
    (lambda: metrics.ConfusionMatrix(2).update(mt.tensor([1, -1]), mt.tensor([1, 5])).compute(),
     "confusion_matrix: expected labels from 0 to 1; 1 are not. Give ConfusionMatrix the right num_classes."),
    (lambda: metrics.accuracy(mt.rand(3), mt.rand(3)),
     "accuracy: expected targets to be labels, integers or bools; got mortice.float32. Cast them: .long()."),
    (lambda: metrics.accuracy(mt.tensor([2.5, -1.0, 0.5]), [1, 0, 1]),
     "accuracy: expected probabilities of the positive class, from 0 to 1; 2 are not. Give sigmoid(logits), or threshold=0 for "
     "logits."),
    (lambda: metrics.f1(mt.tensor([math.nan, 0.5]), [1, 0]),
     "f1: expected probabilities of the positive class, from 0 to 1; 1 are not. Give sigmoid(logits), or threshold=0 for logits."),
    (lambda: metrics.accuracy(mt.tensor([1.0, 0.0, 1.0]), [1, 0, 2]),
     "accuracy: expected targets 0 and 1 for floats of their shape, probabilities of one class; 1 are others. Give scores (N, C), "
     "or integers as labels."),
    (lambda: metrics.precision(mt.tensor([0.5, 0.2]), [1, 0], "macro", num_classes=3),
     "precision: expected scores of 3 classes; got 2. Give Precision the right num_classes."),
    (lambda: metrics.accuracy(mt.rand(3, 4), mt.zeros(4, dtype=mt.int64)),
     "accuracy: expected labels of the target's shape, or scores with one more dimension, the classes, at 1; got preds (3, 4) and "
     "target (4,)."),
    (lambda: metrics.accuracy([1, 0], [1, 0], sample_weight=[1.0]),
     "accuracy: expected sample_weight of shape (2,); got (1,)."),
    (lambda: metrics.log_loss(mt.tensor([[2.0, -1.0]]), [0]),
     "log_loss: expected probabilities from 0 to 1; 2 are not. Give softmax or sigmoid of logits."),
    (lambda: metrics.top_k_accuracy(mt.rand(2, 3), [0, 3], 1),
     "top_k_accuracy: expected labels below the number of columns; 1 are not."),
    (lambda: metrics.perplexity(mt.rand(2, 3), [0, 3]), "perplexity: expected tokens below the vocabulary's size; 1 are not."),
    (lambda: metrics.precision([1], [1], "samples"),
     "precision: expected average to be one of 'binary', 'micro', 'macro', 'weighted', None; got 'samples'."),
    (lambda: metrics.Precision("macro", num_classes=3).merge_state(metrics.Precision("macro", num_classes=4)),
     "merge_state: expected Precision(average='macro', num_classes=3, pos_label=1, threshold=0.5, zero_division='warn'); got "
     "Precision(average='macro', num_classes=4, pos_label=1, threshold=0.5, zero_division='warn'). Give both the same options."),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_are_told(number):
    call, text = MISTAKES[number]
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize("device", DEVICES)
def test_weighted_pairs_are_counted_in_blocks(device, monkeypatch):
    from mortice.metrics import counted

    _, target, _, _ = sample(n=100, device=device)
    preds, weight = (target + mt.arange(100, device=device) % 3) % 4, mt.arange(100, device=device) / 4
    whole = metrics.confusion_matrix(preds, target, sample_weight=weight)
    monkeypatch.setattr(counted, "_ROWS", 7)
    assert near(metrics.confusion_matrix(preds, target, sample_weight=weight), whole) and whole.sum() == weight.sum()
    ones = mt.ones(100, device=device)
    assert near(metrics.confusion_matrix(preds, target, sample_weight=ones), metrics.confusion_matrix(preds, target))
    many = metrics.confusion_matrix(preds, target, 1100)
    assert many[:4, :4].tolist() == metrics.confusion_matrix(preds, target).tolist() and many.sum() == 100


def test_logits_of_one_class_have_their_own_threshold():
    logits, target = mt.tensor([2.5, -1.0, 0.5, -0.1]), mt.tensor([1, 0, 0, 0])
    assert (
        metrics.accuracy(logits, target, threshold=0).item()
        == metrics.accuracy(logits.sigmoid(), target).item()
        == 0.75
    )


def test_ignored_targets_do_not_count():
    preds, target = mt.tensor([0, 1, 2, 1]), mt.tensor([0, -1, 2, 2])
    assert near(metrics.accuracy(preds, target, ignore_index=-1), mt.tensor(2 / 3))
    assert metrics.confusion_matrix(preds, target, ignore_index=-1).tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 1]]
    scores = mt.eye(4)[preds]
    assert near(metrics.top_k_accuracy(scores, target, 1, ignore_index=-1), mt.tensor(2 / 3))
    found = metrics.precision(preds, target, "macro", ignore_index=-1, zero_division=math.nan)
    assert near(found, mt.tensor(2 / 3))  # classes 0, 1 and 2: 1, 0 and 1


def test_they_work_without_numpy_and_are_not_imported_with_mortice():
    code = (
        "import sys; sys.modules['numpy'] = None; import mortice as mt; assert 'mortice.metrics' not in sys.modules;"
        "print(mt.metrics.roc_auc([.1, .4, .35, .8], [0, 0, 1, 1]).item(), mt.metrics.f1([0, 1], [0, 1]).item())"
    )
    if "cpu_cext" not in plugins.list_backends():
        pytest.skip("cpu_cext is not installed: no backend works without NumPy here")
    env = {**os.environ, "MORTICE_BACKEND": "cpu_cext"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)
    assert done.stdout == "0.75 1.0\n", done.stderr
