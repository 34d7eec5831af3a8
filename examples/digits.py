"""Train a small CNN on 1,797 real handwritten digits: `python examples/digits.py [--backend NAME]`."""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import time
from pathlib import Path

import mortice as mt
from mortice import nn, optim
from mortice.utils.data import DataLoader, TensorDataset, random_split

DATA = Path(__file__).parent / "data" / "digits"


def load_digits():
    """Return images (n, 1, 8, 8) in [0, 1] and labels (n)."""
    (path,) = DATA.glob("*.csv.gz")
    with gzip.open(path, "rt", newline="") as file:
        rows = [[int(v) for v in row] for row in csv.reader(file) if row and row[0].strip().isdigit()]
    table = mt.tensor(rows)
    images = (table[:, :64].float() / 16).reshape(-1, 1, 8, 8)
    return images, table[:, 64]


def make_model():
    """A small convolutional network for 8x8 images."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.25),
        nn.Linear(64 * 4 * 4, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def accuracy(model, loader):
    """Return the share of digits that the model reads right."""
    model.eval()
    right = total = 0
    with mt.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def train(model, loader, held_out, epochs, lr):
    """Train with Adam; return the loss of every step and the accuracy after every epoch."""
    from tqdm import tqdm

    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=lr)
    losses, accuracies = [], []
    for epoch in range(1, epochs + 1):
        model.train()
        bar = tqdm(loader, desc=f"epoch {epoch}/{epochs}", unit="batch", leave=False, mininterval=0.5)
        for images, labels in bar:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
        accuracies.append(accuracy(model, held_out))
        print(f"epoch {epoch}: loss {sum(losses[-len(loader):]) / len(loader):.4f}, held-out accuracy {accuracies[-1]:.2%}")
    return losses, accuracies


def draw(path, losses, accuracies, model, images, labels):
    """Save a picture: the loss curve, and digits with what the model reads in them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    model.eval()
    with mt.no_grad():
        read = model(images[:24]).argmax(1).tolist()
    figure = plt.figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
    axes = left.subplots()
    axes.plot(losses, linewidth=0.8, color="tab:blue")
    axes.set(xlabel="step", ylabel="loss", yscale="log", title=f"held-out accuracy {accuracies[-1]:.2%}")
    pixels = images[:24].reshape(-1, 8, 8).cpu().tolist()
    for ax, image, guess, label in zip(right.subplots(4, 6).flat, pixels, read, labels[:24].tolist()):
        ax.imshow(image, cmap="gray_r")
        ax.set_title(str(guess), color="black" if guess == label else "red", fontsize=10)
        ax.axis("off")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", help="which backend computes (see: python -m mortice backends)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the checkpoint and the picture")
    options = parser.parse_args()
    if options.backend:
        mt.set_backend(options.backend)
    mt.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)

    images, labels = load_digits()
    count = len(images)
    training, held_out = random_split(TensorDataset(images, labels), [count - count // 5, count // 5])
    train_loader = DataLoader(training, batch_size=options.batch_size, shuffle=True)
    test_loader = DataLoader(held_out, batch_size=256)
    model = make_model()
    weights = sum(p.numel() for p in model.parameters())
    print(f"{len(training)} digits to learn from, {len(held_out)} held out; {weights:,} weights on {mt.default_backend()}")

    start = time.perf_counter()
    losses, accuracies = train(model, train_loader, test_loader, options.epochs, options.lr)
    print(f"trained in {time.perf_counter() - start:.1f} s")

    checkpoint = options.out / "digits.pt"
    mt.save(model.state_dict(), checkpoint)
    restored = make_model()
    restored.load_state_dict(mt.load(checkpoint))
    again = accuracy(restored, test_loader)
    if again != accuracies[-1]:
        raise SystemExit(f"the reloaded checkpoint reads {again:.2%}, the trained model {accuracies[-1]:.2%}")
    print(f"checkpoint {checkpoint} reloaded: held-out accuracy {again:.2%}")

    picture = options.out / "digits.png"
    if importlib.util.find_spec("matplotlib") is None:
        print("SKIPPED the picture: matplotlib is not installed here")
        return
    draw(picture, losses, accuracies, restored, images[held_out.indices], labels[held_out.indices])
    print(f"picture {picture}")


if __name__ == "__main__":
    main()
