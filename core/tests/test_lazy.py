"""What loads at its first use: that nothing is missing before, and that `import mortice` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import mortice as mt
from mortice.lazy import Lazy, behind, family

TESTS = Path(__file__).parent


def fresh(code: str) -> str:
    """Run code in a new process; return what it printed."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_catalog_is_current() -> None:
    should_be = fresh(f"import sys; sys.path.insert(0, {str(TESTS)!r}); import write_catalog; print(write_catalog.text())")
    written = Path(mt.__file__).with_name("catalog.py").read_text()
    assert should_be.strip() == written.strip(), "run `python core/tests/write_catalog.py`"


def test_importing_mortice_loads_few_modules_and_neither_typing_nor_re() -> None:
    # -S: without what the environment's own .pth files import.
    code = f"import sys; sys.path += {sys.path!r}; import mortice; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=120, check=True)
    loaded = out.stdout.split()
    assert not {"typing", "re", "enum", "inspect", "dataclasses", "ctypes", "pluggy"} & set(loaded)
    assert len([name for name in loaded if name.startswith("mortice")]) < 45
    assert not [name for name in loaded if name.startswith(("mortice.nn", "mortice.ops.linalg", "mortice.autograd"))]


def test_every_public_name_is_listed_before_it_is_loaded_and_is_there() -> None:
    out = fresh("""
        import mortice
        before = dir(mortice)
        from mortice import *
        assert {n for n in before if not n.startswith("_")} <= {*globals()}, set(before) - {*globals()}
        print(softmax is mortice.softmax, add(ones(1), 1).item())
        """)
    assert out == "True 2.0"


def test_assigning_to_a_property_is_not_setting_an_attribute_before_it_is_loaded() -> None:
    assert fresh("""
        import mortice
        x = mortice.zeros(1, dtype=mortice.complex64)
        x.imag = 2
        try:
            x.mT = 1
        except AttributeError:
            print(x.item())
        """) == "2j"


def test_a_registry_is_complete_for_whoever_asks_for_it() -> None:
    assert fresh("from mortice.op import OPS; print(len(OPS))") == fresh("""
        import importlib, pkgutil, mortice.ops
        for module in pkgutil.iter_modules(mortice.ops.__path__, "mortice.ops."):
            importlib.import_module(module.name)
        from mortice import op
        print(len(op._ops))
        """)


def test_a_kernel_over_tensors_is_its_op_whether_that_was_loaded_or_not() -> None:
    assert fresh("""
        import mortice as mt
        from mortice.node import TENSOR_KERNELS as k
        x = mt.ones(3, requires_grad=True)
        print(type(k.softmax(x, axis=0).grad_fn).__name__, type(k.expm1(x).grad_fn).__name__)
        """) == "SoftmaxBackward0 Expm1Backward0"


def test_free_kernels_are_found_before_their_families_are_loaded() -> None:
    assert fresh("""
        from mortice.backends import Backend
        print(Backend.softmax.__doc__ is not None, Backend.softmax is Backend.softmax, "lstm_layer" in dir(Backend))
        """).startswith("True True")


def test_bytes_are_viewed_as_another_dtype_before_anything_else_was_asked_for() -> None:
    assert fresh("""
        import mortice as mt
        seen = mt.tensor([1.0, -2.0]).view(mt.int32)
        print(seen.dtype, seen.tolist())
        """) == "mortice.int32 [1065353216, -1073741824]"


def test_a_property_may_be_assigned_to_before_it_is_read() -> None:
    assert fresh("""
        import mortice as mt
        z = mt.ones(2, dtype=mt.complex64)
        z.imag = 3
        print(z.tolist(), vars(z))
        """) == "[(1+3j), (1+3j)] {}"


def test_a_lazy_attribute_gives_way_to_what_it_stands_for() -> None:
    import textwrap as stand_in

    class Holder:
        first = second = Lazy("textwrap", "dedent").then(staticmethod)
        third = Lazy("textwrap", "TextWrapper")

    assert isinstance(vars(Holder)["first"], Lazy)
    assert Holder().first("  x") == "x"
    assert type(vars(Holder)["first"]) is type(vars(Holder)["second"]) is staticmethod
    assert Holder.third is stand_in.TextWrapper and vars(Holder)["third"] is stand_in.TextWrapper
    assert family("ops.unary").exp.load() is behind(mt.exp)


@pytest.mark.parametrize("package", ["", "nn", "nn/functional", "nn/utils"])
def test_names_are_public_to_type_checkers_too(package: str) -> None:
    """A package with `py.typed` exports what is imported `as` itself, `from . import` or by `*`; editors hide the rest."""
    folder = Path(mt.__file__).parent / package
    for node in ast.walk(ast.parse((folder / "__init__.py").read_text())):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.name == "*":
                text = (Path(mt.__file__).parents[1] / f"{node.module.replace('.', '/')}.py").read_text()
                spelt = node.module == "mortice.optim.foreach" or "\n__all__ = [name for" not in text  # those are private
                assert "\n__all__ = [" in text and spelt, node.module
            elif alias.asname is None and not alias.name.startswith("_"):
                assert node.level or node.module == "typing", f"{alias.name} is hidden"
