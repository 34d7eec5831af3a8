"""Can every item be read and batched, and is what is to be learnt there? Classes, repeats, and what the test set shares."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import mortice
from mortice import Tensor
from mortice.doctor.mistakes import checks
from mortice.doctor.tools.inputs import TARGETS
from mortice.doctor.tools.result import Result, count, listed
from mortice.doctor.tools.same import alike, few_possible, fingerprints
from mortice.doctor.tools.sandbox import apart
from mortice.utils.data import DataLoader, IterableDataset, WeightedRandomSampler
from mortice.utils.data.collate import default_collate

CHUNK = 256  # items that are stacked to take their fingerprints
TRIED = 20  # items that may fail in a row before the rest is left alone
CONFIRMED = 200  # pairs that are compared element by element
RARE, VERY_RARE = 10, 20  # how many times smaller than the largest class
NO_NONE = "Leave out what could not be loaded when the dataset is made, or give a collate_fn that drops None."
PLAIN = (int, float, bool, str, bytes, complex)


class Print(NamedTuple):
    """What is kept of an item: its size and two sums of its elements, or a hash of it."""

    size: int
    sums: tuple[float, float]
    index: int
    label: Any


class Dataset(Result):
    """What `check_dataset` returns.

    Attributes:
        items: how many there are, None for a stream; `read`: how many were looked at.
        unreadable: the error of each item that cannot be read, by its index.
        classes: how many items each label has, the first first; empty where labels are no classes.
        shapes: for each field, how many items have each (kind, shape).
        shared: pairs (index in the test set, index in the training set) of equal items.
    """

    def __init__(self) -> None:
        super().__init__("check_dataset")
        self.items: int | None = None
        self.read = 0
        self.unreadable: dict[int, str] = {}
        self.classes: dict[Any, int] = {}
        self.shapes: dict[str, Counter[tuple[str, Any]]] = {}
        self.shared: list[tuple[int, int]] = []

    def lines(self) -> list[str]:
        of = "" if self.items in (None, self.read) else f" of {self.items}"
        said = [f"{self.read}{of} items read"]
        for name, kinds in self.shapes.items():
            (kind, shape), _ = kinds.most_common(1)[0]
            said.append(
                f"{name}: {kind}{'' if shape is None else f' {shape}'}{f', and {len(kinds) - 1} others' if len(kinds) > 1 else ''}"
            )
        if self.classes:
            said.append(f"{len(self.classes)} classes: " + listed([f"{k}: {n}" for k, n in self.classes.items()], 12))
        return said


def check_dataset(data: Any, test: Any = None, *, limit: int = 5000) -> Dataset:
    """Read the items of a dataset one by one; tell of what cannot be read or batched, of classes and of repeats.

    Args:
        data: a dataset, or a DataLoader whose dataset is looked at.
        test: another one, that is to have no item of the first.
        limit: at most so many items are read of each, spread evenly.
    """
    result = Dataset()
    with apart(data, test), mortice.no_grad():
        loader = data if isinstance(data, DataLoader) else None
        dataset = data if loader is None else loader.dataset
        prints, coarse = _read(result, dataset, limit)
        _judge_items(result, loader, dataset)
        _judge_classes(result, loader)
        _judge_repeats(result, dataset, prints, coarse)
        if test is not None:
            other = Dataset()
            test = test.dataset if isinstance(test, DataLoader) else test
            theirs, _ = _read(other, test, limit)
            _judge_unreadable(result, other, "test set")
            _judge_shared(result, dataset, test, prints, theirs, coarse)
            unknown = [k for k in other.classes if k not in result.classes] if result.classes else []
            if unknown and result.read == result.items:
                n = sum(other.classes[k] for k in unknown)
                result.find(
                    checks.UnknownClasses,
                    f"{count(n, 'test item')} are of {count(len(unknown), 'class')} that no training item has: "
                    f"{listed(map(str, unknown))}.",
                    items=n,
                )  # fmt: skip
    return result.told()


# ---- reading ----


def _items(result: Dataset, dataset: Any, limit: int) -> Iterator[tuple[int, Any]]:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        for i, item in enumerate(dataset):
            if i == limit:
                return
            yield i, item
        return
    result.items = n = len(dataset)
    failed = 0
    for k in range(min(n, limit)):
        i = k if n <= limit else k * n // limit
        try:
            item = dataset[i]
        except Exception as error:
            result.unreadable[i] = f"{type(error).__name__}: {error}"
            failed += 1
            if failed == TRIED:
                return
            continue
        failed = 0
        yield i, item


def _read(result: Dataset, dataset: Any, limit: int) -> tuple[list[Print], bool]:
    """Look at items; return what is kept of each, and whether they are so coarse that some are the same by chance."""
    prints: list[Print] = []
    waiting: dict[Any, list[tuple[Any, int, Any]]] = {}
    counts: Counter[Any] = Counter()
    coarse = False
    labelled = True
    for i, item in _items(result, dataset, limit):
        result.read += 1
        fields, label = parts(item)
        for name, field in fields.items():
            result.shapes.setdefault(name, Counter())[_kind(field)] += 1
        labelled = labelled and label is not None
        counts[label] += 1
        x = next(
            (t for name, f in fields.items() if name != "label" and (t := _tensor(f)) is not None and t.ndim), None
        )
        if x is None:
            body = pickle.dumps([f for name, f in fields.items() if name != "label"]) if _plain(fields) else None
            if body is not None:
                prints.append(Print(len(body), (float(hash(body)), 0.0), i, label))
            continue
        rows = waiting.setdefault((tuple(x.shape), x.device), [])
        rows.append((x, i, label))
        if len(rows) == CHUNK:
            coarse = _flush(prints, rows, result.items or limit) or coarse
    for rows in waiting.values():
        coarse = _flush(prints, rows, result.items or limit) or coarse
    if labelled and 1 <= len(counts) <= max(2, min(1000, result.read // 2)):
        result.classes = dict(sorted(counts.items()))
    return prints, coarse


def parts(item: Any) -> tuple[dict[str, Any], Any]:
    """Return the fields of an item by name, and its label if one of them is a whole number; that field is "label"."""
    if isinstance(item, dict):
        fields = {str(k): v for k, v in item.items()}
        name = next((k for k in TARGETS if k in fields), None)
    elif isinstance(item, (list, tuple)):
        fields = {f"field {i}": v for i, v in enumerate(item)}
        name = f"field {len(item) - 1}" if len(item) > 1 else None
    else:
        return {"item": item}, None
    label = _label(fields[name]) if name is not None else None
    return {("label" if k == name and label is not None else k): v for k, v in fields.items()}, label


def _label(value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.is_floating_point() or value.is_complex():
            return None
        return int(value.item())
    if isinstance(value, bool) or (hasattr(value, "__index__") and not hasattr(value, "__len__")):
        return int(value)
    return None


def _kind(field: Any) -> tuple[str, Any]:
    if isinstance(field, Tensor):
        return f"tensor of {str(field.dtype).rpartition('.')[2]}", tuple(field.shape)
    kind = f"{type(field).__module__}.{type(field).__qualname__}".removeprefix("builtins.")
    shape = getattr(field, "shape", None)
    if isinstance(shape, tuple):
        return f"{kind} of {getattr(field, 'dtype', '?')}", shape
    size = getattr(field, "size", None)
    if isinstance(size, tuple):
        return kind, size
    return kind, (len(field),) if isinstance(field, (list, tuple)) else None


def _tensor(field: Any) -> Any:
    if isinstance(field, Tensor):
        return field.detach()
    if hasattr(field, "__array_interface__") or hasattr(field, "__array__"):
        try:
            return mortice.as_tensor(field)
        except (TypeError, ValueError, RuntimeError):
            return None
    return None


def _plain(fields: dict[str, Any]) -> bool:
    def simple(x: Any) -> bool:
        return isinstance(x, PLAIN) or (isinstance(x, (list, tuple)) and all(map(simple, x)))

    return len(fields) > 0 and all(simple(f) for name, f in fields.items() if name != "label")


def _flush(prints: list[Print], rows: list[tuple[Any, int, Any]], n: int) -> bool:
    if not rows:
        return False
    dtype = rows[0][0].dtype
    for x, _, _ in rows:
        dtype = mortice.promote_types(dtype, x.dtype)
    if dtype.is_complex:
        rows.clear()
        return False
    stacked = mortice.stack([x.reshape(-1).to(dtype) for x, _, _ in rows])
    size = stacked.shape[1]
    coarse = False
    if size:
        for sums, (_, i, label) in zip(fingerprints(stacked), rows):
            prints.append(Print(size, sums, i, label))
        coarse = len(rows) >= 16 and few_possible(stacked, n)
    rows.clear()
    return coarse


# ---- judging ----


def _judge_unreadable(result: Dataset, seen: Dataset, what: str) -> None:
    if not seen.unreadable:
        return
    first, error = next(iter(seen.unreadable.items()))
    result.find(
        checks.UnreadableItems,
        f"{count(len(seen.unreadable), 'item')} of the {what} cannot be read: {listed(map(str, seen.unreadable))}. Item {first}: "
        f"{error}",
        items=len(seen.unreadable), first=first,
    )  # fmt: skip


def _judge_items(result: Dataset, loader: Any, dataset: Any) -> None:
    _judge_unreadable(result, result, "dataset")
    if loader is not None and (loader.collate_fn is not default_collate or loader.batch_size == 1):
        return  # a collate_fn of the user's own may well pad
    for name, kinds in result.shapes.items():
        if len(kinds) > 1:
            common = kinds.most_common(1)[0][0]
            odd = listed([f"{k} {'' if s is None else s}".strip() + f" ({n})" for (k, s), n in kinds.most_common()], 4)
            example = _first_unlike(result, dataset, name, common)
            result.find(
                checks.RaggedItems, f"{name} differs from item to item: {odd}{example}.",
                remedy=NO_NONE if "NoneType" in odd else None,
                field=name, kinds=len(kinds),
            )  # fmt: skip
        elif "PIL." in next(iter(kinds))[0]:
            result.find(
                checks.RaggedItems, f"{name} of each item is a {next(iter(kinds))[0]}: default_collate takes tensors.",
                remedy="Add transforms.ToTensor() as the last step of the transform.", field=name, kinds=1,
            )  # fmt: skip


def _first_unlike(result: Dataset, dataset: Any, name: str, common: tuple[str, Any]) -> str:
    if result.items is None:
        return ""
    for i in range(min(result.items, 1000)):
        if i in result.unreadable:
            continue
        fields, _ = parts(dataset[i])
        if name in fields and _kind(fields[name]) != common:
            return f"; item {i} is the first that is not like most"
    return ""


def _judge_classes(result: Dataset, loader: Any) -> None:
    counts = result.classes
    if not counts or result.read < 50:
        return
    if len(counts) == 1:
        ((label, n),) = counts.items()
        result.find(checks.Imbalance, f"All {n} items have the label {label}.", remedy="Check how labels are made.")
        return
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    missing = [k for k in range(max(counts)) if k not in counts] if min(counts) >= 0 and max(counts) < 1000 else []
    ratio = counts[most] / counts[least]
    weighted = loader is not None and isinstance(loader.sampler, WeightedRandomSampler)
    if missing and len(missing) < len(counts) and max(counts) > 1 and missing != [0]:
        result.find(
            checks.Imbalance, f"No item has the label {listed(map(str, missing))}, though labels go up to {max(counts)}.",
            level="info", missing=len(missing),
        )  # fmt: skip
    if ratio >= RARE and not weighted:
        rare = [k for k, n in counts.items() if counts[most] >= RARE * n]
        share = counts[most] / result.read
        result.find(
            checks.Imbalance,
            f"Class {most} has {counts[most]} items, class {least} {counts[least]}: {ratio:.0f} times fewer. Always answering "
            f"{most} is right in {share:.0%}."
            + (f" {len(rare)} classes have less than a tenth of the largest." if len(rare) > 1 else ""),
            level="warning" if ratio >= VERY_RARE else "info", ratio=ratio, share=share,
        )  # fmt: skip


def _judge_repeats(result: Dataset, dataset: Any, prints: list[Print], coarse: bool) -> None:
    if coarse or result.items is None:
        return
    pairs = []
    for group in _by_size(prints).values():
        pairs += [(group[i], group[j]) for i, j in alike([p.sums for p in group])]
    pairs = [(a, b) for a, b in pairs if a.index != b.index and _same(dataset, a.index, dataset, b.index, len(pairs))]
    if not pairs:
        return
    a, b = pairs[0]
    result.find(
        checks.Duplicates, f"{len(pairs)} of {result.read} items come more than once: item {b.index} is item {a.index}.",
        level="warning" if len(pairs) > max(2, result.read // 20) else "info", repeats=len(pairs),
    )  # fmt: skip
    against = [(a, b) for a, b in pairs if a.label is not None and a.label != b.label]
    if against:
        a, b = against[0]
        result.find(
            checks.Contradictions,
            f"{count(len(against), 'pair')} of equal items {'has' if len(against) == 1 else 'have'} different labels: items "
            f"{a.index} and {b.index} are the same, their labels are {a.label} and {b.label}.",
            pairs=len(against),
        )  # fmt: skip


def _judge_shared(
    result: Dataset, dataset: Any, test: Any, ours: list[Print], theirs: list[Print], coarse: bool
) -> None:
    if coarse:
        return
    found: list[tuple[int, int]] = []
    known = _by_size(ours)
    for size, group in _by_size(theirs).items():
        both = [(p, False) for p in known.get(size, [])] + [(p, True) for p in group]
        # Each with the next alike: of one that comes several times in training, the nearest will do.
        for i, j in alike([p.sums for p, _ in both]):
            if both[i][1] != both[j][1]:
                first, second = (both[j], both[i]) if both[j][1] else (both[i], both[j])
                found.append((first[0].index, second[0].index))
    same = dataset is test or result.items is None
    result.shared = sorted({p for p in found if same or _same(test, p[0], dataset, p[1], len(found))})
    if result.shared:
        t, i = result.shared[0]
        result.find(
            checks.TestInTrain,
            f"{len(result.shared)} of {len(theirs)} test items are in the training set as well: test item {t} is training item {i}.",
            shared=len(result.shared),
        )  # fmt: skip


def _by_size(prints: list[Print]) -> dict[int, list[Print]]:
    groups: dict[int, list[Print]] = {}
    for p in prints:
        groups.setdefault(p.size, []).append(p)
    return groups


def _same(first: Any, i: int, second: Any, j: int, pairs: int) -> bool:
    """Compare two items, unless there are so many pairs that their sums must do."""
    if pairs > CONFIRMED:
        return True
    a, b = (
        next((t for n, f in parts(s[k])[0].items() if n != "label" and (t := _tensor(f)) is not None and t.ndim), None)
        for s, k in ((first, i), (second, j))
    )
    if a is None or b is None:
        return True
    return a.shape == b.shape and bool((a == b).all())
