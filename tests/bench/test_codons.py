"""Scores of the benchmark of codons and bases, by hand, and its table."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt.bench.codons import MODELS, SCORES, scores_of, table

GENES = ["ATGGCTAAA", "ATGGCCAAG", "ATGGCGAAA"]


def test_scores_are_sums_of_weights_of_codons_and_what_bases_fold_to() -> None:
    found = scores_of(GENES, np.random.default_rng(0))
    assert set(found) == set(SCORES)
    rng = np.random.default_rng(0)
    single, pair, placed = rng.normal(size=64), rng.normal(size=(64, 64)), rng.normal(size=(3, 64))
    for number, gene in enumerate(GENES):
        codons = [int(gene[start : start + 3].translate(str.maketrans("ACGT", "0123")), 4) for start in (0, 3, 6)]
        assert found["weights"][number] == pytest.approx(sum(single[codon] for codon in codons))
        assert found["pairs"][number] == pytest.approx(pair[codons[0], codons[1]] + pair[codons[1], codons[2]])
        assert found["positions"][number] == pytest.approx(sum(placed[place, one] for place, one in enumerate(codons)))
        assert found["gc"][number] == pytest.approx(abs((gene.count("G") + gene.count("C")) / 9 - 0.5))
    assert found["mfe-and-cai"] == pytest.approx(found["mfe"] - 5 * found["log-cai"])


def test_the_table_has_errors_their_difference_and_the_weight_of_bases() -> None:
    def run(seed: int) -> dict[str, object]:
        weights = {"SubsequenceKernel": 0.6 - 0.2 * seed, "LetterNgramKernel": 0.3, "HelixKernel": 0.1 + 0.2 * seed}
        errors = {"codons": 0.5 + 0.1 * seed, "bases": 0.9, "both": 0.4}
        one = {name: {"error": errors[name], "weights": weights, "doubt": 0.0} for name in MODELS}
        return {"seed": seed, "scores": dict.fromkeys(SCORES, one)}

    lines = table([run(0), run(1)]).splitlines()
    assert len(lines) == 4 + len(SCORES)
    assert "| 0.550 ± 0.050 | 0.900 ± 0.000 | 0.400 ± 0.000 | -0.150 ± 0.050 | 0.50 | 0.20 |" in lines[2]
    assert "over 2 draws" in lines[-1]
