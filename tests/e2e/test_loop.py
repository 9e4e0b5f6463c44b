"""The loop: limits, signals, closed outputs, transcripts, progress."""

import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from conftest import proc_stat
from helpers import ALLOW, bash, text, thinking, tool, turn, wait_for


def endless(q):
    return turn(bash("printf x"))


# ---- limits --------------------------------------------------------------

def test_max_turns(fake, sub):
    api = fake(endless)
    r = sub("-p", "go", "--max-turns", "3", *ALLOW)
    assert (r.out, r.status) == (b"Error: Reached max turns (3)", 1)
    assert r.err == b""
    assert len(api.requests) == 3


def test_max_turns_json(fake, sub):
    api = fake(endless)
    r = sub("-p", "go", "--max-turns=2", "--output-format=json", *ALLOW)
    j = r.json
    assert r.status == 1 and len(api.requests) == 2
    assert (j["subtype"], j["is_error"], j["terminal_reason"]) == (
        "error_max_turns", True, "max_turns")
    assert j["stop_reason"] == "tool_use"
    assert "result" not in j
    assert any("max turns (2)" in e for e in j["errors"])


def test_max_turns_of_the_agent(fake, sub):
    sub.agent("a", "name: a\ndescription: d\nmaxTurns: 2")
    api = fake(endless)
    assert sub("-p", "go", "--agent", "a", *ALLOW).status == 1
    assert len(api.requests) == 2


def test_max_turns_zero_is_no_limit(fake, sub):
    fake([turn(bash("true"))] * 4 + [turn("done")])
    assert sub("-p", "go", "--max-turns", "0", *ALLOW).out == b"done\n"


def test_max_turns_is_no_error_when_it_is_just_enough(fake, sub):
    fake([turn(bash("true")), turn("done")])
    assert sub("-p", "go", "--max-turns", "2", *ALLOW).out == b"done\n"


def test_budget(fake, sub):
    usage = {"input_tokens": 100000, "output_tokens": 10000}   # 0.30 USD
    api = fake(lambda q: turn(bash("true"), usage=usage))
    r = sub("-p", "go", "--max-budget-usd", "0.5", *ALLOW)
    assert (r.out, r.status) == (b"Error: Exceeded USD budget (0.5)", 1)
    assert len(api.requests) == 2
    r = sub("-p", "go", "--max-budget-usd", "0.5", "--output-format=json",
            *ALLOW)
    j = r.json
    assert (j["subtype"], j["terminal_reason"]) == (
        "error_max_budget_usd", "budget_exhausted")
    assert j["total_cost_usd"] == pytest.approx(0.6)


@pytest.mark.parametrize("where", ["stream", "head", "tool", "retry"])
def test_time_limit(fake, sub, where):
    script = {
        "stream": [turn("x", faults=[dict(stall_event=1)])],
        "head": [turn("x", gate=threading.Event())],
        "tool": [turn(bash("sleep 100"))],
        "retry": [turn("x", faults=[dict(status=529, headers={
            "retry-after": "100"})] * 3)],
    }[where]
    api = fake(script)
    api.may_leave = True
    r = sub("-p", "go", "--timeout", "1", "--output-format=json", *ALLOW)
    j = r.json
    assert r.status == 1 and j["is_error"]
    assert "time" in json.dumps([j.get("result"), j.get("errors")])


# ---- signals -------------------------------------------------------------

