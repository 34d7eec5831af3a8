"""The models by name, and what all their constructors have in common."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from types import MappingProxyType, ModuleType
from typing import Any

from mortice import nn
from mortice.notice import warn

__all__ = ["get_model", "get_model_builder", "list_models"]

_BUILDERS: dict[str, Callable[..., Any]] = {}


def first_weights(
    wanted: Any, first: Callable[[], str], new: str = "weights", old: str = "pretrained", said: bool = True
) -> str | None:
    """Return the weights that are meant where they are asked for by a bool, as at first; `said` under the `old` name."""
    if said:
        warn(f"The parameter '{old}' is deprecated since 0.13 and may be removed in the future, please use '{new}' instead.")
    meant = first() if wanted else None
    better = meant and f" You can also use `{new}={meant.partition('.')[0]}.DEFAULT` to get the most up-to-date weights."
    warn(
        f"Arguments other than a weight enum or `None` for '{new}' are deprecated since 0.13 and may be removed in the future. "
        f"The current behavior is equivalent to passing `{new}={meant}`.{better or ''}"
    )
    return meant


def _by_position(build: Callable[..., Any]) -> Callable[..., Any]:
    """Let weights and progress be given by position too, as at first."""

    @wraps(build)
    def made(*given: Any, **kwargs: Any) -> Any:
        if given:
            names = ("weights", "progress")[: len(given)]
            warn(
                f"Using {' and '.join(map(repr, names))} as positional parameter(s) is deprecated since 0.13 and may be removed in "
                "the future. Please use keyword parameter(s) instead."
            )
            kwargs.update(zip(names, given, strict=False))
        return build(*given[2:], **kwargs)

    return made


def _first(name: str) -> str:
    from mortice.vision.models.weights import get_model_weights

    return str(next(iter(get_model_weights(name))))


def register(
    name: str,
    kind: Callable[..., Any],
    *settings: Any,
    about: str,
    usual: Mapping[str, Any] = MappingProxyType({}),
    **fixed: Any,
) -> Callable[..., Any]:
    """Make the constructor of one model, `kind(*settings, **fixed)`, and list it under its name.

    Keyword arguments of the constructor go before what is `usual`.
    """

    def build(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> Any:
        clash = sorted(fixed.keys() & kwargs.keys())
        if clash:
            raise ValueError(f"{name}: {clash[0]} is {fixed[clash[0]]!r} by definition; got {kwargs[clash[0]]!r}.")
        kwargs = {**usual, **kwargs}
        at_first = "pretrained" in kwargs
        if at_first or isinstance(weights, bool):
            weights = first_weights(kwargs.pop("pretrained", weights), partial(_first, name), said=at_first)
        if weights is None:
            if "weights_backbone" in usual:  # which may be fetched as well
                kwargs["progress"] = progress
            return kind(*settings, **fixed, **kwargs)
        from mortice.vision.models.weights import pretrained

        return pretrained(name, lambda **more: kind(*settings, **fixed, **more), weights, progress, kwargs)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"Make {about}; keyword arguments go to {getattr(kind, '__name__', kind)}."
    build.__module__ = getattr(kind, "__module__", __name__)
    _BUILDERS[name] = build = _by_position(build)
    # Programs import weights from where the model is, too: `from torchvision.models.resnet import ResNet50_Weights`.
    vars(sys.modules[build.__module__]).setdefault("__getattr__", partial(weights_named, build.__module__))
    return build


def _matching(names: Iterable[str], patterns: Iterable[str] | str) -> set[str]:
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return {name for pattern in patterns for name in fnmatch.filter(names, pattern)}


def list_models(
    module: ModuleType | None = None,
    include: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
) -> list[str]:
    """Return the names of the models, of those that `include` matches and `exclude` does not."""
    names = {
        n for n, build in _BUILDERS.items() if module is None or build.__module__.rpartition(".")[0] == module.__name__
    }
    kept = _matching(names, include) if include else names
    return sorted(kept - _matching(names, exclude) if exclude else kept)


def get_model_builder(name: str) -> Callable[..., nn.Module]:
    """Return the constructor of a model by its name."""
    build = _BUILDERS.get(name.lower())
    if build is None:
        raise ValueError(f"Unknown model {name}")
    return build


def get_model(name: str, **config: Any) -> nn.Module:
    """Make a model by its name; `config` goes to its constructor."""
    return get_model_builder(name)(**config)


def weights_named(module: str, name: str) -> object:
    """Return what a module of models has by that name: weights, such as `ResNet50_Weights`, are looked for when asked for."""
    if name in ("get_model_weights", "get_weight") or name.endswith("_Weights"):
        from mortice.vision.models import weights

        found = getattr(weights, name, None) or weights.enumeration(name)
        if found is not None:
            return found
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
