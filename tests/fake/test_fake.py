"""The fake API's own tests: what it lets pass, refuses, and breaks."""

import copy
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import threading

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import certs                                              # noqa: E402
import rawjson                                            # noqa: E402
from fakeapi import (FakeApi, block, redacted, text, thinking,  # noqa: E402
                     tool, turn)
from proxy import Proxy                                   # noqa: E402

HEADERS = {"x-api-key": "sk-fake-key", "anthropic-version": "2023-06-01",
           "content-type": "application/json", "user-agent": "test/1",
           "accept": "application/json"}
EPHEMERAL = {"type": "ephemeral"}
TOOLS = [{"name": "Bash", "description": "runs",
          "input_schema": {"type": "object", "properties": {
              "command": {"type": "string"}}, "required": ["command"]}}]


def user(*blocks):
    return {"role": "user", "content": [
        {"type": "text", "text": b} if isinstance(b, str) else b
        for b in blocks]}


def call(id="toolu_1", **input):
    return {"type": "tool_use", "id": id, "name": "Bash",
            "input": input or {"command": "ls"}}


def result(id="toolu_1", content="ok", **more):
    return dict({"type": "tool_result", "tool_use_id": id,
                 "content": content}, **more)


def said(*blocks):
    return dict(user(*blocks), role="assistant")


def good(**more):
    return dict({"model": "claude-sonnet-5-5", "max_tokens": 1000,
                 "stream": True, "system": [{"type": "text", "text": "s"}],
                 "tools": copy.deepcopy(TOOLS), "messages": [user("hi")]},
                **more)


def dumps(value):
    return json.dumps(value, ensure_ascii=False,
                      separators=(",", ":")).encode()


def post(api, body, headers=None, conn=None, path="/v1/messages"):
    """(status, body bytes, headers)"""
    c = conn or http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
    c.request("POST", api.prefix + path,
              body if isinstance(body, bytes) else dumps(body),
              HEADERS if headers is None else headers)
    r = c.getresponse()
    data = r.read()
    if conn is None:
        c.close()
    return r.status, data, dict(r.getheaders())


def events(data):
    """The stream as a strict reader sees it: [(name, object)]."""
    out = []
    for part in data.decode().replace("\r\n", "\n").replace(
            "\r", "\n").split("\n\n"):
        name, lines = None, []
        for line in part.split("\n"):
            if line.startswith("event:"):
                name = line[6:].lstrip(" ")
            elif line.startswith("data:"):
                d = line[5:]
                lines.append(d[1:] if d.startswith(" ") else d)
        if lines:
            d = "\n".join(lines)
            out.append((name, d if d == "[DONE]" else json.loads(d)))
    return out


def text_of(data):
    return "".join(e["delta"]["text"] for n, e in events(data)
                   if n == "content_block_delta")


# ---- rawjson -------------------------------------------------------------

def test_raw_slices():
    raw = rawjson.parse(b' {"a" : 1.50, "b":[ {"x":"\\u00e9"} , 3e2 ]} ')
    assert [k for k, _ in raw.members()] == ["a", "b"]
    assert raw.get("a").text == "1.50"
    assert [r.text for r in raw.get("b").items()] == ['{"x":"\\u00e9"}',
                                                      "3e2"]
    assert rawjson.parse(b"[]").items() == []
    assert rawjson.parse(b"{}").members() == []


@pytest.mark.parametrize("given,want", [
    ('{"a":1,"cc":{"x":[1,2]},"b":2}', '{"a":1,"b":2}'),
    ('{"cc":1, "b":2}', '{"b":2}'),
    ('{"a":1, "cc":1}', '{"a":1}'),
    ('{"cc":1}', '{}'),
    ('{"cc":1,"cc":2,"a":3}', '{"a":3}'),
    ('{"a":"cc"}', '{"a":"cc"}'),
])
def test_raw_without(given, want):
    assert rawjson.parse(given.encode()).without("cc") == want


@pytest.mark.parametrize("body", [
    b"", b"{", b"{}x", b'"\xff"', b'"\xc3"', b'"\\ud800"', b'"\\udc00a"',
    b"NaN", b"[1,]", b'"a\nb"', b"{'a':1}", b"\xef\xbb\xbf{}",
    b'"\xed\xa0\x80"', b"[" * 100000,
])
def test_raw_refuses(body):
    with pytest.raises(ValueError):
        rawjson.parse(body)


def test_raw_pairs_of_surrogates_are_fine():
    assert rawjson.parse(b'"\\ud83d\\ude00"').value == "\U0001f600"


