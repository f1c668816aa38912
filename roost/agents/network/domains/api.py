"""Domains of an agent (contract: Routes and domains)."""

from collections.abc import Sequence
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Path
from pydantic import AliasChoices, Field, StrictBool, StrictInt, model_validator

from roost.agents.network.domains.service import AgentDomainService
from roost.agents.network.routes.model import GATEWAY_PORT
from roost.domain_names.model import Domain, DomainStatus
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.schemas import ApiSchema, Moment, Text
from roost.web.service_registry import provide_service

_NAME_LIMIT = 1000  # a longer name gets a message of its own below it
_Port = Annotated[
    StrictInt | None,
    Field(validation_alias=AliasChoices("targetPort", "port"), serialization_alias="targetPort", examples=[3000]),
]
_Name = Annotated[Text | None, Field(max_length=_NAME_LIMIT)]


class DomainRecord(ApiSchema):
    """A domain; `reason` says what is missing."""

    id: str
    agent_id: str
    user_id: str
    subdomain: str | None
    custom_domain: str | None
    domain: str
    url: str
    target_port: int
    protected: bool
    status: DomainStatus
    reason: str | None
    created_at: Moment
    updated_at: Moment

    @classmethod
    def from_domain(cls, domain: Domain, origin: str) -> Self:
        return cls(
            **vars(domain),
            agent_id=domain.owner.id,
            user_id=domain.owner.tenant_id,
            custom_domain=domain.name if domain.subdomain is None else None,
            domain=domain.name,
            url=origin,
            target_port=GATEWAY_PORT if domain.port is None else domain.port,
            protected=domain.is_protected,
        )


class RegisterDomainRequest(ApiSchema):
    """A subdomain of the platform or a domain of one's own; without a port it leads to the gateway."""

    subdomain: _Name = Field(default=None, examples=["ada"])
    custom_domain: _Name = Field(default=None, examples=[None])
    target_port: _Port = None
    protected: StrictBool = True

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        if (self.subdomain is None) is (self.custom_domain is None):
            raise ValueError("exactly one of subdomain and customDomain is needed")
        return self


class ChallengeRequest(ApiSchema):
    custom_domain: Annotated[
        Text, Field(validation_alias=AliasChoices("customDomain", "domain"), serialization_alias="customDomain")
    ] = Field(max_length=_NAME_LIMIT, examples=["app.example.com"])


class ChallengeResponse(ApiSchema):
    """The TXT record that proves the ownership of a domain."""

    success: bool = True
    domain: str
    type: str = "TXT"
    name: str
    value: str


class UpdateDomainRequest(ApiSchema):
    """Fields that are left out keep their values."""

    target_port: _Port = None
    protected: StrictBool | None = None


class DomainResponse(ApiSchema):
    success: bool = True
    domain: DomainRecord


class DomainList(ApiSchema):
    domains: Sequence[DomainRecord]


class RemoveDomainResponse(ApiSchema):
    success: bool = True
    message: str


Service = Annotated[AgentDomainService, Depends(provide_service(AgentDomainService))]
DomainId = Annotated[str, Path(alias="domainId", max_length=64)]
router = APIRouter(prefix="/v0/agents/{agentId}/domains", tags=["domains"])


@router.get("")
async def list_domains(_: AgentCaller, agent_id: AgentId, domains: Service) -> DomainList:
    """List the agent's domains, with what each lacks."""
    found = await domains.list(agent_id)
    return DomainList(domains=[DomainRecord.from_domain(one, domains.origin(one)) for one in found])


@router.post("", status_code=201, responses={409: {}})
async def register_domain(
    _: AgentCaller, agent_id: AgentId, body: RegisterDomainRequest, domains: Service
) -> DomainResponse:
    """Register a subdomain, which is active at once, or a domain of one's own, which is verified first."""
    registered = await domains.register(
        agent_id, body.subdomain, body.custom_domain, body.target_port, is_protected=body.protected
    )
    return DomainResponse(domain=DomainRecord.from_domain(registered, domains.origin(registered)))


@router.post("/challenge")
async def get_challenge(
    _: AgentCaller, agent_id: AgentId, body: ChallengeRequest, domains: Service
) -> ChallengeResponse:
    """Return the TXT record that proves the ownership of a domain; it stays the same."""
    found = await domains.get_challenge(agent_id, body.custom_domain)
    return ChallengeResponse(domain=found.domain, name=found.record_name, value=found.record_value)


@router.put("/{domainId}")
async def update_domain(
    _: AgentCaller, agent_id: AgentId, domain_id: DomainId, body: UpdateDomainRequest, domains: Service
) -> DomainResponse:
    """Change where a domain leads, and whether it needs the gateway token."""
    changed = await domains.update(agent_id, domain_id, body.target_port, is_protected=body.protected)
    return DomainResponse(domain=DomainRecord.from_domain(changed, domains.origin(changed)))


@router.delete("/{domainId}")
async def remove_domain(
    _: AgentCaller, agent_id: AgentId, domain_id: DomainId, domains: Service
) -> RemoveDomainResponse:
    """Remove a domain; connections through it end."""
    removed = await domains.remove(agent_id, domain_id)
    return RemoveDomainResponse(message=f"{removed.name} does not lead here any more")


@router.post("/{domainId}/verify", responses={409: {}})
async def verify_domain(
    caller: AgentCaller, agent_id: AgentId, domain_id: DomainId, domains: Service
) -> DomainResponse:
    """Look for the TXT record, and then for the certificate."""
    verified = await domains.verify(caller, agent_id, domain_id)
    return DomainResponse(domain=DomainRecord.from_domain(verified, domains.origin(verified)))
