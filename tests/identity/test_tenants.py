from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roost import app, config
from roost.core.db import Database
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind, Plan, Role
from roost.identity.errors import MissingUser
from roost.identity.model import DEFAULT_TENANT
from roost.identity.tenants import is_operator, is_operator_tenant


def ensure(database: Database, name: str, plan: Plan | None = None) -> tuple[str, Plan]:
    tenant = database.run(lambda connection: tenants.ensure_tenant(connection, name, plan))
    return tenant.id, tenant.plan


@pytest.mark.parametrize(
    ("name", "plan", "first"),
    [
        ("acme", None, Plan.FREE),
        ("acme", Plan.PAID, Plan.PAID),
        (DEFAULT_TENANT, None, Plan.PAID),  # the operator's own
        (DEFAULT_TENANT, Plan.FREE, Plan.FREE),
    ],
)
def test_the_first_plan(database: Database, name: str, plan: Plan | None, first: Plan) -> None:
    tenant_id, found = ensure(database, name, plan)
    assert found is first
    assert ensure(database, name) == (tenant_id, first)


def test_a_plan_is_set_when_it_is_given(database: Database) -> None:
    tenant_id, _ = ensure(database, "acme")
    assert ensure(database, "acme", Plan.PAID) == (tenant_id, Plan.PAID)
    assert ensure(database, "acme") == (tenant_id, Plan.PAID)
    assert database.run(lambda connection: tenants.get_tenant(connection, tenant_id)).plan is Plan.PAID


def test_names_tell_tenants_apart(database: Database) -> None:
    assert len({ensure(database, name)[0] for name in ("acme", "Acme", "acme ", "\u00e4cme")}) == 4


def test_the_same_name_at_once_is_one_tenant(database: Database) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: ensure(database, "acme"), range(16)))
    assert len(set(made)) == 1


def test_one_that_is_not_there(database: Database) -> None:
    for act in (tenants.get_tenant, tenants.lock_tenant):
        with pytest.raises(MissingUser):
            database.run(lambda connection, act=act: act(connection, "nobody"))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    opened = app.open_database(config.load_settings({"ROOST_DATA": str(tmp_path / "data")}))
    yield opened
    opened.close()


def test_the_operator_is_the_default_tenant_without_limits(db: Database) -> None:
    own, other = (db.run(lambda c, name=name: tenants.ensure_tenant(c, name)).id for name in ("default", "acme"))
    assert db.run(lambda connection: is_operator_tenant(connection, own))
    assert not db.run(lambda connection: is_operator_tenant(connection, other))
    for caller, expected in (
        (Caller(CallerKind.SERVICE, own), True),
        (Caller(CallerKind.SERVICE, own, role=Role.OWNER), True),
        (Caller(CallerKind.SERVICE, other), False),
        (Caller(CallerKind.SERVICE, own, scopes=frozenset({"org:write", "org:read"})), False),
        (Caller(CallerKind.SERVICE, own, is_counted=True), False),
        (Caller(CallerKind.PLATFORM, own, agent_id="a"), False),
        (Caller(CallerKind.GATEWAY, own, agent_id="a"), False),
    ):
        assert db.run(lambda connection, caller=caller: is_operator(connection, caller)) is expected
