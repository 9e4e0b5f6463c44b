/* [find]: Glob, ignore files. */
#include "internals.h"
#include "stage.h"

/* The tree of B21 and more. */
static void
tree(void)
{
	place_write("project/.gitignore", "dist/\n*.log\n!keep.log\n/top\n"
	    "# no\n\\#odd\nspace\\ \ntrail   \nsub/*.tmp\n**/deep/x\n"
	    "[Bb]uild\n");
	place_write("project/.github/w/a.yml", "needle\n");
	place_write("project/src/.env", "needle\n");
	place_write("project/src/main.c", "needle\n");
	place_write("project/src/keep.log", "needle\n");
	place_write("project/src/drop.log", "needle\n");
	place_write("project/src/top", "needle\n");
	place_write("project/top", "needle\n");
	place_write("project/dist/x.js", "needle\n");
	place_write("project/.git/config", "needle\n");
	place_write("project/.git/info/exclude", "private\n");
	place_write("project/private", "needle\n");
	place_write("project/sub/a.tmp", "needle\n");
	place_write("project/sub/b/a.tmp", "needle\n");
	place_write("project/sub/.gitignore", "!a.tmp\nlocal\n");
	place_write("project/sub/local", "needle\n");
	place_write("project/sub/deep/x", "needle\n");
	place_write("project/#odd", "needle\n");
	place_write("project/space ", "needle\n");
	place_write("project/trail", "needle\n");
	place_write("project/Build/o", "needle\n");
	place_write("home/.config/git/ignore", "*.mine\n");
	place_write("project/x.mine", "needle\n");
}

/* The lines of a text in order of bytes, joined by blanks. */
static const char *
sorted(const char *text)
{
	static char out[65536];
	struct strv v = { 0 };
	struct slice s = str_of(text), line;
	size_t i, at = 0;

	while (text_line(&s, &line))
		str_list_add(&v, line.p, line.n);
	if (v.n > 1)
		qsort(v.v, v.n, sizeof(*v.v), file_by_name);
	*out = 0;
	for (i = 0; i < v.n; i++)
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%s",
		    i ? "|" : "", v.v[i]);
	str_list_clear(&v);
	return out;
}

static void
test_glob_tool(void **state)
{
	static const struct { const char *in, *want; } rows[] = {
		{ "'pattern':'*.yml'", ".github/w/a.yml" },
		{ "'pattern':'.github/**/*.yml'", ".github/w/a.yml" },
		{ "'pattern':'**/*.yml'", ".github/w/a.yml" },
		{ "'pattern':'**/.env'", "src/.env" },
		{ "'pattern':'.env'", "src/.env" },
		{ "'pattern':'*.js'", "dist/x.js" },
		{ "'pattern':'dist/**'", "dist/x.js" },
		{ "'pattern':'*','path':'dist'", "dist/x.js" },
		{ "'pattern':'src/*.{c,log}'",
		    "src/drop.log|src/keep.log|src/main.c" },
		{ "'pattern':'./src/m*'", "src/main.c" },
		{ "'pattern':'src/m*/'", "No files found" },
		{ "'pattern':'sub/'", "sub/.gitignore|sub/a.tmp|sub/b/a.tmp|"
		    "sub/deep/x|sub/local" },
		{ "'pattern':'sub/*/*'", "sub/b/a.tmp|sub/deep/x" },
		{ "'pattern':'s*/**/x'", "sub/deep/x" },
		{ "'pattern':'config'", "No files found" },
		{ "'pattern':'.git/config'", "No files found" },
		{ "'pattern':'config','path':'.git'", ".git/config" },
		{ "'pattern':'nope'", "No files found" },
		{ "'pattern':'[Bb]uild/?'", "Build/o" },
		{ "'pattern':'#odd'", "#odd" },
	};
	struct stage s;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	tree();
	for (i = 0; i < LENGTH(rows); i++) {
		stage_call(&s, find_glob_run, "{%s}", rows[i].in);
		if (s.out.is_error || strcmp(sorted(s.out.text.p),
		    rows[i].want))
			fail_msg("%s: %s", rows[i].in, sorted(s.out.text.p));
	}
	assert_string_equal(stage_call(&s, find_glob_run,
	    "{'pattern':'%s/src/*.c'}", place_path("project")), "src/main.c");
	stage_remove(&s);
}

