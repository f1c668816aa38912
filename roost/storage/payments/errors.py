"""Errors of payments; payers see the messages."""

from roost.core.problem import NotFound, Problem, ProblemKind, ServiceUnavailable


class PaymentRefused(Problem):
    """The payment is not what is asked for, so the content is not served: 402, with what is asked for."""

    kind = ProblemKind.INVALID
    message = "The payment is not valid"


class InstructionChanged(PaymentRefused):
    """The instruction changed while the payment was checked; nothing was taken."""

    message = "What must be paid has changed; nothing was taken"


class PaymentUsed(PaymentRefused):
    message = "The payment was presented before; each one pays for one response"


class PaymentInProgress(PaymentRefused):
    message = "The payment is being settled; present the same one again in some seconds unless you have the content"


class PaymentUnconfirmed(ServiceUnavailable):
    """The money may have moved; the same payment presented again finds out, and is not taken twice."""

    message = "The facilitator did not confirm the settlement; present the same payment again"


class PaymentsUnavailable(ServiceUnavailable):
    message = "This server takes no payments; its operator can name a facilitator with ROOST_FACILITATOR_URL"


class NoPayableAsset(ServiceUnavailable):
    message = "No asset of the payment instruction is configured on this server"


class ContentNotForSale(NotFound):
    """No instruction is attached to the content; the response is that of missing content."""

    message = "No payment instruction is attached to the content"
