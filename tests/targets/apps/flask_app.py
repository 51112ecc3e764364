# SPDX-License-Identifier: GPL-2.0-or-later
import logging
import sys

import flask

app = flask.Flask("shop")
logging.getLogger("werkzeug").disabled = True


def render_report(cnt):
    return sum(i * i % 7 for i in range(cnt))


@app.route("/fast")
def fast():
    return "ok\n"


@app.route("/slow")
def slow():
    return "%d\n" % render_report(250000)


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
