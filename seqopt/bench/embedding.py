"""Maps of kernels: is the score smooth in them, and does it matter how the kernel is tuned?

The BOSS paper shows kernel principal components of SMILES strings, coloured by their score, for its sub-sequence kernel
(tuned to 10 molecules), for the same kernel with parameters that are bad on purpose (very low match decay, high gap
decay), and for squared-exponential kernels in the latent spaces of autoencoders, and judges by eye. Here smoothness is
measured: the rank correlation of each score with the mean score of the 10 nearest points, in the map (2 components) and
in 10 components, on random samples of several sets.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, figures 4.6.4 and B.4.10.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.runner import header, replace_section
from seqopt.utils.files import write_atomically

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet

FloatArray = npt.NDArray[np.float64]

SEEDS = 5
SAMPLE = 2000
"""Strings of a map at most."""

COMPONENTS = 10
"""Components that are computed; the map is the first two."""

NEIGHBOURS = 10

DRAWN = 1000
"""Points that are kept of the maps of the picture, which are of the first seed."""

LOW_MATCH, HIGH_GAP = 0.01, 1.0
"""The decays that are bad on purpose: next to nothing but single symbols counts."""


@dataclass(frozen=True)
class Task:
    """Strings with a score.

    Attributes:
        label: In the tables.
        score: Name of the score, with its unit.
        load: All strings with their scores, or a sample that a generator draws.
        kind: Of the strings.
    """

    label: str
    score: str
    load: Callable[[np.random.Generator], tuple[list[str], FloatArray]]
    kind: str = "molecule"


def _zinc(rng: np.random.Generator) -> tuple[list[str], FloatArray]:
    from seqopt.datasets import read_pool

    keys = read_pool("zinc250k").keys
    indices = rng.permutation(len(keys))[:SAMPLE]
    return [keys[index] for index in indices], _zinc_scores()[indices]


@lru_cache(maxsize=1)
def _zinc_scores() -> FloatArray:
    from seqopt.objectives.zinc_scores import penalized_logp_of_zinc

    return penalized_logp_of_zinc()


def _public(name: str) -> Callable[[np.random.Generator], tuple[list[str], FloatArray]]:
    def load(rng: np.random.Generator) -> tuple[list[str], FloatArray]:
        from seqopt.bench.regression import molecules

        keys, values = molecules(name)
        # Of molecules that were measured several times the first one is shown.
        first = {key: index for index, key in reversed(list(enumerate(keys)))}
        indices = rng.permutation(np.sort(list(first.values())))[:SAMPLE]
        return [keys[index] for index in indices], np.asarray(values, dtype=np.float64)[indices]

    return load


def _formulas(rng: np.random.Generator) -> tuple[list[str], FloatArray]:
    from seqopt.objectives import published_regression
    from seqopt.spaces import GrammarSpace

    strings = GrammarSpace("arithmetic", 3, 20).sample(SAMPLE, rng)
    return strings, published_regression()(strings)


TASKS: Mapping[str, Task] = {
    "zinc": Task("ZINC", "penalised logP", _zinc),
    "esol": Task("ESOL", "log10 of the solubility (mol/l)", _public("esol")),
    "lipophilicity": Task("Lipophilicity", "logD", _public("lipophilicity")),
    "photoswitch": Task("Photoswitch", "wavelength (nm)", _public("photoswitch")),
    "formulas": Task("formulas", "log(1 + MSE) for 1/3 + x + sin(x x)", _formulas, "text"),
}
"""What is mapped."""


@dataclass(frozen=True)
class Method:
    """A kernel, and how its parameters come about.

    Attributes:
        label: In the tables.
        build: Makes the surrogate for strings of a kind; `None` where it has none for them.
        tuned_to: Scores that the parameters are learned from; 0 for given parameters.
        kinds: Kinds of strings that it is for.
    """

    label: str
    build: Callable[[str], Any]
    tuned_to: int = 0
    kinds: tuple[str, ...] = ("molecule", "text")


def _named(name: str) -> Callable[[str], Any]:
    return lambda kind: name


def _ssk(match_decay: float, gap_decay: float, **options: Any) -> Callable[[str], Any]:
    def build(kind: str) -> Any:
        from seqopt.kernels import SubsequenceKernel
        from seqopt.models import StringGP

        return StringGP(SubsequenceKernel(5, match_decay, gap_decay, **options))

    return build


def _latent(model: str) -> Callable[[str], Any]:
    def build(kind: str) -> Any:
        from seqopt.bench.vae import load_model, model_path
        from seqopt.models.registry import latent_gp

        name = f"molecules-{model}" if kind == "molecule" else f"expressions-20-{model}"
        return latent_gp(load_model(name)) if model_path(name).exists() else None

    return build


METHODS: Mapping[str, Method] = {
    "ssk-100": Method("ssk, tuned to 100", _named("ssk"), 100),
    "ssk-10": Method("ssk, tuned to 10", _named("ssk"), 10),
    "ssk-bayes-100": Method("ssk-bayes, tuned to 100", _named("ssk-bayes"), 100),
    "ssk-bad": Method("ssk, badly tuned: low match, high gap decay", _ssk(LOW_MATCH, HIGH_GAP)),
    "ssk-runs": Method(
        "ssk, untuned: runs of 5 symbols only",
        _ssk(0.8, 0.01, order_weights=[1e-6, 1e-6, 1e-6, 1e-6, 1e6]),
    ),
    "ngrams-100": Method("ngrams, tuned to 100", _named("ngrams"), 100),
    "minmax": Method("minmax (nothing to tune)", _named("minmax"), 0, ("molecule",)),
    "cvae-100": Method("character VAE, tuned to 100", _latent("character"), 100),
    "gvae-100": Method("grammar VAE, tuned to 100", _latent("grammar"), 100),
}
"""What is compared."""

PANELS = {
    "zinc": ("ssk-100", "ssk-bad", "ssk-runs", "minmax"),
    "photoswitch": ("ssk-100", "ssk-bad", "ssk-runs", "minmax"),
    "formulas": ("ssk-100", "ssk-bad", "cvae-100", "gvae-100"),
}
"""What the picture shows of each task."""


@dataclass(frozen=True)
class Job:
    """One map."""

    task: str
    method: str
    seed: int


def work(job: Job) -> dict[str, Any] | str:
    """Make one map, in one thread, and measure it; or why there is none."""
    import torch

    from seqopt.models.protocols import unsupported
    from seqopt.report.kernel_pca import kernel_pca, smoothness

    torch.set_num_threads(1)
    task, method = TASKS[job.task], METHODS[job.method]
    surrogate = method.build(task.kind)
    if surrogate is None:
        return "no model file, see seqopt bench vae"
    space, scores = sample_of(job.task, job.seed)
    if unread := unsupported(surrogate, space.strings):
        return f"{len(unread)} strings cannot be read"
    known = np.full(len(scores), np.nan)
    # The sample is in random order, the same for all methods of a seed.
    known[: method.tuned_to] = scores[: method.tuned_to]
    started = time.perf_counter()
    found = kernel_pca(
        space.strings,
        surrogate,
        values=known if method.tuned_to else None,
        components=COMPONENTS,
        space=space,
        seed=job.seed,
    )
    seconds = time.perf_counter() - started
    plane, deep = (
        smoothness(found.coordinates[:, :count], scores, neighbours=NEIGHBOURS, seed=job.seed)
        for count in (2, COMPONENTS)
    )
    drawn = job.seed == 0 and job.method in PANELS.get(job.task, ())
    kept = {"coordinates": _rounded(found.coordinates[:DRAWN, :2]), "scores": _rounded(scores[:DRAWN])}
    return {
        "job": asdict(job),
        "strings": len(scores),
        "smoothness": round(plane.correlation, 4),
        "shuffled": [round(plane.shuffled_mean, 4), round(plane.shuffled_std, 4)],
        "smoothness_10": round(deep.correlation, 4),
        "explained": [round(share, 4) for share in found.explained_variance_ratio.tolist()],
        "hyperparameters": {name: round(value, 4) for name, value in found.hyperparameters.items()},
        "seconds": round(seconds, 1),
    } | (kept if drawn else {})


@lru_cache(maxsize=1)
def sample_of(task: str, seed: int) -> tuple[CandidateSet, FloatArray]:
    """The strings of a map, in random order, and their scores."""
    from seqopt.spaces import CandidateSet

    strings, scores = TASKS[task].load(np.random.default_rng([seed, 4]))
    return CandidateSet(strings, kind=TASKS[task].kind, keys=strings), scores


def _rounded(values: FloatArray) -> Any:
    return np.vectorize(lambda value: float(f"{value:.4g}"))(values).tolist()


def main(argv: Sequence[str] | None = None) -> None:
    """Make the maps that are missing, then write table and picture; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench embedding", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"samples of each set (default {SEEDS})")
    parser.add_argument("--out", type=Path, default=Path("results/embedding.json"), help="the raw results, as JSON")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--report-only", action="store_true", help="make no map, only write table and picture")
    options = parser.parse_args(list(argv or []))
    runs = read_runs(options.out)
    if not options.report_only:
        record = header(list(argv or []), "embedding")
        done = {tuple(run["job"].values()) for run in runs}
        jobs = [
            Job(task, method, seed)
            for task in options.tasks
            for seed in range(options.seeds)
            for method in options.methods
            if TASKS[task].kind in METHODS[method].kinds
        ]
        for job in jobs:
            if (job.task, job.method, job.seed) in done:
                continue
            result = work(job)
            if isinstance(result, str):
                print(f"{job.task}, {METHODS[job.method].label}: {result}", flush=True)
                continue
            print(f"{job.task} {job.method} {job.seed}: {result['smoothness']:.3f}, {result['seconds']} s", flush=True)
            runs.append(result | {"record": record})
            write_runs(options.out, runs)
    text = tables(runs)
    print(text)
    plot(runs, options.document.parent / "img" / "embedding.png")
    replace_section(options.document, "embedding", text)


