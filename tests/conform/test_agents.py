"""Agent files: every row of agents/EXPECTED.tsv and rules/EXPECTED.tsv, by
`subagent agents --json` and `subagent check`, and what no file can show:
links, devices, sizes, broken bytes in names, where the files come from."""

import json
import os
import shutil
import subprocess
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(os.environ.get("SUBAGENT_BIN") or
                      os.path.join(HERE, "..", "..", "subagent"))
COLUMNS = ("file", "loads", "name", "tools", "model", "warning")


def unescape(s):
    out, i = "", 0
    while i < len(s):
        if s[i] == "\\" and i + 1 < len(s):
            i += 1
            out += {"n": "\n", "t": "\t"}.get(s[i], s[i])
        else:
            out += s[i]
        i += 1
    return out


def rows(folder):
    """The rows of a table as dicts, with the folder's name."""
    out = []
    with open(os.path.join(HERE, folder, "EXPECTED.tsv"),
              encoding="utf-8", newline="\n") as f:
        lines = [x for x in f.read().split("\n") if x and x[0] != "#"]
    names = lines[0].split("\t")
    assert tuple(names[:6]) == COLUMNS
    for line in lines[1:]:
        row = dict(zip(names, line.split("\t")))
        row["folder"] = folder
        out.append(row)
    return out


ROWS = rows("agents") + rows("rules")


def test_tables_and_files_agree():
    for folder in ("agents", "rules"):
        files = {f for f in os.listdir(os.path.join(HERE, folder))
                 if f.endswith(".md")}
        assert files == {r["file"] for r in rows(folder)}


def listing(sub, *args, **kw):
    r = sub("agents", "--json", *args, **kw)
    assert r.status == 0, r
    return r.json


class Table:
    """A folder of the corpus in a trusted project: what `agents --json` and
    `check` say of it."""

    def __init__(self, folder, tmp):
        self.home = tmp / "home"
        self.project = tmp / "project"
        self.home.mkdir()
        shutil.copytree(os.path.join(HERE, folder),
                        str(self.project / ".claude" / "agents"))
        (self.home / ".claude.json").write_text(json.dumps({"projects": {
            str(self.project.resolve()): {"hasTrustDialogAccepted": True}}}))
        self.by_file = {os.path.basename(a["path"]): a
                        for a in json.loads(self.run("agents", "--json")[1])
                        if a["path"]}

    def run(self, *args):
        p = subprocess.run([BIN] + list(args), cwd=str(self.project),
                           env={"HOME": str(self.home), "PATH": "/bin"},
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60)
        return p.returncode, p.stdout.decode("utf-8"), p.stderr


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return {folder: Table(folder, tmp_path_factory.mktemp(folder))
            for folder in ("agents", "rules")}


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["file"][:-3])
def test_row(tables, row):
    table = tables[row["folder"]]
    a = table.by_file[row["file"]]
    status, said, err = table.run("check", ".claude/agents/" + row["file"])
    assert err == b""
    if row["loads"] == "no":
        assert set(a) == {"path", "active", "error"}
        assert a["active"] is False
        assert set(a["error"]) == {"code", "message", "line"}
        assert a["error"]["code"] == row["warning"]
        assert status == 1 and ": " + row["warning"] + ": " in said
        return
    assert set(a) == {"name", "source", "path", "description", "tools",
                      "disallowedTools", "model", "active", "warnings"}
    tools = {"inherit": None, "none": []}.get(
        row["tools"], row["tools"].split("|"))
    codes = [] if row["warning"] == "none" else row["warning"].split(",")
    assert a["source"] == "project"
    assert a["name"] == row["name"]
    assert a["tools"] == tools
    assert a["model"] == row["model"]
    # The files of rules/ share a name.
    assert sorted(w["code"] for w in a["warnings"]
                  if w["code"] != "dup-name") == sorted(codes)
    if row.get("description", "-") != "-":
        assert a["description"] == unescape(row["description"])
    assert "\r" not in json.dumps(a) and "\\r" not in json.dumps(a)
    assert status == 0
    assert said.count("\n") == len(codes)
    for code in codes:
        assert ": " + code + ": " in said


def test_the_whole_corpus_at_once(sub):
    """Each file is read, whatever stands beside it."""
    shutil.copytree(os.path.join(HERE, "agents"),
                    sub.path(".claude/agents"))
    agents = listing(sub)
    ours = [a for a in agents if (a.get("path") or "").startswith(
        sub.project)]
    assert len(ours) == len(rows("agents"))
    names = {a["name"] for a in ours if "name" in a}
    assert names == {r["name"] for r in rows("agents")
                     if r["loads"] == "yes"}
    assert listing(sub) == agents
    # Documentation beside the agents makes no noise.
    err = sub("agents", "--json").err
    assert b"tools-mapping.md:4: " in err and b"no-" not in err.replace(
        b"no-description", b"")


def test_a_warning_names_file_and_line(sub):
    path = sub.agent("a", "name: a\ndescription: x: y\ntools: Nope")
    assert sub("check", path).text.startswith(path + ":3: yaml-recovered: ")
    a = [a for a in listing(sub) if a.get("name") == "a"][0]
    assert [w["line"] for w in a["warnings"]] == [3, 4]


