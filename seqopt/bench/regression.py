"""Regression on public data sets: does a surrogate predict molecules that it has not seen?

Protocol of FlowMO and GAUCHE: random splits, 90 % for training and 10 % for testing (Photoswitch 80:20 as well),
parameters learned on the training molecules (on at most 1,000 of them). Given are root mean squared error (RMSE),
coefficient of determination (R2), negative log predictive density (NLPD, in nats, of measurements with their noise),
the share of measurements within the central 90 % of their predictions, and time.

References:
    Moss, H. B., Griffiths, R.-R. (2020). Gaussian process molecule property prediction with FlowMO. arXiv:2010.01118.
    Griffiths, R.-R. et al. (2023). GAUCHE: a library for Gaussian processes in chemistry. NeurIPS 36.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs

if TYPE_CHECKING:
    from seqopt.models import Surrogate

SPLITS = 20
SMALL = ("photoswitch", "photoswitch-80", "freesolv", "esol")
LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Central intervals whose coverage is recorded."""

_QUANTILES = (0.6744897501960817, 1.2815515655446004, 1.6448536269514722, 1.959963984540054)
"""Half widths of these intervals in standard deviations of a normal distribution."""


@dataclass(frozen=True)
class Task:
    """One column of the table.

    Attributes:
        label: Its name there.
        dataset: Name of the data set.
        train: Share of the molecules to learn from.
        unit: Of RMSE.
    """

    label: str
    dataset: str
    train: float
    unit: str


TASKS: Mapping[str, Task] = {
    "photoswitch": Task("Photoswitch", "photoswitch", 0.9, "nm"),
    "photoswitch-80": Task("Photoswitch 80:20", "photoswitch", 0.8, "nm"),
    "freesolv": Task("FreeSolv", "freesolv", 0.9, "kcal/mol"),
    "esol": Task("ESOL", "esol", 0.9, "log10(mol/l)"),
    "lipophilicity": Task("Lipophilicity", "lipophilicity", 0.9, "logD"),
}


@dataclass(frozen=True)
class Model:
    """One row of the table.

    Attributes:
        label: Its name there.
        build: Makes the surrogate.
        tasks: What it is tried on.
    """

    label: str
    build: Callable[[], Surrogate]
    tasks: tuple[str, ...] = tuple(TASKS)


def _named(name: str) -> Callable[[], Any]:
    def build() -> Any:
        from seqopt.models import SURROGATES

        return SURROGATES[name].build()

    return build


def _latent() -> Any:
    from seqopt.bench.vae import AUTOENCODER_OF_MOLECULES, load_model
    from seqopt.models.registry import latent_gp

    return latent_gp(load_model(AUTOENCODER_OF_MOLECULES))


def _ssk(tokenizer: str = "smiles-split", order: int = 5, normalize: bool = True) -> Callable[[], Any]:
    def build() -> Any:
        from gpytorch.priors import NormalPrior

        from seqopt.kernels import SubsequenceKernel
        from seqopt.models import StringGP

        kernel = SubsequenceKernel(
            order,
            normalize=normalize,
            match_decay_prior=NormalPrior(0.5, 0.5),
            gap_decay_prior=NormalPrior(0.5, 0.5),
        )
        return StringGP(kernel, tokenizer=tokenizer)

    return build


MODELS: Mapping[str, Model] = {
    "ssk": Model("sub-sequence kernel (ssk)", _ssk()),
    "ssk-characters": Model("ssk, characters", _ssk("characters"), SMALL),
    "ssk-smiles": Model("ssk, bracket atoms whole", _ssk("smiles"), SMALL),
    "ssk-order-3": Model("ssk, order 3", _ssk(order=3), SMALL),
    "ssk-order-8": Model("ssk, order 8", _ssk(order=8), SMALL[:3]),
    "ssk-unnormalised": Model("ssk, not normalised", _ssk(normalize=False), SMALL[:3]),
    "ssk-bayes": Model("ssk-bayes", _named("ssk-bayes"), SMALL[:3]),
    "ngrams": Model("ngrams", _named("ngrams")),
    "tanimoto": Model("tanimoto", _named("tanimoto")),
    "minmax": Model("minmax", _named("minmax")),
    "counts": Model("counts", _named("counts")),
    "ngrams+counts": Model("ngrams+counts", _named("ngrams+counts")),
    "ngrams+minmax": Model("ngrams+minmax", _named("ngrams+minmax")),
    "fragprints": Model("fragprints", _named("fragprints")),
    # It cannot read the twelve longest molecules of Lipophilicity.
    "vae": Model("character VAE, learnt from ZINC", _latent, SMALL),
    "ssk+tanimoto": Model("ssk+tanimoto", _named("ssk+tanimoto")),
    "ssk+minmax": Model("ssk+minmax", _named("ssk+minmax")),
    "ssk+fragprints": Model("ssk+fragprints", _named("ssk+fragprints")),
}
"""What is compared."""

