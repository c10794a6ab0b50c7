"""Searches with cheap and expensive measurements in one call: `seqopt.maximize(..., fidelities=...)`."""

import itertools
import json
import logging
import math

import pandas as pd
import pytest

import seqopt
from seqopt.campaign import Campaign
from seqopt.data import Contexts, Query
from seqopt.datasets import read_pool
from seqopt.errors import InputError, RunFolderError, StoppedRunError
from seqopt.models import FullyBayesianGP
from seqopt.spaces import CandidateSet
from seqopt.strategies import MultiFidelity, PlateSearch, fidelity

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=6)]
CHEAP, DEAR = (("fidelity", "docking"),), (("fidelity", "assay"),)


def _simplified(patch):
    """The model's kernel is fitted once, from one start, and no page is written, which has tests of its own."""
    usual = fidelity.default_contexts

    def quick(*arguments, **options):
        gp = usual(*arguments, **options)
        gp.restarts, gp.refit_growth = 1, 100.0
        return gp

    patch.setattr(fidelity, "default_contexts", quick)
    patch.setattr("seqopt.api._write_report", lambda folder: None)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    _simplified(monkeypatch)


def assay(strings):
    return [float(string.count("AB")) for string in strings]


def docking(string: str) -> float:
    return string.count("AB") + 0.3 * string.count("B")


def search(**options):
    given = {"fidelities": {"docking": (docking, 0.05)}, "initial": 6, "batch_size": 3, "budget_cost": 8.0, **options}
    return seqopt.maximize(assay, POOL, **given)


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch:
        _simplified(patch)
        return search()


def test_a_search_measures_cheaply_and_finds_the_best_by_the_target(result):
    frame = result.evaluations
    first = frame.head(8)
    # A small screen, and then two targets: without them nobody can know what the screen tells of it.
    assert first["fidelity"].tolist() == ["docking"] * 6 + ["target"] * 2
    assert first["key"].head(6).nunique() == 6
    exact = frame[frame["fidelity"] == "target"]
    assert result.best_value == exact["value"].max()
    assert (exact["cost"] == 1.0).all()
    assert (frame.loc[frame["fidelity"] == "docking", "cost"] == 0.05).all()
    for row in frame.itertuples():
        assert row.value == (assay([row.string])[0] if row.fidelity == "target" else docking(row.string))
    spent = frame["cost"].sum()
    # Never more than was allowed, and as much as a measurement of the target could still be paid from.
    assert 7.0 < spent <= 8.0
    assert result.steps[-1].cost == pytest.approx(spent)


def test_the_recommended_string_has_the_largest_posterior_mean_of_the_target(result):
    found = result.recommend()
    keys = result.evaluations["key"].unique()
    mean, _ = result.optimizer.predict(list(keys))
    assert found.predicted_mean == pytest.approx(mean.max())
    frame = result.evaluations
    own = frame[(frame["key"] == found.string) & (frame["fidelity"] == "target")]
    assert found.values == tuple(own["value"])


def test_an_objective_of_queries_needs_costs_only():
    def both(queries):
        return [docking(q.key) if q.get("fidelity") == "docking" else assay([q.key])[0] for q in queries]

    one = seqopt.maximize(both, POOL, fidelities={"docking": 0.05}, initial=6, batch_size=3, budget_cost=5.0)
    two = search(budget_cost=5.0)
    assert one.evaluations.drop(columns="seconds").equals(two.evaluations.drop(columns="seconds"))


def test_it_is_a_short_form_of_contexts():
    contexts = Contexts.of_levels("fidelity", {"target": 1.0, "docking": 0.05}, target="target")
    result = search(budget=2, budget_cost=None)
    assert result.optimizer.contexts == contexts
    assert isinstance(result.optimizer.strategy.then, MultiFidelity)
    assert len(result.evaluations) == 8


@pytest.mark.parametrize("cost", [None, 400.0])
def test_a_budget_of_evaluations_is_no_budget_in_cost(cost):
    # In units in which every measurement costs more than there are evaluations.
    options = {"fidelities": {"docking": (docking, 5.0)}, "target_cost": 100.0, "initial": 4, "batch_size": 2}
    result = search(**options, budget=2, budget_cost=cost)
    assert result.evaluations["fidelity"].tolist() == ["docking"] * 4 + ["target"] * 2
    assert len(result.evaluations) == 6


@pytest.mark.parametrize("unit", [100.0, 0.01])
def test_a_budget_of_evaluations_counts_them_whatever_they_cost(unit):
    ways = {"docking": (docking, 0.02 * unit)}
    frame = search(fidelities=ways, target_cost=unit, budget=3, budget_cost=None).evaluations
    assert len(frame) == 9
    assert frame["fidelity"].tolist() == ["docking"] * 6 + frame["fidelity"].tolist()[6:]
    assert frame["fidelity"].tolist().count("target") >= 2


