"""GenBank flat files: the coding sequences of a record, and genes with what stands around them.

Only what genes need is read: the name of a record (LOCUS), its coding features (CDS, with location, translation and
names) and its bases (ORIGIN). Everything else is left aside. Locations may be ``join``, ``order`` and ``complement`` of
stretches of the record itself, ends marked ``<`` or ``>`` included; others are refused.

References:
    The DDBJ/ENA/GenBank Feature Table Definition, sections 3.4 (locations) and 4 (format).
    GenBank flat file release notes, section 3.4 (the LOCUS line).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from seqopt.errors import InputError
from seqopt.strings.genetic_codes import STOP, GeneticCode, genetic_code

ENDINGS = (".gb", ".gbk", ".genbank", ".gbff")
"""How names of such files end."""

WIDTH = 60
"""Bases on a line of ORIGIN, in groups of ten."""

LONGEST_LINE = 79
"""Characters of a line."""

DATE = "01-JAN-1980"
"""Stands where a file has to have a date, so that the same genes make the same file."""

_INDENT = 21
_COMPLEMENT = str.maketrans("ACGTRYKMBVDHSWN", "TGCAYRMKVBHDSWN")
_STRETCH = re.compile(r"<?(\d+)(?:\.\.>?(\d+))?")
_NAMING = ("gene", "locus_tag", "protein_id", "product", "label")


@dataclass(frozen=True)
class Feature:
    """A feature of a record.

    Attributes:
        kind: Its key, such as ``"CDS"``.
        location: Where it lies, as GenBank writes it.
        qualifiers: Its qualifiers without the slash; of those that are repeated, the first.
        line: Where it begins in the file, from 1; 0 where it was not read.
    """

    kind: str
    location: str
    qualifiers: Mapping[str, str] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True)
class Record:
    """A record of a GenBank file.

    Attributes:
        name: Of its LOCUS line.
        sequence: Its bases in upper-case DNA letters; empty where the file has none.
        features: In their order.
        line: Where it begins in the file, from 1.
    """

    name: str
    sequence: str
    features: tuple[Feature, ...] = ()
    line: int = 1

    def bases_of(self, location: str) -> str:
        """The bases that a location means.

        Raises:
            InputError: If the location is of another form, or reaches beyond the record.

        Example:
            >>> Record("x", "AACCGGTT").bases_of("complement(join(1..2,5..6))")
            'CCTT'
        """
        text = "".join(location.split())
        for operator in ("complement", "join", "order"):
            if text.startswith(f"{operator}(") and text.endswith(")"):
                inner = text[len(operator) + 1 : -1]
                if operator == "complement":
                    return self.bases_of(inner).translate(_COMPLEMENT)[::-1]
                return "".join(self.bases_of(part) for part in _parts(inner))
        found = _STRETCH.fullmatch(text)
        if found is None:
            raise InputError(f"the location {location!r} is not a stretch of this record, nor a join or complement")
        first, last = int(found[1]), int(found[2] or found[1])
        if not 1 <= first <= last <= len(self.sequence):
            raise InputError(f"the location {location!r} does not lie within the record's {len(self.sequence):,} bases")
        return self.sequence[first - 1 : last]

    def protein_of(self, feature: Feature) -> str:
        """The protein of a coding feature: its translation, or that of its bases, without a stop symbol at the end.

        Raises:
            InputError: If there is neither, or its bases are not those of whole codons of A, C, G and T.
        """
        if translation := "".join(feature.qualifiers.get("translation", "").split()):
            return translation.upper().removesuffix(STOP)
        if not self.sequence:
            raise InputError("it has no /translation, and the file has no bases (ORIGIN) to translate")
        return self._translated(feature)

    def remark_on(self, feature: Feature) -> str:
        """What is worth a second look of a coding feature: its translation is not that of its bases, or they end within
        a codon; empty where nothing is.

        Example:
            >>> coding = Feature("CDS", "1..9", {"translation": "MR"})
            >>> print(Record("x", "ATGAAATAA").remark_on(coding))
            its /translation has R at position 2, and its bases code for K there: the /translation is taken
        """
        if not self.sequence:
            return ""
        try:
            length, coded = len(self._coding(feature)), self._translated(feature)
        except InputError:
            return ""  # Where bases cannot be translated, there is nothing to compare.
        translation = "".join(feature.qualifiers.get("translation", "").split()).upper().removesuffix(STOP)
        if not translation:
            # What is marked to go on beyond the bases may end within a codon.
            over = 0 if any(mark in feature.location for mark in "<>") else length % 3
            return (
                f"its {length} bases are no whole number of codons: the last {over} count for nothing" if over else ""
            )
        if len(translation) != len(coded):
            return (
                f"its /translation has {len(translation)} residues, and its bases code for {len(coded)}: the "
                "/translation is taken"
            )
        wrong = next(
            (place for place, (one, two) in enumerate(zip(translation, coded, strict=False)) if one != two), None
        )
        if wrong is None:
            return ""
        return (
            f"its /translation has {translation[wrong]} at position {wrong + 1}, and its bases code for "
            f"{'a stop' if coded[wrong] == STOP else coded[wrong]} there: the /translation is taken"
        )

    def _coding(self, feature: Feature) -> str:
        """The bases of a coding feature from its first whole codon on."""
        return self.bases_of(feature.location)[int(feature.qualifiers.get("codon_start", "1")) - 1 :]

    def _translated(self, feature: Feature) -> str:
        code = genetic_code(feature.qualifiers.get("transl_table", "1"))
        begin = int(feature.qualifiers.get("codon_start", "1")) - 1
        bases = self._coding(feature)
        bases = bases[: len(bases) - len(bases) % 3]
        position = next((index for index, base in enumerate(bases, start=1) if base not in "ACGT"), None)
        if position is not None:
            raise InputError(f"it has no /translation, and {bases[position - 1]!r} at its base {position} is ambiguous")
        protein = code.translate(bases)
        # Whatever it codes for within a gene, a start codon begins it with Met.
        if begin == 0 and bases[:3] in code.starts and not _begins_before(feature.location):
            protein = "M" + protein[1:]
        return protein.removesuffix(STOP)


def _begins_before(location: str) -> bool:
    """Whether a coding feature begins before the bases that are there: at its first exon, as it is read."""
    whole = re.fullmatch(r"(complement\()?(?:(?:join|order)\()?(.*?)\)*", location.strip())
    if whole is None:
        return "<" in location
    exons = _parts(whole[2])
    if whole[1]:
        return ">" in exons[-1]
    return (">" if exons[0].startswith("complement") else "<") in exons[0]


def coding_name(feature: Feature, otherwise: str) -> str:
    """What a coding feature is called: its gene, locus tag, protein, product or label."""
    found = next((feature.qualifiers[name] for name in _NAMING if feature.qualifiers.get(name)), otherwise)
    return "_".join(found.split())


def parse_genbank(text: str, where: str) -> list[Record]:
    """The records of a GenBank file.

    Args:
        text: Of the file.
        where: What messages call it.

    Raises:
        InputError: If it holds no record, or a line that has to be something else (with its number).
    """
    records: list[Record] = []
    name, begun, section = "", 0, ""
    features: list[Feature] = []
    lines: list[tuple[int, str]] = []
    bases: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line[:12].strip()
        if line.startswith("LOCUS"):
            if begun:
                raise InputError(
                    f"{where}, line {number}: a record begins before that of line {begun} has ended with //"
                )
            words = line.split()
            name, begun, section = (words[1] if len(words) > 1 else f"record-{len(records) + 1}"), number, ""
        elif not begun:
            if line.strip():
                raise InputError(f"{where}, line {number}: expected a line that begins with LOCUS, not {line[:30]!r}")
        elif line.startswith("//"):
            features += _features(lines, where)
            records.append(Record(name, "".join(bases), tuple(features), begun))
            begun, section, features, lines, bases = 0, "", [], [], []
        elif word and not line[:1].isspace():
            section = word
        elif section == "FEATURES":
            lines.append((number, line))
        elif section == "ORIGIN":
            letters = "".join(part for part in line.split() if not part.isdigit()).upper().replace("U", "T")
            if wrong := next((letter for letter in letters if letter not in "ACGTRYKMBVDHSWN"), None):
                raise InputError(f"{where}, line {number}: {wrong!r} is not a base")
            bases.append(letters)
    if begun:
        raise InputError(f"{where}: the record of line {begun} does not end with //: the file may have been cut off")
    if not records:
        raise InputError(f"{where} holds no record: a GenBank file begins with a line LOCUS")
    return records


def _features(lines: Sequence[tuple[int, str]], where: str) -> Iterator[Feature]:
    """The features of the lines between FEATURES and ORIGIN."""
    kind, begun, parts = "", 0, list[str]()
    for number, line in [*lines, (0, "     .")]:
        key = line[:_INDENT].strip()
        if not key:
            if not begun and line.strip():
                raise InputError(f"{where}, line {number}: expected a feature, not {line.strip()[:30]!r}")
            parts.append(line[_INDENT:].rstrip() if len(line) > _INDENT else line.strip())
            continue
        if begun:
            yield _feature(kind, parts, begun)
        kind, begun, parts = key, number, [line[_INDENT:].strip()]


def _feature(kind: str, parts: Sequence[str], line: int) -> Feature:
    location: list[str] = []
    qualifiers: dict[str, str] = {}
    name = before = ""
    for part in parts:
        text = part.strip()
        closed = not name or not qualifiers[name].startswith('"') or _is_closed(qualifiers[name])
        if text.startswith("/") and closed:
            key, _, value = text[1:].partition("=")
            # Of a repeated qualifier the first counts; the others are read under a name that nothing asks for.
            name = key if key not in qualifiers else f"{key} again"
            qualifiers[name] = value
        elif name:
            # A line that is full and has no blank was broken within a word.
            full = len(before) >= LONGEST_LINE - _INDENT and " " not in before
            qualifiers[name] += text if full else f" {text}"
        else:
            location.append(text)
        before = text
    read = {key: _unquoted(value.strip()).replace('""', '"') for key, value in qualifiers.items()}
    return Feature(kind, "".join(location), read, line)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value.startswith('"') and value.endswith('"') else value.strip('"')


def _is_closed(quoted: str) -> bool:
    return len(quoted) > 1 and quoted.count('"') % 2 == 0


def _parts(text: str) -> list[str]:
    """What commas separate outside brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


