"""Which functions make tensors on a device that they are told, as modes of PyTorch's programs ask."""

import functools

import mortice

_NAMES = (
    "arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye full hamming_window "
    "hann_window kaiser_window linspace logspace ones rand randint randn randperm range scalar_tensor sparse_bsc_tensor "
    "sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor tril_indices "
    "triu_indices zeros"
)


@functools.cache
def _device_constructors() -> set[object]:
    """Return the functions that take a `device` and use the default one where none is given."""
    return {mortice.fft.fftfreq, mortice.fft.rfftfreq, *[getattr(mortice, name) for name in _NAMES.split()]}
