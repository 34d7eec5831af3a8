"""The programs of examples/ as tests and benchmarks run them: small, by the imports of a library, within tolerances."""

from __future__ import annotations

import contextlib
import io
import re
import types
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS, GALLERY = EXAMPLES / "programs", EXAMPLES / "gallery"

# What makes each small: the arguments of its `build` and of its `train`.
SMALL = {
    "mlp": ({"hidden": 32}, {"steps": 20, "batch_size": 32}),
    "lenet": ({}, {"steps": 20, "batch_size": 16}),
    "resnet": ({"width": 4, "blocks": (1, 1, 1)}, {"steps": 12, "batch_size": 32}),
    "dcgan": ({"nz": 8, "ngf": 8, "ndf": 8}, {"steps": 16, "batch_size": 16}),
    "vae": ({"hidden": 32}, {"steps": 20}),
    "char_lstm": ({"embedding": 8, "hidden": 32}, {"steps": 16, "batch_size": 4}),
    "gpt": ({"width": 16, "layers": 2, "block_size": 16}, {"steps": 20, "batch_size": 8}),
    "siamese": ({"channels": 4}, {"steps": 16, "batch_size": 16}),
    "reinforce": ({"hidden": 32}, {"steps": 30, "longest": 50}),
    "sine_lbfgs": ({"hidden": 8}, {"steps": 8, "count": 4, "length": 24}),
}
# The curve that shows learning, where it is not the loss, and whether it falls (-1) or rises (1).
PROGRESS = {"dcgan": ("discriminator", -1), "reinforce": ("length", 1)}
DEVICES = {"sine_lbfgs": "strict:0"}  # it computes in float64, which strict_f32 has not

# Relative tolerances. The order of summation is all that may differ, but training magnifies it: where a gradient is
# nearly 0 Adam moves by the sign that rounding left, and a unit that rounding moves across the kink of a ReLU changes its
# gradient at once. So float64 is the proof; float32 is what a user sees.
BACKENDS, FLOAT32, FLOAT64 = 1e-5, 2e-4, 1e-10
KINKED = {"resnet": 0.1, "siamese": 0.02}  # float32: PyTorch without oneDNN differs as much from PyTorch with it
MAGNIFIED = {"sine_lbfgs": 1e-6}  # float64: eighty iterations of LBFGS without a line search
NEAR_0 = 1e-5  # absolute: the loss of REINFORCE is a sum of both signs

GALLERY_SHARED = ["common", "dcgan", "char_lstm", "cifar_resnet"]  # what other programs import, in that order
TINY_GAN = ["--imageSize", "8", "--nz", "8", "--ngf", "8", "--ndf", "8", "--batchSize", "32", "--lr", "0.001"]
TINY_NET = ["--imageSize", "8", "--depth", "8"]

# What makes each of the gallery small; what it draws; what its log is held to after two epochs: a curve, a bound, and whether it lies
# above (1) or below (-1) it.
GALLERY_SMALL = {
    "dcgan": ([*TINY_GAN, "--limit", "128"], ["fake_samples_epoch_002.png", "real_samples.png"], ("loss_D", 1.6, -1)),
    "wgan": ([*TINY_GAN, "--limit", "160"], ["fake_samples_epoch_002.png", "real_samples.png"], ("distance", 0.0, 1)),
    "vae": (["--imageSize", "8", "--hidden", "64", "--lr", "0.004"], ["pairs.png", "plane.png"], ("loss", 34.0, -1)),
    "cifar_resnet": ([*TINY_NET, "--classes", "0", "1", "--batchSize", "32"], ["read.png"], ("accuracy", 0.9, 1)),
    "finetune": ([*TINY_NET, "--shots", "8", "--batchSize", "8"], ["read.png"], ("loss", 1.5, -1)),
    "char_lstm": (
        ["--hidden", "48", "--limit", "6000", "--seqLength", "32", "--batchSize", "8", "--lr", "0.02"],
        ["surprise.png", "written.txt"],
        ("held_out", 3.2, -1),
    ),
    "gpt": (
        ["--width", "16", "--layers", "2", "--length", "32", "--limit", "6000", "--lr", "0.02"],
        ["attention.png", "written.txt"],
        ("held_out", 3.3, -1),
    ),
}


def load(name, library="mortice"):
    """Return a program as a module: as it stands, or with the imports of mortice naming another library."""
    path = PROGRAMS / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    module = types.ModuleType(f"{name}_in_{library}")
    exec(compile(with_imports_of(library, source), str(path), "exec"), vars(module))
    return module


def with_imports_of(library, source):
    """Return the source of a program with `mortice` replaced in the lines that import it, and nowhere else."""
    return re.sub(r"^(import|from) mortice\b", rf"\1 {library}", source, flags=re.MULTILINE)


def modules_of(built):
    """Return what `build` gave, one module or several, as a tuple."""
    return built if isinstance(built, tuple) else (built,)


def curves_of(history):
    """Return what `train` gave, a list of losses or several lists by name, by name."""
    return history if isinstance(history, dict) else {"loss": history}


def copied(save, state, load):
    """Return a state dict after its way through a file."""
    file = io.BytesIO()
    save(state, file)
    file.seek(0)
    return load(file)


@contextlib.contextmanager
def in_float64(library):
    """Make float64 the default dtype of a library for a while."""
    before = library.get_default_dtype()
    library.set_default_dtype(library.float64)
    try:
        yield
    finally:
        library.set_default_dtype(before)
