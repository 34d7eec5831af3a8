"""The summaries that libraries make on their own before they hand them to a writer."""

from __future__ import annotations

from typing import Any

from mortice.utils.tensorboard.writer import _hparams

__all__ = ["hparams"]


def hparams(
    hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list[Any]] | None = None
) -> tuple[bytes, ...]:
    """Return the summaries of an experiment, and of its session's start and end, as `add_hparams` writes them."""
    return tuple(_hparams(hparam_dict, metric_dict, hparam_domain_discrete or {}))
