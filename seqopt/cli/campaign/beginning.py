"""``seqopt campaign new`` and ``filter``: what a campaign is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import app
from seqopt.cli.campaign.common import (
    file_of,
    one_of,
    opened,
    print_lines,
    progress_in,
    refuse_idle,
)
from seqopt.cli.campaign.options import (
    HOW,
    WHAT,
    Debug,
    IdColumn,
    Name,
    Which,
)
from seqopt.cli.choosing import (
    AlertNames,
    DesignName,
    Exclude,
    Forbid,
    ForbidPattern,
    Include,
    Lead,
    LeadDistance,
    LeadScale,
    MaxSimilarity,
    PerScaffold,
    Properties,
    Radius,
    Require,
    RequirePattern,
    Where,
    given_filters,
    given_lead,
    given_limits,
)
from seqopt.cli.gene_options import (
    GC,
    Avoid,
    BothStrands,
    Code,
    Constraints,
    Downstream,
    GeneOptions,
    Start,
    Stop,
    Upstream,
)
from seqopt.cli.informed import FeaturesColumn, FeaturesFile, FeaturesKernel, Informed, PriorMeanName
from seqopt.cli.large_options import Keep, OnDisk, PrefilterName, StrategyName
from seqopt.cli.reagent_options import Reactions, Reagents, chosen_acquisition, refuse_pool_options
from seqopt.cli.running import console, note, note_opposites, show_notes
from seqopt.cli.variant_options import (
    Letters,
    LibraryCodons,
    Mutations,
    ParentSequence,
    Positions,
    TemplateText,
    VariantOptions,
)
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign import Settings
    from seqopt.data import Contexts, ContextValue
    from seqopt.datasets import PoolStore
    from seqopt.spaces import Space


@app.command()
def new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What to call it; its file is NAME.seqopt.")],
    objective: Annotated[
        str | None,
        typer.Option("--objective-name", help="What is measured, such as pIC50.", rich_help_panel=WHAT),
    ] = None,
    computed: Annotated[
        str | None,
        typer.Option(
            "--objective",
            "-o",
            metavar="SCORE",
            help="Instead of what is measured, what computes it, as for seqopt search and seqopt genes: mfe, "
            "file.py:function, or a weighted sum such as 'mfe - 5*log_cai:human', whose scores are recorded beside it. "
            "seqopt campaign run evaluates it.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    pool: Annotated[
        Path | None,
        typer.Option(
            help="A file of candidates, as for seqopt search; a folder or a pattern ('parts/*.csv.gz') is searched on "
            "disk.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="Column of the candidates, if not recognised.", rich_help_panel=WHAT)
    ] = None,
    kind: Annotated[
        str, typer.Option(help="molecule, protein, dna, rna, text, or auto to recognise it.", rich_help_panel=WHAT)
    ] = "auto",
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Treat salts and charge states as one.", rich_help_panel=WHAT)
    ] = False,
    decimal_comma: Annotated[
        bool,
        typer.Option(
            "--decimal-comma",
            help="Numbers in the pool are written 6,5; tables of the campaign, too.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    attachment_points: Annotated[
        bool,
        typer.Option("--attachment-points", help="Keep molecules with attachment points (*).", rich_help_panel=WHAT),
    ] = False,
    id_column: IdColumn = None,
    price_column: Annotated[
        str | None,
        typer.Option(
            help="Column of prices, to show what suggestions cost, if not recognised by its name; none for no prices.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    alphabet: Annotated[
        str | None,
        typer.Option(help="Instead of a pool: all strings over these letters.", rich_help_panel=WHAT),
    ] = None,
    length: Annotated[
        str | None, typer.Option(help="Their length, 20, or lengths, 5-20.", rich_help_panel=WHAT)
    ] = None,
    protein: Annotated[
        str | None,
        typer.Option(
            metavar="PROTEIN|FILE",
            help="Instead of a pool: all genes of this protein, in one-letter amino acids or a FASTA or GenBank file.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    grammar: Annotated[
        str | None,
        typer.Option(help="Instead of a pool: the strings of a grammar, with --length.", rich_help_panel=WHAT),
    ] = None,
    reactions: Reactions = None,
    reagents: Reagents = None,
    maximize: Annotated[
        bool | None,
        typer.Option(
            "--maximize/--minimize",
            help="Whether large or small values are good. Default: large, or what is usual for a score (mfe: small).",
            rich_help_panel=WHAT,
        ),
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Of the values.", rich_help_panel=WHAT)] = None,
    transform: Annotated[
        str,
        typer.Option(
            help="What the model sees of the values: auto, learned at each suggestion (often the values themselves); "
            "log10 for positive ones that span decades, such as IC50 in nM; yeo-johnson, winsorised, ranks; none.",
            rich_help_panel=WHAT,
        ),
    ] = "auto",
    results: Annotated[
        str,
        typer.Option(
            metavar="numbers|yes/no",
            help="What a result is: a number, or hit / no hit (active / inactive / inconclusive, hits of wells).",
            rich_help_panel=WHAT,
        ),
    ] = "numbers",
    batch: Annotated[int, typer.Option(help="Suggestions at a time.", rich_help_panel=HOW, min=2)] = 10,
    surrogate: Annotated[str, typer.Option(help="The model; see seqopt search --help.", rich_help_panel=HOW)] = "auto",
    acquisition: Annotated[
        str, typer.Option(help="How batches are chosen; see seqopt search --help.", rich_help_panel=HOW)
    ] = "gibbon",
    fidelity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:COST",
            help="A way to measure and what one measurement costs, docking:0.01; give it for each.",
            rich_help_panel=HOW,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The fidelity that is meant in the end. Default: the dearest one.", rich_help_panel=HOW),
    ] = None,
    budget_cost: Annotated[
        float | None, typer.Option(help="Cost that may be spent in all.", rich_help_panel=HOW)
    ] = None,
    plates: Annotated[
        bool,
        typer.Option(
            "--plates",
            help="Measurements are made on plates, each with an offset; what counts is what all have in common.",
            rich_help_panel=HOW,
        ),
    ] = False,
    plate_size: Annotated[
        int | None, typer.Option(help="Wells of a plate. Default: 96.", rich_help_panel=HOW, min=2)
    ] = None,
    controls: Annotated[
        str | None,
        typer.Option(
            metavar="STRINGS|@FILE",
            help="What is measured on every plate: 'CCO,CCN', or @controls.csv.",
            rich_help_panel=HOW,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same suggestions.", rich_help_panel=HOW, min=0)
    ] = 0,
    parent: ParentSequence = None,
    mutations: Mutations = None,
    positions: Positions = None,
    letters: Letters = None,
    template: TemplateText = None,
    library: LibraryCodons = None,
    code: Code = None,
    start: Start = None,
    stop: Stop = None,
    avoid: Avoid = None,
    both_strands: BothStrands = True,
    gc: GC = None,
    constraint: Constraints = None,
    upstream: Upstream = None,
    downstream: Downstream = None,
    properties: Properties = None,
    require: Require = None,
    forbid: Forbid = None,
    alerts: AlertNames = None,
    where: Where = None,
    require_pattern: RequirePattern = None,
    forbid_pattern: ForbidPattern = None,
    exclude: Exclude = None,
    include: Include = None,
    design: DesignName = "auto",
    per_scaffold: PerScaffold = None,
    max_similarity: MaxSimilarity = None,
    lead: Lead = None,
    radius: Radius = None,
    lead_distance: LeadDistance = "auto",
    lead_scale: LeadScale = 1.0,
    strategy: StrategyName = "model",
    prefilter: PrefilterName = None,
    keep: Keep = None,
    on_disk: OnDisk = None,
    features: FeaturesFile = None,
    features_kernel: FeaturesKernel = "rbf",
    features_column: FeaturesColumn = None,
    prior_mean: PriorMeanName = None,
    debug: Debug = False,
) -> None:
    """Begin a campaign.

    seqopt campaign new kinase --pool library.csv --objective-name pIC50 --maximize
    seqopt campaign new kinase --pool library.csv --objective-name pIC50 --property "MW 200..500" --where "price <= 100"
    seqopt campaign new petase --parent wt.fasta --mutations 3 --positions 12,45-60 --objective-name activity
    seqopt campaign new enzyme --protein MKV...  --objective-name expression --batch 8 --avoid BsaI --gc 0.4 0.6
    seqopt campaign new spike --protein spike.fasta --objective 'mfe - 5*log_cai:human'
    seqopt campaign new amides --reactions reactions.csv --reagents blocks/ --objective-name pIC50 --batch 24
    seqopt campaign new screen --pool library.csv --objective-name inhibits --results yes/no --batch 96
    """
    del debug  # read by seqopt.cli.main
    path = file_of(Path(name))
    if path.exists():
        raise InputError(f"{path} already exists: choose another name, or continue it")
    if objective is None and computed is None:
        raise InputError(
            "say what is measured, by --objective-name pIC50, or what computes it, by --objective mfe or "
            "file.py:function"
        )
    refuse_idle({"--decimal-comma": decimal_comma and pool is None}, "--pool")
    contexts = fidelities_of(fidelity or [], target)
    yes_no = results_of(results)
    if yes_no and transform != "auto":
        raise InputError(f"--transform {transform} is one of numbers, and results are yes or no: leave it out")
    if yes_no and unit is not None:
        raise InputError(f"results that are yes or no have no unit: leave --unit {unit} out")
    if yes_no and (plates or contexts is not None):
        other = "--plates" if plates else "--fidelity"
        raise InputError(f"--results yes/no and {other} do not go together yet: keep one of them")
    if computed is not None and (yes_no or plates or contexts is not None):
        other = "--results yes/no" if yes_no else "--plates" if plates else "--fidelity"
        raise InputError(f"--objective {computed} is computed, which {other} does not go with: give --objective-name")
    refuse_idle({"--budget-cost": budget_cost is not None and contexts is None}, "--fidelity NAME:COST")
    refuse_idle({"--plate-size": plate_size is not None and not plates}, "--plates")
    refuse_idle({"--controls": controls is not None and not plates}, "--plates")
    if plates and contexts is not None:
        raise InputError("--plates and --fidelity do not go together yet: keep one of them")
    if plates and surrogate != "auto":
        raise InputError(f"--surrogate {surrogate} knows nothing of plates: leave it out")
    if contexts is not None and surrogate != "auto":
        raise InputError(f"--surrogate {surrogate} knows nothing of fidelities: leave it out")
    genes = GeneOptions(code, start, stop, avoid or (), both_strands, gc, constraint or (), upstream, downstream)
    refuse_idle({option: given and protein is None for option, given in genes.given.items()}, "--protein")
    near = given_lead(lead, radius, lead_distance, lead_scale)
    show_notes()
    variants = VariantOptions(parent, mutations, positions, letters, template, library)
    large = {"strategy": strategy, "prefilter": prefilter, "keep": keep, "on_disk": on_disk}
    informed = Informed(features, features_kernel, features_column, prior_mean)
    informed.check(
        pool=None if pool is None else str(pool),
        strategy=strategy,
        prefilter=prefilter,
        fidelities=contexts is not None,
        plates=plates,
    )
    if yes_no and (strategy != "model" or prefilter is not None):
        option = f"--strategy {strategy}" if strategy != "model" else f"--prefilter {prefilter}"
        raise InputError(f"--results yes/no has a classifier of its own: leave {option} out")
    if informed.given and yes_no:
        raise InputError("--results yes/no has a model of its own: leave --features and --prior-mean out")
    conditions = given_filters(properties, require, forbid, alerts, where, require_pattern, forbid_pattern, exclude)
    # Whoever has no wish gets the prices that are obviously there.
    guess_prices = price_column is None and pool is not None
    price_column = None if price_column == "none" else price_column
    store = _store(
        pool,
        large,
        _Model(surrogate, acquisition),
        {
            "column": column,
            "kind": kind,
            "standardize": standardize,
            "attachment_points": attachment_points,
            "id_column": id_column,
            "price_column": price_column,
            "filters": conditions,
        },
        in_memory={
            "--decimal-comma": decimal_comma,
            "--parent": parent is not None,
            "--features and --prior-mean": informed.given,
        },
        ways="--plates" if plates else "--fidelity" if contexts is not None else None,
    )
    combinatorial = reactions is not None or bool(reagents)
    if combinatorial:
        searched_by = next((name for name, one in _named(pool, alphabet, protein, grammar).items() if one), None)
        refuse_pool_options(context, searched_by)
        if contexts is not None or plates or length is not None:
            raise InputError("--reactions has no --fidelity, --plates or --length yet: leave them out")
        acquisition = chosen_acquisition(context, acquisition)
    parts = parts_of(contexts, surrogate, acquisition)
    if informed.given:
        with console.status("reading what is known of the candidates"):
            parts["surrogate"] = informed.plan(
                surrogate,
                str(pool),
                column=column,
                kind=None if kind == "auto" else kind,
                standardize=standardize,
                parent=variants.sequence(),
            )
    if store is not None:
        column, kind, standardize, attachment_points, id_column, price_column = None, "auto", False, False, None, None
        conditions = []
        from seqopt.cli.large import chosen_strategy

        decides = chosen_strategy(large, _Model(surrogate, acquisition), "auto", store.kind, len(store))
        parts = parts if decides is None else {"strategy": decides}
    searched: Any = store
    if combinatorial:
        from seqopt.cli.reagents import space_of

        searched = space_of(reactions, reagents)
    elif store is None:
        searched = _space(pool, alphabet, protein, grammar, length, kind, column, standardize, genes, variants)
    with console.status("reading the candidates"):
        from seqopt.campaign import Campaign
        from seqopt.campaign.leads import lead_of
        from seqopt.campaign.library import RECOGNISED
        from seqopt.campaign.plates import WELLS, PlateRules
        from seqopt.spaces.populations import described_size

        campaign = Campaign.create(
            path,
            searched,
            objective=objective,
            direction=None if maximize is None else "maximize" if maximize else "minimize",
            unit=unit,
            column=column,
            kind=None if kind == "auto" else kind,
            standardize=standardize,
            decimal_comma=decimal_comma,
            attachment_points=attachment_points,
            id_column=id_column,
            price_column=RECOGNISED if guess_prices and store is None else price_column,
            batch_size=batch,
            **parts,
            transform="yes/no" if yes_no else None if transform == "none" else transform,
            seed=seed,
            filters=conditions,
            design=design,
            include=include or (),
            limits=given_limits(per_scaffold, max_similarity),
            near=near,
            contexts=contexts,
            budget=budget_cost,
            parent=None if variants.are_searched else variants.sequence(),
            plates=(plate_size or WELLS) if plates else None,
            controls=controls_of(controls),
            computed=computed,
        )
    with campaign:
        facts, filters, kept = campaign.store.library, campaign.status().filters, campaign.store.settings
        rules = PlateRules.of(kept)
    what = f"{facts['size']:,} candidates of {facts['path']}" if facts else "generated strings"
    if variants.are_searched:
        from seqopt.cli.variants import described_variants

        what = ", ".join(described_variants(searched))
    if store is not None:
        what = store.summary().splitlines()[0]
    if combinatorial:
        what = f"products of {len(searched.reactions)} reactions and {len(searched.reagents):,} building blocks"
    if protein is not None:
        what = f"{described_size(searched)} synonymous genes"
        what += f"; kept to: {', '.join(searched.kept_to)}" if searched.kept_to else ""
    console.print(f"[bold]{escape(str(path))}[/bold]: {escape(kept.objective)} of {escape(what)}")
    if computed is not None:
        _say_what_is_computed(kept, computed, maximize)
    if yes_no:
        console.print("results are yes or no: hit, no hit, inconclusive, or hits of wells such as 3 of 8")
    if contexts is not None:
        from seqopt.campaign.costs import way_of

        pairs = zip(contexts.possible, contexts.costs, strict=True)
        ways = ", ".join(f"{way_of(context)} for {cost:g}" for context, cost in pairs)
        budget = "" if budget_cost is None else f"; {budget_cost:g} may be spent"
        console.print(f"measured as {escape(ways)}; what counts is {escape(way_of(contexts.target))}{budget}")
    if rules is not None:
        listed = ", ".join(one.name for one in rules.controls)
        each = f"; on each: {listed}" if listed else ""
        console.print(escape(f"measured on plates of {rules.size} wells{each}; what counts is what all have in common"))
    if near is not None:
        from seqopt.spaces import RestrictedSpace

        mean = lead_of(kept)
        lead = near.lead if mean is None else getattr(mean.distance, "lead", near.lead)
        console.print(escape(f"searched within {near.radius:g} of {lead}, further if it pays"))
        if isinstance(searched, RestrictedSpace) and (reason := searched.left_out(lead)) is not None:
            console.print(escape(f"the lead itself is left out: {reason}; it is not suggested"))
    if filters:
        console.print(f"suggested is only: {escape('; '.join(filters))}")
    if computed is not None:
        console.print(f"next: seqopt campaign run --budget {10 * batch}, or seqopt campaign suggest")
        return
    console.print("next: seqopt campaign suggest --out batch.csv")


def _say_what_is_computed(settings: Settings, spec: str, maximize: bool | None) -> None:
    """What a campaign computes, and which scores it records beside it."""
    from seqopt.objectives import resolve_objective

    by = "" if settings.objective == spec else f" by {spec}"
    beside = [outcome.name for outcome in settings.outcomes()[1:] if outcome.role == "recorded"]
    beside_it = f"; recorded beside it: {', '.join(beside)}" if beside else ""
    console.print(escape(f"computed{by}, and {settings.direction}d{beside_it}"))
    note_opposites(resolve_objective(spec), None if maximize is None else settings.direction)


@app.command("filter")
def filter_suggestions(
    name: Name = None,
    properties: Properties = None,
    require: Require = None,
    forbid: Forbid = None,
    alerts: AlertNames = None,
    where: Where = None,
    require_pattern: RequirePattern = None,
    forbid_pattern: ForbidPattern = None,
    exclude: Exclude = None,
    drop: Annotated[
        list[int] | None, typer.Option(help="Remove this filter, by its number in the list.", min=1)
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all filters, and add those given.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Only list the filters, as without any option.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Show how many candidates pass each filter.")] = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Show or change what may be suggested. Filters add up; a change is in the history, and can be undone.

    seqopt campaign filter --property "MW 200..500" --alerts pains,brenk --where "price <= 100"
    seqopt campaign filter --drop 2
    """
    del debug
    from seqopt.filters.filtering import failing_note

    added = given_filters(properties, require, forbid, alerts, where, require_pattern, forbid_pattern, exclude)
    if show and (added or drop or clear):
        raise InputError("--list only lists the filters: leave it out to change them")
    if clear and drop:
        raise InputError("--clear removes all filters: leave --drop out")
    with opened(one_of(name, which)) as campaign:
        filters = campaign.filters
        for number in drop or []:
            if number > len(filters):
                raise InputError(f"there is no filter {number}: there are {len(filters)}; see --list")
        if added or drop or clear:
            kept = [] if clear else [item for number, item in enumerate(filters, 1) if number not in (drop or [])]
            failing = campaign.set_filters([*kept, *added])
            if failing:
                note(f"{failing_note(failing)}. Withdraw what should not be measured")
        found = campaign.status().filters
        print_lines([f"{number}  {words}" for number, words in enumerate(found, 1)] or ["no filters: all may pass"])
        if count:
            with console.status("filtering") as progress:
                report = campaign.filter_report(progress_in(progress))
            if report is not None:
                print_lines(report.lines())


