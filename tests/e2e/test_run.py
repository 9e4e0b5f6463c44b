"""The command line: options, prompt, output formats, exit status."""

import json
import os
import re
import uuid

import pytest

from helpers import (ALLOW, bash, block_texts, prompt_of, system_of, text,
                     tool, turn)

RESULT_KEYS = {
    "type", "subtype", "is_error", "api_error_status", "duration_ms",
    "duration_api_ms", "ttft_ms", "ttft_stream_ms", "time_to_request_ms",
    "num_turns", "result", "stop_reason", "session_id", "total_cost_usd",
    "usage", "modelUsage", "permission_denials", "terminal_reason",
    "fast_mode_state", "uuid",
}


@pytest.mark.asan
def test_text(fake, sub):
    api = fake([turn("the answer")])
    r = sub("-p", "a question")
    assert (r.out, r.err, r.status) == (b"the answer\n", b"", 0)
    assert prompt_of(api.requests[0]) == "a question"
    assert len(api.requests) == 1


def test_request_is_our_own(fake, sub):
    api = fake([turn("x")])
    sub("-p", "hi")
    h = api.requests[0].headers
    assert re.match(r"subagent/\d", h["user-agent"])
    assert h["x-api-key"] == "sk-fake-key"
    assert "authorization" not in h
    assert h["host"] == "127.0.0.1:%d" % api.port
    assert h["content-type"] == "application/json"
    body = api.requests[0].json
    assert body["stream"] is True
    assert body["model"] == "claude-sonnet-5-5"
    assert isinstance(body["system"], list)
    for m in body["messages"]:
        assert isinstance(m["content"], list)
    assert not {"temperature", "top_p", "top_k", "tool_choice",
                "thinking"} & set(body)


def test_first_request_is_small(fake, sub):
    api = fake([turn("x")])
    sub("-p", "hi")
    assert len(api.requests[0].raw) <= 10 * 1024


def test_prefix_is_the_same_in_two_runs(fake, sub):
    api = fake([turn("x"), turn("y")])
    sub("-p", "one")
    sub("-p", "two")
    a, b = api.requests
    for key in ("tools", "system"):
        assert a.body.get(key).text == b.body.get(key).text


def test_no_date_or_folder_in_the_system_prompt(fake, sub):
    api = fake([turn("x")])
    sub("-p", "hi")
    system = system_of(api.requests[0])
    assert sub.project not in system
    first = "\n".join(block_texts(api.requests[0].messages[0]))
    assert sub.project in first
    assert re.search(r"\b20\d\d-\d\d-\d\d\b", first)
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", system)


def test_json_result(fake, sub):
    usage = {"input_tokens": 1000, "cache_creation_input_tokens": 2000,
             "cache_read_input_tokens": 4000, "output_tokens": 500}
    fake([turn(bash("echo hi"), usage=usage),
          turn("done", usage={"input_tokens": 10, "output_tokens": 20,
                              "cache_creation_input_tokens": 0,
                              "cache_read_input_tokens": 6000})])
    r = sub("-p", "go", "--output-format", "json", *ALLOW)
    assert (r.status, r.err) == (0, b"")
    assert r.out.count(b"\n") == 1 and r.out.endswith(b"}\n")
    j = r.json
    assert RESULT_KEYS <= set(j)
    assert (j["type"], j["subtype"], j["is_error"]) == (
        "result", "success", False)
    assert j["result"] == "done"
    assert j["stop_reason"] == "end_turn"
    assert j["terminal_reason"] == "completed"
    assert j["num_turns"] == 2
    assert j["api_error_status"] is None
    assert j["permission_denials"] == []
    assert uuid.UUID(j["session_id"]).version == 4
    assert uuid.UUID(j["uuid"]).version == 4
    u = j["usage"]
    assert (u["input_tokens"], u["output_tokens"],
            u["cache_creation_input_tokens"],
            u["cache_read_input_tokens"]) == (1010, 520, 2000, 10000)
    cost = (1010 * 2 + 520 * 10 + 2000 * 2.5 + 10000 * 0.10) / 1e6
    assert j["total_cost_usd"] == pytest.approx(cost, rel=1e-9)
    m = j["modelUsage"]["claude-sonnet-5-5"]
    assert list(j["modelUsage"]) == ["claude-sonnet-5-5"]
    assert (m["inputTokens"], m["outputTokens"], m["cacheReadInputTokens"],
            m["cacheCreationInputTokens"], m["webSearchRequests"]) == (
        1010, 520, 10000, 2000, 0)
    assert m["costUSD"] == pytest.approx(cost, rel=1e-9)
    assert (m["contextWindow"], m["maxOutputTokens"]) == (1000000, 128000)
    for k in ("duration_ms", "duration_api_ms", "ttft_ms"):
        assert isinstance(j[k], (int, float)) and j[k] >= 0
    assert j["duration_api_ms"] <= j["duration_ms"]


