"""The docs match the repository: the map names every folder, decisions are complete, links lead somewhere."""

import posixpath
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests.architecture.code import ROOT, literals, modules
from tests.architecture.code_names import missing_names

DOCS = ROOT / "docs"

GENERATED_PAGES = {"docs/reference/agents-api.md"}
"""Pages that `scripts/docs.py` adds to the site; `tests/dashboard/test_docs_site.py` follows the links there."""

DECISION_LINES, CHANGELOG_LINES = 27, 20
PIECES = (  # the names of package registries, in pieces, so that this file names none
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("deb.debian", "org"),
    ("registry-1.docker", "io"),
    ("proxy.golang", "org"),
)
_MACHINE = re.compile(r"(?<![\w.~-])/(?:root|work|farm)/|(?<![\w.~-])/home/(?!agent\b)\w+/|/Users/\w+/")
HOSTILE = ("tests/",)  # tests try to reach such paths
OTHER_WORDS = {  # what builders' pages show in backticks and is not in this repository, with the reason
    "add-a-driver.md": "supports_x dist.integrity",  # a name that is advised against; a field of npm
    "add-a-slice.md": "Depends downgrade",  # of FastAPI; a function of Alembic that is not written
    "benchmarks.md": "bench/results.json build/scale.md",  # made by runs
    "request-path.md": "agents.D api.D uploads.D",  # host names
    "runtimes.md": "resources.limits pods/exec",  # of Kubernetes
    "style.md": "utils helpers common noun.verb_past fn",  # advised against, and a form
    "warden-protocol.md": "28.77.0.0/16 127.77.0.0/16 st_mode .roost/logs/<name>.log",  # of a container
}


@cache
def committed() -> dict[str, str]:
    """Return the text of every file that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found: dict[str, str] = {}
    for name in filter(None, listed.split("\0")):
        try:
            found[name] = (ROOT / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # not text, or deleted and not yet committed so
    return found


def test_the_map_names_every_folder() -> None:
    """In both directions: a folder that is missing there, and a line for a folder that is gone."""
    folders = {str(PurePosixPath(module.path).parent) for module in modules()}
    assert set(_folders_on_the_map()) == folders


def test_the_request_path_names_classes_where_they_are() -> None:
    drawing = (DOCS / "builders/request-path.md").read_text().split("```")[1]
    rows = re.findall(r"\b([A-Z][a-z]+(?:[A-Z][a-z]+)+)\b.* (\w[\w/]+\.py)$", drawing, re.MULTILINE)
    assert len(rows) > 8
    gone = [f"{name} in {path}" for name, path in rows if not _defines(path, f"class {name}")]
    assert not gone


def test_the_threat_model_names_tests_that_exist() -> None:
    text = (DOCS / "guides/threat-model.md").read_text()
    rows = re.findall(r"^\| (?:[ACFG][0-9]+(?:, [ACFG][0-9]+)*|) \|.*\| (.*) \|$", text, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([a-z0-9_/]+(?:\.py|/))`", row)]
    assert len(rows) > 30
    assert len(named) > len(rows)
    assert not [name for name in named if not (ROOT / "tests" / name).exists()]


def test_decisions_are_numbered_and_short() -> None:
    files = sorted((DOCS / "decisions").glob("*.md"))
    assert [file.name[:5] for file in files] == [f"{number:04}-" for number in range(1, len(files) + 1)]
    for file in files:
        text = file.read_text()
        assert text.count("\n") <= DECISION_LINES, f"{file.name} has more than {DECISION_LINES} lines"
        for part in ("Context", "Decision", "Consequence"):
            assert f"**{part}.**" in text, f"{file.name} has no {part}"


def test_a_decision_is_accepted_or_names_the_later_one() -> None:
    """`Status: accepted.`, or reversed or replaced by a later decision, with what of it if that is not all."""
    for file in sorted((DOCS / "decisions").glob("*.md")):
        later = _later_decision(file.read_text())
        assert later is not None, f"{file.name} has no status that {_later_decision.__name__} reads"
        assert not later or (later > file.name and (file.parent / later).is_file()), f"{file.name}: {later}"


@pytest.mark.parametrize("line", ["accepted", "Status: reversed.", "Status: replaced by 0041.", "Status: rejected."])
def test_a_decision_without_a_status_is_found(line: str) -> None:
    assert _later_decision(f"# 1. Title\n\n{line}\n\n**Context.** Text") is None


def test_the_code_names_the_decision_that_explains_it() -> None:
    """A module says "decision 0013"; 0023 is about a page of the docs. No module names one that does not exist."""
    decisions = {file.name[:4] for file in (DOCS / "decisions").glob("*.md")}
    sources = [file for folder in ("roost", "scripts", "deploy") for file in (ROOT / folder).rglob("*.py")]
    sources.append(ROOT / "tests/architecture/layers.py")
    mentions = re.findall(r"[Dd]ecisions? (\d{4})(?: and (\d{4}))?", "\n".join(file.read_text() for file in sources))
    named = {number for mention in mentions for number in mention if number}
    assert named - {"0023"} == decisions - {"0023"}


def _later_decision(text: str) -> str | None:
    """Return the file of the decision that reverses or replaces this one, "" if it stands, None without a status."""
    status = r"\A# .+\n\nStatus: (?:accepted|(?:reversed|replaced) by \[(\d{4})\]\((\1-[\w-]+\.md)\)( [^\n]+)?)\.\n\n"
    found = re.match(status, text)
    return None if found is None else found[2] or ""


def test_the_changelog_is_short_and_knows_this_version() -> None:
    """Once 0.1.0 exists, it has a heading of its own, and changes come as files of `changelog.d/`."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    text = (ROOT / "CHANGELOG.md").read_text()
    assert version in text, f"CHANGELOG.md does not mention {version}"
    unreleased = text.partition("\n## [Unreleased]\n")[2].partition("\n## [")[0]
    assert unreleased.count("\n") <= CHANGELOG_LINES, "CHANGELOG.md is what a user of the first version gets, in short"


