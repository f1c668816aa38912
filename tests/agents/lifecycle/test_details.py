"""What callers see of an agent: its token is for those who may have it, its process is what the warden says now."""

from roost.agents.registry.model import Agent
from roost.drivers.runtime.contract import ContainerSpec
from roost.identity.caller import Caller, CallerKind
from tests.agents.lifecycle.house import House, until


async def test_the_token_is_for_its_holder_and_for_unlimited_keys(home: House) -> None:
    agent = await home.create()
    token = (await home.gateways.read(agent.id)).reveal()
    owner = home.caller()
    limited = Caller(CallerKind.SERVICE, owner.tenant_id, scopes=frozenset({"agents:read"}))
    holder = Caller(CallerKind.GATEWAY, owner.tenant_id, agent_id=agent.id, scopes=frozenset({"agents:read"}))
    assert (await home.services.details.show(owner, agent.id)).agent.gateway_token == token
    assert (await home.services.details.show(holder, agent.id)).agent.gateway_token == token
    assert (await home.services.details.show(limited, agent.id)).agent.gateway_token is None


async def test_a_list_has_the_tenants_own_and_no_token(home: House) -> None:
    agents = [await home.create(name) for name in ("one", "two")]
    listed = await home.services.details.list(home.caller())
    assert [record.agent_id for record in listed.agents] == [agent.id for agent in reversed(agents)]
    assert {record.gateway_token for record in listed.agents} == {None}
    assert listed.agent_limit == 20
    assert (await home.services.details.list(home.caller("other"))).agents == []


async def test_the_process_as_it_is_now(home: House) -> None:
    agent = await home.create()
    status, pid = await home.services.details.process(agent)
    assert status == "running"
    assert pid in {process.pid for process in (await home.warden(agent.id).processes()).values()}
    await home.warden(agent.id).stop("gateway")
    assert await home.services.details.process(agent) == ("not_running", None)
    await home.runtime.stop(agent.id, grace=0)
    assert await home.services.details.process(agent) == ("not_running", None)


async def test_a_process_that_does_not_answer_yet_is_starting(home: House) -> None:
    agent = await home.admitted()
    await home.runtime.start(ContainerSpec(agent.id))
    assert await home.services.details.process(agent) == ("not_running", None)
    await home.warden(agent.id).start("gateway", ["sleep", "1000"], env={})
    status, pid = await home.services.details.process(agent)
    assert (status, pid is None) == ("starting", False)


async def test_one_that_crashed_a_moment_ago_does_not_run(home: House) -> None:
    agent = await home.create()
    await home.warden(agent.id).stop("gateway")
    await home.warden(agent.id).start("gateway", ["false"], env={})
    await until(lambda: _is(home, agent, ("not_running", None)))


async def _is(home: House, agent: Agent, wanted: tuple[str, int | None]) -> bool:
    return await home.services.details.process(agent) == wanted