def test_json_verbose_is_an_array(fake, sub):
    fake([turn("thinking aloud", bash("echo hi")), turn("done")])
    r = sub("-p", "go", "--output-format", "json", "--verbose", *ALLOW)
    all_ = r.json
    assert isinstance(all_, list)
    assert (all_[0]["type"], all_[0]["subtype"]) == ("system", "init")
    assert all_[0]["cwd"] == sub.project
    assert "Bash" in all_[0]["tools"]
    kinds = [m["type"] for m in all_[1:]]
    assert kinds == ["assistant", "assistant", "user", "assistant", "result"]
    assert all_[1]["message"]["content"] == [
        {"type": "text", "text": "thinking aloud"}]
    result = all_[3]["message"]["content"][0]
    assert result["type"] == "tool_result" and "hi" in json.dumps(result)
    assert len({m["session_id"] for m in all_}) == 1
    assert len({m["uuid"] for m in all_}) == len(all_)


@pytest.mark.parametrize("args", [
    ("-p", "hi", "--model", "opus"), ("-p", "hi", "--model=opus"),
    ("--model=opus", "-p", "hi"), ("--print", "hi", "--model", "opus"),
    ("-p", "--model", "opus", "--", "hi"),
    ("hi", "-p", "--model", "claude-opus-5-5"),
    ("-p", "--allowedTools", "Read,Bash(git *)", "Edit", "--model=opus",
     "--", "hi"),
    ("-p", "hi", "--allowed-tools=Read", "--model=opus"),
])
def test_option_forms(fake, sub, args):
    api = fake([turn("x")])
    r = sub(*args)
    assert (r.out, r.status) == (b"x\n", 0), r
    assert api.requests[0].json["model"] == "claude-opus-5-5"
    assert prompt_of(api.requests[0]) == "hi"


def test_prompt_that_looks_like_an_option(fake, sub):
    api = fake([turn("x")])
    assert sub("-p", "--", "--version").status == 0
    assert prompt_of(api.requests[0]) == "--version"


@pytest.mark.parametrize("stdin,args,want", [
    (b"from stdin", (), "from stdin"),
    (b"data", ("argument",), "argument\ndata"),
    (None, ("argument",), "argument"),
    (b"", ("argument",), "argument"),
    ("é\U0001f642 \"q\" \\ \t".encode(), (), "é\U0001f642 \"q\" \\ \t"),
])
def test_prompt_sources(fake, sub, stdin, args, want):
    api = fake([turn("x")])
    r = sub("-p", *args, stdin=stdin)
    assert r.status == 0, r
    # A newline at the end of piped text is not what the test is about.
    assert prompt_of(api.requests[0]).rstrip("\n") == want


def test_prompt_is_made_valid_utf8(fake, sub):
    api = fake([turn("x")])
    assert sub("-p", b"caf\xe9 \xff").status == 0
    assert prompt_of(api.requests[0]) == "caf\ufffd \ufffd"


@pytest.mark.parametrize("args,stdin", [
    (("-p",), None), (("-p", ""), None), (("-p", " \n\t "), None),
    (("-p",), b" \n")])
def test_no_prompt(fake, sub, args, stdin):
    api = fake([])
    r = sub(*args, stdin=stdin)
    assert (r.status, r.out) == (2, b"")
    assert r.err
    assert api.requests == []


