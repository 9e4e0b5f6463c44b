"""permit: one decision, explained, by exit status 0 allow, 3 ask, 4 deny."""

import json
import os

import pytest

STATUS = {"allow": 0, "ask": 3, "deny": 4}


def permit(sub, tool, call, *args, **kw):
    """The decision, as JSON; the exit status agrees with it."""
    r = sub("permit", "--json", *args, "--", tool, json.dumps(call), **kw)
    assert r.out.count(b"\n") == 1, r
    assert sorted(r.json) == ["decision", "reason", "rule"], r
    assert r.status == STATUS[r.json["decision"]], r
    assert r.json["reason"]
    return r.json


def command(sub, text, *args, **kw):
    return permit(sub, "Bash", {"command": text}, *args, **kw)["decision"]


def settings(sub, **lists):
    return ("--settings", json.dumps({"permissions": lists}))


def test_output(sub):
    r = sub("permit", "--", "Bash", '{"command": "ls"}')
    assert r.status == 0 and r.out.startswith(b"allow: ")
    r = sub("permit", "--", "Bash", '{"command": "touch x"}')
    assert r.status == 3 and r.out.startswith(b"ask: ")
    assert b"touch x" in r.out
    j = permit(sub, "Bash", {"command": "rm x"}, "--disallowedTools",
               "Bash(rm:*)")
    assert j["decision"] == "deny" and j["rule"] == "Bash(rm:*)"
    assert "--disallowedTools" in j["reason"]


@pytest.mark.parametrize("args", [
    (), ("Bash",), ("Bash", "x"), ("Bash", "[]"), ("Bash", "{}", "x")])
def test_usage(sub, args):
    r = sub("permit", "--", *args)
    assert r.status == 2 and r.out == b"" and r.err


@pytest.mark.parametrize("text,want", [
    ("git log -1", "allow"), ("git log '; touch x'", "allow"),
    ("git log -1; touch got-in", "ask"), ("git log && touch got-in", "ask"),
    ("git log || touch got-in", "ask"), ("git log | touch got-in", "ask"),
    ("git log |& touch got-in", "ask"), ("git log & touch got-in", "ask"),
    ("git log\ntouch got-in", "ask"), ('git log "$(touch got-in)"', "ask"),
    ("git log `touch got-in`", "ask"), ("git log <(touch got-in)", "ask")])
def test_chains_are_not_allowed(sub, text, want):
    """B08."""
    assert command(sub, text, "--allowedTools", "Bash(git log:*)") == want


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan",
                                  "dontAsk", "bypassPermissions"])
@pytest.mark.parametrize("text", [
    "ls && (cd t; rm -r x)", "true | xargs rm x", "if true; then rm x; fi",
    "sh -c 'rm x'", "x=rm; $x y"])
def test_chains_are_denied(sub, text, mode):
    """B09."""
    assert command(sub, text, "--allowedTools", "Bash(*)", "--permission-mode",
                   mode, *settings(sub, deny=["Bash(rm:*)"]),
                   env={"IS_SANDBOX": "1"}) == "deny"


@pytest.mark.parametrize("text", ["cat a", "cat /etc/hostname", "/bin/cat a",
                                  "c''at a"])
def test_command_word_decides(sub, text):
    """B10."""
    assert command(sub, text, *settings(sub, deny=["Bash(cat:*)"])) == "deny"


@pytest.mark.parametrize("tool,path", [
    ("Read", "secret.txt"), ("Read", "s"), ("Read", "d/secret.txt"),
    ("Read", "x/../secret.txt"), ("Edit", "s"), ("Write", "d/s")])
def test_links_are_followed(sub, tool, path):
    """B11."""
    sub.write("secret.txt", "x\n")
    os.symlink("secret.txt", sub.path("s"))
    os.symlink(".", sub.path("d"))
    deny = settings(sub, deny=["Read(./secret.txt)"], allow=["Edit", "Bash"])
    assert permit(sub, tool, {"file_path": path}, *deny)["decision"] == "deny"
    assert command(sub, "cat " + path, *deny) == "deny"
    assert command(sub, "find . -name secret.txt -exec cat {} +",
                   *deny) == "deny"


def test_order_of_lists(sub):
    """4.2: deny, ask, allow; the more exact rule does not matter."""
    rules = settings(sub, allow=["Bash(a b)"], ask=["Bash(a *)"])
    assert command(sub, "a b", *rules) == "ask"
    rules = settings(sub, allow=["Bash(a b)"], ask=["Bash(a b)"],
                     deny=["Bash(a*)"])
    assert command(sub, "a b", *rules) == "deny"


