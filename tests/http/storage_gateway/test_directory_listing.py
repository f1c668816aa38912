"""The page of a folder: whatever its names are, they are text on it and lead to themselves."""

from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.http.storage_gateway import directory_listing
from roost.storage.content.unixfs.cid import RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink

CID = Cid.for_block(RAW, b"a")
HERE = "https://a.example/ipfs/x/folder/"
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12)


class Page(HTMLParser):
    """Every element of a page, its links, and its text."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.texts: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page(*names: str, path: tuple[str, ...] = (), more: bool = False) -> Page:
    return Page(directory_listing.render_listing(CID, path, [PBLink(CID, name, 1234) for name in names], more=more))


def test_folder_lists_names_and_sizes() -> None:
    found = page("a.txt", "b")
    assert found.links == ["./a.txt", "./b"]
    assert [text for text in found.texts if text.strip()][-4:] == ["a.txt", "1,234", "b", "1,234"]
    assert str(CID) in found.texts


def test_one_that_is_below_another_leads_back() -> None:
    found = page("a", path=("one", "two"))
    assert found.links == ["../", "./a"]
    assert f"{CID}/one/two" in found.texts


def test_it_says_when_there_are_more() -> None:
    assert any("first 1 entries" in text for text in page("a", more=True).texts)
    assert not any("entries" in text for text in page("a").texts)


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        '" onmouseover="alert(1)',
        "' onmouseover='alert(1)",
        "javascript:alert(1)",
        "//evil.example/x",
        "a?b#c",
        "100%",
        "%2e%2e",
        "..",
        "&lt;b&gt;",
        "a\nb",
        "\u202egnp.exe",
    ],
)
def test_names_that_are_hostile(name: str) -> None:
    found = page(name.replace("/", "\u2215"), path=(name,))
    assert found.tags <= {"html", "head", "meta", "title", "style", "body", "h1", "table", "tr", "td", "a"}
    assert found.attributes <= {"lang", "charset", "name", "content", "href", "class"}
    assert all(link == "../" or link.startswith("./") for link in found.links)


@given(NAMES.filter(lambda name: name not in {".", ".."}))
def test_any_name_leads_to_itself(name: str) -> None:
    (link,) = page(name).links
    target = urlsplit(urljoin(HERE, link))
    assert (target.netloc, target.query, target.fragment) == ("a.example", "", "")
    assert unquote(target.path) == f"/ipfs/x/folder/{name}"


def test_names_that_are_no_text_break_nothing() -> None:
    assert b"?" in directory_listing.render_listing(CID, ["\udcff"], [PBLink(CID, "\udcff", 0)], more=False)
