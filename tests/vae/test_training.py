"""Training learns, is deterministic, survives interruptions bit for bit, and refuses what it cannot go on with."""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from seqopt.errors import InputError, ModelError
from seqopt.vae import (
    CharacterCodec,
    Codec,
    Epoch,
    GrammarCodec,
    NetworkSizes,
    StringVAE,
    Training,
    TrainingSettings,
    evaluate_vae,
    train,
)
from seqopt.vae import training as training_module
from seqopt.vae.checkpoint import read_checkpoint, write_checkpoint
from seqopt.vae.networks import VariationalNetwork, gaussian_kl, sampled_codes

SHORT = TrainingSettings(epochs=4, batch_size=32, held_out=0.1, ramp=0)


def codec_of(model: str, strings: list[str]) -> Codec:
    return CharacterCodec.of(strings) if model == "character" else GrammarCodec.of("arithmetic", strings)


def short(strings: list[str], sizes: NetworkSizes, **options: object) -> Training:
    model = str(options.pop("model", "grammar"))
    arguments = {"settings": SHORT, "rng": np.random.default_rng(5)} | options
    codec = arguments.pop("codec", None) or codec_of(model, strings)
    return train(strings, codec, sizes, **arguments)  # type: ignore[arg-type]


def weights(vae: StringVAE) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in vae.network.state_dict().items()}


def same(a: StringVAE, b: StringVAE) -> bool:
    return all(np.array_equal(array, weights(b)[name]) for name, array in weights(a).items()) and np.array_equal(
        a.quantiles, b.quantiles
    )


def without_times(history: list[Epoch]) -> list[Epoch]:
    return [dataclasses.replace(epoch, seconds=0.0, processor=None) for epoch in history]


@pytest.mark.parametrize("model", ["character", "grammar"])
def test_reconstruction_improves(model: str, tiny: list[str], toy: SimpleNamespace) -> None:
    history: list[Epoch] = []
    training = train(
        tiny,
        codec_of(model, tiny),
        toy.sizes,
        dataclasses.replace(toy.settings, epochs=25),
        rng=np.random.default_rng(1),
        progress=history.append,
    )
    assert training.history == history
    first, last = history[0], history[-1]
    assert last.train_loss < 0.5 * first.train_loss
    assert last.symbols_right > first.symbols_right + 0.1
    assert [epoch.epoch for epoch in history] == list(range(1, 26))
    assert training.best_epoch == 1 + int(np.argmin([epoch.loss for epoch in history]))
    for epoch in history:
        assert epoch.loss == pytest.approx(epoch.reconstruction + 0.02 * epoch.kl)


def test_what_was_learnt_comes_back(trained: dict[str, StringVAE], tiny: list[str]) -> None:
    for vae in trained.values():
        back = vae.reconstruct(tiny)
        assert np.mean([a == b for a, b in zip(tiny, back, strict=True)]) > 0.8


def test_progress_is_that_of_greedy_decoding(
    trained: dict[str, StringVAE], tiny: list[str], toy: SimpleNamespace
) -> None:
    for vae in trained.values():
        history = vae.facts["training"]["history"]
        best = history[vae.facts["training"]["best_epoch"] - 1]
        training = short(tiny, toy.sizes, codec=vae.codec, rng=np.random.default_rng(1))
        measured = evaluate_vae(vae, training.held_out, rng=np.random.default_rng(0), samples=0)
        # A string whose every symbol is the most likely one after the true ones is what greedy decoding gives.
        assert measured.strings_right == pytest.approx(best["strings_right"], abs=1e-6)
        assert measured.kl == pytest.approx(best["kl"], rel=1e-4)
        assert measured.kl == pytest.approx(sum(measured.kl_per_dimension))


def test_one_seed_one_model(expressions: list[str], toy: SimpleNamespace) -> None:
    torch.manual_seed(1)
    first = short(expressions, toy.sizes)
    state = torch.random.get_rng_state()
    torch.manual_seed(2)
    second = short(expressions, toy.sizes)
    assert same(first.vae, second.vae)
    assert first.vae.name == second.vae.name
    assert first.held_out == second.held_out
    assert not same(first.vae, short(expressions, toy.sizes, rng=np.random.default_rng(6)).vae)
    torch.manual_seed(1)
    assert torch.equal(state, torch.random.get_rng_state())  # the global generator was left alone


