"""functional_call under its first name; it lives in mortice.func."""

from __future__ import annotations

from typing import Any

from mortice.func import functional_call as _functional_call
from mortice.func.modules import _reparametrize_module  # noqa: F401
from mortice.notice import warn


def functional_call(
    module: Any, parameters_and_buffers: dict[str, Any], args: Any = None, kwargs: dict[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with other parameters and buffers, given by name; prefer `mortice.func.functional_call`."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0. Please use `torch.func.functional_call`.",
        FutureWarning,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
