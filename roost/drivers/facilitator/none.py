"""No facilitator: a server with it takes no payments."""

from typing import NoReturn

from roost.drivers.facilitator.contract import (
    Facilitator,
    FacilitatorUnavailable,
    PaymentRequest,
    Settlement,
    Verification,
)


class FacilitatorMissing(FacilitatorUnavailable):
    message = "This server takes no payments; its operator can name a facilitator with ROOST_FACILITATOR_URL"


class NoFacilitator(Facilitator):
    """Every call raises FacilitatorMissing."""

    async def verify(self, request: PaymentRequest) -> Verification:
        return self._refuse(request)

    async def settle(self, request: PaymentRequest) -> Settlement:
        return self._refuse(request)

    async def close(self) -> None:
        return

    @staticmethod
    def _refuse(_request: PaymentRequest) -> NoReturn:
        raise FacilitatorMissing
