"""Around the engine: anomaly detection, checkpointing, hooks on saved tensors, Variable."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import weakref
from typing import Any

import pytest

import mortice as mt
from mortice import autograd
from mortice import op as op_module
from mortice.autograd import Function, Variable
from mortice.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from mortice.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

f64 = mt.float64


def leaf(*values: float) -> mt.Tensor:
    return mt.tensor(values, dtype=f64, requires_grad=True)


class Fails(Function):
    @staticmethod
    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
        raise RuntimeError("no gradient today")


# ---- anomaly ----


def test_anomaly_points_to_the_forward_line_of_a_failure() -> None:
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        detect = autograd.detect_anomaly()
    with detect:
        y = Fails.apply(leaf(1.0))  # the line that is shown
        with (
            pytest.warns(UserWarning, match="Error detected in FailsBackward. Traceback of forward call that caused the")
            as caught,
            pytest.raises(RuntimeError, match="no gradient today"),
        ):
            y.sum().backward()
    text = str(caught[0].message)
    assert "# the line that is shown" in text and "backward.py" not in text
    assert not autograd.anomaly.is_anomaly_enabled()


@pytest.mark.filterwarnings("error:Error detected in ExpBackward0", "ignore:Anomaly Detection has been enabled")
def test_anomaly_does_not_hide_the_error_where_warnings_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    x = leaf(1.0)
    with autograd.detect_anomaly():
        y = x.exp()
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    assert "Error detected in ExpBackward0" in capsys.readouterr().err


def test_anomaly_names_the_node_that_made_nan() -> None:
    x = leaf(0.0)
    with autograd.set_detect_anomaly(True):
        y = (x * 0.0) / (x * 0.0)
        with pytest.warns(UserWarning, match="Error detected in DivBackward0"), pytest.raises(
            RuntimeError, match="Function 'DivBackward0' returned nan values in its 1th output."
        ):
            y.sum().backward()
    with autograd.set_detect_anomaly(True, check_nan=False):
        ((x * 0.0) / (x * 0.0)).sum().backward()
    assert x.grad.isnan().all().item()


def test_anomaly_tells_what_led_to_a_node_that_backward_recorded() -> None:
    class Bad(autograd.Function):
        forward = staticmethod(lambda ctx, x: x.clone())
        backward = staticmethod(lambda ctx, g: g * float("nan"))

    class Good(autograd.Function):
        forward = staticmethod(lambda ctx, x: x.clone())
        backward = staticmethod(lambda ctx, g: Bad.apply(g))

    x = leaf(1.0)
    with pytest.warns(UserWarning) as said, autograd.detect_anomaly():
        y = Good.apply(x) ** 2  # the forward line
        (g,) = autograd.grad(y, x, create_graph=True)
        with pytest.raises(RuntimeError, match="nan values"):
            g.backward()
    _, caused, led = [str(w.message) for w in said]
    assert caused.startswith("Error detected in BadBackward. Traceback of forward call that caused the error:")
    assert "Previous calculation was induced by GoodBackward." in led and "# the forward line" in led


def test_anomaly_without_forward_information_says_so() -> None:
    y = (leaf(0.0) * 0.0) / 0.0
    with autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="No forward pass information available"):
        with pytest.raises(RuntimeError, match="nan"):
            y.sum().backward()


# ---- hooks on saved tensors ----


def test_saved_tensors_pass_through_the_hooks() -> None:
    packed, unpacked = [], []

    def pack(x: mt.Tensor) -> Any:
        packed.append(x.tolist())
        return x.tolist()

    def unpack(values: Any) -> mt.Tensor:
        unpacked.append(values)
        return mt.tensor(values, dtype=f64)

    a, b = leaf(5.0), leaf(2.0)
    with saved_tensors_hooks(pack, unpack):
        y = a * b
        z = y.exp()
    assert packed == [[2.0], [5.0], z.tolist()] and not unpacked
    z.sum().backward()
    assert a.grad.item() == 2 * z.item() and b.grad.item() == 5 * z.item()
    assert len(unpacked) == 3


def test_saved_tensor_hooks_can_change_what_is_used() -> None:
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: t * 10, lambda t: t):
        y = x * x
    y.sum().backward()
    assert x.grad.item() == 60.0


def test_pack_hooks_see_the_tensors_themselves() -> None:
    w, seen = mt.ones(2, requires_grad=True), []
    with saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        y = w * w
        out = y.exp()
    assert [t is w for t in seen] == [True, True, False] and seen[2] is out
    (g,) = mt.autograd.grad(out.sum(), w, create_graph=True)
    assert mt.autograd.grad(g.sum(), w)[0].tolist() == pytest.approx([6 * math.e] * 2)
    gone = weakref.ref(out)
    del y, out, g, seen[:]
    assert gone() is None  # though the hook has handed the node its own output


def test_second_derivative_through_packed_values() -> None:
    x = leaf(0.5)
    with saved_tensors_hooks(lambda t: t.tolist(), lambda v: mt.tensor(v, dtype=f64)):
        y = (x * x * x).exp()
        (g,) = autograd.grad(y.sum(), x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x)
    want = (6 * 0.5 + 9 * 0.5**4) * y.item()
    assert abs(h.item() - want) < 1e-12


def test_saved_tensor_hooks_refuse_writes_and_other_things() -> None:
    x = leaf(1.0)
    with saved_tensors_hooks(lambda t: t.add_(1), lambda t: t), pytest.raises(RuntimeError, match="modifying its input in"):
        x * x
    with saved_tensors_hooks(lambda t: t, lambda t: 1):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()


def test_packed_values_are_freed_like_others() -> None:
    x = leaf(1.0)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    assert x.grad.item() == 4.0


def test_saved_tensors_may_be_overwritten_where_that_is_allowed() -> None:
    def overwrite(x: mt.Tensor) -> mt.Tensor:
        y = x.exp()  # its formula takes the output
        z = y * x  # this one the inputs
        y[0] = 7.0
        return z.sum() + y.sum()

    x = mt.tensor([0.5, 1.0], dtype=mt.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        overwrite(x).backward()
    with allow_mutation_on_saved_tensors():
        loss = overwrite(x)
    loss.backward()
    grown = x.detach().exp()
    assert mt.allclose(x.grad, grown * (1 + x.detach()) + grown * mt.tensor([0.0, 1.0], dtype=mt.float64))


def test_save_on_cpu() -> None:
    x = leaf(2.0)
    with save_on_cpu():
        y = x * x * x
    y.sum().backward()
    assert x.grad.item() == 12.0


# ---- checkpoint ----


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_runs_the_function_again_and_changes_nothing(reentrant: bool) -> None:
    calls = []

    def f(x: mt.Tensor, y: mt.Tensor, n: int) -> mt.Tensor:
        calls.append(mt.is_grad_enabled())
        return (x * y).exp() * n

    x, y = leaf(0.5, 0.25), leaf(1.0, 2.0)
    (f(x, y, 3) * 2).sum().backward()
    want = x.grad.tolist(), y.grad.tolist()
    x.grad = y.grad = None
    calls.clear()
    out = checkpoint(f, x, y, 3, use_reentrant=reentrant)
    assert len(calls) == 1
    (out * 2).sum().backward()
    assert len(calls) == 2 and calls[1] is True
    assert (x.grad.tolist(), y.grad.tolist()) == want


def test_checkpoint_reaches_parameters_and_works_with_grad() -> None:
    w = leaf(3.0)
    x = leaf(2.0)
    out = checkpoint(lambda x: (x * w * w).sin(), x, use_reentrant=False)
    gx, gw = autograd.grad(out.sum(), [x, w], create_graph=True)
    want = autograd.grad((x * w * w).sin().sum(), [x, w], create_graph=True)
    assert (gx.item(), gw.item()) == (want[0].item(), want[1].item())
    out = checkpoint(lambda x: x * w, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=True, torch.utils.checkpoint is incompatible with .grad()"):
        autograd.grad(out.sum(), x)


def test_checkpoint_keeps_random_numbers() -> None:
    seen = []

    def f(x: mt.Tensor) -> mt.Tensor:
        noise = mt.rand(2, dtype=f64)
        seen.append(noise.tolist())
        return x.exp() * noise

    for reentrant in (True, False):
        seen.clear()
        mt.manual_seed(0)
        out = checkpoint(f, leaf(1.0, 2.0), use_reentrant=reentrant)
        after = mt.rand(1).item()
        out.sum().backward()
        assert len(seen) == 2 and seen[0] == seen[1]
        mt.manual_seed(0)
        mt.rand(2, dtype=f64)
        assert mt.rand(1).item() == after


def test_checkpoint_notices_a_different_second_run() -> None:
    turns = []

    def f(x: mt.Tensor) -> mt.Tensor:
        turns.append(1)
        return x.exp() if len(turns) == 1 else x.view(1, -1).exp()

    with pytest.raises(CheckpointError, match="different metadata"):
        checkpoint(f, leaf(1.0, 2.0), use_reentrant=False).sum().backward()


def test_checkpoints_nest_and_follow_one_another() -> None:
    def inner(x: mt.Tensor) -> mt.Tensor:
        return x.sin() * x

    def outer(x: mt.Tensor) -> mt.Tensor:
        return checkpoint(inner, x.exp(), use_reentrant=False) * x

    x = leaf(0.5)
    (want,) = autograd.grad((x.exp().sin() * x.exp() * x).sum(), x)
    checkpoint(outer, x, use_reentrant=False).sum().backward(retain_graph=True)
    assert abs(x.grad.item() - want.item()) < 1e-12
    y = leaf(0.5)
    steps = [lambda t: t * 2, lambda t: t.exp(), lambda t: t * t]
    for reentrant in (True, False):
        y.grad = None
        checkpoint_sequential(steps, 2, y, use_reentrant=reentrant).sum().backward()
        assert abs(y.grad.item() - 4 * mt.tensor(2.0, dtype=f64).exp().item()) < 1e-12


def test_checkpoint_arguments() -> None:
    x = leaf(1.0)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda x: x * 2, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(lambda x: x * 2, x, use_reentrant=True, scale=2)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(lambda x: x * 2, mt.ones(1), use_reentrant=True)
    out = checkpoint(lambda x, scale: x * scale, x, use_reentrant=False, scale=2.0, preserve_rng_state=False)
    out.sum().backward()
    assert x.grad.item() == 2.0


# ---- the old name ----


def test_variable_is_a_tensor() -> None:
    x = mt.ones(2)
    v = Variable(x, requires_grad=True)
    assert isinstance(v, mt.Tensor) and isinstance(x, Variable) and v.requires_grad and not x.requires_grad
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="expected data to be a Tensor"):
        Variable([1.0])


def test_early_stop_is_as_it_was_at_the_call() -> None:
    seen = []

    def f(x: mt.Tensor) -> mt.Tensor:
        y = x.sin()
        seen.append("end")
        return y

    x = mt.tensor(1.0, requires_grad=True)
    with mt.utils.checkpoint.set_checkpoint_early_stop(False):
        out = checkpoint(f, x, use_reentrant=False)
    out.backward()
    assert seen == ["end", "end"]
    out = checkpoint(f, x, use_reentrant=False)
    with mt.utils.checkpoint.set_checkpoint_early_stop(False):
        out.backward()
    assert seen == ["end"] * 3


def test_a_gradient_may_be_taken_inside_a_checkpoint_that_does_not_stop_early() -> None:
    def f(x: mt.Tensor) -> mt.Tensor:
        return mt.autograd.grad(x.sin().exp(), x, create_graph=True)[0]

    x = mt.tensor(0.5, requires_grad=True)
    with mt.utils.checkpoint.set_checkpoint_early_stop(False):
        found = mt.autograd.grad(checkpoint(f, x, use_reentrant=False), x)
    assert found[0].item() == mt.autograd.grad(f(x), x)[0].item()


def test_several_gradients_at_once_leave_none_of_their_level_in_a_retained_grad():
    x = mt.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (rows,) = mt.autograd.grad(y * y, x, mt.eye(3), is_grads_batched=True, retain_graph=True)
    assert rows.tolist() == (mt.eye(3) * 8).tolist() and y.grad is None
    (y * y).sum().backward()
    assert y.grad.tolist() == [4.0, 4.0, 4.0]


def test_an_op_by_a_name_of_mortices_own_is_refused_before_its_family_is_loaded():
    code = """
