/* [grep]: what is found, how it is shown, and by how many. */
#include "internals.h"
#include "stage.h"

#define FILE_A "alpha\nbeta\ngamma\nbeta gamma\ndelta\n"

static void
files(void)
{
	place_write("project/a.txt", FILE_A);
	place_write("project/b.c", "int beta;\r\nint Beta2;\r\n");
	place_write("project/sub/c.py", "def beta():\n    pass");
	place_write_bytes("project/bin", "beta\0beta\n", 10);
	place_write("project/e", "");
	place_write("project/u", "caf\303\251 na\303\257ve\ncaf\351 beta\n");
}

static void
test_output(void **state)
{
	static const struct { const char *in, *want; } rows[] = {
		{ "'pattern':'beta'",
		    "a.txt:2:beta\na.txt:4:beta gamma\nb.c:1:int beta;\n"
		    "sub/c.py:1:def beta():\nu:2:caf\357\277\275 beta" },
		{ "'pattern':'beta','-n':false,'path':'a.txt'",
		    "a.txt:beta\na.txt:beta gamma" },
		{ "'pattern':'BETA','-i':true,'glob':'*.c'",
		    "b.c:1:int beta;\nb.c:2:int Beta2;" },
		{ "'pattern':'beta','type':'py'", "sub/c.py:1:def beta():" },
		{ "'pattern':'beta','path':'sub'", "sub/c.py:1:def beta():" },
		{ "'pattern':'^beta$'", "a.txt:2:beta" },
		{ "'pattern':'pass'", "sub/c.py:2:    pass" },
		{ "'pattern':'g?mm','-o':true", "a.txt:3:mm\na.txt:4:mm" },
		{ "'pattern':'[ab]','-o':true,'path':'a.txt','head_limit':4",
		    "a.txt:1:a\na.txt:1:a\na.txt:2:b\na.txt:2:a\n[Showing "
		    "results with pagination = limit: 4, offset: 0]" },
		{ "'pattern':'caf. '", "u:1:caf\303\251 na\303\257ve" },
		{ "'pattern':'\\\\w+\303\257\\\\w+','-o':true",
		    "u:1:na\303\257ve" },
		{ "'pattern':'gamma','-B':1",
		    "a.txt-2-beta\na.txt:3:gamma\na.txt:4:beta gamma" },
		{ "'pattern':'alpha','-A':2",
		    "a.txt:1:alpha\na.txt-2-beta\na.txt-3-gamma" },
		{ "'pattern':'(alpha|delta)','-C':1",
		    "a.txt:1:alpha\na.txt-2-beta\n--\na.txt-4-beta gamma\n"
		    "a.txt:5:delta" },
		{ "'pattern':'(alpha|delta)','context':2",
		    "a.txt:1:alpha\na.txt-2-beta\na.txt-3-gamma\n"
		    "a.txt-4-beta gamma\na.txt:5:delta" },
		{ "'pattern':'delta','-A':5", "a.txt:5:delta" },
		{ "'pattern':'(alpha|def)','-A':1", "a.txt:1:alpha\n"
		    "a.txt-2-beta\n--\nsub/c.py:1:def beta():\n"
		    "sub/c.py-2-    pass" },
		{ "'pattern':'a\\\\nb','multiline':true",
		    "a.txt:1:alpha\na.txt:2:beta\na.txt:3:gamma\n"
		    "a.txt:4:beta gamma" },
		{ "'pattern':'alpha.*delta','multiline':true",
		    "a.txt:1:alpha\na.txt:2:beta\na.txt:3:gamma\n"
		    "a.txt:4:beta gamma\na.txt:5:delta" },
		{ "'pattern':'beta','head_limit':2,'offset':1",
		    "a.txt:4:beta gamma\nb.c:1:int beta;\n[Showing results "
		    "with pagination = limit: 2, offset: 1]" },
		{ "'pattern':'beta','offset':9", "No entries at this offset\n"
		    "[Showing results with pagination = limit: 250, offset: "
		    "9]" },
		{ "'pattern':'nothing'", "No matches found" },
		{ "'pattern':'beta','path':'bin'", "No matches found\n(The "
		    "file is binary and was not searched.)" },
		{ "'pattern':'beta','glob':'*.{c,py}'",
		    "b.c:1:int beta;\nsub/c.py:1:def beta():" },
		{ "'pattern':'beta','glob':'*.c, *.py'",
		    "b.c:1:int beta;\nsub/c.py:1:def beta():" },
		{ "'pattern':'beta','glob':'!*.txt !u'",
		    "b.c:1:int beta;\nsub/c.py:1:def beta():" },
		{ "'pattern':'beta','glob':'sub/**'",
		    "sub/c.py:1:def beta():" },
		{ "'pattern':'beta','glob':'sub/'", "sub/c.py:1:def beta():" },
		{ "'pattern':'beta','path':'sub','glob':'sub/*.py'",
		    "sub/c.py:1:def beta():" },
		{ "'pattern':'beta','glob':'!sub','type':'py'",
		    "No matches found" },
		/* a line is all a pattern sees */
		{ "'pattern':'alpha\\\\sbeta'", "No matches found" },
		{ "'pattern':'alpha[\\\\s]beta'", "No matches found" },
		{ "'pattern':'alpha[^x]beta'", "No matches found" },
		{ "'pattern':'[\\\\s]+beta','path':'b.c'", "b.c:1:int beta;" },
		{ "'pattern':'(?s)alpha.beta'", "No matches found" },
		{ "'pattern':'beta\\\\W*gamma'", "a.txt:4:beta gamma" },
		{ "'pattern':'\\\\Aalpha'", "a.txt:1:alpha" },
		{ "'pattern':'beta\\\\('", "sub/c.py:1:def beta():" },
	};
	struct stage s;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	files();
	for (i = 0; i < LENGTH(rows); i++) {
		stage_call(&s, grep_run, "{'output_mode':'content',%s}",
		    rows[i].in);
		if (s.out.is_error || strcmp(s.out.text.p, rows[i].want))
			fail_msg("%s:\n%s", rows[i].in, s.out.text.p);
	}
	stage_remove(&s);
}

