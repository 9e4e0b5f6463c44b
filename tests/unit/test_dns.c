/* [dns]: files, questions, hostile answers, and servers with their faults. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

static void
text_of(const struct dns_list *l, struct str *out)
{
	char buf[INET6_ADDRSTRLEN];
	size_t i;

	str_reset(out);
	for (i = 0; i < l->n; i++) {
		dns_addr_text(&l->v[i], buf);
		str_addf(out, "%s%s", i ? " " : "", buf);
	}
}

static void
assert_list(const struct dns_list *l, const char *want)
{
	struct str s;

	str_init(&s, 0);
	text_of(l, &s);
	assert_string_equal(s.p, want);
	str_clear(&s);
}

static void
test_files(void **state)
{
	struct dns_conf c = { 0 };
	struct dns_list l = { .n = 0 };

	(void)state;
	dns_conf_clear(&c);
	dns_conf_parse(&c, str_of("# x\nnameserver 1.2.3.4 # y\nnameserver\n"
	    "nameserver ::1\nnameserver bad\nsearch a.b c.d\noptions edns0 "
	    "ndots:3 rotate\nnameserver 5.6.7.8\nnameserver 9.9.9.9\n"));
	assert_int_equal(c.n, 3);
	assert_int_equal(c.server[1].sa.sa_family, AF_INET6);
	assert_int_equal(ntohs(c.server[1].in6.sin6_port), 53);
	assert_int_equal(c.ndots, 3);
	assert_int_equal(c.search.n, 2);
	assert_string_equal(c.search.v[1], "c.d");
	dns_conf_clear(&c);
	dns_conf_parse(&c, str_of("domain only.this\n;nameserver 1.1.1.1"));
	assert_int_equal(c.n, 1);
	assert_int_equal(ntohl(c.server[0].in.sin_addr.s_addr), 0x7f000001);
	dns_conf_clear(&c);

	dns_hosts(str_of("10.0.0.1 one One.test#two\n\n::2\tone\r\n"
	    "bad one\n10.0.0.1 one\n10.0.0.9 oneone # one\n"), "ONE", &l);
	assert_list(&l, "10.0.0.1 ::2");
}

static void
test_questions(void **state)
{
	struct dns_question q;
	char label[80], name[300];
	size_t i;

	(void)state;
	assert_true(dns_query("a.bc.", false, &q));
	assert_int_equal(q.n, 12 + 2 + 3 + 1 + 4);
	assert_memory_equal(q.msg + 12, "\1a\2bc\0\0\1\0\1", 10);
	assert_true(dns_query("a.bc", true, &q));
	assert_memory_equal(q.msg + 12, "\1a\2bc\0\0\34\0\1", 10);
	assert_false(dns_query("", true, &q));
	assert_false(dns_query(".", true, &q));
	assert_false(dns_query("a..b", true, &q));
	memset(label, 'x', 64);
	label[64] = 0;
	assert_false(dns_query(label, true, &q));
	label[63] = 0;
	assert_true(dns_query(label, true, &q));
	for (i = 0; i < 299; i++)
		name[i] = i % 2 ? '.' : 'a';
	name[299] = 0;
	assert_false(dns_query(name, true, &q));
	name[253] = 0;
	assert_true(dns_query(name, true, &q));
	assert_true(q.n <= sizeof(q.msg));
}

/* Appends a record with a pointer to the question's name. */
static void
record(struct str *m, int type, const char *data, size_t n)
{
	str_add(m, "\300\014", 2);
	str_addc(m, 0);
	str_addc(m, (char)type);
	str_add(m, "\0\1\0\0\0\1\0", 7);
	str_addc(m, (char)n);
	str_add(m, data, n);
	m->p[7]++;
}

/* An answer without records to the question. */
static void
begin(const struct dns_question *q, struct str *m)
{
	str_init(m, 0);
	str_add(m, q->msg, q->n);
	m->p[2] = (char)0x81;
	m->p[3] = (char)0x80;
}

static enum dns_said
take(struct dns_question *q, const struct str *m)
{
	q->found.n = 0;
	return dns_answer(q, (const unsigned char *)m->p, m->len);
}

