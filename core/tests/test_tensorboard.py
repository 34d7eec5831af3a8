"""SummaryWriter: event files as TensorBoard's own reader reads them, and as PyTorch's writer writes them."""

from __future__ import annotations

import importlib
import io
import os
import struct
import subprocess
import sys
import time
import warnings
import zlib

import pytest

import mortice as mt
from mortice.utils.tensorboard import FileWriter, SummaryWriter, wire


def reader(name="tensorboard.backend.event_processing.event_accumulator"):
    """Import a module of TensorBoard's, or skip aloud."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(
            "tensorboard", reason="tensorboard is not installed: what is written is not read back by it"
        )
        return importlib.import_module(name)


def read(folder):
    """Return TensorBoard's view of a folder, with nothing thinned out."""
    found = reader().EventAccumulator(
        str(folder), {"scalars": 0, "histograms": 0, "images": 0, "audio": 0, "tensors": 0, "compressedHistograms": 0}
    )
    return found.Reload()


def events_of(folder):
    """Return all events in a folder's one file, as TensorBoard's protos."""
    loader = reader("tensorboard.backend.event_processing.event_file_loader")
    (name,) = [n for n in os.listdir(folder) if "tfevents" in n]
    return list(loader.RawEventFileLoader(os.path.join(folder, name)).Load()), loader


def frames(path):
    """Return the records of a file, with their checksums checked, by this test's own reading."""
    data, found, at = path.read_bytes(), [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + length]
        for piece, place in ((data[at : at + 8], at + 8), (body, at + 12 + length)):
            crc = bytewise(piece)
            assert struct.unpack_from("<I", data, place)[0] == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        found.append(body)
        at += 16 + length
    return found


