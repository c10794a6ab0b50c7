"""The command does what is missing, and writes what there is."""

from __future__ import annotations

import json

import pytest

from seqopt.bench.boss import main
from seqopt.bench.boss.command import planned
from seqopt.bench.boss.runs import Job
from seqopt.bench.records import read_records
from seqopt.errors import InputError


def test_plan_has_all_parts_and_goes_seed_by_seed() -> None:
    jobs = planned(["synthetic", "genes", "regression", "molecules"])
    assert len(jobs) == len(set(jobs)) == 7 * 7 * 100 + 3 * 11 * 15 + 3 * 3 + 12 * 15 + 3 * 5 * 15 + 5 * 15
    by_part = {part: {job.method for job in planned([part])} for part in ("synthetic", "genes", "regression")}
    assert "codons-ga" in by_part["genes"] - by_part["synthetic"]
    # Formulas differ in length, so no position of one corresponds to that of another.
    assert "one-hot-ga" in by_part["genes"] - by_part["regression"]
    latent = {"cvae", "gvae", "boss-cvae", "boss-gvae", "cvae-random", "gvae-random"}
    assert by_part["regression"] - by_part["genes"] == latent
    assert {job.method for job in planned(["genes"], ["abl1-1130"])} == {"boss-parts", "boss-bases-parts", "random"}
    assert [job.method for job in planned(["genes"], ["abl1-1130"], ["boss"], 1)] == ["boss"]
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    some = planned(["genes"], ["peptide-10", "thesis-60"], methods=["random"], seeds=2, first_seed=100, steps=4)
    assert some == [Job(task, "random", seed, 4) for seed in (100, 101) for task in ("peptide-10", "thesis-60")]
    assert [job.task for job in planned(["synthetic"], ["01xx4"], ["random"], 1)] == ["01xx4"]


@pytest.mark.slow
def test_runs_that_are_there_are_kept_the_others_done_and_tables_written(tmp_path, capsys) -> None:
    results, document = tmp_path / "runs", tmp_path / "results.md"
    stored = Job("101", "random", 0).path(results)
    options = ["--results", str(results), "--jobs", "1"]
    command = [*options, "--tasks", "101", "--methods", "random", "--steps", "2", "--check"]
    main([*command, "--seeds", "1"])
    [run] = read_records(stored, ["job"])
    run |= {"initial": ["0" * 20, "10101" * 4], "chosen": ["101" + "0" * 17, "10" * 10], "values": [0, 8, 1, 9]}
    stored.write_text(json.dumps(run) + "\n")
    capsys.readouterr()
    main([*command, "--seeds", "2"])
    printed = capsys.readouterr().out
    assert "1 of 2 runs are there already" in printed
    assert "checked 2 runs" in printed
    assert "All methods" in printed
    kept, new = read_records(stored, ["job"])
    assert kept["values"] == [0, 8, 1, 9]
    assert new["job"] == {"task": "101", "method": "random", "seed": 1}
    assert len(new["values"]) == 4
    assert new["record"]["command"].startswith("seqopt bench boss --jobs 1 --tasks")
    assert "viennarna" in new["record"]["versions"]
    assert stored.stat().st_size < 6000
    assert list(tmp_path.iterdir()) == [results]  # other results go into no document by themselves
    stored.write_text(json.dumps(kept) + "\n")
    main([*options, "--report-only", "--document", str(document)])
    assert read_records(stored, ["job"]) == [kept]
    assert "<!-- begin boss-synthetic -->" in document.read_text()


@pytest.mark.slow
def test_runs_with_different_settings_are_not_mixed(tmp_path) -> None:
    results = tmp_path / "runs"
    main(["--results", str(results), "--tasks", "101", "--methods", "random", "--steps", "1", "--seeds", "2"])
    path = Job("101", "random", 1).path(results)
    other, run = read_records(path, ["job"])
    assert len(run["settings"]["surrogate"]["grid"]["gap_decays"]) == 8
    assert len(run["record"]["source_sha256"]) == 16
    run["settings"]["surrogate"]["draws"] = 16
    path.write_text(f"{json.dumps(other)}\n{json.dumps(run)}\n")
    with pytest.raises(InputError, match="different settings"):
        main(["--results", str(results), "--report-only"])


@pytest.mark.parametrize(
    "options", [["--steps", "3"], ["--steps", "0", "--results", "r"], ["--seeds", "0"], ["--first-seed", "-1"]]
)
def test_options_out_of_range(options, capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        main(options)
    assert stop.value.code == 2
    assert options[0] in capsys.readouterr().err
