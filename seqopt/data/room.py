"""How many measurements still fit where there are contexts of a limited size, such as plates of 96 wells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from seqopt.data.query import Context, Query


@dataclass(frozen=True)
class Room:
    """How many measurements still fit into each context.

    What is named is filled first: a further context is free only while no named one has any room left, and one
    further context is filled before the next.

    Attributes:
        left: How many more measurements fit, by context; 0 for one that is closed or full.
        further: How many fit into a context that is not named; 0 where there shall be no further one.

    Example:
        >>> p1, p2, p3 = ((("plate", name),) for name in ("P1", "P2", "P3"))
        >>> room = Room({p1: 1}, further=2)
        >>> room.is_free(p1), room.is_free(p2)
        (True, False)
        >>> full = [Query("CCO", p1)]
        >>> room.is_free(p1, full), room.is_free(p2, full)
        (False, True)
        >>> [room.at(place, lambda used: p2 if p2 not in used else p3)[0][1] for place in range(4)]
        ['P1', 'P2', 'P2', 'P3']
    """

    left: Mapping[Context, int]
    further: int = 0

    def size(self, context: Context) -> int:
        """How many fit into a context."""
        return self.left.get(context, self.further)

    def is_free(self, context: Context, taken: Iterable[Query] = ()) -> bool:
        """Whether one more fits into a context.

        Args:
            context: The context.
            taken: What was chosen for this batch already.
        """
        used = Counter(query.context for query in taken)
        if used[context] >= self.size(context):
            return False
        if context in self.left or used[context]:
            return True
        return all(used[one] >= self.size(one) for one in (*self.left, *used))

    def after(self, taken: Iterable[Query]) -> Room:
        """What is left after some measurements were chosen."""
        used = Counter(query.context for query in taken)
        named = dict.fromkeys([*self.left, *used])
        return Room({one: max(self.size(one) - used[one], 0) for one in named}, self.further)

    def at(self, place: int, fresh: Callable[[Sequence[Context]], Context]) -> Context | None:
        """Where one measurement of a batch is made if all contexts are filled in turn; `None` where nothing fits.

        Args:
            place: Which one of the batch it is.
            fresh: From the contexts there are to another one.
        """
        for context, size in self.left.items():
            if place < size:
                return context
            place -= size
        if self.further <= 0:
            return None
        used = list(self.left)
        for _ in range(place // self.further + 1):
            used.append(fresh(used))
        return used[-1]
