/* [http]: addresses, proxies, heads, framing, and talks with bad servers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

#define S(s) ((struct slice){ s, sizeof(s) - 1 })

static void
test_addresses(void **state)
{
	static const struct {
		const char *url, *host, *path;
		int port, secure;
	} good[] = {
		{ "https://api.test", "api.test", "/", 443, 1 },
		{ "http://API.test:8080/v1?x=1#f", "api.test", "/v1?x=1", 8080,
		    0 },
		{ "HTTPS://[::1]:1/a", "::1", "/a", 1, 1 },
		{ "http://[fe80::1]", "fe80::1", "/", 80, 0 },
		{ "http://127.0.0.1:/", "127.0.0.1", "/", 80, 0 },
		{ "http://a_b-c:65535?q", "a_b-c", "/?q", 65535, 0 },
		{ "http://h/a@b:c", "h", "/a@b:c", 80, 0 },
	};
	static const char *const bad[] = { "", "api.test", "ftp://x", "http:/x",
	    "http://", "http:///x", "http://a:0", "http://a:65536",
	    "http://a:x", "http://a:1:2", "http://[::1", "http://[::1]x",
	    "http://[zz]", "http://::1/", "http://u:p@h/", "http://h/a b",
	    "http://h/\n", "http://h\303\251/", "http://a%62/",
	    "http://h/\r\nX: y", "http://a,b/" };
	struct http_url u;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(good); i++) {
		assert_int_equal(http_url_parse(good[i].url, &u, NULL), 0);
		assert_string_equal(u.host, good[i].host);
		assert_string_equal(u.path, good[i].path);
		assert_int_equal(u.port, good[i].port);
		assert_int_equal(u.secure, good[i].secure);
		http_url_clear(&u);
	}
	for (i = 0; i < LENGTH(bad); i++) {
		e = (struct err){ 0 };
		assert_int_equal(http_url_parse(bad[i], &u, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_null(strstr(e.msg, "u:p"));
		http_url_clear(&u);
	}
}

static void
test_proxy_addresses(void **state)
{
	static const struct {
		const char *text, *host;
		int port;
		const char *auth;
	} good[] = {
		{ "http://p.test:3128", "p.test", 3128, NULL },
		{ "p.test", "p.test", 80, NULL },
		{ "p.test:3128/", "p.test", 3128, NULL },
		{ "http://[::1]:1", "::1", 1, NULL },
		{ "http://u:p@h:1", "h", 1, "dTpw" },
		{ "http://us%20er:p%40%3a%2F@h:1", "h", 1,
		    "dXMgZXI6cEA6Lw==" },
		{ "http://u:p@x@h:1", "h", 1, "dTpwQHg=" },
	};
	static const char *const bad[] = { "socks5://h:1", "https://h:1",
	    "http://", "http://u:secret1@", "http://u:secret1@h:x" };
	struct http_proxy p;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(good); i++) {
		assert_int_equal(http_proxy_parse(good[i].text, &p, NULL), 0);
		assert_string_equal(p.host, good[i].host);
		assert_int_equal(p.port, good[i].port);
		if (good[i].auth)
			assert_string_equal(p.auth, good[i].auth);
		else
			assert_null(p.auth);
		http_proxy_clear(&p);
	}
	for (i = 0; i < LENGTH(bad); i++) {
		e = (struct err){ 0 };
		assert_int_equal(http_proxy_parse(bad[i], &p, &e), -1);
		assert_non_null(strstr(e.msg, "proxy"));
		assert_null(strstr(e.msg, "secret1"));
		http_proxy_clear(&p);
	}
}

static void
test_no_proxy(void **state)
{
	static const struct {
		const char *list, *host;
		bool direct;
	} cases[] = {
		{ "", "api.test", false }, { NULL, "api.test", false },
		{ "*", "api.test", true }, { "api.test", "api.test", true },
		{ "API.Test", "api.test", true }, { ".test", "api.test", true },
		{ "*.test", "api.test", true }, { "test", "api.test", true },
		{ "pi.test", "api.test", false },
		{ "api.test.org", "api.test", false },
		{ "a, b api.test", "api.test", true },
		{ "a,,b\tc", "api.test", false },
		{ "api.test:443", "api.test", true },
		{ "api.test:80", "api.test", false },
		{ "api.test:x", "api.test", false },
		{ "10.0.0.0/8", "10.200.3.4", true },
		{ "10.0.0.0/8", "11.0.0.1", false },
		{ "10.0.0.0/33", "10.0.0.1", false },
		{ "10.0.0.1/32", "10.0.0.2", false },
		{ "0.0.0.0/0", "9.9.9.9", true },
		{ "fd00::/8", "fd12::1", true }, { "fd00::/8", "::2", false },
		{ "0.0.1", "10.0.0.1", false }, { "::2", "::2", true },
		{ "", "localhost", true }, { "", "a.localhost", true },
		{ "", "127.9.9.9", true }, { "", "::1", true },
		{ "", "notlocalhost", false }, { "", "128.0.0.1", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++)
		assert_int_equal(http_no_proxy(cases[i].list, cases[i].host,
		    443), cases[i].direct);
}

static void
test_proxy_environment(void **state)
{
	struct http *h;

	(void)state;
	setenv("https_proxy", "", 1);	/* set and empty: none */
	setenv("HTTPS_PROXY", "http://upper:1", 1);
	setenv("HTTP_PROXY", "http://upper:2", 1);
	setenv("NO_PROXY", "x", 1);
	unsetenv("http_proxy");
	unsetenv("no_proxy");
	h = http_new();
	assert_null(h->proxy[1]);
	assert_string_equal(h->proxy[0], "http://upper:2");
	assert_string_equal(h->no_proxy, "x");
	http_free(h);
	unsetenv("https_proxy");
	setenv("REQUEST_METHOD", "GET", 1);
	h = http_new();
	assert_string_equal(h->proxy[1], "http://upper:1");
	assert_null(h->proxy[0]);
	http_free(h);
	unsetenv("REQUEST_METHOD");
	unsetenv("HTTPS_PROXY");
	unsetenv("HTTP_PROXY");
	unsetenv("NO_PROXY");
}

