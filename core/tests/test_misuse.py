"""What is no tensor is refused by the name of the argument, in all public functions that are not ops themselves."""

from __future__ import annotations

import contextlib
import inspect
import pickle
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

import mortice as mt
from mortice import fast
from mortice.modes import modes
from mortice.nn import functional as F

pytestmark = pytest.mark.skipif(
    not fast.serves(), reason="mortice._engine was not built (no compiler, or MORTICE_PURE): Python's own errors show"
)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mt.squeeze([1, 2]), "squeeze: argument 'input' must be Tensor, not list. Use mortice.tensor(...) first."),
        (lambda: F.cross_entropy([1.0], mt.tensor(0)), "cross_entropy: argument 'input' must be Tensor, not list."),
        (lambda: F.cross_entropy(mt.ones(1), target=3), "cross_entropy: argument 'target' must be Tensor, not int."),
        (lambda: mt.isnan(2.0), "isnan: argument 'input' must be Tensor, not float."),
        (lambda: mt.ones(3).index_select(0, [1]), "index_select: argument 'index' must be Tensor, not list."),
        (lambda: mt.linalg.cross(mt.ones(3), None), "linalg_cross: argument 'other' must be Tensor, not NoneType."),
        (lambda: mt.bilinear(mt.ones(1), mt.ones(1), 2), "bilinear: argument 'weight' must be Tensor, not int."),
        (lambda: mt.nn.Linear(3, 2)([1.0]), "linear: argument 'input' must be Tensor, not list. Use mortice.tensor(...) first."),
        (lambda: mt.nn.Conv1d(3, 2, 1)([1.0]), "conv1d: argument 'input' must be Tensor, not list. Use mortice.tensor(...) first."),
        (lambda: mt.abs_("a"), "abs_: argument 'input' must be Tensor, not str."),
        (lambda: mt.abs_(chr(97)), "abs_: argument 'input' must be Tensor, not str."),  # which is all that it consists of
        (lambda: mt.chunk(mt.ones(3), (1, 2)), "chunk: argument 'chunks' must be int, not tuple."),
        (lambda: mt.ones(3).kthvalue(k="a"), "kthvalue: argument 'k' must be int, not str."),
        (lambda: F.dropout2d(mt.ones(3), []), "dropout2d: argument 'p' must be float, not list."),
        (lambda: mt.ones(3).chunk(), "chunk() missing 1 required positional argument: 'chunks'"),
        (lambda: mt.narrow(mt.ones(3), 0, 0.0, 1), "narrow: argument 'start' must be an integer, not float."),
        (lambda: mt.as_strided(mt.ones(4), (2,), (1.0,)), "as_strided: expected each of `stride` to be an integer; got float."),
        (lambda: mt.randint(0, 5.5, (2,)), "randint: argument 'high' must be an integer, not float."),
        (lambda: mt.randint(3, 5), "randint: size is needed, as in randint(high, size) or randint(low, high, size)."),
        (lambda: mt.fill(mt.ones(3), None), "fill: argument 'value' must be a number, not NoneType."),
        (lambda: mt.ones(4).split(1.5), "split: expected an int or a list of ints; got float."),
        (lambda: mt.autograd.gradcheck(mt.sin, 3), "autograd: expected a Tensor or a sequence of them; got int."),
        (lambda: F.pad(mt.ones(3), (1, "a")), "pad: expected each of `pad` to be an integer; got str."),
        (lambda: mt.topk(mt.ones(3), mt.ones(2)), "topk: argument 'k' must be int, not Tensor."),
        (lambda: F.hardshrink(mt.ones(3), mt.ones(2)), "hardshrink: argument 'lambd' must be float, not Tensor."),
        (lambda: F.layer_norm(mt.ones(3), mt.ones(4, 5)), "layer_norm: argument 'normalized_shape' must be a number; got a Tensor of"),
        (lambda: F.avg_pool1d(mt.ones(1, 4), mt.ones(2)), "'kernel_size' must be an integer; got a Tensor of shape [2]."),
        (lambda: mt.roll(mt.ones(3), [mt.ones(2)]), "roll: expected each of `shifts` to be an integer; got a Tensor of shape [2]."),
        (lambda: mt.ones(2, 2).tril(-1 << 64), "tril: expected `diagonal` to fit 64 bits; got -18446744073709551616."),
        (lambda: mt.ones(2).repeat((2, 1 << 63)), "repeat: expected `repeats` to fit 64 bits; got 9223372036854775808."),
        (lambda: mt.ones(2).view(1 << 70), "view: expected `size` to fit 64 bits; got 1180591620717411303424."),
        (lambda: mt.ones(0).view((0, 1 << 63)), "view: expected `size` to fit 64 bits; got 9223372036854775808."),
        (lambda: mt.reshape(mt.ones(2), (1 << 63, 1)), "reshape: expected `size` to fit 64 bits; got 9223372036854775808."),
        (lambda: mt.ones(2).expand(1 << 63, 2), "expand: expected `size` to fit 64 bits; got 9223372036854775808."),
        (lambda: mt.ones(2).tensor_split(1 << 63), "tensor_split: expected `indices_or_sections` to fit 64 bits; got 9223372036854775808."),
        (lambda: mt.float_power(mt.ones(3), "x"), "float_power: argument 'exponent' must be a number, not str."),
    ],
)
def test_the_argument_is_named(call: Callable[[], object], text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)) as caught:
        call()
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    ("call", "same"),
    [
        (lambda x: mt.add(x1=x, x2=x, alpha=3), lambda x: mt.add(x, x, alpha=3)),
        (lambda x: mt.maximum(x, x2=x), lambda x: mt.maximum(x, x)),
        (lambda x: x.clone().mul_(x2=x), lambda x: x.clone().mul_(x)),
        (lambda x: x.sub(x2=2), lambda x: x.sub(2)),
        (lambda x: mt.sin(x=x), mt.sin),
        (lambda x: mt.sum(a=x, axis=0, keepdims=True), lambda x: mt.sum(x, 0, True)),
        (lambda x: mt.unsqueeze(a=x, axis=1), lambda x: mt.unsqueeze(x, 1)),
        (lambda x: F.softplus(x=x), F.softplus),
    ],
)
def test_arguments_go_by_the_names_of_numpy(call: Callable[[Any], Any], same: Callable[[Any], Any]) -> None:
    x = mt.tensor([1.0, -2.0])
    assert call(x).tolist() == same(x).tolist()


