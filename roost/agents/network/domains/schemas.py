"""API shapes of domains (contract: Routes and domains)."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import AliasChoices, Field, StrictBool, StrictInt, model_validator

from roost.agents.network.routes.model import GATEWAY_PORT
from roost.domain_names.model import Domain, DomainChallenge, DomainStatus
from roost.web.schemas import ApiSchema, Moment, Text

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
            id=domain.id,
            agent_id=domain.owner.id,
            user_id=domain.owner.tenant_id,
            subdomain=domain.subdomain,
            custom_domain=domain.name if domain.subdomain is None else None,
            domain=domain.name,
            url=origin,
            target_port=GATEWAY_PORT if domain.port is None else domain.port,
            protected=domain.is_protected,
            status=domain.status,
            reason=domain.reason,
            created_at=domain.created_at,
            updated_at=domain.updated_at,
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

    @classmethod
    def from_challenge(cls, challenge: DomainChallenge) -> Self:
        return cls(domain=challenge.domain, name=challenge.record_name, value=challenge.record_value)


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
