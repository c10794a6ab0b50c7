r"""Surrogates of strings that are measured in several ways, ready made.

Each is a Gaussian process over (string, context), with *any* kernel k on strings, at point estimates of its parameters
or averaged over them. In the formulas i and j are levels, and the term that is written o is the variance of an offset
of a level: all strings are that much better or worse there.

==================  ==================================================================================================
`coregionalized`    k(x, x') B_ij + [i = j] o
`autoregressive`    f_{t+1} = a_t f_t + delta_t (Kennedy and O'Hagan), all deltas with k, or each with a copy of its own
`continuous`        k(x, x') phi(z)^T Sigma phi(z') for a fidelity that is a number
`fold_mean`         as `coregionalized`; the target is the mean over levels
`hierarchical`      k(x, x') + [same plate] (s k(x, x') + o); the target is what plates have in common
`screened`          k(x, x') + a^2 c(x) c(x') with a value c that is known of nearly all strings beforehand
==================  ==================================================================================================

Levels have noise of their own, and so have sizes of training sets; plates share one. Units are those of each level in
`coregionalized` and `autoregressive`; folds have a mean each and one scale; a continuous fidelity and plates have one
unit. See `seqopt.models.levels`.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import gpytorch
import numpy as np
import numpy.typing as npt

from seqopt.data.contexts import Contexts
from seqopt.encoding import FeatureEncoder, JointEncoder, StringEncoder
from seqopt.encoding.fields import ContextEncoder, FieldEncoder, NameEncoder
from seqopt.errors import InputError
from seqopt.kernels import (
    AutoregressiveKernel,
    CoregionalizationKernel,
    DegenerateKernel,
    HierarchicalKernel,
    LevelKernel,
    MeanLevelKernel,
    OnField,
    Product,
    RecursiveKernel,
    SameLevelKernel,
    SubsequenceKernel,
    Sum,
)
from seqopt.kernels.degenerate import Basis
from seqopt.models.checks import differ
from seqopt.models.fully_bayesian import FullyBayesianGP
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.levels import Levels
from seqopt.models.registry import SURROGATES, variants_encoder
from seqopt.models.string_gp import StringGP, default_kernel
from seqopt.spaces import PoolSpace, Space
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

Kernels: TypeAlias = gpytorch.kernels.Kernel | str | None
"""A kernel on what an encoder makes of strings, the name of one of `seqopt.models.SURROGATES`, or `None` for the
space's own: n-grams with environments (``"ngrams+minmax"``) for a pool of molecules, else sub-sequences."""

STRINGS = "strings"
"""The field that holds what the kernel on strings sees."""

SCREEN = "screen"
"""The field that holds what is known of strings beforehand."""

OFFSET = 1.0
"""Prior variance of the offset of a level, in units of its values' variance."""

MEAN = "(mean)"
"""What the mean over levels is called among them."""

MOST = 0.5
"""Share of the strings of a pool without a known value above which a warning says so."""


def coregionalized(
    space: Space,
    contexts: Contexts,
    kernel: Kernels = None,
    averaged: bool = False,
    *,
    encoder: StringEncoder | None = None,
    rank: int = 1,
) -> GaussianSurrogate:
    """Levels that are mixtures of shared functions and one of their own: intrinsic coregionalisation.

    Args:
        space: Gives the encoder of strings, and the kernel where none is given.
        contexts: That differ in one variable.
        kernel: See `Kernels`.
        averaged: Whether parameters are averaged over (`FullyBayesianGP`), or estimated (`StringGP`).
        encoder: What ``kernel`` sees of strings; by default that of the space.
        rank: Number of shared functions.

    Raises:
        InputError: If contexts differ in several variables, the target is latent, or a name is unknown.

    Example:
        >>> from seqopt import CandidateSet
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
        >>> gp = coregionalized(CandidateSet(["AA", "AB", "BB"]), contexts)
        >>> type(gp).__name__, gp.levels.values
        ('StringGP', ('docking', 'assay'))
    """
    levels = Levels.of(contexts)
    _check_measured(levels, "coregionalized", "fold_mean")
    shared = OnField(CoregionalizationKernel(levels.count, rank), levels.variable)
    strings, field = _on_strings(space, kernel, encoder, averaged)
    return _surrogate(
        _plus_offsets(Product(strings, shared), _offsets(levels.count), levels.variable),
        {levels.variable: ContextEncoder(levels.variable, levels.values, levels.target), STRINGS: field},
        averaged,
        levels,
    )


