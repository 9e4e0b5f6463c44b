/* [json]: the strict check, raw slices, writing, decoding. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

static void
test_check(void **state)
{
	static const char *const good[] = { "0", "-0", "1.5e+3", "\"\"",
	    "\"\\u00e9\\\\\\/\"", "[]", "[1,2]", "{}", " {\"a\" : [ null ]} ",
	    "true", "\"\\ud83d\"", "{\"a\":1,\"a\":2}" };
	static const char *const bad[] = { "", " ", "01", "1.", ".5", "+1",
	    "1e", "tru", "nul", "\"\n\"", "\"\\x\"", "\"\\u12g4\"", "\"",
	    "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}",
	    "1 2", "\"a\"b", "[1", "{\"a\":1", "\xef\xbb\xbf{}", "NaN", "-",
	    "\"\\", "\"\\u12", "'a'" };
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(good); i++)
		if (json_check(str_of(good[i]), NULL))
			fail_msg("refused: %s", good[i]);
	for (i = 0; i < LENGTH(bad); i++) {
		err_clear(&e);
		if (!json_check(str_of(bad[i]), &e))
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(e.code, ERR_PARSE);
	}
	err_clear(&e);
	json_check(str_of("{\n \"a\": x}"), &e);
	assert_string_equal(e.msg, "not valid JSON at line 2, column 7");
}

static void
test_depth(void **state)
{
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LIM_DEPTH; i++)
		str_addc(&s, '[');
	for (i = 0; i < LIM_DEPTH; i++)
		str_addc(&s, ']');
	assert_int_equal(json_check(str_slice(&s), NULL), 0);
	str_reset(&s);
	for (i = 0; i < 1000000; i++)
		str_addc(&s, '[');
	assert_int_equal(json_check(str_slice(&s), NULL), -1);
	str_clear(&s);
}

static void
test_raw(void **state)
{
	struct slice o = str_of("{ \"a\" : 9007199254740993 ,\"b\":{\"a\":"
	    "[1, 2 ]},\"c\":\"x\\\"y\",\"a\":1e400}"), v;
	struct json_iter it;
	int n = 0;

	(void)state;
	assert_true(json_raw(o, "b", &v));
	assert_true(str_eq(v, "{\"a\":[1, 2 ]}"));
	assert_true(json_raw(o, "a", &v));
	assert_true(str_eq(v, "1e400"));	/* the last one wins */
	assert_true(json_raw_string(o, "c", &v));
	assert_true(str_eq(v, "x\\\"y"));
	assert_false(json_raw_string(o, "b", &v));
	assert_false(json_raw(o, "d", &v));
	assert_false(json_raw(str_of("[1]"), "a", &v));
	assert_true(json_iter_init(&it, str_of("[ 1 , [2,3] , \"x\" ]")));
	while (json_iter_next(&it))
		n++;
	assert_int_equal(n, 3);
	assert_false(json_iter_init(&it, str_of("12")));
}

static void
test_put(void **state)
{
	struct str s;

	(void)state;
	str_init(&s, 0);
	json_put(&s, (struct slice){ "a\"\\\n\x01\0\xff\xc3\xa9\x7f/", 11 });
	assert_string_equal(s.p,
	    "\"a\\\"\\\\\\n\\u0001\\u0000\xef\xbf\xbd\xc3\xa9\x7f/\"");
	assert_int_equal(json_check(str_slice(&s), NULL), 0);
	str_reset(&s);
	str_addc(&s, '{');
	json_put_text(&s, "a", NULL);
	json_put_int(&s, "b", -5);
	json_put_bool(&s, "c", true);
	json_put_real(&s, "d", 0.1 + 0.2);
	json_put_real(&s, "e", NAN);
	str_addc(&s, '}');
	assert_string_equal(s.p,
	    "{\"a\":null,\"b\":-5,\"c\":true,\"d\":0.3,\"e\":null}");
	str_clear(&s);
}

/* Everything that json_put() writes is read back as it was. */
static void
test_put_and_unescape(void **state)
{
	char in[600];
	struct str s, back;
	size_t i;

	(void)state;
	for (i = 0; i < 128; i++)
		in[i] = (char)i;
	memcpy(in + 128, "\xf0\x9f\x99\x82\xe5\x8c\x97", 7);
	str_init(&s, 0);
	str_init(&back, 0);
	json_put(&s, (struct slice){ in, 135 });
	json_unescape((struct slice){ s.p + 1, s.len - 2 }, &back);
	assert_int_equal(back.len, 135);
	assert_memory_equal(back.p, in, 135);
	str_clear(&s);
	str_clear(&back);
}

static void
test_surrogates(void **state)
{
	static const struct { const char *in, *fixed, *text; } rows[] = {
		{ "\\ud83d\\ude42", "\\ud83d\\ude42", "\xf0\x9f\x99\x82" },
		{ "\\ud83d", "\\ufffd", "\xef\xbf\xbd" },
		{ "\\ude42x", "\\ufffdx", "\xef\xbf\xbdx" },
		{ "\\ud83d\\ud83d\\ude42", "\\ufffd\\ud83d\\ude42",
		    "\xef\xbf\xbd\xf0\x9f\x99\x82" },
		{ "\\\\ud83d", "\\\\ud83d", "\\ud83d" },
		{ "\\u00E9\\/", "\\u00E9\\/", "\xc3\xa9/" },
		{ "a\xff\xc3", "a\xef\xbf\xbd\xef\xbf\xbd", NULL },
	};
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(rows); i++) {
		str_reset(&s);
		json_fix(str_of(rows[i].in), &s);
		assert_string_equal(s.p, rows[i].fixed);
		if (!rows[i].text)
			continue;
		str_reset(&s);
		json_unescape(str_of(rows[i].in), &s);
		assert_string_equal(s.p, rows[i].text);
	}
	str_clear(&s);
	assert_true(json_has_nul(str_of("{\"a\":\"x\\u0000\"}")));
	assert_false(json_has_nul(str_of("{\"a\":\"x\\\\u0000\"}")));
}

static void
test_getters(void **state)
{
	struct err e = { 0 };
	cJSON *v = json_parse(str_of("{\"s\":\"\\ud83d\",\"n\":3,\"b\":true,"
	    "\"S\":1,\"l\":[]}"), &e);

	(void)state;
	assert_non_null(v);
	assert_string_equal(json_text(v, "s"), "\xef\xbf\xbd");
	assert_null(json_text(v, "n"));
	assert_int_equal(json_int(v, "n", 9), 3);
	assert_int_equal(json_int(v, "s", 9), 9);
	assert_true(json_flag(v, "b", false));
	assert_true(json_flag(v, "n", true));
	assert_null(json_need(v, "l", "x", &e));
	assert_string_equal(e.msg, "x.l: text expected, not a list");
	cJSON_Delete(v);
	assert_null(json_parse(str_of("{"), NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_put),
		cmocka_unit_test(test_put_and_unescape),
		cmocka_unit_test(test_surrogates),
		cmocka_unit_test(test_getters),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
