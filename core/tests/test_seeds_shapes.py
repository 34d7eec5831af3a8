"""The seed inventory, rows MM, VW, TD, NP and PR: matmul, shapes and views, types and devices, NumPy, printing.

One test a row, named after it. Creation, element-wise math and reductions are in test_seeds_tensors.py.
"""

import copy

import numpy as np
import pytest

import mortice as mt

# Matmul


def test_MM01_vector_times_vector_is_a_number():
    found = mt.matmul(mt.tensor([1.0, 2.0, 3.0]), mt.tensor([4.0, 5.0, 6.0]))
    assert found.shape == mt.Size([]) and found.item() == 32


def test_MM02_matrix_times_vector():
    assert mt.matmul(mt.arange(12).reshape(3, 4), mt.tensor([1, 0, 0, 1])).tolist() == [3, 11, 19]


def test_MM03_vector_times_matrix():
    assert mt.matmul(mt.tensor([1, 0, 1]), mt.arange(12).reshape(3, 4)).tolist() == [8, 10, 12, 14]


def test_MM04_a_vector_is_not_a_matrix_of_one_row():
    b = mt.tensor([[1, 2], [3, 4], [4, 5]])
    assert mt.matmul(mt.tensor([1, 2, 3]), b).tolist() == [19, 25]
    assert mt.matmul(mt.tensor([[1, 2, 3]]), b).tolist() == [[19, 25]]
    assert mt.matmul(b.t(), b).dtype is mt.int64


def test_MM05_matrix_times_matrix():
    assert mt.matmul(mt.rand(3, 4), mt.rand(4, 5)).shape == (3, 5)


def test_MM06_batch_times_vector():
    a, b = mt.rand(10, 3, 4), mt.rand(4)
    assert mt.matmul(a, b).shape == (10, 3)
    assert mt.allclose(mt.matmul(a, b)[2], a[2].mv(b))


def test_MM07_batch_times_batch():
    a, b = mt.rand(10, 3, 4), mt.rand(10, 4, 5)
    assert mt.matmul(a, b).shape == (10, 3, 5)
    assert mt.allclose(mt.matmul(a, b)[2], a[2].mm(b[2]))


def test_MM08_batch_times_matrix_is_layer_by_layer():
    a, b = mt.rand(10, 3, 4), mt.rand(4, 5)
    assert mt.matmul(a, b).shape == (10, 3, 5)
    assert mt.allclose(mt.matmul(a, b)[7], a[7].mm(b))


def test_MM09_all_batch_dims_broadcast():
    assert mt.matmul(mt.rand(10, 1, 3, 4), mt.rand(5, 4, 2)).shape == (10, 5, 3, 2)


def test_MM10_mm_takes_matrices_only():
    a, b = mt.rand(2, 3), mt.rand(3, 4)
    assert mt.mm(a, b).tolist() == mt.matmul(a, b).tolist()
    for other in (mt.rand(3), mt.rand(2, 3, 4)):
        with pytest.raises(RuntimeError, match="must be a (matrix|2-D tensor)"):
            mt.mm(a, other)
    with pytest.raises(RuntimeError, match=r"2(x|, )3.*2(x|, )2"):
        mt.mm(a, mt.rand(2, 2))


def test_MM11_mv_does_not_broadcast():
    a = mt.arange(6).reshape(2, 3)
    assert mt.mv(a, mt.tensor([1, 1, 1])).tolist() == [3, 12]
    for matrix, vector in ((a, a), (mt.ones(2, 2, 3), mt.ones(3)), (a, mt.tensor([1, 1]))):
        with pytest.raises(RuntimeError):
            mt.mv(matrix, vector)


def test_MM12_addmm():
    a, b = mt.arange(8.0).reshape(2, 4), mt.ones(4, 3)
    assert mt.addmm(mt.zeros(2, 3), a, b).tolist() == mt.mm(a, b).tolist() == [[6] * 3, [22] * 3]
    assert mt.addmm(mt.ones(3), a, b, beta=2, alpha=10).tolist() == [[62] * 3, [222] * 3]
    assert mt.addmm(mt.full((3,), float("nan")), a, b, beta=0).tolist() == [[6] * 3, [22] * 3]
    with pytest.raises(TypeError):
        mt.addmm(a, b)


