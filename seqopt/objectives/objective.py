"""Objectives by name: built-in scores, a user's own function, and a column of the pool."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError, ObjectiveError
from seqopt.evaluation import Direction, PerString
from seqopt.evaluation.single import takes_one_string
from seqopt.objectives import codon_usage, expressions, genes, molecules, patterns, structure
from seqopt.objectives.weighted import WeightedSum, described, is_sum, parse_sum, usual_direction
from seqopt.strings.identity import identity_keys

MAXIMIZE: Direction = "maximize"
MINIMIZE: Direction = "minimize"


class ValuedPool(Protocol):
    """A pool with values, such as `seqopt.datasets.Pool`."""

    @property
    def strings(self) -> Sequence[str]: ...

    @property
    def keys(self) -> Sequence[str]: ...

    @property
    def kind(self) -> str: ...

    @property
    def standardized(self) -> bool: ...

    @property
    def values(self) -> npt.NDArray[np.float64] | None: ...

    @property
    def values_column(self) -> str | None: ...


@dataclass(frozen=True)
class Objective:
    """A score of strings, with what a user should know of it.

    It can be sent to another process when its function can.

    Attributes:
        name: How the user names it, such as ``"similarity:CCO"``.
        function: From a list of strings to as many numbers; NaN where a string cannot be scored.
        description: One line.
        direction: ``"maximize"`` or ``"minimize"``, what is usually wanted.
        kinds: The kinds of strings it applies to; empty for all.
        unit: Of the values, where they have one.
        chunk_size: The largest number of strings that it should be called with at a time; 1 unless the function scores
            a list faster than its strings one by one. See `seqopt.evaluation.Evaluator`.

    Raises:
        TypeError: When called, if the function returns `None`, or for a string something that is not a number.
    """

    name: str
    function: Callable[[list[str]], npt.ArrayLike]
    description: str = ""
    direction: Direction = MAXIMIZE
    kinds: tuple[str, ...] = ()
    unit: str = ""
    chunk_size: int = 1

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """The function's values as float64."""
        values = self.function(list(strings))
        if values is None:
            raise TypeError(f"{self.name} returned None; it must return one number per string")
        array = np.asarray(values)
        # numpy would take None for NaN, and text for the number that it spells.
        if array.dtype.kind in "OSU" and array.ndim:
            for string, value in zip(strings, list(cast(Iterable[object], values)), strict=False):
                if value is None or isinstance(value, str | bytes):
                    raise TypeError(f"{self.name} returned {value!r} for {string!r}, expected a number")
        return np.asarray(array, dtype=np.float64)

    def on_one(self, string: str) -> object:
        """What the function returns for a string that is not in a list: a number, if it is a function of one string."""
        return self.function(string)  # type: ignore[arg-type]

    @property
    def custom(self) -> bool:
        """Whether the function is a user's, found by its module or file, or a sum with one."""
        if isinstance(self.function, WeightedSum):
            return any(term.objective.custom for term in self.function.terms)
        function = self.function.function if isinstance(self.function, PerString) else self.function
        return isinstance(function, FunctionReference)

    @property
    def strings(self) -> str:
        """The kinds of strings it applies to, in words.

        Example:
            >>> resolve_objective("mfe").strings, resolve_objective("qed").strings
            ('DNA or RNA', 'molecules')
        """
        return " or ".join(kind.upper() if kind in ("dna", "rna") else f"{kind}s" for kind in self.kinds)

    def applies_to(self, kind: str) -> bool:
        """Whether strings of this kind can be scored."""
        return not self.kinds or kind in self.kinds


@dataclass(frozen=True)
class ObjectiveInfo:
    """An entry of the registry.

    Attributes:
        name: What stands before the colon.
        description: One line.
        direction: What is usually wanted.
        unit: Of the values.
        argument: What must stand after a colon; empty for nothing.
        kinds: The kinds of strings it applies to.
        build: From the argument to the function.
        optional: Whether the argument may be left out.
    """

    name: str
    description: str
    direction: Direction
    unit: str
    argument: str
    kinds: tuple[str, ...]
    build: Callable[[str], Callable[[list[str]], npt.ArrayLike]] = field(repr=False)
    optional: bool = False

    @property
    def usage(self) -> str:
        """As it is written, what may be left out in brackets."""
        if self.optional:
            return f"{self.name}[:{self.argument}]"
        return f"{self.name}:{self.argument}" if self.argument else self.name


