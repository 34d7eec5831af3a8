"""SciPy on tensors: what its release documents as array API code, and what goes through NumPy on the CPU and comes back."""

from __future__ import annotations

import os

from .check import check_gradients, check_refusal, check_values
from .record import Client, integers, normal, spread, uniform, values

X, P = normal(3, 8), uniform(0.1, 0.9, 3, 8)
POSITIVE = uniform(0.5, 4, 3, 8)
WAVE = normal(32)


WIDENED = {"dtypes": ("float64",)}  # NumPy's result is float64 also for float32; a tensor's keeps its dtype


def special(name, *inputs, **facts):
    """A special function: mortice has a differentiable one under the same name, which SciPy finds."""
    return Client(f"scipy.special.{name}", list(inputs), gradient=True, **facts)


def through_numpy(name, *inputs, **facts):
    """A function that SciPy only has in C: the tensor goes there and comes back without a gradient."""
    return Client(f"scipy.{name}", list(inputs), host=True, **facts)


def along(**options):
    """Call with options along the last axis."""
    return lambda f, *arrays: f(*arrays, axis=-1, **options)


def statistic(**options):
    """Call a hypothesis test along the last axis; return statistic and p-value."""

    def call(f, *arrays):
        result = f(*arrays, **options)
        return result.statistic, result.pvalue

    return call


SPECIAL = [
    special("entr", P),
    special("erf", X),
    special("erfc", X),
    special("expit", X),
    special("gammaln", POSITIVE),
    special("i0", X),
    special("i0e", X),
    special("i1", X),
    special("i1e", X),
    special("log_ndtr", X),
    special("logit", P),
    special("ndtr", X),
    special("ndtri", P),
    special("psi", POSITIVE),
    special("rel_entr", P, P),
    special("xlogy", POSITIVE, POSITIVE),
    special("xlog1py", POSITIVE, POSITIVE),
    special("logsumexp", X, call=along(), note="axis"),
    Client(
        "scipy.special.logsumexp",
        [X, P],
        lambda f, x, b: f(x, b=b, axis=0, keepdims=True),
        note="weights",
        overwrites=True,
    ),
    special("softmax", X, call=along()),
    Client("scipy.special.log_softmax", [X], along(), overwrites=True),
    special("erfcx", X),
    special("erfinv", P),
    special("exp2", X),
    special("sinc", X),
    special("j0", X),
    special("j1", X),
    special("y0", POSITIVE),
    special("y1", POSITIVE),
    special("k0", POSITIVE),
    special("k1", POSITIVE),
    special("k0e", POSITIVE),
    special("k1e", POSITIVE),
    special("multigammaln", uniform(3, 6, 4), call=lambda f, x: f(x, 3), **WIDENED),
    special("polygamma", POSITIVE, call=lambda f, x: f(2, x), **WIDENED),
    Client("scipy.special.polygamma", [integers(0, 4, 8), POSITIVE], note="array of orders", gradient=True, **WIDENED),
    Client("scipy.special.zeta", [uniform(1.5, 5, 4), POSITIVE], lambda f, x, q: f(x[:, None, None], q)),
    special("zeta", POSITIVE, call=lambda f, q: f(2.5, q), note="number"),
    Client("scipy.special.gammainc", [POSITIVE, POSITIVE]),
    special("gammainc", POSITIVE, call=lambda f, x: f(2.5, x), note="number", **WIDENED),
    special("gammaincc", POSITIVE, call=lambda f, x: f(2.5, x), note="number", **WIDENED),
    Client("scipy.special.chdtr", [POSITIVE, POSITIVE]),
    Client("scipy.special.chdtrc", [POSITIVE, POSITIVE]),
    through_numpy("special.betainc", P, P, P),
    through_numpy("special.gamma", POSITIVE),
    through_numpy("special.spence", POSITIVE),
    through_numpy("special.stdtr", POSITIVE, X),
    through_numpy("special.huber", P, X),
]

