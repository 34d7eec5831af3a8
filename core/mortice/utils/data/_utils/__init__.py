"""PyTorch's own addresses of the parts of data loading, `utils.data._utils.collate` and so on: they lead to the same modules."""

import sys

from mortice.utils.data import collate, fetch, worker

__all__ = ["collate", "fetch", "worker"]

for _name in __all__:
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]
