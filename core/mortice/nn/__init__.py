"""mortice.nn: layers, losses, containers and their initialisation, under PyTorch's names."""

from mortice.nn.activation import *
from mortice.nn.adaptive import *
from mortice.nn.attention import MultiheadAttention as MultiheadAttention
from mortice.nn.container import *
from mortice.nn.conv import *
from mortice.nn.dropout import *
from mortice.nn.linear import *
from mortice.nn.loss import *
from mortice.nn.module import *
from mortice.nn.norm import *
from mortice.nn.padding import *
from mortice.nn.parallel import DataParallel as DataParallel
from mortice.nn.parameter import *
from mortice.nn.pooling import *
from mortice.nn.rnn import *
from mortice.nn.shaping import *
from mortice.nn.sparse import *
from mortice.nn.transformer import *

from . import attention, common_types, functional, grad, init, modules, parallel, utils


def __getattr__(name: str) -> object:
    from mortice.addresses import attribute as _attribute

    return _attribute("mortice.nn", name)
