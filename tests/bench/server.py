"""A model that answers at once, for measuring what a client costs.

    server = Server(tls=(chain, key))     # or Server()
    server.plan = lambda body: ("tool", "Bash", {"command": "echo hello"})
    server.hold()                          # keep the last answers back ...
    server.release()                       # ... until here

It checks nothing; tests/fake/fakeapi.py is the one that does.
"""

import asyncio
import json
import ssl
import threading
import time

HEAD = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n")


def job(body):
    """One shell call, then a text."""
    if b'"tool_result"' in body:
        return "text", "hello"
    return "tool", "Bash", {"command": "echo hello", "description": "greet"}


def turns(n, name="Bash", tool_input=None):
    """n tool calls one after the other, then a text."""
    def plan(body):
        if body.count(b'"tool_result"') < n:
            return "tool", name, tool_input or {"command": ":"}
        return "text", "done"
    return plan


def events(answer, number):
    """The answer as server-sent events."""
    yield "message_start", {"message": {
        "id": "msg_%d" % number, "type": "message", "role": "assistant",
        "model": "claude-sonnet-5-5", "content": [], "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1,
                  "cache_creation_input_tokens": 0,
                  "cache_read_input_tokens": 0}}}
    if answer[0] == "text":
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": answer[1]}
    else:
        block = {"type": "tool_use", "id": "toolu_%d" % number,
                 "name": answer[1], "input": {}}
        delta = {"type": "input_json_delta", "partial_json":
                 json.dumps(answer[2], separators=(",", ":"))}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {
        "delta": {"stop_reason": "end_turn" if answer[0] == "text"
                  else "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 5}}
    yield "message_stop", {}


def encode(answer, number):
    out = [HEAD]
    for name, data in events(answer, number):
        text = "event: %s\ndata: %s\n\n" % (
            name, json.dumps(dict(type=name, **data), separators=(",", ":")))
        out.append(b"%x\r\n%s\r\n" % (len(text), text.encode()))
    return b"".join(out) + b"0\r\n\r\n"


class Server:
    def __init__(self, tls=None):
        self.plan = job
        self.requests = []      # [arrived, answered, size of the body]
        self.held = 0           # clients that wait for their last answer
        self.last = b""         # the body of the newest request
        self.numbers = 0
        self.loop = asyncio.new_event_loop()
        self.open = asyncio.Event()
        self.open.set()
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
        ready = threading.Event()
        threading.Thread(target=self._run, args=(context, ready),
                         daemon=True).start()
        ready.wait()
        self.url = "%s://localhost:%d" % ("https" if tls else "http",
                                          self.port)

    def _run(self, context, ready):
        asyncio.set_event_loop(self.loop)
        start = asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context,
                                     limit=1 << 26, backlog=1024)
        server = self.loop.run_until_complete(start)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()

    def hold(self):
        self.held = 0
        self.open.clear()

    def release(self):
        self.loop.call_soon_threadsafe(self.open.set)

    async def _serve(self, reader, writer):
        try:
            while True:
                await self._request(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    async def _request(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        at = head.index(b"content-length:") + 15
        body = await reader.readexactly(int(head[at:head.index(b"\r", at)]))
        request = [time.monotonic(), None, len(body)]
        self.requests.append(request)
        self.last = body
        answer = self.plan(body)
        if answer[0] == "text" and not self.open.is_set():
            self.held += 1
            await self.open.wait()
        self.numbers += 1
        request[1] = time.monotonic()
        writer.write(encode(answer, self.numbers))
        await writer.drain()
