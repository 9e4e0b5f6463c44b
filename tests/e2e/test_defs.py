"""Agent files in a run (B01 to B07)."""

import json
import os

import pytest

from helpers import block_texts, git, system_of, turn

CORPUS_HEADER = "name: plan-bake\ndescription: Plans a bake. Use when: the " \
    "oven is free\ntools: Read\n"


def listing(sub, *args, **kw):
    r = sub("agents", "--json", *args, **kw)
    assert r.status == 0
    return r, {a["name"]: a for a in r.json if a.get("name")}


@pytest.mark.parametrize("eol", ["\n", "\r\n", "mixed"])
def test_colon_in_a_description(sub, eol):
    """B01, B02."""
    data = "---\n" + CORPUS_HEADER + "---\nBake.\nWell.\n"
    if eol == "mixed":
        data = data.replace("free\n", "free\r\n").replace("Bake.\n",
                                                          "Bake.\r\n")
    else:
        data = data.replace("\n", eol)
    sub.write(".claude/agents/a.md", data)
    r, agents = listing(sub)
    a = agents["plan-bake"]
    assert a["tools"] == ["Read"] and a["active"] is True
    assert a["description"] == "Plans a bake. Use when: the oven is free"
    assert len(a["warnings"]) == 1
    assert a["warnings"][0]["line"] == 3
    assert "\r" not in json.dumps(a) and "\\r" not in json.dumps(a)


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_colon_agent_runs_with_one_warning(fake, sub, eol):
    sub.write(".claude/agents/a.md", ("---\n" + CORPUS_HEADER +
                                      "---\nBake.\nWell.\n")
              .replace("\n", eol))
    api = fake([turn("x")])
    r = sub("-p", "hi", "--agent", "plan-bake")
    assert (r.out, r.status) == (b"x\n", 0)
    assert r.err.count(b"\n") == 1
    assert b"a.md:3" in r.err
    assert api.requests[0].tool_names() == ["Read"]
    assert "Bake.\nWell." in system_of(api.requests[0])


def test_byte_order_mark(fake, sub):
    """B03."""
    sub.write(".claude/agents/a.md",
              b"\xef\xbb\xbf---\nname: a\ndescription: b\n---\nhi\n")
    api = fake([turn("x")])
    assert sub("-p", "go", "--agent", "a").status == 0
    assert "\ufeff" not in system_of(api.requests[0])
    assert system_of(api.requests[0]).startswith("hi")


def test_utf16_is_refused_with_a_word(sub):
    path = sub.write("a.md", "---\nname: a\ndescription: b\n---\nhi\n"
                     .encode("utf-16"))
    r = sub("check", path)
    assert r.status == 1 and b"UTF-16" in r.out + r.err


def test_description_that_goes_on_at_column_0(fake, sub):
    """B04: what is written below still restricts."""
    sub.write(".claude/agents/a.md", """---
name: col
description: Use this when needed.
<example>
user: "please: look"
assistant: "I look"
</example>
tools: Read, Grep
disallowedTools: Grep
permissionMode: plan
---
Look.
""")
    api = fake([turn("x")])
    assert sub("-p", "go", "--agent", "col").status == 0
    assert api.requests[0].tool_names() == ["Read"]


def test_unreadable_restriction_never_means_all_tools(fake, sub):
    sub.write(".claude/agents/a.md", """---
name: bad
description: Some: thing
tools: [Read, "Gr
---
Look.
""")
    api = fake(lambda q: turn("x"))
    r = sub("-p", "go", "--agent", "bad")
    if r.status == 0:
        assert set(api.requests[0].tool_names()) <= {"Read", "Grep"}
    else:
        assert api.requests == [] and b"a.md" in r.err


def test_many_files(sub):
    """B05."""
    for i in range(300):
        sub.agent("a%03d" % i, "name: a%03d\ndescription: d" % i)
    for i in range(20):
        sub.agent("x/y/z%d" % i, "name: z%d\ndescription: d" % i)
    r, agents = listing(sub)
    ours = [a["name"] for a in r.json if a["source"] == "project"]
    assert len(ours) == 320
    assert [a["name"] for a in listing(sub)[0].json] == \
        [a["name"] for a in r.json]


@pytest.mark.parametrize("line,want", [
    ("tools: [Read, Write, Bash]", ["Bash", "Read", "Write"]),
    ("tools: [Read]", ["Read"]),
    ("tools:\n  - Read\n  - Write\n  - Bash", ["Bash", "Read", "Write"]),
    ('tools: ["Read", \'Write\', Bash]', ["Bash", "Read", "Write"]),
    ("tools: Read, Write,Bash", ["Bash", "Read", "Write"]),
    ('tools: "Read, Write"', ["Read", "Write"]),
    ("tools: [Read,\n  Write, Bash]", ["Bash", "Read", "Write"]),
    ("tools: []", []),
    ("tools:", None),
    ("tools: Read, MultiEdit, LS", ["Read"]),
    ("tools: Bash(git *), Read", ["Bash", "Read"]),
    ("disallowedTools: Bash, Write, Edit\ntools: Bash, Read", ["Read"]),
])
def test_tools_of_an_agent(fake, sub, line, want):
    """B06, B07."""
    sub.agent("a", "name: a\ndescription: d\n" + line)
    api = fake([turn("x")])
    r = sub("-p", "go", "--agent", "a")
    assert r.status == 0, r
    names = api.requests[0].tool_names()
    if want is None:
        assert names == [] or "Read" in names
    else:
        assert sorted(names) == want


