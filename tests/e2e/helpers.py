"""Words that many end-to-end tests use."""

import os
import subprocess
import time

from fakeapi import (block, redacted, text, thinking, tool, turn)  # noqa: F401

ALLOW = ("--allowedTools", "Bash,Read,Write,Edit,Glob,Grep")


def bash(command, id=None, **more):
    return tool("Bash", dict({"command": command}, **more), id=id)


def one_call(fake, call, *more, **options):
    """The usual script: one tool call, then "done"."""
    return fake([turn(call, *more), turn("done")], **options)


def run_tool(fake, sub, call, *args, allow=True, **kw):
    """Runs one call; (result text, is_error, whole result block)."""
    api = one_call(fake, call)
    r = sub("-p", "go", *(ALLOW if allow else ()), *args, **kw)
    assert (r.status, r.out) == (0, b"done\n"), r
    request = api.requests[-1]
    b = list(request.results().values())[0]
    return request.result_text(), b.get("is_error", False), b


def block_texts(message):
    """Texts of a message's text blocks."""
    return [b["text"] for b in message["content"] if b["type"] == "text"]


def prompt_of(request):
    """The user's own words: the last text of the first message."""
    return block_texts(request.messages[0])[-1]


def system_of(request):
    return "\n".join(b["text"] for b in request.json["system"])


def git(folder, *args):
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nowhere",
           "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
           "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b"}
    return subprocess.run(("git", "-c", "init.defaultBranch=main") + args,
                          cwd=folder, env=env, check=True,
                          stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE).stdout


def wait_for(condition, timeout=15):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
