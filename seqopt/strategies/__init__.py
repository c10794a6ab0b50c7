"""Who decides: from everything known to what is evaluated next."""

from seqopt.search.defaults import default_search
from seqopt.strategies.density_ratio import BORE, LFBO
from seqopt.strategies.designs import Design, MaxMinDesign, MedoidsDesign, resolve_design
from seqopt.strategies.exact import ExactStrategy
from seqopt.strategies.feasible import FeasibleModelBased
from seqopt.strategies.fidelity import MultiFidelity
from seqopt.strategies.function_draws import FunctionDraws
from seqopt.strategies.initial import InitialDesign
from seqopt.strategies.latent import RandomLatentStrategy
from seqopt.strategies.learning import Gain, gain_of, learner_of
from seqopt.strategies.model_based import ModelBased
from seqopt.strategies.near import Near
from seqopt.strategies.penalised import LocalPenalisation
from seqopt.strategies.plates import PlateSearch
from seqopt.strategies.portfolio import Portfolio
from seqopt.strategies.portfolio_rules import EntropySearch, Hedge, UniformChoice
from seqopt.strategies.prefilter import Prefilter
from seqopt.strategies.protocols import SearchState, Strategy
from seqopt.strategies.published import (
    maximum_likelihood_gp,
    published_boss,
    published_initial,
    published_search,
)
from seqopt.strategies.random import RandomStrategy, random_proposals

__all__ = [
    "BORE",
    "LFBO",
    "Design",
    "EntropySearch",
    "ExactStrategy",
    "FeasibleModelBased",
    "FunctionDraws",
    "Gain",
    "Hedge",
    "InitialDesign",
    "LocalPenalisation",
    "MaxMinDesign",
    "MedoidsDesign",
    "ModelBased",
    "MultiFidelity",
    "Near",
    "PlateSearch",
    "Portfolio",
    "Prefilter",
    "RandomLatentStrategy",
    "RandomStrategy",
    "SearchState",
    "Strategy",
    "UniformChoice",
    "default_search",
    "gain_of",
    "learner_of",
    "maximum_likelihood_gp",
    "published_boss",
    "published_initial",
    "published_search",
    "random_proposals",
    "resolve_design",
]
