"""Surrogates: models of the objective on strings, all behind one protocol."""

from seqopt.models import pathwise  # noqa: F401  # BoTorch's draws of functions find the sub-sequence kernel
from seqopt.models.averaging import averaged
from seqopt.models.binomial_gp import BinomialGP
from seqopt.models.conditioned import BlockwisePosterior, GaussianProcess, in_units_of, measurement_std
from seqopt.models.contexts_posterior import ContextsPosterior
from seqopt.models.contributions import Contributions, contributions_of
from seqopt.models.distance_mean import DistanceMean, with_mean
from seqopt.models.distances import DistanceSurrogate, KernelDistances
from seqopt.models.fully_bayesian import FullyBayesianGP, FullyBayesianStringGP, KernelDiagnostics
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.lead_distances import (
    EditDistance,
    KernelDistance,
    LeadDistance,
    StringLength,
    TanimotoDistance,
    lead_distance,
)
from seqopt.models.leave_one_out import LeaveOneOut
from seqopt.models.levels import Levels
from seqopt.models.means import ColumnMean, mean_effects
from seqopt.models.plan import Features, SurrogatePlan
from seqopt.models.prior_means import DataMean, PriorMean
from seqopt.models.protocols import (
    BinomialSurrogate,
    CensoredSurrogate,
    ConditionedProcess,
    DoubtingSurrogate,
    ExplainedSurrogate,
    JointSurrogate,
    MeasurementSurrogate,
    NoiseAwareSurrogate,
    Nominating,
    PlannedSurrogate,
    PoolSurrogate,
    SelectiveSurrogate,
    StringSurrogate,
    Surrogate,
    Untransform,
    unlearnable,
    unsupported,
)
from seqopt.models.reagent_gp import ReagentGP
from seqopt.models.registry import SURROGATES, default_surrogate, resolve_surrogate
from seqopt.models.sampling import GridSampler, ModeSampler, MotifSampler, Sampler, SliceSampler, SMCSampler
from seqopt.models.string_gp import StringGP
from seqopt.models.weight_space import FeatureMap, FingerprintMap, NgramMap, WeightSpaceGP
from seqopt.utils.mean_effect import MeanEffect

__all__ = [
    "SURROGATES",
    "BinomialGP",
    "BinomialSurrogate",
    "BlockwisePosterior",
    "CensoredSurrogate",
    "ColumnMean",
    "ConditionedProcess",
    "ContextsPosterior",
    "Contributions",
    "DataMean",
    "DistanceMean",
    "DistanceSurrogate",
    "DoubtingSurrogate",
    "EditDistance",
    "ExplainedSurrogate",
    "FeatureMap",
    "Features",
    "FingerprintMap",
    "FullyBayesianGP",
    "FullyBayesianStringGP",
    "GaussianProcess",
    "GaussianSurrogate",
    "GridSampler",
    "JointSurrogate",
    "KernelDiagnostics",
    "KernelDistance",
    "KernelDistances",
    "LeadDistance",
    "LeaveOneOut",
    "Levels",
    "MeanEffect",
    "MeasurementSurrogate",
    "ModeSampler",
    "MotifSampler",
    "NgramMap",
    "NoiseAwareSurrogate",
    "Nominating",
    "PlannedSurrogate",
    "PoolSurrogate",
    "PriorMean",
    "ReagentGP",
    "SMCSampler",
    "Sampler",
    "SelectiveSurrogate",
    "SliceSampler",
    "StringGP",
    "StringLength",
    "StringSurrogate",
    "Surrogate",
    "SurrogatePlan",
    "TanimotoDistance",
    "Untransform",
    "WeightSpaceGP",
    "averaged",
    "contributions_of",
    "default_surrogate",
    "in_units_of",
    "lead_distance",
    "mean_effects",
    "measurement_std",
    "resolve_surrogate",
    "unlearnable",
    "unsupported",
    "with_mean",
]
