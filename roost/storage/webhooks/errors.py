"""What can go wrong with webhooks, in the words that clients show."""

from roost.core.problem import Problem, ProblemKind


class WebhookNotFound(Problem):
    """There is none of that id, or it is another tenant's: the answer does not tell which."""

    kind = ProblemKind.MISSING
    message = "Webhook not found"


class DeliveryNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "Delivery not found"


class WebhookLimitReached(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Webhook limit reached"


class InvalidWebhookEvents(Problem):
    kind = ProblemKind.INVALID
    message = "events are types of events"


class EmptyWebhookUpdate(Problem):
    kind = ProblemKind.INVALID
    message = "url, events, description or enabled is required"


class WebhookQueueFull(Problem):
    """As many messages are on their way to that webhook as may be."""

    kind = ProblemKind.LIMITED
    message = "Too many deliveries to this webhook at once"
