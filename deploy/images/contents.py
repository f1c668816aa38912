"""What is in the images above their base: the server's packages, Roost, engines, users and folders."""

import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from build_root import BuildRoot
from hatchling.builders.wheel import WheelBuilder
from layout import LayerWriter

from roost.drivers.engine.package_installer import uv_command
from roost.drivers.runtime.bwrap import plan
from roost.drivers.runtime.contract import HOME, WORKSPACE

PROJECT = Path(__file__).resolve().parents[2]
PREFIX, DATA = "/opt/roost", "/data"
USER = 1000
_BUILD_GROUP = "roost (pyproject.toml:setup)"
_PYTHON = f"{PREFIX}/bin/python3"
_UV = "/tmp/build/uv"
_COMPILED = {"PYC_INVALIDATION_MODE": "UNCHECKED_HASH"}  # valid whatever the time of the source is
_HEALTH = (
    "import http.client as c, os, sys; "
    "a = c.HTTPConnection('127.0.0.1', int(os.environ.get('ROOST_PORT', 8642)), timeout=4); "
    "a.request('GET', '/healthz', headers={'Host': 'localhost'}); sys.exit(a.getresponse().status != 200)"
)
_SECOND = 1_000_000_000


class ServerSoftware:
    """A virtual environment at PREFIX with what the lock names, without the tools that build Roost."""

    def __init__(self, root: BuildRoot, python: str) -> None:
        self._root = root
        self.site = f"{PREFIX}/lib/python{python}/site-packages"
        self._folder = root.path / self.site.lstrip("/")

    def install_packages(self) -> None:
        """Install the packages. Raises BuildFailed."""
        self._root.run(["/usr/bin/python3", "-I", "-m", "venv", "--without-pip", "--symlinks", PREFIX], {})
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
            lock.write(runtime_lock((PROJECT / "requirements/runtime.txt").read_text()))
            lock.flush()
            host = Path(sys.executable)
            command = [_UV if part == str(host.parent / "uv") else part for part in uv_command(host)]
            mounts = {_UV: host.parent / "uv", "/tmp/build/lock.txt": Path(lock.name)}
            certificates = [part.partition("=")[2] for part in command if part.startswith("SSL_CERT_FILE=")]
            mounts |= {name: Path(name) for name in certificates}
            options = ["--python", _PYTHON, "--no-deps", "--require-hashes", "--link-mode=copy", "--compile-bytecode"]
            self._root.run([*command, *options, "-r", "/tmp/build/lock.txt"], mounts, _COMPILED)

    def install_roost(self) -> None:
        """Add Roost itself, as its wheel has it. Raises BuildFailed."""
        with tempfile.TemporaryDirectory() as folder:
            (wheel,) = WheelBuilder(str(PROJECT)).build(directory=folder)
            with zipfile.ZipFile(wheel) as archive:
                for entry in archive.infolist():
                    path = Path(archive.extract(entry, self._folder))
                    path.chmod(0o755 if entry.external_attr >> 16 & 0o100 else 0o644)
        program = self._root.path / PREFIX.lstrip("/") / "bin/roost"
        program.write_text(f"#!{_PYTHON}\nimport sys\nfrom roost.__main__ import main\nsys.exit(main())\n")
        program.chmod(0o755)
        compiler = ["-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", f"{self.site}/roost"]
        self._root.run([_PYTHON, *compiler], {})

    def pack_packages(self, layer: LayerWriter) -> None:
        layer.add_folder("/opt")
        layer.add_tree(self._root.path / PREFIX.lstrip("/"), PREFIX)

    def pack_roost(self, layer: LayerWriter) -> None:
        layer.add_file(f"{PREFIX}/bin/roost", (self._root.path / f"{PREFIX.lstrip('/')}/bin/roost").read_bytes(), 0o755)
        for folder in sorted(self._folder.glob("roost*")):
            layer.add_tree(folder, f"{self.site}/{folder.name}")

    def run(self, arguments: list[str], variables: Mapping[str, str]) -> str:
        """Run the server's Python in the root."""
        return self._root.run([_PYTHON, *arguments], {}, {**_COMPILED, **variables})


