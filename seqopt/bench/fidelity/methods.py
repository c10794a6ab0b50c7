"""What is compared: searches of two fidelities, of one, and none at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from seqopt.bench.fidelity.tasks import Candidates, Task

if TYPE_CHECKING:
    from seqopt.spaces import Space

BATCH = 4
"""Measurements that some searches choose at a time: most are cheap, and there are fewer fits."""

Kind = Literal["multi", "single", "random", "column"]


@dataclass(frozen=True)
class Method:
    """How queries are chosen.

    Attributes:
        label: Name in the tables.
        kind: ``"multi"`` chooses the fidelity, too; ``"single"`` measures targets only; ``"random"`` does so in the
            order of the seed; ``"column"`` buys the cheap value of every candidate, and then measures targets in the
            order of these.
        acquisition: Name of the acquisition function.
        model: How the fidelities hang together: ``"coregionalised"`` or ``"autoregressive"``.
        known: The cheap value of every candidate is known already and costs nothing.
        batch: Measurements that are chosen at a time.
        initial: Measurements of the target that a search of one fidelity begins with, where it is not for the task to
            say.
    """

    label: str
    kind: Kind
    acquisition: str = "gibbon"
    model: str = "coregionalised"
    known: bool = False
    batch: int = 1
    initial: int | None = None

    @property
    def cheap(self) -> bool:
        """Whether it pays for cheap measurements."""
        return self.kind in ("multi", "column") and not self.known

    @property
    def blind(self) -> bool:
        """Whether it never looks at cheap values."""
        return not self.cheap and not self.known


METHODS: Mapping[str, Method] = {
    "gibbon": Method("one fidelity, GIBBON", "single"),
    "gibbon-4": Method("one fidelity, GIBBON, four at a time", "single", batch=BATCH),
    "gibbon-short": Method("one fidelity, GIBBON, beginning with two strings", "single", initial=2),
    "ei": Method("one fidelity, EI", "single", "logei"),
    "random": Method("random", "random"),
    "column": Method("cheap column, best first", "column"),
    "mf-gibbon": Method("two fidelities, GIBBON", "multi"),
    "mf-gibbon-4": Method("two fidelities, GIBBON, four at a time", "multi", batch=BATCH),
    "mf-gibbon-ar": Method(
        "two fidelities, GIBBON, autoregressive, four at a time", "multi", model="autoregressive", batch=BATCH
    ),
    "mf-mumbo": Method("two fidelities, MUMBO, four at a time", "multi", "mumbo", batch=BATCH),
    "column-known": Method("cheap column known, best first", "column", known=True),
    "screened": Method("cheap column known, GIBBON", "single", known=True),
}
"""What is compared; the first is what others are held against."""

REFERENCE = "gibbon"


def _ngrams() -> Any:
    from seqopt.kernels import NgramKernel

    return NgramKernel()


def _minmax() -> Any:
    from seqopt.kernels import MinMaxKernel

    return MinMaxKernel()


def _ssk() -> Any:
    from seqopt.models.string_gp import default_kernel

    return default_kernel()


KERNELS: Mapping[str, Callable[[], Any]] = {"ngrams": _ngrams, "minmax": _minmax, "ssk": _ssk}
"""Kernels on strings by name; ``minmax`` compares counts of Morgan environments."""


def encoder_of(task: Task, space: Space) -> Any:
    """What the kernel of a task reads."""
    from seqopt.encoding import FeatureEncoder, MorganFingerprint

    return FeatureEncoder(MorganFingerprint(counts=True)) if task.kernel == "minmax" else space.encoder


def surrogate_of(method: Method, task: Task, candidates: Candidates) -> Any:
    """The model of a search: of one fidelity, of one with the cheap column as a known term, or of two."""
    from seqopt.models import StringGP
    from seqopt.models.contexts import autoregressive, coregionalized, screened

    space = candidates.space
    kernel, encoder = KERNELS[task.kernel](), encoder_of(task, space)
    if method.kind == "single" and method.known:
        return screened(space, dict(zip(space.keys, candidates.cheap.tolist(), strict=True)), kernel, encoder=encoder)
    if method.kind == "single":
        return StringGP(kernel, encoder=encoder)
    if method.model == "coregionalised":
        return coregionalized(space, task.contexts, kernel, encoder=encoder)
    # With one kernel for both, two levels have the covariances of coregionalisation, written otherwise.
    return autoregressive(space, task.contexts, kernel, encoder=encoder, tied=False)


def arguments_of(method: Method, task: Task, candidates: Candidates) -> dict[str, Any]:
    """What an optimiser is given: surrogate and acquisition function or, for two fidelities, a strategy."""
    from seqopt.strategies import MultiFidelity

    surrogate = surrogate_of(method, task, candidates)
    if method.kind == "single":
        return {"surrogate": surrogate, "acquisition": method.acquisition}
    return {"strategy": MultiFidelity(surrogate, method.acquisition), "contexts": task.contexts}