static void
test_heads(void **state)
{
	static const struct {
		const char *text;
		int got, status;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 1, 200 },
		{ "HTTP/1.0 404\nA:b\n\nbody", 1, 404 },
		{ "HTTP/1.1 200 \r\n\r\n", 1, 200 },
		{ "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", 1, 200 },
		{ "", 0, 0 }, { "HTT", 0, 0 }, { "HTTP/1.1 200 OK\r\n", 0, 0 },
		{ "HTTP/1.1 200 OK\r\nA: b\r\n", 0, 0 },
		{ "HTTP/2 200\r\n\r\n", -1, 0 }, { "ICY 200 OK", -1, 0 },
		{ "http/1.1 200 OK\r\n\r\n", -1, 0 },
		{ "HTTP/1.1 20\r\n\r\n", -1, 0 },
		{ "HTTP/1.1 099 x\r\n\r\n", -1, 0 },
		{ "HTTP/1.1 2000\r\n\r\n", -1, 0 },
		{ "HTTP/1.1  200\r\n\r\n", -1, 0 },
		{ "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", -1, 0 },
		{ "HTTP/1.1 200 OK\r\n: b\r\n\r\n", -1, 0 },
		{ "HTTP/1.1 200 OK\r\n a: b\r\n\r\n", -1, 0 },
		{ "HTTP/1.1 200 OK\r\nnothing\r\n\r\n", -1, 0 },
		{ "<html>", -1, 0 }, { "\25\3\3", -1, 0 },
	};
	struct http_resp r = { 0 };
	size_t i, used;
	int k;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		k = http_head_parse(str_of(cases[i].text), &r, &used);
		assert_int_equal(k, cases[i].got);
		if (k > 0)
			assert_int_equal(r.status, cases[i].status);
	}
	k = http_head_parse(str_of("HTTP/1.1 200 OK\r\nContent-Type:  Text/"
	    "Event-Stream ; charset=utf-8\r\nX:1\r\n 2\r\nx: 3\r\n\r\nrest"),
	    &r, &used);
	assert_int_equal(k, 1);
	assert_true(http_header_has(&r, "content-type", "text/event-stream"));
	assert_false(http_header_has(&r, "content-type", "text/event"));
	assert_true(str_eq(http_header(&r, "x"), "1  2"));
	assert_null(http_header(&r, "y").p);
	assert_null(http_header(&r, "content-typ").p);
	http_resp_clear(&r);
	str_clear(&r.head);
}

