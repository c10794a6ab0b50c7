"""``seqopt search`` and ``seqopt campaign new`` with features and a prior mean."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

import seqopt
from seqopt.cli import main
from seqopt.errors import InputError
from seqopt.models import Features, SurrogatePlan
from seqopt.spaces import StringSpace

STRINGS = ["".join(symbols) for symbols in itertools.product("AB", repeat=6)]
VALUES = [string.count("AB") + 0.1 * string.count("A") for string in STRINGS]
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)
    monkeypatch.chdir(tmp_path)
    guesses = np.array(VALUES) + 0.3 * RNG.standard_normal(64)
    rows = [f"{s},{v},{g}" for s, v, g in zip(STRINGS, VALUES, guesses, strict=True)]
    Path("pool.csv").write_text("\n".join(["sequence,assay,zero_shot", *rows]))
    np.save("f.npy", np.stack([VALUES, RNG.standard_normal(64)], axis=1))
    np.savez("few.npz", strings=np.array(STRINGS[:60]), embedding=np.load("f.npy")[:60])


def search(*arguments: str) -> int:
    usual = ["pool.csv", "--kind", "text", "-o", "column:assay", "--initial", "8", "--batch", "4", "--budget", "4"]
    return main(["search", *usual, "--out", "out", *arguments])


def test_a_search_with_features_and_a_column_that_foretells(capsys: pytest.CaptureFixture[str]) -> None:
    known = "--features", "f.npy", "--prior-mean", "column:zero_shot"
    assert search(*known, "--surrogate", "features") == 0
    said = capsys.readouterr().out
    assert "prior mean: results are" in said
    assert "better where zero_shot is one higher" in said
    # The same command goes on, and one with other features does not.
    assert search(*known, "--surrogate", "features", "--resume", "--budget", "8") == 0
    np.save("f.npy", RNG.standard_normal((64, 2)))
    assert search(*known, "--surrogate", "features", "--resume", "--budget", "12") != 0
    assert "features was 'f.npy of SHA-256" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--features", "few.npz"], "few.npz has no features of 4 of 64 candidates, the first of them 'BBBBAA'"),
        (["--features", "none.npy"], "there is no file"),
        (["--surrogate", "features"], "give their file, --features FILE"),
        (["--features-kernel", "linear"], "--features-kernel goes with --features FILE"),
        (["--prior-mean", "zero_shot"], "expected column:NAME"),
        (["--prior-mean", "column:zeroshot"], "zeroshot"),
        (["--features", "f.npy", "--strategy", "lfbo"], "--features and --strategy lfbo do not go together yet"),
        (
            ["--features", "f.npy", "--fidelity", "column:zero_shot:0.1"],
            "--features and --fidelity do not go together yet",
        ),
        (["--features", "f.npy", "--features-kernel", "cosine"], "unknown kernel on features 'cosine'"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_scored(
    arguments: list[str], match: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(*arguments) != 0
    assert match in " ".join(capsys.readouterr().err.split())
    assert not Path("out", "evaluations.csv").exists()


def test_a_campaign_says_that_its_features_have_changed_or_moved(capsys: pytest.CaptureFixture[str]) -> None:
    begun = ["campaign", "new", "c", "--pool", "pool.csv", "--kind", "text", "--objective-name", "score"]
    assert main([*begun, "--features", "f.npy", "--prior-mean", "column:zero_shot", "--batch", "4"]) == 0
    assert main(["campaign", "suggest", "c"]) == 0
    shutil.copy("f.npy", "kept.npy")
    for spoil, match in (
        (lambda: np.save("f.npy", np.ones((64, 2))), "has changed"),
        (Path("f.npy").unlink, "there is no"),
    ):
        spoil()
        capsys.readouterr()
        assert main(["campaign", "suggest", "c", "--more"]) != 0
        said = " ".join(capsys.readouterr().err.split())
        assert match in said
        assert "f.npy" in said
        assert "features of strings" in said
    shutil.copy("kept.npy", "f.npy")
    assert main(["campaign", "suggest", "c", "--more"]) == 0


def test_features_of_generated_strings_are_refused_with_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no row of a file for a string that a search makes itself."""
    told = (
        "--features needs a list of candidates, of which features are known, and these strings are generated: search a"
    )
    made = ["--parent", "MKVLS", "--mutations", "2", "--features", "f.npy"]
    Path("own.py").write_text("def score(strings):\n    return [1.0 for _ in strings]\n")
    for words in (
        ["search", *made, "-o", "own.py:score"],
        ["campaign", "new", "a", *made, "--objective-name", "y"],
        ["campaign", "new", "a", "--protein", "MKVLS", "--features", "f.npy", "--objective-name", "y"],
    ):
        assert main(words) != 0
        assert told in " ".join(capsys.readouterr().err.split())
    prior = ["search", "--parent", "MKVLS", "--mutations", "2", "--prior-mean", "column:a", "-o", "own.py:score"]
    assert main(prior) != 0
    assert "--prior-mean needs a list of candidates, of which a column is known" in capsys.readouterr().err


def test_features_go_with_one_way_to_measure() -> None:
    strings = ["AAAA", "AAAB", "AABB", "ABBB"]
    np.savez("four.npz", strings=np.array(strings), features=RNG.standard_normal((4, 2)))
    plan = SurrogatePlan(features=Features("four.npz"))
    for more in ({"fidelities": {"cheap": (lambda found: [1.0] * len(found), 0.1)}}, {"plates": True}):
        with pytest.raises(InputError, match="features and prior means go with one way to measure yet: leave the plan"):
            seqopt.maximize(lambda found: [1.0] * len(found), strings, surrogate=plan, initial=2, budget=1, **more)
    with pytest.raises(InputError, match=r"a StringSpace makes its own.*Search a list of strings"):
        seqopt.maximize(lambda found: [1.0] * len(found), StringSpace("AB", 4), surrogate=plan, initial=2, budget=1)
