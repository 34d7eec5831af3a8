"""Indexing, gather and scatter: values, out-of-range errors, in-place forms, gradients."""

import numpy as np
import pytest
from fast_asked import asked

import mortice as mt
from mortice.autograd import gradcheck, gradgradcheck
from mortice.shape import broadcast


def _grid(rows=3, cols=4, dtype=mt.float64):
    return mt.arange(rows * cols, dtype=dtype).reshape(rows, cols)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((slice(None, None, -1), 0), [8, 4, 0]),
        (([0, 2], [1, -1]), [1, 11]),
        ((slice(1, None), [True, False, False, True]), [[4, 7], [8, 11]]),
        (([[0], [1]], [0, 3]), [[0, 3], [4, 7]]),
        ((None, 1, ..., slice(0, 2)), [[4, 5]]),
        ((True, 2, 3), [11]),
    ],
)
def test_reading_by_index(key, expected):
    assert _grid(dtype=mt.int64)[key].tolist() == expected


def test_masks_and_tensors_as_keys():
    x = _grid(dtype=mt.int64)
    assert x[x > 9].tolist() == [10, 11]
    assert x[mt.tensor(1), mt.tensor([0, 2])].tolist() == [4, 6]
    with pytest.raises(IndexError, match="shape of the mask"):
        x[mt.tensor([True, False])]
    with pytest.raises(IndexError, match="out of bounds"):
        x[3]


def test_uint8_without_dims_is_a_mask():
    yes, no = (mt.tensor(n, dtype=mt.uint8) for n in (1, 0))
    x = _grid(2, 2, dtype=mt.int64)
    assert x[yes].tolist() == [[[0, 1], [2, 3]]] and x[no].shape == (0, 2, 2)
    x[no] = 9
    x[1, yes] = 7
    assert x.tolist() == [[0, 1], [7, 7]]
    x[yes] = mt.tensor(5.0)
    assert x.tolist() == [[5, 5], [5, 5]]


