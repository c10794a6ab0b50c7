"""Batches of a pool that is spread over the workers of a cluster are those of one machine, whatever happens to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from seqopt import BatchLimits, Optimizer
from seqopt.acquisition import GIBBON, GumbelMaxValueSampler, resolve_acquisition
from seqopt.datasets import PoolStore, load_zinc250k, prepare_pool
from seqopt.distributed import ClusterError, DamagedShardError, DaskSpread, connect, connected, spread_pool, tasks
from seqopt.distributed import shards as on_worker
from seqopt.distributed import spreading as module
from seqopt.errors import InputError
from seqopt.filters import ColumnCondition, Sieve
from seqopt.models import carried
from seqopt.objectives import resolve_objective
from seqopt.scorers import spread as scorers
from seqopt.scorers.ties import TieOrder
from seqopt.spaces import StoredPool
from seqopt.strategies import LFBO, ModelBased, Prefilter
from seqopt.strategies.prefilter import cheap_classifier
from seqopt.utils.array_files import read_arrays, write_arrays

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of two pools: molecules, some of which are there twice, and strings, of which many have equal n-grams."""
    found = tmp_path_factory.mktemp("spread")
    molecules = load_zinc250k()[::250]
    (found / "molecules.smi").write_text("\n".join([*molecules, *molecules[:40], "C1CC"]))
    rng = np.random.default_rng(1)
    (found / "strings.txt").write_text("\n".join("".join(rng.choice(list("ABC"), 9)) for _ in range(3000)))
    return found


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "cache"))


def store_of(folder: Path, name: str) -> PoolStore:
    return prepare_pool(folder / name, folder=folder / "store", workers=1, rows=300, kind="auto")


def asked(
    pool: StoredPool, strategy: Any, score: Callable[[list[str]], Any], batches: int = 1, **options: Any
) -> list[tuple[str, float | None]]:
    """What is chosen, and what is predicted of it."""
    optimizer = Optimizer(pool, strategy=strategy, initial=12, batch_size=6, seed=3, **options)
    found: list[tuple[str, float | None]] = []
    for _ in range(batches + 1):
        strings = optimizer.ask()
        optimizer.tell(strings, score(list(strings)))
        found += [(row.string, row.details.get("predicted")) for row in optimizer.observations.rows[-len(strings) :]]
    return found


def with_failures(strings: list[str]) -> list[float]:
    return [
        float("nan") if string.startswith("A") else value for string, value in zip(strings, AB(strings), strict=True)
    ]


def AB(strings: list[str]) -> list[float]:  # noqa: N802
    return [one.count("AB") + 0.1 * one.count("C") for one in strings]


LOGP = resolve_objective("logp")


