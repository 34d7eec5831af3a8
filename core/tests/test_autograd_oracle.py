"""The same random programs in PyTorch and in mortice: values, flags, gradients, and whether a step is refused."""

from __future__ import annotations

from typing import Any

import pytest

import mortice as mt

torch = pytest.importorskip("torch")
from autograd_fuzz import play  # noqa: E402

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("block", range(10))
def test_random_programs_agree(block: int) -> None:
    torch.set_num_threads(1)
    wrong = [found for seed in range(block * 100, block * 100 + 60) if (found := play(seed, torch, mt, steps=30))]
    wrong += [found for seed in range(10_000 + block * 10, 10_000 + block * 10 + 6) if (found := play(seed, torch, mt, 80))]
    wrong += [found for seed in range(block * 100, block * 100 + 20) if (found := play(seed, torch, mt, 30, complex_=True))]
    assert not wrong, wrong[0]


@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
def test_random_programs_agree_where_memory_cannot_be_written(complex_: bool) -> None:
    pytest.importorskip("mortice_conformance")
    with mt.use_backend("strict"):
        wrong = [found for seed in range(50) if (found := play(seed, torch, mt, 30, complex_))]
    assert not wrong, wrong[0]


def _values(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [_values(v) for v in x]
    return tuple(x.shape), [round(v, 9) for v in x.detach().reshape(-1).tolist()], x.requires_grad


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_functional_agrees(name: str, create_graph: bool) -> None:
    def scalar(x: Any, y: Any) -> Any:
        return (x.exp() * y * y).sum() + x[0] * y[1]

    def several(x: Any, y: Any) -> Any:
        return x * y.sin(), x.sum() * y

    found = []
    for m in (torch, mt):
        x = m.tensor([0.3, 0.7], dtype=m.float64, requires_grad=True)
        y = m.tensor([1.1, -0.4], dtype=m.float64)
        f = several if name in ("jacobian", "vjp", "jvp") else scalar
        extra = {"jacobian": (), "hessian": ()}.get(name, ((y.detach(), x.detach()),))
        found.append(_values(getattr(m.autograd.functional, name)(f, (x, y), *extra, create_graph=create_graph)))
    assert found[0] == found[1]


PROGRAMS = {
    "grad": lambda m, f, x, y: f.grad(lambda x: (x**3).sum())(x),
    "grad of grad": lambda m, f, x, y: f.grad(lambda x: f.grad(lambda x: (x**3).sum())(x).sum())(x),
    "argnums": lambda m, f, x, y: f.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, y),
    "value": lambda m, f, x, y: f.grad_and_value(lambda x: (x * y).sum())(x),
    "jacrev": lambda m, f, x, y: f.jacrev(lambda x: (x.sin(), x.sum()))(x),
    "jacfwd": lambda m, f, x, y: f.jacfwd(lambda x: x.sin() * x.sum())(x),
    "hessian": lambda m, f, x, y: f.hessian(lambda x: (x**3).prod())(x),
    "vjp": lambda m, f, x, y: f.vjp(lambda x, y: x * y, x, y)[1](y),
    "jvp": lambda m, f, x, y: f.jvp(f.grad(lambda x: x.sin().sum()), (x,), (y,)),
    "vmap": lambda m, f, x, y: f.vmap(f.grad(lambda x, y: x.sin() * y), in_dims=(0, 0))(x, y),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:vmap", "ignore::DeprecationWarning")
def test_func_agrees(name: str) -> None:
    import torch.func


    found = []
    for m, f in ((torch, torch.func), (mt, mt.func)):
        x = m.tensor([0.3, 0.7], dtype=m.float64)
        y = m.tensor([1.1, -0.4], dtype=m.float64)
        found.append(_values(PROGRAMS[name](m, f, x, y)))
    assert found[0] == found[1]


def test_error_classes_agree() -> None:
    def errors(m: Any) -> list[Any]:
        def one() -> Any:
            return m.ones(3, requires_grad=True)

        cases = [
            lambda: (one() * 2).backward(),
            lambda: m.ones(3).sum().backward(),
            lambda: one().add_(1),
            lambda: one()[:1].add_(1),
            lambda: (one() * 2).requires_grad_(False),
            lambda: m.ones(3).long().requires_grad_(),
            lambda: setattr(one(), "requires_grad", 1),
            lambda: setattr(one(), "grad", m.ones(2)),
            lambda: setattr(one(), "grad", 1),
            lambda: m.ones(3).register_hook(print),
            lambda: m.ones(3).retain_grad(),
            lambda: (one() * 2).backward(m.ones(4)),
            lambda: (one() * 2).sum().backward(inputs=[]),
            lambda: m.autograd.grad((one() * 2).sum(), one()),
            lambda: m.autograd.grad((one() * 2).sum(), m.ones(1)),
            lambda: (one() * 1)[:1].detach_(),
            lambda: (one() * 1).split(1)[0].mul_(2),
            lambda: (one() * 2).numpy(),
            lambda: m.autograd.gradcheck(lambda x: x, (m.ones(1),)),
            lambda: m.add(one(), one(), out=m.ones(3)),
        ]
        found = []
        for case in cases:
            try:
                case()
                found.append(None)
            except Exception as error:  # noqa: BLE001 - the class is what is compared
                found.append(error)
        return found

    for i, (theirs, ours) in enumerate(zip(errors(torch), errors(mt))):
        assert (theirs is None) == (ours is None), (i, theirs, ours)
        assert theirs is None or isinstance(ours, type(theirs)), (i, theirs, ours)
