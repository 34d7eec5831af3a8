"""The short-time Fourier transform and its inverse: frames of a signal, each weighed by a window and transformed."""

from __future__ import annotations

from typing import Any

from mortice.call import no_tensor
from mortice.errors import DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.notice import warn
from mortice.op import op
from mortice.ops.complex import view_as_real
from mortice.ops.creation import ones
from mortice.ops.data import range_of
from mortice.ops.elementwise import div, mul
from mortice.ops.fft import _fftn, _ifftn, one, to_half, to_real, to_spectrum, whole
from mortice.ops.movement import expand, reshape, transpose
from mortice.ops.nn_resize import pad
from mortice.ops.unary import abs
from mortice.ops.views import narrow
from mortice.shape import Size
from mortice.tensor import TensorBase

__all__ = ["istft", "stft"]

# ---- the ops ----


def _frames_shape(name: str, x: Size, window: Size, *, step: int) -> Size:
    return Size((*x[:-1], (x[-1] - window[0]) // step + 1, window[0]))


def _take(k: Any, x: Any, size: int, step: int) -> Any:
    return k.sliding_window(x, axis=len(k.shape_of(x)) - 1, size=size, step=step)


@op(shape=_frames_shape, name="frames", dtypes="fc")
def frames(k: Any, x: Any, window: Any, /, *, step: int) -> Any:
    """Take the frames along the last axis that fit, `step` apart, each times the window."""
    return k.multiply(_take(k, x, k.shape_of(window)[0], step), window)


def _frames_back_window(k: Any, g: Any, x: Any, window_shape: Any, step: int) -> Any:
    both = k.multiply(g, _take(k, x, window_shape[0], step))
    return k.sum(both, axis=tuple(range(len(k.shape_of(both)) - 1)), keepdims=False)


frames.vjp(
    x=lambda k, g, x_shape, window, step: k.overlap_add(k.multiply(g, window), step=step, length=x_shape[-1]),
    window=_frames_back_window,
    jvp="bilinear",
)


def _signal_shape(name: str, x: Size, *, step: int, length: int) -> Size:
    return Size((*x[:-2], length))


@op(shape=_signal_shape, kernel="overlap_add", name="overlap_add", dtypes="fc")
def overlap_add(k: Any, x: Any, /, *, step: int, length: int) -> Any:
    """Add up frames (..., count, size) where they lie in (..., length), `step` apart."""


overlap_add.vjp(x=lambda k, g, x_shape, step: _take(k, g, x_shape[-1], step), jvp="linear")


# ---- reading arguments ----


def _sizes(name: str, n_fft: Any, hop_length: Any, win_length: Any) -> tuple[int, int, int]:
    """Return the sizes of a frame, of a step (a quarter of a frame) and of the window (a frame), unless given."""
    n_fft = whole(name, "n_fft", n_fft)
    hop = n_fft // 4 if hop_length is None else whole(name, "hop_length", hop_length)
    size = n_fft if win_length is None else whole(name, "win_length", win_length)
    if hop < 1:
        raise ShapeError(f"{name}: expected hop_length > 0; got hop_length={hop} for n_fft={n_fft}.")
    if not 0 < size <= n_fft:
        raise ShapeError(f"{name}: expected 0 < win_length <= n_fft; got win_length={size} for n_fft={n_fft}.")
    return n_fft, hop, size


def _weights(name: str, x: Any, window: Any, size: int, n_fft: int, advice: str) -> Any:
    """Return the window, in the middle of a frame."""
    if window is None:
        if size == n_fft:
            warn(
                f"A window was not provided. A rectangular window will be applied, {advice} To suppress this "
                "warning and use a rectangular window, pass window=mortice.ones(win_length).",
                once=True,
            )
        window = ones((size,), dtype=x.dtype.to_real(), device=x._device)
    if not isinstance(window, TensorBase):
        raise no_tensor(name, "window", window)
    if tuple(window.shape) != (size,):
        raise ShapeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={size}; got window with size {list(window.shape)}."
        )
    left = (n_fft - size) // 2
    return pad(window, (left, n_fft - size - left)) if size < n_fft else window


def _extended(x: Any, amount: int, mode: str) -> Any:
    """Pad the last dim on both sides."""
    if not amount:
        return x
    wide = pad(reshape(x, (1,) * (3 - len(x.shape)) + tuple(x.shape)), (amount, amount), mode)
    return reshape(wide, (*x.shape[:-1], wide.shape[-1]))


# ---- there ----


@autocasting
def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: Any = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    """Transform frames of n_fft points, hop_length apart, of (L,) or (B, L) to (..., frequencies, frames).

    Args:
        window: weighs each frame; win_length numbers, in the middle of a frame.
        center: whether frame t is around, rather than from, point t * hop_length; the input is then padded (pad_mode).
        normalized: whether to divide by the root of n_fft.
        onesided: whether only the first n_fft // 2 + 1 frequencies are kept; by default for real input and window.
        return_complex: needed for real input; False gives pairs of real numbers, and is deprecated.
        align_to_window: without center, whether the windows, rather than the frames, begin at 0.
    """
    if not isinstance(input, TensorBase):
        raise TypeError(f"stft: expected a Tensor; got {type(input).__name__}.")
    if center and align_to_window is not None:
        raise RuntimeError("stft: align_to_window should only be set when center=False.")
    if input.dtype.kind not in "fc":
        raise DTypeError(f"stft: expected a tensor of floating point or complex values; got {input.dtype}. Use .float().")
    if len(input.shape) not in (1, 2):
        raise ShapeError(f"stft: expected a 1D or 2D tensor; got {list(input.shape)}.")
    length = input.shape[-1] + (2 * (whole("stft", "n_fft", n_fft) // 2) if center else 0)
    if not 0 < n_fft <= length:
        raise ShapeError(f"stft: expected 0 < n_fft <= {length}, the length of the input with its padding; got n_fft={n_fft}.")
    n_fft, hop, size = _sizes("stft", n_fft, hop_length, win_length)
    input = _extended(input, n_fft // 2 if center else (n_fft - size) // 2 if align_to_window else 0, pad_mode)
    weights = _weights("stft", input, window, size, n_fft, "which is known to cause spectral leakage.")
    complex_values = input.dtype.is_complex or weights.dtype.is_complex
    if return_complex is None:
        if not complex_values:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if not return_complex:
        warn(
            "stft with return_complex=False is deprecated. Use mortice.view_as_real on the complex output to recover the old "
            "return format.",
            once=True,
        )
    if onesided and complex_values:
        raise RuntimeError("stft: Cannot have onesided output if window or input is complex. Pass onesided=False.")
    if onesided is None:
        onesided = not complex_values
    cut = frames(input, weights, step=hop)
    plan = one("stft", cut, None, -1, "ortho" if normalized else "backward")
    made = transpose(to_half(plan) if onesided else to_spectrum(plan, _fftn), -1, -2)
    return made if return_complex else view_as_real(made)


# ---- and back ----


def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """Return the signal whose stft is nearest to (..., frequencies, frames), given the same arguments.

    Args:
        onesided: whether the input has the first n_fft // 2 + 1 frequencies; found out from its size unless given.
        length: the length of the signal; without it, the frames say.
        return_complex: whether the signal is complex; the input then has all frequencies.
    """
    if not isinstance(input, TensorBase):
        raise TypeError(f"istft: expected a Tensor; got {type(input).__name__}.")
    if not input.dtype.is_complex:
        raise DTypeError(
            "istft: requires a complex-valued input tensor matching the output from stft with return_complex=True; got "
            f"{input.dtype}. Use mortice.view_as_complex on pairs of real numbers."
        )
    if len(input.shape) not in (2, 3):
        raise ShapeError(f"istft: expected a tensor with 2 or 3 dimensions; got {list(input.shape)}.")
    if 0 in input.shape:
        raise ShapeError(f"istft: input tensor cannot be empty; got {list(input.shape)}.")
    n_fft, hop, size = _sizes("istft", n_fft, hop_length, win_length)
    if hop > size:
        raise ShapeError(f"istft: expected 0 < hop_length <= win_length; got hop_length={hop} and win_length={size}.")
    found, count = input.shape[-2:]
    onesided = found != n_fft if onesided is None else onesided
    if found != (n_fft // 2 + 1 if onesided else n_fft):
        raise ShapeError(
            f"istft: expected the frequency dimension (2nd to the last) to match n_fft{' / 2 + 1' if onesided else ''} "
            f"when onesided={bool(onesided)}; got {found} for n_fft={n_fft}."
        )
    advice = "please provide the same window used by stft to make the inversion lossless."
    weights = _weights("istft", input, window, size, n_fft, advice)
    if return_complex and onesided:
        raise RuntimeError("istft: Cannot have onesided output if window or input is complex. Pass onesided=False.")
    if weights.dtype.is_complex and not return_complex:
        raise RuntimeError("istft: Complex windows are incompatible with return_complex=False. Pass return_complex=True.")
    start, full = n_fft // 2 if center else 0, n_fft + hop * (count - 1)
    wanted = full - 2 * start if length is None else whole("istft", "length", length)
    there = min(wanted, full - start)
    if there < 1:
        raise ShapeError(f"istft: expected a signal of at least one point; got length={wanted}.")

    plan = one("istft", transpose(input, -1, -2), None if return_complex else n_fft, -1, "ortho" if normalized else None)
    cut = mul(to_spectrum(plan, _ifftn) if return_complex else to_real(plan), weights)
    signal = narrow(overlap_add(cut, step=hop, length=full), -1, start, there)
    # Every point was weighed by the window twice in each frame that it is in.
    squares = expand(mul(weights, weights), (count, n_fft))
    total = narrow(overlap_add(squares, step=hop, length=full), -1, start, there)
    least, _ = range_of(abs(total.detach())) or (1.0, 1.0)
    if not least > 1e-11:
        raise RuntimeError(
            f"istft: window overlap add min: the windows must cover every point of the signal; got a weight of {least:g}. "
            "Choose a window without zeros, a smaller hop_length, or center=True."
        )
    signal = div(signal, total)
    if there == wanted:
        return signal
    warn(
        "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
        "Please check your center and hop_length settings.",
        once=True,
    )
    return pad(signal, (0, wanted - there))
