"""The safetensors format: a JSON header and the tensors' bytes, read without trusting either.

The functions are those of the package's `safetensors.torch`; files go both ways between the two.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from typing import Any

from mortice.dtype import DType, by_name
from mortice.serialize import replacing
from mortice.serialize.archive import read_into
from mortice.serialize.reading import Storage
from mortice.serialize.writing import Memory, joint_memories
from mortice.shape import contiguous_strides, prod
from mortice.tensor import TensorBase

_HEADER_LIMIT = 100_000_000  # bytes, the format's own
_CODES = {
    "bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8", "int16": "I16",
    "int32": "I32", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex64": "C64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
}  # fmt: skip
_NAMES = {code: name for name, code in _CODES.items()}


class SafetensorError(RuntimeError, ValueError):
    """A file that is not of the safetensors format, or is damaged."""


# ---- writing ----


def save_file(tensors: Mapping[str, Any], filename: str | os.PathLike[str], metadata: Any = None) -> None:
    """Write named tensors, and texts in `metadata`, to a file, which is replaced as a whole or not at all."""
    header, ordered = _header("save_file", tensors, metadata)
    with replacing("save_file", os.fspath(filename)) as file:
        _write(file, header, ordered)


def save(tensors: Mapping[str, Any], metadata: Any = None) -> bytes:
    """Return named tensors as bytes of the format."""
    buffer = io.BytesIO()
    _write(buffer, *_header("save", tensors, metadata))
    return buffer.getvalue()


def _header(op: str, tensors: Mapping[str, Any], metadata: Any) -> tuple[bytes, list[Any]]:
    """Check what is to be written; return the header and the tensors in the order of the file."""
    if not isinstance(tensors, Mapping):
        raise ValueError(f"{op}: expected a dict of names and tensors; got {type(tensors).__name__}.")
    for name, t in tensors.items():
        if not isinstance(name, str) or name == "__metadata__" or not isinstance(t, TensorBase):
            raise ValueError(f"{op}: expected a dict of names and tensors; got {name!r}: {type(t).__name__}.")
        if t.dtype.name not in _CODES:
            raise ValueError(f"{op}: the format has no {t.dtype.name}, the dtype of {name!r}. Convert it with .to(dtype).")
    _check_apart(op, tensors)
    header: dict[str, Any] = {}
    if metadata:
        if not all(isinstance(k, str) and isinstance(v, str) for k, v in metadata.items()):
            raise ValueError(f"{op}: expected metadata to be a dict of texts; got {metadata!r}.")
        header["__metadata__"] = dict(metadata)
    at, ordered = 0, sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))  # so that each is aligned
    for name in ordered:
        t = tensors[name]
        header[name] = {"dtype": _CODES[t.dtype.name], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8), [tensors[name] for name in ordered]


def _check_apart(op: str, tensors: Mapping[str, Any]) -> None:
    """Refuse tensors that share elements: the format cannot say so, and they would come back apart."""
    for names in joint_memories(tensors):
        raise RuntimeError(
            f"{op}: Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
            f"loading them again: {names}. Leave out all but one, or save copies (.clone())."
        )


def _write(file: Any, header: bytes, tensors: list[Any]) -> None:
    file.write(len(header).to_bytes(8, "little"))
    file.write(header)
    for t in tensors:
        file.write(Memory("", [t.detach().contiguous()], None, t.nbytes).content())


# ---- reading ----


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Any]:
    """Read all tensors of a file.

    Raises:
        SafetensorError: for a file that is not of the format, or is damaged.
    """
    with safe_open(filename, device=device) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - a method of the format's API


def load(data: bytes) -> dict[str, Any]:
    """Read all tensors of bytes of the format."""
    file = safe_open(io.BytesIO(data))
    return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


class safe_open:
    """A file opened for reading some of its tensors; a context manager.

    `framework` is accepted and has no effect: what is read are mortice tensors.
    """

    def __init__(self, filename: Any, framework: str = "mortice", device: Any = "cpu") -> None:
        self._device = device
        self._file: Any = filename if hasattr(filename, "read") else open(filename, "rb")  # noqa: SIM115
        try:
            self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def keys(self) -> list[str]:
        """Return the names of the tensors."""
        return sorted(self._places)

    def metadata(self) -> dict[str, str] | None:
        """Return the texts that were saved beside the tensors, None without any."""
        return self._metadata

    def get_tensor(self, name: str) -> Any:
        """Read one tensor."""
        if name not in self._places:
            raise SafetensorError(f"safe_open: the file has no tensor {name!r}; it has {', '.join(self.keys()) or 'none'}.")
        dtype, shape, start, size = self._places[name]
        self._file.seek(self._start + start)
        storage = Storage(read_into(self._file, size))
        if str(self._device) != "cpu":
            storage = storage.to(self._device)
        return storage.tensor(dtype, 0, shape, contiguous_strides(shape))

    def _read_header(self) -> None:
        total = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        length = int.from_bytes(self._file.read(8), "little")
        if total < 8 or length > min(_HEADER_LIMIT, total - 8):
            raise _damaged(f"a header of {length} bytes in a file of {total}")
        self._start, self._places = 8 + length, {}
        text = self._file.read(length)
        if not text.startswith(b"{"):
            raise _damaged("no header")
        try:
            header = json.loads(text.decode("utf-8"), object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as error:
            raise _damaged(f"the header cannot be read: {str(error):.200}") from None
        self._metadata = header.pop("__metadata__", None)
        if self._metadata is not None and not _is_texts(self._metadata):
            raise _damaged("__metadata__ is no dict of texts")
        for name, entry in header.items():
            self._places[name] = _place(name, entry)
        at = 0
        for name, (_, _, start, size) in sorted(self._places.items(), key=lambda item: (item[1][2], item[1][3])):
            if start != at:
                raise _damaged(f"{name!r} begins at {start}, {at} was expected: tensors must follow each other")
            at += size
        if at != total - self._start:
            raise _damaged(f"the tensors have {at} bytes, the file has {total - self._start}")


def _damaged(what: str) -> SafetensorError:
    return SafetensorError(f"safetensors: the file is not of this format, or is damaged: {what}.")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice")
    return found


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())


def _place(name: str, entry: Any) -> tuple[DType, tuple[int, ...], int, int]:
    """Check a tensor's entry; return its dtype, its shape, where it begins and its bytes."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _damaged(f"{name!r} lacks dtype, shape or data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
            raise _damaged(f"{name!r} has impossible sizes or offsets {str(numbers):.100}")
    if not isinstance(code, str) or code not in _NAMES:
        raise SafetensorError(
            f"safetensors: {name!r} has the dtype {code!r:.30}, which mortice does not have; it reads {', '.join(_NAMES)}."
        )
    dtype = by_name(_NAMES[code])
    if len(offsets) != 2 or len(shape) > 64 or offsets[1] - offsets[0] != prod(shape) * dtype.itemsize:
        raise _damaged(f"{name!r} of {code} and {str(shape):.100} does not fill its place {offsets}")
    return dtype, tuple(shape), offsets[0], offsets[1] - offsets[0]
