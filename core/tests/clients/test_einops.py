"""einops on tensors of every backend: mortice registers itself when einops is imported; no NumPy is passed through."""

from __future__ import annotations

from .check import check_gradients, check_values
from .record import Client, normal, uniform

X = uniform(1, 2, 2, 3, 4)


def rearrange(pattern, **sizes):
    return Client("einops.rearrange", [X], lambda f, x: f(x, pattern, **sizes), gradient=True, note=pattern)


def reduce(pattern, how, **sizes):
    return Client(
        "einops.reduce", [X], lambda f, x: f(x, pattern, how, **sizes), gradient=True, note=f"{how}: {pattern}"
    )


def packed(f, x):
    """Pack arrays of different rank into one, and take them apart again."""
    import einops

    whole, shapes = f([x, x[:, 0], x[:, 0] * 2], "a * c")
    return whole, *einops.unpack(whole, shapes, "a * c")


def unpacked(f, x):
    """Take an array apart."""
    return list(f(x, [(1,), (2,)], "a * c"))


CLIENTS = [
    rearrange("a b c -> (a c) b"),
    rearrange("a b (c d) -> d a b c", d=2),
    rearrange("a b c -> c b a"),
    rearrange("a ... -> ... a"),
    rearrange("a b c -> a 1 b c"),
    Client("einops.rearrange", [X, X], lambda f, x, y: f([x, y], "n a b c -> a n b c"), gradient=True, note="list"),
    reduce("a b (c d) -> a d", "mean", d=2),
    reduce("a b c -> ", "sum"),
    reduce("a b c -> b 1", "max"),
    reduce("a (b k) c -> a c b", "min", k=3),
    reduce("a b c -> b", "prod"),
    Client("einops.repeat", [X], lambda f, x: f(x, "a b c -> a b (c r) q", r=2, q=3), gradient=True),
    Client("einops.einsum", [normal(2, 3), normal(3, 4)], lambda f, x, y: f(x, y, "row k, k col -> col row"), gradient=True),
    Client("einops.pack", [X], packed, gradient=True),
    Client("einops.unpack", [X], unpacked, gradient=True),
    Client("einops.parse_shape", [X], lambda f, x: f(x, "a _ c")),
]  # fmt: skip


def test_the_result_is_numpys(client, device):
    check_values(client, device)


def test_gradients_flow(client, device):
    check_gradients(client, device)
