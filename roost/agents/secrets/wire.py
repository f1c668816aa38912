"""Shapes of secrets; what the contract leaves open follows the reference service's clients."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from roost.agents.secrets.model import Attached, Listed, Secret, SecretKind
from roost.agents.secrets.shape import AgentSecret
from roost.web.wire import Moment, Text, Wire

_Value = Annotated[Text, Field(repr=False)]


class CreateSecret(Wire):
    name: Text = ""
    value: _Value = ""
    type: SecretKind = SecretKind.SECRET


class UpdateSecret(Wire):
    value: _Value = ""


class AttachSecrets(Wire):
    secret_ids: Annotated[Sequence[Annotated[Text, Field(max_length=256)]], Field(min_length=1, max_length=1000)]


class SecretRecord(Wire):
    id: str
    user_id: str
    name: str
    type: SecretKind
    created_at: Moment
    updated_at: Moment


class SecretAnswer(Wire):
    success: bool = True
    secret: SecretRecord


class HavingAgent(Wire):
    agent_id: str
    name: str


class ListedSecret(SecretRecord):
    """`value` is there for variables, and null for one that cannot be opened any more."""

    agents: Sequence[HavingAgent]
    value: str | None = None


class SecretList(Wire):
    secrets: Sequence[ListedSecret]
    secret_limit: int


class AgentSecretList(Wire):
    secrets: Sequence[AgentSecret]


class AttachedSecrets(Wire):
    success: bool = True
    attached: int


class Done(Wire):
    success: bool = True


def answer(secret: Secret) -> SecretAnswer:
    return SecretAnswer(secret=_record(secret))


def listed(found: Sequence[Listed], limit: int) -> SecretList:
    return SecretList(secrets=[_listed(one) for one in found], secret_limit=limit)


def of_agent(found: Sequence[Attached]) -> AgentSecretList:
    return AgentSecretList(secrets=[AgentSecret.of(one) for one in found])


def _record(secret: Secret) -> SecretRecord:
    return SecretRecord(
        id=secret.id,
        user_id=secret.tenant_id,
        name=secret.name,
        type=secret.kind,
        created_at=secret.created_at,
        updated_at=secret.updated_at,
    )


def _listed(one: Listed) -> ListedSecret:
    shown = ListedSecret(
        **vars(_record(one.secret)),
        agents=[HavingAgent(agent_id=agent_id, name=name) for agent_id, name in one.agents.items()],
    )
    if one.secret.kind is SecretKind.SECRET:
        return shown
    return shown.model_copy(update={"value": one.value.reveal() if one.value else None})
