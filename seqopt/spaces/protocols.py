"""What a space of allowed strings offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.encoding import EncodedStrings, Encoder

Individual = TypeVar("Individual")


@runtime_checkable
class Space(Protocol):
    """A set of allowed strings.

    What a run or a campaign keeps of its space is `seqopt.utils.config.described`. A space whose class inherits
    `seqopt.utils.config.Configurable` is made again from that; others have to be given again.

    Attributes:
        kind: What the strings are: ``"molecule"``, ``"protein"``, ``"dna"``, ``"rna"`` or ``"text"``.
        encoder: Turns keys into tokens, with one alphabet for the whole space.
    """

    kind: str
    encoder: Encoder

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` distinct random strings, fewer only if the space holds fewer."""
        ...

    def contains(self, string: str) -> bool:
        """Whether the space allows ``string``."""
        ...

    def key(self, string: str) -> str:
        """The identity of ``string``: two writings of one molecule share a key. Models see keys.

        Raises:
            InputError: If ``string`` is not a valid string of this kind.
        """
        ...

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        """The keys of many strings, in their order: what `key` gives for each.

        Raises:
            InputError: If one of them is not a valid string of this kind; the message names it.
        """
        ...


@runtime_checkable
class PoolSpace(Space, Protocol):
    """A space that is a finite list: numbered, encoded once, scored in blocks."""

    if TYPE_CHECKING:
        # `isinstance` looks at every attribute that is there when the program runs, and would encode the pool.
        @property
        def encoded(self) -> EncodedStrings:
            """All keys, encoded, in the order of the pool."""
            ...

    @property
    def keys(self) -> Sequence[str]:
        """Keys of all candidates, in the order of the pool."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> str:
        """The string at ``index``, as its owner wrote it."""
        ...

    def index_of(self, string: str) -> int | None:
        """Position of the candidate with the same key, or `None`."""
        ...


@runtime_checkable
class RestrictedSpace(Space, Protocol):
    """A space that leaves out some of the strings that it can read: genes with a motif, variants with many mutations.

    What was measured of such a string teaches a model as much as any other; it is only not suggested.
    """

    def left_out(self, string: str) -> str | None:
        """Why a string is left out that the space can read; `None` if it is in the space.

        Raises:
            InputError: If the space cannot read it; the message says why.
        """
        ...

    def near_left_out(self, string: str, n: int, rng: np.random.Generator) -> list[str]:
        """Up to ``n`` distinct strings of the space that differ little from one that is left out."""
        ...


def left_out(space: Space, string: str) -> str | None:
    """Why a space leaves out a string from which a model of its strings can learn; `None` if it does not.

    Args:
        space: The space.
        string: A string that was measured, or of which something is to be predicted.

    Raises:
        InputError: If it is not a string of the space, such as a gene of another protein; the message says why.

    Example:
        >>> from seqopt.spaces import CodonSpace
        >>> left_out(CodonSpace("EF", forbidden=["GAATTC"]), "GAATTC")
        "it holds 'GAATTC' at base 1"
        >>> left_out(CodonSpace("EF", forbidden=["GAATTC"]), "GAGTTC")
    """
    if isinstance(space, RestrictedSpace):
        return space.left_out(string)
    if isinstance(space, EvolvableSpace):
        space.from_string(string)
    return None


def keys_at(pool: PoolSpace, indices: npt.NDArray[np.int64] | None = None) -> Sequence[str]:
    """Keys of the candidates at ``indices``, or of all: without an object for each, where the pool can do without.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> keys_at(CandidateSet(["A", "B", "C"], kind="text"), np.array([2, 0]))
        ['C', 'A']
    """
    if indices is None:
        return pool.keys
    take = getattr(pool.keys, "take", None)
    if take is not None:
        chosen: Sequence[str] = take(indices)
        return chosen
    return [pool.keys[int(index)] for index in indices]


@runtime_checkable
class EvolvableSpace(Space, Protocol[Individual]):
    """A space whose strings can be mutated and crossed.

    Moves work on *individuals*: a str, a parse tree. A search keeps individuals from one generation to the next, so
    that a tree is parsed once; strings are made from them to be scored. Every move takes a whole population and
    returns individuals of the space.
    """

    def sample_individuals(self, n: int, rng: np.random.Generator) -> list[Individual]:
        """``n`` random individuals, not necessarily distinct."""
        ...

    def mutate(self, individuals: Sequence[Individual], rng: np.random.Generator) -> list[Individual]:
        """Each individual changed once at random. Where no change is possible it is returned as it was."""
        ...

    def cross(
        self, first: Sequence[Individual], second: Sequence[Individual], rng: np.random.Generator
    ) -> tuple[list[Individual], list[Individual]]:
        """Two children of each pair of parents, in two lists as long as ``first``."""
        ...

    def to_string(self, individual: Individual) -> str:
        """The string that an individual stands for."""
        ...

    def to_strings(self, individuals: Sequence[Individual]) -> list[str]:
        """The strings of many individuals, in their order."""
        ...

    def from_string(self, string: str) -> Individual:
        """The individual of ``string``.

        Raises:
            InputError: If ``string`` is not in the space; the message says why.
        """
        ...
