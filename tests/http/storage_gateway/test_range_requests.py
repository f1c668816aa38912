import pytest

from roost.http.storage_gateway.range_requests import ByteRange, RangeNotSatisfiable, select_ranges

ETAG = '"cid"'


@pytest.mark.parametrize(
    ("range_header", "wanted"),
    [
        ("bytes=0-0", [(0, 1)]),
        ("bytes=7-", [(7, 100)]),
        ("bytes=90-999", [(90, 100)]),
        ("bytes=-7", [(93, 100)]),
        ("bytes=-999", [(0, 100)]),
        ("BYTES=0-0", [(0, 1)]),
        ("bytes=0-0,-1", [(0, 1), (99, 100)]),
        ("bytes= 5-6 ,\t, 1-2 ,", [(5, 7), (1, 3)]),
        ("bytes=0-1,200-300", [(0, 2)]),
        ("bytes=0-49,50-", [(0, 50), (50, 100)]),
        ("bytes=0-9,5-14", [(0, 10), (5, 15)]),
        # everything, 14.2
        ("", []),
        ("bytes=", []),
        ("bytes", []),
        ("bytes=,", []),
        ("bytes=-", []),
        ("bytes=5-4", []),
        ("bytes=0-1,5-4", []),
        ("bytes=0-1,x", []),
        ("bytes=0-1;5-6", []),
        ("bytes=+1-2", []),
        ("bytes=0x1-2", []),
        ("bytes=\u0661-\u0662", []),
        ("bytes=1 - 2", []),
        (f"bytes={'9' * 19}-", []),
        ("lines=0-1", []),
        # more than all of it
        ("bytes=0-,0-0", []),
        ("bytes=0-60,40-99", []),
        ("bytes=" + ",".join(f"{n}-{n}" for n in range(17)), []),
    ],
)
def test_range_headers_select_bytes(range_header: str, wanted: list[tuple[int, int]]) -> None:
    assert list(select_ranges(range_header, None, ETAG, 100)) == [ByteRange(*one) for one in wanted]


def test_as_many_as_are_served() -> None:
    assert len(select_ranges("bytes=" + ",".join(f"{n}-{n}" for n in range(16)), None, ETAG, 100)) == 16


@pytest.mark.parametrize(
    ("range_header", "size"), [("bytes=100-", 100), ("bytes=-0", 100), ("bytes=100-,200-300", 100), ("bytes=0-", 0)]
)
def test_beyond_the_end(range_header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable):
        select_ranges(range_header, None, ETAG, size)


@pytest.mark.parametrize(
    ("tag", "counts"),
    [
        (None, True),
        ('"cid"', True),
        (' "cid" ', True),
        ('"other"', False),
        ('W/"cid"', False),
        ("Sat, 21 Nov 2026 12:00:00 GMT", False),
        ('"cid", "other"', False),
        ("", False),
    ],
)
def test_a_range_of_what_is_here_only(tag: str | None, *, counts: bool) -> None:
    assert bool(select_ranges("bytes=0-0", tag, ETAG, 100)) is counts
    if not counts:  # and never an error about it
        assert select_ranges("bytes=100-", tag, ETAG, 100) == ()
