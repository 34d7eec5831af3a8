"""Plugins from outside: broken ones are installed for real, and must cost nobody but themselves."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mortice
from mortice.backends import API, REQUIRED, Backend, BackendInfo, NamespaceBackend, plugins
from mortice.backends.backend import REQUIRED_NAMES, check_backend
from mortice.errors import BackendNotFound, DeviceError, PluginError

pytestmark = pytest.mark.any_backend  # what asks for the default one chooses it
CORE = Path(mortice.__file__).parent
ARRAY_LIBRARIES = ("numpy", "cupy", "torch", "jax", "ml_dtypes", "scipy", "array_api_compat", "array_api_strict")

IMPORTS = """
    from mortice.backends import Backend, BackendInfo, hookimpl
"""
SERVING = plugins.list_backends()[0]  # who serves new tensors where nobody has chosen
# A backend that borrows what it needs from cpu_numpy: enough to be accepted.
SOUND = """
    class Sound:
        pass

    def load():
        from mortice_cpu_numpy.backend import NumPyBackend
        return NumPyBackend()
"""


class Site:
    """A directory on PYTHONPATH with distributions in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def install(self, name: str, source: str, *, version: str = "1.0", entry: str | None = None) -> None:
        """Write a distribution of one module `<name>.py` with an entry point."""
        (self.path / f"{name}.py").write_text(textwrap.dedent(source))
        info = self.path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[mortice]\n{entry or name} = {name}\n")

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the distributions installed."""
        path = os.pathsep.join(filter(None, [str(self.path), os.environ.get("PYTHONPATH")]))
        env = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "", **environment}
        env.pop("MORTICE_BACKEND", None) if "MORTICE_BACKEND" not in environment else None
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=120)

    def python(self, code: str, **environment: str) -> str:
        """Run code that must succeed; return what it printed."""
        done = self.run("-c", textwrap.dedent(code), **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def listing(self) -> dict[str, Any]:
        """Return `python -m mortice backends --json`."""
        done = self.run("-m", "mortice", "backends", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    def check(self, name: str, reason: str, needs: str = "") -> None:
        """Check that everything else works, and that the listing says what is wrong with the plugin."""
        out = self.python("import mortice as mt; print((mt.ones(2, 3, device='cpu') + 1).sum().item(), mt.default_backend())")
        assert out == f"12.0 {SERVING}"
        found = self.listing()
        assert "cpu_numpy" in [b["name"] for b in found["backends"]]
        broken = {(b["name"], b["reason"], b["needs"]) for b in found["broken"]}
        assert (name, reason, needs) in broken
        done = self.run("-m", "mortice", "backends")
        assert done.returncode == 0
        assert f"! {name}" in done.stdout and reason.splitlines()[0] in done.stdout
        if needs:
            assert f"pip install {needs}" in done.stdout


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty directory of distributions."""
    return Site(tmp_path)


# ---- broken plugins ----


def test_a_plugin_that_cannot_be_imported_is_reported(site: Site) -> None:
    site.install("lost", "import a_library_that_nobody_has")
    site.check("lost", "ModuleNotFoundError: No module named 'a_library_that_nobody_has'")


def test_a_plugin_with_a_syntax_error_is_reported(site: Site) -> None:
    site.install("garbled", "def (:")
    site.check("garbled", "SyntaxError: invalid syntax (garbled.py, line 1)")


def test_a_plugin_that_exits_at_import_is_contained(site: Site) -> None:
    site.install("quitter", "import sys; sys.exit('no licence found')")
    site.check("quitter", "SystemExit: no licence found")


def test_a_plugin_whose_hook_raises_is_reported(site: Site) -> None:
    site.install("raiser", IMPORTS + """
    @hookimpl
    def mortice_backends():
        raise ValueError("the driver is too old")
    """)  # fmt: skip
    site.check("raiser", "ValueError: the driver is too old")


def test_a_misspelt_hook_is_named(site: Site) -> None:
    site.install("misspelt", IMPORTS + """
    @hookimpl
    def mortice_backend():
        return []
    """)  # fmt: skip
    site.check(
        "misspelt",
        "PluginError: no hook is called mortice_backends; it has mortice_backend. Write `@hookimpl def "
        "mortice_backends()`, with `from mortice.backends import hookimpl`.",
    )


