"""What a prefilter loses: the share of an exact GIBBON batch that survives it, and the best value at equal budget.

Molecules of ZINC, logP penalised by synthetic accessibility and rings (`penalized_logp`), the surrogate ``minmax``.
``shares``: with 200 known values, a batch of 100 is chosen among all; of its members, how many are among the ``keep``
candidates that each prefilter puts first, for several ``keep``, and how many are in the batch that is chosen from
these. ``searches``: 20 random molecules, then batches, with and without; the regret after each.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.records import append_record, read_records
from seqopt.bench.runner import header

PREFILTERS = ("lfbo", "mean")
FIELDS = ["job"]


def _pool(size: int, seed: int) -> Any:
    from seqopt.datasets import load_zinc250k
    from seqopt.spaces import CandidateSet

    molecules = load_zinc250k()
    chosen = np.random.default_rng([seed, 1]).permutation(len(molecules))[:size]
    return CandidateSet([molecules[int(index)] for index in chosen], kind="molecule")


def shares(size: int, seed: int, keeps: Sequence[int], known: int, batch: int) -> list[dict[str, Any]]:
    """One row for each prefilter and ``keep``.

    Args:
        size: Molecules of ZINC that make the pool.
        seed: Of the pool, the known molecules and the search.
        keeps: Lengths of shortlists.
        known: Values that are known.
        batch: Members of a batch.
    """
    from seqopt import Optimizer
    from seqopt.objectives import resolve_objective
    from seqopt.strategies import ModelBased, Prefilter

    pool = _pool(size, seed)
    strings = pool.sample(known, np.random.default_rng(seed))
    values = resolve_objective("penalized_logp")(strings)

    def asked(prefilter: Prefilter | None) -> list[str]:
        strategy = ModelBased("minmax", "gibbon", prefilter=prefilter)
        optimizer = Optimizer(pool, strategy=strategy, initial=2, seed=seed)
        optimizer.tell(strings, values)
        return list(optimizer.ask(batch))

    exact = set(asked(None))
    found = []
    for by in PREFILTERS:
        for keep in keeps:
            shortlist = _shortlist(pool, strings, values, by, keep, seed)
            chosen = set(asked(Prefilter(by, keep)))
            found.append(
                {
                    "prefilter": by,
                    "keep": keep,
                    "survives": len(exact & shortlist) / batch,
                    "chosen": len(exact & chosen) / batch,
                }
            )
    return found


def _shortlist(pool: Any, strings: Sequence[str], values: Any, by: str, keep: int, seed: int) -> set[str]:
    """The strings that a prefilter keeps."""
    from seqopt import Optimizer
    from seqopt.scorers.shortlist import MeanPoolScorer
    from seqopt.strategies import LFBO, ModelBased
    from seqopt.strategies.prefilter import cheap_classifier

    rng = np.random.default_rng([seed, 2])
    strategy: Any = ModelBased("minmax") if by == "mean" else LFBO(cheap_classifier(pool))
    optimizer = Optimizer(pool, strategy=strategy, initial=2, seed=seed)
    optimizer.tell(list(strings), values)
    state = optimizer.state()
    scorer = (
        MeanPoolScorer(strategy.fitted(state, rng), pool)
        if by == "mean"
        else strategy.scoring(state, rng).pool_scorer(pool)
    )
    allowed = np.array([key not in state.excluded for key in pool.keys], dtype=np.bool_)
    return {pool[int(index)] for index in scorer.best(allowed, keep)[0]}


def search(size: int, seed: int, prefilter: str, keep: int, batches: int, batch: int) -> dict[str, Any]:
    """One search: its best value, and its regrets after each batch, that of random molecules first.

    Args:
        size: Molecules of ZINC that make the pool.
        seed: Of the pool and the search.
        prefilter: One of `PREFILTERS`, or ``"none"``.
        keep: Length of the shortlist.
        batches: How many after 20 random molecules.
        batch: Members of each.
    """
    from seqopt import Optimizer
    from seqopt.objectives import resolve_objective
    from seqopt.strategies import ModelBased, Prefilter

    pool, score = _pool(size, seed), resolve_objective("penalized_logp")
    chosen = None if prefilter == "none" else Prefilter(prefilter, keep)
    optimizer = Optimizer(pool, strategy=ModelBased("minmax", "gibbon", prefilter=chosen), initial=20, seed=seed)
    bests = []
    for number in range(batches + 1):
        strings = optimizer.ask(batch if number else 20)
        optimizer.tell(strings, score(list(strings)))
        bests.append(float(optimizer.best.value))
    top = float(max(score(list(pool.strings))))
    return {"best": bests[-1], "regret": top - bests[-1], "regrets": [top - best for best in bests]}


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Means and standard errors over seeds.

    Args:
        runs: Lines of ``--out``.
    """
    lines = [
        "| pool | prefilter | keep | exact batch that survives | same members chosen | seeds |",
        "|---|---|---|---|---|---|",
    ]
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    regrets: dict[tuple[Any, ...], list[list[float]]] = {}
    for run in runs:
        job = run["job"]
        if job["what"] == "shares":
            for one in run["result"]:
                rows.setdefault((job["size"], one["prefilter"], one["keep"]), []).append(one)
        else:
            name = (job["size"], job["prefilter"], job["keep"], job["batches"], job["batch"])
            regrets.setdefault(name, []).append(run["result"]["regrets"])
    for (size, by, keep), ones in rows.items():
        cells = [_shown([one[name] for one in ones]) for name in ("survives", "chosen")]
        lines.append(f"| {size:,} | {by} | {keep:,} | {' | '.join(cells)} | {len(ones)} |")
    for budget in dict.fromkeys((batches, batch) for *_, batches, batch in regrets):
        spent = [20 + budget[1] * number for number in range(budget[0] + 1)]
        lines += [
            "",
            f"| pool | prefilter | keep | {' | '.join(f'regret after {number:,}' for number in spent)} | seeds |",
        ]
        lines += ["|---" * (4 + len(spent)) + "|"]
        for (size, by, keep, *of), found in regrets.items():
            if tuple(of) == budget:
                cells = [_shown(at) for at in zip(*found, strict=True)]
                lines.append(f"| {size:,} | {by} | {keep:,} | {' | '.join(cells)} | {len(found)} |")
    return "\n".join(lines)


