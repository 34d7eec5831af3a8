"""Mistakes that end in an error: what the error says is in the core; here is what a session can add to it."""

from __future__ import annotations

import gc
from typing import Any

from mortice import Tensor
from mortice.doctor import events, trail
from mortice.doctor.finding import Site
from mortice.doctor.rule import Rule, register
from mortice.doctor.spelling import distance


class Message(Rule):
    """A mistake that the error itself names, session or not."""

    level = "error"


@register
class NonLeaf(Message):
    """An optimiser of what was computed from a parameter."""

    id = "D25"
    title = "Optimizing a view or a function of a parameter"
    why = "A step would change the result of one computation, and not the parameter that the next one reads."
    remedy = "Give the optimizer the parameter itself, and compute the view from it in forward."


@register
class Unbatchable(Message):
    """Items that default_collate cannot join."""

    id = "D26"
    title = "Dataset returns objects that cannot be batched"
    why = "A batch is made by stacking: items must be tensors, arrays or numbers, of one shape."
    remedy = "End the transform with ToTensor(); bring images to one size; pad sequences in a collate_fn."


@register
class MixedDtypes(Message):
    """Operands of different dtypes or devices."""

    id = "D28"
    title = "dtype / device mismatch"
    why = "Layers compute in one dtype on one device; NumPy's default is float64, that of layers float32."
    remedy = "Cast the input with .float(), or the model with .double(); move both to one device."


@register
class BiasFan(Message):
    """A fan-based initialisation of a one-dimensional parameter."""

    id = "D41"
    title = "xavier or kaiming on a bias"
    why = "These scale by the number of inputs of a unit, which a bias does not have."
    remedy = "Initialise biases with zeros_ or constant_: if p.ndim > 1: xavier_uniform_(p)."


@register
class FolderStructure(Message):
    """An ImageFolder of a folder that holds the images itself."""

    id = "D42"
    title = "ImageFolder structure and file order"
    why = "ImageFolder takes the name of a subfolder for the class, and orders files by name within each class."
    remedy = "Use root/class/image.png; take paths from dataset.samples, never from os.listdir."


@register
class LeftoverWorkers(Message):
    """Loader processes that outlive their program."""

    id = "D46"
    title = "Leftover worker processes"
    why = "They keep memory and GPUs. Here it cannot happen: workers watch their parent and end with it."
    remedy = "Nothing to do."


@register
class OverwrittenValue(Rule):
    """A backward that needs a value which was changed, or freed, since it was saved."""

    id = "D29"
    level = "error"
    title = "In-place and second-backward errors"
    why = "backward reads values that forward saved; a write or an earlier backward has taken them away."
    remedy = "Step after every backward that needs the values; add losses, or retain_graph=True, for two backwards of one graph."

    def start(self) -> None:
        self.stepped_at: tuple[str, Site] | None = None
        self.freed: dict[int, tuple[Any, Site]] = {}  # by the identity of a node that a backward has freed
        self.now: events.Backward | None = None

    def backward(self, event: events.Backward) -> None:
        self.now = event

    def backward_done(self, event: events.Backward) -> None:
        if event.retain_graph or not self.session.close:
            return
        self.freed.clear()
        for node in trail.walk(event.loss, limit=200):
            self.freed[id(node)] = node, event.site

    def stepped(self, event: events.Step) -> None:
        self.stepped_at = type(event.optimizer).__name__, events.here()
        self.freed.clear()

    def failed(self, event: events.Failed) -> None:
        if self.now is None or event.during != "backward":
            return
        said, site = str(event.error), self.now.site
        if "modified by an inplace operation" in said:
            if "a leaf" in said and self.stepped_at is not None:
                kind, where = self.stepped_at
                event.hint(f"the last {kind}.step() was at {where}; the values are needed by the backward at {site}.")
            self.report(said.partition(". ")[0] + ".", site=site)
        elif "backward through the graph a second time" in said:
            first = next(
                (self.freed[id(n)][1] for n in trail.walk(self.now.loss, limit=200) if id(n) in self.freed), None
            )
            if first is not None:
                event.hint(f"the first backward was at {first}; pass retain_graph=True there, or sum the losses.")
            self.report("backward ran a second time through a graph that the first one had freed.", site=site)


@register
class OutOfMemory(Rule):
    """Memory that ran out, and what it is full of."""

    id = "D45"
    level = "error"
    title = "Out of memory"
    why = "Activations grow with the batch; graphs live on while something holds a loss or retain_graph was asked for."
    remedy = "Reduce the batch size; accumulate losses by .item(); drop retain_graph=True."

    def start(self) -> None:
        self.retained_at: Site | None = None

    def backward(self, event: events.Backward) -> None:
        if event.retain_graph:
            self.retained_at = event.site

    def failed(self, event: events.Failed) -> None:
        error = event.error
        memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
        if not memory and "allocate" not in str(error):
            return
        live = [t for t in gc.get_objects() if isinstance(t, Tensor)]
        total = sum(t.nbytes for t in live)
        if total:
            weights = sum(t.nbytes for t in live if t.is_leaf and t.requires_grad)
            largest = sorted(live, key=lambda t: t.nbytes, reverse=True)[:3]
            shown = ", ".join(f"{tuple(t.shape)} ({t.nbytes / 2**20:.0f} MiB)" for t in largest)
            batch = f" of batch {self.session.batch.size}" if self.session.batch is not None else ""
            event.hint(
                f"live tensors hold {total / 2**20:.0f} MiB, {weights / total:.0%} of it parameters{batch and ', the rest'}"
                f"{batch}; the largest are {shown}."
            )
        if self.retained_at is not None:
            event.hint(f"a graph is retained since {self.retained_at}.")
        self.report(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'out of memory'}")


@register
class MisspeltAttribute(Rule):
    """An attribute of a tensor that nothing reads, set by a name that is nearly another."""

    id = "D23"
    title = "Misspelt attribute"
    why = "Python lets any attribute be set on a tensor; under a wrong name it has no effect."
    remedy = "Correct the name."
    settable = "requires_grad"  # `p.name` and `p.grads` are names that people do give

    def start(self) -> None:
        self.said: set[str] = set()

    def step(self, event: events.Step) -> None:
        if not self.session.close:
            return
        for p in (*event.params, *(p for p, _ in self.session.parameters.items())):
            for name in p.__dict__:
                if name not in self.said and not name.startswith("_") and not hasattr(type(p), name):
                    self.said.add(name)
                    if name.startswith(self.settable) or distance(name, self.settable) <= 2:
                        self.report(
                            f"Setting unknown attribute {name!r} on a Tensor ({self.session.parameter(p)}) has no effect on "
                            f"autograd; did you mean {self.settable!r}?",
                            remedy=f"Write {self.settable}.",
                        )
