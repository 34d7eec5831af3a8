"""scikit-learn on tensors: the estimators and metrics that its release documents as array API code."""

from __future__ import annotations

import pytest

from .check import check_gradients, check_refusal, check_values
from .record import Client, integers, normal, positive_definite, uniform

X, Y = normal(30, 4), integers(0, 3, 30)
HALVES = integers(0, 2, 30)  # two classes
PAIRS = [normal(7, 3), normal(5, 3)]


def fitted(*attributes, y=False, then=(), **options):
    """Fit an estimator; return the attributes that it learnt and the results of its methods."""

    def call(cls, x, *target):
        estimator = cls(**options).fit(x, *target)
        learnt = [getattr(estimator, name) for name in attributes]
        return learnt + [getattr(estimator, name)(x) for name in then]

    return call


FACTS = {"dtypes", "loose", "note", "double", "gradient", "overwrites"}


def estimator(name, *attributes, inputs=(X,), then=(), **options):
    """One estimator of scikit-learn: its options, and the facts of the record."""
    facts = {key: options.pop(key) for key in FACTS & options.keys()}
    return Client(f"sklearn.{name}", list(inputs), fitted(*attributes, then=then, **options), **facts)


def metric(name, *inputs, double=False, **options):
    """One metric: a number, or an array of them."""
    return Client(f"sklearn.metrics.{name}", list(inputs), lambda f, *a: f(*a, **options), double=double)


def pairwise(name, *inputs, **options):
    """A distance or kernel between rows, with its gradients."""
    facts = {"gradient": True} | {key: options.pop(key) for key in FACTS & options.keys()}
    return Client(f"sklearn.metrics.pairwise.{name}", list(inputs or PAIRS), lambda f, *a: f(*a, **options), **facts)


# Minimisers stop where the gradient is small enough: float64 agrees to that, float32 has no more digits than that.
ITERATED = {"dtypes": ("float64",), "loose": 1e4}
WIDENED = {"dtypes": ("float64",)}  # NumPy's result is float64 also for float32; a tensor's keeps its dtype


