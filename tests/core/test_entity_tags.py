import pytest

from roost.core.entity_tags import ANY_TAG, is_not_modified, is_precondition_failed, parse_if_match

ETAG = '"cid"'


@pytest.mark.parametrize(
    ("tags", "etag", "known", "another"),
    [
        (None, ETAG, False, False),
        ("*", ETAG, True, False),
        ('"cid"', ETAG, True, False),
        ('"a", "cid"', ETAG, True, False),
        ('W/"cid"', ETAG, True, True),
        ('"cid"', f"W/{ETAG}", True, True),
        ('W/"cid"', f"W/{ETAG}", True, True),
        ('"a"', ETAG, False, True),
        ("cid", ETAG, False, True),
        ("", ETAG, False, True),
    ],
)
def test_tags_are_compared_weakly_and_strongly(tags: str | None, etag: str, *, known: bool, another: bool) -> None:
    assert is_not_modified(tags, etag) is known
    assert is_precondition_failed(tags, etag) is another


@pytest.mark.parametrize(
    ("if_match", "tags"),
    [
        (None, None),
        ("", set()),
        ("*", {ANY_TAG}),
        (" * ", {ANY_TAG}),
        ('"*"', {'"*"'}),
        ('"a"', {'"a"'}),
        ('"a" ,W/"b","c"', {'"a"', '"c"'}),
        ("a, *", set()),
    ],
)
def test_the_tags_of_if_match(if_match: str | None, tags: set[str] | None) -> None:
    found = parse_if_match(if_match)
    assert (None if found is None else set(found)) == tags
