"""The fake engine's abilities, which its gateway has in its HTTP API (`gateway.py` and the programs beside it).

Its channels connect to no platform: messages arrive by `POST /channels/message` of the gateway. A bot token that
contains `refused` is rejected by a running gateway and at a start; for one that contains `unwell` the gateway reports
an error that quotes the token.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from roost.core.sanitize import sanitize_line
from roost.drivers.engine import gateway_json
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    CHANNELS,
    ERROR_LIMIT,
    MAX_PAIRING_REQUESTS,
    NAME_LIMIT,
    WHATSAPP,
    ChannelAbility,
    ChannelSetup,
    ChannelState,
    HotChannelAbility,
    PairingAbility,
    PairingRequest,
    PairingRequestNotFound,
)
from roost.drivers.engine.abilities.chat import (
    AnswerEvent,
    AnswerText,
    ChatAbility,
    StoredConversation,
    StoredMessage,
    ToolUse,
    is_conversation_id,
)
from roost.drivers.engine.abilities.configuration import (
    ConfigurationAbility,
    ConfigurationChanged,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
    Expectation,
)
from roost.drivers.engine.abilities.devices import DeviceAbility, DeviceList, DeviceRequestNotFound
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.abilities.tasks import (
    EngineTaskNotFound,
    EngineTaskRefused,
    EngineTaskRunning,
    Task,
    TaskAbility,
    TaskChange,
    TaskRun,
    TaskSpec,
)
from roost.drivers.engine.contract import EngineFailed, GatewaySetup
from roost.drivers.engine.gateway_http import GatewayHttpAbility, stream_events
from roost.drivers.engine.transcript import Transcript, finish_use, shorten_text, start_use
from roost.drivers.model.json_access import Json, as_list, as_object, as_string, parse_json

_CONFIGURATION_LIMIT = 1 << 20
_TASK_PROBLEMS = {400: EngineTaskRefused, 404: EngineTaskNotFound, 409: EngineTaskRunning}

Render = Callable[[Mapping[str, Any], str, GatewaySetup], Json]
"""Merges the user's settings with the platform's for a version; returns the content of the file."""


class FakeChannels(GatewayHttpAbility, ChannelAbility, PairingAbility):
    """Channels of a gateway that receives them only at its start."""

    def supported(self, version: str) -> frozenset[str]:  # noqa: ARG002 - the same for all versions
        return frozenset(CHANNELS) - {WHATSAPP}

    async def status(self, agent: AgentContext) -> Mapping[str, ChannelState]:
        _, answer = await self._send(agent, "GET /channels")
        found = answer.get("channels", {})
        return {name: _channel_state(found[name]) for name in CHANNELS if name in found}

    async def approve_request(self, agent: AgentContext, channel: str, request_id: str) -> None:
        body = {"channel": channel, "requestId": request_id}
        status, _ = await self._send(agent, "POST /channels/approve", body, expected=(200, 404))
        if status == 404:
            raise PairingRequestNotFound


class HotFakeChannels(FakeChannels, HotChannelAbility):
    """Channels of a gateway that also accepts changes while it runs."""

    async def apply(self, agent: AgentContext, channels: Mapping[str, ChannelSetup]) -> None:
        await self._send(agent, "PUT /channels", serialize_channels(channels))


def serialize_channels(channels: Mapping[str, ChannelSetup]) -> Json:
    """Return the channels as they appear in the gateway's settings."""
    return {
        name: {
            "token": setup.bot_token.reveal() if setup.bot_token else None,
            "app_token": setup.app_token.reveal() if setup.app_token else None,
            "dm_policy": setup.dm_policy,
            "allow_from": list(setup.allow_from),
        }
        for name, setup in channels.items()
    }


def _channel_state(channel: Json) -> ChannelState:
    error = channel.get("error")
    return ChannelState(
        running=True,
        connected=error is None,
        last_error=str(error)[:ERROR_LIMIT] if error else None,
        last_message_at=gateway_json.parse_milliseconds(channel.get("lastMessageAtMs")),
        requests=tuple(_pairing_request(one) for one in channel.get("requests", [])[:MAX_PAIRING_REQUESTS]),
    )


def _pairing_request(one: Json) -> PairingRequest:
    sender, name = str(one["sender"])[:NAME_LIMIT], sanitize_line(str(one["name"]))[:NAME_LIMIT]
    return PairingRequest(sender, name, gateway_json.parse_milliseconds(one["ts"]), str(one["id"]))


