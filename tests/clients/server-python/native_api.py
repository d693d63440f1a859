"""The native API under schemathesis: requests that fit its OpenAPI document, and requests that do not.

Every answer must be one that the document has, with a body that fits its schema, and no answer may be
a mistake of the server. The examples follow from the seed. `THROUGHLINE_NATIVE_IDS` holds ids that are
on the server (`{"thread": […], "run": […], "approval": […], "number": […], "spare_thread": […], …}`); most
requests get some of them, so that they come further than "not found".

This file is the program that starts schemathesis, and the hooks that schemathesis loads.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

# The sources lie in the work tree, which stays clean.
sys.dont_write_bytecode = True

CHECKS = ",".join(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
        "unsupported_method",
    ]
)

# Seconds that one request may take. No answer of the server waits for anything here.
ANSWERED_WITHIN = 20

IDS = "THROUGHLINE_NATIVE_IDS"

# Streams that follow something end by themselves only if they are told to.
FOLLOWS = {"tailThread"}

# What settles or deletes, after which an id is of no use to other requests: these get spare ones.
SPENDS = {"deleteThread", "discardRun", "publishRun", "cancelRun"}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--ids", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--examples", type=int, required=True)
    parser.add_argument("--seconds", type=int)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return test(arguments, Path(folder))


def test(arguments: argparse.Namespace, folder: Path) -> int:
    # Without a file in its folder it would take the settings of a project that it finds above.
    settings = folder / "schemathesis.toml"
    settings.write_text("")
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings), "--no-color"),
        "run",
        f"{arguments.base_url}/api/openapi.json",
        *("--checks", CHECKS),
        *("--phases", "examples,coverage,fuzzing,stateful"),
        *("--seed", str(arguments.seed)),
        *("--max-examples", str(arguments.examples)),
        *("--request-timeout", str(ANSWERED_WITHIN)),
        *("--suppress-health-check", "all"),
        *("--generation-database", "none"),
        "--continue-on-failure",
    ]
    if arguments.seconds:
        command += ["--max-time", str(arguments.seconds)]
    environment = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": str(Path(__file__).resolve()),
        "PYTHONDONTWRITEBYTECODE": "1",
        IDS: arguments.ids,
    }
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    cases = re.search(r"(\d+) generated", ran.stdout)
    operations = re.search(r"Tested: +(\d+)", ran.stdout)
    if ran.returncode != 0 or cases is None or operations is None:
        print(json.dumps({"ok": False, "what": ran.stdout[-20_000:], "errors": ran.stderr[-4_000:]}))
        return 1
    # A line for each operation, as other programs have one for each check.
    for _ in range(int(operations[1])):
        print(json.dumps({"ok": True}))
    print(json.dumps({"sdk": f"schemathesis {version('schemathesis')}, {cases[1]} requests"}))
    return 0


def seeded() -> dict[str, list[Any]]:
    return json.loads(os.environ.get(IDS, "{}"))


def pick(case: Any, name: str) -> Any:
    """An id for a parameter, or nothing; the same for the same request."""
    known = seeded().get(name, [])
    text = json.dumps([case.method, case.path, case.path_parameters, case.query], default=str)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    # One in four keeps what was made up.
    if not known or number % 4 == 0:
        return None
    return known[(number >> 2) % len(known)]


if __name__ == "__main__":
    sys.exit(main())

import schemathesis  # noqa: E402  the program itself does without it


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Name what is there, and let no stream follow for ever."""
    definition = case.operation.definition.raw
    operation = definition.get("operationId")
    if operation in FOLLOWS and isinstance(case.query, dict):
        case.query["follow"] = "false"
    spare = "spare_" if operation in SPENDS else ""
    for name in list(case.path_parameters or {}):
        chosen = pick(case, spare + name)
        if chosen is not None:
            case.path_parameters[name] = chosen
