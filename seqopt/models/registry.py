"""Surrogates by name, and the one that a space gets where none is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import (
    EncodedStrings,
    FeatureEncoder,
    Featurizer,
    JointEncoder,
    StringEncoder,
    TemplatePositions,
    VaryingPositions,
    varying_positions,
)
from seqopt.encoding.codons import CodonTokenizer
from seqopt.encoding.varying import LEAST_SHARE
from seqopt.errors import InputError
from seqopt.kernels import SitesKernel, SubsequenceKernel
from seqopt.models.fully_bayesian import FullyBayesianGP, FullyBayesianStringGP
from seqopt.models.protocols import PlannedSurrogate, Surrogate
from seqopt.models.reagent_gp import ReagentGP
from seqopt.models.string_gp import StringGP, default_kernel
from seqopt.spaces import CombinatorialSpace, PoolSpace, Space, StringSpace
from seqopt.strings.templates import Template

if TYPE_CHECKING:
    from seqopt.vae import StringVAE

PART_LENGTH = 60
"""Longest part of a string that the kernel of a default surrogate compares as a whole."""

LARGE_POOL = 200_000
"""Candidates of a pool, other than molecules, beyond which a default surrogate has one kernel at point estimates."""

SITES_POOL = 20_000
"""Candidates of a pool of proteins beyond which `sites` is the default where they differ at few positions: covariances
of the draws of a mixture with more of them do not fit into memory (`seqopt.models.gaussian.COLUMN_MEMORY`) after some
800 results."""

MOST_SITES = 20
"""Positions at which proteins of such a pool may differ, each of which has a lengthscale to learn."""

HELIX_BASES = 600
"""Bases of the longest genes whose helices are compared: for longer ones that would take longer than all other kernels
together."""

LATENT = "vae:"
"""What begins the name of a surrogate in the latent space of an autoencoder; the rest is its file."""

LEAST_LENGTHSCALE = 0.025
"""Lower bound of a length scale, in its prior's median."""

SHOWN = 40
"""Letters of a string that messages quote."""

TRIED = 20_000
"""Candidates of a pool whose features are looked at before anything is evaluated."""

LOOKED_AT = 20
"""Random strings of a space that show whether its strings differ in length."""


@dataclass(frozen=True)
class NamedSurrogate:
    """A surrogate that can be asked for by name.

    Attributes:
        summary: What it is, in a line.
        build: Makes one, unfitted.
        kinds: Kinds of strings it is for; empty for all.
        one_length: Whether all strings must have the same number of symbols.
        symbols: Whether it looks at the symbols of strings, so that the tokeniser matters.
    """

    summary: str
    build: Callable[[], Surrogate]
    kinds: tuple[str, ...] = ()
    one_length: bool = False
    symbols: bool = True


def _ngrams() -> Surrogate:
    from seqopt.kernels import NgramKernel

    return StringGP(NgramKernel())


def _motifs() -> Surrogate:
    from seqopt.kernels import MotifKernel

    return FullyBayesianGP(MotifKernel())


def _helices() -> Surrogate:
    from seqopt.kernels import HelixKernel
    from seqopt.models.sampling import GridSampler

    return FullyBayesianGP(HelixKernel(), GridSampler())


def _one_hot() -> Surrogate:
    from seqopt.kernels import OneHotKernel

    return StringGP(OneHotKernel())


def _hamming() -> Surrogate:
    from seqopt.kernels import HammingKernel

    return StringGP(HammingKernel())


def _blosum62() -> Surrogate:
    from seqopt.kernels import SubstitutionKernel

    kernel = SubstitutionKernel("blosum62")
    return StringGP(kernel, encoder=kernel.encoder())


def smooth_gp(featurizer: Featurizer, lengthscale: float = 1.0) -> StringGP:
    """A Gaussian process with a squared-exponential kernel on dense features.

    Args:
        featurizer: Computes the features; a `seqopt.vae.StringVAE` makes it a process in latent space.
        lengthscale: Median of its log-normal prior, in units of the features; the spread is a factor e.
    """
    from gpytorch.constraints import GreaterThan
    from gpytorch.kernels import RBFKernel
    from gpytorch.priors import LogNormalPrior

    kernel = RBFKernel(
        lengthscale_prior=LogNormalPrior(math.log(lengthscale), 1.0),
        # Where the fit may try a length scale of 0, the kernel is undefined.
        lengthscale_constraint=GreaterThan(LEAST_LENGTHSCALE * lengthscale, transform=None, initial_value=lengthscale),
    )
    return StringGP(kernel, encoder=FeatureEncoder(featurizer))


