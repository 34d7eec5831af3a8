"""The distributions under test: how each is made, and values to ask it about. Both sides make theirs from these numbers."""

from __future__ import annotations

from typing import Any

MATRIX = [[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 1.0]]
FACTOR = [[1.2, 0.0, 0.0], [0.3, 0.8, 0.0], [-0.5, 0.1, 1.5]]
WEIGHTS = [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]
LOGITS = [[0.1, -1.0, 2.0], [0.5, 0.4, -0.7]]
UNIT = [0.1, 0.5, 0.93]
REAL = [-1.3, 0.2, 2.5]
ABOVE = [0.3, 1.1, 4.0]
SIMPLEX = [[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]]

# (class, parameters by name, value)
TABLE: list[tuple[str, dict[str, Any], Any]] = [
    ("Bernoulli", {"probs": [0.2, 0.7, 0.95]}, [0.0, 1.0, 1.0]),
    ("Bernoulli", {"logits": [-2.0, 0.3, 4.0]}, [0.0, 1.0, 0.0]),
    ("Beta", {"concentration1": [0.5, 2.0, 30.0], "concentration0": [1.5, 3.0, 0.2]}, UNIT),
    ("Binomial", {"total_count": [10.0, 10.0, 10.0], "probs": [0.2, 0.7, 0.5]}, [0.0, 3.0, 10.0]),
    ("Binomial", {"total_count": [7.0, 7.0, 7.0], "logits": [-1.0, 0.3, 2.0]}, [0.0, 3.0, 7.0]),
    ("Categorical", {"probs": WEIGHTS}, [0, 2]),
    ("Categorical", {"logits": LOGITS}, [1, 2]),
    ("Cauchy", {"loc": [-1.0, 0.5, 2.0], "scale": [0.5, 1.0, 3.0]}, REAL),
    ("Chi2", {"df": [0.7, 2.0, 9.0]}, ABOVE),
    ("ContinuousBernoulli", {"probs": [0.1, 0.5002, 0.9]}, UNIT),
    ("ContinuousBernoulli", {"logits": [-2.0, 0.3, 4.0]}, UNIT),
    ("Dirichlet", {"concentration": [[0.5, 1.0, 3.0], [2.0, 2.5, 0.7]]}, SIMPLEX),
    ("Dirichlet", {"concentration": [[0.5, 0.2, 0.3], [2.0, 2.5, 3.7]]}, SIMPLEX),
    ("Exponential", {"rate": [0.5, 1.0, 3.0]}, ABOVE),
    ("FisherSnedecor", {"df1": [1.5, 3.0, 7.0], "df2": [1.0, 3.0, 9.0]}, ABOVE),
    ("Gamma", {"concentration": [0.3, 1.0, 8.0], "rate": [0.5, 1.0, 3.0]}, ABOVE),
    ("GeneralizedPareto", {"loc": [-1.0, 0.0, 0.1], "scale": [0.5, 1.0, 3.0], "concentration": [0.3, 0.0, -0.2]}, ABOVE),
    ("Geometric", {"probs": [0.2, 0.7, 0.95]}, [0.0, 2.0, 5.0]),
    ("Geometric", {"logits": [-1.0, 0.3, 2.0]}, [0.0, 2.0, 5.0]),
    ("Gumbel", {"loc": [-1.0, 0.5, 2.0], "scale": [0.5, 1.0, 3.0]}, REAL),
    ("HalfCauchy", {"scale": [0.5, 1.0, 3.0]}, ABOVE),
    ("HalfNormal", {"scale": [0.5, 1.0, 3.0]}, ABOVE),
    ("InverseGamma", {"concentration": [0.3, 1.5, 8.0], "rate": [0.5, 1.0, 3.0]}, ABOVE),
    ("Kumaraswamy", {"concentration1": [0.5, 2.0, 3.0], "concentration0": [1.5, 3.0, 0.2]}, UNIT),
    ("LKJCholesky", {"dim": 3, "concentration": [0.7, 2.0]}, [[1.0, 0, 0], [0.6, 0.8, 0], [0.0, 0.6, 0.8]]),
    ("Laplace", {"loc": [-1.0, 0.5, 2.0], "scale": [0.5, 1.0, 3.0]}, REAL),
    ("LogNormal", {"loc": [-1.0, 0.5, 2.0], "scale": [0.5, 1.0, 0.3]}, ABOVE),
    ("LogisticNormal", {"loc": [[-1.0, 0.5]], "scale": [[0.5, 1.0]]}, SIMPLEX),
    (
        "LowRankMultivariateNormal",
        {"loc": [0.1, -0.5, 1.0], "cov_factor": [[1.0], [0.5], [-0.3]], "cov_diag": [0.5, 1.0, 0.7]},
        REAL,
    ),
    ("Multinomial", {"total_count": 5, "probs": WEIGHTS}, [[1.0, 3.0, 1.0], [5.0, 0.0, 0.0]]),
    ("Multinomial", {"total_count": 5, "logits": LOGITS}, [[1.0, 3.0, 1.0], [5.0, 0.0, 0.0]]),
    ("MultivariateNormal", {"loc": [0.1, -0.5, 1.0], "covariance_matrix": MATRIX}, REAL),
    ("MultivariateNormal", {"loc": [[0.1, -0.5, 1.0], [0, 0, 1.0]], "precision_matrix": MATRIX}, REAL),
    ("MultivariateNormal", {"loc": [0.1, -0.5, 1.0], "scale_tril": FACTOR}, REAL),
    ("NegativeBinomial", {"total_count": [1.0, 3.5, 10.0], "probs": [0.2, 0.7, 0.5]}, [0.0, 3.0, 20.0]),
    ("NegativeBinomial", {"total_count": [1.0, 3.5, 10.0], "logits": [-1.0, 0.3, 2.0]}, [0.0, 3.0, 20.0]),
    ("Normal", {"loc": [-1.0, 0.5, 2.0], "scale": [0.5, 1.0, 3.0]}, REAL),
    ("OneHotCategorical", {"probs": WEIGHTS}, [[1.0, 0, 0], [0, 0, 1.0]]),
    ("OneHotCategorical", {"logits": LOGITS}, [[1.0, 0, 0], [0, 1.0, 0]]),
    ("OneHotCategoricalStraightThrough", {"probs": WEIGHTS}, [[1.0, 0, 0], [0, 0, 1.0]]),
    ("Pareto", {"scale": [0.2, 1.0, 3.0], "alpha": [0.5, 1.5, 3.0]}, ABOVE),
    ("Poisson", {"rate": [0.2, 3.0, 40.0]}, [0.0, 5.0, 33.0]),
    ("RelaxedBernoulli", {"temperature": 0.7, "probs": [0.2, 0.7, 0.95]}, UNIT),
    ("RelaxedBernoulli", {"temperature": 0.7, "logits": [-2.0, 0.3, 4.0]}, UNIT),
    ("RelaxedOneHotCategorical", {"temperature": 0.7, "probs": WEIGHTS}, SIMPLEX),
    ("RelaxedOneHotCategorical", {"temperature": 0.7, "logits": LOGITS}, SIMPLEX),
    ("StudentT", {"df": [0.7, 1.5, 9.0], "loc": [-1.0, 0.5, 2.0], "scale": [0.5, 1.0, 3.0]}, REAL),
    ("Uniform", {"low": [-2.0, 0.0, 1.0], "high": [-1.0, 1.0, 5.0]}, [-1.3, 0.2, 2.5]),
    ("VonMises", {"loc": [-1.0, 0.5, 2.0], "concentration": [0.1, 1.0, 30.0]}, REAL),
    ("Weibull", {"scale": [0.5, 1.0, 3.0], "concentration": [0.7, 1.5, 9.0]}, ABOVE),
    ("Wishart", {"df": [4.0, 5.5], "covariance_matrix": MATRIX}, MATRIX),
    ("Wishart", {"df": [4.0], "scale_tril": FACTOR}, MATRIX),
    ("Wishart", {"df": [4.0], "precision_matrix": MATRIX}, MATRIX),
]
# Parameters that are no tensors.
PLAIN = {"dim", "temperature"}
COUNTS = {"Multinomial": {"total_count"}}