KEYS = [
    lambda a: (a([2, 0]), a([1, 3])),
    lambda a: (slice(None), a([3, 1, 3])),
    lambda a: (a([0, 2]), slice(None)),
    lambda a: (a([[0], [2]]), a([1, 2, 3])),
    lambda a: (a([-1, 1]), a([-4, 0])),
    lambda a: (a([True, False, True]), slice(None)),
    lambda a: (slice(None), a([False, True, True, False])),
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("turned", [False, True])
def test_tensors_of_positions_read_and_write_as_numpy_does(key, turned):
    ours, theirs = key(mt.tensor), key(np.array)
    make = lambda: _grid(4, 3).T if turned else _grid()
    x, expected = make(), np.array(make().tolist())
    assert x[ours].tolist() == expected[theirs].tolist()
    leaf = make().requires_grad_()
    leaf[ours].sum().backward()
    counts = np.zeros_like(expected)
    np.add.at(counts, theirs, 1)
    assert leaf.grad.tolist() == counts.tolist()
    for value in (7.5, -expected[theirs]):
        x, seen = make(), make()
        expected = np.array(x.tolist())
        expected[theirs], version = value, x._version
        x[ours] = value if isinstance(value, float) else mt.tensor(value)
        assert x.tolist() == expected.tolist() and x._version > version
        with mt.inference_mode():
            seen[ours] = value if isinstance(value, float) else mt.tensor(value)
        assert seen.tolist() == expected.tolist()


def test_a_write_at_positions_reads_its_own_memory_first():
    x = _grid()
    x[:, mt.tensor([0, 1, 2])] = x[:, 1:]
    assert x.tolist() == [[1, 2, 3, 3], [5, 6, 7, 7], [9, 10, 11, 11]]
    with pytest.raises(RuntimeError, match="shape mismatch"):
        x[mt.tensor([0, 1]), mt.tensor([0, 1])] = mt.ones(3, dtype=x.dtype)
    with pytest.raises(IndexError, match="out of bounds"):
        x[mt.tensor([0, 9]), mt.tensor([0, 1])] = 1.0


def test_a_mask_that_broadcasts_fills_in_place():
    x = _grid()
    x.T.masked_fill_(mt.tensor([True, False, True]), -1)
    x.masked_fill_(mt.tensor([[False], [True], [False]]), 9.5)
    assert x.tolist() == [[-1] * 4, [9.5] * 4, [-1] * 4]
    with pytest.raises(RuntimeError, match="broadcast"):
        mt.ones(3).masked_fill_(mt.ones(2, 3) > 0, 1.0)


def test_writing_by_index_differentiates():
    leaf, value = _grid().requires_grad_(), mt.tensor([7.0, 8.0], dtype=mt.float64, requires_grad=True)
    y = leaf * 1
    y[[0, 2], 1] = value
    (y * y).sum().backward()
    assert value.grad.tolist() == [14, 16]
    assert leaf.grad[:, 1].tolist() == [0, 10, 0]


def test_scatter_reduces():
    x, index = mt.zeros(3), mt.tensor([0, 0, 2])
    src = mt.tensor([2.0, 3.0, 4.0])
    assert x.scatter(0, index, src, reduce="add").tolist() == [5, 0, 4]
    assert (x + 1).scatter_reduce(0, index, src, "prod").tolist() == [6, 1, 4]
    assert x.scatter_reduce(0, index, src, "amax", include_self=False).tolist() == [3, 0, 4]
    assert x.scatter_reduce(0, index, src, "mean", include_self=False).tolist() == [2.5, 0, 4]
    assert mt.tensor([5, 6]).index_reduce(0, mt.tensor([1]), mt.tensor([2]), "amin").tolist() == [5, 2]


def test_complex_numbers_are_multiplied_where_they_land():
    x, index = mt.tensor([2 + 1j, 5j]), mt.tensor([0, 0])
    src = mt.tensor([1j, 3 + 0j])
    assert x.scatter(0, index, src, reduce="multiply").tolist() == [(2 + 1j) * 3j, 5j]
    assert x.scatter_(0, mt.tensor([1]), 2.0, reduce="multiply").tolist() == [2 + 1j, 10j]
    assert x.scatter_reduce(0, index, src, "prod", include_self=False).tolist() == [3j, 10j]
    wide = mt.tensor([2 + 1j, 5j, 0j], dtype=mt.complex128, requires_grad=True)
    parts = mt.tensor([1j, 3 + 1j, 2 - 1j], dtype=mt.complex128, requires_grad=True)
    assert gradcheck(lambda x, s: x.scatter_reduce(0, mt.tensor([0, 2, 0]), s, "prod"), (wide, parts))


@pytest.mark.parametrize("values", [[0, 2.5, -1], [0, 0, 3], [0, 0, 0]])
def test_products_of_several_zeros_have_second_gradients(values):
    index, parts = mt.zeros(3, dtype=mt.int64), mt.tensor(values, dtype=mt.float64, requires_grad=True)
    whole = mt.tensor([1.5], dtype=mt.float64, requires_grad=True)
    for reduce in (mt.scatter_reduce, mt.index_reduce):
        assert gradgradcheck(lambda x, s, reduce=reduce: reduce(x, 0, index, s, "prod"), (whole, parts))
    pair = mt.tensor([2.0, 3], dtype=mt.float64, requires_grad=True)
    assert gradgradcheck(lambda x, s: x.scatter_reduce(0, mt.tensor([1, 0, 1]), s, "prod"), (pair, parts))


def test_in_place_forms():
    x = mt.zeros(2, 2)
    x.index_add_(0, mt.tensor([1, 1]), mt.ones(2, 2), alpha=2)
    x.masked_fill_(x == 0, -1)
    x.scatter_(1, mt.tensor([[0]]), 7)
    assert x.tolist() == [[7, -1], [4, 4]]
    assert mt.ones(3).index_fill_(0, mt.tensor([-1]), 5).tolist() == [1, 1, 5]
    counts = mt.tensor([3, 4])
    assert counts.index_add_(0, mt.tensor([1]), mt.tensor([10]), alpha=2.9).tolist() == [3, 24]
    assert mt.ones(2, 2).put_(mt.tensor([3, 0]), mt.tensor([8.0, 9.0])).tolist() == [[9, 1], [1, 8]]


def test_a_number_is_put_in_places_past_the_function_where_it_surely_fits():
    x, index = mt.zeros(2, 3, dtype=mt.int64), mt.tensor([[2], [0]])
    assert x.scatter_(1, index, 7).tolist() == [[0, 0, 7], [7, 0, 0]]
    assert "scatter" not in asked(lambda: x.scatter_(1, index, 8)) and x.tolist() == [[0, 0, 8], [8, 0, 0]]
    assert x.scatter_(1, index, -(2**63)).tolist() == [[0, 0, -(2**63)], [-(2**63), 0, 0]]
    assert x.scatter_(1, index, 2.9).tolist() == [[0, 0, 2], [2, 0, 0]]
    with pytest.raises(RuntimeError, match="cannot be converted to type"):
        x.scatter_(1, index, 2**63)
    assert x.tolist() == [[0, 0, 2], [2, 0, 0]] and x.scatter_(1, index, True).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_one_hot_lies_row_by_row_and_goes_through_vmap():
    one_hot = mt.nn.functional.one_hot
    made = one_hot(mt.tensor([[0, 1], [2, 3], [1, 0]]).T)
    assert made.tolist() == [[[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]], [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]]]
    assert made.is_contiguous() and made.dtype is mt.int64
    assert mt.vmap(lambda v: one_hot(v, 3))(mt.tensor([[0, 1], [2, 2]])).tolist() == [[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 1]]]


