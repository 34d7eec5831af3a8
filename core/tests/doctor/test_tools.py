"""The doctor's tools: what they find is in the corpus; here, that they leave everything as it was, and their fine points."""

import json
import math
import random
import xml.etree.ElementTree as xml

import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.doctor import probes
from mortice.nn import functional as F
from mortice.utils.data import DataLoader, TensorDataset


def problem(seed=0):
    mt.manual_seed(seed)
    centres = 2 * mt.randn(3, 6)
    y = mt.randint(0, 3, (96,))
    return centres[y] + mt.randn(96, 6), y


def network():
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))


def state_of(model, optimizer, loader):
    """Return all that a tool could have changed, as plain values."""
    state = {name: t.tolist() for name, t in model.state_dict().items()}
    grads = {name: None if p.grad is None else (id(p.grad), p.grad.tolist()) for name, p in model.named_parameters()}
    moments = [[(k, t.tolist() if hasattr(t, "tolist") else t) for k, t in s.items()] for s in optimizer.state.values()]
    options = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    generators = mt.get_rng_state().tolist(), random.getstate(), loader.generator.get_state().tolist()
    hooks = [len(m._forward_hooks) for m in model.modules()]
    versions = [p._version for p in model.parameters()]
    return state, grads, moments, str(options), generators, [m.training for m in model.modules()], hooks, versions


TOOLS = {
    "overfit": lambda m, o, d, b: doctor.overfit_one_batch(m, nn.CrossEntropyLoss(), b, 30),
    "overfit with optimizer": lambda m, o, d, b: doctor.overfit_one_batch(m, nn.CrossEntropyLoss(), b, 30, optimizer=o),
    "gradients": lambda m, o, d, b: doctor.check_gradients(m, nn.CrossEntropyLoss(), b, optimizer=o),
    "inputs of a loader": lambda m, o, d, b: doctor.check_inputs(d),
    "inputs of a batch": lambda m, o, d, b: doctor.check_inputs(b),
    "dataset": lambda m, o, d, b: doctor.check_dataset(d, TensorDataset(*b)),
    "find_lr": lambda m, o, d, b: doctor.find_lr(m, o, nn.CrossEntropyLoss(), d, steps=30),
    "regularization": lambda m, o, d, b: doctor.check_regularization(network, nn.CrossEntropyLoss(), b, steps=5),
    # A loss that reads the model's own parameters would leave gradients there.
    "penalty": lambda m, o, d, b: doctor.overfit_one_batch(
        m, lambda out, y: F.cross_entropy(out, y) + m[0].weight.square().sum(), b, 10
    ),
    "compare": lambda m, o, d, b: doctor.compare(lambda: mt.randn(3), lambda: [mt.randn(3), random.random()]),
}


@pytest.mark.parametrize("watched", [False, True], ids=["alone", "watched"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_leaves_model_optimizer_generators_and_loader_as_they_were(tool, watched):
    x, y = problem()
    loader = DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True, generator=mt.Generator().manual_seed(5))
    model = network()
    optimizer = mt.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.1)
    scheduler = mt.optim.lr_scheduler.StepLR(optimizer, 1)
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    scheduler.step()
    model[3].eval()
    before = state_of(model, optimizer, loader)
    following = [b[1].tolist() for b in loader]
    loader.generator.manual_seed(5)
    with mt.no_grad():
        if watched:
            with doctor.watch(model, optimizer, strict=True, quiet=True) as session:
                result = TOOLS[tool](model, optimizer, loader, (x, y))
                assert probes.current() is session
            assert session.steps == 0 and [f.rule for f in session.findings] == [f.rule for f in result.findings]
        else:
            result = TOOLS[tool](model, optimizer, loader, (x, y))
    assert state_of(model, optimizer, loader) == before
    assert [b[1].tolist() for b in loader] == following
    assert "\n" not in repr(result).splitlines()[0] and str(result).startswith(f"{result.tool}: ")
    assert result.site.file == __file__ and json.dumps(result.as_dict())