def autoregressive(
    space: Space,
    contexts: Contexts,
    kernel: Kernels = None,
    averaged: bool = False,
    *,
    encoder: StringEncoder | None = None,
    tied: bool = True,
) -> GaussianSurrogate:
    """Levels from the cheapest to the target, each a multiple of the one before and something of its own.

    Args:
        space: See `coregionalized`.
        contexts: See `coregionalized`. They are ordered by cost, the target last.
        kernel: See `Kernels`.
        averaged: See `coregionalized`.
        encoder: See `coregionalized`.
        tied: Whether all parts have the same kernel on strings; else each has a copy, whose parameters are its own.

    Raises:
        InputError: See `coregionalized`.
    """
    levels = _by_cost(contexts)
    _check_measured(levels, "autoregressive", "fold_mean")
    between = AutoregressiveKernel(levels.count)
    strings, field = _on_strings(space, kernel, encoder, averaged)
    joint: gpytorch.kernels.Kernel
    if tied:
        joint = Product(strings, OnField(between, levels.variable))
    else:
        joint = RecursiveKernel([copy.deepcopy(strings) for _ in levels.values], between, levels.variable)
    return _surrogate(
        _plus_offsets(joint, _offsets(levels.count), levels.variable),
        {levels.variable: ContextEncoder(levels.variable, levels.values, levels.target), STRINGS: field},
        averaged,
        levels,
    )


def continuous(
    space: Space,
    contexts: Contexts,
    kernel: Kernels = None,
    averaged: bool = False,
    *,
    encoder: StringEncoder | None = None,
    basis: Basis = "linear",
) -> GaussianSurrogate:
    """A fidelity that is a number, in which the objective is a combination of two functions.

    The fidelity that is furthest from the target becomes 0, and the target 1 (`seqopt.kernels.DegenerateKernel`).

    Args:
        space: See `coregionalized`.
        contexts: That differ in one variable, whose values are numbers.
        kernel: See `Kernels`.
        averaged: See `coregionalized`.
        encoder: See `coregionalized`.
        basis: ``"linear"``, (1, (1 - z)^2), or ``"thesis"``, (z, (1 - z)^2).

    Raises:
        InputError: See `coregionalized`; for values that are no numbers, or a basis that is neither.
    """
    levels = Levels.of(contexts, "common")
    _check_measured(levels, "continuous", "fold_mean")
    numbers = [value for value in levels.values if isinstance(value, float)]
    target = levels.target
    if len(numbers) < len(levels.values) or len(numbers) < 2 or not isinstance(target, float):
        raise InputError(
            f"{levels.variable} has the values {', '.join(map(str, levels.values))}; a continuous fidelity needs at "
            "least two numbers: take coregionalized for named levels"
        )
    if basis == "slope":
        raise InputError("the basis slope is none of a fidelity: choose linear or thesis")
    furthest = max(numbers, key=lambda value: abs(value - target))
    between = DegenerateKernel(basis, furthest, target)
    departing = DegenerateKernel("linear", furthest, target, root=[0.0, 0.0, math.sqrt(OFFSET)])
    departing.raw_root.requires_grad_(False)
    strings, field = _on_strings(space, kernel, encoder, averaged)
    return _surrogate(
        Sum(Product(strings, OnField(between, levels.variable)), OnField(departing, levels.variable)),
        {levels.variable: ContextEncoder(levels.variable, default=target), STRINGS: field},
        averaged,
        levels,
    )


def fold_mean(
    space: Space,
    contexts: Contexts,
    kernel: Kernels = None,
    averaged: bool = False,
    *,
    encoder: StringEncoder | None = None,
    rank: int = 1,
) -> GaussianSurrogate:
    """Folds of one quantity, of which one is measured at a time, and whose mean is meant: FASTCV.

    Args:
        space: See `coregionalized`.
        contexts: `seqopt.data.Contexts.of_folds`.
        kernel: See `Kernels`.
        averaged: See `coregionalized`.
        encoder: See `coregionalized`.
        rank: Number of functions that folds share.

    Raises:
        InputError: For contexts whose target can be measured.
    """
    levels = Levels.of(contexts, "offset")
    if levels.target is not None:
        raise InputError("fold_mean is for contexts whose target is the mean over them: Contexts.of_folds makes such")
    between = MeanLevelKernel(CoregionalizationKernel(levels.count, rank))
    strings, field = _on_strings(space, kernel, encoder, averaged)
    return _surrogate(
        _plus_offsets(
            Product(strings, OnField(between, levels.variable)),
            MeanLevelKernel(_offsets(levels.count)),
            levels.variable,
        ),
        {levels.variable: ContextEncoder(levels.variable, (*levels.values, MEAN), MEAN), STRINGS: field},
        averaged,
        levels,
    )