static void
test_glob_refuses(void **state)
{
	static const struct { const char *in, *says; } rows[] = {
		{ "'pattern':'/etc/*'", "must be relative" },
		{ "'pattern':'../*'", "`..`" },
		{ "'pattern':'src/../../x'", "`..`" },
		{ "'pattern':'{a,../b}'", "`..`" },
		{ "'pattern':''", "empty" },
		{ "'pattern':'x','path':'nope'", "Directory does not exist: "
		    "nope." },
		{ "'pattern':'x','path':'f'", "is not a directory" },
		{ "'pattern':'{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"
		    "{a,b}{a,b}{a,b}'", "too many alternatives" },
	};
	struct stage s;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	place_write("project/f", "");
	for (i = 0; i < LENGTH(rows); i++) {
		stage_has(stage_call(&s, find_glob_run, "{%s}", rows[i].in),
		    rows[i].says);
		assert_true(s.out.is_error);
	}
	stage_remove(&s);
}

static void
test_glob_order(void **state)
{
	char name[64];
	struct stage s;
	struct timespec at[2] = { { 0 } };
	int i;

	(void)state;
	stage_make(&s, NULL);
	for (i = 0; i < 1700; i++) {
		snprintf(name, sizeof(name), "project/d%d/f%04d", i % 7, i);
		place_write(name, "");
		at[0].tv_sec = at[1].tv_sec = 1000000 + i * 7919 % 1700;
		assert_int_equal(utimensat(AT_FDCWD, place_path(name), at, 0),
		    0);
	}
	stage_call(&s, find_glob_run, "{'pattern':'f*'}");
	/* i * 7919 % 1700 == 1699 for i == 1621 */
	assert_true(str_starts(s.out.text.p, "d4/f1621\n"));
	stage_has(s.out.text.p, "\n(Results are truncated. Consider using a "
	    "more specific path or pattern.)");
	assert_int_equal(place_count(s.out.text.p, "\n"), 100);
	/* equal times: by name */
	assert_true(place_shell("find project -type f | xargs touch -d "
	    "2001-01-01"));
	stage_call(&s, find_glob_run, "{'pattern':'f*'}");
	assert_true(str_starts(s.out.text.p, "d0/f0000\nd0/f0007\n"));
	stage_remove(&s);
}

static void
test_glob_options(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	tree();
	setenv("CLAUDE_CODE_GLOB_NO_IGNORE", "false", 1);
	assert_string_equal(stage_call(&s, find_glob_run,
	    "{'pattern':'*.js'}"), "No files found");
	setenv("CLAUDE_CODE_GLOB_NO_IGNORE", "true", 1);
	assert_string_equal(stage_call(&s, find_glob_run,
	    "{'pattern':'*.js'}"), "dist/x.js");
	unsetenv("CLAUDE_CODE_GLOB_NO_IGNORE");
	setenv("CLAUDE_CODE_GLOB_HIDDEN", "false", 1);
	assert_string_equal(stage_call(&s, find_glob_run,
	    "{'pattern':'*.yml'}"), "No files found");
	unsetenv("CLAUDE_CODE_GLOB_HIDDEN");
	stage_remove(&s);
}

/* Links below the start are not followed; a deny rule hides a file. */
static void
test_glob_fences(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, "Read(./secret.txt)", NULL);
	place_write("project/secret.txt", "x");
	place_write("project/open.txt", "x");
	place_write("home/out.txt", "x");
	assert_true(place_shell("ln -s ../home project/h; "
	    "ln -s . project/loop; ln -s open.txt project/l.txt"));
	assert_string_equal(stage_call(&s, find_glob_run,
	    "{'pattern':'*.txt'}"), "open.txt");
	/* the start itself may be a link */
	stage_call(&s, find_glob_run, "{'pattern':'*.txt','path':'h'}");
	stage_has(s.out.text.p, "home/out.txt");
	if (getuid()) {
		place_write("project/locked/x.txt", "");
		assert_true(place_shell("chmod 0 project/locked"));
		stage_has(stage_call(&s, find_glob_run,
		    "{'pattern':'*.txt'}"), "1 folder could not be read");
	}
	stage_remove(&s);
}