def test_a_hook_without_the_marker_is_named(site: Site) -> None:
    site.install("unmarked", """
    def mortice_backends():
        return []
    """)  # fmt: skip
    site.check(
        "unmarked",
        "PluginError: mortice_backends is there, but not marked as a hook. Write `@hookimpl def mortice_backends()`, "
        "with `from mortice.backends import hookimpl`.",
    )


def test_a_second_hook_that_does_not_exist_is_named(site: Site) -> None:
    site.install("extra", IMPORTS + """
    @hookimpl
    def mortice_backends():
        return [BackendInfo("extra", ("extra",), lambda: None)]

    @hookimpl
    def mortice_devices():
        return []
    """)  # fmt: skip
    reasons = {b["name"]: b["reason"] for b in site.listing()["broken"]}
    assert "unknown hook 'mortice_devices'" in reasons["extra"]


@pytest.mark.parametrize(
    ("returned", "got"),
    [("None", "None"), ("42", "int"), ("[]", "[]"), ("['cpu']", "str"), ("{'name': 'x'}", "dict")],
)
def test_a_hook_that_returns_something_else_is_reported(site: Site, returned: str, got: str) -> None:
    site.install("odd", IMPORTS + f"""
    @hookimpl
    def mortice_backends():
        return {returned}
    """)  # fmt: skip
    site.check("odd", f"mortice_backends must return a list of BackendInfo; got {got}.")


def test_a_sound_offer_beside_a_broken_one_is_kept(site: Site) -> None:
    site.install("half", IMPORTS + SOUND + """
    @hookimpl
    def mortice_backends():
        return [BackendInfo("half", ("cpu",), load), "nonsense"]
    """)  # fmt: skip
    found = site.listing()
    assert "half" in [b["name"] for b in found["backends"]]
    assert [b["reason"] for b in found["broken"]] == ["mortice_backends must return a list of BackendInfo; got str."]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("'bad', 'cpu', load", "BackendInfo.device_types must be names such as ('cpu',); got 'cpu'."),
        ("'bad', (), load", "BackendInfo.device_types must be names such as ('cpu',); got ()."),
        ("'bad', ('cpu:0',), load", "BackendInfo.device_types must be names such as ('cpu',); got ('cpu:0',)."),
        ("'bad', ('cpu',), None", "BackendInfo.load must be a function that returns the backend; got None."),
        ("'bad', ('cpu',), load, 'high'", "BackendInfo.priority must be a number; got 'high'."),
        (
            "'bad', ('cpu',), load, api=2",
            f"written for api 2; this mortice speaks api {API}. Install a version of broken-offer made for it.",
        ),
    ],
)
def test_an_offer_that_cannot_be_taken_is_reported(site: Site, arguments: str, reason: str) -> None:
    site.install("broken_offer", IMPORTS + SOUND + f"""
    @hookimpl
    def mortice_backends():
        return BackendInfo({arguments})
    """)  # fmt: skip
    site.check("bad", reason)


def test_of_two_backends_of_one_name_the_first_is_kept(site: Site) -> None:
    for name, priority in (("plugin_a", 1), ("plugin_b", 99)):
        site.install(name, IMPORTS + SOUND + f"""
    @hookimpl
    def mortice_backends():
        return [BackendInfo("twin", ("cpu",), load, priority={priority} - 100)]
    """)  # fmt: skip
    site.check("twin", "the name 'twin' is already taken by plugin-a; the first one is kept. Uninstall one of them.")
    assert [b["distribution"] for b in site.listing()["backends"] if b["name"] == "twin"] == ["plugin-a"]


def test_a_backend_without_required_kernels_is_refused_with_the_list(site: Site) -> None:
    site.install("partial", IMPORTS + """
    class Partial(Backend):
        def device_names(self): return ["cpu"]
        def dtypes(self, device): return frozenset()
        def add(self, x, y): return x
        def full(self, shape, value, *, dtype, device): return None

    @hookimpl
    def mortice_backends():
        return [BackendInfo("partial", ("cpu",), Partial)]
    """)  # fmt: skip
    there = ("device_names", "dtypes", "add", "full")
    missing = ", ".join(n for n in REQUIRED_NAMES if n not in there)
    site.check("partial", f"PluginError: backend partial: required kernels are missing: {missing}.")


