"""Errors of webhooks; clients show the messages."""

from roost.core.problem import Problem, ProblemKind


class WebhookNotFound(Problem):
    """The webhook does not exist or belongs to another tenant; the response does not say which."""

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
    message = "events must be event types"


class EmptyWebhookUpdate(Problem):
    kind = ProblemKind.INVALID
    message = "url, events, description or enabled is required"


class WebhookQueueFull(Problem):
    kind = ProblemKind.LIMITED
    message = "Too many deliveries to this webhook at once"
