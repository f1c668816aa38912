"""Extract the text of a web page or an HTML file."""

import argparse
import re
import sys
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

BYTES_LIMIT = 5_000_000
HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "nav", "head"})
BLOCKS = frozenset(
    {"p", "div", "section", "article", "br", "tr", "table", "ul", "ol", "pre", "blockquote", "header", "footer"}
)


class TextExtractor(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.parts: list[str] = []
        self.links: dict[str, str] = {}
        self._hidden: list[str] = []
        self._link = ""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HIDDEN:
            self._hidden.append(tag)
        self._in_title = tag == "title"
        if re.fullmatch("h[1-6]", tag):
            self.parts.append("\n\n" + "#" * int(tag[1]) + " ")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in BLOCKS:
            self.parts.append("\n\n" if tag != "br" else "\n")
        if tag == "a":
            self._link = dict(attrs).get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        if tag in BLOCKS or re.fullmatch("h[1-6]", tag):
            self.parts.append("\n\n")
        if tag == "a":
            self._link = ""
        self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data.strip()
        elif not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))
            if self._link and data.strip():
                self.links.setdefault(self._link, " ".join(data.split()))

    def text(self) -> str:
        lines = [line.strip() for line in "".join(self.parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="an http or https address, or a file")
    parser.add_argument("--links", action="store_true")
    parser.add_argument("--limit", type=int, default=50_000)
    options = parser.parse_args()
    try:
        html = read_source(options.source)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    extractor = TextExtractor()
    extractor.feed(html)
    text = extractor.text()
    print(f"Title: {extractor.title}\n\n{text[: options.limit]}")
    if len(text) > options.limit:
        print(f"\n({len(text) - options.limit} more characters)")
    if options.links:
        print("\nLinks:")
        for address, name in extractor.links.items():
            print(f"- {name}: {urljoin(options.source, address)}")
    return 0


def read_source(source: str) -> str:
    if not source.startswith(("http://", "https://")):
        return Path(source).read_text(encoding="utf-8", errors="replace")[:BYTES_LIMIT]
    request = urllib.request.Request(source, headers={"User-Agent": "page-text/1.0", "Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=30) as response:
        content: bytes = response.read(BYTES_LIMIT)
        charset: str = response.headers.get_content_charset() or "utf-8"
    try:
        return content.decode(charset, "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
