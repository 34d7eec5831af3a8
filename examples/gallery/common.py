"""What these programs share: options in the same manner, data at hand, progress, checkpoints, pictures and logs."""

import argparse
import csv
import gzip
import importlib.util
import os
import random
import time
from pathlib import Path

import mortice as torch
import mortice.vision.utils as vutils
from mortice.utils.data import Dataset, Subset
from mortice.vision import datasets, transforms

ROOT = Path(__file__).resolve().parents[2]


def make_parser(description, **defaults):
    """Return the options that all programs have; `defaults` are a program's own, by the options' names."""
    show = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(description=description.splitlines()[0], formatter_class=show)
    add = parser.add_argument
    add("--dataset", default="digits", help="digits | photos | cifar10 | folder | fake; for text: docs | file")
    add("--dataroot", default="", help="where cifar10, folder, photos or file lies")
    add("--download", action="store_true", help="fetch cifar10 where it is not there")
    add("--limit", type=int, default=0, help="learn from so many samples only; 0: from all")
    add("--workers", type=int, default=0, help="processes that load data")
    add("--batchSize", type=int, default=64)
    add("--niter", type=int, default=10, help="epochs to train for")
    add("--lr", type=float, default=2e-4)
    add("--backend", default="", help="who computes, such as cpu_numpy (see: python -m mortice backends)")
    add("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    add("--outf", default="out", help="folder for pictures and the checkpoint")
    add("--resume", nargs="?", const="last", default="", help="go on from a checkpoint, by default the one in outf")
    add("--logdir", default="", help="folder for TensorBoard")
    add("--manualSeed", type=int, default=None, help="by default a random one, which is printed")
    parser.set_defaults(**defaults)
    return parser


def begin(parser, argv=None):
    """Parse the options, choose the backend, seed, and make the folder for what comes out."""
    opt = parser.parse_args(argv)
    if opt.backend:
        torch.set_backend(opt.backend)
    if opt.manualSeed is None:
        opt.manualSeed = random.randint(1, 10000)
        print("Random Seed:", opt.manualSeed)
    random.seed(opt.manualSeed)
    torch.manual_seed(opt.manualSeed)
    os.makedirs(opt.outf, exist_ok=True)
    return opt


def as_it_is(image):
    """Return an image as it is: what a dataset without a transform does."""
    return image


class Digits(Dataset):
    """The 1,797 handwritten digits of this repository as grey 8x8 PIL images; every fifth is held out."""

    def __init__(self, train=True, transform=None):
        with gzip.open(ROOT / "examples" / "data" / "digits" / "digits.csv.gz", "rt", newline="") as file:
            rows = [row for i, row in enumerate(csv.reader(file)) if (i % 5 != 4) == train]
        table = torch.tensor([[int(cell) for cell in row] for row in rows])
        pixels = (table[:, :64] * 255 // 16).to(torch.uint8).reshape(-1, 1, 8, 8)
        self.images = [transforms.functional.to_pil_image(image) for image in pixels]
        self.targets = table[:, 64].tolist()
        self.transform = transform or as_it_is

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(self.images[index]), self.targets[index]


class Photos(Dataset):
    """Photographs over and over, to be cropped at random: two of scikit-learn's, or the image files in a folder."""

    def __init__(self, root="", transform=None, length=1600):
        from PIL import Image

        if not root:
            found = importlib.util.find_spec("sklearn")
            if found is None:
                raise SystemExit("--dataset photos: pip install scikit-learn, or name a folder by --dataroot")
            root = Path(found.origin).parent / "datasets" / "images"
        paths = sorted(p for p in Path(root).iterdir() if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
        self.images = [Image.open(path).convert("RGB").reduce(2) for path in paths]
        self.transform, self.length = transform or as_it_is, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        label = index % len(self.images)
        return self.transform(self.images[label]), label


def image_dataset(opt, transform, train=True):
    """Return the dataset that the options name; `transform` makes tensors of its PIL images."""
    if opt.dataset == "digits":
        data = Digits(train, transform)
    elif opt.dataset == "photos":
        data = Photos(opt.dataroot, transforms.Compose([transforms.RandomCrop(opt.imageSize), transform]))
    elif opt.dataset == "cifar10":
        data = datasets.CIFAR10(opt.dataroot or "data", train=train, download=opt.download, transform=transform)
    elif opt.dataset == "folder":
        data = datasets.ImageFolder(opt.dataroot, transform=transform)
    elif opt.dataset == "fake":
        data = datasets.FakeData(1024, (3, opt.imageSize, opt.imageSize), transform=transform)
    else:
        raise SystemExit(f"--dataset {opt.dataset}: expected digits, photos, cifar10, folder or fake")
    return limited(opt, data)


def limited(opt, data):
    """Return the first samples of a dataset where the options say how many."""
    return Subset(data, range(min(opt.limit, len(data)))) if opt.limit else data


def text_of(opt):
    """Return a text of printable ASCII: the pages of this repository that people wrote, or a file."""
    if opt.dataset == "file":
        text = Path(opt.dataroot).read_text(encoding="utf-8")
    else:
        names = [
            "README",
            "CONTRIBUTING",
            *(f"docs/{n}" for n in ("design", "write_a_backend", "explain", "array_api")),
        ]
        names += [f"docs/{n}" for n in ("conformance", "foreign_backends", "metrics_and_logs", "cuda")]
        text = "\n\n".join((ROOT / f"{name}.md").read_text(encoding="utf-8") for name in names)
    text = "".join(c for c in text if c == "\n" or " " <= c <= "~")
    return text[: opt.limit] if opt.limit else text


class Run:
    """One training: shows how far it is, keeps what it logs, and saves after each epoch all that going on takes.

    The parts are what has a state_dict: networks, optimizers, schedulers.
    """

    def __init__(self, opt, **parts):
        self.opt, self.parts, self.folder = opt, parts, Path(opt.outf)
        self.epoch, self.history, self.bar, self.writer = 0, {}, None, None
        if opt.resume:
            self.load(self.folder / "checkpoint.pt" if opt.resume == "last" else opt.resume)
        if opt.logdir:
            from mortice.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(opt.logdir)

    def save(self, path):
        """Write a checkpoint: beside the old one first, so that a broken run leaves a whole one."""
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state |= {"epoch": self.epoch, "history": self.history, "rng": torch.get_rng_state()}
        torch.save(state, f"{path}.new")
        os.replace(f"{path}.new", path)

    def load(self, path):
        """Go back to where a checkpoint was written, with the random numbers that came next."""
        state = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.epoch, self.history = state["epoch"], state["history"]
        torch.set_rng_state(state["rng"])
        print(f"resumed from {path} after epoch {self.epoch}")

    def epochs(self):
        """Count the epochs that are left; a checkpoint is saved after each."""
        for _ in range(self.epoch, self.opt.niter):
            start, self.logged = time.perf_counter(), {}
            yield self.epoch
            self.epoch += 1
            self.save(self.folder / "checkpoint.pt")
            means = ", ".join(f"{name} {sum(values) / len(values):.4f}" for name, values in self.logged.items())
            if self.writer:
                self.writer.flush()
            print(f"epoch {self.epoch}/{self.opt.niter}: {means} ({time.perf_counter() - start:.1f} s)", flush=True)

    def batches(self, loader):
        """Return the batches of an epoch, with a bar where tqdm is installed."""
        if len(loader) == 0:
            raise SystemExit(
                f"--batchSize {self.opt.batchSize}: expected at most as many as there are samples to learn from"
            )
        if importlib.util.find_spec("tqdm") is None:
            return loader
        from tqdm import tqdm

        label = f"epoch {self.epoch + 1}/{self.opt.niter}"
        self.bar = tqdm(loader, desc=label, leave=False, mininterval=0.5, disable=None)
        return self.bar

    def log(self, **values):
        """Note numbers of a step."""
        for name, value in values.items():
            value = value.item() if isinstance(value, torch.Tensor) else float(value)
            self.logged.setdefault(name, []).append(value)
            self.history.setdefault(name, []).append(value)
            if self.writer:
                self.writer.add_scalar(name, value, len(self.history[name]))
        if self.bar is not None:
            self.bar.set_postfix({name: f"{self.history[name][-1]:.4f}" for name in values}, refresh=False)

    def picture(self, name, images, **options):
        """Save images as a grid, and log it."""
        vutils.save_image(images, self.folder / name, **options)
        if self.writer:
            self.writer.add_image(name.split(".")[0], vutils.make_grid(images, **options), self.epoch)
            self.writer.flush()

    def plot(self, name, title, *curves):
        """Save curves of what was logged, smoothed, where matplotlib is installed."""
        if importlib.util.find_spec("matplotlib") is None:
            print(f"SKIPPED {name}: matplotlib is not installed")
            return
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot as plt

        figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
        for i, curve in enumerate(curves):
            values = self.history[curve]
            width = max(1, len(values) // 60)
            smooth = [
                sum(values[max(0, j - width) : j + 1]) / len(values[max(0, j - width) : j + 1])
                for j in range(len(values))
            ]
            axes.plot(values, linewidth=0.5, alpha=0.3, color=f"C{i}")
            axes.plot(smooth, linewidth=1.3, color=f"C{i}", label=curve)
        axes.set(title=title, xlabel="step")
        axes.legend()
        figure.savefig(self.folder / name, dpi=90)
        plt.close(figure)


def framed(images, right):
    """Return images with a frame: green where `right`, red elsewhere."""
    images = images.expand(-1, 3, -1, -1)
    colours = torch.tensor([[0.85, 0.1, 0.1], [0.1, 0.65, 0.2]], device=images.device)
    frame = colours[right.to(images.device).long()][:, :, None, None]
    size = images.shape[-1]
    made = frame.expand(-1, -1, size + 4, size + 4).clone()
    made[:, :, 2:-2, 2:-2] = images
    return made


def save_text(path, text, heat, columns=64):
    """Draw a text, each character on a ground that is the warmer the nearer to 1 its heat is."""
    from PIL import Image, ImageDraw, ImageFont

    font, wide, high = ImageFont.load_default(), 9, 16
    places, x, y = [], 0, 0
    for character in text:
        places.append((x * wide + 4, y * high + 4))
        x, y = (0, y + 1) if character == "\n" or x == columns - 1 else (x + 1, y)
    image = Image.new("RGB", (columns * wide + 8, (y + 1) * high + 8), "white")
    draw = ImageDraw.Draw(image)
    for (left, top), character, warm in zip(places, text, heat):
        ground = (255, int(255 - 150 * warm), int(255 - 195 * warm))
        draw.rectangle((left, top, left + wide - 1, top + high - 1), fill=ground)
        draw.text(
            (left + wide / 2, top + 2), character if character != "\n" else " ", fill="black", font=font, anchor="ma"
        )
    image.save(path)
