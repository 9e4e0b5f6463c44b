/*
 * [tls]: certificates from files, the words of each fault, and connections
 * to a server in a forked process.  The keys below are for these tests alone.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

/* A root, two certificates for localhost (one ended in 2020), another root. */
static const char root_pem[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBlzCCAT6gAwIBAgIUXKfg2hJksemDXDgv1iaQCmKb4jUwCgYIKoZIzj0EAwIw\n"
    "KjENMAsGA1UECgwEVGVzdDEZMBcGA1UEAwwQVW5pdCAndGVzdCcgcm9vdDAeFw0y\n"
    "NjEyMDEwMzIyMjZaFw00ODEwMjYwMzIyMjZaMCoxDTALBgNVBAoMBFRlc3QxGTAX\n"
    "BgNVBAMMEFVuaXQgJ3Rlc3QnIHJvb3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n"
    "AARcpzoIMOQ1yywIr4qPl6gWBgkUdbrKeB9QxfdP0XMF++P5K4NWsDbfyBuVwJ9m\n"
    "wTrtaHCu4MdRNaYgZR3uW/06o0IwQDAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB\n"
    "/wQEAwICBDAdBgNVHQ4EFgQUlMJ1xZtaiFJfiB2Sw/0BWVQm2f0wCgYIKoZIzj0E\n"
    "AwIDRwAwRAIgMfcfoutU61tEmFTg5Ke1/7/pXYYXvir89/IqkfatesICIGBPYDgD\n"
    "IrzqwC7wBQm1UwXDhQ8bL67WBP06bs+nYMA+\n"
    "-----END CERTIFICATE-----\n";
static const char leaf_pem[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIByjCCAXCgAwIBAgIBATAKBggqhkjOPQQDAjAqMQ0wCwYDVQQKDARUZXN0MRkw\n"
    "FwYDVQQDDBBVbml0ICd0ZXN0JyByb290MB4XDTIwMDEwMTAwMDAwMFoXDTQ5MTIz\n"
    "MTAwMDAwMFowFDESMBAGA1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZI\n"
    "zj0DAQcDQgAEHhCLsvmAIHfoyzaZ5iT+0PJ7hGwucKhLfAmvZ6ghWx93aA+xvSdt\n"
    "7ZfF+l6YAjKJHu1VTirpyzFHo5MW6Rf5oKOBnDCBmTAMBgNVHRMBAf8EAjAAMA4G\n"
    "A1UdDwEB/wQEAwIHgDA5BgNVHREEMjAwgglsb2NhbGhvc3SCCyoud2lsZC50ZXN0\n"
    "hwR/AAABhxAAAAAAAAAAAAAAAAAAAAABMB0GA1UdDgQWBBTIRHAc+l0fok1Ftj4Z\n"
    "WzMS+iFHoDAfBgNVHSMEGDAWgBSUwnXFm1qIUl+IHZLD/QFZVCbZ/TAKBggqhkjO\n"
    "PQQDAgNIADBFAiAomqYwUU+2bNb5z6M9zpJ/snbvh7ExmAm6+9vHmWGVvgIhAKqU\n"
    "QTDQqJOUmnSAIjzjwBjZO2BjzWxw0UdCMso/tfmI\n"
    "-----END CERTIFICATE-----\n";
static const char old_pem[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIByjCCAXCgAwIBAgIBAjAKBggqhkjOPQQDAjAqMQ0wCwYDVQQKDARUZXN0MRkw\n"
    "FwYDVQQDDBBVbml0ICd0ZXN0JyByb290MB4XDTIwMDEwMTAwMDAwMFoXDTIwMDIw\n"
    "MTAwMDAwMFowFDESMBAGA1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZI\n"
    "zj0DAQcDQgAEHhCLsvmAIHfoyzaZ5iT+0PJ7hGwucKhLfAmvZ6ghWx93aA+xvSdt\n"
    "7ZfF+l6YAjKJHu1VTirpyzFHo5MW6Rf5oKOBnDCBmTAMBgNVHRMBAf8EAjAAMA4G\n"
    "A1UdDwEB/wQEAwIHgDA5BgNVHREEMjAwgglsb2NhbGhvc3SCCyoud2lsZC50ZXN0\n"
    "hwR/AAABhxAAAAAAAAAAAAAAAAAAAAABMB0GA1UdDgQWBBTIRHAc+l0fok1Ftj4Z\n"
    "WzMS+iFHoDAfBgNVHSMEGDAWgBSUwnXFm1qIUl+IHZLD/QFZVCbZ/TAKBggqhkjO\n"
    "PQQDAgNIADBFAiEA/QvSWEvY20hicbJihZqAuYc2e9FAH4k//tbM5Er9B3QCIA6z\n"
    "f1pUZix+O7idEjlnTArLST2JkWZTJpAIqiNGqmn9\n"
    "-----END CERTIFICATE-----\n";
static const char other_pem[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBYzCCAQqgAwIBAgIUBJANP5nDlBSwli43jJ/D5oQ5pC0wCgYIKoZIzj0EAwIw\n"
    "EDEOMAwGA1UEAwwFT3RoZXIwHhcNMjYxMjAxMDMyMjU0WhcNNDgxMDI2MDMyMjU0\n"
    "WjAQMQ4wDAYDVQQDDAVPdGhlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLhE\n"
    "NNz5EdxFYdEfoCNsfQpgeuwT8CeWMbvmtrxmKE/8hZTxTI5EUnLrFellbWonnd4l\n"
    "ugmT8bwmfBI0QNhfO1SjQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQD\n"
    "AgIEMB0GA1UdDgQWBBQGXzao8A+MrFvhxj3Ww+od/hVGrDAKBggqhkjOPQQDAgNH\n"
    "ADBEAiBKf42JKsFoMLG+gW2yGPZ+qSJrSPXiD063hEdnacHTsAIgMwR7ecJ7DCPE\n"
    "d/KfCTBci4jApCyfyrqA8cUkfdEFC4w=\n"
    "-----END CERTIFICATE-----\n";
static const char leaf_key[] =
    "-----BEGIN EC PRIVATE KEY-----\n"
    "MHcCAQEEIBt+55QG8YIZIEJpNDbWd/vCO7cY31ZV9hksmahtPR00oAoGCCqGSM49\n"
    "AwEHoUQDQgAEHhCLsvmAIHfoyzaZ5iT+0PJ7hGwucKhLfAmvZ6ghWx93aA+xvSdt\n"
    "7ZfF+l6YAjKJHu1VTirpyzFHo5MW6Rf5oA==\n"
    "-----END EC PRIVATE KEY-----\n";

/* The bytes between BEGIN and END. */
static void
der_of(const char *pem, struct str *out)
{
	const char *p = strchr(pem, '\n'), *q = strstr(pem, "-----END");

	str_init(out, 0);
	assert_true(tls_base64((struct slice){ p, (size_t)(q - p) }, out));
}

static void
test_base64(void **state)
{
	struct str out;

	(void)state;
	str_init(&out, 0);
	assert_true(tls_base64(str_of("YQ=="), &out));
	assert_true(tls_base64(str_of(" Y\nm\r\nM= "), &out));
	assert_true(tls_base64(str_of("+/+/"), &out));
	assert_memory_equal(out.p, "abc\xfb\xff\xbf", 6);
	assert_int_equal(out.len, 6);
	assert_false(tls_base64(str_of("a*b"), &out));
	assert_false(tls_base64(str_of("YQ==YQ"), &out));
	str_clear(&out);
}

static void
test_certificate(void **state)
{
	struct tls_cert c;
	struct str der, name;
	size_t i;
	char t[15];

	(void)state;
	der_of(leaf_pem, &der);
	str_init(&name, 0);
	assert_true(tls_cert_parse(str_slice(&der), &c));
	assert_int_equal(c.curve, BR_EC_secp256r1);
	assert_int_equal(c.a.n, 65);
	assert_false(c.ca);
	assert_true(c.san.n > 0);
	tls_when(c.from, t);
	assert_string_equal(t, "20200101000000");
	tls_when(c.until, t);
	assert_string_equal(t, "20491231000000");
	tls_dn_text(c.issuer, &name);
	assert_string_equal(name.p, "Unit ?test? root");
	/* cut or changed anywhere: no crash */
	for (i = 0; i < der.len; i++) {
		struct slice cut = { core_memdup(der.p, i), i };

		assert_false(tls_cert_parse(cut, &c));
		free((char *)(uintptr_t)cut.p);
		der.p[i] ^= 0x5a;
		tls_cert_parse(str_slice(&der), &c);
		der.p[i] ^= 0x5a;
	}
	str_clear(&der);
	str_clear(&name);
	der_of(root_pem, &der);
	assert_true(tls_cert_parse(str_slice(&der), &c));
	assert_true(c.ca);
	str_clear(&der);
}

static void
test_lengths_of_der(void **state)
{
	static const struct {
		const char *p;
		size_t n;
		bool ok;
	} cases[] = {
		{ "\x04\x00", 2, true }, { "\x04\x01x", 3, true },
		{ "\x04\x81\x01x", 4, true }, { "\x04\x82\0\x01x", 5, true },
		{ "\x04\x84\0\0\0\x01x", 7, true },
		{ "\x04", 1, false }, { "\x04\x01", 2, false },
		{ "\x04\x80x", 3, false }, { "\x1f\x01x", 3, false },
		{ "\x04\x85\0\0\0\0\x01x", 8, false },
		{ "\x04\x84\xff\xff\xff\xffx", 7, false },
		{ "\x04\x82\0", 3, false },
	};
	struct slice s, in;
	unsigned tag;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		s = (struct slice){ cases[i].p, cases[i].n };
		assert_int_equal(tls_der(&s, &tag, &in, NULL), cases[i].ok);
	}
}

/* Broken ones are left out, doubles kept once, text around ignored. */
static void
test_bundles(void **state)
{
	struct tls_store s = { 0 };
	struct str text;

	(void)state;
	tls_store_clear(&s);
	str_init(&text, 0);
	str_addf(&text, "# roots\n%s-----BEGIN CERTIFICATE-----\nAAAA\n"
	    "-----END CERTIFICATE-----\nnoise\n-----BEGIN CERTIFICATE-----\n"
	    "*\n-----END CERTIFICATE-----\n%s%s-----BEGIN CERTIFICATE-----\n",
	    root_pem, root_pem, leaf_pem);
	assert_int_equal(tls_pem(&s, str_slice(&text), "x"), 3);
	assert_int_equal(s.n, 2);
	assert_true(s.v[0].ca);
	assert_false(s.v[1].ca);
	tls_store_clear(&s);
	str_clear(&text);
}

/* A name that no root has. */
static void
test_no_such_root(void **state)
{
	struct tls_store s = { .builtin = true };
	br_x509_trust_anchor ta[TLS_ANCHORS];
	struct slice none = { "\x30\x00", 2 };

	(void)state;
	assert_int_equal(tls_store_find(&s, none, ta, 0, TLS_ANCHORS), 0);
	s.builtin = false;
	assert_int_equal(tls_store_find(&s, none, ta, 0, TLS_ANCHORS), 0);
}

static char dir[] = "/tmp/test_tls.XXXXXX";

static const char *
file(const char *name, const char *text)
{
	static char path[4][64];
	static unsigned turn;
	char *p = path[turn++ % 4];
	FILE *f;

	snprintf(p, 64, "%s/%s", dir, name);
	f = fopen(p, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return p;
}

static int
load(struct tls_store *s, const char *cert_file, const char *cert_dir,
    const char *extra, struct err *e)
{
	setenv("SSL_CERT_FILE", cert_file, 1);
	setenv("SSL_CERT_DIR", cert_dir, 1);
	setenv("NODE_EXTRA_CA_CERTS", extra, 1);
	tls_store_clear(s);
	*e = (struct err){ 0 };
	return tls_store_load(s, e);
}

static void
test_variables(void **state)
{
	const char *root = file("root.pem", root_pem);
	const char *bad = file("bad.pem", "no certificate");
	struct tls_store s = { 0 };
	struct err e;
	char both[128];

	(void)state;
	str_init(&s.bytes, 0);
	assert_int_equal(load(&s, "", "", "", &e), 0);
	assert_true(s.builtin && !s.n);
	assert_int_equal(load(&s, root, "", "", &e), 0);
	assert_true(!s.builtin && s.n == 1);
	assert_int_equal(load(&s, "", "", root, &e), 0);
	assert_true(s.builtin && s.n == 1);
	/* a folder: everything in it, or the hash links where there are any */
	snprintf(both, sizeof(both), "%s:%s", dir, dir);
	assert_int_equal(load(&s, "", both, "", &e), 0);
	assert_true(!s.builtin && s.n == 1);
	file("0123abcd.0", leaf_pem);
	assert_int_equal(load(&s, "", dir, "", &e), 0);
	assert_true(s.n == 1 && !s.v[0].ca);
	/* named in the error; only the additional ones may be missing */
	assert_int_equal(load(&s, bad, "", "", &e), -1);
	assert_non_null(strstr(e.msg, bad));
	assert_non_null(strstr(e.msg, "SSL_CERT_FILE"));
	assert_int_equal(load(&s, "", "/dev/null/none", "", &e), -1);
	assert_non_null(strstr(e.msg, "SSL_CERT_DIR"));
	assert_int_equal(load(&s, "", "", "/dev/null/none", &e), 0);
	assert_true(s.builtin && !s.n);
	assert_true(tls_is_hash_name("01234567.10"));
	assert_false(tls_is_hash_name("01234567."));
	assert_false(tls_is_hash_name("0123456g.1"));
	assert_false(tls_is_hash_name("root.pem"));
	tls_store_clear(&s);
}

/* What the server does once the connection stands. */
enum manner { CUT, MUTE, BYE, GARBAGE };

static int
server_read(void *fd, unsigned char *p, size_t n)
{
	ssize_t r = read(*(int *)fd, p, n);

	return r > 0 ? (int)r : -1;
}

static int
server_write(void *fd, const unsigned char *p, size_t n)
{
	/* two bytes at a time: records come in pieces */
	ssize_t r = write(*(int *)fd, p, n < 2 ? n : 2);

	return r > 0 ? (int)r : -1;
}

/* The key's scalar: SEQUENCE { INTEGER, OCTET STRING }. */
static void
server_key(struct str *der, br_ec_private_key *sk)
{
	struct slice s, seq, in;

	der_of(leaf_key, der);
	s = str_slice(der);
	assert_true(tls_der_tag(&s, 0x30, &seq, NULL));
	assert_true(tls_der_tag(&seq, 0x02, &in, NULL));
	assert_true(tls_der_tag(&seq, 0x04, &in, NULL));
	sk->curve = BR_EC_secp256r1;
	sk->x = (unsigned char *)(uintptr_t)in.p;
	sk->xlen = in.n;
}

static struct {
	br_ssl_server_context ssl;
	br_ssl_session_cache_lru lru;
	unsigned char store[4096];
	unsigned char buf[BR_SSL_BUFSIZE_BIDI];
} server;

static void
server_talk(int fd, enum manner how)
{
	br_sslio_context io;
	char buf[4];

	if (how == GARBAGE) {
		if (write(fd, "HTTP/1.1 400 Bad\r\n\r\n", 20) < 0)
			_exit(1);
		return;
	}
	br_sslio_init(&io, &server.ssl.eng, server_read, &fd, server_write,
	    &fd);
	if (br_sslio_read_all(&io, buf, 4) == 0 && how != MUTE) {
		br_sslio_write_all(&io, buf, 4);
		br_sslio_flush(&io);
	}
	if (how == BYE)
		br_sslio_close(&io);
	if (how == MUTE)
		while (read(fd, buf, 1) > 0)
			continue;
}

/* Serves n connections one after another; its pid. */
static pid_t
serve(const char *pem, enum manner how, int n, int *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int c, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct str cert, key;
	br_x509_certificate chain;
	br_ec_private_key sk;
	unsigned char seed[32];
	pid_t pid;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 10), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	pid = fork();
	if (pid) {
		close(fd);
		return pid;
	}
	der_of(pem, &cert);
	server_key(&key, &sk);
	chain.data = (unsigned char *)cert.p;
	chain.data_len = cert.len;
	br_ssl_session_cache_lru_init(&server.lru, server.store,
	    sizeof(server.store));
	br_ssl_server_init_full_ec(&server.ssl, &chain, 1, BR_KEYTYPE_EC,
	    &sk);
	br_ssl_server_set_cache(&server.ssl, &server.lru.vtable);
	br_ssl_engine_set_buffer(&server.ssl.eng, server.buf,
	    sizeof(server.buf), 1);
	core_random(seed, sizeof(seed));
	br_ssl_engine_inject_entropy(&server.ssl.eng, seed, sizeof(seed));
	for (; n > 0; n--) {
		c = accept(fd, NULL, NULL);
		br_ssl_server_reset(&server.ssl);
		server_talk(c, how);
		close(c);
	}
	_exit(0);
}

static int
dial(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	io_nonblock(fd);
	return fd;
}

/* Sends four bytes and reads to the end: how many came, or -1. */
static ssize_t
talk(struct tls *t, struct err *e)
{
	char buf[3];
	ssize_t r, n = 0;

	assert_int_equal(tls_send(t, "ping", 4, e), 4);
	while ((r = tls_flush(t, e)) == 0)
		assert_int_equal(io_wait1(t->fd, tls_events(t), io_in(5000),
		    e), 1);
	assert_int_equal(r, 1);
	for (;;) {
		r = tls_recv(t, buf, sizeof(buf), e);
		if (r == TLS_AGAIN) {
			if (io_wait1(t->fd, tls_events(t), io_in(5000), e) < 1)
				return -1;
			continue;
		}
		if (r <= 0)
			return r < 0 ? -1 : n;
		n += r;
	}
}

static struct tls tls;		/* as large as it is: not on the stack */
static struct tls_store store;
static struct tls_session session;

/* Opens a connection for that host name. */
static int
open_as(const char *host, int port, int *fd, struct err *e)
{
	*fd = dial(port);
	*e = (struct err){ 0 };
	return tls_open(&tls, &store, &session, *fd, host, port, io_in(5000),
	    e);
}

static void
ended(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
trust(const char *pem)
{
	struct err e;

	assert_int_equal(load(&store, pem ? file("t.pem", pem) : "", "", "",
	    &e), 0);
	session.peer[0] = 0;
}

static void
test_conversation(void **state)
{
	static const char *const hosts[] = { "localhost", "a.wild.test",
	    "127.0.0.1", "::1", "LOCALHOST" };
	struct err e;
	size_t i;
	int port, fd;
	pid_t pid;

	(void)state;
	trust(root_pem);
	pid = serve(leaf_pem, BYE, LENGTH(hosts), &port);
	for (i = 0; i < LENGTH(hosts); i++) {
		assert_int_equal(open_as(hosts[i], port, &fd, &e), 0);
		assert_int_equal(talk(&tls, &e), 4);
		assert_int_equal(tls_recv(&tls, &fd, 0, &e), 0);
		tls_close(&tls);
		close(fd);
	}
	ended(pid);
	/* a certificate that is itself what is trusted */
	trust(leaf_pem);
	pid = serve(leaf_pem, BYE, 1, &port);
	assert_int_equal(open_as("localhost", port, &fd, &e), 0);
	assert_int_equal(talk(&tls, &e), 4);
	tls_close(&tls);
	close(fd);
	ended(pid);
}

static void
test_sessions(void **state)
{
	struct err e;
	int port, fd, i;
	pid_t pid;

	(void)state;
	trust(root_pem);
	pid = serve(leaf_pem, BYE, 3, &port);
	for (i = 0; i < 3; i++) {
		assert_int_equal(open_as("localhost", port, &fd, &e), 0);
		assert_int_equal(tls.x509.n, i ? 0 : 1);	/* resumed */
		assert_int_equal(talk(&tls, &e), 4);
		tls_close(&tls);
		close(fd);
	}
	ended(pid);
}

static void
test_refused(void **state)
{
	static const struct {
		const char *host, *leaf, *root, *words;
	} cases[] = {
		{ "other.test", leaf_pem, root_pem, "another name: "
		    "'localhost', '*.wild.test'" },
		{ "a.b.wild.test", leaf_pem, root_pem, "another name" },
		{ "127.0.0.2", leaf_pem, root_pem, "another name" },
		{ "::2", leaf_pem, root_pem, "another name" },
		{ "localhost", old_pem, root_pem, "'localhost' has expired "
		    "on 2020-02-01" },
		{ "localhost", leaf_pem, NULL, "signed by 'Unit ?test? root'"
		    ", which is not among the trusted roots (the compiled-in" },
		{ "localhost", leaf_pem, other_pem, "(those of SSL_CERT_FILE" },
	};
	struct err e;
	size_t i;
	int port, fd;
	pid_t pid;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		trust(cases[i].root);
		pid = serve(cases[i].leaf, CUT, 1, &port);
		assert_int_equal(open_as(cases[i].host, port, &fd, &e), -1);
		assert_int_equal(e.code, ERR_TLS);
		if (!strstr(e.msg, cases[i].words))
			fail_msg("%s", e.msg);
		assert_non_null(strstr(e.msg, cases[i].host));
		tls_close(&tls);
		close(fd);
		ended(pid);
	}
}

static void
test_ends(void **state)
{
	struct err e;
	int port, fd;
	pid_t pid;

	(void)state;
	trust(root_pem);
	/* an end that nobody announced is a cut */
	pid = serve(leaf_pem, CUT, 1, &port);
	assert_int_equal(open_as("localhost", port, &fd, &e), 0);
	assert_int_equal(talk(&tls, &e), -1);
	assert_int_equal(e.code, ERR_NET);
	assert_non_null(strstr(e.msg, "cut"));
	tls_close(&tls);
	close(fd);
	ended(pid);
	/* what answers is no TLS */
	pid = serve(leaf_pem, GARBAGE, 1, &port);
	assert_int_equal(open_as("localhost", port, &fd, &e), -1);
	assert_int_equal(e.code, ERR_TLS);
	if (!strstr(e.msg, "https port"))
		fail_msg("%s", e.msg);
	close(fd);
	ended(pid);
	/* silence within the handshake */
	pid = serve(leaf_pem, MUTE, 1, &port);
	fd = dial(port);
	close(dial(port));
	e = (struct err){ 0 };
	kill(pid, SIGSTOP);
	assert_int_equal(tls_open(&tls, &store, &session, fd, "localhost",
	    port, io_in(100), &e), -1);
	assert_int_equal(e.code, ERR_TIMEOUT);
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The connection of a parent is not the child's to use. */
static void
test_other_process(void **state)
{
	struct err e;
	int port, fd, status, null;
	pid_t pid, child;

	(void)state;
	trust(root_pem);
	pid = serve(leaf_pem, BYE, 1, &port);
	assert_int_equal(open_as("localhost", port, &fd, &e), 0);
	child = fork();
	if (!child) {
		null = open("/dev/null", O_WRONLY);
		dup2(null, 2);
		signal(SIGABRT, SIG_DFL);
		core_forked();
		tls_recv(&tls, &status, 1, &e);
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_int_equal(talk(&tls, &e), 4);
	tls_close(&tls);
	close(fd);
	ended(pid);
}

/* Each code has its words and one of the kinds that callers know. */
static void
test_words(void **state)
{
	struct err e;
	int code;

	(void)state;
	trust(root_pem);
	tls_x509_init(&tls.x509, &store, "h");
	for (code = 1; code < 800; code++) {
		e = (struct err){ 0 };
		assert_int_equal(tls_fault(&tls, code, &e), -1);
		assert_true(e.code == ERR_TLS || e.code == ERR_NET);
		assert_null(strstr(e.msg, ": (TLS"));
	}
	str_clear(&tls.x509.chain);
}

static int
end(void **state)
{
	(void)state;
	tls_store_clear(&store);
	static const char *const names[] = { "root.pem", "bad.pem", "t.pem",
	    "0123abcd.0" };
	char path[64];
	size_t i;

	for (i = 0; i < LENGTH(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_certificate),
		cmocka_unit_test(test_lengths_of_der),
		cmocka_unit_test(test_bundles),
		cmocka_unit_test(test_no_such_root),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_conversation),
		cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_other_process),
		cmocka_unit_test(test_words),
	};

	core_init();
	str_init(&store.bytes, 0);
	if (sig_init(NULL) < 0 || !mkdtemp(dir))
		return 1;
	return cmocka_run_group_tests(tests, NULL, end);
}