@pytest.mark.parametrize("dtypes, got", [({"float32"}, "'float32'"), ([mortice.float32], "mortice.float32")])
def test_dtypes_are_mortices_and_those_that_everything_needs_are_among_them(dtypes: Any, got: str) -> None:
    body = dict.fromkeys(REQUIRED_NAMES, lambda *operands: None)
    body |= {"device_names": lambda self: ["cpu"], "dtypes": lambda self, device: dtypes}
    with pytest.raises(PluginError, match=re.escape(f"few: dtypes() must have mortice's bool, int64 and float32; got {got}.")):
        check_backend(type("Few", (Backend,), body)(), "few")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import cupid", "ModuleNotFoundError: No module named 'cupid'"),
        ("raise OSError('libcuda.so.1: cannot open shared object file')",
         "OSError: libcuda.so.1: cannot open shared object file"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("return None", "PluginError: backend late: load() must return a Backend; got NoneType."),
        ("from mortice.backends import NamespaceBackend; return NamespaceBackend(None, ['cpu'])",
         "PluginError: NamespaceBackend: expected devices as {'cpu': the library's own}; got list."),
        ("return Hollow()", "PluginError: backend late: its __init__ must call super().__init__()."),
        ("import mortice; mortice.set_backend('late')",
         "PluginError: backend 'late': it was asked for by its own load(). Make no tensors there."),
    ],
)  # fmt: skip
def test_a_load_that_fails_is_reported_with_what_to_install(site: Site, body: str, reason: str) -> None:
    site.install("late", IMPORTS + f"""
    class Hollow(Backend):
        def __init__(self): pass

    def load():
        print("loading late")
        {body}

    @hookimpl
    def mortice_backends():
        return [BackendInfo("late", ("late",), load, priority=5, needs="late-library>=2")]
    """)  # fmt: skip
    site.check("late", reason, needs="late-library>=2")
    out = site.python("""
        import mortice as mt
        for ask in (lambda: mt.set_backend("late"), lambda: mt.set_backend("late")):
            try:
                ask()
            except RuntimeError as error:
                print(type(error).__name__, error)
        """)
    text = f"BackendNotFound backend 'late' failed to load: {reason.rstrip('.')} (pip install late-library>=2)."
    assert [line for line in out.splitlines() if line != "loading late"] == [text, text]
    assert out.count("loading late") == 1


@pytest.mark.parametrize("when", ["import", "load"])
def test_a_plugin_that_fails_keeps_nothing_of_its_caller_alive(site: Site, when: str) -> None:
    site.install("absent", IMPORTS + f"""
    if {when == "import"}:
        import a_library_that_is_not_there

    def load():
        import a_library_that_is_not_there

    @hookimpl
    def mortice_backends():
        return [BackendInfo("absent", ("cpu",), load, priority=1000)]
    """)  # fmt: skip
    out = site.python("""
        import warnings, weakref
        import mortice as mt

        class Mine:
            pass

        def first():
            mine = Mine()
            with warnings.catch_warnings(record=True):
                mt.ones(1)
            return weakref.ref(mine)

        print(first()())
        """)
    assert out.split() == ["None"]


def test_a_backend_on_devices_that_it_did_not_claim_is_refused(site: Site) -> None:
    site.install("stray", IMPORTS + SOUND + """
    @hookimpl
    def mortice_backends():
        return [BackendInfo("stray", ("gpu",), load)]
    """)  # fmt: skip
    site.check("stray", "PluginError: backend stray: every device must be of a claimed type (gpu); got cpu.")


