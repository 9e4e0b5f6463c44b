/*
 * subagent.h - run agents from another C program.
 *
 * The engine of the `subagent` command, linked in: load an agent definition,
 * run it on a prompt with callbacks for messages and permission questions,
 * read the result, or only build the request that would be sent.
 *
 * General rules
 *   Threads     none of these functions may run beside another one of them in
 *               the same process; one run at a time.
 *   Memory      what a function returns belongs to the caller, who hands it to
 *               the sa_*_free() of its type.  Texts inside a returned struct
 *               live as long as the struct.  Options stay the caller's and
 *               must live until the call returns.  Out of memory ends the
 *               process with exit status 1 and a line on stderr.
 *   Text        UTF-8, terminated by a zero byte.  Sizes are in bytes, times
 *               in milliseconds, money in US dollars.
 *   Errors      NULL is returned and *error (if error is not NULL) is set to
 *               a heap text for people, to be freed with free(); it names the
 *               subject and what to do, and never holds a credential.
 *   Blocking    sa_run() blocks until the run has ended; the others read
 *               files only.  A callback may call sa_stop().
 *   Signals     sa_run() handles SIGCHLD and ignores SIGPIPE while it runs,
 *               and puts back what was there before.  It leaves SIGINT,
 *               SIGTERM and SIGHUP to the program, which may call sa_stop()
 *               from its handlers.
 *   Processes   tools run in child processes in groups of their own; none is
 *               left when sa_run() returns, also not what a command put into
 *               the background (but for one that made a session of its own).
 *   Environment settings files, ANTHROPIC_* and the other variables of the
 *               README count as for the command.  A settings file's `env`
 *               block is put into this process's environment.
 */
#ifndef SUBAGENT_H
#define SUBAGENT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SA_VERSION "0.1.0"

/*
 * What a run is asked for.  Zero all of it ({ 0 }), set `size`, then what is
 * wanted; NULL, 0 mean "as the command does without the option".
 */
struct sa_options {
	size_t size;		/* sizeof(struct sa_options) */
	const char *cwd;	/* start folder; NULL: the current one */
	const char *agent;	/* name of a definition that is found */
	const struct sa_agent *definition; /* or one that was loaded */
	const char *model;	/* alias or id */
	const char *fallback_model; /* comma list */
	const char *effort;	/* low, medium, high, xhigh, max */
	const char *system_prompt;	/* instead of the agent's */
	const char *append_system_prompt;
	const char *permission_mode;	/* default, acceptEdits, plan,
					   dontAsk, bypassPermissions */
	const char *const *allow;	/* permission rules, NULL-ended */
	const char *const *deny;
	const char *const *tools;	/* names that may exist, NULL-ended */
	const char *settings;	/* JSON text or a file's path */
	const char *setting_sources; /* "user,project,local"; "": none */
	const char *record;	/* write the exchanges to this file */
	const char *replay;	/* take the answers from this file */
	int max_turns;		/* requests; 0: no limit */
	double max_budget_usd;	/* 0: no limit */
	long timeout_ms;	/* for the whole run; 0: no limit */
	int bare;		/* no settings, files, instructions */
	int no_transcript;	/* keep nothing on disk */

	void *user;		/* handed to the callbacks */

	/*
	 * A call that no rule decides.  `input` is the tool's input as JSON,
	 * `why` says what is missing.  Returns 1 to allow it this once, 0 to
	 * deny it.  NULL: every question is a denial.
	 */
	int (*permission)(void *user, const char *tool, const char *input,
	    const char *why);

	/*
	 * A message that entered the conversation: role is "user" or
	 * "assistant", content a JSON array of content blocks exactly as they
	 * are sent or came (Messages API).
	 */
	void (*message)(void *user, const char *role, const char *content);
};

/* How a run ended. */
struct sa_result {
	int is_error;		/* 0: the agent finished */
	const char *subtype;	/* "success", "error_max_turns", … */
	const char *terminal_reason; /* "completed", "api_error", … */
	const char *text;	/* the answer, or what failed */
	const char *json;	/* the whole result object of --output-format
				   json */
	const char *session_id;
	int turns;		/* requests that were answered */
	long long input_tokens, output_tokens;
	long long cache_read_tokens, cache_write_tokens;
	double cost_usd;	/* negative: a model without a known price */
	int denials;		/* calls that were not permitted */
};

/* A loaded agent definition. */
struct sa_agent;

/*
 * Reads one agent file (Markdown with frontmatter).  Warnings about single
 * fields do not fail; sa_agent_check() tells them.
 */
struct sa_agent *sa_agent_load(const char *path, char **error);

/* The same from memory; `name` stands for the path in messages. */
struct sa_agent *sa_agent_parse(const char *text, size_t n, const char *name,
    char **error);

const char *sa_agent_name(const struct sa_agent *);
const char *sa_agent_description(const struct sa_agent *);
const char *sa_agent_prompt(const struct sa_agent *);

/* The i-th warning as "line N: code: text", NULL behind the last one. */
const char *sa_agent_check(const struct sa_agent *, size_t i);

void sa_agent_free(struct sa_agent *);

/*
 * Runs an agent on a prompt.  NULL only where the run could not start (an
 * option or file is wrong); whatever happens later is in the result.
 */
struct sa_result *sa_run(const struct sa_options *, const char *prompt,
    char **error);

void sa_result_free(struct sa_result *);

/*
 * The body of the first request as JSON, sent nowhere; a heap text for
 * free().
 */
char *sa_request(const struct sa_options *, const char *prompt,
    char **error);

/*
 * Asks a running sa_run() to end: it stops what runs and returns a result
 * with terminal_reason "aborted_streaming" or "aborted_tools".  May be
 * called from a signal handler or another thread; without a run it has no
 * effect.
 */
void sa_stop(void);

#ifdef __cplusplus
}
#endif

#endif
