"""What pods share: the policy after upgrades and changes by hand, and files of versions that no pod mounts."""

import asyncio
from typing import Any

import pytest

from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.kubernetes import driver, plan
from tests.drivers.runtime.kubernetes.cluster_env import OPTIONS, SPEC, ClusterEnv, until
from tests.support.kubernetes.resources import BY_KIND, Object

pytestmark = pytest.mark.container


def read_policy(env: ClusterEnv) -> Object:
    (found,) = env.cluster.store.objects("NetworkPolicy", "agents")
    return found


async def test_a_policy_is_made_before_the_first_pod_without_a_probe(env: ClusterEnv) -> None:
    async with env.server() as runtime:
        await runtime.start(SPEC)
        assert read_policy(env)["spec"] == plan.network_policy(OPTIONS)["spec"]
        await runtime.stop("ada", 0)


@pytest.mark.parametrize("change", [{"server_labels": {"new": "label"}}, {"server_networks": ()}, {"uses_exec": True}])
async def test_a_policy_of_an_earlier_version_is_replaced(env: ClusterEnv, change: dict[str, Any]) -> None:
    async with env.server(**change) as earlier:
        await earlier.list()
        assert read_policy(env)["spec"] != plan.network_policy(OPTIONS)["spec"]
    async with env.server() as later:
        await later.list()
    assert read_policy(env)["spec"] == plan.network_policy(OPTIONS)["spec"]


async def test_a_policy_that_is_as_planned_stays_as_it_is(env: ClusterEnv) -> None:
    async with env.server() as one, env.server() as two:
        await one.list()

        def leave_out(live: Object) -> Object:  # an API server does so with what is empty
            return {**live, "spec": {name: value for name, value in live["spec"].items() if value}}

        env.cluster.writer.change(read_policy(env), leave_out)
        version = read_policy(env)["metadata"]["resourceVersion"]
        await two.list()
        assert read_policy(env)["metadata"]["resourceVersion"] == version


async def test_a_policy_that_was_deleted_is_made_again(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    async with env.server() as runtime:
        await runtime.list()
        env.cluster.writer.delete(BY_KIND["NetworkPolicy"], ("agents", "roost-agents"), {})
        await runtime.list()
        assert env.names("NetworkPolicy") == []  # the look is not due
        monkeypatch.setattr("roost.drivers.runtime.kubernetes.maintenance._PERIOD_SECONDS", 0)
        await runtime.list()
        assert env.names("NetworkPolicy") == ["roost-agents"]


async def test_a_policy_is_right_after_servers_changed_it_at_once(env: ClusterEnv) -> None:
    """A server that read the policy before another one replaced it reads it again."""
    async with env.server(server_labels={"old": "label"}) as earlier:
        await earlier.list()
    async with env.server() as runtime:
        shared, patch = runtime._objects.shared, runtime._api.patch
        conflicts = 0

        async def change_first(path: str, body: object, kind: str = "merge-patch", **query: Any) -> Object:
            nonlocal conflicts
            if not conflicts:
                conflicts += 1
                env.cluster.writer.change(read_policy(env), lambda live: {
                    **live, "spec": {**live["spec"], "ingress": [{}]}
                })  # fmt: skip
            return await patch(path, body, kind, **query)

        runtime._api.patch = change_first  # pyright: ignore[reportAttributeAccessIssue] - for this test
        await shared.ensure_policy()
        assert conflicts == 1
    assert read_policy(env)["spec"] == plan.network_policy(OPTIONS)["spec"]


async def test_files_of_earlier_versions_go_when_no_pod_mounts_them(env: ClusterEnv) -> None:
    async with env.server() as runtime:
        await runtime.start(ContainerSpec("ada", files={"/run/trust/ca.pem": b"pem"}))
        used = set(env.names("ConfigMap"))
        for name in used:
            env.make_old("ConfigMap", name)
        env.make_old_map("roost-files-unused")
        env.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "roost-files-new", "namespace": "agents", "labels": OPTIONS.labels}})  # fmt: skip
        env.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "another", "namespace": "agents"}})  # fmt: skip
        env.make_old("ConfigMap", "another")
        async with env.server() as other:
            await other.list()
            await until(lambda: set(env.names("ConfigMap")) == {*used, "roost-files-new", "another"})
        await runtime.stop("ada", 0)


async def test_files_that_go_during_a_start_are_made_again(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_LOOK_SECONDS", 0.2)
    spec = ContainerSpec("ada", files={"/run/trust/ca.pem": b"pem"})
    async with env.server() as runtime, env.server() as other:
        await runtime.start(spec)
        await runtime.stop("ada", 0)
        names = env.names("ConfigMap")
        env.cluster.kubelet.mount_errors["roost-ada"] = "the volume is busy"
        starting = asyncio.create_task(runtime.start(spec))  # it knows that its files are there
        await until(env.pods)
        for name in names:
            env.make_old("ConfigMap", name)
        gone: list[str] = []
        env.cluster.store.listeners.append(lambda change: None if change.now else gone.append(change.key[1]))
        await other._objects.shared.remove_unused_files([])  # its watch has not shown the pod
        assert len(set(gone)) == 1  # the warden's is every server's
        del env.cluster.kubelet.mount_errors["roost-ada"]
        await asyncio.wait_for(starting, 60)
        assert sorted(env.names("ConfigMap")) == sorted(names)
        await runtime.stop("ada", 0)
