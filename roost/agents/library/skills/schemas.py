"""Requests and responses of skills (contract: Skills); what it leaves open follows existing clients."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool

from roost.agents.library.skills import model
from roost.agents.library.skills.model import (
    ATTACHED_LIMIT,
    AttachedSkill,
    AttachedSkillDetail,
    NewSkill,
    Skill,
    SkillVersion,
)
from roost.agents.library.skills.skill_wants import WantedSecret
from roost.agents.library.skills.verdict import VerdictLevel
from roost.web.schemas import BINARY, ApiSchema, Moment, Text, describe_body

_CID = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
_DESCRIPTION_LIMIT = 1024
_Reference = Annotated[Text, Field(min_length=1, max_length=256)]
_Version = Annotated[Text, Field(max_length=model.VERSION_LENGTH, examples=["1.1.0"])]


def _split_names(value: object) -> object:
    """Return the names of a form's field, which are separated by commas."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


class RegisterSkillFields(ApiSchema):
    """What a registration can say besides the files; `name` is that of `SKILL.md`, whatever it says."""

    name: Annotated[Text, Field(max_length=128, examples=["csv-insight"])] | None = None
    description: Annotated[Text, Field(max_length=_DESCRIPTION_LIMIT)] | None = None
    version: _Version | None = None
    slug: Annotated[Text, Field(max_length=model.SLUG_LENGTH, examples=["@ada/csv-insight"])] | None = None
    env_vars: Annotated[
        Sequence[Annotated[Text, Field(max_length=128)]],
        BeforeValidator(_split_names),
        Field(max_length=model.ENV_VARS_LIMIT, examples=[["API_KEY"]]),
    ] = ()
    file_id: Annotated[Text, Field(max_length=64)] | None = None

    def to_new_skill(self) -> NewSkill:
        """Return the validated fields. Raises InvalidSkillRequest."""
        return NewSkill(
            version=None if self.version is None else model.parse_version(self.version),
            slug=None if self.slug is None else model.parse_slug(self.slug),
            name=self.name,
            description=self.description or None,
            env_vars=model.parse_env_vars(self.env_vars),
            file_id=self.file_id,
        )


class RegisterSkillRequest(RegisterSkillFields):
    """A registration of a folder that the tenant has stored."""

    skill_cid: Annotated[Text, Field(min_length=1, max_length=128, examples=[_CID])]


class AttachSkillsRequest(ApiSchema):
    """`skillCids` are CIDs, ids or slugs of the library; `acknowledge` admits skills that are found dangerous."""

    skill_cids: Annotated[
        Sequence[_Reference], Field(min_length=1, max_length=ATTACHED_LIMIT, examples=[[_CID, "@ada/csv-insight"]])
    ]
    acknowledge: StrictBool = False


class UpdateSkillRequest(ApiSchema):
    """`version` or `skillCid` selects a version; without both it is the newest."""

    version: _Version | None = None
    skill_cid: Annotated[Text, Field(max_length=128, examples=[_CID])] | None = None
    acknowledge: StrictBool = False


class EnvVarRecord(ApiSchema):
    name: str
    description: str
    required: bool


class WantsRecord(ApiSchema):
    """Programs and hosts that a skill wants; its variables are `envVars`."""

    programs: Sequence[str]
    hosts: Sequence[str]


class FindingRecord(ApiSchema):
    rule: str
    level: VerdictLevel
    path: str
    line: int
    excerpt: str


class VerdictRecord(ApiSchema):
    """Result of the check of all files by the rules of that version."""

    level: VerdictLevel
    rules_version: str
    findings: Sequence[FindingRecord]


class SkillRecord(ApiSchema):
    """A skill of the library, with one of its versions: in lists the newest."""

    skill_id: str
    skill_cid: str
    name: str
    slug: str | None
    description: str
    version: str
    created_at: Moment
    user_id: str
    env_vars: Sequence[EnvVarRecord]
    file_id: str | None
    files: int
    size: int
    wants: WantsRecord
    warnings: Sequence[str]
    verdict: VerdictRecord

    @classmethod
    def from_version(cls, skill: Skill, version: SkillVersion) -> Self:
        fields = {"skill_cid": version.cid, "name": skill.name, "slug": skill.slug, "user_id": skill.tenant_id}
        found = {**vars(version), **fields, "env_vars": _list_env_vars(version)}
        return cls.model_validate(found, from_attributes=True)


class SkillList(ApiSchema):
    skills: Sequence[SkillRecord] = Field(examples=[[]])
    current_user_id: str


class SkillResponse(ApiSchema):
    success: Literal[True] = True
    skill: SkillRecord


