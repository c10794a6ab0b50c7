"""How strings are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from seqopt.bench.boss.tasks import PARTITIONS, TASKS, Part

if TYPE_CHECKING:
    from seqopt.spaces import Space
    from seqopt.vae import StringVAE

RANDOM_STRINGS = 10_000
"""Strings that the inner random search of the paper looks at in each step."""

Autoencoder = Literal["character", "grammar"]
"""What the autoencoders of the paper read."""


@dataclass(frozen=True)
class Setting:
    """What a method may depend on.

    Attributes:
        task: Name of the task.
        part: Of the benchmark.
        space: Where it searches.
        left_out: Indices of candidates that the space does not hold; see `seqopt.bench.boss.molecules.readable`.
    """

    task: str
    part: Part
    space: Space
    left_out: Sequence[int] = ()


@dataclass(frozen=True)
class Method:
    """A way to choose the next string.

    Attributes:
        label: Name in tables and plots.
        colour: In plots.
        arguments: Builds the further arguments of `seqopt.optimizer.Optimizer`.
        parts: Of the benchmark that it is for.
        studied: Whether it is there to study the defaults, and runs only when it is named.
        encoded: The autoencoder that initial strings pass through before they are evaluated.
    """

    label: str
    colour: str
    arguments: Callable[[Setting], dict[str, Any]]
    parts: tuple[Part, ...] = get_args(Part)
    studied: bool = False
    encoded: Autoencoder | None = None


def _default(setting: Setting) -> dict[str, Any]:
    return {}


def _with(**arguments: Any) -> Callable[[Setting], dict[str, Any]]:
    return lambda setting: dict(arguments)


def _subsequences(**arguments: Any) -> Callable[[Setting], dict[str, Any]]:
    """The sub-sequence kernel alone, averaged over its parameters."""
    return _with(surrogate="ssk-bayes", **arguments)


def _random_inner_search(setting: Setting) -> dict[str, Any]:
    from seqopt.search import RandomSearch

    return {"surrogate": "ssk-bayes", "search": RandomSearch(RANDOM_STRINGS)}


def _fresh_candidates(setting: Setting) -> dict[str, Any]:
    from seqopt.bench.boss.molecules import FreshCandidates

    return {"search": FreshCandidates()}


def autoencoder(part: Part, model: Autoencoder) -> StringVAE:
    """The trained model of a part of the benchmark.

    Raises:
        InputError: If it has not been trained on this machine; see `seqopt.bench.vae`.
    """
    from seqopt.bench.vae import AUTOENCODER_OF_MOLECULES, GRAMMAR_AUTOENCODER_OF_MOLECULES, load_model

    if part != "molecules":
        return load_model(f"expressions-20-{model}")
    return load_model(AUTOENCODER_OF_MOLECULES if model == "character" else GRAMMAR_AUTOENCODER_OF_MOLECULES)


def _latent(model: Autoencoder) -> Callable[[Setting], dict[str, Any]]:
    def build(setting: Setting) -> dict[str, Any]:
        from seqopt.models.registry import latent_gp
        from seqopt.search import LatentSearch

        vae = autoencoder(setting.part, model)
        return {"surrogate": latent_gp(vae), "search": LatentSearch(vae), "acquisition": "logei"}

    return build


def _published_latent(model: Autoencoder) -> Callable[[Setting], dict[str, Any]]:
    """As in the paper: maximum likelihood, in the box of the encodings, or of fresh candidates."""

    def build(setting: Setting) -> dict[str, Any]:
        from seqopt.acquisition import LogExpectedImprovement
        from seqopt.bench.boss.molecules import FreshCandidates
        from seqopt.models.registry import latent_gp
        from seqopt.search import LatentSearch
        from seqopt.strategies import maximum_likelihood_gp

        vae = autoencoder(setting.part, model)
        smooth = latent_gp(vae)
        pool = setting.part == "molecules"
        return {
            "surrogate": maximum_likelihood_gp(smooth.kernel, encoder=smooth.encoder),
            "acquisition": LogExpectedImprovement("value" if pool else "mean"),
            "search": FreshCandidates(left_out=setting.left_out) if pool else LatentSearch(vae),
        }

    return build


def _random_latent(model: Autoencoder) -> Callable[[Setting], dict[str, Any]]:
    def build(setting: Setting) -> dict[str, Any]:
        from seqopt.strategies import RandomLatentStrategy

        return {"strategy": RandomLatentStrategy(autoencoder(setting.part, model))}

    return build


def _point_estimates(setting: Setting) -> dict[str, Any]:
    from seqopt.models import StringGP

    return {"surrogate": StringGP()}


def _unseeded(setting: Setting) -> dict[str, Any]:
    from seqopt.search import GeneticSearch

    return {"surrogate": "ssk-bayes", "search": GeneticSearch(seeded=False)}


EXACT = 1e-6
"""Variance of the noise, in units of the values' variance, in the authors' code where the objective has none."""


def _published(
    representation: Literal["codons", "bases"] = "codons",
    *,
    parts: bool = False,
    kernel: str = "",
    search: str = "",
    exact: bool = False,
) -> Callable[[Setting], dict[str, Any]]:
    """BOSS as published, or with one of its other kernels or its other inner search.

    Args:
        representation: What models of genes see.
        parts: Whether strings are compared part by part: m parts of codons, 3 m of bases.
        kernel: ``"ngrams"`` or ``"one-hot"`` in place of the sub-sequence kernel.
        search: ``"random"`` for the best of `RANDOM_STRINGS`; ``"patient"`` for a genetic algorithm that ends after
            ten evolutions without improvement.
        exact: Whether noise is learned only where the objective has noise, as in the authors' code.
    """

    def build(setting: Setting) -> dict[str, Any]:
        from seqopt.bench.boss.molecules import FreshCandidates
        from seqopt.kernels import NgramKernel, OneHotKernel
        from seqopt.search import GeneticSearch, RandomSearch
        from seqopt.strategies import published_boss

        partitions = PARTITIONS.get(setting.task, 1) if parts else 1
        strategy = published_boss(
            setting.space,
            kernel={"ngrams": NgramKernel, "one-hot": OneHotKernel}[kernel]() if kernel else None,
            partitions=3 * partitions if parts and representation == "bases" else partitions,
            tokenizer="characters" if representation == "bases" else None,
            noise=EXACT if exact and not TASKS[setting.task].noisy else None,
        )
        arguments = strategy.config_arguments()
        if setting.part == "molecules":
            arguments["search"] = FreshCandidates()
        elif search == "random":
            arguments["search"] = RandomSearch(RANDOM_STRINGS)
        elif search == "patient":
            arguments["search"] = GeneticSearch(
                patience=10, sample=100, seeded=False, restarts=0, elitist=False, novel=False
            )
        return arguments

    return build


_STRINGS: tuple[Part, ...] = ("synthetic", "genes", "regression")
_FIXED: tuple[Part, ...] = ("synthetic", "genes")
_LATENT: tuple[Part, ...] = ("regression",)

_METHODS = {
    "default": Method("default", "#0072B2", _default, _STRINGS),
    "ssk-ga": Method("SSK-ga", "#332288", _subsequences(), _STRINGS),
    "ssk-rs": Method("SSK-rs", "#E69F00", _random_inner_search, _STRINGS),
    "ngram-ga": Method("n-gram-ga", "#009E73", _with(surrogate="ngrams"), _STRINGS),
    "one-hot-ga": Method("one-hot-ga", "#CC79A7", _with(surrogate="one-hot"), _FIXED),
    "codons-ga": Method("codon-frequencies-ga", "#56B4E9", _with(surrogate="codons"), ("genes",)),
    "fresh": Method("default, fresh candidates", "#0072B2", _fresh_candidates, ("molecules",)),
    "boss": Method("BOSS as published", "#000000", _published()),
    "boss-parts": Method("BOSS, codons in m parts", "#882255", _published(parts=True), ("genes",)),
    "boss-bases": Method("BOSS, bases", "#117733", _published("bases"), ("genes",)),
    "boss-bases-parts": Method("BOSS, bases in 3m parts", "#DDCC77", _published("bases", parts=True), ("genes",)),
    "cvae": Method("character VAE", "#56B4E9", _latent("character"), _LATENT),
    "gvae": Method("grammar VAE", "#D55E00", _latent("grammar"), _LATENT),
    "boss-cvae": Method(
        "character VAE as published",
        "#88CCEE",
        _published_latent("character"),
        (*_LATENT, "molecules"),
        False,
        "character",
    ),
    "boss-gvae": Method(
        "grammar VAE as published", "#CC6677", _published_latent("grammar"), (*_LATENT, "molecules"), False, "grammar"
    ),
    "cvae-random": Method(
        "character VAE, random points", "#44AA99", _random_latent("character"), _LATENT, False, "character"
    ),
    "gvae-random": Method(
        "grammar VAE, random points", "#AA4499", _random_latent("grammar"), _LATENT, False, "grammar"
    ),
    "random": Method("random", "#999999", _with(acquisition="random")),
    "motif-ga": Method("motif-ga", "#661100", _with(surrogate="motifs"), ("synthetic",), studied=True),
    "helix-ga": Method("helix-ga", "#661100", _with(surrogate="helices"), ("genes",), studied=True),
    "ssk-ga-map": Method("SSK-ga, point estimates", "#88CCEE", _point_estimates, _STRINGS, studied=True),
    "ssk-ga-logei": Method("SSK-ga, log EI", "#117733", _subsequences(acquisition="logei"), _STRINGS, studied=True),
    "ssk-ga-scorebo": Method(
        "SSK-ga, SCoreBO", "#44AA99", _subsequences(acquisition="scorebo"), _STRINGS, studied=True
    ),
    "scorebo": Method("default, SCoreBO", "#DDCC77", _with(acquisition="scorebo"), _STRINGS, studied=True),
    "ssk-ga-gibbon": Method("SSK-ga, GIBBON", "#882255", _subsequences(acquisition="gibbon"), _STRINGS, studied=True),
    "ssk-ga-unseeded": Method("SSK-ga, from random strings only", "#D55E00", _unseeded, _STRINGS, studied=True),
    "boss-rs": Method("BOSS, best of 10,000 random", "#E69F00", _published(search="random"), _STRINGS, studied=True),
    "boss-patient": Method(
        "BOSS, ten evolutions without improvement", "#AA4499", _published(search="patient"), _STRINGS, studied=True
    ),
    "boss-code": Method(
        "BOSS, noise and evolutions as in the authors' code",
        "#999933",
        _published(search="patient", exact=True),
        _STRINGS,
        studied=True,
    ),
    "boss-ngram": Method("n-grams as published", "#009E73", _published(kernel="ngrams"), _STRINGS, studied=True),
    "boss-one-hot": Method("one-hot as published", "#CC79A7", _published(kernel="one-hot"), _FIXED, studied=True),
}

LEARNED = "-auto"
"""What the names of methods end with that see values through a learned transform, and without it do not."""


def untransformed(name: str) -> str:
    """The method that differs in the transform only, or the same one.

    Example:
        >>> untransformed("boss-auto"), untransformed("boss")
        ('boss', 'boss')
    """
    return name.removesuffix(LEARNED)


PUBLISHED = ("boss", "boss-code", "boss-parts", "boss-bases", "boss-bases-parts", "boss-cvae", "boss-gvae")
"""Methods of the paper, which models values as they are."""

EARLIER = ("ssk-ga", "ssk-rs", "ngram-ga", "one-hot-ga", "codons-ga", "cvae", "gvae")
"""Methods that were run before searches learned a transform of their values."""


def _on_values(method: Method, transform: str, label: str = "") -> Method:
    def build(setting: Setting) -> dict[str, Any]:
        return {**method.arguments(setting), "transform": transform}

    return replace(
        method, label=f"{method.label}{label}", arguments=build, studied=method.studied or transform != "none"
    )


METHODS: Mapping[str, Method] = {
    **_METHODS,
    **{name: _on_values(_METHODS[name], "none") for name in (*PUBLISHED, *EARLIER)},
    **{
        f"{name}{LEARNED}": _on_values(_METHODS[name], "auto", ", transform learned") for name in (*PUBLISHED, *EARLIER)
    },
}
"""All methods by name; ``default`` is the optimiser as it is when nothing is chosen."""

REFERENCE = "default"
"""What tables compare all others with."""

OURS = (REFERENCE, "ssk-ga")
"""Methods that are held against the published scores and the aims."""

DEFAULT_METHODS = tuple(name for name, method in METHODS.items() if not method.studied)
"""The methods that run unless others are named."""
