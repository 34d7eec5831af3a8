"""The static part: what it reads, what it prints, and that it runs nothing and loads nothing."""

import ast
import json
import subprocess
import sys
import textwrap

import doctor_corpus
import pytest

from mortice.doctor import static
from mortice.doctor.__main__ import main
from mortice.doctor.known import rules
from mortice.doctor.static.meaning import Meaning
from mortice.doctor.static.program import Program

BROKEN = """\
import torch
from torch import nn

weights = torch.zeros(3)
weights.require_grad = True
"""


def found(text, filename="train.py", **options):
    return [(f.rule, f.site.line) for f in static.check_source(textwrap.dedent(text), filename, **options)]


def last(text):
    """Return what the last expression of a program is, and its node."""
    tree = ast.parse(textwrap.dedent(text))
    return Meaning(Program(tree)), tree.body[-1].value


# ---- the corpus, and programs that are right ----


@pytest.mark.parametrize("program", [p for p in doctor_corpus.programs() if not p.broken], ids=lambda p: p.name)
def test_no_correct_program_of_the_corpus_gets_a_warning(program):
    assert not [str(f) for f in static.check(program.path) if f.level != "info"]


def test_titles_are_those_of_the_rules_that_watch():
    watching = {r.id: r.title for r in rules()}
    for rule in static.rules():
        assert rule.title == watching.get(rule.id, rule.title) and rule.why and rule.remedy


# ---- what it reads ----


@pytest.mark.parametrize("imports", [
    "import torch\nfrom torch import nn\nimport torch.nn.functional as F",
    "import mortice as torch\nimport mortice.nn as nn\nfrom mortice.nn import functional as F",
    "import mortice\nfrom mortice import nn\nimport mortice.nn.functional as F",
    "try:\n    import mortice as torch\nexcept ImportError:\n    import torch\nfrom torch.nn import *\nfrom torch import nn\n"
    "import torch.nn.functional as F",
])  # fmt: skip
def test_names_are_followed_to_where_they_are_from(imports):
    text = f"{imports}\na = F.softmax(x)\nb = nn.Softmax()\nc = F.softmax(x, 1)\nF = None\n"
    assert found(text.removesuffix("F = None\n")) == [
        ("D09", imports.count("\n") + 2),
        ("D09", imports.count("\n") + 3),
    ]
    assert [f[0] for f in found(text)] == ["D09"], "F is not always the module"


def test_a_program_that_uses_neither_library_is_none_of_ours():
    assert found("from flax import nn\nnn.Softmax()\nx.require_grad = True\nx.squeeze(1)") == []


@pytest.mark.parametrize("text, op", [
    ("y = F.softmax(x, 1)\ny.view(-1)", "softmax"),
    ("y = F.softmax(x, 1)\ny = fc(y)\ny", None),
    ("y = x\nif a:\n    y = F.softmax(x, 1)\ny", None),
    ("y = x\nwith a:\n    y = F.softmax(x, 1)\ny", "softmax"),
    ("for i in a:\n    y = F.softmax(x, 1)\n    z = y\nz", "softmax"),
    ("y = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Flatten())(x)\ny", "relu"),
    ("y = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), *more)(x)\ny", None),
    ("m = nn.DataParallel(nn.Sequential(nn.ReLU())).cuda()\nm(x)", "relu"),
    ("def f(x):\n    return F.relu(x)\nf(x)", None),
])  # fmt: skip
def test_what_a_tensor_comes_from_is_told_only_when_it_is_certain(text, op):
    meaning, node = last(f"import torch.nn.functional as F\nfrom torch import nn\n{text}")
    origin = meaning.origin(node)
    assert (origin and origin.op) == op


def test_a_loop_that_reassigns_a_name_makes_its_origin_uncertain():
    text = """
        import torch.nn.functional as F
        from torch import nn
        y = F.softmax(x, 1)
        for target in targets:
            loss = F.cross_entropy(y, target)
            y = model(y)
    """
    assert found(text) == []
    assert found(text.replace("y = model(y)", "z = model(y)")) == [("D04", 6)]


def test_parameters_are_what_all_calls_in_the_file_pass():
    text = """
        import torch
        from torch import nn
        def step(model, criterion, x, y):
            return criterion(model(x), y)
        net = nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=1))
        step(net, nn.CrossEntropyLoss(), a, b)
    """
    assert found(text) == [("D04", 5)]
    assert found(text + "    step(other(), nn.CrossEntropyLoss(), a, b)\n") == []


