/* [text]: UTF-8, lines, globs, braces, gitignore patterns. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

static void
test_utf8(void **state)
{
	static const struct { const char *in, *want; } rows[] = {
		{ "", "" }, { "abc", "abc" }, { "caf\303\251", "caf\303\251" },
		{ "caf\351", "caf\357\277\275" },
		{ "\300\200", "\357\277\275\357\277\275" },
		{ "\355\240\200", "\357\277\275\357\277\275\357\277\275" },
		{ "\360\237\231\202x", "\360\237\231\202x" },
		{ "\360\237\231", "\357\277\275\357\277\275\357\277\275" },
		{ "\364\220\200\200", "\357\277\275\357\277\275\357\277\275"
		    "\357\277\275" },
		{ "a\377b", "a\357\277\275b" },
	};
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(rows); i++) {
		str_reset(&s);
		text_utf8_fix(str_of(rows[i].in), &s);
		assert_string_equal(s.p, rows[i].want);
		assert_int_equal(text_utf8_is(str_of(rows[i].in)),
		    !strcmp(rows[i].in, rows[i].want));
	}
	str_clear(&s);
}

static void
test_cut(void **state)
{
	struct slice s = str_of("a\303\251\360\237\231\202z");
	static const size_t down[] = { 0, 1, 1, 3, 3, 3, 3, 7, 8, 8 };
	static const size_t up[] = { 0, 1, 3, 3, 7, 7, 7, 7, 8, 8 };
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(down); i++) {
		assert_int_equal(text_cut(s, i), down[i]);
		assert_int_equal(text_cut_up(s, i), up[i]);
	}
}

static void
test_glob(void **state)
{
	static const struct { const char *pat, *path; bool want; } rows[] = {
		{ "", "", true }, { "", "a", false }, { "a", "", false },
		{ "abc", "abc", true }, { "abc", "abcd", false },
		{ "*", "", true }, { "*", "abc", true }, { "*", "a/b", false },
		{ "*.c", "x.c", true }, { "*.c", ".c", true },
		{ "*.c", "x.cc", false }, { "*.c", "a/x.c", false },
		{ "a*b*c", "axxbyyc", true }, { "a*b*c", "axxbyy", false },
		{ "a*bc", "abcbc", true }, { "*ab", "aab", true },
		{ "a/*/c", "a/b/c", true }, { "a/*/c", "a/b/b/c", false },
		{ "?", "a", true }, { "?", "", false }, { "?", "/", false },
		{ "?", "\303\251", true }, { "??", "\303\251", false },
		{ "*?x", "\303\251x", true }, { "?", "\351", true },
		{ "**", "a", true }, { "**", "a/b/c", true },
		{ "**", "", false },
		{ "**/x", "x", true }, { "**/x", "a/x", true },
		{ "**/x", "a/b/x", true }, { "**/x", "ax", false },
		{ "**/x", "a/xx", false }, { "**/x", "x/y", false },
		{ "a/**", "a/b", true }, { "a/**", "a/b/c", true },
		{ "a/**", "a", false }, { "a/**", "ab/c", false },
		{ "a/**/b", "a/b", true }, { "a/**/b", "a/x/b", true },
		{ "a/**/b", "a/x/y/b", true }, { "a/**/b", "ab", false },
		{ "a/**/b", "a/xb", false },
		{ "**/a/**/b/*.c", "x/a/y/z/b/f.c", true },
		{ "**/a/**/b/*.c", "a/b/f.c", true },
		{ "**/a/**/b/*.c", "a/b/c/f.c", false },
		{ "**/a/*/c", "a/x/a/b/c", true },
		{ "**/**/x", "x", true }, { "**/*", "a/b", true },
		/* a star pair that does not fill its segment is one star */
		{ "a**b", "axxb", true }, { "a**b", "ax/b", false },
		{ "src/**.js", "src/a.js", true },
		{ "src/**.js", "src/a/b.js", false },
		{ "***/x", "a/x", true }, { "***/x", "a/b/x", false },
		{ "[abc]", "b", true }, { "[abc]", "d", false },
		{ "[!abc]", "d", true }, { "[^abc]", "b", false },
		{ "[a-f]x", "dx", true }, { "[a-f]x", "gx", false },
		{ "[]a]", "]", true }, { "[]a]", "a", true },
		{ "[!]a]", "]", false }, { "[a-]", "-", true },
		{ "[\\]]", "]", true }, { "[\\a-\\c]", "b", true },
		{ "[!a]", "/", false }, { "a[!b]c", "a/c", false },
		{ "[", "[", true }, { "[a", "[a", true }, { "[a", "a", false },
		{ "[\303\240-\303\257]", "\303\251", true },
		{ "[\303\240-\303\257]", "\303\277", false },
		{ "[!\303\251]x", "\303\251x", false },
		{ "[a/b]", "a", false },
		{ "\\*", "*", true }, { "\\*", "a", false },
		{ "a\\", "a\\", true }, { "\\a", "a", true },
		{ "\\[a]", "[a]", true },
		{ "*a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false },
		{ "[._]*.s[a-v][a-z]", ".x.sap", true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++)
		if (text_glob(rows[i].pat, rows[i].path) != rows[i].want)
			fail_msg("'%s' on '%s': not %d", rows[i].pat,
			    rows[i].path, rows[i].want);
}