STATS = [
    Client("scipy.stats.describe", [X], lambda f, x: tuple(f(x, axis=1))[1:], gradient=True),
    Client("scipy.stats.gmean", [POSITIVE], along(), gradient=True),
    Client("scipy.stats.hmean", [POSITIVE, P], lambda f, x, w: f(x, axis=1, weights=w), gradient=True, note="weights"),
    Client("scipy.stats.pmean", [POSITIVE], lambda f, x: f(x, 3, axis=1), gradient=True),
    Client("scipy.stats.gstd", [POSITIVE], along(), gradient=True),
    Client("scipy.stats.moment", [X], lambda f, x: f(x, [2, 3], axis=1), gradient=True),
    Client("scipy.stats.skew", [X], along(bias=False), gradient=True),
    Client("scipy.stats.kurtosis", [X], along(bias=False), gradient=True),
    Client("scipy.stats.kstat", [X], along(), gradient=True),
    Client("scipy.stats.kstatvar", [X], along(), gradient=True),
    Client("scipy.stats.variation", [POSITIVE], along(ddof=1), gradient=True, note="ddof"),
    Client("scipy.stats.sem", [X], along(ddof=1), gradient=True, note="ddof"),
    Client("scipy.stats.zscore", [X], along(ddof=1), gradient=True, note="ddof"),
    Client("scipy.stats.zmap", [X, X], along(), gradient=True),
    Client("scipy.stats.gzscore", [POSITIVE], along(), gradient=True),
    Client("scipy.stats.tmean", [X], lambda f, x: f(x, (-5, 5), axis=1), gradient=True),
    Client("scipy.stats.tvar", [X], lambda f, x: f(x, (-1, 1), axis=1)),
    Client("scipy.stats.tstd", [X], lambda f, x: f(x, axis=1), gradient=True),
    Client("scipy.stats.tmin", [X], lambda f, x: f(x, -0.5, axis=1), gradient=True),
    Client("scipy.stats.tmax", [X], lambda f, x: f(x, 0.5, axis=1), gradient=True),
    Client("scipy.stats.tsem", [X], lambda f, x: f(x, axis=1), gradient=True),
    Client("scipy.stats.trim_mean", [X], lambda f, x: f(x, 0.2, axis=1), gradient=True),
    Client("scipy.stats.iqr", [X], along(), gradient=True),
    Client("scipy.stats.quantile", [X], lambda f, x: f(x, 0.3, axis=1), gradient=True),
    Client("scipy.stats.median_abs_deviation", [X], along(), gradient=True),
    Client("scipy.stats.mode", [integers(0, 4, 3, 9)], lambda f, x: tuple(f(x, axis=1))),
    Client("scipy.stats.rankdata", [integers(0, 5, 3, 9)], along(), double=True),
    Client("scipy.stats.entropy", [P, P], along(), gradient=True),
    Client("scipy.stats.differential_entropy", [X], along(), gradient=True),
    Client("scipy.stats.circmean", [X], along(), gradient=True),
    Client("scipy.stats.circvar", [X], along(), gradient=True),
    Client("scipy.stats.circstd", [X], along(), gradient=True),
    Client("scipy.stats.directional_stats", [normal(6, 3)], lambda f, x: (lambda r: (r.mean_direction, r.mean_resultant_length))(f(x)),
           gradient=True),
    Client("scipy.stats.boxcox_llf", [POSITIVE], lambda f, x: f(0.5, x, axis=-1), overwrites=True),
    Client("scipy.stats.yeojohnson_llf", [X], lambda f, x: f(0.5, x, axis=-1), gradient=True),
    Client("scipy.stats.sigmaclip", [spread(20)], lambda f, x: tuple(f(x, 1.5, 1.5)), gradient=True),
    Client("scipy.stats.ttest_1samp", [X], statistic(popmean=0.5, axis=1), host=True),
    Client("scipy.stats.ttest_ind", [X, X], statistic(axis=1, equal_var=False), host=True),
    Client("scipy.stats.ttest_rel", [X, X], statistic(axis=1), host=True),
    Client("scipy.stats.pearsonr", [X, X], statistic(axis=1), host=True),
    Client("scipy.stats.f_oneway", [X, X], statistic(axis=1), host=True),
    Client("scipy.stats.mannwhitneyu", [X, X], statistic(axis=1, method="asymptotic"), host=True),
    Client("scipy.stats.chisquare", [POSITIVE], statistic(axis=1), gradient=True),
    Client("scipy.stats.power_divergence", [POSITIVE], statistic(axis=1, lambda_=0.5), gradient=True),
    Client("scipy.stats.jarque_bera", [X], statistic(axis=1), gradient=True),
    Client("scipy.stats.skewtest", [normal(3, 12)], statistic(axis=1), gradient=True),
    Client("scipy.stats.kurtosistest", [normal(3, 24)], statistic(axis=1), gradient=True),
    Client("scipy.stats.normaltest", [normal(3, 24)], statistic(axis=1), gradient=True),
    Client("scipy.stats.bartlett", [X, X], statistic(axis=1), gradient=True),
    Client("scipy.stats.kruskal", [X, X], statistic(axis=1)),
    Client("scipy.stats.friedmanchisquare", [normal(6), normal(6), normal(6)], statistic()),
    Client("scipy.stats.alexandergovern", [X, X], statistic(axis=1), gradient=True),
    Client("scipy.stats.fligner", [X, X], statistic(axis=1)),
    Client("scipy.stats.mood", [X, X], statistic(axis=1)),
    # It inverts a covariance matrix: float32 has too few digits to compare.
    Client("scipy.stats.epps_singleton_2samp", [normal(12), normal(14)], statistic(), dtypes=("float64",), gradient=True),
    Client("scipy.stats.chatterjeexi", [spread(10), spread(10)], statistic()),
    Client("scipy.stats.false_discovery_control", [P], along(), overwrites=True),
]  # fmt: skip

