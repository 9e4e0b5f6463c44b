"""Settings files, their order, broken ones, trust, environment, CLAUDE.md."""

import json
import os
import shutil
import subprocess

import pytest

from helpers import bash, git, turn

TOUCH = ("Bash", '{"command":"touch x"}')
USER, PROJECT, LOCAL = "user", "project", "local"


def settings(sub, where, value):
    """Writes a settings file: text as it is, anything else as JSON."""
    path = {
        USER: os.path.join(sub.home, ".claude", "settings.json"),
        PROJECT: sub.path(".claude/settings.json"),
        LOCAL: sub.path(".claude/settings.local.json"),
    }[where]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(value if isinstance(value, bytes) else
                (value if isinstance(value, str)
                 else json.dumps(value)).encode("utf-8"))
    return path


def rules(**lists):
    return {"permissions": lists}


def trust(sub, path=None, **more):
    flags = dict({"hasTrustDialogAccepted": True}, **more)
    with open(os.path.join(sub.home, ".claude.json"), "w") as f:
        json.dump({"numStartups": 3, "projects": {
            path or os.path.realpath(sub.project): flags}}, f)


def permit(sub, *args, call=TOUCH, **kw):
    """(decision, rule, stderr) of one question."""
    r = sub("permit", "--json", *call, *args, **kw)
    assert r.status in (0, 3, 4), r
    v = r.json
    assert r.status == {"allow": 0, "ask": 3, "deny": 4}[v["decision"]]
    return v["decision"], v["rule"], r.err.decode()


def body(sub, *args, **kw):
    """The first request's body."""
    r = sub("request", *args, "hi", **kw)
    assert r.status == 0, r
    return r.json


def first_text(b):
    return "\n".join(t["text"] for t in b["messages"][0]["content"]
                     if t["type"] == "text")


def refused(sub, *args, **kw):
    """stderr of a run that must not start."""
    r = sub("permit", "--json", *TOUCH, *args, **kw)
    assert (r.status, r.out) == (2, b""), r
    assert r.err.count(b"\n") == 1, r
    return r.err.decode()


@pytest.mark.asan
def test_scalar_precedence(sub):
    args = ()
    env = {}
    assert body(sub)["model"] == "claude-sonnet-5-5"
    env["ANTHROPIC_DEFAULT_MODEL"] = "m-default"
    assert body(sub, env=env)["model"] == "m-default"
    for where in (USER, PROJECT, LOCAL):
        settings(sub, where, {"model": "m-" + where})
        assert body(sub, env=env)["model"] == "m-" + where
    args = ("--settings", '{"model":"m-flag"}')
    assert body(sub, *args, env=env)["model"] == "m-flag"
    env["ANTHROPIC_MODEL"] = "m-env"
    assert body(sub, *args, env=env)["model"] == "m-env"
    assert body(sub, *args, "--model", "m-option",
                env=env)["model"] == "m-option"


def test_setting_sources(sub):
    for where in (USER, PROJECT, LOCAL):
        settings(sub, where, {"model": "m-" + where})
    for sources, model in (("user,project,local", "m-local"),
                           ("user,project", "m-project"),
                           ("user", "m-user"), ("local", "m-local"),
                           ("", "claude-sonnet-5-5")):
        assert body(sub, "--setting-sources", sources)["model"] == model
        assert body(sub, "--setting-sources=" + sources)["model"] == model
    assert "'usr'" in refused(sub, "--setting-sources", "usr")


@pytest.mark.asan
def test_rules_of_every_source(sub):
    assert permit(sub)[0] == "ask"
    for where in (USER, PROJECT, LOCAL):
        path = settings(sub, where, rules(deny=["Bash(touch *)"]))
        decision, rule, err = permit(sub, "--allowedTools", "Bash")
        assert (decision, rule, err) == ("deny", "Bash(touch *)", "")
        os.unlink(path)
    for where in (USER, LOCAL):
        path = settings(sub, where, rules(allow=["Bash(touch *)"]))
        assert permit(sub)[:2] == ("allow", "Bash(touch *)")
        os.unlink(path)
    text = json.dumps(rules(allow=["Bash(touch *)"]))
    assert permit(sub, "--settings", text)[0] == "allow"
    sub.write("s.json", text)
    assert permit(sub, "--settings", "s.json")[0] == "allow"
    assert permit(sub, "--settings", sub.path("s.json"))[0] == "allow"


