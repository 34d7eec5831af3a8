"""The part of Module that saves and loads: state_dict, load_state_dict, and the points where subclasses take part."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Iterator, Mapping
from typing import Any

from mortice import Tensor, no_grad
from mortice.__future__ import get_swap_module_params_on_conversion
from mortice.nn.hooks import HookDict
from mortice.nn.parameter import Parameter, is_lazy
from mortice.nn.swap import swap_tensors
from mortice.notice import warn

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ("missing_keys", "unexpected_keys"))):
    """What `load_state_dict(strict=False)` found missing and unexpected."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _load(
    module: Any, state: Any, prefix: str, metadata: Any, assign: bool, missing: list[str], unexpected: list[str],
    errors: list[str],
) -> None:  # fmt: skip
    """Let a module and those below it read their entries; not inside the method, where it would hold itself alive."""
    local = metadata.get(prefix[:-1], {})
    if assign:
        local = {**local, "assign_to_params_buffers": True}
    module._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {k: v for k, v in state.items() if k.startswith(below)}
            _load(child, part, below, metadata, assign, missing, unexpected, errors)
    keys = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                "values, if incompatible_keys need to be modified, it should be done inplace."
            )


class Stateful:
    """The part of Module that makes and takes state_dicts."""

    _version = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: HookDict
    _state_dict_hooks: HookDict
    _load_state_dict_pre_hooks: HookDict
    _load_state_dict_post_hooks: HookDict

    # ---- saving ----

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return parameters and persistent buffers by dotted name; they share memory with the module's."""
        if args:
            warn(
                "Positional args are being deprecated, use kwargs instead: state_dict(destination=, prefix=, keep_vars=).",
                FutureWarning,
            )
            destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args) :])
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local: dict[str, Any] = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook, options in self._state_dict_hooks.entries():
            changed = hook(self, destination, prefix, local)
            if changed is not None:
                if options.get("in_place"):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = changed
        return destination

    def _persistent_tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield the names of parameters and persistent buffers that there are, and the tensors."""
        for tensors in (self._parameters, self._buffers):
            for name, value in tensors.items():
                if value is not None and (tensors is self._parameters or name not in self._non_persistent_buffers_set):
                    yield name, value

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._persistent_tensors():
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """Return state beside parameters and buffers; define it together with `set_extra_state`."""
        raise RuntimeError("get_extra_state: the module defines set_extra_state only; define both.")

    def set_extra_state(self, state: Any) -> None:
        """Take the state that `get_extra_state` returned."""
        raise RuntimeError("set_extra_state: the module defines get_extra_state only; define both.")

    # ---- loading ----

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy parameters and buffers from a state_dict, or with `assign` take its tensors themselves.

        Raises:
            RuntimeError: listing missing, unexpected and mis-shaped keys (the first two only when strict).
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None) or {}
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        state = OrderedDict(state_dict)
        if metadata:
            state._metadata = metadata
        _load(self, state, "", metadata, assign, missing, unexpected, errors)
        if strict:
            for keys, kind in ((unexpected, "Unexpected"), (missing, "Missing")):
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(0, f"{kind} key(s) in state_dict: {names}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Load this module's own entries, those of `prefix`; subclasses override it to read older formats."""
        for hook in [*self._load_state_dict_pre_hooks.values()]:
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = dict(self._persistent_tensors())
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_one(name, value, key, state_dict[key], assign)
                if problem:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, _, rest = key[len(prefix) :].partition(".")
                    if name not in (self._modules if rest else own):
                        unexpected_keys.append(key)

    def _load_one(self, name: str, mine: Any, key: str, given: Any, assign: bool) -> str | None:
        """Load one parameter or buffer; return what is wrong, if anything is."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected {Tensor.__module__}.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
        if is_lazy(mine) and is_lazy(given):
            return None
        if not is_lazy(mine):
            if not mine.shape and given.shape == (1,):
                given = given[0]  # checkpoints of PyTorch 0.3 and before have no 0-d tensors
            if given.shape != mine.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                    f"current model is {mine.shape}."
                )
            if mine.is_meta and not (given.is_meta or assign):
                warn(
                    f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                    "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                    "to their corresponding key in the module instead of copying them in place?)"
                )
        try:
            with no_grad():
                if get_swap_module_params_on_conversion() and not is_lazy(mine):
                    _swap(mine, given, assign, key)
                elif not assign:
                    mine.copy_(given.to(mine.device))
                elif not isinstance(mine, Parameter):
                    setattr(self, name, given)
                elif isinstance(given, Parameter):
                    setattr(self, name, given.requires_grad_(mine.requires_grad))
                else:
                    setattr(self, name, Parameter(given, mine.requires_grad))
        except Exception as error:
            return f'While copying the parameter named "{key}", an exception occurred: {error}'
        return None


def _swap(mine: Any, given: Any, assign: bool, key: str) -> None:
    """Exchange what a parameter or buffer holds with what `module_load` makes of the loaded tensor."""
    new = mine.module_load(given, assign=assign)
    if new is mine or new is given:
        raise RuntimeError(
            f"module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            f"module_load; loading {key}."
        )
    if isinstance(mine, Parameter):
        new = (
            new.requires_grad_(mine.requires_grad) if isinstance(new, Parameter) else Parameter(new, mine.requires_grad)
        )
    swap_tensors(mine, new)
