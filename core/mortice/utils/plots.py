"""Curves and images in visdom by their names: each name has one window, and what is plotted is cut from its graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mortice import Tensor


class Plots:
    """Windows of a visdom server, one for each name.

    Without names a window is made at each call, and a tensor in the graph is refused or keeps the graph alive; here a
    name's window is reused and values are detached and brought to the host.

    Args:
        client: a `visdom.Visdom`; one of the default server if not given.
        env: the environment that the windows are in.

    Example:
        >>> plots = Plots()
        >>> for step in range(100):
        ...     plots.line("loss", step, {"train": loss, "valid": valid_loss})
    """

    def __init__(self, client: Any = None, *, env: str | None = None) -> None:
        if client is None:
            import visdom

            client = visdom.Visdom()
        self.client, self.env = client, env
        self._begun: set[tuple[str, str]] = set()

    def line(self, name: str, x: Any, y: Any, **opts: Any) -> str:
        """Add a point to a curve, or to several given by their names; returns the window's name."""
        curves = y if isinstance(y, Mapping) else {"": y}
        at = number(x, name)
        for curve, value in curves.items():
            first = not any(window == name for window, _ in self._begun)
            self._begun.add((name, curve))
            self.client.line(
                Y=[number(value, f"{name} {curve}".strip())], X=[at], win=name, env=self.env, name=curve or None,
                update=None if first else "append", opts={"title": name, "showlegend": len(curves) > 1, **opts},
            )  # fmt: skip
        return name

    def images(self, name: str, images: Any, **opts: Any) -> str:
        """Show images (N, C, H, W), or one (C, H, W), in place of those shown before; returns the window's name."""
        images = images.detach().cpu() if isinstance(images, Tensor) else images
        show = self.client.image if getattr(images, "ndim", 4) < 4 else self.client.images
        show(images, win=name, env=self.env, opts={"title": name, **opts})
        return name

    def clear(self, *names: str) -> None:
        """Begin the curves of these names anew; of all names without any."""
        self._begun = {key for key in self._begun if names and key[0] not in names}


def number(value: Any, name: str) -> float:
    """Return a single number of a tensor, detached, or of anything that is a number."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(
                f"Plots: expected one number for {name!r}; got a tensor of shape {tuple(value.shape)}. Reduce it: mean()."
            )
        return float(value.detach().item())
    return float(value)
