"""What a new campaign is about: the arguments of `Campaign.create`, checked, as its file keeps them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from seqopt.campaign.columns import check_column_names
from seqopt.campaign.costs import check_budget
from seqopt.campaign.library import read_library
from seqopt.campaign.narrowing import fitting
from seqopt.campaign.parents import (
    CONTROLS,
    INCLUDED,
    PARENT,
    checked_parent_of,
    hint_at_parent,
    parent_of_space,
    written_out,
)
from seqopt.campaign.plates import Control, new_rules
from seqopt.campaign.rows import Settings
from seqopt.errors import InputError
from seqopt.utils.arguments import checked_integer
from seqopt.utils.config import described

if TYPE_CHECKING:
    from seqopt.campaign.library import Library
    from seqopt.data import Contexts, Outcome
    from seqopt.datasets import Pool, PoolStore
    from seqopt.evaluation import Direction
    from seqopt.filters.conditions import Filter
    from seqopt.optimizer import Optimizer
    from seqopt.scorers.limits import BatchLimits
    from seqopt.spaces import Space
    from seqopt.strategies import Near

logger = logging.getLogger(__name__)


def new_campaign(
    space: Space | Pool | PoolStore | Iterable[Any] | str | os.PathLike[str],
    *,
    objective: str | None,
    direction: Direction | None,
    unit: str | None,
    column: str | None,
    kind: str | None,
    standardize: bool,
    decimal_comma: bool,
    attachment_points: bool,
    id_column: str | None,
    price_column: str | None,
    batch_size: int,
    parts: Mapping[str, Any],
    transform: str | None,
    contexts: Contexts | None,
    constraints: Sequence[Outcome],
    seed: int,
    filters: Iterable[Filter | Mapping[str, Any]],
    design: str,
    include: Sequence[str] | str | os.PathLike[str],
    limits: BatchLimits | None,
    near: Near | None = None,
    budget: float | None = None,
    plates: int | None = None,
    controls: Sequence[str] | str | os.PathLike[str] = (),
    initial_contexts: Literal["target", "all", "cheap"] | None = None,
    parent: str | None = None,
    computed: str | None = None,
) -> tuple[Library | None, Space, Settings]:
    """The library of a new campaign, if it searches one, its space, and its settings.

    Args:
        parts: The surrogate, the acquisition function, the search and the strategy, by these names, as far as they are
            given; the other arguments are those of `Campaign.create`.

    Raises:
        InputError: For what cannot be used.
    """
    from seqopt.campaign.computed import computed_objective, facts_of, recorded
    from seqopt.campaign.parts import AUTOENCODER, encoder_name, kept_parts, named_surrogate
    from seqopt.data import Outcome, resolve_transform
    from seqopt.filters.conditions import checked, to_json
    from seqopt.filters.filtering import check_columns, failing, library_cells
    from seqopt.filters.listed import read_list
    from seqopt.models.registry import LATENT, latent_file
    from seqopt.optimizer import Optimizer
    from seqopt.spaces import StoredPool, as_space
    from seqopt.strategies.initial import usual_beginning

    if objective is None and computed is None:
        raise InputError(
            "the objective needs a name: what is measured, such as 'pIC50', or what computes it (computed)"
        )
    if computed is not None and contexts is not None:
        raise InputError(
            "a computed objective has one way to measure: leave contexts out, or give the function to Campaign.run"
        )
    if computed is not None and (plates is not None or transform == "yes/no"):
        other = "results that are yes or no" if plates is None else "plates"
        raise InputError(f"a computed objective has no {other}: leave one of them out")
    if plates is None and (isinstance(controls, os.PathLike) or len(controls)):
        raise InputError("controls go with plates: give their size, too (--plates, --plate-size 96)")
    if plates is not None:
        parts, contexts = with_plates(parts, contexts)
    library = None
    budget = check_budget(budget, contexts)
    conditions = checked(filters)
    if isinstance(space, str | os.PathLike):
        library = read_library(
            Path(space),
            column,
            kind,
            standardize,
            attachment_points=attachment_points,
            id_column=id_column,
            price_column=price_column,
            decimal_comma=decimal_comma,
            parent=parent,
            check_columns=partial(check_columns, conditions),
        )
        space = library.space
        for text in library.left_out:
            logger.warning("%s", text)
    elif id_column is not None or price_column is not None:
        raise InputError(
            "columns of identifiers and prices are read with a file of candidates, and there is none: leave id_column "
            "and price_column out, or give the path of the file; of a pool on disk, give them to "
            "seqopt.datasets.prepare_pool"
        )
    else:
        space = as_space(space, kind=kind, standardize=standardize)
    pool, string_column = (None, "string") if library is None else (library.facts, library.string_column)
    if isinstance(space, StoredPool):
        string_column = space.store.column or string_column
    extra: dict[str, Any] = {}
    if parent is not None and pool is None and parent_of_space(space) is None:
        extra[PARENT] = checked_parent_of(parent, space)
    elif parent is not None:
        checked_parent_of(parent, space)
    if computed is not None:
        score = computed_objective(computed, space)
        objective, direction = objective or score.name, direction or score.direction
        unit = unit if unit is not None else score.unit or None
        if objective in (one.name for one in recorded(score)):
            raise InputError(
                f"the objective is called {objective!r}, as one of the scores of {score.name} is, which have "
                "columns of their own: give it a different name"
            )
        # What is a constraint already is measured as such.
        names = [outcome.name for outcome in constraints]
        constraints = [*constraints, *(one for one in recorded(score) if one.name not in names)]
        extra |= facts_of(computed, score)
    objective, direction = str(objective), direction or "maximize"
    facts = described(space) if pool is None else {"type": "pool", "kind": space.kind}
    wanted = fitting(conditions, space.kind, space, pool)
    if near is not None:
        parts = near_parts(near, parts, space, contexts, transform)
    surrogate = parts.get("surrogate")
    batch_size = checked_integer(
        "batch_size", batch_size, 2, "expected an integer, at least 2: a model begins with so many values"
    )
    if (path_of_model := latent_file(surrogate)) is not None:
        surrogate = f"{LATENT}{os.path.abspath(path_of_model)}"
    chosen = {**parts, "surrogate": surrogate}
    given: dict[str, Any] = {name: part for name, part in chosen.items() if part is not None}
    kept = kept_parts(given)
    if isinstance(include, str | os.PathLike):
        include = read_list(include, variants=(parent_of_space(space) or parent) is not None)
    include = written_out(include, parent_of_space(space) or parent, space.kind, INCLUDED)
    if not isinstance(design, str):
        raise InputError(f"{design!r} cannot be kept in a file: give the name of a design")
    beginning = initial_contexts if initial_contexts is not None else usual_beginning(contexts)
    # Whatever an optimiser would refuse is refused before there is a file.
    trial = Optimizer(
        space,
        **given,
        batch_size=batch_size,
        initial=batch_size,
        design=design,
        include=include,
        limits=limits,
        outcomes=(Outcome(objective, direction, transform=resolve_transform(transform)), *constraints),
        contexts=contexts,
        initial_contexts=beginning,
        seed=seed,
    )
    rules = None
    if plates is not None:
        named = parent_of_space(space) or parent
        rules = new_rules(plates, made_controls(controls, space, trial, pool=pool, parent=named))
    if wanted and include:
        asked = {string: (string, space.key(string)) for string in include}
        cells = library_cells(pool, [string for string, _ in asked.values()])
        for string, why in failing(asked, space.kind, wanted, cells).items():
            raise InputError(f"{string!r} is to be included in the first batch, and fails a filter: {why}")
    settings = Settings(
        objective,
        direction,
        unit,
        string_column,
        batch_size=batch_size,
        initial=batch_size,
        design=trial.strategy.design_name,
        include=list(include),
        limits=None if limits is None else limits.config(),
        surrogate=named_surrogate(trial, surrogate),
        acquisition=trial.chosen_by,
        transform=None if transform == "none" else transform,
        seed=trial.seed,
        space=facts,
        pool=pool,
        filters=to_json(wanted),
        parts=kept,
        contexts=None if contexts is None else contexts.config(),
        initial_contexts=beginning,
        budget=budget,
        plates=None if rules is None else rules.to_json(),
        constraints=[outcome.config() for outcome in trial.outcomes[1:]],
        extra=extra | ({} if path_of_model is None else {AUTOENCODER: encoder_name(trial.surrogate)}),
    )
    check_column_names(settings)
    return library, space, settings


def with_plates(parts: Mapping[str, Any], contexts: Contexts | None) -> tuple[dict[str, Any], Contexts]:
    """The strategy and the contexts of a campaign with plates.

    Raises:
        InputError: For contexts of another kind, or parts beside the strategy.
    """
    from seqopt.campaign.plates import PLATE
    from seqopt.data import Contexts
    from seqopt.strategies import PlateSearch

    if contexts is not None and contexts.open != PLATE:
        raise InputError("a campaign with plates has one way to measure otherwise: leave contexts (--fidelity) out")
    given = {name: part for name, part in parts.items() if part is not None}
    if "strategy" not in given:
        if given.pop("surrogate", "auto") != "auto":
            raise InputError("the surrogate of a campaign with plates has to know them: give strategy=PlateSearch(...)")
        chosen = {name: given.pop(name) for name in ("acquisition", "search") if name in given}
        given["strategy"] = PlateSearch(**chosen)
    return given, Contexts.of_plates(PLATE) if contexts is None else contexts


def near_parts(
    near: Near, parts: Mapping[str, Any], space: Space, contexts: Contexts | None, transform: str | None
) -> dict[str, Any]:
    """The parts of a campaign that searches near a lead.

    Raises:
        InputError: For a lead that goes with nothing else that is given, or as in `seqopt.strategies.Near.surrogate`.
    """
    refuse_lead(strategy=parts.get("strategy") is not None, contexts=contexts is not None, transform=transform)
    return {**parts, "surrogate": near.surrogate(parts.get("surrogate"), space)}


def refuse_lead(*, strategy: bool, contexts: bool, transform: str | None) -> None:
    """Refuse a lead beside what takes no prior mean.

    Raises:
        InputError: As said.
    """
    if contexts:
        raise InputError("a lead goes with one way to measure: leave it out, or fidelities and plates")
    if strategy:
        raise InputError("a lead is part of the model of the usual search: leave the strategy out, or the lead")
    if transform == "yes/no":
        raise InputError("a lead goes with results that are numbers, not yes or no: leave one of them out")


def made_controls(
    controls: Sequence[str] | str | os.PathLike[str],
    space: Space,
    optimizer: Optimizer,
    *,
    pool: Mapping[str, Any] | None = None,
    parent: str | None = None,
) -> list[Control]:
    """Controls of a list or a file, with what the library calls them.

    Identifiers stand for their candidates, and names of variants for these variants of the parent.

    Raises:
        InputError: For a string that the campaign cannot learn from, one that is there twice, or a name that does not
            fit the parent.
    """
    from seqopt.campaign.labels import stored_labels, strings_by_identifier
    from seqopt.campaign.naming import not_an_identifier
    from seqopt.filters.listed import read_list
    from seqopt.spaces import StoredPool, left_out

    listed = (
        read_list(controls, variants=parent is not None) if isinstance(controls, str | os.PathLike) else list(controls)
    )
    called = strings_by_identifier(pool) if listed and pool is not None and pool.get("id_column") else {}
    library = called
    if isinstance(space, StoredPool):
        # What is written as a candidate is one.
        places = {given: space.store.called(given) for given in listed if space.known_key(given) is None}
        called = {given: space[place] for given, place in places.items() if place is not None}
    identifiers = {string: identifier for identifier, string in called.items()}
    strings = written_out([called.get(given, given) for given in listed], parent, space.kind, CONTROLS)
    found: dict[str, Control] = {}
    for given, string in zip(listed, strings, strict=True):
        try:
            key = space.key(string)
            left_out(space, string)  # refuses what it cannot read
        except InputError as error:
            hint = not_an_identifier(given, () if given in library else library)
            hint += hint_at_parent(string, parent, space.kind)
            raise InputError(f"the control {given!r} cannot be used: {error}{hint}") from error
        for message in optimizer.strategy.unsupported([key]).values():
            raise InputError(f"the control {given!r} cannot be used: {message}")
        if string in found:
            raise InputError(f"the control {given!r} is given twice: keep one of them")
        found[string] = Control(string, key, identifiers.get(string))
    if isinstance(space, StoredPool):
        labels = stored_labels(space, list(found))
        return [replace(one, identifier=label.identifier) for one, label in zip(found.values(), labels, strict=True)]
    return list(found.values())
