#!/usr/bin/env python3
"""A scripted Messages API that refuses what the real one refuses.

    from fakeapi import FakeApi, turn, text, tool, thinking, redacted, block
    with FakeApi([turn(tool("Bash", {"command": "true"})),
                  turn(text("done"))]) as api:
        run(env={"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": api.key})
        assert api.violations == []
        assert api.requests[0].json["stream"] is True
        api.requests[1].raw            # the body's bytes as they came

    python3 tests/fake/fakeapi.py SCRIPT.json [--tls DIR] [--port-file F]
        SCRIPT.json: a list of turns, or {"turns": [...], "options": {...},
        "loop": true}; a turn is what turn() makes: {"content": [blocks],
        "stop": ..., "usage": ..., "faults": [...], ...}.  Prints the base URL,
        serves until SIGTERM, SIGINT or end of stdin (--stdin), then prints the
        violations; exit status 1 if there were any.

TURNS.  turn(*blocks, stop=None, usage=None, faults=(), **options)
  blocks    text(s), thinking(s, signature), redacted(data),
            tool(name, input) or tool(name, raw='{"a":1}'), block(json_text)
            for any other type (sent whole in content_block_start).
            pieces=N or [sizes]: how deltas are cut; extra={...}: more members.
  stop      stop_reason; default tool_use if a tool() is among the blocks
  usage     final numbers, e.g. {"input_tokens": 9, "output_tokens": 3};
            usage_start / usage_delta give the two places by themselves
  faults    one per failed attempt, before the good answer.  None = good
  echo      how the message has to come back: exact (default), loose (blocks
            may be left out; default for max_tokens and refusal), any
  same      False: a retry may differ from the failed attempt's bytes
  check     function(request); what it raises is a violation
  events    [(name, object)]: these and no others; nothing is compared later
  gate      threading.Event: wait for it after gate_event events (0: before
            the head); gate.set() lets the answer go on
  the rest  wire options, which faults may carry too:
    eol="\r\n"  comments  data_space=False  multi_data  bom  pings
    event_names=False  done (a [DONE] line)  message_stop=False
    omit={"usage","start_usage","stop_usage","input","text","index","type",
          "id","content","stop_reason","block_stop"}  null_usage
    extra=[(after_event, name, json_text)]   content_type=...
    chunks=N|[offsets]  bytes of the stream per chunk, one write each
    split=N|[offsets]   bytes of the whole response per write
    pause=seconds between writes    length=True: Content-Length
    http10=True: no length, ends with the connection
    close_after=True|"rst": connection dropped right after a response that
    promised keep-alive    close_header: "connection: close"
    interim: bytes before the response (an 1xx head)   headers={...}
    chunk_ext  trailers  head_eol="\n"  head_case=str.upper   odd, but legal
    final=False: the last, empty chunk never comes (connection stays open)

FAULTS.  dict(status=529, type=, message=, headers={}, body=, content_type=,
                shape="compat")   an error response, JSON unless body is given
         dict(cut=N) dict(cut_event=K) dict(cut_after="text")  part, then close
         dict(stall=N) dict(stall_event=K)     part, then silence
         dict(reset=N)                         part, then a TCP reset
         dict(drop=True)                       close without a byte
         dict(error_event=K, type=, message=)  K events, then an error event
         dict(raw=b"...")                      these bytes, then close
           (hold=True: then silence; endless=b"...": then these for ever)
         dict(slow_head=SECONDS)               response head byte by byte
  A fault may name its own blocks with turn=turn(...); default: its turn's.

CHECKS.  A broken rule is answered with the real status and kept in
`violations` (list of str).  Switches of FakeApi(...): check_prefix,
check_retry, forks (one conversation may go on in two ways), model_change,
prefill, key, models, betas, fields, prefix.
`routes=[(match, turns)]`: match is a substring of the body or a function of
the request; each route has its own turns.  A script may be a function
(request -> turn).  loop=True starts the script again at its end.
cache=True: usage from a simulated prompt cache, 4 characters a token.
"""

import argparse
import hashlib
import json
import os
import re
import select
import signal
import socket
import ssl
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import rawjson                                            # noqa: E402
import rules                                              # noqa: E402
from rules import Refused, Reply, SentBlock               # noqa: E402

ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error",
    402: "billing_error", 403: "permission_error", 404: "not_found_error",
    408: "timeout_error", 409: "conflict_error", 413: "request_too_large",
    429: "rate_limit_error", 500: "api_error", 502: "api_error",
    503: "api_error", 504: "timeout_error", 529: "overloaded_error",
}
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
MESSAGES = {
    401: "invalid x-api-key", 404: "model: not found",
    413: "Request exceeds the maximum size",
    429: "This request would exceed your rate limit",
    500: "Internal server error", 529: "Overloaded",
}


# ---- the script's words --------------------------------------------------

def text(s, pieces=None, extra=None):
    return {"type": "text", "text": s, "pieces": pieces, "extra": extra}