class EngineSoftware:
    """An engine, installed by the server in the image's root as on any machine."""

    def __init__(self, root: BuildRoot, server: ServerSoftware, name: str) -> None:
        self._root, self._server, self._name = root, server, name
        self._variables = {"ROOST_ENGINES": "/engines", "ROOST_DATA": "/tmp/data", "ROOST_URL": ""}

    def install(self, version: str) -> str:
        """Install a version, the default one if it is empty, and return it. Raises BuildFailed."""
        version = version or self._ask("engine.default_version")
        self._server.run(["-m", "roost", "engines", "install", f"{self._name}@{version}"], self._variables)
        return version

    def folders(self, version: str) -> Mapping[str, Path]:
        """Return the installed folders by their path in agents' containers; those of the base are not among them."""
        found = self._ask(f"{{k: str(v) for k, v in engine.folders({version!r}).items()}}")
        return {
            target: self._root.path / source.lstrip("/")
            for target, source in found.items()
            if target.startswith("/engine")
        }

    def _ask(self, expression: str) -> Any:
        program = (
            "import json; from roost import app; from roost.cli.server.data_folder import load_local_settings; "
            f"engine = next(e for e in app.create_engines(load_local_settings(None)) if e.id == {self._name!r}); "
            f"print(json.dumps({expression}))"
        )
        return json.loads(self._server.run(["-c", program], self._variables))


def runtime_lock(lock: str) -> str:
    """Return the entries of a lock without those that only the group for building needs."""
    found = re.findall(r"^(([\w.-]+)==.*\n(?: .*\n)*)", lock, re.MULTILINE)
    parents = {name: re.findall(r"^    # (?:via|  ) ?(\S.*)$", text, re.MULTILINE) for text, name in found}
    gone = {_BUILD_GROUP}
    while more := {name for name, needed_by in parents.items() if needed_by and gone.issuperset(needed_by)} - gone:
        gone |= more
    return "".join(text for text, name in found if name not in gone)


def server_files(layer: LayerWriter, root: Path) -> None:
    """Add the server's user and its data folder, which the group 0 may write, too, whatever the uid is."""
    passwd = (root / "etc/passwd").read_bytes()
    layer.add_file("/etc/passwd", passwd + f"roost:x:{USER}:0:roost:{DATA}:/usr/sbin/nologin\n".encode())
    layer.add_folder(DATA, 0o775, USER)


def server_settings() -> dict[str, object]:
    return {
        "User": f"{USER}:0",
        "WorkingDir": DATA,
        "Entrypoint": [f"{PREFIX}/bin/roost"],
        "Cmd": ["up", "--host", "0.0.0.0"],  # not as a setting: other commands would demand TLS, too
        "Env": [
            f"PATH={PREFIX}/bin:/usr/local/bin:/usr/bin:/bin",
            "LANG=C.UTF-8",
            f"HOME={DATA}",
            f"ROOST_DATA={DATA}",
            f"ROOST_ENGINES={DATA}/engines",
        ],
        "ExposedPorts": {"8642/tcp": {}},
        "Volumes": {DATA: {}},
        "StopSignal": "SIGTERM",
        "Healthcheck": {
            "Test": ["CMD", _PYTHON, "-I", "-c", _HEALTH],
            "Interval": 10 * _SECOND,
            "Timeout": 5 * _SECOND,
            "StartPeriod": 60 * _SECOND,
            "Retries": 3,
        },
    }


def agent_files(layer: LayerWriter) -> None:
    """Add the user and the folders of agents; volumes take the owner and the mode of those that they are mounted on."""
    for path in ("/etc/group", "/etc/nsswitch.conf", "/etc/passwd", "/etc/resolv.conf"):
        layer.add_file(path, plan.ETC[path])
    for path in ("/engine", "/run", plan.WARDEN, "/run/trust"):
        layer.add_folder(path)
    layer.add_link("/var/tmp", "../tmp")  # the root is read-only
    for path in (str(Path(HOME).parent), HOME, WORKSPACE):
        layer.add_folder(path, 0o755 if path == str(Path(HOME).parent) else 0o770, 0 if path == "/home" else USER)


def agent_settings() -> dict[str, object]:
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {
        "User": f"{USER}:0",
        "WorkingDir": WORKSPACE,
        "Env": [f"PATH={path}", "LANG=C.UTF-8", f"HOME={HOME}"],
        "Entrypoint": None,
        "Cmd": ["/bin/sh"],
    }