def test_entries_of_the_changelog_have_a_section_and_at_most_three_lines() -> None:
    entries = {file.name: file.read_text() for file in (ROOT / "changelog.d").glob("*")}
    form = re.compile(r"(Added|Changed|Fixed|Removed|Security): \S[^\n]*\n([^\n]+\n){0,2}")
    assert not [name for name, text in entries.items() if not name.endswith(".md") or not form.fullmatch(text)]


def test_links_lead_to_a_file_and_a_heading() -> None:
    broken = [
        f"{name}: {target}"
        for name, text in _pages().items()
        for target in _links(text)
        if posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) not in GENERATED_PAGES
        and not _is_there(ROOT / name, *target.partition("#")[::2])
    ]
    assert not broken, "a link leads nowhere:\n" + "\n".join(broken)


def test_every_page_can_be_reached_from_the_index() -> None:
    pages, reached = _pages(), set[str]()
    todo = ["docs/index.md"]
    while todo:
        name = todo.pop()
        if name in pages and name not in reached:
            reached.add(name)
            todo += [posixpath.normpath(posixpath.join(posixpath.dirname(name), link)) for link in _files(pages[name])]
    lost = sorted(name for name in pages if name.startswith("docs/") and name not in reached)
    assert not lost, f"no link leads to {', '.join(lost)}"


def test_pages_name_files_that_exist() -> None:
    gone = [
        f"{name}: {path}"
        for name, text in _pages().items()
        for path in re.findall(r"`((?:roost|tests|docs|scripts|requirements)/[\w./-]+)`", text)
        if not (ROOT / path).exists()
    ]
    assert not gone, "named, but not there:\n" + "\n".join(gone)


def test_pages_for_builders_name_code_that_exists() -> None:
    files, gone, used = frozenset(committed()), list[str](), set[tuple[str, str]]()
    for page in sorted((DOCS / "builders").glob("*.md")):
        others = OTHER_WORDS.get(page.name, "").split()
        shown = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)))
        missing = [(text, name) for text in shown for name in missing_names(text, files)]
        used |= {(page.name, name) for _, name in missing}
        gone += [f"{page.name}: {name}, in `{text}`" for text, name in missing if name not in others]
    assert not gone, "the code has no such names:\n" + "\n".join(sorted(gone))
    idle = {(page, word) for page, words in OTHER_WORDS.items() for word in words.split()} - used
    assert not idle, f"OTHER_WORDS has words without need: {sorted(idle)}"


@pytest.mark.parametrize(
    "text",
    [
        "Agent_Repository",
        "AgentRepository.fetch_all",
        "work.add",
        "Depends(provide(Service))",
        "in `frozen_cache`",
        "roost.core.db.gone",
        "make nothing",
        "python -m benches scans",
        "roost/core/gone.py",
        "agents/<name>/gone.py",
        "gone.py",
        "nothing/",
    ],
)
def test_a_name_that_is_gone_is_found(text: str) -> None:
    assert list(missing_names(text, frozenset(committed())))


