/* [fs]: Read, Write, Edit. */
#include "internals.h"
#include "stage.h"

/* Whether the file has exactly these bytes. */
static void
holds(const char *name, const char *bytes, size_t n)
{
	struct str s;

	str_init(&s, 0);
	assert_int_equal(file_read(place_path(name), 1u << 26, &s, NULL), 0);
	if (s.len != n || memcmp(s.p, bytes, n))
		fail_msg("%s has %zu bytes: %s", name, s.len, s.p);
	str_clear(&s);
}

#define HOLDS(name, text) holds(name, text, sizeof(text) - 1)

#define UPDATED " has been updated successfully. (file state is current in " \
    "your context \342\200\224 no need to Read it back)"

static void
test_read(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	place_write("project/a", "one\ntwo\nthree\n");
	assert_string_equal(stage_call(&s, fs_read_run, "{'file_path':'a'}"),
	    "1\tone\n2\ttwo\n3\tthree");
	assert_string_equal(stage_call(&s, fs_read_run,
	    "{'file_path':'%s'}", place_path("project/a")),
	    "1\tone\n2\ttwo\n3\tthree");
	assert_string_equal(stage_call(&s, fs_read_run,
	    "{'file_path':'a','offset':2,'limit':1}"), "2\ttwo");
	assert_string_equal(stage_call(&s, fs_read_run,
	    "{'file_path':'a','offset':3,'limit':9}"), "3\tthree");
	assert_string_equal(stage_call(&s, fs_read_run,
	    "{'file_path':'a','offset':0}"), "1\tone\n2\ttwo\n3\tthree");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'a','offset':4}"),
	    "<system-reminder>Warning: the file exists but is shorter than "
	    "the provided offset (4). The file has 3 lines.");
	assert_false(s.out.is_error);
	place_write("project/b", "no end");
	assert_string_equal(stage_call(&s, fs_read_run, "{'file_path':'b'}"),
	    "1\tno end");
	place_write("project/c", "");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'c'}"),
	    "the contents are empty");
	place_write("project/d", "\n\n");
	assert_string_equal(stage_call(&s, fs_read_run, "{'file_path':'d'}"),
	    "1\t\n2\t");
	place_write("project/e", "\357\273\277a\r\nb\rc\r\n");
	assert_string_equal(stage_call(&s, fs_read_run, "{'file_path':'e'}"),
	    "1\ta\n2\tb\rc");
	place_write("home/f", "at home\n");
	assert_string_equal(stage_call(&s, fs_read_run,
	    "{'file_path':'~/f'}"), "1\tat home");
	stage_remove(&s);
}

static void
test_read_bytes(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	place_write("project/a", "caf\351\nx\n");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'a'}"),
	    "1\tcaf\357\277\275\n2\tx\n<system-reminder>Some bytes are no "
	    "UTF-8");
	assert_true(text_utf8_is(str_slice(&s.out.text)));
	place_write_bytes("project/b", "ab\0cd\n", 6);
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'b'}"),
	    "binary file (6 bytes)");
	assert_true(s.out.is_error);
	place_write_bytes("project/u", "\377\376a\0b\0", 6);
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'u'}"), "UTF-16");
	assert_true(s.out.is_error);
	stage_remove(&s);
}

static void
test_read_missing(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	place_write("project/README.md", "x");
	place_write("project/src/main.c", "x");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'zzzz'}"),
	    "<tool_use_error>File does not exist. Note: your current working "
	    "directory is ");
	stage_lacks(s.out.text.p, "Did you mean");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'readme.md'}"),
	    "Did you mean");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'src/main.h'}"),
	    "project/src/main.c?");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'src/mian.c'}"),
	    "project/src/main.c?");
	stage_has(stage_call(&s, fs_read_run,
	    "{'file_path':'/nowhere/README.md'}"), "project/README.md?");
	stage_has(stage_call(&s, fs_read_run,
	    "{'file_path':'README.md/x'}"), "File does not exist");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'src'}"),
	    "is a directory");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':''}"), "empty");
	assert_true(place_shell("mkfifo project/pipe"));
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'pipe'}"),
	    "not a regular file");
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'/dev/zero'}"),
	    "not a regular file");
	assert_true(place_shell("ln -s loop project/loop"));
	stage_call(&s, fs_read_run, "{'file_path':'loop'}");
	assert_true(s.out.is_error);
	stage_remove(&s);
}

