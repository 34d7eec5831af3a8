# static
# Settings and classes of one's own may have such names; pictures have a size, and methods may be passed on.
import torch
from PIL import Image
from torch import nn


class Stage(nn.Module):
    def __init__(self, requires_grads):
        super().__init__()
        self.requires_grads = requires_grads
        self.weight = nn.Parameter(torch.zeros(3), requires_grad=requires_grads)


stage = Stage(True)
stage.requires_grads = False
stage.weight.requires_grad = False
width = Image.open("a.png").size[0]
step = torch.optim.SGD(stage.parameters(), lr=0.1).step
n = stage.weight.size(0) + stage.weight.shape[0]