def test_a_tool_in_the_midst_of_a_pass_does_not_disturb_it():
    x, y = problem()
    loader = DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True)
    mt.manual_seed(3)
    plain = [b[1].tolist() for b in loader]
    mt.manual_seed(3)
    seen = []
    with doctor.watch(quiet=True, strict=True):
        for batch in loader:
            seen.append(batch[1].tolist())
            doctor.check_inputs(loader)
            doctor.check_gradients(network(), nn.CrossEntropyLoss(), batch)
    assert seen[0] == plain[0] and len(seen) == len(plain)


def test_findings_go_to_the_session_once_a_line_and_can_be_silenced(capsys):
    values = {0.1: 1.0, 0.01: 0.5, 0.001: 0.2}
    with doctor.watch() as session:
        results = [doctor.sweep_verdict(values) for _ in range(2)]
    (found,) = session.findings
    assert found.count == 2 and found.rule == "D19" and found.site == results[0].site and results[1].findings
    assert "warning D19 The best learning rate 0.001 is the smallest one tried" in capsys.readouterr().err
    with doctor.watch(ignore=["D19"]):
        assert doctor.sweep_verdict(values).ok
    assert doctor.sweep_verdict(values).ok  # doctor: ignore[D19]
    assert not doctor.sweep_verdict(values).ok


def test_overfit_names_what_is_dead_and_does_not_see_dropout_or_decay():
    x, y = problem()
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    nn.init.constant_(model[2].bias, -50.0)
    result = doctor.overfit_one_batch(model, F.cross_entropy, (x, y))
    assert not result.memorised and result.dead == {f"{i}.{p}": "zero" for i in (0, 2) for p in ("weight", "bias")} | {
        "4.weight": "zero"
    }
    assert (
        "zero gradients all the time in 0.weight, 0.bias, 2.weight, 2.bias and 4.weight" in result.findings[0].message
    )
    strong = mt.optim.Adam((net := network()).parameters(), lr=0.02, weight_decay=10.0)
    assert doctor.overfit_one_batch(net, F.cross_entropy, (x, y), optimizer=strong).memorised


def test_overfit_of_a_loss_that_is_no_number():
    x, y = problem()
    result = doctor.overfit_one_batch(nn.Linear(6, 3), lambda out, t: out.sum() * math.nan, (x, y))
    assert not result.ok and "The loss of one batch of 96 samples is nan from the start." in result.findings[0].message
    with pytest.raises(ValueError, match=r"expected a loss that is one number; got a tensor of shape \(96, 3\)"):
        doctor.overfit_one_batch(nn.Linear(6, 3), lambda out, t: out, (x, y))
    with pytest.raises(TypeError, match="expected a model, a Module; got function"):
        doctor.overfit_one_batch(lambda x: x, F.cross_entropy, (x, y))


def test_a_model_that_cannot_be_copied_is_told_of():
    model = nn.Linear(6, 3)
    model.log = open(__file__)
    try:
        with pytest.raises(TypeError, match="the model cannot be copied, and the tool works on a copy: TypeError"):
            doctor.check_gradients(model, F.cross_entropy, problem())
    finally:
        model.log.close()


def test_an_iterator_is_refused_since_its_batches_would_be_gone():
    x, y = problem()
    loader = DataLoader(TensorDataset(x, y), batch_size=24)
    model = nn.Linear(6, 3)
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
    for call in (lambda d: doctor.check_inputs(d), lambda d: doctor.find_lr(model, optimizer, F.cross_entropy, d)):
        with pytest.raises(TypeError, match="got an iterator"):
            call(iter(loader))


