/* [str], [err], [log]: maxima, lists, context, redaction. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

static void
test_max_is_never_passed(void **state)
{
	struct str s;

	(void)state;
	str_init(&s, 5);
	assert_string_equal(s.p, "");
	str_adds(&s, "abc");
	str_adds(&s, "def");		/* would be six */
	assert_string_equal(s.p, "abc");
	assert_true(s.full);
	str_adds(&s, "d");		/* full stays full: no holes */
	assert_string_equal(s.p, "abc");
	str_reset(&s);
	str_addf(&s, "%d", 12345);
	assert_string_equal(s.p, "12345");
	assert_false(s.full);
	str_addf(&s, "%d", 6);
	assert_true(s.full);
	assert_int_equal(s.len, 5);
	str_clear(&s);
}

static void
test_bytes_with_zero(void **state)
{
	struct str s, t;
	char *p;

	(void)state;
	str_init(&s, 0);
	str_init(&t, 0);
	str_add(&s, "a\0b", 3);
	str_remove(&s, 1, 1);
	assert_string_equal(s.p, "ab");
	str_take(&t, &s);
	assert_string_equal(s.p, "");
	assert_string_equal(t.p, "ab");
	p = str_detach(&t);
	assert_string_equal(p, "ab");
	assert_int_equal(t.len, 0);
	free(p);
	p = str_detach(&t);		/* empty: still a heap string */
	assert_string_equal(p, "");
	free(p);
	str_clear(&s);
	str_clear(&t);
}

static void
test_growth(void **state)
{
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < 100000; i++)
		str_addc(&s, (char)('a' + i % 26));
	assert_int_equal(s.len, 100000);
	assert_int_equal(s.p[100000], 0);
	for (i = 0; i < 100000; i++)
		assert_int_equal(s.p[i], 'a' + i % 26);
	str_cut(&s, 3);
	assert_string_equal(s.p, "abc");
	str_clear(&s);
}

static void
test_list(void **state)
{
	struct strv v = { 0 };
	char buf[8];
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		snprintf(buf, sizeof(buf), "%d", i);
		str_list_adds(&v, buf);
		assert_null(v.v[v.n]);
	}
	assert_true(str_list_has(&v, "99"));
	assert_false(str_list_has(&v, "100"));
	str_list_clear(&v);
	assert_int_equal(v.n, 0);
}

static void
test_err_keeps_the_first(void **state)
{
	struct err e = { 0 };
	char longer[2 * LIM_MSG];

	(void)state;
	assert_int_equal(err_set(&e, ERR_NET, "no %s", "route"), -1);
	err_set(&e, ERR_IO, "later");
	assert_string_equal(e.msg, "no route");
	err_wrap(&e, "host '%s'", "h");
	assert_string_equal(e.msg, "host 'h': no route");
	assert_int_equal(e.code, ERR_NET);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	err_wrap(&e, "%s", longer);
	assert_true(strlen(e.msg) < LIM_MSG);
	err_clear(&e);
	err_set(&e, ERR_IO, "%s", longer);
	err_wrap(&e, "context");
	assert_memory_equal(e.msg, "context: xxx", 12);
	assert_true(strlen(e.msg) < LIM_MSG);
	err_set(NULL, ERR_IO, "nobody cares");
}

static void
test_redaction(void **state)
{
	struct str s;

	(void)state;
	log_secret("sk-abcdef");
	log_secret("short");		/* too short to hide */
	log_secret("tok-123456");
	str_init(&s, 0);
	log_redact(str_of("a sk-abcdef b tok-123456sk-abcdef short"), &s);
	assert_string_equal(s.p, "a [secret] b [secret][secret] short");
	str_clear(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_max_is_never_passed),
		cmocka_unit_test(test_bytes_with_zero),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_err_keeps_the_first),
		cmocka_unit_test(test_redaction),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
