"""An API read and a command over HTTP, compared with a minimal ASGI application on the same server software."""

from collections.abc import Iterator
from pathlib import Path

from bench.bare_programs import BARE_ASGI, bare_asgi, bare_command
from bench.row import Row
from bench.timing import time_in_turns
from tests.journeys.server_process import up

_READS, _COMMANDS = 200, 60
_READ = (
    "It is Python's: address, key and rate of each request are checked, and its rows read; the reference does nothing. "
    "The answer of 1,000 agents shows what a program takes that only reads rows."
)
_SHORTFALL = (
    "The list of agents shows what a request costs in Python, and the row of the warden alone what a command costs in "
    "the kernel and the warden; they are most of this figure."
)


def run(folder: Path) -> Iterator[Row]:
    with up(folder / "data", "--no-first-agent") as server, server.client() as client, bare_asgi() as hello:
        agent = server.create("bench", "hermes")

        def read() -> None:
            client.get("/v0/agents").raise_for_status()

        def execute() -> None:
            client.post(f"/v0/agents/{agent['agentId']}/console/exec", json={"command": "true"}).raise_for_status()

        reads, bare = time_in_turns(read, hello, rounds=_READS, warm=50)
        yield Row("list of agents over HTTP, p50", reads, "ms", BARE_ASGI, bare, "<= 4 x", shortfall=_READ)
        with bare_command(folder) as minimal:
            commands, bare, least = time_in_turns(execute, hello, minimal, rounds=_COMMANDS, warm=20)
        others = {"a bare shell command in a sandbox": least, "the list of agents": reads}
        name = "console/exec of `true` over HTTP, p50"
        yield Row(name, commands, "ms", BARE_ASGI, bare, "<= 6 x", others, _SHORTFALL)