@dataclass(frozen=True)
class Construct:
    """What a gene stands in, and what it codes for.

    Attributes:
        upstream: Bases before it.
        downstream: Bases behind it.
        code: The genetic code.
        product: What the protein is called.
        start: Whether its first codon is a start codon, and read as Met.
        stop: Whether its last codon is a stop codon.
        rna: Whether the molecule is RNA.
    """

    upstream: str = ""
    downstream: str = ""
    code: GeneticCode = field(default_factory=lambda: genetic_code("standard"))
    product: str = ""
    start: bool = False
    stop: bool = False
    rna: bool = False


def genbank(name: str, definition: str, gene: str, construct: Construct) -> str:
    """A record of one gene, the bases beside it included; GenBank writes T for the U of RNA, too.

    Example:
        >>> text = genbank("x_1", "a gene", "ATGAAATAA", Construct("GGG", product="x", start=True, stop=True))
        >>> record, = parse_genbank(text, "here")
        >>> record.sequence, record.protein_of(record.features[-1])
        ('GGGATGAAATAA', 'MK')
    """
    whole = (construct.upstream + gene + construct.downstream).upper().replace("U", "T")
    first, last = len(construct.upstream) + 1, len(construct.upstream) + len(gene)
    protein = construct.code.translate(whole[first - 1 : last])
    coded = ("M" + protein[1:] if construct.start else protein).removesuffix(STOP)
    # A coding sequence without start or stop codon is part of a longer one, as GenBank sees it.
    place = f"{'' if construct.start else '<'}{first}..{'' if construct.stop else '>'}{last}"
    molecule = "mRNA" if construct.rna else "DNA"
    kept = "_".join(name.split())[:16]
    lines = [
        f"LOCUS       {kept:<16} {len(whole):>11} bp    {molecule:<6}  linear   SYN {DATE}",
        *_wrapped("DEFINITION  ", definition, 12),
        "ACCESSION   .",
        "KEYWORDS    .",
        "SOURCE      synthetic construct",
        "  ORGANISM  synthetic construct",
        "            other sequences; artificial sequences.",
        "FEATURES             Location/Qualifiers",
        *_written(
            "source", f"1..{len(whole)}", [("organism", "synthetic construct"), ("mol_type", _mol_type(construct))]
        ),
    ]
    if construct.upstream:
        lines += _written("misc_feature", f"1..{first - 1}", [("note", "upstream of the gene")])
    qualifiers: list[tuple[str, str | int]] = [
        ("label", name),
        ("codon_start", 1),
        ("transl_table", construct.code.number),
    ]
    qualifiers += [("product", construct.product)] if construct.product else []
    lines += _written("CDS", place, [*qualifiers, ("translation", coded)])
    if construct.downstream:
        lines += _written("misc_feature", f"{last + 1}..{len(whole)}", [("note", "downstream of the gene")])
    lines.append("ORIGIN")
    for begin in range(0, len(whole), WIDTH):
        groups = [whole[at : at + 10].lower() for at in range(begin, min(begin + WIDTH, len(whole)), 10)]
        lines.append(f"{begin + 1:>9} {' '.join(groups)}")
    return "".join(f"{line}\n" for line in [*lines, "//"])


def _mol_type(construct: Construct) -> str:
    return "mRNA" if construct.rna else "other DNA"


def _written(kind: str, location: str, qualifiers: Sequence[tuple[str, str | int]]) -> list[str]:
    lines = [f"     {kind:<16}{location}"]
    for name, value in qualifiers:
        shown = f"{value}" if isinstance(value, int) else '"' + value.replace('"', '""') + '"'
        lines += _wrapped(" " * _INDENT, f"/{name}={shown}", _INDENT)
    return lines


def _wrapped(head: str, text: str, indent: int) -> list[str]:
    """Text behind a head, broken into lines: at blanks where there are any."""
    room, lines, rest = LONGEST_LINE - indent, list[str](), " ".join(text.split())
    while len(rest) > room:
        at = rest.rfind(" ", 0, room + 1)
        lines.append(rest[:at] if at > 0 else rest[:room])
        rest = rest[at + 1 :] if at > 0 else rest[room:]
    lines.append(rest)
    return [(head if index == 0 else " " * indent) + line for index, line in enumerate(lines)]
