"""What the statuses of SMB servers mean for a crawl ([MS-ERREF] 2.3.1). Pure."""

from __future__ import annotations

from typing import Final

from searchcrawl.codes import Code
from searchcrawl.kinds.file.remote.model import RemoteFailure

#: Nobody is let in with what is said of the user.
NO_CREDENTIALS: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404

NO_MORE_FILES: Final = 0x8000_0006
NO_SUCH_FILE: Final = 0xC000_000F
END_OF_FILE: Final = 0xC000_0011
ACCESS_DENIED: Final = 0xC000_0022
NAME_INVALID: Final = 0xC000_0033
NETWORK_ACCESS_DENIED: Final = 0xC000_00CA
#: Something is not for this user, or the server has it for nobody.
WITHHELD: Final = frozenset({
    0xC000_0002,  # NOT_IMPLEMENTED
    ACCESS_DENIED,
    0xC000_0034,  # OBJECT_NAME_NOT_FOUND
    0xC000_00BB,  # NOT_SUPPORTED
    NETWORK_ACCESS_DENIED,
    0xC000_00CC,  # BAD_NETWORK_NAME
    0xC000_0010,  # INVALID_DEVICE_REQUEST
})  # fmt: skip
#: The session is none any more, as after a new start of the server: handles and numbers of it are not known.
LOST: Final = frozenset({
    0xC000_00C9,  # NETWORK_NAME_DELETED
    0xC000_0128,  # FILE_CLOSED
    0xC000_0203,  # USER_SESSION_DELETED
    0xC000_020C,  # CONNECTION_DISCONNECTED
    0xC000_035C,  # NETWORK_SESSION_EXPIRED
})  # fmt: skip
#: That something is not there. NOT_FOUND (0xC0000225) is no such word: servers say so where they lack a part of themselves.
_ABSENT: Final = {
    NO_SUCH_FILE: "no such file",
    0xC000_0034: "no such file",  # OBJECT_NAME_NOT_FOUND
    0xC000_003A: "no such folder",  # OBJECT_PATH_NOT_FOUND
    0xC000_00BA: "is a folder",  # FILE_IS_A_DIRECTORY
    0xC000_0103: "is no folder",  # NOT_A_DIRECTORY
}
_REFUSED: Final = {
    0xC000_0064: "no such user",  # NO_SUCH_USER
    0xC000_006A: "wrong password",  # WRONG_PASSWORD
    0xC000_006D: "wrong name or password",  # LOGON_FAILURE
    0xC000_006E: "the account may not log in",  # ACCOUNT_RESTRICTION
    0xC000_006F: "the account may not log in at this hour",  # INVALID_LOGON_HOURS
    0xC000_0070: "the account may not log in from here",  # INVALID_WORKSTATION
    0xC000_0071: "the password has expired",  # PASSWORD_EXPIRED
    0xC000_0072: "the account is disabled",  # ACCOUNT_DISABLED
    0xC000_015B: "the account may not log in from the network",  # LOGON_TYPE_NOT_GRANTED
    0xC000_0193: "the account has expired",  # ACCOUNT_EXPIRED
    0xC000_0224: "the password must be changed",  # PASSWORD_MUST_CHANGE
    0xC000_0234: "the account is locked out",  # ACCOUNT_LOCKED_OUT
}
_BUSY: Final = {
    0xC000_0043: "another program holds the file",  # SHARING_VIOLATION
    0xC000_0054: "another program has locked a part of the file",  # FILE_LOCK_CONFLICT
    0xC000_0055: "another program has locked a part of the file",  # LOCK_NOT_GRANTED
    0xC000_0056: "is being deleted",  # DELETE_PENDING
}
#: The server cannot serve now.
_AWAY: Final = {
    0xC000_0017: "the server has no memory left",  # NO_MEMORY
    0xC000_009A: "the server has no means left",  # INSUFFICIENT_RESOURCES
    0xC000_00B5: "the server waited too long for its disk",  # IO_TIMEOUT
    0xC000_00BF: "the network of the server is busy",  # NETWORK_BUSY
    0xC000_00D0: "the server takes no more requests",  # REQUEST_NOT_ACCEPTED
    0xC000_011F: "the server has too many open files",  # TOO_MANY_OPENED_FILES
    0xC000_0120: "the server cancelled it",  # CANCELLED
}
_FAILED: Final = {
    0x8000_002D: "a link is on the way",  # STOPPED_ON_SYMLINK
    NAME_INVALID: "SMB has no such name",
    0xC000_00BB: "the server does not support it",  # NOT_SUPPORTED
    NETWORK_ACCESS_DENIED: "the user may not use the share",
    0xC000_00CC: "the server has no such share",  # BAD_NETWORK_NAME
    0xC000_0257: "is on another server (DFS), which is not asked",  # PATH_NOT_COVERED
}
_CODES: Final = {NETWORK_ACCESS_DENIED: _FORBIDDEN, 0xC000_00CC: _NOT_FOUND}


def describe(status: int) -> RemoteFailure:
    """The failure that a status is."""
    if status in _ABSENT:
        return RemoteFailure(_ABSENT[status], code=_NOT_FOUND, is_absent=True)
    if status == ACCESS_DENIED:
        return RemoteFailure("access denied", code=_FORBIDDEN)
    if status in _REFUSED:
        return RemoteFailure(_REFUSED[status], code=NO_CREDENTIALS)
    if status in _BUSY:
        return RemoteFailure(_BUSY[status], code=Code.READ_ERROR, transient=True)
    if status in _AWAY or status in LOST:
        return RemoteFailure(_AWAY.get(status, "the server ended the session"), code=Code.IO_ERROR, transient=True)
    if status in _FAILED:
        return RemoteFailure(_FAILED[status], code=_CODES.get(status, Code.READ_ERROR))
    return RemoteFailure(f"the server answered {status:#010x}", code=Code.READ_ERROR, transient=True)
