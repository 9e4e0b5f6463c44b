"""The Bash tool: results, limits, process groups (B12 to B16)."""

import os
import re
import time

import pytest

from helpers import ALLOW, bash, run_tool, turn


def run(fake, sub, command, *args, env=None, **more):
    t, error, _ = run_tool(fake, sub, bash(command, **more), *args, env=env)
    return t, error


@pytest.mark.asan
@pytest.mark.parametrize("command,text,error", [
    ("echo hi", "hi", False),
    ("true", "(Bash completed with no output)", False),
    ("printf 'a\\n\\nb\\n\\n'", "a\n\nb", False),
    ("echo out; echo err >&2", "out\nerr", False),
    ("exit 3", "Exit code 3", True),
    ("echo x; exit 4", "Exit code 4\nx", True),
    ("no-such-command-here", None, True),
    ("grep nothing /dev/null", None, False),
    ("test 1 = 2", None, False),
    ("[ a = b ]", None, False),
    ("diff /dev/null /etc/passwd > /dev/null", None, False),
    ("kill -9 $$", None, True),
    ("if then", None, True),
])
def test_results(fake, sub, command, text, error):
    t, is_error = run(fake, sub, command)
    assert is_error == error, t
    if text is not None:
        assert t == text
    assert t.strip()


def test_environment(fake, sub):
    t, _ = run(fake, sub, "echo $CLAUDECODE; pwd; echo ${UNSET-none}; "
               "export FOO=1")
    assert t == "1\n%s\nnone" % sub.project


