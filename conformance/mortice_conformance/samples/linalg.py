"""Samples of factorisations and what is solved with them. Where factors are not unique, what they make together is compared."""

from __future__ import annotations

import numpy as np

import mortice as mt
from mortice.op import OPS
from mortice_conformance.domain import definite, indefinite, invertible, lower, real, symmetric, upper
from mortice_conformance.record import MATRICES, sample

# What LAPACK takes; torch refuses half precision too.
_FULL = ("float32", "float64", "complex64", "complex128")


def _h(x: object) -> object:
    return mt.conj(x.transpose(-2, -1))  # type: ignore[attr-defined]


def _even(x: object) -> object:
    """Make a tensor Hermitian, so that a derivative in any direction is defined."""
    return (x + _h(x)) / 2  # type: ignore[operator]


def _ok(x: object) -> object:
    return np.zeros(np.shape(x)[:-2], np.int32)  # type: ignore[call-overload]


_PAIRS = [((3, 3), (3, 2)), ((2, 4, 4), (2, 4, 1)), ((1, 1), (1, 3))]
_INFO = ("promote", "int32")
sample("cholesky_ex", lambda x: (np.linalg.cholesky(x), _ok(x)), definite, call=lambda x: OPS["cholesky_ex"].fn(_even(x), upper=False),
       dtypes=_FULL, kind="linalg", shapes=MATRICES, result=_INFO)  # fmt: skip
sample("solve_triangular", lambda a, b, upper, left, unit_diagonal: np.linalg.solve(np.triu(a) if upper else np.tril(a), b), lower, real,
       dtypes=_FULL, kind="linalg", cases=[(s, {"upper": False, "left": True, "unit_diagonal": False}) for s in _PAIRS])  # fmt: skip
sample("solve_triangular",
       lambda a, b, upper, left, unit_diagonal: np.linalg.solve(np.triu(a), b), upper, real, dtypes=_FULL, kind="linalg",
       variant="upper", cases=[(s, {"upper": True, "left": True, "unit_diagonal": False}) for s in _PAIRS])  # fmt: skip
sample("cholesky_solve", lambda b, a, upper: np.linalg.solve(a @ np.conj(np.swapaxes(a, -2, -1)), b), real, lower,
       call=lambda b, a, upper: OPS["cholesky_solve"].fn(b, a.tril(), upper=upper), dtypes=_FULL, kind="linalg",
       cases=[((b, a), {"upper": False}) for a, b in _PAIRS])  # fmt: skip
sample(
    "solve_ex",
    lambda a, b: (np.linalg.solve(a, b), _ok(a)),
    invertible,
    real,
    dtypes=_FULL,
    kind="linalg",
    shapes=_PAIRS,
    result=_INFO,
)
sample(
    "inv_ex",
    lambda x: (np.linalg.inv(x), _ok(x)),
    invertible,
    dtypes=_FULL,
    kind="linalg",
    shapes=MATRICES,
    result=_INFO,
)
sample("det", np.linalg.det, invertible, dtypes=_FULL, kind="linalg", shapes=MATRICES)
sample(
    "slogdet",
    lambda x: tuple(np.linalg.slogdet(x)),
    invertible,
    dtypes=_FULL,
    kind="linalg",
    shapes=MATRICES,
    result=("promote", "real_part"),
)


def _multiplied(x: object) -> object:
    q, r = OPS["qr"].fn(x, mode="reduced")
    return mt.matmul(q, r), mt.matmul(_h(q), q)


sample("qr", lambda x: (x, np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-1][:-1], x.shape[-1], x.shape[-1]))), invertible, dtypes=_FULL,
       call=_multiplied, kind="linalg", shapes=[(3, 3), (2, 4, 4)])  # fmt: skip


def _lu_product(x: object) -> object:
    p, low, up = mt.linalg.lu(x)
    return mt.matmul(low, up)


