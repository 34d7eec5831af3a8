"""Calls that PyTorch's documentation shows: keywords, overloads and results that were once missing here.

The expected values are facts; where torch is installed, the same calls are made with it and must give the same.
"""

from __future__ import annotations

from typing import Any

import pytest

import mortice

# A call, and what it gives: nested numbers, or a word of what is returned.
CALLS: list[tuple[str, Any]] = [
    # in-place functions name their tensor `input`
    ("T.abs_(input=-v)", [1.0, 2.0]),
    ("T.clamp_(input=x, min=2)", [[4.0, 2.0], [2.0, 3.0]]),
    ("T.addmv_(input=v, mat=x, vec=T.ones(2))", [6.0, 6.0]),
    ("T.resize_as_(input=v, the_template=T.zeros(1, 2))", [[1.0, 2.0]]),
    # orders of dims in memory
    ("T.zeros(2, 3, 4).permute(2, 0, 1).dim_order()", (1, 2, 0)),
    ("T.zeros(2, 3, 4, 5).to(memory_format=T.channels_last).dim_order(ambiguity_check=True)", (0, 2, 3, 1)),
    ("T.zeros(1, 3, 4, 5).dim_order(ambiguity_check=[T.contiguous_format, T.channels_last])", (0, 1, 2, 3)),
    ("T.zeros(3, 1, 4).expand(3, 2, 4).transpose(0, 2).dim_order()", (2, 1, 0)),
    # sizes and dims by keyword
    ("x.view(size=(4,))", [4.0, 1.0, 1.0, 3.0]),
    ("x.view(dtype=T.int32).shape", (2, 2)),
    ("x.reshape(shape=(4,))", [4.0, 1.0, 1.0, 3.0]),
    ("T.reshape(input=x, shape=(1, 4))", [[4.0, 1.0, 1.0, 3.0]]),
    ("T.permute(input=T.zeros(2, 3, 4), dims=(2, 0, 1)).shape", (4, 2, 3)),
    ("v.expand(size=(2, 2))", [[1.0, 2.0], [1.0, 2.0]]),
    ("x.sum_to_size(size=(1, 2))", [[5.0, 4.0]]),
    ("x.resize_(size=(1, 4))", [[4.0, 1.0, 1.0, 3.0]]),
    ("x.new_zeros(size=(2,))", [0.0, 0.0]),
    ("x.new_ones(size=(2,))", [1.0, 1.0]),
    ("x.new_empty(size=(2,)).shape", (2,)),
    ("T.view_copy(input=x, size=(4,))", [4.0, 1.0, 1.0, 3.0]),
    ("T.expand_copy(input=v, size=(2, 2))", [[1.0, 2.0], [1.0, 2.0]]),
    ("T.unfold_copy(input=v, dimension=0, size=1, step=1)", [[1.0], [2.0]]),
    ("T.permute_copy(input=x, dims=(1, 0))", [[4.0, 1.0], [1.0, 3.0]]),
    # cutting
    ("x.split(split_size=1)", ([[4.0, 1.0]], [[1.0, 3.0]])),
    ("x.split(split_size=[1, 1], dim=1)", ([[4.0], [1.0]], [[1.0], [3.0]])),
    ("T.split_copy(input=x, split_size=1)", ([[4.0, 1.0]], [[1.0, 3.0]])),
    ("T.arange(4.0).hsplit(1, 2)", ([0.0], [1.0], [2.0, 3.0])),
    ("x.vsplit(1)", ([[4.0, 1.0], [1.0, 3.0]],)),
    ("[p.shape for p in T.zeros(1, 1, 4).dsplit(1, 3)]", [(1, 1, 1), (1, 1, 2), (1, 1, 1)]),
    ("T.tensor_split(v, tensor_indices_or_sections=T.tensor(2, device='cpu'))", ([1.0], [2.0])),
    # powers and linear algebra under their real names
    ("T.pow(input=x, exponent=2)", [[16.0, 1.0], [1.0, 9.0]]),
    ("T.pow(2.0, exponent=v)", [2.0, 4.0]),
    ("x.pow_(exponent=2)", [[16.0, 1.0], [1.0, 9.0]]),
    ("T.det(input=x)", 11.0),
    ("T.linalg.det(A=x)", 11.0),
    ("T.matrix_power(input=x, n=2)", [[17.0, 7.0], [7.0, 10.0]]),
    ("T.matrix_exp(input=T.zeros(2, 2))", [[1.0, 0.0], [0.0, 1.0]]),
    ("type(T.slogdet(input=x)).__name__", "slogdet"),
    ("type(T.linalg.slogdet(x)).__name__", "linalg_slogdet"),
    ("T.cholesky_solve(input=v[:, None], input2=T.eye(2))", [[1.0], [2.0]]),
    ("T.cholesky_inverse(input=2 * T.eye(2))", [[0.25, 0.0], [0.0, 0.25]]),
    ("T.lu_solve(input=v[:, None], LU_data=T.eye(2), LU_pivots=T.tensor([1, 2], dtype=T.int32))", [[1.0], [2.0]]),
    ("T.triangular_solve(input=v[:, None], A=T.eye(2))[0]", [[1.0], [2.0]]),
    ("T.orgqr(input=T.eye(2), input2=T.zeros(2))", [[1.0, 0.0], [0.0, 1.0]]),
    ("T.ormqr(input=T.eye(2), input2=T.zeros(2), input3=x)", [[4.0, 1.0], [1.0, 3.0]]),
    ("T.linalg.norm(input=T.tensor([3.0, 4.0]))", 5.0),
    ("T.linalg.vector_norm(input=T.tensor([3.0, 4.0]))", 5.0),
    ("T.linalg.matrix_norm(input=T.eye(4))", 2.0),
    ("T.linalg.cond(input=T.eye(2))", 1.0),
    ("T.linalg.cholesky(input=4 * T.eye(2))", [[2.0, 0.0], [0.0, 2.0]]),
    ("T.linalg.eigvalsh(input=T.eye(2))", [1.0, 1.0]),
    ("T.linalg.pinv(input=2 * T.eye(2))", [[0.5, 0.0], [0.0, 0.5]]),
    ("T.linalg.matrix_rank(input=x)", 2),
    ("T.linalg.lstsq(input=T.eye(2), b=v[:, None]).solution", [[1.0], [2.0]]),
    ("T.linalg.solve_triangular(input=T.eye(2), B=v[:, None], upper=True)", [[1.0], [2.0]]),
    ("T.linalg.tensorsolve(input=T.eye(2), other=v)", [1.0, 2.0]),
    ("x.norm(2, 0, True, T.float64).dtype == T.float64", True),
    # counting, drawing, searching
    ("T.arange(end=3)", [0, 1, 2]),
    ("T.randint(high=1, size=(2,))", [0, 0]),
    ("T.randint_like(v, high=1)", [0.0, 0.0]),
    ("T.repeat_interleave(repeats=T.tensor([0, 2]))", [1, 1]),
    ("T.isin(element=1, test_elements=T.tensor([0, 1]))", True),
    ("T.isin(elements=T.tensor([0, 1]), test_element=1)", [False, True]),
    ("T.histogram(v).hist.shape", (100,)),
    ("T.histogramdd(x, [1, 1], None, None, False).hist", [[2.0]]),
    ("T.tril_indices(1, 1, pin_memory=False, requires_grad=False)", [[0], [0]]),
    ("T.triu_indices(1, 1, dtype=None)", [[0], [0]]),
    ("T.scalar_tensor(1, layout=T.strided, pin_memory=False)", 1.0),
    ("T.threshold(v, 1.0, 0.0, out=T.empty(2))", [0.0, 2.0]),
    ("T.result_type(tensor=v, other=T.tensor([1])) == T.float32", True),
    ("T.nn.functional.one_hot(input=T.tensor([1]))", [[0, 1]]),
    ("v.polygamma(n=0).shape", (2,)),
    ("v.copy_(other=T.zeros(2))", [0.0, 0.0]),
    ("v.type(T.float64, non_blocking=True)", [1.0, 2.0]),
    ("T.distributions.HalfNormal(1.0).icdf(prob=T.tensor(0.0))", 0.0),
    # what comes back
    ("type(T.func.vjp(T.sin, v)[1](v)).__name__", "tuple"),
    ("T.asarray((v.requires_grad_() * 2), requires_grad=True).grad_fn is None", False),
    ("T.asarray((v.requires_grad_() * 2), requires_grad=False).requires_grad", False),
    ("(lambda g: g.set_state(g.get_state()) is g)(T.Generator())", True),
    ("T.nn.utils.rnn.pack_sequence([v]).is_pinned()", False),
]
RAISES = [
    ("x[0.5]", IndexError),
    ("x[:, 'a']", TypeError),
    ("T.nn.Parameter(5)", (TypeError, AttributeError)),
    ("T.zeros(1, 3).dim_order(ambiguity_check=True)", RuntimeError),
    ("T.zeros(1, 3).dim_order(ambiguity_check='no')", TypeError),
    ("T._check(False)", RuntimeError),
    ("T._check(1)", TypeError),
    ("T._check(x)", TypeError),
    ("T._check_index(False, lambda: 'far')", IndexError),
    ("T._check_value(False)", ValueError),
    ("T._check_type(False)", TypeError),
    ("T._check_value(False, 'no function')", TypeError),
    ("T._check_not_implemented(False)", NotImplementedError),
    ("T._check_is_size(-1)", RuntimeError),
    ("T._check_is_size(3, max=2)", RuntimeError),
    ("T._check_tensor_all(x > 1)", RuntimeError),
    ("T._check_tensor_all(x)", TypeError),
    ("T._check_with(KeyError, False, None)", KeyError),
    ("T._check_tensor_all_with(ValueError, x > 1)", ValueError),
    ("T._check_tensor_all_with(ValueError, x)", TypeError),
]


