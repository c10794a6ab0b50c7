"""Runs on disk: nothing is lost, and a resumed run is the run."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import seqopt
from seqopt.acquisition import GIBBON
from seqopt.errors import InputError, ObjectiveError, RunFolderError
from seqopt.models import StringGP
from seqopt.optimizer.run_folder import RunFolder
from seqopt.spaces import CandidateSet

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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    seqopt.maximize(score, space(), run_folder=folder, **OPTIONS)
    return folder


def test_a_run_leaves_its_table_summary_plot_and_page(whole: Path) -> None:
    frame = pd.read_csv(whole / "evaluations.csv")
    assert list(frame["number"]) == list(range(1, 15))
    assert list(frame["value"]) == score(list(frame["string"]))
    assert frame["batch"].tolist() == [0] * 5 + [1] * 3 + [2] * 3 + [3] * 3
    assert frame["predicted_mean"].isna().sum() == frame["acquisition"].isna().sum() == 5
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["status"] == "finished"
    assert summary["best"]["value"] == frame["value"].max()
    assert [step["evaluations"] for step in summary["steps"]] == [5, 8, 11, 14]
    assert set(summary["steps"][-1]["kernel"]) >= {
        "match_decay",
        "gap_decay",
        "outputscale",
        "noise_variance",
    }
    assert summary["settings"]["seed"] == 2
    assert summary["versions"]["torch"]
    assert (whole / "search.png").stat().st_size > 5000
    assert "<html" in (whole / "report.html").read_text()


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


def test_a_killed_run_loses_nothing_whatever_was_written_last(whole: Path, tmp_path: Path) -> None:
    log = (whole / "log.jsonl").read_bytes()
    ends = [position + 1 for position, byte in enumerate(log) if byte == ord("\n")]
    cuts = [0, ends[0] // 2, ends[0], *range(len(log) // 5, len(log), len(log) // 5), ends[-2] + 3, ends[-1]]
    for number, cut in enumerate(cuts):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "log.jsonl").write_bytes(log[:cut])  # kill -9 leaves a prefix, cut anywhere
        seqopt.maximize(score, space(), run_folder=folder, resume=True, **OPTIONS)
        events = [json.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()]
        assert [event["event"] for event in events].count("evaluated") == 14  # nothing torn is left in the log
        assert_same_run(folder, whole)


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
    before = (whole / "log.jsonl").read_bytes()
    with pytest.raises(RunFolderError, match="already holds a run: continue it with --resume"):
        seqopt.maximize(score, space(), run_folder=whole, **OPTIONS)
    assert (whole / "log.jsonl").read_bytes() == before


def test_resuming_with_other_settings_is_refused(whole: Path) -> None:
    with pytest.raises(RunFolderError, match="seed was 2, is now 3"):
        seqopt.maximize(score, space(), run_folder=whole, resume=True, **(OPTIONS | {"seed": 3}))
    with pytest.raises(RunFolderError, match=r"candidates have changed .*64 candidates then, 63 now"):
        seqopt.maximize(score, CandidateSet(POOL[1:], kind="text"), run_folder=whole, resume=True, **OPTIONS)


def test_resuming_with_other_parts_is_refused(whole: Path) -> None:
    with pytest.raises(RunFolderError, match="GumbelMaxValueSampler"):
        seqopt.maximize(score, space(), run_folder=whole, resume=True, acquisition=GIBBON(sampler="gumbel"), **OPTIONS)
    with pytest.raises(RunFolderError, match=r"surrogate\.restarts was 2, is now 7"):
        seqopt.maximize(score, space(), run_folder=whole, resume=True, surrogate=StringGP(restarts=7), **OPTIONS)


def test_a_folder_with_ones_own_files_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "evaluations.csv").write_text("mine")
    with pytest.raises(RunFolderError, match=r"holds evaluations\.csv, which a run would overwrite"):
        seqopt.maximize(score, space(), run_folder=tmp_path, **OPTIONS)
    assert (tmp_path / "evaluations.csv").read_text() == "mine"
    assert not (tmp_path / "log.jsonl").exists()


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

    monkeypatch.setattr("seqopt.optimizer.run_folder.write_atomically", locked)
    result = seqopt.maximize(score, space(), run_folder=tmp_path / "run", **OPTIONS)
    assert len(result.evaluations) == 14
    assert "log.jsonl has every result" in caplog.text


def test_a_full_disk_is_explained_and_the_run_can_go_on(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    calls = itertools.count()
    monkeypatch.setattr("os.fsync", lambda descriptor: full(descriptor) if next(calls) == 9 else None)
    with pytest.raises(RunFolderError, match=r"No space left on device.*--resume"):
        seqopt.maximize(score, space(), run_folder=tmp_path / "run", **OPTIONS)
    seqopt.maximize(score, space(), run_folder=tmp_path / "run", resume=True, **OPTIONS)
    assert_same_run(tmp_path / "run", whole)


def test_a_damaged_log_names_file_and_line(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    lines = (whole / "log.jsonl").read_text().split("\n")
    lines[3] = lines[3][:20] + "%%" + lines[3][25:]
    (folder / "log.jsonl").write_text("\n".join(lines))
    with pytest.raises(RunFolderError, match=r"log\.jsonl, line 4: damaged"):
        seqopt.maximize(score, space(), run_folder=folder, resume=True, **OPTIONS)


def test_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no run to resume"):
        seqopt.maximize(score, space(), run_folder=tmp_path / "no", resume=True, **OPTIONS)
    with pytest.raises(InputError, match="resume needs the run_folder"):
        seqopt.maximize(score, space(), resume=True, **OPTIONS)


def test_two_processes_cannot_write_one_run(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this platform has no advisory file locks")
    first = RunFolder.create(tmp_path, {"seed": 1})
    with pytest.raises(RunFolderError, match="another process is writing"):
        RunFolder.resume(tmp_path, {"seed": 1})
    del first


def test_a_budget_larger_than_the_pool_ends_with_the_pool() -> None:
    result = seqopt.minimize(score, CandidateSet(POOL[:9], kind="text"), budget=50, initial=4, batch_size=3)
    assert sorted(result.evaluations["string"]) == sorted(POOL[:9])
    assert result.best_value == min(score(POOL[:9]))
