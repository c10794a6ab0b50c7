"""Descriptions of parts: what is written is made again, and what cannot be is named."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.priors import GammaPrior, LogNormalPrior, NormalPrior

from seqopt.acquisition import ACQUISITIONS, GIBBON
from seqopt.encoding import Alphabet, Encoder, FeatureEncoder, JointEncoder, MorganFingerprint
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import (
    CoregionalizationKernel,
    JointKernel,
    NgramKernel,
    OneHotKernel,
    OnField,
    Product,
    SubsequenceKernel,
    Sum,
    TanimotoKernel,
)
from seqopt.models import SURROGATES, FullyBayesianGP, StringGP
from seqopt.models.classifiers import NgramTrees
from seqopt.models.sampling import SliceSampler
from seqopt.search import GeneticSearch, PoolSearch, RandomSearch
from seqopt.strategies import BORE, FeasibleModelBased, InitialDesign, ModelBased, MultiFidelity
from seqopt.utils.config import NotConfigurableError, config_of, described, differences, from_config, same


def frozen() -> SubsequenceKernel:
    kernel = SubsequenceKernel(3, match_decay=1 / 3)
    kernel.raw_gap_decay.requires_grad_(False)
    return kernel


PARTS = {
    **{f"surrogate {name}": known.build for name, known in SURROGATES.items()},
    **ACQUISITIONS,
    "gibbon, gumbel": lambda: GIBBON(7, "gumbel", repulsion=0.25),
    "pool search": lambda: PoolSearch(10),
    "genetic search": lambda: GeneticSearch(population=20, sample=30, seeded=False),
    "random search": lambda: RandomSearch(50),
    "strategy": lambda: InitialDesign(4, ModelBased(StringGP(NgramKernel(2)), "logei", PoolSearch(3))),
    "names": lambda: ModelBased("ssk", "ucb"),
    "bore": lambda: BORE(gamma=0.25),
    "bore, trees": lambda: BORE(NgramTrees(2, tokenizer="smiles", trees=7), search=PoolSearch(5)),
    "feasible": lambda: FeasibleModelBased("ssk", "gibbon", combine="multiply"),
    "fidelities": lambda: MultiFidelity(search=RandomSearch(10)),
    "averaged": lambda: FullyBayesianGP([NgramKernel(2), SubsequenceKernel(2)], SliceSampler(20), prior=[1, 2]),
    "decays": lambda: SubsequenceKernel(4, 0.7, 1 / 3, partitions=2, match_decay_bounds=(0.1, 0.9)),
    "priors": lambda: SubsequenceKernel(match_decay_prior=NormalPrior(0.4, 0.1), gap_decay_prior=GammaPrior(2.0, 3.0)),
    "weights": lambda: SubsequenceKernel(2, order_weights=[1.0, 0.5]),
    "frozen": frozen,
    "n-grams": lambda: NgramKernel(4, 2.5, lengthscale_prior=LogNormalPrior(0.0, 2.0)),
    "joint": lambda: JointKernel(SubsequenceKernel(3), TanimotoKernel(), 12, weight=0.3),
    "fields": lambda: Sum(
        Product(OnField(SubsequenceKernel(2), "tokens"), OnField(CoregionalizationKernel(2), "fidelity")),
        OnField(OneHotKernel(), "tokens"),
    ),
    "rbf": lambda: RBFKernel(lengthscale_constraint=GreaterThan(0.1, transform=None, initial_value=0.4)),
    "default rbf": RBFKernel,
    "closed alphabet": lambda: Encoder("characters", Alphabet("ACGT")),
    "joint encoder": lambda: JointEncoder(FeatureEncoder(MorganFingerprint(3, 512, True)), Encoder("smiles")),
    "field encoder": lambda: FieldEncoder(
        {"fidelity": ContextEncoder("fidelity", ["low", "high"], "high"), "tokens": Encoder("smiles-split")}
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_made_again_from_strict_json(name: str) -> None:
    part = PARTS[name]()
    config = config_of(part)
    made = from_config(json.loads(json.dumps(config, allow_nan=False)))
    assert type(made) is type(part)
    assert config_of(made) == config
    assert described(part) == config


def test_what_is_made_again_does_the_same() -> None:
    strings, values = ["AAB", "ABB", "BBB", "BAB", "ABA"], [0.0, 1.0, 2.0, 1.5, 0.3]
    own = StringGP(SubsequenceKernel(3, 0.6, gap_decay_prior=NormalPrior(0.2, 0.1)), tokenizer="characters")
    twin = from_config(own.config())
    for gp in (own, twin):
        gp.fit(strings, values, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(own.predict(["AAA", "BBA"]), twin.predict(["AAA", "BBA"]))
    kernel = from_config(frozen().config())
    assert [name for name, one in kernel.named_parameters() if not one.requires_grad] == ["raw_gap_decay"]
    assert kernel.match_decay.item() == pytest.approx(1 / 3, abs=1e-15)
    rbf = from_config(config_of(PARTS["rbf"]()))
    assert rbf.raw_lengthscale_constraint.lower_bound == pytest.approx(0.1)
    torch.testing.assert_close(rbf.lengthscale, PARTS["rbf"]().lengthscale)


def test_parameters_are_those_of_now() -> None:
    kernel = SubsequenceKernel()
    kernel.gap_decay = 0.123
    assert from_config(kernel.config()).gap_decay.item() == 0.123


def test_what_cannot_be_written_down_is_named_where_it_stands() -> None:
    with pytest.raises(NotConfigurableError, match=r"repulsion of GIBBON: .*<lambda> cannot be written down"):
        config_of(GIBBON(repulsion=lambda size: 1.0))
    with pytest.raises(NotConfigurableError, match="kernel of StringGP: MaternKernel cannot be written down"):
        config_of(StringGP(MaternKernel()))
    found = described(StringGP(MaternKernel(), restarts=3))
    assert (found["custom"], found["restarts"]) == (True, 3)
    assert "raw_lengthscale" in found["kernel"]["state"]
    json.dumps(found, allow_nan=False)
    narrow, wide = MaternKernel(), MaternKernel()
    wide.lengthscale = 9.0
    assert described(narrow) != described(wide)


def test_unknown_types_and_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="no part of the type 'Unheard': import the module that defines it first"):
        from_config({"type": "Unheard", "x": 1})
    with pytest.raises(InputError, match=r"description of a PoolSearch does not fit this version of it: .*'speed'"):
        from_config({"type": "PoolSearch", "candidates": 3, "speed": 2})
    with pytest.raises(InputError, match="candidates is 0"):
        from_config({"type": "PoolSearch", "candidates": 0})


def test_descriptions_are_compared_apart_from_what_is_learned() -> None:
    one, other = (StringGP(SubsequenceKernel(3, decay)).config() for decay in (0.2, 0.8))
    assert one != other
    assert same(one, other, ["match_decay"])
    assert not same(one, StringGP(SubsequenceKernel(4)).config(), ["match_decay"])


def test_functions_in_a_description_go_by_their_names() -> None:
    found = [described(GIBBON(repulsion=function)) for function in (abs, float)]
    assert [one["repulsion"] for one in found] == ["abs", "float"]


class Sharper(PoolSearch):
    """One that takes more than the class whose arguments it inherits."""

    def __init__(self, candidates: int = 5, *, edge: float) -> None:
        super().__init__(candidates)
        self.edge = edge


class Blunt(PoolSearch):
    """One that takes more, and does not keep it."""

    def __init__(self, candidates: int = 5, *, edge: float) -> None:
        super().__init__(candidates)


def test_a_subclass_is_written_down_only_with_all_that_it_takes() -> None:
    config = Sharper(7, edge=0.5).config()
    again = from_config(config)
    assert (type(again), again.candidates, again.edge) == (Sharper, 7, 0.5)
    with pytest.raises(NotConfigurableError, match="Blunt takes edge, and has no attribute of that name"):
        Blunt(7, edge=0.5).config()
    assert (described(Blunt(7, edge=0.5))["custom"], described(Blunt(7, edge=0.5))["candidates"]) == (True, 7)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({"a": 1, "b": [1]}, {"a": 1, "b": [1]}, []),
        ({"a": 1}, {"b": 2}, ["a was 1, is now None", "b was None, is now 2"]),
        ({"p": {"type": "A", "x": 1}}, {"p": {"type": "B", "y": 2}}, ["p.type was 'A', is now 'B'"]),
        ({"p": {"type": "A", "x": 1}}, {}, ["p.type was 'A', is now None"]),
        (
            {"k": [{"type": "A", "x": 1}, {"type": "B", "x": 1}]},
            {"k": [{"type": "A", "x": 2}, {"type": "C", "x": 2}]},
            ["k[1].x was 1, is now 2", "k[2].type was 'B', is now 'C'"],
        ),
        ({"k": [{"x": 1}]}, {"k": [{"x": 1}, {"x": 2}]}, ["k was [{'x': 1}], is now [{'x': 1}, {'x': 2}]"]),
        ({"p": {"x": 1}}, {"p": "A"}, ["p was {'x': 1}, is now 'A'"]),
        ({"p": {"type": "A", "f": None}}, {"p": {"type": "A", "f": "g", "custom": True}}, ["p.f was None, is now 'g'"]),
        (
            {"s": 100 * "A"},
            {"s": 30 * "A" + "C"},
            [f"s was '{16 * 'A'}'... (100 characters), is now '{30 * 'A'}C'"],
        ),
        (
            {"n": ["a" * 30] * 9},
            {"n": [*["a" * 30] * 8, "b"]},
            [f"n was ['{22 * 'a'}... (9 items), is now ['{22 * 'a'}... (9 items; another from 9 on)"],
        ),
    ],
)
def test_what_differs_is_said_briefly(old: dict[str, object], new: dict[str, object], said: list[str]) -> None:
    assert differences(old, new) == said