def _codons() -> Surrogate:
    from seqopt.encoding import CodonFeatures

    return smooth_gp(CodonFeatures())


def latent_gp(vae: StringVAE) -> StringGP:
    """A Gaussian process with a squared-exponential kernel in the latent space of an autoencoder.

    Two draws from its prior N(0, I) lie sqrt(2 d) apart in d dimensions; the prior of the length scale has the median
    sqrt(d).
    """
    return smooth_gp(vae, math.sqrt(vae.size))


def _latent_of(path: str, space: Space) -> StringGP:
    from seqopt.spaces import GrammarSpace
    from seqopt.vae import CharacterCodec, StringVAE

    vae = StringVAE.load(path)
    if isinstance(space, GrammarSpace) and vae.codec.model == "grammar":
        vae.expect(grammar=space.rules, where=path)
    # To parse a large pool takes long; to look up its symbols does not.
    most = None if isinstance(vae.codec, CharacterCodec) else TRIED
    for message in vae.unsupported(_some_keys(space, most)).values():
        raise InputError(f"{path} is {vae.codec.describe()}, and cannot read all strings of this space: {message}")
    return latent_gp(vae)


def _bits() -> Featurizer:
    from seqopt.encoding import MorganFingerprint

    return MorganFingerprint()


def _counts() -> Featurizer:
    from seqopt.encoding import MorganFingerprint

    return MorganFingerprint(counts=True)


def _fragments() -> Featurizer:
    from seqopt.encoding import Fragprints

    return Fragprints()


def _fingerprint(featurizer: Callable[[], Featurizer], counts: bool) -> Surrogate:
    from seqopt.kernels import MinMaxKernel, TanimotoKernel

    return StringGP(MinMaxKernel() if counts else TanimotoKernel(), encoder=FeatureEncoder(featurizer()))


def _sums() -> Surrogate:
    from seqopt.kernels import CountsKernel

    return StringGP(CountsKernel(), encoder=FeatureEncoder(_counts()))


def _ngrams_and_sums() -> Surrogate:
    from seqopt.kernels import CountsKernel, JointKernel, NgramKernel

    features = _counts()
    kernel = JointKernel(NgramKernel(), CountsKernel(), features.size)
    kernel.raw_weight.requires_grad_(False)
    return StringGP(kernel, encoder=JointEncoder(FeatureEncoder(features)))


def _joint(featurizer: Callable[[], Featurizer], counts: bool, ngrams: bool = False) -> Surrogate:
    from seqopt.kernels import JointKernel, MinMaxKernel, NgramKernel, TanimotoKernel

    features = featurizer()
    tokens = NgramKernel() if ngrams else default_kernel()
    kernel = JointKernel(tokens, MinMaxKernel() if counts else TanimotoKernel(), features.size)
    # In searches of docking scores the plain mean of n-grams and counts was ahead of one with a learned weight.
    kernel.raw_weight.requires_grad_(not ngrams)
    return StringGP(kernel, encoder=JointEncoder(FeatureEncoder(features)))


_MOLECULES = ("molecule",)

SITES = "sites"
"""The name of `sites`, whose kernel depends on the space."""

MIXTURE = "mixture"
"""The name of `mixture`, whose kernels depend on the space."""