SLOW = pytest.mark.slow
MOLECULES, STRINGS = "molecules.smi", "strings.txt"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make", "score", "options"),
    [
        pytest.param(MOLECULES, lambda: ModelBased("minmax", "gibbon"), LOGP, {}, id="gibbon"),
        pytest.param(STRINGS, lambda: ModelBased("ngrams", "logei"), with_failures, {}, id="failures", marks=SLOW),
        pytest.param(
            MOLECULES, lambda: ModelBased("minmax", "gibbon", prefilter=Prefilter("lfbo", 40)), LOGP, {}, id="prefilter"
        ),
        pytest.param(MOLECULES, lambda: LFBO(_fingerprints(), keep=50), LOGP, {}, id="lfbo-keep"),
        pytest.param(MOLECULES, lambda: ModelBased("minmax", "mes"), LOGP, {}, id="mes", marks=SLOW),
        pytest.param(
            MOLECULES, lambda: ModelBased("minmax", GIBBON(repulsion="1/m^2")), LOGP, {}, id="squared", marks=SLOW
        ),
        pytest.param(
            MOLECULES,
            lambda: ModelBased("ngrams+minmax", "ucb"),
            LOGP,
            {"limits": BatchLimits(1, 0.5)},
            id="limits",
            marks=SLOW,
        ),
        pytest.param(STRINGS, lambda: ModelBased("ngrams", "mean"), AB, {}, id="mean", marks=SLOW),
        pytest.param(
            MOLECULES,
            lambda: ModelBased("minmax", "ucb", prefilter=Prefilter("mean", 40)),
            LOGP,
            {},
            id="mean-first",
            marks=SLOW,
        ),
        pytest.param(STRINGS, lambda: LFBO(), AB, {}, id="lfbo", marks=SLOW),
    ],
)
def test_batches_are_those_of_one_machine(
    name: str,
    make: Any,
    score: Any,
    options: dict[str, Any],
    folder: Path,
    client: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # So few that the best is often elsewhere, and more have to be fetched.
    monkeypatch.setattr(scorers, "FETCHED", 20)
    monkeypatch.setattr(scorers, "FETCHED_FOR_EACH", 1)
    store = store_of(folder, name)
    here = asked(StoredPool(store), make(), score, **options)
    there = asked(spread_pool(StoredPool(store), client), make(), score, **options)
    assert any(mean is not None for _, mean in here) or isinstance(make(), LFBO)
    assert [string for string, _ in there] == [string for string, _ in here]
    for ours, theirs in zip(there, here, strict=True):
        assert ours[1] == (None if theirs[1] is None else pytest.approx(theirs[1], rel=1e-9, abs=1e-9))


def _fingerprints() -> Any:
    from seqopt.spaces import CandidateSet

    return cheap_classifier(CandidateSet(["C"], kind="molecule"))


class LengthScore:
    """Scores with many ties."""

    name: ClassVar[str] = "measure"

    def __call__(self, shard: Any) -> np.ndarray:
        return np.array([-np.inf if len(key) > 60 else float(len(key) // 8) for key in shard.keys])


class FailingScore(LengthScore):
    """Fails at first, as when a connection is lost."""

    def __init__(self, error: type[Exception], times: int) -> None:
        self.error, self.times = error, times

    def __call__(self, shard: Any) -> np.ndarray:
        FAILED[shard.shard_name] = FAILED.get(shard.shard_name, 0) + 1
        if FAILED[shard.shard_name] <= self.times:
            raise self.error("gone")
        return super().__call__(shard)


FAILED: dict[str, int] = {}


@pytest.mark.parametrize("count", [1, 37, 5000])
@pytest.mark.parametrize("ranked", [False, True])
def test_the_best_are_those_of_a_sort_and_ties_are_broken_alike(
    count: int, ranked: bool, folder: Path, client: Any
) -> None:
    pool = spread_pool(store_of(folder, "molecules.smi"), client)
    assert isinstance(pool.spread, DaskSpread)
    left_out = np.array([0, 5, 299, 300, 301, len(pool) - 1])
    order = TieOrder(np.random.default_rng(2))
    places, scores = pool.spread.best(LengthScore(), count, left_out, ranks=order if ranked else None)
    values = LengthScore()(pool)
    kept = [place for place in range(len(pool)) if place not in left_out and values[place] > -np.inf]
    ranks = order(np.arange(len(pool))) if ranked else np.arange(len(pool))
    kept.sort(key=lambda place: (-values[place], ranks[place]))
    assert places.tolist() == kept[:count]
    assert scores.tolist() == values[kept[:count]].tolist()


def test_no_number_for_each_candidate_is_held_by_who_asks(
    folder: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(folder, "molecules.smi")
    longest = [0]
    best = DaskSpread.best

    def watched(self: Any, score: Any, count: int, left_out: Any, **options: Any) -> Any:
        found = best(self, score, count, left_out, **options)
        longest[0] = max(longest[0], len(left_out), *map(len, found))
        return found

    monkeypatch.setattr(DaskSpread, "best", watched)
    monkeypatch.setattr(scorers, "FETCHED", 50)
    monkeypatch.setattr(scorers, "FETCHED_FOR_EACH", 1)
    pool = spread_pool(StoredPool(store), client)
    monkeypatch.setattr(StoredPool, "encoded", property(lambda self: pytest.fail("all candidates were encoded")))
    strategy = ModelBased("minmax", GIBBON(sampler=scorers.ExactMaxValueSampler(30)))
    asked(pool, strategy, LOGP, batches=1)
    assert 0 < longest[0] < 400 < len(pool)


def test_what_looks_at_all_candidates_is_refused(folder: Path, client: Any) -> None:
    pool = spread_pool(store_of(folder, "strings.txt"), client)
    with pytest.raises(InputError, match="choose gibbon"):
        asked(pool, ModelBased("ngrams", "thompson"), AB)
    for refused in (resolve_acquisition("qbmgp"), GIBBON(sampler=GumbelMaxValueSampler())):
        with pytest.raises(InputError, match="choose gibbon"):
            scorers.check_spread_acquisition(refused)
    with pytest.raises(InputError, match="spread over many"):
        Optimizer(pool, strategy=ModelBased("ngrams"), initial=3, design="maxmin").ask()


def test_shards_are_sent_kept_and_found_again(folder: Path, client: Any, tmp_path: Path) -> None:
    store = store_of(folder, "molecules.smi")
    expected = spread_pool(store, client).spread.best(LengthScore(), 9, np.empty(0, np.int64))  # type: ignore[union-attr]
    assert not list((tmp_path / "cache").rglob("shard.bin"))  # what is on this disk is not copied
    on_worker._open.clear()
    # The store of another machine: its paths are not to be read here.
    pool = spread_pool(store, client)
    sent: list[int] = []
    assert isinstance(pool.spread, DaskSpread)
    original = {shard.number: Path(shard.path).read_bytes() for shard in pool.spread.shards}
    pool.spread.shards = [_elsewhere(shard) for shard in pool.spread.shards]
    pool.spread.shard_file = lambda shard: sent.append(shard.number) or original[shard.number]  # type: ignore[method-assign,func-returns-value]
    for _ in range(2):
        found = pool.spread.best(LengthScore(), 9, np.empty(0, np.int64))
        assert found[0].tolist() == expected[0].tolist()
        assert sorted(sent) == sorted(original)  # once
    assert on_worker.held_shards(pool.spread.facts.name) == sorted(original)
    # A copy that is damaged is sent again.
    copy = on_worker.shard_folder(pool.spread.facts.name, 2) / "shard.bin"
    data = bytearray(copy.read_bytes())
    data[-100] ^= 1
    copy.write_bytes(bytes(data))
    found = pool.spread.best(LengthScore(), 9, np.empty(0, np.int64))
    assert found[0].tolist() == expected[0].tolist()
    assert sent.count(2) == 2


def _elsewhere(shard: on_worker.ShardRef) -> on_worker.ShardRef:
    return on_worker.ShardRef(shard.number, "/nowhere/shard.bin", shard.first, shard.count, shard.dropped)


def test_a_shard_that_is_damaged_where_it_was_prepared_is_named_and_made_again(folder: Path, client: Any) -> None:
    shutil.copytree(folder / "store", folder / "other", dirs_exist_ok=True)

    def prepared() -> PoolStore:
        return prepare_pool(folder / "strings.txt", folder=folder / "other", workers=1, rows=300)

    store, nothing = prepared(), np.empty(0, np.int64)
    pool = spread_pool(store, client)
    assert isinstance(pool.spread, DaskSpread)
    expected = pool.spread.best(LengthScore(), 2_000, nothing)
    path = store.shard_path(1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-64])
    with pytest.raises(DamagedShardError, match=r"shard-000001.*strings\.txt.*same command again"):
        pool.spread.best(LengthScore(), 2_000, nothing)
    again = spread_pool(prepared(), client)
    assert path.read_bytes() == whole
    assert isinstance(again.spread, DaskSpread)
    assert again.spread.best(LengthScore(), 2_000, nothing)[0].tolist() == expected[0].tolist()


@pytest.mark.parametrize("error", [OSError, TimeoutError])
def test_what_is_lost_with_a_worker_is_asked_for_again(
    error: type[Exception], folder: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = spread_pool(store_of(folder, "molecules.smi"), client)
    assert isinstance(pool.spread, DaskSpread)
    expected = pool.spread.best(LengthScore(), 20, np.empty(0, np.int64))
    FAILED.clear()
    found = pool.spread.best(FailingScore(error, 2), 20, np.empty(0, np.int64))
    assert found[0].tolist() == expected[0].tolist()
    FAILED.clear()
    with pytest.raises(ClusterError, match=r"shard \d+ was lost 9 times.*Nothing that was measured is lost"):
        pool.spread.best(FailingScore(error, 99), 20, np.empty(0, np.int64))
    FAILED.clear()
    with pytest.raises(ClusterError, match=r"scoring shard \d+ failed on .*ZeroDivisionError: gone"):
        pool.spread.best(FailingScore(ZeroDivisionError, 99), 20, np.empty(0, np.int64))


def test_a_slow_worker_is_not_waited_for(folder: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(module, "LEAST_SLOW", 0.2)
    monkeypatch.setattr(module, "SLOW", 1.0)
    pool = spread_pool(store_of(folder, "molecules.smi"), client)
    assert isinstance(pool.spread, DaskSpread)
    expected = pool.spread.best(LengthScore(), 20, np.empty(0, np.int64))
    released, first = threading.Event(), []
    open_shard = tasks.open_shard

    def stuck(facts: Any, ref: Any) -> Any:
        if ref.number == 3 and not first:
            first.append(ref.number)
            released.wait(20)
        return open_shard(facts, ref)

    monkeypatch.setattr(tasks, "open_shard", stuck)
    found = pool.spread.best(LengthScore(), 20, np.empty(0, np.int64))
    assert not released.is_set()
    released.set()
    assert found[0].tolist() == expected[0].tolist()


def test_tasks_have_names_that_mean_something(folder: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dask.utils import key_split

    pool = spread_pool(store_of(folder, "molecules.smi"), client)
    assert isinstance(pool.spread, DaskSpread)
    keys: list[str] = []
    submit = client.submit
    monkeypatch.setattr(client, "submit", lambda *a, **k: keys.append(k["key"]) or submit(*a, **k))  # type: ignore[func-returns-value]
    pool.spread.best(LengthScore(), 3, np.empty(0, np.int64))
    assert {key_split(key) for key in keys} == {"seqopt-model", "seqopt-measure-shard"}
    assert any(key.startswith("seqopt-measure-shard-000003-") for key in keys)
    assert {score.name for score in (scorers.BoundScore, scorers.MeanScore, scorers.LogitScore)} == {
        "score",
        "predict",
        "classify",
    }


@pytest.mark.slow
def test_covariances_of_a_costly_kernel_are_kept_on_the_disk(
    folder: Path, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "few.txt").write_text("\n".join((folder / "strings.txt").read_text().splitlines()[:240]))
    store = prepare_pool(folder / "few.txt", folder=folder / "store", workers=1, rows=80)
    here = asked(StoredPool(store), ModelBased("ssk", "gibbon"), AB, batches=1)
    there = asked(spread_pool(store, client), ModelBased("ssk", "gibbon"), AB, batches=1)
    assert there == [(string, pytest.approx(mean, rel=1e-6) if mean else mean) for string, mean in here]
    files = [path for path in (tmp_path / "cache").rglob("columns/*/*") if path.is_file()]
    assert len(files) == 3
    before = {path: path.stat().st_size for path in files}
    assert all(size >= 8 * 12 * 80 for size in before.values())


def test_other_versions_are_named(folder: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = spread_pool(store_of(folder, "molecules.smi"), client)
    assert isinstance(pool.spread, DaskSpread)
    monkeypatch.setattr(tasks, "_versions", tasks.versions() | {"rdkit": "2020.1", "python": "3.9"})
    with pytest.raises(ClusterError, match=r"python 3\.9 instead of .*rdkit 2020\.1 instead of"):
        pool.spread.best(LengthScore(), 3, np.empty(0, np.int64))
    answers = {"tcp://a:1": tasks.versions() | {"seqopt": "0.0.1"}, "tcp://b:2": tasks.versions()}
    monkeypatch.setattr(client, "run", lambda *a, **k: answers)
    with pytest.raises(ClusterError, match=r"the worker tcp://a:1 has seqopt 0\.0\.1 instead of"):
        spread_pool(pool, client)
    monkeypatch.setattr(client, "run", lambda *a, **k: {"tcp://c:3": ModuleNotFoundError("no", name="seqopt")})
    with pytest.raises(ClusterError, match=r"tcp://c:3 has no seqopt: install seqopt\[dask\]"):
        spread_pool(pool, client)


def test_a_scheduler_that_does_not_answer_is_named() -> None:
    with pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:9 did not answer within 0\.3 s"):
        connect("tcp://127.0.0.1:9", timeout=0.3)
    for wrong in ("host", "local:0", "local:x"):
        with pytest.raises(InputError, match="local"):
            connect(wrong)
    with connected(None) as nobody:
        assert nobody is None


def test_a_scheduler_without_workers_is_named(client: Any) -> None:
    with (
        distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp://", dashboard_address=":0") as empty,
        pytest.raises(ClusterError, match=r"tcp://.* has no workers: start some"),
    ):
        connect(empty.scheduler_address, timeout=0.5)


def test_only_a_pool_on_disk_is_spread(client: Any) -> None:
    with pytest.raises(InputError, match="prepare it"):
        spread_pool(["AB", "BA"], client)  # type: ignore[arg-type]


def test_a_shard_with_other_candidates_is_not_used(folder: Path, client: Any, tmp_path: Path) -> None:
    """A file that is whole, but of another preparation."""
    pool = spread_pool(store_of(folder, "molecules.smi"), client)
    assert isinstance(pool.spread, DaskSpread)
    shard = pool.spread.shards[0]
    held = read_arrays(Path(shard.path))
    place = on_worker.shard_folder(pool.spread.facts.name, 0) / "shard.bin"
    place.parent.mkdir(parents=True)
    write_arrays(place, held.arrays, {**held.facts, "rows": held.facts["rows"] + 5})
    assert on_worker.open_shard(pool.spread.facts, shard).store is not None
    assert not place.exists()  # what was there is thrown away, and the original is read


def test_models_travel_without_what_they_are_made_of_again(folder: Path, client: Any) -> None:
    from distributed.protocol.pickle import dumps

    pool = spread_pool(store_of(folder, "strings.txt"), client)
    strategy = ModelBased("ngrams", "ucb")
    optimizer = Optimizer(pool, strategy=strategy, initial=100, seed=0)
    strings = optimizer.ask()
    optimizer.tell(strings, AB(list(strings)))
    optimizer.ask(1)
    model = carried.carried(strategy.surrogate, pool)  # type: ignore[arg-type]
    assert len(dumps(model)) < 8 * 100 * 100  # less than a factor of 100 x 100 numbers
    state, _, _ = model.on(pool.spread and on_worker.open_shard(pool.spread.facts, pool.spread.shards[0]))  # type: ignore[attr-defined]
    whole = strategy.surrogate.fitted  # type: ignore[attr-defined]
    np.testing.assert_allclose(state.cholesky, whole.cholesky, rtol=1e-12, atol=1e-12)


def test_shards_without_a_candidate_are_passed_over(client: Any, tmp_path: Path) -> None:
    # A table sorted by price under a limit of price, followed by rows that it holds already.
    rng = np.random.default_rng(2)
    strings = ["".join(rng.choice(list("ABC"), 9)) for _ in range(60)]
    rows = [f"{string},{price}" for price, string in enumerate([*strings, *strings[:20]])]
    (tmp_path / "sorted.csv").write_text("sequence,price\n" + "\n".join(rows) + "\n")
    sieve = Sieve([ColumnCondition.parse("price < 25")])
    store = prepare_pool(tmp_path / "sorted.csv", kind="text", rows=20, workers=1, folder=tmp_path, sieve=sieve)
    assert store.shard_rows == [20, 5, 0, 0]
    wanted, spread = StoredPool(store), StoredPool(store)
    spread_pool(spread, client)
    strategy = ModelBased("ngrams", "logei")
    assert asked(spread, strategy, AB) == asked(wanted, ModelBased("ngrams", "logei"), AB)
