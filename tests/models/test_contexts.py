"""Posteriors of queries with contexts, against one dense joint normal distribution of targets and outcomes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt import CandidateSet
from seqopt.data import Query, as_context
from seqopt.encoding import Encoder
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import CoregionalizationKernel, OneHotKernel, OnField, Product, SubsequenceKernel
from seqopt.models import BlockwisePosterior, GaussianProcess, StringGP
from seqopt.models.covariance import KernelEvaluator
from seqopt.models.gp_state import BatchedGPState
from seqopt.posteriors import Moments, Posterior

LEVELS = ["docking", "assay"]
FACTORS = torch.tensor([[[0.9], [1.1]], [[0.2], [1.0]], [[-0.5], [0.7]]], dtype=torch.float64)
VARIANCES = torch.tensor([[0.3, 0.1], [0.6, 0.2], [0.2, 0.4]], dtype=torch.float64)
DECAYS = [(0.8, 0.5), (0.6, 0.3), (0.9, 0.7)]
CONSTANT, SCALE, NOISE = [0.1, -0.2, 0.0], [1.3, 0.8, 1.0], [0.05, 0.2, 0.1]


def encoder(default="assay"):
    return FieldEncoder({"tokens": Encoder(), "fidelity": ContextEncoder("fidelity", LEVELS, default=default)})


def random_queries(count, rng):
    strings = list(dict.fromkeys("".join(rng.choice(list("ABC"), size=rng.integers(2, 9))) for _ in range(count)))
    return [Query(string, {"fidelity": LEVELS[rng.integers(2)]}) for string in strings]


def level(item):
    return 1 if isinstance(item, str) else LEVELS.index(item.get("fidelity"))


def prior(items, draw):
    """Covariances of items, each in its own context, from the two parts."""
    match, gap = DECAYS[draw]
    names = [item if isinstance(item, str) else item.key for item in items]
    gram = SubsequenceKernel(match_decay=match, gap_decay=gap).gram(names).detach()
    between = FACTORS[draw] @ FACTORS[draw].T + torch.diag(VARIANCES[draw])
    numbers = [level(item) for item in items]
    return SCALE[draw] * gram * between[numbers][:, numbers]


def process(draws, data, values):
    batch = {} if draws == 1 else {"batch_shape": torch.Size([draws])}
    match, gap = (torch.tensor([decays[part] for decays in DECAYS[:draws]], dtype=torch.float64) for part in (0, 1))
    factors, variances = (FACTORS[0], VARIANCES[0]) if draws == 1 else (FACTORS[:draws], VARIANCES[:draws])
    if draws == 1:
        match, gap = float(match[0]), float(gap[0])
    kernel = Product(
        OnField(SubsequenceKernel(match_decay=match, gap_decay=gap, **batch), "tokens"),
        OnField(CoregionalizationKernel(2, factors=factors, variances=variances, **batch), "fidelity"),
    )
    fields = encoder()
    encoded = fields.encode(data)

    def of(numbers):
        return torch.tensor(numbers[:draws], dtype=torch.float64)

    state = BatchedGPState.build(
        KernelEvaluator(kernel, encoded.width),
        list(data),
        encoded,
        torch.as_tensor(values),
        of(CONSTANT),
        of(SCALE),
        of(NOISE),
        torch.zeros(len(data), dtype=torch.float64),
    )
    return GaussianProcess(state, fields)


def dense(draw, data, values, waiting, items):
    """Moments at items: conditioning one joint distribution on the data, and on the outcomes waited for."""
    targets = [item if isinstance(item, str) else item.key for item in items]
    everything = [*data, *waiting, *items, *targets]
    covariance, noise = prior(everything, draw), NOISE[draw]
    n, c, count = len(data), len(waiting), len(items)

    def conditioned(known):
        total = covariance[:known, :known] + noise * torch.eye(known, dtype=torch.float64)
        gain = covariance[:, :known] @ torch.linalg.inv(total)
        return gain, covariance - gain @ covariance[:known]

    gain, left = conditioned(n)
    mean = CONSTANT[draw] + gain @ (torch.as_tensor(values) - CONSTANT[draw])
    _, later = conditioned(n + c)
    outcome, target = n + c + np.arange(count), n + c + count + np.arange(count)
    variance, own, between = left[target, target], left[outcome, outcome] + noise, left[outcome, target]
    return mean[target], left[target][:, target], Moments(
        mean[target], variance, mean[outcome], own, between, own - between.square() / variance,
        later[target, target], later[outcome, outcome] + noise,
    )  # fmt: skip


def assert_moments(found, expected, draw):
    for name in Moments.__dataclass_fields__:
        torch.testing.assert_close(getattr(found, name)[draw], getattr(expected, name), rtol=1e-7, atol=1e-9, msg=name)


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize("blockwise", [False, True])
def test_moments_are_those_of_the_dense_joint_distribution(draws, blockwise):
    rng = np.random.default_rng(3)
    data, waiting, new = random_queries(12, rng), random_queries(3, rng), [*random_queries(8, rng), "ABCA"]
    values = rng.normal(size=len(data))
    fitted = process(draws, data, values)
    given_first = fitted.given(waiting[0])
    posterior = (
        BlockwisePosterior(given_first, [*new, *waiting], block=4) if blockwise else given_first.at([*new, *waiting])
    )
    assert isinstance(posterior, Posterior)
    for place in (len(new) + 1, len(new) + 2):
        posterior = posterior.given(place)
    some = torch.tensor([4, 0, 8])
    joint_mean, joint = posterior.joint(some)
    cross = posterior.cross(some)
    for draw in range(draws):
        mean, covariance, expected = dense(draw, data, values, waiting, [*new, *waiting])
        assert_moments(posterior.moments, expected, draw)
        torch.testing.assert_close(joint_mean[draw], mean[some], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(joint[draw], covariance[some][:, some], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(cross[draw], covariance[:, some], rtol=1e-7, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_conditioning_leaves_the_original_as_it_was(seed, places):
    rng = np.random.default_rng(seed)
    data, new = random_queries(5, rng), random_queries(7, rng)
    new = [new[place % len(new)] for place in range(6)]
    values = rng.normal(size=len(data))
    fitted = process(1, data, values)
    original = fitted.at(new)
    before = {name: getattr(original.moments, name).clone() for name in Moments.__dataclass_fields__}
    posterior, later = original, fitted
    for place in places:
        posterior, later = posterior.given(place), later.given(new[place])
    for name, kept in before.items():
        assert torch.equal(getattr(original.moments, name), kept)
        assert torch.equal(getattr(fitted.at(new).moments, name), kept)
    assert original.conditioned_mean.shape[-1] == 0
    assert posterior.conditioned_mean.shape[-1] == len(places)
    # Conditioning queries one by one is conditioning the process on them.
    _, _, expected = dense(0, data, values, [new[place] for place in places], new)
    for found in (posterior.moments, later.at(new).moments):
        for name in ("mean", "conditional_variance", "remaining_variance"):
            torch.testing.assert_close(getattr(found, name)[0], getattr(expected, name), rtol=1e-6, atol=1e-8)
    # A pending outcome cannot make anything less certain.
    assert (posterior.moments.conditional_variance <= before["conditional_variance"] + 1e-12).all()


def test_a_plain_string_is_its_target_and_a_query_of_the_target_the_same():
    rng = np.random.default_rng(0)
    data = random_queries(9, rng)
    fitted = process(1, data, rng.normal(size=len(data)))
    plain = fitted.at(["ABC", "CAB"]).moments
    queried = fitted.at([Query("ABC", {"fidelity": "assay"}), Query("CAB", {"fidelity": "assay"})]).moments
    for name in Moments.__dataclass_fields__:
        torch.testing.assert_close(getattr(plain, name), getattr(queried, name), rtol=1e-9, atol=1e-12)


def coregionalized_gp(**options):
    kernel = Product(OnField(SubsequenceKernel(), "tokens"), OnField(CoregionalizationKernel(2), "fidelity"))
    return StringGP(kernel, encoder=encoder(**options), restarts=1)


def test_a_string_gp_learns_from_queries_that_a_low_fidelity_tells_of_the_target():
    rng = np.random.default_rng(1)
    strings = ["".join(rng.choice(list("AB"), size=8)) for _ in range(30)]
    truth = {string: float(string.count("AB")) for string in strings}
    low = [Query(string, {"fidelity": "docking"}) for string in strings[:24]]
    high = [Query(string, {"fidelity": "assay"}) for string in strings[:6]]
    both, only = coregionalized_gp(), coregionalized_gp()
    both.fit([*low, *high], [truth[query.key] for query in [*low, *high]], rng=np.random.default_rng(0))
    only.fit(high, [truth[query.key] for query in high], rng=np.random.default_rng(0))
    wanted = np.array([truth[string] for string in strings[24:]])
    error, error_of_few = (np.sqrt(np.mean((gp.predict(strings[24:])[0] - wanted) ** 2)) for gp in (both, only))
    assert error < 0.7 * error_of_few
    assert {"match_decay", "gap_decay"} <= set(both.hyperparameters)
    mean, std = both.predict([Query(strings[24], {"fidelity": "docking"})])
    assert mean.shape == std.shape == (1,)
    restored = coregionalized_gp()
    restored.load_state_dict(both.state_dict())
    restored.fit([*low, *high], [truth[query.key] for query in [*low, *high]], rng=np.random.default_rng(0), full=False)
    np.testing.assert_allclose(restored.predict(strings)[0], both.predict(strings)[0], atol=1e-2)


def test_what_a_model_of_queries_cannot_take_is_said():
    gp = coregionalized_gp()
    assert gp.unsupported(["AB", Query("AB", {"fidelity": "assay"})]) == {}
    (message,) = gp.unsupported([Query("AB", {"fidelity": "guess"})]).values()
    assert "'guess'" in message
    assert "'docking', 'assay'" in message
    with pytest.raises(InputError, match="has no fidelity"):
        coregionalized_gp(default=None).bind(CandidateSet(["AB", "BA"]))
    with pytest.raises(InputError, match="reads the field 'plate'"):
        StringGP(OnField(CoregionalizationKernel(2), "plate"), encoder=encoder())
    # Position by position, strings of other lengths are refused before a fit, behind fields too.
    one_hot = StringGP(OnField(OneHotKernel(), "tokens"), encoder=encoder())
    one_hot.bind(CandidateSet(["AB", "BA"]))
    assert "3 symbols" in one_hot.unsupported(["AB", Query("ABB", as_context({"fidelity": "assay"}))])[1]