import mortice
from mortice.op import op
def exp(k, x, /):
    return k.exp(x)
try:
    op()(exp)
except TypeError as error:
    print(error)
print(mortice.exp(mortice.zeros(1)).item(), mortice.neg(mortice.ones(1)).item())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    told = "op 'exp' is defined twice: in mortice.ops.unary and in __main__. Give one of them a `name`."
    assert done.stdout.splitlines() == [told, "1.0 -1.0"], done.stderr


def test_an_op_that_is_declared_wrongly_says_so():
    def double(k, x, /):
        """Double."""
        return k.add(x, x)

    made = op_module.op(name="declared_wrongly")(double)
    try:
        for wrong, text in (
            ({"y": lambda k, g: g}, "no input is called 'y'; inputs: x"),
            ({"x": lambda k, g, outt: g}, "names of inputs (x), attributes (none), outputs (out) or <input>_shape; got 'outt'"),
            ({"x": lambda k, g: k.add(g, g), "jvp": "linaer"}, "jvp is 'elementwise', 'linear', 'bilinear' or a function; got 'linaer'"),
        ):
            with pytest.raises(TypeError, match=re.escape(text)):
                made.vjp(**wrong)
        with pytest.raises(TypeError, match=f"'declared_wrongly' is defined twice: in {__name__} and in {__name__}. Give one"):
            op_module.op(name="declared_wrongly")(double)
        with pytest.raises(TypeError, match=re.escape("op 'kernelless': expected a body (k, operands..., /, *, attributes...); got (x).")):
            op_module.op(name="kernelless")(lambda x, /: x)
        with pytest.raises(TypeError, match=re.escape(f"op: expected arguments by name, as in `@op()`; got {double!r}.")):
            op_module.op(double)
    finally:
        del op_module._ops["declared_wrongly"]


