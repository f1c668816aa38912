"""Verdicts about bundles, and the rules that they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class VerdictLevel(StrEnum):
    """review: a person should look at it. dangerous: needs an acknowledgement."""

    CLEAN = "clean"
    REVIEW = "review"
    DANGEROUS = "dangerous"

    @property
    def rank(self) -> int:
        return list(VerdictLevel).index(self)


@dataclass(frozen=True)
class Finding:
    """A place that a rule matches. line: counted from 1; excerpt: sanitized, on one line."""

    rule: str
    level: VerdictLevel
    path: str
    line: int
    excerpt: str


@dataclass(frozen=True)
class Verdict:
    """The highest level of the findings, and the version of the rules that found them."""

    level: VerdictLevel
    findings: Sequence[Finding]
    rules_version: str


@dataclass(frozen=True)
class SkillRule:
    """A rule; one without patterns has a function in `content_checks.py`.

    patterns: regular expressions for one line, without regard to case; each quantifier is bounded, and long gaps are
    those of `followed_by`, so that a hostile line takes little time. triggers: a line that has none of them, in lower
    case, cannot match.
    """

    id: str
    level: VerdictLevel
    description: str
    patterns: Sequence[str] = ()
    triggers: Sequence[str] = ()


def followed_by(first: str, limit: int, excluded: str = "") -> str:
    """Return a pattern of `first` and at most `limit` other characters of its line, but none of `excluded`.

    The gap has no further `first`: a match that begins there is shorter, and each character is in one gap only, so that
    a search takes linear time.
    """
    return rf"{first}(?:(?!{first})[^\n{excluded}]){{0,{limit}}}?"
