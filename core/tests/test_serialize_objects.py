"""What `load(weights_only=False)` reads besides modules: values of plain classes and NumPy's arrays, and nothing that runs."""

import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib.util
import inspect
import io
import logging
import math
import pathlib
import pickle
import sys
import threading
import types
import warnings
from typing import Any, Generic, Optional, TypeVar, Union

import pytest
from checkpoint_files import repickled, round_trip

import mortice as mt
from mortice.serialization import UnpicklingError

T = TypeVar("T")
formats = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before 1.6"])


def doubled(x):
    return 2 * x


@dataclasses.dataclass(frozen=True)
class Settings:
    depth: int
    sizes: tuple


class Colour(enum.Enum):
    RED = "r"
    BLUE = 2


class Plain:
    shared = 1

    def __init__(self, mark):
        self.mark = mark

    def __eq__(self, other):
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self):
        return 1


class Slotted:
    __slots__ = ("a", "_b")

    def __init__(self, a):
        self.a = a

    def __eq__(self, other):
        return self.a == other.a

    @property
    def b(self):
        return self._b

    @b.setter
    def b(self, value):
        raise AssertionError("executed")


class Attributes(dict):
    __getattr__ = dict.__getitem__


class Options(types.SimpleNamespace):
    def __init__(self, **kwargs):
        raise AssertionError("executed")

    @classmethod
    def of(cls, **kwargs):
        made = cls.__new__(cls)
        made.__dict__.update(kwargs)
        return made


Pair = collections.namedtuple("Pair", "x y")

# ruff: noqa: UP007, UP045 (hints as files have them)
VALUES = {
    "dataclass": Settings(3, (1, 2)), "object": Plain(4), "slots": Slotted(5), "attributes": Attributes(a=1), "namedtuple": Pair(1, [2]),
    "enum": {Colour.BLUE: [Colour.RED]}, "class": Plain, "function": doubled,
    "namespace": argparse.Namespace(lr=0.1, act=doubled, seed=None), "simple": types.SimpleNamespace(a=b""),
    "options": Options.of(a=[1]),
    "path": pathlib.Path("a", "b"), "moment": datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC),
    "span": datetime.timedelta(1, 2), "default": collections.defaultdict(list, a=[1]), "decimal": decimal.Decimal("1.50"),
    "fraction": fractions.Fraction(1, 3), "types": argparse.Namespace(kind=int, none=type(None), wide=[str, dict]),
    "deque": collections.deque([1, 2], maxlen=3), "functions": argparse.Namespace(of=math.tanh, size=len, more=...),
    "hints": argparse.Namespace(a=[list[int], Any, Optional[Plain], Union[int, str], Plain | None | list[int]], of=inspect._empty),
    "hinted": collections.OrderedDict[str, int](a=1),  # its class has told it of what it is: __orig_class__
    "logger": logging.getLogger("of a test"), "partial default": collections.defaultdict(Plain, {"a": Plain(1)}),
}  # fmt: skip


@formats
@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("kind", VALUES)
def test_objects_of_plain_classes_are_read_when_asked_for(kind, protocol, zipped):
    value = {"x": [VALUES[kind], mt.ones(2)]}
    with pytest.raises(UnpicklingError, match="lists instead of arrays, or read modules and plain objects with weights_only=False"):
        round_trip(value, zipped, protocol=protocol)
    got, t = round_trip(value, zipped, protocol=protocol, weights_only=False)["x"]
    assert type(got) is type(VALUES[kind]) and got == VALUES[kind] and t.tolist() == [1, 1]
    if kind == "default":
        assert got["b"] == []