/* n lines of `width` letters */
static void
write_lines(const char *name, size_t n, size_t width)
{
	struct str s;
	size_t i, k;

	str_init(&s, 0);
	for (i = 0; i < n; i++) {
		for (k = 0; k < width; k++)
			str_addc(&s, (char)('a' + i % 26));
		str_addc(&s, '\n');
	}
	place_write_bytes(name, s.p, s.len);
	str_clear(&s);
}

static void
test_read_large(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	write_lines("project/big", 3000, 99);	/* 300 kB */
	stage_call(&s, fs_read_run, "{'file_path':'big'}");
	assert_false(s.out.is_error);
	assert_true(s.out.text.len > 90000 && s.out.text.len < 101000);
	stage_has(s.out.text.p, "PARTIAL view: lines 1-9");
	stage_has(s.out.text.p, " of 3000 are shown (the file has 300000 "
	    "bytes)");
	/* that does not count as read */
	stage_has(stage_call(&s, fs_edit_run, "{'file_path':'big',"
	    "'old_string':'x','new_string':'y'}"), "PARTIAL view");
	assert_true(s.out.is_error);
	stage_has(stage_call(&s, fs_read_run,
	    "{'file_path':'big','offset':1,'limit':3000}"),
	    "exceeds maximum allowed tokens (25000)");
	stage_has(s.out.text.p, "File content (75000 tokens)");
	assert_true(s.out.is_error);
	stage_call(&s, fs_read_run,
	    "{'file_path':'big','offset':2999,'limit':100}");
	assert_true(str_starts(s.out.text.p, "2999\t"));
	stage_call(&s, fs_read_run, "{'file_path':'big','allow_large':true}");
	stage_has(s.out.text.p, "3000\t");
	/* one line that is longer than a page */
	write_lines("project/long", 2, 300000);
	stage_call(&s, fs_read_run, "{'file_path':'long','limit':1}");
	assert_false(s.out.is_error);
	stage_has(s.out.text.p, "PARTIAL view: line 1 is longer");
	assert_true(s.out.text.len < 101000);
	/* many very short lines: the numbers count, too */
	write_lines("project/short", 100000, 0);
	stage_call(&s, fs_read_run, "{'file_path':'short'}");
	assert_true(s.out.text.len < 110000);
	setenv("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "100", 1);
	stage_call(&s, fs_read_run, "{'file_path':'short'}");
	assert_true(s.out.text.len < 700);
	unsetenv("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS");
	stage_remove(&s);
}

/* A file that never gets shorter than what is wanted must not be kept. */
static void
test_read_sparse(void **state)
{
	struct stage s;
	int fd;

	(void)state;
	stage_make(&s, NULL);
	place_write("project/a", "first\nsecond\n");
	fd = open(place_path("project/a"), O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 9000, SEEK_SET), 9000);
	assert_int_equal(ftruncate(fd, (off_t)3 << 30), 0);
	close(fd);
	/* NULs in the head make it binary; behind the head they do not */
	stage_call(&s, fs_read_run, "{'file_path':'a'}");
	assert_true(s.out.is_error);
	stage_remove(&s);
}

static void
image(const char *name, const char *head, size_t n, size_t size)
{
	char *p = core_zalloc(size);

	memcpy(p, head, n);
	place_write_bytes(name, p, size);
	free(p);
}

