"""Console exec (contract: Console, devices, config), and terminals as WebSockets."""

import asyncio
import codecs
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, WebSocket
from pydantic import Field, StrictFloat, StrictInt, TypeAdapter, ValidationError

from roost.agents.workspace.commands.service import (
    EXEC_TIMEOUT_LIMIT,
    OFFSET_LIMIT,
    SIZE_LIMIT,
    TERMINAL_COMMAND_LIMIT,
    CommandService,
    InvalidCommand,
    InvalidTerminalMessage,
    TerminalSessionNotFound,
    TerminalSignal,
)
from roost.core import clock
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.warden_client.client import ExecOutput
from roost.warden_client.terminal import AttachedTerminal, TerminalSize
from roost.web.errors import refuse_body_with
from roost.web.schemas import ApiSchema, Moment
from roost.web.service_registry import provide_service
from roost.web.websocket import accept_reader, run_while_connected, serve_socket

_TIMEOUT = Field(gt=0, le=EXEC_TIMEOUT_LIMIT)


class ExecRequest(ApiSchema):
    command: Annotated[str, Field(json_schema_extra={"minLength": 1})]
    cwd: str | None = None
    timeout_seconds: Annotated[StrictFloat, _TIMEOUT] | None = None


class CommandQuery(ExecRequest):
    """Parameters of a streamed command; without `stdin` its input is empty."""

    timeout_seconds: Annotated[float, _TIMEOUT] | None = None  # a URL has no numbers
    stdin: bool = False


class ExecResponse(ApiSchema):
    stdout: str
    stderr: str
    exit_code: int
    command: str
    timestamp: Moment
    truncated: bool = False
    timed_out: bool = False


class CommandEnd(ApiSchema):
    """The last message of a streamed command; exit code 124 means that it timed out."""

    exit_code: int
    timed_out: bool


Service = Annotated[CommandService, Depends(provide_service(CommandService))]
_STDIN, _STDOUT, _STDERR = b"\0", b"\1", b"\2"  # channels, as in Kubernetes' remote command protocol
_SLOW_READER_SECONDS = 600.0  # a pager may wait as long as the longest command, a person may stop it with Ctrl-S
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["commands"])


@router.post("/console/exec")
@refuse_body_with(InvalidCommand, "command", "cwd", "timeoutSeconds")
async def run_command(_: AgentCaller, agent_id: AgentId, body: ExecRequest, commands: Service) -> ExecResponse:
    """Run a shell command in the agent's container."""
    result = await commands.run_command(agent_id, body.command, body.cwd, body.timeout_seconds)
    stdout, stderr = (_decode(output, is_cut=result.truncated) for output in (result.stdout, result.stderr))
    fields: dict[str, Any] = {**vars(result), "stdout": stdout, "stderr": stderr}
    return ExecResponse(**fields, command=body.command, timestamp=clock.utc_now())


@router.websocket("/console/exec")
async def stream_command(
    socket: WebSocket,
    visit: AgentVisit,
    agent_id: AgentId,
    commands: Service,
    request: Annotated[CommandQuery, Query()],
) -> None:
    """Run a shell command with input and output as binary messages: a byte for the channel, then data.

    Channels: 0 input (with `stdin=true`; an empty message is its end), 1 output, 2 errors. The text message is the end.
    """
    await serve_socket(socket, visit, partial(_serve_command, socket, commands, agent_id, request))


async def _serve_command(socket: WebSocket, commands: CommandService, agent_id: str, request: CommandQuery) -> None:
    """Start a command, accept the socket, and connect both until the command ends or the client disconnects."""
    inputs: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)

    async def receive_input(message: bytes | str) -> None:
        if isinstance(message, bytes) and message.startswith(_STDIN):
            await inputs.put(message[1:])

    stdin = _read_input(inputs) if request.stdin else None
    opened = commands.stream_command(stdin, agent_id, request.command, request.cwd, request.timeout_seconds)
    async with opened as outputs:
        await accept_reader(socket, _SLOW_READER_SECONDS)
        await run_while_connected(socket, _send_output(socket, outputs), receive_input)


def _decode(output: bytes, *, is_cut: bool) -> str:
    """Decode output, without the character that its cut end divides."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(output, not is_cut)


async def _read_input(inputs: asyncio.Queue[bytes]) -> AsyncGenerator[bytes, None]:
    while chunk := await inputs.get():
        yield chunk


async def _send_output(socket: WebSocket, outputs: AsyncIterator[ExecOutput]) -> None:
    async for output in outputs:
        if output.exit_code is not None:
            await _send_json(socket, CommandEnd(exit_code=output.exit_code, timed_out=output.timed_out))
        else:
            await socket.send_bytes((_STDOUT if output.stream == "stdout" else _STDERR) + output.data)


_SIZE = Field(ge=1, le=SIZE_LIMIT)
_OFFSET = Field(ge=0, le=OFFSET_LIMIT)


class TerminalQuery(ApiSchema):
    """Parameters of a terminal; `session` and `after` continue one, `command` replaces the shell of a new one."""

    cols: Annotated[int, _SIZE] = 80
    rows: Annotated[int, _SIZE] = 24
    command: Annotated[str | None, Field(min_length=1, max_length=TERMINAL_COMMAND_LIMIT)] = None
    session: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    after: Annotated[int, _OFFSET] = 0


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


@router.websocket("/console/stream")
async def open_terminal(
    socket: WebSocket,
    visit: AgentVisit,
    agent_id: AgentId,
    commands: Service,
    request: Annotated[TerminalQuery, Query()],
) -> None:
    """Open a terminal, or continue its session; output is an offset in 8 bytes (big-endian), then data.

    Binary messages of the client are input. Text messages are JSON: first `session`, last `exit`; from the client
    `resize`, `signal` and `acknowledge`.
    """
    await serve_socket(socket, visit, partial(_serve_session, socket, commands, agent_id, request))


async def _serve_session(socket: WebSocket, commands: CommandService, agent_id: str, request: TerminalQuery) -> None:
    size = TerminalSize(request.cols, request.rows)
    try:
        async with commands.open_terminal(agent_id, size, request.command, request.session, request.after) as terminal:
            await accept_reader(socket, _SLOW_READER_SECONDS)

            async def receive_message(message: bytes | str) -> None:
                if isinstance(message, bytes):
                    commands.record_use(agent_id)
                await _receive_message(terminal, message)

            await run_while_connected(socket, _send_terminal_output(socket, terminal), receive_message)
    except TerminalSessionNotFound:
        await socket.accept()  # a page cannot read a status, and must tell this from a server that is away
        raise


async def _send_terminal_output(socket: WebSocket, terminal: AttachedTerminal) -> None:
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
            await terminal.resize(TerminalSize(resize.cols, resize.rows))
        case SignalMessage() as signal:
            await terminal.send_signal(signal.signal)
        case AcknowledgeMessage() as acknowledgement:
            await terminal.acknowledge(acknowledgement.offset)