static void
test_answers(void **state)
{
	struct dns_question q;
	struct str m;
	size_t i, len;
	int c;

	(void)state;
	assert_true(dns_query("api.test", false, &q));
	begin(&q, &m);
	assert_int_equal(take(&q, &m), DNS_NONE);
	record(&m, 5, "\3foo\300\020", 6);		/* an alias */
	record(&m, 1, "\12\0\0\1", 4);
	record(&m, 28, "0123456789abcdef", 16);		/* not asked for */
	record(&m, 1, "\12\0\0\2", 4);
	assert_int_equal(take(&q, &m), DNS_YES);
	assert_list(&q.found, "10.0.0.1 10.0.0.2");
	/* servers may give the name's letters back in another case */
	m.p[13] = 'A';
	assert_int_equal(take(&q, &m), DNS_YES);
	/* cut anywhere, changed anywhere: never a fault */
	len = m.len;
	for (i = 0; i < len; i++) {
		m.len = i;
		take(&q, &m);
	}
	m.len = len;
	for (i = 0; i < len; i++) {
		c = m.p[i];
		m.p[i] = (char)(c ^ 0xff);
		take(&q, &m);
		m.p[i] = (char)c;
	}
	m.p[2] |= 2;
	assert_int_equal(take(&q, &m), DNS_CUT);
	m.p[2] &= ~2;
	m.p[3] = (char)0x83;
	assert_int_equal(take(&q, &m), DNS_NONE);
	m.p[3] = (char)0x82;
	assert_int_equal(take(&q, &m), DNS_FAIL);
	m.p[0] ^= 1;
	assert_int_equal(take(&q, &m), DNS_OTHER);
	str_clear(&m);
}

/* What the server below does, by the first letters of the name. */
static size_t
reply(unsigned char *m, size_t n, bool tcp)
{
	bool ipv6 = m[n - 3] == 28;
	char name[64];
	struct str s;

	snprintf(name, sizeof(name), "%.*s", m[12] < 63 ? m[12] : 0,
	    (const char *)m + 13);
	if (!strcmp(name, "silent") || (!strcmp(name, "drop6") && ipv6))
		return 0;
	m[2] = 0x81;
	m[3] = 0x80;
	if (!strcmp(name, "fail"))
		m[3] = 0x82;
	else if (!strcmp(name, "none") || (!strcmp(name, "nx6") && ipv6))
		m[3] = 0x83;
	else if (!strcmp(name, "cut") && !tcp)
		m[2] |= 2;
	else if (strcmp(name, "only4") || !ipv6) {
		str_init(&s, 0);
		str_add(&s, m, n);
		record(&s, ipv6 ? 28 : 1, ipv6 ? "\xfd\0\0\0\0\0\0\0\0\0\0\0"
		    "\0\0\0\1" : "\12\0\0\1", ipv6 ? 16 : 4);
		memcpy(m, s.p, s.len);
		n = s.len;
		str_clear(&s);
	}
	return n;
}

static void
serve_tcp(int fd)
{
	unsigned char m[1024] = { 0 }, head[2];
	size_t n;
	int c = accept(fd, NULL, NULL);

	if (read(c, head, 2) == 2 && (n = (size_t)head[0] << 8 | head[1]) <
	    512 && read(c, m, n) == (ssize_t)n) {
		n = reply(m, n, true);
		head[0] = (unsigned char)(n >> 8);
		head[1] = (unsigned char)n;
		/* in two pieces */
		if (write(c, head, 2) == 2 && write(c, m, 20) == 20) {
			usleep(20000);
			if (write(c, m + 20, n - 20) < 0)
				_exit(1);
		}
	}
	close(c);
}

