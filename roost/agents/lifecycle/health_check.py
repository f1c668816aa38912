"""Whether a new version holds: its gateway says of itself that it is that version, and well."""

from roost.core import clock
from roost.core.periodic import Backoff
from roost.core.problem import Problem, ProblemKind
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial, Engine

_SECONDS = 20.0
_WAIT = 0.5


class GatewayUnhealthy(Problem):
    kind = ProblemKind.FAILED
    message = "The gateway does not say that it is well"


async def until_healthy(engine: Engine, dial: Dial, token: Sensitive[str], version: str) -> None:
    """Returns once the gateway tells its health as that version. Raises GatewayUnhealthy."""
    deadline, backoff = clock.monotonic_seconds() + _SECONDS, Backoff(_WAIT)
    while True:
        try:
            health = await engine.health(dial, token)
        except Problem as problem:
            if clock.monotonic_seconds() > deadline:
                raise GatewayUnhealthy(f"{GatewayUnhealthy.message}: {problem.message}") from problem
            await backoff.pause()
            continue
        if health.version != version:
            raise GatewayUnhealthy(f"The gateway says that it is version {health.version[:64]!a}")
        return
