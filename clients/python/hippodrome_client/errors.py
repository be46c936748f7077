"""What goes wrong, by what can be done about it."""

from __future__ import annotations

from typing import Optional


class HippodromeError(Exception):
    """`code`: a status of gRPC in small letters, as "not_found", or what HTTP calls the error; `param`: the field at
    fault; `status`: of HTTP, None over gRPC; `request_id`: under which the server's log has the call."""

    def __init__(self, message: str, code: str = "unknown", param: Optional[str] = None, status: Optional[int] = None,
                 request_id: Optional[str] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.param = param
        self.status = status
        self.request_id = request_id


class InvalidRequestError(HippodromeError):
    """A field is out of its range, or does not fit the model, the state or the server."""


class AuthenticationError(HippodromeError):
    """The server asks for API keys, and the client has none that is valid."""


class PermissionDeniedError(HippodromeError):
    """The key may not do this, or the server takes no states."""


class NotFoundError(HippodromeError):
    """No such model, or no such handle: states expire, and may be forgotten before."""


class UnavailableError(HippodromeError):
    """The server cannot be reached, is full or stopping, or a limit of the key is reached."""


class ServerError(HippodromeError):
    """The server failed."""


class RetryError(HippodromeError, TimeoutError):
    """What may be sent again failed for `retry_seconds`; its cause is the last failure."""


class RequestTimeoutError(HippodromeError, TimeoutError):
    """The answer took longer than `timeout`."""


class OtherAnswerError(HippodromeError):
    """A stream broke off, and the answer to the same request is another one: replicas that are not alike."""


_BY_CODE = {
    "invalid_argument": InvalidRequestError, "out_of_range": InvalidRequestError,
    "failed_precondition": InvalidRequestError, "unimplemented": InvalidRequestError,
    "unauthenticated": AuthenticationError, "permission_denied": PermissionDeniedError, "not_found": NotFoundError,
    "unavailable": UnavailableError, "resource_exhausted": UnavailableError, "deadline_exceeded": RequestTimeoutError,
}
_BY_STATUS = {401: AuthenticationError, 403: PermissionDeniedError, 404: NotFoundError, 429: UnavailableError,
              502: UnavailableError, 503: UnavailableError, 504: UnavailableError}


def kind_of(code: str, status: Optional[int] = None) -> type[HippodromeError]:
    """The class of an error, by its status of HTTP where there is one."""
    if status is None:
        return _BY_CODE.get(code, ServerError)
    return _BY_STATUS.get(status, InvalidRequestError if status < 500 else ServerError)
