"""Every override takes what the core's default body takes, and overrides something."""

from __future__ import annotations

import inspect

import pytest

from mortice.backends import NamespaceBackend
from mortice_cuda_cupy.kernels import CudaKernels

OVERRIDES = sorted(
    {name for part in CudaKernels.__mro__ if part is not object for name, made in vars(part).items() if name[0] != "_" and callable(made)}
)


@pytest.mark.parametrize("name", OVERRIDES)
def test_signature_is_the_default_body_s(name: str) -> None:
    def shape(owner: type) -> list[tuple[str, object, object]]:
        parameters = list(inspect.signature(getattr(owner, name)).parameters.values())[1:]  # but for self or k
        return [(p.name, p.kind, p.default) for p in parameters]

    assert shape(CudaKernels) == shape(NamespaceBackend)
