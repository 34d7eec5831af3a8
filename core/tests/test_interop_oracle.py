"""Making tensors of anything, and asking them for anything, beside PyTorch: one expression run in both."""

from __future__ import annotations

import array
import copy
import pickle
import warnings
from collections import deque

import numpy as np
import pytest

import mortice

torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing is compared with it")

pytestmark = pytest.mark.oracle
A = np.arange(6, dtype=np.float32).reshape(2, 3)
NAMES = {"A": A, "array": array, "copy": copy, "deque": deque, "np": np, "pickle": pickle}
# An expression a line; `m` is the library.
EXPRESSIONS = """
m.tensor(np.float32(1))
m.tensor([np.float32(1)])
m.tensor([np.float64(1), 2.0])
m.tensor([2.0, np.float16(1)])
m.tensor([np.int8(1)])
m.tensor([np.float64(2), np.float32(1)])
m.tensor([A, A])
m.tensor([A.astype("f8")])
m.tensor((A[0], [1, 2, 3]))
m.tensor([[A[0], A[1]], [A[1], A[0]]])
m.tensor([m.tensor(1.0), m.tensor(2.0)])
m.tensor([m.tensor([1.0])])
m.tensor([m.tensor([1.0, 2.0])])
m.tensor([[m.tensor(1), 2.5]])
m.tensor([m.tensor(1, dtype=m.float64), 1])
m.tensor(np.array([1, None], dtype=object))
m.tensor(np.array(3.0))
m.tensor(np.zeros((0, 3)))
m.tensor(np.arange(3, dtype=">f4"))
m.tensor(bytearray(b"ab"))
m.tensor(array.array("d", [1.5]))
m.tensor(deque([1, 2]))
m.tensor(range(3))
m.tensor({1, 2})
m.tensor({1: 2})
m.tensor("abc")
m.tensor(["a"])
m.tensor(None)
m.tensor([None])
m.tensor([[1], [2, 3]])
m.tensor([1, [2]])
m.tensor([[1], 2])
m.tensor([True, 2])
m.tensor([2**63])
m.tensor([-(2**63) - 1])
m.tensor([300], dtype=m.uint8)
m.tensor([1.5], dtype=m.int64)
m.tensor([1j], dtype=m.float32)
m.tensor([float("nan")], dtype=m.int64)
m.tensor([1.5], dtype=int)
m.as_tensor([1, 2])
m.as_tensor(np.float32(1))
m.as_tensor(m.ones(2), dtype=m.int32)
m.as_tensor(bytearray(b"ab"))
m.as_tensor(None)
m.as_tensor(A, dtype=m.float64)
m.asarray([1, 2.0])
m.asarray(m.ones(1), copy=False)
m.asarray([1], copy=False)
m.asarray(A, dtype=m.float64, copy=False)
m.asarray(m.ones(1), dtype=m.float64, copy=False)
m.asarray(b"\\1\\2", dtype=m.uint8)
m.asarray(bytearray(b"\\1\\2\\3\\4"), dtype=m.int32)
m.asarray(bytearray(8))
m.asarray(3)
m.asarray([1.0], requires_grad=True)
m.asarray(m.ones(1, requires_grad=True))
m.asarray(m.ones(1, requires_grad=True), requires_grad=False)
m.asarray(m.ones(1, requires_grad=True), copy=True)
m.asarray(None)
m.asarray("ab")
m.tensor([A, A + 1])
m.tensor([A.T, A.T], dtype=m.float64)
m.tensor((A[:, ::2], A[:, 1:]))
m.tensor([A > 1, A])
m.from_numpy(A.T)
m.from_numpy([1])
m.from_numpy(np.float32(1))
m.from_numpy(np.array([None]))
m.from_numpy(np.ones(2, np.uint16))
m.from_numpy(np.ones(2, np.longdouble))
m.from_numpy(np.array(["2020-01-01"], dtype="M8[D]"))
m.from_numpy(np.zeros(2, dtype=[("a", "f4")]))
m.from_numpy(np.zeros(3, dtype=[("a", "f4"), ("b", "u1")])["a"])
m.frombuffer(bytearray(range(8)), dtype=m.int16, offset=2, count=2)
m.frombuffer(bytearray(range(8)), dtype=m.int32, offset=8)
m.frombuffer(bytearray(range(8)), dtype=m.int32, offset=-1)
m.frombuffer(bytearray(range(8)), dtype=m.int32, count=0)
m.frombuffer(bytearray(range(8)), dtype=m.int32, count=3)
m.frombuffer(bytearray(range(7)), dtype=m.int32)
m.frombuffer(bytearray(range(8)), dtype=m.int32, count=-2)
m.frombuffer([1], dtype=m.uint8)
m.frombuffer(bytearray(), dtype=m.uint8)
m.frombuffer(bytearray(8), dtype=m.float32, requires_grad=True)
m.frombuffer(bytearray(8), dtype=m.int32, requires_grad=True)
m.frombuffer(bytearray(8))
m.frombuffer(bytearray(9), dtype=m.float32, offset=1)
m.frombuffer(array.array("f", [1, 2]), dtype=m.float32)
m.from_dlpack(A)
m.from_dlpack(A.T).stride()
m.from_dlpack(3)
m.from_dlpack(m.ones(1, requires_grad=True))
m.from_dlpack(np.array([True]))
tuple(map(int, m.ones(1).__dlpack_device__()))
type(m.ones(1).__dlpack__()).__name__
m.ones(1).__dlpack__(stream=1)
"versioned" in repr(m.ones(1).__dlpack__(max_version=(1, 0)))
m.ones(1, requires_grad=True).__dlpack__()
m.ones(1, requires_grad=True).numpy()
m.ones(1, requires_grad=True).numpy(force=True)
m.ones(1).numpy(True)
m.ones(2).__array__(np.float64)
np.array(m.ones(2), dtype=np.int32)
np.asarray(m.ones(2, requires_grad=True))
np.asarray([m.ones(2), m.zeros(2)])
np.add(m.ones(2), m.ones(2))
np.sin(m.zeros(2))
np.sin(m.ones(2, requires_grad=True))
np.concatenate([m.ones(2), m.zeros(1)])
np.where(m.ones(2) > 0, 1.0, 2.0)
np.add(m.ones(2), m.ones(2), out=m.zeros(2))
np.round(m.full((2,), 1.26), 1)
m.ones(2, 3) * A
np.float32(2) * m.ones(2)
m.ones(2) * np.float64(2)
m.ones(2, dtype=m.int64) * np.float64(2)
np.float32(2) - m.ones(2)
m.add(m.ones(2), np.float32(2))
m.ones(2).mul_(np.float32(2))
m.clamp(m.arange(4.0), np.float32(1), np.float64(2))
m.full((2,), np.float32(1.5))
m.full((np.int64(2),), np.float64(1.5))
m.zeros(np.int64(2), np.int32(3))
m.arange(np.int64(3))
m.arange(np.float32(3))
m.linspace(np.float32(0), np.float64(1), np.int64(3))
m.eye(np.int64(2))
m.arange(5)[np.int64(2)]
m.arange(5)[np.array([1, 3])]
m.arange(6).reshape(2, 3)[np.array([1]), :]
m.arange(3)[np.array([True, False, True])]
np.arange(5)[m.tensor([1, 2])]
[1, 2, 3][m.tensor(1)]
list(range(m.tensor(3)))
m.tensor(2.0).__index__()
format(m.tensor(1.5), ".3f")
format(m.tensor([1.5]), ".3f")
format(m.tensor(1.5), "")
f"{m.tensor(7):05d}"
f"{m.tensor([7, 8]):>10}"
"%.2f" % m.tensor(1.5)
int(m.tensor([[1.7]]))
int(m.tensor([1, 2]))
int(m.tensor([]))
int(m.tensor(float("nan")))
float(m.tensor(1 + 2j))
float(m.tensor(1 + 0j))
complex(m.tensor(1.5 + 1j))
bool(m.tensor([2.0, 1]))
bool(m.tensor([]))
round(m.tensor(2.6))
sum(m.tensor([1.0, 2.0]))
sorted(m.tensor([2.0, 1.0]))
len(m.tensor(2.0))
list(m.tensor(2.0))
m.tensor(2.0) in m.tensor([2.0, 1.0])
np.float32(1) in m.tensor([2.0, 1.0])
"a" in m.tensor([2.0, 1.0])
reversed(m.arange(4).reshape(2, 2))
reversed(m.tensor(1))
m.arange(3).__delitem__(0)
m.ones(2) == None
m.ones(2) == "a"
m.ones(2) + None
copy.deepcopy(m.ones(1, requires_grad=True) * 2)
copy.deepcopy(m.ones(1, requires_grad=True))
pickle.loads(pickle.dumps(m.ones(1, requires_grad=True)))
m.Tensor()
m.Tensor(2, 3).shape
m.Tensor([2, 3])
m.Tensor(5.0)
m.Tensor(m.Size([2, 3])).shape
m.Tensor(A.astype("f8"))
m.Tensor(m.ones(2, dtype=m.int64))
m.Tensor(np.int64(2)).shape
m.Tensor("a")
m.FloatTensor([1, 2])
m.FloatTensor(m.ones(2, dtype=m.float64))
m.FloatTensor(m.Size([2])).shape
m.LongTensor([1.5])
m.BoolTensor([0, 1])
isinstance(m.ones(1), m.FloatTensor)
isinstance(m.ones(1), m.LongTensor)
m.ones(1).type(m.LongTensor)
m.ones(1).type(m.int32)
m.ones(1).type("foo")
m.ones(1).type_as(m.ones(1, dtype=m.int8))
m.ones(1).new()
m.ones(1, dtype=m.int64).new([1, 2])
m.ones(1, dtype=m.int64).new(m.Size([2])).shape
m.ones(1).new(m.ones(2, dtype=m.float64))
m.ones(1).new_tensor(m.ones(2, dtype=m.float64))
m.ones(1).new_tensor(np.array([1, 2]))
m.ones(1).new_full((2,), 3)
m.ones(1, dtype=m.int64).new_full((2,), 3.7)
m.ones(1).to()
m.ones(1).to("cpu", m.int32, True, True)
m.ones(1).to(m.int32, True, True)
m.ones(1).to(m.ones(1, dtype=m.int8), False, True)
m.ones(1).to(None, m.int8)
m.ones(1).to(m.int8, "cpu")
m.ones(1).to(int)
m.ones(1).to(foo=1)
m.ones(1).to(np.float32)
(lambda t: [u is t for u in (t.to("cpu"), t.to(m.float32), t.to(m.float32, copy=True), t.cpu(), t.contiguous())])(m.ones(1))
m.ones(1, 2, 3, 4).to(memory_format=m.channels_last).stride()
m.ones(2, 3, 4, 5).contiguous(memory_format=m.channels_last).stride()
m.ones(2, 3, 4).contiguous(memory_format=m.channels_last)
m.ones(2, 1, 4, 5).is_contiguous(memory_format=m.channels_last)
m.ones(2, 3, 4).is_contiguous(memory_format=m.channels_last)
m.ones(2, 3).t().clone(memory_format=m.contiguous_format).stride()
m.ones(2, 3).t().clone().stride()
m.zeros_like(m.ones(2, 3, 4, 5), memory_format=m.channels_last).stride()
m.ones(1).float(m.channels_last)
m.ones(0).data_ptr()
m.arange(6.0)[2:4].storage().tolist()
m.arange(6.0)[2:4].detach().storage_offset()
m.arange(12.0).reshape(3, 4).t()[1:].detach().storage_offset()
m.arange(2, dtype=m.int16).untyped_storage().tolist()
m.arange(6.0)[2:4].untyped_storage().nbytes()
m.ones(1).expand(5).untyped_storage().nbytes()
m.ones(3).set_(m.arange(6.0).untyped_storage(), 1, (2, 2), (2, 1))
m.ones(3).set_(m.arange(6))
m.ones(3).set_(m.arange(6.0).untyped_storage(), -1, (2,), (1,))
m.ones(3).set_().shape
(lambda t: [t.is_set_to(u) for u in (t, t.view(2, 3), t[:], t.detach(), t.clone())])(m.arange(6.0))
m.ones(1).is_shared()
m.ones(1).share_memory_().is_shared()
m.ones(1).is_pinned()
m.ones(1).pin_memory()
m.ones(1).__cuda_array_interface__
hasattr(m.ones(1), "__array_interface__")
memoryview(np.asarray(m.ones(2))).tolist()
m.ones(2).view(m.int32)
m.ones(2, 3).view(m.float64)
m.ones(2, 3).t().view(m.int16)
m.tensor(1.0).view(m.int16)
m.zeros(0, 3).view(m.uint8).shape
m.ones(2, 4)[:, :2].view(m.float64)
m.ones(2, 4).view(m.int16).stride()
(m.inf, m.pi, m.e, m.newaxis)
""".strip().splitlines()


