/*
 * Globs: a pattern, a line end, a path.  The matcher must agree with a plain
 * one that tries everything, and braces must expand to patterns that hold
 * none of what was between them twice.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)
#define MAX 64			/* the plain one's table is MAX * MAX */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char *pat, *path;
static signed char known[MAX + 1][MAX + 1];

static int plain(const char *p, const char *s);

static int
plain_try(const char *p, const char *s)
{
	const char *next, *at;
	size_t len;

	if (!*p)
		return !*s;
	if (*p == '*' && text_is_deep(pat, p)) {
		if (!p[2])
			return *s != 0;
		for (at = s; at; at = strchr(at, '/'), at = at ? at + 1 : at)
			if (plain(p + 3, at))
				return 1;
		return 0;
	}
	if (*p == '*') {
		at = p + strspn(p, "*");
		for (;; s += len) {
			if (plain(at, s))
				return 1;
			if (!*s || *s == '/')
				return 0;
			text_rune(s, &len);
		}
	}
	return text_glob_one(p, s, &next, &len) && plain(next, s + len);
}

static int
plain(const char *p, const char *s)
{
	signed char *k = &known[p - pat][s - path];

	if (*k < 0)
		*k = (signed char)plain_try(p, s);
	return *k;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char a[MAX + 1], b[MAX + 1];
	const uint8_t *nl = n ? memchr(data, '\n', n) : NULL;
	size_t na = nl ? (size_t)(nl - data) : n, nb = nl ? n - na - 1 : 0;
	struct strv v = { 0 };
	size_t i, len = 0;

	if (na > MAX || nb > MAX)
		return 0;
	memcpy(a, data, na);
	a[na] = 0;
	if (nb)
		memcpy(b, nl + 1, nb);
	b[nb] = 0;
	pat = a;
	path = b;
	memset(known, -1, sizeof(known));
	DEMAND(text_glob(a, b) == plain(a, b));
	if (text_braces(a, 50, &v))
		DEMAND(v.n >= 1 && v.n <= 50 + na);
	for (i = 0; i < v.n; i++)
		len = strlen(v.v[i]) > len ? strlen(v.v[i]) : len;
	DEMAND(len <= na);
	str_list_clear(&v);
	return 0;
}
