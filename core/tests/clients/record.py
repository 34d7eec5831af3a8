"""What a client is: a function or class of another library, a call of it, its inputs, and what is promised of the result.

Nothing here imports a library: docs/clients.py reads the records where none is installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Recipe = Callable[[Any], Any]  # a NumPy generator -> an array in float64, int64 or bool


def normal(*shape: int) -> Recipe:
    """Draw from the standard normal distribution."""
    return lambda rng: rng.standard_normal(shape)


def uniform(low: float, high: float, *shape: int) -> Recipe:
    """Draw evenly between two numbers."""
    return lambda rng: rng.uniform(low, high, shape)


def integers(low: int, high: int, *shape: int) -> Recipe:
    """Draw whole numbers; `high` is not among them."""
    return lambda rng: rng.integers(low, high, shape)


def values(*data: Any) -> Recipe:
    """Take these."""
    return lambda rng: importlib.import_module("numpy").asarray(data)


def spread(n: int) -> Recipe:
    """Return n different numbers in a random order, none close to another: nothing sorted or counted can be in doubt."""
    return lambda rng: rng.permutation(n) / 2 + rng.uniform(-0.1, 0.1, n)


def positive_definite(n: int) -> Recipe:
    """Return a symmetric matrix whose eigenvalues are far from zero and from each other."""

    def make(rng: Any) -> Any:
        a = rng.standard_normal((n, n)) / 4
        return a @ a.T + importlib.import_module("numpy").diag([1.0 + i for i in range(n)])

    return make


def plain(f: Any, *arrays: Any) -> Any:
    """Call a function with the arrays and nothing else."""
    return f(*arrays)


@dataclass(frozen=True, eq=False)
class Client:
    """One call of another library. `call` gets the function and the arrays, of NumPy's or tensors, and returns arrays."""

    name: str  # the path by which it is imported
    inputs: list[Recipe]
    call: Callable[..., Any] = plain
    gradient: bool = False  # gradients flow from the results to every floating input, and are right
    overwrites: bool = False  # for them `allow_mutation_on_saved_tensors`: the library writes over what they need
    host: bool = False  # the library itself goes through NumPy: memory that NumPy can see, no gradients
    dtypes: tuple[str, ...] = ("float64", "float32")  # of the floating inputs
    double: bool = False  # it makes arrays of Python's numbers: in float64 only where that is the default dtype
    note: str = ""  # what is special about the call: `ddof`, a list as a shape, a method of an estimator...
    loose: float = 1.0  # times the tolerance of the dtype; the reason stands beside it

    @property
    def id(self) -> str:
        """Return a name that no other record has."""
        return f"{self.name}[{self.note}]" if self.note else self.name

    def resolve(self) -> Any:
        """Import what it names."""
        module, _, name = self.name.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)
        except ModuleNotFoundError:  # a method of a class
            return getattr(Client(module, []).resolve(), name)
