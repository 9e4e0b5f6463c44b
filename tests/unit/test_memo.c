/* Instruction files: which, in what order, and what stays outside. */
#include "internals.h"
#include "place.h"

#define SECRET "the-secret-of-the-user"

static struct place place;
static struct conf conf;
static struct opts opts;
static struct str out;

static int
setup(void **state)
{
	(void)state;
	place_make(&place);
	opts = (struct opts){ 0 };
	str_init(&out, 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	str_clear(&out);
	place_remove(&place);
	return 0;
}

/* The text for the settings and options that are set. */
static const char *
loaded(bool managed_only)
{
	struct err e = { 0 };

	str_reset(&out);
	place_catch(&place);
	assert_int_equal(conf_load(&conf, &opts, &e), 0);
	memo_load(&conf, managed_only, &out);
	place_caught(&place);
	conf_clear(&conf);
	return out.p;
}

/* The pieces are all there, in this order. */
static void
in_order(const char *text, ...)
{
	const char *piece, *at = text;
	va_list ap;

	va_start(ap, text);
	while ((piece = va_arg(ap, const char *)) != NULL) {
		at = strstr(at, piece);
		if (!at)
			fail_msg("'%s' is missing or too early in: %s", piece,
			    text);
	}
	va_end(ap);
}

static void
test_none(void **state)
{
	(void)state;
	assert_string_equal(loaded(false), "");
	place_write("project/CLAUDE.md", " \n\t\n");
	assert_string_equal(loaded(false), "");
	place_write("project/CLAUDE.md", "<!-- only\na comment -->\n");
	assert_string_equal(loaded(false), "");
}

static void
every_kind(void)
{
	place_write("managed/CLAUDE.md", "MANAGED");
	place_write("managed/managed-settings.json",
	    "{\"claudeMd\":\"SETTING\"}");
	place_write("home/.claude/CLAUDE.md", "USER");
	place_write("CLAUDE.md", "ABOVE");
	place_write("project/CLAUDE.md", "PROJECT");
	place_write("project/.claude/CLAUDE.md", "INNER");
	place_write("project/CLAUDE.local.md", "LOCAL");
}

static void
test_order(void **state)
{
	char frame[PATH_MAX];

	(void)state;
	every_kind();
	in_order(loaded(false), "MANAGED", "SETTING", "USER", "ABOVE",
	    "PROJECT", "INNER", "LOCAL", NULL);
	assert_string_equal(place.err, "");
	snprintf(frame, sizeof(frame), "Contents of %s (instructions of this "
	    "project):\n\nPROJECT\n\n", place_path("project/CLAUDE.md"));
	in_order(out.p, frame, NULL);
	assert_int_equal(place_count(out.p, "Contents of "), 7);
	in_order(loaded(true), "MANAGED", "SETTING", NULL);
	assert_int_equal(place_count(out.p, "Contents of "), 2);
}

static void
test_switches(void **state)
{
	(void)state;
	every_kind();
	opts.setting_sources = "user";
	in_order(loaded(false), "MANAGED", "USER", NULL);
	assert_int_equal(place_count(out.p, "Contents of "), 3);
	opts.setting_sources = "local";
	in_order(loaded(false), "LOCAL", NULL);
	assert_int_equal(place_count(out.p, "Contents of "), 3);
	opts.setting_sources = "project";
	in_order(loaded(false), "ABOVE", "PROJECT", "INNER", NULL);
	assert_int_equal(place_count(out.p, "Contents of "), 5);
	opts.setting_sources = NULL;
	opts.bare = true;
	assert_string_equal(loaded(false), "");
	opts.bare = false;
	setenv("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1", 1);
	assert_string_equal(loaded(false), "");
	unsetenv("CLAUDE_CODE_DISABLE_CLAUDE_MDS");
}

static void
test_excludes(void **state)
{
	char text[PATH_MAX];

	(void)state;
	every_kind();
	snprintf(text, sizeof(text), "{\"claudeMdExcludes\":[\"%s\","
	    "\"**/{home,project}/.claude/CLAUDE.md\",\"**/managed/*\"]}",
	    place_path("CLAUDE.md"));
	opts.settings = text;
	in_order(loaded(false), "MANAGED", "PROJECT", "LOCAL", NULL);
	assert_null(strstr(out.p, "ABOVE"));
	assert_null(strstr(out.p, "USER"));
	assert_null(strstr(out.p, "INNER"));
}

static void
test_agents_md(void **state)
{
	(void)state;
	place_write("home/.claude/CLAUDE.md", "USER");
	place_write("AGENTS.md", "UPPER");
	place_write("project/AGENTS.md", "AGENTS");
	in_order(loaded(false), "USER", "UPPER", "AGENTS", NULL);
	/* one CLAUDE.md anywhere on the way, and none of them counts */
	place_write("CLAUDE.local.md", "LOCAL");
	in_order(loaded(false), "USER", "LOCAL", NULL);
	assert_null(strstr(out.p, "AGENTS"));
}

/* Run in the home folder: ~/.claude/CLAUDE.md comes once. */
static void
test_in_home(void **state)
{
	(void)state;
	place_write("home/.claude/CLAUDE.md", "USER");
	place_write("home/CLAUDE.md", "HOME");
	assert_int_equal(chdir(place_path("home")), 0);
	loaded(false);
	assert_int_equal(place_count(out.p, "USER"), 1);
	assert_int_equal(place_count(out.p, "HOME"), 1);
	opts.setting_sources = "project";
	assert_null(strstr(loaded(false), "USER"));
}

static void
test_comments(void **state)
{
	static const struct {
		const char *in;
		const char *out;
	} cases[] = {
		{ "a\n<!-- x -->\nb\n", "a\nb\n" },
		{ "a\n   <!-- x\ny\n-->  \nb", "a\nb" },
		{ "a <!-- inline --> b", "a <!-- inline --> b" },
		{ "<!-- x --> rest\nb", " rest\nb" },
		{ "```\n<!-- x -->\n```\n<!-- y -->\n",
		    "```\n<!-- x -->\n```\n" },
		{ "~~~~ html\n```\n~~~\n<!-- x -->\n~~~~\n<!-- y -->\nz",
		    "~~~~ html\n```\n~~~\n<!-- x -->\n~~~~\nz" },
		{ "    <!-- code -->\n", "    <!-- code -->\n" },
		{ "<!-- open\nb\n<!-- c", "<!-- open\nb\n<!-- c" },
		{ "<!---->x", "x" }, { "<!-->\na", "<!-->\na" },
		{ "``` a ` b\n<!-- x -->\n", "``` a ` b\n" },
		{ "", "" }, { "\n\n", "\n\n" }, { "<!-", "<!-" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		str_reset(&out);
		memo_strip(str_of(cases[i].in), &out);
		assert_string_equal(out.p, cases[i].out);
	}
}

static void
test_import_syntax(void **state)
{
	static const struct {
		const char *text;
		const char *paths;	/* joined by | */
	} cases[] = {
		{ "see @a.md and @b/c.md.", "a.md|b/c.md." },
		{ "@./x @../y @~/z @/abs", "./x|../y|~/z|/abs" },
		{ "me@example.org (@no)", "" },
		{ "@with\\ blank.md#part", "with blank.md" },
		{ "`@no` ``a ` @no`` @yes", "yes" },
		{ "` open @yes", "yes" },
		{ "```\n@no\n```\n@yes\n~~~\n@no", "yes" },
		{ "@ @# @@x @!y", "" }, { "\t@tab", "tab" },
		{ "@\303\251", "" },
	};
	struct strv v;
	size_t i, k;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		v = (struct strv){ 0 };
		str_reset(&out);
		memo_all_imports(str_of(cases[i].text), &v);
		for (k = 0; k < v.n; k++)
			str_addf(&out, "%s%s", k ? "|" : "", v.v[k]);
		assert_string_equal(out.p, cases[i].paths);
		str_list_clear(&v);
	}
}

static void
test_imports(void **state)
{
	(void)state;
	place_write("project/CLAUDE.md", "TOP @docs/one.md, @missing @docs");
	place_write("project/docs/one.md", "ONE @two.md @../CLAUDE.md");
	place_write("project/docs/two.md", "TWO @three.md");
	place_write("project/docs/three.md", "THREE @four.md");
	place_write("project/docs/four.md", "FOUR @five.md");
	place_write("project/docs/five.md", "FIVE");
	in_order(loaded(false), "TOP", "ONE", "TWO", "THREE", "FOUR", NULL);
	assert_null(strstr(out.p, "FIVE\n"));	/* the fifth hop */
	assert_int_equal(place_count(out.p, "TOP"), 1);
	assert_string_equal(place.err, "");
}

/* What the project names may not lead out of it. */
static void
test_outside(void **state)
{
	char text[PATH_MAX + 64];

	(void)state;
	place_write("home/.ssh/id", SECRET);
	place_write("shared.md", SECRET);
	mkdir(place_path("project/sub"), 0777);
	snprintf(text, sizeof(text), "@~/.ssh/id @../shared.md @%s @link "
	    "@sub/../../shared.md", place_path("home/.ssh/id"));
	place_write("project/CLAUDE.md", text);
	assert_int_equal(symlink("../home/.ssh/id",
	    place_path("project/link")), 0);
	assert_int_equal(symlink("../home/.ssh/id",
	    place_path("project/CLAUDE.local.md")), 0);
	assert_non_null(strstr(loaded(false), "@~/.ssh"));
	assert_null(strstr(out.p, SECRET));
	/* the user's own file may */
	place_write("home/.claude/CLAUDE.md", "@~/.ssh/id");
	assert_int_equal(place_count(loaded(false), SECRET), 1);
	unlink(place_path("home/.claude/CLAUDE.md"));
	/* and so may the project once the user said so */
	snprintf(text, sizeof(text), "{\"projects\":{\"%s\":"
	    "{\"hasClaudeMdExternalIncludesApproved\":true}}}",
	    place_path("project"));
	place_write("home/.claude.json", text);
	assert_int_equal(place_count(loaded(false), SECRET), 2);
}

/* The repository is one place, also from a folder within it. */
static void
test_repository(void **state)
{
	(void)state;
	place_write("project/.git/HEAD", "x");
	place_write("project/docs/a.md", "DOCS");
	place_write("project/sub/CLAUDE.md", "SUB @../docs/a.md");
	assert_int_equal(chdir(place_path("project/sub")), 0);
	in_order(loaded(false), "SUB", "DOCS", NULL);
}

static void
test_odd_files(void **state)
{
	char *big = core_alloc(MEMO_FILE + 1);

	(void)state;
	memset(big, 'x', MEMO_FILE + 1);
	place_write_bytes("project/CLAUDE.md", big, MEMO_FILE + 1);
	assert_string_equal(loaded(false), "");
	in_order(place.err, "instructions left out", "larger than", NULL);
	place_write_bytes("project/CLAUDE.md", big, MEMO_FILE);
	assert_true(strlen(loaded(false)) > MEMO_FILE);
	/* two of them are all, the third is too much */
	place_write_bytes("CLAUDE.md", big, MEMO_FILE - 1000);
	place_write_bytes("project/CLAUDE.local.md", big, 4000);
	loaded(false);
	in_order(place.err, "instruction files have more than", NULL);
	assert_true(out.len < MEMO_ALL + 1000);
	free(big);
	unlink(place_path("CLAUDE.md"));
	place_write_bytes("project/CLAUDE.md", "a\0b", 3);
	place_write("project/CLAUDE.local.md", "caf\351 \303\251");
	in_order(loaded(false), "caf\357\277\275 \303\251", NULL);
	assert_int_equal(place_count(out.p, "Contents of "), 1);
	unlink(place_path("project/CLAUDE.md"));
	unlink(place_path("project/CLAUDE.local.md"));
	assert_int_equal(mkfifo(place_path("project/CLAUDE.md"), 0666), 0);
	assert_int_equal(symlink("CLAUDE.local.md",
	    place_path("project/CLAUDE.local.md")), 0);
	assert_string_equal(loaded(false), "");
}

/* Texts made to be slow stay quick: bounded, not the square of their size. */
static void
test_hostile(void **state)
{
	struct str s;
	struct strv v = { 0 };
	size_t i, k;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < 300000; i++)
		str_adds(&s, "<!-- x\n");
	str_reset(&out);
	memo_strip(str_slice(&s), &out);
	assert_int_equal(out.len, s.len);
	str_reset(&s);
	for (i = 1; s.len < 2000000; i++) {
		for (k = 0; k < i; k++)
			str_addc(&s, '`');
		str_addc(&s, 'x');
	}
	memo_all_imports(str_slice(&s), &v);
	assert_int_equal(v.n, 0);
	str_reset(&s);
	for (i = 0; i < 100000; i++)
		str_addf(&s, "@f%zu ", i);
	memo_all_imports(str_slice(&s), &v);
	assert_int_equal(v.n, MEMO_TRIES);
	str_list_clear(&v);
	place_write("project/CLAUDE.md", s.p);
	loaded(false);
	in_order(place.err, "more than 1000 instruction files", NULL);
	str_clear(&s);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(test_none), T(test_order), T(test_switches),
		T(test_excludes), T(test_agents_md), T(test_in_home),
		T(test_comments), T(test_import_syntax), T(test_imports),
		T(test_outside), T(test_repository), T(test_odd_files),
		T(test_hostile),
	};

	core_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
