"""A session: the rules that watch, what they may ask about the program, and the findings so far."""

from __future__ import annotations

import fnmatch
import heapq
import json
import linecache
import math
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import mortice
from mortice import nn
from mortice.doctor import events
from mortice.doctor.finding import LEVELS, NOWHERE, Finding, Site, silences
from mortice.doctor.known import rules
from mortice.doctor.memory import Notes
from mortice.doctor.rule import EVENTS, STEADY, Rule
from mortice.doctor.samples import Samples

# What is looked at closely: the first steps of each phase (a pass over a loader, a switch between train and eval), two of
# each sixteen up to the 128th, and four of each 128 afterwards; of a phase that has come twice before less.
CLOSELY, AGAIN = 12, 2
OFTEN, SELDOM = (2, 16), (4, 128)
Handlers = dict[str, list[tuple[Rule, Callable[..., None]]]]
ignored: set[str] = set()


class Counter:
    """How often something has been."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


class Session:
    """What `watch` returns.

    Attributes:
        findings: so far, in the order in which they were first seen.
        steps: how many steps all optimisers have taken.
        close: whether rules are shown everything now, or only what they want always.
        running: the modules that are running, outermost first.
        batch: the batch that was handed out last, while its tensors are alive; else None.
        outputs: by tensor, while it is alive: the outermost module that gave it. Kept while the session looks closely.
        curve: (step, loss, place of the backward) of sampled steps.
        shared: what several rules know together, by its class.
        samples: what D18 has kept of activations, gradients and updates, for plots.
        sampled: whether this step is looked at in full, calls of ops included.
        looks, rearm: what is told when the session begins to look closely or ceases to, and when other events are wanted.
        strict: let errors in rules through, for tests of rules.
    """

    def __init__(
        self,
        watched: Iterable[Any] = (),
        *,
        ignore: Iterable[str] = (),
        only: Iterable[str] | None = None,
        style: bool = False,
        quiet: bool = False,
        strict: bool = False,
    ) -> None:
        self.findings: list[Finding] = []
        self._places: dict[tuple[str, str, int, str], Finding] = {}
        self.ignore, self.quiet, self.strict = set(ignore), quiet, strict
        self.names, self.parameters, self.optimizers = Notes(), Notes(), Notes()
        self.loaders, self.roots, self.outputs, self.switched = Notes(), Notes(), Notes(), Notes()
        self.makers: dict[int, str] = {}  # by the identity of a graph node: the module whose output it made
        self.steps = self.in_phase = 0
        self.window = CLOSELY
        self.visits: list[tuple[int, int]] = []
        self.close, self.busy, self.sampled = True, False, False
        self.running: list[Any] = []
        self.batch: events.Batch | None = None
        self.curve: list[tuple[int, Any, Site]] = []
        self.samples = Samples()
        self.began = time.time()
        chosen = list(rules()) if only is None else [r for r in rules() if r.id in set(only)]
        self._chosen = [r for r in chosen if style or only is not None or not r.style]
        self._arm()
        self.looks: Callable[[bool], None] | None = None
        self.rearm: Callable[[], None] | None = None
        for thing in watched:
            self._meet(thing)

    def _arm(self) -> None:
        """Make the rules, and the tables of what each is shown."""
        self.shared: dict[type, Any] = {}
        self.rules: list[Rule] = [r(self) for r in self._chosen]
        self.near: Handlers = {e: [] for e in EVENTS}
        self.far: Handlers = {e: [] for e in EVENTS}
        self.handlers = self.near if self.close else self.far
        self.by_op: dict[str, list[tuple[Rule, Callable[..., None]]]] = {}
        self.by_function: dict[str, list[tuple[Rule, Callable[..., None]]]] = {}
        for rule in self.rules:
            for event in EVENTS:
                if hasattr(rule, event):
                    self.near[event].append((rule, getattr(rule, event)))
                    if event in STEADY or event in rule.always:
                        self.far[event].append((rule, getattr(rule, event)))
            for op in rule.ops:
                self.by_op.setdefault(op, []).append((rule, rule.call))
            for name in rule.functions:
                self.by_function.setdefault(name, []).append((rule, rule.function))
        self._by_kind: dict[tuple[str, type], list[tuple[Rule, Callable[..., None]]]] = {}

    def end(self) -> None:
        """Show the rules the end, and let go of what they know: the findings stay, and keep nothing of the program alive."""
        try:
            self.show("end", events.End())
        finally:
            self.batch = None
            self.running.clear()
            self.outputs.clear()
            self._arm()

    def _meet(self, thing: Any) -> None:
        if isinstance(thing, nn.Module):
            self.meet_root(thing)
        elif isinstance(thing, (list, tuple)):
            for each in thing:
                self._meet(each)
        elif hasattr(thing, "param_groups"):
            self.taken(thing)
        elif hasattr(thing, "__iter__"):
            self.loaders.setdefault(thing, 0)
        else:
            raise TypeError(f"watch: expected modules, optimizers and loaders; got {type(thing).__name__}.")

    # ---- names ----

    def meet_root(self, module: Any) -> None:
        """Learn the names in a model."""
        if module in self.roots:
            return
        self.roots[module] = True
        label = type(module).__name__
        for name, part in module.named_modules():
            self.names[part] = f"{label}.{name}" if name else label
        for name, p in module.named_parameters():
            self.parameters[p] = f"{label}.{name}"

    def taken(self, optimizer: Any) -> Counter:
        """Return the counter of an optimiser's steps."""
        found: Counter | None = self.optimizers.get(optimizer)
        if found is None:
            found = self.optimizers[optimizer] = Counter()
        return found

    def name(self, module: Any) -> str:
        """Return a module's name in its model and its class: "Net.main.3 (Softmax)"."""
        kind = type(module).__name__
        found = self.names.get(module, kind)
        return found if found == kind else f"{found} ({kind})"

    def parameter(self, p: Any) -> str:
        """Return a parameter's name, or its shape where it is of no model that was seen."""
        return str(self.parameters.get(p, f"a parameter of shape {tuple(p.shape)}"))

    def maker(self, node: Any) -> str:
        """Return which op a graph node is of and in which module it ran: "Softmax at Net.main.3"."""
        op = node.name().rstrip("0123456789").removesuffix("Backward")
        op = {"Relu": "ReLU"}.get(op, op)
        found = self.makers.get(id(node))
        return f"{op} at {found}" if found else op

    def from_loader(self, t: Any) -> bool:
        """Tell whether a tensor is of the batch handed out last, or a view of one that is."""
        if self.batch is None:
            return False
        base = t._base
        return any(t is b or (base is not None and base is b) for b in self.batch.tensors)

    # ---- findings ----

    def add(
        self,
        rule: Rule,
        message: str,
        *,
        site: Site | None,
        level: str | None,
        remedy: str | None,
        values: dict[str, Any],
    ) -> None:
        """Take a finding, or count one that is known."""
        site = events.here() if site is None else site
        level = level or rule.level
        key = (rule.id, site.file, site.line, message if site is NOWHERE else level)
        known = self._places.get(key)
        if known is not None:
            known.count += 1
            return
        if self.ignores(rule.id, site):
            return
        remedy = rule.remedy if remedy is None else remedy
        found = Finding(rule.id, level, rule.title, message, rule.why, remedy, site, self.steps, values)
        self._places[key] = found
        self.findings.append(found)
        if not self.quiet:
            print(f"mortice.doctor: {found}", file=sys.stderr, flush=True)

    def again(self, rule: str, site: Site) -> bool:
        """Tell whether a rule has reported at a place, and count that."""
        for level in LEVELS:
            known = self._places.get((rule, site.file, site.line, level))
            if known is not None:
                known.count += 1
                return True
        return False

    def ignores(self, rule: str, site: Site) -> bool:
        """Tell whether a rule is silenced: by `ignore`, or by a comment in the line."""
        if any(fnmatch.fnmatch(rule, pattern) for pattern in (*ignored, *self.ignore)):
            return True
        return bool(site.line) and silences(linecache.getline(site.file, site.line), rule)

    def report(self, format: str = "text", file: Any = None) -> str:
        """Return the findings as a table ("text"), "json" or a page ("html"); written to `file` too, a path, if given."""
        from mortice.doctor import page, table

        if format == "text":
            text = table.text(self)
        elif format == "json":
            text = json.dumps(self.as_dict(), indent=2)
        elif format == "html":
            text = page.html(self)
        else:
            raise ValueError(f"report: expected 'text', 'json' or 'html'; got {format!r}.")
        if file is not None:
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
        return text

    def as_dict(self) -> dict[str, Any]:
        """Return the findings and where they are from, as JSON takes it."""
        return {
            "mortice": mortice.version.release, "steps": self.steps, "rules": [r.id for r in self.rules],
            "findings": [f.as_dict() for f in self.findings],
            "curve": [[step, value, str(site)] for step, value, site in self.losses()], "samples": self.samples.as_dict(),
        }  # fmt: skip

    def losses(self) -> list[tuple[int, float | None, Site]]:
        """Return the curve with its losses as numbers, None for one that is not finite."""
        values = ((step, float(loss.item()), site) for step, loss, site in self.curve)
        return [(step, v if math.isfinite(v) else None, site) for step, v, site in values]

    # ---- events ----

    def show(self, event: str, what: Any) -> None:
        """Show an event to the rules that want it."""
        self.tell(self.handlers[event], what)

    def want(self, rule: Rule, *kinds: str) -> None:
        """Show a rule events from now on also while the session does not look closely: see `Rule.always`."""
        fresh = [e for e in kinds if all(rule is not r for r, _ in self.far[e])]
        for event in fresh:
            self.far[event].append((rule, getattr(rule, event)))
        if fresh and self.rearm is not None:
            self.rearm()

    def of_kind(self, event: str, module: Any) -> list[tuple[Rule, Callable[..., None]]]:
        """Return the handlers of an event that want to see modules of this class."""
        found = self._by_kind.get((event, type(module)))
        if found is None:
            names = {c.__name__ for c in type(module).__mro__}
            found = [p for p in self.near[event] if not p[0].modules or names.intersection(p[0].modules)]
            self._by_kind[event, type(module)] = found
        return found

    def leave(self, rule: Rule, event: str) -> None:
        """Show an event to a rule no more: it has seen enough of them."""
        for listed in (
            self.near[event],
            self.far[event],
            *(found for (of, _), found in self._by_kind.items() if of == event),
        ):
            listed[:] = [pair for pair in listed if pair[0] is not rule]

    def tell(self, handlers: list[tuple[Rule, Callable[..., None]]], what: Any) -> None:
        """Call handlers; what they do themselves is not watched, and a rule that fails is left out from then on."""
        if not handlers or self.busy:
            return
        self.busy = True
        try:
            for rule, handler in handlers:
                try:
                    handler(what)
                except Exception as error:
                    if self.strict:
                        raise
                    self._drop(rule, error)
        finally:
            self.busy = False

    def _drop(self, rule: Rule, error: Exception) -> None:
        tables = self.near, self.far, self.by_op, self.by_function, self._by_kind
        for listed in [each for table in tables for each in table.values()]:
            listed[:] = [pair for pair in listed if pair[0] is not rule]
        print(f"mortice.doctor: {rule.id} has failed and is left out: {type(error).__name__}: {error}", file=sys.stderr)

    def phase(self, times: int) -> None:
        """Look closely again: a phase begins that has come so many times, this one included."""
        self.in_phase, self.window = 0, CLOSELY if times <= 2 else AGAIN
        self.look(True)

    def advance(self) -> None:
        """Count a step of an optimiser."""
        self.steps += 1
        self.makers.clear()
        self.turn()

    def turn(self) -> None:
        """Count a step, or a batch without one, in its phase, and decide how closely to look from here."""
        self.in_phase += 1
        n = self.in_phase
        few, every = OFTEN if n < SELDOM[1] and self.window == CLOSELY else SELDOM
        while self.visits and self.steps >= self.visits[0][1]:
            heapq.heappop(self.visits)
        visited = bool(self.visits) and self.steps >= self.visits[0][0]
        self.look(n < self.window or (n >= every and n % every < few) or self.sampled or visited)

    def visit(self, step: int, length: int = SELDOM[0]) -> None:
        """Look closely at so many steps from that one on, by the count of `steps`."""
        heapq.heappush(self.visits, (step, step + length))

    def look(self, closely: bool) -> None:
        """Look closely from here, or no longer."""
        if closely is not self.close:
            self.close = closely
            self.handlers = self.near if closely else self.far
            if self.looks is not None:
                self.looks(closely)
