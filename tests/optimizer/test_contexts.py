"""Ask and tell where strings can be measured in several ways, and where some outcomes are missing."""

import itertools
import math

import pytest

from seqopt import Optimizer
from seqopt.data import Contexts, LearnedTransform, Outcome, Query
from seqopt.encoding import Encoder
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import CoregionalizationKernel, OnField, Product, SubsequenceKernel
from seqopt.models import FullyBayesianStringGP, StringGP
from seqopt.strategies import RandomStrategy

POOL = ["".join(symbols) for symbols in itertools.product("AT", repeat=4)]
CONTEXTS = Contexts.of_levels("assay", {"cheap": 0.1, "dear": 1.0}, target="dear")


def cheap(key: str) -> Query:
    return Query(key, {"assay": "cheap"})


def surrogate() -> StringGP:
    assay = ContextEncoder("assay", levels=["cheap", "dear"], default="dear")
    kernel = Product(OnField(SubsequenceKernel(order=2), "tokens"), OnField(CoregionalizationKernel(2), "assay"))
    return StringGP(kernel, encoder=FieldEncoder({"assay": assay, "tokens": Encoder()}), restarts=1)


def searched() -> Optimizer:
    optimizer = Optimizer(POOL, contexts=CONTEXTS, initial=3, surrogate=surrogate())
    optimizer.tell([cheap(key) for key in POOL[:10]], [50.0 - key.count("T") for key in POOL[:10]])
    optimizer.tell(POOL[:4], [1.0 * key.count("T") for key in POOL[:4]])
    return optimizer


@pytest.mark.slow
def test_what_a_model_asks_for_is_measured_as_the_target() -> None:
    optimizer = searched()
    first = optimizer.ask(3)
    assert [query.context for query in first.queries] == [CONTEXTS.target] * 3
    assert not set(first) & set(optimizer.ask(2))  # they are pending
    optimizer.tell(list(first), [1.0, 2.0, 3.0])
    assert not set(first) & set(optimizer.pending)
    assert len(optimizer.observations) == 10 + 4 + 5  # no result made a row of its own


def test_the_recommended_row_has_a_value_of_the_target() -> None:
    optimizer = searched()
    optimizer.tell(POOL, [1.0 * key.count("T") for key in POOL])
    optimizer.tell([cheap(key) for key in POOL], [50.0 - key.count("T") for key in POOL])
    found = optimizer.recommend()
    assert found.context == CONTEXTS.target
    assert found.value == found.string.count("T")


def test_random_search_recommends_by_what_is_meant() -> None:
    optimizer = Optimizer(POOL, contexts=CONTEXTS, initial=3, strategy=RandomStrategy())
    optimizer.tell([cheap("TTTT"), cheap("AAAA"), "AAAA", "AAAT"], [100.0, 90.0, 1.0, 2.0])
    optimizer.tell([cheap("AAAT")], [80.0])
    found = optimizer.recommend()
    assert (found.string, found.value) == ("AAAT", 2.0)


def test_the_recommended_row_has_a_value_of_the_objective() -> None:
    outcomes = [Outcome("potency"), Outcome("solubility", role="constraint", bound=1.0)]
    optimizer = Optimizer(POOL, initial=3, outcomes=outcomes, surrogate=StringGP(restarts=1))
    optimizer.tell(POOL, [[float(key.count("T")), 2.0] for key in POOL])
    best = optimizer.recommend().string
    optimizer.tell([best], [[math.nan, 3.0]])
    found = optimizer.recommend()
    assert found.string == best
    assert found.values == (4.0, 2.0)


@pytest.mark.parametrize("blind", [StringGP(restarts=1), FullyBayesianStringGP(draws=2), "ngrams"])
def test_a_surrogate_that_sees_no_contexts_is_refused(blind: object) -> None:
    with pytest.raises(InputError, match=r"cannot tell contexts apart.*FieldEncoder"):
        Optimizer(POOL, contexts=CONTEXTS, surrogate=blind)


def test_a_context_variable_that_the_surrogate_does_not_know_is_refused() -> None:
    plates = Contexts.of_levels("assay", {"cheap": 0.1, "third": 1.0}, target="cheap")
    with pytest.raises(InputError, match="assay is 'third'"):
        Optimizer(POOL, contexts=plates, surrogate=surrogate())