def _entry(
    name: str,
    function: Callable[[list[str]], npt.ArrayLike],
    description: str,
    direction: Direction = MAXIMIZE,
    unit: str = "",
) -> ObjectiveInfo:
    return ObjectiveInfo(name, description, direction, unit, "", ("molecule",), lambda argument: function)


_WINDOW = "FIRST..LAST"

_GLUED = re.compile(r"\*\s*[\d.]|[-+*]\s*[a-z_]{2,}")
"""What looks like the rest of a sum at the end of an argument."""

OBJECTIVES: Mapping[str, ObjectiveInfo] = {
    info.name: info
    for info in (
        _entry(
            "penalized_logp",
            molecules.penalized_logp,
            "penalised logP: standardised logP - synthetic accessibility - ring penalty (by cycle basis)",
        ),
        _entry("logp", molecules.logp, "octanol/water partition coefficient, log10 (Wildman-Crippen)"),
        _entry("qed", molecules.qed, "drug-likeness, 0 to 1 (QED)"),
        _entry("sa_score", molecules.sa_score, "synthetic accessibility, 1 easy to 10 hard", MINIMIZE),
        _entry("molecular_weight", molecules.molecular_weight, "average molecular weight", MINIMIZE, "g/mol"),
        ObjectiveInfo(
            "similarity",
            "Tanimoto similarity, 0 to 1, to a given molecule (Morgan radius 2, 2,048 bits)",
            MAXIMIZE,
            "",
            "SMILES",
            ("molecule",),
            molecules.Similarity,
        ),
        ObjectiveInfo(
            "mfe",
            "minimum free energy of the folded RNA, at 37 degrees Celsius (ViennaRNA), or of a window by itself",
            MINIMIZE,
            "kcal/mol",
            _WINDOW,
            ("dna", "rna"),
            lambda argument: structure.WindowEnergy.parse(argument) if argument else genes.MinimumFreeEnergy(),
            optional=True,
        ),
        ObjectiveInfo(
            "ensemble_energy",
            "free energy of all structures of the RNA together (ViennaRNA), or of a window by itself",
            MINIMIZE,
            "kcal/mol",
            _WINDOW,
            ("dna", "rna"),
            structure.EnsembleFreeEnergy.parse,
            optional=True,
        ),
        ObjectiveInfo(
            "opening_energy",
            "energy that it takes to keep a window free of pairs, 0 at best; 100 bases around it fold, too",
            MINIMIZE,
            "kcal/mol",
            _WINDOW,
            ("dna", "rna"),
            structure.OpeningEnergy.parse,
        ),
        ObjectiveInfo(
            "accessibility",
            "probability that no base of a window is paired, 0 to 1",
            MAXIMIZE,
            "",
            _WINDOW,
            ("dna", "rna"),
            structure.Accessibility.parse,
        ),
        ObjectiveInfo(
            "cai",
            "codon adaptation index, 0 to 1, to e_coli, yeast, human or another organism",
            MAXIMIZE,
            "",
            "ORGANISM",
            ("dna", "rna"),
            genes.CodonAdaptationIndex,
        ),
        ObjectiveInfo(
            "log_cai",
            "natural logarithm of the codon adaptation index: a mean over codons, for weighted sums",
            MAXIMIZE,
            "",
            "ORGANISM",
            ("dna", "rna"),
            lambda argument: codon_usage.LogOf(genes.CodonAdaptationIndex(argument)),
        ),
        ObjectiveInfo(
            "gc",
            "fraction of bases that are G or C, 0 to 1",
            MAXIMIZE,
            "",
            "",
            ("dna", "rna"),
            lambda argument: genes.GCContent(),
        ),
        ObjectiveInfo(
            "gc_distance",
            "distance of the fraction of G and C from a wanted one",
            MINIMIZE,
            "",
            "TARGET",
            ("dna", "rna"),
            genes.gc_distance,
        ),
        ObjectiveInfo(
            "tai",
            "tRNA adaptation index, 0 to 1, by numbers of tRNA genes (columns anticodon and copies)",
            MAXIMIZE,
            "",
            "FILE.csv",
            ("dna", "rna"),
            codon_usage.TRNAAdaptationIndex.from_file,
        ),
        ObjectiveInfo(
            "log_tai",
            "natural logarithm of the tRNA adaptation index",
            MAXIMIZE,
            "",
            "FILE.csv",
            ("dna", "rna"),
            lambda argument: codon_usage.LogOf(codon_usage.TRNAAdaptationIndex.from_file(argument)),
        ),
        ObjectiveInfo(
            "codon_pairs",
            "codon pair bias: mean score of neighbouring codons, by the genes of a FASTA file",
            MAXIMIZE,
            "",
            "GENES.fasta",
            ("dna", "rna"),
            codon_usage.CodonPairBias.from_file,
        ),
        ObjectiveInfo(
            "harmonization",
            "mean distance of relative codon usage in a host from that of the native gene at home; 0 at best",
            MINIMIZE,
            "",
            "NATIVE.fasta,HOME,HOST",
            ("dna", "rna"),
            codon_usage.Harmonisation.parse,
        ),
        ObjectiveInfo(
            "usage",
            "geometric mean of the shares of codons among their synonyms in an organism, 0 to 1",
            MAXIMIZE,
            "",
            "ORGANISM",
            ("dna", "rna"),
            codon_usage.CodonShares,
        ),
        ObjectiveInfo(
            "log_usage",
            "mean natural logarithm of the shares of codons among their synonyms in an organism",
            MAXIMIZE,
            "",
            "ORGANISM",
            ("dna", "rna"),
            lambda argument: codon_usage.LogOf(codon_usage.CodonShares(argument)),
        ),
        ObjectiveInfo(
            "content",
            "occurrences of a motif in IUPAC letters, such as U or CG, per 100 bases",
            MINIMIZE,
            "per 100 bases",
            "MOTIF",
            ("dna", "rna"),
            codon_usage.MotifContent,
        ),
        ObjectiveInfo(
            "codon_weights",
            "mean weight of the codons, by a table of the columns codon and weight",
            MAXIMIZE,
            "",
            "FILE.csv",
            ("dna", "rna"),
            codon_usage.CodonWeights.from_file,
        ),
        ObjectiveInfo(
            "pattern_count",
            "occurrences of a pattern, overlapping ones too; ? matches any one character",
            MAXIMIZE,
            "",
            "PATTERN",
            (),
            patterns.PatternCount,
        ),
        ObjectiveInfo(
            "expression_error",
            "log(1 + mean squared error) of a formula on the points of a file with a column y",
            MINIMIZE,
            "",
            "FILE.csv",
            (),
            expressions.ExpressionError.from_csv,
        ),
    )
}
"""The built-in objectives, by name."""

