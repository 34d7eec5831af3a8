"""What a model is fed: the order of a loader's batches, how they are taken, transforms, hooks that are passed by."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import mortice
from mortice import Tensor
from mortice.doctor.events import Backward, Batch, Bypassed, Epoch, Forward, Step
from mortice.doctor.memory import Notes
from mortice.doctor.mistakes.sequences import own_order, sequences
from mortice.doctor.rule import Rule, register
from mortice.tracing import places
from mortice.utils.data import Dataset, IterableDataset, RandomSampler, SequentialSampler

LARGEST = 1 << 28  # values of a dataset that are searched


def _rows(t: Any) -> int:
    """Return a number for some values of the first rows of a tensor: equal for equal batches."""
    flat = t.detach()[:64].reshape(min(t.shape[0], 64), -1)
    return hash(tuple(flat[:, :: max(1, flat.shape[1] // 16)].reshape(-1).tolist()))


def _labels(tensors: list[Any]) -> Any:
    """Return the class numbers of a batch: its last tensor of one integer for each sample; None without one."""
    for t in reversed(tensors):
        if t.ndim == 1 and t.shape[0] > 1 and t.dtype in (mortice.int64, mortice.int32, mortice.uint8):
            return t
    return None


class _Pass:
    """What is known of one pass of a loader."""

    def __init__(self) -> None:
        self.prints: list[tuple[int, ...]] = []  # of the first two batches, tensor by tensor
        self.classes = 0  # in the labels of the first batch
        self.optimizer: Any = None  # which has stepped during it
        self.single: list[Any] = []  # of sampled batches: whether all labels are the first, and the first


@register
class NotShuffled(Rule):
    """A loader that hands out the same order at each pass of a training."""

    id = "D08"
    level = "info"
    title = "Training data not shuffled, correlated batches"
    why = "Neighbouring samples are alike in most files: gradients of such batches pull one way, then another."
    remedy = "Pass shuffle=True to the DataLoader."

    def start(self) -> None:
        self.known = sequences(self.session)
        self.before, self.now = Notes(), Notes()
        self.latest: _Pass | None = None

    def epoch(self, event: Epoch) -> None:
        loader = event.loader
        self.latest = None
        sampler = own_order(loader)
        if isinstance(loader.dataset, IterableDataset) or type(sampler) not in (SequentialSampler, RandomSampler):
            return
        if loader.batch_size < len(loader.dataset):
            self.latest = self.now[loader] = _Pass()

    def batch(self, event: Batch) -> None:
        if event.index > 1 and not self.session.close:
            return
        now: _Pass | None = self.now.get(event.loader)
        if now is None:
            return
        if event.index < 2:
            now.prints.append(tuple(_rows(t) for t in event.tensors if t.ndim and t.shape[0]))
        labels = _labels(event.tensors)
        if labels is not None:
            if event.index == 0:
                now.classes = len(set(labels[:64].tolist()))
            now.single.append(((labels == labels[0]).all(), labels[0]))

    def step(self, event: Step) -> None:
        if self.latest is not None:
            self.latest.optimizer = id(event.optimizer)

    def epoch_done(self, event: Epoch) -> None:
        loader = event.loader
        now: _Pass | None = self.now.pop(loader)
        before: _Pass | None = self.before.pop(loader)
        if now is None or not event.finished or event.batches < 2 or now.optimizer is None:
            return
        self.before[loader] = now
        single, now.single = now.single, []
        if loader in self.known.carried:
            return
        optimizer, name = self._optimizer(now), type(loader).__name__
        if isinstance(own_order(loader), SequentialSampler) and len(single) >= 4 and loader.batch_size >= 4:
            alone = [int(first) for same, first in single if same]
            share = len(alone) / len(single)
            if share > 0.8 and len(set(alone)) > 1:  # with one common class, many batches hold it alone in any order
                self.report(
                    f"{name} delivered samples in their order while {optimizer} was training; {share:.0%} of its batches "
                    "contain one class.",
                    site=event.site,
                    level="warning",
                    share=share,
                )
                return
        if before is not None and before.optimizer == now.optimizer and self._same(before, now):
            self.report(
                f"{name} delivered the same order in passes {event.number - 1} and {event.number} while {optimizer} was "
                "training.",
                site=event.site,
                remedy=None
                if isinstance(own_order(loader), SequentialSampler)
                else "Seed the generator once, before the first pass, and not in each.",
            )

    @staticmethod
    def _same(a: _Pass, b: _Pass) -> bool:
        """Tell whether two passes began with the same batches; augmented samples still have the same labels."""
        if not a.prints or len(a.prints) != len(b.prints):
            return False
        if a.prints == b.prints:
            return True
        return a.classes > 1 and all(x and y and x[-1] == y[-1] for x, y in zip(a.prints, b.prints))

    def _optimizer(self, now: _Pass) -> str:
        return next(
            (type(o).__name__ for o, _ in self.session.optimizers.items() if id(o) == now.optimizer), "optimizer"
        )


@register
class CropBeforeResize(Rule):
    """A crop to the final size before the resize that was to bring the picture to that size."""

    id = "D31"
    title = "CenterCrop before Resize"
    why = "The crop cuts a small piece out of the large picture, and the resize has nothing left to do."
    remedy = "Put Resize first: Compose([Resize(n), CenterCrop(n), ...])."
    modules = ("CenterCrop", "RandomCrop", "Resize")
    ENOUGH, MANY = 4, 200

    def start(self) -> None:
        self.cropped: tuple[int, Any, float, bool] | None = None
        self.seen = Notes()  # by the Resize: whether each picture had far more than the crop left
        self.resized = 0

    def forward(self, event: Forward) -> None:
        if "transforms" not in type(event.module).__module__ or not event.args or self.resized > self.MANY:
            return
        image = event.args[0]
        if type(event.module).__name__ != "Resize":
            self.cropped = None
            sizes = _size(image)
            height, width = event.module.size
            if sizes is not None and event.output is not None:
                left = min(height / sizes[0], 1) * min(width / sizes[1], 1)
                self.cropped = id(event.output), event.module, left, min(sizes) > 1.5 * min(height, width)
            return
        self.resized += 1
        cropped, self.cropped = self.cropped, None
        if cropped is None or cropped[0] != id(image):
            return
        crop, size = cropped[1], event.module.size
        target = min(size) if isinstance(size, (tuple, list)) else size
        seen = self.seen.setdefault(event.module, [])
        seen.append(cropped[2] if min(crop.size) <= target and cropped[3] else None)
        if len(seen) == self.ENOUGH and None not in seen:
            kind, share = type(crop).__name__, sum(seen) / len(seen)
            self.report(
                f"{kind}({min(crop.size)}) runs before Resize({target}): only {share:.1%} of the pixels is kept.",
                share=share,
            )


def _size(image: Any) -> tuple[int, int] | None:
    """Return (height, width) of a picture: a tensor or a PIL image."""
    if isinstance(image, Tensor):
        return (image.shape[-2], image.shape[-1]) if image.ndim > 1 else None
    size = getattr(image, "size", None)
    return (size[1], size[0]) if isinstance(size, tuple) and len(size) == 2 else None


@register
class RawDataInsteadOfTransformed(Rule):
    """Pixels of `dataset.data` that are fed to a model although the dataset has a transform."""

    id = "D33"
    level = "info"
    title = "Transforms expected on raw data"
    why = "dataset.data is the raw data; the transform runs only when items are read."
    remedy = "Read items, dataset[i], or a DataLoader over the dataset; or apply the transform to the data yourself."
    LOOKS, CALLS, LARGEST = 3, 100, 1 << 16

    def start(self) -> None:
        self.looks = Notes()
        self.calls = 0

    def forward_pre(self, event: Forward) -> None:
        if not event.root or not self.session.close:
            return
        self.calls += 1
        if self.calls > self.CALLS:
            self.session.leave(self, "forward_pre")
        looks = self.looks.get(event.module, 0)
        if looks >= self.LOOKS or not event.args or not isinstance(event.args[0], Tensor):
            return
        x = event.args[0]
        if x.ndim < 2 or not x.shape[0] or not x.is_floating_point() or not 16 <= x[0].numel() <= self.LARGEST:
            return
        self.looks[event.module] = looks + 1
        first = x[0].detach()
        if not bool((first == first.round()).all()) or not 1 < float(first.max()) <= 255 or float(first.min()) < 0:
            return
        for name, dataset in self._datasets():
            if _holds(dataset.data, first):
                self.report(
                    f"{self.session.name(event.module)} is fed from the raw pixels of {name} ({type(dataset).__name__}), "
                    f"which its transform ({type(dataset.transform).__name__}) has not seen.",
                    dataset=name,
                )
                return

    def _datasets(self) -> Iterator[tuple[str, Any]]:
        """Yield the datasets with a transform that the user's functions on the stack name; none that a loader reads now."""
        reading = [] if self.session.batch is None else [self.session.batch.loader.dataset]
        while reading and hasattr(reading[-1], "dataset"):
            reading.append(reading[-1].dataset)
        at, seen = places.caller(), set()
        while at is not None:
            for names in (at.f_locals, at.f_globals):
                for name, thing in list(names.items()):
                    if isinstance(thing, Dataset) and id(thing) not in seen and all(thing is not r for r in reading):
                        seen.add(id(thing))
                        if getattr(thing, "transform", None) is not None and hasattr(thing, "data"):
                            yield name, thing
            at = at.f_back


