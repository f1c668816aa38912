from collections.abc import Iterator

import pytest

from roost.http.edge.dependencies import ProxyLimits
from tests.http.edge.support import AGENT, TOKEN, EdgeServer, Wire, running_edge

QUICK = ProxyLimits(
    first_head=0.5,
    keep_alive=1,
    linger=0.3,
    connect=0.4,
    body_idle=0.5,
    body_grace=0.6,
    body_rate=1000,
    response_head=0.8,
    idle=1.0,
    spare=0.4,
    spares=2,
    streams=4,
)


@pytest.fixture(scope="module")
def _patient_edge() -> Iterator[EdgeServer]:
    with running_edge() as edge:
        yield edge


@pytest.fixture(scope="module")
def _quick_site() -> Iterator[EdgeServer]:
    with running_edge(QUICK) as edge:
        yield edge


def _fresh(edge: EdgeServer) -> EdgeServer:
    edge.tokens = {AGENT: TOKEN}
    edge.dial = None
    edge.tell(AGENT)
    edge.records.clear()
    edge.uses.clear()
    edge.dials = 0
    return edge


@pytest.fixture
def edge(_patient_edge: EdgeServer) -> EdgeServer:
    """A server with the usual bounds."""
    return _fresh(_patient_edge)


@pytest.fixture
def quick(_quick_site: EdgeServer) -> EdgeServer:
    """A server whose times are short."""
    return _fresh(_quick_site)


@pytest.fixture
def wire(edge: EdgeServer) -> Iterator[Wire]:
    with edge.connect() as sock:
        yield Wire(sock)


@pytest.fixture
def quick_wire(quick: EdgeServer) -> Iterator[Wire]:
    with quick.connect() as sock:
        yield Wire(sock)