def test_one_backend_under_two_names_is_refused(site: Site) -> None:
    site.install("shared", IMPORTS + SOUND + """
    one = []

    def again():
        one.append(one[0] if one else load())
        return one[0]

    @hookimpl
    def mortice_backends():
        return [BackendInfo("shared_1", ("cpu",), again, -1), BackendInfo("shared_2", ("cpu",), again, -2)]
    """)  # fmt: skip
    site.check(
        "shared_2",
        "PluginError: backend shared_2: load() returned a backend that another name has. Make one for each.",
    )


def test_broken_metadata_of_one_distribution_hides_no_other(site: Site) -> None:
    for name, text in (("torn", "[mortice]\nno equals sign\n"), ("binary", "[mortice]\n\x00\x01 = \x02\n")):
        info = site.path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_text(text)
    (site.path / "empty-1.dist-info").mkdir()
    found = site.listing()
    assert "cpu_numpy" in [b["name"] for b in found["backends"]]
    assert len(found["broken"]) == 2


def test_a_backend_that_fails_when_asked_about_itself_is_listed_as_broken(site: Site) -> None:
    site.install("moody", IMPORTS + """
    def load():
        from mortice_cpu_numpy.backend import NumPyBackend

        class Moody(NumPyBackend):
            asked = 0

            @property
            def overridden(self):
                raise RuntimeError("not today")

        return Moody()

    @hookimpl
    def mortice_backends():
        return [BackendInfo("moody", ("cpu",), load, -1)]
    """)  # fmt: skip
    site.check("moody", "RuntimeError: not today")


def test_the_next_backend_serves_when_the_best_cannot_be_loaded_and_says_so(site: Site) -> None:
    site.install("proud", IMPORTS + """
    def load():
        import a_fast_library

    @hookimpl
    def mortice_backends():
        return [BackendInfo("proud", ("cpu",), load, priority=1000, needs="a-fast-library")]
    """)  # fmt: skip
    done = site.run("-c", "import mortice as mt; print(mt.ones(1).item(), mt.default_backend()); mt.ones(1)")
    assert done.stdout.strip() == f"1.0 {SERVING}"
    assert done.stderr.count("Trying the next backend.") == 1
    assert "(pip install a-fast-library)" in done.stderr


def test_nothing_installed_says_what_to_install() -> None:
    code = """
        import mortice as mt
        from mortice.backends import installed
        installed.distributions = lambda: []
        try:
            mt.ones(1)
        except RuntimeError as error:
            print(type(error).__name__, error)
        from mortice.__main__ import main
        main(["backends"])
        """
    unchosen = {name: value for name, value in os.environ.items() if name != "MORTICE_BACKEND"}
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, env=unchosen)  # fmt: skip
    assert out.stdout.startswith(
        "BackendNotFound mortice: no backend can serve new tensors. Install one, e.g. pip install mortice[numpy]."
    )
    assert "No backend works here." in out.stdout


# ---- choosing ----


def test_the_environment_chooses_and_is_named_when_it_is_wrong(site: Site) -> None:
    code = "import mortice as mt; print(mt.default_backend())"
    assert site.python(code, MORTICE_BACKEND="strict") == "strict"
    done = site.run("-c", code, MORTICE_BACKEND="stric")
    assert "Did you mean 'strict'? It was chosen by MORTICE_BACKEND=stric." in done.stderr
    assert site.run("-m", "mortice", "backends", MORTICE_BACKEND="nothing").returncode == 0


def test_an_unknown_device_lists_what_exists_what_is_broken_and_what_to_install(site: Site) -> None:
    site.install("my_cuda", IMPORTS + """
    def load():
        import cupid

    @hookimpl
    def mortice_backends():
        return [BackendInfo("my_cuda", ("cuda",), load, needs="my-cuda")]
    """)  # fmt: skip
    site.install("lost", "import nowhere")
    out = site.python("""
        import mortice as mt
        try:
            mt.ones(1, device="cuda:0")
        except RuntimeError as error:
            print(type(error).__name__, error)
        print(mt.cuda.is_available(), mt.cuda.device_count(), mt.cuda.memory_allocated())
        """)
    assert out.splitlines() == [
        "DeviceError device 'cuda:0': no backend offers it; available: cpu; my_cuda failed to load: ModuleNotFoundError: "
        "No module named 'cupid' (pip install my-cuda); lost is broken: ModuleNotFoundError: No module named 'nowhere'.",
        "False 0 0",
    ]


