"""Training of variational autoencoders: deterministic, watched, stopped early, and resumed exactly.

Adam on the objective of `seqopt.vae.model`, one sampled code a string. The learning rate falls to zero along half a
cosine, behind a short rise where one is wanted; the KL weight rises linearly from zero in the first part of the
training, so that the code is not given up before the decoder has learnt to use it (Bowman et al. 2016). Some strings
are held out: their loss decides which epoch's weights are kept, and when there is nothing more to learn.

Everything random follows from one number: initial weights, which strings are held out, their order in each epoch, the
sampled codes. A checkpoint holds the state of the random generator and of the optimiser besides the weights, so that a
resumed training continues as if it had never been interrupted: on a CPU, with as many threads, bit for bit.

References:
    Kingma, D. P., Ba, J. (2015). Adam: a method for stochastic optimization. ICLR.
    Bowman, S. R. et al. (2016). Generating sentences from a continuous space. CoNLL, section 3.1.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from seqopt.errors import InputError, ModelError
from seqopt.vae.checkpoint import (
    TRAINING,
    WEIGHTS,
    Checkpoint,
    error_line,
    open_checkpoint,
    write_checkpoint,
)
from seqopt.vae.codecs import Codec, checked_strings
from seqopt.vae.model import (
    StringVAE,
    build_network,
    load_weights,
    model_facts,
    training_quantiles,
    weight_arrays,
)
from seqopt.vae.networks import NetworkSizes, gaussian_kl, resolve_device, sampled_codes, torch_threads

WATCHED = 2_000
"""Held-out strings that are looked at after each epoch."""

SURVEYED = 5_000
"""Training strings whose encodings give the quantiles of a checkpoint; those of the finished model are from all."""

GRADIENT_NORM = 5.0
"""Larger gradients are scaled down to this norm."""

_CURRENT, _OPTIMIZER, _GENERATOR = f"{TRAINING}weights/", f"{TRAINING}optimizer/", f"{TRAINING}generator"

SMILES_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "batch_size": 32,
        "learning_rate": 1.5e-3,
        "kl_weight": 0.005,
        "sorted_batches": 50,
        "ramp": 500,
        "warmup": 0.2,
    }
)
"""How the training of SMILES differs: they are long, of many lengths, and hard to code."""

SETTINGS_BEFORE: Mapping[str, Any] = MappingProxyType({"sorted_batches": 1, "ramp": 0, "portion": 0})
"""What trainings had that say nothing of these settings, because an earlier version began them."""

LARGEST_LOG_VARIANCE = 4.0
"""Where the encoder gives more, the objective continues as a straight line: see `_tamed`."""


@dataclass(frozen=True)
class TrainingSettings:
    """How a model is trained.

    Args:
        epochs: Passes over the training strings, or over so many of them as ``portion`` says, at most.
        batch_size: Strings in each training step.
        learning_rate: Of Adam, at the beginning (behind the ramp); it falls to 0.
        kl_weight: The weight w of the divergence in the objective; 1 is the evidence lower bound.
        warmup: The share of the steps over which the KL weight rises from 0.
        held_out: The share of the strings that is held out; 0 for none, and then nothing stops the training early.
        patience: Epochs without a better held-out loss after which it ends.
        sorted_batches: Strings of so many batches are sorted by length before they are divided, so that there is less
            padding to compute. 1 for batches at random.
        ramp: Steps over which the learning rate rises from 0, so that the first ones do not overshoot and leave
            dimensions that are never used after; at most a tenth of all.
        portion: Strings of an epoch, 0 for all. With fewer, one epoch goes on in the random order of all strings where
            the last one stopped; held-out strings are looked at, and a checkpoint is written, the more often.

    Raises:
        InputError: For a value out of its range.
    """

    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 2e-3
    kl_weight: float = 0.1
    warmup: float = 0.25
    held_out: float = 0.05
    patience: int = 10
    sorted_batches: int = 1
    ramp: int = 200
    portion: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "sorted_batches", "ramp", "portion"):
            number, least = getattr(self, name), int(name not in ("ramp", "portion"))
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise InputError(f"{name} is {number!r}; expected an integer of at least {least}")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InputError(f"learning_rate is {self.learning_rate!r}; expected a number above 0")
        if not (math.isfinite(self.kl_weight) and self.kl_weight >= 0):
            raise InputError(f"kl_weight is {self.kl_weight!r}; expected 0 or more")
        for name in ("warmup", "held_out"):
            share = getattr(self, name)
            if not 0.0 <= share < 1.0:
                raise InputError(f"{name} is {share!r}; it must lie in [0, 1)")


@dataclass(frozen=True)
class Epoch:
    """What is known after an epoch. Losses are in nats a string; what is held out is `None` where nothing is.

    Attributes:
        epoch: Its number, from 1.
        train_loss: Mean loss of its steps, at the KL weights that they had.
        loss: Held-out loss, at the full KL weight, with one sampled code a string.
        reconstruction: Its first part, -log p(string | code).
        kl: KL(q(z|s) || N(0, I)) of held-out strings.
        symbols_right: Share of the symbols of held-out strings that are the most likely ones at the posterior mean,
            given the true symbols before them; rules for a grammar model.
        strings_right: Share of held-out strings all of whose symbols are.
        seconds: Duration of the epoch.
        processor: Seconds of processor time in it; `None` where they were not recorded.
    """

    epoch: int
    train_loss: float
    loss: float | None
    reconstruction: float | None
    kl: float | None
    symbols_right: float | None
    strings_right: float | None
    seconds: float
    processor: float | None = None


Progress = Callable[[Epoch], None]


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
        vae: The model, with the weights of the best epoch.
        held_out: The strings that it has not seen.
        history: All epochs, those before an interruption too.
        best_epoch: Where the weights are from.
    """

    vae: StringVAE
    held_out: list[str]
    history: list[Epoch]
    best_epoch: int


