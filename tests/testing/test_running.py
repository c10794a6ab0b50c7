"""Suites that are run without a test file."""

from __future__ import annotations

import pytest

from seqopt.testing.running import failures


class Suite:
    """Of a number."""

    @pytest.fixture
    def number(self) -> int:
        raise NotImplementedError("override the fixture number")

    @pytest.fixture
    def other(self) -> int:
        return 7

    def test_it_is_less_than_the_other(self, number: int, other: int) -> None:
        assert number < other, f"{number} is not less than {other}"

    @pytest.mark.parametrize("factor", [2, 3])
    def test_it_is_a_multiple(self, number: int, factor: int) -> None:
        if number > 100:
            pytest.skip("too large")
        assert number % factor == 0, f"{number} is not a multiple of {factor}"

    def test_it_has_no_inverse(self, number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            1 / number


def test_tests_that_fail_say_why_and_others_are_not_named() -> None:
    assert failures(Suite, number=lambda: 0) == {}
    found = failures(Suite, number=lambda: 8)
    assert set(found) == {"test_it_is_less_than_the_other", "test_it_is_a_multiple", "test_it_has_no_inverse"}
    assert found["test_it_is_less_than_the_other"].startswith("AssertionError: 8 is not less than 7")
    assert "8 is not a multiple of 3" in found["test_it_is_a_multiple"]
    assert "DID NOT RAISE" in found["test_it_has_no_inverse"]
    assert set(failures(Suite, number=lambda: 101, other=lambda: 200)) == {"test_it_has_no_inverse"}


def test_a_fixture_that_nobody_overrides_is_said() -> None:
    assert "NotImplementedError: override the fixture number" in failures(Suite)["test_it_is_a_multiple"]


def test_a_class_that_inherits_a_suite_brings_its_fixtures() -> None:
    class Six(Suite):
        @pytest.fixture
        def number(self) -> int:
            return 6

    assert set(failures(Six)) == {"test_it_has_no_inverse"}