def test_an_unknown_backend_is_met_with_the_names_there_are() -> None:
    with pytest.raises(BackendNotFound, match=r"backend 'cpu_nunpy': expected one of .*\. Did you mean 'cpu_numpy'\?"):
        mortice.set_backend("cpu_nunpy")
    with pytest.raises(BackendNotFound, match=r"Install the plugin that brings it\."):
        mortice.ones(1).to(backend="qqq")


@pytest.fixture
def served() -> Iterator[None]:
    with mortice.use_backend("cpu_numpy"):
        yield


def test_use_backend_and_device_blocks_are_undone_after_an_error(served: None) -> None:
    before = mortice.default_backend(), mortice.get_default_device()
    with pytest.raises(ZeroDivisionError), mortice.use_backend("strict"), mortice.device("strict:1"):
        assert str(mortice.ones(1).device) == "strict:1"
        assert mortice.default_backend() == "strict"
        raise ZeroDivisionError
    assert (mortice.default_backend(), mortice.get_default_device()) == before


def test_the_default_device_is_set_and_reset(served: None) -> None:
    before = mortice.get_default_device()
    mortice.set_default_device("strict:1")
    try:
        assert str(mortice.get_default_device()) == "strict:1"
        assert str(mortice.zeros(2).device) == "strict:1"
    finally:
        mortice.set_default_device(None)
    assert mortice.get_default_device() == before
    with pytest.raises(DeviceError):
        mortice.set_default_device("nowhere")


def test_a_type_of_device_that_no_plugin_claims_and_pytorch_does_not_know_is_refused_by_name() -> None:
    # Libraries read the names of the types from this sentence, as from PyTorch's.
    sentence = "^device: Expected one of cpu, cuda, .*, privateuseone device type at start of device string: nowhere"
    with pytest.raises(DeviceError, match=sentence) as caught:
        mortice.device("nowhere:1")
    assert str(caught.value).endswith("Use one of these, or install the plugin that offers 'nowhere'.")
    assert str(mortice.device("xla:1")) == "xla:1" and mortice.device("strict", 1).type == "strict"


def test_a_backend_named_with_a_device_it_lacks_says_what_it_offers(served: None) -> None:
    with pytest.raises(DeviceError) as caught:
        mortice.ones(1).to(device="strict:0", backend="cpu_numpy")
    assert str(caught.value) == "device 'strict:0': backend 'cpu_numpy' does not offer it; available: cpu."


def test_the_list_of_backends_loads_no_array_library() -> None:
    code = "import sys, mortice as mt; print(mt.backends.list()); print([m for m in sys.argv[1:] if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code, *ARRAY_LIBRARIES], capture_output=True, text=True, timeout=120, check=True
    ).stdout.splitlines()
    assert "cpu_numpy" in out[0] and out[1] in ("[]", "['numpy']")


def test_eight_threads_at_once_discover_and_load_once(site: Site) -> None:
    site.install("counted", IMPORTS + SOUND + """
    import time
    times = []

    def slow():
        times.append(1)
        time.sleep(0.2)
        return load()

    @hookimpl
    def mortice_backends():
        time.sleep(0.1)
        return [BackendInfo("counted", ("cpu",), slow, -1)]
    """)  # fmt: skip
    out = site.python("""
        import threading, mortice as mt
        from mortice.backends.plugins import load
        found, barrier = [], threading.Barrier(8)

        def work():
            barrier.wait()
            found.append((load("counted"), mt.default_backend()))

        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        import counted
        print(len(counted.times), len({id(b) for b, _ in found}), {d for _, d in found}, len(found))
        """)
    assert out == f"1 1 {{{SERVING!r}}} 8"


# ---- mortice.cuda over whoever offers the type ----


