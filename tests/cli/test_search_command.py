"""The command line, run as its users do."""

import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from seqopt.cli import main
from seqopt.errors import StoppedRunError

SMILES = [
    "".join(parts)
    for parts in itertools.product(["C", "CC", "OC", "N#C", "ClC"], ["C", "O", "N", "S"], ["C", "F", "Br"])
]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
QUICK = ["--initial", "5", "--batch", "4", "--budget", "8", "--seed", "1"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def table(folder: str = "out") -> pd.DataFrame:
    return pd.read_csv(Path(folder) / "evaluations.csv")


def search(*arguments: str, out: str = "out") -> int:
    return main(["search", *arguments, "--out", out, *(QUICK if "--initial" not in arguments else [])])


@pytest.mark.slow
def test_molecules_from_a_csv_file(capsys: pytest.CaptureFixture[str]) -> None:
    pool = write("library.csv", "id,SMILES,price\n" + "\n".join(f"m{i},{s},{i}" for i, s in enumerate(SMILES)))
    assert search(pool, "--objective", "logp") == 0
    frame = table()
    assert len(frame) == 13
    from rdkit import Chem
    from rdkit.Chem import Crippen

    for row in frame.itertuples():
        assert row.value == pytest.approx(Crippen.MolLogP(Chem.MolFromSmiles(row.string)))
    said = capsys.readouterr().out
    assert "molecules" in said
    assert "1/2" in said
    assert "2/2" in said
    assert (Path("out") / "report.html").exists()
    summary = json.loads((Path("out") / "summary.json").read_text())
    assert summary["settings"]["objective"] == "logp"
    assert summary["settings"]["column"] == "SMILES"


@pytest.mark.slow
def test_proteins_by_a_column_of_known_results_minimised_on_a_log_scale() -> None:
    sequences = ["".join(p) for p in itertools.product("MK", "LVI", "FWY", "DE", "R")]
    rows = [f"{s},{10 ** (s.count('L') + s.count('W'))}" for s in sequences]
    pool = write("variants.csv", "sequence,IC50\n" + "\n".join(rows))
    assert search(pool, "--objective", "column:IC50", "--minimize", "--transform", "log10") == 0
    frame = table()
    assert frame["value"].min() == 1
    known = dict(zip(sequences, (float(row.split(",")[1]) for row in rows), strict=True))
    assert all(known[row.string] == row.value for row in frame.itertuples())
    assert json.loads((Path("out") / "summary.json").read_text())["settings"]["kind"] == "protein"


@pytest.mark.slow
def test_ones_own_function() -> None:
    write("scores.py", "def count(strings):\n    return [s.count('ab') for s in strings]\n")
    pool = write("words.txt", "\n".join("".join(p) for p in itertools.product("abz", repeat=4)))
    assert search(pool, "--objective", "scores.py:count", "--kind", "text") == 0
    frame = table()
    assert (frame["value"] == [s.count("ab") for s in frame["string"]]).all()


@pytest.mark.slow
def test_unreadable_lines_are_listed_and_the_search_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    pool = write("library.smi", "\n".join([*SMILES[:30], "C1CC bad", "C(C)(C)(C)(C)C worse"]))
    assert search(pool, "--objective", "logp") == 0
    rejected = pd.read_csv("out/rejected.csv")
    assert rejected["line"].tolist() == [31, 32]
    said = capsys.readouterr().out
    assert "2 rejected" in said
    assert "line 31" in said
    assert "rejected.csv" in said
    assert search(pool, "--objective", "logp", "--strict", out="strict") == 2
    assert "line 31" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.csv", "--objective", "logp"], "no file"),
        (["void.csv", "--objective", "logp"], "is empty"),
        (["library.csv", "--objective", "logp", "--column", "smile"], "'SMILES', 'price'"),
        (["library.csv", "--objective", "logb"], "logp"),
        (["library.csv", "--objective", "column:IC50"], "'SMILES', 'price'"),
        (["library.csv", "--objective", "nowhere.py:f"], "nowhere.py"),
        (["library.csv", "--objective", "bad.py:f"], "ZeroDivisionError"),
        (["library.csv", "--objective", "bad_name.py:g"], "no function 'g', only f"),
        (["library.csv", "--objective", "logp", "--acquisition", "magic"], "gibbon"),
        (["library.csv", "--objective", "logp", "--tokenizer", "words"], "characters"),
        (["library.csv", "--objective", "logp", "--transform", "cube"], "log10"),
        (["library.csv", "--objective", "logp", "--kind", "polymer"], "protein"),
        (["library.csv", "--objective", "logp", "--kind", "text"], "molecule"),
        (["library.csv", "--objective", "logp", "--resume"], "no run to resume"),
        (["library.csv", "--objective", "logp", "--candidates", "0"], "candidates is 0"),
        (["library.csv", "--objective", "failing.py:f"], "all 5 evaluations"),
    ],
)
def test_bad_input_is_one_clear_message(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("library.csv", "SMILES,price\n" + "\n".join(f"{s},1" for s in SMILES))
    write("void.csv", "")
    write("bad.py", "1 / 0\n")
    write("bad_name.py", "def f(strings):\n    return [1.0]\n")
    write("failing.py", "def f(strings):\n    raise OSError('no licence')\n")
    assert search(*arguments) == 2
    captured = capsys.readouterr().err
    assert said in captured
    assert "Traceback" not in captured


def test_wrong_options_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "x.csv", "--objective", "logp", "--batch", "0"]) == 2
    assert "--batch" in capsys.readouterr().err
    assert main(["search", "x.csv"]) == 2
    assert main(["nonsense"]) == 2
    assert main(["bench", "nonsense"]) == 2


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--help"]) == 0
    said = capsys.readouterr().out
    for word in ("--objective", "--resume", "log10", "similarity:SMILES", "rejected.csv"):
        assert word in said
    assert main(["--version"]) == 0
    assert "seqopt 0." in capsys.readouterr().out