@pytest.mark.parametrize("rule,text,want", [
    ("xy *", "xy", "allow"), ("xy *", "xy -a", "allow"),
    ("xy *", "xyz", "ask"), ("xy:*", "xyz", "ask"), ("xy*", "xyz", "allow"),
    ("xy", "xy a", "ask"), ("xy:a", "xy a", "ask"),
    ("xy *", "timeout 5 xy a", "allow"), ("xy *", "LANG=C xy", "allow"),
    ("xy *", "LD_PRELOAD=a xy", "ask"), ("xy *", "xargs xy", "allow"),
    ("xy *", "xargs -n1 xy", "ask"), ("xy *", "npx xy", "ask"),
    ("watch *", "watch xy", "ask"), ("find *", "find . -delete", "ask"),
    ("find . -delete", "find . -delete", "allow"),
    ("xy *", "xy >f", "ask"), ("xy *", "xy >/dev/null 2>&1", "allow"),
    ("xy *", "xy " + "a" * 10000, "ask")])
def test_bash_rules(sub, rule, text, want):
    """4.3."""
    assert command(sub, text, *settings(sub, allow=["Bash(%s)" % rule])) \
        == want


def test_path_anchors(sub):
    """4.4: what a leading / means depends on where the rule stands."""
    def read(path, *args):
        return permit(sub, "Read", {"file_path": path}, *args)["decision"]

    os.makedirs(sub.home + "/.claude")
    with open(sub.home + "/.claude/settings.json", "w") as f:
        json.dump({"permissions": {"deny": ["Read(/a)", "Read(~/b)"]}}, f)
    sub.write(".claude/settings.json", json.dumps({
        "permissions": {"deny": ["Read(/c)", "Read(.env)", "Read(src/**)"]}}))
    sub.write("other/s.json", json.dumps({
        "permissions": {"deny": ["Read(/e)"]}}))
    flag = ("--settings", sub.path("other/s.json"))
    assert read(sub.home + "/.claude/a") == "deny"
    assert read("a") == "allow"
    assert read("~/b") == "deny"
    assert read("c") == "deny" and read("x/c") == "allow"
    assert read(".env") == read("x/y/.env") == "deny"
    assert read("src/x") == read("x/src/y") == "deny"
    assert read("other/e", *flag) == "deny"
    assert read("e", *flag) == "allow"
    allow = ("--allowedTools", "Read(//etc/**)")
    assert read("/etc/passwd", *allow) == "allow"
    assert read("/etc/passwd") == read("/etc/../var/x", *allow) == "ask"


def test_working_folders(sub):
    """4.5."""
    other = os.path.join(sub.tmp, "other")
    os.mkdir(other)
    path = {"file_path": other + "/x"}
    assert permit(sub, "Read", path)["decision"] == "ask"
    assert permit(sub, "Read", path, "--add-dir", other)["decision"] == \
        "allow"
    assert permit(sub, "Write", path, "--permission-mode", "acceptEdits",
                  "--add-dir", other)["decision"] == "allow"
    block = ("--settings", json.dumps({"permissions": {
        "blockReadsOutsideWorkingDirectories": True,
        "allow": ["Read"]}}))
    assert permit(sub, "Read", path, *block)["decision"] == "deny"


@pytest.mark.parametrize("path", [
    ".git/config", ".vscode/x", ".claude/settings.json", "a/.husky/x",
    ".bashrc", "a/.npmrc", ".mcp.json", ".GIT/config", ".config/git/x",
    "link/config"])
def test_protected_paths(sub, path):
    """4.5: no rule opens them."""
    os.makedirs(sub.path(".git"), exist_ok=True)
    os.symlink(".git", sub.path("link"))
    rule = settings(sub, allow=["Edit", "Write", "Bash"])
    for mode, want in (("default", "ask"), ("acceptEdits", "ask"),
                       ("dontAsk", "deny")):
        more = rule + ("--permission-mode", mode)
        assert permit(sub, "Write", {"file_path": path},
                      *more)["decision"] == want
        assert command(sub, "echo x >" + path, *more) == want
    assert permit(sub, "Write", {"file_path": path}, "--permission-mode",
                  "bypassPermissions",
                  env={"IS_SANDBOX": "1"})["decision"] == "allow"


@pytest.mark.parametrize("text", [
    "rm -rf /", "rm -rf /usr", "rm -r ~", "rm -rf .", "rm -rf *",
    'rm -rf "$x"/*', "sudo rm -rf ..", "bash -c 'rm -rf /'"])
