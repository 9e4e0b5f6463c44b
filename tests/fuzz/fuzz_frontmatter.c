/*
 * Headers of any content.  Besides not crashing: the short way of reading
 * gives what libyaml gives; a guarded key at the start of a line is never
 * lost in a header that is no YAML; what comes out is an object whose members
 * know their lines.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const struct yaml_field fields[] = {
	{ "name", YAML_NEED },
	{ "description", YAML_TEXT | YAML_NEED },
	{ "tools", YAML_GUARD },
	{ "maxTurns", YAML_GUARD },
	{ "model", 0 },
	{ NULL, 0 }
};

static size_t
lines_of(struct slice s)
{
	struct slice line;
	size_t n = 0;

	while (text_line(&s, &line))
		n++;
	return n;
}

/* The short way against libyaml's. */
static void
compare(struct slice text)
{
	struct yaml a = { 0 }, b = { 0 };
	const cJSON *v, *w;
	char *x, *y;

	/* Brackets in plain text are counted before libyaml sees them. */
	if (!yaml_is_deep(text) && yaml_simple(text, 2, &a)) {
		DEMAND(!yaml_strict(text, 2, &b, NULL));
		DEMAND(cJSON_Compare(a.root, b.root, true));
		w = b.root->child;
		cJSON_ArrayForEach(v, a.root) {
			DEMAND(!strcmp(v->string, w->string));
			DEMAND(v->valueint == w->valueint);
			DEMAND(!strcmp(v->valuestring, w->valuestring));
			w = w->next;
		}
		DEMAND(!w && !b.cut.n && a.twice.n == b.twice.n);
		x = cJSON_PrintUnformatted(a.root);
		y = cJSON_PrintUnformatted(b.root);
		DEMAND(x && y && !strcmp(x, y));
		free(x);
		free(y);
	}
	yaml_clear(&a);
	yaml_clear(&b);
}

/* Guarded keys that stand at the start of a line are in the result. */
static void
look(struct slice rest, const struct yaml *y)
{
	struct slice line;

	while (text_line(&rest, &line)) {
		if (line.n > 6 && !memcmp(line.p, "tools: ", 7))
			DEMAND(json_get(y->root, "tools"));
		if (line.n > 9 && !memcmp(line.p, "maxTurns: ", 10))
			DEMAND(json_get(y->root, "maxTurns"));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct slice text = { (const char *)p, n };
	struct yaml y = { 0 };
	struct err e = { 0 };
	const cJSON *v;
	int last = 1 + (int)lines_of(text);

	if (n > YAML_MAX + 100)
		return 0;
	compare(text);
	if (yaml_header(text, 2, fields, &y, &e) < 0) {
		DEMAND(e.code && e.msg[0]);
		DEMAND(y.line >= 2 && y.line <= last + 1);
	} else {
		DEMAND(cJSON_IsObject(y.root));
		cJSON_ArrayForEach(v, y.root)
			DEMAND(v->valueint >= 2 &&
			    yaml_line(&y, v->string) == v->valueint);
		if (y.lenient) {
			DEMAND(y.why[0]);
			DEMAND(y.line >= 2);
			look(text, &y);
		}
	}
	yaml_clear(&y);
	return 0;
}