SURROGATES: Mapping[str, NamedSurrogate] = {
    "ssk": NamedSurrogate("sub-sequence kernel, point estimates of its parameters", StringGP),
    "ssk-bayes": NamedSurrogate("sub-sequence kernel, averaged over its parameters", FullyBayesianStringGP),
    MIXTURE: NamedSurrogate(
        "sub-sequences, n-grams, motifs of free strings and, for strings of one length, positions, of codons and of "
        "their bases, and helices of these, weighed by what predicts",
        lambda: _mixed(1),
    ),
    "ngrams": NamedSurrogate("squared-exponential kernel on counts of contiguous 1- to 5-grams", _ngrams),
    "motifs": NamedSurrogate(
        "linear in the occurrences of one motif, up to four symbols at fixed distances, averaged over motifs", _motifs
    ),
    "one-hot": NamedSurrogate("linear kernel on one-hot symbols (strings of one length)", _one_hot, one_length=True),
    "hamming": NamedSurrogate(
        "exponential kernel on numbers of substitutions (strings of one length)", _hamming, one_length=True
    ),
    "blosum62": NamedSurrogate(
        "as hamming, substitutions weighted by BLOSUM62 (proteins of one length)",
        _blosum62,
        ("protein",),
        one_length=True,
    ),
    SITES: NamedSurrogate(
        "product over positions, each with a lengthscale of its own; amino acids are alike by BLOSUM62 as far as "
        "results say so (strings of one length)",
        lambda: StringGP(SitesKernel(1)),
        one_length=True,
    ),
    "helices": NamedSurrogate(
        "squared-exponential kernel on the helices that bases could form, averaged over its lengthscale (genes of one "
        "length)",
        _helices,
        ("dna", "rna"),
        one_length=True,
    ),
    "codons": NamedSurrogate(
        "squared-exponential kernel on frequencies of codons and bases", _codons, ("dna", "rna"), symbols=False
    ),
    "tanimoto": NamedSurrogate(
        "Tanimoto kernel on Morgan fingerprints", partial(_fingerprint, _bits, False), _MOLECULES, symbols=False
    ),
    "minmax": NamedSurrogate(
        "MinMax kernel on counts of Morgan environments",
        partial(_fingerprint, _counts, True),
        _MOLECULES,
        symbols=False,
    ),
    "fragprints": NamedSurrogate(
        "Tanimoto kernel on Morgan fingerprints and fragment counts",
        partial(_fingerprint, _fragments, False),
        _MOLECULES,
        symbols=False,
    ),
    "ngrams+minmax": NamedSurrogate("mean of ngrams and minmax", partial(_joint, _counts, True, True), _MOLECULES),
    "counts": NamedSurrogate("minmax, and a linear function of the counts", _sums, _MOLECULES, symbols=False),
    "ngrams+counts": NamedSurrogate("mean of ngrams and counts", _ngrams_and_sums, _MOLECULES),
    "ssk+tanimoto": NamedSurrogate("learned mean of ssk and tanimoto", partial(_joint, _bits, False), _MOLECULES),
    "ssk+minmax": NamedSurrogate("learned mean of ssk and minmax", partial(_joint, _counts, True), _MOLECULES),
    "ssk+fragprints": NamedSurrogate(
        "learned mean of ssk and fragprints", partial(_joint, _fragments, False), _MOLECULES
    ),
}
"""All surrogates with a name, besides ``"auto"``: see `default_surrogate`."""


def default_surrogate(space: Space, *, partitions: int | None = None) -> Surrogate:
    """The surrogate of a space where none is chosen.

    For a pool of molecules it is ``"ngrams+counts"``, the mean of the kernel of n-grams and of the `CountsKernel` on
    counts of Morgan environments: n-grams are sooner at good molecules, similar environments find more of them in the
    end, and a linear function of the counts says what more of something is worth; together they are ahead of each
    (``docs/results.md``). For any other space it is `mixture`, but for two kinds of
    large pools. Where more than `SITES_POOL` proteins have one length and differ at `MOST_SITES` positions at most, as
    all combinations of amino acids at some sites do, it is `sites`; for any other pool of more than `LARGE_POOL`
    strings ``"ssk"``, the sub-sequence kernel of order 5 at point estimates of its parameters, so
    that covariances with the whole pool can be kept from one step to the next.

    Where all strings have one length and differ at fewer than half of the positions, the others are left out of what
    kernels see (`variants_encoder`).

    Args:
        space: Where to search.
        partitions: Contiguous parts of the sub-sequence kernel, three times as many of that on the bases of codons.
            Default: as many as make parts of at most `PART_LENGTH` symbols, or bases, in a random string of the space,
            or in half of a pool; 1 for a pool of more than `LARGE_POOL`.

    Raises:
        InputError: If ``partitions`` is given for a pool of molecules.

    Example:
        >>> from seqopt.spaces import CodonSpace
        >>> default_surrogate(CodonSpace("MA" * 550)).kernels[0].partitions
        19
    """
    if isinstance(space, CombinatorialSpace):
        if partitions is not None:
            raise InputError("the default surrogate of reactions and building blocks has no partitions: leave them out")
        return ReagentGP()
    if isinstance(space, PoolSpace) and space.kind == "molecule":
        if partitions is not None:
            raise InputError('the default surrogate of molecules has no partitions: choose "ssk", which has them')
        return SURROGATES["ngrams+counts"].build()
    if partitions is None and _is_library(space):
        return sites(space)
    if isinstance(space, PoolSpace) and len(space) > LARGE_POOL:
        kernel = None if partitions is None else default_kernel(partitions=partitions)
        return StringGP(kernel, encoder=variants_encoder(space))
    return mixture(space, partitions=partitions)


