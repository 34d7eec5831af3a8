"""mortice.fft, stft and windows: known transforms, round trips, gradients, errors; the default bodies on every kind of length."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy_shim import run

import mortice as mt
from mortice.autograd import gradcheck, gradgradcheck

F = mt.fft
W = mt.signal.windows


def _complex(*shape, seed=0):
    g = mt.Generator().manual_seed(seed)
    part = lambda: mt.randn(*shape, dtype=mt.float64, generator=g)
    return mt.complex(part(), part())


def _real(*shape, seed=0):
    return mt.real(_complex(*shape, seed=seed)).clone()


def _close(x, y):
    return mt.allclose(x.to(mt.complex128), y.to(mt.complex128), rtol=1e-5, atol=1e-8 if x.dtype.itemsize > 8 else 1e-5)


# ---- the default bodies ----

# Short, up to the end of one matrix product, split by factors, prime, prime times a factor, prime squared.
LENGTHS = [1, 2, 3, 5, 8, 31, 64, 65, 67, 72, 96, 101, 128, 134, 360, 509, 512, 1000, 1155, 1369, 2003, 4096]


@pytest.mark.parametrize("n", LENGTHS)
def test_default_bodies_are_accurate_for_any_length(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(2, n)) + 1j * rng.normal(size=(2, n))
    for dtype, bound in ((np.complex128, 4e-15), (np.complex64, 2e-6)):
        cast = x.astype(dtype)
        for kernel, reference in (("fftn", np.fft.fft), ("ifftn", np.fft.ifft)):
            want = reference(cast.astype(np.complex128), norm="ortho")
            got = run(kernel, cast, axes=(1,), norm="ortho")
            assert got.dtype == dtype and np.abs(got - want).max() <= bound * np.abs(want).max()


@pytest.mark.parametrize("axes", [(0,), (1,), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_default_bodies_over_several_axes(axes, norm):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 5, 6))
    sizes = [x.shape[a] for a in axes]
    half = np.fft.rfftn(x, axes=axes, norm=norm)
    np.testing.assert_allclose(run("rfftn", x, axes=axes, norm=norm), half, atol=1e-13)
    half = half + 1j * rng.normal(size=half.shape)
    want = np.fft.irfftn(half, s=sizes, axes=axes, norm=norm)
    np.testing.assert_allclose(run("irfftn", half, axes=axes, n=sizes[-1], norm=norm), want, atol=1e-12)
    np.testing.assert_allclose(run("fftn", half, axes=axes, norm=norm), np.fft.fftn(half, axes=axes, norm=norm), atol=1e-12)


def test_quarter_turns_are_exact():
    got = run("fftn", np.array([1, 1j, -1, -1j]), axes=(0,), norm="backward")
    np.testing.assert_array_equal(got, [0, 4, 0, 0])


@pytest.mark.parametrize(("count", "size", "step"), [(1, 1, 1), (5, 4, 1), (5, 4, 3), (3, 7, 2), (2, 3, 5), (9, 2, 1)])
def test_overlap_add_is_the_transpose_of_frames(count, size, step):
    rng = np.random.default_rng(0)
    for rest in (0, step - 1):
        length = step * (count - 1) + size + rest
        frames, signal = rng.normal(size=(2, count, size)), rng.normal(size=(2, length))
        added = run("overlap_add", frames, step=step, length=length)
        assert added.shape == signal.shape
        cut = run("sliding_window", signal, axis=1, size=size, step=step)
        assert math.isclose((added * signal).sum(), (frames * cut).sum(), rel_tol=1e-12)


# ---- known transforms ----


@pytest.mark.oracle
@pytest.mark.skipif(mt.default_backend() not in ("cpu_numpy", "cpu_cext"), reason="strides are of these backends")
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
@pytest.mark.parametrize("turned", [False, True])
def test_results_lie_in_memory_as_pytorchs(name, turned):
    torch = pytest.importorskip("torch")
    for dim in (0, 1, 2, -1) if not name.endswith("n") else ((1, 2), (2, 0), (0, 1, 2), (3, 1), None):
        found = []
        for m in (torch, mt):
            x = m.arange(384, dtype=m.float64).reshape(2, 8, 6, 4).transpose(1, 3 if turned else 1)
            x = x if name in ("rfft", "ihfft", "rfftn", "ihfftn") else x * (1 + 1j)
            made = getattr(m.fft, name)(x, dim=dim)
            found.append((made.stride(), made))
        assert found[0][0] == found[1][0]
        np.testing.assert_allclose(found[1][1].resolve_conj().numpy(), found[0][1].resolve_conj().numpy(), rtol=1e-9, atol=1e-8)


def test_a_wave_is_one_line_of_its_spectrum():
    n, turns = 15, 4
    wave = mt.exp(2j * math.pi * turns / n * mt.arange(n, dtype=mt.float64))
    line = mt.zeros(n, dtype=mt.complex128)
    line[turns] = n
    assert _close(F.fft(wave), line)
    assert _close(F.ifft(line), wave)
    assert _close(F.rfft(mt.cos(2 * math.pi * 4 / 16 * mt.arange(16))), mt.eye(9)[4] * 8)
    assert _close(F.hfft(mt.tensor([0, 0.5j]), n=4), mt.tensor([0.0, 1, 0, -1]))


def test_a_shift_is_a_phase_and_energy_stays():
    x = _complex(3, 7)
    phase = mt.exp(-2j * math.pi * 2 / 7 * mt.arange(7, dtype=mt.float64))
    assert _close(F.fft(x.roll(2, 1)), F.fft(x) * phase)
    assert _close(mt.linalg.vector_norm(F.fft(x, norm="ortho")), mt.linalg.vector_norm(x))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [1, 2, 6, 7])
def test_there_and_back(n, norm):
    z, x = _complex(2, n), _real(2, n)
    assert _close(F.ifft(F.fft(z, norm=norm), norm=norm), z)
    assert _close(F.irfft(F.rfft(x, norm=norm), n, norm=norm), x)
    assert _close(F.hfft(F.ihfft(x, norm=norm), n, norm=norm), x)
    assert _close(F.irfftn(F.rfftn(x, norm=norm), (2, n), norm=norm), x)
    assert _close(F.hfft2(F.ihfft2(x, norm=norm), (2, n), norm=norm), x)
    assert _close(F.ifft2(F.fftn(z, norm=norm), norm=norm), z)


def test_forms_agree_with_one_another():
    x, z = _real(3, 4, 5), _complex(3, 4, 5)
    assert _close(F.rfft(x, dim=1), F.fft(x, dim=1)[:, :3])
    assert _close(F.ihfft(x), F.ifft(x)[..., :3])
    assert _close(F.fft2(z), F.fft(F.fft(z, dim=1), dim=2))
    assert _close(F.fftn(z, s=(2, 7)), F.fft(F.fft(z, 2, 1), 7, 2))
    assert _close(F.fftn(z, s=(6, -1), dim=(0, 2)), F.fft(F.fft(z, 6, 0), dim=2))
    assert _close(F.hfftn(z, dim=(0, 2)), F.hfft(F.fft(z, dim=0), dim=2))
    assert _close(F.irfft2(z), F.irfft(F.ifft(z, dim=1)))
    assert _close(F.ihfftn(x, dim=(0, 2)), F.ifft(F.ihfft(x, dim=2), dim=0))
    assert F.fftn(z, dim=()) is not z and mt.equal(F.fftn(z, dim=()), z)
    assert F.irfft(z).shape == (3, 4, 8) and F.fft(mt.zeros(0, 4)).shape == (0, 4)


def test_sizes_cut_and_fill():
    x = mt.tensor([1.0, 2, 3, 4])
    assert _close(F.fft(x, 2), F.fft(x[:2]))
    assert _close(F.fft(x, 6), F.fft(mt.tensor([1.0, 2, 3, 4, 0, 0])))
    assert _close(F.irfft(x, 3), F.irfft(x[:2], 3))


def test_dtypes():
    for dtype in (mt.bool, mt.uint8, mt.int64, mt.float32):
        x = mt.ones(4, dtype=dtype)
        assert F.fft(x).dtype is mt.complex64 and F.irfft(x).dtype is mt.float32 and F.rfft(x).dtype is mt.complex64
    assert F.ihfft(mt.ones(4, dtype=mt.float64)).dtype is mt.complex128
    assert F.hfft(mt.ones(4, dtype=mt.complex128)).dtype is mt.float64
    into = mt.zeros(4, dtype=mt.complex128)
    assert F.fft(mt.ones(4), out=into) is into and into[0] == 4


def test_frequencies_and_shifts():
    assert F.fftfreq(5, 0.5).tolist() == pytest.approx([0, 0.4, 0.8, -0.8, -0.4])
    assert F.fftfreq(4).tolist() == [0, 0.25, -0.5, -0.25] and F.fftfreq(0).tolist() == []
    assert F.rfftfreq(6).tolist() == pytest.approx([0, 1 / 6, 1 / 3, 0.5])
    assert F.fftfreq(3, dtype=mt.float64).dtype is mt.float64
    for n in (4, 5):
        assert mt.all(F.fftshift(F.fftfreq(n)).diff() > 0)
        assert mt.equal(F.ifftshift(F.fftshift(mt.arange(n))), mt.arange(n))
    assert F.fftshift(mt.arange(6).reshape(2, 3), 1).tolist() == [[2, 0, 1], [5, 3, 4]]


def test_infinite_and_missing_values_raise_no_warnings():
    assert mt.isnan(F.fft(mt.tensor([math.inf, -math.inf, 1.0]))).any()
    assert mt.isnan(F.irfft(mt.tensor([math.nan, 1.0]))).all()


# ---- gradients ----


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_gradients_for_odd_and_even_sizes(n, norm):
    z, x = _complex(2, n // 2 + 1).requires_grad_(), _real(2, n).requires_grad_()
    for fn, at in (
        (lambda x: F.rfft(x, norm=norm), x), (lambda z: F.irfft(z, n, norm=norm), z), (lambda x: F.fft(x, norm=norm), x),
        (lambda z: F.ifft(z, norm=norm), z), (lambda z: F.hfft(z, n, norm=norm), z), (lambda x: F.ihfft(x, norm=norm), x),
        (lambda x: F.rfft2(x, norm=norm), x), (lambda z: F.irfftn(z, (3, n), norm=norm), z),
    ):  # fmt: skip
        assert gradcheck(fn, (at,)) and gradgradcheck(fn, (at,))


def test_forward_mode_is_the_transform_itself():
    x, v = _real(5), _real(5, seed=1)
    _, tangent = mt.func.jvp(F.rfft, (x,), (v,))
    assert _close(tangent, F.rfft(v))


@pytest.mark.oracle
def test_gradients_agree_with_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its gradients of rfft and irfft are not compared")
    for n in (1, 2, 5, 6):
        for name, array in (("rfft", _real(3, n)), ("irfft", _complex(3, n // 2 + 1)), ("irfft2", _complex(3, n // 2 + 1))):
            size = n if name != "irfft2" else (3, n)
            ours, theirs = array.clone().requires_grad_(), torch.from_numpy(array.numpy().copy()).requires_grad_()
            ours_out, theirs_out = getattr(F, name)(ours, size), getattr(torch.fft, name)(theirs, size)
            (abs(ours_out) ** 3).sum().backward()
            (abs(theirs_out) ** 3).sum().backward()
            np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-12)


# ---- short-time transforms ----


@pytest.mark.parametrize(
    "how",
    [{}, {"normalized": True}, {"hop_length": 3}, {"win_length": 7, "hop_length": 2}, {"onesided": False}, {"length": 17},
     {"center": False, "hop_length": 2, "window": mt.ones(8, dtype=mt.float64)}],
)  # fmt: skip
def test_stft_and_back(how):
    x = _real(2, 20)
    how = dict(how)
    window = how.pop("window", mt.hann_window(how.get("win_length", 8), dtype=mt.float64))
    length = how.pop("length", None)
    z = mt.stft(x, 8, window=window, return_complex=True, **how)
    assert z.shape[1] == (8 if how.get("onesided") is False else 5)
    back = mt.istft(z, 8, window=window, length=length, **how)
    assert _close(back, x[:, : back.shape[1]]) and back.shape[1] == (length or back.shape[1]) >= 17


def test_stft_of_complex_signals():
    x, window = _complex(20), mt.hamming_window(8, dtype=mt.float64)
    z = x.stft(8, window=window)
    assert z.shape == (8, 11) and _close(z.istft(8, window=window, return_complex=True), x)
    # The middle frame by hand.
    assert _close(z[:, 5], F.fft(x[6:14] * window))
    aligned = mt.stft(x, 8, 2, 4, window=window[:4], center=False, align_to_window=True, pad_mode="constant")
    assert _close(aligned[:, 0], F.fft(mt.cat([mt.zeros(2), x[:4] * window[:4], mt.zeros(2)])))


def test_stft_gradients():
    window = (mt.hann_window(6, dtype=mt.float64) + 0.1).requires_grad_()
    x, z = _real(14).requires_grad_(), _complex(2, 4, 5).requires_grad_()
    there = lambda x, w: mt.stft(x, 6, 2, window=w, return_complex=True)
    back = lambda z, w: mt.istft(z, 6, 2, window=w)
    for fn, at in ((there, x), (back, z)):
        assert gradcheck(fn, (at, window)) and gradgradcheck(fn, (at, window))


def test_stft_says_what_is_deprecated():
    x, window = mt.ones(20), mt.ones(8)
    with pytest.raises(RuntimeError, match="requires the return_complex parameter be given"):
        mt.stft(x, 8, window=window)
    with pytest.warns(UserWarning, match="stft with return_complex=False is deprecated"):
        pairs = mt.stft(x, 8, window=window, return_complex=False)
    assert mt.equal(mt.view_as_complex(pairs), mt.stft(x, 8, window=window, return_complex=True))
    with pytest.warns(UserWarning, match="A window was not provided"):
        z = mt.stft(x, 8, return_complex=True)
    with pytest.warns(UserWarning, match="A window was not provided"):
        mt.istft(z, 8)
    with pytest.warns(UserWarning, match="Result is being padded with zeros in the tail"):
        assert mt.istft(z, 8, window=window, length=30)[24:].tolist() == [0] * 6


# ---- windows ----


def test_windows_have_their_shapes():
    assert mt.hann_window(4).tolist() == pytest.approx([0, 0.5, 1, 0.5])
    assert mt.hann_window(5, False).tolist() == pytest.approx([0, 0.5, 1, 0.5, 0])
    assert mt.hamming_window(4, True, 0.6, 0.4).tolist() == pytest.approx([0.2, 0.6, 1, 0.6])
    assert mt.bartlett_window(4).tolist() == pytest.approx([0, 0.5, 1, 0.5])
    assert mt.blackman_window(4).tolist() == pytest.approx([0, 0.34, 1, 0.34], abs=1e-7)
    assert W.cosine(3).tolist() == pytest.approx([0.5, 1, 0.5])
    assert W.exponential(3, center=0, sym=False).tolist() == pytest.approx([1, math.exp(-1), math.exp(-2)])
    assert W.gaussian(3, std=2).tolist() == pytest.approx([math.exp(-1 / 8), 1, math.exp(-1 / 8)])
    assert W.general_cosine(4, a=(1, 2, 3), sym=False).tolist() == pytest.approx([2, -2, 6, -2])
    assert W.nuttall(5)[2].item() == pytest.approx(1)
    for window in (W.bartlett, W.blackman, W.cosine, W.exponential, W.gaussian, W.general_hamming, W.hamming, W.hann,
                   W.kaiser, W.nuttall):  # fmt: skip
        assert window(mt.tensor(1.0)).tolist() == [1] and window(0.0).shape == (0,)
        whole = window(9, dtype=mt.float64)
        assert _close(whole, whole.flip(0)) and _close(whole[:-1], window(8, sym=False, dtype=mt.float64))
        assert window(0).tolist() == [] and window(1).tolist() == [1]


@pytest.mark.parametrize("beta", [0.0, 1.0, 12.0, 40.0, 2000.0])
def test_kaiser_keeps_its_digits_for_any_beta(beta):
    def bessel(x):
        """Return I0(x) * exp(-beta) by its integral, on many points."""
        angles = (np.arange(4000) + 0.5) * np.pi / 4000
        return np.mean(np.exp(x * np.cos(angles) - beta))

    want = [bessel(beta * math.sqrt(1 - (i / 5 - 1) ** 2)) / bessel(beta) for i in range(11)]
    np.testing.assert_allclose(mt.kaiser_window(11, False, beta, dtype=mt.float64).cpu().numpy(), want, rtol=1e-11, atol=1e-15)
    assert mt.kaiser_window(5, beta=beta).dtype is mt.float32


def test_windows_take_a_dtype_and_require_grad():
    assert mt.hann_window(5, dtype=mt.bfloat16).dtype is mt.bfloat16
    assert mt.hann_window(5, requires_grad=True).requires_grad and W.hann(5, requires_grad=True).requires_grad


# ---- misuse ----


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda: F.fft([1, 2]), TypeError, "fft.fft: expected a Tensor; got list. Use mortice.tensor(...) first."),
        (lambda: F.fft(mt.ones(4), n=0), RuntimeError,
         "fft.fft: Invalid number of data points (0) specified; expected at least 1."),
        (lambda: F.irfft(mt.ones(1)), RuntimeError,
         "fft.irfft: Invalid number of data points (0) specified; expected at least 1."),
        (lambda: F.fft(mt.ones(4), dim=2), IndexError,
         "fft.fft: Dimension out of range (expected to be in range of [-1, 0], but got 2)."),
        (lambda: F.fft(mt.tensor(1.0)), IndexError, "fft.fft: Dimension specified as -1 but tensor has no dimensions."),
        (lambda: F.fft(mt.ones(4), norm="none"), RuntimeError,
         'fft.fft: Invalid normalization mode: "none"; expected one of backward, forward, ortho.'),
        (lambda: F.rfft(mt.ones(4, dtype=mt.complex64)), RuntimeError,
         "fft.rfft expects a real input tensor, but got ComplexFloat. Use mortice.real(...), or fft.fft."),
        (lambda: F.fft(mt.ones(4, dtype=mt.float16)), RuntimeError,
         "fft.fft: not implemented for 'Half'; got mortice.float16. Use .float() first."),
        (lambda: F.fftn(mt.ones(2, 2), dim=(0, -2)), RuntimeError, "fft.fftn: FFT dims must be unique; got (0, -2)."),
        (lambda: F.fftn(mt.ones(2), s=(2, 2)), RuntimeError,
         "fft.fftn: Got shape with 2 values but input tensor only has 1 dimensions."),
        (lambda: F.fft2(mt.ones(2, 2), s=(2,)), RuntimeError,
         "fft.fft2: When given, dim and shape arguments must have the same length; got 2 dims and 1 sizes."),
        (lambda: F.rfftn(mt.tensor(1.0)), RuntimeError,
         "fft.rfftn: must transform at least one axis; got input of shape []."),
        (lambda: F.fftshift(mt.tensor(1.0)), RuntimeError,
         "fft.fftshift: expected at least one dim to shift; got input of shape []."),
        (lambda: F.fftfreq(4, dtype=mt.int64), RuntimeError,
         "fft.fftfreq: requires a floating point or complex dtype; got mortice.int64."),
        (lambda: F.rfftfreq(-1), RuntimeError, "fft.rfftfreq: expected n to be at least 0; got -1."),
        (lambda: mt.stft(mt.ones(20), 8, window=mt.ones(5), return_complex=True), RuntimeError,
         "stft: expected a 1D window tensor of size equal to win_length=8; got window with size [5]."),
        (lambda: mt.stft(mt.ones(20), 30, center=False, return_complex=True), RuntimeError,
         "stft: expected 0 < n_fft <= 20, the length of the input with its padding; got n_fft=30."),
        (lambda: mt.stft(mt.ones(20), 8, 0, window=mt.ones(8), return_complex=True), RuntimeError,
         "stft: expected hop_length > 0; got hop_length=0 for n_fft=8."),
        (lambda: mt.stft(mt.ones(1, 2, 20), 8, return_complex=True), RuntimeError,
         "stft: expected a 1D or 2D tensor; got [1, 2, 20]."),
        (lambda: mt.stft(mt.ones(20), 8, align_to_window=True, return_complex=True), RuntimeError,
         "stft: align_to_window should only be set when center=False."),
        (lambda: mt.stft(_complex(20), 8, window=mt.ones(8), onesided=True), RuntimeError,
         "stft: Cannot have onesided output if window or input is complex. Pass onesided=False."),
        (lambda: mt.istft(mt.ones(5, 3), 8), RuntimeError,
         "istft: requires a complex-valued input tensor matching the output from stft with return_complex=True; got "
         "mortice.float32. Use mortice.view_as_complex on pairs of real numbers."),
        (lambda: mt.istft(_complex(4, 3), 8), RuntimeError,
         "istft: expected the frequency dimension (2nd to the last) to match n_fft / 2 + 1 when onesided=True; got 4 for "
         "n_fft=8."),
        (lambda: mt.istft(_complex(5, 3), 8, 8, window=mt.hann_window(8)), RuntimeError,
         "istft: window overlap add min: the windows must cover every point of the signal; got a weight of 0. Choose a "
         "window without zeros, a smaller hop_length, or center=True."),
        (lambda: mt.hann_window(-1), RuntimeError, "hann_window requires non-negative window_length, got window_length=-1"),
        (lambda: mt.hann_window(4, dtype=mt.int64), RuntimeError,
         "hann_window: expects floating point dtypes; got mortice.int64."),
        (lambda: W.hann(4, dtype=mt.float16), ValueError,
         "signal.windows.hann expects float32 or float64 dtypes, got: mortice.float16"),
        (lambda: W.gaussian(4, std=0), ValueError,
         "signal.windows.gaussian: Standard deviation must be positive, got: 0 instead."),
        (lambda: W.general_cosine(4, a=()), ValueError,
         "signal.windows.general_cosine: Coefficients cannot be empty; got 0 of them."),
        (lambda: W.hann(4.0), TypeError, "signal.windows.hann: expected the window length to be an int; got float."),
    ],
)  # fmt: skip
def test_misuse_is_refused_with_advice(wrong, error, text):
    with pytest.raises(error) as caught:
        wrong()
    assert str(caught.value) == text


def test_spectra_of_real_numbers_are_those_of_complex_ones_and_say_where_they_come_from() -> None:
    x = mt.arange(24.0, dtype=mt.float64).sin().reshape(2, 3, 4).requires_grad_()
    z = x.detach().to(mt.complex128).requires_grad_()
    weight = mt.arange(24.0, dtype=mt.float64).reshape(2, 3, 4)
    for name, there in (("fftn", "FftR2CBackward0"), ("ifftn", "ConjBackward0")):
        for dim in ((2,), (2, 0), (1,)):
            made, want = getattr(F, name)(x, dim=dim, norm="ortho"), getattr(F, name)(z, dim=dim, norm="ortho")
            assert _close(made, want) and made.grad_fn.name() == there
            (got,), (other,) = mt.autograd.grad((made * weight * 1j).abs().sum(), x), mt.autograd.grad((want * weight * 1j).abs().sum(), z)
            assert got.dtype is mt.float64 and _close(got, other.real)