def test_who_names_the_pickle_module_asks_for_objects():
    assert round_trip(Plain(4), pickle_module=pickle) == Plain(4)
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        round_trip(Plain(4), pickle_module=pickle, weights_only=True)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arrays_of_numpy_are_read_when_asked_for(protocol):
    np = pytest.importorskip("numpy")
    arrays = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6, dtype="i2").reshape(2, 3)), np.zeros((0, 3)),
              np.array(["a", "bcd"]), np.array([True, False]), np.array(3.0), np.array([1j], "complex64")]  # fmt: skip
    numbers = [np.float64(0.5), np.bool_(True), np.int8(-3)]
    value = {"arrays": arrays, "numbers": numbers, "dtype": np.dtype("float32"), "rng": np.random.RandomState(0).get_state()}
    with pytest.raises(UnpicklingError, match="or read modules and plain objects with weights_only=False"):
        round_trip(value, protocol=protocol)
    got = round_trip(value, protocol=protocol, weights_only=False)
    for a, b in zip(got["arrays"], arrays):
        assert a.dtype == b.dtype and a.flags.writeable and np.array_equal(a, b)
    assert [(type(n), n) for n in got["numbers"]] == [(type(n), n) for n in numbers] and got["dtype"] == value["dtype"]
    assert np.array_equal(got["rng"][1], value["rng"][1])
    got["arrays"][0][0] = 7  # memory of its own
    for refused in (np.array([{}], object), np.zeros(2, ">f8"), np.zeros(2, "M8[s]"), np.zeros(2, "f4,i4")):
        with pytest.raises(UnpicklingError, match="NumPy holds|expected an array of numbers or text"):
            round_trip(refused, protocol=protocol, weights_only=False)


class Noisy:
    def __setstate__(self, state):
        raise AssertionError("executed")


class NoisyDict(dict):
    def __setitem__(self, key, value):
        raise AssertionError("executed")


class NoisyNew:
    def __new__(cls):
        return object.__new__(cls)


class Leaver:
    def __del__(self):
        pass


@pytest.mark.parametrize("kind", [Noisy, NoisyDict, NoisyNew, Leaver, io.StringIO, mt.Generator, threading.Event])
def test_classes_with_code_for_their_making_are_refused(kind):
    data = b"\x80\x02c" + f"{kind.__module__}\n{kind.__qualname__}".encode() + b"\n)\x81}X\x01\0\0\0aK\x01sb."
    with pytest.raises(UnpicklingError, match=f"the file asks for {kind.__module__}.{kind.__qualname__}"):
        mt.load(repickled(data), weights_only=False)


def test_a_property_is_not_set():
    data = f"c{Slotted.__module__}\nSlotted\n)\x81N}}X\x01\0\0\0bK\x01s\x86b.".encode("latin1")
    with pytest.raises(UnpicklingError, match="sets the attribute 'b' of a Slotted"):
        mt.load(repickled(b"\x80\x02" + data), weights_only=False)


@pytest.mark.parametrize("weights_only", [True, False])
def test_no_module_is_asked_for_what_it_has_not(weights_only, monkeypatch):
    module = types.ModuleType("lazy_module")
    asked = []
    module.__getattr__ = asked.append
    monkeypatch.setitem(sys.modules, "lazy_module", module)
    with pytest.raises(UnpicklingError, match="the file asks for lazy_module.x"):
        mt.load(repickled(b"\x80\x02clazy_module\nx\n."), weights_only=weights_only)
    assert asked == []


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"ctests\nx\n.", "asks for tests.x"),
        (b"cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\0\0\0f8\x85RC\x04aaaa\x86R.", "impossible sizes"),
        (b"cnumpy\ndtype\nX\x01\0\0\0O\x85R.", "NumPy holds 'O'"),
        (b"cnumpy\ndtype\nX\x05\0\0\0f8,f8\x85R.", "NumPy holds 'f8,f8'"),
        (b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\x85R(K\x01K\x05\x85K\x03\x89C\x01atb.", "impossible"),
        (b"ccollections\ndefaultdict\ncos\nmkdir\n\x85R.", "asks for os.mkdir"),
        (b"ccollections\ndefaultdict\ncnumpy\ndtype\n\x85R.", "by something else"),
        (b"cpathlib\nPosixPath\nK\x05\x85R.", "parts of a path"),
        (b"cbuiltins\nlist\nK\x05\x85R.", "calls"),
        (b"cbuiltins\npow\nK\x05K\x05\x86R.", "calls"),
        (b"cbuiltins\ntype\nK\x05\x85R.", "asks for the type of 5"),
        (b"ccollections\ndeque\nK\x05\x85R.", "made of a list"),
        (b"cmath\nfactorial\nK\x05\x85R.", "calls"),
        (b"clogging\ngetLogger\nK\x05\x85R.", "is a text"),
        (b"ctyping\nget_type_hints\nK\x05\x85R.", "calls"),
        (b"c_operator\ngetitem\n](K\x05eK\x00\x86R.", "calls"),
        (b"ctyping\nsys\n.", "asks for"),
        (b"cfunctools\nreduce\nc_operator\nadd\n](K\x05e\x86R.", "unites types"),
        (b"cfunctools\nreduce\nc_operator\nor_\n](K\x05e\x86R.", "unites types"),
    ],
)
def test_hostile_values_are_refused(data, text):
    pytest.importorskip("numpy")
    with pytest.raises(UnpicklingError, match=text):
        mt.load(repickled(b"\x80\x02" + data), weights_only=False)


