"""SummaryWriter and FileWriter, with the methods and arguments of `torch.utils.tensorboard`."""

from __future__ import annotations

import io
import math
import os
import socket
import time
import wave
from collections.abc import Mapping, Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.utils._wide import wide
from mortice.utils.tensorboard import events, pictures
from mortice.utils.tensorboard.events import EventFile, event, value
from mortice.utils.tensorboard.wire import message


class FileWriter:
    """Writes events to one file of a folder."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        self._logdir = os.fspath(log_dir)
        self.event_writer = EventFile(self._logdir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder."""
        return self._logdir

    def add_event(self, event: bytes) -> None:
        """Write an event that is encoded already."""
        self.event_writer.add(event)

    def add_summary(self, summary: bytes, global_step: Any = None, walltime: float | None = None) -> None:
        """Write an encoded summary as an event."""
        self.event_writer.add(event(summary, global_step, walltime))

    def flush(self) -> None:
        """Return when all that was added is in the file."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what is waiting and close the file; what is added later goes into a new one."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Do nothing: the next event opens a file anew."""


class SummaryWriter:
    """Writes what a program learns into event files, which TensorBoard shows.

    Args:
        log_dir: the folder; by default `runs/` and the time, the host's name and `comment`.
        comment: the end of the default folder's name.
        purge_step: with a program that goes on from an earlier step, what was written from this step on is not shown.
        max_queue: how many events wait for the writing thread before a call waits.
        flush_secs: after how long events are in the file at the latest.
        filename_suffix: the end of the files' names.

    Example:
        >>> with SummaryWriter() as writer:
        ...     writer.add_scalar("loss", loss, epoch)
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: float = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            stamp = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{stamp}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = (
            purge_step,
            max_queue,
            flush_secs,
            filename_suffix,
        )
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        self._projector: list[str] = []
        self._layout: dict[str, Any] = {}
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = self._writer(self.log_dir)
            if self.purge_step is not None:
                self.file_writer.add_event(message(f1=time.time(), f2=int(self.purge_step), f3="brain.Event:2"))
                self.file_writer.add_event(message(f1=time.time(), f2=int(self.purge_step), f7=message(f1=1)))
                self.purge_step = None
        return self.file_writer

    def _writer(self, folder: str) -> FileWriter:
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
        return self.all_writers[folder]

    def get_logdir(self) -> str:
        """Return the folder of the event files."""
        return self.log_dir

    def _add(self, summary: bytes, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, _number("global_step", step), walltime)

    # ---- numbers ----

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None, new_style: bool = False,
        double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Write a number; `new_style` writes it as a tensor, with `double_precision` in 64 bits."""
        x = _number("add_scalar", scalar_value)
        if new_style or double_precision:
            summary = value(tag, plugin="scalars", f8=events.floats([x], double=double_precision))
        else:
            summary = events.scalar(tag, x)
        self._add(summary, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Write numbers that are shown in one chart, each in a folder (a run) of its own."""
        step = _number("global_step", global_step)
        walltime = time.time() if walltime is None else walltime
        for tag, x in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            self._writer(folder).add_summary(events.scalar(main_tag, _number("add_scalars", x)), step, walltime)

    def add_tensor(self, tag: str, tensor: Tensor, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a tensor's numbers."""
        t = mortice.as_tensor(tensor).detach()
        double = t.dtype == mortice.float64
        found = events.floats([float(x) for x in t.flatten().tolist()], *t.shape, double=double)
        self._add(value(tag, f8=found), global_step, walltime)

    # ---- distributions ----

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write how values are spread: over 'tensorflow's bins, a number of bins, edges, or by a rule such as 'fd'."""
        self._add(value(tag, f5=pictures.spectrum(mortice.as_tensor(values), bins, max_bins)), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any, bucket_counts: Any,
        global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write a histogram that was counted elsewhere; the limits are the right edges."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"add_histogram_raw: expected a count for each limit; got {len(bucket_limits)} limits and {len(bucket_counts)} counts."
            )
        limits, counts = ([float(x) for x in numbers] for numbers in (bucket_limits, bucket_counts))
        self._add(
            value(tag, f5=pictures.histogram(min, max, num, sum, sum_squares, limits, counts)), global_step, walltime
        )

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write precision against recall of probabilities of the positive class, at thresholds from 0 to 1."""
        self._add(
            _pr_summary(tag, _pr_counts(labels, predictions, min(num_thresholds, 127), weights)), global_step, walltime
        )

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: Any = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write precision against recall that was counted elsewhere."""
        rows = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        self._add(
            _pr_summary(tag, mortice.stack([mortice.as_tensor(row).double() for row in rows])), global_step, walltime
        )

    # ---- images, sound, text ----

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write an image: bytes, or floats from 0 to 1."""
        self._add(
            value(tag, f4=pictures.summary_image(pictures.arranged(img_tensor, dataformats))), global_step, walltime
        )

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write images as one, in rows of eight."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Write an image with boxes (N, 4) of x1, y1, x2, y2 in it, and a label for each if there are as many; needs Pillow."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != len(box_tensor):
            labels = None
        shown = pictures.boxed(pictures.arranged(img_tensor, dataformats), box_tensor, labels, rescale)
        self._add(value(tag, f4=pictures.summary_image(shown)), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write a matplotlib figure, or a list of them, as an image."""
        if isinstance(figure, list):
            shown = mortice.stack([pictures.figure(f, close) for f in figure])
            self.add_image(tag, shown, global_step, walltime, "NCHW")
        else:
            self.add_image(tag, pictures.figure(figure, close), global_step, walltime, "CHW")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Write sound (1, L) of values from -1 to 1."""
        sound = mortice.as_tensor(snd_tensor).detach().squeeze().cpu()
        if sound.ndim != 1:
            raise ValueError(f"add_audio: expected one channel of sound, (1, L) or (L,); got {tuple(sound.shape)}.")
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(sample_rate)
            out.writeframes((sound.float().clamp(-1, 1) * 32767).to(mortice.int16)._host().view.tobytes())
        single = events.Single(sample_rate)
        audio = message(f1=single, f2=1, f3=len(sound), f4=file.getvalue(), f5="audio/wav")
        self._add(value(tag, f6=audio), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Write text, which is shown as Markdown."""
        self._add(value(f"{tag}/text_summary", plugin="text", f8=events.text(text_string)), global_step, walltime)

    def add_video(self, tag: str, *args: Any, **kwargs: Any) -> None:
        """Refuse: there is no encoder of videos here."""
        raise NotImplementedError(
            "add_video: expected images; got a video, for which there is no encoder here. Use add_images."
        )

    def add_mesh(self, tag: str, *args: Any, **kwargs: Any) -> None:
        """Refuse: meshes are left out."""
        raise NotImplementedError("add_mesh: expected numbers, images or text; got a mesh, which is left out.")

    # ---- runs and models ----

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """Write a run's settings and what it came to, in a folder of its own."""
        for what, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
            if not isinstance(given, dict):
                raise TypeError(f"add_hparams: expected {what} to be a dict; got {type(given).__name__}.")
        parts = _hparams(hparam_dict, metric_dict, hparam_domain_discrete or {})
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(
            folder, max_queue=self.max_queue, flush_secs=self.flush_secs, filename_suffix=self.filename_suffix
        ) as run:
            for summary in parts:
                run._add(summary, global_step, None)
            for tag, x in metric_dict.items():
                run.add_scalar(tag, x, global_step)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write a model's graph, made by running it once: ops that have gradients, in the scopes of their modules."""
        from mortice.utils.tensorboard.network import graph

        if not hasattr(model, "named_modules"):
            raise TypeError(f"add_graph: expected a module; got {type(model).__name__}.")
        if input_to_model is None:
            raise ValueError("add_graph: expected input_to_model, what to run the model on; got None.")
        self._get_file_writer().add_event(message(f1=time.time(), f4=graph(model, input_to_model)))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Refuse: there is no reader of ONNX here."""
        raise NotImplementedError(
            "add_onnx_graph: expected a module for add_graph; got an ONNX file, which is not read here."
        )

    def add_embedding(
        self, mat: Any, metadata: Sequence[Any] | None = None, label_img: Any = None, global_step: Any = None,
        tag: str = "default", metadata_header: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """Write vectors (N, D) for the projector, with a label (or a row of them) and an image (N, C, H, W) for each."""
        mat = mortice.as_tensor(mat).detach()
        if mat.ndim != 2 or not len(mat):
            raise ValueError(f"add_embedding: expected vectors (N, D); got {tuple(mat.shape)}.")
        for what, given in (("metadata", metadata), ("label_img", label_img)):
            if given is not None and len(given) != len(mat):
                raise ValueError(f"add_embedding: expected {what} for each of {len(mat)} vectors; got {len(given)}.")
        step = str(int(_number("global_step", global_step) or 0)).zfill(5)
        place = f"{step}/{_file_name(tag)}"
        folder = os.path.join(self.log_dir, *place.split("/"))
        os.makedirs(folder, exist_ok=True)
        entry = [f'tensor_name: "{_quoted(tag)}:{step}"', f'tensor_path: "{place}/tensors.tsv"']
        if metadata is not None:
            rows = [str(x) for x in metadata]
            if metadata_header:
                if len(metadata_header) != len(metadata[0]):
                    raise ValueError(
                        f"add_embedding: expected {len(metadata[0])} names in metadata_header; got {len(metadata_header)}."
                    )
                rows = ["\t".join(map(str, row)) for row in (metadata_header, *metadata)]
            _save(folder, "metadata.tsv", "".join(f"{row}\n" for row in rows))
            entry.append(f'metadata_path: "{place}/metadata.tsv"')
        if label_img is not None:
            images = pictures.as_bytes(mortice.as_tensor(label_img).detach())
            images = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
            columns = math.ceil(math.sqrt(len(images)))
            images = mortice.cat([images, images.new_zeros((columns**2 - len(images), *images.shape[1:]))])
            sprite = pictures.png(pictures.grid(images, columns).permute(1, 2, 0))
            _save(folder, "sprite.png", sprite)
            width, height = images.shape[3], images.shape[2]
            entry.append(
                f'sprite {{ image_path: "{place}/sprite.png" single_image_dim: {width} single_image_dim: {height} }}'
            )
        _save(folder, "tensors.tsv", "".join("\t".join(map(str, row)) + "\n" for row in mat.tolist()))
        self._projector.append("embeddings {\n  " + "\n  ".join(entry) + "\n}\n")
        _save(self.log_dir, "projector_config.pbtxt", "".join(self._projector))

    # ---- charts of several tags ----

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show several tags as lines of one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", list(tags)]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show a tag with its margins: the tags of the value, the lower and the upper bound."""
        self.add_custom_scalars({category: {title: ["Margin", list(tags)]}})

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Show charts of several tags: {category: {title: ['Multiline' or 'Margin', tags]}}; the last call counts."""
        categories = []
        for name, charts in layout.items():
            encoded = []
            for title, (kind, tags) in charts.items():
                if kind == "Margin":
                    if len(tags) != 3:
                        raise ValueError(
                            f"add_custom_scalars: expected tags of the value, the lower and the upper bound; got {tags}."
                        )
                    encoded.append(message(f1=title, f3=message(f1=message(f1=tags[0], f2=tags[1], f3=tags[2]))))
                else:
                    encoded.append(message(f1=title, f2=message(f1=list(tags))))
            categories.append(message(f1=name, f2=encoded))
        content = message(f1=7, f2=b"", f8=[message(f2=categories)])  # a TensorProto of a string
        self._add(value("custom_scalars__config__", plugin="custom_scalars", f8=content), None, None)

    # ---- the files ----

    def flush(self) -> None:
        """Return when all that was added is in the files."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what is waiting and close the files; what is added later goes into new ones."""
        for writer in self.all_writers.values():
            writer.close()
        self.file_writer, self.all_writers = None, {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def _number(name: str, x: Any) -> Any:
    """Return a number of Python's from one of any library's, such as a tensor with one element."""
    if type(x) in (int, float) or (x is None and name == "global_step"):
        return x
    if isinstance(x, Tensor) and x.numel() != 1:
        raise ValueError(
            f"{name}: expected one number; got shape {tuple(x.shape)}. Use add_histogram or add_tensor for more."
        )
    if hasattr(x, "item"):
        return x.item()
    if not hasattr(x, "__float__"):  # programs that log what they have rely on which error of PyTorch's it is
        kind = TypeError if isinstance(x, (str, bytes)) else NotImplementedError
        raise kind(f"{name}: expected a number; got {x!r}.")
    return float(x)


def _pr_counts(labels: Any, predictions: Any, n: int, weights: Any) -> Tensor:
    """Count what is right and wrong at n thresholds: rows of tp, fp, tn, fn, precision, recall."""
    predictions = mortice.as_tensor(predictions).detach().flatten()
    labels = mortice.as_tensor(labels, device=predictions.device).detach().flatten()
    dtype = wide(predictions.device)
    positive = labels.to(dtype)
    weights = (
        mortice.ones_like(positive)
        if weights is None
        else mortice.as_tensor(weights, device=positive.device).to(dtype).flatten()
    )
    if predictions.shape != positive.shape or weights.shape != positive.shape:
        raise ValueError(
            f"add_pr_curve: expected a label for each of {len(predictions)} predictions; got {len(labels)}."
        )
    bucket = (predictions * (n - 1)).floor().long()
    inside = (bucket >= 0) & (bucket <= n - 1)
    bucket, weights = bucket.clamp(0, n - 1), weights.masked_fill(~inside, 0)
    zero = mortice.zeros(n, dtype=dtype, device=positive.device)
    hits, misses = (
        zero.index_add(0, bucket, share * weights).flip(0).cumsum(0).flip(0) for share in (positive, 1 - positive)
    )
    tn, fn = misses[0] - misses, hits[0] - hits
    least = 1e-7
    return mortice.stack(
        [hits, misses, tn, fn, hits / (hits + misses).clamp(min=least), hits / (hits + fn).clamp(min=least)]
    )


def _pr_summary(tag: str, rows: Tensor) -> bytes:
    content = message(f2=min(rows.shape[1], 127))
    return value(tag, plugin="pr_curves", content=content, f8=events.floats(rows.flatten().tolist(), *rows.shape))


def _hparams(given: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list[Any]]) -> list[bytes]:
    """Return the summaries of an experiment, and of its session's start and end."""
    for name, domain in domains.items():
        if (
            name not in given
            or not isinstance(domain, list)
            or not all(isinstance(d, type(given[name])) for d in domain)
        ):
            raise TypeError(
                f"add_hparams: expected hparam_domain_discrete[{name!r}] to list values of hparam_dict[{name!r}]'s type."
            )
    infos, start = [], []
    for name, x in given.items():
        if x is None:
            continue
        kind, encoded = _protobuf_value(name, x)
        domain = message(f1=[_protobuf_value(name, d)[1] for d in domains[name]]) if name in domains else None
        infos.append(message(f1=name, f4=kind, f5=domain))
        start.append(message(f1=name, f2=encoded))
    experiment = message(f4=infos, f5=[message(f1=message(f2=tag)) for tag in metrics])
    return [
        value("_hparams_/experiment", plugin="hparams", content=message(f2=experiment)),
        value("_hparams_/session_start_info", plugin="hparams", content=message(f3=message(f1=start))),
        value("_hparams_/session_end_info", plugin="hparams", content=message(f4=message(f1=1))),
    ]


def _protobuf_value(name: str, x: Any) -> tuple[int, bytes]:
    """Return TensorBoard's number of the type, and a google.protobuf.Value."""
    if isinstance(x, bool):
        return 2, message(f4=x)
    if isinstance(x, str):
        return 1, message(f3=x)
    if isinstance(x, (int, float, Tensor)):
        return 3, message(f2=float(_number(f"add_hparams: {name}", x)))
    raise ValueError(
        f"add_hparams: expected {name} to be an int, float, str, bool or tensor of one number; got {type(x).__name__}."
    )


def _file_name(tag: str) -> str:
    return "".join(c if c.isalnum() or c in "_-." else f"%{ord(c):02x}" for c in tag)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _save(folder: str, name: str, data: str | bytes) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
