"""What density ratios are compared with: regularised evolution, and TPE as Optuna has it.

Both evaluate a configuration again if they come to it again, and are charged for it.

References:
    Real, E. et al. (2019). Regularized evolution for image classifier architecture search. AAAI.
    Bergstra, J. et al. (2011). Algorithms for hyper-parameter optimization. NeurIPS 24 (TPE).
    Akiba, T. et al. (2019). Optuna: a next-generation hyperparameter optimization framework. KDD.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from seqopt.errors import InputError

POPULATION, TOURNAMENT = 100, 10
"""Of regularised evolution: how many are kept, and how many are drawn for a parent."""


def evolution(
    choices: Sequence[str],
    initial: Sequence[str],
    budget: int,
    value: Callable[[str], float],
    rng: np.random.Generator,
    *,
    population: int = POPULATION,
    tournament: int = TOURNAMENT,
) -> list[str]:
    """Regularised evolution, which minimises: the oldest of the population dies, however good it is.

    The first ``population`` strings are random. From then on the best of ``tournament`` members, drawn with
    replacement, is changed at one position to another symbol; its child joins, and the oldest member leaves.

    Args:
        choices: The symbols of each position.
        initial: The first strings.
        budget: Strings in all.
        value: What is minimised.
        rng: Of all draws.
        population: Members.
        tournament: Members drawn for a parent.

    Returns:
        The strings in the order of evaluation.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> found = evolution(["AB"] * 8, [], 60, lambda string: string.count("A"), rng, population=10, tournament=4)
        >>> len(found), min(string.count("A") for string in found)
        (60, 0)
    """
    found: list[str] = []
    members: deque[tuple[float, str]] = deque(maxlen=population)
    mutable = [place for place, symbols in enumerate(choices) if len(symbols) > 1]
    while len(found) < budget:
        if len(found) < len(initial):
            string = initial[len(found)]
        elif len(found) < population:
            string = "".join(symbols[int(rng.integers(len(symbols)))] for symbols in choices)
        else:
            drawn = [members[int(index)] for index in rng.integers(len(members), size=tournament)]
            parent = min(drawn, key=lambda member: member[0])[1]
            place = mutable[int(rng.integers(len(mutable)))]
            others = choices[place].replace(parent[place], "")
            string = parent[:place] + others[int(rng.integers(len(others)))] + parent[place + 1 :]
        found.append(string)
        members.append((value(string), string))  # the oldest falls out at the other end
    return found


def tpe(
    choices: Sequence[str],
    initial: Sequence[str],
    budget: int,
    value: Callable[[str], float],
    rng: np.random.Generator,
) -> list[str]:
    """The tree-structured Parzen estimator of Optuna with its defaults, which minimises; every position is categorical.

    Its threshold is that of the best tenth, of 25 strings at most, and not that of the best third.

    Args:
        choices: The symbols of each position.
        initial: The first strings.
        budget: Strings in all.
        value: What is minimised.
        rng: Of all draws.

    Returns:
        The strings in the order of evaluation.

    Raises:
        InputError: If Optuna is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise InputError(
            "optuna is not installed, which this method is: pip install 'seqopt[bench]', or leave it out by --methods"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = [f"position {number:02d}" for number in range(1, len(choices) + 1)]
    sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)))
    study = optuna.create_study(sampler=sampler)
    for string in initial:
        study.enqueue_trial(dict(zip(names, string, strict=True)))
    found: list[str] = []
    while len(found) < budget:
        trial = study.ask()
        symbols = [trial.suggest_categorical(name, list(own)) for name, own in zip(names, choices, strict=True)]
        string = "".join(map(str, symbols))
        found.append(string)
        study.tell(trial, value(string))
    return found
