"""Campaigns in which strings are measured in several ways, each at its cost."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqopt
from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.reasons import found_reasons
from seqopt.campaign.rows import Settings
from seqopt.campaign.summary import summarize
from seqopt.cli import main
from seqopt.data import Contexts, Query, context_of
from seqopt.errors import InputError
from seqopt.models import in_units_of
from seqopt.spaces import CandidateSet
from seqopt.strategies import MultiFidelity

POOL = [a + b + c + d for a in "ACDE" for b in "ACDE" for c in "AC" for d in "AC"]
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")


def activity(string: str) -> float:
    return 4.0 + string.count("C") - 0.5 * string.count("E")


def measured(string: str, fidelity: str) -> float:
    """Docking is of another size, and of the other sign."""
    return activity(string) if fidelity == "assay" else -20.0 - 10.0 * activity(string) + string.count("D")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    path = tmp_path / "pool.csv"
    path.write_text("sequence\n" + "\n".join(POOL) + "\n")
    return Campaign.create(
        tmp_path / "a.seqopt",
        path,
        kind="text",
        objective="activity",
        batch_size=4,
        strategy=MultiFidelity(),
        contexts=CONTEXTS,
        budget=6.0,
        # What batches of several ways are like is tested apart.
        initial_contexts="target",
    )


def fill(path: Path, **changes: dict[str, str]) -> Path:
    """Fill in a batch; ``changes`` are cells of some rows, by the names of suggestions with underscores."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["activity"] = str(measured(row["sequence"], row["fidelity"]))
        row.update(changes.get(row["identifier"].replace("-", "_"), {}))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


def record_batch(campaign: Campaign, folder: Path, **how: object) -> None:
    batch = campaign.suggest(**how)  # type: ignore[arg-type]
    path = folder / f"batch-{batch[0].batch}.csv"
    campaign.write_batch(path, batch)
    campaign.record_file(fill(path))


@pytest.mark.slow
def test_a_batch_says_which_measurement_is_made_and_what_it_costs(campaign: Campaign, tmp_path: Path) -> None:
    record_batch(campaign, tmp_path, n=8, context={"fidelity": "docking"})
    assert "nothing has been measured as assay yet" in " ".join(campaign.status().warnings)
    second = campaign.suggest()
    # Before there are two results of the target nobody can say what docking tells of it.
    assert [dict(row.context)["fidelity"] for row in second[:2]] == ["assay", "assay"]
    assert all("tells" not in row.reason for row in second)
    campaign.write_batch(tmp_path / "second.csv", second)
    with (tmp_path / "second.csv").open() as file:
        rows = list(csv.DictReader(file))
    costs = {"docking": "0.01", "assay": "1.0"}
    assert [row["cost"] for row in rows] == [costs[row["fidelity"]] for row in rows]
    campaign.record_file(fill(tmp_path / "second.csv"))
    assert not any("measured as assay" in text for text in campaign.status().warnings)
    for row in campaign.suggest():
        assert row.reason["way"] == dict(row.context)["fidelity"]
        assert row.reason["cost"] == CONTEXTS.costs[CONTEXTS.possible.index(row.context)]
        assert 0.0 <= row.reason["tells"] <= 1.0
    assert campaign.store.check() == []
    campaign.close()


def test_only_what_is_free_is_suggested_and_a_batch_can_share_one_way(campaign: Campaign, tmp_path: Path) -> None:
    first = campaign.suggest(3, context={"fidelity": "assay"})
    # What is open elsewhere does not answer what can be done here today.
    other = campaign.suggest(5, context={"fidelity": "docking"})
    assert {dict(row.context)["fidelity"] for row in first} == {"assay"}
    assert {dict(row.context)["fidelity"] for row in other} == {"docking"}
    assert len({row.key for row in other}) == 5
    assert campaign.suggest(5, context={"fidelity": "docking"}) == other
    for row in (*first, *other):
        campaign.record(row.name, measured(row.string, dict(row.context)["fidelity"]))
    shared = campaign.suggest(4, shared=True)
    assert len({row.context for row in shared}) == 1
    with pytest.raises(InputError, match="it has fidelity=docking, fidelity=assay"):
        campaign.suggest(context={"fidelity": "crystal"})
    with Campaign.open(campaign.store.path) as again:
        assert again.suggest() == list(shared)
    campaign.close()


