"""Errors of keys of model providers; nothing has changed when one is raised."""

from roost.core.problem import InvalidInput, ServiceUnavailable


class ModelKeyRefused(InvalidInput):
    message = "The model provider refuses this key"


class ModelKeyUntried(ServiceUnavailable):
    """The provider was not reached, or answered nonsense, so that the key may work or not."""

    message = "The key could not be tried"
