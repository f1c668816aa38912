"""Checks of `roost doctor` and of the dashboard: try each part on this machine and name the remedy for a failure."""

import asyncio
import contextlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from roost import __version__
from roost.agents.lifecycle.system.model import CheckResult, CheckStatus
from roost.app.domain_services import describe_tls, open_tls_sockets
from roost.app.drivers import (
    create_blob_store,
    create_engines,
    create_git_repositories,
    create_upstream,
    describe_network,
    open_database,
    probe_runtime,
)
from roost.core.db import Database
from roost.core.machine.disk_space import read_disk_space
from roost.core.machine.network_advice import advise_network
from roost.drivers.blob.contract import BlobStoreFailed
from roost.drivers.git.contract import GitUnavailable
from roost.drivers.model.contract import ModelSettings, UpstreamProblem, UpstreamRefused
from roost.drivers.network.contract import NetworkRefused, SourceFailed
from roost.drivers.runtime.contract import Capabilities
from roost.drivers.tls_proxy.contract import TlsProxyFailed
from roost.http.server.server import CannotListen, ServerAlreadyRunning, lock_data_folder
from roost.settings import BadSettings, Settings
from roost.storage.content import service as content
from roost.storage.vectors.vector_index import describe_index

_MODEL_SECONDS = 15.0


def run_checks(settings: Settings) -> Sequence[CheckResult]:
    """Check every part; status is `ok`, `no` (missing or not enforced) or `fail` (agents cannot run)."""
    engines, names = create_engines(settings), filter(None, (settings.runtime, settings.other_runtime))
    found = {name: asyncio.run(probe_runtime(settings, engines, name)) for name in names}
    return list(check_parts(settings, found))


def check_parts(
    settings: Settings, runtimes: Mapping[str, Capabilities], db: Database | None = None
) -> Iterator[CheckResult]:
    """As run_checks, one by one, with what the runtimes' own probes found, by name. Blocking, outside an event loop.

    db: the database of the deployment, if it is open.
    """
    yield _python()
    for name, found in runtimes.items():
        yield from _runtime(name, found, is_other=name == settings.other_runtime)
    yield _disk(settings)
    yield from _engines(settings)
    yield _git(settings)
    yield _database(settings, db)
    yield _blobs(settings)
    yield from _content(settings, db)
    yield _network(settings)
    yield _tls(settings)
    yield from _models(settings)
    yield from _addresses(settings)


def data_folder_missing(settings: Settings) -> CheckResult:
    return _check_result("data folder", "no", f"{settings.data} is not a data folder yet; `roost up` creates it")


def _python() -> CheckResult:
    return _check_result("roost", "ok", f"{__version__} on Python {platform.python_version()}, {platform.platform()}")


def _runtime(name: str, found: Capabilities, *, is_other: bool) -> Sequence[CheckResult]:
    """Describe a runtime; without the other one, most agents run."""
    status, detail = ("ok", "containers start") if found.usable else ("no" if is_other else "fail", found.error)
    part = f"{name}: {{}}" if is_other else "{}"
    return [
        _check_result(f"runtime {name}", status, detail),
        *(
            _check_result(part.format(item.name), "ok" if item.enforced else "no", item.reason)
            for item in found.enforcement
        ),
    ]


def _disk(settings: Settings) -> CheckResult:
    space, reserve = read_disk_space(settings.data), settings.disk_reserve
    limit = "without a limit" if settings.agent_disk is None else f"{_gib(settings.agent_disk)} each"
    detail = f"{_gib(space.free)} free; agents may use {limit} and leave {_gib(space.reserved(reserve))}"
    return _check_result("disk", "ok" if space.leaves(reserve) else "no", detail)


def _gib(size: int) -> str:
    return f"{size / 1024**3:,.1f} GiB"


def _engines(settings: Settings) -> Sequence[CheckResult]:
    rows: list[CheckResult] = []
    for engine in create_engines(settings):
        versions = ", ".join(engine.installed())
        space = f"{_gib(engine.installed_bytes)} of disk, {_gib(read_disk_space(settings.engines).free)} are free"
        hint = f"not installed; run `roost engines install {engine.id}` ({space})"
        rows.append(_check_result(f"engine {engine.id}", "ok" if versions else "no", versions or hint))
    if not any(row["status"] == "ok" for row in rows):
        rows.append(_check_result("engines", "fail", "none is installed; run `roost engines install`"))
    return rows


