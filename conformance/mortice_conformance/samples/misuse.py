"""What each op refuses, and in which words: the same on every backend, because core checks before the kernel."""

from __future__ import annotations

import mortice as mt
import mortice.nn
from mortice_conformance.record import misuse

F = mt.nn.functional

# ---- elementwise ----
misuse(
    "pow",
    lambda: mt.pow(mt.tensor([2]), -1),
    "pow: Integers to negative integer powers are not allowed. The exponent is -1.",
)
misuse("floor_divide", lambda: mt.tensor([1]) // mt.tensor([0]),
       "floor_divide: ZeroDivisionError: expected integers other than 0 to divide by; got 0.")  # fmt: skip
misuse("bitwise_and", lambda: mt.bitwise_and(mt.ones(2), mt.ones(2)),
       "bitwise_and: not implemented for 'Float'; got mortice.float32. Convert to one of: bool, unsigned integer, integer.")  # fmt: skip
misuse("lt", lambda: mt.ones(2, dtype=mt.complex64) < 1,
       "lt: not implemented for 'ComplexFloat'; got mortice.complex64. Convert to one of: bool, unsigned integer, integer, floating "
       "point.")  # fmt: skip
misuse("add", lambda: mt.tensor([1], dtype=mt.uint64) + mt.tensor([1]),
       "promote_types: no integer dtype holds both operands; got uint64 and int64. Convert one of them with .to(dtype) first.")  # fmt: skip
misuse("add", lambda: mt.ones(2).add_(mt.ones(3)),
       "add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0; got (2,) and (3,). Reshape "
       "or expand one of them.")  # fmt: skip
misuse("exp", lambda: mt.tensor([1, 2]).exp_(),
       "exp_: result type Float can't be cast to the desired output type Long. Use the operation that is not in place, or "
       "convert first.")  # fmt: skip

# ---- reductions, sorting ----
misuse("mean", lambda: mt.tensor([1]).mean(),
       "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long. Pass "
       "dtype=, or convert with .float().")  # fmt: skip
misuse("amax", lambda: mt.zeros(0).max(),
       "max(): Expected reduction dim to be specified for input.numel() == 0; got [0]. Specify the reduction dim with the 'dim' "
       "argument.")  # fmt: skip
misuse(
    "sort",
    lambda: mt.sort(mt.ones(2), 3),
    "sort: Dimension out of range (expected to be in range of [-1, 0], but got 3).",
)
misuse("topk", lambda: mt.topk(mt.ones(3), 5), "topk: selected index k out of range; got k = 5 for size 3.")
misuse(
    "cumsum",
    lambda: mt.cumsum(mt.ones(2), 2),
    "cumsum: Dimension out of range (expected to be in range of [-1, 0], but got 2).",
)
misuse("kthvalue", lambda: mt.kthvalue(mt.ones(3), 4),
       "kthvalue(): selected number k out of range for dimension 0; got k = 4 for size 3.")  # fmt: skip

# ---- movement, indexing ----
misuse("tril", lambda: mt.ones(2).tril(), "tril: input tensor must have at least 2 dimensions; got [2].")
misuse(
    "flip",
    lambda: mt.ones(2, 3).flip(2),
    "flip: Dimension out of range (expected to be in range of [-2, 1], but got 2).",
)
misuse("stack", lambda: mt.stack([mt.ones(2), mt.ones(3)]),
       "stack: stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1.")  # fmt: skip
misuse("diagonal", lambda: mt.ones(2, 3).diagonal(0, 0, 0), "diagonal: diagonal dimensions cannot be identical 0, 0.")
misuse(
    "unfold", lambda: mt.ones(3).unfold(0, 5, 1), "unfold: maximum size for tensor at dimension 0 is 3 but size is 5."
)
misuse("take", lambda: mt.index_select(mt.ones(3), 0, mt.tensor([3])),
       "index_select: index 3 is out of bounds for dimension 0 with size 3")  # fmt: skip
misuse("scatter_add", lambda: mt.zeros(3).scatter_add(0, mt.tensor([5]), mt.ones(1)),
       "scatter_add: index 5 is out of bounds for dimension 0 with size 3")  # fmt: skip

# ---- linear algebra ----
misuse("matmul", lambda: mt.ones(2, 3) @ mt.ones(4, 5),
       "matmul: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5); got (2, 3) @ (4, 5). Transpose one of them?")
misuse("einsum", lambda: mt.einsum("ij,jk", mt.ones(2, 3), mt.ones(4, 5)),
       "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3")  # fmt: skip
misuse("inv_ex", lambda: mt.linalg.inv(mt.ones(2, 3)),
       "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices")  # fmt: skip
misuse("inv_ex", lambda: mt.linalg.inv(mt.zeros(2, 2)),
       "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input "
       "matrix is singular.")  # fmt: skip
misuse("cholesky_ex", lambda: mt.linalg.cholesky(-mt.eye(2)),
       "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of "
       "order 1 is not positive-definite).")  # fmt: skip
misuse("solve_ex", lambda: mt.linalg.solve(mt.eye(2), mt.ones(3, 1)),
       "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)")  # fmt: skip