/* No pattern may take long; a runaway one would not end at all. */
static void
test_glob_cannot_run_away(void **state)
{
	char pat[4001], path[4001];
	size_t i;

	(void)state;
	memset(path, 'a', 4000);
	path[4000] = 0;
	for (i = 0; i < 4000; i++)
		pat[i] = i % 2 ? '*' : 'a';
	pat[4000] = 0;
	pat[3999] = 'b';
	assert_false(text_glob(pat, path));
	for (i = 0; i < 4000; i++) {
		path[i] = i % 2 ? '/' : 'a';
		pat[i] = "**/a"[i % 4];
	}
	for (i = 3; i < 4000; i += 4)
		pat[i] = '/';
	assert_false(text_glob(pat, path));
}

static void
test_braces(void **state)
{
	static const struct { const char *in, *want; } rows[] = {
		{ "a", "a" }, { "{a,b}", "a b" }, { "x{a,b}y", "xay xby" },
		{ "{a,{b,c}}", "a b c" }, { "{a,b}{c,d}", "ac ad bc bd" },
		{ "{a}", "a" }, { "{,x}y", "y xy" }, { "{a,b", "{a,b" },
		{ "a}", "a}" }, { "\\{a,b}", "\\{a,b}" },
		{ "{a\\,b,c}", "a\\,b c" }, { "{a{b,c},d}", "d ab ac" },
		{ "*.{ts,tsx}", "*.ts *.tsx" },
	};
	struct strv v;
	struct str s;
	size_t i, k;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(rows); i++) {
		v = (struct strv){ 0 };
		str_reset(&s);
		assert_true(text_braces(rows[i].in, 100, &v));
		for (k = 0; k < v.n; k++)
			str_addf(&s, "%s%s", k ? " " : "", v.v[k]);
		assert_string_equal(s.p, rows[i].want);
		str_list_clear(&v);
	}
	/* the limit holds, and what is left is not lost */
	v = (struct strv){ 0 };
	assert_false(text_braces("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"
	    "{a,b}", 100, &v));
	assert_true(v.n >= 40 && v.n < 210);
	str_list_clear(&v);
	str_clear(&s);
}

static void
test_gitignore(void **state)
{
	static const struct {
		const char *pat, *path;
		bool is_dir, want;
	} rows[] = {
		{ "a", "a", false, true }, { "a", "x/a", false, true },
		{ "a", "a/x/y", false, true }, { "a", "ab", false, false },
		{ "*.o", "x/y.o", false, true },
		{ "/a", "a", false, true }, { "/a", "x/a", false, false },
		{ "/a", "a/x", false, true },
		{ "a/b", "a/b", false, true }, { "a/b", "x/a/b", false,
		    false },
		{ "a/b", "a/b/c", false, true },
		{ "a/", "a", false, false }, { "a/", "a", true, true },
		{ "a/", "a/x", false, true }, { "a/", "x/a/y", false, true },
		{ "/a/", "a/x", false, true }, { "/a/", "x/a/y", false,
		    false },
		{ "**/a", "x/y/a", false, true }, { "a/**", "a/x", false,
		    true },
		{ "a/**", "a", true, false }, { "a/**/b", "a/b", false,
		    true },
		{ "**", "a", false, true }, { "*", "a/b", false, true },
		{ "/*", "a/b", false, true }, { "a/*", "a", true, false },
		{ "/", "a", true, false }, { "", "a", false, false },
		{ "\\!a", "!a", false, true }, { "\\#a", "#a", false, true },
		{ "a\\/", "a", true, false },
		{ ".env", "x/.env", false, true },
		{ "foo/*.txt", "foo/a.txt", false, true },
		{ "foo/*.txt", "foo/x/a.txt", false, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++)
		if (text_gitignore(rows[i].pat, rows[i].path,
		    rows[i].is_dir) != rows[i].want)
			fail_msg("'%s' on '%s': not %d", rows[i].pat,
			    rows[i].path, rows[i].want);
}

static void
test_lines_and_items(void **state)
{
	struct slice s = str_of("a\n\nb"), one;
	int64_t v;

	(void)state;
	assert_true(text_line(&s, &one) && str_eq(one, "a"));
	assert_true(text_line(&s, &one) && str_eq(one, ""));
	assert_true(text_line(&s, &one) && str_eq(one, "b"));
	assert_false(text_line(&s, &one));
	s = str_of(" a , ,b");
	assert_true(text_item(&s, ',', &one) && str_eq(one, "a"));
	assert_true(text_item(&s, ',', &one) && str_eq(one, ""));
	assert_true(text_item(&s, ',', &one) && str_eq(one, "b"));
	assert_false(text_item(&s, ',', &one));
	assert_int_equal(text_bool("Yes"), 1);
	assert_int_equal(text_bool("OFF"), 0);
	assert_int_equal(text_bool("maybe"), -1);
	assert_true(text_int(str_of("-5"), -9, 9, &v) && v == -5);
	assert_false(text_int(str_of("10"), -9, 9, &v));
	assert_false(text_int(str_of("5x"), -9, 9, &v));
	assert_false(text_int(str_of(""), -9, 9, &v));
	assert_false(text_int(str_of("99999999999999999999"), 0, INT64_MAX,
	    &v));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_glob_cannot_run_away),
		cmocka_unit_test(test_braces),
		cmocka_unit_test(test_gitignore),
		cmocka_unit_test(test_lines_and_items),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