def _names(library: Any) -> dict[str, Any]:
    return {"T": library, "x": library.tensor([[4.0, 1.0], [1.0, 3.0]]), "v": library.tensor([1.0, 2.0])}


def _plain(library: Any, value: Any) -> Any:
    if isinstance(value, library.Tensor):
        return value.detach().tolist()
    if isinstance(value, library.Size):
        return tuple(value)
    return type(value)(_plain(library, x) for x in value) if type(value) in (tuple, list) else value


def _close(have: Any, want: Any) -> bool:
    if isinstance(want, (tuple, list)):
        return type(have) is type(want) and len(have) == len(want) and all(map(_close, have, want))
    return bool(have == pytest.approx(want)) if isinstance(want, float) else bool(have == want)


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize(("call", "expected"), CALLS, ids=[c for c, _ in CALLS])
def test_call(call: str, expected: Any) -> None:
    assert _close(_plain(mortice, eval(call, _names(mortice))), expected)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_torch_gives_the_same() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    wrong = [c for c, expected in CALLS if not _close(_plain(torch, eval(c, _names(torch))), expected)]
    assert wrong == []


@pytest.mark.parametrize(("call", "error"), RAISES, ids=[c for c, _ in RAISES])
def test_error(call: str, error: Any) -> None:
    with pytest.raises(error):
        eval(call, _names(mortice))