def test_raw_compact():
    assert rawjson.compact('{ "a b" :\n1, "\\" " : [ ] }') == \
        '{"a b":1,"\\" ":[]}'


# ---- good requests -------------------------------------------------------

def test_stream_and_loop_of_tools():
    script = [turn(thinking("why \"so\" \U0001f600 ", "c2ln"), redacted("xx"),
                   text("a", extra={"citations": None}),
                   tool("Bash", raw='{"n":12345678901234567890,"e":"\\u00e9",'
                        '"f":1.50}', pieces=3, id="toolu_9"),
                   block('{"type":"new_kind","v":1.0,"x":{"b":1,"a":2}}')),
              turn("done")]
    with FakeApi(script) as api:
        status, data, headers = post(api, good())
        assert status == 200
        assert headers["Content-Type"].startswith("text/event-stream")
        got = events(data)
        assert [n for n, _ in got][0] == "message_start"
        assert [n for n, _ in got][-2:] == ["message_delta", "message_stop"]
        assert all(n == e["type"] for n, e in got)
        parts = [e["delta"]["partial_json"] for n, e in got if n ==
                 "content_block_delta" and "partial_json" in e["delta"]]
        assert json.loads("".join(parts))["f"] == 1.5 and len(parts) > 5
        back = dumps(good())[:-2] + (
            ',{"role":"assistant","content":['
            '{"type":"thinking","thinking":"why \\"so\\" \\ud83d\\ude00 ",'
            '"signature":"c2ln"},{"type":"redacted_thinking","data":"xx"},'
            '{"type":"text","text":"a","citations":null},'
            '{"type":"tool_use","id":"toolu_9","name":"Bash","input":'
            '{"n":12345678901234567890,"e":"\\u00e9","f":1.50}},'
            '{"type":"new_kind","v":1.0,"x":{"b":1,"a":2}}]},').encode() \
            + dumps(user(result("toolu_9", cache_control=EPHEMERAL))) + b"]}"
        status, data, _ = post(api, back)
        assert (status, api.violations) == (200, [])
        assert text_of(data) == "done"
        assert api.unused() == 0
        for a, b in ((b"12345678901234567890", b"12345678901234567000"),
                     (b"1.50", b"1.5"), (b"\\u00e9", "é".encode()),
                     (b'"v":1.0', b'"v":1'), (b'"b":1,"a":2', b'"a":2,"b":1'),
                     (b"\\ude00 ", b"\\ude00"), (b"c2ln", b"c2lm"),
                     (b',"citations":null', b''),
                     (b'{"type":"redacted_thinking","data":"xx"},', b'')):
            assert a in back
            status, data, _ = post(api, back.replace(a, b))
            assert status == 400, (a, b)
    assert len(api.refusals) == 9


def test_json_when_not_streaming():
    with FakeApi([turn("x", tool("Bash", {"command": "é"}))]) as api:
        status, data, headers = post(api, good(stream=False))
        m = json.loads(data)
        assert status == 200 and headers["Content-Type"] == "application/json"
        assert m["content"][1]["input"] == {"command": "é"}
        assert m["stop_reason"] == "tool_use" and m["usage"]["input_tokens"]


def test_keep_alive_and_raw_record():
    with FakeApi([turn("1"), turn("2")]) as api:
        c = http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
        post(api, good(), conn=c)
        body = b' {"model":"claude-opus-5-5", "max_tokens":5, "stream":true,' \
            b'"messages":[{"role":"user","content":"other"}]}'
        post(api, body, conn=c)
        c.close()
        assert [r.conn.number for r in api.requests] == [0, 0]
        assert api.requests[1].raw == body
        assert api.violations == []


def test_marks_may_move_and_messages_merge():
    with FakeApi([turn(tool("Bash", {"command": "ls"}, id="t1")),
                  turn("x", id="m"), turn("y")]) as api:
        first = good(messages=[user(dict(type="text", text="a",
                                         cache_control=EPHEMERAL))])
        assert post(api, first)[0] == 200
        m = [user("a"), said(call("t1")),
             user(result("t1", cache_control=EPHEMERAL)), user("more")]
        assert post(api, good(messages=m))[0] == 200
        m2 = [user("a"), said(call("t1")), user(result("t1")), user("more"),
              said("x"), user(dict(type="text", text="b",
                                   cache_control={"type": "ephemeral",
                                                  "ttl": "5m"}))]
        assert post(api, good(messages=m2))[0] == 200
        assert api.violations == []


