"""Sequences: padding that is read as data, and states that belong to other sequences."""

from __future__ import annotations

import math
import weakref
from collections import Counter
from typing import Any

import mortice
from mortice import Tensor
from mortice.doctor import trail
from mortice.doctor.events import Backward, Batch, Call, Epoch, Failed, Forward, Step, here
from mortice.doctor.finding import Site
from mortice.doctor.memory import Notes
from mortice.doctor.rule import Rule, register
from mortice.nn.utils.rnn import PackedSequence
from mortice.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler

# Ops that treat each step of each sequence by itself, or only move it: what was padding before is padding after.
STEPWISE = trail.ARRANGING | {"dropout", "linear", "relu", "tanh", "gelu", "layer_norm", "index_write", "add"}
LOOKS = 10  # at one table or layer, before it is taken for one that never sees padding
LONGEST = 1 << 20  # elements of an input that are looked at


class Padded:
    """What is known of a batch of padded sequences: the length of each, and how many steps there are."""

    def __init__(self, lengths: list[int], steps: int, packed: bool = False) -> None:
        self.lengths, self.steps, self.packed = lengths, steps, packed

    @property
    def short(self) -> int:
        """How many sequences end before the last step."""
        return sum(n < self.steps for n in self.lengths)


class Run:
    """A call of a recurrent layer: what it made, and whether its input was padded."""

    def __init__(self, event: Forward, site: Site, padded: Padded | None) -> None:
        self.site, self.padded = site, padded
        self.kind, self.bidirectional = type(event.module).__name__, event.module.bidirectional
        self.hidden = event.module.proj_size or event.module.hidden_size
        output = event.output[0]
        self.packed = isinstance(output, PackedSequence)
        self.time = 1 if event.module.batch_first else 0
        self.shape = None if self.packed else tuple(output.shape)
        self.indexed: list[tuple[Any, Site]] = []  # the keys with which single steps were taken
        self.told, self.name = False, ""  # the layer's name, found once it is needed

    def holds(self, t: Any) -> bool:
        """Tell whether a tensor has the shape of the outputs of all steps."""
        if not self.packed:
            return tuple(t.shape) == self.shape
        assert self.padded is not None
        return t.ndim == 3 and {len(self.padded.lengths), self.padded.steps} == set(t.shape[:2])

    def time_in(self, t: Any) -> int:
        """Return the dim of `t` that counts steps: a packed sequence is unpacked either way."""
        if not self.packed:
            return self.time
        assert self.padded is not None
        n, steps = len(self.padded.lengths), self.padded.steps
        return self.time if n == steps else int(t.shape[0] == n)


def lengths_of(pad: Any, sure: bool) -> list[int] | None:
    """Return the lengths of the sequences (N, T) without the padding that ends them; None where it looks like data.

    Padding differs in length from sequence to sequence and is nowhere else. Unless it is `sure` that the value means
    padding, at least two sequences must end in it, and one in several steps of it.
    """
    steps = pad.shape[1]
    tail = pad.flip(1).long().cumprod(1).sum(1)
    *tails, total = mortice.cat([tail, pad.sum().reshape(1)]).tolist()
    few = max(tails) < 1 if sure else max(tails) < 2 or sum(t > 0 for t in tails) < 2
    if few or min(tails) == max(tails) or max(tails) == steps or total > sum(tails):
        return None
    return [steps - t for t in tails]


def _usual(values: list[Any]) -> Any:
    """Return the value that at least two, but not all, sequences end in; None if there is none."""
    found = Counter(values).most_common(1)
    return found[0][0] if found and found[0][1] >= 2 else None


def of_values(x: Any) -> list[int] | None:
    """Return the lengths in a batch of vectors (N, T, F), where steps of one constant end the shorter sequences."""
    last = x[:, -1]
    ends = mortice.stack([last.amin(1), last.amax(1)]).tolist()
    value = _usual([low for low, high in zip(*ends) if low == high and math.isfinite(low)])
    lengths = None if value is None else lengths_of((x == value).all(2), sure=False)
    if lengths is None:
        return None
    row = max(range(len(lengths)), key=lengths.__getitem__)
    body = x[row, : lengths[row]]
    return lengths if bool((body[1:] != body[:-1]).any()) else None  # a pulse and its end are data


