"""Checkpoints for tests: written and read again, and with a pickle of the test's own in them."""

import io
import zipfile

import mortice as mt


def round_trip(obj, zipped=True, protocol=2, **options):
    """Return what is read of what is written."""
    buffer = io.BytesIO()
    mt.save(obj, buffer, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    buffer.seek(0)
    return mt.load(buffer, **options)


def repickled(data):
    """Return a checkpoint with another pickle in it."""
    buffer, out = io.BytesIO(), io.BytesIO()
    mt.save({"x": mt.ones(1)}, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, data if name.endswith("data.pkl") else old.read(name))
    out.seek(0)
    return out
