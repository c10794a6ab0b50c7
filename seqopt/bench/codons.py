"""What a model of genes learns from codons, from bases, and from both.

The mixture of kernels is fitted to 100 random genes of a protein of 60 residues and predicts 300 others: on codons, on
bases, and as the default has it, on both. Some scores depend on codons, some on bases, one on both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.runner import SeedJob, replace_section, run_seeds

if TYPE_CHECKING:
    from seqopt.spaces import CodonSpace

TRAIN, TEST = 100, 300
PROTEIN = "thesis-60"

ON_BASES = ("Letter", "Helix")
"""What names of kernels begin with that look at bases."""

MODELS = {"codons": "codons", "bases": "bases", "both": "both (default)"}
SCORES = {
    "log-cai": "codon adaptation to E. coli (logarithm)",
    "weights": "sum of weights of codons",
    "pairs": "sum of weights of neighbouring codons",
    "positions": "sum of weights of codons at each residue",
    "gc": "distance of the GC content from 0.5",
    "mfe": "folding energy",
    "mfe-start": "folding energy of the first 45 bases",
    "mfe-and-cai": "folding energy - 5 log adaptation",
}

Values = npt.NDArray[np.float64]


def scores_of(genes: Sequence[str], rng: np.random.Generator) -> dict[str, Values]:
    """The values of genes of one length by each of `SCORES`; weights are drawn from a standard normal distribution.

    Args:
        genes: In DNA letters, of whole codons.
        rng: Draws the weights.
    """
    from seqopt.objectives.genes import CodonAdaptationIndex, MinimumFreeEnergy

    bases = np.array([["ACGT".index(base) for base in gene] for gene in genes])
    codons = bases.reshape(len(genes), -1, 3) @ np.array([16, 4, 1])
    single, pair = rng.normal(size=64), rng.normal(size=(64, 64))
    placed = rng.normal(size=(codons.shape[1], 64))
    energy, adaptation = MinimumFreeEnergy(), np.log(np.asarray(CodonAdaptationIndex("e_coli")(genes)))
    whole = np.asarray(energy(genes), dtype=np.float64)
    return {
        "log-cai": adaptation,
        "weights": single[codons].sum(axis=1),
        "pairs": pair[codons[:, :-1], codons[:, 1:]].sum(axis=1),
        "positions": placed[np.arange(codons.shape[1]), codons].sum(axis=1),
        "gc": abs(((bases == 1) | (bases == 2)).mean(axis=1) - 0.5),
        "mfe": whole,
        "mfe-start": np.asarray(energy([gene[:45] for gene in genes]), dtype=np.float64),
        "mfe-and-cai": whole - 5 * adaptation,
    }


def _models(space: CodonSpace) -> Mapping[str, Callable[[], Any]]:
    from seqopt.models import FullyBayesianGP
    from seqopt.models.registry import mixture
    from seqopt.models.sampling import GridSampler
    from seqopt.spaces import CodonSpace

    def codons() -> FullyBayesianGP:
        kernels = [kernel for kernel in mixture(space).kernels if not type(kernel).__name__.startswith(ON_BASES)]
        samplers = [GridSampler() for _ in kernels]
        return FullyBayesianGP(kernels, samplers, weights="stacking", null=0.5, encoder=space.encoder, mean_std=0.0)

    def bound(of: CodonSpace) -> FullyBayesianGP:
        gp = mixture(of)
        gp.bind(of)
        return gp

    return {
        "codons": codons,
        "bases": lambda: bound(CodonSpace(space.protein, representation="bases")),
        "both": lambda: bound(space),
    }


def work(job: SeedJob) -> dict[str, Any]:
    """Errors of every model on every score, with one draw of genes and weights."""
    import torch

    from seqopt.bench.boss.tasks import TASKS
    from seqopt.spaces import CodonSpace

    torch.set_num_threads(1)
    rng = np.random.default_rng(job.seed)
    space = TASKS[PROTEIN].space()
    assert isinstance(space, CodonSpace)
    models = _models(space)
    genes = list(dict.fromkeys(space.key(gene) for gene in space.sample(TRAIN + TEST, rng)))
    found: dict[str, Any] = {}
    for score, values in scores_of(genes, rng).items():
        known, unknown = values[:TRAIN], values[TRAIN:]
        spread = float(unknown.std())
        found[score] = {}
        for name, build in models.items():
            model = build()
            model.fit(genes[:TRAIN], known, rng=np.random.default_rng([job.seed, 1]))
            mean, _ = model.predict(genes[TRAIN:])
            found[score][name] = {
                "error": float(np.sqrt(np.mean((unknown - mean) ** 2))) / spread,
                "weights": {one.kernel: one.weight for one in model.diagnostics},
                "doubt": model.doubt,
            }
    return {"seed": job.seed, "scores": found}


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table."""
    runs, document = run_seeds(argv, "codons", str(__doc__).split("\n\n")[0], 20, work, lambda: None)
    text = table(runs)
    print(text)
    replace_section(document, "codons", text)


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Errors by score and model, and the weight of kernels on bases, in Markdown."""
    lines = [
        f"| score | {' | '.join(MODELS.values())} | both less codons, paired | weight of bases | of these, helices |",
        "|---|---|---|---|---|---|---|",
    ]
    for score, label in SCORES.items():
        errors = {name: np.array([run["scores"][score][name]["error"] for run in runs]) for name in MODELS}
        weights = [run["scores"][score]["both"]["weights"] for run in runs]
        shares = [
            np.mean([sum(weight for kernel, weight in own.items() if kernel.startswith(names)) for own in weights])
            for names in (ON_BASES, ON_BASES[1:])
        ]
        cells = [*map(_mean, errors.values()), _mean(errors["both"] - errors["codons"])]
        lines.append(f"| {label} | {' | '.join(cells)} | {' | '.join(f'{share:.2f}' for share in shares)} |")
    lines.append(
        f"\nRoot mean square error of {TEST} genes in standard deviations of their values, after {TRAIN}; mean and one "
        f"standard error over {len(runs)} draws of genes and weights. An error of 1 is that of the mean. Weight: that "
        "of the kernels on bases in the default, and of that of helices."
    )
    return "\n".join(lines)


def _mean(values: Values) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():.3f} ± {error:.3f}"
