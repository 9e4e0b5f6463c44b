/*
 * [http] on any bytes: a response's head, the body in its framing (the same
 * bytes however they are split), addresses and lists from the environment.
 */
#include "internals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes in pieces of `step`, `max` bytes out at a time; how it ended. */
static int
decode(struct slice in, size_t step, size_t max, struct str *out)
{
	struct http_chunk c = { 0 };
	struct slice piece;
	char buf[256];
	ssize_t k = 0;

	str_init(out, 0);
	while (in.n && k >= 0 && c.at != CHUNK_END) {
		piece = (struct slice){ in.p, in.n < step ? in.n : step };
		in.p += piece.n;
		in.n -= piece.n;
		while (piece.n && k >= 0 && c.at != CHUNK_END) {
			k = http_chunk_feed(&c, &piece, buf, max);
			if (k > (ssize_t)max)
				abort();
			if (k > 0)
				str_add(out, buf, (size_t)k);
		}
	}
	return k < 0 ? -1 : c.at == CHUNK_END;
}

static void
chunks(struct slice in)
{
	struct str whole, split;
	int r = decode(in, in.n + 1, 256, &whole);

	if (decode(in, 1, 3, &split) != r || (r >= 0 &&
	    (split.len != whole.len ||
	    (whole.len && memcmp(split.p, whole.p, whole.len)))))
		abort();
	str_clear(&whole);
	str_clear(&split);
}

static void
texts(const char *s)
{
	struct http_url u;
	struct http_proxy p;

	if (!http_url_parse(s, &u, NULL) && (!*u.host || *u.path != '/' ||
	    u.port < 1 || u.port > 65535))
		abort();
	http_url_clear(&u);
	if (!strchr(s, '@')) {	/* each password would be kept */
		http_proxy_parse(s, &p, NULL);
		http_proxy_clear(&p);
	}
	http_no_proxy(s, "api.test", 443);
	http_no_proxy(s, "10.1.2.3", 80);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = { (const char *)data, size }, v;
	struct http_resp r = { 0 };
	enum http_framing framing;
	uint64_t left;
	size_t used;
	char *s;
	int got = http_head_parse(in, &r, &used);

	if (got > 0) {
		if (used > size || r.status < 100 || r.status > 999)
			abort();
		v = http_header(&r, "location");
		if (v.p && (v.p < r.head.p ||
		    v.p + v.n > r.head.p + r.head.len))
			abort();
		http_header_has(&r, "connection", "close");
		if (!http_frame(&r, "POST", &framing, &left) &&
		    framing == HTTP_CHUNKED)
			chunks((struct slice){ in.p + used, size - used });
	}
	http_resp_clear(&r);
	str_clear(&r.head);
	chunks(in);
	s = core_memdup(data, size);
	texts(s);
	free(s);
	return 0;
}
