"""The sub-sequence kernel: published values, enumeration, gradients, and use inside gpytorch and botorch."""

from __future__ import annotations

import copy
import pickle

import gpytorch
import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.kernels import ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel
from seqopt.kernels import subsequence as module

WORDS = ["genetics", "genomic", "genomes"]
ENGINES = ["reference", "cpu"]

text = st.text(alphabet="abc", max_size=10)
decays = st.floats(0.01, 1.0)


def tokens(strings, width=None):
    return Encoder().encode(strings).to_tensor(width)


def random_strings(count, rng, shortest=4, longest=14, alphabet="abcd"):
    return ["".join(rng.choice(list(alphabet), size=rng.integers(shortest, longest + 1))) for _ in range(count)]


@pytest.mark.parametrize("engine", ENGINES)
class TestPublishedValues:
    def test_thesis_example(self, engine):
        raw = SubsequenceKernel(5, 0.8, 0.5, normalize=False, engine=engine).gram(WORDS).numpy()
        assert raw[0, 0] == pytest.approx(16.040100870, abs=1e-9)
        assert raw[0, 1] == pytest.approx(5.721640166, abs=1e-9)
        assert raw[0, 2] == pytest.approx(6.165169523, abs=1e-9)
        assert raw[1, 2] == pytest.approx(7.535275622, abs=1e-9)
        normalised = SubsequenceKernel(5, 0.8, 0.5, engine=engine).gram(WORDS).numpy()
        assert normalised[0, 1] == pytest.approx(0.423125604, abs=1e-9)
        assert normalised[1, 2] == pytest.approx(0.624186955, abs=1e-9)
        other = SubsequenceKernel(3, 0.5, 0.9, engine=engine).gram(WORDS).numpy()
        assert other[0, 2] == pytest.approx(0.569084516, abs=1e-9)

    def test_derivatives_of_the_thesis_example(self, engine):
        kernel = SubsequenceKernel(5, 0.8, 0.5, engine=engine)
        x = tokens(WORDS)
        for value in (kernel(x[:1], x[2:]).to_dense(), kernel(x).to_dense()[0, 2]):
            gradients = torch.autograd.grad(value, [kernel.raw_match_decay, kernel.raw_gap_decay])
            assert gradients[0].item() == pytest.approx(-0.814014988, abs=1e-9)
            assert gradients[1].item() == pytest.approx(-0.262545504, abs=1e-9)

    @pytest.mark.parametrize(("decay", "expected"), [(2.0, 504.0), (0.8, 5.9437056)])
    def test_decay_by_span(self, engine, decay, expected, brute_force):
        # Decaying by span with one lambda is a match decay and a gap decay of lambda. A lambda of 2 is
        # outside the box, but the kernel is a polynomial in lambda, which enumeration evaluates anywhere.
        assert brute_force.kernel("cata", "gatta", 5, decay, decay) == pytest.approx(expected, rel=1e-12)
        if decay <= 1.0:
            kernel = SubsequenceKernel(5, decay, decay, normalize=False, engine=engine)
            assert kernel.gram(["cata"], ["gatta"]).item() == pytest.approx(expected, rel=1e-12)

    def test_contribution_of_a_gappy_subsequence(self, engine, brute_force):
        match, gap = 0.7, 0.6
        assert brute_force.contribution("genetics", "genic", match, gap) == pytest.approx(match**5 * gap**2)
        # The only sub-sequences of order 5 that "genic" shares with "genetics" are its own.
        encoder = Encoder()
        sums, _ = module.order_sums(encoder.encode(["genetics"]), encoder.encode(["genic"]), gap, 5, engine=engine)
        assert match**5 * sums[4].item() == pytest.approx(match**5 * gap**2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("normalize", [True, False])
def test_gram_is_that_of_enumeration(engine, normalize, brute_force):
    rng = np.random.default_rng(0)
    strings = ["", "x", *random_strings(4, rng, 0, 9, "ab"), "yyxy"]
    expected = np.array([[brute_force.kernel(a, b, 3, 0.7, 0.4) for b in strings] for a in strings])
    if normalize:
        roots = np.sqrt(np.diagonal(expected))
        roots[0] = 1.0
        expected = expected / np.outer(roots, roots)
    kernel = SubsequenceKernel(3, 0.7, 0.4, normalize, engine=engine)
    np.testing.assert_allclose(kernel.gram(strings), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel.gram(strings[:3], strings), expected[:3], rtol=1e-12, atol=1e-15)
    x = tokens(strings)
    with torch.no_grad():
        np.testing.assert_allclose(kernel(x).to_dense(), expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(kernel(x[2:], x).to_dense(), expected[2:], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(kernel(x, diag=True), np.diagonal(expected), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(
            kernel(x, x.flip(0), diag=True), np.diagonal(expected[:, ::-1]), rtol=1e-12, atol=1e-15
        )


@settings(deadline=None, max_examples=25)
@given(strings=st.lists(text, min_size=1, max_size=8), match=decays, gap=decays)
def test_gram_is_symmetric_positive_semidefinite_and_bounded(strings, match, gap):
    gram = SubsequenceKernel(3, match, gap).gram(strings).numpy()
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(np.diagonal(gram), [float(len(string) > 0) for string in strings])
    assert np.all(gram >= 0)
    assert np.all(gram <= 1 + 1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10


@settings(deadline=None, max_examples=25)
@given(strings=st.lists(text, min_size=1, max_size=6), extra=st.integers(0, 7), seed=st.integers(0, 99))
def test_padding_and_numbering_make_no_difference(strings, extra, seed):
    kernel = SubsequenceKernel(3)
    x = tokens(strings)
    expected = kernel(x).to_dense()
    padded = torch.nn.functional.pad(x, (0, extra))
    renumbered = np.concatenate([[0], 1 + np.random.default_rng(seed).permutation(600)])
    torch.testing.assert_close(kernel(padded).to_dense(), expected, rtol=0, atol=1e-15)
    torch.testing.assert_close(kernel(padded, padded.flip(0)).to_dense(), expected.flip(1), rtol=1e-12, atol=1e-15)
    other = torch.from_numpy(renumbered[x.long().numpy()].astype(np.float64))
    torch.testing.assert_close(kernel(other).to_dense(), expected, rtol=0, atol=1e-15)


@settings(deadline=None, max_examples=25)
@given(a=text, b=text)
def test_reversing_both_strings_makes_no_difference(a, b):
    kernel = SubsequenceKernel(3, normalize=False)
    forwards, backwards = kernel.gram([a], [b]).item(), kernel.gram([a[::-1]], [b[::-1]]).item()
    assert forwards == pytest.approx(backwards, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("cache_bytes", [0, 2**20])
def test_gradients_are_those_of_finite_differences(engine, normalize, cache_bytes):
    rng = np.random.default_rng(1)
    x = tokens(["", *random_strings(4, rng)])
    kernel = SubsequenceKernel(3, normalize=normalize, engine=engine, cache_bytes=cache_bytes)

    def gram(match, gap, rows, columns, **options):
        kernel._parameters["raw_match_decay"], kernel._parameters["raw_gap_decay"] = match, gap
        return kernel.forward(rows, columns, **options)

    at = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.6, 0.7)]
    for rows, columns, options in (
        (x, x, {}),
        (x[:3], x[2:], {}),
        (x, x, {"diag": True}),
        (x, x.flip(0), {"diag": True}),
    ):
        assert torch.autograd.gradcheck(
            lambda m, g, r=rows, c=columns, o=options: gram(m, g, r, c, **o), at, eps=1e-6, atol=1e-6
        )


def test_decay_of_exactly_one_is_allowed_and_has_a_finite_gradient():
    kernel = SubsequenceKernel(3, match_decay=1.0, gap_decay=1.0)
    value = kernel(tokens(["abcab"]), tokens(["abacb"])).to_dense().sum()
    gradients = torch.autograd.grad(value, list(kernel.parameters()))
    assert kernel.match_decay.item() == kernel.gap_decay.item() == 1.0
    assert all(torch.isfinite(gradient) and gradient != 0 for gradient in gradients)


def test_only_wanted_gradients_are_computed():
    kernel = SubsequenceKernel(3)
    kernel.raw_gap_decay.requires_grad_(False)
    kernel(tokens(WORDS)).to_dense().sum().backward()
    assert kernel.raw_match_decay.grad is not None
    assert kernel.raw_gap_decay.grad is None
    with torch.no_grad():
        assert not kernel(tokens(WORDS)).to_dense().requires_grad


class TestDynamicProgramsAreNotRepeated:
    @pytest.fixture
    def runs(self, monkeypatch):
        count = []
        original = module.order_sums
        monkeypatch.setattr(module, "order_sums", lambda *a, **k: (count.append(1), original(*a, **k))[1])
        return count

    def test_by_other_parameters_but_by_the_gap_decay(self, runs):
        kernel, x = SubsequenceKernel(3), tokens(WORDS)
        scaled = ScaleKernel(kernel)
        scaled(x).to_dense().sum().backward()
        kernel.match_decay = 0.3
        scaled.outputscale = 2.0
        fresh = ScaleKernel(SubsequenceKernel(3, 0.3))
        fresh.outputscale = 2.0
        torch.testing.assert_close(scaled(x).to_dense(), fresh(x).to_dense())
        assert len(runs) == 1 + 1
        kernel.gap_decay = 0.9
        scaled(x).to_dense()
        assert len(runs) == 3

    def test_unless_a_derivative_is_missing(self, runs):
        kernel, x = SubsequenceKernel(3), tokens(WORDS)
        with torch.no_grad():
            kernel(x).to_dense()
        kernel(x).to_dense()
        kernel(x).to_dense()
        assert len(runs) == 2

    def test_within_the_memory_budget(self, runs):
        kernel, x = SubsequenceKernel(3, cache_bytes=2 * 3 * 9 * 8 + 100), tokens(WORDS)
        for _ in range(2):
            kernel(x).to_dense()
        assert len(runs) == 1
        for _ in range(2):
            kernel(x, tokens([*WORDS, "gen"])).to_dense()
        assert len(runs) == 3
        assert kernel._cache._bytes <= kernel._cache.budget


@pytest.mark.parametrize("normalize", [True, False])
def test_cross_and_self_similarity_agree_with_forward(normalize):
    rng = np.random.default_rng(2)
    encoder = Encoder()
    a, b = encoder.encode(["", *random_strings(20, rng)]), encoder.encode(random_strings(7, rng))
    kernel = SubsequenceKernel(5, 0.9, 0.6, normalize)
    width = max(a.width, b.width)
    expected = kernel(a.to_tensor(width), b.to_tensor(width)).to_dense().detach().numpy()
    own_a, own_b = kernel.self_similarity(a), kernel.self_similarity(b)
    np.testing.assert_allclose(kernel.cross(a, b), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.cross(a, b, own_a, own_b), expected, rtol=1e-12)
    single = kernel.cross(a, b, own_a, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-5)
    symmetric = kernel.cross(a)
    np.testing.assert_allclose(symmetric, kernel.cross(a, a), rtol=1e-12, atol=1e-15)
    raw = SubsequenceKernel(5, 0.9, 0.6, normalize=False)
    np.testing.assert_allclose(own_a, np.diagonal(raw.cross(a)), rtol=1e-12)


@pytest.mark.parametrize("shape", [(2,), (3, 2)])
def test_batches_of_inputs_and_of_decays(shape):
    rng = np.random.default_rng(3)
    count = int(np.prod(shape))
    x = tokens(random_strings(4 * count, rng, 14)).reshape(*shape, 4, -1)
    matches = torch.from_numpy(rng.uniform(0.2, 1.0, shape))
    gaps = torch.from_numpy(rng.uniform(0.2, 1.0, shape))
    batch = SubsequenceKernel(3, matches, gaps, batch_shape=torch.Size(shape))
    one = SubsequenceKernel(3, 0.5, 0.5)
    for inputs, kernel in ((x, one), (x, batch), (x[(0,) * len(shape)], batch)):
        gram, cross = kernel(inputs).to_dense(), kernel(inputs, inputs[..., :2, :]).to_dense()
        assert gram.shape == (*shape, 4, 4)
        assert cross.shape == (*shape, 4, 2)
        for index in np.ndindex(shape):
            element = SubsequenceKernel(
                3,
                kernel.match_decay.expand(shape)[index].item(),
                kernel.gap_decay.expand(shape)[index].item(),
            )
            alone = element(inputs[index] if inputs.dim() > 2 else inputs).to_dense()
            torch.testing.assert_close(gram[index], alone)
            torch.testing.assert_close(cross[index], alone[:, :2])
    torch.testing.assert_close(batch(x, diag=True), torch.ones(*shape, 4, dtype=torch.float64))
    batch(x).to_dense().sum().backward()
    assert batch.raw_gap_decay.grad.shape == shape
    index = (0,) * len(shape)
    assert batch[index].match_decay.item() == matches[index].item()
    with pytest.raises(InputError, match="batch shape"):
        batch.gram(["a"])


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
def test_every_column_as_a_batch_of_symbols():
    x = tokens(["ab", "aa", "b"])
    gram = SubsequenceKernel(3)(x, last_dim_is_batch=True).to_dense()
    expected = [[[1, 1, 0], [1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 0]]]
    torch.testing.assert_close(gram, torch.tensor(expected, dtype=torch.float64))


def test_active_dims_dtype_and_composition():
    x = tokens(WORDS)
    other = torch.linspace(0, 1, 3, dtype=torch.float64)[:, None]
    both = torch.cat([x, other], dim=-1)
    width = x.shape[-1]
    strings = SubsequenceKernel(3, active_dims=tuple(range(width)))
    smooth = gpytorch.kernels.RBFKernel(active_dims=(width,)).double()
    k, r = strings(both).to_dense(), smooth(both).to_dense()
    torch.testing.assert_close((strings + smooth)(both).to_dense(), k + r)
    torch.testing.assert_close((strings * smooth)(both).to_dense(), k * r)
    torch.testing.assert_close(ScaleKernel(strings)(both, diag=True), ScaleKernel(strings)(both).diagonal())
    single = SubsequenceKernel(3)(x.float()).to_dense()
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), k, rtol=1e-5, atol=1e-6)


def test_copies_pickles_and_state_dicts():
    x = tokens(WORDS)
    kernel = SubsequenceKernel(
        3,
        0.7,
        0.3,
        match_decay_prior=gpytorch.priors.UniformPrior(0.0, 1.0),
        gap_decay_prior=gpytorch.priors.NormalPrior(0.5, 0.2),
    )
    expected = kernel(x).to_dense()
    for clone in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert len(clone._cache) == 0
        torch.testing.assert_close(clone(x).to_dense(), expected)
        clone.gap_decay = 0.9
    torch.testing.assert_close(kernel(x).to_dense(), expected)
    fresh = SubsequenceKernel(3)
    fresh.load_state_dict(kernel.state_dict(), strict=False)
    torch.testing.assert_close(fresh(x).to_dense(), expected)


class TestFitting:
    def make(self, **options):
        rng = np.random.default_rng(4)
        strings = random_strings(20, rng, 8, 14)
        y = torch.tensor([[string.count("ab") + string.count("c")] for string in strings], dtype=torch.float64)
        kernel = ScaleKernel(SubsequenceKernel(3, **options))
        return SingleTaskGP(tokens(strings), (y - y.mean()) / y.std(), covar_module=kernel, outcome_transform=None)

    def test_bounds_reach_the_optimiser_and_hold(self):
        model = self.make(gap_decay_bounds=(0.3, 0.6), match_decay_bounds=(0.2, 1.0))
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        _, bounds = get_parameters_and_bounds(mll)
        kernel = model.covar_module.base_kernel
        for name, expected in (("raw_gap_decay", (0.3, 0.6)), ("raw_match_decay", (0.2, 1.0))):
            found = bounds[f"model.covar_module.base_kernel.{name}"]
            assert tuple(map(float, found)) == pytest.approx(expected)
        before = mll(model(*model.train_inputs), model.train_targets).item()
        fit_gpytorch_mll(mll)
        mll.train()
        assert mll(model(*model.train_inputs), model.train_targets).item() > before
        assert 0.3 <= kernel.raw_gap_decay.item() <= 0.6
        assert 0.2 <= kernel.raw_match_decay.item() <= 1.0

    def test_frozen_at_one(self):
        model = self.make(gap_decay=1.0)
        kernel = model.covar_module.base_kernel
        kernel.raw_gap_decay.requires_grad_(False)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        assert kernel.gap_decay.item() == 1.0
        assert kernel.match_decay.item() != 0.8

    def test_priors_enter_the_likelihood_and_can_be_sampled(self):
        prior = gpytorch.priors.UniformPrior(0.4, 0.5)
        model = self.make(gap_decay=0.45, gap_decay_prior=prior)
        names = [name for name, *_ in model.named_priors()]
        assert any(name.endswith("gap_decay_prior") for name in names)
        sampled = model.covar_module.base_kernel.sample_from_prior("gap_decay_prior")
        assert sampled is None
        assert 0.4 <= model.covar_module.base_kernel.gap_decay.item() <= 0.5

    def test_another_optimiser_may_leave_the_box(self):
        kernel = SubsequenceKernel(3, gap_decay_bounds=(0.1, 0.9))
        with torch.no_grad():
            kernel.raw_gap_decay.fill_(1.7)
        assert kernel.gap_decay.item() == 0.9
        torch.testing.assert_close(kernel.gram(WORDS), SubsequenceKernel(3, gap_decay=0.9).gram(WORDS))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "order is 0"),
        ({"order": True}, "order is True"),
        ({"match_decay": 0.0}, r"match_decay is 0.0; it must lie in \[0.0001, 1\]"),
        ({"gap_decay": 1.2}, r"gap_decay is 1.2; it must lie in \[0.0001, 1\]"),
        ({"gap_decay": float("nan")}, "gap_decay is nan"),
        ({"gap_decay": "much"}, "gap_decay is 'much'; expected a number"),
        ({"gap_decay_bounds": (0.0, 1.0)}, r"gap_decay_bounds are \(0.0, 1.0\)"),
        ({"match_decay_bounds": (0.5, 1.5)}, "match_decay_bounds"),
        ({"engine": "abacus"}, "abacus"),
    ],
)
def test_bad_settings_are_explained(arguments, message):
    with pytest.raises(InputError, match=message):
        SubsequenceKernel(**arguments)


def test_bad_assignments_and_inputs_are_explained():
    kernel = SubsequenceKernel()
    with pytest.raises(InputError, match=r"gap_decay is 2.0; it must lie in \[0.0001, 1\]"):
        kernel.gap_decay = 2.0
    assert kernel.gap_decay.item() == 0.5
    with pytest.raises(InputError, match="item 1 is 3 of type int"):
        kernel.gram(["a", 3])
    with pytest.raises(InputError, match="whole numbers"):
        kernel(torch.tensor([[0.5, 1.0]], dtype=torch.float64)).to_dense()
    with pytest.raises(InputError, match="padding"):
        kernel(torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)).to_dense()
