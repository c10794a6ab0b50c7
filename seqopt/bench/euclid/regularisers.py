r"""What holds a search back that has no box: prior means that fall with the distance from one, and a box that grows.

With the centre c of a box and the lengths w of its sides,

.. math::

    \xi_Q(x) = \sum_j \left(\frac{x_j - c_j}{w_j}\right)^2, \qquad
    \xi_H(x) = \left(\frac{\max(\|x - c\| - R, 0)}{\beta R}\right)^2, \quad R = \tfrac12 \|w\|,

are subtracted from the prior mean. Box, radius and beta are fixed: the marginal likelihood would take them away.

References:
    Shahriari, B. (2016). Practical Bayesian optimization with application to tuning machine learning algorithms. PhD
        thesis, University of British Columbia, sections 6.1 to 6.4.
    Shahriari, B., Bouchard-Cote, A., de Freitas, N. (2016). Unbounded Bayesian optimization via regularization.
        AISTATS.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

GROWTH = 2.0
"""By what the volume of a box grows."""


def quadratic(x: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """xi_Q at points ``n x d``: 1/4 in the middle of a face of the box, d/4 in a corner.

    Example:
        >>> quadratic(np.array([[0.5, 1.0], [0.0, 1.0]]), np.zeros(2), np.ones(2)).tolist()
        [0.25, 0.5]
    """
    found: FloatArray = (((x - 0.5 * (low + high)) / (high - low)) ** 2).sum(-1)
    return found


def hinge(x: FloatArray, low: FloatArray, high: FloatArray, beta: float = 1.0) -> FloatArray:
    """xi_H at points ``n x d``: 0 in the ball about the box, 1 at (1 + beta) of its radius.

    Example:
        >>> hinge(np.array([[1.0], [1.5]]), np.zeros(1), np.ones(1)).tolist()
        [0.0, 1.0]
    """
    radius = 0.5 * float(np.linalg.norm(high - low))
    distance = np.linalg.norm(x - 0.5 * (low + high), axis=-1)
    found: FloatArray = (np.maximum(distance - radius, 0.0) / (beta * radius)) ** 2
    return found


def grown(low: FloatArray, high: FloatArray, evaluations: int) -> tuple[FloatArray, FloatArray]:
    """A box whose volume doubles every 3 d evaluations about the same centre: for the first time when 3 d initial
    points and 3 d others have been measured (the thesis can be read so that it is at the 3 d initial ones).

    Example:
        >>> low, high = grown(np.zeros(1), np.ones(1), 6)
        >>> low.tolist(), high.tolist()
        ([-0.5], [1.5])
    """
    d = len(low)
    doublings = max(evaluations // (3 * d) - 1, 0)
    half = 0.5 * (high - low) * GROWTH ** (doublings / d)
    centre = 0.5 * (low + high)
    return centre - half, centre + half
