"""`make chaos`: python -m tests.chaos RUNTIME POINTS [SEED [OPERATION ...]]. Prints the seed, which repeats them."""

import secrets
import signal
import sys
import tempfile
from pathlib import Path

from roost.core import log
from tests.chaos.deployment import Deployment
from tests.chaos.docker_deployment import DockerDeployment
from tests.chaos.runner import ACTIONS, run_chaos


def main(runtime: str, points: int, seed: int | None = None, *names: str) -> None:
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    print(f"seed {seed}", flush=True)
    log.configure_logging("error")
    with tempfile.TemporaryDirectory() as folder:
        deployment = DockerDeployment(Path(folder)) if runtime == "docker" else Deployment(Path(folder))
        for what, count in sorted(run_chaos(deployment, points, seed, names or list(ACTIONS)).items()):
            print(f"{count:5} under way: {what}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the processes, like Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else None, *sys.argv[4:])
