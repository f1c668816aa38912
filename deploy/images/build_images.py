"""Build the images of the server and of agents, and push or load them: `make images`, or `build_images.py --help`.

No daemon is needed. Every image stays in an OCI image layout (decision 0055).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from base_image import BaseUnusable, find_engine, load_base
from build_root import BuildFailed, BuildRoot
from contents import EngineSoftware, ServerSoftware, agent_files, agent_settings, server_files, server_settings
from layout import Blob, Image, ImageLayout
from registry import RegistryFailed, Repository
from sbom import Package, list_debian, list_npm, list_python, render_sbom

from roost import __version__

ROOT = Path(__file__).resolve().parents[2]
_TIME = 1580601600
"""Time of all files unless SOURCE_DATE_EPOCH names another: a constant, so that unchanged layers keep their digest."""
_LOADERS = ("docker", "podman")


@dataclass(frozen=True)
class BuiltImage:
    """An image in the layout; `name` is without a registry."""

    name: str
    manifest: Blob
    sbom: bytes


class ImageBuilder:
    """Builds images above one base, in a layout. Methods raise BaseUnusable, BuildFailed and OSError."""

    def __init__(self, layout: ImageLayout, root: BuildRoot, base: Image, time: int) -> None:
        self._layout, self._root, self._base, self._time = layout, root, base, time
        self._created = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        root.unpack(layout, base)
        self._python = root.find_python()
        self._debian = list(list_debian(root.path))
        self._server: ServerSoftware | None = None

    def build_server(self) -> BuiltImage:
        """Build the image of the server."""
        _report("The server: its packages")
        software = ServerSoftware(self._root, self._python)
        software.install_packages()
        packages = self._layout.add_layer(self._time, software.pack_packages)
        _report("The server: Roost")
        software.install_roost()
        program = self._layout.add_layer(self._time, software.pack_roost)
        self._server = software
        files = self._layout.add_layer(self._time, lambda layer: server_files(layer, self._root.path))
        layers = [("packages of the server", packages), ("Roost", program), ("data folder and user", files)]
        found = [*self._debian, *list_python(self._root.path / "opt/roost")]
        return self._add(f"roost-server:{__version__}", layers, server_settings(), found)

    def build_agent(self) -> BuiltImage:
        """Build the image of agents without an engine, which is the base of those with one."""
        return self._add(f"roost-agent:{__version__}", [self._agent_layer()], agent_settings(), self._debian)

    def build_engine(self, name: str, version: str = "") -> BuiltImage:
        """Build the image of a version of an engine, by default the one of new agents. After `build_server`."""
        assert self._server is not None, "the server installs engines"
        _report(f"{name}: its packages")
        engine = EngineSoftware(self._root, self._server, name)
        version = engine.install(version)
        folders = engine.folders(version)
        layers = [self._agent_layer()]
        packages = list(self._debian)
        for target, source in folders.items():
            _report(f"{name} {version}: {target}")
            layers.append((target, self._layout.add_layer(self._time, lambda layer: layer.add_tree(source, target))))  # noqa: B023 - called at once
            packages += [*list_python(source), *list_npm(source)]
        return self._add(f"roost-{name}:{version}", layers, agent_settings(), packages)

    def _agent_layer(self) -> tuple[str, Blob]:
        return "folders and user of agents", self._layout.add_layer(self._time, agent_files)

    def _add(
        self, name: str, layers: Sequence[tuple[str, Blob]], settings: dict[str, object], packages: Sequence[Package]
    ) -> BuiltImage:
        labels = {
            "org.opencontainers.image.title": name.partition(":")[0],
            "org.opencontainers.image.version": name.partition(":")[2],
        }
        image = self._base.with_layers(layers, {**settings, "Labels": labels}, self._created)
        built = BuiltImage(name, self._layout.add_image(name, image), render_sbom(name, packages, self._created))
        (self._layout.path / f"{name.replace(':', '-')}.spdx.json").write_bytes(built.sbom)
        print(f"{name}  {built.manifest.digest}", flush=True)
        return built


def main(arguments: Sequence[str]) -> int:
    """Build, then push to a registry, or else load into Docker or Podman if it is here."""
    options = _parse(arguments)
    time = int(os.environ.get("SOURCE_DATE_EPOCH") or _TIME)
    options.output.mkdir(parents=True, exist_ok=True)
    layout = ImageLayout(options.output)
    try:
        with tempfile.TemporaryDirectory(prefix="roost-images-") as folder:
            builder = ImageBuilder(layout, BuildRoot(Path(folder) / "root"), load_base(options.base, layout), time)
            built = [builder.build_server(), builder.build_agent()]
            built += [builder.build_engine(*name.split("@", 1)) for name in options.engines.split(",") if name]
        for image in built:
            _deliver(image, layout, options.registry)
    except (BaseUnusable, BuildFailed, RegistryFailed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The images are in {options.output}, with a list of their software each (*.spdx.json).")
    return 0


def _deliver(image: BuiltImage, layout: ImageLayout, registry: str) -> None:
    """Push an image, or load it into Docker or Podman. Raises RegistryFailed and BuildFailed."""
    if registry:
        _report(f"Pushing {registry}/{image.name}")
        with Repository(f"{registry}/{image.name}") as repository:
            repository.push_image(layout, image.manifest, image.sbom)
        return
    engine = find_engine()
    if engine not in _LOADERS or subprocess.run([engine, "info"], check=False, capture_output=True).returncode:
        return
    _report(f"Loading {image.name} into {engine}")
    with subprocess.Popen([engine, "load"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        with process.stdin as archive:
            layout.write_archive(image.manifest, image.name, cast("BinaryIO", archive))
    if process.returncode:
        raise BuildFailed(f"{engine} could not load {image.name}; the lines above say why")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build the images of Roost.")
    parser.add_argument(
        "--base",
        default="",
        help="root file system as a tar, archive of `docker save`, or name of an image; default: base.Dockerfile",
    )
    parser.add_argument("--registry", default="", help="where to push, like registry.example.com/team")
    parser.add_argument("--engines", default="openclaw,hermes", help="engines, like openclaw@2026.9.6,hermes")
    parser.add_argument("--output", type=Path, default=ROOT / "build/images", help="folder of the image layout")
    return parser.parse_args(arguments)


def _report(step: str) -> None:
    print(f"{step} ...", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
