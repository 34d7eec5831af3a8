"""Movement ops: values against hand-written results, views that share memory, errors, gradients."""

import itertools

import pytest

import mortice as mt
from mortice.autograd import gradcheck, gradgradcheck


def _grid(rows=2, cols=3, dtype=mt.float64):
    return mt.arange(rows * cols, dtype=dtype).reshape(rows, cols)


def test_diagonal_is_a_view_with_gradient():
    x = mt.zeros(2, 3)
    x.diagonal(1).add_(5)
    assert x.tolist() == [[0, 5, 0], [0, 0, 5]]
    assert gradgradcheck(lambda t: t.diagonal(-1) ** 2, (_grid(3, 3).requires_grad_(),))


def test_unfold_shows_windows():
    x = mt.arange(5)
    assert x.unfold(0, 3, 2).tolist() == [[0, 1, 2], [2, 3, 4]]
    x[0] = 9
    assert x.unfold(0, 3, 2)[0, 0].item() == 9
    assert mt.tensor(5.0).unfold(0, 1, 1).tolist() == [5.0] and mt.tensor(5.0).unfold(0, 0, 2).shape == (0,)


def test_as_strided_reads_the_base_of_a_view():
    x = mt.arange(6)
    assert x[2:].as_strided((2,), (2,)).tolist() == [2, 4]
    assert x[2:].as_strided((2,), (1,), 0).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 6, counted in elements"):
        x.as_strided((4,), (2,))


def test_pieces_join_their_gradients():
    x = _grid().requires_grad_()
    a, b, c = x.split([1, 1, 1], 1)
    (a * 2 + c * 3).sum().backward()
    assert x.grad.tolist() == [[2, 0, 3], [2, 0, 3]]
    assert [p.shape for p in mt.arange(7).chunk(3)] == [(3,), (3,), (1,)]
    assert [p.tolist() for p in mt.arange(5).tensor_split((1, 3))] == [[0], [1, 2], [3, 4]]


def test_writing_into_one_of_several_views_raises():
    y = _grid().requires_grad_() * 1
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and is being modified inplace"):
        y.unbind()[0].add_(1)
    with pytest.raises(RuntimeError, match="Output 1 of Split is a view"):
        y.split(1)[1].add_(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mt.combinations(mt.arange(300), 20), lambda: mt.combinations(mt.arange(3), 2**62, with_replacement=True),
        lambda: mt.repeat_interleave(mt.ones(3), mt.tensor([2**63 - 1, 2**63 - 1, 4])),  # which add up to 2 in 64 bits
        lambda: mt.repeat_interleave(mt.tensor([2**62] * 4)),
    ],
)  # fmt: skip
def test_what_has_more_elements_than_addresses_is_refused_at_once(call):
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        call()


def test_repeats_flips_and_rolls():
    x = mt.tensor([1, 2, 3])
    assert x.repeat(2, 1).tolist() == [[1, 2, 3], [1, 2, 3]]
    assert x.tile(2).tolist() == [1, 2, 3, 1, 2, 3]
    assert x.repeat_interleave(mt.tensor([0, 2, 1])).tolist() == [2, 2, 3]
    assert mt.repeat_interleave(mt.tensor([0, 2, 1])).tolist() == [1, 1, 2]
    assert x.roll(1).tolist() == [3, 1, 2]
    assert x.flip(0).tolist() == [3, 2, 1]
    assert mt.rot90(_grid(dtype=mt.int64)).tolist() == [[2, 5], [1, 4], [0, 3]]


def test_positions_of_triangles():
    for row, col, offset in itertools.product(range(5), range(5), range(-6, 7)):
        for found, below in ((mt.tril_indices, True), (mt.triu_indices, False)):
            expected = [(i, j) for i in range(row) for j in range(col) if (j - i <= offset if below else j - i >= offset)]
            assert found(row, col, offset).tolist() == [[p[axis] for p in expected] for axis in (0, 1)]
    assert mt.triu_indices(2**40, 0).shape == (2, 0)


def test_triangles_and_diagonals():
    x = mt.ones(2, 3, dtype=mt.bool)
    assert x.tril().tolist() == [[True, False, False], [True, True, False]]
    assert x.triu(1).dtype is mt.bool
    assert mt.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert mt.diag(mt.tensor([1, 2]), 1).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert mt.diag_embed(mt.tensor([[1, 2]]), dim1=0, dim2=2).shape == (2, 1, 2)


