"""Ready-made parametrizations: orthogonal, weight_norm and spectral_norm."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import Tensor, no_grad
from mortice.nn.module import Module
from mortice.nn.utils import parametrize
from mortice.nn.utils.spectral_norm import as_matrix, check_iterations, output_dim, unit
from mortice.nn.utils.weight_norm import _weight_norm, norm_except_dim

_MAPS = ("matrix_exp", "cayley", "householder")


def _tensor_of(module: Any, name: str) -> Any:
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return found


# ---- orthogonal ----


def _is_orthogonal(q: Any) -> bool:
    rows, cols = q.shape[-2:]
    identity = mortice.eye(cols, dtype=q.dtype, device=q.device)
    return mortice.allclose(q.mH @ q, identity, atol=10.0 * rows * mortice.finfo(q.dtype).eps)


def _make_orthogonal(a: Any) -> Any:
    """Return the orthogonal factor of QR, the one for which R has a positive diagonal."""
    q, r = mortice.linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _reflectors(q: Any) -> Any:
    """Return Householder vectors below the diagonal, whose reflections times the diagonal's signs give q."""
    rest, columns = q, []
    rows, cols = q.shape[-2:]
    for j in range(cols):
        x = rest[..., j:, :1]
        head = x[..., :1, :]
        tip = mortice.where(head >= 0, -1.0, 1.0).to(q.dtype)  # the sign that cancels no digits
        v = x / (head - tip * mortice.linalg.vector_norm(x, dim=-2, keepdim=True))
        v = mortice.cat([mortice.ones_like(head), v[..., 1:, :]], dim=-2)
        columns.append(mortice.cat([q.new_zeros((*q.shape[:-2], j, 1)), tip, v[..., 1:, :]], dim=-2))
        below = rest[..., j:, 1:]
        below = below - v @ (v.mT @ below) * (2 / (v * v).sum(-2, keepdim=True))
        rest = mortice.cat([rest[..., :j, 1:], below], dim=-2)
    return mortice.cat(columns, dim=-1)


class _Orthogonal(Module):
    """A matrix of any values becomes one with orthonormal columns (or rows, where there are fewer)."""

    base: Any

    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        rows, cols = x.shape[-2:]
        if self.orthogonal_map == "householder":
            a = x.tril(-1)
            q = mortice.linalg.householder_product(a, 2.0 / (1.0 + (a * a).sum(-2)))
            q = q * x.diagonal(dim1=-2, dim2=-1).int().to(x.dtype).unsqueeze(-2)
        else:
            x = x.tril()
            if rows != cols:
                x = mortice.cat([x, x.new_zeros((*x.shape[:-1], rows - cols))], dim=-1)
            a = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = mortice.matrix_exp(a)
            else:
                identity = mortice.eye(rows, dtype=a.dtype, device=a.device)
                q = mortice.linalg.solve(identity - a * 0.5, identity + a * 0.5)
            q = q[..., :cols]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            made = _reflectors(q)
            return made.mT if wide else made
        rows, cols = q.shape[-2:]
        if rows != cols:
            more = mortice.randn(*q.shape[:-1], rows - cols, dtype=q.dtype, device=q.device)
            self.base = _make_orthogonal(mortice.cat([q, more], dim=-1))
        else:
            self.base = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        # From here the maps start at the base: minus the identity gives the identity.
        return -mortice.eye(*Q.shape[-2:], dtype=Q.dtype, device=Q.device).expand(Q.shape)


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keep a parameter an orthogonal matrix (or a batch of them), through a parametrization; return the module.

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square matrices.
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


# ---- weight_norm ----


class _WeightNorm(Module):
    """A length and a direction become a weight."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Let a parameter be a direction (`original1`) times a length (`original0`) along `dim`; return the module."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *rest: Any) -> None:
        """Read what the older `weight_norm` has written."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ---- spectral_norm ----


class _SpectralNorm(Module):
    """A weight becomes itself over its largest singular value, whose vectors `_u` and `_v` are running estimates."""

    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        n = weight.ndim
        if not -n <= dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{n}, {n - 1}] but got {dim})")
        check_iterations(n_power_iterations)
        self.dim, self.eps, self.n_power_iterations = dim % n, eps, n_power_iterations
        if n > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(name, unit(matrix.new_empty(size).normal_(0, 1), eps))
            self._power_method(matrix, 15)

    @no_grad()
    def _power_method(self, matrix: Any, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            self._u.copy_(unit(matrix.mv(self._v), self.eps))
            self._v.copy_(unit(matrix.mH.mv(self._u), self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next forward may come before this one's backward
        return weight / mortice.vdot(u, matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        return value  # not known, but loading a weight as it was saved should give that weight


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a parameter by its largest singular value, through a parametrization; return the module."""
    made = _SpectralNorm(_tensor_of(module, name), n_power_iterations, output_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, made)