@pytest.mark.needs("strides")
def test_positions_lie_in_memory_as_pytorch_s_do():
    x = mt.tensor([[0, 3], [4, 0]])
    assert x.nonzero().stride() == (1, 2) and mt.nonzero_static(x, size=1).stride() == (2, 1)


def test_positions():
    x = mt.tensor([[0, 3], [4, 0]])
    assert x.nonzero().tolist() == [[0, 1], [1, 0]]
    assert [p.tolist() for p in mt.nonzero(x, as_tuple=True)] == [[0, 1], [1, 0]]
    assert x.take(mt.tensor([-1, 1])).tolist() == [0, 3]
    assert mt.take_along_dim(x, x.argsort(1), 1).tolist() == [[0, 3], [0, 4]]
    assert x.masked_select(x > 3).tolist() == [4]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, s: x.gather(1, mt.tensor([[0, 0], [2, 1]])) ** 2,
        lambda x, s: x.scatter(1, mt.tensor([[0, 1], [2, 1]]), s) ** 2,
        lambda x, s: x.scatter_add(0, mt.tensor([[0, 0], [2, 0]]), s) ** 2,
        lambda x, s: x.scatter_reduce(0, mt.tensor([[0, 0], [0, 1]]), s, "prod"),
        lambda x, s: x.scatter_reduce(0, mt.tensor([[0, 0], [0, 1]]), s, "amax") ** 2,
        lambda x, s: x.index_add(1, mt.tensor([3, 0]), mt.cat([s, s[:1]]), alpha=3) ** 2,
        lambda x, s: x.masked_scatter(mt.eye(3, 4) > 0, mt.cat([s, s])) ** 2,
        lambda x, s: mt.select_scatter(x, x[1] * 2, 0, 2) * s.sum(),
        lambda x, s: x[[0, 0, 1], 1:] ** 2 * s.sum(),
    ],
)
def test_gradients(fn):
    x = (_grid() / 5 + 0.3).requires_grad_()
    s = mt.tensor([[1.5, -2.5], [3.5, 0.5]], dtype=mt.float64, requires_grad=True)
    assert gradcheck(fn, (x, s)) and gradgradcheck(fn, (x, s))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.gather(0, mt.tensor([[3]])), RuntimeError),
        (lambda x: x.gather(0, mt.tensor([0])), RuntimeError),
        (lambda x: x.index_select(0, mt.tensor([-1])), IndexError),
        (lambda x: x.scatter(0, mt.tensor([[0]]), mt.ones(1, 1)), RuntimeError),
        (lambda x: x.take(mt.tensor([12])), IndexError),
        (lambda x: x.masked_fill(x, 1), RuntimeError),
        (lambda x: x.masked_fill(x > 0, mt.tensor(1j)), RuntimeError),
        (lambda x: x.int().masked_fill_(x > 0, mt.tensor(float("inf"))), RuntimeError),
        (lambda x: x.to(mt.uint8).masked_fill(x > 0, mt.tensor(300)), RuntimeError),
        (lambda x: x.index_fill(0, mt.tensor([0]), mt.tensor(1j)), RuntimeError),
        (lambda x: x.long().index_fill_(0, mt.tensor([0]), mt.tensor(1e30)), RuntimeError),
        (lambda x: x.scatter_reduce(0, mt.tensor([[0]]), x[:1, :1], "median"), RuntimeError),
        (lambda x: x[0, 0, 0], IndexError),
        (lambda x: x.masked_select((x > 0).to(mt.uint8)), RuntimeError),
        (lambda x: x.index_add(0, mt.tensor([0]), mt.ones(1, 1, 1, dtype=mt.float64)), RuntimeError),
        (lambda x: x.index_copy(0, mt.tensor([0]), mt.ones(1, 1, 1, dtype=mt.float64)), IndexError),
        (lambda x: x[0, 0].index_copy(0, mt.tensor([0]), mt.ones(1, 1, 1, dtype=mt.float64)), RuntimeError),
        (lambda x: x.index_reduce(0, mt.tensor([0, 1]), x[:1], "prod"), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call(_grid())


def test_masks_of_bytes_are_told_to_be_bools():
    x, mask = _grid(), mt.tensor([1, 0, 1], dtype=mt.uint8)
    with pytest.warns(UserWarning, match="please use a dtype torch.bool"):
        assert x[mask].tolist() == x[[0, 2]].tolist()
    with pytest.warns(UserWarning, match="please use a dtype torch.bool"):
        x[mask] = mt.zeros(2, 4, dtype=x.dtype)
    assert x.sum(1).tolist() == [0, 22, 0]
    for write in (lambda: x.__setitem__(mask, 0), lambda: x.index_put_((mask,), mt.tensor(2))):
        with pytest.raises(RuntimeError, match="only supports boolean masks"):
            write()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(("key", "values"), [([0], [1.5]), ([0], 1.5), ([True, False, True], [1.5, 2.5])])
def test_values_of_another_dtype_are_not_put(key, values, accumulate):
    x = mt.zeros(3, dtype=mt.int32)
    with pytest.raises(RuntimeError, match="index_put_: Index put requires the source and destination dtypes match"):
        x.index_put_((mt.tensor(key),), mt.tensor(values), accumulate)
    assert x.tolist() == [0, 0, 0]


def test_one_number_of_any_dtype_is_put_where_a_mask_holds():
    x, mask = mt.zeros(3, dtype=mt.int32), mt.tensor([True, False, True])
    x.index_put_((mask,), mt.tensor(1.5))
    assert x.tolist() == [1, 0, 1] and all(type(v) is int for v in x.tolist())
    with pytest.raises(RuntimeError, match="dtypes match"):
        x.index_put_((mask,), mt.tensor(2j))
    with pytest.raises(RuntimeError, match="dtypes match"):
        x.index_put_((mask,), mt.tensor(1.5), True)


def test_writing_at_no_tensors_of_indices_is_refused():
    for x in (mt.zeros(()), mt.zeros(3)):
        for accumulate in (True, False):
            with pytest.raises(RuntimeError, match="index_put: expected at least one Tensor of indices"):
                x.index_put([], mt.ones(1), accumulate)


def test_positions_in_a_shape_refuse_what_is_no_integer():
    with pytest.raises(TypeError, match="to be integer dtype"):
        mt.unravel_index(mt.tensor([0.5]), (2, 2))
    for shape in (2.5, (2, 2.5), mt.tensor([2, 2])):
        with pytest.raises(TypeError, match="expected 'shape' "):
            mt.unravel_index(mt.tensor([1]), shape)
    with pytest.raises(RuntimeError, match="as_tuple is True"):
        mt.nonzero(mt.ones(2), as_tuple=True, out=mt.empty(0, dtype=mt.int64))
    for fn in (mt.nonzero, lambda x, out: mt.nonzero_static(x, size=2, out=out)):
        with pytest.raises(RuntimeError, match="scalar type Long but got scalar type Float"):
            fn(mt.ones(2), out=mt.empty(2, 1))


LISTS = {
    "lists": ([[0, 1], [1, 2]], ([0, 1], [1, 2])),
    "slices": ([slice(None), 0], (slice(None), 0)),
    "None": ([None, 0], (None, 0)),
    "Ellipsis": ([..., 0], (..., 0)),
    "one list": ([[0, 1]], ([0, 1],)),
    "tensors": ([mt.tensor([0, 1]), mt.tensor([1, 2])], (mt.tensor([0, 1]), mt.tensor([1, 2]))),
    "a tensor": ([0, mt.tensor(1)], (0, 1)),
    "a mask": ([[True, False], [1]], ([True, False], [1])),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_indices_is_read_as_a_tuple_and_warns(name):
    given, meant = LISTS[name]
    x = mt.arange(24).reshape(2, 3, 4)
    with pytest.warns(UserWarning, match=r"x\[tuple\(list\)\]"):
        assert mt.equal(x[given], x[meant])
    y, z = x.clone(), x.clone()
    with pytest.warns(UserWarning, match=r"x\[tuple\(list\)\]"):
        y[given] = -1
    z[meant] = -1
    assert mt.equal(y, z)


@pytest.mark.filterwarnings("error")
def test_a_list_of_numbers_is_one_index_and_a_size_is_a_tuple():
    x = mt.arange(24).reshape(2, 3, 4)
    assert x[[0, 1]].shape == (2, 3, 4) and x[[True, False]].shape == (1, 3, 4) and x[[]].shape == (0, 3, 4)
    assert x[mt.Size([1, 2])].tolist() == [20, 21, 22, 23]


KEYS = {
    "rows": lambda i, j, m: i,
    "columns": lambda i, j, m: (slice(None), j),
    "pairs": lambda i, j, m: (i, j),
    "pairs of negative positions": lambda i, j, m: (-1 - i, j - 4),
    "pairs that broadcast": lambda i, j, m: (i[:, None], j),
    "the last dims": lambda i, j, m: (..., i, j % 2),
    "between full slices": lambda i, j, m: (slice(None), i, slice(None)),
    "before an ellipsis": lambda i, j, m: (i, ...),
    "lists": lambda i, j, m: ([0, 2], [1, 3]),
    "mask": lambda i, j, m: m,
    "mask of later dims": lambda i, j, m: (slice(None), m.t()),
    "nothing": lambda i, j, m: (slice(None), i[:0]),
    "int32": lambda i, j, m: (i.int(), j),
    "a step beside": lambda i, j, m: (slice(1, None), i),
    "apart": lambda i, j, m: (i, slice(None), j % 2),
}


def _keyed(name):
    i, j = mt.tensor([2, 0, 2]), mt.tensor([1, 3, 0])
    m = mt.arange(12).reshape(3, 4) % 5 == 1
    shape = {"the last dims": (2, 4, 3, 2), "mask of later dims": (2, 4, 3)}.get(name, (3, 4, 2))
    if name == "between full slices":
        shape = (2, 3, 4)
    return mt.arange(float(np.prod(shape))).reshape(shape), KEYS[name](i, j, m)


def _as_numpy(key):
    parts = key if isinstance(key, tuple) else (key,)
    lists = [k.tolist() if isinstance(k, mt.Tensor) else k for k in parts]
    return tuple([np.asarray(k, None if k else int) if isinstance(k, list) else k for k in lists])


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_tensors_read_write_and_differentiate_as_numpy_has_it(name):
    x, key = _keyed(name)
    whole, at = np.asarray(x.tolist()), _as_numpy(key)
    leaf = x.clone().requires_grad_()
    shown = leaf[key]
    assert shown.tolist() == whole[at].tolist() and shown.is_contiguous()
    shown.sum().backward()
    counts = np.zeros_like(whole)
    np.add.at(counts, at, 1)
    assert leaf.grad.tolist() == counts.tolist()
    for value in (-1, 2.5, mt.tensor(7.0)):
        changed, wanted = x.clone(), whole.copy()
        changed[key] = value
        wanted[at] = float(value)
        assert changed.tolist() == wanted.tolist() and changed._version == 1
    recorded = x.clone().requires_grad_()
    changed = recorded * 1
    changed[key] = 0.0
    changed.sum().backward()
    assert recorded.grad.tolist() == (counts == 0).astype(float).tolist()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ((mt.tensor([0, 3]), mt.tensor([0, 0])), "index 3 is out of bounds for dimension 0 with size 3"),
        ((mt.tensor([0, 1]), mt.tensor([0, -5])), "index -5 is out of bounds for dimension 1 with size 4"),
        ((slice(None), mt.tensor([[4]])), "index 4 is out of bounds for dimension 1 with size 4"),
        ((mt.tensor([0, 1]), mt.tensor([0, 1, 2])), "could not be broadcast together"),
        ((slice(None), slice(None), mt.tensor([0])), "too many indices"),
    ],
)
def test_keys_of_tensors_that_do_not_fit(key, text):
    for use in (lambda x: x[key], lambda x: x.__setitem__(key, 1.0)):
        with pytest.raises(IndexError, match=text):
            use(_grid())