def test_grids_and_joins():
    a, b = mt.meshgrid(mt.arange(2), mt.arange(3), indexing="xy")
    assert a.tolist() == [[0, 1]] * 3 and b.shape == (3, 2)
    assert mt.cartesian_prod(mt.tensor([1, 2]), mt.tensor([3])).tolist() == [[1, 3], [2, 3]]
    assert mt.combinations(mt.tensor([1, 2, 3])).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert mt.combinations(mt.tensor([5, 7]), 3, with_replacement=True).tolist() == [[5] * 3, [5, 5, 7], [5, 7, 7], [7] * 3]
    assert mt.combinations(mt.arange(2), 3).shape == (0, 3) and mt.combinations(mt.arange(0), 2, True).shape == (0, 2)
    assert mt.block_diag(mt.ones(1, 2), mt.ones(1)).tolist() == [[1, 1, 0], [0, 0, 1]]
    parts = [mt.full((n, n), n + 1.0, requires_grad=True) for n in (1, 0, 70, 2)]
    made = mt.block_diag(*parts)
    assert made.shape == (73, 73) and made.sum().item() == 2 + 70 * 70 * 71 + 4 * 3
    (made * mt.arange(73.0)).sum().backward()
    assert parts[3].grad.tolist() == [[71, 72], [71, 72]]
    assert mt.column_stack((mt.arange(2), mt.ones(2, 1))).tolist() == [[0, 1], [1, 1]]


def test_contiguous_copies_into_row_major_order():
    x = _grid().t().contiguous()
    assert x.is_contiguous() and x.stride() == (2, 1)
    assert x.view(-1).tolist() == [0, 3, 1, 4, 2, 5]


def test_changing_the_own_shape_keeps_graph_and_memory():
    leaf = _grid().requires_grad_()
    y = leaf * 2
    y.unsqueeze_(0).transpose_(1, 2)
    assert y.shape == (1, 3, 2)
    y.sum().backward()
    assert leaf.grad.tolist() == [[2, 2, 2], [2, 2, 2]]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.roll((1, 2), (0, 1)) ** 2,
        lambda x: x.repeat(2, 1, 2) ** 2,
        lambda x: x.unfold(1, 2, 1) ** 2,
        lambda x: x.as_strided((2, 2), (1, 2), 1) ** 2,
        lambda x: mt.diag_embed(x, 1) ** 2,
        lambda x: x.tril() ** 2,
        lambda x: x.flip(0, 1) ** 2,
        lambda x: mt.hstack(x.unbind()) ** 2,
    ],
)
def test_gradients(fn):
    x = (_grid(3, 3) / 7 + 0.3).requires_grad_()
    assert gradcheck(fn, (x,)) and gradgradcheck(fn, (x,))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mt.arange(3).unfold(0, 4, 1), RuntimeError, "maximum size"),
        (lambda: mt.arange(3).narrow(0, 2, 2), RuntimeError, "exceeds dimension size"),
        (lambda: mt.arange(3).select(0, 3), IndexError, "out of range"),
        (lambda: mt.arange(4).unflatten(0, (3, -1)), RuntimeError, "don't multiply up"),
        (lambda: mt.arange(4).split(-1), RuntimeError, "non-negative"),
        (lambda: mt.arange(1).split(0), RuntimeError, "split_size can only be 0 if dimension size is 0"),
        (lambda: mt.arange(3).repeat_interleave(mt.tensor([1, 2])), RuntimeError, r"repeats.size\(0\) = 2 and input.size\(0\) = 3"),
        (lambda: mt.eye(2).diagonal(0, 1, 1), RuntimeError, "cannot be identical"),
        (lambda: mt.arange(4).repeat(()), RuntimeError, "can not be smaller"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_number_has_one_dim_to_squeeze():
    x = mt.tensor(3.0)
    assert x.squeeze(0).shape == x.squeeze(-1).shape == x.squeeze((0,)).shape == x.squeeze().shape == ()


def test_a_bool_is_no_dim():
    x = mt.ones(2, 2)
    for call in (lambda: x.topk(1, True), lambda: x.sum(True), lambda: x.cumsum(True), lambda: x.unsqueeze(False)):
        with pytest.raises(TypeError, match="expected dim to be an int; got bool"):
            call()


def test_flipping_needs_dims():
    for call in (lambda: mt.ones(2).flip(), lambda: mt.flip(mt.ones(2))):
        with pytest.raises(TypeError, match="dims"):
            call()
    assert mt.arange(2).flip(()).tolist() == [0, 1]


def test_empty_vectors_join_along_any_dim():
    nothing = mt.empty(0)
    assert mt.cat([nothing, nothing], 3).shape == (0,) and mt.cat([nothing, mt.ones(2, 1)], 1).shape == (2, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(0), lambda x: x.amax(1), lambda x: x.max(0).values, lambda x: x.var(0), lambda x: x.softmax(-1),
        lambda x: x.cumsum(0), lambda x: x.tril(), lambda x: x.roll(1, 0), lambda x: x.masked_fill(x > 0, 1.0),
        lambda x: mt.cat([x, x + 1], -1), lambda x: mt.stack([x, x]), lambda x: x.contiguous(), lambda x: x.any(0),
        lambda x: x.scatter(0, mt.zeros(x.shape, dtype=mt.int64), 1.0), lambda x: x.renorm(2, 0, 1.0), lambda x: x.logsumexp(0),
        lambda x: mt.nn.functional.layer_norm(x, x.shape[-1:]), lambda x: x.norm(dim=0),
        lambda x: mt.nn.functional.one_hot((x > 0).long(), 3), lambda x: x.repeat(1, 2, 1, 1), lambda x: x.tile(1),
    ],
)  # fmt: skip
def test_what_is_laid_out_row_by_row_can_be_viewed_flat_whatever_it_is_made_of(call):
    x = mt.arange(24.0).reshape(2, 3, 4)
    for given in (x.transpose(0, 1), x.permute(2, 0, 1), x.mT, x[:, :1].expand(2, 5, 4), x[0].expand(3, 3, 4)):
        found = call(given)
        assert found.is_contiguous()
        # Without AVX2 default bodies serve the C extension's networks, and may add up in another order.
        baseline = mt.default_backend() == "cpu_cext" and not mt.get_default_device().backend.keeps_formats
        mt.testing.assert_close(found.view(-1), call(given.contiguous()).reshape(-1), rtol=3e-7 * baseline, atol=0)


