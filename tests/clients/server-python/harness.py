"""What the programs of all SDKs share: checks, the world around the server, and the command line.

A scenario is a function that takes a `World` and checks what an SDK makes of the server. Each check
prints one line of JSON; a program ends with 1 if one of them failed, and goes on until the end of
its scenarios all the same.

The world has two sides that no SDK sees: the vendor behind the server, which counts and records
what it is asked, and the wire in front of it, which can be cut. Both are reached by posting words
to the address in `--control`.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import inspect
import json
import sys
import threading
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

# The sources lie in the work tree, which stays clean.
sys.dont_write_bytecode = True

# The longest text of a value in the line of a check that failed.
SHOWN = 2_000

# No program takes so many seconds; one that does hangs, and is ended.
LONGEST = 600


class Failed(Exception):
    """A check that the rest of its scenario rests on has failed."""


class Control:
    """The vendor behind the server and the wire in front of it."""

    def __init__(self, address: str, upstream: str | None) -> None:
        self.address = address
        self.upstream = upstream

    def order(self, words: str) -> Any:
        with urllib.request.urlopen(f"http://{self.address}/", data=words.encode()) as answer:
            return json.loads(answer.read())

    def ask(self, words: str) -> Any:
        """Something of the vendor. The built-in model has none."""
        if self.upstream is None:
            raise Failed("demo has no vendor behind it")
        return self.order(f"{self.upstream} {words}")

    def count(self) -> int:
        """How often the vendor has been asked."""
        return self.ask("counts")["requests"]

    def heard(self) -> dict[str, Any]:
        """The last request that the vendor took: instructions, and a line for each thing said."""
        return self.ask("heard")

    def cut(self, how: str) -> None:
        self.order(f"cut {how}")


class World:
    """Where a scenario takes place, and what it has found."""

    def __init__(self, sdk: str, arguments: argparse.Namespace) -> None:
        self.sdk = sdk
        self.arguments = arguments
        self.base_url = arguments.base_url
        self.model = arguments.model
        self.control = Control(arguments.control, arguments.upstream)
        self.scenario = ""
        self.passed = 0
        self.failed = 0

    @property
    def demo(self) -> bool:
        """Whether the built-in model answers, which has no vendor behind it."""
        return self.control.upstream is None

    def check(self, what: str, good: Any, *seen: Any) -> None:
        """Says whether something holds; `seen` is shown if it does not."""
        line: dict[str, Any] = {"scenario": self.scenario, "check": what, "ok": bool(good)}
        if good:
            self.passed += 1
        else:
            self.failed += 1
            line["seen"] = [repr(value)[:SHOWN] for value in seen]
        print(json.dumps(line, ensure_ascii=False), flush=True)

    def equal(self, what: str, found: Any, wanted: Any) -> None:
        self.check(what, found == wanted, found, wanted)

    def need(self, what: str, good: Any, *seen: Any) -> None:
        """A check without which the scenario cannot go on."""
        self.check(what, good, *seen)
        if not good:
            raise Failed(what)

    def raises(self, what: str, expected: type[BaseException], work: Callable[[], Any]) -> Any:
        """Checks that something is refused, and gives the exception."""
        try:
            result = work()
        except expected as error:
            self.check(what, True)
            return error
        except Exception as error:  # noqa: BLE001
            self.check(what, False, error)
        else:
            self.check(what, False, result)
        raise Failed(what)

    def refused(
        self,
        what: str,
        expected: type[BaseException],
        work: Callable[[], Any],
        *,
        status: int,
        code: str | None,
        param: str | None = None,
        words: str = "",
    ) -> Any:
        """Checks a documented refusal: class, status, code, parameter and words."""
        error = self.raises(what, expected, work)
        self.equal(f"{what}: status, code, param", seen_of(error), (status, code, param))
        self.check(f"{what}: words", words in str(error), str(error))
        return error


@contextmanager
def cut_while_asking(world: World, how: str) -> Iterator[None]:
    """Cuts the wire once the vendor has been asked, and only then lets the vendor answer."""
    asked = world.control.count()
    world.control.ask("hold")

    def cut() -> None:
        world.control.ask(f"received {asked + 1}")
        world.control.cut(how)
        world.control.ask("release")

    cutting = threading.Thread(target=cut)
    cutting.start()
    try:
        yield
    finally:
        cutting.join()


def seen_of(error: Any) -> tuple[Any, Any, Any]:
    return (
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        getattr(error, "param", None),
    )


Scenario = Callable[[World], Any]


def main(
    package: str,
    scenarios: list[Scenario],
    *,
    parser: argparse.ArgumentParser | None = None,
    version_of: Callable[[argparse.Namespace], str] | None = None,
) -> int:
    """Runs scenarios. A program that is no package of this interpreter says what version it has,
    and may have arguments of its own, which scenarios find in `world.arguments`.
    """
    parser = parser or argparse.ArgumentParser()
    parser.description = f"Holds a server against {package}."
    parser.add_argument("--base-url", required=True, help="the server, through a wire to cut")
    parser.add_argument("--control", required=True, help="where orders are posted")
    parser.add_argument("--model", required=True)
    parser.add_argument("--upstream", help="the vendor behind it; without one it is demo")
    parser.add_argument("--only", help="one scenario")
    arguments = parser.parse_args()
    numbered = version_of(arguments) if version_of else version(package)
    world = World(f"{package} {numbered}", arguments)
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    # One loop for all, so that connections that a client keeps can be used again.
    loop = asyncio.new_event_loop()
    for scenario in scenarios:
        world.scenario = scenario.__name__
        if arguments.only not in (None, world.scenario):
            continue
        try:
            done = scenario(world)
            if inspect.iscoroutine(done):
                loop.run_until_complete(done)
        except Failed:
            pass
        except Exception as error:  # noqa: BLE001
            world.check("nothing unexpected is raised", False, error)
            traceback.print_exc()
        if not world.demo:
            refused = world.control.ask("refused")
            world.equal("the vendor refuses nothing", refused, [])
    loop.close()
    print(json.dumps({"sdk": world.sdk, "passed": world.passed, "failed": world.failed}))
    return 0 if world.failed == 0 and world.passed > 0 else 1
