"""The named tuples that functions with several results return; fields are PyTorch's."""

from __future__ import annotations

from collections import namedtuple
from typing import Any


def _tuple(name: str, fields: str) -> Any:
    made = namedtuple(name, fields)  # type: ignore[misc]
    made.__module__ = __name__
    made.__doc__ = f"What `{name}` returns: {', '.join(fields.split())}."
    return made


max = _tuple("max", "values indices")
min = _tuple("min", "values indices")
aminmax = _tuple("aminmax", "min max")
sort = _tuple("sort", "values indices")
topk = _tuple("topk", "values indices")
kthvalue = _tuple("kthvalue", "values indices")
median = _tuple("median", "values indices")
nanmedian = _tuple("nanmedian", "values indices")
mode = _tuple("mode", "values indices")
cummax = _tuple("cummax", "values indices")
cummin = _tuple("cummin", "values indices")
