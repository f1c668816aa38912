"""Rules of a `_redirects` file, without content."""

import pytest

from roost.http.storage_gateway.errors import InvalidRedirectsFile
from roost.http.storage_gateway.redirects_file import find_target, join_query, parse_redirects

EXAMPLES = b"""\xef\xbb\xbf# a comment
/one /one.html\r
  /two\t/two.html   302

/index /index.html 200
/posts/:year/:month/:title /articles/:title/:year/:month 308
/twice/:id/:idea /:idea/:id/:id 303
/splat/* /moved/:splat 307
/away/* https://example.com:8443/a/:splat?x=1#top
/search/:text /find?q=:text
/caf%C3%A9 /\xc3\xa9t\xc3\xa9
/slash/* /:splat/evil.example
/gone/* /410.html 410
/unavailable/* /451.html 451
/post/:post-id /p/:post-id
/* /index.html 404
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("one", (301, "/one.html")),
        ("two", (302, "/two.html")),
        ("index", (200, "/index.html")),
        ("posts/2022/06/hello world", (308, "/articles/hello%20world/2022/06")),
        ("twice/a/b", (303, "/b/a/a")),
        ("splat/a/b c/\u6f22", (307, "/moved/a/b%20c/%E6%BC%A2")),
        ("splat", (307, "/moved/")),
        ("away/a\r\nX: y", (301, "https://example.com:8443/a/a%0D%0AX%3A%20y?x=1#top")),
        ("away/?x=2#:splat", (301, "https://example.com:8443/a/%3Fx%3D2%23%3Asplat?x=1#top")),
        ("search/a&b=c", (301, "/find?q=a%26b%3Dc")),
        ("café", (301, "/%C3%A9t%C3%A9")),
        ("slash", (301, "/evil.example")),
        ("slash/\\evil.example", (301, "/%5Cevil.example/evil.example")),
        ("gone/a", (410, "/410.html")),
        ("unavailable", (451, "/451.html")),
        ("post/7", (301, "/p/7")),
        ("Post/7", (404, "/index.html")),
        ("posts/2022/06", (404, "/index.html")),
    ],
)
def test_the_first_rule_that_matches(path: str, expected: tuple[int, str]) -> None:
    target = find_target(parse_redirects(EXAMPLES), path.split("/"))
    assert target is not None
    assert (target.status, target.url) == expected


def test_rules_match_whole_paths() -> None:
    assert find_target(parse_redirects(b"/a /b\n/a/:b /c"), ["b"]) is None
    assert parse_redirects(b"\n# nothing\r\n") == []
    target = find_target(parse_redirects(b"/a/* /b/:splat?x#y 200"), ["a", "b", "c d"])
    assert target is not None
    assert target.path == ["b", "b", "c d"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"/a", "'from to [status]'"),
        (b"/a /b 301 US", "'from to [status]'"),
        *((b"/a /b " + status, "status") for status in (b"201", b"0301", b"301x", b"-1", b"9" * 5000, "٣٠١".encode())),
        (b"/a /b 301!", "cannot replace what exists"),
        *(
            (start + b" /b", "'from'")
            for start in (b"a", b"https://x/a", b"/a*", b"/*/b", b"/**", b"*", b"/a?b", b"/a#b")
        ),
        *((start + b" /b", "segment") for start in (b"/a//b", b"//", b"/../a", b"/%2e", b"/%ff")),
        (b"/a" * 65 + b" /b", "more than 64 segments"),
        (b"/:a/:a /b", "twice"),
        (b"/:splat/* /b", "twice"),
        *(
            (b"/a/:b " + end, "'to'")
            for end in (
                *(b"b", b"//evil.example", b"/\\evil.example", b"javascript:alert(1)", b"JavaScript://%0aalert(1)"),
                *(b"data:,x", b"ftp://x/", b"https:/x", b"https://", b"https://:b/", b"https://:b.example/"),
                *(b"https://a@b/", b"https://a\\b/", b"https://a:b/", b"https://exa\xc3\xa4mple/", b"http:example.com"),
            )
        ),
        *((b"/a https://example.com/ " + status, "path of the site") for status in (b"200", b"404", b"410", b"451")),
        (b"/a /b/../c", "segment"),
        (b"/a /b\x00c", "control"),
        (b"/a /b\rX: y", "control"),
        (b"/a /b\x7f", "control"),
        (b"/a /\xff", "UTF-8"),
    ],
)
def test_a_bad_line_is_named(line: bytes, reason: str) -> None:
    with pytest.raises(InvalidRedirectsFile, match="in line 3: ") as failed:
        parse_redirects(b"# first\n/fine /fine.html\n" + line + b"\n")
    assert reason in failed.value.message
    assert len(failed.value.message) < 400
    assert failed.value.message.isprintable()


def test_bounds_of_a_redirects_file_hold() -> None:
    with pytest.raises(InvalidRedirectsFile, match="more than 65,536 bytes"):
        parse_redirects(b"#" * 65_537)
    assert len(parse_redirects(b"/a /b\n" * 1000)) == 1000
    with pytest.raises(InvalidRedirectsFile, match="in line 1001: there are more than 1,000 rules"):
        parse_redirects(b"/a /b\n" * 1001)
    repeats = parse_redirects(b"/* /" + b":splat" * 10_000)
    assert find_target(repeats, ["x" * 8000]) is None


@pytest.mark.parametrize(
    ("url", "query", "expected"),
    [
        ("/a", "", "/a"),
        ("/a", "b=1&c", "/a?b=1&c="),
        ("/a?b=1&c=2#d", "b=3&b=4", "/a?c=2&b=3&b=4#d"),
        ("/a?b#d", "", "/a?b#d"),
        ("/a", "x=%0D%0AY:%20z", "/a?x=%0D%0AY%3A+z"),
        ("/a", "pinataGatewayToken=t", "/a?pinataGatewayToken=t"),
        ("https://example.com/a?b=1", "pinataGatewayToken=t&c=1", "https://example.com/a?b=1&c=1"),
        ("https://example.com/", "pinataGatewayToken=t", "https://example.com/"),
    ],
)
def test_the_query_of_a_redirect(url: str, query: str, expected: str) -> None:
    assert join_query(url, query) == expected
