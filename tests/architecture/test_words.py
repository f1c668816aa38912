"""Names are the field's standard terms, each with one meaning; sentences are plain English (docs/builders/style.md)."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import PurePath

import pytest

from tests.architecture.code import ROOT, Module, functions, modules, parse
from tests.architecture.test_docs import committed


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


METAPHORS = _words(
    """box boxes courier couriers desk desks door doors ground grounds house houses leaflet leaflets messenger
    messengers nursery office offices paper papers passage passages purse room rooms roster shelf sitting sittings
    stories story tally wing wings"""
)
"""Private metaphors: in no file."""

ARCHAISMS = _words("anew whoever whomever")
"""Words of old-fashioned sentences: in no file."""

INVERSIONS = _words("everybody nobody please somebody")
"""Words that begin an inverted or a polite sentence: in no file but tests, whose names are sentences."""

FOREIGN_WORDS = re.compile(
    r"\bnobody:x:\d+:\d+:nobody:|\bbox=None\b|{\"anew\": True}|/MediaBox\b|\boffice[:=]|officeDocument"
    r"|\bHouse\b|\bListBox|\bboxShadow\b"
)
"""An entry of /etc/passwd, a parameter of rich's tables, a stored payload, a key of PDF, names in XML, an icon, and
names in React and CSS."""

RIDDLES = _words("apart aside asked beside besides book everyone outside said surface told whose")
"""Words that do not tell a reader what a thing is: in no name."""

HELPER_METAPHORS = _words("bank front market puppet rig shop town")
"""Metaphors that are real words elsewhere: in no name of a helper of tests."""

WELL_KNOWN = _words("main upgrade downgrade keccak256")
"""One-word functions that every Python programmer knows, those that Alembic calls, and a hash function."""

_PROSE = frozenset({".py", ".md", ".mjs", ".js", ".ts", ".tsx", ".toml", ".html"})
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_EVENT = re.compile(r"[a-z][a-z_]*\.[a-z]+(_[a-z]+)*")
_TEST_NAME = re.compile(r"test_(?!what_)[a-z0-9]+(_[a-z0-9]+){2,}")
_LOG = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_HERE = ("tests/architecture/test_words.py", "docs/builders/style.md")


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = {}
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{module.path}:{node.lineno}")
    doubled = [f"{name}: {', '.join(found)}" for name, found in places.items() if len(found) > 1]
    assert not doubled, "a reader who searches for one class finds several; rename all but one:\n" + "\n".join(doubled)


def _metaphors() -> Iterator[str]:
    for path, text in committed().items():
        if PurePath(path).suffix in _PROSE and not path.startswith(_HERE):
            banned = METAPHORS | ARCHAISMS | (frozenset() if path.startswith("tests/") else INVERSIONS)
            for number, line in enumerate(text.splitlines(), 1):
                if found := banned.intersection(part.lower() for part in _PART.findall(FOREIGN_WORDS.sub("", line))):
                    yield f"{path}:{number}: {', '.join(sorted(found))}"


def _riddles() -> Iterator[str]:
    for module in modules():
        for line, name in _names(module):
            if found := RIDDLES.intersection(part.lower() for part in _PART.findall(name)):
                yield f"{module.path}:{line}: {name} ({', '.join(sorted(found))})"


def _short_functions() -> Iterator[str]:
    for module in modules():
        for node in module.tree.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _is_command(node):
                continue
            if "_" not in node.name and node.name not in WELL_KNOWN:
                yield f"{module.path}:{node.lineno}: {node.name}"


def _log_events() -> Iterator[str]:
    for module in modules():
        for node in module.nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOG):
                continue
            if node.args and "log" in ast.unparse(node.func.value).lower():
                event = node.args[0]
                if not (isinstance(event, ast.Constant) and _EVENT.fullmatch(str(event.value))):
                    yield f"{module.path}:{node.lineno}: {ast.unparse(event)}"


def _short_test_names() -> Iterator[str]:
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        module = parse(str(file.relative_to(ROOT)), file.read_text())
        for node in functions(module):
            if node.name.startswith("test_") and not _TEST_NAME.fullmatch(node.name):
                yield f"{module.path}:{node.lineno}: {node.name}"


def _helper_riddles() -> Iterator[str]:
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in parse(str(file.relative_to(ROOT)), file.read_text()).tree.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                continue  # a sentence
            if (RIDDLES | HELPER_METAPHORS).intersection(part.lower() for part in _PART.findall(node.name)):
                yield f"{file.relative_to(ROOT)}:{node.lineno}: {node.name}"


_RULES: dict[str, tuple[Callable[[], Iterator[str]], str]] = {
    "metaphor": (_metaphors, "say it with the field's standard term, or in plain English"),
    "riddle": (_riddles, "a name tells what the thing is"),
    "helper of tests": (_helper_riddles, "a name tells what the thing is"),
    "short function": (_short_functions, "a public function has two words, so that a search finds it"),
    "log event": (
        _log_events,
        "a log event is `noun.verb_past`, so that an operator can alert on it; the rest are fields",
    ),
    "test name": (
        _short_test_names,
        "a test's name is its subject and its behaviour, in at least three words that do not begin with `what`",
    ),
}


@pytest.mark.parametrize("rule", _RULES)
def test_names_and_sentences_follow_the_rules(rule: str) -> None:
    find, advice = _RULES[rule]
    found = list(find())
    assert not found, f"{advice}:\n" + "\n".join(found)


def test_clients_know_no_engine() -> None:
    """The API tells what engines can do; only examples of commands name one."""
    sources = [*(ROOT / "roost/cli").rglob("*.py"), *(ROOT / "dashboard/src").rglob("*.ts*")]
    free = {"examples.py", "schema.d.ts"}
    found = [
        str(path.relative_to(ROOT))
        for path in sources
        if path.name not in free and ".test." not in path.name
        if re.search(r"openclaw|hermes", path.read_text(), re.IGNORECASE)
    ]
    assert len(sources) > 200
    assert found == []


def _names(module: Module) -> Iterator[tuple[int, str]]:
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a decorator makes the function an endpoint or a command, whose name the API or the shell shows."""
    return any(isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) for item in node.decorator_list)