def test_a_budget_is_kept_to(campaign: Campaign, tmp_path: Path) -> None:
    spent = 0.0
    for _ in range(30):
        costs = campaign.costs()
        assert costs is not None
        if costs.left is not None and costs.left < 1.0:
            break
        batch = campaign.suggest(3)
        for row in batch:
            fidelity = dict(row.context)["fidelity"]
            # What was measured has cost more than was said.
            actual = 1.7 if fidelity == "assay" else None
            campaign.record(row.name, measured(row.string, fidelity), cost=actual)
            spent += 1.7 if fidelity == "assay" else 0.01
        costs = campaign.costs()
        assert costs is not None
        assert costs.spent == pytest.approx(spent)
        assert costs.left == pytest.approx(max(6.0 - spent, 0.0))
    campaign.change(budget=max(spent, 1.0))
    with pytest.raises(CampaignError, match=r"does not pay for another measurement.*--budget-cost"):
        campaign.suggest()
    assert campaign.store.check() == []
    campaign.close()


def test_a_budget_that_pays_for_nothing_is_refused(campaign: Campaign, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not pay for one measurement of the target .assay., which costs 1"):
        campaign.change(budget=0.5)
    assert campaign.change(budget=30.0).budget == 30.0
    assert campaign.history()[-1].describe() == "configure budget 6.0 -> 30.0"
    campaign.undo()
    assert campaign.store.settings.budget == 6.0
    campaign.close()
    with pytest.raises(InputError, match="goes with measurements that have costs"):
        Campaign.create(tmp_path / "b.seqopt", POOL, kind="text", objective="activity", budget=3.0)
    assert not (tmp_path / "b.seqopt").exists()


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ({"cost": "0"}, "line 3, column 'cost': '0' is not a cost: expected a positive number"),
        ({"cost": "-2"}, "line 3, column 'cost': '-2' is not a cost"),
        ({"cost": "two"}, "line 3, column 'cost': 'two' is not a number"),
        (
            {"fidelity": "crystal"},
            "line 3, column 'fidelity': 'crystal' is not a fidelity of this search: expected one",
        ),
        ({"fidelity": "docking"}, "line 3: .*is to be measured with fidelity assay, but its result is said to be with"),
    ],
)
def test_what_is_wrong_with_a_table_is_named_and_nothing_is_recorded(
    campaign: Campaign, tmp_path: Path, cells: dict[str, str], wanted: str
) -> None:
    campaign.suggest()
    campaign.write_batch(tmp_path / "batch.csv")
    state = campaign.store.state
    with pytest.raises(CampaignError, match=wanted):
        campaign.record_file(fill(tmp_path / "batch.csv", B01_02=cells))
    assert campaign.store.state == state
    assert campaign.store.measurements() == []
    campaign.close()


def test_commas_and_fidelities_in_another_case_are_read_beside_costs_as_batches_state_them(
    campaign: Campaign, tmp_path: Path
) -> None:
    batch = campaign.suggest()
    campaign.write_batch(tmp_path / "batch.csv")
    commas = {row.name.replace("-", "_"): {"activity": "4,5", "fidelity": "Assay"} for row in batch}
    campaign.record_file(fill(tmp_path / "batch.csv", **commas), decimal_comma=True)
    rows = campaign.store.measurements()
    assert [(row.value, row.context) for row in rows] == [(4.5, (("fidelity", "assay"),))] * 4
    costs = campaign.costs()
    assert costs is not None
    assert costs.spent == 4.0
    with pytest.raises(CampaignError, match=r"'1\.5' has a point, but commas are decimal"):
        campaign.record_file(fill(tmp_path / "batch.csv", B01_01={"cost": "1.5"}), decimal_comma=True, replicates=True)
    campaign.close()


