"""Runs on disk: nothing is lost, and a resumed run is the run."""

import itertools
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from gpytorch.kernels import MaternKernel
from gpytorch.priors import NormalPrior

import seqopt
from seqopt.acquisition import GIBBON
from seqopt.campaign import Campaign, CampaignError, CampaignStore, Measurement, NewMeasurement
from seqopt.campaign.run_folders import CAMPAIGN
from seqopt.errors import InputError, ObjectiveError, RunFolderError
from seqopt.filters import Pattern
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import StringGP
from seqopt.search import PoolSearch
from seqopt.spaces import CandidateSet, StringSpace
from seqopt.utils import config
from seqopt.utils.config import described

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=5)]
POOL += [string + "\u00e9\u2603" for string in POOL]  # the log must survive a cut inside any character
OPTIONS = {"budget": 9, "initial": 5, "batch_size": 3, "seed": 2}


def score(strings: list[str]) -> list[float]:
    return [string.count("AB") + 0.25 * string.startswith("A") for string in strings]


class Stops:
    """An objective that is interrupted at its nth evaluation, as by Ctrl-C."""

    name = "score"

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, strings: list[str]) -> list[float]:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return score(strings)


score.name = "score"  # type: ignore[attr-defined]


def counting(calls: list[str]) -> Callable[[list[str]], list[float]]:
    """The objective, noting what it is called with."""

    def scored(strings: list[str]) -> list[float]:
        calls.extend(strings)
        return score(strings)

    scored.name = "score"  # type: ignore[attr-defined]
    return scored


def evaluated(folder: Path) -> list[Measurement]:
    with CampaignStore.open(folder / CAMPAIGN) as store:
        return store.measurements()


def space() -> CandidateSet:
    return CandidateSet(POOL, kind="text")


def table(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "evaluations.csv").drop(columns="seconds")


def assert_same_run(folder: Path, whole: Path) -> None:
    """Bit for bit the same table, and the same steps with the same kernel parameters."""
    pd.testing.assert_frame_equal(table(folder), table(whole), check_exact=True)
    ours, theirs = (json.loads((path / "summary.json").read_text()) for path in (folder, whole))
    for step in ours["steps"] + theirs["steps"]:
        del step["seconds"]
    assert ours["steps"] == theirs["steps"]
    assert ours["best"] == theirs["best"]
    assert ours["status"] == theirs["status"] == "finished"


