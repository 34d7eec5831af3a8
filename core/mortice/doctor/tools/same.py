"""Which samples are the same: by two sums of each over fixed random weights, and by comparing those that agree in them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import mortice
from mortice.utils._wide import wide

COLUMNS = 32  # of a sample, that are counted to tell how many samples there can be


@lru_cache(maxsize=4)
def _weights(n: int, device: Any, dtype: Any) -> Any:
    generator = mortice.Generator().manual_seed(1)
    return mortice.rand(n, 2, generator=generator).to(dtype).to(device) + 0.5


def fingerprints(rows: Any) -> list[tuple[float, float]]:
    """Return two sums of each row (N, K), the same for the same rows but for rounding."""
    dtype = wide(rows.device)
    rows = rows.detach().to(dtype).nan_to_num()
    return [(a, b) for a, b in (rows @ _weights(rows.shape[1], rows.device, dtype)).tolist()]


def alike(prints: list[tuple[float, float]]) -> list[tuple[int, int]]:
    """Return pairs of places whose sums agree: each with the next one like it, so that n of a kind are n - 1 pairs."""
    order = sorted(range(len(prints)), key=prints.__getitem__)
    return [
        (min(i, j), max(i, j))
        for i, j in zip(order, order[1:])
        if all(math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-9) for x, y in zip(prints[i], prints[j]))
    ]


def equal_pairs(rows: Any) -> list[tuple[int, int]]:
    """Return pairs of places of the same rows (N, K), of n of a kind n - 1 pairs."""
    pairs = alike(fingerprints(rows))
    if not pairs:
        return []
    left, right = rows[[i for i, _ in pairs]], rows[[j for _, j in pairs]]
    same = (
        ((left == right) | (left.isnan() & right.isnan()) if rows.is_floating_point() else left == right)
        .all(1)
        .tolist()
    )
    return sorted(pair for pair, found in zip(pairs, same) if found)


def few_possible(rows: Any, n: int) -> bool:
    """Tell whether samples as coarse as these rows (N, K) are now and then the same by chance among `n`."""
    columns = rows.shape[1]
    taken = sorted({i * columns // COLUMNS for i in range(COLUMNS)}) if columns > COLUMNS else list(range(columns))
    values = rows[:, taken].t().tolist()
    # The entropy of each column, since a pixel that is nearly always 0 tells little apart.
    bits = sum(_bits(column) for column in values) * columns / max(1, len(taken))
    return bits < 2 * math.log2(max(n, 2)) + 4


def _bits(values: list[float]) -> float:
    counts: dict[float, int] = {}
    for v in values:
        counts[v] = counts.get(v, 0) + 1
    return -sum(c / len(values) * math.log2(c / len(values)) for c in counts.values())