def hierarchical(
    space: Space,
    contexts: Contexts,
    kernel: Kernels = None,
    averaged: bool = False,
    *,
    encoder: StringEncoder | None = None,
) -> GaussianSurrogate:
    """Plates that depart from what they have in common, which is meant: BOSH.

    A plain string stands for what plates have in common; a plate that nobody has seen is one more.

    Args:
        space: See `coregionalized`.
        contexts: `seqopt.data.Contexts.of_plates`, or others in one variable whose target is latent and whose values
            are texts.
        kernel: See `Kernels`.
        averaged: See `coregionalized`.
        encoder: See `coregionalized`.

    Raises:
        InputError: For contexts whose target can be measured, or that differ in several variables.
    """
    if len(contexts.names) != 1 or not contexts.latent:
        raise InputError(
            "hierarchical is for contexts that differ in one variable, and whose target is what they have in common: "
            "Contexts.of_plates makes such"
        )
    (name,) = contexts.names
    strings, field = _on_strings(space, kernel, encoder, averaged)
    joint = HierarchicalKernel(strings, OnField(SameLevelKernel(), name))
    return _surrogate(joint, {name: NameEncoder(name), STRINGS: field}, averaged, None)


def screened(
    space: Space,
    known: Mapping[str, float],
    kernel: Kernels = None,
    averaged: bool = False,
    *,
    encoder: StringEncoder | None = None,
) -> GaussianSurrogate:
    r"""A cheap value that is known of (nearly) all strings enters as a linear term: recursive Kennedy-O'Hagan.

    .. math:: f(x) = a\, c(x) + \delta(x), \qquad \operatorname{cov} = k(x, x') + \tau^2 c(x) c(x'),

    with c the known values, standardised, and a normal with a variance :math:`\tau^2` that is learned. It is the model
    of `autoregressive` given that the cheap level is known exactly (Le Gratiet and Garnier 2014), at the cost of the
    target's values alone: 250,000 cheap ones cost nothing cubic. There is only one way left to measure, so that plain
    strings are asked and told.

    A string without a value counts as having the mean of the others.

    Args:
        space: See `coregionalized`.
        known: Cheap values by string.
        kernel: See `Kernels`.
        averaged: See `coregionalized`.
        encoder: See `coregionalized`.

    Raises:
        InputError: If values are not finite, or all equal.
    """
    keyed = {space.key(string): float(value) for string, value in known.items()}
    if isinstance(space, PoolSpace):
        missing = sum(key not in keyed for key in space.keys)
        if missing:
            message = "%d of %d candidates have no value in the cheap column: they count as having its mean"
            logger.log(logging.WARNING if missing > MOST * len(space) else logging.INFO, message, missing, len(space))
    strings, field = _on_strings(space, kernel, encoder, averaged)
    line = OnField(DegenerateKernel("slope"), SCREEN)
    return _surrogate(Sum(strings, line), {SCREEN: FeatureEncoder(KnownValues(keyed)), STRINGS: field}, averaged, None)


class KnownValues(Configurable):
    """What is known of each string, standardised, as its one feature; 0, the mean, where nothing is known.

    Args:
        values: By string.

    Raises:
        InputError: If values are not finite, or all equal.

    Example:
        >>> KnownValues({"A": 1.0, "B": 3.0})(["A", "B", "C"]).round(3).tolist()
        [[-0.707], [0.707], [0.0]]
    """

    name = SCREEN
    size = 1

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = dict(values)
        numbers = np.array(list(self.values.values()), dtype=np.float64)
        for string, number in self.values.items():
            if not math.isfinite(number):
                raise InputError(f"the cheap value of {string!r} is {number!r}; expected a finite number")
        if not len(numbers) or not differ(numbers):
            what = (
                f"all {len(numbers)} cheap values equal {numbers[0]:g}" if len(numbers) else "there are no cheap values"
            )
            raise InputError(f"{what}: they tell strings not apart, so leave them out")
        self._mean, self._std = float(numbers.mean()), float(numbers.std(ddof=1))

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """The feature, ``n x 1``."""
        found = np.array([self.values.get(string, self._mean) for string in strings], dtype=np.float64)
        return ((found - self._mean) / self._std)[:, None]