def test_MM13_addmv():
    mat, vec = mt.arange(6.0).reshape(2, 3), mt.ones(3)
    assert mt.addmv(mt.tensor([1.0, 1.0]), mat, vec, beta=2, alpha=10).tolist() == [32, 122]


def test_MM14_addr():
    a, b = mt.arange(1, 4), mt.arange(1, 3)
    found = mt.addr(mt.zeros(3, 2), a, b)
    assert found.dtype is mt.float32
    assert found.tolist() == [[1, 2], [2, 4], [3, 6]]
    assert mt.addr(mt.ones(2), a, b, beta=2, alpha=10).tolist() == [[12, 22], [22, 42], [32, 62]]
    with pytest.raises(RuntimeError, match=r"(?i)vec1 must be a 1-D tensor|expected 1-D argument vec1, but got 2-D"):
        mt.addr(mt.zeros(4, 3), mt.rand(1, 4), mt.rand(1, 3))


def test_MM15_dot_takes_two_vectors_of_equal_length():
    found = mt.dot(mt.tensor([2, 3]), mt.tensor([2, 1]))
    assert found.shape == () and found.item() == 7
    for other in (mt.tensor([1, 2, 3]), mt.tensor([[1], [2]])):
        with pytest.raises(RuntimeError):
            mt.dot(mt.tensor([2, 3]), other)


def test_MM16_mm_and_t_are_methods():
    weight, embeds = mt.rand(4, 3), mt.rand(2, 3)
    assert weight.mm(embeds.t()).shape == (4, 2)


def test_MM17_mismatches_are_runtime_errors():
    with pytest.raises(RuntimeError):
        mt.matmul(mt.rand(2, 3), mt.rand(4, 2))
    with pytest.raises(RuntimeError, match="dtype"):
        mt.matmul(mt.rand(2, 3), mt.rand(3, 2, dtype=mt.double))


# Shapes, views, contiguity, indexing, joining


def test_VW01_cat_takes_a_tuple_or_list():
    a, b = mt.tensor([1, 2]), mt.tensor([3])
    assert mt.cat((a, b, a)).tolist() == mt.cat([a, b, a]).tolist() == [1, 2, 3, 1, 2]
    with pytest.raises(TypeError):
        mt.cat(a)


def test_VW02_cat_along_other_dims():
    a, b = mt.ones(2, 1), mt.zeros(2, 2)
    assert mt.cat([a, b], dim=1).tolist() == mt.cat([a, b], dim=-1).tolist() == [[1, 0, 0], [1, 0, 0]]
    with pytest.raises(RuntimeError):
        mt.cat([a, b], dim=0)
    assert mt.cat([mt.tensor([1]), mt.tensor([1.5])]).dtype is mt.float32


def test_VW03_stack_makes_a_new_dim():
    a, b = mt.tensor([1, 2]), mt.tensor([3, 4])
    assert mt.stack((a, b), dim=0).tolist() == [[1, 2], [3, 4]]
    assert mt.stack((a, b), dim=1).tolist() == [[1, 3], [2, 4]]
    with pytest.raises(RuntimeError, match="equal size"):
        mt.stack((a, mt.tensor([1])))


def test_VW04_numel():
    a = mt.randn(1, 2, 3, 4, 5)
    assert mt.numel(a) == a.numel() == a.nelement() == 120


def test_VW05_squeeze_is_a_view():
    x = mt.zeros(2, 1, 3, 4, 1, 5)
    y = mt.squeeze(x)
    assert y.shape == (2, 3, 4, 5)
    y[0, 0, 0, 0] = 7
    assert x[0, 0, 0, 0, 0, 0].item() == 7


def test_VW06_squeeze_of_one_dim():
    x = mt.zeros(8, 1)
    assert x.squeeze(1).shape == (8,)
    assert mt.squeeze(x, 0).shape == (8, 1)


def test_VW07_view_infers_one_size():
    x = mt.randn(1, 2, 2, 2)
    assert x.view(-1, 1).shape == (8, 1)
    assert mt.zeros(6).view(3, -1).shape == (3, 2)
    with pytest.raises(RuntimeError, match=r"shape .* is invalid for input of size 8"):
        x.view(3, -1)
    with pytest.raises(RuntimeError, match="only one|infer"):
        x.view(-1, -1)


def test_VW08_a_view_shares_memory():
    a = mt.zeros(4)
    b = a.view(2, 2)
    a[0] = 5
    b[1, 1] = 7
    assert [a.tolist(), b.tolist()] == [[5, 0, 0, 7], [[5, 0], [0, 7]]]


