"""Surrogates with features of a user's own model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqopt import maximize
from seqopt.encoding import feature_file
from seqopt.errors import InputError
from seqopt.kernels import OnField
from seqopt.models import ColumnMean, Features, FullyBayesianGP, StringGP, SurrogatePlan, resolve_surrogate
from seqopt.optimizer import Optimizer
from seqopt.spaces import CandidateSet, StringSpace
from seqopt.strategies import Near
from seqopt.strings.mutations import mutant
from seqopt.utils.config import config_of, from_config

RNG = np.random.default_rng(0)
STRINGS = ["".join(RNG.choice(list("ACDEFGHIKLMNPQRSTVWY"), 5)) for _ in range(60)]
EMBEDDING = RNG.standard_normal((60, 3))
VALUES = np.sin(EMBEDDING[:, 0]) + 0.5 * EMBEDDING[:, 1]
SPACE = CandidateSet(STRINGS, kind="protein")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    order = RNG.permutation(60)  # strings say whose features they are, whatever their order
    np.savez(tmp_path / "f.npz", strings=np.array(STRINGS)[order], embedding=EMBEDDING[order])
    return tmp_path / "f.npz"


def error(plan: SurrogatePlan) -> float:
    gp = plan.for_space(SPACE)
    gp.fit(STRINGS[:40], VALUES[:40], rng=np.random.default_rng(1))
    return float(np.abs(gp.predict(STRINGS[40:])[0] - VALUES[40:]).mean())


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "matern", "linear"])
@pytest.mark.parametrize("name", ["features", "sites"])
def test_features_that_tell_the_values_predict_them(path: Path, name: str, kernel: str) -> None:
    assert error(SurrogatePlan(name, features=Features(path, kernel))) < 0.6 * error(SurrogatePlan("sites"))


def test_a_mixture_weighs_features_as_one_more_kernel(path: Path) -> None:
    gp = SurrogatePlan(features=Features(path)).for_space(SPACE)
    assert isinstance(gp, FullyBayesianGP)
    kernels = [kernel.kernel for kernel in gp.kernels if isinstance(kernel, OnField)]
    assert [type(kernel).__name__ for kernel in kernels] == [
        *("SubsequenceKernel", "NgramKernel", "OneHotKernel", "HammingKernel", "SubstitutionKernel", "SitesKernel"),
        "SmoothFeatureKernel",
    ]
    gp.fit(STRINGS[:40], VALUES[:40], rng=np.random.default_rng(1))
    assert gp.diagnostics[-1].weight > 0.8


def test_counts_are_compared_by_what_they_share(tmp_path: Path) -> None:
    counts = RNG.integers(0, 4, (60, 6))
    np.save(tmp_path / "counts.npy", counts)
    gp = SurrogatePlan("features", features=Features(tmp_path / "counts.npy", "tanimoto")).for_space(SPACE)
    assert isinstance(gp, StringGP)
    a, b = counts[:2].astype(float)
    found = gp.kernel.cross(gp.encoder.encode(STRINGS[:2]))
    assert found[0, 1] == pytest.approx(a @ b / (a @ a + b @ b - a @ b))
    np.save(tmp_path / "below.npy", counts - 1)
    with pytest.raises(InputError, match="has numbers below 0"):
        Features(tmp_path / "below.npy", "tanimoto")


@pytest.mark.slow
def test_a_search_chooses_the_same_with_features_in_memory_and_in_their_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = []
    for held in (feature_file.HELD_BYTES, 200):
        monkeypatch.setattr(feature_file, "HELD_BYTES", held)
        plan = SurrogatePlan(
            "sites", features=Features(path), mean=ColumnMean(dict(zip(STRINGS, VALUES, strict=True)), "v")
        )
        optimizer = Optimizer(SPACE, surrogate=plan, initial=12, batch_size=3, seed=3)
        for _ in range(2):
            strings = optimizer.ask()
            optimizer.tell(strings, [float(VALUES[STRINGS.index(string)]) for string in strings])
        chosen.append([row.string for row in optimizer.observations.rows])
    assert chosen[0] == chosen[1]


def test_a_plan_is_written_down_with_the_checksum_of_its_file(path: Path) -> None:
    plan = SurrogatePlan("features", features=Features(path, "matern"))
    config = config_of(plan)
    made = from_config(config)
    assert made.label == plan.label == "matern on f.npz"
    assert config_of(made) == config
    np.savez(path, strings=np.array(STRINGS), embedding=2 * EMBEDDING)
    with pytest.raises(InputError, match=r"f.npz, which has features of strings, has changed since the search began"):
        from_config(config)


def test_constant_columns_are_left_out_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.save(tmp_path / "f.npy", np.column_stack([EMBEDDING, np.ones(60)]))
    features = Features(tmp_path / "f.npy")
    assert features.bound(SPACE).size == 3
    assert "1 of 4 columns of f.npy are constant and left out (4)" in caplog.text
    caplog.clear()
    from_config(config_of(features))
    assert not caplog.text


def test_rows_of_a_matrix_are_the_candidates_of_a_pool(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", EMBEDDING)
    (tmp_path / "pool.csv").write_text("sequence\n" + "\n".join(STRINGS) + "\n", encoding="utf-8")
    part = CandidateSet(STRINGS[30:], kind="protein")
    with pytest.raises(InputError, match=r"f\.npy has 60 rows, and the pool has 30 candidates"):
        Features(tmp_path / "f.npy").bound(part)
    # What is left of a pool after filters still has the rows of the whole one.
    found = Features(tmp_path / "f.npy", pool=tmp_path / "pool.csv", pool_kind="protein").bound(part)
    np.testing.assert_array_equal(found(STRINGS[31:33]), Features(tmp_path / "f.npy").bound(SPACE)(STRINGS[31:33]))


def test_what_does_not_fit_is_refused(path: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "few.npz", strings=np.array(STRINGS[:50]), embedding=EMBEDDING[:50])
    with pytest.raises(InputError, match=f"no features of 10 of 60 candidates, the first of them '{STRINGS[50]}'"):
        Features(tmp_path / "few.npz").bound(SPACE)
    # A campaign shuffles its candidates: the first is that of the file, with its line there.
    (tmp_path / "pool.csv").write_text("sequence\n" + "\n".join(STRINGS) + "\n", encoding="utf-8")
    shuffled = CandidateSet(STRINGS[::-1], kind="protein")
    with pytest.raises(InputError, match=rf"the first of them '{STRINGS[50]}' \(line 52\)"):
        Features(tmp_path / "few.npz", pool=tmp_path / "pool.csv", pool_kind="protein").bound(shuffled)
    with pytest.raises(InputError, match="features go with a pool"):
        Features(path).bound(StringSpace("AC", 5))
    with pytest.raises(InputError, match="unknown kernel on features 'cosine'"):
        Features(path, "cosine")
    with pytest.raises(InputError, match="give their file"):
        SurrogatePlan("features")
    with pytest.raises(InputError, match="give their file, --features FILE"):
        resolve_surrogate("features", SPACE)
    with pytest.raises(InputError, match="unknown surrogate 'gp'"):
        SurrogatePlan("gp")


def test_a_lead_and_a_plan_are_refused_together() -> None:
    plan = SurrogatePlan("sites", mean=ColumnMean(dict(zip(STRINGS, VALUES.tolist(), strict=True)), "guess"))
    with pytest.raises(InputError, match="a lead has a prior mean of its own"):
        maximize(len, SPACE, near=Near(STRINGS[0], 2), surrogate=plan, initial=4, budget=2)


def test_files_may_name_variants_of_a_parent(tmp_path: Path) -> None:
    parent, names = "MKVLSA", ["K2R", "V3L/L4V", "wt", "S5E"]
    strings = [mutant(parent, name) for name in names]
    pool = tmp_path / "names.csv"
    pool.write_text("mutations,score\n" + "".join(f"{name},{row}\n" for row, name in enumerate(names)))
    np.save(tmp_path / "rows.npy", np.arange(8.0).reshape(4, 2) ** 2)
    rows = "".join(f"{name},{row},{row**2}\n" for row, name in enumerate(names))
    (tmp_path / "table.csv").write_text("mutations,a,b\n" + rows)
    space = CandidateSet(strings, kind="protein")
    by_rows = Features(tmp_path / "rows.npy", pool=pool, pool_kind="protein", parent=parent)
    by_name = Features(tmp_path / "table.csv", parent=parent)
    for features in (by_rows, by_name):
        assert features.bound(space)(strings).shape == (4, 2)
        assert from_config(features.config()).parent == parent
    mean = ColumnMean(pool, "score", kind="protein", parent=parent)
    np.testing.assert_allclose(mean.bound(space)(strings)[:, 0], (np.arange(4) - 1.5) / np.arange(4).std())
    assert from_config(mean.config()).parent == parent
