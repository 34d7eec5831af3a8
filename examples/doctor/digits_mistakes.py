"""The digit classifier of `examples/digits.py` with one classic mistake: `python examples/doctor/digits_mistakes.py D04`.

The doctor watches one epoch and says what is wrong. Without an id every mistake is tried in turn.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F
from mortice import doctor
from mortice.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from digits import load_digits, make_model  # noqa: E402

MISTAKES = {
    "D02": "model.eval() before training, and never model.train()",
    "D03": "optimizer.zero_grad() is forgotten",
    "D04": "the model ends in Softmax, the loss is CrossEntropyLoss",
    "D07": "the accuracy compares argmax() without dim with the labels",
    "D09": "log_softmax(dim=0) before nll_loss",
    "D10": "a ReLU after the last layer",
    "D12": "every weight starts at zero",
    "D14": "softmax instead of log_softmax before nll_loss",
    "D21": "Dropout on the output of the model",
    "D34": "next(iter(loader)) in the training loop",
}


def train(mistake: str | None = None, batch_size: int = 32) -> float:
    """Train for one epoch with a mistake, or without; return the share of digits read right on the way."""
    torch.manual_seed(0)
    images, labels = load_digits()
    loader = DataLoader(TensorDataset(images, labels), batch_size=batch_size, shuffle=True)
    model = make_model()
    if mistake in ("D04", "D10", "D21"):
        model.append({"D04": nn.Softmax(dim=1), "D10": nn.ReLU(), "D21": nn.Dropout(0.3)}[mistake])
    if mistake == "D12":
        for p in model.parameters():
            if p.ndim > 1:
                nn.init.zeros_(p)
    if mistake == "D02":
        model.eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    right = 0
    for images, labels in again_and_again(loader) if mistake == "D34" else loader:
        if mistake != "D03":
            optimizer.zero_grad()
        out = model(images)
        if mistake == "D09":
            loss = F.nll_loss(F.log_softmax(out, dim=0), labels)
        elif mistake == "D14":
            loss = F.nll_loss(F.softmax(out, dim=1), labels)
        else:
            loss = F.cross_entropy(out, labels)
        loss.backward()
        optimizer.step()
        guess = out.argmax() if mistake == "D07" else out.argmax(dim=1)
        right += (guess == labels).sum().item()
    return right / len(loader.dataset)


def again_and_again(loader):
    """The mistake of D34: a new pass for each batch."""
    for _ in range(len(loader)):
        images, labels = next(iter(loader))
        yield images, labels


def main() -> int:
    """Try the mistakes that are asked for; returns how many were not named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mistakes", nargs="*", metavar="ID", choices=[[], *MISTAKES], help=", ".join(MISTAKES))
    parser.add_argument("--backend", help="the backend to train on")
    arguments = parser.parse_args()
    if arguments.backend:
        torch.set_backend(arguments.backend)
    missed = 0
    for mistake in arguments.mistakes or MISTAKES:
        print(f"\n{mistake}: {MISTAKES[mistake]}")
        with doctor.watch(quiet=True) as session:
            accuracy = train(mistake)
        print(f"read right during the epoch: {accuracy:.1%}")
        for found in session.findings:
            print(f"  line {found.site.line}, step {found.step}: {found.level} {found.rule} {found.message} {found.remedy}")
        missed += mistake not in {found.rule for found in session.findings}
    return missed


if __name__ == "__main__":
    sys.exit(main())
