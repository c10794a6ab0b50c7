"""What is asked for, in many short searches over every space, surrogate, acquisition function and inner search.

Two versions of the package that should choose alike are run one after the other, and their records compared::

    PYTHONPATH=/path/to/old python seqopt/bench/choices.py --out old.json
    PYTHONPATH=/path/to/new python seqopt/bench/choices.py --out new.json
    python seqopt/bench/choices.py --compare old.json new.json

For that the file runs by itself, with whichever version is found first, and uses its public names only. Runs are short
(some ten initial strings, three batches), so that the whole takes minutes on one core; a run that raises is recorded
with its error. Times are those of the processor, since a machine is seldom idle. Once two runs have chosen differently,
their models see different data; so predictions are compared up to and including the first batch that differs, at the
strings that both chose.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import itertools
import json
import logging
import math
import os
import pkgutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

NEAR_TIE = 1e-6
"""Relative difference of two acquisition values below which either string is as good a choice."""

PATTERNS = {
    "molecule": (("N", 1.0), ("C(=O)", 1.5), ("Cl", -1.0), ("c1", 0.5)),
    "protein": (("W", 1.0), ("KL", 2.0), ("D", -0.5)),
    "dna": (("GC", 0.5), ("TATA", 2.0), ("AAA", -1.0)),
    "rna": (("GC", 0.5), ("UUU", -1.0), ("AAG", 1.0)),
    "text": (("ab", 1.0), ("c", -0.3), ("x", 0.5), ("sin", 1.0), ("101", 1.0)),
}
"""Patterns that are counted in the strings of each kind, and their weights."""


@dataclass(frozen=True)
class Run:
    """One short search.

    Attributes:
        name: What the comparison calls it.
        space: A name in `SPACES`.
        surrogate: Name of the surrogate; ``"latent"`` trains a small autoencoder for it.
        acquisition: Name of the acquisition function.
        search: ``"auto"``, ``"pool"``, ``"some"`` (of the pool), ``"genetic"``, ``"random"``, or ``"latent"``.
        direction: Of the search.
        transform: ``"log10"`` has positive values over decades.
        initial: Random strings at the beginning.
        batch: Strings in each batch.
        batches: Batches after the initial strings.
        late: Whether the last string of each batch is told one batch later, so that it is pending meanwhile.
        failing: Whether some strings fail.
        errors: Whether standard errors are told.
        repeats: Whether strings may be measured again.
        streamed: Whether covariances with the pool exceed the memory for them.
        driver: ``"ask"``, ``"maximize"``, ``"resume"`` (a run in a folder, interrupted and resumed) or ``"campaign"``.
        seed: Of the search.
    """

    name: str
    space: str
    surrogate: str = "auto"
    acquisition: str = "gibbon"
    search: str = "auto"
    direction: str = "maximize"
    transform: str | None = None
    initial: int = 10
    batch: int = 3
    batches: int = 3
    late: bool = False
    failing: bool = False
    errors: bool = False
    repeats: bool = False
    streamed: bool = False
    driver: str = "ask"
    seed: int = 0


def molecules() -> list[str]:
    """Substituted benzenes and pyridines: 1,080 SMILES."""
    left = ["C", "CC", "O", "N", "F", "Cl", "CO", "CN", "CC(=O)N", "OC(=O)"]
    rings = ["c1ccc({})cc1", "c1cc({})ccc1", "c1ccc({})nc1", "c1cnc({})cc1"]
    bridges = ["", "C", "C(=O)"]
    right = ["C", "N", "O", "Cl", "C(=O)N", "C#N", "N1CCOCC1", "C1CC1", "S(=O)(=O)N"]
    return [a + ring.format(bridge + b) for a, ring, bridge, b in itertools.product(left, rings, bridges, right)]


def _pool_of_molecules() -> Any:
    from seqopt.spaces import CandidateSet

    return CandidateSet(molecules(), kind="molecule")


def _pool_of_proteins() -> Any:
    from seqopt.spaces import CandidateSet

    return CandidateSet(
        [f"MK{a}LV{b}DEW{c}GT" for a, b, c in itertools.product("ACDEFGHKLW", repeat=3)], kind="protein"
    )


def _pool_of_dna() -> Any:
    from seqopt.spaces import CandidateSet

    return CandidateSet(["GC" + "".join(letters) + "TA" for letters in itertools.product("ACGT", repeat=5)], kind="dna")


def _pool_of_text() -> Any:
    from seqopt.spaces import CandidateSet

    strings = ["".join(letters) for n in (4, 5, 6) for letters in itertools.product("abc", repeat=n)]
    return CandidateSet(strings)


def _strings(**lengths: Any) -> Any:
    from seqopt.spaces import StringSpace

    return StringSpace("abcx", **lengths)


def _proteins() -> Any:
    from seqopt.spaces import StringSpace

    return StringSpace("ACDEFGHIKLMNPQRSTVWY", 15, kind="protein")


def _local() -> Any:
    from seqopt.spaces import LocalSpace

    return LocalSpace([["a", "b", "c"], ["a", "b"], ["x", "c"], ["a", "b", "x"]] * 3)


def _genes(**options: Any) -> Any:
    from seqopt.spaces import CodonSpace

    return CodonSpace("MTIKENIFGVSWLK", **options)


def _expressions() -> Any:
    from seqopt.spaces import GrammarSpace

    return GrammarSpace("arithmetic", 3, 12)


def _grammar_of_smiles() -> Any:
    from seqopt.spaces import GrammarSpace

    return GrammarSpace("smiles", 5, 20, kind="molecule")


SPACES: dict[str, Callable[[], Any]] = {
    "molecules": _pool_of_molecules,
    "proteins": _pool_of_proteins,
    "dna": _pool_of_dna,
    "text": _pool_of_text,
    "strings": lambda: _strings(length=12),
    "lengths": lambda: _strings(min_length=5, max_length=12),
    "peptides": _proteins,
    "local": _local,
    "genes": _genes,
    "constrained": lambda: _genes(representation="bases", stop="TAA", forbidden=["GAATTC"], gc=(0.3, 0.5)),
    "expressions": _expressions,
    "smiles": _grammar_of_smiles,
}
"""Spaces by the name that `Run` takes."""


def _search(name: str) -> Any:
    from seqopt.search import GeneticSearch, PoolSearch, RandomSearch

    searches: dict[str, Callable[[], Any]] = {
        "auto": lambda: "auto",
        "pool": PoolSearch,
        "some": lambda: PoolSearch(candidates=200),
        "genetic": lambda: GeneticSearch(population=30, evolutions=10, sample=60, patience=4),
        "random": lambda: RandomSearch(candidates=300),
    }
    return searches[name]()


SURROGATES_OF = {
    "molecules": (
        *("ssk", "ssk-bayes", "ngrams", "tanimoto", "minmax", "counts", "fragprints"),
        *("ngrams+minmax", "ngrams+counts", "ssk+tanimoto", "ssk+minmax", "ssk+fragprints"),
    ),
    "proteins": ("ssk", "one-hot", "blosum62", "sites"),
    "dna": ("ssk", "codons"),
    "text": ("ssk", "ngrams"),
    "strings": ("ssk", "ssk-bayes", "mixture", "ngrams", "motifs", "one-hot", "hamming", "latent"),
    "lengths": ("ssk-bayes", "mixture", "ngrams"),
    "peptides": ("ssk-bayes",),
    "local": ("ssk-bayes", "one-hot"),
    "genes": ("ssk-bayes", "codons", "helices"),
    "constrained": ("ssk",),
    "expressions": ("ssk-bayes", "mixture", "ngrams"),
    "smiles": ("ssk", "tanimoto"),
}
"""Surrogates that are run on each space."""

POOLS = ("molecules", "proteins", "dna", "text")


def runs() -> list[Run]:
    """All runs, in their order."""
    chosen = [
        Run(f"{space} {surrogate}", space, surrogate, search="pool" if space in POOLS else "genetic")
        for space, surrogates in SURROGATES_OF.items()
        for surrogate in surrogates
    ]
    for acquisition in ("logei", "ucb", "thompson", "mean", "random"):
        chosen.append(Run(f"molecules minmax {acquisition}", "molecules", "minmax", acquisition))
        chosen.append(Run(f"strings ssk {acquisition}", "strings", "ssk", acquisition, "genetic"))
    chosen += [
        Run(f"molecules minmax {acquisition}", "molecules", "minmax", acquisition)
        for acquisition in ("mes", "mumbo", "dpp-ei")
    ]
    chosen += [
        Run(f"molecules ssk-bayes {acquisition}", "molecules", "ssk-bayes", acquisition)
        for acquisition in ("scorebo", "sal", "bald", "bqbc", "balm", "qbmgp")
    ]
    some = Run("", "dna", "ssk", search="auto")
    open_space = replace(some, space="strings", search="genetic")
    chosen += [
        replace(some, name="dna auto, default search", surrogate="auto"),
        replace(some, name="dna ssk, some candidates", search="some"),
        replace(
            some, name="molecules ssk-bayes thompson", space="molecules", surrogate="ssk-bayes", acquisition="thompson"
        ),
        replace(some, name="molecules ssk, random search", space="molecules", search="random"),
        replace(open_space, name="strings ssk-bayes, random search", surrogate="ssk-bayes", search="random"),
        replace(some, name="dna ssk, late results", late=True),
        replace(some, name="molecules minmax, late results", space="molecules", surrogate="minmax", late=True),
        replace(open_space, name="strings ssk, late results", late=True),
        replace(
            open_space,
            name="strings ssk-bayes logei, late results",
            surrogate="ssk-bayes",
            acquisition="logei",
            late=True,
        ),
        replace(some, name="dna ssk, failures", failing=True),
        replace(open_space, name="strings ngrams, failures", surrogate="ngrams", failing=True),
        replace(some, name="dna ssk, standard errors", errors=True),
        replace(open_space, name="strings ssk-bayes, standard errors", surrogate="ssk-bayes", errors=True),
        replace(
            some, name="molecules tanimoto, minimised", space="molecules", surrogate="tanimoto", direction="minimize"
        ),
        replace(some, name="dna ssk, log10, standard errors", transform="log10", errors=True),
        replace(open_space, name="strings ssk, log10, minimised", transform="log10", direction="minimize"),
        replace(some, name="text ssk, repeats", space="text", repeats=True, batch=4),
        replace(open_space, name="strings ssk, repeats", repeats=True),
        replace(some, name="dna ssk, streamed", streamed=True),
        replace(some, name="dna ssk logei, streamed, late results", acquisition="logei", streamed=True, late=True),
        replace(some, name="dna ssk thompson, streamed", acquisition="thompson", streamed=True),
        replace(some, name="molecules minmax, streamed", space="molecules", surrogate="minmax", streamed=True),
        replace(some, name="dna ssk, large batch", batch=10, batches=2, seed=1),
        replace(some, name="molecules minmax, 40 initial strings", space="molecules", surrogate="minmax", initial=40),
        replace(some, name="dna ssk, maximize", driver="maximize"),
        replace(
            some,
            name="molecules auto, maximize, failures",
            space="molecules",
            surrogate="auto",
            driver="maximize",
            failing=True,
        ),
        replace(some, name="dna ssk, resumed", driver="resume"),
        replace(some, name="molecules auto, resumed", space="molecules", surrogate="auto", driver="resume"),
        replace(
            some,
            name="genes codons, resumed",
            space="genes",
            surrogate="codons",
            search="auto",
            driver="resume",
            batches=2,
        ),
        replace(some, name="dna ssk, campaign", driver="campaign"),
        replace(
            some, name="dna ssk, campaign, standard errors, failures", driver="campaign", errors=True, failing=True
        ),
        replace(some, name="proteins one-hot, campaign", space="proteins", surrogate="one-hot", driver="campaign"),
        replace(
            open_space, name="strings auto, campaign", surrogate="auto", search="auto", driver="campaign", batches=2
        ),
        replace(
            open_space, name="strings latent, latent search", surrogate="latent", search="latent", acquisition="logei"
        ),
    ]
    return chosen


class Score:
    """A pattern count with noise that depends on the string and on how often it has been measured."""

    def __init__(self, run: Run, kind: str) -> None:
        self.run = run
        self.patterns = PATTERNS[kind]
        self.measured: Counter[str] = Counter()

    def __call__(self, strings: Sequence[str]) -> list[float]:
        return [self.one(string) for string in strings]

    def one(self, string: str) -> float:
        """The value of one string; NaN if it fails."""
        self.measured[string] += 1
        repeat = self.measured[string] if self.run.repeats else 1
        draw = int.from_bytes(hashlib.sha256(f"{string} {repeat}".encode()).digest()[:8], "big")
        if self.run.failing and draw % 5 == 0:
            return math.nan
        value = sum(weight * string.count(pattern) for pattern, weight in self.patterns)
        value += 0.4 * (draw / 2**64 - 0.5)
        return float(10 ** (value / 2)) if self.run.transform else float(value)

    def standard_error(self, string: str, value: float) -> float | None:
        """That of one value, known for two strings of three."""
        draw = int.from_bytes(hashlib.sha256(f"error {string}".encode()).digest()[:8], "big")
        if draw % 3 == 0:
            return None
        size = 0.1 + 0.4 * (draw / 2**64)
        return size * abs(value) if self.run.transform else size


@contextmanager
def little_memory(wanted: bool) -> Iterator[list[str]]:
    """Leave no memory for covariances with a pool; yields the modules in which there is a limit to be set."""
    import seqopt.models

    changed: list[tuple[Any, int]] = []
    if wanted:
        for module in pkgutil.walk_packages(seqopt.models.__path__, "seqopt.models."):
            loaded = importlib.import_module(module.name)
            if isinstance(limit := getattr(loaded, "COLUMN_MEMORY", None), int):
                changed.append((loaded, limit))
        for loaded, _ in changed:
            loaded.COLUMN_MEMORY = 1
    try:
        yield [loaded.__name__ for loaded, _ in changed]
    finally:
        for loaded, limit in changed:
            loaded.COLUMN_MEMORY = limit


def _latent(space: Any) -> Path:
    """The file of an autoencoder that was trained for seconds."""
    import numpy as np

    from seqopt.vae import CharacterCodec, NetworkSizes, TrainingSettings, train

    strings = space.sample(200, np.random.default_rng(0))
    sizes = NetworkSizes(latent=4, hidden=32, embedding=8, features=12, memory=8)
    settings = TrainingSettings(epochs=4, batch_size=32, learning_rate=5e-3)
    vae = train(strings, CharacterCodec.of(strings), sizes, settings, rng=np.random.default_rng(1)).vae
    path = Path(os.environ.get("SEQOPT_CACHE") or tempfile.mkdtemp(), "choices.vae")
    vae.save(path)
    return path


def _number(value: Any) -> float | None:
    """A finite float; `None` for what is missing."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _batch_of(table: Any, seconds: float | None, parameters: dict[str, Any]) -> dict[str, Any]:
    """Rows of ``evaluations.csv`` as one batch of a record."""
    return {
        "strings": [str(string) for string in table["string"]],
        "means": [_number(value) for value in table["predicted_mean"]],
        "stds": [_number(value) for value in table["predicted_std"]],
        "acquisition": [_number(value) for value in table["acquisition"]],
        "parameters": {name: _number(value) for name, value in parameters.items()},
        "seconds": seconds,
    }


