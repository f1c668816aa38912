"""Errors of payment instructions; clients show the messages."""

from roost.core.problem import InvalidInput, NotFound, ResourceConflict


class PaymentInstructionNotFound(NotFound):
    """The instruction does not exist or belongs to another tenant; the response does not say which."""

    message = "Payment instruction not found"


class InvalidPaymentInstruction(InvalidInput):
    message = "Invalid payment instruction"


class EmptyPaymentInstructionUpdate(InvalidInput):
    message = "name, description or payment_requirements is required"


class PaymentInstructionInUse(ResourceConflict):
    message = "CIDs are attached to the payment instruction"


class CidAlreadyAttached(ResourceConflict):
    message = "CID is attached to another payment instruction"


class CidNotAttached(NotFound):
    message = "CID is not attached to the payment instruction"


class InvalidPaymentAssets(InvalidInput):
    """The setting `payment_assets` contradicts itself or what is built in."""

    message = "payment_assets: invalid"
