"""Headless and in containers (B44 to B46): pipes, homes, empty roots."""

import concurrent.futures
import json
import os
import shutil
import signal
import struct
import subprocess
import time

import pytest

from conftest import ROOT
from helpers import ALLOW, bash, prompt_of, wait_for, tool, turn

ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


# ---- stdin (B45) ---------------------------------------------------------

def test_open_pipe_as_stdin(fake, sub):
    """Nobody writes, nobody closes: the run starts all the same."""
    api = fake([turn("x")])
    r = sub("-p", "go", stdin="open", timeout=15)
    assert (r.out, r.status) == (b"x\n", 0)
    assert prompt_of(api.requests[0]) == "go"


@pytest.mark.parametrize("how", ["null", "closed", "file", "empty file",
                                 "folder"])
def test_other_stdins(fake, sub, how):
    api = fake([turn("x")])
    kw = {}
    if how == "closed":
        kw["preexec_fn"] = lambda: os.close(0)
    elif "file" in how:
        sub.write("in.txt", "" if "empty" in how else "data")
        kw["stdin"] = open(sub.path("in.txt"), "rb")
    elif how == "folder":
        kw["stdin"] = os.open(sub.project, os.O_RDONLY)
    r = sub("-p", "go", timeout=15, **kw)
    assert (r.out, r.status) == (b"x\n", 0), r
    want = "go\ndata" if how == "file" else "go"
    assert prompt_of(api.requests[0]) == want


def test_slow_writer_on_stdin_is_read_to_the_end(fake, sub):
    """No prompt argument: what comes on stdin is all of it."""
    api = fake([turn("x")])
    r, w = os.pipe()
    p = sub.start("-p", stdin=r)
    os.close(r)
    os.write(w, b"first ")
    time.sleep(0.3)         # longer than any short wait for more
    os.write(w, b"second")
    os.close(w)
    assert p.wait().out == b"x\n"
    assert prompt_of(api.requests[0]) == "first second"


def test_input_option(fake, sub):
    api = fake([turn("x"), turn("y")])
    r = sub("-p", "go", "--input", "-", stdin=b"all of it")
    assert r.out == b"x\n"
    assert prompt_of(api.requests[0]) == "go\nall of it"
    sub.write("f.txt", "from a file")
    assert sub("-p", "go", "--input", "f.txt").out == b"y\n"
    assert prompt_of(api.requests[1]) == "go\nfrom a file"


def test_too_much_on_stdin(fake, sub):
    fake([])
    r = sub("-p", stdin=b"x" * (11 << 20))
    assert r.status == 2 and r.out == b""
    assert b"10" in r.err


def test_large_prompt_on_stdin(fake, sub):
    api = fake([turn("x")])
    data = ("é" * 1500000).encode()
    assert sub("-p", stdin=data).out == b"x\n"
    assert prompt_of(api.requests[0]) == data.decode()


# ---- homes (B46) ---------------------------------------------------------

def test_no_home(fake, sub):
    fake([turn(bash("printf hi")), turn("x")])
    r = sub("-p", "go", *ALLOW, env={"HOME": None})
    assert (r.out, r.status) == (b"x\n", 0)
    assert r.err.count(b"\n") <= 1


@pytest.mark.parametrize("home", ["/no/such/home", "/proc/1", "/dev/null",
                                  "relative", ""])
def test_odd_homes(fake, sub, home):
    fake([turn("x")])
    r = sub("-p", "go", env={"HOME": home})
    assert (r.out, r.status) == (b"x\n", 0)
    assert r.err.count(b"\n") <= 1
    shutil.rmtree("/no/such", ignore_errors=True)


def test_empty_environment(fake, sub):
    api = fake([turn(bash("printf ok")), turn("x")])
    p = sub.start("-p", "go", *ALLOW, env={
        k: None for k in list(sub.env) if k != "SUBAGENT_TEST_MARK"})
    assert p.wait().out == b"x\n"
    assert api.requests[1].result_text() == "ok"


@ROOT_ONLY
def test_another_uid_without_a_passwd_entry(fake, sub):
    """uid 12345, a home that is somebody else's, no writable TMPDIR."""
    sub.for_everybody()
    api = fake([turn(bash("id -u; touch made; ls /proc/self/fd")),
                turn("x")])
    r = sub("-p", "go", *ALLOW, user=12345, group=12345, extra_groups=[])
    assert (r.out, r.status) == (b"x\n", 0), r
    assert b"not saved" in r.err and r.err.count(b"\n") == 1
    assert api.requests[1].result_text().split() == ["12345", "0", "1", "2",
                                                     "3"]
    assert sub.exists("made")


