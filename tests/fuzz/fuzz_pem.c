/*
 * [tls] on any bytes: as a bundle of roots, as one certificate (what is
 * found lies inside it), and as what a server sends for its chain.
 */
#include "internals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
inside(struct slice all, struct slice part)
{
	if (part.n && (part.p < all.p || part.p + part.n > all.p + all.n))
		abort();
}

static void
certificate(struct slice der, struct tls_store *s)
{
	struct tls_cert c;
	br_x509_trust_anchor ta[2];
	struct str name;

	if (!tls_cert_parse(der, &c))
		return;
	inside(der, c.issuer);
	inside(der, c.subject);
	inside(der, c.from);
	inside(der, c.until);
	inside(der, c.a);
	inside(der, c.b);
	inside(der, c.san);
	str_init(&name, 0);
	tls_dn_text(c.subject, &name);
	str_clear(&name);
	if (tls_store_add(s, &c) &&
	    !tls_store_find(s, c.subject, ta, 0, 2))
		abort();
}

/* The same bytes as a chain of two certificates. */
static void
chain(const uint8_t *data, size_t size, struct tls_store *s)
{
	static const int codes[] = { BR_ERR_X509_EXPIRED,
	    BR_ERR_X509_BAD_SERVER_NAME, BR_ERR_X509_NOT_TRUSTED };
	static struct tls t;
	const br_x509_class **h = &t.x509.vtable;
	size_t half = size / 2, i;

	tls_x509_init(&t.x509, s, size % 2 ? "localhost" : "127.0.0.1");
	(*h)->start_chain(h, "");
	(*h)->start_cert(h, (uint32_t)size);
	(*h)->append(h, data, half);
	(*h)->append(h, data + half, size - half);
	(*h)->end_cert(h);
	(*h)->start_cert(h, (uint32_t)half);
	(*h)->append(h, data, half);
	(*h)->end_cert(h);
	if (!(*h)->end_chain(h) && !s->n)
		abort();
	for (i = 0; i < LENGTH(codes); i++)
		tls_fault(&t, codes[i], NULL);
	str_clear(&t.x509.chain);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = { (const char *)data, size };
	struct tls_store s = { 0 };
	struct str der;

	tls_store_clear(&s);
	tls_pem(&s, in, "fuzz");
	certificate(in, &s);
	chain(data, size, &s);
	/* Text of a fuzzer is more often base64 than whole PEM. */
	str_init(&der, 0);
	if (tls_base64(in, &der)) {
		certificate(str_slice(&der), &s);
		chain((const uint8_t *)der.p, der.len, &s);
	}
	str_clear(&der);
	tls_store_clear(&s);
	return 0;
}
