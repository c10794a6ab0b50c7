"""From strings to a map with everything that belongs to it: table, pictures, page, and a record of how it was made."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from seqopt.datasets.sheets import neutralise
from seqopt.errors import InputError
from seqopt.models import Surrogate, resolve_surrogate
from seqopt.models.registry import LATENT, looks_at_symbols, surrogate_name
from seqopt.report.formats import compact, shortened
from seqopt.report.kernel_pca import KernelMap, Smoothness, component_names, kernel_pca, smoothness
from seqopt.report.map_points import CHOSEN, INITIAL, MEASURED, PROJECTED, SUGGESTED, MapInput, MapPoints
from seqopt.report.restored import restore_surrogate, search_space, surrogate_of
from seqopt.spaces import CandidateSet
from seqopt.utils.files import write_atomically

PAGE_GROUPS = {
    MEASURED: "measured",
    INITIAL: "measured",
    CHOSEN: "measured",
    SUGGESTED: "suggested",
    PROJECTED: "suggested",
}
"""How a page shows the groups of a map; the others are ``"pool"``."""

FEWEST_JUDGED = 20
"""Measured strings from which on smoothness says anything."""

OUTER = ("outputscale", "noise_variance", "mean")
"""Parameters of a fitted surrogate that do not change its map."""

_OWN_HEADER = "string,x,y"


@dataclass(frozen=True)
class Embedding:
    """A map and what is known of its points.

    Attributes:
        map: The map; see `seqopt.report.kernel_pca.KernelMap`.
        table: One row per string, projected ones last: see `seqopt.report.map_points.MapPoints.table`.
        smoothness: Of the values in the first two components; `None` with fewer than 20 of them.
        value_label: Name and unit of the values.
        log10: Whether they are shown on a logarithmic scale.
        minimize: Whether low values are good; good ones are bright.
        settings: What the map was made with.
        notes: What the user may want to know of its kernel.
    """

    map: KernelMap
    table: pd.DataFrame
    smoothness: Smoothness | None
    value_label: str
    log10: bool
    minimize: bool
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    def summary(self) -> list[str]:
        """What the map shows, in a few lines of text."""
        shares = ", ".join(f"{share:.1%}" for share in self.map.explained_variance_ratio)
        lines = [
            f"{len(self.map):,} strings by the kernel of {self.map.surrogate}{self._tuning()}",
            f"Explained variance of the components: {shares}",
        ]
        if len(self.table) > len(self.map):
            lines.append(f"{len(self.table) - len(self.map):,} further strings projected into the map")
        if self.smoothness is not None:
            lines.append(f"Smoothness of {self.value_label or 'the values'}: {self.smoothness}")
        elif self.map.values is not None:
            lines.append(f"Smoothness is judged from {FEWEST_JUDGED} measured strings on")
        return lines

    def _tuning(self) -> str:
        found = self.map.hyperparameters
        if not found:
            return ", with its default parameters"
        own = [f"{name.replace('_', ' ')} {compact(value)}" for name, value in found.items() if name not in OUTER]
        return f", tuned to the values: {', '.join(own)}" if own else ", which has no parameters to tune"

    def write(self, table_path: str | os.PathLike[str], *, title: str) -> list[Path]:
        """Write the table, and next to it, by the same name, the picture (.png, .svg), the page (.html) and the record
        (.json).

        Args:
            table_path: The .csv, as `map_files` gives it.
            title: Of picture and page.

        Raises:
            InputError: If a file cannot be written.
        """
        from seqopt.report.map_plot import plot_map

        path = Path(table_path)
        base = path.with_suffix("")
        shares = self.map.explained_variance_ratio
        labels = [f"component {number} ({shares[number - 1]:.1%} of the variance)" for number in (1, 2)]
        remark = "" if self.smoothness is None else f"Smoothness of the values: {_short(self.smoothness)}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, _safe(self.table).to_csv(index=False))
            pictures = plot_map(
                self.table,
                base,
                title=title,
                value_label=self.value_label,
                axis_labels=(labels[0], labels[1]),
                remark=remark,
                log10=self.log10,
                minimize=self.minimize,
            )
            page = self._write_page(base.with_suffix(".html"), title)
            record = base.with_suffix(".json")
            write_atomically(record, json.dumps(self.record(), indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise InputError(f"cannot write {error.filename or path}: {error.strerror}") from error
        return [path, *pictures, page, record]

    def record(self) -> dict[str, Any]:
        """What was done and found, as JSON values."""
        found = self.smoothness
        return {
            "settings": self.settings,
            "strings": len(self.map),
            "projected": len(self.table) - len(self.map),
            "explained_variance_ratio": self.map.explained_variance_ratio.tolist(),
            "hyperparameters": self.map.hyperparameters,
            "smoothness": None
            if found is None
            else {name: None if value != value else value for name, value in vars(found).items()},
        }

    def _write_page(self, path: Path, title: str) -> Path:
        from seqopt.report.map_page import MapPoint, write_map_page

        values = self.table["value"].to_numpy(dtype=np.float64)
        called = [self.table[name].fillna("") for name in ("identifier", "name") if name in self.table]
        # Of a candidate of the library, both may be one.
        names = [", ".join(dict.fromkeys(filter(None, map(str, row)))) for row in zip(*called, strict=True)]
        names = names or [""] * len(self.table)
        rows = zip(self.table["string"], self.table["x"], self.table["y"], self.table["group"], names, strict=True)
        points = [
            MapPoint(
                string=string,
                x=float(x),
                y=float(y),
                value=float(value),
                label=", ".join(text for text in (str(name), str(group)) if text),
                group=PAGE_GROUPS.get(group, "pool"),
                kind=self.settings["kind"],
            )
            for (string, x, y, group, name), value in zip(rows, np.log10(values) if self.log10 else values, strict=True)
        ]
        label = self.value_label or "value"
        notes = [f"By the kernel of {self.map.surrogate}{self._tuning()}."]
        words = {"pool": "not measured"}
        if (self.table["group"] == PROJECTED).any():
            notes.append("Projected strings were put into the map that the others make.")
            words["suggested"] = "projected"
        if self.smoothness is not None:
            notes.append(f"Smoothness of the values: {_short(self.smoothness)}.")
        return write_map_page(
            path,
            points,
            title=title,
            value_label=f"log10 of {label}" if self.log10 else label,
            note=" ".join(notes),
            minimize=self.minimize,
            words=words,
        )


def embed(
    points: MapInput,
    surrogate: str = "auto",
    *,
    components: int = 2,
    tokenizer: str | None = None,
    learn_from: int = 500,
    neighbours: int = 10,
    seed: int = 0,
) -> Embedding:
    """Map strings, put others into the map, and judge how smooth the values are in it.

    Args:
        points: What `seqopt.report.map_points.gather_points` read.
        surrogate: See `seqopt.report.kernel_pca.kernel_pca`, also for ``learn_from`` and ``seed``. For the strings of a
            search, ``"auto"`` is its own surrogate, tuned afresh.
        components: At least 2.
        tokenizer: Symbols that the kernel compares. Default: those of the search, or what suits the strings.
        learn_from: Measured strings that parameters are learned from at most.
        neighbours: See `seqopt.report.kernel_pca.smoothness`.
        seed: Fixes everything.

    Raises:
        InputError: As `seqopt.report.kernel_pca.kernel_pca` does.
    """
    mapped, others = points.mapped, points.projected
    if len(mapped) < 3:
        raise InputError(f"a map needs at least 3 different strings; here {len(mapped)} could be read")
    kernel = _kernel_of(mapped, surrogate, tokenizer)
    names = component_names(components)
    try:
        found = kernel_pca(
            mapped.strings,
            kernel.surrogate,
            values=mapped.model_values,
            components=components,
            space=kernel.space,
            learn_from=learn_from,
            seed=seed,
        )
        table = mapped.table(found.coordinates, names)
        if others is not None:
            table = pd.concat([table, others.table(found.project(others.strings), names)], ignore_index=True)
    except InputError as error:
        if not kernel.of_search:
            raise
        raise InputError(
            f"{error}. The map is by the model of the search and its symbols ({kernel.space.encoder.name}): where "
            "other strings do not fit, give --surrogate ssk --tokenizer characters"
        ) from error
    if kernel.name:
        found = replace(found, surrogate=kernel.name)
    judged = None
    if np.isfinite(mapped.values).sum() >= max(FEWEST_JUDGED, neighbours + 1):
        judged = smoothness(found.coordinates[:, :2], mapped.values, neighbours=neighbours, seed=seed)
    return Embedding(
        map=found,
        table=table,
        smoothness=judged,
        value_label=mapped.value_label or (others.value_label if others is not None else ""),
        log10=mapped.log10,
        minimize=mapped.minimize,
        settings={
            "surrogate": found.surrogate,
            "kind": mapped.kind,
            "tokenizer": kernel.space.encoder.name if looks_at_symbols(found.surrogate) else None,
            "components": components,
            "learn_from": learn_from,
            "seed": seed,
        },
        notes=(kernel.remark,) if kernel.remark else (),
    )


@dataclass(frozen=True)
class _Kernel:
    """Whose kernel maps which strings.

    Attributes:
        space: The strings, split into symbols.
        surrogate: Its name, or one that has not been fitted.
        name: What to call it, where that cannot be told from it.
        of_search: Whether it is that of a search.
        remark: What is to be said of it.
    """

    space: CandidateSet
    surrogate: Surrogate | str
    name: str = ""
    of_search: bool = False
    remark: str = ""


def _kernel_of(points: MapPoints, surrogate: str, tokenizer: str | None) -> _Kernel:
    searched = None if points.run is None else search_space(points.run, points.kind, points.keys)
    symbols = searched.encoder.tokenizer if searched is not None and tokenizer is None else tokenizer
    space = CandidateSet(points.strings, kind=points.kind, keys=points.keys, tokenizer=symbols)
    chosen: Surrogate | str = surrogate
    name, of_search, remark = "", points.run is not None and surrogate.strip().lower() == "auto", ""
    if points.run is not None and of_search:
        named = surrogate_of(points.run)
        name = named if named.lower().startswith(LATENT) else ""
        try:
            chosen, _, remark = restore_surrogate(points.run, searched)
        except InputError as error:
            raise InputError(f"{error}; or choose another model for the map by --surrogate") from error
    looked_at = (name or surrogate_name(chosen)) if of_search else surrogate
    if tokenizer is not None and looked_at.strip().lower() == "auto":
        looked_at = surrogate_name(resolve_surrogate(looked_at, space))
    if tokenizer is not None and looked_at and not looks_at_symbols(looked_at):
        raise InputError(f"the surrogate {looked_at} does not look at symbols: leave --tokenizer out")
    return _Kernel(space, chosen, name, of_search, remark)


def map_files(out: str | os.PathLike[str]) -> Path:
    """The table's path: ``out`` itself if it ends in .csv, else ``map.csv`` in that folder.

    Raises:
        InputError: If there is a file that no map has written.
    """
    path = Path(out) if str(out).lower().endswith(".csv") else Path(out) / "map.csv"
    if path.is_dir():
        raise InputError(f"{path} is a folder; the table of a map cannot be written there")
    if path.exists():
        with open(path, encoding="utf-8", errors="replace") as stream:
            first = stream.readline(200)
        if not first.startswith(_OWN_HEADER):
            raise InputError(
                f"{path} begins with {shortened(first.strip(), 40)!r} and is not a table of a map; it is not "
                "overwritten: choose another --out"
            )
    return path


def _safe(table: pd.DataFrame) -> pd.DataFrame:
    """The table with text of the user's, the strings apart, such that no spreadsheet takes it for a formula."""
    numbers = set(table.select_dtypes("number").columns)
    text = [name for name in table.columns if name not in numbers | {"string"}]
    return table.assign(**{name: table[name].fillna("").map(str).map(neutralise) for name in text})


def _short(found: Smoothness) -> str:
    return (
        f"{found.correlation:.2f} ({found.method.capitalize()} correlation with {found.neighbours} nearest neighbours; "
        f"shuffled: {found.shuffled_mean:.2f} ± {found.shuffled_std:.2f})"
    )
