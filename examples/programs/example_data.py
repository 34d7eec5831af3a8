"""What the programs learn from, as NumPy arrays and text: the digits of this repository and a book that Python ships."""

import csv
import gzip
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).resolve().parent.parent / "data" / "digits" / "digits.csv.gz"


def load_digits():
    """Return 1,797 images (n, 1, 8, 8) in [0, 1] as float32 and their classes (n,) as int64."""
    with gzip.open(DIGITS, "rt", newline="") as file:
        table = np.array([[int(cell) for cell in row] for row in csv.reader(file)])
    images = (table[:, :64] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    return images, table[:, 64].astype(np.int64)


def load_text(characters=100_000):
    """Return the opening of the Python language reference, which lies in the standard library for `help()`."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")[:characters]
