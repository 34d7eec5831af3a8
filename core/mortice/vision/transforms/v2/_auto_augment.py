"""Policies of random changes: AutoAugment, RandAugment, TrivialAugment and AugMix, for one image or video of a sample."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import Tensor
from mortice.utils import _pytree
from mortice.vision import transforms as v1
from mortice.vision import tv_tensors
from mortice.vision.transforms import autoaugment as _v1
from mortice.vision.transforms._draws import chance, integer
from mortice.vision.transforms.autoaugment import AutoAugmentPolicy
from mortice.vision.transforms.v2 import functional as F
from mortice.vision.transforms.v2._geometry import Filling
from mortice.vision.transforms.v2._transform import Transform
from mortice.vision.transforms.v2._utils import IMAGE_LIKE, check_type
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor
from mortice.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask, Video

__all__ = ["AugMix", "AutoAugment", "RandAugment", "TrivialAugmentWide"]

_NAMES = f"Identity {_v1._MOVES} {_v1._COLOURS} {_v1._LEVELS}"


def _negative() -> bool:
    return chance() <= 0.5


class _Policy(Filling, Transform):
    def __init__(self, interpolation: Any, fill: Any) -> None:
        super().__init__()
        self.interpolation = interpolation
        self._set_fill(fill)

    def forward(self, *inputs: Any) -> Any:
        """Change the image or video of a sample."""
        flat_inputs, spec = _pytree.tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        found = []
        for i, (inpt, needed) in enumerate(zip(flat_inputs, self._needs_transform_list(flat_inputs))):
            if needed and check_type(inpt, IMAGE_LIKE):
                found.append(i)
            elif isinstance(inpt, (BoundingBoxes, Mask, KeyPoints)):
                raise TypeError(f"Inputs of type {type(inpt).__name__} are not supported by {type(self).__name__}()")
        if not found:
            raise TypeError("Found no image in the sample.")
        if len(found) > 1:
            raise TypeError(
                "Auto augment transformations are only properly defined for a single image or video, but found "
                f"{len(found)}."
            )
        flat_inputs[found[0]] = self._changed(flat_inputs[found[0]])
        return _pytree.tree_unflatten(flat_inputs, spec)

    def _changed(self, img: Any) -> Any:
        raise NotImplementedError

    def _apply(self, img: Any, name: str, magnitude: float) -> Any:
        if name == "Solarize":  # whose magnitudes are parts of white
            magnitude *= _v1.F._tensor.max_value(img.dtype) if isinstance(img, Tensor) else 255.0
        return _v1._apply(img, name, magnitude, self.interpolation, self._fill_for(img), F)


def _moves(img: Any) -> tuple[float, float]:
    h, w = F.get_size(img)
    return 150.0 / 331.0 * w, 150.0 / 331.0 * h


class AutoAugment(_Policy):
    """Apply one of the pairs of changes that a policy lists.

    Paper: "AutoAugment: Learning Augmentation Strategies from Data", Cubuk et al., 2018.
    """

    _v1_transform_cls = v1.AutoAugment

    def __init__(
        self, policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET, interpolation: Any = "nearest", fill: Any = None
    ) -> None:
        super().__init__(interpolation, fill)
        self.policy = policy
        self._policies = v1.AutoAugment(policy).policies

    def _changed(self, img: Any) -> Any:
        names = f"{_v1._MOVES} {_v1._COLOURS} {_v1._LEVELS} Invert"
        space = _v1._space(names, 0.3, _moves(img), 30.0, 0.9, (8, 4), white=1.0)
        for name, p, i in self._policies[integer(0, len(self._policies))]:
            if chance() <= p:
                magnitude = 0.0 if i is None else _v1._magnitude(name, space[name], i, 10)
                img = self._apply(img, name, -magnitude if name in _v1._SIGNED and _negative() else magnitude)
        return img


class RandAugment(_Policy):
    """Apply `num_ops` changes of one magnitude.

    Paper: "RandAugment: Practical automated data augmentation with a reduced search space", Cubuk et al., 2019.
    """

    _v1_transform_cls = v1.RandAugment

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: Any = "nearest",
        fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"num_ops should be a non-negative integer, but got {num_ops} instead.")
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def _changed(self, img: Any) -> Any:
        space = _v1._space(_NAMES, 0.3, _moves(img), 30.0, 0.9, (8, 4), white=1.0)
        for _ in range(self.num_ops):
            img = self._apply(img, *_v1._draw(space, self.num_magnitude_bins, lambda: self.magnitude, _negative))
        return img


class TrivialAugmentWide(_Policy):
    """Apply one change of a random magnitude, from wide ranges.

    Paper: "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", Mueller and Hutter, 2021.
    """

    _v1_transform_cls = v1.TrivialAugmentWide

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Any = "nearest", fill: Any = None) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def _changed(self, img: Any) -> Any:
        bins = self.num_magnitude_bins
        space = _v1._space(_NAMES, 0.99, (32.0, 32.0), 135.0, 0.99, (8, 2), white=1.0)
        return self._apply(img, *_v1._draw(space, bins, lambda: integer(0, bins), _negative))


class AugMix(_Policy):
    """Mix an image with several chains of changes of it.

    Paper: "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty", Hendrycks et al., 2019.

    Args:
        severity: the largest magnitude, from 1 to 10.
        mixture_width: the number of chains.
        chain_depth: the number of changes in each, from 1 to 3 at random where it is not positive.
        alpha: of the Dirichlet distributions that give the weights.
        all_ops: whether brightness, colour, contrast and sharpness are among the changes.
        interpolation, fill: as of `functional.affine`.
    """

    _v1_transform_cls = v1.AugMix

    def __init__(
        self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0, all_ops: bool = True,
        interpolation: Any = "bilinear", fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        if not 1 <= severity <= 10:
            raise ValueError(f"The severity must be between [1, 10]. Got {severity} instead.")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def _weights(self, n: int, like: Any) -> Any:
        """Draw the weights of n parts, for each image or video of a batch."""
        return mortice._sample_dirichlet(mortice.full((n,), self.alpha, device=like.device).expand(like.shape[0], n))

    def _changed(self, img: Any) -> Any:
        pixels = img.as_subclass(Tensor) if isinstance(img, Tensor) else F.pil_to_tensor(img)
        h, w = pixels.shape[-2:]
        names = f"{_v1._MOVES} {_v1._LEVELS} {_v1._COLOURS if self.all_ops else ''}"
        space = _v1._space(names, 0.3, (w / 3.0, h / 3.0), 30.0, 0.9, (4, 0), white=1.0)
        batch = pixels.reshape([1] * ((5 if isinstance(img, Video) else 4) - pixels.ndim) + list(pixels.shape))
        each = batch.shape[0], *(1,) * (batch.ndim - 1)
        shares = self._weights(2, batch)
        weights = self._weights(self.mixture_width, batch) * shares[:, 1:]
        mix = shares[:, 0].reshape(each) * batch
        for i in range(self.mixture_width):
            changed = batch
            for _ in range(self.chain_depth if self.chain_depth > 0 else integer(1, 4)):
                changed = self._apply(changed, *_v1._draw(space, 10, lambda: integer(0, self.severity), _negative))
            mix = mix + weights[:, i].reshape(each) * changed
        mix = mix.reshape(pixels.shape).to(pixels.dtype)
        if not isinstance(img, Tensor):
            return F.to_pil_image(mix)
        return mix if is_pure_tensor(img) else tv_tensors.wrap(mix, like=img)
