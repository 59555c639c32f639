# SPDX-License-Identifier: Apache-2.0
"""The reference of `bench/router.py`: the barest useful relay on aiohttp. Reads a body, posts it to one backend, passes
the answer on.

It chooses, checks, counts and retries nothing. It uses aiohttp as well as the router does (one session, no limit on
connections, uvloop, no access log, the low-level server), so what the router costs above it is what the router does.

`bench/router.py` starts it: ``python bench/relay.py BACKEND_URL``; it prints its port.
"""

import asyncio
import sys

import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

HOP_BY_HOP = frozenset({"connection", "content-length", "date", "host", "keep-alive", "server", "transfer-encoding"})


async def serve(backend: str) -> None:
    """Relay to ``backend`` until killed."""
    session = ClientSession(
        connector=TCPConnector(limit=0),
        timeout=ClientTimeout(total=None),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
    )

    async def relay(request: web.BaseRequest) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        body = await request.read()
        async with session.post(backend + request.path, data=body, headers=headers) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
            if answer.content_length is not None:
                return web.Response(status=answer.status, headers=kept, body=await answer.read())
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    runner = web.ServerRunner(web.Server(relay, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
