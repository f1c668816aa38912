import io
import json
import os
import tarfile
from pathlib import Path

import pytest
from base_image import BaseUnusable, load_base
from build_root import BuildRoot
from contents import runtime_lock
from layout import Blob, Image, ImageLayout, LayerWriter
from registry import RegistryFailed, Repository, is_reference
from sbom import Package, list_debian, list_npm, list_python, render_sbom

LOCK = """\
hatchling==1.0 \\
    --hash=sha256:aa
    # via roost (pyproject.toml:setup)
kept==2.0 ; python_version < '3.12' \\
    --hash=sha256:bb
    # via
    #   hatchling
    #   roost (pyproject.toml)
kept==3.0 ; python_version >= '3.12' \\
    --hash=sha256:cc
    # via roost (pyproject.toml)
pluggy==1.0 \\
    --hash=sha256:dd
    # via hatchling
"""


def write_tree(folder: Path, names: list[str], umask: int, time: int) -> Path:
    before = os.umask(umask)
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")
        os.utime(path, (time, time))
    (folder / "a/program").chmod(0o700)
    (folder / "link").symlink_to("a/program")
    os.umask(before)
    return folder


def pack_tree(layout: ImageLayout, tree: Path) -> Blob:
    return layout.add_layer(1_600_000_000, lambda layer: layer.add_tree(tree, "/opt/tree"))


def test_files_give_the_same_layer_whatever_their_owner_and_time_are(tmp_path: Path) -> None:
    names = ["a/program", "z", "b/c"]
    layouts = ImageLayout(tmp_path / "one"), ImageLayout(tmp_path / "two")
    first = pack_tree(layouts[0], write_tree(tmp_path / "x", names, 0o022, 10))
    second = pack_tree(layouts[1], write_tree(tmp_path / "y", names[::-1], 0o077, 2_000_000_000))
    assert first == second
    (tmp_path / "y/z").write_text("other content")
    assert pack_tree(layouts[1], tmp_path / "y") != first
    with tarfile.open(layouts[0].blob_path(first.digest)) as archive:
        members = {member.name: member for member in archive}
    assert list(members) == sorted(members)
    assert {(member.mtime, member.uid, member.gid, member.uname) for member in members.values()} == {
        (1_600_000_000, 0, 0, "")
    }
    assert members["opt/tree/a/program"].mode == 0o755
    assert members["opt/tree/b/c"].mode == 0o644
    assert members["opt/tree/link"].linkname == "a/program"