def bytewise(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


# ---- bytes ----


def test_checksums_are_crc32c():
    assert wire.crc32c(b"123456789") == 0xE3069283  # the check value of the CRC catalogue
    assert wire.crc32c(bytes(32)) == 0x8A9136AA and wire.crc32c(b"\xff" * 32) == 0x62A8AB43  # RFC 3720, B.4
    data = bytes((i * i + i // 7) % 256 for i in range(2100))
    for n in (0, 1, 255, 256, 257, 511, 512, 1023, 1024, 1025, 2047, 2048, 2049, 2100):
        assert wire.crc32c(data[:n]) == bytewise(data[:n])


def test_fields_are_those_of_protocol_buffers():
    assert wire.field(1, 150) == b"\x08\x96\x01" and wire.field(2, "testing") == b"\x12\x07testing"
    assert wire.field(1, -1) == b"\x08" + b"\xff" * 9 + b"\x01" and wire.field(16, True) == b"\x80\x01\x01"
    assert wire.field(3, wire.Single(1.5)) == b"\x1d\x00\x00\xc0?" and wire.field(3, None) == b""
    assert wire.message(f1=[1, 2], f2=wire.message()) == b"\x08\x01\x08\x02\x12\x00"


def test_files_are_named_and_begin_as_tensorboard_expects(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_LR_0.1", filename_suffix=".me") as writer:
        writer.add_scalar("loss", 0.5, 3, walltime=12.0)
    folder = tmp_path / writer.get_logdir()
    assert folder.parent == tmp_path / "runs" and folder.name.endswith("_LR_0.1")
    (file,) = folder.iterdir()
    assert file.name.startswith("events.out.tfevents.") and file.name.endswith(".me")
    first, second = frames(file)
    assert first[9:] == b"\x1a\x0dbrain.Event:2"
    assert second == wire.message(f1=12.0, f2=3, f5=wire.message(f1=wire.message(f1="loss", f2=wire.Single(0.5))))


# ---- read back by TensorBoard ----


@pytest.mark.seed("ME02")
def test_a_training_run_is_read_back(tmp_path):
    mt.manual_seed(0)
    model = mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.Tanh(), mt.nn.Linear(8, 1))
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
    x = mt.randn(32, 4, requires_grad=True)  # a layer's backward hook wants to hear of its inputs
    y, losses, seen = x.detach().sum(1, keepdim=True), [], {}
    # Activations and gradients by layer, through hooks (ME02).
    for name, layer in model.named_children():
        layer.register_forward_hook(lambda m, a, out, name=name: seen.update({f"activation/{name}": out.detach()}))
        layer.register_full_backward_hook(
            lambda m, gi, go, name=name: seen.update({f"gradient/{name}": go[0].detach()})
        )
    with SummaryWriter(tmp_path) as writer:
        for epoch in range(12):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            writer.add_scalar("loss", loss, epoch)
            writer.add_scalars("both", {"train": loss, "twice": 2 * loss.item()}, mt.tensor(epoch))
            for name, values in {**seen, **dict(model.named_parameters())}.items():
                writer.add_histogram(name, values, epoch)
    found = read(tmp_path)
    assert [e.step for e in found.Scalars("loss")] == list(range(12))
    assert [e.value for e in found.Scalars("loss")] == pytest.approx(losses) and losses[-1] < losses[0]
    assert set(found.Tags()["histograms"]) == {*seen, *dict(model.named_parameters())} and len(seen) == 6
    last = found.Histograms("gradient/2")[-1].histogram_value
    assert last.num == 32 and sum(last.bucket) == 32 and last.max == pytest.approx(seen["gradient/2"].max().item())
    assert [e.value for e in read(tmp_path / "both_twice").Scalars("both")] == pytest.approx([2 * n for n in losses])


def test_images_sound_and_text_are_read_back(tmp_path):
    np = pytest.importorskip("numpy", reason="NumPy is not installed: pixels are not compared")
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: images are not decoded")
    import io

    mt.manual_seed(0)
    picture, several = mt.rand(3, 5, 7), (mt.rand(10, 1, 4, 6) * 255).to(mt.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("chw", picture, 1)
        writer.add_image("hwc", picture.permute(1, 2, 0), dataformats="HWC")
        writer.add_image("grey", picture[0], dataformats="HW")
        writer.add_image("alpha", mt.rand(4, 2, 2))
        writer.add_images("many", several)
        writer.add_audio("sound", mt.linspace(-1, 1, 400).unsqueeze(0), sample_rate=8000)
        writer.add_text("words", "**bold** é", 2)
    found = read(tmp_path)

    def pixels(tag):
        return np.asarray(image.open(io.BytesIO(found.Images(tag)[0].encoded_image_string)))

    want = (picture.cpu().numpy() * np.float32(255)).clip(0, 255).astype("uint8").transpose(1, 2, 0)
    assert (pixels("chw") == want).all() and (pixels("hwc") == want).all() and found.Images("chw")[0].step == 1
    assert (pixels("grey") == want[:, :, :1]).all() and pixels("alpha").shape == (2, 2, 4)
    many = pixels("many")
    assert many.shape == (8, 48, 3) and (many[4:, 6:12, 0] == several[9, 0].cpu().numpy()).all() and not many[4:, 12:].any()
    sound = found.Audio("sound")[0]
    assert sound.sample_rate == 8000 and sound.length_frames == 400 and sound.encoded_audio_string[:4] == b"RIFF"
    assert found.Tensors("words/text_summary")[0].tensor_proto.string_val[0].decode() == "**bold** é"


def test_figures_are_read_back(tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: no figure is drawn")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with SummaryWriter(tmp_path) as writer:
        figure = pyplot.figure(figsize=(2, 1), dpi=50)
        figure.gca().plot(mt.arange(5).cpu(), mt.arange(5).cpu() ** 2)
        writer.add_figure("curve", figure, close=False)
        assert pyplot.fignum_exists(figure.number)
        writer.add_figure("curves", [figure, pyplot.figure(figsize=(2, 1), dpi=50)])
        assert not pyplot.get_fignums()
    found = read(tmp_path)
    assert (found.Images("curve")[0].width, found.Images("curve")[0].height) == (100, 50)
    assert found.Images("curves")[0].width == 200


def test_boxes_are_drawn_into_images(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: it draws the boxes")
    boxes = mt.tensor([[2.0, 3.0, 12.0, 9.0], [20.0, 10.0, 36.0, 28.0]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_image_with_boxes("boxes", mt.zeros(3, 30, 40), boxes)
        writer.add_image_with_boxes("labels", mt.zeros(30, 40), boxes, dataformats="HW", labels=["", "cat"])
        writer.add_image_with_boxes("other labels", mt.zeros(3, 30, 40), boxes, labels=["one"])
        writer.add_image_with_boxes("twice", mt.zeros(3, 30, 40, dtype=mt.uint8), boxes, rescale=2)
    accumulator = read(tmp_path)
    plain, labels, other, twice = [accumulator.Images(tag)[0] for tag in ("boxes", "labels", "other labels", "twice")]
    picture = Image.open(io.BytesIO(plain.encoded_image_string))
    assert picture.size == (40, 30)
    red, black = (255, 0, 0), (0, 0, 0)
    assert [picture.getpixel(at) for at in ((2, 5), (12, 5), (7, 3), (7, 9), (20, 20))] == [red] * 5
    assert [picture.getpixel(at) for at in ((7, 6), (0, 0), (28, 18), (16, 15))] == [black] * 4
    assert labels.encoded_image_string != plain.encoded_image_string == other.encoded_image_string
    assert Image.open(io.BytesIO(twice.encoded_image_string)).size == (80, 60) == (twice.width, twice.height)


def test_a_graph_has_modules_as_scopes_and_leaves_the_model_as_it_was(tmp_path):
    class Net(mt.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mt.nn.Sequential(mt.nn.Linear(6, 6), mt.nn.BatchNorm1d(6), mt.nn.ReLU(), mt.nn.Dropout())

        def forward(self, x, y):
            return {"out": self.body(x) + y}

    model = Net()
    before = {k: t.clone() for k, t in model.state_dict().items()}
    inputs, state = (mt.rand(3, 6), mt.rand(3, 6)), mt.get_rng_state()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, inputs)
    assert all(mt.equal(t, before[k]) for k, t in model.state_dict().items()) and mt.equal(state, mt.get_rng_state())
    nodes = {n.name: n for n in read(tmp_path).Graph().node}
    assert "Net/Add" in nodes and nodes["output_0"].input == ["Net/Add"] and "input_1" in nodes["Net/Add"].input
    assert nodes["Net/body/0/Addmm"].input == ["Net/body/0/bias/parameter", "input_0", "Net/body/0/T"]
    assert nodes["Net/body/0/T"].input == ["Net/body/0/weight/parameter"]
    assert "Net/body/2/Relu" in nodes and [
        d.size for d in nodes["output_0"].attr["_output_shapes"].list.shape[0].dim
    ] == [3, 6]
    assert {i for n in nodes.values() for i in n.input} <= set(nodes)


def test_hparams_curves_and_layouts_are_read_back(tmp_path):
    reader()
    plugin = importlib.import_module("tensorboard.plugins.hparams.plugin_data_pb2")
    layouts = importlib.import_module("tensorboard.plugins.custom_scalar.layout_pb2")
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams(
            {"lr": 0.1, "bn": True, "name": "sgd", "n": mt.tensor(3), "none": None}, {"accuracy": mt.tensor(0.75)},
            {"name": ["sgd", "adam"]}, run_name="first",
        )  # fmt: skip
        writer.add_custom_scalars_multilinechart(["a", "b"], "group", "title")
        writer.add_custom_scalars({"more": {"margin": ["Margin", ["v", "low", "high"]], "lines": ["Multiline", ["a"]]}})
        writer.add_tensor("t", mt.eye(2), 4)
        writer.add_scalar("new", 0.25, new_style=True)
        writer.add_scalar("double", 0.1, double_precision=True)
        writer.add_pr_curve("pr", mt.tensor([1, 0, 1, 1]), mt.tensor([0.9, 0.2, 0.4, 0.6]), num_thresholds=11)
    run = read(tmp_path / "first")
    assert run.Scalars("accuracy")[0].value == 0.75
    content = {
        t: plugin.HParamsPluginData.FromString(run.SummaryMetadata(t).plugin_data.content)
        for t in run.PluginTagToContent("hparams")
    }
    start = content["_hparams_/session_start_info"].session_start_info.hparams
    assert start["lr"].number_value == 0.1 and start["bn"].bool_value is True and start["name"].string_value == "sgd"
    assert start["n"].number_value == 3 and set(start) == {"lr", "bn", "name", "n"}
    infos = {i.name: i for i in content["_hparams_/experiment"].experiment.hparam_infos}
    assert [v.string_value for v in infos["name"].domain_discrete.values] == ["sgd", "adam"] and infos["bn"].type == 2
    found = read(tmp_path)
    layout = layouts.Layout.FromString(found.Tensors("custom_scalars__config__")[-1].tensor_proto.string_val[0])
    assert [(c.title, list(c.margin.series[0].lower) if c.margin.series else list(c.multiline.tag)) for c in layout.category[0].chart] == [
        ("margin", list("low")), ("lines", ["a"])
    ] or layout.category[0].chart[0].margin.series[0].lower == "low"  # fmt: skip
    assert list(found.Tensors("t")[0].tensor_proto.float_val) == [1, 0, 0, 1] and found.Tensors("t")[0].step == 4
    assert found.Tensors("new")[0].tensor_proto.float_val[0] == 0.25
    assert found.Tensors("double")[0].tensor_proto.double_val[0] == 0.1
    curve = list(found.Tensors("pr")[0].tensor_proto.float_val)
    assert curve[:11] == [3, 3, 3, 3, 3, 2, 2, 1, 1, 1, 0] and curve[11:14] == [1, 1, 1]


def test_embeddings_are_read_back(tmp_path):
    reader()
    config = importlib.import_module("tensorboard.plugins.projector.projector_config_pb2").ProjectorConfig
    text_format = importlib.import_module("google.protobuf.text_format")
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(
            mt.eye(5, 3), [["a", i] for i in range(5)], mt.rand(5, 1, 4, 6), 7, "my/tag", ["name", "n"]
        )
        writer.add_embedding(mt.eye(2), global_step=8)
    found = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), config())
    first, second = found.embeddings
    assert (tmp_path / first.tensor_path).read_text().splitlines()[1] == "0.0\t1.0\t0.0"
    assert (tmp_path / first.metadata_path).read_text().splitlines()[:2] == ["name\tn", "a\t0"]
    assert list(first.sprite.single_image_dim) == [6, 4] and first.tensor_name == "my/tag:00007"
    sprite = (tmp_path / first.sprite.image_path).read_bytes()
    assert struct.unpack(">II", sprite[16:24]) == (18, 12) and (tmp_path / second.tensor_path).exists()


# ---- as PyTorch writes ----


@pytest.mark.oracle
def test_the_same_calls_write_the_same_events_as_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: event files are not compared with its")
    np = pytest.importorskip("numpy")
    reader()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = importlib.import_module("torch.utils.tensorboard").SummaryWriter
    plugin = importlib.import_module("tensorboard.plugins.hparams.plugin_data_pb2").HParamsPluginData
    rng = np.random.default_rng(0)
    spread, label, probability = rng.normal(size=500), rng.integers(0, 2, 200), rng.uniform(size=200)
    weight = rng.integers(1, 4, 200).astype(float)
    image = rng.integers(0, 255, (9, 3, 4, 5)).astype(np.uint8)

    def run(make, tensor, folder):
        with make(str(folder), purge_step=3) as w:
            w.add_scalar("a", tensor(np.array(0.5)), 1, 10.0)
            w.add_scalar("a", 2, 2, 10.0, new_style=True)
            w.add_scalar("a", 2.5, 2, 10.0, double_precision=True, new_style=True)
            for i, bins in enumerate(
                ("tensorflow", 7, "fd", "auto", "sturges", "scott", "rice", "sqrt", [-1.0, 0.0, 0.5, 2.0])
            ):
                w.add_histogram(f"h{i}", tensor(spread), 1, bins, 10.0)
            w.add_histogram("less", tensor(spread), 1, 30, 10.0, max_bins=7)
            w.add_histogram("same", tensor(np.full(4, 3.0)), 1, 5, 10.0)
            w.add_histogram_raw("raw", -1.0, 1.0, 4, 0.5, 2.0, [0.0, 1.0], [1, 3], 1, 10.0)
            w.add_pr_curve("pr", tensor(label), tensor(probability), 1, 20, walltime=10.0)
            w.add_pr_curve("prw", tensor(label), tensor(probability), 1, weights=weight, walltime=10.0)
            w.add_text("t", "words", 1, 10.0)
            w.add_images("im", tensor(image), 1, 10.0)
            w.add_image("one", tensor(image[0]), 1, 10.0)
            w.add_custom_scalars({"c": {"x": ["Margin", ["a", "b", "c"]], "y": ["Multiline", ["a", "b"]]}})
            w.add_hparams({"lr": 0.5, "s": "x", "n": 3}, {"m": 1.0}, {"n": [3, 4]}, "run", 5)
            w.add_embedding(tensor(spread[:12].reshape(4, 3)), list("abcd"), tensor(image[:4] / 255.0), 2, "tag")

    run(SummaryWriter, mt.tensor, tmp_path / "ours")
    run(theirs, torch.tensor, tmp_path / "theirs")
    for part in ("", "run"):
        ours, _ = events_of(tmp_path / "ours" / part)
        wanted, loader = events_of(tmp_path / "theirs" / part)
        event = loader.event_pb2.Event if hasattr(loader, "event_pb2") else importlib.import_module(
            "tensorboard.compat.proto.event_pb2").Event  # fmt: skip
        assert len(ours) == len(wanted)
        for a, b in zip(map(event.FromString, ours), map(event.FromString, wanted), strict=True):
            for e in (a, b):
                e.ClearField("source_metadata")
                if e.wall_time != 10:
                    e.wall_time = 0
                for v in e.summary.value:
                    v.metadata.ClearField("display_name")
                    if v.metadata.plugin_data.plugin_name == "hparams":  # a map has any order
                        found = plugin.FromString(v.metadata.plugin_data.content)
                        v.metadata.plugin_data.content = found.SerializeToString(deterministic=True)
                    if v.image.encoded_image_string:
                        v.image.encoded_image_string = decoded(v.image.encoded_image_string)
                    if v.HasField("histo"):
                        for name in ("sum", "sum_squares"):
                            setattr(v.histo, name, round(getattr(v.histo, name), 9))
                        limits = [round(x, 12) for x in v.histo.bucket_limit]
                        v.histo.ClearField("bucket_limit")
                        v.histo.bucket_limit.extend(limits)
            assert a == b
    for name in ("tensors.tsv", "metadata.tsv"):
        a, b = (sorted((tmp_path / w).rglob(name))[0].read_text() for w in ("ours", "theirs"))
        assert a == b


def decoded(png):
    """Return what a PNG file shows, whatever its compression."""
    import io

    from PIL import Image

    return Image.open(io.BytesIO(png)).tobytes()


# ---- threads, processes, ends ----


def test_a_purged_step_hides_what_a_crashed_run_wrote(tmp_path):
    for start, value in ((0, 1.0), (2, 5.0)):
        with SummaryWriter(tmp_path, purge_step=start or None) as writer:
            for step in range(start, 4):
                writer.add_scalar("loss", value, step)
        time.sleep(1.1 if not start else 0)  # files are read in the order of their names, which count seconds
    assert [(e.step, e.value) for e in read(tmp_path).Scalars("loss")] == [(0, 1.0), (1, 1.0), (2, 5.0), (3, 5.0)]


def test_events_are_in_the_file_after_flush_and_by_themselves_after_a_while(tmp_path):
    slow, quick = SummaryWriter(tmp_path / "a", flush_secs=1000), SummaryWriter(tmp_path / "b", flush_secs=0.05)
    files = [next((tmp_path / name).iterdir()) for name in "ab"]
    for writer in (slow, quick):
        for i in range(50):
            writer.add_scalar("x", i, i)
    deadline = time.monotonic() + 20
    while len(frames(files[1])) < 51 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(frames(files[1])) == 51 and len(frames(files[0])) == 0
    slow.flush()
    assert len(frames(files[0])) == 51
    slow.close()
    slow.close()
    slow.add_scalar("x", 1, 51)
    slow.close()
    assert len(list((tmp_path / "a").iterdir())) == 2


def test_nothing_is_lost_when_a_program_ends_without_closing(tmp_path):
    code = (
        "import sys, os, mortice as mt; from mortice.utils.tensorboard import SummaryWriter\n"
        "w = SummaryWriter(sys.argv[1])\n"
        "for i in range(200): w.add_scalar('x', i, i)\n"
        "def lost(): v = SummaryWriter(sys.argv[1] + '/lost'); v.add_scalar('y', 1)\n"
        "lost()\n"
        "if hasattr(os, 'fork'):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        for i in range(200, 300): w.add_scalar('x', i, i)\n"
        "        w.close(); os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and not done.stdout + done.stderr
    counts = sorted(len(frames(f)) for f in tmp_path.glob("events*"))
    assert counts == ([101, 201] if hasattr(os, "fork") else [201])
    (lost,) = (tmp_path / "lost").iterdir()
    assert len(frames(lost)) == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here: no disk is ever full")
def test_a_full_disk_is_told(tmp_path, monkeypatch):
    import builtins

    real = builtins.open
    monkeypatch.setattr(
        builtins, "open", lambda path, *a, **k: real("/dev/full" if "tfevents" in str(path) else path, *a, **k)
    )
    writer = FileWriter(tmp_path)
    with pytest.raises(OSError, match=r"^tensorboard: cannot write .*: \[Errno 28\]"):
        writer.flush()
    with pytest.raises(OSError, match="cannot write"):
        writer.add_summary(b"")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda w: w.add_scalar("x", mt.ones(2)), ValueError,
         "add_scalar: expected one number; got shape (2,). Use add_histogram or add_tensor for more."),
        (lambda w: w.add_scalar("x", [1.0]), NotImplementedError, "add_scalar: expected a number; got [1.0]."),
        (lambda w: w.add_scalars("x", {"a": None}), NotImplementedError,
         "add_scalars: expected a number; got None."),
        (lambda w: w.add_scalar("x", "a"), TypeError, "add_scalar: expected a number; got 'a'."),
        (lambda w: w.add_image("x", mt.ones(2, 2)), ValueError,
         "tensorboard: expected an image CHW; got shape (2, 2). Say its dataformats."),
        (lambda w: w.add_image("x", mt.ones(5, 2, 2)), ValueError,
         "tensorboard: expected 1 to 4 channels; got 5 of shape (2, 2, 5). Say its dataformats."),
        (lambda w: w.add_histogram("x", mt.ones(0)), ValueError, "add_histogram: expected values; the input has none."),
        (lambda w: w.add_video("x", mt.ones(1, 2, 3, 4, 4)), NotImplementedError,
         "add_video: expected images; got a video, for which there is no encoder here. Use add_images."),
        (lambda w: w.add_hparams([], {}), TypeError, "add_hparams: expected hparam_dict to be a dict; got list."),
        (lambda w: w.add_graph(mt.nn.ReLU()), ValueError, "add_graph: expected input_to_model, what to run the model on; got None."),
        (lambda w: w.add_embedding(mt.ones(3, 2), ["a"]), ValueError,
         "add_embedding: expected metadata for each of 3 vectors; got 1."),
    ],
)  # fmt: skip
def test_mistakes_are_told(tmp_path, call, error, text):
    with SummaryWriter(tmp_path) as writer, pytest.raises(error) as caught:
        call(writer)
    assert str(caught.value) == text


def test_it_writes_without_numpy_pillow_and_tensorboard(tmp_path):
    if "cpu_cext" not in mt.backends.plugins.list_backends():
        pytest.skip("cpu_cext is not installed: no backend works without NumPy here")
    code = (
        "import sys\nfor n in ('numpy', 'PIL', 'tensorboard', 'google', 'torch'): sys.modules[n] = None\n"
        "import mortice as mt; from mortice.utils.tensorboard import SummaryWriter\n"
        "with SummaryWriter(sys.argv[1]) as w:\n"
        "    w.add_scalar('x', mt.tensor(1.)); w.add_image('i', mt.rand(3, 4, 4)); w.add_histogram('h', mt.rand(9))\n"
    )
    env = {**os.environ, "MORTICE_BACKEND": "cpu_cext"}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    image = frames(next(tmp_path.iterdir()))[2]
    png = image[image.index(b"\x89PNG") :]
    assert zlib.decompress(png[41 : 41 + struct.unpack(">I", png[33:37])[0]])[0] == 0


@pytest.mark.parametrize("device", ["strict:0", "strict_f32"])
def test_tensors_of_any_device_are_taken(tmp_path, device):
    if "strict" not in mt.backends.plugins.list_backends():
        pytest.skip("mortice-conformance is not installed: there are no other devices here")
    values = mt.arange(12.0).reshape(3, 4)
    for name, where in (("there", device), ("here", "cpu")):
        with SummaryWriter(tmp_path / name) as w:
            x = values.to(where)
            w.add_scalar("s", x.sum(), x.argmax(), 1.0)
            w.add_histogram("h", x, 0, walltime=1.0)
            w.add_pr_curve("p", x.flatten() > 5, x.flatten() / 12, 0, walltime=1.0)
            w.add_image("i", x.expand(3, 3, 4) / 12, 0, 1.0)
    a, b = (frames(next((tmp_path / name).iterdir()))[1:] for name in ("there", "here"))
    assert len(a) == 4 and (a == b or device == "strict_f32")
