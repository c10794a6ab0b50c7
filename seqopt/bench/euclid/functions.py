"""Synthetic functions of the thesis, to be maximised: minus what is printed there.

BoTorch's multi-fidelity functions of the same names are other problems, so these are written from the text, with
misprints put right: the matrices P of both Hartmann functions are in units of 1e-4, Shekel's beta in tenths, the last
side of Borehole's box ends at 12045, and the continuous Currin function is read so that its objective, at fidelity 1,
is the discrete one's (see `currin_continuous`).

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster University,
        appendices A.2.1, A.2.4, C.3.1 and C.3.2.
    Xiong, S., Qian, P. Z. G., Wu, C. F. J. (2013). Sequential design and analysis of high-accuracy and low-accuracy
        computer codes. Technometrics 55 (Currin and Borehole).
    Surjanovic, S., Bingham, D. Virtual library of simulation experiments (optima).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

TARGET = 0
"""The level that is the objective, where there are several."""


@dataclass(frozen=True)
class Problem:
    """A function on a box.

    Attributes:
        label: As tables name it.
        bounds: Ends of each side of the box.
        function: What is maximised, from points ``n x d`` in the units of the box and the fidelity of each, ``n``.
        optimum: Its largest value at the target.
        levels: The fidelities that there are, or nothing where every number in [0, 1] is one.
        target: The fidelity that is the objective.
        cost: Of a query at each fidelity.
        noise: Variance of the noise of a query at each level; of the only one where there is one.
        exact: Whether a model may take it as known that there is no noise, or how much there is.
    """

    label: str
    bounds: tuple[tuple[float, float], ...]
    function: Callable[[FloatArray, FloatArray], FloatArray]
    optimum: float
    levels: tuple[float, ...] | None = (0.0,)
    target: float = 0.0
    cost: Callable[[FloatArray], FloatArray] = np.ones_like
    noise: tuple[float, ...] = (0.0,)
    exact: bool = True

    @property
    def dim(self) -> int:
        """Number of variables."""
        return len(self.bounds)

    def scaled(self, unit: FloatArray) -> FloatArray:
        """Points of the unit cube, ``n x d``, in the units of the box."""
        low, high = np.array(self.bounds).T
        found: FloatArray = low + (high - low) * unit
        return found

    def value(self, unit: FloatArray, fidelity: FloatArray) -> FloatArray:
        """Noiseless values at points of the unit cube."""
        return self.function(self.scaled(unit), fidelity)

    def objective(self, unit: FloatArray) -> FloatArray:
        """Noiseless values at the target."""
        return self.value(unit, np.full(len(unit), self.target))

    def regret(self, unit: FloatArray) -> FloatArray:
        """What the objective lacks of its optimum."""
        return self.optimum - self.objective(unit)

    def measure(self, unit: FloatArray, fidelity: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Values with noise."""
        return self.value(unit, fidelity) + np.sqrt(self.noise_variance(fidelity)) * rng.standard_normal(len(unit))

    def noise_variance(self, fidelity: FloatArray) -> FloatArray:
        """Of a query at each fidelity."""
        if len(self.noise) == 1:
            return np.full(len(fidelity), self.noise[0])
        return np.array(self.noise)[fidelity.astype(np.int64)]


def forrester(x: FloatArray, level: FloatArray) -> FloatArray:
    """f(x, 0) = (6 x - 2)^2 sin(12 x - 4); lower levels scale and tilt it (A.2.1)."""
    x1 = x[:, 0]
    high = (6.0 * x1 - 2.0) ** 2 * np.sin(12.0 * x1 - 4.0)
    return np.select(
        [level == 0, level == 1, level == 2],
        [high, 0.75 * high + 3.0 * (x1 - 0.5) + 2.0, 0.5 * high + 5.0 * (x1 - 0.5) + 2.0],
        np.nan,
    )


def currin(x: FloatArray, level: FloatArray) -> FloatArray:
    """Currin's exponential function, and at level 1 its mean over the corners of a square of side 0.1 (A.2.1)."""
    low = np.mean(
        [
            _currin(x[:, 0] + a, np.maximum(0.0, x[:, 1] + b) if b < 0 else x[:, 1] + b)
            for a in (0.05, -0.05)
            for b in (0.05, -0.05)
        ],
        axis=0,
    )
    return np.select([level == 0, level == 1], [_currin(x[:, 0], x[:, 1]), low], np.nan)


