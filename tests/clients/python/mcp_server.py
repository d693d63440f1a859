"""An MCP server, made with the official SDK, for the tests of MCP tools.

    python mcp_server.py stdio
    python mcp_server.py http [PORT]

Over HTTP it listens on the loopback interface, at a free port unless one is given, and writes the
port as its first line. With `TIDE_TOKEN` set, only requests with that bearer token are answered.
With `WATCH_PORT` set it opens a connection there and keeps it until it ends, so that a test sees
when that is.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

server = MCPServer("tides", log_level="ERROR")

# What `slow` waited for and was cancelled.
cancelled = anyio.Event()


@server.tool(description="Say it again")
def echo(text: str) -> str:
    return text


@server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True), structured_output=False)
def peek(days: int = 1) -> str:
    return f"{days} days"


class Tide(BaseModel):
    port: str
    metres: float


@server.tool()
def tide(port: str) -> Tide:
    return Tide(port=port, metres=6.5)


@server.tool(structured_output=False)
def nothing() -> None:
    return None


@server.tool(structured_output=False)
def media() -> list[Any]:
    blob = BlobResourceContents(uri="file:///chart.pdf", mime_type="application/pdf", blob="UERG")
    text = TextResourceContents(uri="file:///notes.txt", mime_type="text/plain", text="low water")
    return [
        TextContent(type="text", text="see"),
        ImageContent(type="image", data="UE5H", mime_type="image/png"),
        AudioContent(type="audio", data="V0FW", mime_type="audio/wav"),
        EmbeddedResource(type="resource", resource=text),
        EmbeddedResource(type="resource", resource=blob),
        ResourceLink(type="resource_link", name="chart", uri="file:///chart", description="of Dover"),
    ]


@server.tool(structured_output=False)
def fail() -> str:
    raise ToolError("there is no port called Dovr")


@server.tool(structured_output=False)
def key(ctx: Context) -> str:
    meta = ctx.request_context.meta or {}
    return str(dict(meta).get("throughline/idempotency_key"))


@server.tool(structured_output=False)
async def slow() -> str:
    try:
        await anyio.sleep(600)
    except anyio.get_cancelled_exc_class():
        cancelled.set()
        raise
    return "late"


@server.tool(structured_output=False)
async def was_cancelled() -> str:
    with anyio.fail_after(30):
        await cancelled.wait()
    return "yes"


@server.tool(structured_output=False)
def crash() -> str:
    os._exit(3)


@server.tool(structured_output=False)
def pid() -> str:
    return str(os.getpid())


@server.tool(structured_output=False)
def environment() -> str:
    return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))


@server.tool(name="files.read", structured_output=False)
def read_file() -> str:
    return "read"


@server.tool(structured_output=False)
def odd(days: int) -> str:
    return f"odd {days}"


@server.tool(structured_output=False)
async def grow(ctx: Context) -> str:
    @server.tool(structured_output=False)
    def grown() -> str:
        return "grown"

    await ctx.session.send_tool_list_changed()
    return "done"


# A schema that no reader can make sense of.
server._tool_manager.get_tool("odd").parameters = {
    "type": "object",
    "properties": {"days": {"type": "whole"}},
}


class Guarded:
    """Lets only requests with the token through."""

    def __init__(self, app: Any, token: str) -> None:
        self.app = app
        self.wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != self.wanted:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await self.app(scope, receive, send)


def serve_http(port: int) -> None:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    # Connections wait from here on, so that the port can be told.
    listener.listen()
    app: Any = server.streamable_http_app()
    if token := os.environ.get("TIDE_TOKEN"):
        app = Guarded(app, token)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    anyio.run(lambda: uvicorn.Server(config).serve(sockets=[listener]))


def main() -> None:
    watched = os.environ.get("WATCH_PORT")
    watch = socket.create_connection(("127.0.0.1", int(watched))) if watched else None
    if sys.argv[1] == "http":
        serve_http(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    else:
        server.run("stdio")
    if watch:
        watch.close()


main()
