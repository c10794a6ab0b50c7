"""The benchmark of genes: what is stored stands, energies are computed once, searches are held against the optimum."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from seqopt.bench import gene_energies, genes
from seqopt.objectives import MinimumFreeEnergy
from seqopt.spaces import CodonSpace
from seqopt.strings.genetic_codes import genetic_code

RECORD = {
    "command": "seqopt bench genes",
    "machine": {"processor": "Abacus", "cores": 2, "platform": "Clay"},
    "versions": {"seqopt": "1.2", "dnachisel": "3.2"},
}
HAIRPIN = "GGGGGGAAAAAACCCCCC"


def run(method: str, gene: str) -> dict:
    job = {"protein": "random-6", "host": "human", "method": method}
    judged = {"residues": 6, "gene": gene, "cai": 0.9, "violations": 0, "seconds": 0.1}
    return {**job, **judged, "record": RECORD}


def test_energies_are_computed_once_for_each_gene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "energies.jsonl"
    first = gene_energies.energies_of([HAIRPIN, HAIRPIN], path, RECORD)
    assert first == {HAIRPIN: pytest.approx(float(MinimumFreeEnergy()([HAIRPIN])[0]))}
    assert first[HAIRPIN] < -5
    assert len(path.read_text().splitlines()) == 1
    monkeypatch.setattr(MinimumFreeEnergy, "__call__", lambda *_: pytest.fail("folded again"))
    assert gene_energies.energies_of([HAIRPIN], path, RECORD) == first


def test_what_is_stored_of_a_program_that_is_not_there_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "dnachisel" else found(name))
    monkeypatch.setattr(genes, "measured", lambda *_: {"how": "warm"})
    results, document = tmp_path / "genes.jsonl", tmp_path / "results.md"
    document.write_text("<!-- begin genes -->\nworn\n<!-- end genes -->\n")
    stored = [run("exact", HAIRPIN), run("chisel", "ATGAAAGGAAAAAAAGGA")]
    stored = [{**one, "protein": "random-50"} for one in stored]
    results.write_text("".join(json.dumps(one) + "\n" for one in stored))
    monkeypatch.setattr(genes, "append_record", lambda *_: pytest.fail("measured again"))
    monkeypatch.setattr(genes, "run_key", lambda *_: "known")
    genes.main(
        ["--results", str(results), "--document", str(document), "--proteins", "random-50", "--methods", "exact"]
    )
    text = document.read_text()
    assert "CAI, DNA Chisel" in text
    energies = MinimumFreeEnergy()([HAIRPIN, "ATGAAAGGAAAAAAAGGA"])
    assert f"| {energies[0]:.1f} / {energies[1]:.1f} |" in text
    assert (tmp_path / "genes-energies.jsonl").exists()


def test_random_proteins_are_the_same_each_time() -> None:
    assert genes.random_protein(40) == genes.random_protein(40)
    assert set(genes.random_protein(300)) <= set(genetic_code("standard").synonyms)
    assert {len(one.sequence) for one in genes.proteins()} >= set(genes.LENGTHS)


def test_a_search_is_held_against_the_least_energy_of_all_genes(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    runs = gene_energies.search_runs(path, [5], 2, 6, RECORD)
    assert [(one["residues"], one["seed"], one["evaluations"]) for one in runs] == [(5, 0, 6), (5, 1, 6)]
    for one in runs:
        assert one["least"] <= one["found"] <= one["random"]
        assert CodonSpace(genes.random_protein(5)).contains(one["gene"])
    before = path.read_text()
    assert gene_energies.search_runs(path, [5], 2, 6, RECORD) == runs
    assert path.read_text() == before
    text = gene_energies.search_table(runs)
    assert f"| 5 | 6 | 2 | {gene_energies.with_error([one['random'] for one in runs], 2)} |" in text
    half = [{**one, "least": -8.0, "found": -4.0} for one in runs]
    assert "| -8.00 | 50% |" in gene_energies.search_table(half)
