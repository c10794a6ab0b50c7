"""Whole searches by a cluster: `maximize`, campaigns and commands."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import seqopt
from seqopt.campaign import Campaign
from seqopt.cli.app import app
from seqopt.datasets import prepare_pool
from seqopt.distributed import prepare_by
from seqopt.errors import InputError
from seqopt.spaces import StoredPool
from seqopt.strategies import ModelBased

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(1)
    path = tmp_path / "library.txt"
    path.write_text("\n".join(dict.fromkeys("".join(rng.choice(list("ABC"), 8)) for _ in range(900))))
    return path


def score(strings: list[str]) -> list[float]:
    return [one.count("AB") + 0.1 * one.count("C") for one in strings]


def test_maximize_evaluates_and_searches_by_the_cluster(library: Path, client: Any) -> None:
    options: dict[str, Any] = {"budget": 3, "initial": 8, "batch_size": 3, "surrogate": "ngrams", "acquisition": "ucb"}
    by_cluster = seqopt.maximize(score, library, client=client, **options)
    assert isinstance(by_cluster.optimizer.space, StoredPool)
    assert by_cluster.optimizer.space.spread is not None
    here = seqopt.maximize(score, prepare_pool(library), **options)
    assert by_cluster.evaluations["string"].tolist() == here.evaluations["string"].tolist()
    assert by_cluster.evaluations["value"].tolist() == here.evaluations["value"].tolist()
    with pytest.raises(InputError, match="need no cluster"):
        seqopt.maximize("column:activity", library, client=client)


def test_workers_prepare_the_store_that_one_machine_prepares(library: Path, client: Any, tmp_path: Path) -> None:
    states: list[Any] = []
    options: dict[str, Any] = {"kind": "text", "rows": 100}
    store = prepare_by(client, library, folder=tmp_path / "by", progress=states.append, **options)
    alone = prepare_pool(library, folder=tmp_path / "alone", workers=1, **options)
    assert states[-1].rows == states[-1].made == len(store)
    assert store.folder.name == alone.folder.name
    names = sorted(path.name for path in alone.folder.iterdir())
    assert sorted(path.name for path in store.folder.iterdir()) == names
    assert all((store.folder / name).read_bytes() == (alone.folder / name).read_bytes() for name in names)
    assert len(prepare_by(client, library, folder=tmp_path / "alone", **options)) == len(store)


def test_a_campaign_goes_on_with_a_cluster_and_without(library: Path, client: Any, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.seqopt", "two.seqopt")]
    for file in files:
        parts: dict[str, Any] = {"strategy": ModelBased("ngrams", "logei"), "batch_size": 3}
        Campaign.create(file, prepare_pool(library), objective="score", **parts).close()
    chosen: list[list[str]] = []
    for turn in range(3):
        asked = []
        for number, file in enumerate(files):
            # One of them changes between the cluster and one machine.
            with Campaign.open(file, client=client if number and turn % 2 else None) as campaign:
                batch = campaign.suggest()
                asked.append([row.string for row in batch])
                for row in batch:
                    campaign.record(row.name, score([row.string])[0])
        assert asked[0] == asked[1]
        chosen.append(asked[0])
    assert len({string for batch in chosen for string in batch}) == 9


@pytest.mark.slow
def test_the_command_searches_by_a_cluster(
    library: Path, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []

    @contextlib.contextmanager
    def connected(scheduler: str | None, **options: Any) -> Iterator[Any]:
        asked.append(str(scheduler))
        yield client

    monkeypatch.setattr("seqopt.distributed.connected", connected)
    (tmp_path / "scoring.py").write_text("def score(string: str) -> float:\n    return string.count('AB')\n")
    words = ["search", str(library), "-o", "scoring.py:score", "--budget", "4", "--initial", "8", "--batch", "4"]
    words += ["--surrogate", "ngrams", "--acquisition", "ucb", "--scheduler", "tcp://head:8786", "--kind", "text"]
    done = CliRunner().invoke(app, [*words, "--out", "run"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert asked == ["tcp://head:8786"]
    assert re.search(r"cluster tcp://head:8786: 2 workers, 2 threads", done.output)
    assert "Best of 12" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scheduler", "host"], "no address of a scheduler"),
        (["--scheduler", "local:2", "--in-memory"], "leave --in-memory out"),
        (["--scheduler", "local:2", "--acquisition", "thompson"], "choose gibbon"),
        (["--scheduler", "local:2", "--strategy", "esp"], "model, lfbo or bore"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_before_anything_is_read(
    words: list[str], message: str, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scoring.py").write_text("def score(string: str) -> float:\n    return 1.0\n")
    given = ["search", str(library), "-o", "scoring.py:score", "--kind", "text", *words]
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, given, catch_exceptions=False)
    assert not (tmp_path / "runs").exists()