static void
test_framing(void **state)
{
	static const struct {
		const char *method, *status, *headers;
		int got;
		enum http_framing framing;
		unsigned left;
	} cases[] = {
		{ "POST", "200", "Content-Length: 12\r\n", 0, HTTP_LENGTH, 12 },
		{ "POST", "200", "Content-Length: 0\r\n", 0, HTTP_LENGTH, 0 },
		{ "POST", "200", "", 0, HTTP_CLOSE, 0 },
		{ "POST", "204", "", 0, HTTP_NONE, 0 },
		{ "POST", "304", "Content-Length: 9\r\n", 0, HTTP_NONE, 9 },
		{ "HEAD", "200", "Content-Length: 9\r\n", 0, HTTP_NONE, 9 },
		{ "POST", "200", "Transfer-Encoding: Chunked\r\n", 0,
		    HTTP_CHUNKED, 0 },
		{ "POST", "200", "Transfer-Encoding: chunked\r\n"
		    "Content-Length: 3\r\n", 0, HTTP_CHUNKED, 3 },
		{ "POST", "200", "Content-Length: 5\r\ncontent-length: 5\r\n",
		    0, HTTP_LENGTH, 5 },
		{ "POST", "200", "Content-Length: 5, 5\r\n", 0, HTTP_LENGTH,
		    5 },
		{ "POST", "200", "Content-Length: 5\r\nContent-Length: 6\r\n",
		    -1, 0, 0 },
		{ "POST", "200", "Content-Length: 5, 6\r\n", -1, 0, 0 },
		{ "POST", "200", "Content-Length: -1\r\n", -1, 0, 0 },
		{ "POST", "200", "Content-Length: +1\r\n", -1, 0, 0 },
		{ "POST", "200", "Content-Length: 1x\r\n", -1, 0, 0 },
		{ "POST", "200", "Content-Length: \r\n", -1, 0, 0 },
		{ "POST", "200", "Content-Length: 99999999999999999999\r\n",
		    -1, 0, 0 },
		{ "POST", "200", "Transfer-Encoding: gzip, chunked\r\n", -1,
		    0, 0 },
		{ "POST", "200", "Transfer-Encoding: identity\r\n", -1, 0, 0 },
	};
	struct http_resp r = { 0 };
	enum http_framing framing;
	uint64_t left;
	size_t i, used;
	struct str s;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		str_init(&s, 0);
		str_addf(&s, "HTTP/1.1 %s OK\r\n%s\r\n", cases[i].status,
		    cases[i].headers);
		assert_int_equal(http_head_parse(str_slice(&s), &r, &used), 1);
		assert_int_equal(http_frame(&r, cases[i].method, &framing,
		    &left), cases[i].got);
		if (!cases[i].got) {
			assert_int_equal(framing, cases[i].framing);
			assert_int_equal(left, cases[i].left);
		}
		str_clear(&s);
	}
	http_resp_clear(&r);
	str_clear(&r.head);
}

/* Decodes in pieces of `step`, `max` out at a time; false: broken. */
static bool
decode(struct slice in, size_t step, size_t max, struct str *out, bool *end)
{
	struct http_chunk c = { 0 };
	char buf[16];
	size_t i, n;
	ssize_t k = 0;

	str_init(out, 0);
	for (i = 0; i < in.n && k >= 0 && c.at != CHUNK_END; i += n) {
		struct slice piece = { in.p + i, in.n - i < step ?
		    in.n - i : step };

		n = piece.n;
		do {
			k = http_chunk_feed(&c, &piece, buf, max);
			if (k > 0)
				str_add(out, buf, (size_t)k);
		} while (k > 0);
		n -= piece.n;
		if (!n && k == 0)
			break;
	}
	*end = c.at == CHUNK_END;
	return k >= 0;
}

