"""How far apart two words are, for names that were misspelt."""

from __future__ import annotations


def distance(a: str, b: str) -> int:
    """Return how many letters must be put in, left out or changed to make one word of the other."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]