@pytest.mark.slow
def test_what_was_only_docked_is_ranked_and_compared_with_what_was_assayed(campaign: Campaign) -> None:
    for string in POOL:
        campaign.record(string, measured(string, "docking"), context={"fidelity": "docking"})
    assayed = POOL[::16]
    for string in assayed:
        campaign.record(string, measured(string, "assay"), context={"fidelity": "assay"})
    ranked = campaign.rank(None)
    assert {row.string for row in ranked} == set(POOL) - set(assayed)
    assert {row.nearest for row in ranked} <= set(assayed)
    (one,) = campaign.suggest(1, context={"fidelity": "assay"})
    assert one.reason["of"] == len(POOL) - len(assayed)
    with pytest.raises(CampaignError, match=r"has several results.*how it was measured .--context."):
        campaign.correct(assayed[0], 3.0)
    campaign.close()


def test_costs_are_recorded_corrected_and_taken_back(campaign: Campaign, tmp_path: Path) -> None:
    campaign.suggest()
    campaign.write_batch(tmp_path / "batch.csv")
    campaign.record_file(fill(tmp_path / "batch.csv", B01_02={"cost": "2.5"}, B01_03={"cost": ""}))

    def spent() -> float:
        costs = campaign.costs()
        assert costs is not None
        return costs.spent

    assert spent() == pytest.approx(1 + 2.5 + 1 + 1)
    campaign.correct("B01-02", cost=1.25, reason="the invoice came")
    assert spent() == pytest.approx(4.25)
    assert "cost from 2.5 to 1.25 (the invoice came)" in campaign.history()[-1].describe()
    with pytest.raises(CampaignError, match="expected a positive number"):
        campaign.correct("B01-02", cost=-1.0)
    with pytest.raises(CampaignError, match="already"):
        campaign.correct("B01-02", cost=1.25)
    # What was discarded has been paid for all the same.
    campaign.discard("B01-02")
    assert spent() == pytest.approx(4.25)
    campaign.undo()
    campaign.undo()
    assert spent() == pytest.approx(5.5)
    campaign.export(tmp_path / "all.csv")
    # Results of elsewhere were paid for before.
    with Campaign.create(
        tmp_path / "b.seqopt",
        tmp_path / "pool.csv",
        kind="text",
        objective="activity",
        strategy=MultiFidelity(),
        contexts=CONTEXTS,
    ) as other:
        other.record_file(tmp_path / "all.csv", history=True)
        assert [row.cost for row in other.store.measurements()] == [1.0, 2.5, None, 1.0]
        costs = other.costs()
        assert costs is not None
        assert costs.spent == 0.0
        assert costs.left is None
        assert other.store.check() == []
    assert campaign.store.check() == []
    campaign.close()


