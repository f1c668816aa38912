"""Reasons of failures: all errors of the chain, the original one first."""

import pytest

from bench.worker import describe_error


def fail(error: Exception) -> None:
    raise error


def fail_twice() -> None:
    try:
        fail(ValueError("cause"))
    finally:
        fail(OSError("clean-up"))


def fail_thrice() -> None:
    try:
        fail(ValueError("cause"))
    finally:
        try:
            fail(OSError("low level"))
        except OSError as error:
            raise RuntimeError("clean-up") from error


def test_error_of_a_clean_up_comes_after_the_cause() -> None:
    with pytest.raises(OSError, match="clean-up") as caught:
        fail_twice()
    first, second = describe_error(caught.value).split("; then ")
    assert first.startswith("ValueError: cause (tests/bench/test_worker.py:")
    assert second.startswith("OSError: clean-up (")


def test_cause_of_a_translated_clean_up_error_stays_first() -> None:
    with pytest.raises(RuntimeError) as caught:
        fail_thrice()
    assert [part.partition(" (")[0] for part in describe_error(caught.value).split("; then ")] == [
        "ValueError: cause",
        "OSError: low level",
        "RuntimeError: clean-up",
    ]


def test_error_of_a_group_is_told_itself() -> None:
    group = ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("inner", [KeyError("lost")])])
    assert describe_error(group) == "KeyError: 'lost'"


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    reason = describe_error(AssertionError("begin\n" + "x" * 100_000 + "\nend"))
    assert reason.startswith("AssertionError: begin x")
    assert reason.endswith("x end")
    assert len(reason) < 500


def test_long_chain_keeps_the_first_error() -> None:
    error = ValueError("0")
    for number in range(1, 50):
        following = ValueError(str(number))
        following.__context__ = error
        error = following
    parts = describe_error(error).split("; then ")
    assert (parts[0], parts[-1], len(parts)) == ("ValueError: 0", "ValueError: 49", 6)