def test_pages_name_tests_that_exist() -> None:
    named = {found for text in _pages().values() for found in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)}
    assert len(named) > 20
    missing = [f"{path}::{test}" for path, test in named if f"def {test}(" not in committed().get(path, "")]
    assert not missing, "the docs name tests that are not there:\n" + "\n".join(sorted(missing))


def test_each_rule_of_a_protocol_has_a_test_or_a_reason() -> None:
    rows = re.findall(r"^\| (.+) \| (.+) \|$", (DOCS / "reference/protocols.md").read_text(), re.MULTILINE)
    shown = [rule for rule, shown in rows if "`tests/" in shown]
    reasons = [shown for _, shown in rows if "`tests/" not in shown and not shown.startswith("test, or")]
    assert len(shown) > 50
    assert not [reason for reason in reasons if not re.match(r"(not|optional|stricter|only)\b", reason)]


def test_troubleshooting_quotes_messages_of_the_code() -> None:
    """`...` in a quoted message stands for a value, so that only the text around it is searched for."""
    page = (DOCS / "troubleshooting.md").read_text()
    quoted = [
        text for cell in re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE) for text in re.findall(r"`([^`]+)`", cell)
    ]
    assert len(quoted) > 100
    assert not _find_unknown(quoted), "docs/troubleshooting.md quotes what no message says"


def test_guides_quote_messages_of_the_code() -> None:
    """Those after a status, `409 "Conflicting secrets"`, and what `git push` prints."""
    pages = [" ".join(page.read_text().split()) for page in sorted((DOCS / "guides").glob("*.md"))]
    quoted = [text for page in pages for text in re.findall(r'\b[45]\d\d\b[^"|.;]{0,30}"([A-Z][^"]+)"', page)]
    pushes, _, _ = (DOCS / "guides" / "git.md").read_text().partition("\nA clone, or a pull")
    cells = re.findall(r"^\| (`[^|]+`) \|", pushes, re.MULTILINE)
    quoted += [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    assert len(quoted) > 30
    assert not _find_unknown(quoted), "a guide quotes what no message says"


def _find_unknown(quoted: Iterable[str]) -> list[str]:
    code = "\0".join(text for module in modules() for _, text in literals(module))
    code += (ROOT / "scripts" / "setup.py").read_text()
    return [text for text in quoted for part in text.split("...") if part.strip(" .,") not in code]


def test_no_file_names_a_package_registry() -> None:
    hosts = re.compile("|".join(re.escape(".".join(pieces)) for pieces in PIECES))
    _refuse(hosts, "names a package registry; the clients know theirs", but=())


def test_no_file_names_a_place_on_a_machine() -> None:
    _refuse(_MACHINE, "names a folder of somebody's machine", but=HOSTILE)


def test_the_searches_find() -> None:
    for line in ("see /" + "root/x", '"/home/jane/roost"', "cd /" + "work/main"):
        assert _MACHINE.search(line), line
    for line in ("roost/work/worker.py", "/home/agent/.cache", "~/root/x", "https://example.org/root-cause"):
        assert not _MACHINE.search(line), line


def _pages() -> dict[str, str]:
    return {name: text for name, text in committed().items() if name.endswith(".md")}


def _links(text: str) -> list[str]:
    """Targets of the links to files and headings of this repository."""
    return re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text)


def _files(text: str) -> list[str]:
    return [link.partition("#")[0] for link in _links(text) if not link.startswith("#")]


def _is_there(page: Path, target: str, heading: str) -> bool:
    found = page.parent / target if target else page
    return found.exists() and (not heading or heading in _anchors(found))


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The fragments of a page's headings, as web views of repositories make them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def _refuse(pattern: re.Pattern[str], why: str, but: tuple[str, ...]) -> None:
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in committed().items()
        if not name.startswith(but or ("\0",))
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"{why}:\n" + "\n".join(found)


def _folders_on_the_map() -> Iterator[str]:
    """Read the trees in docs/builders/map.md: two spaces of indentation a level, a slash after each folder."""
    text = (DOCS / "builders" / "map.md").read_text()
    root, path = "", list[str]()
    for indent, name in re.findall(r"^( *)(\w+(?:/\w+)*)/(?: {2,}\S.*)?$", text, re.MULTILINE):
        if indent:
            path[len(indent) // 2 - 1 :] = [name]
        else:
            root, path = name, []
        yield "/".join([root, *path])


def _defines(path: str, start: str) -> bool:
    """Return whether a module of the package has a line that begins like this."""
    file = ROOT / "roost" / path
    return file.is_file() and f"\n{start}" in file.read_text()