_FORMS = "NAME, NAME:ARGUMENT, module:function, path/to/file.py:function, column:NAME, or a sum of them"


def resolve_objective(spec: str, pool: ValuedPool | None = None) -> Objective:
    """The objective that ``spec`` names.

    What stands before the first colon decides. A name of the registry is that objective, with what follows as
    its argument; ``column`` looks values up in the pool; anything else is a module, or a Python file, and the
    name of a function in it. The current folder counts as importable. A module of yours that is called
    like a built-in objective can still be named by its file: ``./qed.py:function``.

    Several make a weighted sum, ``"mfe - 5*log_cai:human"``: see `seqopt.objectives.weighted`. Its usual direction is
    that of its first score, a negative weight turned round.

    Args:
        spec: ``"NAME"``, ``"NAME:ARGUMENT"``, ``"module:function"``, ``"path/to/file.py:function"``,
            ``"column:NAME"``, or numbers, ``+``, ``-``, ``*`` and brackets with these. A function takes a list of
            strings, or one string if the annotation of its first parameter says ``str``.
        pool: The pool whose values ``column:NAME`` means, read with that column as its ``values_column``.

    Raises:
        InputError: For an unknown name, a missing, needless or unusable argument, a column that is not
            there, or a sum that cannot be read (with the position).
        ObjectiveError: For a module that cannot be imported (its own error is shown), or has no such
            function.

    Example:
        >>> similar = resolve_objective("similarity:c1ccccc1")
        >>> similar.direction, similar(["c1ccccc1"]).tolist()
        ('maximize', [1.0])
        >>> resolve_objective("loqp")
        Traceback (most recent call last):
            ...
        seqopt.errors.InputError: unknown objective 'loqp': did you mean 'logp'? ...
    """
    spec = spec.strip()
    if is_sum(spec):
        return weighted_objective(spec, parse_sum(spec, partial(resolve_objective, pool=pool)))
    name, colon, argument = spec.partition(":")
    argument = argument.strip()
    if name in OBJECTIVES:
        return _built_in(OBJECTIVES[name], spec, bool(colon), argument)
    if name == "column":
        return _column(spec, argument, pool)
    location, colon, attribute = spec.rpartition(":")
    if not colon:
        raise _unknown(spec)
    if not location or not attribute:
        raise InputError(f"objective {spec!r} is incomplete: write {_FORMS}")
    function = FunctionReference(location, attribute, os.getcwd())
    # What was loaded before is forgotten, so that a file that has been edited is read again.
    _FUNCTIONS.pop(function, None)
    loaded = function.load()
    own = getattr(loaded, "chunk_size", None)
    called = PerString(function) if takes_one_string(loaded) else function
    return Objective(spec, called, f"the function {attribute} of {location}", chunk_size=1 if own is None else own)


