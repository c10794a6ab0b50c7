"""Terms of the objective against closed forms, and the network against itself, step by step."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from nltk import CFG
from torch.distributions import Normal, kl_divergence

from seqopt.errors import InputError
from seqopt.grammar import Rules
from seqopt.vae import CharacterCodec, Codec, GrammarCodec, NetworkSizes
from seqopt.vae.model import build_network
from seqopt.vae.networks import VariationalNetwork, gaussian_kl, resolve_device, sampled_codes


def test_divergence_of_gaussians() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, log_variance = torch.randn(2, 50, 7, generator=generator, dtype=torch.float64) * 2
    expected = kl_divergence(Normal(mean, (0.5 * log_variance).exp()), Normal(0.0, 1.0))
    torch.testing.assert_close(gaussian_kl(mean, log_variance), expected)


def test_codes_have_the_moments_of_the_posterior() -> None:
    noise = torch.randn(200_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    codes = sampled_codes(torch.tensor(1.5), torch.tensor(0.4, dtype=torch.float64).log(), noise)
    assert abs(float(codes.mean()) - 1.5) < 0.01
    assert abs(float(codes.var()) - 0.4) < 0.01


def draw(network: VariationalNetwork, codec: Codec, points: torch.Tensor, seed: int) -> np.ndarray:
    """Rows written by a decoder that draws each symbol among those that are allowed."""
    generator = torch.Generator().manual_seed(seed)
    writing, state = codec.writing(len(points)), network.start(points)
    rows = np.zeros((len(points), codec.steps), dtype=np.int64)
    features, previous = network.features(points), torch.full((len(points), 1), network.before)
    for step in range(codec.steps):
        contexts = torch.from_numpy(writing.contexts())[:, None]
        logits, state = network.logits(features[:, step : step + 1], contexts, previous, state)
        probability = logits[:, 0].masked_fill(~torch.from_numpy(writing.allowed()), -torch.inf).softmax(dim=1)
        previous = torch.multinomial(probability, 1, generator=generator)
        rows[:, step] = previous[:, 0]
        writing.write(rows[:, step])
    assert not writing.contexts().any()
    return rows


def sizes_of(decoder: int) -> NetworkSizes:
    return NetworkSizes(3, 16, 4, 5, 7, decoder=decoder)


def everything(codec: Codec) -> np.ndarray:
    """All rows that the decoder can write."""
    rows = np.zeros((1, 0), dtype=np.int64)
    for _ in range(codec.steps):
        writing = codec.writing(len(rows))
        for column in rows.T:
            writing.write(column)
        before, symbols = np.nonzero(writing.allowed())
        rows = np.column_stack([rows[before], symbols])
    return rows


@pytest.mark.parametrize(
    ("grammar", "most"),
    [
        ("S -> S '+' T | T\nT -> 'x' | '(' S ')'", 8),
        ("S -> 'a' S 'b' S | ", 9),
        ("S -> A B C\nA -> 'a' | 'p' S\nB -> A A\nC -> 'c' | B", 10),
        # The shortest derivation alone fits; and a symbol whose derivations never do.
        ("S -> S S | 'a' | B\nB -> 'b' 'b' C C\nC -> D D\nD -> 'd' | S", 1),
        ("S -> S 'c' | 'a' | B\nB -> C C\nC -> D D\nD -> 'd'", 7),
        ("ab", 4),
    ],
)
@pytest.mark.parametrize("decoder", [1, 2])
def test_probabilities_of_all_that_can_be_written_sum_to_one(grammar: str, most: int, decoder: int) -> None:
    torch.manual_seed(4)
    codec: Codec
    if "->" in grammar:
        codec = GrammarCodec(Rules.of(CFG.fromstring(grammar)), most, "small")
    else:
        codec = CharacterCodec(grammar, most)
    network = build_network(codec, sizes_of(decoder))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    found = everything(codec)
    rows, contexts = torch.from_numpy(found), torch.from_numpy(codec.contexts(found))
    with torch.no_grad():
        point = torch.randn(1, 3)
        likelihood, _ = network.log_likelihood(point.expand(len(rows), 3), rows, contexts)
        assert likelihood.double().exp().sum().item() == pytest.approx(1.0, abs=1e-5)
        drawn = draw(network, codec, point.expand(20_000, 3), seed=1)
    index = {row.tobytes(): at for at, row in enumerate(found)}
    counts = np.bincount([index[row.tobytes()] for row in drawn], minlength=len(found))
    probability = likelihood.double().exp().numpy()
    error = np.sqrt(probability * (1 - probability) * len(drawn))
    assert (np.abs(counts - probability * len(drawn)) <= 5.0 * error + 5.0).all()


@pytest.mark.parametrize("decoder", [1, 2])
@pytest.mark.parametrize("model", ["character", "grammar"])
def test_likelihood_is_the_product_over_steps_and_sums_to_one(model: str, decoder: int) -> None:
    torch.manual_seed(3)
    if model == "character":
        codec = CharacterCodec("ab", 3)
        strings = ["", *"ab", "aa", "ab", "ba", "bb", *(a + b + c for a in "ab" for b in "ab" for c in "ab")]
    else:
        codec = GrammarCodec.of("arithmetic", ["x+1", "x", "exp(2)", "(3)", "x*x", "2/x"])
        strings = ["x+1", "x", "exp(2)", "(3)", "x*x", "2/x"]
    network = build_network(codec, sizes_of(decoder))
    rows = torch.from_numpy(codec.encode(strings))
    contexts = torch.from_numpy(codec.contexts(rows.numpy()))
    points = torch.randn(1, 3).expand(len(rows), 3)
    likelihood, right = network.log_likelihood(points, rows, contexts)
    features, previous = network.features(points), torch.full((len(rows), 1), network.before)
    state = network.start(points)
    total, writing = torch.zeros(len(rows)), codec.writing(len(rows))
    for step in range(codec.steps):
        at = slice(step, step + 1)
        steps, state = network.logits(features[:, at], contexts[:, at], previous, state)
        logits, previous = steps[:, 0], rows[:, at]
        # What the steps that are left forbid besides: a string of characters must end, a derivation must close.
        logits = logits.masked_fill(~torch.from_numpy(writing.allowed()), -torch.inf)
        writing.write(rows[:, step].numpy())
        probability = logits.softmax(dim=1)
        assert not probability[~torch.from_numpy(codec.possible)[contexts[:, step]]].any()
        total += probability.gather(1, rows[:, step : step + 1])[:, 0].log()
        assert torch.equal(right[:, step], logits.argmax(1) == rows[:, step])
    torch.testing.assert_close(likelihood, total)
    width = int((rows > 0).sum(dim=1).max())
    torch.testing.assert_close(network.features(points, 1), features[:, :1])
    narrow, _ = network.log_likelihood(points, rows[:, :width], contexts[:, :width])
    torch.testing.assert_close(narrow, total)
    short = (rows > 0).sum(dim=1) <= 2
    narrow, still = network.log_likelihood(points[short], rows[short, :2], contexts[short, :2])
    torch.testing.assert_close(narrow, total[short])
    assert torch.equal(still, right[short, :2])
    if model == "character":
        # These are all strings that can be written.
        assert likelihood.double().exp().sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("steps", range(1, 14))
def test_convolutions_see_the_same_pieces_wherever_they_stand(steps: int) -> None:
    torch.manual_seed(0)
    codec = CharacterCodec("abc", steps)
    network = build_network(codec, NetworkSizes(3, 16, 4, 5, 7, channels=6))
    strings = ["ab"[:steps], "cab"[:steps], "", "c" * steps]
    mean, log_variance = network.posterior(torch.from_numpy(codec.encode(strings)))
    assert mean.shape == log_variance.shape == (4, 3)
    assert network.convolutions is not None
    piece = torch.randn(1, 4, 9)
    long = torch.zeros(2, 4, 120)
    long[0, :, 48:57], long[1, :, 52:61] = piece, piece
    seen = network.convolutions(long)  # four positions of the input are one of these, and the ends are far away
    torch.testing.assert_close(seen[0, :, 8:22], seen[1, :, 9:23])


def test_the_second_decoder_begins_with_the_point_and_sees_the_context() -> None:
    torch.manual_seed(6)
    codec = GrammarCodec.of("arithmetic", ["x+1", "x"])
    network = build_network(codec, sizes_of(2))
    state = network.start(torch.tensor([[0.0, 0.0, 0.0], [3.0, -1.0, 2.0]]))
    assert state is not None
    torch.testing.assert_close(state[0, 0], network.beginning.bias.tanh())
    assert not torch.allclose(state[0, 0], state[0, 1])
    nothing, before = torch.zeros(1, 1, 5), torch.full((1, 1), network.before)
    states = [network.logits(nothing, torch.tensor([[context]]), before)[1] for context in (1, 2)]
    assert not torch.allclose(*states)
    assert build_network(codec, sizes_of(1)).start(torch.zeros(2, 3)) is None


@pytest.mark.parametrize("decoder", [1, 2])
def test_no_gradient_is_lost_to_what_is_forbidden(decoder: int) -> None:
    codec = GrammarCodec.of("arithmetic", ["x+1", "x"])
    network = build_network(codec, NetworkSizes(3, 16, decoder=decoder))
    rows = torch.from_numpy(codec.encode(["x+1", "x"]))
    mean, log_variance = network.posterior(rows)
    likelihood, _ = network.log_likelihood(mean, rows, torch.from_numpy(codec.contexts(rows.numpy())))
    (gaussian_kl(mean, log_variance).sum() - likelihood.sum()).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters() if parameter.grad is not None)
    assert float(network.encoder[0].weight.grad.abs().sum()) > 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("channels", -1), ("latent", 0), ("hidden", 2.5), ("memory", -1), ("features", True)),
        *(("decoder", 0), ("decoder", 3)),
    ],
)
def test_sizes_out_of_range(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"{name} is {value!r}"):
        NetworkSizes(**({"latent": 2} | {name: value}))  # type: ignore[arg-type]


def test_devices() -> None:
    assert resolve_device("auto").type in ("cpu", "cuda")
    assert np.array_equal(torch.ones(2, device=resolve_device("cpu")).numpy(), [1, 1])
    for name in ("tpu3", "cuda:99"):
        with pytest.raises(InputError, match=f"device '{name}' cannot be used"):
            resolve_device(name)
