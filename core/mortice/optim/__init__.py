"""Optimisers, with PyTorch's names, options and state_dict format."""

from mortice.nn.modules import lead as _lead
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

# PyTorch's own addresses of those that live elsewhere here, `optim.adamw.AdamW` and so on: they lead to the same classes.
for _kind in (AdamW, Adamax, NAdam, RAdam, SparseAdam, Adadelta, Adafactor, Adagrad, RMSprop, Rprop, ASGD, Muon):
    _name = {SparseAdam: "sparse_adam", Adafactor: "_adafactor", Muon: "_muon"}.get(_kind, _kind.__name__.lower())
    globals()[_name] = _lead(f"{__name__}.{_name}", {_kind.__name__: _kind})
