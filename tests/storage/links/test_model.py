"""What is signed of an address, and when it counts."""

from datetime import UTC, datetime, timedelta

import pytest

from roost.storage.links.errors import InvalidLink, LinkExpired, LinkRefused
from roost.storage.links.model import Address, Grant, Window


@pytest.mark.parametrize(("date", "expires"), [(-1, 1), (0, 0), (0, -1), (10**14, 1), (1, 10**9)])
def test_times_have_bounds(date: int, expires: int) -> None:
    with pytest.raises(InvalidLink):
        Window(date, expires)


def test_a_window_forgives_a_clock_that_is_ahead() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    window = Window(int(begin.timestamp()), 60)
    for seconds in (-299, 0, 59):
        window.check(begin + timedelta(seconds=seconds))
    for seconds in (-301, 60, 10**6):
        with pytest.raises(LinkExpired):
            window.check(begin + timedelta(seconds=seconds))


def test_the_order_of_parameters_and_what_proxies_change_is_not_signed() -> None:
    one = Address.parse("https://A.example.org/files/%C3%BC?a=1&b=2")
    other = Address.parse("http://a.example.org:8080/files/%c3%bc?b=2&a=1&X-Signature=00")
    assert one.message("t") == other.message("t")


def test_no_two_addresses_are_signed_alike() -> None:
    urls = (
        "a.org/x?a=1&b=2",
        "a.org/x?a=1%26b=2",
        "a.org/x?a=2&b=1",
        "a.org/x/a?b=2",
        "a.org/x?a=1&b=2&b=2",
        "b.org/x",
    )
    assert len({Address.parse(f"https://{url}").message("t") for url in urls}) == len(urls)
    assert Address.parse("https://a.org/").message("t") != Address.parse("https://a.org/").message("u")


def test_what_counts_is_there_once() -> None:
    for query in ("", "X-Date=1&X-Date=1&X-Expires=1", "X-Date=one&X-Expires=1", "X-Date=1&X-Expires=0"):
        with pytest.raises(LinkRefused):
            Address.parse(f"https://a.org/?{query}").window()


def test_options_that_are_not_ours_are_refused() -> None:
    with pytest.raises(LinkRefused):
        Grant.read("t", "f", "%%%")
