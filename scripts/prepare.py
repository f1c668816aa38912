"""Install the engines and build the dashboard and the docs: `python scripts/prepare.py [start|background|rest]`.

In lanes beside each other, because each waits much for the network, the disk, or one processor. Before the first
start of a server (`start`), only what the first agent needs is installed; the `rest` comes beside that server, in the
`background` at the lowest priority (decision 0053). It may be stopped at any time: the next run does what is missing.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from file_hash import ROOT

from dashboard import BUILT, find_node

Command = Sequence[str]
INSTALL = (sys.executable, "-m", "roost", "engines", "install")
LIST = (sys.executable, "-m", "roost", "agents", "list", "-o", "json")
PATIENCE_SECONDS, PAUSE_SECONDS = 90, 2
PAGES = tuple((sys.executable, f"scripts/{name}.py") for name in ("dashboard", "docs"))
TEST_PROGRAMS = tuple(
    (sys.executable, "-m", f"tests.support.{name}") for name in ("docker_engine", "kubernetes_programs")
)
PREPARE = (sys.executable, str(Path(__file__).resolve()))
BACKGROUND, REST = (*PREPARE, "background"), ("nice", "-n", "19", *PREPARE, "rest")
AUTOGROUP = Path("/proc/self/autogroup")
ENVIRONMENT = {**os.environ, "ROOST_URL": ""}


def main(scope: str = "all") -> int:
    """Prepare everything, or a part. Returns the first exit code that is not 0."""
    if scope == "start" and not (BUILT / "index.html").exists():
        return start_first()
    if scope == "background":
        return run_apart(REST)
    with ThreadPoolExecutor() as lanes:
        if scope == "rest":
            lower_priority()
            wait_for_agent()
            # Hermes first, because the run that fills OpenClaw's cache would slow down the first agent
            engines = lanes.submit(run_all, [*INSTALL, "hermes"], [*INSTALL, "openclaw"])
            pages = lanes.submit(run_all, *PAGES)
            code = engines.result() or pages.result()
            print("Not everything is prepared; the next start tries again." if code else "Everything is prepared.")
            return code
        openclaw = lanes.submit(run, [*INSTALL, "openclaw"])
        rest = lanes.submit(install_rest, openclaw)
        programs = lanes.submit(run_all, *TEST_PROGRAMS)
        return openclaw.result() or rest.result() or programs.result()


def start_first() -> int:
    """Install what the first agent needs, and leave the rest to a process beside the server."""
    if code := run([*INSTALL, "--minimal", "openclaw"]):
        return code
    print("Hermes, the dashboard and the docs are prepared in the background.", flush=True)
    subprocess.Popen(BACKGROUND, cwd=ROOT, env=ENVIRONMENT, stdin=subprocess.DEVNULL)
    return 0


def run_apart(command: Command) -> int:
    """Run a command in a session of its own, which ends with this one's Ctrl-C, and return its exit code."""
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, start_new_session=True) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            return process.wait()


def lower_priority() -> None:
    """Let this session yield to others: where Linux groups processes by session, `nice` orders those of one only."""
    if AUTOGROUP.exists():
        AUTOGROUP.write_text("19")


def wait_for_agent() -> None:
    """Wait until the first agent runs, whose start other work would delay, but not for ever."""
    deadline, is_running = time.monotonic() + PATIENCE_SECONDS, False
    while not is_running and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
        listed = subprocess.run(LIST, cwd=ROOT, env=ENVIRONMENT, check=False, capture_output=True, text=True)
        is_running = listed.returncode == 0 and any(agent["status"] == "running" for agent in json.loads(listed.stdout))


def install_rest(openclaw: Future[int]) -> int:
    """Install Hermes and build the pages. Returns the first exit code that is not 0."""
    code = run([*INSTALL, "hermes"], shows_progress=False)
    if find_node() is None:
        openclaw.result()
    return code or run_all(*PAGES)


def run_all(*commands: Command) -> int:
    """Run commands in turn, until one fails."""
    return next(filter(None, (run(command, shows_progress=False) for command in commands)), 0)


def run(command: Command, *, shows_progress: bool = True) -> int:
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
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped. The next run begins again where that is safe.")
