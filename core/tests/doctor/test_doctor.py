"""The doctor itself: watching, ending, silencing, reporting; and that it changes nothing it sees."""

import gc
import json
import os
import subprocess
import sys
import weakref
from typing import Any

import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.doctor import probes
from mortice.nn import functional as F
from mortice.tracing import calls
from mortice.utils.data import DataLoader, TensorDataset


def train(steps=6, clear=False):
    mt.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 4))
    optimizer = mt.optim.Adam(model.parameters())
    losses = []
    for _ in range(steps):
        if clear:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(mt.randn(32, 8)), mt.randint(0, 4, (32,)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_finding_has_its_place_its_values_and_what_to_do():
    with doctor.watch(strict=True, quiet=True) as session:
        train()
    (found,) = session.findings
    assert (found.rule, found.level, found.site.file, found.site.function) == ("D03", "warning", __file__, "train")
    assert found.values["optimizer"] == "Adam" and found.count > 1 and "zero_grad" in found.remedy
    assert doctor.findings() == session.findings


def test_it_changes_no_value_and_leaves_nothing_behind():
    before = train(clear=True)
    places = [place for _, *place in probes._of_events()]
    methods = {(owner, name): vars(owner).get(name) for owner, name, _ in places}
    with doctor.watch(strict=True, quiet=True) as session:
        assert train(clear=True) == before
    assert not session.findings and not calls._observers and not probes._undo
    assert methods == {(owner, name): vars(owner).get(name) for owner, name, _ in places}
    assert train(clear=True) == before


def test_after_the_end_it_keeps_nothing_of_the_program_alive():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 3)

        def forward(self, x, state):
            y, state = self.lstm(x, state)
            self.kept = self.head(y)
            return self.kept, tuple(s.detach() for s in state)

    def program():
        data = TensorDataset(mt.randn(16, 5, 4), mt.randint(0, 3, (16, 5)))
        loader, model, state = DataLoader(data, batch_size=8), Tagger(), None
        optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for x, y in loader:
                out, state = model(x, state)
                F.cross_entropy(out.flatten(0, 1), y.flatten()).backward()
                optimizer.step()
        return [weakref.ref(thing) for thing in (data, loader, model, optimizer, model.lstm, out)]

    with doctor.watch(strict=True, quiet=True) as session:
        there = program()
    gc.collect()
    assert [ref() for ref in there] == [None] * len(there)
    assert doctor.findings() == session.findings != []
    doctor.start(session)  # it may go on, with rules that begin anew
    train()
    assert doctor.stop() is session and {f.site.function for f in session.findings} == {"program", "train"}


@pytest.mark.parametrize("how", ["argument", "function", "comment"])
def test_a_rule_can_be_silenced(how, monkeypatch):
    from mortice.doctor import session as module

    monkeypatch.setattr(module, "ignored", set())
    if how == "function":
        doctor.ignore("D0*")
    with doctor.watch(strict=True, quiet=True, ignore=["D03"] if how == "argument" else []) as session:
        model = nn.Linear(3, 1)
        optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            model(mt.randn(4, 3)).sum().backward()
            if how == "comment":
                optimizer.step()  # doctor: ignore[D03]
            else:
                optimizer.step()
    assert not session.findings


def test_a_wrapped_step_is_watched_whenever_it_runs():
    model = nn.Linear(3, 1)
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)

    def step():
        model(mt.randn(4, 3)).sum().backward()
        optimizer.step()

    watched = doctor.wrap(step, strict=True, quiet=True)
    for _ in range(6):
        watched()
    assert [f.rule for f in watched.session.findings] == ["D03"] and probes.current() is None


def test_sessions_nest_and_the_inner_one_is_told():
    with doctor.watch(quiet=True) as outer:
        with doctor.watch(quiet=True) as inner:
            train()
        assert probes.current() is outer
    assert [f.rule for f in inner.findings] == ["D03"] and not outer.findings


def test_a_rule_that_fails_is_left_out_and_the_program_goes_on(capsys):
    with doctor.watch() as session:
        rule = next(r for r in session.rules if r.id == "D03")
        rule.seen = None
        assert len(train()) == 6
    assert not session.findings and "D03 has failed and is left out: TypeError" in capsys.readouterr().err


def test_reports():
    with doctor.watch(quiet=True) as session:
        train()
    assert "D03" in session.report() and "zero_grad()" in session.report()
    assert json.loads(session.report("json"))["findings"][0]["site"]["function"] == "train"
    with pytest.raises(ValueError, match="expected 'text', 'json' or 'html'; got 'pdf'"):
        session.report("pdf")


def test_the_environment_variable_watches_a_whole_program(tmp_path):
    program, report = tmp_path / "train.py", tmp_path / "report.json"
    program.write_text(
        "import mortice as torch\n"
        "w = torch.zeros(3, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(6):\n"
        "    ((w - 1) ** 2).sum().backward()\n"
        "    optimizer.step()\n"
    )
    run = [sys.executable, str(program)]

    done = subprocess.run(run, env={**os.environ, "MORTICE_DOCTOR": "1"}, capture_output=True, text=True, check=True)
    assert f"{program}:6: warning D03" in done.stderr and "1 warning in 6 steps" in done.stderr
    subprocess.run(run, env={**os.environ, "MORTICE_DOCTOR": str(report)}, capture_output=True, check=True)
    assert [f["rule"] for f in json.loads(report.read_text())["findings"]] == ["D03"]
    quiet = subprocess.run(run, env={**os.environ, "MORTICE_DOCTOR": "0"}, capture_output=True, text=True, check=True)
    assert not quiet.stderr


def test_workers_of_a_loader_leave_the_watching_to_their_parent(tmp_path):
    program = tmp_path / "load.py"
    program.write_text(
        "import mortice as torch\n"
        "from mortice.utils.data import DataLoader, TensorDataset\n"
        "if __name__ == '__main__':\n"
        "    data = TensorDataset(torch.arange(8))\n"
        "    loader = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context='spawn')\n"
        "    print(sum(x.sum().item() for (x,) in loader))\n"
    )
    env = {**os.environ, "MORTICE_DOCTOR": "1"}
    done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "28" and done.stderr.count("mortice.doctor:") == 1


@pytest.mark.parametrize("always", [(), ("view", "zeroed")])
def test_a_rule_may_want_an_event_also_in_between(always, monkeypatch):
    from mortice.doctor import rule

    monkeypatch.setattr(rule, "known", dict(rule.known))
    seen = []

    class Curious(doctor.Rule):
        id, title = "T01", "curious"

        def view(self, event):
            seen.append("view")

        def zeroed(self, event):
            seen.append("zeroed")

    Curious.always = always
    rule.known["T01"] = Curious
    monkeypatch.setattr("mortice.doctor.known.known", rule.known)
    with doctor.watch(only=["T01"], quiet=True, strict=True) as session:
        for closely in (True, False):
            session.look(closely)
            mt.ones(4, 4).view(16)
            nn.Linear(2, 2).zero_grad()
    assert seen == ["view", "zeroed"] * (2 if always else 1)


def test_tensors_have_their_own_methods_again() -> None:
    class Told(mt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs or {})

    assert type(mt.ones(2).as_subclass(Told) + 1) is Told
    with doctor.watch(mt.nn.Linear(2, 2)):
        mt.ones(2, 2).reshape(4)[mt.tensor([0])]
    assert not [name for name, value in vars(mt.Tensor).items() if type(value).__name__ == "_Method"]
