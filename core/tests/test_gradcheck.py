"""`gradcheck` and `gradgradcheck` in float64 (complex128 where an op is only complex) over every differentiable op."""

import pytest

import mortice as mt
from mortice.autograd.gradcheck import _direction

record = pytest.importorskip("mortice_conformance.record", reason="the kit, whose samples these are, is not installed")
from mortice.op import OPS  # noqa: E402
from mortice_conformance.checks.gradients import Problem, _cases  # noqa: E402
from mortice_conformance.subject import Subject  # noqa: E402


def _double(sample):
    accepted = {d.name: d for d in sample.dtypes(Subject("cpu_numpy").available)}
    return accepted.get("float64") or accepted.get("complex128")


ALL = list(record.load_samples().values())
SAMPLES = [s for s in ALL if s.differentiable and _cases(s) and _double(s)]


def _smallest(sample):
    """Return the case with the fewest elements, of those that have any."""
    def size(case):
        return sum(mt.Size(s).numel() for s in case.shapes if s is not None)

    cases = [c for c in _cases(sample) if all(s is None or 0 not in s for s in c.shapes)]
    return min(cases or _cases(sample), key=size)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.id)
def test_first_and_second_gradients(sample):
    subject = Subject("cpu_numpy")
    dtype = _double(sample)
    problem = Problem(subject, sample, _smallest(sample), dtype)
    tensors = problem.tensors(problem.points, True)
    leaves = [tensors[i] for i in problem.at]

    def fn(*moving):
        given = list(tensors)
        for i, t in zip(problem.at, moving):
            given[i] = t
        return tuple(problem.outputs(given))

    assert mt.autograd.gradcheck(fn, leaves)
    assert mt.autograd.gradgradcheck(fn, leaves)


def test_no_differentiable_op_is_left_out():
    # A record that says `grad=` why not is no gap; view_scatter, what views are written with, is no function of users.
    settled = {s.op for s in SAMPLES} | {s.op for s in ALL if isinstance(s.grad, str)} | {"view_scatter"}
    with_formulas = {name for name, op in OPS.items() if (op.joint or op.formulas) and op.no_grad_reason is None}
    assert sorted(with_formulas - settled) == []


def test_a_function_may_return_an_input_itself():
    x = mt.tensor([1.5, -2.0], dtype=mt.float64, requires_grad=True)
    for options in ({}, {"fast_mode": True}, {"check_forward_ad": True}):
        assert mt.autograd.gradcheck(lambda x: (x, x * x), x, **options)
    assert mt.autograd.gradgradcheck(lambda x: (x, x**3), x)


@pytest.mark.parametrize("fast_mode", [True, False])
def test_a_function_may_return_what_requires_grad(fast_mode):
    def asks(x):
        return tuple(y for y in (x * 2, x.detach(), x.sin()) if y.requires_grad)

    one = mt.ones(3, dtype=mt.float64, requires_grad=True)
    assert mt.autograd.gradcheck(asks, (one,), fast_mode=fast_mode)
    for made in (lambda x: (x.detach() * 3, x * 2), lambda x: (x * 2, x.new_tensor(x.max().item()))):
        assert mt.autograd.gradcheck(made, (one,), fast_mode=fast_mode, check_forward_ad=True, check_undefined_grad=True)
    with pytest.raises(mt.autograd.GradcheckError, match="expected to be zero"):
        mt.autograd.gradcheck(lambda x: x.detach() * 3, (one,), fast_mode=fast_mode)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("what", "change"), [("shape", lambda x: mt.cat([x, x])), ("dtype", lambda x: x.to(mt.float32))]
)
def test_gradcheck_refuses_outputs_of_another_kind_beside_the_point(what, change, fast):
    one = mt.ones(1, dtype=mt.float64, requires_grad=True)
    with pytest.raises(AssertionError, match=f"the same {what} when inputs are perturbed"):
        mt.autograd.gradcheck(lambda x: change(x) if x.item() >= 1 else x, (one,), fast_mode=fast)
    assert one.item() == 1


@pytest.mark.parametrize("error, passes", [(8e-6, True), (3e-5, False)])
def test_one_direction_allows_what_every_element_may_be_wrong_by(error, passes):
    # As in PyTorch: what passes element by element passes in a direction too, where the errors of many elements add up.
    x = mt.ones(6, dtype=mt.float64, requires_grad=True)
    against = _direction(x, 0).sign()

    class Nearly(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 0

        @staticmethod
        def backward(ctx, g):
            return g.abs().sum() * against * error

    for fast_mode in (False, True):
        assert mt.autograd.gradcheck(Nearly.apply, x, fast_mode=fast_mode, raise_exception=False) is passes
