"""Virtual screening: how many of the best docking scores are found without docking everything?

The 10,449 Enamine molecules of molpal with their docking scores: 50 random molecules, then batches of 50 up to 600.
Given is the share of the 100 best molecules found so far.

References:
    Graff, D. E., Shakhnovich, E. I., Coley, C. W. (2021). Accelerating high-throughput virtual screening through
        molecular pool-based active learning. Chem. Sci. 12, 7866-7881.
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

from seqopt.bench.density_ratios import CLASSIFIERS, KINDS, density_ratio
from seqopt.bench.records import ENDING, runs_by_method
from seqopt.bench.runner import header, replace_section, run_jobs

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet

BATCH, BUDGET, TOP = 50, 600, 100
CHECKPOINTS = (100, 200, 300, 400, 500, 600)
SEEDS = 5


PENALISED = "penalised-"


@dataclass(frozen=True)
class Method:
    """How batches are chosen.

    Attributes:
        surrogate: Name of the surrogate; ``vae`` is the autoencoder of molecules of ``seqopt bench vae``. Of a density
            ratio, name of the classifier (`seqopt.bench.density_ratios`).
        acquisition: Name of the acquisition function; ``penalised-NAME`` by local penalisation, ``bore`` and ``lfbo``
            are density ratios.
        colour: In the plot, which shows GIBBON with every surrogate; `None` for the rest.
    """

    surrogate: str
    acquisition: str
    colour: str | None = None

    def build_strategy(self, surrogate: Any) -> Any:
        """A surrogate with its acquisition function, by local penalisation where that is asked for."""
        from seqopt.strategies import LocalPenalisation, ModelBased

        if self.acquisition in KINDS:
            return density_ratio(self.acquisition, self.surrogate)
        if self.acquisition.startswith(PENALISED):
            return LocalPenalisation(surrogate, self.acquisition.removeprefix(PENALISED))
        return ModelBased(surrogate, self.acquisition)

    @property
    def label(self) -> str:
        """Name in table and plot."""
        if self.acquisition in KINDS:
            return f"{CLASSIFIERS[self.surrogate]}, {KINDS[self.acquisition]}"
        how = {
            "gibbon": "GIBBON",
            "mean": "greedy mean",
            "ucb": "UCB",
            "dpp-ei": "DPP-EI",
            "penalised-logei": "local penalisation of EI",
            "penalised-mes": "local penalisation of MES",
        }
        return "random" if self.acquisition == "random" else f"{self.surrogate}, {how[self.acquisition]}"


METHODS: Mapping[str, Method] = {
    "ssk-mean": Method("ssk", "mean"),
    "ssk-gibbon": Method("ssk", "gibbon", "#0072B2"),
    "ngrams-mean": Method("ngrams", "mean"),
    "ngrams-gibbon": Method("ngrams", "gibbon", "#882255"),
    "tanimoto-mean": Method("tanimoto", "mean"),
    "tanimoto-gibbon": Method("tanimoto", "gibbon", "#E69F00"),
    "minmax-mean": Method("minmax", "mean"),
    "minmax-gibbon": Method("minmax", "gibbon", "#009E73"),
    "minmax-dpp-ei": Method("minmax", "dpp-ei"),
    "minmax-penalised-ei": Method("minmax", "penalised-logei"),
    "minmax-penalised-mes": Method("minmax", "penalised-mes"),
    "minmax-ucb": Method("minmax", "ucb"),
    "ngrams+minmax-mean": Method("ngrams+minmax", "mean"),
    "ngrams+minmax-gibbon": Method("ngrams+minmax", "gibbon", "#CC79A7"),
    "ngrams+counts-mean": Method("ngrams+counts", "mean"),
    "ngrams+counts-gibbon": Method("ngrams+counts", "gibbon", "#CC0000"),
    "ngrams+counts-ucb": Method("ngrams+counts", "ucb"),
    "counts-gibbon": Method("counts", "gibbon"),
    "fragprints-mean": Method("fragprints", "mean"),
    "fragprints-gibbon": Method("fragprints", "gibbon", "#8877CC"),
    "ssk+minmax-mean": Method("ssk+minmax", "mean"),
    "ssk+minmax-gibbon": Method("ssk+minmax", "gibbon", "#000000"),
    "ssk+fragprints-gibbon": Method("ssk+fragprints", "gibbon", "#D55E00"),
    "vae-mean": Method("vae", "mean"),
    "vae-gibbon": Method("vae", "gibbon", "#FF66AA"),
    **{f"{name}-{kind}": Method(name, kind) for name in CLASSIFIERS for kind in KINDS},
    "random": Method("auto", "random", "#999999"),
}
"""What is compared."""


@dataclass(frozen=True)
class Job:
    """One run."""

    method: str
    seed: int


@lru_cache(maxsize=1)
def library() -> tuple[CandidateSet, npt.NDArray[np.float64]]:
    """The molecules as a space, and the docking score of each (of the first of equal molecules)."""
    from seqopt.datasets import load
    from seqopt.spaces import CandidateSet

    data = load("enamine10k_docking")
    assert data.values is not None
    space = CandidateSet(data.strings, kind="molecule")
    scores: dict[str, float] = {}
    for string, value in zip(data.strings, data.values.tolist(), strict=True):
        scores.setdefault(space.key(string), value)
    return space, np.array([scores[key] for key in space.keys])


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: the molecules in the order of evaluation, by their indices in the library."""
    import torch

    from seqopt.bench.vae import surrogate_name
    from seqopt.optimizer import Optimizer

    torch.set_num_threads(1)
    space, scores = library()
    method = METHODS[job.method]
    optimizer = Optimizer(
        space,
        strategy=method.build_strategy(
            method.surrogate if method.acquisition in KINDS else surrogate_name(method.surrogate)
        ),
        batch_size=BATCH,
        initial=BATCH,
        direction="minimize",
        seed=job.seed,
    )
    seconds = []
    while len(optimizer.observations) < BUDGET:
        started = time.perf_counter()
        strings = optimizer.ask()
        seconds.append(round(time.perf_counter() - started, 2))
        optimizer.tell(strings, [float(scores[space.index_of(string)]) for string in strings])
    return {
        "job": asdict(job),
        "indices": [space.index_of(row.string) for row in optimizer.observations.rows],
        "suggest_seconds": seconds,
        "hyperparameters": {name: round(value, 5) for name, value in optimizer.hyperparameters.items()},
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write table and plot; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench docking", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each method (default {SEEDS})")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results/docking"),
        help="folder of the raw results, a file for each method",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write table and plot")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        record = header(list(argv or []), "docking")
        jobs = [Job(method, seed) for seed in range(options.seeds) for method in options.methods]
        run_jobs(
            jobs,
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
        )
    runs = read_runs(options.results)
    text = table(runs)
    print(text)
    plot(runs, options.document.parent / "img" / "docking.png")
    replace_section(options.document, "docking", text)