def test_no_tool_resolves(fake, sub):
    sub.agent("a", "name: a\ndescription: d\ntools: Nope, Nada")
    api = fake([])
    r = sub("-p", "go", "--agent", "a")
    assert r.status in (1, 2) and b"Nope" in r.err
    assert api.requests == []


def test_agent_is_the_main_thread(fake, sub):
    sub.agent("a", "name: a\ndescription: d\nmodel: haiku\neffort: low\n"
              "initialPrompt: do your thing",
              "You are the tester.")
    api = fake([turn("x"), turn("y")])
    assert sub("-p", "go", "--agent", "a").status == 0
    q = api.requests[0]
    assert q.json["model"] == "claude-haiku-5-5"
    assert q.json["output_config"] == {"effort": "low"}
    assert system_of(q).startswith("You are the tester.")
    sub("-p", "go", "--agent", "a", "--model", "opus")
    assert api.requests[1].json["model"] == "claude-opus-5-5"


def test_agents_from_the_command_line(fake, sub):
    api = fake([turn("x")])
    r = sub("-p", "go", "--agent", "inline", "--agents", json.dumps({
        "inline": {"description": "d", "prompt": "Inline prompt.",
                   "tools": ["Read", "Grep"]}}))
    assert r.status == 0
    assert sorted(api.requests[0].tool_names()) == ["Grep", "Read"]
    assert system_of(api.requests[0]).startswith("Inline prompt.")


def test_precedence(fake, sub):
    os.makedirs(sub.home + "/.claude/agents")
    with open(sub.home + "/.claude/agents/a.md", "w") as f:
        f.write("---\nname: same\ndescription: user's\n---\nuser\n")
    r, agents = listing(sub)
    assert agents["same"]["source"] == "user"
    sub.agent("a", "name: same\ndescription: project's")
    both = [a for a in sub("agents", "--json").json
            if a.get("name") == "same"]
    active = [a for a in both if a["active"]]
    assert len(both) == 2 and len(active) == 1
    assert active[0]["source"] == "project"
    r, agents = listing(sub, "--setting-sources", "user")
    assert agents["same"]["source"] == "user"


def test_files_that_are_no_agents(fake, sub):
    """Documentation, broken and hostile files cost nothing but a word."""
    sub.write(".claude/agents/README.md", "# Agents\n\nno header\n")
    sub.write(".claude/agents/empty.md", "")
    sub.write(".claude/agents/open.md", "---\nname: open\n")
    sub.write(".claude/agents/bin.md", bytes(range(256)) * 8)
    sub.write(".claude/agents/bomb.md", "---\na: &a [x,x]\nb: &b [*a,*a]\n"
              + "".join("%s: &%s [*%s,*%s,*%s]\n" % (c, c, p, p, p)
                        for p, c in zip("bcdefghijklmnop",
                                        "cdefghijklmnopq"))
              + "name: bomb\ndescription: *q\n---\n")
    sub.write(".claude/agents/deep.md", "---\nname: deep\ndescription: d\nx: "
              + "[" * 5000 + "]" * 5000 + "\n---\nhi\n")
    sub.write(".claude/agents/huge.md", "---\nname: huge\ndescription: d\n"
              "---\n" + "x" * 3000000)
    os.mkfifo(sub.path(".claude/agents/fifo.md"))
    os.symlink(".", sub.path(".claude/agents/loop"))
    os.symlink("/dev/zero", sub.path(".claude/agents/zero.md"))
    sub.agent("good", "name: good\ndescription: d\ntools: Read")
    r, agents = listing(sub)
    assert agents["good"]["active"]
    api = fake([turn("x")])
    assert sub("-p", "go", "--agent", "good").out == b"x\n"
    assert api.requests[0].tool_names() == ["Read"]


def test_nested_folders_up_to_the_repository(fake, sub):
    git(sub.project, "init", "-q")
    sub.agent("top", "name: top\ndescription: d")
    os.makedirs(sub.path("a/b"))
    sub.write("a/.claude/agents/mid.md",
              "---\nname: mid\ndescription: d\n---\nhi\n")
    r, agents = listing(sub, cwd=sub.path("a/b"))
    assert {"top", "mid"} <= set(agents)
    outside = os.path.join(sub.tmp, ".claude/agents")
    os.makedirs(outside)
    with open(outside + "/out.md", "w") as f:
        f.write("---\nname: out\ndescription: d\n---\nhi\n")
    r, agents = listing(sub, cwd=sub.path("a/b"))
    assert "out" not in agents


def test_bare_reads_no_files(fake, sub):
    sub.agent("a", "name: a\ndescription: d")
    sub.write("CLAUDE.md", "MEMORY-WORD\n")
    api = fake([turn("x"), turn("y")])
    assert sub("-p", "go").status == 0
    assert "MEMORY-WORD" in "\n".join(block_texts(
        api.requests[0].messages[0]))
    assert sub("-p", "go", "--bare").status == 0
    q = api.requests[1]
    assert b"MEMORY-WORD" not in q.raw


@pytest.mark.parametrize("name", ["general-purpose", "Explore", "Plan",
                                  "verification"])
def test_built_in_agents_run(fake, sub, name):
    api = fake([turn("x")])
    r = sub("-p", "go", "--agent", name)
    assert (r.out, r.status) == (b"x\n", 0)
    names = set(api.requests[0].tool_names())
    if name in ("Explore", "Plan"):
        assert not names & {"Write", "Edit"}
    assert "Read" in names


def test_built_ins_can_be_switched_off(sub):
    r, agents = listing(sub, env={"CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS":
                                  "1"})
    assert agents == {}
    r, agents = listing(sub, env={
        "CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS": "1"})
    assert "Explore" not in agents and "general-purpose" in agents
