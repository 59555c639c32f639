# SPDX-License-Identifier: Apache-2.0
"""Control calls share few connections: pods that never answer must not make healthy ones look silent."""

import asyncio

from aiohttp import web

from gearshift.operator.http import Http, HttpError


async def answers(silent: int, healthy: int) -> list[int | None]:
    """Statuses of healthy pods that are asked after silent ones, all over two connections; None: no answer."""
    ended = asyncio.Event()

    async def well(_: web.Request) -> web.Response:
        return web.json_response({})

    async def hang(_: web.Request) -> web.Response:
        await ended.wait()
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.get("/well", well), web.get("/hang", hang)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def ask(http: Http, path: str) -> int | None:
        try:
            return (await http.call("GET", f"{base}/{path}", timeout_seconds=0.2)).status
        except HttpError:
            return None

    try:
        async with Http.connect(connections=2) as http:
            asked = [ask(http, "hang") for _ in range(silent)] + [ask(http, "well") for _ in range(healthy)]
            return (await asyncio.gather(*asked))[silent:]
    finally:
        ended.set()
        await runner.cleanup()


def test_silent_pods_do_not_use_up_the_time_of_healthy_ones() -> None:
    assert asyncio.run(answers(silent=6, healthy=3)) == [200, 200, 200]