def of_tokens(at: Any, padding_idx: int) -> list[Padded]:
    """Return what a batch of token numbers can be, as (N, T) and as (T, N): if sequences are sorted, either may fit."""
    found = []
    for tokens in (at, at.t()):
        if tokens.shape[0] < 2 or tokens.shape[1] < 3:
            continue
        value = padding_idx if padding_idx >= 0 else _usual(tokens[:, -1].tolist())
        lengths = None if value is None else lengths_of(tokens == value, sure=padding_idx >= 0)
        if lengths is not None:
            found.append(Padded(lengths, tokens.shape[1]))
    return found


class Sequences:
    """What the rules of this module share, so that it is looked up once: padded batches and the layers that read them."""

    def __init__(self) -> None:
        self.owner: Any = None  # the rule that shows this what it sees; the others only ask
        self.tables = Notes()  # nodes of lookups in tables: [Padded]
        self.layers = Notes()  # nodes of recurrent layers: Run
        self.states = Notes()  # nodes of the last states: Run
        self.recent: list[Padded] = []  # the padded batches since the last step
        self.looks, self.hits = Notes(), Notes()
        self.carried = Notes()  # loaders whose batches continue each other

    def _worth(self, thing: Any) -> bool:
        looks = self.looks.get(thing, 0)
        self.looks[thing] = looks + 1
        return looks < LOOKS or bool(self.hits.get(thing))

    def embedding(self, event: Call) -> None:
        """See a lookup of tokens."""
        table, at = event.args[:2]
        if at.ndim != 2 or at.numel() > LONGEST or event.out._node is None or not self._worth(table):
            return
        found = of_tokens(at, event.attrs["padding_idx"])
        if found:
            self.hits[table] = True
            self.tables[trail.source(event.out, frozenset())] = found
            self.recent = [*self.recent[-3:], *found]

    def forward(self, event: Forward) -> Run | None:
        """See a recurrent layer that has run; return what is known of the run."""
        if not event.grad or event.output is None:
            return None
        output, states = event.output
        data = output.data if isinstance(output, PackedSequence) else output
        if not isinstance(data, Tensor) or data._node is None or (data is output and data.ndim != 3):
            return None
        padded = self._padded(event)
        run = Run(event, here(), padded)
        self.layers[trail.source(data)] = run
        for s in states if isinstance(states, tuple) else (states,):
            for node in trail.walk(s, 1):
                self.states[node] = run
        return run

    def _padded(self, event: Forward) -> Padded | None:
        x = event.args[0] if event.args else event.kwargs["input"]
        if isinstance(x, PackedSequence):
            sizes = x.batch_sizes.tolist()
            lengths = [sum(s > i for s in sizes) for i in range(sizes[0])]
            return Padded(lengths, len(sizes), packed=True) if sizes[-1] < sizes[0] else None
        rows = x if event.module.batch_first else x.transpose(0, 1)
        n, steps = rows.shape[:2]
        source = None if x._node is None else trail.source(x, STEPWISE)
        if source is not None:
            before = self.tables.get(source)
            if before is None:
                run = self.layers.get(source)
                before = [run.padded] if run is not None and run.padded is not None and run.holds(x) else []
            fit = [p for p in before if (len(p.lengths), p.steps) == (n, steps) and not p.packed]
            return fit[0] if fit else None
        if n < 3 or steps < 3 or x.numel() > LONGEST or x.requires_grad or not self._worth(event.module):
            return None
        lengths = of_values(rows.detach())
        if lengths is None:
            return None
        self.hits[event.module] = True
        padded = Padded(lengths, steps)
        self.recent = [*self.recent[-3:], padded]
        return padded

    def outputs(self, t: Any, through: frozenset[str]) -> Run | None:
        """Return the run whose outputs of all steps a tensor holds, if any."""
        if t.ndim != 3 or t._node is None:
            return None
        run: Run | None = self.layers.get(trail.source(t, through))
        if run is None or not run.holds(t) or any(n in self.states for n in trail.walk(t, 1)):
            return None
        return run


