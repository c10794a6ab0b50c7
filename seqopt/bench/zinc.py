"""ZINC 250k: the molecule search of the GIBBON paper, and the same over the whole pool.

Protocol (Moss 2021, thesis, section 5.7.3): maximise the penalised logP over 249,456 molecules; 20 random molecules,
then 100 evaluations chosen one at a time, in 20 batches of 5 or in 10 batches of 10, each time from 1,000 fresh random
molecules. The methods called *published* are the thesis's in every part: the maximum of g* is drawn from a Gumbel
distribution fitted to the same 1,000 molecules, the repulsion is 1, and the parameters maximise the marginal likelihood
anew at each step. The full-pool runs choose each batch from all molecules. All methods of one seed share their first
20.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.bench.density_ratios import CLASSIFIERS, KINDS, density_ratio
from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet

INITIAL, BUDGET, FRESH = 20, 100, 1000
PENALISED = "penalised-"
CHECKPOINTS = (20, 40, 60, 80, 100, 120)


@dataclass(frozen=True)
class Method:
    """How batches are chosen.

    Attributes:
        label: Name in the table.
        acquisition: Name of the acquisition function; ``penalised-NAME`` by local penalisation, ``bore`` and ``lfbo``
            are density ratios.
        batch: Batch size.
        candidates: Random candidates looked at in each step, or `None` for the whole pool.
        colour: In the plot, or `None` to leave the method out of it.
        sampler: Max-value sampler of GIBBON; ``"gumbel-candidates"`` is the Gumbel sampler on the candidates alone.
        repulsion: Repulsion of GIBBON.
        surrogate: Name of the surrogate; ``vae`` is the autoencoder of molecules of ``seqopt bench vae``. Of a density
            ratio, name of the classifier (`seqopt.bench.density_ratios`).
        seeds: Runs of it.
        fit: ``"default"`` parameters of the surrogate, or those of maximum ``"likelihood"`` at each step.
        transform: What the model sees of the values: what they are (``"none"``), or as it learns in each step
            (``"auto"``, the default of searches).
        studied: Whether it is there to tell causes apart, and runs only when it is named.
    """

    label: str
    acquisition: str
    batch: int
    candidates: int | None
    colour: str | None
    sampler: str = "exact"
    repulsion: float | Literal["1/B", "1/B^2", "1/m^2"] = 1.0
    surrogate: str = "ssk"
    seeds: int = 20
    fit: Literal["default", "likelihood"] = "default"
    transform: Literal["none", "auto"] = "none"
    studied: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """What a run depends on, to be kept with it: labels are reworded, and then say something else of old runs."""
        names = ("acquisition", "batch", "candidates", "sampler", "repulsion", "surrogate", "fit", "transform")
        return {name: getattr(self, name) for name in names}

    def chose(self, stored: Mapping[str, Any]) -> bool:
        """Whether a run with these stored settings is one of this method.

        Runs from before there was a choice name no surrogate, fit and transform; some hold the value of the
        repulsion, 0.1 in batches of 10, instead of its name; and only GIBBON has a repulsion and a sampler.
        """
        found = {"surrogate": "ssk", "fit": "default", "transform": "none", **stored}
        wanted = self.settings
        names = ["acquisition", "batch", "candidates", "surrogate", "fit", "transform"]
        if self.acquisition == "gibbon":
            names.append("sampler")
            found["repulsion"], wanted["repulsion"] = (
                _value(x, self.batch) for x in (found["repulsion"], self.repulsion)
            )
            names.append("repulsion")
        return all(found[name] == wanted[name] for name in names)

    def build(self) -> Any:
        """The acquisition function."""
        from seqopt.acquisition import GIBBON, GumbelMaxValueSampler, LogExpectedImprovement, resolve_acquisition

        if self.acquisition == "gibbon":
            if self.sampler == "gumbel-candidates":
                return GIBBON(sampler=GumbelMaxValueSampler(FRESH, evaluated=False), repulsion=self.repulsion)
            return GIBBON(sampler=self.sampler, repulsion=self.repulsion)
        if self.acquisition == "ei":
            return LogExpectedImprovement("value")
        return resolve_acquisition(self.acquisition)

    def build_strategy(self, search: Any) -> Any:
        """A surrogate, an acquisition function and a search."""
        from seqopt.strategies import LocalPenalisation, ModelBased

        if self.acquisition in KINDS:
            return density_ratio(self.acquisition, self.surrogate, search)
        if self.acquisition.startswith(PENALISED):
            return LocalPenalisation(self.build_surrogate(), self.acquisition.removeprefix(PENALISED), search)
        return ModelBased(self.build_surrogate(), self.build(), search)

    def build_surrogate(self) -> Any:
        """The surrogate, or its name."""
        from seqopt.bench.vae import surrogate_name
        from seqopt.strategies import maximum_likelihood_gp

        return maximum_likelihood_gp() if self.fit == "likelihood" else surrogate_name(self.surrogate)


def _value(repulsion: float | str, batch: int) -> float | str:
    """What a repulsion is in batches of that size, where it does not change within them."""
    return (
        {"1/B": 1 / batch, "1/B^2": 1 / batch**2}.get(repulsion, repulsion) if isinstance(repulsion, str) else repulsion
    )


_DRAWN = {("minmax", "gibbon"): "#D81B60", ("ngrams", "gibbon"): "#7570B3", ("ngrams", "mean"): "#CC3311"}
"""Colours of the surrogates in the plot that are not the sub-sequence kernel: the default, and the best of all."""

LEARNED_WITH = ("ngrams+counts", "vae")
"""Surrogates whose rows are of a learned transform: they are younger than it."""

_SIZES: tuple[tuple[str, str, int, float | Literal["1/B"]], ...] = (
    ("gibbon-1", "one at a time", 1, 1.0),
    ("gibbon-5-b", "batches of 5", 5, "1/B"),
    ("gibbon-10-b", "batches of 10", 10, "1/B"),
)

_OTHERWISE: tuple[tuple[str, Literal["none", "auto"]], ...] = (
    ("minmax", "auto"),
    ("ngrams", "auto"),
    ("ngrams+minmax", "auto"),
    ("ngrams+counts", "none"),
)

METHODS: dict[str, Method] = {
    "gibbon-1": Method("GIBBON, one at a time", "gibbon", 1, FRESH, "#0072B2"),
    "gibbon-5-b": Method("GIBBON, batches of 5", "gibbon", 5, FRESH, "#56B4E9", repulsion="1/B"),
    "gibbon-10-b": Method("GIBBON, batches of 10", "gibbon", 10, FRESH, "#009E73", repulsion="1/B"),
    **{
        f"{name}-auto": Method(
            f"GIBBON, {size}", "gibbon", batch, FRESH, None, repulsion=repulsion, transform="auto", studied=True
        )
        for name, size, batch, repulsion in _SIZES
    },
    "gibbon-10-b-10k": Method("GIBBON, batches of 10 from 10,000", "gibbon", 10, 10 * FRESH, None, repulsion="1/B"),
    "gibbon-10": Method("GIBBON, batches of 10, repulsion 1", "gibbon", 10, FRESH, None, seeds=10),
    "gibbon-10-b2": Method(
        "GIBBON, batches of 10, repulsion 1/B^2", "gibbon", 10, FRESH, None, repulsion="1/B^2", seeds=10
    ),
    "gibbon-10-gumbel": Method(
        "GIBBON, batches of 10, repulsion 1, Gumbel", "gibbon", 10, FRESH, None, sampler="gumbel", seeds=10
    ),
    "gibbon-10-ssk-bayes": Method(
        "ssk-bayes, GIBBON, batches of 10", "gibbon", 10, FRESH, None, repulsion="1/B", surrogate="ssk-bayes"
    ),
    **{
        f"published-{batch}{suffix}": Method(
            f"Published GIBBON{' but for the values' if suffix else ''}, {size}",
            "gibbon",
            batch,
            FRESH,
            None if suffix else colour,
            sampler="gumbel-candidates",
            seeds=50,
            fit="likelihood",
            transform="auto" if suffix else "none",
            studied=bool(suffix),
        )
        for suffix in ("", "-auto")
        for batch, size, colour in (
            (1, "one at a time", "#332288"),
            (5, "batches of 5", "#117733"),
            (10, "batches of 10", "#882255"),
        )
    },
    "published-ei-1": Method(
        "Published expected improvement, one at a time", "ei", 1, FRESH, "#DDCC77", seeds=50, fit="likelihood"
    ),
    **{
        f"{name}-{batch}": Method(
            f"{label}, batches of {batch}", acquisition, batch, FRESH, None, seeds=10, transform="auto"
        )
        for name, label, acquisition in (
            ("dpp-ei", "DPP and expected improvement", "dpp-ei"),
            ("penalised-ei", "Local penalisation of expected improvement", "penalised-logei"),
            ("penalised-mes", "Local penalisation of MES", "penalised-mes"),
        )
        for batch in (5, 10)
    },
    "ei-1": Method("Expected improvement, one at a time", "logei", 1, FRESH, "#E69F00"),
    "mean-1": Method("Greedy mean, one at a time", "mean", 1, FRESH, "#CC79A7"),
    **{
        f"{'full-' if pool is None else ''}{kind}-10-{name}": Method(
            f"{'Whole pool: ' if pool is None else ''}{KINDS[kind]}, {label}, batches of 10",
            kind,
            10,
            pool,
            None,
            surrogate=name,
            seeds=5,
            transform="auto",
        )
        for pool in (FRESH, None)
        for name, label in CLASSIFIERS.items()
        for kind in KINDS
    },
    "random": Method("Random search", "random", 10, FRESH, "#999999"),
    "full-gibbon-1": Method("Whole pool: GIBBON, one at a time", "gibbon", 1, None, "#004C99", seeds=5),
    "full-gibbon-10-b": Method(
        "Whole pool: GIBBON, batches of 10", "gibbon", 10, None, "#000000", repulsion="1/B", seeds=5
    ),
    "full-mean-1": Method("Whole pool: greedy mean, one at a time", "mean", 1, None, "#A0522D", seeds=5),
    "full-mean-10": Method("Whole pool: greedy mean, batches of 10", "mean", 10, None, "#D55E00", seeds=5),
    **{
        f"full-{acquisition}-10-{surrogate}": Method(
            f"Whole pool: {surrogate}, {label}, batches of 10",
            acquisition,
            10,
            None,
            _DRAWN.get((surrogate, acquisition)),
            repulsion="1/B",
            surrogate=surrogate,
            seeds=5,
            transform="auto" if surrogate in LEARNED_WITH else "none",
        )
        for surrogate in (
            "minmax",
            "ngrams",
            "ngrams+minmax",
            "ngrams+counts",
            "tanimoto",
            "fragprints",
            "ssk+minmax",
            "vae",
        )
        for acquisition, label in (("gibbon", "GIBBON"), ("mean", "greedy mean"))
    },
    **{
        f"full-gibbon-10-{surrogate}-{other}": Method(
            f"Whole pool: {surrogate}, GIBBON, batches of 10",
            "gibbon",
            10,
            None,
            None,
            repulsion="1/B",
            surrogate=surrogate,
            seeds=5,
            transform=other,
            studied=True,
        )
        for surrogate, other in _OTHERWISE
    },
}
"""What is compared. Where nothing else is said, repulsion is the default 1/B and max-values are exact draws."""


@dataclass(frozen=True)
class Job:
    """One run."""

    method: str
    seed: int


@lru_cache(maxsize=1)
def zinc() -> tuple[CandidateSet, npt.NDArray[np.float64]]:
    """All of ZINC 250k as a space, and the penalised logP of each candidate (computed once, then cached)."""
    from seqopt.datasets import load_zinc250k, read_pool
    from seqopt.objectives.zinc_scores import penalized_logp_of_zinc
    from seqopt.spaces import CandidateSet

    pool = read_pool("zinc250k")
    scores = dict(zip(load_zinc250k(), penalized_logp_of_zinc(progress=_show_progress), strict=True))
    space = CandidateSet(pool.strings, kind="molecule", keys=pool.keys)
    return space, np.array([scores[string] for string in space.strings])


@lru_cache(maxsize=1)
def readable() -> CandidateSet:
    """The molecules of ZINC 250k that the autoencoder of molecules can read: all but the longest."""
    from seqopt.bench.vae import AUTOENCODER_OF_MOLECULES, load_model
    from seqopt.spaces import CandidateSet

    space, _ = zinc()
    unread = load_model(AUTOENCODER_OF_MOLECULES).unsupported(space.keys)
    indices = [index for index in range(len(space)) if index not in unread]
    return CandidateSet(
        [space.strings[index] for index in indices], kind="molecule", keys=[space.keys[index] for index in indices]
    )


def _show_progress(done: int, total: int) -> None:
    print(f"\rscoring ZINC once: {done:,} of {total:,}", end="\n" if done == total else "", flush=True)


def work(job: Job) -> dict[str, Any]:
    """One run: every value in the order of evaluation."""
    import torch

    from seqopt.optimizer import Optimizer
    from seqopt.search import PoolSearch

    torch.set_num_threads(1)
    space, scores = zinc()
    method = METHODS[job.method]
    searched = readable() if method.surrogate == "vae" else space
    optimizer = Optimizer(
        searched,
        strategy=method.build_strategy(PoolSearch(method.candidates)),
        batch_size=method.batch,
        initial=INITIAL,
        seed=job.seed,
        transform=method.transform,
    )
    seconds = 0.0
    if searched is not space:  # the same beginning as that of all other methods
        strings = Optimizer(space, surrogate="ssk", initial=INITIAL, seed=job.seed).ask()
        optimizer.tell(strings, [float(scores[space.index_of(string)]) for string in strings])
    while len(optimizer.observations) < INITIAL + BUDGET:
        started = time.perf_counter()
        strings = optimizer.ask()
        seconds += time.perf_counter() - started
        optimizer.tell(strings, [float(scores[space.index_of(string)]) for string in strings])
    frame = optimizer.observations.to_frame()
    return {
        "job": asdict(job),
        "method": method.settings,
        "indices": [space.index_of(key) for key in frame["key"]],
        "values": [round(value, 6) for value in frame["value"]],
        "batches": frame["batch"].tolist(),
        "predicted_mean": [None if np.isnan(v) else round(v, 4) for v in frame["predicted_mean"].astype(float)],
        "predicted_std": [None if np.isnan(v) else round(v, 4) for v in frame["predicted_std"].astype(float)],
        "kernel": optimizer.hyperparameters,
        "suggest_seconds": round(seconds, 2),
    }


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table and the plot."""
    parser = argparse.ArgumentParser(prog="seqopt bench zinc", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--seeds", type=int, help="runs of each method (default: those of the table, 5 to 20)")
    planned = [name for name, method in METHODS.items() if not method.studied]
    several = "default: all but those that only tell causes apart"
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=planned, help=several)
    parser.add_argument(
        "--results", type=Path, default=Path("results/zinc"), help="folder of the raw results, a file for each method"
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write table and plot")
    options = parser.parse_args(list(argv))
    if not options.report_only:
        record = header(argv, "zinc")
        seeds = {name: options.seeds or METHODS[name].seeds for name in options.methods}
        print("seeds: 0 to " + ", ".join(f"{number - 1} ({name})" for name, number in seeds.items()), flush=True)
        zinc()  # scores every molecule once, with a progress line, before processes start
        run_jobs(
            [Job(name, seed) for seed in range(max(seeds.values())) for name in seeds if seed < seeds[name]],
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
        )
    report(options.results, options.document)


def read_runs(results: Path) -> dict[str, list[dict[str, Any]]]:
    """All stored runs by method, in the order of the table and the seeds.

    Raises:
        InputError: If a run was made with other settings than those of its method: a mean over both means nothing.
    """
    runs = {name: read_records(results / f"{name}{ENDING}", ["job"]) for name in METHODS}
    for name, several in runs.items():
        for run in several:
            if not METHODS[name].chose(run["method"]):
                raise InputError(
                    f"{results / name}{ENDING}, seed {run['job']['seed']}: made with the settings {run['method']}, but "
                    f"those of {name} are {METHODS[name].settings}: give one of them another name, or remove the line"
                )
    return {name: sorted(several, key=lambda run: int(run["job"]["seed"])) for name, several in runs.items()}


def best_so_far(run: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Largest value after each evaluation."""
    return np.maximum.accumulate(np.asarray(run["values"], dtype=np.float64))


_TRANSFORMED = {"none": "as they are", "auto": "transformed"}


def _with_error(mean: float, error: float, runs: int) -> str:
    return f"{mean:.2f} ± {error:.2f}" if runs > 1 else f"{mean:.2f}"


def report(results: Path, document: Path) -> None:
    """Table (Markdown) and plot (PNG) of all runs in ``results``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    _, scores = zinc()
    descending = -np.sort(-scores)
    runs = read_runs(results)
    lines = [
        "| method | values | seeds | " + " | ".join(f"{n}" for n in CHECKPOINTS) + " | rank in ZINC | batch mean | s |",
        "|---|---|---|" + "---|" * (len(CHECKPOINTS) + 3),
    ]
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for name, found in runs.items():
        if not found:
            continue
        curves = np.stack([best_so_far(run) for run in found])
        mean, error = (
            curves.mean(0),
            curves.std(0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else 0 * curves[0],
        )
        best = np.array([scores[run["indices"]].max() for run in found])
        ranks = np.searchsorted(-descending, -best, side="left") + 1
        chosen = np.mean([np.mean(run["values"][INITIAL:]) for run in found])
        lines.append(
            f"| {METHODS[name].label} | {_TRANSFORMED[METHODS[name].transform]} | {len(found)} | "
            + " | ".join(_with_error(mean[n - 1], error[n - 1], len(found)) for n in CHECKPOINTS)
            + f" | {np.median(ranks):.0f} ({ranks.min()}-{ranks.max()}) | {chosen:.2f} "
            + f"| {np.median([run['suggest_seconds'] for run in found]):.0f} |"
        )
        if METHODS[name].colour is None:
            continue
        evaluations = np.arange(INITIAL, curves.shape[1] + 1)
        mean, error = mean[INITIAL - 1 :], error[INITIAL - 1 :]
        style = "--" if name.startswith("full") else "-"
        axes.plot(
            evaluations, mean, style, color=METHODS[name].colour, label=f"{METHODS[name].label} ({len(found)} seeds)"
        )
        axes.fill_between(evaluations, mean - error, mean + error, color=METHODS[name].colour, alpha=0.15, linewidth=0)
    axes.axhline(descending[0], color="#999999", linewidth=0.8, linestyle=":")
    axes.annotate(f"best of ZINC: {descending[0]:.2f}", (INITIAL, descending[0]), va="bottom", color="#666666")
    axes.set(xlabel="molecules evaluated", ylabel="best penalised logP so far", xlim=(INITIAL, INITIAL + BUDGET))
    axes.grid(alpha=0.2)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    picture = document.parent / "img" / "zinc.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    figure.savefig(picture, dpi=150)
    print("\n".join(lines))
    replace_section(document, "zinc", "\n".join(lines))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
