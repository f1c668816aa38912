"""The state of the deployment over HTTP, for the operator."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.lifecycle.system import schemas
from roost.agents.lifecycle.system.service import SystemService
from roost.core import clock
from roost.identity.authenticator import ServiceCaller
from roost.web.service_registry import provide_service

Service = Annotated[SystemService, Depends(provide_service(SystemService))]
router = APIRouter(prefix="/v0/system", tags=["system"])


@router.get("")
async def describe_system(caller: ServiceCaller, system: Service) -> schemas.SystemRecord:
    """Return versions, health, servers, background work, disk and memory. Only for the default tenant."""
    return schemas.system_record(await system.describe(caller), clock.utc_now())


@router.get("/checks")
async def check_system(caller: ServiceCaller, system: Service) -> schemas.CheckList:
    """Run the checks of `roost doctor`, which take seconds. Only for the default tenant."""
    return schemas.check_list(await system.check(caller))


@router.get("/engines")
async def list_engine_states(caller: ServiceCaller, system: Service) -> schemas.InstalledEngineList:
    """List the installed engines, their releases, and your agents that are behind. Only for the default tenant."""
    return schemas.engine_list(await system.list_engines(caller))
