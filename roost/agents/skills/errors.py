"""Errors of skills."""

from roost.core.problem import InvalidInput


class InvalidSkill(InvalidInput):
    """`SKILL.md` is malformed; the message is `SKILL.md:LINE: reason`, without the line for a field."""

    message = "Invalid skill"


class InvalidBundle(InvalidInput):
    """The files cannot be a skill; the message names the file and the reason."""

    message = "Invalid bundle"
