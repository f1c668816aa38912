"""Details of agents: who may read the token, and the current state of the gateway process."""

from roost.agents.lifecycle.workflows.schemas import AgentList
from roost.agents.registry.model import Agent
from roost.drivers.runtime.contract import ContainerSpec
from roost.identity.caller import Caller, CallerKind
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, until


async def test_the_token_is_for_its_holder_and_for_unlimited_keys(env: LifecycleEnv) -> None:
    agent = await env.create()
    token = (await env.gateways.read(agent.id)).reveal()
    owner = env.caller()
    limited = Caller(CallerKind.SERVICE, owner.tenant_id, scopes=frozenset({"agents:read"}))
    holder = Caller(CallerKind.GATEWAY, owner.tenant_id, agent_id=agent.id, scopes=frozenset({"agents:read"}))
    assert (await env.services.details.get_detail(owner, agent.id)).agent.gateway_token == token
    assert (await env.services.details.get_detail(holder, agent.id)).agent.gateway_token == token
    assert (await env.services.details.get_detail(limited, agent.id)).agent.gateway_token is None


async def test_a_list_has_the_tenants_own_and_no_token(env: LifecycleEnv) -> None:
    agents = [await env.create(name) for name in ("one", "two")]
    listed = AgentList.model_validate_json(await env.services.details.encode_list(env.caller()))
    assert [record.agent_id for record in listed.agents] == [agent.id for agent in reversed(agents)]
    assert {record.gateway_token for record in listed.agents} == {None}
    assert listed.agent_limit == 20
    others = AgentList.model_validate_json(await env.services.details.encode_list(env.caller("other")))
    assert list(others.agents) == []


async def test_the_process_state_is_current(env: LifecycleEnv) -> None:
    agent = await env.create()
    status, pid = await env.services.details.get_process(agent)
    assert status == "running"
    assert pid in {process.pid for process in (await env.warden(agent.id).processes()).values()}
    await env.warden(agent.id).stop("gateway")
    assert await env.services.details.get_process(agent) == ("not_running", None)
    await env.runtime.stop(agent.id, grace=0)
    assert await env.services.details.get_process(agent) == ("not_running", None)


async def test_a_process_that_does_not_answer_yet_is_starting(env: LifecycleEnv) -> None:
    agent = await env.create_row()
    await env.runtime.start(ContainerSpec(agent.id))
    assert await env.services.details.get_process(agent) == ("not_running", None)
    await env.warden(agent.id).start("gateway", ["sleep", "1000"], env={})
    status, pid = await env.services.details.get_process(agent)
    assert (status, pid is None) == ("starting", False)


async def test_a_gateway_that_just_crashed_is_not_running(env: LifecycleEnv) -> None:
    agent = await env.create()
    await env.warden(agent.id).stop("gateway")
    await env.warden(agent.id).start("gateway", ["false"], env={})
    await until(lambda: _is(env, agent, ("not_running", None)))


async def _is(env: LifecycleEnv, agent: Agent, wanted: tuple[str, int | None]) -> bool:
    return await env.services.details.get_process(agent) == wanted
