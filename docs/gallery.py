"""Make gallery.md and its pictures from what the programs of examples/gallery draw: `python docs/gallery.py [NAME ...]`.

Programs that are named are run first, into out/; without names all are. `--page` runs none and takes what lies in out/.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PICTURES = DOCS / "gallery"
LIMITS = 60_000, 400_000  # bytes of a picture, and of all


@dataclass
class Picture:
    """A picture as a program draws it, its caption, and how it is made small."""

    source: str
    caption: str
    enlarge: int = 1
    colors: int = 32  # of the palette

    @property
    def name(self) -> str:
        """Return the name of the file under docs/gallery."""
        return self.source.replace("/", "_")

    def make(self) -> None:
        """Write the picture under docs/gallery."""
        image = Image.open(ROOT / "out" / self.source).convert("RGB")
        image = image.resize((image.width * self.enlarge, image.height * self.enlarge), Image.Resampling.NEAREST)
        PICTURES.mkdir(exist_ok=True)
        image.quantize(self.colors, dither=Image.Dither.NONE).save(PICTURES / self.name, optimize=True)


@dataclass
class Entry:
    """A program's part of the page: the commands, by the folder each writes to, a text and the pictures."""

    title: str
    text: str
    commands: dict[str, str]
    pictures: list[Picture]
    written: str = ""  # a file of text to quote


SEED = "--manualSeed 1 --backend cpu_cext"
GALLERY = [
    Entry(
        "Digits out of noise: DCGAN",
        "Generator and discriminator learn in turns. After each epoch the same 64 pieces of noise are drawn; below, the first"
        " of them after epochs 1, 2, 3, 5, 8, 12 and 20, from top to bottom.",
        {"dcgan": f"dcgan.py --niter 20 {SEED}"},
        [
            Picture("dcgan/progress.png", "The same noise, epoch by epoch"),
            Picture("dcgan/fake_samples_epoch_020.png", "After the last epoch"),
            Picture("dcgan/real_samples.png", "What it learns from: digits of 8x8 pixels, enlarged"),
            Picture("dcgan/losses.png", "The losses of the two"),
        ],
    ),
    Entry(
        "A loss that means something: Wasserstein GAN",
        "A critic without a sigmoid rates the pictures; how much higher it rates the real ones is an estimate of how far the"
        " others are from them. RMSprop, and the critic's weights are clamped after each of its steps, of which there are five"
        " to each of the generator's.",
        {"wgan": f"wgan.py --imageSize 16 {SEED}"},
        [
            Picture("wgan/fake_samples_epoch_040.png", "After the last epoch", 2),
            Picture("wgan/losses.png", "The critic's estimate of the distance"),
        ],
    ),
    Entry(
        "A plane of digits: variational autoencoder",
        "Two numbers stand for a picture. Below is what each point of their plane is drawn as, and pairs of a picture and what"
        " is left of it after its way through the two numbers.",
        {"vae": f"vae.py {SEED}"},
        [Picture("vae/plane.png", "The plane", 2, 16), Picture("vae/pairs.png", "Pairs: given, drawn", 2)],
    ),
    Entry(
        "Which digit is it: residual network",
        "Digits that it has not seen, its mistakes first and framed red. CIFAR-10 takes `--dataset cifar10 --dataroot DIR`.",
        {"cifar_resnet": f"cifar_resnet.py --depth 8 --imageSize 16 --niter 8 {SEED}"},
        [Picture("cifar_resnet/read.png", "Held-out digits", 2), Picture("cifar_resnet/loss.png", "Loss")],
    ),
    Entry(
        "New classes from four pictures each: fine-tuning",
        "A network learns the digits 0 to 4. Its last stage and a new head then learn 5 to 9 from image folders with four"
        " pictures a class, while the rest is frozen; the last command does so from scratch.",
        {
            "first_digits": "cifar_resnet.py --classes 0 1 2 3 4 --depth 8 --imageSize 16 --niter 5"
            f" --outf out/first_digits {SEED}",
            "finetune": f"finetune.py --net out/first_digits/checkpoint.pt --depth 8 --imageSize 16 {SEED}",
            "from_scratch": f"finetune.py --depth 8 --imageSize 16 --outf out/from_scratch {SEED}",
        },
        [
            Picture("finetune/read.png", "From the loaded weights", 2),
            Picture("from_scratch/read.png", "From scratch", 2),
        ],
    ),
    Entry(
        "What surprises an LSTM",
        "It has read these pages, character by character. In a part that was held out each character is the redder the less"
        " it was expected.",
        {"char_lstm": f"char_lstm.py {SEED}"},
        [Picture("char_lstm/surprise.png", "Held-out text")],
        "char_lstm/written.txt",
    ),
    Entry(
        "Where a GPT looks",
        "Each picture is a head of attention, each row of pictures a layer: line by line, from which of the characters before"
        " it a character takes what.",
        {"gpt": f"gpt.py --width 64 --layers 2 --length 64 --niter 15 --lr 0.005 {SEED}"},
        [Picture("gpt/attention.png", "Attention in held-out text", 2), Picture("gpt/loss.png", "Loss of a character")],
        "gpt/written.txt",
    ),
]