# What a settings file can be that ends the run: it may hold deny rules.
BROKEN = {
    "cut": ('{"permissions":{"deny":["Bash', ":1:30: "),
    "comma": ('{\n  "model": "x",\n}\n', ":3:1: "),
    "comment": ("// mine\n{}", ":1:1: "),
    "empty": ("", "empty"),
    "list": ("[]", "object"),
    "utf16": ("{}".encode("utf-16"), "UTF-16"),
    "deny": ('{"permissions": {"deny": "Bash"}}',
             ":1:26: permissions.deny: "),
    "ask": ('{"permissions": {"ask": [1]}}', "permissions.ask: "),
    "mode": ('{"permissions": {"defaultMode": "plna"}}', "plan"),
    "twice": ('{"permissions":{"deny":["Bash"]},"permissions":{}}',
              "twice"),
    "zero": ('{"permissions":{"deny":["Ba\\u0000sh"]}}', "u0000"),
}


@pytest.mark.asan
@pytest.mark.parametrize("how", sorted(BROKEN))
@pytest.mark.parametrize("where", [USER, PROJECT, LOCAL])
def test_broken_file_ends_the_run(sub, where, how):
    text, says = BROKEN[how]
    path = settings(sub, where, text)
    err = refused(sub)
    assert os.path.realpath(path) in err and says in err
    # and it tells how to go on without the file
    hint = err.split("--setting-sources ")[1].split()[0]
    assert sorted(hint.split(",") + [where]) == sorted([USER, PROJECT, LOCAL])
    assert permit(sub, "--setting-sources", hint)[0] == "ask"


def test_broken_file_sends_nothing(fake, sub):
    api = fake([])
    settings(sub, PROJECT, "{")
    r = sub("-p", "hi")
    assert (r.status, r.out) == (2, b"")
    assert b"settings.json:1:2: " in r.err
    assert api.requests == []


@pytest.mark.parametrize("text", ["{", '{"permissions":[]}', "no/such/file",
                                  ""])
def test_broken_settings_option(sub, text):
    assert "--settings" in refused(sub, "--settings=" + text) or text


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "loop"])
def test_settings_that_are_no_file(sub, kind):
    path = settings(sub, USER, "{}")
    os.unlink(path)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        os.mkdir(path)
    else:
        os.symlink("settings.json" if kind == "loop" else "/nowhere/x", path)
    assert path in refused(sub)


