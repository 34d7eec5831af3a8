"""Reading and writing safetensors files, with the functions of `safetensors.torch`."""

from mortice.serialize.safetensors import SafetensorError, load, load_file, safe_open, save, save_file

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]
