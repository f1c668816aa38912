"""What containers are made from: an image with their folders, and an engine's installed software above it.

Ready images are `roost-agent:<version of Roost>`, and `roost-<engine>:<version>` with the software. Where there is
none, the folders of a container are added to a base image without a build: a container that never runs is filled with
an archive and committed. The software is in volumes then, which are mounted read-only.
"""

import asyncio
import hashlib
import io
import tarfile
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from roost.core import log
from roost.drivers.engine.contract import Progress
from roost.drivers.runtime.bwrap.plan import ETC
from roost.drivers.runtime.contract import HOME, WORKSPACE, EngineVersion, RuntimeFailed
from roost.drivers.runtime.docker.archives import add_parents, pack_folder
from roost.drivers.runtime.docker.engine_api import EngineApi, EngineRefused, suppress_status
from roost.drivers.runtime.docker.plan import USER, WARDEN
from roost.drivers.runtime.docker.volumes import ReadOnlyVolumes, open_draft

EngineFolders = Callable[[EngineVersion], Mapping[str, Path]]
"""Returns the installed folders of an engine's version by path in the container. Raises EngineNotInstalled."""

ReportWait = Callable[[str], Awaitable[None]]
_Pull = Callable[[str], Awaitable[str]]
"""Pulls an image by its name, and returns its id."""
_AGENT = "roost-agent"
_LAYOUT = "2"  # another number after each change of the layout
_ACCOUNTS = {"passwd": f"agent:x:{USER}:{USER}:agent:{HOME}:/bin/sh", "group": f"agent:x:{USER}:"}
_log = log.get_logger("docker")


def ignore_progress(step: str, fraction: float | None) -> None:
    """Report no progress."""


class ImageMissing(RuntimeFailed):
    """An image that containers are made from is not there; the message says where it can come from."""


@dataclass(frozen=True)
class Software:
    """The image of a container, and its read-only volumes by path."""

    image: str
    volumes: Mapping[str, str]


class DockerImages:
    """Images and software in one Docker Engine.

    base: image below the one that is made here. version: of Roost. repository: prefix of ready images in a registry,
    from which they are pulled; without it they are taken if the engine has them.
    """

    def __init__(self, api: EngineApi, folders: EngineFolders, base: str, version: str, repository: str = "") -> None:
        self._api, self._folders, self._base, self._version = api, folders, base, version
        self._repository = f"{repository.rstrip('/')}/" if repository else ""
        self._volumes = ReadOnlyVolumes(api)
        self._lock = asyncio.Lock()
        self._not_ready: set[str] = set()

    async def ensure(
        self,
        engine: EngineVersion | None,
        progress: Progress = ignore_progress,
        *,
        pulls: bool = True,
        report_wait: ReportWait | None = None,
    ) -> Software:
        """Return what a container with an engine's software is made from, pulled or made if missing.

        report_wait: called before an image is pulled, as in `ContainerSpec`.

        Raises ImageMissing, EngineNotInstalled, RuntimeFailed for folders that cannot be read, and the errors of
        EngineApi.
        """
        pull = partial(self._pull, progress=progress, report_wait=report_wait) if pulls else None
        async with self._lock:
            if engine and (ready := await self._find_ready(f"roost-{engine.id}:{engine.version}", pull)):
                return Software(ready, {})
            ready = await self._find_ready(f"{_AGENT}:{self._version}", pull)
            image = ready or await self._ensure_layout(pull)
        if engine is None:
            return Software(image, {})
        folders = self._folders(engine).items()
        volumes = {path: await self._ensure_volume(engine, path, folder, image, progress) for path, folder in folders}
        return Software(image, volumes)

    async def _ensure_volume(
        self, engine: EngineVersion, path: str, folder: Path, image: str, progress: Progress
    ) -> str:
        """Return the volume with the content of a folder."""
        try:
            real, fingerprint = await asyncio.to_thread(_fingerprint, folder)
        except OSError as error:
            raise RuntimeFailed(f"{folder} cannot be read for a container: {error}") from None
        name = f"roost-{engine.id}-{hashlib.sha256(f'{path} {fingerprint}'.encode()).hexdigest()[:32]}"

        def pack() -> AsyncIterable[bytes]:
            progress(f"Copying {engine.id} {engine.version} to Docker: {path}", None)
            return pack_folder(real)

        return await self._volumes.ensure(name, path, image, pack, f"{engine.id} {engine.version} {path}")

    async def _find_ready(self, name: str, pull: _Pull | None) -> str | None:
        full = f"{self._repository}{name}"
        if found := await self._find(full):
            return found
        if self._repository and pull and full not in self._not_ready:
            try:
                return await pull(full)
            except ImageMissing as problem:
                self._not_ready.add(full)  # asked for once by a process
                _log.warning("image.not_pulled", image=full, reason=problem.message)
        return None

    async def _ensure_layout(self, pull: _Pull | None) -> str:
        base = await self._find(self._base)
        if base is None:
            if pull is None:
                raise ImageMissing(
                    f"The image {self._base} is not there yet: `roost up` pulls it, or `docker pull` does"
                )
            base = await pull(self._base)
        tag = f"{self._version}-{hashlib.sha256(f'{base} {_LAYOUT}'.encode()).hexdigest()[:12]}"
        if found := await self._find(f"{_AGENT}:{tag}"):
            return found
        async with open_draft(self._api, base, tag) as container:
            found = [await self._api.get_archive(container, f"/etc/{name}") for name in _ACCOUNTS]
            layout = pack_layout(dict(zip(_ACCOUNTS, found, strict=True)))
            await self._api.put_archive(container, "/", layout)
            made = await self._api.call("POST", "/commit", {}, container=container, repo=_AGENT, tag=tag)
        return made["Id"]

    async def _find(self, name: str) -> str | None:
        with suppress_status():
            return (await self._api.call("GET", f"/images/{name}/json"))["Id"]
        return None

    async def _pull(self, name: str, progress: Progress, report_wait: ReportWait | None) -> str:
        """Pull an image. Raises ImageMissing."""
        if report_wait is not None:
            await report_wait(f"Docker pulls the image {name}")
        try:
            async for line in self._api.follow("POST", "/images/create", fromImage=_with_tag(name)):
                if "error" in line:
                    raise ImageMissing(_pull_failed(name, line["error"]))
                progress(f"Pulling {name}: {line.get('status', '')}", _fraction(line))
        except EngineRefused as error:
            raise ImageMissing(_pull_failed(name, error.message)) from None
        if found := await self._find(name):
            return found
        raise ImageMissing(_pull_failed(name, "Docker pulled another image"))


