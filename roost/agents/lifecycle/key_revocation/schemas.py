"""API shapes of the gateway tokens that the holder of a key has read."""

from collections.abc import Sequence

from pydantic import Field, StrictBool

from roost.agents.lifecycle.key_revocation.service import AgentTokenRead
from roost.web.schemas import ApiSchema, Moment


class RevokeKeyRequest(ApiSchema):
    rotate_tokens: StrictBool = False
    """Whether the gateway tokens that its holder has read are replaced, too."""


class TokenReadRecord(ApiSchema):
    """`inSession` says whether a browser session of the key read the token, and not a program with the key itself."""

    agent_id: str
    agent_name: str = Field(examples=["Ada"])
    in_session: bool
    read_at: Moment


class TokenReadList(ApiSchema):
    """Agents whose gateway token the holder has read, with the first time."""

    agents: Sequence[TokenReadRecord]


def token_read_list(reads: Sequence[AgentTokenRead]) -> TokenReadList:
    return TokenReadList(agents=[TokenReadRecord(agent_name=name, **vars(read)) for name, read in reads])