def test_names_of_numpy_beside_the_own_and_where_they_stand_for_nothing() -> None:
    x = mt.ones(2)
    with pytest.raises(TypeError, match="multiple values for argument 'input'"):
        mt.add(x, x=x)
    for call, name in ((mt.sin, "x2"), (F.relu, "x"), (mt.add, "axis"), (mt.squeeze, "x1_")):
        with pytest.raises(TypeError, match=f"got an unexpected keyword argument '{name}'"):
            call(x, **{name: x})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: F.relu6(x), "relu6"),
        (lambda x: F.relu6(x, inplace=True), "relu6"),
        (lambda x: F.l1_loss(x, x), "l1_loss"),
        (lambda x: F.softmin(x.to(mt.complex64), 0), "softmin"),
        (lambda x: F.avg_pool1d(x[None], 1), "avg_pool1d"),
        (lambda x: mt.addmm(x, x[None], x[:, None]), "addmm"),
        (lambda x: x.dot(x), "dot"),
        (lambda x: mt.var_mean(x), "var_mean"),
        (lambda x: mt.max(x.to(mt.complex64), 0), "max"),
        (lambda x: mt.expand_copy(mt.ones(3), (5,)), "expand_copy"),
        (lambda x: mt.nn.CELU()(x), "celu"),
    ],
)
def test_a_function_of_ops_speaks_for_what_it_is_made_of(call: Callable[[mt.Tensor], object], name: str) -> None:
    with pytest.raises(RuntimeError, match=f"^{name}: "):
        call(mt.tensor([True, False]))