def _is_library(space: Space) -> bool:
    """Whether a space is a large pool of proteins of one length that differ at few positions."""
    if not isinstance(space, PoolSpace) or space.kind != "protein" or len(space) <= SITES_POOL:
        return False
    lengths = space.encoded.lengths
    if lengths.min() < lengths.max() or not lengths[0]:
        return False
    if lengths[0] <= MOST_SITES:
        return True
    found = varying_positions(space.encoded)
    return found is not None and len(found) <= MOST_SITES


def sites(space: Space) -> StringGP:
    """A `seqopt.kernels.SitesKernel` on the positions at which the strings of a space differ, at point estimates.

    Amino acids are alike as far as BLOSUM62 and the data say so; symbols of other strings are not.

    Args:
        space: Where to search; its strings have one length.

    Raises:
        InputError: If lengths differ.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> sites(CandidateSet(["MAKVGS", "MCKVGS", "MDKLGS"], kind="protein")).kernel.sites
        2
    """
    lengths = _lengths(space)
    if lengths.min() < lengths.max():
        raise InputError(
            f"the surrogate sites compares strings of one length, position by position, but this space has strings of "
            f"{lengths.min()} and of {lengths.max()} symbols: choose another, such as ssk or ngrams"
        )
    encoder = variants_encoder(space)
    count = int(lengths.max()) if encoder is None else len(encoder.positions)
    return StringGP(SitesKernel(count, "blosum62" if space.kind == "protein" else None), encoder=encoder)


def mixture(space: Space, *, partitions: int | None = None) -> FullyBayesianGP:
    """Several kernels on the strings of a space, averaged over their parameters and weighed by what each predicts.

    The sub-sequence kernel and that of n-grams; for free strings (`seqopt.spaces.StringSpace`) that of one motif, for
    which few symbols at fixed distances decide; where all strings have one length, also the one-hot kernel, for which
    the score is a sum over positions, and the Hamming kernel, for which positions interact, and for proteins of one
    length also the substitution kernel, for which they interact and amino acids may be alike, and the sites kernel, for
    which some positions matter more than others, at the mode of its parameters. Genes whose symbols are
    codons are compared by their bases as well, with kernels of the same kinds: what depends on codons is predicted by
    the ones, and what depends on bases, such as GC content, by the others; and those of one length, up to `HELIX_BASES`
    bases, by the helices that these could form, which decide how a gene folds.

    The mean is 0, that of the values; of proteins of one length, which are mostly variants of each other, it is
    integrated out: all that were measured may lie below what they vary about.

    Weights are those of stacking (`seqopt.models.stacking`), and whether strings tell anything of each other is weighed
    as well: as far as they do not, strings are drawn at random (`FullyBayesianGP.doubt`).

    Args:
        space: Where to search.
        partitions: See `default_surrogate`.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> [type(kernel).__name__ for kernel in mixture(StringSpace("01", 20)).kernels]
        ['SubsequenceKernel', 'NgramKernel', 'OneHotKernel', 'HammingKernel', 'MotifKernel']
        >>> len(mixture(StringSpace("01", min_length=5, max_length=20)).kernels)
        3
        >>> from seqopt.spaces import CodonSpace
        >>> [type(kernel).__name__ for kernel in mixture(CodonSpace("MAKVL")).kernels[4:]]
        ['LetterSubsequenceKernel', 'LetterNgramKernel', 'LetterOneHotKernel', 'LetterHammingKernel', 'HelixKernel']
        >>> [type(one).__name__ for one in mixture(StringSpace("ACDEFGHIKLMNPQRSTVWY", 8, kind="protein")).kernels[4:]]
        ['SubstitutionKernel', 'SitesKernel', 'MotifKernel']
    """
    encoder = variants_encoder(space)
    lengths = _lengths(space)
    codons = encoder is None and isinstance(space.encoder.tokenizer, CodonTokenizer)
    return _mixed(
        _parts(space, encoder) if partitions is None else partitions,
        sites=_sites_of(lengths, encoder),
        protein=space.kind == "protein",
        encoder=encoder,
        base_partitions=(_parts(space, letters=3) if partitions is None else 3 * partitions) if codons else None,
        helices=codons and 3 * int(lengths.max(initial=0)) <= HELIX_BASES,
        motifs=encoder is None and isinstance(space, StringSpace),
    )


