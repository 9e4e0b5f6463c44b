"""What every end-to-end test stands on.

    def test_x(fake, sub):
        api = fake([turn(tool("Bash", {"command": "true"})), turn("done")])
        r = sub("-p", "go", "--allowedTools", "Bash")
        assert (r.out, r.err, r.status) == (b"done\n", b"", 0)

`fake` makes a scripted API (tests/fake/fakeapi.py) whose address the next
runs get.  `sub` runs the program in a fresh project folder with a fresh HOME
and an environment of a few variables: sub(...) to its end, sub.start(...)
for a run to talk to.  When a test ends: no violation on the fake and no turn
left over, no process of the run alive, nothing in TMPDIR.

The program is ./subagent, or $SUBAGENT_BIN.  Tests marked `asan` run again
under $SUBAGENT_ASAN_BIN if that is set.
"""

import ctypes
import json
import os
import pty
import select
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import uuid

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "fake"))

from fakeapi import FakeApi                               # noqa: E402

BIN = os.path.abspath(os.environ.get("SUBAGENT_BIN")
                      or os.path.join(ROOT, "subagent"))
ASAN = os.environ.get("SUBAGENT_ASAN_BIN")
MARK = "SUBAGENT_TEST_MARK"
LIMIT = 30              # seconds that a run may take before it counts as hung

# Whoever started the tests may have these ignored (nohup, a shell's `&`); a
# run would keep that, and the tests of signals would hang.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# Orphans of a run become children of this process, so none can hide.  Dead
# ones are reaped at once, as an init does; who was started here is left to
# its Popen.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)     # PR_SET_CHILD_SUBREAPER
STARTED = {}
STARTING = threading.Lock()


def note_started(self, *args, _start=subprocess.Popen._execute_child, **kw):
    with STARTING:
        _start(self, *args, **kw)
        STARTED[self.pid] = self


def reap_orphans():
    while True:
        try:
            pid = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
        except ChildProcessError:
            time.sleep(0.05)
            continue
        with STARTING:
            ours = STARTED.get(pid)
            if ours is not None and ours.returncode is not None:
                ours = STARTED.pop(pid) and None    # the number came again
            if ours is None:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass
        if ours is not None:
            time.sleep(0.005)       # its Popen will take it


subprocess.Popen._execute_child = note_started
threading.Thread(target=reap_orphans, daemon=True).start()


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "asan: runs under the sanitizer build too")


def pytest_generate_tests(metafunc):
    if "binary" in metafunc.fixturenames:
        bins = [BIN]
        if ASAN and metafunc.definition.get_closest_marker("asan"):
            bins.append(os.path.abspath(ASAN))
        metafunc.parametrize("binary", bins, ids=["bin", "asan"][:len(bins)],
                             indirect=True)


@pytest.fixture
def binary(request):
    if not os.access(request.param, os.X_OK):
        pytest.fail("no program at %s" % request.param)
    return request.param