static void
test_files_and_counts(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	files();
	assert_true(place_shell("touch -d 2003-01-01 project/b.c; "
	    "touch -d 2002-01-01 project/a.txt; "
	    "touch -d 2001-01-01 project/u project/sub/c.py"));
	assert_string_equal(stage_call(&s, grep_run, "{'pattern':'beta'}"),
	    "Found 4 files\nb.c\na.txt\nsub/c.py\nu");
	assert_string_equal(stage_call(&s, grep_run,
	    "{'pattern':'beta','head_limit':1,'offset':1}"),
	    "Found 4 files\na.txt\n[Showing results with pagination = limit: "
	    "1, offset: 1]");
	assert_string_equal(stage_call(&s, grep_run, "{'pattern':'nope'}"),
	    "No files found");
	stage_has(stage_call(&s, grep_run, "{'pattern':'beta','offset':4}"),
	    "No entries at this offset");
	assert_string_equal(stage_call(&s, grep_run,
	    "{'pattern':'beta','output_mode':'count'}"),
	    "a.txt:2\nb.c:1\nsub/c.py:1\nu:1\n\n"
	    "Found 5 total occurrences across 4 files.");
	assert_string_equal(stage_call(&s, grep_run,
	    "{'pattern':'alpha','output_mode':'count'}"),
	    "a.txt:1\n\nFound 1 total occurrence across 1 file.");
	assert_string_equal(stage_call(&s, grep_run,
	    "{'pattern':'zeta','output_mode':'count'}"), "No matches found");
	stage_remove(&s);
}