REFERENCE = "ssk"
"""With which the others are compared split by split."""

PUBLISHED: Mapping[str, Mapping[str, str]] = {
    "FlowMO, sub-sequence kernel": {"photoswitch": "26.0 ± 3.6", "esol": "0.65 ± 0.04", "freesolv": "1.29 ± 0.22"},
    "FlowMO, Tanimoto": {"photoswitch": "22.6", "esol": "0.98", "freesolv": "1.85"},
    "GAUCHE, Tanimoto on fragprints": {"photoswitch-80": "20.86"},
}
"""RMSE as published, by task."""


@dataclass(frozen=True)
class Job:
    """One model on one split."""

    task: str
    model: str
    split: int


def work(job: Job) -> dict[str, Any]:
    """Fit to the training molecules of one split, predict the others, in one thread."""
    import torch

    from seqopt.spaces import CandidateSet

    torch.set_num_threads(1)
    task = TASKS[job.task]
    keys, values = molecules(task.dataset)
    # The split depends on the data set and its number only: all models see the same.
    order = np.random.default_rng(job.split).permutation(len(keys))
    cut = round(task.train * len(keys))
    train, test = order[:cut], order[cut:]
    surrogate: Any = MODELS[job.model].build()
    if hasattr(surrogate, "bind"):
        surrogate.bind(CandidateSet(keys, kind="molecule", keys=keys))
    started = time.perf_counter()
    surrogate.fit([keys[i] for i in train], values[train], rng=np.random.default_rng([job.split, 1]))
    fitted = time.perf_counter()
    mean, std = surrogate.predict([keys[i] for i in test])
    predicted = time.perf_counter()
    parameters = surrogate.hyperparameters
    noise = float(surrogate.untransform(0.0, parameters["noise_variance"])[1])
    spread = np.sqrt(std**2 + noise**2)
    error = values[test] - mean
    return {
        "job": asdict(job),
        "training": len(train),
        "test": len(test),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "r2": float(1 - np.mean(error**2) / values[test].var()),
        "nlpd": float(np.mean(0.5 * np.log(2 * np.pi * spread**2) + 0.5 * (error / spread) ** 2)),
        "coverage": {
            str(level): float(np.mean(np.abs(error) <= quantile * spread))
            for level, quantile in zip(LEVELS, _QUANTILES, strict=True)
        },
        "hyperparameters": {name: round(value, 5) for name, value in parameters.items()},
        "fit_seconds": round(fitted - started, 3),
        "predict_seconds": round(predicted - fitted, 3),
    }


def molecules(dataset: str) -> tuple[list[str], Any]:
    """Canonical SMILES and values of a data set, rows whose SMILES RDKit cannot read left out."""
    from seqopt.datasets import load
    from seqopt.strings.identity import identity_keys

    data = load(dataset)
    assert data.values is not None
    keys = identity_keys(data.strings, "molecule")
    readable = [row for row, key in enumerate(keys) if key is not None]
    return [key for key in keys if key is not None], data.values[readable]


