"""What Ctrl-C leaves behind, and says that it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqopt.campaign import CampaignStore
from seqopt.campaign.session import Session
from seqopt.cli import main


@pytest.mark.parametrize("kept", [False, True])
def test_an_interrupted_suggestion_says_whether_anything_has_changed(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("library.smi").write_text("CCO\nCCN\nCCCO\nCCCN\n")
    assert main(["campaign", "new", "a", "--pool", "library.smi", "--objective-name", "y", "--batch", "2"]) == 0
    real = Session.suggest

    def interrupted(self: Session, *arguments: object, **options: object) -> None:
        if kept:
            real(self, *arguments, **options)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "suggest", interrupted)
    with CampaignStore.open("a.seqopt") as store:
        before = store.state
    capsys.readouterr()
    assert main(["campaign", "suggest"]) == 130
    said = " ".join(capsys.readouterr().out.split())
    with CampaignStore.open("a.seqopt") as store:
        assert store.check() == []
        assert (store.state > before) == kept
    assert ("what was suggested is kept" if kept else "nothing was suggested, and the campaign is as it was") in said


def test_an_error_that_an_interruption_causes_ends_like_the_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("library.smi").write_text("CCO\nCCN\nCCCO\nCCCN\n")
    assert main(["campaign", "new", "a", "--pool", "library.smi", "--objective-name", "y", "--batch", "2"]) == 0

    def interrupted(self: Session, *arguments: object, **options: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            # As the end of a lock's block does where a signal came before its beginning was over.
            raise RuntimeError("release unlocked lock")

    monkeypatch.setattr(Session, "suggest", interrupted)
    capsys.readouterr()
    assert main(["campaign", "suggest"]) == 130
    said = capsys.readouterr()
    assert "nothing was suggested, and the campaign is as it was" in " ".join(said.out.split())
    assert "interrupted; while it stopped, RuntimeError: release unlocked lock" in said.err
