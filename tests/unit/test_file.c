/* [file]: paths, links, containment, replacing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

static char top[] = "/tmp/sa-file-XXXXXX";

static int
setup(void **state)
{
	char *real;

	(void)state;
	if (!mkdtemp(top) || chdir(top))
		return -1;
	real = realpath(top, NULL);
	assert_non_null(real);
	free(real);
	return 0;
}

static int
teardown(void **state)
{
	const char *argv[] = { "rm", "-rf", top, NULL };
	struct proc_job job = { .argv = argv, .keep = 100,
	    .timeout = 10000 };
	struct proc_result r;

	(void)state;
	if (chdir("/"))
		return -1;
	proc_result_init(&r);
	proc_run(&job, &r, NULL);
	proc_result_clear(&r);
	return 0;
}

static void
test_norm(void **state)
{
	static const struct { const char *base, *path, *want; } rows[] = {
		{ "/a/b", "c", "/a/b/c" }, { "/a/b", "../c", "/a/c" },
		{ "/a/b", "./c/.././d/", "/a/b/d" }, { "/", "..", "/" },
		{ "/", "../../x", "/x" }, { "/a", "/x//y///z", "/x/y/z" },
		{ "/a", "", "/a" }, { "/a", ".", "/a" }, { "/", "", "/" },
		{ "/a", "...", "/a/..." }, { "/a", "..b/c..", "/a/..b/c.." },
	};
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(rows); i++) {
		file_norm(rows[i].base, rows[i].path, &s);
		assert_string_equal(s.p, rows[i].want);
	}
	str_clear(&s);
}

static void
test_inside(void **state)
{
	(void)state;
	assert_true(file_inside("/a", "/a"));
	assert_true(file_inside("/a", "/a/b"));
	assert_true(file_inside("/a/", "/a/b"));
	assert_true(file_inside("/", "/x"));
	assert_false(file_inside("/a", "/ab"));
	assert_false(file_inside("/a/b", "/a"));
	assert_string_equal(file_relative("/a", "/a/b/c"), "b/c");
	assert_string_equal(file_relative("/a", "/a"), ".");
	assert_string_equal(file_relative("/a", "/ab"), "/ab");
}

static void
test_real(void **state)
{
	struct str s, want;
	struct err e = { 0 };
	int i;

	(void)state;
	str_init(&s, 0);
	str_init(&want, 0);
	assert_int_equal(mkdir("d", 0777), 0);
	assert_int_equal(symlink("d", "l"), 0);
	assert_int_equal(symlink("../d/./sub", "d/up"), 0);
	assert_int_equal(symlink("loop2", "loop1"), 0);
	assert_int_equal(symlink("loop1", "loop2"), 0);
	assert_int_equal(symlink("/etc/passwd", "abs"), 0);
	file_real(top, "l/new/file", &s, NULL);
	str_addf(&want, "%s/d/new/file", top);
	assert_string_equal(s.p, want.p);
	file_real(top, "l/up/x", &s, NULL);
	str_reset(&want);
	str_addf(&want, "%s/d/sub/x", top);
	assert_string_equal(s.p, want.p);
	/* ".." behind a link leaves the link's target, not its name */
	file_real(top, "l/../d", &s, NULL);
	str_reset(&want);
	str_addf(&want, "%s/d", top);
	assert_string_equal(s.p, want.p);
	file_real(top, "abs", &s, NULL);
	assert_string_equal(s.p, "/etc/passwd");
	assert_int_equal(file_real(top, "loop1/x", &s, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	/* a long chain ends */
	assert_int_equal(symlink("d", "c0"), 0);
	for (i = 1; i < 60; i++) {
		char a[8], b[8];

		snprintf(a, sizeof(a), "c%d", i - 1);
		snprintf(b, sizeof(b), "c%d", i);
		assert_int_equal(symlink(a, b), 0);
	}
	assert_int_equal(file_real(top, "c30", &s, NULL), 0);
	assert_int_equal(file_real(top, "c59", &s, NULL), -1);
	str_clear(&s);
	str_clear(&want);
}

static void
content_is(const char *path, const char *want)
{
	struct str s;

	str_init(&s, 0);
	assert_int_equal(file_read(path, 1000, &s, NULL), 0);
	assert_string_equal(s.p, want);
	str_clear(&s);
}

static void
test_replace(void **state)
{
	struct stat st, st2;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(file_replace("/dev/null/x", str_of("a"), &e), -1);
	assert_int_equal(file_replace("f", str_of("one"), NULL), 0);
	content_is("f", "one");
	/* mode and links are kept */
	assert_int_equal(chmod("f", 0750), 0);
	assert_int_equal(symlink("f", "lf"), 0);
	assert_int_equal(file_replace("lf", str_of("two"), NULL), 0);
	content_is("f", "two");
	assert_int_equal(lstat("lf", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	/* a second name sees the new bytes */
	assert_int_equal(link("f", "f2"), 0);
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(file_replace("f", str_of("three"), NULL), 0);
	content_is("f2", "three");
	assert_int_equal(stat("f", &st2), 0);
	assert_int_equal(st.st_ino, st2.st_ino);
	/* no folder, no device */
	err_clear(&e);
	assert_int_equal(mkdir("dir", 0777), 0);
	assert_int_equal(file_replace("dir", str_of("x"), &e), -1);
	assert_int_equal(file_replace("/dev/null", str_of("x"), NULL), -1);
}

static void
test_read_kinds(void **state)
{
	struct err e = { 0 };
	struct str s;

	(void)state;
	str_init(&s, 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(file_read("fifo", 10, &s, &e), -1);
	assert_non_null(strstr(e.msg, "not a regular file"));
	err_clear(&e);
	assert_int_equal(file_read("/dev/zero", 10, &s, &e), -1);
	err_clear(&e);
	assert_int_equal(file_replace("big", str_of("0123456789a"), NULL), 0);
	assert_int_equal(file_read("big", 10, &s, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	err_clear(&e);
	assert_int_equal(file_read("none", 10, &s, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	str_clear(&s);
}

static void
test_mkdirs(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(file_mkdirs("m/a/b/c", 0777, NULL), 0);
	assert_int_equal(file_mkdirs("m/a/b/c", 0777, NULL), 0);
	assert_true(file_is_dir("m/a/b/c"));
	assert_int_equal(file_replace("m/file", str_of(""), NULL), 0);
	assert_int_equal(file_mkdirs("m/file/x", 0777, &e), -1);
	assert_non_null(strstr(e.msg, "m/file"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_norm),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_read_kinds),
		cmocka_unit_test(test_mkdirs),
	};

	core_init();
	if (sig_init(NULL) < 0)
		return 1;
	return cmocka_run_group_tests_name("file", tests, setup, teardown);
}
