"""What strangers may ask for costs a fixed number of queries and little processor time, whatever is published."""

import asyncio
import io
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

from roost.agents.library.hub import store as hub_store
from roost.agents.library.hub.model import HubReference
from roost.agents.library.skills.verdict import Verdict, VerdictLevel
from roost.agents.library.skills.verdict.model import Finding
from roost.agents.library.templates import store as template_store
from roost.agents.library.templates.model import Template, TemplateStatus
from roost.core import clock, ids, log
from roost.core.machine.threads import FairThreads
from roost.http.server.application import create_bare_application
from roost.http.stack.routes import list_operations
from tests.support.server import RunningServer

QUERIES = 10
CPU_SECONDS = 0.6
"""Of server and client together: what is read one by one takes many times as long."""
MANY = 200
MEGABYTES = 8
LONG_QUERY = "+".join(f"word{number}{'x' * 15}" for number in range(8))
TARGETS = [{"slug": "heavy", "version": f"0.{number}.0"} for number in range(1, 101)]

HEAVIEST: dict[tuple[str, str], tuple[str, str, dict[str, Any]]] = {
    ("GET", "/api/v1/trending"): ("agents.localhost", "/api/v1/trending?limit=100", {}),
    ("GET", "/api/v1/skills/{slug}/install"): ("agents.localhost", "/api/v1/skills/heavy/install", {}),
    ("GET", "/api/v1/skills/{slug}/verify"): ("agents.localhost", "/api/v1/skills/heavy/verify", {}),
    ("POST", "/api/v1/skills/-/security-verdicts"): (
        "agents.localhost",
        "/api/v1/skills/-/security-verdicts",
        {"json": {"items": TARGETS}},
    ),
    ("GET", "/.well-known/clawhub.json"): ("agents.localhost", "/.well-known/clawhub.json", {}),
    ("GET", "/api/v1/search"): ("agents.localhost", "/api/v1/search?limit=200&q=heavy", {}),
    ("GET", "/api/v1/skills"): ("agents.localhost", "/api/v1/skills?limit=200", {}),
    ("GET", "/api/v1/skills/{slug}"): ("agents.localhost", "/api/v1/skills/heavy", {}),
    ("GET", "/api/v1/skills/{slug}/versions"): ("agents.localhost", "/api/v1/skills/heavy/versions", {}),
    ("GET", "/api/v1/skills/{slug}/versions/{version}"): (
        "agents.localhost",
        "/api/v1/skills/heavy/versions/1.0.0",
        {},
    ),
    ("GET", "/api/v1/skills/{slug}/file"): ("agents.localhost", "/api/v1/skills/heavy/file?path=SKILL.md", {}),
    ("GET", "/api/v1/skills/{slug}/scan"): ("agents.localhost", "/api/v1/skills/heavy/scan", {}),
    ("GET", "/api/v1/skills/{slug}/moderation"): ("agents.localhost", "/api/v1/skills/heavy/moderation", {}),
    ("GET", "/api/v1/download"): ("agents.localhost", "/api/v1/download?slug=heavy&version=1.0.0", {}),
    ("GET", "/api/v1/resolve"): ("agents.localhost", f"/api/v1/resolve?slug=heavy&hash={'0' * 64}", {}),
    ("GET", "/v0/public-templates"): ("agents.localhost", f"/v0/public-templates?limit=100&q={LONG_QUERY[:100]}", {}),
    ("GET", "/v0/sign-in"): ("{agent}.agents.localhost", f"/v0/sign-in?code={'a' * 500}", {}),
    ("POST", "/v0/session"): ("localhost", "/v0/session", {"json": {"code": "a" * 8_000}}),
    ("GET", "/v0/session"): ("localhost", "/v0/session", {}),
    ("POST", "/v3/files/{file_id}"): (
        "uploads.localhost",
        f"/v3/files/{'0' * 32}?X-Signature=a",
        {"content": b"a" * 1000},
    ),
    ("OPTIONS", "/v3/files"): ("uploads.localhost", "/v3/files", {}),
    ("HEAD", "/v3/files/{file_id}/{token}"): ("uploads.localhost", f"/v3/files/{'0' * 32}/{'a' * 64}", {}),
    ("PATCH", "/v3/files/{file_id}/{token}"): ("uploads.localhost", f"/v3/files/{'0' * 32}/{'a' * 64}", {}),
    ("DELETE", "/v3/files/{file_id}/{token}"): ("uploads.localhost", f"/v3/files/{'0' * 32}/{'a' * 64}", {}),
    ("GET", "/healthz"): ("agents.localhost", "/healthz", {}),
    ("GET", "/readyz"): ("agents.localhost", "/readyz", {}),
    ("GET", "/metrics"): ("agents.localhost", "/metrics", {}),
    ("GET", "/.well-known/roost"): ("agents.localhost", "/.well-known/roost", {}),
}
"""The heaviest request of each operation without a credential: host, path and options."""


