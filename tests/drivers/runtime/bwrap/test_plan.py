import json
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import plan
from roost.drivers.runtime.contract import ContainerLimits, ContainerSpec

FDS = plan.InheritedDescriptors(socket=11, info=12, block=13, seccomp=14, files={"/run/trust/all.pem": 15})
LAYOUT = plan.HostLayout(
    bwrap=Path("/t/bwrap"),
    warden=Path("/t/warden"),
    python=Path("/usr/bin/python3"),
    workspace=Path("/a/workspace"),
    home=Path("/a/home"),
    sockets=Path("/r/out"),
    etc=Path("/t/etc"),
    etc_folders=["ssl/certs"],
    folders={"/engine/hermes": Path("/engines/hermes")},
    system_mounts=["--ro-bind", "/usr", "/usr"],
)
SPEC = ContainerSpec("one", env={"LANG": "de", "KEY": "v"}, relays={8799: "api"}, egress="proxy")


def arguments(spec: ContainerSpec = SPEC) -> list[str]:
    return plan.bwrap_arguments(spec, LAYOUT, FDS, "mark")


def has(argv: list[str], *part: str) -> bool:
    return any(tuple(argv[at : at + len(part)]) == part for at in range(len(argv)))


def test_everything_is_unshared_and_dropped() -> None:
    argv = arguments()
    assert argv[0] == "/t/bwrap"
    for wanted in ("user", "ipc", "pid", "net", "uts"):
        assert f"--unshare-{wanted}" in argv
    for part in (("--cap-drop", "ALL"), ("--disable-userns",), ("--new-session",), ("--clearenv",), ("--uid", "1000")):
        assert has(argv, *part)
    assert not {"--die-with-parent", "--share-net", "--cap-add", "--dev-bind", "--setenv"} & set(argv)


def test_only_two_folders_are_writable() -> None:
    argv = arguments()
    assert [argv[at + 2] for at, word in enumerate(argv) if word == "--bind"] == ["/home/agent", "/workspace"]
    assert has(argv, "--ro-bind", "/r/out", "/run/roost")
    assert has(argv, "--ro-bind", "/t/etc", "/etc", "--ro-bind", "/etc/ssl/certs", "/etc/ssl/certs")
    assert has(argv, "--ro-bind", "/engines/hermes", "/engine/hermes")
    assert has(argv, "--perms", "0644", "--ro-bind-data", "15", "/run/trust/all.pem")
    # Nothing is created in them after the remount.
    creating = {"--dir", "--tmpfs", "--ro-bind", "--ro-bind-data", "--file", "--bind"}
    last = max(at for at, word in enumerate(argv) if word in creating)
    assert last < argv.index("--remount-ro")
    assert has(argv, "--remount-ro", "/dev", "--remount-ro", "/")


def test_every_tmpfs_has_a_size() -> None:
    argv = arguments(ContainerSpec("one", limits=ContainerLimits(tmp_bytes=4096)))
    sized = [argv[at - 2 : at + 2] for at, word in enumerate(argv) if word == "--tmpfs"]
    assert sized == [["--size", "4096", "--tmpfs", place] for place in ("/tmp", "/dev/shm")]


def test_the_configuration_of_the_warden() -> None:
    argv = arguments()
    assert argv[argv.index("--") + 1 : -1] == [
        *("/usr/bin/python3", "-S", "-E", "-I", "-X", "utf8", "/run/warden/warden.pyc"),
    ]
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
        "delete_only": False,
        "lowers_sessions": False,
    }
    assert (env["KEY"], env["LANG"], env["HOME"], env["USER"]) == ("v", "de", "/home/agent", "agent")
    assert json.loads(arguments(ContainerSpec("one"))[-1])["egress"] is None


@pytest.mark.parametrize(
    ("config", "agent_id"),
    [
        ('{"mark": "m", "agent": "a", "more": 1}', "a"),
        ('{"former key": "m", "agent": "a"}', "a"),  # of an earlier version
        ('{"mark": "other", "agent": "a"}', None),
        ('{"mark": "m", "agent": 1}', None),
        ('{"mark": "m"}', None),
        ('{"mark": 1, "agent": "a"}', None),
        ("[]", None),
        ("null", None),
        ("no json", None),
    ],
)
def test_agent_ids_are_parsed(config: str, agent_id: str | None) -> None:
    assert plan.parse_agent_id(config, "m") == agent_id


def test_system_folders_are_usr_and_links_into_it(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "lib").mkdir()
    root = str(tmp_path)
    assert plan.system_folders(tmp_path) == [
        *("--ro-bind", f"{root}/usr", "/usr"),
        *("--symlink", "usr/bin", "/bin"),
        *("--ro-bind", f"{root}/lib", "/lib"),
    ]
