"""Tables and curves of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.bench.configurations.methods import METHODS
from seqopt.bench.configurations.runs import Runs
from seqopt.bench.configurations.tasks import INITIAL, TASKS
from seqopt.bench.records import Run

FloatArray = npt.NDArray[np.float64]

REFERENCE = "tpe"
"""What the others are compared with, seed by seed."""

FAMILIES = {"nasbench201": "Networks (NASBench-201), mean rank", "hpolib": "Learners (HPOLib), mean rank"}
"""What names of tables begin with, and what the ranks over these tables are headed with."""


def curves(runs: Sequence[Run]) -> FloatArray:
    """Regret after each evaluation, runs x evaluations."""
    return np.array([run["regret"] for run in runs], dtype=np.float64)


def small(values: FloatArray) -> str:
    """Mean and one standard error of numbers of any size; a single number has none.

    Example:
        >>> small(np.array([0.5, 0.7])), small(np.array([1e-5, 3e-5])), small(np.array([0.25])), small(np.zeros(3))
        ('0.60 ± 0.10', '2.0e-05 ± 1.0e-05', '0.25', '0')
    """
    mean = float(values.mean())
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    size = max(abs(mean), error or 0.0)
    if size == 0.0:
        return "0"
    form = ".2f" if size >= 0.1 else ".4f" if size >= 1e-3 else ".1e"
    return f"{mean:{form}}" + ("" if error is None else f" ± {error:{form}}")


def text_of(runs: Runs) -> str:
    """A table for each task, and how the methods rank over the networks and over the learners."""
    if not runs:
        return "Nothing has been measured yet."
    blocks = [*(_task(name, by_method) for name, by_method in runs.items())]
    blocks.append(
        "Regret: the mean of all replicates of the configuration that was measured best so far, less that of the best "
        "one of the table; mean ± one standard error over seeds. A search is told one replicate of each configuration, "
        f"and all methods of one seed begin with the same {INITIAL} random ones. Different: how many different "
        "configurations were evaluated, mean. s a run: processor seconds, median, of one thread of a busy machine."
    )
    for family, heading in FAMILIES.items():
        ranked = ranks({name: by_method for name, by_method in runs.items() if name.startswith(family)})
        if ranked:
            blocks.append(f"**{heading}**\n\n{ranked}")
    return "\n\n".join(blocks)


def _task(name: str, by_method: Mapping[str, Sequence[Run]]) -> str:
    task = TASKS[name]
    lines = [
        f"**{task.label}: {task.measured}, regret after so many evaluations**",
        "",
        f"| method | seeds | {' | '.join(map(str, task.checkpoints))} | at the end less {METHODS[REFERENCE].label}, "
        "paired | different | s a run |",
        "|---|---|" + "---|" * (len(task.checkpoints) + 3),
    ]
    for method, several in by_method.items():
        found = curves(several)
        cells = [small(found[:, point - 1]) for point in task.checkpoints]
        different = np.mean([len(set(run["strings"])) for run in several])
        spent = float(np.median([run["seconds"] for run in several]))
        lines.append(
            f"| {METHODS[method].label} | {len(several)} | {' | '.join(cells)} | {_paired(by_method, method)} | "
            f"{different:.0f} | {spent:.0f} |"
        )
    return "\n".join(lines)


def _paired(by_method: Mapping[str, Sequence[Run]], method: str) -> str:
    """Regret at the end less that of the reference, over the seeds that both have."""
    if method == REFERENCE or REFERENCE not in by_method:
        return ""
    ends = [
        {int(run["job"]["seed"]): float(run["regret"][-1]) for run in by_method[name]} for name in (method, REFERENCE)
    ]
    common = sorted(ends[0].keys() & ends[1].keys())
    return small(np.array([ends[0][seed] - ends[1][seed] for seed in common])) if common else ""


def ranks(runs: Runs) -> str:
    """Mean rank of each method at the end over all tables and seeds at which all of these methods were run.

    Methods that were not run everywhere, or with less than half as many seeds as others, are left out; equal regrets
    share their mean rank.
    """
    from scipy.stats import rankdata

    def few(name: str) -> bool:
        return any(2 * len(by_method.get(name, ())) < max(map(len, by_method.values())) for by_method in runs.values())

    methods = [name for name in METHODS if not few(name)]
    if len(methods) < 2:
        return ""
    found = []
    for by_method in runs.values():
        ends = [{int(run["job"]["seed"]): run["regret"][-1] for run in by_method[name]} for name in methods]
        for seed in sorted(set.intersection(*(set(one) for one in ends))):
            found.append(rankdata([one[seed] for one in ends]))
    if not found:
        return ""
    means = np.mean(found, axis=0)
    order = np.argsort(means, kind="stable")
    lines = [f"| at the end, of {len(methods)} methods | mean rank |", "|---|---|"]
    lines += [f"| {METHODS[methods[place]].label} | {means[place]:.1f} |" for place in order.tolist()]
    lines += ["", f"Over {len(found)} searches (table and seed) that all of these methods made; 1 is best."]
    return "\n".join(lines)


def means_at_start(by_method: Mapping[str, Sequence[Run]]) -> float:
    """The largest mean regret after the initial configurations."""
    return max(float(curves(several).mean(0)[INITIAL - 1]) for several in by_method.values())


def plot(runs: Runs, picture: Path) -> None:
    """Mean regret against evaluations, a panel for each table."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not runs:
        return
    columns = min(4, len(runs))
    rows = -(-len(runs) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.8 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(runs) :]:
        axes.set_axis_off()
    for axes, (name, by_method) in zip(panels, runs.items(), strict=False):
        means = np.concatenate([curves(several).mean(0) for several in by_method.values()])
        floor = 0.5 * float(means[means > 0].min(initial=np.inf))
        floor = floor if np.isfinite(floor) else 1.0
        for method, several in by_method.items():
            if METHODS[method].colour is not None:
                # Where all seeds have found the best there is no regret, nor its logarithm: half the least of others.
                mean = np.maximum(curves(several).mean(0), floor)
                axes.plot(
                    np.arange(1, len(mean) + 1), mean, color=METHODS[method].colour, label=METHODS[method].label, lw=1.2
                )
        axes.set(title=TASKS[name].label, yscale="log", xlabel="evaluations", xlim=(INITIAL, TASKS[name].budget))
        axes.set_ylim(bottom=0.8 * floor, top=max(1.2 * means_at_start(by_method), 2 * floor))
        axes.title.set_fontsize(9)
        axes.grid(alpha=0.2)
    panels[0].set_ylabel("mean regret")
    labels = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    figure.savefig(picture, dpi=150)