def test_the_command_line_starts_without_torch() -> None:
    code = "import sys, seqopt, seqopt.cli.app, seqopt.objectives, seqopt.datasets; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=ENVIRONMENT).returncode == 0


@pytest.mark.slow
def test_a_taken_folder_and_a_budget_beyond_the_pool(capsys: pytest.CaptureFixture[str]) -> None:
    pool = write("few.smi", "\n".join(SMILES[:9]))
    assert search(pool, "--objective", "logp") == 0
    assert "more than the 9 candidates" in capsys.readouterr().out.replace("\n", " ")
    assert len(table()) == 9
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    assert search(pool, "--objective", "logp") == 2
    assert "already holds a run" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before
    assert search(pool, "--objective", "logp", "--resume") == 0
    assert len(table()) == 9


def test_an_unexpected_error_shows_no_traceback_unless_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def defect(*_args: object, **_options: object) -> None:
        raise RuntimeError("a defect")

    pool = write("few.smi", "\n".join(SMILES))
    monkeypatch.setattr("seqopt.cli.search.read_pool", defect)
    assert search(pool, "--objective", "logp") == 1
    said = capsys.readouterr().err
    assert "unexpected RuntimeError: a defect" in said
    assert "--debug" in said
    assert "Traceback" not in said
    with pytest.raises(RuntimeError, match="a defect"):
        search(pool, "--objective", "logp", "--debug")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_stopped_from_outside_and_resumed(
    sent: signal.Signals,
    capfd: pytest.CaptureFixture[str],
    measured: Callable[[str], int],
    held: Callable[[str, str, int], Path],
) -> None:
    hold = held("slow.py", "C", 7)
    pool = write("library.smi", "\n".join(SMILES))
    command = [pool, "--objective", "slow.py:score", "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "seqopt", "search", *command, "--out", "stopped", *QUICK], env=ENVIRONMENT
    )
    deadline = time.monotonic() + 120
    while measured("stopped") < 3:
        assert time.monotonic() < deadline, "the search did not start"
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(sent)
    status = process.wait(timeout=60)
    assert status == (-signal.SIGKILL if sent == signal.SIGKILL else 130)
    results = measured("stopped")
    assert 3 <= results < 13
    if sent != signal.SIGKILL:
        assert "--resume" in capfd.readouterr().out
        assert (table("stopped")["status"] == "ok").sum() == results
    hold.unlink()
    assert search(*command, "--resume", out="stopped") == 0
    assert search(*command, out="whole") == 0
    pd.testing.assert_frame_equal(table("stopped").drop(columns="seconds"), table("whole").drop(columns="seconds"))


