"""Datasets whose samples `transforms.v2` can change as a whole."""

from __future__ import annotations

import copy
from typing import Any

from mortice.vision.datasets.cifar import CIFAR10
from mortice.vision.datasets.folder import DatasetFolder
from mortice.vision.datasets.mnist import MNIST
from mortice.vision.datasets.vision import VisionDataset

# Those of pictures and the numbers of their classes, which need no wrapping; classes made of them are served too.
_CLASSES = (CIFAR10, MNIST, DatasetFolder)


def wrap_dataset_for_transforms_v2(dataset: Any, target_keys: Any = None) -> Any:
    """Return the dataset with its transforms given whole samples, of tv_tensors where those say more than tensors.

    It serves MNIST, CIFAR10 and their kin, DatasetFolder and ImageFolder, whose samples stay what they are. `target_keys`
    chooses among the targets of datasets of detection, of which there are none here.
    """
    if not isinstance(dataset, VisionDataset):
        raise TypeError(
            f"This wrapper is meant for subclasses of `VisionDataset`, but got a '{type(dataset).__name__}' instead. Give "
            "BoundingBoxes, Mask and their kin from its __getitem__."
        )
    if not isinstance(dataset, _CLASSES):
        raise TypeError(
            f"No wrapper exists for dataset class {type(dataset).__name__}. Please wrap the output yourself, with the classes "
            "of mortice.vision.tv_tensors."
        )
    if target_keys is not None:
        raise ValueError(
            f"`target_keys` is for datasets of detection; {type(dataset).__name__} has no targets to choose from. Pass None."
        )
    return type(f"Wrapped{type(dataset).__name__}", (_Wrapper, type(dataset)), {})(dataset)


class _Wrapper:
    def __init__(self, dataset: Any) -> None:
        self._dataset = inner = copy.copy(dataset)
        self.transform, self.target_transform, self.transforms = (
            dataset.transform, dataset.target_transform, dataset.transforms
        )  # fmt: skip
        inner.transform = inner.target_transform = inner.transforms = None

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":  # while it is being made
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __getitem__(self, index: int) -> Any:
        sample = self._dataset[index]
        return sample if self.transforms is None else self.transforms(*sample)

    def __len__(self) -> int:
        return len(self._dataset)

    def __reduce__(self) -> Any:
        dataset = copy.copy(self._dataset)
        dataset.transform, dataset.target_transform, dataset.transforms = (
            self.transform, self.target_transform, self.transforms
        )  # fmt: skip
        return wrap_dataset_for_transforms_v2, (dataset,)