@pytest.mark.parametrize("args,words", [
    (("--no-such-option",), b"unknown option '--no-such-option'"),
    (("--output-format", "xml"), b"--output-format"),
    (("--permission-mode", "yolo"), b"--permission-mode"),
    (("--max-turns", "many"), b"--max-turns"),
    (("--max-turns", "-1"), b"--max-turns"),
    (("--max-budget-usd", "0"), b"--max-budget-usd"),
    (("--max-budget-usd", "x"), b"--max-budget-usd"),
    (("--setting-sources", "nowhere"), b"setting-sources"),
    (("--model",), b"--model"),
    (("--agent", "nobody"), b"'nobody'"),
    (("--agents", "{"), b"--agents"),
    (("--agents", '{"a":{"prompt":"p"}}'), b"a.description"),
    (("--system-prompt-file", "/no/such/file"), b"/no/such/file"),
    (("--timeout", "soon"), b"--timeout"),
])
def test_usage_errors(fake, sub, args, words):
    api = fake([])
    r = sub("-p", "hi", *args)
    assert (r.status, r.out) == (2, b""), r
    assert words in r.err
    assert api.requests == []


def test_version_and_help(sub):
    r = sub("--version")
    assert (r.status, r.err) == (0, b"")
    assert re.match(rb"^\d+\.\d+[^\n]*\n$", r.out)
    assert sub("-v").out == r.out
    r = sub("--help")
    assert (r.status, r.err) == (0, b"")
    for option in ("-p", "--agent", "--agents", "--model", "--fallback-model",
                   "--effort", "--output-format", "--verbose", "--max-turns",
                   "--max-budget-usd", "--allowedTools", "--disallowedTools",
                   "--tools", "--permission-mode",
                   "--dangerously-skip-permissions", "--system-prompt",
                   "--system-prompt-file", "--append-system-prompt",
                   "--append-system-prompt-file", "--settings",
                   "--setting-sources", "--add-dir", "--bare", "--debug",
                   "--debug-file", "--record", "--replay", "--timeout",
                   "--version", "--help"):
        assert option.encode() in r.out, option
    assert sub("-h").out == r.out


def test_licenses(sub):
    r = sub("--licenses")
    assert r.status == 0
    for name in (b"BearSSL", b"cJSON", b"LibYAML", b"PCRE2", b"musl"):
        assert name.lower() in r.out.lower(), name


def test_bad_effort_is_ignored_with_a_warning(fake, sub):
    api = fake([turn("x")])
    r = sub("-p", "hi", "--effort", "huge")
    assert (r.out, r.status) == (b"x\n", 0)
    assert b"huge" in r.err
    assert "output_config" not in api.requests[0].json


def test_effort(fake, sub):
    api = fake([turn("x")])
    r = sub("-p", "hi", "--effort", "low")
    assert r.err == b""
    assert api.requests[0].json["output_config"] == {"effort": "low"}


def test_models(fake, sub):
    api = fake([turn("x")] * 5)
    sub("-p", "1", "--model", "haiku")
    sub("-p", "2", env={"ANTHROPIC_MODEL": "claude-opus-4-8"})
    sub("-p", "3", "--model=opus", env={"ANTHROPIC_MODEL": "haiku"})
    sub("-p", "4", "--settings", '{"model":"opus"}')
    sub("-p", "5", "--model=sonnet",
        env={"ANTHROPIC_DEFAULT_SONNET_MODEL": "claude-sonnet-4-6"})
    assert [r.json["model"] for r in api.requests] == [
        "claude-haiku-5-5", "claude-opus-4-8", "claude-opus-5-5",
        "claude-opus-5-5", "claude-sonnet-4-6"]


def test_max_output_tokens(fake, sub):
    api = fake([turn("x")] * 2, models=["my-model"])
    sub("-p", "1", env={"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1234"})
    assert sub("-p", "2", "--model", "my-model").status == 0
    assert api.requests[0].json["max_tokens"] == 1234
    assert api.requests[1].json["max_tokens"] == 32000


def test_unknown_model_has_unknown_cost_not_zero(fake, sub):
    fake([turn("x")], models=["my-model"])
    r = sub("-p", "1", "--model", "my-model", "--output-format", "json")
    j = r.json
    assert j["result"] == "x"
    # "unknown model = unknown cost, never 0" (messages-api.md 6)
    assert j["modelUsage"]["my-model"]["costUSD"] is None
    assert j["total_cost_usd"] is None


