"""The plan of a container: its isolation, its limits and its read-only files."""

import io
import json
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

from roost.drivers.runtime.contract import ContainerLimits, ContainerSpec
from roost.drivers.runtime.docker import plan

SPEC = ContainerSpec(
    "one",
    env={"A": "b"},
    files={"/run/trust/a.pem": b"A", "/run/trust/b.pem": b"B"},
    relays={8799: "api"},
    egress="proxy",
    limits=ContainerLimits(memory_bytes=1 << 30, cpus=0.5, pids=9),
)


VOLUMES = plan.Volumes({"/workspace": "w"}, {"/run/warden": "x", "/engine/a": "y"})


def body(spec: ContainerSpec = SPEC, runtime: str = ""):
    return plan.container_body(spec, "roost-agent:1", {"label": "x"}, VOLUMES, runtime, ["seccomp={}"])


def test_a_container_has_no_network_no_rights_and_limits() -> None:
    host = body()["HostConfig"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"]) == ("none", True, ["ALL"])
    assert "no-new-privileges" in host["SecurityOpt"]
    assert any(option.startswith("seccomp=") for option in host["SecurityOpt"])
    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"], host["PidsLimit"]) == (1 << 30, 1 << 30, 5 * 10**8, 9)
    assert not {"Privileged", "Binds", "Devices", "PidMode"} & host.keys()


def test_a_container_with_egress_gives_up_what_its_network_takes_before_its_warden_starts() -> None:
    opened, closed = body(), body(replace(SPEC, egress=None))
    assert (closed["User"], closed["HostConfig"]["CapAdd"]) == ("1000:1000", [])
    assert closed["Entrypoint"] == [*plan.PYTHON, "/run/warden/warden.py"]
    assert (opened["User"], opened["HostConfig"]["CapDrop"]) == ("0:0", ["ALL"])
    assert opened["HostConfig"]["CapAdd"] == ["NET_ADMIN", "SETGID", "SETPCAP", "SETUID"]
    assert opened["Entrypoint"][-len(closed["Entrypoint"]) - 1 :] == ["1000", *closed["Entrypoint"]]


def test_only_the_folders_of_the_agent_are_writable() -> None:
    mounts = {found["Target"]: found["ReadOnly"] for found in body()["HostConfig"]["Mounts"]}
    assert mounts == {"/workspace": False, "/run/warden": True, "/engine/a": True}


def test_the_runtime_is_named_only_if_it_is_chosen() -> None:
    assert "Runtime" not in body()["HostConfig"]
    assert body(runtime="runsc")["HostConfig"]["Runtime"] == "runsc"


def test_the_warden_gets_relays_by_name() -> None:
    config = json.loads(body()["Cmd"][0])
    assert (config["relays"], config["egress"], config["env"]["A"]) == ({"8799": "api"}, "proxy", "b")
    assert config["bridge"] == {"name": plan.BRIDGE, "uid": plan.CARRIER_USER}


def test_files_are_named_by_their_content() -> None:
    _, trust = plan.read_only_files(SPEC)
    _, other = plan.read_only_files(replace(SPEC, files={"/run/trust/a.pem": b"A", "/run/trust/b.pem": b"C"}))
    _, same = plan.read_only_files(replace(SPEC, files=dict(sorted(SPEC.files.items(), reverse=True))))
    assert trust.name == same.name != other.name
    with tarfile.open(fileobj=io.BytesIO(trust.pack())) as packed:
        assert packed.getnames() == ["a.pem", "b.pem"]
        assert {entry.mode for entry in packed} == {0o444}


def test_the_warden_is_compiled_for_this_version_of_python(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(plan.warden_files().pack())) as packed:
        assert packed.getmember("__pycache__").mode == 0o755
        packed.extractall(tmp_path, filter="data")
    command = [sys.executable, "-S", "-E", "-I", "-v", tmp_path / "warden.py"]  # without a configuration it ends
    loaded = subprocess.run(command, check=False, capture_output=True, text=True).stderr
    assert f"service.{sys.implementation.cache_tag}.pyc matches" in loaded
    assert f"# wrote '{tmp_path}" not in loaded


def test_another_process_compiles_the_same_warden() -> None:
    """Otherwise each start of a server would make a volume."""
    command = "from roost.drivers.runtime.docker import plan; print(plan.warden_files().name)"
    named = subprocess.run([sys.executable, "-O", "-c", command], check=True, capture_output=True, text=True).stdout
    assert named.strip() == plan.warden_files().name
