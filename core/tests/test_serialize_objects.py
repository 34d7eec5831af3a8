"""What `load(weights_only=False)` reads besides modules: values of plain classes and NumPy's arrays, and nothing that runs."""

import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import pathlib
import sys
import threading
import types

import pytest
from checkpoint_files import repickled, round_trip

import mortice as mt
from mortice.serialization import UnpicklingError

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


Pair = collections.namedtuple("Pair", "x y")

VALUES = {
    "dataclass": Settings(3, (1, 2)), "object": Plain(4), "slots": Slotted(5), "attributes": Attributes(a=1), "namedtuple": Pair(1, [2]),
    "enum": {Colour.BLUE: [Colour.RED]}, "class": Plain, "function": doubled,
    "namespace": argparse.Namespace(lr=0.1, act=doubled, seed=None), "simple": types.SimpleNamespace(a=b""),
    "path": pathlib.Path("a", "b"), "moment": datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC),
    "span": datetime.timedelta(1, 2), "default": collections.defaultdict(list, a=[1]), "decimal": decimal.Decimal("1.50"),
    "fraction": fractions.Fraction(1, 3),
}  # fmt: skip


@formats
@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("kind", VALUES)
def test_objects_of_plain_classes_are_read_when_asked_for(kind, protocol, zipped):
    value = {"x": [VALUES[kind], mt.ones(2)]}
    with pytest.raises(UnpicklingError, match="or read modules and plain objects with weights_only=False"):
        round_trip(value, zipped, protocol=protocol)
    got, t = round_trip(value, zipped, protocol=protocol, weights_only=False)["x"]
    assert type(got) is type(VALUES[kind]) and got == VALUES[kind] and t.tolist() == [1, 1]
    if kind == "default":
        assert got["b"] == []


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
    ],
)
def test_hostile_values_are_refused(data, text):
    pytest.importorskip("numpy")
    with pytest.raises(UnpicklingError, match=text):
        mt.load(repickled(b"\x80\x02" + data), weights_only=False)