static void
test_chunks(void **state)
{
	static const struct {
		struct slice in;
		const char *out;	/* NULL: broken */
		bool end;
	} cases[] = {
		{ S("5\r\nhello\r\n0\r\n\r\n"), "hello", true },
		{ S("5\nhello\n0\n\n"), "hello", true },
		{ S("1\r\nh\r\n004\r\nello\r\n000\r\n\r\nrest"), "hello",
		    true },
		{ S("5;a=b;c=\"d\"\r\nhello\r\n0;x\r\nA: b\r\nC:d\r\n\r\n"),
		    "hello", true },
		{ S("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"),
		    "01234567890123456789", true },
		{ S("5 \r\nhello\r\n0\r\n\r\n"), "hello", true },
		{ S("2\r\n\r\n\r\n0\r\n\r\n"), "\r\n", true },
		{ S("0\r\n\r\n"), "", true },
		{ S("5\r\nhel"), "hel", false },
		{ S("5\r\nhello\r\n0\r\n"), "hello", false },
		{ S("5\r\nhello\r\n"), "hello", false },
		{ S("5\r\nhelloX"), NULL, false },
		{ S("5\r\nhello\rX"), NULL, false },
		{ S("\r\n"), NULL, false }, { S("x\r\n"), NULL, false },
		{ S("-1\r\n"), NULL, false }, { S("+1\r\n"), NULL, false },
		{ S("0x5\r\n"), NULL, false }, { S(" 5\r\n"), NULL, false },
		{ S(";\r\n"), NULL, false }, { S("5\0\r\n"), NULL, false },
		{ S("10000000000000000\r\n"), NULL, false },
		{ S("0000000000000001\r\n"), NULL, false },
		{ S("5\r\nhello\r\n\r\n"), NULL, false },
		{ S("0\r\n\rX"), NULL, false },
	};
	size_t i, step;
	struct str out;
	bool ok, end;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		for (step = 1; step <= cases[i].in.n; step++) {
			ok = decode(cases[i].in, step, 1 + step % 16, &out,
			    &end);
			assert_int_equal(ok, cases[i].out != NULL);
			if (ok) {
				assert_string_equal(out.p, cases[i].out);
				assert_int_equal(end, cases[i].end);
			}
			str_clear(&out);
		}
	}
}

static void
test_endless_framing(void **state)
{
	struct http_chunk c = { 0 };
	struct str s;
	struct slice in;
	char buf[8];
	size_t i;

	(void)state;
	str_init(&s, 0);
	str_adds(&s, "0\r\n");
	for (i = 0; i < LIM_HEAD / 4; i++)
		str_adds(&s, "A: b\r\n");
	in = str_slice(&s);
	assert_int_equal(http_chunk_feed(&c, &in, buf, 8), -1);
	str_clear(&s);
}

/* What a test server does with its n-th connection. */
struct serving {
	const char *say[3];	/* for each request; NULL: nothing more */
	bool unread;		/* does not wait for the request */
	bool hang;		/* then stays open instead of closing */
};

static void
serve_one(int c, const struct serving *s)
{
	struct str in;
	char buf[4096];
	ssize_t n = 1;
	size_t i;

	for (i = 0; i < 3 && s->say[i]; i++) {
		str_init(&in, 0);
		/* the tests' requests end with "end" */
		while (!s->unread && n > 0 && !str_ends(in.p, "end")) {
			n = read(c, buf, sizeof(buf));
			if (n > 0)
				str_add(&in, buf, (size_t)n);
		}
		if (!strcmp(s->say[i], "echo"))
			dprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu"
			    "\r\n\r\n%s", in.len, in.p);
		else if (write(c, s->say[i], strlen(s->say[i])) < 0)
			_exit(1);
		str_clear(&in);
	}
	if (s->hang)
		while (read(c, buf, sizeof(buf)) > 0)
			continue;
	close(c);
}

/* Serves so many connections in a process of its own. */
static pid_t
serve(const struct serving *s, size_t n, int *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t i;
	pid_t pid;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 10), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	pid = fork();
	if (!pid) {
		for (i = 0; i < n; i++)
			serve_one(accept(fd, NULL, NULL), &s[i]);
		_exit(0);
	}
	close(fd);
	return pid;
}

