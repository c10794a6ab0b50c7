"""Descriptions of the parts of a search: kept as JSON with a run, compared on resuming, read again by the report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt import maximize
from seqopt.models import SURROGATES
from seqopt.report import write_report
from seqopt.spaces import CandidateSet, CodonSpace
from seqopt.utils.config import described
from seqopt.vae import CharacterCodec, NetworkSizes, TrainingSettings, train

GENES = CodonSpace("MAGIC")
MOLECULES = CandidateSet(["C" * n + end for n in range(1, 4) for end in ("O", "N", "C(=O)O", "Cl")], kind="molecule")


@pytest.fixture(scope="module")
def latent(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a surrogate in the latent space of a model that has hardly been trained."""
    genes = GENES.sample(40, np.random.default_rng(0))
    sizes = NetworkSizes(latent=2, hidden=8, embedding=4, features=8, memory=4)
    path = tmp_path_factory.mktemp("vae") / "a.vae"
    codec, settings = CharacterCodec.of(genes), TrainingSettings(epochs=1)
    train(genes, codec, sizes, settings, rng=np.random.default_rng(1)).vae.save(path)
    return f"vae:{path}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "ngrams",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("ssk-bayes", "codons", "ssk+fragprints", "vae")),
    ],
)
def test_a_run_is_kept_resumed_and_reported(name: str, latent: str, tmp_path: Path) -> None:
    of_molecules = name in SURROGATES and "molecule" in SURROGATES[name].kinds
    surrogate = latent if name == "vae" else name
    arguments: dict[str, Any] = {
        "objective": "logp" if of_molecules else "gc",
        "space": MOLECULES if of_molecules else GENES,
        "surrogate": surrogate,
        "initial": 4,
        "run_folder": tmp_path / "run",
        "settings": {"command": f"seqopt search --surrogate {surrogate}"},
    }
    first = maximize(**arguments, budget=1)
    again = maximize(**arguments, budget=1, resume=True)
    assert again.evaluations["string"].tolist() == first.evaluations["string"].tolist()
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "cannot be made again" not in page
    assert "No model could be fitted" not in page


@pytest.mark.parametrize("name", SURROGATES)
def test_a_description_is_strict_json(name: str) -> None:
    found = described(SURROGATES[name].build())
    assert json.loads(json.dumps(found, allow_nan=False)) == found
