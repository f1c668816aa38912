"""Time from the request that creates an agent to its ready gateway, compared with a start of the bare engine."""

import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.row import Row
from bench.timing import take_turns
from roost import app, config
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Engine, GatewaySetup
from roost.drivers.runtime.contract import HOME
from tests.conformance.model_server import MODELS
from tests.journeys.server_process import ServerProcess, up

AGENT_NICE = 19
"""Priority of agents where control groups are not delegated."""
TOKEN = Sensitive("rst_int_" + "0" * 64)
_ROUNDS = {"hermes": 7, "openclaw": 5}
_READY = {"hermes": "/health", "openclaw": "/readyz"}
_GOALS = {"hermes": "<= 1.1 x", "openclaw": "<= 1 x"}
_CREATE = "The container, its warden and what is recorded come before the engine, whose own start is the reference."
_OWN_GOALS = {"hermes": "<= 1 s", "openclaw": ""}


def run(folder: Path) -> Iterator[Row]:
    engines = app.create_engines(config.load_settings({**os.environ, "ROOST_DATA": str(folder)}))
    with up(folder / "data", "--no-first-agent") as server:
        for engine in reversed(engines):
            create, start = partial(_create, server, engine.id), partial(start_alone, engine)
            ours, own = take_turns(create, start, runs=_ROUNDS[engine.id])
            name, goal = f"create to 201, {engine.label}, p50", _GOALS[engine.id]
            yield Row(name, ours, "s", "the engine's own start", own, goal, shortfall=_CREATE)
            name, goal = f"own start of {engine.label}, p50", _OWN_GOALS[engine.id]
            yield Row(name, own, "s", goal=goal, shortfall="It is the engine's: Roost has no part in it.")


def _create(server: ServerProcess, engine: str) -> float:
    began = time.perf_counter()
    agent = server.create("bench", engine)
    took = time.perf_counter() - began
    with server.client() as client:
        client.delete(f"/v0/agents/{agent['agentId']}").raise_for_status()
    return took


def start_alone(engine: Engine, nice: int = 0, port: int | None = None) -> float:
    """Start the engine as `run_alone` does, and return the seconds until it is ready."""
    with run_alone(engine, nice=nice, port=port) as seconds:
        return seconds


@contextmanager
def run_alone(
    engine: Engine, model_url: str = "http://127.0.0.1:9/v1", nice: int = 0, port: int | None = None
) -> Iterator[float]:
    """Run the engine with the same settings on the host, in an empty home; yield the seconds until it was ready.

    `nice` is its priority; with `AGENT_NICE` it is that of agents. It listens on its own port unless another is given.
    """
    with tempfile.TemporaryDirectory(prefix="roost-own-") as home:
        setup = GatewaySetup(
            agent_id="bench",
            name="bench",
            origin="http://localhost",
            token=TOKEN,
            model_url=model_url,
            models=[MODELS[0]],
            proxy_url="http://127.0.0.1:9",
        )
        plan = engine.plan(engine.default_version, setup)
        for name, content in plan.files.items():
            path = Path(home, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_host_paths(content.decode(), engine, home).encode())
        environment = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "HTTP_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        }
        environment |= {name: _host_paths(value, engine, home) for name, value in plan.env.items()}
        if port is not None:
            _change_port(Path(home), environment, engine.port, port)
        argv = ["nice", f"-n{nice}", *(_host_paths(word, engine, home) for word in plan.argv)]
        began = time.perf_counter()
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            argv, env=environment, cwd=home, stdout=quiet, stderr=quiet, start_new_session=True
        ) as process:
            try:
                _wait_until_ready(port or engine.port, _READY[engine.id], process)
                yield time.perf_counter() - began
            finally:
                os.killpg(process.pid, 9)


def _host_paths(text: str, engine: Engine, home: str) -> str:
    """Replace paths in the container by paths on the host."""
    for path, folder in sorted(engine.folders(engine.default_version).items(), reverse=True):
        text = text.replace(path, str(folder))
    return text.replace(HOME, home).replace("/workspace", home)


def _change_port(home: Path, environment: dict[str, str], before: int, after: int) -> None:
    for name, value in environment.items():
        environment[name] = value.replace(str(before), str(after))
    for path in filter(Path.is_file, home.rglob("*")):
        path.write_bytes(path.read_bytes().replace(str(before).encode(), str(after).encode()))


def _wait_until_ready(port: int, path: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as response:
                if response.status == 200:
                    return
        except (TimeoutError, urllib.error.URLError, OSError):
            time.sleep(0.01)
    raise AssertionError(f"the engine exited with {process.returncode}")
