"""Writes `models_torchvision_0_28.txt`: of each model its parameters, its buffers and a digest of its state_dict's keys and shapes.

Run it where torchvision 0.28 is installed: `python core/tests/vision/models_table.py`. `test_models.py` compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("models_torchvision_0_28.txt")


def row(name: str, model: Any) -> str:
    """Describe a model of either library."""
    state = "\n".join(f"{k} {tuple(v.shape)} {str(v.dtype).partition('.')[2]}" for k, v in model.state_dict().items())
    modules = "\n".join(f"{n} {type(m).__name__}" for n, m in model.named_modules())
    count = sum(p.numel() for p in model.parameters())
    digests = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in (state, modules)]
    return " ".join([name, str(count), *digests])


def make(library: Any, name: str, **kwargs: Any) -> Any:
    """Make a model of mortice.vision.models or torchvision.models."""
    if name in ("googlenet", "inception_v3") and library.__name__.startswith("torchvision"):
        kwargs["init_weights"] = False  # which says nothing and takes no time
    if name.startswith(("fcn", "deeplab", "lraspp")) or name in library.list_models(library.detection):
        kwargs["weights_backbone"] = None
    if name.startswith("regnet") and library.__name__.startswith("torchvision"):
        _compute_widths(library.regnet.BlockParams)
    return library.get_model(name, **kwargs)


def _compute_widths(kind: Any) -> None:
    """Let torchvision compute the widths of a RegNet, by tensors, where a model is made without memory."""
    import torch

    compute = kind.from_init_params.__func__

    def on_cpu(cls: Any, **kwargs: Any) -> Any:
        with torch.device("cpu"):
            return compute(cls, **kwargs)

    if compute.__name__ != "on_cpu":
        kind.from_init_params = classmethod(on_cpu)


@contextmanager
def undrawn() -> Iterator[None]:
    """Let PyTorch make modules without memory and without drawing their weights, which takes most of the time."""
    import torch

    init = torch.nn.init
    drawing = {name: f for name, f in vars(init).items() if name.endswith("_") and callable(f)}
    try:
        for name in drawing:
            setattr(init, name, lambda tensor, *args, **kwargs: tensor)
        with torch.device("meta"):
            yield
    finally:
        for name, f in drawing.items():
            setattr(init, name, f)


def names() -> list[str]:
    """Return the models that both libraries have."""
    from mortice.vision import models

    return [name for name in models.list_models() if name != "lenet"]


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))
    from torchvision_side import torchvision

    with undrawn():
        TABLE.write_text("\n".join(row(n, make(torchvision.models, n)) for n in names()) + "\n")