Runs = Sequence[Mapping[str, Any]]


def read_runs(path: Path) -> list[dict[str, Any]]:
    """What was done already."""
    if not path.exists():
        return []
    stored = json.loads(path.read_text(encoding="utf-8"))
    return [run | {"record": stored["records"][run["record"]]} for run in stored["runs"]]


def write_runs(path: Path, runs: Runs) -> None:
    """One line for each map; what they have in common (command, versions, machine) stands once."""
    records: list[Any] = []
    lines = []
    for run in runs:
        if run["record"] not in records:
            records.append(run["record"])
        lines.append(json.dumps({**run, "record": records.index(run["record"])}, allow_nan=False))
    path.parent.mkdir(parents=True, exist_ok=True)
    text = '{"records": ' + json.dumps(records) + ',\n"runs": [\n' + ",\n".join(lines) + "\n]}\n"
    write_atomically(path, text)


def _of(runs: Runs, task: str, method: str) -> list[Mapping[str, Any]]:
    chosen = [run for run in runs if (run["job"]["task"], run["job"]["method"]) == (task, method)]
    return sorted(chosen, key=lambda run: int(run["job"]["seed"]))


def tables(runs: Runs) -> str:
    """Smoothness of all maps, a column for each task, in two and in ten components; then the learned decays."""
    tasks = [task for task in TASKS if any(run["job"]["task"] == task for run in runs)]
    heads = " | ".join(TASKS[task].label for task in tasks)
    lines = []
    for field, what in (("smoothness", "2 components, the map"), ("smoothness_10", "10 components")):
        lines += [f"| smoothness in {what} | {heads} |", "|---|" + "---|" * len(tasks)]
        for method in METHODS:
            several = [_of(runs, task, method) for task in tasks]
            if any(several):
                cells = " | ".join(_mean_and_error([run[field] for run in mine]) for mine in several)
                lines.append(f"| {METHODS[method].label} | {cells} |")
        if field == "smoothness":
            lines.append(f"| *shuffled scores* | {' | '.join(_shuffled(runs, task) for task in tasks)} |")
        for worse in ("ssk-bad", "ssk-runs"):
            cells = " | ".join(_difference(runs, task, "ssk-100", worse, field) for task in tasks)
            lines.append(f"| *ssk, tuned to 100, less {_short(worse)}* | {cells} |")
        lines.append("")
    lines += [
        f"| learned match and gap decay | {heads} |",
        "|---|" + "---|" * len(tasks),
    ]
    for method in ("ssk-100", "ssk-10", "ssk-bayes-100"):
        cells = " | ".join(_decays(_of(runs, task, method)) for task in tasks)
        lines.append(f"| {METHODS[method].label} | {cells} |")
    lines += ["", f"| variance explained by the map | {heads} |", "|---|" + "---|" * len(tasks)]
    for method in METHODS:
        several = [_of(runs, task, method) for task in tasks]
        if any(several):
            cells = " | ".join(_share(mine) for mine in several)
            lines.append(f"| {METHODS[method].label} | {cells} |")
    sizes = ", ".join(f"{run['strings']:,} of {TASKS[task].label}" for task in tasks for run in _first(runs, task))
    samples = max(int(run["job"]["seed"]) for run in runs) + 1
    lines.append(
        f"\nRank correlation of a score with the mean of its {NEIGHBOURS} nearest points; mean ± one standard error of "
        f"{samples} random samples ({sizes}), shuffled scores: mean ± standard deviation of one sample. Differences "
        "are paired by sample. All of ESOL and Photoswitch are mapped each time, so that only the scores tuned to "
        "differ."
    )
    return "\n".join(lines)


