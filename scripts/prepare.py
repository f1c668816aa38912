"""Install the engines and build the dashboard and the docs: `.venv/bin/python scripts/prepare.py`.

In two lanes beside each other, because each waits much for the network, the disk, or one processor: OpenClaw, which
takes longest and brings Node, and everything else.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from file_hash import ROOT

from dashboard import find_node

INSTALL = (sys.executable, "-m", "roost", "engines", "install")
PAGES = ("scripts/dashboard.py", "scripts/docs.py")
ENVIRONMENT = {**os.environ, "ROOST_URL": ""}


def main() -> None:
    with ThreadPoolExecutor() as lanes:
        openclaw = lanes.submit(run, [*INSTALL, "openclaw"])
        rest = lanes.submit(install_rest, openclaw)
    sys.exit(openclaw.result() or rest.result())


def install_rest(openclaw: Future[int]) -> int:
    """Install Hermes and build the pages. Returns the first exit code that is not 0."""
    code = run([*INSTALL, "hermes"], shows_progress=False)
    if find_node() is None:
        openclaw.result()
    for page in PAGES:
        code = code or run([sys.executable, page], shows_progress=False)
    return code


def run(command: Sequence[str], *, shows_progress: bool = True) -> int:
    """Run a command and return its exit code. Without progress it prints whole lines, as beside a progress bar."""
    if shows_progress:
        return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=False).returncode
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(done.stdout, end="", flush=True)
    return done.returncode


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nStopped. The next run begins again where that is safe.")