def weighted_objective(name: str, total: WeightedSum, direction: Direction | None = None) -> Objective:
    """A weighted sum as an objective.

    Args:
        name: What it is called.
        total: The sum.
        direction: By default that of its first score: see `resolve_objective`.

    Example:
        >>> from seqopt.objectives.weighted import Term
        >>> parts = [Term(1.0, resolve_objective("gc")), Term(-0.5, resolve_objective("cai:e_coli"))]
        >>> weighted_objective("open", WeightedSum(tuple(parts)))(["GCTGCG"]).round(3).tolist()
        [0.5]
    """
    usual, _ = usual_direction(total.terms)
    units = {term.objective.unit for term in total.terms if term.weight}
    return Objective(
        name,
        total,
        described(total.terms, total.constant),
        direction or usual,
        total.kinds,
        units.pop() if len(units) == 1 else "",
        total.chunk_size,
    )


def _built_in(info: ObjectiveInfo, spec: str, colon: bool, argument: str) -> Objective:
    if info.argument and not argument and (colon or not info.optional):
        raise InputError(f"the objective {info.name} needs an argument: write {info.usage}")
    if colon and not info.argument:
        raise InputError(
            f"the objective {info.name} takes no argument; write {info.name}. "
            f"For a module of this name, write ./{info.name}.py:{argument or 'function'}"
        )
    try:
        function = info.build(argument)
    except InputError as error:
        if _GLUED.search(argument):
            raise InputError(f"{error}. In a sum, an operator behind an argument needs a blank before it") from error
        if info.argument != _WINDOW:
            raise
        raise InputError(f"objective {spec!r}: {error}") from error
    chunk_size = getattr(function, "chunk_size", 1)
    return Objective(spec, function, info.description, info.direction, info.kinds, info.unit, chunk_size)


def _unknown(spec: str) -> InputError:
    names = [*OBJECTIVES, "column"]
    close = difflib.get_close_matches(spec.casefold(), names, n=1, cutoff=0.5)
    guess = f"did you mean {close[0]!r}? " if close else ""
    listed = ", ".join(info.usage for info in OBJECTIVES.values())
    return InputError(
        f"unknown objective {spec!r}: {guess}Built in are {listed}. "
        "A custom function is written module:function or path/to/file.py:function, "
        "and a column of the pool column:NAME"
    )


