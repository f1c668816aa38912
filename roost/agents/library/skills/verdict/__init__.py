"""Verdict about a skill: rules that search its files for what harms the owner of an agent."""

from roost.agents.library.skills.verdict.check import check_bundle
from roost.agents.library.skills.verdict.model import Finding, Verdict, VerdictLevel

__all__ = ["Finding", "Verdict", "VerdictLevel", "check_bundle"]
