"""The default beside single surrogates: which is the best, what is paired, and what the table says of it."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from seqopt.bench import standing
from seqopt.bench.boss.tasks import TASKS
from seqopt.bench.records import append_record
from seqopt.bench.standing import (
    Difference,
    Search,
    always,
    behind_by_chance,
    best_single,
    difference,
    main,
    searches,
    table,
)
from seqopt.bench.zinc import METHODS

SINGLES = {"one": "One", "two": "Two", "absent": "Absent"}


def search(**values: dict[int, float]) -> Search:
    return Search("toy", "toy", 2, "default", SINGLES, values)


def test_only_common_seeds_are_paired() -> None:
    found = difference({0: 3.0, 1: 7.0, 5: 100.0}, {0: 1.0, 1: 1.0, 9: -100.0})
    assert found == Difference(4.0, np.std([2.0, 6.0], ddof=1) / np.sqrt(2), 2)
    assert difference({0: 3.0}, {1: 3.0}) is None
    assert difference({0: 3.0}, {0: 2.0}) == Difference(1.0, None, 1)


@pytest.mark.parametrize(
    ("mean", "error", "verdict"),
    [(1.0, 0.9, "ahead"), (1.0, 1.0, "level"), (-1.0, 1.0, "level"), (-1.0, 0.9, "behind"), (5.0, None, "one seed")],
)
def test_level_is_within_one_standard_error(mean: float, error: float | None, verdict: str) -> None:
    assert Difference(mean, error, 3).verdict == verdict


def test_the_best_single_surrogate_is_that_of_the_largest_mean() -> None:
    found = search(default={0: 9.0}, one={0: 1.0, 1: 4.0}, two={0: 3.0, 1: 1.0}, random={0: 8.0})
    assert best_single(found) == "one"
    assert best_single(search(default={0: 9.0}, random={0: 8.0})) is None


def test_the_table_marks_where_the_default_is_behind() -> None:
    ours = {0: 1.0, 1: 2.0, 2: 3.0}
    text = table(
        [
            search(default=ours, one={0: 2.0, 1: 3.0, 2: 5.0}, random={0: 0.0, 1: 0.0, 2: 0.0}),
            search(default=ours, random={7: 0.0}),
        ]
    )
    rows = text.splitlines()[2:4]
    assert rows[0] == "| toy | One | -1.33 ± 0.33 | 3 | **behind** | 2.00 ± 0.58 | 3 | ahead |"
    assert rows[1] == "| toy |  |  |  |  |  |  |  |"
    assert "Against the best single surrogate: ahead 0, level 0, behind 1, one seed 0 of 1 rows." in text
    assert "Against random search: ahead 1, level 0, behind 0, one seed 0 of 1 rows." in text


def of_runs(runs: str, singles: dict[str, str], **values: dict[int, float]) -> Search:
    return Search("toy", runs, 2, "default", singles, values)


def test_of_two_equals_one_is_behind_as_often_as_their_differences_have_that_sign() -> None:
    # With two methods and three seeds, exchanges give the differences 1, 2 and 3 all signs. Means of -2 (of -1, -2
    # and -3) and -4/3 (1, -2 and -3) have standard errors of 0.58 and 1.20 by hand; -2/3 and less are within theirs.
    ours, other = {0: 1.0, 1: 2.0, 2: 3.0}, {0: 0.0, 1: 0.0, 2: 0.0}
    share = 2 / 8
    apart = [of_runs(str(number), SINGLES, default=ours, one=other) for number in range(4)]
    mean, deviation = behind_by_chance(apart, np.random.default_rng(0))
    assert mean == pytest.approx(4 * share, abs=0.15)
    assert deviation == pytest.approx(np.sqrt(4 * share * (1 - share)), abs=0.08)
    # By more than two standard errors it is in the first case only.
    mean, _ = behind_by_chance(apart, np.random.default_rng(2), errors=2.0)
    assert mean == pytest.approx(4 / 8, abs=0.12)
    # Four looks at the same runs are behind together, or not at all.
    mean, deviation = behind_by_chance([apart[0]] * 4, np.random.default_rng(1))
    assert mean == pytest.approx(4 * share, abs=0.3)
    assert deviation == pytest.approx(4 * np.sqrt(share * (1 - share)), abs=0.2)


def test_of_several_equals_the_best_is_the_one_to_be_behind() -> None:
    # Of three equals whose results are 0, 1 and 2 in each of two seeds, by enumeration of the 36 exchanges. Seeds that
    # one of them lacks are exchanged among the others.
    values = [0.0, 1.0, 2.0]
    behind = 0
    for first, second in product(permutations(values), repeat=2):
        best = max(range(1, 3), key=lambda one: first[one] + second[one])
        found = np.array([first[0] - first[best], second[0] - second[best]])
        behind += found.mean() < -found.std(ddof=1) / np.sqrt(2)
    three = of_runs(
        "a", SINGLES, **{name: {0: v, 1: v} for name, v in zip(("default", "one", "two"), values, strict=True)}
    )
    mean, _ = behind_by_chance([three], np.random.default_rng(0))
    assert mean == pytest.approx(behind / 36, abs=0.06)
    seeds = {seed: float(seed) for seed in range(4)}
    uneven = of_runs("b", SINGLES, default=seeds, one=dict.fromkeys(seeds, 100.0), two={0: 50.0})
    mean, _ = behind_by_chance([uneven], np.random.default_rng(0))
    assert 0.05 < mean < 0.5  # at the one seed of all three alone it never would be


def test_no_row_of_equal_results_is_behind_by_chance() -> None:
    same = {0: 1.0, 1: 1.0}
    assert behind_by_chance([search(default=same, one=same), search(default=same)], np.random.default_rng(0)) == (0, 0)


def test_a_single_surrogate_that_is_always_taken_is_held_against_the_best_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standing, "ALWAYS", 2)
    low, middle, high = ({seed: level + 0.1 * seed * (seed - 1) for seed in range(3)} for level in (0.0, 1.0, 2.0))
    found = [
        of_runs("a", {"a": "SSK-ga", "b": "ssk, transform learned", "c": "minmax"}, **values)
        for values in (
            {"default": middle, "a": low, "b": high, "c": low, "random": middle},
            {"default": middle, "a": middle, "c": low, "random": low},
            {"default": middle, "a": low, "random": high},
        )
    ]
    rows = always(found).splitlines()[2:]
    # With the learned transform it is ahead of minmax and random search, without it in the second row of the former.
    # Where it is the only single surrogate it has none to be held against.
    assert rows[0] == "| ssk | 2 | 0 | 1 | 0 | 0 |"
    assert rows[1] == "| minmax | 2 | 2 | 1 | 1 | 0 |"


def test_stored_runs_are_read_with_the_sign_of_their_task(tmp_path: Path) -> None:
    assert TASKS["formula-1"].direction == "minimize"
    for method, values in {"default": [5.0, 1.0], "ngram-ga": [4.0, 2.0], "random": [3.0, 3.0]}.items():
        for seed in (0, 1):
            run = {
                "job": {"task": "formula-1", "method": method, "seed": seed},
                "settings": {},
                "initial": ["x"],
                "chosen": ["x+x"],
                "values": [values[0], values[1] + seed * (method == "default")],
            }
            append_record(tmp_path / "boss" / f"{method}.jsonl", run, ["job"])
    (found,) = searches(tmp_path)
    assert found.values["default"] == {0: -1.0, 1: -2.0}  # the least of each run
    document = tmp_path / "results.md"
    document.write_text("<!-- begin standing -->\n<!-- end standing -->\n")
    main(["--results", str(tmp_path), "--document", str(document)])
    text = document.read_text()
    assert "| n-gram-ga | 0.500 ± 0.500 | 2 | level | 1.500 ± 0.500 | 2 | ahead |" in text
    assert "it would be behind in 0.0 ± 0.0 rows" in text  # differences of 1 and 0, or of -1 and 0, are level
    assert "| always | rows |" in text


def test_single_surrogates_are_those_on_transformed_values_as_well(tmp_path: Path) -> None:
    for method, count in {"default": 3.0, "ngram-ga": 1.0, "ngram-ga-auto": 2.0}.items():
        run = {"job": {"task": "101", "method": method, "seed": 0}, "settings": {}, "values": [0.0, count]}
        append_record(tmp_path / "boss" / f"{method}.jsonl", run, ["job"])
    prefix = "full-gibbon-10-"
    for method, best in {"ngrams+counts": 4.0, "ngrams": 2.0, "minmax": 1.0, "minmax-auto": 3.0}.items():
        name = prefix + method
        run = {"job": {"method": name, "seed": 0}, "method": METHODS[name].settings, "values": [best] * 120}
        append_record(tmp_path / "zinc" / f"{name}.jsonl", run, ["job"])
    boss, *zinc = searches(tmp_path)
    assert best_single(boss) == "ngram-ga-auto"
    assert {best_single(one) for one in zinc} == {f"{prefix}minmax-auto"}
    assert "| minmax, transform learned | 1.00 |" in table(zinc)


def test_variants_are_compared_after_each_plate(tmp_path: Path) -> None:
    from seqopt.bench.gb1 import space_of

    _, scores = space_of("variants")
    order = np.argsort(-scores, kind="stable").tolist()
    for method, indices in {"mixture-gibbon": order[1:121], "hamming-gibbon": order[24:48] + order[:96]}.items():
        append_record(
            tmp_path / "variants" / f"{method}.jsonl",
            {"job": {"method": method, "seed": 0}, "indices": indices},
            ["job"],
        )
    found = list(searches(tmp_path))
    assert [one.label.rpartition(" ")[2] for one in found] == ["48", "72", "96", "120"]
    assert best_single(found[0]) == "hamming-gibbon"
    second = scores[order[1]] / scores[order[0]]
    assert found[0].values["mixture-gibbon"][0] == pytest.approx(second)
    assert found[0].values["hamming-gibbon"][0] == 1.0
