"""What `roost doctor` finds: each part tried on this machine, with what to do where it does not work."""

import asyncio
import platform
from collections.abc import Sequence

from roost import __version__, app, config
from roost.drivers.blob.contract import BlobStoreFailed
from roost.drivers.network.contract import NetworkRefused, SourceFailed
from roost.drivers.runtime.contract import Capabilities
from roost.storage.content import service as content

Row = dict[str, str]


def examine(settings: config.Settings) -> Sequence[Row]:
    """A row a part: `part`, `status` (`ok`, `no`: not enforced or not there, `fail`: agents cannot run), `detail`."""
    runtime = app.runtime(settings, app.engines(settings))
    found = asyncio.run(runtime.probe())
    return [
        _python(),
        *_runtime(runtime.name, found),
        *_engines(settings),
        _database(settings),
        _blobs(settings),
        *_content(settings),
        _network(settings),
        *_models(settings),
    ]


def _python() -> Row:
    return _row("roost", "ok", f"{__version__} on Python {platform.python_version()}, {platform.platform()}")


def _runtime(name: str, found: Capabilities) -> Sequence[Row]:
    status, detail = ("ok", "containers start") if found.usable else ("fail", found.error)
    return [
        _row(f"runtime {name}", status, detail),
        *(_row(item.name, "ok" if item.enforced else "no", item.reason) for item in found.enforcement),
    ]


def _engines(settings: config.Settings) -> Sequence[Row]:
    rows: list[Row] = []
    for engine in app.engines(settings):
        versions = ", ".join(engine.installed())
        hint = f"not installed; `roost engines install {engine.id}`"
        rows.append(_row(f"engine {engine.id}", "ok" if versions else "no", versions or hint))
    if not any(row["status"] == "ok" for row in rows):
        rows.append(_row("engines", "fail", "none is installed; `roost engines install`"))
    return rows


def _database(settings: config.Settings) -> Row:
    try:
        db = app.open_database(settings)
    except Exception as error:  # noqa: BLE001 - whatever is wrong is what the doctor is to say
        return _row("database", "fail", str(error).partition("\n")[0] or type(error).__name__)
    kind = "SQLite in the data folder" if db.is_sqlite else "PostgreSQL"
    db.close()
    return _row("database", "ok", kind)


def _blobs(settings: config.Settings) -> Row:
    try:
        remark = asyncio.run(app.blobs(settings).probe())
    except (config.BadSettings, BlobStoreFailed) as error:
        return _row("blobs", "fail", str(error))
    return _row("blobs", "no" if remark else "ok", remark or f"objects are kept in {settings.blobs}")


def _content(settings: config.Settings) -> Sequence[Row]:
    try:
        db = app.open_database(settings)
    except Exception:  # noqa: BLE001 - the database's own row says what is wrong
        return ()
    try:
        kept = db.run(content.kept)
    finally:
        db.close()
    detail = f"{_mib(kept.size)} are stored, {_mib(kept.unheld)} of it were deleted and go within a day"
    return (_row("content", "ok", detail),)


def _mib(size: int) -> str:
    return f"{size / 1024**2:,.1f} MiB"


def _network(settings: config.Settings) -> Row:
    try:
        return _row("public network", "ok", asyncio.run(app.describe_network(settings)))
    except (SourceFailed, NetworkRefused) as problem:
        return _row("public network", "no", f"kubo at {settings.kubo_api}: {problem.message}")


def _models(settings: config.Settings) -> Sequence[Row]:
    if not settings.upstreams:
        return [_row("models", "ok", "scripted, a stand-in; set ROOST_MODEL_URL for a real one")]
    return [_row("models", "ok", f"{upstream.api} at {upstream.url}") for upstream in settings.upstreams]


def _row(part: str, status: str, detail: str) -> Row:
    return {"part": part, "status": status, "detail": detail}