SIGNAL = [
    Client("scipy.signal.freqz_zpk", [uniform(-0.5, 0.5, 3), uniform(-0.5, 0.5, 2)], lambda f, z, p: f(z, p, 2.0, worN=16), gradient=True),
    Client("scipy.signal.envelope", [WAVE], lambda f, x: f(x, (1, 8)), gradient=True),
    Client("scipy.signal.lfilter", [normal(3), WAVE], lambda f, b, x: f(b, b[:1] * 0 + 1, x), host=True),
    Client("scipy.signal.filtfilt", [normal(3), WAVE], lambda f, b, x: f(b, b[:1] * 0 + 1, x), host=True),
    Client("scipy.signal.convolve", [WAVE, normal(5)], lambda f, x, w: f(x, w, mode="same"), host=True),
    Client("scipy.signal.fftconvolve", [WAVE, normal(5)], gradient=True),
    Client("scipy.signal.oaconvolve", [WAVE, normal(5)], gradient=True),
    Client("scipy.signal.correlate", [WAVE, normal(5)], host=True),
    Client("scipy.signal.detrend", [normal(3, 16)], host=True),
    Client("scipy.signal.hilbert", [WAVE], gradient=True),
    Client("scipy.signal.resample", [WAVE], lambda f, x: f(x, 20), gradient=True),
    Client("scipy.signal.savgol_filter", [WAVE], lambda f, x: f(x, 5, 2), host=True),
    Client("scipy.signal.medfilt", [WAVE], lambda f, x: f(x, 3), host=True),
    Client("scipy.signal.sosfilt", [values([0.2, 0.3, 0.2, 1.0, -0.4, 0.1]), WAVE], host=True),
    Client("scipy.signal.vectorstrength", [WAVE], lambda f, x: f(x, 2.0), gradient=True, double=True),
    Client("scipy.signal.upfirdn", [normal(4), WAVE], lambda f, h, x: f(h, x, 3, 2), host=True),
]  # fmt: skip


