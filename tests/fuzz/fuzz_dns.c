/*
 * [dns] on any bytes: an answer to our question (its flags, counts and
 * records are the input), and the two files that are read.
 */
#include "internals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
answer(const uint8_t *data, size_t size, bool ipv6)
{
	struct dns_question q;
	unsigned char *m;
	size_t n;

	if (!dns_query("api.test", ipv6, &q) || size < 10)
		return;
	n = q.n + size - 10;
	m = core_alloc(n);
	memcpy(m, q.msg, q.n);
	memcpy(m + 2, data, 10);
	memcpy(m + q.n, data + 10, size - 10);
	if (dns_answer(&q, m, n) == DNS_YES && !q.found.n)
		abort();
	if (q.found.n > DNS_ADDRS)
		abort();
	free(m);
	/* as it is: no answer to anything */
	dns_answer(&q, data, size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = { (const char *)data, size };
	struct dns_conf c = { 0 };
	struct dns_list l = { .n = 0 };
	struct dns_question q;
	char *s = core_memdup(data, size);

	answer(data, size, false);
	answer(data, size, true);
	dns_conf_clear(&c);
	dns_conf_parse(&c, in);
	if (!c.n || c.n > DNS_SERVERS)
		abort();
	dns_conf_clear(&c);
	dns_hosts(in, "api.test", &l);
	if (dns_query(s, true, &q) && q.n > sizeof(q.msg))
		abort();
	free(s);
	return 0;
}
