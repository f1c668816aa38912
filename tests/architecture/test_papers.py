"""The papers say what is there: the map names every room, decisions are whole, links lead somewhere."""

import re
import subprocess
import tomllib
from functools import cache

from tests.architecture.code import ROOT, modules
from tests.architecture.ranks import driver_kind, slice_of

DECISION_LINES = 25
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
HOSTILE = ("tests/",)  # paths that a test tries to reach are not paths of whoever wrote it


@cache
def committed() -> dict[str, str]:
    """Every text file that git has, or would have with the next commit."""
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


def test_the_map_names_every_room() -> None:
    known = (ROOT / "docs" / "map.md").read_text()
    rooms = {_folder(module.name, module.path) for module in modules() if not module.path.endswith("/__init__.py")}
    rooms.discard("roost/")
    missing = sorted(room for room in rooms if f"`{room}`" not in known)
    assert not missing, f"docs/map.md does not say what {', '.join(missing)} owns"


def test_the_map_names_nothing_that_is_gone() -> None:
    rooms = re.findall(r"^\| `([^`]+)`", (ROOT / "docs" / "map.md").read_text(), re.MULTILINE)
    gone = [room for room in rooms if not (ROOT / room).exists()]
    assert not gone, f"docs/map.md names {', '.join(gone)}"


def test_decisions_are_numbered_and_short() -> None:
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [file.name[:5] for file in files] == [f"{number:04}-" for number in range(1, len(files) + 1)]
    for file in files:
        text = file.read_text()
        assert text.count("\n") <= DECISION_LINES, f"{file.name} has more than {DECISION_LINES} lines"
        for part in ("Context", "Decision", "Consequence"):
            assert f"**{part}.**" in text, f"{file.name} has no {part}"


def test_the_changelog_knows_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version in (ROOT / "CHANGELOG.md").read_text(), f"CHANGELOG.md does not mention {version}"


def test_links_between_the_papers_lead_somewhere() -> None:
    broken = [
        f"{name}: {target}"
        for name, text in committed().items()
        if name.endswith(".md")
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", text)
        if not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert not broken, "a link leads nowhere:\n" + "\n".join(broken)


def test_the_papers_name_files_that_are_there() -> None:
    gone = [
        f"{name}: {path}"
        for name, text in committed().items()
        if name.endswith(".md")
        for path in re.findall(r"`((?:roost|tests|docs|scripts|requirements)/[\w./-]+)`", text)
        if not (ROOT / path).exists()
    ]
    assert not gone, "named, but not there:\n" + "\n".join(gone)


def test_no_file_names_a_package_registry() -> None:
    hosts = re.compile("|".join(re.escape(".".join(pieces)) for pieces in PIECES))
    _refuse(hosts, "names a package registry; the clients know theirs", but=())


def test_no_file_names_a_place_on_a_machine() -> None:
    _refuse(_MACHINE, "names a folder of somebody's machine", but=HOSTILE)


def test_the_searches_find() -> None:
    for line in ("see /" + "root/x", '"/home/jane/roost"', "cd /" + "work/main"):
        assert _MACHINE.search(line), line
    for line in ("roost/work/loop.py", "/home/agent/.cache", "~/root/x", "https://example.org/root-cause"):
        assert not _MACHINE.search(line), line


def _refuse(pattern: re.Pattern[str], why: str, but: tuple[str, ...]) -> None:
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in committed().items()
        if not name.startswith(but or ("\0",))
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"{why}:\n" + "\n".join(found)


def _folder(name: str, path: str) -> str:
    """A slice and a kind of driver are rooms of their own; everywhere else the room is the folder under roost/."""
    if found := slice_of(name):
        return f"roost/{found.replace('.', '/')}/"
    if (kind := driver_kind(name)) and path.count("/") > 2:
        return f"roost/drivers/{kind}/"
    return "roost/" if path.count("/") == 1 else "/".join(path.split("/")[:2]) + "/"