def test_cache_simulation():
    long = "w" * 4000
    with FakeApi(loop=True, script=[turn("x")], cache=True) as api:
        body = good(system=[{"type": "text", "text": long,
                             "cache_control": EPHEMERAL}])
        u1 = events(post(api, body)[1])[0][1]["message"]["usage"]
        u2 = events(post(api, body)[1])[0][1]["message"]["usage"]
        assert u1["cache_creation_input_tokens"] > 1000
        assert u1["cache_read_input_tokens"] == 0
        assert u2["cache_read_input_tokens"] > 1000
        assert u2["cache_creation_input_tokens"] == 0


# ---- refusals ------------------------------------------------------------

def png(w, h):
    import base64
    import struct
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + struct.pack(
        ">I4sII", 13, b"IHDR", w, h) + b"\x08\x02\0\0\0").decode()


def image(data, media="image/png"):
    return {"type": "image", "source": {"type": "base64",
                                        "media_type": media, "data": data}}


def schema(**s):
    return [{"name": "x", "input_schema": s}]


def marked(n):
    return [dict(type="text", text="t", cache_control=EPHEMERAL)
            for _ in range(n)]


REFUSED = [
    ("no model", dict(model=None), "model"),
    ("no messages", dict(messages=[]), "at least one message"),
    ("extra field", dict(foo=1), "foo: Extra inputs are not permitted"),
    ("beta field", dict(context_management={}), "Extra inputs"),
    ("temperature", dict(temperature=1), "`temperature`"),
    ("top_k", dict(top_k=5), "`top_k`"),
    ("max_tokens", dict(max_tokens=128001), "128001 > 128000"),
    ("max_tokens of haiku", dict(model="claude-haiku-4-5-20251001",
                                 max_tokens=64001), "64001 > 64000"),
    ("max_tokens type", dict(max_tokens="5"), "valid integer"),
    ("max_tokens zero", dict(max_tokens=0), "greater than 0"),
    ("no stream", dict(stream=False, max_tokens=32000), "streaming is"),
    ("unknown model", dict(model="claude-nope-1"), "model: claude-nope-1"),
    ("thinking enabled", dict(thinking={"type": "enabled",
                                        "budget_tokens": 2000}),
     "thinking.type.enabled"),
    ("thinking budget", dict(model="claude-sonnet-4-5", max_tokens=4000,
                             thinking={"type": "enabled",
                                       "budget_tokens": 4000}),
     "budget_tokens"),
    ("effort", dict(output_config={"effort": "huge"}), "effort"),
    ("effort of 4.5", dict(model="claude-sonnet-4-5",
                           output_config={"effort": "low"}), "effort"),
    ("forced choice", dict(tool_choice={"type": "any"}), "forced tool use"),
    ("choice without tools", dict(tools=[], tool_choice={"type": "auto"}),
     "together with tools"),
    ("metadata", dict(metadata={"user": "x"}), "metadata.user"),
    ("blank stop", dict(stop_sequences=[" "]), "stop_sequences"),
    ("empty text", dict(messages=[user("")]), "must be non-empty"),
    ("blank text", dict(messages=[user(" \n\t")]), "must be non-empty"),
    ("blank string", dict(messages=[{"role": "user", "content": " "}]),
     "must be non-empty"),
    ("empty content", dict(messages=[user()]), "non-empty content"),
    ("empty system", dict(system=[{"type": "text", "text": ""}]),
     "non-empty"),
    ("other's identity", dict(system=[{
        "type": "text", "text":
        "You are Claude Code, Anthropic's official CLI for Claude."}]),
     "identity"),
    ("first is assistant", dict(messages=[said("a"), user("b")]),
     "first message"),
    ("prefill", dict(messages=[user("a"), said("b")]), "prefill"),
    ("role", dict(messages=[{"role": "tool", "content": "x"}]), "role"),
    ("system first", dict(messages=[{"role": "system", "content": "x"},
                                    user("a")]), "must not be first"),
    ("system in the middle", dict(messages=[
        user("a"), {"role": "system", "content": "x"}, user("b")]),
     "must be last or be"),
    ("system on an old model", dict(model="claude-sonnet-5", messages=[
        user("a"), {"role": "system", "content": "x"}]), "not supported"),
    ("no result", dict(messages=[user("a"), said(call()), user("b")]),
     "were found without `tool_result`"),
    ("no result, two calls", dict(messages=[
        user("a"), said(call("a"), call("b")), user(result("a"))]),
     "immediately after: b"),
    ("call at the end", dict(messages=[user("a"), said(call())]), "prefill"),
    ("result later", dict(messages=[
        user("a"), said(call()), user("x"), said("y"), user(result())]),
     "were found without"),
    ("unknown id", dict(messages=[user("a"), said(call()),
                                  user(result(), result("zz"))]),
     "unexpected `tool_use_id`"),
    ("two results", dict(messages=[user("a"), said(call()),
                                   user(result(), result())]),
     "single result"),
    ("text before the result", dict(messages=[
        user("a"), said(call()), user("t", result())]), "must come before"),
    ("id used twice", dict(messages=[
        user("a"), said(call()), user(result()), said(call()),
        user(result())]), "must be unique"),
    ("result without a call", dict(messages=[user(result())]), "unexpected"),
    ("no tools", dict(tools=[], messages=[user("a"), said(call()),
                                          user(result())]), "define tools"),
    ("input no object", dict(messages=[
        user("a"), said(dict(call(), input="{}")), user(result())]),
     "valid dictionary"),
    ("id chars", dict(messages=[user("a"), said(call("a b")),
                                user(result("a b"))]), "id: String"),
    ("empty result text", dict(messages=[
        user("a"), said(call()), user(result(content=[
            {"type": "text", "text": ""}]))]), "non-empty"),
    ("blank result", dict(messages=[user("a"), said(call()),
                                    user(result(content=""))]), "non-empty"),
    ("picture in an error", dict(messages=[
        user("a"), said(call()), user(result(content=[image(png(1, 1))],
                                             is_error=True))]), "is_error"),
    ("is_error", dict(messages=[user("a"), said(call()),
                                user(result(is_error=1))]), "boolean"),
    ("user's tool_use", dict(messages=[user(call())]), "only be in assist"),
    ("thinking of a user", dict(messages=[user(
        {"type": "thinking", "thinking": "x", "signature": "y"})]),
     "only be in assist"),
    ("thinking unsigned", dict(messages=[user("a"), said(
        {"type": "thinking", "thinking": "x", "signature": ""}, "b"),
        user("c")]), "signature"),
    ("unknown block", dict(messages=[user({"type": "foo"})]), "Input tag"),
    ("extra in block", dict(messages=[user(
        {"type": "text", "text": "x", "foo": 1})]), "foo: Extra"),
    ("extra in message", dict(messages=[dict(user("x"), id="m")]),
     "id: Extra"),
    ("five marks", dict(messages=[user(*marked(5))]), "A maximum of 4"),
    ("five marks, spread", dict(
        system=marked(2), tools=[dict(TOOLS[0], cache_control=EPHEMERAL)],
        messages=[user(*marked(2))]), "Found 5"),
    ("hour after five minutes", dict(
        system=marked(1), messages=[user(dict(
            type="text", text="x", cache_control={"type": "ephemeral",
                                                  "ttl": "1h"}))]),
     "must not come after"),
    ("mark type", dict(messages=[user(dict(
        type="text", text="x", cache_control={"type": "forever"}))]),
     "'ephemeral'"),
    ("mark on thinking", dict(messages=[user("a"), said(
        {"type": "thinking", "thinking": "x", "signature": "y",
         "cache_control": EPHEMERAL}, "b"), user("c")]), "Extra inputs"),
    ("mark in a result", dict(messages=[
        user("a"), said(call()), user(result(content=[dict(
            type="text", text="x", cache_control=EPHEMERAL)]))]),
     "mark the tool_result"),
    ("tool name", dict(tools=[dict(TOOLS[0], name="a.b")]), "pattern"),
    ("tool name length", dict(tools=[dict(TOOLS[0], name="a" * 65)]),
     "pattern"),
    ("tool twice", dict(tools=TOOLS + TOOLS), "unique"),
    ("tool field", dict(tools=[dict(TOOLS[0], foo=1)]), "foo: Extra"),
    ("tool type", dict(tools=[dict(TOOLS[0], type="mine")]), "tool type"),
    ("no schema", dict(tools=[{"name": "x"}]), "valid dictionary"),
    ("schema type", dict(tools=schema(type="string")), "'object'"),
    ("schema anyOf", dict(tools=schema(type="object", anyOf=[])), "anyOf"),
    ("schema key", dict(tools=schema(type="object", properties={
        "a b": {}})), "Property keys"),
    ("schema sub-type", dict(tools=schema(type="object", properties={
        "a": {"type": "text"}})), "unknown type"),
    ("schema required", dict(tools=schema(type="object", properties={
        "a": {}}, required=["b"])), "required"),
    ("picture type", dict(messages=[user(image(png(9, 9), "image/jpeg"))]),
     "appears to be"),
    ("picture size", dict(messages=[user(image(png(9000, 10)))]), "8000"),
    ("picture data", dict(messages=[user(image("%%%"))]), "base64"),
]


