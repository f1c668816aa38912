"""What can go wrong with webhooks, in the words that clients show."""

from roost.core.problem import Kind, Problem


class WebhookMissing(Problem):
    """There is none of that id, or it is another tenant's: the answer does not tell which."""

    kind = Kind.MISSING
    message = "Webhook not found"


class DeliveryMissing(Problem):
    kind = Kind.MISSING
    message = "Delivery not found"


class WebhookLimit(Problem):
    kind = Kind.FORBIDDEN
    message = "Webhook limit reached"


class InvalidEvents(Problem):
    kind = Kind.INVALID
    message = "events are types of events"


class NothingToChange(Problem):
    kind = Kind.INVALID
    message = "url, events, description or enabled is required"


class TooBusy(Problem):
    """As many messages are on their way to that webhook as may be."""

    kind = Kind.LIMITED
    message = "Too many deliveries to this webhook at once"
