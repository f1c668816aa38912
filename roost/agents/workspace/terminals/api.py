"""The terminal of an agent, as a WebSocket."""

from contextlib import aclosing
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, WebSocket
from pydantic import Field, StrictInt, TypeAdapter, ValidationError

from roost.agents.workspace.terminals.service import (
    COMMAND_LIMIT,
    OFFSET_LIMIT,
    SIZE_LIMIT,
    InvalidTerminalMessage,
    TerminalRequest,
    TerminalService,
    TerminalSessionNotFound,
    TerminalSignal,
)
from roost.identity.authenticator import AgentId, AgentVisit
from roost.warden_client.terminal import AttachedTerminal, TerminalSize
from roost.web.schemas import ApiSchema
from roost.web.service_registry import provide_service
from roost.web.websocket import accept_reader, run_while_connected, serve_socket

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


Service = Annotated[TerminalService, Depends(provide_service(TerminalService))]
_SLOW_READER_SECONDS = 600.0  # a person may stop the output with Ctrl-S
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["commands"])


@router.websocket("/console/stream")
async def open_terminal(
    socket: WebSocket,
    visit: AgentVisit,
    agent_id: AgentId,
    terminals: Service,
    request: Annotated[TerminalQuery, Query()],
) -> None:
    """Open a terminal, or continue its session; output is an offset in 8 bytes (big-endian), then data.

    Binary messages of the client are input. Text messages are JSON: first `session`, last `exit`; from the client
    `resize`, `signal` and `acknowledge`.
    """
    await serve_socket(socket, visit, partial(_serve_session, socket, terminals, agent_id, request))


async def _serve_session(socket: WebSocket, terminals: TerminalService, agent_id: str, request: TerminalQuery) -> None:
    try:
        async with terminals.connect(agent_id, request.to_request()) as terminal:
            await accept_reader(socket, _SLOW_READER_SECONDS)

            async def receive_message(message: bytes | str) -> None:
                if isinstance(message, bytes):
                    terminals.record_use(agent_id)
                await _receive_message(terminal, message)

            await run_while_connected(socket, _send_output(socket, terminal), receive_message)
    except TerminalSessionNotFound:
        await socket.accept()  # a page cannot read a status, and must tell this from a server that is away
        raise


async def _send_output(socket: WebSocket, terminal: AttachedTerminal) -> None:
    await _send_json(socket, TerminalSession(session=terminal.session))
    async with aclosing(terminal.read_output()) as outputs:
        async for output in outputs:
            if output.exit_code is not None:
                await _send_json(socket, TerminalExit(exit_code=output.exit_code))
            else:
                await socket.send_bytes(output.offset.to_bytes(8) + output.data)


async def _send_json(socket: WebSocket, message: ApiSchema) -> None:
    await socket.send_text(message.model_dump_json(by_alias=True))


async def _receive_message(terminal: AttachedTerminal, message: bytes | str) -> None:
    """Pass a message of the client on. Raises InvalidTerminalMessage."""
    if isinstance(message, bytes):
        await terminal.write(message)
        return
    match parse_message(message):
        case ResizeMessage() as resize:
            await terminal.resize(resize.to_size())
        case SignalMessage() as signal:
            await terminal.send_signal(signal.signal)
        case AcknowledgeMessage() as acknowledgement:
            await terminal.acknowledge(acknowledgement.offset)
