"""The operator: the owner of the tenant that comes with the deployment, and nobody with limits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost import app, config
from roost.core.db import Database
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind, Role
from roost.identity.operator import is_operator, is_operator_tenant


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
