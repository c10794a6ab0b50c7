"""What a run was told: kept with its campaign, and compared when it is resumed."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.parents import PARENT
from seqopt.campaign.rows import Settings
from seqopt.campaign.run_folders import EVALUATIONS
from seqopt.campaign.spaces import of_same_rules
from seqopt.datasets import Pool
from seqopt.datasets.pool_columns import written_column
from seqopt.datasets.sources import file_and_part, named
from seqopt.errors import RunFolderError
from seqopt.utils.config import described, differences
from seqopt.utils.parameter_names import KERNELS
from seqopt.utils.versions import versions

if TYPE_CHECKING:
    from seqopt.optimizer import Optimizer

logger = logging.getLogger(__name__)

RUN = "run"
"""Where a campaign's settings hold those of its run: ``settings``, ``versions``, and ``not_reproducible_because``."""

ADJUSTABLE = frozenset(
    {
        *("budget", "budget_cost", "timeout", "workers", "command", "objective_description"),
        *("pool", "pool_size", "pool_sha256", "values_sha256", "rejected", "duplicates", "id_column"),
    }
)
"""Settings that may differ between a run and its resumption: for candidates see `seqopt.campaign.candidates`."""


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON values; other objects as their `str`."""
    made: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return made


def run_settings(
    optimizer: Optimizer,
    facts: Mapping[str, Any],
    *,
    surrogate: str = "auto",
    pool: Pool | None = None,
    parts: Mapping[str, Any] | None = None,
    not_reproducible_because: str = "",
    no_predictions_because: str = "",
) -> Settings:
    """The settings of a run's campaign, so that the commands for campaigns work on it.

    Args:
        optimizer: That of the run, before it has asked for anything.
        facts: All that the run was told.
        surrogate: What it is called; see `seqopt.campaign.parts.named_surrogate`.
        pool: The candidates, if they were read from a file.
        parts: Descriptions of those of its parts that were given as objects.
        not_reproducible_because: Why suggestions made from the campaign alone would not be those of the run; empty if
            they would be.
        no_predictions_because: What of its model cannot be made again from the settings; empty if all of it can.
    """
    return Settings(
        objective=str(facts.get("objective", "value")),
        direction=optimizer.direction,
        unit=facts.get("unit") or None,
        string_column=written_column(None if pool is None else pool.column),
        batch_size=optimizer.batch_size,
        initial=optimizer.initial,
        initial_contexts=optimizer.strategy.beginning,
        design=optimizer.strategy.design_name,
        include=list(optimizer.strategy.include),
        limits=None if optimizer.limits is None else optimizer.limits.config(),
        surrogate=surrogate,
        acquisition=optimizer.chosen_by,
        transform=None if optimizer.transform.name == "none" else optimizer.transform.name,
        seed=optimizer.seed,
        space=described(optimizer.space) if pool is None else {"type": "pool", "kind": optimizer.space.kind},
        pool=None if pool is None else _library(pool, facts),
        parts=dict(parts or {}),
        allow_repeats=optimizer.allow_repeats,
        contexts=None if optimizer.contexts is None else optimizer.contexts.config(),
        constraints=[outcome.config() for outcome in optimizer.outcomes[1:]],
        extra={
            **({PARENT: facts[PARENT]} if facts.get(PARENT) else {}),
            RUN: {
                "settings": plain(facts),
                "versions": versions(),
                "not_reproducible_because": not_reproducible_because,
                "no_predictions_because": no_predictions_because,
            },
        },
    )


def _library(pool: Pool, facts: Mapping[str, Any]) -> dict[str, Any]:
    file, part = file_and_part(pool.source)
    return {
        "path": named(file.resolve(), part) if file.exists() else pool.source,
        "column": pool.column,
        "kind": pool.kind,
        "standardize": pool.standardized,
        "attachment_points": pool.attachment_points,
        "size": len(pool),
        "keys_sha256": facts["pool_sha256"],
        "id_column": pool.id_column,
        **({} if pool.parent is None else {PARENT: pool.parent}),
    } | ({"decimal_comma": True} if pool.decimal_comma else {})


def check_by_hand(settings: Settings, path: Path, *, predictions: bool = False) -> None:
    """Refuse to suggest from the campaign of a run what the run itself would not.

    Args:
        settings: Of the campaign.
        path: Its file.
        predictions: Whether only predictions are asked for, which need its model and nothing else.

    Raises:
        CampaignError: If the run has parts that its campaign cannot repeat; the message names them.
    """
    run = settings.extra.get(RUN, {})
    reason = run.get("not_reproducible_because")
    if predictions:
        reason = run.get("no_predictions_because", reason)
        if reason:
            raise CampaignError(f"the model of the run in {path} cannot be made again for predictions: {reason}")
        return
    if reason:
        raise CampaignError(
            f"{path} is the campaign of a run that suggests by itself, and cannot be continued by hand: {reason}. "
            "Resume the run; status, history, export, record and undo work here"
        )


def compare_settings(kept: Settings, settings: Mapping[str, Any], folder: Path, *, surrogate: str = "") -> None:
    """Refuse to resume a run with other settings; warn if it was begun with other versions.

    Args:
        kept: Those of the run's campaign.
        settings: All that the run is told now.
        folder: Of the run.
        surrogate: What the surrogate is called now. Where it was ``"auto"`` and still is, it may be another one for
            candidates that have changed, and may have other kernels, as the default of another version does.

    Raises:
        RunFolderError: If settings differ that decide the course of the run, or the campaign is not that of a run.
    """
    run = kept.extra.get(RUN)
    if run is None:
        raise RunFolderError(
            f"the campaign in {folder} was started by hand, not by a run: continue it with seqopt campaign or, in "
            "Python, Campaign.run"
        )
    if kept.filters:
        raise RunFolderError(
            f"the campaign of the run in {folder} has been given filters, which a run does not support: remove them "
            "with seqopt campaign filter --clear, or continue with seqopt campaign suggest"
        )
    old, new = run["settings"], dict(settings)
    if isinstance(old.get("space"), Mapping) and isinstance(new.get("space"), Mapping):
        new["space"] = of_same_rules(old["space"], new["space"])
    decisive = [{name: value for name, value in one.items() if name not in ADJUSTABLE} for one in (old, new)]
    if old.get("pool_sha256") != new.get("pool_sha256") and kept.surrogate == surrogate == "auto":
        decisive = [_without_surrogate(one) for one in decisive]
    elif kept.surrogate == surrogate == "auto" and _other_kernels(old, new):
        decisive = [_without_kernels(one) for one in decisive]
    if changed := differences(*decisive):
        raise RunFolderError(
            f"the run in {folder} was made with other settings ({'; '.join(changed)}): resume it with the same ones, "
            f"or start a new run in another folder (--out){_taking_values(folder, old, new)}"
        )
    if kept.surrogate == surrogate == "auto" and _other_kernels(old, new):
        logger.warning(
            "the default surrogate compared strings by other kernels when the run was begun (%s then, %s now): the run "
            "goes on with those of now",
            *(", ".join(KERNELS.get(kind, kind) for kind in kinds) for kinds in map(_kernels, (old, new))),
        )
    then, now = run.get("versions", {}), versions()
    newer = [f"{name} {then.get(name)} then, {now.get(name)} now" for name in now if then.get(name) != now.get(name)]
    if newer:
        logger.warning("the run was begun with other versions (%s): what follows may differ slightly", "; ".join(newer))


def _taking_values(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """How a new run takes the values of this one; empty where they are of something else."""
    same = ("objective", "unit")
    if any(old.get(name) != new.get(name) for name in same):
        return ""
    return f", which can be given the values of this one (--known {shlex.quote(str(folder / EVALUATIONS))})"


def _other_kernels(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether surrogates of several kernels have kernels of other types."""
    before, after = map(_kernels, (old, new))
    return bool(before and after and before != after)


def _kernels(settings: Mapping[str, Any]) -> list[str]:
    """The types of the kernels of a surrogate of several; empty for another."""
    details = settings.get("details")
    surrogate = details.get("surrogate") if isinstance(details, Mapping) else None
    kernels = surrogate.get("kernel") if isinstance(surrogate, Mapping) else None
    return [str(one.get("type")) for one in kernels] if isinstance(kernels, list) else []


def _without_kernels(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without which kernels a surrogate has, what draws their parameters and how they are weighed before."""
    details = settings["details"]
    left = {name: value for name, value in details["surrogate"].items() if name not in ("kernel", "prior", "sampler")}
    return {**settings, "details": {**details, "surrogate": left}}


def _without_surrogate(settings: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in settings.items() if name != "surrogate"}
    if isinstance(details := rest.get("details"), Mapping):
        rest["details"] = {name: value for name, value in details.items() if name != "surrogate"}
    return rest