def test_a_position_saved_for_backward_must_not_change():
    x, i = _grid().requires_grad_(), mt.tensor([0, 2])
    y = x[i]
    i[0] = 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


PLAIN_WRITES = {
    "fill_": lambda x: x.fill_(2.0),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(mt.full_like(x, 3.0)),
    "add_": lambda x: x.add_(1),
    "clamp_": lambda x: x.clamp_(0, 1),
    "masked_fill_": lambda x: x.masked_fill_(x > 1, 0.5),
    "uniform_": lambda x: x.uniform_(),
    "normal_": lambda x: x.normal_(2.0, 3.0),
    "a number": lambda x: x.__setitem__((..., 0), 4.0),
    "a tensor": lambda x: x.__setitem__((slice(None), None), mt.ones(4, dtype=x.dtype)),
    "a mask": lambda x: x.__setitem__(x > 1, 0.5),
    "positions": lambda x: x.__setitem__(mt.tensor([1]), 0.5),
}


@pytest.mark.parametrize("name", PLAIN_WRITES)
def test_a_plain_write_is_seen_counted_and_refused_where_it_must_be(name):
    write = PLAIN_WRITES[name]
    base = _grid()
    view = base[1:]
    write(view)
    assert base._version == view._version == 1 and base[1:].tolist() == view.tolist()
    turned = mt.arange(12.0).reshape(4, 3).clone().t()
    write(turned)
    assert turned.stride() == (1, 3)
    leaf = _grid().requires_grad_()
    one = name in ("fill_", "zero_", "masked_fill_", "a mask", "positions")  # one value for all is no matter
    expanded = () if one else (leaf.detach()[:1].expand(3, 4),)
    for refused in (leaf, leaf[1:], *expanded):
        with pytest.raises(RuntimeError):
            write(refused)
    assert leaf.tolist() == _grid().tolist()
    with mt.no_grad():
        write(leaf)
        write(leaf[1:])
    assert leaf._version == 2 and leaf.requires_grad and leaf.is_leaf
    with mt.inference_mode():
        made = _grid()
    with pytest.raises(RuntimeError, match="inference tensor"):
        write(made)
    kept = _grid()
    product = kept * _grid().requires_grad_()
    write(kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_a_scatter_of_no_elements_still_leads_back_to_its_source(name):
    x = mt.zeros(2, 5)
    src = mt.ones(2, 3, requires_grad=True)
    out = getattr(x, name)(1, mt.zeros(2, 0, dtype=mt.int64), src)
    assert out.requires_grad
    out.sum().backward()
    assert src.grad.tolist() == [[0.0] * 3] * 2
    assert out.tolist() == x.tolist()


@pytest.mark.parametrize("name", ["scatter_", "scatter_add_"])
def test_a_tensor_without_dims_takes_values_at_its_one_place(name):
    x = mt.tensor(1.0)
    for index in (mt.tensor([0, 0]), mt.tensor(0)):
        getattr(x, name)(0, index, mt.full(index.shape, 2.0))
    assert x.shape == () and x._version == 2 and x.item() == (2 if name == "scatter_" else 7)


def test_scatter_reduce_takes_the_short_names_too():
    x, index, src = mt.zeros(3), mt.tensor([0, 1, 1]), mt.tensor([1.0, 2.0, 3.0])
    assert x.scatter_reduce(0, index, src, "min", include_self=False).tolist() == [1.0, 2.0, 0.0]
    assert x.scatter_reduce_(0, index, src, reduce="max").tolist() == [1.0, 3.0, 0.0]
    with pytest.raises(RuntimeError, match="reduce argument must be either sum, prod, mean, amax or amin, got add"):
        x.scatter_reduce(0, index, src, "add")


def test_what_is_expanded_is_filled_as_a_whole():
    x = mt.zeros(2, 1, 3)
    x.expand(2, 4, 3).fill_(5.0)
    assert x.tolist() == [[[5.0] * 3]] * 2 and x._version == 1
    x.expand(2, 4, 3)[0].zero_()
    assert x.tolist() == [[[0.0] * 3], [[5.0] * 3]]
    y = mt.ones(2, 1, requires_grad=True)
    z = y * 3
    z.expand(2, 3)[0].fill_(7.0)
    z.sum().backward()
    assert z.tolist() == [[7.0], [3.0]] and y.grad.tolist() == [[0.0], [3.0]]


def test_values_of_another_dtype_at_positions_are_refused_and_a_masks_one_value_is_cast():
    x = mt.zeros(3, dtype=mt.int64)
    for key in (mt.tensor([0, 2]), [1, 2], (mt.tensor([0, 2]),), mt.tensor([True, True, False])):
        with pytest.raises(mt.errors.DTypeError, match="setitem: Index put requires the source and destination dtypes match"):
            x[key] = mt.tensor([1.5, 2.5])
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape .0. cannot be broadcast"):  # comes first
        x[x > -1] = mt.tensor([])
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[mt.tensor([0])] = mt.tensor(1.5)
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[mt.tensor([True, False, False])] = mt.tensor(1 + 1j)
    x[mt.tensor([True, False, False])] = mt.tensor(1.5)
    x[1:2] = mt.tensor([2.5])
    x[[2]] = 3
    assert x.tolist() == [1, 2, 3]


def test_copy_takes_a_number():
    x = mt.zeros(2, 2)
    assert x.copy_(mt.inf) is x and x.isinf().all() and x[0].copy_(2).tolist() == [2.0, 2.0] and x._version == 2
    with pytest.raises(TypeError, match="copy_: expected a Tensor or a number; got str"):
        x.copy_("a")


@pytest.mark.parametrize("dtype", [mt.float32, mt.int64, mt.bfloat16])
@pytest.mark.parametrize("place", [lambda part: (part, ..., 0), lambda part: (..., part, slice(None))], ids=["columns", "rows"])
def test_a_value_that_overlaps_its_place_is_read_whole_first(dtype, place):
    x = mt.arange(24).reshape(4, 3, 2).to(dtype)
    first, rest = place(slice(None, -1)), place(slice(1, None))
    for target, source in ((rest, first), (first, rest)):
        shifted = x.clone()
        shifted[target] = shifted[source]
        assert mt.equal(shifted[target], x[source])


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_in_place_gives_what_it_gives_elsewhere(reduce: str, include_self: bool) -> None:
    x, index = mt.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, mt.nan]]), mt.tensor([[0, 2, 2], [1, 1, 0]])
    src = mt.tensor([[5.0, -2.0, 7.0], [mt.nan, 3.0, 1.0]])
    made = x.scatter_reduce(1, index, src, reduce, include_self=include_self)
    y = x.clone()
    version = y._version
    assert y.scatter_reduce_(1, index, src, reduce, include_self=include_self) is y
    assert y._version > version and mt.equal(y.nan_to_num(99), made.nan_to_num(99))


