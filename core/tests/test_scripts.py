"""What scripts written for PyTorch do with tensors, end to end: each test is a habit that a script once tripped over."""

import copy

import numpy as np
import pytest

import mortice as mt
from mortice import nn


@pytest.mark.needs("cpu")
def test_named_results_print_a_field_a_line():
    values = mt.tensor([3.0, 1.0])
    assert repr(values.max(0)) == "mortice.return_types.max(\nvalues=tensor(3.),\nindices=tensor(0))"
    assert repr(mt.linalg.slogdet(mt.eye(2))) == (
        "mortice.return_types.linalg_slogdet(\nsign=tensor(1.),\nlogabsdet=tensor(0.))"
    )


@pytest.mark.parametrize("call, name", [
    (lambda a: mt.svd(a), "svd"), (lambda a: mt.linalg.svd(a), "linalg_svd"), (lambda a: mt.linalg.qr(a), "linalg_qr"),
    (lambda a: mt.linalg.eigh(a), "linalg_eigh"), (lambda a: mt.linalg.lstsq(a, a), "linalg_lstsq"),
])  # fmt: skip
def test_named_results_of_linalg_have_torch_names(call, name):
    assert type(call(mt.eye(2))).__name__ == name


@pytest.mark.needs("cpu")
def test_numpy_functions_of_a_tensor_give_a_tensor():
    found = np.sin(mt.zeros(2))
    assert isinstance(found, mt.Tensor) and found.tolist() == [0.0, 0.0]
    assert isinstance(np.maximum(mt.tensor([-1.0, 2.0]), 0), mt.Tensor)


@pytest.mark.needs("addresses")
def test_data_ptr_is_shared_by_views_of_the_start():
    x = mt.zeros(4)
    assert x.data_ptr() == x.view(2, 2).data_ptr()
    assert x[1:].data_ptr() == x.data_ptr() + 4


def test_type_takes_the_names_that_type_gives():
    x = mt.ones(2)
    assert x.type("torch.LongTensor").dtype is mt.int64
    assert x.type(mt.ones(1, dtype=mt.float64).type()).dtype is mt.float64
    with pytest.raises(ValueError, match="invalid type: 'torch.FooTensor'"):
        x.type("torch.FooTensor")


def test_copy_shares_memory_and_deepcopy_does_not():
    x = mt.arange(6.0).view(2, 3)
    copy.deepcopy(x)[0, 0] = 7
    assert x[0, 0] == 0
    copy.copy(x)[0, 0] = 9
    copy.copy(x.t())[0, 1] = 8
    assert x[0, 0] == 9 and x[1, 0] == 8


def test_copy_of_a_parameter_is_a_parameter_without_its_grad():
    p = nn.Parameter(mt.ones(2))
    p.sum().backward()
    made = copy.copy(p)
    assert isinstance(made, nn.Parameter) and made.requires_grad and made.is_leaf and made.grad is None
    with mt.no_grad():
        made.add_(1)
    assert p.tolist() == [2.0, 2.0]


def test_joins_and_softmax_take_axis():
    x = mt.arange(6.0).view(2, 3)
    assert mt.cat([x, x], axis=1).shape == mt.concat([x, x], axis=1).shape == (2, 6)
    assert mt.stack([x, x], axis=2).shape == (2, 3, 2)
    assert mt.equal(mt.softmax(x, axis=0), x.softmax(0))
    assert mt.equal(mt.log_softmax(x, axis=1), x.log_softmax(1))


def test_to_converts_before_the_move_what_the_device_lacks():
    x = mt.ones(2, dtype=mt.float64, requires_grad=True)
    like = mt.ones(1, device="strict_f32")  # it has no float64
    for moved in (x.to("strict_f32", mt.float32), x.to(like)):
        assert moved.device.type == "strict_f32" and moved.dtype is mt.float32
    moved.sum().backward()
    assert x.grad.dtype is mt.float64 and x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="has no float64"):
        x.to("strict_f32")