def train(
    strings: Sequence[str],
    codec: Codec,
    sizes: NetworkSizes,
    settings: TrainingSettings | None = None,
    *,
    rng: np.random.Generator,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    device: str | torch.device = "cpu",
    threads: int | None = 1,
    facts: Mapping[str, Any] | None = None,
) -> Training:
    """Train a variational autoencoder.

    Args:
        strings: At least two different strings. Repeated ones count once.
        codec: A `seqopt.vae.CharacterCodec`, `seqopt.vae.GrammarCodec` or `seqopt.vae.SelfiesCodec` that reads
            them all.
        sizes: Of the network.
        settings: See `TrainingSettings`.
        rng: The only source of randomness.
        checkpoint: A file that is written before the first and after each epoch; in the end it holds the finished
            model. `StringVAE.load` reads it at any time. An interruption (Ctrl-C) costs the epoch it falls in.
        resume: Go on from ``checkpoint``; all other arguments must be those of the interrupted training. One that was
            finished is returned as it is.
        progress: Called after each epoch.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for the GPU where there is one.
        threads: Of torch, on a CPU; `None` leaves them as they are. More than one hardly pays for networks as small as
            these, and costs much where other programs run.
        facts: What is to be kept with the model, as JSON values.

    Raises:
        InputError: If strings, settings or device cannot be used; or a checkpoint cannot be resumed: there is none, it
            is not a checkpoint, or it is of another training (the message says what differs).
        ModelError: If the loss is no longer finite, or never is for the strings that are held out.
    """
    settings = settings or TrainingSettings()
    if resume and checkpoint is None:
        raise InputError("nothing to resume from: give the checkpoint")
    distinct = list(dict.fromkeys(checked_strings(strings)))
    seed = int(rng.integers(2**63 - 1))
    with torch_threads(threads):
        trainer = _Trainer(distinct, codec, sizes, settings, seed, resolve_device(device), dict(facts or {}))
        if resume:
            assert checkpoint is not None
            trainer.restore(checkpoint)
        elif checkpoint is not None:
            trainer.save(checkpoint)
        while not trainer.finished:
            epoch = trainer.run_epoch()
            if checkpoint is not None:
                trainer.save(checkpoint)
            if progress is not None:
                progress(epoch)
        if trainer.best_epoch == 0:
            raise ModelError(
                f"in none of {len(trainer.history)} epochs was the loss of the strings held out finite: lower the "
                f"learning rate, now {settings.learning_rate:g}"
            )
        vae = trainer.finish()
    if checkpoint is not None:
        vae.save(checkpoint)
    return Training(vae, trainer.held_out, trainer.history, trainer.best_epoch)