class FakeChat(GatewayHttpAbility, ChatAbility):
    async def conversations(self, agent: AgentContext) -> Sequence[StoredConversation]:
        _, found = await self._send(agent, "GET /conversations")
        listed = [
            StoredConversation(
                as_string(one.get("id")),
                title="",
                updated_at=gateway_json.parse_milliseconds(one.get("at")),
                preview=shorten_text(as_string(one.get("title")), 200),
            )
            for one in gateway_json.parse_objects(found.get("conversations"))
        ]
        ours = [conversation for conversation in listed if is_conversation_id(conversation.id)]
        return sorted(ours, key=lambda conversation: conversation.id, reverse=True)[:100]

    async def history(self, agent: AgentContext, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        _, found = await self._send(agent, f"GET /conversations/{conversation_id}")
        transcript = Transcript()
        for entry in gateway_json.parse_objects(found.get("entries")):
            _add_entry(transcript, entry)
        return transcript.latest(limit)

    async def send(self, agent: AgentContext, conversation_id: str, text: str) -> AsyncGenerator[AnswerEvent, None]:
        request = f"POST /conversations/{conversation_id}"
        answer = stream_events(agent.warden.dial, self._port, request, agent.token, {"text": text}, {})
        async with aclosing(answer) as events:
            async for name, data in events:
                if name == "end":
                    return
                yield _read_event(as_object(parse_json(data)))
            raise EngineFailed("The gateway ended the answer early")


def _read_event(event: Json) -> AnswerText | ToolUse:
    if "error" in event:
        raise EngineFailed(as_string(event["error"]))
    if "text" in event:
        return AnswerText(as_string(event["text"]))
    use, outcome = _start_use(as_object(event.get("tool"))), as_object(event.get("outcome"))
    return finish_use(use, as_string(outcome.get("text")), failed=outcome.get("failed") is True) if outcome else use


def _add_entry(transcript: Transcript, entry: Json) -> None:
    text, sent_at = as_string(entry.get("text")), gateway_json.parse_milliseconds(entry.get("at"))
    entry_id = as_string(entry.get("entryId"))
    match entry.get("role"):
        case "user":
            transcript.add_question(entry_id, text, sent_at)
        case "tool":
            transcript.finish_tool(as_string(entry.get("id")), text, failed=entry.get("failed") is True)
        case _:
            tools = [_start_use(one) for one in gateway_json.parse_objects(entry.get("tools"))]
            transcript.add_answer(entry_id, text, sent_at, tools, stopped=entry.get("stopped") is True)


def _start_use(tool: Json) -> ToolUse:
    return start_use(tool.get("id"), tool.get("name"), tool.get("arguments"))


class FakeConfiguration(GatewayHttpAbility, ConfigurationAbility):
    """A JSON object that the gateway reads, validates and writes (`admin_api.py`)."""

    def __init__(self, port: int, path: str, render: Render) -> None:
        super().__init__(port)
        self._path = path
        self._render = render

    async def read(self, agent: AgentContext) -> str:
        return as_string((await self._send(agent, "GET /config"))[1].get("text"))

    async def check(self, agent: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        _, found = await self._send(agent, "POST /config/check", {} if text is None else {"text": text})
        return ConfigurationVerdict(found.get("valid") is True, as_string(found.get("output")))

    async def write(
        self, agent: AgentContext, setup: GatewaySetup, text: str, is_expected: Expectation | None = None
    ) -> ConfigurationWritten:
        if is_expected is not None and not is_expected(await self.read(agent)):
            raise ConfigurationChanged
        before = await agent.warden.read(self._path, root="home", limit=_CONFIGURATION_LIMIT)
        whole = self._render(as_object(parse_json(text)), agent.version, setup)
        status, found = await self._send(agent, "PUT /config", whole, expected=(200, 400))
        if status == 400:
            raise ConfigurationRejected(as_string(found.get("output")))
        undo = partial(agent.warden.write, self._path, before, root="home", mode=0o600)
        return ConfigurationWritten(found.get("live") is True, undo)


class FakeDevices(GatewayHttpAbility, DeviceAbility):
    async def list(self, agent: AgentContext) -> DeviceList:
        return gateway_json.parse_device_list((await self._send(agent, "GET /devices"))[1])

    async def approve(self, agent: AgentContext, request_id: str) -> None:
        body = {"requestId": request_id}
        status, _ = await self._send(agent, "POST /devices/approve", body, expected=(200, 404))
        if status == 404:
            raise DeviceRequestNotFound


class FakeSkills(GatewayHttpAbility, SkillAbility):
    async def list(self, agent: AgentContext) -> Mapping[str, None]:
        _, found = await self._send(agent, "GET /skills")
        return dict.fromkeys(as_string(name) for name in as_list(found.get("skills")))

    async def refresh(self, agent: AgentContext) -> None:
        """Do nothing, because the gateway reads the folder each time."""


class FakeTasks(GatewayHttpAbility, TaskAbility):
    """Tasks that the gateway stores and runs (`scheduler.py`)."""

    async def list(self, agent: AgentContext) -> Sequence[Task]:
        found = await self._call(agent, "GET /tasks")
        return [gateway_json.parse_task(one) for one in gateway_json.parse_objects(found.get("tasks"))]

    async def get(self, agent: AgentContext, task_id: str) -> Task:
        return gateway_json.parse_task(await self._call(agent, f"GET /tasks/{task_id}"))

    async def create(self, agent: AgentContext, spec: TaskSpec) -> Task:
        return gateway_json.parse_task(await self._call(agent, "POST /tasks", gateway_json.serialize_task(spec)))

    async def update(self, agent: AgentContext, task_id: str, change: TaskChange) -> Task:
        return gateway_json.parse_task(
            await self._call(agent, f"PATCH /tasks/{task_id}", gateway_json.serialize_task(change))
        )

    async def delete(self, agent: AgentContext, task_id: str) -> None:
        await self._call(agent, f"DELETE /tasks/{task_id}")

    async def run(self, agent: AgentContext, task_id: str) -> None:
        await self._call(agent, f"POST /tasks/{task_id}/run")

    async def runs(self, agent: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        found = await self._call(agent, f"GET /tasks/{task_id}/runs")
        return [gateway_json.parse_run(run) for run in gateway_json.parse_objects(found.get("runs"))][:limit]

    async def _call(self, agent: AgentContext, request: str, body: Json | None = None) -> Json:
        status, answer = await self._send(agent, request, body, expected=(200, *_TASK_PROBLEMS))
        if status in _TASK_PROBLEMS:
            raise _TASK_PROBLEMS[status]
        return answer
