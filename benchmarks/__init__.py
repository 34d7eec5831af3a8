"""Side-by-side measurements of mortice and PyTorch (and JAX): `python -m benchmarks --help`."""