def test_strings_of_similar_length_are_learnt_together(
    expressions: list[str], toy: SimpleNamespace, tmp_path: Path
) -> None:
    codec, sizes = codec_of("character", expressions), dataclasses.replace(toy.sizes, channels=4)
    sorted_ = dataclasses.replace(SHORT, sorted_batches=3, ramp=4, epochs=7)
    trainer = training_module._Trainer(expressions, codec, sizes, sorted_, 1, torch.device("cpu"), {})
    n = len(trainer._rows)
    lengths = (trainer._rows > 0).sum(dim=1)
    batches = list(trainer._batches(n))
    assert sorted(torch.cat(batches).tolist()) == list(range(n))
    assert all(len(batch) <= 32 for batch in batches)
    for first in (0, 3):  # of the three batches of each part, none reaches into the lengths of another
        spans = sorted((int(lengths[batch].min()), int(lengths[batch].max())) for batch in batches[first : first + 3])
        assert all(high <= low for (_, high), (low, _) in itertools.pairwise(spans))
    rates: list[float] = []
    original = torch.optim.Adam.step

    def step(self: torch.optim.Adam, closure: None = None) -> None:
        rates.append(self.param_groups[0]["lr"])
        original(self, closure)

    path = tmp_path / "model.vae"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        whole = short(expressions, sizes, codec=codec, settings=sorted_)
    steps = len(batches) * sorted_.epochs
    assert steps > 40  # the ramp is no more than a tenth
    cosine = [1e-3 * (1.0 + np.cos(np.pi * number / steps)) for number in range(steps)]
    np.testing.assert_allclose(rates, np.minimum((np.arange(steps) + 1) / 4, 1.0) * cosine)

    def stop(epoch: Epoch) -> None:
        if epoch.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        short(expressions, sizes, codec=codec, settings=sorted_, checkpoint=path, progress=stop)
    unsorted_ = dataclasses.replace(sorted_, sorted_batches=1)
    with pytest.raises(InputError, match="sorted_batches was 3 and is now 1"):
        short(expressions, sizes, codec=codec, settings=unsorted_, checkpoint=path, resume=True)
    resumed = short(expressions, sizes, codec=codec, settings=sorted_, checkpoint=path, resume=True)
    assert same(resumed.vae, whole.vae)
    assert same(StringVAE.load(path), whole.vae)
    rates.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        short(expressions, sizes, codec=codec, settings=dataclasses.replace(sorted_, ramp=1000))
    assert max(rates) > 1.8e-3  # a ramp that is longer than a training leaves something to learn with


def test_the_learning_rate_rises_at_first_unless_it_is_told_otherwise(
    expressions: list[str], toy: SimpleNamespace
) -> None:
    rates: list[float] = []
    original = torch.optim.Adam.step

    def step(self: torch.optim.Adam, closure: None = None) -> None:
        rates.append(self.param_groups[0]["lr"])
        original(self, closure)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        short(expressions, toy.sizes, settings=TrainingSettings(epochs=6, batch_size=32, held_out=0.1))
    steps = np.arange(len(rates))
    assert len(steps) == 36
    # Two hundred steps, but no more than a tenth of all.
    expected = np.minimum((steps + 1) / 3.6, 1.0) * 1e-3 * (1.0 + np.cos(np.pi * steps / 36))
    np.testing.assert_allclose(rates, expected)
    assert TrainingSettings().ramp == 200


def test_portions_go_through_all_strings_in_turn(expressions: list[str], toy: SimpleNamespace) -> None:
    codec, settings = codec_of("character", expressions), dataclasses.replace(SHORT, portion=70, held_out=0.0)
    trainer = training_module._Trainer(expressions, codec, toy.sizes, settings, 1, torch.device("cpu"), {})
    seen: list[int] = []
    for _ in range(7):
        batches = list(trainer._batches(70))
        assert [len(batch) for batch in batches] == [32, 32, 6]
        seen += torch.cat(batches).tolist()
        trainer.run_epoch()
    strings = len(expressions)
    assert strings == 200
    assert len(seen) == 490
    passes = [seen[:200], seen[200:400]]
    assert all(sorted(part) == list(range(strings)) for part in passes)
    assert passes[0] != passes[1]
    assert len(set(seen[400:])) == 90
    whole = dataclasses.replace(settings, portion=1000)
    plain = short(expressions, toy.sizes, codec=codec, settings=dataclasses.replace(settings, portion=0))
    assert same(short(expressions, toy.sizes, codec=codec, settings=whole).vae, plain.vae)


