"""What went wrong with a request to S3, as a failure that rows and ``status`` keep."""

from __future__ import annotations

from typing import Final

from botocore import exceptions
from botocore.exceptions import ClientError

from searchcrawl.codes import Code, is_retried
from searchcrawl.kinds.file.remote.model import RemoteFailure

#: Errors of who asks: a wrong key, one that is no longer valid, a clock that is wrong.
_LOGIN: Final = frozenset({
    "AuthorizationHeaderMalformed", "ExpiredToken", "ExpiredTokenException", "InvalidAccessKeyId", "InvalidSecurity",
    "InvalidToken", "NotSignedUp", "RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch", "TokenRefreshRequired",
})  # fmt: skip
#: Errors that pass whatever the status is.
_PASSING: Final = frozenset({
    "InternalError", "OperationAborted", "RequestTimeout", "ServiceUnavailable", "SlowDown", "Throttling",
    "ThrottlingException",
})  # fmt: skip
#: Errors with more to say than the server does.
_EXPLAINED: Final = {
    "InvalidObjectState": "it is in an archive of the storage class GLACIER or DEEP_ARCHIVE, and has to be restored first",
    "NoSuchBucket": "there is no such bucket",
    "PermanentRedirect": "the bucket is in another region, or at another endpoint",
}
#: Where keys are to come from, and do not.
_OF_CREDENTIALS: Final = (
    exceptions.LoginError,
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.ProfileNotFound,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
)
_ABSENT: Final = frozenset({"NoSuchKey", "404"})
_NO_CREDENTIALS: Final = 401
_MOST_CHARS: Final = 300


def is_absent(error: Exception) -> bool:
    """Whether an answer says that there is no such object; for a request with HEAD the bucket may be gone just as well."""
    return isinstance(error, ClientError) and error.response.get("Error", {}).get("Code") in _ABSENT


def describe(error: Exception, what: str, *, is_signed: bool = True) -> RemoteFailure:
    """The failure of a request about ``what``, as ``s3://bucket/key``; ``is_signed``: it was made with a key."""
    if isinstance(error, ClientError):
        return _describe_answer(error, what, is_signed=is_signed)
    code, transient = int(Code.IO_ERROR), True
    match error:
        case exceptions.SSLError():
            code = Code.CERTIFICATE
        case exceptions.ConnectTimeoutError() | exceptions.ReadTimeoutError():
            code = Code.TIMEOUT
        case exceptions.HTTPClientError() | exceptions.ConnectionError():
            pass
        case exceptions.CredentialRetrievalError() | exceptions.MetadataRetrievalError():
            code = _NO_CREDENTIALS
        case _ if isinstance(error, _OF_CREDENTIALS):
            code, transient = _NO_CREDENTIALS, False
        case exceptions.IncompleteReadError() | exceptions.FlexibleChecksumError():
            code = Code.READ_ERROR
        case exceptions.BotoCoreError():
            # What somebody has to mend, as a region that there is not.
            transient = False
        case _:
            # An answer that cannot be read.
            code = Code.READ_ERROR
    return RemoteFailure(f"{what}: {_clean(str(error))}", code=code, transient=transient)


def _describe_answer(error: ClientError, what: str, *, is_signed: bool) -> RemoteFailure:
    said = error.response.get("Error", {})
    name = str(said.get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    reason = _EXPLAINED.get(name) or said.get("Message") or "the server does not say why"
    if not is_signed and status in {401, 403}:
        reason += " (asked without a key: file.username and file.password are not set, and none is in the environment)"
    code = _NO_CREDENTIALS if name in _LOGIN else status
    # The status of what is gone is that of objects alone, and other statuses than of failures mean something else in a row.
    if name not in _LOGIN and (not 400 <= status <= 599 or status in {404, 410}):
        code = int(Code.IO_ERROR)
    transient = name in _PASSING or is_retried(status)
    return RemoteFailure(f"{what}: {_clean(f'{name}: {reason}')}", code=code, transient=transient)


def _clean(text: str) -> str:
    """What a server says, as a line that can be shown."""
    return "".join(each if each.isprintable() else " " for each in text[:_MOST_CHARS])