FFT = [
    Client(f"scipy.fft.{name}", [normal(3, 8)], gradient=True)
    for name in "fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn hfft ihfft fftshift ifftshift".split()
] + [
    Client("scipy.fft.irfft", [normal(3, 8)], lambda f, x: f(x + 0j, n=12), gradient=True),
    Client("scipy.fft.fht", [WAVE], lambda f, x: f(x, dln=0.1, mu=0.5), gradient=True),
    Client("scipy.fft.dct", [normal(3, 8)], host=True),
    Client("scipy.fft.idstn", [normal(3, 8)], host=True),
]

LINALG = [
    Client("scipy.linalg.orthogonal_procrustes", [normal(5, 3), normal(5, 3)], gradient=True),
    Client("scipy.linalg.block_diag", [normal(2, 3), normal(3, 2)], gradient=True),
    Client("scipy.linalg.fiedler", [normal(5)], gradient=True),
]

ELSEWHERE = [
    Client("scipy.integrate.trapezoid", [X, spread(8)], lambda f, y, x: f(y, x, axis=1), gradient=True),
    Client("scipy.integrate.cumulative_trapezoid", [X], lambda f, y: f(y, dx=0.1, axis=1, initial=0), gradient=True),
    Client("scipy.integrate.cumulative_simpson", [normal(3, 9)], lambda f, y: f(y, dx=0.1, axis=1), gradient=True,
           double=True),
    Client("scipy.integrate.romb", [normal(3, 9)], lambda f, y: f(y, dx=0.1, axis=1), overwrites=True),
    Client("scipy.optimize.rosen", [normal(5)], gradient=True),
    Client("scipy.optimize.rosen_der", [normal(5)], gradient=True),
    Client("scipy.optimize.rosen_hess", [normal(5)], gradient=True),
    Client("scipy.optimize.rosen_hess_prod", [normal(5), normal(5)], gradient=True),
    Client("scipy.cluster.vq.whiten", [normal(9, 3)], overwrites=True),
    Client("scipy.cluster.vq.vq", [normal(9, 3), normal(2, 3)], host=True),
    Client("scipy.cluster.vq.kmeans2", [normal(9, 3), normal(2, 3)], lambda f, x, c: f(x, c, minit="matrix"), host=True),
    Client("scipy.cluster.hierarchy.linkage", [normal(9, 3)], lambda f, x: f(x, "ward"), host=True),
    Client("scipy.constants.convert_temperature", [POSITIVE], lambda f, x: f(x, "Celsius", "Fahrenheit"), gradient=True),
    Client("scipy.constants.lambda2nu", [POSITIVE], gradient=True),
]  # fmt: skip

NDIMAGE = [
    Client("scipy.ndimage.gaussian_filter", [normal(6, 7)], lambda f, x: f(x, 1.5), host=True),
    Client("scipy.ndimage.convolve", [normal(6, 7), normal(3, 3)], host=True),
    Client("scipy.ndimage.median_filter", [normal(6, 7)], lambda f, x: f(x, 3), host=True),
    Client("scipy.ndimage.label", [integers(0, 2, 6, 7)], host=True),
    Client("scipy.ndimage.zoom", [normal(6, 7)], lambda f, x: f(x, 2), host=True),
    Client("scipy.ndimage.rotate", [normal(6, 7)], lambda f, x: f(x, 30), host=True),
    Client("scipy.ndimage.distance_transform_edt", [integers(0, 2, 6, 7)], host=True),
    Client("scipy.ndimage.center_of_mass", [POSITIVE], host=True),
    Client("scipy.ndimage.binary_dilation", [integers(0, 2, 6, 7)], host=True),
    Client("scipy.ndimage.map_coordinates", [normal(6, 7), uniform(0, 5, 2, 4)], host=True),
]


def rotation(name, *inputs, **facts):
    """A function of rotations, which gives an array."""
    return Client(f"scipy.spatial.transform.Rotation.{name}", list(inputs), gradient=True, **WIDENED, **facts)