@ROOT_ONLY
@pytest.mark.asan
def test_read_only_home_and_tmp(fake, sub):
    if subprocess.call(["unshare", "-m", "true"], stderr=subprocess.DEVNULL):
        pytest.skip("no mount namespace here")
    api = fake([turn(bash("touch made && printf ok")), turn("x")])
    script = "mount --make-rprivate / && " + " && ".join(
        "mount --bind '%s' '%s' && mount -o remount,bind,ro '%s'"
        % (d, d, d) for d in (sub.home, sub.tmpdir)) \
        + " && cd '%s' && exec \"$0\" \"$@\"" % sub.project
    p = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sub.binary, "-p", "go"]
        + list(ALLOW), env=sub.environment({}), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    assert (p.stdout, p.returncode) == (b"x\n", 0), p
    assert p.stderr.count(b"\n") == 1 and b"not saved" in p.stderr
    assert api.requests[1].result_text() == "ok"


@ROOT_ONLY
def test_full_disk_under_the_transcript(fake, sub):
    """A home of 64 KiB: the run goes on, the loss is said once."""
    if subprocess.call(["unshare", "-m", "true"], stderr=subprocess.DEVNULL):
        pytest.skip("no mount namespace here")
    fake([turn(bash("yes x | head -c 29000"))] * 6 + [turn("x")])
    script = ("mount --make-rprivate / && mount -t tmpfs -o size=64k none "
              "'%s' && exec \"$0\" \"$@\"" % sub.home)
    p = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sub.binary, "-p", "go"]
        + list(ALLOW), env=sub.environment({}), stdin=subprocess.DEVNULL,
        cwd=sub.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=30)
    assert (p.stdout, p.returncode) == (b"x\n", 0), p
    assert p.stderr.count(b"\n") == 1


@ROOT_ONLY
def test_empty_root(fake, sub, binary):
    """chroot: the binary and a work folder; no /dev, /proc, /tmp, shell,
    no files of any kind."""
    if interpreter(binary):
        pytest.skip("a dynamic build")
    root = os.path.join(sub.tmp, "root")
    os.makedirs(root + "/work")
    shutil.copy(binary, root + "/subagent")
    with open(root + "/work/f.txt", "w") as f:
        f.write("inside\n")
    api = fake([turn(tool("Read", {"file_path": "/work/f.txt"}),
                     tool("Glob", {"pattern": "*"}),
                     tool("Grep", {"pattern": "ins"}),
                     tool("Write", {"file_path": "/work/new/g.txt",
                                    "content": "made"})), turn("x")])

    def enter():
        os.chroot(root)
        os.chdir("/work")
        os.setgroups([])
        os.setgid(0)
    p = subprocess.run(
        ["/subagent", "-p", "go", "--tools", "Read,Glob,Grep,Write",
         "--permission-mode", "acceptEdits"], preexec_fn=enter,
        env={"ANTHROPIC_BASE_URL": sub.api.url,
             "ANTHROPIC_API_KEY": sub.api.key,
             "SUBAGENT_TEST_MARK": sub.mark},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=30)
    assert (p.stdout, p.returncode) == (b"x\n", 0), p
    q = api.requests[1]
    assert q.result_text(0) == "1\tinside"
    assert "f.txt" in q.result_text(1) and "f.txt" in q.result_text(2)
    with open(root + "/work/new/g.txt") as f:
        assert f.read() == "made"


@ROOT_ONLY
def test_empty_root_has_no_bash(fake, sub, binary):
    if interpreter(binary):
        pytest.skip("a dynamic build")
    root = os.path.join(sub.tmp, "root")
    os.makedirs(root + "/work")
    shutil.copy(binary, root + "/subagent")
    api = fake([turn("x")])

    def enter():
        os.chroot(root)
        os.chdir("/work")
    p = subprocess.run(
        ["/subagent", "-p", "go"], preexec_fn=enter,
        env={"ANTHROPIC_BASE_URL": sub.api.url,
             "ANTHROPIC_API_KEY": sub.api.key,
             "SUBAGENT_TEST_MARK": sub.mark},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=30)
    assert (p.stdout, p.returncode) == (b"x\n", 0), p
    assert "Bash" not in api.requests[0].tool_names()


# ---- many at once --------------------------------------------------------

def test_many_runs_share_one_home(fake, sub):
    """200 at once: all succeed, 200 whole transcripts."""
    n = 200
    api = fake(lambda q: turn("done") if len(q.messages) > 1
               else turn(bash("printf hi")))

    def one(i):
        return sub.start("-p", "run %d" % i, *ALLOW).wait(60)
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        results = list(pool.map(one, range(n)))
    assert all((r.out, r.err, r.status) == (b"done\n", b"", 0)
               for r in results), [r for r in results
                                   if r.out != b"done\n"][:3]
    assert len(api.requests) == 2 * n
    paths = sub.transcripts()
    assert len(paths) == n
    for p in paths:
        with open(p) as f:
            lines = [json.loads(x) for x in f]
        assert len(lines) == 4


