"""Images of agents, in a real engine."""

import asyncio
import os
import tarfile
from collections.abc import AsyncIterator, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest

from roost.drivers.engine.contract import EngineNotInstalled
from roost.drivers.runtime.contract import HOME, ContainerSpec, EngineVersion, RuntimeFailed
from roost.drivers.runtime.docker.archives import pack_folder
from roost.drivers.runtime.docker.driver import DockerRuntime
from roost.drivers.runtime.docker.engine_api import EngineApi
from roost.drivers.runtime.docker.images import DockerImages, ImageMissing, Software, pack_layout
from roost.drivers.runtime.docker.volumes import create_volume, delete_volume
from roost.warden_client.client import WardenClient
from tests.support.docker_engine import DOCKER_SOCKET, IMAGE

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.container]
ENGINE = EngineVersion("tested", "1.0")


class Env:
    def __init__(self, folder: Path) -> None:
        self.api = EngineApi(Path(os.environ[DOCKER_SOCKET]))
        self.program, self.cache = folder / "program", folder / "cache"
        self.program.mkdir(mode=0o755)
        (self.program / "file").write_text("first")
        (self.program / "link").symlink_to("file")
        self.folders: Mapping[str, Path] = {"/engine/deep/program": self.program}
        self.runtime = DockerRuntime(str(folder), folder, self.api, self.images())

    def images(self, base: str = IMAGE, repository: str = "") -> DockerImages:
        return DockerImages(self.api, lambda _: self.folders, base, "0", repository)

    async def read(self, command: str) -> str:
        await self.runtime.start(ContainerSpec("a", ENGINE))
        warden = WardenClient(partial(self.runtime.connect, "a"))
        result = await warden.exec(["sh", "-c", command])
        await self.runtime.stop("a")
        assert result.exit_code == 0, result.stderr
        return result.stdout.decode()

    async def volumes(self) -> list[str]:
        listed = await self.api.call("GET", "/volumes")
        return [volume["Name"] for volume in listed["Volumes"] or () if volume["Name"].startswith("roost-tested-")]

    async def names(self, prefix: str) -> list[str]:
        listed = await self.api.call("GET", "/images/json")
        return sorted(name for image in listed for name in image["RepoTags"] or () if name.startswith(prefix))


@pytest.fixture
async def env(tmp_path: Path, docker_engine: object) -> AsyncIterator[Env]:
    found = Env(tmp_path)
    yield found
    await found.runtime.delete("a")
    for name in [*await found.names("roost-tested:"), *await found.names("roost-agent:0")]:
        await found.api.call("DELETE", f"/images/{name}", force=1)
    for volume in await found.volumes():
        await delete_volume(found.api, volume)


async def test_an_engine_is_in_the_container_as_it_is_installed(env: Env) -> None:
    assert (
        await env.read("cat /engine/deep/program/link; stat -c ' %u %a' /engine/deep/program/file") == "first 0 644\n"
    )
    assert (
        await env.read("id -un; stat -c %U:%a ~ /workspace; readlink /var/tmp")
        == "agent\nagent:700\nagent:700\n../tmp\n"
    )


async def test_software_is_copied_once_also_by_two_at_once(env: Env) -> None:
    steps: list[str] = []
    first, second = await asyncio.gather(
        *(env.images().ensure(ENGINE, lambda step, _: steps.append(step)) for _ in range(2))
    )
    assert first.volumes == second.volumes
    assert set(steps) == {"Copying tested 1.0 to Docker: /engine/deep/program"}
    steps.clear()
    again = await env.images().ensure(ENGINE, lambda step, _: steps.append(step))
    assert again.volumes == first.volumes  # of two images that are made at once, the last keeps the name
    assert not steps
    assert len(await env.volumes()) == 2  # the content, and the one that says that it is complete


async def test_files_that_an_installation_adds_are_in_the_next_container(env: Env) -> None:
    assert await env.read("ls /engine/deep") == "program\n"
    env.cache.mkdir(mode=0o755)
    (env.program / "plugin").write_text("added")
    env.folders = {**env.folders, "/engine/cache": env.cache}
    assert await env.read("ls /engine/deep/program /engine/cache | grep plugin") == "plugin\n"
    assert len(await env.volumes()) == 4  # those of the program before are gone


