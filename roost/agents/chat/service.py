"""Chats with agents: their gateways answer in OpenAI's form, and the answer is passed on as it comes."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from roost.agents.chat.errors import AgentUnreachable, AnswerFailed, TooManyChats
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.core.log import redact_credentials
from roost.core.problem import Problem
from roost.core.sanitize import sanitize_line
from roost.core.sensitive import Sensitive
from roost.net.http_request import HttpResponse, InvalidResponseError, ResponseTooLongError, send_request

MAX_CHATS = 16
"""Maximum number of concurrent answers of one agent."""
_HEARTBEAT = b": the agent is working\n\n"  # a comment; sending it notices a client that has left
_MAX_ANSWER = 32 * 1024**2
_MAX_ERROR = 65536
_ERROR_CHARACTERS = 1000


@dataclass(frozen=True)
class ChatTimes:
    """Times in seconds: for the list of models, between heartbeats, and until a silent gateway is given up."""

    models: float = 10.0
    heartbeat: float = 5.0
    silence: float = 600.0


class ChatService:
    def __init__(self, runtimes: AgentRuntimes, times: ChatTimes | None = None) -> None:
        self._runtimes = runtimes
        self._times = times or ChatTimes()
        self._open: Counter[str] = Counter()

    async def start_answer(self, agent_id: str, messages: Sequence[Mapping[str, str]]) -> AsyncGenerator[bytes, None]:
        """Return the answer as server-sent events: chunks of a chat completion, the last of them possibly an error.

        `messages` have `role` and `content`, the oldest first.
        Raises AgentNotFound, AgentOnOtherHost, ContainerNotRunning, AgentUnreachable, AnswerFailed, TooManyChats.
        """
        if self._open[agent_id] >= MAX_CHATS:
            raise TooManyChats(retry_after=10)
        credential = await self._runtimes.get_credential(agent_id)
        self._runtimes.record_use(agent_id)
        chat = {"model": await self._find_model(agent_id, credential), "messages": messages, "stream": True}
        return self._stream(agent_id, credential, chat)

    def count_answers(self, agent_id: str) -> int:
        """Return the number of answers of an agent that are being streamed."""
        return self._open[agent_id]

    async def _stream(
        self, agent_id: str, credential: tuple[str, Sensitive[str]], chat: Mapping[str, Any]
    ) -> AsyncGenerator[bytes, None]:
        if self._open[agent_id] >= MAX_CHATS:  # others have begun since the first check
            yield _encode_problem(TooManyChats())
            return
        self._open[agent_id] += 1
        parts: asyncio.Queue[bytes] = asyncio.Queue(maxsize=8)
        receiver = asyncio.create_task(self._receive(agent_id, credential, chat, parts))
        try:
            while part := await self._next_part(parts):
                yield part
        finally:
            self._open[agent_id] -= 1
            self._open += Counter()  # forgets agents without a chat
            receiver.cancel()
            await asyncio.gather(receiver, return_exceptions=True)

    async def _next_part(self, parts: asyncio.Queue[bytes]) -> bytes:
        try:
            return await asyncio.wait_for(parts.get(), self._times.heartbeat)
        except TimeoutError:
            return _HEARTBEAT

    async def _receive(
        self,
        agent_id: str,
        credential: tuple[str, Sensitive[str]],
        chat: Mapping[str, Any],
        parts: asyncio.Queue[bytes],
    ) -> None:
        """Put the parts of the answer into the queue, then the problem if there is one, and an empty part."""
        try:
            request = "POST /v1/chat/completions HTTP/1.1"
            async with self._send(agent_id, request, credential, chat, self._times.silence) as response:
                if response.status != 200:
                    raise AnswerFailed(await _read_error(response))
                await self._pass_on(response, parts)
        except Problem as problem:
            await parts.put(_encode_problem(problem))
        await parts.put(b"")

    async def _pass_on(self, response: HttpResponse, parts: asyncio.Queue[bytes]) -> None:
        size = 0
        while part := await asyncio.wait_for(response.read(), self._times.silence):
            size += len(part)
            if size > _MAX_ANSWER:
                raise ResponseTooLongError
            await parts.put(part)

    @asynccontextmanager
    async def _send(
        self,
        agent_id: str,
        request: str,
        credential: tuple[str, Sensitive[str]],
        body: Mapping[str, Any] | None,
        head_seconds: float,
    ) -> AsyncGenerator[HttpResponse, None]:
        """Send a request to the gateway. Raises AgentUnreachable, AnswerFailed, also in place of a reader's errors."""
        stream = await self._runtimes.dial(agent_id)
        content = b"" if body is None else json.dumps(body).encode()
        name, value = credential
        headers = {
            name: value.reveal(),
            "X-Forwarded-For": "192.0.0.8",  # a gateway trusts its loopback as itself (dummy of RFC 7600)
            "Connection": "close",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
        }
        try:
            async with send_request(stream, request, headers, content, head_seconds) as response:
                yield response
        except ResponseTooLongError:
            raise AnswerFailed("The agent's answer is too long") from None
        except InvalidResponseError:
            raise AnswerFailed from None
        except (OSError, EOFError):
            raise AgentUnreachable from None

    async def _find_model(self, agent_id: str, credential: tuple[str, Sensitive[str]]) -> str:
        """Return the first model that the gateway offers; engines name themselves there."""
        request, seconds = "GET /v1/models HTTP/1.1", self._times.models
        async with self._send(agent_id, request, credential, None, seconds) as response, asyncio.timeout(seconds):
            content = await response.read_all(_MAX_ERROR)
        try:
            model = json.loads(content)["data"][0]["id"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise AnswerFailed("The agent offers no model") from None
        if not isinstance(model, str):
            raise AnswerFailed("The agent offers no model")
        return model


def _encode_problem(problem: Problem) -> bytes:
    """Return an event that also ends an unfinished one."""
    return b"\n\ndata: " + json.dumps({"error": {"message": problem.message}}).encode() + b"\n\n"


async def _read_error(response: HttpResponse) -> str | None:
    """Return the message of an error in OpenAI's form, made safe to show; None if it has none."""
    try:
        async with asyncio.timeout(5.0):
            message = json.loads(await response.read_all(_MAX_ERROR))["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return redact_credentials(sanitize_line(message[:_ERROR_CHARACTERS])) if isinstance(message, str) else None
