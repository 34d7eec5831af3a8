"""kl_divergence and register_kl: the divergence of each pair of families is found by their classes.

The formulas are in `kl_same`, of a family and itself, and `kl_pairs`, of two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.distributions.distribution import Distribution
from mortice.notice import warn

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_found: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorate the function that computes the divergence of a pair of classes, and of their subclasses."""
    # As in PyTorch any class is taken: libraries register for bases of their own, which derive from no Distribution.
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorate(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        _found.clear()
        return function

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """Return the mean of log p - log q under p.

    Raises:
        NotImplementedError: for a pair that nobody registered.
    """
    pair = type(p), type(q)
    function = _found.get(pair) or _found.setdefault(pair, _dispatch(*pair))
    return function(p, q)


def _dispatch(type_p: type, type_q: type) -> Callable[[Any, Any], Any]:
    """Find the function of the most special classes; warn where the first and the second argument disagree on it."""
    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type_p.__name__} and q type {type_q.__name__}")
    ranks_p, ranks_q = type_p.__mro__.index, type_q.__mro__.index
    by_first = min(matches, key=lambda pair: (ranks_p(pair[0]), ranks_q(pair[1])))
    by_second = min(matches, key=lambda pair: (ranks_q(pair[1]), ranks_p(pair[0])))
    if by_first != by_second:
        names = [f"{a.__name__}, {b.__name__}" for a, b in (by_first, by_second)]
        warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({names[0]}) or "
            f"register_kl({names[1]})",
            RuntimeWarning,
        )
    return _KL_REGISTRY[by_first]