def _sites_of(lengths: npt.NDArray[np.int32], encoder: VaryingPositions | None) -> int:
    """Positions at which strings of one length are compared; 0 where lengths differ."""
    if not 0 < int(lengths.min(initial=1 << 30)) == int(lengths.max(initial=0)):
        return 0
    return int(lengths[0]) if encoder is None else len(encoder.positions)


def _mixed(
    partitions: int,
    sites: int = 0,
    protein: bool = False,
    encoder: StringEncoder | None = None,
    base_partitions: int | None = None,
    motifs: bool = False,
    helices: bool = False,
) -> FullyBayesianGP:
    from seqopt.kernels import (
        HammingKernel,
        HelixKernel,
        LetterHammingKernel,
        LetterNgramKernel,
        LetterOneHotKernel,
        LetterSubsequenceKernel,
        MotifKernel,
        NgramKernel,
        OneHotKernel,
        SubstitutionKernel,
    )
    from seqopt.models.sampling import GridSampler, ModeSampler, MotifSampler

    kernels: list[Any] = [SubsequenceKernel(partitions=partitions), NgramKernel()]
    if sites:
        kernels += [OneHotKernel(), HammingKernel()]
    by_site = sites > 0 and protein
    if by_site:
        kernels += [SubstitutionKernel(), SitesKernel(sites)]
    if base_partitions is not None:
        kernels += [LetterSubsequenceKernel(partitions=base_partitions), LetterNgramKernel()]
        kernels += [LetterOneHotKernel(), LetterHammingKernel()] if sites else []
    if helices and sites:
        kernels.append(HelixKernel())
    if motifs:
        kernels.append(MotifKernel())
    own: dict[type, Any] = {SitesKernel: ModeSampler, MotifKernel: MotifSampler}
    samplers = [own.get(type(kernel), GridSampler)() for kernel in kernels]
    return FullyBayesianGP(
        kernels, samplers, weights="stacking", null=0.5, encoder=encoder, mean_std=1.0 if by_site else 0.0
    )


def variants_encoder(space: Space) -> VaryingPositions | None:
    """An encoder of the positions at which the strings of a space differ, if these are fewer than half.

    It is looked for in pools, in spaces with choices for each position, such as `seqopt.spaces.LocalSpace`, and in
    templates: where their strings have several lengths, positions are those of the template.

    Returns:
        The encoder; `None` for molecules, where lengths differ without a template, and where too few positions are the
        same.

    Example:
        >>> from seqopt.spaces import LocalSpace
        >>> variants_encoder(LocalSpace(["M", "AV", "K", "L", "AV"])).positions
        [1, 4]
    """
    if space.kind == "molecule":
        return None
    rng = np.random.default_rng(0)
    if isinstance(space, PoolSpace):
        background = space.keys[0]
        positions = varying_positions(space.encoded)
    else:
        template = getattr(space, "template", None)
        if isinstance(template, Template) and not template.one_length:
            return _template_encoder(space, template)
        choices = getattr(space, "choices", None)
        if not isinstance(choices, tuple) or not choices:
            return None
        (string,) = space.sample(1, rng)
        background = space.key(string)
        several = [index for index, symbols in enumerate(choices) if len(symbols) > 1]
        tokens = space.encoder.encode([background]).lengths
        enough = len(choices) - len(several) > LEAST_SHARE * len(choices)
        positions = several if several and enough and int(tokens[0]) == len(choices) else None
    return None if positions is None else VaryingPositions(space.encoder, background, positions)


