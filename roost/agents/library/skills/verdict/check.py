"""Check of a bundle against the rules. Pure; the limits below bound its time, whatever the files contain."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.verdict.content_checks import (
    cut_chunks,
    decode_text,
    find_content_problems,
    find_encoded_blocks,
    find_homoglyph,
    find_unicode_problems,
    fold_lookalikes,
    is_media,
    remove_flags,
)
from roost.agents.library.skills.verdict.model import Finding, SkillRule, Verdict, VerdictLevel
from roost.agents.library.skills.verdict.rules import RULES, rules_version
from roost.core.sanitize import sanitize_line

TEXT_LIMIT = 2 * 1000**2
"""Maximum characters of a bundle that are searched; a bundle with more is dangerous, because the rest is unknown."""
CPU_LIMIT = 0.75
"""Seconds of one bundle; one that needs more is dangerous, because the rest is unknown. Prose takes a fifth of it."""
_BEFORE, _AFTER = 500, 1500
"""Characters around a trigger that are searched, at most up to the ends of its line."""
FINDINGS_PER_RULE = 5
"""Of one rule in one file."""
FINDINGS_LIMIT = 200
EXCERPT_LENGTH = 120

_RULE_OF = {rule.id: rule for rule in RULES}
_TRIGGERS = frozenset(word for rule in RULES for word in rule.triggers)
_CONTINUED = re.compile(r"[|\\&](?:(?<=[|\\])|(?<=&&))[ \t]{0,99}\n")
"""The end of a line that goes on in the next one: after a backslash, a pipe or `&&`."""


class _Budget:
    """CPU time of this thread that the check of a bundle may use."""

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        """Raise TimeoutError when nothing is left; call it at least for every few thousand characters."""
        if time.thread_time() > self._end:
            raise TimeoutError


@dataclass(frozen=True)
class _Text:
    """Text of a file as a reader sees it, without line breaks in continued lines; `lower` is in lower case.

    unjoined: the same with all line breaks, at the same positions. first: the first place of each trigger, or -1.
    """

    unjoined: str
    text: str
    lower: str
    first: Mapping[str, int]


def check_bundle(bundle: Bundle) -> Verdict:
    """Return the verdict about the files."""
    for rule in RULES:
        _compile(rule.patterns)  # once in a process, at the cost of no bundle
    findings: list[Finding] = []
    budget, searched = _Budget(CPU_LIMIT), 0
    for path, file in bundle.files.items():
        found = [_find(rule, path, 1, reason) for rule, reason in find_content_problems(path, file.content)]
        is_program = any(finding.rule in ("executable-content", "nested-archive") for finding in found)
        findings += found
        if is_program or is_media(file.content):
            continue
        text = decode_text(file.content)
        if searched + len(text) > TEXT_LIMIT:
            excess = f"more than {TEXT_LIMIT // 1000**2} million characters"
            findings.append(_find("unchecked-content", path, 1, excess))
        text = text[: TEXT_LIMIT - searched]
        searched += len(text)
        try:
            findings.extend(_check_text(path, text, budget))  # keeps what was found before the budget was spent
        except TimeoutError:
            findings.append(_find("unchecked-content", path, 1, f"more than {CPU_LIMIT} seconds of CPU"))
            break
    findings.sort(key=lambda finding: (-finding.level.rank, finding.path, finding.line, finding.rule))
    level = findings[0].level if findings else VerdictLevel.CLEAN
    return Verdict(level, findings[:FINDINGS_LIMIT], rules_version())


def _check_text(path: str, text: str, budget: _Budget) -> Iterator[Finding]:
    budget.check()
    text = remove_flags(text.replace("\r\n", "\n").replace("\r", "\n"))
    encoded = (("encoded-block", at) for at in find_encoded_blocks(text, FINDINGS_PER_RULE))
    for rule, at in (*find_unicode_problems(text, FINDINGS_PER_RULE), *encoded):
        yield _find(rule, path, _line_of(text, at), _excerpt(text, at))
    folded, homoglyphs = text, 0
    if not text.isascii():
        chunks: list[str] = []
        known: set[str] = set()
        for at, chunk in cut_chunks(text):
            budget.check()
            chunks.append(fold_lookalikes(chunk))
            if homoglyphs < FINDINGS_PER_RULE and (place := find_homoglyph(chunk, known)) is not None:
                homoglyphs += 1
                yield _find("homoglyphs", path, _line_of(text, at + place), _excerpt(text, at + place))
        folded = "".join(chunks)
    joined = _CONTINUED.sub(lambda found: found[0].rstrip("\\ \t\n").ljust(len(found[0])), folded)
    lower, first = joined.lower(), dict[str, int]()
    for word in _TRIGGERS:
        budget.check()
        first[word] = lower.find(word)
    searched = _Text(folded, joined, lower, first)
    for rule in RULES:
        if rule.patterns:
            yield from _check_rule(rule, path, searched, budget)


def _check_rule(rule: SkillRule, path: str, searched: _Text, budget: _Budget) -> Iterator[Finding]:
    """Yield the findings of a rule, at most one of a line."""
    patterns, text = _compile(rule.patterns), searched.text
    count, line_end = 0, -1
    upcoming = {word: at for word in rule.triggers if (at := searched.first[word]) >= 0}
    for start, end in _places(upcoming, searched.lower, budget):
        if start < line_end:
            continue
        found = next((found for pattern in patterns if (found := pattern.search(text, start, end))), None)
        if found is None:
            continue
        at = found.start()
        yield _find(rule.id, path, _line_of(searched.unjoined, at), _excerpt(text, at))
        count, line_end = count + 1, text.find("\n", at)
        if count == FINDINGS_PER_RULE or line_end < 0:
            return


def _places(upcoming: dict[str, int], lower: str, budget: _Budget) -> Iterator[tuple[int, int]]:
    """Yield the parts of lines around all triggers, in order; `upcoming` has the first place of each."""
    while upcoming:
        budget.check()
        first = min(upcoming.values())
        start = max(lower.rfind("\n", max(first - _BEFORE, 0), first) + 1, first - _BEFORE)
        done = end = lower.find("\n", first, first + _BEFORE + _AFTER)
        if end < 0:
            done, end = first + _AFTER, first + _AFTER + _BEFORE
        yield start, end
        for word in [word for word, at in upcoming.items() if at < done]:
            upcoming[word] = lower.find(word, done)
            if upcoming[word] < 0:
                del upcoming[word]


@cache
def _compile(patterns: Sequence[str]) -> Sequence[re.Pattern[str]]:
    return [re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns]


def _find(rule: str, path: str, line: int, excerpt: str) -> Finding:
    return Finding(rule, _RULE_OF[rule].level, path, line, sanitize_line(excerpt)[:EXCERPT_LENGTH])


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _excerpt(text: str, at: int) -> str:
    """Return the line around a position, or a part of a long one."""
    start = max(text.rfind("\n", 0, at) + 1, at - EXCERPT_LENGTH // 4)
    return text[start : start + EXCERPT_LENGTH].partition("\n")[0].strip()