async def test_content_in_use_stays_until_the_next_change(env: Env) -> None:
    await env.runtime.start(ContainerSpec("a", ENGINE))
    (env.program / "second").touch()
    await env.images().ensure(ENGINE)
    assert len(await env.volumes()) == 4
    await env.runtime.stop("a")
    (env.program / "third").touch()
    await env.images().ensure(ENGINE)
    assert len(await env.volumes()) == 2


async def test_a_copy_that_was_interrupted_is_removed_by_the_next(env: Env) -> None:
    images = env.images()
    copying = asyncio.create_task(images.ensure(ENGINE))
    while not await env.volumes():
        await asyncio.sleep(0.01)
    copying.cancel()
    await asyncio.wait([copying])
    if copying.cancelled():  # else the copy was faster
        assert not await env.volumes()
    name = (await images.ensure(ENGINE)).volumes["/engine/deep/program"].rpartition("-")[0]
    for found in await env.volumes():
        await delete_volume(env.api, found)
    await create_volume(env.api, f"{name}-draft", {"roost.draft": name})
    await images.ensure(ENGINE)
    assert f"{name}-draft" not in await env.volumes()


async def test_a_ready_image_is_taken_as_it_is(env: Env) -> None:
    base = await env.images().ensure(None)
    await env.api.call("POST", f"/images/{base.image}/tag", repo="roost-tested", tag="1.0")
    assert await env.images().ensure(ENGINE) == Software(base.image, {})


async def test_the_image_is_made_once(env: Env) -> None:
    first = await env.images().ensure(None)
    before = await env.names("")
    assert await env.images().ensure(None) == first
    assert await env.names("") == before


async def test_an_image_that_nobody_has_says_where_it_comes_from(env: Env) -> None:
    for pulls, advice in ((True, r"cannot be pulled .*set `docker_image`"), (False, r"roost up` pulls it")):
        with pytest.raises(ImageMissing, match=advice):
            await env.images("127.0.0.1:9/nothing").ensure(ENGINE, pulls=pulls)
    assert not (await DockerRuntime("a", env.program, env.api, env.images("127.0.0.1:9/nothing")).probe()).usable


async def test_a_start_reports_the_image_that_it_waits_for(env: Env) -> None:
    reported: list[str] = []

    async def report(reason: str) -> None:
        reported.append(reason)

    runtime = DockerRuntime("other", env.program, env.api, env.images("127.0.0.1:9/nothing"))
    with pytest.raises(ImageMissing):
        await runtime.start(ContainerSpec("a", report_wait=report))
    assert reported == ["Docker pulls the image 127.0.0.1:9/nothing"]


async def test_without_its_registry_an_image_is_made_here(env: Env) -> None:
    made = await env.images().ensure(ENGINE)
    assert await env.images(repository="127.0.0.1:9/team").ensure(ENGINE) == made


async def test_an_engine_that_is_not_installed_has_no_image(env: Env) -> None:
    def missing(_: EngineVersion) -> Mapping[str, Path]:
        raise EngineNotInstalled

    with pytest.raises(EngineNotInstalled):
        await DockerImages(env.api, missing, IMAGE, "0").ensure(ENGINE)


async def test_a_folder_that_cannot_be_read_makes_no_image(env: Env) -> None:
    env.folders = {"/engine/gone": env.program / "gone"}
    with pytest.raises(RuntimeFailed, match="gone cannot be read"):
        await env.images().ensure(ENGINE)
    with pytest.raises(RuntimeFailed, match="gone cannot be read"):
        _ = [part async for part in pack_folder(env.program / "gone")]
    assert not await env.volumes()


def test_the_account_takes_the_place_of_another_with_its_number() -> None:
    passwd, group = b"root:x:0:0::/root:/bin/sh\nubuntu:x:1000:1000::/home/ubuntu:/bin/sh\n", b"root:x:0:\n"
    packed = pack_layout({"passwd": _pack("passwd", passwd), "group": _pack("group", group)})
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        found = archive.extractfile("etc/passwd")
        assert found is not None
        lines = found.read().decode()
    assert lines == f"root:x:0:0::/root:/bin/sh\nagent:x:1000:1000:agent:{HOME}:/bin/sh\n"


def _pack(name: str, content: bytes) -> bytes:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, BytesIO(content))
    return packed.getvalue()