def test_layers_of_a_base_class_are_known():
    text = """
        from torch import nn
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.last = nn.Softmax(dim=1)
            def forward(self, x):
                return self.last(self.body(x))
        class Net(Base):
            def body(self, x):
                return x
        loss = nn.CrossEntropyLoss()(Net()(x), y)
    """
    assert found(text) == [("D04", 12)]


def test_what_a_test_expects_is_no_mistake():
    assert found("import torch, pytest\nwith pytest.warns(UserWarning):\n    torch.nn.functional.softmax(x)\n") == []


@pytest.mark.parametrize("name, wanted", [
    ("require_grad", True), ("requires_gard", True), ("requires_grad", False), ("requires_grad_", True), ("_requires_grad", False),
    ("required", False), ("requires_gradient", True),
])  # fmt: skip
def test_misspelt_attributes_go_by_their_distance(name, wanted):
    assert bool(found(f"import torch\nx = torch.ones(3)\nx.{name} = True\n")) is wanted


# ---- comments, selection, notebooks, files that are no Python ----


@pytest.mark.parametrize("comment, silent", [
    ("# doctor: ignore", True), ("# doctor: ignore[D23]", True), ("# doctor: ignore[D01, D23]", True),
    ("# doctor: ignore[D39]", False), ("# noqa", False),
])  # fmt: skip
def test_a_comment_silences_a_line(comment, silent):
    assert (found(BROKEN.replace("= True", f"= True  {comment}")) == []) is silent


def test_a_comment_may_stand_at_the_end_of_a_statement_of_many_lines():
    text = (
        "from torch import nn\nm = nn.Sequential(\n    nn.Linear(2, 2),\n    nn.Softmax(),\n)  # doctor: ignore[D09]\n"
    )
    assert found(text) == [] and found(text.replace("D09", "D10")) == [("D09", 4)]


def test_rules_can_be_chosen():
    text = BROKEN + "nn.Softmax()\nm = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))\n"
    assert found(text) == [("D23", 5), ("D09", 6), ("D05", 7)]
    assert found(text, style=True) == [("D23", 5), ("D09", 6), ("D05", 7), ("D13", 7)]
    assert found(text, select=["D2*"]) == [("D23", 5)]
    assert found(text, select=["D13"]) == [("D13", 7)], "asked for by name"
    assert found(text, ignore=["D0*"]) == [("D23", 5)]


def notebook(*cells, **about):
    listed = [{"cell_type": "markdown", "source": ["# Training"]}]
    listed += [{"cell_type": "code", "source": c.splitlines(keepends=True)} for c in cells]
    return json.dumps({"cells": listed, "metadata": about})


def test_cells_of_a_notebook_are_one_program():
    text = notebook(
        "%matplotlib inline\n!pip install torch\nimport torch\nfrom torch import nn",
        "x = torch.ones(3)\nx.require_grad = True\nx.squeeze(1)",
        "%%html\n<b>no Python</b>",
        "    indented = 1\n    x.unsqueeze(0)\n    x",
        "model = nn.Sequential(nn.Softmax(1))\nnn.CrossEntropyLoss()(model(x), y)",
    )
    seen = static.check_source(text, "it.ipynb")
    assert [(f.rule, f.values["cell"], f.site.line) for f in seen] == [("D23", 3, 2), ("D39", 5, 2), ("D04", 6, 2)]
    assert "Softmax in line 1 of cell 6" in seen[-1].message
    assert static.check_source(notebook("x <- 3", language_info={"name": "R"}), "it.ipynb") == []


@pytest.mark.parametrize("name, text, where", [
    ("a.py", "import torch\nx = (1,\n", (2, 5)),
    ("a.ipynb", notebook("import torch", "y = 1\nx = = 2"), (2, 5)),
    ("a.ipynb", "no notebook", (0, 0)),
    ("a.py", "x = '\0'", (1, 1)),
])  # fmt: skip
def test_what_is_no_python_is_a_finding(name, text, where):
    (error,) = static.check_source(text, name)
    assert (error.rule, error.level, (error.site.line, error.values["column"])) == ("D00", "error", where)


def test_encodings_are_those_that_files_say(tmp_path):
    path = tmp_path / "latin.py"
    path.write_bytes(b"# coding: latin-1\nimport torch\nname = '\xe9'\nx = torch.ones(3)\nx.require_grad = 1\n")
    assert [(f.rule, f.site.line) for f in static.check(path)] == [("D23", 5)]
    path.write_bytes(b"name = '\xe9'\n")
    assert [f.rule for f in static.check(path)] == ["D00"]
    assert [f.rule for f in static.check(tmp_path / "none.py")] == ["D00"]