@pytest.mark.slow
def test_without_batches(capsys: pytest.CaptureFixture[str]) -> None:
    write("scores.py", "def count(strings):\n    return [s.count('C') for s in strings]\n")
    pool = write("library.smi", "\n".join(SMILES))
    options = ["--objective", "scores.py:count", "--workers", "2", "--asynchronous", "--acquisition", "random"]
    assert search(pool, *options) == 0
    assert "8 in turn, 2 at a time" in capsys.readouterr().out
    assert table()["string"].nunique() == 13
    assert json.loads((Path("out") / "summary.json").read_text())["settings"]["asynchronous"] is True
    assert main(["campaign", "status", "--campaign", "out/campaign.seqopt"]) == 0
    assert "13 values of 13 strings" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.slow
def test_a_score_is_given_chunks_if_the_user_says_so() -> None:
    write(
        "lists.py",
        "def f(strings):\n    with open('calls.txt', 'a') as file:\n        print(len(strings), file=file)\n"
        "    return [1.0 * len(string) for string in strings]\n",
    )
    pool = write("library.smi", "\n".join(SMILES))
    assert search(pool, "--objective", "lists.py:f", "--chunk-size", "3", "--acquisition", "random") == 0
    sizes = [int(line) for line in Path("calls.txt").read_text().split()]
    assert max(sizes) == 3
    assert sum(sizes) == len(table())
    assert (table()["value"] == table()["string"].str.len()).all()


@pytest.mark.slow
def test_a_hanging_evaluation_is_given_up() -> None:
    write(
        "hangs.py",
        "import time\ndef f(strings):\n    time.sleep(60 * strings[0].startswith('N'))\n"
        "    return [1.0 * len(strings[0])]\n",
    )
    pool = write("library.smi", "\n".join(SMILES))
    assert search(pool, "--objective", "hangs.py:f", "--timeout", "2") == 0
    frame = table()
    hung = frame["string"].str.startswith("N")
    assert hung.any()
    assert (frame["status"] == ["failed" if h else "ok" for h in hung]).all()
    assert frame.loc[hung, "error"].str.contains("2 s|time").all()


def test_known_results_are_read_from_a_file_and_a_wrong_line_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)
    pool = write("library.csv", "smiles\n" + "\n".join(SMILES))
    known = [*SMILES[::10], "CCCCCCCO"]
    rows = [f"{string};{len(string)},5" for string in known]
    bad = write("bad.csv", "smiles;activity\n" + "\n".join(rows))
    good = write(
        "known.csv", "smiles;note;logp\n" + "\n".join(row.replace(";", ";x;").replace(",", ".") for row in rows)
    )
    arguments = (pool, "--objective", "logp", "--surrogate", "tanimoto", "--initial", "8", "--budget", "2")
    assert search(*arguments, "--known", bad) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "bad.csv, line 1" in said
    assert "there is no column of values: expected 'logp'" in said
    assert not Path("out").exists()
    assert search(*arguments, "--known", good) == 0
    frame = table()
    assert frame["string"].tolist()[: len(known)] == known
    assert frame["value"].tolist()[: len(known)] == [len(string) + 0.5 for string in known]
    assert len(frame) == 8 + 2
    assert search(*arguments, "--known", good, "--resume") == 0
    assert len(table()) == 8 + 2
    write("known.csv", Path(good).read_text().replace(".5", ".25"))
    assert search(*arguments, "--known", good, "--resume") != 0
    assert "made with other settings (known.sha256" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_replay_says_what_it_found_of_the_best_among_what_passes_the_filters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = [float(len(smiles)) for smiles in SMILES]
    rows = (f"{smiles},{value},{i % 3}" for i, (smiles, value) in enumerate(zip(SMILES, values, strict=True)))
    pool = write("library.csv", "smiles,score,shelf\n" + "\n".join(rows) + "\n")
    write("bad.smi", f"{SMILES[3]}\n")
    write("first.smi", f"{SMILES[6]}\n")
    options = ["--where", "shelf in (0, 1)", "--exclude", "bad.smi", "--include", "first.smi"]
    assert search(pool, "-o", "column:score", "--minimize", *options, "--max-similarity", "0.9") == 0
    frame = table()
    allowed = [smiles for i, smiles in enumerate(SMILES) if i % 3 < 2 and i != 3]
    assert frame["string"].iloc[0] == SMILES[6]
    assert set(frame["string"]) <= set(allowed)
    replay = json.loads((Path("out") / "summary.json").read_text())["replay"]
    shortest = [smiles for smiles in allowed if len(smiles) == min(map(len, allowed))]
    (top,) = replay["tops"]
    assert (replay["candidates"], replay["evaluated"]) == (len(allowed), 13)
    assert (top["size"], top["found"]) == (len(shortest), len(set(shortest) & set(frame["string"])))
    assert top["expected"] == pytest.approx(13 * len(shortest) / len(allowed))
    said = f"found {top['found']} of {top['size']}"
    assert said in capsys.readouterr().out
    page = (Path("out") / "report.html").read_text()
    assert "Found of the top 1 %" in page
    assert f"{top['found']} of {top['size']}, ties with the last included" in page


