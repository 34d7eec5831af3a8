"""Random numbers drawn in C: the words of the stream that the Python functions take, also of several threads."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest
from fast_asked import asked

import mortice as mt
from mortice import fast

pytestmark = pytest.mark.skipif(fast._engine is None, reason="mortice._engine was not built (no compiler, or MORTICE_PURE)")

DRAWS: list[Any] = [
    lambda g: mt.rand(3, 5, generator=g), lambda g: mt.randn(7, dtype=mt.float64, generator=g),
    lambda g: mt.randint(-3, 9, (4,), generator=g), lambda g: mt.randperm(11, generator=g),
    lambda g: mt.empty(6).bernoulli_(0.25, generator=g), lambda g: mt.rand(0, generator=g),
    lambda g: mt.empty(2, 3, dtype=mt.float16).uniform_(-2, 3, generator=g), lambda g: mt.empty(5).normal_(1.5, 0.5, generator=g),
    lambda g: mt.empty(5).exponential_(2.0, generator=g), lambda g: mt.empty(5).random_(3, 8, generator=g),
    lambda g: mt.bernoulli(mt.linspace(0, 1, 9), generator=g), lambda g: mt.empty(4).bernoulli_(mt.tensor(0.5), generator=g),
    lambda g: mt.randint(200, 256, (4,), dtype=mt.uint8, generator=g), lambda g: mt.empty(5).exponential_(generator=g),
    lambda g: mt.empty(3, 4).normal_(generator=g), lambda g: mt.empty(3, 4, dtype=mt.float64).normal_(0, 0.02, generator=g),
    lambda g: mt.zeros(3, 4).t()[1:].uniform_(generator=g)._base, lambda g: mt.zeros(3, 4).t().uniform_(0, 1 / 3, generator=g),
    lambda g: mt.empty(2, dtype=mt.complex64).normal_(generator=g), lambda g: mt.empty(4).normal_(mt.tensor(2.0), generator=g),
]  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS)
def test_draws_take_the_same_words(monkeypatch: Any, draw: Any) -> None:
    def drawn() -> Any:
        g = mt.Generator().manual_seed(5)
        return draw(g).tolist(), draw(g).tolist(), g.offset

    found = drawn()
    monkeypatch.setattr("mortice.ops.random._in_c", None)
    assert drawn() == found


@pytest.mark.skipif(not mt.ones(1).device.backend.mutable, reason="there a write makes anew what shares the memory")
def test_to_fill_a_tensor_with_numbers_is_a_fast_case() -> None:
    x = mt.zeros(4, 4)
    for part in (x, x[1:], x.t(), x.detach(), x.half()):
        for fill in (part.normal_, part.uniform_, part.exponential_, functools.partial(part.normal_, 0.0, 0.02)):
            before = part._version
            assert "_draw" not in asked(lambda fill=fill: fill()) and part._version == before + 1
    with mt.no_grad():
        assert "_draw" not in asked(mt.zeros(3, requires_grad=True).normal_)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        mt.zeros(3, requires_grad=True).normal_()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        mt.zeros(1).expand(3).normal_()
    kept = (mt.ones(3, requires_grad=True) * 1).exp()
    kept.normal_()
    assert kept.grad_fn is not None


def test_a_stream_at_its_end_gives_no_more() -> None:
    g = mt.Generator()
    g._set(0, 2**64 - 5)
    with pytest.raises(RuntimeError, match="all the stream has left"):
        mt.rand(5, generator=g)
    assert mt.rand(4, generator=g).shape == (4,) and g.offset == 2**64 - 1


def test_draws_of_several_threads_share_no_words() -> None:
    g = mt.Generator().manual_seed(1)
    found: list[float] = []
    work = lambda: [found.extend(mt.rand(2, dtype=mt.float64, generator=g).tolist()) or g.take(1) for _ in range(500)]
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert g.offset == 6000 and len(set(found)) == 4000
