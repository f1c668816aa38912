"""Agents made from templates: what they wait for, and the channels whose tokens have come.

A waiting agent is started when it has what its template requires. `prepare` decides that at each start; between starts
`find_startable` finds agents that got something since the last attempt.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from roost.agents.library.instances import model, store
from roost.agents.library.instances.model import AgentInputs, InstanceDetail, TemplateInstance
from roost.agents.library.templates.manifest import TemplateChannel, TemplateManifest, TemplateTask
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent
from roost.agents.setup.channels.model import Channel
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.validator import ChannelValidator, supported_channels
from roost.agents.setup.secrets.model import Secret
from roost.agents.setup.secrets.service import SecretService
from roost.core import log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.identity import tenants

ListNames = Callable[[str], Awaitable[Collection[str] | None]]
"""Lists names of what an agent has, by the agent's id; None if they are not known."""
EnqueueTasks = Callable[[Connection, Agent, Sequence[TemplateTask]], None]
"""Enqueues the creation of tasks, which only a running engine can store."""
FindLatest = Callable[[str, str], Awaitable[int | None]]
"""Returns the newest version of a template that a tenant can find, None if it was archived."""
_log = log.get_logger("template_instances")


@dataclass(frozen=True)
class TemplateInstanceService:
    _db: Database
    _runtimes: AgentRuntimes
    _secrets: SecretService
    _channels: ChannelRepository
    _validator: ChannelValidator
    _list_models: ListNames
    _enqueue_tasks: EnqueueTasks
    _find_latest: FindLatest

    @staticmethod
    def add(connection: Connection, instance: TemplateInstance) -> None:
        """Record an agent's template, in the transaction that creates the agent."""
        store.insert_instance(connection, instance)

    async def find(self, agent_id: str) -> TemplateInstance | None:
        """Return the template that an agent was made from."""
        return await self._db.read(lambda connection: store.get_instance(connection, agent_id))

    async def find_model(self, agent_id: str) -> str | None:
        """Return the model that an agent's template names."""
        instance = await self.find(agent_id)
        return instance and instance.parse_manifest().model

    async def describe(self, agent: Agent, skills: Collection[str]) -> InstanceDetail | None:
        """Return an agent's template, and what the agent lacks of what it asks for.

        `skills` are the CIDs and slugs of its skills. Raises AgentNotFound.
        """
        if (instance := await self.find(agent.id)) is None:
            return None
        latest = await self._find_latest(agent.tenant_id, instance.template_id)
        inputs, _ = await self._get_inputs(agent.id)
        inputs = replace(inputs, skills=skills, models=await self._list_models(agent.id))
        return InstanceDetail(instance, latest, model.list_missing(instance.parse_manifest(), inputs))

    async def prepare(self, agent: Agent) -> str | None:
        """Prepare an agent for its first start, and return why it cannot start yet.

        Channels whose tokens are attached are configured. An agent that lacks nothing gets its tasks and is not held
        back any more. Raises AgentNotFound, UnsealFailed.
        """
        instance = await self.find(agent.id)
        if instance is None or not instance.is_waiting:
            return None
        manifest, (inputs, secrets) = instance.parse_manifest(), await self._get_inputs(agent.id)
        refusals = await self._configure_channels(agent, manifest, inputs)
        inputs, _ = await self._get_inputs(agent.id)
        waits_for = model.blocking_names(model.list_missing(manifest, inputs))
        attempt = model.describe_attempt(secrets, inputs.channels)

        def record(connection: Connection) -> None:
            was_waiting = store.set_waiting(connection, agent.id, attempt, is_waiting=bool(waits_for))
            if was_waiting and not waits_for:  # another server may have been faster
                self._enqueue_tasks(connection, agent, manifest.tasks)

        await self._db.write(record)
        if not waits_for:
            return None
        reasons = [f"{name}: {refusals[name]}" if name in refusals else name for name in waits_for]
        return f"The agent waits for {', '.join(reasons)}"

    async def find_startable(self, agents: Sequence[Agent]) -> Collection[str]:
        """Return the ids of those waiting agents that got what they lacked since the last attempt."""
        waiting = await self._db.read(lambda connection: store.list_waiting(connection, [agent.id for agent in agents]))
        return {instance.agent_id for instance in waiting if await self._is_startable(instance)}

    async def _is_startable(self, instance: TemplateInstance) -> bool:
        try:
            inputs, secrets = await self._get_inputs(instance.agent_id)
        except Problem:  # deleted meanwhile, or its channels cannot be decrypted
            return False
        if model.describe_attempt(secrets, inputs.channels) == instance.attempt:
            return False
        manifest = instance.parse_manifest()
        ready = model.ready_channels(manifest, inputs)
        return not set(model.blocking_names(model.list_missing(manifest, inputs))) - ready.keys()

    async def _get_inputs(self, agent_id: str) -> tuple[AgentInputs, Sequence[Secret]]:
        secrets = [one.secret for one in await self._secrets.list_attached(agent_id)]
        channels = (await self._channels.get_channels(agent_id)).keys()
        names = [secret.name for secret in secrets]
        return AgentInputs(names, channels), secrets

    async def _configure_channels(
        self, agent: Agent, manifest: TemplateManifest, inputs: AgentInputs
    ) -> Mapping[str, str]:
        """Configure the channels whose tokens are attached; return by name why some of them were refused."""
        refusals: dict[str, str] = {}
        ready = model.ready_channels(manifest, inputs)
        if not ready:
            return refusals
        try:
            values = await self._secrets.environment.get_values(agent.id)
        except Problem as problem:
            return dict.fromkeys(ready, problem.message)
        for name, channel in ready.items():
            try:
                await self._channels.save(agent.id, await self._validate(agent, name, channel, values))
            except Problem as problem:
                _log.warning("template_channel.refused", agent=agent.id, channel=name, reason=problem.message)
                refusals[name] = problem.message
        return refusals

    async def _validate(
        self, agent: Agent, name: str, channel: TemplateChannel, values: Mapping[str, Sensitive[str]]
    ) -> Channel:
        plan = (await self._db.read(lambda connection: tenants.get_tenant(connection, agent.tenant_id))).plan
        supported = supported_channels(self._runtimes.get_engine(agent.engine), agent.engine_version)
        request = model.channel_request(channel, values)
        return (await self._validator.validate(name, request, None, plan, supported, agent.id)).channel