def currin_continuous(x: FloatArray, z: FloatArray) -> FloatArray:
    """Currin's function with the bracket 1 - (1 - 0.1 (1 - z)) exp(-1 / (2 x_2)), which is our reading of A.2.4.

    As it is printed there, the exponential vanishes at z = 1, and the objective is another one than the discrete one's.
    """
    return _currin(x[:, 0], x[:, 1], 1.0 - 0.1 * (1.0 - z))


def _currin(x1: FloatArray, x2: FloatArray, share: FloatArray | float = 1.0) -> FloatArray:
    # At x2 = 0 the exponential is 0.
    decay = np.where(x2 > 0.0, np.exp(-0.5 / np.maximum(x2, 1e-12)), 0.0)
    top = 2300.0 * x1**3 + 1900.0 * x1**2 + 2092.0 * x1 + 60.0
    found: FloatArray = (1.0 - share * decay) * top / (100.0 * x1**3 + 500.0 * x1**2 + 4.0 * x1 + 20.0)
    return found


ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
ALPHA_STEP = np.array([0.01, -0.01, -0.1, 0.1])
"""What the heights of the four peaks change by from level to level."""

A3 = np.array([[3.0, 10.0, 30.0], [0.1, 10.0, 35.0]] * 2)
P3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
A6 = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann3(x: FloatArray, level: FloatArray) -> FloatArray:
    """- sum_i alpha_i(level) exp(- sum_j A_ij (x_j - P_ij)^2), in three variables (A.2.1)."""
    return _hartmann(x, level, A3, P3)


def hartmann6(x: FloatArray, level: FloatArray) -> FloatArray:
    """The same in six variables (A.2.1)."""
    return _hartmann(x, level, A6, P6)


def _hartmann(x: FloatArray, level: FloatArray, a: FloatArray, p: FloatArray) -> FloatArray:
    inner = (a * (x[:, None, :] - p) ** 2).sum(-1)
    heights = ALPHA + level[:, None] * ALPHA_STEP
    found: FloatArray = -(heights * np.exp(-inner)).sum(-1)
    return found


def borehole(x: FloatArray, level: FloatArray) -> FloatArray:
    """Flow of water through a borehole in m^3 a year (A.2.1); level 1 has 5 for 2 pi and 1.5 for 1."""
    r_w, r, t_u, h_u, t_l, h_l, length, k_w = x.T
    log_ratio = np.log(r / r_w)
    leak = 2.0 * length * t_u / (log_ratio * r_w**2 * k_w) + t_u / t_l
    flow = t_u * (h_u - h_l) / log_ratio
    return np.select([level == 0, level == 1], [2.0 * np.pi * flow / (1.0 + leak), 5.0 * flow / (1.5 + leak)], np.nan)


def branin(x: FloatArray, level: FloatArray) -> FloatArray:
    """(x_2 - 5.1 x_1^2 / (4 pi^2) + 5 x_1 / pi - 6)^2 + 10 (1 - 1 / (8 pi)) cos x_1 + 10."""
    x1, x2 = x.T
    inner = x2 - 5.1 * x1**2 / (4.0 * np.pi**2) + 5.0 * x1 / np.pi - 6.0
    found: FloatArray = inner**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x1) + 10.0
    return found


def rosenbrock(x: FloatArray, level: FloatArray) -> FloatArray:
    """(1 - x_1)^2 + 100 (x_2 - x_1^2)^2, and at level 1 plus 0.1 sin(10 x_1 + 5 x_2) (A.2.4)."""
    high = (1.0 - x[:, 0]) ** 2 + 100.0 * (x[:, 1] - x[:, 0] ** 2) ** 2
    return np.select([level == 0, level == 1], [high, high + 0.1 * np.sin(10.0 * x[:, 0] + 5.0 * x[:, 1])], np.nan)