def test_what_is_left_of_a_budget_in_cost_buys_whole_batches_of_cheap_measurements():
    frame = search(budget_cost=5.0).evaluations
    spent = frame.groupby("batch")["cost"].sum().cumsum()
    batches = frame[~frame["batch"].isin([frame["batch"].min(), frame["batch"].max()])].groupby("batch")
    assert set(batches["string"].count()) == {3}, spent
    assert spent.iloc[-1] <= 5.0


@pytest.mark.slow
def test_a_run_resumes_exactly(tmp_path):
    whole = search(budget=6, run_folder=tmp_path / "whole")
    search(budget=3, run_folder=tmp_path / "part")
    part = search(budget=6, run_folder=tmp_path / "part", resume=True)
    columns = ["string", "fidelity", "value", "batch", "cost"]
    assert part.evaluations[columns].equals(whole.evaluations[columns])
    with pytest.raises(RunFolderError, match="other settings"):
        search(fidelities={"docking": (docking, 0.1)}, run_folder=tmp_path / "part", resume=True)
    summary = json.loads((tmp_path / "part" / "summary.json").read_text())
    frame = pd.read_csv(tmp_path / "part" / "evaluations.csv")
    assert {one["context"]["fidelity"]: one["cost"] for one in summary["costs"]} == pytest.approx(
        frame.groupby("fidelity")["cost"].sum().to_dict()
    )
    (learned,) = summary["learned"]
    assert learned["context"] == {"fidelity": "docking"}
    assert -1 <= learned["correlation"] <= 1
    assert "offset" not in learned  # each has a unit of its own


@pytest.mark.slow
def test_a_larger_budget_in_cost_extends_a_run(tmp_path):
    first = search(budget_cost=5.0, run_folder=tmp_path / "run")
    more = search(budget_cost=7.0, run_folder=tmp_path / "run", resume=True)
    assert more.evaluations["string"].tolist()[: len(first.evaluations)] == first.evaluations["string"].tolist()
    assert first.evaluations["cost"].sum() <= 5.0 < more.evaluations["cost"].sum() <= 7.0


def test_known_results_cost_nothing():
    known = {string: assay([string])[0] for string in POOL[:6]}
    result = search(known=known, budget_cost=6.0)
    frame = result.evaluations
    assert (frame.head(6)["cost"] == 0.0).all()
    assert 5.0 < frame["cost"].sum() <= 6.0


def test_what_a_string_cannot_be_measured_by_is_not_asked_for(tmp_path, caplog):
    path = tmp_path / "pool.csv"
    rows = [f"{s},{docking(s) if i % 2 else ''},{assay([s])[0]}" for i, s in enumerate(POOL)]
    path.write_text("\n".join(["sequence,docking,assay", *rows]))
    pool = read_pool(path, kind="text", values_column="assay", further_values=["docking"])
    with caplog.at_level(logging.WARNING):
        result = seqopt.maximize(
            "column:assay", pool, fidelities={"docking": ("column:docking", 0.05)}, initial=6, batch_size=3, budget=9
        )
    assert "32 of 64 candidates have no number in column 'docking'" in caplog.text
    frame = result.evaluations
    assert (frame["status"] == "ok").all()
    assert len(frame) == 15
    cheap = frame[frame["fidelity"] == "docking"]
    assert len(cheap)
    assert all(POOL.index(string) % 2 for string in cheap["string"])


def test_nothing_measured_as_the_target_yet(caplog):
    def fails(strings):
        raise RuntimeError(f"no sample of {strings[0]}")

    with caplog.at_level(logging.WARNING):
        result = seqopt.maximize(
            fails, POOL, fidelities={"docking": (docking, 0.05)}, initial=8, batch_size=4, budget=4, seed=1
        )
    assert result.best_string == ""
    assert math.isnan(result.best_value)
    assert "nothing was measured as the target yet" in caplog.text
    assert "nothing was measured as the target yet" in repr(result)
    found = result.recommend()
    assert found.values == ()
    assert found.string in set(result.evaluations["key"])