def _asked(run: Run, space: Any, score: Score) -> list[dict[str, Any]]:
    from seqopt import Optimizer

    options: dict[str, Any] = {"surrogate": run.surrogate, "search": "auto"}
    if run.surrogate == "latent":
        path = _latent(space)
        options["surrogate"] = f"vae:{path}"
        if run.search == "latent":
            from seqopt.search import LatentSearch
            from seqopt.vae import StringVAE

            options["search"] = LatentSearch(StringVAE.load(path), restarts=2, raw_samples=32)
    if run.search != "latent":
        options["search"] = _search(run.search)
    for name in ("acquisition", "initial", "direction", "transform", "seed"):
        options[name] = getattr(run, name)
    optimizer = Optimizer(space, batch_size=run.batch, allow_repeats=run.repeats, **options)
    batches, waiting = [], list[str]()
    for _ in range(run.batches + 1):
        started = time.process_time()
        strings = list(optimizer.ask())
        seconds = time.process_time() - started
        table = optimizer.to_pandas()
        parameters = dict(getattr(optimizer, "hyperparameters", {}))
        batches.append(_batch_of(table.iloc[-len(strings) :], seconds, parameters))
        told = waiting + (strings[:-1] if run.late else strings)
        waiting = strings[-1:] if run.late else []
        values = score(told)
        if run.errors:
            known = [score.standard_error(string, value) for string, value in zip(told, values, strict=True)]
            optimizer.tell(told, values, standard_errors=known)
        else:
            optimizer.tell(told, values)
    return batches


