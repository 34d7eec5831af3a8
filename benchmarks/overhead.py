"""What the framework itself costs: 4x4 operands, long chains, a tiny training step; kernels take no time."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import Case, Timed, fill, positive, wave


def _pair(operation: str, *, grad: bool) -> Any:
    def setup(t: Any) -> Timed:
        x, y = wave(t, 4, 4), positive(t, 4, 4)
        x.requires_grad_(grad)
        function = getattr(t, operation)
        return lambda: function(x, y)

    return setup


def _jax_pair(operation: str) -> Any:
    def setup(jnp: Any) -> Timed:
        x, y = wave(jnp, 4, 4), positive(jnp, 4, 4)
        function = getattr(jnp, operation)
        return lambda: function(x, y).block_until_ready()

    return setup


def _operator(t: Any) -> Timed:
    x, y = wave(t, 4, 4), positive(t, 4, 4)
    return lambda: x * y


def _scalar(t: Any) -> Timed:
    x = wave(t, 4, 4)
    return lambda: x * 2.0


def _broadcast(t: Any) -> Timed:
    x, y = wave(t, 4, 4), positive(t, 4)
    return lambda: x + y


def _sum(t: Any) -> Timed:
    x = positive(t, 4, 4)
    return lambda: x.sum()


def _sum_dim(t: Any) -> Timed:
    x = positive(t, 4, 4)
    return lambda: x.sum(dim=1, keepdim=True)


def _reshape(t: Any) -> Timed:
    x = positive(t, 4, 4)
    return lambda: x.reshape(2, 8)


def _transpose(t: Any) -> Timed:
    x = positive(t, 4, 4)
    return lambda: x.transpose(0, 1)


def _slice(t: Any) -> Timed:
    x = positive(t, 4, 4)
    return lambda: x[1:3]


def _element(t: Any) -> Timed:
    x = positive(t, 4, 4)
    return lambda: x[1, 2]


def _of(function: Any) -> Any:
    """Return a case of two matrices, a vector of positions and a mask, which the function may write into."""

    def setup(t: Any) -> Timed:
        x, y, i = wave(t, 4, 4), positive(t, 4, 4), t.arange(4)
        mask = x > 0
        return lambda: function(t, x, y, i, mask)

    return setup


def _array(function: Any) -> Any:
    """Return a case of an array of NumPy's."""

    def setup(t: Any) -> Timed:
        array = wave(t, 4, 4).numpy()
        return lambda: function(t, array)

    return setup


def _quietly(function: Any) -> Any:
    """Return a case of a hundred calls that nothing records."""

    def setup(t: Any) -> Timed:
        x, y = wave(t, 4, 4), positive(t, 4, 4)

        def calls() -> Any:
            with t.no_grad():
                for _ in range(100):
                    made = function(x, y)
            return made

        return calls

    return setup


def _put(key: Any, value: Any) -> Any:
    def write(t: Any, x: Any, y: Any, i: Any, mask: Any) -> Any:
        x[key(i, mask)] = value
        return x

    return _of(write)


def _matmul(t: Any) -> Timed:
    x, y = wave(t, 4, 4), positive(t, 4, 4)
    return lambda: x @ y


def _in_place(t: Any) -> Timed:
    x, y = wave(t, 4, 4), positive(t, 4, 4) * 0.0
    return lambda: x.add_(y)


def _backward_of_one(t: Any) -> Timed:
    x, y = wave(t, 4, 4).requires_grad_(), positive(t, 4, 4)

    def step() -> Any:
        x.grad = None
        (x * y).sum().backward()
        return x.grad

    return step


