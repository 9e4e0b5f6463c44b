"""Read, Write, Edit: texts, line ends, encodings, modes (B17 to B20)."""

import os
import stat

import pytest

from helpers import run_tool, tool, turn

EDIT = ("--permission-mode", "acceptEdits")


def edit_of(sub, name, old, new, **more):
    return tool("Edit", dict({"file_path": sub.path(name), "old_string": old,
                              "new_string": new}, **more))


def edited(fake, sub, name, old, new, **more):
    """Read, then edit, as a careful model does; the edit's result."""
    api = fake([turn(tool("Read", {"file_path": sub.path(name)})),
                turn(edit_of(sub, name, old, new, **more)), turn("done")])
    r = sub("-p", "go", *EDIT)
    assert (r.out, r.status) == (b"done\n", 0), r
    b = list(api.requests[2].results().values())[0]
    return api.requests[2].result_text(), b.get("is_error", False)


# ---- Read ----------------------------------------------------------------

def read(fake, sub, name, **more):
    t, error, _ = run_tool(fake, sub, tool("Read", dict(
        {"file_path": sub.path(name)}, **more)), allow=False)
    return t, error


@pytest.mark.asan
def test_read(fake, sub):
    sub.write("f.txt", "one\ntwo\n\nfour")
    assert read(fake, sub, "f.txt") == ("1\tone\n2\ttwo\n3\t\n4\tfour", False)


@pytest.mark.parametrize("more,lines", [
    (dict(offset=2), ["2\tb", "3\tc", "4\td"]),
    (dict(offset=2, limit=2), ["2\tb", "3\tc"]),
    (dict(limit=1), ["1\ta"]), (dict(offset=4, limit=100), ["4\td"])])
def test_read_part(fake, sub, more, lines):
    sub.write("f.txt", "a\nb\nc\nd\n")
    t, error = read(fake, sub, "f.txt", **more)
    assert not error and t.splitlines()[:len(lines)] == lines
    assert "5\t" not in t


def test_read_past_the_end(fake, sub):
    sub.write("f.txt", "a\nb\n")
    t, error = read(fake, sub, "f.txt", offset=10)
    assert "<system-reminder>" in t and "2 lines" in t


def test_read_empty(fake, sub):
    sub.write("f.txt", "")
    t, error = read(fake, sub, "f.txt")
    assert "<system-reminder>" in t and "empty" in t and not error


def test_read_missing(fake, sub):
    t, error = read(fake, sub, "no.txt")
    assert error
    assert "File does not exist. Note: your current working directory is " \
        "%s." % sub.project in t


def test_read_folder(fake, sub):
    os.mkdir(sub.path("d"))
    t, error = read(fake, sub, "d")
    assert error and "director" in t


@pytest.mark.parametrize("make", [
    lambda p: os.mkfifo(p), lambda p: os.symlink("/dev/zero", p),
    lambda p: os.symlink(os.path.basename(p), p)],
    ids=["fifo", "zero", "loop"])
def test_read_special_files_neither_hang_nor_fill_memory(fake, sub, make):
    make(sub.path("s"))
    t, error = read(fake, sub, "s")
    assert error and t


def test_read_binary(fake, sub):
    sub.write("b.bin", bytes(range(256)) * 40)
    t, _ = read(fake, sub, "b.bin")
    assert t


def test_read_large(fake, sub):
    """Over the cap: a first page and how to get the rest."""
    sub.write("f.txt", "".join("line %06d of a long file\n" % i
                               for i in range(60000)))
    t, error = read(fake, sub, "f.txt")
    assert not error
    assert "PARTIAL" in t and "offset" in t
    assert t.startswith("1\tline 000000")
    assert len(t) < 300 * 1024


def test_read_range_over_the_cap(fake, sub):
    sub.write("f.txt", "".join("line %06d of a long file\n" % i
                               for i in range(60000)))
    t, error = read(fake, sub, "f.txt", offset=1, limit=60000)
    assert error
    assert "exceeds maximum allowed tokens (25000)" in t
    assert "Please use offset and limit parameters" in t


def test_read_relative_path_and_tilde(fake, sub):
    sub.write("f.txt", "x\n")
    t, error, _ = run_tool(fake, sub, tool("Read", {"file_path": "f.txt"}),
                           allow=False)
    assert "x" in t or error


def test_read_long_line_and_crlf(fake, sub):
    sub.write("f.txt", b"a\r\n" + b"y" * 50000 + b"\r\nlast\r\n")
    t, error = read(fake, sub, "f.txt")
    assert not error and t.startswith("1\ta\n2\tyyy")
    assert "\r" not in t
    assert "3\tlast" in t


def test_read_bom_and_utf16(fake, sub):
    sub.write("a.txt", b"\xef\xbb\xbfhello\n")
    t, error = read(fake, sub, "a.txt")
    assert not error and t == "1\thello"
    sub.write("b.txt", "hello\n".encode("utf-16"))
    t, error = read(fake, sub, "b.txt")
    assert error or "hello" in t