@pytest.mark.parametrize("decoder", [1, 2])
def test_a_training_in_portions_is_resumed_within_a_pass(
    decoder: int, expressions: list[str], toy: SimpleNamespace, tmp_path: Path
) -> None:
    path, sizes = tmp_path / "model.vae", dataclasses.replace(toy.sizes, channels=5, decoder=decoder)
    codec = codec_of("character", expressions)
    settings = dataclasses.replace(SHORT, portion=70, sorted_batches=2)
    rates: list[float] = []
    original = torch.optim.Adam.step

    def step(self: torch.optim.Adam, closure: None = None) -> None:
        rates.append(self.param_groups[0]["lr"])
        original(self, closure)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        whole = short(expressions, sizes, codec=codec, settings=settings)
    np.testing.assert_allclose(rates, 1e-3 * (1.0 + np.cos(np.pi * np.arange(12) / 12)))

    def stop(epoch: Epoch) -> None:
        if epoch.epoch == 3:  # 20 strings of the second pass have been seen
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        short(expressions, sizes, codec=codec, settings=settings, checkpoint=path, progress=stop)
    other = dataclasses.replace(settings, portion=60)
    with pytest.raises(InputError, match="portion was 70 and is now 60"):
        short(expressions, sizes, codec=codec, settings=other, checkpoint=path, resume=True)
    resumed = short(expressions, sizes, codec=codec, settings=settings, checkpoint=path, resume=True)
    assert same(resumed.vae, whole.vae)
    assert without_times(resumed.history) == without_times(whole.history)
    assert same(StringVAE.load(path), whole.vae)
    assert StringVAE.load(path).reconstruct(expressions[:20]) == whole.vae.reconstruct(expressions[:20])


def test_the_share_of_strings_right_is_that_of_greedy_decoding(tiny: list[str], toy: SimpleNamespace) -> None:
    settings = dataclasses.replace(toy.settings, epochs=25, batch_size=8, held_out=0.3, ramp=0)
    for decoder in (1, 2):
        sizes = dataclasses.replace(toy.sizes, decoder=decoder)
        training = train(tiny, codec_of("character", tiny), sizes, settings, rng=np.random.default_rng(2))
        back = training.vae.reconstruct(training.held_out)
        right = np.mean([one == other for one, other in zip(back, training.held_out, strict=True)])
        assert right == pytest.approx(training.history[training.best_epoch - 1].strings_right)
        assert 0.0 < right < 1.0


def test_processor_time_is_that_of_an_epoch(expressions: list[str], toy: SimpleNamespace) -> None:
    before = time.process_time()
    history = short(expressions, toy.sizes).history
    spent = [epoch.processor for epoch in history]
    assert all(seconds is not None and seconds > 0 for seconds in spent)
    assert sum(seconds or 0.0 for seconds in spent) <= time.process_time() - before


def test_the_fused_optimiser_takes_the_same_steps(expressions: list[str], toy: SimpleNamespace) -> None:
    codec = codec_of("character", expressions)
    fused = short(expressions, toy.sizes, codec=codec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_module, "_adam", lambda network, rate: torch.optim.Adam(network.parameters(), lr=rate))
        plain = short(expressions, toy.sizes, codec=codec)
    assert fused.history[-1].loss == pytest.approx(plain.history[-1].loss, rel=1e-3)


def test_a_training_from_before_a_setting_was_there_goes_on(
    expressions: list[str], toy: SimpleNamespace, tmp_path: Path
) -> None:
    path = tmp_path / "model.vae"
    codec = codec_of("character", expressions)

    def stop(epoch: Epoch) -> None:
        if epoch.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        short(expressions, toy.sizes, codec=codec, checkpoint=path, progress=stop)
    facts, arrays = read_checkpoint(path)
    for name in ("sorted_batches", "ramp", "portion"):
        del facts["training"]["settings"][name]
    for epoch in facts["training"]["history"]:
        del epoch["processor"]
    del facts["sizes"]["channels"], facts["sizes"]["decoder"]
    write_checkpoint(path, facts, arrays)
    assert StringVAE.load(path).network.sizes == toy.sizes
    other = dataclasses.replace(SHORT, ramp=5)
    with pytest.raises(InputError, match="ramp was 0 and is now 5"):
        short(expressions, toy.sizes, codec=codec, settings=other, checkpoint=path, resume=True)
    wide = dataclasses.replace(toy.sizes, channels=3)
    with pytest.raises(InputError, match="channels of the network was 0 and is now 3"):
        short(expressions, wide, codec=codec, checkpoint=path, resume=True)
    resumed = short(expressions, toy.sizes, codec=codec, checkpoint=path, resume=True)
    assert same(resumed.vae, short(expressions, toy.sizes, codec=codec).vae)