def test_an_op_that_a_program_calls_speaks_for_itself() -> None:
    def distance(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        return mt.sub(a, b.bool())

    with pytest.raises(RuntimeError, match="^sub: "):
        F.triplet_margin_with_distance_loss(*[mt.ones(1, 2)] * 3, distance_function=distance)


def test_a_tensor_that_a_program_takes_for_a_number_is_no_argument() -> None:
    class Size:
        def __index__(self) -> int:
            return int(mt.ones(2).sum() if mt.ones(2) else 0)

    with pytest.raises(RuntimeError, match="^Boolean value of Tensor with more than one value is ambiguous"):
        mt.nn.functional.avg_pool1d(mt.ones(1, 4), Size())  # type: ignore[arg-type]


def test_other_missing_attributes_stay_as_they_are() -> None:
    seen = mt.ones(2, requires_grad=True)
    seen.register_hook(lambda g: g.nothing)
    with pytest.raises(AttributeError, match="nothing"):
        seen.sum().backward()


def test_a_fault_in_a_kernel_is_not_blamed_on_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = mt.ones(1)._device.backend
    monkeypatch.setattr(kernels, "arange", lambda start, stop, step, **rest: step.dtype, raising=False)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'dtype'"):
        mt.arange(0, 5, 1)


def test_guarded_functions_are_still_functions() -> None:
    assert list(inspect.signature(F.cross_entropy).parameters)[:2] == ["input", "target"]
    assert F.cross_entropy.__name__ == "cross_entropy" and "logits" in (F.cross_entropy.__doc__ or "")
    for function in (F.cross_entropy, mt.squeeze):
        assert pickle.loads(pickle.dumps(function)) is function
        assert getattr(sys.modules[function.__module__], function.__name__) is function  # one object, wherever it is asked for


_PLAIN = {
    "dim": 0, "dims": (0,), "size": (2,), "shape": (2,), "kernel_size": 1, "normalized_shape": (2,), "repeats": 2, "p": 2,
    "num_samples": 1, "equation": "ij->ji", "output_size": 1, "groups": 1, "dim0": 0, "dim1": 0, "start": 0, "length": 1,
    "pad": (1, 1), "chunks": 1, "sections": 1, "split_size": 1, "source": 0, "destination": 0,
}  # fmt: skip
_TENSORS = frozenset(
    "input other x y x1 x2 input1 input2 A B a b mat mat1 mat2 mat_a mat_b vec vec1 vec2 batch1 batch2 tensor tensor1 tensor2 "
    "target weight index indices mask source src query key value condition boundaries sorted_sequence values end anchor "
    "positive negative logits grid count prob LD LU LU_pivots pivots the_template q elements".split()
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [mt, F, mt.linalg, mt.fft, mt.special], ids=lambda m: m.__name__)
def test_no_public_function_answers_with_a_missing_attribute(module: Any) -> None:
    calls, found = 0, []
    for name in sorted(n for n in dir(module) if not n.startswith("_") and n != "get_device"):  # it asks a method
        function = getattr(module, name)
        if not callable(function) or isinstance(function, type):
            continue
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError:  # of C, or a partial of one
            continue
        needed = [p.name for p in parameters if p.kind < p.VAR_POSITIONAL and p.default is p.empty]
        for wrong in _TENSORS.intersection(needed):
            for junk in (3, [1.0, 2.0], None, "a"):
                values = [junk if p == wrong else _PLAIN.get(p, mt.ones(2, 2)) for p in needed]
                calls += 1
                with contextlib.suppress(Exception):
                    try:
                        function(*values)
                    except AttributeError as error:
                        found += [(name, wrong, junk, str(error))] if error.name else []
    assert not found and calls > 50


@pytest.mark.parametrize(
    "switch",
    [
        mt.set_grad_enabled, mt.set_warn_always, mt.set_flush_denormal, mt.use_deterministic_algorithms,
        mt.autograd.set_detect_anomaly, mt.autograd.set_multithreading_enabled, mt.set_autocast_enabled,
        mt.set_autocast_cache_enabled, mt.backends.cuda.enable_flash_sdp,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
@pytest.mark.parametrize("junk", ["val", 1, [], 0.0], ids=repr)
def test_a_switch_takes_true_and_false_alone(switch: Any, junk: Any) -> None:
    for error in (TypeError, RuntimeError):  # PyTorch raises one or the other
        with pytest.raises(error, match=f"{switch.__name__}.*must be bool, not {type(junk).__name__}"):
            switch(junk)
    assert mt.is_grad_enabled() and not mt.is_warn_always_enabled() and not modes.anomaly
    assert not mt.is_autocast_enabled() and mt.is_autocast_cache_enabled() and mt.backends.cuda.flash_sdp_enabled()


@pytest.mark.parametrize("name", ["shape", "dtype"])
def test_what_a_tensor_is_cannot_be_assigned(name: str) -> None:
    x = mt.ones(2, 3)
    with pytest.raises(AttributeError):
        setattr(x, name, getattr(mt.ones(6, dtype=mt.int32), name))
    assert x.shape == (2, 3) and x.dtype is mt.float32


@pytest.mark.parametrize("junk", ["no", 1, None])
def test_what_is_a_switch_takes_nothing_but_bools(junk: object) -> None:
    x, at = mt.ones(2, 2), mt.zeros(1, 1, dtype=mt.int64)
    for name, argument, call in (
        ("topk", "largest", lambda: x.topk(2, largest=junk)), ("topk", "sorted", lambda: mt.topk(x, 2, -1, True, junk)),
        ("allclose", "equal_nan", lambda: mt.allclose(x, x, equal_nan=junk)),
        ("argsort", "descending", lambda: x.argsort(descending=junk)), ("svd", "full_matrices", lambda: mt.linalg.svd(x, junk)),
        ("unique", "return_counts", lambda: x.unique(return_counts=junk)), ("all", "keepdim", lambda: x.all(0, keepdim=junk)),
        ("sum", "keepdim", lambda: x.sum(0, junk)), ("put_", "accumulate", lambda: x.put_(at, x[:1, :1], accumulate=junk)),
        ("index_put", "accumulate", lambda: x.index_put((at[0],), x[:1], junk)), ("qr", "some", lambda: mt.qr(x, some=junk)),
        ("scatter_reduce", "include_self", lambda: x.scatter_reduce(0, at, x, "sum", include_self=junk)),
        ("searchsorted", "right", lambda: mt.searchsorted(x[0], x, right=junk)), ("mean", "keepdim", lambda: x.mean(0, keepdim=junk)),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=rf"{name}\(\): argument '{argument}' must be bool, not {type(junk).__name__}"):
            call()
    for call in (lambda: x.sort(stable=junk), lambda: x.std(0, unbiased=junk), lambda: mt.zeros(2, pin_memory=junk)):
        if junk is None:
            call()
        else:
            with pytest.raises(TypeError, match="must be bool, not"):
                call()
    assert mt.zeros(1, 1, 1, 1, 1).shape == (1,) * 5  # sizes are none
