"""What code for PyTorch's scripts takes from `torch._jit_internal` and `torch.jit.annotations`: names of types, and identities."""

from collections.abc import Callable
from typing import *  # noqa: F403
from typing import Any

from mortice.jit import unused

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list  # a list of so many, or one number for all
_copy_to_script_wrapper = _overload = _overload_method = unused


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str | None, func_name: str | None
) -> Callable[..., Any]:
    """Return a function that calls one of two, as an argument of it says that is a bool."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ or if_false.__doc__
    fn.__module__, fn.__name__ = module_name or fn.__module__, func_name or fn.__name__
    return fn
