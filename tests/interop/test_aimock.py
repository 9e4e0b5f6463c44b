"""The main cases against aimock, a mock of the Messages API from npm.

Nobody here wrote it, so what it and our own fake agree on is not our
misunderstanding twice.  It is pinned by package-lock.json.
"""

import json
import os
import re
import subprocess
import urllib.request

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BIN = os.environ.get("SUBAGENT_BIN") or os.path.join(ROOT, "subagent")
MODULES = os.environ.get("SUBAGENT_NODE_MODULES") \
    or os.path.join(ROOT, "build/interop/node_modules")
LIMIT = 60


class Mock:
    """One aimock with its fixtures, and runs of subagent against it."""

    def __init__(self, folder, fixtures):
        self.project = os.path.join(folder, "project")
        self.home = os.path.join(folder, "home")
        for d in (self.project, self.home):
            os.mkdir(d)
        path = os.path.join(folder, "fixtures.json")
        with open(path, "w") as f:
            json.dump({"fixtures": fixtures}, f)
        self.node = subprocess.Popen(
            ["node", os.path.join(MODULES, "@copilotkit/aimock/dist/cli.js"),
             "--port", "0", "--strict", "--chunk-size", "3", "--fixtures",
             path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.url = None
        for line in self.node.stdout:
            found = re.search(rb"http://127\.0\.0\.1:\d+", line)
            if found:
                self.url = found.group().decode()
                break
        assert self.url, "aimock did not start"

    def start(self, prompt, *options):
        env = {"PATH": os.environ["PATH"], "HOME": self.home,
               "ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "test"}
        return subprocess.run(
            [BIN, "-p", prompt, "--max-turns", "9", *options],
            cwd=self.project, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)

    def run(self, prompt, *options):
        r = self.start(prompt, "--output-format", "json", *options)
        return r.returncode, json.loads(r.stdout)

    def requests(self):
        """The bodies that arrived, oldest first, as aimock read them."""
        with urllib.request.urlopen(self.url + "/__aimock/journal") as f:
            journal = json.load(f)
        entries = journal if isinstance(journal, list) else journal["entries"]
        return [e for e in entries if "/v1/messages" in e["path"]]

    def path(self, name):
        return os.path.join(self.project, name)

    def close(self):
        self.node.terminate()
        self.node.wait(10)
        self.node.stdout.close()


@pytest.fixture
def mock(tmp_path):
    open_ones = []

    def start(*fixtures):
        m = Mock(str(tmp_path), list(fixtures))
        open_ones.append(m)
        return m

    yield start
    for m in open_ones:
        m.close()


def says(match, text, **more):
    return dict({"match": match, "response": {"content": text}}, **more)


def calls(match, *tools):
    return {"match": match, "response": {"toolCalls": [
        {"id": "call_%d" % i, "name": name, "arguments": arguments}
        for i, (name, arguments) in enumerate(tools)]}}


@pytest.mark.parametrize("text", ["Hello!", "eins zwei drei " * 200,
                                  "Grüße, 世界 🙂\n\ttab \"quoted\" \\ end"])
def test_text(mock, text):
    m = mock(says({"userMessage": "greet"}, text))
    status, result = m.run("greet")
    assert status == 0
    assert result["result"] == text
    assert result["is_error"] is False and result["num_turns"] == 1
    assert len(m.requests()) == 1


def test_tools(mock):
    m = mock(calls({"userMessage": "count", "turnIndex": 0},
                   ("Write", {"file_path": "n.txt", "content": "a\nb\n"})),
             calls({"userMessage": "count", "turnIndex": 1},
                   ("Bash", {"command": "wc -l < n.txt"})),
             says({"userMessage": "count", "turnIndex": 2}, "two lines"))
    status, result = m.run("count", "--allowedTools", "Write,Edit,Bash")
    assert status == 0, result
    assert result["result"] == "two lines" and result["num_turns"] == 3
    with open(m.path("n.txt")) as f:
        assert f.read() == "a\nb\n"
    assert len(m.requests()) == 3


def test_several_calls_in_one_turn(mock):
    m = mock(calls({"userMessage": "both", "turnIndex": 0},
                   ("Glob", {"pattern": "*.txt"}),
                   ("Bash", {"command": "echo made > made.txt"}),
                   ("Grep", {"pattern": "x"})),
             says({"userMessage": "both", "turnIndex": 1}, "done"))
    status, result = m.run("both", "--allowedTools", "Bash")
    assert status == 0, result
    assert result["result"] == "done"
    assert os.path.exists(m.path("made.txt"))


def test_result_reaches_the_model(mock):
    m = mock(says({"toolResultContains": "the-42"}, "it was 42"),
             calls({"userMessage": "ask", "hasToolResult": False},
                   ("Bash", {"command": "echo the-$((6*7))"})))
    status, result = m.run("ask", "--allowedTools", "Bash")
    assert status == 0, result
    assert result["result"] == "it was 42"


def test_denied_call_is_told(mock):
    m = mock(calls({"userMessage": "try", "turnIndex": 0},
                   ("Bash", {"command": "touch no.txt"})),
             says({"userMessage": "try", "turnIndex": 1}, "I may not"))
    status, result = m.run("try")
    assert status == 0, result
    assert [d["tool_name"] for d in result["permission_denials"]] == ["Bash"]
    assert not os.path.exists(m.path("no.txt"))


def test_thinking_before_a_call(mock):
    m = mock({"match": {"userMessage": "think", "turnIndex": 0},
              "response": {"reasoning": "Let me see.", "toolCalls": [
                  {"id": "call_0", "name": "Bash",
                   "arguments": {"command": "true"}}]}},
             says({"userMessage": "think", "turnIndex": 1}, "thought"))
    status, result = m.run("think", "--allowedTools", "Bash")
    assert status == 0, result
    assert result["result"] == "thought" and result["num_turns"] == 2


@pytest.mark.parametrize("code,kind", [(429, "rate_limit_error"),
                                       (529, "overloaded_error"),
                                       (500, "api_error")])
def test_passing_error(mock, code, kind):
    m = mock({"match": {"userMessage": "again", "sequenceIndex": 0},
              "response": {"error": {"type": kind, "message": "not now"},
                           "status": code}},
             says({"userMessage": "again"}, "now"))
    status, result = m.run("again")
    assert status == 0, result
    assert result["result"] == "now"
    assert len(m.requests()) == 2


def test_lasting_error(mock):
    m = mock({"match": {"userMessage": "bad"}, "response": {
        "error": {"type": "invalid_request_error", "message": "no such"},
        "status": 400}})
    status, result = m.run("bad")
    assert status == 1
    assert result["is_error"] is True
    assert "no such" in result["result"]
    assert len(m.requests()) == 1


def test_cut_stream_is_sent_again(mock):
    m = mock(says({"userMessage": "cut", "sequenceIndex": 0},
                  "this answer breaks off", truncateAfterChunks=4),
             says({"userMessage": "cut"}, "whole"))
    status, result = m.run("cut")
    assert status == 0, result
    assert result["result"] == "whole"


def test_usage_adds_up(mock):
    first = calls({"userMessage": "sum", "turnIndex": 0},
                  ("Bash", {"command": "true"}))
    first["response"]["usage"] = {"input_tokens": 1000, "output_tokens": 20}
    last = says({"userMessage": "sum", "turnIndex": 1}, "done")
    last["response"]["usage"] = {"input_tokens": 1100, "output_tokens": 7}
    status, result = mock(first, last).run("sum")
    assert status == 0, result
    assert result["usage"]["input_tokens"] == 2100
    assert result["usage"]["output_tokens"] == 27
    [(_, by_model)] = result["modelUsage"].items()
    assert (by_model["inputTokens"], by_model["outputTokens"]) == (2100, 27)


def test_slow_stream(mock):
    """Pieces that arrive one by one; the first is noted long before the
    end."""
    m = mock(says({"userMessage": "slow"}, "one by one", latency=100,
                  chunkSize=1))
    status, result = m.run("slow")
    assert status == 0, result
    assert result["result"] == "one by one"
    assert result["duration_ms"] >= 900
    assert result["ttft_ms"] + 500 < result["duration_ms"]


def test_text_output(mock):
    """Without json, stdout has the answer and nothing else."""
    m = mock(calls({"userMessage": "plain", "turnIndex": 0},
                   ("Bash", {"command": "echo noise"})),
             says({"userMessage": "plain", "turnIndex": 1}, "the answer"))
    r = m.start("plain")
    assert (r.stdout, r.stderr, r.returncode) == (b"the answer\n", b"", 0)
