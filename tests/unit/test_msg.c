/* [msg]: bytes that never move, marks, pairs, shapes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

#define MARK ",\"cache_control\":{\"type\":\"ephemeral\"}"

static void
say(struct conv *c, bool assistant, const char *blocks)
{
	msg_append(c, assistant, str_of(blocks));
}

/* What would be written, in one text. */
static char *
written(const struct conv *c, const char *mark)
{
	struct slice p[MSG_PIECES];
	size_t n = msg_pieces(c, str_of(mark), p), i;
	struct str s;

	assert_true(n <= MSG_PIECES);
	str_init(&s, 0);
	for (i = 0; i < n; i++)
		str_addl(&s, p[i]);
	return str_detach(&s);
}

static int
marks(const char *s)
{
	int n = 0;

	for (; (s = strstr(s, MARK)); s++)
		n++;
	return n;
}

/* The text without its marks. */
static void
unmark(char *s)
{
	char *p;

	while ((p = strstr(s, MARK)))
		memmove(p, p + strlen(MARK), strlen(p + strlen(MARK)) + 1);
}

static void
test_prefix_never_moves(void **state)
{
	struct conv *c = msg_new();
	char *before = NULL, *now, use[100], result[200];
	int i;

	(void)state;
	say(c, false, "{\"type\":\"text\",\"text\":\"hi\"}");
	for (i = 0; i < 40; i++) {
		now = written(c, MARK);
		assert_true(marks(now) >= 1 && marks(now) <= 3);
		unmark(now);
		if (before)
			assert_memory_equal(now, before, strlen(before));
		free(before);
		before = now;
		msg_sent(c);
		snprintf(use, sizeof(use), "{\"type\":\"tool_use\",\"id\":"
		    "\"t%d\",\"name\":\"X\",\"input\":{}}", i);
		snprintf(result, sizeof(result), "{\"type\":\"tool_result\","
		    "\"tool_use_id\":\"t%d\",\"content\":\"%d\"}", i, i);
		say(c, true, use);
		say(c, false, result);
		assert_int_equal(msg_check(c, false, NULL), 0);
	}
	free(before);
	msg_free(c);
}

static void
test_marks(void **state)
{
	struct conv *c = msg_new();
	char *s;

	(void)state;
	say(c, false, "{\"type\":\"text\",\"text\":\"a\"},"
	    "{\"type\":\"text\",\"text\":\"b\"}");
	s = written(c, MARK);
	assert_string_equal(s, "{\"role\":\"user\",\"content\":[{\"type\":"
	    "\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"" MARK
	    "}]}");
	free(s);
	s = written(c, "");		/* caching off */
	assert_int_equal(marks(s), 0);
	free(s);
	msg_sent(c);
	c->mark_fork = 0;
	/* thinking cannot carry one: the block before it does */
	say(c, true, "{\"type\":\"text\",\"text\":\"c\"},"
	    "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"x\"}");
	s = written(c, MARK);
	assert_int_equal(marks(s), 3);
	assert_non_null(strstr(s, "\"text\":\"a\"" MARK));
	assert_non_null(strstr(s, "\"text\":\"b\"" MARK));
	assert_non_null(strstr(s, "\"text\":\"c\"" MARK));
	free(s);
	msg_free(c);
}

static void
test_blank_is_left_out(void **state)
{
	struct str b;

	(void)state;
	str_init(&b, 0);
	msg_put_text(&b, str_of(" \n\t"));
	assert_int_equal(b.len, 0);
	msg_put_result(&b, str_of("t1"), str_of("  "), str_of(""), false);
	assert_string_equal(b.p, "{\"type\":\"tool_result\",\"tool_use_id\":"
	    "\"t1\",\"content\":\"(no output)\"}");
	str_clear(&b);
}

#define USE(id) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"X\"," \
    "\"input\":{}}"
#define RES(id) "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\"," \
    "\"content\":\"x\"}"
#define TXT "{\"type\":\"text\",\"text\":\"x\"}"

static void
test_pairs(void **state)
{
	static const struct { const char *use, *answer; bool good; } rows[] = {
		{ USE("a"), RES("a"), true },
		{ USE("a") "," USE("b"), RES("b") "," RES("a"), true },
		{ USE("a"), RES("a") "," TXT, true },
		{ TXT, TXT, true },
		{ USE("a") "," USE("b"), RES("a"), false },
		{ USE("a"), TXT "," RES("a"), false },
		{ USE("a"), RES("a") "," RES("a"), false },
		{ USE("a"), RES("b"), false },
		{ USE("a"), RES("a") "," RES("b"), false },
		{ USE("a"), TXT, false },
		{ TXT, RES("a"), false },
	};
	struct conv *c;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		c = msg_new();
		say(c, false, TXT);
		say(c, true, rows[i].use);
		assert_int_equal(msg_check(c, false, NULL), -1);
		assert_int_equal(msg_check(c, true, NULL), 0);
		c->checked = 0;
		say(c, false, rows[i].answer);
		if ((msg_check(c, false, NULL) == 0) != rows[i].good)
			fail_msg("row %zu", i);
		msg_free(c);
	}
	c = msg_new();
	assert_int_equal(msg_check(c, false, NULL), -1);
	say(c, false, RES("a"));
	assert_int_equal(msg_check(c, false, NULL), -1);
	msg_free(c);
}

static void
test_shape(void **state)
{
	struct conv *c = msg_new();
	struct str s;

	(void)state;
	say(c, true, TXT "," USE("t9"));
	say(c, false, RES("t9"));
	str_init(&s, 0);
	msg_shape(c, 0, &s);
	str_addc(&s, ';');
	msg_shape(c, 1, &s);
	assert_string_equal(s.p, "assistant: text, tool_use X t9;"
	    "user: tool_result t9");
	str_clear(&s);
	msg_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prefix_never_moves),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_blank_is_left_out),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_shape),
	};

	return cmocka_run_group_tests_name("msg", tests, NULL, NULL);
}
