"""Glob, Grep, TodoWrite (B21)."""

import os
import re

import pytest

from helpers import git, run_tool, tool, turn

FIND = ("--tools", "Glob,Grep,Read")


@pytest.fixture
def tree(sub):
    git(sub.project, "init", "-q")
    sub.write(".gitignore", "dist/\n*.log\n")
    sub.write(".github/w/a.yml", "on: push\nname: needle\n")
    sub.write("src/.env", "KEY=needle\n")
    sub.write("src/main.c", "int needle;\nint x;\nint Needle;\n")
    sub.write("src/deep/er/b.c", "no\nneedle here\n")
    sub.write("dist/x.js", "needle\n")
    sub.write("out.log", "needle\n")
    sub.write("README.md", "# Needle\n")
    return sub


def glob(fake, sub, pattern, **more):
    t, error, _ = run_tool(fake, sub, tool("Glob", dict(
        {"pattern": pattern}, **more)), *FIND, allow=False)
    return t, error


def grep(fake, sub, pattern, **more):
    t, error, _ = run_tool(fake, sub, tool("Grep", dict(
        {"pattern": pattern}, **more)), *FIND, allow=False)
    return t, error


def names(t, sub):
    """Paths of a result, relative to the project, sorted."""
    return sorted(os.path.relpath(os.path.join(sub.project, x), sub.project)
                  for x in t.splitlines()
                  if x and not x.startswith(("Found ", "(Results")))


@pytest.mark.parametrize("pattern,want", [
    ("**/*.c", ["src/deep/er/b.c", "src/main.c"]),
    (".github/**/*.yml", [".github/w/a.yml"]),
    ("**/*.yml", [".github/w/a.yml"]),
    ("src/*", ["src/.env", "src/main.c"]),
    ("**/.env", ["src/.env"]),
    ("dist/*.js", ["dist/x.js"]),        # Glob does not leave out ignored
    ("*.md", ["README.md"]),
    ("src/**", ["src/.env", "src/deep/er/b.c", "src/main.c"]),
    ("**/*.{js,md}", ["README.md", "dist/x.js"]),
    ("src/m[a-z]in.?", ["src/main.c"]),
])
def test_glob(fake, tree, pattern, want):
    t, error = glob(fake, tree, pattern)
    assert not error and names(t, tree) == want


def test_glob_never_shows_the_inside_of_git(fake, tree):
    t, error = glob(fake, tree, "**/*")
    assert not any("/.git/" in "/" + n for n in names(t, tree))


def test_glob_nothing_and_errors(fake, tree):
    assert glob(fake, tree, "*.zig") == ("No files found", False)
    t, error = glob(fake, tree, "*", path=tree.path("no-such"))
    assert error and "Directory does not exist: %s" % \
        tree.path("no-such") in t


def test_glob_path(fake, tree):
    t, _ = glob(fake, tree, "*.c", path=tree.path("src"))
    # A pattern without a slash matches at any depth, as ripgrep's do.
    assert names(t, tree) == ["src/deep/er/b.c", "src/main.c"]


def test_glob_is_cut_at_100(fake, sub):
    for i in range(130):
        sub.write("d/%03d.txt" % i, "x")
    t, error = glob(fake, sub, "**/*.txt")
    lines = t.splitlines()
    assert len(lines) == 101
    assert lines[-1] == "(Results are truncated. Consider using a more " \
        "specific path or pattern.)"


def test_glob_order_is_by_time(fake, sub):
    for i, name in enumerate(("b", "c", "a")):
        sub.write(name + ".x", "")
        os.utime(sub.path(name + ".x"), (1e9 + i, 1e9 + i))
    t, _ = glob(fake, sub, "*.x")
    got = [os.path.basename(x) for x in t.splitlines()]
    assert got in (["a.x", "c.x", "b.x"], ["b.x", "c.x", "a.x"])


@pytest.mark.asan
@pytest.mark.parametrize("args,want", [
    (dict(pattern="needle"), [".github/w/a.yml", "src/.env",
                              "src/deep/er/b.c", "src/main.c"]),
    (dict(pattern="needle", **{"-i": True}),
     [".github/w/a.yml", "README.md", "src/.env", "src/deep/er/b.c",
      "src/main.c"]),
    (dict(pattern="needle", glob="*.c"), ["src/deep/er/b.c", "src/main.c"]),
    (dict(pattern="needle", glob=".github/**"), [".github/w/a.yml"]),
    (dict(pattern="needle", type="c"), ["src/deep/er/b.c", "src/main.c"]),
    (dict(pattern="^int\\s+[nN]eedle;$"), ["src/main.c"]),
])
def test_grep_files(fake, tree, args, want):
    t, error = grep(fake, tree, **args)
    assert not error and names(t, tree) == want
    assert t.splitlines()[0].startswith("Found %d file" % len(want))


def test_grep_ignored_file_by_name(fake, tree):
    t, error = grep(fake, tree, "needle", path=tree.path("dist/x.js"))
    assert not error and names(t, tree) == ["dist/x.js"]


def test_grep_content(fake, tree):
    t, error = grep(fake, tree, "needle", path=tree.path("src/main.c"),
                    output_mode="content")
    assert not error and t.endswith("1:int needle;")
    t, _ = grep(fake, tree, "x;", glob="main.c", output_mode="content",
                **{"-A": 1, "-B": 1})
    lines = t.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith("main.c-1-int needle;")
    assert lines[1].endswith("main.c:2:int x;")
    assert lines[2].endswith("main.c-3-int Needle;")
    t, _ = grep(fake, tree, "x;", glob="main.c", output_mode="content",
                **{"-n": False})
    assert t.endswith("main.c:int x;")
    t, _ = grep(fake, tree, "ne\\w+", glob="main.c", output_mode="content",
                **{"-o": True})
    assert t.splitlines()[0].endswith("needle")


