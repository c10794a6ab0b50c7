"""Searches that choose how a string is measured: cheaply and roughly, or as its target."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from seqopt.acquisition import GIBBON
from seqopt.data import Contexts, key_of
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import CoregionalizationKernel, OnField, Product
from seqopt.models import StringGP, StringSurrogate, Surrogate
from seqopt.models.string_gp import default_kernel
from seqopt.scorers import Scoring
from seqopt.scorers.per_cost import PerCostScoring
from seqopt.search import Proposal
from seqopt.search.protocols import PartsCheckedSearch, SomeSearch
from seqopt.spaces import Space
from seqopt.strategies.model_based import ModelBased
from seqopt.strategies.protocols import SearchState


class MultiFidelity(ModelBased):
    """Chooses strings, and the context in which each is measured, by GIBBON per cost.

    By default the model is a Gaussian process over (string, level) with the covariance k(s, t) B(i, j) of intrinsic
    coregionalisation: k is the sub-sequence kernel, and B, the covariances of the levels, is learned. Values of all
    levels are in one unit, and have one mean and one noise: bring a cheap score to the scale of the costly one first.

    A string that was measured as its target is not proposed again, in any context; nor is one whose evaluation failed.

    Args:
        surrogate: A surrogate of queries (`seqopt.data.Query`), where a plain string stands for its target. By default
            as said above, which needs contexts that differ in one thing.
        acquisition: ``"gibbon"``, or a `seqopt.acquisition.GIBBON`: others score the target, whatever is measured.
        search: See `ModelBased`.

    Raises:
        InputError: For another acquisition function.

    Example:
        >>> from seqopt import Optimizer
        >>> from seqopt.data import Contexts
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
        >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
        >>> optimizer = Optimizer(pool, strategy=MultiFidelity(), contexts=contexts, initial=3)
        >>> strings = optimizer.ask()
        >>> optimizer.tell(strings.queries, [string.count("T") for string in strings])
        >>> optimizer.ask().queries[0].get("fidelity") in ("docking", "assay")
        True
    """

    chooses_contexts = True

    def __init__(
        self,
        surrogate: Surrogate | None = None,
        acquisition: GIBBON | str = "gibbon",
        search: SomeSearch | str = "auto",
    ) -> None:
        if isinstance(surrogate, str):
            raise InputError(f"the surrogate {surrogate!r} knows nothing of contexts: give an object, or none")
        super().__init__("auto" if surrogate is None else surrogate, acquisition, search)
        self._default: StringGP | None = None
        if not isinstance(self.acquisition, GIBBON):
            raise InputError(
                f"the acquisition function {self.acquisition.name!r} scores a target, whatever is measured, so the "
                "cheapest context would always win: choose gibbon"
            )

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        surrogate, search = self._given
        chosen = None if isinstance(surrogate, str) else surrogate
        return {"surrogate": chosen, "acquisition": self.acquisition, "search": search}

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `ModelBased.start`.

        Raises:
            InputError: Also without contexts, for a surrogate that does not take them, or a search that follows
                gradients.
        """
        if contexts is None:
            raise InputError(
                f"{type(self).__name__} chooses among ways to measure: give the optimiser contexts=, such as "
                "Contexts.of_levels('fidelity', {'docking': 0.01, 'assay': 1.0}, target='assay')"
            )
        self._default = coregionalized(space, contexts) if isinstance(self._given[0], str) else None
        super().start(space, contexts)
        name = type(self.surrogate).__name__
        if isinstance(self.search, PartsCheckedSearch) or not isinstance(self.surrogate, StringSurrogate):
            raise InputError(f"{type(self.search).__name__} and {name} do not go with {type(self).__name__}")

    def _begin_anew(self) -> None:
        super()._begin_anew()
        if self._default is not None:
            self._surrogate = self._default

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `ModelBased.propose`; what is predicted of a string is predicted of it as it is to be measured."""
        proposals = super().propose(n, state, rng)
        assert state.contexts is not None  # see `start`
        target = state.contexts.target
        others = [one for one in proposals if one.predicted_mean is not None and one.context not in ((), target)]
        if not others:
            return proposals
        surrogate = cast("StringSurrogate", self.surrogate)
        found = surrogate.conditioned().at([one.query for one in others]).moments
        # Of a mixture, where parameters are averaged over.
        mean, spread = found.outcome_mean.mean(0), found.outcome_mean.var(0, unbiased=False)
        variance = found.outcome_variance.mean(0) + spread
        means, stds = surrogate.untransform(mean.numpy(), variance.numpy())
        noises = [(one.measurement_std or 0.0) ** 2 - (one.predicted_std or 0.0) ** 2 for one in others]
        told = {
            one.query: replace(
                one,
                predicted_mean=float(mean),
                predicted_std=math.sqrt(max(float(std) ** 2 - max(noise, 0.0), 0.0)),
                measurement_std=float(std),
            )
            for one, mean, std, noise in zip(others, means, stds, noises, strict=True)
        }
        return [told.get(one.query, one) for one in proposals]

    def scoring(self, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """GIBBON per cost at every string in every context."""
        assert state.contexts is not None  # see `start`
        refused = self.unsupported(state.pending)
        pending = [item for index, item in enumerate(state.pending) if index not in refused]
        evaluated = dict.fromkeys(key_of(item) for item in state.data.measured().items)
        return PerCostScoring(
            cast("StringSurrogate", self.surrogate),
            self.acquisition,
            state.contexts,
            evaluated=list(evaluated),
            known=state.known,
            pending=pending,
            batch_size=n + len(pending),
            rng=rng,
        )


def coregionalized(space: Space, contexts: Contexts) -> StringGP:
    """A Gaussian process over strings and the levels of one context variable, learned with their covariances.

    Args:
        space: Gives the tokeniser.
        contexts: That differ in one variable.

    Raises:
        InputError: If they differ in several.
    """
    names = {tuple(name for name, _ in context) for context in contexts.possible}
    if len(names) > 1 or len(next(iter(names))) != 1:
        raise InputError(
            "the default surrogate of MultiFidelity learns the levels of one variable, and these contexts have others: "
            "give contexts that differ in one thing, or a surrogate"
        )
    ((name,),) = names
    levels = [context[0][1] for context in contexts.possible]
    encoder = FieldEncoder({"tokens": space.encoder, name: ContextEncoder(name, levels, default=contexts.target[0][1])})
    kernel = Product(OnField(default_kernel(), "tokens"), OnField(CoregionalizationKernel(len(levels)), name))
    return StringGP(kernel, encoder=encoder)
