"""Console exec (contract: Console, devices, config)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, WebSocket
from pydantic import Field, StrictFloat

from roost.agents.workspace.commands.service import EXEC_TIMEOUT_LIMIT, CommandService, InvalidCommand
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.warden_client.client import ExecOutput
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
_SLOW_READER_SECONDS = 600.0  # a pager may wait as long as the longest command
_OpenCommand = Callable[[AsyncIterable[bytes]], AbstractAsyncContextManager[AsyncIterator[ExecOutput]]]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["commands"])


@router.post("/console/exec")
@refuse_body_with(InvalidCommand, "command", "cwd", "timeoutSeconds")
async def run_command(_: AgentCaller, agent_id: AgentId, body: ExecRequest, commands: Service) -> ExecResponse:
    """Run a shell command in the agent's container."""
    result = await commands.run_command(agent_id, body.command, body.cwd, body.timeout_seconds)
    return ExecResponse(**vars(result))


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

    def open_command(stdin: AsyncIterable[bytes]) -> AbstractAsyncContextManager[AsyncIterator[ExecOutput]]:
        return commands.stream_command(
            stdin if request.stdin else None, agent_id, request.command, request.cwd, request.timeout_seconds
        )

    await serve_socket(socket, visit, partial(_serve_command, socket, open_command))


async def _serve_command(socket: WebSocket, open_command: _OpenCommand) -> None:
    """Start a command, accept the socket, and connect both until the command ends or the client disconnects."""
    inputs: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)

    async def receive_input(message: bytes | str) -> None:
        if isinstance(message, bytes) and message.startswith(_STDIN):
            await inputs.put(message[1:])

    async with open_command(_read_input(inputs)) as outputs:
        await accept_reader(socket, _SLOW_READER_SECONDS)
        await run_while_connected(socket, _send_output(socket, outputs), receive_input)


async def _read_input(inputs: asyncio.Queue[bytes]) -> AsyncGenerator[bytes, None]:
    while chunk := await inputs.get():
        yield chunk


async def _send_output(socket: WebSocket, outputs: AsyncIterator[ExecOutput]) -> None:
    async for output in outputs:
        if output.exit_code is not None:
            end = CommandEnd(exit_code=output.exit_code, timed_out=output.timed_out)
            await socket.send_text(end.model_dump_json(by_alias=True))
        else:
            await socket.send_bytes((_STDOUT if output.stream == "stdout" else _STDERR) + output.data)
