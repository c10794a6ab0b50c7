r"""Batches of strings that are good and unlike each other: a determinantal point process.

A batch B has the probability det(L_B) up to a constant, with :math:`L_{ij} = q_i S_{ij} q_j`, qualities q and
similarities S. The most probable batch is looked for greedily: the next member has the largest

.. math:: \log q_i + \tfrac12 \log\left(S_{ii} - S_{iB} S_{BB}^{-1} S_{Bi}\right).

References:
    Kulesza, A. and Taskar, B. (2012). Determinantal point processes for machine learning. Foundations and Trends in
        Machine Learning 5, 123-286.
    Chen, L., Zhang, G. and Zhou, E. (2018). Fast greedy MAP inference for determinantal point process. NeurIPS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg
from gpytorch.kernels import Kernel

from seqopt.encoding import StringEncoder
from seqopt.models.classifiers import Predictor, log_probability
from seqopt.models.covariance import KernelEvaluator
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray
from seqopt.spaces import PoolSpace, keys_at

JITTER = 1e-8
"""Of the similarities of chosen strings, which may be all but equal."""

LEAST_LEFT = 1e-12
"""Of a string's variance given those chosen; its logarithm is taken."""


class DiverseScoring:
    """Scores of one step by probability of a label and distance from the batch; implements `seqopt.scorers.Scoring`.

    Args:
        predictor: A fitted classifier; its probabilities are the qualities.
        kernel: Similarities, 1 of a string with itself.
        encoder: Of strings, for the kernel.
        strings: Keys of the strings that were evaluated.
        unsupported: What the classifier cannot take.
        pending: Keys of strings whose results are awaited: members of the batch.
        rng: Orders equal scores.
    """

    def __init__(
        self,
        predictor: Predictor,
        kernel: Kernel,
        encoder: StringEncoder,
        *,
        strings: Sequence[str],
        unsupported: Callable[[Sequence[str]], dict[int, str]],
        pending: Sequence[str] = (),
        rng: np.random.Generator,
    ) -> None:
        self.predictor = predictor
        self.strings = list(dict.fromkeys(strings))
        self.members = list(dict.fromkeys(pending))
        self._kernel = kernel
        self._encoder = encoder
        self._unsupported = unsupported
        self._rng = rng

    def incumbents(self, count: int) -> list[str]:
        """The evaluated strings of largest logit."""
        order = np.argsort(-self.predictor.logits(self.strings), kind="stable")
        return [self.strings[int(place)] for place in order[:count]]

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """What the classifier cannot take."""
        return self._unsupported(keys)

    def scorer(self, sample: Sequence[str]) -> DiverseScorer:
        """A scorer of any strings; ``sample`` is not needed."""
        return DiverseScorer(self.predictor, self._kernel, self._encoder, self.members)

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> DiversePoolScorer:
        """A scorer of the candidates of a pool."""
        keys = keys_at(pool, indices)
        return self.sample_scorer(keys)

    def sample_scorer(self, keys: Sequence[str]) -> DiversePoolScorer:
        """A scorer of strings that were drawn for this step."""
        return DiversePoolScorer(self.scorer(keys), keys, self._rng)


class DiverseScorer:
    """Scores of any strings, see the module; implements `seqopt.scorers.Scorer`.

    Args:
        predictor: A fitted classifier.
        kernel: Similarities.
        encoder: Of strings.
        members: Keys of the strings chosen so far.
    """

    def __init__(self, predictor: Predictor, kernel: Kernel, encoder: StringEncoder, members: Sequence[str]) -> None:
        self._predictor = predictor
        self._kernel = kernel
        self._encoder = encoder
        self._members = list(members)

    def scores(self, keys: Sequence[str]) -> FloatArray:
        """Log q + log(left) / 2 of each string."""
        logits = checked_scores(self._predictor.logits(list(keys)), len(keys), type(self._predictor).__name__)
        if not self._members or not len(keys):
            return log_probability(logits)
        rows, members = self._encoder.encode(list(keys)), self._encoder.encode(self._members)
        evaluator = KernelEvaluator(self._kernel, rows.width)
        own = evaluator.self_similarity(rows), evaluator.self_similarity(members)
        shared = np.asarray(evaluator.cross(rows, members, own[0], own[1]), dtype=np.float64)
        among = np.asarray(evaluator.cross(members, None, own[1]), dtype=np.float64)
        lower = np.linalg.cholesky(0.5 * (among + among.T) + JITTER * np.eye(len(among)))
        explained = scipy.linalg.solve_triangular(lower, shared.T, lower=True)
        left = np.maximum(1.0 - (explained**2).sum(axis=0), LEAST_LEFT)
        return np.asarray(log_probability(logits) + 0.5 * np.log(left), dtype=np.float64)

    def choose(self, key: str) -> Choice:
        """Put a string into the batch."""
        score = float(self.scores([key])[0])
        self._members.append(key)
        return Choice(key, score)


class DiversePoolScorer:
    """Scores of a list of candidates; implements `seqopt.scorers.PoolScorer`.

    Args:
        scorer: Of any strings.
        keys: Of the candidates.
        rng: Orders equal scores.
    """

    def __init__(self, scorer: DiverseScorer, keys: Sequence[str], rng: np.random.Generator) -> None:
        self._scorer = scorer
        self._keys = keys
        self._order = rng.permutation(len(keys))
        self._scores: FloatArray | None = None

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        if self._scores is None:
            self._scores = self._scorer.scores(self._keys)
        scores = np.where(allowed, self._scores, -np.inf)
        indices = np.lexsort((self._order, -scores))[:count]
        indices = indices[scores[indices] > -np.inf].astype(np.int64)
        return indices, scores[indices]

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        choice = self._scorer.choose(self._keys[index])
        self._scores = None
        return choice
