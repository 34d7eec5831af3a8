"""Which transform leads from unconstrained numbers to a constraint's set.

`biject_to(c)` is one to one; `transform_to(c)` may not be, and is the better behaved for optimisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.distributions import constraints, transforms
from mortice.distributions.constraints import Constraint

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Functions from a constraint to a transform, by the constraint's class."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Say how to make the transform of a class of constraints, or of a constraint's class; also as a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Any], Any]:
    def register(factory: Any) -> Any:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.positive, constraints.nonnegative, constraints.greater_than, constraints.greater_than_eq)
def _above(constraint: Any) -> Any:
    # The plain exponential where nothing is to be added.
    exp = transforms.ExpTransform()
    if isinstance(constraint.lower_bound, (int, float)) and constraint.lower_bound == 0:
        return exp
    return transforms.ComposeTransform([exp, transforms.AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.less_than)
def _below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda constraint: transforms.PositiveDefiniteTransform())


def _nested(registry: ConstraintRegistry) -> None:
    """Register the constraints that are made of others, each by the registry itself."""
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    registry.register(
        constraints.cat, lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)
    )
    registry.register(constraints.stack, lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim))


_nested(biject_to)
_nested(transform_to)
