"""Optimisers, with PyTorch's names, options and state_dict format."""

from mortice.optim.adam import Adam, AdamW
from mortice.optim.optimizer import Optimizer
from mortice.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