def test_unreadable(sub):
    path = settings(sub, USER, {})
    os.chmod(path, 0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert "Permission denied" in refused(sub)


def test_too_large(sub):
    settings(sub, USER, "{" + " " * (2 << 20) + "}")
    assert "larger" in refused(sub)


def test_wrong_type_loses_only_its_key(sub):
    settings(sub, USER, {"model": 7, "agent": None, "statusLine": 1,
                         "permissions": {"deny": ["Bash(touch *)"]}})
    decision, rule, err = permit(sub)
    assert (decision, rule) == ("deny", "Bash(touch *)")
    assert err.count("warning") == 2
    assert "model is not used" in err and "agent is not used" in err
    assert body(sub)["model"] == "claude-sonnet-5-5"


@pytest.mark.asan
def test_untrusted_project_allows_nothing(sub):
    extra = os.path.join(sub.tmp, "extra")
    os.mkdir(extra)
    with open(os.path.join(extra, "f"), "w") as f:
        f.write("x")
    read = ("Read", json.dumps({"file_path": os.path.join(extra, "f")}))
    settings(sub, PROJECT, rules(
        allow=["Bash(touch *)", "Edit"], deny=["Bash(rm *)"],
        additionalDirectories=[extra], defaultMode="acceptEdits"))
    decision, rule, err = permit(sub)
    assert decision == "ask"
    assert "Ignoring 2 permissions.allow entries" in err
    assert "this workspace has not been trusted" in err
    assert "permissions.defaultMode 'acceptEdits' is not used" in err
    assert permit(sub, call=read)[0] == "ask"
    assert permit(sub, call=("Bash", '{"command":"rm x"}'))[0] == "deny"
    # a parent's trust is not the folder's
    trust(sub, sub.tmp)
    assert permit(sub)[0] == "ask"
    trust(sub)
    assert permit(sub) == ("allow", "Bash(touch *)", "")
    assert permit(sub, call=read)[0] == "allow"


def test_project_never_bypasses(sub):
    trust(sub)
    settings(sub, PROJECT, rules(defaultMode="bypassPermissions"))
    decision, _, err = permit(sub)
    assert decision == "ask"
    assert "'bypassPermissions' is not used" in err


def test_project_may_be_stricter(sub):
    settings(sub, USER, rules(defaultMode="acceptEdits"))
    assert permit(sub)[0] == "allow"
    settings(sub, PROJECT, rules(defaultMode="plan"))
    assert permit(sub)[0] == "ask"
    settings(sub, PROJECT, rules(defaultMode="dontAsk"))
    assert permit(sub)[0] == "deny"


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_local_file_under_version_control(sub):
    settings(sub, LOCAL, rules(allow=["Bash(touch *)"]))
    git(sub.project, "init", "-q")
    assert permit(sub) == ("allow", "Bash(touch *)", "")
    git(sub.project, "add", "-f", ".claude/settings.local.json")
    decision, _, err = permit(sub)
    assert decision == "ask" and "has not been trusted" in err
    # the repository's own configuration runs nothing meanwhile
    git(sub.project, "config", "core.fsmonitor", "touch %s; false"
        % sub.path("ran"))
    permit(sub)
    assert not sub.exists("ran")
    trust(sub)
    assert permit(sub)[0] == "allow"


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_worktree_and_repository_root(sub):
    git(sub.project, "init", "-q")
    git(sub.project, "commit", "-q", "--allow-empty", "-m", "x")
    linked = os.path.join(sub.tmp, "linked")
    git(sub.project, "worktree", "add", "-q", linked)
    settings(sub, LOCAL, rules(allow=["Bash(touch *)"]))
    os.mkdir(sub.path("deep"))
    for cwd in (sub.path("deep"), linked):
        assert permit(sub, cwd=cwd)[0] == "allow"
    # a folder that only claims to be a worktree of a trusted repository
    trust(sub)
    fake = os.path.join(sub.tmp, "claims")
    os.makedirs(os.path.join(fake, ".claude"))
    shutil.copy(os.path.join(linked, ".git"), fake)
    with open(os.path.join(fake, ".claude", "settings.json"), "w") as f:
        json.dump(rules(allow=["Bash(touch *)"]), f)
    decision, _, err = permit(sub, cwd=fake)
    assert decision == "ask" and "has not been trusted" in err


@pytest.mark.asan
def test_env_block(fake, sub):
    """The user's is used, a stranger's cannot send the key elsewhere."""
    api = fake([turn("here")])
    settings(sub, PROJECT, {"env": {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "http_proxy": "x://y",
        "ANTHROPIC_MODEL": "claude-opus-5"}})
    r = sub("-p", "hi")
    assert (r.out, r.status) == (b"here\n", 0)
    assert b"env.ANTHROPIC_BASE_URL is not used" in r.err
    assert b"env.http_proxy is not used" in r.err
    assert api.requests[0].json["model"] == "claude-opus-5"


def test_env_block_reaches_commands(fake, sub):
    settings(sub, USER, {"env": {"SETTING_A": "from settings",
                                 "SETTING_N": 7, "SETTING_B": ""}})
    api = fake([turn(bash("echo \"$SETTING_A|$SETTING_N|$INHERITED\"")),
                turn("done")])
    r = sub("-p", "hi", "--allowedTools", "Bash",
            env={"SETTING_A": "inherited", "INHERITED": "yes"})
    assert r.status == 0, r
    assert "from settings|7|yes" in api.requests[1].result_text()


def test_places(sub):
    """CLAUDE_CONFIG_DIR, no HOME, a HOME that is not there."""
    other = os.path.join(sub.tmp, "other")
    os.mkdir(other)
    settings(sub, USER, {"model": "m-home"})
    with open(os.path.join(other, "settings.json"), "w") as f:
        f.write('\ufeff{"model": "m-other"}')
    assert body(sub)["model"] == "m-home"
    assert body(sub, env={"CLAUDE_CONFIG_DIR": other})["model"] == "m-other"
    assert body(sub, env={"CLAUDE_CONFIG_DIR": ""})["model"] == "m-home"
    assert body(sub, env={"HOME": "/nowhere"})["model"] == \
        "claude-sonnet-5-5"
    sub("request", "hi", env={"HOME": None})


def test_in_the_home_folder(sub):
    """The user's file is not a project's: its rules need no trust."""
    settings(sub, USER, rules(allow=["Bash(touch *)"]))
    assert permit(sub, cwd=sub.home) == ("allow", "Bash(touch *)", "")


def test_deleted_folder(sub):
    gone = sub.path("gone")
    os.mkdir(gone)
    r = sub("permit", *TOUCH, cwd=gone,
            preexec_fn=lambda: os.rmdir(gone))
    assert r.out == b"" and r.status in (1, 2)
    assert b"the current folder was deleted" in r.err


def test_sandbox_that_is_demanded(sub):
    settings(sub, USER, {"sandbox": {"enabled": True}})
    assert "sandbox" in permit(sub)[2]
    settings(sub, USER, {"sandbox": {"enabled": True,
                                     "failIfUnavailable": True}})
    assert "sandbox" in refused(sub)


def test_model_lists(sub):
    settings(sub, USER, {"availableModels": ["haiku"]})
    r = sub("request", "--model", "opus", "hi")
    assert r.json["model"] == "claude-haiku-5-5"
    assert b"'opus' is not permitted by" in r.err
    settings(sub, USER, {"deniedModels": ["claude-opus-5-5"]})
    assert body(sub, "--model", "opus")["model"] == "claude-opus-5"


def test_effort(sub):
    assert "effort" not in body(sub).get("output_config", {})
    settings(sub, USER, {"effortLevel": "low"})
    assert body(sub)["output_config"]["effort"] == "low"
    assert body(sub, "--effort", "max")["output_config"]["effort"] == "max"
    assert body(sub, "--model", "claude-opus-4-6", "--effort", "xhigh")[
        "output_config"]["effort"] == "high"
    assert "output_config" not in body(sub, "--model", "claude-haiku-4-5")
    r = sub("request", "--effort", "huge", "hi")
    assert r.status == 0 and b"--effort: 'huge'" in r.err
    assert r.json["output_config"]["effort"] == "low"


@pytest.mark.asan
def test_instruction_files(sub):
    settings(sub, USER, {})
    with open(os.path.join(sub.home, ".claude", "CLAUDE.md"), "w") as f:
        f.write("USER-WORDS")
    sub.write("CLAUDE.md", "PROJECT-WORDS <!-- kept -->\n<!-- GONE -->\n"
              "@docs/more.md @~/secret @../secret")
    sub.write("docs/more.md", "MORE-WORDS")
    sub.write("CLAUDE.local.md", "LOCAL-WORDS")
    for d in (sub.home, sub.tmp):
        with open(os.path.join(d, "secret"), "w") as f:
            f.write("SECRET-WORDS")
    text = first_text(body(sub))
    at = [text.index(w) for w in ("USER-WORDS", "PROJECT-WORDS",
                                  "MORE-WORDS", "LOCAL-WORDS")]
    assert at == sorted(at)
    assert "SECRET-WORDS" not in text and "GONE" not in text
    assert "USER-WORDS" not in json.dumps(body(sub)["system"])
    text = first_text(body(sub, "--setting-sources", "user"))
    assert "USER-WORDS" in text and "PROJECT-WORDS" not in text
    for more in (("--bare",), ()):
        text = first_text(body(sub, *more, env={
            "CLAUDE_CODE_DISABLE_CLAUDE_MDS": None if more else "1"}))
        assert "WORDS" not in text


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"),
                    reason="needs root, for a private /etc")
