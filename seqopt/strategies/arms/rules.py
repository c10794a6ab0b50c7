"""Rules for which of a few arms is measured next, so that a fixed number of measurements finds the best of them.

All see many situations at once (`seqopt.strategies.arms.ArmPosterior`). A batch is chosen one well at a time, each
given that those before it are awaited.

References:
    Shahriari, B. (2016). Practical Bayesian optimization with application to tuning machine learning algorithms. PhD
        thesis, chapter 4 and appendix A (BayesGap; Hoffman, Shahriari, de Freitas 2014).
    Gabillon, V., Ghavamzadeh, M., Lazaric, A. (2012). Best arm identification: a unified approach to fixed budget and
        fixed confidence (UGap).
    Audibert, J.-Y., Bubeck, S., Munos, R. (2010). Best arm identification in multi-armed bandits (UCB-E).
    Russo, D. (2016). Simple Bayesian algorithms for best arm identification (top-two Thompson sampling).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args

import numpy as np

from seqopt.errors import InputError
from seqopt.strategies.arms.posterior import ArmPosterior, FloatArray, IntArray

BetaMode: TypeAlias = Literal["theory", "fixed", "decay"]
"""How wide the intervals of BayesGap are."""

SMALLEST_GAP = 1e-3
"""Least tolerance of gaps in standard deviations of the noise: hardness stays finite."""

NOISELESS = 1e-8
"""Noise variance, relative to the largest variance of an arm, below which one measurement tells all."""

KNOWN = 1e-9
"""Variance of an arm, relative to the largest one in the beginning, below which it is not measured again."""

TRIES = 24
"""Joint draws in which top-two Thompson sampling looks for another best arm."""


@dataclass(frozen=True)
class Situation:
    """Where confirmations stand.

    Attributes:
        wells: Measurements in all, T.
        used: Measurements made so far, awaited ones among them.
        batch: Number of the batch, from 0.
        prior_variance: Variances of the arms in the beginning, R x K; on plates those of `ArmPosterior.spread`.
    """

    wells: int
    used: int
    batch: int
    prior_variance: FloatArray


class Rule(Protocol):
    """Chooses arms."""

    name: ClassVar[str]

    def choose(self, posterior: ArmPosterior, situation: Situation, rng: np.random.Generator) -> IntArray:
        """The arm that is measured next in each situation, R."""
        ...

    def remark(self, posterior: ArmPosterior, situation: Situation) -> str:
        """What its user should know of it in this situation; empty where there is nothing."""
        ...


@dataclass(frozen=True)
class Gaps:
    """What BayesGap sees, in R situations.

    Attributes:
        lower: L_k, R x K; on plates, of how far arm k is above the leader.
        upper: U_k, R x K; on plates, of how far arm k is above the leader.
        gap: B_k, an upper bound on how far arm k is from the best, R x K: max_{i != k} U_i - L_k, and on plates
            max_{i != k} of the upper bounds of g_i - g_k.
        leader: J, the arm of the smallest gap, R.
        challenger: j, the arm of the largest upper bound besides, R.
        arm: Whichever of the two is less certain or, on plates, tells more of their difference, R.
    """

    lower: FloatArray
    upper: FloatArray
    gap: FloatArray
    leader: IntArray
    challenger: IntArray
    arm: IntArray


class BayesGap:
    r"""Measures the less certain of the leading arm and its strongest challenger, by a joint Gaussian posterior.

    With U_k, L_k = m_k +- beta sd_k and B_k = max_{i != k} U_i - L_k, the leader J has the smallest B, the challenger j
    is the largest U of the others, and the one of larger variance is measured (thesis, 4.1 to 4.4). Beta is by mode:

    - ``theory``: beta^2 = [(T - K) / noise + sum_k 1/S_kk] / (4 H), H = sum_k max((D_k + e)/2, e)^-2 (4.7), with S the
      prior covariance and D_k bounds of gaps by intervals of three standard deviations, computed anew in each round:
      D_k = max(max_{i != k} u_i - l_k, u_k - max_{i != k} l_i). The second term is not in the thesis (4.15), by which
      D of a clear leader is negative. Where beta^2 is not positive (fewer wells than arms, as a rule), or there is as
      good as no noise, ``beta`` is used instead, and `remark` says so.
    - ``fixed``: beta.
    - ``decay``: beta * decay^batch.

    An arm that is known exactly is not measured again as long as another one is not.

    On plates, all wells of one share an offset. The level of all arms is then hardly known, is not learned from a lone
    well, and cancels where arms are compared: standard deviations of single arms say next to nothing of which one is
    the best. So the differences of arms take their place,

    .. math::
        B_k = \max_{i \ne k} \left( m_i - m_k + \sqrt{2} \beta s_{ik} \right), \quad
        s_{ik}^2 = S_{ii} + S_{kk} - 2 S_{ik}

    and the challenger j of the leader J is that of the largest m_j - m_J + sqrt(2) beta s_jJ. For independent arms of
    equal variances these are the same intervals as above, since sqrt(2) s_ik = sd_i + sd_k. Of the two that one is
    measured which lowers the variance of their difference most, on the plate as it will be with its controls and the
    wells that are chosen already:

    .. math:: (C_{Ja} - C_{ja})^2 / (H_{aa} + \mathrm{noise}_a), \quad a \in \{J, j\}

    with C the covariance between true values and what wells of that plate read, and H that of the latter (see
    `seqopt.strategies.arms.ArmPosterior`). After a well of the leader a second one tells of nothing but the offset, and
    the challenger is next. In the ``theory`` S_kk is K/(K - 1) (H S H)_kk, H = I - 1 1^T/K (`ArmPosterior.spread`), and
    D_k the larger one of max_{i != k} (m_i - m_k + w_ik) and min_{i != k} (m_k - m_i + w_ik), w_ik = 3 sqrt(2) s_ik.

    Args:
        mode: See above.
        beta: Of ``fixed``; the first one of ``decay``; what ``theory`` falls back on.
        decay: By what beta falls with each batch.
        tolerance: e, how far from the best an arm may be.

    Raises:
        InputError: For another mode, or numbers that make no sense.

    Example:
        >>> posterior = ArmPosterior.of([1.05, 0.575, -0.5], np.diag([0.15, 0.575, 1.5]) ** 2, 0.25)
        >>> found = BayesGap("fixed", 1.0).gaps(posterior, np.ones(1))
        >>> found.gap.round(2), found.arm  # neither the best nor the least certain one
        (array([[0.25, 1.2 , 3.2 ]]), array([1]))
    """

    name: ClassVar[str] = "bayes-gap"

    def __init__(
        self, mode: BetaMode = "fixed", beta: float = 2.0, *, decay: float = 0.5, tolerance: float = 0.0
    ) -> None:
        if mode not in get_args(BetaMode):
            raise InputError(f"the mode of beta is {mode!r}; choose {', '.join(get_args(BetaMode))}")
        if not 0.0 < beta < math.inf:
            raise InputError(f"beta is {beta!r}; expected a positive number")
        if not 0.0 < decay <= 1.0:
            raise InputError(f"decay is {decay!r}; expected a number in (0, 1]")
        if not 0.0 <= tolerance < math.inf:
            raise InputError(f"tolerance is {tolerance!r}; expected zero or more")
        self.mode = mode
        self.beta = beta
        self.decay = decay
        self.tolerance = tolerance

    def choose(self, posterior: ArmPosterior, situation: Situation, rng: np.random.Generator) -> IntArray:
        """See `Rule`; no random number is drawn."""
        del rng
        found = self.gaps(posterior, self.width(posterior, situation))
        variance, rows = posterior.spread, np.arange(posterior.situations)
        uncertain = variance[rows, found.arm]
        if posterior.plate is not None:
            uncertain = 0.5 * variances_of_differences(posterior)[rows, found.leader, found.challenger]
        known = uncertain <= KNOWN * situation.prior_variance.max(1)
        return np.where(known, variance.argmax(1), found.arm)

    def gaps(self, posterior: ArmPosterior, beta: FloatArray) -> Gaps:
        """Bounds, gaps and the two arms of which one is measured.

        Args:
            posterior: Of R situations.
            beta: Half width of intervals in standard deviations, R.
        """
        if posterior.plate is None:
            return gaps_of(posterior.mean, beta[:, None] * np.sqrt(posterior.variance))
        return gaps_of_differences(posterior, beta)

    def width(self, posterior: ArmPosterior, situation: Situation) -> FloatArray:
        """Beta in each situation, R; positive."""
        fixed = np.full(posterior.situations, self.beta)
        if self.mode == "fixed":
            return fixed
        if self.mode == "decay":
            return fixed * self.decay**situation.batch
        square = self._squared(posterior, situation)
        usable = (square > 0.0) & ~_noiseless(posterior, situation)
        return np.where(usable, np.sqrt(np.where(usable, square, 1.0)), self.beta)

    def remark(self, posterior: ArmPosterior, situation: Situation) -> str:
        """See `Rule`: whether the theory says nothing here."""
        if self.mode != "theory":
            return ""
        if _noiseless(posterior, situation).any():
            return (
                f"measurements have as good as no noise, for which the theory of BayesGap gives no width of intervals: "
                f"beta = {self.beta:g} is used instead"
            )
        if (self._squared(posterior, situation) <= 0.0).any():
            return (
                f"{situation.wells} wells for {posterior.arms} arms are too few for the theory of BayesGap, whose "
                f"beta^2 is negative: beta = {self.beta:g} is used instead"
            )
        return ""

    def _squared(self, posterior: ArmPosterior, situation: Situation) -> FloatArray:
        noise = np.maximum(posterior.noise.mean(1), 1e-300)
        smallest = SMALLEST_GAP * np.sqrt(noise)
        hardness = hardness_of(bounded_gaps(posterior), np.maximum(self.tolerance, smallest))
        precision = (1.0 / np.maximum(situation.prior_variance, 1e-300)).sum(1)
        found: FloatArray = ((situation.wells - posterior.arms) / noise + precision) / (4.0 * hardness)
        return found


class UGap:
    """As BayesGap, of independent arms by their means alone: half widths sqrt(a / N_k), a = (T - K) / (4 H).

    This is UGapEb (fixed budget) with Hoeffding's bound; the range of the values cancels. T counts all measurements,
    those made before among them. Arms that were never measured come first. On plates, means are less the estimated
    offsets of these, and N_k is what they are worth (`seqopt.strategies.arms.ArmPosterior.effective`).

    Args:
        tolerance: See `BayesGap`.

    Example:
        >>> posterior = ArmPosterior.of([0, 0], np.eye(2), 1.0, counts=[5, 2], averages=[1.0, 0.9])
        >>> UGap().choose(posterior, Situation(10, 0, 0, np.ones((1, 2))), np.random.default_rng(0))
        array([1])
    """

    name: ClassVar[str] = "ugap"

    def __init__(self, tolerance: float = 0.0) -> None:
        self.tolerance = tolerance

    def choose(self, posterior: ArmPosterior, situation: Situation, rng: np.random.Generator) -> IntArray:
        """See `Rule`; no random number is drawn."""
        del rng
        gaps = _gaps_of_averages(posterior)
        smallest = SMALLEST_GAP * np.sqrt(np.maximum(posterior.noise.mean(1), 1e-300))
        hardness = hardness_of(gaps, np.maximum(self.tolerance, smallest))
        a = np.maximum(_total(posterior, situation) - posterior.arms, 1) / (4.0 * hardness)
        half = np.sqrt(a[:, None] / _worth(posterior))
        return _unmeasured_first(posterior, gaps_of(_averages(posterior), half).arm)

    def remark(self, posterior: ArmPosterior, situation: Situation) -> str:
        """See `Rule`."""
        return _too_few(posterior, situation)


class UCBE:
    """Largest mean + sqrt(a / N_k), a = (25/36) (T - K) / H, H = sum_k D_k^-2, with gaps D as they are estimated now.

    T counts all measurements, those made before among them. Arms that were never measured come first. On plates, means
    are less the estimated offsets of these, and N_k is what they are worth: see `UGap`.

    Example:
        >>> posterior = ArmPosterior.of([0, 0], np.eye(2), 1.0, counts=[5, 1], averages=[1.0, 0.9])
        >>> UCBE().choose(posterior, Situation(10, 0, 0, np.ones((1, 2))), np.random.default_rng(0))
        array([1])
    """

    name: ClassVar[str] = "ucb-e"

    def choose(self, posterior: ArmPosterior, situation: Situation, rng: np.random.Generator) -> IntArray:
        """See `Rule`; no random number is drawn."""
        del rng
        smallest = SMALLEST_GAP * np.sqrt(np.maximum(posterior.noise.mean(1), 1e-300))
        gaps = np.maximum(_gaps_of_averages(posterior), smallest[:, None])
        left = np.maximum(_total(posterior, situation) - posterior.arms, 1)
        a = 25.0 / 36.0 * left / (gaps**-2).sum(1)
        index = _averages(posterior) + np.sqrt(a[:, None] / _worth(posterior))
        return _unmeasured_first(posterior, index.argmax(1))

    def remark(self, posterior: ArmPosterior, situation: Situation) -> str:
        """See `Rule`."""
        return _too_few(posterior, situation)


class EqualReplication:
    """The arm that was measured least often; of equal ones the one with the larger expected value.

    Example:
        >>> posterior = ArmPosterior.of([0, 1, 2], np.eye(3), 1.0, counts=[1, 1, 2])
        >>> EqualReplication().choose(posterior, Situation(10, 0, 0, np.ones((1, 3))), np.random.default_rng(0))
        array([1])
    """

    name: ClassVar[str] = "equal"

    def choose(self, posterior: ArmPosterior, situation: Situation, rng: np.random.Generator) -> IntArray:
        """See `Rule`; no random number is drawn."""
        del situation, rng
        least = posterior.counts == posterior.counts.min(1, keepdims=True)
        return np.where(least, posterior.mean, -math.inf).argmax(1)

    def remark(self, posterior: ArmPosterior, situation: Situation) -> str:
        """See `Rule`."""
        del posterior, situation
        return ""


class TopTwoThompson:
    """The best arm of a joint draw or, half of the time, the best of another draw in which it is another one.

    Where none of 24 further draws has another best arm, the one that is most likely to be better is taken: the
    smallest (m_i - m_k) / sd(g_i - g_k). Draws are from what is known, awaited measurements included.

    Args:
        share: How often the first one is measured.

    Raises:
        InputError: If the share is not in (0, 1).
    """

    name: ClassVar[str] = "top-two"

    def __init__(self, share: float = 0.5) -> None:
        if not 0.0 < share < 1.0:
            raise InputError(f"share is {share!r}; expected a number between 0 and 1")
        self.share = share

    def choose(self, posterior: ArmPosterior, situation: Situation, rng: np.random.Generator) -> IntArray:
        """See `Rule`."""
        del situation
        best = posterior.draws(1 + TRIES, rng).argmax(2)
        first = best[0]
        differs = best[1:] != first
        rows = np.arange(posterior.situations)
        second = np.where(differs.any(0), best[1 + differs.argmax(0), rows], closest_rival(posterior, first))
        return np.where(rng.random(posterior.situations) < self.share, first, second)

    def remark(self, posterior: ArmPosterior, situation: Situation) -> str:
        """See `Rule`."""
        del posterior, situation
        return ""


RULES: Mapping[str, Callable[[float], Rule]] = {
    "bayes-gap": lambda tolerance: BayesGap(tolerance=tolerance),
    "bayes-gap-theory": lambda tolerance: BayesGap("theory", tolerance=tolerance),
    "bayes-gap-decay": lambda tolerance: BayesGap("decay", 5.0, tolerance=tolerance),
    "top-two": lambda tolerance: TopTwoThompson(),
    "ugap": UGap,
    "ucb-e": lambda tolerance: UCBE(),
    "equal": lambda tolerance: EqualReplication(),
}
"""Rules by their names, made with a tolerance."""


def resolve_rule(rule: str | Rule, tolerance: float = 0.0) -> Rule:
    """A rule by its name.

    Raises:
        InputError: For an unknown name.

    Example:
        >>> resolve_rule("top-two").name
        'top-two'
    """
    if not isinstance(rule, str):
        return rule
    if rule not in RULES:
        raise InputError(f"there is no rule {rule!r}: choose {', '.join(RULES)}")
    return RULES[rule](tolerance)


def gaps_of(middle: FloatArray, half: FloatArray) -> Gaps:
    """Bounds, gaps and the two arms of which one is measured.

    Args:
        middle: Of the intervals, R x K.
        half: Their half widths, R x K.
    """
    lower, upper = middle - half, middle + half
    gap = _largest_other(upper) - lower
    leader = gap.argmin(1)
    rows = np.arange(len(middle))
    others = upper.copy()
    others[rows, leader] = -math.inf
    challenger = others.argmax(1)
    # Of equal ones the lower index, as everywhere.
    first, second = np.minimum(leader, challenger), np.maximum(leader, challenger)
    arm = np.where(half[rows, second] > half[rows, first], second, first)
    return Gaps(lower, upper, gap, leader, challenger, arm)


def gaps_of_differences(posterior: ArmPosterior, beta: FloatArray) -> Gaps:
    """Bounds, gaps and the two arms of which one is measured, by the differences of arms: see `BayesGap`.

    Args:
        posterior: Of R situations, on plates.
        beta: Half width of intervals of single arms in standard deviations, R.

    Example:
        >>> apart = [[9.01, 9.0, 9.0], [9.0, 9.01, 9.0], [9.0, 9.0, 9.01]]  # their level is not known, they are
        >>> posterior = ArmPosterior.of([1.0, 0.9, 0.0], apart, 0.01, plate=np.full((3, 3), 25.0))
        >>> found = gaps_of_differences(posterior, np.ones(1))
        >>> found.leader, found.challenger, found.gap.round(2)
        (array([0]), array([1]), array([[0.1, 0.3, 1.2]]))
    """
    ahead = _ahead(posterior, beta)
    rows, arms = np.arange(posterior.situations), np.arange(posterior.arms)
    besides = ahead.copy()
    besides[:, arms, arms] = -math.inf
    gap = besides.max(2)
    leader = gap.argmin(1)
    challenger = besides[rows, leader].argmax(1)
    first, second = np.minimum(leader, challenger), np.maximum(leader, challenger)
    crossed = posterior.covariance if posterior.crossed is None else posterior.crossed
    outcome = posterior.covariance if posterior.outcome_covariance is None else posterior.outcome_covariance

    def told(arm: IntArray) -> FloatArray:
        """By how much a well of an arm lowers the variance of the difference."""
        between = crossed[rows, leader, arm] - crossed[rows, challenger, arm]
        total = outcome[rows, arm, arm] + posterior.noise[rows, arm]
        found: FloatArray = np.where(total > 0.0, between**2 / np.where(total > 0.0, total, 1.0), 0.0)
        return found

    arm = np.where(told(second) > told(first), second, first)
    return Gaps(-ahead[rows, :, leader], ahead[rows, leader], gap, leader, challenger, arm)


def variances_of_differences(posterior: ArmPosterior) -> FloatArray:
    """S_ii + S_kk - 2 S_ik, R x K x K; rounding makes none negative."""
    variance = posterior.variance
    found: FloatArray = np.maximum(variance[:, :, None] + variance[:, None, :] - 2.0 * posterior.covariance, 0.0)
    return found


def _ahead(posterior: ArmPosterior, beta: FloatArray) -> FloatArray:
    """Upper bounds of how far arm i, in columns, is above arm k, in rows, R x K x K."""
    mean = posterior.mean
    half = beta[:, None, None] * np.sqrt(2.0 * variances_of_differences(posterior))
    found: FloatArray = mean[:, None, :] - mean[:, :, None] + half
    return found


def bounded_gaps(posterior: ArmPosterior) -> FloatArray:
    """Upper bounds on how far each arm is from the best of the others, by three standard deviations, R x K; positive.

    max(max_{i != k} u_i - l_k, u_k - max_{i != k} l_i): the second term is that of a leader. On plates, u_i - l_k is
    the upper bound of g_i - g_k, three times the square root of 2 standard deviations of that above its mean.
    """
    if posterior.plate is not None:
        ahead = _ahead(posterior, np.full(posterior.situations, 3.0))  # [k, i]: of g_i - g_k
        others = ~np.eye(posterior.arms, dtype=np.bool_)
        behind = np.where(others, ahead.swapaxes(1, 2), math.inf).min(2)
        found: FloatArray = np.maximum(np.where(others, ahead, -math.inf).max(2), behind)
        return found
    half = 3.0 * np.sqrt(posterior.variance)
    lower, upper = posterior.mean - half, posterior.mean + half
    return np.maximum(_largest_other(upper) - lower, upper - _largest_other(lower))


def hardness_of(gaps: FloatArray, tolerance: FloatArray | float) -> FloatArray:
    """H = sum_k max((D_k + e)/2, e)^-2 of gaps D, R x K, and a tolerance e > 0 for each situation: R.

    Example:
        >>> hardness_of(np.array([[0.5, 0.5, 1.0]]), 0.1).round(4)
        array([25.528])
    """
    e = np.broadcast_to(np.asarray(tolerance, dtype=np.float64), gaps.shape[:1])[:, None]
    found: FloatArray = (np.maximum(0.5 * (gaps + e), e) ** -2.0).sum(1)
    return found


def closest_rival(posterior: ArmPosterior, arms: IntArray) -> IntArray:
    """For one arm of each situation, the other one that is most likely to be better than it, R."""
    rows = np.arange(posterior.situations)
    variance = posterior.variance
    between = variance + variance[rows, arms][:, None] - 2.0 * posterior.covariance[rows, :, arms]
    ahead = posterior.mean[rows, arms][:, None] - posterior.mean
    score = ahead / np.sqrt(np.maximum(between, 1e-300))
    score[rows, arms] = math.inf
    return score.argmin(1)


def _largest_other(values: FloatArray) -> FloatArray:
    """For each column the largest value of the others, R x K."""
    order = np.partition(values, -2, axis=1)
    found: FloatArray = np.repeat(order[:, -1:], values.shape[1], axis=1)
    found[np.arange(len(values)), values.argmax(1)] = order[:, -2]
    return found


def _noiseless(posterior: ArmPosterior, situation: Situation) -> Any:
    return posterior.noise.min(1) <= NOISELESS * situation.prior_variance.max(1)


def _total(posterior: ArmPosterior, situation: Situation) -> IntArray:
    """All measurements that there will be, those made before the beginning among them."""
    total: IntArray = posterior.counts.sum(1) + situation.wells - situation.used
    return total


def _averages(posterior: ArmPosterior) -> FloatArray:
    """Means of the measurements; of an arm without any the least one, which does not count."""
    known = posterior.averages
    least = np.where(np.isnan(known), math.inf, known).min(1, keepdims=True)
    return np.where(np.isnan(known), np.where(np.isfinite(least), least, 0.0), known)


def _worth(posterior: ArmPosterior) -> FloatArray:
    """N_k, R x K; of an arm that was not measured 1, which does not count."""
    found: FloatArray = np.where(posterior.counts > 0, posterior.effective, 1.0)
    return found


def _gaps_of_averages(posterior: ArmPosterior) -> FloatArray:
    averages = _averages(posterior)
    return np.abs(_largest_other(averages) - averages)


def _unmeasured_first(posterior: ArmPosterior, chosen: IntArray) -> IntArray:
    missing = posterior.counts == 0
    return np.where(missing.any(1), missing.argmax(1), chosen)


def _too_few(posterior: ArmPosterior, situation: Situation) -> str:
    missing = int((posterior.counts == 0).sum(1).max())
    left = situation.wells - situation.used
    if left >= missing:
        return ""
    return (
        f"{missing} arms were never measured and only {left} wells are left: this rule knows "
        "nothing of an arm without a measurement. Choose bayes-gap or top-two, which know what the model expects"
    )
