"""Lists and watches: versions, selectors, pages, bookmarks, and what is expired."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.kubernetes.client import KubernetesClient, Object, config_map
from tests.support.kubernetes.cluster import FakeCluster

MERGE = "application/merge-patch+json"


async def next_event(events: AsyncIterator[Object]) -> tuple[str, str]:
    """Return the type of the next event and the name of its object; the server's own objects are passed over."""
    async with asyncio.timeout(20):
        async for event in events:
            name = event["object"]["metadata"].get("name", "")
            if name != "kube-root-ca.crt":
                return event["type"], name
    raise AssertionError("the watch has ended")


def names(found: Object) -> list[str]:
    return [one["metadata"]["name"] for one in found["items"] if not one["metadata"]["name"].endswith(".crt")]


@pytest.fixture
async def filled(api: KubernetesClient) -> KubernetesClient:
    for name, labels in (("a", {"tier": "x"}), ("b", {"tier": "y"}), ("c", {})):
        await api.create(api.path("configmaps"), config_map(name, labels))
    return api


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=x", "a"), ("tier==x", "a"), ("tier!=x", "bc"), ("tier in (x, y)", "ab"), ("tier notin (x)", "bc"),
        ("tier", "ab"), ("!tier", "c"), ("tier in (x,y),tier!=y", "a"), ("tier=", ""),
    ],
)  # fmt: skip
async def test_label_selector_selects_objects(filled: KubernetesClient, selector: str, expected: str) -> None:
    assert names(await filled.get(filled.path("configmaps"), labelSelector=selector)) == list(expected)


async def test_field_selector_selects_objects(filled: KubernetesClient) -> None:
    path = filled.path("configmaps")
    assert names(await filled.get(path, fieldSelector="metadata.name=b")) == ["b"]
    assert names(await filled.get(path, fieldSelector="metadata.name!=b")) == ["a", "c"]
    code, reason, message = await filled.refused("GET", path, fieldSelector="data.x=1")
    known = '"metadata.name", "metadata.namespace"'
    assert (code, reason, message) == (400, "BadRequest", f'"data.x" is not a known field selector: only {known}')
    message = "field label not supported: spec.image"
    assert await filled.refused("GET", filled.path("pods"), fieldSelector="spec.image=1") == (
        400,
        "BadRequest",
        message,
    )


async def test_items_of_a_list_have_no_kind(filled: KubernetesClient) -> None:
    found = await filled.get(filled.path("configmaps"))
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(found["metadata"]["resourceVersion"]) > 0
    assert not any({"kind", "apiVersion"} & set(one) for one in found["items"])


async def test_pages_show_one_version_of_a_list(filled: KubernetesClient) -> None:
    path = filled.path("configmaps")
    total = len((await filled.get(path))["items"])
    first = await filled.get(path, limit="2")
    assert first["metadata"]["remainingItemCount"] == total - 2
    await filled.request("DELETE", f"{path}/b")
    await filled.create(path, config_map("d"))
    second = await filled.get(path, **{"limit": "100", "continue": first["metadata"]["continue"]})
    assert names(first) + names(second) == ["a", "b", "c"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"resourceVersionMatch": "Exact"}, 422), ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422),
        ({"sendInitialEvents": "true"}, 422), ({"resourceVersion": "x"}, 400), ({"continue": "x"}, 400),
        ({"watch": "1", "resourceVersionMatch": "NotOlderThan"}, 422),
        ({"watch": "1", "sendInitialEvents": "true"}, 422),
    ],
)  # fmt: skip
async def test_contradictory_options_are_refused(api: KubernetesClient, query: dict[str, str], code: int) -> None:
    assert (await api.refused("GET", api.path("configmaps"), **query))[0] == code


async def test_version_of_the_future_is_a_timeout(api: KubernetesClient) -> None:
    found = await api.request("GET", api.path("configmaps"), resourceVersion="99999999")
    assert (found.status_code, found.headers["retry-after"]) == (504, "1")
    assert found.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_exact_version_shows_the_past(filled: KubernetesClient) -> None:
    path = filled.path("configmaps")
    version = (await filled.get(path))["metadata"]["resourceVersion"]
    await filled.request("DELETE", f"{path}/a")
    past = await filled.get(path, resourceVersion=version, resourceVersionMatch="Exact")
    assert names(past) == ["a", "b", "c"]
    assert past["metadata"]["resourceVersion"] == version
    assert names(await filled.get(path, resourceVersion=version, resourceVersionMatch="NotOlderThan")) == ["b", "c"]


