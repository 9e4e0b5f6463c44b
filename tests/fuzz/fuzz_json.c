/*
 * [json] on any bytes: what the strict check takes, cJSON takes too; slices
 * lie inside the text; fixing and decoding end in valid UTF-8; writing and
 * reading a string gives it back.
 */
#include "internals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
walk(struct slice raw, int depth)
{
	struct json_iter it;

	if (depth > 4 || !json_iter_init(&it, raw))
		return;
	while (json_iter_next(&it)) {
		if (it.value.p < raw.p || it.value.p + it.value.n >
		    raw.p + raw.n || !it.value.n)
			abort();
		walk(it.value, depth + 1);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = { (const char *)data, size };
	struct str s, back, fixed;
	cJSON *v;

	str_init(&s, 0);
	str_init(&back, 0);
	str_init(&fixed, 0);
	if (json_check(in, NULL) == 0) {
		json_has_nul(in);
		walk(in, 0);
		json_fix(in, &fixed);
		if (!text_utf8_is(str_slice(&fixed)) ||
		    json_check(str_slice(&fixed), NULL) < 0)
			abort();
		v = json_parse(in, NULL);
		if (!v)
			abort();
		cJSON_Delete(v);
	}
	/* Any bytes as a string: valid JSON, and read back the same. */
	str_reset(&s);
	json_put(&s, in);
	if (json_check(str_slice(&s), NULL) < 0 ||
	    !text_utf8_is(str_slice(&s)))
		abort();
	json_unescape((struct slice){ s.p + 1, s.len - 2 }, &back);
	if (text_utf8_is(in) && (back.len != size ||
	    (size && memcmp(back.p, data, size))))
		abort();
	str_clear(&s);
	str_clear(&back);
	str_clear(&fixed);
	return 0;
}
