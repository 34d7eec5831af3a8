"""What all metrics share: a state of tensors that batches add to, and how inputs are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import mortice
from mortice import Tensor
from mortice.utils._wide import wide

State = dict[str, Tensor]


class UndefinedMetricWarning(UserWarning):
    """The metric has no value for this input, such as precision where nothing was predicted."""


class Metric:
    """A metric that is kept up batch by batch.

    A subclass says what a batch contributes (`batch`), how contributions become one (`join`, which adds) and what they
    amount to (`value`). Nothing goes to the host in `update`: mistakes that only values show are told by `compute`.

    Example:
        >>> metric = Accuracy()
        >>> for x, y in loader:
        ...     metric.update(model(x), y)
        >>> print(metric.compute(), metric.reset())
    """

    kept = False  # whether contributions are kept one by one, since they are not numbers but samples

    def __init__(self) -> None:
        self._parts: list[State] = []

    def batch(self, *args: Any, **kwargs: Any) -> State:
        """Return what a batch contributes."""
        raise NotImplementedError

    def value(self, state: State) -> Any:
        """Return what all contributions amount to."""
        raise NotImplementedError

    def join(self, parts: list[State]) -> State:
        """Return several contributions as one."""
        first, *others = parts
        for other in others:
            first = {name: t + placed(other[name], t.device) for name, t in first.items()}
        return first

    def update(self, *args: Any, **kwargs: Any) -> Metric:
        """Take in a batch; returns the metric."""
        self._take(self._batch(*args, **kwargs))
        return self

    def compute(self) -> Any:
        """Return the metric of all batches since the last reset."""
        if not self._parts:
            raise RuntimeError(
                f"{type(self).__name__}.compute: expected a batch before; got none. Call update() first."
            )
        with mortice.no_grad():
            self._parts = [self.join(self._parts)]
            return self.value(self._parts[0])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Take in a batch; returns the metric of that batch alone."""
        part = self._batch(*args, **kwargs)
        self._take(part)
        with mortice.no_grad():
            return self.value(self.join([part]))

    def reset(self) -> None:
        """Forget all batches."""
        self._parts = []

    def merge_state(self, others: Metric | Mapping[str, Tensor] | Iterable[Metric | Mapping[str, Tensor]]) -> Metric:
        """Take in what other metrics of the kind have seen, or their state dicts; returns the metric."""
        for other in (others,) if isinstance(others, (Metric, Mapping)) else others:
            if isinstance(other, Metric):
                if self._settings() != other._settings():
                    raise ValueError(f"merge_state: expected {self!r}; got {other!r}. Give both the same options.")
                other = other.state_dict()
            if other:
                self._take(dict(other))
        return self

    def state_dict(self) -> State:
        """Return what has been seen as a dict of tensors, empty before the first batch."""
        if not self._parts:
            return {}
        with mortice.no_grad():
            self._parts = [self.join(self._parts)]
        return dict(self._parts[0])

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Go on from a state that `state_dict` gave."""
        self._parts = [dict(state_dict)] if state_dict else []

    def to(self, device: Any) -> Metric:
        """Move what has been seen to a device or a backend's device; returns the metric."""
        where = mortice.device(device)
        self._parts = [{name: placed(t, where) for name, t in part.items()} for part in self._parts]
        return self

    def _batch(self, *args: Any, **kwargs: Any) -> State:
        with mortice.no_grad():
            return self.batch(*args, **kwargs)

    def _take(self, part: State) -> None:
        self._parts.append(part)
        if not self.kept:
            with mortice.no_grad():
                self._parts = [self.join(self._parts)]

    def _settings(self) -> tuple[Any, ...]:
        return type(self), *(item for item in sorted(vars(self).items()) if not item[0].startswith("_"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._settings()[1:] if v is not None)})"


class MetricCollection:
    """Several metrics that take the same batches, by name."""

    def __init__(self, metrics: Mapping[str, Metric] | Iterable[Metric]) -> None:
        named = metrics if isinstance(metrics, Mapping) else {type(m).__name__: m for m in metrics}
        self.metrics = dict(named)

    def update(self, *args: Any, **kwargs: Any) -> MetricCollection:
        """Give a batch to each metric."""
        for metric in self.metrics.values():
            metric.update(*args, **kwargs)
        return self

    def compute(self) -> dict[str, Any]:
        """Return each metric's value."""
        return {name: metric.compute() for name, metric in self.metrics.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Give a batch to each metric; returns the values of that batch alone."""
        return {name: metric(*args, **kwargs) for name, metric in self.metrics.items()}

    def reset(self) -> None:
        """Make each metric forget."""
        for metric in self.metrics.values():
            metric.reset()

    def merge_state(self, others: MetricCollection | Iterable[MetricCollection]) -> MetricCollection:
        """Take in what the metrics of the same names in other collections have seen."""
        for other in (others,) if isinstance(others, MetricCollection) else others:
            for name, metric in self.metrics.items():
                metric.merge_state(other.metrics[name])
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """Return the states of all metrics, `name.` in front of each key."""
        return {f"{name}.{k}": t for name, metric in self.metrics.items() for k, t in metric.state_dict().items()}

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Go on from a state that `state_dict` gave."""
        for name, metric in self.metrics.items():
            metric.load_state_dict({k[len(name) + 1 :]: t for k, t in state_dict.items() if k.startswith(f"{name}.")})

    def to(self, device: Any) -> MetricCollection:
        """Move each metric's state."""
        for metric in self.metrics.values():
            metric.to(device)
        return self


def placed(t: Tensor, device: Any) -> Tensor:
    if t.device == device:
        return t
    return t.to(dtype=wide(device)).to(device) if t.dtype == mortice.float64 else t.to(device)


def read(name: str, preds: Any, target: Any, weight: Any, rows: bool = False) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return what a metric is given as tensors on one device; there is a weight for each target, or for each row of them."""
    preds = mortice.as_tensor(preds).detach()
    target = mortice.as_tensor(target, device=None if isinstance(target, Tensor) else preds.device).detach()
    if weight is not None:
        weight = mortice.as_tensor(weight, device=None if isinstance(weight, Tensor) else preds.device).detach()
        wanted = target.shape[:1] if rows else target.shape
        if weight.shape != wanted:
            raise ValueError(f"{name}: expected sample_weight of shape {tuple(wanted)}; got {tuple(weight.shape)}.")
        weight = weight.to(wide(preds.device))
    return preds, target, weight


def mismatch(name: str, preds: Tensor, target: Tensor, wanted: str) -> ValueError:
    """Return the error about shapes that do not go together."""
    return ValueError(f"{name}: expected {wanted}; got preds {tuple(preds.shape)} and target {tuple(target.shape)}.")


def one_of(name: str, what: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse an option that there is not."""
    if value not in allowed:
        raise ValueError(f"{name}: expected {what} to be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def total_of(name: str, total: Tensor) -> Tensor:
    """Return the number (or weight) of samples; refuse none."""
    if not bool(total != 0):
        raise ValueError(f"{name}: expected at least one sample of a weight other than 0; got none.")
    return total
