"""What parameters of models are called where people read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby

PARAMETERS = {
    "match_decay": ("match decay", "per shared symbol: the smaller, the less long shared sub-sequences count"),
    "gap_decay": ("gap decay", "per skipped symbol: near 0 only unbroken matches count, at 1 gaps cost nothing"),
    "lengthscale": ("length scale", "distance over which values stay alike"),
    "similarity": ("similarity", "how far symbols that a matrix takes for alike are alike here"),
    "outputscale": ("output scale", "prior variance"),
    "noise": ("noise variance", "what the model puts down to noise"),
    "noise_variance": ("noise variance", "what the model puts down to noise"),
    "mean": ("mean", "prior mean"),
}

KERNELS = {
    "SubsequenceKernel": "sub-sequences",
    "NgramKernel": "n-grams",
    "OneHotKernel": "positions, each by itself",
    "HammingKernel": "substitutions",
    "SubstitutionKernel": "substitutions, by a matrix",
    "SitesKernel": "sites, each by its weight",
    "MotifKernel": "one motif",
    "LetterSubsequenceKernel": "sub-sequences of letters",
    "LetterNgramKernel": "n-grams of letters",
    "LetterOneHotKernel": "letters at positions, each by itself",
    "LetterHammingKernel": "substitutions of letters",
    "HelixKernel": "helices of bases",
}
"""What kernels of a mixture compare, by their types."""


MOTIF = "motif "
"""What the name of a parameter begins with that is the share of a motif; the motif follows."""

_OF_KERNEL = re.compile(r"kernels\[(\d+)\]\.(.+)")


def described_parameter(name: str, kernels: object = None) -> tuple[str, str]:
    """What a parameter is called, and what it means; one of several kernels is called by what its kernel compares.

    Args:
        name: As `seqopt.models.FullyBayesianGP.hyperparameters` has it.
        kernels: The types of the kernels, if there are several and they are known.

    Example:
        >>> described_parameter("kernels[1].weight", ["SubsequenceKernel", "NgramKernel"])
        ('n-grams: weight', 'share of its draws')
    """
    found = _OF_KERNEL.fullmatch(name)
    if found is None and name.startswith(MOTIF):
        return name, "share of the draws that have this motif, in which ? is any symbol"
    if found is None:
        return PARAMETERS.get(name, (name.replace("_", " "), ""))
    number, own = int(found[1]), found[2]
    title, meaning = ("weight", "share of its draws") if own == "weight" else described_parameter(own)
    kind = str(kernels[number]) if isinstance(kernels, list) and number < len(kernels) else ""
    return f"{KERNELS.get(kind, kind) or f'kernel {number + 1}'}: {title}", meaning


def parameters_in_words(parameters: Mapping[str, object], kernels: object = None) -> list[str]:
    """Parameters that are numbers in lines to read, those of one kernel in a line of its own, under its name.

    Args:
        parameters: By their names.
        kernels: As `described_parameter` takes them.

    Example:
        >>> parameters_in_words({"kernels[0].gap_decay": 0.25, "kernels[0].weight": 0.5, "noise_variance": 0.1})
        ['noise variance 0.1', 'kernel 1: weight 0.5, gap decay 0.25']
    """
    lines = []
    numbers = ((name, value) for name, value in parameters.items() if isinstance(value, int | float))
    for number, group in groupby(sorted(numbers, key=_place), lambda one: _place(one)[0]):
        named = [(described_parameter(name, kernels)[0].rpartition(": "), value) for name, value in group]
        line = ", ".join(f"{title} {value:.4g}" for (_, _, title), value in named)
        lines.append(line if number < 0 else f"{named[0][0][0]}: {line}")
    return lines


def _place(parameter: tuple[str, object]) -> tuple[int, bool]:
    """Kernels in their order, the weight of each first, after what is not of one kernel."""
    found = _OF_KERNEL.fullmatch(parameter[0])
    return (-1, True) if found is None else (int(found[1]), found[2] != "weight")
