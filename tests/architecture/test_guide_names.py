"""Endpoints and messages that the guides name are there."""

import json
import re

from tests.architecture.code import ROOT
from tests.cli.terminal import run

PAGES = {
    path.name: path.read_text() for folder in ("guides", "explanation") for path in ROOT.glob(f"docs/{folder}/*.md")
}
ENDPOINT = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE|HEAD)`?,? +`?(/[\w/{}.-]+)")
QUOTED = re.compile(r'(?<!`)"([A-Z][^"`\n]{6,80})"|`([A-Z][a-z]+(?: [^`\n|{}]+)+)`')
OF_SYSTEMS = {"Permission denied", "Address already in use"}
OTHER_PROGRAMS = {"channels.md", "dashboard.md", "git.md"}
"""Pages that quote the dashboard and Git."""


def test_guides_name_endpoints_that_exist() -> None:
    """An agent's own address has short paths, and tables name the end of a path below their heading's."""
    routes = {(one["method"], _anonymous(one["path"])) for one in json.loads(run("api", "routes", "-o", "json").stdout)}
    named = {(page, *found) for page, text in PAGES.items() for found in ENDPOINT.findall(text)}
    assert len(named) > 60
    gone = [
        f"{page}: {method} {path}"
        for page, method, path in sorted(named)
        if not any(method == one and route.endswith(_anonymous(path).removeprefix("/v0")) for one, route in routes)
    ]
    assert not gone, "the guides name endpoints that are not there:\n" + "\n".join(gone)


def test_guides_quote_messages_of_the_code() -> None:
    """`...` and numbers stand for values, so that only the text around them is searched for."""
    sources = "\0".join(path.read_text() for path in (ROOT / "roost").rglob("*.py"))
    code = re.sub(r'"\n\s*f?"', "", sources)  # texts of several lines
    quoted = {
        (page, found[0] or found[1])
        for page, text in PAGES.items()
        if page not in OTHER_PROGRAMS
        for found in QUOTED.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    }
    assert len(quoted) > 40
    unknown = [
        f"{page}: {words}"
        for page, words in sorted(quoted)
        for part in re.split(r"\.\.\.|\d[\d,.]*", words)
        if part.strip(" .,:") not in code and not any(one in part for one in OF_SYSTEMS)
    ]
    assert not unknown, "the guides quote what no message says:\n" + "\n".join(unknown)


def _anonymous(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path.rstrip("."))
