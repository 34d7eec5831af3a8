"""A pickle machine that builds plain values and asks its owner about everything else.

Unlike Python's, it has no way to import, to call or to set anything by itself: names, calls, new objects and their
state all go to `Owner`, and only containers that it made itself are written.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

_KEY_PARTS = 1000  # of a tuple as a key, which would otherwise be hashed for ever if it nests itself many times


class UnpicklingError(pickle.UnpicklingError, RuntimeError):
    """A file that is no checkpoint, is damaged, or holds what is not read from files."""


class Empty(UnpicklingError, EOFError):
    """A file without a byte to read."""


class Anything(dict[Any, Any]):
    """Stands for whatever a pickle makes that is run for something else."""

    __hash__ = object.__hash__

    def _ignore(self, values: Any) -> None:
        pass

    extend = update = _ignore


class Owner:
    """What a pickle may do beyond plain values: nothing, unless a subclass says otherwise."""

    def find(self, module: str, name: str) -> Any:
        """Return what stands for a name."""
        raise UnpicklingError(f"load: the file asks for {module}.{name}; expected plain values.")

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Call what `find` returned."""
        raise UnpicklingError(f"load: the file calls {function!r}; expected plain values.")

    def new(self, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make an object without initialising it."""
        raise UnpicklingError(f"load: the file makes a {kind!r}; expected plain values.")

    def build(self, obj: Any, state: Any) -> None:
        """Give an object its state."""
        kind = "type" if isinstance(obj, type) else type(obj).__name__
        raise UnpicklingError(f"load: the file gives state to a {kind}; expected plain values.")

    def persistent(self, reference: Any) -> Any:
        """Return what is stored outside the pickle."""
        raise UnpicklingError("load: the file refers to data outside the pickle; expected plain values.")

    def vouches(self, obj: Any) -> bool:
        """Tell whether an object that is no plain value may be a key, or a dict that is filled."""
        return False


def check_key(key: Any, owner: Owner) -> None:
    """Refuse keys that cannot be hashed, or not in sensible time."""
    left, parts = [key], 0
    while left:
        part = left.pop()
        parts += 1
        if isinstance(part, tuple):
            left.extend(part[: _KEY_PARTS + 1])
        elif not (part is None or isinstance(part, (str, bytes, int, float, complex)) or owner.vouches(part)):
            raise UnpicklingError(f"load: a {type(part).__name__} cannot be a key of a dict or an element of a set.")
        if parts + len(left) > _KEY_PARTS:
            raise UnpicklingError(f"load: a key has more than {_KEY_PARTS} parts.")


class Machine:
    """Runs one pickle."""

    def __init__(self, data: Any, owner: Owner, encoding: str = "utf-8") -> None:
        self.data = bytes(data)
        self.owner, self.encoding = owner, encoding
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Return the value of the pickle.

        Raises:
            UnpicklingError: for what it may not do; IndexError, KeyError, TypeError, ValueError and the like for a
                pickle that is damaged.
        """
        steps, data, size = _STEPS, self.data, len(self.data)
        while self.at < size:
            code = data[self.at]
            self.at += 1
            step = steps.get(code)
            if step is None:
                if code == 0x2E:  # "."
                    return self.stack.pop()
                raise UnpicklingError(f"load: the pickle has an instruction {bytes([code])!r} that is not read.")
            step(self)
        raise EOFError("the pickle has no end")

    # ---- reading the bytes ----

    def take(self, n: int) -> bytes:
        start, end = self.at, self.at + n
        if n < 0 or end > len(self.data):
            raise EOFError("the pickle ends too early")
        self.at = end
        return self.data[start:end]

    def number(self, n: int) -> int:
        return int.from_bytes(self.take(n), "little")

    def line(self) -> str:
        start, end = self.at, self.data.find(b"\n", self.at, self.at + 1000)
        if end < 0:
            raise EOFError("the pickle ends in a name")
        self.at = end + 1
        return self.data[start:end].decode("utf-8")

    # ---- the stack ----

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if self.marks and self.marks[-1] == len(self.stack):
            raise IndexError("an instruction takes more than there is")
        return self.stack.pop()

    def top(self) -> Any:
        value = self.pop()
        self.stack.append(value)
        return value

    def since_mark(self) -> list[Any]:
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    # ---- instructions ----

    def global_(self) -> None:
        module = self.line()
        self.push(self.owner.find(module, self.line()))

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        if not (isinstance(name, str) and isinstance(module, str)):
            raise TypeError("a name that is no text")
        self.push(self.owner.find(module, name))

    def reduce(self) -> None:
        args, function = self.pop(), self.pop()
        self.push(self.owner.call(function, _tuple(args)))

    def newobj(self) -> None:
        args, kind = self.pop(), self.pop()
        self.push(self.owner.new(kind, _tuple(args), {}))

    def newobj_ex(self) -> None:
        kwargs, args, kind = self.pop(), self.pop(), self.pop()
        if not isinstance(kwargs, dict) or not all(isinstance(k, str) for k in kwargs):
            raise TypeError("arguments that are no dict")
        self.push(self.owner.new(kind, _tuple(args), kwargs))

    def build(self) -> None:
        state = self.pop()
        self.owner.build(self.top(), state)

    def append(self, values: list[Any]) -> None:
        target = self.top()
        if type(target) not in (list, deque, Anything):
            raise UnpicklingError(f"load: the file appends to a {type(target).__name__}; expected a list.")
        target.extend(values)

    def set_items(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) not in (dict, OrderedDict) and not (isinstance(target, dict) and self.owner.vouches(target)):
            raise UnpicklingError(f"load: the file sets items of a {type(target).__name__}; expected a dict.")
        self.fill(target, items)

    def fill(self, target: Any, items: list[Any]) -> Any:
        if len(items) % 2:
            raise ValueError("a key without a value")
        for key, value in zip(items[::2], items[1::2]):
            check_key(key, self.owner)
            target[key] = value
        return target

    def add_items(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) not in (set, Anything):
            raise UnpicklingError(f"load: the file adds to a {type(target).__name__}; expected a set.")
        for item in items:
            check_key(item, self.owner)
        target.update(items)

    def frozen(self) -> None:
        items = self.since_mark()
        for item in items:
            check_key(item, self.owner)
        self.push(frozenset(items))

    def last(self, n: int) -> tuple[Any, ...]:
        return tuple([self.pop() for _ in range(n)][::-1])

    def text(self, n: int) -> str:
        # Surrogates pass, as in Python's own pickles.
        return self.take(n).decode("utf-8", "surrogatepass")

    def remember(self, index: int) -> None:
        self.memo[index] = self.top()


def _tuple(args: Any) -> tuple[Any, ...]:
    if not isinstance(args, tuple):
        raise TypeError("arguments that are no tuple")
    return args


def _py2_text(m: Machine, n: int) -> Any:
    data = m.take(n)
    return data if m.encoding == "bytes" else data.decode(m.encoding)


def _as_text(reference: Any) -> Any:
    """Return a reference whose names, which encoding="bytes" leaves as bytes, are text."""
    return tuple(p.decode() if isinstance(p, bytes) else p for p in reference) if isinstance(reference, tuple) else reference


_STEPS: dict[int, Callable[[Machine], Any]] = {
    code[0]: step
    for code, step in {
        # plain values
        pickle.NONE: lambda m: m.push(None),
        pickle.NEWTRUE: lambda m: m.push(True),
        pickle.NEWFALSE: lambda m: m.push(False),
        pickle.BININT: lambda m: m.push(int.from_bytes(m.take(4), "little", signed=True)),
        pickle.BININT1: lambda m: m.push(m.number(1)),
        pickle.BININT2: lambda m: m.push(m.number(2)),
        pickle.LONG1: lambda m: m.push(int.from_bytes(m.take(m.number(1)), "little", signed=True)),
        pickle.LONG4: lambda m: m.push(int.from_bytes(m.take(m.number(4)), "little", signed=True)),
        pickle.BINFLOAT: lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
        pickle.SHORT_BINUNICODE: lambda m: m.push(m.text(m.number(1))),
        pickle.BINUNICODE: lambda m: m.push(m.text(m.number(4))),
        pickle.BINUNICODE8: lambda m: m.push(m.text(m.number(8))),
        pickle.SHORT_BINSTRING: lambda m: m.push(_py2_text(m, m.number(1))),
        pickle.BINSTRING: lambda m: m.push(_py2_text(m, m.number(4))),
        pickle.SHORT_BINBYTES: lambda m: m.push(m.take(m.number(1))),
        pickle.BINBYTES: lambda m: m.push(m.take(m.number(4))),
        pickle.BINBYTES8: lambda m: m.push(m.take(m.number(8))),
        pickle.BYTEARRAY8: lambda m: m.push(bytearray(m.take(m.number(8)))),
        # containers
        pickle.EMPTY_LIST: lambda m: m.push([]),
        pickle.EMPTY_DICT: lambda m: m.push({}),
        pickle.EMPTY_TUPLE: lambda m: m.push(()),
        pickle.EMPTY_SET: lambda m: m.push(set()),
        pickle.TUPLE1: lambda m: m.push(m.last(1)),
        pickle.TUPLE2: lambda m: m.push(m.last(2)),
        pickle.TUPLE3: lambda m: m.push(m.last(3)),
        pickle.TUPLE: lambda m: m.push(tuple(m.since_mark())),
        pickle.LIST: lambda m: m.push(m.since_mark()),
        pickle.DICT: lambda m: m.push(m.fill({}, m.since_mark())),
        pickle.FROZENSET: Machine.frozen,
        pickle.APPEND: lambda m: m.append([m.pop()]),
        pickle.APPENDS: lambda m: m.append(m.since_mark()),
        pickle.SETITEM: lambda m: m.set_items(list(m.last(2))),
        pickle.SETITEMS: lambda m: m.set_items(m.since_mark()),
        pickle.ADDITEMS: lambda m: m.add_items(m.since_mark()),
        # stack and memo
        pickle.MARK: lambda m: m.marks.append(len(m.stack)),
        pickle.POP: lambda m: m.pop(),
        pickle.POP_MARK: lambda m: m.since_mark(),
        pickle.DUP: lambda m: m.push(m.top()),
        pickle.BINGET: lambda m: m.push(m.memo[m.number(1)]),
        pickle.LONG_BINGET: lambda m: m.push(m.memo[m.number(4)]),
        pickle.BINPUT: lambda m: m.remember(m.number(1)),
        pickle.LONG_BINPUT: lambda m: m.remember(m.number(4)),
        pickle.MEMOIZE: lambda m: m.remember(len(m.memo)),
        # what the owner decides
        pickle.GLOBAL: Machine.global_,
        pickle.STACK_GLOBAL: Machine.stack_global,
        pickle.REDUCE: Machine.reduce,
        pickle.NEWOBJ: Machine.newobj,
        pickle.NEWOBJ_EX: Machine.newobj_ex,
        pickle.BUILD: Machine.build,
        pickle.BINPERSID: lambda m: m.push(m.owner.persistent(_as_text(m.pop()))),
        # framing
        pickle.PROTO: lambda m: m.number(1),
        pickle.FRAME: lambda m: m.number(8),
    }.items()
}
