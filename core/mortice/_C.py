"""What libraries ask of PyTorch's compiled module in plain programs: a usage log, and whether a trace is being recorded."""

from __future__ import annotations


def _log_api_usage_once(event: str) -> None:
    """Do nothing: no usage is logged."""


def _get_tracing_state() -> None:
    """Return None: nothing is traced into a program."""


__all__: list[str] = []
