"""Codes of a URL beside those of HTTP (interface.md §3; C7, J2)."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """What became of a URL, where no HTTP status says it."""

    #: not yet fetched
    NOT_FETCHED = 0
    TIMEOUT = 902
    CONVERSION_FAILED = 903
    CONVERSION_LIMIT = 904
    IO_ERROR = 905
    CONNECTION_REFUSED = 906
    #: the name has no address, or one that may not be reached
    ADDRESS_NOT_FOUND = 907
    NO_CONVERTER = 908
    DUPLICATE = 909
    DUPLICATE_IN_RUN = 910
    EMPTY = 911
    ROBOTS = 951
    #: crawled, not indexed: noindex or a result filter
    NOT_INDEXED = 952
    META_REFRESH = 953
    MOVED = 954
    OUTSIDE_BOUNDARY = 955
    DISPLAY_URL_CLASH = 956
    #: the body is incomplete or cannot be decoded
    READ_ERROR = 958
    LOGIN_FAILED = 959
    TOO_LARGE = 960
    TRAP_LIMIT = 961
    CERTIFICATE = 962
    REDIRECT_LOOP = 963
    NOT_CANONICAL = 964
    SENTINEL = 965
    NO_LOCATION = 1003
    MALFORMED_URL = 1004
    HEADER_ERROR = 1006
    BINARY_AS_TEXT = 1009
    INVALID_DISPLAY_URL = 1010
