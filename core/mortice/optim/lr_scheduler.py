"""Learning rate schedules, with PyTorch's names, options and state_dict format.

They live in `schedule` (the base), `decay`, `cycle` and `combine`; this is the namespace.
"""

from mortice.optim.combine import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from mortice.optim.cycle import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from mortice.optim.decay import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from mortice.optim.schedule import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from mortice.optim.schedule import LRScheduler
from mortice.optim.schedule import _LRScheduler as _LRScheduler

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