def run(entry: Entry) -> None:
    """Run the commands of a part of the page; what each prints is kept in the folder that it writes to."""
    for folder, command in entry.commands.items():
        print(command, flush=True)
        program, *options = command.split()
        arguments = [sys.executable, str(ROOT / "examples" / "gallery" / program), *options]
        done = subprocess.run(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        (ROOT / "out" / folder / "log.txt").write_text(done.stdout, encoding="utf-8")


def draw_progress(epochs: tuple[int, ...] = (1, 2, 3, 5, 8, 12, 20)) -> None:
    """Put the first rows of DCGAN's grids after some epochs below each other."""
    folder = ROOT / "out" / "dcgan"
    grids = [Image.open(folder / f"fake_samples_epoch_{epoch:03d}.png") for epoch in epochs]
    high = (grids[0].height - 2) // 8
    strip = Image.new("RGB", (grids[0].width, high * len(grids) + 2))
    for i, grid in enumerate(grids):
        strip.paste(grid.crop((0, 0, grid.width, high + 2)), (0, i * high))
    strip.save(folder / "progress.png")


def said(folder: str) -> str:
    """Return what a program said of its last epoch, and how well it did."""
    lines = (ROOT / "out" / folder / "log.txt").read_text(encoding="utf-8").splitlines()
    last = [line.rpartition(" (")[0] for line in lines if line.startswith("epoch ")][-1]
    return "\n".join([last, *(line for line in lines if line.startswith("held-out accuracy"))])


def page() -> str:
    """Return the page."""
    parts = [
        "# What the programs draw",
        "Made by `python docs/gallery.py`, which runs the commands below: each takes a minute or two of one core of a"
        " processor. They name the seed and the backend, so that on one machine the same comes out again (but for the two"
        " programs that read these pages, which change). More about the programs is"
        " [in examples/gallery](../examples/gallery/README.md).",
    ]
    for entry in GALLERY:
        parts += [f"## {entry.title}", entry.text]
        for folder, command in entry.commands.items():
            parts.append(f"```\n$ python examples/gallery/{command}\n{said(folder)}\n```")
        parts += [f"![{p.caption}](gallery/{p.name})\n*{p.caption}*" for p in entry.pictures]
        if entry.written:
            text = (ROOT / "out" / entry.written).read_text(encoding="utf-8")
            parts.append("It goes on from `A backend is `:\n\n```text\n" + text.replace("```", "'''").strip() + "\n```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="folders under out/ to make anew, such as dcgan")
    parser.add_argument("--page", action="store_true", help="run nothing")
    options = parser.parse_args()
    for entry in GALLERY:
        if not options.page and (not options.names or set(options.names) & set(entry.commands)):
            run(entry)
    draw_progress()
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.iterdir():
        old.unlink()
    for entry in GALLERY:
        for picture in entry.pictures:
            picture.make()
    sizes = {path.name: path.stat().st_size for path in PICTURES.iterdir()}
    large = {name: size for name, size in sizes.items() if size > LIMITS[0]}
    if large or sum(sizes.values()) > LIMITS[1]:
        raise SystemExit(f"the pictures are too large: {large or sum(sizes.values())}; expected at most {LIMITS} bytes")
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")
    print(f"{len(sizes)} pictures of {sum(sizes.values()):,} bytes")


if __name__ == "__main__":
    main()
