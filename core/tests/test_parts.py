"""Parts of mortice that are distributions of their own: their sources lie in the core's tree, and its wheel leaves them out."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_backend
HERE = Path(__file__).resolve().parent.parent.parent
PARTS = sorted(p.name for p in (HERE / "parts").iterdir() if p.is_dir())
CORE = tomllib.loads((HERE / "core/pyproject.toml").read_text())
INSTALLED = (".py", EXTENSION_SUFFIXES[0], ".typed", ".json", ".css")  # the engine may lie there for several Pythons


def project(part: str) -> tuple[dict, str]:
    """Return a part's settings and its package's name."""
    own = tomllib.loads((HERE / "parts" / part / "pyproject.toml").read_text())
    return own, own["tool"]["setuptools"]["packages"]["find"]["include"][0]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_in_its_own_wheel_and_not_in_the_core_s(part: str) -> None:
    setuptools = pytest.importorskip("setuptools", reason="what goes into a wheel is asked of setuptools")
    own, package = project(part)
    assert own["project"]["name"] == f"mortice-{part}"
    assert own["project"]["version"] == CORE["project"]["version"]
    assert CORE["project"]["optional-dependencies"][part] == [f"mortice-{part}"]
    find = own["tool"]["setuptools"]["packages"]["find"]
    inside = setuptools.find_namespace_packages(str(HERE / "parts" / part), include=find["include"])
    folders = {p.parent for p in (HERE / "core" / package.replace(".", "/")).rglob("*.py")}
    assert package.endswith(f".{part}") and len(inside) == len(folders) and package in inside
    left_out = CORE["tool"]["setuptools"]["packages"]["find"]["exclude"]
    assert all(any(fnmatch(name, pattern) for pattern in left_out) for name in inside)


def files_without(parts: list[str]) -> dict[str, Path]:
    """Return the files of the core's package as it is installed with all but some parts: where they come to lie, and where they are."""
    left_out = tuple(f"{project(part)[1].replace('.', '/')}/" for part in parts)
    found = (p for p in (HERE / "core/mortice").rglob("*") if p.name.endswith(INSTALLED) and p.is_file())
    named = {p.relative_to(HERE / "core").as_posix(): p for p in found}
    return {name: p for name, p in named.items() if not name.startswith(left_out)}


def run_without(parts: list[str], code: str, folder: Path) -> str:
    """Return what a program prints where some parts are not installed."""
    for name, path in files_without(parts).items():
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert not done.returncode, done.stderr
    return done.stdout


def test_a_part_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    code = "import mortice\n"
    for package in (project(part)[1] for part in PARTS):
        above, _, part = package.rpartition(".")
        code += f"assert not hasattr({above}, {part!r})\n"
        for ask in (package, f"import {package}", f"from {above} import {part}", f"import {package}.anything"):
            code += f"try:\n    {ask}\nexcept (AttributeError, ModuleNotFoundError) as error:\n    print({part!r}, error)\n"
    said = run_without(PARTS, code, tmp_path).splitlines()
    assert len(said) == 4 * len(PARTS)
    for part, _, text in (line.partition(" ") for line in said):
        assert text.endswith(f"{part} is a distribution of its own, and not installed. Run: pip install 'mortice[{part}]'"), text


def test_the_core_needs_none_of_its_parts(tmp_path: Path) -> None:
    names = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files_without(PARTS) if name.endswith(".py")]
    code = (
        f"import importlib\nfor name in {names!r}:\n    try:\n        name.endswith('__main__') or importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error:  # a module for another library\n"
        "        assert not error.name.startswith('mortice'), error\nprint('all')"
    )
    assert run_without(PARTS, code, tmp_path) == "all\n"


