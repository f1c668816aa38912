import json
import subprocess
import sys
from pathlib import Path

from roost.drivers.runtime import loopback_namespace

PROGRAM = """
import os, socket, sys
socket.create_server(("127.0.0.1", 80))
print(os.readlink("/proc/self/ns/net"), sys.argv[1])
"""


def test_a_program_has_its_own_loopback_or_the_other_argument() -> None:
    program = json.dumps([sys.executable, "-c", PROGRAM])
    result = subprocess.run(
        [sys.executable, loopback_namespace.__file__, program, "own", "shared"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    namespace, argument = result.stdout.split() if result.returncode == 0 else ("", "shared")
    ours = str(Path("/proc/self/ns/net").readlink())
    assert (argument == "own") == (namespace not in {"", ours}), result.stderr
