"""How a handler gets the rooms that it calls: by their type, from the application that it runs in."""

from collections.abc import Callable
from typing import TypeVar

from starlette.requests import HTTPConnection

T = TypeVar("T")


class ServiceRegistry:
    """The services of one application, each under its class."""

    def __init__(self) -> None:
        self._rooms: dict[type, object] = {}

    def add(self, room: object) -> None:
        self._rooms[type(room)] = room

    def get(self, kind: type[T]) -> T:
        room = self._rooms[kind]
        assert isinstance(room, kind)
        return room


def provide_service(kind: type[T]) -> Callable[[HTTPConnection], T]:
    """A FastAPI dependency that yields the application's room of that class."""

    def dependency(connection: HTTPConnection) -> T:
        rooms: ServiceRegistry = connection.app.state.rooms
        return rooms.get(kind)

    return dependency
