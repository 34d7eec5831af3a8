"""The named tuples that functions with several results return; fields are PyTorch's."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

_shown = __name__  # what the types are shown to be of


def _repr(self: Any) -> str:
    fields = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
    return f"{_shown}.{type(self).__name__}(\n{fields})"


def _new(cls: Any, *values: Any) -> Any:
    """Make one of its fields, or of one sequence of them, as PyTorch's types take them."""
    if len(values) == 1:
        values = tuple(values[0])
    if len(values) != cls.n_fields:
        raise TypeError(f"{_shown}.{cls.__name__}() takes a {cls.n_fields}-sequence ({len(values)}-sequence given)")
    return tuple.__new__(cls, values)


def named(name: str, fields: str) -> Any:
    """Make the type of a result with several fields, printed a field a line as PyTorch does."""
    made = namedtuple(name, fields)
    made.__module__ = __name__
    made.__doc__ = f"What `{name}` returns: {', '.join(fields.split())}."
    made.__repr__, made.__new__ = _repr, _new
    made.n_fields = made.n_sequence_fields = len(made._fields)
    return made


def __getattr__(name: str) -> Any:
    """Make PyTorch's type for the overload that takes `out=`, with the fields of the other."""
    form = globals().get(name.removesuffix("_out"))
    if name[0] == "_" or not name.endswith("_out") or form in (None, histogramdd) or not hasattr(form, "n_fields"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, named(name, " ".join(form._fields)))


max = named("max", "values indices")
min = named("min", "values indices")
aminmax = named("aminmax", "min max")
sort = named("sort", "values indices")
topk = named("topk", "values indices")
kthvalue = named("kthvalue", "values indices")
median = named("median", "values indices")
nanmedian = named("nanmedian", "values indices")
mode = named("mode", "values indices")
cummax = named("cummax", "values indices")
cummin = named("cummin", "values indices")
histogram = named("histogram", "hist bin_edges")
histogramdd = named("histogramdd", "hist bin_edges")
frexp = named("frexp", "mantissa exponent")
triangular_solve = named("triangular_solve", "solution cloned_coefficient")
geqrf = named("geqrf", "a tau")
lu_unpack = named("lu_unpack", "P L U")
svd = named("svd", "U S V")
slogdet = named("slogdet", "sign logabsdet")
linalg_cholesky_ex = named("linalg_cholesky_ex", "L info")
linalg_inv_ex = named("linalg_inv_ex", "inverse info")
linalg_solve_ex = named("linalg_solve_ex", "result info")
linalg_lu = named("linalg_lu", "P L U")
linalg_lu_factor = named("linalg_lu_factor", "LU pivots")
linalg_lu_factor_ex = named("linalg_lu_factor_ex", "LU pivots info")
linalg_ldl_factor = named("linalg_ldl_factor", "LD pivots")
linalg_ldl_factor_ex = named("linalg_ldl_factor_ex", "LD pivots info")
linalg_qr = named("linalg_qr", "Q R")
linalg_eigh = named("linalg_eigh", "eigenvalues eigenvectors")
linalg_eig = named("linalg_eig", "eigenvalues eigenvectors")
linalg_svd = named("linalg_svd", "U S Vh")
linalg_slogdet = named("linalg_slogdet", "sign logabsdet")
linalg_lstsq = named("linalg_lstsq", "solution residuals rank singular_values")
