"""Errors of skills (contract, Errors)."""

from collections.abc import Sequence

from roost.core.problem import AccessDenied, InvalidInput, NotFound, ResourceConflict

_FINDINGS_SHOWN = 10


class InvalidSkillRequest(InvalidInput):
    """A field of a request is malformed or missing; the message names it."""

    message = "Invalid skill request"


class TooManySkills(InvalidInput):
    """Contract: "attaching skills: more than 10 skills"."""

    message = "An agent can have at most 10 skills"


class SkillLimitReached(AccessDenied):
    message = "Skill limit reached"


class SkillNotFound(NotFound):
    """Unknown, of another tenant, or not attached to the agent; the response does not say which."""

    message = "Skill not found"


class SkillVersionNotFound(NotFound):
    message = "Skill version not found"


class SkillContentNotFound(NotFound):
    """The tenant has not stored a folder with that CID."""

    message = "No content with this CID is stored"


class SkillVersionConflict(ResourceConflict):
    """The version has other content, or an update would not be to a newer one; the message says which."""

    message = "Skill version conflict"


class ConflictingSkills(ResourceConflict):
    """Two skills of one agent have the same name, and so the same folder."""

    message = "Conflicting skills"


class SkillAttached(ResourceConflict):
    message = "Skill is attached to an agent"


class DangerousSkill(ResourceConflict):
    """The check of a version found something dangerous, and the request does not acknowledge it."""

    message = "Dangerous skill"

    def __init__(self, name: str, findings: Sequence[str], remedy: str) -> None:
        shown = "; ".join(findings[:_FINDINGS_SHOWN])
        more = f" and {len(findings) - _FINDINGS_SHOWN} more" if len(findings) > _FINDINGS_SHOWN else ""
        super().__init__(f"The skill {name} is dangerous: {shown}{more}. {remedy}")


class AcknowledgementRefused(AccessDenied):
    """An agent cannot acknowledge for its owner."""

    message = "Only the owner of an agent can acknowledge a dangerous skill"


class InvalidSkill(InvalidInput):
    """`SKILL.md` is malformed; the message is `SKILL.md:LINE: reason`, without the line for a field."""

    message = "Invalid skill"


class InvalidBundle(InvalidInput):
    """The files cannot be a skill; the message names the file and the reason."""

    message = "Invalid bundle"