static void
test_refuses(void **state)
{
	static const struct { const char *in, *says; } rows[] = {
		{ "'pattern':'a('", "regex parse error at offset 2: missing "
		    "closing parenthesis\n    a(\n      ^" },
		{ "'pattern':'[z-a]'", "regex parse error at offset 3" },
		{ "'pattern':'\\\\s['", "regex parse error at offset 3" },
		{ "'pattern':'a\\\\C'", "regex parse error" },
		{ "'pattern':'a\\\\nb'", "set multiline to true" },
		{ "'pattern':'a\\nb'", "set multiline to true" },
		{ "'pattern':'a','type':'nope'",
		    "unrecognized file type: nope" },
		{ "'pattern':'a','path':'nope'",
		    "Directory does not exist: nope" },
		{ "'pattern':'a','path':'/dev/null'", "neither a folder" },
		{ "'pattern':'^(a+)+$','path':'evil'", "The search was given "
		    "up: match limit exceeded" },
	};
	struct stage s;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	place_write("project/evil", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
	for (i = 0; i < LENGTH(rows); i++) {
		stage_has(stage_call(&s, grep_run, "{%s}", rows[i].in),
		    rows[i].says);
		assert_true(s.out.is_error);
	}
	stage_remove(&s);
}

/* A deny rule hides what is in a file, by whatever path. */
static void
test_fences(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, "Read(./secret.txt)", NULL);
	place_write("project/secret.txt", "beta\n");
	place_write("project/open.txt", "beta\n");
	assert_true(place_shell("ln -s secret.txt project/s; "
	    "ln -s . project/d"));
	assert_string_equal(stage_call(&s, grep_run,
	    "{'pattern':'beta','path':'.'}"), "Found 1 file\nopen.txt");
	assert_string_equal(stage_call(&s, grep_run,
	    "{'pattern':'beta','path':'d'}"), "Found 1 file\nopen.txt");
	assert_string_equal(stage_call(&s, grep_run,
	    "{'pattern':'beta','path':'s'}"), "No files found");
	stage_remove(&s);
}

/* Windows: lines and context across their bounds, and very long lines. */
static void
test_large_files(void **state)
{
	char want[200];
	struct stage s;
	struct str text;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	str_init(&text, 0);
	for (i = 1; i <= 120000; i++)
		str_addf(&text, "line %zu%s\n", i, i % 29989 ? "" : " hit");
	place_write_bytes("project/big", text.p, text.len);
	stage_call(&s, grep_run, "{'pattern':'hit','output_mode':'content',"
	    "'-C':1}");
	for (i = 29989; i <= 120000; i += 29989) {
		snprintf(want, sizeof(want), "big-%zu-line %zu\nbig:%zu:line "
		    "%zu hit\nbig-%zu-line %zu", i - 1, i - 1, i, i, i + 1,
		    i + 1);
		stage_has(s.out.text.p, want);
	}
	assert_int_equal(place_count(s.out.text.p, "--\n"), 3);
	stage_has(stage_call(&s, grep_run, "{'pattern':'l','output_mode':"
	    "'count'}"), "big:120000");
	stage_has(stage_call(&s, grep_run, "{'pattern':'^l.*$','output_mode':"
	    "'count'}"), "big:120000");
	stage_call(&s, grep_run, "{'pattern':'l','output_mode':'content',"
	    "'-B':900,'head_limit':100000,'path':'big'}");
	stage_has(s.out.text.p, "bytes left out here");
	assert_true(s.out.text.len < 31000);
	stage_has(stage_call(&s, grep_run, "{'pattern':'hit\\\\nline 29990$',"
	    "'multiline':true,'output_mode':'content'}"),
	    "big:29989:line 29989 hit\nbig:29990:line 29990");
	/* one line of 3 MB with the match far in */
	str_reset(&text);
	for (i = 0; i < 300000; i++)
		str_adds(&text, i == 200000 ? "needle...." : "0123456789");
	place_write_bytes("project/long", text.p, text.len);
	stage_call(&s, grep_run, "{'pattern':'needle','output_mode':"
	    "'content','path':'long'}");
	assert_true(str_starts(s.out.text.p, "long:1:[...]"));
	stage_has(s.out.text.p, "9needle....0");
	stage_has(s.out.text.p, "[... line of 3000000 bytes cut]");
	assert_true(s.out.text.len < 2200);
	stage_has(stage_call(&s, grep_run, "{'pattern':'n.*e','-o':true,"
	    "'output_mode':'content','path':'long'}"), "long:1:needle");
	str_clear(&text);
	stage_remove(&s);
}