def test_a_table_says_at_once_how_all_of_it_was_measured(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "older.csv"
    path.write_text("sequence,fidelity,activity\nAAAA,,-60\nAAAC,assay,5\n")
    campaign.record_file(path, history=True, context={"fidelity": "docking"})
    found = [(row.string, dict(row.context)["fidelity"]) for row in campaign.store.measurements()]
    assert found == [("AAAA", "docking"), ("AAAC", "assay")]
    costs = campaign.costs()
    assert costs is not None
    assert costs.spent == 0.0
    campaign.undo()
    assert campaign.store.measurements() == []
    campaign.close()


@pytest.mark.slow
def test_the_answer_is_the_best_expected_target_however_it_was_measured(campaign: Campaign, tmp_path: Path) -> None:
    for number, string in enumerate(POOL[::2]):
        campaign.record(string, measured(string, "docking"), context={"fidelity": "docking"})
        if number % 2:
            campaign.record(string, measured(string, "assay"))
    (found,) = campaign.recommend()
    means = {row.key: row.predicted for row in campaign.predict(POOL[::2])}
    assert means[found.key] == pytest.approx(max(means.values()))
    campaign.close()


def test_a_result_is_corrected_in_the_way_in_which_it_was_measured(campaign: Campaign) -> None:
    campaign.record("AAAA", 4.0)
    campaign.record("AAAA", -60.0, context={"fidelity": "docking"})
    with pytest.raises(CampaignError, match="several results"):
        campaign.correct("AAAA", -61.0)
    campaign.correct("AAAA", -61.0, context={"fidelity": "docking"})
    assert sorted(row.told for row in campaign.store.measurements()) == ["-61", "4"]
    campaign.discard("AAAA", context={"fidelity": "docking"})
    assert [row.told for row in campaign.store.measurements()] == ["4"]
    campaign.close()


def test_costs_belong_to_campaigns_that_have_some(tmp_path: Path) -> None:
    with Campaign.create(tmp_path / "a.seqopt", POOL, kind="text", objective="activity") as campaign:
        with pytest.raises(CampaignError, match="measurements of this campaign have none"):
            campaign.record("AAAA", 4.0, cost=2.0)
        # There, a column of that name is any other column of the user's.
        (tmp_path / "results.csv").write_text("string,activity,cost\nAAAA,4.0,0\n")
        campaign.record_file(tmp_path / "results.csv", history=True)
        assert campaign.store.measurements()[0].cost is None
        assert campaign.costs() is None
        with pytest.raises(InputError, match="one way to measure only"):
            campaign.suggest(context={"fidelity": "docking"})


def test_the_command_line_begins_such_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: str, status: int = 0) -> str:
        assert main(["campaign", *words]) == status
        found = capsys.readouterr()
        return " ".join((found.out + found.err).split())

    Path("pool.csv").write_text("sequence\n" + "\n".join(POOL) + "\n")
    new = ["new", "a", "--pool", "pool.csv", "--kind", "text", "--objective-name", "activity"]
    for options, wanted in [
        (["--fidelity", "docking:0", "--fidelity", "assay:1"], "a positive number"),
        (["--fidelity", "docking:-1", "--fidelity", "assay:1"], "a positive number"),
        (["--fidelity", "docking"], "expected a name and what one measurement costs"),
        (["--fidelity", "assay:1"], "only one way to measure"),
        (["--fidelity", "assay:1", "--fidelity", "assay:2"], "gives assay twice"),
        (["--fidelity", "docking:0.01", "--fidelity", "assay:1", "--target", "crystal"], "none of the fidelities"),
        (["--target", "assay"], "--target goes with --fidelity"),
        (["--budget-cost", "3"], "--budget-cost goes with --fidelity"),
        (["--fidelity", "docking:0.01", "--fidelity", "assay:1", "--budget-cost", "0.5"], "give at least 1"),
    ]:
        assert wanted in run(*new, *options, status=2)
        assert not Path("a.seqopt").exists()
    made = run(*new, "--fidelity", "docking:0.01", "--fidelity", "assay:1", "--budget-cost", "9")
    assert "what counts is assay; 9 may be spent" in made
    batch = run("suggest", "--fidelity", "docking", "-n", "3", "--out", "batch.csv")
    assert "open suggestions cost 0.03; 8.97 is left" in batch
    fill(Path("batch.csv"))
    run("record", "batch.csv")
    assert "spent 0.03 of 9 (docking 0.03 for 3)" in run("status")
    assert "spent 0.03 of 8" in run("set", "--budget-cost", "8")
    run("set", "--budget-cost", "none")
    assert "spent 0.03 (docking" in run("status")