def _first(runs: Runs, task: str) -> Iterable[Mapping[str, Any]]:
    return [run for run in runs if run["job"]["task"] == task][:1]


def _short(method: str) -> str:
    return METHODS[method].label.partition(": ")[2] or METHODS[method].label


def _mean_and_error(values: Sequence[float]) -> str:
    if not values:
        return ""
    text = f"{np.mean(values):.3f}"
    return text + (f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else "")


def _shuffled(runs: Runs, task: str) -> str:
    moments = np.array([run["shuffled"] for run in runs if run["job"]["task"] == task])
    return f"{moments[:, 0].mean():.3f} ± {moments[:, 1].mean():.3f}" if len(moments) else ""


def _difference(runs: Runs, task: str, better: str, worse: str, field: str) -> str:
    pairs = [{run["job"]["seed"]: run[field] for run in _of(runs, task, name)} for name in (better, worse)]
    return _mean_and_error([value - pairs[1][seed] for seed, value in pairs[0].items() if seed in pairs[1]])


def _decays(runs: Sequence[Mapping[str, Any]]) -> str:
    if not runs:
        return ""
    medians = [np.median([run["hyperparameters"][name] for run in runs]) for name in ("match_decay", "gap_decay")]
    return f"{medians[0]:.2f}, {medians[1]:.2f}"