def test_a_variance_that_runs_away_drowns_nothing(expressions: list[str], toy: SimpleNamespace) -> None:
    codec = codec_of("character", expressions)
    trainer = training_module._Trainer(expressions, codec, toy.sizes, SHORT, 1, torch.device("cpu"), {})
    rows, contexts = trainer._rows[:4], trainer._contexts[:4]
    noise = torch.randn(4, toy.sizes.latent, generator=torch.Generator().manual_seed(0))
    mean, log_variance = trainer.network.posterior(rows)
    likelihood, _ = trainer.network.log_likelihood(sampled_codes(mean, log_variance, noise), rows, contexts)
    reconstruction, divergence = trainer._terms(rows, contexts, noise)
    torch.testing.assert_close(reconstruction, -likelihood)
    torch.testing.assert_close(divergence, gaussian_kl(mean, log_variance).sum(dim=1))  # nothing else where it is usual
    with torch.no_grad():
        trainer.network.encoder[-1].bias[toy.sizes.latent] += 60.0
    reconstruction, divergence = trainer._terms(rows, contexts, noise)
    assert torch.isfinite(reconstruction).all()
    assert float(reconstruction.detach().max()) < 1e3
    # The tangent at 4 has the slope (e^4 - 1) / 2 = 26.8; the divergence itself would be 10^25.
    assert 26.7 * 55 < float(divergence.detach().min()) <= float(divergence.detach().max()) < 26.9 * 61
    divergence.sum().backward()
    assert float(trainer.network.encoder[-1].bias.grad[toy.sizes.latent]) == pytest.approx(4 * 26.8, rel=0.01)