@pytest.mark.parametrize("name,change,message", REFUSED,
                         ids=[r[0] for r in REFUSED])
def test_refused(name, change, message):
    body = {k: v for k, v in good(**change).items() if v is not None}
    with FakeApi([turn("x")]) as api:
        status, data, _ = post(api, body)
        error = json.loads(data)
        assert error["type"] == "error"
        assert message in error["error"]["message"]
        want = 404 if name == "unknown model" else 400
        assert (status, error["error"]["type"]) == (
            want, "not_found_error" if want == 404
            else "invalid_request_error")
        assert api.violations and api.requests[0].error


ACCEPTED = [
    dict(messages=[user("a"), said("x"), user("b")]),
    dict(messages=[{"role": "user", "content": "plain"}], system="s"),
    dict(messages=[user("a"), said(call()), user(result(), "directive")]),
    dict(messages=[user("a"), said(call("a"), call("b")),
                   user(result("b"), result("a", is_error=True))]),
    dict(messages=[user("a"), {"role": "system", "content": "x"}]),
    dict(messages=[user(image(png(8000, 10)))]),
    dict(messages=[user("a"), said(call()),
                   user(result(content=[image(png(9, 9))]))]),
    dict(thinking={"type": "adaptive"}, output_config={"effort": "max"}),
    dict(model="claude-sonnet-4-5-20250929", temperature=1),
    dict(tools=schema(type="object")), dict(metadata={"user_id": "u"}),
    dict(system=marked(1), messages=[user(*marked(3))]),
]


