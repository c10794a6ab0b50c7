"""The conformance suites of spaces: ours pass them, and each broken one fails where it is broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.datasets import prepare_pool
from seqopt.encoding import Alphabet, Encoder
from seqopt.errors import InputError
from seqopt.spaces import (
    CandidateSet,
    CodonLibrary,
    CodonSpace,
    GrammarSpace,
    LocalSpace,
    ParentSpace,
    Space,
    StoredPool,
    StringSpace,
    TemplateSpace,
)
from seqopt.testing.spaces import EvolvableSpaceConformance, PoolSpaceConformance, SpaceConformance
from seqopt.utils.config import Config, Configurable

SMILES = ["OCC", "c1ccccc1", "C(C)N", "CN(C)C", "O=C=O", "CC(=O)[O-].[Na+]"]
POOLS: dict[str, Callable[[], Any]] = {
    "text": lambda: CandidateSet(["a", "ab", "ba", "bb b", " c "], kind="text"),
    "molecules": lambda: CandidateSet(SMILES, kind="molecule"),
    "parents": lambda: CandidateSet(SMILES, kind="molecule", standardize=True),
    "peptides": lambda: CandidateSet(["MKV", "mkw", "GAG"], kind="protein"),
}
MOVING: dict[str, tuple[Callable[[], Any], Callable[[], Any], list[str]]] = {
    "strings": (lambda: StringSpace("ab", 6), lambda: StringSpace("abc", 6), []),
    "lengths": (lambda: StringSpace("abc", min_length=1, max_length=5), lambda: StringSpace("abc", 5), []),
    "accepted": (lambda: StringSpace("01", 5, accept=_apart), lambda: StringSpace("01", 5), []),
    "dna": (lambda: StringSpace("ACGT", 4, kind="dna"), lambda: StringSpace("ACG", 4, kind="dna"), ["ACGX"]),
    "chains": (
        lambda: StringSpace("CNO", max_length=4, kind="molecule"),
        lambda: StringSpace("CN", max_length=4, kind="molecule"),
        ["C(C"],
    ),
    "one": (lambda: StringSpace("a", 3), lambda: StringSpace("a", 4), []),
    "local": (lambda: LocalSpace([["a", "bb"], ["c"], ["a", "d"]]), lambda: LocalSpace([["a"], ["c"]]), []),
    "codons": (lambda: CodonSpace("MKVL"), lambda: CodonSpace("MKVV"), ["AUGAAX"]),
    "constrained codons": (
        lambda: CodonSpace("MKVLKE", forbidden=["AAA"], gc=(0.3, 0.6)),
        lambda: CodonSpace("MKVLKE", forbidden=["TTT"], gc=(0.3, 0.6)),
        [],
    ),
    "template": (
        lambda: TemplateSpace("MK[AV]x{1-3}(GS){0-2}W?", parent="MKAHGSW"),
        lambda: TemplateSpace("MK[AV]x{1-4}(GS){0-2}W?", parent="MKAHGSW"),
        ["MK!W"],
    ),
    "accepted template": (
        lambda: TemplateSpace("[01]{3-5}", letters="01", kind="text", accept=_apart),
        lambda: TemplateSpace("[01]{3-5}", letters="01", kind="text"),
        [],
    ),
    "degenerate bases": (lambda: TemplateSpace("ANRY?", kind="dna"), lambda: TemplateSpace("ANRY", kind="dna"), []),
    "parent": (
        lambda: ParentSpace("MKVLSAG", 2, positions="2-4,7"),
        lambda: ParentSpace("MKVLSAG", 3, positions="2-4,7"),
        ["MK!LSAG"],
    ),
    "own letters": (
        lambda: ParentSpace("MKVL", letters={1: "MA", 3: "VIL"}),
        lambda: ParentSpace("MKVL", letters={1: "MA", 3: "VI"}),
        [],
    ),
    "degenerate codons": (
        lambda: CodonLibrary("NNK,NDT", parent="MKVL", positions="2,4"),
        lambda: CodonLibrary("NDT,NNK", parent="MKVL", positions="2,4"),
        [],
    ),
    "expressions": (lambda: GrammarSpace("arithmetic", 1, 8), lambda: GrammarSpace("arithmetic", 1, 9), []),
    "smiles": (
        lambda: GrammarSpace("smiles", 1, 8, kind="molecule"),
        lambda: GrammarSpace("smiles", 1, 9, kind="molecule"),
        ["C1=c(=CCl)N/O1"],
    ),
}


def _apart(string: str) -> bool:
    return "11" not in string


@pytest.mark.parametrize("name", POOLS)
class TestPools(PoolSpaceConformance):
    @pytest.fixture
    def space(self, name: str) -> Any:
        return POOLS[name]()

    @pytest.fixture
    def bad_strings(self, name: str) -> list[str]:
        return ["C1CC", "C(C"] if name in ("molecules", "parents") else []

    @pytest.fixture
    def writings(self, name: str) -> list[tuple[str, str]]:
        return {
            "text": [],
            "molecules": [("OCC", "C(O)C"), ("CCO", "OCC")],
            "parents": [("CC(=O)O", "CC(=O)[O-].[Na+]")],
            "peptides": [("mkv", " MKV ")],
        }[name]


class TestPoolsOnDisk(PoolSpaceConformance):
    @pytest.fixture
    def space(self, tmp_path: Path) -> Any:
        file = tmp_path / "library.smi"
        file.write_text("\n".join(SMILES))
        return StoredPool(prepare_pool(file, folder=tmp_path, workers=1))

    @pytest.fixture
    def bad_strings(self) -> list[str]:
        return ["C1CC", "C(C"]

    @pytest.fixture
    def writings(self) -> list[tuple[str, str]]:
        return [("OCC", "C(O)C"), ("CCO", "OCC")]


@pytest.mark.parametrize("name", MOVING)
class TestMovingSpaces(EvolvableSpaceConformance):
    @pytest.fixture
    def space(self, name: str) -> Any:
        return MOVING[name][0]()

    @pytest.fixture
    def other_space(self, name: str) -> Any:
        return MOVING[name][1]()

    @pytest.fixture
    def bad_strings(self, name: str) -> list[str]:
        return MOVING[name][2]

    @pytest.fixture
    def writings(self, name: str) -> list[tuple[str, str]]:
        return {"dna": [("acgt", "ACGT")], "chains": [("OCC", "CCO")]}.get(name, [])


class _Words(Configurable):
    """Words of four letters out of a and b, the case of which does not matter; broken as a subclass says."""

    kind = "text"

    def __init__(self) -> None:
        self.encoder: Any = Encoder(alphabet=Alphabet("ab"))
        self.made = 0

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        return [f"{number:04b}".replace("0", "a").replace("1", "b") for number in rng.permutation(16)[:n].tolist()]

    def contains(self, string: str) -> bool:
        return len(string) == 4 and set(string.lower()) <= set("ab")

    def key(self, string: str) -> str:
        if "!" in string:
            raise InputError(f"{string!r} is not a word")
        return string.lower()

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        return [self.key(string) for string in strings]

    def sample_individuals(self, n: int, rng: np.random.Generator) -> list[list[str]]:
        return [list(self.sample(1, rng)[0]) for _ in range(n)]

    def mutate(self, individuals: Sequence[list[str]], rng: np.random.Generator) -> list[list[str]]:
        children = [list(one) for one in individuals]
        for child in children:
            child[int(rng.integers(4))] = "ab"[int(rng.integers(2))]
        return children

    def cross(
        self, first: Sequence[list[str]], second: Sequence[list[str]], rng: np.random.Generator
    ) -> tuple[list[list[str]], list[list[str]]]:
        cuts = [int(rng.integers(5)) for _ in first]
        pairs = list(zip(first, second, cuts, strict=True))
        return [b[:cut] + a[cut:] for a, b, cut in pairs], [a[:cut] + b[cut:] for a, b, cut in pairs]

    def to_string(self, individual: list[str]) -> str:
        return "".join(individual)

    def to_strings(self, individuals: Sequence[list[str]]) -> list[str]:
        return [self.to_string(one) for one in individuals]

    def from_string(self, string: str) -> list[str]:
        if not self.contains(string):
            raise InputError(f"{string!r} is not in the space")
        return list(string)


class _Other(_Words):
    pass


class _Kindless(_Words):
    kind = "poem"


class _Repeating(_Words):
    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        return (2 * super().sample(max(n // 2, 1), rng))[:n]


class _Leaking(_Words):
    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        return [string + "a" if n > 1 else string for string in super().sample(n, rng)]


class _Stingy(_Words):
    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        return super().sample(min(n, 5), rng)


class _OwnDice(_Words):
    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        self.made += 1
        return super().sample(n, np.random.default_rng(self.made))


class _NoDice(_Words):
    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        return super().sample(n, np.random.default_rng(0))


class _SortedKeys(_Words):
    def keys_of(self, strings: Sequence[str]) -> list[str]:
        return sorted(super().keys_of(strings))


class _GrowingKeys(_Words):
    def key(self, string: str) -> str:
        return super().key(string) + "a"


class _CaseMatters(_Words):
    def contains(self, string: str) -> bool:
        return super().contains(string) and string == string.lower()


class _Blind:
    """Gives all strings of a length the same tokens."""

    def __init__(self) -> None:
        self.inner = Encoder(alphabet=Alphabet("ab"))

    def encode(self, strings: Sequence[str]) -> Any:
        return self.inner.encode(["a" * len(string) for string in strings])


class _BlindEncoder(_Words):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = _Blind()


class _Stumbles(_Words):
    def contains(self, string: str) -> bool:
        return super().contains(string) and string[0] in "abAB" if string else string[0] == "a"


class _TakesEverything(_Words):
    def key(self, string: str) -> str:
        return string.lower()


class _Boasts(_Words):
    def config(self) -> Config:
        return super().config() | {"letters": ("a", "b")}


class _Forgets(_Words):
    def config(self) -> Config:
        return {"type": _Other.config_name}


class _Counts(_Words):
    def config(self) -> Config:
        return super().config() | {"made": self.made}

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        self.made += 1
        return super().sample(n, rng)


class _Shrinks(_Words):
    """Is made again with fewer strings than it had."""

    def __init__(self, made_from: str = "hand") -> None:
        super().__init__()
        self.made_from = made_from

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        found = super().sample(n, rng)
        return found if self.made_from == "hand" else found[::-1]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> _Shrinks:
        return cls("config")

    def config_arguments(self) -> dict[str, Any]:
        return {}


class _Clings(_Words):
    def __reduce__(self) -> Any:
        raise TypeError("not to be copied")


class _Escapes(_Words):
    def mutate(self, individuals: Sequence[list[str]], rng: np.random.Generator) -> list[list[str]]:
        return [[*child, "a"] if rng.random() < 0.2 else child for child in super().mutate(individuals, rng)]


class _CrossesOut(_Words):
    def cross(self, first: Any, second: Any, rng: np.random.Generator) -> Any:
        return [a + b for a, b in zip(first, second, strict=True)], list(second)


class _ChangesParents(_Words):
    def mutate(self, individuals: Sequence[list[str]], rng: np.random.Generator) -> list[list[str]]:
        children = super().mutate(individuals, rng)
        for parent, child in zip(individuals, children, strict=True):
            parent[:] = child
        return children


class _OnlyChild(_Words):
    def cross(self, first: Any, second: Any, rng: np.random.Generator) -> Any:
        one, other = super().cross(first, second, rng)
        return one, other[:1]


class _Sterile(_Words):
    def mutate(self, individuals: Sequence[list[str]], rng: np.random.Generator) -> list[list[str]]:
        return [list(one) for one in individuals]


class _Backwards(_Words):
    def from_string(self, string: str) -> list[str]:
        return super().from_string(string)[::-1]


class _Welcoming(_Words):
    def from_string(self, string: str) -> list[str]:
        return list(string)


class _MovesWithOwnDice(_Words):
    def mutate(self, individuals: Sequence[list[str]], rng: np.random.Generator) -> list[list[str]]:
        self.made += 1
        return super().mutate(individuals, np.random.default_rng(self.made))


class _Motionless(_Words):
    """Has no moves."""

    cross = None
    mutate = None


class _TooFewIndividuals(_Words):
    def sample_individuals(self, n: int, rng: np.random.Generator) -> list[list[str]]:
        return super().sample_individuals(n, rng)[:5]


class _List(_Words):
    """A pool of three words; broken as a subclass says."""

    words = ("abab", "AAAA", "bbbb")

    @property
    def encoded(self) -> Any:
        return self.encoder.encode(list(self.keys))

    @property
    def keys(self) -> Sequence[str]:
        return [self.key(word) for word in self.words]

    def contains(self, string: str) -> bool:
        return string.lower() in self.keys

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        return [self.words[index] for index in rng.permutation(len(self.words))[:n].tolist()]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> str:
        return self.words[index]

    def index_of(self, string: str) -> int | None:
        return self.keys.index(string.lower()) if self.contains(string) else None


class _Unnumbered(_List):
    index_of = None  # type: ignore[assignment]


class _Misnumbered(_List):
    def index_of(self, string: str) -> int | None:
        return 0 if self.contains(string) else None


class _Endless(_List):
    def __getitem__(self, index: int) -> str:
        return self.words[index % 3]


class _Guesses(_List):
    def index_of(self, string: str) -> int | None:
        found = super().index_of(string)
        return 0 if found is None else found


class _Reordered(_List):
    @property
    def encoded(self) -> Any:
        return self.encoder.encode(list(self.keys)[::-1])


class _Half(_List):
    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        return super().sample(n, rng)[:2]


FIXTURES: dict[str, Callable[[], Any]] = {
    "bad_strings": lambda: ["a!"],
    "writings": lambda: [("abab", "ABab")],
    "other_space": _Other,
}
BROKEN: list[tuple[type, str]] = [
    (_Kindless, "it_is_a_space"),
    (_Repeating, "samples_are_distinct"),
    (_Leaking, "samples_are_distinct"),
    (_Stingy, "samples_are_as_large"),
    (_OwnDice, "the_generator_alone_decides_on_samples"),
    (_NoDice, "the_generator_alone_decides_on_samples"),
    (_SortedKeys, "keys_of_many"),
    (_GrowingKeys, "a_key_is_its_own_key"),
    (_CaseMatters, "writings_of_one_string"),
    (_BlindEncoder, "every_key_is_encoded"),
    (_Stumbles, "odd_strings"),
    (_TakesEverything, "bad_strings"),
    (_Boasts, "its_description"),
    (_Forgets, "its_description"),
    (_Counts, "its_description"),
    (_Shrinks, "its_config_makes"),
    (_Clings, "copies_hold"),
]
BROKEN_MOVES: list[tuple[type, str]] = [
    (_Motionless, "it_has_moves"),
    (_TooFewIndividuals, "individuals_are_strings"),
    (_Backwards, "undo_each_other"),
    (_Welcoming, "has_no_individual"),
    (_Escapes, "moves_stay"),
    (_CrossesOut, "moves_stay"),
    (_OnlyChild, "a_child_for_each_parent"),
    (_ChangesParents, "do_not_change_the_parents"),
    (_MovesWithOwnDice, "the_generator_alone_decides_on_moves"),
    (_Sterile, "mutations_change"),
]
BROKEN_POOLS: list[tuple[type, str]] = [
    (_Unnumbered, "it_is_a_pool"),
    (_Misnumbered, "belong_together"),
    (_Endless, "nothing_behind"),
    (_Guesses, "has_no_number"),
    (_Reordered, "the_encoded_candidates"),
    (_Half, "the_whole_pool"),
]
SUITES = [
    (SpaceConformance, BROKEN, _Words),
    (EvolvableSpaceConformance, BROKEN + BROKEN_MOVES, _Words),
    (PoolSpaceConformance, BROKEN_POOLS, _List),
]


@pytest.mark.parametrize(("suite", "broken", "sound"), SUITES)
def test_each_broken_space_fails_where_it_is_broken(
    suite: type, broken: list[tuple[type, str]], sound: type, failures: Callable[..., set[str]]
) -> None:
    assert failures(suite, space=sound, **FIXTURES) == set()
    caught: set[str] = set()
    for space, where in broken:
        failed = failures(suite, space=space, **FIXTURES)
        assert any(where in name for name in failed), (space, failed)
        caught |= failed
    assert caught >= {name for name in vars(suite) if name.startswith("test_")}


def test_who_forgets_the_fixture_is_told() -> None:
    with pytest.raises(NotImplementedError, match="override the fixture space"):
        SpaceConformance.space.__wrapped__(SpaceConformance())  # type: ignore[attr-defined]


def test_a_space_that_cannot_be_written_down_is_not_asked_for_it(failures: Callable[..., set[str]]) -> None:
    class Silent(_Words):
        picklable = False

        def __init__(self, accept: Callable[[str], bool] = str.islower) -> None:
            super().__init__()
            self.accept = accept

    assert not failures(SpaceConformance, space=Silent, **FIXTURES) - {"test_copies_hold_the_same_strings"}
    assert isinstance(Silent(), Space)
