"""Health check of a new version: its gateway must report that version, and that it is healthy."""

from roost.core import clock
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial, Engine

_TIMEOUT_SECONDS = 20.0
_PAUSE_SECONDS = 0.5


class GatewayUnhealthy(Problem):
    message = "The gateway did not report that it is healthy"


async def wait_until_healthy(engine: Engine, dial: Dial, token: Sensitive[str], version: str) -> None:
    """Return once the gateway reports to be healthy at that version. Raises GatewayUnhealthy."""
    deadline, backoff = clock.monotonic_seconds() + _TIMEOUT_SECONDS, Backoff(_PAUSE_SECONDS)
    while True:
        try:
            reported = await engine.health(dial, token)
        except Problem as problem:
            if clock.monotonic_seconds() > deadline:
                raise GatewayUnhealthy(f"{GatewayUnhealthy.message}: {problem.message}") from problem
            await backoff.pause()
            continue
        if reported != version:
            raise GatewayUnhealthy(f"The gateway reports version {reported[:64]!a}")
        return