def test_exports_do_not_stay_but_the_folder_does(fake, sub):
    os.mkdir(sub.path("d"))
    api = fake([turn(bash("cd d; export FOO=1; x=2")),
                turn(bash("pwd; echo [$FOO$x]")), turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    assert api.requests[2].result_text() == "%s/d\n[]" % sub.project


def test_folder_outside_is_reset(fake, sub):
    api = fake([turn(bash("cd /")), turn(bash("pwd")), turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    assert "Shell cwd was reset to %s" % sub.project in \
        api.requests[1].result_text()
    assert api.requests[2].result_text() == sub.project


def test_folder_is_reset_always_if_asked(fake, sub):
    os.mkdir(sub.path("d"))
    api = fake([turn(bash("cd d")), turn(bash("pwd")), turn("done")])
    sub("-p", "go", *ALLOW,
        env={"CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1"})
    assert api.requests[2].result_text() == sub.project


def test_deleted_folder(fake, sub):
    """B16."""
    api = fake([turn(bash("mkdir t && cd t && rmdir ../t")),
                turn(bash("pwd")), turn(bash("pwd")), turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    last = api.requests[2].result_text()
    assert sub.project in last
    notes = api.requests[1].result_text() + last
    assert len(notes.replace(sub.project, "").strip()) > 10   # it says so
    assert api.requests[3].result_text() == sub.project


def test_deleted_start_folder(fake, sub):
    fake([turn(bash("cd /; rm -rf %s; echo gone" % sub.project)),
          turn(bash("echo still")), turn("done")])
    r = sub("-p", "go", *ALLOW)
    assert r.status in (0, 1)
    os.makedirs(sub.project, exist_ok=True)
    sub.api.may_leave = True


@pytest.mark.asan
@pytest.mark.parametrize("command", [
    "sleep 60 & echo done",
    "exec 3>&1; sleep 60 >/dev/null 2>&1 3>&3 & echo done",
    "(sleep 60; echo late) & echo done",
    "nohup sleep 60 & echo done",
    "setsid sleep 60 >&1 2>&1 & echo done",
])
def test_background_child_does_not_hold_the_call(fake, sub, command):
    """B12.  What is left is ended with the run (the fixture looks)."""
    # A session of its own is a daemon on purpose.
    sub.processes_may_stay = command.startswith("setsid")
    start = time.monotonic()
    t, error = run(fake, sub, command, "--timeout", "25")
    assert time.monotonic() - start < 15
    assert "done" in t and not error


@pytest.mark.asan
@pytest.mark.parametrize("command", [
    "(while :; do :; done) & sleep 100 | tee log",
    "echo early; sleep 100", "trap '' TERM; echo early; sleep 100 & wait",
    "sh -c 'sh -c \"sleep 100 | cat\" | cat' | cat",
    "python3 -c 'import time; time.sleep(100)' || sleep 100"])
def test_timeout_ends_the_whole_group(fake, sub, command):
    """B13."""
    t, error = run(fake, sub, command, timeout=700)
    assert error
    assert re.search("timed out|timeout", t)
    if "early" in command:
        assert "early" in t


def test_timeout_keeps_the_output(fake, sub):
    t, error = run(fake, sub, "seq 1 5; sleep 100", timeout=500)
    assert error and "1\n2\n3\n4\n5" in t


def test_default_timeout_from_the_environment(fake, sub):
    t, error = run(fake, sub, "sleep 100; true",
                   env={"BASH_DEFAULT_TIMEOUT_MS": "400"})
    assert error


@pytest.mark.asan
@pytest.mark.parametrize("command,text", [
    ("cat; echo after", "after"), ('read x; echo "[$x]"', "[]")])
@pytest.mark.parametrize("stdin", ["open", b"some data", None])
def test_standard_input_is_empty(fake, sub, command, text, stdin):
    """B14."""
    api = fake([turn(bash(command)), turn("done")])
    r = sub("-p", "go", *ALLOW, stdin=stdin)
    assert (r.out, r.status) == (b"done\n", 0)
    assert api.requests[1].result_text() == text


def test_no_terminal_is_reachable(fake, sub):
    """A command that asks on /dev/tty must not hang either."""
    t, error = run(fake, sub, "read x < /dev/tty; echo got", timeout=5000)
    assert "got" in t or error


@pytest.mark.asan
def test_output_is_capped(fake, sub):
    """B15: head and tail are kept, the middle is counted, memory is
    bounded."""
    api = fake([turn(bash("echo HEAD; yes 0123456789 | head -c 300000000; "
                          "echo TAIL")), turn("done")])
    p = sub.start("-p", "go", *ALLOW)
    peak = 0
    while p.popen.poll() is None and len(api.requests) < 2:
        try:
            with open("/proc/%d/smaps_rollup" % p.pid) as f:
                peak = max([peak] + [int(x.split()[1]) for x in f
                                     if x.startswith("Private_Dirty")])
        except OSError:
            pass
        time.sleep(0.005)
    r = p.wait(60)
    assert (r.out, r.status) == (b"done\n", 0)
    t = api.requests[1].result_text()
    assert "HEAD" in t and len(t) < 40000
    if "asan" not in sub.binary:
        assert peak < 20000, "kB"


def test_output_of_a_failure_keeps_head_and_tail(fake, sub):
    t, error = run(fake, sub, "echo HEAD; seq 1 100000; echo TAIL; exit 7")
    assert error and t.startswith("Exit code 7\nHEAD")
    assert t.endswith("TAIL") and len(t) < 12000


def test_output_just_under_the_limit_is_whole(fake, sub):
    t, error = run(fake, sub, "head -c 29000 /dev/zero | tr '\\0' x")
    assert not error and t == "x" * 29000


def test_too_large_output_is_in_a_file(fake, sub):
    t, error = run(fake, sub, "seq 1 20000")
    assert not error
    m = re.search(r"Full output saved to: (\S+)", t)
    if m:
        with open(m.group(1)) as f:
            assert f.read() == "".join("%d\n" % i for i in range(1, 20001))
    else:
        # No place to keep it: the tail must be there at least.
        assert "20000" in t


def test_endless_output_is_stopped_by_the_timeout(fake, sub):
    t, error = run(fake, sub, "yes", timeout=700)
    assert error and len(t) < 40000


def test_binary_noise(fake, sub):
    t, error = run(fake, sub, "head -c 20000 /dev/urandom; echo; echo END")
    assert "END" in t


def test_signals_are_not_inherited_ignored(fake, sub):
    """SIGPIPE ignored in a child would make `yes | head` loud or long."""
    t, error = run(fake, sub, "grep -E '^Sig(Ign|Blk)' /proc/self/status")
    assert t == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"


def test_descriptors(fake, sub):
    t, _ = run(fake, sub, "ls /proc/self/fd")
    assert t.split() == ["0", "1", "2", "3"]


def test_no_zombies_are_kept(fake, sub):
    api = fake([turn(bash("echo %d; sleep 0.01 &" % i)) for i in range(3)]
               + [turn(bash("sleep 0.1; cat /proc/[0-9]*/stat 2>/dev/null | "
                            "grep -c \") Z $PPID \"")), turn("done")])
    assert sub("-p", "go", *ALLOW).status == 0
    assert api.requests[4].result_text().splitlines()[0] == "0"


def test_limits_and_priority_are_the_users(fake, sub):
    t, _ = run(fake, sub, "ulimit -n; nice; umask")
    import resource
    assert t.splitlines()[0] == str(
        resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def test_long_command(fake, sub):
    t, error = run(fake, sub, "echo " + "x" * 100000 + " | wc -c",
                   "--permission-mode", "bypassPermissions",
                   env={"IS_SANDBOX": "1"})
    assert t.strip() == "100001"


def test_heredoc_and_quotes(fake, sub):
    t, error = run(fake, sub, "cat <<'E'\n$HOME `x` \"q\"\nE\necho 'a\nb'")
    assert t == "$HOME `x` \"q\"\na\nb"


def test_no_rc_file_spoils_the_output(fake, sub):
    with open(os.path.join(sub.home, ".bashrc"), "w") as f:
        f.write("echo RC\n")
    sub.write("env.sh", "echo ENVFILE\n")
    t, _ = run(fake, sub, "echo x", env={"BASH_ENV": sub.path("env.sh"),
                                         "ENV": sub.path("env.sh")})
    assert "RC" not in t


def test_without_a_shell_bash_is_not_offered(fake, sub):
    api = fake([turn("x")])
    os.mkdir(sub.path("bin"))
    r = sub("-p", "hi", env={"PATH": sub.path("bin"), "SHELL": None,
                             "CLAUDE_CODE_SHELL": "/no/such/shell"})
    assert r.status == 0
    # /bin/sh may still be found; the tool is there if a shell is.
    if not os.path.exists("/bin/sh"):
        assert "Bash" not in api.requests[0].tool_names()
