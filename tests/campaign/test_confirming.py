"""Confirming hits in a campaign: plates of repeated measurements, recorded as any results are."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from seqopt.campaign import Campaign, CampaignError, Measurement, confirming
from seqopt.campaign.arms import arms_of, disagreeing_replicates, variance_before
from seqopt.campaign.confirming import KEPT, Confirmed
from seqopt.cli import main
from seqopt.data import Contexts, Query
from seqopt.errors import InputError
from seqopt.kernels import HammingKernel
from seqopt.models import StringGP
from seqopt.models.contexts import coregionalized, hierarchical
from seqopt.spaces import CandidateSet
from seqopt.strategies import MultiFidelity
from seqopt.strategies.arms import ArmPosterior, BayesGap, Situation, forecast
from seqopt.strategies.arms.decision import choose_batch

POOL = [a + b + c for a in "ACDE" for b in "ACDE" for c in "AC"]
NOISE = 0.3


def truth(string: str) -> float:
    return 0.3 * string.count("C") + 0.1 * string.count("D") + 0.1 * POOL.index(string) / len(POOL)


def library(tmp_path: Path) -> Path:
    path = tmp_path / "pool.csv"
    path.write_text("name,sequence\n" + "".join(f"N{row:02d},{one}\n" for row, one in enumerate(POOL)))
    return path


def made(tmp_path: Path, **options: object) -> Campaign:
    given = {"surrogate": "hamming", "batch_size": 4, "transform": None} | options
    found = Campaign.create(tmp_path / "a.seqopt", library(tmp_path), kind="text", objective="y", **given)  # type: ignore[arg-type]
    return found


def measured(campaign: Campaign, seed: int = 0) -> Campaign:
    rng = np.random.default_rng(seed)
    table = campaign.store.path.with_name("first.csv")
    rows = [f"{one},{truth(one) + NOISE * rng.standard_normal()}" for one in POOL[::2]]
    table.write_text("sequence,y\n" + "\n".join(rows) + "\n")
    campaign.record_file(table, history=True)
    return campaign


@pytest.fixture(autouse=True)
def not_far_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """How far it is looked ahead is tested with the arms."""
    monkeypatch.setattr(confirming, "LOOK_AHEAD", 1)
    monkeypatch.setattr(confirming, "LEAST", 12)


@pytest.fixture
def campaign(tmp_path: Path):
    with measured(made(tmp_path)) as found:
        yield found
        assert found.store.check() == []


def fill(path: Path, seed: int, rows: slice = slice(None)) -> None:
    """As a laboratory does: values of some wells."""
    rng = np.random.default_rng(seed)
    with path.open() as file:
        table = list(csv.DictReader(file))
    for row in table[rows]:
        row["y"] = f"{truth(row['sequence']) + NOISE * rng.standard_normal():.3f}"
    with path.open("w") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def on_plate(found: Confirmed) -> list[str]:
    return [well.string for well in found.plate]


@pytest.mark.slow
def test_a_confirmation_from_the_first_plate_to_the_last(campaign: Campaign, tmp_path: Path) -> None:
    found = campaign.confirm(24, top=6, target=0.9999)
    assert (len(found.arms), found.used, len(found.plate), found.waiting) == (6, 0, 6, False)
    predicted = sorted((row.predicted for row in campaign.predict(POOL[::2])), reverse=True)[:6]
    assert sorted((one.prediction.predicted for one in found.arms), reverse=True) == pytest.approx(predicted)
    assert sum(one.probability for one in found.arms) == pytest.approx(1.0)
    assert sum(one.next for one in found.arms) == 6
    used = 0
    for number in range(4):
        path = tmp_path / f"plate{number}.csv"
        campaign.write_confirmation(path, found.plate)
        fill(path, number)
        taken, _ = campaign.record_file(path)
        used += len(taken)
        assert found.plate[0].label == f"C1-{6 * number + 1:03d}"
        found = campaign.confirm()
        assert found.used == used
    assert used == 24
    assert not found.plate
    best = max((one.prediction.string for one in found.arms), key=truth)
    assert truth(best) - truth(found.best.prediction.string) < 0.4
    # Most of the wells were spent on what may be the best.
    spent = {one.prediction.string: one.wells for one in found.arms}
    assert spent[found.best.prediction.string] >= max(spent.values()) - 3


def test_the_same_plate_is_shown_until_results_arrive(campaign: Campaign, tmp_path: Path) -> None:
    first = campaign.confirm(24, top=5, batch=8, target=0.9999)
    state = campaign.store.state
    again = campaign.confirm()
    assert again.plate == first.plate
    assert again.waiting
    assert again.forecast == first.forecast
    assert campaign.store.state == state  # to look changes nothing
    path = tmp_path / "plate.csv"
    campaign.write_confirmation(path, first.plate)
    fill(path, 0, slice(0, 5))
    campaign.record_file(path)
    rest = campaign.confirm()
    assert rest.plate == first.plate[5:]
    assert rest.used == 5
    # The rest is done without.
    following = campaign.confirm(more=True)
    assert following.plate[0].label == "C1-009"
    assert not following.waiting
    assert len(following.plate) == 8


def test_one_well_is_recorded_by_its_label(campaign: Campaign) -> None:
    plate = campaign.confirm(24, top=5, batch=8, target=0.9999).plate
    (row,) = campaign.record(plate[2].label.lower(), 3.5)
    assert (row.key, row.replicate, row.value) == (plate[2].key, "C1-003", 3.5)
    (row,) = campaign.record(plate[0].label, lost="dropped")
    assert (row.key, row.failure) == (plate[0].key, "lost: dropped")
    assert campaign.confirm().plate == (plate[1], *plate[3:])
    with pytest.raises(CampaignError, match="has no well C1-099: its wells are C1-001 to C1-008"):
        campaign.record("C1-099", 3.5)
    with pytest.raises(CampaignError, match="C1-003"):  # it has its result
        campaign.record("C1-003", 3.6)
    campaign.end_confirmation()
    with pytest.raises(CampaignError, match="C1-004 would be a well of a confirmation, and none is under way"):
        campaign.record("C1-004", 3.5)


def test_wells_that_are_handed_out_and_no_longer_planned_are_named(campaign: Campaign) -> None:
    campaign.confirm(24, top=5, batch=8, target=0.9999)
    found = campaign.confirm(3)
    assert len(found.plate) == 3
    assert any("5 wells of the plate at hand are beyond the 3 wells" in remark for remark in found.remarks)
    assert campaign.store.history()[-1].arguments["what"] == "confirmation 1, wells 3 (was 24)"
    found = campaign.confirm(30)
    assert len(found.plate) == 8
    assert not any("beyond" in remark for remark in found.remarks)


def test_wells_hold_what_was_planned_for_them(campaign: Campaign, tmp_path: Path) -> None:
    plate = campaign.confirm(24, top=5, batch=8, target=0.9999).plate
    other = next(well for well in plate if well.string != plate[0].string)
    outside = next(string for string in POOL if string not in on_plate(campaign.confirm()))
    path = tmp_path / "plate.csv"
    for label, string, message in (
        (plate[0].label, other.string, f"'C1-001' is the well of '{plate[0].string}': which of the two"),
        (plate[0].label, outside, f"'C1-001' is the well of '{plate[0].string}'"),
        ("C1-009", other.string, "is no well of the confirmation: its wells are C1-001 to C1-008"),
    ):
        path.write_text(f"replicate,sequence,y\n{label},{string},1.5\n")
        with pytest.raises(CampaignError, match=message):
            campaign.record_file(path, replicates=True)
    assert campaign.confirm().plate == plate
    # A further measurement has another label, or none.
    path.write_text(f"replicate,sequence,y\nmine,{outside},1.5\n")
    campaign.record_file(path, replicates=True)
    assert campaign.confirm().plate == plate


def test_no_more_wells_are_proposed_than_are_left(campaign: Campaign) -> None:
    found = campaign.confirm(8, top=4, batch=6, target=0.9999)
    # Some are wells of the plate, and the others nobody asked for.
    strings = on_plate(found)
    rest = min(strings, key=strings.count)
    for _ in range(5):
        campaign.record(rest, truth(rest), replicate=True)
    found = campaign.confirm()
    assert found.used == 5
    assert len(found.plate) == min(3, 6 - strings.count(rest))


def test_results_count_in_whatever_table_they_come(campaign: Campaign) -> None:
    counts = Counter(on_plate(campaign.confirm(12, top=4, batch=4, target=0.9999)))
    for string, count in counts.items():
        for _ in range(count):
            campaign.record(string, truth(string), replicate=True)
    found = campaign.confirm()
    assert found.used == 4
    assert found.plate[0].label == "C1-005"
    # Of other strings they do not.
    campaign.record(POOL[1], 1.0)
    assert campaign.confirm().used == 4


def test_a_corrected_old_value_is_no_well(campaign: Campaign) -> None:
    found = campaign.confirm(12, top=4, batch=4)
    one = campaign.store.measurements(key=found.best.prediction.key)[0]
    campaign.correct(one.string, 0.5)
    assert campaign.confirm().used == 0


def test_failures_use_wells(campaign: Campaign) -> None:
    found = campaign.confirm(12, top=4, batch=4)
    campaign.record(found.plate[0].string, failure="dropped out", replicate=True)
    after = campaign.confirm()
    assert after.used == 1
    assert len(after.plate) == 3
    assert any("1 well without a value" in remark for remark in after.remarks)


def test_what_was_proposed_can_be_undone_and_is_proposed_again(campaign: Campaign) -> None:
    first = campaign.confirm(12, top=4, batch=4)
    campaign.undo()
    assert KEPT not in campaign.store.settings.extra
    with pytest.raises(CampaignError, match="no confirmation is under way"):
        campaign.confirm()
    assert campaign.confirm(12, top=4, batch=4).plate == first.plate


def test_another_process_goes_on_with_it(campaign: Campaign) -> None:
    first = campaign.confirm(12, top=4, batch=4, rule="top-two", target=0.9999)
    for well in first.plate:
        campaign.record(well.string, truth(well.string), replicate=True)
    with Campaign.open(campaign.store.path) as other:
        found = other.confirm()
        other.undo()
    assert campaign.confirm().plate == found.plate
    json.dumps(campaign.store.settings.to_json())


def test_one_ends_before_another_begins(campaign: Campaign) -> None:
    campaign.confirm(12, top=4, batch=4)
    with pytest.raises(CampaignError, match="confirmation 1, of 4 strings, is under way"):
        campaign.confirm(12, top=5)
    campaign.end_confirmation()
    with pytest.raises(CampaignError, match="no confirmation is under way"):
        campaign.end_confirmation()
    second = campaign.confirm(12, among=POOL[:3], batch=4)
    assert second.plate[0].label == "C2-001"


def test_nothing_is_decided_by_the_model_alone(campaign: Campaign) -> None:
    """Of single values it may take the noise for next to nothing."""
    found = campaign.confirm(12, among=["CCC", "EEA"], batch=6)
    assert found.best.probability > 0.8
    assert not found.decided
    for well in found.plate:
        campaign.record(well.string, truth(well.string), replicate=True)
    after = campaign.confirm()
    assert after.decided
    assert after.best.prediction.string == "CCC"
    assert not after.plate


def test_more_wells_go_on_with_it(campaign: Campaign) -> None:
    found = campaign.confirm(4, top=3, batch=4, target=0.999999)
    for well in found.plate:
        campaign.record(well.string, truth(well.string), replicate=True)
    assert not campaign.confirm().plate
    assert len(campaign.confirm(7).plate) == 3


@pytest.mark.slow
def test_suggestions_are_as_they_would_be_without(campaign: Campaign, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with measured(made(tmp_path / "other")) as other:
        expected = [row.string for row in other.suggest()]
    campaign.confirm(12, top=4, batch=4)
    assert [row.string for row in campaign.suggest()] == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"wells": 12, "among": ["CCC"]}, "there is 1 hit: expected two or more"),
        ({"wells": 12, "among": ["CCC", "CCC"]}, "there is 1 hit: expected two or more"),
        ({"wells": 12, "among": ["CCC", "CCA"], "column": "x"}, "a column goes with a file of hits"),
        ({"wells": 12, "among": ["CCC", 3]}, "3 is no string"),
        ({"wells": 12, "among": ["CCC", "CCA"], "top": 3}, "not both"),
        ({"wells": 0}, "wells"),
        ({"wells": 12, "rule": "luck"}, "there is no rule 'luck'"),
        ({"wells": 12, "target": 95.0}, "the target is 95.0"),
    ],
)
def test_what_cannot_be_confirmed_is_refused(campaign: Campaign, given: dict[str, object], message: str) -> None:
    state = campaign.store.state
    with pytest.raises(InputError, match=message):
        campaign.confirm(**given)  # type: ignore[arg-type]
    assert campaign.store.state == state


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ids.csv", "id\nN00\nN05\nN09\n"),
        ("ids.txt", "N00\n\nN05\nN09\n"),
        ("scores.csv", "name,score\nN00,1.5\nN05,2\nN09,3\n"),
        ("mixed.csv", f"hit\n{POOL[0]}\nN05\nB01-02\n"),
    ],
)
def test_files_of_hits_may_say_what_they_are_called(
    name: str, text: str, campaign: Campaign, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    suggested = campaign.suggest()[1].string
    path = tmp_path / name
    path.write_text(text)
    found = campaign.confirm(12, among=path, batch=4)
    third = suggested if "B01-02" in text else POOL[9]
    assert {arm.prediction.string for arm in found.arms} == {POOL[0], POOL[5], third}
    assert not caplog.records


def test_hits_that_a_file_lists_twice_count_once(
    campaign: Campaign, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "hits.csv"
    path.write_text(f"id\nN00\nN05\nN00\n{POOL[5]}\n")
    assert len(campaign.confirm(12, among=path, batch=4).arms) == 2
    assert "2 rows left out that an earlier one says already (line 4 is line 2, line 5 is line 3)" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id\nN00\nB77-01\n", "hits.csv, line 3: there is no suggestion 'B77-01'"),
        (
            "N00\nN05\nN09\n",
            "hits.csv: the first line, 'N00', was taken for the name of the column, and is a candidate",
        ),
    ],
)
def test_rows_that_mean_no_hit_are_named(campaign: Campaign, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "hits.csv").write_text(text)
    with pytest.raises((InputError, CampaignError), match=message):
        campaign.confirm(12, among=tmp_path / "hits.csv")


def test_hits_may_be_named_as_variants(tmp_path: Path) -> None:
    variants = ["MKVLS", "MKILS", "MRVLS", "MKVLT", "MKVAS", "MEVLS"]
    with Campaign.create(
        tmp_path / "v.seqopt", variants, kind="protein", objective="y", parent="MKVLS", surrogate="ssk", batch_size=2
    ) as campaign:
        for number, one in enumerate(variants[:4]):
            campaign.record(one, float(number))
        path = tmp_path / "hits.csv"
        path.write_text("mutations,plate\nV3I,P1\nK2R,P1\nK2E,P2\n")
        found = campaign.confirm(6, among=path, batch=3)
        assert {arm.prediction.string for arm in found.arms} == {"MKILS", "MRVLS", "MEVLS"}
        campaign.end_confirmation()
        found = campaign.confirm(6, among=["V3I", "MRVLS"], batch=3)
        assert {arm.prediction.string for arm in found.arms} == {"MKILS", "MRVLS"}
        campaign.end_confirmation()
        path.write_text("mutations\nV3I\nL3R\n")
        with pytest.raises(InputError, match=r"hits.csv, line 3: 'L3R': position 3 of the parent is V, not L"):
            campaign.confirm(6, among=path)


def test_there_is_something_to_compare(tmp_path: Path) -> None:
    with made(tmp_path) as campaign, pytest.raises(InputError, match="0 strings with a value cannot be compared"):
        campaign.confirm(12)


def test_what_deserves_a_second_look_is_said(campaign: Campaign) -> None:
    found = campaign.confirm(3, among=["CCC", "CCA", "CAC", "CEC", "EEC"], batch=3)
    said = " ".join(found.remarks)
    assert "3 wells for 5 strings: some are not measured again" in said
    assert "4 of the 5 were never measured (CCC, CAC, CEC, ...)" in said
    assert "there are 0 replicates" in said
    assert len(found.plate) == 3
    campaign.end_confirmation()
    for value in (2.0, 3.0):
        campaign.record("CCA", value, standard_error=0.05, replicate=True)
    # Of a string that is not compared, too: what noise is, all tell.
    for value in (0.5, 9.0):
        campaign.record("EEA", value, standard_error=0.05, replicate=True)
    said = " ".join(campaign.confirm(6, among=["CCC", "CCA", "CAC"]).remarks)
    assert "replicates of EEA (0.5 and 9) differ by more than" in said
    assert "replicates of CCA (2 and 3) differ by more than their standard errors (0.05) explain" in said


def test_replicates_within_their_errors_are_no_surprise() -> None:
    rng = np.random.default_rng(0)
    rows = [
        Measurement(one, one, float(rng.normal(5.0, 0.2)), standard_error=0.2) for one in POOL[:20] for _ in range(3)
    ]
    assert disagreeing_replicates(rows) == []
    far = [Measurement("A", "A", value, standard_error=10.0) for value in (100.0, 1000.0)]
    assert disagreeing_replicates(far, logarithmic=True)


def test_arms_are_the_posterior_of_the_model() -> None:
    strings = POOL[:8]
    model = StringGP(HammingKernel(), restarts=1)
    told = [*strings, *strings[:3]]
    model.fit(told, [truth(one) + 0.1 * place for place, one in enumerate(told)], rng=np.random.default_rng(0))
    keys = [POOL[2], POOL[9], POOL[0]]
    found = arms_of(model, keys)
    mean, covariance = model.posterior(keys)
    offset, unit = model.units
    np.testing.assert_allclose(offset + unit * found.mean[0], mean.numpy())
    np.testing.assert_allclose(unit**2 * found.covariance[0], covariance.numpy(), atol=1e-8)
    assert found.counts[0].tolist() == [2, 0, 2]


def test_only_measurements_as_the_target_are_wells_of_it() -> None:
    contexts = Contexts.of_levels("fidelity", {"dock": 0.1, "assay": 1.0}, target="assay")
    model = coregionalized(CandidateSet(POOL), contexts)
    told = [Query(one, contexts.target) for one in [*POOL[:6], POOL[1]]]
    told += [Query(one, {"fidelity": "dock"}) for one in [*POOL[:8], POOL[0], POOL[0]]]
    values = [truth(one.key) + 50.0 * (one.get("fidelity") == "dock") for one in told]
    model.fit(told, values, rng=np.random.default_rng(0))
    keys = [POOL[0], POOL[1], POOL[7]]
    found = arms_of(model, keys, target=contexts.target)
    assert found.counts[0].tolist() == [1, 2, 0]
    offset, unit = model.units
    np.testing.assert_allclose((offset + unit * found.averages)[0], [values[0], values[1], np.nan])


@pytest.mark.parametrize(("rule", "expected"), [("equal", [1, 1, 1]), ("ugap", [2, 1]), ("ucb-e", [3])])
def test_a_cheap_assay_uses_no_wells_of_the_target(tmp_path: Path, rule: str, expected: list[int]) -> None:
    contexts = Contexts.of_levels("fidelity", {"dock": 0.1, "assay": 1.0}, target="assay")
    assay = {POOL[1]: 5.0, POOL[3]: 5.1, POOL[5]: 4.9}
    dock = [(POOL[1], 90.0), (POOL[1], 91.0), (POOL[1], 92.0), (POOL[3], 60.0), (POOL[5], 61.0), (POOL[5], 60.0)]
    with made(tmp_path, surrogate=None, strategy=MultiFidelity(), contexts=contexts) as campaign:
        for string, value in assay.items():
            campaign.record(string, value, context={"fidelity": "assay"})
        for string, value in dock:
            campaign.record(string, value, context={"fidelity": "dock"}, replicate=True)
        found = campaign.confirm(6, batch=3, top=3, rule=rule)
        assert [one.measured for one in found.arms] == [1, 1, 1]
        assert sorted((one.next for one in found.arms if one.next), reverse=True) == expected


@pytest.mark.parametrize("plate", [None, 0.3])
def test_variances_before_the_wells_of_a_confirmation_are_found_again(plate: float | None) -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((5, 5))
    noise = np.array([0.1, 0.2, 0.3, 0.4, 0.01])
    prior = ArmPosterior.of(
        np.zeros(5), root @ root.T, noise, plate=None if plate is None else plate * np.eye(5), counts=[3, 1, 0, 2, 0]
    )
    posterior = prior
    for arm in (0, 1, 0, 4, 1, 1):
        posterior = posterior.on_fresh_plate().given(np.array([arm]), rng.standard_normal(1))
    assert (posterior.variance < 0.5 * prior.variance)[0, [0, 1, 4]].all()
    np.testing.assert_allclose(variance_before(posterior, [2, 3, 0, 0, 1]), prior.spread, rtol=1e-5)
    np.testing.assert_array_equal(variance_before(posterior, np.zeros(5)), posterior.spread)


def test_variances_before_are_of_comparisons_where_an_offset_hides_the_level() -> None:
    root = np.random.default_rng(2).standard_normal((5, 5))
    prior = ArmPosterior.of(np.zeros(5), root @ root.T + 3.0, 0.2, plate=np.full((5, 5), 1e6))
    posterior = prior
    for arm in (0, 1, 2, 3, 4, 4, 3, 2, 1, 0):
        posterior = posterior.given(np.array([arm]), np.array([float(arm)]))
    assert (posterior.spread < 0.5 * prior.spread).all()
    np.testing.assert_allclose(variance_before(posterior, [2] * 5), prior.spread, rtol=1e-3)


def test_a_plate_shares_what_the_model_says_that_it_does() -> None:
    contexts = Contexts.of_plates()
    model = hierarchical(CandidateSet(POOL), contexts, HammingKernel())
    rng = np.random.default_rng(0)
    told = [Query(one, (("plate", f"P{1 + place % 2}"),)) for place, one in enumerate(POOL)]
    values = [truth(one.key) + 2.0 * (one.context[0][1] == "P2") + 0.1 * rng.standard_normal() for one in told]
    model.fit(told, values, rng=rng)
    keys, fresh = POOL[:3], (("plate", "P3"),)
    found = arms_of(model, keys, fresh)
    assert found.plate is not None
    _, both = model.conditioned().functions([*keys, *(Query(key, fresh) for key in keys)])
    np.testing.assert_allclose(found.plate[0], (both[0, 3:, 3:] - both[0, :3, :3]).numpy(), atol=1e-6)
    # Another plate differs from what plates have in common independently of that.
    np.testing.assert_allclose(both[0, :3, 3:], both[0, :3, :3], atol=1e-6)
    assert found.plate[0].diagonal().min() > 0


def test_means_on_plates_are_without_their_offsets() -> None:
    """Averages are the estimates by least squares of all strings at once, with the offsets that the model expects."""
    contexts = Contexts.of_plates()
    model = hierarchical(CandidateSet(POOL), contexts, HammingKernel())
    rng = np.random.default_rng(0)
    # The first string is the control of three plates, the last two plates share another one.
    strings = [POOL[0], *POOL[1:6], POOL[0], *POOL[6:11], POOL[0], *POOL[11:15], POOL[6]]
    plates = ["P1"] * 6 + ["P2"] * 6 + ["P3"] * 6
    told = [Query(one, (("plate", plate),)) for one, plate in zip(strings, plates, strict=True)]
    shift = {"P1": 0.0, "P2": 20.0, "P3": -7.0}
    values = [truth(one.key) + shift[str(one.get("plate"))] + 0.1 * rng.standard_normal() for one in told]
    model.fit(told, values, rng=rng)
    keys, fresh = [POOL[1], POOL[2], POOL[7], POOL[12], POOL[20]], (("plate", "P4"),)
    found = arms_of(model, keys, fresh)
    # All sixteen measured strings, each a free number.
    every = list(dict.fromkeys(strings))
    process = model.conditioned()
    _, both = process.functions([*every, *(Query(key, fresh) for key in every)])
    count = len(every)
    shared = (both[0, count:, count:] - both[0, :count, :count]).numpy()
    where = np.array([every.index(one) for one in strings])
    same = np.array(plates)[:, None] == np.array(plates)
    joint = same * shared[np.ix_(where, where)] + np.diag(process.state.observed_noise.mean(0).numpy())
    design, inverse = np.eye(count)[where], np.linalg.inv(joint)
    covariance = np.linalg.inv(design.T @ inverse @ design)
    standard = (np.array(values) - model.units[0]) / model.units[1]
    estimates = covariance @ design.T @ inverse @ standard
    places = [every.index(key) for key in keys[:4]]
    assert found.counts[0].tolist() == [1, 1, 1, 1, 0]
    assert np.isnan(found.averages[0, 4])
    expected = estimates[places]
    np.testing.assert_allclose(found.averages[0, :4] - found.averages[0, 0], expected - expected[0], atol=1e-3)
    assert np.abs(model.units[1] * (expected - expected[0])).max() < 3.0  # of plates that differ by 27
    # What their offsets leave is in what they are worth.
    own = covariance[np.ix_(places, places)] - np.diag(found.noise[0, :4])
    centre = np.eye(4) - 0.25
    left = 4 / 3 * np.diag(centre @ own @ centre)
    np.testing.assert_allclose(found.effective[0, :4], 1 / (1 + left / found.noise[0, :4]), rtol=1e-2)


@pytest.mark.parametrize("rule", ["ugap", "ucb-e"])
def test_rules_by_means_do_not_favour_a_plate_with_a_high_offset(tmp_path: Path, rule: str) -> None:
    first, second = {POOL[3]: 9.0, POOL[5]: 8.5}, {POOL[7]: 22.0, POOL[9]: 21.5, POOL[11]: 21.8}
    with made(tmp_path, surrogate=None, plates=12, controls=["EEA"]) as campaign:
        for plate, control, rows in (("P1", 1.0, first), ("P2", 21.0, second)):
            for string, value in {"EEA": control, **rows}.items():
                campaign.record(string, value, context={"plate": plate})
        found = campaign.confirm(24, batch=6, top=5, rule=rule)
        assert {well.string for well in found.plate if not well.control} <= set(first)


def test_a_plate_is_chosen_and_looked_ahead_with_its_controls(tmp_path: Path) -> None:
    with made(tmp_path, surrogate=None, plates=8, controls=["EEA", "EEC"]) as campaign:
        rng = np.random.default_rng(0)
        for plate in ("P1", "P2"):
            for one in [*POOL[int(plate[1]) - 1 : 8 : 2], "EEA", "EEC"]:
                value = truth(one) + 2.0 * (plate == "P2") + 0.1 * rng.standard_normal()
                campaign.record(one, value, context={"plate": plate})
        found = campaign.confirm(8, among=[*POOL[:4], "EEC"], batch=4, target=0.9999)
        assert [well.string for well in found.plate if well.control] == ["EEA"]  # the other one is compared
        keys = [*POOL[:4], "EEC"]
        known = arms_of(campaign.session().optimizer.fitted, [*keys, "EEA"], (("plate", "P3"),))
        rule, situation = BayesGap(), Situation(8, 0, 0, known.first(5).spread)
        chosen = choose_batch(known, rule, situation, 4, rng, controls=1)
        assert sorted(keys[int(arm[0])] for arm in chosen) == sorted(on_plate(found)[:4])
        seed = campaign.store.settings.seed
        ahead = [
            forecast(
                known if controls else known.first(5),
                rule,
                target=0.9999,
                limit=12,
                batch=4,
                rng=np.random.default_rng([seed, 1, 0, 2]),
                begun=situation,
                controls=controls,
            )
            for controls in (1, 0)
        ]
        assert found.forecast is not None
        assert found.forecast.decided == ahead[0].decided
        assert found.forecast.probability[1:] == ahead[0].probability[1:] != ahead[1].probability[1:]


@pytest.mark.slow
def test_on_plates_each_plate_is_fresh_and_has_its_controls(tmp_path: Path) -> None:
    with made(tmp_path, surrogate=None, plates=8, controls=["EEA"]) as campaign:
        rng = np.random.default_rng(0)
        for place, one in enumerate(POOL[:12]):
            plate = f"P{1 + place % 2}"
            campaign.record(
                one, truth(one) + 2.0 * (plate == "P2") + 0.1 * rng.standard_normal(), context={"plate": plate}
            )
        with pytest.raises(InputError, match="room for 7 wells besides its controls, not for 8"):
            campaign.confirm(20, top=3, batch=8)
        found = campaign.confirm(20, top=3)
        assert [well.control for well in found.plate] == [False] * 5 + [True]
        assert {well.plate for well in found.plate} == {"P3"}
        path = tmp_path / "plate.csv"
        campaign.write_confirmation(path, found.plate)
        fill(path, 0)
        campaign.record_file(path)
        following = campaign.confirm()
        assert following.used == 5
        assert following.decided or {well.plate for well in following.plate} == {"P4"}


def test_the_command_says_it_all(campaign: Campaign, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    hits = tmp_path / "hits.csv"
    hits.write_text("sequence\nCCA\nCDA\nDCA\nEEA\n")

    def run(*arguments: str, status: int = 0) -> str:
        assert main(["campaign", *arguments]) == status
        said = capsys.readouterr()
        return " ".join((said.out + said.err).split())

    assert "say how many wells there are (--wells 96)" in run("confirm", status=2)
    said = run("confirm", "--wells", "12", "--among", "hits.csv", "--batch", "6", "--out", "plate.csv")
    assert "0 of 12 wells measured, 4 strings compared" in said
    assert "to be measured now: 6 wells" in said
    assert "written to plate.csv: fill it in, then seqopt campaign record plate.csv" in said
    assert (tmp_path / "plate.csv").read_text().splitlines()[0] == "replicate,name,sequence,y,standard_error,failure"
    assert "proposed before" in run("confirm", "--out", "plate.csv")
    fill(tmp_path / "plate.csv", 0)
    assert "holds results, which would be lost" in run("confirm", "--out", "plate.csv", status=2)
    run("record", "plate.csv")
    assert "has replicate 'C1-001' already" in run("record", "plate.csv", status=2)
    assert "6 of 12 wells measured" in run("confirm")
    assert "is not a plate of a confirmation" in run("confirm", "--out", "hits.csv", status=2)
    assert "ended" in run("confirm", "--end")


def test_hits_are_listed_twice_or_in_a_column_of_any_name(
    campaign: Campaign, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = campaign.confirm(12, among=["CCC", "CCA", "CCC"], batch=2)
    assert {arm.prediction.string for arm in found.arms} == {"CCC", "CCA"}
    assert "CCC: there twice, and compared once" in caplog.text
    campaign.end_confirmation()
    (tmp_path / "hits.csv").write_text("lot,vial\nCCC,EEA\nCCA,CCE\n")
    found = campaign.confirm(12, among=tmp_path / "hits.csv", column="vial", batch=2)
    assert {arm.prediction.string for arm in found.arms} == {"EEA", "CCE"}
    caplog.clear()
    (tmp_path / "plate.csv").write_text(
        "replicate,string,y\n" + "".join(f"{well.label},{well.string},1.5\n" for well in found.plate)
    )
    campaign.record_file(tmp_path / "plate.csv")
    assert "never suggested" not in caplog.text
