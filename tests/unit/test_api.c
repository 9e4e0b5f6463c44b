/* [api]: what comes in goes back byte for byte; errors, retries, usage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

/* Feeds events (one JSON text each) and finishes; 0 if the answer is whole. */
static int
feed(struct api_msg *m, struct api_fail *f, const char *const *events,
    struct err *e)
{
	struct run r;
	struct api_stream s = { .m = m, .fail = f, .r = &r };
	int ret = 0;

	memset(&r, 0, sizeof(r));
	api_msg_init(m);
	for (; *events && !ret; events++)
		ret = api_event(&s, str_of(""), str_of(*events), e);
	if (!ret)
		ret = s.stopped ? api_finish(&s, e) : 1;
	api_stream_clear(&s);
	return ret;
}

#define START(index, block) "{\"type\":\"content_block_start\",\"index\":" \
    #index ",\"content_block\":" block "}"
#define DELTA(index, type, rest) "{\"type\":\"content_block_delta\"," \
    "\"index\":" #index ",\"delta\":{\"type\":\"" type "\"," rest "}}"
#define BEGIN "{\"type\":\"message_start\",\"message\":{\"id\":\"m1\"," \
    "\"model\":\"x\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1," \
    "\"cache_creation_input_tokens\":null}}}"
#define END(reason) "{\"type\":\"message_delta\",\"delta\":{" \
    "\"stop_reason\":\"" reason "\"},\"usage\":{\"output_tokens\":42}}", \
    "{\"type\":\"message_stop\"}"

static void
test_bytes_come_back(void **state)
{
	static const char *const events[] = { BEGIN,
	    START(0, "{\"type\":\"thinking\",\"thinking\":\"\","
	    "\"signature\":\"\"}"),
	    DELTA(0, "thinking_delta", "\"thinking\":\"a \\\"q\\\" \\ud83d\""),
	    DELTA(0, "thinking_delta", "\"thinking\":\"\\ude42 \\u00e9 \""),
	    DELTA(0, "signature_delta", "\"signature\":\"SIG==\""),
	    START(1, "{\"type\":\"redacted_thinking\",\"data\":\"Zm9v\"}"),
	    START(2, "{\"type\":\"hologram\",\"n\":9007199254740993}"),
	    START(3, "{\"type\":\"text\",\"text\":\"\"}"),
	    DELTA(3, "text_delta", "\"text\":\"he\\u006clo\""),
	    "{\"type\":\"ping\"}", "{\"type\":\"news\"}",
	    START(4, "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Read\","
	    "\"input\":{},\"caller\":{\"type\":\"direct\"}}"),
	    DELTA(4, "input_json_delta", "\"partial_json\":\"\""),
	    DELTA(4, "input_json_delta",
	    "\"partial_json\":\"{\\\"n\\\": 1e1\""),
	    DELTA(4, "input_json_delta", "\"partial_json\":\"00,\\\"s\\\":"
	    "\\\"\\\\u00e9\\\"}\""),
	    END("tool_use"), NULL };
	struct api_fail f = { 0 };
	struct api_msg m;

	(void)state;
	assert_int_equal(feed(&m, &f, events, NULL), 0);
	assert_string_equal(m.blocks.p,
	    "{\"type\":\"thinking\",\"thinking\":\"a \\\"q\\\" \\ud83d\\ude42 "
	    "\\u00e9 \",\"signature\":\"SIG==\"},"
	    "{\"type\":\"redacted_thinking\",\"data\":\"Zm9v\"},"
	    "{\"type\":\"hologram\",\"n\":9007199254740993},"
	    "{\"type\":\"text\",\"text\":\"he\\u006clo\"},"
	    "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Read\","
	    "\"input\":{\"n\": 1e100,\"s\":\"\\u00e9\"},"
	    "\"caller\":{\"type\":\"direct\"}}");
	assert_string_equal(m.text.p, "hello");
	assert_string_equal(m.stop_reason, "tool_use");
	assert_int_equal(m.ncalls, 1);
	assert_string_equal(m.calls[0].name, "Read");
	assert_string_equal(m.calls[0].input,
	    "{\"n\": 1e100,\"s\":\"\\u00e9\"}");
	assert_false(m.calls[0].broken);
	assert_int_equal(m.usage.input, 7);
	assert_int_equal(m.usage.output, 42);
	assert_true(m.thinks);
	assert_false(m.cut);
	api_msg_clear(&m);
}

