"""Variational autoencoders: what they reconstruct, and the validity of what they generate.

Models of arithmetic expressions and of drug-like molecules, on characters and on the rules of a grammar, and of
molecules on SELFIES, too.
Given are, on strings that a model has not seen, the shares of characters and of whole strings that come back from the
posterior mean by greedy decoding, the divergence from the prior and the number of dimensions that hold it, and the
share of 1,000 decoded draws from the prior that are valid. The models are kept in the cache folder, where
`seqopt bench boss` takes those of its expressions from.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seqopt.bench.records import append_record, read_records
from seqopt.bench.runner import header, replace_section
from seqopt.errors import InputError
from seqopt.utils.cache import cache_dir

if TYPE_CHECKING:
    from seqopt.vae import Codec, Epoch, StringVAE

EVALUATED = 2000
"""Held-out strings on which a model is measured."""

ROWS = 10
"""Epochs of a training in the table."""

GLIMPSED = 500
"""Draws from the prior that are looked at after each epoch."""


@dataclass(frozen=True)
class Task:
    """What a model learns, and how.

    Attributes:
        label: In the table.
        model: On characters, on rules of a grammar, or on SELFIES.
        strings: How many strings it learns from, those held out included.
        latent: Latent dimensions.
        epochs: Passes over the strings.
        longest: Terminals of the longest expression; `None` for molecules.
        tokenizer: Of a character model.
        settings: How the training differs from `TrainingSettings`.
        sizes: How the network differs from `NetworkSizes`.
    """

    label: str
    model: Literal["character", "grammar", "selfies"]
    strings: int
    latent: int
    epochs: int
    longest: int | None
    tokenizer: str = "characters"
    settings: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


_FIRST: Mapping[str, Any] = {
    "settings": {"sorted_batches": 50, "ramp": 200, "warmup": 0.6},
    "sizes": {"channels": 64},
}
"""The first models of molecules."""


def _second(epochs: int) -> Mapping[str, Any]:
    """The second ones, trained in portions of the strings, so that a training of hours can be watched and resumed."""
    return {
        "settings": {
            "batch_size": 32,
            "learning_rate": 1.5e-3,
            "kl_weight": 0.005,
            "sorted_batches": 50,
            "ramp": 500,
            "warmup": 0.2,
            "portion": 25_000,
            "patience": epochs,
        },
        "sizes": {"channels": 64, "decoder": 2, "features": 64, "memory": 192},
    }


TASKS: Mapping[str, Task] = {
    "expressions-15-character": Task("expressions of 1 to 15 symbols", "character", 100_000, 25, 9, 15),
    "expressions-15-grammar": Task("expressions of 1 to 15 symbols", "grammar", 50_000, 25, 12, 15),
    "expressions-20-character": Task("expressions of 3 to 20 symbols", "character", 100_000, 25, 12, 20),
    "expressions-20-grammar": Task("expressions of 3 to 20 symbols", "grammar", 100_000, 25, 12, 20),
    "molecules-character": Task("molecules of ZINC 250k", "character", 50_000, 56, 36, None, **_FIRST),
    "molecules-grammar": Task("molecules of ZINC 250k", "grammar", 50_000, 56, 14, None, **_FIRST),
    "molecules-symbols": Task(
        "molecules of ZINC 250k", "character", 249_456, 56, 28, None, tokenizer="smiles", **_second(28)
    ),
    "molecules-symbols-long": Task(
        "molecules of ZINC 250k", "character", 249_456, 56, 44, None, tokenizer="smiles", **_second(44)
    ),
    "molecules-selfies": Task("molecules of ZINC 250k", "selfies", 249_456, 56, 28, None, **_second(28)),
    "molecules-symbols-short": Task(
        "molecules of ZINC 250k", "character", 249_456, 56, 20, None, tokenizer="smiles", **_second(20)
    ),
    "molecules-selfies-short": Task("molecules of ZINC 250k", "selfies", 249_456, 56, 20, None, **_second(20)),
    "molecules-grammar-short": Task("molecules of ZINC 250k", "grammar", 249_456, 56, 20, None, **_second(20)),
}
"""The models by name."""

AUTOENCODER_OF_MOLECULES = "molecules-symbols-long"
"""The model of molecules that searches use: the best of all at bringing molecules back."""

GRAMMAR_AUTOENCODER_OF_MOLECULES = "molecules-grammar-short"
"""The best of those on the rules of a grammar."""

FIELDS = ("task",)
"""What tells runs apart."""

SHORTEST = {15: 1, 20: 3}
"""Terminals of the shortest expression, by those of the longest."""


def model_path(name: str) -> Path:
    """Where the model of a task is kept."""
    return cache_dir() / "vae" / f"{name}.vae"


def trained_model(name: str) -> Path:
    """The file of the trained model of a task.

    Raises:
        InputError: If it has not been trained on this machine.
    """
    path = model_path(name)
    if not path.exists():
        raise InputError(f"there is no model {path}: train it first, seqopt bench vae --tasks {name}")
    return path


def load_model(name: str) -> StringVAE:
    """The trained model of a task; see `trained_model`."""
    from seqopt.vae import StringVAE

    return StringVAE.load(trained_model(name))


def surrogate_name(name: str) -> str:
    """The name of a surrogate that a search understands: ``vae`` stands for `AUTOENCODER_OF_MOLECULES`.

    Raises:
        InputError: See `trained_model`.
    """
    return f"vae:{trained_model(AUTOENCODER_OF_MOLECULES)}" if name == "vae" else name


def strings_of(task: Task) -> list[str]:
    """The strings that a model learns from, drawn by a fixed seed."""
    rng = np.random.default_rng(0)
    if task.longest is not None:
        from seqopt.spaces import GrammarSpace

        return GrammarSpace("arithmetic", SHORTEST[task.longest], task.longest).sample(task.strings, rng)
    from seqopt.datasets import read_pool

    keys = read_pool("zinc250k").keys
    return [keys[index] for index in rng.permutation(len(keys))[: task.strings]]


def work(name: str, curve: Path, device: str = "cpu") -> dict[str, Any]:
    """Train one model, in one thread or on a GPU, and measure it.

    Args:
        name: Of the task.
        curve: Where a line is written after each epoch; see `watch`.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``.
    """
    from seqopt.vae import NetworkSizes, TrainingSettings, evaluate_vae, train
    from seqopt.vae.networks import resolve_device

    trains_on = resolve_device(device)

    task = TASKS[name]
    path = model_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    strings = strings_of(task)
    codec, strings = _codec(task, strings)
    settings = TrainingSettings(epochs=task.epochs, **task.settings)
    started, cpu = time.perf_counter(), time.process_time()
    unfinished = path.with_suffix(".part")
    resumed = unfinished.exists()
    training = train(
        strings,
        codec,
        NetworkSizes(latent=task.latent, **task.sizes),
        settings,
        rng=np.random.default_rng(0),
        checkpoint=unfinished,
        resume=resumed,
        progress=lambda epoch: watch(epoch, name, unfinished, curve),
        device=trains_on,
        facts={"task": name},
    )
    # Of all epochs, those before an interruption too; the processor's time only of those that were done at one go.
    seconds = {"epochs": round(sum(epoch.seconds for epoch in training.history), 1)}
    if not resumed:
        seconds |= {
            "wall": round(time.perf_counter() - started, 1),
            "processor": round(time.process_time() - cpu, 1),
        }
    unfinished.replace(path)
    measured = evaluate_vae(
        training.vae, training.held_out[:EVALUATED], rng=np.random.default_rng(1), valid=_valid(task)
    )
    return {
        "task": name,
        "model": task.model,
        "strings": len(strings),
        "latent": task.latent,
        "kl_weight": settings.kl_weight,
        "tokenizer": task.tokenizer,
        "epochs": len(training.history),
        "best_epoch": training.best_epoch,
        "device": trains_on.type,
        "seconds": seconds,
        "measured": _rounded_values(measured.to_json()),
    }


def watch(epoch: Epoch, name: str, unfinished: Path, curve: Path) -> None:
    """Say how far a training is, and write it down.

    A line holds the epoch, and of the model that would be kept if the training ended here the share of `GLIMPSED` draws
    from the prior that are valid. What an interrupted command had not yet written is written without that share.

    Args:
        epoch: The last epoch.
        name: Of the task.
        unfinished: The checkpoint, which holds that epoch.
        curve: A file of JSON lines.
    """
    from seqopt.vae import StringVAE

    task = TASKS[name]
    print(
        f"{name}: epoch {epoch.epoch} of {task.epochs}, held-out loss {epoch.loss or math.nan:.2f}, "
        f"{epoch.strings_right or 0:.1%} of held-out strings right, {epoch.seconds:.0f} s",
        flush=True,
    )
    vae = StringVAE.load(unfinished)
    drawn = vae.decode(np.random.default_rng(1).standard_normal((GLIMPSED, vae.size)))
    valid = float(np.mean([_valid(task)(string) for string in drawn]))
    history = vae.facts["training"]["history"]
    settings = vae.facts["training"]["settings"]
    identity = {"task": name, "kl_weight": settings["kl_weight"], "batch_size": settings["batch_size"]}
    strings = settings["portion"] or vae.facts["training"]["strings"]
    for done in history:
        last = done["epoch"] == epoch.epoch
        line = {**identity, "strings": strings * done["epoch"], **_rounded_values(done)}
        append_record(curve, line | {"valid": valid if last else None}, (*FIELDS, "epoch"), again=last)


def _codec(task: Task, strings: list[str]) -> tuple[Codec, list[str]]:
    """The codec, and the strings that it reads: neither the grammar of SMILES nor SELFIES need have all of ZINC."""
    from seqopt.vae import CharacterCodec, GrammarCodec, SelfiesCodec

    grammar = "smiles" if task.longest is None else "arithmetic"
    if task.model == "character":
        return CharacterCodec.of(strings, tokenizer=task.tokenizer), strings
    codec: GrammarCodec | SelfiesCodec
    if task.model == "selfies":
        codec = SelfiesCodec.of(strings, skip=True)
    else:
        codec = GrammarCodec.of(grammar, strings, skip=task.longest is None)
    return codec, codec.derived(strings)


def _valid(task: Task) -> Callable[[str], bool]:
    if task.longest is not None:
        from seqopt.spaces import GrammarSpace

        return GrammarSpace("arithmetic", 1, 1000).contains
    from seqopt.strings.identity import identity_keys

    return lambda string: bool(string) and identity_keys([string], "molecule")[0] is not None


def _rounded_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _rounded(value) for name, value in values.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, 5) if isinstance(value, float) else value


def main(argv: Sequence[str] | None = None) -> None:
    """Train and measure what is missing, one after the other, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench vae", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument(
        "--results", type=Path, default=Path("results/vae.jsonl"), help="file of the raw results, a JSON object a line"
    )
    parser.add_argument("--device", default="cpu", help="what trains: cpu (the default), cuda or auto")
    parser.add_argument(
        "--curve",
        action="store_true",
        help="also write the table and the figure of what was measured while models learnt",
    )
    parser.add_argument(
        "--epochs",
        type=Path,
        default=Path("results/vae-curve.jsonl"),
        help="file of what is measured after each epoch",
    )
    parser.add_argument("--figure", type=Path, default=Path("docs/img/vae-curve.png"), help="where the figure goes")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--report-only", action="store_true", help="train nothing, only write the table")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        record = header(list(argv or []), "vae")
        measured = {run["task"] for run in read_records(options.results, FIELDS)}
        for name in options.tasks:
            if name in measured and model_path(name).exists():
                print(f"{name} is there already", flush=True)
                continue
            append_record(
                options.results, work(name, options.epochs, options.device) | {"record": record}, FIELDS, again=True
            )
    text = table(options.results)
    print(text)
    replace_section(options.document, "vae", text)
    if options.curve:
        epochs = curves(options.epochs)
        text = curve_table(epochs)
        print(text)
        replace_section(options.document, "vae-curve", text)
        draw_curves(epochs, options.figure)