def test_scatter_in_place_takes_numpys_name_of_the_dim_and_no_other() -> None:
    x, index, src = mt.zeros(3), mt.tensor([0, 0, 2]), mt.ones(3)
    assert x.clone().scatter_add_(axis=0, index=index, src=src).tolist() == [2, 0, 1]
    assert x.clone().scatter_(axis=0, index=index, src=src).tolist() == [1, 0, 1]
    assert x.clone().scatter_reduce_(axis=0, index=index, src=src, reduce="sum").tolist() == [2, 0, 1]
    for write, more in ((x.scatter_add_, ()), (x.scatter_, ()), (x.scatter_reduce_, ("sum",))):
        with pytest.raises(TypeError, match="unexpected keyword argument 'places'"):
            write(0, index, src, *more, places=index)


def test_a_truth_value_is_written_by_index_at_once():
    truths = mt.tensor([True, False, True])
    if truths.device.backend.mutable:
        assert "as_key" not in asked(lambda: truths.__setitem__(~truths, True))
        assert "as_key" not in asked(lambda: truths.__setitem__(0, False))
        assert truths.tolist() == [False, True, True] and truths._version == 2


@pytest.mark.parametrize(("call", "name"), [
    (lambda x: x.add_(foo=1), "add"), (lambda x: x.round_(1), "round"), (lambda x: x.clamp_(1, 2, 3), "clamp"),
    (lambda x: x.true_divide_(x, rounding_mode="floor"), "true_divide"), (lambda x: x.cumsum_(0, 1), "cumsum"),
])  # fmt: skip
def test_what_a_method_in_place_does_not_take_is_said_in_its_functions_name(call, name):
    with pytest.raises(TypeError, match=rf"^{name}\(\)"):
        call(mt.ones(2))


