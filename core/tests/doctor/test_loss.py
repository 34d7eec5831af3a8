"""Fine points of the rules of losses, classes, shapes and images."""

import gc
import runpy
import weakref

import doctor_corpus
import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.doctor import trail
from mortice.nn import functional as F
from mortice.nn.functional import cross_entropy as imported
from mortice.utils.data import DataLoader, TensorDataset


def found(program, *rules):
    with doctor.watch(only=rules or None, strict=True, quiet=True) as session:
        program()
    return [(f.rule, f.level) for f in session.findings]


LABELS = mt.arange(8) % 4


def scores(n=8, classes=4):
    return mt.randn(n, classes, requires_grad=True)


# ---- D04 ----


def test_a_loss_that_was_imported_by_name_is_watched_and_put_back():
    before = imported
    assert found(lambda: imported(scores().softmax(1), LABELS), "D04") == [("D04", "warning")]
    assert imported is before and F.cross_entropy == before


def test_a_loss_that_is_given_by_keywords_is_watched():
    def program():
        F.cross_entropy(target=LABELS, input=mt.softmax(input=scores(), dim=1))

    assert found(program, "D04") == [("D04", "warning")]


def test_log_probabilities_are_worth_a_remark_only_along_the_classes():
    assert found(lambda: F.cross_entropy(F.log_softmax(scores(), 1), LABELS), "D04") == [("D04", "info")]
    assert found(lambda: F.cross_entropy(F.log_softmax(scores(), 0), LABELS), "D04") == []


@pytest.mark.parametrize(
    ("x", "warned"),
    [
        (mt.full((8, 4), 0.25), True),
        (mt.full((3, 4), 0.25), False),  # too few rows to tell
        (mt.tensor([[2.0, -1.0, 0.0, 0.0]]).repeat(8, 1), False),  # the sum alone says nothing
        (mt.full((8, 4), 0.3), False),
    ],
)
def test_probabilities_without_a_graph_are_known_by_their_values(x, warned):
    assert bool(found(lambda: F.cross_entropy(x, LABELS[: len(x)]), "D04")) is warned


def test_dropout_and_moves_do_not_hide_a_softmax():
    def program():
        p = F.dropout(F.softmax(mt.randn(2, 3, 4, 5, requires_grad=True), 1), 0.1)
        F.cross_entropy(p.permute(0, 2, 3, 1).reshape(-1, 3), mt.zeros(40, dtype=mt.int64))

    assert found(program, "D04") == [("D04", "warning")]


# ---- D06 ----