def calibrated(cls, x, y):
    """Calibrate a classifier that is array code itself."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return cls(LinearDiscriminantAnalysis(), method="temperature", cv=3).fit(x, y).predict_proba(x)


ESTIMATORS = [
    estimator("preprocessing.StandardScaler", "mean_", "var_", "scale_", then=["transform"]),
    estimator("preprocessing.MinMaxScaler", "data_min_", "data_max_", "scale_", then=["transform"], gradient=True),
    estimator("preprocessing.MaxAbsScaler", "max_abs_", then=["transform"], gradient=True),
    estimator("preprocessing.KernelCenterer", "K_fit_rows_", inputs=[positive_definite(6)], then=["transform"], gradient=True),
    estimator("preprocessing.Normalizer", then=["transform"], overwrites=True),
    estimator("preprocessing.Binarizer", then=["transform"], threshold=0.2),
    estimator("preprocessing.PolynomialFeatures", then=["transform"], degree=3, overwrites=True),
    estimator("preprocessing.LabelEncoder", "classes_", inputs=[Y], then=["transform"]),
    estimator("decomposition.PCA", "mean_", "explained_variance_", "singular_values_", then=["transform"], n_components=2,
              svd_solver="full", note="full", overwrites=True),
    estimator("decomposition.PCA", "explained_variance_ratio_", "noise_variance_",
              n_components=2, svd_solver="covariance_eigh", note="covariance", gradient=True),
    estimator("decomposition.PCA", "explained_variance_", n_components=2, svd_solver="randomized", random_state=0,
              power_iteration_normalizer="QR", note="randomized", overwrites=True),
    estimator("linear_model.Ridge", "coef_", "intercept_", inputs=[X, normal(30)], then=["predict"], alpha=0.5, solver="svd",
              gradient=True),
    estimator("linear_model.RidgeCV", "coef_", "alpha_", inputs=[X, normal(30)], then=["predict"], gradient=True),
    estimator("linear_model.RidgeClassifier", "coef_", inputs=[X, Y], then=["predict"], solver="svd"),
    estimator("linear_model.LogisticRegression", "coef_", "intercept_", inputs=[X, Y], then=["predict", "predict_proba"],
              solver="lbfgs", **ITERATED),
    estimator("linear_model.PoissonRegressor", "coef_", inputs=[X, uniform(0.5, 4, 30)], then=["predict"], **ITERATED),
    estimator("discriminant_analysis.LinearDiscriminantAnalysis", "means_", "explained_variance_ratio_", inputs=[X, Y],
              then=["predict", "predict_proba"], overwrites=True),
    estimator("naive_bayes.GaussianNB", "theta_", "var_", "class_prior_", inputs=[X, Y], then=["predict", "predict_log_proba"],
              gradient=True),
    estimator("mixture.GaussianMixture", "weights_", "means_", inputs=[X], then=["predict"], n_components=2, random_state=0,
              init_params="random", overwrites=True),
    estimator("kernel_approximation.Nystroem", "components_", inputs=[X], then=["transform"], n_components=5, random_state=0,
              gradient=True),
    Client("sklearn.calibration.CalibratedClassifierCV", [X, Y], calibrated, double=True, **ITERATED, overwrites=True),
]  # fmt: skip

CLASSES = [
    metric(name, integers(0, 2, 40), integers(0, 2, 40))
    for name in "accuracy_score balanced_accuracy_score cohen_kappa_score confusion_matrix f1_score hamming_loss jaccard_score "
    "multilabel_confusion_matrix precision_score recall_score zero_one_loss".split()
] + [
    metric("fbeta_score", integers(0, 3, 40), integers(0, 3, 40), beta=2, average="macro"),
    metric("precision_recall_fscore_support", integers(0, 3, 40), integers(0, 3, 40), double=True),
    metric("average_precision_score", integers(0, 2, 40), uniform(0, 1, 40)),
    Client("sklearn.metrics.roc_auc_score", [integers(0, 2, 40), uniform(0, 1, 40)], host=True),
    metric("roc_curve", integers(0, 2, 40), uniform(0, 1, 40)),
    metric("det_curve", integers(0, 2, 40), uniform(0, 1, 40)),
    metric("precision_recall_curve", integers(0, 2, 40), uniform(0, 1, 40)),
    metric("brier_score_loss", integers(0, 2, 40), uniform(0, 1, 40)),
    metric("log_loss", integers(0, 2, 40), uniform(0.1, 0.9, 40)),
    metric("d2_log_loss_score", integers(0, 2, 40), uniform(0.1, 0.9, 40)),
]

NUMBERS = [
    metric(name, uniform(1, 2, 40), uniform(1, 2, 40))
    for name in "r2_score explained_variance_score mean_absolute_error mean_squared_error root_mean_squared_error max_error "
    "mean_squared_log_error root_mean_squared_log_error median_absolute_error mean_absolute_percentage_error "
    "mean_gamma_deviance mean_poisson_deviance mean_tweedie_deviance mean_pinball_loss d2_tweedie_score d2_pinball_score "
    "d2_absolute_error_score".split()
] + [
    Client("sklearn.metrics.r2_score", [normal(9, 3), normal(9, 3)], lambda f, a, b: f(a, b, multioutput="raw_values"),
           gradient=True, note="raw values"),
    Client("sklearn.metrics.mean_squared_error", [normal(9, 3), normal(9, 3)],
           lambda f, a, b: f(a, b, multioutput="raw_values"), gradient=True, note="raw values"),
    metric("calinski_harabasz_score", X, Y),
]  # fmt: skip

PAIRWISE = [
    pairwise(name) for name in "euclidean_distances linear_kernel polynomial_kernel rbf_kernel sigmoid_kernel".split()
] + [
    pairwise("cosine_similarity", gradient=False, overwrites=True),
    pairwise("cosine_distances", gradient=False, overwrites=True),
    pairwise("manhattan_distances", **WIDENED),
    pairwise("laplacian_kernel", **WIDENED),
    pairwise("chi2_kernel", uniform(0, 1, 7, 3), uniform(0, 1, 5, 3)),
    pairwise("additive_chi2_kernel", uniform(0, 1, 7, 3), uniform(0, 1, 5, 3)),
    pairwise("paired_cosine_distances", X, X, gradient=False, overwrites=True),
    pairwise("paired_euclidean_distances", X, X),
    pairwise("paired_manhattan_distances", X, X),
    pairwise("pairwise_distances", metric="euclidean"),
    pairwise("pairwise_kernels", metric="rbf"),
]


def crossed(f, x, y):
    """Score a pipeline on folds."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return f(make_pipeline(StandardScaler(), Ridge(solver="svd")), x, y, cv=3).tolist()


def searched(f, x, y):
    """Choose a parameter by cross-validation."""
    from sklearn.linear_model import Ridge

    found = f(Ridge(solver="svd"), {"alpha": [0.1, 1.0, 10.0]}, cv=3).fit(x, y)
    return found.best_params_["alpha"], found.predict(x)


SELECTION = [
    Client(
        "sklearn.model_selection.train_test_split",
        [X, Y],
        lambda f, x, y: f(x, y, test_size=0.3, random_state=0),
        gradient=True,
    ),
    Client("sklearn.model_selection.cross_val_score", [X, normal(30)], crossed),
    Client("sklearn.model_selection.GridSearchCV", [X, normal(30)], searched, gradient=True),
    Client("sklearn.utils.resample", [X], lambda f, x: f(x, random_state=0), gradient=True),
    Client("sklearn.utils.shuffle", [X, Y], lambda f, x, y: f(x, y, random_state=0), gradient=True),
    Client(
        "sklearn.utils.extmath.randomized_svd",
        [X],
        lambda f, x: f(x, 2, random_state=0, power_iteration_normalizer="QR")[1],
        overwrites=True,
    ),
    Client("sklearn.preprocessing.label_binarize", [Y], lambda f, y: f(y, classes=[0, 1, 2])),
]

CLIENTS = ESTIMATORS + CLASSES + NUMBERS + PAIRWISE + SELECTION


# Some estimators read a number of what has a gradient, before they write over it.
pytestmark = pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True to a scalar")


@pytest.fixture(autouse=True)
def dispatch():
    sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed: it is not tried with tensors")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def test_the_result_is_numpys(client, device):
    check_values(client, device)


def test_gradients_are_refused(client, device):
    check_refusal(client, device)


def test_gradients_flow(client, device):
    check_gradients(client, device)
