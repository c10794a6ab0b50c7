"""Every section measures what it lists, on sizes that take no time."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from seqopt.bench.kernel import gauche, memory, report, sections, timing, yardstick
from seqopt.bench.kernel.settings import Settings

TINY = replace(Settings(threads=(1, 2)).quick(), memory=20, gram=20, order_strings=6, orders=(1, 5), counts=(4, 18))


@pytest.fixture(autouse=True)
def small_molecules(monkeypatch):
    """In place of reading a quarter of a million, and with a reference that does not wait for a second thread."""
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("CNO"), size=rng.integers(5, 12))) for _ in range(40)]
    monkeypatch.setattr(timing, "_shuffled_zinc", lambda seed: strings)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def loop():
    try:
        return yardstick.load()
    except yardstick.NoCompilerError as error:
        pytest.skip(str(error))


def measured(name):
    result = sections.SECTIONS[name](TINY)
    json.dumps(result)
    for row in result["rows"]:
        assert ("seconds" in row) != ("skipped" in row)
    return result


@pytest.mark.slow
def test_yardstick_and_cpu_are_timed_in_every_precision_and_number_of_threads(loop):
    result = measured("yardstick")
    assert len(result["rows"]) == 2 * 2 * 2 * 2
    assert {row["pairs"] for row in result["rows"]} == {20 * 21 // 2}
    assert result["differences_from_reference"]["float64"] < 1e-12
    assert result["instructions"] == loop.instructions


def test_a_yardstick_that_computes_something_else_stops_the_benchmark(loop, monkeypatch):
    class Wrong:
        def pack(self, strings):
            return loop.pack(strings)

        def sums(self, *arguments, **options):
            values, derivatives = loop.sums(*arguments, **options)
            return values, 1.001 * derivatives

    monkeypatch.setattr(yardstick, "load", Wrong)
    with pytest.raises(RuntimeError, match="differ from those of the reference engine"):
        measured("yardstick")


def test_without_a_compiler_the_rest_goes_on(monkeypatch):
    def refuse():
        raise yardstick.NoCompilerError("no compiler")

    monkeypatch.setattr(yardstick, "load", refuse)
    assert measured("yardstick") == {"rows": [], "unavailable": "no compiler"}
    rows = measured("count")["rows"]
    assert {row["engine"] for row in rows if row.get("skipped") == "no compiler"} == {"yardstick"}
    assert sum("seconds" in row for row in rows if row["engine"] == "cpu") == 2 * len(TINY.counts)


@pytest.mark.slow
def test_sweeps_hold_every_point_for_cpu_with_and_without_the_derivative():
    points = {
        "count": [(count,) for count in TINY.counts],
        "length": [(kind, length) for kind in ("DNA", "protein") for length in TINY.lengths],
        "order": [(order,) for order in TINY.orders],
        "alphabet": [(symbols,) for symbols in TINY.alphabets],
    }
    keys = {"count": ["count"], "length": ["kind", "length"], "order": ["order"], "alphabet": ["alphabet"]}
    for name, expected in points.items():
        rows = measured(name)["rows"]
        for derivative in (False, True):
            found = [
                tuple(row[key] for key in keys[name])
                for row in rows
                if row["engine"] == "cpu" and row["derivative"] == derivative
            ]
            assert found == expected
        assert "cuda" not in {row["engine"] for row in rows} or torch.cuda.is_available()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_gpu_is_timed_beside_the_processor():
    # Whether Triton interprets is decided when it is imported.
    script = """