@pytest.mark.parametrize("change", ACCEPTED)
def test_accepted(change):
    with FakeApi([turn("x")]) as api:
        assert post(api, good(**change))[0] == 200
        assert api.violations == []


@pytest.mark.parametrize("body,message", [
    (dumps(good())[:-1], "not valid JSON"),
    (dumps(good()).replace(b'"hi"', b'"h\xff"'), "not valid JSON"),
    (dumps(good()).replace(b'"hi"', b'"\\ud83d"'), "lone surrogate"),
    (b'{"max_tokens":1,' + dumps(good())[1:], "key given twice"),
    (b"[]", "object"),
    (dumps(good(messages="x")), "at least one"),
    (dumps(good(messages=[5])), "malformed"),
    (dumps(good(system=5, messages=[{"role": "user"}])), "system"),
])
def test_bad_bodies(body, message):
    with FakeApi([turn("x")]) as api:
        status, data, _ = post(api, body)
        assert status == 400
        assert message in json.loads(data)["error"]["message"]


@pytest.mark.parametrize("change,status,message", [
    ({"x-api-key": None}, 401, "x-api-key"),
    ({"x-api-key": "other"}, 401, "invalid x-api-key"),
    ({"x-api-key": None, "authorization": "Bearer no"}, 401, "bearer"),
    ({"anthropic-version": None}, 400, "anthropic-version"),
    ({"anthropic-version": "2020-01-01"}, 400, "unknown version"),
    ({"content-type": "text/plain"}, 400, "content-type"),
    ({"user-agent": None}, 400, "user-agent"),
    ({"user-agent": "claude-cli/2.1 (external)"}, 400, "pretends"),
    ({"x-stainless-lang": "js"}, 400, "another client"),
    ({"x-app": "cli"}, 400, "another client"),
    ({"accept-encoding": "gzip"}, 400, "accept-encoding"),
    ({"anthropic-beta": "nope-1"}, 400, "Unexpected value(s) `nope-1`"),
])
def test_bad_headers(change, status, message):
    headers = {k: v for k, v in dict(HEADERS, **change).items()
               if v is not None}
    with FakeApi([turn("x")]) as api:
        # http.client adds a header of its own; speak plainly.
        body = dumps(good())
        head = "POST /v1/messages HTTP/1.1\r\nHost: x\r\n" + "".join(
            "%s: %s\r\n" % kv for kv in headers.items()) \
            + "Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        got = raw_exchange(api, head.encode() + body)
        assert got.startswith(b"HTTP/1.1 %d " % status)
        assert message in json.loads(got.split(b"\r\n\r\n")[1])["error"][
            "message"]


def raw_exchange(api, data, until=None):
    with socket.create_connection(("127.0.0.1", api.port), 10) as s:
        s.sendall(data)
        out = b""
        while True:
            try:
                part = s.recv(65536)
            except ConnectionResetError:
                return out + b"<reset>"
            out += part
            if not part or until and until in out or until is None \
                    and b"\r\n\r\n" in out and out.endswith(b"}"):
                return out


