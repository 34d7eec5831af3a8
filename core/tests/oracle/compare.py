"""When two results count as the same: one tolerance table, and the walk over results that applies it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .samples import describe
from .subject import Subject, dtype_name

# Tolerances in units of the dtype's epsilon, by class of op. Elementwise values are relative to each element; all else
# to the largest magnitude of the result and at least to 1, since sums cancel. TIMES multiplies. Complex types count
# as their parts do.
ULPS = {
    "elementwise": {"half": 2, "single": 8, "double": 8},
    "special": {"half": 4, "single": 64, "double": 256},
    "trigamma": {"half": 4, "single": 512, "double": 4_000_000},  # PyTorch's own is no better
    "composed": {"half": 8, "single": 32, "double": 64},
    "linalg": {"half": 16, "single": 512, "double": 1024},
}
TIMES = (1, 8, 64)  # values, gradients, second gradients
WIDTH = {"float16": "half", "bfloat16": "half", "float32": "single", "complex64": "single"}

TRIGAMMA = {"polygamma": 0, "special.polygamma": 0, "digamma": 1, "lgamma": 2, "mvlgamma": 2}  # from which derivative
SPECIAL = {
    "digamma", "erfinv", "i0", "igamma", "igammac", "lgamma", "logit", "mvlgamma", "polygamma", "sinc",
}  # fmt: skip
FUSED = {"add", "rsub", "sub"}  # with alpha: one rounding or two
CANCELS = {"nn.functional.tanhshrink"}  # x - tanh(x): its error is in ulps of x, not of what is left
LINALG = {
    "addbmm", "addmm", "addmv", "baddbmm", "bmm", "cdist", "cholesky", "cholesky_inverse", "cholesky_solve",
    "corrcoef", "cov", "einsum", "inner", "logdet", "lu", "lu_solve", "lu_unpack", "matmul", "matrix_exp", "mm",
    "__rmatmul__", "mv", "pca_lowrank", "pinverse", "qr", "svd", "svd_lowrank", "tensordot", "stft", "istft",
}  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """One difference between the subject and PyTorch."""

    op: str
    check: str
    dtype: str
    kind: str  # missing value dtype shape structure requires_grad input raised accepted exception
    detail: str
    sample: str

    def __str__(self) -> str:
        return f"{self.check}[{self.op}, {self.dtype}] {self.kind}: {self.detail}" + f"\n    {self.sample}" * bool(
            self.sample
        )


@dataclass(frozen=True)
class Outcome:
    """What a call came to: a value or an exception."""

    value: Any = None
    error: Exception | None = None


def attempt(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Outcome:
    """Call, and hold what it returned or raised."""
    try:
        return Outcome(value=call(*args, **kwargs))
    except Exception as error:
        return Outcome(error=error)


def op_class(op: Any, order: int = 0) -> str:
    """Return the tolerance class of an OpInfo's values or of its gradients of an order."""
    if order >= TRIGAMMA.get(op.name, 3):
        return "trigamma"
    if op.name in SPECIAL or op.name.startswith("special."):
        return "special"
    if op.name in LINALG or op.name.startswith(("linalg.", "fft.")):
        return "linalg"
    elementwise = type(op).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo") and op.name not in FUSED
    return "elementwise" if elementwise else "composed"


def allowed(dtype: torch.dtype, group: str, times: int) -> float:
    """Return the relative error allowed."""
    width = WIDTH.get(dtype_name(dtype), "double")
    return ULPS[group][width] * times * torch.finfo(dtype).eps


def excess(got: torch.Tensor, want: torch.Tensor, group: str, times: int = 1, scale: Any = None) -> torch.Tensor:
    """Return each element's error over what is allowed; NaN meets NaN, and signs of zero are not compared."""
    if not (want.is_floating_point() or want.is_complex()):
        return torch.where(got == want, 0.0, torch.inf)
    wide = torch.complex128 if want.is_complex() else torch.float64
    x, y = got.to(wide), want.to(wide)
    same = (x == y) | (x.isnan() & y.isnan())
    if want.is_complex():  # which parts of a complex infinity are NaN is not agreed anywhere
        same |= ~(torch.isfinite(x) | torch.isfinite(y))
    size = torch.where(torch.isfinite(y), y.abs(), 0.0)
    if size.numel() and (group != "elementwise" or times > 1):
        size = size.max().clamp(min=1.0)
    if scale is not None and scale.shape == y.shape:
        size = torch.maximum(size, scale.abs().to(size.dtype))
    error = (x - y).abs() / (allowed(want.dtype, group, times) * size + torch.finfo(want.dtype).tiny)
    return torch.where(same, 0.0, error.nan_to_num(nan=torch.inf))


def close(got: torch.Tensor, want: torch.Tensor, group: str, times: int = 1) -> bool:
    """Whether two tensors of one dtype and shape agree."""
    return bool((excess(got, want, group, times) <= 1).all())


