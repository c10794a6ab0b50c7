"""Parts that are put together: those that fit, and those that are refused."""

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.acquisition import RandomAcquisition
from seqopt.errors import InputError, ModelError
from seqopt.models import StringGP
from seqopt.search import GeneticSearch, PoolSearch, RandomSearch
from seqopt.spaces import EvolvableSpace
from seqopt.strategies import InitialDesign, ModelBased, RandomStrategy, Strategy, default_search
from seqopt.strategies.protocols import CheckedStrategy

POOL = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA", "ATAT", "TAAT"]


class Mean:
    """A surrogate that predicts, and has no posterior."""

    def fit(self, strings, values, *, rng):
        self.mean = float(np.mean(values))

    def predict(self, strings):
        return np.full(len(strings), self.mean), np.ones(len(strings))

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Listed:
    """A space without moves that is not a list."""

    kind, encoder = "text", StringSpace("AT", 4).encoder

    def sample(self, n, rng):
        return StringSpace("AT", 4).sample(n, rng)

    def contains(self, string):
        return len(string) == 4

    def key(self, string):
        return string

    def keys_of(self, strings):
        return list(strings)


def test_the_search_follows_from_the_space():
    assert isinstance(default_search(CandidateSet(POOL)), PoolSearch)
    assert isinstance(default_search(StringSpace("AT", 4)), GeneticSearch)
    assert not isinstance(Listed(), EvolvableSpace)
    assert isinstance(default_search(Listed()), RandomSearch)


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        (CandidateSet(POOL), {"surrogate": Mean()}, r"Mean has no posterior that PoolSearch.*pool_posterior"),
        (StringSpace("AT", 4), {"surrogate": Mean()}, r"Mean has no posterior that GeneticSearch.*conditioned"),
        (StringSpace("AT", 4), {"search": PoolSearch()}, r"PoolSearch.*StringSpace is not one"),
        (Listed(), {"search": GeneticSearch()}, r"GeneticSearch.*Listed has no moves"),
        (CandidateSet(POOL), {"surrogate": "nonsense"}, "nonsense"),
        (CandidateSet(POOL), {"acquisition": "nonsense"}, "unknown acquisition function 'nonsense'"),
        (CandidateSet(POOL), {"search": "nonsense"}, "unknown search 'nonsense': choose auto"),
        (CandidateSet(POOL), {"strategy": RandomStrategy(), "surrogate": "ssk"}, "RandomStrategy decides by itself"),
        (CandidateSet(POOL), {"strategy": RandomStrategy}, "is not a strategy"),
        (CandidateSet(POOL), {"strategy": "random"}, "is not a strategy"),
    ],
)
def test_parts_that_do_not_fit_are_refused_when_they_are_put_together(space, options, message):
    with pytest.raises(InputError, match=message):
        Optimizer(space, **options)


def test_a_surrogate_without_posterior_serves_where_none_is_needed():
    optimizer = Optimizer(POOL, surrogate=Mean(), acquisition=RandomAcquisition(), initial=2)
    optimizer.tell(POOL[:3], [1.0, 2.0, 3.0])
    assert len(optimizer.ask(2)) == 2


def test_parts_that_go_by_name_are_found_when_the_search_starts():
    strategy = ModelBased()
    assert isinstance(strategy, Strategy)
    assert isinstance(strategy, CheckedStrategy)
    with pytest.raises(ModelError, match=r"call start\(space\)"):
        _ = strategy.surrogate
    with pytest.raises(ModelError, match=r"call start\(space\)"):
        _ = strategy.search
    strategy.start(CandidateSet(POOL))
    assert isinstance(strategy.search, PoolSearch)
    with pytest.raises(ModelError, match="0 values have been told; a model needs two"):
        strategy.recommend(Optimizer(POOL).state(), np.random.default_rng(0))


class Alternating:
    """A portfolio: every other batch is random."""

    takes_noise_variance = True

    def __init__(self, *strategies):
        self.strategies = strategies
        self.turn = 0

    def start(self, space, contexts=None):
        for strategy in self.strategies:
            if isinstance(strategy, CheckedStrategy):
                strategy.start(space, contexts)

    def propose(self, n, state, rng):
        strategy = self.strategies[self.turn % len(self.strategies)]
        self.turn += 1
        return strategy.propose(n, state, rng)

    def recommend(self, state, rng):
        return self.strategies[0].recommend(state, rng)

    def unsupported(self, items):
        return {key: why for strategy in self.strategies for key, why in strategy.unsupported(items).items()}

    @property
    def hyperparameters(self):
        return self.strategies[0].hyperparameters

    def state_dict(self):
        return {"turn": self.turn, "members": [strategy.state_dict() for strategy in self.strategies]}

    def load_state_dict(self, state):
        self.turn = state["turn"]
        for strategy, member in zip(self.strategies, state["members"], strict=True):
            strategy.load_state_dict(member)


def portfolio():
    model = ModelBased(StringGP(restarts=1), "logei", RandomSearch(100))
    strategy = Alternating(model, RandomStrategy())
    return Optimizer(StringSpace("AT", 8), strategy=strategy, initial=5, batch_size=2, seed=4)


def go(optimizer, batches):
    for _ in range(batches):
        strings = optimizer.ask()
        optimizer.tell(strings, [string.count("AT") for string in strings])
    return optimizer


def test_a_portfolio_of_two_strategies_is_a_strategy():
    optimizer = go(portfolio(), 5)
    assert isinstance(optimizer.strategy, InitialDesign)
    assert isinstance(optimizer.strategy.then, CheckedStrategy)
    scored = [row.details["acquisition"] is not None for row in optimizer.observations.rows]
    # The initial design, then batches of the model and random ones by turns.
    assert scored == [False] * 5 + [True] * 2 + [False] * 2 + [True] * 2 + [False] * 2
    assert optimizer.recommend().value == optimizer.best.value


def test_a_portfolio_is_resumed_at_its_turn():
    whole, part, restored = go(portfolio(), 5), go(portfolio(), 2), portfolio()
    restored.load_state_dict(part.state_dict())
    go(restored, 3)
    assert [row.string for row in restored.observations.rows] == [row.string for row in whole.observations.rows]


class Unsure(StringGP):
    """A surrogate that claims to know nothing of measurements."""

    def measurement_std(self, strings):
        return np.full(len(strings), 7.0)


def test_what_is_said_of_measurements_changes_no_choice():
    optimizers = [
        Optimizer(POOL, surrogate=surrogate, acquisition="logei", batch_size=3, initial=4, seed=1)
        for surrogate in (StringGP(restarts=1), Unsure(restarts=1))
    ]
    for _ in range(2):
        batches = [optimizer.ask() for optimizer in optimizers]
        assert batches[0] == batches[1]
        for optimizer, batch in zip(optimizers, batches, strict=True):
            optimizer.tell(batch, [string.count("A") + 0.1 * string.count("AT") for string in batch])
    told = ("predicted_low", "predicted_high")  # which are of measurements
    first, second = (
        [{name: value for name, value in row.details.items() if name not in told} for row in one.observations.rows]
        for one in optimizers
    )
    assert first == second
    asked = batches[0]
    stds = [[optimizer.predicted_measurement(key)[1] for key in asked] for optimizer in optimizers]
    assert stds[1] == pytest.approx([7.0] * len(asked))
    assert np.all(np.array(stds[0]) > [row["predicted_std"] for row in first[-len(asked) :]])
