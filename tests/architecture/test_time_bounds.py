"""Every regular expression of the package takes linear time: each is attacked with repeats of its own parts."""

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from roost.http.stack.url_map import URL_MAP
from tests.architecture.code import Module, modules
from tests.architecture.pattern_attacks import find_slow_text, has_steep_growth

COMPILERS = frozenset({"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
SCANNERS = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})
ELSEWHERE = {
    "roost/agents/library/skills/verdict/check.py": "the rules, which tests/agents/library/skills/verdict attacks",
    "roost/drivers/text_extractor/normalization.py": "one class and a count",
    "roost/storage/files/uploads/mime_sniffing.py": "marks at the beginning of a file, of which it reads 4 kB",
    "roost/web/url_rule.py": "the URL map, below",
}
"""Where the expression is no constant of the module, and what tests it."""
SLOW = {
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|0o[0-7]+$": "PyYAML matches it from the start of a scalar",
}


@dataclass(frozen=True)
class Use:
    """One regular expression of the package; anchored: it is matched from the beginning of a text only."""

    place: str
    pattern: re.Pattern[Any]
    anchored: bool


def collect_uses() -> Iterator[Use]:
    for module in modules():
        for node in module.nodes:
            if not isinstance(node, ast.Call) or not is_compiler(node.func):
                continue
            place = f"{module.path}:{node.lineno}"
            try:
                pattern = compile_as_in(module, node)
            except NameError:
                assert module.path in ELSEWHERE, f"{place}: make the expression a constant of the module"
                continue
            yield Use(place, pattern, not scans(module, node))


def is_compiler(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in COMPILERS
    )


def compile_as_in(module: Module, call: ast.Call) -> re.Pattern[Any]:
    assert isinstance(call.func, ast.Attribute)
    names = vars(importlib.import_module(module.name))
    flags = call.args[1:] if call.func.attr == "compile" else []
    flags += [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    first, *more = (eval(compile(ast.Expression(one), module.path, "eval"), names) for one in (call.args[0], *flags))
    return re.compile(first, *more)


def scans(module: Module, call: ast.Call) -> bool:
    """Return whether the expression is searched for in texts; one without a name counts as all of its module."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr != "compile":
        return call.func.attr in SCANNERS
    name = next(
        (
            one.targets[0].id
            for one in module.nodes
            if isinstance(one, ast.Assign) and one.value is call and isinstance(one.targets[0], ast.Name)
        ),
        None,
    )
    used = {
        node.attr
        for node in module.nodes
        if isinstance(node, ast.Attribute)
        and (name is None or (isinstance(node.value, ast.Name) and node.value.id == name))
    }
    return bool(used & (SCANNERS - (set() if name else {"split"})))


def test_no_pattern_takes_more_than_linear_time() -> None:
    slow = {
        use.place: text
        for use in collect_uses()
        if use.pattern.pattern not in SLOW and (text := find_slow_text(use.pattern, anchored=use.anchored))
    }
    assert not slow


def test_the_attack_finds_patterns_that_backtrack() -> None:
    for expression in (r"\S*/\S*", r"(a+)+b", r"<!--.*x", r"\s+#"):
        assert find_slow_text(re.compile(expression), anchored=False), expression
    assert find_slow_text(re.compile(r"every\s+(\d{1,9})?\s*m"), anchored=True)
    assert find_slow_text(re.compile(r"(?<!\S)[^\s/]*+/\S*"), anchored=False) is None


PARSER = re.compile(r"_?(parse|sanitize|redact|hide|normalize|split|decode|fold|find|match|is|check|quote|unquote)_\w+")
MARKS = r"""
    a A 1 0 . .. / ../ \ - _ = : , ; % %41 [ { ( " ' < {} [] * ** */ ? & a= a=b& a, [0, {"a": xn--
    bytes=0-, W/"a", q=0.1, *a http:// a@ #
"""
SPACED = (" ", "\t", "\n", "\r\n", "\xe9", "a=1; ", "- ", "&a ", "\0", "\u0300\u0316", "\U0001f3f4", "---\n", "a: ")
UNITS = (*MARKS.split(), *SPACED)
SHORT = {
    "roost.agents.library.skills.verdict.content_checks.fold_lookalikes": "chunks of 2,000 characters",
    "roost.storage.content.unixfs.cid.decode_base58": "CIDs of at most 512 characters",
}
"""Functions that take quadratic time, and the short texts that their callers cut or check."""


def collect_parsers() -> Iterator[tuple[str, Callable[[Any], Any], bool]]:
    """Yield the functions that read one text or bytes, by the words that their names begin with."""
    for module in modules():
        if module.within("roost/cli/*", "roost/app/*", "roost/migrations/*", "roost/warden/*"):
            continue
        for node in module.tree.body:
            if not isinstance(node, ast.FunctionDef) or not PARSER.fullmatch(node.name) or node.args.kwonlyargs:
                continue
            taken = [ast.unparse(one.annotation) for one in node.args.args if one.annotation]
            if len(taken) - len(node.args.defaults) == 1 and taken[0] in {"str", "bytes"}:
                name = f"{module.name}.{node.name}"
                yield name, getattr(importlib.import_module(module.name), node.name), taken[0] == "bytes"


def find_slow_unit(parse: Callable[[Any], Any], *, of_bytes: bool) -> str | None:
    def seconds_of(size: int) -> float:
        text = unit * (size // len(unit)) + after
        start = time.thread_time()
        with suppress(Exception):  # most texts are refused
            found = parse(text.encode(errors="replace") if of_bytes else text)
            for _ in found if isinstance(found, Iterator) else ():
                pass
        return time.thread_time() - start

    for unit in UNITS:
        for after in ("", "\0!"):
            if has_steep_growth(seconds_of):
                return f"{unit!r} {after!r}"
    return None


def test_no_parser_takes_more_than_linear_time() -> None:
    slow = {name: unit for name, parse, kind in collect_parsers() if (unit := find_slow_unit(parse, of_bytes=kind))}
    assert slow.keys() <= SHORT.keys(), slow


def test_no_row_of_the_url_map_takes_more_than_linear_time() -> None:
    slow = [rule.pattern for rule in URL_MAP if find_slow_text(re.compile(rule.pattern, re.DOTALL), anchored=True)]
    assert not slow
