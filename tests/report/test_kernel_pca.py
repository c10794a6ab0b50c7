"""Maps of kernels, against scikit-learn and by their own invariances."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, ClassVar

import gpytorch
import numpy as np
import pytest
from sklearn.decomposition import PCA, KernelPCA
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import OneHotEncoder

from seqopt.encoding import FeatureEncoder
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel
from seqopt.models import FullyBayesianStringGP, StringGP
from seqopt.report.kernel_pca import component_names, kernel_pca, smoothness
from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, LocalSpace, StringSpace

RNG = np.random.default_rng(0)
MOLECULES = ["".join(p) for p in itertools.product(["C", "CCC", "OC", "c1ccccc1"], ["C", "N", "O"], ["C", "F", "CBr"])]
LETTERS = StringSpace("ACGT", 12).sample(60, RNG)


class Numbers:
    """Strings as vectors: the counts of four letters."""

    name, size = "counts", 4

    def __call__(self, strings: Any) -> np.ndarray:
        return np.array([[float(string.count(letter)) for letter in "ACGT"] for string in strings])


def rbf(lengthscale: float) -> StringGP:
    kernel = gpytorch.kernels.RBFKernel()
    kernel.lengthscale = lengthscale
    return StringGP(kernel, encoder=FeatureEncoder(Numbers()))


def equal_up_to_sign(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-7) -> bool:
    signs = np.sign((a * b).sum(axis=0))
    return bool(np.allclose(a, b * signs, atol=tolerance))


@pytest.mark.parametrize("strings", [LETTERS, StringSpace("ACGT", 12).sample(260, RNG)], ids=["dense", "first few"])
def test_an_rbf_kernel_gives_what_scikit_learn_gives_on_the_features(strings: list[str]) -> None:
    found = kernel_pca(strings, rbf(2.0), components=3, kind="text")
    features = Numbers()(strings)
    theirs = KernelPCA(3, kernel="rbf", gamma=1 / (2 * 2.0**2), eigen_solver="dense").fit(features)
    # The length scale went through single precision.
    assert equal_up_to_sign(found.coordinates, theirs.transform(features), 1e-5)
    others = StringSpace("ACGT", 12).sample(10, RNG)
    ours, expected = found.project(others), theirs.transform(Numbers()(others))
    signs = np.sign((found.coordinates * theirs.transform(features)).sum(axis=0))
    assert np.allclose(ours, expected * signs, atol=1e-5)
    everything = KernelPCA(kernel="rbf", gamma=1 / 8, eigen_solver="dense").fit(features).eigenvalues_
    assert np.allclose(found.explained_variance_ratio, everything[:3] / everything.sum(), atol=1e-5)


def test_the_one_hot_kernel_is_principal_component_analysis_of_one_hot_features() -> None:
    found = kernel_pca(LETTERS, "one-hot", components=4, kind="text")
    features = OneHotEncoder(sparse_output=False).fit_transform([list(string) for string in LETTERS])
    ordinary = PCA(4, svd_solver="full").fit(features)
    assert equal_up_to_sign(found.coordinates, ordinary.transform(features) / np.sqrt(12))
    assert np.allclose(found.explained_variance_ratio, ordinary.explained_variance_ratio_)


def test_an_unnormalised_kernel_stays_unnormalised() -> None:
    strings = ["A", "AA", "AAA", "AAAA", "AAAAAAAAAAAA"]
    lengths = {}
    for normalize in (True, False):
        kernel = SubsequenceKernel(1, 1.0, 1.0, normalize=normalize)
        if normalize:
            # Counts of the only symbol, divided by themselves.
            with pytest.raises(InputError, match="look the same"):
                kernel_pca(strings, StringGP(kernel), components=1, kind="text")
        else:
            lengths = {string: len(string) for string in strings}
            found = kernel_pca(strings, StringGP(kernel), components=1, kind="text")
            # The feature is the number of A's, and one component holds it all.
            expected = np.array(list(lengths.values())) - np.mean(list(lengths.values()))
            assert equal_up_to_sign(found.coordinates, expected[:, None])
            assert found.explained_variance_ratio[0] == pytest.approx(1.0)


SURROGATES = ["ssk", "ssk-bayes", "ngrams", "tanimoto", "minmax", "fragprints", "ssk+minmax", "auto"]


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("tuned", [False, True], ids=["default", "tuned"])
def test_every_surrogate_maps_and_puts_known_strings_where_they_are(name: str, tuned: bool) -> None:
    values = np.array([float(string.count("C")) for string in MOLECULES])
    values[20:] = np.nan
    found = kernel_pca(MOLECULES, name, values=values if tuned else None)
    assert np.allclose(found.project(MOLECULES[5:15]), found.coordinates[5:15], atol=1e-8)
    # Another spelling of the same molecule is the same point.
    assert np.allclose(found.project(["BrCCOC"]), found.project(["COCCBr"]), atol=1e-12)
    assert np.allclose(found.coordinates.mean(axis=0), 0, atol=1e-10)
    assert bool(found.hyperparameters) == tuned
    assert found.values is None or np.isnan(found.values).sum() == len(MOLECULES) - 20


def test_the_coordinates_are_those_of_the_fitted_kernel_of_a_surrogate() -> None:
    values = np.array([float(string.count("A")) for string in LETTERS])
    gp = StringGP(restarts=1)
    gp.fit(LETTERS[:30], values[:30], rng=np.random.default_rng(0))
    found = kernel_pca(LETTERS, gp, components=2, kind="text")
    theirs = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit_transform(gp.similarity(LETTERS, LETTERS))
    assert equal_up_to_sign(found.coordinates, theirs, 1e-7)
    before = found.project(["ACGTACGTACGT"])
    gp.fit(LETTERS[:40], -(values[:40] ** 2), rng=np.random.default_rng(1), full=True)
    assert np.array_equal(found.project(["ACGTACGTACGT"]), before)


def test_a_bayesian_surrogate_is_mapped_by_the_mean_of_its_kernels() -> None:
    values = np.array([float(string.count("A")) for string in LETTERS])
    gp = FullyBayesianStringGP()
    gp.fit(LETTERS[:30], values[:30], rng=np.random.default_rng(0))
    found = kernel_pca(LETTERS, gp, kind="text")
    theirs = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit_transform(gp.similarity(LETTERS, LETTERS))
    assert equal_up_to_sign(found.coordinates, theirs)


def test_a_surrogate_that_only_says_how_similar_strings_are_will_do() -> None:
    class Shared:
        """Similarity is the inner product of letter counts."""

        hyperparameters: ClassVar[dict[str, float]] = {}

        def fit(self, strings: Any, values: Any, *, rng: Any) -> None: ...

        def predict(self, strings: Any) -> Any: ...

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, state: Any) -> None: ...

        def similarity(self, a: Any, b: Any) -> np.ndarray:
            return Numbers()(a) @ Numbers()(b).T

    found = kernel_pca(LETTERS, Shared(), kind="text")
    assert equal_up_to_sign(found.coordinates, PCA(2, svd_solver="full").fit_transform(Numbers()(LETTERS)))

    class Blind(Shared):
        similarity = None  # type: ignore[assignment]

    with pytest.raises(InputError, match="Blind has no kernel"):
        kernel_pca(LETTERS, Blind(), kind="text")


@pytest.mark.parametrize("name", ["ssk", "ssk-bayes", "ngrams"])
def test_strings_of_every_kind_of_space(name: str) -> None:
    spaces = [
        StringSpace("01", min_length=5, max_length=12),
        LocalSpace([["A", "C"]] * 10),
        CodonSpace("MKTAYIAK"),
        GrammarSpace("arithmetic", 3, 9),
        CandidateSet(MOLECULES),
    ]
    for space in spaces:
        strings = space.sample(25, np.random.default_rng(1))
        found = kernel_pca(strings, name, space=space)
        assert np.allclose(found.project(strings[:3]), found.coordinates[:3], atol=1e-8)
        assert 0 < found.explained_variance_ratio.sum() <= 1


def test_genes_by_their_codons() -> None:
    space = CodonSpace("MKTAYIAKQR")
    strings = space.sample(30, np.random.default_rng(1))
    found = kernel_pca(strings, "codons", space=space)
    assert np.allclose(found.project(strings), found.coordinates, atol=1e-8)


def test_a_latent_space(tmp_path: Path) -> None:
    from seqopt.vae import CharacterCodec, NetworkSizes, TrainingSettings, train

    strings = GrammarSpace("arithmetic", 1, 5).sample(80, np.random.default_rng(0))
    sizes = NetworkSizes(latent=3, hidden=16, embedding=4, features=8, memory=4)
    vae = train(
        strings, CharacterCodec.of(strings), sizes, TrainingSettings(epochs=1), rng=np.random.default_rng(1)
    ).vae
    path = tmp_path / "small.vae"
    vae.save(path)
    found = kernel_pca(strings, f"vae:{path}", kind="text")
    theirs = KernelPCA(2, kernel="rbf", gamma=1 / (2 * 3), eigen_solver="dense").fit_transform(vae(strings))
    # The median of the length scale's prior, the square root of the dimension, is where it begins.
    assert equal_up_to_sign(found.coordinates, theirs, 1e-6)
    with pytest.raises(InputError):
        found.project(["x + ~"])


def test_permuting_the_strings_permutes_the_map() -> None:
    strings = StringSpace("ACGT", 14).sample(230, np.random.default_rng(5))
    order = np.random.default_rng(6).permutation(len(strings))
    first, second = kernel_pca(strings, "ssk", kind="text"), kernel_pca([strings[i] for i in order], "ssk", kind="text")
    assert np.allclose(first.coordinates[order], second.coordinates, atol=1e-8)
    assert np.allclose(first.explained_variance_ratio, second.explained_variance_ratio)


def test_one_seed_gives_one_map_with_fixed_signs() -> None:
    strings = StringSpace("ACGT", 14).sample(230, np.random.default_rng(5))
    values = np.random.default_rng(7).standard_normal(len(strings))
    maps = [kernel_pca(strings, "ngrams", values=values, kind="text", learn_from=20, seed=3) for _ in range(2)]
    assert np.array_equal(maps[0].coordinates, maps[1].coordinates)
    largest = np.abs(maps[0].coordinates).argmax(axis=0)
    assert (maps[0].coordinates[largest, [0, 1]] > 0).all()


def test_all_components_explain_all_of_the_variance() -> None:
    found = kernel_pca(LETTERS, "ssk", kind="text", components=len(LETTERS) - 1)
    assert found.explained_variance_ratio.sum() == pytest.approx(1.0)
    assert (np.diff(found.explained_variance_ratio) <= 1e-12).all()
    assert found.coordinates.var(axis=0, ddof=0) / found.coordinates.var(axis=0, ddof=0).sum() == pytest.approx(
        found.explained_variance_ratio
    )


def test_components_without_variance_are_zero() -> None:
    found = kernel_pca(["AA", "AB", "BB", "BA"], rbf(1.0), components=3, kind="text")
    # Two of the strings have the same counts, and of B nothing is counted: two distinct points beside the mean.
    assert np.array_equal(found.explained_variance_ratio[2:], [0.0])
    assert np.array_equal(found.coordinates[:, 2], np.zeros(4))
    assert np.isfinite(found.project(["BBBB"])).all()


def test_equal_strings_are_points_of_their_own_in_one_place() -> None:
    found = kernel_pca(["CCO", "OCC", "CCN", "CCCC"], "minmax")
    assert len(found) == 4
    assert np.allclose(found.coordinates[0], found.coordinates[1])
    assert found.keys[:2] == ("CCO", "CCO")


def test_the_table() -> None:
    values = [1.0, np.nan, 3.0] + [np.nan] * (len(LETTERS) - 3)
    table = kernel_pca(LETTERS, "ngrams", values=values, components=3, kind="text").to_pandas()
    assert table.columns.tolist() == ["string", "key", "x", "y", "component_3", "value"]
    assert table["string"].tolist() == LETTERS
    assert table["value"].isna().sum() == len(LETTERS) - 2
    assert component_names(1) == ["x"]


def test_too_few_measured_strings_leave_the_defaults(caplog: pytest.LogCaptureFixture) -> None:
    values = np.full(len(LETTERS), np.nan)
    values[0] = 1.0
    found = kernel_pca(LETTERS, "ssk", values=values, kind="text")
    assert found.hyperparameters == {}
    assert "1 of 60 strings measured" in caplog.text
    assert np.array_equal(found.coordinates, kernel_pca(LETTERS, "ssk", kind="text").coordinates)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strings": ["CCO", "CCN"]}, "at least 3"),
        ({"strings": "CCO"}, "single string"),
        ({"strings": ["CCO", "CCN", "C1CC", "C(C)(C)(C)(C)C"], "kind": "molecule"}, r"number 2 'C1CC' .* number 3"),
        ({"strings": ["CCO", "CCN", 5]}, "item 2 is 5"),
        ({"strings": MOLECULES, "components": len(MOLECULES)}, "1 to 35"),
        ({"strings": MOLECULES, "components": 0}, "components is 0"),
        ({"strings": MOLECULES, "values": [1.0]}, "one value for each"),
        ({"strings": MOLECULES, "values": ["high"] * 36}, "must be numbers"),
        ({"strings": MOLECULES, "values": [np.inf] + [0.0] * 35}, "value 0 of 'CCC' is inf"),
        ({"strings": MOLECULES, "surrogate": "svm"}, "unknown surrogate"),
        ({"strings": MOLECULES, "surrogate": "one-hot"}, "one length"),
        ({"strings": ["AAA", "AAA", "AAA"], "kind": "text"}, "look the same"),
        ({"strings": MOLECULES, "values": [0.0] * 36, "learn_from": 1}, "learn_from is 1"),
        ({"strings": LETTERS, "surrogate": "minmax", "kind": "text"}, "for molecule strings"),
    ],
)
def test_what_cannot_be_mapped_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        kernel_pca(**arguments)


def test_strings_that_do_not_fit_are_not_projected() -> None:
    with pytest.raises(InputError, match="one length"):
        kernel_pca(LETTERS, "one-hot", kind="text").project(["ACGT"])
    found = kernel_pca(MOLECULES, "minmax")
    with pytest.raises(InputError, match=r"number 1 'C1CC' \(not a SMILES"):
        found.project(["CCO", "C1CC"])
    with pytest.raises(InputError, match="list of strings"):
        found.project("CCO")
    assert found.project([]).shape == (0, 2)


# Smoothness


def test_smoothness_is_the_correlation_with_the_mean_of_the_neighbours() -> None:
    rng = np.random.default_rng(0)
    points, values = rng.random((80, 3)), rng.random(80)
    found = smoothness(points, values, neighbours=4, method="pearson")
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    means = values[np.argsort(distances, axis=1)[:, :4]].mean(axis=1)
    assert found.correlation == pytest.approx(np.corrcoef(values, means)[0, 1])
    ranks = [np.argsort(np.argsort(numbers)) for numbers in (values, means)]
    assert smoothness(points, values, neighbours=4).correlation == pytest.approx(np.corrcoef(*ranks)[0, 1])


def test_smooth_values_have_a_smoothness_near_one_and_shuffled_ones_near_zero() -> None:
    rng = np.random.default_rng(1)
    points = rng.random((1000, 2))
    values = np.sin(3 * points[:, 0]) + points[:, 1]
    assert smoothness(points, values).correlation > 0.97
    shuffled = smoothness(points, rng.permutation(values))
    assert abs(shuffled.correlation - shuffled.shuffled_mean) < 4 * shuffled.shuffled_std
    assert abs(shuffled.shuffled_mean) < 0.02
    # The more of the variance is noise, the less smooth.
    noisy = [smoothness(points, values + s * rng.standard_normal(1000)).correlation for s in (0.1, 0.5, 2.0)]
    assert noisy == sorted(noisy, reverse=True)


def test_the_shuffled_spread_is_that_of_independent_values() -> None:
    rng = np.random.default_rng(2)
    points = rng.random((300, 2))
    near = NearestNeighbors(n_neighbors=10).fit(points).kneighbors(return_distance=False)
    fresh = [np.corrcoef(values, values[near].mean(axis=1))[0, 1] for values in rng.standard_normal((400, 300))]
    found = smoothness(points, rng.standard_normal(300), method="pearson", shuffles=400)
    assert found.shuffled_std == pytest.approx(np.std(fresh), rel=0.15)
    assert found.shuffled_mean == pytest.approx(np.mean(fresh), abs=0.02)


def test_smoothness_does_not_depend_on_scale_rotation_or_a_monotone_transform() -> None:
    rng = np.random.default_rng(3)
    points = rng.random((200, 2))
    values = points[:, 0] + 0.1 * rng.standard_normal(200)
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    first = smoothness(points, values)
    assert smoothness(5 * points @ rotation + 7, values) == first
    assert smoothness(points, 3 * values - 1).correlation == pytest.approx(first.correlation)
    assert smoothness(points, values, seed=1).correlation == first.correlation


def test_points_without_a_value_do_not_count() -> None:
    rng = np.random.default_rng(4)
    points, values = rng.random((100, 2)), rng.random(100)
    holed = values.copy()
    holed[::2] = np.nan
    assert smoothness(points, holed) == smoothness(points[1::2], values[1::2])
    assert smoothness(points, holed).points == 50
    assert np.isnan(smoothness(points, np.ones(100)).correlation)
    with pytest.raises(InputError, match="3 points have a value"):
        smoothness(points[:3], values[:3])
    with pytest.raises(InputError, match="method is 'kendall'"):
        smoothness(points, values, method="kendall")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no values"):
        kernel_pca(LETTERS, "ssk", kind="text").smoothness()
