"""Skills of a tenant and of an agent (contract: Skills)."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from roost.agents.library.skills import schemas
from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.library.skills.bundle import FILES_LIMIT, Bundle, BundleUpload, read_zip
from roost.agents.library.skills.errors import AcknowledgementRefused
from roost.agents.library.skills.model import NewSkill, RegisteredSkill
from roost.agents.library.skills.service import SkillService
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.problem import PayloadTooLarge
from roost.identity.authenticator import AgentCaller, AgentId, ReaderCaller, ServiceCaller, TenantCaller
from roost.identity.caller import Caller, CallerKind
from roost.web.multipart import receive_form
from roost.web.schemas import SlashText
from roost.web.service_registry import provide_service

_JSON_LIMIT = 64 * 1024
Library = Annotated[SkillService, Depends(provide_service(SkillService))]
AgentSkills = Annotated[AgentSkillService, Depends(provide_service(AgentSkillService))]
SkillId = Annotated[str, SlashText, Path(alias="skillId", max_length=256)]
SkillCid = Annotated[str, SlashText, Path(alias="skillCid", max_length=256)]
router = APIRouter(prefix="/v0", tags=["skills"])


@dataclass(frozen=True)
class _SkillSource:
    """A request to register: files, or the CID of a stored folder."""

    new: NewSkill
    bundle: Bundle | None = None
    cid: str = ""

    async def register(self, library: SkillService, tenant_id: str, skill_id: str | None = None) -> RegisteredSkill:
        if self.bundle is None:
            return await library.register_stored(tenant_id, self.cid, self.new, skill_id)
        return await library.register(tenant_id, self.bundle, self.new, skill_id)


async def _receive_source(request: Request) -> _SkillSource:
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        if media_type == "multipart/form-data":
            upload = BundleUpload()
            fields = await receive_form(request.stream(), content_type, upload, FILES_LIMIT)
            given = {name: text for name, text in fields.items() if text}  # forms send fields that are left empty, too
            new = schemas.RegisterSkillFields.model_validate(given).to_new_skill()
            return _SkillSource(new, await run_in_daemon_thread(upload.finish))
        body = await request.body()
        if media_type == "application/zip":
            return _SkillSource(NewSkill(), await run_in_daemon_thread(lambda: read_zip(body)))
        if len(body) > _JSON_LIMIT:
            raise PayloadTooLarge
        registration = schemas.RegisterSkillRequest.model_validate_json(body)
        return _SkillSource(registration.to_new_skill(), cid=registration.skill_cid)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from None


def _acknowledges(caller: Caller, *, acknowledged: bool) -> bool:
    """Return what the request says. Raises AcknowledgementRefused for an agent that acknowledges for its owner."""
    if acknowledged and caller.kind is CallerKind.PLATFORM:
        raise AcknowledgementRefused
    return acknowledged


Source = Annotated[_SkillSource, Depends(_receive_source)]


@router.get("/skills")
async def list_skills(caller: TenantCaller, library: Library) -> schemas.SkillList:
    """List the skills of the library with their newest versions."""
    found = await library.list(caller.tenant_id)
    records = [schemas.SkillRecord.from_version(one.skill, one.version) for one in found]
    return schemas.SkillList(skills=records, current_user_id=caller.tenant_id)


@router.post(
    "/skills",
    status_code=201,
    responses={200: {"model": schemas.SkillResponse}, 409: {}},
    openapi_extra=schemas.REGISTER_OPENAPI,
)
async def register_skill(
    caller: TenantCaller, source: Source, library: Library, response: Response
) -> schemas.SkillResponse:
    """Register a skill from a folder: its files, a zip, or the CID of a folder that is stored.

    A skill with that name gets a new version. Content that the library has is 200, with the version that it was.
    """
    registered = await source.register(library, caller.tenant_id)
    response.status_code = 201 if registered.is_new else 200
    return schemas.SkillResponse(skill=schemas.SkillRecord.from_version(registered.skill, registered.version))


@router.get("/skills/{skillId}/versions")
async def list_skill_versions(caller: TenantCaller, skill_id: SkillId, library: Library) -> schemas.SkillVersionList:
    """List the versions of a skill, newest first."""
    skill, versions = await library.list_versions(caller.tenant_id, skill_id)
    records = [schemas.SkillRecord.from_version(skill, version) for version in versions]
    return schemas.SkillVersionList(skill_id=skill.id, name=skill.name, versions=records)


@router.post(
    "/skills/{skillId}/versions",
    status_code=201,
    responses={200: {"model": schemas.SkillResponse}, 409: {}},
    openapi_extra=schemas.REGISTER_OPENAPI,
)
async def publish_skill_version(
    caller: TenantCaller, skill_id: SkillId, source: Source, library: Library, response: Response
) -> schemas.SkillResponse:
    """Publish a version of a skill; without a number in the request or in `SKILL.md`, it is the next patch."""
    registered = await source.register(library, caller.tenant_id, skill_id)
    response.status_code = 201 if registered.is_new else 200
    return schemas.SkillResponse(skill=schemas.SkillRecord.from_version(registered.skill, registered.version))


@router.delete("/skills/{skillCid}", responses={409: {}})
async def delete_skill(caller: ServiceCaller, skill_cid: SkillCid, library: Library) -> schemas.DeleteSkillResponse:
    """Remove a version by its CID, or a skill with all versions by its id, unless an agent has it."""
    await library.delete(caller.tenant_id, skill_cid)
    return schemas.DeleteSkillResponse()


@router.get("/agents/{agentId}/skills")
async def list_agent_skills(_: ReaderCaller, agent_id: AgentId, skills: AgentSkills) -> schemas.AgentSkillList:
    """List the agent's skills, what each of them lacks, and whether the engine has loaded it."""
    details = await skills.describe(agent_id)
    return schemas.AgentSkillList(skills=[schemas.AgentSkillRecord.from_detail(agent_id, one) for one in details])