def test_VW09_view_of_a_tensor_that_is_not_contiguous():
    x = mt.arange(6).reshape(2, 3)
    with pytest.raises(RuntimeError, match=r"view size is not compatible with input.*size and stride.*reshape"):
        x.t().view(6)
    assert x.t().view(3, 2, 1).shape == (3, 2, 1)
    assert x[:, :2].view(2, 2, 1).tolist() == [[[0], [1]], [[3], [4]]]


def test_VW10_contiguous_copies_only_if_needed():
    x = mt.Tensor([[1], [2], [3]])
    y = x.expand(2, 3, 4)
    assert not y.is_contiguous()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        y.view(3, -1)
    rows = [[1, 1, 1, 1, 2, 2, 2, 2], [3, 3, 3, 3, 1, 1, 1, 1], [2, 2, 2, 2, 3, 3, 3, 3]]
    assert y.contiguous().view(3, -1).tolist() == rows
    assert x.contiguous() is x


def test_VW11_item():
    x = mt.tensor([1.0]).item()
    assert x == 1.0 and type(x) is float
    assert type(mt.tensor(3).item()) is int and type(mt.tensor(True).item()) is bool
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        mt.tensor([1, 2]).item()


def test_VW12_tolist():
    assert mt.tensor([[1, 2]]).tolist() == [[1, 2]]
    assert mt.tensor(2.5).tolist() == 2.5
    assert mt.ones(2, requires_grad=True).tolist() == [1, 1]


def test_VW13_expand():
    x = mt.Tensor([[1], [2], [3]])
    assert x.expand(3, 4).tolist() == x.expand(-1, 4).tolist() == [[1] * 4, [2] * 4, [3] * 4]
    assert x.expand(2, 3, 4).tolist() == [[[1] * 4, [2] * 4, [3] * 4]] * 2
    assert mt.tensor([1, 2, 3, 4]).expand(3, 3, -1).tolist() == [[[1, 2, 3, 4]] * 3] * 3
    assert x.expand(mt.zeros(3, 2).size()).shape == (3, 2)


@pytest.mark.needs("addresses")
def test_VW14_expand_allocates_nothing():
    x = mt.ones(1)
    y = x.expand(10**9)
    assert y.shape == (10**9,) and y.stride() == (0,)
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError):
        x.expand(3).add_(1)


def test_VW15_expand_errors():
    for sizes in ((-1, 3, 4), (4, 4), (3,)):
        with pytest.raises(RuntimeError):
            mt.zeros(3, 1).expand(*sizes)


def test_VW16_transpose_is_a_view_that_is_not_contiguous():
    x = mt.arange(6).reshape(2, 3)
    y = mt.transpose(x, 0, 1)
    assert y.tolist() == [[0, 3], [1, 4], [2, 5]]
    y[2, 0] = 9
    assert x[0, 2].item() == 9
    assert not y.is_contiguous()
    with pytest.raises(RuntimeError):
        y.view(6)


def test_VW17_slices_exclude_the_end_and_are_views():
    """Negative steps work here, on purpose; PyTorch refuses them."""
    a = mt.arange(6)
    b = a[1:4]
    assert b.tolist() == [1, 2, 3]
    b[0] = 9
    assert a.tolist() == [0, 9, 2, 3, 4, 5]
    assert a[::-2].tolist() == [5, 3, 9]


def test_VW18_items_can_be_assigned():
    a, c = mt.ones(7), mt.ones(3, 4)
    a[5] = 0.0
    c[0, 2] = 0
    c[1] = mt.tensor([1, 2, 3, 4])
    assert a.tolist() == [1, 1, 1, 1, 1, 0, 1]
    assert c.tolist() == [[1, 1, 0, 1], [1, 2, 3, 4], [1, 1, 1, 1]]
    with pytest.raises(IndexError):
        a[7] = 1
    with pytest.raises(IndexError):
        c[0, -5]


def test_VW19_unsqueeze_adds_the_batch_dim():
    assert mt.zeros(3, 8, 8).unsqueeze(0).shape == (1, 3, 8, 8)


@pytest.mark.seed("TR06")
def test_VW20_view_is_not_permute():
    x = mt.arange(6).reshape(2, 3)
    assert x.view(3, 2).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert x.permute(1, 0).tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.seed("TR09")
