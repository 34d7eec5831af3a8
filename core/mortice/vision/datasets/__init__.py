"""Datasets of pictures under torchvision's names, from local files in their published formats."""

from mortice.vision.datasets import utils
from mortice.vision.datasets.celeba import CelebA
from mortice.vision.datasets.cifar import CIFAR10, CIFAR100
from mortice.vision.datasets.fakedata import FakeData
from mortice.vision.datasets.folder import DatasetFolder, ImageFolder
from mortice.vision.datasets.mnist import EMNIST, KMNIST, MNIST, QMNIST, FashionMNIST
from mortice.vision.datasets.stl10 import STL10
from mortice.vision.datasets.svhn import SVHN
from mortice.vision.datasets.vision import VisionDataset
from mortice.vision.datasets.wrapper import wrap_dataset_for_transforms_v2

__all__ = [
    "CIFAR10", "CIFAR100", "EMNIST", "KMNIST", "MNIST", "QMNIST", "STL10", "SVHN", "CelebA", "DatasetFolder", "FakeData",
    "FashionMNIST", "ImageFolder", "VisionDataset", "wrap_dataset_for_transforms_v2",
]  # fmt: skip
