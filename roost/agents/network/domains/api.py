"""Domains of an agent (contract: Routes and domains)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.agents.network.domains import schemas
from roost.agents.network.domains.service import AgentDomainService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.service_registry import provide_service

Service = Annotated[AgentDomainService, Depends(provide_service(AgentDomainService))]
DomainId = Annotated[str, Path(alias="domainId", max_length=64)]
router = APIRouter(prefix="/v0/agents/{agentId}/domains", tags=["domains"])


@router.get("")
async def list_domains(_: AgentCaller, agent_id: AgentId, domains: Service) -> schemas.DomainList:
    """List the agent's domains, with what each lacks."""
    found = await domains.list(agent_id)
    return schemas.DomainList(domains=[schemas.DomainRecord.from_domain(one, domains.origin(one)) for one in found])


@router.post("", status_code=201, responses={409: {}})
async def register_domain(
    _: AgentCaller, agent_id: AgentId, body: schemas.RegisterDomainRequest, domains: Service
) -> schemas.DomainResponse:
    """Register a subdomain, which is active at once, or a domain of one's own, which is verified first."""
    registered = await domains.register(
        agent_id, body.subdomain, body.custom_domain, body.target_port, is_protected=body.protected
    )
    return schemas.DomainResponse(domain=schemas.DomainRecord.from_domain(registered, domains.origin(registered)))


@router.post("/challenge")
async def get_challenge(
    _: AgentCaller, agent_id: AgentId, body: schemas.ChallengeRequest, domains: Service
) -> schemas.ChallengeResponse:
    """Return the TXT record that proves the ownership of a domain; it stays the same."""
    return schemas.ChallengeResponse.from_challenge(await domains.get_challenge(agent_id, body.custom_domain))


@router.put("/{domainId}")
async def update_domain(
    _: AgentCaller, agent_id: AgentId, domain_id: DomainId, body: schemas.UpdateDomainRequest, domains: Service
) -> schemas.DomainResponse:
    """Change where a domain leads, and whether it needs the gateway token."""
    changed = await domains.update(agent_id, domain_id, body.target_port, is_protected=body.protected)
    return schemas.DomainResponse(domain=schemas.DomainRecord.from_domain(changed, domains.origin(changed)))


@router.delete("/{domainId}")
async def remove_domain(
    _: AgentCaller, agent_id: AgentId, domain_id: DomainId, domains: Service
) -> schemas.RemoveDomainResponse:
    """Remove a domain; connections through it end."""
    removed = await domains.remove(agent_id, domain_id)
    return schemas.RemoveDomainResponse(message=f"{removed.name} does not lead here any more")


@router.post("/{domainId}/verify", responses={409: {}})
async def verify_domain(
    caller: AgentCaller, agent_id: AgentId, domain_id: DomainId, domains: Service
) -> schemas.DomainResponse:
    """Look for the TXT record, and then for the certificate."""
    verified = await domains.verify(caller, agent_id, domain_id)
    return schemas.DomainResponse(domain=schemas.DomainRecord.from_domain(verified, domains.origin(verified)))
