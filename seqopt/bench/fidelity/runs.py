"""One run: measurements are bought until the budget is spent, or nothing is left to be learned of the search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seqopt.bench.fidelity.measures import HALF, TOP, costs_of
from seqopt.bench.fidelity.methods import METHODS, Method, arguments_of
from seqopt.bench.fidelity.tasks import CHEAP, TARGET, TASKS, VARIABLE, Candidates, Task
from seqopt.data import Query, as_context
from seqopt.data.replay import top_of

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet

Bought = tuple[int, str]
"""The index of a candidate, and the level at which it was measured."""


@dataclass(frozen=True)
class Job:
    """One run."""

    task: str
    method: str
    seed: int


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: what was measured, in its order, by the index of the candidate and the level."""
    import torch

    torch.set_num_threads(1)
    task, method = TASKS[job.task], METHODS[job.method]
    candidates = task.candidates(job.seed)
    started = time.perf_counter()
    bought, hyperparameters = search(task, method, candidates, job.seed)
    return {
        "job": asdict(job),
        "bought": [[index, int(level == TARGET)] for index, level in bought],
        "seconds": round(time.perf_counter() - started, 2),
        "hyperparameters": {name: round(value, 5) for name, value in hyperparameters.items()},
    }


def search(task: Task, method: Method, candidates: Candidates, seed: int) -> tuple[list[Bought], dict[str, float]]:
    """What a method buys, and the last parameters of its model."""
    good, best = (top_of(candidates.target, count, maximize=task.maximize) for count in (TOP, 1))
    bought: list[Bought] = []
    parameters: dict[str, float] = {}
    chosen = _chooser(task, method, candidates, seed, parameters)
    spent, found = 0.0, set[int]()
    for one in chosen:
        spent += costs_of(task, [one], known=method.known)[0]
        # What the budget does not cover is not measured; sums of tenths are not exact.
        if spent > task.budget + 1e-9:
            break
        bought.append(one)
        index, level = one
        if level == TARGET and good[index]:
            found.add(index)
        if len(found) >= HALF and any(best[index] for index in found):
            break
    return bought, parameters


def _chooser(
    task: Task, method: Method, candidates: Candidates, seed: int, parameters: dict[str, float]
) -> Iterator[Bought]:
    if method.kind == "random":
        order = np.random.default_rng([seed, 1]).permutation(len(candidates.space))
        return ((index, TARGET) for index in order.tolist())
    if method.kind == "column":
        return _column_first(task, candidates, seed, paid=not method.known)
    return _modelled(task, method, candidates, seed, parameters)


def _column_first(task: Task, candidates: Candidates, seed: int, *, paid: bool) -> Iterator[Bought]:
    if paid:
        yield from ((index, CHEAP) for index in range(len(candidates.space)))
    # Candidates of equal cheap values come in random order.
    drawn = np.random.default_rng([seed, 4]).permutation(len(candidates.space))
    values = candidates.cheap * (-1.0 if task.maximize else 1.0)
    yield from ((index, TARGET) for index in drawn[np.argsort(values[drawn], kind="stable")].tolist())


def _modelled(
    task: Task, method: Method, candidates: Candidates, seed: int, parameters: dict[str, float]
) -> Iterator[Bought]:
    from seqopt.optimizer import Optimizer

    space, multi = candidates.space, method.kind == "multi"
    chosen = arguments_of(method, task, candidates)
    first = task.beginning(seed, len(space), cheap=multi)[: method.initial]
    # Searches of several contexts have no transform either.
    optimizer = Optimizer(
        space,
        direction=task.direction,
        transform=None,
        initial=len(first),
        batch_size=method.batch,
        seed=seed,
        **chosen,
    )
    asked: Callable[[Bought], Any] = lambda one: (  # noqa: E731
        Query(space.keys[one[0]], as_context({VARIABLE: one[1]})) if multi else space.keys[one[0]]
    )
    optimizer.tell([asked(one) for one in first], [float(candidates.values(level)[index]) for index, level in first])
    yield from first
    while len(optimizer.observations) < len(space) * (2 if multi else 1):
        queries = optimizer.ask().queries
        parameters |= optimizer.hyperparameters
        found = [(_index(space, query.key), str(query.get(VARIABLE) or TARGET)) for query in queries]
        # Of a batch, the cheap ones come first, as they would in a laboratory.
        found.sort(key=lambda one: one[1] == TARGET)
        yield from found
        optimizer.tell(
            [asked(one) for one in found], [float(candidates.values(level)[index]) for index, level in found]
        )


def _index(space: CandidateSet, key: str) -> int:
    index = space.index_of(key)
    assert index is not None  # what is asked for is a candidate
    return index