# ---- Edit ----------------------------------------------------------------

@pytest.mark.asan
def test_edit(fake, sub):
    sub.write("f.txt", "one\ntwo\n")
    t, error = edited(fake, sub, "f.txt", "two", "2")
    assert not error
    assert t.startswith("The file %s has been updated successfully."
                        % sub.path("f.txt"))
    assert sub.read("f.txt") == b"one\n2\n"


CASES = [
    # B17
    (b"a\r\nb\r\nc\r\n", "a\nb", "a\nB\nx", b"a\r\nB\r\nx\r\nc\r\n"),
    # B18: bytes outside the match stay
    (b"a\r\nb\nc\r\nd", "b", "B", b"a\r\nB\nc\r\nd"),
    (b"a\nb\r\nc\n", "b", "B", b"a\nB\r\nc\n"),
    (b"a\r\nb\r\n", "a\r\nb", "A\r\nb", b"A\r\nb\r\n"),
    (b"x", "x", "y", b"y"), (b"x\n\n\n", "x", "y", b"y\n\n\n"),
    # B19
    (b"int a = 1;\n// caf\351\n", "a = 1", "a = 2",
     b"int a = 2;\n// caf\351\n"),
    (b"\xef\xbb\xbfone\n", "one", "two", b"\xef\xbb\xbftwo\n"),
    (b"\x80\xfd abc \x80", "abc", "ABC", b"\x80\xfd ABC \x80"),
    ("é北\U0001f642".encode(), "北", "x", "éx\U0001f642".encode()),
    (b"a.b*c$1\\1", "a.b*c$1\\1", "$&\\0", b"$&\\0"),
    (b"del me\n", "del me\n", "", b""),
]


@pytest.mark.asan
@pytest.mark.parametrize("before,old,new,after", CASES)
def test_edit_bytes(fake, sub, before, old, new, after):
    sub.write("f.txt", before)
    t, error = edited(fake, sub, "f.txt", old, new)
    assert not error, t
    assert sub.read("f.txt") == after


def test_edit_utf16_round_trip_or_refusal(fake, sub):
    before = "int a = 1;\n".encode("utf-16")
    sub.write("f.c", before)
    t, error = edited(fake, sub, "f.c", "a = 1", "a = 2")
    if error:
        assert sub.read("f.c") == before
    else:
        assert sub.read("f.c").decode("utf-16") == "int a = 2;\n"


def test_edit_of_a_binary_file(fake, sub):
    before = b"\x7fELF\0\0 abc \x80"
    sub.write("f", before)
    t, error = edited(fake, sub, "f", "abc", "ABC")
    assert sub.read("f") == (before if error else
                             before.replace(b"abc", b"ABC"))


def test_edit_errors(fake, sub):
    sub.write("f.txt", "a b a\n")
    t, error = edited(fake, sub, "f.txt", "zzz", "y")
    assert error and t == "<tool_use_error>String to replace not found in " \
        "file.\nString: zzz</tool_use_error>"
    t, error = edited(fake, sub, "f.txt", "a", "y")
    assert error and "Found 2 matches of the string to replace, but " \
        "replace_all is false." in t and t.endswith(
            "String: a</tool_use_error>")
    t, error = edited(fake, sub, "f.txt", "a", "a")
    assert error and "No changes to make: old_string and new_string are " \
        "exactly the same." in t
    assert sub.read("f.txt") == b"a b a\n"


def test_replace_all(fake, sub):
    sub.write("f.txt", "a b a aa\n")
    t, error = edited(fake, sub, "f.txt", "a", "xa", replace_all=True)
    assert not error
    assert sub.read("f.txt") == b"xa b xa xaxa\n"


def test_edit_missing_file(fake, sub):
    t, error, _ = run_tool(fake, sub, edit_of(sub, "no.txt", "a", "b"), *EDIT,
                           allow=False)
    assert error and not sub.exists("no.txt")


def test_edit_changed_on_disk(fake, sub):
    """Changed by a command after the Read: the edit sees the new bytes."""
    sub.write("f.txt", "one\ntwo\n")
    api = fake([turn(tool("Read", {"file_path": sub.path("f.txt")})),
                turn(tool("Bash", {"command": "printf 'zero\\none\\n' > f.txt"
                                   })),
                turn(edit_of(sub, "f.txt", "two", "2")),
                turn(edit_of(sub, "f.txt", "one", "1")), turn("done")])
    r = sub("-p", "go", *EDIT, "--allowedTools", "Bash")
    assert r.status == 0
    assert list(api.requests[3].results().values())[0]["is_error"]
    if list(api.requests[4].results().values())[0].get("is_error"):
        assert "File has been modified since read" in \
            api.requests[4].result_text()
        assert sub.read("f.txt") == b"zero\none\n"
    else:
        assert sub.read("f.txt") == b"zero\n1\n"