def test_a_socket_is_not_packed_into_a_layer(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    os.mkfifo(tmp_path / "tree/pipe")
    with pytest.raises(ValueError, match="pipe is neither"):
        pack_tree(ImageLayout(tmp_path / "layout"), tmp_path / "tree")


def test_a_saved_archive_is_a_base_with_the_same_layers(tmp_path: Path) -> None:
    layout = ImageLayout(tmp_path / "one")
    layer = layout.add_layer(0, lambda writer: writer.add_file("/etc/x", b"x"))
    base = Image({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}, [])
    image = base.with_layers([("a file", layer)], {"User": "1000:0"}, "2020-02-02T00:00:00Z")
    manifest = layout.add_image("name:1", image)
    with (tmp_path / "saved.tar").open("wb") as target:
        layout.write_archive(manifest, "name:1", target)
    loaded = load_base(str(tmp_path / "saved.tar"), ImageLayout(tmp_path / "two"))
    assert [blob.diff_id for blob in loaded.layers] == [layer.diff_id]
    assert loaded.config["config"] == {"User": "1000:0"}


def test_a_file_that_is_no_tar_is_no_base(tmp_path: Path) -> None:
    (tmp_path / "base.tar").write_bytes(b"no tar")
    with pytest.raises(BaseUnusable, match="is no tar"):
        load_base(str(tmp_path / "base.tar"), ImageLayout(tmp_path / "layout"))


def test_a_root_without_python_is_no_base(tmp_path: Path) -> None:
    root = BuildRoot(tmp_path / "root")
    with pytest.raises(BaseUnusable, match=r"needs Python 3\.11"):
        root.find_python()


def test_a_layer_removes_files_and_writes_nothing_above_the_root(tmp_path: Path) -> None:
    layout, root = ImageLayout(tmp_path / "layout"), BuildRoot(tmp_path / "root")

    def lower(layer: LayerWriter) -> None:
        layer.add_file("etc/gone", b"")
        layer.add_file("etc/kept", b"")
        layer.add_link("out", str(tmp_path))

    def upper(layer: LayerWriter) -> None:
        layer.add_file("etc/.wh.gone", b"")
        layer.add_file("new", b"")

    layers = [layout.add_layer(0, lower), layout.add_layer(0, upper)]
    root.unpack(layout, Image({}, layers))
    assert sorted(path.name for path in (root.path / "etc").iterdir()) == ["kept"]
    escaping = layout.add_layer(0, lambda layer: layer.add_file("out/.wh.layout", b""))
    with pytest.raises(BaseUnusable, match="names out"):
        root.unpack(layout, Image({}, [escaping]))
    assert layout.path.exists()


def test_the_lock_of_the_image_has_no_tools_for_building() -> None:
    kept = runtime_lock(LOCK)
    assert kept.startswith("kept==2.0")
    assert kept.count("==") == 2
    assert "hatchling==" not in kept
    assert "pluggy" not in kept


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("registry.example.com/team/base:1", True),
        ("localhost:5000/base", True),
        (f"registry.example.com/base@sha256:{'a' * 64}", True),
        ("debian:bookworm", False),
        ("team/base:1", False),
        ("./base.tar", False),
        ("", False),
    ],
)
def test_an_image_of_a_registry_has_its_host(text: str, is_one: bool) -> None:
    assert is_reference(text) == is_one


def test_a_registry_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with (
        Repository("127.0.0.1:1/base:1") as repository,
        pytest.raises(RegistryFailed, match=r"127\.0\.0\.1:1/v2/base/ does not answer"),
    ):
        repository.pull_image(ImageLayout(tmp_path), "amd64")


def test_the_sbom_names_packages_of_debian_python_and_npm(tmp_path: Path) -> None:
    files = {
        "var/lib/dpkg/status": (
            "Package: git\nStatus: install ok installed\nVersion: 1:2.39.5\n\n"
            "Package: vim\nStatus: deinstall ok config-files\nVersion: 9\n"
        ),
        "site/Some_Name-1.0.dist-info/METADATA": "Name: Some_Name\nVersion: 1.0\nLicense-Expression: MIT\n\nText",
        "engine/node_modules/.package-lock.json": json.dumps(
            {"packages": {"node_modules/@a/b": {"version": "2.0.0", "license": "ISC"}}}
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = [*list_debian(tmp_path), *list_python(tmp_path / "site"), *list_npm(tmp_path / "engine")]
    assert found == [
        Package("deb", "debian/git", "1:2.39.5"),
        Package("pypi", "some-name", "1.0", "MIT"),
        Package("npm", "@a/b", "2.0.0", "ISC"),
    ]
    document = render_sbom("roost-server:1", found, "2020-02-02T00:00:00Z")
    assert document == render_sbom("roost-server:1", found[::-1], "2020-02-02T00:00:00Z")
    addresses = {one["externalRefs"][0]["referenceLocator"] for one in json.loads(document)["packages"]}
    assert addresses == {"pkg:deb/debian/git@1%3A2.39.5", "pkg:pypi/some-name@1.0", "pkg:npm/%40a/b@2.0.0"}


def test_a_layer_of_a_tar_has_its_digest(tmp_path: Path) -> None:
    layout, packed = ImageLayout(tmp_path), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"))
    packed.seek(0)
    first = layout.add_tar(packed)
    packed.seek(0)
    assert layout.add_tar(packed) == first