def test_grep_count(fake, tree):
    t, _ = grep(fake, tree, "int", output_mode="count", type="c")
    assert t.splitlines()[0].endswith("main.c:3")
    assert re.search(r"\nFound 3 total occurrences across 1 files?\.$", t)


def test_grep_nothing(fake, tree):
    assert grep(fake, tree, "zzzz")[0] == "No files found"
    for mode in ("content", "count"):
        assert grep(fake, tree, "zzzz", output_mode=mode)[0] == \
            "No matches found"


def test_grep_pages(fake, sub):
    sub.write("f.txt", "".join("hit %d\n" % i for i in range(600)))
    t, _ = grep(fake, sub, "hit", output_mode="content")
    assert sum("hit" in x for x in t.splitlines()) == 250
    assert "[Showing results with pagination = limit: 250" in t
    t, _ = grep(fake, sub, "hit", output_mode="content", head_limit=2,
                offset=10)
    hits = [x for x in t.splitlines() if "hit" in x]
    assert [h.rsplit(" ", 1)[1] for h in hits] == ["10", "11"]
    t, _ = grep(fake, sub, "hit", output_mode="content", head_limit=0)
    assert sum("hit" in x for x in t.splitlines()) == 600
    t, _ = grep(fake, sub, "hit", output_mode="content", offset=9999)
    assert t.splitlines()[0] == "No entries at this offset"


def test_grep_multiline(fake, sub):
    sub.write("f.txt", "begin\nmiddle\nend\n")
    t, _ = grep(fake, sub, "begin.*end", output_mode="content")
    assert t == "No matches found"
    t, _ = grep(fake, sub, "begin.*end", output_mode="content",
                multiline=True)
    assert "middle" in t


def test_grep_bad_pattern(fake, sub):
    sub.write("f.txt", "x\n")
    t, error = grep(fake, sub, "(unclosed")
    assert error and "(unclosed" in t or "paren" in t


def test_grep_awkward_files(fake, sub):
    sub.write("bin", b"\0\1needle\0")
    sub.write("latin", b"caf\xe9 needle\n")
    sub.write("long", b"x" * 3000000 + b"needle" + b"y" * 3000000)
    sub.write("crlf", b"needle\r\nb\r\n")
    os.mkfifo(sub.path("fifo"))
    os.symlink("..", sub.path("up"))
    os.symlink("/no/such", sub.path("dangling"))
    t, error = grep(fake, sub, "needle")
    assert not error
    assert {"latin", "long", "crlf"} <= set(names(t, sub))
    t, _ = grep(fake, sub, "needle", output_mode="content")
    assert len(t) < 200000


def test_grep_catastrophic_pattern_ends(fake, sub):
    sub.write("f.txt", "a" * 5000 + "!\n")
    t, error = grep(fake, sub, "(a*)*(a|aa)*b$")
    assert t


def test_many_files(fake, sub):
    for i in range(3000):
        sub.write("d%02d/f%04d.txt" % (i % 50, i), "line\nneedle%d\n" % i)
    t, _ = grep(fake, sub, "needle2999")
    assert names(t, sub) == ["d49/f2999.txt"]


def test_side_by_side_reads(fake, tree):
    """Read-only calls of one turn; results in order, state carried back."""
    calls = [tool("Read", {"file_path": tree.path("src/main.c")}),
             tool("Grep", {"pattern": "needle"}),
             tool("Glob", {"pattern": "**/*.c"}),
             tool("Read", {"file_path": tree.path("README.md")}),
             tool("Bash", {"command": "ls /proc/self/fd"})]
    api = fake([turn(*calls), turn(tool("Edit", {
        "file_path": tree.path("README.md"), "old_string": "Needle",
        "new_string": "Pin"})), turn("done")])
    r = tree("-p", "go", "--permission-mode=acceptEdits", "--model",
             "claude-haiku-4-5", "--tools", "Read,Grep,Glob,Bash,Edit",
             "--allowedTools", "Bash")
    assert r.status == 0
    q = api.requests[1]
    assert q.result_text(0).startswith("1\tint needle;")
    assert q.result_text(3) == "1\t# Needle"
    assert q.result_text(4).split() == ["0", "1", "2", "3"]
    # Haiku 4.5 must have read before: the worker's knowledge counts.
    assert not list(api.requests[2].results().values())[0].get("is_error")
    assert tree.read("README.md") == b"# Pin\n"


def test_todo(fake, sub):
    api = fake([turn(tool("TodoWrite", {"todos": [
        {"content": "a", "status": "in_progress", "activeForm": "doing a"},
        {"content": "b", "status": "pending", "activeForm": "doing b"}]})),
        turn(tool("TodoWrite", {"todos": [{"content": "a"}]})),
        turn("done")])
    r = sub("-p", "go", "--tools", "TodoWrite")
    assert r.status == 0
    assert api.requests[1].result_text().startswith(
        "Todos have been modified successfully.")
    assert "InputValidationError" in api.requests[2].result_text()


@pytest.mark.parametrize("name", ["TodoWrite", "Glob", "Grep"])
def test_tool_on_the_list_is_offered(fake, sub, name):
    api = fake([turn("x")])
    sub.agent("a", "name: a\ndescription: d\ntools: " + name)
    assert sub("-p", "hi", "--agent", "a").status == 0
    assert api.requests[0].tool_names() == [name]
