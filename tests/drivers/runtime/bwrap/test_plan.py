import json
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import plan
from roost.drivers.runtime.contract import ContainerLimits, ContainerSpec

FDS = plan.InheritedDescriptors(listener=11, info=12, block=13, seccomp=14, files={"/etc/passwd": 15})
LAYOUT = plan.HostLayout(
    bwrap=Path("/t/bwrap"),
    warden=Path("/t/warden"),
    python=Path("/usr/bin/python3"),
    workspace=Path("/a/workspace"),
    home=Path("/a/home"),
    sockets=Path("/r/out"),
    folders={"/engine/hermes": Path("/engines/hermes")},
    system=["--ro-bind", "/usr", "/usr"],
)
SPEC = ContainerSpec("one", env={"LANG": "de", "KEY": "v"}, relays={8799: "api"}, egress="proxy")


def words(spec: ContainerSpec = SPEC) -> list[str]:
    return plan.arguments(spec, LAYOUT, FDS, "mark")


def has(argv: list[str], *part: str) -> bool:
    return any(tuple(argv[at : at + len(part)]) == part for at in range(len(argv)))


def test_everything_is_unshared_and_dropped() -> None:
    argv = words()
    assert argv[0] == "/t/bwrap"
    for wanted in ("user", "ipc", "pid", "net", "uts"):
        assert f"--unshare-{wanted}" in argv
    for part in (("--cap-drop", "ALL"), ("--disable-userns",), ("--new-session",), ("--clearenv",), ("--uid", "1000")):
        assert has(argv, *part)
    assert not {"--die-with-parent", "--share-net", "--cap-add", "--dev-bind", "--setenv"} & set(argv)


def test_only_two_places_are_bound_for_writing() -> None:
    argv = words()
    assert [argv[at + 2] for at, word in enumerate(argv) if word == "--bind"] == ["/home/agent", "/workspace"]
    assert has(argv, "--ro-bind", "/r/out", "/run/roost")
    assert has(argv, "--ro-bind", "/engines/hermes", "/engine/hermes")
    assert has(argv, "--perms", "0644", "--ro-bind-data", "15", "/etc/passwd")
    # Nothing is made in them after they were closed.
    last = max(
        at for at, word in enumerate(argv) if word in {"--dir", "--tmpfs", "--ro-bind", "--ro-bind-data", "--bind"}
    )
    assert last < argv.index("--remount-ro")
    assert has(argv, "--remount-ro", "/dev", "--remount-ro", "/")


def test_every_tmpfs_has_a_size() -> None:
    argv = words(ContainerSpec("one", limits=ContainerLimits(tmp_bytes=4096)))
    sized = [argv[at - 2 : at + 2] for at, word in enumerate(argv) if word == "--tmpfs"]
    assert sized == [["--size", "4096", "--tmpfs", place] for place in ("/tmp", "/dev/shm")]


def test_the_warden_learns_what_it_needs() -> None:
    argv = words()
    assert argv[argv.index("--") + 1 : -1] == ["/usr/bin/python3", "-S", "-E", "-I", "/run/warden/warden.py"]
    config = json.loads(argv[-1])
    env = config.pop("env")
    assert config == {
        "agent": "one",
        "mark": "mark",
        "listen_fd": 11,
        "workspace": "/workspace",
        "home": "/home/agent",
        "relays": {"8799": "/run/roost/api"},
        "egress": "/run/roost/proxy",
    }
    assert (env["KEY"], env["LANG"], env["HOME"], env["USER"]) == ("v", "de", "/home/agent", "agent")
    assert json.loads(words(ContainerSpec("one"))[-1])["egress"] is None


@pytest.mark.parametrize(
    ("config", "owner"),
    [
        ('{"mark": "m", "agent": "a", "more": 1}', ("m", "a")),
        ('{"box": "m", "agent": "a"}', ("m", "a")),  # of an earlier version
        ('{"mark": "m"}', None),
        ('{"mark": 1, "agent": "a"}', None),
        ("[]", None),
        ("null", None),
        ("no json", None),
    ],
)
def test_whose_a_warden_is(config: str, owner: tuple[str, str] | None) -> None:
    assert plan.owner(config) == owner


def test_the_system_is_usr_and_what_links_to_it(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "lib").mkdir()
    root = str(tmp_path)
    assert plan.system(tmp_path) == [
        *("--ro-bind", f"{root}/usr", "/usr"),
        *("--symlink", "usr/bin", "/bin"),
        *("--ro-bind", f"{root}/lib", "/lib"),
    ]
