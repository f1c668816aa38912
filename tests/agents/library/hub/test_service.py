"""The hub on both databases: publications and installations at two servers at once, owners, and search."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from roost.agents.library.hub.clawhub.service import HubUploads
from roost.agents.library.hub.errors import HubSkillNotFound, HubVersionConflict
from roost.agents.library.hub.maintenance import HubMaintenance, is_bundled, read_catalogue
from roost.agents.library.hub.model import HubCursor, HubFilter, HubReference, HubSort, Publication, parse_terms
from roost.agents.library.skills.model import LibrarySkill
from roost.core.db import Database
from roost.core.problem import NotFound, Problem
from roost.identity.model import DEFAULT_TENANT
from tests.agents.library.skills.skills_env import QuotaExceeded, SkillsEnv, make_bundle


@pytest.fixture
def env(database: Database, tmp_path: Path) -> SkillsEnv:
    return SkillsEnv(database, tmp_path)


@pytest.fixture
def other(database_url: str, database: Database, env: SkillsEnv, tmp_path: Path) -> Iterator[SkillsEnv]:
    """Return a second server of the same database and blobs."""
    db = Database(database_url)
    yield SkillsEnv(db, tmp_path)
    db.close()


async def publish(env: SkillsEnv, name: str = "notes", text: str = "", tenant: str = "", **fields: Any) -> Any:
    return await env.publisher.publish_bundle(tenant or env.tenant, make_bundle(name, text), Publication(**fields))


async def outcomes(*calls: Awaitable[Any]) -> list[Any]:
    """Return results, and the types of problems."""
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(one, Problem) for one in found if isinstance(one, BaseException)), found
    return [type(one) if isinstance(one, Problem) else one for one in found]


def test_the_first_eight_words_of_a_query_count() -> None:
    assert parse_terms("A b c d a e f g h i") == ["a", "b", "c", "d", "e", "f", "g", "h"]


async def test_two_servers_publish_one_version_at_once(env: SkillsEnv, other: SkillsEnv) -> None:
    found = await outcomes(*(publish(one) for one in (env, other) * 3))
    assert len({one.version.id for one in found}) == 1
    _, versions = await env.hub.get_detail(HubReference("notes"))
    assert [one.version for one in versions] == ["1.0.0"]
    assert len(await env.list_objects()) == 1


async def test_one_number_for_two_contents_is_a_conflict(env: SkillsEnv, other: SkillsEnv) -> None:
    found = await outcomes(publish(env, text="one", version="1.0.0"), publish(other, text="two", version="1.0.0"))
    assert found.count(HubVersionConflict) == 1
    assert len(await env.list_objects()) == 1
    _, versions = await env.hub.get_detail(HubReference("notes"))
    assert len(versions) == 1


async def test_a_refused_publication_leaves_nothing(env: SkillsEnv) -> None:
    env.quota.is_full = True
    assert await outcomes(publish(env)) == [QuotaExceeded]
    assert await env.list_objects() == set()
    assert await outcomes(env.hub.get(HubReference("notes"))) == [HubSkillNotFound]


async def test_two_servers_install_at_once(env: SkillsEnv, other: SkillsEnv) -> None:
    listing = await publish(env)
    theirs = env.find_tenant("theirs")
    found = await outcomes(*(one.hub.install(theirs, listing.skill.id) for one in (env, other) * 3))
    assert len({one.version.id for one in found}) == 1
    assert len(await env.skills.list(theirs)) == 1
    assert (await env.hub.get(HubReference("notes"))).skill.install_count == 1


@pytest.mark.parametrize("is_withdrawn", [True, False])
async def test_installed_while_it_goes_away(env: SkillsEnv, other: SkillsEnv, *, is_withdrawn: bool) -> None:
    """A library has the whole skill or nothing, whether the publisher withdraws it or the tenant deletes it."""
    theirs = env.find_tenant("theirs")
    for number in range(5):
        listing = await publish(env, text=str(number))
        installed = None if is_withdrawn else await env.hub.install(theirs, listing.skill.id)
        removal: Awaitable[Any] = (
            env.publisher.unpublish(env.tenant, listing.skill.id)
            if installed is None
            else env.skills.delete(theirs, installed.skill.id)
        )
        found, _ = await outcomes(other.hub.install(theirs, listing.skill.id), removal)
        assert isinstance(found, LibrarySkill) or issubclass(found, NotFound), found
        for one in await env.skills.list(theirs):
            assert (await env.skills.read_version(one.version)).files.keys() == {"SKILL.md"}
            await env.skills.delete(theirs, one.skill.id)
        if not is_withdrawn:
            await env.publisher.unpublish(env.tenant, listing.skill.id)


async def test_no_tenant_publishes_under_the_name_of_another(env: SkillsEnv, other: SkillsEnv) -> None:
    names = ["Roost", "Default!", "a b", "A-B", "@a_b", "\u0430 b", "..", "ada@mail.example", DEFAULT_TENANT]
    tenants = [env.find_tenant(name) for name in names]
    owners = await asyncio.gather(*(one.publisher.get_owner(tenant) for tenant in tenants for one in (env, other, env)))
    handles = {owner.tenant_id: owner.handle for owner in owners}
    assert handles[tenants[-1]] == "default"
    assert (handles[tenants[0]], handles[tenants[-2]]) == ("roost-2", "ada")
    assert handles[tenants[1]] == "default-2"
    assert len(set(handles.values())) == len(tenants), handles
    mine, theirs = await publish(env), await publish(env, tenant=tenants[0])
    assert mine.skill.id != theirs.skill.id
    assert (await env.hub.get(HubReference("notes", "roost-2"))).skill.id == theirs.skill.id
    assert await outcomes(env.publisher.unpublish(env.tenant, theirs.skill.id)) == [HubSkillNotFound]


async def search(env: SkillsEnv, text: str) -> Sequence[str]:
    """Return the names that both kinds of search find."""
    ranked = [one.skill.name for one in await env.hub.rank(text, 10)]
    listings, _ = await env.hub.search(HubFilter(parse_terms(text)), None, 10)
    listed = [one.skill.name for one in listings]
    assert sorted(ranked) == sorted(listed)
    return sorted(listed)


async def test_search_text_is_text(env: SkillsEnv) -> None:
    """No character of a query is an operator of SQL, of LIKE or of a regular expression."""
    await publish(env, "plain", category="other")
    await publish(env, "odd", author_name="100% o'clock a_b back\\slash (x|y)* [z]")
    for text in ("100%", "o'clock", "a_b", "back\\slash", "(x|y)*", "[z]", "%", "_", "'", "\\"):
        assert await search(env, text) == ["odd"], text
    for text in ("%%", "__", "x.y", ".*", "' or 1=1 --", "'; drop table hub_skills; --", "plain_", "\u0130" * 60):
        assert await search(env, text) == [], text
    assert await search(env, "") == ["odd", "plain"]
    for chosen in (HubFilter(prefix="%"), HubFilter(prefix="_lain"), HubFilter(category="' or 1=1 --")):
        assert await env.hub.search(chosen, None, 10) == ([], None)


async def test_forged_cursors_are_refused_or_a_position(env: SkillsEnv) -> None:
    await publish(env)
    for sort in HubSort:
        for value in (
            0,
            -1,
            10**30,
            1.5,
            True,
            None,
            "x",
            "\0",
            "\ud800",
            "x" * 10_000,
            [],
            {},
            "9999-99-99",
            "' or 1",
        ):
            for row_id in ("", "x", "\0", "\ud800", "'", cast("str", 7)):  # a client makes its own cursors
                token = HubCursor(sort, value, row_id).token()
                await outcomes(env.hub.search(HubFilter(sort=sort), token, 10))


async def test_skills_of_the_package_that_could_not_be_published_are_tried_again(
    env: SkillsEnv, database: Database
) -> None:
    catalogue = [make_bundle("notes"), make_bundle("tables")]
    maintenance = HubMaintenance(database, env.hub, env.publisher, HubUploads(database), env.skills, catalogue)
    env.quota.is_full = True
    await maintenance.run()
    assert await outcomes(env.hub.get(HubReference("notes"))) == [HubSkillNotFound]
    env.quota.is_full = False
    for _ in range(2):
        await maintenance.run()
        found = [await env.hub.get_detail(HubReference(name)) for name in ("notes", "tables")]
        assert [(one.skill.owner, len(versions)) for one, versions in found] == [("roost", 1)] * 2
        await publish(env, tenant=env.find_tenant(DEFAULT_TENANT))  # the operator's own copy is another skill


async def test_only_the_files_of_the_package_have_the_mark(env: SkillsEnv) -> None:
    """Earlier releases published the operator's own skills as `@roost/...` too: these stay, without the mark."""
    operator, bundled = env.find_tenant(DEFAULT_TENANT), read_catalogue()[0]
    packaged = await env.publisher.publish_bundle(operator, bundled, Publication(is_bundled=True))
    name = packaged.skill.name
    earlier = await env.publisher.publish_bundle(operator, make_bundle("own"), Publication(is_bundled=True))
    changed = await publish(env, name, "Other text.", tenant=operator, is_bundled=True)
    copied = await env.publisher.publish_bundle(env.find_tenant("Roost"), bundled, Publication())
    found = [await env.hub.get(HubReference(name, "roost"), one) for one in ("1.0.0", changed.version.version)]
    assert [is_bundled(one) for one in (*found, earlier, copied)] == [True, False, False, False]
    assert (await env.hub.get(HubReference("own", "roost"))).skill.id == earlier.skill.id
    assert (await publish(env, "own", "Next.", tenant=operator)).skill.slug == "@default/own"
    await env.publisher.unpublish(operator, earlier.skill.id)