def _git(settings: Settings) -> CheckResult:
    try:
        return _check_result("git", "ok", asyncio.run(create_git_repositories(settings).check_available()))
    except GitUnavailable as problem:
        return _check_result("git", "no", problem.message)


def _database(settings: Settings, db: Database | None = None) -> CheckResult:
    try:
        with _use_database(settings, db) as used:
            used.run(lambda _: None)  # a transaction that can write
            kind = "SQLite in the data folder" if used.is_sqlite else "PostgreSQL"
    except Exception as error:  # noqa: BLE001 - every error is a finding
        return _check_result("database", "fail", str(error).partition("\n")[0] or "the database does not answer")
    return _check_result("database", "ok", kind)


def _use_database(settings: Settings, db: Database | None) -> AbstractContextManager[Database]:
    """Return the open database, or one that is open meanwhile."""
    return contextlib.closing(open_database(settings)) if db is None else contextlib.nullcontext(db)


def _blobs(settings: Settings) -> CheckResult:
    try:
        warning = asyncio.run(create_blob_store(settings).probe())
    except (BadSettings, BlobStoreFailed) as error:
        return _check_result("blobs", "fail", str(error))
    return _check_result("blobs", "no" if warning else "ok", warning or f"objects are stored in {settings.blobs}")


def _content(settings: Settings, db: Database | None = None) -> Sequence[CheckResult]:
    try:
        with _use_database(settings, db) as used:
            kept, (is_best, search) = used.run(content.storage_totals), used.run(describe_index)
    except Exception:  # noqa: BLE001 - the check of the database reports it
        return ()
    detail = f"{_mib(kept.size)} stored, of which {_mib(kept.unheld)} are deleted and freed within a day"
    return _check_result("content", "ok", detail), _check_result("vectors", "ok" if is_best else "no", search)


def _mib(size: int) -> str:
    return f"{size / 1024**2:,.1f} MiB"


def _network(settings: Settings) -> CheckResult:
    try:
        return _check_result("public network", "ok", asyncio.run(describe_network(settings)))
    except (SourceFailed, NetworkRefused) as problem:
        return _check_result("public network", "no", f"kubo at {settings.kubo_api}: {problem.message}")


def _tls(settings: Settings) -> CheckResult:
    try:
        described = asyncio.run(describe_tls(settings))
        with contextlib.suppress(ServerAlreadyRunning), lock_data_folder(settings.data):  # else it has the ports
            if (listeners := open_tls_sockets(settings)) is not None:
                listeners.close()
    except (TlsProxyFailed, CannotListen) as problem:
        return _check_result("tls", "no", problem.message)
    return _check_result("tls", "ok", described)


def _models(settings: Settings) -> Sequence[CheckResult]:
    if not settings.upstreams:
        return [_check_result("models", "ok", "scripted stand-in; set ROOST_MODEL_URL for a real one")]
    return [asyncio.run(_model_service(upstream)) for upstream in settings.upstreams]


def _addresses(settings: Settings) -> Sequence[CheckResult]:
    ports = settings.agent_ports
    if ports is None:
        return ()
    detail = (
        f"agents have the ports {ports[0]}-{ports[-1]} of {settings.domain}: no subdomains, no origins of storage "
        "gateways, and browsers keep agents apart less than by names (docs/guides/no-domain.md)"
    )
    return [_check_result("addresses", "no", detail)]


async def _model_service(settings: ModelSettings) -> CheckResult:
    """Ask the endpoint for its models; one that lists none, and says so, may still serve those of the settings."""
    service = f"{settings.api} at {settings.url}"
    upstream = create_upstream(replace(settings, models=()))
    try:
        async with asyncio.timeout(_MODEL_SECONDS):
            offered = await upstream.list_models()
    except UpstreamRefused:
        return _check_result("models", "ok", f"{service} answers, but does not list its models")
    except TimeoutError:
        return _check_result("models", "no", f"{service}: no answer within {_MODEL_SECONDS:.0f} s")
    except UpstreamProblem as problem:
        advice = advise_network(problem.message)
        return _check_result("models", "no", f"{service}: {problem.message}" + (f". {advice}" if advice else ""))
    finally:
        await upstream.close()
    if missing := [name for name in settings.models if name not in offered]:
        return _check_result("models", "no", f"{service} does not list {', '.join(missing)}")
    return _check_result("models", "ok", f"{service}, {len(offered)} models")


def _check_result(part: str, status: CheckStatus, detail: str) -> CheckResult:
    return {"part": part, "status": status, "detail": detail}
