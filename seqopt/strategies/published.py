"""BOSS as it was published: the parts of the paper, put together as a strategy.

What the paper says in words alone is read as follows.

*Parameters.* Section 4.6: "kernel parameters are re-estimated to maximise model likelihood before each BO step". Both
decays, the output scale, the variance of the noise (section 4.4 has y = g + noise) and a constant mean maximise the
marginal likelihood, without priors, within the bounds of `seqopt.models.StringGP`, for values that are standardised.
The fit begins at the parameters of the step before and at draws from weak priors, three starts in all.

*Expected improvement* over the best measured value (equation 2.1.3), in log space: strings are in the same order, and
nothing else of it is used.

*The stopping rule.* Section B.3 says that the genetic algorithm "ends once the best string in the population stops
improving between iterations". Algorithm 4 beside it, taken by its letters, stops at the first evolution that
*improves*: its loop goes on while the best of all populations before equals that of the present one. The words are
followed here: the first evolution that brings nothing better than all before it is the last, and a tie is no
improvement. The notebooks of the authors make at least ten evolutions and stop after ten without improvement.

*Algorithm 5* has the second test for a mutation inside the first; the two children are mutated independently here. A
population has exactly N strings, also where the last crossover would bring one more.

*Strings that have been evaluated* are not proposed again. The paper says nothing of them.

References:
    Moss, H., Beck, D., Gonzalez, J., Leslie, D., Rayson, P. (2020). BOSS: Bayesian optimization over string spaces.
        NeurIPS.
    Moss, H. B. (2021). General-purpose information-theoretical Bayesian optimisation. PhD thesis, Lancaster University,
        chapter 4 and appendix B.
"""

from __future__ import annotations

import gpytorch

from seqopt.acquisition import LogExpectedImprovement
from seqopt.encoding import StringEncoder, Tokenizer
from seqopt.errors import InputError
from seqopt.models import StringGP
from seqopt.models.string_gp import default_kernel
from seqopt.search import GeneticSearch, PoolSearch, RandomSearch
from seqopt.search.protocols import SomeSearch
from seqopt.spaces import EvolvableSpace, PoolSpace, Space
from seqopt.strategies.model_based import ModelBased

STARTS = 3
"""Starts of each fit; the notebooks of the authors recommend so many."""

FRESH_CANDIDATES = 100
"""Random candidates of a pool that are looked at in each step (section 4.6.4)."""

RANDOM_STRINGS = 10_000
"""Random strings that are looked at in each step where no moves are known (section 4.6.1)."""


def published_boss(
    space: Space,
    *,
    kernel: gpytorch.kernels.Kernel | None = None,
    partitions: int = 1,
    tokenizer: str | Tokenizer | None = None,
    encoder: StringEncoder | None = None,
    noise: float | None = None,
) -> ModelBased:
    """BOSS as published: maximum likelihood before each step, expected improvement, genetic algorithm of appendix B.3.

    It is there to be compared with. The default of `seqopt.Optimizer` averages over parameters and searches longer; see
    ``docs/results.md`` for what that changes. Begin with `published_initial` random strings, and say
    ``transform="none"``: the paper standardises values and does nothing else to them.

    Args:
        space: Where to search: a pool is searched by `FRESH_CANDIDATES` fresh candidates in each step, a space without
            moves by `RANDOM_STRINGS` random strings.
        kernel: In place of the sub-sequence kernel of order 5, such as `seqopt.kernels.NgramKernel` and
            `seqopt.kernels.OneHotKernel`, the paper's other two.
        partitions: Contiguous parts of the strings that the sub-sequence kernel compares (section 4.5.1).
        tokenizer: What the kernel compares, where that is not the space's choice: ``"characters"`` makes models of
            genes see bases in place of codons.
        encoder: In place of a tokeniser.
        noise: See `maximum_likelihood_gp`.

    Raises:
        InputError: If ``partitions`` is less than 1 or given beside a kernel, or a tokeniser beside an encoder.

    Example:
        >>> from seqopt import Optimizer, StringSpace
        >>> space = StringSpace("01", 20)
        >>> strategy, initial = published_boss(space), published_initial(space)
        >>> optimizer = Optimizer(space, strategy=strategy, initial=initial, transform="none", seed=3)
        >>> for _ in range(4):
        ...     strings = optimizer.ask()
        ...     optimizer.tell(strings, [string.count("101") for string in strings])
        >>> len(optimizer.observations)
        5
    """
    if kernel is None:
        kernel = default_kernel(partitions=partitions)
    elif partitions != 1:
        raise InputError("give a kernel or partitions, not both: the kernel has its own")
    return ModelBased(
        maximum_likelihood_gp(kernel, tokenizer=tokenizer, encoder=encoder, noise=noise),
        LogExpectedImprovement("value"),
        published_search(space),
    )


def maximum_likelihood_gp(
    kernel: gpytorch.kernels.Kernel | None = None,
    *,
    tokenizer: str | Tokenizer | None = None,
    encoder: StringEncoder | None = None,
    noise: float | None = None,
) -> StringGP:
    """A Gaussian process whose parameters maximise the marginal likelihood, without priors, anew at each fit.

    Args:
        kernel: By default the sub-sequence kernel of order 5.
        tokenizer: See `seqopt.models.StringGP`.
        encoder: See `seqopt.models.StringGP`.
        noise: Variance of the noise in units of the values' variance, where it is not learned; the authors' code has
            1e-6 for objectives without noise.

    Example:
        >>> maximum_likelihood_gp().priors
        False
    """
    return StringGP(
        kernel,
        tokenizer=tokenizer,
        encoder=encoder,
        restarts=STARTS,
        refit_growth=0.0,
        priors=False,
        noise=noise,
    )


def published_search(space: Space) -> SomeSearch:
    """The inner search of the paper: algorithms 4 and 5 where there are moves.

    Args:
        space: See `published_boss`.

    Example:
        >>> from seqopt import StringSpace
        >>> search = published_search(StringSpace("01", 20))
        >>> search.population, search.patience, search.elitist, search.novel
        (100, 1, False, False)
    """
    if isinstance(space, PoolSpace):
        return PoolSearch(FRESH_CANDIDATES)
    if not isinstance(space, EvolvableSpace):
        return RandomSearch(RANDOM_STRINGS)
    return published_genetic_search()


def published_genetic_search() -> GeneticSearch:
    """Algorithms 4 and 5 of appendix B.3 with the numbers of the paper.

    Example:
        >>> published_genetic_search().evolutions
        100
    """
    return GeneticSearch(
        population=100,
        tournament=0.5,
        crossover=0.75,
        mutation=0.1,
        evolutions=100,
        patience=1,
        sample=100,
        seeded=False,
        restarts=0,
        elitist=False,
        novel=False,
    )


def published_initial(space: Space) -> int:
    """Random strings that a search begins with: the smaller of 5 and the number of symbols, but 2 at least.

    Args:
        space: Its encoder says which symbols there are; 5 where it has no alphabet.

    Example:
        >>> from seqopt import StringSpace
        >>> published_initial(StringSpace("01", 20)), published_initial(StringSpace("ACDEFGHIKLMNPQRSTVWY", 12))
        (2, 5)
    """
    alphabet = getattr(space.encoder, "alphabet", None)
    return 5 if alphabet is None else max(2, min(5, len(alphabet)))