def test_VW21_view_reads_the_last_dim_first():
    assert mt.arange(8).view(2, 2, 2).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert mt.arange(8).view(2, 2, 2).view(-1).tolist() == list(range(8))


def test_VW22_a_view_of_a_tracked_leaf_is_not_a_leaf():
    x = mt.zeros(2, 2, requires_grad=True)
    y = x.view(-1)
    assert y.requires_grad and not y.is_leaf
    with pytest.raises(ValueError, match="non-leaf"):
        mt.optim.SGD([y], lr=0.1)


def test_VW23_t_takes_at_most_two_dims():
    assert mt.zeros(2, 3).t().shape == (3, 2)
    assert mt.zeros(2).t().shape == (2,)
    with pytest.raises(RuntimeError):
        mt.zeros(2, 3, 4).t()


def test_VW24_iteration_yields_rows():
    assert [row.tolist() for row in mt.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError):
        iter(mt.tensor(1))


# Types and devices


def test_TD01_float_factories_default_to_float32():
    made = (mt.zeros(1), mt.ones(1), mt.rand(1), mt.randn(1), mt.tensor(1.0), mt.linspace(0, 1, 2), mt.empty(1))
    assert all(x.dtype is mt.float32 for x in made)


def test_TD02_aliases_are_the_same_object():
    assert (mt.float, mt.double, mt.half) == (mt.float32, mt.float64, mt.float16)
    assert mt.long is mt.int64 and mt.int is mt.int32 and mt.short is mt.int16
    assert mt.float is mt.float32 and copy.deepcopy(mt.float32) is mt.float32
    assert mt.zeros(1, dtype=mt.uint8).dtype is mt.uint8 and mt.zeros(1, dtype=mt.bool).dtype is mt.bool


def test_TD03_float_and_double():
    x = mt.zeros(2)
    assert x.float() is x
    assert x.double().dtype is mt.float64 and x.dtype is mt.float32
    net = mt.nn.BatchNorm2d(2)
    weight = net.weight
    assert net.double() is net
    assert net.weight is weight and weight.dtype is mt.float64
    assert net.running_mean.dtype is mt.float64
    assert net.num_batches_tracked.dtype is mt.int64


@pytest.mark.needs("cpu")
def test_TD04_cuda_and_cpu():
    x, net = mt.zeros(2), mt.nn.Linear(1, 1)
    assert x.cpu() is x and net.cpu() is net
    if mt.cuda.is_available():
        assert x.cuda().is_cuda
    else:
        for target in (x, net):
            with pytest.raises((RuntimeError, AssertionError), match="(?i)cuda"):
                target.cuda()


@pytest.mark.needs("cpu")
def test_TD05_to_takes_device_and_dtype():
    x = mt.ones(2, requires_grad=True)
    assert x.to("cpu") is x and x.to(mt.device("cpu")) is x and x.to(mt.float32) is x
    for y in (x.to("cpu", mt.double), x.to(device="cpu", dtype=mt.double), x.to(mt.double)):
        assert y.dtype is mt.float64
    (y * 3).sum().backward()
    assert x.grad.dtype is mt.float32 and x.grad.tolist() == [3, 3]


def test_TD06_device_needs_no_cuda():
    device = mt.device("cuda:0")
    assert (device.type, device.index, str(device)) == ("cuda", 0, "cuda:0")
    assert device == mt.device("cuda", 0) and device != mt.device("cpu")
    device = mt.device("cuda:0" if mt.cuda.is_available() else "cpu")
    assert mt.zeros(1, device=device).device == device


def test_TD07_cuda_is_available_answers():
    assert isinstance(mt.cuda.is_available(), bool)


@pytest.mark.needs("cpu")
def test_TD08_repr_tells_what_is_not_default():
    assert repr(mt.zeros(1)) == "tensor([0.])"
    assert "float64" in repr(mt.zeros(1, dtype=mt.float64))
    assert "int8" in repr(mt.zeros(1, dtype=mt.int8)) and "dtype" not in repr(mt.zeros(1, dtype=mt.int64))


def test_TD09_to_moves_a_model_in_place():
    model = mt.nn.BatchNorm1d(2)
    parameters = list(model.parameters())
    assert model.to(mt.device("cpu"), mt.float64) is model
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert all(t.dtype is mt.float64 for t in (*parameters, model.running_mean))