/* Servers that leave members out: no index, no input, no usage, no names. */
static void
test_lean_servers(void **state)
{
	static const char *const events[] = {
	    "{\"type\":\"message_start\",\"message\":{}}",
	    "{\"type\":\"content_block_start\",\"content_block\":"
	    "{\"type\":\"text\"}}",
	    "{\"type\":\"content_block_delta\",\"delta\":"
	    "{\"type\":\"text_delta\",\"text\":\"a\"}}",
	    "{\"type\":\"content_block_start\",\"content_block\":"
	    "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"X\"}}",
	    "[DONE]",
	    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null},"
	    "\"usage\":null}",
	    "{\"type\":\"message_stop\"}", NULL };
	struct api_fail f = { 0 };
	struct api_msg m;

	(void)state;
	assert_int_equal(feed(&m, &f, events, NULL), 0);
	assert_string_equal(m.blocks.p, "{\"type\":\"text\",\"text\":\"a\"},"
	    "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"X\","
	    "\"input\":{}}");
	assert_int_equal(m.ncalls, 1);
	assert_string_equal(m.stop_reason, "");
	api_msg_clear(&m);
}

static void
test_input_in_the_start(void **state)
{
	static const char *const events[] = { BEGIN,
	    START(0, "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"X\","
	    "\"input\":{\"a\":12345678901234567890}}"),
	    END("tool_use"), NULL };
	struct api_fail f = { 0 };
	struct api_msg m;

	(void)state;
	assert_int_equal(feed(&m, &f, events, NULL), 0);
	assert_string_equal(m.calls[0].input,
	    "{\"a\":12345678901234567890}");
	api_msg_clear(&m);
}

static void
test_broken_input(void **state)
{
	static const char *const inputs[] = { "{\\\"a\\\":", "[1]", "12",
	    "{} {}" };
	char delta[200];
	const char *events[] = { BEGIN, START(0, "{\"type\":\"tool_use\","
	    "\"id\":\"t\",\"name\":\"X\",\"input\":{}}"), delta,
	    END("tool_use"), NULL };
	struct api_fail f = { 0 };
	struct api_msg m;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(inputs); i++) {
		snprintf(delta, sizeof(delta), DELTA(0, "input_json_delta",
		    "\"partial_json\":\"%s\""), inputs[i]);
		assert_int_equal(feed(&m, &f, events, NULL), 0);
		assert_true(m.calls[0].broken);
		/* what is sent back is JSON all the same, an object */
		assert_int_equal(json_check(str_slice(&m.blocks), NULL), 0);
		assert_int_equal(m.calls[0].input[0], '{');
		assert_int_equal(json_check(str_of(m.calls[0].input), NULL),
		    0);
		api_msg_clear(&m);
	}
}

static void
test_cut_in_a_call(void **state)
{
	static const char *const events[] = { BEGIN,
	    START(0, "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"X\","
	    "\"input\":{}}"),
	    DELTA(0, "input_json_delta", "\"partial_json\":\"{\\\"a\""),
	    END("max_tokens"), NULL };
	struct api_fail f = { 0 };
	struct api_msg m;

	(void)state;
	assert_int_equal(feed(&m, &f, events, NULL), 0);
	assert_true(m.cut);
	api_msg_clear(&m);
}

static void
test_blank_text_is_dropped(void **state)
{
	static const char *const events[] = { BEGIN,
	    START(0, "{\"type\":\"text\",\"text\":\"\"}"),
	    DELTA(0, "text_delta", "\"text\":\" \\n\""),
	    END("end_turn"), NULL };
	struct api_fail f = { 0 };
	struct api_msg m;

	(void)state;
	assert_int_equal(feed(&m, &f, events, NULL), 0);
	assert_int_equal(m.blocks.len, 0);
	api_msg_clear(&m);
}