def test_copies_of_an_expanded_tensor_are_laid_out_row_by_row():
    x = mt.arange(6.0).reshape(2, 3).expand(4, 2, 3)
    for copy in (x.clone(), x.double(), x.half(), x + 1, x.flip(0)):
        assert copy.is_contiguous() and copy.view(4, 6).shape == (4, 6)
    turned = mt.ones(3, 2).t()
    assert turned[None].clone().stride()[1:] == turned.clone().stride() == turned.double().stride()


def test_copies_of_views_draws_and_right_singular_vectors_are_laid_out_row_by_row():
    x = mt.arange(24.0).reshape(2, 3, 4)
    for copy in (mt.permute_copy(x, (2, 0, 1)), mt.transpose_copy(x, 0, 2), mt.narrow_copy(x.mT, 0, 0, 1), *mt.unbind_copy(x, 2)):
        assert copy.is_contiguous() and copy.view(-1).shape == (copy.numel(),)
    turned = mt.view_copy(x.mT, (8, 3))  # a view of it there is none
    assert turned.tolist() == x.mT.reshape(8, 3).tolist() and turned.is_contiguous()
    assert mt.view_copy(x.mT, (8, 3), out=mt.empty(8, 3)).tolist() == turned.tolist()
    mt.alias_copy(x).zero_()
    assert x[1, 2, 3].item() == 23.0
    for draws in (mt.multinomial(mt.ones(4, 6), 3), mt.multinomial(mt.ones(4, 6), 3, replacement=True)):
        assert draws.stride() == (3, 1) and draws.view(-1).shape == (12,)
    for v in (mt.svd(x[0])[2], mt.svd_lowrank(x[0], q=2)[2]):
        assert v.is_contiguous()


def test_circular_padding_and_matrix_exponentials_are_laid_out_row_by_row():
    images = mt.arange(96.0).reshape(2, 3, 4, 4).contiguous(memory_format=mt.channels_last)
    padded = mt.nn.functional.pad(images, (1, 1, 1, 1), mode="circular")
    assert padded.is_contiguous() and mt.equal(padded, mt.nn.functional.pad(images.contiguous(), (1, 1, 1, 1), mode="circular"))
    layer = mt.nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular")
    assert layer(images).view(2, -1).shape == (2, 64)
    assert mt.linalg.matrix_exp(mt.rand(2, 3, 3) / 9).view(-1).shape == (18,)


def test_ravel_of_a_vector_with_gaps_is_a_copy_and_of_rows_a_view():
    x = mt.arange(6.0)
    for given in (x[::2], x.reshape(2, 3).t(), x.expand(2, 6)):
        found = given.ravel()
        assert found.is_contiguous() and found.tolist() == given.reshape(-1).tolist()
        found.zero_()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] and mt.ravel(mt.tensor(3.0)).tolist() == [3.0]
    x.reshape(2, 3).ravel()[5] = 7.0
    assert x[5].item() == 7.0


