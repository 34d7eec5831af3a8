"""Where libraries take the types of a compiled module, and of tensors while one is recorded, from."""

from contextlib import nullcontext as unset_fake_temporarily  # no mode makes tensors fake
from typing import Any

from mortice.nn import Module

__all__ = [
    "FakeTensor", "FakeTensorMode", "OptimizedModule", "active_fake_mode", "detect_fake_mode", "get_proxy_mode",
    "is_dynamo_supported", "is_fake", "unset_fake_temporarily",
]  # fmt: skip


def _uncompiled(fn: Any) -> Any:
    return fn


class OptimizedModule(Module):
    """What `compile` makes of a module: that module as `_orig_mod`, to which attributes go, and its calls."""

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self.__dict__["_modules"]["_orig_mod"] = mod
        self.__dict__["dynamo_ctx"] = dynamo_ctx or _uncompiled  # Lightning wraps forward in it

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._orig_mod(*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:
        if self.__dict__.get("_modules"):
            self._orig_mod.training = value

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod" or "_modules" not in self.__dict__:
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = name in ("_orig_mod", "training", "forward") or name in self.__dict__ or not self.__dict__.get("_modules")
        (super() if own else self._orig_mod).__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        (super() if name in self.__dict__ else self._orig_mod).__delattr__(name)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return True

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


class FakeTensor:
    """The type of a tensor that stands for one while a program is recorded, for `isinstance`; there are none."""


class FakeTensorMode:
    """The type of the mode that makes tensors fake, for `isinstance`; to enter it raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("FakeTensorMode: no tensors are fake here. Use torch.device('meta') for shapes without data.")


def is_dynamo_supported() -> bool:
    """Return True: `compile` takes modules and functions on every Python."""
    return True


def is_fake(x: object) -> bool:
    """Return False."""
    return False


def get_proxy_mode() -> None:
    """Return None: no program is recorded."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Return None: no tensor is fake, and no mode makes them so."""


active_fake_mode = detect_fake_mode
