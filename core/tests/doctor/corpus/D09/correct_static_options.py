# static
# What is passed on cannot be read here.
import torch.nn.functional as F
from torch import nn


def normalise(x, *args, **options):
    return F.softmax(x, *args, **options)


class Head(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.softmax = nn.Softmax(dim)

    def softmax(self, x):
        return self.softmax(x)
