"""Plugins written for each version of the backend interface still work, all of them installed side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_backend
FROZEN = Path(__file__).parent / "frozen_plugins"
PLUGINS = [(site, line.split(" = ")[0]) for site in sorted(p for p in FROZEN.iterdir() if p.is_dir())
           for file in sorted(site.glob("*.dist-info/entry_points.txt"))
           for line in file.read_text().splitlines()[1:]]  # fmt: skip

PROGRAM = """
    import io
    import mortice as mt

    def program(backend):
        with mt.use_backend(backend):
            mt.manual_seed(0)
            x, w = mt.randn(16, 3), mt.randn(3, 2, requires_grad=True)
            b = mt.zeros(2, requires_grad=True)
            optimizer, losses = mt.optim.Adam([w, b], lr=0.05), []
            for _ in range(10):
                optimizer.zero_grad()
                loss = ((x @ w + b).relu() - x[:, 1:].flip(1)).square().mean() + mt.softmax(w, 0).max()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            image = mt.randn(1, 1, 5, 5, requires_grad=True)
            mt.nn.functional.conv2d(image, mt.ones(1, 1, 3, 3), padding=1).square().sum().backward()
            losses += image.grad.flatten().tolist() + mt.expm1(x).flatten().tolist() + mt.atan2(x, x.flip(0)).flatten().tolist()
            y = mt.arange(12.0).reshape(3, 4)
            y[:, ::2] = -1
            view = y.t()
            view[0] += 5
            y.index_add_(0, mt.tensor([0, 0]), mt.ones(2, 4))
            file = io.BytesIO()
            mt.save(y, file)
            file.seek(0)
            assert mt.equal(mt.load(file), y)
            exact = [y.sort(1)[0].tolist(), view.cumsum(0).tolist(), mt.randint(0, 9, (20,)).tolist(), (y > 3).tolist()]
            return losses, exact, str(w.device)
"""


def run(site: Path, code: str) -> str:
    """Run code that must succeed with the plugins of a folder installed; return what it printed."""
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path}
    env.pop("MORTICE_BACKEND", None)
    code = textwrap.dedent(PROGRAM) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("site", "name"), PLUGINS, ids=lambda p: p if isinstance(p, str) else p.name)
def test_a_frozen_plugin_still_works(site: Path, name: str) -> None:
    device = {"frozen_api1": "frozen:0", "frozen_free": "frozen_free:0", "frozen_namespace": "cpu"}.get(name, name)
    out = run(site, f"""
        mine, theirs = program({name!r}), program("cpu_numpy")
        assert max(abs(a - b) for a, b in zip(mine[0], theirs[0])) < 1e-5, (mine[0], theirs[0])
        assert mine[1] == theirs[1], (mine[1], theirs[1])
        print(mine[2])
        """)  # fmt: skip
    assert out == device


def test_a_second_device_is_a_place_of_its_own() -> None:
    assert run(FROZEN / "api1", 'print(mt.ones(2, device="frozen:1").mul(2).device)') == "frozen:1"


def test_free_kernels_that_a_frozen_plugin_has_are_used() -> None:
    out = run(FROZEN / "api1", """
        program("frozen_free")
        import mortice_frozen_free
        mt.ones(2, device="frozen_free:0").to("frozen_free:1")
        print(*sorted(mortice_frozen_free.CALLS))
        with mt.use_backend("frozen_free") as backend:
            print(*backend.overridden)
        """)  # fmt: skip
    assert out.splitlines() == ["atan2 copy_to expm1 flip item softmax", "atan2 expm1 flip softmax"]


def test_a_frozen_wrapper_sees_every_kernel() -> None:
    out = run(FROZEN / "api1", """
        program("frozen_wrapper")
        import mortice_frozen_wrapper
        print(*[n for n in ("matmul", "exp", "setitem", "to_host", "argsort") if mortice_frozen_wrapper.COUNTS[n]])
        """)  # fmt: skip
    assert out == "matmul exp setitem to_host argsort"


def test_no_array_library_is_needed() -> None:
    out = run(FROZEN / "api1", """
        import sys
        for library in ("numpy", "torch", "jax", "array_api_compat", "ml_dtypes"):
            sys.modules[library] = None
        print(program("frozen_lists")[2])
        """)  # fmt: skip
    assert out == "frozen_lists"
