"""What PyTorch keeps in functorch.experimental."""

from __future__ import annotations

from mortice.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_
from mortice.func.vmap import chunk_vmap

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
