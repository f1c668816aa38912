"""Run Schemathesis against a server of its own, which has two agents, a key for everything and the fake engine."""

import asyncio
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.server import RunningServer, running

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
METRICS_TOKEN = "fuzz-metrics-token"
SETTINGS: dict[str, Any] = {
    "ROOST_QUOTA_PAID": "4",
    "ROOST_METRICS_TOKEN": METRICS_TOKEN,
    # Requests name chat platforms and receivers of webhooks: only a closed port of this machine is asked.
    **dict.fromkeys(("ROOST_TELEGRAM_API", "ROOST_SLACK_API", "ROOST_DISCORD_API"), "http://127.0.0.1:9"),
    "ROOST_EGRESS_HOSTS": "hooks.example=127.0.0.1:9",
}


@dataclass(frozen=True)
class FuzzResult:
    """Outcome of a run: whether all checks passed, the requests by status as the server counted them, the output."""

    passed: bool
    requests: Counter[int]
    output: str

    @property
    def server_errors(self) -> int:
        """The number of 5xx; 503 is right where a server that does not exist is asked, and a failed check elsewhere."""
        return sum(count for status, count in self.requests.items() if status >= 500 and status != 503)


async def fuzz(folder: Path, *flags: str, show: bool = False) -> FuzzResult:
    """Test all operations, with flags of `schemathesis run`. `show` writes its progress to stdout."""
    async with running(folder / "data", **SETTINGS) as server:
        environment = {**os.environ, **await _prepare(server)}
        before = _count_requests(server)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION)),
            *("run", f"http://agents.localhost:{server.port}/openapi", *flags),
            env=environment,
            stdout=None if show else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return FuzzResult(process.returncode == 0, _count_requests(server) - before, (output or b"").decode())


async def _prepare(server: RunningServer) -> dict[str, str]:
    """Create the objects that requests refer to; return the variables of `schemathesis.toml`."""
    key = server.key()
    agent, spare = [
        (await server.client(key).post("/v0/agents", json={"name": name})).json()["agent"] for name in ("Ada", "Spare")
    ]
    made = await server.client(key, "api.localhost").post(
        "/v3/pinata/keys", json={"keyName": "spare", "permissions": {"admin": True}}
    )
    return {
        "FUZZ_KEY": key,
        "FUZZ_SPARE_KEY": made.json()["pinata_api_key"],
        "FUZZ_METRICS_TOKEN": METRICS_TOKEN,
        "FUZZ_AGENT": agent["agentId"],
        "FUZZ_SPARE_AGENT": spare["agentId"],
        "FUZZ_GATEWAY_TOKEN": agent["gatewayToken"],
    }


def _count_requests(server: RunningServer) -> Counter[int]:
    samples = [one for metric in server.roost.monitoring.metrics.collect() for one in metric.samples]
    found = Counter[int]()
    for one in samples:
        if one.name == "roost_requests_total":
            found[int(one.labels["status"])] += int(one.value)
    return found
