"""The templates of the package in a server that starts again."""

from pathlib import Path

import pytest

from roost.identity.model import DEFAULT_TENANT
from tests.support.server import running

pytestmark = pytest.mark.container


async def test_an_archived_template_stays_archived_and_the_others_stay(tmp_path: Path) -> None:
    async with running(tmp_path, ROOST_CATALOGUE="true") as server:
        client = server.client(server.key(DEFAULT_TENANT))
        before = {one["slug"]: one["templateId"] for one in (await client.get("/v0/templates")).json()["templates"]}
        assert len(before) == 5
        assert (await client.delete(f"/v0/templates/{before.pop('researcher')}")).status_code == 200
    async with running(tmp_path, ROOST_CATALOGUE="true") as server:
        client = server.client(server.key(DEFAULT_TENANT))
        after = {one["slug"]: one["templateId"] for one in (await client.get("/v0/templates")).json()["templates"]}
        assert after == before
