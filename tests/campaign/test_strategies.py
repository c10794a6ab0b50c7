"""Campaigns and runs in which a strategy decides, strings are measured in several ways, or several things are."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import seqopt
from seqopt.campaign import Campaign, CampaignError, CampaignStore
from seqopt.campaign.run_folders import CAMPAIGN
from seqopt.campaign.summary import render, summarize
from seqopt.data import Contexts, Outcome, Query
from seqopt.data.transforms import Log10
from seqopt.errors import InputError, ObjectiveError, RunFolderError
from seqopt.models import StringGP
from seqopt.models.classifiers import NgramTrees
from seqopt.search import Proposal
from seqopt.spaces import StringSpace
from seqopt.strategies import BORE, FeasibleModelBased, ModelBased, MultiFidelity, RandomStrategy, Strategy

SPACE = StringSpace("AB", 8)
LEVELS = Contexts.of_levels("fidelity", {"docking": 0.05, "assay": 1.0}, target="assay")
SOLUBILITY = Outcome("solubility", role="constraint", bound=2.0)


def value(string: str) -> float:
    return string.count("AB") + 0.25 * string.startswith("A")


def measured(string: str, context: dict[str, Any]) -> float:
    """An assay, or a docking score that knows half of it."""
    return value(string) if context.get("fidelity", "assay") == "assay" else 0.5 * value(string) + 0.1


class Fails:
    """An objective that cannot score strings with three equal letters in a row."""

    name = "score"

    def __init__(self, stop_after: int | None = None) -> None:
        self.calls: list[str] = []
        self.stop_after = stop_after

    def __call__(self, strings: list[str]) -> list[float]:
        if len(self.calls) == self.stop_after:
            raise KeyboardInterrupt
        self.calls += strings
        return [math.nan if "AAA" in string or "BBB" in string else value(string) for string in strings]


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "bore": BORE,
    "trees": lambda: BORE(NgramTrees(), gamma=0.25),
    "feasible": lambda: FeasibleModelBased("one-hot", "logei"),
}


@pytest.fixture(autouse=True)
def _no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)


@pytest.mark.slow
@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_a_campaign_with_a_strategy_goes_on_as_it_was_whenever_it_is_opened(
    make: Callable[[], Strategy], tmp_path: Path
) -> None:
    found = []
    for reopened in (False, True):
        path = tmp_path / f"{reopened}.seqopt"
        campaign = Campaign.create(path, SPACE, objective="y", batch_size=4, strategy=make(), seed=3)
        for _ in range(4):
            if reopened:
                campaign.close()
                campaign = Campaign.open(path)
            for row in campaign.suggest():
                (result,) = Fails()([row.string])
                failed = math.isnan(result)
                campaign.record(row.name, None if failed else result, failure="no yield" if failed else None)
        with campaign:
            found.append([(row.string, row.acquisition) for row in campaign.store.suggestions()])
            assert campaign.store.check() == []
            assert type(campaign.optimizer().strategy.then) is type(make())
    assert found[0] == found[1]
    assert {chosen for _, chosen in found[0]} == {"random", "logei" if make is STRATEGIES["feasible"] else "BORE"}


@pytest.mark.slow
@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_a_run_with_a_strategy_is_resumed_as_the_run(make: Callable[[], Strategy], tmp_path: Path) -> None:
    options: dict[str, Any] = {"budget": 8, "initial": 6, "batch_size": 2, "seed": 5}
    whole = seqopt.maximize(Fails(), SPACE, strategy=make(), **options)
    with pytest.raises(KeyboardInterrupt):
        seqopt.maximize(Fails(stop_after=9), SPACE, strategy=make(), run_folder=tmp_path / "run", **options)
    resumed = seqopt.maximize(Fails(), SPACE, strategy=make(), run_folder=tmp_path / "run", resume=True, **options)
    compared = [result.evaluations.drop(columns="seconds") for result in (whole, resumed)]
    pd.testing.assert_frame_equal(*compared, check_exact=True)
    with pytest.raises(RunFolderError, match=r"details\.strategy"):
        seqopt.maximize(Fails(), SPACE, strategy=BORE(gamma=0.5), run_folder=tmp_path / "run", resume=True, **options)
    # What comes next is the same whether the run or its owner goes on.
    with Campaign.open(tmp_path / "run" / CAMPAIGN) as campaign:
        assert [row.string for row in campaign.suggest(2)] == resumed.optimizer.ask(2)


def test_a_strategy_that_does_not_fit_is_refused_before_there_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    with pytest.raises(InputError, match="MultiFidelity chooses among ways to measure"):
        Campaign.create(path, SPACE, objective="y", strategy=MultiFidelity())
    with pytest.raises(InputError, match="leave surrogate, acquisition and search out"):
        Campaign.create(path, SPACE, objective="y", strategy=BORE(), surrogate="ssk")
    with pytest.raises(InputError, match="BORE compares values with one another"):
        Campaign.create(path, SPACE, objective="y", strategy=BORE(), contexts=LEVELS)
    with pytest.raises(InputError, match="cannot tell contexts apart"):
        Campaign.create(path, SPACE, objective="y", contexts=LEVELS)
    with pytest.raises(InputError, match="one objective, and that first"):
        Campaign.create(path, SPACE, objective="y", constraints=[Outcome("status")])
    with pytest.raises(InputError, match="two outcomes have the same name"):
        Campaign.create(path, SPACE, objective="y", constraints=[Outcome("y", role="constraint", bound=1.0)])
    assert not path.exists()


def two_levels(path: Path, **options: Any) -> Campaign:
    return Campaign.create(
        path, SPACE, objective="y", batch_size=4, strategy=MultiFidelity(), contexts=LEVELS, seed=1, **options
    )


@pytest.mark.slow
def test_a_campaign_of_two_fidelities_goes_on_as_it_was_whenever_it_is_opened(tmp_path: Path) -> None:
    found = []
    for reopened in (False, True):
        path = tmp_path / f"{reopened}.seqopt"
        campaign = two_levels(path)
        for _ in range(4):
            if reopened:
                campaign.close()
                campaign = Campaign.open(path)
            for row in campaign.suggest():
                campaign.record(row.name, measured(row.string, dict(row.context)))
        with campaign:
            found.append([(row.string, row.context) for row in campaign.store.suggestions()])
            assert campaign.store.check() == []
            best = campaign.status().best
            assert best is not None
            assert best.context == LEVELS.target
            assert best.mean() == max(
                row.value for row in campaign.store.measurements() if row.context == LEVELS.target and row.value
            )
    assert found[0] == found[1]
    assert {dict(context)["fidelity"] for _, context in found[0]} == {"docking", "assay"}


def test_results_say_how_they_were_measured_or_mean_what_was_suggested(tmp_path: Path) -> None:
    with two_levels(tmp_path / "a.seqopt", initial_contexts="target") as campaign:
        first, second, third, _ = campaign.suggest()
        assert dict(first.context) == {"fidelity": "assay"}
        (row,) = campaign.record(first.name, 1.0)
        assert row.context == first.context
        # A plain string was measured as the target is, and answers its suggestion.
        (row,) = campaign.record(second.string, 2.0)
        assert (row.context, row.suggestion) == (LEVELS.target, second.name)
        # In another way it is another measurement, and the suggestion stays open.
        (row,) = campaign.record(third.string, 0.5, context={"fidelity": "docking"})
        assert (dict(row.context), row.suggestion) == ({"fidelity": "docking"}, None)
        assert third.name in [row.name for row in campaign.store.open_suggestions()]
        for wrong, said in (
            ({"fidelity": "guess"}, "is not one of this search"),
            ({"plate": "P1"}, "is not one of this search"),
        ):
            with pytest.raises(CampaignError, match=said):
                campaign.record("AAAABBBB", 1.0, context=wrong)
        with pytest.raises(CampaignError, match=r"is to be measured with fidelity assay, but .* fidelity docking"):
            campaign.record(third.name, 1.0, context={"fidelity": "docking"})
        with pytest.raises(CampaignError, match="has a result already"):
            campaign.record(third.string, 0.6, context={"fidelity": "docking"})
        data = campaign.optimizer().state().data
        assert [(query.key, query.get("fidelity")) for query in data.queries] == [
            (first.string, "assay"),
            (second.string, "assay"),
            (third.string, "docking"),
        ]
        assert data.values[:, 0].tolist() == [1.0, 2.0, 0.5]
        # However large a cheap value is, the best is one of the target.
        campaign.record("ABABABAB", 50.0, context={"fidelity": "docking"})
        best = campaign.status().best
        assert best is not None
        assert (best.string, best.mean()) == (second.string, 2.0)
    with Campaign.create(tmp_path / "plain.seqopt", SPACE, objective="y") as plain:
        with pytest.raises(CampaignError, match="knows only one way to measure"):
            plain.record("AAAABBBB", 1.0, context={"fidelity": "assay"})
        with pytest.raises(CampaignError, match="it has nothing else"):
            plain.record("AAAABBBB", 1.0, further={"solubility": 1.0})


def filled_in(path: Path, fill: Callable[[dict[str, str]], None]) -> None:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        fill(row)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.slow
def test_tables_hold_contexts_and_constraints_and_are_read_back(tmp_path: Path) -> None:
    with two_levels(tmp_path / "a.seqopt", constraints=[SOLUBILITY]) as campaign:
        for number in range(3):
            batch = campaign.suggest()
            path = tmp_path / f"{number}.csv"
            campaign.write_batch(path)

            def fill(row: dict[str, str]) -> None:
                assert row["fidelity"] in ("docking", "assay")
                row["y"] = str(measured(row["string"], row))
                row["solubility"] = "3.5" if row["fidelity"] == "assay" else ""

            filled_in(path, fill)
            taken, results = campaign.record_file(path)
            assert (len(taken), results.problems, results.warnings) == (4, (), ())
            assert [row.context for row in taken] == [row.context for row in batch]
        assert batch.to_pandas()["fidelity"].tolist() == [dict(row.context)["fidelity"] for row in batch]
        before = campaign.optimizer().state().data
        campaign.export(tmp_path / "all.csv")
        text = render(summarize(campaign))
        assert "fidelity" in text
        suggested = [(row.string, row.context) for row in campaign.suggest()]
        # The same results, from elsewhere, in another campaign: they teach the same.
        with two_levels(tmp_path / "b.seqopt", constraints=[SOLUBILITY]) as other:
            other.record_file(tmp_path / "all.csv", history=True)
            after = other.optimizer().state().data
            assert other.store.check() == []
    assert len(suggested) == 4
    assert sorted(before.queries) == sorted(after.queries)
    np.testing.assert_array_equal(
        before.values[np.argsort([str(query) for query in before.queries])],
        after.values[np.argsort([str(query) for query in after.queries])],
    )
    assert [outcome.name for outcome in before.outcomes] == ["y", "solubility"]


def test_a_table_with_an_impossible_context_is_refused_line_by_line(tmp_path: Path) -> None:
    with two_levels(tmp_path / "a.seqopt") as campaign:
        path = tmp_path / "r.csv"
        path.write_text("string,fidelity,y\nAAAABBBB,docking,1.0\nABABABAB,assays,2.0\nABABABBB,,3.0\n")
        with pytest.raises(CampaignError, match=r"line 3, column 'fidelity': 'assays' is not a fidelity .* docking"):
            campaign.record_file(path)
        taken, _ = campaign.record_file(path, partial=True)
        assert [dict(row.context)["fidelity"] for row in taken] == ["docking", "assay"]


def test_a_number_is_the_same_level_however_it_is_written(tmp_path: Path) -> None:
    levels = Contexts.of_levels("fidelity", {0.5: 0.1, 1.0: 1.0}, target=1.0)
    with Campaign.create(
        tmp_path / "a.seqopt", SPACE, objective="y", strategy=MultiFidelity(), contexts=levels
    ) as campaign:
        path = tmp_path / "r.csv"
        path.write_text("string,fidelity,y\nAAAABBBB,.50,1.0\nABABABAB,1,2.0\n")
        taken, _ = campaign.record_file(path)
    assert [dict(row.context) for row in taken] == [{"fidelity": 0.5}, {"fidelity": 1.0}]


def test_several_values_of_a_string_are_kept_and_each_constrains_itself(tmp_path: Path) -> None:
    constraints = [SOLUBILITY, Outcome("Ki", "minimize", "constraint", 10.0, Log10())]
    with Campaign.create(
        tmp_path / "a.seqopt", SPACE, objective="y", batch_size=3, surrogate="one-hot", constraints=constraints
    ) as campaign:
        one, two, three = campaign.suggest()
        campaign.record(one.name, 1.0, further={"solubility": 3.0, "Ki": 5.0})
        campaign.record(two.name, further={"solubility": 2.5})
        with pytest.raises(CampaignError, match="has no logarithm"):
            campaign.record(three.name, 1.0, further={"Ki": -1.0})
        with pytest.raises(CampaignError, match=r"'Kd' is not measured besides 'y' .* it has 'solubility', 'Ki'"):
            campaign.record(three.name, 1.0, further={"Kd": 1.0})
        # What precipitated has a solubility, too.
        campaign.record(three.name, failure="precipitated", further={"solubility": 0.1})
        counts = campaign.status().counts
        assert (counts.values, counts.strings, counts.failures, counts.open) == (1, 1, 1, 1)
        assert [row.name for row in campaign.store.open_suggestions()] == [two.name]
        optimizer = campaign.optimizer()
        assert optimizer.pending == [two.string]
        table = optimizer.to_pandas()
        assert table["status"].tolist() == ["ok", "pending", "failed", "ok"]
        np.testing.assert_array_equal(table["solubility"], [3.0, math.nan, 0.1, 2.5])
        np.testing.assert_array_equal(table["value"], [1.0, math.nan, math.nan, math.nan])
        assert optimizer.state().data.failed.tolist() == [False, True, False]
        # What is measured on another day completes it, and is no replicate; the same again is one.
        with pytest.raises(CampaignError, match=r"has a result already: solubility 2\.5"):
            campaign.record(two.name, further={"solubility": 2.5})
        with pytest.raises(CampaignError, match="has a result already"):
            campaign.record(one.name, 1.5)
        campaign.record(two.name, 2.0)
        campaign.record(two.name, further={"Ki": 4.0})
        assert campaign.store.open_suggestions() == []
        with Campaign.open(tmp_path / "a.seqopt") as fresh:
            assert fresh.session().optimizer.state_dict() == campaign.session().optimizer.state_dict()
        assert campaign.undo().kind == "record"
        assert campaign.store.check() == []
        assert len(campaign.suggest(2, more=True)) == 2


def test_a_table_is_filled_in_on_several_days(tmp_path: Path) -> None:
    with Campaign.create(
        tmp_path / "a.seqopt", SPACE, objective="y", batch_size=3, surrogate="one-hot", constraints=[SOLUBILITY]
    ) as campaign:
        batch = campaign.suggest()
        path = tmp_path / "batch.csv"
        campaign.write_batch(path)

        def solubility(row: dict[str, str]) -> None:
            row["solubility"] = "3.5"

        def activity(row: dict[str, str]) -> None:
            row["y"], row["solubility"] = "1.5", ""

        filled_in(path, solubility)
        campaign.record_file(path)
        assert campaign.suggest() == batch
        filled_in(path, activity)
        taken, results = campaign.record_file(path)
        assert (len(taken), results.warnings) == (3, ())
        assert campaign.store.open_suggestions() == []
        assert campaign.status().counts.values == 3


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_measures_in_every_way_and_several_things(workers: int, tmp_path: Path) -> None:
    seen: list[Query] = []

    def objective(queries: list[Query]) -> list[list[float]]:
        seen.extend(queries)
        return [
            [measured(query.key, dict(query.context)), 3.0 if query.get("fidelity") == "assay" else math.nan]
            for query in queries
        ]

    options: dict[str, Any] = {
        "strategy": MultiFidelity(),
        "contexts": LEVELS,
        "constraints": [SOLUBILITY],
        "budget": 6,
        "initial": 4,
        "batch_size": 3,
        "seed": 2,
    }
    whole = seqopt.maximize(objective, SPACE, workers=workers, **options)
    assert len(seen) == len(whole.evaluations) == 10
    assert all(isinstance(query, Query) for query in seen)
    assert set(whole.evaluations["fidelity"]) == {"docking", "assay"}
    assays = whole.evaluations[whole.evaluations["fidelity"] == "assay"]
    assert whole.best_value == assays["value"].max() == value(whole.best_string)
    assert (assays["solubility"] == 3.0).all()
    assert whole.evaluations.loc[whole.evaluations["fidelity"] == "docking", "solubility"].isna().all()
    # In two halves, on the disk, it is the same; options that are objects are made anew.
    again = options | {"strategy": MultiFidelity(), "run_folder": tmp_path / "run", "workers": workers}
    seqopt.maximize(objective, SPACE, **(again | {"budget": 3}))
    resumed = seqopt.maximize(objective, SPACE, resume=True, **(again | {"strategy": MultiFidelity()}))
    compared = [result.evaluations.drop(columns="seconds") for result in (whole, resumed)]
    pd.testing.assert_frame_equal(*compared, check_exact=True)
    with CampaignStore.open(tmp_path / "run" / CAMPAIGN) as store:
        assert store.check() == []
        assert {row.context for row in store.measurements()} == set(LEVELS.possible)
    # The commands' loop does the same.
    with two_levels(tmp_path / "c.seqopt", constraints=[SOLUBILITY]) as campaign:
        assert campaign.run(objective, budget=6, workers=workers) == 6
        rows = campaign.store.measurements()
    assert {row.further.get("solubility") for row in rows if row.context == LEVELS.target} == {3.0}


def test_what_was_withdrawn_teaches_a_classifier_nothing(tmp_path: Path) -> None:
    with Campaign.create(
        tmp_path / "a.seqopt", SPACE, objective="y", batch_size=4, strategy=FeasibleModelBased("one-hot")
    ) as campaign:
        rows = campaign.suggest()
        campaign.withdraw([rows[0].name, rows[1].name], "sold out")
        for row in rows[2:]:
            campaign.record(row.name, value(row.string))
        state = campaign.optimizer().state()
        assert not state.data.failed.any()
        assert (len(state.data), state.withdrawn, state.size) == (2, 2, 4)
        again = {row.string for row in campaign.suggest(8)}
        assert not again & {rows[0].string, rows[1].string}


def test_what_is_no_value_of_one_outcome_harms_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    constraints = [SOLUBILITY, Outcome("Ki", "minimize", "constraint", 10.0, Log10())]

    def objective(strings: list[str]) -> list[list[float]]:
        return [[value(string), 1e200, -1.0] if "AAA" in string else [value(string), 3.0, 2.0] for string in strings]

    options: dict[str, Any] = {"initial": 4, "budget": 4, "batch_size": 2, "surrogate": "one-hot", "seed": 1}
    found = seqopt.maximize(objective, SPACE, constraints=constraints, run_folder=tmp_path / "run", **options)
    table = found.evaluations
    odd = table["string"].str.contains("AAA")
    assert 0 < odd.sum() < len(table)
    assert (table["status"] == "ok").all()
    assert table.loc[odd, ["solubility", "Ki"]].isna().all(axis=None)
    assert (table.loc[~odd, "Ki"] == 2.0).all()
    assert "Ki: the transform log10 needs positive values, got -1; it counts as not measured" in caplog.text


def test_an_objective_that_never_has_its_own_value_is_said() -> None:
    calls: list[str] = []

    def objective(strings: list[str]) -> list[list[float]]:
        calls.extend(strings)
        return [[math.nan, 3.0] for _ in strings]

    with pytest.raises(
        ObjectiveError, match=r"all 4 evaluations so far failed, .*: the objective returned no value of"
    ):
        seqopt.maximize(objective, SPACE, constraints=[SOLUBILITY], initial=4, budget=20, surrogate="one-hot")
    assert len(calls) == 4


def test_known_results_in_another_context_are_others(tmp_path: Path) -> None:
    def objective(queries: list[Query]) -> list[float]:
        return [measured(query.key, dict(query.context)) for query in queries]

    def search(level: str, **options: Any) -> None:
        known = pd.DataFrame({"string": ["AAAABBBB"], "fidelity": [level], "value": [1.0]})
        seqopt.maximize(
            objective,
            SPACE,
            strategy=MultiFidelity(),
            contexts=LEVELS,
            known=known,
            initial=3,
            budget=0,
            run_folder=tmp_path / "run",
            **options,
        )

    search("docking")
    search("docking", resume=True)
    with pytest.raises(RunFolderError, match=r"known\.sha256 was"):
        search("assay", resume=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "contexts"),
    [
        (MultiFidelity, LEVELS),
        (lambda: ModelBased("one-hot", "logei"), None),
        (lambda: ModelBased(StringGP(restarts=1), "logei"), None),
        (BORE, None),
    ],
    ids=["fidelity", "model", "object", "bore"],
)
def test_a_strategy_that_was_used_begins_anew(
    make: Callable[[], Strategy], contexts: Contexts | None, tmp_path: Path
) -> None:
    def objective(items: list[Any]) -> list[float]:
        return [value(item.key if isinstance(item, Query) else item) for item in items]

    options: dict[str, Any] = {"contexts": contexts, "initial": 4, "budget": 4, "batch_size": 2}
    strategy = make()
    seqopt.maximize(objective, SPACE, strategy=strategy, seed=7, **options)
    used = seqopt.maximize(objective, SPACE, strategy=strategy, seed=1, run_folder=tmp_path / "run", **options)
    fresh = seqopt.maximize(objective, SPACE, strategy=make(), seed=1, **options)
    assert list(used.evaluations["string"]) == list(fresh.evaluations["string"])


@pytest.mark.parametrize(
    ("proposals", "said"),
    [
        ([Proposal("ABABABAC", "ABABABAC")], "'ABABABAC', which is not in the space|ABABABAC"),
        ([Proposal("ABABABAB", "ABABABAB")] * 2, "'ABABABAB' twice in one batch"),
        ([Proposal("ABABABAB", "other")], "'ABABABAB' with the key 'other', which is not its key"),
        (["ABABABAB"], r"expected a list of seqopt\.search\.Proposal"),
    ],
)
def test_what_a_strategy_must_not_propose_is_refused_by_its_name(proposals: list[Any], said: str) -> None:
    class Odd(RandomStrategy):
        def propose(self, n: int, state: Any, rng: np.random.Generator) -> list[Proposal]:
            return proposals

    optimizer = seqopt.Optimizer(SPACE, strategy=Odd(), initial=2)
    optimizer.tell(["AAAABBBB", "BBBBAAAA"], [1.0, 2.0])
    with pytest.raises(InputError, match=f"Odd.propose returned .*{said}|{said}"):
        optimizer.ask(2)
    assert len(optimizer.observations) == 2


@pytest.mark.slow
def test_predictions_are_of_a_string_as_it_is_to_be_measured() -> None:
    optimizer = seqopt.Optimizer(SPACE, strategy=MultiFidelity(), contexts=LEVELS, initial=6, seed=3)
    optimizer.tell(optimizer.ask().queries, [measured(row.key, {}) for row in optimizer.observations.rows])
    more = SPACE.sample(12, np.random.default_rng(5))
    cheap = [Query(string, {"fidelity": "docking"}) for string in more]
    optimizer.tell(cheap, [measured(string, {}) + 8.0 for string in more])
    batch = optimizer.ask(6)
    docked = [row for row in batch.rows if dict(row.context)["fidelity"] == "docking"]
    assert docked
    for row in docked:
        mean, std = row.details["predicted_mean"], row.details["predicted_std"]
        assert abs(mean - (value(row.string) + 8.0)) < abs(mean - value(row.string))
        spread = optimizer.predicted_measurement(row.query)[1]
        assert spread is not None
        assert spread >= std
