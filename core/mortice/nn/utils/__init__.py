"""mortice.nn.utils: clipping, vectors of parameters, normalised and parametrized weights, pruning, fusion, packing."""

from typing import TYPE_CHECKING, Any

from mortice.addresses import attribute as _attribute
from mortice.lazy import load as _load
from mortice.nn.utils.clip_grad import *
from mortice.nn.utils.convert_parameters import *
from mortice.nn.utils.fusion import *
from mortice.nn.utils.init import *
from mortice.nn.utils.memory_format import *
from mortice.nn.utils.spectral_norm import *
from mortice.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from mortice.nn.utils.weight_norm import weight_norm as weight_norm

from . import parametrizations, parametrize, rnn, stateless

if TYPE_CHECKING:
    from . import prune


def __getattr__(name: str) -> Any:  # a distribution of its own
    return _load("mortice.nn.utils.", name) if name == "prune" else _attribute(__name__, name)