def _share(runs: Sequence[Mapping[str, Any]]) -> str:
    return f"{100 * np.mean([sum(run['explained'][:2]) for run in runs]):.0f} %" if runs else ""


def plot(runs: Runs, picture: Path) -> None:
    """Maps of the first sample, coloured by rank of the score."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = {
        task: [run for method in methods for run in _of(runs, task, method)[:1] if "coordinates" in run]
        for task, methods in PANELS.items()
    }
    rows = {task: row for task, row in rows.items() if row}
    if not rows:
        return
    columns = max(map(len, rows.values()))
    figure = Figure(figsize=(2.9 * columns, 3.0 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for (task, row), panels in zip(rows.items(), grid, strict=True):
        panels[0].set_ylabel(f"{TASKS[task].label}, {TASKS[task].score}", fontsize=8)
        for axes in panels[len(row) :]:
            axes.set_axis_off()
        for run, axes in zip(row, panels, strict=False):
            _panel(axes, run)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)


def _panel(axes: Any, run: Mapping[str, Any]) -> None:
    from scipy.stats import rankdata

    points, scores = np.array(run["coordinates"]), np.array(run["scores"])
    axes.scatter(points[:, 0], points[:, 1], c=rankdata(scores), cmap="viridis", s=4, linewidths=0)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(METHODS[run["job"]["method"]].label.replace(": ", ":\n"), fontsize=8)
    axes.set_xlabel(f"smoothness {run['smoothness']:.2f}", fontsize=8)
