"""How many measurements fit into contexts of a limited size."""

from hypothesis import given
from hypothesis import strategies as st

from seqopt.data import Contexts, Query, Room

CONTEXTS = Contexts.of_plates()
PLATES = [(("plate", f"P{number}"),) for number in range(1, 30)]

rooms = st.builds(
    lambda sizes, further: Room(dict(zip(PLATES, sizes, strict=False)), further),
    st.lists(st.integers(0, 4), max_size=4),
    st.integers(0, 3),
)


@given(rooms, st.integers(0, 12), st.randoms())
def test_whoever_takes_what_is_free_fills_plates_before_fresh_ones(room, n, random):
    taken: list[Query] = []
    for number in range(n):
        free = [plate for plate in PLATES if room.is_free(plate, taken)]
        if not free:
            break
        taken.append(Query(str(number), random.choice(free)))
    used = {plate: sum(query.context == plate for query in taken) for plate in PLATES}
    assert all(count <= room.size(plate) for plate, count in used.items())
    fresh = [plate for plate in PLATES if plate not in room.left and used[plate]]
    if fresh:
        assert all(used[plate] == size for plate, size in room.left.items())
        # Of fresh ones all but one are full.
        assert sum(used[plate] < room.further for plate in fresh) <= 1
    if len(taken) < n:
        assert not room.further
        assert len(taken) == sum(room.left.values())


@given(rooms, st.integers(0, 12), st.integers(0, 12))
def test_what_is_left_counts_as_what_was_taken(room, first, second):
    """Places in turn are the same whether a batch is chosen at once or in two parts."""
    at_once = [room.at(place, CONTEXTS.fresh) for place in range(first + second)]
    begun = [one for one in at_once[:first] if one is not None]
    after = room.after(Query(str(number), plate) for number, plate in enumerate(begun))
    if len(begun) == first:
        then = [after.at(place, CONTEXTS.fresh) for place in range(second)]
        assert then == at_once[first:]


def test_nothing_fits_into_what_is_closed():
    room = Room({PLATES[0]: 0, PLATES[1]: 1})
    assert not room.is_free(PLATES[0])
    assert room.is_free(PLATES[1])
    assert not room.is_free(PLATES[1], [Query("A", PLATES[1])])
    assert not room.is_free(PLATES[2], [Query("A", PLATES[1])])
    assert room.at(1, CONTEXTS.fresh) is None
