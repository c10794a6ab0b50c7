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

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg
from gpytorch.kernels import Kernel

from seqopt.encoding import EncodedStrings, StringEncoder
from seqopt.encoding.held import HeldStrings
from seqopt.models.classifiers import Predictor, log_probability
from seqopt.models.covariance import KernelEvaluator
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.held_pool import held_keys
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray
from seqopt.spaces import PoolSpace

BLOCK = 1000
"""Strings whose logits are computed at once."""

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
        keys = held_keys(pool, indices)
        rows = None
        if self._encoder is pool.encoder:  # it has encoded all of them once
            rows = pool.encoded if indices is None else pool.encoded.take(indices)
        return DiversePoolScorer(self.scorer(keys), keys, self._rng, rows)

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

    The classifier is asked once, and each member of the batch costs one column of similarities: of N candidates, O(k N)
    for the k-th member, and k N numbers in memory.

    Args:
        scorer: Of any strings, with the members so far.
        keys: Of the candidates.
        rng: Orders equal scores.
        rows: The candidates as the scorer's encoder encodes them, where they are at hand.
    """

    def __init__(
        self,
        scorer: DiverseScorer,
        keys: Sequence[str],
        rng: np.random.Generator,
        rows: EncodedStrings | None = None,
    ) -> None:
        self._scorer = scorer
        self._keys = keys
        self._rows = rows
        self._order = rng.permutation(len(keys))
        self._columns: _Columns | None = None

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        scores = np.where(allowed, self._current().scores, -np.inf)
        indices = np.lexsort((self._order, -scores))[:count]
        indices = indices[scores[indices] > -np.inf].astype(np.int64)
        return indices, scores[indices]

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        columns = self._current()
        choice = Choice(self._keys[index], float(columns.scores[index]))
        self._scorer._members.append(choice.key)
        columns.add(choice.key)
        return choice

    def _current(self) -> _Columns:
        if self._columns is None:
            self._columns = _Columns(self._scorer, self._keys, self._rows)
        return self._columns


class _Columns:
    """Scores of candidates, and what is needed to know them when one string more is a member.

    Row k of the Cholesky factor of the similarities of members and candidates: what member k explains of each
    candidate that those before it do not.
    """

    def __init__(self, scorer: DiverseScorer, keys: Sequence[str], rows: EncodedStrings | None) -> None:
        self._scorer = scorer
        predictor, name = scorer._predictor, type(scorer._predictor).__name__
        held = keys if isinstance(keys, HeldStrings) else HeldStrings(keys)
        parts = [
            checked_scores(predictor.logits(part), len(part), name)
            for part in (held[start : start + BLOCK] for start in range(0, len(keys), BLOCK))
        ]
        self._quality = log_probability(np.concatenate(parts)) if parts else np.empty(0)
        self._left = np.ones(len(keys))
        self._members: list[str] = []
        self._factor: list[FloatArray] = []
        self._among = np.empty((0, 0))
        self._rows = scorer._encoder.encode(list(keys)) if rows is None else rows
        self._evaluator = KernelEvaluator(scorer._kernel, self._rows.width)
        self._own = self._evaluator.self_similarity(self._rows)
        for key in scorer._members:
            self.add(key)

    @property
    def scores(self) -> FloatArray:
        """Log q + log(left) / 2."""
        left = np.log(np.maximum(self._left, LEAST_LEFT))
        return np.asarray(self._quality + 0.5 * left, dtype=np.float64)

    def add(self, key: str) -> None:
        """One string more is a member."""
        if not len(self._left):
            return
        encode, evaluator = self._scorer._encoder.encode, self._evaluator
        row = encode([key])
        own = evaluator.self_similarity(row)
        column = np.asarray(evaluator.cross(self._rows, row, self._own, own), dtype=np.float64)[:, 0]
        explained = np.empty(0)
        if self._members:
            members = encode(self._members)
            shared = evaluator.cross(members, row, evaluator.self_similarity(members), own)
            explained = scipy.linalg.solve_triangular(self._among, np.asarray(shared, dtype=np.float64), lower=True)[
                :, 0
            ]
        rest = math.sqrt(max(1.0 + JITTER - float(np.square(explained).sum()), LEAST_LEFT))
        for share, known in zip(explained.tolist(), self._factor, strict=True):
            column -= share * known
        column /= rest
        self._left -= column**2
        self._factor.append(column)
        size = len(self._members)
        among = np.zeros((size + 1, size + 1))
        among[:size, :size], among[size, :size], among[size, size] = self._among, explained, rest
        self._among = among
        self._members.append(key)
