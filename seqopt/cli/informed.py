"""Options for what is known of candidates besides their strings: features of a model, and a prior mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.models import SurrogatePlan

KNOWN = "What is known of candidates"

FeaturesFile = Annotated[
    Path | None,
    typer.Option(
        "--features",
        metavar="FILE",
        help="Features of the candidates, such as embeddings by your own model, which join the model (alone with "
        "--surrogate features): .npz with strings and a matrix, .parquet or .csv with a column of strings, or .npy "
        "with a row for each candidate.",
        rich_help_panel=KNOWN,
    ),
]
FeaturesKernel = Annotated[
    str,
    typer.Option(
        "--features-kernel",
        help="How features are compared: rbf, matern, linear, or tanimoto (of counts).",
        rich_help_panel=KNOWN,
    ),
]
FeaturesColumn = Annotated[
    str | None,
    typer.Option(
        "--features-column", help="Column of strings of --features, if not recognised.", rich_help_panel=KNOWN
    ),
]
PriorMeanName = Annotated[
    str | None,
    typer.Option(
        "--prior-mean",
        metavar="column:NAME",
        help="A column of the pool that foretells results, such as zero-shot scores: the model learns how far.",
        rich_help_panel=KNOWN,
    ),
]

COLUMN = "column:"


@dataclass(frozen=True)
class Informed:
    """The options.

    Attributes:
        features: File of features.
        kernel: How they are compared.
        features_column: Its column of strings.
        prior_mean: ``column:NAME``.
    """

    features: Path | None = None
    kernel: str = "rbf"
    features_column: str | None = None
    prior_mean: str | None = None

    @property
    def given(self) -> bool:
        """Whether there is anything to do."""
        return self.features is not None or self.prior_mean is not None

    def check(self, *, pool: str | None, strategy: str, prefilter: str | None, fidelities: bool, plates: bool) -> None:
        """Refuse what does not go together, before anything is read.

        Raises:
            InputError: As said.
        """
        if self.features is None:
            if self.features_column is not None:
                raise InputError("--features-column goes with --features FILE: leave it out")
            if self.kernel != "rbf":
                raise InputError("--features-kernel goes with --features FILE: leave it out")
        if not self.given:
            return
        option = "--features" if self.features is not None else "--prior-mean"
        if pool is None:
            what = "features are" if self.features is not None else "a column is"
            raise InputError(
                f"{option} needs a list of candidates, of which {what} known, and these strings are generated: search "
                "a file of candidates (of variants, a pool of them), or leave it out"
            )
        for other, set_ in {
            f"--strategy {strategy}": strategy != "model",
            "--prefilter": prefilter is not None,
            "--fidelity": fidelities,
            "--plates": plates,
        }.items():
            if set_:
                raise InputError(
                    f"{option} and {other} do not go together yet: keep one of them; the model that {option} informs "
                    "has one way to measure, and chooses by itself"
                )
        if self.prior_mean is not None and not self.prior_mean.strip().removeprefix(COLUMN):
            raise InputError("--prior-mean column:NAME needs the name of a column")
        if self.prior_mean is not None and not self.prior_mean.strip().startswith(COLUMN):
            raise InputError(f"--prior-mean is {self.prior_mean!r}; expected column:NAME, a column of the pool")

    def plan(
        self,
        surrogate: str,
        pool: str,
        *,
        column: str | None,
        kind: str | None,
        standardize: bool,
        parent: str | None = None,
    ) -> SurrogatePlan:
        """The surrogate with all that is known.

        Args:
            surrogate: Its name.
            pool: The file of the pool, or the name of a data set.
            column: Its column of strings.
            kind: What these are.
            standardize: Whether molecules are identified by their charge parents.
            parent: The string of which the candidates are variants.

        Raises:
            InputError: For a file that cannot be used, or has no such column.
        """
        from seqopt.datasets import DATASETS
        from seqopt.models import ColumnMean, Features, SurrogatePlan

        options: dict[str, Any] = {"standardize": standardize, "parent": parent}
        features = mean = None
        if self.features is not None:
            features = Features(
                self.features,
                self.kernel,
                column=self.features_column,
                pool=None if pool in DATASETS else pool,
                pool_column=column,
                pool_kind=kind,
                **options,
            )
        if self.prior_mean is not None:
            name = self.prior_mean.strip().removeprefix(COLUMN)
            if pool in DATASETS:
                raise InputError(f"the data set {pool} has no column for a prior mean: leave --prior-mean out")
            mean = ColumnMean(pool, name, strings=column, kind=kind, **options)
        return SurrogatePlan(surrogate, features=features, mean=mean)
