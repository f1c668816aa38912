"""docs/reference/api.md lists the endpoints that there are, with their credentials and rights."""

import re

from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.http.stack.routes import route_table
from roost.web.service_registry import ServiceRegistry
from tests.architecture.code import ROOT

_ROW = re.compile(
    r"^\| (GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE|WEBSOCKET) \| `([^`]+)` \| ([^|]+) \| (\w+) \|", re.MULTILINE
)


def test_the_page_has_a_row_for_each_endpoint() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    rows = _ROW.findall(page)
    written = {(method, path): (kinds.strip(), right) for method, path, kinds, right in rows}
    served = {
        (row["method"], re.sub(r":path", "", row["path"])): (", ".join(row["credentials"]) or "none", row["right"])
        for row in route_table(create_application(ServiceRegistry(), HostAddresses()))
    }
    assert written == served
    assert len(rows) == len(written)  # what is written twice will differ one day
