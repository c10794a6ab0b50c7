"""Makes ``protein_variants.csv``: variants of a small protein with a synthetic score that resembles
stability.

    python data/make_protein_variants.py

The protein is the B1 domain of streptococcal protein G (GB1), 56 residues, as in PDB entry 1PGA (Gallagher,
Alexander, Bryan and Gilliland 1994). The pool is the wild type, all 56 x 19 single substitutions and a seeded
sample of double ones. The score is computed, not measured: it tells nothing about the real protein, and
serves to show a search over proteins whose optimum is known. It is the wild type's 0 plus

- at core positions, what hydropathy is lost (Kyte and Doolittle 1982, weight 0.3 per unit), and the square of
the
  total change of volume of the core (Zamyatnin 1972, in units of 30 cubic angstroms), so that a core residue
  that grows can be made up for by one that shrinks;
- at other positions, what hydropathy is gained (weight 0.05 per unit);
- in the helix, the change of helix propensity (Pace and Scholtz 1998, kcal/mol).

Higher is better. The core positions are those that Dahiyat and Mayo (1997) designed, the helix is residues 23
to 36.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np

WILD_TYPE = "MTYKLILNGKTLKGETTTEAVDAATAEKVFKQYANDNGVDGEWTYDDATKTFTVTE"
CORE = frozenset({3, 5, 7, 20, 26, 30, 34, 39, 52, 54})
HELIX = frozenset(range(23, 37))
DOUBLES = 1_935
SEED = 20_240_101

# Kyte, J., Doolittle, R. F. (1982). J. Mol. Biol. 157, 105-132, table 2.
HYDROPATHY = {
    "A": 1.8, "R": -4.5, "N": -3.5, "D": -3.5, "C": 2.5, "Q": -3.5, "E": -3.5, "G": -0.4, "H": -3.2, "I": 4.5,
    "L": 3.8, "K": -3.9, "M": 1.9, "F": 2.8, "P": -1.6, "S": -0.8, "T": -0.7, "W": -0.9, "Y": -1.3, "V": 4.2,
}  # fmt: skip
# Zamyatnin, A. A. (1972). Prog. Biophys. Mol. Biol. 24, 107-123, in cubic angstroms.
VOLUME = {
    "A": 88.6, "R": 173.4, "N": 114.1, "D": 111.1, "C": 108.5, "Q": 143.8, "E": 138.4, "G": 60.1, "H": 153.2,
    "I": 166.7, "L": 166.7, "K": 168.6, "M": 162.9, "F": 189.9, "P": 112.7, "S": 89.0, "T": 116.1, "W": 227.8,
    "Y": 193.6, "V": 140.0,
}  # fmt: skip
# Pace, C. N., Scholtz, J. M. (1998). Biophys. J. 75, 422-427, in kcal/mol relative to alanine.
HELIX_COST = {
    "A": 0.00, "L": 0.21, "R": 0.21, "M": 0.24, "K": 0.26, "Q": 0.39, "E": 0.40, "I": 0.41,
    "W": 0.49, "S": 0.50, "Y": 0.53, "F": 0.54, "H": 0.61, "V": 0.61, "N": 0.65, "T": 0.66,
    "C": 0.68, "D": 0.69, "G": 1.00, "P": 3.16,
}  # fmt: skip
AMINO_ACIDS = "".join(sorted(HYDROPATHY))

Substitution = tuple[int, str]
"""A position, counted from 1, and what stands there instead."""


def score(substitutions: list[Substitution]) -> float:
    """The score of a variant; see the top of the file."""
    total, growth = 0.0, 0.0
    for position, new in substitutions:
        old = WILD_TYPE[position - 1]
        gained = HYDROPATHY[new] - HYDROPATHY[old]
        if position in CORE:
            total -= 0.3 * max(0.0, -gained)
            growth += (VOLUME[new] - VOLUME[old]) / 30.0
        else:
            total -= 0.05 * max(0.0, gained)
        if position in HELIX:
            total -= HELIX_COST[new] - HELIX_COST[old]
    return total - growth**2


def name(substitutions: list[Substitution]) -> str:
    """The usual notation, such as ``T2Q+D47A``."""
    return "+".join(f"{WILD_TYPE[position - 1]}{position}{new}" for position, new in substitutions) or "wild type"


def sequence(substitutions: list[Substitution]) -> str:
    """The variant's residues."""
    residues = list(WILD_TYPE)
    for position, new in substitutions:
        residues[position - 1] = new
    return "".join(residues)


def variants() -> list[list[Substitution]]:
    """The wild type, all single substitutions, and a sample of double ones, each once."""
    singles = [(position, new) for position, old in enumerate(WILD_TYPE, start=1) for new in AMINO_ACIDS if new != old]
    doubles = [[first, second] for first, second in itertools.combinations(singles, 2) if first[0] != second[0]]
    chosen = np.random.default_rng(SEED).choice(len(doubles), size=DOUBLES, replace=False)
    return [[], *([single] for single in singles), *(doubles[index] for index in np.sort(chosen))]


def main() -> None:
    """Write the table beside this file."""
    path = Path(__file__).with_name("protein_variants.csv")
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["name", "sequence", "score"])
        writer.writerows((name(variant), sequence(variant), f"{score(variant) + 0.0:.3f}") for variant in variants())


if __name__ == "__main__":
    main()
