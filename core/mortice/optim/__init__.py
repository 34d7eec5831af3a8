"""Optimisers, with PyTorch's names, options and state_dict format."""

from mortice.optim import lr_scheduler, swa_utils
from mortice.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from mortice.optim.adaptive import Adadelta, Adafactor, Adagrad, RMSprop, Rprop
from mortice.optim.lbfgs import LBFGS
from mortice.optim.optimizer import Optimizer
from mortice.optim.sgd import ASGD, SGD, Muon

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip


def __getattr__(name: str) -> object:
    from mortice.addresses import attribute

    return attribute(__name__, name)