def _template_encoder(space: Space, template: Template) -> VaryingPositions | None:
    if template.width - len(template.free) <= LEAST_SHARE * template.width:
        return None
    encoder = TemplatePositions(space.encoder, template.text, kind=template.kind, letters=template.letters)
    # Each string must have a symbol for every part that it is compared in.
    return encoder if encoder.fewest >= _parts(space, encoder) else None


def _parts(space: Space, encoder: VaryingPositions | None = None, letters: int = 1) -> int:
    """Parts of at most `PART_LENGTH` of the symbols that are encoded, or of their letters."""
    if encoder is not None:
        length = len(encoder.positions)
    elif isinstance(space, PoolSpace):
        # One long candidate among many short ones must not cut these to pieces.
        length = int(np.median(space.encoded.lengths)) if len(space) else 0
    else:
        length = int(_sampled_lengths(space, 1).max(initial=0))
    return max(1, -(-letters * length // PART_LENGTH))


def resolve_surrogate(surrogate: str | Surrogate | PlannedSurrogate, space: Space) -> Surrogate:
    """A surrogate for ``space`` from its name; an object is returned as it is.

    Args:
        surrogate: ``"auto"``, a name in `SURROGATES`, ``"vae:FILE"`` for a squared-exponential kernel on the latent
            points of an autoencoder that ``seqopt train-vae`` wrote, a plan (`seqopt.models.SurrogatePlan`), or a
            surrogate.
        space: Where it will be used.

    Raises:
        InputError: For an unknown name, one that is for other kinds of strings, or one that is for strings of one
            length where lengths differ; for a file that holds no autoencoder, or one that cannot read strings of the
            space.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> type(resolve_surrogate("auto", StringSpace("01", 20))).__name__
        'FullyBayesianGP'
    """
    if isinstance(surrogate, PlannedSurrogate) and not isinstance(surrogate, type):
        return surrogate.for_space(space)
    if not isinstance(surrogate, str):
        if isinstance(surrogate, Surrogate) and not isinstance(surrogate, type):
            return surrogate
        raise InputError(f"{surrogate!r} is not a surrogate: choose {_names()}, or give an object with fit and predict")
    check_surrogate(surrogate)
    name = surrogate.strip().lower()
    if name == "auto":
        return default_surrogate(space)
    if name == MIXTURE:
        return mixture(space)
    if (path := latent_file(surrogate)) is not None:
        return _latent_of(path, space)
    named = SURROGATES[name]
    if named.kinds and space.kind not in named.kinds:
        raise InputError(
            f"the surrogate {name} is for {' and '.join(named.kinds)} strings, but those of this space are of kind "
            f"{space.kind!r}: choose another, or say what the strings are"
        )
    built = named.build()
    if name == "codons":
        assert isinstance(built, StringGP)
        _try(built.encoder, space)
    if name == SITES:
        return sites(space)
    if named.one_length:
        lengths = _lengths(space)
        if lengths.min() < lengths.max():
            raise InputError(
                f"the surrogate {name} compares strings of one length, position by position, but this space has "
                f"strings of {lengths.min()} and of {lengths.max()} symbols: choose another, such as ssk or ngrams"
            )
    return built


def check_surrogate(surrogate: str) -> None:
    """Refuse a name that means nothing, before anything else is done.

    Raises:
        InputError: For an unknown name, or a file that holds no autoencoder.
    """
    name = surrogate.strip().lower()
    if (path := latent_file(surrogate)) is not None:
        from seqopt.vae.checkpoint import open_checkpoint

        with open_checkpoint(path):
            pass
    elif name == "features":
        raise InputError("the surrogate features compares candidates by features: give their file, --features FILE")
    elif name != "auto" and name not in SURROGATES:
        raise InputError(f"unknown surrogate {surrogate!r}: choose {_names()}, or give an object")


def surrogate_name(surrogate: object) -> str:
    """The name in `SURROGATES` of a surrogate of that kind; empty for one that has none.

    Example:
        >>> surrogate_name(StringGP()), surrogate_name(SURROGATES["ssk+minmax"].build()), surrogate_name("ssk")
        ('ssk', 'ssk+minmax', '')
    """
    for name, known in SURROGATES.items():
        built: Any = known.build()
        alike = type(built) is type(surrogate) and _kernels_of(built) == _kernels_of(surrogate)
        if alike and features_of(built) == features_of(surrogate):
            return name
    return ""


def _kernels_of(surrogate: object) -> list[type]:
    """Classes of the kernel and of its parts on tokens and on features, or of the first two of several kernels."""
    several = getattr(surrogate, "kernels", None)
    if several is not None:
        return [type(kernel) for kernel in several[:2]]
    kernel = getattr(surrogate, "kernel", None)
    return [type(kernel), type(getattr(kernel, "tokens", None)), type(getattr(kernel, "features", None))]


def features_of(surrogate: object) -> str:
    """The name of the features that a surrogate compares, besides or instead of symbols; empty for symbols alone."""
    encoder = getattr(surrogate, "encoder", None)
    if isinstance(encoder, JointEncoder):
        return encoder.features.name
    return encoder.name if isinstance(encoder, FeatureEncoder) else ""


def latent_file(surrogate: object) -> str | None:
    """The file in the name of a surrogate in latent space; `None` for another.

    Example:
        >>> latent_file("vae:genes.vae"), latent_file("ssk")
        ('genes.vae', None)
    """
    if not isinstance(surrogate, str) or not surrogate.strip().lower().startswith(LATENT):
        return None
    return surrogate.strip()[len(LATENT) :]


def looks_at_symbols(surrogate: str) -> bool:
    """Whether the tokeniser matters to a surrogate of that name."""
    name = surrogate.strip().lower()
    return latent_file(surrogate) is None and (name not in SURROGATES or SURROGATES[name].symbols)


def _try(encoder: StringEncoder, space: Space) -> None:
    """Encode strings of a space: those that have no features are refused before anything is evaluated."""
    keys = _some_keys(space, TRIED)
    try:
        encoder.encode(keys)
    except InputError:
        if not isinstance(space, PoolSpace):
            raise
        for key in keys:
            try:
                encoder.encode([key])
            except InputError as error:
                # Its own message numbers the strings that were tried.
                shown, place = key if len(key) <= SHOWN else key[:SHOWN] + "...", list(space.keys).index(key) + 1
                reason = str(error).partition(") ")[2].replace(": ", "; ")
                raise InputError(
                    f"the surrogate codons cannot read {shown!r} (candidate {place:,} of {len(space):,}), which "
                    f"{reason}. Correct it or leave it out, or choose another surrogate"
                ) from None
        raise


def _some_keys(space: Space, most: int | None) -> list[str]:
    """Random candidates of a pool, at most so many, or some random strings of another space."""
    rng = np.random.default_rng(0)
    if not isinstance(space, PoolSpace):
        return [space.key(string) for string in space.sample(LOOKED_AT, rng)]
    return [space.keys[int(index)] for index in rng.permutation(len(space))[:most]]


def _lengths(space: Space) -> npt.NDArray[np.int32]:
    """Numbers of symbols: of all candidates of a pool, the limits of a space, or of some random strings of it."""
    if isinstance(space, PoolSpace):
        return space.encoded.lengths
    limits = getattr(space, "min_length", None), getattr(space, "max_length", None)
    if isinstance(limits[0], int) and isinstance(limits[1], int):
        return np.array(limits, dtype=np.int32)
    return _sampled_lengths(space, LOOKED_AT)


def _sampled_lengths(space: Space, count: int) -> npt.NDArray[np.int32]:
    """Numbers of symbols of random strings; of a space that hardly ever accepts one, the largest possible."""
    try:
        encoded: EncodedStrings = space.encoder.encode(space.sample(count, np.random.default_rng(0)))
    except InputError:
        if getattr(space, "accept", None) is None:
            raise
        return np.array([getattr(space, name) for name in ("max_length", "length") if hasattr(space, name)], np.int32)
    return encoded.lengths


def _names() -> str:
    return ", ".join(["auto", *SURROGATES, f"{LATENT}FILE"])
