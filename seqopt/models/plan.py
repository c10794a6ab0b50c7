"""A surrogate with what is known besides the strings: features of a user's own model, and a prior mean."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import gpytorch

from seqopt.datasets import Pool, read_pool
from seqopt.encoding import FeatureEncoder, JointEncoder
from seqopt.encoding.feature_file import FileFeatures, read_features
from seqopt.encoding.fields import FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import LinearFeatureKernel, MotifKernel, OnField, SmoothFeatureKernel, Sum, TanimotoKernel
from seqopt.models.fully_bayesian import FullyBayesianGP
from seqopt.models.log_units import LogBounds, LogUnitNormalPrior
from seqopt.models.means import MEAN_FIELD, MeanBasis, _key, unchanged
from seqopt.models.protocols import Surrogate
from seqopt.models.sampling import GridSampler
from seqopt.models.string_gp import StringGP
from seqopt.spaces import PoolSpace, Space
from seqopt.strings.mutations import looks_like_a_name, mutant
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

STRINGS_FIELD, FEATURES_FIELD = "strings", "features"

ALONE = "features"
"""The name of a surrogate that looks at features alone."""

FeatureKernel: TypeAlias = Literal["rbf", "matern", "linear", "tanimoto"]

KERNELS: tuple[str, ...] = get_args(FeatureKernel)
"""Names of kernels on features."""

SHARE_BOUNDS = (1e-4, 1e4)
"""Lowest and highest variance of the function of features, in units of that of the function of strings."""


class Features(Configurable):
    """Features of the strings of a pool, from a file; see `seqopt.encoding.feature_file.read_features`.

    Args:
        path: The file.
        kernel: How strings are compared by them: ``"rbf"`` or ``"matern"``, smooth in the distance of standardised
            features, with a learned lengthscale; ``"linear"``, a sum over standardised features; ``"tanimoto"``, for
            counts.
        column: The column of strings of the file.
        pool: The file of the pool whose candidates the rows of an ``.npy`` file are. By default its rows are the
            candidates of the space.
        pool_column: Its column of strings.
        pool_kind: What these are.
        standardize: Whether molecules of the pool are identified by their charge parents.
        parent: The string of which the candidates are variants: the file and the pool may then name them (``S121E``).
        sha256: The checksum that the file had; refused if it has another.

    Raises:
        InputError: For an unknown kernel, a file that cannot be used or has changed, or counts below 0. Later, if
            candidates have no features.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from seqopt.spaces import CandidateSet
        >>> path = Path(tempfile.mkdtemp()) / "embeddings.npy"
        >>> np.save(path, np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]))
        >>> features = Features(path).bound(CandidateSet(["AC", "AD", "AE"]))
        >>> features(["AE"]).round(3).tolist()
        [[1.225, 0.0]]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        kernel: str = "rbf",
        *,
        column: str | None = None,
        pool: str | os.PathLike[str] | None = None,
        pool_column: str | None = None,
        pool_kind: str | None = None,
        standardize: bool = False,
        parent: str | None = None,
        sha256: str | None = None,
    ) -> None:
        if kernel not in KERNELS:
            raise InputError(f"unknown kernel on features {kernel!r}: choose {', '.join(KERNELS)}")
        self.path = Path(path).absolute()
        self.kernel = kernel
        self.column = column
        self.pool = None if pool is None else str(Path(pool).absolute())
        self.pool_column = pool_column
        self.pool_kind = pool_kind
        self.standardize = standardize
        self.parent = parent
        self.sha256 = unchanged(self.path, sha256, "features of strings")
        self.file = read_features(self.path, column=column)
        if sha256 is None and (remark := self.file.remark()):
            logger.warning("%s", remark)  # said once, when a search begins
        if kernel == "tanimoto" and not self.file.non_negative:
            raise InputError(f"{self.path.name} has numbers below 0: the Tanimoto kernel is for counts; choose rbf")

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`: the file is named, with its checksum."""
        return {
            "path": str(self.path),
            "kernel": self.kernel,
            "column": self.column,
            "pool": self.pool,
            "pool_column": self.pool_column,
            "pool_kind": self.pool_kind,
            "standardize": self.standardize,
            **({} if self.parent is None else {"parent": self.parent}),
            "sha256": self.sha256,
        }

    def bound(self, space: Space) -> FileFeatures:
        """The features of the candidates of a pool.

        Raises:
            InputError: If the space is no pool, candidates have no features (how many, and the first), or an ``.npy``
                file has another number of rows than the pool.
        """
        if not isinstance(space, PoolSpace):
            raise InputError(
                f"features are of listed strings, and a {type(space).__name__} makes its own: features go with a pool. "
                "Search a list of strings (CandidateSet) with a row of features for each, or leave them out"
            )
        if self.file.strings is not None:
            places: dict[str, int] = {}
            for row, string in enumerate(self.file.strings):
                places.setdefault(_key(space, self._variant(string)), row)
        else:
            keys: Sequence[str] = space.keys if self.pool is None else self._pool().keys
            if len(keys) != len(self.file):
                raise InputError(
                    f"{self.path.name} has {len(self.file):,} rows, and the pool has {len(keys):,} candidates once "
                    "what is there twice or cannot be read is left out: expected a row for each, in their order. Save "
                    "the strings beside the numbers instead (.npz, or a table)"
                )
            places = {key: row for row, key in enumerate(keys)}
        missing = [place for place, key in enumerate(space.keys) if key not in places]
        if missing:
            first, whose = self._first(space, missing)
            raise InputError(
                f"{self.path.name} has no features of {len(missing):,} of {len(space):,} candidates, the first of them "
                f"{first!r} ({whose}): compute them, or leave these candidates out"
            )
        return FileFeatures(self.file, places, standardized=self.kernel != "tanimoto")

    def _pool(self) -> Pool:
        """The file of candidates, as it was read when the search began."""
        assert self.pool is not None
        return read_pool(
            self.pool,
            column=self.pool_column,
            kind=self.pool_kind,
            standardize=self.standardize,
            parent=self.parent,
        )

    def _first(self, space: PoolSpace, places: Sequence[int]) -> tuple[str, str]:
        """The first of some candidates, and where it is: a campaign has them in another order than their file."""
        if self.pool is not None:
            wanted = {space.keys[place] for place in places}
            pool = self._pool()
            for key, string, line in zip(pool.keys, pool.strings, pool.lines.tolist(), strict=True):
                if key in wanted:
                    return string, f"line {line}"
        return space[places[0]], f"candidate {places[0] + 1}"

    def _variant(self, text: str) -> str:
        """The string that a row of the file is about, where it is written as the name of a variant."""
        if self.parent is None or not looks_like_a_name(text, self.parent):
            return text
        return mutant(self.parent, text)

    def build(self) -> gpytorch.kernels.Kernel:
        """The kernel."""
        if self.kernel == "linear":
            return LinearFeatureKernel()
        if self.kernel == "tanimoto":
            return TanimotoKernel()
        return SmoothFeatureKernel("rbf" if self.kernel == "rbf" else "matern")


class SurrogatePlan(Configurable):
    """A surrogate that is made once it is known where to search, with features and a prior mean.

    Features join the kernels of the surrogate. Where it averages over several (`seqopt.models.registry.mixture`), they
    are one more, weighed as the others are. A surrogate of one kernel, such as ``"sites"``, learns a sum of a function
    of the strings and one of the features, with the ratio of their variances. With the name ``"features"`` strings are
    compared by features alone.

    A prior mean (`seqopt.models.means`) is added to each kernel.

    Args:
        surrogate: A name, as `seqopt.models.resolve_surrogate` takes it, or ``"features"``.
        features: Features of the candidates.
        mean: What the prior mean is linear in.

    Raises:
        InputError: For an unknown name, or ``"features"`` without features.

    Example:
        >>> from seqopt.models.means import ColumnMean
        >>> from seqopt.spaces import CandidateSet
        >>> plan = SurrogatePlan("ssk", mean=ColumnMean({"AC": 1.0, "AD": 2.0}, "zero_shot"))
        >>> plan.for_space(CandidateSet(["AC", "AD"])).encoder.name
        'column zero_shot + characters'
    """

    def __init__(
        self, surrogate: str = "auto", *, features: Features | None = None, mean: MeanBasis | None = None
    ) -> None:
        from seqopt.models.registry import check_surrogate

        if not isinstance(surrogate, str):
            raise InputError(f"the surrogate is {surrogate!r}; expected a name")
        self.surrogate = surrogate.strip()
        self.features = features
        self.mean = mean
        if self.alone and features is None:
            raise InputError("the surrogate 'features' compares strings by features: give their file (--features FILE)")
        if not self.alone:
            check_surrogate(self.surrogate)

    @property
    def alone(self) -> bool:
        """Whether strings are compared by features alone."""
        return self.surrogate.lower() == ALONE

    @property
    def label(self) -> str:
        """What it is called.

        Example:
            >>> from seqopt.models.means import ColumnMean
            >>> SurrogatePlan("ssk", mean=ColumnMean({"AC": 1.0, "AD": 2.0}, "zero_shot")).label
            'ssk, mean by zero_shot'
        """
        parts = [self.surrogate]
        if self.features is not None:
            parts = (
                [f"{self.features.kernel} on {self.features.path.name}"]
                if self.alone
                else [f"{self.surrogate} + {self.features.path.name}"]
            )
        column = getattr(self.mean, "column", None)
        return ", ".join(parts + ([] if self.mean is None else [f"mean by {column or type(self.mean).__name__}"]))

    @property
    def facts(self) -> dict[str, str]:
        """The files that it needs, with the beginning of their checksums: what a run is held against on resuming."""
        found = {}
        for name, part in (("features", self.features), ("prior_mean", self.mean)):
            if path := getattr(part, "path", None):
                found[name] = f"{path.name} of SHA-256 {getattr(part, 'sha256', '')[:12]}"
        return found

    def for_space(self, space: Space) -> Surrogate:
        """The surrogate.

        Raises:
            InputError: If strings have no features, or none of the prior mean; or for a surrogate that takes none.
        """
        from seqopt.models.registry import resolve_surrogate

        features = None if self.features is None else self.features.bound(space)
        basis = None if self.mean is None else self.mean.bound(space)
        if self.alone:
            assert self.features is not None
            assert features is not None
            if basis is None:
                return StringGP(self.features.build(), encoder=FeatureEncoder(features))
            fields = {MEAN_FIELD: FeatureEncoder(basis), FEATURES_FIELD: FeatureEncoder(features)}
            kernel = _with_mean(OnField(self.features.build(), FEATURES_FIELD), basis.size)
            return StringGP(kernel, encoder=FieldEncoder(fields))
        base = resolve_surrogate(self.surrogate, space)
        if features is None and basis is None:
            return base
        if not isinstance(base, StringGP | FullyBayesianGP) or base.levels is not None or base.mean is not None:
            raise InputError(
                f"the surrogate {self.surrogate} takes no features and no prior mean: choose another, such as mixture"
            )
        encoder: Any = base.chosen_encoder or space.encoder
        if isinstance(encoder, JointEncoder) and not encoder.tokens_chosen:
            encoder = JointEncoder(encoder.features, space.encoder)
        fields = {STRINGS_FIELD: encoder}
        kernels: list[gpytorch.kernels.Kernel]
        if isinstance(base, FullyBayesianGP):
            # Motifs are found where they are all that decides.
            taken = [place for place, kernel in enumerate(base.kernels) if not isinstance(kernel, MotifKernel)]
            if not taken:
                raise InputError("the surrogate motifs takes no features and no prior mean: choose mixture, say")
            kernels = [OnField(base.kernels[place], STRINGS_FIELD) for place in taken]
        else:
            kernels = [OnField(base.kernel, STRINGS_FIELD)]
        if self.features is not None and features is not None:
            fields[FEATURES_FIELD] = FeatureEncoder(features)
            of_features = OnField(self.features.build(), FEATURES_FIELD)
            if isinstance(base, FullyBayesianGP):
                kernels.append(of_features)
            else:
                kernels = [Sum(kernels[0], _scaled(of_features))]
        if basis is not None:
            fields[MEAN_FIELD] = FeatureEncoder(basis)
            kernels = [_with_mean(kernel, basis.size) for kernel in kernels]
        encoder = FieldEncoder(fields)
        if isinstance(base, StringGP):
            arguments = {**base.config_arguments(), "kernel": kernels[0], "encoder": encoder}
            return StringGP(**arguments)
        settings = base.config_arguments()
        options: dict[str, Any] = {"draws": base.draws, "mean_std": settings.get("mean_std", 0.0)}
        if len(kernels) > 1:
            options |= {"weights": "stacking", "null": settings.get("null", 0.0)}
        samplers = [base.samplers[place] for place in taken]
        samplers += [GridSampler() for _ in kernels[len(samplers) :]]
        return FullyBayesianGP(kernels, samplers, encoder=encoder, **options)


def _with_mean(kernel: gpytorch.kernels.Kernel, size: int) -> Sum:
    # Each coefficient has the variance 1 of the function, in units of the output scale.
    return Sum(kernel, OnField(LinearFeatureKernel(float(size)), MEAN_FIELD))


def _scaled(kernel: gpytorch.kernels.Kernel) -> gpytorch.kernels.ScaleKernel:
    return gpytorch.kernels.ScaleKernel(
        kernel,
        outputscale_prior=LogUnitNormalPrior(0.0, 1.0),
        outputscale_constraint=LogBounds(*SHARE_BOUNDS, initial_value=1.0),
    )
