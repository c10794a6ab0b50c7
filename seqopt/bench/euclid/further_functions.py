"""Functions of the papers on learning parameters, on portfolios and on search without a box; to be maximised.

What active learning is measured on has no optimum here. Values of noise are standard deviations in the papers.

References:
    Hvarfner, C. et al. (2023). Self-correcting Bayesian optimization through Bayesian active learning. NeurIPS.
    Gramacy, R. B., Lee, H. K. H. (2012). Cases for the nugget in modeling computer experiments. Stat. Comput. 22.
    Higdon, D. (2002). Space and space-time modeling using process convolutions. Quantitative Methods for Current
        Environmental Issues.
    Ishigami, T., Homma, T. (1990). An importance quantification technique in uncertainty analysis for computer models.
    Picheny, V., Wagner, T., Ginsbourger, D. (2013). A benchmark of kriging-based infill criteria for noisy
        optimization. Struct. Multidiscip. Optim. 48 (Hartmann-4).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from seqopt.bench.euclid.fourier import FourierDraw
from seqopt.bench.euclid.functions import A6, ALPHA, P6, PROBLEMS, Problem, branin, hartmann3, hartmann6

FloatArray = npt.NDArray[np.float64]


def gramacy1(x: FloatArray) -> FloatArray:
    """sin(10 pi x) / (2 x) + (x - 1)^4.

    Example:
        >>> gramacy1(np.array([[1.0], [2.0]])).round(6).tolist()
        [-0.0, 1.0]
    """
    x1 = x[:, 0]
    found: FloatArray = np.sin(10.0 * np.pi * x1) / (2.0 * x1) + (x1 - 1.0) ** 4
    return found


def gramacy2(x: FloatArray) -> FloatArray:
    """x_1 exp(- x_1^2 - x_2^2)."""
    found: FloatArray = x[:, 0] * np.exp(-(x**2).sum(-1))
    return found


def higdon(x: FloatArray) -> FloatArray:
    """sin(pi x / 5) + 0.2 cos(4 pi x / 5) below 10, x / 10 - 1 from there on."""
    x1 = x[:, 0]
    return np.where(x1 < 10.0, np.sin(np.pi * x1 / 5.0) + 0.2 * np.cos(4.0 * np.pi * x1 / 5.0), x1 / 10.0 - 1.0)


def ishigami(x: FloatArray) -> FloatArray:
    """Sin x_1 + 7 sin^2 x_2 + 0.1 x_3^4 sin x_1."""
    x1, x2, x3 = x.T
    found: FloatArray = np.sin(x1) + 7.0 * np.sin(x2) ** 2 + 0.1 * x3**4 * np.sin(x1)
    return found


def hartmann4(x: FloatArray) -> FloatArray:
    """(1.1 - sum_i alpha_i exp(- sum_j A_ij (x_j - P_ij)^2)) / 0.839, with the first four columns of Hartmann-6."""
    inner = (A6[:, :4] * (x[:, None, :] - P6[:, :4]) ** 2).sum(-1)
    found: FloatArray = (1.1 - (ALPHA * np.exp(-inner)).sum(-1)) / 0.839
    return found


def rosenbrock(x: FloatArray) -> FloatArray:
    """sum_i 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2, in any number of variables."""
    found: FloatArray = (100.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1.0 - x[:, :-1]) ** 2).sum(-1)
    return found


_UNIT = (0.0, 1.0)
_BRANIN = ((-5.0, 10.0), (0.0, 15.0))

FURTHER: dict[str, Problem] = {
    "gramacy1": Problem("Gramacy-1", ((0.5, 2.5),), lambda x, _: -gramacy1(x), math.nan, noise=(0.1**2,), exact=False),
    "higdon": Problem("Higdon", ((0.0, 20.0),), lambda x, _: higdon(x), math.nan, noise=(0.1**2,), exact=False),
    "gramacy2": Problem(
        "Gramacy-2", ((-2.0, 6.0),) * 2, lambda x, _: gramacy2(x), math.nan, noise=(0.05**2,), exact=False
    ),
    "branin-learned": Problem("Branin", _BRANIN, lambda x, z: -branin(x, z), math.nan, noise=(11.32**2,), exact=False),
    "ishigami": Problem(
        "Ishigami", ((-np.pi, np.pi),) * 3, lambda x, _: ishigami(x), math.nan, noise=(0.187**2,), exact=False
    ),
    "hartmann6-learned": Problem(
        "Hartmann-6", (_UNIT,) * 6, lambda x, z: -hartmann6(x, z), math.nan, noise=(0.0192**2,), exact=False
    ),
    "branin-noisy": Problem(
        "Branin", _BRANIN, lambda x, z: -branin(x, z), PROBLEMS["branin"].optimum, noise=(0.25,), exact=False
    ),
    "rosenbrock2-noisy": Problem(
        "Rosenbrock-2", ((-1.5, 1.5),) * 2, lambda x, _: -rosenbrock(x), 0.0, noise=(2.5**2,), exact=False
    ),
    "rosenbrock4-noisy": Problem(
        "Rosenbrock-4", ((-1.5, 1.5),) * 4, lambda x, _: -rosenbrock(x), 0.0, noise=(2.5**2,), exact=False
    ),
    "hartmann3-noisy": Problem(
        "Hartmann-3", (_UNIT,) * 3, lambda x, z: -hartmann3(x, z), 3.862779787, noise=(0.25,), exact=False
    ),
    "hartmann4-noisy": Problem(
        "Hartmann-4", (_UNIT,) * 4, lambda x, _: -hartmann4(x), 3.134493908, noise=(0.25,), exact=False
    ),
    "hartmann6-noise": Problem(
        "Hartmann-6", (_UNIT,) * 6, lambda x, z: -hartmann6(x, z), 3.322368011, noise=(0.25,), exact=False
    ),
    "branin-exact": Problem("Branin", _BRANIN, lambda x, z: -branin(x, z), PROBLEMS["branin"].optimum, exact=False),
    "hartmann3-exact": Problem("Hartmann-3", (_UNIT,) * 3, lambda x, z: -hartmann3(x, z), 3.862779787, exact=False),
    "hartmann6-exact": Problem("Hartmann-6", (_UNIT,) * 6, lambda x, z: -hartmann6(x, z), 3.322368011, exact=False),
}
"""By name."""

SAMPLE_LENGTHS = (0.1, 0.313, 0.313, 1.0, 1.0, 31.3, 31.3, 31.3)
"""Length scales of the samples in eight variables."""

SAMPLE_NOISE = 0.31
SAMPLE_FEATURES = 2_048
LOOKED_AT = 1 << 13
"""Points among which the largest value of a sample is looked for; it is refined from the best of them."""


def sample_in_eight(seed: int) -> Problem:
    """A function drawn from a Gaussian process of the unit cube with the Matern kernel, nu = 5/2, three variables of
    which hardly matter; its optimum is the best that random search and a local one find.
    """
    rng = np.random.default_rng([seed, 8])
    draw = FourierDraw.prior(np.array(SAMPLE_LENGTHS), 1.0, SAMPLE_FEATURES, rng)
    points = rng.random((LOOKED_AT, 8))
    best = points[np.argsort(-draw(points))[:8]]
    for spread in (0.1, 0.03, 0.01, 0.003):
        near = np.clip(best[:, None] + spread * rng.standard_normal((8, 200, 8)), 0.0, 1.0).reshape(-1, 8)
        both = np.concatenate([best, near])
        best = both[np.argsort(-draw(both))[:8]]
    return Problem(
        "sample in 8 variables",
        (_UNIT,) * 8,
        lambda x, _: draw(x),
        float(draw(best).max()),
        noise=(SAMPLE_NOISE**2,),
        exact=False,
    )