def _chain(t: Any, length: int = 1000) -> Any:
    scale, shift = positive(t, 4, 4) * 0.1 + 0.9, positive(t, 4, 4) * 0.01

    def forward(x: Any) -> Any:
        for _ in range(length // 2):
            x = x * scale + shift
        return x

    return forward


def _chain_forward(t: Any) -> Timed:
    forward, x = _chain(t), positive(t, 4, 4)
    return lambda: forward(x)


def _chain_backward(t: Any) -> Timed:
    forward, x = _chain(t), positive(t, 4, 4).requires_grad_()

    def step() -> Any:
        x.grad = None
        forward(x).sum().backward()
        return x.grad

    return step


def _small_model(t: Any) -> Any:
    return fill(t, t.nn.Sequential(t.nn.Linear(16, 32), t.nn.Tanh(), t.nn.Linear(32, 1)))


def _small_forward(t: Any) -> Timed:
    model, x = _small_model(t), wave(t, 1, 16)

    def step() -> Any:
        with t.no_grad():
            return model(x)

    return step


def _small_step(optimizer: str, **options: Any) -> Any:
    def setup(t: Any) -> Timed:
        model, x, y = _small_model(t), wave(t, 1, 16), positive(t, 1, 1)
        loss_of = t.nn.MSELoss()
        optim = getattr(t.optim, optimizer)(model.parameters(), **options)

        def step() -> Any:
            optim.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optim.step()
            return loss

        return step

    return setup


_NAMED = [
    ("add 4x4, no grad", _pair("add", grad=False), _jax_pair("add")),
    ("mul 4x4, no grad", _pair("mul", grad=False), _jax_pair("multiply")),
    ("add 4x4, recorded", _pair("add", grad=True), None),
    ("mul 4x4, recorded", _pair("mul", grad=True), None),
    ("x * y", _operator, None),
    ("x * 2.0", _scalar, None),
    ("x + row, broadcast", _broadcast, None),
    ("x @ y 4x4", _matmul, None),
    ("x.add_(y)", _in_place, None),
    ("x.sum()", _sum, None),
    ("x.sum(dim=1, keepdim=True)", _sum_dim, None),
    ("x.reshape(2, 8)", _reshape, None),
    ("x.transpose(0, 1)", _transpose, None),
    ("x.view(-1)", _of(lambda t, x, y, i, mask: x.view(-1)), None),
    ("x.T", _of(lambda t, x, y, i, mask: x.T), None),
    ("x[1:3]", _slice, None),
    ("x[1, 2]", _element, None),
    ("x[:, None]", _of(lambda t, x, y, i, mask: x[:, None]), None),
    ("x[i]", _of(lambda t, x, y, i, mask: x[i]), None),
    ("x[i, i]", _of(lambda t, x, y, i, mask: x[i, i]), None),
    ("x[mask]", _of(lambda t, x, y, i, mask: x[mask]), None),
    ("x[0] = 1.0", _put(lambda i, mask: 0, 1.0), None),
    ("x[i] = 1.0", _put(lambda i, mask: i, 1.0), None),
    ("x[mask] = 0.0", _put(lambda i, mask: mask, 0.0), None),
    ("x.zero_()", _of(lambda t, x, y, i, mask: x.zero_()), None),
    ("x.masked_fill_(mask, 0.0)", _of(lambda t, x, y, i, mask: x.masked_fill_(mask, 0.0)), None),
    ("where", _of(lambda t, x, y, i, mask: t.where(mask, x, y)), None),
    ("clamp", _of(lambda t, x, y, i, mask: x.clamp(0.0, 1.0)), None),
    ("cat", _of(lambda t, x, y, i, mask: t.cat([x, y])), None),
    ("stack", _of(lambda t, x, y, i, mask: t.stack([x, y])), None),
    ("chunk", _of(lambda t, x, y, i, mask: x.chunk(2)[0]), None),
    ("unbind", _of(lambda t, x, y, i, mask: x.unbind()[0]), None),
    ("einsum", _of(lambda t, x, y, i, mask: t.einsum("ij,jk->ik", x, y)), None),
    ("one_hot", _of(lambda t, x, y, i, mask: t.nn.functional.one_hot(i, 4)), None),
    ("scatter_", _of(lambda t, x, y, i, mask: x.scatter_(0, i[None], y)), None),
    ("from_numpy", _array(lambda t, a: t.from_numpy(a)), None),
    ("as_tensor(array)", _array(lambda t, a: t.as_tensor(a)), None),
    ("x.numpy()", _of(lambda t, x, y, i, mask: x.numpy()), None),
    ("x.tolist()", _of(lambda t, x, y, i, mask: (x.tolist(), y)[1]), None),
    ("equal", _of(lambda t, x, y, i, mask: (t.equal(x, y), y)[1]), None),
    ("nonzero", _of(lambda t, x, y, i, mask: t.nonzero(mask)), None),
    ("kron", _of(lambda t, x, y, i, mask: t.kron(x, y)), None),
    ("tril", _of(lambda t, x, y, i, mask: x.tril()), None),
    ("eye", _of(lambda t, x, y, i, mask: t.eye(4)), None),
    ("avg_pool2d", _of(lambda t, x, y, i, mask: t.nn.functional.avg_pool2d(x[None], 2)), None),
    ("rand", _of(lambda t, x, y, i, mask: (t.rand(4, 4), y)[1]), None),
    ("x.normal_()", _of(lambda t, x, y, i, mask: (x.normal_(), y)[1]), None),
    ("x.uniform_(-1, 1)", _of(lambda t, x, y, i, mask: (x.uniform_(-1, 1), y)[1]), None),
    ("randperm", _of(lambda t, x, y, i, mask: (t.randperm(16), y)[1]), None),
    ("nn.Linear(16, 32)", _of(lambda t, x, y, i, mask: (t.nn.Linear(16, 32), y)[1]), None),
    ("x * y under no_grad, 100 times", _quietly(lambda x, y: x * y), None),
    ("x @ y under no_grad, 100 times", _quietly(lambda x, y: x @ y), None),
    ("zeros", _of(lambda t, x, y, i, mask: t.zeros(4, 4)), None),
    ("tensor([1.0, 2.0])", _of(lambda t, x, y, i, mask: t.tensor([1.0, 2.0])), None),
    ("x.to(float64)", _of(lambda t, x, y, i, mask: x.to(t.float64)), None),
    ("cross_entropy", _of(lambda t, x, y, i, mask: t.nn.functional.cross_entropy(x, i)), None),
    ("(x * y).sum().backward()", _backward_of_one, None),
    ("chain of 1,000 ops, forward", _chain_forward, None),
    ("chain of 1,000 ops, with backward", _chain_backward, None),
    ("MLP 16-32-1 batch 1, forward", _small_forward, None),
    ("MLP 16-32-1 batch 1, SGD step", _small_step("SGD", lr=0.001), None),
    ("MLP 16-32-1 batch 1, Adam step", _small_step("Adam", lr=0.0001), None),
]

CASES = [Case("overhead", name, setup, jax) for name, setup, jax in _NAMED]
