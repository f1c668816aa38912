"""Agents that wait for what their template asks for, on both databases."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roost.agents.library.instances.model import TemplateInstance
from roost.agents.library.templates.model import Submission, TemplateSource
from roost.agents.library.templates.service import TemplateService
from roost.agents.lifecycle.archives.task_import import IMPORT_TASKS
from roost.agents.registry.model import Agent
from roost.agents.setup.secrets.model import SecretKind
from roost.core import clock
from roost.core.db import Database
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.git.local_folder import LocalRepository
from roost.storage.content.service import ContentService
from roost.storage.files.service import FileService
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env

MANIFEST = {
    "version": 1,
    "agent": {"name": "Reader"},
    "template": {"slug": "reader"},
    "tasks": [{"name": "Digest", "prompt": "Sum up", "schedule": "0 7 * * *"}],
}


@pytest.fixture
async def env(database: Database, tmp_path: Path) -> AsyncIterator[LifecycleEnv]:
    async with open_lifecycle_env(database, tmp_path / "data") as opened:
        yield opened


async def make_agent(env: LifecycleEnv, folder: Path, **manifest: Any) -> Agent:
    """Create the rows of an agent from a template."""
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(MANIFEST | manifest))
    content = ContentService(env.db, FolderStore(folder / "blobs"))
    templates = TemplateService(env.db, LocalRepository(folder), content, FileService(env.db).quota, ["fake"])
    template, version = await templates.submit(env.caller().tenant_id, Submission(TemplateSource("")))
    agent = await env.create_row()
    fields = {"template_id": template.id, "slug": template.slug, "name": template.name, "commit_sha": "0" * 40}
    instance = TemplateInstance(
        agent.id, **fields, version=1, manifest=version.manifest, is_waiting=True, attempt=None,
        created_at=clock.utc_now(),
    )  # fmt: skip
    await env.db.write(lambda connection: env.instances.add(connection, instance))
    return agent


async def count_imports(env: LifecycleEnv) -> int:
    query = sa.text("SELECT count(*) FROM operations WHERE kind = :kind")
    return await env.db.read(lambda connection: connection.execute(query, {"kind": IMPORT_TASKS}).scalar_one())


async def test_of_several_servers_one_enqueues_the_tasks(env: LifecycleEnv, database_url: str, tmp_path: Path) -> None:
    agent = await make_agent(env, tmp_path / "template")
    second = Database(database_url)
    async with open_lifecycle_env(second, tmp_path / "data", host="two") as other:
        reasons = await asyncio.gather(*(one.instances.prepare(agent) for one in (env, other) * 3))
    second.close()
    assert reasons == [None] * 6
    assert await count_imports(env) == 1
    assert await env.instances.prepare(agent) is None
    assert await count_imports(env) == 1


async def test_an_agent_waits_until_its_secret_is_attached(env: LifecycleEnv, tmp_path: Path) -> None:
    agent = await make_agent(env, tmp_path / "template", secrets=[{"name": "READER_KEY"}])
    assert await env.instances.prepare(agent) == "The agent waits for READER_KEY"
    assert await env.instances.find_startable([agent]) == set()
    other = await env.secrets.create(agent.tenant_id, "OTHER_KEY", "x", SecretKind.SECRET)
    await env.secrets.attach(agent.tenant_id, agent.id, [other.id])
    assert await env.instances.find_startable([agent]) == set()
    wanted = await env.secrets.create(agent.tenant_id, "READER_KEY", "x", SecretKind.SECRET)
    await env.secrets.attach(agent.tenant_id, agent.id, [wanted.id])
    assert await env.instances.find_startable([agent]) == {agent.id}
    assert await env.instances.prepare(agent) is None
    assert await env.instances.find_startable([agent]) == set()
    assert await count_imports(env) == 1
