/*
 * [api] and [msg] on any event texts, one a line: an answer that counts can
 * be appended, is valid JSON and UTF-8, and each of its calls has an object
 * as input.
 */
#include "internals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
use(const struct api_msg *m)
{
	struct conv *c = msg_new();
	struct slice p[MSG_PIECES];
	struct str s, results;
	size_t i;

	str_init(&s, 0);
	str_init(&results, 0);
	msg_append(c, false, str_of("{\"type\":\"text\",\"text\":\"x\"}"));
	if (m->blocks.len) {
		msg_append(c, true, str_slice(&m->blocks));
		for (i = 0; i < m->ncalls; i++) {
			if (json_check(str_of(m->calls[i].input), NULL) < 0)
				abort();
			msg_put_result(&results, str_of(m->calls[i].id),
			    str_of(""), str_of(""), true);
		}
		if (results.len) {
			msg_append(c, false, str_slice(&results));
			msg_check(c, false, NULL);
		}
		for (i = 0; i < c->nitems; i++)
			msg_shape(c, i, &s);
		if (msg_pieces(c, str_of(",\"m\":1"), p) > MSG_PIECES)
			abort();
		str_reset(&s);
		str_addf(&s, "[%s]", c->bytes.p);
		if (json_check(str_slice(&s), NULL) < 0 ||
		    !text_utf8_is(str_slice(&s)))
			abort();
	}
	str_clear(&s);
	str_clear(&results);
	msg_free(c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice all = { (const char *)data, size }, line;
	struct api_fail f = { 0 };
	struct api_msg m;
	struct run r;
	struct api_stream s = { .m = &m, .fail = &f, .r = &r };
	int ret = 0;

	memset(&r, 0, sizeof(r));
	api_msg_init(&m);
	while (!ret && text_line(&all, &line))
		ret = api_event(&s, str_of(""), line, NULL);
	if (!ret && api_finish(&s, NULL) == 0)
		use(&m);
	api_stream_clear(&s);
	api_msg_clear(&m);
	return 0;
}