/* The server has served all connections that were expected of it. */
static void
served(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

struct answer {
	int r;			/* of http_send() */
	ssize_t end;		/* of the last http_body() */
	int status;
	struct str body;
	struct err e;
};

static struct slice ending = { "end", 3 };

static struct answer
ask(struct http *h, const char *url, const struct slice *body, size_t n,
    const char *const *headers)
{
	struct http_req q = { .method = "POST", .url = url, .body = body,
	    .nbody = n, .headers = headers, .idle_ms = 400, .head_ms = 400 };
	struct http_resp r = { 0 };
	struct answer a = { 0 };
	char buf[7];

	str_init(&a.body, 0);
	a.r = http_send(h, &q, &r, &a.e);
	a.status = r.status;
	while (!a.r && (a.end = http_body(h, buf, sizeof(buf), &a.e)) > 0)
		str_add(&a.body, buf, (size_t)a.end);
	if (!a.r)
		http_resp_clear(&r);
	http_done(h);
	return a;
}

/* One request to a server on that port. */
static struct answer
get(struct http *h, int port)
{
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/p?q", port);
	return ask(h, url, &ending, 1, NULL);
}

#define OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void
assert_hello(struct answer a)
{
	assert_string_equal(a.e.msg, "");
	assert_int_equal(a.r, 0);
	assert_int_equal(a.end, 0);
	assert_string_equal(a.body.p, "hello");
	str_clear(&a.body);
}

static void
test_request_bytes(void **state)
{
	static const struct serving s[] = { { .say = { "echo" } } };
	static const char *const headers[] = { "X-A: b", "content-type: c",
	    NULL };
	struct slice body[4] = { S("one"), S(""), S("two"), S("end") };
	struct http *h = http_new();
	struct answer a;
	char url[64], want[300];
	int port;
	pid_t pid;

	(void)state;
	pid = serve(s, 1, &port);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1/m", port);
	a = ask(h, url, body, 4, headers);
	snprintf(want, sizeof(want), "POST /v1/m HTTP/1.1\r\nX-A: b\r\n"
	    "content-type: c\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9\r\n"
	    "\r\nonetwoend", port);
	assert_string_equal(a.body.p, want);
	str_clear(&a.body);
	http_free(h);
	served(pid);
}

static void
test_headers_are_checked(void **state)
{
	static const char *const bad[] = { "A: b\r\nC: d", "A: b\nC: d",
	    "A b", ": b", "A : b", "Content-Length: 3", "A:\rb",
	    "transfer-encoding: chunked", "Connection: close", "" };
	const char *headers[2] = { NULL, NULL };
	struct http *h = http_new();
	struct answer a;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(bad); i++) {
		headers[0] = bad[i];
		a = ask(h, "http://127.0.0.1:1/", &ending, 1, headers);
		assert_int_equal(a.e.code, ERR_USAGE);
	}
	http_free(h);
}

static void
test_keep_alive(void **state)
{
	static const struct serving s[] = {
		{ .say = { OK5, OK5 } },
		/* the answer's framing does not allow another request */
		{ .say = { "HTTP/1.1 200 OK\r\n\r\nhello" } },
		{ .say = { "HTTP/1.1 200 OK\r\nConnection: x, Close\r\n"
		    "Content-Length: 5\r\n\r\nhello" }, .hang = true },
		{ .say = { "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"
		    "hello" }, .hang = true },
		/* bytes nobody asked for */
		{ .say = { OK5 "HTTP/1.1 200 OK\r\n" }, .hang = true },
		{ .say = { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints"
		    "\r\nA: b\r\n\r\n" OK5 } },
	};
	struct http *h = http_new();
	int port, i;
	pid_t pid;

	(void)state;
	pid = serve(s, LENGTH(s), &port);
	for (i = 0; i < 7; i++)
		assert_hello(get(h, port));
	http_free(h);
	served(pid);
}