def test_cuda_speaks_to_the_backend_that_offers_the_type(site: Site) -> None:
    site.install("pretender", IMPORTS + """
    def load():
        import numpy
        from mortice.backends import NamespaceBackend

        class Pretender(NamespaceBackend):
            def memory_allocated(self, device):
                return 100 + device.index

            def device_of(self, x):
                return self.device("cuda:0")

        return Pretender(numpy, {"cuda:0": None, "cuda:1": None})

    @hookimpl
    def mortice_backends():
        return [BackendInfo("pretender", ("cuda",), load)]
    """)  # fmt: skip
    out = site.python("""
        import mortice as mt
        c = mt.cuda
        print(c.is_available(), c.device_count(), c.current_device(), c.memory_allocated(), c.memory_allocated("cuda:1"))
        with c.device(1):
            print(c.current_device(), mt.device("cuda"), mt.ones(1, device="cuda").device, c.memory_allocated())
        c.set_device(1); print(mt.ones(1).cuda().device, c.get_device_name()); c.set_device(-1); print(c.current_device())
        c.synchronize(); c.empty_cache(); c.manual_seed_all(3); print(mt.initial_seed() == 3)
        try:
            c.set_device("cpu")
        except RuntimeError as error:
            print(error)
        """)
    assert out.splitlines() == [
        "True 2 0 100 101",
        "1 cuda cuda:1 101",
        "cuda:1 cuda:1",
        "1",
        "True",
        "cuda.set_device: expected a CUDA device; got 'cpu'. Pass an index or 'cuda:N'.",
    ]


# ---- the core and array libraries ----


def test_importing_mortice_imports_no_array_library() -> None:
    code = "import sys, mortice; import mortice.nn, mortice.optim; print([m for m in sys.argv[1:] if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code, *ARRAY_LIBRARIES], capture_output=True, text=True, timeout=120, check=True
    )
    assert out.stdout.strip() == "[]"


def test_core_names_no_array_library_in_an_import() -> None:
    """The one exception is interop.py, which asks importlib for NumPy when the user calls `.numpy()`."""
    found = []
    for path in sorted(CORE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
                names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            found += [
                (path.relative_to(CORE).as_posix(), name)
                for name in names
                if name.partition(".")[0] in ARRAY_LIBRARIES or re.match(r"mortice_", name)
            ]
    assert set(found) <= {("interop.py", "numpy"), ("interop.py", "ml_dtypes")}


def test_importing_mortice_leaves_the_heavy_standard_library_alone() -> None:
    heavy = ["inspect", "dataclasses", "pickle", "zipfile", "tempfile", "traceback", "pluggy", "importlib.metadata"]
    # -S: without what the environment's own .pth files import.
    code = f"import sys; sys.path += {sys.path!r}; import mortice; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert out.stdout.strip() == "[]"


# ---- what a backend is ----


def test_the_required_kernels_are_the_documented_ones() -> None:
    """A change here breaks every plugin: it needs a new `API`, and a frozen plugin written against it."""
    kernels = sum(len(names.split()) for family, names in REQUIRED.items() if family != "housekeeping")
    assert (API, kernels, len(REQUIRED["housekeeping"].split())) == (1, 50, 8)


def test_register_is_for_backends_made_in_the_program() -> None:
    import numpy

    class Here(NamespaceBackend):
        pass

    plugins.register(BackendInfo("made_here", ("cpu",), lambda: Here(numpy), priority=-5))
    try:
        with mortice.use_backend("made_here") as backend:
            assert isinstance(backend, Backend)
            assert (mortice.ones(3) * 2).sum().item() == 6
    finally:
        del plugins.entries()["made_here"]


def test_the_listing_has_its_dtypes_in_one_column_and_no_blank_at_an_end() -> None:
    from mortice.__main__ import text

    one = {"name": "demo", "distribution": "demo", "version": "1.0", "api": 1, "default": False, "libraries": {}, "unwritten": [],
           "devices": {"demo": ["bool"], "demo_without:0": ["bool"]}, "overridden": list(REQUIRED_NAMES)}  # fmt: skip
    lines = text({"mortice": "0", "api": 1, "backends": [one], "broken": [], "default": None, "problem": ""}, verbose=True).splitlines()
    assert len({line.index("bool") for line in lines if line.endswith(" bool")}) == 1
    assert all(line == line.rstrip() and len(line) <= 110 for line in lines) and sum(REQUIRED_NAMES[-1] in line for line in lines) == 1