def _pivoted(x: object) -> object:
    out = np.array(x)
    for at in np.ndindex(*out.shape[:-2]):
        a = np.array(out[at])
        order = np.arange(len(a))
        for j in range(len(a)):
            best = j + int(np.argmax(np.abs(a[j:, j])))
            a[[j, best]], order[[j, best]] = a[[best, j]], order[[best, j]]
            a[j + 1 :] -= np.outer(a[j + 1 :, j] / a[j, j], a[j])
        out[at] = out[at][order]
    return out


sample("lu_ex", _pivoted, invertible, call=_lu_product, dtypes=_FULL, kind="linalg", shapes=MATRICES, result="promote")


def _eigh_product(x: object) -> object:
    w, v = OPS["eigh"].fn(_even(x), upper=False)
    return w, mt.matmul(v * w.unsqueeze(-2), _h(v))


sample("eigh", lambda x: (np.linalg.eigvalsh(x), x), symmetric, call=_eigh_product, dtypes=_FULL, kind="linalg", shapes=[(3, 3), (2, 4, 4)],
       result=("real_part", "promote"))  # fmt: skip
sample("eigvalsh", np.linalg.eigvalsh, symmetric, call=lambda x: OPS["eigvalsh"].fn(_even(x), upper=False), dtypes=_FULL, kind="linalg",
       shapes=[(3, 3), (2, 4, 4)], result="real_part")  # fmt: skip


def _eig_product(x: object) -> object:
    w, v = OPS["eig"].fn(x)
    return mt.matmul(v * w.unsqueeze(-2), mt.linalg.inv(v))


sample("eig", lambda x: np.asarray(x, np.complex128), symmetric, call=_eig_product, dtypes=_FULL, kind="linalg", shapes=[(3, 3), (2, 4, 4)],
       result="complex_part", transfers=40, reason="its iteration ends when it has converged")  # fmt: skip


def _svd_product(x: object) -> object:
    u, s, vh = OPS["svd"].fn(x, full_matrices=False)
    return s, mt.matmul(u * s.unsqueeze(-2), vh)


sample("svd", lambda x: (np.linalg.svd(x, compute_uv=False), x), invertible, call=_svd_product, dtypes=_FULL, kind="linalg",
       shapes=[(3, 3), (2, 4, 3)], result=("real_part", "promote"))  # fmt: skip
sample(
    "svdvals",
    lambda x: np.linalg.svd(x, compute_uv=False),
    invertible,
    dtypes=_FULL,
    kind="linalg",
    shapes=[(3, 3), (2, 4, 3)],
    result="real_part",
)
sample(
    "linalg_pinv",
    np.linalg.pinv,
    invertible,
    call=lambda x: mt.linalg.pinv(x),
    dtypes=_FULL,
    kind="linalg",
    shapes=[(3, 3), (4, 3)],
    transfers=1,
    reason="it refuses nan, of which no singular values can be found",
)


def _packed(x: object) -> object:
    packed, tau = np.linalg.qr(x, mode="raw")
    return np.swapaxes(packed, -1, -2), tau


_UNDEFINED = "its gradient is not defined, as in PyTorch"
sample("geqrf", _packed, invertible, dtypes=_FULL, kind="linalg", shapes=[(3, 3), (2, 4, 3), (3, 4)], grad=_UNDEFINED)


def _ldl(x: object, b: object) -> object:
    packed, pivots, _ = OPS["linalg_ldl_factor"].fn(x, hermitian=True)
    return OPS["linalg_ldl_solve"].fn(packed, pivots, b, hermitian=True)


for _op in ("linalg_ldl_factor", "linalg_ldl_solve"):
    sample(_op, np.linalg.solve, indefinite, real, call=_ldl, dtypes=_FULL, kind="linalg", result="promote",
           shapes=[((3, 3), (3, 2)), ((2, 6, 6), (2, 6, 1)), ((1, 1), (1, 3))], grad=_UNDEFINED)  # fmt: skip