def test_descriptor_limit(fake, sub):
    """Few descriptors: still a whole run."""
    import resource
    fake([turn(bash("printf hi")), turn("x")])
    r = sub("-p", "go", *ALLOW, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (24, 24)))
    assert r.out == b"x\n", r


def test_inherited_descriptors_are_harmless(fake, sub):
    """Descriptors of the caller do not reach the tools."""
    api = fake([turn(bash("ls /proc/self/fd")), turn("x")])
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    for fd in fds:
        os.set_inheritable(fd, True)
    r = sub("-p", "go", *ALLOW, pass_fds=fds)
    for fd in fds:
        os.close(fd)
    assert r.out == b"x\n"
    assert api.requests[1].result_text().split() == ["0", "1", "2", "3"]


def test_file_size_limit(fake, sub):
    """RLIMIT_FSIZE: no death by SIGXFSZ."""
    import resource
    fake([turn(tool("Write", {"file_path": sub.path("f"),
                              "content": "y" * 100000})), turn("x")])
    r = sub("-p", "go", "--permission-mode=acceptEdits",
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (20000, 20000)))
    assert r.status in (0, 1), r
    assert not sub.exists("f") or len(sub.read("f")) == 100000


def test_start_folder_is_a_link(fake, sub):
    os.symlink(sub.project, os.path.join(sub.tmp, "link"))
    api = fake([turn(bash("pwd -P")), turn("x")])
    r = sub("-p", "go", *ALLOW, cwd=os.path.join(sub.tmp, "link"))
    assert r.out == b"x\n"
    assert api.requests[1].result_text() == sub.project


def test_folder_with_odd_name(fake, sub):
    odd = os.path.join(os.fsencode(sub.tmp), b"a b'\"\n\xff$x")
    os.mkdir(odd)
    fake([turn(bash("touch here")), turn("x")])
    r = sub("-p", "go", *ALLOW, cwd=odd)
    assert r.out == b"x\n", r
    assert os.path.exists(odd + b"/here")


def interpreter(path):
    """The PT_INTERP of a 64-bit little-endian ELF file, None without."""
    with open(path, "rb") as f:
        data = f.read()
    at, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, off = struct.unpack_from("<IIQ", data, at + i * size)
        if kind == 3:
            return data[off:off + 40].split(b"\0")[0]
    return None


def test_static_binary(binary):
    """Nothing at run time: no interpreter."""
    if binary != os.path.join(ROOT, "subagent"):
        pytest.skip("another build")
    assert interpreter(binary) is None


@ROOT_ONLY
def test_first_process_of_a_container(fake, sub):
    """As process 1 it is the parent of all orphans: they are reaped."""
    if subprocess.call(["unshare", "-pf", "--mount-proc", "true"],
                       stderr=subprocess.DEVNULL):
        pytest.skip("no process namespace here")
    api = fake([turn(bash("echo %d; (sleep 0.05 &)" % i)) for i in range(3)]
               + [turn(bash("sleep 0.3; cat /proc/[0-9]*/stat | "
                            "grep -c ') Z '")), turn("x")])
    p = subprocess.run(
        ["unshare", "-pf", "--mount-proc", sub.binary, "-p", "go"]
        + list(ALLOW), env=sub.environment({}), stdin=subprocess.DEVNULL,
        cwd=sub.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=30)
    assert (p.stdout, p.stderr, p.returncode) == (b"x\n", b"", 0), p
    assert api.requests[4].result_text().splitlines()[0] == "0"


@ROOT_ONLY
def test_term_to_the_first_process_of_a_container(fake, sub):
    """`docker stop`: TERM ends it although it is process 1."""
    if subprocess.call(["unshare", "-pf", "--mount-proc", "true"],
                       stderr=subprocess.DEVNULL):
        pytest.skip("no process namespace here")
    api = fake([turn(bash("touch begun; sleep 100"))])
    api.may_leave = True
    # unshare forwards no signal; its child is the one to send it to.
    p = subprocess.Popen(
        ["unshare", "-pf", "--mount-proc", sub.binary, "-p", "go"]
        + list(ALLOW), env=sub.environment({}), stdin=subprocess.DEVNULL,
        cwd=sub.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: sub.exists("begun"))
    with open("/proc/%d/task/%d/children" % (p.pid, p.pid)) as f:
        os.kill(int(f.read().split()[0]), signal.SIGTERM)
    out, err = p.communicate(timeout=15)
    assert (out, err, p.returncode) == (b"", b"", 143)