def test_values_and_the_quality_of_predictions_are_told_by_way_the_target_first(campaign: Campaign) -> None:
    campaign.change(budget=30.0)
    docked = POOL[::4]
    for string in docked:
        campaign.record(string, measured(string, "docking"), context={"fidelity": "docking"})
    for string in POOL[:8:2]:
        campaign.record(string, activity(string))
    campaign.record(POOL[1], failure="fell down")
    campaign.record(POOL[0], activity(POOL[0]) + 0.1, replicate=True)
    campaign.suggest(2)
    status = campaign.status()
    assert [one.describe() for one in status.ways] == [
        "assay (what counts): 5 values of 4 strings, 1 failure",
        f"docking: {len(docked)} values of {len(docked)} strings, 0 failures",
    ]
    model = campaign.session().optimizer.surrogate
    found, items = model.leave_one_out(), model.fitted.keys
    target, docking = status.model["ways"]
    assert (target["way"], target["n"], docking["way"], docking["n"]) == ("assay", 5, "docking", len(docked))
    for one in (target, docking):
        own = np.array([dict(context_of(item)).get("fidelity", "assay") == one["way"] for item in items])
        values, errors = found.values[own], (found.values - found.mean)[own]
        others = np.array([values[np.arange(len(values)) != place].mean() for place in range(len(values))])
        assert one["r2"] == pytest.approx(1 - (errors**2).sum() / ((values - others) ** 2).sum(), abs=1e-4)
        assert one["within_90"] == pytest.approx(np.mean(np.abs(errors) <= 1.645 * found.std[own]), abs=1e-4)
    # What is said of the model is said of what counts.
    assert status.model["r2"] == target["r2"]
    said = {section.title: section.lines for section in summarize(campaign)}
    assert said["activity (maximize)"][1:3] == tuple(f"measured: {one.describe()}" for one in status.ways)
    assert said["Model"][1].startswith("assay (what counts), 5 values: leave-one-out R2 ")
    assert said["Model"][2].startswith(f"docking, {len(docked)} values: leave-one-out R2 ")
    assert "assay (what counts), 5 values" in repr(status)
    campaign.close()


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (100.0, "the cost of assay, 100, is 100 times the 1 that the campaign says"),
        (0.01, "the cost of assay, 0.01, is 1/100 of the 1 that the campaign says"),
        (10.1, "the cost of assay, 10.1, is 10.1 times the 1 that the campaign says"),
        (9.9, None),
        (0.11, None),
    ],
)
def test_a_cost_far_from_the_stated_one_is_taken_and_said(
    campaign: Campaign, caplog: pytest.LogCaptureFixture, cost: float, said: str | None
) -> None:
    campaign.record("AAAA", 3.0, cost=cost)
    found = [record.message for record in caplog.records if "the cost of" in record.message]
    assert len(found) == (said is not None)
    assert said is None or found[0].startswith(f"{said}: is it in the unit of the campaign's costs?")
    assert campaign.store.measurements()[0].cost == cost
    # What is usual by now is not said again.
    campaign.record("CCAA", 3.0, cost=cost)
    campaign.record("DDAA", 3.0, cost=cost)
    caplog.clear()
    campaign.record("EEAA", 3.0, cost=cost)
    assert not any("the cost of" in record.message for record in caplog.records)
    campaign.close()


def test_costs_of_a_table_are_looked_at_together(campaign: Campaign, tmp_path: Path) -> None:
    table = tmp_path / "dear.csv"
    table.write_text("sequence,fidelity,cost,activity\nAAAA,assay,300,3\nAACA,assay,100,3\nAAAC,assay,500,3\n")
    _, results = campaign.record_file(table)
    (said,) = [str(remark) for remark in results.warnings if "the cost of" in str(remark)]
    assert "the cost of assay, 300, is 300 times the 1 that the campaign says (median of 3 costs)" in said
    assert "lines 2, 3, 4" in said
    campaign.close()


def test_the_first_batch_is_that_of_an_automatic_search(tmp_path: Path) -> None:
    given = {"objective": "activity", "batch_size": 4, "strategy": MultiFidelity(), "contexts": CONTEXTS}
    campaign = Campaign.create(tmp_path / "b.seqopt", POOL, kind="text", **given)
    batch = campaign.suggest()
    assert [dict(row.context)["fidelity"] for row in batch] == ["docking"] * 4
    assert len({row.key for row in batch}) == 4
    result = seqopt.maximize(
        lambda queries: [1.0 for _ in queries],
        CandidateSet(POOL, kind="text"),
        fidelities={"docking": 0.01},
        target="assay",
        initial=4,
        budget=0,
    )
    asked = list(zip(result.evaluations["string"], result.evaluations["fidelity"], strict=True))
    assert [(row.string, dict(row.context)["fidelity"]) for row in batch] == asked
    # Files of earlier versions do not say it, and begin with targets.
    settings = campaign.store.settings.to_json()
    assert settings.pop("initial_contexts") == "cheap"
    assert Settings.from_json(settings).initial_contexts == "target"
    campaign.close()


