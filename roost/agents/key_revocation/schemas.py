"""API shapes of revoked keys and of what their holders know."""

from collections.abc import Sequence

from pydantic import Field, StrictBool

from roost.agents.key_revocation.service import KnownToken
from roost.web.schemas import ApiSchema, Moment


class RevokeKeyRequest(ApiSchema):
    rotate_tokens: StrictBool = False
    """Whether the gateway tokens that its holder has read are replaced."""


class KnownTokenRecord(ApiSchema):
    agent_id: str
    agent_name: str = Field(examples=["Ada"])
    in_session: bool
    """Whether a browser session read it, and not a program with the key itself."""
    read_at: Moment
    """When it was read first."""


class KnownTokenList(ApiSchema):
    """Agents whose present gateway token the holder of a key has read."""

    agents: Sequence[KnownTokenRecord]


class RevokedKeyRecord(KnownTokenList):
    """Agents whose gateway token the holder has read: it goes on working unless it was rotated."""

    rotated: bool


def known_token_records(tokens: Sequence[KnownToken]) -> Sequence[KnownTokenRecord]:
    return [KnownTokenRecord(agent_name=token.agent_name, **vars(token.read)) for token in tokens]
