/*
 * Grep: a byte of options, a pattern, a line end, a text.  Searching the
 * whole text with the pattern as it was narrowed must find the lines that
 * the pattern as it was written finds, each line by itself.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)
#define LINES 200

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What one line can tell of its neighbours or of its place is left out. */
static bool
is_comparable(const char *p)
{
	return !strstr(p, "(?") && !strstr(p, "(*") && !strstr(p, "\\A") &&
	    !strstr(p, "\\Z") && !strstr(p, "\\z") && !strstr(p, "\\G") &&
	    !strstr(p, "\\K") && !strstr(p, "\\R") && !strstr(p, "\\X") &&
	    !strstr(p, "\\c") && !strstr(p, "\\Q") && !strstr(p, "\\x") &&
	    !strstr(p, "\\o") && !strstr(p, "++") && !strstr(p, "*+") &&
	    !strstr(p, "?+") && !strstr(p, "}+") && !strstr(p, "\\N") &&
	    !strstr(p, "[[:") && !strstr(p, "[[.") && !strstr(p, "[[=") &&
	    !strstr(p, "\\0") && !strstr(p, "\\1") && !strstr(p, "\\g");
}

/* The lines that match, each by itself. */
static bool
one_by_one(const struct grep *g, const char *pattern, struct slice text,
    bool *hit)
{
	int error, rc;
	size_t at, i;
	struct slice line;
	pcre2_match_data *m = pcre2_match_data_create(1, NULL);
	pcre2_match_context *c = pcre2_match_context_create(NULL);
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern,
	    PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
	    (g->icase ? PCRE2_CASELESS : 0), &error, &at, NULL);
	bool ok = code != NULL;

	pcre2_set_match_limit(c, 20000);
	for (i = 0; ok && text_line(&text, &line); i++) {
		rc = pcre2_match(code, (PCRE2_SPTR)line.p, line.n, 0, 0, m, c);
		ok = rc >= 0 || rc == PCRE2_ERROR_NOMATCH;
		hit[i] = rc >= 0;
	}
	pcre2_code_free(code);
	pcre2_match_data_free(m);
	pcre2_match_context_free(c);
	return ok;
}

static void
compare(struct grep *g, const char *pattern, struct slice text,
    bool interpret)
{
	struct grep_scan s = { .g = g, .name = "f" };
	bool want[LINES] = { 0 }, have[LINES] = { 0 };
	struct slice out, line;
	struct str shown;
	int64_t k;
	size_t i;

	str_init(&shown, 0);
	s.out = &shown;
	s.buf = text.p;
	s.len = text.n;
	s.code = g->code;
	s.jit = g->jit && !interpret;
	grep_window(&s, 0, text.n);
	out = str_slice(&shown);
	while (text_line(&out, &line)) {
		DEMAND(line.n > 2 && !memcmp(line.p, "f:", 2));
		line.p += 2;
		line.n = strcspn(line.p, ":");
		DEMAND(text_int(line, 1, LINES, &k));
		DEMAND(!have[k - 1]);
		have[k - 1] = true;
	}
	if (!s.error && is_comparable(pattern) &&
	    one_by_one(g, pattern, text, want))
		for (i = 0; i < LINES; i++)
			DEMAND(have[i] == want[i]);
	str_clear(&shown);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct grep g = { .mode = GREP_CONTENT, .numbers = true,
	    .want = UINT64_MAX };
	struct slice text = { (const char *)data, n }, line;
	struct tool_out out;
	char *pattern, *copy;
	size_t i, lines = 0;

	if (!n)
		return 0;
	g.icase = *data & 1;
	text.p++;
	text.n--;
	if (!text_line(&text, &line) || memchr(line.p, 0, line.n))
		return 0;
	for (i = 0; i < text.n; i++) {
		lines += text.p[i] == '\n';
		if (text.p[i] & 0x80 || !text.p[i])
			return 0;
	}
	if (lines >= LINES - 1 || line.n > 200)
		return 0;
	pattern = core_memdup(line.p, line.n);
	copy = core_memdup(text.p, text.n);
	text.p = copy;
	str_init(&g.pattern, 0);
	str_init(&g.literal, 0);
	tool_out_init(&out);
	if (grep_compile(&g, pattern, &out)) {
		if (g.context)
			pcre2_set_match_limit(g.context, 20000);
		compare(&g, pattern, text, *data & 2);
	} else {
		DEMAND(out.is_error && out.text.len);
	}
	tool_out_clear(&out);
	grep_clear(&g);
	free(pattern);
	free(copy);
	return 0;
}
