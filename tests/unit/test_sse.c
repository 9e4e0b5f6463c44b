/* [sse]: the field rules, and that no way of splitting makes a difference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

/* Writes events down as name|data; one a line. */
static int
note(void *arg, struct slice name, struct slice data, struct err *e)
{
	struct str *out = arg;

	if (str_eq(name, "stop"))
		return err_set(e, ERR_API, "told to");
	str_addl(out, name);
	str_addc(out, '|');
	str_addl(out, data);
	str_addc(out, ';');
	return 0;
}

/* What comes of the text when it is fed in pieces of `step` bytes. */
static void
feed(struct slice in, size_t step, struct str *out)
{
	struct sse s;
	size_t i, n;

	str_init(out, 0);
	sse_init(&s, 1000);
	for (i = 0; i < in.n; i += n) {
		n = in.n - i < step ? in.n - i : step;
		assert_int_equal(sse_feed(&s, in.p + i, n, note, out, NULL),
		    0);
	}
	sse_clear(&s);
}

#define S(s) { s, sizeof(s) - 1 }

static const struct {
	struct slice in, out;
} cases[] = {
	{ S("event: a\ndata: 1\n\n"), S("a|1;") },
	{ S("event: a\r\ndata: 1\r\n\r\n"), S("a|1;") },
	{ S("event: a\rdata: 1\r\r"), S("a|1;") },
	{ S("data:1\n\ndata: 2\n\n"), S("|1;|2;") },
	{ S("data:  two blanks \n\n"), S("| two blanks ;") },
	{ S("data: 1\ndata: 2\ndata\n\n"), S("|1\n2\n;") },
	{ S("data\n\n"), S("|;") },
	{ S("data:\r\n\r\n"), S("|;") },
	{ S(": comment\n\nevent: x\n\ndata: 1\n\n"), S("|1;") },
	{ S("event: x\nevent: y\ndata: 1\n\n"), S("y|1;") },
	{ S("id: 7\nretry: 9\nDATA: no\ndatax: no\ndata : no\ndata: 1\n\n"),
	    S("|1;") },
	{ S("\357\273\277data: 1\n\n"), S("|1;") },
	{ S("\n\357\273\277data: 1\n\ndata: 2\n\n"), S("|2;") },
	{ S("data: a:b: c\n\n"), S("|a:b: c;") },
	{ S("data: \0x\0\n\n"), S("|\0x\0;") },
	{ S("data: \345\214\227\344\272\254 \360\237\231\202 \303\251\n\n"),
	    S("|\345\214\227\344\272\254 \360\237\231\202 \303\251;") },
	{ S("\n\r\n\r\r\ndata: 1\r\n\n\r\n"), S("|1;") },
	{ S("data: 1\n"), S("") },
	{ S("data: 1\r\ndata: 2"), S("") },
	{ S("data: 1\n\ndata: 2\r"), S("|1;") },
	{ S(""), S("") },
};

static void
test_every_step(void **state)
{
	struct str out;
	size_t i, step;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		for (step = 1; step <= cases[i].in.n + 1; step++) {
			feed(cases[i].in, step, &out);
			assert_int_equal(out.len, cases[i].out.n);
			assert_memory_equal(out.p, cases[i].out.p, out.len);
			str_clear(&out);
		}
	}
}

/* A CR and its LF in two reads, with nothing else in the second one. */
static void
test_cr_then_lf(void **state)
{
	static const char *const parts[] = { "data: 1\r", "\n", "\r", "\n",
	    "data: 2\r\r", "" };
	struct str out;
	struct sse s;
	size_t i;

	(void)state;
	str_init(&out, 0);
	sse_init(&s, 100);
	for (i = 0; i < LENGTH(parts); i++)
		assert_int_equal(sse_feed(&s, parts[i], strlen(parts[i]),
		    note, &out, NULL), 0);
	assert_string_equal(out.p, "|1;|2;");
	sse_clear(&s);
	str_clear(&out);
}

static int
feed_text(size_t max, const char *text, struct err *e)
{
	struct str out;
	struct sse s;
	int r;

	str_init(&out, 0);
	sse_init(&s, max);
	*e = (struct err){ 0 };
	r = sse_feed(&s, text, strlen(text), note, &out, e);
	sse_clear(&s);
	str_clear(&out);
	return r;
}

static void
test_limits(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(feed_text(20, "data: 0123456789\n\n", &e), 0);
	assert_int_equal(feed_text(10, "data: 0123456789\n\n", &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	/* an unfinished line, many short ones, a long name */
	assert_int_equal(feed_text(10, "data: 012345678", &e), -1);
	assert_int_equal(feed_text(11, "data: 1\ndata: 2\ndata: 3\ndata: 4\n",
	    &e), -1);
	assert_int_equal(feed_text(12, "event: 123456789\n", &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	/* what is done does not count for the next one */
	assert_int_equal(feed_text(9, "data: 1\n\ndata: 2\n\ndata: 3\n\n", &e),
	    0);
}

static void
test_the_sink_can_stop(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(feed_text(99, "event: stop\ndata: 1\n\nx", &e), -1);
	assert_int_equal(e.code, ERR_API);
	assert_string_equal(e.msg, "told to");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_step),
		cmocka_unit_test(test_cr_then_lf),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_the_sink_can_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