def default_contexts(space: Space, contexts: Contexts) -> GaussianSurrogate:
    """The surrogate of a search over contexts where none is chosen.

    `hierarchical` for plates of which there can always be one more, `fold_mean` for another latent target, and
    `coregionalized` else.

    Raises:
        InputError: If contexts differ in several variables.
    """
    if len(contexts.names) != 1:
        raise InputError(
            "the default surrogate of several ways to measure learns the levels of one variable, and these contexts "
            "have others: give contexts that differ in one thing, or a surrogate"
        )
    if contexts.open is not None:
        return hierarchical(space, contexts)
    return fold_mean(space, contexts) if contexts.latent else coregionalized(space, contexts)


def _surrogate(
    kernel: gpytorch.kernels.Kernel, fields: Mapping[str, Any], averaged: bool, levels: Levels | None
) -> GaussianSurrogate:
    encoder = FieldEncoder(fields)
    if averaged:
        return FullyBayesianGP(kernel, encoder=encoder, levels=levels)
    return StringGP(kernel, encoder=encoder, levels=levels)


def _on_strings(
    space: Space, kernel: Kernels, encoder: StringEncoder | None, averaged: bool
) -> tuple[OnField, StringEncoder]:
    """A kernel on the field of strings, and the encoder of that field."""
    if encoder is not None and not isinstance(kernel, gpytorch.kernels.Kernel):
        raise InputError("an encoder belongs to a kernel: give both, or neither")
    if isinstance(kernel, gpytorch.kernels.Kernel):
        return OnField(copy.deepcopy(kernel), STRINGS), space.encoder if encoder is None else encoder
    if kernel is None and isinstance(space, PoolSpace) and space.kind == "molecule":
        # With several ways to measure, `CountsKernel` has not been tried.
        built: Any = SURROGATES["ngrams+minmax"].build()
    elif kernel is None:
        found = SubsequenceKernel() if averaged else default_kernel()
        return OnField(found, STRINGS), variants_encoder(space) or space.encoder
    else:
        if kernel not in SURROGATES:
            raise InputError(f"unknown kernel {kernel!r}: choose one of {', '.join(SURROGATES)}, or give an object")
        built = SURROGATES[kernel].build()
    kernels = getattr(built, "kernels", None) or [getattr(built, "kernel", None)]
    if len(kernels) != 1 or kernels[0] is None:
        raise InputError(f"{kernel} has no kernel on strings, or several: give one, as an object")
    seen = built.chosen_encoder if isinstance(built, GaussianSurrogate) else None
    if isinstance(seen, JointEncoder) and not seen.tokens_chosen:
        seen = JointEncoder(seen.features, space.encoder)
    return OnField(kernels[0], STRINGS), space.encoder if seen is None else seen


def _offsets(levels: int) -> CoregionalizationKernel:
    """Independent offsets of levels, whose variance is not learned: a level or two do not tell it."""
    kernel = CoregionalizationKernel(levels, factors=0.0, variances=OFFSET)
    for parameter in kernel.parameters():
        parameter.requires_grad_(False)
    return kernel


def _plus_offsets(joint: gpytorch.kernels.Kernel, offsets: LevelKernel, variable: str) -> Sum:
    return Sum(joint, OnField(offsets, variable))


def _by_cost(contexts: Contexts) -> Levels:
    levels = Levels.of(contexts)
    order = sorted(
        range(levels.count), key=lambda place: (contexts.possible[place] == contexts.target, contexts.costs[place])
    )
    return Levels(levels.variable, tuple(levels.values[place] for place in order), levels.target, levels.units)


def _check_measured(levels: Levels, name: str, other: str) -> None:
    if levels.target is None:
        raise InputError(
            f"{name} needs a target that can be measured, and that of these contexts is the mean over "
            f"{levels.variable}: take {other}"
        )
