/*
 * example.c - an agent inside another program: loads an agent file, runs it
 * on a prompt, answers its permission questions, prints what happened.
 *
 *	example AGENT.md PROMPT [REPLAY.jsonl]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "subagent.h"

/* New files are fine here, but none that has to do with secrets. */
static int
permission(void *user, const char *tool, const char *input, const char *why)
{
	(void)user;
	(void)why;
	fprintf(stderr, "question: %s %s\n", tool, input);
	return !strcmp(tool, "Write") && !strstr(input, "secret");
}

static void
message(void *user, const char *role, const char *content)
{
	int *count = user;

	(void)content;
	++*count;
	fprintf(stderr, "message %d: %s\n", *count, role);
}

int
main(int argc, char **argv)
{
	struct sa_options o = { .size = sizeof(o) };
	struct sa_result *r = NULL;
	struct sa_agent *agent;
	char *error = NULL, *body;
	const char *warning;
	int count = 0, status = 1;
	size_t i;

	if (argc < 3) {
		fprintf(stderr, "usage: example AGENT.md PROMPT [REPLAY]\n");
		return 2;
	}
	agent = sa_agent_load(argv[1], &error);
	if (!agent)
		goto out;
	printf("agent: %s\n", sa_agent_name(agent));
	for (i = 0; (warning = sa_agent_check(agent, i)) != NULL; i++)
		printf("warning: %s\n", warning);
	o.definition = agent;
	o.permission = permission;
	o.message = message;
	o.user = &count;
	o.max_turns = 10;
	o.no_transcript = 1;
	o.replay = argc > 3 ? argv[3] : NULL;
	body = sa_request(&o, argv[2], &error);
	if (!body)
		goto out;
	printf("request: %zu bytes\n", strlen(body));
	free(body);
	r = sa_run(&o, argv[2], &error);
	if (!r)
		goto out;
	printf("%s: %s\n", r->terminal_reason, r->text);
	printf("turns %d, messages %d, denials %d\n", r->turns, count,
	    r->denials);
	status = r->is_error;
out:
	if (error)
		fprintf(stderr, "example: %s\n", error);
	free(error);
	sa_result_free(r);
	sa_agent_free(agent);
	return status;
}