def sequences(session: Any, rule: Rule | None = None) -> Sequences:
    """Return what is known of a session's sequences; the first rule that shows it what it sees owns it."""
    found: Sequences = session.shared.setdefault(Sequences, Sequences())
    found.owner = found.owner or rule
    return found


@register
class PaddingReadAsData(Rule):
    """Padding that a recurrent layer, a pooling over time or a loss takes for data."""

    id = "D15"
    title = "Variable-length sequences not masked"
    why = "The network learns from, and about, steps that are not there; short sequences suffer most."
    remedy = "Use pack_padded_sequence(x, lengths, enforce_sorted=False), and ignore_index or a mask in the loss and in means."
    ops = ("embedding", "cross_entropy", "nll_loss", "mean", "amax", "max_dim")
    modules = ("RNNBase",)

    def start(self) -> None:
        self.known = sequences(self.session, self)
        self.unreduced = Notes()  # losses of each token: what to say if they are averaged
        self.clean = 0

    def call(self, event: Call) -> None:
        if event.op == "embedding":
            self.known.embedding(event)
        elif event.op in ("cross_entropy", "nll_loss"):
            self._loss(event)
        else:
            self._pooled(event)

    def forward(self, event: Forward) -> None:
        if not self.session.close:
            return
        run = self.known.forward(event)
        if run is None or run.padded is None or run.padded.packed:
            return
        run.name = self.session.name(event.module)
        if run.bidirectional:
            self._tell(run, "its reverse direction reads it first")

    def _tell(self, run: Run, harm: str, site: Site | None = None) -> None:
        if run.told:
            return
        run.told = True
        assert run.padded is not None
        k, n = run.padded.short, len(run.padded.lengths)
        self.report(
            f"{k} of {n} sequences in the input of {run.name} end in padding, which the network reads as data: {harm}.",
            site=site or run.site,
            padded=k,
            sequences=n,
        )

    def _pooled(self, event: Call) -> None:
        x = event.input
        if event.op == "mean" and x._node is not None and len(self.unreduced):
            text = self.unreduced.get(trail.source(x))
            if text is not None:
                self._loss_found(*text)
                return
        if not len(self.known.layers) or not isinstance(x, Tensor):
            return
        run = self.known.outputs(x, STEPWISE)
        axis = event.attrs["axis"]
        axes = axis if isinstance(axis, tuple) else (axis,)
        if run is not None and run.padded is not None and not run.padded.packed and None not in axes:
            if run.time in (a % 3 for a in axes):
                word = "mean" if event.op == "mean" else "maximum"
                self._tell(run, f"the {word} over all steps counts it", site=here())

    # ---- a state that has run on over padding, used by the loss ----

    def backward(self, event: Backward) -> None:
        known = self.known
        if not self.session.close or not len(known.states):
            return
        waiting = [r for _, r in known.states.items() if r.padded is not None and not r.padded.packed and not r.told]
        if not waiting:
            return
        for node in trail.walk(event.loss):
            run = known.states.get(node)
            if run in waiting and run is not None:
                self._tell(run, "the last state, which the loss uses, has run on over it")
                return

    def stepped(self, event: Step) -> None:
        self.known.recent.clear()

    def batch(self, event: Batch) -> None:
        self.known.recent.clear()

    # ---- losses of each token ----

    def _loss(self, event: Call) -> None:
        logits, target, weight = event.args[:3]
        if not self.known.recent or logits._node is None or self.clean > 3:
            return
        for padded in reversed(self.known.recent):
            places = _targets(target, padded)
            if places is None:
                continue
            value, k = places
            if value == event.attrs["ignore_index"] or (weight is not None and float(weight[value]) == 0):
                self.clean += 1
                return
            found = value, k, target.numel(), event.op, here()
            if event.attrs["reduction"] == "none":
                losses = event.out[0] if isinstance(event.out, tuple) else event.out
                self.unreduced[trail.source(losses, frozenset())] = found
            else:
                self._loss_found(*found)
            return

    def _loss_found(self, value: int, k: int, n: int, op: str, site: Site) -> None:
        self.report(
            f"{k} of {n} targets of {op} are padding (class {value}), and the loss counts them like data.",
            site=site,
            remedy=f"Pass ignore_index={value} to the loss, or multiply the loss of each position by a mask before "
            "the mean.",
            padded=k,
            targets=n,
            value=value,
        )


