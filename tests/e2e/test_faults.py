"""Injected faults: the N-th allocation, write, read, fork of a run fails.

The main path (settings, agent file, request, a tool call in a process of its
own, answer, transcript) is run again and again with N = 1, 2, ... until it
passes untouched.  Each time: no crash, nothing left behind, and either the
right answer or a sane error with a status that says so.
"""

import os

import pytest

from conftest import ASAN, ROOT
from helpers import ALLOW, bash, tool, turn

DEBUG = os.path.join(ROOT, "build/debug/subagent")


def script():
    return [turn(bash("echo hi"), tool("Read", {"file_path": "a.txt"}),
                 tool("Read", {"file_path": "b.txt"})),
            turn(tool("Write", {"file_path": "c.txt", "content": "new"})),
            turn("done")]


def attempt(fake, sub, kind, n):
    api = fake(script())
    api.may_leave = api.may_violate = True
    r = sub("-p", "go", "--agent", "a", *ALLOW,
            env={"SA_FAULT": "%s:%d" % (kind, n), "SA_SEED": "7",
                 "CLAUDE_CODE_MAX_RETRIES": "1"})
    assert r.status in (0, 1, 2), (kind, n, r)
    assert b"Sanitizer" not in r.err and b"broken invariant" not in r.err, r
    if r.status == 2:
        assert r.out == b"" and r.err.startswith(b"subagent: "), (n, r)
    elif r.status == 1:
        # said on stdout as the result, or on stderr where that is not to be
        assert r.out or r.err.startswith(b"subagent: "), (n, r)
    else:
        assert r.out == b"done\n", (kind, n, r)
    # The last one: nothing was hit any more.
    return r.status == 0 and not r.err and len(api.requests) == 3


@pytest.fixture
def project(sub):
    sub.agent("a", "name: a\ndescription: d")
    sub.write("a.txt", "one\n")
    sub.write("b.txt", "two\n")
    return sub


@pytest.mark.parametrize("kind,most", [("write", 60), ("read", 200),
                                       ("fork", 12)])
def test_each_call_fails_once(fake, project, kind, most):
    """Under the sanitizers: no leak, no use of what is gone."""
    project.binary = ASAN or DEBUG
    clean = 0
    for n in range(1, most):
        clean = clean + 1 if attempt(fake, project, kind, n) else 0
        if clean == 5:
            return
    raise AssertionError("still faults after %d" % most)


def test_out_of_memory(fake, project):
    """Every allocation at the start, then samples: a clear end."""
    project.binary = DEBUG
    assert os.access(DEBUG, os.X_OK), "./build.sh debug makes it"
    n, clean, hits = 1, 0, 0
    while clean < 5:
        api = fake(script())
        api.may_leave = api.may_violate = True
        r = project("-p", "go", "--agent", "a", *ALLOW,
                    env={"SA_FAULT": "alloc:%d" % n, "SA_SEED": "7"})
        if r.status == 0:
            # a worker may have died of it: that is a tool's error, no more
            assert r.out == b"done\n", (n, r)
            clean += 1
        else:
            assert r.status == 1 and b"out of memory" in r.err, (n, r)
            assert r.out == b"", (n, r)
            clean = 0
            hits += 1
        n += 1 if n < 40 else 1 + n // 12
    assert hits > 40
