"""The Kubernetes runtime where a cluster fails: lost nodes, images, open networks, other servers, rights."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from roost.core.machine.unix_socket import Stream
from roost.core.problem import Problem
from roost.drivers.runtime.contract import ContainerLimits, ContainerStartTimedOut, RuntimeFailed
from roost.drivers.runtime.kubernetes import driver, probe
from roost.drivers.runtime.kubernetes.errors import KubernetesAlreadyExists, KubernetesUnreachable
from roost.drivers.runtime.kubernetes.exec_socket import open_exec
from tests.conformance.clusters import running_wardens
from tests.conformance.runtimes import drop_stream
from tests.drivers.runtime.kubernetes.cluster_env import SPEC, ClusterEnv, until
from tests.support.kubernetes.resources import BY_KIND

pytestmark = pytest.mark.container
ROLE = Path(__file__).parents[4] / "deploy/chart/files/role-rules.yaml"
RULES: list[dict[str, Any]] = yaml.safe_load(ROLE.read_text())


async def test_a_lost_node_keeps_its_agent(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_END_SECONDS", 0.3)
    async with env.server() as runtime:
        await runtime.start(SPEC)
        env.cluster.lose_node("node-1")
        env.cluster.add_node("node-2")
        for attempt in (runtime.stop("ada", 0), runtime.start(replace(SPEC, delete_only=True)), runtime.delete("ada")):
            with pytest.raises(RuntimeFailed, match=r"its node node-1 does not answer\. It may still run there"):
                await attempt
            assert env.pods() == ["roost-ada"]
        env.cluster.recover_node("node-1")
        await until(lambda: not env.pods())
        await runtime.start(SPEC)
        await runtime.stop("ada")


async def test_an_image_that_is_missing_is_named(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_START_SECONDS", 0.2)
    monkeypatch.setattr(driver, "_LOOK_SECONDS", 0.1)
    env.cluster.kubelet.pulls.errors["fake:1"] = "not found"
    async with env.server() as runtime:
        with pytest.raises(ContainerStartTimedOut, match=r"Its image fake:1 cannot be loaded: .*not found"):
            await runtime.start(SPEC)
    await until(lambda: not env.pods())


async def test_a_start_reports_what_it_waits_for_once(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_LOOK_SECONDS", 0.05)
    reported: list[str] = []

    async def report(reason: str) -> None:
        reported.append(reason)
        if len(reported) == 1:
            env.cluster.add_node("node-2")

    env.cluster.kubelet.pulls.delay = 3
    env.cluster.writer.delete(BY_KIND["Node"], ("", "node-1"), {})
    async with env.server() as runtime:
        await runtime.start(replace(SPEC, report_wait=report))
        begins = [reason.partition(":")[0] for reason in reported]
        assert begins == ["No node has space for it", "The node loads the image"]
        await runtime.stop("ada", 0)


async def test_a_container_is_found_without_a_look_at_the_others(
    env: ClusterEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with env.server() as runtime:
        started = await runtime.start(replace(SPEC, delete_only=True))
        assert list(await runtime.list()) == [started]
        monkeypatch.delattr(type(runtime), "list")
        assert await runtime.find_container("ada") == started
        assert started.delete_only
        assert await runtime.find_container("bob") is None
        await runtime.stop("ada", 0)
        assert await runtime.find_container("ada") is None


async def test_agents_start_only_where_network_policies_count(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = ["10.0.0.1:443"]

    async def read_reached(_warden: object, _addresses: object) -> list[str]:
        return reached

    monkeypatch.setattr(driver, "read_reached", read_reached)
    async with env.server(accepts_open_network=False) as runtime:
        for _ in range(2):  # the second time without another probe
            with pytest.raises(RuntimeFailed, match="does not enforce network policies"):
                await runtime.start(SPEC)
        (network,) = [one for one in (await runtime.probe()).enforcement if one.name == "network"]
        assert (network.enforced, network.reason) == (False, "pods reach 10.0.0.1:443")
        assert env.pods() == []
        reached.clear()
        monkeypatch.setattr(driver, "_RECHECK_SECONDS", 0)
        await runtime.start(SPEC)
        await runtime.stop("ada", 0)


async def test_a_probe_of_a_pod_finds_what_it_reaches(env: ClusterEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_SETTLE_SECONDS", 0)
    listen = "import socket, time; s = socket.create_server(('127.0.0.1', 8080)); open('ready', 'w'); time.sleep(60)"
    async with env.server() as runtime:
        await runtime.start(SPEC)
        warden = runtime._open_warden("ada")
        await warden.start("gateway", ["/usr/bin/python3", "-c", listen], env={})
        await until((env.folder / "pods/agents/ada/workspace/ready").exists)
        assert await probe.read_reached(warden, [("127.0.0.1", 8080), ("127.0.0.1", 8081)]) == ["127.0.0.1:8080"]
        await runtime.stop("ada", 0)


async def test_the_limits_of_processes_count_in_a_pod(env: ClusterEnv) -> None:
    limits = ContainerLimits(open_files=200, file_bytes=1 << 20)
    async with env.server() as runtime:
        await runtime.start(replace(SPEC, limits=limits))
        warden = runtime._open_warden("ada")
        shown = await warden.exec(["/bin/sh", "-c", "ulimit -Sn; ulimit -Hn; ulimit -Hc; head -c 2M /dev/zero > file"])
        assert (shown.stdout, shown.exit_code != 0) == (b"200\n200\n0\n", True)
        assert (env.folder / "pods/agents/ada/workspace/file").stat().st_size == 1 << 20
        await runtime.stop("ada", 0)


async def test_every_server_reaches_every_agent(env: ClusterEnv) -> None:
    async with env.server() as one, env.server() as two:
        started = await one.start(SPEC)
        assert list(await two.list()) == [started]
        assert await two.start(SPEC) == started
        (await two.connect("ada"))[1].close()
        await two.stop("ada")
        await until(lambda: not env.pods())
        assert list(await one.list()) == []


async def test_a_server_without_relays_keeps_no_bridge(env: ClusterEnv) -> None:
    """A bridge of its own would take the relays from the server that has the agent now."""
    async with env.server() as old, env.server() as new:
        listener = await old.listen("ada", "api", drop_stream)
        await old.start(SPEC)
        await new.listen("ada", "api", drop_stream)
        for runtime in (old, new):
            await runtime.list()
        assert list(old._bridges.list_kept()) == list(new._bridges.list_kept()) == ["ada"]
        listener.close()
        for runtime in (old, new):
            await runtime.list()
        assert (list(old._bridges.list_kept()), list(new._bridges.list_kept())) == ([], ["ada"])


async def test_a_start_that_another_server_won_leaves_its_pod(env: ClusterEnv) -> None:
    async with env.server() as one, env.server() as two:
        started = await two.start(SPEC)
        (pod,) = env.cluster.store.objects("Pod", "agents")
        await one._begin_watch()
        with pytest.raises(KubernetesAlreadyExists):
            await one._start_pod(SPEC)  # as with a watch that is behind
        assert await one.start(SPEC) == started
        assert env.cluster.store.objects("Pod", "agents")[0]["metadata"]["uid"] == pod["metadata"]["uid"]
        await one.stop("ada", 0)


async def test_a_pod_that_the_watch_has_not_shown_is_ended(env: ClusterEnv) -> None:
    async with env.server() as runtime:
        await runtime._begin_watch()
        await runtime._objects.create(SPEC)
        runtime._pods.objects.pop("roost-ada", None)
        await runtime.stop("ada", 0)
        assert env.pods() == []


async def test_an_agent_that_was_deleted_starts_again(env: ClusterEnv) -> None:
    async with env.server() as runtime, env.server() as other:
        await runtime.start(SPEC)
        await runtime.delete("ada")
        await runtime.start(SPEC)
        (await other.connect("ada"))[1].close()
        await runtime.delete("ada")
        await until(lambda: not env.cluster.store.objects("Secret", "agents"))
        assert list(await runtime.list_stored()) == []


async def test_a_pod_without_an_answer_names_the_likely_reason(
    env: ClusterEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(driver, "_ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(driver, "open_tls_carrier", refuse)
    async with env.server() as runtime:
        with pytest.raises(ContainerStartTimedOut, match="does a network policy keep this server from it"):
            await runtime.start(SPEC)
    assert env.pods() == []


async def test_a_running_agent_is_reached_while_the_api_server_is_away(env: ClusterEnv) -> None:
    async with env.server() as runtime:
        await runtime.start(SPEC)
        await runtime._bridges.drop("ada")
        runtime._pods.failure = KubernetesUnreachable("away")
        with pytest.raises(KubernetesUnreachable):
            await runtime.list()
        (await runtime.connect("ada"))[1].close()


async def test_a_watch_that_was_cut_works_again_at_once(env: ClusterEnv) -> None:
    async with env.server() as runtime:
        started = await runtime.start(SPEC)
        await env.cluster.server.drop_connections()
        async with asyncio.timeout(10):  # a bookmark would come after a minute
            while True:
                with suppress(KubernetesUnreachable):
                    if list(await runtime.list()) == [started] and runtime._pods.failure is None:
                        break
                await asyncio.sleep(0.05)
        await runtime.stop("ada", 0)


async def test_a_pod_that_ended_is_removed(env: ClusterEnv) -> None:
    async with env.server() as runtime:
        await runtime.start(SPEC)
        (pod,) = env.cluster.store.objects("Pod", "agents")
        env.cluster.evict_pod("agents", "roost-ada", "The node was low on resource: memory.")
        await until(lambda: env.cluster.store.objects("Pod", "agents")[0]["status"]["phase"] == "Failed")
        await until(lambda: runtime._pods.objects["roost-ada"].is_final)
        assert list(await runtime.list()) == []
        assert pod["metadata"]["uid"] not in {found["metadata"]["uid"] for found in env.cluster.store.objects("Pod")}


async def use_all_rights(env: ClusterEnv, token: str) -> list[str]:
    """Do what a server does with an agent; return what fails, and whether its events are read."""
    found: list[str] = []

    async def attempt(action: Awaitable[object]) -> object:
        try:
            async with asyncio.timeout(5):
                return await action
        except (Problem, TimeoutError) as problem:
            found.append(type(problem).__name__)

    async with env.server(token) as runtime:
        await attempt(runtime._objects.shared.ensure_policy())
        env.make_old_map("roost-files-old")
        await attempt(runtime._objects.shared.remove_unused_files([]))
        found += [name for name in env.names("ConfigMap") if name == "roost-files-old"]
        await attempt(runtime.start(SPEC))
        if opened := await attempt(open_exec(runtime._api, runtime._api.path("pods", "roost-ada"), ["true"])):
            cast("Stream", opened)[1].close()
        await attempt(runtime.list_stored())
        pods = env.cluster.store.objects("Pod", "agents")
        found.append(f"events: {[bool(await runtime._objects.list_events(pod['metadata']['uid'])) for pod in pods]}")
    async with env.server(token) as other:
        if opened := await attempt(other.connect("ada")):
            cast("Stream", opened)[1].close()
        await attempt(other.stop("ada", 0))
        for secret in env.cluster.store.objects("Secret", "agents"):  # an operator deletes it
            env.cluster.writer.delete(BY_KIND["Secret"], ("agents", secret["metadata"]["name"]), {})
    async with env.server(token, server_labels={"upgraded": "label"}) as third:
        await attempt(third.start(SPEC))
        await attempt(third.delete("ada"))
    return found


async def test_the_role_has_what_a_server_needs_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_LIST_SECONDS", 0.5)
    verbs = [(number, verb) for number, rule in enumerate(RULES) for verb in rule["verbs"]]
    complete: list[str] = []
    for number, verb in [(-1, ""), *verbs]:
        kept = [[one for one in rule["verbs"] if (at, one) != (number, verb)] for at, rule in enumerate(RULES)]
        rules = [{**rule, "verbs": left} for rule, left in zip(RULES, kept, strict=True) if left]
        if number >= 0 and "metrics.k8s.io" in RULES[number]["apiGroups"]:
            continue  # the fake cluster has no metrics server
        async with running_wardens(tmp_path / f"{number}-{verb}") as cluster:
            cluster.add_user("server", "system:serviceaccount:agents:roost")
            cluster.load(yaml.safe_dump_all(role_objects(rules)), "agents")
            found = await use_all_rights(ClusterEnv(cluster, tmp_path), "server")
        if not complete:
            complete = found
            assert complete == ["events: [True]"]
        else:
            assert found != complete, f"a server does without {verb} of {RULES[number]['resources']}"


def role_objects(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    api, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    return [
        {"apiVersion": api, "kind": "Role", "metadata": {"name": "agents"}, "rules": rules},
        {
            "apiVersion": api,
            "kind": "RoleBinding",
            "metadata": {"name": "agents"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "agents"},
            "subjects": [{"kind": "ServiceAccount", "name": "roost", "namespace": "agents"}],
        },
    ]
