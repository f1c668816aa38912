"""Keep a stream open for as long as the credential that opened it is valid."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from roost.core.periodic import PeriodicTask
from roost.core.problem import ServiceUnavailable
from roost.identity.errors import Unauthorised


@asynccontextmanager
async def hold_while_valid(
    name: str, is_valid: Callable[[], Awaitable[bool]], interval: float
) -> AsyncGenerator[None, None]:
    """Cancel the block and raise Unauthorised when `is_valid`, asked every `interval` seconds, says no."""
    hold = asyncio.timeout(None)

    async def check() -> None:
        with suppress(ServiceUnavailable):  # the database is away; it decides when it is back
            if not hold.expired() and not await is_valid():
                hold.reschedule(0)

    watch = PeriodicTask(name, check, interval)
    try:
        async with hold:
            watch.start()
            try:
                yield
            finally:
                await watch.stop()
    except TimeoutError:
        raise (Unauthorised if hold.expired() else TimeoutError) from None