@dataclass(frozen=True)
class FunctionReference:
    """A function of a module or file, found when it is first called, so that it can be sent to another
    process.

    Args:
        location: A dotted module name, or the path of a ``.py`` file.
        attribute: The function's name in it; dots reach into classes.
        folder: The folder that counts as the current one.
    """

    location: str
    attribute: str
    folder: str

    def __call__(self, strings: list[str]) -> npt.ArrayLike:
        """Call the function."""
        return self.load()(strings)

    def load(self) -> Callable[[list[str]], npt.ArrayLike]:
        """The function itself.

        Raises:
            ObjectiveError: If the module cannot be imported or has no such function.
        """
        found = _FUNCTIONS.get(self)
        if found is None:
            found = _FUNCTIONS[self] = self._find()
        return found

    def _find(self) -> Callable[[list[str]], npt.ArrayLike]:
        module = self._module()
        found: object = module
        for part in self.attribute.split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                raise ObjectiveError(self._no_function(module)) from None
        if not callable(found) or isinstance(found, type):
            what = "a class" if isinstance(found, type) else f"an object of type {type(found).__name__}"
            raise ObjectiveError(
                f"{self.attribute} of {self.location} is {what}: "
                "name a function from a list of strings to as many numbers"
            )
        return found

    def _no_function(self, module: ModuleType) -> str:
        own = [
            name
            for name, value in vars(module).items()
            if callable(value) and not name.startswith("_") and not isinstance(value, type)
        ]
        close = difflib.get_close_matches(self.attribute, own, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        return f"{self.location} has no function {self.attribute!r}, only {', '.join(own) or 'none'}.{guess}"

    def _module(self) -> ModuleType:
        is_file = self.location.endswith(".py") or "/" in self.location or os.sep in self.location
        return self._import_file() if is_file else self._import_module()

    def _import_module(self) -> ModuleType:
        if not all(part.isidentifier() for part in self.location.split(".")):
            raise InputError(f"{self.location!r} is neither a module nor a .py file: write {_FORMS}")
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        try:
            return importlib.import_module(self.location)
        except ModuleNotFoundError as error:
            if error.name is not None and (self.location + ".").startswith(error.name + "."):
                close = difflib.get_close_matches(self.location.casefold(), OBJECTIVES, n=1, cutoff=0.6)
                guess = f"did you mean {close[0]}:{self.attribute}? Else " if close else ""
                raise ObjectiveError(
                    f"there is no module {error.name!r}, neither in {self.folder} nor installed: {guess}"
                    "go to its folder, or name its file, "
                    f"path/to/{self.location.split('.')[-1]}.py:{self.attribute}"
                ) from None
            raise ObjectiveError(_import_failure(self.location, error)) from error
        except (Exception, SystemExit) as error:
            raise ObjectiveError(_import_failure(self.location, error)) from error

    def _import_file(self) -> ModuleType:
        path = Path(self.folder, Path(self.location).expanduser()).resolve()
        if not path.is_file():
            raise ObjectiveError(f"there is no file {path} to take {self.attribute} from")
        name = f"seqopt_objective_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ObjectiveError(f"{path} is not a Python file: its name must end in .py")
        module = importlib.util.module_from_spec(spec)
        # Beside it may stand modules that it imports, as when it is run as a script.
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        # Dataclasses and the like look their module up by name while it is imported.
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            sys.modules.pop(name, None)
            raise ObjectiveError(_import_failure(str(path), error)) from error
        return module


_FUNCTIONS: dict[FunctionReference, Callable[[list[str]], npt.ArrayLike]] = {}


def _import_failure(location: str, error: BaseException) -> str:
    """The error of an import, with the last location outside the import machinery."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith("<") and frame.filename != __file__]
    own = [frame for frame in own if f"importlib{os.sep}__init__" not in frame.filename]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    message = "".join(traceback.format_exception_only(error)).strip()
    return f"{location} cannot be imported: {message}{where}"


@dataclass(frozen=True, eq=False)
class ColumnLookup:
    """Values of strings looked up in a table, by the string itself and then by its key.

    Args:
        values: From strings and keys to values.
        kind: The kind of the strings.
        standardized: Whether the keys are those of charge parents.
    """

    values: Mapping[str, float]
    kind: str
    standardized: bool = False

    def __call__(self, strings: list[str]) -> npt.NDArray[np.float64]:
        """The values; NaN for a string that is not in the table."""
        found = []
        for string in strings:
            value = self.values.get(string)
            if value is None:
                (key,) = identity_keys([string], self.kind, standardize=self.standardized)
                value = self.values.get(key) if key is not None else None
            found.append(np.nan if value is None else value)
        return np.array(found, dtype=np.float64)


def _column(spec: str, name: str, pool: ValuedPool | None) -> Objective:
    if not name:
        raise InputError("the objective column needs the name of a column: write column:NAME")
    if pool is None:
        raise InputError(f"the objective {spec!r} looks values up in the pool, and there is no pool")
    if pool.values is None or pool.values_column is None or pool.values_column.casefold() != name.casefold():
        has = "no values" if pool.values is None else f"the values of column {pool.values_column!r}"
        raise InputError(f"the objective {spec!r} needs the pool's column {name!r}, but the pool has {has}")
    table = dict(zip(pool.keys, pool.values.tolist(), strict=True))
    # The strings go in last: where one molecule's spelling is another kind's key, the spelling is what was
    # meant.
    table.update(zip(pool.strings, pool.values.tolist(), strict=True))
    return Objective(
        spec,
        ColumnLookup(table, pool.kind, pool.standardized),
        f"the pool's column {pool.values_column!r}",
        kinds=(pool.kind,),
    )
