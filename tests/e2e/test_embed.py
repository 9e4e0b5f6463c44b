"""The library: tests/embed/example.c is compiled, linked, run and checked."""

import glob
import os
import subprocess

import pytest

from conftest import ROOT
from helpers import tool, turn

AGENT = """---
name: clerk
description: writes notes
tools: Write, Read
hooks: {pre: x}
---
You write notes.
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The example as a C programmer builds it, with the sanitizers on."""
    out = str(tmp_path_factory.mktemp("embed") / "example")
    libs = sorted(glob.glob(os.path.join(ROOT, "build/asan/lib/*.a")))
    assert libs, "./build.sh asan makes the libraries"
    subprocess.run(
        ["gcc", "-std=gnu11", "-O0", "-g", "-w", "-DSA_LIBRARY",
         "-fsanitize=address,undefined", "-I" + ROOT, "-I" + ROOT + "/build/gen",
         "-I" + ROOT + "/build/inc", "-o", out,
         ROOT + "/tests/embed/example.c", ROOT + "/subagent.c"] + libs +
        ["-lm"], check=True)
    return out


def test_run(fake, sub, example):
    api = fake([turn(tool("Write", {"file_path": sub.path("n.txt"),
                                    "content": "noted\n"})),
                turn(tool("Write", {"file_path": sub.path("secret.txt"),
                                    "content": "x"})),
                turn("done")])
    sub.write("clerk.md", AGENT)
    sub.binary = example
    r = sub("clerk.md", "take a note")
    lines = r.out.decode().splitlines()
    assert r.status == 0, r
    assert lines[0] == "agent: clerk"
    assert lines[1].startswith("warning: line ") and "hooks" in lines[1]
    assert lines[2].startswith("request: ")
    assert lines[3] == "completed: done"
    assert lines[4] == "turns 3, messages 6, denials 1"
    assert not sub.exists("secret.txt")
    assert sub.read("n.txt") == b"noted\n"
    assert b"question: Write" in r.err
    assert sorted(api.requests[0].tool_names()) == ["Read", "Write"]


def test_errors(sub, example):
    sub.binary = example
    sub.write("bad.md", "---\nname: x\n")
    r = sub("bad.md", "hi")
    assert r.status == 1 and b"bad.md" in r.err
    r = sub("none.md", "hi")
    assert r.status == 1 and b"none.md" in r.err
