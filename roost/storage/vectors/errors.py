"""Errors of vectors; clients show the messages."""

from roost.core.problem import InvalidInput, NotFound, PayloadTooLarge, ServiceUnavailable


class FolderNotVectorized(InvalidInput):
    message = "A folder has no text of its own; vectorize the files in it"


class DocumentWithoutText(InvalidInput):
    """A scan, for example."""

    message = "The file has no text"


class TooManyChunks(PayloadTooLarge):
    message = "The text is too long"


class VectorQuotaExceeded(PayloadTooLarge):
    message = "The vectors of your plan are full"


class VectorizationFailed(InvalidInput):
    """The last attempt to vectorize the file failed; the message says why."""

    message = "The file cannot be vectorized"


class VectorizationPostponed(ServiceUnavailable):
    """A driver has no capacity; the message is its own. The attempt is repeated."""

    message = "The file cannot be vectorized at the moment"


class VectorsDeleted(NotFound):
    """The vectors or the file were deleted, or requested again, while an attempt ran."""

    message = "The vectors were deleted"