def test_critical_paths(sub, text):
    """4.5: no rule and no mode lets it pass."""
    sandbox = {"IS_SANDBOX": "1"}
    assert command(sub, text, "--allowedTools", "Bash") == "ask"
    assert command(sub, text, "--permission-mode", "bypassPermissions",
                   env=sandbox) == "ask"
    assert command(sub, text, "--permission-mode", "dontAsk",
                   "--allowedTools", "Bash") == "deny"


@pytest.mark.parametrize("tool,call,wants", [
    # default, acceptEdits, plan, dontAsk, bypassPermissions
    ("Read", {"file_path": "x"}, "allow allow allow allow allow"),
    ("Read", {"file_path": "/etc/x"}, "ask ask ask deny allow"),
    ("Grep", {"pattern": "x"}, "allow allow allow allow allow"),
    ("Write", {"file_path": "x"}, "ask allow ask deny allow"),
    ("Write", {"file_path": "/etc/x"}, "ask ask ask deny allow"),
    ("Bash", {"command": "ls"}, "allow allow allow allow allow"),
    ("Bash", {"command": "touch x"}, "ask allow ask deny allow"),
    ("Bash", {"command": "touch /etc/x"}, "ask ask ask deny allow"),
    ("Bash", {"command": "make"}, "ask ask ask deny allow"),
    ("TodoWrite", {"todos": []}, "allow allow allow allow allow")])
def test_modes(sub, tool, call, wants):
    """4.6."""
    modes = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
    for mode, want in zip(modes, wants.split()):
        assert permit(sub, tool, call, "--permission-mode", mode,
                      env={"IS_SANDBOX": "1"})["decision"] == want, mode


def test_rules_hold_in_every_mode(sub):
    """4.6: deny and ask also bind bypassPermissions; plan edits nothing."""
    sandbox = {"IS_SANDBOX": "1"}
    bypass = ("--permission-mode", "bypassPermissions")
    path = {"file_path": "x"}
    assert permit(sub, "Write", path, *bypass,
                  *settings(sub, deny=["Edit(x)"]),
                  env=sandbox)["decision"] == "deny"
    assert permit(sub, "Write", path, *bypass,
                  *settings(sub, ask=["Edit(x)"]),
                  env=sandbox)["decision"] == "ask"
    assert permit(sub, "Write", path, "--permission-mode", "plan",
                  *settings(sub, allow=["Edit"]))["decision"] == "ask"
    assert command(sub, "a", "--permission-mode", "dontAsk",
                   *settings(sub, ask=["Bash(a)"])) == "deny"


def test_parameters(sub):
    """4.2: Tool(param:value), for deny and ask alone."""
    rule = settings(sub, deny=["Agent(model:op*)"], allow=["Agent"])

    def agent(**call):
        return permit(sub, "Agent", call, *rule)["decision"]

    assert agent(subagent_type="good") == "allow"
    assert agent(subagent_type="good", model="opus") == "deny"
    assert agent(subagent_type="good", model="sonnet") == "allow"
    rule = settings(sub, deny=["Bash(run_in_background:true)"],
                    allow=["Bash"])
    assert permit(sub, "Bash", {"command": "a", "run_in_background": True},
                  *rule)["decision"] == "deny"
    assert permit(sub, "Bash", {"command": "a"}, *rule)["decision"] == "allow"


@pytest.mark.parametrize("rule,tool,want", [
    ("mcp__a", "mcp__a__x", "allow"), ("mcp__a__*", "mcp__a__x", "allow"),
    ("mcp__a__x*", "mcp__a__xy", "allow"), ("mcp__a__x", "mcp__a__y", "ask"),
    ("mcp__*", "mcp__a__x", "ask"), ("mcp__ab*", "mcp__abc__x", "ask"),
    ("*", "mcp__a__x", "ask")])
def test_tool_names(sub, rule, tool, want):
    """4.2: where a glob counts in an allow rule; any in a deny rule."""
    assert permit(sub, tool, {}, *settings(sub, allow=[rule]))["decision"] \
        == want
    if want == "allow" or "*" in rule:
        assert permit(sub, tool, {}, *settings(sub, deny=[rule]))[
            "decision"] == "deny"


def test_a_broken_rule_denies_and_does_not_allow(sub):
    assert command(sub, "ls", *settings(sub, deny=["Bash(x"])) == "deny"
    assert command(sub, "x", *settings(sub, allow=["Bash(x"])) == "ask"