/* Enough files for workers: the outcome is that of one process. */
static void
test_workers(void **state)
{
	char name[64], body[64];
	struct stage s;
	struct str one;
	int i;

	(void)state;
	stage_make(&s, NULL);
	for (i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "project/d%02d/f%04d", i % 40, i);
		snprintf(body, sizeof(body), "x\nhit %d\n%s", i, i % 3 ? "" :
		    "hit\n");
		place_write(name, body);
	}
	stage_call(&s, grep_run, "{'pattern':'hit','output_mode':'count',"
	    "'head_limit':0}");
	stage_has(s.out.text.p,
	    "Found 2000 total occurrences across 1500 files.");
	assert_true(str_starts(s.out.text.p, "d00/f0000:2\nd00/f0040:1\n"));
	stage_call(&s, grep_run, "{'pattern':'hit','output_mode':'content'}");
	assert_int_equal(place_count(s.out.text.p, "\n"), 250);
	str_init(&one, 0);
	str_addl(&one, str_slice(&s.out.text));
	for (i = 0; i < 5; i++) {
		stage_call(&s, grep_run, "{'pattern':'hit',"
		    "'output_mode':'content'}");
		assert_string_equal(s.out.text.p, one.p);
	}
	stage_call(&s, grep_run, "{'pattern':'hit 1','output_mode':'content',"
	    "'offset':500}");
	assert_int_equal(place_count(s.out.text.p, "hit 1"), 111);
	stage_call(&s, grep_run, "{'pattern':'(x\\\\n|x)+hit','multiline':"
	    "true}");
	stage_has(s.out.text.p, "Found 1500 files");
	place_write("project/d39/g", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
	stage_has(stage_call(&s, grep_run, "{'pattern':'^(a+)+$'}"),
	    "match limit");
	/* time that runs out within a file */
	assert_true(place_shell("rm -r project/d39"));
	place_write("project/a", "hit\n");
	stage_call(&s, grep_run, "{'pattern':'hit','path':'a'}");
	stage_lacks(s.out.text.p, "time");
	/* nobody is left */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	str_clear(&one);
	stage_remove(&s);
}

static void
test_literal(void **state)
{
	struct grep g = { 0 };
	char hay[200];
	const char *hit;
	size_t i, n, m;

	(void)state;
	for (m = 1; m < 20; m++) {
		memset(&g, 0, sizeof(g));
		str_init(&g.literal, 0);
		str_add(&g.literal, "QxyzQabcdefgQhijklmn", m);
		grep_pick_rare(&g);
		for (n = 0; n < 100; n++) {
			memset(hay, 'Q', sizeof(hay));
			assert_null(m < 2 ? NULL :
			    grep_find_literal(&g, hay, n));
			for (i = 0; i + m <= n; i++) {
				memset(hay, 'a', sizeof(hay));
				memcpy(hay + i, g.literal.p, m);
				hit = grep_find_literal(&g, hay, n);
				assert_ptr_equal(hit, hay + i);
				assert_null(grep_find_literal(&g, hay,
				    i + m - 1));
			}
		}
		str_clear(&g.literal);
	}
	memset(hay, '\n', sizeof(hay));
	for (n = 0; n < sizeof(hay); n++) {
		assert_int_equal(grep_count_lines(hay, n), n);
		assert_true(grep_is_ascii(hay, n));
	}
	for (i = 0; i < sizeof(hay); i++) {
		hay[i] = (char)0x80;
		assert_false(grep_is_ascii(hay, sizeof(hay)));
		assert_true(grep_is_ascii(hay, i));
		assert_int_equal(grep_count_lines(hay, sizeof(hay)), 199);
		hay[i] = '\n';
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_files_and_counts),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_fences),
		cmocka_unit_test(test_large_files),
		cmocka_unit_test(test_workers),
		cmocka_unit_test(test_literal),
	};

	return cmocka_run_group_tests_name("grep", tests, NULL, NULL);
}
