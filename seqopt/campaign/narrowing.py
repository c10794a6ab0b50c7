"""What the filters of a campaign leave of its space."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.rows import Settings
from seqopt.errors import ExhaustedError, InputError, SeqoptError

if TYPE_CHECKING:
    from seqopt.filters.conditions import Filter
    from seqopt.filters.filtering import FilterReport
    from seqopt.spaces import Space
    from seqopt.utils.workers import Progress

_CHANGE = "Change the filters: seqopt campaign filter --list, --drop or --clear"


def fitting(filters: list[Filter], kind: str, space: Space | None, pool: dict[str, Any] | None) -> list[Filter]:
    """Filters as they fit what is searched.

    Raises:
        InputError: If one does not.
    """
    if not filters:
        return filters
    from seqopt.spaces import StoredPool

    if isinstance(space, StoredPool):
        raise InputError(
            "the filters of a pool on disk are asked while it is prepared, and do not change: begin the campaign with "
            "them (campaign new --property ..., in Python prepare_pool(sieve=seqopt.filters.Sieve(...))), or with the "
            "pool in memory (--in-memory)"
        )
    from seqopt.filters.filtering import check_filters, library_cells

    return check_filters(
        filters,
        kind,
        space,
        library_cells(pool) if _look_at_columns(filters) else None,
        standardize=bool((pool or {}).get("standardize") or getattr(space, "standardize", False)),
    )


def _look_at_columns(filters: Iterable[Filter]) -> bool:
    from seqopt.filters.conditions import ColumnCondition

    return any(isinstance(item, ColumnCondition) for item in filters)


@dataclass(frozen=True)
class Narrowed:
    """A space as filters leave it.

    Attributes:
        filters: The filters, as JSON values.
        space: What passes; `None` if nothing does.
        report: What each filter does.
    """

    filters: list[dict[str, Any]]
    space: Space | None
    report: FilterReport

    @property
    def allowed(self) -> Space:
        """What passes.

        Raises:
            CampaignError: If nothing does; it says which filter removes how many.
        """
        if self.space is None:
            raise CampaignError(f"{self.report.refusal()}. {_CHANGE}")
        return self.space

    def explained(self, error: ExhaustedError | InputError) -> SeqoptError:
        """Why a search of what passes found nothing, and what to do about it."""
        if isinstance(error, ExhaustedError):
            return ExhaustedError(
                f"all {self.report.allowed:,} candidates that pass the filters have been suggested already"
                f": nothing is left. {_CHANGE}"
                if not self.report.sampled
                else f"{error}, of what passes the filters. {_CHANGE}"
            )
        tried = self.report.refusal() if not self.report.allowed else self.report.lines()[0]
        return CampaignError(f"no string was found: {error}; {tried}. {_CHANGE}")


def narrowed(space: Space, settings: Settings, progress: Progress | None) -> Narrowed:
    """A space as the filters of a campaign leave it."""
    from seqopt.filters.conditions import from_json
    from seqopt.filters.filtering import library_cells, narrow, narrowed_pool, try_filters
    from seqopt.spaces import PoolSpace

    filters = from_json(settings.filters)
    if isinstance(space, PoolSpace):
        strings = [space[index] for index in range(len(space))]
        cells = library_cells(settings.pool, strings) if _look_at_columns(filters) else None
        return Narrowed(settings.filters, *narrowed_pool(space, filters, cells, progress=progress))
    return Narrowed(settings.filters, narrow(space, filters), try_filters(space, filters, settings.seed))
