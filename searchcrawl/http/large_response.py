"""Answers whose body is on the disk (E6)."""

from __future__ import annotations

from typing import Any, Final

from scrapy.http import HtmlResponse, Response, TextResponse, XmlResponse

from searchcrawl.bodies import INLINE_BYTES, Body, LargeBody, read_whole

#: The key of ``Request.meta`` for requests without a row whose bodies may be on the disk.
MAY_BE_LARGE: Final = "may_be_large"


class _Large(Response):
    """``body`` is read from the disk each time, for what cannot do with less, as components of a user's own."""

    large: LargeBody

    @property
    def body(self) -> bytes:
        return read_whole(self.large)

    def replace(self, *args: Any, cls: Any = None, **kwargs: Any) -> Any:
        return super().replace(*args, cls=cls or _PLAIN[type(self)], **kwargs)


class _LargeFile(_Large, Response):
    pass


class _LargeText(_Large, TextResponse):
    pass


class _LargePage(_Large, HtmlResponse):
    pass


class _LargeXml(_Large, XmlResponse):
    pass


_KINDS: Final[dict[type[Response], type[_Large]]] = {
    Response: _LargeFile,
    TextResponse: _LargeText,
    HtmlResponse: _LargePage,
    XmlResponse: _LargeXml,
}
_PLAIN: Final[dict[type[Response], type[Response]]] = {large: plain for plain, large in _KINDS.items()}


def build_response(kind: type[Response], url: str, *, body: Body, **fields: Any) -> Response:
    """A response of a kind, which may be that of another one with a large body."""
    plain = _PLAIN.get(kind, kind)
    if isinstance(body, bytes):
        return plain(url, body=body, **fields)
    response = _KINDS.get(plain, _LargeFile)(url, **fields)
    response.large = body
    return response


def is_large(response: Response) -> bool:
    """Whether the body of an answer is on the disk."""
    return isinstance(response, _Large)


def find_body(response: Response) -> Body:
    """The body of an answer, as it is."""
    return response.large if isinstance(response, _Large) else response.body


def find_beginning(response: Response) -> bytes:
    """The body of an answer, or the beginning of one that is large."""
    return find_body(response)[:INLINE_BYTES]
