"""Scores of molecules that RDKit computes.

Every function takes SMILES strings and returns an array of as many float64 numbers, NaN where a string is no
molecule.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, section 4.6.4.
    Gomez-Bombarelli, R. et al. (2018). Automatic chemical design using a data-driven continuous
        representation of molecules. ACS Cent. Sci. 4, 268-276.
    Wildman, S. A., Crippen, G. M. (1999). Prediction of physicochemical parameters by atomic contributions.
        J. Chem. Inf. Comput. Sci. 39, 868-873.
    Ertl, P., Schuffenhauer, A. (2009). Estimation of synthetic accessibility score of drug-like molecules
        based on molecular complexity and fragment contributions. J. Cheminform. 1, 8.
    Bickerton, G. R. et al. (2012). Quantifying the chemical beauty of drugs. Nat. Chem. 4, 90-98.
    Rogers, D., Hahn, M. (2010). Extended-connectivity fingerprints. J. Chem. Inf. Model. 50, 742-754.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError, ObjectiveError
from seqopt.strings.identity import explain_rejection, parse_smiles, quiet_rdkit, quoted
from seqopt.utils.resources import data_path

RINGS = ("cycle_basis", "sssr")
"""Ways to find the largest ring."""


def penalized_logp(strings: Sequence[str], *, ring: str = "cycle_basis") -> npt.NDArray[np.float64]:
    """Penalised logP, the sum of three terms that are each standardised over ZINC 250k.

        (logP - 2.45710) / 1.43432 + (-SA + 3.05258) / 0.83352 + (-ring + 0.04857) / 0.28602

    logP is the Wildman-Crippen estimate, SA the synthetic accessibility score, and ring the number of atoms
    beyond six in the largest ring (0 without one). The constants are those of the BOSS experiments (thesis,
    section 4.6.4), read from ``data/penalized_logp.json``.

    Args:
        strings: SMILES.
        ring: ``"cycle_basis"`` takes the largest ring from networkx's cycle basis of the molecule's graph, as
            the published scores do. Such a basis may hold rings larger than need be, and which it holds
            depends on the order of the atoms, hence, for a few polycyclic molecules, on how the SMILES is
            written. ``"sssr"`` takes it from RDKit's smallest rings, which depends on the molecule only.

    Raises:
        InputError: For an unknown ``ring``.

    Example:
        >>> penalized_logp(["c1ccccc1", "C1CC"]).round(2).tolist()
        [2.1, nan]
    """
    return penalized_logp_terms(strings, ring=ring).sum(axis=1)


def penalized_logp_terms(strings: Sequence[str], *, ring: str = "cycle_basis") -> npt.NDArray[np.float64]:
    """The three standardised terms of `penalized_logp`: columns logP, minus SA, minus ring penalty (``n x 3``).

    Raises:
        InputError: For an unknown ``ring``.
    """
    penalty = _ring_penalty(ring)
    constants = _penalized_logp_constants()
    means, deviations = np.array([constants[name] for name in ("logp", "sa", "ring")]).T
    raw = _score(strings, lambda mol: (_logp(mol), -_sa_score(mol), -penalty(mol)), columns=3)
    return (raw - means) / deviations


def logp(strings: Sequence[str]) -> npt.NDArray[np.float64]:
    """Octanol/water partition coefficient log10 P, as estimated from atoms by Wildman and Crippen (1999).

    Example:
        >>> logp(["CCO", "CCCCCC"]).round(2).tolist()
        [-0.0, 2.59]
    """
    return _score(strings, _logp)


def qed(strings: Sequence[str]) -> npt.NDArray[np.float64]:
    """Quantitative estimate of drug-likeness, 0 to 1, with the mean weights of Bickerton et al. (2012)."""
    from rdkit.Chem import QED

    return _score(strings, QED.qed)


def sa_score(strings: Sequence[str]) -> npt.NDArray[np.float64]:
    """Synthetic accessibility, 1 (easy) to 10 (hard), of Ertl and Schuffenhauer (2009), as RDKit's Contrib
    has it.

    Raises:
        ObjectiveError: If this RDKit comes without its Contrib folder.
    """
    return _score(strings, _sa_score)


def molecular_weight(strings: Sequence[str]) -> npt.NDArray[np.float64]:
    """Average molecular weight with hydrogens, in g/mol.

    Example:
        >>> molecular_weight(["O", "C"]).round(2).tolist()
        [18.02, 16.04]
    """
    from rdkit.Chem import Descriptors

    # RDKit's stubs do not list the descriptors that are made when the module is imported.
    descriptors: Any = Descriptors
    return _score(strings, descriptors.MolWt)


@dataclass(frozen=True)
class Similarity:
    """Tanimoto similarity, 0 to 1, to one molecule: of Morgan fingerprints with radius 2 and 2,048 bits.

    With a and b the sets of bits of the two molecules, |a and b| / |a or b| (Rogers and Hahn, 2010).

    Args:
        smiles: The molecule to resemble.

    Raises:
        InputError: If ``smiles`` is unreadable.

    Example:
        >>> similar = Similarity("CCO")
        >>> similar(["OCC", "CCN", "?"]).round(2).tolist()
        [1.0, 0.33, nan]
    """

    smiles: str
    radius: int = field(default=2, kw_only=True)
    bits: int = field(default=2048, kw_only=True)

    def __post_init__(self) -> None:
        with quiet_rdkit():
            readable = parse_smiles(self.smiles) is not None
        if not readable:
            why = explain_rejection(self.smiles, "molecule")
            raise InputError(
                f"similarity needs a molecule to compare with; {quoted(self.smiles)} is not a readable SMILES: {why}"
            )

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """Similarities of ``strings``."""
        from rdkit import DataStructs

        # Made on the call, as RDKit's generators cannot be sent to another process.
        fingerprint = _fingerprint_generator(self.radius, self.bits).GetFingerprint
        target = fingerprint(parse_smiles(self.smiles))
        return _score(strings, lambda mol: DataStructs.TanimotoSimilarity(target, fingerprint(mol)))


@cache
def _fingerprint_generator(radius: int, bits: int) -> Any:
    from rdkit.Chem import rdFingerprintGenerator

    return rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)


def _score(strings: Sequence[str], score: Callable[[Any], Any], columns: int = 1) -> npt.NDArray[np.float64]:
    """``score`` of each molecule, NaN for an unreadable one: n values, or ``n x columns`` if there are several."""
    if isinstance(strings, str):
        raise InputError(f"expected a list of SMILES, got the single string {strings!r}: write [{strings!r}]")
    with quiet_rdkit():
        mols = map(parse_smiles, (string.strip() for string in strings))
        missing = math.nan if columns == 1 else (math.nan,) * columns
        values = np.array([missing if mol is None else score(mol) for mol in mols], dtype=np.float64)
    return values if columns == 1 else values.reshape(-1, columns)


def _logp(mol: Any) -> float:
    from rdkit.Chem import rdMolDescriptors

    value: float = rdMolDescriptors.CalcCrippenDescriptors(mol)[0]
    return value


def _sa_score(mol: Any) -> float:
    value: float = _sascorer().calculateScore(mol)
    return value


@cache
def _sascorer() -> ModuleType:
    from rdkit import RDConfig

    path = Path(RDConfig.RDContribDir) / "SA_Score" / "sascorer.py"
    spec = importlib.util.spec_from_file_location("sascorer", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ObjectiveError(f"this RDKit lacks {path}, which computes SA scores: install RDKit with pip or conda")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ring_penalty(ring: str) -> Callable[[Any], float]:
    if ring not in RINGS:
        raise InputError(f"unknown ring {ring!r}: choose {' or '.join(RINGS)}")
    largest = _largest_cycle if ring == "cycle_basis" else _largest_ring
    return partial(_beyond_six, largest)


def _beyond_six(largest: Callable[[Any], int], mol: Any) -> float:
    return float(max(0, largest(mol) - 6))


def _largest_ring(mol: Any) -> int:
    return max(map(len, mol.GetRingInfo().AtomRings()), default=0)


def _largest_cycle(mol: Any) -> int:
    if not mol.GetRingInfo().NumRings():
        return 0
    import networkx

    graph: Any = networkx.Graph()
    graph.add_nodes_from(range(mol.GetNumAtoms()))
    # The basis depends on the order of nodes and edges. Sorted, they stand as in a graph made of the
    # adjacency matrix.
    graph.add_edges_from(
        sorted(tuple(sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))) for bond in mol.GetBonds())
    )
    return max(map(len, networkx.cycle_basis(graph)), default=0)


@cache
def _penalized_logp_constants() -> dict[str, tuple[float, float]]:
    table = json.loads(data_path("penalized_logp.json").read_text(encoding="utf-8"))
    return {name: (term["mean"], term["standard_deviation"]) for name, term in table["terms"].items()}
