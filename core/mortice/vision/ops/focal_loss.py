"""The focal loss."""

from __future__ import annotations

from typing import Any

from mortice.nn import functional as F

__all__ = ["sigmoid_focal_loss"]


def sigmoid_focal_loss(
    inputs: Any, targets: Any, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Any:
    """Return binary cross entropy of logits in which what is already right counts little: RetinaNet's loss."""
    if not 0 <= alpha <= 1 and alpha != -1:
        raise ValueError(f"Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1 for ignore.")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(
            f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: 'none', 'mean', 'sum'"
        )
    p = inputs.sigmoid()
    right = p * targets + (1 - p) * (1 - targets)
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * (1 - right) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return loss if reduction == "none" else getattr(loss, reduction)()
