"""The conversation is bytes: what comes back, marks, pairs, blank texts."""

import json

import pytest

import rules
from helpers import ALLOW, bash, block, redacted, text, thinking, tool, turn


def mark_places(request):
    return [where for where, _ in rules.marks(request.json)]


@pytest.mark.asan
def test_thinking_comes_back_as_it_was(fake, sub):
    """B28: the fake compares every block with what it sent."""
    api = fake([turn(
        thinking("He said \"no\".\n\tThen \U0001f642 \\ / é ", "c2lnMQ==",
                 pieces=3),
        redacted("ZW5jcnlwdGVk"), text("I run it."),
        thinking("", "b25seS1zaWc="),
        bash("printf one")), turn(thinking("more", "c2ln"), "done")])
    r = sub("-p", "go", *ALLOW)
    assert (r.out, r.status) == (b"done\n", 0)
    kinds = [b["type"] for b in api.requests[1].messages[1]["content"]]
    assert kinds == ["thinking", "redacted_thinking", "text", "thinking",
                     "tool_use"]


INPUTS = [
    '{"command":"true","timeout":12345678901234567890}',
    '{"command":"true","description":"\\u00e9\\ud83d\\ude42\\/\\b"}',
    '{"command":"true","timeout":1.50}',
    '{"command":"true","timeout":1e2}',
    '{"command":"true", "description" : "sp  ace" }',
    '{"description":"z","command":"true"}',
    '{"command":"true","description":""}',
    '{"command":"tru\\u0065"}',
    '{"command":"true","description":"\x7f"}',
    '{\n  "command": "true"\n}',
    '{"command":"true","x":{"b":[1,{"a":null}],"a":-0.0}}',
    '{}',
    '{"command":"true","command":"true"}',
]


@pytest.mark.asan
@pytest.mark.parametrize("raw", INPUTS)
@pytest.mark.parametrize("pieces", [1, [500]], ids=["cut", "whole"])
def test_tool_input_comes_back_as_it_was(fake, sub, raw, pieces):
    """Large integers, escapes, order, white space: not printed anew."""
    api = fake([turn(tool("Bash", raw=raw, pieces=pieces)), turn("done")])
    r = sub("-p", "go", *ALLOW)
    assert (r.out, r.status) == (b"done\n", 0)
    assert len(api.requests) == 2


def test_extra_members_and_unknown_blocks(fake, sub):
    api = fake([turn(
        text("a", extra={"citations": None}),
        block('{"type":"server_tool_use","id":"srvtoolu_1","name":'
              '"web_search","input":{"n":9007199254740993}}'),
        block('{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1",'
              '"content":[{"type":"web_search_result","url":"u","title":"t",'
              '"encrypted_content":"x","page_age":null}]}'),
        block('{"type":"quantum","qubits":[0.10,1e400],"n":{"z":1,"a":2}}'),
        tool("Bash", {"command": "true"},
             extra={"caller": {"type": "direct"}})), turn("done")])
    r = sub("-p", "go", *ALLOW)
    assert (r.out, r.status) == (b"done\n", 0)
    assert len(api.requests) == 2