/* Each path of the tree that the walk of Grep comes to. */
static void
test_ignore_files(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	tree();
	stage_call(&s, grep_run, "{'pattern':'needle'}");
	assert_string_equal(sorted(s.out.text.p), ".github/w/a.yml|"
	    "Found 7 files|src/.env|src/keep.log|src/main.c|src/top|"
	    "sub/a.tmp|sub/b/a.tmp");
	/* an ignored folder that is named is searched */
	stage_has(stage_call(&s, grep_run,
	    "{'pattern':'needle','path':'dist'}"), "dist/x.js");
	stage_has(stage_call(&s, grep_run,
	    "{'pattern':'needle','path':'top'}"), "Found 1 file\ntop");
	/* and so is a file that a glob names */
	stage_has(stage_call(&s, grep_run,
	    "{'pattern':'needle','glob':'*.log'}"), "src/drop.log");
	/* rules from above reach into the start */
	stage_call(&s, grep_run, "{'pattern':'needle','path':'sub'}");
	assert_string_equal(sorted(s.out.text.p),
	    "Found 2 files|sub/a.tmp|sub/b/a.tmp");
	/* .ignore holds without a repository and over .gitignore */
	place_write("project/.ignore", "main.c\n!drop.log\n");
	stage_call(&s, grep_run, "{'pattern':'needle','path':'src'}");
	assert_string_equal(sorted(s.out.text.p), "Found 4 files|src/.env|"
	    "src/drop.log|src/keep.log|src/top");
	assert_true(place_shell("rm -rf project/.git"));
	stage_call(&s, grep_run, "{'pattern':'needle','path':'src'}");
	assert_string_equal(sorted(s.out.text.p), "Found 4 files|src/.env|"
	    "src/drop.log|src/keep.log|src/top");
	stage_has(stage_call(&s, grep_run, "{'pattern':'needle'}"),
	    "dist/x.js");
	/* a repository within is not subject to rules outside of it */
	assert_true(place_shell("mkdir project/.git project/sub/.git"));
	place_write("project/sub/z.log", "needle\n");
	stage_has(stage_call(&s, grep_run, "{'pattern':'needle'}"),
	    "sub/z.log");
	stage_remove(&s);
}

static void
test_time_limit(void **state)
{
	char name[64];
	struct find_walk w;
	struct stage s;
	int i;

	(void)state;
	stage_make(&s, NULL);
	for (i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "project/d%d/f", i);
		place_write(name, "x");
	}
	/* a stop ends a search, and what was found is the result */
	raise(SIGTERM);
	stage_call(&s, find_glob_run, "{'pattern':'f*'}");
	assert_string_equal(s.out.text.p, "No files found");
	stage_call(&s, grep_run, "{'pattern':'x'}");
	assert_false(s.out.is_error);
	assert_int_equal(sig_forked(NULL), 0);
	/* so does the time limit, and the result says so */
	find_walk_init(&w, &s.run, s.run.cwd);
	w.deadline = core_now();
	find_walk(&w);
	assert_true(w.timed_out);
	find_notes(&w, &s.out.text);
	stage_has(s.out.text.p, "ran out of time");
	str_clear(&w.path);
	stage_remove(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glob_tool),
		cmocka_unit_test(test_glob_refuses),
		cmocka_unit_test(test_glob_order),
		cmocka_unit_test(test_glob_options),
		cmocka_unit_test(test_glob_fences),
		cmocka_unit_test(test_ignore_files),
		cmocka_unit_test(test_time_limit),
	};

	return cmocka_run_group_tests_name("find", tests, NULL, NULL);
}
