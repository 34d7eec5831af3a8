"""Warnings: where in a program they are told, how often, and that PyTorch tells them too."""

import warnings

import pytest

import mortice as mt
import mortice.nn.functional as F

TOLD = [
    "F.mse_loss(torch.ones(2), torch.ones(2, 1))",
    "F.softmax(torch.ones(2, 2))",
    "F.mse_loss(torch.ones(2), torch.ones(2), size_average=False)",
    "torch.ones(2, 3, 4).T",
    "torch.ones(()).mT",
    "torch.ones(()).H",
    "torch.cholesky(torch.eye(2))",
    "torch.qr(torch.eye(2))",
    "torch.lu(torch.eye(2))",
    "torch.triangular_solve(torch.ones(2, 1), torch.eye(2))",
    "torch.chain_matmul(torch.eye(2), torch.eye(2))",
    "torch.cross(torch.ones(3, 3), torch.ones(3, 3))",
    "torch.meshgrid(torch.ones(2), torch.ones(2))",
    "torch.tensor([1 + 2j]).float()",
    "torch.zeros(1).copy_(torch.tensor([1 + 2j]))",
    "torch.where(torch.ones(2, dtype=torch.uint8), torch.ones(2), torch.ones(2))",
    "torch.ones(2).new_tensor(torch.ones(2))",
    "torch.add(torch.ones(2), 2, torch.ones(2))",
    "torch.addmm(2, torch.eye(2), 2, torch.eye(2), torch.eye(2))",
    "torch.ones(2).storage()",
    "torch.amp.autocast('cuda')",
    "torch.amp.autocast('cpu', dtype=torch.float32)",
    "torch.autograd.Variable(torch.ones(2), volatile=True)",
    "torch.distributions.Categorical(torch.ones(3)).sample_n(2)",
    "torch.nn.NLLLoss2d()",
    "torch.nn.MultiheadAttention(2, 1)(*[torch.ones(2, 1, 2)] * 3, torch.ones(1, 2) > 2, attn_mask=torch.zeros(2, 2))",
    "torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1), 1).step()",
    "with torch.backends.cuda.sdp_kernel(enable_flash=False): pass",
]


def _heard(code, names):
    """Run code as if a program; return the warnings that it leads to."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        exec(compile(code, "a program", "exec"), names)
    return heard


@pytest.mark.oracle
@pytest.mark.parametrize("code", TOLD)
def test_a_warning_is_of_pytorchs_class_begins_with_its_words_and_names_the_programs_line(code):
    torch = pytest.importorskip("torch")
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    torch.storage._reset_warn_typed_storage_removal()
    try:
        expected = _heard(code, {"torch": torch, "F": torch.nn.functional})
    finally:
        torch.set_warn_always(always)
    heard = _heard(code, {"torch": mt, "F": F})
    assert len(heard) == 1 and heard[0].category is expected[0].category
    size = slice(0, 40)
    assert str(heard[0].message).replace("mortice", "torch")[size] == str(expected[0].message)[size]
    assert heard[0].filename == "a program"


def test_two_lines_of_a_program_are_warned_each_and_one_line_once():
    code = "for _ in range(3):\n    F.mse_loss(a, b)\nF.mse_loss(a, b)"
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        exec(compile(code, "a program", "exec"), {"F": F, "a": mt.ones(2), "b": mt.ones(2, 1), "__name__": "program"})
    assert [w.lineno for w in heard] == [2, 3]


def test_what_is_told_once_is_told_every_time_on_request():
    code = "x.T\nx.T"
    assert len(_heard(code, {"x": mt.ones(3)})) == 1
    mt.set_warn_always(True)
    try:
        assert mt.is_warn_always_enabled() and len(_heard(code, {"x": mt.ones(3)})) == 2
    finally:
        mt.set_warn_always(False)