def test_types_of_numpy_are_values():
    np = pytest.importorskip("numpy")
    assert round_trip([np.float32], weights_only=False) == [np.float32]


# ---- whole modules, optimisers and what hangs on them ----


class Held(mt.nn.Module):
    """Keeps all that a script's module may: methods as hooks, handles, functions, partials, nested classes, distributions."""

    class Inner(mt.nn.Linear):
        pass

    def __init__(self):
        super().__init__()
        self.inner = self.Inner(2, 2)
        self.seen = []
        self.handle = self.inner.register_forward_hook(self.note)
        self.inner.register_forward_pre_hook(scaled_input, with_kwargs=True)
        self.act, self.norm = mt.tanh, functools.partial(mt.nn.LayerNorm, eps=0.5)
        self.prior = mt.distributions.Normal(mt.zeros(2), 1.0)
        self.kind = self.Inner

    def note(self, module, args, output):
        self.seen.append(output.shape)

    def forward(self, x):
        return self.norm(2)(self.act(self.inner(x, scale=2.0))) + self.prior.mean


def scaled_input(module, args, kwargs):
    return (args[0] * kwargs.pop("scale"),), kwargs


class Numbers(mt.utils.data.Dataset, Generic[T]):
    def __init__(self):
        self.data = mt.arange(5)

    def __getitem__(self, i):
        return self.data[i]

    def __len__(self):
        return len(self.data)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    depth: int


@formats
@pytest.mark.parametrize("protocol", [2, 5])
def test_a_module_with_all_that_it_holds_is_read(protocol, zipped):
    model = Held()
    x = mt.ones(3, 2)
    got = round_trip(model, zipped, protocol=protocol, weights_only=False)
    assert mt.equal(got(x), model(x)) and got.seen == [(3, 2)] and got.kind is Held.Inner
    got.handle.remove()
    late = got.inner.register_forward_hook(lambda *args: got.seen.append("late"))
    got(x)
    assert got.seen == [(3, 2), "late"] and len(got.inner._forward_pre_hooks) == 1
    late.remove()
    assert model.seen == [(3, 2)]  # the other's hook is its own
    with pytest.raises(UnpicklingError, match="or read modules and plain objects with weights_only=False"):
        round_trip(model, zipped, protocol=protocol)


def test_a_new_hook_takes_no_number_of_a_loaded_one():
    second = mt.nn.Linear(1, 1)
    number = mt.nn.Linear(1, 1).register_forward_hook(scaled_input).id + 1  # the next one's
    second._forward_pre_hooks[number] = scaled_input
    assert second.register_forward_pre_hook(doubled).id != number and len(second._forward_pre_hooks) == 2


@formats
def test_optimisers_schedules_and_data_go_on_as_they_were(zipped):
    def trained():
        mt.manual_seed(0)
        model = mt.nn.Sequential(mt.nn.utils.weight_norm(mt.nn.Linear(3, 2)), mt.nn.LazyLinear(1))
        model(mt.ones(1, 3))
        optimizer = mt.optim.Adam(model.parameters(), 0.1, amsgrad=True)
        return [model, optimizer, mt.optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=9)]

    def step(model, optimizer, schedule):
        optimizer.zero_grad()
        model(mt.ones(2, 3)).pow(2).sum().backward()
        optimizer.step()
        schedule.step()
        return [p.tolist() for p in model.parameters()], schedule.get_last_lr()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = trained()
        step(*parts)
        read = round_trip(parts, zipped, weights_only=False)
        assert read[2].optimizer is read[1] and read[1].param_groups[0]["params"][0] is next(read[0].parameters())
        for _ in range(3):
            assert step(*read) == step(*parts)


