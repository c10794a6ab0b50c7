"""What is measured of a string, and what is wanted of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from seqopt.data.transforms import Identity, LearnedTransform, Transform, resolve_transform
from seqopt.data.yes_no import YES_NO
from seqopt.errors import InputError
from seqopt.utils.config import Configurable

Direction = Literal["maximize", "minimize"]
"""Whether large or small values are good."""

Role = Literal["objective", "constraint", "recorded"]
"""Whether a value is optimised, only has to be good enough, or is only kept."""


@dataclass(frozen=True)
class Outcome(Configurable):
    """One column of measured values.

    Args:
        name: What is measured, such as ``"pIC50"``.
        direction: Whether large or small values are good.
        role: ``"objective"``, ``"constraint"`` for a value that has to reach ``bound``, or ``"recorded"`` for one that
            is only kept beside the others, such as a term of a weighted sum.
        bound: The least good value that a constraint accepts, in the user's units.
        transform: What the model sees instead of the values: a transform, or the name of one of
            `seqopt.data.TRANSFORMS`; ``"yes/no"`` for results that are hit or no hit (`seqopt.data.YesNo`).

    Raises:
        InputError: For an unknown direction, role or transform, a constraint without bound, a bound without constraint,
            or a constraint whose transform would have to be learned.

    Example:
        >>> Outcome("Ki", "minimize").target(2.5)
        -2.5
        >>> solubility = Outcome("solubility", role="constraint", bound=10.0)
        >>> solubility.accepts(12.0), solubility.accepts(8.0)
        (True, False)
        >>> Outcome("inhibits", transform="yes/no").yes_no
        True
    """

    name: str = "value"
    direction: Direction = "maximize"
    role: Role = "objective"
    bound: float | None = None
    transform: Transform = field(default_factory=Identity)

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", resolve_transform(self.transform))
        if self.direction not in ("maximize", "minimize"):
            raise InputError(f"direction is {self.direction!r}; expected 'maximize' or 'minimize'")
        if self.role not in ("objective", "constraint", "recorded"):
            raise InputError(
                f"the role of {self.name!r} is {self.role!r}; expected 'objective', 'constraint' or 'recorded'"
            )
        if (self.role == "constraint") != (self.bound is not None):
            raise InputError(
                f"{self.name!r} has the role {self.role!r} and the bound {self.bound}: a constraint needs a bound, "
                "and nothing else has one"
            )
        if self.role == "constraint" and self.yes_no:
            raise InputError(
                f"the constraint {self.name!r} has results of yes and no, which only an objective may have: tell it as "
                "a number, 0 or 1, with a bound between"
            )
        if self.role == "constraint" and isinstance(self.transform, LearnedTransform):
            raise InputError(
                f"the transform of the constraint {self.name!r} is {self.transform.name!r}, which is learned with the "
                "model of the objective: choose none or log10"
            )

    @property
    def sign(self) -> float:
        """1 where large values are good, else -1."""
        return 1.0 if self.direction == "maximize" else -1.0

    @property
    def yes_no(self) -> bool:
        """Whether its values are shares of wells that were hits, 0 or 1 as a rule; see `seqopt.data.yes_no`."""
        return self.transform.name == YES_NO

    def target(self, value: float) -> float:
        """What the model sees of a value: transformed, and larger is better.

        Raises:
            InputError: If the value has no image under the transform.
        """
        return self.sign * self.transform.forward(value)

    def accepts(self, value: float) -> bool:
        """Whether a value is good enough; every value of an objective is."""
        return self.bound is None or self.sign * value >= self.sign * self.bound
