import numpy as np
import pytest

from seqopt.bench.euclid.published import PUBLISHED
from seqopt.bench.euclid.report import at, choosing, digits, overhead, plates, ratios, regrets, tables
from seqopt.bench.euclid.tasks import TASKS


def fidelity(seed, regret=(1.0, 0.5, 0.25), spent=(0.0, 10.0, 40.0), task="currin", method="gibbon", choose=0.5):
    steps = len(regret) - 1
    return {
        "job": {"task": task, "method": method, "seed": seed},
        "regret": list(regret),
        "spent": list(spent),
        "initial": 1,
        "points": [[0.0, 0.0, 0.0]] + [[0.0, 0.0, float(step % 2)] for step in range(steps)],
        "fit_seconds": [0.25] * steps + [100.0],
        "choose_seconds": [choose] * steps,
    }


def test_regret_at_a_cost_is_the_last_one_that_was_affordable():
    run = fidelity(0)
    assert at(run, (0.0, 9.9, 10.0, 39.0, 40.0, 500.0), True).tolist() == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    assert at(run, (0, 1, 2, 7), False).tolist() == [1.0, 0.5, 0.25, 0.25]


def test_a_single_run_is_shown_without_an_error():
    table = regrets("currin", {"gibbon": [fidelity(0)]})
    assert dict(zip(table.columns, table.rows[0], strict=True))["100"] == "0.25"


def test_overhead_leaves_out_the_fit_that_no_choice_followed():
    assert overhead([fidelity(0), fidelity(1)]) == 0.75
    assert choosing([fidelity(0)]) == 0.5


def test_a_table_of_fidelities_has_means_shares_and_paired_differences():
    runs = {
        "gibbon": [fidelity(0), fidelity(1, (1.0, 0.5, 0.75))],
        "ei": [fidelity(1, (2.0, 1.0), (0.0, 10.0), method="ei"), fidelity(0, (2.0, 1.25), (0.0, 10.0), method="ei")],
    }
    table = regrets("currin", runs)
    ours, theirs = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert ours["10"] == "0.50 ± 0.00"
    assert ours["100"] == "0.50 ± 0.25"
    assert ours["at the target"] == "50%"
    assert ours["s a step"] == "0.75"
    assert ours["published"] == "4 s"
    # Seed 0: 1.25 - 0.25, seed 1: 1 - 0.75.
    differences = np.array([1.0, 0.25])
    assert theirs["this less GIBBON, paired"] == f"{differences.mean():.2f} ± {differences.std(ddof=1) / 2**0.5:.2f}"
    assert ours["this less GIBBON, paired"] == ""


def test_a_table_of_plates_counts_those_opened_and_says_where_a_method_has_not_begun():
    def run(method, counts, worth, opened=None):
        found = fidelity(0, method=method) | {"counts": counts, "worth": worth, "regret": [1 - one for one in worth]}
        return found | ({"plates": opened} if opened else {})

    runs = {
        "bosh": [run("bosh", [12, 20, 45], [0.1, 0.5, 0.9], [2, 3, 7])],
        "fixed-5": [run("fixed-5", [40, 45], [0.4, 0.5])],
    }
    table = plates("draw-small", runs)
    ours, theirs = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert ours["plates opened"] == "5.0 (5-5)"
    assert ours["20"].startswith("0.500")
    assert theirs["20"] == theirs["30"] == "not begun"
    assert theirs["45"].startswith("0.500")


def test_ratios_are_of_gibbon_over_mumbo():
    table = ratios({"currin": {"gibbon": [fidelity(0)], "mumbo": [fidelity(0, method="mumbo", choose=1.25)]}})
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["ratio"], row["ratio without fits"], row["published ratio"]) == ("0.50", "0.40", "0.29")
    assert not ratios({"currin": {"gibbon": [fidelity(0)]}}).rows


def test_runs_make_a_table_for_each_task():
    runs = {"currin": {"gibbon": [fidelity(0)]}, "shekel-5": {"gibbon-one": [fidelity(0)]}}
    assert [table.title.split(":")[0] for table in tables(runs)] == ["Currin-2", "Shekel-4, B = 5"]


def test_published_numbers_are_of_methods_that_are_run():
    for name, by_method in PUBLISHED.items():
        assert set(by_method) <= set(TASKS[name].methods)


@pytest.mark.parametrize(("value", "expected"), [(0.0, 6), (1e-12, 6), (3.3, 1), (33.0, 0), (0.033, 3)])
def test_means_are_shown_with_two_figures(value, expected):
    assert digits([value, -value]) == expected
