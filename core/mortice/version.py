"""The versions, under the names of `torch.version`: no toolkit is built in, so those are None."""

from mortice.torch_version import TorchVersion

release = "0.1.0"  # of mortice itself, as its distribution says
__version__ = TorchVersion(f"2.13.0+mortice.{release}")  # the PyTorch whose names these are: programs branch on it
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = "unknown"
debug = False
