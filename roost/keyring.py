"""The key-encryption key of a deployment: given by configuration, or made once in the data folder; and its exchange.

The key file has the newest key in its first line. While keys are being exchanged the one before stands below it;
afterwards its id does, `was <id>`, by which a running server knows that a new key is this deployment's own. A key is
never made beside a database that holds sealed values: they would be lost without a word.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from roost.config import BadSettings, Settings
from roost.core import clock, ids, log
from roost.core.db import Connection, Database, sealed
from roost.core.problem import Problem
from roost.core.seal import KEY_BYTES, Sealer, SealingKeyMissing, SealingKeys
from roost.core.sensitive import Sensitive

_log = log.get_logger("keyring")
_SETTLE = 2.0
_LOOK_EVERY = 0.2
_GIVEN_UP = "was "


class KeyBusy(Problem):
    message = "Another process is exchanging the key-encryption key; wait until it is done"


@dataclass(frozen=True)
class KeyRotation:
    """How many values were sealed anew, and how many no key here opens; `resumed` finished one that was cut off."""

    renewed: int
    lost: int
    key_id: str
    resumed: bool = False


def load_sealer(settings: Settings, db: Database) -> Sealer:
    """The sealer of the deployment whose (migrated) database that is; the first caller of a new one makes the key.

    Raises BadSettings when the key is missing, damaged, or not the one that the database's values are sealed with.
    """
    used = db.run(sealed.key_ids)
    if settings.kek is not None:
        made = Sealer(*_given(settings))
    else:
        path = settings.kek_file
        if settings.kek_old is not None:
            raise BadSettings(f"kek_old: it stands beside kek only; without that the key is in {path}")
        if not path.exists():
            if used:
                raise BadSettings(_missing(path, used))
            _write(path, SealingKeys((_new_key(),)), first=True)
        _read(path)
        made = Sealer(source=partial(_source, path))
    known = used & set(made.key_ids)
    if used and not known:
        where = "ROOST_KEK" if settings.kek is not None else str(settings.kek_file)
        raise BadSettings(
            f"{where} is not the key that the values in this database are sealed with ({_named(used)}): put that one "
            "back. Nothing was changed."
        )
    if used != known:
        _log.warning("some stored values are sealed with a key that is not here", keys=_named(used - known))
    return made


def rotate_keys(settings: Settings, db: Database, settle: float = _SETTLE) -> KeyRotation:
    """Take a new key and seal every value of the deployment anew. Blocking; works beside running servers.

    Can be killed at any point: both keys are in place until all values are under the new one, and the next call
    finishes what was begun. For `settle` seconds values are looked for that were on their way meanwhile.

    Raises BadSettings, KeyBusy.
    """
    load_sealer(settings, db)
    if settings.kek is not None:
        return _seal_anew(db, SealingKeys(_both(settings)), settle)
    path = settings.kek_file
    with _alone(path.parent):
        keys = _read(path)
        resumed = len(keys.keys) > 1
        if not resumed:
            keys = SealingKeys((_new_key(), *keys.keys), keys.given_up)
            _write(path, keys)
        done = _seal_anew(db, keys, settle)
        _write(path, SealingKeys(keys.keys[:1], keys.given_up.union(keys.ids[1:])))
    return KeyRotation(done.renewed, done.lost, done.key_id, resumed)


def _seal_anew(db: Database, keys: SealingKeys, settle: float) -> KeyRotation:
    made = Sealer(*keys.keys)
    renewed, _ = _pass(db, made)
    end = clock.monotonic_seconds() + settle
    while clock.monotonic_seconds() < end:
        time.sleep(_LOOK_EVERY)
        renewed += _pass(db, made)[0]
    db.run(sealed.lock_sealed_writes)  # whoever has sealed something by now has committed it
    last, lost = _pass(db, made)
    return KeyRotation(renewed + last, lost, made.key_id.hex())


def _pass(db: Database, made: Sealer) -> tuple[int, int]:
    """Once through all values, in short transactions: how many were renewed, how many cannot be opened."""
    renewed = lost = 0
    for column in sealed.sealed_columns():
        skip, more = 0, True
        while more:

            def page(connection: Connection, column: sealed.Column = column, skip: int = skip) -> sealed.ResealResult:
                return sealed.reseal_page(connection, made, column, skip)

            done = db.run(page)
            renewed, skip, more = renewed + done.renewed, skip + done.lost, done.more
        lost += skip
    return renewed, lost


def _given(settings: Settings) -> list[Sensitive[bytes]]:
    return [key for key in (settings.kek, settings.kek_old) if key is not None]


def _both(settings: Settings) -> list[Sensitive[bytes]]:
    if settings.kek_old is None:
        raise BadSettings(
            "ROOST_KEK is given by you, so you exchange it: give every server a new key (`openssl rand -hex 32`) as "
            "ROOST_KEK and the present one as ROOST_KEK_OLD, start them anew, and run this again with the same two. "
            "Then take ROOST_KEK_OLD away."
        )
    return _given(settings)


def _source(path: Path) -> SealingKeys:
    try:
        return _read(path)
    except BadSettings as problem:
        _log.error("the key-encryption key cannot be read", reason=problem.message)
        raise SealingKeyMissing from None


def _read(path: Path) -> SealingKeys:
    """Raises BadSettings."""
    try:
        lines = path.read_text().split("\n")
        keys = [Sensitive(bytes.fromhex(line)) for line in lines if line.strip() and not line.startswith(_GIVEN_UP)]
        given_up = {bytes.fromhex(line.removeprefix(_GIVEN_UP)) for line in lines if line.startswith(_GIVEN_UP)}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not hexadecimal digits"
        raise BadSettings(f"{path}: not a key-encryption key ({reason})") from None
    if not keys or any(len(key.reveal()) != KEY_BYTES for key in keys):
        raise BadSettings(f"{path}: a key-encryption key has {2 * KEY_BYTES} hexadecimal digits")
    return SealingKeys(tuple(keys), frozenset(given_up))


def _write(path: Path, keys: SealingKeys, *, first: bool = False) -> None:
    """Whole or not at all, also when the power fails. Where it is the `first`, another process's counts if it is there:
    two that start at once end up with one key.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = [*(key.reveal().hex() for key in keys.keys), *(_GIVEN_UP + one.hex() for one in sorted(keys.given_up))]
    fresh = path.with_name(f".{path.name}.{ids.new_id()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        if first:
            _link(fresh, path)
        else:
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    with _folder(path.parent) as folder:
        os.fsync(folder)


def _link(fresh: Path, path: Path) -> None:
    try:
        os.link(fresh, path)
    except FileExistsError:
        _log.debug("another process was first; its key is the key")


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    with _folder(folder) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeyBusy from None
        yield


@contextmanager
def _folder(path: Path) -> Generator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _new_key() -> Sensitive[bytes]:
    return Sensitive(ids.random_bytes(KEY_BYTES))


def _missing(path: Path, used: set[bytes]) -> str:
    return (
        f"{path} is missing, and this database holds values that were sealed with that key ({_named(used)}). Put the "
        "file back from a backup, or give the key as ROOST_KEK. No new key was made: it could not open them."
    )


def _named(key_ids: set[bytes]) -> str:
    return "id " + ", ".join(sorted(one.hex() for one in key_ids))
