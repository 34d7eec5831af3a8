"""mortice.distributions: probability distributions, their divergences, and transforms and constraints of variables."""

from mortice.distributions import constraints, kl_pairs, kl_same, transforms
from mortice.distributions.bernoulli import Bernoulli
from mortice.distributions.beta import Beta
from mortice.distributions.binomial import Binomial
from mortice.distributions.categorical import Categorical
from mortice.distributions.cauchy import Cauchy
from mortice.distributions.chi2 import Chi2
from mortice.distributions.constraint_registry import biject_to, transform_to
from mortice.distributions.continuous_bernoulli import ContinuousBernoulli
from mortice.distributions.dirichlet import Dirichlet
from mortice.distributions.distribution import Distribution
from mortice.distributions.exp_family import ExponentialFamily
from mortice.distributions.exponential import Exponential
from mortice.distributions.fishersnedecor import FisherSnedecor
from mortice.distributions.gamma import Gamma
from mortice.distributions.generalized_pareto import GeneralizedPareto
from mortice.distributions.geometric import Geometric
from mortice.distributions.gumbel import Gumbel
from mortice.distributions.half_cauchy import HalfCauchy
from mortice.distributions.half_normal import HalfNormal
from mortice.distributions.independent import Independent
from mortice.distributions.inverse_gamma import InverseGamma
from mortice.distributions.kl import kl_divergence, register_kl
from mortice.distributions.kumaraswamy import Kumaraswamy
from mortice.distributions.laplace import Laplace
from mortice.distributions.lkj_cholesky import LKJCholesky
from mortice.distributions.log_normal import LogNormal
from mortice.distributions.logistic_normal import LogisticNormal
from mortice.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from mortice.distributions.mixture_same_family import MixtureSameFamily
from mortice.distributions.multinomial import Multinomial
from mortice.distributions.multivariate_normal import MultivariateNormal
from mortice.distributions.negative_binomial import NegativeBinomial
from mortice.distributions.normal import Normal
from mortice.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from mortice.distributions.pareto import Pareto
from mortice.distributions.poisson import Poisson
from mortice.distributions.relaxed_bernoulli import RelaxedBernoulli
from mortice.distributions.relaxed_categorical import RelaxedOneHotCategorical
from mortice.distributions.studentT import StudentT
from mortice.distributions.transformed_distribution import TransformedDistribution
from mortice.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from mortice.distributions.uniform import Uniform
from mortice.distributions.von_mises import VonMises
from mortice.distributions.weibull import Weibull
from mortice.distributions.wishart import Wishart

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy",
    "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform",
    "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
    "biject_to", "identity_transform", "kl_divergence", "register_kl", "transform_to",
]  # fmt: skip
