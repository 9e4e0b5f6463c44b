/*
 * stage.h - a run that stands in a place (place.h), for calling tools.
 *
 *   struct stage s;
 *   stage_make(&s, "deny rule", NULL);
 *   stage_call(&s, fs_read_run, "{'file_path':'a'}")   ' stands for "
 *   s.out.is_error
 *   stage_remove(&s);
 */
#ifndef STAGE_H
#define STAGE_H

#include "place.h"

struct stage {
	struct place place;
	struct opts opts;
	struct conf conf;
	struct run run;
	struct tool_out out;
};

/* The rules are those of --disallowedTools, up to NULL. */
static inline void __attribute__((sentinel))
stage_make(struct stage *s, ...)
{
	const char *rule;
	va_list ap;

	memset(s, 0, sizeof(*s));
	place_make(&s->place);
	va_start(ap, s);
	while ((rule = va_arg(ap, const char *)) != NULL)
		str_list_adds(&s->opts.disallowed, rule);
	va_end(ap);
	assert_int_equal(sig_init(NULL), 0);
	core_init();
	assert_int_equal(conf_load(&s->conf, &s->opts, NULL), 0);
	s->run.conf = &s->conf;
	s->run.perm = perm_new(&s->conf, NULL);
	assert_non_null(s->run.perm);
	s->run.start_dir = core_strdup(place_path("project"));
	s->run.cwd = core_strdup(s->run.start_dir);
	str_list_adds(&s->run.dirs, s->run.start_dir);
	s->run.deadline = IO_FOREVER;
	core_uuid(s->run.session);
	tool_out_init(&s->out);
}

/* Calls a tool; its text, until the next call. */
static inline const char * __attribute__((format(printf, 3, 4)))
stage_call(struct stage *s, void (*run)(struct run *, const cJSON *,
    struct tool_out *), const char *fmt, ...)
{
	char *text, *p;
	va_list ap;
	cJSON *in;

	va_start(ap, fmt);
	assert_true(vasprintf(&text, fmt, ap) >= 0);
	va_end(ap);
	for (p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	in = cJSON_Parse(text);
	if (!in)
		fail_msg("no JSON: %s", text);
	free(text);
	tool_out_clear(&s->out);
	run(&s->run, in, &s->out);
	cJSON_Delete(in);
	return s->out.text.p;
}

static inline void
stage_remove(struct stage *s)
{
	tool_out_clear(&s->out);
	fs_seen_free(s->run.seen);
	perm_free(s->run.perm);
	free(s->run.start_dir);
	free(s->run.cwd);
	free(s->run.left);
	str_list_clear(&s->run.dirs);
	str_list_clear(&s->opts.disallowed);
	conf_clear(&s->conf);
	place_remove(&s->place);
}

/* Fails unless the text has the piece. */
static inline void
stage_has(const char *text, const char *piece)
{
	if (!strstr(text, piece))
		fail_msg("not there: '%s' in: %s", piece, text);
}

static inline void
stage_lacks(const char *text, const char *piece)
{
	if (strstr(text, piece))
		fail_msg("there: '%s' in: %s", piece, text);
}

#endif
