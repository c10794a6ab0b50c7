"""``seqopt train-vae``: a variational autoencoder of strings."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.encoding import Tokenizer
    from seqopt.vae import Codec, Epoch, NetworkSizes, Training, TrainingSettings

WHAT, HOW, RUN = "What to learn", "How to learn", "The run"

LATENT = {"molecule": 56}
"""Latent dimensions where none are chosen, by kind of string; 25 for all others."""

EVALUATED = 2_000
"""Held-out strings on which the finished model is measured."""


def train_vae_command(
    strings: Annotated[
        str | None,
        typer.Argument(
            metavar="STRINGS",
            help="The strings to learn from: a .csv, .tsv, .xlsx, .sdf, .smi, .txt, .fasta or .parquet file, or the "
            "name of a built-in set (zinc250k). Leave it out to draw strings from a grammar with --sample.",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="character (one symbol after the other), grammar (one rule of a grammar after the other, so that "
            "whatever is decoded is grammatical) or selfies (molecules as SELFIES: every sequence of symbols is one; "
            "needs the package selfies).",
            rich_help_panel=WHAT,
        ),
    ] = "character",
    grammar: Annotated[
        str | None,
        typer.Option(
            help="The grammar: arithmetic, smiles, regex, or the path of a .cfg file. A grammar model needs it; for a "
            "character model it says which decoded strings are valid.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            help="Learn from this many strings: a random part of STRINGS, or without STRINGS random strings of the "
            "grammar.",
            rich_help_panel=WHAT,
            min=2,
        ),
    ] = None,
    min_length: Annotated[
        int, typer.Option(help="Fewest terminals of strings drawn from the grammar.", rich_help_panel=WHAT, min=1)
    ] = 1,
    max_length: Annotated[
        int | None,
        typer.Option(
            help="Most symbols of a string (terminals, for a grammar): longer ones are left out. Strings drawn from a "
            "grammar have at most 15 if it is not given.",
            rich_help_panel=WHAT,
            min=1,
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(help="Column that holds the strings. Recognised if not given.", rich_help_panel=WHAT),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(help="molecule, protein, dna, rna, text, or auto to recognise it.", rich_help_panel=WHAT),
    ] = "auto",
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Symbols of a character model: characters, smiles (bracket atoms are one symbol) or smiles-split. "
            "Default: smiles for molecules, characters otherwise.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    skip: Annotated[
        bool,
        typer.Option(
            "--skip",
            help="Leave strings out that the grammar does not derive, or that have no SELFIES, instead of stopping at "
            "the first one.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    latent: Annotated[
        int | None,
        typer.Option(help="Latent dimensions. Default: 56 for molecules, 25 otherwise.", rich_help_panel=HOW, min=1),
    ] = None,
    hidden: Annotated[int, typer.Option(help="Units of a hidden layer.", rich_help_panel=HOW, min=1)] = 512,
    epochs: Annotated[int, typer.Option(help="Passes over the strings, at most.", rich_help_panel=HOW, min=1)] = 20,
    portion: Annotated[
        int,
        typer.Option(
            help="An epoch is so many of the strings instead of all: it is measured and saved the more often. "
            "--epochs and --patience count portions then.",
            rich_help_panel=HOW,
            min=0,
        ),
    ] = 0,
    batch: Annotated[
        int | None,
        typer.Option(
            help="Strings in each training step. Default: 32 for molecules, 128 otherwise.", rich_help_panel=HOW, min=1
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Learning rate of Adam at the start; it falls to 0. Default: 0.0015 for molecules, 0.002 otherwise.",
            rich_help_panel=HOW,
        ),
    ] = None,
    kl_weight: Annotated[
        float | None,
        typer.Option(
            help="Weight of the divergence from the prior: 1 is the evidence lower bound, less reconstructs better. "
            "Default: 0.005 for molecules, 0.1 otherwise.",
            rich_help_panel=HOW,
        ),
    ] = None,
    held_out: Annotated[
        float, typer.Option(help="Share of the strings that is held out to watch and measure.", rich_help_panel=HOW)
    ] = 0.05,
    patience: Annotated[
        int, typer.Option(help="Epochs without progress after which training ends.", rich_help_panel=HOW, min=1)
    ] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.", rich_help_panel=HOW, min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="File of the model. Default: runs/STRINGS-MODEL.vae.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an interrupted training: give the same command again, with --resume.",
            rich_help_panel=RUN,
        ),
    ] = False,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, or auto for the GPU where there is one.", rich_help_panel=RUN)
    ] = "auto",
    threads: Annotated[int, typer.Option(help="Threads on a CPU.", rich_help_panel=RUN, min=1)] = 1,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error.", rich_help_panel=RUN)
    ] = False,
) -> None:
    """Train a variational autoencoder: strings to points of a latent space and back.

    Its latent space can be searched instead of the strings themselves: a baseline to compare with. Part of the strings
    is held out; when the loss on these gets no better, training ends.

    **Examples**

    Arithmetic expressions drawn from their grammar, learnt as sequences of its rules:

        seqopt train-vae --model grammar --grammar arithmetic --sample 50000 --max-length 15 --out expressions.vae

    Molecules, learnt as symbols of SMILES; measured and saved after each 25,000 of them:

        seqopt train-vae zinc250k --portion 25000 --epochs 28 --patience 28 --out molecules.vae

    Molecules are trained differently, since SMILES are long and of many lengths: convolutions come before the encoder,
    the decoder is another, batches are small and hold strings of similar length, and the divergence weighs less. A
    grammar of SMILES and no file of molecules: give --kind molecule.

    The file of the model holds numbers and facts only, and is written after each epoch. Ctrl-C stops at any time;
    continue with --resume. What was measured on the held-out strings is in OUT.json next to it.
    """
    del debug  # read by seqopt.cli.main
    from seqopt.vae import SMILES_SETTINGS, SMILES_SIZES, NetworkSizes, TrainingSettings

    if model not in ("character", "grammar", "selfies"):
        raise InputError(f"unknown model {model!r}: choose character, grammar or selfies")
    if model == "selfies" and tokenizer is not None:
        raise InputError(f"a SELFIES model has symbols of its own: leave --tokenizer {tokenizer} out")
    if model == "grammar" and grammar is None:
        raise InputError("a grammar model needs --grammar: arithmetic, smiles, regex, or the path of a .cfg file")
    if strings is None and (sample is None or grammar is None):
        raise InputError("nothing to learn from: give STRINGS, or --sample and --grammar to draw strings")
    settings = TrainingSettings(epochs=epochs, held_out=held_out, patience=patience, portion=portion)
    asked = {"batch_size": batch, "learning_rate": learning_rate, "kl_weight": kl_weight}
    given: dict[str, Any] = {option: value for option, value in asked.items() if value is not None}
    settings = replace(settings, **given)
    name = Path(strings).name.split(".")[0] if strings is not None else Path(str(grammar)).stem
    path = out if out is not None else _default_path(name, model)
    if path.is_dir():
        raise InputError(f"{path} is a folder: choose a file with --out")
    if resume and not path.exists():
        raise InputError(f"there is no training to resume in {path}: leave --resume out to start one")
    if not resume and path.exists():
        raise InputError(f"{path} already exists: continue it with --resume, or choose another file with --out")

    if resume and tokenizer is None and model == "character":
        tokenizer = _tokenizer_as_begun(path)
    chosen = _Strings(strings, grammar, sample, min_length, max_length, column, kind, tokenizer, seed)
    found, kind = chosen.read()
    if model == "selfies" and kind != "molecule":
        raise InputError(
            f"SELFIES are of molecules, and these strings are taken as {kind}: give --kind molecule if they are"
        )
    tokenizer = chosen.tokenizer_for(kind)
    sizes = NetworkSizes(LATENT.get(kind, 25) if latent is None else latent, hidden)
    if kind == "molecule":
        settings, sizes = replace(settings, **{**SMILES_SETTINGS, **given}), replace(sizes, **SMILES_SIZES)
    if resume:
        settings, sizes = _as_begun(path, settings, sizes, given)
    _train(found, kind, model, grammar, skip, tokenizer, sizes, settings, seed, path, resume, device, threads)


@dataclass(frozen=True)
class _Strings:
    """Which strings to learn from; the fields are options of the command."""

    source: str | None
    grammar: str | None
    sample: int | None
    min_length: int
    max_length: int | None
    column: str | None
    kind: str
    tokenizer: str | None
    seed: int

    def tokenizer_for(self, kind: str) -> str:
        """The tokeniser of a character model of strings of a kind."""
        return self.tokenizer or ("smiles" if kind == "molecule" else "characters")

    def read(self) -> tuple[list[str], str]:
        """The strings and their kind."""
        import numpy as np

        from seqopt.cli.running import console, note

        rng = np.random.default_rng([self.seed, 1])
        if self.source is None:
            from seqopt.spaces import GrammarSpace

            kind = "text" if self.kind == "auto" else self.kind
            space = GrammarSpace(str(self.grammar), self.min_length, self.max_length or 15, kind=kind)
            wanted = self.sample or 0
            with console.status(f"drawing {wanted:,} strings"):
                found = space.sample(wanted, rng)
            if len(found) < wanted:
                note(f"the grammar gave only {len(found):,} different strings")
            console.print(
                f"[bold]{len(found):,} strings[/bold] of {space.min_length} to {space.max_length} terminals drawn from "
                f"the grammar {escape(space.name)}"
            )
            return found, kind
        from seqopt.datasets import read_pool

        with console.status(f"reading {escape(self.source)}"):
            pool = read_pool(self.source, column=self.column, kind=None if self.kind == "auto" else self.kind)
        first, *remarks = pool.summary().splitlines()
        console.print(f"[bold]{escape(first)}[/bold]")
        for remark in remarks:
            note(remark)
        found = list(pool.strings)
        if self.max_length is not None:
            short = [
                string
                for string, length in zip(found, self._lengths(found, pool.kind), strict=True)
                if length <= self.max_length
            ]
            if len(short) < len(found):
                note(f"{len(found) - len(short):,} strings of more than {self.max_length} symbols are left out")
            found = short
        if self.sample is not None and self.sample < len(found):
            kept = sorted(rng.choice(len(found), self.sample, replace=False).tolist())
            found = [found[index] for index in kept]
            note(f"a random part of {len(found):,} strings is used")
        return found, pool.kind

    def _lengths(self, strings: list[str], kind: str) -> list[int]:
        tokenizer: Tokenizer
        if self.grammar is None:
            from seqopt.encoding import resolve_tokenizer

            tokenizer = resolve_tokenizer(self.tokenizer_for(kind))
        else:
            from seqopt.grammar import Rules, TerminalTokenizer, load_grammar

            tokenizer = TerminalTokenizer(Rules.of(load_grammar(self.grammar)).terminals)
        return list(map(len, tokenizer.tokenize_all(strings)))


def _tokenizer_as_begun(path: Path) -> str | None:
    """The tokeniser of a training to be resumed; `None` where the file does not say."""
    from seqopt.vae.checkpoint import open_checkpoint

    with open_checkpoint(path) as checkpoint:
        codec = checkpoint.facts.get("codec")
    name = codec.get("tokenizer") if isinstance(codec, dict) else None
    return name if isinstance(name, str) else None


def _as_begun(
    path: Path, settings: TrainingSettings, sizes: NetworkSizes, given: Collection[str]
) -> tuple[TrainingSettings, NetworkSizes]:
    """Settings that were not given are those with which a training was begun, by whatever version."""
    from seqopt.vae import SMILES_SETTINGS, SMILES_SIZES, NetworkSizes, TrainingSettings
    from seqopt.vae.checkpoint import open_checkpoint
    from seqopt.vae.training import SETTINGS_BEFORE

    with open_checkpoint(path) as checkpoint:
        facts = checkpoint.facts
    training, before = facts.get("training"), facts.get("sizes")
    if not isinstance(training, dict) or not isinstance(before, dict):
        return settings, sizes  # no training: what is wrong with the file is said where it is taken up
    default, plain = TrainingSettings(), NetworkSizes(latent=1)
    try:
        begun = {**SETTINGS_BEFORE, **training.get("settings", {})}
        own = {name: begun.get(name, getattr(default, name)) for name in SMILES_SETTINGS if name not in given}
        own_sizes = {name: before.get(name, getattr(plain, name)) for name in SMILES_SIZES}
        return replace(settings, **own), replace(sizes, **own_sizes)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged: its training was begun with impossible settings ({error})") from error


def _train(
    strings: list[str],
    kind: str,
    model: str,
    grammar: str | None,
    skip: bool,
    tokenizer: str,
    sizes: NetworkSizes,
    settings: TrainingSettings,
    seed: int,
    path: Path,
    resume: bool,
    device: str,
    threads: int,
) -> None:
    import numpy as np

    from seqopt.cli.running import command_line, console, note
    from seqopt.vae import CharacterCodec, GrammarCodec, SelfiesCodec, train

    started = time.perf_counter()
    codec: Codec
    with console.status("preparing the strings"):
        if model == "grammar":
            codec = rules = GrammarCodec.of(str(grammar), strings, skip=skip)
            derived = rules.derived(strings) if skip else strings
        elif model == "selfies":
            codec = molecules = SelfiesCodec.of(strings, skip=skip)
            derived = molecules.derived(strings) if skip else strings
        else:
            codec, derived = CharacterCodec.of(strings, tokenizer=tokenizer), strings
    if len(derived) < len(strings):
        note(f"{len(strings) - len(derived):,} strings are left out, because {_cannot(model)}")
        strings = derived
    console.print(
        f"{escape(codec.describe())}: up to {codec.steps} symbols, {sizes.latent} latent dimensions, KL weight "
        f"{settings.kl_weight:g}; seed {seed}; model in {escape(str(path))}"
    )
    console.print(
        f"\n{'epoch':>8} {'training loss':>13} {'held-out loss':>13} {'of it KL':>9} {'symbols right':>13} "
        f"{'strings right':>13} {'time':>7}"
    )

    def show(epoch: Epoch) -> None:
        elapsed = int(time.perf_counter() - started)
        console.print(
            f"{epoch.epoch:>4}/{settings.epochs:<3} {epoch.train_loss:>13.3f} {_number(epoch.loss):>13} "
            f"{_number(epoch.kl, settings.kl_weight):>9} {_percent(epoch.symbols_right):>13} "
            f"{_percent(epoch.strings_right):>13} {elapsed // 60:>4}:{elapsed % 60:02d}"
        )

    try:
        training = train(
            strings,
            codec,
            sizes,
            settings,
            rng=np.random.default_rng(seed),
            checkpoint=path,
            resume=resume,
            progress=show,
            device=device,
            threads=threads,
            facts={"kind": kind},
        )
    except KeyboardInterrupt:
        if path.exists():
            console.print(
                f"\nStopped. The model is in {escape(str(path))} as it was after its last epoch; continue with\n"
                f"  {escape(command_line())} --resume"
            )
        raise
    _report(training, _validity(codec, grammar, kind), seed, path)


def _cannot(model: str) -> str:
    return "they have no SELFIES" if model == "selfies" else "the grammar does not derive them"


def _validity(codec: Codec, grammar: str | None, kind: str) -> tuple[str, Callable[[str], bool]] | None:
    """What a valid string is, in words and as a predicate."""
    from seqopt.vae import GrammarCodec

    if kind == "molecule":
        from seqopt.strings.identity import identity_keys

        return "read by RDKit", lambda string: bool(string) and identity_keys([string], kind)[0] is not None
    if isinstance(codec, GrammarCodec):
        return "grammatical", codec.reads
    if grammar is not None:
        return "grammatical", GrammarCodec.of(grammar, [], max_rules=1 << 20).reads
    return None


def _report(training: Training, valid: tuple[str, Callable[[str], bool]] | None, seed: int, path: Path) -> None:
    """Measure the model on strings that it has not seen; print and keep what comes out."""
    import numpy as np

    from seqopt.cli.running import console
    from seqopt.vae import evaluate_vae

    best = f"epoch {training.best_epoch} of {len(training.history)}"
    console.print(f"\nThe model of {best} is in {escape(str(path))}.")
    if not training.held_out:
        return
    with console.status("measuring"):
        measured = evaluate_vae(
            training.vae,
            training.held_out[:EVALUATED],
            rng=np.random.default_rng([seed, 2]),
            valid=None if valid is None else valid[1],
        )
    words = f"{measured.samples:,} points drawn from the prior: {_percent(measured.distinct)} are different strings"
    if valid is not None:
        words += f", {_percent(measured.valid)} are {valid[0]}"
    console.print(
        f"Of {measured.strings:,} strings held out {_percent(measured.strings_right)} come back whole, and "
        f"{_percent(measured.characters_right)} of their characters.\n"
        f"KL {measured.kl:.2f} nats over {training.vae.size} dimensions, {measured.active} of them active; the "
        f"largest: {', '.join(f'{part:.2f}' for part in measured.kl_per_dimension[:8])}.\n"
        f"{words}."
    )
    beside = path.with_name(path.name + ".json")
    facts = {"model": training.vae.name, **training.vae.facts, "evaluation": measured.to_json()}
    if valid is not None:
        facts["evaluation"]["valid_means"] = valid[0]
    try:
        beside.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {beside}, where these numbers and those of all epochs belong: {error.strerror or error}. "
            f"The model is safe in {path}: once {beside} can be written, give the same command again with --resume, "
            "and it is measured once more"
        ) from error
    console.print(f"These numbers and those of all epochs: {escape(str(beside))}")


def _number(value: float | None, factor: float = 1.0) -> str:
    return "-" if value is None else f"{factor * value:.3f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _default_path(name: str, model: str) -> Path:
    from seqopt.cli.running import safe_name

    return Path("runs") / f"{safe_name(name)[:60] or 'strings'}-{model}.vae"
