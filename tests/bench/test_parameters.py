"""Functions that a string kernel draws, and searches of them."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt.bench import parameters
from seqopt.bench.parameters import Job, drawn, main, parameter_error, work


def test_functions_have_the_covariance_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    from seqopt.encoding import Encoder
    from seqopt.kernels import SubsequenceKernel

    monkeypatch.setattr(parameters, "POOL", 6)
    strings, first = drawn(0)
    again = drawn(0)[1]
    assert first.tolist() == again.tolist()
    kernel = SubsequenceKernel(order=3, match_decay=0.8, gap_decay=0.3)
    gram = kernel.cross(Encoder("characters").encode(strings))
    # The same strings with other functions: white under the factor of the covariance.
    whitened = []
    for seed in range(150):
        some, values = drawn(seed)
        covariance = kernel.cross(Encoder("characters").encode(some)) + 1e-9 * np.eye(6)
        whitened.append(np.linalg.solve(np.linalg.cholesky(covariance), values))
    assert np.abs(np.diag(gram) - 1.0).max() < 1e-6
    assert abs(np.mean(whitened)) < 4 / 30
    assert abs(np.var(whitened) - 1.0) < 4 * np.sqrt(2 / 900)


def test_errors_of_parameters_are_those_of_their_logarithms() -> None:
    draws = {"outputscale": [np.e, 1.0], "noise_variance": [0.05, 0.05], "gap_decay": [0.3, 0.3 * np.e]}
    assert parameter_error(draws, 1.0) == pytest.approx((0.5 + 0.0 + 0.5) / 3)
    # Of standardised values: the true ones are in their units.
    halved = {"outputscale": [0.25], "noise_variance": [0.0125], "gap_decay": [0.3]}
    assert parameter_error(halved, 2.0) == pytest.approx(0.0)


@pytest.mark.slow
def test_runs_begin_alike_and_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(parameters, "POOL", 30)
    monkeypatch.setattr(parameters, "EVALUATIONS", 10)
    monkeypatch.setattr(parameters, "DRAWS", 3)
    monkeypatch.setattr(parameters, "SHOWN", (8, 10))
    found = {method: work(Job(method, 1)) for method in ("scorebo", "logei", "random")}
    firsts = {tuple(run["chosen"][:8]) for run in found.values()}
    assert len(firsts) == 1
    for run in found.values():
        assert len(set(run["chosen"])) == 10
        assert len(run["errors"]) == len(run["regret"]) == 3
        assert min(run["regret"]) >= 0.0
    document = tmp_path / "results.md"
    document.write_text("<!-- begin parameters -->\n<!-- end parameters -->\n")
    options = ["--results", str(tmp_path / "runs"), "--document", str(document), "--jobs", "1"]
    main(["--seeds", "2", "--methods", "logei", "random", *options])
    assert "| EI | 2 |" in document.read_text()
    before = (tmp_path / "runs" / "logei.jsonl").read_text()
    main(["--seeds", "2", "--methods", "logei", *options])
    assert (tmp_path / "runs" / "logei.jsonl").read_text() == before
