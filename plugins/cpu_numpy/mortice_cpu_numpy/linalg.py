"""LAPACK, through np.linalg, in place of the default bodies; what LAPACK refuses goes back to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice_cpu_numpy.quiet import asarray

_REFUSED = np.linalg.LinAlgError


def _good(x: Any) -> Any:
    return np.zeros(x.shape[:-2], np.int32)


class LinalgOverrides:
    """np.linalg raises for the whole batch when one matrix fails: then the default body says which."""

    def cholesky_ex(self, x: Any, *, upper: bool = False) -> Any:
        if x.size:
            try:
                made = np.linalg.cholesky(x, upper=upper)
                if not np.isnan(made[..., -1, -1]).any():  # which nan anywhere in x reaches, and LAPACK lets pass
                    return made, _good(x)
            except _REFUSED:
                pass
        return super().cholesky_ex(x, upper=upper)  # type: ignore[misc]

    def solve_triangular(self, a: Any, b: Any, *, upper: bool, left: bool = True, unit_diagonal: bool = False) -> Any:
        if a.size and b.size:
            part = np.triu(a) if upper else np.tril(a)
            if unit_diagonal:
                n = a.shape[-1]
                part[..., np.arange(n), np.arange(n)] = 1
            try:
                if left:
                    return np.linalg.solve(part, b)
                return np.swapaxes(np.linalg.solve(np.swapaxes(part, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
            except _REFUSED:
                pass
        return super().solve_triangular(a, b, upper=upper, left=left, unit_diagonal=unit_diagonal)  # type: ignore[misc]

    def solve_ex(self, a: Any, b: Any) -> Any:
        if a.size and b.size:
            try:
                return np.linalg.solve(a, b), _good(a)
            except _REFUSED:
                pass
        return super().solve_ex(a, b)  # type: ignore[misc]

    def inv_ex(self, x: Any) -> Any:
        if x.size:
            try:
                return np.linalg.inv(x), _good(x)
            except _REFUSED:
                pass
        return super().inv_ex(x)  # type: ignore[misc]

    def det(self, x: Any) -> Any:
        return asarray(np.linalg.det(x))

    def slogdet(self, x: Any) -> Any:
        sign, log = np.linalg.slogdet(x)
        return asarray(sign), asarray(log)

    def qr(self, x: Any, *, mode: str = "reduced") -> Any:
        if not x.size:
            return super().qr(x, mode=mode)  # type: ignore[misc]
        if mode == "r":
            return np.zeros((0,), x.dtype), np.linalg.qr(x, "r")
        return tuple(np.linalg.qr(x, mode))

    def eigh(self, x: Any, *, upper: bool = False) -> Any:
        if x.size:
            try:
                return tuple(np.linalg.eigh(x, "U" if upper else "L"))
            except _REFUSED:
                pass
        return super().eigh(x, upper=upper)  # type: ignore[misc]

    def eigvalsh(self, x: Any, *, upper: bool = False) -> Any:
        if x.size:
            try:
                return np.linalg.eigvalsh(x, "U" if upper else "L")
            except _REFUSED:
                pass
        return super().eigvalsh(x, upper=upper)  # type: ignore[misc]

    def eig(self, x: Any) -> Any:
        if x.size:
            try:
                values, vectors = np.linalg.eig(x)
                native = np.result_type(x.dtype, np.complex64)
                return values.astype(native), vectors.astype(native)
            except _REFUSED:
                pass
        return super().eig(x)  # type: ignore[misc]

    def svd(self, x: Any, *, full_matrices: bool = True) -> Any:
        if x.size:
            try:
                return tuple(np.linalg.svd(x, full_matrices))
            except _REFUSED:
                pass
        return super().svd(x, full_matrices=full_matrices)  # type: ignore[misc]

    def svdvals(self, x: Any) -> Any:
        if x.size:
            try:
                return np.linalg.svd(x, compute_uv=False)
            except _REFUSED:
                pass
        return super().svdvals(x)  # type: ignore[misc]