def table(results: Path) -> str:
    """All measured models."""
    lines = [
        "| strings | model | learnt from | KL weight | characters right | strings right | KL, nats | active dimensions "
        "| valid draws | training, s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    runs = {run["task"]: run for run in read_records(results, FIELDS)}
    for name, task in TASKS.items():
        run = runs.get(name)
        if run is None:
            continue
        found = run["measured"]
        lines.append(
            f"| {task.label} | {_model_words(task)} | {run['strings']:,} | {run['kl_weight']:g} "
            f"| {found['characters_right']:.2%} | {found['strings_right']:.1%} | {found['kl']:.1f} "
            f"| {found['active']} of {run['latent']} | {found['valid']:.1%} | {_time_words(run)} |"
        )
    return "\n".join(lines)


def _time_words(run: Mapping[str, Any]) -> str:
    """Seconds of a training: of one thread of a processor, unless it says of which GPU."""
    where = run["record"]["machine"].get("gpu", "GPU") if run.get("device", "cpu") == "cuda" else "one thread"
    return f"{run['seconds']['epochs']:,.0f} ({where})"


def _model_words(task: Task) -> str:
    if task.model == "selfies":
        return "SELFIES"
    return task.model if task.tokenizer == "characters" else f"{task.model}, symbols of SMILES"


def curves(results: Path) -> dict[str, list[dict[str, Any]]]:
    """What was measured after the epochs of each task, in their order.

    Raises:
        InputError: If nothing was.
    """
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for line in read_records(results, (*FIELDS, "epoch")):
        found.setdefault(line["task"], {})[line["epoch"]] = line
    if not found:
        raise InputError(f"{results} holds no epochs: train a model first, seqopt bench vae --tasks molecules-symbols")
    return {task: [epochs[number] for number in sorted(epochs)] for task, epochs in found.items()}


def curve_table(epochs: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Up to `ROWS` epochs of each task, the last among them. Processor time is that of all epochs until then.

    A training on a GPU keeps one thread of a processor busy all the while.
    """
    lines = [
        "| model | min | strings seen | loss, training | loss, held out | KL, nats | symbols right "
        "| strings right | valid draws |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task, history in epochs.items():
        minutes = _minutes(history)
        for index in sorted({round(place) for place in np.linspace(0, len(history) - 1, ROWS)}):
            line = history[index]
            valid = "" if line["valid"] is None else f"{line['valid']:.0%}"
            lines.append(
                f"| {task} | {minutes[index]:.1f} | {line['strings']:,} | {line['train_loss']:.2f} "
                f"| {line['loss']:.2f} | {line['kl']:.0f} | {line['symbols_right']:.1%} "
                f"| {line['strings_right']:.1%} | {valid} |"
            )
    return "\n".join(lines)


def draw_curves(epochs: Mapping[str, Sequence[Mapping[str, Any]]], picture: Path) -> None:
    """Strings right and valid draws against the strings seen, which no machine changes, of all tasks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, field_name, title in zip(
        panels,
        ("strings_right", "valid"),
        ("held-out strings that come back whole", "draws from the prior that are valid"),
        strict=True,
    ):
        for task, history in epochs.items():
            points = [
                (line["strings"] / 1e6, 100 * line[field_name]) for line in history if line[field_name] is not None
            ]
            axes.plot(*zip(*points, strict=True), marker=".", label=task)
        axes.set(xlabel="strings seen, millions", ylabel="%", title=title, ylim=(0, None))
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)


def _minutes(history: Sequence[Mapping[str, Any]]) -> list[float]:
    """Processor time at the end of each epoch; the clock's where that was not recorded."""
    spent = [line["seconds"] if line["processor"] is None else line["processor"] for line in history]
    return (np.cumsum(spent) / 60).tolist()
