"""Writes at positions go into the memory that is there: of a large tensor of which little changes, nothing is copied."""

import operator

import pytest

import mortice as mt
from mortice.backends import Backend

WRITES = {
    "rows": lambda x, i, v: x.__setitem__(i, v),
    "pairs": lambda x, i, v: x.__setitem__((i, mt.tensor([0, 1, 1])), v[:, 0]),
    "columns": lambda x, i, v: x.__setitem__((slice(None), i), v[:, :1].expand(3, 6).t()),
    "middle": lambda x, i, v: x.__setitem__((slice(1, None), i), 7.0),
    "mask": lambda x, i, v: x.__setitem__(x > 20, -1.0),
    "rows by mask": lambda x, i, v: x.__setitem__(x[:, 0] > 20, 3.0),
    "index_put_": lambda x, i, v: x.index_put_((i,), v, accumulate=True),
    "index_add_": lambda x, i, v: x.index_add_(0, i, v, alpha=2),
    "index_copy_": lambda x, i, v: x.index_copy_(0, i, v),
    "index_fill_": lambda x, i, v: x.index_fill_(1, i, 5.0),
    "put_": lambda x, i, v: x.put_(i - 6, v[:, 0], accumulate=True),
}


def operands(dtype="float32"):
    x = mt.arange(36.0).reshape(6, 6).to(getattr(mt, dtype))
    return x, mt.tensor([4, 1, 4]), mt.arange(100.0, 118.0).reshape(3, 6).to(x.dtype)


def apart(write, x, i, v):
    """Return what the write makes of x where it is recorded, and so goes through new memory."""
    y = x.clone().requires_grad_().clone()
    write(y, i, v)
    assert y.requires_grad
    return y.detach()


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("layout", ["whole", "transposed", "slice", "flipped", "expanded rows"])
def test_the_same_as_where_it_is_recorded(name, dtype, layout):
    x, i, v = operands(dtype)
    if "mask" in name and dtype == "complex64":
        pytest.skip("complex numbers have no order")
    base = {"slice": mt.cat([x, x], 1), "expanded rows": mt.stack([x, x])}.get(layout, x).clone()
    shown = {
        "transposed": lambda: base.t(), "slice": lambda: base[:, 3:9], "flipped": lambda: base.flip(0),
        "expanded rows": lambda: base[1],
    }.get(layout, lambda: base)()  # fmt: skip
    expected = apart(WRITES[name], shown, i, v)
    before = base.clone()
    WRITES[name](shown, i, v)
    assert mt.equal(shown, expected)
    back = {"transposed": lambda: base.t(), "slice": lambda: base[:, 3:9], "expanded rows": lambda: base[1]}
    if layout in back:  # the memory that it shows was written, and nothing beside it
        assert mt.equal(back[layout](), expected)
        rest = {"slice": lambda b: b[:, :3], "expanded rows": lambda b: b[0]}.get(layout)
        assert rest is None or mt.equal(rest(base), rest(before))


@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_copied(name):
    x, i, v = operands()
    if type(x._device.backend).put_rows is Backend.put_rows:
        pytest.skip(f"{mt.default_backend()} writes by way of new memory")
    alias, at, version = x.view(-1), x.data_ptr(), x._version
    WRITES[name](x, i, v)
    assert x.data_ptr() == at and x._version > version and mt.equal(alias.view(6, 6), x)


@pytest.mark.parametrize("name", WRITES)
def test_what_backward_needs_is_not_changed_unseen(name):
    x, i, v = operands()
    w = mt.ones(6, 6, requires_grad=True)
    loss = (w * x).sum()
    WRITES[name](x, i, v)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_operands_that_are_the_memory_itself_are_refused():
    positions, (x, _, _) = mt.tensor([2, 0, 1, 3]), operands()
    for write in (
        lambda: operator.setitem(positions, positions, mt.tensor([10, 11, 12, 13])),
        lambda: operator.setitem(x, mt.tensor([0, 1, 2]), x[1:4]),
        lambda: x.index_add_(0, mt.tensor([0, 1]), x[:2]),
    ):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single"):
            write()


def test_the_last_of_equal_positions_stays_and_sums_are_whole():
    x = mt.zeros(3)
    x[mt.tensor([1, 1, 0, 1])] = mt.tensor([1.0, 2.0, 3.0, 4.0])
    assert x.tolist() == [3, 4, 0]
    x = mt.zeros(2)
    x.index_add_(0, mt.zeros(4096, dtype=mt.int64), mt.ones(4096))
    assert x.tolist() == [4096, 0]


def test_memory_of_others_is_written():
    np = pytest.importorskip("numpy")
    a = np.zeros((4, 2), "float32")
    x = mt.from_numpy(a)
    x[mt.tensor([1, 3])] = 5.0
    if not x._device.backend.copies_host:
        assert a[:, 0].tolist() == [0, 5, 0, 5]
    assert x[:, 0].tolist() == [0, 5, 0, 5]


@pytest.mark.needs("cpu")
def test_under_autocast_the_tensor_itself_is_written():
    x, v = mt.zeros(2, dtype=mt.bfloat16), mt.ones(1)
    with mt.autocast("cpu"):
        assert x.index_copy_(0, mt.tensor([1]), v) is x
    assert x.tolist() == [0, 1] and x.dtype is mt.bfloat16


def test_wrong_arguments_write_nothing():
    x, i, v = operands()
    before = x.clone()
    for write, error in [
        (lambda: x.__setitem__(mt.tensor([0, 6]), 1.0), IndexError), (lambda: x.__setitem__(i, v[:2]), RuntimeError),
        (lambda: x.index_add_(0, mt.tensor([7]), v[:1]), (IndexError, RuntimeError)),
        (lambda: x.index_copy_(0, i, v.double()), RuntimeError), (lambda: x.index_fill_(2, i, 1.0), IndexError),
        (lambda: x[:1].expand(6, 6).index_copy_(0, i, v), RuntimeError),
        (lambda: x.clone().requires_grad_().index_add_(0, i, v), RuntimeError),
    ]:  # fmt: skip
        with pytest.raises(error):
            write()
    assert mt.equal(x, before)