def test_what_narrows_a_choice_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    pool = write("library.csv", "smiles,score\n" + "\n".join(f"{smiles},1" for smiles in SMILES) + "\n")
    for options, said in (
        (["--design", "latin"], "unknown design 'latin'"),
        (["--max-similarity", "1.5"], "max_similarity is 1.5"),
        (["--exclude", "none.smi"], "none.smi"),
        (["--include", write("other.smi", "CCCCCCCCCC\n")], "'CCCCCCCCCC' is to be included in the first batch"),
        (["--where", "shelf == 1"], "the library has no column 'shelf'; its columns are 'score'"),
        (["--property", "heaviness <= 5"], "heaviness"),
    ):
        assert search(pool, "-o", "column:score", *options) == 2
        told = capsys.readouterr()
        assert said in told.err
        if options[0] in ("--where", "--property"):
            assert told.out == ""  # nothing was read
        assert not Path("out").exists()


CRASHES = """
import os
def f(strings):
    if strings[0].startswith("N"):
        os._exit(3)
    return [1.0 * len(strings[0])]
def g(strings):
    return licensed(strings)
def licensed(strings):
    raise OSError("no licence for " + strings[0])
def scalar(smiles: str):
    return len(smiles)
"""


@pytest.mark.slow
def test_an_objective_that_ends_its_process_does_not_end_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    write("crashes.py", CRASHES)
    pool = write("library.smi", "\n".join(SMILES))
    assert search(pool, "--objective", "crashes.py:f", "--acquisition", "random") == 0
    frame = table()
    crashed = frame["string"].str.startswith("N")
    assert crashed.any()
    assert (frame["status"] == ["failed" if one else "ok" for one in crashed]).all()
    said = capsys.readouterr().out
    assert f"{crashed.sum()} failed:\n{crashed.sum():>7}  the worker process died (exit code 3)" in said
    summary = json.loads((Path("out") / "summary.json").read_text())
    assert summary["failures"] == {"the worker process died (exit code 3)": crashed.sum()}
    assert search(pool, "--objective", "crashes.py:scalar", "--no-isolate", "--acquisition", "random", out="here") == 0
    assert (table("here")["value"] == table("here")["string"].str.len()).all()


@pytest.mark.slow
def test_equal_failures_stop_with_the_reason_and_debug_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    write("crashes.py", CRASHES)
    pool = write("library.smi", "\n".join(SMILES))
    command = [pool, "--objective", "crashes.py:g", "--stop-after-failures", "3", "--no-isolate"]
    assert search(*command) == 2
    captured = capsys.readouterr()
    assert "the last 3 evaluations failed for the same reason: OSError: no licence" in captured.err
    assert "--resume" in captured.out
    assert "Traceback" not in captured.err
    assert len(table()) == 5
    assert (table()["status"] == "failed").sum() == 3
    with pytest.raises(StoppedRunError) as caught:
        search(*command, "--debug", out="debugged")
    assert 'raise OSError("no licence for " + strings[0])' in caught.value.__notes__[0]
    logging.getLogger("seqopt.tracebacks").setLevel(logging.NOTSET)