@pytest.mark.parametrize("terms", [300, 600, 5000])
def test_deeply_nested_programs_do_not_end_it(terms):
    text = "import torch\nx = torch.ones(3)\ny = " + "+".join(["x"] * terms) + "\ny.squeeze(1)\nx.require_grad = True\n"
    assert ("D23", 5) in found(text) or terms == 5000


# ---- the command line ----


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(BROKEN)
    (tmp_path / "fine.py").write_text("import torch\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "train.py").write_text(BROKEN)
    return tmp_path


def test_lines_are_those_that_editors_read(folder, capsys):
    assert main([str(folder)]) == 1
    first, summary = capsys.readouterr().out.splitlines()
    assert first == (
        f"{folder}/train.py:5:1: warning D23 Setting unknown attribute 'require_grad' on a Tensor has no effect; did you mean "
        "'requires_grad'? Write weights.requires_grad."
    )
    assert summary == "1 warning in 2 files"


@pytest.mark.parametrize("options, status", [
    (["--exit-zero"], 0), (["--select", "D39"], 0), (["--ignore", "D23,D39"], 0), (["--select", "D23", "--select", "D39"], 1),
])  # fmt: skip
def test_the_status_tells_whether_there_is_a_warning(folder, options, status):
    assert main([str(folder / "train.py"), *options]) == status


def test_a_file_that_is_no_python_has_a_status_of_its_own(folder, capsys):
    (folder / "old.py").write_text("print 'torch'\n")
    assert main([str(folder / "old.py"), str(folder / "train.py")]) == 2
    assert f"{folder}/old.py:1:1: error D00 Missing parentheses in call to 'print'" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, said", [
    ([], "the following arguments are required: path"),
    (["missing.py"], "no such file or folder: missing.py"),
    (["--select", "D99", "."], "no rule about the text of programs is called D99"),
    (["explain", "D99"], "no rule is called D99"),
])  # fmt: skip
def test_usage_errors(arguments, said, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2 and said in capsys.readouterr().err


def test_json_for_machines(folder, capsys):
    assert main([str(folder), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (one,) = report["findings"]
    assert report["files"] == 2 and (one["rule"], one["site"]["line"], one["values"]["column"]) == ("D23", 5, 1)


def test_explain_and_rules(capsys):
    assert main(["explain", "d03", "D39"]) == 0
    said = capsys.readouterr().out
    assert "D03 zero_grad forgotten" in said and "while it runs and in its text" in said and "D39 Result of" in said
    assert main(["rules"]) == 0 and "D31  warning  CenterCrop before Resize" in capsys.readouterr().out
    assert main(["rules", "--json"]) == 0
    assert {r.id for r in (*rules(), *static.rules())} == {r["id"] for r in json.loads(capsys.readouterr().out)}


def test_it_runs_nothing_and_loads_no_backend(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(f"import torch, not_there\nopen({str(tmp_path / 'made')!r}, 'w')\n{BROKEN}")
    loaded = (
        f"import sys; from mortice.doctor.__main__ import main; status = main([{str(program)!r}]);"
        "from mortice.backends import plugins;"
        "print(status, [m for m in ('numpy', 'torch', 'mortice.nn', 'mortice.optim') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1 []" and not (tmp_path / "made").exists()


def test_run_watches_a_program(tmp_path):
    program, report = tmp_path / "train.py", tmp_path / "report.json"
    program.write_text(
        "import sys\nimport mortice as torch\n"
        "w = torch.zeros(3, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(int(sys.argv[2])):\n"
        "    ((w - 1) ** 2).sum().backward()\n"
        "    optimizer.step()\n"
        "sys.exit(len(sys.argv))\n"
    )
    command = [sys.executable, "-m", "mortice.doctor", "run"]
    done = subprocess.run([*command, str(program), "--steps", "6"], capture_output=True, text=True)
    assert done.returncode == 3 and f"{program}:7: warning D03" in done.stderr and "1 warning in 6 steps" in done.stderr
    done = subprocess.run(
        [*command, "--report", str(report), "-m", "train", "--steps", "6"], capture_output=True, cwd=tmp_path
    )
    assert done.returncode == 3 and [f["rule"] for f in json.loads(report.read_text())["findings"]] == ["D03"]