def test_every_turn_keeps_all_earlier_bytes(fake, sub):
    """Ten turns; the fake refuses a changed byte anywhere before."""
    script = [turn(thinking("t%d" % i, "c2ln"), text("step %d é" % i),
                   bash("printf %d" % i), bash("printf %d" % (i + 100)))
              for i in range(10)]
    api = fake(script + [turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    assert len(api.requests[-1].messages) == 21


def test_marks(fake, sub):
    """End of system, previous moving mark, last block; at most four."""
    api = fake([turn(bash("printf %d" % i)) for i in range(5)]
               + [turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    for n, q in enumerate(api.requests):
        m = q.messages
        last = "messages.%d.content.%d" % (len(m) - 1,
                                           len(m[-1]["content"]) - 1)
        want = ["system.%d" % (len(q.json["system"]) - 1), last]
        if n:
            before = api.requests[n - 1].messages
            want.insert(1, "messages.%d.content.%d" % (
                len(before) - 1, len(before[-1]["content"]) - 1))
        assert mark_places(q) == want
    cache = {json.dumps(b["cache_control"]) for q in api.requests
             for _, b in rules.marks(q.json)}
    assert cache == {'{"type": "ephemeral"}'}


def test_marks_can_be_switched(fake, sub):
    api = fake([turn("x"), turn("y")])
    sub("-p", "go", env={"DISABLE_PROMPT_CACHING": "1"})
    sub("-p", "go", env={"ENABLE_PROMPT_CACHING_1H": "1"})
    assert mark_places(api.requests[0]) == []
    assert {b["cache_control"].get("ttl")
            for _, b in rules.marks(api.requests[1].json)} == {"1h"}


def test_the_cache_is_really_read(fake, sub):
    """A simulated cache: from the second turn on nearly all is read."""
    api = fake([turn(*[bash("printf %d" % (i * 50 + k)) for k in range(25)])
                for i in range(4)] + [turn("done")], cache=True)
    r = sub("-p", "go", "--output-format=json", *ALLOW)
    assert r.status == 0
    u = r.json["usage"]
    total = sum(len(q.raw) for q in api.requests) / 4
    assert u["cache_read_input_tokens"] > 0.5 * total
    assert u["input_tokens"] < 50


# ---- blank texts (B27) ---------------------------------------------------

@pytest.mark.asan
def test_blank_texts_are_never_sent(fake, sub):
    api = fake([turn(" \n", bash("true"), text("")),
                turn(text("\t")), turn("done")])
    r = sub("-p", "go", *ALLOW)
    assert (r.out, r.status) == (b"done\n", 0)
    assert api.requests[1].result_text().strip()


def test_no_output_has_its_note(fake, sub):
    api = fake([turn(bash("true")), turn("done")])
    sub("-p", "go", *ALLOW)
    assert api.requests[1].result_text() == \
        "(Bash completed with no output)"


def test_empty_file_is_no_blank_result(fake, sub):
    sub.write("empty.txt", "")
    sub.write("blank.txt", " \n\n")
    api = fake([turn(tool("Read", {"file_path": sub.path("empty.txt")}),
                     tool("Read", {"file_path": sub.path("blank.txt")})),
                turn("done")])
    assert sub("-p", "go").status == 0
    assert "system-reminder" in api.requests[1].result_text(0)


# ---- valid UTF-8 ---------------------------------------------------------

@pytest.mark.asan
@pytest.mark.parametrize("octal,want", [
    ("caf\\351", "caf\ufffd"), ("\\355\\240\\200", "\ufffd"),
    ("a\\000b", None), ("\\360\\237", "\ufffd"), ("\\300\\200", "\ufffd"),
    ("\\033[31mred", None), ("\\377\\376x", "\ufffd\ufffdx")])
def test_output_is_made_valid(fake, sub, octal, want):
    api = fake([turn(bash("printf '%s'" % octal)), turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    got = api.requests[1].result_text()
    if want is not None:
        assert want in got


def test_cut_output_is_valid(fake, sub):
    """The limit falls inside letters of 2 to 4 bytes."""
    api = fake([turn(*[bash("yes '%s' | head -n 40001" % s) for s in
                       ("é", "x北", "xy\U0001f642")]), turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    for i in range(3):
        assert "\ufffd" not in api.requests[1].result_text(i)


def test_file_names_that_are_no_utf8(fake, sub):
    api = fake([turn(bash("touch \"$(printf 'a\\377b')\"; ls")),
                turn(tool("Glob", {"pattern": "a*"})), turn("done")])
    assert sub("-p", "go", *ALLOW, "--tools", "Bash,Glob").status == 0
    assert "a\ufffdb" in api.requests[1].result_text()


# ---- pairs (B26) ---------------------------------------------------------

def test_many_calls_in_one_turn(fake, sub):
    """Every id once, results first, in the order of the calls."""
    calls = [bash("printf %d" % i, id="toolu_%d" % i) for i in range(20)]
    calls.insert(3, tool("Nope", {}, id="toolu_none"))
    calls.insert(9, tool("Read", {"file_path": 5}, id="toolu_bad"))
    calls.insert(15, bash("exit 3", id="toolu_exit"))
    api = fake([turn("many", *calls), turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    content = api.requests[1].messages[-1]["content"]
    assert [b["tool_use_id"] for b in content] == [c["id"] for c in calls]
    by_id = api.requests[1].results()
    assert by_id["toolu_none"]["is_error"]
    assert by_id["toolu_bad"]["is_error"]
    assert by_id["toolu_exit"]["is_error"]
    assert not by_id["toolu_7"].get("is_error")


def test_unknown_tool_and_bad_input(fake, sub):
    api = fake([turn(tool("Nope", {}), tool("Read", {}),
                     tool("Read", {"file_path": "x", "colour": "red"}),
                     tool("Read", raw='{"file_path"'),
                     tool("Read", raw='[1]'), tool("Read", raw='"x"')),
                turn("done")])
    r = sub("-p", "go", *ALLOW)
    assert (r.out, r.status) == (b"done\n", 0)
    q = api.requests[1]
    assert q.result_text(0) == "<tool_use_error>Error: No such tool " \
        "available: Nope</tool_use_error>"
    for i, word in ((1, "file_path"), (2, "colour"), (3, ""), (4, ""),
                    (5, "")):
        got = q.result_text(i)
        assert got.startswith("<tool_use_error>InputValidationError: ")
        assert word in got
    assert all(b["is_error"] for b in q.results().values())


def test_lenient_input(fake, sub):
    """Numbers and booleans that come as strings are taken."""
    sub.write("f.txt", "1\n2\n3\n")
    api = fake([turn(tool("Read", {"file_path": sub.path("f.txt"),
                                   "offset": "2", "limit": "1"})),
                turn("done")])
    assert sub("-p", "go").status == 0
    assert api.requests[1].result_text().splitlines()[0] == "2\t2"


# ---- pictures (B29) ------------------------------------------------------

def png(w, h, pad=0):
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))
    rows = zlib.compress(b"".join(b"\0" + b"\0" * (3 * min(w, 64))
                                  for _ in range(min(h, 64))))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + chunk(b"IDAT", rows)
        + chunk(b"tEXt", b"x" * pad) + chunk(b"IEND", b""))


def test_picture_is_sent(fake, sub):
    sub.write("p.png", png(8, 8))
    api = fake([turn(tool("Read", {"file_path": sub.path("p.png")})),
                turn("done")])
    assert sub("-p", "go").status == 0
    content = list(api.requests[1].results().values())[0]["content"]
    assert content[0]["type"] == "image"
    assert content[0]["source"]["media_type"] == "image/png"


@pytest.mark.parametrize("w,h,pad", [(9000, 10, 0), (10, 8001, 0),
                                     (8, 8, 6 << 20)])
def test_too_large_picture_is_an_error(fake, sub, w, h, pad):
    sub.write("p.png", png(w, h, pad))
    api = fake([turn(tool("Read", {"file_path": sub.path("p.png")})),
                turn("done")])
    assert sub("-p", "go").status == 0
    b = list(api.requests[1].results().values())[0]
    assert b["is_error"] is True
    assert "image" not in json.dumps(b["content"])[:20]


def test_text_that_claims_to_be_a_picture(fake, sub):
    sub.write("p.png", "no picture at all\n")
    fake([turn(tool("Read", {"file_path": sub.path("p.png")})),
          turn("done")])
    assert sub("-p", "go").status == 0


def test_refused_picture_is_taken_out(fake, sub):
    """The API refuses it once: a note stands in its place, the run goes
    on."""
    sub.write("p.png", png(8, 8))
    api = fake([turn(tool("Read", {"file_path": sub.path("p.png")})),
                turn("fine", same=False, faults=[dict(
                    status=400, message="messages.2.content.0: Could not "
                    "process image")])], check_prefix=False)
    r = sub("-p", "go")
    assert (r.out, r.status) == (b"fine\n", 0)
    assert b'"image"' in api.requests[1].raw
    assert b'"image"' not in api.requests[2].raw
    assert api.requests[2].result_text().strip()
