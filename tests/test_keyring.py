"""The key-encryption key: created once, kept private, never guessed, replaced without losing a value."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roost import app, keyring
from roost.config import load_settings
from roost.core.db import Database
from roost.core.machine.private_file import lock_folder
from roost.core.seal import Sealer, SealingKeyMissing, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.api_keys import ApiKeys
from roost.identity.gateway_tokens import GatewayTokens
from roost.keyring import KeyBusy, load_sealer, rotate_keys
from roost.settings import BadSettings, Settings

Open = Callable[..., tuple[Settings, Database]]


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture
def deployment(tmp_path: Path, database_url: str) -> Iterator[Open]:
    """Open the deployment on one data folder and database, with changes of the environment."""
    opened: list[Database] = []

    def open_deployment(**environment: str) -> tuple[Settings, Database]:
        source = {"ROOST_DATA": str(tmp_path / "data"), "ROOST_DATABASE_URL": database_url, **environment}
        settings = load_settings(source)
        opened.append(app.open_database(settings))
        return settings, opened[-1]

    yield open_deployment
    for db in opened:
        db.close()


def mint(db: Database, seal: Sealer, agent_id: str) -> str:
    def add(connection) -> str:
        tenant = tenants.ensure_tenant(connection, "acme")
        return GatewayTokens(db, seal).mint(connection, agent_id, tenant.id).reveal()

    return db.run(add)


async def read(db: Database, seal: Sealer, agent_id: str) -> str:
    return (await GatewayTokens(db, seal).read(agent_id)).reveal()


def test_a_key_is_made_once_and_readable_by_its_owner_only(deployment: Open) -> None:
    settings, db = deployment()
    sealed = load_sealer(settings, db).seal(b"value", "here")
    path = settings.kek_file
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert load_sealer(settings, db).open(sealed, "here").reveal() == b"value"
    assert sorted(path.parent.iterdir()) == [path]


def test_processes_that_start_at_once_agree(deployment: Open) -> None:
    settings, db = deployment()
    with ThreadPoolExecutor(8) as pool:
        made = {key.key_id for key in pool.map(lambda _: load_sealer(settings, db), range(8))}
    assert len(made) == 1


@pytest.mark.parametrize("content", ["", "nonsense", "ab" * 31, "was " + "ab" * 8])
def test_a_damaged_key_file_stops_the_server(deployment: Open, content: str) -> None:
    settings, db = deployment()
    settings.kek_file.parent.mkdir(parents=True)
    settings.kek_file.write_text(content)
    with pytest.raises(BadSettings, match="key-encryption key"):
        load_sealer(settings, db)


def test_no_key_is_made_beside_values_of_another(deployment: Open) -> None:
    settings, db = deployment()
    mint(db, load_sealer(settings, db), "a")
    kept = settings.kek_file.read_text()
    settings.kek_file.unlink()
    with pytest.raises(BadSettings, match="is missing"):
        load_sealer(settings, db)
    assert not settings.kek_file.exists()
    settings.kek_file.write_text("ab" * 32)
    with pytest.raises(BadSettings, match="restore that key"):
        load_sealer(settings, db)
    with pytest.raises(BadSettings, match="ROOST_KEK is not the key"):
        load_sealer(deployment(ROOST_KEK="cd" * 32)[0], db)
    settings.kek_file.write_text(kept)
    load_sealer(settings, db)


def test_the_key_before_stands_beside_a_given_one_only(deployment: Open) -> None:
    settings, db = deployment(ROOST_KEK_OLD="ab" * 32)
    with pytest.raises(BadSettings, match="kek_old"):
        load_sealer(settings, db)


async def test_everything_is_under_the_new_key_and_the_old_one_is_gone(deployment: Open) -> None:
    settings, db = deployment()
    seal = load_sealer(settings, db)
    tokens = {agent: mint(db, seal, agent) for agent in ("a", "b")}
    old = settings.kek_file.read_text().strip()
    done = rotate_keys(settings, db, settle=0)
    assert (done.renewed, done.lost, done.resumed) == (2, 0, False)
    assert old not in settings.kek_file.read_text()
    assert settings.kek_file.stat().st_mode & 0o777 == 0o600
    assert sorted(settings.kek_file.parent.iterdir()) == [settings.kek_file]
    fresh = load_sealer(settings, db)
    assert fresh.key_id.hex() == done.key_id
    for agent, token in tokens.items():
        assert await read(db, fresh, agent) == token
        with pytest.raises(UnsealFailed):
            await read(db, Sealer(Sensitive(bytes.fromhex(old))), agent)


async def test_a_running_server_takes_the_new_key(deployment: Open) -> None:
    settings, db = deployment()
    running = load_sealer(settings, db)
    token = mint(db, running, "a")
    rotate_keys(settings, db, settle=0)
    assert await read(db, running, "a") == token
    idle = load_sealer(settings, db)
    for _ in range(2):  # which a server that missed both has to use
        rotate_keys(settings, db, settle=0)
    mint(db, idle, "b")
    assert await read(db, load_sealer(settings, db), "b")


def test_nothing_is_sealed_with_a_key_that_is_gone_or_strange(deployment: Open) -> None:
    settings, db = deployment()
    running = load_sealer(settings, db)
    sealed, kept = running.seal(b"value", "here"), settings.kek_file.read_text()
    for content in (None, "ab" * 32, "damaged"):
        settings.kek_file.unlink(missing_ok=True)
        if content is not None:
            settings.kek_file.write_text(content)
        with pytest.raises(SealingKeyMissing):
            running.seal(b"value", "here")
        assert running.open(sealed, "here").reveal() == b"value"
    settings.kek_file.write_text(kept)
    running.seal(b"value", "here")


async def test_unreadable_values_are_counted_and_left(deployment: Open) -> None:
    settings, db = deployment()
    tokens = {agent: mint(db, load_sealer(settings, db), agent) for agent in ("a", "b", "c")}
    mint(db, Sealer(Sensitive(bytes(32))), "b2")
    done = rotate_keys(settings, db, settle=0)
    assert (done.renewed, done.lost) == (3, 1)
    assert await read(db, load_sealer(settings, db), "c") == tokens["c"]


async def test_a_key_that_is_given_is_exchanged_by_two_settings(deployment: Open) -> None:
    settings, db = deployment(ROOST_KEK="ab" * 32)
    token = mint(db, load_sealer(settings, db), "a")
    with pytest.raises(BadSettings, match="ROOST_KEK_OLD"):
        rotate_keys(settings, db, settle=0)
    both, _ = deployment(ROOST_KEK="cd" * 32, ROOST_KEK_OLD="ab" * 32)
    assert await read(db, load_sealer(both, db), "a") == token
    assert rotate_keys(both, db, settle=0).renewed == 1
    assert rotate_keys(both, db, settle=0).renewed == 0
    assert await read(db, load_sealer(deployment(ROOST_KEK="cd" * 32)[0], db), "a") == token


def test_two_exchanges_at_once_are_one(deployment: Open) -> None:
    settings, db = deployment()
    load_sealer(settings, db)
    with lock_folder(settings.kek_file.parent), pytest.raises(KeyBusy):
        rotate_keys(settings, db, settle=0)


_KILLED = """
import os, signal
from pathlib import Path
from roost import app, config, keyring
from roost.core.db import sealed

