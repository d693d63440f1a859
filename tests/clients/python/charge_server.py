"""An MCP server with a tool that must not run twice, made with the official SDK, for the campaigns
about approvals.

    python charge_server.py LOG

It listens on the loopback interface at a free port and writes the port as its first line. Each
execution of `charge` is appended to LOG and synced before it is answered: one JSON object per line
with `case`, `amount`, `receipt` (different each time) and `key` (the idempotency key of the call).
After that it writes `charged CASE`. It ends when its input ends.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import threading
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("bank", log_level="ERROR")

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@server.tool(structured_output=False)
async def charge(ctx: Context, case: str, amount: int) -> str:
    """Charge an amount."""
    meta = dict(ctx.request_context.meta or {})
    receipt = secrets.token_hex(8)
    line = {
        "case": case,
        "amount": amount,
        "receipt": receipt,
        "key": meta.get("throughline/idempotency_key"),
    }
    os.write(log, (json.dumps(line) + "\n").encode())
    os.fsync(log)
    print(f"charged {case}", flush=True)
    return f"charged {amount}, receipt {receipt}"


def end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # Connections wait from here on, so that the port can be told.
    listener.listen()
    app: Any = server.streamable_http_app()
    threading.Thread(target=end_with_input, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    anyio.run(lambda: uvicorn.Server(config).serve(sockets=[listener]))


main()
