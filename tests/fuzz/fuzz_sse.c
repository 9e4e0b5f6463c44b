/*
 * [sse] on any bytes: however they are split, the same events come out, and
 * nothing grows past the maximum.
 */
#include "internals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
note(void *arg, struct slice name, struct slice data, struct err *e)
{
	struct str *out = arg;

	(void)e;
	if (name.n + data.n > 4096)
		abort();
	str_addl(out, name);
	str_addc(out, '|');
	str_addl(out, data);
	str_addc(out, 0);
	return 0;
}

/* All events of the text, fed in pieces of `step` bytes; how it ended. */
static int
feed(const char *p, size_t n, size_t step, struct str *out)
{
	struct sse s;
	size_t k;
	int r = 0;

	str_init(out, 0);
	sse_init(&s, 4096);
	for (; n > 0 && !r; p += k, n -= k) {
		k = n < step ? n : step;
		r = sse_feed(&s, p, k, note, out, NULL);
	}
	sse_clear(&s);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 2, 7, 64 };
	const char *p = (const char *)data;
	struct str whole, split;
	int r = feed(p, size, size + 1, &whole);
	size_t i;

	for (i = 0; i < LENGTH(steps); i++) {
		if (feed(p, size, steps[i], &split) != r ||
		    split.len != whole.len ||
		    (whole.len && memcmp(split.p, whole.p, whole.len)))
			abort();
		str_clear(&split);
	}
	str_clear(&whole);
	return 0;
}
