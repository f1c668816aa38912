"""What a server that died in a probe leaves, and what a probe needs."""

import pytest

from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.kubernetes import maintenance, plan
from tests.drivers.runtime.kubernetes.cluster_env import OPTIONS, SPEC, ClusterEnv, until
from tests.support.kubernetes.resources import Object

pytestmark = pytest.mark.container
LEFT = ContainerSpec("probe-left")


async def test_a_probe_has_no_claim_and_leaves_nothing(env: ClusterEnv) -> None:
    env.cluster.store.listeners.append(lambda change: seen.append(change.resource.kind))
    seen: list[str] = []
    async with env.server() as runtime:
        assert (await runtime.probe()).error == ""
    assert "Secret" in seen
    assert "PersistentVolumeClaim" not in seen
    await until(lambda: not [*env.pods(), *env.names("Secret")])


async def test_a_probe_whose_server_died_is_removed_later(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    async with env.server() as dead:
        await dead._begin_watch()
        await dead._start_pod(LEFT)
    async with env.server() as other:
        await other.start(SPEC)
        assert env.pods() == ["roost-ada", "roost-probe-left"]  # it may be a probe that goes on
        monkeypatch.setattr(maintenance, "_PROBE_SECONDS", -1)
        await other._maintenance.run()
        await until(lambda: env.pods() == ["roost-ada"])
        await until(lambda: len(env.names("Secret")) == 1)
        await other.stop("ada", 0)


async def test_claims_of_old_probes_are_removed(env: ClusterEnv) -> None:
    def make_claim(name: str) -> Object:
        body = plan.claim_object(OPTIONS, name)
        return env.cluster.create({**body, "metadata": {**body["metadata"], "namespace": "agents"}})

    for agent_id in ("probe-old", "probe-new", "ada"):
        make_claim(agent_id)
    for agent_id in ("probe-old", "ada"):
        env.make_old("PersistentVolumeClaim", f"roost-{agent_id}")
    async with env.server() as runtime:
        await runtime.list()
    assert sorted(env.names("PersistentVolumeClaim")) == ["roost-ada", "roost-probe-new"]


async def test_a_failure_of_the_policy_keeps_agents_from_starting_but_not_from_being_listed(env: ClusterEnv) -> None:
    env.cluster.add_user("server", "system:serviceaccount:agents:roost")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "create"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules}
    env.cluster.create({**role, "metadata": {"name": "agents", "namespace": "agents"}})
    env.cluster.create({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "agents", "namespace": "agents"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "agents"},
        "subjects": [{"kind": "ServiceAccount", "name": "roost", "namespace": "agents"}],
    })  # fmt: skip
    async with env.server("server") as runtime:
        assert list(await runtime.list()) == []
        with pytest.raises(Exception, match="networkpolicies"):
            await runtime.start(SPEC)
    assert env.pods() == []
