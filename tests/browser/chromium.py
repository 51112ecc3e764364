# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives Debian's headless Chromium over --remote-debugging-pipe: JSON messages, each ended by a NUL, on fds 3 and 4."""
import base64
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time


PATIENCE_S = 60  # a busy machine; for an answer of the browser, or until something holds
# What the browser says of a page that another one takes the place of just then.
ON_ITS_WAY = re.compile("navigated|context was destroyed|find context")


class Chromium:
    """One browser with one page.  `trouble` collects console errors, exceptions and refused loads."""

    def __init__(self):
        self.deadline = time.monotonic() + PATIENCE_S
        self.home = tempfile.mkdtemp(prefix="whylate-browser-")
        to_read, self.out = os.pipe()
        self.input, to_write = os.pipe()
        flags = [
            "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.home}",
        ]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium's own refuses root
        # Chromium wants its ends at 3 and 4; the shell moves them there.
        move = f'exec 3<&{to_read} 4>&{to_write}; exec chromium "$@"'
        with open(os.path.join(self.home, "log"), "wb") as log:
            self.process = subprocess.Popen(["bash", "-c", move, "chromium", *flags], pass_fds=(to_read, to_write),
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.serial = 0
        self.session = None
        self.answers = {}
        self.trouble = []
        self.requests = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.trouble.append(details.get("exception", {}).get("description", details.get("text")))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.trouble.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.trouble.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def receive(self):
        while b"\0" not in self.buffer:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.input], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.input, 1 << 20)
            if not more:
                with open(os.path.join(self.home, "log"), errors="replace") as log:
                    raise RuntimeError("the browser ended: " + log.read()[-2000:])
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        if "id" in message:
            self.answers[message["id"]] = message
        else:
            self.note(message)

    def call(self, method, **params):
        self.serial += 1
        self.deadline = time.monotonic() + PATIENCE_S
        message = {"id": self.serial, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while self.serial not in self.answers:
            self.receive()
        answer = self.answers.pop(self.serial)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def value(self, expression):
        """What the expression is in the page, promises awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                holds = self.value(expression)
            except RuntimeError as error:
                if not ON_ITS_WAY.search(str(error)):
                    raise
                holds = False
            if holds:
                return
            if time.monotonic() > end:
                raise TimeoutError(f"still not: {expression}; {self.trouble}")
            time.sleep(0.02)

    def open(self, path, width=1280, dark=False, script=True):
        """Returns when the page before is gone, which answers for a while after the browser was told."""
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.look(width, dark)
        self.value("document.documentElement.dataset.before = 'yes'")
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.until("document.documentElement && !document.documentElement.dataset.before")

    def look(self, width, dark, media=""):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        theme = "true" if media else f"matchMedia('(prefers-color-scheme: dark)').matches === {json.dumps(dark)}"
        self.until(f"innerWidth === {width} && {theme}")

    def mouse(self, kind, x, y, buttons=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if kind != "mouseMoved" else "none",
                  buttons=buttons, clickCount=0 if kind == "mouseMoved" else 1)

    def drag(self, begin, end):
        self.mouse("mouseMoved", *begin)
        self.mouse("mousePressed", *begin, buttons=1)
        for step in (0.5, 1):
            self.mouse("mouseMoved", *(a + (b - a) * step for a, b in zip(begin, end)), buttons=1)
        self.mouse("mouseReleased", *end)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, buttons=1)
        self.mouse("mouseReleased", x, y)

    def paper(self):
        """How many bytes and pages the page is in print."""
        pdf = base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])
        return len(pdf), pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/")

    def screenshot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                          clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, TimeoutError, OSError):
            pass
        os.close(self.out)
        os.close(self.input)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