def test_a_shape_beside_a_number_is_worked_out_once():
    x, v = mt.ones(3, 5), mt.ones(5)
    mt.lerp(x, v, 0.5)
    shapes = x.shape, v.shape, ()
    assert broadcast("lerp", *shapes) is broadcast("lerp", *shapes) == (3, 5)


def test_a_constant_at_positions_is_written_as_it_would_be_by_a_mask():
    x = mt.arange(12.0).reshape(3, 4)
    for source in (x, x.t()):
        y, at = source.detach().requires_grad_(), mt.tensor([0, -1, 0])
        made = mt.index_fill(y, 1, at, 7)
        made.square().sum().backward()
        kept = mt.tensor([i not in (0, y.shape[1] - 1) for i in range(y.shape[1])])
        assert made.tolist() == mt.where(kept, source, 7.0).tolist() and made.stride() == mt.where(kept, source, 7.0).stride()
        assert y.grad.tolist() == (source * 2 * kept).tolist()
    value = mt.tensor(2.0, requires_grad=True)
    mt.index_fill(x, 1, mt.tensor([1, 1]), value).sum().backward()
    assert value.grad.item() == 3  # a position given twice counts once
    assert "new_ones" not in asked(lambda: mt.index_fill(x, 1, mt.tensor([1]), 2.0))