/* A name server on one port, UDP and TCP; its pid. */
static pid_t
serve(union dns_addr *at)
{
	socklen_t len = sizeof(at->in);
	int udp = -1, tcp, tries;
	unsigned char m[1024];
	struct pollfd p[2];
	struct sockaddr_in from;
	ssize_t n;
	pid_t pid;

	for (tries = 0; tries < 50; tries++) {
		dns_addr_parse("127.0.0.1", 0, at);
		udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(udp, &at->sa, len), 0);
		assert_int_equal(getsockname(udp, &at->sa, &len), 0);
		if (!bind(tcp, &at->sa, len))
			break;
		close(udp);
		close(tcp);
	}
	assert_int_equal(listen(tcp, 5), 0);
	pid = fork();
	if (pid) {
		close(udp);
		close(tcp);
		return pid;
	}
	for (;;) {
		p[0] = (struct pollfd){ udp, POLLIN, 0 };
		p[1] = (struct pollfd){ tcp, POLLIN, 0 };
		poll(p, 2, -1);
		if (p[1].revents)
			serve_tcp(tcp);
		if (!p[0].revents)
			continue;
		len = sizeof(from);
		n = recvfrom(udp, m, 512, 0, (struct sockaddr *)&from, &len);
		if (n > 12 && (n = (ssize_t)reply(m, (size_t)n, false)) > 0)
			sendto(udp, m, (size_t)n, 0, (struct sockaddr *)&from,
			    len);
	}
}

struct result {
	int r;
	struct err e;
	struct dns_list l;
	int64_t ms;
};

static struct result
look(const struct dns_conf *c, const char *name, int64_t limit)
{
	struct result x = { 0 };
	int64_t from = core_now();

	x.r = dns_lookup(c, name, io_in(limit), &x.l, &x.e);
	x.ms = core_now() - from;
	return x;
}

static void
test_servers(void **state)
{
	struct dns_conf c = { 0 };
	struct result x;
	pid_t pid;

	(void)state;
	dns_conf_clear(&c);
	c.hosts = "/dev/null";
	pid = serve(&c.server[0]);
	c.n = 1;
	x = look(&c, "both.test", 5000);
	assert_list(&x.l, "fd00::1 10.0.0.1");
	x = look(&c, "only4.test", 5000);
	assert_list(&x.l, "10.0.0.1");
	x = look(&c, "nx6.test", 5000);
	assert_list(&x.l, "10.0.0.1");
	x = look(&c, "drop6.test", 5000);
	assert_list(&x.l, "10.0.0.1");
	assert_true(x.ms < 4000);	/* not the time-out of the other */
	x = look(&c, "cut.test", 5000);
	assert_list(&x.l, "fd00::1 10.0.0.1");
	x = look(&c, "none.test", 5000);
	assert_int_equal(x.r, -1);
	assert_int_equal(x.e.code, ERR_NOTFOUND);
	x = look(&c, "fail.test", 60000);
	assert_int_equal(x.e.code, ERR_NET);
	assert_true(x.ms < 50000);
	x = look(&c, "silent.test", 300);
	assert_int_equal(x.e.code, ERR_NET);
	/* a second server that nobody runs changes nothing */
	dns_addr_parse("127.0.0.1", 1, &c.server[1]);
	c.n = 2;
	x = look(&c, "both.test", 5000);
	assert_list(&x.l, "fd00::1 10.0.0.1");
	x = look(&c, "fail.test", 60000);
	assert_int_equal(x.e.code, ERR_NET);
	/* the search list: for names without a dot */
	str_list_adds(&c.search, "none.x");
	str_list_adds(&c.search, "test");
	x = look(&c, "both", 5000);
	assert_list(&x.l, "fd00::1 10.0.0.1");
	assert_int_equal(kill(pid, SIGKILL), 0);
	waitpid(pid, NULL, 0);
	/* nobody at all */
	x = look(&c, "both.test", 60000);
	assert_int_equal(x.e.code, ERR_NET);
	assert_non_null(strstr(x.e.msg, "'both.test'"));
	dns_conf_clear(&c);
}

static void
test_no_server_needed(void **state)
{
	struct dns_conf c = { 0 };
	struct result x;

	(void)state;
	x = look(&c, "localhost", 0);
	assert_list(&x.l, "127.0.0.1 ::1");
	x = look(&c, "A.B.LocalHost.", 0);
	assert_list(&x.l, "127.0.0.1 ::1");
	x = look(&c, "10.1.2.3", 0);
	assert_list(&x.l, "10.1.2.3");
	x = look(&c, "fe80::1%lo", 0);
	assert_list(&x.l, "fe80::1");
	assert_int_not_equal(x.l.v[0].in6.sin6_scope_id, 0);
	assert_false(dns_is_localhost("notlocalhost"));
	assert_false(dns_is_localhost("localhost.org"));
	assert_false(dns_is_localhost(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_no_server_needed),
	};

	core_init();
	if (sig_init(NULL) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
