"""A real browser without a window, driven by its DevTools protocol over two pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["BROWSER", "Page", "needs_browser", "opened"]

BROWSER: Final = shutil.which("chromium-headless-shell") or shutil.which("chromium")

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="NOT TESTED in a browser: apt-get install chromium-headless-shell"
)

_OPTIONS: Final = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=1300,1500")
_READ, _WRITE = 3, 4
"""The descriptors that the browser takes commands from, and answers to."""

_EXCHANGED: Final = ("Inspected target navigated or closed", "Cannot find context with specified id")


class Page:
    """A page that is open.

    Attributes:
        errors: what the page's scripts did not catch, and what the console was told of as an error.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._number = 0
        self._rest = b""
        self._session: str | None = None
        self._loader = ""
        self.errors: list[str] = []
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.tell(f"{domain}.enable")

    def tell(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Give a command of the protocol; its result."""
        answer = self._answer(method, **arguments)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def go(self, address: str) -> None:
        """Open an address, and wait until it has been drawn."""
        # Another document first: an address that differs from the last one's behind the # alone is not loaded.
        for url in ("about:blank", address):
            loader = self.tell("Page.navigate", url=url)["loaderId"]
            # Answered before the document is exchanged: the last one would still be asked whether it is drawn.
            while self._loader != loader:
                self._hear(self._next())
        self.wait_for("document.body?.dataset.ready !== undefined")

    def read(self, expression: str) -> Any:
        """The value of an expression of JavaScript, of a promise what it promises."""
        answer = self.tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Until that is so, in whichever document the page has by then."""
        deadline = time.monotonic() + 60
        while True:
            answer = self._answer("Runtime.evaluate", expression=expression, returnByValue=True)
            if "error" in answer:
                # The document was exchanged while it was asked.
                assert answer["error"]["message"] in _EXCHANGED, answer
            else:
                assert "exceptionDetails" not in answer["result"], answer
                if answer["result"]["result"].get("value"):
                    return
            assert time.monotonic() < deadline, expression
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """A key, and what that draws."""
        self._drawing(lambda: self.tell("Input.dispatchKeyEvent", type="keyDown", key=key))

    def drag(self, selector: str, begin: float, end: float) -> None:
        """The mouse from one share of the width of an element to another, and what that draws."""
        left, top, width, height = self.read(
            f"(({{ x, y, width, height }}) => [x, y, width, height])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        y = top + height / 2

        def mouse(kind: str, share: float) -> None:
            self.tell(
                "Input.dispatchMouseEvent",
                type=kind,
                x=left + share * width,
                y=y,
                button="left",
                buttons=1,
                clickCount=1,
            )

        def drag() -> None:
            mouse("mousePressed", begin)
            mouse("mouseMoved", (begin + end) / 2)
            mouse("mouseMoved", end)
            mouse("mouseReleased", end)

        self._drawing(drag)

    def dark(self, is_dark: bool) -> None:
        """Whether the reader wants it dark from now on."""
        wanted = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[wanted])

    def picture(self, path: Path) -> None:
        """What is seen, as a PNG file."""
        path.write_bytes(b64decode(self.tell("Page.captureScreenshot", captureBeyondViewport=False)["data"]))

    def _drawing(self, act: Callable[[], object]) -> None:
        before = self.read("document.body.dataset.ready")
        act()
        self.wait_for(f"document.body.dataset.ready !== {json.dumps(before)}")

    def _answer(self, method: str, **arguments: Any) -> dict[str, Any]:
        self._number += 1
        command = {"id": self._number, "method": method, "params": arguments}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._hear(answer)
        return answer

    def _hear(self, event: dict[str, Any]) -> None:
        match event:
            case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                self.errors.append(str(details))
            case {"method": "Runtime.consoleAPICalled", "params": {"type": "error", "args": words}}:
                self.errors.append(str(words))
            case {"method": "Log.entryAdded", "params": {"entry": {"level": "error", "text": text}}}:
                self.errors.append(text)
            case {"method": "Page.frameNavigated", "params": {"frame": {"loaderId": loader}}}:
                self._loader = loader

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._answers, 1 << 16)
            assert data, "the browser has ended"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def opened(profile: Path) -> Iterator[Page]:
    """A browser with an empty page; what it keeps is in a directory of its own."""
    assert BROWSER is not None
    theirs_in, commands = os.pipe()
    answers, theirs_out = os.pipe()
    # The browser's descriptors have fixed numbers: a shell gives them.
    shell = f'exec {BROWSER} "$@" {_READ}<&{theirs_in} {_WRITE}>&{theirs_out}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "browser", *_OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Page(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        process.kill()
        process.wait()