def shown(value):
    if isinstance(value, (torch.Tensor, mortice.Tensor)):
        return (str(value.dtype).rpartition(".")[2], tuple(value.shape), value.detach().tolist(), value.requires_grad)
    if isinstance(value, np.ndarray):
        return ("numpy", str(value.dtype), value.tolist())
    return [shown(v) for v in value] if isinstance(value, (list, tuple)) else value


def outcome(expression, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(shown(eval(expression, NAMES | {"m": library})))
        except Exception as error:
            return error


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_ends_as_in_pytorch(expression):
    ours, theirs = outcome(expression, mortice), outcome(expression, torch)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), (ours, theirs)
    else:
        assert ours == theirs


def test_pytorch_refuses_tensors_that_are_not_its_own() -> None:
    x, y = torch.ones(2), mortice.ones(2)
    for call in (lambda: torch.add(x, y), lambda: torch.nn.functional.linear(y, x), lambda: torch.cat([x, y])):
        with pytest.raises(TypeError, match="__torch_function__"):
            call()
    assert (x + y).tolist() == (y + x).tolist() == [2.0, 2.0]  # it lets the other operand answer
    assert torch.equal(torch.from_dlpack(y), x) and torch.equal(torch.as_tensor(y), x)


def test_its_tensors_are_arrays_also_where_functions_ask() -> None:
    import mortice.overrides

    x = torch.arange(3.0)
    assert mortice.as_tensor(x).data_ptr() == mortice.from_dlpack(x).data_ptr() == x.data_ptr()
    assert not mortice.overrides.has_torch_function((x,)) and (mortice.ones(3) + x).tolist() == [1.0, 2.0, 3.0]
