r"""Gaussian processes whose kernel is a product of finitely many features, and exact draws of whole functions of them.

With features :math:`\phi(s)` in m dimensions, f(s) = phi(s)^T w and w ~ N(0, v I), f is a Gaussian process with the
kernel v phi(a)^T phi(b). A draw of f is a draw of w, and its values at N strings are one product, however many they
are: no covariance of N strings is needed. Given n values y with noise variance e, w is distributed as

.. math:: N(A^{-1} \Phi^T y, e A^{-1}), \qquad A = \Phi^T \Phi + (e / v) I,

and without any m x m matrix, which for fingerprints would cost more than all else, by Matheron's rule: of
w_0 ~ N(0, v I) and u ~ N(0, e I),

.. math:: w = w_0 + v \Phi^T (v \Phi \Phi^T + e I)^{-1} (y - \Phi w_0 - u)

has that distribution, exactly: O(n^3) once, and O(n (n + m)) a draw.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, sections 2.1 and 5.4.
    Shahriari, B. (2016). Practical Bayesian optimization with application to tuning machine learning algorithms. PhD
        thesis, University of British Columbia, appendix B.
    Wilson, J. et al. (2020). Efficiently sampling functions from Gaussian process posteriors. ICML (Matheron's rule).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import linalg, optimize, sparse

from seqopt.encoding import Encoder, FeatureEncoder, MorganFingerprint, StringEncoder
from seqopt.encoding.features import FeatureMatrix
from seqopt.errors import InputError, ModelError
from seqopt.kernels.ngrams import ngram_counts
from seqopt.models.checks import checked_noise, checked_values, differ
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]

BLOCK = 1 << 15
"""Strings whose features are turned to float64 at a time: some 20 MB of fingerprints."""

SCALE_PRIOR, NOISE_PRIOR = (0.0, 1.0), (-4.0, 1.0)
"""Means and standard deviations of the logarithms of v and e for standardised values, as of a `StringGP`."""

STARTS = (-4.0, -1.0)
"""Logarithms of the noise from which a fit begins: values that are nearly exact, and such that are not."""


@runtime_checkable
class FeatureMap(Protocol):
    """From strings to rows of finitely many features, of which a product is the kernel."""

    def fit(self, keys: Sequence[str]) -> None:
        """See all strings that there are before their features are asked for."""
        ...

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """Why strings have no features, by their places."""
        ...

    def __call__(self, keys: Sequence[str]) -> FeatureMatrix:
        """Features, n x m, dense or sparse; rows are scaled to length 1 by whoever uses them."""
        ...


class FingerprintMap(Configurable):
    """Bits of Morgan fingerprints of molecules: the cosine similarity of fingerprints.

    Args:
        radius: Of the environments, in bonds.
        size: Number of bits, m.

    Example:
        >>> FingerprintMap(size=256)(["CCO", "CCN"]).shape
        (2, 256)
    """

    def __init__(self, radius: int = 2, size: int = 2048) -> None:
        self.radius, self.size = radius, size
        self._encoder = FeatureEncoder(MorganFingerprint(radius=radius, size=size))

    def fit(self, keys: Sequence[str]) -> None:
        """Nothing has to be seen before."""

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """Those that are no molecules."""
        return self._encoder.unsupported(keys)

    def __call__(self, keys: Sequence[str]) -> FeatureMatrix:
        """See `FeatureMap`."""
        return self._encoder.encode(keys).values


class NgramMap(Configurable):
    """Counts of the contiguous n-grams of 1 to ``longest`` symbols that the strings of a pool have.

    Args:
        longest: Length of the longest n-grams.
        encoder: Splits strings into symbols. Default: characters.

    Raises:
        ModelError: When called before `fit`.
        InputError: For ``longest`` below 1.

    Example:
        >>> features = NgramMap(2)
        >>> features.fit(["aab", "b"])
        >>> features(["b", "bb"]).toarray().tolist()
        [[0.0, 1.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]
    """

    def __init__(self, longest: int = 4, encoder: StringEncoder | None = None) -> None:
        if isinstance(longest, bool) or not isinstance(longest, int) or longest < 1:
            raise InputError(f"longest is {longest!r}; expected an integer of at least 1")
        self.longest, self.encoder = longest, encoder
        self._encoder: Any = Encoder("characters") if encoder is None else encoder
        self._places: dict[tuple[int, ...], int] | None = None

    def fit(self, keys: Sequence[str]) -> None:
        """Number the n-grams of a pool; others, of strings that are measured besides, do not count."""
        _, found = ngram_counts(self._encoder.encode(keys), self.longest)
        self._places = {ngram: place for place, ngram in enumerate(found)}

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """There are none."""
        return {}

    def __call__(self, keys: Sequence[str]) -> FeatureMatrix:
        """See `FeatureMap`."""
        if self._places is None:
            raise ModelError("the n-grams of these strings are not numbered yet: call fit(keys)")
        counts, found = ngram_counts(self._encoder.encode(keys), self.longest)
        places = np.array([self._places.get(ngram, -1) for ngram in found], dtype=np.int64)
        known = np.flatnonzero(places >= 0)
        counts = counts[:, known].tocoo()
        shape = len(keys), len(self._places)
        return sparse.csr_array((counts.data, (counts.row, places[known][counts.col])), shape=shape)


class WeightSpaceGP:
    """A Gaussian process with the kernel of finitely many features, in weight space.

    Values are standardised; v and e have the log-normal priors of `seqopt.models.StringGP` and are fitted by maximum a
    posteriori marginal likelihood, which costs one eigendecomposition of an n x n matrix. The mean is constant: that of
    the values.

    Args:
        features: Features of the n strings, n x m. Rows are scaled to length 1; rows of zeros stay so.
        values: n finite values, larger is better.
        noise_variance: Known variance of the noise of each value, 0 where unknown, in the values' units squared;
            it adds to e, which all values share. While e is fitted, each value counts as having the mean of them.

    Raises:
        InputError: If there are fewer than two values, or numbers differ.

    Example:
        >>> process = WeightSpaceGP(np.eye(3), np.array([1.0, 2.0, 4.0]))
        >>> draws = process.values(np.eye(3), process.draw(2, np.random.default_rng(0)))
        >>> draws.shape
        (3, 2)
    """

    def __init__(
        self, features: FeatureMatrix, values: npt.ArrayLike, noise_variance: npt.ArrayLike | None = None
    ) -> None:
        strings = [""] * features.shape[0]
        targets = checked_values(strings, values)
        known = checked_noise(strings, noise_variance)
        spread = float(targets.std(ddof=1)) if differ(targets) else 0.0
        self.offset, self.unit = float(targets.mean()), spread or 1.0
        self._features = scaled(features)
        self._targets = (targets - self.offset) / self.unit
        gram = self._features @ self._features.T
        self._gram: FloatArray = np.asarray(gram.toarray() if sparse.issparse(gram) else gram, dtype=np.float64)
        known = known / self.unit**2
        self.scale, self.noise = 1.0, math.exp(NOISE_PRIOR[0])
        if spread > 0.0:
            self.scale, self.noise = self._fitted(float(known.mean()))
        self._noise_of = self.noise + known
        covariance = self.scale * self._gram + np.diag(self._noise_of)
        self._factor = linalg.cho_factor(covariance, lower=True)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """V and e, for standardised values."""
        return {"outputscale": self.scale, "noise_variance": self.noise}

    def mean(self) -> FloatArray:
        """The posterior mean of the weights, m."""
        return self.scale * (self._features.T @ linalg.cho_solve(self._factor, self._targets))

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` draws of the weights from their posterior, m x n, for standardised values.

        Args:
            n: How many.
            rng: The only source of randomness.
        """
        prior = math.sqrt(self.scale) * rng.standard_normal((self._features.shape[1], n))
        noise = np.sqrt(self._noise_of)[:, None] * rng.standard_normal((len(self._targets), n))
        rest = self._targets[:, None] - self._features @ prior - noise
        found: FloatArray = prior + self.scale * (self._features.T @ linalg.cho_solve(self._factor, rest))
        return found

    def values(self, features: FeatureMatrix, weights: FloatArray) -> FloatArray:
        """Values of functions at N strings, N x n, in the values' units: one product, in blocks.

        Args:
            features: Features of the strings, N x m.
            weights: Of the functions, m x n.
        """
        count = features.shape[0]
        found = np.empty((count, weights.shape[1]))
        for start in range(0, count, BLOCK):
            found[start : start + BLOCK] = scaled(features[start : start + BLOCK]) @ weights
        return self.offset + self.unit * found

    def predict(self, features: FeatureMatrix) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and noiseless standard deviation at k strings, in the values' units.

        Args:
            features: Features of the strings, k x m.
        """
        rows = scaled(features)
        product = rows @ self._features.T
        cross = self.scale * np.asarray(product.toarray() if sparse.issparse(product) else product)
        mean = cross @ linalg.cho_solve(self._factor, self._targets)
        lost = np.square(linalg.solve_triangular(self._factor[0], cross.T, lower=True)).sum(0)
        squares = rows.multiply(rows) if sparse.issparse(rows) else np.square(rows)
        variance = self.scale * np.asarray(squares.sum(axis=1)).reshape(-1) - lost
        return self.offset + self.unit * mean, self.unit * np.sqrt(np.maximum(variance, 0.0))

    def _fitted(self, least: float) -> tuple[float, float]:
        """V and e of the largest posterior density."""
        eigenvalues, vectors = linalg.eigh(self._gram)
        eigenvalues = np.maximum(eigenvalues, 0.0)
        squares = np.square(vectors.T @ self._targets)

        def loss(logarithms: FloatArray) -> tuple[float, FloatArray]:
            scale, noise = np.exp(logarithms)
            spectrum = scale * eigenvalues + noise + least
            value = 0.5 * float(np.sum(squares / spectrum + np.log(spectrum)))
            slopes = 0.5 * (1.0 / spectrum - squares / spectrum**2)
            gradient = np.array([scale * float(slopes @ eigenvalues), noise * float(slopes.sum())])
            for place, (centre, width) in enumerate((SCALE_PRIOR, NOISE_PRIOR)):
                distance = float(logarithms[place] - centre) / width
                value += 0.5 * distance**2
                gradient[place] += distance / width
            return value, gradient

        bounds = [(-6.0, 6.0), (-12.0, 3.0)]
        # As far as numbers go: where it ends shall not depend on how the same products were rounded.
        options = {"ftol": 0.0, "gtol": 1e-9}
        found = min(
            (
                optimize.minimize(
                    loss, np.array([0.0, start]), method="L-BFGS-B", jac=True, bounds=bounds, options=options
                )
                for start in STARTS
            ),
            key=lambda one: float(one.fun),
        )
        scale, noise = np.exp(found.x)
        return float(scale), float(noise)


def scaled(features: FeatureMatrix) -> Any:
    """Rows in float64, each divided by its length; rows of zeros stay so.

    Example:
        >>> scaled(np.array([[3, 4], [0, 0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """
    if not sparse.issparse(features):
        rows = np.asarray(features, dtype=np.float64)
        lengths = np.sqrt(np.square(rows).sum(1, keepdims=True))
        return rows / np.where(lengths > 0.0, lengths, 1.0)
    rows = sparse.csr_array(features, dtype=np.float64)
    counts = np.diff(rows.indptr)
    squares = np.bincount(np.repeat(np.arange(rows.shape[0]), counts), np.square(rows.data), rows.shape[0])
    lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    return sparse.csr_array((rows.data / np.repeat(lengths, counts), rows.indices, rows.indptr), shape=rows.shape)
