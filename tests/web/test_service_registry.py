from types import SimpleNamespace
from typing import Any

import pytest

from roost.web.service_registry import ServiceRegistry, provide_service


class Clock:
    pass


class Mailer:
    pass


def connection(services: ServiceRegistry) -> Any:
    return SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(services=services)))


async def test_a_handler_gets_the_service_of_its_type() -> None:
    services, clock, mailer = ServiceRegistry(), Clock(), Mailer()
    services.add(clock)
    services.add(mailer)
    assert await provide_service(Clock)(connection(services)) is clock
    assert await provide_service(Mailer)(connection(services)) is mailer


async def test_applications_have_services_of_their_own() -> None:
    first, second = ServiceRegistry(), ServiceRegistry()
    first.add(Clock())
    second.add(Clock())
    assert await provide_service(Clock)(connection(first)) is not await provide_service(Clock)(connection(second))


async def test_a_missing_service_is_an_internal_error() -> None:
    with pytest.raises(KeyError):
        await provide_service(Clock)(connection(ServiceRegistry()))