def _targets(target: Any, padded: Padded) -> tuple[int, int] | None:
    """Return the class at the padded positions of targets and how many those are; None where they do not fit."""
    n, lengths = len(padded.lengths), padded.lengths
    if target.is_floating_point():
        return None
    for steps in (padded.steps, padded.steps - 1):
        if target.numel() != n * steps or steps < 2:
            continue
        if steps != padded.steps:  # the targets are the inputs, one step later
            lengths = [max(length - 1, 0) for length in lengths]
        step_first = target.ndim == 2 and target.shape[0] == steps and n != steps
        rows = target.detach().reshape(steps, n).t() if step_first else target.detach().reshape(n, steps)
        for at in (rows,) if target.ndim == 2 else (rows, target.detach().reshape(steps, n).t()):
            own = mortice.arange(steps, device=target.device) >= mortice.tensor(lengths, device=target.device)[:, None]
            values = at[own].tolist()
            if len(values) > 1 and len(set(values)) == 1:
                return values[0], len(values)
    return None


@register
class LastStepOfPadding(Rule):
    """The last step as a summary, where it is padding, or where a direction has read one step only."""

    id = "D22"
    title = "Last time step of padded sequences"
    why = "What stands at the last step of a short sequence is padding, or a state that has run on over it."
    remedy = "Use output[arange(n), lengths - 1], or hn of a packed sequence."
    ops = ("embedding",)
    modules = ("RNNBase",)

    def start(self) -> None:
        self.known = sequences(self.session, self)
        self.waiting: dict[int, Run] = {}
        self.parts = Notes()  # what was taken of the last step: its run

    def call(self, event: Call) -> None:
        if self.known.owner is self:
            self.known.embedding(event)

    def forward(self, event: Forward) -> None:
        if self.known.owner is self and self.session.close:
            self.known.forward(event)

    def getitem(self, event: Call) -> None:
        x, key = event.args
        if not len(self.known.layers):
            return
        taken = self.parts.get(x)
        if taken is not None and _features(key, x.ndim):
            taken.indexed.clear()  # one direction of the last step: on purpose
            return
        run = self.known.outputs(x, trail.ARRANGING | {"dropout", "index_write"})
        if run is None or not (run.padded is not None or run.bidirectional):
            return
        time, steps = run.time_in(x), x.shape[run.time_in(x)]
        if steps < 2:
            return
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) <= time or type(keys[time]) is not int or any(k is Ellipsis or k is None for k in keys):
            return
        if any(k != slice(None) for k in keys[:time]):
            return
        run.indexed.append((keys[time] % steps == steps - 1 and not _features(key, 3), here()))
        self.waiting[id(run)] = run
        self.parts[event.out] = run

    def backward(self, event: Backward) -> None:
        for run in self.waiting.values():
            if len(run.indexed) == 1 and run.indexed[0][0]:
                self._tell(run, run.indexed[0][1])
        self.waiting.clear()

    def stepped(self, event: Step) -> None:
        self.waiting.clear()

    def _tell(self, run: Run, site: Site) -> None:
        padded = run.padded
        code = "output[:, -1]" if run.time else "output[-1]"
        if padded is not None:
            n, k = len(padded.lengths), padded.short
            self.report(
                f"{code} of the {run.kind} reads padding for {k} of {n} sequences.", site=site, padded=k, sequences=n
            )
        else:
            self.report(
                f"The reverse direction of {code} of a bidirectional {run.kind} has seen only the last step.",
                site=site,
                remedy="Use hn: torch.cat([hn[-2], hn[-1]], dim=1).",
            )


def _features(key: Any, dims: int) -> bool:
    """Tell whether an index takes some of the features, the last dim, only."""
    return isinstance(key, tuple) and len(key) == dims and isinstance(key[-1], slice) and key[-1] != slice(None)


# ---- states from batch to batch ----

REREAD = 3  # batches in a row that continue the one before, until it is believed
SHUFFLING = (RandomSampler, SubsetRandomSampler)