def test_unread_file_on_an_old_model(fake, sub):
    """Opus 4.6, Haiku 4.5 and older have to read first."""
    sub.write("f.txt", "one\n")
    api = fake([turn(edit_of(sub, "f.txt", "one", "1"),
                     tool("Write", {"file_path": sub.path("f.txt"),
                                    "content": "x"})), turn("done")])
    r = sub("-p", "go", *EDIT, "--model", "claude-haiku-4-5")
    assert r.status == 0
    for i in range(2):
        assert "File has not been read yet. Read it first before writing " \
            "to it." in api.requests[1].result_text(i)
    assert sub.read("f.txt") == b"one\n"


@pytest.mark.parametrize("mask", [0o077, 0o000, 0o022])
@pytest.mark.parametrize("how", ["Edit", "Write"])
def test_mode_is_kept(fake, sub, how, mask):
    """B20."""
    modes = {"s.sh": 0o755, "g": 0o600, "w": 0o666, "r": 0o640}
    calls, reads = [], []
    for name, mode in modes.items():
        sub.write(name, "old\n", mode)
        reads.append(tool("Read", {"file_path": sub.path(name)}))
        calls.append(edit_of(sub, name, "old", "new") if how == "Edit" else
                     tool("Write", {"file_path": sub.path(name),
                                    "content": "new\n"}))
    fake([turn(*reads), turn(*calls), turn("done")])
    r = sub("-p", "go", *EDIT, umask=mask)
    assert r.status == 0
    for name, mode in modes.items():
        assert sub.read(name) == b"new\n"
        assert sub.mode(name) == mode, name


def test_set_id_bits(fake, sub):
    sub.write("f", "old\n")
    os.chmod(sub.path("f"), 0o4750)
    edited(fake, sub, "f", "old", "new")
    assert sub.mode("f") & 0o777 == 0o750


def test_edit_through_a_link_keeps_the_link(fake, sub):
    sub.write("real.txt", "old\n")
    os.symlink("real.txt", sub.path("link.txt"))
    t, error = edited(fake, sub, "link.txt", "old", "new")
    assert not error
    assert os.path.islink(sub.path("link.txt"))
    assert sub.read("real.txt") == b"new\n"


def test_hard_links_and_owner(fake, sub):
    sub.write("f", "old\n")
    if os.getuid() == 0:
        os.chown(sub.path("f"), 12345, 12345)
    t, error = edited(fake, sub, "f", "old", "new")
    assert not error and sub.read("f") == b"new\n"
    if os.getuid() == 0:
        assert os.stat(sub.path("f")).st_uid == 12345


def test_no_half_written_files(fake, sub):
    sub.write("f", "old\n")
    edited(fake, sub, "f", "old", "new")
    assert sorted(os.listdir(sub.project)) == ["f"]


# ---- Write ---------------------------------------------------------------

def write(fake, sub, path, content, **kw):
    t, error, _ = run_tool(fake, sub, tool("Write", {
        "file_path": path, "content": content}), *EDIT, allow=False, **kw)
    return t, error


@pytest.mark.asan
def test_write_new(fake, sub):
    path = sub.path("a/b/c.txt")
    t, error = write(fake, sub, path, "é\n")
    assert not error
    assert t.startswith("File created successfully at: %s" % path)
    assert sub.read("a/b/c.txt") == "é\n".encode()
    assert sub.mode("a/b/c.txt") == 0o666 & ~os_umask()


def os_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_write_over(fake, sub):
    sub.write("f", "old")
    api = fake([turn(tool("Read", {"file_path": sub.path("f")})),
                turn(tool("Write", {"file_path": sub.path("f"),
                                    "content": ""})), turn("done")])
    assert sub("-p", "go", *EDIT).status == 0
    assert api.requests[2].result_text().startswith(
        "The file %s has been updated successfully." % sub.path("f"))
    assert sub.read("f") == b""


def test_write_large(fake, sub):
    big = "0123456789\n" * 200000
    t, error = write(fake, sub, sub.path("big"), big)
    assert not error and sub.read("big") == big.encode()


@pytest.mark.parametrize("path", ["d", "f/x", "a\0b", ""])
def test_write_bad_places(fake, sub, path):
    os.mkdir(sub.path("d"))
    sub.write("f", "x")
    t, error = write(fake, sub, sub.path(path) if path else "", "y")
    assert error and t
    assert sub.read("f") == b"x"


def test_write_disk_full(fake, sub):
    """/dev/full takes no byte: an error, no success."""
    os.symlink("/dev/full", sub.path("f"))
    t, error, _ = run_tool(fake, sub, tool("Write", {
        "file_path": sub.path("f"), "content": "y"}), "--permission-mode",
        "bypassPermissions", env={"IS_SANDBOX": "1"}, allow=False)
    assert error
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_write_read_only_folder(fake, sub):
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    sub.for_everybody()
    sub.write("ro/f", "x")
    os.chmod(sub.path("ro"), 0o555)
    t, error = write(fake, sub, sub.path("ro/g"), "y", user=12345,
                     group=12345, extra_groups=[])
    assert error and "g" in t
    assert not sub.exists("ro/g")
