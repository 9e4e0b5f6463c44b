#!/usr/bin/python3
"""Makes demo.jsonl, the recording that `./build.sh demo` plays back.

    /usr/bin/python3 tests/demo/record.py "PROMPT" OPTION...

Runs ./subagent --record against the scripted API of tests/fake; the answer
is worked out from subagent.c as it is now, so it is true when recorded.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "fake"))

from fakeapi import FakeApi, text, tool, turn             # noqa: E402


def sections():
    """[(name, lines)] in order."""
    with open(os.path.join(ROOT, "subagent.c")) as f:
        lines = f.read().split("\n")
    found = [(m.group(1), i) for i, line in enumerate(lines)
             for m in [re.match(r"/\*=== \[(\w+)\]", line)] if m]
    ends = [i for _, i in found[1:]] + [len(lines)]
    return [(name, end - i) for (name, i), end in zip(found, ends)]


def main():
    prompt, options = sys.argv[1], sys.argv[2:]
    all_ = sections()
    name, size = max(all_, key=lambda s: s[1])
    script = [
        turn(text("Each section begins with a banner: I list them."),
             tool("Grep", {"pattern": r"^/\*=== \[", "path": "subagent.c",
                           "output_mode": "content", "-n": True},
                  id="toolu_demo_1"),
             tool("Bash", {"command": "grep -c '^/\\*=== ' subagent.c",
                           "description": "count the sections"},
                  id="toolu_demo_2")),
        turn(text("subagent.c has %d sections. The longest is [%s] with "
                  "about %d lines; [%s] and [%s] stand first and last."
                  % (len(all_), name, round(size, -1), all_[0][0],
                     all_[-1][0])))]
    with FakeApi(script) as api:
        env = dict(os.environ, ANTHROPIC_BASE_URL=api.url,
                   ANTHROPIC_API_KEY=api.key)
        subprocess.run([os.path.join(ROOT, "subagent"), *options, "--record",
                        os.path.join(HERE, "demo.jsonl"), prompt], env=env,
                       cwd=ROOT, stdin=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