def test_a_hook_after_accumulation_may_return_its_tensor() -> None:
    v = mortice.zeros(2, requires_grad=True)
    v.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-1))
    v.backward(mortice.tensor([1.0, 2.0]))
    assert v.tolist() == [-1.0, -2.0]


def test_gradients_flow_through_the_wrapped_power_and_determinant() -> None:
    x = mortice.tensor([[2.0, 0.0], [0.0, 3.0]], requires_grad=True)
    assert mortice.autograd.grad(mortice.det(input=x), x)[0].tolist() == [[3.0, 0.0], [0.0, 2.0]]
    assert mortice.autograd.grad(mortice.pow(input=x, exponent=2).sum(), x)[0].tolist() == [[4.0, 0.0], [0.0, 6.0]]


def test_checks_say_what_they_are_told_and_hold() -> None:
    for check in (mortice._check, mortice._check_index, mortice._check_value, mortice._check_type):
        check(True, lambda: "not made")
        with pytest.raises((RuntimeError, LookupError, ValueError, TypeError), match="^far$"):
            check(False, lambda: "far")
    mortice._check_tensor_all(mortice.ones(2) > 0)
    mortice._check_is_size(3, max=3)


def test_names_are_at_pytorch_s_addresses_too() -> None:
    from mortice.nn.modules.module import _addindent
    from mortice.optim.adamw import AdamW
    from mortice.optim.rmsprop import RMSprop
    from mortice.utils.data._utils.collate import default_collate
    from mortice.utils.hooks import RemovableHandle

    from mortice.functional import norm
    from mortice.types import Device, Number

    assert AdamW is mortice.optim.AdamW and RMSprop is mortice.optim.RMSprop and norm is mortice.norm
    assert default_collate is mortice.utils.data.default_collate and mortice.GradScaler is mortice.amp.GradScaler
    assert isinstance(mortice.nn.Linear(1, 1).register_forward_hook(print), RemovableHandle)
    assert isinstance(2, Number) and isinstance(mortice.device("cpu"), Device) and _addindent("a\nb", 2) == "a\n  b"
    assert "cpu_numpy" in mortice.__config__.show() and "get_num_threads() : " in mortice.__config__.parallel_info()


def test_the_report_of_an_environment_names_versions_and_backends(capsys: pytest.CaptureFixture[str]) -> None:
    from mortice.utils import collect_env

    collect_env.main()
    told = capsys.readouterr().out
    assert told.startswith(f"PyTorch version: {mortice.__version__}\n") and "\nPython version: 3." in told and "cpu_numpy" in told
