"""The docs have what the site needs: a section for each page of the dashboard, and all pages in the navigation."""

import re
import tomllib

from tests.architecture.code import ROOT
from tests.architecture.test_docs import DOCS, GENERATED_PAGES, _anchors

_ROUTE = re.compile(r"const (\w+) = createRoute\(\{(.*?)\n?\}\)?;", re.DOTALL)
REDIRECTS = {"/agent", "/storage"}  # parents of pages, which show none themselves


def test_every_page_of_the_dashboard_has_a_section() -> None:
    """`dashboard/src/app/help.ts` makes the same addresses."""
    sections = {_section(path) for path in _routes() if path.rstrip("/") not in REDIRECTS}
    assert len(sections) > 20
    missing = sections - _anchors(DOCS / "guides" / "dashboard.md")
    assert not missing, f"docs/guides/dashboard.md has no heading for {', '.join(sorted(missing))}"


def test_the_navigation_has_pages_that_exist() -> None:
    text = (ROOT / "site" / "zensical.toml").read_text()
    assert tomllib.loads(text)["project"]["theme"]["font"] is False  # no fonts from other hosts
    named = re.findall(r'"((?!cli/|project/)[\w/.-]+\.md)"', text)
    assert [name for name in named if f"docs/{name}" not in GENERATED_PAGES and not (DOCS / name).exists()] == []
    folders = {page.parent.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"."}
    assert [folder for folder in folders if f'"{folder}/*.md"' not in text] == []


def _routes() -> list[str]:
    """Return the full paths of the routes in router.tsx, pages of an agent below `/agent`."""
    text = (ROOT / "dashboard" / "src" / "app" / "router.tsx").read_text()
    routes: dict[str, str] = {}
    for name, options in _ROUTE.findall(text):
        parent = re.search(r"getParentRoute: \(\) => (\w+)", options)
        path = re.search(r"\bpath: '([^']*)'", options)
        if parent is not None and path is not None and path[1] != "$":
            above = routes.get(parent[1], "")
            routes[name] = f"{above}/{path[1].strip('/')}".replace("/agents/$id", "/agent")
    return list(routes.values())


def _section(path: str) -> str:
    words = [word for word in path.split("/") if word and not word.startswith("$")]
    return "-".join(words) or "home"