def proc_stat(pid):
    """(state, parent) of a process, None if it is gone."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as f:
            rest = f.read().rpartition(b")")[2].split()
        return rest[0].decode(), int(rest[1])
    except (OSError, IndexError):
        return None


def marked(mark):
    """Processes whose environment carries the mark: [(pid, command)]."""
    out = []
    want = ("%s=%s" % (MARK, mark)).encode()
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if want not in f.read().split(b"\0"):
                    continue
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                out.append((int(pid), f.read().replace(b"\0", b" ")))
        except OSError:
            continue
    return out


def adopted(known):
    """Living children of this process that it did not start itself: orphans
    of a run."""
    alive = []
    me = os.getpid()
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) in known:
            continue
        st = proc_stat(pid)
        if st is None or st[1] != me:
            continue
        if st[0] != "Z":
            alive.append(int(pid))
    return alive


class Result:
    def __init__(self, out, err, status, tty=b""):
        self.out = out
        self.tty = tty              # what a terminal showed, see on_tty
        self.err = err
        self.status = status

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def text(self):
        return self.out.decode("utf-8")

    def __repr__(self):
        return "Result(%r, %r, %d)" % (self.out[-800:], self.err[-800:],
                                       self.status)


class Proc:
    """A run that is still going on."""

    def __init__(self, popen, feed, mark):
        self.popen = popen
        self.mark = mark
        self.pid = popen.pid
        self.feed = feed            # bytes for stdin, or None
        self.out = b""
        self.err = b""

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, timeout=LIMIT):
        try:
            out, err = self.popen.communicate(self.feed, timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            # Whoever else holds the pipes has to go, too.
            left = marked(self.mark)
            for pid, _ in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            out, err = self.popen.communicate()
            raise AssertionError("the run hangs; stdout %r, stderr %r, "
                                 "processes %r" % (out, err, left)) from None
        return Result(self.out + (out or b""), self.err + (err or b""),
                      self.popen.returncode)

    def read_err_until(self, words, timeout=LIMIT):
        """Reads stderr until it holds the words."""
        fd = self.popen.stderr.fileno()
        end = time.monotonic() + timeout
        while words not in self.err:
            if not select.select([fd], [], [], max(
                    0, end - time.monotonic()))[0]:
                raise AssertionError("not on stderr: %r in %r"
                                     % (words, self.err))
            data = os.read(fd, 65536)
            if not data:
                raise AssertionError("stderr ended: %r" % self.err)
            self.err += data
        return self.err


class Runner:
    def __init__(self, binary, tmp):
        self.binary = binary
        self.tmp = tmp
        self.mark = uuid.uuid4().hex
        self.home = os.path.join(tmp, "home")
        self.project = os.path.join(tmp, "project")
        self.tmpdir = os.path.join(tmp, "tmp")
        for d in (self.home, self.project, self.tmpdir):
            os.mkdir(d)
        self.api = None
        self.procs = []
        self.tmp_may_stay = False
        self.processes_may_stay = False
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": self.home, "TMPDIR": self.tmpdir, "LANG": "C.UTF-8",
            "SUBAGENT_RETRY_BASE_MS": "5", MARK: self.mark,
            # The address space that a sanitizer needs is not limited.
            "ASAN_OPTIONS": "abort_on_error=0:exitcode=99",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
        }

    # Files of the project.
    def path(self, name):
        return os.path.join(self.project, name)

    def write(self, name, data, mode=None):
        path = os.path.join(self.project, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data.encode("utf-8") if isinstance(data, str) else data)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def read(self, name):
        with open(os.path.join(self.project, name), "rb") as f:
            return f.read()

    def exists(self, name):
        return os.path.lexists(os.path.join(self.project, name))

    def mode(self, name):
        return stat.S_IMODE(os.stat(self.path(name)).st_mode)

    def agent(self, name, header, prompt="You test.", folder=None):
        """A project agent; header: the lines between the fences."""
        return self.write((folder or ".claude/agents/") + name + ".md",
                          "---\n%s\n---\n%s\n" % (header.strip("\n"),
                                                  prompt))

    def transcripts(self):
        out = []
        for d, _, files in os.walk(os.path.join(self.home, ".claude")):
            out += [os.path.join(d, f) for f in files
                    if f.endswith(".jsonl")]
        return sorted(out)

    def transcript(self):
        """The lines of the one transcript, parsed strictly."""
        paths = self.transcripts()
        assert len(paths) == 1, paths
        with open(paths[0], "rb") as f:
            data = f.read()
        assert data.endswith(b"\n")
        return [json.loads(line) for line in data.splitlines()]

    def for_everybody(self):
        """Lets other users into the test's folders; HOME and TMPDIR stay
        ours."""
        d = self.project
        while d not in ("/", "/tmp"):
            os.chmod(d, stat.S_IMODE(os.stat(d).st_mode) | 0o055)
            d = os.path.dirname(d)
        os.chmod(self.project, 0o777)

    # Runs.
    def environment(self, env):
        e = dict(self.env)
        if self.api is not None:
            e["ANTHROPIC_BASE_URL"] = self.api.url
            e["ANTHROPIC_API_KEY"] = self.api.key
        e.update(env or {})
        return {k: v for k, v in e.items() if v is not None}

    def start(self, *args, stdin=None, env=None, cwd=None, stdout=None,
              stderr=None, **popen):
        """stdin: None is /dev/null, bytes are fed through a pipe, "open" is
        a pipe that nobody closes, anything else goes to Popen."""
        feed = opened = None
        if stdin is None:
            stdin = subprocess.DEVNULL
        elif isinstance(stdin, bytes):
            feed, stdin = stdin, subprocess.PIPE
        elif stdin == "open":
            r, w = os.pipe()
            self.held = getattr(self, "held", []) + [w]
            stdin = opened = r
        p = subprocess.Popen(
            [self.binary] + [os.fsencode(a) if isinstance(a, str) else a
                             for a in args],
            stdin=stdin, cwd=cwd or self.project,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE if stderr is None else stderr,
            env=self.environment(env), **popen)
        if opened is not None:
            os.close(opened)
        proc = Proc(p, feed, self.mark)
        self.procs.append(proc)
        return proc

    def __call__(self, *args, timeout=LIMIT, **kw):
        return self.start(*args, **kw).wait(timeout)

    def on_tty(self, *args, keys=b"", after=None, timeout=LIMIT, **kw):
        """A run whose stdin, stdout, stderr and /dev/tty are a terminal.
        `keys` are typed once the terminal shows `after`.  Result.tty is all
        that it showed; with stdout=subprocess.PIPE, .out is the answer."""
        master, slave = pty.openpty()

        def session():
            os.setsid()
            import fcntl
            import termios
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        kw.setdefault("stdin", slave)
        kw.setdefault("stdout", slave)
        kw.setdefault("stderr", slave)
        p = self.start(*args, preexec_fn=session, **kw)
        os.close(slave)
        shown, typed = b"", False
        end = time.monotonic() + timeout
        while True:
            if not typed and (after is None or after in shown):
                os.write(master, keys)
                typed = True
            if not select.select([master], [], [], max(
                    0, end - time.monotonic()))[0]:
                p.popen.kill()
                raise AssertionError("the run hangs; terminal: %r" % shown)
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
        r = p.wait(5)
        os.close(master)
        return Result(r.out, r.err, r.status, shown)

    # What must not be left.
    def check(self):
        for fd in getattr(self, "held", []):
            os.close(fd)
        problems = []
        known = set()
        for p in self.procs:
            if p.popen.poll() is None:
                p.popen.kill()
                p.popen.wait()
                problems.append("a run was not awaited")
            known.add(p.pid)
            for f in (p.popen.stdin, p.popen.stdout, p.popen.stderr):
                if f is not None:
                    f.close()
        # A killed process may take a moment to be gone.
        end = time.monotonic() + 2
        while True:
            left = marked(self.mark)
            orphans = adopted(known)
            if not left and not orphans or self.processes_may_stay \
                    or time.monotonic() > end:
                break
            time.sleep(0.01)
        if self.processes_may_stay:
            for pid in set(orphans) | {pid for pid, _ in left}:
                os.kill(pid, signal.SIGKILL)
            left, orphans = [], []
        for pid, cmd in left:
            problems.append("left running: %d %r" % (pid, cmd))
        for pid in set(orphans) | {pid for pid, _ in left}:
            problems.append("orphan %d" % pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not self.tmp_may_stay:
            for d, dirs, files in os.walk(self.tmpdir):
                problems += ["left in TMPDIR: %s" % os.path.join(d, f)
                             for f in files + dirs]
        return problems


@pytest.fixture
def sub(binary, tmp_path):
    runner = Runner(binary, str(tmp_path))
    yield runner
    problems = runner.check()
    # Folders that a test made unreadable.
    subprocess.call(["chmod", "-R", "u+rwX", str(tmp_path)],
                    stderr=subprocess.DEVNULL)
    shutil.rmtree(str(tmp_path), ignore_errors=True)
    assert not problems, problems


@pytest.fixture
def fake(sub):
    """fake(script, **options): a FakeApi that sub's next runs talk to.
    A test that wants violations sets api.may_violate = True, one that
    leaves turns unused api.may_leave = True."""
    made = []

    def make(script=(), **options):
        api = FakeApi(script, **options)
        api.may_violate = api.may_leave = False
        made.append(api)
        sub.api = api
        return api

    yield make
    problems = []
    for api in made:
        api.close()
        if not api.may_violate:
            problems += api.violations
        if not api.may_leave and api.unused():
            problems.append("%d turns were not asked for" % api.unused())
    assert not problems, problems
