"""Prints the numbers to hold, each beside its bar; `./build.sh bench` runs it.

What is compared with something is measured together with it in one run, in
turns.  Memory is read from smaps_rollup while the program is held still: the
kernel's other counts (wait4, VmHWM) are too low below a megabyte.

    bench.py [PATTERN]     only the rows whose name has the pattern
"""

import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "fake"))

from certs import Authority  # noqa: E402
from server import Server, job, turns  # noqa: E402

SUBAGENT = os.path.join(ROOT, "subagent")
MADE = os.path.join(ROOT, "build", "bench")
FLOOR, EMPTY, SPAWN = (os.path.join(MADE, n)
                       for n in ("floor", "empty", "spawn"))
KIB, MIB = 1024, 1 << 20
ROUNDS = 50


class Place:
    """A home and an empty project, thrown away at the end."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="bench.")
        self.home = os.path.join(self.root, "home")
        self.project = os.path.join(self.root, "project")
        for d in (self.home, self.project):
            os.mkdir(d)

    def env(self, server, **more):
        return dict({"PATH": os.environ["PATH"], "HOME": self.home,
                     "ANTHROPIC_API_KEY": "test",
                     "ANTHROPIC_BASE_URL": server.url if server else ""},
                    **more)

    def remove(self):
        shutil.rmtree(self.root)


def command(prompt="say hello", *more):
    return [SUBAGENT, "-p", *([prompt] if prompt else []),
            "--allowedTools", "Bash,Grep", *more]


def spawn(place, env, *commands, rounds=ROUNDS):
    """[(wall ms, CPU ms)] of commands run in turns, by spawn.c."""
    argv = [SPAWN, str(rounds)]
    for c in commands:
        argv += ["--"] * (len(argv) > 2) + c
    out = subprocess.run(argv, cwd=place.project, env=env, check=True,
                         stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE).stdout
    rows = [line.split() for line in out.decode().splitlines()]
    for c, row in zip(commands, rows):
        if row[2] != "0":
            sys.exit("bench: %s failed %s times" % (" ".join(c), row[2]))
    return [(int(r[0]) / 1000, int(r[1]) / 1000) for r in rows]


def memory(pid, key="Rss"):
    """Bytes of one process, or 0 if it is gone."""
    try:
        with open("/proc/%d/smaps_rollup" % pid) as f:
            for line in f:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) * KIB
    except (OSError, ValueError):
        pass
    return 0


### Rows: each prints through row(name, measured, bar, held) ##################

def row(name, measured, bar, held):
    print("%-44s %-32s %-22s %s" % (name, measured, bar,
                                    "ok" if held else "MISSED"), flush=True)


def ms(v):
    return "%.2f ms" % v


def kib(v):
    return "%.0f KiB" % (v / KIB)


def bench_size(place):
    size = os.path.getsize(SUBAGENT)
    row("binary", kib(size), "<= 1229 KiB", size <= 1.2 * MIB)


def bench_version(place):
    ours, empty = spawn(place, place.env(None), [SUBAGENT, "--version"],
                        [EMPTY], rounds=500)
    ratio = ours[0] / empty[0]
    row("--version", "%s = %.2f x empty program" % (ms(ours[0]), ratio),
        "<= 2 x", ratio <= 2)


def bench_job(place):
    server = Server()
    floor = [FLOOR, str(server.port), "say hello"]
    ours, least = spawn(place, place.env(server), command(), floor)
    ratio = ours[0] / least[0]
    row("job, plain: wall", "%s = %.2f x floor client" % (ms(ours[0]), ratio),
        "<= 3 x", ratio <= 3)
    row("job, plain: CPU", "%s (floor %s)" % (ms(ours[1]), ms(least[1])),
        "<= 6 ms", ours[1] <= 6)
    first = first_request(place)
    row("first request", kib(first), "<= 10 KiB", first <= 10 * KIB)


def first_request(place):
    server = Server()
    subprocess.run(command(), cwd=place.project, env=place.env(server),
                   check=True, stdout=subprocess.DEVNULL)
    return server.requests[0][2]


def tls(place):
    """A server with an ECDSA P-256 chain, and the environment to trust it."""
    ca = Authority(os.path.join(MADE, "ca"))
    server = Server(tls=ca.leaf("chain"))
    return server, place.env(server, SSL_CERT_FILE=ca.pem)


def bench_tls(place):
    server, env = tls(place)
    wall, cpu = spawn(place, env, command())[0]
    row("job, TLS: CPU", "%s (wall %s)" % (ms(cpu), ms(wall)), "<= 20 ms",
        cpu <= 20)


def peak(place, server, env):
    """The most memory of a job: watched all along, and held twice."""
    fifo = os.path.join(place.root, "fifo")
    os.mkfifo(fifo)
    server.plan = lambda body: job(body) if b'"tool_result"' in body else \
        ("tool", "Bash", {"command": "read x < %s" % fifo})
    server.hold()
    child = subprocess.Popen(command(), cwd=place.project, env=env,
                             stdout=subprocess.DEVNULL)
    most = [0]
    over = threading.Event()

    def watch():
        while not over.is_set():
            most[0] = max(most[0], memory(child.pid))
            time.sleep(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with open(fifo, "w") as f:      # waits until the command runs
        time.sleep(0.05)
        f.write("go\n")
    while not server.held:
        time.sleep(0.01)
    time.sleep(0.05)
    server.release()
    status = child.wait()
    over.set()
    watcher.join()
    os.unlink(fifo)
    if status:
        sys.exit("bench: the job failed")
    return most[0]


def bench_memory(place):
    server = Server()
    most = peak(place, server, place.env(server))
    row("job, plain: peak memory", kib(most), "<= 2048 KiB", most <= 2 * MIB)
    most = peak(place, *tls(place))
    row("job, TLS: peak memory", kib(most), "<= 2560 KiB", most <= 2.5 * MIB)


def bench_twenty(place):
    server = Server()
    env = place.env(server)

    def start():
        return [subprocess.Popen(command(), cwd=place.project, env=env,
                                 stdout=subprocess.DEVNULL)
                for _ in range(20)]

    walls = []
    for _ in range(5):
        begin = time.monotonic()
        good = sum(c.wait() == 0 for c in start())
        walls.append(time.monotonic() - begin)
    wall = statistics.median(walls)
    server.hold()
    children = start()
    while server.held < 20 and all(c.poll() is None for c in children):
        time.sleep(0.01)
    shared = sum(memory(c.pid, "Pss") for c in children)
    server.release()
    good = min(good, sum(c.wait() == 0 for c in children))
    row("twenty at once: wall", "%s, %d succeed" % (ms(wall * 1000), good),
        "<= 300 ms, all", wall <= 0.3 and good == 20)
    row("twenty at once: memory in proportion", kib(shared), "<= 20480 KiB",
        shared <= 20 * MIB)


def bench_history(place):
    """CPU of a turn, by the size of the history; writing its bytes apart."""
    server = Server()
    env = place.env(server)
    n = 20

    def per_turn(size):
        cpu = {}
        for count in (1, n + 1):
            server.plan = turns(count)
            prompt = os.path.join(place.root, "prompt")
            with open(prompt, "w") as f:
                f.write("word " * (size // 5))
            argv = ["/bin/sh", "-c", 'exec "$@" < %s' % prompt, "sh"] + \
                command(None)
            cpu[count] = spawn(place, env, argv, rounds=5)[0][1]
        return (cpu[n + 1] - cpu[1]) / n

    def writing(size):
        server.plan = job
        floor = [FLOOR, str(server.port), "say hello"]
        little, much = spawn(place, env, floor + ["0"], floor + [str(size)])
        return (much[1] - little[1]) / 2

    small, large = per_turn(20 * KIB), per_turn(2 * MIB)
    write = writing(2 * MIB)
    ratio = (large - write) / small
    row("CPU of a turn at 2 MiB history",
        "%s - %s writing = %.2f x 20 KiB" % (ms(large), ms(write), ratio),
        "<= 1.5 x", ratio <= 1.5)


### Grep ######################################################################

PATTERNS = [("usb_submit_urb", ""), ("spin_lock_irqsave", "-i"),
            (r"snd_[a-z]+_(new|free)\(", ""),
            ("kmalloc|kzalloc|vmalloc|kcalloc", ""),
            (r"(static|inline) +int +[a-z_]+_(probe|remove)\b", ""),
            (r"\b[A-Z]{3,}_[0-9]+\b", ""), ("no_such_thing_anywhere", "")]
RARE = ["usb_submit_urb(urb, GFP_KERNEL);", "spin_lock_irqsave(&lock, flags);",
        "snd_card_new(dev, index);", "snd_pcm_free(pcm);",
        "p = kmalloc(size, GFP_KERNEL);", "p = kzalloc(sizeof(*p), flags);",
        "v = vmalloc(n);", "static int foo_probe(struct device *dev)",
        "static int bar_remove(struct device *dev)", "#define REG_17 0x40"]


def tree():
    """200 MB that look like the source of a kernel, made once."""
    top = os.path.join(MADE, "tree")
    if os.path.exists(os.path.join(top, "done")):
        return top
    shutil.rmtree(top, ignore_errors=True)
    rng = random.Random(1)
    words = ["".join(rng.choice("abcdefghilmnoprstuvw")
                     for _ in range(rng.randint(2, 9))) for _ in range(4000)]

    def line():
        if rng.random() < 0.01:
            return "\t" + rng.choice(RARE)
        return "\t" * rng.randint(0, 3) + " ".join(
            rng.choice(words) for _ in range(rng.randint(1, 8))) + \
            rng.choice([";", "", "(x, y);", " {", "", " = %d;" % 7])

    blocks = ["\n".join(line() for _ in range(50)) + "\n"
              for _ in range(2000)]
    total = number = 0
    while total < 200 * 10**6:
        text = "".join(rng.choice(blocks) for _ in range(rng.randint(1, 14)))
        path = os.path.join(top, "d%d" % (number % 60),
                            "e%d" % (number % 7), "f%d.c" % number)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        total, number = total + len(text), number + 1
    open(os.path.join(top, "done"), "w").close()
    return top


def bench_grep(place):
    top, server = tree(), Server()
    env = place.env(server)
    for pattern, flag in PATTERNS:
        call = {"pattern": pattern, "path": top, "output_mode": "count"}
        if flag:
            call["-i"] = True
        server.plan = turns(1, "Grep", call)
        rg = ["rg", "-j2", "-c", *flag.split(), "-e", pattern, top]
        ours, theirs = [], []
        for _ in range(7):
            server.requests.clear()
            subprocess.run(command("look", "--add-dir", top), env=env,
                           cwd=place.project, stdout=subprocess.DEVNULL,
                           check=True)
            ours.append(server.requests[1][0] - server.requests[0][1])
            found = re.search(rb"Found (\d+) total", server.last)
            begin = time.monotonic()
            lines = subprocess.run(rg, stdout=subprocess.PIPE).stdout.split()
            theirs.append(time.monotonic() - begin)
        if int(found.group(1) if found else 0) != sum(
                int(s.rpartition(b":")[2]) for s in lines):
            sys.exit("bench: Grep and ripgrep disagree on " + pattern)
        ratio = min(ours) / min(theirs)
        row("Grep %s %s" % (flag, pattern[:36]), "%s = %.2f x ripgrep"
            % (ms(min(ours) * 1000), ratio), "<= 1.2 x", ratio <= 1.2)


def bench_agents(place):
    """What it takes to know five thousand agent files."""
    folder = os.path.join(place.project, ".claude", "agents")
    os.makedirs(folder)
    for i in range(5000):
        with open(os.path.join(folder, "agent-%d.md" % i), "w") as f:
            f.write("---\nname: agent-%d\ndescription: The agent number %d\n"
                    "tools: Read, Grep\n---\nDo the work of number %d.\n"
                    % (i, i, i))
    wall, cpu = spawn(place, place.env(None),
                      [SUBAGENT, "agents", "--json"], rounds=5)[0]
    row("5,000 agent files", "%s, CPU %s" % (ms(wall), ms(cpu)), "-", True)
    shutil.rmtree(os.path.join(place.project, ".claude"))


def main():
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    os.makedirs(MADE, exist_ok=True)
    for name, bench in list(globals().items()):
        if name.startswith("bench_") and pattern in name:
            place = Place()
            try:
                bench(place)
            finally:
                place.remove()


if __name__ == "__main__":
    main()