@router.post("/agents/{agentId}/skills", responses={409: {}})
async def attach_skills(
    caller: ReaderCaller, agent_id: AgentId, body: schemas.AttachSkillsRequest, skills: AgentSkills
) -> schemas.AttachSkillsResponse:
    """Attach skills by CID, id or slug; a running agent has them at once, a stopped one at its next start."""
    acknowledged = _acknowledges(caller, acknowledged=body.acknowledge)
    count, details = await skills.attach(caller.tenant_id, agent_id, body.skill_cids, acknowledged=acknowledged)
    records = [schemas.AgentSkillRecord.from_detail(agent_id, one) for one in details]
    return schemas.AttachSkillsResponse(attached=count, skills=records)


@router.delete("/agents/{agentId}/skills/{skillId}")
async def detach_skill(
    _: AgentCaller, agent_id: AgentId, skill_id: SkillId, skills: AgentSkills
) -> schemas.DetachSkillResponse:
    """Detach a skill, whose files leave the workspace."""
    await skills.detach(agent_id, skill_id)
    return schemas.DetachSkillResponse()


@router.get("/agents/{agentId}/skills/updates")
async def list_skill_updates(_: ReaderCaller, agent_id: AgentId, skills: AgentSkills) -> schemas.SkillUpdateList:
    """List the agent's skills that have a newer version in the library."""
    updates = [schemas.SkillUpdateRecord.from_update(*one) for one in await skills.list_updates(agent_id)]
    return schemas.SkillUpdateList(updates=updates)


@router.post("/agents/{agentId}/skills/{skillId}/update", responses={409: {}})
async def update_skill(
    caller: AgentCaller,
    agent_id: AgentId,
    skill_id: SkillId,
    skills: AgentSkills,
    body: schemas.UpdateSkillRequest | None = None,
) -> schemas.UpdateSkillResponse:
    """Replace the attached version by the newest, or by a given newer one. 409 for an older one."""
    request = body or schemas.UpdateSkillRequest()
    acknowledged = _acknowledges(caller, acknowledged=request.acknowledge)
    wanted = request.skill_cid or request.version
    before, after = await skills.update(agent_id, skill_id, wanted, acknowledged=acknowledged)
    record = schemas.AttachedSkillRecord.from_attached(agent_id, after)
    return schemas.UpdateSkillResponse(previous_version=before.version.version, skill=record)