Runs = Mapping[str, Sequence[Mapping[str, Any]]]
"""By method."""


def read_runs(results: Path) -> Runs:
    """All stored runs, in the order of the table and the seeds."""
    return runs_by_method(results, METHODS)


def found_so_far(run: Mapping[str, Any], scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Share of the `TOP` best molecules found, after each evaluation; scores equal to the last of them count too."""
    worst = np.sort(scores)[TOP - 1]
    good = scores[run["indices"]] <= worst
    share: npt.NDArray[np.float64] = np.minimum(np.cumsum(good) / TOP, 1.0)
    return share


def table(runs: Runs) -> str:
    """Shares in percent at the checkpoints."""
    space, scores = library()
    lines = [
        f"| percent of the top {TOP} after | seeds | {' | '.join(map(str, CHECKPOINTS))} | s choosing |",
        "|---|---|" + "---|" * (len(CHECKPOINTS) + 1),
    ]
    for method, several in runs.items():
        curves = 100 * np.stack([found_so_far(run, scores) for run in several])[:, np.array(CHECKPOINTS) - 1]
        error = curves.std(0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else None
        cells = [
            f"{mean:.1f}" + ("" if error is None else f" ± {error[index]:.1f}")
            for index, mean in enumerate(curves.mean(0))
        ]
        spent = np.median([sum(run["suggest_seconds"]) for run in several])
        lines.append(f"| {METHODS[method].label} | {len(several)} | {' | '.join(cells)} | {spent:.0f} |")
    ties = int((scores <= np.sort(scores)[TOP - 1]).sum())
    expected = 100 * CHECKPOINTS[-1] / len(space) * ties / TOP
    lines.append(
        f"\nMean ± one standard error over seeds; {len(space):,} molecules, of which {ties} score as well as the "
        f"{TOP}th or better. A share is the number found of these {ties}, divided by {TOP}, and at most 100 %: random "
        f"molecules are expected to reach {expected:.1f} % after {CHECKPOINTS[-1]}. Time: median of all suggestions of "
        f"a run, one thread."
    )
    return "\n".join(lines)


def plot(runs: Runs, picture: Path) -> None:
    """Shares against evaluations, with one standard error."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    _, scores = library()
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for method, several in runs.items():
        if METHODS[method].colour is None:
            continue
        curves = 100 * np.stack([found_so_far(run, scores) for run in several])
        mean = curves.mean(0)
        error = curves.std(0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else 0 * mean
        evaluations = np.arange(1, len(mean) + 1)
        axes.plot(evaluations, mean, color=METHODS[method].colour, label=METHODS[method].label)
        axes.fill_between(evaluations, mean - error, mean + error, color=METHODS[method].colour, alpha=0.15, lw=0)
    axes.set(xlabel="molecules docked", ylabel=f"percent of the top {TOP} found", xlim=(BATCH, BUDGET), ylim=(0, 100))
    axes.grid(alpha=0.2)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    figure.savefig(picture, dpi=150)
