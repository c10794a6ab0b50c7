"""How strings are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from seqopt.bench.boss.tasks import Part

RANDOM_STRINGS = 10_000
"""Strings that the inner random search of the paper looks at in each step."""


@dataclass(frozen=True)
class Method:
    """A way to choose the next string.

    Attributes:
        label: Name in tables and plots.
        colour: In plots.
        arguments: Builds the further arguments of `seqopt.optimizer.Optimizer`.
        parts: Of the benchmark that it is for.
        studied: Whether it is there to study the defaults, and runs only when it is named.
    """

    label: str
    colour: str
    arguments: Callable[[], dict[str, Any]]
    parts: tuple[Part, ...] = get_args(Part)
    studied: bool = False


def _random_inner_search() -> dict[str, Any]:
    from seqopt.search import RandomSearch

    return {"search": RandomSearch(RANDOM_STRINGS)}


def _latent(model: str) -> dict[str, Any]:
    from seqopt.bench.vae import load_model
    from seqopt.models.registry import latent_gp
    from seqopt.search import LatentSearch

    vae = load_model(f"expressions-20-{model}")
    return {"surrogate": latent_gp(vae), "search": LatentSearch(vae), "acquisition": "logei"}


def _point_estimates() -> dict[str, Any]:
    from seqopt.models import StringGP

    return {"surrogate": StringGP()}


def _unseeded() -> dict[str, Any]:
    from seqopt.search import GeneticSearch

    return {"search": GeneticSearch(seeded=False)}


METHODS: Mapping[str, Method] = {
    "ssk-ga": Method("SSK-ga", "#0072B2", dict),
    "ssk-rs": Method("SSK-rs", "#E69F00", _random_inner_search),
    "ngram-ga": Method("n-gram-ga", "#009E73", lambda: {"surrogate": "ngrams"}),
    "one-hot-ga": Method("one-hot-ga", "#CC79A7", lambda: {"surrogate": "one-hot"}, ("synthetic", "genes")),
    "codons-ga": Method("codon-frequencies-ga", "#56B4E9", lambda: {"surrogate": "codons"}, ("genes",)),
    "cvae": Method("character VAE", "#56B4E9", lambda: _latent("character"), ("regression",)),
    "gvae": Method("grammar VAE", "#D55E00", lambda: _latent("grammar"), ("regression",)),
    "random": Method("random", "#999999", lambda: {"acquisition": "random"}),
    "ssk-ga-map": Method("SSK-ga, point estimates", "#88CCEE", _point_estimates, studied=True),
    "ssk-ga-logei": Method("SSK-ga, log EI", "#117733", lambda: {"acquisition": "logei"}, studied=True),
    "ssk-ga-gibbon": Method("SSK-ga, GIBBON", "#882255", lambda: {"acquisition": "gibbon"}, studied=True),
    "ssk-ga-unseeded": Method("SSK-ga, from random strings only", "#D55E00", _unseeded, studied=True),
}
"""All methods by name; ``ssk-ga`` is the optimiser as it is when nothing is chosen."""

DEFAULT_METHODS = tuple(name for name, method in METHODS.items() if not method.studied)
"""The methods that run unless others are named."""