def request_bytes(body=None, **headers):
    body = body or dumps(good())
    head = dict(HEADERS, host="x", **headers)
    head["content-length"] = len(body)
    return ("POST /v1/messages HTTP/1.1\r\n" + "".join(
        "%s: %s\r\n" % kv for kv in head.items())
        + "\r\n").encode() + body


def test_bearer_and_both_credentials():
    with FakeApi([turn("x"), turn("y")]) as api:
        h = {k: v for k, v in HEADERS.items() if k != "x-api-key"}
        assert post(api, good(), dict(h, authorization="Bearer sk-fake-key")
                    )[0] == 200
        assert api.violations == []


def test_prefix_moves_are_refused():
    with FakeApi([turn("x")] * 9) as api:
        assert post(api, good())[0] == 200
        base = [user("hi"), said("x"), user("b")]
        for change, word in ((dict(system=[{"type": "text", "text": "S"}]),
                              "'system' changed"),
                             (dict(tools=[dict(TOOLS[0], description="y")]),
                              "'tools' changed"),
                             (dict(model="claude-opus-5-5"), "model changed"),
                             (dict(thinking={"type": "adaptive"}), "prefix"),
                             (dict(messages=[user("ha"), said("x"),
                                             user("b")]), "messages.0"),
                             (dict(messages=[user("hi"), said("y"),
                                             user("b")]), "text block chan"),
                             (dict(messages=[user("hi"), user("b")]),
                              "missing")):
            status, data, _ = post(api, good(**dict(dict(messages=base),
                                                    **change)))
            assert status == 400
            assert word in json.loads(data)["error"]["message"]
        assert post(api, good(messages=[user("ha")]))[0] == 200
        assert post(api, good(messages=base))[0] == 200
        longer = base + [said("x"), user("c")]
        assert post(api, good(messages=longer))[0] == 200
        longer[2] = user("B")
        status, data, _ = post(api, good(messages=longer))
        assert status == 400 and b"messages.2 changed" in data
        status, data, _ = post(api, good(messages=longer[:3]))
        assert status == 400 and b"messages.2 changed" in data
        api.forks = True
        assert post(api, good(messages=longer[:3]))[0] == 200


def test_cut_turns_may_be_left_out():
    for back in ([], [said("part")]):
        with FakeApi([turn("part", tool("Bash", raw='{"comm'),
                           stop="max_tokens"), turn("ok")]) as api:
            post(api, good())
            m = [user("hi")] + back + [user("go on")]
            assert post(api, good(messages=m))[0] == 200
            assert api.violations == []


def test_paused_turn_goes_on():
    with FakeApi([turn("a", stop="pause_turn"), turn("b")]) as api:
        post(api, good())
        assert post(api, good(messages=[user("hi"), said("a")]))[0] == 200
        m = [user("hi"), said("a"), said("b")]
        assert post(api, good(messages=m))[0] == 400


def test_blank_text_does_not_come_back():
    with FakeApi([turn(" \n", tool("Bash", {"command": "ls"}, id="t")),
                  turn("ok")]) as api:
        post(api, good())
        m = [user("hi"), said(call("t")), user(result("t"))]
        assert post(api, good(messages=m))[0] == 200
        assert api.violations == []


# ---- wire and faults -----------------------------------------------------

WORDS = "北京 \U0001f642 é \"q\" \\ \n end"


@pytest.mark.parametrize("wire", [
    dict(), dict(eol="\r\n"), dict(eol="\r"), dict(comments=True),
    dict(data_space=False), dict(multi_data=True), dict(pings=True),
    dict(chunks=1), dict(split=1), dict(split=7), dict(length=True),
    dict(http10=True), dict(close_header=True), dict(bom=True),
    dict(chunk_ext=True), dict(trailers=True), dict(head_case=str.upper),
    dict(comments=True, eol="\r\n", multi_data=True, chunks=3),
], ids=str)
def test_wire_forms_keep_the_text(wire):
    with FakeApi([turn(text(WORDS, pieces=2), **wire)]) as api:
        status, data, _ = post(api, good())
        assert status == 200
        if wire.get("bom"):
            assert data[:3] == b"\xef\xbb\xbf"
            data = data[3:]
        assert text_of(data) == WORDS
        if wire.get("comments"):
            assert b": comment 0" in data
        assert api.violations == []


