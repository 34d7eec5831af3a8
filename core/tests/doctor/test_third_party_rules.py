"""Rules of third parties are found through the entry points of an installed package, and a broken one is named."""

import os
import subprocess
import sys

RULE = '''
from mortice import doctor


@doctor.register
class HugeLearningRate(doctor.Rule):
    """A learning rate above 1."""

    id = "ACME1"
    title = "Learning rate above 1"
    why = "Few models bear it."
    remedy = "Start at 1e-3."

    def step(self, event):
        lr = event.optimizer.param_groups[0]["lr"]
        if lr > 1:
            self.report(f"lr is {lr}.", lr=lr)


@doctor.hookimpl
def mortice_doctor_rules():
    return [HugeLearningRate]
'''
PROGRAM = """
import warnings
from mortice import doctor, nn, optim
import mortice as torch

with warnings.catch_warnings(record=True) as caught, doctor.watch(quiet=True, strict=True) as session:
    layer = nn.Linear(2, 1)
    optimizer = optim.SGD(layer.parameters(), lr=5.0)
    layer(torch.ones(4, 2)).sum().backward()
    optimizer.step()
print([f.rule for f in session.findings], [str(w.message) for w in caught if "doctor" in str(w.message)])
"""


def installed(folder, name, module, text):
    """Lay a package down as pip would, with an entry point."""
    (folder / f"{module}.py").write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mortice.doctor]\n{name} = {module}\n")


def run(folder):
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True).stdout


def test_an_installed_package_brings_its_rules(tmp_path):
    installed(tmp_path, "acme", "acme_rules", RULE)
    assert run(tmp_path).strip() == "['ACME1'] []"


def test_a_package_whose_rules_cannot_be_used_is_named_and_left_out(tmp_path):
    installed(tmp_path, "acme", "acme_rules", RULE)
    installed(tmp_path, "zebra", "zebra_rules", "raise OSError('no licence')")
    said = run(tmp_path)
    assert "['ACME1']" in said and "zebra (zebra_rules) cannot be used: OSError: no licence" in said