def test_a_mask_of_the_first_dims_is_filled_without_looking_for_positions() -> None:
    for x in (mt.zeros(3, 2, 4), mt.zeros(4, 2, 3).permute(2, 1, 0)):
        part, version = x[1:], x._version
        x[mt.tensor([True, False, True])] = 7.0
        x[mt.tensor([[False, False], [True, False], [False, True]])] = mt.tensor(5.0)
        assert x.tolist() == [[[7.0] * 4] * 2, [[5.0] * 4, [0.0] * 4], [[7.0] * 4, [5.0] * 4]]
        assert part.tolist() == x.tolist()[1:] and x._version == version + 2
    x = mt.zeros(3, 4)
    assert "_put_beside" not in asked(lambda: x.__setitem__(mt.tensor([True, False, True]), 1.0))
    with pytest.raises(IndexError, match="shape of the mask"):
        x[mt.tensor([True, False])] = 1.0


def test_an_index_without_dims_is_the_int_that_it_holds() -> None:
    x = _grid().requires_grad_()
    row = x[mt.tensor(-1)]
    row.square().sum().backward()
    assert "as_key" not in asked(lambda: x[mt.tensor(1)])
    assert row._is_view() and row.tolist() == [8, 9, 10, 11] and x.grad.tolist() == [[0] * 4, [0] * 4, [16, 18, 20, 22]]
    x = x.detach()
    x[mt.tensor(0)] = 9.0
    assert x[0].tolist() == [9.0] * 4
    for act in (lambda: x[mt.tensor(3)], lambda: x.__setitem__(mt.tensor(-4), 0.0)):
        with pytest.raises(IndexError, match="out of bounds"):
            act()


