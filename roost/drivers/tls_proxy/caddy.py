"""Caddy as a child of the server: started, restarted when it ends, reconfigured without a break, stopped.

Its sockets are bound by the server, so connections wait in them while Caddy restarts. Its admin API is a Unix socket in
its folder, which only the server's own user can open. Decision 0031 says why.
"""

import asyncio
import json
import os
import shutil
import ssl
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from roost.core import clock, log
from roost.core.periodic import Backoff, PeriodicTask
from roost.core.sanitize import sanitize_line
from roost.core.sensitive import Sensitive
from roost.drivers.tls_proxy.caddy_config import ADMIN_SOCKET, CertificatePair, render_configuration
from roost.drivers.tls_proxy.certificate_failures import CertificateFailures, parse_entry
from roost.drivers.tls_proxy.contract import TlsListeners, TlsOptions, TlsProxy, TlsProxyFailed

CONFIGURATION = "caddy.json"
_LAUNCHER = Path(__file__).with_name("launcher.py")
_START_SECONDS, _STOP_SECONDS, _RELOAD_SECONDS = 20.0, 3.0, 20.0
_FIRST_PAUSE, _LONGEST_PAUSE, _HEALTHY_SECONDS = 0.2, 30.0, 60.0
_FILES_SECONDS = 2.0
_LINE_BYTES = 256 * 1024
_SHOWN_LINES = 3
_DROPPED_LIMIT = 1000
_READY = "serving initial configuration"
_REPORTED = frozenset({"warn", "error", "panic", "fatal"})
_log = log.get_logger("caddy")


def find_caddy(program: Path | None) -> Path:
    """Return `program`, else that of this Python environment, else the system's. Raises TlsProxyFailed."""
    if program is not None:
        found = str(program) if os.access(program, os.X_OK) else None
    else:
        own = Path(sys.executable).with_name("caddy")
        found = str(own) if own.exists() else shutil.which("caddy")
    if found is None:
        where = f"{program} cannot be run" if program else "it is not installed"
        raise TlsProxyFailed(f"Caddy was not found: {where}. Install Roost's dependencies, or set ROOST_CADDY.")
    return Path(found)


async def read_caddy_version(program: Path) -> str:
    """Return the version of the program. Raises TlsProxyFailed."""
    try:
        code, output = await _run([str(program), "version"], Path("/"), {})
    except OSError as error:
        raise TlsProxyFailed(f"Caddy cannot be run: {program}: {error.strerror}") from None
    if code:
        raise TlsProxyFailed(f"Caddy cannot be run: {program}: {output}")
    return output.rpartition("\n")[2].partition(" ")[0]  # warnings come first