def counted(function):
    def call(*arguments, **options):
        global steps
        steps -= 1
        if steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

counted_names = {os: ("open", "link", "fsync"), Path: ("replace", "unlink")}
counted_names[sealed] = ("reseal_page", "lock_sealed_writes")
for module, names in counted_names.items():
    for name in names:
        setattr(module, name, counted(getattr(module, name)))
sealed._PAGE = 2
at = 0
while True:
    at += 1
    if (child := os.fork()) == 0:
        steps, settings = at, config.load_settings()
        keyring.rotate_keys(settings, app.open_database(settings), settle=0)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    input()
"""


async def test_killed_at_any_point_nothing_is_lost_and_the_next_call_finishes(
    deployment: Open, tmp_path: Path, database_url: str
) -> None:
    """The process dies at its first step, then at its second, and so on until a call finishes."""
    settings, db = deployment()
    seal = load_sealer(settings, db)
    tokens = {f"a{number}": mint(db, seal, f"a{number}") for number in range(5)}
    environment = {**os.environ, "ROOST_DATA": str(tmp_path / "data"), "ROOST_DATABASE_URL": database_url}
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for step in range(1, 100):
            code = int(process.stdout.readline())
            for agent, token in tokens.items():
                assert await read(db, load_sealer(settings, db), agent) == token, step
            assert await read(db, seal, "a0") == tokens["a0"]  # and by the server that kept running
            if code == 0:
                break
            assert code == -signal.SIGKILL
            process.stdin.write("\n")
            process.stdin.flush()
        process.kill()
    assert step > 10
    assert len(keyring._read_keys(settings.kek_file).keys) == 1


@pytest.mark.parametrize("dialect", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_beside_servers_that_seal_all_the_time(deployment: Open) -> None:
    """Another process creates and replaces tokens while the key is replaced again and again."""
    settings, db = deployment()
    seal, over = load_sealer(settings, db), threading.Event()
    tokens: dict[str, str] = {}

    def busy() -> None:
        number = 0
        while not over.is_set():
            tokens[f"n{number}"] = mint(db, seal, f"n{number}")
            number += 1

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(busy)
        _, other = deployment()
        for _ in range(2):
            rotate_keys(settings, other, settle=0.3)
        over.set()
        work.result()
    fresh = load_sealer(settings, db)
    assert len(tokens) > 3
    for agent, token in tokens.items():
        assert await read(db, fresh, agent) == token
    key = db.run(
        lambda connection: ApiKeys(db, fresh).issue(connection, tenants.ensure_tenant(connection, "acme"), "k")
    )
    rotate_keys(settings, other, settle=0)
    assert (await ApiKeys(db, load_sealer(settings, db)).verify(key.reveal())).key_id
