"""Check of a bundle against the rules. Pure; the time is bounded by the limits below, whatever the files contain."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from roost.agents.skills.bundle import Bundle
from roost.agents.skills.verdict.content_checks import decode_text, find_content_problems, is_media
from roost.agents.skills.verdict.model import Finding, SkillRule, Verdict, VerdictLevel
from roost.agents.skills.verdict.rules import RULES, rules_version
from roost.agents.skills.verdict.text_checks import find_encoded_blocks, find_unicode_problems, fold_lookalikes
from roost.core.sanitize import sanitize_line

TEXT_LIMIT = 2 * 1000**2
"""Maximum characters of a bundle that are searched; a bundle with more is dangerous, because the rest is unknown."""
WINDOW, OVERLAP = 2000, 500
"""Long lines are searched in overlapping parts."""
WINDOWS_LIMIT = 20_000
"""Maximum number of parts that one rule searches closely: those with a trigger."""
FINDINGS_PER_RULE = 5
"""Of one rule in one file."""
FINDINGS_LIMIT = 200
EXCERPT_LENGTH = 120

_RULE_OF = {rule.id: rule for rule in RULES}
_CONTINUED = re.compile(r"(?:\\|\||&&)\s*$")
_JOINED_LIMIT = 20


@dataclass(frozen=True)
class _TextWindow:
    """Part of a line, or of lines that continue each other; `lower` is in lower case."""

    line: int
    text: str
    lower: str


def check_bundle(bundle: Bundle) -> Verdict:
    """Return the verdict about the files."""
    findings: list[Finding] = []
    searched = 0
    windows_left = {rule.id: WINDOWS_LIMIT for rule in RULES}
    for path, file in bundle.files.items():
        found = [_find(problem.rule, path, 1, problem.reason) for problem in find_content_problems(path, file.content)]
        is_program = any(finding.rule in ("executable-content", "nested-archive") for finding in found)
        findings += found
        if is_program or is_media(file.content):
            continue
        text = decode_text(file.content)
        if searched + len(text) > TEXT_LIMIT:
            findings.append(
                _find("unchecked-content", path, 1, f"more than {TEXT_LIMIT // 1000**2} million characters")
            )
        text = text[: TEXT_LIMIT - searched]
        searched += len(text)
        findings += _check_text(path, text, windows_left)
    findings.sort(key=lambda finding: (-finding.level.rank, finding.path, finding.line, finding.rule))
    level = findings[0].level if findings else VerdictLevel.CLEAN
    return Verdict(level, findings[:FINDINGS_LIMIT], rules_version())


def _check_text(path: str, text: str, windows_left: dict[str, int]) -> Iterator[Finding]:
    lines = re.split(r"\r\n|\r|\n", text)
    yield from _limit(_check_lines(path, lines))
    windows = list(_windows(lines))
    lower = "\n".join(window.lower for window in windows)
    for rule in RULES:
        if rule.patterns and any(word in lower for word in rule.triggers):
            yield from _check_rule(rule, path, windows, windows_left)


def _check_lines(path: str, lines: Sequence[str]) -> Iterator[Finding]:
    for number, line in enumerate(lines, 1):
        for rule, at in find_unicode_problems(line):
            yield _find(rule, path, number, _excerpt(line, at))
        for at in find_encoded_blocks(line) if len(line) >= 300 else ():
            yield _find("encoded-block", path, number, _excerpt(line, at))


def _limit(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Pass on a limited number of findings of each rule."""
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.rule] = counts.get(finding.rule, 0) + 1
        if counts[finding.rule] <= FINDINGS_PER_RULE:
            yield finding


def _check_rule(
    rule: SkillRule, path: str, windows: Sequence[_TextWindow], windows_left: dict[str, int]
) -> Iterator[Finding]:
    patterns = _compile(rule.patterns)
    lines: set[int] = set()
    for window in windows:
        if window.line in lines or not any(word in window.lower for word in rule.triggers):
            continue
        if not windows_left[rule.id]:
            yield _find("unchecked-content", path, window.line, f"too many lines for the rule {rule.id}")
            return
        windows_left[rule.id] -= 1
        found = next((found for pattern in patterns if (found := pattern.search(window.text))), None)
        if found is not None:
            lines.add(window.line)
            yield _find(rule.id, path, window.line, _excerpt(window.text, found.start()))
            if len(lines) == FINDINGS_PER_RULE:
                return


def _windows(lines: Sequence[str]) -> Iterator[_TextWindow]:
    """Yield the parts of all lines; a line that ends in a backslash, a pipe or `&&` goes on in the next one."""
    number = 0
    while number < len(lines):
        first = number
        parts = [lines[number]]
        while _CONTINUED.search(parts[-1][-100:]) and number + 1 < len(lines) and len(parts) < _JOINED_LIMIT:
            number += 1
            parts.append(lines[number])
        number += 1
        joined = " ".join(part.rstrip().removesuffix("\\") if len(parts) > 1 else part for part in parts)
        whole = fold_lookalikes(joined)
        for start in range(0, max(len(whole) - OVERLAP, 1), WINDOW - OVERLAP):
            text = whole[start : start + WINDOW]
            if text and not text.isspace():
                yield _TextWindow(first + 1, text, text.lower())


@cache
def _compile(patterns: Sequence[str]) -> Sequence[re.Pattern[str]]:
    return [re.compile(pattern, re.IGNORECASE) for pattern in patterns]


def _find(rule: str, path: str, line: int, excerpt: str) -> Finding:
    return Finding(rule, _RULE_OF[rule].level, path, line, sanitize_line(excerpt)[:EXCERPT_LENGTH])


def _excerpt(line: str, at: int) -> str:
    start = max(at - EXCERPT_LENGTH // 4, 0) if len(line) > EXCERPT_LENGTH else 0
    return line[start : start + EXCERPT_LENGTH].strip()
