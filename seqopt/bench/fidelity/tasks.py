"""What is searched: candidates with a costly value each, which is the objective, and a cheap one.

References:
    Sabanza-Gil, V. et al. (2025). Best practices for multi-fidelity Bayesian optimization in materials and molecular
        research. Nat. Comput. Sci. 5, 572-581 (chem-MFBO).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.data import Contexts
from seqopt.utils.cache import digest, read_cached, write_cached

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet

FloatArray = npt.NDArray[np.float64]

VARIABLE = "fidelity"
CHEAP, TARGET = "cheap", "target"
"""The levels of the context variable."""

SPAN = 30
"""Bases that a cheap folding lets pair with one another at most."""

GENES = 400
"""Random genes that a seed searches."""

SPOILT = 3.0
"""Standard deviations of the noise that spoils a cheap column."""


@dataclass(frozen=True)
class Candidates:
    """The candidates of one seed.

    Attributes:
        space: They as a space.
        target: The costly value of each.
        cheap: The cheap value of each.
    """

    space: CandidateSet
    target: FloatArray
    cheap: FloatArray

    def values(self, level: str) -> FloatArray:
        """What is measured at a level."""
        return self.cheap if level == CHEAP else self.target


@dataclass(frozen=True)
class Task:
    """One search.

    Attributes:
        label: Name in the tables.
        data: Makes the candidates of a seed.
        direction: Of the search.
        kernel: On strings, in every model of this task: a name of `seqopt.bench.fidelity.methods.KERNELS`.
        initial: Costly measurements that a search of one fidelity begins with.
        start: What a search of two fidelities begins with: ``"both"`` measures the same strings cheaply, too;
            ``"halves"`` spends half of the cost of ``initial`` on each fidelity, as chem-MFBO does; ``"screen"``
            spends the same on cheap ones, and nothing on costly ones.
        budget: Cost of all measurements, those of the beginning included.
        cost: Of a cheap measurement; a costly one costs 1.
        spoil: What is done to the cheap column: ``"noise"`` adds normal noise of `SPOILT` standard deviations of the
            column, ``"permuted"`` gives the values to other candidates; both by the seed.
        base: Name of a task with the same candidates, targets, beginning and budget: what sees the same in both is run
            there, once.
    """

    label: str
    data: Callable[[int], Candidates]
    direction: Literal["maximize", "minimize"]
    kernel: str
    initial: int = 5
    start: Literal["both", "halves", "screen"] = "both"
    budget: float = 40.0
    cost: float = 0.1
    spoil: Literal["noise", "permuted"] | None = None
    base: str | None = None

    @property
    def maximize(self) -> bool:
        """Whether large values are good."""
        return self.direction == "maximize"

    @property
    def contexts(self) -> Contexts:
        """The two ways to measure."""
        return Contexts.of_levels(VARIABLE, {CHEAP: self.cost, TARGET: 1.0}, target=TARGET)

    def candidates(self, seed: int) -> Candidates:
        """What a seed searches."""
        found = self.data(seed)
        if self.spoil is None:
            return found
        rng = np.random.default_rng([seed, 3])
        if self.spoil == "permuted":
            return Candidates(found.space, found.target, rng.permutation(found.cheap))
        noise = rng.normal(0.0, SPOILT * found.cheap.std(), len(found.cheap))
        return Candidates(found.space, found.target, found.cheap + noise)

    def beginning(self, seed: int, candidates: int, *, cheap: bool) -> list[tuple[int, str]]:
        """The measurements that a search begins with, by the index of the candidate and the level.

        Args:
            seed: Searches of one seed begin with the same candidates.
            candidates: How many there are.
            cheap: Whether the search measures cheaply, too.
        """
        order = np.random.default_rng([seed, 1]).permutation(candidates).tolist()
        if not cheap:
            return [(index, TARGET) for index in order[: self.initial]]
        if self.start == "both":
            first = order[: self.initial]
            return [(index, level) for level in (TARGET, CHEAP) for index in first]
        costly = self.initial // 2
        count = round(self.initial / 2 / self.cost)
        if self.start == "screen":
            return [(index, CHEAP) for index in order[:count]]
        return [(index, TARGET) for index in order[:costly]] + [
            (index, CHEAP) for index in order[self.initial : self.initial + count]
        ]


@lru_cache(maxsize=4)
def _computed(name: str, column: str) -> Candidates:
    """The molecules of a public set that have the computed value, too; of equal ones the first."""
    from seqopt.datasets import load
    from seqopt.spaces import CandidateSet

    data = load(name)
    assert data.values is not None
    cheap = data.computed[column]
    known = np.flatnonzero(np.isfinite(cheap))
    space = CandidateSet([data.strings[row] for row in known], kind="molecule")
    first: dict[str, int] = {}
    for row in known.tolist():
        first.setdefault(space.key(data.strings[row]), row)
    rows = [first[key] for key in space.keys]
    return Candidates(space, data.values[rows], cheap[rows])


@lru_cache(maxsize=2)
def _genes(seed: int) -> Candidates:
    """Random genes of the protein of 60 residues of the thesis, with their folding energies."""
    from seqopt.bench.boss.tasks import TASKS as BOSS
    from seqopt.spaces import CandidateSet

    drawn = dict.fromkeys(BOSS["thesis-60"].space().sample(GENES, np.random.default_rng([seed, 2])))
    space = CandidateSet(list(drawn), kind="dna")
    return Candidates(space, _energies(space.keys, None), _energies(space.keys, SPAN))


def _energies(genes: Sequence[str], span: int | None) -> FloatArray:
    """Folding energies, which are kept in the cache folder, by the genes and the version of ViennaRNA."""
    from seqopt.objectives import MinimumFreeEnergy

    file = f"mfe-{digest(genes)[:24]}-span{span}-viennarna{version('viennarna')}.txt"
    cached = read_cached(file, len(genes))
    if cached is None:
        cached = [f"{value:.2f}" for value in MinimumFreeEnergy(span=span)(genes)]
        write_cached(file, cached)
    return np.array(cached, dtype=np.float64)


def _freesolv(seed: int) -> Candidates:
    return _computed("freesolv", "calc")


def _esol(seed: int) -> Candidates:
    return _computed("esol", "predicted")


def _cam(seed: int) -> Candidates:
    return _computed("photoswitch", "cam-b3lyp")


def _pbe0(seed: int) -> Candidates:
    return _computed("photoswitch", "pbe0")


_FREESOLV = Task("FreeSolv, computed and measured", _freesolv, "minimize", "ngrams", budget=50.0)
_CAM = Task("Photoswitch, CAM-B3LYP and measured", _cam, "maximize", "minmax")
_PBE0 = Task("Photoswitch, PBE0 and measured", _pbe0, "maximize", "minmax")

_ESOL = Task("ESOL, predicted and measured", _esol, "maximize", "ngrams")
_GENES = Task(f"genes, pairs within {SPAN} bases and any", _genes, "minimize", "ssk")


def _variant(task: Task, base: str, words: str, **changes: Any) -> Task:
    return replace(task, label=f"{task.label.split(',')[0]}, {words}", base=base, **changes)


TASKS: Mapping[str, Task] = {
    "freesolv": _FREESOLV,
    "freesolv-screen": _variant(_FREESOLV, "freesolv", "a small screen first", start="screen"),
    "photoswitch-cam-screen": _variant(_CAM, "photoswitch-cam", "CAM-B3LYP, a small screen first", start="screen"),
    "photoswitch-pbe0-screen": _variant(_PBE0, "photoswitch-pbe0", "PBE0, a small screen first", start="screen"),
    "freesolv-noise-screen": _variant(
        _FREESOLV, "freesolv", "cheap column with noise, a small screen first", spoil="noise", start="screen"
    ),
    "freesolv-permuted-screen": _variant(
        _FREESOLV, "freesolv", "cheap column permuted, a small screen first", spoil="permuted", start="screen"
    ),
    "esol-screen": _variant(_ESOL, "esol", "a small screen first", start="screen"),
    "genes-screen": _variant(
        _GENES, "genes", f"pairs within {SPAN} bases and any, a small screen first", start="screen"
    ),
    "freesolv-halves": _variant(_FREESOLV, "freesolv", "protocol of chem-MFBO", start="halves"),
    "freesolv-noise": _variant(_FREESOLV, "freesolv", "cheap column with noise", spoil="noise"),
    "freesolv-permuted": _variant(_FREESOLV, "freesolv", "cheap column permuted", spoil="permuted"),
    "photoswitch-cam": _CAM,
    "photoswitch-cam-halves": _variant(_CAM, "photoswitch-cam", "CAM-B3LYP, beginning of chem-MFBO", start="halves"),
    "photoswitch-pbe0": _PBE0,
    "photoswitch-pbe0-halves": _variant(_PBE0, "photoswitch-pbe0", "PBE0, beginning of chem-MFBO", start="halves"),
    "esol": _ESOL,
    "genes": _GENES,
}
"""What is searched."""