@pytest.mark.parametrize("how", ["text", "file"])
def test_system_prompts(fake, sub, how):
    sub.write("sys.txt", "BE TERSE")
    sub.write("app.txt", "AND KIND")
    api = fake([turn("x")] * 3)
    if how == "text":
        base, more = ("--system-prompt", "BE TERSE"), (
            "--append-system-prompt", "AND KIND")
    else:
        base, more = ("--system-prompt-file", "sys.txt"), (
            "--append-system-prompt-file", "app.txt")
    for args in (base, more, base + more):
        assert sub("-p", "hi", *args).status == 0
    first, second, both = [system_of(r) for r in api.requests]
    assert "BE TERSE" in first and "AND KIND" not in first
    assert second.endswith("AND KIND") and len(second) > 200
    assert "BE TERSE\n\nAND KIND" in both


def test_tools_option(fake, sub):
    api = fake([turn("x")] * 4)
    sub("-p", "hi", "--tools", "Read,Grep")
    sub("-p", "hi", "--tools=")
    sub("-p", "hi", "--disallowedTools", "Bash", "Write")
    sub("-p", "hi", "--bare")
    names = [r.tool_names() for r in api.requests]
    assert sorted(names[0]) == ["Grep", "Read"]
    assert names[1] == [] and not api.requests[1].json.get("tools")
    assert "Bash" not in names[2] and "Write" not in names[2]
    assert {"Read", "Edit"} <= set(names[2])
    assert sorted(names[3]) == ["Bash", "Edit", "Read"]


def test_default_tools(fake, sub):
    api = fake([turn("x")])
    sub("-p", "hi")
    names = api.requests[0].tool_names()
    assert {"Read", "Write", "Edit", "Bash"} <= set(names)
    assert len(names) == len(set(names))


def test_settings_are_merged(fake, sub):
    sub.write(".claude/settings.json", '{"model":"haiku","env":{"A_B":"1"}}')
    api = fake([turn(bash("echo [$A_B]")), turn("x"), turn("y"), turn("z")])
    assert sub("-p", "1", *ALLOW).status == 0
    assert api.requests[0].json["model"] == "claude-haiku-5-5"
    assert "[1]" in api.requests[1].result_text()
    sub("-p", "2", "--setting-sources=user")
    assert api.requests[2].json["model"] == "claude-sonnet-5-5"
    sub("-p", "3", "--settings", '{"model":"opus"}')
    assert api.requests[3].json["model"] == "claude-opus-5-5"


def test_broken_settings_end_the_run(fake, sub):
    """They may hold a deny rule: a broken file never widens rights."""
    api = fake([turn("y")])
    r = sub("-p", "1", "--settings", '{"model": 5')
    assert (r.out, r.status) == (b"", 2)
    assert b"settings" in r.err
    sub.write(".claude/settings.json", "{")
    r = sub("-p", "1")
    assert (r.out, r.status) == (b"", 2)
    assert b".claude/settings.json" in r.err
    assert api.requests == []
    r = sub("-p", "1", "--setting-sources", "user")
    assert (r.out, r.status) == (b"y\n", 0)


def test_api_error_is_the_result(fake, sub):
    fake([turn("x", faults=[dict(status=400, message="no such luck")])])
    sub.api.may_leave = True
    r = sub("-p", "hi")
    assert (r.status, r.err) == (1, b"")
    assert b"no such luck" in r.out


def test_api_error_in_json(fake, sub):
    fake([turn("x", faults=[dict(status=403, message="not yours")])])
    sub.api.may_leave = True
    r = sub("-p", "hi", "--output-format", "json")
    j = r.json
    assert (r.status, r.err) == (1, b"")
    assert (j["subtype"], j["is_error"], j["terminal_reason"]) == (
        "success", True, "api_error")
    assert j["api_error_status"] == 403
    assert "not yours" in j["result"]
    assert j["total_cost_usd"] == 0 and j["usage"]["input_tokens"] == 0


def test_no_credential(fake, sub):
    api = fake([])
    r = sub("-p", "hi", env={"ANTHROPIC_API_KEY": None})
    assert r.status == 1
    assert b"ANTHROPIC_API_KEY" in r.out + r.err
    assert api.requests == []


def test_add_dir(fake, sub, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "f.txt").write_text("inside\n")
    api = fake([turn(tool("Read", {"file_path": str(other / "f.txt")})),
                turn("x")])
    r = sub("-p", "go", "--add-dir", str(other))
    assert r.status == 0
    assert api.requests[1].result_text() == "1\tinside"
    api = fake([turn(tool("Read", {"file_path": str(other / "f.txt")})),
                turn("x")])
    r = sub("-p", "go", "--output-format", "json")
    assert "inside" not in api.requests[1].result_text()
    assert len(r.json["permission_denials"]) == 1


