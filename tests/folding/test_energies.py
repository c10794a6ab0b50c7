"""The arrays of energies say what ViennaRNA says."""

from __future__ import annotations

import numpy as np
import pytest
import RNA

from seqopt.folding.energies import BASES, LARGEST_LOOP, ORDINARY, PER_VIENNA, energies, model


@pytest.mark.parametrize("temperature", [37.0, 52.0])
def test_interior_loops_are_those_of_viennarna(temperature):
    ours = energies(60, temperature)
    parameters = RNA.param(model(temperature))
    rng = np.random.default_rng(1)
    for left in range(LARGEST_LOOP + 1):
        for right in range(LARGEST_LOOP + 1 - left):
            for _ in range(4):
                outer, inner = (int(number) for number in rng.integers(1, 7, size=2))
                c, d, e, f = (int(base) for base in rng.integers(1, 5, size=4))
                # One base alone on its side is a neighbour of both pairs.
                e = c if left == 1 else e
                f = d if right == 1 else f
                wanted = RNA.E_IntLoop(left, right, outer, inner, c, d, e, f, parameters)
                size = left + right
                if size == 0:
                    found = ours.stack[outer, inner]
                elif 0 in (left, right):
                    found = ours.bulge[size]
                    ends = ours.terminal[outer] + ours.terminal[inner]
                    found += ours.stack[outer, inner] if size == 1 else ends
                elif (left, right) == (1, 1):
                    found = ours.one_one[outer, inner, c, d]
                elif (left, right) == (1, 2):
                    found = ours.one_two[outer, inner, c, d, f]
                elif (left, right) == (2, 1):
                    found = ours.two_one[outer, inner, c, e, d]
                elif (left, right) == (2, 2):
                    found = ours.two_two[outer, inner, c, e, d, f]
                else:
                    kind = 1 if 1 in (left, right) else 2 if size == 5 else 0
                    found = ours.interior[left, right]
                    found += ours.mismatch[kind, outer, c, d] + ours.mismatch[kind, inner, f, e]
                assert found == wanted * PER_VIENNA, (left, right)


@pytest.mark.parametrize("temperature", [37.0, 20.0])
def test_hairpins_are_those_of_viennarna(temperature):
    ours = energies(80, temperature)
    parameters = RNA.param(model(temperature))
    rng = np.random.default_rng(2)
    special = [
        name for names in (parameters.Triloops, parameters.Tetraloops, parameters.Hexaloops) for name in names.split()
    ]
    random = ["".join(rng.choice(list(BASES), size=size + 2).tolist()) for size in range(3, 80) for _ in range(6)]
    for loop in [*special, *random]:
        numbers = [BASES.index(base) + 1 for base in loop]
        pair = int(ours.pair[numbers[0], numbers[-1]])
        if pair == 0:
            continue
        size = len(loop) - 2
        wanted = RNA.E_Hairpin(size, pair, numbers[1], numbers[-2], loop, parameters)
        name = sum(4 ** (len(loop) - 1 - place) * (number - 1) for place, number in enumerate(numbers))
        tables = {3: ours.triloops, 4: ours.tetraloops, 6: ours.hexaloops}
        found = tables[size][name] if size in tables else ORDINARY
        if found == ORDINARY:
            end = ours.terminal[pair] if size == 3 else ours.mismatch_hairpin[pair, numbers[1], numbers[-2]]
            found = ours.hairpin[size] + end
        assert found == wanted * PER_VIENNA, loop
