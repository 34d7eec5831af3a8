"""What the founding notes do around a training loop: printing, several devices, plots, a script's options and imports.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys

import pytest

import mortice as mt
from mortice import nn


def fresh(code, **environment):
    """Run code in a new process; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# The modern layout, whatever the notes' age
@pytest.mark.needs("cpu")
@pytest.mark.seed("PR01", "PR02", "PR03", "PR04")
def test_tensors_print_as_today():
    assert repr(mt.ones(2, 3)) == "tensor([[1., 1., 1.],\n        [1., 1., 1.]])"
    assert repr(mt.tensor([5.5, 3])) == "tensor([5.5000, 3.0000])"
    assert repr(mt.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])" and "..." not in repr(
        mt.arange(1000)
    )
    assert repr(mt.zeros(10, 3).size()) == "mortice.Size([10, 3])" and mt.zeros(10, 3).size() == (10, 3)
    x = mt.ones(2, requires_grad=True)
    assert (
        repr(x) == "tensor([1., 1.], requires_grad=True)" and repr(x * 3) == "tensor([3., 3.], grad_fn=<MulBackward0>)"
    )


@pytest.mark.seed("PR05")
def test_modules_print_their_layers():
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(inplace=True))
    assert repr(net) == (
        "Sequential(\n  (0): Linear(in_features=3, out_features=2, bias=True)\n  (1): ReLU(inplace=True)\n)"
    )


class Generator(nn.Module):
    """The notes' generator in small, with their guard for several GPUs."""

    def __init__(self, ngpu):
        super().__init__()
        self.ngpu = ngpu
        self.main = nn.Sequential(nn.ConvTranspose2d(4, 8, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU(True))

    def forward(self, x):
        if x.is_cuda and self.ngpu > 1:
            return nn.parallel.data_parallel(self.main, x, range(self.ngpu))
        return self.main(x)


def weights_init(m):
    """Initialise by the names of classes, as the notes do."""
    if "Conv" in type(m).__name__:
        m.weight.data.normal_(0.0, 0.02)
    elif "BatchNorm" in type(m).__name__:
        m.weight.data.normal_(1.0, 0.02)
        m.bias.data.fill_(0)


# Nothing is split: the module runs where its parameters are, and the guards of the notes do no harm
@pytest.mark.needs("cpu")
@pytest.mark.seed("PL01", "PL02", "PL03", "PL05", "PL07", "PL08")
def test_the_notes_way_to_several_gpus_runs_without_any():
    device = mt.device("cuda:0" if mt.cuda.is_available() else "cpu")
    net = Generator(ngpu=2)
    if mt.cuda.device_count() > 1:
        net = nn.DataParallel(net)
    net = net.to(device)
    net.apply(weights_init)
    x = mt.randn(6, 4, 1, 1, device=device)
    assert net(x).shape == (6, 8, 4, 4)
    wrapped = nn.DataParallel(Generator(ngpu=1), device_ids=None)
    wrapped.apply(weights_init)
    assert all(key.startswith("module.main.") for key in wrapped.state_dict())
    assert wrapped.module.main[0].weight.std() < 0.1 and wrapped(x.cpu()).shape[0] == 6


# The environment says which devices are seen; where there is none nothing breaks
@pytest.mark.needs("cpu")
@pytest.mark.seed("PL06", "WF03")
def test_a_program_is_told_its_devices_by_the_environment():
    code = "import mortice as mt; print(mt.cuda.device_count() <= 2, mt.ones(2).device.type)"
    assert fresh(code, CUDA_VISIBLE_DEVICES="2,3") == "True cpu"
    assert fresh("import mortice as mt; print(mt.cuda.device_count())", CUDA_VISIBLE_DEVICES="") == "0"


# With the option that the notes use and forget to declare
@pytest.mark.seed("WF01")
def test_the_notes_options_are_parsed(tmp_path):
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", required=True, help="cifar10 | folder | fake")
    parser.add_argument("--dataroot", default=str(tmp_path))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batchSize", type=int, default=64)
    parser.add_argument("--ngpu", type=int, default=1)
    parser.add_argument("--netG", default="", help="path to continue training")
    opt = parser.parse_args(
        ["--dataset", "fake", "--batchSize", "4", "--workers", "0", "--netG", str(tmp_path / "g.pth")]
    )
    mt.save(Generator(1).state_dict(), opt.netG)
    net = Generator(opt.ngpu)
    net.load_state_dict(mt.load(opt.netG, map_location="cpu"))
    data = mt.utils.data.TensorDataset(mt.randn(6, 4, 1, 1))
    loader = mt.utils.data.DataLoader(data, batch_size=opt.batchSize, num_workers=opt.workers)
    assert [net(x).shape[0] for (x,) in loader] == [4, 2]


# A notebook seeds in each cell that draws
@pytest.mark.seed("RS04", "WF02")
def test_a_cell_that_seeds_gives_the_same_numbers_when_it_runs_again():
    draws = [(mt.manual_seed(7), mt.rand(3).tolist())[1] for _ in range(2)]
    assert draws[0] == draws[1]


# Nothing is left behind that must be found and killed
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="processes are looked for in /proc")
@pytest.mark.seed("WF04")
def test_no_worker_outlives_its_program():
    code = (
        "import multiprocessing, mortice as mt\n"
        "if __name__ == '__main__':\n"
        "    loader = mt.utils.data.DataLoader(list(range(8)), batch_size=2, num_workers=2, persistent_workers=True)\n"
        "    it = iter(loader); next(it)\n"
        "    print(*[w.pid for w in multiprocessing.active_children()])\n"
        "    raise SystemExit\n"
    )
    pids = fresh(code, PYTHONWARNINGS="ignore").split()
    assert len(pids) == 2
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}/cmdline") and _is_python(pid)]


