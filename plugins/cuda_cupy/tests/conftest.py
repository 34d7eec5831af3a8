"""The tests of the plugin, which run without a GPU: on the path go the modules that they share, and the emulator."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parent), str(Path(__file__).parent / "emulator")]
sys.path += [str(Path(__file__).parents[3])]  # benchmarks
