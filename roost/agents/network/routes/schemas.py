"""API shapes of path routes (contract: Routes and domains)."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, StrictBool, StrictInt

from roost.agents.network.routes.model import PathRoute, parse_prefix
from roost.web.schemas import ApiSchema, Text

_ITEMS_LIMIT = 100  # a list within it gets the message about the limit of routes


class RouteRecord(ApiSchema):
    port: int = Field(examples=[3000])
    path_prefix: str = Field(examples=["/app"])
    protected: bool

    @classmethod
    def from_route(cls, route: PathRoute) -> Self:
        return cls(port=route.port, path_prefix=route.prefix or "/", protected=route.is_protected)


class RouteItem(ApiSchema):
    """A route; a protected one needs the gateway token."""

    port: StrictInt = Field(examples=[3000])
    path_prefix: Text = Field(examples=["/app"])
    protected: StrictBool = True

    def to_route(self, index: int) -> PathRoute:
        """Return the route with its prefix checked; `index` is its place in the list. Raises InvalidRoutes."""
        return PathRoute(parse_prefix(self.path_prefix, f"mappings.{index}.pathPrefix"), self.port, self.protected)


class ReplaceRoutesRequest(ApiSchema):
    mappings: Annotated[Sequence[RouteItem], Field(max_length=_ITEMS_LIMIT)]


class RouteList(ApiSchema):
    mappings: Sequence[RouteRecord]


class RouteListResponse(RouteList):
    success: bool = True
