"""All products of reactions and building blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.spaces.combinatorial.blocks import NAMED, Block, BuildingBlocks, read_blocks
from seqopt.spaces.combinatorial.products import Component, Individual, Products, components_of, tuples_of
from seqopt.spaces.combinatorial.reactions import Reaction, checked_reactions, read_reactions
from seqopt.spaces.combinatorial.survey import places
from seqopt.strings.identity import canonical_smiles, quoted, required_keys
from seqopt.utils.array_files import Array
from seqopt.utils.config import Config, Configurable, from_config

KEPT = 5_000
"""Building blocks up to which a description holds them all; of more it holds the files and their checksums."""

DRAWS = 50
"""Times that random tuples are drawn again in place of those whose products are refused, at least."""

LISTED = 20_000
"""Tuples up to which all are looked at where random ones are refused."""

Tuples = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Route:
    """How a product is made.

    Attributes:
        reaction: Name of the reaction.
        blocks: Its building blocks, in the order of the components.
        price: Sum of the blocks' prices; `None` if one is not known.
    """

    reaction: str
    blocks: tuple[Block, ...]
    price: float | None

    @property
    def names(self) -> str:
        """Names of the blocks, with plus signs between them."""
        return " + ".join(block.name for block in self.blocks)

    def __str__(self) -> str:
        return f"{self.reaction}: {self.names}"


class CombinatorialSpace(Configurable):
    """Products of reactions and building blocks, such as make-on-demand libraries, which are too many to be listed.

    A string is the SMILES of a product; an individual is a tuple, the number of a reaction followed by those of its
    building blocks. Products are made by RDKit when they are asked for, and the tuple of a product is found again from
    its SMILES alone (`route`). Different tuples may give one product; it counts once wherever strings are compared.

    A block takes the place of a component if it matches its template, at one place or at several that are equivalent by
    symmetry. Blocks that match at several different places are left out, since it is not clear what they give.
    `problems` names both, with file and line. A reaction that has a component without blocks is left out where others
    remain.

    *Sampling* draws a reaction in proportion to its number of tuples, and the blocks of each component in random order,
    so that none comes twice before all have come. *Mutation* replaces one block by another of its component.
    *Crossover* of two tuples of one reaction swaps each block with probability 1/2; tuples of different reactions are
    left as they are.

    Args:
        reactions: A file (`read_reactions`), or reactions, as `Reaction` or as SMARTS.
        reagents: A folder or files (`read_blocks`), what `read_blocks` returned, or for each set of blocks its name and
            SMILES.
        accept: Keeps only products, as canonical SMILES, for which this predicate holds.

    Raises:
        InputError: If no reaction can be used; the message says why for each.

    Example:
        >>> space = CombinatorialSpace(
        ...     ["[C:1](=O)[OH].[N;H2:2]>>[C:1](=O)[N:2]"],
        ...     {"acids": ["CC(=O)O", "OC(=O)c1ccccc1"], "amines": ["CN", "CCN", "NC1CC1"]},
        ... )
        >>> space.size, space.key("C(=O)(C)NC"), str(space.route("CNC(C)=O"))
        (6, 'CNC(C)=O', 'reaction1: CC(=O)O + CN')
        >>> space.contains("CCO")
        False
    """

    kind = "molecule"

    def __init__(
        self,
        reactions: str | os.PathLike[str] | Sequence[Reaction | str],
        reagents: str
        | os.PathLike[str]
        | BuildingBlocks
        | Mapping[str, Iterable[str]]
        | Sequence[str | os.PathLike[str]],
        accept: Callable[[str], bool] | None = None,
    ) -> None:
        given, problems = _reactions(reactions)
        self.reagents = _reagents(reagents)
        self.accept = accept
        self.encoder = Encoder("smiles-split")
        used, components = [], []
        found = places(given, [block.key for block in self.reagents.blocks])
        for reaction, where in zip(given, found, strict=True):
            try:
                components.append(_components(reaction, self.reagents, where))
            except InputError as error:
                problems.append(str(error))
                continue
            used.append(reaction)
        if not used:
            raise InputError(f"no reaction can be used: {'; '.join(problems)}")
        self.reactions = tuple(used)
        self._components: tuple[tuple[Component, ...], ...] = tuple(components)
        self._problems = problems
        self._made = Products(self.reactions, self.reagents.blocks, self._components)
        self._sizes = [tuples_of(one) for one in self._components]

    @property
    def size(self) -> int:
        """Number of tuples: exact, however large; products that are refused or made in several ways are counted."""
        return sum(self._sizes)

    @property
    def slots(self) -> int:
        """Largest number of components of a reaction."""
        return max(map(len, self._components))

    def components(self, reaction: int) -> int:
        """Number of components of a reaction."""
        return len(self._components[reaction])

    def component(self, reaction: int, slot: int) -> npt.NDArray[np.int64]:
        """Numbers of the blocks that can take the place of a component."""
        return self._components[reaction][slot].numbers

    @cached_property
    def problems(self) -> list[str]:
        """What is left out: reactions that cannot be used, rows of files, blocks that cannot react."""
        found = [*self._problems, *self.reagents.lines()[1:]]
        for reaction, components in zip(self.reactions, self._components, strict=True):
            for slot, one in enumerate(components, 1):
                where = f"{reaction.name}, component {slot}"
                # Of a set that is not meant for a component, most do not match.
                if reaction.reagents and reaction.reagents[slot - 1] and len(one.without):
                    found.append(f"{where}: {_blocks(len(one.without))} cannot react: {self._listed(one.without)}")
                if len(one.several):
                    found.append(f"{where}: {_several(len(one.several))} left out: {self._listed(one.several)}")
        unused = self.unused
        if len(unused):
            found.append(f"{len(unused):,} blocks take part in no reaction: {self._listed(unused)}")
        return found

    @property
    def unused(self) -> npt.NDArray[np.int64]:
        """Numbers of the blocks that take part in no reaction."""
        taken = [one.numbers for components in self._components for one in components]
        return np.setdiff1d(np.arange(len(self.reagents)), np.concatenate(taken))

    @property
    def failed(self) -> dict[str, str]:
        """Tuples whose product RDKit could not make so far, as routes, and why."""
        return {str(self.route_of(one)): why for one, why in self._made.failed.items()}

    def lines(self) -> list[str]:
        """What the space holds, and what was left out."""
        parts = ", ".join(
            f"{reaction.name} {' x '.join(f'{len(one.numbers):,}' for one in components)}"
            for reaction, components in zip(self.reactions, self._components, strict=True)
        )
        return [f"{self.size:,} tuples of {len(self.reagents):,} building blocks ({parts})", *self.problems]

    def _listed(self, numbers: npt.NDArray[np.int64]) -> str:
        blocks = [self.reagents.blocks[int(number)] for number in numbers[:NAMED]]
        named = ", ".join(f"{block.name} ({block.where})" for block in blocks)
        return named + (f", and {len(numbers) - NAMED:,} more" if len(numbers) > NAMED else "")

    # -- strings ------------------------------------------------------------------------------------------------

    def key(self, string: str) -> str:
        """Canonical SMILES of a molecule, which need not be a product.

        Raises:
            InputError: If ``string`` is not a molecule.
        """
        return required_keys([string], "molecule")[0]

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        """The keys of many strings.

        Raises:
            InputError: If one is not a molecule; the message names it.
        """
        return required_keys(strings, "molecule")

    def contains(self, string: str) -> bool:
        """Whether ``string`` is a product that ``accept`` allows."""
        key = canonical_smiles(string.strip())
        return key is not None and self.makes(key) and self._accepted(key)

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` distinct products that ``accept`` allows, fewer only if there are fewer.

        Blocks are dealt like cards: none comes twice in a component before all have come.

        Raises:
            InputError: If next to no product is allowed.
        """
        if n <= 0:
            return []
        chosen: dict[str, None] = {}
        for _ in range(DRAWS if 2 * n < self.size else 0):
            for key in self._keys(self.dealt(n - len(chosen), rng)):
                if key is not None and self._accepted(key):
                    chosen.setdefault(key)
            if len(chosen) >= n:
                return list(chosen)[:n]
        if self.size <= max(LISTED, 2 * n):
            # What is left is rare, or nearly all are wanted.
            for key in self._keys(self._tuples(rng.permutation(self.size))):
                if len(chosen) < n and key is not None and self._accepted(key):
                    chosen.setdefault(key)
            return list(chosen)
        if chosen:
            return list(chosen)
        raise InputError(
            f"none of {DRAWS * n:,} random products can be made and is accepted: loosen accept, or check the reactions"
        )

    # -- individuals --------------------------------------------------------------------------------------------

    def sample_individuals(self, n: int, rng: np.random.Generator) -> list[Individual]:
        """``n`` random tuples whose products are allowed, not necessarily distinct."""
        found: list[Individual] = []
        for _ in range(DRAWS):
            for one in self.dealt(n - len(found), rng):
                if self.allows(one):
                    found.append(one)
            if len(found) >= n:
                return found
        keys = self.sample(n, rng)
        if not keys:
            raise InputError("no product can be made and is accepted")
        return [self.from_string(keys[int(index)]) for index in rng.integers(len(keys), size=n)]

    def mutate(self, individuals: Sequence[Individual], rng: np.random.Generator) -> list[Individual]:
        """Each tuple with one block replaced by another of its component, drawn uniformly."""
        return [self._mutated(one, rng) for one in individuals]

    def cross(
        self, first: Sequence[Individual], second: Sequence[Individual], rng: np.random.Generator
    ) -> tuple[list[Individual], list[Individual]]:
        """Two children of each pair: every block swapped with probability 1/2 where both are of one reaction."""
        pairs = [self._crossed(one, other, rng) for one, other in zip(first, second, strict=True)]
        return [one for one, _ in pairs], [other for _, other in pairs]

    def to_string(self, individual: Individual) -> str:
        """SMILES of the product.

        Raises:
            InputError: If it cannot be made.
        """
        key = self._made.key(tuple(individual))
        if key is None:
            raise InputError(f"{self.route_of(individual)} gives no product: {self._made.failed[tuple(individual)]}")
        return key

    def to_strings(self, individuals: Sequence[Individual]) -> list[str]:
        """SMILES of the products."""
        return [self.to_string(one) for one in individuals]

    def from_string(self, string: str) -> Individual:
        """The tuple of a product.

        Raises:
            InputError: If ``string`` is not a molecule, not a product, or not accepted.
        """
        key = self.key(string)
        found = self._made.individual(key)
        if found is None:
            raise InputError(
                f"{quoted(string)} is not a product of {', '.join(one.name for one in self.reactions)} and these "
                "building blocks"
            )
        if not self._accepted(key):
            raise InputError(f"{quoted(string)} is a product that is not accepted")
        return found

    def tuple_of(self, key: str) -> Individual | None:
        """A tuple whose product has this key, accepted or not; `None` if there is none."""
        return self._made.individual(key)

    def makes(self, key: str) -> bool:
        """Whether this is the key of a product, accepted or not."""
        return self._made.makes(key)

    def rows_of(self, keys: Sequence[str]) -> Tuples:
        """Tuples of products as rows, n x (1 + S): the reaction, then the blocks; -1 where a reaction takes fewer.

        Raises:
            InputError: If a key is not that of a product.
        """
        found = np.full((len(keys), 1 + self.slots), -1, dtype=np.int64)
        for row, key in zip(found, keys, strict=True):
            individual = self._made.individual(key)
            if individual is None:
                raise InputError(f"{quoted(key)} is not a product of this space")
            row[: len(individual)] = individual
        return found

    def allows(self, individual: Individual) -> bool:
        """Whether the product of a tuple can be made and is accepted."""
        key = self._made.key(tuple(individual))
        return key is not None and self._accepted(key)

    def product(self, individual: Individual) -> str | None:
        """SMILES of the product of a tuple; `None` if it cannot be made or is not accepted."""
        key = self._made.key(tuple(individual))
        return key if key is not None and self._accepted(key) else None

    def route(self, string: str) -> Route:
        """How a product is made.

        Raises:
            InputError: If ``string`` is not one.
        """
        found = self._made.individual(self.key(string))
        if found is None:
            raise InputError(f"{quoted(string)} is not a product of this space")
        return self.route_of(found)

    def route_of(self, individual: Individual) -> Route:
        """How the product of a tuple is made."""
        reaction, *numbers = individual
        blocks = tuple(self.reagents.blocks[number] for number in numbers)
        prices = [block.price for block in blocks]
        price = None if any(one is None for one in prices) else float(sum(one for one in prices if one is not None))
        return Route(self.reactions[reaction].name, blocks, price)

    # -- descriptions -------------------------------------------------------------------------------------------

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`: the reactions, and the blocks or their files with checksums."""
        files = [list(one) for one in self.reagents.files]
        blocks = self.reagents.to_json() if not files or len(self.reagents) <= KEPT else None
        return {
            "reactions": [[one.name, one.smarts, list(one.reagents), one.where] for one in self.reactions],
            "reagents": {"files": files, "blocks": blocks},
            "accept": self.accept,
        }

    def config(self) -> Config:
        """See `seqopt.utils.config.Configurable`; readers of a description see what the strings are."""
        return super().config() | {"kind": self.kind}

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | Config) -> Self:
        """The space that a description says: of the blocks that it holds, or of files that have not changed.

        Raises:
            InputError: If a file is missing or has changed.
        """
        reactions = [
            Reaction(str(name), str(smarts), tuple(sets), str(where))
            for name, smarts, sets, where in from_config(config["reactions"])
        ]
        kept = from_config(config["reagents"])
        if kept["blocks"] is not None:
            blocks = BuildingBlocks.from_json(kept["blocks"], kept["files"])
        else:
            blocks = read_blocks([path for path, _ in kept["files"]])
            for (path, sha256), (_, now) in zip(kept["files"], blocks.files, strict=True):
                if sha256 != now:
                    raise InputError(f"the building blocks in {path} have changed since the search began: restore them")
        return cls(reactions, blocks, from_config(config.get("accept")))

    def __repr__(self) -> str:
        names = ", ".join(one.name for one in self.reactions)
        return f"CombinatorialSpace({names}: {self.size:,} tuples of {len(self.reagents):,} building blocks)"

    # -- helpers ------------------------------------------------------------------------------------------------

    def _accepted(self, key: str) -> bool:
        return self.accept is None or bool(self.accept(key))

    def _keys(self, individuals: Iterable[Individual]) -> Iterable[str | None]:
        return (self._made.key(one) for one in individuals)

    def _tuples(self, ranks: npt.NDArray[np.int64]) -> Iterable[Individual]:
        """Tuples by their numbers in the order of the reactions and components."""
        starts = np.cumsum([0, *self._sizes])
        for rank in ranks.tolist():
            reaction = int(np.searchsorted(starts, rank, side="right")) - 1
            left = rank - int(starts[reaction])
            numbers = []
            for one in reversed(self._components[reaction]):
                left, place = divmod(left, len(one.numbers))
                numbers.append(int(one.numbers[place]))
            yield (reaction, *reversed(numbers))

    def dealt(self, n: int, rng: np.random.Generator) -> list[Individual]:
        """``n`` random tuples, whatever their products are; blocks of a component come in random order, and again when
        all have come.
        """
        if n <= 0:
            return []
        weights = np.array([float(size) for size in self._sizes])
        drawn = rng.choice(len(self._sizes), size=n, p=weights / weights.sum())
        found: list[Individual] = [()] * n
        for reaction, components in enumerate(self._components):
            places = np.flatnonzero(drawn == reaction)
            columns = [_dealt(one.numbers, len(places), rng) for one in components]
            for index, place in enumerate(places.tolist()):
                found[place] = (reaction, *(int(column[index]) for column in columns))
        return found

    def _mutated(self, individual: Individual, rng: np.random.Generator) -> Individual:
        reaction, *numbers = individual
        components = self._components[reaction]
        free = [slot for slot, one in enumerate(components) if len(one.numbers) > 1]
        for _ in range(DRAWS if free else 0):
            slot = free[int(rng.integers(len(free)))]
            number = int(components[slot].numbers[rng.integers(len(components[slot].numbers))])
            changed = (reaction, *numbers[:slot], number, *numbers[slot + 1 :])
            if number != numbers[slot] and self.allows(changed):
                return changed
        return individual

    def _crossed(
        self, first: Individual, second: Individual, rng: np.random.Generator
    ) -> tuple[Individual, Individual]:
        swaps = rng.random(len(first) - 1) < 0.5
        if first[0] != second[0]:
            return first, second
        one = (first[0], *(b if swap else a for a, b, swap in zip(first[1:], second[1:], swaps, strict=True)))
        other = (first[0], *(a if swap else b for a, b, swap in zip(first[1:], second[1:], swaps, strict=True)))
        return (one if self.allows(one) else first), (other if self.allows(other) else second)


def _dealt(numbers: npt.NDArray[np.int64], n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    rounds = [rng.permutation(numbers) for _ in range(-(-n // max(len(numbers), 1)))]
    return np.concatenate(rounds)[:n] if rounds else np.zeros(0, dtype=np.int64)


def _reactions(given: str | os.PathLike[str] | Sequence[Reaction | str]) -> tuple[list[Reaction], list[str]]:
    if isinstance(given, str) and ">>" in given:
        given = [given]
    if isinstance(given, str | os.PathLike):
        return read_reactions(given)
    named = [
        one if isinstance(one, Reaction) else Reaction(f"reaction{number}", str(one))
        for number, one in enumerate(given, 1)
    ]
    if not named:
        raise InputError("no reactions: give at least one")
    found, problems = checked_reactions(named)
    if not found:
        raise InputError(f"no reaction can be used: {'; '.join(problems)}")
    return found, problems


def _reagents(given: Any) -> BuildingBlocks:
    if isinstance(given, BuildingBlocks):
        return given
    if isinstance(given, Mapping):
        found = BuildingBlocks(())
        for name, strings in given.items():
            found = found.joined(BuildingBlocks.of(strings, str(name)))
        if not found.blocks:
            raise InputError("no building blocks: give SMILES for each set")
        return found
    return read_blocks(given)


def _components(reaction: Reaction, reagents: BuildingBlocks, places: Array) -> tuple[Component, ...]:
    """The blocks of each component.

    Raises:
        InputError: If a component has none, or names a set that there is not.
    """
    parsed, sets = reaction.parsed(), []
    sources = np.array([one.source for one in reagents.blocks])
    place = f" ({reaction.where})" if reaction.where else ""
    for slot in range(reaction.components):
        wanted = reaction.reagents[slot] if reaction.reagents else ""
        names = [name.strip() for name in wanted.split("|") if name.strip()]
        unknown = [name for name in names if name not in reagents.sources]
        if unknown:
            raise InputError(
                f"the reaction {reaction.name!r}{place} takes component {slot + 1} from {unknown[0]!r}, and there is "
                f"no such set of building blocks; there are {', '.join(reagents.sources)}"
            )
        sets.append(np.flatnonzero(np.isin(sources, names)) if names else np.arange(len(sources)))
    found = components_of(places, sets)
    for slot, one in enumerate(found):
        if not len(one.numbers):
            several = f", and {len(one.several):,} at several places" if len(one.several) else ""
            raise InputError(
                f"the reaction {reaction.name!r}{place} has no reagents for component {slot + 1}: none of "
                f"{len(sets[slot]):,} building blocks matches {_smarts(parsed, slot)} at one place{several}"
            )
    return tuple(found)


def _smarts(parsed: Any, slot: int) -> str:
    from rdkit import Chem

    return str(Chem.MolToSmarts(parsed.GetReactantTemplate(slot)))


def _several(count: int) -> str:
    if count == 1:
        return "1 block matches at several places and is"
    return f"{count:,} blocks match at several places and are"


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count:,} blocks"