def test_gradients_name_the_first_output_that_is_not_finite():
    class Log(nn.Module):
        def forward(self, x):
            return x.log()

    x, y = problem()
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), Log(), nn.Linear(8, 3))
    result = doctor.check_gradients(model, F.cross_entropy, (x, y))
    (found,) = result.findings
    assert (found.rule, found.level) == ("C03", "error") and "comes from 2 (Log)" in found.message
    assert [layer.name for layer in result.layers] == ["0", "3"]


def test_learning_rates_are_those_of_a_range_and_the_suggestion_trains():
    x, _ = problem()
    loader = DataLoader(TensorDataset(x, x[:, :1].sin() + x[:, 1:2]), batch_size=24, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
    result = doctor.find_lr(model, optimizer, F.mse_loss, loader, start=1e-5, end=100.0, steps=60)
    ratios = [b / a for a, b in zip(result.lrs, result.lrs[1:])]
    assert result.lrs[0] == 1e-5 and ratios == pytest.approx([(1e7) ** (1 / 59)] * len(ratios))
    assert len(result.lrs) == len(result.losses) and 1e-3 < result.suggestion < result.diverges < 100
    with pytest.raises(ValueError, match="expected 0 < start < end"):
        doctor.find_lr(model, optimizer, F.mse_loss, loader, start=1.0, end=0.1)


def test_plots_are_svg_without_matplotlib_and_go_on_axes_with_it(tmp_path):
    x, y = problem()
    loader = DataLoader(TensorDataset(x, y), batch_size=24)
    model = nn.Linear(6, 3)
    result = doctor.find_lr(model, mt.optim.SGD(model.parameters(), lr=0.1), F.cross_entropy, loader, steps=20)
    others = (
        doctor.overfit_one_batch(model, F.cross_entropy, (x, y), 20),
        doctor.sweep_verdict({1e-3: 0.5, 1e-2: 0.2, 1e-1: math.inf}),
        doctor.check_regularization(lambda: nn.Linear(6, 3), F.cross_entropy, (x, y), steps=3),
        doctor.compare(lambda: None, lambda: None),
    )
    for i, each in enumerate((result, *others)):
        text = each.plot(tmp_path / f"{i}.svg")
        assert (tmp_path / f"{i}.svg").read_text() == text == each._repr_svg_()
        root = xml.fromstring(text)
        assert root.tag.endswith("svg") and "nan" not in text and "inf" not in text
    plt = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed: no axes to draw on")
    axes = plt.Figure().add_subplot()
    assert result.plot(ax=axes) is axes and axes.get_xscale() == "log"
    assert len(axes.lines) == 2 + (result.suggestion is not None)


def test_inputs_of_each_form():
    x, y = problem()
    image = mt.rand(8, 1, 8, 8)
    for data in ((x, y), [x, y], {"x": x, "label": y}, x, image, [(x, y), (x + 1, y)], (image, x[:8], y[:8])):
        assert doctor.check_inputs(data).ok
    assert doctor.check_inputs({"x": x, "label": y}).fields[1][0] == "targets"
    with pytest.raises(TypeError, match="expected a batch or a loader; got int"):
        doctor.check_inputs(3)


def test_two_things_of_one_rule_are_one_finding():
    result = doctor.check_inputs((mt.randint(0, 256, (32, 3, 8, 8), dtype=mt.uint8), mt.randint(0, 5, (32, 1))))
    (found,) = result.findings
    assert found.rule == "C14" and "images of mortice.uint8" in found.message and "shape (32, 1)" in found.message
    assert "x.float() / 255" in found.remedy and "y.squeeze(1)" in found.remedy


def test_dataset_gives_counts_and_places():
    x, y = problem()
    train = TensorDataset(x[:80], y[:80])
    result = doctor.check_dataset(train, TensorDataset(x[70:], y[70:]))
    assert result.read == 80 and sum(result.classes.values()) == 80
    assert result.shared == [(i, 70 + i) for i in range(10)] and [f.rule for f in result.findings] == ["C24"]
    few = doctor.check_dataset(train, limit=20)
    assert few.read == 20 and "20 of 80 items read" in str(few)


def test_items_that_fail_in_a_row_end_the_reading():
    class Gone:
        reads = 0

        def __len__(self):
            return 10_000

        def __getitem__(self, i):
            self.reads += 1
            raise FileNotFoundError("the disk is not there")

    gone = Gone()
    result = doctor.check_dataset(gone)
    assert gone.reads == 20 and "20 items of the dataset cannot be read" in result.findings[0].message


def train(lr=0.1, steps=6):
    x, y = problem(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = mt.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def test_runs_are_compared_step_by_step_and_from_a_file(tmp_path):
    trace = doctor.record(train, steps=4)
    assert trace.steps == 4 and len(trace.losses()) == 4
    assert {s.kind for s in trace.seen} == {"first value", "input", "activation", "loss", "gradient", "parameter"}
    trace.save(tmp_path / "run.json")
    loaded = type(trace).load(tmp_path / "run.json")
    assert loaded.seen == trace.seen
    same = doctor.compare(loaded, train, steps=4)
    assert same.ok and same.parted is None and same.different is None and "the same to the last bit" in str(same)
    other = doctor.compare(loaded, lambda: train(0.2), steps=4)
    assert (other.parted.step, other.parted.kind, other.parted.name) == (0, "parameter", "Sequential.0.weight")
    shorter = doctor.compare(train, lambda: train(steps=3))
    assert "goes on, at step 3, input of Sequential" in shorter.findings[0].message


@pytest.mark.parametrize("arguments", [(train,), (train, train, "cpu_numpy")])
def test_compare_wants_two_of_something(arguments):
    backends = {} if len(arguments) < 3 else {"backends": (arguments[2], arguments[2])}
    with pytest.raises(TypeError, match="expected two runs, or one program and two backends"):
        doctor.compare(*arguments[:2], **backends)


def test_a_program_is_compared_on_two_backends():
    from mortice.backends import plugins

    names = [n for n in ("cpu_numpy", "cpu_cext", "strict") if n in plugins.list_backends()]
    if len(names) < 2:
        pytest.skip("fewer than two backends are installed")
    result = doctor.compare(train, backends=names[:2])
    assert result.ok, result
    assert result.first.name == f"train on {names[0]}"


def test_import_of_the_doctor_does_not_load_the_tools():
    import subprocess
    import sys

    code = "import sys, mortice.doctor as d; assert not any('doctor.tools.' in m for m in sys.modules); d.find_lr"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="module 'mortice.doctor' has no attribute 'find_rl'"):
        doctor.find_rl  # noqa: B018


def test_roc_auc_warns_at_the_line_of_the_user():
    from mortice import metrics

    mt.manual_seed(0)
    y = mt.randint(0, 2, (100,))
    scores = (y + mt.randn(100)).sigmoid()
    metrics.roc_auc(scores, y)
    with pytest.warns(
        UserWarning, match="AUC 0.19 < 0.5: preds look like the probability of the NEGATIVE class"
    ) as said:
        metrics.roc_auc(1 - scores, y)
    assert said[0].filename == __file__
    with pytest.warns(UserWarning, match="all 100 scores are 0 or 1, which looks like hard labels"):
        metrics.AUROC().update((scores > 0.5).float(), y).compute()


def test_the_error_of_numpy_names_the_tensor():
    loss = mt.tensor(1.0, requires_grad=True) * 2
    with pytest.raises(
        RuntimeError, match=r"It is loss of shape \(\), made by Mul; to plot or keep it use loss.item\(\)"
    ):
        loss.numpy()
    kept = [loss.detach(), mt.ones(2, requires_grad=True)]
    with pytest.raises(
        RuntimeError, match=r"It is kept\[1\] of shape \(2,\); to plot or keep it use kept\[1\].detach\(\)"
    ):
        kept[1].numpy()