/* A kept connection that is dead is replaced, once and only then. */
static void
test_silent_reconnect(void **state)
{
	static const struct serving s[] = {
		{ .say = { OK5, "" } },		/* reads one, then closes */
		{ .say = { OK5, "HTTP/1.1 2" } },	/* half an answer */
		{ .say = { "" } },		/* a new one that is dead */
	};
	struct http *h = http_new();
	struct answer a;
	int port;
	pid_t pid;

	(void)state;
	pid = serve(s, LENGTH(s), &port);
	assert_hello(get(h, port));
	assert_hello(get(h, port));
	a = get(h, port);
	assert_int_equal(a.e.code, ERR_NET);
	a = get(h, port);
	assert_int_equal(a.e.code, ERR_NET);
	assert_non_null(strstr(a.e.msg, "without an answer"));
	http_free(h);
	served(pid);
}

static void
test_broken_answers(void **state)
{
	static const struct {
		const char *say, *words;
		bool hang;
		enum err_code code;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
		    "within an answer", false, ERR_NET },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
		    "hello\r\n", "within an answer", false, ERR_NET },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz",
		    "broken", true, ERR_NET },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
		    "silent", true, ERR_TIMEOUT },
		{ "HTTP/1.1 200 OK\r\n", "silent", true, ERR_TIMEOUT },
		{ "SSH-2.0-x\r\n", "SSH-2.0-x", true, ERR_NET },
		{ "HTTP/1.1 101 Switching\r\n\r\n", "HTTP", true, ERR_NET },
		{ "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
		    "compresses", false, ERR_NET },
		{ "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		    "well-defined", false, ERR_NET },
		{ "HTTP/1.1 307 Moved\r\nLocation: https://else\twhere/\r\n"
		    "\r\n", "'https://else?where/'", false, ERR_API },
	};
	struct serving s = { .say = { NULL } };
	struct http *h;
	struct answer a;
	size_t i;
	int port;
	pid_t pid;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		s.say[0] = cases[i].say;
		s.hang = cases[i].hang;
		pid = serve(&s, 1, &port);
		h = http_new();
		a = get(h, port);
		assert_int_equal(a.e.code, cases[i].code);
		if (!strstr(a.e.msg, cases[i].words))
			fail_msg("case %zu: %s", i, a.e.msg);
		assert_non_null(strstr(a.e.msg, "127.0.0.1"));
		str_clear(&a.body);
		http_free(h);
		served(pid);
	}
}

static void
test_head_without_end(void **state)
{
	struct serving s = { .hang = true };
	struct http *h = http_new();
	struct answer a;
	struct str big;
	int port, i;
	pid_t pid;

	(void)state;
	str_init(&big, 0);
	str_adds(&big, "HTTP/1.1 200 OK\r\n");
	for (i = 0; i < 20000; i++)
		str_adds(&big, "A: b\r\n");
	s.say[0] = big.p;
	pid = serve(&s, 1, &port);
	a = get(h, port);
	assert_int_equal(a.e.code, ERR_NET);
	http_free(h);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	str_clear(&big);
}

/* A server that refuses a large body does so before it has read it. */
static void
test_early_answer(void **state)
{
	static const struct serving s[] = {
		{ .say = { "HTTP/1.1 413 Large\r\nContent-Length: 5\r\n\r\n"
		    "hello" }, .unread = true },
		{ .say = { OK5 } },
	};
	struct slice body = { core_zalloc(1 << 24), 1 << 24 };
	struct http *h = http_new();
	struct answer a;
	char url[64];
	int port;
	pid_t pid;

	(void)state;
	pid = serve(s, 2, &port);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
	a = ask(h, url, &body, 1, NULL);
	assert_int_equal(a.status, 413);
	assert_hello(a);
	/* and that connection is not used again */
	assert_hello(get(h, port));
	http_free(h);
	served(pid);
	free((char *)(uintptr_t)body.p);
}

static void
test_unreachable(void **state)
{
	struct http *h = http_new();
	struct answer a;

	(void)state;
	a = ask(h, "http://localhost:1/", &ending, 1, NULL);
	assert_int_equal(a.e.code, ERR_NET);
	assert_non_null(strstr(a.e.msg, "'localhost:1'"));
	assert_non_null(strstr(a.e.msg, "refused"));
	http_free(h);
}