def test_left_out_fields():
    omit = {"usage", "input", "index", "stop_reason", "id"}
    with FakeApi([turn(tool("Bash", {"command": "x"}), "t", omit=omit,
                       done=True)]) as api:
        got = events(post(api, good())[1])
        assert got[-1] == (None, "[DONE]")
        assert "usage" not in got[0][1]["message"]
        assert "id" not in got[0][1]["message"]
        starts = [e for n, e in got if n == "content_block_start"]
        assert "input" not in starts[0]["content_block"]
        assert all("index" not in e for n, e in got if n != "[DONE]"
                   and isinstance(e, dict))
    with FakeApi([turn("t", null_usage=True, event_names=False)]) as api:
        got = events(post(api, good())[1])
        assert got[0][0] is None
        assert got[0][1]["message"]["usage"]["output_tokens"] is None


def whole_stream():
    with FakeApi([turn("hello")]) as api:
        return raw_exchange(api, request_bytes(), b"0\r\n\r\n")


def test_faults_cut_and_reset():
    whole = whole_stream().split(b"\r\n\r\n", 1)[1]
    for fault, mark in ((dict(cut=40), b""), (dict(reset=40), b"<reset>"),
                        (dict(cut_event=2), b""),
                        (dict(cut_after="he"), b"")):
        with FakeApi([turn("hello", faults=[fault]), ]) as api:
            got = raw_exchange(api, request_bytes(), b"no such thing")
            body = got.split(b"\r\n\r\n", 1)[1]
            assert not body.endswith(b"0\r\n\r\n") and body.endswith(mark)
            assert len(body) < len(whole)
            if "cut_event" in fault:
                assert body.count(b"event: ") == 2
            got = raw_exchange(api, request_bytes(), b"0\r\n\r\n")
            assert got.endswith(b"0\r\n\r\n")
            assert api.requests[1].attempt == 1
            assert api.violations == []
    with FakeApi([turn("x", faults=[dict(drop=True)])]) as api:
        assert raw_exchange(api, request_bytes()) == b""


def test_stall_ends_when_the_client_goes():
    with FakeApi([turn("hello", faults=[dict(stall_event=1)])]) as api:
        s = socket.create_connection(("127.0.0.1", api.port), 10)
        s.sendall(request_bytes())
        got = b""
        while b"message_start" not in got:
            got += s.recv(9999)
        s.settimeout(0.2)
        with pytest.raises(TimeoutError):
            while True:
                assert s.recv(9999)
        s.close()
        assert api.conns[0].client_closed.wait(5)


def test_error_answers():
    faults = [dict(status=529, headers={"retry-after": "1",
                                        "x-should-retry": "true"}),
              dict(status=502, body="<html>no</html>",
                   content_type="text/html"),
              dict(status=503, shape="compat"),
              dict(error_event=2),
              dict(raw=b"nonsense\r\n\r\n")]
    with FakeApi([turn("x", faults=faults)]) as api:
        status, data, headers = post(api, good())
        assert (status, headers["retry-after"]) == (529, "1")
        assert json.loads(data)["error"]["type"] == "overloaded_error"
        status, data, headers = post(api, good())
        assert (status, data) == (502, b"<html>no</html>")
        assert json.loads(post(api, good())[1])["error"]["code"] == 503
        got = events(post(api, good())[1])
        assert [n for n, _ in got] == ["message_start",
                                       "content_block_start", "error"]
        assert raw_exchange(api, request_bytes(), b"\0") == \
            b"nonsense\r\n\r\n"
        assert text_of(post(api, good())[1]) == "x"
        assert api.violations == []


def test_retry_must_be_identical():
    with FakeApi([turn("x", faults=[dict(status=500)])]) as api:
        post(api, good())
        status, data, _ = post(api, good(max_tokens=999))
        assert status == 400 and b"not the same" in data


def test_gate_and_check():
    gate = threading.Event()
    with FakeApi([turn("x", gate=gate, gate_event=1,
                       check=lambda r: 1 / 0)]) as api:
        s = socket.create_connection(("127.0.0.1", api.port), 10)
        s.sendall(request_bytes())
        got = b""
        while b"message_start" not in got:
            got += s.recv(9999)
        assert b"text_delta" not in got
        gate.set()
        while b"message_stop" not in got:
            got += s.recv(9999)
        s.close()
        assert "ZeroDivisionError" in api.violations[0]


def test_closed_after_keep_alive():
    for how in (True, "rst"):
        with FakeApi([turn("x", close_after=how), turn("y")]) as api:
            c = http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
            status, _, headers = post(api, good(), conn=c)
            assert status == 200 and "Connection" not in headers
            api.conns[0].join(5)
            with pytest.raises((ConnectionError,
                                http.client.RemoteDisconnected)):
                post(api, good(), conn=c)
            c.close()


