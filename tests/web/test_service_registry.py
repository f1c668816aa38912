from types import SimpleNamespace
from typing import Any

import pytest

from roost.web.service_registry import ServiceRegistry, provide_service


class Kitchen:
    pass


class Hall:
    pass


def connection(rooms: ServiceRegistry) -> Any:
    return SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(services=rooms)))


def test_a_handler_gets_the_room_of_its_type() -> None:
    rooms, kitchen, hall = ServiceRegistry(), Kitchen(), Hall()
    rooms.add(kitchen)
    rooms.add(hall)
    assert provide_service(Kitchen)(connection(rooms)) is kitchen
    assert provide_service(Hall)(connection(rooms)) is hall


def test_applications_have_rooms_of_their_own() -> None:
    first, second = ServiceRegistry(), ServiceRegistry()
    first.add(Kitchen())
    second.add(Kitchen())
    assert provide_service(Kitchen)(connection(first)) is not provide_service(Kitchen)(connection(second))


def test_a_room_that_is_not_there_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        provide_service(Kitchen)(connection(ServiceRegistry()))