def test_TD10_to_does_not_change_a_tensor():
    features = mt.zeros(2)
    moved = features.to(mt.float64)
    assert moved is not features and features.dtype is mt.float32


def test_TD11_is_cuda_is_an_attribute():
    assert mt.zeros(1).is_cuda is False


@pytest.mark.needs("cpu")
def test_TD12_tensors_must_be_on_one_device():
    pytest.importorskip("mortice_conformance", reason="its strict backend stands for a second device")
    other = mt.zeros(2, device="strict:1")
    with pytest.raises(RuntimeError, match="(?s)same device.*cpu.*strict:1|same device.*strict:1.*cpu"):
        mt.zeros(2) + other


def test_TD13_modules_never_promote():
    double = mt.zeros(1, 1, 4, 4, dtype=mt.float64)
    with pytest.raises(
        RuntimeError, match=r"(?i)input type \(.*(double|float64)\) and .* type \(.*float(32)?\) should be the same"
    ):
        mt.nn.Conv2d(1, 1, 3)(double)
    with pytest.raises(
        RuntimeError, match=r"(?i)mat1 and mat2 must have the same dtype, but got .*(double|float64) and .*float"
    ):
        mt.nn.Linear(4, 2)(double)


def test_TD14_float_operations_work_in_float64():
    x = mt.rand(1, 2, 4, 4, dtype=mt.float64)
    net = mt.nn.Sequential(
        mt.nn.Conv2d(2, 3, 3, padding=1), mt.nn.BatchNorm2d(3), mt.nn.LeakyReLU(), mt.nn.MaxPool2d(2),
        mt.nn.ConvTranspose2d(3, 1, 2, 2), mt.nn.Upsample(scale_factor=2), mt.nn.Dropout(), mt.nn.Flatten(),
        mt.nn.Linear(64, 3), mt.nn.LogSoftmax(1),
    ).double()  # fmt: skip
    out = net(x)
    assert out.dtype is mt.float64
    mt.nn.functional.nll_loss(out, mt.tensor([1])).backward()
    assert all(p.grad.dtype is mt.float64 for p in net.parameters())


def test_TD15_class_weights_have_the_dtype_of_the_logits():
    logits, target = mt.rand(2, 3), mt.tensor([0, 2])
    mt.nn.CrossEntropyLoss(weight=mt.tensor([1.0, 2.0, 3.0]))(logits, target)
    with pytest.raises(RuntimeError):
        mt.nn.CrossEntropyLoss(weight=mt.ones(3, dtype=mt.float64))(logits, target)


def test_TD16_one_default_device():
    before = mt.get_default_device()
    mt.set_default_device("cpu")
    try:
        assert mt.zeros(1).device.type == "cpu"
    finally:
        mt.set_default_device(None)
    assert mt.get_default_device() == before


# NumPy bridge


@pytest.mark.needs("cpu")
def test_NP01_numpy_shares_memory():
    x = mt.zeros(2)
    array = x.numpy()
    x[0], array[1] = 1, 2
    assert [x.tolist(), array.tolist()] == [[1, 2], [1, 2]]
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        mt.zeros(2, requires_grad=True).numpy()


def test_memory_that_is_shared_stays_where_it_is():
    array, home = np.arange(3.0), mt.ones(1).device
    with mt.device("meta"):
        x, y = mt.from_numpy(array), mt.frombuffer(array, dtype=mt.float64)
        assert mt.ones(1).is_meta
    assert x.device == y.device == home and x.tolist() == y.tolist() == [0, 1, 2]


@pytest.mark.needs("cpu")
def test_NP02_from_numpy_shares_memory():
    array = np.zeros(2)
    x = mt.from_numpy(array)
    array[0] = 1
    x[1] = 2
    assert x.dtype is mt.float64
    assert [x.tolist(), array.tolist()] == [[1, 2], [1, 2]]
    with pytest.raises(TypeError, match="ndarray"):
        mt.from_numpy([1, 2])
    try:
        assert mt.from_numpy(array[::-1]).tolist() == [2, 1]
    except ValueError as error:
        assert "cop" in str(error)


def test_NP03_tensor_never_shares():
    array = np.zeros(2, dtype=np.float32)
    x = mt.tensor(array)
    array[0] = 1
    assert x.tolist() == [0, 0]