SIGNALS = [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.asan
@pytest.mark.parametrize("number,status", SIGNALS)
@pytest.mark.parametrize("where", ["head", "stream", "tool", "retry",
                                   "side"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_signal(fake, sub, number, status, where, form):
    """At any moment: the status as documented, nothing printed, nothing
    left running (the fixture looks), the transcript whole."""
    script = {
        "head": [turn("x", gate=threading.Event())],
        "stream": [turn("x", faults=[dict(stall_event=3)])],
        "tool": [turn(bash("touch begun; sleep 100 | cat"))],
        "retry": [turn("x", faults=[dict(status=529, headers={
            "retry-after": "100"})] * 3)],
        "side": [turn(*[bash("cat fifo*")] * 3)],
    }[where]
    api = fake(script)
    api.may_leave = True
    if where == "side":
        os.mkfifo(sub.path("fifo"))
    p = sub.start("-p", "go", "--output-format", form, *ALLOW)
    q = api.wait_requests(1)
    if where == "tool":
        wait_for(lambda: sub.exists("begun"))
    elif where == "retry":
        assert q.answered.wait(10)
    elif where == "side":
        assert q.answered.wait(10)
        wait_for(lambda: len(children_named(sub, b"cat fifo")) >= 3)
    p.signal(number)
    r = p.wait(10)
    assert r.status == status
    assert r.out == b""
    lines = sub.transcript()
    assert lines and lines[0]["type"] == "user"
    check_pairs(lines)


def children_named(sub, words):
    from conftest import marked
    return [p for p, cmd in marked(sub.mark) if words in cmd
            and b"-p" not in cmd]


def check_pairs(lines):
    """Each tool_use of a transcript has one result, unless it was the very
    last thing (a killed run)."""
    uses, results = [], []
    for line in lines:
        content = line.get("message", {}).get("content", [])
        if isinstance(content, str):
            continue
        for b in content:
            if b["type"] == "tool_use":
                uses.append(b["id"])
            elif b["type"] == "tool_result":
                results.append(b["tool_use_id"])
    assert len(set(results)) == len(results)
    assert set(results) <= set(uses)


@pytest.mark.parametrize("number,status", SIGNALS)
def test_signal_to_the_whole_group(fake, sub, number, status):
    """As Ctrl-C in a terminal does: the command gets it, too."""
    api = fake([turn(bash("touch begun; sleep 100"))])
    api.may_leave = True
    p = sub.start("-p", "go", *ALLOW, start_new_session=True)
    wait_for(lambda: sub.exists("begun"))
    os.killpg(p.pid, number)
    assert p.wait(10).status == status


def test_second_signal_while_ending(fake, sub):
    api = fake([turn(bash("trap '' TERM INT; touch begun; "
                          "while :; do sleep 1; done"))])
    api.may_leave = True
    p = sub.start("-p", "go", *ALLOW)
    wait_for(lambda: sub.exists("begun"))
    p.signal(signal.SIGTERM)
    p.signal(signal.SIGTERM)
    p.signal(signal.SIGINT)
    assert p.wait(15).status in (143, 0, 130)


def test_stopped_and_continued(fake, sub):
    gate = threading.Event()
    api = fake([turn("x", gate=gate)])
    p = sub.start("-p", "go")
    api.wait_requests(1)
    p.signal(signal.SIGSTOP)
    wait_for(lambda: proc_stat(p.pid)[0] == "T")
    p.signal(signal.SIGCONT)
    gate.set()
    assert p.wait().out == b"x\n"


def test_killed_run_leaves_a_whole_transcript(fake, sub):
    """SIGKILL: what was answered is on disk before the next request."""
    gate = threading.Event()
    api = fake([turn("thinking aloud", bash("printf one")),
                turn("x", gate=gate)])
    api.may_leave = True
    p = sub.start("-p", "go", *ALLOW)
    api.wait_requests(2)
    p.signal(signal.SIGKILL)
    assert p.wait(10).status == -9
    lines = sub.transcript()
    shown = json.dumps(lines)
    assert "thinking aloud" in shown and "printf one" in shown
    assert '"tool_result"' in json.dumps(lines[-1])


def test_sigpipe_is_not_deadly(fake, sub):
    """Stdout closed by the reader: the run goes on to its end, exit 0."""
    gate = threading.Event()
    api = fake([turn(bash("touch ran")), turn("x" * 200000, gate=gate)])
    p = sub.start("-p", "go", *ALLOW)
    api.wait_requests(2)
    p.popen.stdout.close()
    p.popen.stdout = None
    gate.set()
    _, err = p.popen.communicate(timeout=20)
    assert (p.popen.returncode, err) == (0, b"")
    assert sub.exists("ran")


def test_large_answer_through_a_slow_pipe(fake, sub):
    """B44: 3 MB, a reader that starts late: every byte."""
    big = "".join("%07d\n" % i for i in range(375000))
    fake([turn(text(big, pieces=[len(big)]))])
    p = sub.start("-p", "go")
    wait_for(lambda: sub.api.served == 1)
    time.sleep(0.3)         # the reader is late; nothing can be awaited
    r = p.wait()
    assert r.status == 0 and r.out == big.encode() + b"\n"


def test_reader_that_closes_early(fake, sub):
    """B44: | head -c 10"""
    big = "0123456789" * 300000
    fake([turn(text(big, pieces=[len(big)]))])
    p = sub.start("-p", "go")
    assert p.popen.stdout.read(10) == b"0123456789"
    p.popen.stdout.close()
    p.popen.stdout = None
    _, err = p.popen.communicate(timeout=10)
    assert err == b"" and p.popen.returncode == 0


def test_full_stdout(fake, sub):
    """B44: stdout on /dev/full: non-zero exit and a message."""
    fake([turn("x")])
    with open("/dev/full", "wb") as full:
        r = sub("-p", "go", stdout=full)
    assert r.status == 1
    assert r.err.strip()


def test_full_stderr_is_no_error(fake, sub):
    fake([turn("x")])
    with open("/dev/full", "wb") as full:
        r = sub("-p", "go", "--effort", "huge", stderr=full)
    assert (r.out, r.status) == (b"x\n", 0)


# ---- transcript ----------------------------------------------------------

@pytest.mark.asan
def test_transcript(fake, sub):
    api = fake([turn(thinking("hm \"q\"", "c2ln"), text("I look."),
                     tool("Bash", raw='{"command":"printf é",'
                          '"timeout":12345678901234567890}', id="toolu_1")),
                turn("done é\U0001f642")])
    r = sub("-p", "my prompt", "--output-format=json", *ALLOW)
    path = sub.transcripts()[0]
    folder = re.sub(r"[^A-Za-z0-9]", "-", sub.project)
    assert path == "%s/.claude/projects/%s/%s.jsonl" % (
        sub.home, folder, r.json["session_id"])
    assert os.stat(path).st_mode & 0o077 == 0
    lines = sub.transcript()
    kinds = [x["type"] for x in lines
             if x["type"] in ("user", "assistant")]
    assert kinds == ["user"] + ["assistant"] * 3 + ["user", "assistant"]
    parent = None
    for x in lines:
        assert x["sessionId"] == r.json["session_id"]
        assert x["cwd"] == sub.project and x["parentUuid"] == parent
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", x["timestamp"])
        parent = x["uuid"]
    assert len({x["uuid"] for x in lines}) == len(lines)
    with open(path, "rb") as f:
        raw = f.read()
    assert b"12345678901234567890" in raw
    assert api.key.encode() not in raw
    check_pairs(lines)


def test_no_session_persistence(fake, sub):
    fake([turn("x")])
    assert sub("-p", "go", "--no-session-persistence").status == 0
    assert sub.transcripts() == []


def test_transcript_before_the_next_request(fake, sub):
    """When request 2 arrives, the result of the call is on disk."""
    seen = []
    fake([turn(bash("printf MARKED")),
          turn("x", check=lambda q: seen.append(
              open(sub.transcripts()[0]).read()))])
    assert sub("-p", "go", *ALLOW).status == 0
    assert "MARKED" in seen[0].splitlines()[-1]
    assert seen[0].endswith("\n")


def test_transcript_that_cannot_be_written(fake, sub):
    with open(os.path.join(sub.home, ".claude"), "w") as f:
        f.write("a file where a folder should be")
    fake([turn("x")])
    r = sub("-p", "go")
    assert (r.out, r.status) == (b"x\n", 0)
    assert r.err.count(b"\n") == 1 and b"not saved" in r.err


# ---- progress ------------------------------------------------------------

def test_nothing_on_stderr_without_a_terminal(fake, sub):
    fake([turn(bash("true"), faults=[dict(status=529)]), turn("done")])
    r = sub("-p", "go", *ALLOW)
    assert (r.out, r.err, r.status) == (b"done\n", b"", 0)


def test_progress_line_on_a_terminal(fake, sub):
    gate = threading.Event()
    api = fake([turn(bash("sleep 0.2; printf hi")),
                turn("the end", gate=gate)])
    threading.Thread(target=lambda: (api.wait_requests(2), time.sleep(0.1),
                                     gate.set()), daemon=True).start()
    r = sub.on_tty("-p", "go", *ALLOW, env={"TERM": "xterm"},
                   stdout=subprocess.PIPE)
    assert (r.out, r.status) == (b"the end\n", 0)
    shown = r.tty
    assert b"Bash" in shown and b"sleep 0.2" in shown
    assert b"turn 2" in shown and b"tokens" in shown and b"$" in shown
    assert b"\n" not in shown                           # one live line
    assert shown.rstrip().endswith(b"\x1b[K")           # and it is gone


def test_dumb_terminal_gets_no_live_line(fake, sub):
    fake([turn(bash("true")), turn("the end")])
    r = sub.on_tty("-p", "go", *ALLOW, env={"TERM": "dumb"})
    assert r.status == 0
    assert b"\x1b" not in r.tty and b"the end" in r.tty


# ---- record and replay ---------------------------------------------------

def record(fake, sub, script, *args):
    api = fake(script)
    r = sub("-p", "go", "--record", "rec.jsonl", *args)
    assert r.status == 0, r
    return api, r


@pytest.mark.asan
def test_record_and_replay(fake, sub):
    script = [turn(thinking("t", "c2ln"), text("é\U0001f642"),
                   bash("echo run >> log; printf 12345678901234567890")),
              turn(bash("cat log")), turn("the end")]
    api, first = record(fake, sub, script, *ALLOW)
    data = sub.read("rec.jsonl")
    assert api.key.encode() not in data
    lines = [json.loads(x) for x in data.splitlines()]
    assert len(lines) == 3
    os.unlink(sub.path("log"))
    r = sub("-p", "go", "--replay", "rec.jsonl", *ALLOW,
            env={"ANTHROPIC_API_KEY": None,
                 "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})
    assert (r.out, r.status) == (first.out, 0), r
    assert sub.read("log") == b"run\n"            # the tools ran for real
    assert len(api.requests) == 3


def test_recording_holds_no_failed_attempt(fake, sub):
    record(fake, sub, [turn("good", faults=[dict(status=529),
                                            dict(cut_event=3)])])
    assert len(sub.read("rec.jsonl").splitlines()) == 1
    assert sub("-p", "go", "--replay", "rec.jsonl").out == b"good\n"


def test_replay_of_another_conversation(fake, sub):
    """It says where the conversation no longer fits."""
    record(fake, sub, [turn(bash("printf 1")), turn("end")], *ALLOW)
    r = sub("-p", "something else", "--replay", "rec.jsonl", *ALLOW)
    assert r.status == 1
    assert b"rec" in r.out + r.err or b"replay" in r.out + r.err
    # One exchange too few.
    first = sub.read("rec.jsonl").splitlines(True)[0]
    sub.write("short.jsonl", first)
    r = sub("-p", "go", "--replay", "short.jsonl", *ALLOW)
    assert r.status == 1
    assert re.search(rb"record|replay", r.out + r.err)


@pytest.mark.parametrize("data", [b"", b"{", b"[]\n", b"{}\n", b"null\n",
                                  b"\xff\xfe\n", b'{"a":1}\n' * 3])
def test_replay_of_a_broken_file(fake, sub, data):
    fake([])
    sub.write("rec.jsonl", data)
    r = sub("-p", "go", "--replay", "rec.jsonl")
    assert r.status in (1, 2)
    assert (r.out + r.err).strip()


def test_replay_of_a_missing_file(fake, sub):
    fake([])
    r = sub("-p", "go", "--replay", "no.jsonl")
    assert r.status == 2 and b"no.jsonl" in r.err
