import json
import subprocess
import sys
from pathlib import Path

from roost.drivers.runtime import loopback_namespace

LOOK = """
import os, socket, sys
socket.create_server(("127.0.0.1", 80))
print(os.readlink("/proc/self/ns/net"), sys.argv[1])
"""


def test_a_program_has_a_loopback_of_its_own_or_is_told_that_it_has_none() -> None:
    program = json.dumps([sys.executable, "-c", LOOK])
    done = subprocess.run(
        [sys.executable, loopback_namespace.__file__, program, "own", "shared"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    space, told = done.stdout.split() if done.returncode == 0 else ("", "shared")
    ours = str(Path("/proc/self/ns/net").readlink())
    assert (told == "own") == (space not in {"", ours}), done.stderr
