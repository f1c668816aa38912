"""Payments and answers in the forms of the x402 SDK, which this module imports."""

from x402.schemas import PaymentPayload, PaymentRequirements, SettleResponse, VerifyResponse
from x402.schemas.v1 import PaymentPayloadV1, PaymentRequirementsV1

from roost.drivers.facilitator.contract import PaymentRequest, PaymentSettlement, Verification

Payload = PaymentPayload | PaymentPayloadV1
Requirements = PaymentRequirements | PaymentRequirementsV1
_REASON_LENGTH, _HASH_LENGTH = 200, 100


def to_sdk(request: PaymentRequest) -> tuple[Payload, Requirements]:
    """Convert a request. Raises ValueError for one that is malformed."""
    if request.version == 1:
        payload: Payload = PaymentPayloadV1.model_validate(request.payload)
        return payload, PaymentRequirementsV1.model_validate(request.requirements)
    return PaymentPayload.model_validate(request.payload), PaymentRequirements.model_validate(request.requirements)


def from_verify_response(answer: VerifyResponse) -> Verification:
    return Verification(answer.is_valid, answer.payer, _shorten(answer.invalid_reason))


def from_settle_response(answer: SettleResponse) -> PaymentSettlement:
    transaction = answer.transaction[:_HASH_LENGTH]
    reason = _shorten(answer.error_reason)
    return PaymentSettlement(answer.success, transaction, answer.network, answer.payer, answer.amount, reason)


def _shorten(reason: str | None) -> str | None:
    return None if reason is None else reason[:_REASON_LENGTH]