def thinking(s, signature="c2lnbmF0dXJl", pieces=None, sig_pieces=None):
    return {"type": "thinking", "thinking": s, "signature": signature,
            "pieces": pieces, "sig_pieces": sig_pieces}


def redacted(data="cmVkYWN0ZWQ="):
    return {"type": "redacted_thinking", "data": data}


def tool(name, input=None, id=None, raw=None, pieces=None, extra=None):
    return {"type": "tool_use", "name": name, "id": id, "input": input,
            "raw": raw, "pieces": pieces, "extra": extra}


def block(json_text):
    return {"type": "raw", "json": json_text}


def turn(*content, **options):
    options["content"] = [text(c) if isinstance(c, str) else c
                          for c in content]
    return options


def _dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pieces(s, sizes, first_empty=False):
    """A string cut for deltas.  Joined they are the string again."""
    if isinstance(sizes, int):
        out = [s[i:i + sizes] for i in range(0, len(s), sizes)]
    elif sizes is not None:
        out, i = [], 0
        for n in sizes:
            out.append(s[i:i + n])
            i += n
        out.append(s[i:])
    else:
        out = [s[:len(s) // 2], s[len(s) // 2:]] if len(s) > 1 else [s]
        if first_empty:
            out.insert(0, "")
        return out
    return out or [""]


class Message:
    """A turn made concrete: events of the stream, one JSON text, a Reply."""

    def __init__(self, spec, api, request, usage):
        self.spec = spec
        self.omit = set(spec.get("omit") or ())
        self.blocks = []
        self.id = spec.get("id") or "msg_fake%04d" % api.next_number("msg")
        self.model = spec.get("model") or request.json.get("model")
        for b in spec["content"]:
            b = dict(b)
            if b["type"] == "tool_use" and not b.get("id"):
                b["id"] = "toolu_fake%04d" % api.next_number("toolu")
            self.blocks.append(b)
        self.stop = spec.get("stop") or spec.get("stop_reason") or (
            "tool_use" if any(b["type"] == "tool_use" for b in self.blocks)
            else "end_turn")
        if self.stop == "null":
            self.stop = None
        self.usage = usage

    # What has to come back in the next request.
    def reply(self):
        mode = "any" if "events" in self.spec else self.spec.get("echo") or (
            "loose" if self.stop in ("max_tokens", "refusal",
                                     "model_context_window_exceeded")
            else "exact")
        return Reply([self._sent(b) for b in self.blocks], mode, self.stop)

    def _sent(self, b):
        kind = b["type"]
        if kind == "raw":
            raw = rawjson.parse(b["json"].encode())
            return SentBlock(raw.value["type"], [
                (k, "raw", v.text) for k, v in raw.members()])
        m = [("type", "raw", _dumps(kind))]
        if kind == "text":
            m.append(("text", "value", b["text"]))
        elif kind == "thinking":
            m += [("thinking", "value", b["thinking"]),
                  ("signature", "value", b["signature"])]
        elif kind == "redacted_thinking":
            m.append(("data", "value", b["data"]))
        else:
            m += [("id", "value", b["id"]), ("name", "value", b["name"]),
                  ("input",) + self._input_back(b)]
        m += [(k, "raw", _dumps(v)) for k, v in (b.get("extra") or {}).items()]
        return SentBlock(kind, m, kind == "text" and not b["text"].strip())

    def _input_back(self, b):
        """An input that is no JSON object cannot come back as it was."""
        want = self._input(b).strip() or "{}"
        try:
            if isinstance(rawjson.parse(want.encode()).value, dict):
                return "raw", want
        except ValueError:
            pass
        return "any", None

    @staticmethod
    def _input(b):
        if b.get("raw") is not None:
            return b["raw"]
        return _dumps(b["input"] if b.get("input") is not None else {})

    def json(self):
        """The whole message as one JSON text (stream false)."""
        out = []
        for b in self.blocks:
            if b["type"] == "raw":
                out.append(b["json"])
                continue
            m = []
            for key, how, want in self._sent(b).members:
                m.append("%s:%s" % (_dumps(key), want if how == "raw"
                                    else _dumps(want)))
            out.append("{%s}" % ",".join(m))
        head = {"id": self.id, "type": "message", "role": "assistant",
                "model": self.model}
        tail = {"stop_reason": self.stop,
                "stop_sequence": self.spec.get("stop_sequence"),
                "usage": self.usage}
        if self.spec.get("stop_details"):
            tail["stop_details"] = self.spec["stop_details"]
        for key in ("id", "usage", "stop_reason"):
            if key in self.omit:
                head.pop(key, None)
                tail.pop(key, None)
        return '%s,"content":[%s],%s' % (_dumps(head)[:-1], ",".join(out),
                                         _dumps(tail)[1:])

    def events(self):
        """[(event name, JSON text)] in order."""
        spec, omit, out = self.spec, self.omit, []
        if "events" in spec:
            return [(n, json.dumps(d, separators=(",", ":")))
                    for n, d in spec["events"]]
        out.append(("message_start", self._start()))
        if spec.get("pings"):
            out.append(("ping", '{"type":"ping"}'))
        for i, b in enumerate(self.blocks):
            self._block_events(i, b, out)
            if spec.get("pings"):
                out.append(("ping", '{"type":"ping"}'))
        out.append(("message_delta", self._delta()))
        if spec.get("message_stop", True):
            out.append(("message_stop", '{"type":"message_stop"}'))
        for after, name, data in sorted(spec.get("extra") or (), reverse=True,
                                        key=lambda e: e[0]):
            out.insert(after, (name, data))
        if "type" in omit:
            out = [(n, _dumps({k: v for k, v in json.loads(d).items()
                               if k != "type"})) for n, d in out]
        return out

    def _start(self):
        message = {"id": self.id, "type": "message", "role": "assistant",
                   "model": self.model, "content": [], "stop_reason": None,
                   "stop_sequence": None}
        for key in ("id", "content"):
            if key in self.omit:
                del message[key]
        if not self.omit & {"usage", "start_usage"}:
            start = self.spec.get("usage_start")
            if start is None:
                start = dict(self.usage, output_tokens=min(
                    1, self.usage.get("output_tokens") or 0))
            message["usage"] = start
            if self.spec.get("null_usage"):
                message["usage"] = {k: None if k != "input_tokens" else v
                                    for k, v in start.items()}
        return _dumps({"type": "message_start", "message": message})

    def _delta(self):
        delta = {"stop_reason": self.stop,
                 "stop_sequence": self.spec.get("stop_sequence")}
        if self.spec.get("stop_details"):
            delta["stop_details"] = self.spec["stop_details"]
        if "stop_reason" in self.omit:
            del delta["stop_reason"]
        data = {"type": "message_delta", "delta": delta}
        if not self.omit & {"usage", "stop_usage"}:
            data["usage"] = self.spec.get("usage_delta") or {
                "output_tokens": self.usage.get("output_tokens", 0)}
            if self.spec.get("null_usage"):
                data["usage"].update(input_tokens=None,
                                     cache_read_input_tokens=None)
        return _dumps(data)

    def _block_events(self, i, b, out):
        def put(name, members):
            index = "" if "index" in self.omit else '"index":%d,' % i
            out.append((name, '{"type":"%s",%s%s}' % (
                name, index, members) if members else
                ('{"type":"%s",%s}' % (name, index)).replace(",}", "}")))

        def delta(kind, key, value):
            put("content_block_delta", '"delta":{"type":"%s","%s":%s}'
                % (kind, key, _dumps(value)))

        kind = b["type"]
        if kind == "raw":
            put("content_block_start", '"content_block":' + b["json"])
        else:
            start = {"type": kind}
            if kind == "text" and "text" not in self.omit:
                start["text"] = ""
            elif kind == "thinking":
                start.update(thinking="", signature="")
            elif kind == "redacted_thinking":
                start["data"] = b["data"]
            elif kind == "tool_use":
                start.update(id=b["id"], name=b["name"])
                if "input" not in self.omit:
                    start["input"] = {}
            start.update(b.get("extra") or {})
            put("content_block_start", '"content_block":' + _dumps(start))
        if kind == "text":
            for p in _pieces(b["text"], b.get("pieces")):
                delta("text_delta", "text", p)
        elif kind == "thinking":
            if b["thinking"]:
                for p in _pieces(b["thinking"], b.get("pieces")):
                    delta("thinking_delta", "thinking", p)
            delta("signature_delta", "signature", b["signature"])
        elif kind == "tool_use":
            for p in _pieces(self._input(b), b.get("pieces"), True):
                delta("input_json_delta", "partial_json", p)
        if "block_stop" not in self.omit:
            put("content_block_stop", "")


def encode(events, spec):
    """Events to the bytes of the stream: [bytes of each event]."""
    eol = spec.get("eol", "\n")
    colon = ":" if spec.get("data_space", True) is False else ": "
    out = []
    for i, (name, data) in enumerate(events):
        lines = []
        if spec.get("comments"):
            lines.append(": comment %d" % i)
        if name is not None and spec.get("event_names", True):
            lines.append("event" + colon + name)
        if spec.get("multi_data"):
            data = json.dumps(json.loads(data), ensure_ascii=False, indent=1)
        lines += ["data" + colon + d for d in data.split("\n")]
        if spec.get("comments"):
            lines += ["id: %d" % i, "retry: 3", "unknown"]
        out.append((eol.join(lines) + eol + eol).encode("utf-8"))
    if spec.get("bom") and out:
        out[0] = b"\xef\xbb\xbf" + out[0]
    if spec.get("done"):
        out.append(("data: [DONE]" + eol + eol).encode())
    return out


# ---- requests and connections --------------------------------------------

class Request:
    """One request as it came.  headers: dict, names in lower case."""

    def __init__(self, conn, method, target, header_list, raw):
        self.conn = conn
        self.method = method
        self.target = target
        self.path = target.split("?")[0]
        self.header_list = header_list
        self.headers = dict(header_list)
        self.raw = raw
        self.body = None            # rawjson.Raw
        self.error = None           # message of the refusal, if any
        self.index = -1             # number among all requests
        self.attempt = 0            # 0: first try of its turn
        self.answered = threading.Event()
        try:
            self.body = rawjson.parse(raw)
        except ValueError as e:
            self.bad_json = str(e)

    @property
    def json(self):
        value = None if self.body is None else self.body.value
        return value if isinstance(value, dict) else {}

    @property
    def messages(self):
        return self.json["messages"]

    def results(self):
        """tool_use_id -> tool_result block, of the last message."""
        return {b["tool_use_id"]: b for b in self.messages[-1]["content"]
                if b["type"] == "tool_result"}

    def result_text(self, n=0):
        """The n-th tool_result of the last message as plain text."""
        b = list(self.results().values())[n]
        content = b.get("content", "")
        if isinstance(content, str):
            return content
        return "".join(c.get("text", "") for c in content)

    def tool_names(self):
        return [t["name"] for t in self.json.get("tools") or []]


class Gone(Exception):
    """The connection is over."""


class Conn(threading.Thread):
    def __init__(self, api, sock, number):
        super().__init__(daemon=True)
        self.api = api
        self.sock = sock
        self.number = number
        self.buf = b""
        self.handled = 0
        self.tls_error = None
        self.resumed = False
        self.client_closed = threading.Event()

    def run(self):
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.api.tls is not None:
                self.sock.settimeout(20)
                self.sock = self.api.tls.wrap_socket(self.sock,
                                                     server_side=True)
                self.resumed = self.sock.session_reused
            self.sock.settimeout(60)
            while True:
                request = self._read_request()
                if request is None:
                    break
                self.handled += 1
                if not self.api.serve(self, request):
                    break
        except ssl.SSLError as e:
            self.tls_error = str(e)
        except (OSError, Gone):
            pass
        except Exception as e:                # noqa: BLE001
            self.api.violate(None, "fake API failed: %s: %s"
                             % (type(e).__name__, e))
        finally:
            self.close()
            self.api.conn_over(self)

    # Input.
    def _fill(self):
        data = self.sock.recv(65536)
        if not data:
            self.client_closed.set()
            raise Gone()
        self.buf += data

    def _read_request(self):
        while b"\r\n\r\n" not in self.buf:
            if self.buf[:1] == b"\x16":
                self.api.violate(None, "a TLS hello on a plain port")
                self.write(b"HTTP/1.1 400 Bad Request\r\n"
                           b"Connection: close\r\n\r\n")
                return None
            try:
                self._fill()
            except Gone:
                if self.buf.strip():
                    self.api.violate(None, "request head was cut: %r"
                                     % self.buf[:200])
                return None
        head, _, self.buf = self.buf.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        parts = lines[0].split(" ")
        if len(parts) != 3 or parts[2] != "HTTP/1.1":
            self.api.violate(None, "bad request line: %r" % lines[0])
            return None
        headers = []
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not TOKEN.fullmatch(name) \
                    or CONTROL.search(value):
                self.api.violate(None, "bad header line: %r" % line)
            headers.append((name.strip().lower(), value.strip()))
        got = dict(headers)
        if "host" not in got:
            self.api.violate(None, "no host header")
        if got.get("transfer-encoding", "").lower() == "chunked":
            body = self._read_chunks()
        else:
            n = int(got.get("content-length", "0"))
            parts_, have = [self.buf], len(self.buf)
            while have < n:
                self.buf = b""
                self._fill()
                parts_.append(self.buf)
                have += len(self.buf)
            whole = b"".join(parts_)
            body, self.buf = whole[:n], whole[n:]
        return Request(self, parts[0], parts[1], headers, body)

    def _read_chunks(self):
        out = []
        while True:
            while b"\r\n" not in self.buf:
                self._fill()
            size, _, self.buf = self.buf.partition(b"\r\n")
            n = int(size.split(b";")[0], 16)
            while len(self.buf) < n + 2:
                self._fill()
            out.append(self.buf[:n])
            if self.buf[n:n + 2] != b"\r\n":
                raise Gone()
            self.buf = self.buf[n + 2:]
            if n == 0:
                return b"".join(out)

    # Output.
    def write(self, data):
        self.sock.sendall(data)

    def write_cut(self, data, split, pause):
        """One write per piece; `split` is a size or a list of offsets."""
        if not split:
            self.write(data)
            return
        if isinstance(split, int):
            cuts = list(range(split, len(data), split))
        else:
            cuts = [c for c in sorted(split) if 0 < c < len(data)]
        for a, b in zip([0] + cuts, cuts + [len(data)]):
            self.write(data[a:b])
            if pause:
                time.sleep(pause)

    def wait_close(self, limit=600):
        """Says nothing until the client goes away or the server ends."""
        end = time.monotonic() + limit
        while not self.api.closing.is_set() and time.monotonic() < end:
            r, _, _ = select.select([self.sock], [], [], 0.05)
            if r:
                try:
                    data = self.sock.recv(4096)
                except (ssl.SSLWantReadError, TimeoutError):
                    continue
                except OSError:
                    data = b""
                if not data:
                    self.client_closed.set()
                    return
        return

    def wake(self):
        """From another thread: ends what blocks on the connection.  (An
        SSLSocket's own shutdown() would make it read ciphertext.)"""
        try:
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)
        except OSError:
            pass

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        sock = self.sock
        try:
            if isinstance(sock, ssl.SSLSocket):
                sock.close()
            else:
                # Close only after the peer's bytes were read, or the
                # kernel turns the end into a reset.
                sock.shutdown(socket.SHUT_WR)
                sock.settimeout(0.2)
                while sock.recv(65536):
                    pass
        except OSError:
            pass
        try:
            sock.close()
        except OSError:
            pass

    def close_notify(self):
        if isinstance(self.sock, ssl.SSLSocket):
            try:
                self.sock.settimeout(0)
                self.sock.unwrap()
            except OSError:
                pass


class Queue:
    """The turns of one route and where it stands."""

    def __init__(self, script, loop):
        self.script = script
        self.loop = loop
        self.at = 0
        self.attempt = 0
        self.failed_body = None

    def left(self):
        return 0 if callable(self.script) else max(
            0, len(self.script) - self.at)

    def peek(self, request):
        if callable(self.script):
            return self.script(request)
        if self.at >= len(self.script) and self.loop and self.script:
            self.at = 0
        return self.script[self.at] if self.at < len(self.script) else None

    def next(self):
        self.at += 1
        self.attempt = 0
        self.failed_body = None


class FakeApi:
    def __init__(self, script=(), *, host="127.0.0.1", port=0, tls=None,
                 routes=(), loop=False, check_prefix=True, check_retry=True,
                 forks=False, model_change=False, prefill=False,
                 key="sk-fake-key", models=(), betas=(), fields=(), prefix="",
                 cache=False,
                 name=None):
        self.check_prefix = check_prefix
        self.check_retry = check_retry
        self.forks = forks
        self.model_change = model_change
        self.prefill = prefill
        self.key = key
        self.models = set(models)
        self.betas = set(betas)
        self.fields = set(fields)
        self.prefix = prefix
        self.cache = {} if cache else None
        self.routes = [(m, Queue(list(t) if not callable(t) else t, loop))
                       for m, t in routes]
        self.main = Queue(script if callable(script) else list(script), loop)
        self.requests = []
        self.conns = []
        self.violations = []
        self.refusals = []          # messages of all 400s by a rule
        self.history = rules.History(self)
        self.known_types = set()
        self.numbers = {}
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.closing = threading.Event()
        self.served = 0             # answers sent whole
        self.tls = self._context(tls)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((host, port))
        self.sock.listen(512)
        self.host = host
        self.port = self.sock.getsockname()[1]
        shown = name or ("localhost" if tls else
                         "[%s]" % host if ":" in host else host)
        self.url = "%s://%s:%d%s" % ("https" if tls else "http", shown,
                                     self.port, prefix)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    @staticmethod
    def _context(tls):
        """tls: an SSLContext, or (certificate chain file, key file)."""
        if tls is None or isinstance(tls, ssl.SSLContext):
            return tls
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.minimum_version = ctx.maximum_version = ssl.TLSVersion.TLSv1_2
        ctx.load_cert_chain(tls[0], tls[1])
        return ctx

    # Life.
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.closing.set()
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        with self.lock:
            conns = list(self.conns)
        for c in conns:
            if c.is_alive():
                c.wake()
        for c in conns:
            c.join(2)

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            with self.lock:
                conn = Conn(self, sock, len(self.conns))
                self.conns.append(conn)
                conn.start()
                self.changed.notify_all()

    def conn_over(self, conn):
        with self.lock:
            self.changed.notify_all()

    # What tests ask.
    def wait(self, condition, timeout=20):
        """Waits until condition() holds; AssertionError after the limit."""
        end = time.monotonic() + timeout
        with self.changed:
            while not condition():
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(
                        "fake API: waited in vain; %d requests, violations %s"
                        % (len(self.requests), self.violations))
                self.changed.wait(min(left, 0.2))

    def wait_requests(self, n, timeout=20):
        self.wait(lambda: len(self.requests) >= n, timeout)
        return self.requests[n - 1]

    def unused(self):
        """Turns that nobody asked for."""
        return self.main.left() + sum(q.left() for _, q in self.routes)

    def violate(self, request, message):
        with self.lock:
            where = "" if request is None else "request %d: " % request.index
            self.violations.append(where + message)

    def next_number(self, kind):
        with self.lock:
            self.numbers[kind] = self.numbers.get(kind, 0) + 1
            return self.numbers[kind]

    # One request.  True: the connection goes on.
    def serve(self, conn, request):
        with self.lock:
            request.index = len(self.requests)
            self.requests.append(request)
            self.changed.notify_all()
        try:
            return self._serve(conn, request)
        finally:
            request.answered.set()
            with self.lock:
                self.changed.notify_all()

    def _serve(self, conn, request):
        want = self.prefix + "/v1/messages"
        if request.method == "GET" and request.path.startswith(
                self.prefix + "/v1/models/"):
            return self._serve_model(conn, request)
        if request.path == want + "/count_tokens":
            return self._serve_json(conn, _dumps(
                {"input_tokens": len(request.raw) // 4}))
        if request.method != "POST" or request.path != want:
            self.violate(request, "unknown endpoint: %s %s"
                         % (request.method, request.target))
            return self._error(conn, request, dict(
                status=404, message="Not found: " + request.path))
        if request.target not in (want, want + "?beta=true"):
            self.violate(request, "unknown query: " + request.target)
        with self.lock:
            refused, queue, spec, fault, message, reply = self._plan(request)
        if refused is not None:
            request.error = refused.message
            return self._error(conn, request, dict(
                status=refused.status, type=refused.type,
                message=refused.message))
        return self._answer(conn, request, queue, spec, fault, message, reply)

    def _plan(self, request):
        """Checks, and picks what to answer.  Holds the lock."""
        none = (None,) * 5
        problems = []
        if len(request.raw) > rules.BODY_MAX:
            problems.append(Refused("Request exceeds the maximum size", 413,
                                    "request_too_large"))
        problems += rules.check_headers(request.header_list, self)
        shape = None
        if request.body is None:
            problems.append(Refused("The request body is not valid JSON: "
                                    + request.bad_json))
        else:
            problems += rules.check_request(request.body, self,
                                            self.known_types)
            if not any(p.message.startswith("malformed") for p in problems) \
                    and isinstance(request.json.get("messages"), list):
                try:
                    shape = rules.Shape(request.body)
                    problems += self.history.check(shape)
                except (AttributeError, TypeError) as e:
                    problems.append(Refused("malformed request: %s" % e))
        queue = self._queue(request)
        spec = queue.peek(request)
        if spec is None:
            problems.append(Refused("the script has no further turn"))
        elif self.check_retry and queue.attempt > 0 \
                and spec.get("same", True) \
                and queue.failed_body != request.raw:
            problems.append(Refused("a retry whose body is not the same"))
        if problems:
            for p in problems:
                self.violate(request, p.message)
            self.refusals.append(problems[0].message)
            return (problems[0],) + none
        if spec.get("check"):
            try:
                spec["check"](request)
            except Exception as e:            # noqa: BLE001: a test's check
                self.violate(request, "check: %s: %s" % (
                    type(e).__name__, e))
        faults = spec.get("faults") or ()
        fault = faults[queue.attempt] if queue.attempt < len(faults) else None
        request.attempt = queue.attempt
        used = spec if fault is None else dict(
            fault.get("turn") or spec, **{k: v for k, v in fault.items()
                                          if k != "turn"})
        message = Message(used, self, request, self._usage(request, used))
        reply = message.reply()
        for b in reply.blocks:
            self.known_types.add(b.kind)
        if fault is None:
            if not callable(queue.script):
                queue.next()
            self.history.add(shape, reply)
        else:
            queue.attempt += 1
            queue.failed_body = request.raw
        return None, queue, used, fault, message, reply

    def _queue(self, request):
        for match, queue in self.routes:
            hit = match(request) if callable(match) \
                else match.encode() in request.raw
            if hit:
                return queue
        return self.main

    def _usage(self, request, spec):
        if spec.get("usage") is not None:
            return dict(spec["usage"])
        usage = {"input_tokens": 25, "cache_creation_input_tokens": 0,
                 "cache_read_input_tokens": 0, "output_tokens": 7}
        if self.cache is not None:
            usage.update(self._cache_usage(request))
        return usage

    def _cache_usage(self, request):
        """Reads and writes as reference 3.1 describes, 4 bytes a token."""
        digest = hashlib.sha256(request.json["model"].encode())
        keys, sizes, marks, total = [], [], [], 0
        for i, (piece, marked) in enumerate(rules.cache_blocks(request.body)):
            data = piece.encode("utf-8")
            digest.update(struct.pack("<Q", len(data)) + data)
            total += len(data) // 4
            keys.append(digest.hexdigest())
            sizes.append(total)
            if marked:
                marks.append(i)
        read = 0
        for m in reversed(marks):
            for i in range(m, max(-1, m - 20), -1):
                if keys[i] in self.cache:
                    read = max(read, sizes[i])
                    break
            if read:
                break
        written = (sizes[marks[-1]] if marks else 0)
        for m in marks:
            self.cache[keys[m]] = sizes[m]
        return {"cache_read_input_tokens": read,
                "cache_creation_input_tokens": max(0, written - read),
                "input_tokens": total - max(written, read)}

    # Answers.
    def _serve_model(self, conn, request):
        name = request.path.rsplit("/", 1)[1]
        row = rules.model_row(name)
        if row is None:
            return self._error(conn, request, dict(status=404))
        return self._serve_json(conn, _dumps(
            {"type": "model", "id": name, "max_tokens": row[0]}))

    def _serve_json(self, conn, data):
        data = data.encode()
        conn.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                   b"content-length: %d\r\n\r\n" % len(data) + data)
        return True

    def _head(self, status, ctype, spec, length):
        lines = ["HTTP/1.1 %d %s" % (status, "OK" if status == 200 else "X")]
        if spec.get("http10"):
            lines[0] = "HTTP/1.0 200 OK"
        if ctype:
            lines.append("Content-Type: " + ctype)
        lines.append("request-id: req_fake%04d" % self.next_number("req"))
        lines.append("anthropic-organization-id: org-fake")
        if length is None:
            if not spec.get("http10"):
                lines.append("Transfer-Encoding: chunked")
        else:
            lines.append("Content-Length: %d" % length)
        if spec.get("close_header"):
            lines.append("Connection: close")
        for k, v in (spec.get("headers") or {}).items():
            lines.append("%s: %s" % (k, v))
        if spec.get("head_case"):
            lines[1:] = [spec["head_case"](x.split(":")[0]) + ":"
                         + x.split(":", 1)[1] for x in lines[1:]]
        eol = spec.get("head_eol", "\r\n")
        return (eol.join(lines) + eol + eol).encode("latin-1")

    def _error(self, conn, request, fault):
        status = fault["status"]
        body = fault.get("body")
        ctype = fault.get("content_type", "application/json")
        if body is None:
            kind = fault.get("type") or ERROR_TYPES.get(status, "api_error")
            words = fault.get("message") or MESSAGES.get(status, "No")
            if fault.get("shape") == "compat":
                body = _dumps({"error": {"code": status, "message": words,
                                         "type": kind}})
            else:
                error = {"type": kind, "message": words}
                if fault.get("details"):
                    error["details"] = fault["details"]
                body = _dumps({"type": "error", "error": error,
                               "request_id": "req_fake_error"})
        if isinstance(body, str):
            body = body.encode("utf-8")
        conn.write(self._head(status, ctype, fault, len(body)) + body)
        return self._after(conn, fault)

    def _after(self, conn, spec):
        if spec.get("close_after") == "rst":
            conn.reset()
            return False
        return not (spec.get("close_after") or spec.get("close_header")
                    or spec.get("http10"))

    def _answer(self, conn, request, queue, spec, fault, message, reply):
        gate = spec.get("gate")
        if gate is not None and not spec.get("gate_event"):
            self._wait_gate(gate)
        fault = fault or {}
        if fault.get("interim") or spec.get("interim"):
            conn.write(spec["interim"])
        if fault.get("drop"):
            return False
        if "raw" in fault:
            data = fault["raw"]
            conn.write_cut(data.encode() if isinstance(data, str) else data,
                           spec.get("split"), spec.get("pause"))
            while fault.get("endless") and not self.closing.is_set():
                conn.write(fault["endless"])
            if fault.get("hold"):
                conn.wait_close()
            return False
        if "status" in fault:
            return self._error(conn, request, fault)
        if not request.json.get("stream"):
            return self._send_json(conn, spec, message)
        return self._send_stream(conn, spec, fault, message)

    def _wait_gate(self, gate):
        while not gate.wait(0.05):
            if self.closing.is_set():
                raise Gone()

    def _send_json(self, conn, spec, message):
        data = message.json().encode("utf-8")
        head = self._head(200, spec.get("content_type", "application/json"),
                          spec, len(data))
        conn.write_cut(head + data, spec.get("split"), spec.get("pause"))
        self._count()
        return self._after(conn, spec)

    def _count(self):
        with self.lock:
            self.served += 1
            self.changed.notify_all()

    def _send_stream(self, conn, spec, fault, message):
        events = message.events()
        if "error_event" in fault:
            events = events[:fault["error_event"]]
            events.append(("error", _dumps({"type": "error", "error": {
                "type": fault.get("type", "overloaded_error"),
                "message": fault.get("message", "Overloaded")}})))
        parts = encode(events, spec)
        end, action = self._fault_end(parts, fault)
        whole = b"".join(parts)
        payload = whole[:end]
        length = len(whole) if spec.get("length") else None
        head = self._head(200, spec.get(
            "content_type", "text/event-stream; charset=utf-8"), spec, length)
        if spec.get("slow_head"):
            for i in range(len(head)):
                conn.write(head[i:i + 1])
                if self.closing.wait(spec["slow_head"]):
                    raise Gone()
            head = b""
        pieces = self._chunks(payload, parts, spec)
        if length is None and not spec.get("http10"):
            ext = b" ;a=1;b=\"x;y\"" if spec.get("chunk_ext") else b""
            pieces = [b"%x%s\r\n" % (len(p), ext) + p + b"\r\n"
                      for p in pieces]
            if action is None and spec.get("final", True):
                pieces.append(b"0%s\r\n" % ext)
                if spec.get("trailers"):
                    pieces.append(b"X-Sum: 1\r\nX-More: 2\r\n")
                pieces.append(b"\r\n")
        if spec.get("split"):
            conn.write_cut(head + b"".join(pieces), spec["split"],
                           spec.get("pause"))
        else:
            self._write_pieces(conn, head, pieces, spec)
        if action == "stall":
            conn.wait_close()
            return False
        if action == "reset":
            # Let the client read what was sent before the reset drops it.
            time.sleep(0.1)
            conn.reset()
            return False
        if action == "close":
            return False
        if not spec.get("final", True):
            conn.wait_close()
            return False
        self._count()
        if spec.get("http10"):
            conn.close_notify()
        return self._after(conn, spec)

    def _write_pieces(self, conn, head, pieces, spec):
        gate, at = spec.get("gate"), spec.get("gate_event")
        conn.write(head)
        for i, p in enumerate(pieces):
            if gate is not None and at and i == at:
                self._wait_gate(gate)
            conn.write(p)
            if spec.get("pause"):
                time.sleep(spec["pause"])

    @staticmethod
    def _chunks(payload, parts, spec):
        cut = spec.get("chunks")
        if isinstance(cut, int):
            return [payload[i:i + cut] for i in range(0, len(payload), cut)]
        if cut:
            cuts = [0] + [c for c in sorted(cut) if 0 < c < len(payload)] \
                + [len(payload)]
            return [payload[a:b] for a, b in zip(cuts, cuts[1:])]
        out, at = [], 0
        for p in parts:
            if at >= len(payload):
                break
            out.append(payload[at:at + len(p)])
            at += len(p)
        return [p for p in out if p]

    @staticmethod
    def _fault_end(parts, fault):
        """(how many bytes are sent, None|close|stall|reset)."""
        whole = b"".join(parts)
        ends = [0]
        for p in parts:
            ends.append(ends[-1] + len(p))
        for key, action in (("cut", "close"), ("stall", "stall"),
                            ("reset", "reset")):
            if key in fault:
                return fault[key], action
            if key + "_event" in fault:
                return ends[min(fault[key + "_event"], len(parts))], action
            if key + "_after" in fault:
                mark = fault[key + "_after"].encode("utf-8")
                at = whole.find(mark)
                if at < 0:
                    raise ValueError("fault: text not in the stream")
                return at + len(mark), action
        if "error_event" in fault and fault.get("then") == "close":
            return len(whole), "close"
        return len(whole), None


# ---- the command ---------------------------------------------------------

def main(argv):
    p = argparse.ArgumentParser(description="scripted Messages API")
    p.add_argument("script")
    p.add_argument("--tls", metavar="DIR", help="make a test CA and a "
                   "certificate for localhost there and speak TLS")
    p.add_argument("--tls-kind", default="ecdsa",
                   help="rsa, ecdsa, chain (see certs.py)")
    p.add_argument("--port-file")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--log", help="one JSON line per request")
    p.add_argument("--stdin", action="store_true",
                   help="end when stdin ends")
    a = p.parse_args(argv)
    with open(a.script, encoding="utf-8") as f:
        script = json.load(f)
    if isinstance(script, list):
        script = {"turns": script}
    options = dict(script.get("options") or {}, loop=script.get("loop",
                                                                False))
    if "routes" in script:
        options["routes"] = [(r["match"], r["turns"])
                             for r in script["routes"]]
    if a.tls:
        import certs
        options["tls"] = certs.Authority(a.tls).leaf(a.tls_kind)
    api = FakeApi(script.get("turns") or [], host=a.host, port=a.port,
                  **options)
    done = threading.Event()
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, lambda *_: done.set())
    if a.port_file:
        with open(a.port_file + ".new", "w") as f:
            f.write("%d\n" % api.port)
        os.rename(a.port_file + ".new", a.port_file)
    print(api.url, flush=True)
    while not done.is_set():
        if a.stdin:
            if select.select([0], [], [], 0.2)[0] and not os.read(0, 4096):
                break
        else:
            done.wait(0.2)
    api.close()
    if a.log:
        with open(a.log, "w", encoding="utf-8") as f:
            for r in api.requests:
                f.write(_dumps({"method": r.method, "target": r.target,
                                "headers": r.header_list, "error": r.error,
                                "body": r.raw.decode("utf-8", "replace")})
                        + "\n")
    for v in api.violations:
        print("violation: " + v, file=sys.stderr)
    if api.unused() and not options["loop"]:
        print("%d turns were not asked for" % api.unused(), file=sys.stderr)
    return 1 if api.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
