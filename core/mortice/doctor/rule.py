"""Rule: what one mistake looks like while a program runs. Subclasses say what they want to see by defining a method.

Events come while the session looks closely: in the first steps of each phase and in a few of every hundred afterwards, always
several in a row. A rule sees events, keeps what it needs in itself (it is made anew for every session) and calls `report`. It must not
change a value, draw a random number or keep a tensor alive beyond the step in which it saw it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mortice.doctor.finding import Site

if TYPE_CHECKING:
    from mortice.doctor import events
    from mortice.doctor.session import Session

STEADY = ("epoch", "epoch_done", "mode", "failed", "end")  # come however closely the session looks
EVENTS = (
    "call", "function", "broadcast", "view", "getitem", "forward_pre", "forward", "answer", "backward", "backward_done",
    "zeroed", "step", "stepped", "epoch", "batch", "epoch_done", "mode", "bypassed", "failed", "end",
)  # fmt: skip


class Rule:
    """The base of all rules: class attributes describe the mistake, methods named in `EVENTS` watch for it.

    Attributes:
        id: "D04"; third-party rules take a prefix of their own.
        level: of its findings, where `report` does not say another.
        title: the mistake in a few words.
        why: why it hurts, in a sentence or two; shown with every finding.
        remedy: what to do, in one line.
        ops: the ops that `call` is shown, by their names.
        modules: the names of the classes whose modules, or modules of subclasses, `forward_pre` and `forward` are shown;
            every module where it is empty.
        functions: the functions of `nn.functional` that `function` is shown, by their names; methods of Tensor and
            functions of mortice that are called so as well. They cost less than ops of other names do.
        always: events that it is shown also while the session does not look closely; those of passes, modes, errors and
            the end always come.
        style: a matter of taste: quiet unless `watch(style=True)`.
    """

    id: ClassVar[str] = ""
    level: ClassVar[str] = "warning"
    title: ClassVar[str] = ""
    why: ClassVar[str] = ""
    remedy: ClassVar[str] = ""
    ops: ClassVar[tuple[str, ...]] = ()
    modules: ClassVar[tuple[str, ...]] = ()
    functions: ClassVar[tuple[str, ...]] = ()
    always: ClassVar[tuple[str, ...]] = ()
    style: ClassVar[bool] = False

    def __init__(self, session: Session) -> None:
        self.session = session
        self.start()

    def start(self) -> None:
        """Prepare what the rule remembers."""

    def report(
        self,
        message: str,
        *,
        site: Site | None = None,
        level: str | None = None,
        remedy: str | None = None,
        **values: Any,
    ) -> None:
        """Say that the mistake was seen, once for each place; the user's current line where `site` does not say it."""
        self.session.add(self, message, site=site, level=level, remedy=remedy, values=values)

    def again(self, site: Site) -> bool:
        """Tell whether the rule has reported at a place, and count that; before a look that costs something."""
        return self.session.again(self.id, site)

    # What a rule may see. Those that it does not define cost nothing.

    if TYPE_CHECKING:

        def call(self, event: events.Call) -> None:
            """See a call of one of `ops`."""

        def function(self, event: events.Call) -> None:
            """See a call of one of `functions`, modules' own calls as well."""

        def broadcast(self, event: events.Call) -> None:
            """See -, * or == between tensors of unlike shapes."""

        def view(self, event: events.Call) -> None:
            """See `view` or `reshape` to sizes that the user gave."""

        def getitem(self, event: events.Call) -> None:
            """See an indexing of a tensor."""

        def forward_pre(self, event: events.Forward) -> None:
            """See a module that is about to run."""

        def forward(self, event: events.Forward) -> None:
            """See a module that has run."""

        def answer(self, event: events.Forward) -> None:
            """See an outermost module that has run."""

        def backward(self, event: events.Backward) -> None:
            """See a backward that is about to run."""

        def backward_done(self, event: events.Backward) -> None:
            """See a backward that has run."""

        def zeroed(self, event: events.Zeroed) -> None:
            """See gradients that are about to be cleared by `zero_grad`."""

        def step(self, event: events.Step) -> None:
            """See an optimiser that is about to step."""

        def stepped(self, event: events.Step) -> None:
            """See an optimiser that has stepped."""

        def epoch(self, event: events.Epoch) -> None:
            """See a pass over a DataLoader that begins."""

        def batch(self, event: events.Batch) -> None:
            """See a batch that a DataLoader hands out."""

        def epoch_done(self, event: events.Epoch) -> None:
            """See a pass that has ended, or was left: `event.finished` tells."""

        def mode(self, event: events.Mode) -> None:
            """See a module that was set to training or evaluation mode by the program."""

        def bypassed(self, event: events.Bypassed) -> None:
            """See a module with hooks whose `forward` was called directly, so that no hook runs."""

        def failed(self, event: events.Failed) -> None:
            """See an error that leaves a backward or a module; `event.hint(text)` adds to what it says."""

        def end(self, event: events.End) -> None:
            """See the end of the session: the last chance to report."""


known: dict[str, type[Rule]] = {}


def register(rule: type[Rule]) -> type[Rule]:
    """Make a rule known; a class decorator.

    Raises:
        ValueError: when the id is missing or taken, or it sees nothing.
    """
    if not (rule.id and rule.title):
        raise ValueError(f"register: a rule needs an id and a title; got {rule.__name__}.")
    if known.get(rule.id, rule).__qualname__ != rule.__qualname__:
        raise ValueError(f"register: {rule.id} is the id of {known[rule.id].__name__} already; got {rule.__name__}.")
    if rule.ops and not hasattr(rule, "call"):
        raise ValueError(f"register: {rule.__name__} names ops and has no method `call`.")
    if rule.functions and not hasattr(rule, "function"):
        raise ValueError(f"register: {rule.__name__} names functions and has no method `function`.")
    known[rule.id] = rule
    return rule
