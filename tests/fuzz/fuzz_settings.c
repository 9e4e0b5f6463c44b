/*
 * Settings files of any content.  The first byte chooses the levels and
 * whether the folder is trusted; what follows are files, split at 0x1e (which
 * no JSON holds).  Besides not crashing: a file is refused or each of its
 * deny and ask rules is there, and an untrusted folder allows nothing.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char quiet[] = "-close_fd_mask=2";

/* Warnings are not what is looked at here. */
int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char **v = calloc((size_t)*argc + 2, sizeof(*v));

	memcpy(v, *argv, (size_t)*argc * sizeof(*v));
	v[(*argc)++] = quiet;
	*argv = v;
	core_init();
	return 0;
}

/* How many rules a list of the file has, blank ones left out. */
static size_t
count(struct slice text, const char *list)
{
	cJSON *root = json_parse(text, NULL);
	const cJSON *v, *all = json_get(json_get(root, "permissions"), list);
	size_t n = 0;

	cJSON_ArrayForEach(v, all)
		n += !text_is_blank(str_of(v->valuestring));
	cJSON_Delete(root);
	return n;
}

static size_t
have(const struct conf *c, enum conf_list list, enum conf_level level)
{
	size_t i, n = 0;

	for (i = 0; i < c->nrules; i++)
		n += c->rules[i].list == list && c->rules[i].level == level;
	return n;
}

/* One file at a level; false: refused. */
static bool
take(struct conf *c, enum conf_level level, const char *p, size_t n)
{
	struct conf_file f = { .level = level, .origin = "/p/.claude/x",
	    .anchor = "/p", .text = { p, n } };
	size_t deny = have(c, CONF_DENY, level), ask = have(c, CONF_ASK,
	    level);
	struct err e = { 0 };

	if (conf_take_text(c, &f, &e) < 0) {
		DEMAND(e.code == ERR_USAGE && e.msg[0]);
		return false;
	}
	deny = have(c, CONF_DENY, level) - deny;
	ask = have(c, CONF_ASK, level) - ask;
	DEMAND(deny == count(f.text, "deny"));
	DEMAND(ask == count(f.text, "ask"));
	return true;
}

/* Every value has the type that its readers count on. */
static void
look(const struct conf *c)
{
	const char *mode = conf_text(c, "permissions.defaultMode");
	const cJSON *v;

	cJSON_ArrayForEach(v, conf_get(c, "env"))
		DEMAND(cJSON_IsString(v) && v->string[0]);
	cJSON_ArrayForEach(v, conf_get(c, "claudeMdExcludes"))
		DEMAND(cJSON_IsString(v));
	cJSON_ArrayForEach(v, conf_get(c, "deniedModels"))
		DEMAND(cJSON_IsString(v));
	v = conf_get(c, "fallbackModel");
	DEMAND(!v || cJSON_IsString(v));
	v = conf_get(c, "permissions");
	DEMAND(!v || cJSON_IsObject(v));
	DEMAND(!conf_get(c, "permissions.allow"));
	DEMAND(!!conf_get(c, "model") == !!conf_origin(c, "model"));
	if (mode && c->from[conf_row("permissions.defaultMode")].level ==
	    CONF_PROJECT_LEVEL)
		DEMAND(strcmp(mode, "bypassPermissions"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const enum conf_level order[] = { CONF_USER_LEVEL,
	    CONF_PROJECT_LEVEL, CONF_LOCAL_LEVEL, CONF_FLAG_LEVEL,
	    CONF_MANAGED_LEVEL };
	struct opts opts = { 0 };
	struct conf c = { .opts = &opts, .start_dir = "/p", .sources =
	    CONF_ALL };
	const char *p = (const char *)data, *end;
	size_t i, k;

	if (!n)
		return 0;
	c.trust = *data & 1;
	c.bare = *data & 2;
	c.merged = cJSON_CreateObject();
	str_list_adds(&c.dirs, "/p");
	p++;
	n--;
	for (i = (*data >> 2) % LENGTH(order); i < LENGTH(order); i++) {
		end = memchr(p, 0x1e, n);
		k = end ? (size_t)(end - p) : n;
		if (!take(&c, order[i], p, k) || !end)
			break;
		p += k + 1;
		n -= k + 1;
	}
	if (!c.trust)
		DEMAND(!have(&c, CONF_ALLOW, CONF_PROJECT_LEVEL));
	look(&c);
	conf_clear(&c);
	return 0;
}
