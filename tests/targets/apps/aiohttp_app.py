# SPDX-License-Identifier: GPL-2.0-or-later
import sys

from aiohttp import web


def render_report(cnt):
    return sum(i * i % 7 for i in range(cnt))


async def fast(request):
    return web.Response(text="ok\n")


async def slow(request):
    return web.Response(text="%d\n" % render_report(250000))


app = web.Application()
app.add_routes([web.get("/fast", fast), web.get("/slow", slow)])
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
