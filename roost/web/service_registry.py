"""Provide services to request handlers by their type."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import HTTPConnection

T = TypeVar("T")


class ServiceGroup:
    """Base of frozen dataclasses whose fields are services, and smaller groups of them."""


class ServiceRegistry:
    """The services of one application by their class."""

    def __init__(self) -> None:
        self._services: dict[type, object] = {}

    def add(self, service: object) -> None:
        self._services[type(service)] = service

    def add_group(self, group: ServiceGroup) -> None:
        """Add the services of a group, and those of the groups in it."""
        for service in vars(group).values():
            if isinstance(service, ServiceGroup):
                self.add_group(service)
            else:
                self.add(service)

    def get(self, kind: type[T]) -> T:
        service = self._services[kind]
        assert isinstance(service, kind)
        return service


def provide_service(kind: type[T]) -> Callable[[HTTPConnection], Coroutine[Any, Any, T]]:
    """Return a FastAPI dependency that yields the service of that class."""

    async def dependency(connection: HTTPConnection) -> T:  # FastAPI calls other functions in a thread
        services: ServiceRegistry = connection.app.state.services
        return services.get(kind)

    return dependency