def _holds(data: Any, first: Any) -> bool:
    """Tell whether a picture, or its values in another order of dims, is one of `data`."""
    shape = getattr(data, "shape", ())
    if len(shape) < 2 or math.prod(shape[1:]) != first.numel() or math.prod(shape) > LARGEST:
        return False
    raw = mortice.as_tensor(data)
    if first.ndim == 3 and raw.ndim == 4 and raw.shape[1:] != first.shape and raw.shape[3] == first.shape[0]:
        first = first.permute(1, 2, 0)  # the data has its channels last
    rows = raw.reshape(raw.shape[0], -1)
    wanted = first.to(raw.device).to(raw.dtype).reshape(-1)
    bright = wanted.long().argsort(descending=True)[:4].tolist()
    alike = (rows[:, bright] == wanted[bright]).all(1).nonzero().reshape(-1)[:256]
    return bool((rows[alike] == wanted).all(1).any())


@register
class FirstBatchOnly(Rule):
    """`next(iter(loader))` in each step: a new pass each time, of which one batch is used."""

    id = "D34"
    title = "next(iter(loader)) in a loop"
    why = "Each call begins a new pass: without shuffling it gives the same batch every time, and workers start anew."
    remedy = "Keep one iterator: it = iter(loader), then next(it); or loop over the loader."
    MANY = 10

    def start(self) -> None:
        self.trained = Notes()  # loaders: how many passes of one batch were trained on
        self.prints = Notes()
        self.dropped: Epoch | None = None

    def batch(self, event: Batch) -> None:
        self.dropped = None
        if event.index == 0 and len(self.prints.get(event.loader, ())) <= 2:
            kept = self.prints.setdefault(event.loader, [])
            kept.append(tuple(_rows(t) for t in event.tensors if t.ndim and t.shape[0]))

    def epoch_done(self, event: Epoch) -> None:
        self.dropped = event if event.batches == 1 and not event.finished else None

    def backward(self, event: Backward) -> None:
        epoch, self.dropped = self.dropped, None
        if epoch is None:
            return
        loader = epoch.loader
        n = self.trained[loader] = self.trained.get(loader, 0) + 1
        if n != self.MANY + 1 or _length(loader) == 1:
            return
        prints, workers = self.prints.get(loader, ()), loader.num_workers
        same = len(set(prints)) == 1 and bool(prints[0])
        harm = ": always the same one" if same else f", restarting {workers} workers each time" if workers else ""
        self.report(
            f"next(iter(loader)) started {n} new passes and used one batch of each{harm}.",
            site=epoch.site,
            level="warning" if same or workers else "info",
            passes=n,
        )