def test_nothing_measured_at_all_is_still_an_error():
    def fails(strings):
        raise RuntimeError("no sample")

    with pytest.raises(StoppedRunError):
        seqopt.maximize(fails, POOL, fidelities={"docking": (fails, 0.05)}, initial=4, batch_size=4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget_cost": 0.5}, "one measurement of the target costs 1: raise it"),
        (
            {"budget_cost": 1.2},
            "6 initial measurements and one measurement of the target cost 1.3, more than the budget",
        ),
        (
            {"budget_cost": 2.0, "fidelities": {"old assay": (str, 1.05)}},
            "6 initial measurements cost 6.15, more than the budget of 2",
        ),
        ({"budget_cost": -1.0}, "expected a positive number"),
        ({"target_cost": 0.0}, "cost of target is 0.0"),
        ({"contexts": Contexts.of_levels("fidelity", {"a": 1.0}, target="a")}, "short form of contexts"),
        ({"surrogate": "sssk"}, "unknown kernel 'sssk'"),
        ({"surrogate": "mixture"}, "or several: give one"),
        ({"plates": True}, "short form of contexts"),
        ({"acquisition": "logei"}, "choose"),
        ({"fidelities": {"docking": ("column:docking", 0.05)}}, "were not read from a file"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_evaluated(options, said):
    def never(strings):
        raise AssertionError("evaluated")

    given = {"fidelities": {"docking": (never, 0.05)}, "initial": 6, "budget_cost": 8.0, **options}
    with pytest.raises(InputError, match=said):
        seqopt.maximize(never, POOL, **given)


def test_a_budget_pays_for_folds_of_unequal_cost_in_their_turns():
    folds = Contexts(((("fold", "a"),), (("fold", "b"),)), (), (1.0, 3.0))

    def measured(queries):
        return [query.key.count("A") + 0.1 * (query.get("fold") == "b") for query in queries]

    given = {"contexts": folds, "strategy": MultiFidelity(), "initial": 4, "budget": 4, "batch_size": 2}
    # Two of each fold, and no more: the dearest fold four times would cost 12.
    result = seqopt.maximize(measured, POOL, **given, budget_cost=8.0)
    assert result.evaluations["fold"].tolist() == ["a", "b", "a", "b"]
    with pytest.raises(InputError, match=r"4 initial measurements cost 8, more than the budget of 7.9"):
        seqopt.maximize(measured, POOL, **given, budget_cost=7.9)
    with pytest.raises(InputError, match=r"budget in cost is 0.5, and the cheapest measurement costs 1: raise it"):
        seqopt.maximize(measured, POOL, **given, budget_cost=0.5)


def test_a_campaign_of_folds_takes_a_budget(tmp_path):
    folds = Contexts(((("fold", "a"),), (("fold", "b"),)), (), (1.0, 3.0))
    given = {"objective": "y", "contexts": folds, "strategy": MultiFidelity(), "batch_size": 2}
    with pytest.raises(InputError, match=r"0.5 does not pay for the cheapest measurement .a., which costs 1"):
        Campaign.create(tmp_path / "a.seqopt", POOL, **given, budget=0.5)
    with Campaign.create(tmp_path / "a.seqopt", POOL, **given, budget=5.0) as campaign:
        assert [dict(row.context)["fold"] for row in campaign.suggest(2)] == ["a", "b"]
    with pytest.raises(InputError, match="does not go with plates"):
        Campaign.create(tmp_path / "b.seqopt", POOL, objective="y", plates=8, budget=5.0)


def test_costs_without_fidelities_are_refused():
    with pytest.raises(InputError, match="needs several ways to measure"):
        seqopt.maximize(assay, POOL, budget_cost=10.0)
    with pytest.raises(InputError, match="go with fidelities"):
        seqopt.maximize(assay, POOL, target="assay")


def test_ask_and_tell_say_what_was_spent():
    contexts = Contexts.of_levels("fidelity", {"docking": 0.05, "assay": 1.0}, target="assay")
    optimizer = seqopt.Optimizer(
        CandidateSet(POOL),
        strategy=MultiFidelity(),
        contexts=contexts,
        initial=6,
        initial_contexts="all",
        unavailable=[Query(key, {"fidelity": "docking"}) for key in POOL[::2]],
    )
    asked = []
    while len(asked) < 6:
        batch = optimizer.ask().queries
        optimizer.tell(batch, [docking(query.key) for query in batch])
        asked += batch
    # Of a string that lacks the cheap value only the target is asked for; the design goes on until it is full.
    assert not {query.key for query in asked if query.context == CHEAP} & set(POOL[::2])
    assert len({query.key for query in asked if query.context == DEAR}) >= 3
    optimizer.tell([Query("ABABAB", {"fidelity": "docking"})], [3.9])
    numbers = {context: sum(query.context == context for query in asked) for context in (CHEAP, DEAR)}
    costs = {CHEAP: 0.05, DEAR: 1.0}
    expected = {one: (count, pytest.approx(costs[one] * count)) for one, count in numbers.items() if count}
    assert optimizer.spent() == expected
    assert optimizer.to_pandas()["cost"].iloc[-1] == 0.0


def test_an_initial_design_may_be_a_small_screen():
    contexts = Contexts.of_levels("fidelity", {"docking": 0.05, "assay": 1.0}, target="assay")
    given = {"strategy": MultiFidelity(), "contexts": contexts, "initial": len(POOL), "batch_size": 2}
    optimizer = seqopt.Optimizer(CandidateSet(POOL), **given, initial_contexts="cheap")
    known = [Query(key, CHEAP) for key in POOL[:-4]]
    optimizer.tell(known, [docking(query.key) for query in known])
    batch = optimizer.ask().queries
    # The four that are missing, none of them known already.
    assert [query.context for query in batch] == [CHEAP] * 4
    assert {query.key for query in batch} == set(POOL[-4:])
    optimizer.tell(batch, [docking(query.key) for query in batch])
    assert [query.context for query in optimizer.ask().queries] == [DEAR] * 2


def test_where_nothing_can_be_measured_cheaply_a_screen_measures_the_target():
    contexts = Contexts.of_levels("fidelity", {"docking": 0.05, "assay": 1.0}, target="assay")
    optimizer = seqopt.Optimizer(
        CandidateSet(POOL),
        strategy=MultiFidelity(),
        contexts=contexts,
        initial=3,
        initial_contexts="cheap",
        unavailable=[Query(key, CHEAP) for key in POOL],
    )
    batch = optimizer.ask().queries
    assert [query.context for query in batch] == [DEAR] * 3


SHIFTS = {"P1": 0.0, "P2": 2.0}


def on_plate(queries):
    return [assay([query.key])[0] + SHIFTS.get(query.get("plate"), -1.0) for query in queries]


def test_plates_shift_all_values_and_the_answer_does_not_depend_on_them(tmp_path):
    result = seqopt.maximize(
        on_plate, POOL, plates=True, initial=8, budget=4, batch_size=4, seed=1, run_folder=tmp_path / "run"
    )
    frame = result.evaluations
    assert frame.head(8)["plate"].tolist() == ["P1", "P2"] * 4
    assert isinstance(result.optimizer.strategy.then, PlateSearch)
    for row in frame.itertuples():
        assert row.value == assay([row.string])[0] + SHIFTS.get(row.plate, -1.0)
    found = result.recommend()
    mean, _ = result.optimizer.predict(frame["key"].unique().tolist())
    assert found.predicted_mean == pytest.approx(mean.max())
    learned = {
        one["context"]["plate"]: one for one in json.loads((tmp_path / "run/summary.json").read_text())["learned"]
    }
    # Only differences between plates can be known.
    difference = learned["P2"]["offset"] - learned["P1"]["offset"]
    assert difference == pytest.approx(2.0, abs=0.5)
    assert learned["P1"]["offset_low"] < learned["P1"]["offset"] < learned["P1"]["offset_high"]


def test_plates_that_are_known_come_first():
    result = seqopt.maximize(on_plate, POOL, plates=["May", "June"], initial=4, budget=0)
    assert result.evaluations["plate"].tolist() == ["May", "June"] * 2


@pytest.mark.parametrize(
    ("plates", "said"),
    [("P1", "expected True, or a list"), (3, "expected True, or a list"), (["a", "a"], "given twice"), ([1], "a text")],
)
def test_plates_that_cannot_be_used(plates, said):
    with pytest.raises(InputError, match=said):
        seqopt.maximize(on_plate, POOL, plates=plates)


def test_a_run_on_plates_resumes_exactly(tmp_path):
    given = {"plates": True, "initial": 6, "batch_size": 2, "seed": 2}
    whole = seqopt.maximize(on_plate, POOL, budget=4, run_folder=tmp_path / "whole", **given)
    seqopt.maximize(on_plate, POOL, budget=2, run_folder=tmp_path / "part", **given)
    part = seqopt.maximize(on_plate, POOL, budget=4, run_folder=tmp_path / "part", resume=True, **given)
    columns = ["string", "plate", "value", "batch"]
    assert part.evaluations[columns].equals(whole.evaluations[columns])


@pytest.mark.parametrize(("name", "averaged"), [("ngrams", False), ("ssk-bayes", True)])
def test_a_surrogate_by_name_gives_its_kernel_on_strings(name, averaged):
    result = search(surrogate=name, budget=0, budget_cost=None)
    surrogate = result.optimizer.surrogate
    assert isinstance(surrogate, FullyBayesianGP) == averaged
    (kernel,) = surrogate.kernels if averaged else [surrogate.kernel]
    kernels = {type(module).__name__ for module in kernel.modules()}
    assert {"CoregionalizationKernel", "SubsequenceKernel" if averaged else "NgramKernel"} <= kernels
