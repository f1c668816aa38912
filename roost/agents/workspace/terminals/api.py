"""The terminal of an agent, as a WebSocket."""

from contextlib import aclosing
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, WebSocket

from roost.agents.workspace.terminals import schemas
from roost.agents.workspace.terminals.errors import TerminalSessionNotFound
from roost.agents.workspace.terminals.service import TerminalService
from roost.identity.authenticator import AgentId, AgentVisit
from roost.warden_client.terminal import AttachedTerminal
from roost.web.schemas import ApiSchema
from roost.web.service_registry import provide_service
from roost.web.websocket import accept_reader, run_while_connected, serve_socket

Service = Annotated[TerminalService, Depends(provide_service(TerminalService))]
_SLOW_READER_SECONDS = 600.0  # a person may stop the output with Ctrl-S
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["commands"])


@router.websocket("/console/stream")
async def open_terminal(
    socket: WebSocket,
    visit: AgentVisit,
    agent_id: AgentId,
    terminals: Service,
    request: Annotated[schemas.TerminalQuery, Query()],
) -> None:
    """Open a terminal, or continue its session; output is an offset in 8 bytes (big-endian), then data.

    Binary messages of the client are input. Text messages are JSON: first `session`, last `exit`; from the client
    `resize`, `signal` and `acknowledge`.
    """
    await serve_socket(socket, visit, partial(_serve_session, socket, terminals, agent_id, request))


async def _serve_session(
    socket: WebSocket, terminals: TerminalService, agent_id: str, request: schemas.TerminalQuery
) -> None:
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
    await _send_json(socket, schemas.TerminalSession(session=terminal.session))
    async with aclosing(terminal.read_output()) as outputs:
        async for output in outputs:
            if output.exit_code is not None:
                await _send_json(socket, schemas.TerminalExit(exit_code=output.exit_code))
            else:
                await socket.send_bytes(output.offset.to_bytes(8) + output.data)


async def _send_json(socket: WebSocket, message: ApiSchema) -> None:
    await socket.send_text(message.model_dump_json(by_alias=True))


async def _receive_message(terminal: AttachedTerminal, message: bytes | str) -> None:
    """Pass a message of the client on. Raises InvalidTerminalMessage."""
    if isinstance(message, bytes):
        await terminal.write(message)
        return
    match schemas.parse_message(message):
        case schemas.ResizeMessage() as resize:
            await terminal.resize(resize.to_size())
        case schemas.SignalMessage() as signal:
            await terminal.send_signal(signal.signal)
        case schemas.AcknowledgeMessage() as acknowledgement:
            await terminal.acknowledge(acknowledgement.offset)
