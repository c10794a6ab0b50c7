"""The tasks are those of the thesis."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt.bench.boss.methods import DEFAULT_METHODS, METHODS, Setting
from seqopt.bench.boss.published import PRINTED, PUBLISHED
from seqopt.bench.boss.tasks import LONG, PARTITIONS, PROTEINS, SEEDS, TASKS

BEST = {
    "101": "10101010101010101010",
    "101-disjoint": "10110110110110110100",
    "10xx1": "10" * 8 + "1011",
    "101-disjoint-first-15": "101" * 5 + "0" * 15,
    "101-noisy": "10101010101010101010",
    "123-disjoint": "123" * 10,
    "01xx4": None,
}
"""Strings with the largest counts, made by hand where that is easy."""


def test_budgets_and_aims_of_the_table() -> None:
    rows = [(name, task.initial, task.steps, task.largest, task.aim) for name, task in TASKS.items() if task.aim]
    assert rows == [
        ("101", 2, 10, 9, 95),
        ("101-disjoint", 2, 15, 6, 95),
        ("10xx1", 2, 25, 8, 95),
        ("101-disjoint-first-15", 2, 40, 5, 95),
        ("101-noisy", 2, 25, 9, 95),
        ("123-disjoint", 4, 20, 10, 90),
        ("01xx4", 5, 50, 5, 75),
    ]
    assert [name for name, *_ in rows] == list(PUBLISHED)
    assert [name for name, task in TASKS.items() if task.noisy] == ["101-noisy"]
    others = [(task.initial, task.steps) for task in TASKS.values() if not task.aim]
    assert others == [(5, 50), (5, 100), (5, 100), (5, 10), *[(15, 25)] * 4, (15, 35)]
    assert SEEDS == {"synthetic": 100, "genes": 15, "regression": 15, "molecules": 15}
    assert [name for name, task in TASKS.items() if task.runs != SEEDS[task.part]] == [LONG]


# To fold the longest gene takes seconds, and molecules need all of ZINC: see below and `test_molecules`.
@pytest.mark.parametrize("name", [name for name in TASKS if name not in (LONG, "molecules")])
def test_every_space_holds_what_its_objective_scores(name: str) -> None:
    task = TASKS[name]
    space = task.space()
    strings = space.sample(8, np.random.default_rng(0))
    values = task.objective(0)(strings)
    assert values.shape == (8,)
    assert np.isfinite(values).all()
    assert all(map(space.contains, strings))
    if task.noisy:
        assert task.noiseless is not None
        values = task.noiseless(strings)
    if task.largest is not None:
        assert (values <= task.largest).all()
    best = BEST.get(name)
    if best is not None:
        assert space.contains(best)
        assert (task.noiseless or task.objective(0))([best]).tolist() == [task.largest]


def test_genes_and_formulas_are_the_published_ones() -> None:
    space = TASKS["peptide-10"].space()
    assert space.size == 55_296
    assert space.contains("ACTATTAAAGAAAATATTTTTGGTGTTTCT")
    lengths = {name: len(TASKS[name].space().sample(1, np.random.default_rng(0))[0]) for name in PROTEINS}
    assert lengths == {"peptide-10": 30, "thesis-60": 180, "thesis-121": 363, "abl1-1130": 3390}
    assert all(PARTITIONS[name] <= length // 3 for name, length in lengths.items())
    assert TASKS["regression"].objective(0)(["1/3+x+sin(x*x)"]).tolist() == pytest.approx([0.0], abs=1e-12)
    assert not TASKS["regression"].space().contains("x")


def test_names_are_file_names_on_every_system() -> None:
    assert all(set(name).isdisjoint('?*:<>|"/\\ ') for name in [*TASKS, *METHODS])


def setting(task: str) -> Setting:
    return Setting(task, TASKS[task].part, TASKS[task].space())


def test_the_default_methods_leave_everything_to_the_optimiser_but_what_is_compared() -> None:
    ours = ("default", "ssk-ga", "ssk-rs", "ngram-ga", "one-hot-ga", "codons-ga")
    assert DEFAULT_METHODS[:6] == ours
    here = setting("101")
    assert METHODS["ngram-ga"].arguments(here) == {"surrogate": "ngrams", "transform": "none"}
    assert METHODS["ngram-ga-auto"].arguments(here) == {"surrogate": "ngrams", "transform": "auto"}
    assert METHODS["default"].arguments(here) == {}
    assert METHODS["ssk-ga"].arguments(here) == {"surrogate": "ssk-bayes", "transform": "none"}
    search = METHODS["ssk-rs"].arguments(here)
    assert list(search) == ["surrogate", "search", "transform"]
    assert search["search"].candidates == 10_000
    assert not METHODS["ssk-ga-unseeded"].arguments(here)["search"].seeded


def test_the_published_methods_differ_in_what_their_names_say() -> None:
    here, genes = setting("101"), setting("thesis-60")
    built = METHODS["boss"].arguments(here)
    assert (built["surrogate"].priors, built["acquisition"].incumbent, built["search"].patience) == (False, "value", 1)
    assert built["transform"] == "none"
    learned = METHODS["boss-auto"].arguments(here)
    assert learned["transform"] == "auto"
    assert learned.keys() == built.keys()
    assert METHODS["boss-rs"].arguments(here)["search"].candidates == 10_000
    assert METHODS["boss-patient"].arguments(here)["search"].patience == 10
    noises = [METHODS["boss-code"].arguments(setting(name))["surrogate"].noise for name in ("101", "101-noisy")]
    assert noises == [1e-6, None]
    assert type(METHODS["boss-ngram"].arguments(here)["surrogate"].kernel).__name__ == "NgramKernel"
    assert type(METHODS["boss-one-hot"].arguments(here)["surrogate"].kernel).__name__ == "OneHotKernel"
    (gene,) = genes.space.sample(1, np.random.default_rng(0))
    for name, parts, symbols in (
        ("boss", 1, 60),
        ("boss-parts", 4, 60),
        ("boss-bases", 1, 180),
        ("boss-bases-parts", 12, 180),
    ):
        surrogate = METHODS[name].arguments(genes)["surrogate"]
        surrogate.bind(genes.space)
        assert surrogate.kernel.partitions == parts
        assert int(surrogate.encoder.encode([gene]).lengths[0]) == symbols
    assert set(PRINTED) <= set(METHODS)
    assert set(PRINTED.values()) <= set(PUBLISHED["101"])
