"""Constraints that are motifs: sites, signals, runs of one base and repeated units."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import ClassVar

from seqopt.errors import InputError
from seqopt.spaces.motifs import checked_motif, strands
from seqopt.spaces.specifications.base import Specification
from seqopt.strings.genetic_codes import AMBIGUITY
from seqopt.utils.arguments import checked_integer
from seqopt.utils.resources import data_path

SIGNALS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "poly-a": ("polyadenylation signals", ("AATAAA", "ATTAAA")),
    "splice-donor": ("splice donors", ("MAGGTRAGT", "GGTAAG", "GGTGAG")),
    "splice-acceptor": ("splice acceptors", ("YYYYYYYYNCAGG",)),
    "shine-dalgarno": ("Shine-Dalgarno sites", ("AGGAGG", "GGAGGA")),
    "chi": ("Chi sites", ("GCTGGTGG",)),
    "tata": ("TATA boxes", ("TATAWAW",)),
}
"""Signals by name: what they are, and their motifs on the strand of the gene.

Poly-A: Proudfoot (2011), Genes Dev. 25, 1770. Splice sites: the consensus of Mount (1982), Nucleic Acids Res. 10, 459,
and the two shortest donors that are usually avoided. Shine-Dalgarno: Shine and Dalgarno (1974), PNAS 71, 1342. Chi:
Smith et al. (1981), Cell 24, 429. TATA: Bucher (1990), J. Mol. Biol. 212, 563.
"""

SHORTEST_RUN = 2


@lru_cache(maxsize=1)
def restriction_sites() -> Mapping[str, str]:
    """Recognition sites of restriction enzymes in IUPAC letters, by the name of the enzyme.

    Example:
        >>> restriction_sites()["EcoRI"], restriction_sites()["BsaI"]
        ('GAATTC', 'GGTCTC')
    """
    table: dict[str, list[str]] = json.loads(data_path("restriction_sites.json").read_text(encoding="utf-8"))["sites"]
    return {enzyme: site for site, enzymes in sorted(table.items()) for enzyme in enzymes}


def site_of(name: str) -> str:
    """The motif that a name or IUPAC letters stand for.

    Args:
        name: An enzyme, such as ``"EcoRI"`` (case does not count), or a motif.

    Raises:
        InputError: If it is neither.

    Example:
        >>> site_of("ecori"), site_of("gantc")
        ('GAATTC', 'GANTC')
    """
    if isinstance(name, str):
        wanted = name.strip().casefold()
        found = next((site for enzyme, site in restriction_sites().items() if enzyme.casefold() == wanted), None)
        if found is not None:
            return found
        # BamH is an enzyme without its number, although its letters are IUPAC letters, too.
        mixed = name.strip() not in (name.strip().upper(), name.strip().lower())
        if mixed and set(wanted.upper()) <= AMBIGUITY.keys() and (close := _similar(wanted)):
            raise InputError(
                f"{name!r} is no enzyme of the list: did you mean {' or '.join(close)}? If it is a motif in IUPAC "
                f"letters, write it in capitals, {name.strip().upper()}"
            )
    try:
        return checked_motif(name)
    except InputError as error:
        if not isinstance(name, str) or not name.strip():
            raise
        close = _similar(wanted)
        guess = f"did you mean {' or '.join(close)}? Otherwise " if close else ""
        raise InputError(
            f"{name!r} is neither an enzyme of the list nor a motif: {guess}write its site in IUPAC letters ({error})"
        ) from None


def _similar(wanted: str) -> list[str]:
    """Up to two enzymes whose names are most like one that is not there, in lower case."""
    names = {enzyme.casefold(): enzyme for enzyme in restriction_sites()}
    # EcoR1 is how EcoRI gets typed: the number at the end is a Roman one.
    roman = wanted.translate(str.maketrans("1l5", "iiv"))
    if roman in names:
        return [names[roman]]
    return [names[one] for one in difflib.get_close_matches(wanted, names, n=2, cutoff=0.75)]


class ForbiddenMotif(Specification):
    """No occurrence of a motif, also where it reaches into what stands before or behind the gene.

    Args:
        motif: In IUPAC letters, or the name of a restriction enzyme.
        both_strands: Nor of its reverse complement.

    Example:
        >>> ForbiddenMotif("BsaI").motifs()[1]
        ("'GAGACC', the reverse complement of 'GGTCTC',", 'GAGACC')
    """

    def __init__(self, motif: str, both_strands: bool = True) -> None:
        self.motif = site_of(motif)
        self.both_strands = both_strands

    @property
    def text(self) -> str:
        """See `Specification`."""
        return f"no {self.motif}{' on either strand' if self.both_strands else ''}"

    def motifs(self) -> list[tuple[str, str]]:
        """See `Specification`."""
        return strands([self.motif], self.both_strands)


class ForbiddenSignal(Specification):
    """None of the motifs of a signal, on the strand of the gene.

    Args:
        signal: A name of `SIGNALS`.

    Example:
        >>> ForbiddenSignal("poly-a").motifs()
        [("'AATAAA'", 'AATAAA'), ("'ATTAAA'", 'ATTAAA')]
    """

    def __init__(self, signal: str) -> None:
        if signal not in SIGNALS:
            raise InputError(f"unknown signal {signal!r}: choose {', '.join(SIGNALS)}")
        self.signal = signal

    @property
    def text(self) -> str:
        """See `Specification`."""
        name, motifs = SIGNALS[self.signal]
        return f"no {name} ({', '.join(motifs)})"

    def motifs(self) -> list[tuple[str, str]]:
        """See `Specification`."""
        return strands(SIGNALS[self.signal][1], both=False)


class LongestRun(Specification):
    """No run of one base that is longer than a number, what stands before and behind the gene included.

    Args:
        most: Bases of the longest run.
        bases: Of which bases.

    Example:
        >>> [motif for _, motif in LongestRun(3, "GC").motifs()]
        ['GGGG', 'CCCC']
    """

    def __init__(self, most: int, bases: str = "ACGT") -> None:
        self.most = checked_integer("the longest run", most, 1, "expected an integer of bases")
        self.bases = checked_motif(bases)
        if not set(self.bases) <= set("ACGT"):
            raise InputError(f"runs are of single bases: {bases!r} has other letters than A, C, G and T")

    @property
    def text(self) -> str:
        """See `Specification`."""
        which = "one base" if set(self.bases) == set("ACGT") else " or ".join(self.bases)
        return f"no run of more than {self.most} of {which}"

    def motifs(self) -> list[tuple[str, str]]:
        """See `Specification`."""
        return [(f"a run of {self.most + 1} {base}", base * (self.most + 1)) for base in self.bases]


class TandemRepeats(Specification):
    """No unit of two or three bases repeated in a row so often, a run of one base among them.

    Args:
        unit: Bases of the unit, 2 or 3.
        times: Repetitions in a row that are one too many.

    Example:
        >>> [motif for _, motif in TandemRepeats(2, 3).motifs()][:2]
        ['AAAAAA', 'ACACAC']
    """

    longest_unit: ClassVar[int] = 3

    def __init__(self, unit: int, times: int) -> None:
        self.unit = checked_integer("the unit", unit, SHORTEST_RUN, "expected 2 or 3 bases")
        if self.unit > self.longest_unit:
            raise InputError(f"the unit is {unit} bases; expected 2 or 3: longer repeats are for unique-kmers")
        self.times = checked_integer("the number of repetitions", times, 2, "expected an integer")

    @property
    def text(self) -> str:
        """See `Specification`."""
        return f"no unit of {self.unit} bases {self.times} times in a row"

    def motifs(self) -> list[tuple[str, str]]:
        """See `Specification`."""
        units = ["".join(unit) for unit in product("ACGT", repeat=self.unit)]
        return [(f"{unit} {self.times} times", unit * self.times) for unit in units]