def test_odd_entries_of_the_folder(sub):
    """L1: links are followed, loops and dangling links are told, devices
    and pipes are passed over, other names are not read."""
    sub.agent("deep", "name: deep\ndescription: d",
              folder=".claude/agents/a/b/c/d/e/")
    sub.write("else/out.md", "---\nname: out\ndescription: d\n---\nx\n")
    sub.write("else/dir/in.md", "---\nname: in\ndescription: d\n---\nx\n")
    sub.write(".claude/agents/text.txt", "---\nname: t\n---\n")
    base = sub.path(".claude/agents/")
    os.symlink(sub.path("else/out.md"), base + "link.md")
    os.symlink(sub.path("else/dir"), base + "dir")
    os.symlink("..", base + "a/up")
    os.symlink("nowhere", base + "gone.md")
    os.symlink("self.md", base + "self.md")
    os.symlink("/dev/zero", base + "zero.md")
    os.mkfifo(base + "pipe.md")
    sub.write(".claude/agents/big.md", b"---\nname: big\ndescription: d\n"
              b"---\n" + b"x" * (1 << 20))
    agents = listing(sub)
    names = {a.get("name") for a in agents}
    assert {"deep", "out", "in"} <= names and "big" not in names
    errors = {os.path.relpath(a["path"], base): a["error"]["code"]
              for a in agents if "error" in a}
    assert errors == {"a/up": "unreadable", "gone.md": "unreadable",
                      "self.md": "unreadable", "big.md": "too-large"}


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_unreadable_file(sub):
    sub.agent("a", "name: a\ndescription: d")
    os.chmod(sub.path(".claude/agents/a.md"), 0)
    codes = [a["error"]["code"] for a in listing(sub) if "error" in a]
    assert codes == ["unreadable"]


def test_name_of_a_file_in_any_bytes(sub):
    path = os.fsencode(sub.path(".claude/agents/")) + b"\xff\x1b[31m.md"
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as f:
        f.write(b"---\nname: odd\ndescription: d\n---\nx\n")
    assert "odd" in {a.get("name") for a in listing(sub)}
    r = sub("agents")
    assert b"\x1b" not in r.out


def test_same_name_in_one_folder(sub):
    for name in ("b", "a/z", "a-z"):
        sub.agent(name, "name: x\ndescription: " + name)
    same = [a for a in listing(sub) if a.get("name") == "x"]
    assert [a["active"] for a in same] == [True, False, False]
    assert same[0]["description"] == "a-z"
    assert all([w["code"] for w in a["warnings"]] == ["dup-name"]
               for a in same)


def test_refused_file_bars_the_built_in(fake, sub):
    """A broken restriction must not make room for a wider agent."""
    sub.agent("gp", "name: general-purpose\ndescription: d\n"
              "tools: {read: true}")
    active = {a["name"] for a in listing(sub) if a["active"]}
    assert "general-purpose" not in active
    api = fake([])
    r = sub("-p", "go", "--agent", "general-purpose")
    assert r.status != 0 and b"gp.md:4" in r.err and r.out == b""
    assert api.requests == []


def test_untrusted_folder(sub):
    """bypassPermissions of a project's agent waits for trust."""
    sub.agent("a", "name: a\ndescription: d\n"
              "permissionMode: bypassPermissions")
    path = sub.path(".claude/agents/a.md")

    def codes():
        return [w["code"] for a in listing(sub) if a.get("path") == path
                for w in a["warnings"]]
    assert codes() == ["value-ignored"]
    r = sub("permit", "--agent", "a", "Bash", '{"command":"touch x"}')
    assert r.status == 3 and b"not trusted" in r.err
    with open(sub.home + "/.claude.json", "w") as f:
        json.dump({"projects": {sub.project: {
            "hasTrustDialogAccepted": True}}}, f)
    assert codes() == []


def test_five_thousand_files(sub):
    folder = sub.path(".claude/agents")
    os.makedirs(folder)
    for i in range(5000):
        with open("%s/a%d.md" % (folder, i), "w") as f:
            f.write("---\nname: a%d\ndescription: d\n---\n%s" % (i, "x " * 500))
    start = time.monotonic()
    agents = listing(sub)
    print("%.0f ms" % (1000 * (time.monotonic() - start)))
    assert sum(a.get("source") == "project" for a in agents) == 5000


BUILTIN = os.path.join(HERE, "..", "..", "agents", "builtin")


def test_built_in_texts():
    """Short, our own, and each ends where its file does."""
    for name in os.listdir(BUILTIN):
        with open(os.path.join(BUILTIN, name), encoding="utf-8") as f:
            text = f.read()
        assert len(text.encode()) < 3072, name
        assert "Claude Code" not in text and "\t" not in text, name
        assert text.endswith("\n") and "!" not in text.replace("!=", "")


def test_examples_load(sub):
    folder = os.path.join(HERE, "..", "..", "agents", "examples")
    for name in sorted(os.listdir(folder)):
        r = sub("check", os.path.join(folder, name))
        assert (r.status, r.out) == (0, b""), r
