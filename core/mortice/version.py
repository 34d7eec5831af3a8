"""The version, under the names of `torch.version`: no toolkit is built in, so those are None."""

__version__ = "0.1.0"
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = "unknown"
debug = False