@formats
def test_lazy_modules_and_data_are_read(zipped):
    lazy = round_trip(mt.nn.LazyLinear(2, dtype=mt.float64), zipped, weights_only=False)
    assert lazy(mt.ones(1, 3, dtype=mt.float64)).shape == (1, 2) and type(lazy) is mt.nn.Linear
    half, rest = mt.utils.data.random_split(Numbers(), [2, 3], mt.Generator().manual_seed(0))
    pair = round_trip([half, rest, mt.utils.data.TensorDataset(mt.ones(2)), Frozen(3)], zipped, weights_only=False)
    assert sorted(int(n) for part in pair[:2] for n in part) == [0, 1, 2, 3, 4] and pair[2][0][0] == 1 and pair[3] == Frozen(3)
    packed = mt.nn.utils.rnn.pack_sequence([mt.ones(3), mt.ones(2)])
    got, (values, indices) = round_trip([packed, mt.max(mt.eye(2), 0)], zipped, weights_only=False)
    assert got.batch_sizes.tolist() == [2, 2, 1] and values.tolist() == [1, 1] and indices.tolist() == [0, 1]


def test_what_the_user_vouches_for_is_read_by_default():
    model = mt.nn.Sequential(mt.nn.Linear(2, 1))
    names = [mt.nn.Sequential, mt.nn.Linear]
    with mt.serialization.safe_globals(names):
        assert mt.equal(round_trip(model)(mt.ones(1, 2)), model(mt.ones(1, 2)))
    with pytest.raises(UnpicklingError, match="Linear"), mt.serialization.safe_globals(names[:1]):
        round_trip(model)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"cbuiltins\ngetattr\ncmortice.nn\nLinear\nX\x04\0\0\0load\x86R.", "asks for 'load' of a type"),
        (b"cbuiltins\ngetattr\ncbuiltins\nint\nX\x04\0\0\0real\x86R.", "asks for 'real'"),
        (b"cbuiltins\ngetattr\ncmortice.nn\nLinear\nX\x09\0\0\0__class__\x86R.", "asks for '__class__'"),
        (b"ctorch\nload\n.", "asks for torch.load"),
        (b"ctorch\nsave\n.", "asks for torch.save"),
        (b"ctorch.nn.functional\nmortice\n.", "asks for torch.nn.functional.mortice"),
        (b"ctorch.nn.modules.linear\nLinear\nK\x05\x85R.", "calls 'Linear'"),
        (b"ctorch.optim.sgd\nSGD\nK\x05\x85\x81.", "of 1 arguments"),
        (b"cfunctools\npartial\nK\x05\x85R.", "a partial is made of a class derived"),
        (b"ctorchvision.datasets.utils\ndownload_url\n.", "asks for torchvision.datasets.utils.download_url"),
        (b"ctorchvision\n__getattr__\n.", "asks for"),
        (b"ctorch\nrelu\nK\x05\x85R.", "calls"),
        (b"ctorch.nn.doctor\n__main__\n.", "asks for"),
    ],
)
def test_names_of_the_library_are_not_a_way_to_run_it(data, text):
    with pytest.raises(UnpicklingError, match=text):
        mt.load(repickled(b"\x80\x02" + data), weights_only=False)


def test_a_class_that_nothing_has_imported_is_named():
    with pytest.raises(UnpicklingError, match="or import my_models first"):
        mt.load(repickled(b"\x80\x02cmy_models\nNet\n."), weights_only=False)


