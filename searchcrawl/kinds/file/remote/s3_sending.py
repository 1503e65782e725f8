"""Sends requests to S3 as botocore does, and limits the answers that it reads into memory, for which it has no limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from botocore.exceptions import ConnectionClosedError, HTTPClientError, ReadTimeoutError
from urllib3 import exceptions

#: A page of a thousand keys has some megabytes; an object is read in another way.
_MOST_BYTES: Final = 32 << 20
_PIECE_BYTES: Final = 1 << 16


class AnswerTooLong(HTTPClientError):  # type: ignore[misc]  # botocore has no types
    """An answer is longer than any page of a listing, and any error."""

    fmt = "its answer has more than {most_bytes} bytes"


def limit_answers(client: Any) -> None:
    """Has a client of botocore read no answer without limit. There is no option for that: the session is wrapped."""
    client._endpoint.http_session = _LimitedSession(client._endpoint.http_session)


class _LimitedSession:
    """The part of ``botocore.httpsession.URLLib3Session`` that is used."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def send(self, request: Any) -> Any:
        """The answer to a request: read whole, or to be read piece by piece where it is an object."""
        is_object, request.stream_output = request.stream_output, True
        answer = self._session.send(request)
        if not (is_object and answer.status_code < 300):
            answer.raw = _LimitedAnswer(answer.raw, request.url)
            # It is kept, and not read again.
            _ = answer.content
        return answer

    def close(self) -> None:
        """Closes the connections."""
        self._session.close()


class _LimitedAnswer:
    """What botocore reads of an answer of urllib3; errors are those that its session would raise."""

    def __init__(self, raw: Any, url: str) -> None:
        self._raw = raw
        self._url = url

    def stream(self) -> Iterator[bytes]:
        """The body, piece by piece."""
        size = 0
        try:
            for piece in self._raw.stream(_PIECE_BYTES):
                size += len(piece)
                if size > _MOST_BYTES:
                    self._raw.close()
                    raise AnswerTooLong(most_bytes=_MOST_BYTES)
                yield piece
        except exceptions.ReadTimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self._url, error=error) from error
        except exceptions.ProtocolError as error:
            raise ConnectionClosedError(endpoint_url=self._url, error=error) from error
        except exceptions.HTTPError as error:
            raise HTTPClientError(error=error) from error
