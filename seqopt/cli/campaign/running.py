"""``seqopt campaign run``: a function evaluates what a campaign suggests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import app
from seqopt.cli.campaign.common import one_of, opened
from seqopt.cli.campaign.options import Debug, Name, Which
from seqopt.cli.run_options import RUN, Asynchronous, ChunkSize, Isolate, StopAfterFailures, Timeout, Workers
from seqopt.cli.running import console, note, print_best, print_failures, print_heading, print_step, show_notes
from seqopt.errors import InputError, StoppedRunError
from seqopt.utils.progress import shown_by

if TYPE_CHECKING:
    from seqopt.campaign import Campaign

SHOWN = 5
"""Strings of the table at the end."""


@app.command()
def run(
    name: Name = None,
    budget: Annotated[
        int,
        typer.Option(
            help="Results that the campaign holds in the end, those that it has already among them.",
            rich_help_panel=RUN,
            min=1,
        ),
    ] = 100,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            "-o",
            metavar="SCORE",
            help="What computes the values, as for seqopt search. Default: what the campaign was begun with.",
            rich_help_panel=RUN,
        ),
    ] = None,
    workers: Workers = 1,
    asynchronous: Asynchronous = False,
    timeout: Timeout = None,
    chunk_size: ChunkSize = None,
    stop_after_failures: StopAfterFailures = 10,
    isolate: Isolate = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Let a function evaluate what the campaign suggests; open suggestions come first. The same command continues.

    seqopt campaign new gfp --protein gfp.fasta --objective 'mfe - 5*log_cai:human'
    seqopt campaign run gfp --budget 100
    seqopt campaign run kinase --objective docking.py:score --workers 8
    """
    del debug
    from seqopt.objectives import resolve_objective

    started = time.perf_counter()
    show_notes()
    with opened(one_of(name, which)) as campaign:
        settings, counts = campaign.store.settings, campaign.status().counts
        spec = objective or settings.computed_by
        if spec is None:
            raise InputError(
                f"{settings.objective} of this campaign is measured: name what computes it, by --objective mfe or "
                "file.py:function, or say what was measured (seqopt campaign record)"
            )
        score = resolve_objective(spec)
        done = counts.values + counts.failures
        if done >= budget:
            console.print(f"{done} of {budget} results are there already: for more, give a larger --budget")
            return
        by = "" if spec == settings.objective else f", computed by {spec}"
        there = f", {done} of them are there" if done else ""
        console.print(
            f"{settings.direction[:-1]}ing [bold]{escape(settings.objective)}[/bold]{escape(by)}: {budget} results"
            f"{there}, in batches of {settings.batch_size}, by {escape(settings.acquisition)}; seed {settings.seed}; "
            f"kept in {escape(str(campaign.store.path))}"
        )
        print_heading()
        try:
            with (
                console.status("searching") as status,
                shown_by(lambda text: status.update(escape(text) or "searching")),
            ):
                made = campaign.run(
                    spec,
                    budget=budget,
                    workers=workers,
                    asynchronous=asynchronous,
                    timeout=timeout,
                    chunk_size=chunk_size,
                    isolated=score.custom if isolate is None else isolate,
                    stop_after_failures=stop_after_failures or None,
                    on_step=lambda step: print_step(step, started),
                )
        except (KeyboardInterrupt, StoppedRunError):
            console.print("\nStopped. Everything scored so far is in the campaign; the same command continues.")
            raise
        if made < budget - done:
            note("nothing else is left to be suggested")
        print_failures(_failures(campaign))
        _print_best(campaign)


def _failures(campaign: Campaign) -> dict[str, int]:
    """Reasons of failures, the most frequent first."""
    from collections import Counter

    reasons = [row.failure for row in campaign.store.measurements() if row.failure is not None]
    return dict(Counter(reasons).most_common())


def _print_best(campaign: Campaign) -> None:
    """The best strings, each with what is recorded beside its value."""
    from seqopt.campaign.parents import MUTATIONS, parent_of
    from seqopt.campaign.rows import comparable
    from seqopt.strings.mutations import mutation_name

    settings = campaign.store.settings
    geometric = settings.transform == "log10"
    measured = [one for one in comparable(settings, campaign.store.observations()) if one.values]
    measured.sort(key=lambda one: one.certain(settings.direction, geometric=geometric), reverse=True)
    names = {row.key: row.name for row in campaign.store.suggestions()}
    further, parent = settings.further_names, parent_of(settings)

    def shown(number: float | None) -> str:
        return "" if number is None else f"{number:,.5g}"

    string = "gene" if settings.space.get("type") == "CodonSpace" else settings.string_column
    print_best(
        f"Best of {len(measured)} by {settings.objective}",
        {
            "name": "left",
            "value": "right",
            **dict.fromkeys(further, "right"),
            **({} if parent is None else {MUTATIONS: "left"}),
            string: "left",
        },
        [
            (
                names.get(one.key, ""),
                shown(one.mean(geometric=geometric)),
                *(shown(one.further(name)) for name in further),
                *([] if parent is None else [mutation_name(parent, one.key)]),
                one.string,
            )
            for one in measured[:SHOWN]
        ],
    )
    console.print("\nAll of them: seqopt campaign export results.csv; to look at them: seqopt report", end=" ")
    console.print(escape(str(campaign.store.path)))