@pytest.mark.slow
def test_a_search_in_which_everything_failed_says_where_it_is_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    write("shy.py", "def f(strings):\n    return [float('nan') for _ in strings]\n")
    pool = write("library.smi", "\n".join(SMILES))
    command = [pool, "--objective", "shy.py:f", "--no-isolate"]
    assert search(*command) == 2
    captured = capsys.readouterr()
    assert "the objective returned nan" in captured.out
    said = " ".join(captured.err.split())
    assert "none of the 13 evaluations gave a value" in said
    assert "evaluations.csv" in said
    assert "--resume --retry-failed" in said
    assert Path("out/report.html").exists()
    write("shy.py", "def f(strings):\n    return [float(len(one)) for one in strings]\n")
    assert search(*command, "--resume", "--retry-failed") == 0
    assert (table()["status"] == "ok").sum() == 13


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--batch", "0"], "--batch"),
        (["--surrogate", "magic"], "unknown surrogate 'magic'"),
        (["--acquisition", "magic"], "unknown acquisition"),
        (["--objective", "missing.py:f"], "there is no file"),
        (["--objective", "mfe"], "is for DNA or RNA, but the strings of zinc250k are of kind 'molecule'"),
        (["--out", "file.txt"], "is a file, not a folder"),
        (["--out", "file.txt/below"], "is a file, not a folder"),
        (["--timeout", "0"], "timeout must be a positive number"),
        (["--transform", "cube"], "log10"),
        (["--tokenizer", "words"], "characters"),
        (["--tokenizer", "characters", "--surrogate", "minmax"], "does not look at symbols"),
        (["--candidates", "0"], "candidates is 0"),
        (["--kind", "polymer"], "unknown kind 'polymer'"),
        (["--known", "missing.csv"], "there is no file missing.csv"),
        (["--resume"], "no run to resume"),
        (["--stop-after-failures", "-1"], "--stop-after-failures"),
    ],
)
def test_options_are_refused_before_a_quarter_of_a_million_molecules_are_read(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_arguments: object, **_options: object) -> None:
        raise AssertionError("the pool was read")

    monkeypatch.setattr("seqopt.cli.search.read_pool", read)
    Path("file.txt").touch()
    objective = [] if "--objective" in arguments else ["--objective", "logp"]
    assert main(["search", "zinc250k", *objective, *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.slow
def test_attachment_points_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    pool = write("blocks.smi", "\n".join([*SMILES[:20], "*CCO", "[*:1]CCN"]))
    options = ["--objective", "logp", "--acquisition", "random"]
    assert search(pool, *options) == 0
    assert "an attachment point (*)" in capsys.readouterr().out
    assert search(pool, *options, "--attachment-points", out="asked") == 0
    sizes = [
        json.loads(Path(folder, "summary.json").read_text())["settings"]["pool_size"] for folder in ("out", "asked")
    ]
    assert sizes[1] == sizes[0] + 2
    for folder in ("out", "asked"):  # the library of the run is read again as it was
        assert main(["campaign", "suggest", "--more", "-n", "2", "--campaign", f"{folder}/campaign.seqopt"]) == 0


def test_a_new_run_takes_the_values_of_one_that_cannot_be_resumed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)
    pool = write("library.csv", "smiles,other\n" + "\n".join(f"{string},{len(string)}" for string in SMILES))
    arguments = (pool, "--objective", "logp", "--surrogate", "tanimoto", "--budget", "2")
    assert search(*arguments, "--initial", "6") == 0
    values = dict(zip(table()["string"], table()["value"], strict=True))
    assert search(*arguments, "--initial", "7", "--resume") != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "which can be given the values of this one (--known out/evaluations.csv)" in said
    # Values of something else are not offered.
    other = (pool, "--objective", "column:other", "--surrogate", "tanimoto", "--budget", "2")
    assert search(*other, "--initial", "6", "--resume") != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "(--out)" in said
    assert "--known" not in said
    Path("out").rename("before")
    assert search(*arguments, "--initial", "7", "--known", "before/evaluations.csv") == 0
    again = dict(zip(table()["string"], table()["value"], strict=True))
    assert {string: again[string] for string in values} == values
    assert len(again) > len(values)
