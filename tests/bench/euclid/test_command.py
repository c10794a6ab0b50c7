import json

import pytest

from seqopt.bench.euclid.command import main, planned
from seqopt.bench.euclid.tasks import SLOW, SLOW_SEEDS, TASKS


def test_runs_are_planned_seed_by_seed_and_fewer_of_the_slow_methods():
    jobs = planned(["batch"], ["shekel-5", "shekel-1"])
    seeds = [job.seed for job in jobs]
    assert seeds == sorted(seeds)
    assert set(seeds) == set(range(10))
    for name in ("shekel-5", "shekel-1"):
        for method in TASKS[name].methods:
            count = sum(job.task == name and job.method == method for job in jobs)
            assert count == (SLOW_SEEDS if method in SLOW else 10)
    assert not planned(["plates"], ["shekel-5"])
    assert {job.seed for job in planned(["plates"], methods=["bosh"], seeds=2, first_seed=5)} == {5, 6}


@pytest.mark.slow
def test_the_command_stores_runs_resumes_and_writes_its_section(tmp_path, capsys):
    document = tmp_path / "results.md"
    argv = ["--tasks", "forrester", "--methods", "ei", "--seeds", "2", "--steps", "1", "--jobs", "1"]
    argv += ["--results", str(tmp_path), "--document", str(document)]
    main(argv)
    lines = (tmp_path / "ei.jsonl").read_text().splitlines()
    assert [json.loads(line)["job"]["seed"] for line in lines] == [0, 1]
    main([*argv, "--check"])
    assert (tmp_path / "ei.jsonl").read_text().splitlines() == lines
    printed = capsys.readouterr().out
    assert "2 of 2 runs are there already" in printed
    assert "checked 2 runs" in printed
    section = document.read_text()
    assert section.count("<!-- begin euclid-fidelity -->") == 1
    row = next(line for line in section.splitlines() if line.startswith("| EI |"))
    assert row.split("|")[2].strip() == "2"


def test_bad_options_are_refused(capsys):
    for argv in (["--steps", "3"], ["--seeds", "0"], ["--first-seed", "-1"], ["--tasks", "nonesuch"]):
        with pytest.raises(SystemExit):
            main(argv)
    assert "--results" in capsys.readouterr().err