def fields(value: Any) -> tuple[str, ...] | None:
    """Return the field names of a namedtuple, of Python's sort or of torch's."""
    if type(value) in (tuple, list, torch.Size):
        return None
    return getattr(value, "_fields", None) or getattr(value, "__match_args__", None)


class Compare:
    """Compares one result with PyTorch's: an iterable of (kind, detail)."""

    def __init__(
        self, subject: Subject, group: str, *, times: int = 1, values: bool = True, scale: Any = None
    ) -> None:
        self.subject = subject
        self.group = group
        self.times = times
        self.values = values
        self.scale = scale  # what errors may be relative to, where results are smaller

    def outcomes(self, got: Outcome, want: Outcome) -> Iterator[tuple[str, str]]:
        """Compare two outcomes: both values, or both exceptions of one builtin class."""
        if want.error is not None:
            yield from self.errors(got, want.error)
        elif got.error is not None:
            yield (
                "raised",
                f"{type(got.error).__name__}: {first_line(got.error)}; torch gives {describe(want.value)}",
            )
        else:
            yield from self.results(got.value, want.value)

    def errors(self, got: Outcome, error: Exception) -> Iterator[tuple[str, str]]:
        """Compare with an exception of PyTorch's."""
        expected = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
        if expected in (AssertionError, AttributeError):
            expected = Exception  # nothing to imitate
        said = f"torch raises {expected.__name__}: {first_line(error)}"
        if got.error is None:
            yield "accepted", f"gives {self.show(got.value)}; {said}"
        elif not isinstance(got.error, expected) or isinstance(got.error, RecursionError):
            yield "exception", f"raises {type(got.error).__name__}: {first_line(got.error)}; {said}"

    def results(self, got: Any, want: Any) -> Iterator[tuple[str, str]]:
        """Compare two results, walking into tuples and lists."""
        if isinstance(want, torch.Tensor):
            yield from self.tensors(got, want)
        elif isinstance(want, torch.dtype):
            if dtype_name(got) != dtype_name(want):
                yield "value", f"gives {got!r}; torch gives {want!r}"
        elif isinstance(want, (tuple, list)):
            if not isinstance(got, (tuple, list)) or isinstance(got, tuple) != isinstance(want, tuple):
                yield "structure", f"gives a {type(got).__name__}; torch gives a {type(want).__name__}"
            elif len(got) != len(want):
                yield "structure", f"gives {len(got)} results; torch gives {len(want)}"
            elif fields(got) != fields(want):
                yield "structure", f"has fields {fields(got)}; torch has {fields(want)}"
            else:
                for x, y in zip(got, want):
                    yield from self.results(x, y)
        elif isinstance(want, (bool, int, float, complex)):
            if type(got) is not type(want):
                yield "structure", f"gives a {type(got).__name__} {got!r}; torch gives {want!r}"
            elif self.values and not close(torch.tensor(got), torch.tensor(want), "composed", self.times):
                yield "value", f"gives {got!r}; torch gives {want!r}"
        elif got != want:
            yield "value", f"gives {got!r}; torch gives {want!r}"

    def tensors(self, got: Any, want: torch.Tensor) -> Iterator[tuple[str, str]]:
        """Compare a tensor: dtype and shape, then values if both are the same."""
        if not isinstance(got, self.subject.Tensor):
            yield "structure", f"gives a {type(got).__name__}; torch gives {describe(want)}"
            return
        dtype, shape = dtype_name(got.dtype), tuple(got.shape)
        if dtype != dtype_name(want.dtype):
            yield "dtype", f"gives {dtype}; torch gives {dtype_name(want.dtype)}"
        if shape != tuple(want.shape):
            yield "shape", f"gives {shape}; torch gives {tuple(want.shape)}"
        elif self.values and dtype == dtype_name(want.dtype):
            back = self.subject.back(got)
            error = excess(back, want.detach(), self.group, self.times, self.scale)
            if not bool((error <= 1).all()):
                yield "value", difference(back, want.detach(), error)

    def show(self, value: Any) -> str:
        """Write a result of the subject on one line."""
        if isinstance(value, self.subject.Tensor):
            return describe(self.subject.back(value))
        return f"{len(value)} results" if isinstance(value, (tuple, list)) else repr(value)


def first_line(error: Exception) -> str:
    """Return the first line of an exception's text."""
    return (str(error).strip().splitlines() or [""])[0][:160]


def difference(got: torch.Tensor, want: torch.Tensor, error: torch.Tensor) -> str:
    """Say how two tensors differ: whole where they are small, else at the worst place."""
    if want.numel() <= 6:
        return f"gives {got.tolist()}; torch gives {want.tolist()}"
    at = int(error.argmax())
    where = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), want.shape))
    x, y, count = got.flatten()[at].item(), want.flatten()[at].item(), int((error > 1).sum())
    return f"gives {x} at {where}; torch gives {y} ({count} of {want.numel()} differ)"
