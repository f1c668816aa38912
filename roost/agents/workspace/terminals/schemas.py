"""Parameters and messages of terminals."""

from typing import Annotated, Literal

from pydantic import Field, StrictInt, TypeAdapter, ValidationError

from roost.agents.workspace.terminals.errors import InvalidTerminalMessage
from roost.agents.workspace.terminals.model import (
    COMMAND_LIMIT,
    OFFSET_LIMIT,
    SIZE_LIMIT,
    TerminalRequest,
    TerminalSignal,
)
from roost.warden_client.terminal import TerminalSize
from roost.web.schemas import ApiSchema

_SIZE = Field(ge=1, le=SIZE_LIMIT)
_OFFSET = Field(ge=0, le=OFFSET_LIMIT)


class TerminalQuery(ApiSchema):
    """Parameters of a terminal; `session` and `after` continue one, `command` replaces the shell of a new one."""

    cols: Annotated[int, _SIZE] = 80
    rows: Annotated[int, _SIZE] = 24
    command: Annotated[str | None, Field(min_length=1, max_length=COMMAND_LIMIT)] = None
    session: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    after: Annotated[int, _OFFSET] = 0

    def to_request(self) -> TerminalRequest:
        return TerminalRequest(TerminalSize(self.cols, self.rows), self.command, self.session, self.after)


class TerminalSession(ApiSchema):
    """First message of the server."""

    type: Literal["session"] = "session"
    session: str


class TerminalExit(ApiSchema):
    """Last message of the server."""

    type: Literal["exit"] = "exit"
    exit_code: int


class ResizeMessage(ApiSchema):
    type: Literal["resize"]
    cols: Annotated[StrictInt, _SIZE]
    rows: Annotated[StrictInt, _SIZE]

    def to_size(self) -> TerminalSize:
        return TerminalSize(self.cols, self.rows)


class SignalMessage(ApiSchema):
    type: Literal["signal"]
    signal: TerminalSignal


class AcknowledgeMessage(ApiSchema):
    """All output before the offset is processed."""

    type: Literal["acknowledge"]
    offset: Annotated[StrictInt, _OFFSET]


ControlMessage = ResizeMessage | SignalMessage | AcknowledgeMessage
_MESSAGES: TypeAdapter[ControlMessage] = TypeAdapter(Annotated[ControlMessage, Field(discriminator="type")])


def parse_message(text: str) -> ControlMessage:
    """Parse a text message of a client. Raises InvalidTerminalMessage."""
    try:
        return _MESSAGES.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"][1:])) or "message"
        raise InvalidTerminalMessage(f"{InvalidTerminalMessage.message}: {place}: {first['msg']}"[:120]) from None