def test_what_is_not_a_search_is_refused() -> None:
    with pytest.raises(InputError, match="3 is not an inner search"):
        Optimizer(POOL, search=3)


def test_values_of_several_contexts_together_show_no_tail() -> None:
    # Cheap ones lie near 50 and dear ones near 0: what looks like a tail is an offset.
    optimizer = searched()
    optimizer.ask(2)
    assert optimizer.transform.name == "auto"
    assert isinstance(optimizer.transform, LearnedTransform)
    assert optimizer.transform.current.name == "none"


LATENT = [Contexts.of_folds("fold", ["a", "b"]), Contexts.of_plates("fold")]


@pytest.mark.parametrize("contexts", LATENT, ids=["folds", "plates"])
def test_where_the_target_cannot_be_measured_every_result_says_how_it_was(contexts: Contexts) -> None:
    optimizer = Optimizer(POOL, contexts=contexts, initial=4, strategy=RandomStrategy())
    with pytest.raises(InputError, match=r"cannot be measured itself: say on which fold"):
        optimizer.tell(["AAAA"], [1.0])
    assert not len(optimizer.observations)
    asked = optimizer.ask(4)
    ways = [query.context for query in asked.queries]
    assert len(set(ways)) == 2
    assert sorted(map(ways.count, set(ways))) == [2, 2]  # in turn
    with pytest.raises(InputError, match=r"cannot be measured itself"):
        optimizer.tell(list(asked), [1.0, 2.0, 3.0, 4.0])
    optimizer.tell(asked.queries, [1.0, 2.0, 3.0, 4.0])
    assert (optimizer.best.string, optimizer.best.value) == (asked[3], 4.0)
    assert not optimizer.pending
    again = optimizer.ask(1)
    with pytest.raises(InputError, match="cannot be measured itself"):
        optimizer.withdraw(list(again))
    # What awaits no result is not to be measured in any way.
    never = next(one for one in POOL if one not in (*asked, *again))
    optimizer.withdraw([never])
    assert never not in [query.key for query in optimizer.ask(2 * len(POOL)).queries]


@pytest.mark.parametrize("contexts", LATENT, ids=["folds", "plates"])
def test_random_search_measures_all_strings_once_before_any_twice(contexts: Contexts) -> None:
    optimizer = Optimizer(POOL, contexts=contexts, initial=3, strategy=RandomStrategy())
    seen = []
    for size in (5, 7, 10, 10):
        asked = optimizer.ask(size).queries
        optimizer.tell(asked, [float(query.key.count("T")) for query in asked])
        seen += asked
    assert len({query.key for query in seen[:16]}) == 16
    assert len(set(seen)) == len(seen) == 32  # both ways of all


def test_random_search_recommends_the_best_mean() -> None:
    optimizer = Optimizer(POOL, contexts=LATENT[0], initial=3, strategy=RandomStrategy())
    told = [Query("AAAA", {"fold": "a"}), Query("AAAA", {"fold": "b"}), Query("TTTT", {"fold": "a"})]
    optimizer.tell(told, [5.0, 0.0, 3.0])
    assert optimizer.recommend().key == "TTTT"
    assert optimizer.best.key == "AAAA"


def test_states_of_open_contexts_are_restored() -> None:
    first = Optimizer(POOL, contexts=LATENT[1], initial=3, strategy=RandomStrategy())
    first.tell([Query("AAAA", {"fold": "mine"})], [5.0])
    first.ask(2)
    second = Optimizer(POOL, contexts=LATENT[1], initial=3, strategy=RandomStrategy())
    second.load_state_dict(first.state_dict())
    assert second.ask(3).queries == first.ask(3).queries
    assert second.observations.rows[0].context == (("fold", "mine"),)


def test_a_strategy_that_measures_targets_does_not_go_with_a_latent_one() -> None:
    encoder = FieldEncoder({"fold": ContextEncoder("fold", levels=["a", "b"], default="a"), "tokens": Encoder()})
    kernel = Product(OnField(SubsequenceKernel(order=2), "tokens"), OnField(CoregionalizationKernel(2), "fold"))
    with pytest.raises(InputError, match="target of these contexts cannot be measured"):
        Optimizer(POOL, contexts=LATENT[0], surrogate=StringGP(kernel, encoder=encoder))
