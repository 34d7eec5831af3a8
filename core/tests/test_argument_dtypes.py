"""Which dtypes labels, indices and targets may have: those that PyTorch takes on the CPU, no others."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import pytest

import mortice as mt

pytestmark = pytest.mark.filterwarnings("ignore")
DTYPES = ("uint8", "int8", "int16", "int32", "int64", "bool", "float32", "float64")


def _x(t: Any, *shape: int) -> Any:
    return t.arange(12.0 if not shape else 24.0).reshape(shape or (3, 4)) / 24


def _loss(name: str, target: Any, shape: tuple[int, ...], t: Any, d: Any, **more: Any) -> Any:
    return getattr(t.nn.functional, name)(_x(t, *shape), t.tensor(target).to(d), **more)


def _method(name: str, index: Any, t: Any, d: Any, *rest: Any) -> Any:
    return getattr(_x(t), name)(0, t.tensor(index).to(d), *[r if isinstance(r, float) else t.ones(r) for r in rest])


_IMAGE = [[[0, 1], [1, 1]]] * 2
_ROWS = [[0, 1, 1, 0]] * 3
ANY = " ".join(DTYPES)
# what is called: (the dtypes that it takes, the call)
CALLS: dict[str, tuple[str, Any]] = {
    "nll_loss": ("uint8 int64", partial(_loss, "nll_loss", [0, 1, 1], ())),
    "nll_loss of an image": ("int64", partial(_loss, "nll_loss", _IMAGE, (2, 3, 2, 2))),
    "cross_entropy": ("uint8 int64", partial(_loss, "cross_entropy", [0, 1, 1], ())),
    "cross_entropy of an image": ("int64", partial(_loss, "cross_entropy", _IMAGE, (2, 3, 2, 2))),
    "multi_margin_loss": ("int64", partial(_loss, "multi_margin_loss", [0, 1, 1], ())),
    "multilabel_margin_loss": ("int64", partial(_loss, "multilabel_margin_loss", _ROWS, ())),
    "kl_div": ("float32 float64", partial(_loss, "kl_div", _ROWS, ())),
    "binary_cross_entropy_with_logits": (
        "float32 float64", partial(_loss, "binary_cross_entropy_with_logits", _ROWS, ())
    ),
    "soft_margin_loss": (ANY, partial(_loss, "soft_margin_loss", _ROWS, ())),
    "huber_loss": (ANY, partial(_loss, "huber_loss", _ROWS, ())),
    "embedding": ("int32 int64", lambda t, d: t.nn.functional.embedding(t.tensor([0, 1]).to(d), _x(t))),
    "embedding, shortened": (
        "int32 int64", lambda t, d: t.nn.functional.embedding(t.tensor([0, 1]).to(d), _x(t), max_norm=0.1)
    ),
    "gather": ("int32 int64", partial(_method, "gather", [[0, 1]])),
    "scatter": ("int32 int64", lambda t, d: _method("scatter", [[0, 1]], t, d, (1, 2))),
    "index_select": ("int32 int64", partial(_method, "index_select", [0, 1])),
    "index_add": ("int32 int64", lambda t, d: _method("index_add", [0, 1], t, d, (2, 4))),
    "index_copy": ("int64", lambda t, d: _method("index_copy", [0, 1], t, d, (2, 4))),
    "index_fill": ("int64", lambda t, d: _method("index_fill", [0, 1], t, d, 1.0)),
    "take_along_dim": ("int64", lambda t, d: t.take_along_dim(_x(t), t.tensor([[0]]).to(d), 0)),
    "take_along_dim, flat": ("int32 int64", lambda t, d: t.take_along_dim(_x(t), t.tensor([0, 1]).to(d))),
    "getitem": ("uint8 int32 int64 bool", lambda t, d: _x(t)[t.tensor([0, 1, 1]).to(d)]),
    "getitem of one": ("uint8 int8 int16 int32 int64 bool", lambda t, d: _x(t)[t.tensor(1).to(d)]),
    "index_put": ("int32 int64", lambda t, d: _x(t).index_put((t.tensor([0, 1]).to(d),), t.ones(2, 4))),
}  # fmt: skip


def _tried(t: ModuleType, dtype: str, call: Any) -> Any:
    try:
        return call(t, getattr(t, dtype))
    except (RuntimeError, IndexError) as error:
        return error


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_a_dtype_is_taken_or_refused(name: str, dtype: str) -> None:
    taken, call = CALLS[name]
    assert isinstance(_tried(mt, dtype, call), mt.Tensor) == (dtype in taken.split())


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_a_dtype_gives_what_pytorch_gives(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    call = CALLS[name][1]
    expected, made = _tried(torch, dtype, call), _tried(mt, dtype, call)
    if isinstance(expected, Exception):
        assert isinstance(made, IndexError if isinstance(expected, IndexError) else RuntimeError)
    else:
        assert str(made.dtype).split(".")[-1] == str(expected.dtype).split(".")[-1]
        assert torch.allclose(torch.tensor(made.tolist()), expected.float(), rtol=1e-5)


@pytest.mark.parametrize(
    "text, call",
    [
        ("expected target dtype to be Long or Byte, but got int32. Use target.long()", CALLS["nll_loss"]),
        ("multi_margin_loss: expected scalar type Long but found int32. Use target.long()", CALLS["multi_margin_loss"]),
        ("must be long, int, byte or bool tensors; got mortice.int16. Use .long()", CALLS["getitem"]),
        ("rms_norm: not implemented for 'Int'", ("", lambda t, dtype: t.nn.functional.rms_norm(t.ones(3, dtype=dtype), (3,)))),
        ("kl_div: Integral inputs not supported; got mortice.float32 and mortice.int32", CALLS["kl_div"]),
        ("result type Float can't be cast to the desired output type int32. Use .float().", CALLS["binary_cross_entropy_with_logits"]),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(text: str, call: tuple[str, Any]) -> None:
    assert text in str(_tried(mt, "int16" if "int16" in text else "int32", call[1]))


REFUSED = {
    "int64": "F.rms_norm(x, (3,)); F.huber_loss(x, x); F.binary_cross_entropy_with_logits(x, x); torch.linalg.lu(x)",
    "complex64": "F.binary_cross_entropy(x, x); x.index_reduce(0, i, x, 'amax'); x.scatter_reduce(0, i[None], x, 'amin')",
    "bool": "torch.masked.amax(x, 0, mask=x); torch.tril_indices(2, 2, dtype=x.dtype)",
}


@pytest.mark.parametrize(("dtype", "text"), [(d, t.strip()) for d, texts in REFUSED.items() for t in texts.split(";")])
def test_what_has_no_kernel_for_a_dtype_is_not_implemented(dtype: str, text: str) -> None:
    names = {"torch": mt, "F": mt.nn.functional, "x": mt.ones(3, 3).to(getattr(mt, dtype)), "i": mt.tensor([0, 1, 2])}
    with pytest.raises(NotImplementedError):
        eval(text, names)


def test_an_array_of_any_integers_is_an_index() -> None:
    assert mt.ones(3, 4)[mt.tensor([0, 2], dtype=mt.int16).cpu().numpy()].shape == (2, 4)


@pytest.mark.parametrize("kind", [float, complex])
def test_pythons_own_types_are_dtypes_everywhere(kind: Any) -> None:
    wide = mt.tensor(1, dtype=kind).dtype
    x = mt.ones(2, 2, dtype=mt.complex64 if kind is complex else mt.float32)
    assert mt.linspace(0, 1, 3, dtype=kind).dtype is mt.logspace(0, 1, 3, dtype=kind).dtype is wide
    assert mt.linalg.vector_norm(x, dtype=kind).dtype is mt.linalg.matrix_norm(x, dtype=kind).dtype is mt.float64
    assert mt.promote_types(kind, mt.float32) is mt.promote_types(mt.float32, kind) is wide and mt.can_cast(mt.int8, kind)
    if kind is float:
        F = mt.nn.functional
        made = [x.softmax(0, dtype=float), F.log_softmax(x, 0, dtype=float), F.softmin(x, 0, dtype=float)]
        assert [m.dtype for m in made] == [wide] * 3
    with pytest.raises(TypeError, match="to: expected dtype to be a mortice dtype; got <class 'str'>"):
        mt.softmax(x, 0, dtype=str)