def fidelities_of(texts: list[str], target: str | None) -> Contexts | None:
    """The ways to measure that options name with their costs; `None` without any.

    Raises:
        InputError: For what is not a name with a positive cost, a name that is given twice, a single one, or a target
            that is not among them.
    """
    from seqopt.cli.campaign.common import FIDELITY

    if not texts:
        refuse_idle({"--target": target is not None}, "--fidelity NAME:COST")
        return None
    costs: dict[ContextValue, float] = {}
    for text in texts:
        name, colon, number = text.rpartition(":")
        name = name.strip()
        try:
            cost = float(number)
        except ValueError:
            cost = -1.0
        if not colon or not name or not 0 < cost < float("inf"):
            raise InputError(
                f"--fidelity {text}: expected a name and what one measurement costs, a positive number: docking:0.01"
            )
        if name in costs:
            raise InputError(f"--fidelity gives {name} twice: keep one of them")
        costs[name] = cost
    if len(costs) < 2:
        raise InputError(f"there is only one way to measure, {texts[0]}: give --fidelity for each way, or leave it out")
    meant = max(costs, key=lambda name: costs[name]) if target is None else target
    if meant not in costs:
        raise InputError(f"--target {meant} is none of the fidelities: {', '.join(map(str, costs))}")
    from seqopt.data import Contexts

    return Contexts.of_levels(FIDELITY, costs, meant)