def test_padding_is_not_computed_where_strings_are_sorted(
    expressions: list[str], toy: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = codec_of("character", expressions)
    widths: list[tuple[int, int]] = []
    original = VariationalNetwork.log_likelihood

    def seen(network: VariationalNetwork, points: torch.Tensor, rows: torch.Tensor, contexts: torch.Tensor) -> object:
        widths.append((rows.shape[1], int((rows > 0).sum(dim=1).max())))
        return original(network, points, rows, contexts)

    monkeypatch.setattr(VariationalNetwork, "log_likelihood", seen)
    settings = dataclasses.replace(SHORT, epochs=1, sorted_batches=6, batch_size=8, held_out=0.0)
    short(expressions, toy.sizes, codec=codec, settings=settings)
    assert len(widths) == 25
    assert all(width == longest for width, longest in widths)
    assert len(set(widths)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("model", ["character", "grammar"])
@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_a_resumed_training_ends_bit_for_bit_like_one_without_a_break(
    model: str, epochs: int, expressions: list[str], toy: SimpleNamespace, tmp_path: Path
) -> None:
    whole = short(expressions, toy.sizes, model=model)
    path = tmp_path / "model.vae"

    def stop(epoch: Epoch) -> None:
        if epoch.epoch == epochs:
            raise KeyboardInterrupt

    codec = codec_of(model, expressions)
    if epochs:
        with pytest.raises(KeyboardInterrupt):
            short(expressions, toy.sizes, codec=codec, checkpoint=path, progress=stop)
    else:
        # Interrupted in the first epoch: the checkpoint was written before it.
        asked = iter(range(100))

        original = torch.optim.Adam.step

        def step(self: torch.optim.Adam, closure: None = None) -> None:
            if next(asked) == 3:
                raise KeyboardInterrupt
            original(self, closure)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.optim.Adam, "step", step)
            with pytest.raises(KeyboardInterrupt):
                short(expressions, toy.sizes, codec=codec, checkpoint=path)
    halfway = StringVAE.load(path)  # usable as it is
    assert halfway.facts["training"]["finished"] is False
    assert len(halfway.facts["training"]["history"]) == epochs
    assert len(halfway.decode(halfway(expressions[:3]))) == 3
    resumed = short(expressions, toy.sizes, codec=codec, checkpoint=path, resume=True)
    assert same(resumed.vae, whole.vae)
    assert without_times(resumed.history) == without_times(whole.history)
    assert same(StringVAE.load(path), whole.vae)
    again = short(expressions, toy.sizes, codec=codec, checkpoint=path, resume=True)
    assert same(again.vae, whole.vae)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("unknown", [{1}, {1, 2}, {2}, {1, 3}])
def test_a_training_resumed_behind_a_loss_that_is_no_number_ends_like_one_without_a_break(
    unknown: set[int], expressions: list[str], toy: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = training_module._Trainer._watch

    def watch(trainer: training_module._Trainer) -> dict[str, float | None]:
        watched = original(trainer)
        return watched | {"loss": float("nan")} if len(trainer.history) + 1 in unknown else watched

    monkeypatch.setattr(training_module._Trainer, "_watch", watch)
    whole = short(expressions, toy.sizes)
    assert whole.best_epoch == 4
    path = tmp_path / "model.vae"

    def stop(epoch: Epoch) -> None:
        if epoch.epoch == max(unknown):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        short(expressions, toy.sizes, checkpoint=path, progress=stop)
    resumed = short(expressions, toy.sizes, checkpoint=path, resume=True)
    assert resumed.best_epoch == 4
    assert same(resumed.vae, whole.vae)
    np.testing.assert_equal(
        [dataclasses.asdict(epoch) for epoch in without_times(resumed.history)],
        [dataclasses.asdict(epoch) for epoch in without_times(whole.history)],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "arrays", "words"),
    [
        ({"history": [3]}, {}, "damaged: its training cannot be resumed"),
        ({"history": [{}]}, {}, "damaged: its training cannot be resumed"),
        ({"best_epoch": float("inf")}, {}, "damaged: its training cannot be resumed"),
        ({"settings": 3}, {}, "damaged: its training cannot be resumed"),
        ({}, {"training/generator": None}, "is damaged.*training/generator"),
        ({}, {"training/generator": np.zeros(3)}, "damaged: its training cannot be resumed"),
        ({}, {"training/weights/output.bias": np.zeros(3)}, "weights output.bias do not fit.*found float64 of shape"),
        ({}, {"training/weights/further": np.zeros(3)}, "has no weights 'further'"),
        ({}, {"training/optimizer/0/exp_avg": np.zeros(3, dtype=np.float32)}, r"float32 of shape \(3,\), expected"),
        ({}, {"training/optimizer/0/exp_avg": None}, "state of parameter 0 has"),
        ({}, {"training/optimizer/999/step": np.zeros((), dtype=np.float32)}, "cannot be resumed"),
        ({}, {"training/optimizer/x": np.zeros(3)}, "cannot be resumed"),
    ],
)
def test_damaged_checkpoints_are_refused(
    changes: dict[str, object],
    arrays: dict[str, np.ndarray | None],
    words: str,
    tiny: list[str],
    toy: SimpleNamespace,
    tmp_path: Path,
) -> None:
    path = tmp_path / "model.vae"

    def stop(_: Epoch) -> None:
        raise KeyboardInterrupt

    sizes = dataclasses.replace(toy.sizes, hidden=8)
    with pytest.raises(KeyboardInterrupt):
        short(tiny, sizes, checkpoint=path, progress=stop)
    facts, kept = read_checkpoint(path)
    facts["training"] |= changes
    write_checkpoint(path, facts, {name: array for name, array in (kept | arrays).items() if array is not None})
    with pytest.raises(InputError, match=words) as error:
        short(tiny, sizes, checkpoint=path, resume=True)
    assert str(path) in str(error.value)


def test_training_ends_early_and_keeps_the_best_epoch(expressions: list[str], toy: SimpleNamespace) -> None:
    settings = TrainingSettings(epochs=100, batch_size=16, learning_rate=0.02, held_out=0.3, patience=3, kl_weight=0.0)
    training = short(expressions[:60], toy.sizes, settings=settings)
    losses = [epoch.loss for epoch in training.history]
    assert len(losses) < 100
    assert training.best_epoch == len(losses) - 3 == 1 + int(np.argmin(losses))
    mean = training.vae(training.held_out)
    assert mean.shape == (18, toy.sizes.latent)


def test_held_out_strings_are_not_learnt_from(expressions: list[str], toy: SimpleNamespace) -> None:
    training = short(expressions * 2, toy.sizes)
    assert len(training.held_out) == 20 == len(set(training.held_out))
    learnt = training.vae([string for string in expressions if string not in set(training.held_out)])
    np.testing.assert_allclose(training.vae.quantiles[[0, -1]], [learnt.min(axis=0), learnt.max(axis=0)], atol=1e-6)
    np.testing.assert_allclose(training.vae.box(0.5), np.quantile(learnt, [0.25, 0.75], axis=0), atol=1e-6)
    none = short(expressions, toy.sizes, settings=dataclasses.replace(SHORT, held_out=0.0))
    assert none.held_out == []
    assert none.best_epoch == 4
    assert none.history[-1].loss is None


def test_more_weight_on_the_divergence_means_less_of_it(expressions: list[str], toy: SimpleNamespace) -> None:
    kl = [
        short(expressions, toy.sizes, settings=dataclasses.replace(SHORT, epochs=8, kl_weight=weight)).history[-1].kl
        for weight in (0.0, 0.3, 3.0)
    ]
    assert kl[0] > kl[1] > kl[2]


def test_checkpoints_of_other_trainings_are_refused(
    expressions: list[str], toy: SimpleNamespace, tmp_path: Path
) -> None:
    path = tmp_path / "model.vae"
    codec = codec_of("grammar", expressions)
    short(expressions, toy.sizes, codec=codec, checkpoint=path, settings=dataclasses.replace(SHORT, epochs=1))
    one = dataclasses.replace(SHORT, epochs=1)
    bare = tmp_path / "bare.vae"
    StringVAE.load(path).save(bare)
    for options, words in (
        ({"settings": SHORT}, "epochs was 1 and is now 4"),
        ({"settings": dataclasses.replace(one, kl_weight=0.5)}, "kl_weight was 0.1 and is now 0.5"),
        ({"rng": np.random.default_rng(6)}, "seed"),
        ({"model": "character", "codec": None}, "grammar 'arithmetic' of 11 rules.*an alphabet of"),
        ({"checkpoint": tmp_path / "none.vae"}, "no model file"),
        ({"checkpoint": None}, "give the checkpoint"),
    ):
        arguments = {"codec": codec, "checkpoint": path, "resume": True, "settings": one} | options
        with pytest.raises(InputError, match=words):
            short(expressions, toy.sizes, **arguments)
    with pytest.raises(InputError, match="hidden of the network was 128 and is now 8"):
        short(expressions, NetworkSizes(6, 8, 8, 24, 16), codec=codec, checkpoint=path, resume=True, settings=one)
    with pytest.raises(InputError, match=r"other strings \(200 of them, now 199\)"):
        short(expressions[1:], toy.sizes, codec=codec, checkpoint=path, resume=True, settings=one)
    facts, _ = read_checkpoint(path)
    assert facts["training"]["finished"] is True


def test_settings_and_strings_out_of_range(expressions: list[str], toy: SimpleNamespace, tmp_path: Path) -> None:
    for name, value in (
        ("epochs", 0),
        ("sorted_batches", 0),
        ("ramp", -1),
        ("batch_size", 1.5),
        ("patience", True),
        ("learning_rate", 0.0),
        ("kl_weight", -0.1),
        ("kl_weight", float("nan")),
        ("warmup", 1.0),
        ("held_out", -0.1),
    ):
        with pytest.raises(InputError, match=name):
            TrainingSettings(**{name: value})  # type: ignore[arg-type]
    codec = codec_of("grammar", expressions)
    for strings, words in ((["x", "x"], "1 different strings are too few"), ([], "0 different strings")):
        with pytest.raises(InputError, match=words):
            short(strings, toy.sizes, codec=codec)
    with pytest.raises(InputError, match="position 3"):
        short(["x", "x+*1"], toy.sizes, codec=codec)
    with pytest.raises(InputError, match="threads is 0"):
        short(expressions, toy.sizes, codec=codec, threads=0)
    with pytest.raises(InputError, match="cannot be used"):
        short(expressions, toy.sizes, codec=codec, device="tpu3")
    with pytest.raises(ModelError, match="lower the learning rate"):
        short(expressions, toy.sizes, codec=codec, settings=dataclasses.replace(SHORT, learning_rate=1e30))
    if os.geteuid():
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        with pytest.raises(InputError, match="cannot write"):
            short(expressions, toy.sizes, codec=codec, checkpoint=locked / "model.vae")


def test_torch_keeps_its_threads(expressions: list[str], toy: SimpleNamespace) -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    short(expressions, toy.sizes, threads=1, progress=lambda _: seen.append(torch.get_num_threads()))
    assert set(seen) == {1}
    assert torch.get_num_threads() == before


def test_a_training_whose_held_out_loss_never_is_a_number_gives_no_model(
    expressions: list[str], toy: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = training_module._Trainer._watch
    monkeypatch.setattr(training_module._Trainer, "_watch", lambda trainer: original(trainer) | {"loss": float("nan")})
    with pytest.raises(ModelError, match=r"none of 4 epochs .* lower the learning rate"):
        short(expressions, toy.sizes)