def _maximized(run: Run, space: Any, score: Score) -> list[dict[str, Any]]:
    """By `maximize`; with a folder, the run is interrupted in its second batch and resumed."""
    from seqopt import maximize

    options: dict[str, Any] = {name: getattr(run, name) for name in ("surrogate", "acquisition", "initial", "seed")}
    options |= {"batch_size": run.batch, "budget": run.batch * run.batches, "direction": run.direction}
    started = time.process_time()
    if run.driver == "maximize":
        result = maximize(score, space, **options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            left = iter(range(run.initial + run.batch + 1))

            def interrupt(_: object) -> None:
                if next(left, None) is None:
                    raise KeyboardInterrupt

            target = Path(folder) / "run"
            try:
                maximize(score, space, run_folder=target, on_evaluation=interrupt, **options)
            except KeyboardInterrupt:
                result = maximize(score, space, run_folder=target, resume=True, **options)
            else:
                raise RuntimeError("the run was not interrupted")
    seconds = (time.process_time() - started) / (run.batches + 1)
    parameters = dict(getattr(result.optimizer, "hyperparameters", {}))
    batches = [
        _batch_of(rows, seconds, {}) for _, rows in result.evaluations.sort_values("number").groupby("batch", sort=True)
    ]
    batches[-1]["parameters"] = {name: _number(value) for name, value in parameters.items()}
    return batches


def _campaigned(run: Run, space: Any, score: Score) -> list[dict[str, Any]]:
    """By a campaign, closed and opened again before each batch."""
    from seqopt.campaign import Campaign

    batches = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "campaign.seqopt")
        options: dict[str, Any] = {name: getattr(run, name) for name in ("surrogate", "acquisition", "direction")}
        Campaign.create(path, space, objective="activity", batch_size=run.batch + 3, seed=run.seed, **options).close()
        for _ in range(run.batches + 1):
            with Campaign.open(path, space) as campaign:
                started = time.process_time()
                rows = list(campaign.suggest())
                seconds = time.process_time() - started
                batches.append(
                    {
                        "strings": [row.string for row in rows],
                        "means": [_number(getattr(row, "mean", None)) for row in rows],
                        "stds": [_number(getattr(row, "std", None)) for row in rows],
                        "acquisition": [_number(getattr(row, "score", None)) for row in rows],
                        "parameters": {},
                        "seconds": seconds,
                    }
                )
                for row, value in zip(rows, score([row.string for row in rows]), strict=True):
                    if math.isnan(value):
                        campaign.record(row.name, failure="no yield")
                    else:
                        error = score.standard_error(row.string, value) if run.errors else None
                        campaign.record(row.name, value, standard_error=error)
    return batches