def controls_of(text: str | None) -> list[str] | Path:
    """Controls as an option names them: a file, or strings with commas between them."""
    if text is None:
        return []
    if text.startswith("@"):
        return Path(text[1:])
    found = [one.strip() for one in text.split(",") if one.strip()]
    if not found:
        raise InputError("--controls is empty: give strings with commas between them, or @FILE")
    return found


def results_of(text: str) -> bool:
    """Whether an option says that results are yes or no."""
    plain = text.strip().lower()
    if plain in ("yes/no", "yes-no", "yesno", "hit/no hit", "hits", "active/inactive", "binary"):
        return True
    if plain in ("numbers", "number", "values"):
        return False
    raise InputError(f"--results is {text!r}; expected numbers, or yes/no for hit and no hit")


def parts_of(contexts: Contexts | None, surrogate: str, acquisition: str) -> dict[str, Any]:
    """What decides: a model with an acquisition function or, among several ways to measure, these per cost."""
    if contexts is None:
        return {"surrogate": surrogate, "acquisition": acquisition}
    from seqopt.strategies import MultiFidelity

    return {"strategy": MultiFidelity(acquisition=acquisition)}


def _space(
    pool: Path | None,
    alphabet: str | None,
    protein: str | None,
    grammar: str | None,
    length: str | None,
    kind: str,
    column: str | None,
    standardize: bool,
    options: GeneOptions,
    variants: VariantOptions,
) -> Space | Path:
    named = _named(pool, alphabet, protein, grammar) | ({variants.named: variants} if variants.named else {})
    given = [name for name, value in named.items() if value is not None]
    if len(given) != 1:
        raise InputError(
            "say what to search, by one of --pool FILE, --alphabet LETTERS, --protein SEQUENCE, --grammar NAME, "
            "--reactions FILE, --template TEMPLATE, --library CODONS, and --parent SEQUENCE with --mutations"
            + (f" (given: {' and '.join(given)})" if given else "")
        )
    if length is not None and (pool is not None or protein is not None or variants.are_searched):
        raise InputError(f"--length goes with --alphabet or --grammar, not with {given[0]}")
    if pool is not None:
        return pool
    refuse_idle({"--column": column is not None, "--standardize": standardize}, f"--pool, not with {given[0]}")
    if variants.are_searched:
        return variants.space(None if kind == "auto" else kind)
    from seqopt.spaces import GrammarSpace, StringSpace

    if protein is not None:
        genes = options.space(protein_of(protein))
        if kind not in ("auto", genes.kind):
            raise InputError(f"--kind {kind} does not go with --protein, which searches {genes.kind}: leave it out")
        return genes
    if length is None:
        raise InputError(f"{given[0]} needs --length, such as 20 or 5-20")
    shortest, longest = _lengths(length)
    kind = "text" if kind == "auto" else kind
    if alphabet is not None:
        return StringSpace(alphabet, min_length=shortest, max_length=longest, kind=kind)
    return GrammarSpace(str(grammar), shortest, longest, kind=kind)