@pytest.fixture(scope="module")
async def filled(server: RunningServer) -> RunningServer:
    """Publish much: a skill with all versions, findings and bytes that are allowed, and many small ones."""
    publisher = server.client(server.key("publisher"))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("heavy/SKILL.md", "---\nname: heavy\ndescription: Heavy.\n---\n" + "text " * 20_000)
        writer.writestr("heavy/data.bin", bytes(MEGABYTES * 1000**2))
    made = await publisher.post("/v0/skills", content=archive.getvalue(), headers={"Content-Type": "application/zip"})
    assert made.status_code == 201, made.text
    shown = await publisher.post(f"/v0/skills/{made.json()['skill']['skillId']}/publish", json={"version": "1.0.0"})
    assert shown.status_code == 200, shown.text
    await server.roost.core.db.write(_fill)
    return server


def _fill(connection: Connection) -> None:
    finding = Finding("remote-script", VerdictLevel.REVIEW, "SKILL.md", 1, "x" * 200)
    heavy = HubReference("heavy")
    skill = hub_store.find_skills(connection, [heavy])[heavy]
    (version,) = hub_store.list_versions(connection, skill.id)
    full = Verdict(VerdictLevel.REVIEW, [finding] * 200, version.verdict.rules_version)
    hub_store.set_verdict(connection, version.id, full)
    version = replace(version, verdict=full, body="text " * 20_000, changelog="x" * 1_000)
    for number in range(1, MANY):
        at = version.created_at - timedelta(seconds=number)
        other = replace(version, id=ids.new_id(), version=f"0.{number}.0", cid=f"bafy{number}", created_at=at)
        hub_store.insert_version(connection, other)
        one = replace(version, id=ids.new_id(), hub_skill_id=ids.new_id(), cid="bafy", version="1.0.0")
        name = f"skill-{number}"
        hub_store.insert_skill(connection, replace(skill, id=one.hub_skill_id, name=name, latest_id=one.id))
        hub_store.insert_version(connection, one)
        template_store.insert_template(connection, _template(skill.tenant_id, number))


def _template(tenant_id: str, number: int) -> Template:
    now = clock.utc_now()
    texts = dict.fromkeys(("author_name", "category", "git_url", "commit_sha", "snapshot_cid"), "x")
    none = ("name_override", "author_url", "author_logo_url", "engine", "vibe", "emoji", "git_ref", "git_path")
    return Template(
        id=ids.new_id(), tenant_id=tenant_id, slug=f"template-{number}", name=f"Template {number}",
        description="word0 " * 100, tags=(), secrets=(), skills=(), status=TemplateStatus.PUBLISHED, featured=False,
        version=1, created_at=now, updated_at=now, **texts, **dict.fromkeys(none),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collect the statements of requests, not those of background work; long reads run in the request's own context."""
    found: list[str] = []

    async def read_here(_: FairThreads, owner: str, read: Callable[[], Any]) -> Any:
        return read()

    def collect(*call: Any) -> None:
        if log.request_id.get() is not None:
            found.append(call[2])

    monkeypatch.setattr(FairThreads, "run", read_here)
    event.listen(Engine, "before_cursor_execute", collect)
    yield found
    event.remove(Engine, "before_cursor_execute", collect)


def test_each_public_operation_has_its_heaviest_request() -> None:
    public = {(one.method, one.path) for one in list_operations(create_bare_application()) if not one.credentials}
    assert public - {("HEAD", "/v0/sign-in")} == HEAVIEST.keys()


@pytest.mark.parametrize("operation", HEAVIEST, ids=" ".join)
async def test_public_operation_costs_few_queries_and_little_time(
    filled: RunningServer, operation: tuple[str, str], statements: list[str]
) -> None:
    host, path, options = HEAVIEST[operation]
    public = filled.client(host=host.format(agent="a" * 16))
    used: list[float] = []
    for _ in range(3):  # the first one loads code; one may share the process with background work
        statements.clear()
        began = time.process_time()
        answer = await public.request(operation[0], path, **options)
        used.append(time.process_time() - began)
        assert answer.status_code < 500, answer.text
        assert len(statements) <= QUERIES, statements
    assert min(used) <= CPU_SECONDS
    if operation[1].startswith(("/api/v1", "/v0/public")):
        assert answer.status_code == 200, answer.text


async def test_readiness_is_checked_once_for_requests_at_the_same_time(
    filled: RunningServer, statements: list[str]
) -> None:
    public = filled.client()
    answers = await asyncio.gather(*(public.get("/readyz") for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert 1 <= statements.count("SELECT 1") <= 5