def perform(run: Run) -> dict[str, Any]:
    """One run's record: its batches, or the error and what came before it."""
    drivers = {"ask": _asked, "maximize": _maximized, "resume": _maximized, "campaign": _campaigned}
    record: dict[str, Any] = {"settings": asdict(run)}
    started = time.process_time()
    try:
        space = SPACES[run.space]()
        with little_memory(run.streamed) as limits:
            if run.streamed:
                record["limits"] = limits
            record["batches"] = drivers[run.driver](run, space, Score(run, space.kind))
    except Exception as error:
        record["error"] = f"{type(error).__name__}: {error}"
        record["traceback"] = traceback.format_exc()
    record["seconds"] = time.process_time() - started
    return record


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


@contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings, of which runs with failures are full."""
    logger = logging.getLogger("seqopt")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def measure(out: Path, only: str = "") -> None:
    """Make all runs, or those with ``only`` in their names, and write their records."""
    import seqopt

    chosen = [run for run in runs() if only in run.name]
    records: dict[str, Any] = {}
    print(f"{len(chosen)} runs with {Path(seqopt.__file__).parent}", flush=True)
    with tempfile.TemporaryDirectory() as cache, _environment("SEQOPT_CACHE", cache), _quiet():
        if chosen:
            perform(chosen[0])  # what is compiled or loaded once is nobody's time
        for run in chosen:
            record = records[run.name] = perform(run)
            end = record.get("error") or f"{sum(len(batch['strings']) for batch in record['batches'])} strings"
            print(f"{record['seconds']:6.2f} s  {run.name}: {end}", flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    content = {"version": seqopt.__version__, "runs": records}
    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{sum(record['seconds'] for record in records.values()):.0f} s in all; written to {out}")


def _relative(a: float | None, b: float | None) -> float:
    """|a - b| / max(|a|, |b|); infinite where one is missing."""
    if a is None or b is None:
        return 0.0 if a is b else math.inf
    return abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0


def _median_ask(record: dict[str, Any]) -> float:
    """Median seconds of an ask that fits a model."""
    seconds = sorted(batch["seconds"] for batch in record["batches"][1:])
    return float(seconds[len(seconds) // 2])


@dataclass(frozen=True)
class Difference:
    """How a run differs between two records.

    Attributes:
        run: Its name.
        outcome: ``"identical"``, ``"differs"``, or which of both failed.
        detail: Where it differs first, or the error.
        gap: Relative difference between the acquisition values of the first strings that differ.
        mean: Largest relative difference of a predicted mean, on the scale of mean or predicted deviation.
        std: Largest relative difference of a predicted standard deviation.
        time: Median processor time per ask in the second, divided by those in the first.
    """

    run: str
    outcome: str
    detail: str = ""
    gap: float | None = None
    mean: float | None = None
    std: float | None = None
    time: float | None = None


def difference(name: str, a: dict[str, Any], b: dict[str, Any]) -> Difference:
    """Compare two records of one run."""
    if "error" in a or "error" in b:
        if "error" in a and "error" in b:
            same = a["error"] == b["error"]
            return Difference(name, "both fail", a["error"] if same else f"{a['error']} | {b['error']}")
        side = "first fails" if "error" in a else "second fails"
        return Difference(name, side, a.get("error") or b.get("error", ""))
    detail, gap = "", None
    means, stds = [0.0], [0.0]
    for number, (one, other) in enumerate(itertools.zip_longest(a["batches"], b["batches"])):
        if one is None or other is None:
            detail = f"batch {number} is missing"
            break
        index_of = {string: index for index, string in enumerate(other["strings"])}
        for index, string in enumerate(one["strings"]):
            if (there := index_of.get(string)) is None:
                continue
            mean, std = one["means"][index], one["stds"][index]
            if mean is not None and other["means"][there] is not None:
                # A mean near 0 may differ by many times itself; what counts is the deviation that goes with it.
                size = max(abs(mean), std or 0.0, 1e-300)
                means.append(abs(mean - other["means"][there]) / size)
            else:
                means.append(_relative(mean, other["means"][there]))
            stds.append(_relative(std, other["stds"][there]))
        if one["strings"] != other["strings"]:
            pairs = itertools.zip_longest(one["strings"], other["strings"])
            index = next(index for index, (x, y) in enumerate(pairs) if x != y)
            if index < min(len(one["strings"]), len(other["strings"])):
                gap = _relative(one["acquisition"][index], other["acquisition"][index])
            detail = f"batch {number}, string {index + 1}" + ("" if gap is None else f" (gap {gap:.1e})")
            detail += ", a near-tie" if gap is not None and gap < NEAR_TIE else ""
            detail += ", another order" if sorted(one["strings"]) == sorted(other["strings"]) else ""
            break
    ratio = _median_ask(b) / _median_ask(a) if min(len(a["batches"]), len(b["batches"])) > 1 else None
    return Difference(name, "differs" if detail else "identical", detail, gap, max(means), max(stds), ratio)


def compare(first: Path, second: Path) -> list[Difference]:
    """Print a table of all runs of two records, and totals."""
    records = [json.loads(path.read_text(encoding="utf-8"))["runs"] for path in (first, second)]
    names = list(dict.fromkeys([*records[0], *records[1]]))
    found = []
    for name in names:
        sides = [record.get(name, {"error": "not run"}) for record in records]
        found.append(difference(name, sides[0], sides[1]))

    def shown(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    print("| run | choices | first difference | mean | std | time |\n|---|---|---|---|---|---|")
    for row in found:
        numbers = [shown(row.mean, ".1e"), shown(row.std, ".1e"), shown(row.time, ".2f")]
        print("| " + " | ".join([row.run, row.outcome, row.detail.replace("|", "/"), *numbers]) + " |")
    counts = Counter(row.outcome for row in found)
    ties = sum(row.gap is not None and row.gap < NEAR_TIE for row in found)
    ratios = sorted(row.time for row in found if row.time is not None)
    print(f"\n{len(found)} runs: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()), end="")
    print(f"; of those that differ, {ties} at a near-tie (acquisition values within {NEAR_TIE:g})")
    if ratios:
        print(
            f"processor time of an ask, second / first: median {ratios[len(ratios) // 2]:.2f}, "
            f"from {ratios[0]:.2f} to {ratios[-1]:.2f}"
        )
    return found


def main(argv: Sequence[str]) -> None:
    """Make the runs, or compare two records."""
    parser = argparse.ArgumentParser(prog="seqopt bench choices", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--out", type=Path, help="make all runs and write them here, as JSON")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"), help="compare two such files")
    parser.add_argument("--only", default="", metavar="TEXT", help="only runs with this in their names")
    parser.add_argument("--list", action="store_true", help="print the names of the runs")
    options = parser.parse_args(list(argv))
    if options.list:
        print("\n".join(run.name for run in runs()))
    if options.out is not None:
        measure(options.out, options.only)
    if options.compare is not None:
        compare(*options.compare)
    if not (options.list or options.out or options.compare):
        parser.error("expected --out FILE, --compare OLD NEW or --list")


if __name__ == "__main__":
    # The modules next to this file must not be found instead of packages of the same names.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    main(sys.argv[1:])
