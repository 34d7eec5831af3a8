"""What PyTorch says of writes in place that its graph could not follow. Few programs need it, so it loads at its first use."""

from __future__ import annotations

from mortice.graph import Node, next_seq
from mortice.tensor import FROM_FUNCTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def writes_leaf(what: str = "a leaf", how: str = "is being") -> RuntimeError:
    """Return PyTorch's error for a write into a leaf, with what to do in a note: its text is compared."""
    error = RuntimeError(f"{what} Variable that requires grad {how} used in an in-place operation.")
    error.add_note("Do it under no_grad(), or to a clone of the leaf.")
    return error


def forbidden_view(note: str, how: str = "is being modified inplace") -> str:
    """Return PyTorch's message about a view whose in-place change cannot be recorded."""
    if note.startswith("no_grad"):
        mode, inside, now = "no_grad", "no_grad", "with grad mode enabled"
        if note != mode:
            mode, inside, now = "inference", "inference_mode", "in normal mode"
        return (
            f"A view was created in {mode} mode and {how} {now}. Given that this use case is ambiguous "
            "and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either "
            f"both inside the {inside} block (if you don't want the inplace to be tracked) or both outside (if you want "
            "the inplace to be tracked)."
        )
    which = note.removeprefix(FROM_FUNCTION).rpartition("Backward")[0]
    if note.startswith(FROM_FUNCTION):
        return (
            f"Output {which} is a view and {how}. This view was created inside a custom "
            "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would "
            "override the custom backward associated with the custom Function, leading to incorrect gradients. This "
            "behavior is forbidden. You can fix this by cloning the output of the custom Function."
        )
    return (
        f"Output {which} is a view and {how}. This view is the output of a function that returns multiple views. Such "
        "functions do not allow the output views to be modified inplace. You should replace the inplace operation by "
        "an out-of-place one."
    )


class RefusedNode(Node):
    """The place in the graph of a view of `no_grad` or a Function after its base was written: no gradient can be right."""

    __slots__ = ("note",)

    def __init__(self, view: Any) -> None:
        self.seq, self.edges, self.extra, self.note = next_seq(), (), None, view._note
        self.device, self.shape, self.dtype = view._device, view.shape, view.dtype

    def pull(self, g: Any, graph: bool) -> Any:
        raise RuntimeError(forbidden_view(self.note, "its base or another view of its base has been modified inplace"))
