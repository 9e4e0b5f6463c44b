/*
 * Command lines of any bytes, under a rule that denies rm.  Besides an end in
 * time: a decision is the same when it is made again; a line with `rm x`
 * behind it is never allowed, whatever is in front; nothing that is denied is
 * allowed in another mode; and what needs no rule writes nothing.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const struct tool bash = { .name = "Bash", .subject =
    SUBJECT_COMMAND, .subject_key = "command" };
static struct conf_rule rules[] = {
	{ .text = (char *)"Bash(rm:*)", .list = CONF_DENY, .anchor = "/p",
	    .origin = "a" },
	{ .text = (char *)"Read(./secret)", .list = CONF_DENY, .anchor = "/p",
	    .origin = "a" },
	{ .text = (char *)"Bash(git log:*)", .list = CONF_ALLOW,
	    .anchor = "/p", .origin = "a" },
};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	core_init();
	setenv("HOME", "/h", 1);
	return 0;
}

static enum perm_decision
decide(const struct perm *p, const char *command, enum perm_mode mode)
{
	char *dir = (char *)"/p";
	struct strv dirs = { .v = &dir, .n = 1 };
	cJSON *in = cJSON_CreateObject();
	struct perm_call call = { .tool = &bash, .input = in, .cwd = "/p",
	    .mode = mode, .dirs = &dirs };
	struct perm_verdict v;
	enum perm_decision d;

	cJSON_AddStringToObject(in, "command", command);
	perm_verdict_init(&v);
	perm_decide(p, &call, &v);
	d = v.decision;
	DEMAND(v.reason.len && text_utf8_is(str_slice(&v.message)));
	DEMAND(d != PERM_DENY || v.rule.len);
	perm_verdict_clear(&v);
	cJSON_Delete(in);
	return d;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const enum perm_mode modes[] = { MODE_DEFAULT,
	    MODE_ACCEPT_EDITS, MODE_PLAN, MODE_BYPASS };
	struct conf conf = { .start_dir = (char *)"/p", .rules = rules,
	    .nrules = LENGTH(rules), .merged = cJSON_CreateObject() };
	struct perm *p = perm_new(&conf, NULL);
	char *text = core_memdup(data, n);
	enum perm_decision first, d;
	struct str line;
	size_t i;

	str_init(&line, 0);
	first = decide(p, text, MODE_DEFAULT);
	DEMAND(first == decide(p, text, MODE_DEFAULT));
	for (i = 0; i < LENGTH(modes); i++) {
		d = decide(p, text, modes[i]);
		DEMAND((d == PERM_DENY) == (first == PERM_DENY));
		DEMAND(first != PERM_ALLOW || d == PERM_ALLOW ||
		    modes[i] == MODE_PLAN);
	}
	if (perm_command_is_read_only(text))
		DEMAND(!strchr(text, '>') || strpbrk(text, "\"'\\#<[$"));
	str_addf(&line, "rm x;%s", text);
	DEMAND(decide(p, line.p, MODE_BYPASS) == PERM_DENY);
	str_reset(&line);
	str_addf(&line, "%s\nrm x", text);
	DEMAND(decide(p, line.p, MODE_BYPASS) == PERM_DENY ||
	    strpbrk(text, "\\<[`") || strstr(text, "for"));
	str_clear(&line);
	perm_free(p);
	cJSON_Delete(conf.merged);
	free(text);
	return 0;
}
