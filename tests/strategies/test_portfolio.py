"""Portfolios: one member is that member, their order makes no difference, and each rule chooses as it says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from seqopt.acquisition import RandomAcquisition, ThompsonSampling, UpperConfidenceBound
from seqopt.acquisition.entropy_search import entropy
from seqopt.data import Contexts
from seqopt.errors import InputError
from seqopt.kernels import OneHotKernel
from seqopt.models import StringGP
from seqopt.optimizer import Optimizer
from seqopt.scorers.limits import BatchLimits
from seqopt.search import GeneticSearch, RandomSearch
from seqopt.spaces import CandidateSet, Space, StringSpace
from seqopt.strategies import LFBO, EntropySearch, Hedge, ModelBased, Portfolio, RandomStrategy, UniformChoice
from seqopt.strategies.portfolio_rules import Belief, EntropyChooser, Step
from seqopt.strategies.protocols import Strategy
from seqopt.testing.strategies import StrategyConformance
from seqopt.utils.config import from_config

WORDS = ["".join(letters) for letters in itertools.product("ab", repeat=5)]
SMALL = EntropySearch(functions=30, fantasies=3, draws=50, max_points=32)
TINY = GeneticSearch(population=6, evolutions=1, sample=10, restarts=0)


def gp() -> StringGP:
    return StringGP(OneHotKernel(), restarts=1)


def value(string: str) -> float:
    return sum((letter == "a") / (1 + place) for place, letter in enumerate(string))


def optimizer(strategy: Strategy, space: Any = WORDS, **options: Any) -> Optimizer:
    made = Optimizer(space, strategy=strategy, **({"initial": 6, "batch_size": 3, "seed": 3} | options))
    strings = made.ask()
    made.tell(strings, [value(string) for string in strings])
    return made


def run(made: Optimizer, batches: int = 2) -> list[str]:
    asked: list[str] = []
    for _ in range(batches):
        strings = made.ask()
        asked += strings
        made.tell(strings, [value(string) for string in strings])
    return asked


@pytest.mark.parametrize("rule", [SMALL, Hedge()], ids=["esp", "hedge"])
class TestOverAPool(StrategyConformance):
    @pytest.fixture
    def make_strategy(self, rule: Any) -> Callable[[], Any]:
        return lambda: Portfolio(["gibbon", RandomStrategy()], from_config(rule.config()), gp())


class TestOverASpace(StrategyConformance):
    initial = 5
    batch_size = 2

    @pytest.fixture
    def make_strategy(self) -> Callable[[], Any]:
        return lambda: Portfolio(["logei", "thompson"], SMALL, gp(), TINY)

    @pytest.fixture
    def space(self) -> Space:
        return StringSpace("ab", 6)


@pytest.mark.parametrize("acquisition", ["gibbon", "logei", "thompson"])
@pytest.mark.parametrize("search", ["auto", RandomSearch(40)], ids=["pool", "random"])
def test_one_member_is_that_member(acquisition: str, search: Any) -> None:
    space = WORDS if search == "auto" else StringSpace("ab", 6)
    alone = optimizer(ModelBased(gp(), acquisition, search), space)
    portfolio = optimizer(Portfolio([acquisition], "esp", gp(), search), space)
    assert run(portfolio) == run(alone)
    assert [row.details for row in portfolio.observations.rows] == [row.details for row in alone.observations.rows]


def test_one_member_of_a_genetic_search_is_that_member() -> None:
    alone = optimizer(ModelBased(gp(), "logei", TINY), StringSpace("ab", 6), batch_size=1)
    portfolio = optimizer(Portfolio(["logei"], "esp", gp(), TINY), StringSpace("ab", 6), batch_size=1)
    assert run(portfolio) == run(alone)


@pytest.mark.parametrize("search", ["auto", TINY], ids=["pool", "genetic"])
def test_the_order_of_members_makes_no_difference(search: Any) -> None:
    space = WORDS if search == "auto" else StringSpace("ab", 6)
    members = ["gibbon", "thompson", RandomStrategy(), "ucb"]
    found = [
        run(optimizer(Portfolio([members[place] for place in order], SMALL, gp(), search), space), 1)
        for order in ((0, 1, 2, 3), (3, 2, 0, 1))
    ]
    assert found[0] == found[1]


def test_members_that_are_alike_draw_independently() -> None:
    made = optimizer(Portfolio(["thompson", "thompson"], UniformChoice(), gp()))
    strategy = made.strategy.then
    assert isinstance(strategy, Portfolio)
    assert strategy.names == ["thompson 1", "thompson 2"]
    first, second = (rng.random() for rng in strategy._generators(np.random.default_rng(0))[0])
    assert first != second


class Counted(StringGP):
    fits = 0

    def fit(self, *args: Any, **options: Any) -> Any:
        self.fits += 1
        return super().fit(*args, **options)


def test_a_step_costs_one_fit() -> None:
    surrogate = Counted(OneHotKernel(), restarts=1)
    made = optimizer(Portfolio(["gibbon", "logei", "ucb", "thompson"], SMALL, surrogate))
    made.ask(4)
    assert surrogate.fits == 1


class Recording:
    """A rule that takes the member of a number, and keeps what was nominated."""

    def __init__(self, taken: int) -> None:
        self.taken = taken
        self.seen: list[tuple[list[str | None], list[str]]] = []

    def reset(self) -> None: ...

    def learn(self, step: Step) -> None: ...

    def chooser(self, step: Step, likely: Sequence[str], rng: np.random.Generator) -> Any:
        return self

    def choose(self, nominees: Sequence[str | None], chosen: Sequence[str]) -> int:
        self.seen.append((list(nominees), list(chosen)))
        return self.taken

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@pytest.mark.parametrize("search", ["auto", RandomSearch(64), TINY], ids=["pool", "random", "genetic"])
def test_each_member_nominates_given_what_was_chosen(search: Any) -> None:
    space = WORDS if search == "auto" else StringSpace("ab", 6)
    rule = Recording(1)
    made = optimizer(Portfolio(["mean", "ucb"], rule, gp(), search), space)
    strings = made.ask(3)
    assert [slot[0][1] for slot in rule.seen] == strings
    assert [slot[1] for slot in rule.seen] == [strings[:place] for place in range(3)]
    for nominees, chosen in rule.seen:
        assert not set(nominees) & set(chosen)
    assert made.strategy.then.nominated_by == ["ucb"] * 3


def test_the_batch_of_one_member_that_is_always_taken_is_its_own() -> None:
    portfolio = optimizer(Portfolio(["mean", "logei"], Recording(1), gp()))
    alone = optimizer(ModelBased(gp(), "logei"))
    assert portfolio.ask(4) == alone.ask(4)  # both draw nothing


def step_of(made: Optimizer) -> Step:
    state = made.state()
    surrogate: Any = gp()
    surrogate.bind(made.space)
    measured = state.data.measured()
    surrogate.fit([str(item) for item in measured.items], measured.targets, rng=np.random.default_rng(0))
    return Step(surrogate, made.space, [str(item) for item in measured.items], [], len(state.data), 2)


def test_a_belief_that_grows_is_the_joint_posterior() -> None:
    step = step_of(optimizer(RandomStrategy()))
    belief = Belief(step)
    for keys in (WORDS[:5], WORDS[3:7], ["bbbbb"]):
        belief.extend(keys)
    keys = [*WORDS[:7], "bbbbb"]
    mean, covariance = step.posterior(keys).joint(torch.arange(8))
    assert belief.numbers(keys) == list(range(8))
    assert torch.allclose(belief.mean, mean, atol=1e-9)
    assert torch.allclose(belief.covariance, covariance, atol=1e-9)


def test_entropy_search_takes_what_brute_force_takes() -> None:
    step = step_of(optimizer(RandomStrategy()))
    rule = EntropySearch(functions=2_000, fantasies=40, draws=2_000)
    chooser = EntropyChooser(rule, step, WORDS, np.random.default_rng(0))
    keys = [word for word in WORDS if word not in step.evaluated][:6]
    found = chooser.utilities(sorted(keys), [])
    posterior = step.posterior(WORDS)
    mean, covariance = (part[0].numpy() for part in posterior.joint(torch.arange(32)))
    noise = float(posterior.moments.residual_variance.reshape(-1)[0])
    rng = np.random.default_rng(1)
    expected = []
    for key in sorted(keys):
        x = WORDS.index(key)
        gain = covariance[x] / (covariance[x, x] + noise)
        after = covariance - np.outer(gain, covariance[x])
        root = np.linalg.cholesky(after + 1e-9 * np.eye(32))
        entropies = []
        for _ in range(60):
            centre = mean + gain * np.sqrt(covariance[x, x] + noise) * rng.normal()
            drawn = centre[:, None] + root @ rng.normal(size=(32, 1_000))
            entropies.append(float(entropy(torch.from_numpy(np.bincount(drawn.argmax(0), minlength=32)).double())))
        expected.append(-np.mean(entropies))
    assert found == pytest.approx(expected, abs=0.12)
    assert abs(expected[int(np.argmax(found))] - max(expected)) < 0.06
    place = chooser.choose([None, *keys], [])
    assert keys[place - 1] in keys
    assert place > 0


def test_the_only_nominee_is_taken() -> None:
    step = step_of(optimizer(RandomStrategy()))
    chooser = EntropyChooser(SMALL, step, WORDS, np.random.default_rng(0))
    assert chooser.choose([None, "aabbb", "aabbb"], []) == 1


def test_the_random_portfolio_takes_all_members_alike() -> None:
    step = Step(None, None, [], [], 0, 3)  # type: ignore[arg-type]
    chooser = UniformChoice().chooser(step, [], np.random.default_rng(0))
    counts = np.bincount([chooser.choose(["a", None, "c"], []) for _ in range(400)], minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 200) < 3 * 10
    counts = np.bincount([chooser.choose(["a", "b", "c"], []) for _ in range(900)], minlength=3)
    assert abs(counts - 300).max() < 3 * np.sqrt(200)


class _Means:
    """A surrogate of which only posterior means are asked for."""

    def __init__(self, means: dict[str, float]) -> None:
        self.means = means

    def conditioned(self, pending: Sequence[str] = ()) -> Any:
        return self

    def at(self, keys: Sequence[str]) -> Any:
        self.moments = self
        self.mean = torch.tensor([[self.means[key] for key in keys]], dtype=torch.float64)
        return self

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        return {}

    def fit(self) -> None: ...

    predict = untransform = state_dict = load_state_dict = fit


def test_weights_of_hedge_by_hand() -> None:
    rule = Hedge(eta=2.0)
    surrogate: Any = _Means({"a": 1.0, "b": 0.5, "c": -1.0})
    step = Step(surrogate, None, [], [], 4, 2)  # type: ignore[arg-type]
    rule.learn(step)
    chooser = rule.chooser(step, [], np.random.default_rng(0))
    assert rule.weights(2).tolist() == [0.5, 0.5]
    chooser.choose(["a", "b"], [])
    chooser.choose(["c", None], ["a"])
    rule.learn(step)
    assert rule.gains == []  # nothing new is known
    later = Step(surrogate, None, [], [], 5, 2)  # type: ignore[arg-type]
    rule.learn(later)
    # Of two strings, on average: (1 - 1) / 2 for the first; (0.5 - 1) / 2 for the second, which nominated once.
    assert rule.gains == pytest.approx([0.0, -0.25])
    assert rule.weights(2) == pytest.approx([1 / (1 + np.exp(-0.5)), 1 / (1 + np.exp(0.5))])
    rule.learn(later)
    assert rule.gains == pytest.approx([0.0, -0.25])  # each once
    other = Hedge(eta=2.0)
    other.load_state_dict(rule.state_dict())
    assert other.state_dict() == rule.state_dict()
    rule.reset()
    assert rule.weights(2).tolist() == [0.5, 0.5]


def test_limits_of_a_batch_are_kept() -> None:
    limits = BatchLimits(max_similarity=0.5)
    for search in ("auto", TINY):
        space = CandidateSet(WORDS, kind="text") if search == "auto" else StringSpace("ab", 6)
        made = optimizer(Portfolio(["logei", "ucb", RandomStrategy()], SMALL, gp(), search), space, limits=limits)
        first, second = made.ask(2)
        assert sum(a != b for a, b in zip(first, second, strict=True)) >= len(first) / 2


def test_failures_count_for_each_member() -> None:
    rule = Recording(0)
    made = Optimizer(WORDS, strategy=Portfolio(["logei", "ucb"], rule, gp()), initial=16, seed=0)
    strings = made.ask()
    made.tell(strings, [float("nan") if "bb" in string else value(string) for string in strings])
    asked = made.ask(4)
    assert sum("bb" in string for string in asked) <= 1
    assert sum("bb" in (slot[0][1] or "") for slot in rule.seen) <= 1


def test_it_is_made_again_from_its_description() -> None:
    members = ["gibbon", UpperConfidenceBound(2.0), RandomStrategy(), ThompsonSampling(50)]
    portfolio = Portfolio(members, Hedge(0.5), search=TINY)
    again = from_config(portfolio.config())
    assert again.config() == portfolio.config()
    assert again.names == ["gibbon", "ucb", "RandomStrategy", "thompson"]
    assert again.rule.eta == 0.5


def test_a_strategy_can_serve_several_searches() -> None:
    strategy = Portfolio(["gibbon", LFBO()], Hedge(), gp())
    first = run(optimizer(strategy))
    assert run(optimizer(strategy)) == first


def test_members_at_random_only_are_no_model() -> None:
    made = optimizer(Portfolio([RandomAcquisition(), RandomStrategy()], "random", gp()))
    assert len(set(made.ask(5))) == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Portfolio([]), "expected a list of acquisition functions"),
        (lambda: Portfolio("gibbon"), "expected a list of acquisition functions"),
        (lambda: Portfolio(["gibon"]), "unknown acquisition function 'gibon'"),
        (lambda: Portfolio([LFBO]), r"is a class: give an object, as in LFBO\(\)"),
        (lambda: Portfolio([3]), "3 can be no member of a portfolio"),  # type: ignore[list-item]
        (lambda: Portfolio(rule="best"), "unknown rule of a portfolio 'best'; expected one of esp, random, hedge"),
        (lambda: Hedge(0.0), "eta is 0.0; expected a positive number"),
        (lambda: EntropySearch(draws=0), "draws is 0; expected an integer, at least 1"),
        (lambda: Optimizer(WORDS, strategy=Portfolio(["sal", "ucb"], "esp", gp())), "sal asks what draws"),
        (lambda: Optimizer(WORDS, strategy=Portfolio(["ucb", "sal"], "esp", gp())), "sal asks what draws"),
        (
            lambda: Optimizer(WORDS, strategy=Portfolio(), contexts=Contexts.of_plates()),
            "Portfolio knows one way to measure",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
