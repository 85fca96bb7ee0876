#!/usr/bin/env python3
"""Drives the server with the protocol's own Python client, pinned to one revision.

    TURNKEEP_BIN=… mcp_python.py REVISION

It starts a server in a directory of its own, then reads, searches, waits and writes over HTTP and over standard
input and output; in the newest revision it also subscribes. It runs under the Python of an environment that has the
SDK of that revision. Exit code 0 if everything is as it should be; every wait has a limit.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

BINARY = os.environ["TURNKEEP_BIN"]
RUN_SECONDS = 120
COMMAND_SECONDS = 60
NEWEST = "2026-07-28"


class Server:
    """A server on free ports, with a world and a token of ANN's."""

    def __init__(self, directory: Path):
        self.data = directory / "data"
        # What runs in a sandbox: nothing of the user's is read or written.
        self.env = dict(os.environ, TURNKEEP_DATA=str(self.data), HOME=str(directory))
        self.env.update(XDG_CONFIG_HOME=str(directory), XDG_RUNTIME_DIR=str(directory))
        command = [BINARY, "up", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline(), "the server says that it is up"
        note = json.loads((self.data / "run/server.json").read_text())
        self.url = f"http://{note['http']}/mcp"
        self.turnkeep("world", "new", "team", "--profile", "workspace", "--person", "ANN", "--person", "BOB")
        self.turnkeep("invoke", "team", "Ship the refund fix today.")
        minted = self.turnkeep("world", "token", "team", "ANN", "--write", "--json")
        self.token = json.loads(minted)["token"]

    def turnkeep(self, *args: str) -> str:
        done = subprocess.run(
            [BINARY, *args], env=self.env, check=True, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
        return done.stdout

    def stop(self):
        self.process.terminate()
        self.process.wait(COMMAND_SECONDS)


@contextmanager
def server():
    with tempfile.TemporaryDirectory(prefix="turnkeep-mcp-") as directory:
        running = Server(Path(directory))
        try:
            yield running
        finally:
            running.stop()


def stdio_parameters(running: Server):
    from mcp import StdioServerParameters

    env = dict(running.env, TURNKEEP_TOKEN=running.token)
    return StdioServerParameters(command=BINARY, args=["mcp"], env=env)


@asynccontextmanager
async def older_session(running: Server, over: str):
    """A session of an SDK that begins with `initialize`."""
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    headers = {"Authorization": f"Bearer {running.token}"}
    transport = (
        streamablehttp_client(running.url, headers=headers)
        if over == "http"
        else stdio_client(stdio_parameters(running))
    )
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        hello = await session.initialize()
        yield session, hello.protocolVersion, hello.instructions


@asynccontextmanager
async def newest_session(running: Server, over: str):
    """A client of the SDK whose requests describe themselves."""
    import httpx2 as http_library
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {running.token}"}
    if over == "http":
        async with http_library.AsyncClient(headers=headers, timeout=COMMAND_SECONDS) as http:
            transport = streamable_http_client(running.url, http_client=http)
            async with Client(transport, mode="auto") as client:
                yield client, client.protocol_version, client.instructions
    else:
        async with Client(stdio_parameters(running), mode="auto") as client:
            yield client, client.protocol_version, client.instructions


def answer(result) -> dict:
    text = json.loads(result.content[0].text)
    structured = getattr(result, "structuredContent", None) or getattr(result, "structured_content", None)
    assert structured == text, (structured, text)
    return text


async def use(session, running: Server, name: str):
    tools = [tool.name for tool in (await session.list_tools()).tools]
    assert "whoami" in tools and "ledger_write" in tools, tools
    me = answer(await session.call_tool("whoami", {}))
    assert (me["person_id"], me["world_id"]) == ("ANN", "team"), me
    found = answer(await session.call_tool("ledger_search", {"query": "refund"}))
    assert found["results"][0]["audience"] == "everyone", found
    waiting = {"cursor": me["cursor_now"], "wait_seconds": 50}
    read = asyncio.create_task(session.call_tool("ledger_read", waiting))
    wrote = answer(await session.call_tool("ledger_write", {"text": name, "visible_to": ["bob"]}))
    assert wrote["entries"][0]["audience"] == "only you and BOB", wrote
    assert name in json.dumps(answer(await read))
    again = {"text": name + " again", "request_id": "task-1-" + name}
    first, second = [answer(await session.call_tool("ledger_write", again)) for _ in range(2)]
    assert first["bundle_id"] == second["bundle_id"] and second["replayed"], second
    assert name + " again" in running.turnkeep("stream", "team")


async def subscribe(client, running: Server):
    [resource] = (await client.list_resources()).resources
    async with client.listen(resource_subscriptions=[str(resource.uri)]) as news:
        running.turnkeep("invoke", "team", "News.")
        async for event in news:
            assert str(event.uri) == str(resource.uri), event
            return


async def main(revision: str):
    session = newest_session if revision == NEWEST else older_session
    with server() as running:
        for over in ["http", "stdio"]:
            async with session(running, over) as (client, spoken, instructions):
                assert spoken == revision, f"{spoken} is spoken, not {revision}"
                assert "You are ANN" in instructions, instructions
                await use(client, running, f"{revision} over {over}")
                if revision == NEWEST:
                    await subscribe(client, running)
            print(f"{revision} over {over}: ok")


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(sys.argv[1]), RUN_SECONDS))