class Viewing(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.sizes = sizes

    def forward(self, x):
        return x.view(*self.sizes)


@pytest.mark.parametrize(
    ("shape", "sizes", "warned"),
    [
        ((8, 10, 16), (10, 8, 16), True),
        ((8, 1, 10, 16), (10, 8, 16), True),  # dims of size 1 do not count
        ((8, 10, 16), (10, 8, -1), False),
        ((8, 10, 16), (80, 16), False),
        ((8, 8, 16), (8, 8, 16), False),
        ((4, 5), (5, 4), False),  # a toy
    ],
)
def test_views_that_swap_sizes(shape, sizes, warned):
    module, x = Viewing(*sizes), mt.randn(*shape)
    assert bool(found(lambda: module(x), "D06")) is warned
    assert not found(lambda: x.view(*sizes), "D06")  # neither in a module nor of a loader's batch


def test_views_of_libraries_are_their_own_affair():
    attention = nn.MultiheadAttention(32, 4)  # its heads are as large as the batch
    x = mt.randn(10, 8, 32)
    assert not found(lambda: attention(x, x, x), "D06")


# ---- D07 ----


@pytest.mark.parametrize(
    ("program", "warned"),
    [
        (lambda out, y: out - y, True),
        (lambda out, y: y - out, True),
        (lambda out, y: mt.mul(out, y), True),
        (lambda out, y: out.squeeze(1) - y, False),
        (lambda out, y: out - y.unsqueeze(1), False),
        (lambda out, y: out.squeeze(1)[:, None] - y, False),  # a table that was asked for
        (lambda out, y: out[:1] - y[:1], False),
        (lambda out, y: out - out.squeeze(1), False),  # pairs of predictions
        (lambda out, y: mt.sub(input=out, other=y), False),  # not seen, and not in the way
        (lambda out, y: F.huber_loss(out, y), True),
        (lambda out, y: F.huber_loss(y, out), True),
        (lambda out, y: F.l1_loss(out.squeeze(), y), False),
    ],
)
def test_columns_and_rows(program, warned):
    model, x, y = nn.Linear(3, 1), mt.randn(6, 3), mt.randn(6)
    with pytest.warns(UserWarning) if warned and program.__code__.co_names[:1] == ("F",) else mt.enable_grad():
        assert bool(found(lambda: program(model(x), y), "D07")) is warned


# ---- D09 ----


def test_an_axis_is_followed_through_moves():
    x = mt.randn(2, 3, 4, 5, requires_grad=True)
    for out, axis in [
        (F.softmax(x, 1).permute(0, 2, 3, 1), 3),
        (F.softmax(x, 3).reshape(-1, 5), 1),
        (F.softmax(x, 1).flatten(2), 1),
        (F.softmax(x, 2).flatten(2), None),
        (F.softmax(x, 1).permute(0, 2, 3, 1).reshape(40, 3), 1),
    ]:
        path = trail.path(out)
        assert trail.carry(path[-1].attrs["axis"], path) == axis


def test_a_softmax_over_the_batch_counts_where_the_batch_is_known():
    loader = DataLoader(TensorDataset(mt.randn(12, 3)), batch_size=6)
    model = nn.Linear(3, 4)

    def answers():
        for (x,) in loader:
            F.softmax(model(x), 0)

    assert found(answers, "D09") == [("D09", "warning")]
    assert found(lambda: F.softmax(model(mt.randn(6, 3)), 0), "D09") == []
    assert found(lambda: model(mt.randn(6, 3)).log_softmax(1).argmax(1), "D09") == []
    assert found(lambda: mt.softmax(model(mt.randn(6, 3)), dim=0).topk(2, dim=1), "D09") == [("D09", "warning")]


# ---- together ----


def test_inside_vmap_nothing_is_read():
    x, y, tags = mt.randn(3, 8, 4), mt.stack([LABELS] * 3), (mt.rand(3, 8, 4) > 0.3).float()

    def program():
        mt.func.vmap(F.nll_loss)(x, y)
        mt.func.vmap(F.cross_entropy)(x, tags)
        mt.func.vmap(mt.func.grad(lambda a, b: F.binary_cross_entropy(F.softmax(F.relu(a), 1), b)))(x, tags)

    assert found(program) == [("D10", "warning")]  # which the graph tells


def test_nothing_is_kept_alive():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Softmax(1))
    with doctor.watch(quiet=True, strict=True) as session:
        out = model(mt.randn(8, 3))
        loss = F.nll_loss(out, LABELS)
        gone = weakref.ref(out), weakref.ref(out._node)
        del out, loss
        gc.collect()
        assert [g() for g in gone] == [None, None] and len(session.outputs) == 0


@pytest.mark.parametrize(
    "name", ["D04/broken", "D06/broken", "D07/broken", "D09/broken", "D21/broken", "D32/broken_gan"]
)
def test_a_program_computes_the_same_while_it_is_watched(name):
    path = str(doctor_corpus.CORPUS / f"{name}.py")
    before = runpy.run_path(path)["losses"]
    with doctor.watch(quiet=True, strict=True):
        assert runpy.run_path(path)["losses"] == before


def test_a_rule_that_names_functions_has_a_method_for_them():
    class Deaf(doctor.Rule):
        id, title, functions = "X1", "Hears nothing", ("mse_loss",)

    with pytest.raises(ValueError, match="Deaf names functions and has no method `function`"):
        doctor.register(Deaf)