static void
test_proxies(void **state)
{
	static const struct serving s[] = {
		{ .say = { "echo" } },
		{ .say = { "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n" } },
		{ .say = { "HTTP/1.1 403 No\r\n\r\n" }, .unread = true },
		{ .say = { "HTTP/1.1 503 No\r\n\r\n" }, .unread = true },
		{ .say = { "HTTP/1.1 200 OK\r\n\r\ntoo early" },
		    .unread = true },
		{ .say = { "" }, .unread = true, .hang = true },
	};
	static const enum err_code codes[] = { ERR_DENIED, ERR_NET, ERR_NET,
	    ERR_TIMEOUT };
	struct http_req q = { .method = "POST", .url = "https://api.test/",
	    .idle_ms = 300, .handshake_ms = 300 };
	struct http_resp r = { 0 };
	struct http *h;
	struct answer a;
	struct err e;
	char url[64];
	size_t i;
	int port;
	pid_t pid;

	(void)state;
	pid = serve(s, LENGTH(s), &port);
	snprintf(url, sizeof(url), "http://us:pass-word@127.0.0.1:%d", port);
	setenv("http_proxy", url, 1);
	setenv("https_proxy", url, 1);
	h = http_new();
	a = ask(h, "http://api.test/x", &ending, 1, NULL);
	assert_string_equal(a.body.p, "POST http://api.test/x HTTP/1.1\r\n"
	    "Host: api.test\r\nProxy-Authorization: Basic dXM6cGFzcy13b3Jk"
	    "\r\nContent-Length: 3\r\n\r\nend");
	str_clear(&a.body);
	http_drop(h);
	a = ask(h, "http://api.test/x", &ending, 1, NULL);
	assert_int_equal(a.e.code, ERR_DENIED);
	assert_non_null(strstr(a.e.msg, "407"));
	for (i = 0; i < LENGTH(codes); i++) {
		e = (struct err){ 0 };
		assert_int_equal(http_send(h, &q, &r, &e), -1);
		assert_int_equal(e.code, codes[i]);
		assert_non_null(strstr(e.msg, "the proxy '127.0.0.1:"));
		assert_null(strstr(e.msg, "pass-word"));
	}
	http_free(h);
	str_clear(&r.head);
	served(pid);
	unsetenv("http_proxy");
	unsetenv("https_proxy");
}

/* A forked child goes on with a connection of its own. */
static void
test_after_a_fork(void **state)
{
	static const struct serving s = { .say = { OK5, OK5 }, .hang = true };
	struct http *h = http_new();
	int port, status;
	pid_t pid, child;

	(void)state;
	pid = serve(&s, 1, &port);
	assert_hello(get(h, port));
	child = fork();
	if (!child) {
		struct answer a;

		core_forked();
		a = get(h, port);	/* nobody accepts it any more */
		str_clear(&a.body);
		http_free(h);
		_exit(a.r == -1 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_hello(get(h, port));	/* ours was not disturbed */
	http_free(h);
	served(pid);
}

static void
test_stop_while_waiting(void **state)
{
	static const struct serving s[] = { { .say = { "" }, .hang = true } };
	struct http *h = http_new();
	struct answer a;
	int port;
	pid_t pid;

	(void)state;
	pid = serve(s, 1, &port);
	raise(SIGTERM);
	a = get(h, port);
	assert_int_equal(a.e.code, ERR_ABORT);
	assert_int_equal(sig_forked(NULL), 0);	/* forget the signal */
	http_free(h);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_proxy_addresses),
		cmocka_unit_test(test_no_proxy),
		cmocka_unit_test(test_proxy_environment),
		cmocka_unit_test(test_heads),
		cmocka_unit_test(test_framing),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_endless_framing),
		cmocka_unit_test(test_request_bytes),
		cmocka_unit_test(test_headers_are_checked),
		cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_silent_reconnect),
		cmocka_unit_test(test_broken_answers),
		cmocka_unit_test(test_head_without_end),
		cmocka_unit_test(test_early_answer),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_proxies),
		cmocka_unit_test(test_after_a_fork),
		cmocka_unit_test(test_stop_while_waiting),
	};

	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("no_proxy");
	core_init();
	if (sig_init(NULL) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