class SkillVersionList(ApiSchema):
    """The versions of a skill, newest first."""

    skill_id: str
    name: str
    versions: Sequence[SkillRecord]


class DeleteSkillResponse(ApiSchema):
    success: Literal[True] = True
    message: str = "Skill removed from the library"
    was_in_library: Literal[True] = True


class AttachedSkillRecord(ApiSchema):
    """A skill of an agent; `synced` tells whether its files are in the workspace."""

    agent_id: str
    skill_id: str
    skill_cid: str
    name: str
    slug: str | None
    description: str
    version: str
    attached_at: Moment
    synced: bool
    verdict: VerdictLevel

    @classmethod
    def from_attached(cls, agent_id: str, attached: AttachedSkill, **fields: Any) -> Self:
        """Return a record; `fields` are those of a kind that has more."""
        skill, version = attached.skill, attached.version
        return cls(
            agent_id=agent_id,
            skill_id=skill.id,
            skill_cid=version.cid,
            name=skill.name,
            slug=skill.slug,
            description=version.description,
            version=version.version,
            attached_at=attached.attached_at,
            synced=attached.is_delivered,
            verdict=version.verdict.level,
            **fields,
        )


class MissingRecord(ApiSchema):
    """What a skill wants and its agent lacks: names of secrets, programs, hosts that its egress rules refuse.

    `programs` is null if the agent does not run.
    """

    secrets: Sequence[str] = Field(examples=[["API_KEY"]])
    programs: Sequence[str] | None
    hosts: Sequence[str]


class AgentSkillRecord(AttachedSkillRecord):
    """`loaded` tells whether the engine lists the skill; null if it cannot be asked.

    fault: why a running engine does not list or use it; null while it may still do so.
    """

    loaded: bool | None
    fault: str | None = None
    missing: MissingRecord

    @classmethod
    def from_detail(cls, agent_id: str, detail: AttachedSkillDetail) -> Self:
        missing = MissingRecord(**vars(detail.missing))
        return cls.from_attached(
            agent_id, detail.attached, loaded=detail.is_loaded, fault=detail.fault, missing=missing
        )


class AgentSkillList(ApiSchema):
    skills: Sequence[AgentSkillRecord]


class AttachSkillsResponse(AgentSkillList):
    """`attached` counts the new ones; `skills` are all that the request names."""

    success: Literal[True] = True
    attached: int


class DetachSkillResponse(ApiSchema):
    success: Literal[True] = True
    message: str = "Skill detached"


class SkillUpdateRecord(ApiSchema):
    """An attached skill with a newer version."""

    skill_id: str
    name: str
    skill_cid: str
    version: str
    latest_cid: str
    latest_version: str
    verdict: VerdictLevel

    @classmethod
    def from_update(cls, attached: AttachedSkill, newest: SkillVersion) -> Self:
        return cls(
            skill_id=attached.skill.id,
            name=attached.skill.name,
            skill_cid=attached.version.cid,
            version=attached.version.version,
            latest_cid=newest.cid,
            latest_version=newest.version,
            verdict=newest.verdict.level,
        )


class SkillUpdateList(ApiSchema):
    updates: Sequence[SkillUpdateRecord]


class UpdateSkillResponse(ApiSchema):
    success: Literal[True] = True
    previous_version: str
    skill: AttachedSkillRecord


def _describe_registration() -> dict[str, Any]:
    """Return the OpenAPI description of the three bodies that register a version."""
    request = RegisterSkillRequest.model_json_schema(by_alias=True)
    fields: Mapping[str, Any] = RegisterSkillFields.model_json_schema(by_alias=True)["properties"]
    file = {**BINARY, "description": "Several are the files of a folder, named by their paths; one may be a zip."}
    properties = {"file": file, **fields, "envVars": {"type": "string", "description": "Separated by commas."}}
    form: dict[str, Any] = {"type": "object", "required": ["file"], "properties": properties}
    form["examples"] = [{"file": "...", "version": "1.0.0"}]
    request["examples"] = [{"skillCid": _CID, "name": "csv-insight", "envVars": ["API_KEY"]}]
    description = describe_body("application/json", request)
    content = description["requestBody"]["content"]
    content["multipart/form-data"] = {"schema": form}
    content["application/zip"] = {"schema": BINARY}
    return description


REGISTER_OPENAPI = _describe_registration()


def _list_env_vars(version: SkillVersion) -> Sequence[WantedSecret]:
    """List the variables that the skill wants, and those that only its registration names."""
    known = {one.name for one in version.wants.secrets}
    others = [WantedSecret(name, required=False) for name in version.env_vars if name not in known]
    return [*version.wants.secrets, *others]