@dataclass(frozen=True)
class _Model:
    surrogate: str
    acquisition: str


def _store(
    pool: Path | None,
    large: dict[str, Any],
    model: _Model,
    settings: dict[str, Any],
    *,
    in_memory: dict[str, bool],
    ways: str | None,
) -> PoolStore | None:
    """The pool, prepared on disk; `None` where it is read into memory, or there is none.

    Raises:
        InputError: For what a pool on disk does not have, or what only such a pool has.
    """
    from seqopt.cli.large import check_large, is_on_disk, prepared

    check_large(large, model, fidelities=False)
    needs = next((name for name, given in in_memory.items() if given), None)
    wanted = large["on_disk"]
    if wanted is None and needs is not None and pool is not None and pool.is_file():
        wanted = False
    if wanted is None and (large["strategy"] != "model" or large["prefilter"] is not None) and needs is ways is None:
        wanted = True  # these are for pools on disk, as which any file can be prepared
    if pool is None or not is_on_disk(str(pool), wanted, values=False):
        idle = {
            f"--strategy {large['strategy']}": large["strategy"] != "model",
            f"--prefilter {large['prefilter']}": large["prefilter"] is not None,
            "--on-disk": bool(large["on_disk"]),
        }
        if ways is not None and (given := next((option for option, is_given in idle.items() if is_given), None)):
            raise InputError(f"{given} and {ways} do not go together yet: keep one of them")
        refuse_idle(idle, "--pool FILE --on-disk", "leave it out" if pool is None else "add --on-disk, or leave it out")
        return None
    if needs is not None:
        raise InputError(f"a pool on disk has no {needs}: leave it out, or give one file with --in-memory")
    if ways is not None:
        raise InputError(f"a campaign with a pool on disk has one way to measure: leave {ways} out")
    store = prepared(str(pool), **settings)
    for text in store.summary().splitlines()[1:]:
        note(text)
    return store


def protein_of(text: str) -> str:
    """The protein that an option gives, or that of a file.

    Raises:
        InputError: If a file holds several, or cannot be read.
    """
    from seqopt.cli.genes import proteins_of

    proteins = proteins_of(text)
    if len(proteins) > 1:
        raise InputError(
            f"{text} holds {len(proteins)} proteins, and a campaign searches the genes of one: give that by its "
            "sequence, and begin a campaign for each"
        )
    return proteins[0].sequence


def _named(pool: Any, alphabet: Any, protein: Any, grammar: Any) -> dict[str, Any]:
    return {"--pool": pool, "--alphabet": alphabet, "--protein": protein, "--grammar": grammar}


def _lengths(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    try:
        return int(first), int(last or first)
    except ValueError:
        raise InputError(f"--length is {text!r}; expected a number, 20, or two, 5-20") from None
