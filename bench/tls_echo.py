"""Send messages back over TLS connections like those of bridges, in a process of its own, which prints its port.

The certificate is an argument; the end of the input ends it.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.tls_carrier import listen_tls_carriers, make_bridge_certificate, make_bridge_context


@asynccontextmanager
async def run_tls_echo(message: bytes) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Yield what sends a message over one connection, and returns when it is back."""
    certificate = make_bridge_certificate("echo")
    argv = [sys.executable, "-m", "bench.tls_echo", certificate.reveal()]
    root = Path(__file__).parents[1]
    with subprocess.Popen(argv, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=make_bridge_context(certificate))
            yield partial(_send_message, reader, writer, message)
            writer.close()
        finally:
            process.stdin.close()


async def _send_message(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> None:
    writer.write(message)
    await reader.readexactly(len(message))


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


async def _serve(certificate: str) -> None:
    server = await listen_tls_carriers("127.0.0.1", 0, Sensitive(certificate), _Echo)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