static void
test_read_images(void **state)
{
	static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
	    "\0\0\0\x10\0\0\0\x20";
	static const char wide[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
	    "\0\0\x23\x28\0\0\0\x0a";
	static const char gif[] = "GIF89a\x10\0\x20\0";
	static const char jpg[] = "\xff\xd8\xff\xe0\0\x04..\xff\xc0\0\x11\x08"
	    "\0\x20\0\x10";
	static const char webp[] = "RIFF....WEBPVP8X\x0a\0\0\0\0\0\0\0"
	    "\x0f\0\0\x1f\0\0";
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	image("project/a", png, sizeof(png) - 1, 100);
	stage_call(&s, fs_read_run, "{'file_path':'a'}");
	assert_false(s.out.is_error);
	assert_true(str_starts(s.out.blocks.p, "{\"type\":\"image\","
	    "\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\","
	    "\"data\":\"iVBORw0KGgoAAAANSUhEUgAAABAAAAAgAAAA"));
	assert_int_equal(json_check(str_slice(&s.out.blocks), NULL), 0);
	assert_true(str_ends(s.out.blocks.p, "AA==\"}}"));
	image("project/b", gif, sizeof(gif) - 1, 99);
	stage_call(&s, fs_read_run, "{'file_path':'b'}");
	stage_has(s.out.blocks.p, "image/gif");
	image("project/c.txt", jpg, sizeof(jpg) - 1, 98);
	stage_call(&s, fs_read_run, "{'file_path':'c.txt'}");
	stage_has(s.out.blocks.p, "image/jpeg");
	image("project/d", webp, sizeof(webp) - 1, 97);
	stage_call(&s, fs_read_run, "{'file_path':'d'}");
	stage_has(s.out.blocks.p, "image/webp");
	/* too wide, too large, cut */
	image("project/e", wide, sizeof(wide) - 1, 100);
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'e'}"),
	    "9000x10 pixels");
	assert_true(s.out.is_error && !s.out.blocks.len);
	image("project/f", png, sizeof(png) - 1, 6000000);
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'f'}"),
	    "6000000 bytes");
	assert_true(s.out.is_error && !s.out.blocks.len);
	image("project/g", png, 12, 12);
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'g'}"),
	    "broken or cut");
	image("project/h", jpg, 8, 8);
	stage_has(stage_call(&s, fs_read_run, "{'file_path':'h'}"),
	    "broken or cut");
	place_write("project/i", "%PDF-1.4\n/Type /Page\n/Type /Pages\n");
	stage_call(&s, fs_read_run, "{'file_path':'i'}");
	assert_true(str_starts(s.out.blocks.p, "{\"type\":\"document\""));
	stage_has(stage_call(&s, fs_read_run,
	    "{'file_path':'i','pages':'1-2'}"), "not supported");
	stage_call(&s, fs_read_run, "{'file_path':'i','pages':''}");
	assert_false(s.out.is_error);
	stage_remove(&s);
}