def test_debug_goes_to_a_file(fake, sub):
    fake([turn("x")])
    r = sub("-p", "hi", "--debug-file", "d.log")
    assert (r.out, r.err, r.status) == (b"x\n", b"", 0)
    log = sub.read("d.log")
    assert log and b"sk-fake-key" not in log


def test_two_texts_in_one_answer(fake, sub):
    fake([turn(text("one "), text("two"))])
    assert sub("-p", "hi").out == b"one two\n"


def test_closed_stdin_stdout_stderr(fake, sub):
    """Descriptors 0 to 2 missing: nothing else may land on them."""
    api = fake([turn(bash("ls -l /proc/self/fd; echo to-err >&2")),
                turn("done")])
    p = sub.start("-p", "go", *ALLOW, preexec_fn=lambda: [
        os.close(fd) for fd in (0, 1, 2)])
    r = p.wait()
    assert len(api.requests) == 2, r
    assert "to-err" in api.requests[1].result_text()
    assert r.out == b""


# ---- sub-commands --------------------------------------------------------

def test_agents(sub):
    sub.agent("rev", "name: rev\ndescription: reviews\ntools: Read, Grep\n"
              "model: haiku")
    r = sub("agents", "--json")
    assert (r.status, r.err) == (0, b"")
    by_name = {a["name"]: a for a in r.json}
    assert {"general-purpose", "Explore", "Plan", "rev"} <= set(by_name)
    a = by_name["rev"]
    assert (a["source"], a["description"], a["active"], a["warnings"]) == (
        "project", "reviews", True, [])
    assert a["tools"] == ["Read", "Grep"] and a["model"] == "haiku"
    assert a["path"].endswith(".claude/agents/rev.md")
    assert by_name["Plan"]["source"] == "built-in"
    r = sub("agents")
    assert r.status == 0 and b"rev" in r.out and b"Explore" in r.out


def test_check(sub):
    good = sub.write("a.md", "---\nname: a\ndescription: b\n---\nhi\n")
    bad = sub.write("b.md", "---\nname: b\n---\nhi\n")
    assert sub("check", good).status == 0
    r = sub("check", good, bad)
    assert r.status == 1
    assert re.search(rb"b\.md:\d+", r.out + r.err)
    r = sub("check", "no-such.md")
    assert r.status == 1 and b"no-such.md" in r.out + r.err


def test_tools_command(sub):
    sub.agent("rev", "name: rev\ndescription: r\ntools: Read, Grep, Nope")
    j = sub("tools", "--agent", "rev", "--json").json
    assert sorted(j["tools"]) == ["Grep", "Read"]
    removed = {x["name"]: x for x in j["removed"]}
    assert "Bash" in removed and "Write" in removed
    assert all(x["layer"] and x["reason"] for x in j["removed"])


@pytest.mark.parametrize("tool_,input,status,decision", [
    ("Read", {"file_path": "a.txt"}, 0, "allow"),
    ("Bash", {"command": "ls"}, 0, "allow"),
    ("Bash", {"command": "rm x"}, 3, "ask"),
    ("Bash", {"command": "curl x"}, 4, "deny"),
    ("Bash", {"command": "ls; curl x"}, 4, "deny"),
])
def test_permit(sub, tool_, input, status, decision):
    r = sub("permit", "--json", "--disallowedTools", "Bash(curl:*)", "--",
            tool_, json.dumps(input))
    assert r.status == status, r
    assert r.json["decision"] == decision
    assert r.json["reason"]
    if decision == "deny":
        assert r.json["rule"] == "Bash(curl:*)"


def test_request_command_sends_nothing_and_tells_the_truth(fake, sub):
    api = fake([turn("x")])
    r = sub("request", "hello")
    assert (r.status, r.err) == (0, b"")
    assert api.requests == []
    assert sub("-p", "hello").status == 0
    said, sent = json.loads(r.out), api.requests[0].json
    assert said["tools"] == sent["tools"]
    assert said["system"] == sent["system"]
    assert said["model"] == sent["model"]
    assert said["messages"][0]["content"][-1] == \
        sent["messages"][0]["content"][-1]
    r2 = sub("request", "hello", env={"ANTHROPIC_API_KEY": None})
    assert r2.status == 0
