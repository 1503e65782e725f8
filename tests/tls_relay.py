"""Puts TLS before a server that knows none; its certificate can be exchanged while it serves."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from pathlib import Path
from typing import Self


class TlsRelay:
    """Passes bytes on between its ``port`` and another of this machine; new connections have the certificate of now."""

    def __init__(self, target: int, certificate: Path) -> None:
        self._target = target
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.use(certificate)
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._listen()])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    def use(self, certificate: Path) -> None:
        """Shows this certificate from now on; the file has its key too."""
        self._context.load_cert_chain(certificate)

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._serve, sock=self._socket, ssl=self._context)
        await self._over.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # One turn of the loop, so that the connections are closed before it is.
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, questions = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            await asyncio.gather(_pump(reader, questions), _pump(answers, writer))
        except asyncio.CancelledError:
            for each in (questions, writer):
                each.transport.abort()
            raise


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