@pytest.mark.needs("cpu")
def test_NP04_through_numpy_and_back():
    x = mt.tensor([3.0, 1.0, 2.0])
    assert np.asarray(x).dtype == np.float32
    assert np.median(x) == 2
    assert mt.from_numpy(np.sort(x)).tolist() == [1, 2, 3]


def test_NP05_channels_are_moved_by_permute():
    image = np.arange(24).reshape(2, 4, 3)
    x = mt.from_numpy(image.transpose((2, 0, 1)))
    assert x.shape == (3, 2, 4)
    assert x.tolist() == mt.from_numpy(image).permute(2, 0, 1).tolist()
    assert x.tolist() != mt.from_numpy(image).view(3, 2, 4).tolist()


def test_NP06_grey_arrays_get_a_channel():
    assert mt.from_numpy(np.zeros((4, 5))[:, :, np.newaxis]).permute(2, 0, 1).shape == (1, 4, 5)


@pytest.mark.needs("cpu")
def test_NP07_a_grey_image_is_squeezed_for_showing():
    assert mt.rand(1, 4, 5).squeeze().numpy().shape == (4, 5)
    assert mt.rand(3, 4, 5).permute(1, 2, 0).numpy().shape == (4, 5, 3)


@pytest.mark.needs("cpu")
def test_NP08_batches_are_plain_cpu_tensors():
    loader = mt.utils.data.DataLoader(mt.utils.data.TensorDataset(mt.arange(4.0), mt.arange(4)), batch_size=2)
    assert [batch_x.numpy().tolist() for batch_x, _ in loader] == [[0, 1], [2, 3]]


@pytest.mark.needs("cpu")
def test_NP09_sharing_needs_equal_dtypes():
    array = np.zeros(2, dtype=np.float32)
    shared, copied = mt.from_numpy(array), mt.from_numpy(array).double()
    array[0] = 1
    assert [shared.tolist(), copied.tolist()] == [[1, 0], [0, 0]]
    assert mt.as_tensor(array).data_ptr() == shared.data_ptr() != mt.as_tensor(array, dtype=mt.double).data_ptr()


def test_NP10_float64_arrays_become_double_tensors():
    x = mt.tensor(np.array([1.5]))
    assert x.dtype is mt.double
    with pytest.raises(RuntimeError):
        mt.nn.Linear(1, 1)(x)
    assert mt.nn.Linear(1, 1)(x.float()).shape == (1,)


def test_NP11_tensors_behave_as_arrays():
    array, x = np.arange(6).reshape(2, 3), mt.arange(6).reshape(2, 3)
    assert np.arange(5).tolist() == mt.arange(5).tolist()
    pairs = [(array[1:, ::2], x[1:, ::2]), (array.T, x.T), (array[array > 2], x[x > 2]), (array @ array.T, x @ x.T)]
    pairs += [
        (array.sum(0), x.sum(0)),
        (array[:, [2, 0]], x[:, [2, 0]]),
        (array[..., None] + array[0], x[..., None] + x[0]),
    ]
    assert all(a.tolist() == b.tolist() for a, b in pairs)


# Printing


@pytest.mark.needs("cpu")
def test_PR01_four_digits_no_padding_and_a_summary():
    assert repr(mt.ones(2, 3)) == "tensor([[1., 1., 1.],\n        [1., 1., 1.]])"
    assert repr(mt.tensor([19.00501, -21.5])) == "tensor([ 19.0050, -21.5000])"
    assert repr(mt.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert "..." not in repr(mt.arange(1000))


@pytest.mark.needs("cpu")
def test_PR02_one_format_per_tensor():
    assert repr(mt.tensor([5.5, 3])) == "tensor([5.5000, 3.0000])"
    assert repr(mt.tensor([1e-5, 1.0])) == "tensor([1.0000e-05, 1.0000e+00])"


def test_PR03_size():
    assert repr(mt.zeros(10, 3).size()).endswith(".Size([10, 3])")
    assert repr(mt.zeros(()).shape).endswith(".Size([])")


@pytest.mark.needs("cpu")
def test_PR04_grad_suffixes():
    x = mt.tensor([1.0], requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"


def test_PR05_modules_print_their_tree():
    net = mt.nn.Sequential(mt.nn.Linear(2, 3, bias=False), mt.nn.Sequential(mt.nn.ReLU(inplace=True)))
    assert repr(net) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "  (1): Sequential(\n    (0): ReLU(inplace=True)\n  )\n)"
    )