def _is_python(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"python" in file.read()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("mortice.utils.data", "Dataset"), ("mortice.autograd", "Variable"), ("mortice.nn.utils", "spectral_norm"),
        ("mortice.nn.functional", "relu"), ("mortice.optim", "Adam"), ("mortice.nn.parallel", "data_parallel"),
        ("mortice.vision.utils", "make_grid"), ("mortice.vision.datasets", "ImageFolder"),
        ("mortice.vision.transforms", "Compose"), ("mortice.vision.transforms.functional", "normalize"),
    ],
)  # fmt: skip
@pytest.mark.seed("WF06")
def test_the_notes_imports_work_with_mortices_names(module, name):
    if module.startswith("mortice.vision"):
        pytest.importorskip("mortice.vision", reason="mortice.vision is not in this tree")
    assert hasattr(importlib.import_module(module), name)


# Loss curves too: matplotlib takes tensors
@pytest.mark.needs("cpu")
@pytest.mark.seed("VZ05")
def test_pyplot_shows_images_and_curves_of_tensors():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: nothing is drawn")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    image = mt.rand(3, 8, 6)
    try:
        shown = plt.imshow(image.permute(1, 2, 0))
        plt.axis("off")
        assert shown.get_array().shape == (8, 6, 3) and shown.get_array()[2, 1, 0] == image[0, 2, 1].item()
        grey = plt.imshow(image[0], cmap="gray")
        assert grey.get_array().shape == (8, 6) and grey.get_clim() == (image[0].min().item(), image[0].max().item())
        assert plt.imshow((image * 255).to(mt.uint8).permute(1, 2, 0)).get_array().dtype == "uint8"
        plt.figure()
        losses = mt.tensor([1.0, 0.5, 0.25])
        assert plt.plot(losses)[0].get_ydata().tolist() == [1, 0.5, 0.25]
        kept = [(mt.ones(2, requires_grad=True) * n).sum().detach() for n in range(3)]
        assert plt.plot(kept)[0].get_ydata().tolist() == [0, 2, 4]
        plt.hist(losses, bins=mt.tensor([0.0, 0.3, 2.0]))
        plt.bar(mt.arange(3), losses, yerr=losses / 10)
        plt.fill_between(mt.arange(3), losses - 0.1, losses + 0.1)
        plt.scatter(losses, losses, c=losses)
        plt.pcolormesh(image[0])
        plt.savefig(os.devnull, format="png")
    finally:
        plt.close("all")


# Where a program has no TensorBoard, the numbers are a hook away
@pytest.mark.seed("ME02", "TR18")
def test_activations_and_gradients_of_each_layer_are_a_hook_away():
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    forward, backward = {}, {}
    for name, layer in net.named_children():
        layer.register_forward_hook(lambda m, a, out, name=name: forward.update({name: out.detach().std().item()}))
        layer.register_full_backward_hook(
            lambda m, gi, go, name=name: backward.update({name: mt.histc(go[0], 4).tolist()})
        )
    net(mt.randn(16, 4, requires_grad=True)).sum().backward()
    assert set(forward) == set(backward) == {"0", "1", "2"} and backward["2"] == [0, 0, 16, 0]