import json
from dataclasses import replace
from seqopt.bench.kernel import sections, timing
from seqopt.bench.kernel.settings import Settings
timing._shuffled_zinc = lambda seed: ["CCNCCOC"[: 4 + i % 4] + "NO"[i % 2] for i in range(9)]
tiny = replace(Settings(threads=(1,)).quick(), gpu_counts=(4,), gpu_pool=(3, 2), gpu_lengths=(6,), gpu_strings=3)
print(json.dumps(sections.compare_gpu(tiny)))
"""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert [row["engine"] for row in result["rows"]] == ["cpu", "cuda", "device"] * 12
    assert {(row["pairs"], row["what"]) for row in result["rows"]} == {
        (10, "Gram matrix of 4 ZINC SMILES"),
        (6, "3 ZINC SMILES with 2 others"),
        (6, "Gram matrix of 3 DNA strings of 6 letters"),
    }
    assert {row["cells"] for row in result["rows"] if "DNA" in row["what"]} == {18 * 18 / 2}
    assert result["differences_from_cpu"]["float64"] < 1e-12


def test_partitions_are_those_asked_for():
    rows = measured("partitions")["rows"]
    assert [(row["length"], row["derivative"], row["partitions"]) for row in rows] == [
        (length, derivative, partitions)
        for length in TINY.partition_lengths
        for derivative in (False, True)
        for partitions in TINY.partitions
    ]


def test_features_are_timed_beside_cpu():
    rows = measured("features")["rows"]
    assert [(row["derivative"], row["engine"]) for row in rows] == [
        (False, "features"),
        (False, "cpu"),
        (True, "features"),
        (True, "cpu"),
    ]


def test_fits_with_and_without_interpolation_reach_the_same(monkeypatch):
    monkeypatch.setattr(
        "seqopt.objectives.molecules.penalized_logp", lambda strings: np.array([s.count("N") for s in strings])
    )
    rows = measured("fit")["rows"]
    assert [(row["strings"], row["restarts"], row["interpolate"]) for row in rows] == [
        (*TINY.fit, True),
        (*TINY.fit_interpolated, True),
        (*TINY.fit_interpolated, False),
    ]
    np.testing.assert_allclose(rows[1]["log_posterior"], rows[2]["log_posterior"], rtol=1e-4)


def test_memory_is_measured_for_each_way_of_caching(monkeypatch):
    jobs = []
    monkeypatch.setattr(memory, "measure", lambda job: jobs.append(job) or {"bytes": 1, "triangles": 0.1})
    rows = sections.SECTIONS["memory"](TINY)["rows"]
    assert [row["cache"] for row in rows] == ["everything", "default", "nothing"]
    assert [job["cache_bytes"] for job in jobs] == [sections.LARGEST_CACHE, None, 0]
    assert {job["strings"] for job in jobs} == {20}


@pytest.mark.slow
def test_peak_memory_counts_the_gram_matrix():
    found = memory.measure({"kernel": "seqopt", "strings": 400, "order": 2, "seed": 0, "cache_bytes": 0})
    assert found["shape"] == [400, 400]
    assert 8 * 400 * 400 <= found["bytes"] == found["peak_bytes"] - found["before_bytes"]
    assert found["triangles"] == pytest.approx(found["bytes"] / (8 * 400 * 401 / 2))


def test_without_gauche_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setattr(gauche, "installed", lambda: None)
    result = measured("gauche")
    assert result["rows"] == []
    assert "pip install --no-deps gauche" in result["unavailable"]


def test_gauche_computes_the_same_kernel_and_the_same_derivatives(monkeypatch):
    pytest.importorskip("gauche")
    monkeypatch.setattr(memory, "measure", lambda job: {"bytes": 1, "triangles": 0.1})
    result = measured("gauche")
    assert max(result["differences"]["float64"].values()) < 1e-12
    assert max(result["differences"]["float32"].values()) < 1e-4
    assert [(row["kernel"], row["dtype"], row["gradients"], row["strings"]) for row in result["rows"]] == [
        (kernel, dtype, gradients, count)
        for dtype in ("float32", "float64")
        for gradients, few in zip((False, True), TINY.gauche, strict=True)
        for kernel, count in (("gauche", few), ("seqopt", few), ("seqopt", TINY.gauche_many))
    ]


@pytest.mark.slow
def test_sharing_is_timed_beside_pairs_and_gives_the_same():
    result = measured("sharing")
    whats = list(dict.fromkeys(row["what"] for row in result["rows"]))
    assert len(whats) == 1 + 3 + 1
    assert [row["engine"] for row in result["rows"]] == ["pairs", "cpu"] * 2 * len(whats)
    table = report.table_of("sharing", result)
    assert [line[0] for line in table.rows] == [what for what in whats for _ in range(2)]
    for line in table.rows:
        assert float(line[-1]) > 0


@pytest.mark.slow
def test_fits_by_nodes_reach_what_fits_without_nodes_reach(monkeypatch):
    monkeypatch.setattr("seqopt.models.fitting.INTERPOLATED", 5)
    monkeypatch.setattr(sections, "LIBRARIES", (("variants of a short protein", 30, (1, 4), 20),))
    result = measured("nodes")
    interpolated, exact = result["rows"][::2], result["rows"][1::2]
    for some, others in zip(interpolated, exact, strict=True):
        assert 8 <= some["nodes"] <= 44
        assert others["nodes"] is None
        assert some["what"] == others["what"]
        assert len(some["seconds"]) == len(others["seconds"]) == TINY.rounds
        np.testing.assert_allclose(some["log_posterior"], others["log_posterior"], atol=1e-3)
    table = report.table_of("nodes", result)
    assert [line[0] for line in table.rows] == [
        "9 variants of a short protein",
        "9 random strings of 60 residues",
        "9 ZINC SMILES",
    ]
    assert all(float(line[-2]) > 0 for line in table.rows)


def test_variants_have_as_many_substitutions_as_asked_for():
    found = timing.variants(50, 30, (1, 3), 4, seed=0).tokens
    assert found.min() >= 1
    assert found.max() <= 4
    parent = np.array([np.bincount(column).argmax() for column in found.T])
    changes = (found != parent).sum(axis=1)
    assert set(changes) == {1, 2, 3}
    assert np.array_equal(found, timing.variants(50, 30, (1, 3), 4, seed=0).tokens)