def test_managed(sub):
    """Above everything; its broken file ends the run."""
    def run(files, *args):
        script = "mount -t tmpfs none /etc && mkdir -p " \
            "/etc/claude-code/managed-settings.d || exit 77\n"
        for name, text in files.items():
            script += "printf %%s '%s' > /etc/claude-code/%s\n" \
                % (text, name)
        script += 'exec "$0" "$@"'
        p = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, sub.binary] + list(args),
            cwd=sub.project, env=sub.environment(None),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=30)
        if p.returncode in (1, 77) and b"subagent" not in p.stderr:
            pytest.skip("no mounts here: %r" % p.stderr)
        return p

    deny = json.dumps(rules(deny=["Bash(touch *)"]))
    settings(sub, LOCAL, rules(allow=["Bash(touch *)"]))
    p = run({"managed-settings.d/a.json": deny}, "permit", "--json",
            *TOUCH, "--setting-sources", "", "--allowedTools", "Bash")
    assert p.returncode == 4, p
    p = run({"managed-settings.json":
             '{"allowManagedPermissionRulesOnly": true}'},
            "permit", "--json", *TOUCH)
    assert p.returncode == 3, p
    p = run({"managed-settings.json": "{"}, "permit", *TOUCH)
    assert p.returncode == 2 and b"administrator" in p.stderr, p
