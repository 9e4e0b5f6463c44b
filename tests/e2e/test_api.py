"""The API client: streams, dialects, retries, fallback, stop reasons."""

import json
import signal
import threading
import time

import pytest

from fakeapi import FakeApi, encode
from helpers import ALLOW, bash, block, block_texts, text, thinking, tool, turn

WORDS = "北京 \U0001f642 é \"q\" \\ \t end\nline two"
FAST = {"CLAUDE_STREAM_IDLE_TIMEOUT_MS": "700"}


def answer(r):
    assert r.status == 0, r
    assert r.out.endswith(b"\n")
    return r.out[:-1].decode()


# ---- streams (B22) -------------------------------------------------------

WIRES = [
    dict(), dict(eol="\r\n"), dict(eol="\r"), dict(comments=True),
    dict(data_space=False), dict(multi_data=True), dict(pings=True),
    dict(chunks=1), dict(split=1), dict(chunks=3, eol="\r\n"),
    dict(split=5, comments=True, eol="\r", multi_data=True),
    dict(length=True), dict(http10=True), dict(close_header=True),
    dict(bom=True), dict(done=True), dict(event_names=False),
    dict(interim=b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n"),
    dict(interim=b"HTTP/1.1 100 Continue\r\n\r\n", split=1),
    dict(content_type="text/event-stream"), dict(content_type=None),
    dict(content_type="Text/Event-Stream;Charset=UTF-8"),
    dict(content_type="application/octet-stream"),
    dict(chunk_ext=True), dict(trailers=True), dict(head_eol="\n"),
    dict(head_case=str.upper), dict(head_case=str.lower),
    dict(headers={"X-Long": "v" * 8000}),
]


@pytest.mark.asan
@pytest.mark.parametrize("wire", WIRES, ids=lambda w: ",".join(
    "%s=%s" % (k, str(v)[:12]) for k, v in w.items()) or "plain")
def test_wire_forms(fake, sub, wire):
    fake([turn(text(WORDS, pieces=1), bash("printf ok"), **wire),
          turn(text(WORDS, pieces=4), **wire)])
    r = sub("-p", "go", *ALLOW)
    assert answer(r) == WORDS
    assert r.err == b""


@pytest.mark.asan
def test_letters_cut_inside(fake, sub):
    """Every cut of a four-byte letter, each side in its own segment."""
    spec = turn(text(WORDS, pieces=[len(WORDS)]))
    with FakeApi([spec]) as probe:
        from fakeapi import Message

        class Q:
            json = {"model": "claude-sonnet-5-5"}
        whole = b"".join(encode(Message(spec, probe, Q, {
            "input_tokens": 25, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": 7}).events(),
            spec))
    at = whole.index("北".encode())
    end = whole.index(b" end")
    cuts = [c for c in range(at, end)
            if c > at and whole[c] & 0xc0 == 0x80]
    assert len(cuts) == 8
    fake([turn(text(WORDS, pieces=[len(WORDS)]), chunks=[c], pause=0.01)
          for c in cuts])
    for _ in cuts:
        assert answer(sub("-p", "go")) == WORDS


def test_large_events(fake, sub):
    big = "0123456789abcdef" * 65536 * 3     # 3 MiB in one delta
    fake([turn(text(big, pieces=[len(big)]))])
    assert answer(sub("-p", "go")) == big


def test_unknown_things_are_ignored(fake, sub):
    fake([turn("hello", extra=[
        (1, "shiny_event", '{"type":"shiny_event","x":{"y":[1,2,{}]}}'),
        (3, "content_block_delta", '{"type":"content_block_delta","index":0,'
         '"delta":{"type":"glow_delta","glow":1}}'),
        (4, "ping", '{"type":"ping"}')])])
    assert answer(sub("-p", "go")) == "hello"


def test_several_message_deltas(fake, sub):
    """Usage is cumulative: the last number counts, null keeps the old."""
    fake([turn("hi", usage={"input_tokens": 11, "output_tokens": 9},
               usage_start={"input_tokens": 11, "output_tokens": 1,
                            "cache_read_input_tokens": 70},
               extra=[(5, "message_delta", json.dumps({
                   "type": "message_delta",
                   "delta": {"stop_reason": None},
                   "usage": {"output_tokens": 4, "input_tokens": None,
                             "cache_read_input_tokens": 77}}))])])
    j = sub("-p", "go", "--output-format=json").json
    assert j["stop_reason"] == "end_turn"
    u = j["usage"]
    assert (u["input_tokens"], u["output_tokens"],
            u["cache_read_input_tokens"]) == (11, 9, 77)


DIALECTS = [
    dict(omit={"usage"}), dict(omit={"start_usage"}),
    dict(omit={"stop_usage"}), dict(null_usage=True), dict(omit={"input"}),
    dict(omit={"text"}), dict(omit={"index"}), dict(omit={"id"}),
    dict(omit={"content"}), dict(omit={"type"}),
    dict(omit={"block_stop"}), dict(omit={"stop_reason"}, done=True),
    dict(stop="null"),
    dict(omit={"usage", "input", "text", "id", "content"}, done=True,
         data_space=False),
]


@pytest.mark.asan
@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
def test_compatible_servers(fake, sub, dialect):
    """What llama-server, aimock and gateways leave out."""
    api = fake([turn(text("one"), bash("printf two"), **dialect),
                turn("three", **dialect)])
    r = sub("-p", "go", *ALLOW)
    assert answer(r) == "three"
    assert api.requests[1].result_text() == "two"


def test_json_answer_where_a_stream_was_asked(fake, sub):
    """Some gateways ignore "stream"."""
    body = json.dumps({"id": "m", "type": "message", "role": "assistant",
                       "model": "x", "content": [
                           {"type": "text", "text": "plain"}],
                       "stop_reason": "end_turn",
                       "usage": {"input_tokens": 1, "output_tokens": 1}})
    fake([turn("streamed", faults=[dict(status=200, body=body)])])
    sub.api.may_leave = True
    # Either it is understood, or it is a failed attempt that is repeated.
    assert answer(sub("-p", "go")) in ("plain", "streamed")


# ---- failed attempts (B23, B24) ------------------------------------------

FAULTS = [
    dict(status=500), dict(status=502, body="<html>bad</html>",
                           content_type="text/html"),
    dict(status=503, body=""), dict(status=504), dict(status=408),
    dict(status=409), dict(status=529), dict(status=429),
    dict(status=429, headers={"retry-after": "0"}),
    dict(status=429, headers={"retry-after": "0.05"}),
    dict(status=529, headers={"retry-after-ms": "20"}),
    dict(status=400, headers={"x-should-retry": "true"}),
    dict(status=503, shape="compat"),
    dict(drop=True), dict(reset=0), dict(reset=500),
    dict(cut=0), dict(cut=10), dict(cut_event=1), dict(cut_event=3),
    dict(cut_event=4, length=True), dict(cut_event=4, http10=True),
    dict(message_stop=False), dict(message_stop=False, http10=True),
    dict(message_stop=False, done=True),
    dict(error_event=1), dict(error_event=3), dict(error_event=4),
    dict(error_event=3, type="api_error"),
    dict(error_event=3, then="close"),
    dict(raw=b"\x15\x03\x01\x00\x02\x02\x28"),
    dict(raw=b"HTTP/1.1 200 OK\r\n"),
    dict(raw=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    dict(raw=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
         b"ffffffffffffffffff\r\nx"),
    dict(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n"
         b"\r\nevent"),
]


def fault_id(f):
    return ",".join("%s=%s" % (k, str(v)[:24]) for k, v in f.items())


@pytest.mark.asan
@pytest.mark.parametrize("fault", FAULTS, ids=fault_id)
def test_failed_attempt_is_sent_again(fake, sub, fault):
    """Half a text, then a fault: only the good answer counts, once."""
    api = fake([turn("good", usage={"input_tokens": 5, "output_tokens": 6},
                     faults=[dict(fault, turn=turn(
                         "half of a bad one", usage={
                             "input_tokens": 900, "output_tokens": 900}))])])
    r = sub("-p", "go", "--output-format=json")
    assert r.status == 0, r
    j = r.json
    assert j["result"] == "good"
    assert (j["usage"]["input_tokens"], j["usage"]["output_tokens"]) == (5, 6)
    assert len(api.requests) == 2
    assert api.requests[0].raw == api.requests[1].raw


@pytest.mark.asan
@pytest.mark.parametrize("fault", [
    dict(cut_after="touch bad"), dict(error_event=5), dict(error_event=6),
    dict(error_event=7), dict(message_stop=False), dict(cut_event=6),
    dict(reset_event=6)], ids=fault_id)
def test_no_tool_of_a_broken_stream_runs(fake, sub, fault):
    api = fake([turn(text("I"), bash("touch good"), faults=[dict(
        fault, turn=turn(text("I"), tool("Bash", raw=json.dumps(
            {"command": "touch bad"}), pieces=[200])))]), turn("done")])
    r = sub("-p", "go", *ALLOW)
    assert answer(r) == "done"
    assert not sub.exists("bad") and sub.exists("good")
    assert len(api.requests) == 3


@pytest.mark.parametrize("fault", [
    dict(status=400), dict(status=401), dict(status=402), dict(status=403),
    dict(status=404), dict(status=413),
    dict(status=500, headers={"x-should-retry": "false"}),
    dict(status=529, headers={"x-should-retry": "false"}),
    dict(status=400, message="prompt is too long: 1000001 tokens > 1000000 "
         "maximum"),
    dict(error_event=2, type="invalid_request_error"),
], ids=fault_id)
def test_final_errors(fake, sub, fault):
    api = fake([turn("x", faults=[dict(fault, message=fault.get(
        "message", "the words of the server"))] * 3)])
    api.may_leave = True
    r = sub("-p", "go", "--output-format=json")
    j = r.json
    assert r.status == 1 and j["is_error"] is True
    assert j["subtype"] == "success"
    assert len(api.requests) == 1
    if "status" in fault:
        assert j["api_error_status"] == fault["status"]
        assert fault.get("message", "the words of the server") in j["result"]
    assert j["terminal_reason"] == (
        "prompt_too_long" if "too long" in fault.get("message", "")
        else "api_error")


def test_html_of_a_proxy_is_reported_in_short(fake, sub):
    page = "<html><head><title>Gateway says no</title></head><body>" \
        + "<p>x</p>" * 20000 + "</body></html>"
    api = fake([turn("x", faults=[dict(status=403, body=page,
                                       content_type="text/html")])])
    api.may_leave = True
    r = sub("-p", "go")
    assert r.status == 1
    assert b"Gateway says no" in r.out and b"403" in r.out
    assert len(r.out) < 2000


def test_good_status_with_a_page_instead_of_a_stream(fake, sub):
    """A captive portal: 200 and HTML.  Not a success, not a crash."""
    api = fake([turn("x", faults=[dict(
        status=200, body="<html>log in first</html>",
        content_type="text/html")] * 3)])
    api.may_leave = True
    r = sub("-p", "go", env={"CLAUDE_CODE_MAX_RETRIES": "2"})
    assert r.status == 1
    assert b"log in first" in r.out or b"text/html" in r.out, r


def test_retries_end(fake, sub):
    api = fake([turn("x", faults=[dict(status=500)] * 99)])
    api.may_leave = True
    r = sub("-p", "go", env={"CLAUDE_CODE_MAX_RETRIES": "3"})
    assert (r.status, len(api.requests)) == (1, 4)
    assert b"Internal server error" in r.out


def test_no_retries(fake, sub):
    api = fake([turn("x", faults=[dict(status=500)] * 9)])
    api.may_leave = True
    r = sub("-p", "go", env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    assert (r.status, len(api.requests)) == (1, 1)


def test_retry_after_is_waited_for(fake, sub):
    """Without the header the wait is 5 ms here; with it, a second."""
    fake([turn("x", faults=[dict(status=429, headers={"retry-after": "1"})])])
    start = time.monotonic()
    assert answer(sub("-p", "go")) == "x"
    assert time.monotonic() - start >= 0.9


def test_huge_retry_after_is_cut_by_the_time_limit(fake, sub):
    api = fake([turn("x", faults=[dict(
        status=429, headers={"retry-after": "100000000000000000000"})] * 9)])
    api.may_leave = True
    r = sub("-p", "go", "--timeout", "1", "--output-format=json")
    assert r.status == 1 and r.json["is_error"]


def test_retry_of_a_later_turn_keeps_the_bytes(fake, sub):
    api = fake([turn(thinking("hm"), bash("printf a")),
                turn(bash("printf b"), faults=[dict(status=529),
                                               dict(cut_event=3)]),
                turn("done", faults=[dict(drop=True)])])
    assert answer(sub("-p", "go", *ALLOW)) == "done"
    assert api.requests[1].raw == api.requests[2].raw == api.requests[3].raw
    assert api.requests[4].raw == api.requests[5].raw


def test_silence_ends_an_attempt(fake, sub):
    fake([turn("second", faults=[dict(stall_event=1)])])
    assert answer(sub("-p", "go", env=FAST)) == "second"


@pytest.mark.parametrize("fault", [dict(stall=0), dict(stall_event=4),
                                   dict(raw=b"HTTP/1.1 2", hold=True)],
                         ids=fault_id)
def test_silence_for_ever_ends(fake, sub, fault):
    api = fake([turn("x", faults=[fault] * 5)])
    api.may_leave = True
    r = sub("-p", "go", "--output-format=json", env=dict(
        FAST, API_TIMEOUT_MS="700", CLAUDE_CODE_MAX_RETRIES="1"))
    assert r.status == 1 and r.json["is_error"]
    assert r.json["terminal_reason"] == "api_error"
    assert len(api.requests) == 2


def test_no_response_head(fake, sub):
    gate = threading.Event()
    api = fake([turn("x", gate=gate)] * 2)
    api.may_leave = True
    r = sub("-p", "go", env={"API_TIMEOUT_MS": "500",
                             "CLAUDE_CODE_MAX_RETRIES": "0"})
    gate.set()
    assert r.status == 1 and len(api.requests) == 1


def test_pings_keep_a_slow_answer_alive(fake, sub):
    """The limit is on silence: 30 slow events are longer than it is."""
    extra = [(3, "ping", '{"type":"ping"}')] * 24
    fake([turn("slow", extra=extra, pause=0.06)])
    assert answer(sub("-p", "go", env=FAST)) == "slow"
    assert len(sub.api.requests) == 1


# ---- fallback ------------------------------------------------------------

def test_fallback_after_three_overloads(fake, sub):
    api = fake([turn("x", same=False, faults=[dict(status=529)] * 3)])
    r = sub("-p", "go", "--model", "opus", "--fallback-model", "haiku",
            "--output-format=json")
    assert r.status == 0 and r.json["result"] == "x"
    assert [q.json["model"] for q in api.requests] == \
        ["claude-opus-5-5"] * 3 + ["claude-haiku-5-5"]
    assert list(r.json["modelUsage"]) == ["claude-haiku-5-5"]
    assert b"claude-haiku-5-5" in r.err


def test_fallback_when_the_model_is_missing(fake, sub):
    api = fake([turn("x", same=False, faults=[dict(status=404)])])
    r = sub("-p", "go", "--fallback-model", "claude-sonnet-5-5,haiku")
    assert answer(r) == "x"
    assert [q.json["model"] for q in api.requests] == [
        "claude-sonnet-5-5", "claude-haiku-5-5"]


def test_fallback_in_mid_conversation(fake, sub):
    """Parameters that the second model does not take are left out."""
    api = fake([turn(thinking("h"), bash("printf a")),
                turn("x", same=False, faults=[dict(status=529)] * 3)],
               model_change=True)
    r = sub("-p", "go", "--effort", "max", "--fallback-model",
            "claude-haiku-4-5", *ALLOW)
    assert answer(r) == "x"
    assert api.requests[-1].json["model"].startswith("claude-haiku-4-5")
    assert api.requests[-1].json["max_tokens"] <= 64000


def test_other_errors_do_not_fall_back(fake, sub):
    api = fake([turn("x", faults=[dict(status=500)] * 5)])
    r = sub("-p", "go", "--fallback-model", "haiku")
    assert answer(r) == "x"
    assert {q.json["model"] for q in api.requests} == {"claude-sonnet-5-5"}


# ---- stop reasons --------------------------------------------------------

def test_refusal(fake, sub):
    api = fake([turn("partial", bash("touch ran"), stop="refusal",
                     stop_details={"type": "refusal", "category": "cyber",
                                   "explanation": "not this one"})])
    r = sub("-p", "go", "--output-format=json", *ALLOW)
    j = r.json
    assert r.status == 1 and j["is_error"]
    assert j["stop_reason"] == "refusal"
    assert "not this one" in j["result"] and "partial" not in j["result"]
    assert not sub.exists("ran")
    assert len(api.requests) == 1


def test_pause_turn(fake, sub):
    api = fake([turn(block('{"type":"server_tool_use","id":"srvtoolu_1",'
                           '"name":"web_search","input":{"query":"q"}}'),
                     stop="pause_turn"), turn("after")])
    assert answer(sub("-p", "go")) == "after"
    assert api.requests[1].messages[-1]["role"] == "assistant"


def test_endless_pauses_end(fake, sub):
    def script(request):
        return turn(block('{"type":"server_tool_use","id":"srvtoolu_%d",'
                          '"name":"web_search","input":{}}'
                          % len(request.messages)), stop="pause_turn",
                    echo="any")
    api = fake(script, prefill=True, check_prefix=False)
    r = sub("-p", "go")
    assert r.status == 1
    assert 2 <= len(api.requests) <= 30


def test_cut_text_goes_on(fake, sub):
    api = fake([turn("first half, ", stop="max_tokens"),
                turn("second half")])
    r = sub("-p", "go", "--output-format=json")
    assert r.status == 0
    assert r.json["result"] == "first half, second half"
    assert r.json["num_turns"] == 2
    m = api.requests[1].messages
    assert m[-2]["role"] == "assistant" and m[-1]["role"] == "user"


@pytest.mark.asan
@pytest.mark.parametrize("raw,pieces", [
    ('{"file_path":"f","content":"ab', [99]), ("", None), ("{", None),
    ('{"file_path":"f","content":"whole"}', [99])])
def test_cut_call_is_not_run(fake, sub, raw, pieces):
    """B25.  With raw "" the call would run as {} if nobody looked."""
    api = fake([turn(text("I write"), tool("Write", raw=raw, pieces=pieces),
                     stop="max_tokens"), turn("smaller")])
    r = sub("-p", "go", "--permission-mode", "acceptEdits")
    if raw.endswith('"}'):
        # Whole JSON: running it is right, too, if it was answered.
        assert r.status == 0
        return
    assert answer(r) == "smaller"
    assert not sub.exists("f")
    said = "\n".join(block_texts(api.requests[1].messages[-1]))
    assert "cut" in said and any(c.isdigit() for c in said)


def test_endless_cut_calls_end(fake, sub):
    """B25: no endless repeat of the same cut call."""
    api = fake(lambda q: turn(tool("Write", raw='{"file_path":"f'),
                              stop="max_tokens"), check_prefix=False)
    r = sub("-p", "go", "--output-format=json",
            "--permission-mode=acceptEdits")
    assert r.status == 1 and r.json["is_error"]
    assert 2 <= len(api.requests) <= 10


def test_context_window_exceeded_is_not_a_success(fake, sub):
    def script(q):
        return turn("part", stop="model_context_window_exceeded")
    api = fake(script, check_prefix=False)
    r = sub("-p", "go", "--output-format=json")
    assert r.status == 1 and r.json["is_error"]
    assert len(api.requests) <= 6


def test_empty_answer_is_asked_once_more(fake, sub):
    api = fake([turn(bash("printf x")), turn(), turn("fine")])
    assert answer(sub("-p", "go", *ALLOW)) == "fine"
    assert api.requests[2].messages[-1]["role"] == "user"


def test_empty_answers_for_ever_end(fake, sub):
    api = fake(lambda q: turn(), check_prefix=False)
    r = sub("-p", "go")
    assert r.status == 1 and len(api.requests) == 2


def test_stop_sequence_and_unknown_reason(fake, sub):
    fake([turn("a", stop="stop_sequence", stop_sequence="X"),
          turn("b", stop="sunset")])
    j = sub("-p", "1", "--output-format=json").json
    assert (j["result"], j["stop_reason"]) == ("a", "stop_sequence")
    assert answer(sub("-p", "2")) == "b"


def test_tool_use_with_another_stop_reason(fake, sub):
    """Calls that are complete are answered, whatever the reason says."""
    api = fake([turn(bash("printf ran"), stop="end_turn"), turn("x")])
    assert answer(sub("-p", "go", *ALLOW)) == "x"
    assert api.requests[1].result_text() == "ran"


def test_stop_reason_tool_use_without_a_call(fake, sub):
    api = fake([turn("words", stop="tool_use")])
    r = sub("-p", "go")
    assert answer(r) == "words" and len(api.requests) == 1


# ---- credentials, address, headers ---------------------------------------

def test_auth_token(fake, sub):
    api = fake([turn("x")])
    sub("-p", "go", env={"ANTHROPIC_API_KEY": None,
                         "ANTHROPIC_AUTH_TOKEN": api.key})
    h = api.requests[0].headers
    assert h["authorization"] == "Bearer " + api.key
    assert "x-api-key" not in h


def test_both_credentials(fake, sub):
    api = fake([turn("x")])
    sub("-p", "go", env={"ANTHROPIC_AUTH_TOKEN": "tok"})
    h = api.requests[0].headers
    assert h["authorization"] == "Bearer tok"
    assert h["x-api-key"] == api.key


def test_empty_key_is_no_key(fake, sub):
    api = fake([turn("x")])
    sub("-p", "go", env={"ANTHROPIC_API_KEY": "",
                         "ANTHROPIC_AUTH_TOKEN": api.key})
    assert "x-api-key" not in api.requests[0].headers


def test_custom_headers(fake, sub):
    api = fake([turn("x")])
    sub("-p", "go", env={
        "ANTHROPIC_CUSTOM_HEADERS": "X-Team: blue\nX-Two:  spaced value \n"})
    h = api.requests[0].headers
    assert (h["x-team"], h["x-two"]) == ("blue", "spaced value")


@pytest.mark.parametrize("value", [
    "X-A: b\r\nX-Evil: c", "no colon here", ": empty", "Bad Name: x",
    "X-Nul\x01: y", "Content-Length: 3", "Host: evil.test"])
def test_bad_custom_headers(fake, sub, value):
    """Never a broken request, and none that is framed by a variable."""
    api = fake([turn("x")])
    r = sub("-p", "go", env={"ANTHROPIC_CUSTOM_HEADERS": value})
    assert answer(r) == "x"
    h = api.requests[0]
    assert h.headers["host"] == "127.0.0.1:%d" % api.port
    assert int(h.headers["content-length"]) == len(h.raw)


def test_base_url_with_a_path(fake, sub):
    api = fake([turn("x"), turn("y")], prefix="/gw/anthropic")
    assert answer(sub("-p", "go")) == "x"
    assert answer(sub("-p", "go", env={"ANTHROPIC_BASE_URL":
                                       api.url + "/"})) == "y"
    assert api.requests[0].path == "/gw/anthropic/v1/messages"


@pytest.mark.parametrize("url", [
    "ftp://127.0.0.1/", "127.0.0.1:80", "http://", "http://127.0.0.1:99999",
    "http://127.0.0.1:1 2/", "http://a\nb/", "https:///x"])
def test_bad_base_url(fake, sub, url):
    """The message names the variable that has to be mended."""
    fake([])
    r = sub("-p", "go", env={"ANTHROPIC_BASE_URL": url})
    assert r.status in (1, 2)
    assert b"ANTHROPIC_BASE_URL" in r.out + r.err


def test_nobody_listens(fake, sub):
    fake([])
    r = sub("-p", "go", "--output-format=json", env={
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "CLAUDE_CODE_MAX_RETRIES": "2"})
    assert r.status == 1 and r.json["terminal_reason"] == "api_error"
    assert "127.0.0.1" in r.json["result"]


def test_key_helper(fake, sub):
    api = fake([turn("x")])
    sub.write("helper.sh", "#!/bin/sh\necho called >> calls\necho %s\n"
              % api.key, 0o755)
    r = sub("-p", "go", "--settings", json.dumps(
        {"apiKeyHelper": sub.path("helper.sh")}),
        env={"ANTHROPIC_API_KEY": None})
    assert answer(r) == "x"
    assert sub.read("calls") == b"called\n"


def test_key_helper_is_asked_again_after_401(fake, sub):
    api = fake([turn("x")])
    sub.write("helper.sh", "#!/bin/sh\nif [ -e calls ]; then echo %s; "
              "else touch calls; echo old; fi\n" % api.key, 0o755)
    api.may_violate = True
    r = sub("-p", "go", "--settings", json.dumps(
        {"apiKeyHelper": sub.path("helper.sh")}),
        env={"ANTHROPIC_API_KEY": None})
    assert answer(r) == "x"
    assert len(api.requests) == 2


@pytest.mark.parametrize("script", ["exit 3", "echo", "sleep 60"])
def test_bad_key_helper(fake, sub, script):
    fake([])
    sub.write("helper.sh", "#!/bin/sh\n%s\n" % script, 0o755)
    r = sub("-p", "go", "--timeout", "2", "--settings", json.dumps(
        {"apiKeyHelper": sub.path("helper.sh")}),
        env={"ANTHROPIC_API_KEY": None})
    assert r.status == 1
    assert b"apiKeyHelper" in r.out + r.err


def test_the_key_is_in_no_output(fake, sub):
    api = fake([turn(bash("printf '%s' \"$ANTHROPIC_API_KEY\"")),
                turn("done")])
    r = sub("-p", "go", "--verbose", "--output-format=json", "--debug-file",
            "d.log", *ALLOW)
    assert r.status == 0
    for place in (r.out, r.err, sub.read("d.log")) + tuple(
            open(p, "rb").read() for p in sub.transcripts()):
        assert api.key.encode() not in place
    assert api.key.encode() not in api.requests[1].raw


# ---- connections ---------------------------------------------------------

def test_keep_alive(fake, sub):
    api = fake([turn(bash("true")), turn(bash("true")), turn("x")])
    assert answer(sub("-p", "go", *ALLOW)) == "x"
    assert len(api.conns) == 1
    assert [q.conn.number for q in api.requests] == [0, 0, 0]


@pytest.mark.asan
@pytest.mark.parametrize("how", [True, "rst"])
def test_dead_kept_connection_is_replaced_silently(fake, sub, how):
    """Not counted as an attempt: with no retry allowed it still works."""
    api = fake([turn(bash("true"), close_after=how),
                turn(bash("true"), close_after=how), turn("x")])
    r = sub("-p", "go", *ALLOW, env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    assert answer(r) == "x" and r.err == b""
    assert len(api.requests) == 3


def test_connection_close_is_obeyed(fake, sub):
    api = fake([turn(bash("true"), close_header=True), turn("x")])
    assert answer(sub("-p", "go", *ALLOW)) == "x"
    assert len(api.conns) == 2


def test_end_of_stream_counts_without_the_last_chunk(fake, sub):
    """message_stop ends the turn even if the chunked body never ends."""
    api = fake([turn(bash("printf hi"), final=False), turn("x")])
    assert answer(sub("-p", "go", *ALLOW, env=FAST)) == "x"
    assert len(api.requests) == 2


def test_ipv6(sub, fake):
    try:
        api = fake([turn("x")], host="::1")
    except OSError:
        pytest.skip("no IPv6 here")
    assert answer(sub("-p", "go")) == "x"
    assert api.requests[0].headers["host"] == "[::1]:%d" % api.port


def test_localhost_by_name(fake, sub):
    api = fake([turn("x")], name="localhost")
    assert answer(sub("-p", "go")) == "x"
    assert api.requests[0].headers["host"] == "localhost:%d" % api.port


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_takes_no_key_elsewhere(fake, sub, status):
    """Followed or refused; another address never gets the credentials."""
    other = fake([], key=None)
    other.may_violate = True
    api = fake([turn("x", faults=[dict(status=status, headers={
        "location": other.url + "/v1/messages"})] * 3)])
    api.may_leave = True
    r = sub("-p", "go", env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    assert r.status == 1
    for q in other.requests:
        assert api.key not in str(q.header_list)


def test_endless_redirects_end(fake, sub):
    api = fake([])
    api.main.script = [turn("x", faults=[dict(status=307, headers={
        "location": api.url + "/v1/messages"})] * 50)]
    api.may_leave = True
    r = sub("-p", "go", env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    assert r.status == 1 and len(api.requests) <= 20


def test_no_betas_unless_asked(fake, sub):
    api = fake([turn("x"), turn("y")], betas=["my-beta-1"])
    sub("-p", "go")
    sub("-p", "go", env={"ANTHROPIC_BETAS": "my-beta-1"})
    assert "anthropic-beta" not in api.requests[0].headers
    assert api.requests[1].headers["anthropic-beta"] == "my-beta-1"


def blocks_as_they_are(*blocks, stop="tool_use"):
    """A turn of events: each block is (start object, deltas)."""
    out = [("message_start", {"type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "content": []}})]
    for i, (start, deltas) in enumerate(blocks):
        out.append(("content_block_start", {
            "type": "content_block_start", "index": i,
            "content_block": start}))
        out += [("content_block_delta", {
            "type": "content_block_delta", "index": i, "delta": d})
            for d in deltas]
        out.append(("content_block_stop", {"type": "content_block_stop",
                                           "index": i}))
    out += [("message_delta", {"type": "message_delta", "delta": {
        "stop_reason": stop}}), ("message_stop", {"type": "message_stop"})]
    return turn(events=out)


def piece(s):
    return {"type": "input_json_delta", "partial_json": s}


ECHO_A = [piece('{"command":"printf a"}')]


def odd(**change):
    start = dict({"type": "tool_use", "id": "t", "name": "Bash", "input": {}},
                 **change)
    return {k: v for k, v in start.items() if v != "absent"}, ECHO_A


@pytest.mark.asan
@pytest.mark.parametrize("blocks", [
    [odd(id="absent")], [odd(id=None)], [odd(id=5)], [odd(id="")],
    [odd(id="a b:\"c")], [odd(name="absent")], [odd(name="")],
    [odd(name="Ba sh\n")], [odd(name=None)], [odd(), odd()],
    [odd(type="absent")], [odd(type=7)], [({}, [])],
    [odd(input="x")], [odd(input=None)], [odd(id="x" * 100000)],
    [({"type": "tool_use", "id": "t", "name": "Bash"}, [
        piece("{" * 5000)])],
    [({"type": "tool_use", "id": "t", "name": "Bash"}, [
        piece('{"command":' + "[" * 5000 + "]" * 5000 + "}")])],
    [({"type": "tool_use", "id": "t", "name": "Bash"}, [
        {"type": "input_json_delta", "partial_json": 5},
        {"type": "text_delta", "text": "x"}, {}])],
], ids=lambda b: json.dumps(b[0][0])[:60])
def test_odd_calls(fake, sub, blocks):
    """Of servers that are not the real one: a failed attempt or a well-
    formed next request, never an abort."""
    api = fake([blocks_as_they_are(*blocks), turn("done")])
    api.may_leave = True
    r = sub("-p", "go", *ALLOW, env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    assert r.status in (0, 1), r
    assert r.out.strip()


@pytest.mark.parametrize("deltas", [[], [piece("")]],
                         ids=["no delta", "empty delta"])
def test_input_in_the_start(fake, sub, deltas):
    api = fake([blocks_as_they_are(({
        "type": "tool_use", "id": "t", "name": "Bash",
        "input": {"command": "printf a"}}, deltas)), turn("done")])
    assert answer(sub("-p", "go", *ALLOW)) == "done"
    assert api.requests[1].result_text() == "a"


@pytest.mark.parametrize("where", ["text", "input"])
def test_pair_cut_between_deltas(fake, sub, where):
    """JavaScript servers cut by UTF-16 units: half a letter in each."""
    if where == "text":
        fake([blocks_as_they_are(({"type": "text", "text": ""}, [
            {"type": "text_delta", "text": "a\ud83d"},
            {"type": "text_delta", "text": "\ude42b"}]), stop="end_turn")])
        assert answer(sub("-p", "go")) == "a\U0001f642b"
        return
    api = fake([blocks_as_they_are(({
        "type": "tool_use", "id": "t", "name": "Bash", "input": {}}, [
            piece('{"command":"printf \ud83d'), piece('\ude42"}')])),
        turn("done")])
    assert answer(sub("-p", "go", *ALLOW)) == "done"
    assert api.requests[1].result_text() == "\U0001f642"


@pytest.mark.asan
def test_lone_surrogates_never_go_out(fake, sub):
    fake([blocks_as_they_are(
        ({"type": "text", "text": ""}, [
            {"type": "text_delta", "text": "a\ud83d b \udc00"}]),
        ({"type": "tool_use", "id": "t", "name": "Bash", "input": {}}, [
            piece('{"command":"echo \\\\ud83d \\ud83d"}')])),
        turn("done")])
    assert answer(sub("-p", "go", *ALLOW)) == "done"


def test_text_in_the_start(fake, sub):
    fake([blocks_as_they_are(({"type": "text", "text": "he"}, [
        {"type": "text_delta", "text": "llo"}]), stop="end_turn")])
    assert answer(sub("-p", "go")) == "hello"


HOSTILE = {
    "endless header": (b"HTTP/1.1 200 OK\r\nx: ", b"a" * 65536),
    "endless headers": (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 9000),
    "endless interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
    "endless status": (b"HTTP/1.1 200 ", b"O" * 65536),
    "endless chunk size": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: "
                           b"chunked\r\n\r\n", b"0" * 65536),
    "endless extension": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: "
                          b"chunked\r\n\r\n5;", b"x" * 65536),
    "endless trailers": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: "
                         b"chunked\r\n\r\n0\r\n", b"x: y\r\n" * 9000),
    "endless error page": (b"HTTP/1.1 500 X\r\n\r\n", b"<p>" * 30000),
    "endless line": (b"HTTP/1.1 200 OK\r\n\r\ndata: ", b"x" * 65536),
    "endless event": (b"HTTP/1.1 200 OK\r\n\r\n", b"data: x\n" * 9000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_server(fake, sub, name):
    """It never stops talking: the run ends by its own limits, with an
    error, and without the server's megabytes in memory."""
    first, rest = HOSTILE[name]
    api = fake([turn("x", faults=[dict(raw=first, endless=rest)] * 2)])
    api.may_leave = True
    p = sub.start("-p", "go", "--timeout", "25", env={
        "CLAUDE_CODE_MAX_RETRIES": "0"})
    peak = 0
    while p.popen.poll() is None:
        try:
            with open("/proc/%d/status" % p.pid) as f:
                peak = max([peak] + [int(x.split()[1]) for x in f
                                     if x.startswith("RssAnon")])
        except OSError:
            pass
        time.sleep(0.01)
    r = p.wait()
    assert r.status == 1, r
    assert b"out of time" not in r.out
    assert peak < 150000, "kB"
    assert len(r.out) < 3000


def test_answer_over_the_limit(fake, sub):
    """66 MiB of text in 17 deltas: refused, not kept."""
    api = fake([turn(text("x" * (66 << 20), pieces=4 << 20))])
    r = sub("-p", "go", "--output-format=json",
            env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    assert r.status == 1 and r.json["is_error"]
    assert len(r.out) < 5000
    assert len(api.requests) == 1


def test_ignored_hangup_stays_ignored(fake, sub):
    """nohup, and `&` in a script: what was ignored is not listened to."""
    gate = threading.Event()
    api = fake([turn("x", gate=gate)])

    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    p = sub.start("-p", "go", preexec_fn=ignore)
    api.wait_requests(1)
    p.signal(signal.SIGHUP)
    p.signal(signal.SIGINT)
    gate.set()
    assert answer(p.wait()) == "x"


def test_slow_response_head(fake, sub):
    """Bytes one by one: slow is not silent."""
    fake([turn("x", slow_head=0.004)])
    assert answer(sub("-p", "go", env=FAST)) == "x"


def test_descriptors_after_many_attempts(fake, sub):
    fake([turn(bash("ls /proc/self/fd", id="t%d" % i), faults=[
        dict(status=500), dict(cut_event=2), dict(drop=True),
        dict(stall_event=1)]) for i in range(2)] + [turn("x")])
    api = sub.api
    assert answer(sub("-p", "go", *ALLOW, env={
        "CLAUDE_STREAM_IDLE_TIMEOUT_MS": "200"})) == "x"
    assert api.requests[5].result_text().split() == ["0", "1", "2", "3"]
    assert api.requests[10].result_text().split() == ["0", "1", "2", "3"]
