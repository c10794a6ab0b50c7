"""Results of another assay: a task of their own, which is no result of the campaign."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.assays import FEWEST, _predicted, known_assays
from seqopt.data import Contexts
from seqopt.errors import InputError
from seqopt.models import SURROGATES
from seqopt.strategies import MultiFidelity, RandomStrategy

POOL = [a + b + c + d for a in "ACDE" for b in "ACDE" for c in "AC" for d in "AC"]
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")


def activity(string: str) -> float:
    return 5.0 + 0.5 * string.count("C") - 0.3 * string.count("E") + 0.2 * (string[0] == "D")


def begun(folder: Path, **how: object) -> Campaign:
    path = folder / "pool.csv"
    path.write_text("sequence\n" + "\n".join(POOL) + "\n")
    usual: dict[str, object] = {"surrogate": "ngrams", "objective": "activity", "batch_size": 3, "seed": 1}
    return Campaign.create(folder / "a.seqopt", path, kind="text", **(usual | how))  # type: ignore[arg-type]


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return begun(tmp_path)


def table(path: Path, rows: list[tuple[str, object]]) -> Path:
    path.write_text("sequence,score\n" + "".join(f"{string},{value}\n" for string, value in rows))
    return path


def opposite(path: Path, strings: list[str]) -> Path:
    """The other assay is in another unit, and small where the activity is large."""
    return table(path, [(string, f"{3000 - 100 * activity(string):.6f}") for string in strings])


def measure(campaign: Campaign, count: int) -> None:
    noise = np.random.default_rng(0).normal(scale=0.05, size=count)
    for place in range(count):
        string = POOL[(7 * place) % len(POOL)]
        campaign.record(string, activity(string) + noise[place])


@pytest.mark.slow
def test_another_assay_teaches_the_model_and_is_no_result(campaign: Campaign, tmp_path: Path) -> None:
    measure(campaign, 8)
    status, best = campaign.status(), campaign.store.best()
    before = campaign.predict(["CCCC", "EECC", "DCAA"])
    others = [string for string in POOL if string not in {row.key for row in campaign.store.measurements()}]
    found = campaign.import_assay(opposite(tmp_path / "other.csv", others), "old", value_column="score")
    assert (found.taken, found.common) == (56, 0)
    after = campaign.status()
    assert (after.counts, after.best, after.calibration) == (status.counts, best, status.calibration)
    assert after.assays == {"old": 56}
    assert campaign.store.check() == []
    truth = np.array([activity(row.string) for row in before])
    error = np.abs(np.array([row.predicted for row in before]) - truth)
    error_now = np.abs(np.array([row.predicted for row in campaign.predict(["CCCC", "EECC", "DCAA"])]) - truth)
    assert error_now.mean() < 0.5 * error.mean()
    # The best candidate is known of the other assay alone, and it is what is suggested.
    suggested = campaign.suggest()
    assert all(row.context == () for row in suggested)
    assert "CCCC" in [row.string for row in suggested]
    # It counts as unmeasured: the chance to beat what was measured is large.
    assert campaign.predict(["CCCC"])[0].improvement > 0.9
    assert campaign.predict(["CCCC"])[0].status == "open"
    for row in campaign.rank(3, by="acquisition"):
        assert math.isfinite(row.acquisition)


def test_an_import_is_taken_back(campaign: Campaign, tmp_path: Path) -> None:
    measure(campaign, 3)
    fresh = campaign.predict(["CCCC"])[0].predicted
    campaign.import_assay(opposite(tmp_path / "other.csv", POOL[::2]), "old", value_column="score")
    assert campaign.predict(["CCCC"])[0].predicted != fresh
    with Campaign.open(campaign.store.path) as again:
        assert known_assays(again.store)[0].values["AAAA"] == pytest.approx(3000 - 100 * activity("AAAA"))
    assert campaign.undo().arguments["assay"] == "old"
    assert campaign.status().assays == {}
    assert campaign.store.check() == []
    assert campaign.predict(["CCCC"])[0].predicted == pytest.approx(fresh)


@pytest.mark.slow
def test_predictions_without_each_result_say_what_an_assay_is_worth(campaign: Campaign, tmp_path: Path) -> None:
    measure(campaign, 12)
    found = campaign.import_assay(opposite(tmp_path / "other.csv", POOL), "old", value_column="score").worth
    assert found.count == 12
    assert found.verdict == "better"
    assert found.error < found.error_without
    assert "old helps" in found.describe()
    again = campaign.assay_worth("old")
    assert again.describe() == found.describe()


def test_noise_is_not_said_to_help(campaign: Campaign, tmp_path: Path) -> None:
    measure(campaign, 12)
    draws = np.random.default_rng(3).normal(size=len(POOL))
    path = table(tmp_path / "noise.csv", list(zip(POOL, draws.tolist(), strict=True)))
    assert campaign.import_assay(path, "noise", value_column="score").worth.verdict in ("no difference", "worse")


def test_leave_one_out_is_of_own_results_in_their_units(campaign: Campaign, tmp_path: Path) -> None:
    """Against the textbook: conditioning on all results but one, at the fitted parameters."""
    measure(campaign, 10)
    campaign.import_assay(opposite(tmp_path / "other.csv", POOL[::3]), "old", value_column="score")
    optimizer = campaign.session().optimizer
    errors, densities = _predicted(optimizer, False)
    state = optimizer.fitted.fitted
    own = state.evaluator.self_similarity(state.encoded)
    gram = state.scale[0].item() * np.asarray(state.evaluator.cross(state.encoded, None, own))
    gram = gram + np.diag(state.observed_noise[0].expand(len(state.keys)).numpy())
    values = state.values.reshape(-1).numpy()
    constant = float(state.mean(state.keys).reshape(-1)[0])
    offset, unit = optimizer.fitted.units
    for place in range(10):
        rest = np.delete(np.arange(len(values)), place)
        weights = np.linalg.solve(gram[np.ix_(rest, rest)], gram[rest, place])
        mean = constant + weights @ (values[rest] - constant)
        variance = gram[place, place] - weights @ gram[rest, place]
        assert errors[place] == pytest.approx(unit * (mean - values[place]), abs=1e-7)
        y = offset + unit * values[place]
        expected = norm.logpdf(y, offset + unit * mean, unit * math.sqrt(variance))
        assert densities[place] == pytest.approx(expected, abs=1e-6)
    assert len(errors) == 10


def test_few_results_tell_nothing(campaign: Campaign, tmp_path: Path) -> None:
    measure(campaign, FEWEST - 1)
    found = campaign.import_assay(opposite(tmp_path / "other.csv", POOL), "old", value_column="score").worth
    assert found.verdict == "too few"
    assert "too few to tell" in found.describe()


def test_campaigns_with_fidelities_take_one_more_level(tmp_path: Path) -> None:
    campaign = begun(tmp_path, surrogate=None, strategy=MultiFidelity(), contexts=CONTEXTS, budget=20.0)
    measure(campaign, 4)
    spent = campaign.costs()
    campaign.import_assay(opposite(tmp_path / "other.csv", POOL[:40]), "old", value_column="score")
    assert campaign.costs() == spent
    ways = {dict(row.context)["fidelity"] for row in campaign.suggest(4)}
    assert ways <= {"docking", "assay"}
    with pytest.raises(InputError, match="old"):
        campaign.suggest(1, more=True, context={"fidelity": "old"})
    path = opposite(tmp_path / "again.csv", POOL[40:])
    with pytest.raises(CampaignError, match="docking is a fidelity of this search already"):
        campaign.import_assay(path, "docking", value_column="score")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {
                "surrogate": None,
                "strategy": RandomStrategy(),
                "contexts": Contexts(
                    ((("a", "x"), ("b", "y")), (("a", "z"), ("b", "y"))), (("a", "x"), ("b", "y")), (1, 1)
                ),
            },
            "RandomStrategy decides in this search.*begin a campaign without it",
        ),
        ({"surrogate": SURROGATES["ngrams"].build()}, "StringGP was given as an object"),
        ({"surrogate": "mixture"}, "the surrogate mixture cannot learn from several assays.*Begin a campaign"),
    ],
)
def test_models_that_cannot_learn_from_it_say_so(tmp_path: Path, how: dict[str, object], message: str) -> None:
    campaign = begun(tmp_path, **how)
    path = opposite(tmp_path / "other.csv", POOL[:5])
    with pytest.raises((CampaignError, InputError), match=f"(?s){message}"):
        campaign.import_assay(path, "old", value_column="score")
    assert campaign.status().assays == {}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("CCCC", 1.0)], "old has 1 values; expected two or more"),
        ([("CCCC", 1.0), ("AAAA", 1.0)], "all 2 values of old equal 1"),
        ([("CCCC", 1.0), ("AAAA", "lots")], r"other.csv, line 3.*'lots'"),
        ([("CCCC", 1.0), ("AAAA", "<2")], "line 3.*is a limit"),
        ([("CCCC", 1.0), ("AAAA", 2.0), ("CCCC", 3.0)], "(?s)line 4"),
        ([("", 1.0), ("AAAA", 2.0)], "line 2"),
    ],
)
def test_nothing_is_kept_of_a_file_with_a_problem(
    campaign: Campaign, tmp_path: Path, rows: list[tuple[str, object]], message: str
) -> None:
    state = campaign.store.state
    with pytest.raises(CampaignError, match=message):
        campaign.import_assay(table(tmp_path / "other.csv", rows), "old", value_column="score")
    assert campaign.store.state == state
    assert campaign.status().assays == {}


def test_a_second_file_adds_strings_and_no_second_values(campaign: Campaign, tmp_path: Path) -> None:
    campaign.import_assay(opposite(tmp_path / "one.csv", POOL[:5]), "old", value_column="score")
    with pytest.raises(CampaignError, match=r"1 of 3 strings have a value of old already, such as .*undo 2"):
        campaign.import_assay(opposite(tmp_path / "two.csv", POOL[4:7]), "old", value_column="score")
    campaign.import_assay(opposite(tmp_path / "three.csv", POOL[5:6]), "old", value_column="score")
    assert campaign.status().assays == {"old": 6}
    with pytest.raises(InputError, match="activity is what this campaign measures"):
        campaign.import_assay(opposite(tmp_path / "four.csv", POOL[7:]), " activity ", value_column="score")


def test_replicates_are_averaged_where_they_are_said_to_be_ones(campaign: Campaign, tmp_path: Path) -> None:
    path = table(tmp_path / "other.csv", [("CCCC", 1.0), ("AAAA", 2.5), ("CCCC", 3.0)])
    campaign.import_assay(path, "old", value_column="score", replicates=True)
    assert known_assays(campaign.store)[0].values == {"CCCC": 2.0, "AAAA": 2.5}


@pytest.mark.parametrize("how", [{"surrogate": None, "strategy": MultiFidelity(), "contexts": CONTEXTS}, {}])
def test_a_model_of_fewer_assays_is_no_beginning_for_one_of_more(tmp_path: Path, how: dict[str, object]) -> None:
    campaign = begun(tmp_path, **how)
    measure(campaign, FEWEST)
    campaign.suggest()  # by a model whose parameters the file keeps
    path = opposite(tmp_path / "other.csv", POOL[:20])
    found = campaign.import_assay(path, "old", value_column="score")
    assert found.worth.count == FEWEST
    # Worked out from the beginning, whatever the file keeps by then.
    assert campaign.assay_worth("old") == found.worth
    campaign.suggest(2, more=True)
    with Campaign.open(tmp_path / "a.seqopt") as again:
        again.import_assay(opposite(tmp_path / "third.csv", POOL[5:25]), "older", value_column="score")
        again.suggest(2, more=True)
        again.undo(len(again.history()) - 1)  # the import: the model that was kept since knew one more assay
        assert again.suggest(2, more=True)