def test_a_class_that_its_module_does_not_have_is_named(monkeypatch):
    kind = type("Gone", (mt.nn.Module,), {"__module__": __name__, "__qualname__": "Gone"})
    monkeypatch.setattr(sys.modules[__name__], "Gone", kind, raising=False)
    file = io.BytesIO()
    mt.save(kind(), file)
    monkeypatch.delattr(sys.modules[__name__], "Gone")
    for error in (AttributeError, UnpicklingError):
        file.seek(0)
        with pytest.raises(error, match="Can't get attribute 'Gone' on <module"):
            mt.load(file, weights_only=False)


def test_a_partial_of_the_user_s_function_needs_to_be_allowed():
    value = functools.partial(doubled, 2)
    with pytest.raises(UnpicklingError, match="or of what add_safe_globals allows; got 'doubled'"):
        round_trip(value, weights_only=False)
    with mt.serialization.safe_globals([doubled]):
        assert round_trip(value, weights_only=False)() == 4
    assert round_trip(functools.partial(mt.nn.functional.gelu, approximate="tanh"), weights_only=False).keywords


class Slope(mt.distributions.AffineTransform):
    pass


@pytest.mark.parametrize("kind", [Held, Slope, Numbers])
def test_a_partial_of_the_user_s_class_derived_from_ours_is_read(kind):
    assert round_trip(functools.partial(kind, 2.0), weights_only=False).func is kind


def test_names_that_are_not_read_by_default_are_listed():
    buffer = io.BytesIO()
    mt.save([mt.nn.Linear(1, 1), Plain(4), mt.ones(1), {1}, collections.Counter("a")], buffer)
    buffer.seek(0)
    found = mt.serialization.get_unsafe_globals_in_checkpoint(buffer)
    assert set(found) >= {"mortice.nn.linear.Linear", f"{__name__}.Plain"} and len(found) == 2
    with mt.serialization.safe_globals([Plain]):
        buffer.seek(0)
        assert mt.serialization.get_unsafe_globals_in_checkpoint(buffer) == ["mortice.nn.linear.Linear"]
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        mt.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"no file"))


def test_a_function_may_send_storages_where_load_would():
    buffer = io.BytesIO()
    mt.save(mt.ones(2), buffer)
    buffer.seek(0)
    place = mt.serialization.default_restore_location
    assert mt.load(buffer, map_location=lambda storage, location: place(storage, "cpu")).tolist() == [1, 1]
    assert mt.storage.UntypedStorage is mt.UntypedStorage and mt.storage.TypedStorage is mt.TypedStorage


