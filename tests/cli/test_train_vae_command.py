"""Training an autoencoder from the command line, as its users do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from seqopt.cli.train_vae import train_vae_command
from seqopt.errors import InputError
from seqopt.vae import Epoch, StringVAE, training
from seqopt.vae.checkpoint import read_checkpoint, write_checkpoint

QUICK = ["--hidden", "16", "--epochs", "2", "--batch", "32", "--device", "cpu"]
GRAMMAR = ["--grammar", "arithmetic", "--sample", "60", "--max-length", "5"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train_vae(*arguments: str, out: str = "model.vae") -> str:
    """What the command says."""
    app = typer.Typer()
    app.command()(train_vae_command)
    result = CliRunner().invoke(app, [*arguments, "--out", out, *QUICK])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(autouse=True)
def _spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    # The console of a process is made once; its output belongs to the runner of each test.
    from rich.console import Console

    from seqopt.cli import running

    monkeypatch.setattr(running, "console", Console(highlight=False, soft_wrap=True))


@pytest.mark.parametrize("model", ["character", "grammar"])
def test_strings_drawn_from_a_grammar(model: str) -> None:
    said = train_vae("--model", model, *GRAMMAR)
    assert "60 strings of 1 to 5 terminals drawn from the grammar arithmetic" in said
    assert "25 latent dimensions, KL weight" in said
    assert re.search(r"\n +2/2 ", said)
    vae = StringVAE.load("model.vae", model=model)
    assert vae.size == 25
    facts = json.loads(Path("model.vae.json").read_text())
    measured = facts["evaluation"]
    assert facts["model"] == vae.name
    assert len(facts["training"]["history"]) == 2
    assert measured["strings"] == 3
    assert len(measured["kl_per_dimension"]) == 25
    assert measured["valid_means"] == "grammatical"
    assert (measured["valid"] == 1.0) >= (model == "grammar")
    assert f"{measured['strings_right']:.1%} come back whole" in said


def test_molecules_of_a_file() -> None:
    rows = ["smiles", "CCO", "c1ccccc1", "CC(=O)N", "CCN(CC)CC", "CCCCCCCCCCCCCCCCCCCC", "CCO"]
    Path("pool.csv").write_text("\n".join([*rows, *("C" * n + "O" for n in range(2, 12))]))
    said = train_vae("pool.csv", "--max-length", "14")
    for words in ("molecules from pool.csv", "1 strings of more than 14 symbols", "duplicates", "read by RDKit"):
        assert words in said
    vae = StringVAE.load("model.vae", alphabet="CNO")
    assert vae.size == 56
    assert vae.facts["kind"] == "molecule"
    settings = vae.facts["training"]["settings"]
    assert settings["sorted_batches"] == 50
    assert (settings["kl_weight"], settings["learning_rate"]) == (0.005, 0.0015)
    assert settings["batch_size"] == 32  # given
    assert vae.codec.tokenizer.name == "smiles"
    assert (vae.network.sizes.decoder, vae.network.sizes.channels) == (2, 64)
    # A training that another version began, without convolutions, goes on as it was.
    facts, arrays = read_checkpoint("model.vae")
    facts["training"]["settings"] |= {"warmup": 0.25, "kl_weight": 0.1, "learning_rate": 2e-3}
    facts["sizes"] |= {"decoder": 1, "features": 48, "memory": 96}
    facts["codec"]["tokenizer"] = "characters"
    del facts["training"]["settings"]["sorted_batches"], facts["training"]["settings"]["ramp"]
    facts["training"]["finished"] = False
    write_checkpoint("model.vae", facts, arrays)
    with pytest.raises(InputError, match="the seed's first draw was"):  # all settings before it are the same
        train_vae("pool.csv", "--max-length", "14", "--resume", "--seed", "1")
    with pytest.raises(InputError, match=r"kl_weight was 0\.1 and is now 0\.3"):
        train_vae("pool.csv", "--max-length", "14", "--resume", "--kl-weight", "0.3")
    with pytest.raises(InputError, match="begun for another model"):
        train_vae("pool.csv", "--max-length", "14", "--resume", "--tokenizer", "smiles")


@pytest.mark.parametrize("recorded", [True, False])
def test_a_training_begun_without_a_rise_of_the_learning_rate_goes_on_without(recorded: bool) -> None:
    train_vae("--model", "character", *GRAMMAR)
    facts, arrays = read_checkpoint("model.vae")
    assert facts["training"]["settings"]["ramp"] == 200
    facts["training"]["settings"]["ramp"] = 0
    if not recorded:
        del facts["training"]["settings"]["ramp"]
    facts["training"]["finished"] = False
    write_checkpoint("model.vae", facts, arrays)
    with pytest.raises(InputError, match="portion was 0 and is now 7"):  # all settings before it are the same
        train_vae("--model", "character", *GRAMMAR, "--resume", "--portion", "7")


def test_molecules_as_selfies() -> None:
    rows = ["smiles", *("C" * n + end for n in range(1, 12) for end in ("O", "Cl"))]
    Path("pool.csv").write_text("\n".join(rows))
    with pytest.raises(InputError, match="leave --tokenizer smiles out"):
        train_vae("pool.csv", "--model", "selfies", "--tokenizer", "smiles")
    said = train_vae("pool.csv", "--model", "selfies")
    assert "a SELFIES model for molecules of 3 symbols" in said
    assert "read by RDKit" in said
    vae = StringVAE.load("model.vae", model="selfies")
    assert vae.size == 56
    assert vae.facts["training"]["strings"] == 22
    train_vae("pool.csv", "--model", "selfies", "--resume")
    assert StringVAE.load("model.vae").name == vae.name


def test_portions_of_the_strings() -> None:
    said = train_vae(*GRAMMAR, "--portion", "20")
    assert "2/2" in said
    assert StringVAE.load("model.vae").facts["training"]["settings"]["portion"] == 20


def test_a_random_part_of_a_file_and_strings_that_are_no_expressions() -> None:
    Path("strings.txt").write_text("\n".join(["x+1", "x+2", "x*3", "x+*1", "sin(x)", "x", "1+x+2"]))
    options = ["strings.txt", "--kind", "text", "--model", "grammar", "--grammar", "arithmetic"]
    with pytest.raises(InputError, match=r"'x\+\*1'.*position 3"):
        train_vae(*options)
    assert not Path("model.vae").exists()
    said = train_vae(*options, "--skip", "--latent", "3")
    assert "1 strings are left out" in said
    assert StringVAE.load("model.vae").size == 3
    Path("none.txt").write_text("x+*1\n+\n")
    with pytest.raises(InputError, match="the grammar arithmetic derives none of the 2 strings"):
        train_vae("none.txt", *options[1:], "--skip", out="none.vae")
    assert "a random part of 4 strings" in train_vae(*options, "--skip", "--sample", "4", out="part.vae")


def test_an_interrupted_training_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train_vae("--model", "grammar", *GRAMMAR, out="whole.vae")
    assert "Stopped" not in whole
    original = training._Trainer.run_epoch

    def interrupted(trainer: training._Trainer) -> Epoch:
        if trainer.history:
            raise KeyboardInterrupt
        return original(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(training._Trainer, "run_epoch", interrupted)
        patch.setattr("sys.argv", ["seqopt", "train-vae", "--model", "grammar", *GRAMMAR])
        app = typer.Typer()
        app.command()(train_vae_command)
        stopped = CliRunner().invoke(app, ["--model", "grammar", *GRAMMAR, "--out", "model.vae", *QUICK])
    assert stopped.exit_code == 130
    assert "Stopped. The model is in model.vae" in stopped.output
    assert f"seqopt train-vae --model grammar {' '.join(GRAMMAR)} --resume\n" in stopped.output
    with pytest.raises(InputError, match="already exists: continue it with --resume"):
        train_vae("--model", "grammar", *GRAMMAR)
    resumed = train_vae("--model", "grammar", *GRAMMAR, "--resume")
    assert "2/2" in resumed
    assert "1/2" not in resumed
    one, two = (StringVAE.load(name) for name in ("whole.vae", "model.vae"))
    assert one.name == two.name
    np.testing.assert_array_equal(one.quantiles, two.quantiles)


def test_where_the_measurements_cannot_be_written_the_model_is_safe() -> None:
    beside = Path("model.vae.json")
    beside.mkdir()
    with pytest.raises(
        InputError, match=r"cannot write model\.vae\.json.*: .*The model is safe in model\.vae: "
    ) as error:
        train_vae("--model", "grammar", *GRAMMAR)
    assert "give the same command again with --resume" in str(error.value)
    name = StringVAE.load("model.vae").name
    beside.rmdir()
    said = train_vae("--model", "grammar", *GRAMMAR, "--resume")
    assert "come back whole" in said
    assert json.loads(beside.read_text())["model"] == name == StringVAE.load("model.vae").name


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_folder_is_no_file_to_train_into(resume: list[str]) -> None:
    Path("folder").mkdir()
    with pytest.raises(InputError, match="folder is a folder: choose a file with --out"):
        train_vae(*GRAMMAR, *resume, out="folder")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settings": 3}, "begun with impossible settings"),
        ({"settings": {"warmup": "long"}}, "begun with impossible settings"),
        ({"settings": {"ramp": -1}}, "begun with impossible settings .*ramp is -1"),
    ],
)
def test_a_training_begun_with_settings_that_cannot_be(changes: dict[str, object], words: str) -> None:
    Path("pool.csv").write_text("\n".join(["smiles", *("C" * n + "O" for n in range(2, 12))]))
    train_vae("pool.csv")
    facts, arrays = read_checkpoint("model.vae")
    facts["training"] |= changes
    write_checkpoint("model.vae", facts, arrays)
    with pytest.raises(InputError, match=f"model.vae is damaged: its training was {words}"):
        train_vae("pool.csv", "--resume")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "grammar", "--sample", "9"], "needs --grammar"),
        (["--model", "telepathic"], "choose character, grammar or selfies"),
        ([], "nothing to learn from"),
        (["--sample", "9"], "nothing to learn from"),
        (["--sample", "9", "--grammar", "latin"], "latin"),
        ([*GRAMMAR, "--resume"], "there is no training to resume in model.vae"),
        ([*GRAMMAR, "--kl-weight", "-1"], "kl_weight is -1.0"),
        ([*GRAMMAR, "--held-out", "1"], "held_out is 1.0"),
        ([*GRAMMAR, "--tokenizer", "words"], "unknown tokenizer"),
        ([*GRAMMAR, "--model", "selfies"], "SELFIES are of molecules"),
        (["nowhere.csv"], "nowhere.csv"),
    ],
)
def test_input_that_cannot_be_used(arguments: list[str], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        train_vae(*arguments)


def test_a_file_that_is_no_checkpoint_or_of_another_training() -> None:
    Path("model.vae").write_text("x+1\n")
    with pytest.raises(InputError, match="not a model that seqopt train-vae wrote"):
        train_vae(*GRAMMAR, "--resume")
    Path("model.vae").unlink()
    train_vae(*GRAMMAR)
    with pytest.raises(InputError, match=r"begun for another model: an alphabet.*the grammar 'arithmetic'"):
        train_vae("--model", "grammar", *GRAMMAR, "--resume")
    with pytest.raises(InputError, match="begun with other strings"):
        train_vae(*GRAMMAR, "--resume", "--seed", "1")