class _Trainer:
    """The state of a training between two epochs."""

    def __init__(
        self,
        strings: list[str],
        codec: Codec,
        sizes: NetworkSizes,
        settings: TrainingSettings,
        seed: int,
        device: torch.device,
        facts: dict[str, Any],
    ) -> None:
        held = round(settings.held_out * len(strings))
        if settings.held_out:
            held = max(held, 1)
        if len(strings) - held < 1 or len(strings) < 2:
            raise InputError(
                f"{len(strings)} different strings are too few to train on with a share of {settings.held_out:g} held "
                "out; give at least 2"
            )
        self.codec, self.sizes, self.settings, self.seed, self.device = codec, sizes, settings, seed, device
        self.facts = facts
        self._digest = hashlib.sha256("\0".join(strings).encode("utf-8", "surrogatepass")).hexdigest()
        self.generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(strings), generator=self.generator)
        rows = torch.from_numpy(codec.encode(strings))
        contexts = torch.from_numpy(codec.contexts(rows.numpy()))
        self._rows, self._contexts = rows[order[held:]].to(device), contexts[order[held:]].to(device)
        watched = order[:held][:WATCHED]
        self._held_rows, self._held_contexts = rows[watched].to(device), contexts[watched].to(device)
        self.held_out = [strings[int(index)] for index in order[:held]]
        self._held_noise = torch.randn(len(watched), sizes.latent, generator=self.generator).to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=self.generator)))
            self.network = build_network(codec, sizes).to(device)
        self.optimizer = _adam(self.network, settings.learning_rate)
        self.history: list[Epoch] = []
        self.best = weight_arrays(self.network, "")
        self.best_loss = math.inf
        self.best_epoch = 0
        self._complete = False

    @property
    def finished(self) -> bool:
        """Whether there is no further epoch."""
        done = len(self.history)
        return self._complete or done >= self.settings.epochs or done - self.best_epoch >= self.settings.patience

    def run_epoch(self) -> Epoch:
        """One pass over the training strings, or a part of one."""
        started, processor = time.perf_counter(), time.process_time()
        settings = self.settings
        n = min(settings.portion or len(self._rows), len(self._rows))
        steps = -(-n // settings.batch_size)
        step = len(self.history) * steps
        total = settings.epochs * steps
        ramp = max(1.0, min(settings.ramp, total / 10))
        losses = 0.0
        self.network.train()
        for batch in self._batches(n):
            rise = min(1.0, (step + 1) / ramp)
            for group in self.optimizer.param_groups:
                group["lr"] = settings.learning_rate * rise * 0.5 * (1.0 + math.cos(math.pi * step / total))
            weight = settings.kl_weight * min(1.0, step / max(settings.warmup * total, 1.0))
            batch = batch.to(self.device)
            noise = torch.randn(len(batch), self.sizes.latent, generator=self.generator).to(self.device)
            reconstruction, kl = self._terms(self._rows[batch], self._contexts[batch], noise)
            loss = (reconstruction + weight * kl).mean()
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.network.parameters(), GRADIENT_NORM)
            self.optimizer.step()
            losses += float(loss.detach()) * len(batch)
            step += 1
        if not math.isfinite(losses):
            raise ModelError(
                f"the loss is no longer finite in epoch {len(self.history) + 1}: lower the learning rate, now "
                f"{settings.learning_rate:g}"
            )
        self.network.eval()
        watched = self._watch()
        epoch = Epoch(
            len(self.history) + 1,
            losses / n,
            **watched,
            seconds=time.perf_counter() - started,
            processor=time.process_time() - processor,
        )
        self.history.append(epoch)
        if epoch.loss is None or epoch.loss < self.best_loss:
            self.best_loss = math.inf if epoch.loss is None else epoch.loss
            self.best, self.best_epoch = weight_arrays(self.network, ""), epoch.epoch
        return epoch

    def _batches(self, n: int) -> Iterator[Tensor]:
        """Places of the epoch's n strings, in batches: at random, or at random among strings of similar length."""
        size, together = self.settings.batch_size, self.settings.sorted_batches
        order = self._order(n)
        if together == 1:
            yield from torch.split(order, size)
            return
        lengths = (self._rows > 0).sum(dim=1).cpu()
        for part in torch.split(order, size * together):
            batches = torch.split(part[torch.argsort(lengths[part], stable=True)], size)
            for index in torch.randperm(len(batches), generator=self.generator).tolist():
                yield batches[index]

    def _order(self, n: int) -> Tensor:
        """Places of the epoch's n strings."""
        strings = len(self._rows)
        if n == strings:
            return torch.randperm(n, generator=self.generator)
        first, passed = len(self.history) * n, []
        for number in range(first // strings, (first + n - 1) // strings + 1):
            # Each pass has a generator of its own, so that a training that is resumed within one finds its order again.
            passed.append(np.random.default_rng([self.seed, number]).permutation(strings))
        return torch.from_numpy(np.concatenate(passed)[first % strings :][:n])

    def _terms(self, rows: Tensor, contexts: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """-log p(row | code) and the divergence, for each row."""
        mean, log_variance = self.network.posterior(rows)
        log_variance, further = _tamed(log_variance)
        code = sampled_codes(mean, log_variance, noise)
        if self.settings.sorted_batches > 1:  # else rows of any length stand together, and most of the width is used
            longest = int((rows > 0).sum(dim=1).max())
            rows, contexts = rows[:, :longest], contexts[:, :longest]
        likelihood, _ = self.network.log_likelihood(code, rows, contexts)
        return -likelihood, (gaussian_kl(mean, log_variance) + further).sum(dim=1)

    def _watch(self) -> dict[str, float | None]:
        """Loss, its parts, and shares of symbols and strings right, on held-out strings."""
        rows, contexts = self._held_rows, self._held_contexts
        if not len(rows):
            return dict.fromkeys(("loss", "reconstruction", "kl", "symbols_right", "strings_right"))
        with torch.no_grad():
            reconstruction, kl = self._terms(rows, contexts, self._held_noise)
            mean, _ = self.network.posterior(rows)
            _, right = self.network.log_likelihood(mean, rows, contexts)
        inside = rows > 0
        divergence, error = float(kl.mean()), float(reconstruction.mean())
        return {
            "loss": error + self.settings.kl_weight * divergence,
            "reconstruction": error,
            "kl": divergence,
            "symbols_right": float(right[inside].double().mean()),
            "strings_right": float(right.all(dim=1).double().mean()),
        }

    def _facts(self) -> dict[str, Any]:
        return {
            "settings": asdict(self.settings),
            "seed": self.seed,
            "strings": len(self._rows) + len(self.held_out),
            "strings_sha256": self._digest,
            "history": [asdict(epoch) for epoch in self.history],
            "best_epoch": self.best_epoch,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the epochs to come depend on, and the best model so far."""
        best = self._best_model(SURVEYED)
        facts, arrays = best.to_checkpoint()
        facts["training"]["finished"] = False
        state = self.optimizer.state_dict()["state"]
        moments = {
            f"{_OPTIMIZER}{index}/{name}": value.cpu().numpy()
            for index, values in state.items()
            for name, value in values.items()
        }
        current = weight_arrays(self.network, _CURRENT)
        write_checkpoint(path, facts, {**arrays, **current, **moments, _GENERATOR: self.generator.get_state().numpy()})

    def _best_model(self, surveyed: int | None) -> StringVAE:
        with torch.random.fork_rng(devices=[]):
            network = build_network(self.codec, self.sizes)
        network.load_state_dict({name: torch.from_numpy(weights) for name, weights in self.best.items()})
        network.to(self.device).eval()
        with torch.no_grad():
            encodings = [network.posterior(block)[0] for block in torch.split(self._rows[:surveyed], 1024)]
        quantiles = training_quantiles(torch.cat(encodings).double().cpu().numpy())
        return StringVAE(self.codec, network, quantiles, {**self.facts, "training": self._facts()})

    def finish(self) -> StringVAE:
        """The model of the best epoch."""
        vae = self._best_model(None)
        vae.facts["training"]["finished"] = True
        return vae

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Take up the training that `save` wrote.

        Raises:
            InputError: If it is another training, or damaged.
        """
        with open_checkpoint(path) as checkpoint:
            facts = checkpoint.facts
            told = facts.get("training")
            if not isinstance(told, dict):
                raise InputError(f"{path} holds a model but no training: leave resume out to start one")
            own = {**model_facts(self.codec, self.sizes), "training": self._facts()}
            try:
                self._compare(path, facts, own)
                self._take_up(checkpoint, told)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{path} is damaged: its training cannot be resumed ({error_line(error)})") from error

    def _take_up(self, checkpoint: Checkpoint, told: Mapping[str, Any]) -> None:
        self.history = [Epoch(**epoch) for epoch in told["history"]]
        self.best_epoch = int(told["best_epoch"])
        self._complete = bool(told["finished"])
        self.best_loss = math.inf
        for epoch in self.history:
            # The comparison of `run_epoch`, which a loss that is not a number never passes.
            if epoch.loss is not None and epoch.loss < self.best_loss:
                self.best_loss = epoch.loss
        load_weights(checkpoint, self.network, WEIGHTS)
        self.best = weight_arrays(self.network, "")
        if not self._complete:
            load_weights(checkpoint, self.network, _CURRENT)
            self._restore_optimizer(checkpoint)
            self.generator.set_state(torch.from_numpy(checkpoint.read(_GENERATOR)))

    def _restore_optimizer(self, checkpoint: Checkpoint) -> None:
        parameters = dict(enumerate(self.network.parameters()))
        state: dict[int, dict[str, Tensor]] = {}
        for name, entry in checkpoint.entries.items():
            if name.startswith(_OPTIMIZER):
                index, kind = name.removeprefix(_OPTIMIZER).split("/")
                shape = () if kind == "step" else tuple(parameters[int(index)].shape)
                if entry.shape != shape or entry.dtype != np.float32:
                    raise ValueError(f"{name} is {entry.dtype} of shape {entry.shape}, expected float32 of {shape}")
                state.setdefault(int(index), {})[kind] = torch.from_numpy(checkpoint.read(name))
        for number, moments in state.items():
            if set(moments) != {"step", "exp_avg", "exp_avg_sq"}:
                raise ValueError(f"the optimiser's state of parameter {number} has {', '.join(moments)}")
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})

    @staticmethod
    def _compare(path: str | os.PathLike[str], theirs: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Complain if a checkpoint is of another training."""
        if theirs.get("codec") != own["codec"]:
            raise InputError(
                f"{path} was begun for another model: {_codec_words(theirs.get('codec'))} there, "
                f"{_codec_words(own['codec'])} now; give the same command and strings again"
            )
        before, now = theirs["training"], own["training"]
        if before.get("strings_sha256") != now["strings_sha256"]:
            raise InputError(
                f"{path} was begun with other strings ({before.get('strings')} of them, now {now['strings']}): a "
                "training can only be resumed with the same ones in the same order"
            )
        # A size or setting that there was not yet when a training began was as it had been before.
        sizes = {"channels": 0, "decoder": 1} | dict(theirs.get("sizes", {}))
        settings = {**SETTINGS_BEFORE, **before.get("settings", {})}
        pairs: list[tuple[str, Any, Any]]
        pairs = [(f"{name} of the network", sizes.get(name), new) for name, new in own["sizes"].items()]
        pairs += [(name, settings.get(name), new) for name, new in now["settings"].items()]
        pairs += [("the seed's first draw", before.get("seed"), now["seed"])]
        for name, old, new in pairs:
            if old != new:
                raise InputError(
                    f"{path} was begun with another setting: {name} was {old!r} and is now {new!r}; a training can "
                    "only be resumed with the same settings"
                )


def _adam(network: nn.Module, learning_rate: float) -> torch.optim.Adam:
    """Adam, in one pass over each weight where this torch can: else it takes a quarter of the time of small batches."""
    parameters = list(network.parameters())
    try:
        return torch.optim.Adam(parameters, lr=learning_rate, fused=True)
    except RuntimeError:
        return torch.optim.Adam(parameters, lr=learning_rate)


def _tamed(log_variance: Tensor) -> tuple[Tensor, Tensor]:
    """Log variances of at most `LARGEST_LOG_VARIANCE`, and what the divergence of larger ones adds to that of these.

    The variance of a string that the encoder does not know yet may run away, and the divergence grows exponentially: a
    single one would drown all others of its batch, or decide which epoch is the best. So the divergence continues as
    its tangent there, and it alone brings such a variance back. No posterior of a trained model comes near: the prior
    has a log variance of 0.
    """
    further = functional.relu(log_variance - LARGEST_LOG_VARIANCE)
    return log_variance - further, 0.5 * math.expm1(LARGEST_LOG_VARIANCE) * further


def _codec_words(codec: Any) -> str:
    """A codec's JSON values in words that tell two of them apart."""
    if not isinstance(codec, dict):
        return "an unknown model"
    if codec.get("model") == "grammar":
        rules = len(codec.get("heads", ()))
        return f"the grammar {codec.get('name')!r} of {rules} rules and trees of up to {codec.get('max_rules')}"
    alphabet = codec.get("alphabet", ())
    return (
        f"an alphabet of {len(alphabet)} symbols ({' '.join(map(str, alphabet[:40]))}) and strings of up to "
        f"{codec.get('max_length')}"
    )