def _shown(values: Sequence[float]) -> str:
    spread = f" ± {np.std(values, ddof=1) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{spread}"


def main(argv: Sequence[str]) -> None:
    """Run what is missing, and print the tables."""
    parser = argparse.ArgumentParser(prog="seqopt bench prefilter", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--what", nargs="+", choices=("shares", "searches"), default=["shares", "searches"])
    parser.add_argument("--size", type=int, default=249_456, help="molecules of ZINC (default: all)")
    parser.add_argument("--keep", type=int, nargs="+", default=[1_000, 5_000, 20_000, 50_000], help="of shares")
    parser.add_argument("--search-keep", type=int, default=5_000, help="of searches (default 5,000)")
    parser.add_argument("--known", type=int, default=200, help="of shares (default 200)")
    parser.add_argument("--batch", type=int, default=100, help="members of a batch (default 100)")
    parser.add_argument("--batches", type=int, default=5, help="of searches (default 5)")
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 (default 5)")
    parser.add_argument("--out", type=Path, default=Path("results/prefilter.jsonl"), help="JSON lines, appended to")
    options = parser.parse_args(list(argv))
    record = header(list(argv), "prefilter")
    for seed in range(options.seeds):
        if "shares" in options.what:
            job: dict[str, Any] = {"what": "shares", "size": options.size, "seed": seed, "keep": options.keep}
            job |= {"known": options.known, "batch": options.batch}
            if not _there(options.out, job):
                found: Any = shares(options.size, seed, options.keep, options.known, options.batch)
                append_record(options.out, {"job": job, "result": found, "record": record}, FIELDS)
                print(f"shares, seed {seed}", flush=True)
        for by in ("none", *PREFILTERS) if "searches" in options.what else ():
            job = {"what": "searches", "size": options.size, "seed": seed, "prefilter": by}
            job |= {"keep": options.search_keep, "batches": options.batches, "batch": options.batch}
            if not _there(options.out, job):
                found = search(options.size, seed, by, options.search_keep, options.batches, options.batch)
                append_record(options.out, {"job": job, "result": found, "record": record}, FIELDS)
                print(f"searches, {by}, seed {seed}: regret {found['regret']:.2f}", flush=True)
    print(table(read_records(options.out, FIELDS)))


def _there(path: Path, job: dict[str, Any]) -> bool:
    return any(one["job"] == job for one in read_records(path, FIELDS))
