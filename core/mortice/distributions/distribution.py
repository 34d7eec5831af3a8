"""Distribution: shapes, validation and expansion, which all distributions share, and what each of them defines."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import Size, Tensor
from mortice.distributions import constraints
from mortice.distributions.utils import holds, lazy_property
from mortice.notice import warn

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution, or a batch of them, over events of one shape.

    Args:
        batch_shape: the shape of the batch.
        event_shape: the shape of what one draw from one of them gives.
        validate_args: whether parameters and values are checked; by default they are.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    arg_constraints: Any = None

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Choose whether parameters and values are checked where a distribution is not told."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False; got {value!r}.")
        Distribution._validate_args = value

    def _check_parameters(self) -> None:
        if self.arg_constraints is None:
            warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
            return
        for name, constraint in self.arg_constraints.items():
            computed = name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property)
            if constraints.is_dependent(constraint) or computed:  # what is computed from a parameter needs no check
                continue
            value = getattr(self, name)
            if not holds(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    # ---- shapes ----

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one event."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the distribution with its parameters expanded to a larger batch."""
        # A class derived from one of these may have other parameters, which its own `expand` fills in before or after.
        base = next(c for c in type(self).__mro__ if c.__module__.startswith("mortice.distributions"))
        new = self._get_checked_instance(base, _instance)
        parameters = base.arg_constraints or {}
        if isinstance(parameters, property):
            parameters = parameters.__get__(self)
        for name, value in self.__dict__.items():
            if name in parameters:
                if isinstance(value, Tensor):
                    value = value.expand((*batch_shape, *value.shape[value.dim() - parameters[name].event_dim :]))
                new.__dict__[name] = value
            elif not isinstance(getattr(type(self), name, None), lazy_property):  # computed from the expanded parameters
                new.__dict__.setdefault(name, value)
        new._batch_shape = Size(batch_shape)
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return what the `expand` of cls is to fill, as distributions written for PyTorch ask for it."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a "
                "custom .expand() method."
            )
        return self.__new__(type(self))

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        """Return the shape of a draw: sample, batch, event."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    # ---- what distributions define ----

    @constraints.dependent_property
    def support(self) -> Any:
        """The constraint that events satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without a gradient."""
        with mortice.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw so that gradients flow into the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """Draw n times: the old form of `sample((n,))`."""
        warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """Return the log of the density or probability of a value."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """Return the probability of being at most a value."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """Return the value below which a draw lies with the probability given."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values of a discrete distribution along a new first dim."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """Return e to the entropy."""
        return self.entropy().exp()

    # ---- checks ----

    def _check(self, value: Any) -> None:
        """Refuse a value outside the support, where arguments are validated."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Refuse a value whose shape or numbers do not fit."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        n = len(self._event_shape)
        if tuple(value.shape[value.dim() - n :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        wanted = (*self._batch_shape, *self._event_shape)
        for i, j in zip(reversed(tuple(value.shape)), reversed(wanted)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {Size(wanted)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution "
                "with `validate_args=False` to turn off validation."
            )
            return
        if not holds(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = [name for name in self.arg_constraints or {} if name in self.__dict__]
        parts = [f"{name}: {_short(self.__dict__[name])}" for name in shown]
        return f"{type(self).__name__}({', '.join(parts)})"


def _short(value: Any) -> Any:
    if not isinstance(value, Tensor) or value.numel() != 1:
        return value.size() if isinstance(value, Tensor) else value
    return value.item() if value.dim() == 0 else value


