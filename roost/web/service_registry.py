"""Provide services to request handlers by their type."""

from collections.abc import Callable, Coroutine
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import HTTPConnection

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


class ServiceRegistry:
    """The services of one application by their class."""

    def __init__(self) -> None:
        self._services: dict[type, object] = {}

    def add(self, service: object) -> None:
        self._services[type(service)] = service

    def add_fields(self, services: "DataclassInstance") -> None:
        """Add the value of each field of a dataclass."""
        for field in fields(services):
            self.add(getattr(services, field.name))

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
