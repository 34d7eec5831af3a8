"""FlopCounterMode: how many floating-point operations the products in a block take."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from mortice import tracing
from mortice.tracing.flops import products_once
from mortice.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode"]


class FlopCounterMode(tracing.Watcher):
    """Count the operations of matrix products and convolutions, twice their multiply-adds; leaving prints a table.

    Differs from torch: names are those of kernels.
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None) -> None:
        if custom_mapping:
            raise NotImplementedError("FlopCounterMode: custom_mapping is left out; kernels are counted as they are named.")
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.mod_tracker = ModuleTracker()
        self._thread = 0

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._thread = threading.get_ident()
        self.mod_tracker.__enter__()
        tracing.watch(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        tracing.unwatch(self)
        self.mod_tracker.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def ended(self, frame: tracing.Frame) -> None:
        """Count a kernel."""
        count = 2 * products_once(frame) if frame.kernel and threading.get_ident() == self._thread else 0
        if count:
            for name in sorted(self.mod_tracker.parents):
                self.flop_counts[name][frame.kernel] += count

    def get_total_flops(self) -> int:
        """Return the operations of all."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the operations by module and kernel."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules, as deep as asked, with their operations."""
        depth, total = self.depth if depth is None else depth, self.get_total_flops()
        names = [n for n in self.flop_counts if n != "Global" and n.count(".") < depth]
        rows = [(n, sum(self.flop_counts[n].values())) for n in ("Global", *names)]
        wide = max(len(n) for n, _ in rows)
        return "\n".join(f"{n:<{wide}}  {c:>16,}  {100 * c / (total or 1):6.2f} %" for n, c in rows)
