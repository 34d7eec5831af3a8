"""PyTorch's own addresses of its layers, `nn.modules.batchnorm._BatchNorm` and so on: they lead to the same classes.

The layers live one level up; here are only names, for scripts that import them from where PyTorch keeps them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

from mortice import Tensor
from mortice.nn import (
    activation,
    adaptive,
    attention,
    container,
    conv,
    dropout,
    functional,
    hooks,
    init,
    lazy,
    linear,
    loss,
    module,
    norm,
    padding,
    pooling,
    rnn,
    shaping,
    sparse,
    state,
    transformer,
)
from mortice.nn.modules import utils
from mortice.nn.parameter import Parameter

_KEPT_IN = {
    "linear": (linear, attention), "activation": (activation, attention), "adaptive": (adaptive,), "batchnorm": (norm,),
    "channelshuffle": (shaping,), "container": (container,), "conv": (conv,), "dropout": (dropout,), "flatten": (shaping,),
    "fold": (shaping,), "instancenorm": (norm,), "lazy": (lazy,), "loss": (loss, adaptive), "module": (module,),
    "normalization": (norm,), "padding": (padding,), "pixelshuffle": (shaping,), "pooling": (pooling,), "rnn": (rnn,),
    "sparse": (sparse,), "transformer": (transformer,), "upsampling": (shaping,), "distance": (shaping,),
}  # fmt: skip


def _addindent(s_: str, numSpaces: int) -> str:
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line for line in rest)])


# What else scripts take from there; `F` and such, which an editor finds in PyTorch's files first, are in each of them.
_MORE = {
    "module": {n: f for n, f in vars(hooks).items() if n.startswith("register_module_") or n == "_WrappedHook"}
    | {n: getattr(state, n) for n in ("_IncompatibleKeys", "_EXTRA_STATE_KEY_SUFFIX")}
    | {"_addindent": _addindent},
    "conv": {n: getattr(utils, n) for n in ("_single", "_pair", "_triple")},
    "transformer": {"_get_activation_fn": transformer._activation, "_get_clones": transformer._copies},
}  # fmt: skip


def _lead(name: str) -> ModuleType:
    """Make the module of that name, and all that it has here too."""
    made = (hooks.Tables if name == "module" else ModuleType)(f"{__name__}.{name}", f"What PyTorch keeps in torch.nn.modules.{name}.")
    for place in _KEPT_IN[name]:
        layers = {n: c for n, c in vars(place).items() if isinstance(c, type) and c.__module__ == place.__name__}
        made.__dict__.update(layers)
        globals().update({n: c for n, c in layers.items() if not n.startswith("_")})
    made.__dict__.update(_MORE.get(name, {}), F=functional, Parameter=Parameter, Tensor=Tensor, init=init)
    sys.modules[made.__name__] = made
    return made


for _name in _KEPT_IN:
    globals()[_name] = _lead(_name)

def as_pytorch_names() -> Iterator[tuple[type, str]]:
    """Yield each layer with the module that PyTorch has it in: of its neighbours' the one that its name tells, or the last."""
    for place in {p for places in _KEPT_IN.values() for p in places}:
        files = [f for f in _KEPT_IN if place in _KEPT_IN[f]]
        for name, kind in vars(place).items():
            if isinstance(kind, type) and kind.__module__ == place.__name__ and issubclass(kind, module.Module):
                told = name.lower().replace("un", "")
                file = next((f for f in files if f.removesuffix("ing") in told), files[-1])
                yield kind, f"torch.nn.modules.{file}"


_layers = [n for n, c in globals().items() if isinstance(c, type) and hasattr(c, "load_state_dict")]
__all__ = sorted(_layers)  # what the places above hold
