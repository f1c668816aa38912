"""The key-encryption key of a deployment, from the settings or a key file in the data folder, and its rotation.

The first line of the key file is the newest key. During a rotation the previous key follows; afterwards its id does
(`was <id>`), by which a running server recognises a new key as this deployment's own. No key is created for a database
with sealed values, which it could not open.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from roost.core import clock, ids, log
from roost.core.db import Connection, Database, sealed
from roost.core.machine.private_file import lock_folder, write_private_file
from roost.core.problem import Problem
from roost.core.seal import KEY_BYTES, Sealer, SealingKeyMissing, SealingKeys
from roost.core.sensitive import Sensitive
from roost.settings import BadSettings, Settings

_log = log.get_logger("keyring")
_SETTLE_SECONDS = 2.0
_POLL_SECONDS = 0.2
_RETIRED = "was "


class KeyBusy(Problem):
    message = "Another process is rotating the key-encryption key; wait until it has finished"


@dataclass(frozen=True)
class KeyRotation:
    """Result of a rotation: values resealed, values that no known key opens, and whether it resumed another."""

    renewed: int
    lost: int
    key_id: str
    resumed: bool = False


def load_sealer(settings: Settings, db: Database) -> Sealer:
    """Return the sealer for a migrated database; a new deployment gets its key here.

    Raises BadSettings if the key is missing, damaged, or not the one that sealed the values in the database.
    """
    used = db.run(sealed.key_ids)
    if settings.kek is not None:
        sealer = Sealer(*_configured_keys(settings))
    else:
        path = settings.kek_file
        if settings.kek_old is not None:
            raise BadSettings(f"kek_old: needs kek; without kek the key is in {path}")
        if not path.exists():
            if used:
                raise BadSettings(_missing_message(path, used))
            _write_keys(path, SealingKeys((_new_key(),)), first=True)
        _read_keys(path)
        sealer = Sealer(source=partial(_load_keys, path))
    known = used & set(sealer.key_ids)
    if used and not known:
        source = "ROOST_KEK" if settings.kek is not None else str(settings.kek_file)
        raise BadSettings(
            f"{source} is not the key that sealed the values in this database ({_format_ids(used)}): restore that key. "
            "Nothing was changed."
        )
    if used != known:
        _log.warning("sealing_key.not_found", keys=_format_ids(used - known))
    return sealer


def rotate_keys(settings: Settings, db: Database, settle: float = _SETTLE_SECONDS) -> KeyRotation:
    """Create a new key and reseal every value of the deployment. Blocking; servers may be running.

    It can be killed at any point: both keys stay in place until all values are resealed, and the next call resumes. For
    `settle` seconds it also reseals values that servers still write with the old key. Raises BadSettings, KeyBusy.
    """
    load_sealer(settings, db)
    if settings.kek is not None:
        return _reseal(db, SealingKeys(_rotation_keys(settings)), settle)
    path = settings.kek_file
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(path.parent, wait=False))
        except BlockingIOError:
            raise KeyBusy from None
        keys = _read_keys(path)
        resumed = len(keys.keys) > 1
        if not resumed:
            keys = SealingKeys((_new_key(), *keys.keys), keys.retired)
            _write_keys(path, keys)
        done = _reseal(db, keys, settle)
        _write_keys(path, SealingKeys(keys.keys[:1], keys.retired.union(keys.ids[1:])))
    return replace(done, resumed=resumed)


def _reseal(db: Database, keys: SealingKeys, settle: float) -> KeyRotation:
    sealer = Sealer(*keys.keys)
    renewed, _ = _reseal_all(db, sealer)
    end = clock.monotonic_seconds() + settle
    while clock.monotonic_seconds() < end:
        time.sleep(_POLL_SECONDS)
        renewed += _reseal_all(db, sealer)[0]
    db.run(sealed.lock_sealed_writes)  # waits until all transactions with sealed values have committed
    last, lost = _reseal_all(db, sealer)
    return KeyRotation(renewed + last, lost, sealer.key_id.hex())


def _reseal_all(db: Database, sealer: Sealer) -> tuple[int, int]:
    """Reseal all values in short transactions; return the number of resealed values and of unreadable ones."""
    renewed = lost = 0
    for column in sealed.sealed_columns():
        skip, more = 0, True
        while more:

            def page(connection: Connection, column: sealed.Column = column, skip: int = skip) -> sealed.ResealResult:
                return sealed.reseal_page(connection, sealer, column, skip)

            done = db.run(page)
            renewed, skip, more = renewed + done.renewed, skip + done.lost, done.more
        lost += skip
    return renewed, lost


def _configured_keys(settings: Settings) -> list[Sensitive[bytes]]:
    return [key for key in (settings.kek, settings.kek_old) if key is not None]


def _rotation_keys(settings: Settings) -> list[Sensitive[bytes]]:
    if settings.kek_old is None:
        raise BadSettings(
            "ROOST_KEK is set, so the key is yours to rotate: give every server a new key (`openssl rand -hex 32`) as "
            "ROOST_KEK and the present one as ROOST_KEK_OLD, restart them, and run this command again with the same "
            "two variables. Then remove ROOST_KEK_OLD."
        )
    return _configured_keys(settings)


def _load_keys(path: Path) -> SealingKeys:
    try:
        return _read_keys(path)
    except BadSettings as problem:
        _log.error("sealing_key.read_failed", reason=problem.message)
        raise SealingKeyMissing from None


def _read_keys(path: Path) -> SealingKeys:
    """Read the key file. Raises BadSettings."""
    try:
        lines = path.read_text().split("\n")
        keys = [Sensitive(bytes.fromhex(line)) for line in lines if line.strip() and not line.startswith(_RETIRED)]
        retired = {bytes.fromhex(line.removeprefix(_RETIRED)) for line in lines if line.startswith(_RETIRED)}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not hexadecimal digits"
        raise BadSettings(f"{path}: not a key-encryption key ({reason})") from None
    if not keys or any(len(key.reveal()) != KEY_BYTES for key in keys):
        raise BadSettings(f"{path}: a key-encryption key must have {2 * KEY_BYTES} hexadecimal digits")
    return SealingKeys(tuple(keys), frozenset(retired))


def _write_keys(path: Path, keys: SealingKeys, *, first: bool = False) -> None:
    """Write the key file atomically and durably. first: keep the key of a process that started at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = [*(key.reveal().hex() for key in keys.keys), *(_RETIRED + key_id.hex() for key_id in sorted(keys.retired))]
    write_private_file(path, "".join(f"{line}\n" for line in lines), replace=not first)


def _new_key() -> Sensitive[bytes]:
    return Sensitive(ids.random_bytes(KEY_BYTES))


def _missing_message(path: Path, used: set[bytes]) -> str:
    return (
        f"{path} is missing, and this database holds values that were sealed with that key ({_format_ids(used)}). "
        "Restore the file from a backup, or set ROOST_KEK. No new key was created, because it could not open them."
    )


def _format_ids(key_ids: set[bytes]) -> str:
    return "id " + ", ".join(sorted(key_id.hex() for key_id in key_ids))