SPATIAL = [
    rotation("from_quat", normal(5, 4), call=lambda f, q: f(q).as_matrix()),
    rotation("from_rotvec", normal(5, 3), call=lambda f, v: f(v).as_quat()),
    rotation("from_euler", normal(5, 3), call=lambda f, a: f("xyz", a).as_matrix()),
    rotation("from_matrix", normal(5, 4), call=lambda f, q: f(_rotation().from_quat(q).as_matrix()).as_rotvec()),
    rotation("apply", normal(5, 4), normal(5, 3), call=lambda f, q, v: _rotation().from_quat(q).apply(v)),
    rotation("mean", normal(5, 4), call=lambda f, q: f(_rotation().from_quat(q)).as_matrix()),
    Client("scipy.interpolate.CubicSpline", [normal(6), uniform(0, 5, 4)],
           lambda f, y, t: f(_grid(y), y)(t), host=True),
    Client("scipy.interpolate.make_interp_spline", [normal(6), uniform(0, 5, 4)],
           lambda f, y, t: f(_grid(y), y)(t), host=True),
    Client("scipy.interpolate.Akima1DInterpolator", [normal(6), uniform(0, 5, 4)],
           lambda f, y, t: f(_grid(y), y)(t), host=True, double=True),
    Client("scipy.interpolate.RegularGridInterpolator", [normal(6, 6), uniform(0, 5, 4, 2)],
           lambda f, y, t: f((_grid(y), _grid(y)), y)(t), host=True),
    Client("scipy.interpolate.RBFInterpolator", [normal(6, 2), normal(6), normal(3, 2)],
           lambda f, p, y, t: f(p, y)(t), gradient=True),
]  # fmt: skip


def _grid(y):
    xp = y.__array_namespace__()
    return xp.arange(y.shape[0], dtype=y.dtype)


def _rotation():
    from scipy.spatial.transform import Rotation

    return Rotation


ROOTS = [
    Client("scipy.optimize.elementwise.find_root", [uniform(1, 9, 5)],
           lambda f, c: f(lambda x, c: x * x - c, (c * 0, c * 0 + 9), args=(c,)).x, gradient=True),
    Client("scipy.optimize.elementwise.bracket_root", [uniform(1, 9, 5)],
           lambda f, c: f(lambda x, c: x * x - c, c * 0, args=(c,)).bracket),
    Client("scipy.optimize.elementwise.find_minimum", [uniform(1, 2, 5)],
           lambda f, c: f(lambda x, c: (x - c) ** 2, (c * 0, c * 0 + 1.5, c * 0 + 9), args=(c,)).x, loose=1e4, overwrites=True),
    Client("scipy.differentiate.derivative", [uniform(1, 2, 5)],
           lambda f, x: f(x.__array_namespace__().exp, x).df, loose=1e3, gradient=True),
    Client("scipy.differentiate.jacobian", [normal(3)],
           lambda f, x: f(lambda x: x**2, x).df, loose=1e3, gradient=True),
    Client("scipy.integrate.tanhsinh", [uniform(1, 2, 5)],
           lambda f, b: f(lambda x: x**2, b * 0, b).integral, loose=10, gradient=True),
    Client("scipy.integrate.nsum", [uniform(2, 3, 4)],
           lambda f, b: f(lambda k, b: 1 / k**b, b * 0 + 1, b * 0 + 30, args=(b,)).sum, gradient=True),
    Client("scipy.integrate.cubature", [normal(3)],
           lambda f, a: f(lambda x, a: a.__array_namespace__().cos(x @ (a[:2] * 1.0)), a[:2] * 0, a[:2] * 0 + 1, args=(a,)).estimate,
           gradient=True),
]  # fmt: skip

CLIENTS = SPECIAL + STATS + SIGNAL + FFT + LINALG + ELSEWHERE + NDIMAGE + SPATIAL + ROOTS


def test_the_result_is_numpys(client, device):
    check_values(client, device)


def test_gradients_flow(client, device):
    check_gradients(client, device)


def test_gradients_are_refused(client, device):
    check_refusal(client, device)


def test_scipy_was_told_to_look_at_arrays():
    assert os.environ["SCIPY_ARRAY_API"] == "1"
