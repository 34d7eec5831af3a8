"""The page and the terminal report: what stands in them, that nothing is fetched or left unescaped, and that places stay whole."""

import builtins
import re
from html.parser import HTMLParser

import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.doctor import Finding, Site, plots
from mortice.doctor.finding import NOWHERE

VOID = {"meta"}


class Checked(HTMLParser):
    """A page whose elements are closed in the order in which they were opened."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text = [], [], [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs[k] for k in ("href", "src") if k in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def run(steps=60, **options):
    mt.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 3))
    optimizer = mt.optim.SGD(model.parameters(), lr=0.01)
    with doctor.watch(quiet=True, **options) as session:
        for _ in range(steps):
            mt.nn.functional.cross_entropy(model(mt.randn(16, 6)), mt.randint(0, 3, (16,))).backward()
            optimizer.step()
    return session


def test_the_page_shows_findings_with_their_lines_and_every_plot():
    session = run(only=["D03", "D18"])
    page = Checked(text := session.report("html"))
    (found,) = session.findings
    assert found.message in page.text and found.remedy in page.text and "optimizer.step()" in page.text
    titles = ("Loss", "Update-to-weight ratio", "Gradient norms", "Activations", "Gradients", "Dead units")
    assert all(f"<h2>{t}</h2>" in text for t in titles)
    assert text.count("<svg") == 3 + 5 + 3 and "finding-1" in page.ids and page.links == ["#finding-1"]
    assert "SGD" in page.text and "test_page.py" in page.text


def test_nothing_is_fetched_and_no_script_runs():
    page = Checked(text := run().report("html"))
    assert not {"script", "link", "img", "iframe"} & set(page.tags) and not re.search(r"https?:|url\(|@import", text)
    assert len(text.encode()) < 100_000


@pytest.mark.parametrize("steps", [0, 1])
def test_pages_of_little_are_whole(steps):
    text = run(steps).report("html")
    assert (
        Checked(text)
        and ("No optimiser stepped" in text) == (steps == 0)
        and ("<small>no findings" in text) == (steps == 1)
    )
    assert "D18 takes the samples" in run(1, only=["D03"]).report("html")


def test_what_programs_say_is_escaped():
    session = run(1)
    bad = '<script>alert("&")</script>'
    session.findings.append(Finding(bad, "error", bad, bad, bad, bad, Site(f"/{bad}.py", 3, bad)))
    session.findings.append(Finding("D98", "info", "no place", "", "", "", NOWHERE))
    for track in session.samples:
        track.name = bad
    text = session.report("html")
    page = Checked(text)
    assert "script" not in page.tags and page.text.count(bad) >= 6 and "<script" not in text


def test_a_loss_that_is_not_finite_breaks_the_curve():
    session = run(4)
    session.curve.append((4, mt.tensor(float("nan")), session.curve[-1][2]))
    text = session.report("html")
    assert "nan or infinite from step 5 on" in text and not re.search(r' d="[^"]*(nan|inf)', text)
    session.curve[:] = session.curve[-1:]
    assert "No backward of a finite loss was seen" in session.report("html")


def test_ticks_are_round():
    assert [s for _, s in plots.Scale(0.0, 1.0).ticks()] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [s for _, s in plots.Scale(2e-4, 5.0, log=True).ticks()] == ["10⁻⁴", "10⁻³", "10⁻²", "0.1", "1", "10"]
    assert plots.Scale(3.0, 3.0)(3.0) == 0.5 and plots.Scale(1.0, 1.0, log=True).ticks()[0][1] == "1"
    assert [plots.number(v) for v in (0, 1e-5, 0.25, 1234.5, 123456, 1e12)] == [
        "0",
        "1e-5",
        "0.25",
        "1,234",
        "1e5",
        "1e12",
    ]


@pytest.mark.parametrize("rich", [True, False])
def test_places_are_not_folded_in_a_terminal(rich, monkeypatch):
    if rich:
        pytest.importorskip("rich")
    else:
        before = builtins.__import__

        def without(name, *args, **kwargs):
            if name.partition(".")[0] == "rich":
                raise ImportError(name)
            return before(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setenv("COLUMNS", "60")
    session = run(1)
    path = "/a/long/way/" + "to/" * 30 + "train.py"
    said = "view(8, 2) of [8, 16] and words that fill more than one line of a narrow terminal"
    session.findings.append(
        Finding("D06", "warning", "a title", said, "why it hurts", "what to do", Site(path, 18), 4, {}, 3)
    )
    lines = session.report().splitlines()
    assert f"{path}:18" in lines and ("╭" in session.report()) == rich
    assert all(len(line) <= 60 for line in lines if path not in line)
    flat = re.sub(r"[│\s]+", " ", session.report())
    assert said in flat and "-> what to do" in flat and "seen 3 times" in flat and "D06 warning" in flat
