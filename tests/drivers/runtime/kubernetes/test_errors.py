"""Errors made from what an API server says."""

import pytest

from roost.core.problem import ProblemKind
from roost.drivers.runtime.kubernetes.errors import (
    KubernetesAlreadyExists,
    KubernetesConflict,
    KubernetesRefused,
    KubernetesThrottled,
    KubernetesUnreachable,
    make_refusal,
    parse_object,
    parse_refusal,
    read_metadata,
    to_line,
)


def test_a_conflict_is_told_from_an_object_that_exists() -> None:
    assert type(make_refusal(409, {"reason": "AlreadyExists"})) is KubernetesAlreadyExists
    assert type(make_refusal(409, {"reason": "Conflict"})) is KubernetesConflict
    assert type(make_refusal(409, {})) is KubernetesConflict


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0", 0.0), ("", None), (None, None), ("-1", None), ("1e9", None), ("9" * 9, None)],
)
def test_the_time_to_wait_is_a_small_number_of_seconds(header: str | None, seconds: float | None) -> None:
    error = parse_refusal(429, b'{"message": "later"}', header)
    assert (type(error), error.retry_after, error.kind) == (KubernetesThrottled, seconds, ProblemKind.UNAVAILABLE)


def test_an_error_without_words_names_its_status() -> None:
    assert make_refusal(418, {}).message == "Kubernetes: status 418 without a reason"
    assert make_refusal(500, {"reason": "InternalError"}).message == "Kubernetes: InternalError"
    assert type(make_refusal(500, {"message": ["odd"], "reason": 5})) is KubernetesRefused


def test_a_text_of_the_server_is_one_short_line() -> None:
    assert to_line(" a\n\tb\x00\u2028c ") == "a b c"
    assert len(to_line("x" * 10_000)) == 500


def test_only_objects_with_metadata_are_taken() -> None:
    assert read_metadata(parse_object(b'{"metadata": {"name": "a"}}')) == {"name": "a"}
    for wrong in (b"{}", b'{"metadata": []}'):
        with pytest.raises(KubernetesUnreachable, match="without metadata"):
            read_metadata(parse_object(wrong))
