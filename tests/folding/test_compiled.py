"""Parts of the compiled program, as Python runs them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqopt.folding import compiled


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**40), 2**40), min_size=1, max_size=30), st.data())
def test_the_entry_of_a_number_is_that_of_sorted_values(values: list[int], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(values) - 1))
    array = np.array(values)
    assert compiled._in_order.py_func(array, number) == sorted(values)[number]
    assert sorted(array.tolist()) == sorted(values)
