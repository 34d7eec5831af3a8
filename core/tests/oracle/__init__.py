"""The oracle: mortice beside PyTorch on the CPU, over the samples that PyTorch tests its own operators with.

`python -m tests.oracle.report --ops add,mul` (from core/) while working on an op; `pytest -m oracle` for all of it.
Needs torch, numpy, expecttest and hypothesis: the last two because PyTorch's sample tables import them.
"""