@pytest.fixture(autouse=True)
def _no_reports(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the run that is looked at draws its report: that takes longer than all else here."""
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    seqopt.maximize(score, space(), run_folder=folder, **OPTIONS)
    return folder


@pytest.mark.slow
def test_a_run_leaves_its_table_summary_plot_and_page(whole: Path) -> None:
    frame = pd.read_csv(whole / "evaluations.csv")
    assert list(frame["number"]) == list(range(1, 15))
    assert list(frame["value"]) == score(list(frame["string"]))
    assert frame["batch"].tolist() == [0] * 5 + [1] * 3 + [2] * 3 + [3] * 3
    # The first are random, and some later ones where the model is in doubt.
    assert (frame["predicted_mean"].isna() == frame["acquisition"].isna()).all()
    assert frame["acquisition"].isna()[:5].all()
    assert frame["acquisition"].notna().any()
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["status"] == "finished"
    assert summary["best"]["value"] == frame["value"].max()
    assert [step["evaluations"] for step in summary["steps"]] == [5, 8, 11, 14]
    assert set(summary["steps"][-1]["kernel"]) >= {
        "kernels[0].match_decay",
        "kernels[0].gap_decay",
        "kernels[0].weight",
        "outputscale",
        "noise_variance",
    }
    assert summary["settings"]["seed"] == 2
    assert summary["versions"]["torch"]
    assert (whole / "search.png").stat().st_size > 5000
    assert "<html" in (whole / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 3, 5, 7, 11, 13])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(after: int, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        seqopt.maximize(Stops(after), space(), run_folder=folder, **OPTIONS)
    saved = table(folder)
    assert (saved["status"] == "ok").sum() == after
    assert json.loads((folder / "summary.json").read_text())["status"] == "interrupted"
    seqopt.maximize(score, space(), run_folder=folder, resume=True, **OPTIONS)
    assert_same_run(folder, whole)


@pytest.mark.slow
def test_a_killed_run_loses_nothing_whatever_was_committed_last(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each commit of a run, the files as kill -9 would leave them are copied, and the run goes on from there."""
    states: list[Path] = []
    original = CampaignStore._write

    @contextmanager
    def watched(store: CampaignStore, *arguments: Any, **options: Any) -> Iterator[Any]:
        with original(store, *arguments, **options) as change:
            yield change
        copy = tmp_path / str(len(states))
        copy.mkdir()
        # Read through SQLite, since closing a copied file would drop the locks of this process.
        with (
            sqlite3.connect(f"{store.path.as_uri()}?mode=ro", uri=True) as there,
            sqlite3.connect(copy / CAMPAIGN) as to,
        ):
            there.backup(to)
        states.append(copy)

    with monkeypatch.context() as patched:
        patched.setattr(CampaignStore, "_write", watched)
        seqopt.maximize(score, space(), run_folder=tmp_path / "watched", **OPTIONS)
    assert len(states) == 1 + 4 + 14
    for number in (0, 1, 4, 8, 13, 18):
        folder = states[number]
        measured = len(evaluated(folder))
        calls: list[str] = []
        seqopt.maximize(counting(calls), space(), run_folder=folder, resume=True, **OPTIONS)
        assert len(calls) == 14 - measured  # none is evaluated again
        assert_same_run(folder, whole)
        with CampaignStore.open(folder / CAMPAIGN) as store:
            assert store.check() == []


def test_a_run_killed_before_it_began_begins(whole: Path, tmp_path: Path) -> None:
    (tmp_path / CAMPAIGN).touch()
    seqopt.maximize(score, space(), run_folder=tmp_path, resume=True, **OPTIONS)
    assert_same_run(tmp_path, whole)


def test_what_is_measured_is_on_the_disk_before_the_next_evaluation(tmp_path: Path) -> None:
    seen: list[int] = []

    def objective(strings: list[str]) -> list[float]:
        seen.append(len(evaluated(tmp_path / "run")))
        return score(strings)

    seqopt.maximize(objective, space(), run_folder=tmp_path / "run", **OPTIONS)
    assert seen == list(range(14))


def test_a_finished_run_can_be_extended(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    seqopt.maximize(score, space(), run_folder=folder, **(OPTIONS | {"budget": 3}))
    seqopt.maximize(score, space(), run_folder=folder, resume=True, **OPTIONS)
    assert_same_run(folder, whole)


def test_threads_give_the_same_run(whole: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as executor:
        seqopt.maximize(score, space(), run_folder=tmp_path / "run", executor=executor, **OPTIONS)
    assert_same_run(tmp_path / "run", whole)


def test_failures_are_kept_with_their_reason(tmp_path: Path) -> None:
    def objective(strings: list[str]) -> list[float]:
        if strings[0].startswith("AA"):
            raise RuntimeError("no such \u2603 thing")
        return score(strings)

    seqopt.maximize(objective, space(), run_folder=tmp_path / "run", **OPTIONS)
    frame = pd.read_csv(tmp_path / "run" / "evaluations.csv", keep_default_na=False)
    failed = frame[frame["status"] == "failed"]
    assert len(frame) == 14
    assert len(failed) > 0
    assert all(failed["string"].str.startswith("AA"))
    assert all(failed["error"].str.contains("RuntimeError: no such \u2603 thing"))


def test_nothing_that_log10_cannot_take_stops_the_run(tmp_path: Path) -> None:
    def objective(strings: list[str]) -> list[float]:
        return [string.count("AB") - 0.5 for string in strings]

    result = seqopt.maximize(objective, space(), transform="log10", run_folder=tmp_path / "run", **OPTIONS)
    failed = result.evaluations[result.evaluations["status"] == "failed"]
    assert len(failed) > 0
    assert all(failed["error"].str.contains("positive values, got -0.5$"))


def test_an_objective_that_never_succeeds_is_said_and_the_run_is_kept(tmp_path: Path) -> None:
    def objective(strings: list[str]) -> list[float]:
        raise OSError("the licence server is down")

    with pytest.raises(ObjectiveError, match=r"all 5 .*licence server is down"):
        seqopt.maximize(objective, space(), run_folder=tmp_path / "run", **OPTIONS)
    assert len(table(tmp_path / "run")) == 5


def test_a_taken_folder_is_not_touched(whole: Path) -> None:
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    with pytest.raises(RunFolderError, match=r"already holds a run: continue it with resume=True \(--resume\)"):
        seqopt.maximize(score, space(), run_folder=whole, **OPTIONS)
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == before


def test_resuming_with_other_settings_is_refused(whole: Path) -> None:
    with pytest.raises(RunFolderError, match="seed was 2, is now 3"):
        seqopt.maximize(score, space(), run_folder=whole, resume=True, **(OPTIONS | {"seed": 3}))
    with pytest.raises(RunFolderError, match=r"these are other candidates .* 24 candidates instead of 64"):
        seqopt.maximize(score, CandidateSet(POOL[40:], kind="text"), run_folder=whole, resume=True, **OPTIONS)


def test_numbers_may_be_those_of_numpy(whole: Path, tmp_path: Path) -> None:
    options = {name: np.int64(value) for name, value in OPTIONS.items()}
    seqopt.maximize(score, space(), run_folder=tmp_path / "run", **options)
    assert list(table(tmp_path / "run")["string"]) == list(table(whole)["string"])


def test_resuming_with_other_parts_is_refused(whole: Path) -> None:
    with pytest.raises(RunFolderError, match="GumbelMaxValueSampler"):
        seqopt.maximize(score, space(), run_folder=whole, resume=True, acquisition=GIBBON(sampler="gumbel"), **OPTIONS)
    with pytest.raises(RunFolderError, match=r"surrogate\.type was 'FullyBayesianGP', is now 'StringGP'"):
        seqopt.maximize(score, space(), run_folder=whole, resume=True, surrogate="ngrams", **OPTIONS)


def test_candidates_that_are_added_may_change_the_default_surrogate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {**OPTIONS, "run_folder": tmp_path / "run"}
    seqopt.maximize(score, CandidateSet(POOL[:32], kind="text"), **(options | {"budget": 2}))
    more = CandidateSet([*POOL[:32], "ABABABABAB"], kind="text")  # of another length: no kernels on positions
    for budget in (5, 9):
        caplog.clear()
        result = seqopt.maximize(score, more, resume=True, **(options | {"budget": budget}))
        said = [one for one in caplog.messages if "the default surrogate is another one" in one]
        assert len(said) == (budget == 5)
    assert len(result.evaluations) == 14
    with pytest.raises(RunFolderError, match=r"surrogate"):
        seqopt.maximize(score, more, surrogate="ngrams", resume=True, **options)


def test_resuming_with_another_kernel_or_another_fit_is_refused(tmp_path: Path) -> None:
    options = {**OPTIONS, "budget": 1, "run_folder": tmp_path / "run"}
    seqopt.maximize(score, space(), surrogate="ssk", **options)
    with pytest.raises(RunFolderError, match=r"surrogate\.restarts was 2, is now 7"):
        seqopt.maximize(score, space(), resume=True, surrogate=StringGP(restarts=7), **options)
    with pytest.raises(RunFolderError, match=r"\(details\.surrogate\.kernel\.type was '\w+', is now '\w+'\)"):
        seqopt.maximize(score, space(), resume=True, surrogate="ngrams", **options)


def test_a_folder_with_ones_own_files_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "evaluations.csv").write_text("mine")
    with pytest.raises(RunFolderError, match=r"holds evaluations\.csv, which a run would overwrite"):
        seqopt.maximize(score, space(), run_folder=tmp_path, **OPTIONS)
    assert (tmp_path / "evaluations.csv").read_text() == "mine"
    assert not (tmp_path / CAMPAIGN).exists()


def test_nothing_is_begun_with_arguments_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="timeout"):
        seqopt.maximize(score, space(), run_folder=tmp_path / "run", timeout=-1, **OPTIONS)
    assert not (tmp_path / "run").exists()
    settings = {"seed of the user": np.int64(3), "path": tmp_path, "pair": (1, 2)}
    seqopt.maximize(score, space(), run_folder=tmp_path / "run", settings=settings, **(OPTIONS | {"budget": 0}))
    seqopt.maximize(score, space(), run_folder=tmp_path / "run", settings=settings, resume=True, **OPTIONS)
    assert len(table(tmp_path / "run")) == 14


def test_absurd_values_are_failures_and_the_run_goes_on(tmp_path: Path) -> None:
    def objective(strings: list[str]) -> list[float]:
        return [1e300 if string.startswith("AA") else float(string.count("AB")) for string in strings]

    result = seqopt.maximize(objective, space(), run_folder=tmp_path / "run", **OPTIONS)
    failed = result.evaluations["status"] == "failed"
    assert (failed == result.evaluations["string"].str.startswith("AA")).all()
    assert result.best_value < 10


def test_values_over_hundreds_of_decades_are_survived(tmp_path: Path) -> None:
    def objective(strings: list[str]) -> list[float]:
        return [10.0 ** (100 * string.count("AB") - 140) for string in strings]

    seqopt.maximize(objective, space(), transform="log10", run_folder=tmp_path / "run", **OPTIONS)
    assert len(table(tmp_path / "run")) == 14


def test_a_table_that_cannot_be_rewritten_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def locked(path: Path, text: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("seqopt.campaign.runs.write_atomically", locked)
    result = seqopt.maximize(score, space(), run_folder=tmp_path / "run", **OPTIONS)
    assert len(result.evaluations) == 14
    assert "campaign.seqopt has every result that was recorded" in caplog.text


def test_a_full_disk_is_explained_and_the_run_can_go_on(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, commits = CampaignStore._write, itertools.count()

    @contextmanager
    def full(store: CampaignStore, *arguments: Any, **options: Any) -> Iterator[Any]:
        if next(commits) == 9:
            pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
            store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with original(store, *arguments, **options) as change:
            if store._connection.execute("PRAGMA max_page_count").fetchone()[0] < 1e6:
                change.arguments["filling"] = "x" * 10_000
            yield change

    with monkeypatch.context() as patched:
        patched.setattr(CampaignStore, "_write", full)
        with pytest.raises(RunFolderError, match=r"has the value \d.*not be recorded: the disk is full.*--resume"):
            seqopt.maximize(score, space(), run_folder=tmp_path / "run", **OPTIONS)
    assert len(evaluated(tmp_path / "run")) == 6
    seqopt.maximize(score, space(), run_folder=tmp_path / "run", resume=True, **OPTIONS)
    assert_same_run(tmp_path / "run", whole)


def test_a_damaged_file_is_named_and_kept(whole: Path, tmp_path: Path) -> None:
    data = (whole / CAMPAIGN).read_bytes()
    for number, damaged in enumerate((b"nonsense" * 1000, data[:100] + b"\xff" * 9000 + data[9100:])):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / CAMPAIGN).write_bytes(damaged)
        with pytest.raises(
            RunFolderError, match=r"campaign\.seqopt is (not a campaign|damaged).*evaluations\.csv, too"
        ):
            seqopt.maximize(score, space(), run_folder=folder, resume=True, **OPTIONS)
        assert (folder / CAMPAIGN).read_bytes() == damaged
        with pytest.raises(RunFolderError, match="already holds a run"):
            seqopt.maximize(score, space(), run_folder=folder, **OPTIONS)


def test_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no run to resume"):
        seqopt.maximize(score, space(), run_folder=tmp_path / "no", resume=True, **OPTIONS)
    with pytest.raises(InputError, match="resume needs the run_folder"):
        seqopt.maximize(score, space(), resume=True, **OPTIONS)


HOLD = """
import sys, time
from pathlib import Path
from seqopt.campaign.locks import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_processes_cannot_write_one_run(whole: Path) -> None:
    pytest.importorskip("fcntl", reason="this platform has no advisory file locks")
    with subprocess.Popen([sys.executable, "-c", HOLD, str(whole / CAMPAIGN)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        with pytest.raises(RunFolderError, match="another process is writing"):
            seqopt.maximize(score, space(), run_folder=whole, resume=True, **OPTIONS)
        holder.kill()  # what it leaves behind stops nobody
    seqopt.maximize(score, space(), run_folder=whole, resume=True, **OPTIONS)
    assert not list(whole.glob("*-run"))


def test_one_process_cannot_write_one_run_twice(tmp_path: Path) -> None:
    def objective(strings: list[str]) -> list[float]:
        with pytest.raises(RunFolderError, match="another process is writing"):
            seqopt.maximize(score, space(), run_folder=tmp_path, resume=True, **OPTIONS)
        return score(strings)

    seqopt.maximize(objective, space(), run_folder=tmp_path, **(OPTIONS | {"budget": 0}))


def test_a_budget_larger_than_the_pool_ends_with_the_pool() -> None:
    result = seqopt.minimize(score, CandidateSet(POOL[:9], kind="text"), budget=50, initial=4, batch_size=3)
    assert sorted(result.evaluations["string"]) == sorted(POOL[:9])
    assert result.best_value == min(score(POOL[:9]))


QUICK = {"initial": 4, "budget": 4, "batch_size": 2, "seed": 1, "surrogate": "one-hot", "acquisition": "mean"}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.txt"
    path.write_text("\n".join(POOL[:32]))
    return path


def test_the_campaign_of_a_run_is_one_like_any_other(library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = seqopt.maximize(score, library, run_folder=folder, **QUICK)
    with Campaign.open(folder / CAMPAIGN) as campaign:
        status = campaign.status()
        assert status.best is not None
        assert (status.best.string, status.best.mean()) == (result.best_string, result.best_value)
        assert (status.counts.values, status.counts.open, status.counts.batches) == (8, 0, 3)
        assert (status.settings.objective, status.settings.direction) == ("score", "maximize")
        assert status.model["parameters"] == result.optimizer.hyperparameters
        assert [command.kind for command in campaign.history()].count("record") == 8
        assert sorted(campaign.to_pandas()["score"]) == sorted(result.evaluations["value"])
        chosen = campaign.store.suggestions()[-1]
        row = result.evaluations.iloc[-1]
        assert (chosen.mean, chosen.std, chosen.score) == (row.predicted_mean, row.predicted_std, row.acquisition)
        assert chosen.low is not None
        assert chosen.low < chosen.mean < chosen.high  # type: ignore[operator]
        # What comes next is the same whether the run or its owner goes on.
        by_hand = [row.string for row in campaign.suggest(2)]
        assert by_hand == result.optimizer.ask(2)


def test_what_is_done_by_hand_counts_when_the_run_is_resumed(library: Path, tmp_path: Path) -> None:
    folder, calls = tmp_path / "run", list[str]()
    seqopt.maximize(score, library, run_folder=folder, **QUICK)
    with Campaign.open(folder / CAMPAIGN) as campaign:
        undone = campaign.store.measurements()[-1].string
        campaign.undo()
        one, two = campaign.suggest(2, more=True)
        campaign.record(one.name, -3.0)
        campaign.withdraw([two.name])
        campaign.record("ABABz", 7.5)
    options = QUICK | {"budget": 9}
    result = seqopt.maximize(counting(calls), library, run_folder=folder, resume=True, **options)
    assert calls[0] == undone
    assert len(calls) == 13 - 7 - 2  # what was withdrawn has cost nothing
    assert two.string not in calls
    values = result.evaluations.set_index("string")["value"]
    assert (values[one.string], values["ABABz"]) == (-3.0, 7.5)
    assert result.best_value == 7.5
    assert result.evaluations.set_index("string")["status"][two.string] == "withdrawn"


def test_a_run_that_its_file_cannot_repeat_is_not_continued_by_hand(library: Path, tmp_path: Path) -> None:
    for number, (options, said) in enumerate(
        (
            ({"surrogate": StringGP(MaternKernel(), restarts=1)}, "kernel of StringGP: MaternKernel cannot be written"),
            ({"acquisition": GIBBON(repulsion=lambda size: 0.5)}, "repulsion of GIBBON: .* cannot be written down"),
            ({"tokenizer": "characters", "surrogate": "ssk"}, "it has its own tokenizer"),
        )
    ):
        folder = tmp_path / str(number)
        seqopt.maximize(score, library, run_folder=folder, **(QUICK | {"budget": 0} | options))
        with Campaign.open(folder / CAMPAIGN) as campaign:
            with pytest.raises(CampaignError, match=said):
                campaign.suggest()
            assert campaign.status().counts.values == 4
    folder = tmp_path / "own"
    narrowed = StringSpace("AB", 8, accept=str.isupper)
    seqopt.maximize(score, narrowed, run_folder=folder, **(QUICK | {"budget": 0}))
    with Campaign.open(folder / CAMPAIGN) as campaign, pytest.raises(CampaignError, match="searches a custom space"):
        campaign.suggest()


def test_a_run_over_a_short_list_is_continued_by_hand(tmp_path: Path) -> None:
    result = seqopt.maximize(score, POOL[:32], run_folder=tmp_path / "run", **(QUICK | {"budget": 3}))
    with Campaign.open(tmp_path / "run" / CAMPAIGN) as campaign:
        by_hand = [row.string for row in campaign.suggest(2)]
    assert by_hand == result.optimizer.ask(2)


@pytest.mark.parametrize(
    "options",
    [
        {"surrogate": StringGP(SubsequenceKernel(3, 0.7, gap_decay_prior=NormalPrior(0.4, 0.2)), restarts=1)},
        {"surrogate": "ngrams", "acquisition": GIBBON(2, "gumbel", repulsion=0.5), "search": PoolSearch(8)},
        {"allow_repeats": True},
    ],
    ids=["kernel", "search", "repeats"],
)
def test_a_campaign_keeps_parts_with_their_parameters(options: dict[str, Any], library: Path, tmp_path: Path) -> None:
    result = seqopt.maximize(score, library, run_folder=tmp_path / "run", **(QUICK | {"budget": 3} | options))
    with Campaign.open(tmp_path / "run" / CAMPAIGN) as campaign:
        by_hand = [row.string for row in campaign.suggest(2)]
    assert by_hand == result.optimizer.ask(2)


def test_a_campaign_is_begun_with_objects_and_goes_on_with_the_same(library: Path, tmp_path: Path) -> None:
    parts = {"surrogate": StringGP(NgramKernel(3), restarts=1), "acquisition": GIBBON(3), "search": PoolSearch(20)}
    suggested = []
    for reopened in (False, True):
        path = tmp_path / f"{reopened}.seqopt"
        campaign = Campaign.create(path, library, objective="y", kind="text", batch_size=4, **parts)
        for batch in range(3):
            if reopened:
                campaign.close()
                campaign = Campaign.open(path)
            rows = campaign.suggest()
            suggested.append([row.string for row in rows])
            if batch < 2:
                for row in rows:
                    campaign.record(row.name, float(row.string.count("AB")))
        with campaign:
            optimizer = campaign.optimizer()
            assert described(optimizer.surrogate) == described(StringGP(NgramKernel(3), restarts=1))
            assert described(optimizer.search) == described(PoolSearch(20))
    assert suggested[:3] == suggested[3:]


def test_a_part_that_cannot_be_made_again_is_named_and_the_file_stays_as_it_is(library: Path, tmp_path: Path) -> None:
    class Mine(StringGP):
        """A class that another process does not know."""

    path = tmp_path / "mine.seqopt"
    with pytest.raises(InputError, match=r"the surrogate cannot be kept in a file: .*MaternKernel"):
        Campaign.create(path, library, objective="y", kind="text", surrogate=StringGP(MaternKernel()))
    assert not path.exists()
    with Campaign.create(path, library, objective="y", kind="text", batch_size=2, surrogate=Mine()):
        pass
    before = path.read_bytes()
    known = config._TYPES.pop(Mine.config_name)
    try:
        with Campaign.open(path) as campaign, pytest.raises(CampaignError, match=r"no part of the type .*Mine"):
            campaign.suggest()
    finally:
        config._TYPES[Mine.config_name] = known
    assert path.read_bytes() == before


def test_a_result_that_somebody_else_records_meanwhile_counts_and_teaches(library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def objective(strings: list[str]) -> list[float]:
        with CampaignStore.open(folder / CAMPAIGN) as other:
            if len(other.measurements()) == 2:
                with other.transaction("record", {"string": "x"}) as change:
                    change.add_measurements([NewMeasurement("xxxxx", "xxxxx", 1.0)])
        return score(strings)

    objective.name = "score"  # type: ignore[attr-defined]
    result = seqopt.maximize(objective, library, run_folder=folder, **QUICK)
    assert len(evaluated(folder)) == 8
    assert "xxxxx" in set(result.evaluations["string"]) & set(table(folder)["string"])
    assert len(seqopt.maximize(score, library, run_folder=folder, resume=True, **QUICK).evaluations) == 8


def test_settings_that_somebody_else_changes_stop_the_run_and_nothing_is_lost(library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def objective(strings: list[str]) -> list[float]:
        with Campaign.open(folder / CAMPAIGN) as other:
            if len(other.store.measurements()) == 2:
                other.set_filters([Pattern("^A")])
        return score(strings)

    objective.name = "score"  # type: ignore[attr-defined]
    with pytest.raises(RunFolderError, match=r"settings .* were changed by another command during the run"):
        seqopt.maximize(objective, library, run_folder=folder, **QUICK)
    assert len(evaluated(folder)) == 3
    with Campaign.open(folder / CAMPAIGN) as campaign:
        campaign.set_filters([])
    assert len(seqopt.maximize(score, library, run_folder=folder, resume=True, **QUICK).evaluations) == 8


def test_an_interrupted_suggestion_leaves_the_tables_as_they_were(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = seqopt.maximize(score, library, run_folder=tmp_path / "whole", **QUICK)

    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("seqopt.search.PoolSearch.propose", interrupted)
        with pytest.raises(KeyboardInterrupt):
            seqopt.maximize(score, library, run_folder=tmp_path / "run", **QUICK)
    assert list(table(tmp_path / "run")["status"]) == ["ok"] * 4
    resumed = seqopt.maximize(score, library, run_folder=tmp_path / "run", resume=True, **QUICK)
    assert list(resumed.evaluations["string"]) == list(whole.evaluations["string"])


def test_a_campaign_begun_by_hand_or_with_filters_is_not_a_run_to_resume(library: Path, tmp_path: Path) -> None:
    with Campaign.create(tmp_path / CAMPAIGN, library, objective="activity"):
        pass
    with pytest.raises(RunFolderError, match="was started by hand"):
        seqopt.maximize(score, library, run_folder=tmp_path, resume=True, **QUICK)
    folder = tmp_path / "run"
    seqopt.maximize(score, library, run_folder=folder, **(QUICK | {"budget": 0}))
    with Campaign.open(folder / CAMPAIGN) as campaign:
        campaign.set_filters([Pattern("^A")])
    with pytest.raises(RunFolderError, match="has been given filters"):
        seqopt.maximize(score, library, run_folder=folder, resume=True, **QUICK)


def test_what_a_replay_learnt_is_asked_though_it_is_not_continued_by_hand(library: Path, tmp_path: Path) -> None:
    table = tmp_path / "known.csv"
    strings = library.read_text().split()[1:33]
    table.write_text("string,y\n" + "".join(f"{text},{text.count('A')}\n" for text in strings))
    result = seqopt.maximize("column:y", table, run_folder=tmp_path / "run", **QUICK)
    with Campaign.open(tmp_path / "run" / CAMPAIGN) as campaign:
        found = campaign.predict(strings[:4])
        assert [row.key for row in found] == strings[:4]
        expected = result.optimizer.predictions(strings[:4]).central
        assert [row.predicted for row in found] == pytest.approx(list(expected), rel=1e-6)
        for refused in (campaign.suggest, campaign.rank, campaign.optimizer):
            with pytest.raises(CampaignError, match="its values are looked up in a column"):
                refused()
