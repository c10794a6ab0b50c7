"""The benchmark of maps: what is measured, what is kept, and the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.bench import embedding
from seqopt.bench.embedding import Job, Task, main, read_runs, tables, work
from seqopt.models.registry import latent_gp
from seqopt.vae import CharacterCodec, NetworkSizes, StringVAE
from seqopt.vae.model import build_network

STRINGS = ["C" * n + end for n in range(1, 13) for end in ("O", "N", "F", "Cl", "Br")]


def _few(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    indices = rng.permutation(len(STRINGS))
    return [STRINGS[index] for index in indices], np.array([float(len(STRINGS[index])) for index in indices])


def _noise(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    strings, _ = _few(rng)
    return strings, rng.standard_normal(len(strings))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = {"zinc": Task("lengths", "symbols", _few), "esol": Task("noise", "none", _noise)}
    monkeypatch.setattr(embedding, "TASKS", tasks)
    monkeypatch.setattr(embedding, "PANELS", {"zinc": ("ssk-100", "minmax", "ssk-bad")})
    embedding.sample_of.cache_clear()


def test_a_score_that_the_kernel_sees_is_smoother_than_noise() -> None:
    seen, noise = work(Job("zinc", "ssk-100", 0)), work(Job("esol", "ssk-100", 0))
    assert isinstance(seen, dict)
    assert isinstance(noise, dict)
    assert seen["smoothness"] > 0.8
    assert abs(noise["smoothness"]) < 4 * noise["shuffled"][1] + 0.1
    assert set(seen["hyperparameters"]) >= {"match_decay", "gap_decay"}
    assert len(seen["explained"]) == 10
    assert np.shape(seen["coordinates"]) == (60, 2)
    another = work(Job("zinc", "minmax", 1))
    assert isinstance(another, dict)
    assert "coordinates" not in another


def test_all_methods_of_a_seed_see_one_sample_and_learn_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def spy(strings: Any, surrogate: Any, *, values: Any, **options: Any) -> Any:
        seen.append((list(strings), values))
        raise InterruptedError

    monkeypatch.setattr("seqopt.report.kernel_pca.kernel_pca", spy)
    for method in ("ssk-10", "ssk-bad"):
        with pytest.raises(InterruptedError):
            work(Job("zinc", method, 2))
    (first, learned), (second, given) = seen
    assert first == second
    assert np.isfinite(learned).tolist() == [True] * 10 + [False] * 50
    assert given is None


def test_a_model_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    assert work(Job("zinc", "gvae-100", 0)) == "no model file, see seqopt bench vae"


def test_a_model_that_cannot_read_all_strings_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    codec, sizes = CharacterCodec("CONFlBr", 10), NetworkSizes(2, 4, 4, 4, 4)
    vae = StringVAE(codec, build_network(codec, sizes), np.zeros((201, 2)))
    method = replace(embedding.METHODS["cvae-100"], build=lambda kind: latent_gp(vae))
    monkeypatch.setattr(embedding, "METHODS", {"cvae-100": method})
    long = sum(len(string) > 10 for string in STRINGS)
    assert work(Job("zinc", "cvae-100", 0)) == f"{long} strings cannot be read"


def test_what_is_there_is_not_done_again_and_the_table_has_paired_differences(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(embedding, "PANELS", {"zinc": ("ssk-bad",)})
    out, document = tmp_path / "embedding.json", tmp_path / "docs" / "results.md"
    arguments = ["--tasks", "zinc", "--seeds", "2", "--out", str(out), "--document", str(document)]
    main([*arguments, "--methods", "ssk-bad"])
    before = read_runs(out)
    assert [run["job"]["seed"] for run in before] == [0, 1]
    assert (tmp_path / "docs" / "img" / "embedding.png").exists()
    assert "| ssk, badly tuned" in document.read_text(encoding="utf-8")
    made: list[Job] = []

    def made_up(job: Job) -> dict[str, Any]:
        made.append(job)
        template = {name: value for name, value in before[0].items() if name not in ("record", "coordinates", "scores")}
        found = {"smoothness": before[job.seed]["smoothness"] + 0.1 + 0.2 * job.seed, "smoothness_10": 0.5}
        return template | found | {"job": vars(job), "hyperparameters": {"match_decay": 0.5, "gap_decay": 0.25}}

    monkeypatch.setattr(embedding, "work", made_up)
    main([*arguments, "--methods", "ssk-bad", "ssk-100"])
    assert made == [Job("zinc", "ssk-100", 0), Job("zinc", "ssk-100", 1)]
    text = tables(read_runs(out))
    # Differences of 0.1 and 0.3: their mean, and its standard error.
    assert "| *ssk, tuned to 100, less low match, high gap decay* | 0.200 ± 0.100 |" in text
    assert "| ssk, tuned to 100 | 0.50, 0.25 |" in text