static void
test_write(void **state)
{
	struct stage s;
	struct stat st;

	(void)state;
	stage_make(&s, NULL);
	stage_has(stage_call(&s, fs_write_run,
	    "{'file_path':'x/y/a','content':'1\\n'}"),
	    "File created successfully at: x/y/a");
	HOLDS("project/x/y/a", "1\n");
	/* what we wrote is known */
	assert_string_equal(stage_call(&s, fs_write_run,
	    "{'file_path':'x/y/a','content':'2\\r\\n'}"),
	    "The file x/y/a" UPDATED);
	HOLDS("project/x/y/a", "2\r\n");
	place_write("project/b", "old");
	assert_string_equal(stage_call(&s, fs_write_run,
	    "{'file_path':'b','content':'new'}"), "<tool_use_error>File has "
	    "not been read yet. Read it first before writing to it."
	    "</tool_use_error>");
	HOLDS("project/b", "old");
	stage_call(&s, fs_read_run, "{'file_path':'b'}");
	place_write("project/b", "other");
	assert_string_equal(stage_call(&s, fs_write_run,
	    "{'file_path':'b','content':'new'}"), "<tool_use_error>File has "
	    "been modified since read, either by the user or by a linter. "
	    "Read it again before attempting to write it.</tool_use_error>");
	HOLDS("project/b", "other");
	stage_call(&s, fs_read_run, "{'file_path':'b'}");
	/* touched, but the same */
	assert_true(place_shell("touch -d 2001-01-01 project/b"));
	stage_call(&s, fs_write_run, "{'file_path':'b','content':'new'}");
	assert_false(s.out.is_error);
	HOLDS("project/b", "new");
	/* read in part */
	place_write("project/c", "1\n2\n3\n");
	stage_call(&s, fs_read_run, "{'file_path':'c','limit':1}");
	stage_has(stage_call(&s, fs_write_run,
	    "{'file_path':'c','content':'new'}"), "only been read in part");
	stage_call(&s, fs_read_run, "{'file_path':'c'}");
	stage_call(&s, fs_read_run, "{'file_path':'c','limit':1}");
	stage_call(&s, fs_write_run, "{'file_path':'c','content':''}");
	assert_false(s.out.is_error);
	HOLDS("project/c", "");
	/* an empty file has nothing to lose */
	place_write("project/d", "");
	stage_call(&s, fs_write_run, "{'file_path':'d','content':'x'}");
	assert_false(s.out.is_error);
	/* a link stays one, and what it names is known by its own name */
	place_write("project/e", "x");
	assert_true(place_shell("ln -s e project/l; ln -s new project/m"));
	stage_call(&s, fs_read_run, "{'file_path':'e'}");
	stage_call(&s, fs_write_run, "{'file_path':'l','content':'y'}");
	assert_false(s.out.is_error);
	HOLDS("project/e", "y");
	assert_int_equal(lstat(place_path("project/l"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	stage_call(&s, fs_write_run, "{'file_path':'m','content':'z'}");
	HOLDS("project/new", "z");
	stage_has(stage_call(&s, fs_write_run,
	    "{'file_path':'x','content':'y'}"), "is a directory");
	stage_call(&s, fs_write_run, "{'file_path':'e/z','content':'y'}");
	assert_true(s.out.is_error);
	stage_call(&s, fs_write_run, "{'file_path':'/dev/null',"
	    "'content':'y'}");
	assert_true(s.out.is_error);
	stage_remove(&s);
}

/* B20: modes stay, whatever the umask. */
static void
test_modes(void **state)
{
	static const mode_t masks[] = { 077, 0, 022 };
	struct stage s;
	struct stat st;
	mode_t old;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(masks); i++) {
		stage_make(&s, NULL);
		old = umask(masks[i]);
		place_write("project/f", "#!/bin/sh\na\n");
		place_write("project/g", "a\n");
		assert_true(place_shell("chmod 4750 project/f; "
		    "chmod 600 project/g"));
		stage_call(&s, fs_read_run, "{'file_path':'f'}");
		stage_call(&s, fs_read_run, "{'file_path':'g'}");
		stage_call(&s, fs_edit_run, "{'file_path':'f',"
		    "'old_string':'a','new_string':'b'}");
		assert_false(s.out.is_error);
		stage_call(&s, fs_write_run, "{'file_path':'g',"
		    "'content':'b'}");
		assert_false(s.out.is_error);
		assert_int_equal(stat(place_path("project/f"), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0750);
		assert_int_equal(stat(place_path("project/g"), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		stage_call(&s, fs_write_run, "{'file_path':'h',"
		    "'content':'b'}");
		assert_int_equal(stat(place_path("project/h"), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0666 & ~masks[i]);
		umask(old);
		stage_remove(&s);
	}
}

static void
test_edit(void **state)
{
	static const struct {
		const char *file, *old, *fresh;
		bool all;
		const char *after;	/* NULL: refused ... */
		const char *says;	/* ... with this */
	} rows[] = {
		{ "abc\n", "b", "B", false, "aBc\n", NULL },
		{ "abc\n", "abc\\n", "", false, "", NULL },
		{ "x x x", "x", "yy", true, "yy yy yy", NULL },
		{ "x x", "x", "y", false, NULL, "Found 2 matches of the "
		    "string to replace, but replace_all is false." },
		{ "abc", "z", "y", false, NULL, "String to replace not found "
		    "in file.\nString: z" },
		{ "abc", "b", "b", false, NULL, "No changes to make: "
		    "old_string and new_string are exactly the same." },
		{ "abc", "", "b", false, NULL, "file already exists" },
		{ "", "", "b\\n", false, "b\n", NULL },
		{ "", "a", "b", false, NULL, "String to replace not found" },
		/* B17 and B18: line ends */
		{ "a\r\nb\r\nc\r\n", "a\\nb", "a\\nB\\nx", false,
		    "a\r\nB\r\nx\r\nc\r\n", NULL },
		{ "a\r\nb\nc\r\nd", "b", "B", false, "a\r\nB\nc\r\nd", NULL },
		{ "a\r\nb\nc\r\nd", "b\\n", "B\\n\\n", false,
		    "a\r\nB\n\nc\r\nd", NULL },
		{ "a\r\nb\nc\r\nd", "c", "C\\nC", false,
		    "a\r\nb\nC\r\nC\r\nd", NULL },
		{ "a\r\nb\nc\r\nd", "d", "d\\ne", false,
		    "a\r\nb\nc\r\nd\r\ne", NULL },
		{ "a\nb\r\nc", "\\nb\\n", "\\nx\\n", false, "a\nx\nc", NULL },
		{ "a\r\nb\r\n", "\\nb", "", false, "a\r\n", NULL },
		{ "a\r\nb\r\n", "a\\r\\nb", "c", false, "c\r\n", NULL },
		{ "a\nb\n", "a\\r\\nb", "c", false, "c\n", NULL },
		{ "a\nb\n", "a", "x\\r\\ny", false, "x\r\ny\nb\n", NULL },
		{ "a\r\nb\r\n", "a", "x\\r\\ny", false, "x\r\ny\r\nb\r\n",
		    NULL },
		{ "x\r\nx\r\n", "x\\n", "y\\n", true, "y\r\ny\r\n", NULL },
		{ "x\r\nx\n", "x\\n", "y\\n", false, NULL, "Found 2" },
		{ "a\r\r\nb", "\\r\\nb", "c", false, "a\rc", NULL },
		{ "a\rb\r\n", "a\\rb", "c", false, "c\r\n", NULL },
		/* B19: bytes that are no UTF-8 */
		{ "int a = 1;\n// caf\351\n", "a = 1", "a = 2", false,
		    "int a = 2;\n// caf\351\n", NULL },
		{ "\357\273\277a", "a", "b", false, "\357\273\277b", NULL },
		{ "aaa", "aa", "b", false, "ba", NULL },
	};
	struct stage s;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		stage_make(&s, NULL);
		place_write("project/f", rows[i].file);
		stage_call(&s, fs_read_run, "{'file_path':'f'}");
		stage_call(&s, fs_edit_run, "{'file_path':'f','old_string':"
		    "'%s','new_string':'%s','replace_all':%s}", rows[i].old,
		    rows[i].fresh, rows[i].all ? "true" : "false");
		if (s.out.is_error != !rows[i].after)
			fail_msg("row %zu: %s", i, s.out.text.p);
		if (rows[i].after) {
			holds("project/f", rows[i].after,
			    strlen(rows[i].after));
			assert_string_equal(s.out.text.p, "The file f"
			    UPDATED);
		} else {
			holds("project/f", rows[i].file,
			    strlen(rows[i].file));
			stage_has(s.out.text.p, rows[i].says);
			assert_true(str_starts(s.out.text.p,
			    "<tool_use_error>"));
		}
		stage_remove(&s);
	}
}

static void
test_edit_rules(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	stage_has(stage_call(&s, fs_edit_run, "{'file_path':'n',"
	    "'old_string':'a','new_string':'b'}"), "File does not exist. ");
	stage_has(stage_call(&s, fs_edit_run, "{'file_path':'q/n',"
	    "'old_string':'','new_string':'b\\n'}"), "File created");
	HOLDS("project/q/n", "b\n");
	place_write("project/f", "a\nb\n");
	stage_has(stage_call(&s, fs_edit_run, "{'file_path':'f',"
	    "'old_string':'a','new_string':'b'}"),
	    "File has not been read yet.");
	/* a part is enough to edit */
	stage_call(&s, fs_read_run, "{'file_path':'f','limit':1}");
	stage_call(&s, fs_edit_run, "{'file_path':'f',"
	    "'old_string':'b','new_string':'c'}");
	HOLDS("project/f", "a\nc\n");
	/* but after that it is still a part */
	stage_has(stage_call(&s, fs_write_run,
	    "{'file_path':'f','content':'new'}"), "only been read in part");
	/* changed behind our back: applied where it fits, and told */
	place_write("project/f", "a\nc\nmore\n");
	stage_has(stage_call(&s, fs_edit_run, "{'file_path':'f',"
	    "'old_string':'c','new_string':'d'}"), "had changed since");
	HOLDS("project/f", "a\nd\nmore\n");
	place_write("project/f", "other\n");
	stage_has(stage_call(&s, fs_edit_run, "{'file_path':'f',"
	    "'old_string':'d','new_string':'e'}"),
	    "File has been modified since read");
	HOLDS("project/f", "other\n");
	stage_has(stage_call(&s, fs_edit_run, "{'file_path':'q',"
	    "'old_string':'d','new_string':'e'}"), "is a directory");
	stage_remove(&s);
}

static void
test_edit_large(void **state)
{
	struct stage s;
	struct str in;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	/* much alike: a search that starts over at each byte would not end */
	str_init(&in, 0);
	for (i = 0; i < 200000; i++)
		str_addc(&in, 'a');
	str_adds(&in, "\r\n");
	place_write_bytes("project/f", in.p, in.len);
	stage_call(&s, fs_read_run, "{'file_path':'f','limit':1}");
	fs_seen_mark(&s.run, "f", FS_FULL);
	str_cut(&in, 100000);
	stage_has(stage_call(&s, fs_edit_run, "{'file_path':'f',"
	    "'old_string':'%sb\\n','new_string':'e'}", in.p), "not found");
	assert_true(s.out.text.len < 5000);
	str_clear(&in);
	stage_remove(&s);
}

/* What a worker has read is known afterwards. */
static void
test_seen(void **state)
{
	struct stage s;
	struct str json;
	char buf[1000];
	int fd[2];
	ssize_t n;
	cJSON *v;

	(void)state;
	stage_make(&s, NULL);
	place_write("project/a \"b\"", "x\n");
	place_write("project/c", "x\n");
	stage_call(&s, fs_read_run, "{'file_path':'c'}");
	str_init(&json, 0);
	assert_int_equal(pipe(fd), 0);
	if (!fork()) {
		core_forked();
		stage_call(&s, fs_read_run, "{'file_path':'a \\\"b\\\"'}");
		fs_seen_export(&s.run, &json);
		_exit(write(fd[1], json.p, json.len) < 0);
	}
	n = read(fd[0], buf, sizeof(buf));
	assert_true(n > 0);
	close(fd[0]);
	close(fd[1]);
	str_add(&json, buf, (size_t)n);
	stage_lacks(json.p, "/c\"");
	fs_seen_free(s.run.seen);
	s.run.seen = NULL;
	v = json_parse(str_slice(&json), NULL);
	assert_non_null(v);
	fs_seen_import(&s.run, v);
	cJSON_Delete(v);
	assert_int_equal(s.run.seen->n, 1);
	assert_int_equal(s.run.seen->v[0].extent, FS_FULL);
	stage_call(&s, fs_write_run, "{'file_path':'a \\\"b\\\"',"
	    "'content':'y'}");
	assert_false(s.out.is_error);
	/* nonsense does no harm */
	v = cJSON_Parse("{\"a\":1,\"b\":\"x\",\"c\":\"0 1 2 9\",\"d\":null}");
	fs_seen_import(&s.run, v);
	fs_seen_import(&s.run, NULL);
	cJSON_Delete(v);
	assert_int_equal(s.run.seen->n, 1);
	str_clear(&json);
	stage_remove(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_bytes),
		cmocka_unit_test(test_read_missing),
		cmocka_unit_test(test_read_large),
		cmocka_unit_test(test_read_sparse),
		cmocka_unit_test(test_read_images),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_edit),
		cmocka_unit_test(test_edit_rules),
		cmocka_unit_test(test_edit_large),
		cmocka_unit_test(test_seen),
	};

	return cmocka_run_group_tests_name("fs", tests, NULL, NULL);
}