def make(module: Any, name: str, parameters: dict[str, Any], *, dtype: Any = None, grad: bool = False, **options: Any) -> Any:
    """Return (distribution, its tensors) of a module that is shaped like torch."""
    made, tensors = {}, []
    for key, value in parameters.items():
        if key in PLAIN or key in COUNTS.get(name, ()):
            made[key] = module.tensor(value, dtype=dtype or module.float64) if key == "temperature" else value
            continue
        # A covariance is made symmetric from what is differentiated by: its triangles are no parameters of their own.
        t = module.tensor(value, dtype=dtype or module.float64)
        if grad:
            t.requires_grad_()
            tensors.append(t)
        made[key] = t
    return getattr(module.distributions, name)(**made, **options), tensors


def mixtures(module: Any) -> list[tuple[str, Any, Any]]:
    """Return distributions that are made of others: (title, distribution, value)."""
    d, dtype = module.distributions, module.float64
    t = lambda value: module.tensor(value, dtype=dtype)
    normal = lambda: d.Normal(t([[0.0, 1.0, 2.0], [1.0, 1.5, -1.0]]), t([[1.0, 0.5, 2.0], [1.0, 1.0, 1.0]]))
    chain = [d.AffineTransform(t(0.5), t([2.0, 0.7, 1.0])), d.TanhTransform(), d.AffineTransform(1.0, -0.4)]
    return [
        ("independent", d.Independent(normal(), 1), t(REAL)),
        ("independent of two", d.Independent(normal(), 2), t([REAL, REAL])),
        ("mixture", d.MixtureSameFamily(d.Categorical(t(WEIGHTS)), normal()), t([0.3, -1.0])),
        (
            "mixture of vectors",
            d.MixtureSameFamily(d.Categorical(t([0.3, 0.7])), d.Independent(normal(), 1)),
            t([[0.1, 0.2, 0.3], [1.0, 2.0, 0.0]]),
        ),
        ("transformed", d.TransformedDistribution(normal(), chain), t([0.9, 1.1, 0.8])),
        ("decreasing", d.TransformedDistribution(normal(), [d.AffineTransform(1.0, t(-2.0))]), t([0.9, 1.1, 0.8])),
        ("powers", d.TransformedDistribution(d.Gamma(t([2.0, 3.0]), t(1.0)), [d.PowerTransform(t(2.0))]), t([0.4, 3.0])),
        (
            "sums", d.TransformedDistribution(d.Independent(normal(), 1), d.SigmoidTransform()), t([0.4, 0.3, 0.9]),
        ),
        ("sticks", d.TransformedDistribution(d.Normal(t([0.0, 1.0]), t([1.0, 2.0])), d.StickBreakingTransform()), t(SIMPLEX)),
    ]  # fmt: skip
