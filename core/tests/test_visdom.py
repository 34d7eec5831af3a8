"""A real visdom server takes tensors as they are: a training run is logged and read back over its HTTP interface."""

from __future__ import annotations

import base64
import io
import json
import socket
import subprocess
import sys
import time
import warnings

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed: visdom, which stands on it, is not tried")

import mortice as mt  # noqa: E402
from mortice.backends import plugins  # noqa: E402

# Not visdom's own command, which fetches scripts for its page from the network first.
SERVER = """
import sys
from visdom.server.run_server import start_server
start_server(port=int(sys.argv[1]), env_path=sys.argv[2], base_url="", bind_local=True)
"""


@pytest.fixture(scope="module")
def vis(tmp_path_factory):
    """Start a server of its own for this file, and return a client."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of whatever visdom imports
        visdom = pytest.importorskip("visdom", reason="visdom is not installed: no server is started")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    log = open(tmp_path_factory.mktemp("visdom") / "log", "w+b")
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER, str(port), str(tmp_path_factory.mktemp("env"))],
        stdout=log,
        stderr=log,
    )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"visdom's server did not start: {log.read().decode()}") from None
                time.sleep(0.05)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield visdom.Visdom(server="http://127.0.0.1", port=port, raise_exceptions=True, use_incoming_socket=False)
    finally:
        server.terminate()
        server.wait()
        log.close()


def window(vis, name):
    """Return what the server holds of a window."""
    return json.loads(vis.get_window_data(name))


def lines(vis, name):
    """Return the (x, y) of each line in a window."""
    return [(trace["x"], trace["y"]) for trace in window(vis, name)["content"]["data"]]


@pytest.mark.seed("VZ01", "VZ03", "VZ04")
def test_a_training_run_is_read_back_from_the_server(vis):
    mt.manual_seed(0)
    model = mt.nn.Sequential(mt.nn.Linear(2, 16), mt.nn.Tanh(), mt.nn.Linear(16, 1))
    optimizer = mt.optim.Adam(model.parameters(), lr=0.02)
    x = mt.randn(64, 2)
    y = (x[:, :1] * x[:, 1:]).sign()
    losses, shares = [], []
    for epoch in range(15):
        optimizer.zero_grad()
        out = model(x)
        loss = (out - y).square().mean()
        loss.backward()
        optimizer.step()
        share = (out.sign() == y).float().mean()
        losses.append(loss.item())
        shares.append(share.item())
        how = "append" if epoch else None
        # The loss still has its gradient, and neither is a vector: what visdom's client itself would not take.
        assert vis.line(Y=loss, X=mt.tensor(epoch), win="loss", update=how, opts={"title": "loss"}) == "loss"
        vis.line(
            Y=mt.stack([loss, share])[None],
            X=mt.full((1, 2), epoch),
            win="both",
            update=how,
            opts={"legend": ["loss", "right"]},
        )
    ((at, seen),) = lines(vis, "loss")
    assert at == list(range(15)) and seen == pytest.approx(losses) and seen[-1] < seen[0]
    both = lines(vis, "both")
    assert both[0][1] == pytest.approx(losses) and both[1][1] == pytest.approx(shares)
    assert window(vis, "loss")["title"] == "loss"


@pytest.mark.seed("VZ02", "VZ03")
def test_m_lines_of_n_points_and_windows_by_name(vis):
    y = mt.rand(10, 3)
    first = vis.line(Y=y, X=mt.linspace(0, 1, 10), win="lines")
    assert first == "lines" and [seen for _, seen in lines(vis, first)] == [
        pytest.approx(c.tolist()) for c in y.unbind(1)
    ]
    vis.line(Y=y[:, 0], win="lines")
    assert len(lines(vis, "lines")) == 1
    others = {vis.line(Y=y), vis.line(Y=y)}
    assert len(others) == 2 and "lines" not in others


@pytest.mark.parametrize("device", ["cpu", "strict:0"])
def test_images_are_the_pixels_of_tensors(vis, device):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: images are not decoded")
    if device != "cpu" and "strict" not in plugins.list_backends():
        pytest.skip("mortice-conformance is not installed: there is no other device here")

    def pixels(name):
        source = window(vis, name)["content"]["src"].partition("base64,")[2]
        return np.asarray(image.open(io.BytesIO(base64.b64decode(source))))

    picture = (mt.rand(3, 6, 8) * 255).to(mt.uint8).to(device)
    assert (pixels(vis.image(picture, opts={"store_history": False})) == picture.cpu().permute(1, 2, 0).numpy()).all()
    floats = mt.rand(3, 6, 8, device=device, requires_grad=True)
    wanted = (floats.detach().cpu().permute(1, 2, 0).numpy() * np.float32(255)).astype("uint8")
    assert np.abs(pixels(vis.image(floats)).astype(int) - wanted).max() <= 1
    several = pixels(vis.images((mt.rand(4, 1, 5, 5) * 255).to(mt.uint8).to(device), nrow=2, padding=2))
    assert several.shape == (2 * (5 + 4), 2 * (5 + 4), 3)  # visdom pads on both sides
    assert (
        pixels(vis.images([picture, picture], padding=2))[3:9, 3:11].tolist() == picture.cpu().permute(1, 2, 0).tolist()
    )


@pytest.mark.seed("VZ04")
def test_other_plots_take_tensors(vis):
    values = mt.rand(5, 4, requires_grad=True)
    heat = window(vis, vis.heatmap(values, win="heat"))["content"]["data"][0]
    assert np.allclose(heat["z"], values.detach().cpu())
    bars = window(vis, vis.bar(mt.nn.Parameter(mt.arange(3.0)), win="bars"))["content"]["data"][0]
    assert bars["y"] == [0, 1, 2]
    counted = window(vis, vis.histogram(mt.arange(10.0), win="counts", opts={"numbins": 5}))["content"]["data"][0]
    assert counted["y"] == [2, 2, 2, 2, 2]
    points, labels = mt.rand(6, 2), mt.tensor([1, 2, 1, 2, 2, 2])
    found = window(vis, vis.scatter(points, labels, win="points"))["content"]["data"]
    assert [len(group["x"]) for group in found] == [2, 4] and np.allclose(found[0]["x"], points[labels == 1, 0].cpu())
    for make in (vis.boxplot, vis.surf, vis.contour):
        assert make(mt.rand(5, 5))
    assert (
        vis.pie(mt.rand(3))
        and vis.stem(mt.rand(4))
        and vis.line(Y=[mt.tensor(1.0, requires_grad=True), mt.tensor(2.0)])
    )


def test_plots_keep_one_window_for_each_name_and_cut_graphs(vis):
    from mortice.utils.plots import Plots

    plots = Plots(vis)
    before = set(json.loads(vis.get_window_data() or "{}"))
    weight = mt.tensor(4.0, requires_grad=True)
    for step in range(5):
        loss = (weight - step).square()
        plots.line("one", step, loss)
        plots.line("two", mt.tensor(step), {"train": loss, "valid": step / 2})
        plots.images("samples", mt.rand(4, 1, 5, 5) * loss / 16)
    assert lines(vis, "one") == [([0, 1, 2, 3, 4], [16, 9, 4, 1, 0])]
    assert [y for _, y in lines(vis, "two")] == [[16, 9, 4, 1, 0], [0, 0.5, 1, 1.5, 2]]
    assert [trace["name"] for trace in window(vis, "two")["content"]["data"]] == ["train", "valid"]
    after = set(json.loads(vis.get_window_data()))
    assert after - before == {"one", "two", "samples"}
    plots.clear("one")
    plots.line("one", 0, 7)
    assert lines(vis, "one") == [([0], [7])]
    with pytest.raises(ValueError, match=r"expected one number for 'one'; got a tensor of shape \(2,\)"):
        plots.line("one", 1, mt.ones(2))


@pytest.mark.parametrize("order", ["visdom, mortice", "mortice, visdom"])
def test_visdom_knows_tensors_whichever_is_imported_first_and_without_pytorch(order, vis):
    code = (
        f"import sys; sys.modules['torch'] = None; import {order}; import mortice.nn\n"
        "f = visdom._to_numpy; p = mortice.nn.Parameter(mortice.ones(2))\n"
        "print(f(p).tolist(), f(p.sum()).shape, f([p.sum(), 1]).tolist(), f('text'), f([1, 2]).tolist(), f(None))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[1.0, 1.0] (1,) [2.0, 1.0] text [1, 2] None\n", done.stderr