@pytest.mark.parametrize(
    ("said", "how", "wanted"),
    [
        ({"initial_contexts": "target"}, {}, {"assay"}),
        ({"initial_contexts": "all"}, {}, {"docking", "assay"}),
        ({}, {"context": {"fidelity": "docking"}}, {"docking"}),
        ({}, {"context": {"fidelity": "assay"}}, {"assay"}),
        ({}, {"shared": True}, {"assay"}),
    ],
)
def test_who_says_how_the_first_batch_is_measured_is_obeyed(
    tmp_path: Path, said: dict[str, Any], how: dict[str, Any], wanted: set[str]
) -> None:
    given = {"objective": "activity", "batch_size": 4, "strategy": MultiFidelity(), "contexts": CONTEXTS}
    with Campaign.create(tmp_path / "b.seqopt", POOL, kind="text", **given, **said) as campaign:
        batch = campaign.suggest(**how)
    assert {dict(row.context)["fidelity"] for row in batch} == wanted
    assert len({row.key for row in batch}) == 4 / len(wanted)


@pytest.mark.parametrize(("budget", "screened"), [(1.0, 0), (1.02, 2), (1.035, 3), (1.04, 4), (9.0, 4)])
def test_a_screen_leaves_enough_for_one_measurement_of_the_target(tmp_path: Path, budget: float, screened: int) -> None:
    given = {"objective": "activity", "batch_size": 4, "strategy": MultiFidelity(), "contexts": CONTEXTS}
    with Campaign.create(tmp_path / "b.seqopt", POOL, kind="text", budget=budget, **given) as campaign:
        batch = [dict(row.context)["fidelity"] for row in campaign.suggest()]
    # Where not even one string can be screened, the target is measured.
    assert batch == (["docking"] * screened or ["assay"])


