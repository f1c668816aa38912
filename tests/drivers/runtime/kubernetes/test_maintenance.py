"""What a server that died in a probe leaves, and what a probe needs."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.kubernetes import driver, maintenance, plan
from roost.drivers.runtime.kubernetes.errors import KubernetesForbidden
from tests.drivers.runtime.kubernetes.cluster_env import OPTIONS, SPEC, ClusterEnv, until
from tests.support.kubernetes.resources import Object

pytestmark = pytest.mark.container
LEFT = ContainerSpec("probe-left")


def make_claim(env: ClusterEnv, agent_id: str) -> None:
    body = plan.claim_object(OPTIONS, agent_id)
    env.cluster.create({**body, "metadata": {**body["metadata"], "namespace": "agents"}})


def make_old_claims(env: ClusterEnv, *agent_ids: str) -> None:
    for agent_id in agent_ids:
        make_claim(env, agent_id)
        env.make_old("PersistentVolumeClaim", f"roost-{agent_id}")


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
        await other._maintenance.remove_leftovers()
        await until(lambda: env.pods() == ["roost-ada"])
        await until(lambda: len(env.names("Secret")) == 1)
        await other.stop("ada", 0)


async def test_claims_of_old_probes_are_removed(env: ClusterEnv) -> None:
    make_old_claims(env, "probe-old", "ada")
    make_claim(env, "probe-new")
    async with env.server() as runtime:
        await runtime.list()
        await until(lambda: sorted(env.names("PersistentVolumeClaim")) == ["roost-ada", "roost-probe-new"])


async def test_leftovers_are_removed_however_long_it_takes(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_MAINTENANCE_SECONDS", 0.2)
    make_old_claims(env, "probe-a", "probe-b")
    goes_on = asyncio.Event()
    async with env.server() as runtime:
        delete = runtime._api.delete

        async def delete_slowly(path: str, **query: Any) -> Object:
            await goes_on.wait()
            return await delete(path, **query)

        monkeypatch.setattr(runtime._api, "delete", delete_slowly)
        assert list(await runtime.list()) == []
        goes_on.set()
        await until(lambda: env.names("PersistentVolumeClaim") == [])


async def test_a_leftover_that_cannot_be_removed_keeps_no_other(
    env: ClusterEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old_claims(env, "probe-a", "probe-b")
    env.make_old_map("roost-files-old")
    async with env.server() as runtime:
        delete = runtime._api.delete

        async def refuse(path: str, **query: Any) -> Object:
            if path.endswith("probe-a"):
                raise KubernetesForbidden(403, {"message": "no"})
            return await delete(path, **query)

        def fail(_: float) -> None:
            raise ValueError("unexpected")

        monkeypatch.setattr(runtime._api, "delete", refuse)
        with capture_logs() as logs:
            await runtime.list()
            await until(lambda: env.names("ConfigMap") == [])
        await until(lambda: env.names("PersistentVolumeClaim") == ["roost-probe-a"])
        monkeypatch.setattr(runtime._objects, "delete_old_probes", fail)
        await runtime._maintenance.remove_leftovers()
        monkeypatch.undo()
        await runtime._maintenance.remove_leftovers()
        await until(lambda: env.names("PersistentVolumeClaim") == [])
    assert [one["reason"] for one in logs if one["event"] == "leftovers.not_removed"] == ["Kubernetes: no"]


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