def _length(loader: Any) -> int | None:
    """Return how many batches a pass has, where that is known."""
    try:
        return len(loader)
    except TypeError:
        return None


@register
class BatchTooLarge(Rule):
    """Few steps in a pass, because a batch is a large part of the data."""

    id = "D35"
    level = "info"
    title = "Batch size too large for the data"
    why = "A pass has as many steps as batches: with few of them the optimiser hardly moves."
    remedy = "Take smaller batches."
    FEW, SMALL = 10, 16

    def start(self) -> None:
        self.steps = Notes()

    def epoch(self, event: Epoch) -> None:
        loader = event.loader
        self.steps[loader] = self.session.steps
        if own_order(loader) is None or isinstance(loader.dataset, IterableDataset):
            return
        n = len(loader.dataset)
        if loader.drop_last and n and not _length(loader):
            self.report(
                f"drop_last=True leaves no batch at all: {n} samples, batches of {loader.batch_size}.",
                site=event.site,
                level="warning",
                remedy="Take a smaller batch_size, or drop_last=False.",
                samples=n,
                batch_size=loader.batch_size,
            )

    def epoch_done(self, event: Epoch) -> None:
        loader, k = event.loader, event.batches
        if event.number > 1 or not event.finished or not isinstance(own_order(loader), RandomSampler):
            return
        b = loader.batch_size
        if 1 < k < self.FEW and b > self.SMALL and self.session.steps - self.steps.get(loader, 0) >= k:
            n = len(loader.dataset)
            if n >= self.FEW * self.SMALL:
                self.report(
                    f"{n} samples in batches of {b} are {k} steps in a pass.",
                    site=event.site,
                    remedy=f"Take smaller batches, such as {self.SMALL}: {-(-n // self.SMALL)} steps in a pass.",
                    samples=n,
                    batch_size=b,
                    steps=k,
                )


@register
class ForwardCalledDirectly(Rule):
    """`net.forward(x)` where hooks wait for `net(x)`."""

    id = "D38"
    title = "module.forward(x) called directly"
    why = "Only a call of the module runs its hooks: what they record, change or normalise does not happen."
    remedy = "Call the module: net(x)."

    def bypassed(self, event: Bypassed) -> None:
        name, module = self.session.name(event.module), event.module
        n = sum(
            len(getattr(module, f"_{kind}_hooks")) for kind in ("forward", "forward_pre", "backward", "backward_pre")
        )
        self.report(
            f"{name}.forward(x) skips the {n} registered hook{'s' * (n != 1)} of {name}.",
            remedy=f"Call {name}(x).",
            hooks=n,
        )
