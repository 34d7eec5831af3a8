"""A version as text that compares by its numbers, as `torch.__version__` does."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["TorchVersion"]


def _ordered(version: Any) -> tuple[list[int], str] | None:
    """Return what sorts as this text or tuple does, or None where it is no version. Stages such as rc1 don't count."""
    import re  # which takes longer than mortice's own import, and few programs compare

    text = version if isinstance(version, str) else ".".join(map(str, version))
    found = re.match(r"\s*v?(\d+(?:\.\d+)*)[^+]*\+?(.*)", text)
    return found and ([int(number) for number in re.sub(r"(\.0)+$", "", found[1]).split(".")], found[2])


class TorchVersion(str):
    """A version that is at least "2.9", and at least (2, 9), where text alone would sort 2.13 before them."""

    __slots__ = ()


def _comparison(name: str) -> Any:
    plain = getattr(str, name)

    def compare(self: str, other: Any) -> Any:
        if not isinstance(other, (str, tuple, list)):
            return NotImplemented
        mine, theirs = _ordered(self), _ordered(other)
        return plain(self, other) if mine is None or theirs is None else getattr(mine, name)(theirs)

    return compare


for _name in ("__lt__", "__le__", "__ge__", "__gt__"):
    setattr(TorchVersion, _name, _comparison(_name))