def pack_layout(accounts: Mapping[str, bytes]) -> bytes:
    """Return the archive of a container's folders and account, with what `/etc/passwd` and `/etc/group` have already.

    All may enter `/root`, because the Python of a server that root runs may be there, and so in the container, too.
    accounts: archives of these files, by name.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, mode, owner in (
            *((f"{name.lstrip('/')}", 0o700, USER) for name in (WORKSPACE, HOME)),
            *((name, 0o755, 0) for name in ("root", "engine", WARDEN.lstrip("/"), "run/trust")),
        ):
            add_parents(archive, path)
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, mode, owner, owner
            archive.addfile(entry)
        link = tarfile.TarInfo("var/tmp")
        link.type, link.linkname = tarfile.SYMTYPE, "../tmp"
        archive.addfile(link)
        files = {name: _add_account(_read_member(accounts[name]), line) for name, line in _ACCOUNTS.items()}
        files["resolv.conf"] = ETC["/etc/resolv.conf"]  # Docker mounts its own, Podman none without a network
        for name, content in files.items():
            entry = tarfile.TarInfo(f"etc/{name}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _add_account(content: bytes, line: str) -> bytes:
    """Add the line of `agent`, in the place of another account with its name or number."""
    others = [
        other
        for other in content.decode(errors="surrogateescape").splitlines()
        if (parts := other.split(":"))[0] != "agent" and parts[2:3] != [str(USER)]
    ]
    return "\n".join([*others, line, ""]).encode(errors="surrogateescape")


def _read_member(packed: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [archive.extractfile(member) for member in archive if member.isfile()]
        return files[0].read() if files and files[0] else b""


def _fingerprint(folder: Path) -> tuple[Path, str]:
    """Return a folder without links, and what changes when an installation replaces it or adds to it."""
    real = folder.resolve()
    found = [real, *sorted(entry for entry in real.iterdir() if entry.is_dir() and not entry.is_symlink())]
    return real, " ".join(f"{path} {path.stat().st_mtime_ns}" for path in found)


def _with_tag(name: str) -> str:
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"  # else all tags come


def _fraction(line: Mapping[str, Any]) -> float | None:
    detail: Mapping[str, int] = line.get("progressDetail") or {}
    total = detail.get("total")
    return min(detail.get("current", 0) / total, 1.0) if total else None


def _pull_failed(name: str, reason: str) -> str:
    return f"The image {name} cannot be pulled ({reason}): pull or build it, or set `docker_image` to one that is there"
