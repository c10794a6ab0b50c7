"""What is said of spaces, batches and optimisers when they are shown; importing this registers it."""

from __future__ import annotations

import numpy as np

from seqopt.campaign.inquiry import PredictedStrings
from seqopt.campaign.parents import MUTATIONS, parent_of
from seqopt.campaign.wording import counted, percent
from seqopt.data import shown_interval, shown_number, written
from seqopt.errors import SeqoptError
from seqopt.optimizer import Batch, Optimizer
from seqopt.report.descriptions import evaluated, left_out, of_kind, without_empty
from seqopt.report.display import LARGEST_BATCH, LONGEST_STRING, SHOWN, Description, ListedString
from seqopt.report.formats import compact, shortened, significant
from seqopt.report.results import tidy_evaluations
from seqopt.spaces import CandidateSet, GrammarSpace
from seqopt.spaces.populations import SequenceSpace, described_size
from seqopt.strategies import ModelBased
from seqopt.strings.mutations import mutation_name
from seqopt.utils.config import described
from seqopt.utils.shown import register_renderer


def describe_batch(batch: Batch) -> Description:
    table = tidy_evaluations(batch.to_pandas())
    number = table["batch"].max() if len(table) else 0
    title = "Initial design" if number == 0 else f"Batch {number:.0f}"
    entries, columns = evaluated(table.head(LARGEST_BATCH), False)
    kept = [index for index, name in enumerate(columns) if name != "batch"]
    return Description(
        f"{title}: {counted(len(batch), 'string')} to evaluate",
        entries=tuple(ListedString(entry.string, tuple(entry.cells[index] for index in kept)) for entry in entries),
        columns=tuple(columns[index] for index in kept),
        kind=batch.kind,
        remarks=left_out(len(entries), len(batch)),
    )


def describe_predicted(found: PredictedStrings) -> Description:
    settings, parent = found.settings, parent_of(found.settings)
    rows = found[:LARGEST_BATCH]
    named = ("chance of a hit", "90 %") if settings.yes_no else ("predicted", "90 % of a measurement")
    entries, columns = without_empty(
        [
            ListedString(
                row.string,
                (
                    "" if row.rank is None else str(row.rank),
                    row.identifier or "",
                    "" if parent is None else mutation_name(parent, row.key),
                    percent(row.predicted) if settings.yes_no else shown_number(row.predicted),
                    f"{percent(row.low)} to {percent(row.high)}"
                    if settings.yes_no
                    else shown_interval(row.low, row.high, settings.transform, settings.objective, settings.unit),
                    "" if row.improvement is None else percent(row.improvement),
                    row.known,
                ),
            )
            for row in rows
        ],
        ("rank", "identifier", MUTATIONS, *named, "chance to beat the best", "known"),
    )
    unit = f" ({settings.unit})" if settings.unit else ""
    return Description(
        f"Predictions of {settings.objective}{unit} for {counted(len(found), 'string')}",
        entries=entries,
        columns=columns,
        kind=str((settings.pool or settings.space).get("kind") or "text"),
        remarks=(*left_out(len(rows), len(found)), "all columns: .to_pandas()"),
    )


def describe_candidates(space: CandidateSet) -> Description:
    facts = [("kind", space.kind), ("tokeniser", space.encoder.tokenizer.name)]
    if space.standardize:
        facts.append(("identity", "charge parents: salts and charge states of one molecule are one candidate"))
    return Description(
        f"Candidate set of {of_kind(space.kind, len(space))}",
        facts=tuple(facts),
        entries=tuple(ListedString(space[index]) for index in range(min(SHOWN, len(space)))),
        kind=space.kind,
        remarks=left_out(min(SHOWN, len(space)), len(space)),
    )


def describe_space(space: SequenceSpace | GrammarSpace) -> Description:
    size = {"size": described_size(space)} if isinstance(space, SequenceSpace) else {}
    known = {name: value for name, value in described(space).items() if name not in ("type", "custom")}
    facts = size | {name: value for name, value in known.items() if value is not False and value not in (None, [], "")}
    entries: tuple[ListedString, ...] = ()
    # A predicate may be slow, or refuse all that is drawn.
    if "accept" not in facts:
        try:
            entries = tuple(ListedString(string) for string in space.sample(SHOWN, np.random.default_rng(0)))
        except SeqoptError:
            entries = ()
    return Description(
        shortened(repr(space), LONGEST_STRING),
        facts=tuple((str(name).replace("_", " "), _fact(value)) for name, value in facts.items()),
        entries=entries,
        kind=space.kind,
        remarks=(f"{len(entries)} random ones are shown",) if entries else (),
    )


def _fact(value: object) -> str:
    if isinstance(value, list | tuple):
        return shortened(", ".join(map(_fact, value)), LONGEST_STRING)
    return f"{value:g}" if isinstance(value, float) else shortened(str(value), LONGEST_STRING)


def describe_optimizer(optimizer: Optimizer) -> Description:
    values, failures = (len(optimizer.observations.with_status(status)) for status in ("ok", "failed"))
    pending = optimizer.observations.pending
    best = optimizer.best_of(optimizer.observations.rows)
    facts = [
        ("space", repr(optimizer.space)),
        *_deciding(optimizer),
        ("told", f"{counted(values, 'value')}, {counted(failures, 'failure')}"),
        ("pending", f"{len(pending):,}" + (", below" if pending else "")),
        *([("best", f"{best.censored or ''}{significant(best.value)}: {best.string}")] if best is not None else []),
        *((name.replace("_", " "), compact(value)) for name, value in optimizer.hyperparameters.items()),
    ]
    return Description(
        f"Optimizer ({optimizer.direction})",
        facts=tuple(facts),
        entries=tuple(ListedString(row.string) for row in pending[:LARGEST_BATCH]),
        kind=optimizer.space.kind,
        remarks=left_out(min(LARGEST_BATCH, len(pending)), len(pending)),
    )


def _deciding(optimizer: Optimizer) -> list[tuple[str, str]]:
    """What decides: a strategy, or the parts of the usual one."""
    strategy = optimizer.strategy.then
    parts = [] if type(strategy) is ModelBased else [("strategy", type(strategy).__name__)]
    if isinstance(strategy, ModelBased):
        parts += [
            ("surrogate", type(strategy.surrogate).__name__),
            ("acquisition", strategy.acquisition.name),
            ("search", type(strategy.search).__name__),
        ]
    if optimizer.contexts is not None:
        parts.append(("measured with", f"{'; '.join(map(written, optimizer.contexts.possible))}"))
        parts.append(("target", written(optimizer.contexts.target)))
    parts += [(outcome.role, outcome.name) for outcome in optimizer.outcomes[1:]]
    return parts


register_renderer(PredictedStrings, describe_predicted)
register_renderer(Batch, describe_batch)
register_renderer(CandidateSet, describe_candidates)
register_renderer(GrammarSpace, describe_space)
register_renderer(Optimizer, describe_optimizer)
register_renderer(SequenceSpace, describe_space)  # type: ignore[type-abstract]
