/*
 * Definitions of any content: a whole agent file, or (where it begins with a
 * brace) the text of --agents.  Besides not crashing: what loads has a name
 * and a description, a restriction is empty or has entries, and what is
 * printed of it is JSON.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
look(const struct def *d, size_t lines)
{
	size_t i;

	DEMAND(d->name && d->name[0] && d->name[0] != '-');
	DEMAND(!strchr(d->name, ':'));
	DEMAND(d->description && d->description[0]);
	DEMAND(d->prompt);
	DEMAND(text_utf8_is(str_of(d->prompt)));
	DEMAND(!strchr(d->prompt, '\r'));
	DEMAND(d->has_tools || !d->tools.n);
	for (i = 0; i < d->tools.n; i++)
		DEMAND(d->tools.v[i][0] && strcmp(d->tools.v[i], "*"));
	DEMAND(d->max_turns >= 0);
	DEMAND(!d->effort || model_is_effort(d->effort));
	for (i = 0; i < d->nwarnings; i++) {
		DEMAND(d->warnings[i].code && d->warnings[i].message[0]);
		DEMAND(d->warnings[i].line >= 0 &&
		    (size_t)d->warnings[i].line <= lines + 1);
		DEMAND(text_utf8_is(str_of(d->warnings[i].message)));
	}
}

/* Both ways of printing. */
static void
print(struct defs *all)
{
	struct str s;
	cJSON *root;

	def_resolve(all);
	str_init(&s, 0);
	def_print_json(all, &s);
	DEMAND(!json_check(str_slice(&s), NULL));
	root = json_parse(str_slice(&s), NULL);
	DEMAND(cJSON_GetArraySize(root) == (int)all->n);
	cJSON_Delete(root);
	str_reset(&s);
	def_print(all, &s);
	DEMAND(!memchr(s.p, 033, s.len));
	str_clear(&s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct slice text = { (const char *)p, n };
	struct defs all = { 0 };
	struct err e = { 0 };
	struct def *d;
	struct str scratch;
	size_t i, lines = 1;

	for (i = 0; i < n; i++)
		lines += p[i] == '\n' || p[i] == '\r';
	if (n && p[0] == '{') {
		if (def_load_json(&all, text, NULL, 0, &e) < 0) {
			DEMAND(e.code == ERR_USAGE);
			DEMAND(str_starts(e.msg, "Invalid --agents"));
		} else {
			for (i = 0; i < all.n; i++)
				look(&all.list[i], 0);
			print(&all);
		}
		def_clear_all(&all);
		return 0;
	}
	str_init(&scratch, 0);
	d = def_add(&all, "project", 0);
	def_read(text, "a.md", "project", true, &all.arena, &scratch, d);
	if (d->error)
		DEMAND(d->error_message && d->error_line > 0);
	else
		look(d, lines);
	print(&all);
	str_clear(&scratch);
	def_clear_all(&all);
	return 0;
}