def test_routes_script_function_and_end():
    with FakeApi([turn("main")], routes=[("special", [turn("side")])]) as api:
        assert text_of(post(api, good(messages=[user("special")]))[1]) == \
            "side"
        assert text_of(post(api, good())[1]) == "main"
        status, data, _ = post(api, good(messages=[user("more")]))
        assert status == 400 and b"no further turn" in data
    with FakeApi(lambda r: turn("n%d" % len(r.messages))) as api:
        assert text_of(post(api, good())[1]) == "n1"


def test_prefix_path_and_unknown_path():
    with FakeApi([turn("x")], prefix="/gw/a") as api:
        assert post(api, good())[0] == 200
        assert api.url.endswith("/gw/a")
        assert post(api, good(), path="/v2/messages")[0] == 404
        assert len(api.violations) == 1


# ---- TLS, proxy, command -------------------------------------------------

@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return certs.Authority(str(tmp_path_factory.mktemp("ca")))


def https(api, ca, name="localhost"):
    ctx = ssl.create_default_context(cafile=ca.pem)
    c = http.client.HTTPSConnection("127.0.0.1", api.port, context=ctx,
                                    timeout=10)
    c.sock = ctx.wrap_socket(socket.create_connection(
        ("127.0.0.1", api.port), 10), server_hostname=name)
    return c


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "chain"])
def test_tls(ca, kind):
    with FakeApi([turn("x")], tls=ca.leaf(kind)) as api:
        c = https(api, ca)
        assert c.sock.version() == "TLSv1.2"
        assert text_of(post(api, good(), conn=c)[1]) == "x"
        c.close()
        assert api.url.startswith("https://localhost:")


@pytest.mark.parametrize("kind,word", [
    ("wrong", "mismatch"), ("expired", "expired"), ("future", "not yet"),
    ("selfsigned", "self"), ("other", "unable to get"),
    ("nochain", "unable to get")])
def test_tls_bad_certificates(ca, kind, word):
    with FakeApi([turn("x")], tls=ca.leaf(kind)) as api:
        with pytest.raises(ssl.SSLCertVerificationError) as e:
            https(api, ca)
        assert word in str(e.value).lower()


def test_proxy_tunnel_and_credentials():
    with FakeApi([turn("x"), turn("y")]) as api, \
            Proxy(hosts={"api.test:80": ("127.0.0.1", api.port)},
                  user="u", password="p") as proxy:
        s = socket.create_connection(("127.0.0.1", proxy.port), 10)
        s.sendall(b"CONNECT api.test:80 HTTP/1.1\r\nHost: api.test\r\n\r\n")
        assert b" 407 " in s.recv(9999)
        s.close()
        s = socket.create_connection(("127.0.0.1", proxy.port), 10)
        s.sendall(b"CONNECT api.test:80 HTTP/1.1\r\nHost: api.test:80\r\n"
                  b"Proxy-Authorization: Basic dTpw\r\n\r\n")
        assert b" 200 " in s.recv(9999)
        s.sendall(request_bytes())
        got = b""
        while b"message_stop" not in got:
            got += s.recv(9999)
        s.close()
        assert [x["target"] for x in proxy.log] == ["api.test:80"] * 2


def test_proxy_absolute_form():
    with FakeApi([turn("x")]) as api, \
            Proxy(hosts={"api.test:80": ("127.0.0.1", api.port)}) as proxy:
        s = socket.create_connection(("127.0.0.1", proxy.port), 10)
        s.sendall(request_bytes().replace(b"POST /", b"POST http://api.test/"))
        got = b""
        while b"message_stop" not in got:
            got += s.recv(9999)
        s.close()
        assert proxy.log[0]["method"] == "POST"


def test_command(tmp_path):
    script = tmp_path / "s.json"
    script.write_text(json.dumps([
        {"content": [{"type": "text", "text": "from a file"}]},
        {"content": [{"type": "tool_use", "name": "Bash", "input": {}}]}]))
    p = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "fakeapi.py"), str(script),
         "--port-file", str(tmp_path / "port"), "--stdin"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    url = p.stdout.readline().decode().strip()

    class Api:
        port, prefix = int(url.rsplit(":", 1)[1]), ""
    assert (tmp_path / "port").read_text() == "%d\n" % Api.port
    assert text_of(post(Api, good())[1]) == "from a file"
    post(Api, good(max_tokens=0, messages=[user("other")]))
    p.stdin.close()
    err = p.stderr.read().decode()
    assert p.wait(10) == 1
    assert "violation: request 1: max_tokens" in err
    assert "1 turns were not asked for" in err
    p.stdout.close()
    p.stderr.close()