def test_the_first_position_that_is_out_of_bounds_is_named() -> None:
    x, where = mt.arange(5.0), mt.tensor([0, 6, 15, -9])
    for read in (lambda: x[where], lambda: x.gather(0, where), lambda: x.take(where), lambda: mt.stack([x, x])[:, where]):
        with pytest.raises((IndexError, RuntimeError), match="index 6 is out of bounds"):
            read()
    with pytest.raises(IndexError, match="Target 6 is out of bounds"):
        mt.nn.functional.nll_loss(mt.zeros(3, 4), mt.tensor([-100, 6, -1]))


def test_sums_at_one_place_overflow_and_cancel_without_a_warning():
    at, inf = mt.tensor([0, 0]), float("inf")
    for values, want in (([64000.0, 64000.0], "[inf, 0.0]"), ([inf, -inf], "[nan, 0.0]")):
        for dtype in (mt.float16, mt.float32):
            x, v = mt.zeros(2, dtype=dtype), mt.tensor(values, dtype=dtype)
            want = "[128000.0, 0.0]" if dtype is mt.float32 and values[0] < inf else want
            made = [
                x.index_add(0, at, v), x.scatter_add(0, at, v), x.index_put((at,), v, accumulate=True), x.put(at, v, accumulate=True),
                x.clone().index_add_(0, at, v), x.clone().index_put_((at,), v, accumulate=True),
            ]  # fmt: skip
            for row in (x[None], x[None].clone()):
                made.append(row.index_add(1, at, v[None])[0])
            weight = mt.zeros(2, 1, dtype=dtype, requires_grad=True)
            mt.nn.functional.embedding(at, weight).backward(v[:, None])
            made.append(weight.grad[:, 0])
            assert [str(t.tolist()) for t in made] == [want] * len(made)