@pytest.mark.slow
def test_intervals_of_a_batch_are_those_that_predictions_state(campaign: Campaign, tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    for string in POOL[::6]:
        campaign.record(string, activity(string) + noise.normal(), context={"fidelity": "assay"})
        campaign.record(string, measured(string, "docking") + noise.normal(), context={"fidelity": "docking"})
    campaign.change(budget=40.0)
    (one,) = campaign.suggest(1, context={"fidelity": "assay"})
    (said,) = campaign.predict([one.string])
    assert one.low is not None
    assert one.high is not None
    assert (one.low, one.high) == pytest.approx((said.low, said.high), rel=0.02)
    # What is not known of the parameters counts for cheap measurements, too.
    (cheap,) = campaign.suggest(1, more=True, context={"fidelity": "docking"})
    surrogate = campaign.session().optimizer.strategy.then.surrogate  # type: ignore[union-attr]
    query = Query(cheap.key, cheap.context)
    mean, outcome = (part[0] for part in outcome_of(surrogate, query))
    plain = in_units_of(surrogate, [query], mean.numpy(), outcome.numpy())[1][0]
    assert cheap.high - cheap.low > 2 * 1.645 * plain * 1.01
    assert cheap.high - cheap.low == pytest.approx(2 * 1.645 * surrogate.measurement_std([query])[0], rel=1e-3)


def outcome_of(surrogate: Any, query: Query) -> tuple[Any, Any]:
    moments = surrogate.conditioned().at([query]).moments
    return moments.outcome_mean, moments.outcome_variance


def test_a_screen_that_failed_goes_on(tmp_path: Path) -> None:
    pool = CandidateSet(POOL, kind="text")
    how: dict[str, Any] = {"objective": "activity", "batch_size": 4, "strategy": MultiFidelity(), "contexts": CONTEXTS}
    with Campaign.create(tmp_path / "a.seqopt", pool, budget=1.07, **how) as campaign:
        first = campaign.suggest()
        for row in first:
            campaign.record(row.name, failure="did not dock")
        second = campaign.suggest()
        # Of 1.07, 0.04 is spent, and one assay is kept.
        assert [dict(row.context)["fidelity"] for row in second] == ["docking"] * 3
        assert not {row.key for row in first} & {row.key for row in second}
        for row in second:
            campaign.record(row.name, measured(row.string, "docking"))
        assert {dict(row.context)["fidelity"] for row in campaign.suggest()} == {"assay"}


def test_a_short_batch_says_that_the_budget_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    Path("pool.csv").write_text("sequence\n" + "\n".join(POOL) + "\n")
    ways = ["--fidelity", "docking:0.1", "--fidelity", "assay:1"]
    command = ["campaign", "new", "a", "--pool", "pool.csv", "--kind", "text", "--objective-name", "activity", *ways]
    assert main([*command, "--budget-cost", "1.25", "--batch", "4"]) == 0
    capsys.readouterr()
    assert main(["campaign", "suggest"]) == 0
    said = capsys.readouterr().out
    assert "2 instead of 4: the budget does not pay for more: spent 0 of 1.25; open suggestions cost 0.2; 1.05" in said
    assert "which is kept for one assay" in said
    assert "no other candidate" not in said
    # Where candidates are used up, they are the reason.
    Path("pool.csv").write_text("sequence\n" + "\n".join(POOL[:3]) + "\n")
    assert main([*command[:2], "b", *command[3:], "--budget-cost", "9", "--batch", "4"]) == 0
    capsys.readouterr()
    assert main(["campaign", "suggest", "--campaign", "b"]) == 0
    assert "3 instead of 4: no other candidate was found" in capsys.readouterr().out


@pytest.mark.slow
def test_what_was_only_docked_is_not_called_measured_and_is_not_like_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    rows = [f"{string},N{number}" for number, string in enumerate(POOL)]
    Path("pool.csv").write_text("\n".join(["sequence,id", *rows]) + "\n")
    how: dict[str, Any] = {"strategy": MultiFidelity(), "contexts": CONTEXTS, "batch_size": 4}
    with Campaign.create("a.seqopt", "pool.csv", kind="text", objective="activity", **how) as campaign:
        docked = POOL[::7]
        for string in docked:
            campaign.record(string, measured(string, "docking"), context={"fidelity": "docking"})
        batch = campaign.suggest()
        optimizer = campaign.session().optimizer
        (reason,) = found_reasons(optimizer, optimizer.fitted, [docked[0]], 4)
        assert reason.nearest in docked[1:]
        (best,) = campaign.recommend()
        assert best.identifier == f"N{POOL.index(best.string)}"
        assert best.status in ("measured as docking", "open")
        assert best.measured is None
        said = {row.string: row.status for row in campaign.predict(POOL)}
        assert {said[string] for string in docked} <= {"measured as docking", "open"}
        campaign.withdraw([row.name for row in batch])
    assert main(["campaign", "recommend"]) == 0
    told = capsys.readouterr().out
    assert "--out" not in told
    assert f"N{POOL.index(best.string)}" in told
    assert main(["campaign", "rank", "-n", "3"]) == 0
    assert "--out writes" in capsys.readouterr().out


@pytest.mark.slow
def test_status_says_how_the_cheap_way_goes_with_the_target(campaign: Campaign) -> None:
    campaign.change(budget=40.0)
    for string in POOL[:3]:
        campaign.record(string, activity(string), context={"fidelity": "assay"})
    for string in POOL[:20]:
        campaign.record(string, measured(string, "docking"), context={"fidelity": "docking"})
    assert campaign.status().relations[0].describe() == (
        "docking and assay: 3 strings have both, too few to judge what docking tells (8 or more are needed)"
    )
    for string in POOL[3:9]:
        campaign.record(string, activity(string), context={"fidelity": "assay"})
    campaign.suggest()
    (found,) = campaign.status().relations
    assert found.correlation is not None
    middle, low, high = found.correlation
    assert low <= middle <= high < 0
    said = f"docking and assay: correlation {middle:.2f} (90 %: {low:.2f} to {high:.2f}) at the last suggestion"
    assert found.describe() == f"{said}; 9 strings have both"
    assert found.describe() in summarize(campaign)[0].lines
