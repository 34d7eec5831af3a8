"""torchvision's transforms beside mortice's: the same images to both, and the same draws."""

from __future__ import annotations

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image
from torchvision_side import torch, torchvision

import mortice

transforms = torchvision.transforms


class Draws:
    """Stands for the module `torch` in torchvision's transforms: what they draw comes from mortice's generator."""

    def __getattr__(self, name):
        return getattr(torch, name)

    @staticmethod
    def rand(*size):
        return torch.tensor(mortice.rand(*size).tolist())

    @staticmethod
    def randint(low=0, high=None, size=None, dtype=None):
        low, high, size = (0, low, high) if isinstance(high, tuple) else (low, high, size)
        low, high = (0, low) if high is None else (low, high)
        return torch.tensor(mortice.randint(low, high, size).tolist())

    @staticmethod
    def randperm(n):
        return torch.tensor(mortice.randperm(n).tolist())

    @staticmethod
    def randn_like(t, dtype=None):
        return torch.tensor(mortice.randn(t.shape).tolist(), dtype=dtype or t.dtype)

    @staticmethod
    def multinomial(weights, n):
        return torch.tensor(mortice.multinomial(mortice.tensor(weights.tolist()), n).tolist())

    @staticmethod
    def empty(*size, dtype=None):
        return _Empty(*size)

    @staticmethod
    def _sample_dirichlet(alphas):
        return torch.tensor(mortice._sample_dirichlet(mortice.tensor(alphas.tolist())).tolist())


class _Empty:
    def __init__(self, *size):
        self.size = size

    def uniform_(self, low, high):
        low, high = float(low), float(high)
        return torch.tensor([low + (high - low) * mortice.rand(1).item()], dtype=torch.float64)

    def normal_(self):
        return torch.tensor(mortice.randn(*self.size).tolist())


PHOTO = Image.fromarray(np.ascontiguousarray(load_sample_image("china.jpg")[100:190:1, 200:320]))  # 120 wide, 90 high


def pixels(img):
    """Return an image of any kind as a NumPy array of channels, height and width."""
    if isinstance(img, Image.Image):
        a = np.asarray(img)
        return a[None] if a.ndim == 2 else a.transpose(2, 0, 1)
    return img.detach().numpy()


def like(kind, photo=PHOTO):
    """Return the same image for mortice and for torchvision: "pil", "uint8", "float" or a batch of either."""
    if kind == "pil":
        return photo, photo
    a = pixels(photo)
    if kind.startswith("batch"):
        a = np.stack([a, a[:, ::-1, ::-1]])
    if kind.endswith("float"):
        a = (a / 255).astype(np.float32)
    a = np.ascontiguousarray(a)
    return mortice.tensor(a), torch.tensor(a)


def steps_apart(ours, theirs):
    """Return the largest difference in steps of 1/255, and the share of values further apart than one step."""
    a, b = pixels(ours), pixels(theirs)
    assert a.shape == b.shape, (a.shape, b.shape)
    assert a.dtype == b.dtype, (a.dtype, b.dtype)
    if isinstance(ours, Image.Image):
        assert ours.mode == theirs.mode, (ours.mode, theirs.mode)
    unit = 1 / 255 if a.dtype.kind == "f" else 1
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64)) / unit
    return apart.max(initial=0), (apart > 1 + 1e-6).mean() if apart.size else 0.0
