from roost.core.rate_limit import RateLimiter, RateLimitExceeded, RatePolicy
from roost.web.rate_limit_fields import FIELD_NAMES, RateLimitFields, exceeded_headers, parse_lines

REQUESTS, BYTES = RatePolicy("requests", "requests", 100), RatePolicy("bytes", "bytes", 2**30)


def test_the_fields_tell_the_state_of_the_first_limit_and_the_policies_of_all() -> None:
    lines = RateLimitFields([RateLimiter(REQUESTS), RateLimiter(BYTES)]).format_lines(full_in=30.3)
    assert dict(parse_lines(lines)) == {
        b"ratelimit-policy": b'"requests";q=100;w=60, "bytes";q=1073741824;w=60;qu="content-bytes"',
        b"ratelimit": b'"requests";r=49;t=31',
        b"ratelimit-limit": b"100",
        b"ratelimit-remaining": b"49",
        b"ratelimit-reset": b"31",
    }
    assert lines.endswith(b"\r\n")


def test_after_a_refusal_nothing_remains_for_as_long_as_it_says() -> None:
    headers = exceeded_headers(RateLimitExceeded(BYTES, 0.2))
    assert headers["ratelimit"] == '"bytes";r=0;t=1'
    assert (headers["ratelimit-remaining"], headers["ratelimit-reset"]) == ("0", "1")
    assert set(headers) == {name.lower() for name in FIELD_NAMES}