def own_order(loader: Any) -> Any:
    """Return the sampler of a loader that reads a map-style dataset in batches of its own; None for other loaders."""
    plain = getattr(loader, "batch_size", None) is not None and type(loader.batch_sampler) is BatchSampler
    return loader.batch_sampler.sampler if plain else None


class _State:
    """What is known of the states that a layer is given."""

    def __init__(self) -> None:
        self.batch = -1  # in which batch it ran last
        self.sum: Any = None  # of its last state then
        self.agreed = self.seen = 0
        self.decided = False


@register
class StateOfOtherSequences(Rule):
    """A state that is handed from batch to batch although the batches are shuffled, or with its graph."""

    id = "D16"
    title = "LSTM state and shuffling"
    why = "A state only helps with the sequences that it has read; of others it is noise that changes with each pass."
    remedy = (
        "Use shuffle=False and reset the state at the beginning of each pass, or begin each batch with a new state."
    )
    modules = ("RNNBase", "RNNCellBase")

    def start(self) -> None:
        self.known = sequences(self.session)
        self.layers = Notes()
        self.made = Notes()  # nodes of states: how many backwards had been before they were made
        self.backwards = self.batches = 0
        self.loader: Any = lambda: None  # a weak reference: a loader that is kept keeps its workers
        self.kept = self.left = False

    def epoch(self, event: Epoch) -> None:
        self.loader = weakref.ref(event.loader)

    def batch(self, event: Batch) -> None:
        self.batches += 1
        self.loader = weakref.ref(event.loader)

    def backward_done(self, event: Backward) -> None:
        self.backwards += 1
        self.kept = False

    def forward(self, event: Forward) -> None:
        if not event.grad or event.output is None:
            return
        given = event.args[1] if len(event.args) > 1 else event.kwargs.get("hx")
        if given is None and not self.session.close:
            return
        given = given[0] if isinstance(given, (tuple, list)) else given
        out = event.output if isinstance(event.output, Tensor) else event.output[-1]
        out = out[0] if isinstance(out, tuple) else out
        if isinstance(given, Tensor) and given._node is not None:
            before = next((self.made.get(n) for n in trail.walk(given, 1)), None)
            self.kept = self.kept or (before is not None and before < self.backwards)
        for node in trail.walk(out, 1):
            self.made[node] = self.backwards
        if isinstance(given, Tensor) and hasattr(event.module, "bidirectional"):
            self._compare(event, given.detach(), out.detach())

    def _compare(self, event: Forward, given: Any, out: Any) -> None:
        state = self.layers.setdefault(event.module, None)
        if state is None:
            state = self.layers[event.module] = _State()
        if state.decided or not self.batches:
            return
        if state.batch != self.batches:
            if state.sum is not None and state.batch == self.batches - 1:
                state.seen += 1
                same = bool(given.sum() == state.sum) and bool(given.any())
                state.agreed = state.agreed + 1 if same else 0
            state.decided = state.agreed >= REREAD or state.seen >= 4 * REREAD
            if state.agreed >= REREAD:
                self._carried(event)
        state.batch, state.sum = self.batches, out.sum()

    def _carried(self, event: Forward) -> None:
        loader = self.loader()
        if loader is None:
            return
        self.known.carried[loader] = True
        if isinstance(own_order(loader), SHUFFLING):
            self.report(
                f"{self.session.name(event.module)} continues from the previous batch's state, but {type(loader).__name__} "
                "shuffles: the state belongs to other sequences."
            )

    def failed(self, event: Failed) -> None:
        text = str(event.error)
        if event.during == "backward":
            if self.kept and "second time" in text:
                event.hint(
                    "the state of the recurrent layer still has the graph of the previous batch. Call state.detach() "
                    "between batches (truncated BPTT)."
                )
        elif "Expected hidden" in text and self.session.batch is not None:
            batch, loader = self.session.batch.size, self.session.batch.loader
            last = own_order(loader) is not None and batch < loader.batch_size and not loader.drop_last
            if last and f", {batch}, " in text and f", {loader.batch_size}, " in text:
                event.hint(
                    f"the last batch has {batch} samples instead of {loader.batch_size}, and the state is of the batch "
                    "before. Pass drop_last=True to the DataLoader, or begin with a new state."
                )
