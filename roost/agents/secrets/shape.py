"""How an agent's own secrets are told, in their list and wherever the agent is described."""

from typing import Self

from roost.agents.secrets.model import Attached, SecretKind
from roost.web.wire import Moment, Wire


class AgentSecret(Wire):
    id: str
    name: str
    type: SecretKind
    created_at: Moment
    updated_at: Moment
    synced: bool

    @classmethod
    def of(cls, attached: Attached) -> Self:
        secret = attached.secret
        return cls(
            id=secret.id,
            name=secret.name,
            type=secret.kind,
            created_at=secret.created_at,
            updated_at=secret.updated_at,
            synced=attached.synced,
        )