static void
test_broken_streams(void **state)
{
	static const char *const rows[][4] = {
		{ BEGIN, "{\"type\":\"error\",\"error\":{\"type\":"
		    "\"overloaded_error\",\"message\":\"busy\"}}", NULL },
		{ BEGIN, "{\"type\":", NULL },
		{ BEGIN, DELTA(3, "text_delta", "\"text\":\"x\""), NULL },
		{ BEGIN, START(0, "17"), NULL },
		{ BEGIN, START(0, "{}"), "{\"type\":\"message_stop\"}",
		    NULL },
	};
	struct api_fail f;
	struct api_msg m;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		f = (struct api_fail){ .should_retry = -1 };
		err_clear(&e);
		assert_int_equal(feed(&m, &f, rows[i], &e), -1);
		/* each is worth another try */
		assert_true(api_may_retry(&f, &e));
		if (!i) {
			assert_string_equal(f.type, "overloaded_error");
			assert_non_null(strstr(e.msg, "busy"));
		}
		api_msg_clear(&m);
	}
}

static void
test_may_retry(void **state)
{
	static const struct { enum err_code code; int status, should; bool
	    want; } rows[] = {
		{ ERR_NET, 0, -1, true }, { ERR_TIMEOUT, 0, -1, true },
		{ ERR_TLS, 0, -1, false }, { ERR_ABORT, 0, -1, false },
		{ ERR_API, 400, -1, false }, { ERR_API, 401, -1, false },
		{ ERR_API, 404, -1, false }, { ERR_API, 408, -1, true },
		{ ERR_API, 409, -1, true }, { ERR_API, 413, -1, false },
		{ ERR_API, 429, -1, true }, { ERR_API, 500, -1, true },
		{ ERR_API, 529, -1, true }, { ERR_API, 529, 0, false },
		{ ERR_API, 400, 1, true }, { ERR_REPLAY, 0, -1, false },
	};
	struct api_fail f = { 0 };
	struct err e = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		f.status = rows[i].status;
		f.should_retry = rows[i].should;
		e.code = rows[i].code;
		if (api_may_retry(&f, &e) != rows[i].want)
			fail_msg("row %zu", i);
	}
}

static void
test_delay(void **state)
{
	struct api a = { .retry_base = 500, .fail = { .after = -1 } };
	int64_t d;
	int i;

	(void)state;
	for (i = 0; i < 70; i++) {
		d = api_delay(&a, i);
		assert_true(d >= 0 && d <= API_RETRY_CAP);
		if (i < 6)
			assert_true(d <= 500 << i && d >= (500 << i) * 3 / 4);
	}
	a.fail.after = 1234;
	assert_int_equal(api_delay(&a, 3), 1234);
}

static void
test_whole_message(void **state)
{
	struct api_fail f = { 0 };
	struct api_msg m;
	struct api_stream s = { .m = &m, .fail = &f };

	(void)state;
	api_msg_init(&m);
	assert_int_equal(api_whole(&s, str_of("{\"id\":\"m\",\"content\":["
	    "{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":"
	    "\"end_turn\",\"usage\":{\"output_tokens\":3}}\n"), NULL), 0);
	assert_int_equal(api_finish(&s, NULL), 0);
	assert_string_equal(m.text.p, "hi");
	assert_int_equal(m.usage.output, 3);
	api_stream_clear(&s);
	s = (struct api_stream){ .m = &m, .fail = &f };
	assert_int_equal(api_whole(&s, str_of("<html>"), NULL), -1);
	api_stream_clear(&s);
	api_msg_clear(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_come_back),
		cmocka_unit_test(test_lean_servers),
		cmocka_unit_test(test_input_in_the_start),
		cmocka_unit_test(test_broken_input),
		cmocka_unit_test(test_cut_in_a_call),
		cmocka_unit_test(test_blank_text_is_dropped),
		cmocka_unit_test(test_broken_streams),
		cmocka_unit_test(test_may_retry),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_whole_message),
	};

	core_init();
	return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
