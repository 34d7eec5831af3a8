"""The namespaces of PyTorch whose public names are compared, and which names those are.

`python -m tests.oracle.places`, run from core/ where torch is installed, writes them to `public_names.txt`, from which
the compatibility page is made without torch.
"""

from __future__ import annotations

import importlib
import types
from pathlib import Path
from typing import Any

PLACES = [
    "torch", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize",
    "nn.utils.parametrizations", "nn.utils.prune", "optim", "optim.lr_scheduler", "optim.swa_utils", "linalg", "fft",
    "special", "signal.windows", "autograd", "autograd.functional", "autograd.forward_ad", "autograd.graph", "func",
    "utils.data", "utils.checkpoint", "distributions", "amp", "cuda", "random", "testing", "serialization", "profiler", "hub",
]  # fmt: skip
NAMES = Path(__file__).with_name("public_names.txt")
# What PyTorch's modules hold of the documentation that they are made with.
_NOT_NAMES = {"common_notes", "common_args", "multi_dim_common", "reproducibility_notes", "sparse_support_notes", "tf32_notes"}


def place(library: str, name: str) -> Any:
    """Return a namespace of a library, torch or mortice; None where it has none."""
    if name == "torch":
        return importlib.import_module(library)
    if name == "Tensor":
        return importlib.import_module(library).Tensor
    try:
        return importlib.import_module(f"{library}.{name}")
    except ModuleNotFoundError:
        return None


def public(name: str) -> list[str]:
    """Return the public names of a namespace of PyTorch's, without modules and what it imports from elsewhere."""
    there = place("torch", name)
    listed = getattr(there, "__all__", None) if name not in ("torch", "linalg", "special") else None
    found = []
    for n in sorted(set(listed or dir(there))):
        value = getattr(there, n, None)
        if n.startswith("_") or n in _NOT_NAMES or isinstance(value, types.ModuleType):
            continue
        maker = getattr(value, "__module__", None) or "torch"
        if listed is None and name not in ("torch", "Tensor") and not maker.startswith("torch"):
            continue
        if name not in ("torch", "autograd") and n == "Tensor":
            continue
        found.append(n)
    return found


def recorded() -> dict[str, list[str]]:
    """Read `public_names.txt`."""
    table: dict[str, list[str]] = {}
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(": ")
            table[name] = rest.split()
    return table


def written() -> str:
    """Return the text of `public_names.txt` for the torch that is installed."""
    import torch

    lines = [f"# Public names of PyTorch {torch.__version__.partition('+')[0]}, by namespace: python -m tests.oracle.places."]
    return "\n".join([*lines, *[f"{name}: {' '.join(public(name))}" for name in PLACES]]) + "\n"


if __name__ == "__main__":
    NAMES.write_text(written(), encoding="utf-8")