class CaddyProxy(TlsProxy):
    def __init__(self, program: Path, folder: Path, options: TlsOptions, listeners: TlsListeners) -> None:
        """`folder` gets the configuration, the sockets and the certificates, and mode 0700."""
        self._program, self._folder = program, folder
        self._environment = {name: str(folder) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        self._options, self._listeners = options, listeners
        self._failures = CertificateFailures()
        self._dropped: dict[str, None] = {}
        self._pair: CertificatePair | None = None
        self._files_seen: Sequence[object] = ()
        self._process: asyncio.subprocess.Process | None = None
        self._ready = asyncio.Event()
        self._last_lines: deque[str] = deque(maxlen=_SHOWN_LINES)
        self._supervisor: asyncio.Task[None] | None = None
        self._reloads = PeriodicTask("caddy configuration", self.apply_changes, _FILES_SECONDS)
        self._is_stale = False
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process, None if there is none."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        (self._folder / "certificates").mkdir(mode=0o700, exist_ok=True)
        self._files_seen = self._stat_files()
        self._pair = self._load_pair()
        self._write_configuration(CONFIGURATION)
        process = await self._spawn()
        self._supervisor = asyncio.create_task(self._supervise(process), name="caddy")
        ready = asyncio.create_task(self._ready.wait())
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({ready, ended}, timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        ended.cancel()
        if not self._ready.is_set():
            lines = " ".join(self._last_lines) or "it did not answer in time"
            await self.stop()
            raise TlsProxyFailed(f"Caddy did not start: {lines}")
        self._reloads.start(_FILES_SECONDS)

    async def stop(self) -> None:
        await self._reloads.stop()
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.cancel()
            await asyncio.wait({supervisor})
        process, self._process = self._process, None
        if process is not None:
            await _end(process)
        self._listeners.close()

    def explain_failure(self, name: str) -> str | None:
        return self._failures.explain(name)

    async def wait_for_failure(self, name: str) -> str:
        return await self._failures.wait(name)

    def paused_seconds(self, name: str) -> float:
        return self._failures.paused_seconds(name)

    def drop_name(self, name: str) -> None:
        self._dropped[name] = None
        while len(self._dropped) > _DROPPED_LIMIT:  # the server answers 404 for them
            del self._dropped[next(iter(self._dropped))]
        self._request_reload()

    def restore_name(self, name: str) -> None:
        if name in self._dropped:
            del self._dropped[name]
            self._request_reload()

    async def apply_changes(self) -> None:
        async with self._turn:
            seen = self._stat_files()
            if seen != self._files_seen:
                self._files_seen = seen
                try:
                    self._pair = self._load_pair()
                except TlsProxyFailed as problem:
                    _log.error("certificate.rejected", reason=problem.message)
                else:
                    self._is_stale = True
            if self._is_stale:
                self._is_stale = False
                await self._reload()

    def _request_reload(self) -> None:
        self._is_stale = True
        self._reloads.wake()

    async def _supervise(self, process: asyncio.subprocess.Process) -> None:
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, factor=2.0)
        while True:
            began = clock.monotonic_seconds()
            await self._read_log(process)
            code = await process.wait()
            _log.error("caddy.ended", code=code, output=" ".join(self._last_lines))
            if clock.monotonic_seconds() - began > _HEALTHY_SECONDS:
                backoff.reset()
            await backoff.pause()
            with suppress(OSError):  # no process can be started now
                process = await self._spawn()

    async def _spawn(self) -> asyncio.subprocess.Process:
        launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid())]
        self._process = await asyncio.create_subprocess_exec(
            *launcher,
            str(self._program),
            "run",
            "--config",
            CONFIGURATION,
            cwd=self._folder,
            env=self._environment,
            pass_fds=self._listeners.descriptors(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            start_new_session=True,  # Ctrl-C is for the server, which stops it in the end
        )
        return self._process

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:  # longer than the limit, and discarded
                continue
            if not line:
                return
            self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        entry = parse_entry(line)
        if entry is None:
            self._last_lines.append(sanitize_line(line.decode(errors="replace").strip()))
            return
        self._failures.read_entry(entry)
        if entry.get("msg") == _READY:
            self._ready.set()
        level, source = entry.get("level"), entry.get("logger")
        if level in _REPORTED and source != "admin":  # which warns of its socket, as if it was open to others
            fields = {key: sanitize_line(str(entry[key])) for key in ("identifier", "error") if key in entry}
            report = _log.warning if level == "warn" else _log.error
            report("caddy.reported", source=source, message=sanitize_line(str(entry.get("msg"))), **fields)

    async def _reload(self) -> None:
        """Replace the configuration; connections stay open. A refused one leaves the last one in force."""
        draft = f"{CONFIGURATION}.new"
        self._write_configuration(draft)
        command = [str(self._program), "reload", "--config", draft, "--address", f"unix/{ADMIN_SOCKET}", "--force"]
        code, output = await _run(command, self._folder, self._environment)
        if code:
            self._is_stale = True  # for the next run: Caddy may be restarting
            _log.error("configuration.rejected", reason=sanitize_line(output)[-500:])
        else:
            (self._folder / draft).rename(self._folder / CONFIGURATION)
            _log.info("configuration.changed", dropped=len(self._dropped))

    def _write_configuration(self, name: str) -> None:
        content = render_configuration(self._options, self._listeners, self._pair, self._dropped)
        path = self._folder / name
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # it has the operator's private key
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file)

    def _stat_files(self) -> Sequence[object]:
        return [_stat(path) for path in (self._options.certificate, self._options.key) if path]

    def _load_pair(self) -> CertificatePair | None:
        """Return the operator's certificate. Raises TlsProxyFailed if the files do not fit together."""
        certificate, key = self._options.certificate, self._options.key
        if certificate is None or key is None:
            return None
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_refuse_password)
            return CertificatePair(certificate.read_text(), Sensitive(key.read_text()))
        except (OSError, ValueError) as error:
            raise TlsProxyFailed(f"{certificate} with the key {key} cannot be used: {error}") from None


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _refuse_password() -> str:
    raise ValueError("the key is encrypted")


async def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_RELOAD_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        return 1, "it did not answer in time"
    finally:
        await _end(process)
    return process.returncode or 0, output.decode(errors="replace").strip()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Let the process end cleanly, and kill it if it does not."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
