"""The images are built from a real Debian, twice, pushed to a real registry, and their programs run."""

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from base_image import load_base
from build_images import BuiltImage, ImageBuilder
from build_root import BuildRoot
from layout import Image, ImageLayout
from registry import RegistryFailed, Repository

from roost import __version__
from roost.drivers.runtime.bwrap.tools import prepare_tools
from tests.support.acme import find_free_ports, run_listener
from tests.support.debian_root import PackagesNotFetched, debian_command, debian_root_file_system

TIME = 1_600_000_000
ANY_UID = "12345"
PACKAGES = ["python3", "git", "ca-certificates"]
USER, PASSWORD = "team", "secret"
HASHED = "$2b$04$hYydqbmgU1VE44H930yXr.tUeSYNQjekNX4ivOvmmDQ1rd6gkF39C"  # by bcrypt, of the password


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a registry to which `docker login` was done, and return its address."""
    folder = tmp_path_factory.mktemp("registry")
    (folder / "htpasswd").write_text(f"{USER}:{HASHED}\n")
    (port,) = find_free_ports(1)
    config = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(folder)}},
        "http": {"addr": f"127.0.0.1:{port}"},
        "auth": {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}},
    }
    login = {"auth": base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}
    (folder / "config.json").write_text(json.dumps({"auths": {f"127.0.0.1:{port}": login}}))
    (folder / "config.yml").write_text(json.dumps(config))
    try:
        command = debian_command("bin/docker-registry", ["docker-registry"], folder)
    except PackagesNotFetched as reason:
        pytest.skip(str(reason))
    serving = run_listener([*command, "serve", str(folder / "config.yml")], folder / "log", port)
    with serving, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_CONFIG", str(folder))
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImageLayout, Image]:
    try:
        archive = debian_root_file_system(PACKAGES)
    except PackagesNotFetched as reason:
        pytest.skip(str(reason))
    layout = ImageLayout(tmp_path_factory.mktemp("layout"))
    return layout, load_base(str(archive), layout)


@pytest.fixture(scope="module")
def built(base: tuple[ImageLayout, Image], tmp_path_factory: pytest.TempPathFactory) -> dict[str, BuiltImage]:
    layout, image = base
    builder = ImageBuilder(layout, BuildRoot(tmp_path_factory.mktemp("build") / "root"), image, TIME)
    return {"server": builder.build_server(), "agent": builder.build_agent()}


def pull(registry: str, layout: ImageLayout, image: BuiltImage, target: Path) -> tuple[ImageLayout, Image]:
    """Push an image, and return it as another machine pulls it."""
    pulled = ImageLayout(target)
    with Repository(f"{registry}/team/{image.name}") as repository:
        repository.push_image(layout, image.manifest, image.sbom)
        assert repository.pull_sbom(image.manifest.digest) == image.sbom
        found = repository.pull_image(pulled, load_config(layout, image)["architecture"])
    assert pulled.add_image(image.name, found).digest == image.manifest.digest
    return pulled, found


def load_config(layout: ImageLayout, image: BuiltImage) -> dict[str, str]:
    return layout.read(layout.read(image.manifest.digest)["config"]["digest"])


def run_in_image(layout: ImageLayout, image: Image, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program with a read-only root as any user of the group 0, with the volumes that an engine would mount."""
    if not (folder / "root").exists():
        BuildRoot(folder / "root").unpack(layout, image)
        (folder / "volume").mkdir()
    settings = image.config["config"]
    variables = [part for one in settings["Env"] for part in ("--setenv", *one.split("=", 1))]
    bwrap = [str(prepare_tools(folder / "tools").bwrap), "--ro-bind", str(folder / "root"), "/", "--proc", "/proc"]
    bwrap += [
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--bind",
        str(folder / "volume"),
        settings["WorkingDir"],
        "--chdir",
        settings["WorkingDir"],
    ]
    bwrap += ["--unshare-all", "--uid", ANY_UID, "--gid", "0", "--clearenv", *variables, "--die-with-parent"]
    return subprocess.run([*bwrap, *command], check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.timeout(1200)
def test_a_second_build_has_the_same_digests(
    base: tuple[ImageLayout, Image], built: dict[str, BuiltImage], tmp_path: Path
) -> None:
    layout, image = base
    again = ImageBuilder(layout, BuildRoot(tmp_path / "root"), image, TIME)
    assert again.build_server() == built["server"]
    assert again.build_agent() == built["agent"]


@pytest.mark.timeout(1200)
def test_the_server_runs_from_the_registry_as_any_user_with_a_read_only_root(
    registry: str, base: tuple[ImageLayout, Image], built: dict[str, BuiltImage], tmp_path: Path
) -> None:
    layout, image = pull(registry, base[0], built["server"], tmp_path / "pulled")
    settings = image.config["config"]
    program = [*settings["Entrypoint"], "--version"]
    shown = run_in_image(layout, image, tmp_path, *program)
    assert (shown.returncode, shown.stdout.strip()) == (0, f"roost {__version__}"), shown.stderr
    keys = run_in_image(layout, image, tmp_path, *settings["Entrypoint"], "keys", "create", "--name", "first")
    assert keys.returncode == 0, keys.stderr
    assert (tmp_path / "volume/roost.db").exists()
    check = settings["Healthcheck"]["Test"][1:]
    assert run_in_image(layout, image, tmp_path, *check).returncode == 1  # there is no server
    answering = f"""
import http.server, subprocess, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if (self.path, self.headers["Host"]) == ("/healthz", "localhost") else 500)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 8642), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run({check!r}).returncode)
"""
    checked = run_in_image(layout, image, tmp_path, "/usr/bin/python3", "-c", answering)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.timeout(1200)
def test_the_image_of_agents_has_their_user_and_folders(
    registry: str, base: tuple[ImageLayout, Image], built: dict[str, BuiltImage], tmp_path: Path
) -> None:
    layout, image = pull(registry, base[0], built["agent"], tmp_path / "pulled")
    assert image.config["config"]["User"] == "1000:0"
    script = "ls -d /engine /run/warden /home/agent && touch x && ! touch /engine/x && grep ^agent:x:1000: /etc/passwd"
    shown = run_in_image(layout, image, tmp_path, "/bin/sh", "-c", script)
    assert shown.returncode == 0, shown.stderr
    assert "Read-only file system" in shown.stderr


def test_a_push_without_a_login_is_refused(
    registry: str,
    base: tuple[ImageLayout, Image],
    built: dict[str, BuiltImage],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    agent = built["agent"]
    with Repository(f"{registry}/team/{agent.name}") as repository, pytest.raises(RegistryFailed, match="401"):
        repository.push_image(base[0], agent.manifest, agent.sbom)


def test_the_images_have_one_base_and_a_list_of_their_software(
    base: tuple[ImageLayout, Image], built: dict[str, BuiltImage]
) -> None:
    layout, image = base
    for one in built.values():
        layers = [layer["digest"] for layer in layout.read(one.manifest.digest)["layers"]]
        assert layers[0] == image.layers[0].digest
    names = {package["name"] for package in json.loads(built["server"].sbom)["packages"]}
    assert {"debian/git", "roost", "fastapi"} <= names
    assert not names & {"hatchling", "zensical"}
