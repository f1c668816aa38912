import pytest

from roost.http.edge.forwarded_head import select_cookies


@pytest.mark.parametrize(
    ("sent", "selected"),
    [
        (b"p9000_a=1; p9001_a=2; a=3", b"a=1"),
        (b"p9000_a=1;p9000_b=x=y ;  p9000_gw_token=t", b"a=1; b=x=y; gw_token=t"),
        (b"p9000_p9001_a=1; p9000_=2; p9000_", b"p9001_a=1; =2; "),
        (b"gw_token=t; P9000_a=1; xp9000_a=1; p90000_a=1", None),
        (b"", None),
    ],
)
def test_cookies_of_other_ports_are_left_out(sent: bytes, selected: bytes | None) -> None:
    headers = [(b"host", b"x"), (b"cookie", sent), (b"accept", b"p9001_a=2")]
    kept = [] if selected is None else [(b"cookie", selected)]
    assert select_cookies(headers, "p9000_") == [headers[0], *kept, headers[2]]