BETA = 0.1 * np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5])
CENTRES = np.array(
    [
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
    ]
)


def shekel(x: FloatArray, level: FloatArray) -> FloatArray:
    """- sum_i 1 / (|x - A_i|^2 + beta_i), ten terms in four variables (C.3.1)."""
    squares = ((x[:, :, None] - CENTRES) ** 2).sum(1)
    found: FloatArray = -(1.0 / (squares + BETA)).sum(-1)
    return found


def ackley(x: FloatArray, level: FloatArray) -> FloatArray:
    """- 20 exp(-0.2 rms(x)) - exp(mean cos(2 pi x)) + 20 + e (C.3.1)."""
    rms = np.sqrt((x**2).mean(-1))
    found: FloatArray = -20.0 * np.exp(-0.2 * rms) - np.exp(np.cos(2.0 * np.pi * x).mean(-1)) + 20.0 + np.e
    return found


def _minus(function: Callable[[FloatArray, FloatArray], FloatArray]) -> Callable[[FloatArray, FloatArray], FloatArray]:
    return lambda x, fidelity: -function(x, fidelity)


def _costs(*costs: float) -> Callable[[FloatArray], FloatArray]:
    table = np.array(costs)
    return lambda level: table[level.astype(np.int64)]


_UNIT = (0.0, 1.0)
_BOREHOLE = (
    *((0.05, 0.15), (100.0, 50_000.0), (63_070.0, 115_600.0), (990.0, 1_110.0)),
    *((63.1, 116.0), (700.0, 820.0), (1_120.0, 1_680.0), (9_855.0, 12_045.0)),
)

PROBLEMS: dict[str, Problem] = {
    "forrester": Problem("Forrester", (_UNIT,), _minus(forrester), 6.020740056, (0.0, 1.0, 2.0), cost=_costs(10, 5, 2)),
    "currin": Problem("Currin-2", (_UNIT,) * 2, _minus(currin), -1.180408020862, (0.0, 1.0), cost=_costs(10, 1)),
    "currin-largest": Problem("Currin-2, largest", (_UNIT,) * 2, currin, 13.798722045, (0.0, 1.0), cost=_costs(10, 1)),
    "hartmann3": Problem(
        "Hartmann-3", (_UNIT,) * 3, _minus(hartmann3), 3.862779787, (0.0, 1.0, 2.0), cost=_costs(100, 10, 1)
    ),
    "hartmann6": Problem(
        "Hartmann-6",
        (_UNIT,) * 6,
        _minus(hartmann6),
        3.322368011,
        (0.0, 1.0, 2.0, 3.0),
        cost=_costs(1000, 100, 10, 1),
    ),
    "borehole": Problem("Borehole-8", _BOREHOLE, _minus(borehole), -7.819676329, (0.0, 1.0), cost=_costs(10, 1)),
    "currin-continuous": Problem(
        "Currin-2, continuous",
        (_UNIT,) * 2,
        _minus(currin_continuous),
        -1.180408020862,
        None,
        1.0,
        cost=lambda z: 0.1 + z**2,
    ),
    "rosenbrock": Problem(
        "noisy Rosenbrock-2",
        ((-2.0, 2.0),) * 2,
        _minus(rosenbrock),
        0.0,
        (0.0, 1.0),
        cost=_costs(1000, 1),
        noise=(1e-3, 1e-6),
    ),
    "forrester-noisy": Problem(
        "noisy Forrester", (_UNIT,), _minus(forrester), 6.020740056, noise=(0.05**2,), exact=False
    ),
    "branin": Problem("Branin-2", ((-5.0, 10.0), (0.0, 15.0)), _minus(branin), -0.397887357730),
    "shekel": Problem("Shekel-4", ((0.0, 10.0),) * 4, _minus(shekel), 10.536443153),
    "ackley": Problem("noisy Ackley-4", ((-32.768, 32.768),) * 4, _minus(ackley), 0.0, noise=(0.25,), exact=False),
    "hartmann6-noisy": Problem(
        "noisy Hartmann-6", (_UNIT,) * 6, _minus(hartmann6), 3.322368011, noise=(0.25,), exact=False
    ),
}
"""By name."""