def test_each_read_of_a_saved_value_unpacks_it():
    calls = []
    with mt.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: calls.append("unpack") or t):
        x = mt.ones(3, requires_grad=True)
        y = (x * x).exp()
    product = y.grad_fn.next_functions[0][0]
    for node, name in ((product, "_saved_self"), (product, "_saved_other"), (y.grad_fn, "_saved_result")):
        for _ in range(2):
            calls.clear()
            assert getattr(node, name).shape == (3,) and calls == ["unpack"]
    calls.clear()
    y.sum().backward()
    assert len(calls) == 3 and x.grad.tolist() == (2 * mt.ones(3).exp()).tolist()


def test_under_anomaly_detection_a_nodes_metadata_says_where_it_was_recorded() -> None:
    x = mt.ones(2, requires_grad=True)
    assert "traceback_" not in (x * 2).grad_fn.metadata
    with mt.autograd.set_detect_anomaly(True):
        y = x * 2
    assert "y = x * 2" in y.grad_fn.metadata["traceback_"][0]


def test_blocks_that_allow_mutation_do_not_nest_and_versions_are_those_of_tensors() -> None:
    with allow_mutation_on_saved_tensors(), pytest.raises(RuntimeError, match="contexts cannot be nested"):
        with allow_mutation_on_saved_tensors():
            pass
    with pytest.raises(RuntimeError, match="increment_version expect a Iterable.Tensor. as input, or one Tensor; got int"):
        autograd.graph.increment_version(3)


def test_a_node_without_derivative_has_an_edge_for_each_tensor() -> None:
    x = mt.ones(2, requires_grad=True)
    assert len(mt.histogram(x, 3)[0].grad_fn.next_functions) == 1 and mt.vdot(x, x).grad_fn.name() == "VdotBackward0"