async def test_watch_goes_on_from_a_version(filled: KubernetesClient) -> None:
    path = filled.path("configmaps")
    version = (await filled.get(path))["metadata"]["resourceVersion"]
    await filled.create(path, config_map("d"))
    await filled.request("PATCH", f"{path}/d", {"data": {"x": "1"}}, kind=MERGE)
    deleted = await filled.request("DELETE", f"{path}/d")
    assert deleted.status_code == 200
    async with filled.watch(path, resourceVersion=version) as events:
        assert await next_event(events) == ("ADDED", "d")
        assert await next_event(events) == ("MODIFIED", "d")
        assert await next_event(events) == ("DELETED", "d")
        await filled.create(path, config_map("e"))
        assert await next_event(events) == ("ADDED", "e")


async def test_watch_without_a_version_begins_with_what_is_there(filled: KubernetesClient) -> None:
    async with filled.watch(filled.path("configmaps"), labelSelector="tier") as events:
        assert {await next_event(events), await next_event(events)} == {("ADDED", "a"), ("ADDED", "b")}
        await filled.create(filled.path("configmaps"), config_map("d", {"tier": "z"}))
        assert await next_event(events) == ("ADDED", "d")


async def test_watch_of_a_selector_sees_objects_come_and_go(filled: KubernetesClient) -> None:
    path = filled.path("configmaps")
    version = (await filled.get(path))["metadata"]["resourceVersion"]
    async with filled.watch(path, resourceVersion=version, labelSelector="tier=x") as events:
        await filled.request("PATCH", f"{path}/c", {"metadata": {"labels": {"tier": "x"}}}, kind=MERGE)
        assert await next_event(events) == ("ADDED", "c")
        changed = await filled.request("PATCH", f"{path}/c", {"metadata": {"labels": {"tier": "y"}}}, kind=MERGE)
        event = await anext(events)
        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["labels"] == {"tier": "x"}
        assert event["object"]["metadata"]["resourceVersion"] == changed.json()["metadata"]["resourceVersion"]


async def test_initial_events_end_with_a_bookmark(filled: KubernetesClient) -> None:
    total = len((await filled.get(filled.path("configmaps")))["items"])
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with filled.watch(filled.path("configmaps"), **query) as events:
        seen: list[Object] = []
        async with asyncio.timeout(20):
            async for event in events:
                seen.append(event)
                if event["type"] == "BOOKMARK":
                    break
        bookmark = seen[-1]["object"]
        assert [one["type"] for one in seen[:-1]] == ["ADDED"] * total
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert bookmark["kind"] == "ConfigMap"
        await filled.create(filled.path("configmaps"), config_map("d"))
        assert await next_event(events) == ("ADDED", "d")


async def test_watch_ends_at_its_timeout_with_a_bookmark(cluster: FakeCluster, filled: KubernetesClient) -> None:
    query = {"resourceVersion": "0", "allowWatchBookmarks": "true", "timeoutSeconds": "1", "labelSelector": "none"}
    async with filled.watch(filled.path("configmaps"), **query) as events:
        cluster.lister.send_bookmarks()
        assert [event["type"] async for event in events][:1] == ["BOOKMARK"]
    assert cluster.lister.watch_count == 0
    assert (await filled.get(filled.path("configmaps", "a")))["metadata"]["name"] == "a"


async def test_compacted_versions_are_expired(cluster: FakeCluster, filled: KubernetesClient) -> None:
    path = filled.path("configmaps")
    page = await filled.get(path, limit="1")
    await filled.create(path, config_map("d"))
    cluster.store.compact()
    async with filled.watch(path, resourceVersion=page["metadata"]["resourceVersion"]) as events:
        event = await anext(events)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: ")
    found = (await filled.request("GET", path, **{"limit": "1", "continue": page["metadata"]["continue"]})).json()
    assert (found["code"], found["reason"]) == (410, "Expired")
    rest = await filled.get(path, **{"continue": found["metadata"]["continue"]})
    assert names(rest) == ["b", "c", "d"]


async def test_reads_at_version_zero_can_be_stale(cluster: FakeCluster, filled: KubernetesClient) -> None:
    path = filled.path("configmaps")
    cluster.lister.stale_by = 1
    assert names(await filled.get(path, resourceVersion="0")) == ["a", "b"]
    assert names(await filled.get(path)) == ["a", "b", "c"]