def test_of_vision_feature_extraction_alone_needs_fx(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pictures need Pillow")
    code = (
        "import mortice\nfrom mortice.vision import models, ops\nmortice.set_backend('cpu_numpy')\n"
        "assert models.swin_t(num_classes=3)(mortice.zeros(1, 3, 32, 32)).shape == (1, 3)\n"
        "try:\n    from mortice.vision.models import feature_extraction\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    assert "pip install 'mortice[fx]'" in run_without(["fx"], code, tmp_path)


def test_what_needs_the_part_summary_says_so(tmp_path: Path) -> None:
    code = "import mortice\ntry:\n    mortice.summary\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert "pip install 'mortice[summary]'" in run_without(["summary"], code, tmp_path)


@pytest.mark.parametrize("name", ("ao.quantization", "quantization", "fake_quantize_per_tensor_affine", "qscheme", "nn.quantized"))
def test_what_needs_the_part_quantization_says_so(name: str, tmp_path: Path) -> None:
    code = f"import mortice\ntry:\n    mortice.{name}\nexcept (AttributeError, ModuleNotFoundError) as error:\n    print(error)"
    assert "pip install 'mortice[quantization]'" in run_without(["quantization"], code, tmp_path)


def test_what_needs_the_part_sparse_says_so_and_dense_tensors_lack_nothing(tmp_path: Path) -> None:
    asked = (
        "mortice.sparse", "mortice.sparse_coo_tensor([[0]], [1.0], (2,))", "mortice.zeros(2, layout=mortice.sparse_coo)",
        "x.to_sparse()", "x.as_subclass(Own).to_sparse()", "x.as_subclass(Own).sparse_mask(x)",
        "mortice.nn.Embedding(3, 2, sparse=True)(mortice.tensor([1]))",
    )  # fmt: skip
    code = (
        "import mortice\nmortice.set_backend('cpu_numpy')\nclass Own(mortice.Tensor): pass\nx = mortice.ones(3)\n"
        "assert not x.is_sparse and not hasattr(x, 'coalesce') and x.to_dense() is x and (x.as_subclass(Own) + 1).sum() == 6\n"
        "table = mortice.nn.Embedding(3, 2)\ntable(mortice.tensor([1])).sum().backward()\nmortice.optim.Adagrad([table.weight]).step()\n"
        f"for ask in {asked!r}:\n    try:\n        eval(ask)\n"
        "    except (AttributeError, ModuleNotFoundError) as error:\n        print(error)"
    )
    said = run_without(["sparse"], code, tmp_path).splitlines()
    assert len(said) == len(asked) and all("pip install 'mortice[sparse]'" in text for text in said)


def test_what_needs_the_part_subclasses_says_so_at_once(tmp_path: Path) -> None:
    asked = (
        "type('Told', (mortice.Tensor,), {'__torch_dispatch__': classmethod(lambda cls, func, types, args=(), kwargs=None: 0)})",
        "exec('from mortice.utils._python_dispatch import TorchDispatchMode')", "mortice.ops.aten.add.Tensor(x, x)",
        "mortice.Tensor._make_wrapper_subclass(Own, (2,))", "mortice.utils.checkpoint.create_selective_checkpoint_contexts([])",
    )  # fmt: skip
    code = (
        "import mortice\nmortice.set_backend('cpu_numpy')\nclass Own(mortice.Tensor): pass\nx = mortice.ones(2)\n"
        "assert type(x.add(x.as_subclass(Own))) is Own and mortice.nn.Linear(2, 2).to(mortice.float64)(x.double()).shape == (2,)\n"
        f"for ask in {asked!r}:\n    try:\n        eval(ask)\n    except ModuleNotFoundError as error:\n        print(error)"
    )
    said = run_without(["subclasses"], code, tmp_path).splitlines()
    assert len(said) == len(asked) and all("pip install 'mortice[subclasses]'" in text for text in said)


def test_core_with_the_c_extension_is_small() -> None:
    """As `make size`, without the installation: RECORD has a line for each file."""
    extension = pytest.importorskip("mortice_cpu_cext", reason="the size counts the C extension, which is not built here")
    folder = Path(extension.__file__).parent
    files = {**files_without(PARTS), **{f"mortice_cpu_cext/{p.name}": p for p in folder.iterdir() if p.suffix != ".pyc" and p.is_file()}}
    if any(b".debug_info" in p.read_bytes() for p in folder.glob("*.so")):
        pytest.skip("the C extension here has been built for a debugger or a sanitizer")
    size = sum(p.stat().st_size + len(f"{name},sha256={'0' * 43},{p.stat().st_size}\n") for name, p in files.items())
    for where in ("core", "plugins/cpu_cext"):
        size += sum((HERE / where / name).stat().st_size for name in ("pyproject.toml", "README.md", "LICENSE"))
    compilers = b" ".join([p.read_bytes() for p in folder.glob("*.so")])
    most = 5_000_000 if b"GCC: (Debian 12." in compilers else 5_400_000  # clang 21 makes a fifth more of the same source
    assert 3_000_000 < size < most


def test_every_distribution_names_the_pythons_that_the_core_does() -> None:
    def pythons(settings: dict) -> tuple[str, list[str]]:
        project = settings["project"]
        return project["requires-python"], [c for c in project["classifiers"] if c.startswith("Programming Language")]

    files = [HERE / "conformance/pyproject.toml", *HERE.glob("plugins/*/pyproject.toml"), *HERE.glob("parts/*/pyproject.toml")]
    assert len(files) > 10 and len(pythons(CORE)[1]) > 3
    for path in files:
        assert pythons(tomllib.loads(path.read_text())) == pythons(CORE), path
