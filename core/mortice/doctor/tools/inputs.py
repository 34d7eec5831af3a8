"""Is what goes into the model fit to be learnt from? Range, layout, dtype, what repeats, what gives the label away."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice import Tensor
from mortice.doctor.events import all_tensors
from mortice.doctor.mistakes import checks
from mortice.doctor.tools.result import Result, count, listed
from mortice.doctor.tools.same import equal_pairs, few_possible
from mortice.doctor.tools.sandbox import apart, first_batches, real
from mortice.utils.data import DataLoader

TARGETS = ("label", "labels", "target", "targets", "y")
ENOUGH = 20  # samples, before anything is said about how they are spread
SAMPLES, ELEMENTS = 2048, 1 << 24  # at most, where samples are compared with one another
FEATURES = 512
IGNORED = (-100, 255)  # labels that losses leave out: cross_entropy's default, and a custom of segmentation
CHANNELS = (1, 3, 4)


class Inputs(Result):
    """What `check_inputs` returns.

    Attributes:
        batches, samples: how many were looked at.
        fields: (name, shape of a batch, dtype, least, largest) of each tensor in a batch.
    """

    def __init__(self) -> None:
        super().__init__("check_inputs")
        self.batches = self.samples = 0
        self.fields: list[tuple[str, tuple[int, ...], str, float, float]] = []

    def lines(self) -> list[str]:
        said = [f"{count(self.batches, 'batch')}, {count(self.samples, 'sample')}"]
        for name, shape, dtype, low, high in self.fields:
            said.append(f"{name}: {dtype} {shape}, from {low:.4g} to {high:.4g}")
        return said


def check_inputs(data: Any, *, classes: int | None = None, batches: int = 16) -> Inputs:
    """Look at a batch, or at the first batches of a loader, as a model would see them.

    Args:
        data: a batch (inputs, targets), a dict, a tensor of inputs alone, or a loader of such.
        classes: how many the model has outputs for; labels are checked against it.
        batches: how many of a loader's to look at.
    """
    result = Inputs()
    with apart(data), mortice.no_grad():
        taken = first_batches("check_inputs", data, batches)
        if not taken:
            raise ValueError("check_inputs: expected a loader with batches; got one without.")
        parts = [split(batch) for batch in taken]
        result.batches = len(taken)
        inputs = {name: _joined([p[0][name] for p in parts if name in p[0]]) for name in parts[0][0]}
        target = _joined([p[1] for p in parts if p[1] is not None]) if parts[0][1] is not None else None
        result.samples = next((t.shape[0] for t in (*inputs.values(), target) if t is not None and t.ndim), 0)
        for name, t in (*inputs.items(), ("targets", target)):
            if t is not None and t.numel():
                finite = real(t)[real(t).isfinite()]
                low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (math.nan, math.nan)
                result.fields.append((name, tuple((parts[0][0].get(name, parts[0][1])).shape), str(t.dtype), low, high))
        _judge_values(result, inputs, target)
        for name, x in inputs.items():
            _judge_layout(result, name, x)
        _judge_dtypes(result, inputs, target)
        _judge_spread(result, inputs, target)
        _judge_samples(result, inputs, target, data)
        _judge_labels(result, target, classes)
        _judge_leakage(result, inputs, target)
        if isinstance(data, DataLoader) and target is not None:
            _judge_order(result, [p[1] for p in parts], data)
    return result.told()


def split(batch: Any) -> tuple[dict[str, Any], Any]:
    """Return the inputs of a batch by name, and its targets, None where it has none."""
    if isinstance(batch, Tensor):
        return {"inputs": batch}, None
    if isinstance(batch, dict):
        tensors = {k: v for k, v in batch.items() if isinstance(v, Tensor)}
        target = next((k for k in TARGETS if k in tensors), None)
        return {str(k): v for k, v in tensors.items() if k != target}, tensors.get(target)
    items = list(batch)
    if len(items) > 1 and isinstance(items[-1], Tensor):
        inputs, target = all_tensors(items[:-1]), items[-1]
    else:
        inputs, target = all_tensors(items), None
    named = {"inputs": inputs[0]} if len(inputs) == 1 else {f"inputs[{i}]": t for i, t in enumerate(inputs)}
    return named, target


def _joined(tensors: list[Any]) -> Any:
    """Return batches as one; those like the first only, where they differ in more than their length."""
    first = tensors[0]
    alike, elements = [], 0
    for t in tensors:
        elements += t.numel()
        if t.shape[1:] == first.shape[1:] and t.ndim and t.dtype == first.dtype and (elements <= ELEMENTS or not alike):
            alike.append(t.detach())
    return mortice.cat(alike) if alike else first.detach()


def _judge_values(result: Inputs, inputs: dict[str, Any], target: Any) -> None:
    for name, t in (*inputs.items(), ("targets", target)):
        if t is None or not t.is_floating_point() or not t.ndim or not t.numel():
            continue
        bad = ~t.isfinite()
        n = int(bad.sum())
        if n:
            rows = bad.reshape(t.shape[0], -1).any(1).nonzero().flatten().tolist()
            nans = int(t.isnan().sum())
            kind = "NaN" if nans == n else "infinite" if not nans else "NaN or infinite"
            where = f"; all in feature {columns[0]}" if len(columns := _bad_columns(bad)) == 1 else ""
            result.find(
                checks.NotANumber,
                f"{name}: {count(n, 'value')} of {t.numel()} {'is' if n == 1 else 'are'} {kind}, in {count(len(rows), 'sample')} "
                f"(first: {listed(map(str, rows), 3)}){where}.",
                field=name, values=n, samples=len(rows),
            )  # fmt: skip


def _bad_columns(bad: Any) -> list[int]:
    return bad.any(0).nonzero().flatten().tolist() if bad.ndim == 2 else []  # type: ignore[no-any-return]


def _is_image(x: Any) -> bool:
    return x.ndim == 4 and min(x.shape[2:]) > 1 and (x.shape[1] in CHANNELS or x.shape[3] in CHANNELS)


def _judge_layout(result: Inputs, name: str, x: Any) -> None:
    if x.ndim == 4 and x.shape[3] in CHANNELS and x.shape[1] not in CHANNELS and min(x.shape[1:3]) > 4:
        result.find(
            checks.WrongLayout,
            f"{name} of shape {tuple(x.shape)} look like (N, H, W, C): the last dim is {x.shape[3]}.",
            shape=str(tuple(x.shape)),
        )


def _judge_dtypes(result: Inputs, inputs: dict[str, Any], target: Any) -> None:
    for name, x in inputs.items():
        if _is_image(x) and not x.is_floating_point() and not x.is_complex():
            result.find(
                checks.WrongDtype, f"{name} are images of {x.dtype}: layers take floats.",
                remedy="Use x.float() / 255, or ToTensor in the transform.", dtype=str(x.dtype),
            )  # fmt: skip
        elif x.dtype == mortice.float64 and mortice.get_default_dtype() != mortice.float64:
            result.find(
                checks.WrongDtype, f"{name} are float64, a model's parameters {mortice.get_default_dtype()}.", level="info",
                remedy="Use x.float(); from_numpy keeps NumPy's float64.", dtype=str(x.dtype),
            )  # fmt: skip
    if target is None or not target.ndim or target.shape[0] < 2:
        return
    whole = not target.is_floating_point() and not target.is_complex()
    if whole and target.ndim == 2 and target.shape[1] == 1 and target.dtype != mortice.bool:
        result.find(
            checks.WrongDtype,
            f"targets are whole numbers of shape {tuple(target.shape)}: cross_entropy reads one class a sample from (N,), and "
            "losses of numbers want floats.",
            remedy="Use y.squeeze(1) for classes, y.float() for numbers.", dtype=str(target.dtype),
        )  # fmt: skip
    elif target.is_floating_point() and target.ndim == 1 and target.shape[0] >= ENOUGH:
        values = sorted(set(target.tolist()))
        if 2 < len(values) <= 100 and values == [float(i) for i in range(len(values))]:
            result.find(
                checks.WrongDtype,
                f"targets are floats and hold the {len(values)} whole numbers from 0 to {len(values) - 1}: classes?",
                level="info", remedy="If they are classes: y.long(), and cross_entropy.", dtype=str(target.dtype),
            )  # fmt: skip


def _judge_spread(result: Inputs, inputs: dict[str, Any], target: Any) -> None:
    for name, x in inputs.items():
        if x.ndim < 2 or not x.is_floating_point() or x.shape[0] < 2 or not x.numel():
            continue
        low, high = next((f[3], f[4]) for f in result.fields if f[0] == name)
        if math.isnan(low):
            continue
        if _is_image(x):
            if high > 10 and low >= 0 or max(high, -low) > 20:
                scale = 255 if 16 < high <= 255 else round(high)
                result.find(
                    checks.NotScaled, f"{name} are images with values from {low:.4g} to {high:.4g}.",
                    remedy=f"Divide them by {scale} (ToTensor does it for bytes), then normalise.", largest=high,
                )  # fmt: skip
        elif x.ndim == 2:
            _judge_features(result, name, x)
    if target is not None and target.is_floating_point() and target.numel() >= ENOUGH:
        spread, centre = _spread(target.reshape(-1, 1))
        if max(spread[0], abs(centre[0])) > 1e3:
            result.find(
                checks.NotScaled, f"targets are around {centre[0]:.3g} and deviate by {spread[0]:.3g}.",
                remedy="Train on (y - mean) / deviation, and turn predictions back, or take the logarithm.",
                largest=centre[0],
            )  # fmt: skip


def _spread(x: Any) -> tuple[list[float], list[float]]:
    x = real(x).nan_to_num(0.0, 0.0, 0.0)
    return x.std(0).tolist(), x.mean(0).tolist()


def _judge_features(result: Inputs, name: str, x: Any) -> None:
    spreads, centres = _spread(x)
    sizes = [max(s, abs(c)) for s, c in zip(spreads, centres)]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    moving = [i for i, s in enumerate(spreads) if s > 1e-6 * max(1.0, abs(centres[i]))]
    least = min(moving, key=spreads.__getitem__) if moving else largest
    if sizes[largest] > 100 or (moving and spreads[largest] > 10 and spreads[largest] > 1e3 * spreads[least]):
        beside = f", feature {least} deviates by {spreads[least]:.2g}" if least != largest else ""
        result.find(
            checks.NotScaled,
            f"{name}: feature {largest} is around {centres[largest]:.4g} and deviates by {spreads[largest]:.2g}{beside}.",
            remedy="Subtract the training set's mean of each feature and divide by its deviation.",
            feature=largest, size=sizes[largest],
        )  # fmt: skip


def _judge_samples(result: Inputs, inputs: dict[str, Any], target: Any, data: Any) -> None:
    """Look for what is the same for all samples, and for samples that are the same."""
    for name, x in inputs.items():
        n = x.shape[0] if x.ndim else 0
        if n < 8 or x.ndim < 2 or not x.numel():
            continue
        rows = x.reshape(n, -1)
        constant = (rows == rows[:1]).all(0)
        n_constant = int(constant.sum())
        if n_constant == rows.shape[1]:
            # A mask that masks nothing is no mistake, nor are positions.
            if x.is_floating_point() or len(inputs) == 1:
                result.find(checks.ConstantFeatures, f"{name}: all {n} samples are the same.")
            continue
        if x.ndim == 2 and n >= ENOUGH and n_constant:
            which = constant.nonzero().flatten().tolist()
            result.find(
                checks.ConstantFeatures,
                f"{name}: {count(n_constant, 'feature')} of {x.shape[1]} {'is' if n_constant == 1 else 'are'} the same in all "
                f"{n} samples: {listed(map(str, which))}.",
                level="warning" if x.shape[1] <= 20 else "info", features=n_constant,
            )  # fmt: skip
        elif _is_image(x) and x.shape[1] in CHANNELS[1:]:
            flat = [c for c, same in enumerate((x.amax((0, 2, 3)) == x.amin((0, 2, 3))).tolist()) if same]
            if flat:
                result.find(
                    checks.ConstantFeatures, f"{name}: channel {listed(map(str, flat))} of {x.shape[1]} is constant."
                )
    if len(inputs) == 1 and not _draws_again(data):
        (x,) = inputs.values()
        _judge_repeats(result, x, target)


def _draws_again(data: Any) -> bool:
    """Tell whether a loader may hand out a sample twice on purpose."""
    sampler = getattr(data, "sampler", None)
    return bool(getattr(sampler, "replacement", False))


def _judge_repeats(result: Inputs, x: Any, target: Any) -> None:
    n = min(x.shape[0] if x.ndim else 0, SAMPLES)
    if n < 8 or x.ndim < 2 or x.is_complex() or not x.numel():
        return
    rows = x[:n].reshape(n, -1)
    if few_possible(rows, n):
        return
    pairs = equal_pairs(rows)
    if not pairs:
        return
    labels = target.tolist() if target is not None and target.ndim == 1 and target.shape[0] >= n else None
    i, j = pairs[0]
    against = [(i, j) for i, j in pairs if labels is not None and labels[i] != labels[j]]
    result.find(
        checks.Duplicates, f"{len(pairs)} of {n} samples come more than once: sample {j} is sample {i}.",
        level="warning" if len(pairs) > max(2, n // 20) else "info", repeats=len(pairs),
    )  # fmt: skip
    if against:
        i, j = against[0]
        result.find(
            checks.Contradictions,
            f"{count(len(against), 'pair')} of equal samples {'has' if len(against) == 1 else 'have'} different labels: samples {i} "
            f"and {j} are the same, their labels are {labels[i]} and {labels[j]}.",  # type: ignore[index]
            pairs=len(against),
        )  # fmt: skip


def _judge_labels(result: Inputs, target: Any, classes: int | None) -> None:
    if target is None or target.is_floating_point() or target.is_complex() or target.dtype == mortice.bool:
        return
    if not target.ndim or not target.numel():
        return
    values = [v for v in target.unique().tolist() if v not in IGNORED or (v == 255 and target.ndim == 1)]
    if not values:
        return
    low, high = min(values), max(values)
    if classes is not None and (low < 0 or high >= classes):
        result.find(
            checks.LabelsOutOfRange, f"Labels go from {low} to {high}; {classes} classes are 0 to {classes - 1}.",
            level="error", least=low, largest=high,
        )  # fmt: skip
    elif low < 0 and values not in ([-1, 1], [-1, 0, 1]):
        result.find(
            checks.LabelsOutOfRange, f"Labels go from {low} to {high}: negative ones are no classes.", level="error",
            remedy="Number the classes from 0; give ignore_index to the loss if the negative ones are to be left out.",
            least=low, largest=high,
        )  # fmt: skip
    elif (
        low == 1
        and values == list(range(1, high + 1))
        and 1 < high <= 1000
        and target.numel() >= max(ENOUGH, 5 * high)
        and target.ndim == 1
    ):
        result.find(
            checks.LabelsOutOfRange, f"Labels go from 1 to {high} and none of {target.numel()} is 0.",
            remedy=f"Number the classes from 0 (y - 1) for {high} outputs.", least=low, largest=high,
        )  # fmt: skip


def _judge_leakage(result: Inputs, inputs: dict[str, Any], target: Any) -> None:
    if target is None or not target.ndim or target.is_complex():
        return
    for name, x in inputs.items():
        if (
            x.shape == target.shape
            and x.ndim > 1
            and not x.is_floating_point()
            and x.numel() > 64
            and bool((x == target).all())
        ):
            result.find(
                checks.LabelLeakage, f"targets are the same as {name}: the model has only to copy them.",
                remedy="For the next token give inputs x[:, :-1] and targets x[:, 1:].",
            )  # fmt: skip
    y = target.reshape(-1) if target.ndim == 2 and target.shape[1] == 1 else target
    if y.ndim != 1 or y.shape[0] < ENOUGH:
        return
    labels = y.tolist()
    kinds = len(set(labels))
    for name, x in inputs.items():
        if x.ndim != 2 or x.shape[0] != len(labels) or not 2 <= x.shape[1] <= FEATURES or kinds < 2 or x.is_complex():
            continue
        columns = x.t().tolist()
        told = [(i, how) for i, column in enumerate(columns) if (how := _gives_away(column, labels, kinds))]
        sure = [(i, how) for i, how in told if how != "separates"]
        if sure:
            i, how = sure[0]
            also = f" So do {listed([str(k) for k, _ in sure[1:]])}." if len(sure) > 1 else ""
            result.find(
                checks.LabelLeakage, f"{name}: feature {i} {how} in all {len(labels)} samples.{also}", feature=i
            )
        elif len(told) == 1 and len(labels) >= 100 and x.shape[1] >= 4:
            i = told[0][0]
            result.find(
                checks.LabelLeakage,
                f"{name}: feature {i} alone separates the two classes in all {len(labels)} samples.", level="info",
                remedy="If it is known only after the label is, leave it out.", feature=i,
            )  # fmt: skip


def _gives_away(column: list[Any], labels: list[Any], kinds: int) -> str:
    """Say how a feature tells the label: it equals it, stands for it, or "separates" two classes; empty if it does not."""
    if column == labels:
        return "equals the label"
    if kinds <= max(2, len(labels) // ENOUGH):
        codes: dict[Any, Any] = {}
        if all(codes.setdefault(v, label) == label for v, label in zip(column, labels)):
            if len(codes) == kinds:
                return "has one value for each label"
        if kinds == 2:
            a, b = sorted(set(labels))
            first = [v for v, label in zip(column, labels) if label == a]
            second = [v for v, label in zip(column, labels) if label == b]
            return "separates" if max(first) < min(second) or max(second) < min(first) else ""
        return ""
    low, high = min(column), max(column)
    if not high > low:
        return ""
    y0, y1 = labels[column.index(low)], labels[column.index(high)]
    slope, span = (y1 - y0) / (high - low), max(labels) - min(labels)
    near = all(abs(y0 + slope * (v - low) - label) <= 1e-5 * span for v, label in zip(column, labels))
    return "is the label, scaled and shifted," if near and slope else ""


def _judge_order(result: Inputs, targets: list[Any], loader: Any) -> None:
    labels = [t.tolist() for t in targets if t.ndim == 1 and not t.is_floating_point() and t.shape[0] >= 4]
    if len(labels) < 2 or len(labels) != len(targets):
        return
    single = sum(len(set(batch)) == 1 for batch in labels)
    seen = {v for batch in labels for v in batch}
    flat = [v for batch in labels for v in batch]
    ordered = flat == sorted(flat) and len(seen) > 2
    if single <= 0.8 * len(labels) and not ordered:
        return
    if len(seen) < 2:
        seen |= _others(loader)
    if len(seen) < 2:
        return
    result.find(
        checks.NotShuffled,
        f"{single} of the first {len(labels)} batches hold a single class, of {len(seen)} that there are"
        + ("; labels come in ascending order." if ordered else "."),
        single=single, batches=len(labels),
    )  # fmt: skip


def _others(loader: Any) -> set[Any]:
    """Return labels of items that are spread over a loader's dataset."""
    dataset = loader.dataset
    try:
        n = len(dataset)
        items = [dataset[i * n // ENOUGH] for i in range(min(ENOUGH, n))]
        labels = [item[-1] for item in items]
        return {label.item() if isinstance(label, Tensor) else label for label in labels}
    except Exception:  # of the user's dataset: check_dataset tells of it
        return set()