def main(argv: Sequence[str] | None = None) -> None:
    """Do what is missing, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench regression", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="default: all")
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"random splits (default {SPLITS})")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results/regression"),
        help="folder of the raw results, a file for each model",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the table")
    options = parser.parse_args(list(argv or []))
    if options.splits < 1:
        parser.error("--splits takes a number from 1")
    if not options.report_only:
        record = header(list(argv or []), "regression")
        jobs = [
            Job(task, model, split)
            for task in options.tasks
            for model in options.models
            if task in MODELS[model].tasks
            for split in range(options.splits)
        ]
        run_jobs(
            jobs,
            lambda job: options.results / f"{job.model}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
            every=10,
        )
    text = tables(read_runs(options.results))
    print(text)
    replace_section(options.document, "regression", text)


Runs = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
"""By task and model."""


def read_runs(results: Path) -> Runs:
    """All stored runs, in the order of the tables and the splits."""
    stored = {model: read_records(results / f"{model}{ENDING}", ["job"]) for model in MODELS}
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for task in TASKS:
        for model, of_all_tasks in stored.items():
            runs = [run for run in of_all_tasks if run["job"]["task"] == task]
            if runs:
                found.setdefault(task, {})[model] = sorted(runs, key=lambda run: int(run["job"]["split"]))
    return found


def tables(runs: Runs) -> str:
    """RMSE of all models and the published ones; then all measures, a table for each task."""
    tasks = [task for task in TASKS if task in runs]
    lines = [
        "| RMSE | " + " | ".join(f"{TASKS[task].label} ({TASKS[task].unit})" for task in tasks) + " |",
        "|---|" + "---|" * len(tasks),
    ]
    best = {
        task: min((np.mean([run["rmse"] for run in several]), model) for model, several in runs[task].items())[1]
        for task in tasks
    }
    for model in MODELS:
        if any(model in runs[task] for task in tasks):
            cells = [_cell(runs[task].get(model, ()), "rmse", bold=best[task] == model) for task in tasks]
            lines.append(f"| {MODELS[model].label} | {' | '.join(cells)} |")
    for label, published in PUBLISHED.items():
        lines.append(f"| *{label}* | {' | '.join(published.get(task, '') for task in tasks)} |")
    counts = sorted({len(several) for task in tasks for several in runs[task].values()})
    lines.append(
        f"\nMean ± one standard error of {' to '.join(map(str, sorted({counts[0], counts[-1]})))} random splits; the "
        f"smallest mean of a column is bold. Published rows in italics. Below, each RMSE is compared with that of "
        f"{REFERENCE} split by split: mean ± one standard error of the differences, in the unit of the task."
    )
    for task in tasks:
        lines += [
            f"\n{TASKS[task].label}, {round(100 * TASKS[task].train)} % for training:\n",
            f"| model | splits | RMSE | less that of {REFERENCE}, paired | R2 | NLPD | within 90 % | s fitting | "
            "s predicting |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for model, several in runs[task].items():
            covered = 100 * np.mean([run["coverage"]["0.9"] for run in several])
            times = [np.median([run[name] for run in several]) for name in ("fit_seconds", "predict_seconds")]
            paired = "" if model == REFERENCE else _difference(several, runs[task].get(REFERENCE, ()))
            cells = [_cell(several, "rmse"), paired, _cell(several, "r2"), _cell(several, "nlpd")]
            lines.append(
                f"| {MODELS[model].label} | {len(several)} | {' | '.join(cells)} | {covered:.0f} % | {times[0]:.1f} | "
                f"{times[1]:.1f} |"
            )
    return "\n".join(lines)


def _difference(runs: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]]) -> str:
    """Mean and standard error of differences in RMSE, each on one split."""
    others = {run["job"]["split"]: run["rmse"] for run in reference}
    pairs = [run["rmse"] - others[run["job"]["split"]] for run in runs if run["job"]["split"] in others]
    if len(pairs) < 2:
        return ""
    digits = 2 if np.mean(list(others.values())) >= 10 else 3
    return f"{np.mean(pairs):.{digits}f} ± {np.std(pairs, ddof=1) / np.sqrt(len(pairs)):.{digits}f}"


def _cell(runs: Sequence[Mapping[str, Any]], name: str, bold: bool = False) -> str:
    if not runs:
        return ""
    values = np.array([run[name] for run in runs])
    digits = 1 if abs(values.mean()) >= 10 else 3
    text = f"{values.mean():.{digits}f}"
    if len(values) > 1:
        text += f" ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"
    return f"**{text}**" if bold else text