NAMES = {
    "torch.nn.modules.linear.Linear": mt.nn.Linear, "torch.nn.Linear": mt.nn.Linear, "torch.nn.functional.gelu": mt.nn.functional.gelu,
    "torch._C._nn.gelu": mt.nn.functional.gelu, "torch._C._linalg.linalg_norm": mt.linalg.norm,
    "torch._C._special.special_expm1": mt.special.expm1, "torch.functional.norm": mt.norm, "torch.optim.adamw.AdamW": mt.optim.AdamW,
    "torch.optim.lr_scheduler.StepLR": mt.optim.lr_scheduler.StepLR, "torch.nn.utils.rnn.PackedSequence": mt.nn.utils.rnn.PackedSequence,
    "torch.utils.data.dataset.Subset": mt.utils.data.Subset, "torch.distributions.normal.Normal": mt.distributions.Normal,
    "torch.nn.init.xavier_uniform_": mt.nn.init.xavier_uniform_, "torch.return_types.max": mt.return_types.max,
    "torchvision.models.resnet.ResNet": "mortice.vision.models.resnet.ResNet",
    "torchvision.models.mobilenetv2.InvertedResidual": "mortice.vision.models.mobilenetv2.InvertedResidual",
    "torchvision.models.shufflenetv2.InvertedResidual": "mortice.vision.models.shufflenetv2.InvertedResidual",
    "torchvision.models.segmentation.fcn.FCN": "mortice.vision.models.segmentation.fcn.FCN",
    "torchvision.models.video.resnet.Conv2Plus1D": "mortice.vision.models.video.resnet.Conv2Plus1D",
    "torchvision.models.swin_transformer.PatchMergingV2": "mortice.vision.models.swin_transformer.PatchMergingV2",
    "torchvision.ops.misc.Conv2dNormActivation": "mortice.vision.ops.misc.Conv2dNormActivation",
    "torch.load": None, "torch.optim.os.system": None, "torch.serialization.load": None, "torch.utils.data.DataLoader": None,
    "torch.utils.data.dataloader.DataLoader": None, "mortice.utils.data.pool.Workers": None, "mortice.utils.data.sharing._Pickler": None,
    "torch.utils.data._utils.collate.default_collate": mt.utils.data.default_collate,
    "torchaudio.models.Thing": None,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_pytorch_s_names_have_one_place_here(name):
    from mortice.lazy import behind
    from mortice.serialize import homes

    found, want = homes.look_up(*name.rsplit(".", 1)), NAMES[name]
    if isinstance(want, str):
        assert f"{found.__module__}.{found.__qualname__}" == want
    else:
        assert behind(found) is behind(want)  # which may ask classes first


class Marked(mt.Tensor):
    def __new__(cls, data, mark):
        made = data.as_subclass(cls)
        made.mark = mark
        return made

    def __init__(self, *args):
        self.began = True


class Remembering(mt.Tensor):
    def __setstate__(self, state):
        raise AssertionError("code of the class ran")


class Outside:
    def __reduce__(self):
        return Marked, (mt.ones(2), 1)


@formats
def test_tensors_of_a_class_of_their_own_are_read_without_a_call_of_it(zipped):
    x = Marked(mt.arange(3.0), ["m"])
    for value in (x, mt.nn.Parameter(x), x.clone().as_subclass(Marked).requires_grad_()):
        value.began = False
        got = round_trip(value, zipped, weights_only=False)
        assert type(got) is Marked and got.tolist() == [0, 1, 2] and got.began is False
        assert got.requires_grad is value.requires_grad and isinstance(got, mt.nn.Parameter) is isinstance(value, mt.nn.Parameter)
    assert round_trip(x, zipped, weights_only=False).mark == ["m"]
    with mt.serialization.safe_globals([Marked]):  # nor is it called where it was allowed
        assert type(round_trip(x, zipped, weights_only=True)) is Marked
    with pytest.raises(UnpicklingError, match="the file asks for .*Marked"):
        round_trip(x, zipped, weights_only=True)


@formats
def test_a_class_of_tensors_runs_nothing_of_its_own(zipped):
    with pytest.raises(UnpicklingError, match="the file asks for .*Remembering"):
        round_trip(mt.ones(2).as_subclass(Remembering), zipped, weights_only=False)
    with pytest.raises(UnpicklingError, match="the file calls 'Marked'; nothing was executed"):
        round_trip(Outside(), zipped, weights_only=False)
    with pytest.raises(UnpicklingError):  # as what makes the values that are lacking
        round_trip(collections.defaultdict(Marked), zipped, weights_only=False)


def test_a_bound_method_of_a_tensor_is_read_but_not_among_weights():
    x = mt.arange(4.0)
    got = round_trip([x.add, x.reshape], weights_only=False)
    assert got[0](1).tolist() == [1, 2, 3, 4] and got[1](2, 2).shape == (2, 2)
    with pytest.raises(pickle.UnpicklingError):
        round_trip([x.add], weights_only=True)


def test_storages_are_asked_how_files_name_them():
    storage = mt.ones(2).untyped_storage()
    assert mt.serialization.location_tag(storage) == str(mt.ones(2).device)
    assert mt.serialization.normalize_storage_type(type(storage)) is mt.UntypedStorage


@pytest.mark.parametrize("kind", [dict, type])
def test_what_others_teach_python_s_pickler_changes_no_file(kind, monkeypatch):
    monkeypatch.setitem(pickle._Pickler.dispatch, kind, lambda pickler, obj: pickler.save("theirs"))  # as dill does
    spec = importlib.util.find_spec("mortice.serialize.writing")
    writing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writing)
    sink = io.BytesIO()
    writing.Pickler(sink).dump([{"a": int}])
    assert pickle.loads(sink.getvalue()) == [{"a": int}]