def test_a_gradient_is_laid_out_as_its_tensor_or_row_by_row():
    w, x = mt.rand(4, 3, requires_grad=True), mt.rand(5, 3)
    turned = mt.rand(3, 4).t().requires_grad_()
    for use in (lambda w: x @ w.t(), lambda w: w.t() @ mt.rand(4, 2), lambda w: (w.t() * 2).sin(), lambda w: w.t().contiguous()):
        w.grad = turned.grad = None
        (use(w).sum() + use(turned).sum()).backward()
        assert w.grad.view(-1).shape == (12,) and w.grad.stride() == (3, 1)
        assert turned.grad.stride() in (turned.stride(), (3, 1))


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_that_is_asked_for_is_laid_out_as_its_tensor_or_row_by_row(create_graph):
    w, x = mt.rand(2, 3, 4, requires_grad=True), mt.rand(5, 4)
    for use in (lambda w: (x @ w[0].t()).pow(2), lambda w: w.mean((0, 2)), lambda w: w.mean(), lambda w: w.mT * 2, lambda w: w.flip(1)):
        (g,) = mt.autograd.grad(use(w).sum(), w, create_graph=create_graph)
        assert g.stride() == (12, 4, 1) and g.view(-1).shape == (24,)
        g.detach().add_(1)
    loss = (x @ w[0].t()).pow(2).sum()
    with mt.no_grad():
        again = mt.autograd.grad(loss, w, create_graph=True)[0]
    assert mt.autograd.grad(again.view(-1).sum(), w)[0].isfinite().all()


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_that_backward_of_a_function_and_retain_grad_get_can_be_viewed(create_graph):
    class Flat(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.view(-1).view(g.shape) * 2

    x, y = mt.rand(2, 3, requires_grad=True), mt.rand(4, 3)
    for use in (lambda t: (y @ t.t()).pow(2), lambda t: t.mean(0), lambda t: (t.t() * 2).pow(2), lambda t: t.mean()):
        x.grad = None
        made = Flat.apply(x)
        made.retain_grad()
        use(made).sum().backward(create_graph=create_graph)
        assert x.grad.view(-1).shape == made.grad.view(-1).shape == (6,)
    images = mt.rand(2, 3, 4, 5).contiguous(memory_format=mt.channels_last).requires_grad_()
    (g,) = mt.autograd.grad(images * 2, images, images.detach())
    assert g.stride() == (images.detach() * 2).stride()


def test_dims_and_sizes_may_come_one_by_one():
    x = mt.arange(4.0).reshape(1, 4, 1)
    assert x.squeeze(0, 2).tolist() == x.squeeze((0, 2)).tolist() == [0.0, 1.0, 2.0, 3.0] and x.squeeze(0, 1).shape == (4, 1)
    assert x.clone().squeeze_(0, 2).shape == (4,)
    assert x.broadcast_to(2, 4, 3).shape == x.broadcast_to((2, 4, 3)).shape == x.broadcast_to(size=(2, 4, 3)).shape == (2, 4, 3)
    assert x.count_nonzero(0, 1).tolist() == x.count_nonzero((0, 1)).tolist() == [3]


def test_nothing_has_no_slices():
    assert mt.empty(0).unbind() == mt.empty(0, 3, requires_grad=True).unbind() == mt.empty(3, 0).unbind(1) == ()


def test_numbers_of_numpy_say_how_many_parts():
    np = pytest.importorskip("numpy")
    assert [p.tolist() for p in mt.hsplit(mt.arange(4), np.int64(2))] == [[0, 1], [2, 3]]
    assert len(mt.vsplit(mt.ones(4, 1), np.int32(4))) == 4


def test_dims_swapped_again_and_again_are_one_step_or_none():
    x = mt.arange(24.0).reshape(2, 3, 4).clone()
    for dims in ((0, 1), (1, 2), (0, 2)):
        x.transpose_(*dims)
        assert len(x.view_steps) == 1
    assert x.add_(1).tolist() == (mt.arange(24.0).reshape(2, 3, 4).permute(0, 2, 1) + 1).tolist()
    base = mt.arange(6.0).reshape(2, 3).clone().t_()
    view = base.t()
    for _ in range(3):
        view.t_()  # never beyond what the base itself is a view of
    assert view.view_steps == base.view_steps and len(base.view_steps) == 1
    view.mul_(2)
    assert base.tolist() == view.tolist() == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]
    assert base.t_().view_steps == () and view.t().tolist() == base.tolist()
    w = mt.ones(2, 3, requires_grad=True)
    y = (w * 1).t_().t_().t_()
    y.mul_(3)
    y.sum().backward()
    assert w.grad.tolist() == [[3.0] * 3] * 2
