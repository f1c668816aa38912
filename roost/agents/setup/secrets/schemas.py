"""API shapes of secrets; details that the contract leaves open follow the reference service's clients."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from roost.agents.setup.secrets.model import AttachedSecret, Secret, SecretKind, SecretWithAgents
from roost.web.schemas import ApiSchema, Moment, Text

_Name = Annotated[Text, Field(examples=["OPENAI_API_KEY"], json_schema_extra={"minLength": 1})]
_Value = Annotated[Text, Field(repr=False, examples=["sk-example"], json_schema_extra={"minLength": 1})]


class AgentSecretRecord(ApiSchema):
    id: str
    name: _Name
    type: SecretKind
    created_at: Moment
    updated_at: Moment
    synced: bool

    @classmethod
    def from_attached(cls, attached: AttachedSecret) -> Self:
        return cls(**vars(attached.secret), type=attached.secret.kind, synced=attached.synced)


class CreateSecretRequest(ApiSchema):
    name: _Name
    value: _Value
    type: SecretKind = SecretKind.SECRET


class UpdateSecretRequest(ApiSchema):
    value: _Value


class AttachSecretsRequest(ApiSchema):
    secret_ids: Annotated[Sequence[Annotated[Text, Field(max_length=256)]], Field(min_length=1, max_length=1000)]


class SecretRecord(ApiSchema):
    id: str
    user_id: str
    name: _Name
    type: SecretKind
    created_at: Moment
    updated_at: Moment


class SecretResponse(ApiSchema):
    success: bool = True
    secret: SecretRecord


class SecretAgentRecord(ApiSchema):
    agent_id: str
    name: str


class SecretListItem(SecretRecord):
    """A listed secret; `value` is set for variables, and null if it can no longer be decrypted."""

    agents: Sequence[SecretAgentRecord]
    value: str | None = Field(default=None, examples=[None])


class SecretList(ApiSchema):
    secrets: Sequence[SecretListItem]
    secret_limit: int


class AgentSecretList(ApiSchema):
    secrets: Sequence[AgentSecretRecord]


class AttachSecretsResponse(ApiSchema):
    """`warnings`, beyond the contract, tells of names that a shell cannot spell; without one it is left out."""

    success: bool = True
    attached: int
    warnings: Sequence[str] | None = None


class SecretActionResponse(ApiSchema):
    success: bool = True


def secret_response(secret: Secret) -> SecretResponse:
    return SecretResponse(secret=_record(secret))


def _record(secret: Secret) -> SecretRecord:
    return SecretRecord(**vars(secret), user_id=secret.tenant_id, type=secret.kind)


def secret_list_item(one: SecretWithAgents) -> SecretListItem:
    shown = SecretListItem(
        **vars(_record(one.secret)),
        agents=[SecretAgentRecord(agent_id=agent_id, name=name) for agent_id, name in one.agents.items()],
    )
    if one.secret.kind is SecretKind.SECRET:
        return shown
    return shown.model_copy(update={"value": one.value.reveal() if one.value else None})
