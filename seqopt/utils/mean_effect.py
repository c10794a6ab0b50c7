"""A coefficient of a prior mean in words, without the models that it comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeanEffect:
    """What the data say of a coefficient of the prior mean.

    Attributes:
        name: Of the feature.
        estimate: By how many standard deviations of the values (as the model sees them, larger is better) a string is
            expected to be better whose feature is higher by one standard deviation.
        lower: Lower end of its central 90 % interval at the fitted parameters of the model, whose uncertainty is not in
            it: with twenty values such intervals held 84 % of simulated coefficients.
        upper: Upper end.
    """

    name: str
    estimate: float
    lower: float
    upper: float

    def describe(self) -> str:
        """In a sentence.

        Example:
            >>> print(MeanEffect("guess", 0.42, 0.3, 0.54).describe())
            prior mean: results are 0.42 standard deviations better where guess is one higher (90 %: 0.30 to 0.54)
            >>> MeanEffect("guess", -0.1, -0.3, 0.1).describe().partition(";")[2]
            ' results do not show yet whether it tells anything'
        """
        sign = 1.0 if self.estimate >= 0.0 else -1.0
        low, high = sorted((sign * self.lower, sign * self.upper))
        said = (
            f"prior mean: results are {abs(self.estimate):.2f} standard deviations "
            f"{'better' if sign > 0.0 else 'worse'} where {self.name} is one higher (90 %: {low:.2f} to {high:.2f})"
        )
        return said if low > 0.0 else f"{said}; results do not show yet whether it tells anything"
