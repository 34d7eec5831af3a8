"""The stored loss curves are PyTorch's, and the perceptron's own NumPy curve is too."""

from __future__ import annotations

from typing import Any

import pytest

from mortice_conformance.suites import training

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


class _Reader(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.table, self.qkv = torch.nn.Embedding(7, 8), torch.nn.Linear(8, 24)
        self.norm, self.head = torch.nn.LayerNorm(8), torch.nn.Linear(8, 7)

    def forward(self, tokens: Any) -> Any:
        x = self.table(tokens)
        q, k, v = self.qkv(x).split(8, dim=-1)
        x = self.norm(x + torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.head(x)


@pytest.mark.parametrize("run", training.RUNS, ids="-".join)
def test_curve_is_torchs(run: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    # The same model code, with the other library in its place.
    monkeypatch.setattr(training, "mt", torch)
    monkeypatch.setattr(training, "_Reader", _Reader)
    want = training.curve(*run, torch.float64, "cpu")
    stored = training.perceptron_curve(run[1]) if run[0] == "perceptron" else training.stored()["-".join(run)]
    assert max(abs(a - b) for a, b in zip(want, stored)) < 1e-10