# ---- Fourier transforms ----
misuse("fftn", lambda: mt.fft.fft(mt.ones(4), n=0),
       "fft.fft: Invalid number of data points (0) specified; expected at least 1.")  # fmt: skip
misuse("rfftn", lambda: mt.fft.rfft(mt.ones(4, dtype=mt.complex64)),
       "fft.rfft expects a real input tensor, but got ComplexFloat. Use mortice.real(...), or fft.fft.")  # fmt: skip
misuse("stft", lambda: mt.stft(mt.ones(20), 8, window=mt.ones(5), return_complex=True),
       "stft: expected a 1D window tensor of size equal to win_length=8; got window with size [5].")  # fmt: skip

misuse("geqrf", lambda: mt.geqrf(mt.ones(2)), "geqrf: The input tensor A must have at least 2 dimensions; got [2].")
misuse("linalg_ldl_factor", lambda: mt.linalg.ldl_factor(mt.zeros(2, 2)),
       "linalg.ldl_factor: D[1,1] is zero, the factorization has been completed, but solving with it would divide by zero.")  # fmt: skip
misuse("linalg_ldl_solve", lambda: mt.linalg.ldl_solve(mt.eye(2), mt.tensor([1, 2], dtype=mt.int32), mt.ones(3, 1)),
       "linalg.ldl_solve: Incompatible matrix sizes; got [2, 2] and [3, 1].")  # fmt: skip

# ---- special functions ----
misuse("gcd", lambda: mt.gcd(mt.ones(2), mt.ones(2)),
       "gcd: not implemented for 'Float'; got mortice.float32. Convert to one of: unsigned integer, integer.")  # fmt: skip
misuse("igamma", lambda: mt.igamma(mt.ones(2, dtype=mt.int64), mt.ones(2, dtype=mt.int64)),
       "igamma: not implemented for 'Long'; got mortice.int64. Convert to one of: floating point.")  # fmt: skip
misuse("frexp", lambda: mt.frexp(mt.tensor([1])),
       "frexp: not implemented for 'Long'; got mortice.int64. Convert to one of: floating point.")  # fmt: skip
misuse("i0", lambda: mt.i0(mt.ones(2, dtype=mt.complex64)),
       "i0: not implemented for 'ComplexFloat'; got mortice.complex64. Convert to one of: floating point.")  # fmt: skip

# ---- neural networks ----
misuse("softmax", lambda: F.softmax(mt.ones(2, dtype=mt.int64), 0),
       "softmax: not implemented for 'Long'; got mortice.int64. Convert to one of: floating point.")  # fmt: skip
misuse("linear", lambda: F.linear(mt.ones(2, 3), mt.ones(4, 5)),
       "linear: mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4); got input [2, 3] and weight [4, 5]. The last dim of the "
       "input must have the size that the layer takes.")  # fmt: skip
misuse("conv", lambda: F.conv2d(mt.ones(1, 2, 3, 3), mt.ones(1, 3, 3, 3)),
       "conv2d: Given groups=1, weight of size [1, 3, 3, 3], expected input[1, 2, 3, 3] to have 3 channels, but got 2 channels "
       "instead. "
       "The last dim is 3, as if channels came last; use x.permute(0, 3, 1, 2).")  # fmt: skip
misuse("conv", lambda: F.conv1d(mt.ones(1, 1, 2), mt.ones(1, 1, 5)),
       "conv1d: Calculated padded input size per channel: (2). Kernel size: (5). Kernel size can't be greater than "
       "actual input size")  # fmt: skip
misuse("max_pool", lambda: F.max_pool2d(mt.ones(1, 1, 2, 2), 5),
       "max_pool2d: Given input size: (1x2x2). Calculated output size: (1x0x0). Output size is too small")  # fmt: skip
misuse("layer_norm", lambda: F.layer_norm(mt.ones(2, 3), (4,)),
       "layer_norm: Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]")  # fmt: skip
misuse(
    "embedding",
    lambda: F.embedding(mt.tensor([4]), mt.ones(3, 2)),
    "embedding: index out of range in self; got 4 for 3 rows.",
)
misuse("nll_loss", lambda: F.nll_loss(mt.ones(1, 3), mt.tensor([3])), "nll_loss: Target 3 is out of bounds for 3 classes.")
misuse("cross_entropy", lambda: F.cross_entropy(mt.ones(2, 3), mt.tensor([3])),
       "cross_entropy: Expected input batch_size (2) to match target batch_size (1); got input [2, 3] and target [1].")  # fmt: skip
misuse("cross_entropy", lambda: F.cross_entropy(mt.ones(1, 3), mt.tensor([3])),
       "cross_entropy: Target 3 is out of bounds for 3 classes.")  # fmt: skip
misuse("pad", lambda: F.pad(mt.ones(2, 3), (1,)), "pad: Padding length must be divisible by 2; got 1 numbers.")
misuse(
    "grid_sample",
    lambda: F.grid_sample(mt.ones(1, 1, 2, 2), mt.ones(1, 2, 2, 3), align_corners=False),
    "grid_sample: expected grid to have size 2 in last dimension, but got grid with sizes [1, 2, 2, 3]",
)
