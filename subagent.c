/*
 * subagent.c - runs agents; see README.md.  One program, read from top to
 * bottom: sections in order, each may call only those above it.  The number
 * is the section's budget in lines; tests/lint/layers.awk holds it.
 *
 *  [type]    320 structs, enums and limits used by more than one section
 *  [core]    320 allocation, clocks, ids, random bytes, die; injected faults
 *  [arena]   100 memory that dies with a run
 *  [str]     240 growing bytes with a stated maximum; lists of strings
 *  [err]      80 what failed first, with context added on the way up
 *  [log]     180 warnings, debug log, redaction of secrets
 *  [text]    500 UTF-8, lines, globs, gitignore patterns
 *  [json]    600 checks, getters, raw slices, writing
 *  [yaml]   1080 frontmatter to JSON, strictly and then leniently
 *  [sig]     200 flags set by signals, and the pipe that wakes the wait
 *  [io]      220 full reads and writes, and the only wait
 *  [file]    440 reading, replacing, walking, resolving, containing
 *  [proc]    600 child processes: fork, run, cap, time out, kill, reap
 *  [dns]     620 host names to addresses, without musl's gaps
 *  [tls]    1320 TLS 1.2 over a descriptor; trust anchors
 *  [http]   1600 proxy, HTTP/1.1, keep-alive, what may be retried
 *  [sse]     160 server-sent events out of bytes
 *  [conf]   1440 settings, environment and flags, merged, with their origin
 *  [model]   540 aliases, windows, prices, effort: one table
 *  [def]    2020 agent definitions and where they come from
 *  [shell]   840 a command line taken apart
 *  [perm]   1960 may this call run: modes, rules, the words of a command
 *  [memo]    460 instruction files
 *  [msg]     420 the conversation as frozen bytes; marks; pairs
 *  [api]    1560 request out, stream in, retry, fall back, count
 *  [sess]    240 transcripts
 *  [tool]    580 look-up, filter, input checks, result limits
 *  [fs]     1220 Read, Write, Edit
 *  [find]    780 Glob, and the walk that Grep shares
 *  [grep]   1660 Grep
 *  [bash]    580 Bash
 *  [plan]     60 TodoWrite
 *  [out]     360 text and json results; progress on a terminal
 *  [child]   160 work in a forked process, framed answers
 *  [loop]    720 the blocking query loop
 *  [main]   1260 tools, options, sub-commands, exit statuses
 *  [lib]     340 the functions of subagent.h
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <bearssl.h>
#include <cJSON.h>
#include <yaml.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "subagent.h"

/*=== [type] what more than one section needs ================================
 * uses:
 *
 * Limits carry their reason.  A struct that one section owns stands there;
 * here are those that cross sections.
 *==========================================================================*/

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define LIM_DEPTH 200		/* JSON nesting; cJSON recurses, 8 MiB stack */
#define LIM_RESPONSE (64u << 20) /* one model answer; the API's is far below */
#define LIM_REQUEST (32u << 20)	/* the API refuses more (413) */
#define LIM_SETTINGS (2u << 20)	/* a settings file or --settings text */
#define LIM_DEF (1u << 20)	/* an agent file; largest seen 159,682 */
#define LIM_STDIN (10u << 20)	/* piped prompt, as the reference says */
#define LIM_FILE (256u << 20)	/* a file that Edit changes in memory */
#define LIM_RESULT 30000	/* characters of a tool result sent on */
#define LIM_MSG 512		/* an error text */

/* Bytes that somebody else owns. */
struct slice {
	const char *p;
	size_t n;
};

/*
 * Growing bytes.  p is never NULL and always terminated.  Past max nothing
 * is added any more and `full` stays set: check it once at the end.
 */
struct str {
	char *p;
	size_t len;
	size_t cap;
	size_t max;
	bool full;
};

/* A list of owned strings; v[n] is NULL. */
struct strv {
	char **v;
	size_t n;
	size_t cap;
};

enum err_code {
	ERR_NONE,
	ERR_USAGE,	/* the caller's words are wrong: exit 2 */
	ERR_IO,		/* a system call failed */
	ERR_PARSE,	/* bytes from outside do not have the form */
	ERR_LIMIT,	/* larger than a stated limit */
	ERR_NOTFOUND,
	ERR_NET,	/* connection; worth another try */
	ERR_TLS,	/* certificate or handshake; not worth another try */
	ERR_TIMEOUT,
	ERR_ABORT,	/* a signal or the host ended it */
	ERR_API,	/* the API answered with an error */
	ERR_DENIED,	/* permission */
	ERR_REPLAY	/* the conversation left the recording */
};

/* What failed; see [err]. */
struct err {
	enum err_code code;
	char msg[LIM_MSG];
};

/* A file compiled in; the table ends with a NULL name. */
struct embed {
	const char *name;
	const char *text;
	unsigned len;
};

/* Tokens and requests, as the API counts them. */
struct usage {
	int64_t input;
	int64_t output;
	int64_t cache_read;
	int64_t cache_write;	/* all, both lifetimes */
	int64_t cache_write_5m;
	int64_t cache_write_1h;
	int64_t thinking;
	int64_t web_search;
	int64_t web_fetch;
};

enum perm_mode {
	MODE_DEFAULT,
	MODE_ACCEPT_EDITS,
	MODE_PLAN,
	MODE_DONT_ASK,
	MODE_BYPASS,
	MODE_COUNT
};

/* What a permission rule's text in parentheses is compared with. */
enum tool_subject {
	SUBJECT_NONE,	/* the bare name only */
	SUBJECT_COMMAND, /* a shell command */
	SUBJECT_READ,	/* a path that is read */
	SUBJECT_EDIT,	/* a path that is written */
	SUBJECT_URL,	/* a URL's host */
	SUBJECT_AGENT	/* an agent type */
};

enum tool_flag {
	TOOL_READ_ONLY = 1,	/* may run beside others of its kind */
	TOOL_ASYNC_OK = 2,	/* a background agent may have it */
	TOOL_NO_CHILD = 4,	/* no child agent may have it */
	TOOL_NEEDS_USER = 8,	/* somebody must answer */
	TOOL_NAMED = 16,	/* only when a list names it */
	TOOL_FREE = 32,		/* never asks (a to-do list) */
	TOOL_BARE = 64		/* offered with --bare, too */
};

/*
 * What the command line (or an embedding program) asks for; NULL, 0 and
 * false mean "not given".  Lists are rule strings already split.
 */
struct opts {
	const char *prompt;
	bool print;			/* -p */
	const char *agent;
	const char *agents;		/* JSON text or a file's path */
	const char *model;
	const char *fallback_model;	/* comma list */
	const char *effort;
	const char *output_format;	/* text, json */
	bool verbose;
	int max_turns;			/* 0: no limit */
	double max_budget;		/* USD; 0: no limit */
	struct strv allowed;		/* --allowedTools */
	struct strv disallowed;		/* --disallowedTools */
	struct strv tools;		/* --tools */
	bool tools_given;		/* even if empty: none */
	const char *permission_mode;
	bool skip_permissions;
	const char *system_prompt;
	const char *system_prompt_file;
	const char *append_system_prompt;
	const char *append_system_prompt_file;
	const char *settings;		/* JSON text or a file's path */
	const char *setting_sources;	/* comma list; "" is none */
	struct strv add_dirs;
	bool bare;
	bool debug;
	const char *debug_file;
	const char *record;
	const char *replay;
	int64_t timeout_ms;		/* 0: none */
	const char *input;		/* file or "-" that is added to it */
	bool no_session;		/* keep no transcript */
	bool version, help, licenses;
	bool json;			/* --json of a sub-command */
	bool background;		/* tools --background */
};

struct run;

/* What a tool gives back. */
struct tool_out {
	struct str text;	/* for the model; "" is replaced by a note */
	struct str blocks;	/* or: raw JSON content blocks, comma-joined */
	bool is_error;
};

/*
 * A tool.  `run` fills `out` and never fails otherwise: what went wrong is
 * the model's to read.  `subject_key` names the input member that rules match.
 */
struct tool {
	const char *name;
	const char *desc;
	const char *schema;	/* JSON text of input_schema */
	const char *extra;	/* names of members taken beside those */
	unsigned flags;
	enum tool_subject subject;
	const char *subject_key;
	void (*run)(struct run *r, const cJSON *in, struct tool_out *out);
	bool (*usable)(struct run *r);	/* NULL: always offered */
	const char *needs;		/* what usable() looks for */
};

/* One denied call, for the result's permission_denials. */
struct denial {
	char *tool;
	char *id;
	char *input;		/* raw JSON */
	char *reason;
};

/* Costs per model, for modelUsage. */
struct model_use {
	char *model;
	struct usage usage;
	double cost;		/* USD; meaningless where !priced */
	bool priced;
};

/*
 * What one agent's run owns.  Everything that changes during a run is here;
 * globals are the core state and the signal flags alone.
 */
struct run {
	const struct conf *conf;	/* merged settings, borrowed */
	const struct def *def;		/* NULL: the default agent */
	const char *agent;		/* its name, or NULL */
	char session[37];		/* UUID */
	char *start_dir;		/* real path of the start folder */
	char *cwd;			/* where Bash stands; starts there */
	bool cwd_lost;			/* its folder went: the next command
					   tells */
	char *git_root;			/* NULL outside a repository */
	struct strv dirs;		/* working directories, real paths */

	char *model;			/* full id that is sent */
	const char *fallback;		/* comma list, or NULL */
	enum perm_mode mode;
	struct perm *perm;		/* rules, see [perm] */
	const struct tool **tools;	/* the filtered pool, NULL at the end */
	size_t ntools;

	struct str tools_json;		/* frozen: the request's "tools" */
	struct str system_json;		/* frozen: the request's "system" */
	const char *effort;		/* level that is sent, or NULL */
	int64_t max_tokens;
	int64_t deadline;		/* of the run, core_now() clock */
	const char *prompt;		/* the user's, for recordings */

	struct conv *conv;		/* the conversation, see [msg] */
	struct api *api;		/* connection and recorder, see [api] */
	struct sess *sess;		/* transcript, NULL: not kept */
	char *reminder;			/* repeated in each user message */
	struct fs_seen *seen;		/* files read, see [fs] */
	struct out *out;		/* progress, may be NULL */
	pid_t *left;			/* process groups that commands left */
	size_t nleft, cap_left;
	cJSON *todos;			/* the to-do list, NULL: empty */

	struct usage usage;		/* of the main loop */
	struct model_use *uses;		/* per model */
	size_t nuses;
	struct denial *denials;
	size_t ndenials;
	double cost;
	bool cost_known;
	int turns;			/* API round trips */
	int user_messages;		/* the result's num_turns is 1 + this */
	int64_t api_ms;
	int64_t started_ms;		/* core_now() clock, as all here */
	int64_t requested_ms;		/* first request; 0: none yet */
	int64_t answered_ms;		/* its message_start */
	int64_t streamed_ms;		/* its first delta */

	const struct run_ops *ops;	/* how a question reaches a person */
	void *ops_arg;
};

/* What the loop tells about a message; all borrowed. */
struct notice {
	bool assistant;
	bool synthetic;		/* made by the loop, not by the user */
	struct slice blocks;	/* raw, comma-joined */
	const char *id;		/* of an answer, "" else */
	const char *model;
	const char *stop_reason;
	const struct usage *usage;
};

/* Set once by [main] or [lib]; NULL members: nobody is there. */
struct run_ops {
	/* 1 allow, 0 deny, -1 nobody can answer. */
	int (*ask)(struct run *r, const struct tool *t, const cJSON *in,
	    const char *why);
	/* The request failed and is sent again after `delay` ms. */
	void (*retry)(struct run *r, int attempt, int max, int64_t delay,
	    const char *why);
	/* A message that entered the conversation; see struct notice. */
	void (*message)(struct run *r, const struct notice *n);
	/* What runs now ("Bash ls -l"); NULL: nothing any more. */
	void (*progress)(struct run *r, const char *what);
};

/* What the build makes out of agents/builtin and the libraries' notices. */
#ifdef SA_BOOTSTRAP
static const struct embed embed_agents[] = { { NULL, NULL, 0 } };
static const char embed_licenses[] = "";
#else
#include "embed.h"
#include "licenses.h"
#endif

/*=== [core] allocation, clocks, ids, random bytes, die ======================
 * uses:
 *
 * Out of memory ends the process: an agent is a process, so nothing else is
 * lost with it, and no caller has a path that no test ever takes.  Test
 * builds inject faults, the time and ids here and nowhere else.
 *==========================================================================*/

enum core_fault {
	FAULT_ALLOC,
	FAULT_WRITE,
	FAULT_READ,
	FAULT_FORK,
	FAULT_COUNT
};

/* The core state: with the signal flags the only global there is. */
static struct {
	pid_t pid;		/* who we are; changes in core_forked() */
#ifdef SA_TESTING
	long fault_at[FAULT_COUNT];	/* fail this call, 1-based; 0: none */
	long fault_seen[FAULT_COUNT];
	uint64_t seed;			/* != 0: predictable random bytes */
#endif
} core;

#ifdef SA_TESTING
/* Reads SA_FAULT=kind:N[,kind:N] and SA_SEED=N. */
static void
core_faults_init(void)
{
	static const char *const kinds[FAULT_COUNT] =
	    { "alloc", "write", "read", "fork" };
	const char *s = getenv("SA_FAULT");
	const char *seed = getenv("SA_SEED");
	size_t i, n;

	core.seed = seed ? strtoull(seed, NULL, 10) : 0;
	for (; s && *s; s += strcspn(s, ","), s += *s == ',') {
		for (i = 0; i < FAULT_COUNT; i++) {
			n = strlen(kinds[i]);
			if (!strncmp(s, kinds[i], n) && s[n] == ':')
				core.fault_at[i] = strtol(s + n + 1, NULL, 10);
		}
	}
}

/* Whether this call is the one that is to fail. */
static bool
core_fault(enum core_fault kind)
{
	return core.fault_at[kind] > 0 &&
	    ++core.fault_seen[kind] == core.fault_at[kind];
}
#else
#define core_faults_init() ((void)0)
#define core_fault(kind) false
#endif

static void
core_init(void)
{
	core.pid = getpid();
	core_faults_init();
}

/* Called first thing in a forked child. */
static void
core_forked(void)
{
	core.pid = getpid();
}

/* Ends the process: one line on stderr, exit status 1. */
static void __attribute__((noreturn, format(printf, 1, 2)))
core_die(const char *fmt, ...)
{
	char buf[LIM_MSG];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	if ((size_t)n > sizeof(buf) - 2)
		n = sizeof(buf) - 2;
	buf[n++] = '\n';
	if (write(2, "subagent: ", 10) < 0 || write(2, buf, (size_t)n) < 0)
		_exit(1);
	_exit(1);
}

static void __attribute__((noreturn))
core_bug(const char *what, int line)
{
	char buf[128];
	int n;

	n = snprintf(buf, sizeof(buf),
	    "subagent: broken invariant: %s (line %d)\n", what, line);
	if (n > 0 && write(2, buf, (size_t)n) < 0)
		abort();
	abort();
}

/* An invariant of ours is broken; outside input never leads here. */
#define BUG(what) core_bug(what, __LINE__)

/* a + b and a * b of sizes, which never wrap. */
static size_t
core_add(size_t a, size_t b)
{
	size_t r;

	if (__builtin_add_overflow(a, b, &r))
		core_die("out of memory");
	return r;
}

static size_t
core_mul(size_t a, size_t b)
{
	size_t r;

	if (__builtin_mul_overflow(a, b, &r))
		core_die("out of memory");
	return r;
}

static void *
core_alloc(size_t n)
{
	void *p = core_fault(FAULT_ALLOC) ? NULL : malloc(n ? n : 1);

	if (!p)
		core_die("out of memory");
	return p;
}

static void *
core_zalloc(size_t n)
{
	void *p = core_fault(FAULT_ALLOC) ? NULL : calloc(1, n ? n : 1);

	if (!p)
		core_die("out of memory");
	return p;
}

static void *
core_realloc(void *old, size_t n)
{
	void *p = core_fault(FAULT_ALLOC) ? NULL : realloc(old, n ? n : 1);

	if (!p)
		core_die("out of memory");
	return p;
}

/* Makes room for one more in an array of *cap elements that holds n. */
static void *
core_grow(void *v, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return v;
	*cap = *cap ? core_mul(*cap, 2) : 8;
	return core_realloc(v, core_mul(*cap, size));
}

/* A copy of n bytes, terminated. */
static char *
core_memdup(const void *p, size_t n)
{
	char *r = core_alloc(core_add(n, 1));

	if (n)
		memcpy(r, p, n);
	r[n] = 0;
	return r;
}

/* A copy, or NULL of NULL. */
static char *
core_strdup(const char *s)
{
	return s ? core_memdup(s, strlen(s)) : NULL;
}

/* Milliseconds that never go back. */
static int64_t
core_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Milliseconds since 1970. */
static int64_t
core_time(void)
{
	struct timespec t;
	const char *s = NULL;

#ifdef SA_TESTING
	s = getenv("SA_TIME");
#endif
	if (s)
		return strtoll(s, NULL, 10);
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* 2026-12-01T01:02:03.004Z */
static void
core_iso(int64_t ms, char out[25])
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&s, &tm);
	snprintf(out, 25, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
	    (unsigned)(tm.tm_year + 1900) % 10000u,
	    (unsigned)(tm.tm_mon + 1) % 100u, (unsigned)tm.tm_mday % 100u,
	    (unsigned)tm.tm_hour % 100u, (unsigned)tm.tm_min % 100u,
	    (unsigned)tm.tm_sec % 100u, (unsigned)(ms % 1000));
}

/* The kernel's own, which needs no /dev; getrandom is in Linux 3.17. */
static void
core_random(void *p, size_t n)
{
	unsigned char *b = p;
	ssize_t r;
	size_t i;

#ifdef SA_TESTING
	if (core.seed) {
		for (i = 0; i < n; i++) {
			core.seed = core.seed * 6364136223846793005u + 1;
			b[i] = (unsigned char)(core.seed >> 56);
		}
		return;
	}
#endif
	for (i = 0; i < n; i += (size_t)r) {
		r = getrandom(b + i, n - i, 0);
		if (r < 0 && errno == EINTR)
			r = 0;
		else if (r <= 0)
			core_die("the kernel gives no random bytes");
	}
}

static void
core_hex(const unsigned char *b, size_t n, char *out)
{
	static const char digit[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < n; i++) {
		*out++ = digit[b[i] >> 4];
		*out++ = digit[b[i] & 15];
	}
	*out = 0;
}

/* A random UUID, version 4. */
static void
core_uuid(char out[37])
{
	static const unsigned char dash[] = { 8, 12, 16, 20 };
	unsigned char b[16];
	char hex[33];
	size_t i, k = 0, d = 0;

	core_random(b, sizeof(b));
	b[6] = (unsigned char)((b[6] & 15) | 0x40);
	b[8] = (unsigned char)((b[8] & 63) | 0x80);
	core_hex(b, sizeof(b), hex);
	for (i = 0; i < 32; i++) {
		if (d < LENGTH(dash) && i == dash[d]) {
			out[k++] = '-';
			d++;
		}
		out[k++] = hex[i];
	}
	out[k] = 0;
}

/* FNV-1a; to tell things apart, not against an attacker. */
static uint64_t
core_hash(const void *p, size_t n, uint64_t h)
{
	const unsigned char *b = p;
	size_t i;

	if (!h)
		h = 0xcbf29ce484222325u;
	for (i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

/*=== [arena] memory that dies with a run ====================================
 * uses: core
 *
 * What is made here is freed by arena_clear() alone, all of it at once.
 *==========================================================================*/

#define ARENA_BLOCK 4096

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t size;
	/* the bytes follow */
};

struct arena {
	struct arena_block *head;
};

/* Zeroed, aligned for anything. */
static void *
arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->head;
	size_t size;
	void *p;

	n = core_add(n, 15) & ~(size_t)15;
	if (!b || b->size - b->used < n) {
		size = n > ARENA_BLOCK ? n : ARENA_BLOCK;
		b = core_alloc(core_add(sizeof(*b) + 16, size));
		b->next = a->head;
		b->used = 0;
		b->size = size;
		a->head = b;
	}
	p = (char *)(((uintptr_t)(b + 1) + 15) & ~(uintptr_t)15) + b->used;
	b->used += n;
	return memset(p, 0, n);
}

static char *
arena_dup(struct arena *a, const void *p, size_t n)
{
	char *r = arena_alloc(a, core_add(n, 1));

	if (n)
		memcpy(r, p, n);
	return r;
}

/* A copy, or NULL of NULL. */
static char *
arena_strdup(struct arena *a, const char *s)
{
	return s ? arena_dup(a, s, strlen(s)) : NULL;
}

static char * __attribute__((format(printf, 2, 3)))
arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		BUG("format");
	p = arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

static void
arena_clear(struct arena *a)
{
	struct arena_block *b, *next;

	for (b = a->head; b; b = next) {
		next = b->next;
		free(b);
	}
	a->head = NULL;
}

/*=== [str] growing bytes with a stated maximum; lists of strings ============
 * uses: core
 *
 * A str is never NULL and always terminated.  What would pass its maximum
 * sets `full` and is left out whole, so a caller checks once, at the end.
 *==========================================================================*/

#define STR_MAX ((size_t)1 << 30)	/* where no tighter limit is known */

static char str_empty[1];

/* max: the most bytes it may hold; 0: STR_MAX. */
static void
str_init(struct str *s, size_t max)
{
	s->p = str_empty;
	s->len = s->cap = 0;
	s->max = max ? max : STR_MAX;
	s->full = false;
}

static void
str_clear(struct str *s)
{
	if (s->cap)
		free(s->p);
	str_init(s, s->max);
}

/* Empties it and keeps the memory. */
static void
str_reset(struct str *s)
{
	s->len = 0;
	s->full = false;
	if (s->cap)
		s->p[0] = 0;
}

/* Room for n more bytes; false (and full) where that passes the maximum. */
static bool
str_reserve(struct str *s, size_t n)
{
	size_t need = core_add(s->len, n), cap;

	if (need > s->max) {
		s->full = true;
		return false;
	}
	if (s->full)
		return false;
	if (need + 1 > s->cap) {
		/* By half: buffers of a few MiB must not double in size. */
		cap = s->cap < 64 ? 64 : s->cap + s->cap / 2;
		if (cap < need + 1)
			cap = need + 1;
		s->p = core_realloc(s->cap ? s->p : NULL, cap);
		s->cap = cap;
	}
	return true;
}

static void
str_add(struct str *s, const void *p, size_t n)
{
	if (!n || !str_reserve(s, n))
		return;
	memcpy(s->p + s->len, p, n);
	s->len += n;
	s->p[s->len] = 0;
}

static void
str_addc(struct str *s, char c)
{
	str_add(s, &c, 1);
}

static void
str_adds(struct str *s, const char *text)
{
	str_add(s, text, strlen(text));
}

static void
str_addl(struct str *s, struct slice sl)
{
	str_add(s, sl.p, sl.n);
}

static void __attribute__((format(printf, 2, 3)))
str_addf(struct str *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n <= 0 || !str_reserve(s, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(s->p + s->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	s->len += (size_t)n;
}

/* Shortens to n bytes. */
static void
str_cut(struct str *s, size_t n)
{
	if (n < s->len) {
		s->len = n;
		s->p[n] = 0;
	}
}

/* Removes n bytes at offset off. */
static void
str_remove(struct str *s, size_t off, size_t n)
{
	if (off > s->len || n > s->len - off)
		BUG("str_remove");
	if (!n)
		return;
	memmove(s->p + off, s->p + off + n, s->len - off - n + 1);
	s->len -= n;
}

/* The bytes as a heap string that the caller frees; s is empty then. */
static char *
str_detach(struct str *s)
{
	char *p = s->cap ? s->p : core_memdup("", 0);

	str_init(s, s->max);
	return p;
}

/* dst takes what src holds; src is empty then. */
static void
str_take(struct str *dst, struct str *src)
{
	str_clear(dst);
	*dst = *src;
	str_init(src, src->max);
}

static struct slice
str_slice(const struct str *s)
{
	return (struct slice){ s->p, s->len };
}

/* A slice of a C string; NULL gives an empty one. */
static struct slice
str_of(const char *text)
{
	return (struct slice){ text ? text : "", text ? strlen(text) : 0 };
}

static bool
str_eq(struct slice a, const char *b)
{
	return a.n == strlen(b) && !memcmp(a.p, b, a.n);
}

static bool
str_starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static bool
str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && !memcmp(s + n - m, suffix, m);
}

/* Adds an owned string to a list. */
static void
str_list_take(struct strv *v, char *owned)
{
	if (v->n + 1 >= v->cap) {
		v->cap = v->cap ? core_mul(v->cap, 2) : 8;
		v->v = core_realloc(v->v, core_mul(v->cap, sizeof(*v->v)));
	}
	v->v[v->n++] = owned;
	v->v[v->n] = NULL;
}

static void
str_list_add(struct strv *v, const char *p, size_t n)
{
	str_list_take(v, core_memdup(p, n));
}

static void
str_list_adds(struct strv *v, const char *s)
{
	str_list_add(v, s, strlen(s));
}

static bool
str_list_has(const struct strv *v, const char *s)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		if (!strcmp(v->v[i], s))
			return true;
	return false;
}

static void
str_list_clear(struct strv *v)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		free(v->v[i]);
	free(v->v);
	*v = (struct strv){ 0 };
}

/*=== [err] what failed first, with context added on the way up ==============
 * uses:
 *
 * Three channels, never mixed: a struct err (this operation failed; nothing
 * prints where it fails), a tool result that the model reads, and BUG().
 * Texts: lower case, the subject in single quotes, what to do about it.
 * Every function takes NULL for "do not care".
 *==========================================================================*/

/* Sets code and text, unless one is set already; returns -1. */
static int __attribute__((format(printf, 3, 4)))
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->code)
		return -1;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

/* ERR_IO with the reason from errno: "cannot <what>: <reason>". */
static int __attribute__((format(printf, 2, 3)))
err_sys(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	char what[LIM_MSG / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, saved == ENOENT ? ERR_NOTFOUND : ERR_IO,
	    "cannot %s: %s", what, strerror(saved));
}

/* Puts "context: " before the text; returns -1. */
static int __attribute__((format(printf, 2, 3)))
err_wrap(struct err *e, const char *fmt, ...)
{
	char context[LIM_MSG / 2], old[LIM_MSG];
	va_list ap;

	if (!e || !e->code)
		return -1;
	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	memcpy(old, e->msg, sizeof(old));
	snprintf(e->msg, sizeof(e->msg), "%s: %.*s", context,
	    (int)(sizeof(e->msg) - strlen(context) - 3), old);
	return -1;
}

static void
err_clear(struct err *e)
{
	if (e) {
		e->code = ERR_NONE;
		e->msg[0] = 0;
	}
}

/*=== [log] warnings, debug log, redaction of secrets ========================
 * uses: core str err
 *
 * stderr is for people.  A secret is registered once and never appears in
 * what goes through here; error texts and transcripts pass log_redact().
 *==========================================================================*/

#define LOG_SECRETS 32
#define LOG_SECRET_MIN 6	/* shorter ones would black out plain words */

static struct {
	int fd;			/* debug log; -1: none */
	bool verbose;
	bool quiet;		/* no warnings (completion, tests) */
	bool line_open;		/* a progress line stands on the terminal */
	char *secret[LOG_SECRETS];
	size_t nsecrets;
} logger = { .fd = -1 };

/* From here on this text is shown as "[secret]". */
static void
log_secret(const char *s)
{
	size_t i;

	if (!s || strlen(s) < LOG_SECRET_MIN)
		return;
	for (i = 0; i < logger.nsecrets; i++)
		if (!strcmp(logger.secret[i], s))
			return;
	if (logger.nsecrets == LOG_SECRETS)
		core_die("more than %d secrets", LOG_SECRETS);
	logger.secret[logger.nsecrets++] = core_strdup(s);
}

/* The first registered secret in text, or NULL; *len is its length. */
static const char *
log_secret_in(struct slice text, size_t *len)
{
	const char *at, *first = NULL;
	size_t i, n;

	for (i = 0; i < logger.nsecrets; i++) {
		n = strlen(logger.secret[i]);
		at = memmem(text.p, text.n, logger.secret[i], n);
		if (at && (!first || at < first)) {
			first = at;
			*len = n;
		}
	}
	return first;
}

/* Copies text to out with every registered secret replaced. */
static void
log_redact(struct slice text, struct str *out)
{
	const char *at;
	size_t n = 0, k;

	while ((at = log_secret_in(text, &n)) != NULL) {
		k = (size_t)(at - text.p);
		str_add(out, text.p, k);
		str_adds(out, "[secret]");
		text.p += k + n;
		text.n -= k + n;
	}
	str_addl(out, text);
}

/* Writes all of it or gives up: a log must not stop the run. */
static void
log_write(int fd, const char *p, size_t n)
{
	ssize_t r;

	while (n > 0) {
		r = write(fd, p, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return;
		p += r;
		n -= (size_t)r;
	}
}

/* One line, redacted, control characters made visible. */
static void
log_line(int fd, const char *prefix, const char *fmt, va_list ap)
{
	struct str raw, line;
	char buf[2048];
	size_t i;

	vsnprintf(buf, sizeof(buf), fmt, ap);
	str_init(&raw, 0);
	str_init(&line, 0);
	str_adds(&raw, prefix);
	str_adds(&raw, buf);
	log_redact(str_slice(&raw), &line);
	for (i = 0; i < line.len; i++)
		if ((unsigned char)line.p[i] < 32 && line.p[i] != '\t')
			line.p[i] = line.p[i] == '\n' ? ' ' : '?';
	str_addc(&line, '\n');
	log_write(fd, line.p, line.len);
	str_clear(&raw);
	str_clear(&line);
}

static void __attribute__((format(printf, 1, 2)))
log_warn(const char *fmt, ...)
{
	va_list ap;

	if (logger.quiet)
		return;
	if (logger.line_open)
		log_write(2, "\r\033[K", 4);
	va_start(ap, fmt);
	log_line(2, "subagent: warning: ", fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 1, 2)))
log_error(const char *fmt, ...)
{
	va_list ap;

	if (logger.line_open)
		log_write(2, "\r\033[K", 4);
	va_start(ap, fmt);
	log_line(2, "subagent: ", fmt, ap);
	va_end(ap);
}

/* To the debug log, where there is one. */
static void __attribute__((format(printf, 2, 3)))
log_debug(const char *section, const char *fmt, ...)
{
	char prefix[64], at[25];
	va_list ap;

	if (logger.fd < 0)
		return;
	core_iso(core_time(), at);
	snprintf(prefix, sizeof(prefix), "%s [%s] ", at, section);
	va_start(ap, fmt);
	log_line(logger.fd, prefix, fmt, ap);
	va_end(ap);
}

/* Opens the debug log; the file is for its owner alone. */
static int
log_open(const char *path, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, "open the debug log '%s'", path);
	if (logger.fd >= 0)
		close(logger.fd);
	logger.fd = fd;
	return 0;
}

/*=== [text] UTF-8, lines, globs, gitignore patterns =========================
 * uses: str
 *
 * Everything works on bytes that may be anything.  The work of a match is
 * bounded by the product of the two lengths, whatever the pattern.
 *==========================================================================*/

/*
 * Length of the well-formed UTF-8 sequence at p, 0 where there is none
 * (overlong forms, surrogates and values over 10FFFF are none; RFC 3629).
 */
static size_t
text_utf8(const char *p, size_t n)
{
	const unsigned char *b = (const unsigned char *)p;
	unsigned char lo = 0x80, hi = 0xbf;
	size_t len, i;

	if (!n)
		return 0;
	if (b[0] < 0x80)
		return 1;
	if (b[0] < 0xc2 || b[0] > 0xf4)
		return 0;
	len = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	if (n < len)
		return 0;
	if (b[0] == 0xe0)
		lo = 0xa0;
	else if (b[0] == 0xed)
		hi = 0x9f;
	else if (b[0] == 0xf0)
		lo = 0x90;
	else if (b[0] == 0xf4)
		hi = 0x8f;
	if (b[1] < lo || b[1] > hi)
		return 0;
	for (i = 2; i < len; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static bool
text_utf8_is(struct slice s)
{
	size_t i, k;
	uint64_t word;

	for (i = 0; i < s.n; i += k) {
		/* Most text is ASCII: eight bytes at a time. */
		for (; s.n - i >= sizeof(word); i += sizeof(word)) {
			memcpy(&word, s.p + i, sizeof(word));
			if (word & 0x8080808080808080u)
				break;
		}
		k = text_utf8(s.p + i, s.n - i);
		if (!k && i < s.n)
			return false;
	}
	return true;
}

/* Copies s with U+FFFD for each byte that belongs to no character. */
static void
text_utf8_fix(struct slice s, struct str *out)
{
	size_t i, k, from = 0;

	for (i = 0; i < s.n; i += k) {
		k = text_utf8(s.p + i, s.n - i);
		if (k)
			continue;
		str_add(out, s.p + from, i - from);
		str_add(out, "\357\277\275", 3);
		k = 1;
		from = i + 1;
	}
	str_add(out, s.p + from, s.n - from);
}

/* Where to cut so that at most n bytes and no half character remain. */
static size_t
text_cut(struct slice s, size_t n)
{
	size_t i;

	if (n >= s.n)
		return s.n;
	for (i = n; i > 0 && n - i < 4; i--)
		if (((unsigned char)s.p[i] & 0xc0) != 0x80)
			return i;
	return n;
}

/* The same from the other end: an offset >= n that starts a character. */
static size_t
text_cut_up(struct slice s, size_t n)
{
	size_t i;

	for (i = n; i < s.n && i - n < 4; i++)
		if (((unsigned char)s.p[i] & 0xc0) != 0x80)
			return i;
	return n < s.n ? n : s.n;
}

/* Appends the character; anything that is none becomes U+FFFD. */
static void
text_put(struct str *out, uint32_t c)
{
	char b[4];

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		str_addc(out, (char)c);
	} else if (c < 0x800) {
		b[0] = (char)(0xc0 | c >> 6);
		b[1] = (char)(0x80 | (c & 63));
		str_add(out, b, 2);
	} else if (c < 0x10000) {
		b[0] = (char)(0xe0 | c >> 12);
		b[1] = (char)(0x80 | (c >> 6 & 63));
		b[2] = (char)(0x80 | (c & 63));
		str_add(out, b, 3);
	} else {
		b[0] = (char)(0xf0 | c >> 18);
		b[1] = (char)(0x80 | (c >> 12 & 63));
		b[2] = (char)(0x80 | (c >> 6 & 63));
		b[3] = (char)(0x80 | (c & 63));
		str_add(out, b, 4);
	}
}

static bool
text_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct slice
text_trim(struct slice s)
{
	while (s.n && text_is_space(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && text_is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* Nothing but blanks: the API refuses such a text block. */
static bool
text_is_blank(struct slice s)
{
	return !text_trim(s).n;
}

/* Takes the next line (without its end) off s; false at the end. */
static bool
text_line(struct slice *s, struct slice *line)
{
	const char *nl;

	if (!s->n)
		return false;
	nl = memchr(s->p, '\n', s->n);
	line->p = s->p;
	line->n = nl ? (size_t)(nl - s->p) : s->n;
	s->p += line->n + (nl ? 1 : 0);
	s->n -= line->n + (nl ? 1 : 0);
	return true;
}

/* Takes the next item up to sep off s, trimmed; false at the end. */
static bool
text_item(struct slice *s, char sep, struct slice *item)
{
	const char *end;
	size_t n;

	if (!s->p)
		return false;
	end = s->n ? memchr(s->p, sep, s->n) : NULL;
	n = end ? (size_t)(end - s->p) : s->n;
	*item = text_trim((struct slice){ s->p, n });
	s->p = end ? end + 1 : NULL;
	s->n = end ? s->n - n - 1 : 0;
	return true;
}

/* yes/no words in any case: 1, 0, or -1 for anything else. */
static int
text_bool(const char *s)
{
	static const char *const yes[] = { "true", "yes", "on", "1" };
	static const char *const no[] = { "false", "no", "off", "0" };
	size_t i;

	for (i = 0; i < LENGTH(yes); i++) {
		if (!strcasecmp(s, yes[i]))
			return 1;
		if (!strcasecmp(s, no[i]))
			return 0;
	}
	return -1;
}

/* A whole decimal number within [lo, hi]. */
static bool
text_int(struct slice s, int64_t lo, int64_t hi, int64_t *out)
{
	char buf[24], *end;
	long long v;

	if (!s.n || s.n >= sizeof(buf) || text_is_space(s.p[0]))
		return false;
	memcpy(buf, s.p, s.n);
	buf[s.n] = 0;
	errno = 0;
	v = strtoll(buf, &end, 10);
	if (errno || *end || v < lo || v > hi)
		return false;
	*out = v;
	return true;
}

/* The character at s (a stray byte stands for itself), *len its length. */
static uint32_t
text_rune(const char *s, size_t *len)
{
	static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	size_t n = text_utf8(s, strnlen(s, 4)), i;
	uint32_t c;

	*len = n ? n : 1;
	if (!n)
		return 0x110000 | (unsigned char)*s;
	c = (unsigned char)*s & mask[n];
	for (i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

/* Matches [...] at p against c; *next is behind it, NULL: no class at all. */
static bool
text_class(const char *p, uint32_t c, const char **next)
{
	bool neg, hit = false;
	uint32_t lo, hi;
	size_t len;

	p++;
	neg = *p == '!' || *p == '^';
	p += neg;
	*next = NULL;
	do {
		if (*p == '\\' && p[1])
			p++;
		if (!*p || *p == '/')
			return false;
		lo = hi = text_rune(p, &len);
		p += len;
		if (*p == '-' && p[1] && p[1] != ']') {
			p++;
			if (*p == '\\' && p[1])
				p++;
			hi = text_rune(p, &len);
			p += len;
		}
		hit |= c >= lo && c <= hi;
	} while (*p != ']');
	*next = p + 1;
	return hit != neg;
}

/*
 * Whether the element at pat (anything but a star) matches the character at
 * s; *next is behind it.  Of s, *len bytes are taken.
 */
static bool
text_glob_one(const char *pat, const char *s, const char **next, size_t *len)
{
	uint32_t c;
	bool hit;

	if (!*pat || !*s)
		return false;
	c = text_rune(s, len);
	*next = pat + 1;
	if (*pat == '?')
		return c != '/';
	if (*pat == '[') {
		hit = text_class(pat, c, next);
		if (*next)
			return hit && c != '/';
		*next = pat + 1;	/* never closed: means itself */
	}
	if (*pat == '\\' && pat[1])
		*next = ++pat + 1;
	*len = 1;
	return *pat == *s;
}

/* Whether the star at p is a `**` that fills its segment of pat. */
static bool
text_is_deep(const char *pat, const char *p)
{
	return p[1] == '*' && (!p[2] || p[2] == '/') &&
	    (p == pat || p[-1] == '/');
}

/*
 * Whether the pattern matches the whole path, as gitignore defines it: `*`
 * and `?` stay within a segment, a segment `**` stands for any number of
 * them, `[...]` classes, `\` quotes.  No braces.
 *
 * A mismatch goes back to the last star of the segment, then to the last
 * `**`; earlier ones need no second try, since what lies between has a fixed
 * number of characters or segments.  So no pattern can run away.
 */
static bool
text_glob(const char *pat, const char *path)
{
	const char *p = pat, *s = path, *next;
	const char *star = NULL, *star_s = NULL, *deep = NULL, *deep_s = NULL;
	size_t len;

	for (;;) {
		if (*p == '*' && text_is_deep(pat, p)) {
			if (!p[2])
				return *s != 0;
			p += 3;
			deep = p;
			deep_s = s;
			star = NULL;
		} else if (*p == '*') {
			p += strspn(p, "*");
			star = p;
			star_s = s;
		} else if (!*p && !*s) {
			return true;
		} else if (text_glob_one(p, s, &next, &len)) {
			p = next;
			s += len;
		} else if (star && *star_s && *star_s != '/') {
			text_rune(star_s, &len);
			star_s += len;
			s = star_s;
			p = star;
		} else if (deep && (deep_s = strchr(deep_s, '/'))) {
			s = ++deep_s;
			p = deep;
			star = NULL;
		} else {
			return false;
		}
	}
}

/* Offset of the brace that closes the one at s[open]; 0: none. */
static size_t
text_brace_end(const char *s, size_t open)
{
	size_t i;
	int depth = 0;

	for (i = open; s[i]; i++) {
		if (s[i] == '\\' && s[i + 1])
			i++;
		else if (s[i] == '{')
			depth++;
		else if (s[i] == '}' && --depth == 0)
			return i;
	}
	return 0;
}

/* Offset of the first brace that opens and is not quoted, or of the end. */
static size_t
text_brace(const char *s)
{
	size_t i;

	for (i = 0; s[i] && s[i] != '{'; i++)
		if (s[i] == '\\' && s[i + 1])
			i++;
	return i;
}

/* Adds prefix + each branch of s[open..close] + the rest to out. */
static void
text_branches(const char *s, size_t open, size_t close, struct strv *out)
{
	struct str one;
	size_t i, from = open + 1;
	int depth = 0;

	for (i = from; i <= close; i++) {
		if (s[i] == '\\' && i + 1 < close) {
			i++;
			continue;
		}
		if (s[i] == '{')
			depth++;
		if (i == close || (s[i] == ',' && !depth)) {
			str_init(&one, 0);
			str_add(&one, s, open);
			str_add(&one, s + from, i - from);
			str_adds(&one, s + close + 1);
			str_list_take(out, str_detach(&one));
			from = i + 1;
		}
		if (s[i] == '}')
			depth--;
	}
}

/*
 * Adds pat to out with each {a,b} replaced by its branches.  false: that
 * would be more than max patterns, and braces are left.
 */
static bool
text_braces(const char *pat, size_t max, struct strv *out)
{
	struct strv todo = { 0 };
	size_t i, open, close;
	bool all = true;
	char *s;

	str_list_adds(&todo, pat);
	for (i = 0; i < todo.n; i++) {
		s = todo.v[i];
		open = text_brace(s);
		close = s[open] ? text_brace_end(s, open) : 0;
		if (close && todo.n < max) {
			text_branches(s, open, close, &todo);
		} else {
			str_list_adds(out, s);
			all &= !close;
		}
	}
	str_list_clear(&todo);
	return all;
}

/*
 * One gitignore pattern (without `!`) against a path relative to the
 * pattern's folder.  Without a slash but at its end it matches at any
 * depth; with one it is anchored; a slash at the end wants a folder.  A
 * pattern that matches a folder matches all below it.
 */
static bool
text_gitignore(const char *pat, const char *path, bool is_dir)
{
	char buf[PATH_MAX], part[PATH_MAX];
	size_t n = strlen(pat), i, start = 0, len = strlen(path);
	bool dir_only, anchored, last;

	if (!n || n >= sizeof(buf) || len >= sizeof(part))
		return false;
	memcpy(buf, pat, n + 1);
	dir_only = buf[n - 1] == '/' && (n < 2 || buf[n - 2] != '\\');
	if (dir_only)
		buf[--n] = 0;
	if (!n)
		return false;
	anchored = strchr(buf, '/') != NULL;
	pat = buf[0] == '/' ? buf + 1 : buf;
	for (i = 0; i <= len; i++) {
		if (path[i] && path[i] != '/')
			continue;
		last = !path[i];
		memcpy(part, path, i);
		part[i] = 0;
		if (!(last && dir_only && !is_dir) &&
		    text_glob(pat, anchored ? part : part + start))
			return true;
		start = i + 1;
	}
	return false;
}

/*=== [json] checks, getters, raw slices, writing ============================
 * uses: str err text
 *
 * cJSON reads; it never prints what goes back to the model, since its
 * print(parse(x)) is not x (integers over 2^53, escapes, NUL).  What must
 * stay as it is stays a raw slice; json_scan() is the strict check (RFC
 * 8259) that everything from outside passes before cJSON sees it.
 *==========================================================================*/

/* A place in JSON text while it is scanned. */
struct json_scan {
	const char *p;
	const char *end;
	int depth;		/* how many levels are still allowed */
};

static void
json_space(struct json_scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' ||
	    *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

/* p is at the opening quote; goes behind the closing one. */
static bool
json_scan_string(struct json_scan *s)
{
	int i;

	for (s->p++; s->p < s->end; s->p++) {
		if (*s->p == '"') {
			s->p++;
			return true;
		}
		if ((unsigned char)*s->p < 32)
			return false;
		if (*s->p != '\\')
			continue;
		if (++s->p == s->end || !strchr("\"\\/bfnrtu", *s->p) ||
		    !*s->p)
			return false;
		for (i = 0; *s->p == 'u' && i < 4; i++)
			if (s->end - s->p < 5 ||
			    !isxdigit((unsigned char)s->p[i + 1]))
				return false;
		if (*s->p == 'u')
			s->p += 4;
	}
	return false;
}

static bool
json_scan_digits(struct json_scan *s)
{
	const char *from = s->p;

	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from;
}

static bool
json_scan_number(struct json_scan *s)
{
	if (s->p < s->end && *s->p == '-')
		s->p++;
	if (s->p < s->end && *s->p == '0')
		s->p++;
	else if (!json_scan_digits(s))
		return false;
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		if (!json_scan_digits(s))
			return false;
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			s->p++;
		return json_scan_digits(s);
	}
	return true;
}

static bool json_scan_value(struct json_scan *s);	/* recursion */

/* p is at { or [; goes behind its end. */
static bool
json_scan_container(struct json_scan *s)
{
	char close = *s->p == '{' ? '}' : ']';

	if (--s->depth < 0)
		return false;
	s->p++;
	json_space(s);
	if (s->p < s->end && *s->p == close)
		goto closed;
	for (;;) {
		if (close == '}') {
			if (s->p >= s->end || *s->p != '"' ||
			    !json_scan_string(s))
				return false;
			json_space(s);
			if (s->p >= s->end || *s->p++ != ':')
				return false;
		}
		if (!json_scan_value(s))
			return false;
		if (s->p < s->end && *s->p == close)
			goto closed;
		if (s->p >= s->end || *s->p != ',')
			return false;
		s->p++;
		json_space(s);
	}
closed:
	s->p++;
	s->depth++;
	return true;
}

/* One value with the blanks around it; p is behind, or at the fault. */
static bool
json_scan_value(struct json_scan *s)
{
	static const char *const words[] = { "true", "false", "null" };
	size_t i, n;
	bool ok = false;

	json_space(s);
	if (s->p == s->end)
		return false;
	switch (*s->p) {
	case '{':
	case '[':
		ok = json_scan_container(s);
		break;
	case '"':
		ok = json_scan_string(s);
		break;
	case 't':
	case 'f':
	case 'n':
		for (i = 0; i < LENGTH(words) && !ok; i++) {
			n = strlen(words[i]);
			ok = (size_t)(s->end - s->p) >= n &&
			    !memcmp(s->p, words[i], n);
			if (ok)
				s->p += n;
		}
		break;
	default:
		ok = json_scan_number(s);
	}
	if (ok)
		json_space(s);
	return ok;
}

/* "line L, column C" of an offset. */
static int
json_fault(struct slice text, const char *at, const char *what,
    struct err *e)
{
	const char *p;
	size_t line = 1, column = 1;

	for (p = text.p; p < at; p++, column++) {
		if (*p == '\n') {
			line++;
			column = 0;
		}
	}
	return err_set(e, ERR_PARSE, "%s at line %zu, column %zu", what, line,
	    column);
}

/* One whole, strict JSON value, at most LIM_DEPTH deep. */
static int
json_check(struct slice text, struct err *e)
{
	struct json_scan s = { text.p, text.p + text.n, LIM_DEPTH };

	if (json_scan_value(&s) && s.p == s.end)
		return 0;
	if (s.depth < 0)
		return json_fault(text, s.p, "JSON nested too deeply", e);
	if (s.p >= s.end)
		return json_fault(text, s.p, "JSON ends too early", e);
	return json_fault(text, s.p, "not valid JSON", e);
}

/* Value of four hexadecimal digits. */
static uint32_t
json_hex4(const char *p)
{
	uint32_t v = 0;
	int i;

	for (i = 0; i < 4; i++)
		v = v << 4 | (uint32_t)(isdigit((unsigned char)p[i]) ?
		    p[i] - '0' : (p[i] | 32) - 'a' + 10);
	return v;
}

/*
 * Kind of the \u escape at p (which is at the backslash), n bytes left:
 * 6 one unit, 12 a pair, 0 a lone surrogate.
 */
static size_t
json_unit(const char *p, size_t n)
{
	uint32_t v = json_hex4(p + 2);

	if (v < 0xd800 || v > 0xdfff)
		return 6;
	if (v < 0xdc00 && n >= 12 && p[6] == '\\' && p[7] == 'u' &&
	    json_hex4(p + 8) >= 0xdc00 && json_hex4(p + 8) <= 0xdfff)
		return 12;
	return 0;
}

/*
 * Copies checked JSON (or the inside of one of its strings) so that the
 * API takes it: lone surrogates and bytes that are no UTF-8 become U+FFFD,
 * everything else stays as it is.
 */
static void
json_fix(struct slice in, struct str *out)
{
	size_t i, k, from = 0;

	for (i = 0; i < in.n; i += k) {
		k = 1;
		if (in.p[i] == '\\' && i + 1 < in.n) {
			k = 2;
			if (in.p[i + 1] != 'u' || in.n - i < 6)
				continue;
			k = json_unit(in.p + i, in.n - i);
			if (k)
				continue;
			str_add(out, in.p + from, i - from);
			str_adds(out, "\\ufffd");
			k = 6;
			from = i + 6;
		} else if ((unsigned char)in.p[i] >= 0x80 &&
		    !(k = text_utf8(in.p + i, in.n - i))) {
			str_add(out, in.p + from, i - from);
			str_add(out, "\357\277\275", 3);
			k = 1;
			from = i + 1;
		}
	}
	str_add(out, in.p + from, in.n - from);
}

/* Whether a string of this checked text holds the escape \u0000. */
static bool
json_has_nul(struct slice s)
{
	size_t i;

	for (i = 0; i + 1 < s.n; i++) {
		if (s.p[i] != '\\')
			continue;
		if (s.p[i + 1] == 'u' && s.n - i >= 6 &&
		    !memcmp(s.p + i + 2, "0000", 4))
			return true;
		i++;
	}
	return false;
}

/*
 * Decodes the inside of a JSON string (no quotes) to UTF-8.  Lone
 * surrogates become U+FFFD; \u0000 becomes a zero byte.
 */
static void
json_unescape(struct slice in, struct str *out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at, *bs;
	size_t i = 0, n;
	uint32_t c;

	while (i < in.n) {
		bs = memchr(in.p + i, '\\', in.n - i);
		n = bs ? (size_t)(bs - in.p) - i : in.n - i;
		str_add(out, in.p + i, n);
		i += n;
		if (i + 1 >= in.n)
			break;
		if (in.p[i + 1] == 'u' && in.n - i >= 6) {
			n = json_unit(in.p + i, in.n - i);
			c = json_hex4(in.p + i + 2);
			if (n == 12)
				c = 0x10000 + ((c & 0x3ff) << 10) +
				    (json_hex4(in.p + i + 8) & 0x3ff);
			text_put(out, n ? c : 0xfffd);
			i += n ? n : 6;
			continue;
		}
		at = strchr(from, in.p[i + 1]);
		str_addc(out, at && *at ? to[at - from] : in.p[i + 1]);
		i += 2;
	}
}

/* Parses checked text; owned by the caller (cJSON_Delete). */
static cJSON *
json_parse(struct slice text, struct err *e)
{
	struct str fixed;
	cJSON *v;

	if (json_check(text, e) < 0)
		return NULL;
	str_init(&fixed, 0);
	json_fix(text, &fixed);
	v = cJSON_ParseWithLength(fixed.p, fixed.len);
	str_clear(&fixed);
	if (!v)
		err_set(e, ERR_PARSE, "not valid JSON");
	return v;
}

static const cJSON *
json_get(const cJSON *o, const char *key)
{
	return cJSON_IsObject(o) ?
	    cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

/* The member's text, or NULL where it is absent or of another type. */
static const char *
json_text(const cJSON *o, const char *key)
{
	const cJSON *v = json_get(o, key);

	return cJSON_IsString(v) ? v->valuestring : NULL;
}

static double
json_number(const cJSON *o, const char *key, double absent)
{
	const cJSON *v = json_get(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : absent;
}

/* A whole number within what a double holds exactly. */
static int64_t
json_int(const cJSON *o, const char *key, int64_t absent)
{
	double d = json_number(o, key, NAN);

	return d >= -9007199254740992.0 && d <= 9007199254740992.0 ?
	    (int64_t)d : absent;
}

static bool
json_flag(const cJSON *o, const char *key, bool absent)
{
	const cJSON *v = json_get(o, key);

	return cJSON_IsBool(v) ? cJSON_IsTrue(v) : absent;
}

/* Text for a message: what kind of value this is. */
static const char *
json_kind(const cJSON *v)
{
	return !v ? "nothing" : cJSON_IsObject(v) ? "an object" :
	    cJSON_IsArray(v) ? "a list" : cJSON_IsString(v) ? "text" :
	    cJSON_IsNumber(v) ? "a number" : cJSON_IsBool(v) ? "true/false" :
	    "null";
}

/* Text that must be there: "<path>.<key>: text expected, not a list". */
static const char *
json_need(const cJSON *o, const char *key, const char *path, struct err *e)
{
	const char *s = json_text(o, key);

	if (!s)
		err_set(e, ERR_PARSE, "%s.%s: text expected, not %s", path,
		    key, json_kind(json_get(o, key)));
	return s;
}

/* Writes s as a JSON string, quoted; the result is always valid UTF-8. */
static void
json_put(struct str *out, struct slice s)
{
	static const char special[] = "\"\\\b\f\n\r\t";
	static const char letter[] = "\"\\bfnrt";
	size_t i, k, from = 0;
	const char *at;

	str_addc(out, '"');
	for (i = 0; i < s.n; i += k) {
		unsigned char c = (unsigned char)s.p[i];

		k = 1;
		if (c >= 32 && c < 0x80 && c != '"' && c != '\\')
			continue;
		if (c >= 0x80 && (k = text_utf8(s.p + i, s.n - i)) > 0)
			continue;
		k = 1;
		str_add(out, s.p + from, i - from);
		from = i + 1;
		at = c ? strchr(special, c) : NULL;
		if (c >= 0x80) {
			str_add(out, "\357\277\275", 3);
		} else if (at) {
			str_addc(out, '\\');
			str_addc(out, letter[at - special]);
		} else {
			str_addf(out, "\\u%04x", c);
		}
	}
	str_add(out, s.p + from, s.n - from);
	str_addc(out, '"');
}

static void
json_puts(struct str *out, const char *s)
{
	json_put(out, str_of(s));
}

/* `,"key":` or `"key":` where the object has only just begun. */
static void
json_key(struct str *out, const char *key)
{
	if (out->len && out->p[out->len - 1] != '{' &&
	    out->p[out->len - 1] != '[')
		str_addc(out, ',');
	json_puts(out, key);
	str_addc(out, ':');
}

static void
json_put_text(struct str *out, const char *key, const char *s)
{
	json_key(out, key);
	if (s)
		json_puts(out, s);
	else
		str_adds(out, "null");
}

static void
json_put_int(struct str *out, const char *key, int64_t v)
{
	json_key(out, key);
	str_addf(out, "%" PRId64, v);
}

static void
json_put_bool(struct str *out, const char *key, bool v)
{
	json_key(out, key);
	str_adds(out, v ? "true" : "false");
}

/* Dollars and the like: up to ten significant digits, never NaN. */
static void
json_put_real(struct str *out, const char *key, double v)
{
	json_key(out, key);
	if (v == v && v < 1e300 && v > -1e300)
		str_addf(out, "%.10g", v);
	else
		str_adds(out, "null");
}

static void
json_put_raw(struct str *out, const char *key, struct slice raw)
{
	json_key(out, key);
	str_addl(out, raw);
}

/* Walks the members or elements of one checked raw container. */
struct json_iter {
	struct json_scan s;
	bool object;
	struct slice key;	/* inside the quotes, still escaped */
	struct slice value;	/* raw, no blanks around */
};

/* false: the text is no container. */
static bool
json_iter_init(struct json_iter *it, struct slice raw)
{
	it->s = (struct json_scan){ raw.p, raw.p + raw.n, LIM_DEPTH };
	json_space(&it->s);
	if (it->s.p == it->s.end || (*it->s.p != '{' && *it->s.p != '['))
		return false;
	it->object = *it->s.p++ == '{';
	return true;
}

static bool
json_iter_next(struct json_iter *it)
{
	struct json_scan *s = &it->s;
	const char *from;

	json_space(s);
	if (s->p < s->end && *s->p == ',') {
		s->p++;
		json_space(s);
	}
	if (s->p >= s->end || *s->p == '}' || *s->p == ']')
		return false;
	if (it->object) {
		from = s->p + 1;
		if (*s->p != '"' || !json_scan_string(s))
			return false;
		it->key = (struct slice){ from, (size_t)(s->p - from - 1) };
		json_space(s);
		if (s->p >= s->end || *s->p++ != ':')
			return false;
		json_space(s);
	}
	from = s->p;
	if (!json_scan_value(s))
		return false;
	it->value = text_trim((struct slice){ from, (size_t)(s->p - from) });
	return true;
}

/* The raw value of a member (the last one of that name wins). */
static bool
json_raw(struct slice object, const char *key, struct slice *value)
{
	struct json_iter it;
	bool found = false;

	if (!json_iter_init(&it, object) || !it.object)
		return false;
	while (json_iter_next(&it)) {
		if (str_eq(it.key, key)) {
			*value = it.value;
			found = true;
		}
	}
	return found;
}

/* The inside of a member that is a string, still escaped. */
static bool
json_raw_string(struct slice object, const char *key, struct slice *inside)
{
	struct slice v;

	if (!json_raw(object, key, &v) || v.n < 2 || v.p[0] != '"')
		return false;
	*inside = (struct slice){ v.p + 1, v.n - 2 };
	return true;
}

/*=== [yaml] frontmatter to JSON, strictly and then leniently ================
 * uses: core str err text
 *
 * Strict YAML first, by libyaml's events: one document, a map at its root,
 * no anchors, aliases, tags or directives.  What people write by hand often
 * is none (a description with a colon in it), so two lenient re-reads follow:
 * single lines taken as text, then field by field.  They may lose comfort,
 * never a restriction: a field marked YAML_GUARD is read or refused.
 *
 * In the tree, plain null, true, false and numbers have their JSON type and
 * keep their characters in valuestring: `description: 1.10` is a text to
 * those who want one.  Every size, depth and count is limited before libyaml
 * sees it, which is quadratic in the nesting of flow.
 *==========================================================================*/

#define YAML_MAX (64u << 10)	/* a header; largest seen 26,340 */
#define YAML_DEPTH 64		/* seen 6 */
#define YAML_MEMBERS 4096	/* per map: look-up is a walk */
#define YAML_STRAY 64		/* unknown keys that a re-read remembers */

enum yaml_flag {
	YAML_TEXT = 1,		/* free text: what looks like an unknown key
				   in it belongs to it */
	YAML_GUARD = 2,		/* restricts: must not get lost */
	YAML_NEED = 4		/* without it nothing was understood */
};

/* A known key; a table of them ends with a NULL name. */
struct yaml_field {
	const char *name;
	unsigned flags;
};

/* A header that was read. */
struct yaml {
	cJSON *root;		/* an object; valueint of each member is its
				   line in the file, whatever its type */
	struct strv twice;	/* keys given more than once: the last counts */
	struct strv cut;	/* keys whose one plain line lost a ` #...` */
	struct strv loose;	/* keys whose value was taken as text */
	bool lenient;		/* it was no valid YAML */
	int line;		/* where, or where it was refused */
	char why[160];		/* what libyaml said */
};

static void
yaml_clear(struct yaml *y)
{
	cJSON_Delete(y->root);
	str_list_clear(&y->twice);
	str_list_clear(&y->cut);
	str_list_clear(&y->loose);
	*y = (struct yaml){ 0 };
}

/* The line of a key in the file; 0: it is not there. */
static int
yaml_line(const struct yaml *y, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(y->root, key);

	return v ? v->valueint : 0;
}

static cJSON *
yaml_new(cJSON *v)
{
	if (!v)
		core_die("out of memory");
	return v;
}

static void
yaml_set(cJSON *object, const char *key, cJSON *v)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	if (!cJSON_AddItemToObject(object, key, v))
		core_die("out of memory");
}

/* Does not add a key to a list of keys twice. */
static void
yaml_note(struct strv *list, const char *key)
{
	if (!str_list_has(list, key))
		str_list_adds(list, key);
}

/*--- strictly --------------------------------------------------------------*/

/* The tree while it is built. */
struct yaml_build {
	yaml_parser_t parser;
	struct slice text;
	struct slice rest;	/* of it, behind the line looked at last */
	struct slice at;	/* that line */
	size_t lines;		/* how many were passed */
	int line;		/* of the text's first line in the file */
	struct yaml *y;
	struct err *e;
	char *key;		/* a map's key whose value comes next */
	size_t key_line;
	int documents;
	size_t depth;
	cJSON *stack[YAML_DEPTH];
	size_t members[YAML_DEPTH];
};

static int
yaml_fault(struct yaml_build *b, size_t line, const char *what)
{
	b->y->line = b->line + (int)line;
	return err_set(b->e, ERR_PARSE, "%s", what);
}

/* More than YAML_DEPTH brackets open: not for libyaml. */
static bool
yaml_is_deep(struct slice text)
{
	size_t i, depth = 0;

	for (i = 0; i < text.n && depth <= YAML_DEPTH; i++) {
		if (text.p[i] == '[' || text.p[i] == '{')
			depth++;
		else if ((text.p[i] == ']' || text.p[i] == '}') && depth)
			depth--;
	}
	return depth > YAML_DEPTH;
}

/* Decimal numbers as in JSON, but also `.5`, `1.` and `+1`. */
static bool
yaml_is_number(const char *s)
{
	size_t whole, part = 0;

	s += *s == '-' || *s == '+';
	s += whole = strspn(s, "0123456789");
	if (*s == '.')
		s += 1 + (part = strspn(s + 1, "0123456789"));
	if (!whole && !part)
		return false;
	if (*s == 'e' || *s == 'E') {
		s += 1 + (s[1] == '-' || s[1] == '+');
		if (!isdigit((unsigned char)*s))
			return false;
		s += strspn(s, "0123456789");
	}
	return !*s;
}

/*
 * YAML 1.2's core schema for plain scalars, without octal, hexadecimal, .inf
 * and .nan, which stay text, as do integers that a double cannot hold.
 */
static cJSON *
yaml_plain(const char *s)
{
	static const struct {
		const char *word;
		int type;
	} words[] = {
		{ "", cJSON_NULL }, { "~", cJSON_NULL },
		{ "null", cJSON_NULL }, { "Null", cJSON_NULL },
		{ "NULL", cJSON_NULL },
		{ "true", cJSON_True }, { "True", cJSON_True },
		{ "TRUE", cJSON_True },
		{ "false", cJSON_False }, { "False", cJSON_False },
		{ "FALSE", cJSON_False },
	};
	double d = yaml_is_number(s) ? strtod(s, NULL) : INFINITY;
	cJSON *v = NULL;
	size_t i;

	for (i = 0; i < LENGTH(words) && !v; i++)
		if (!strcmp(s, words[i].word))
			v = words[i].type == cJSON_NULL ? cJSON_CreateNull() :
			    cJSON_CreateBool(words[i].type == cJSON_True);
	if (!v && d >= -9007199254740992.0 && d <= 9007199254740992.0)
		v = cJSON_CreateNumber(d);
	if (!v)
		return cJSON_CreateString(s);
	v->valuestring = core_strdup(s);
	return v;
}

/* Whether a key comes next. */
static bool
yaml_wants_key(const struct yaml_build *b)
{
	return b->depth && !b->key && cJSON_IsObject(b->stack[b->depth - 1]);
}

/* Goes on to the line (from 0) of the text; they are asked for in order. */
static bool
yaml_goto(struct yaml_build *b, size_t line)
{
	for (; b->lines <= line; b->lines++)
		if (!text_line(&b->rest, &b->at))
			return false;
	return true;
}

/* Whether a plain scalar on one line has a comment behind it. */
static bool
yaml_is_cut(struct yaml_build *b, const yaml_event_t *ev)
{
	struct slice line;
	size_t i, at = 0, k;

	if (ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ||
	    ev->start_mark.line != ev->end_mark.line ||
	    !yaml_goto(b, ev->end_mark.line))
		return false;
	line = b->at;
	/* Marks count characters. */
	for (i = 0; i < ev->end_mark.column && at < line.n; i++) {
		k = text_utf8(line.p + at, line.n - at);
		at += k ? k : 1;
	}
	line.p += at;
	line.n -= at;
	return line.n && text_is_space(line.p[0]) && text_trim(line).n &&
	    text_trim(line).p[0] == '#';
}

/*
 * Whether something that brackets or quotes hold goes on at column 0, where
 * only the root's keys may stand.  libyaml lets that pass; but a quote that
 * was never closed would swallow the keys below it, up to the next quote.
 */
static bool
yaml_is_swallowed(struct yaml_build *b, const yaml_event_t *ev)
{
	size_t i;

	if (yaml_wants_key(b) && b->depth > 1 && !ev->start_mark.column)
		return true;
	if (ev->data.scalar.style != YAML_SINGLE_QUOTED_SCALAR_STYLE &&
	    ev->data.scalar.style != YAML_DOUBLE_QUOTED_SCALAR_STYLE)
		return false;
	for (i = ev->start_mark.line + 1; i <= ev->end_mark.line; i++)
		if (yaml_goto(b, i) && b->at.n && !text_is_space(*b->at.p))
			return true;
	return false;
}

/* Takes a key of the root and its value (owned); what it was before goes. */
static void
yaml_add(struct yaml *y, const char *key, cJSON *v, int line)
{
	if (cJSON_GetObjectItemCaseSensitive(y->root, key)) {
		yaml_note(&y->twice, key);
		cJSON_DeleteItemFromObjectCaseSensitive(y->root, key);
	}
	if (!cJSON_AddItemToObject(y->root, key, v))
		core_die("out of memory");
	v->valueint = line;
}

/* Puts v (owned) where the next value belongs. */
static int
yaml_put(struct yaml_build *b, cJSON *v, size_t line)
{
	cJSON *top = b->depth ? b->stack[b->depth - 1] : NULL;

	yaml_new(v);
	if (!top) {
		b->y->root = v;
		return cJSON_IsObject(v) ? 0 :
		    yaml_fault(b, line, "not a map of keys and values");
	}
	if (!b->key) {
		if (!cJSON_AddItemToArray(top, v))
			core_die("out of memory");
		return 0;
	}
	if (b->depth == 1)
		yaml_add(b->y, b->key, v, b->line + (int)b->key_line);
	else
		yaml_set(top, b->key, v);
	free(b->key);
	b->key = NULL;
	return 0;
}

static int
yaml_scalar(struct yaml_build *b, const yaml_event_t *ev)
{
	const char *s = (const char *)ev->data.scalar.value;
	size_t line = ev->start_mark.line;

	if (ev->data.scalar.anchor || ev->data.scalar.tag)
		return yaml_fault(b, line, "anchors and tags are not taken");
	if (strlen(s) != ev->data.scalar.length)
		return yaml_fault(b, line, "a zero byte");
	if (yaml_is_swallowed(b, ev))
		return yaml_fault(b, line, "quotes or brackets that go on at "
		    "the start of a line");
	if (yaml_wants_key(b)) {
		if (++b->members[b->depth - 1] > YAML_MEMBERS)
			return yaml_fault(b, line, "too many keys");
		b->key = core_strdup(s);
		b->key_line = line;
		return 0;
	}
	if (b->depth == 1 && yaml_is_cut(b, ev))
		yaml_note(&b->y->cut, b->key);
	return yaml_put(b, ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ?
	    yaml_plain(s) : cJSON_CreateString(s), line);
}

static int
yaml_open(struct yaml_build *b, cJSON *v, const yaml_char_t *anchor,
    const yaml_char_t *tag, size_t line)
{
	const char *why = anchor || tag ? "anchors and tags are not taken" :
	    b->depth == YAML_DEPTH ? "nested too deeply" :
	    yaml_wants_key(b) ? "a key must be a text" : NULL;

	if (why) {
		cJSON_Delete(v);
		return yaml_fault(b, line, why);
	}
	if (yaml_put(b, v, line) < 0)
		return -1;
	b->members[b->depth] = 0;
	b->stack[b->depth++] = v;
	return 0;
}

/* 1: that was the end. */
static int
yaml_event(struct yaml_build *b, const yaml_event_t *ev)
{
	size_t line = ev->start_mark.line;

	switch (ev->type) {
	case YAML_STREAM_END_EVENT:
		return 1;
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++)
			return yaml_fault(b, line, "more than one document");
		if (ev->data.document_start.version_directive ||
		    ev->data.document_start.tag_directives.start !=
		    ev->data.document_start.tag_directives.end)
			return yaml_fault(b, line, "directives are not taken");
		return 0;
	case YAML_ALIAS_EVENT:
		return yaml_fault(b, line, "aliases are not taken");
	case YAML_SCALAR_EVENT:
		return yaml_scalar(b, ev);
	case YAML_SEQUENCE_START_EVENT:
		return yaml_open(b, cJSON_CreateArray(),
		    ev->data.sequence_start.anchor,
		    ev->data.sequence_start.tag, line);
	case YAML_MAPPING_START_EVENT:
		return yaml_open(b, cJSON_CreateObject(),
		    ev->data.mapping_start.anchor,
		    ev->data.mapping_start.tag, line);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	default:
		return 0;
	}
}

/*
 * libyaml's own complaint.  Of something that was not closed, the line where
 * it was opened is told; its reader knows an offset only.
 */
static int
yaml_complain(struct yaml_build *b)
{
	const yaml_parser_t *p = &b->parser;
	size_t i, line = p->problem_mark.line;

	if (p->error == YAML_MEMORY_ERROR)
		core_die("out of memory");
	if (p->context && (p->error == YAML_SCANNER_ERROR ||
	    str_starts(p->context, "while parsing a flow")))
		line = p->context_mark.line;
	if (p->error == YAML_READER_ERROR)
		for (i = line = 0; i < p->problem_offset && i < b->text.n; i++)
			line += b->text.p[i] == '\n';
	return yaml_fault(b, line, p->problem ? p->problem : "not valid");
}

/*
 * A value on its line that cannot mean anything but itself: plain, begun by
 * a letter or figure, or in double quotes without escapes.  NULL: ask libyaml.
 */
static cJSON *
yaml_simple_value(struct slice s)
{
	bool quoted = s.n > 1 && s.p[0] == '"' && s.p[s.n - 1] == '"';
	char *text;
	cJSON *v;
	size_t i, k;

	if (quoted)
		s = (struct slice){ s.p + 1, s.n - 2 };
	else if (!s.n || (!isalnum((unsigned char)s.p[0]) &&
	    (unsigned char)s.p[0] < 0x80))
		return NULL;
	for (i = 0; i < s.n; i += k) {
		unsigned char c = (unsigned char)s.p[i];

		k = text_utf8(s.p + i, s.n - i);
		/* Control characters, and what YAML takes for line ends. */
		if (!k || c < 32 || c == 127 || c == 0xef ||
		    (c == 0xc2 && (unsigned char)s.p[i + 1] < 0xa0) ||
		    (c == 0xe2 && s.p[i + 1] == '\200'))
			return NULL;
		if (quoted ? c == '"' || c == '\\' : (c == ':' &&
		    (i + 1 == s.n || s.p[i + 1] == ' ')) ||
		    (c == '#' && s.p[i - 1] == ' '))
			return NULL;
	}
	text = core_memdup(s.p, s.n);
	v = quoted ? cJSON_CreateString(text) : yaml_plain(text);
	free(text);
	return yaml_new(v);
}

/*
 * Most headers are `key: value` lines with nothing special in them.  Those
 * are read here, without the 64 KiB of buffers that libyaml takes for each
 * file; the result is the same.  false: it is not that simple.
 */
static bool
yaml_simple(struct slice rest, int line, struct yaml *y)
{
	struct slice l;
	char key[64];
	cJSON *v;
	size_t n, i, keys = 0;

	y->root = yaml_new(cJSON_CreateObject());
	for (; text_line(&rest, &l); line++) {
		while (l.n && l.p[l.n - 1] == ' ')
			l.n--;
		if (!l.n)
			continue;
		for (n = 0; n < l.n && (isalnum((unsigned char)l.p[n]) ||
		    l.p[n] == '_' || l.p[n] == '-');)
			n++;
		if (!n || n >= sizeof(key) || n + 2 >= l.n || l.p[n] != ':' ||
		    l.p[n + 1] != ' ' || !isalpha((unsigned char)l.p[0]) ||
		    ++keys > YAML_STRAY)
			return false;
		memcpy(key, l.p, n);
		key[n] = 0;
		for (i = n + 1; l.p[i] == ' ';)
			i++;
		v = yaml_simple_value((struct slice){ l.p + i, l.n - i });
		if (!v)
			return false;
		yaml_add(y, key, v, line);
	}
	return true;
}

/* One document by libyaml; see yaml_read(). */
static int
yaml_strict(struct slice text, int line, struct yaml *y, struct err *e)
{
	struct yaml_build b = { .text = text, .rest = text, .line = line,
	    .y = y, .e = e };
	yaml_event_t ev;
	int r = 0;

	yaml_clear(y);
	y->line = line;
	if (yaml_is_deep(text))
		return err_set(e, ERR_PARSE, "nested too deeply");
	if (!yaml_parser_initialize(&b.parser))
		core_die("out of memory");
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser,
	    (const unsigned char *)text.p, text.n);
	while (!r) {
		if (!yaml_parser_parse(&b.parser, &ev)) {
			r = yaml_complain(&b);
			break;
		}
		r = yaml_event(&b, &ev);
		yaml_event_delete(&ev);
	}
	yaml_parser_delete(&b.parser);
	free(b.key);
	if (r > 0 && !y->root)
		y->root = yaml_new(cJSON_CreateObject());
	return r < 0 ? -1 : 0;
}

/*
 * Reads one strict document; `line` is that of its first line in the file.
 * y is filled (for yaml_clear) also on failure, with y->line.
 */
static int
yaml_read(struct slice text, int line, struct yaml *y, struct err *e)
{
	yaml_clear(y);
	y->line = line;
	if (text.n > YAML_MAX)
		return err_set(e, ERR_LIMIT, "a header of more than %u bytes",
		    YAML_MAX);
	return yaml_simple(text, line, y) ? 0 : yaml_strict(text, line, y, e);
}

/*--- leniently -------------------------------------------------------------*/

static const struct yaml_field *
yaml_field(const struct yaml_field *fields, struct slice name)
{
	for (; fields->name; fields++)
		if (str_eq(name, fields->name))
			return fields;
	return NULL;
}

/*
 * Offset behind the colon of `key:` at the start of a line, the key bare or
 * in quotes; 0: there is none.
 */
static size_t
yaml_key(struct slice line, struct slice *name)
{
	char quote = line.n ? line.p[0] : 0;
	size_t i = quote == '"' || quote == '\'', from = i;

	while (i < line.n && (isalnum((unsigned char)line.p[i]) ||
	    line.p[i] == '_' || line.p[i] == '-'))
		i++;
	*name = (struct slice){ line.p + from, i - from };
	if (!name->n || !isalpha((unsigned char)*name->p))
		return 0;
	if (from) {
		if (i == line.n || line.p[i] != quote)
			return 0;
		i++;
	}
	while (i < line.n && text_is_space(line.p[i]))
		i++;
	return i < line.n && line.p[i] == ':' ? i + 1 : 0;
}

/* Behind the quoted string that s begins with; 0: not closed. */
static size_t
yaml_quoted(struct slice s)
{
	size_t i;

	for (i = 1; i < s.n; i++) {
		if (s.p[0] == '"' && s.p[i] == '\\') {
			i++;
		} else if (s.p[i] == s.p[0]) {
			if (s.p[0] == '"' || i + 1 == s.n || s.p[i + 1] != '\'')
				return i + 1;
			i++;
		}
	}
	return 0;
}

/* Behind the bracket that closes the one that s begins with; 0: none. */
static size_t
yaml_flow(struct slice s)
{
	size_t i, k, depth = 0;
	bool fresh = true;	/* a quote here begins a string */

	for (i = 0; i < s.n; i++) {
		if (fresh && (s.p[i] == '"' || s.p[i] == '\'')) {
			k = yaml_quoted((struct slice){ s.p + i, s.n - i });
			if (!k)
				return 0;
			i += k - 1;
		} else if (s.p[i] == '[' || s.p[i] == '{') {
			depth++;
		} else if ((s.p[i] == ']' || s.p[i] == '}') && !--depth) {
			return i + 1;
		}
		if (!text_is_space(s.p[i]))
			fresh = strchr("[{,:", s.p[i]) != NULL;
	}
	return 0;
}

/* A value that is whole in YAML's own way, a comment behind it or not. */
static bool
yaml_is_whole(struct slice s)
{
	size_t n = 0;

	if (s.p[0] == '"' || s.p[0] == '\'')
		n = yaml_quoted(s);
	else if (s.p[0] == '[' || s.p[0] == '{')
		n = yaml_flow(s);
	else if (s.p[0] == '|' || s.p[0] == '>')
		for (n = 1; n < s.n && n < 3 && strchr("+-123456789", s.p[n]);)
			n++;
	if (!n)
		return false;
	while (n < s.n && text_is_space(s.p[n]))
		n++;
	return n == s.n || (s.p[n] == '#' && text_is_space(s.p[n - 1]));
}

/* Without a comment at its end. */
static struct slice
yaml_uncomment(struct slice s)
{
	size_t i;

	for (i = 0; i < s.n; i++)
		if (s.p[i] == '#' && (!i || text_is_space(s.p[i - 1])))
			s.n = i;
	return text_trim(s);
}

/* Whether YAML could take the value for something other than its text. */
static bool
yaml_is_odd(struct slice s)
{
	size_t i;

	for (i = 0; i < s.n; i++)
		if (strchr("{}[]*&#!|>%@`\"'", s.p[i]) || (s.p[i] == ':' &&
		    (i + 1 == s.n || text_is_space(s.p[i + 1]))))
			return true;
	return false;
}

/*
 * First re-read: `key: value` lines whose value is odd and not whole are
 * written as quoted text, so that everything else keeps its meaning.  Keys
 * that were changed go to `changed`; the line of the first, 0: none.  Of
 * `want`, it is that line if it is among them.
 */
static int
yaml_quote(struct slice rest, int line, const struct yaml_field *fields,
    int want, struct strv *changed, struct str *out)
{
	const struct yaml_field *f;
	struct slice l, name, v;
	int first = 0;
	size_t at, i;

	for (; text_line(&rest, &l); line++, str_addc(out, '\n')) {
		at = yaml_key(l, &name);
		if (!at || at == l.n || !text_is_space(l.p[at])) {
			str_addl(out, l);
			continue;
		}
		v = text_trim((struct slice){ l.p + at, l.n - at });
		f = yaml_field(fields, name);
		/* In a text a ` #` is one; elsewhere it is a comment. */
		if (v.n && !yaml_is_whole(v) && !(f && (f->flags & YAML_TEXT)))
			v = yaml_uncomment(v);
		if (!v.n || yaml_is_whole(v) || !yaml_is_odd(v)) {
			str_addl(out, l);
			continue;
		}
		if (!first || line == want)
			first = line;
		str_list_add(changed, name.p, name.n);
		str_add(out, l.p, at);
		str_adds(out, " '");
		for (i = 0; i < v.n; i++)
			str_add(out, v.p[i] == '\'' ? "''" : v.p + i,
			    v.p[i] == '\'' ? 2 : 1);
		str_addc(out, '\'');
	}
	return first;
}

/* A field while a header is scanned line by line. */
struct yaml_piece {
	const struct yaml_field *field;	/* NULL: of no known key */
	struct slice name;
	struct slice text;	/* all its lines */
	size_t value;		/* where in text its value begins */
	int line;
};

/*
 * Whether a line starts a field, by what it stands in.  A guarded key does
 * even without a blank behind its colon: `tools:Read` must not become text.
 */
static bool
yaml_starts(const struct yaml_field *fields, const struct yaml_piece *in,
    struct slice line, struct yaml_piece *out)
{
	bool free_text = in->field && (in->field->flags & YAML_TEXT);
	size_t at = yaml_key(line, &out->name);
	bool spaced = at && (at == line.n || text_is_space(line.p[at]));

	if (!at)
		return false;
	out->field = yaml_field(fields, out->name);
	out->value = at;
	if (out->field && (out->field->flags & YAML_GUARD))
		return true;
	return spaced && (out->field || !free_text);
}

/*
 * Notes in `hidden` (key: line) each guarded key that stands in lines that
 * were taken as text, indented or behind `?`: it may have been meant as one.
 */
static void
yaml_look(const struct yaml_field *fields, struct slice text, int at,
    cJSON *hidden)
{
	const struct yaml_field *f;
	struct slice line, name;

	for (; text_line(&text, &line); at++) {
		while (line.n && (text_is_space(*line.p) || *line.p == '?')) {
			line.p++;
			line.n--;
		}
		if (!yaml_key(line, &name) && text_trim(line).n != name.n)
			continue;
		f = yaml_field(fields, name);
		if (f && (f->flags & YAML_GUARD))
			yaml_set(hidden, f->name,
			    yaml_new(cJSON_CreateNumber(at)));
	}
}

/* The lines of a piece as one text; owned. */
static char *
yaml_join(const struct yaml_piece *p)
{
	bool free_text = p->field && (p->field->flags & YAML_TEXT);
	struct slice rest = { p->text.p + p->value, p->text.n - p->value };
	struct slice line, all;
	struct str s;
	char *r;

	str_init(&s, 0);
	while (text_line(&rest, &line)) {
		if (!free_text)
			line = line.n && line.p[0] == '#' ?
			    (struct slice){ line.p, 0 } : yaml_uncomment(line);
		line = text_trim(line);
		if (s.len && (line.n || free_text))
			str_addc(&s, free_text ? '\n' : ' ');
		str_addl(&s, line);
	}
	all = text_trim(str_slice(&s));
	if (all.n > 1 && (all.p[0] == '"' || all.p[0] == '\'') &&
	    all.p[all.n - 1] == all.p[0]) {
		all.p++;
		all.n -= 2;
	}
	r = core_memdup(all.p, all.n);
	str_clear(&s);
	return r;
}

/* A field's value, owned: YAML by itself, else text. */
static cJSON *
yaml_piece_value(const struct yaml_piece *p, const struct yaml_field *fields,
    struct yaml *y, cJSON *hidden)
{
	char *name = core_memdup(p->name.p, p->name.n), *s;
	struct yaml own = { 0 };
	struct slice more;
	cJSON *v = NULL;

	if (!yaml_read(p->text, p->line, &own, NULL) && own.root->child &&
	    !own.root->child->next && !strcmp(own.root->child->string, name)) {
		v = cJSON_DetachItemViaPointer(own.root, own.root->child);
		if (own.cut.n)
			yaml_note(&y->cut, name);
	} else {
		more = p->text;
		text_line(&more, &(struct slice){ 0 });
		yaml_look(fields, more, p->line + 1, hidden);
		s = yaml_join(p);
		v = yaml_new(cJSON_CreateString(s));
		yaml_note(&y->loose, name);
		free(s);
	}
	free(name);
	yaml_clear(&own);
	return v;
}

/* Takes a finished piece into y; `hidden`: see yaml_look(). */
static int
yaml_take(const struct yaml_piece *p, const struct yaml_field *fields,
    struct yaml *y, cJSON *hidden, struct err *e)
{
	char name[64];
	cJSON *v;

	if (!p->name.n || p->name.n >= sizeof(name)) {
		yaml_look(fields, p->text, p->line, hidden);
		return 0;
	}
	memcpy(name, p->name.p, p->name.n);
	name[p->name.n] = 0;
	v = yaml_piece_value(p, fields, y, hidden);
	if (!p->field) {
		/* Only that it was there; its value is nobody's business. */
		cJSON_Delete(v);
		if (cJSON_GetArraySize(y->root) >= YAML_STRAY)
			return 0;
		v = yaml_new(cJSON_CreateNull());
	} else if (cJSON_GetObjectItemCaseSensitive(y->root, name)) {
		yaml_note(&y->twice, name);
		if (p->field->flags & YAML_GUARD) {
			cJSON_Delete(v);
			y->line = p->line;
			return err_set(e, ERR_PARSE, "'%s' is there twice, "
			    "in a header that is not valid YAML", name);
		}
	}
	yaml_set(y->root, name, v);
	v->valueint = p->line;
	return 0;
}

/*
 * Second re-read: a known key at column 0 starts a field, what follows
 * belongs to it.  -1: a restriction may be in there that cannot be told
 * from text.
 */
static int
yaml_scan(struct slice header, int line, const struct yaml_field *fields,
    struct yaml *y, struct err *e)
{
	struct yaml_piece at = { .text = { header.p, 0 }, .line = line }, next;
	cJSON *hidden = yaml_new(cJSON_CreateObject()), *h;
	struct slice rest = header, l;
	bool more;
	int r = 0;

	y->root = yaml_new(cJSON_CreateObject());
	do {
		more = text_line(&rest, &l);
		next = (struct yaml_piece){ .line = line };
		line++;
		if (more && !yaml_starts(fields, &at, l, &next))
			continue;
		at.text.n = (size_t)((more ? l.p : header.p + header.n) -
		    at.text.p);
		r = yaml_take(&at, fields, y, hidden, e);
		next.text.p = more ? l.p : NULL;
		at = next;
	} while (more && !r);
	cJSON_ArrayForEach(h, hidden) {
		if (r || cJSON_GetObjectItemCaseSensitive(y->root, h->string))
			continue;
		y->line = h->valueint;
		r = err_set(e, ERR_PARSE, "'%s' stands in text of a header "
		    "that is not valid YAML; put it at the start of a line",
		    h->string);
	}
	cJSON_Delete(hidden);
	return r;
}

/* Whether the fields without which nothing was understood are texts. */
static bool
yaml_has_needs(const struct yaml *y, const struct yaml_field *f)
{
	const cJSON *v;

	for (; f->name; f++) {
		if (!(f->flags & YAML_NEED))
			continue;
		v = cJSON_GetObjectItemCaseSensitive(y->root, f->name);
		if (!v || cJSON_IsNull(v) || !v->valuestring)
			return false;
	}
	return true;
}

/*
 * A header by all three ways.  `line` is that of its first line in the file.
 * y->lenient says that strict YAML would not have it; y->line and y->why
 * where and why.  -1: refused, with y->line.
 */
static int
yaml_header(struct slice header, int line, const struct yaml_field *fields,
    struct yaml *y, struct err *e)
{
	struct err strict = { 0 }, dont_care = { 0 };
	struct strv changed = { 0 };
	int at, first, r = 0;
	struct str quoted;

	if (!yaml_read(header, line, y, &strict))
		return 0;
	if (strict.code == ERR_LIMIT)
		return err_set(e, strict.code, "%s", strict.msg);
	at = y->line;
	str_init(&quoted, 0);
	first = yaml_quote(header, line, fields, at, &changed, &quoted);
	if (first && !yaml_read(str_slice(&quoted), line, y, &dont_care) &&
	    yaml_has_needs(y, fields)) {
		at = first;
		y->loose = changed;
		changed = (struct strv){ 0 };
	} else {
		yaml_clear(y);
		r = yaml_scan(header, line, fields, y, e);
	}
	y->lenient = true;
	if (!r)
		y->line = at;
	snprintf(y->why, sizeof(y->why), "%.*s",
	    (int)sizeof(y->why) - 1, strict.msg);
	str_list_clear(&changed);
	str_clear(&quoted);
	return r;
}

/*--- the file around it ----------------------------------------------------*/

/* ASCII without zero bytes and carriage returns: nothing to be done. */
static bool
yaml_is_clean(struct slice s)
{
	const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
	uint64_t word, cr;
	size_t i;

	for (i = 0; s.n - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s.p + i, sizeof(word));
		cr = word ^ (ones * '\r');
		/* A byte over 127, a zero one, or one that became zero. */
		if ((word | (word - ones) | ((cr - ones) & ~cr)) & tops)
			return false;
	}
	for (; i < s.n; i++)
		if ((unsigned char)s.p[i] > 127 || !s.p[i] || s.p[i] == '\r')
			return false;
	return true;
}

/*
 * Bytes of a file as UTF-8 with line feeds, without a byte order mark.
 * *fixed: some bytes were no UTF-8.  -1: in another encoding.
 */
static int
yaml_input(struct slice file, struct str *out, bool *fixed, struct err *e)
{
	size_t i, from = 0;

	*fixed = false;
	if (yaml_is_clean(file)) {
		str_addl(out, file);
		return 0;
	}
	if (file.n >= 2 && (!memcmp(file.p, "\377\376", 2) ||
	    !memcmp(file.p, "\376\377", 2)))
		return err_set(e, ERR_PARSE, "is UTF-16, UTF-8 is needed");
	if (file.n && memchr(file.p, 0, file.n))
		return err_set(e, ERR_PARSE, "holds zero bytes: UTF-16 or no "
		    "text at all, UTF-8 is needed");
	if (file.n >= 3 && !memcmp(file.p, "\357\273\277", 3)) {
		file.p += 3;
		file.n -= 3;
	}
	*fixed = !text_utf8_is(file);
	if (*fixed)
		text_utf8_fix(file, out);
	else
		str_addl(out, file);
	if (!out->len || !memchr(out->p, '\r', out->len))
		return 0;
	for (i = 0; i < out->len; i++) {
		if (out->p[i] == '\r' && out->p[i + 1] == '\n')
			continue;	/* terminated: i + 1 exists */
		out->p[from++] = out->p[i] == '\r' ? '\n' : out->p[i];
	}
	str_cut(out, from);
	return 0;
}

/* A file's parts. */
struct yaml_front {
	struct slice header;
	struct slice body;	/* trimmed */
	int line;		/* of the header's first line */
	bool late;		/* blank lines stood before it */
	bool long_fence;	/* closed by more than three dashes */
};

/* Three dashes (or more) and blanks: their number, else 0. */
static size_t
yaml_fence(struct slice line)
{
	size_t n = 0;

	while (n < line.n && line.p[n] == '-')
		n++;
	return n >= 3 && text_trim((struct slice){ line.p + n,
	    line.n - n }).n == 0 ? n : 0;
}

/* Splits cleaned text.  1: done; 0: no frontmatter; -1: not closed. */
static int
yaml_split(struct slice text, struct yaml_front *f)
{
	struct slice rest = text, line = { 0 };
	size_t dashes;

	*f = (struct yaml_front){ .line = 1, .body = text_trim(text) };
	do {
		if (!text_line(&rest, &line))
			return 0;
		f->line++;
	} while (text_is_blank(line));
	if (yaml_fence(line) != 3)
		return 0;
	f->late = f->line > 2;
	f->header.p = rest.p;
	while (text_line(&rest, &line)) {
		dashes = yaml_fence(line);
		if (!dashes)
			continue;
		f->header.n = (size_t)(line.p - f->header.p);
		f->long_fence = dashes > 3;
		f->body = text_trim(rest);
		return 1;
	}
	return -1;
}

/*=== [sig] flags set by signals, and the pipe that wakes the wait ===========
 * uses: err
 *
 * A handler sets a flag and writes one byte; everything else happens where
 * the program waits.  The descriptors of the pipe belong to one process:
 * sig_forked() makes new ones.
 *==========================================================================*/

static struct {
	volatile sig_atomic_t stop;	/* SIGINT, SIGTERM or SIGHUP; 0 */
	volatile sig_atomic_t child;	/* SIGCHLD came */
	int pipe[2];
} sig_state = { .pipe = { -1, -1 } };

static void
sig_wake(void)
{
	int saved = errno;

	if (sig_state.pipe[1] >= 0 && write(sig_state.pipe[1], "", 1) < 0)
		errno = saved;	/* full: the reader wakes anyway */
	errno = saved;
}

static void
sig_on_stop(int signo)
{
	/* The first one decides the exit status. */
	if (!sig_state.stop)
		sig_state.stop = signo;
	sig_wake();
}

static void
sig_on_child(int signo)
{
	(void)signo;
	sig_state.child = 1;
	sig_wake();
}

static void
sig_handle(int signo, void (*handler)(int), int flags)
{
	struct sigaction sa = { 0 };

	sa.sa_handler = handler;
	sa.sa_flags = flags;
	sigemptyset(&sa.sa_mask);
	sigaction(signo, &sa, NULL);
}

static int
sig_pipe(struct err *e)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (sig_state.pipe[i] >= 0)
			close(sig_state.pipe[i]);
		sig_state.pipe[i] = -1;
	}
	if (pipe2(sig_state.pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "make a pipe");
	return 0;
}

/*
 * Installs the handlers.  A signal that the caller had set to be ignored
 * stays ignored (nohup), SIGPIPE always is.  No SA_RESTART: a blocked call
 * must come back so that the flag is seen.
 */
static int
sig_init(struct err *e)
{
	static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction old;
	sigset_t none;
	size_t i;

	if (sig_pipe(e) < 0)
		return -1;
	for (i = 0; i < LENGTH(stops); i++)
		if (!sigaction(stops[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sig_handle(stops[i], sig_on_stop, 0);
	sig_handle(SIGCHLD, sig_on_child, SA_NOCLDSTOP);
	sig_handle(SIGPIPE, SIG_IGN, 0);
	/* A file that reaches its limit is a failed write, not the end. */
	sig_handle(SIGXFSZ, SIG_IGN, 0);
	/* A caller that blocks signals must not make us deaf. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

/* What a host program had before; see sig_borrow(). */
struct sig_saved {
	struct sigaction child, pipe;
};

/*
 * For a run inside another program: SIGCHLD and SIGPIPE alone, and what was
 * there before comes back with sig_return().
 */
static int
sig_borrow(struct sig_saved *s, struct err *e)
{
	if (sig_pipe(e) < 0)
		return -1;
	sig_state.stop = 0;
	sigaction(SIGCHLD, NULL, &s->child);
	sigaction(SIGPIPE, NULL, &s->pipe);
	sig_handle(SIGCHLD, sig_on_child, SA_NOCLDSTOP);
	sig_handle(SIGPIPE, SIG_IGN, 0);
	return 0;
}

static void
sig_return(const struct sig_saved *s)
{
	sigaction(SIGCHLD, &s->child, NULL);
	sigaction(SIGPIPE, &s->pipe, NULL);
	sig_state.stop = 0;
}

/* As if SIGTERM had come; safe in a signal handler. */
static void
sig_ask_stop(void)
{
	sig_on_stop(SIGTERM);
}

/* In a forked child: no flags, a pipe of its own. */
static int
sig_forked(struct err *e)
{
	sig_state.stop = 0;
	sig_state.child = 0;
	return sig_pipe(e);
}

/* Before exec: what the child inherits is as a shell would give it. */
static void
sig_default(void)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE,
	    SIGQUIT, SIGXFSZ };
	sigset_t none;
	size_t i;

	for (i = 0; i < LENGTH(all); i++)
		sig_handle(all[i], SIG_DFL, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The signal that asks us to stop, or 0. */
static int
sig_stop(void)
{
	return sig_state.stop;
}

/* Blocks everything; *old is for sig_restore(). */
static void
sig_block(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, old);
}

static void
sig_restore(const sigset_t *old)
{
	sigprocmask(SIG_SETMASK, old, NULL);
}

/* Empties the pipe. */
static void
sig_drain(void)
{
	char buf[64];

	sig_state.child = 0;
	while (read(sig_state.pipe[0], buf, sizeof(buf)) > 0)
		continue;
}

/*=== [io] full reads and writes, and the only wait ==========================
 * uses: core err sig
 *
 * io_wait() is the one place that blocks on purpose.  A stop signal or the
 * run's time limit ends every wait with ERR_ABORT, except between io_hold(1)
 * and io_hold(-1) (clean-up that must finish, with deadlines of its own).
 *==========================================================================*/

#define IO_FOREVER ((int64_t)-1)

struct io_want {
	int fd;			/* -1: ignored */
	short events;		/* POLLIN, POLLOUT */
	short ready;		/* filled: what poll said */
};

static struct {
	int held;		/* nesting of io_hold(1) */
	int64_t limit;		/* when the run is out of time */
} io_state = { 0, IO_FOREVER };

static void
io_hold(int by)
{
	io_state.held += by;
}

/* From then on every wait ends as by a stop signal. */
static void
io_limit(int64_t when)
{
	io_state.limit = when;
}

static bool
io_stopped(void)
{
	return !io_state.held && (sig_stop() ||
	    (io_state.limit != IO_FOREVER && core_now() >= io_state.limit));
}

/* A deadline `ms` from now. */
static int64_t
io_in(int64_t ms)
{
	return ms < 0 ? IO_FOREVER : core_now() + ms;
}

/* The earlier of two deadlines. */
static int64_t
io_sooner(int64_t a, int64_t b)
{
	return a == IO_FOREVER ? b : b == IO_FOREVER ? a : a < b ? a : b;
}

/* What a wait that was stopped says. */
static int
io_stop_error(struct err *e)
{
	return err_set(e, ERR_ABORT, sig_stop() ? "stopped by a signal" :
	    "out of time");
}

/*
 * Waits until a descriptor is ready, a child changed state, or the deadline
 * (core_now() clock) has passed.  1: something happened, look at `ready` and
 * at your children; 0: the deadline; -1: stop signal or a broken call.
 */
static int
io_wait(struct io_want *w, size_t n, int64_t deadline, struct err *e)
{
	struct pollfd p[18];
	int64_t left, until;
	size_t i;
	int r;

	if (n > LENGTH(p) - 1)
		BUG("io_wait");
	for (;;) {
		if (io_stopped())
			return io_stop_error(e);
		for (i = 0; i < n; i++) {
			p[i] = (struct pollfd){ w[i].fd, w[i].events, 0 };
			w[i].ready = 0;
		}
		p[n] = (struct pollfd){ sig_state.pipe[0], POLLIN, 0 };
		until = io_state.held ? deadline :
		    io_sooner(deadline, io_state.limit);
		left = until == IO_FOREVER ? -1 : until - core_now();
		if (until != IO_FOREVER && left < 0)
			left = 0;
		r = poll(p, (nfds_t)n + 1,
		    left > 3600000 ? 3600000 : (int)left);
		if (r < 0 && errno != EINTR)
			return err_sys(e, "wait");
		if (r <= 0) {
			if (!r && deadline != IO_FOREVER &&
			    core_now() >= deadline)
				return 0;
			continue;
		}
		for (i = 0; i < n; i++)
			w[i].ready = p[i].revents;
		if (p[n].revents) {
			sig_drain();
			if (r == 1 && io_stopped())
				continue;
		}
		return 1;
	}
}

/* Waits for one descriptor: 1 ready, 0 the deadline, -1 stopped. */
static int
io_wait1(int fd, short events, int64_t deadline, struct err *e)
{
	struct io_want w = { fd, events, 0 };
	int r;

	do {
		r = io_wait(&w, 1, deadline, e);
	} while (r > 0 && !w.ready);
	return r;
}

static int
io_sleep(int64_t ms, struct err *e)
{
	int64_t until = io_in(ms);
	int r;

	while ((r = io_wait(NULL, 0, until, e)) > 0)
		continue;
	return r;
}

static void
io_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* read(2) that is not disturbed by signals. */
static ssize_t
io_read(int fd, void *p, size_t n)
{
	ssize_t r;

	if (core_fault(FAULT_READ)) {
		errno = EIO;
		return -1;
	}
	do {
		r = read(fd, p, n);
	} while (r < 0 && errno == EINTR && !io_stopped());
	return r;
}

/*
 * Writes everything, waiting where the reader is slow.  A closed reader is
 * an error with errno EPIPE; a stop signal ends it with ERR_ABORT.
 */
static int
io_write(int fd, const void *data, size_t n, struct err *e)
{
	const char *p = data;
	ssize_t r;

	while (n > 0) {
		if (core_fault(FAULT_WRITE)) {
			errno = ENOSPC;
			return err_sys(e, "write");
		}
		r = write(fd, p, n);
		if (r > 0) {
			p += r;
			n -= (size_t)r;
			continue;
		}
		if (r < 0 && errno == EINTR) {
			if (io_stopped())
				return io_stop_error(e);
			continue;
		}
		if (r < 0 && errno == EAGAIN) {
			if (io_wait1(fd, POLLOUT, IO_FOREVER, e) < 0)
				return -1;
			continue;
		}
		return err_sys(e, "write");
	}
	return 0;
}

static void
io_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*=== [file] reading, replacing, walking, resolving, containing ==============
 * uses: core err str io
 *
 * Paths are bytes.  file_real() resolves what exists and keeps the rest, so
 * that a path to be created is judged by where it would really land.
 *==========================================================================*/

/* Lexically: absolute (against base), no ".", "..", "//", no "/" at the end. */
static void
file_norm(const char *base, const char *path, struct str *out)
{
	const char *p = path;
	size_t n;

	str_reset(out);
	if (*p != '/')
		file_norm("/", base, out);	/* recursion: one level */
	if (out->len == 1)
		str_cut(out, 0);
	for (; *p; p += n) {
		p += strspn(p, "/");
		n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			while (out->len > 0 && out->p[out->len - 1] != '/')
				str_cut(out, out->len - 1);
			if (out->len > 0)
				str_cut(out, out->len - 1);
		} else if (n && !(n == 1 && p[0] == '.')) {
			str_addc(out, '/');
			str_add(out, p, n);
		}
	}
	if (!out->len)
		str_addc(out, '/');
}

/* base/path unless path is absolute; a heap string. */
static char *
file_join(const char *base, const char *path)
{
	struct str s;

	str_init(&s, 0);
	if (*path != '/') {
		str_adds(&s, base);
		if (!s.len || s.p[s.len - 1] != '/')
			str_addc(&s, '/');
	}
	str_adds(&s, path);
	return str_detach(&s);
}

/* The part behind the last slash. */
static const char *
file_name(const char *path)
{
	const char *p = strrchr(path, '/');

	return p ? p + 1 : path;
}

/* Everything before the last slash; "/" for a file there. */
static char *
file_dir(const char *path)
{
	const char *p = strrchr(path, '/');

	if (!p)
		return core_strdup(".");
	return core_memdup(path, p == path ? 1 : (size_t)(p - path));
}

/* Replaces link names by their targets, at most this often (as Linux). */
#define FILE_LINKS 40

/*
 * The real path of an absolute or base-relative path: every link resolved,
 * also where the last parts do not exist (they stay as written).  A loop of
 * links is ERR_IO.  Written out because realpath(3) needs all parts.
 */
static int
file_real(const char *base, const char *path, struct str *out, struct err *e)
{
	struct str todo, done, next;
	char buf[PATH_MAX];
	size_t n, at = 0;
	ssize_t k;
	int links = 0, r = 0;

	str_init(&todo, 0);
	str_init(&done, 0);
	str_init(&next, 0);
	if (*path != '/') {
		str_adds(&todo, base);
		str_addc(&todo, '/');
	}
	str_adds(&todo, path);
	while (at < todo.len) {
		at += strspn(todo.p + at, "/");
		n = strcspn(todo.p + at, "/");
		if (!n)
			break;
		if (n == 1 && todo.p[at] == '.') {
			at += n;
			continue;
		}
		if (n == 2 && !memcmp(todo.p + at, "..", 2)) {
			while (done.len && done.p[done.len - 1] != '/')
				str_cut(&done, done.len - 1);
			if (done.len)
				str_cut(&done, done.len - 1);
			at += n;
			continue;
		}
		str_addc(&done, '/');
		str_add(&done, todo.p + at, n);
		at += n;
		k = readlink(done.p, buf, sizeof(buf) - 1);
		if (k < 0)
			continue;	/* no link, or not there at all */
		if (++links > FILE_LINKS || (size_t)k >= sizeof(buf) - 1) {
			errno = ELOOP;
			r = err_sys(e, "resolve '%s'", path);
			break;
		}
		str_reset(&next);
		str_add(&next, buf, (size_t)k);
		str_adds(&next, todo.p + at);
		str_cut(&done, buf[0] == '/' ? 0 : done.len - n - 1);
		str_reset(&todo);
		str_addl(&todo, str_slice(&next));
		at = 0;
	}
	if (!done.len)
		str_addc(&done, '/');
	str_take(out, &done);
	str_clear(&todo);
	str_clear(&next);
	return r;
}

/* Whether path is dir or lies below it; both normalised. */
static bool
file_inside(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n == 1 && dir[0] == '/')
		return path[0] == '/';
	return !strncmp(dir, path, n) && (!path[n] || path[n] == '/');
}

/* path relative to dir, "." for dir itself, or path where it is outside. */
static const char *
file_relative(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (!file_inside(dir, path))
		return path;
	path += n;
	path += strspn(path, "/");
	return *path ? path : ".";
}

static bool
file_is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool
file_exists(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

/*
 * Reads fd to its end into out; more than max bytes is ERR_LIMIT.  Waits for
 * pipes, so it may be stopped.
 */
static int
file_read_fd(int fd, const char *name, size_t max, struct str *out,
    struct err *e)
{
	char buf[16384];
	ssize_t r;

	for (;;) {
		r = io_read(fd, buf, sizeof(buf));
		if (r < 0 && errno == EAGAIN) {
			if (io_wait1(fd, POLLIN, IO_FOREVER, e) < 0)
				return -1;
			continue;
		}
		if (r < 0 && errno == EINTR)
			return io_stop_error(e);
		if (r < 0)
			return err_sys(e, "read '%s'", name);
		if (!r)
			return 0;
		if (out->len + (size_t)r > max)
			return err_set(e, ERR_LIMIT,
			    "'%s' is larger than %zu bytes", name, max);
		str_add(out, buf, (size_t)r);
	}
}

/*
 * Opens a regular file for reading.  Other kinds are refused: a FIFO or a
 * terminal would block, /dev/zero never ends.
 */
static int
file_open(const char *path, struct stat *st, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_sys(e, "open '%s'", path);
	if (fstat(fd, st) < 0) {
		err_sys(e, "look at '%s'", path);
	} else if (!S_ISREG(st->st_mode)) {
		err_set(e, ERR_IO, "'%s' is %s, not a regular file", path,
		    S_ISDIR(st->st_mode) ? "a folder" :
		    "a device, pipe or socket");
	} else {
		return fd;
	}
	close(fd);
	return -1;
}

/* A whole regular file, appended to out. */
static int
file_read(const char *path, size_t max, struct str *out, struct err *e)
{
	struct stat st;
	ssize_t n = 0;
	int fd, r = 0;

	fd = file_open(path, &st, e);
	if (fd < 0)
		return -1;
	if (st.st_size > 0 && (uint64_t)st.st_size < max &&
	    str_reserve(out, (size_t)st.st_size + 1))
		n = io_read(fd, out->p + out->len, (size_t)st.st_size + 1);
	if (n > 0) {
		out->len += (size_t)n;
		out->p[out->len] = 0;
	}
	/* What was promised and not a byte more: that is the end. */
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		r = err_sys(e, "read '%s'", path);
	else if (n <= 0 || n != st.st_size)
		r = file_read_fd(fd, path, max, out, e);
	close(fd);
	return r;
}

/* Makes path and what is missing above it, mode 0777 less the umask. */
static int
file_mkdirs(const char *path, mode_t mode, struct err *e)
{
	char *s = core_strdup(path), *p;
	int r = 0;

	for (p = s + 1; r == 0; p++) {
		if (*p && *p != '/')
			continue;
		char c = *p;

		*p = 0;
		if (mkdir(s, mode) < 0 && errno != EEXIST && !file_is_dir(s))
			r = err_sys(e, "make the folder '%s'", s);
		*p = c;
		if (!c)
			break;
	}
	if (!r && !file_is_dir(path)) {
		errno = ENOTDIR;
		r = err_sys(e, "make the folder '%s'", path);
	}
	free(s);
	return r;
}

/* Writes data into fd in place: for a file that must keep its inode. */
static int
file_rewrite(const char *path, struct slice data, struct err *e)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), r;

	if (fd < 0)
		return err_sys(e, "write '%s'", path);
	r = io_write(fd, data.p, data.n, e);
	if (close(fd) < 0 && !r)
		r = err_sys(e, "write '%s'", path);
	return r < 0 ? err_wrap(e, "'%s'", path) : 0;
}

/* Gives the new file the old one's mode and, where allowed, its owner. */
static int
file_adopt(int fd, const struct stat *old)
{
	mode_t mode = old->st_mode & 07777;

	/* Owner first: chown clears set-id bits. */
	if ((old->st_uid != geteuid() || old->st_gid != getegid()) &&
	    fchown(fd, old->st_uid, old->st_gid) < 0)
		return -1;
	return fchmod(fd, mode);
}

/*
 * Replaces the content of path as a whole: other readers see the old bytes
 * or the new ones.  Links stay links; mode and owner are kept; a file with
 * several names, or in a folder where nothing can be made, or whose owner
 * we cannot keep, is rewritten in place.  A new file gets 0666 less umask.
 */
static int
file_replace(const char *path, struct slice data, struct err *e)
{
	struct str real;
	struct stat st;
	char *tmp = NULL, *dir = NULL, id[37], cwd[PATH_MAX];
	bool old;
	int fd = -1, r = -1;

	str_init(&real, 0);
	if (file_real(getcwd(cwd, sizeof(cwd)) ? cwd : "/", path, &real, e) < 0)
		goto out;
	old = !stat(real.p, &st);
	if (old && !S_ISREG(st.st_mode)) {
		err_set(e, ERR_IO, "'%s' is not a regular file", path);
		goto out;
	}
	if (old && access(real.p, W_OK) < 0) {
		err_sys(e, "write '%s'", path);
		goto out;
	}
	core_uuid(id);
	dir = file_dir(real.p);
	tmp = core_alloc(strlen(dir) + 32);
	snprintf(tmp, strlen(dir) + 32, "%s/.%.8s.tmp", dir, id);
	if (!(old && st.st_nlink > 1))
		fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    old ? 0600 : 0666);
	if (fd >= 0 && old && file_adopt(fd, &st) < 0) {
		close(fd);
		unlink(tmp);
		fd = -1;
	}
	if (fd < 0 && old) {
		r = file_rewrite(real.p, data, e);
		goto out;
	}
	if (fd < 0) {
		err_sys(e, "make '%s'", path);
		goto out;
	}
	r = io_write(fd, data.p, data.n, e);
	if (close(fd) < 0 && !r)
		r = err_sys(e, "write '%s'", path);
	if (!r && rename(tmp, real.p) < 0)
		r = err_sys(e, "replace '%s'", path);
	if (r < 0) {
		unlink(tmp);
		err_wrap(e, "'%s'", path);
	}
out:
	free(tmp);
	free(dir);
	str_clear(&real);
	return r;
}

static int
file_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A folder's entries, sorted by bytes, without "." and "..". */
static int
file_list(const char *dir, struct strv *names, struct err *e)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	if (!d)
		return err_sys(e, "list '%s'", dir);
	while ((de = readdir(d)) != NULL)
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, ".."))
			str_list_adds(names, de->d_name);
	closedir(d);
	if (names->n > 1)
		qsort(names->v, names->n, sizeof(*names->v), file_by_name);
	return 0;
}

/* The user's home folder: HOME, else the password file, else NULL. */
static const char *
file_home(void)
{
	const char *home = getenv("HOME");
	struct passwd *pw;

	if (home && *home == '/')
		return home;
	pw = getpwuid(getuid());
	return pw && pw->pw_dir && *pw->pw_dir == '/' &&
	    pw->pw_dir[1] ? pw->pw_dir : NULL;
}

/*=== [proc] child processes: fork, run, cap, time out, kill, reap ===========
 * uses: core err str sig io file
 *
 * Two ways to have a child: proc_fork() for our own code on a copy of our
 * memory, proc_run() for another program.  Each has its own process group;
 * only pids that were not reaped yet are ever signalled.
 *==========================================================================*/

#define PROC_PATH "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
#define PROC_GRACE 2000		/* ms between TERM and KILL */
#define PROC_GRACE_FORKED 5000	/* the same where it must end its own first */
#define PROC_LINGER 200		/* ms that a leftover writer may still talk */

struct proc_child {
	pid_t pid;		/* 0: reaped */
	int fd;			/* our end of the socket pair; -1: closed */
	int status;		/* of waitpid, once pid is 0 */
};

/* Closes the descriptors from..to; the system call is in Linux 5.9. */
static void
proc_close_range(int from, int to)
{
	struct rlimit rl;
	int fd, max = 65536;

	if (from > to || !syscall(SYS_close_range, from, to, 0))
		return;
	if (!getrlimit(RLIMIT_NOFILE, &rl) && rl.rlim_cur < (rlim_t)max)
		max = (int)rl.rlim_cur;
	for (fd = from; fd <= to && fd < max; fd++)
		close(fd);
}

/* Closes everything from 3 on except the two given (-1: none). */
static void
proc_close_others(int keep, int keep2)
{
	int lo = keep < keep2 ? keep : keep2;
	int hi = keep < keep2 ? keep2 : keep;

	lo = lo < 2 ? 2 : lo;
	hi = hi < lo ? lo : hi;
	proc_close_range(3, lo - 1);
	proc_close_range(lo + 1, hi - 1);
	proc_close_range(hi + 1, INT_MAX);
}

/* stdin from /dev/null, or a closed pipe where there is no /dev. */
static void
proc_null_stdin(void)
{
	int p[2], fd = open("/dev/null", O_RDONLY);

	if (fd < 0 && !pipe(p)) {
		close(p[1]);
		fd = p[0];
	}
	if (fd > 0) {
		dup2(fd, 0);
		close(fd);
	}
}

/*
 * Forks; the child runs entry(arg, fd) on its end of a socket pair and then
 * leaves with what that returns.  In the child everything inherited but
 * stdout, stderr, fd and the debug log is closed (not shut down), signals are
 * as after sig_init() with no flag set, and the group is its own.
 */
static int
proc_fork(struct proc_child *c, int (*entry)(void *arg, int fd), void *arg,
    struct err *e)
{
	int sv[2];
	sigset_t old;
	pid_t pid;

	*c = (struct proc_child){ .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys(e, "make a socket pair");
	sig_block(&old);
	if (core_fault(FAULT_FORK)) {
		pid = -1;
		errno = EAGAIN;
	} else {
		pid = fork();
	}
	if (pid < 0) {
		err_sys(e, "start a process");
		sig_restore(&old);
		close(sv[0]);
		close(sv[1]);
		return -1;
	}
	if (!pid) {
		setpgid(0, 0);
		core_forked();
		proc_close_others(sv[1], logger.fd);
		proc_null_stdin();
		sig_state.pipe[0] = sig_state.pipe[1] = -1;
		if (sig_forked(NULL) < 0)
			_exit(1);
		sig_restore(&old);
		_exit(entry(arg, sv[1]));
	}
	setpgid(pid, pid);	/* both sides, whoever is first */
	sig_restore(&old);
	close(sv[1]);
	io_nonblock(sv[0]);
	c->pid = pid;
	c->fd = sv[0];
	return 0;
}

/* Reaps the child if it has ended: true then (or if it was reaped before). */
static bool
proc_reap(struct proc_child *c)
{
	pid_t r;

	if (!c->pid)
		return true;
	do {
		r = waitpid(c->pid, &c->status, WNOHANG);
	} while (r < 0 && errno == EINTR);
	if (r == 0)
		return false;
	if (r < 0)
		c->status = 0x7f00;	/* somebody else reaped it: unknown */
	c->pid = 0;
	return true;
}

/* Waits for the end until the deadline; true: reaped. */
static bool
proc_wait(struct proc_child *c, int64_t deadline)
{
	int r = 1;

	io_hold(1);
	while (!proc_reap(c) && r > 0)
		r = io_wait(NULL, 0, deadline, NULL);
	io_hold(-1);
	return proc_reap(c);
}

/*
 * Signals the child's group; between fork and setsid() there is none yet,
 * then the child itself, which is ours as long as it is not reaped.
 */
static void
proc_signal(const struct proc_child *c, pid_t group, int signo)
{
	if (kill(-group, signo) < 0 && c->pid)
		kill(c->pid, signo);
}

/*
 * As process 1 of a container we inherit what others leave behind.  Called
 * where no child of our own is waited for.
 */
static void
proc_reap_orphans(void)
{
	while (core.pid == 1 && waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

/* Ends the child's whole group: TERM, a grace time, KILL; reaps it. */
static void
proc_end(struct proc_child *c)
{
	pid_t group = c->pid;

	io_close(&c->fd);
	if (proc_reap(c) || !group)
		return;
	proc_signal(c, group, SIGTERM);
	if (!proc_wait(c, io_in(PROC_GRACE_FORKED))) {
		proc_signal(c, group, SIGKILL);
		proc_wait(c, io_in(PROC_GRACE));
	}
}

/* Text for people: "exit status 3", "killed by signal 9". */
static void
proc_how(int status, char out[48])
{
	if (WIFSIGNALED(status))
		snprintf(out, 48, "killed by signal %d (%s)",
		    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(out, 48, "exit status %d", WEXITSTATUS(status));
}

/* What to run.  argv[0] is looked up in PATH unless it has a slash. */
struct proc_job {
	const char *const *argv;
	const char *cwd;		/* NULL: where we are */
	const char *const *env;		/* "NAME=value" to set, NULL-ended */
	const char *const *unset;	/* names to remove, NULL-ended */
	struct slice input;		/* fed to stdin; empty: /dev/null */
	size_t keep;			/* bytes of output kept: half of it
					   from the head, half from the tail */
	int64_t timeout;		/* ms; IO_FOREVER */
	bool split_err;			/* stderr apart, to `err` */
	int report;			/* a descriptor of the program: what it
					   writes is the report; 0: none */
};

#define PROC_REPORT (2 * PATH_MAX)	/* bytes of a report that are kept */

struct proc_result {
	struct str out;		/* head and tail; see `dropped` */
	struct str err;		/* the first `keep` bytes */
	struct str report;	/* what the program said beside its output */
	size_t head;		/* length of the head part in out */
	uint64_t dropped;	/* bytes left out between head and tail */
	int status;		/* waitpid's */
	bool timed_out;
	bool aborted;		/* a stop signal came */
	bool held;		/* a process left behind holds the output */
	pid_t left;		/* group that still has members, or 0 */
};

static void
proc_result_init(struct proc_result *r)
{
	memset(r, 0, sizeof(*r));
	str_init(&r->out, 0);
	str_init(&r->err, 0);
	str_init(&r->report, PROC_REPORT);
}

static void
proc_result_clear(struct proc_result *r)
{
	str_clear(&r->out);
	str_clear(&r->err);
	str_clear(&r->report);
}

/*
 * Keeps head and tail: the tail is a buffer of twice its size that is
 * halved when full, so that the cost per byte stays constant.
 */
static void
proc_keep(struct proc_result *r, size_t keep, const char *p, size_t n)
{
	size_t half = keep / 2, k, over;

	if (r->head < half) {
		k = half - r->head < n ? half - r->head : n;
		str_add(&r->out, p, k);
		r->head += k;
		p += k;
		n -= k;
	}
	if (n > half) {
		r->dropped += n - half;
		p += n - half;
		n = half;
	}
	str_add(&r->out, p, n);
	if (r->out.len - r->head > 2 * half) {
		over = r->out.len - r->head - half;
		str_remove(&r->out, r->head, over);
		r->dropped += over;
	}
}

/* At the end: the tail down to half. */
static void
proc_keep_done(struct proc_result *r, size_t keep)
{
	size_t half = keep / 2, over;

	if (r->out.len - r->head <= half)
		return;
	over = r->out.len - r->head - half;
	str_remove(&r->out, r->head, over);
	r->dropped += over;
}

/* The pipes of a running program: we hold one end of each. */
struct proc_pipes {
	int in[2], out[2], err[2], report[2];
	size_t fed;		/* bytes of input written */
};

/* In the child: does not return.  127: not found, 126: cannot run. */
static void
proc_exec(const struct proc_job *job, const struct proc_pipes *p)
{
	const char *const *s;
	int fds[4] = { p->in[0], p->out[1], p->err[1], p->report[1] }, i;

	/* A session and group of its own: no terminal to hang on. */
	setsid();
	/* Out of the way of the low ones, so that no dup2 hits another. */
	for (i = 0; i < 4; i++)
		if (fds[i] >= 0)
			fds[i] = fcntl(fds[i], F_DUPFD, job->report < 10 ? 10 :
			    job->report + 1);
	if (fds[0] >= 0)
		dup2(fds[0], 0);
	else
		proc_null_stdin();
	dup2(fds[1], 1);
	dup2(fds[2] >= 0 ? fds[2] : fds[1], 2);
	if (fds[3] >= 0)
		dup2(fds[3], job->report);
	proc_close_others(fds[3] >= 0 ? job->report : -1, -1);
	sig_default();
	for (s = job->unset; s && *s; s++)
		unsetenv(*s);
	for (s = job->env; s && *s; s++)
		putenv((char *)(uintptr_t)*s);
	if (job->cwd && chdir(job->cwd) < 0) {
		dprintf(2, "cannot change to '%s': %s\n", job->cwd,
		    strerror(errno));
		_exit(126);
	}
	/* exec changes nothing, its type is older than const */
	execvp(job->argv[0], (char *const *)(uintptr_t)job->argv);
	i = errno;
	dprintf(2, "cannot run '%s': %s\n", job->argv[0], strerror(i));
	_exit(i == ENOENT ? 127 : 126);
}

static void
proc_pipes_close(struct proc_pipes *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		io_close(&p->in[i]);
		io_close(&p->out[i]);
		io_close(&p->err[i]);
		io_close(&p->report[i]);
	}
}

static int
proc_pipes_open(struct proc_pipes *p, const struct proc_job *job,
    struct err *e)
{
	*p = (struct proc_pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 },
	    { -1, -1 }, 0 };
	if (pipe2(p->out, O_CLOEXEC) < 0 ||
	    (job->split_err && pipe2(p->err, O_CLOEXEC) < 0) ||
	    (job->report && pipe2(p->report, O_CLOEXEC) < 0) ||
	    (job->input.n && pipe2(p->in, O_CLOEXEC) < 0)) {
		err_sys(e, "make a pipe");
		proc_pipes_close(p);
		return -1;
	}
	io_nonblock(p->out[0]);
	if (p->err[0] >= 0)
		io_nonblock(p->err[0]);
	if (p->in[1] >= 0)
		io_nonblock(p->in[1]);
	if (p->report[0] >= 0)
		io_nonblock(p->report[0]);
	return 0;
}

/* Reads what is there; closes the descriptor at the end of it. */
static void
proc_drain(int *fd, const struct proc_job *job, struct proc_result *r,
    bool is_err)
{
	char buf[65536];
	ssize_t n;
	int rounds = 16;	/* then the others get a turn */

	while (*fd >= 0 && rounds-- > 0) {
		n = io_read(*fd, buf, sizeof(buf));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			io_close(fd);
		else if (!is_err)
			proc_keep(r, job->keep, buf, (size_t)n);
		else if (r->err.len < job->keep)
			str_add(&r->err, buf, job->keep - r->err.len <
			    (size_t)n ? job->keep - r->err.len : (size_t)n);
	}
}

static void
proc_feed(struct proc_pipes *p, const struct proc_job *job)
{
	ssize_t n;

	while (p->in[1] >= 0) {
		n = write(p->in[1], job->input.p + p->fed,
		    job->input.n - p->fed);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n > 0)
			p->fed += (size_t)n;
		if (n <= 0 || p->fed == job->input.n)
			io_close(&p->in[1]);
	}
}

/* What the program reported, once it has ended: a pipe holds all of it. */
static void
proc_take_report(int fd, struct str *out)
{
	char buf[PROC_REPORT];
	ssize_t n;

	if (fd < 0)
		return;
	n = io_read(fd, buf, sizeof(buf));
	if (n > 0)
		str_add(out, buf, (size_t)n);
}

/*
 * Serves the pipes until the program has ended and its output is read, a
 * leftover writer had its time, or the deadline or a stop signal came.
 */
static void
proc_serve(struct proc_child *c, struct proc_pipes *p,
    const struct proc_job *job, struct proc_result *r)
{
	int64_t deadline = io_in(job->timeout), linger = IO_FOREVER;
	struct io_want w[3];
	int k;

	for (;;) {
		proc_drain(&p->out[0], job, r, false);
		proc_drain(&p->err[0], job, r, true);
		proc_feed(p, job);
		if (proc_reap(c)) {
			if (p->out[0] < 0 && p->err[0] < 0)
				return;
			if (linger == IO_FOREVER)
				linger = io_in(PROC_LINGER);
			if (core_now() >= linger) {
				r->held = true;
				return;
			}
		}
		w[0] = (struct io_want){ p->out[0], POLLIN, 0 };
		w[1] = (struct io_want){ p->err[0], POLLIN, 0 };
		w[2] = (struct io_want){ p->in[1], POLLOUT, 0 };
		k = io_wait(w, 3, io_sooner(deadline, linger), NULL);
		if (k < 0) {
			r->aborted = true;
			return;
		}
		if (!k && deadline != IO_FOREVER && core_now() >= deadline &&
		    !proc_reap(c)) {
			r->timed_out = true;
			return;
		}
	}
}

/*
 * Runs a program to its end.  0: it ran, `r` says how it ended; -1: it could
 * not be started.  Whatever is left of its group after a time-out or a stop
 * is killed; what it left in the background on purpose goes on.
 */
static int
proc_run(const struct proc_job *job, struct proc_result *r, struct err *e)
{
	struct proc_child c = { .fd = -1 };
	struct proc_pipes p;
	sigset_t old;
	pid_t group;

	if (proc_pipes_open(&p, job, e) < 0)
		return -1;
	sig_block(&old);
	if (core_fault(FAULT_FORK)) {
		c.pid = -1;
		errno = EAGAIN;
	} else {
		c.pid = fork();
	}
	if (!c.pid)
		proc_exec(job, &p);
	sig_restore(&old);
	if (c.pid < 0) {
		err_sys(e, "start a process");
		proc_pipes_close(&p);
		return -1;
	}
	group = c.pid;
	io_close(&p.in[0]);
	io_close(&p.out[1]);
	io_close(&p.err[1]);
	io_close(&p.report[1]);
	proc_serve(&c, &p, job, r);
	if (r->timed_out || r->aborted) {
		/* The leader may be gone while its group lives on. */
		proc_signal(&c, group, SIGTERM);
		if (!proc_wait(&c, io_in(PROC_GRACE)))
			proc_signal(&c, group, SIGKILL);
		proc_wait(&c, io_in(PROC_GRACE));
		proc_signal(&c, group, SIGKILL);
		proc_drain(&p.out[0], job, r, false);
	}
	proc_take_report(p.report[0], &r->report);
	proc_pipes_close(&p);
	proc_keep_done(r, job->keep);
	proc_reap_orphans();
	/* A group with members keeps its number from being used again. */
	r->left = kill(-group, 0) ? 0 : group;
	r->status = c.status;
	return 0;
}

/* Ends groups that commands have left behind: TERM, a grace time, KILL. */
static void
proc_end_groups(const pid_t *groups, size_t n)
{
	int64_t until = io_in(PROC_GRACE);
	size_t i, alive;

	io_hold(1);
	for (i = 0; i < n; i++)
		kill(-groups[i], SIGTERM);
	do {
		proc_reap_orphans();
		for (i = alive = 0; i < n; i++)
			alive += !kill(-groups[i], 0);
		if (alive)
			io_sleep(10, NULL);
	} while (alive && core_now() < until);
	for (i = 0; alive && i < n; i++)
		kill(-groups[i], SIGKILL);
	io_hold(-1);
}

/* The full path of a program on PATH; NULL: not there. Owned. */
static char *
proc_find(const char *name)
{
	const char *set = getenv("PATH");
	struct slice path = str_of(set ? set : PROC_PATH), dir;
	char *full, *d;

	if (strchr(name, '/'))
		return access(name, X_OK) ? NULL : core_strdup(name);
	while (path.p) {
		const char *end = memchr(path.p, ':', path.n);

		dir = (struct slice){ path.p,
		    end ? (size_t)(end - path.p) : path.n };
		path.n = end ? path.n - dir.n - 1 : 0;
		path.p = end ? end + 1 : NULL;
		d = core_memdup(dir.n ? dir.p : ".", dir.n ? dir.n : 1);
		full = file_join(d, name);
		free(d);
		if (!access(full, X_OK) && !file_is_dir(full))
			return full;
		free(full);
	}
	return NULL;
}

/*=== [dns] host names to addresses ==========================================
 * uses: core str err text io file
 *
 * A stub resolver of our own, because musl's cannot be stopped, knows no
 * TCP for answers that were cut, and waits five seconds where a server
 * drops AAAA questions or says SERVFAIL.  Both families are asked at once,
 * of all servers; what one of them knows counts, and the other is waited
 * for only a moment.  Read: hosts(5); of resolv.conf(5) nameserver, search,
 * domain and ndots.  `localhost` needs no file (RFC 6761, 6.3).
 *==========================================================================*/

#define DNS_ADDRS 16		/* of one host; more are left out */
#define DNS_SERVERS 3		/* as resolv.conf(5) has it */
#define DNS_QUERY 272		/* head, 255 of name, type, class */
#define DNS_ANSWER 4096		/* over UDP; without EDNS 512 are due */
#define DNS_ROUNDS 4		/* questions are repeated after 1, 2, 3 s */
#define DNS_GRACE 150		/* ms for the family that is later */
#define DNS_TCP 3000		/* ms for an answer over TCP */

union dns_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct dns_list {
	union dns_addr v[DNS_ADDRS];
	size_t n;
};

struct dns_conf {
	union dns_addr server[DNS_SERVERS];
	size_t n;
	struct strv search;
	int64_t ndots;
	const char *hosts;	/* a file's path */
};

enum dns_said {
	DNS_OTHER,	/* not an answer to this question */
	DNS_YES,	/* with addresses */
	DNS_NONE,	/* there are none, or no such name */
	DNS_FAIL,	/* the server cannot say */
	DNS_CUT		/* ask again over TCP */
};

struct dns_question {
	unsigned char msg[DNS_QUERY];
	size_t n;
	struct dns_list found;
	bool failed[DNS_SERVERS];
	bool none;		/* a server knows that there are none */
	bool done;
};

struct dns_ask {
	const struct dns_conf *conf;
	int fd[DNS_SERVERS];
	struct dns_question q[2];	/* AAAA, A */
};

static socklen_t
dns_addr_len(const union dns_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

/* An address in digits, IPv6 with or without %interface. */
static bool
dns_addr_parse(const char *text, int port, union dns_addr *a)
{
	char buf[INET6_ADDRSTRLEN + IF_NAMESIZE];
	char *scope;

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &a->in.sin_addr) == 1) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons((uint16_t)port);
		return true;
	}
	if (strlen(text) >= sizeof(buf))
		return false;
	memcpy(buf, text, strlen(text) + 1);
	scope = strchr(buf, '%');
	if (scope)
		*scope++ = 0;
	if (inet_pton(AF_INET6, buf, &a->in6.sin6_addr) != 1)
		return false;
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons((uint16_t)port);
	a->in6.sin6_scope_id = scope ? if_nametoindex(scope) : 0;
	return !scope || a->in6.sin6_scope_id;
}

static void
dns_addr_text(const union dns_addr *a, char out[INET6_ADDRSTRLEN])
{
	const void *p = a->sa.sa_family == AF_INET6 ?
	    (const void *)&a->in6.sin6_addr : (const void *)&a->in.sin_addr;

	if (!inet_ntop(a->sa.sa_family, p, out, INET6_ADDRSTRLEN))
		BUG("inet_ntop");
}

static void
dns_list_add(struct dns_list *l, const union dns_addr *a)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (!memcmp(&l->v[i], a, sizeof(*a)))
			return;
	if (l->n < DNS_ADDRS)
		l->v[l->n++] = *a;
}

/* Gives every address the port. */
static void
dns_list_port(struct dns_list *l, int port)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		if (l->v[i].sa.sa_family == AF_INET6)
			l->v[i].in6.sin6_port = htons((uint16_t)port);
		else
			l->v[i].in.sin_port = htons((uint16_t)port);
	}
}

/* Takes the next word off a line; comments end it. */
static bool
dns_word(struct slice *line, struct slice *word)
{
	size_t n = 0;

	*line = text_trim(*line);
	while (n < line->n && !text_is_space(line->p[n]) &&
	    line->p[n] != '#' && line->p[n] != ';')
		n++;
	*word = (struct slice){ line->p, n };
	line->p += n;
	line->n -= n;
	return n > 0;
}

/* A copy in the caller's buffer, "" where it is too long. */
static const char *
dns_copy(struct slice s, char buf[256])
{
	size_t n = s.n < 256 ? s.n : 0;

	memcpy(buf, s.p, n);
	buf[n] = 0;
	return buf;
}

static void
dns_conf_clear(struct dns_conf *c)
{
	str_list_clear(&c->search);
	*c = (struct dns_conf){ .ndots = 1, .hosts = "/etc/hosts" };
}

/* c is fresh.  Without any server musl and glibc ask this machine. */
static void
dns_conf_parse(struct dns_conf *c, struct slice text)
{
	struct slice line, key, word;
	char buf[256];

	while (text_line(&text, &line)) {
		if (!dns_word(&line, &key))
			continue;
		if (str_eq(key, "nameserver") && c->n < DNS_SERVERS) {
			if (dns_word(&line, &word) && dns_addr_parse(
			    dns_copy(word, buf), 53, &c->server[c->n]))
				c->n++;
		} else if (str_eq(key, "search") || str_eq(key, "domain")) {
			str_list_clear(&c->search);
			while (dns_word(&line, &word))
				str_list_add(&c->search, word.p, word.n);
		} else if (str_eq(key, "options")) {
			while (dns_word(&line, &word))
				if (str_starts(dns_copy(word, buf), "ndots:"))
					text_int(str_of(buf + 6), 0, 15,
					    &c->ndots);
		}
	}
	if (!c->n)
		dns_addr_parse("127.0.0.1", 53, &c->server[c->n++]);
}

/* Settings from the file; one that is not there is an empty one. */
static void
dns_conf_load(struct dns_conf *c, const char *path)
{
	struct str text;

	str_init(&text, 1u << 20);
	file_read(path, 1u << 20, &text, NULL);
	dns_conf_parse(c, str_slice(&text));
	str_clear(&text);
}

/* Adds what a hosts file says about the name. */
static void
dns_hosts(struct slice text, const char *name, struct dns_list *out)
{
	struct slice line, word;
	union dns_addr a;
	char buf[256];

	while (text_line(&text, &line)) {
		if (!dns_word(&line, &word) ||
		    !dns_addr_parse(dns_copy(word, buf), 0, &a))
			continue;
		while (dns_word(&line, &word))
			if (!strcasecmp(dns_copy(word, buf), name))
				dns_list_add(out, &a);
	}
}

/* Writes the question; false: the name has no form that can be asked. */
static bool
dns_query(const char *name, bool ipv6, struct dns_question *q)
{
	size_t n = 12, len;

	memset(q, 0, sizeof(*q));
	core_random(q->msg, 2);
	q->msg[2] = 1;		/* recursion desired */
	q->msg[5] = 1;		/* one question */
	for (; *name; name += len + (name[len] == '.')) {
		len = strcspn(name, ".");
		if (!len || len > 63 || n + len + 2 > 12 + 255)
			return false;
		q->msg[n++] = (unsigned char)len;
		memcpy(q->msg + n, name, len);
		n += len;
	}
	n++;			/* the root's empty label */
	q->msg[n + 1] = ipv6 ? 28 : 1;
	q->msg[n + 3] = 1;	/* class IN */
	q->n = n + 4;
	return n > 13;
}

/* The place behind the name at m[at]; 0: it is broken. */
static size_t
dns_skip_name(const unsigned char *m, size_t n, size_t at)
{
	while (at < n) {
		if (m[at] >= 0xc0)	/* the rest is elsewhere */
			return at + 2 <= n ? at + 2 : 0;
		if (m[at] > 63)
			return 0;
		if (!m[at])
			return at + 1;
		at += 1u + m[at];
	}
	return 0;
}

/* Whether m repeats the question; servers may change the case of letters. */
static bool
dns_is_answer(const struct dns_question *q, const unsigned char *m, size_t n)
{
	size_t i;

	if (n < q->n || m[0] != q->msg[0] || m[1] != q->msg[1] ||
	    !(m[2] & 0x80) || m[4] || m[5] != 1)
		return false;
	for (i = 12; i < q->n; i++)
		if (tolower(m[i]) != tolower(q->msg[i]))
			return false;
	return true;
}

/* Reads an answer; addresses go to q->found. */
static enum dns_said
dns_answer(struct dns_question *q, const unsigned char *m, size_t n)
{
	size_t at = q->n, count, len;
	union dns_addr a;
	bool ipv6;

	if (!dns_is_answer(q, m, n))
		return DNS_OTHER;
	if (m[2] & 2)
		return DNS_CUT;
	if ((m[3] & 15) == 3)
		return DNS_NONE;
	if (m[3] & 15)
		return DNS_FAIL;
	ipv6 = q->msg[q->n - 3] == 28;
	for (count = (size_t)m[6] << 8 | m[7]; count > 0; count--) {
		at = dns_skip_name(m, n, at);
		if (!at || n - at < 10)
			return q->found.n ? DNS_YES : DNS_FAIL;
		len = (size_t)m[at + 8] << 8 | m[at + 9];
		if (n - at - 10 < len)
			return q->found.n ? DNS_YES : DNS_FAIL;
		memset(&a, 0, sizeof(a));
		/* Aliases and their targets stand in one list: all count. */
		if (!m[at] && m[at + 1] == (ipv6 ? 28 : 1) && !m[at + 2] &&
		    m[at + 3] == 1 && len == (ipv6 ? 16 : 4)) {
			a.sa.sa_family = ipv6 ? AF_INET6 : AF_INET;
			memcpy(ipv6 ? (void *)&a.in6.sin6_addr :
			    (void *)&a.in.sin_addr, m + at + 10, len);
			dns_list_add(&q->found, &a);
		}
		at += 10 + len;
	}
	return q->found.n ? DNS_YES : DNS_NONE;
}

/* A socket that goes to that address alone; -1: there is no way. */
static int
dns_socket(const union dns_addr *a, int type)
{
	int fd = socket(a->sa.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);

	if (fd < 0 || !connect(fd, &a->sa, dns_addr_len(a)) ||
	    errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

/* Reads exactly n bytes. */
static bool
dns_read(int fd, unsigned char *p, size_t n, int64_t deadline)
{
	ssize_t r;

	while (n > 0) {
		if (io_wait1(fd, POLLIN, deadline, NULL) <= 0)
			return false;
		r = io_read(fd, p, n);
		if (r < 0 && errno == EAGAIN)
			continue;
		if (r <= 0)
			return false;
		p += r;
		n -= (size_t)r;
	}
	return true;
}

/* Asks one server over TCP (RFC 1035, 4.2.2). */
static enum dns_said
dns_tcp(const union dns_addr *server, struct dns_question *q,
    int64_t deadline)
{
	unsigned char head[2] = { (unsigned char)(q->n >> 8),
	    (unsigned char)q->n };
	struct iovec v[2] = { { head, 2 }, { q->msg, q->n } };
	int fd = dns_socket(server, SOCK_STREAM);
	enum dns_said said = DNS_FAIL;
	unsigned char *m = NULL;
	size_t n;

	deadline = io_sooner(deadline, io_in(DNS_TCP));
	/* So few bytes fit into an empty socket at once. */
	if (fd >= 0 && io_wait1(fd, POLLOUT, deadline, NULL) > 0 &&
	    writev(fd, v, 2) == (ssize_t)q->n + 2 &&
	    dns_read(fd, head, 2, deadline)) {
		n = (size_t)head[0] << 8 | head[1];
		m = core_alloc(n);
		if (dns_read(fd, m, n, deadline))
			said = dns_answer(q, m, n);
	}
	free(m);
	if (fd >= 0)
		close(fd);
	return said == DNS_YES || said == DNS_NONE ? said : DNS_FAIL;
}

/* Server s did not or could not answer the question. */
static void
dns_fail(struct dns_ask *a, struct dns_question *q, size_t s)
{
	size_t i;

	q->failed[s] = true;
	for (i = 0; i < a->conf->n; i++)
		if (!q->failed[i])
			return;
	q->done = true;
}

static void
dns_take(struct dns_ask *a, size_t s, const unsigned char *m, size_t n,
    int64_t deadline)
{
	enum dns_said said;
	size_t i;

	for (i = 0; i < 2; i++) {
		if (a->q[i].done)
			continue;
		said = dns_answer(&a->q[i], m, n);
		if (said == DNS_CUT)
			said = dns_tcp(&a->conf->server[s], &a->q[i],
			    deadline);
		a->q[i].none |= said == DNS_NONE;
		if (said == DNS_YES || said == DNS_NONE)
			a->q[i].done = true;
		else if (said == DNS_FAIL)
			dns_fail(a, &a->q[i], s);
	}
}

/* Everything that server s has sent. */
static void
dns_receive(struct dns_ask *a, size_t s, int64_t deadline)
{
	unsigned char m[DNS_ANSWER];
	int rounds = 64;	/* then somebody floods us */
	ssize_t r;

	while (rounds-- > 0) {
		r = recv(a->fd[s], m, sizeof(m), 0);
		if (r < 0 && errno != EAGAIN && errno != EINTR) {
			/* nobody listens there */
			dns_fail(a, &a->q[0], s);
			dns_fail(a, &a->q[1], s);
		}
		if (r < 0)
			return;
		dns_take(a, s, m, (size_t)r, deadline);
	}
}

static void
dns_send(struct dns_ask *a)
{
	size_t s, i;

	for (s = 0; s < a->conf->n; s++) {
		for (i = 0; i < 2; i++) {
			if (a->q[i].done || a->q[i].failed[s])
				continue;
			/* Lost or refused: recv() or the next round tells. */
			if (a->fd[s] < 0 || (send(a->fd[s], a->q[i].msg,
			    a->q[i].n, MSG_NOSIGNAL) < 0 &&
			    errno != ECONNREFUSED && errno != EAGAIN))
				dns_fail(a, &a->q[i], s);
		}
	}
}

/* Asks until both answers are there, or one and a moment has passed. */
static int
dns_talk(struct dns_ask *a, int64_t deadline, struct err *e)
{
	struct io_want w[DNS_SERVERS];
	int64_t grace = IO_FOREVER, next = core_now();
	size_t s, round = 0;

	while (!a->q[0].done || !a->q[1].done) {
		if (core_now() >= next) {
			if (round++ == DNS_ROUNDS)
				return 0;
			next = io_in((int64_t)round * 1000);
			dns_send(a);
			continue;
		}
		if (grace == IO_FOREVER && (a->q[0].found.n ||
		    a->q[1].found.n))
			grace = io_in(DNS_GRACE);
		for (s = 0; s < a->conf->n; s++)
			w[s] = (struct io_want){ a->fd[s], POLLIN, 0 };
		if (io_wait(w, a->conf->n, io_sooner(io_sooner(next, grace),
		    deadline), e) < 0)
			return -1;
		for (s = 0; s < a->conf->n; s++)
			if (w[s].ready)
				dns_receive(a, s, deadline);
		if ((grace != IO_FOREVER && core_now() >= grace) ||
		    (deadline != IO_FOREVER && core_now() >= deadline))
			return 0;
	}
	return 0;
}

/* One name as it stands.  1: found; 0: there is none; -1: who knows. */
static int
dns_ask(const struct dns_conf *c, const char *name, int64_t deadline,
    struct dns_list *out, struct err *e)
{
	struct dns_ask a = { .conf = c };
	size_t i, s;
	int r = 0;

	if (!dns_query(name, true, &a.q[0]) ||
	    !dns_query(name, false, &a.q[1]))
		return 0;
	for (s = 0; s < c->n; s++)
		a.fd[s] = dns_socket(&c->server[s], SOCK_DGRAM);
	if (dns_talk(&a, deadline, e) < 0)
		r = -1;
	for (s = 0; s < c->n; s++)
		io_close(&a.fd[s]);
	/* By turns, so that neither family's failure costs much. */
	for (i = 0; i < DNS_ADDRS; i++)
		for (s = 0; s < 2; s++)
			if (i < a.q[s].found.n)
				dns_list_add(out, &a.q[s].found.v[i]);
	if (r < 0 || out->n)
		return r < 0 ? -1 : 1;
	return a.q[0].none && a.q[1].none ? 0 : err_set(e, ERR_NET,
	    "no name server has an answer for '%s'", name);
}

/* The name with each search domain in turn, then alone. */
static int
dns_search(const struct dns_conf *c, const char *name, int64_t deadline,
    struct dns_list *out, struct err *e)
{
	size_t i, dots = 0, n = strlen(name);
	struct str full;
	int r = 0;

	for (i = 0; i < n; i++)
		dots += name[i] == '.';
	str_init(&full, 0);
	for (i = 0; i < c->search.n && r == 0; i++) {
		if (dots >= (size_t)c->ndots || name[n - 1] == '.')
			break;
		str_reset(&full);
		str_addf(&full, "%s.%s", name, c->search.v[i]);
		r = dns_ask(c, full.p, deadline, out, e);
	}
	str_clear(&full);
	return r ? r : dns_ask(c, name, deadline, out, e);
}

/* `localhost` and names below it never leave this machine. */
static bool
dns_is_localhost(const char *name)
{
	size_t n = strlen(name), m = strlen("localhost");

	n -= n && name[n - 1] == '.';
	return n >= m && !strncasecmp(name + n - m, "localhost", m) &&
	    (n == m || name[n - m - 1] == '.');
}

/*
 * The addresses of a host (a name or digits), port 0.  ERR_NOTFOUND: there
 * is no such name; ERR_NET: no server could tell.
 */
static int
dns_lookup(const struct dns_conf *c, const char *host, int64_t deadline,
    struct dns_list *out, struct err *e)
{
	union dns_addr a;
	struct str text;
	int r;

	out->n = 0;
	if (dns_addr_parse(host, 0, &a)) {
		dns_list_add(out, &a);
	} else if (dns_is_localhost(host)) {
		dns_addr_parse("127.0.0.1", 0, &a);
		dns_list_add(out, &a);
		dns_addr_parse("::1", 0, &a);
		dns_list_add(out, &a);
	} else {
		str_init(&text, 1u << 20);
		file_read(c->hosts, 1u << 20, &text, NULL);
		dns_hosts(str_slice(&text), host, out);
		str_clear(&text);
	}
	if (out->n)
		return 0;
	r = dns_search(c, host, deadline, out, e);
	return r > 0 ? 0 : r < 0 ? -1 :
	    err_set(e, ERR_NOTFOUND, "there is no host '%s'", host);
}

/*=== [tls] TLS 1.2 over a descriptor; trust anchors =========================
 * uses: core str err log text io file
 *
 * BearSSL does the protocol; here are the profile, the roots, the waiting
 * and the words.  Roots are a blob with an index: an anchor is built only
 * for a name that the server's chain mentions, so a connection touches a
 * few pages of the 60 KB.  For that the chain is kept until it is complete
 * and goes to br_x509_minimal then; this also gives what 0.6 lacks:
 * certificates for IP addresses, and errors that name names.
 *
 * Not here: TLS 1.3, revocation, session tickets, RSA-PSS and EdDSA
 * certificates; a name constraint that is not critical is not looked at.
 *
 * A connection belongs to the process that made it; using it in another one
 * is a BUG().
 *==========================================================================*/

#define LIM_PEM (16u << 20)	/* a bundle of roots; Debian's has 224 KB */
#define TLS_CHAIN 16		/* certificates of one chain */
#define TLS_CHAIN_BYTES 65536	/* and their size; usual: 2 to 6 KB */
#define TLS_ANCHORS 24		/* roots that the names of a chain may fit */
#define TLS_STEPS 256		/* of a pump; a flood must not hold us */
#define TLS_AGAIN (-2)		/* nothing now: wait for tls_events() */

/*
 * One root.  At `off` of the blob stand its name (DER), then of an RSA key
 * the modulus (`a` bytes) and the exponent (`b`), of an EC key the point
 * (`a`).  `curve` is BearSSL's number, 0: RSA.  A table ends with dn 0.
 */
struct tls_root {
	uint32_t hash;		/* of the name */
	uint32_t off;
	uint16_t dn;
	uint16_t a;
	uint8_t b;
	uint8_t curve;
	uint8_t ca;		/* may sign; else it stands for itself alone */
};

#ifdef SA_BOOTSTRAP
static const struct tls_root tls_roots[] = { { 0 } };
static const unsigned char tls_root_bytes[1];
#else
#include "roots.h"		/* printed by tls_gen_roots() */
#endif

/* Roots from files, and whether the compiled-in ones count as well. */
struct tls_store {
	bool loaded;
	bool builtin;
	struct str bytes;
	struct tls_root *v;
	size_t n;
	size_t cap;
};

/* What a certificate says, as slices of its DER. */
struct tls_cert {
	struct slice issuer;	/* whole elements, as they are compared */
	struct slice subject;
	struct slice from;	/* notBefore, notAfter: the digits */
	struct slice until;
	struct slice a;		/* modulus or point */
	struct slice b;		/* exponent */
	int curve;		/* 0: RSA; -1: a key that we cannot use */
	struct slice san;	/* inside of subjectAltName; n 0: none */
	bool ca;
};

/* The X.509 engine given to BearSSL: keeps the chain, then has it checked. */
struct tls_x509 {
	const br_x509_class *vtable;	/* first: BearSSL's handle */
	br_x509_minimal_context min;
	br_x509_trust_anchor anchor[TLS_ANCHORS];
	const struct tls_store *store;
	struct str chain;
	size_t end[TLS_CHAIN];	/* where each certificate ends */
	size_t n;
	bool over;		/* more than we take */
	char name[256];		/* "": the address below */
	unsigned char ip[16];
	size_t iplen;
};

/* Enough to go on with an earlier session of the same server. */
struct tls_session {
	char peer[272];		/* host:port; "": empty */
	br_ssl_session_parameters p;
};

/* A connection; 45 KB, so on the heap and only where https is used. */
struct tls {
	br_ssl_client_context ssl;
	struct tls_x509 x509;
	unsigned char buf[BR_SSL_BUFSIZE_BIDI];
	char peer[272];		/* for messages */
	int fd;			/* borrowed */
	pid_t pid;
	short want;		/* what the last step would have waited for */
	bool in_end;		/* the other side closed */
	int out_errno;		/* sending failed; reading may still go */
	uint64_t moved;		/* bytes on the wire, both ways */
};

/*
 * Takes the next DER element off s: its tag, its inside, and (where asked)
 * the whole of it.  What X.509 uses: short tags, definite lengths.
 */
static bool
tls_der(struct slice *s, unsigned *tag, struct slice *in, struct slice *all)
{
	const unsigned char *p = (const unsigned char *)s->p;
	size_t head = 2, len, i;

	if (s->n < 2 || (p[0] & 31) == 31)
		return false;
	len = p[1];
	if (len >= 0x80) {
		head += len & 0x7f;
		if (head == 2 || head > 6 || s->n < head)
			return false;
		for (len = 0, i = 2; i < head; i++)
			len = len << 8 | p[i];
	}
	if (len > s->n - head)
		return false;
	*tag = p[0];
	*in = (struct slice){ s->p + head, len };
	if (all)
		*all = (struct slice){ s->p, head + len };
	s->p += head + len;
	s->n -= head + len;
	return true;
}

/* The same for one tag; where another stands nothing is taken. */
static bool
tls_der_tag(struct slice *s, unsigned want, struct slice *in,
    struct slice *all)
{
	unsigned tag;

	return s->n && (unsigned char)s->p[0] == want &&
	    tls_der(s, &tag, in, all);
}

/* Object identifiers hold zero bytes: the length is the literal's. */
#define TLS_OID(s, lit) \
	((s).n == sizeof(lit) - 1 && !memcmp((s).p, lit, sizeof(lit) - 1))

/* The inside of SubjectPublicKeyInfo; an unknown kind is no fault. */
static bool
tls_cert_key(struct slice spki, struct tls_cert *c)
{
	struct slice alg, oid, bits, in;

	c->curve = -1;
	if (!tls_der_tag(&spki, 0x30, &alg, NULL) ||
	    !tls_der_tag(&spki, 0x03, &bits, NULL) || bits.n < 2 ||
	    !tls_der_tag(&alg, 0x06, &oid, NULL))
		return false;
	bits.p++;	/* the count of unused bits, always 0 */
	bits.n--;
	if (TLS_OID(oid, "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01")) {
		if (!tls_der_tag(&bits, 0x30, &in, NULL) ||
		    !tls_der_tag(&in, 0x02, &c->a, NULL) ||
		    !tls_der_tag(&in, 0x02, &c->b, NULL))
			return false;
		c->curve = 0;
	} else if (TLS_OID(oid, "\x2a\x86\x48\xce\x3d\x02\x01")) {
		c->a = bits;
		if (!tls_der_tag(&alg, 0x06, &oid, NULL))
			return true;	/* a curve written out: not ours */
		if (TLS_OID(oid, "\x2a\x86\x48\xce\x3d\x03\x01\x07"))
			c->curve = BR_EC_secp256r1;
		else if (TLS_OID(oid, "\x2b\x81\x04\x00\x22"))
			c->curve = BR_EC_secp384r1;
		else if (TLS_OID(oid, "\x2b\x81\x04\x00\x23"))
			c->curve = BR_EC_secp521r1;
	}
	return true;
}

/* The inside of Extensions: basicConstraints and subjectAltName. */
static bool
tls_cert_ext(struct slice list, struct tls_cert *c)
{
	struct slice ext, oid, in, v;

	while (list.n) {
		if (!tls_der_tag(&list, 0x30, &ext, NULL) ||
		    !tls_der_tag(&ext, 0x06, &oid, NULL))
			return false;
		tls_der_tag(&ext, 0x01, &in, NULL);	/* critical */
		if (!tls_der_tag(&ext, 0x04, &v, NULL))
			return false;
		if (TLS_OID(oid, "\x55\x1d\x13"))
			c->ca = tls_der_tag(&v, 0x30, &in, NULL) &&
			    tls_der_tag(&in, 0x01, &v, NULL) &&
			    v.n == 1 && v.p[0];
		else if (TLS_OID(oid, "\x55\x1d\x11") &&
		    !tls_der_tag(&v, 0x30, &c->san, NULL))
			return false;
	}
	return true;
}

/* RFC 5280, 4.1.  false: not the form of a certificate. */
static bool
tls_cert_parse(struct slice der, struct tls_cert *c)
{
	struct slice cert, tbs, in, when;
	unsigned tag;

	*c = (struct tls_cert){ .curve = -1 };
	if (!tls_der_tag(&der, 0x30, &cert, NULL) ||
	    !tls_der_tag(&cert, 0x30, &tbs, NULL))
		return false;
	tls_der_tag(&tbs, 0xa0, &in, NULL);		/* version */
	if (!tls_der_tag(&tbs, 0x02, &in, NULL) ||	/* serial */
	    !tls_der_tag(&tbs, 0x30, &in, NULL) ||	/* algorithm */
	    !tls_der_tag(&tbs, 0x30, &in, &c->issuer) ||
	    !tls_der_tag(&tbs, 0x30, &when, NULL) ||
	    !tls_der_tag(&tbs, 0x30, &in, &c->subject) ||
	    !tls_der(&when, &tag, &c->from, NULL) ||
	    !tls_der(&when, &tag, &c->until, NULL) ||
	    !tls_der_tag(&tbs, 0x30, &in, NULL) || !tls_cert_key(in, c))
		return false;
	tls_der_tag(&tbs, 0x81, &in, NULL);		/* unique ids */
	tls_der_tag(&tbs, 0x82, &in, NULL);
	if (!tls_der_tag(&tbs, 0xa3, &in, NULL))
		return true;
	return tls_der_tag(&in, 0x30, &when, NULL) && tls_cert_ext(when, c);
}

/* Appends at most max bytes of a name from outside, printable ones. */
static void
tls_put_name(struct str *out, struct slice s, size_t max)
{
	size_t i;

	for (i = 0; i < s.n && i < max; i++)
		str_addc(out, s.p[i] > 32 && s.p[i] < 127 && s.p[i] != '\'' ?
		    s.p[i] : s.p[i] == ' ' ? ' ' : '?');
}

/* The common name, or else the organisation, of a DN for a message. */
static void
tls_dn_text(struct slice dn, struct str *out)
{
	struct slice seq, set, pair, oid, v, best = { 0 };
	unsigned tag;
	bool cn = false;

	if (tls_der_tag(&dn, 0x30, &seq, NULL)) {
		while (tls_der_tag(&seq, 0x31, &set, NULL)) {
			if (!tls_der_tag(&set, 0x30, &pair, NULL) ||
			    !tls_der_tag(&pair, 0x06, &oid, NULL) ||
			    !tls_der(&pair, &tag, &v, NULL))
				break;
			if (TLS_OID(oid, "\x55\x04\x03"))
				cn = true;
			else if (cn || !TLS_OID(oid, "\x55\x04\x0a"))
				continue;
			best = v;
		}
	}
	if (best.n)
		tls_put_name(out, best, 64);
	else
		str_adds(out, "(no name)");
}

static void
tls_store_clear(struct tls_store *s)
{
	str_clear(&s->bytes);
	free(s->v);
	*s = (struct tls_store){ 0 };
	str_init(&s->bytes, LIM_PEM);
}

static uint32_t
tls_dn_hash(struct slice dn)
{
	return (uint32_t)core_hash(dn.p, dn.n, 0);
}

/* Adds a certificate as a root, once.  false: one that we cannot use. */
static bool
tls_store_add(struct tls_store *s, const struct tls_cert *c)
{
	struct tls_root r = { .hash = tls_dn_hash(c->subject) };
	size_t all = c->subject.n + c->a.n + c->b.n, i;

	if (c->curve < 0 || c->subject.n > 8192 || c->a.n > 2048 ||
	    c->b.n > 255 || s->bytes.len + all > LIM_PEM)
		return false;
	r.off = (uint32_t)s->bytes.len;
	r.dn = (uint16_t)c->subject.n;
	r.a = (uint16_t)c->a.n;
	r.b = (uint8_t)c->b.n;
	r.curve = (uint8_t)c->curve;
	r.ca = c->ca;
	str_addl(&s->bytes, c->subject);
	str_addl(&s->bytes, c->a);
	str_addl(&s->bytes, c->b);
	for (i = 0; i < s->n; i++) {
		if (s->v[i].hash == r.hash && s->v[i].dn == r.dn &&
		    s->v[i].a == r.a && s->v[i].b == r.b &&
		    s->v[i].ca == r.ca &&
		    !memcmp(s->bytes.p + s->v[i].off, s->bytes.p + r.off,
		    all)) {
			str_cut(&s->bytes, r.off);
			return true;
		}
	}
	s->v = core_grow(s->v, s->n, &s->cap, sizeof(*s->v));
	s->v[s->n++] = r;
	return true;
}

/* BearSSL's form of a root; the bytes stay where they are. */
static void
tls_anchor(const struct tls_root *r, const void *blob,
    br_x509_trust_anchor *ta)
{
	/* The library only reads them, through pointers without const. */
	unsigned char *p = (unsigned char *)(uintptr_t)blob + r->off;

	memset(ta, 0, sizeof(*ta));
	ta->dn.data = p;
	ta->dn.len = r->dn;
	ta->flags = r->ca ? BR_X509_TA_CA : 0;
	p += r->dn;
	if (r->curve) {
		ta->pkey.key_type = BR_KEYTYPE_EC;
		ta->pkey.key.ec.curve = r->curve;
		ta->pkey.key.ec.q = p;
		ta->pkey.key.ec.qlen = r->a;
	} else {
		ta->pkey.key_type = BR_KEYTYPE_RSA;
		ta->pkey.key.rsa.n = p;
		ta->pkey.key.rsa.nlen = r->a;
		ta->pkey.key.rsa.e = p + r->a;
		ta->pkey.key.rsa.elen = r->b;
	}
}

/* Adds the roots of that name to ta[n..max); the new n. */
static size_t
tls_store_find(const struct tls_store *s, struct slice dn,
    br_x509_trust_anchor *ta, size_t n, size_t max)
{
	uint32_t hash = tls_dn_hash(dn);
	const struct tls_root *r;
	size_t i;

	for (r = tls_roots; s->builtin && r->dn; r++)
		if (r->hash == hash && r->dn == dn.n && n < max &&
		    !memcmp(tls_root_bytes + r->off, dn.p, dn.n))
			tls_anchor(r, tls_root_bytes, &ta[n++]);
	for (i = 0; i < s->n; i++) {
		r = &s->v[i];
		if (r->hash == hash && r->dn == dn.n && n < max &&
		    !memcmp(s->bytes.p + r->off, dn.p, dn.n))
			tls_anchor(r, s->bytes.p, &ta[n++]);
	}
	return n;
}

/* Value of a base64 digit; 64 for anything else. */
static unsigned
tls_base64_digit(char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') :
	    c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 26 :
	    c >= '0' && c <= '9' ? (unsigned)(c - '0') + 52 :
	    c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Decodes base64 with blanks anywhere; false: another character. */
static bool
tls_base64(struct slice s, struct str *out)
{
	uint32_t acc = 0;
	unsigned bits = 0, v;
	size_t i;

	if (!str_reserve(out, s.n / 4 * 3 + 3))
		return false;
	for (i = 0; i < s.n && s.p[i] != '='; i++) {
		if (text_is_space(s.p[i]))
			continue;
		v = tls_base64_digit(s.p[i]);
		if (v == 64)
			return false;
		acc = acc << 6 | v;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out->p[out->len++] = (char)(acc >> bits);
		}
	}
	for (; i < s.n; i++)
		if (s.p[i] != '=' && !text_is_space(s.p[i]))
			return false;
	out->p[out->len] = 0;
	return true;
}

/* Adds every certificate of PEM text; how many.  Broken ones are skipped. */
static size_t
tls_pem(struct tls_store *store, struct slice text, const char *origin)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	static const char end[] = "-----END";
	struct slice body;
	struct tls_cert c;
	struct str der;
	const char *p, *q;
	size_t good = 0, nth = 0;

	str_init(&der, LIM_PEM);
	while ((p = memmem(text.p, text.n, begin, sizeof(begin) - 1))) {
		p += sizeof(begin) - 1;
		body = (struct slice){ p, (size_t)(text.p + text.n - p) };
		q = memmem(body.p, body.n, end, sizeof(end) - 1);
		body.n = q ? (size_t)(q - p) : body.n;
		text.n -= (size_t)(body.p + body.n - text.p);
		text.p = body.p + body.n;
		str_reset(&der);
		nth++;
		if (q && tls_base64(body, &der) &&
		    tls_cert_parse(str_slice(&der), &c) &&
		    tls_store_add(store, &c))
			good++;
		else
			log_debug("tls", "certificate %zu of '%s' cannot be "
			    "used; it is left out", nth, origin);
	}
	str_clear(&der);
	return good;
}

/* Adds a file's certificates; one without any is an error. */
static int
tls_load_file(struct tls_store *s, const char *path, struct err *e)
{
	struct str text;
	int r;

	str_init(&text, LIM_PEM);
	r = file_read(path, LIM_PEM, &text, e);
	if (!r && !tls_pem(s, str_slice(&text), path))
		r = err_set(e, ERR_TLS, "there is no usable certificate in "
		    "'%s' (PEM text is expected)", path);
	str_clear(&text);
	return r;
}

/* 12345678.0: a link that c_rehash made; OpenSSL looks at no others. */
static bool
tls_is_hash_name(const char *s)
{
	return strspn(s, "0123456789abcdef") == 8 && s[8] == '.' && s[9] &&
	    !s[9 + strspn(s + 9, "0123456789")];
}

/* Adds the certificates of a folder: its hash links or else all files. */
static int
tls_load_dir(struct tls_store *s, const char *dir, struct err *e)
{
	struct strv names = { 0 };
	bool hashed = false, any = false;
	char *path;
	size_t i;

	if (file_list(dir, &names, e) < 0)
		return -1;
	for (i = 0; i < names.n; i++)
		hashed |= tls_is_hash_name(names.v[i]);
	for (i = 0; i < names.n; i++) {
		if (hashed && !tls_is_hash_name(names.v[i]))
			continue;
		path = file_join(dir, names.v[i]);
		any |= !tls_load_file(s, path, NULL);
		free(path);
	}
	str_list_clear(&names);
	if (!any)
		return err_set(e, ERR_TLS,
		    "there is no usable certificate in the folder '%s'", dir);
	return 0;
}

static const char *
tls_env(const char *name)
{
	const char *s = getenv(name);

	return s && *s ? s : NULL;
}

/*
 * SSL_CERT_FILE and SSL_CERT_DIR (a colon list) stand in place of the
 * compiled-in roots, as with OpenSSL; NODE_EXTRA_CA_CERTS adds, and is left
 * out with a warning where it cannot be read, as Node does.
 */
static int
tls_store_load(struct tls_store *s, struct err *e)
{
	const char *file = tls_env("SSL_CERT_FILE");
	const char *dirs = tls_env("SSL_CERT_DIR");
	const char *extra = tls_env("NODE_EXTRA_CA_CERTS");
	struct slice list = str_of(dirs), item;
	struct err why = { 0 };
	char *dir;
	int r;

	if (s->loaded)
		return 0;
	tls_store_clear(s);
	s->builtin = !file && !dirs;
	if (file && tls_load_file(s, file, e) < 0)
		return err_wrap(e, "SSL_CERT_FILE");
	while (dirs && text_item(&list, ':', &item)) {
		if (!item.n)
			continue;
		dir = core_memdup(item.p, item.n);
		r = tls_load_dir(s, dir, e);
		free(dir);
		if (r < 0)
			return err_wrap(e, "SSL_CERT_DIR");
	}
	if (extra && tls_load_file(s, extra, &why) < 0)
		log_warn("NODE_EXTRA_CA_CERTS: %s; going on without it",
		    why.msg);
	s->loaded = true;
	log_debug("tls", "%zu roots from files, the compiled-in ones %s",
	    s->n, s->builtin ? "too" : "not");
	return 0;
}

#if defined(SA_BOOTSTRAP) || defined(SA_TESTING)
/* By name, then by content: the order of the files makes no difference. */
static int
tls_by_hash(const void *a, const void *b, void *arg)
{
	const struct tls_root *x = a, *y = b;
	const struct str *bytes = arg;
	size_t n = (size_t)x->dn + x->a + x->b, m = (size_t)y->dn + y->a + y->b;
	int r;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	r = memcmp(bytes->p + x->off, bytes->p + y->off, n < m ? n : m);
	return r ? r : n < m ? -1 : n > m;
}

/* Prints roots.h of the PEM files argv[0..argc); an exit status. */
static int
tls_gen_roots(int argc, char **argv)
{
	struct tls_store s = { 0 };
	struct err e = { 0 };
	size_t i, k, off = 0;
	int j;

	tls_store_clear(&s);
	for (j = 0; j < argc; j++) {
		if (tls_load_file(&s, argv[j], &e) < 0) {
			fprintf(stderr, "%s\n", e.msg);
			return 1;
		}
	}
	if (s.n)
		qsort_r(s.v, s.n, sizeof(*s.v), tls_by_hash, &s.bytes);
	printf("/* %zu roots, %zu bytes; made from PEM files */\n"
	    "static const struct tls_root tls_roots[] = {\n", s.n,
	    s.bytes.len);
	for (i = 0; i < s.n; i++) {
		struct tls_root *r = &s.v[i];

		printf("\t{ 0x%08x, %zu, %u, %u, %u, %u, %u },\n", r->hash, off,
		    r->dn, r->a, r->b, r->curve, r->ca);
		off += (size_t)r->dn + r->a + r->b;
	}
	printf("\t{ 0, 0, 0, 0, 0, 0, 0 }\n};\n"
	    "static const unsigned char tls_root_bytes[] = {");
	for (i = 0; i < s.n; i++)
		for (k = 0; k < (size_t)s.v[i].dn + s.v[i].a + s.v[i].b; k++)
			printf("%s%d,", k % 20 ? "" : "\n",
			    (unsigned char)s.bytes.p[s.v[i].off + k]);
	printf("\n0};\n");
	tls_store_clear(&s);
	return fflush(stdout) ? 1 : 0;
}
#endif

/* The i-th certificate of the chain. */
static struct slice
tls_chain_get(const struct tls_x509 *x, size_t i)
{
	size_t from = i ? x->end[i - 1] : 0;

	return (struct slice){ x->chain.p + from, x->end[i] - from };
}

static struct tls_x509 *
tls_x509_of(const br_x509_class **handle)
{
	return (struct tls_x509 *)(void *)handle;
}

static void
tls_x509_start_chain(const br_x509_class **h, const char *name)
{
	struct tls_x509 *x = tls_x509_of(h);

	(void)name;	/* ours, which is there for addresses too */
	str_reset(&x->chain);
	x->n = 0;
	x->over = false;
}

static void
tls_x509_start_cert(const br_x509_class **h, uint32_t length)
{
	struct tls_x509 *x = tls_x509_of(h);

	if (x->n == TLS_CHAIN || length > TLS_CHAIN_BYTES)
		x->over = true;
}

static void
tls_x509_append(const br_x509_class **h, const unsigned char *p, size_t n)
{
	struct tls_x509 *x = tls_x509_of(h);

	if (!x->over)
		str_add(&x->chain, p, n);
	x->over |= x->chain.full;
}

static void
tls_x509_end_cert(const br_x509_class **h)
{
	struct tls_x509 *x = tls_x509_of(h);

	if (!x->over)
		x->end[x->n++] = x->chain.len;
}

/* The roots that the chain's names ask for. */
static size_t
tls_x509_anchors(struct tls_x509 *x)
{
	struct tls_cert c;
	size_t i, n = 0;

	for (i = 0; i < x->n; i++) {
		if (!tls_cert_parse(tls_chain_get(x, i), &c))
			continue;	/* the check will say so */
		if (!i)		/* a server that is itself a root */
			n = tls_store_find(x->store, c.subject, x->anchor, n,
			    TLS_ANCHORS);
		n = tls_store_find(x->store, c.issuer, x->anchor, n,
		    TLS_ANCHORS);
	}
	return n;
}

/* Whether the first certificate is for the address. */
static bool
tls_x509_has_ip(const struct tls_x509 *x)
{
	struct tls_cert c;
	struct slice v;
	unsigned tag;

	if (!x->n || !tls_cert_parse(tls_chain_get(x, 0), &c))
		return false;
	while (tls_der(&c.san, &tag, &v, NULL))
		if (tag == 0x87 && v.n == x->iplen &&
		    !memcmp(v.p, x->ip, v.n))
			return true;
	return false;
}

static unsigned
tls_x509_end_chain(const br_x509_class **h)
{
	struct tls_x509 *x = tls_x509_of(h);
	const br_x509_class **min = &x->min.vtable;
	struct slice der;
	unsigned r;
	size_t i;
	int id;

	if (x->over)
		return BR_ERR_X509_LIMIT_EXCEEDED;
	br_x509_minimal_init(&x->min, &br_sha256_vtable, x->anchor,
	    tls_x509_anchors(x));
	br_x509_minimal_set_rsa(&x->min, br_rsa_pkcs1_vrfy_get_default());
	br_x509_minimal_set_ecdsa(&x->min, br_ec_get_default(),
	    br_ecdsa_vrfy_asn1_get_default());
	id = br_sha256_ID;
	br_x509_minimal_set_hash(&x->min, id, &br_sha256_vtable);
	br_x509_minimal_set_hash(&x->min, br_sha384_ID, &br_sha384_vtable);
	br_x509_minimal_set_hash(&x->min, br_sha512_ID, &br_sha512_vtable);
	(*min)->start_chain(min, x->iplen ? NULL : x->name);
	for (i = 0; i < x->n; i++) {
		der = tls_chain_get(x, i);
		(*min)->start_cert(min, (uint32_t)der.n);
		if (der.n)
			(*min)->append(min, (const unsigned char *)der.p,
			    der.n);
		(*min)->end_cert(min);
	}
	r = (*min)->end_chain(min);
	if (!r && x->iplen && !tls_x509_has_ip(x))
		r = BR_ERR_X509_BAD_SERVER_NAME;
	return r;
}

static const br_x509_pkey *
tls_x509_get_pkey(const br_x509_class *const *h, unsigned *usages)
{
	const struct tls_x509 *x = (const void *)h;

	return x->min.vtable->get_pkey(&x->min.vtable, usages);
}

static const br_x509_class tls_x509_class = {
	sizeof(struct tls_x509),
	tls_x509_start_chain,
	tls_x509_start_cert,
	tls_x509_append,
	tls_x509_end_cert,
	tls_x509_end_chain,
	tls_x509_get_pkey
};

/* The host that is asked for: a name, or an address in digits. */
static void
tls_x509_init(struct tls_x509 *x, const struct tls_store *store,
    const char *host)
{
	x->vtable = &tls_x509_class;
	x->store = store;
	str_init(&x->chain, TLS_CHAIN_BYTES);
	x->n = 0;
	x->name[0] = 0;
	if (inet_pton(AF_INET, host, x->ip) == 1)
		x->iplen = 4;
	else if (inet_pton(AF_INET6, host, x->ip) == 1)
		x->iplen = 16;
	else
		x->iplen = 0;
	if (!x->iplen)
		snprintf(x->name, sizeof(x->name), "%s", host);
}

/* YYYYMMDDHHMMSS out of a certificate's time; "" where it is none. */
static void
tls_when(struct slice t, char out[15])
{
	const char *century = "";

	if (t.n == 13)		/* UTCTime: two digits of the year */
		century = t.p[0] >= '5' ? "19" : "20";
	else if (t.n != 15)
		t.n = 0;
	snprintf(out, 15, "%s%.*s", century, t.n ? (int)t.n - 1 : 0, t.p);
}

/* What is wrong with the dates: the first certificate out of its time. */
static void
tls_say_dates(const struct tls_x509 *x, struct str *out)
{
	char now[15], from[15], until[15];
	time_t t = time(NULL);
	struct tls_cert c;
	struct tm tm;
	size_t i;
	bool late;

	gmtime_r(&t, &tm);
	strftime(now, sizeof(now), "%Y%m%d%H%M%S", &tm);
	for (i = 0; i < x->n; i++) {
		if (!tls_cert_parse(tls_chain_get(x, i), &c))
			continue;
		tls_when(c.from, from);
		tls_when(c.until, until);
		late = strcmp(now, until) > 0;
		if (!late && strcmp(now, from) >= 0)
			continue;
		str_adds(out, "the certificate of '");
		tls_dn_text(c.subject, out);
		str_addf(out, "' %s %.4s-%.2s-%.2s; today is %.4s-%.2s-%.2s"
		    " by this machine's clock",
		    late ? "has expired on" : "is not valid before",
		    late ? until : from, (late ? until : from) + 4,
		    (late ? until : from) + 6, now, now + 4, now + 6);
		return;
	}
	str_adds(out, "a certificate has expired or is not valid yet, by this "
	    "machine's clock");
}

/* Which names the server's certificate has instead of the one wanted. */
static void
tls_say_names(const struct tls_x509 *x, struct str *out)
{
	struct tls_cert c;
	struct slice v;
	unsigned tag, n = 0;

	str_adds(out, "the certificate is for another name");
	if (!x->n || !tls_cert_parse(tls_chain_get(x, 0), &c))
		return;
	while (tls_der(&c.san, &tag, &v, NULL)) {
		if (tag != 0x82 || ++n > 4)
			continue;
		str_adds(out, n == 1 ? ": '" : ", '");
		tls_put_name(out, v, 64);
		str_addc(out, '\'');
	}
	if (n > 4)
		str_adds(out, " and others");
	if (!n) {
		str_adds(out, ": '");
		tls_dn_text(c.subject, out);
		str_addc(out, '\'');
	}
}

/* Who signed, and where a root would have to come from. */
static void
tls_say_root(const struct tls_x509 *x, struct str *out)
{
	struct tls_cert c;

	str_adds(out, "the certificate is signed by '");
	if (x->n && tls_cert_parse(tls_chain_get(x, x->n - 1), &c))
		tls_dn_text(c.issuer, out);
	else
		str_adds(out, "(unreadable)");
	str_addf(out, "', which is not among the trusted roots (%s); for a "
	    "company's or a test CA name its PEM file in NODE_EXTRA_CA_CERTS"
	    "%s", x->store->builtin ? "the compiled-in ones" :
	    "those of SSL_CERT_FILE and SSL_CERT_DIR",
	    x->store->builtin ? " or SSL_CERT_FILE" : "");
}

/* BearSSL's codes that users meet; 256 + n: the server sent alert n. */
static const struct {
	int code;
	enum err_code kind;
	const char *text;
} tls_faults[] = {
	{ BR_ERR_BAD_VERSION, ERR_TLS,
	    "it does not speak TLS 1.2; is this an https port?" },
	{ BR_ERR_UNSUPPORTED_VERSION, ERR_TLS,
	    "it does not speak TLS 1.2; is this an https port?" },
	{ BR_ERR_TOO_LARGE, ERR_NET, "a record is too large" },
	{ BR_ERR_BAD_MAC, ERR_NET, "data were damaged on the way" },
	{ BR_ERR_NO_RANDOM, ERR_TLS, "there are no random bytes" },
	{ BR_ERR_UNKNOWN_TYPE, ERR_TLS,
	    "what answers is not TLS; is this an https port?" },
	{ BR_ERR_BAD_CIPHER_SUITE, ERR_TLS,
	    "it chose a cipher that was not offered" },
	{ BR_ERR_INVALID_ALGORITHM, ERR_TLS,
	    "it uses an algorithm that was not offered" },
	{ BR_ERR_BAD_SIGNATURE, ERR_TLS, "its signature is wrong" },
	{ BR_ERR_WRONG_KEY_USAGE, ERR_TLS,
	    "its certificate is not meant for this use" },
	{ BR_ERR_NO_CLIENT_AUTH, ERR_TLS,
	    "it demands a client certificate, which is not supported" },
	{ BR_ERR_X509_EMPTY_CHAIN, ERR_TLS, "it sent no certificate" },
	{ BR_ERR_X509_UNSUPPORTED, ERR_TLS,
	    "a certificate uses a signature or key that is not supported "
	    "(SHA-1, RSA-PSS, Ed25519 or an odd curve)" },
	{ BR_ERR_X509_LIMIT_EXCEEDED, ERR_TLS,
	    "its certificates or keys are too large" },
	{ BR_ERR_X509_WRONG_KEY_TYPE, ERR_TLS,
	    "its certificate's key does not fit the cipher" },
	{ BR_ERR_X509_BAD_SIGNATURE, ERR_TLS,
	    "a certificate's signature is wrong" },
	{ BR_ERR_X509_DN_MISMATCH, ERR_TLS,
	    "its certificates are in the wrong order or do not belong "
	    "together" },
	{ BR_ERR_X509_CRITICAL_EXTENSION, ERR_TLS,
	    "a certificate has a critical extension that is not supported "
	    "(such as name constraints)" },
	{ BR_ERR_X509_NOT_CA, ERR_TLS,
	    "a certificate was signed by one that is not a CA" },
	{ BR_ERR_X509_FORBIDDEN_KEY_USAGE, ERR_TLS,
	    "a certificate is not meant for this use" },
	{ BR_ERR_X509_WEAK_PUBLIC_KEY, ERR_TLS,
	    "a certificate's key is too short" },
	{ 256 + 40, ERR_TLS, "it accepts none of the TLS 1.2 ciphers and "
	    "signatures offered (ECDHE with AES-GCM or ChaCha20); a local "
	    "http gateway named by the base URL would help" },
	{ 256 + 42, ERR_TLS, "it wants a client certificate" },
	{ 256 + 70, ERR_TLS, "it refuses TLS 1.2 (1.3 alone is not "
	    "supported); a local http gateway named by the base URL would "
	    "help" },
	{ 256 + 71, ERR_TLS, "it finds the ciphers offered too weak" },
	{ 256 + 80, ERR_NET, "it had an internal error" },
	{ 256 + 112, ERR_TLS, "it does not know that host name" },
	{ 256 + 116, ERR_TLS, "it wants a client certificate" },
};

/* Turns the engine's code into an error; returns -1. */
static int
tls_fault(const struct tls *t, int code, struct err *e)
{
	enum err_code kind = ERR_TLS;
	struct str why;
	size_t i;

	str_init(&why, LIM_MSG);
	for (i = 0; i < LENGTH(tls_faults) && !why.len; i++) {
		if (tls_faults[i].code == code) {
			str_adds(&why, tls_faults[i].text);
			kind = tls_faults[i].kind;
		}
	}
	if (code == BR_ERR_X509_EXPIRED || code == BR_ERR_X509_TIME_UNKNOWN)
		tls_say_dates(&t->x509, &why);
	else if (code == BR_ERR_X509_BAD_SERVER_NAME)
		tls_say_names(&t->x509, &why);
	else if (code == BR_ERR_X509_NOT_TRUSTED)
		tls_say_root(&t->x509, &why);
	else if (!why.len && code >= 256)
		str_addf(&why, "alert %d was %s", code & 255,
		    code < 512 ? "received" : "sent");
	else if (!why.len && code > BR_ERR_X509_OK)
		str_adds(&why, "a certificate is malformed");
	else if (!why.len)
		str_adds(&why, "it breaks the TLS protocol");
	err_set(e, kind, "no secure connection to '%s': %s (TLS error %d)",
	    t->peer, why.p, code);
	str_clear(&why);
	return -1;
}

/* The six AEAD suites of TLS 1.2; AES first where the processor has it. */
static void
tls_suites(br_ssl_engine_context *eng)
{
	static const uint16_t aes_first[] = {
		BR_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		BR_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		BR_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		BR_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		BR_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		BR_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	};
	uint16_t suites[LENGTH(aes_first)];

	memcpy(suites, aes_first, sizeof(suites));
	if (!br_aes_x86ni_ctr_get_vtable()) {
		memcpy(suites, aes_first + 2, 2 * sizeof(*suites));
		memcpy(suites + 2, aes_first, 2 * sizeof(*suites));
	}
	br_ssl_engine_set_suites(eng, suites, LENGTH(suites));
}

/* BearSSL's "full" profile less what no server of today needs. */
static void
tls_profile(struct tls *t)
{
	static const char *alpn[] = { "http/1.1" };
	br_ssl_engine_context *eng = &t->ssl.eng;
	unsigned char seed[32];

	br_ssl_client_zero(&t->ssl);
	br_ssl_engine_set_versions(eng, BR_TLS12, BR_TLS12);
	tls_suites(eng);
	br_ssl_engine_set_default_rsavrfy(eng);
	br_ssl_engine_set_default_ecdsa(eng);
	br_ssl_engine_set_hash(eng, br_sha256_ID, &br_sha256_vtable);
	br_ssl_engine_set_hash(eng, br_sha384_ID, &br_sha384_vtable);
	br_ssl_engine_set_hash(eng, br_sha512_ID, &br_sha512_vtable);
	br_ssl_engine_set_prf_sha256(eng, &br_tls12_sha256_prf);
	br_ssl_engine_set_prf_sha384(eng, &br_tls12_sha384_prf);
	br_ssl_engine_set_default_aes_gcm(eng);
	br_ssl_engine_set_default_chapol(eng);
	br_ssl_engine_set_x509(eng, &t->x509.vtable);
	br_ssl_engine_set_protocol_names(eng, alpn, LENGTH(alpn));
	br_ssl_engine_add_flags(eng, BR_OPT_NO_RENEGOTIATION);
	br_ssl_engine_set_buffer(eng, t->buf, sizeof(t->buf), 1);
	/* Its own sources (RDRAND, /dev/urandom) are not relied on. */
	core_random(seed, sizeof(seed));
	br_ssl_engine_inject_entropy(eng, seed, sizeof(seed));
	explicit_bzero(seed, sizeof(seed));
}

/* send(2) that no signal disturbs; -1 with errno EAGAIN: later. */
static ssize_t
tls_fd_send(int fd, const struct iovec *v, size_t n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v,
	    .msg_iovlen = n };
	ssize_t r;

	if (core_fault(FAULT_WRITE)) {
		errno = EPIPE;
		return -1;
	}
	do {
		r = sendmsg(fd, &m, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR && !io_stopped());
	return r;
}

/* Sends one pending piece; false: no progress (see want, out_errno). */
static bool
tls_step_out(struct tls *t)
{
	br_ssl_engine_context *eng = &t->ssl.eng;
	struct iovec v;
	ssize_t r;

	v.iov_base = br_ssl_engine_sendrec_buf(eng, &v.iov_len);
	r = tls_fd_send(t->fd, &v, 1);
	if (r > 0) {
		t->moved += (uint64_t)r;
		br_ssl_engine_sendrec_ack(eng, (size_t)r);
		return true;
	}
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		t->want |= POLLOUT;
	else
		t->out_errno = r < 0 ? errno : EPIPE;
	return false;
}

/* Receives what is there; false: no progress (see want, in_end, e). */
static bool
tls_step_in(struct tls *t, struct err *e)
{
	br_ssl_engine_context *eng = &t->ssl.eng;
	unsigned char *p;
	size_t n;
	ssize_t r;

	p = br_ssl_engine_recvrec_buf(eng, &n);
	r = io_read(t->fd, p, n);
	if (r > 0) {
		t->moved += (uint64_t)r;
		br_ssl_engine_recvrec_ack(eng, (size_t)r);
		return true;
	}
	if (!r)
		t->in_end = true;
	else if (errno == EAGAIN || errno == EINTR)
		t->want |= POLLIN;
	else
		err_set(e, ERR_NET, "the connection to '%s' broke: %s",
		    t->peer, strerror(errno));
	return false;
}

/*
 * Moves records both ways as far as that goes without waiting.  -1: broken;
 * the end of the stream and a failed way out are flags, since an answer may
 * still have to be read.
 */
static int
tls_pump(struct tls *t, struct err *e)
{
	br_ssl_engine_context *eng = &t->ssl.eng;
	struct err local = { 0 };
	int code, steps = TLS_STEPS;
	unsigned st;
	bool moved;

	if (t->pid != core.pid)
		BUG("a TLS connection is used in another process");
	t->want = 0;
	do {
		moved = false;
		st = br_ssl_engine_current_state(eng);
		if ((st & BR_SSL_SENDREC) && !t->out_errno &&
		    !(t->want & POLLOUT))
			moved |= tls_step_out(t);
		st = br_ssl_engine_current_state(eng);
		if ((st & BR_SSL_RECVREC) && !(st & BR_SSL_RECVAPP) &&
		    !t->in_end && !(t->want & POLLIN))
			moved |= tls_step_in(t, &local);
		if (local.code)
			return err_set(e, local.code, "%s", local.msg);
	} while (moved && --steps);
	if (!steps)	/* there is more: let the caller look at the time */
		t->want = POLLIN | (st & BR_SSL_SENDREC ? POLLOUT : 0);
	code = br_ssl_engine_last_error(eng);
	return code ? tls_fault(t, code, e) : 0;
}

/* What to poll for after TLS_AGAIN. */
static short
tls_events(const struct tls *t)
{
	return t->want ? t->want : POLLIN;
}

/* Whether tls_recv() has something without any waiting. */
static bool
tls_has_data(const struct tls *t)
{
	return br_ssl_engine_current_state(&t->ssl.eng) & BR_SSL_RECVAPP;
}

/* Whether the handshake is done; closing counts as done. */
static bool
tls_is_ready(const struct tls *t)
{
	return br_ssl_engine_current_state(&t->ssl.eng) &
	    (BR_SSL_SENDAPP | BR_SSL_RECVAPP | BR_SSL_CLOSED);
}

static int
tls_handshake(struct tls *t, int64_t deadline, struct err *e)
{
	int r;

	for (;;) {
		if (tls_pump(t, e) < 0)
			return -1;
		if (tls_is_ready(t))
			break;
		if (t->in_end || t->out_errno)
			return err_set(e, ERR_NET, "'%s' closed the connection "
			    "during the TLS handshake", t->peer);
		r = io_wait1(t->fd, tls_events(t), deadline, e);
		if (r < 0)
			return -1;
		if (!r || (deadline != IO_FOREVER && core_now() >= deadline))
			return err_set(e, ERR_TIMEOUT, "'%s' did not finish "
			    "the TLS handshake in time", t->peer);
	}
	if (br_ssl_engine_current_state(&t->ssl.eng) & BR_SSL_CLOSED)
		return err_set(e, ERR_NET, "'%s' closed the connection during "
		    "the TLS handshake", t->peer);
	return 0;
}

/*
 * Makes fd (connected, non-blocking, borrowed) a secure connection to host.
 * `ses` is the place for this peer's session: used if it holds one, filled
 * at the end.  Roots are read now if they were not yet.
 */
static int
tls_open(struct tls *t, struct tls_store *store, struct tls_session *ses,
    int fd, const char *host, int port, int64_t deadline, struct err *e)
{
	bool again;

	if (tls_store_load(store, e) < 0)
		return -1;
	t->fd = fd;
	t->pid = core.pid;
	t->in_end = false;
	t->out_errno = 0;
	snprintf(t->peer, sizeof(t->peer), "%s:%d", host, port);
	tls_x509_init(&t->x509, store, host);
	tls_profile(t);
	again = !strcmp(ses->peer, t->peer);
	if (again)
		br_ssl_engine_set_session_parameters(&t->ssl.eng, &ses->p);
	if (!br_ssl_client_reset(&t->ssl, t->x509.iplen ? NULL : host, again))
		return tls_fault(t, br_ssl_engine_last_error(&t->ssl.eng), e);
	ses->peer[0] = 0;
	if (tls_handshake(t, deadline, e) < 0) {
		str_clear(&t->x509.chain);
		return -1;
	}
	log_debug("tls", "'%s': suite %04x, %s", t->peer,
	    t->ssl.eng.session.cipher_suite,
	    t->x509.n ? "certificate accepted" : "session resumed");
	str_clear(&t->x509.chain);
	br_ssl_engine_get_session_parameters(&t->ssl.eng, &ses->p);
	if (ses->p.session_id_len)
		memcpy(ses->peer, t->peer, sizeof(ses->peer));
	return 0;
}

/*
 * The next bytes: > 0; 0 at an announced end; TLS_AGAIN; -1 broken, which
 * an end that was not announced is too (somebody may have cut it).
 */
static ssize_t
tls_recv(struct tls *t, void *buf, size_t max, struct err *e)
{
	br_ssl_engine_context *eng = &t->ssl.eng;
	unsigned char *p;
	size_t n;
	int tries;

	for (tries = 0; tries < 2; tries++) {
		p = br_ssl_engine_recvapp_buf(eng, &n);
		if (p) {
			n = n < max ? n : max;
			memcpy(buf, p, n);
			br_ssl_engine_recvapp_ack(eng, n);
			return (ssize_t)n;
		}
		if (!tries && tls_pump(t, e) < 0)
			return -1;
	}
	if (br_ssl_engine_current_state(eng) & BR_SSL_CLOSED)
		return 0;
	if (t->in_end)
		return err_set(e, ERR_NET, "the connection to '%s' was cut",
		    t->peer);
	return TLS_AGAIN;
}

/* Takes bytes to send as far as there is room: how many; -1 broken. */
static ssize_t
tls_send(struct tls *t, const void *data, size_t max, struct err *e)
{
	unsigned char *p;
	size_t n = 0;

	p = br_ssl_engine_sendapp_buf(&t->ssl.eng, &n);
	if (p && n) {
		n = n < max ? n : max;
		memcpy(p, data, n);
		br_ssl_engine_sendapp_ack(&t->ssl.eng, n);
	} else {
		n = 0;
	}
	if (t->out_errno)
		return err_set(e, ERR_NET, "cannot send to '%s': %s", t->peer,
		    strerror(t->out_errno));
	if (br_ssl_engine_current_state(&t->ssl.eng) & BR_SSL_CLOSED)
		return err_set(e, ERR_NET, "'%s' closed the connection",
		    t->peer);
	return (ssize_t)n;
}

/* Sends what tls_send() took.  1: all; 0: some is left; -1 broken. */
static int
tls_flush(struct tls *t, struct err *e)
{
	br_ssl_engine_flush(&t->ssl.eng, 0);
	if (tls_pump(t, e) < 0)
		return -1;
	if (t->out_errno)
		return err_set(e, ERR_NET, "cannot send to '%s': %s", t->peer,
		    strerror(t->out_errno));
	return !(br_ssl_engine_current_state(&t->ssl.eng) & BR_SSL_SENDREC);
}

/* Says good-bye if that takes no waiting, and forgets the keys. */
static void
tls_close(struct tls *t)
{
	if (t->pid == core.pid && !t->out_errno && !t->in_end &&
	    tls_is_ready(t)) {
		br_ssl_engine_close(&t->ssl.eng);
		tls_pump(t, NULL);
	}
	explicit_bzero((void *)t, sizeof(t->ssl));	/* its first member */
	t->fd = -1;
}

/*=== [http] proxy, HTTP/1.1, keep-alive, what may be retried ================
 * uses: core str err log text io dns tls
 *
 * A client with one connection that it keeps.  Every wait has a limit and
 * ends with a stop signal.  While a request goes out an answer is already
 * listened for: a server that refuses a large body says so early.  A kept
 * connection that turns out dead before the first byte of an answer is
 * replaced once, silently.
 *
 * ERR_NET and ERR_TIMEOUT are worth another try; ERR_TLS, ERR_DENIED (the
 * proxy), ERR_NOTFOUND (no such host), ERR_USAGE (the address) and ERR_API
 * (a redirect) are not.  Texts never hold a proxy's password.
 *
 * After a fork the child may go on with the same struct: the connection is
 * the parent's and is forgotten, names and TLS sessions are still good.
 *==========================================================================*/

#define LIM_HEAD (64u << 10)	/* a response's head; also its trailer */
#define HTTP_READ 16384
#define HTTP_LOOKUP 20000	/* ms; limits where a request gives none */
#define HTTP_CONNECT 30000
#define HTTP_HANDSHAKE 30000
#define HTTP_IDLE 300000
#define HTTP_STAGGER 250	/* ms before the next address is tried too */
#define HTTP_LAST_WORDS 2000	/* ms for an answer when sending broke */
#define HTTP_UNACKED 60000	/* ms that sent bytes may go unacknowledged */
#define HTTP_CACHE 4		/* hosts whose addresses and keys are kept */

struct http_url {
	bool secure;
	char *host;		/* lower case, no brackets */
	int port;
	char *path;		/* with the query; starts with a slash */
};

/* How to get there. */
struct http_proxy {
	char *host;		/* NULL: directly */
	int port;
	char *auth;		/* base64 of user:password, or NULL */
};

struct http_req {
	const char *method;
	const char *url;
	const char *const *headers;	/* "Name: value", NULL-ended */
	const struct slice *body;	/* pieces, sent one after another */
	size_t nbody;
	int64_t lookup_ms, connect_ms, handshake_ms;	/* 0: as usual */
	int64_t head_ms;	/* from the request to the response's head */
	int64_t idle_ms;	/* of silence, anew with each byte */
	int64_t deadline;	/* for all of it; 0, IO_FOREVER: none */
};

struct http_resp {
	int status;
	int minor;		/* of HTTP/1.x */
	struct str head;	/* the header lines */
};

enum http_framing {
	HTTP_NONE,		/* no body */
	HTTP_LENGTH,
	HTTP_CHUNKED,
	HTTP_CLOSE		/* up to the end of the connection */
};

/* Where in the chunked coding we are (RFC 9112, 7.1). */
enum http_place {
	CHUNK_SIZE,
	CHUNK_EXT,		/* behind the digits, up to the line's end */
	CHUNK_DATA,
	CHUNK_CR,		/* the line end behind the data */
	CHUNK_LF,
	CHUNK_TRAILER,		/* at the start of a line */
	CHUNK_LINE,		/* within one */
	CHUNK_LAST,		/* the LF of the empty line */
	CHUNK_END
};

struct http_chunk {
	enum http_place at;
	int digits;
	uint64_t left;		/* of the size, then of the data */
	size_t other;		/* extension and trailer bytes so far */
};

struct http_host {
	char *name;
	struct dns_list list;
};

struct http {
	char *proxy[2];		/* of http and https, as given */
	char *no_proxy;
	struct http_host host[HTTP_CACHE];
	struct tls_session session[HTTP_CACHE];
	unsigned next_host, next_session;
	struct tls_store store;
	struct tls *tls;	/* made at the first https connection */

	/* the connection */
	int fd;			/* -1: none */
	pid_t pid;		/* whose it is */
	bool secure;
	char *key;		/* where it leads, and through what */
	char who[320];		/* the other side, for messages */
	struct str in;		/* bytes received and not yet used */
	size_t at;		/* where in it we are */
	uint64_t moved;		/* bytes on the wire */

	/* the exchange */
	int64_t idle_ms, deadline;
	bool busy;		/* between http_send() and http_done() */
	bool keep;		/* may serve another one afterwards */
	bool done;		/* the body's end was reached */
	enum http_framing framing;
	uint64_t left;
	struct http_chunk chunk;
};

static void
http_url_clear(struct http_url *u)
{
	free(u->host);
	free(u->path);
	*u = (struct http_url){ 0 };
}

/* host[:port] or [IPv6][:port]; false: neither. */
static bool
http_authority(struct slice s, int port, char **host, int *out)
{
	const char *colon;
	bool literal = s.n && s.p[0] == '[';
	struct slice name = s;
	unsigned char bin[16];
	int64_t n = port;
	size_t i;

	if (literal) {
		colon = memchr(s.p, ']', s.n);
		if (!colon)
			return false;
		name = (struct slice){ s.p + 1, (size_t)(colon - s.p) - 1 };
		s.n -= (size_t)(colon + 1 - s.p);
		s.p = colon + 1;
	} else {
		colon = s.n ? memchr(s.p, ':', s.n) : NULL;
		name.n = colon ? (size_t)(colon - s.p) : s.n;
		s.p += name.n;
		s.n -= name.n;
	}
	if (s.n && (s.p[0] != ':' || (s.n > 1 && !text_int((struct slice){
	    s.p + 1, s.n - 1 }, 1, 65535, &n))))
		return false;
	if (!name.n || name.n > 253)
		return false;
	*host = core_memdup(name.p, name.n);
	*out = (int)n;
	for (i = 0; i < name.n; i++) {
		(*host)[i] = (char)tolower((unsigned char)name.p[i]);
		if (!isalnum((unsigned char)name.p[i]) &&
		    !strchr("-._:", name.p[i]))
			goto bad;
	}
	if (!literal || inet_pton(AF_INET6, *host, bin) == 1)
		return true;
bad:
	free(*host);
	*host = NULL;
	return false;
}

/* Only what is a URL goes on; the fragment is dropped. */
static int
http_url_parse(const char *url, struct http_url *u, struct err *e)
{
	struct slice rest, auth;
	size_t i;

	*u = (struct http_url){ 0 };
	for (i = 0; url[i]; i++)
		if (url[i] <= ' ' || url[i] > '~')
			return err_set(e, ERR_USAGE, "an address may have "
			    "neither blanks nor letters beyond ASCII");
	u->secure = !strncasecmp(url, "https://", 8);
	if (!u->secure && strncasecmp(url, "http://", 7))
		return err_set(e, ERR_USAGE, "'%.200s' is not an http or "
		    "https address", url);
	rest = str_of(url + (u->secure ? 8 : 7));
	auth = (struct slice){ rest.p, strcspn(rest.p, "/?#") };
	if (memchr(auth.p, '@', auth.n))
		return err_set(e, ERR_USAGE, "an address with a user name in "
		    "it is not supported; use a header");
	if (!http_authority(auth, u->secure ? 443 : 80, &u->host, &u->port))
		return err_set(e, ERR_USAGE, "'%.200s' has no valid host and "
		    "port", url);
	rest.p += auth.n;
	rest.n = strcspn(rest.p, "#");
	u->path = core_alloc(rest.n + 2);
	snprintf(u->path, rest.n + 2, "%s%.*s", *rest.p == '/' ? "" : "/",
	    (int)rest.n, rest.p);
	return 0;
}

/* host:port; the port is left out where `usual` is it. */
static void
http_put_host(struct str *out, const char *host, int port, int usual)
{
	bool ipv6 = strchr(host, ':') != NULL;

	str_addf(out, "%s%s%s", ipv6 ? "[" : "", host, ipv6 ? "]" : "");
	if (port != usual)
		str_addf(out, ":%d", port);
}

/* Percent signs resolved. */
static void
http_unescape(struct slice s, struct str *out)
{
	size_t i;

	for (i = 0; i < s.n; i++) {
		if (s.p[i] == '%' && s.n - i > 2 &&
		    isxdigit((unsigned char)s.p[i + 1]) &&
		    isxdigit((unsigned char)s.p[i + 2])) {
			char hex[3] = { s.p[i + 1], s.p[i + 2], 0 };

			str_addc(out, (char)strtoul(hex, NULL, 16));
			i += 2;
		} else {
			str_addc(out, s.p[i]);
		}
	}
}

static void
http_base64(struct slice s, struct str *out)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t v;
	size_t i, k;

	for (i = 0; i < s.n; i += 3) {
		for (v = 0, k = 0; k < 3; k++)
			v = v << 8 | (i + k < s.n ?
			    (unsigned char)s.p[i + k] : 0u);
		for (k = 0; k < 4; k++)
			str_addc(out, i + k > s.n ? '=' :
			    digit[v >> (18 - 6 * k) & 63]);
	}
}

static void
http_proxy_clear(struct http_proxy *p)
{
	free(p->host);
	if (p->auth)
		explicit_bzero(p->auth, strlen(p->auth));
	free(p->auth);
	*p = (struct http_proxy){ 0 };
}

/* The secret is kept out of logs in every form that it has. */
static void
http_proxy_auth(struct http_proxy *p, struct slice user)
{
	struct str plain, coded;
	char *colon;

	str_init(&plain, 0);
	str_init(&coded, 0);
	http_unescape(user, &plain);
	http_base64(str_slice(&plain), &coded);
	colon = strchr(plain.p, ':');
	if (colon)
		log_secret(colon + 1);
	log_secret(coded.p);
	p->auth = str_detach(&coded);
	str_clear(&plain);
}

/* [http://][user[:password]@]host[:port][/] */
static int
http_proxy_parse(const char *text, struct http_proxy *p, struct err *e)
{
	const char *scheme = strstr(text, "://"), *rest = text, *at;
	struct slice auth;

	*p = (struct http_proxy){ 0 };
	if (scheme)
		rest = scheme + 3;
	auth = (struct slice){ rest, strcspn(rest, "/") };
	at = auth.n ? memrchr(auth.p, '@', auth.n) : NULL;
	if (scheme && strncasecmp(text, "http://", 7))
		return err_set(e, ERR_USAGE, "the proxy's address begins with "
		    "'%.*s'; only http:// proxies are supported",
		    (int)(scheme - text > 20 ? 20 : scheme - text), text);
	if (at) {
		http_proxy_auth(p, (struct slice){ rest,
		    (size_t)(at - rest) });
		auth.n -= (size_t)(at + 1 - rest);
		auth.p = at + 1;
	}
	if (!http_authority(auth, 80, &p->host, &p->port)) {
		http_proxy_clear(p);
		return err_set(e, ERR_USAGE, "the proxy's address has no "
		    "valid host and port");
	}
	return 0;
}

/* An address's bytes: 4, 16, or 0 for a name. */
static size_t
http_ip(const char *host, unsigned char bin[16])
{
	return inet_pton(AF_INET, host, bin) == 1 ? 4 :
	    inet_pton(AF_INET6, host, bin) == 1 ? 16 : 0;
}

/* Whether host is an address within address/bits. */
static bool
http_in_net(const char *host, const char *net)
{
	unsigned char a[16], b[16];
	const char *slash = strchr(net, '/');
	size_t n = http_ip(host, a), i;
	char buf[64];
	int64_t bits;

	if (!n || !slash || (size_t)(slash - net) >= sizeof(buf))
		return false;
	memcpy(buf, net, (size_t)(slash - net));
	buf[slash - net] = 0;
	if (http_ip(buf, b) != n ||
	    !text_int(str_of(slash + 1), 0, (int64_t)n * 8, &bits))
		return false;
	for (i = 0; i < (size_t)bits; i++)
		if ((a[i / 8] ^ b[i / 8]) & (0x80 >> i % 8))
			return false;
	return true;
}

/* One item of no_proxy: *, name, .suffix, *.suffix, address, net; [:port]. */
static bool
http_no_proxy_item(const char *item, const char *host, int port)
{
	char *name = NULL;
	size_t n = strlen(host), m;
	unsigned char bin[16];
	bool hit = false;
	int want;

	if (!strcmp(item, "*") || !strcasecmp(item, host) ||
	    http_in_net(host, item))
		return true;
	item += *item == '*';
	item += *item == '.';
	if (!http_authority(str_of(item), port, &name, &want))
		return false;
	m = strlen(name);
	if (want == port && n >= m && !strcasecmp(host + n - m, name))
		hit = n == m || (host[n - m - 1] == '.' && !http_ip(host, bin));
	free(name);
	return hit;
}

static bool
http_is_loopback(const char *host)
{
	unsigned char bin[16];
	size_t n = http_ip(host, bin);

	return n == 4 ? bin[0] == 127 : n == 16 ? !strcmp(host, "::1") :
	    dns_is_localhost(host);
}

/* Whether the host is to be reached directly; loopback always is. */
static bool
http_no_proxy(const char *list, const char *host, int port)
{
	char item[300];
	size_t n;

	if (http_is_loopback(host))
		return true;
	while (list && *list) {
		list += strspn(list, ", \t");
		n = strcspn(list, ", \t");
		if (n && n < sizeof(item)) {
			memcpy(item, list, n);
			item[n] = 0;
			if (http_no_proxy_item(item, host, port))
				return true;
		}
		list += n;
	}
	return false;
}

static const char *
http_env(const char *lower, const char *upper)
{
	const char *s = getenv(lower);

	if (!s)
		s = getenv(upper);
	return s && *s ? s : NULL;
}

static struct http *
http_new(void)
{
	struct http *h = core_zalloc(sizeof(*h));

	/* In a CGI program HTTP_PROXY is what a visitor's header said. */
	h->proxy[0] = core_strdup(http_env("http_proxy",
	    getenv("REQUEST_METHOD") ? "http_proxy" : "HTTP_PROXY"));
	h->proxy[1] = core_strdup(http_env("https_proxy", "HTTPS_PROXY"));
	h->no_proxy = core_strdup(http_env("no_proxy", "NO_PROXY"));
	str_init(&h->in, LIM_HEAD + HTTP_READ);
	str_init(&h->store.bytes, 0);
	h->fd = -1;
	return h;
}

/* Forgets the connection; only its own process closes it. */
static void
http_drop(struct http *h)
{
	if (h->fd >= 0 && h->pid == core.pid) {
		if (h->secure)
			tls_close(h->tls);
		close(h->fd);
	}
	h->fd = -1;
	h->secure = h->busy = h->keep = false;
	free(h->key);
	h->key = NULL;
	str_reset(&h->in);
	h->at = 0;
}

static void
http_free(struct http *h)
{
	size_t i;

	if (!h)
		return;
	http_drop(h);
	for (i = 0; i < HTTP_CACHE; i++)
		free(h->host[i].name);
	free(h->proxy[0]);
	free(h->proxy[1]);
	free(h->no_proxy);
	tls_store_clear(&h->store);
	explicit_bzero(h->session, sizeof(h->session));
	free(h->tls);
	str_clear(&h->in);
	free(h);
}

/* An error about the other side: "<who> <what>". */
static int __attribute__((format(printf, 4, 5)))
http_fail(const struct http *h, enum err_code code, struct err *e,
    const char *fmt, ...)
{
	char what[LIM_MSG / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, code, "%s %s", h->who, what);
}

/* Bytes that came: > 0; 0 the end; TLS_AGAIN; -1. */
static ssize_t
http_recv(struct http *h, char *buf, size_t n, struct err *e)
{
	ssize_t r;

	if (h->secure) {
		r = tls_recv(h->tls, buf, n, e);
		h->moved = h->tls->moved;
		return r;
	}
	r = io_read(h->fd, buf, n);
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return TLS_AGAIN;
	if (r < 0)
		return http_fail(h, ERR_NET, e, "broke the connection: %s",
		    strerror(errno));
	h->moved += (uint64_t)r;
	return r;
}

/* Takes the bytes before h->at out of h->in, and reads more into it. */
static ssize_t
http_fill(struct http *h, struct err *e)
{
	ssize_t r;

	str_remove(&h->in, 0, h->at);
	h->at = 0;
	if (!str_reserve(&h->in, HTTP_READ))
		return http_fail(h, ERR_NET, e, "sends a head of more than "
		    "%u bytes", LIM_HEAD);
	r = http_recv(h, h->in.p + h->in.len, HTTP_READ, e);
	if (r > 0) {
		h->in.len += (size_t)r;
		h->in.p[h->in.len] = 0;
	}
	return r;
}

/* What is still to be sent. */
struct http_out {
	const struct slice *v;
	size_t n;
	size_t i;		/* the piece, and the place in it */
	size_t off;
	bool dead;		/* sending failed for good */
};

static bool
http_out_done(struct http_out *o)
{
	while (o->i < o->n && o->off == o->v[o->i].n) {
		o->i++;
		o->off = 0;
	}
	return o->i == o->n;
}

static void
http_out_skip(struct http_out *o, size_t n)
{
	size_t k;

	while (n > 0 && !http_out_done(o)) {
		k = o->v[o->i].n - o->off;
		k = k < n ? k : n;
		o->off += k;
		n -= k;
	}
}

/* Sends pieces as they are, many with one call. */
static int
http_push_plain(struct http *h, struct http_out *o, struct err *e)
{
	struct iovec v[32];
	size_t i, k;
	ssize_t r;

	while (!http_out_done(o)) {
		for (k = 0, i = o->i; i < o->n && k < LENGTH(v); i++) {
			size_t off = i == o->i ? o->off : 0;

			if (o->v[i].n == off)
				continue;
			v[k].iov_base = (char *)(uintptr_t)o->v[i].p + off;
			v[k++].iov_len = o->v[i].n - off;
		}
		r = tls_fd_send(h->fd, v, k);
		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (r < 0)
			return http_fail(h, ERR_NET, e,
			    "takes no more data: %s", strerror(errno));
		h->moved += (uint64_t)r;
		http_out_skip(o, (size_t)r);
	}
	return 1;
}

/* Sends pieces in records that are as full as can be. */
static int
http_push_tls(struct http *h, struct http_out *o, struct err *e)
{
	int all, stuck = 0;
	ssize_t r;

	while (!http_out_done(o)) {
		r = tls_send(h->tls, o->v[o->i].p + o->off,
		    o->v[o->i].n - o->off, e);
		if (r < 0)
			return -1;
		http_out_skip(o, (size_t)r);
		stuck = r ? 0 : stuck + 1;
		if (r > 0)
			continue;
		all = tls_flush(h->tls, e);
		h->moved = h->tls->moved;
		if (all <= 0 || stuck > 1)
			return all < 0 ? -1 : 0;
	}
	all = tls_flush(h->tls, e);
	h->moved = h->tls->moved;
	return all;
}

/* 1: everything is sent; 0: wait; -1: it cannot be. */
static int
http_push(struct http *h, struct http_out *o, struct err *e)
{
	return h->secure ? http_push_tls(h, o, e) : http_push_plain(h, o, e);
}

/* Waits for the socket, up to a limit on silence; -1 past that. */
static int
http_wait(struct http *h, bool sending, int64_t limit, struct err *e)
{
	short events = h->secure ? tls_events(h->tls) :
	    (short)(POLLIN | (sending ? POLLOUT : 0));
	int r;

	/* Sending may have taken an answer in as well. */
	if (h->secure && tls_has_data(h->tls))
		return 1;
	limit = io_sooner(limit, h->deadline);
	r = io_wait1(h->fd, events, limit, e);
	/* One who never stops talking must not get past it either. */
	if (r == 0 || (r > 0 && limit != IO_FOREVER && core_now() >= limit))
		return http_fail(h, ERR_TIMEOUT, e, "was silent for too long");
	return r;
}

/* Name without a value behind it, where a header line begins. */
static bool
http_line_is(struct slice line, const char *name, struct slice *value)
{
	size_t n = strlen(name);

	if (line.n <= n || line.p[n] != ':' || strncasecmp(line.p, name, n))
		return false;
	*value = text_trim((struct slice){ line.p + n + 1, line.n - n - 1 });
	return true;
}

/* The value of the first header of that name; p is NULL where none is. */
static struct slice
http_header(const struct http_resp *r, const char *name)
{
	struct slice all = str_slice(&r->head), line, v;

	while (text_line(&all, &line))
		if (http_line_is(line, name, &v))
			return v;
	return (struct slice){ NULL, 0 };
}

/* Whether a header's list, or a value's first part, has the word. */
static bool
http_header_has(const struct http_resp *r, const char *name,
    const char *word)
{
	struct slice all = str_slice(&r->head), line, v, item, part;

	while (text_line(&all, &line)) {
		if (!http_line_is(line, name, &v))
			continue;
		while (text_item(&v, ',', &item))
			if (text_item(&item, ';', &part) &&
			    part.n == strlen(word) &&
			    !strncasecmp(part.p, word, part.n))
				return true;
	}
	return false;
}

static void
http_resp_clear(struct http_resp *r)
{
	if (r->head.p)
		str_clear(&r->head);
	*r = (struct http_resp){ 0 };
	str_init(&r->head, LIM_HEAD);
}

/* A header line has a name of letters and signs, then at once a colon. */
static bool
http_line_ok(struct slice line)
{
	size_t i;

	for (i = 0; i < line.n && line.p[i] != ':'; i++)
		if (!isalnum((unsigned char)line.p[i]) &&
		    !strchr("!#$%&'*+-.^_`|~", line.p[i]))
			return false;
	return i > 0 && i < line.n && !memchr(line.p, 0, line.n);
}

/* Bytes of the head that stands at the start of s, 0 where it is not whole. */
static size_t
http_head_end(struct slice s)
{
	const char *p = s.p, *nl;
	size_t left = s.n;

	while ((nl = left ? memchr(p, '\n', left) : NULL)) {
		left -= (size_t)(nl + 1 - p);
		p = nl + 1;
		if (left && *p == '\n')
			return (size_t)(p + 1 - s.p);
		if (left > 1 && p[0] == '\r' && p[1] == '\n')
			return (size_t)(p + 2 - s.p);
	}
	return 0;
}

/* "HTTP/1.1 200 OK" */
static bool
http_status(struct slice line, struct http_resp *r)
{
	int64_t status;

	if (line.n < 12 || memcmp(line.p, "HTTP/1.", 7) ||
	    !isdigit((unsigned char)line.p[7]) || line.p[8] != ' ' ||
	    (line.n > 12 && line.p[12] != ' ' && line.p[12] != '\r') ||
	    !text_int((struct slice){ line.p + 9, 3 }, 100, 999, &status))
		return false;
	r->minor = line.p[7] - '0';
	r->status = (int)status;
	return true;
}

/*
 * Reads a response's head at the start of s.  1: it is in r, *used bytes
 * long; 0: more bytes are needed; -1: that is no HTTP/1.x.
 */
static int
http_head_parse(struct slice s, struct http_resp *r, size_t *used)
{
	struct slice line;

	http_resp_clear(r);
	*used = http_head_end(s);
	if (!*used) {
		/* What cannot become a head is not waited for. */
		line = (struct slice){ s.p, s.n < 7 ? s.n : 7 };
		return s.n > LIM_HEAD || memcmp("HTTP/1.", line.p, line.n) ?
		    -1 : 0;
	}
	s.n = *used;
	if (*used > LIM_HEAD || !text_line(&s, &line) ||
	    !http_status(line, r))
		return -1;
	while (text_line(&s, &line)) {
		while (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (!line.n)
			break;
		if (line.p[0] == ' ' || line.p[0] == '\t') {
			/* Old folding: the line goes on (RFC 9112, 5.2). */
			if (!r->head.len || memchr(line.p, 0, line.n))
				return -1;
			r->head.p[r->head.len - 1] = ' ';
		} else if (!http_line_ok(line)) {
			return -1;
		}
		str_addl(&r->head, line);
		str_addc(&r->head, '\n');
	}
	return 1;
}

/* All Content-Length values agree: 1 and *out; none: 0; broken: -1. */
static int
http_length(const struct http_resp *r, uint64_t *out)
{
	struct slice all = str_slice(&r->head), line, v, item;
	int64_t n, first = -1;

	while (text_line(&all, &line)) {
		if (!http_line_is(line, "content-length", &v))
			continue;
		while (text_item(&v, ',', &item)) {
			if (!item.n || !isdigit((unsigned char)item.p[0]) ||
			    !text_int(item, 0, INT64_MAX, &n) ||
			    (first >= 0 && n != first))
				return -1;
			first = n;
		}
	}
	*out = first < 0 ? 0 : (uint64_t)first;
	return first >= 0;
}

/* How the body ends (RFC 9112, 6.3).  -1: nobody can tell. */
static int
http_frame(const struct http_resp *r, const char *method,
    enum http_framing *framing, uint64_t *left)
{
	struct slice te = http_header(r, "transfer-encoding");
	int has = http_length(r, left);

	if (!strcmp(method, "HEAD") || r->status == 204 || r->status == 304) {
		*framing = HTTP_NONE;
		return 0;
	}
	if (te.p) {
		/* Nothing but chunked was asked for. */
		*framing = HTTP_CHUNKED;
		return te.n == 7 && !strncasecmp(te.p, "chunked", 7) ? 0 : -1;
	}
	*framing = has ? HTTP_LENGTH : HTTP_CLOSE;
	return has < 0 ? -1 : 0;
}

/* One byte that is not data; false: it may not stand there. */
static bool
http_chunk_byte(struct http_chunk *c, char b)
{
	bool digit = isxdigit((unsigned char)b);

	switch (c->at) {
	case CHUNK_SIZE:
		if (digit && ++c->digits <= 15) {
			c->left = c->left << 4 | (uint64_t)(isdigit(
			    (unsigned char)b) ? b - '0' : (b | 32) - 'a' + 10);
			return true;
		}
		if (digit || !c->digits || !strchr("\r\n; \t", b) || !b)
			return false;
		c->at = CHUNK_EXT;
		/* fall through */
	case CHUNK_EXT:
		c->other++;
		if (b == '\n')
			c->at = c->left ? CHUNK_DATA : CHUNK_TRAILER;
		return true;
	case CHUNK_CR:
		c->at = b == '\r' ? CHUNK_LF : CHUNK_SIZE;
		c->digits = 0;
		return b == '\r' || b == '\n';
	case CHUNK_LF:
		c->at = CHUNK_SIZE;
		return b == '\n';
	case CHUNK_TRAILER:
	case CHUNK_LINE:
		c->other++;
		if (c->at == CHUNK_TRAILER && (b == '\r' || b == '\n'))
			c->at = b == '\r' ? CHUNK_LAST : CHUNK_END;
		else
			c->at = b == '\n' ? CHUNK_TRAILER : CHUNK_LINE;
		return true;
	case CHUNK_LAST:
		c->at = CHUNK_END;
		return b == '\n';
	default:
		return false;
	}
}

/*
 * Decodes chunks from *in to out, until one of them is used up or the end
 * (CHUNK_END) is reached.  The bytes written; -1: broken.
 */
static ssize_t
http_chunk_feed(struct http_chunk *c, struct slice *in, char *out,
    size_t max)
{
	size_t n = 0, k;

	while (in->n && n < max && c->at != CHUNK_END) {
		if (c->at != CHUNK_DATA) {
			if (!http_chunk_byte(c, *in->p) ||
			    c->other > LIM_HEAD)
				return -1;
			in->p++;
			in->n--;
			continue;
		}
		k = in->n < max - n ? in->n : max - n;
		if (k > c->left)
			k = (size_t)c->left;
		memcpy(out + n, in->p, k);
		n += k;
		in->p += k;
		in->n -= k;
		c->left -= k;
		if (!c->left)
			c->at = CHUNK_CR;
	}
	return (ssize_t)n;
}

/* The first bytes of what is no HTTP, for the error. */
static int
http_not_http(struct http *h, struct err *e)
{
	struct slice s = { h->in.p + h->at, h->in.len - h->at };
	struct str shown;

	str_init(&shown, 128);
	tls_put_name(&shown, s, 60);
	http_fail(h, ERR_NET, e, "gives an answer that is no valid HTTP/1.1"
	    "%s: '%s'", s.n && s.p[0] == 0x15 ?
	    " (it wants https, it seems)" : "", shown.p);
	str_clear(&shown);
	return -1;
}

/* Takes a whole head out of h->in.  1: r is final; 0: more; -1. */
static int
http_take_head(struct http *h, struct http_resp *r, struct err *e)
{
	struct slice s;
	size_t used;
	int got;

	for (;;) {
		s = (struct slice){ h->in.p + h->at, h->in.len - h->at };
		if (!s.n)
			return 0;
		got = http_head_parse(s, r, &used);
		if (got < 0 || (got && r->status == 101))
			return http_not_http(h, e);
		if (!got)
			return 0;
		h->at += used;
		if (r->status >= 200)
			return 1;
	}
}

/*
 * Sends and listens at once, up to the head of the final response.  `limit`
 * is for the head; until everything is sent, silence is limited as well.
 */
static int
http_talk(struct http *h, struct http_out *o, int64_t limit,
    struct http_resp *r, struct err *e)
{
	int64_t from = core_now(), quiet = io_in(h->idle_ms);
	struct err sending = { 0 };
	uint64_t seen = h->moved;
	size_t heads = 0;
	bool sent = false;
	ssize_t n;
	int k;

	for (;;) {
		n = http_fill(h, e);
		if (n == -1)
			return -1;
		if (n > 0) {
			heads += (size_t)n;
			k = heads > 2 * LIM_HEAD ? http_not_http(h, e) :
			    http_take_head(h, r, e);
			if (k < 0)
				return -1;
			h->keep = sent;
			if (k)
				return 0;
		}
		if (!n)
			return sending.code ? err_set(e, sending.code, "%s",
			    sending.msg) : http_fail(h, ERR_NET, e,
			    "closed the connection without an answer");
		if (!sent && !o->dead) {
			k = http_push(h, o, &sending);
			sent = k > 0;
			o->dead = k < 0;
			if (sent && limit != IO_FOREVER)
				limit += core_now() - from;
			if (o->dead)	/* it may have said why */
				limit = io_sooner(limit,
				    io_in(HTTP_LAST_WORDS));
		}
		if (h->moved != seen || n > 0) {
			seen = h->moved;
			quiet = io_in(h->idle_ms);
			if (n > 0)
				continue;
		}
		if (http_wait(h, !sent && !o->dead, sent || o->dead ? limit :
		    quiet, sending.code ? NULL : e) < 0)
			return sending.code && !io_stopped() ? err_set(e,
			    sending.code, "%s", sending.msg) : -1;
	}
}

/* The host's addresses, from the cache if they are there. */
static int
http_lookup(struct http *h, const char *host, int64_t deadline,
    struct dns_list *out, struct err *e)
{
	struct dns_conf conf = { 0 };
	struct http_host *c;
	size_t i;
	int r;

	for (i = 0; i < HTTP_CACHE; i++) {
		c = &h->host[i];
		if (c->name && !strcmp(c->name, host)) {
			*out = c->list;
			return 0;
		}
	}
	dns_conf_clear(&conf);
	dns_conf_load(&conf, "/etc/resolv.conf");
	r = dns_lookup(&conf, host, deadline, out, e);
	dns_conf_clear(&conf);
	if (r < 0)
		return -1;
	c = &h->host[h->next_host++ % HTTP_CACHE];
	free(c->name);
	c->name = core_strdup(host);
	c->list = *out;
	return 0;
}

/* A host that cannot be reached is looked up anew next time. */
static void
http_forget_host(struct http *h, const char *host)
{
	size_t i;

	for (i = 0; i < HTTP_CACHE; i++) {
		if (h->host[i].name && !strcmp(h->host[i].name, host)) {
			free(h->host[i].name);
			h->host[i].name = NULL;
		}
	}
}

static int
http_socket(const union dns_addr *a)
{
	static const struct {
		int level, name, value;
	} opts[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, HTTP_UNACKED },
	};
	size_t i;
	int fd;

	fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	/* Each is a help, none is needed. */
	for (i = 0; i < LENGTH(opts); i++)
		setsockopt(fd, opts[i].level, opts[i].name, &opts[i].value,
		    sizeof(int));
	if (!connect(fd, &a->sa, dns_addr_len(a)) || errno == EINPROGRESS)
		return fd;
	i = (size_t)errno;
	close(fd);
	errno = (int)i;
	return -1;
}

/* Connection attempts side by side. */
struct http_dial {
	struct io_want w[DNS_ADDRS];
	size_t n;		/* started; those that failed have fd -1 */
	size_t open;
	int error;
};

/* Remembers why; "no route for IPv6" tells less than anything else. */
static void
http_dial_failed(struct http_dial *d, int error)
{
	if (!d->error || (error != ENETUNREACH && error != EADDRNOTAVAIL &&
	    error != EAFNOSUPPORT))
		d->error = error;
}

/* The first descriptor that is connected; -1: none yet. */
static int
http_dial_look(struct http_dial *d)
{
	socklen_t len = sizeof(int);
	size_t i;
	int error, fd;

	for (i = 0; i < d->n; i++) {
		if (d->w[i].fd < 0 || !d->w[i].ready)
			continue;
		fd = d->w[i].fd;
		error = 0;
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
		d->w[i].fd = -1;
		d->open--;
		if (!error)
			return fd;
		http_dial_failed(d, error);
		close(fd);
	}
	return -1;
}

/*
 * Tries the addresses in order, the next one as soon as one fails or has
 * said nothing for a moment; the first that connects is taken.
 */
static int
http_dial(const struct http *h, const struct dns_list *list,
    int64_t deadline, struct err *e)
{
	struct http_dial d = { .n = 0 };
	char text[INET6_ADDRSTRLEN];
	int64_t next = 0;
	int fd = -1, r = 1;
	size_t i;

	while (fd < 0 && r >= 0) {
		if (d.n < list->n && (!d.open || core_now() >= next)) {
			i = d.n++;
			dns_addr_text(&list->v[i], text);
			log_debug("http", "trying %s", text);
			d.w[i] = (struct io_want){ http_socket(&list->v[i]),
			    POLLOUT, 0 };
			if (d.w[i].fd < 0)
				http_dial_failed(&d, errno);
			else
				d.open++;
			next = io_in(HTTP_STAGGER);
			continue;
		}
		if (!d.open)
			break;
		r = io_wait(d.w, d.n, d.n < list->n ? io_sooner(next,
		    deadline) : deadline, e);
		if (r > 0)
			fd = http_dial_look(&d);
		if (deadline != IO_FOREVER && core_now() >= deadline)
			break;
	}
	for (i = 0; i < d.n; i++)
		io_close(&d.w[i].fd);
	if (fd >= 0 || r < 0)
		return fd;
	return d.open ? http_fail(h, ERR_TIMEOUT, e,
	    "cannot be reached: no answer to a connection in time") :
	    http_fail(h, ERR_NET, e, "cannot be reached: %s",
	    strerror(d.error ? d.error : EHOSTUNREACH));
}

/* What a proxy's refusal means for the user. */
static int
http_proxy_refused(const struct http *h, const struct http_resp *r,
    bool had_auth, struct err *e)
{
	if (r->status == 407)
		return http_fail(h, ERR_DENIED, e, had_auth ?
		    "does not accept the user name and password of its "
		    "address (407)" : "wants a user name and password (407): "
		    "give them in its address, http://user:password@host:port");
	return http_fail(h, r->status >= 500 ? ERR_NET : ERR_DENIED, e,
	    "refuses to connect to the API's host (%d)", r->status);
}

/* Has the proxy open a way to the host. */
static int
http_tunnel(struct http *h, const struct http_url *u,
    const struct http_proxy *via, int64_t limit, struct err *e)
{
	struct http_resp resp = { 0 };
	struct str to, head;
	struct slice piece;
	struct http_out o = { &piece, 1, 0, 0, false };
	int r;

	str_init(&to, 0);
	str_init(&head, 0);
	http_put_host(&to, u->host, u->port, 0);
	str_addf(&head, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", to.p, to.p);
	if (via->auth)
		str_addf(&head, "Proxy-Authorization: Basic %s\r\n",
		    via->auth);
	str_adds(&head, "\r\n");
	piece = str_slice(&head);
	r = http_talk(h, &o, limit, &resp, e);
	if (!r && resp.status / 100 != 2)
		r = http_proxy_refused(h, &resp, via->auth != NULL, e);
	else if (!r && h->at != h->in.len)
		r = http_fail(h, ERR_NET, e, "sends data before it may");
	explicit_bzero(head.p, head.len);
	str_clear(&to);
	str_clear(&head);
	http_resp_clear(&resp);
	return r;
}

/* The place for that peer's TLS session: its own, or the oldest one. */
static struct tls_session *
http_session(struct http *h, const char *peer)
{
	size_t i;

	for (i = 0; i < HTTP_CACHE; i++)
		if (!strcmp(h->session[i].peer, peer))
			return &h->session[i];
	return &h->session[h->next_session++ % HTTP_CACHE];
}

static int64_t
http_limit(const struct http *h, int64_t ms, int64_t usual)
{
	return io_sooner(io_in(ms > 0 ? ms : usual), h->deadline);
}

static int
http_handshake(struct http *h, const struct http_url *u, int64_t limit,
    struct err *e)
{
	char peer[272];

	if (!h->tls)
		h->tls = core_zalloc(sizeof(*h->tls));
	snprintf(peer, sizeof(peer), "%s:%d", u->host, u->port);
	if (tls_open(h->tls, &h->store, http_session(h, peer), h->fd, u->host,
	    u->port, limit, e) < 0)
		return -1;
	h->secure = true;
	return 0;
}

/* Names the other side: host:port, a proxy as such. */
static void
http_say_who(struct http *h, const char *host, int port, bool proxy)
{
	struct str s;

	str_init(&s, sizeof(h->who) - 1);
	str_adds(&s, proxy ? "the proxy '" : "'");
	http_put_host(&s, host, port, 0);
	str_addc(&s, '\'');
	memcpy(h->who, s.p, s.len + 1);
	str_clear(&s);
}

/* Makes the connection that the request needs. */
static int
http_open(struct http *h, const struct http_req *q, const struct http_url *u,
    const struct http_proxy *via, struct err *e)
{
	const char *host = via->host ? via->host : u->host;
	int port = via->host ? via->port : u->port;
	struct dns_list list;

	http_say_who(h, host, port, via->host != NULL);
	if (http_lookup(h, host, http_limit(h, q->lookup_ms, HTTP_LOOKUP),
	    &list, e) < 0)
		return via->host ? err_wrap(e, "the proxy") : -1;
	dns_list_port(&list, port);
	h->fd = http_dial(h, &list, http_limit(h, q->connect_ms,
	    HTTP_CONNECT), e);
	if (h->fd < 0) {
		http_forget_host(h, host);
		return -1;
	}
	h->pid = core.pid;
	h->moved = 0;
	log_debug("http", "connected to %s", h->who);
	if (!u->secure)
		return 0;
	if (via->host && http_tunnel(h, u, via, http_limit(h,
	    q->handshake_ms, HTTP_HANDSHAKE), e) < 0)
		return -1;
	if (via->host)
		http_say_who(h, u->host, u->port, false);
	return http_handshake(h, u, http_limit(h, q->handshake_ms,
	    HTTP_HANDSHAKE), e);
}

/* Whether the kept connection leads there and is alive as far as one sees. */
static bool
http_reusable(const struct http *h, const char *key)
{
	char c;

	return h->fd >= 0 && h->pid == core.pid && !h->busy && h->keep &&
	    h->key && !strcmp(h->key, key) && h->at == h->in.len &&
	    recv(h->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	    errno == EAGAIN;
}

/* Our own headers are not the caller's to set. */
static bool
http_header_ok(struct slice line)
{
	static const char *const ours[] = { "content-length",
	    "transfer-encoding", "connection", "expect", "upgrade", "te" };
	struct slice v;
	size_t i;

	for (i = 0; i < LENGTH(ours); i++)
		if (http_line_is(line, ours[i], &v))
			return false;
	return http_line_ok(line) && !memchr(line.p, '\r', line.n) &&
	    !memchr(line.p, '\n', line.n);
}

/* Writes the request's head. */
static int
http_put_head(const struct http_req *q, const struct http_url *u,
    const struct http_proxy *via, struct str *out, struct err *e)
{
	bool host = false, plain = !u->secure && via->host;
	const char *const *h;
	struct slice line, v;
	uint64_t size = 0;
	size_t i;

	str_addf(out, "%s ", q->method);
	if (plain) {
		str_adds(out, "http://");
		http_put_host(out, u->host, u->port, 80);
	}
	str_addf(out, "%s HTTP/1.1\r\n", u->path);
	for (h = q->headers; h && *h; h++) {
		line = str_of(*h);
		if (!http_header_ok(line))
			return err_set(e, ERR_USAGE, "the header '%.*s' is "
			    "not valid or not allowed",
			    (int)strcspn(*h, ": \r\n"), *h);
		host |= http_line_is(line, "host", &v);
		str_addl(out, line);
		str_adds(out, "\r\n");
	}
	if (!host) {
		str_adds(out, "Host: ");
		http_put_host(out, u->host, u->port, u->secure ? 443 : 80);
		str_adds(out, "\r\n");
	}
	if (plain && via->auth)
		str_addf(out, "Proxy-Authorization: Basic %s\r\n", via->auth);
	for (i = 0; i < q->nbody; i++)
		size += q->body[i].n;
	if (size || (strcmp(q->method, "GET") && strcmp(q->method, "HEAD")))
		str_addf(out, "Content-Length: %" PRIu64 "\r\n", size);
	str_adds(out, "\r\n");
	return 0;
}

/* Looks at a final head: what to refuse, how the body ends, what then. */
static int
http_begin(struct http *h, const struct http_req *q,
    const struct http_proxy *via, struct http_resp *r, struct err *e)
{
	struct slice to = http_header(r, "location"), coding;
	struct str where;

	if (r->status == 407 && via->host)
		return http_proxy_refused(h, r, via->auth != NULL, e);
	if (r->status / 100 == 3 && to.p) {
		str_init(&where, 0);
		tls_put_name(&where, to, 200);
		http_fail(h, ERR_API, e, "redirects (%d) to '%s', which is "
		    "not followed: use that address itself if it is right",
		    r->status, where.p);
		str_clear(&where);
		return -1;
	}
	coding = http_header(r, "content-encoding");
	if (coding.n && !http_header_has(r, "content-encoding", "identity"))
		return http_fail(h, ERR_NET, e, "compresses its answer "
		    "although that was not asked for");
	if (http_frame(r, q->method, &h->framing, &h->left) < 0)
		return http_fail(h, ERR_NET, e, "gives an answer whose end "
		    "is not well-defined");
	h->chunk = (struct http_chunk){ 0 };
	h->done = h->framing == HTTP_NONE ||
	    (h->framing == HTTP_LENGTH && !h->left);
	h->keep = h->keep && h->framing != HTTP_CLOSE &&
	    !http_header_has(r, "connection", "close") &&
	    !(h->framing == HTTP_CHUNKED && http_header(r,
	    "content-length").p) && (r->minor > 0 ||
	    http_header_has(r, "connection", "keep-alive"));
	h->busy = true;
	return 0;
}

/* One try, on the kept connection or a new one.  *again: it was dead. */
static int
http_try(struct http *h, const struct http_req *q, const struct http_url *u,
    const struct http_proxy *via, const char *key, struct http_out *o,
    struct http_resp *r, bool *again, struct err *e)
{
	bool reused = http_reusable(h, key);
	struct err why = { 0 };

	*again = false;
	if (!reused) {
		http_drop(h);
		if (http_open(h, q, u, via, e) < 0)
			return -1;
		h->key = core_strdup(key);
	}
	h->keep = false;
	str_reset(&h->in);
	h->at = 0;
	o->i = o->off = 0;
	o->dead = false;
	if (http_talk(h, o, http_limit(h, q->head_ms, h->idle_ms), r,
	    &why) < 0) {
		*again = reused && !h->in.len && why.code == ERR_NET;
		return *again ? -1 : err_set(e, why.code, "%s", why.msg);
	}
	return http_begin(h, q, via, r, e);
}

/*
 * Sends a request and reads the head of the answer; http_body() then gives
 * the rest, http_done() ends it.  -1: there is nothing in r to clear.
 */
static int
http_send(struct http *h, const struct http_req *q, struct http_resp *r,
    struct err *e)
{
	struct http_proxy via = { 0 };
	struct http_url u;
	struct slice *v = NULL;
	struct http_out o = { 0 };
	struct str head, key;
	bool again;
	int ret = -1;

	http_resp_clear(r);
	str_init(&head, 0);
	str_init(&key, 0);
	h->idle_ms = q->idle_ms > 0 ? q->idle_ms : HTTP_IDLE;
	h->deadline = q->deadline > 0 ? q->deadline : IO_FOREVER;
	if (http_url_parse(q->url, &u, e) < 0)
		goto out;
	if (h->proxy[u.secure] && !http_no_proxy(h->no_proxy, u.host, u.port)
	    && http_proxy_parse(h->proxy[u.secure], &via, e) < 0)
		goto out;
	if (http_put_head(q, &u, &via, &head, e) < 0)
		goto out;
	str_addf(&key, "%d %s:%d %s:%d", u.secure, u.host, u.port,
	    via.host ? via.host : "", via.port);
	v = core_zalloc(core_mul(q->nbody + 1, sizeof(*v)));
	v[0] = str_slice(&head);
	if (q->nbody)
		memcpy(v + 1, q->body, q->nbody * sizeof(*v));
	o.v = v;
	o.n = q->nbody + 1;
	ret = http_try(h, q, &u, &via, key.p, &o, r, &again, e);
	if (ret < 0 && again) {
		log_debug("http", "the kept connection was dead");
		http_drop(h);
		ret = http_try(h, q, &u, &via, key.p, &o, r, &again, e);
	}
	if (ret < 0)
		http_drop(h);
out:
	if (ret < 0)
		http_resp_clear(r);
	explicit_bzero(head.p, head.len);	/* it holds the keys */
	str_clear(&head);
	str_clear(&key);
	free(v);
	http_proxy_clear(&via);
	http_url_clear(&u);
	return ret;
}

/* Body bytes that can be had without waiting, or TLS_AGAIN. */
static ssize_t
http_body_step(struct http *h, char *buf, size_t max, struct err *e)
{
	struct slice in = { h->in.p + h->at, h->in.len - h->at };
	ssize_t n;

	while (h->framing == HTTP_CHUNKED) {
		in = (struct slice){ h->in.p + h->at, h->in.len - h->at };
		n = http_chunk_feed(&h->chunk, &in, buf, max);
		h->at = h->in.len - in.n;
		h->done = h->chunk.at == CHUNK_END;
		if (n < 0)
			return http_fail(h, ERR_NET, e,
			    "sends a chunked answer that is broken");
		if (n || h->done)
			return n;
		n = http_fill(h, e);
		if (n <= 0)
			return n;
	}
	if (h->framing == HTTP_LENGTH && max > h->left)
		max = (size_t)h->left;
	if (in.n) {
		n = (ssize_t)(in.n < max ? in.n : max);
		memcpy(buf, in.p, (size_t)n);
		h->at += (size_t)n;
	} else {
		n = http_recv(h, buf, max, e);
	}
	if (n > 0 && h->framing == HTTP_LENGTH) {
		h->left -= (uint64_t)n;
		h->done = !h->left;
	}
	return n;
}

/* The next bytes of the body; 0 at its true end; -1: it is broken. */
static ssize_t
http_body(struct http *h, char *buf, size_t max, struct err *e)
{
	int64_t quiet = io_in(h->idle_ms);
	uint64_t seen = h->moved;
	ssize_t n;

	if (!h->busy)
		return err_set(e, ERR_NET, "there is no answer to read");
	while (!h->done && max > 0) {
		n = http_body_step(h, buf, max, e);
		if (n > 0)
			return n;
		if (!n && h->framing == HTTP_CLOSE)
			h->done = true;
		else if (!n && !h->done)
			n = http_fail(h, ERR_NET, e,
			    "closed the connection within an answer");
		if (h->moved != seen) {
			seen = h->moved;
			quiet = io_in(h->idle_ms);
		}
		if (n == TLS_AGAIN && http_wait(h, false, quiet, e) < 0)
			n = -1;
		if (n == -1) {
			http_drop(h);
			return -1;
		}
	}
	return 0;
}

/* Done with this answer; the connection stays if it can serve again. */
static void
http_done(struct http *h)
{
	if (!h->busy || !h->done || !h->keep)
		http_drop(h);
	h->busy = false;
}

/*=== [sse] server-sent events out of bytes ==================================
 * uses: str err
 *
 * A pure function of the bytes: however they are split, the same events
 * come out.  Letters cut by a read stay bytes until their line is whole.
 * Fields other than `event` and `data` are of no use here.  An event that
 * no blank line ended is incomplete and never comes (WHATWG HTML, 9.2).
 *==========================================================================*/

struct sse {
	struct str line;	/* the beginning of an unfinished line */
	struct str name;	/* the event that is being put together */
	struct str data;
	size_t max;		/* bytes of one event */
	bool has_data;
	bool after_cr;		/* an LF now belongs to the CR before it */
	bool begun;		/* past a byte order mark */
};

/* Whom events go to; not 0 stops the feeding, with what `e` says. */
struct sse_sink {
	int (*event)(void *arg, struct slice name, struct slice data,
	    struct err *e);
	void *arg;
};

/* max: what one event may have in bytes. */
static void
sse_init(struct sse *s, size_t max)
{
	*s = (struct sse){ .max = max };
	str_init(&s->line, max);
	str_init(&s->name, max);
	str_init(&s->data, max);
}

static void
sse_clear(struct sse *s)
{
	str_clear(&s->line);
	str_clear(&s->name);
	str_clear(&s->data);
}

/* Splits "name: value"; a line without a colon is a name alone. */
static struct slice
sse_field(struct slice *line)
{
	const char *colon = line->n ? memchr(line->p, ':', line->n) : NULL;
	struct slice value = { line->p + line->n, 0 };

	if (colon) {
		value.p = colon + 1;
		value.n = (size_t)(line->p + line->n - value.p);
		line->n = (size_t)(colon - line->p);
		if (value.n && value.p[0] == ' ') {
			value.p++;
			value.n--;
		}
	}
	return value;
}

/* A whole line without its end. */
static int
sse_line(struct sse *s, struct slice line, const struct sse_sink *to,
    struct err *e)
{
	struct slice value;
	int r = 0;

	if (!s->begun && line.n >= 3 && !memcmp(line.p, "\357\273\277", 3)) {
		line.p += 3;
		line.n -= 3;
	}
	s->begun = true;
	if (!line.n) {
		if (s->has_data)
			r = to->event(to->arg, str_slice(&s->name),
			    str_slice(&s->data), e);
		str_reset(&s->name);
		str_reset(&s->data);
		s->has_data = false;
		return r;
	}
	value = sse_field(&line);
	if (str_eq(line, "data")) {
		if (s->has_data)
			str_addc(&s->data, '\n');
		str_addl(&s->data, value);
		s->has_data = true;
	} else if (str_eq(line, "event")) {
		str_reset(&s->name);
		str_addl(&s->name, value);
	}
	return 0;
}

/* Where the next CR or LF is, or n. */
static size_t
sse_find_end(const char *p, size_t n)
{
	const char *lf = n ? memchr(p, '\n', n) : NULL, *cr;

	n = lf ? (size_t)(lf - p) : n;
	cr = n ? memchr(p, '\r', n) : NULL;
	return cr ? (size_t)(cr - p) : n;
}

/*
 * Gives the events that p[0..n) completes, in order.  -1: `event` said so,
 * or (ERR_LIMIT) an event is larger than the maximum.  An event without a
 * name has an empty one.
 */
static int
sse_feed(struct sse *s, const char *p, size_t n, int (*event)(void *arg,
    struct slice name, struct slice data, struct err *e), void *arg,
    struct err *e)
{
	struct sse_sink to = { event, arg };
	struct slice line;
	size_t k;
	int r;

	while (n > 0) {
		if (s->after_cr && *p == '\n') {
			p++;
			n--;
		}
		s->after_cr = false;
		k = sse_find_end(p, n);
		line = (struct slice){ p, k };
		if (s->line.len || k == n) {
			str_add(&s->line, p, k);
			line = str_slice(&s->line);
		}
		if (s->line.full || s->data.full || s->name.full ||
		    line.n + s->data.len + s->name.len > s->max)
			return err_set(e, ERR_LIMIT, "an event of the stream "
			    "is larger than %zu bytes", s->max);
		if (k == n)
			return 0;
		s->after_cr = p[k] == '\r';
		p += k + 1;
		n -= k + 1;
		r = sse_line(s, line, &to, e);
		str_reset(&s->line);
		if (r)
			return -1;
	}
	return 0;
}

/*=== [conf] settings, environment and flags, merged, with their origin ======
 * uses: core arena str err log text json file proc
 *
 * Settings come from files (managed > --settings > local > project > user);
 * each is checked against one table, what its level may not set is taken out
 * with a warning, and the rest is merged.  Every value knows its origin.
 *
 * A broken file never widens rights: a file that cannot be read or parsed may
 * hold a deny rule, so it ends the run (ERR_USAGE); so does a value of the
 * wrong type where the key restricts (KEY_STRICT).  Any other wrongly typed
 * key is left out with a warning.  Unknown keys are quiet.
 *
 * What a repository brings along (project file; local file under version
 * control) is not the user's word: allow rules, further folders, a looser
 * mode, helper commands and risky variables wait until the folder is trusted.
 * Claude Code runs helpers and exports all of `env` even then; we do not.
 *==========================================================================*/

#define CONF_MEMBERS 4096	/* per object: look-up in cJSON is a walk */
#define CONF_STATE (64u << 20)	/* ~/.claude.json also keeps histories */
#define CONF_GIT_MS 5000	/* is the local file under version control? */
#define CONF_FRAGMENTS 256	/* files in managed-settings.d */
#define CONF_KEYS 28		/* rows of conf_keys */

/* --setting-sources; managed files and --settings are always read. */
enum conf_source {
	CONF_USER = 1,
	CONF_PROJECT = 2,
	CONF_LOCAL = 4,
	CONF_ALL = 7
};

/* Where a value comes from, lowest first. */
enum conf_level {
	CONF_BUILTIN,
	CONF_USER_LEVEL,
	CONF_PROJECT_LEVEL,
	CONF_LOCAL_LEVEL,
	CONF_FLAG_LEVEL,	/* --settings */
	CONF_CLI,		/* an option of its own */
	CONF_MANAGED_LEVEL
};

enum conf_list {
	CONF_DENY,
	CONF_ASK,
	CONF_ALLOW,
	CONF_LISTS
};

/* A permission rule as it was written. */
struct conf_rule {
	const char *text;
	enum conf_list list;
	enum conf_level level;
	const char *anchor;	/* the folder that a leading "/" means */
	const char *origin;	/* for messages: a path or "--allowedTools" */
};

enum conf_type {
	CONF_TEXT,
	CONF_FLAG,
	CONF_INT,
	CONF_TEXTS,		/* list of text */
	CONF_NAMES,		/* text or list of text; kept as comma text */
	CONF_MODE,		/* a permission mode's name */
	CONF_DISABLE,		/* the word "disable" */
	CONF_OBJECT
};

enum conf_key_flag {
	KEY_STRICT = 1,		/* restricts: a wrong type ends the run */
	KEY_TRUST = 2,		/* from a repository only where trusted */
	KEY_OWN = 4,		/* never from project or local files */
	KEY_MANAGED = 8,	/* from managed files only */
	KEY_ONCE = 16,		/* the highest list replaces the others */
	KEY_STICKY = 32		/* once true, no higher level unsets it */
};

struct conf_key {
	const char *name;
	enum conf_type type;
	unsigned flags;
};

/* Every key that any section reads; conf_get() refuses others. */
static const struct conf_key conf_keys[] = {
	{ "permissions", CONF_OBJECT, KEY_STRICT },
	{ "permissions.deny", CONF_TEXTS, KEY_STRICT },
	{ "permissions.ask", CONF_TEXTS, KEY_STRICT },
	{ "permissions.allow", CONF_TEXTS, 0 },
	{ "permissions.additionalDirectories", CONF_TEXTS, 0 },
	{ "permissions.defaultMode", CONF_MODE, KEY_STRICT },
	{ "permissions.disableBypassPermissionsMode", CONF_DISABLE,
	    KEY_STRICT },
	{ "permissions.denyInsteadOfPrompting", CONF_FLAG,
	    KEY_STRICT | KEY_OWN },
	{ "permissions.blockReadsOutsideWorkingDirectories", CONF_FLAG,
	    KEY_STRICT | KEY_STICKY },
	{ "permissions.blockWritesOutsideWorkingDirectories", CONF_FLAG,
	    KEY_STRICT | KEY_STICKY },
	{ "allowManagedPermissionRulesOnly", CONF_FLAG,
	    KEY_STRICT | KEY_MANAGED },
	{ "env", CONF_OBJECT, 0 },
	{ "model", CONF_TEXT, 0 },
	{ "fallbackModel", CONF_NAMES, KEY_ONCE },
	{ "availableModels", CONF_TEXTS, KEY_STRICT },
	{ "deniedModels", CONF_TEXTS, KEY_STRICT },
	{ "effortLevel", CONF_TEXT, 0 },
	{ "agent", CONF_TEXT, 0 },
	{ "apiKeyHelper", CONF_TEXT, KEY_TRUST },
	{ "includeGitInstructions", CONF_FLAG, 0 },
	{ "claudeMd", CONF_TEXT, KEY_MANAGED },
	{ "claudeMdExcludes", CONF_TEXTS, 0 },
	{ "respectGitignore", CONF_FLAG, 0 },
	{ "bashOutputMaxChars", CONF_INT, 0 },
	{ "cleanupPeriodDays", CONF_INT, 0 },
	{ "hooks", CONF_OBJECT, KEY_STRICT },
	{ "disableAllHooks", CONF_FLAG, KEY_TRUST },
	{ "sandbox", CONF_OBJECT, KEY_STRICT },
};
_Static_assert(LENGTH(conf_keys) == CONF_KEYS, "CONF_KEYS");

/* Who gave a key its value; for lists and objects the highest who did. */
struct conf_from {
	enum conf_level level;
	const char *origin;
};

struct conf {
	struct arena arena;		/* all the text below */
	const struct opts *opts;	/* borrowed */
	const char *start_dir;		/* the real current folder */
	const char *git_root;		/* NULL: in no repository */
	const char *main_root;		/* main checkout of a linked worktree,
					   else git_root */
	const char *config_dir;		/* CLAUDE_CONFIG_DIR or HOME/.claude;
					   NULL: there is none */
	const char *state_file;		/* .claude.json; NULL */
	const char *managed_dir;
	bool bare;
	unsigned sources;		/* CONF_USER and so on */
	struct conf_rule *rules;	/* as read: user ... managed, options */
	size_t nrules;
	size_t rules_cap;
	struct strv dirs;		/* working directories, real, the start
					   folder first */
	cJSON *merged;			/* known keys only */
	struct conf_from from[CONF_KEYS];
	int trust;			/* 1, 0; -1: not looked up yet */
};

/* One settings file while it is taken in. */
struct conf_file {
	enum conf_level level;
	const char *origin;		/* the path, or "--settings" */
	const char *anchor;
	struct slice text;		/* without a byte order mark */
	cJSON *root;
	int tracked;			/* of a local file; -1: not looked up */
};

/* An environment variable; an empty one counts as unset. */
static const char *
conf_env(const char *name)
{
	const char *s = getenv(name);

	return s && *s ? s : NULL;
}

/* Whether a switch in the environment says yes (1, true, yes, on). */
static bool
conf_env_on(const char *name)
{
	const char *s = conf_env(name);

	return s && text_bool(s) == 1;
}

/* A whole number from the environment; others are warned of and absent. */
static int64_t
conf_env_int(const char *name, int64_t lo, int64_t hi, int64_t absent)
{
	const char *s = conf_env(name);
	int64_t v;

	if (!s)
		return absent;
	if (text_int(text_trim(str_of(s)), lo, hi, &v))
		return v;
	log_warn("%s='%s' is not a number from %" PRId64 " to %" PRId64
	    "; not used", name, s, lo, hi);
	return absent;
}

/* Row of a key; asking for one that has none is our mistake. */
static size_t
conf_row(const char *key)
{
	size_t i;

	for (i = 0; i < LENGTH(conf_keys); i++)
		if (!strcmp(conf_keys[i].name, key))
			return i;
	BUG("a setting without a row in conf_keys");
}

/* The value of a dotted key in a tree; *parent is what holds it. */
static cJSON *
conf_find(cJSON *root, const char *key, cJSON **parent)
{
	const char *dot = strchr(key, '.');
	cJSON *v = root;
	char name[64];

	*parent = root;
	if (dot) {
		snprintf(name, sizeof(name), "%.*s", (int)(dot - key), key);
		v = cJSON_GetObjectItemCaseSensitive(v, name);
		key = dot + 1;
		*parent = v;
	}
	return cJSON_IsObject(v) ?
	    cJSON_GetObjectItemCaseSensitive(v, key) : NULL;
}

/* The merged value of a dotted key of conf_keys, or NULL. */
static const cJSON *
conf_get(const struct conf *c, const char *key)
{
	cJSON *parent;

	conf_row(key);
	return conf_find(c->merged, key, &parent);
}

/* Text; NULL where absent or empty. */
static const char *
conf_text(const struct conf *c, const char *key)
{
	const cJSON *v = conf_get(c, key);

	return cJSON_IsString(v) && *v->valuestring ? v->valuestring : NULL;
}

static bool
conf_flag(const struct conf *c, const char *key, bool absent)
{
	const cJSON *v = conf_get(c, key);

	return cJSON_IsBool(v) ? cJSON_IsTrue(v) : absent;
}

/* A whole number within [lo, hi]; what lies outside counts as absent. */
static int64_t
conf_int(const struct conf *c, const char *key, int64_t lo, int64_t hi,
    int64_t absent)
{
	const cJSON *v = conf_get(c, key);

	if (!cJSON_IsNumber(v) || !(v->valuedouble >= (double)lo) ||
	    !(v->valuedouble <= (double)hi))
		return absent;
	return (int64_t)v->valuedouble;
}

/* The file or option that gave a key its value; NULL: nobody did. */
static const char *
conf_origin(const struct conf *c, const char *key)
{
	return c->from[conf_row(key)].origin;
}

/* Levels whose files may have come with the folder. */
static bool
conf_is_repo_level(enum conf_level level)
{
	return level == CONF_PROJECT_LEVEL || level == CONF_LOCAL_LEVEL;
}

/*
 * A flag of this folder's entry in ~/.claude.json: projects[path].<key>,
 * for the repository's root (main checkout too) or the start folder itself;
 * a parent's entry does not count.  Read raw, since the file can be large;
 * whatever is wrong with it means no.
 */
static bool
conf_state_flag(const struct conf *c, const char *key)
{
	struct str text, name;
	struct slice projects, flag;
	struct json_iter it;
	bool yes = false;

	str_init(&text, 0);
	str_init(&name, 0);
	if (!c->state_file || file_read(c->state_file, CONF_STATE, &text,
	    NULL) < 0 || !json_raw(str_slice(&text), "projects", &projects) ||
	    !json_iter_init(&it, projects) || !it.object)
		goto out;
	while (!yes && json_iter_next(&it)) {
		str_reset(&name);
		json_unescape(it.key, &name);
		if (strlen(name.p) != name.len ||
		    (strcmp(name.p, c->start_dir) &&
		    (!c->git_root || strcmp(name.p, c->git_root)) &&
		    (!c->main_root || strcmp(name.p, c->main_root))))
			continue;
		yes = json_raw(it.value, key, &flag) && str_eq(flag, "true");
	}
out:
	str_clear(&text);
	str_clear(&name);
	return yes;
}

/* Whether the user trusts this folder (reference: workspace trust). */
static bool
conf_trust(const struct conf *c)
{
	return c->trust >= 0 ? c->trust :
	    conf_state_flag(c, "hasTrustDialogAccepted");
}

/* A small text file, trimmed, as the first word of git's own files. */
static char *
conf_small(struct arena *a, const char *dir, const char *name)
{
	char *path = file_join(dir, name), *r = NULL;
	struct slice s;
	struct str text;

	str_init(&text, 0);
	if (!file_read(path, PATH_MAX, &text, NULL)) {
		s = text_trim(str_slice(&text));
		r = arena_dup(a, s.p, s.n);
	}
	free(path);
	str_clear(&text);
	return r;
}

/*
 * Main checkout of a linked worktree whose `.git` file is in root; NULL
 * where it is none.  Git's record must point back here: anybody can write a
 * `.git` file that names a repository that the user trusts.
 */
static const char *
conf_worktree(struct arena *a, const char *root)
{
	const char *link = conf_small(a, root, ".git"), *back, *common;
	const char *r = NULL;
	struct str git, shared, mine, here;

	str_init(&git, 0);
	str_init(&shared, 0);
	str_init(&mine, 0);
	str_init(&here, 0);
	if (!link || !str_starts(link, "gitdir:"))
		goto out;
	link += strlen("gitdir:");
	link += strspn(link, " \t");
	if (!*link || file_real(root, link, &git, NULL) < 0)
		goto out;
	back = conf_small(a, git.p, "gitdir");
	common = conf_small(a, git.p, "commondir");
	if (!back || !*back || !common || !*common ||
	    file_real(git.p, back, &mine, NULL) < 0 ||
	    file_real(root, ".git", &here, NULL) < 0 ||
	    strcmp(mine.p, here.p) ||
	    file_real(git.p, common, &shared, NULL) < 0 ||
	    strcmp(file_name(shared.p), ".git"))
		goto out;
	str_cut(&shared, shared.len - strlen("/.git"));
	r = shared.len ? arena_strdup(a, shared.p) : "/";
out:
	str_clear(&git);
	str_clear(&shared);
	str_clear(&mine);
	str_clear(&here);
	return r;
}

/* Finds the repository that holds the start folder, without running git. */
static void
conf_find_git(struct conf *c)
{
	char *dir = arena_strdup(&c->arena, c->start_dir), *slash, *git;
	struct stat st;
	bool found;

	for (;;) {
		git = file_join(dir, ".git");
		found = !stat(git, &st) &&
		    (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode));
		free(git);
		if (found)
			break;
		slash = strrchr(dir, '/');
		if (!slash || !dir[1])
			return;
		slash[slash == dir] = 0;
	}
	c->git_root = dir;
	if (S_ISREG(st.st_mode))
		c->main_root = conf_worktree(&c->arena, dir);
	if (!c->main_root)
		c->main_root = dir;
}

/* The real current folder; one that was deleted is said plainly. */
static int
conf_find_start(struct conf *c, struct err *e)
{
	char *cwd = getcwd(NULL, 0);

	if (!cwd && errno == ENOENT)
		return err_set(e, ERR_IO, "the current folder was deleted or "
		    "cannot be reached; change to another one");
	if (!cwd)
		return err_sys(e, "find the current folder");
	c->start_dir = arena_strdup(&c->arena, cwd);
	free(cwd);
	return 0;
}

/* Where the user's own files are; without a home there are none. */
static void
conf_find_config(struct conf *c)
{
	const char *dir = conf_env("CLAUDE_CONFIG_DIR");
	const char *home = dir ? NULL : file_home();
	struct str path;

	c->managed_dir = "/etc/claude-code";
#ifdef SA_TESTING
	if (getenv("SA_MANAGED_DIR"))
		c->managed_dir = arena_strdup(&c->arena,
		    getenv("SA_MANAGED_DIR"));
#endif
	if (!dir && !home)
		return;
	/* HOME=/root and another uid: not this user's home. */
	if (!dir && access(home, X_OK) < 0 && errno == EACCES) {
		log_debug("conf", "home '%s' is not ours, not used", home);
		return;
	}
	str_init(&path, 0);
	file_norm(c->start_dir, dir ? dir : home, &path);
	c->state_file = arena_printf(&c->arena, "%s/.claude.json",
	    path.len > 1 ? path.p : "");
	c->config_dir = dir ? arena_strdup(&c->arena, path.p) :
	    arena_printf(&c->arena, "%s/.claude", path.len > 1 ? path.p : "");
	str_clear(&path);
}

/* --setting-sources: a comma list, "" for none. */
static int
conf_sources(const char *list, unsigned *sources, struct err *e)
{
	static const char *const names[] = { "user", "project", "local" };
	struct slice rest = str_of(list), item;
	size_t i;

	*sources = list ? 0 : CONF_ALL;
	while (list && text_item(&rest, ',', &item)) {
		for (i = 0; i < LENGTH(names) && !str_eq(item, names[i]);)
			i++;
		if (i < LENGTH(names))
			*sources |= 1u << i;
		else if (item.n)
			return err_set(e, ERR_USAGE, "--setting-sources: "
			    "'%.*s' is not one of user, project, local",
			    (int)(item.n < 60 ? item.n : 60), item.p);
	}
	return 0;
}

/* Offset of a dotted key's value in the file's text; 0: not found. */
static size_t
conf_offset(const struct conf_file *f, const char *key)
{
	struct slice in = f->text, v;
	char name[64];
	size_t n;

	for (; *key; key += n + (key[n] == '.')) {
		n = strcspn(key, ".");
		snprintf(name, sizeof(name), "%.*s", (int)n, key);
		if (!json_raw(in, name, &v))
			return 0;
		in = v;
	}
	return (size_t)(in.p - f->text.p);
}

/* "file:line:column" of an offset, for messages. */
static const char *
conf_where(struct conf *c, const struct conf_file *f, size_t at)
{
	size_t i, line = 1, column = 1;

	if (!f->text.n)
		return arena_printf(&c->arena, "%.300s", f->origin);
	for (i = 0; i < at && i < f->text.n; i++, column++) {
		if (f->text.p[i] == '\n') {
			line++;
			column = 0;
		}
	}
	return arena_printf(&c->arena, "%.300s:%zu:%zu", f->origin, line,
	    column);
}

/* A file that must not be passed over ends the run; says how to go on. */
static int
conf_refuse(struct conf *c, const struct conf_file *f, size_t at,
    const char *why, struct err *e)
{
	static const struct {
		enum conf_level level;
		const char *hint;
	} hints[] = {
		{ CONF_USER_LEVEL,
		    "correct it, or leave user settings out with "
		    "--setting-sources project,local" },
		{ CONF_PROJECT_LEVEL,
		    "correct it, or leave project settings out with "
		    "--setting-sources user,local" },
		{ CONF_LOCAL_LEVEL,
		    "correct it, or leave local settings out with "
		    "--setting-sources user,project" },
		{ CONF_FLAG_LEVEL, "correct what --settings names" },
		{ CONF_MANAGED_LEVEL,
		    "the administrator of this machine has to correct it" },
	};
	size_t i;

	for (i = 0; hints[i].level != f->level; i++)
		continue;
	return err_set(e, ERR_USAGE, "settings %s: %s; it may hold deny rules, "
	    "so nothing runs: %s", conf_where(c, f, at), why, hints[i].hint);
}

/* An object with more members than look-up can bear; recursion */
static bool
conf_is_wide(const cJSON *v)
{
	const cJSON *child;
	size_t n = 0;

	cJSON_ArrayForEach(child, v) {
		if ((cJSON_IsObject(v) && ++n > CONF_MEMBERS) ||
		    conf_is_wide(child))
			return true;
	}
	return false;
}

/* Text to tree: strict JSON, one object, nothing that cJSON would change. */
static int
conf_parse(struct conf *c, struct conf_file *f, struct err *e)
{
	struct json_scan s;

	if (f->text.n >= 3 && !memcmp(f->text.p, "\357\273\277", 3)) {
		f->text.p += 3;
		f->text.n -= 3;
	}
	if (f->text.n >= 2 && (!memcmp(f->text.p, "\377\376", 2) ||
	    !memcmp(f->text.p, "\376\377", 2)))
		return conf_refuse(c, f, 0, "is UTF-16, UTF-8 is needed", e);
	if (text_is_blank(f->text))
		return conf_refuse(c, f, 0, "is empty ({} would do)", e);
	s = (struct json_scan){ f->text.p, f->text.p + f->text.n, LIM_DEPTH };
	if (!json_scan_value(&s) || s.p != s.end)
		return conf_refuse(c, f, (size_t)(s.p - f->text.p),
		    s.depth < 0 ? "JSON nested too deeply" : s.p >= s.end ?
		    "JSON ends too early" : "not valid JSON", e);
	if (json_has_nul(f->text))
		return conf_refuse(c, f, 0, "holds \\u0000", e);
	f->root = json_parse(f->text, NULL);
	if (!cJSON_IsObject(f->root))
		return conf_refuse(c, f, 0, "not a JSON object", e);
	if (conf_is_wide(f->root))
		return conf_refuse(c, f, 0, "an object has too many members",
		    e);
	return 0;
}

/* Permission modes and how far each goes; `manual` is a newer name. */
static const struct {
	const char *name;
	bool tight;		/* asks at least as often as default */
	bool loose;		/* a repository may never set it */
} conf_modes[] = {
	{ "default", false, false },
	{ "manual", false, false },
	{ "plan", true, false },
	{ "dontAsk", true, false },
	{ "acceptEdits", false, false },
	{ "auto", false, true },
	{ "bypassPermissions", false, true },
};

static size_t
conf_mode(const cJSON *v)
{
	size_t i = 0;

	while (i < LENGTH(conf_modes) && (!cJSON_IsString(v) ||
	    strcmp(v->valuestring, conf_modes[i].name)))
		i++;
	return i;
}

static bool
conf_is_texts(const cJSON *v)
{
	const cJSON *item;

	if (!cJSON_IsArray(v))
		return false;
	cJSON_ArrayForEach(item, v)
		if (!cJSON_IsString(item))
			return false;
	return true;
}

/* NULL where the value has the type, else what was expected. */
static const char *
conf_expects(const cJSON *v, enum conf_type type)
{
	switch (type) {
	case CONF_TEXT:
		return cJSON_IsString(v) ? NULL : "text expected";
	case CONF_FLAG:
		return cJSON_IsBool(v) ? NULL : "true or false expected";
	case CONF_INT:
		return cJSON_IsNumber(v) ? NULL : "a number expected";
	case CONF_TEXTS:
		return conf_is_texts(v) ? NULL : "a list of text expected";
	case CONF_NAMES:
		return cJSON_IsString(v) || conf_is_texts(v) ? NULL :
		    "text or a list of text expected";
	case CONF_MODE:
		return conf_mode(v) < LENGTH(conf_modes) ? NULL :
		    "default, plan, dontAsk, acceptEdits, auto or "
		    "bypassPermissions expected";
	case CONF_DISABLE:
		return cJSON_IsString(v) && !strcmp(v->valuestring,
		    "disable") ? NULL : "\"disable\" expected";
	case CONF_OBJECT:
		return cJSON_IsObject(v) ? NULL : "an object expected";
	}
	BUG("conf_expects");
}

/*
 * Whether a file came with the repository: project settings did; a local
 * file did if git tracks it or `.claude` is a link.  Without git it counts
 * as the user's own.  Git runs nothing that the repository configures.
 */
static bool
conf_is_repo(struct conf *c, struct conf_file *f)
{
	static const char *const unset[] = { "GIT_DIR", "GIT_WORK_TREE",
	    "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", NULL };
	struct proc_result r;
	struct stat st;
	char *git = NULL, *dir;

	if (f->level != CONF_LOCAL_LEVEL || f->tracked >= 0)
		return f->level == CONF_PROJECT_LEVEL || f->tracked > 0;
	dir = file_dir(f->origin);
	f->tracked = lstat(dir, &st) < 0 || S_ISLNK(st.st_mode);
	if (!f->tracked && c->git_root)
		git = proc_find("git");
	if (git) {
		const char *argv[] = { git, "--no-optional-locks", "-c",
		    "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
		    "-C", dir, "ls-files", "--error-unmatch", "--",
		    "settings.local.json", NULL };
		struct proc_job job = { .argv = argv, .unset = unset,
		    .keep = 1024, .timeout = CONF_GIT_MS };

		proc_result_init(&r);
		/* 1 is "not known to git"; 128 (no access) is no proof. */
		f->tracked = proc_run(&job, &r, NULL) < 0 ||
		    !WIFEXITED(r.status) || WEXITSTATUS(r.status) != 1;
		proc_result_clear(&r);
	}
	free(git);
	free(dir);
	return f->tracked;
}

/* Came with the repository, and nobody said that this one is trusted. */
static bool
conf_is_suspect(struct conf *c, struct conf_file *f)
{
	if (!conf_is_repo_level(f->level))
		return false;
	if (c->trust < 0)
		c->trust = conf_trust(c);
	return !c->trust && conf_is_repo(c, f);
}

/* Of a member that is there more than once the last counts (as in JSON). */
static int
conf_once(struct conf *c, struct conf_file *f, cJSON *parent,
    const struct conf_key *k, const char *name, struct err *e)
{
	cJSON *child, *next, *seen = NULL;

	child = cJSON_IsObject(parent) ? parent->child : NULL;
	for (; child; child = next) {
		next = child->next;
		if (strcmp(child->string, name))
			continue;
		if (seen && (k->flags & KEY_STRICT))
			return conf_refuse(c, f, conf_offset(f, k->name),
			    arena_printf(&c->arena, "%s is there twice",
			    k->name), e);
		if (seen) {
			log_warn("%s: %s is there twice, the last one counts",
			    conf_where(c, f, conf_offset(f, k->name)),
			    k->name);
			cJSON_Delete(cJSON_DetachItemViaPointer(parent,
			    seen));
		}
		seen = child;
	}
	return 0;
}

/* One row against one file: level, type; takes out what does not fit. */
static int
conf_check_key(struct conf *c, struct conf_file *f, const struct conf_key *k,
    struct err *e)
{
	const char *name = strrchr(k->name, '.'), *expected, *why = NULL;
	cJSON *parent, *v;
	bool word;		/* text, but not one of the words allowed */

	name = name ? name + 1 : k->name;
	conf_find(f->root, k->name, &parent);
	if (conf_once(c, f, parent, k, name, e) < 0)
		return -1;
	v = conf_find(f->root, k->name, &parent);
	if (!v)
		return 0;
	word = cJSON_IsString(v) && (k->type == CONF_MODE ||
	    k->type == CONF_DISABLE);
	expected = conf_expects(v, k->type);
	if (expected && (k->flags & KEY_STRICT))
		return conf_refuse(c, f, conf_offset(f, k->name),
		    arena_printf(&c->arena, "%s: %s, not %s%.40s", k->name,
		    expected, word ? "" : json_kind(v), word ?
		    v->valuestring : ""), e);
	if (expected)
		why = arena_printf(&c->arena, "%s, not %s", expected,
		    json_kind(v));
	else if ((k->flags & KEY_MANAGED) && f->level != CONF_MANAGED_LEVEL)
		why = "only managed settings may set it";
	else if ((k->flags & KEY_OWN) && conf_is_repo_level(f->level))
		why = "project and local settings may not set it";
	else if ((k->flags & KEY_TRUST) && conf_is_suspect(c, f))
		why = "this folder has not been trusted";
	else if (c->bare && !strcmp(k->name, "apiKeyHelper") &&
	    f->level < CONF_FLAG_LEVEL)
		why = "with --bare only --settings may set it";
	if (!why)
		return 0;
	log_warn("%s: %s is not used: %s",
	    conf_where(c, f, conf_offset(f, k->name)), k->name, why);
	cJSON_Delete(cJSON_DetachItemViaPointer(parent, v));
	return 0;
}

/*
 * Takes out the members that have no row.  Quiet, except for a name that
 * differs from one that restricts only in case or place.
 */
static void
conf_drop_unknown(const struct conf_file *f, cJSON *o, const char *prefix)
{
	const struct conf_key *k;
	const char *base;
	cJSON *child, *next;
	size_t i, n = strlen(prefix);
	bool known;

	for (child = o ? o->child : NULL; child; child = next) {
		next = child->next;
		known = false;
		for (i = 0; i < LENGTH(conf_keys) && !known; i++)
			known = str_starts(conf_keys[i].name, prefix) &&
			    !strcmp(conf_keys[i].name + n, child->string);
		if (known)
			continue;
		for (i = 0; i < LENGTH(conf_keys); i++) {
			k = &conf_keys[i];
			base = strrchr(k->name, '.');
			base = base ? base + 1 : k->name;
			if ((k->flags & KEY_STRICT) &&
			    !strcasecmp(base, child->string))
				log_warn("%.300s: '%s%.60s' is not a setting; "
				    "is '%s' meant?", f->origin, prefix,
				    child->string, k->name);
		}
		log_debug("conf", "%.300s: unknown key '%s%.60s'", f->origin,
		    prefix, child->string);
		cJSON_Delete(cJSON_DetachItemViaPointer(o, child));
	}
}

/*
 * Variables through which a folder could run its own code in ours, in the
 * user's helpers or in a command that needs no permission, send the key and
 * the conversation elsewhere, or lift our limits.  Names are compared in
 * capitals.  Tools that read a file of the folder anyway (make, npm, cargo)
 * gain nothing from a variable and are not here.
 */
static const char *const conf_risky[] = {
	/* the loader, the shell, interpreters and what they start */
	"LD_*", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "PATH",
	"BASH_*", "ENV", "SHELL", "SHELLOPTS", "BASHOPTS", "IFS", "PS4",
	"PROMPT_COMMAND", "ZDOTDIR", "HOME", "XDG_*", "TMPDIR",
	"NODE_OPTIONS", "NODE_PATH", "PYTHON*", "PERL*", "RUBY*", "LUA_*",
	"PHP*", "*JAVA_OPTIONS", "*JAVA_TOOL_OPTIONS", "GIT_*", "SSH_*",
	"*_ASKPASS", "*PAGER", "LESS*", "EDITOR", "VISUAL", "BROWSER",
	"GREP_*", "RIPGREP_*", "TAR_OPTIONS", "DOCKER_*", "TERMINFO*",
	/* where requests go, and with what */
	"*_PROXY", "SSL_*", "NODE_EXTRA_CA_CERTS", "NODE_TLS_*",
	"*_CA_BUNDLE", "ANTHROPIC_*URL", "ANTHROPIC_*KEY",
	"ANTHROPIC_*TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_*SOCKET",
	"AWS_*", "GOOGLE_*", "CLOUDSDK_*", "AZURE_*", "LOCALDOMAIN",
	"RES_OPTIONS", "HOSTALIASES", "CLAUDE_CODE_OAUTH_*",
	"CLAUDE_CODE_CLIENT_*", "CLAUDE_CODE_USE_*", "CLAUDE_CODE_EXTRA_BODY",
	/* our own switches */
	"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SHELL*", "CLAUDE_ENV_FILE",
	"CLAUDE_CODE_TMPDIR", "CLAUDE_CODE_SIMPLE", "IS_SANDBOX", "SA_*",
};

static bool
conf_is_risky(const char *name)
{
	char upper[256];
	size_t i, n = strlen(name);

	if (n >= sizeof(upper))
		return true;
	for (i = 0; i <= n; i++)
		upper[i] = name[i] >= 'a' && name[i] <= 'z' ?
		    (char)(name[i] - 32) : name[i];
	for (i = 0; i < LENGTH(conf_risky); i++)
		if (text_glob(conf_risky[i], upper))
			return true;
	return false;
}

/* Makes text of numbers and true/false; takes out what may not be set. */
static void
conf_check_env(struct conf *c, struct conf_file *f)
{
	cJSON *parent, *env = conf_find(f->root, "env", &parent);
	cJSON *child, *next, *text;
	const char *why;
	char *s;

	for (child = env ? env->child : NULL; child; child = next) {
		next = child->next;
		why = NULL;
		if (!*child->string || strchr(child->string, '='))
			why = "this is not a name";
		else if (!cJSON_IsString(child) && !cJSON_IsNumber(child) &&
		    !cJSON_IsBool(child))
			why = "text expected";
		else if (conf_is_risky(child->string) &&
		    conf_is_suspect(c, f))
			why = "it could run code or send the key elsewhere, "
			    "and this folder has not been trusted";
		if (why) {
			log_warn("%.300s: env.%.60s is not used: %s",
			    f->origin, child->string, why);
			cJSON_Delete(cJSON_DetachItemViaPointer(env, child));
		} else if (!cJSON_IsString(child)) {
			s = cJSON_PrintUnformatted(child);
			text = s ? cJSON_CreateString(s) : NULL;
			if (!text)
				core_die("out of memory");
			free(s);
			text->string = child->string;
			child->string = NULL;
			cJSON_ReplaceItemViaPointer(env, child, text);
		}
	}
}

/* The start mode: what came with the repository may not loosen it. */
static void
conf_check_mode(struct conf *c, struct conf_file *f)
{
	cJSON *parent, *v = conf_find(f->root, "permissions.defaultMode",
	    &parent);
	size_t i = v ? conf_mode(v) : 0;

	if (!v || conf_modes[i].tight || !conf_is_repo_level(f->level))
		return;
	if (conf_modes[i].loose ? !conf_is_repo(c, f) &&
	    strcmp(conf_modes[i].name, "auto") : !conf_is_suspect(c, f))
		return;
	log_warn("%s: permissions.defaultMode '%s' is not used: it came with "
	    "the folder%s",
	    conf_where(c, f, conf_offset(f, "permissions.defaultMode")),
	    conf_modes[i].name, conf_modes[i].loose ? "" :
	    ", which has not been trusted");
	cJSON_Delete(cJSON_DetachItemViaPointer(parent, v));
}

static void
conf_add_rule(struct conf *c, const char *text, enum conf_list list,
    enum conf_level level, const char *anchor, const char *origin)
{
	if (text_is_blank(str_of(text))) {
		log_warn("%.300s: an empty permission rule is not used",
		    origin);
		return;
	}
	c->rules = core_grow(c->rules, c->nrules, &c->rules_cap,
	    sizeof(*c->rules));
	c->rules[c->nrules++] = (struct conf_rule){
	    arena_strdup(&c->arena, text), list, level, anchor, origin };
}

/* Adds a working directory: real path, no repeats; a missing one is said. */
static void
conf_add_dir(struct conf *c, const char *path, const char *origin)
{
	const char *home = file_home();
	char *full = NULL;
	struct str real;

	str_init(&real, 0);
	if (path[0] == '~' && (!path[1] || path[1] == '/') && home)
		full = file_join(home, path[1] ? path + 2 : "");
	if (!*path || file_real(c->start_dir, full ? full : path, &real,
	    NULL) < 0 || !file_is_dir(real.p))
		log_warn("%.300s: the folder '%.300s' is not there; not used",
		    origin, path);
	else if (!str_list_has(&c->dirs, real.p))
		str_list_adds(&c->dirs, real.p);
	free(full);
	str_clear(&real);
}

/* Detaches a list of permissions; NULL where there is none. */
static cJSON *
conf_detach(struct conf_file *f, const char *key)
{
	cJSON *parent, *v = conf_find(f->root, key, &parent);

	return v ? cJSON_DetachItemViaPointer(parent, v) : NULL;
}

/* "2 permissions.allow entries" */
static void
conf_count(struct str *out, size_t n, const char *what)
{
	if (n)
		str_addf(out, "%s%zu %s %s", out->len ? " and " : "", n, what,
		    n == 1 ? "entry" : "entries");
}

/* Collects the file's rules and folders; those that need trust wait. */
static void
conf_take_rules(struct conf *c, struct conf_file *f)
{
	static const char *const keys[] = { "permissions.deny",
	    "permissions.ask", "permissions.allow",
	    "permissions.additionalDirectories" };
	size_t i, skipped[LENGTH(keys)] = { 0 };
	struct str what;
	cJSON *list;
	const cJSON *item;

	for (i = 0; i < LENGTH(keys); i++) {
		list = conf_detach(f, keys[i]);
		if (i >= CONF_ALLOW && list && list->child &&
		    conf_is_suspect(c, f))
			skipped[i] = (size_t)cJSON_GetArraySize(list);
		cJSON_ArrayForEach(item, list) {
			if (skipped[i])
				break;
			if (i < CONF_LISTS)
				conf_add_rule(c, item->valuestring,
				    (enum conf_list)i, f->level, f->anchor,
				    f->origin);
			else
				conf_add_dir(c, item->valuestring, f->origin);
		}
		cJSON_Delete(list);
	}
	str_init(&what, 0);
	conf_count(&what, skipped[CONF_ALLOW], keys[CONF_ALLOW]);
	conf_count(&what, skipped[CONF_LISTS], keys[CONF_LISTS]);
	if (what.len)
		log_warn("Ignoring %s from %.300s: this workspace has not been "
		    "trusted. Give rules with --allowedTools or in your own "
		    "settings, or set projects[\"%.300s\"]."
		    "hasTrustDialogAccepted in %.300s", what.p, f->origin,
		    c->main_root ? c->main_root : c->start_dir,
		    c->state_file ? c->state_file : "~/.claude.json");
	str_clear(&what);
}

/* Moves src's members into dst: objects merge, lists add up; recursion */
static void
conf_merge(cJSON *dst, cJSON *src)
{
	cJSON *child, *old, *item;

	while ((child = src->child) != NULL) {
		cJSON_DetachItemViaPointer(src, child);
		old = cJSON_GetObjectItemCaseSensitive(dst, child->string);
		if (cJSON_IsObject(old) && cJSON_IsObject(child)) {
			conf_merge(old, child);
			cJSON_Delete(child);
		} else if (cJSON_IsArray(old) && cJSON_IsArray(child)) {
			while ((item = child->child) != NULL)
				cJSON_AddItemToArray(old,
				    cJSON_DetachItemViaPointer(child, item));
			cJSON_Delete(child);
		} else {
			if (old)
				cJSON_Delete(cJSON_DetachItemViaPointer(dst,
				    old));
			/* keeps the name it has */
			cJSON_AddItemToArray(dst, child);
		}
	}
}

/* Merges a checked file, higher than all before it. */
static void
conf_take(struct conf *c, struct conf_file *f)
{
	const struct conf_key *k;
	cJSON *parent, *old_parent, *v, *old, *list;
	struct str names;
	size_t i;

	for (i = 0; i < LENGTH(conf_keys); i++) {
		k = &conf_keys[i];
		v = conf_find(f->root, k->name, &parent);
		old = conf_find(c->merged, k->name, &old_parent);
		if (!v)
			continue;
		if ((k->flags & KEY_STICKY) && cJSON_IsTrue(old)) {
			cJSON_Delete(cJSON_DetachItemViaPointer(parent, v));
			continue;
		}
		c->from[i] = (struct conf_from){ f->level, f->origin };
		if (k->type == CONF_NAMES && cJSON_IsArray(v)) {
			str_init(&names, 0);
			cJSON_ArrayForEach(list, v)
				str_addf(&names, "%s%s", names.len ? "," : "",
				    list->valuestring);
			list = cJSON_CreateString(names.p);
			if (!list)
				core_die("out of memory");
			str_clear(&names);
			list->string = v->string;
			v->string = NULL;
			cJSON_ReplaceItemViaPointer(parent, v, list);
		}
		if (old && ((k->flags & KEY_ONCE) ||
		    (f->level == CONF_MANAGED_LEVEL &&
		    !strcmp(k->name, "availableModels"))))
			cJSON_Delete(cJSON_DetachItemViaPointer(old_parent,
			    old));
	}
	conf_merge(c->merged, f->root);
}

/* Text of one source: parsed, checked, taken in.  Clears f->root. */
static int
conf_take_text(struct conf *c, struct conf_file *f, struct err *e)
{
	cJSON *parent;
	size_t i;
	int r = -1;

	f->tracked = -1;
	if (conf_parse(c, f, e) < 0)
		goto out;
	for (i = 0; i < LENGTH(conf_keys); i++)
		if (conf_check_key(c, f, &conf_keys[i], e) < 0)
			goto out;
	conf_find(f->root, "permissions.deny", &parent);
	conf_drop_unknown(f, parent, "permissions.");
	conf_drop_unknown(f, f->root, "");
	conf_check_env(c, f);
	conf_check_mode(c, f);
	conf_take_rules(c, f);
	conf_take(c, f);
	r = 0;
out:
	cJSON_Delete(f->root);
	f->root = NULL;
	return r;
}

/* Reads what --settings names, which may be a pipe: <(jq ...). */
static int
conf_read_any(const char *path, struct str *out, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0)
		return err_sys(e, "open '%s'", path);
	r = file_read_fd(fd, path, LIM_SETTINGS, out, e);
	close(fd);
	return r;
}

/*
 * One settings file.  Absent is fine (unless `must`); there but unreadable,
 * a broken link included, is not.
 */
static int
conf_take_file(struct conf *c, enum conf_level level, const char *path,
    const char *anchor, bool must, struct err *e)
{
	struct conf_file f = { .level = level, .anchor = anchor };
	struct err why = { 0 };
	struct stat st;
	struct str text;
	int r;

	f.origin = arena_strdup(&c->arena, path);
	if (!must && lstat(path, &st) < 0 &&
	    (errno == ENOENT || errno == ENOTDIR))
		return 0;
	str_init(&text, 0);
	if ((must ? conf_read_any(path, &text, &why) :
	    file_read(path, LIM_SETTINGS, &text, &why)) < 0) {
		r = why.code == ERR_ABORT ?
		    err_set(e, ERR_ABORT, "%s", why.msg) :
		    conf_refuse(c, &f, 0, why.msg, e);
	} else {
		f.text = str_slice(&text);
		r = conf_take_text(c, &f, e);
	}
	str_clear(&text);
	return r;
}

/* --settings: JSON text where it starts with a brace, else a file. */
static int
conf_take_flag(struct conf *c, struct err *e)
{
	const char *given = c->opts->settings;
	struct slice text = text_trim(str_of(given));
	struct conf_file f = { .level = CONF_FLAG_LEVEL,
	    .origin = "--settings", .anchor = c->start_dir };
	struct str path;
	char *dir;
	int r;

	if (!given)
		return 0;
	if (!text.n)
		return err_set(e, ERR_USAGE,
		    "--settings: JSON or the name of a file expected");
	if (text.n > LIM_SETTINGS)
		return err_set(e, ERR_USAGE,
		    "--settings: more than %u bytes", LIM_SETTINGS);
	if (text.p[0] == '{') {
		f.text = text;
		return conf_take_text(c, &f, e);
	}
	str_init(&path, 0);
	file_norm(c->start_dir, given, &path);
	dir = file_dir(path.p);
	r = conf_take_file(c, CONF_FLAG_LEVEL, path.p,
	    arena_strdup(&c->arena, dir), true, e);
	free(dir);
	str_clear(&path);
	return r;
}

/* The managed file, then its fragments in order of their names. */
static int
conf_take_managed(struct conf *c, struct err *e)
{
	char *path = file_join(c->managed_dir, "managed-settings.json");
	char *dir = file_join(c->managed_dir, "managed-settings.d"), *one;
	struct strv names = { 0 };
	struct stat st;
	size_t i;
	int r;

	r = conf_take_file(c, CONF_MANAGED_LEVEL, path, c->managed_dir, false,
	    e);
	if (!r && (!lstat(dir, &st) || (errno != ENOENT && errno != ENOTDIR)))
		r = file_list(dir, &names, e);
	if (!r && names.n > CONF_FRAGMENTS)
		r = err_set(e, ERR_USAGE, "'%s' has more than %d files", dir,
		    CONF_FRAGMENTS);
	for (i = 0; !r && i < names.n; i++) {
		if (names.v[i][0] == '.' || !str_ends(names.v[i], ".json"))
			continue;
		one = file_join(dir, names.v[i]);
		r = conf_take_file(c, CONF_MANAGED_LEVEL, one, c->managed_dir,
		    false, e);
		free(one);
	}
	str_list_clear(&names);
	free(path);
	free(dir);
	return r;
}

/* Whether dir/.claude is the user's own folder (we run in the home). */
static bool
conf_is_own_dir(const struct conf *c, const char *dir)
{
	char *claude = file_join(dir, ".claude");
	struct stat a, b;
	bool same;

	same = c->config_dir && !stat(claude, &a) &&
	    !stat(c->config_dir, &b) && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino;
	free(claude);
	return same;
}

/*
 * All files, lowest first.  Project settings are those of the start folder;
 * local ones stand at the repository's root (the main checkout's for a
 * linked worktree), and one in the start folder is read as well: passing it
 * over could drop a deny rule.
 */
static int
conf_take_files(struct conf *c, struct err *e)
{
	static const char local[] = ".claude/settings.local.json";
	const char *root = c->main_root ? c->main_root : c->start_dir;
	char *user = c->config_dir ?
	    file_join(c->config_dir, "settings.json") : NULL;
	char *project = file_join(c->start_dir, ".claude/settings.json");
	char *upper = file_join(root, local);
	char *lower = file_join(c->start_dir, local);
	int r = 0;

	if (user && (c->sources & CONF_USER))
		r = conf_take_file(c, CONF_USER_LEVEL, user, c->config_dir,
		    false, e);
	if (!r && (c->sources & CONF_PROJECT) &&
	    !conf_is_own_dir(c, c->start_dir))
		r = conf_take_file(c, CONF_PROJECT_LEVEL, project,
		    c->start_dir, false, e);
	if (!r && (c->sources & CONF_LOCAL))
		r = conf_take_file(c, CONF_LOCAL_LEVEL, upper, c->start_dir,
		    false, e);
	if (!r && (c->sources & CONF_LOCAL) && strcmp(upper, lower))
		r = conf_take_file(c, CONF_LOCAL_LEVEL, lower, c->start_dir,
		    false, e);
	if (!r)
		r = conf_take_flag(c, e);
	if (!r)
		r = conf_take_managed(c, e);
	free(user);
	free(project);
	free(upper);
	free(lower);
	return r;
}

/* Rules and folders of the command line. */
static void
conf_take_options(struct conf *c)
{
	const struct opts *o = c->opts;
	size_t i;

	for (i = 0; i < o->disallowed.n; i++)
		conf_add_rule(c, o->disallowed.v[i], CONF_DENY, CONF_CLI,
		    c->start_dir, "--disallowedTools");
	for (i = 0; i < o->allowed.n; i++)
		conf_add_rule(c, o->allowed.v[i], CONF_ALLOW, CONF_CLI,
		    c->start_dir, "--allowedTools");
	for (i = 0; i < o->add_dirs.n; i++)
		conf_add_dir(c, o->add_dirs.v[i], "--add-dir");
}

/* allowManagedPermissionRulesOnly: all other rules go. */
static void
conf_managed_only(struct conf *c)
{
	size_t i, kept = 0;

	if (!conf_flag(c, "allowManagedPermissionRulesOnly", false))
		return;
	for (i = 0; i < c->nrules; i++)
		if (c->rules[i].level == CONF_MANAGED_LEVEL)
			c->rules[kept++] = c->rules[i];
	if (kept < c->nrules)
		log_warn("%zu permission rules are not used: %s allows only "
		    "managed ones", c->nrules - kept,
		    conf_origin(c, "allowManagedPermissionRulesOnly"));
	c->nrules = kept;
}

/*
 * Exports the merged `env` block, for us and for every command.  It goes
 * over what was inherited, as with Claude Code.
 */
static void
conf_export(struct conf *c)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, conf_get(c, "env"))
		if (setenv(v->string, v->valuestring, 1) < 0)
			log_warn("env.%.60s cannot be set: %s", v->string,
			    strerror(errno));
}

/* We have no sandbox: who insists on one must not run without it. */
static int
conf_check_sandbox(const struct conf *c, struct err *e)
{
	const cJSON *s = conf_get(c, "sandbox");

	if (!json_flag(s, "enabled", false))
		return 0;
	if (json_flag(s, "failIfUnavailable", false))
		return err_set(e, ERR_USAGE, "%.300s asks for a sandbox "
		    "(sandbox.failIfUnavailable); there is none here",
		    conf_origin(c, "sandbox"));
	log_warn("%.300s: sandbox.enabled has no effect, there is none here",
	    conf_origin(c, "sandbox"));
	return 0;
}

static void
conf_clear(struct conf *c)
{
	cJSON_Delete(c->merged);
	free(c->rules);
	str_list_clear(&c->dirs);
	arena_clear(&c->arena);
	*c = (struct conf){ .trust = -1 };
}

/*
 * Finds and merges everything.  `opts` stays the caller's and must outlive
 * c.  On failure c is cleared; ERR_USAGE where a file or option is wrong.
 */
static int
conf_load(struct conf *c, const struct opts *opts, struct err *e)
{
	*c = (struct conf){ .opts = opts, .trust = -1 };
	c->merged = cJSON_CreateObject();
	if (!c->merged)
		core_die("out of memory");
	c->bare = opts->bare || conf_env_on("CLAUDE_CODE_SIMPLE");
	if (conf_sources(opts->setting_sources, &c->sources, e) < 0 ||
	    conf_find_start(c, e) < 0)
		goto fail;
	conf_find_git(c);
	conf_find_config(c);
	str_list_adds(&c->dirs, c->start_dir);
	if (conf_take_files(c, e) < 0)
		goto fail;
	conf_take_options(c);
	conf_managed_only(c);
	if (conf_check_sandbox(c, e) < 0)
		goto fail;
	conf_export(c);
	return 0;
fail:
	conf_clear(c);
	return -1;
}
/*=== [model] aliases, windows, prices, effort: one table ====================
 * uses: core str err log text conf
 *
 * What we know about models stands in model_table and nowhere else.  An id
 * that is not there is sent as it is: gateways have names of their own.  Its
 * cost is then unknown, which is not 0, and careful limits hold.
 *==========================================================================*/

#define MODEL_DEFAULT "claude-sonnet-5-5"
#define MODEL_WINDOW 200000	/* of an unknown model */
#define MODEL_OUTPUT 32000	/* max_tokens unless set, of any model */
#define MODEL_ID 256		/* longest id; Bedrock's ARNs have under 200 */
#define MODEL_SEARCH 0.01	/* USD per web search: 10 USD per 1000 */

enum model_thinking {
	THINK_ADAPTIVE = 1,
	THINK_ENABLED = 2,	/* with budget_tokens */
	THINK_DISABLED = 4,	/* may be switched off */
	THINK_BETWEEN = 8,	/* between_tools */
	THINK_ON = 16		/* thinks unless told otherwise */
};

enum model_effort {
	EFFORT_LOW = 1,
	EFFORT_MEDIUM = 2,
	EFFORT_HIGH = 4,
	EFFORT_XHIGH = 8,
	EFFORT_MAX = 16,
	EFFORT_3 = 7,		/* low, medium, high */
	EFFORT_NO_X = 23,	/* all but xhigh */
	EFFORT_ALL = 31
};

struct model {
	const char *id;
	const char *family;	/* also the alias */
	int64_t window;		/* tokens of prompt and answer */
	int64_t max_output;	/* max_tokens above it is refused */
	double in, out;		/* USD per million tokens */
	double write5m, write1h, read;
	unsigned thinking;	/* enum model_thinking */
	unsigned efforts;	/* enum model_effort; 0: none may be sent */
	int cache_min;		/* a shorter prefix is silently not cached */
};

#define M 1000000
#define K 1000

/*
 * 30 November 2026, newest of a family first.  Source: reference
 * messages-api.md sections 6 (windows, prices), 1.9 (thinking, effort) and
 * 3.3 (smallest cached prefix).  From 4.6 on an id has no date.
 */
static const struct model model_table[] = {
	{ "claude-sonnet-5-5", "sonnet", M, 128 * K, 2, 10, 2.5, 4, 0.10,
	    THINK_ADAPTIVE | THINK_BETWEEN | THINK_ON, EFFORT_ALL, 512 },
	{ "claude-sonnet-5", "sonnet", M, 128 * K, 2, 10, 2.5, 4, 0.20,
	    THINK_ADAPTIVE | THINK_DISABLED | THINK_ON, EFFORT_ALL, 1024 },
	{ "claude-sonnet-4-6", "sonnet", M, 128 * K, 3, 15, 3.75, 6, 0.30,
	    THINK_ADAPTIVE | THINK_ENABLED | THINK_DISABLED, EFFORT_NO_X,
	    1024 },
	/* retired on 30 November 2026; gateways may still have it */
	{ "claude-sonnet-4-5", "sonnet", 200 * K, 64 * K, 3, 15, 3.75, 6,
	    0.30, THINK_ENABLED | THINK_DISABLED, 0, 1024 },
	{ "claude-opus-5-5", "opus", M, 128 * K, 4, 20, 5, 8, 0.20,
	    THINK_ADAPTIVE | THINK_ON, EFFORT_ALL, 512 },
	{ "claude-opus-5", "opus", M, 128 * K, 5, 25, 6.25, 10, 0.50,
	    THINK_ADAPTIVE | THINK_DISABLED | THINK_ON, EFFORT_ALL, 512 },
	{ "claude-opus-4-8", "opus", M, 128 * K, 5, 25, 6.25, 10, 0.50,
	    THINK_ADAPTIVE | THINK_DISABLED, EFFORT_ALL, 1024 },
	{ "claude-opus-4-7", "opus", M, 128 * K, 5, 25, 6.25, 10, 0.50,
	    THINK_ADAPTIVE | THINK_DISABLED, EFFORT_ALL, 2048 },
	{ "claude-opus-4-6", "opus", M, 128 * K, 5, 25, 6.25, 10, 0.50,
	    THINK_ADAPTIVE | THINK_ENABLED | THINK_DISABLED, EFFORT_NO_X,
	    4096 },
	{ "claude-opus-4-5", "opus", 200 * K, 64 * K, 5, 25, 6.25, 10, 0.50,
	    THINK_ENABLED | THINK_DISABLED, EFFORT_3, 4096 },
	{ "claude-haiku-5-5", "haiku", M, 128 * K, 0.10, 0.50, 0.125, 0.20,
	    0.01, THINK_ADAPTIVE | THINK_DISABLED | THINK_ON, EFFORT_ALL,
	    512 },
	{ "claude-haiku-4-5", "haiku", 200 * K, 64 * K, 1, 5, 1.25, 2, 0.10,
	    THINK_ENABLED | THINK_DISABLED, 0, 4096 },
	{ "claude-fable-5-2", "fable", M, 128 * K, 8, 40, 10, 16, 0.20,
	    THINK_ADAPTIVE | THINK_ON, EFFORT_ALL, 512 },
	{ "claude-fable-5-1", "fable", M, 128 * K, 10, 50, 12.5, 20, 0.25,
	    THINK_ADAPTIVE | THINK_ON, EFFORT_ALL, 512 },
	{ "claude-fable-5", "fable", M, 128 * K, 10, 50, 12.5, 20, 1.00,
	    THINK_ADAPTIVE | THINK_ON, EFFORT_ALL, 512 },
	{ "claude-mythos-5-2", "mythos", M, 128 * K, 8, 40, 10, 16, 0.20,
	    THINK_ADAPTIVE | THINK_ON, EFFORT_ALL, 512 },
	{ "claude-mythos-5-1", "mythos", M, 128 * K, 10, 50, 12.5, 20, 0.25,
	    THINK_ADAPTIVE | THINK_ON, EFFORT_ALL, 512 },
	{ "claude-mythos-5", "mythos", M, 128 * K, 10, 50, 12.5, 20, 1.00,
	    THINK_ADAPTIVE | THINK_ON, EFFORT_ALL, 512 },
};

#undef M
#undef K

/* Prompts above `over` tokens cost `factor` times as much, all of them. */
static const struct {
	const char *id;
	int64_t over;
	double factor;
} model_tiers[] = {
	{ "claude-haiku-5-5", 100000, 5 },
};

/* Families that may be asked for by name: the first row of model_table. */
static const struct {
	const char *name;
	const char *env;	/* a variable that names another id */
} model_aliases[] = {
	{ "sonnet", "ANTHROPIC_DEFAULT_SONNET_MODEL" },
	{ "opus", "ANTHROPIC_DEFAULT_OPUS_MODEL" },
	{ "haiku", "ANTHROPIC_DEFAULT_HAIKU_MODEL" },
	{ "fable", "ANTHROPIC_DEFAULT_FABLE_MODEL" },
};

/* The API no longer knows these; said in the debug log, sent all the same. */
static const char *const model_retired[] = {
	"claude-1*", "claude-2*", "claude-3-*", "claude-instant*",
	"claude-opus-4", "claude-opus-4-[01]", "claude-sonnet-4",
	"claude-sonnet-4-[05]", "claude-mythos-preview",
};

static const char *const model_efforts[] =
    { "low", "medium", "high", "xhigh", "max" };

/* Length of an id without [1m] and without a date (-20251001). */
static size_t
model_base(const char *id)
{
	size_t n = strlen(id), i;

	if (n > 4 && !strcasecmp(id + n - 4, "[1m]"))
		n -= 4;
	for (i = 0; i < 8 && i < n && isdigit((unsigned char)id[n - 1 - i]);)
		i++;
	return i == 8 && n > 9 && id[n - 9] == '-' && id[n - 8] == '2' ?
	    n - 9 : n;
}

/* What is known of an exact id, dated or not; NULL: nothing. */
static const struct model *
model_find(const char *id)
{
	size_t i, n = model_base(id);

	for (i = 0; i < LENGTH(model_table); i++)
		if (str_eq((struct slice){ id, n }, model_table[i].id))
			return &model_table[i];
	return NULL;
}

static int64_t
model_window(const char *id)
{
	const struct model *m = model_find(id);

	return m ? m->window : MODEL_WINDOW;
}

/* max_tokens of a request: CLAUDE_CODE_MAX_OUTPUT_TOKENS, else a default. */
static int64_t
model_max_tokens(const char *id)
{
	const struct model *m = model_find(id);
	int64_t n = conf_env_int("CLAUDE_CODE_MAX_OUTPUT_TOKENS", 1,
	    10000000, MODEL_OUTPUT);

	return m && n > m->max_output ? m->max_output : n;
}

/* The family that an id's name tells, known or not: "opus" or NULL. */
static const char *
model_family(const char *id)
{
	static const char *const names[] = { "sonnet", "opus", "haiku",
	    "fable", "mythos" };
	size_t i;

	for (i = 0; i < LENGTH(names); i++)
		if (strstr(id, names[i]))
			return names[i];
	return NULL;
}

/* Row of an alias, in any case and with [1m]; LENGTH: it is none. */
static size_t
model_alias(const char *name)
{
	size_t i, n = strlen(name);

	if (n > 4 && !strcasecmp(name + n - 4, "[1m]"))
		n -= 4;
	for (i = 0; i < LENGTH(model_aliases); i++)
		if (n == strlen(model_aliases[i].name) &&
		    !strncasecmp(name, model_aliases[i].name, n))
			break;
	return i;
}

/* An id as it is sent: without the mark for the large window. */
static void
model_put(struct str *out, const char *id)
{
	struct slice s = text_trim(str_of(id));

	if (s.n > 4 && !strncasecmp(s.p + s.n - 4, "[1m]", 4))
		s.n -= 4;
	str_reset(out);
	str_addl(out, s);
}

/*
 * Whether an entry of availableModels or deniedModels means this id: a
 * family (any of it), an id of the table (that one, dated or not), or the
 * start of an id up to a dash; all with or without "claude-".
 */
static bool
model_matches(const char *entry, const char *id)
{
	const char *family = model_family(id);
	char full[MODEL_ID];
	size_t n;

	if (family && !strcasecmp(entry, family))
		return true;
	snprintf(full, sizeof(full), "%s%s", str_starts(entry, "claude-") ||
	    !str_starts(id, "claude-") ? "" : "claude-", entry);
	if (model_find(full))
		return model_find(full) == model_find(id);
	n = model_base(full);
	return n && !strncasecmp(full, id, n) && (!id[n] || id[n] == '-');
}

static bool
model_is_listed(const cJSON *list, const char *id)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, list)
		if (model_matches(v->valuestring, id))
			return true;
	return false;
}

/* The newest model of a family. */
static const char *
model_first(const char *family)
{
	size_t i = 0;

	while (strcmp(model_table[i].family, family))
		i++;
	return model_table[i].id;
}

/* Whether settings permit the id; an empty list permits the default only. */
static bool
model_is_permitted(const struct conf *c, const char *id)
{
	const cJSON *some = conf_get(c, "availableModels");

	if (model_is_listed(conf_get(c, "deniedModels"), id))
		return false;
	return !some || model_is_listed(some, id) ||
	    (!some->child && !strcmp(id, MODEL_DEFAULT));
}

/* The newest permitted model of a family (NULL: of any); NULL: none. */
static const char *
model_newest(const struct conf *c, const char *family)
{
	size_t i;

	for (i = 0; i < LENGTH(model_table); i++)
		if ((!family || !strcmp(model_table[i].family, family)) &&
		    model_is_permitted(c, model_table[i].id))
			return model_table[i].id;
	return NULL;
}

/* Puts something permitted where `out` is not; -1: there is nothing. */
static int
model_permit(const struct conf *c, const char *asked, const char *family,
    const char *parent, struct str *out, struct err *e)
{
	const char *other = NULL;

	if (model_is_permitted(c, out->p))
		return 0;
	if (family)
		other = model_newest(c, family);
	if (!other && parent && model_is_permitted(c, parent))
		other = parent;
	if (!other && model_is_permitted(c, MODEL_DEFAULT))
		other = MODEL_DEFAULT;
	if (!other)
		other = model_newest(c, NULL);
	if (!other)
		return err_set(e, ERR_USAGE, "settings permit no model that "
		    "is known here (availableModels, deniedModels)");
	log_warn("the model '%s' is not permitted by %s; '%s' is used",
	    asked, conf_origin(c, "availableModels") ?
	    conf_origin(c, "availableModels") :
	    conf_origin(c, "deniedModels"), other);
	model_put(out, other);
	return 0;
}

/* The id that is used when nobody asks for one. */
static const char *
model_default(void)
{
	const char *s = conf_env("ANTHROPIC_DEFAULT_MODEL");

	return s ? s : MODEL_DEFAULT;
}

/* opusplan: Opus while planning, else Sonnet, by the mode at the start. */
static bool
model_is_plan(const struct conf *c)
{
	const char *mode = c->opts->permission_mode;

	if (!mode)
		mode = conf_text(c, "permissions.defaultMode");
	return mode && !strcmp(mode, "plan") && !c->opts->skip_permissions;
}

/* An id goes into requests and into messages: one plain word. */
static int
model_check(const char *id, const char *asked, struct err *e)
{
	const char *p;

	for (p = id; *p; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f ||
		    *p == '"' || *p == '\\')
			break;
	if (*p || p == id || p - id > MODEL_ID)
		return err_set(e, ERR_USAGE, "'%.60s' is not the name of a "
		    "model", asked);
	return 0;
}

/* One name to an id: alias, then the parent's own id, then as it stands. */
static void
model_expand(const struct conf *c, const char *asked, const char *parent,
    struct str *out, const char **family)
{
	const char *id = asked, *env, *mine;
	size_t i;

	if (!strcasecmp(asked, "opusplan"))
		asked = model_is_plan(c) ? "opus" : "sonnet";
	else if (!strcasecmp(asked, "best"))
		asked = "fable";
	i = model_alias(asked);
	*family = NULL;
	if (i < LENGTH(model_aliases)) {
		*family = model_aliases[i].name;
		env = conf_env(model_aliases[i].env);
		mine = parent ? model_family(parent) : NULL;
		/* The same family: the parent's very id, a gateway's maybe. */
		id = mine && !strcmp(mine, *family) ? parent :
		    env ? env : model_first(*family);
	}
	model_put(out, id);
}

/*
 * The id to send for what was asked: an alias, an id, or "inherit", NULL or
 * "" for the parent's (without a parent: the default).  Ids are not checked
 * against the table.
 */
static int
model_resolve(const struct conf *c, const char *asked, const char *parent,
    struct str *id, struct err *e)
{
	const char *family = NULL;
	char *base;
	size_t i;

	if (!asked || !*asked || !strcasecmp(asked, "inherit"))
		asked = parent ? parent : model_default();
	else if (!strcasecmp(asked, "default"))
		asked = model_default();
	model_expand(c, asked, parent, id, &family);
	if (model_check(id->p, asked, e) < 0 ||
	    model_permit(c, asked, family, parent, id, e) < 0)
		return -1;
	base = core_memdup(id->p, model_base(id->p));
	for (i = 0; i < LENGTH(model_retired); i++)
		if (text_glob(model_retired[i], base))
			log_debug("model", "'%s' is retired", id->p);
	free(base);
	if (!model_find(id->p))
		log_debug("model", "'%s' is not in the table: cost unknown, "
		    "window %d, answers up to %d tokens", id->p, MODEL_WINDOW,
		    MODEL_OUTPUT);
	return 0;
}

/*
 * The main model: --model, the agent's own (`def`, may be NULL or inherit),
 * ANTHROPIC_MODEL, settings, ANTHROPIC_DEFAULT_MODEL, the default.
 */
static int
model_main(const struct conf *c, const char *def, struct str *id,
    struct err *e)
{
	const char *asked = c->opts->model;

	if ((!asked || !*asked) && def && *def && strcasecmp(def, "inherit"))
		asked = def;
	if (!asked || !*asked)
		asked = conf_env("ANTHROPIC_MODEL");
	if (!asked)
		asked = conf_text(c, "model");
	return model_resolve(c, asked, NULL, id, e);
}

/*
 * USD that one request cost; false: the model's prices are not known.  Per
 * request, since a tier depends on the size of the one prompt.
 */
static bool
model_cost(const char *id, const struct usage *u, double *usd)
{
	const struct model *m = model_find(id);
	int64_t write5m = u->cache_write - u->cache_write_1h;
	double sum;
	size_t i;

	*usd = 0;
	if (!m)
		return false;
	/* Servers that do not split their writes mean the short ones. */
	if (write5m < u->cache_write_5m)
		write5m = u->cache_write_5m;
	sum = (double)u->input * m->in + (double)u->output * m->out +
	    (double)u->cache_read * m->read +
	    (double)write5m * m->write5m +
	    (double)u->cache_write_1h * m->write1h;
	for (i = 0; i < LENGTH(model_tiers); i++)
		if (!strcmp(model_tiers[i].id, m->id) && u->input +
		    u->cache_read + write5m + u->cache_write_1h >
		    model_tiers[i].over)
			sum *= model_tiers[i].factor;
	*usd = sum / 1e6 + (double)u->web_search * MODEL_SEARCH;
	return true;
}

/*
 * The effort level to send, or NULL for none: the highest that the model
 * has up to the one asked for.  A model that is not known gets what was
 * asked.  "auto" and words that are no level mean the model's own choice.
 */
static const char *
model_effort(const char *id, const char *asked)
{
	const struct model *m = model_find(id);
	unsigned have = m ? m->efforts : EFFORT_ALL;
	size_t i;

	for (i = 0; asked && i < LENGTH(model_efforts); i++)
		if (!strcasecmp(asked, model_efforts[i]))
			break;
	if (!asked || i == LENGTH(model_efforts))
		return NULL;
	for (; !(have >> i & 1); i--)
		if (!i)
			return NULL;
	return model_efforts[i];
}

/* Whether the word is a level, or "auto". */
static bool
model_is_effort(const char *s)
{
	size_t i;

	for (i = 0; i < LENGTH(model_efforts); i++)
		if (!strcasecmp(s, model_efforts[i]))
			return true;
	return !strcasecmp(s, "auto");
}

/*
 * The level that was asked for, by rank: the environment, the call, the
 * agent's own, --effort, settings; NULL: nobody asked.  A word that is none
 * is warned of and passed over.
 */
static const char *
model_effort_asked(const struct conf *c, const char *call, const char *def)
{
	const struct {
		const char *what;
		const char *level;
	} asked[] = {
		{ "CLAUDE_CODE_EFFORT_LEVEL",
		    conf_env("CLAUDE_CODE_EFFORT_LEVEL") },
		{ "effort of the call", call },
		{ "effort of the agent", def },
		{ "--effort", c->opts->effort },
		{ "effortLevel of the settings", conf_text(c, "effortLevel") },
	};
	size_t i;

	for (i = 0; i < LENGTH(asked); i++) {
		if (!asked[i].level || !*asked[i].level)
			continue;
		if (model_is_effort(asked[i].level))
			return asked[i].level;
		log_warn("%s: '%.40s' is not one of low, medium, high, xhigh, "
		    "max; not used", asked[i].what, asked[i].level);
	}
	return NULL;
}
/*=== [def] agent definitions and where they come from =======================
 * uses: core arena str err log text json yaml file conf model
 *
 * A definition is a Markdown file with frontmatter, a member of the --agents
 * object, or compiled in.  Of several with one name the one counts that
 * stands first in this order: managed, --agents, project (the nearest folder
 * first), user, built-in; within a folder the first by the bytes of its path.
 *
 * A field that restricts (tools, disallowedTools, permissionMode, ...) is
 * understood or the file is refused: it must never mean more than its author
 * wrote.  A refused file also keeps others of its name from taking its place.
 * Every other fault is a warning with a code and a line.  Nothing here prints.
 *==========================================================================*/

#define DEF_DEPTH 16		/* folders below agents/; deepest seen 5 */
#define DEF_DIRS 2000		/* a link to "/" must not walk the disk */
#define DEF_FILES 20000
#define DEF_SHOWN 10		/* names in one message */

struct def_warning {
	const char *code;
	const char *message;
	int line;		/* 0: of no line */
};

/* A definition, or (error set) a file that is none. */
struct def {
	struct arena own;	/* the text below, where def_parse() made it */
	const char *name;
	const char *description;
	const char *prompt;	/* trimmed, may be ""; NULL: still in its file,
				   see def_find() */
	uint64_t header;	/* hash of the header's bytes */
	const char *path;	/* NULL: no file */
	const char *source;	/* built-in, user, project, flag, managed */
	const char *model;	/* alias in lower case, id, inherit; NULL */
	bool has_tools;		/* false: no restriction */
	struct strv tools;	/* entries as written */
	struct strv disallowed;
	struct strv skills;
	bool has_mode;
	enum perm_mode mode;
	int max_turns;		/* 0: no limit */
	const char *effort;	/* a level, or NULL; so the next four */
	const char *memory;
	const char *isolation;
	const char *color;
	const char *initial_prompt;
	const char *critical_reminder;
	bool background;
	bool omit_claude_md;
	cJSON *hooks;		/* as in settings; NULL */
	cJSON *mcp_servers;	/* list of names and {name: config}; NULL */

	struct def_warning *warnings;
	size_t nwarnings;
	size_t warnings_cap;
	const char *error;	/* code; NULL: it loaded */
	const char *error_message;
	int error_line;
	size_t scope;		/* which folder it is of, in the order above */
	bool active;		/* its name means this one */
	const struct def *winner; /* not active: who stands in its place */
};

/* All of them, in the order above. */
struct defs {
	struct arena arena;	/* their text */
	struct def *list;
	size_t n;
	size_t cap;
	const char *prompt;	/* the default agent's system prompt */
};

/*--- tool names ------------------------------------------------------------*/

/* Every tool name that a list may hold, sorted; `now`: what it means. */
static const struct def_tool {
	const char *name;
	const char *now;	/* NULL: itself; "": nothing any more */
} def_tools[] = {
	{ "Agent", NULL },
	{ "AgentOutputTool", "" },
	{ "Artifact", NULL },
	{ "AskUserQuestion", NULL },
	{ "Bash", NULL },
	{ "BashOutput", "" },
	{ "Brief", "SendUserMessage" },
	{ "ClaudeDesign", NULL },
	{ "CronCreate", NULL },
	{ "CronDelete", NULL },
	{ "CronList", NULL },
	{ "Edit", NULL },
	{ "EndConversation", NULL },
	{ "EnterPlanMode", NULL },
	{ "EnterWorktree", NULL },
	{ "ExitPlanMode", NULL },
	{ "ExitWorktree", NULL },
	{ "Glob", NULL },
	{ "Grep", NULL },
	{ "KillBash", "TaskStop" },
	{ "KillShell", "TaskStop" },
	{ "LS", "" },
	{ "LSP", NULL },
	{ "ListAgents", NULL },
	{ "ListMcpResources", "ListMcpResourcesTool" },
	{ "ListMcpResourcesTool", NULL },
	{ "ListPeers", "ListAgents" },
	{ "Monitor", NULL },
	{ "MultiEdit", "" },
	{ "NotebookEdit", NULL },
	{ "NotebookRead", "" },
	{ "ObserverReport", NULL },
	{ "OfferChromeSetup", NULL },
	{ "PowerShell", NULL },
	{ "Projects", NULL },
	{ "ProposeGoal", "SetGoal" },
	{ "PushNotification", NULL },
	{ "Read", NULL },
	{ "ReadMcpResource", "ReadMcpResourceTool" },
	{ "ReadMcpResourceDir", "ReadMcpResourceDirTool" },
	{ "ReadMcpResourceDirTool", NULL },
	{ "ReadMcpResourceTool", NULL },
	{ "ReadNotifications", NULL },
	{ "RefreshMcpTools", NULL },
	{ "RemoteTrigger", NULL },
	{ "ReportFindings", NULL },
	{ "ScheduleWakeup", NULL },
	{ "SendFeedback", NULL },
	{ "SendMessage", NULL },
	{ "SendUserFile", NULL },
	{ "SendUserMessage", NULL },
	{ "SetGoal", NULL },
	{ "ShareOnboardingGuide", NULL },
	{ "ShowOnboardingRolePicker", NULL },
	{ "Skill", NULL },
	{ "SlashCommand", "Skill" },
	{ "StructuredOutput", NULL },
	{ "SubagentHandback", NULL },
	{ "Task", "Agent" },
	{ "TaskCreate", NULL },
	{ "TaskGet", NULL },
	{ "TaskList", NULL },
	{ "TaskOutput", "" },
	{ "TaskStop", NULL },
	{ "TaskUpdate", NULL },
	{ "TodoRead", "" },
	{ "TodoWrite", NULL },
	{ "ToolSearch", NULL },
	{ "WaitForMcpServers", NULL },
	{ "WebFetch", NULL },
	{ "WebSearch", NULL },
	{ "Workflow", NULL },
	{ "Write", NULL },
	{ "propose_skills", NULL },
};

static int
def_tool_by_name(const void *key, const void *row)
{
	return strcmp(key, ((const struct def_tool *)row)->name);
}

/*
 * What a tool's name means today: itself, its new name, "" for a tool that
 * is gone and not missed, NULL where nobody knows it.
 */
static const char *
def_tool_alias(const char *name)
{
	const struct def_tool *t;

	if (str_starts(name, "mcp__"))
		return name;
	t = bsearch(name, def_tools, LENGTH(def_tools), sizeof(*def_tools),
	    def_tool_by_name);
	return !t ? NULL : t->now ? t->now : t->name;
}

/* The known name that differs in case alone, or NULL. */
static const char *
def_tool_hint(const char *name)
{
	size_t i;

	for (i = 0; i < LENGTH(def_tools); i++)
		if (!strcasecmp(def_tools[i].name, name))
			return def_tools[i].name;
	return NULL;
}

/* Whether an entry of a tool list can mean something. */
static bool
def_tool_is_known(const char *entry)
{
	char *name = core_memdup(entry, strcspn(entry, "("));
	bool known = def_tool_alias(name) != NULL;
	size_t i;

	if (!known && strchr(name, '*'))
		for (i = 0; i < LENGTH(def_tools) && !known; i++)
			known = text_glob(name, def_tools[i].name);
	free(name);
	return known;
}

/*--- reading one -----------------------------------------------------------*/

/* A definition while its fields are read. */
struct def_reader {
	struct def *d;
	struct arena *a;	/* where its text goes */
	const struct yaml *y;	/* NULL: JSON */
	struct strv *problems;	/* JSON: what is wrong, one line each */
};

static int
def_line(const struct def_reader *r, const char *key)
{
	return r->y && key ? yaml_line(r->y, key) : 0;
}

/* A text that was cut in the middle of a character is valid again. */
static const char * __attribute__((format(printf, 2, 0)))
def_message(struct arena *a, const char *fmt, va_list ap)
{
	char buf[LIM_MSG];
	struct str s;
	char *text;

	vsnprintf(buf, sizeof(buf), fmt, ap);
	str_init(&s, 0);
	text_utf8_fix(str_of(buf), &s);
	text = arena_dup(a, s.p, s.len);
	str_clear(&s);
	return text;
}

static void __attribute__((format(printf, 5, 6)))
def_add_warning(struct arena *a, struct def *d, const char *code, int line,
    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->warnings = core_grow(d->warnings, d->nwarnings, &d->warnings_cap,
	    sizeof(*d->warnings));
	d->warnings[d->nwarnings++] = (struct def_warning){ code,
	    def_message(a, fmt, ap), line };
	va_end(ap);
}

#define def_warning(r, key, code, ...) \
	def_add_warning((r)->a, (r)->d, code, def_line(r, key), __VA_ARGS__)

/* It does not load; what is said first counts. */
static void __attribute__((format(printf, 4, 5)))
def_refuse(struct def_reader *r, const char *code, int line,
    const char *fmt, ...)
{
	va_list ap;

	if (r->d->error && !r->problems)
		return;
	va_start(ap, fmt);
	r->d->error = code;
	r->d->error_line = line;
	r->d->error_message = def_message(r->a, fmt, ap);
	va_end(ap);
}

/* A key's value cannot be taken: the file is refused, or JSON complains. */
static void
def_refuse_key(struct def_reader *r, const char *key, const char *want,
    const cJSON *v)
{
	const char *text = cJSON_GetStringValue(v);
	const char *is = text ? text : json_kind(v);
	const char *q = text ? "'" : "";
	struct str s;

	if (!r->problems) {
		def_refuse(r, "bad-type", def_line(r, key),
		    "%s: %s expected, not %s%.80s%s", key, want, q, is, q);
		return;
	}
	str_init(&s, LIM_MSG);
	str_addf(&s, "%.100s.%s: %s expected, not %s%.80s%s", r->d->name, key,
	    want, q, is, q);
	str_list_take(r->problems, str_detach(&s));
}

static void
def_ignore(struct def_reader *r, const char *key, const char *want,
    const cJSON *v)
{
	const char *is = v->valuestring ? v->valuestring : json_kind(v);
	const char *q = v->valuestring ? "'" : "";

	def_warning(r, key, "value-ignored", "%s: %s expected, not "
	    "%s%.80s%s; not used", key, want, q, is, q);
}

/* The value was guessed from text that is no YAML. */
static bool
def_is_loose(const struct def_reader *r, const char *key)
{
	return r->y && str_list_has(&r->y->loose, key);
}

/* A scalar's characters, trimmed; NULL for null, lists and maps. */
static const char *
def_text(struct def_reader *r, const cJSON *v)
{
	struct slice s;

	if (cJSON_IsNull(v) || !v->valuestring)
		return NULL;
	s = text_trim(str_of(v->valuestring));
	return arena_dup(r->a, s.p, s.n);
}

/* One of some words, or NULL. */
static const char *
def_word(const char *s, const char *const *words)
{
	for (; s && *words; words++)
		if (!strcmp(s, *words))
			return *words;
	return NULL;
}

/* Lower-case letters, digits and single hyphens. */
static bool
def_is_plain_name(const char *s)
{
	bool letter = false;

	for (; *s; s++) {
		if (*s == '-' ? !letter : !(*s >= 'a' && *s <= 'z') &&
		    !isdigit((unsigned char)*s))
			return false;
		letter = *s != '-';
	}
	return letter;
}

static void
def_read_name(struct def_reader *r, const char *key, const cJSON *v)
{
	const char *s = def_text(r, v);

	if (cJSON_IsArray(v) || cJSON_IsObject(v)) {
		def_refuse_key(r, key, "text", v);
		return;
	}
	r->d->name = s && *s ? s : NULL;
	if (!s || !*s)
		def_refuse(r, "bad-name", def_line(r, key), "the name is "
		    "empty");
	else if (*s == '-')
		def_refuse(r, "bad-name", def_line(r, key), "the name '%.80s' "
		    "starts with a hyphen", s);
	else if (strchr(s, ':'))
		def_refuse(r, "bad-name", def_line(r, key), "the name '%.80s' "
		    "has a colon in it, which is for plugins", s);
	else if (!def_is_plain_name(s) && strcmp(r->d->source, "built-in"))
		def_warning(r, key, "name-style", "the name '%.80s' is not "
		    "lower-case letters, digits and single hyphens; it is "
		    "called by exactly this text", s);
}

static void
def_read_description(struct def_reader *r, const char *key, const cJSON *v)
{
	const char *s = def_text(r, v);

	if (cJSON_IsArray(v) || cJSON_IsObject(v) || (!s && r->problems))
		def_refuse_key(r, key, "text", v);
	else if (!s || !*s)
		def_refuse(r, "no-description", def_line(r, key),
		    "the description is empty");
	else
		r->d->description = s;
	if (s && *s && r->y && str_list_has(&r->y->cut, key))
		def_warning(r, key, "comment-truncated", "the description "
		    "ends before ' #', which begins a comment; put it in "
		    "quotes");
}

/* One entry of a list, one pair of quotes or brackets removed. */
static void
def_add_entry(struct slice s, struct strv *out)
{
	static const char open[] = "\"'`[", close[] = "\"'`]";
	const char *at;

	s = text_trim(s);
	at = s.n > 1 ? strchr(open, s.p[0]) : NULL;
	if (at && s.p[s.n - 1] == close[at - open])
		s = text_trim((struct slice){ s.p + 1, s.n - 2 });
	if (s.n)
		str_list_add(out, s.p, s.n);
}

/*
 * Splits at commas outside parentheses.  A bracket that is open at the start
 * counts as closed at the end.  false: parentheses do not match.
 */
static bool
def_split(const char *text, struct strv *out)
{
	struct slice s = text_trim(str_of(text));
	size_t i, from = 0;
	int depth = 0;

	if (s.n && s.p[0] == '[') {
		s.p++;
		s.n--;
		if (s.n && s.p[s.n - 1] == ']')
			s.n--;
	}
	for (i = 0; i <= s.n; i++) {
		if (i < s.n && s.p[i] == '(')
			depth++;
		else if (i < s.n && s.p[i] == ')' && --depth < 0)
			return false;
		if (i == s.n || (s.p[i] == ',' && !depth)) {
			def_add_entry((struct slice){ s.p + from, i - from },
			    out);
			from = i + 1;
		}
	}
	return !depth;
}

/* A list as text or as a list; -1: refused. */
static int
def_list(struct def_reader *r, const char *key, const cJSON *v,
    struct strv *out)
{
	const cJSON *item, *array = cJSON_IsArray(v) ? v : NULL;
	const char *bad = NULL;

	if (cJSON_IsString(v)) {
		if (!def_split(v->valuestring, out))
			bad = "matching parentheses";
	} else if (!cJSON_IsArray(v) && !cJSON_IsNull(v)) {
		bad = "a list or comma-separated text";
	}
	cJSON_ArrayForEach(item, array) {
		if (cJSON_IsNull(item))
			continue;
		if (!item->valuestring)
			bad = "text in each entry";
		else if (!def_split(item->valuestring, out))
			bad = "matching parentheses";
		if (bad)
			v = item;
		if (bad)
			break;
	}
	if (bad)
		def_refuse_key(r, key, bad, v);
	return bad ? -1 : 0;
}

/* A tool's name, with anything in parentheses behind it. */
static bool
def_is_tool_word(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
	    "uvwxyz0123456789_*.-");

	return n && (!s[n] || (s[n] == '(' && str_ends(s, ")")));
}

/* Warns of entries that no tool has, all in one. */
static void
def_check_tools(struct def_reader *r, const char *key,
    const struct strv *list)
{
	size_t i, n = 0;
	const char *hint;
	struct str s;

	str_init(&s, 0);
	for (i = 0; i < list->n; i++) {
		if (def_tool_is_known(list->v[i]) || ++n > DEF_SHOWN)
			continue;
		hint = def_tool_hint(list->v[i]);
		str_addf(&s, "%s'%.60s'", s.len ? ", " : "", list->v[i]);
		if (hint)
			str_addf(&s, " (meant '%s'?)", hint);
	}
	if (n > DEF_SHOWN)
		str_addf(&s, " and %zu more", n - DEF_SHOWN);
	if (n)
		def_warning(r, key, "unknown-tool", "%s: no tool is called %s",
		    key, s.p);
	str_clear(&s);
}

static void
def_read_tools(struct def_reader *r, const char *key, const cJSON *v)
{
	bool allow = !strcmp(key, "tools");
	struct strv *list = allow ? &r->d->tools : &r->d->disallowed;
	size_t i;

	/* Narrow until it is understood. */
	r->d->has_tools |= allow;
	if (def_list(r, key, v, list) < 0)
		return;
	for (i = 0; def_is_loose(r, key) && i < list->n; i++) {
		if (def_is_tool_word(list->v[i]))
			continue;
		def_refuse(r, "bad-type", def_line(r, key), "%s: '%.80s' is "
		    "no tool's name, and the header is not valid YAML", key,
		    list->v[i]);
		return;
	}
	if (allow && str_list_has(list, "*")) {
		r->d->has_tools = false;
		str_list_clear(list);
		return;
	}
	if (allow && !list->n && !(cJSON_IsArray(v) && !v->child))
		def_warning(r, key, "empty-tools", "tools: nothing is listed, "
		    "so the agent has no tools; leave the key out for all, "
		    "write [] for none");
	def_check_tools(r, key, list);
}

static void
def_read_skills(struct def_reader *r, const char *key, const cJSON *v)
{
	def_list(r, key, v, &r->d->skills);
}

static void
def_read_model(struct def_reader *r, const char *key, const cJSON *v)
{
	static const char *const words[] = { "inherit", "default", "best",
	    "opusplan", NULL };
	const char *s = def_text(r, v);
	char *low, *p;

	if (cJSON_IsArray(v) || cJSON_IsObject(v)) {
		def_ignore(r, key, "one model", v);
		return;
	}
	if (!s || !*s)
		return;
	low = arena_strdup(r->a, s);
	for (p = low; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	r->d->model = s;
	if (def_word(low, words) || model_alias(s) < LENGTH(model_aliases))
		r->d->model = low;
	else if (!strstr(s, "claude-") || strpbrk(s, " \t\n"))
		def_warning(r, key, "model-unknown", "model: '%.80s' is "
		    "neither an alias nor an id that is known", s);
}

static void
def_read_mode(struct def_reader *r, const char *key, const cJSON *v)
{
	/* `auto` needs a classifier that is not here: it asks, too. */
	static const struct {
		const char *name;
		enum perm_mode mode;
	} modes[] = {
		{ "default", MODE_DEFAULT }, { "manual", MODE_DEFAULT },
		{ "auto", MODE_DEFAULT }, { "plan", MODE_PLAN },
		{ "acceptEdits", MODE_ACCEPT_EDITS },
		{ "dontAsk", MODE_DONT_ASK },
		{ "bypassPermissions", MODE_BYPASS },
	};
	const char *s = def_text(r, v);
	size_t i;

	for (i = 0; s && i < LENGTH(modes); i++) {
		if (strcmp(s, modes[i].name))
			continue;
		r->d->has_mode = true;
		r->d->mode = modes[i].mode;
		return;
	}
	def_refuse_key(r, key, "default, plan, acceptEdits, dontAsk, auto or "
	    "bypassPermissions", v);
}

static void
def_read_isolation(struct def_reader *r, const char *key, const cJSON *v)
{
	static const char *const words[] = { "worktree", "remote", NULL };

	r->d->isolation = def_word(def_text(r, v), words);
	if (!r->d->isolation)
		def_refuse_key(r, key, "worktree or remote", v);
}

static void
def_read_max_turns(struct def_reader *r, const char *key, const cJSON *v)
{
	const char *s = def_text(r, v);
	int64_t n;

	if (cJSON_IsNumber(v) && v->valuedouble >= 1 &&
	    v->valuedouble <= INT_MAX && v->valuedouble == (int)v->valuedouble)
		r->d->max_turns = (int)v->valuedouble;
	else if (s && text_int(str_of(s), 1, INT_MAX, &n))
		r->d->max_turns = (int)n;
	else if (def_is_loose(r, key))
		def_refuse_key(r, key, "a whole number over 0", v);
	else
		def_ignore(r, key, "a whole number over 0", v);
}

static void
def_read_effort(struct def_reader *r, const char *key, const cJSON *v)
{
	const char *s = def_text(r, v);

	if (s && model_is_effort(s))
		r->d->effort = s;
	else
		def_ignore(r, key, "low, medium, high, xhigh or max", v);
}

static void
def_read_memory(struct def_reader *r, const char *key, const cJSON *v)
{
	static const char *const words[] = { "user", "project", "local",
	    NULL };

	r->d->memory = def_word(def_text(r, v), words);
	if (!r->d->memory)
		def_ignore(r, key, "user, project or local", v);
}

static void
def_read_flag(struct def_reader *r, const char *key, const cJSON *v)
{
	const char *s = def_text(r, v);
	int yes = cJSON_IsBool(v) ? cJSON_IsTrue(v) : s ? text_bool(s) : -1;

	if (yes < 0)
		def_ignore(r, key, "true or false", v);
	else if (!strcmp(key, "background"))
		r->d->background = yes;
	else
		r->d->omit_claude_md = yes;
}

/* Decoration, and two texts of which "" is as good as none. */
static void
def_read_text(struct def_reader *r, const char *key, const cJSON *v)
{
	const char *s = def_text(r, v);

	if (!strcmp(key, "color"))
		r->d->color = s;
	else if (cJSON_IsArray(v) || cJSON_IsObject(v))
		def_ignore(r, key, "text", v);
	else if (!strcmp(key, "initialPrompt"))
		r->d->initial_prompt = s && *s ? s : NULL;
	else
		r->d->critical_reminder = s && *s ? s : NULL;
}

/* Events that hooks may name. */
static const char *const def_events[] = {
	"ConfigChange", "CwdChanged", "InstructionsLoaded", "Notification",
	"PermissionDenied", "PermissionRequest", "PostCompact",
	"PostModelSwitch", "PostToolBatch", "PostToolUse",
	"PostToolUseFailure", "PreCompact", "PreModelSwitch",
	"PreSkillShellCommand", "PreToolUse", "SessionEnd", "SessionStart",
	"Setup", "Stop", "StopFailure", "SubagentStart", "SubagentStop",
	"UserPromptSubmit", "WorktreeCreate", "WorktreeRemove", NULL
};

/* NULL where hooks have the form of the settings' key. */
static const char *
def_hooks_fault(const cJSON *v)
{
	const cJSON *event, *group;

	if (!cJSON_IsObject(v))
		return "a map of events is expected";
	cJSON_ArrayForEach(event, v) {
		if (!def_word(event->string, def_events))
			return event->string;
		if (!cJSON_IsArray(event))
			return "a list is expected for each event";
		cJSON_ArrayForEach(group, event)
			if (!cJSON_IsArray(json_get(group, "hooks")))
				return "'hooks' is missing in an event";
	}
	return NULL;
}

static void
def_read_hooks(struct def_reader *r, const char *key, const cJSON *v)
{
	const char *why = def_hooks_fault(v);

	if (cJSON_IsNull(v))
		return;
	if (why && def_is_loose(r, key))
		def_refuse_key(r, key, "a map of events", v);
	else if (why)
		def_warning(r, key, "hooks-ignored", "hooks: %s%.60s; none of "
		    "them is run", strchr(why, ' ') ? "" :
		    "no event is called ", *why ? why : "''");
	else
		r->d->hooks = yaml_new(cJSON_Duplicate(v, true));
}

/* Makes a list out of text, a list or a map of servers. */
static cJSON *
def_servers(const cJSON *v)
{
	cJSON *list = yaml_new(cJSON_CreateArray()), *one;
	const cJSON *item, *all = cJSON_IsString(v) ? NULL : v;
	struct strv names = { 0 };
	size_t i;

	if (cJSON_IsString(v))
		def_split(v->valuestring, &names);
	for (i = 0; i < names.n; i++)
		cJSON_AddItemToArray(list,
		    yaml_new(cJSON_CreateString(names.v[i])));
	str_list_clear(&names);
	cJSON_ArrayForEach(item, all) {
		one = yaml_new(cJSON_Duplicate(item, true));
		if (cJSON_IsObject(v)) {
			cJSON_AddItemToArray(list,
			    yaml_new(cJSON_CreateObject()));
			cJSON_AddItemToObject(list->child->prev, item->string,
			    one);
		} else {
			cJSON_AddItemToArray(list, one);
		}
	}
	return list;
}

static void
def_read_servers(struct def_reader *r, const char *key, const cJSON *v)
{
	static const char want[] = "a list of names and of maps";
	cJSON *list, *item;
	bool ok;

	if (cJSON_IsNull(v))
		return;
	list = def_servers(v);
	ok = cJSON_IsString(v) || cJSON_IsArray(v) || cJSON_IsObject(v);
	cJSON_ArrayForEach(item, list)
		ok &= cJSON_IsString(item) || (cJSON_IsObject(item) &&
		    item->child && cJSON_IsObject(item->child));
	if (ok && !def_is_loose(r, key)) {
		r->d->mcp_servers = list;
		return;
	}
	cJSON_Delete(list);
	if (def_is_loose(r, key))
		def_refuse_key(r, key, want, v);
	else
		def_ignore(r, key, want, v);
}

/* What the reader of the same row in def_readers knows. */
static const struct yaml_field def_fields[] = {
	{ "name", YAML_NEED },
	{ "description", YAML_TEXT | YAML_NEED },
	{ "tools", YAML_GUARD },
	{ "disallowedTools", YAML_GUARD },
	{ "permissionMode", YAML_GUARD },
	{ "isolation", YAML_GUARD },
	{ "maxTurns", YAML_GUARD },
	{ "hooks", YAML_GUARD },
	{ "mcpServers", YAML_GUARD },
	{ "model", 0 },
	{ "skills", 0 },
	{ "effort", 0 },
	{ "memory", 0 },
	{ "background", 0 },
	{ "omitClaudeMd", 0 },
	{ "color", 0 },
	{ "initialPrompt", YAML_TEXT },
	{ "criticalSystemReminder_EXPERIMENTAL", YAML_TEXT },
	{ NULL, 0 }
};

static void (*const def_readers[])(struct def_reader *, const char *,
    const cJSON *) = {
	def_read_name, def_read_description, def_read_tools, def_read_tools,
	def_read_mode, def_read_isolation, def_read_max_turns,
	def_read_hooks, def_read_servers, def_read_model, def_read_skills,
	def_read_effort, def_read_memory, def_read_flag, def_read_flag,
	def_read_text, def_read_text, def_read_text
};
_Static_assert(LENGTH(def_fields) == LENGTH(def_readers) + 1, "def_fields");

/* What a key that is none was meant for, if that restricts; else NULL. */
static const char *
def_near_miss(const char *key)
{
	static const struct {
		const char *like;
		const char *key;
	} near[] = {
		{ "tool", "tools" }, { "tools", "tools" },
		{ "allowedtool", "tools" }, { "allowedtools", "tools" },
		{ "allowtools", "tools" }, { "toolsallowed", "tools" },
		{ "toolset", "tools" }, { "availabletools", "tools" },
		{ "disallowedtool", "disallowedTools" },
		{ "disallowedtools", "disallowedTools" },
		{ "disallowtools", "disallowedTools" },
		{ "disabledtools", "disallowedTools" },
		{ "deniedtools", "disallowedTools" },
		{ "denytools", "disallowedTools" },
		{ "blockedtools", "disallowedTools" },
		{ "forbiddentools", "disallowedTools" },
		{ "excludedtools", "disallowedTools" },
		{ "permission", "permissionMode" },
		{ "permissions", "permissionMode" },
		{ "permissionmode", "permissionMode" },
		{ "permissionsmode", "permissionMode" },
		{ "maxturn", "maxTurns" }, { "maxturns", "maxTurns" },
		{ "turnlimit", "maxTurns" },
		{ "maxsteps", "maxTurns" }, { "maxiterations", "maxTurns" },
		{ "hook", "hooks" }, { "hooks", "hooks" },
		{ "isolation", "isolation" }, { "isolated", "isolation" },
	};
	char like[32];
	size_t i, n = 0;

	for (; *key && n < sizeof(like) - 1; key++)
		if (isalnum((unsigned char)*key))
			like[n++] = (char)tolower((unsigned char)*key);
	like[n] = 0;
	for (i = 0; i < LENGTH(near) && !*key; i++)
		if (!strcmp(like, near[i].like))
			return near[i].key;
	return NULL;
}

/* All fields of a header or of a member of --agents. */
static void
def_read_fields(struct def_reader *r, const cJSON *root)
{
	const cJSON *v;
	const char *near;
	size_t i;

	for (i = 0; i < LENGTH(def_readers); i++) {
		v = cJSON_GetObjectItemCaseSensitive(root, def_fields[i].name);
		/* JSON: a member's name is its key. */
		if (v && !(r->problems && !i))
			def_readers[i](r, def_fields[i].name, v);
		if (r->d->error && !r->d->name)
			return;
		if (v && r->y && str_list_has(&r->y->twice,
		    def_fields[i].name))
			def_warning(r, def_fields[i].name, "dup-key", "'%s' "
			    "is there twice; the last one counts",
			    def_fields[i].name);
	}
	cJSON_ArrayForEach(v, root) {
		near = yaml_field(def_fields, str_of(v->string)) ? NULL :
		    def_near_miss(v->string);
		if (near)
			def_warning(r, v->string, "key-alias", "'%s' is no "
			    "key and restricts nothing; meant '%s'?",
			    v->string, near);
	}
}

/* The header's tree into the definition. */
static void
def_read_header(struct def_reader *r, const struct yaml_front *f)
{
	const struct yaml *y = r->y;

	if (y->lenient)
		def_add_warning(r->a, r->d, "yaml-recovered", y->line,
		    "the header is not valid YAML (%s), read all the same; "
		    "put quotes around the value", y->why);
	if (!json_get(y->root, "name")) {
		def_refuse(r, "no-name", f->line, "there is no name%s%s%s",
		    y->lenient ? ", and the header is not valid YAML (" : "",
		    y->why, y->lenient ? ")" : "");
		return;
	}
	def_read_fields(r, y->root);
	if (!json_get(y->root, "description"))
		def_refuse(r, "no-description", yaml_line(y, "name"),
		    "there is no description");
}

/*
 * A whole file into d; d->error says that it does not load.  `text` is
 * scratch.  The prompt, most of a file, is copied where `keep` says so.
 */
static void
def_read(struct slice file, const char *path, const char *source, bool keep,
    struct arena *a, struct str *text, struct def *d)
{
	struct def_reader r = { .d = d, .a = a };
	struct yaml y = { 0 };
	struct yaml_front f;
	struct err e = { 0 };
	bool fixed = false;
	const char *end;
	int closed, last;

	d->source = source;
	d->path = arena_strdup(a, path);
	str_reset(text);
	if (yaml_input(file, text, &fixed, &e) < 0) {
		def_refuse(&r, "encoding", 1, "%s", e.msg);
		return;
	}
	closed = yaml_split(str_slice(text), &f);
	if (closed <= 0) {
		def_refuse(&r, closed ? "unclosed" : "no-name",
		    closed ? f.line - 1 : 1,
		    closed ? "the header is not closed: a line --- is missing" :
		    "there is no header, so no name");
		return;
	}
	if (yaml_header(f.header, f.line, def_fields, &y, &e) < 0) {
		d->name = y.root && json_text(y.root, "name") ?
		    arena_strdup(a, json_text(y.root, "name")) : NULL;
		def_refuse(&r, e.code == ERR_LIMIT ? "too-large" : "bad-type",
		    y.line, "%s", e.msg);
		yaml_clear(&y);
		return;
	}
	r.y = &y;
	d->header = core_hash(f.header.p, f.header.n, 0);
	if (keep)
		d->prompt = arena_dup(a, f.body.p, f.body.n);
	def_read_header(&r, &f);
	for (last = f.line, end = f.header.p; end < f.header.p + f.header.n;)
		last += *end++ == '\n';
	if (fixed)
		def_add_warning(a, d, "encoding", 0, "some bytes are no "
		    "UTF-8; they are replaced");
	if (f.late)
		def_add_warning(a, d, "leading-text", 1, "blank lines stand "
		    "before the first ---");
	if (f.long_fence)
		def_add_warning(a, d, "fence-style", last, "the header is "
		    "closed by more than three dashes");
	if (!f.body.n)
		def_add_warning(a, d, "empty-body", last, "there is no prompt "
		    "below the header");
	yaml_clear(&y);
}

static void
def_clear(struct def *d)
{
	str_list_clear(&d->tools);
	str_list_clear(&d->disallowed);
	str_list_clear(&d->skills);
	cJSON_Delete(d->hooks);
	cJSON_Delete(d->mcp_servers);
	free(d->warnings);
	arena_clear(&d->own);
	*d = (struct def){ 0 };
}

/*
 * One agent file from memory; `path` is only for messages.  -1: it does not
 * load (ERR_PARSE, with path and line); d is empty then.
 */
static int
def_parse(struct slice file, const char *path, const char *source,
    struct def *d, struct err *e)
{
	struct str text;

	*d = (struct def){ 0 };
	str_init(&text, 0);
	def_read(file, path, source, true, &d->own, &text, d);
	str_clear(&text);
	d->active = !d->error;
	if (!d->error)
		return 0;
	err_set(e, ERR_PARSE, "%.200s:%d: %s", path, d->error_line,
	    d->error_message);
	def_clear(d);
	return -1;
}

/*--- JSON definitions ------------------------------------------------------*/

static struct def *
def_add(struct defs *all, const char *source, size_t scope)
{
	all->list = core_grow(all->list, all->n, &all->cap,
	    sizeof(*all->list));
	all->list[all->n] = (struct def){ .source = source, .scope = scope };
	return &all->list[all->n++];
}

/* One member of --agents. */
static void
def_read_json(struct defs *all, const cJSON *v, const char *path,
    size_t scope, struct strv *problems)
{
	struct def *d = def_add(all, "flag", scope);
	struct def_reader r = { .d = d, .a = &all->arena,
	    .problems = problems };
	cJSON name = { .type = cJSON_String, .valuestring = v->string };
	struct str s;
	size_t i;

	d->path = path;
	d->name = v->string;	/* for messages, until it is checked */
	for (i = 0; i + 1 < all->n; i++)
		if (all->list[i].scope == scope && all->list[i].name &&
		    !strcmp(all->list[i].name, v->string))
			def_refuse(&r, "dup-name", 0, "is there twice");
	def_read_name(&r, "name", &name);
	if (d->error) {
		str_init(&s, LIM_MSG);
		str_addf(&s, "%.100s: %s", v->string, d->error_message);
		str_list_take(problems, str_detach(&s));
	}
	if (!d->name)
		d->name = "";
	if (!cJSON_IsObject(v)) {
		str_init(&s, LIM_MSG);
		str_addf(&s, "%.100s: an object expected, not %s", d->name,
		    json_kind(v));
		str_list_take(problems, str_detach(&s));
		return;
	}
	if (!json_get(v, "description"))
		def_refuse_key(&r, "description", "text", NULL);
	d->prompt = json_text(v, "prompt") ? def_text(&r, json_get(v,
	    "prompt")) : NULL;
	if (!d->prompt)
		def_refuse_key(&r, "prompt", "text", json_get(v, "prompt"));
	else if (!*d->prompt)
		def_warning(&r, NULL, "empty-body", "the prompt is empty");
	def_read_fields(&r, v);
	if (d->error && !strcmp(d->error, "no-description"))
		def_refuse_key(&r, "description", "some text", NULL);
}

/* The lines of what is wrong with --agents, as one error. */
static int
def_complain(const struct strv *problems, struct err *e)
{
	struct str s;
	size_t i;

	str_init(&s, LIM_MSG - 64);
	str_adds(&s, "Invalid --agents configuration:");
	for (i = 0; i < problems->n && !s.full; i++)
		str_addf(&s, "\n%s", problems->v[i]);
	err_set(e, ERR_USAGE, "%s%s", s.p, s.full ? "\n..." : "");
	str_clear(&s);
	return -1;
}

/* Text of --agents: JSON, `path` NULL, or what was read from a file. */
static int
def_load_json(struct defs *all, struct slice text, const char *path,
    size_t scope, struct err *e)
{
	struct strv problems = { 0 };
	struct err why = { 0 };
	cJSON *root = NULL;
	const cJSON *v;
	int r = 0;

	if (text.n >= 3 && !memcmp(text.p, "\357\273\277", 3)) {
		text.p += 3;
		text.n -= 3;
	}
	if (json_has_nul(text))
		str_list_adds(&problems, "a zero byte in a text");
	else if (!(root = json_parse(text, &why)))
		str_list_adds(&problems, why.msg);
	else if (!cJSON_IsObject(root))
		str_list_adds(&problems, "an object of agents expected");
	else if (conf_is_wide(root))
		str_list_adds(&problems, "an object has too many members");
	else
		cJSON_ArrayForEach(v, root)
			def_read_json(all, v, path, scope, &problems);
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].scope == scope)
			all->list[i].name = arena_strdup(&all->arena,
			    all->list[i].name);
	if (problems.n)
		r = def_complain(&problems, e);
	str_list_clear(&problems);
	cJSON_Delete(root);
	return r;
}

/* --agents: JSON where it starts as such, else the name of a file. */
static int
def_load_flag(struct defs *all, const struct conf *c, size_t scope,
    struct err *e)
{
	const char *given = c->opts->agents;
	struct slice text = text_trim(str_of(given));
	struct err why = { 0 };
	char *path;
	struct str s;
	int r;

	if (!given)
		return 0;
	if (text.n && (text.p[0] == '{' || text.p[0] == '['))
		return def_load_json(all, text, NULL, scope, e);
	if (!text.n)
		return err_set(e, ERR_USAGE,
		    "--agents: JSON or the name of a file expected");
	str_init(&s, 0);
	path = file_join(c->start_dir, given);
	if (file_read(path, LIM_SETTINGS, &s, &why) < 0)
		r = err_set(e, ERR_USAGE, "--agents: %s", why.msg);
	else
		r = def_load_json(all, str_slice(&s), arena_strdup(
		    &all->arena, path), scope, e);
	free(path);
	str_clear(&s);
	return r;
}

/*--- folders ---------------------------------------------------------------*/

/* A walk through one agents/ folder. */
struct def_walk {
	struct defs *all;
	const char *source;
	size_t scope;
	struct strv files;
	struct strv faults;	/* a path, and behind its zero why */
	struct {
		dev_t dev;
		ino_t ino;
	} *seen;		/* folders: links may lead in a circle */
	size_t nseen;
	size_t seen_cap;
};

static void
def_fault(struct def_walk *w, const char *path, const char *why)
{
	struct str s;

	str_init(&s, 0);
	str_add(&s, path, strlen(path) + 1);
	str_adds(&s, why);
	str_list_take(&w->faults, str_detach(&s));
}

/* Whether the folder was not seen before. */
static bool
def_enter(struct def_walk *w, const char *path, const struct stat *st)
{
	size_t i;

	for (i = 0; i < w->nseen; i++) {
		if (w->seen[i].dev == st->st_dev &&
		    w->seen[i].ino == st->st_ino) {
			def_fault(w, path, "a link to a folder that was read "
			    "already");
			return false;
		}
	}
	if (w->nseen == DEF_DIRS)
		return false;
	w->seen = core_grow(w->seen, w->nseen, &w->seen_cap,
	    sizeof(*w->seen));
	w->seen[w->nseen].dev = st->st_dev;
	w->seen[w->nseen++].ino = st->st_ino;
	if (w->nseen == DEF_DIRS)
		def_fault(w, path, "too many folders; no more are read");
	return true;
}

static void def_find_files(struct def_walk *w, const char *dir,
    int depth);	/* recursion */

/* One entry of a folder; `path` is owned. */
static void
def_find_entry(struct def_walk *w, char *path, unsigned char type, int depth)
{
	bool md = str_ends(path, ".md");
	struct stat st = { .st_mode = S_IFREG };

	/* Links count as what they lead to. */
	if (type != DT_REG && stat(path, &st) < 0) {
		if (md || errno == ELOOP)
			def_fault(w, path, errno == ENOENT ?
			    "a link to nothing" : strerror(errno));
	} else if (S_ISDIR(st.st_mode) && depth < DEF_DEPTH) {
		if (def_enter(w, path, &st))
			def_find_files(w, path, depth + 1);
	} else if (S_ISDIR(st.st_mode)) {
		def_fault(w, path, "too deep a folder; not read");
	} else if (md && S_ISREG(st.st_mode) && w->files.n < DEF_FILES) {
		str_list_take(&w->files, path);
		return;
	}
	free(path);
}

/* Collects the *.md files below a folder, in no order. */
static void
def_find_files(struct def_walk *w, const char *dir, int depth)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	if (!d) {
		def_fault(w, dir, strerror(errno));
		return;
	}
	while ((de = readdir(d)) != NULL)
		if (de->d_name[0] != '.' && (de->d_type != DT_REG ||
		    str_ends(de->d_name, ".md")))
			def_find_entry(w, file_join(dir, de->d_name),
			    de->d_type, depth);
	closedir(d);
}

/* Reads what was found, in the order of the paths' bytes. */
static void
def_read_files(struct def_walk *w)
{
	struct arena *a = &w->all->arena;
	struct str file, text;
	struct err e;
	struct def *d;
	size_t i;

	str_init(&file, 0);
	str_init(&text, 0);
	if (w->files.n > 1)
		qsort(w->files.v, w->files.n, sizeof(*w->files.v),
		    file_by_name);
	if (w->faults.n > 1)
		qsort(w->faults.v, w->faults.n, sizeof(*w->faults.v),
		    file_by_name);
	for (i = 0; i < w->files.n; i++) {
		d = def_add(w->all, w->source, w->scope);
		str_reset(&file);
		err_clear(&e);
		if (!file_read(w->files.v[i], LIM_DEF, &file, &e)) {
			def_read(str_slice(&file), w->files.v[i], w->source,
			    false, a, &text, d);
			continue;
		}
		d->path = arena_strdup(a, w->files.v[i]);
		d->error = e.code == ERR_LIMIT ? "too-large" : "unreadable";
		d->error_message = arena_strdup(a, e.msg);
	}
	for (i = 0; i < w->faults.n; i++) {
		d = def_add(w->all, w->source, w->scope);
		d->path = arena_strdup(a, w->faults.v[i]);
		d->error = "unreadable";
		d->error_message = arena_strdup(a, w->faults.v[i] +
		    strlen(w->faults.v[i]) + 1);
	}
	str_clear(&file);
	str_clear(&text);
}

/* Everything below dir/sub, as one scope. */
static void
def_load_dir(struct defs *all, const char *dir, const char *sub,
    const char *source, size_t scope)
{
	struct def_walk w = { .all = all, .source = source, .scope = scope };
	char *path = file_join(dir, sub);
	struct stat st;

	if (!stat(path, &st) && def_enter(&w, path, &st)) {
		def_find_files(&w, path, 0);
		def_read_files(&w);
	}
	free(path);
	free(w.seen);
	str_list_clear(&w.files);
	str_list_clear(&w.faults);
}

/*
 * The project's folders: from the start folder up to the repository's root
 * (outside one, the start folder alone), the main checkout of a linked
 * worktree, then those of --add-dir.
 */
static void
def_load_project(struct defs *all, const struct conf *c, size_t *scope)
{
	char *dir = core_strdup(c->start_dir), *up;
	struct strv dirs = { 0 };
	struct str real;
	size_t i, k;

	for (;;) {
		str_list_adds(&dirs, dir);
		if (!c->git_root || !strcmp(dir, c->git_root) || !dir[1])
			break;
		up = file_dir(dir);
		free(dir);
		dir = up;
	}
	free(dir);
	if (c->main_root)
		str_list_adds(&dirs, c->main_root);
	str_init(&real, 0);
	for (i = 0; i < c->opts->add_dirs.n; i++)
		if (!file_real(c->start_dir, c->opts->add_dirs.v[i], &real,
		    NULL))
			str_list_adds(&dirs, real.p);
	for (i = 0; i < dirs.n; i++) {
		/* Each folder once, and the user's own is not a project. */
		for (k = 0; k < i && strcmp(dirs.v[k], dirs.v[i]);)
			k++;
		if (k == i && !conf_is_own_dir(c, dirs.v[i]))
			def_load_dir(all, dirs.v[i], ".claude/agents",
			    "project", (*scope)++);
	}
	str_clear(&real);
	str_list_clear(&dirs);
}

/* What is compiled in; default.md is no agent but the default prompt. */
static void
def_load_builtin(struct defs *all, size_t scope)
{
	bool none = conf_env_on("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS");
	bool few = conf_env_on("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS");
	const struct embed *m;
	struct slice s;
	struct str text;
	struct def *d;

	all->prompt = "You are an agent run by subagent, a command-line agent "
	    "runner.";
	str_init(&text, 0);
	for (m = embed_agents; m->name; m++) {
		s = text_trim((struct slice){ m->text, m->len });
		if (!strcmp(m->name, "default.md"))
			all->prompt = arena_dup(&all->arena, s.p, s.n);
		else if (!none) {
			d = def_add(all, "built-in", scope);
			def_read(s, NULL, "built-in", true, &all->arena,
			    &text, d);
			if (d->error)
				BUG("a built-in agent does not load");
			if (few && (!strcmp(d->name, "Explore") ||
			    !strcmp(d->name, "Plan"))) {
				def_clear(d);
				all->n--;
			}
		}
	}
	str_clear(&text);
}

/*--- which one counts ------------------------------------------------------*/

static int
def_by_name(const void *a, const void *b)
{
	const struct def *x = *(struct def *const *)a;
	const struct def *y = *(struct def *const *)b;
	int r = strcmp(x->name, y->name);

	/* They stand in one array, in order. */
	return r ? r : x < y ? -1 : x > y;
}

/*
 * Decides among those of one name, in order.  A file that was refused for
 * what its fields say bars those of lower rank: the built-in of that name
 * may do more than its author wanted.
 */
static void
def_decide(struct defs *all, struct def **v, size_t n)
{
	struct def *bar = NULL, *win = NULL;
	bool told = false;
	size_t i;

	for (i = 0; i < n; i++) {
		if (v[i]->error) {
			if (!win && !bar && !strcmp(v[i]->error, "bad-type"))
				bar = v[i];
			continue;
		}
		if (!win && bar && bar->scope < v[i]->scope)
			win = bar;
		v[i]->active = !win;
		v[i]->winner = win;
		if (!win)
			win = v[i];
		if (v[i] == win || v[i]->scope != win->scope || win->error)
			continue;
		def_add_warning(&all->arena, v[i], "dup-name", 0, "the name "
		    "'%.80s' is taken by %.200s", v[i]->name, win->path);
		if (!told)
			def_add_warning(&all->arena, win, "dup-name", 0,
			    "%.200s has the same name", v[i]->path);
		told = true;
	}
}

static void
def_resolve(struct defs *all)
{
	struct def **v = core_alloc(core_mul(all->n, sizeof(*v)));
	size_t i, k, n = 0;

	for (i = 0; i < all->n; i++)
		if (all->list[i].name)
			v[n++] = &all->list[i];
	if (n)
		qsort(v, n, sizeof(*v), def_by_name);
	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && !strcmp(v[k]->name, v[i]->name);)
			k++;
		def_decide(all, v + i, k - i);
	}
	free(v);
}

/*
 * What came with a folder that the user does not trust may not run commands,
 * start servers or switch the questions off.
 */
static void
def_check_trust(struct defs *all, const struct conf *c)
{
	int trusted = -1;
	struct def *d;
	bool inline_server;
	const cJSON *v;

	for (d = all->list; d < all->list + all->n; d++) {
		inline_server = false;
		cJSON_ArrayForEach(v, d->mcp_servers)
			inline_server |= cJSON_IsObject(v);
		if (strcmp(d->source, "project") || (!d->hooks &&
		    !inline_server && !(d->has_mode && d->mode ==
		    MODE_BYPASS)))
			continue;
		if (trusted < 0)
			trusted = conf_trust(c);
		if (trusted)
			return;
		def_add_warning(&all->arena, d, "value-ignored", 0, "this "
		    "folder is not trusted, so the agent's%s%s%s is not used",
		    d->hooks ? " hooks" : "", inline_server ? " mcpServers" :
		    "", d->has_mode && d->mode == MODE_BYPASS ?
		    " bypassPermissions" : "");
		cJSON_Delete(d->hooks);
		d->hooks = NULL;
		if (inline_server) {
			cJSON_Delete(d->mcp_servers);
			d->mcp_servers = NULL;
		}
		if (d->has_mode && d->mode == MODE_BYPASS)
			d->has_mode = false;
	}
}

static void
def_clear_all(struct defs *all)
{
	size_t i;

	for (i = 0; i < all->n; i++)
		def_clear(&all->list[i]);
	free(all->list);
	arena_clear(&all->arena);
	*all = (struct defs){ 0 };
}

/* Text from a file on one line, safe for a terminal, cut at n bytes. */
static void
def_print_text(struct str *out, const char *s, size_t n)
{
	size_t len = text_cut(str_of(s), n), from = out->len, i;

	str_add(out, s, len);
	for (i = from; i < out->len; i++)
		if ((unsigned char)out->p[i] < 32 || out->p[i] == 127)
			out->p[i] = ' ';
	if (s[len])
		str_adds(out, "...");
}

/* "file:line", or where else a definition came from. */
static void
def_where(const struct def *d, int line, struct str *out)
{
	if (d->path)
		def_print_text(out, d->path, PATH_MAX);
	else
		str_addf(out, "%s '%s'", !strcmp(d->source, "flag") ?
		    "--agents" : d->source, d->name ? d->name : "");
	if (line)
		str_addf(out, ":%d", line);
}

/* Everything to the debug log. */
static void
def_log(const struct defs *all)
{
	const struct def *d;
	struct str s;
	size_t k;

	if (logger.fd < 0)
		return;
	str_init(&s, 0);
	for (d = all->list; d < all->list + all->n; d++) {
		for (k = 0; k < d->nwarnings; k++) {
			str_reset(&s);
			def_where(d, d->warnings[k].line, &s);
			log_debug("def", "%s: %s: %s", s.p,
			    d->warnings[k].code, d->warnings[k].message);
		}
		str_reset(&s);
		def_where(d, d->error_line, &s);
		if (d->error)
			log_debug("def", "%s: not loaded: %s: %s", s.p,
			    d->error, d->error_message);
	}
	str_clear(&s);
}

/*
 * All definitions of a run; c is borrowed for the call.  -1: --agents is
 * wrong (ERR_USAGE, a line for each problem); other files never fail.
 */
static int
def_load_all(struct defs *all, const struct conf *c, struct err *e)
{
	size_t scope = 1;

	*all = (struct defs){ 0 };
	if (!c->bare)
		def_load_dir(all, c->managed_dir, ".claude/agents", "managed",
		    0);
	if (def_load_flag(all, c, scope++, e) < 0) {
		def_clear_all(all);
		return -1;
	}
	if (!c->bare && (c->sources & CONF_PROJECT))
		def_load_project(all, c, &scope);
	if (!c->bare && (c->sources & CONF_USER) && c->config_dir)
		def_load_dir(all, c->config_dir, "agents", "user", scope);
	def_load_builtin(all, scope + 1);
	def_check_trust(all, c);
	def_resolve(all);
	def_log(all);
	return 0;
}

/* Equal but for case, hyphens, underscores and blanks. */
static bool
def_is_alike(const char *a, const char *b)
{
	for (;;) {
		a += strspn(a, "-_ ");
		b += strspn(b, "-_ ");
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

/*
 * Gets the prompt of a file's definition.  The other fields are those that
 * were read at the start, so its header must still be the same.
 */
static bool
def_fetch(struct defs *all, struct def *d)
{
	struct str file, text;
	struct yaml_front f;
	struct err e = { 0 };
	bool fixed, same = false;

	str_init(&file, 0);
	str_init(&text, 0);
	if (!file_read(d->path, LIM_DEF, &file, &e) &&
	    !yaml_input(str_slice(&file), &text, &fixed, &e)) {
		same = yaml_split(str_slice(&text), &f) > 0 &&
		    core_hash(f.header.p, f.header.n, 0) == d->header;
		if (same)
			d->prompt = arena_dup(&all->arena, f.body.p, f.body.n);
		else
			err_set(&e, ERR_PARSE, "its header was changed since "
			    "the start");
	}
	if (!same)
		log_warn("agent '%s' is not used: %s: %s", d->name, d->path,
		    e.msg);
	str_clear(&file);
	str_clear(&text);
	return same;
}

/*
 * By its exact name, else by the only one that is alike; with its prompt.
 * NULL: there is none (or its file was changed meanwhile).
 */
static const struct def *
def_find(struct defs *all, const char *name)
{
	struct def *d, *found = NULL;
	size_t n = 0;

	for (d = all->list; d < all->list + all->n; d++) {
		if (!d->active)
			continue;
		if (!strcmp(d->name, name)) {
			found = d;
			n = 1;
			break;
		}
		if (def_is_alike(d->name, name)) {
			found = d;
			n++;
		}
	}
	if (n != 1 || (!found->prompt && !def_fetch(all, found)))
		return NULL;
	return found;
}

/*
 * The error for a name that def_find() does not know: a file of that name
 * that does not load is told, then which agents there are.
 */
static int
def_missing(const struct defs *all, const char *name, struct err *e)
{
	const struct def *d;
	struct str why, names;
	const char *file;
	size_t n;

	str_init(&why, LIM_MSG / 2);
	str_init(&names, LIM_MSG);
	for (d = all->list; d < all->list + all->n; d++) {
		file = d->path ? file_name(d->path) : "";
		n = strlen(file);
		if (d->active)
			str_addf(&names, "%s%s", names.len ? ", " : "",
			    d->name);
		else if (d->error && !why.len && ((d->name &&
		    !strcmp(d->name, name)) || (n == strlen(name) + 3 &&
		    !strncmp(file, name, n - 3)))) {
			str_adds(&why, " (");
			def_where(d, d->error_line, &why);
			str_addf(&why, ": %s)", d->error_message);
		}
	}
	err_set(e, ERR_USAGE, "--agent '%.80s' not found%s. Available agents: "
	    "%s", name, why.p, names.p);
	str_clear(&why);
	str_clear(&names);
	return -1;
}

/* The system prompt of a run without an agent. */
static const char *
def_default_prompt(const struct defs *all)
{
	return all->prompt;
}

/*--- printing --------------------------------------------------------------*/

/* Warnings of the definition in use, on stderr. */
static void
def_warn(const struct def *d)
{
	struct str s;
	size_t i;

	str_init(&s, 0);
	for (i = 0; i < d->nwarnings; i++) {
		str_reset(&s);
		def_where(d, d->warnings[i].line, &s);
		log_warn("%s: %s (%s)", s.p, d->warnings[i].message,
		    d->warnings[i].code);
	}
	str_clear(&s);
}

/* Documentation beside the agents: nobody wants to hear of it. */
static bool
def_is_quiet(const struct def *d)
{
	return d->error && !strcmp(d->error, "no-name");
}

/* Warnings of all, and what does not load, on stderr. */
static void
def_warn_all(const struct defs *all)
{
	const struct def *d;
	struct str s;

	str_init(&s, 0);
	for (d = all->list; d < all->list + all->n; d++) {
		if (!d->error) {
			def_warn(d);
		} else if (!def_is_quiet(d)) {
			str_reset(&s);
			def_where(d, d->error_line, &s);
			log_warn("%s: %s (%s); not loaded", s.p,
			    d->error_message, d->error);
		}
	}
	str_clear(&s);
}

static void
def_put_list(struct str *out, const char *key, const struct strv *v)
{
	size_t i;

	json_key(out, key);
	str_addc(out, '[');
	for (i = 0; i < v->n; i++) {
		if (i)
			str_addc(out, ',');
		json_puts(out, v->v[i]);
	}
	str_addc(out, ']');
}

/* {code, message, line} */
static void
def_put_note(struct str *out, const char *code, const char *message, int line)
{
	str_addc(out, '{');
	json_put_text(out, "code", code);
	json_put_text(out, "message", message);
	if (line)
		json_put_int(out, "line", line);
	else
		json_put_text(out, "line", NULL);
	str_addc(out, '}');
}

static void
def_put(struct str *out, const struct def *d)
{
	size_t i;

	str_addc(out, '{');
	if (d->error) {
		json_put_text(out, "path", d->path);
		json_put_bool(out, "active", false);
		json_key(out, "error");
		def_put_note(out, d->error, d->error_message, d->error_line);
		str_addc(out, '}');
		return;
	}
	json_put_text(out, "name", d->name);
	json_put_text(out, "source", d->source);
	json_put_text(out, "path", d->path);
	json_put_text(out, "description", d->description);
	if (d->has_tools)
		def_put_list(out, "tools", &d->tools);
	else
		json_put_text(out, "tools", NULL);
	def_put_list(out, "disallowedTools", &d->disallowed);
	json_put_text(out, "model", d->model ? d->model : "inherit");
	json_put_bool(out, "active", d->active);
	json_key(out, "warnings");
	str_addc(out, '[');
	for (i = 0; i < d->nwarnings; i++) {
		if (i)
			str_addc(out, ',');
		def_put_note(out, d->warnings[i].code, d->warnings[i].message,
		    d->warnings[i].line);
	}
	str_adds(out, "]}");
}

/* The contract of `agents --json`. */
static void
def_print_json(const struct defs *all, struct str *out)
{
	size_t i;

	str_addc(out, '[');
	for (i = 0; i < all->n; i++) {
		str_adds(out, i ? ",\n " : "\n ");
		def_put(out, &all->list[i]);
	}
	str_adds(out, "\n]\n");
}

static void
def_print_list(struct str *out, const char *label, const struct strv *v,
    const char *none)
{
	size_t i;

	str_addf(out, "%s%s", label, v->n ? "" : none);
	for (i = 0; i < v->n; i++) {
		str_adds(out, i ? ", " : "");
		def_print_text(out, v->v[i], 200);
	}
}

/* Why another one of the name counts. */
static void
def_print_winner(struct str *out, const struct def *d)
{
	const struct def *w = d->winner;

	str_adds(out, "    not used: ");
	def_where(w, 0, out);
	if (w->error)
		str_adds(out, " has this name and does not load; until it "
		    "does, nothing of lower rank takes its place\n");
	else if (w->scope == d->scope)
		str_adds(out, " has this name, too, and comes first by its "
		    "path\n");
	else
		str_addf(out, " (%s) has this name, too, and %s\n", w->source,
		    strcmp(w->source, d->source) ? "ranks higher" :
		    "is nearer");
}

static void
def_print_one(struct str *out, const struct def *d)
{
	size_t i;

	def_print_text(out, d->name, 200);
	str_addf(out, "  [%s", d->source);
	if (d->path) {
		str_adds(out, ", ");
		def_where(d, 0, out);
	}
	str_adds(out, "]\n    model ");
	def_print_text(out, d->model ? d->model : "inherit", 200);
	str_adds(out, "; ");
	if (d->has_tools)
		def_print_list(out, "tools ", &d->tools, "none");
	else
		str_adds(out, "all tools");
	if (d->disallowed.n)
		def_print_list(out, " but not ", &d->disallowed, "");
	str_adds(out, "\n    ");
	def_print_text(out, d->description, 160);
	str_addc(out, '\n');
	if (d->winner)
		def_print_winner(out, d);
	for (i = 0; i < d->nwarnings; i++) {
		str_adds(out, "    warning");
		if (d->warnings[i].line)
			str_addf(out, ", line %d", d->warnings[i].line);
		str_addf(out, ": %s: ", d->warnings[i].code);
		def_print_text(out, d->warnings[i].message, LIM_MSG);
		str_addc(out, '\n');
	}
}

/* One line of `check`. */
static void
def_print_note(struct str *out, const struct def *d, const char *code,
    const char *message, int line)
{
	def_where(d, line, out);
	str_addf(out, ": %s: ", code);
	def_print_text(out, message, LIM_MSG);
	str_addc(out, '\n');
}

/* The listing for people. */
static void
def_print(const struct defs *all, struct str *out)
{
	const struct def *d;
	bool bad = false;

	for (d = all->list; d < all->list + all->n; d++)
		if (!d->error)
			def_print_one(out, d);
	for (d = all->list; d < all->list + all->n; d++) {
		if (!d->error || def_is_quiet(d))
			continue;
		if (!bad)
			str_adds(out, "\nnot loaded:\n");
		bad = true;
		str_adds(out, "    ");
		def_print_note(out, d, d->error, d->error_message,
		    d->error_line);
	}
}

/* The problems of one file, a line each.  false: it would not load. */
static bool
def_check(const char *path, struct str *out)
{
	struct str file, text;
	struct err e = { 0 };
	struct def d = { .path = path, .source = "project" };
	struct arena a = { 0 };
	bool ok;
	size_t i;

	str_init(&file, 0);
	str_init(&text, 0);
	if (file_read(path, LIM_DEF, &file, &e) < 0) {
		d.error = e.code == ERR_LIMIT ? "too-large" : "unreadable";
		d.error_message = e.msg;
	} else {
		def_read(str_slice(&file), path, "project", false, &a, &text,
		    &d);
	}
	for (i = 0; i < d.nwarnings; i++)
		def_print_note(out, &d, d.warnings[i].code,
		    d.warnings[i].message, d.warnings[i].line);
	ok = !d.error;
	if (!ok)
		def_print_note(out, &d, d.error, d.error_message,
		    d.error_line);
	def_clear(&d);
	arena_clear(&a);
	str_clear(&file);
	str_clear(&text);
	return ok;
}

/*=== [shell] a command line taken apart =====================================
 * uses: core str text
 *
 * Finds every simple command that a shell would run: behind separators, in
 * groups, loops and functions, in $(...), `...`, <(...) and here-documents.
 * It judges nothing.  What it does not understand makes the whole `broken`;
 * it never takes a command for less than it is.  Grammar: POSIX sh and the
 * common forms of bash.
 *==========================================================================*/

#define SHELL_MAX 10000		/* longer commands are not taken apart */
#define SHELL_DEPTH 24		/* nesting of groups and substitutions */
#define SHELL_COMMANDS 400

struct shell_word {
	char *text;		/* quotes taken off */
	char *source;		/* as written */
	bool dynamic;		/* holds an expansion: value not known */
	bool glob;		/* holds an unquoted * ? [ or {a,b} */
	bool tilde;		/* begins with an unquoted ~ */
	bool quoted;		/* some of it was quoted */
};

struct shell_redirect {
	bool write;
	struct shell_word word;
};

struct shell_command {
	struct shell_word *words;	/* assignments first, see nassign */
	size_t nwords, cap_words;
	size_t nassign;
	struct shell_redirect *redirects;
	size_t nredirects, cap_redirects;
};

struct shell {
	struct shell_command *c;
	size_t n, cap;
	bool broken;
};

/* Where the parser stands. */
struct shell_parser {
	struct shell *out;
	const char *p;
	char *heredocs[8];	/* delimiters that wait for a newline */
	bool heredoc_quoted[8], heredoc_tabs[8];
	int nheredocs;
	int outer;		/* of them, begun outside these parentheses */
	int depth;
};

static void
shell_word_clear(struct shell_word *w)
{
	free(w->text);
	free(w->source);
}

static void
shell_command_clear(struct shell_command *c)
{
	size_t i;

	for (i = 0; i < c->nwords; i++)
		shell_word_clear(&c->words[i]);
	for (i = 0; i < c->nredirects; i++)
		shell_word_clear(&c->redirects[i].word);
	free(c->words);
	free(c->redirects);
}

static void
shell_clear(struct shell *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		shell_command_clear(&s->c[i]);
	free(s->c);
	memset(s, 0, sizeof(*s));
}

static void
shell_break(struct shell_parser *s)
{
	s->out->broken = true;
	s->p += strlen(s->p);	/* nothing more is read */
}

/* A carriage return is a letter like any other. */
static bool
shell_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* A character that ends a word when it is not quoted. */
static bool
shell_is_end(char c)
{
	return !c || strchr(" \t\n;|&<>()", c);
}

static void shell_list(struct shell_parser *s, char end);	/* recursion */

/* Parses text of its own (a backquoted command, a here-document). */
static void
shell_inner(struct shell_parser *s, const char *text)
{
	struct shell_parser in = { .out = s->out, .p = text,
	    .depth = s->depth + 1 };

	if (in.depth > SHELL_DEPTH)
		shell_break(s);
	else
		shell_list(&in, 0);
}

/* p is behind the opening backquote; goes behind the closing one. */
static void
shell_backquote(struct shell_parser *s)
{
	struct str in;

	str_init(&in, SHELL_MAX);
	while (*s->p && *s->p != '`') {
		/* \" and \newline mean other things in "`...`" */
		if (*s->p == '\\' && (s->p[1] == '"' || s->p[1] == '\n'))
			s->out->broken = true;
		if (*s->p == '\\' && s->p[1] && strchr("`\\$", s->p[1]))
			s->p++;
		str_addc(&in, *s->p++);
	}
	if (!*s->p)
		shell_break(s);
	else
		s->p++;
	shell_inner(s, in.p);
	str_clear(&in);
}

/*
 * p is behind `$((` or `((`; goes behind `))`.  Numbers alone: a name stands
 * for its value, and the value a[$(x)] runs x.  What ends in `) )` is no
 * arithmetic but commands in parentheses.
 */
static void
shell_arithmetic(struct shell_parser *s)
{
	int depth = 0;

	for (; *s->p && (depth || *s->p != ')'); s->p++) {
		depth += *s->p == '(';
		depth -= *s->p == ')';
		if (!strchr("0123456789+-*/%<>=!&|^~?:,() \t", *s->p))
			break;
	}
	if (*s->p == ')' && s->p[1] == ')')
		s->p += 2;
	else
		shell_break(s);
}

/* p is behind `(`; goes behind the `)` of this level. */
static void
shell_parens(struct shell_parser *s)
{
	int outer = s->outer;

	if (++s->depth > SHELL_DEPTH) {
		shell_break(s);
		return;
	}
	s->outer = s->nheredocs;
	shell_list(s, ')');
	if (s->nheredocs != s->outer)
		shell_break(s);	/* shells differ on where that one ends */
	s->outer = outer;
	s->depth--;
	if (*s->p == ')')
		s->p++;
	else
		shell_break(s);
}

static void shell_dollar(struct shell_parser *s, struct str *t); /* recursion */

/*
 * p is behind `${`; goes behind the matching brace.  Forms that evaluate
 * what a variable holds, or that set one, are not taken apart: ${!x}, ${x@P},
 * ${a[x]}, ${x:y}, ${x:=y}.
 */
static void
shell_braces(struct shell_parser *s)
{
	struct str skip;
	int depth = 1;

	str_init(&skip, SHELL_MAX);
	if (s->depth > SHELL_DEPTH)
		shell_break(s);
	while (*s->p && depth) {
		if (strchr("!@[=", *s->p) || (*s->p == ':' &&
		    !(s->p[1] && strchr("-+?", s->p[1])))) {
			shell_break(s);
			break;
		}
		if (*s->p == '\\' && s->p[1]) {
			s->p += 2;
		} else if (*s->p == '`') {
			s->p++;
			shell_backquote(s);
		} else if (*s->p == '$') {
			s->depth++;
			shell_dollar(s, &skip);
			s->depth--;
		} else if (*s->p == '\'' || *s->p == '"') {
			/* quotes nest in ways of their own */
			shell_break(s);
		} else {
			depth += *s->p == '{';
			depth -= *s->p == '}';
			s->p++;
		}
	}
	if (depth)
		shell_break(s);
	str_clear(&skip);
}

/* p is at `$`: goes behind the expansion, whose text is not known. */
static void
shell_dollar(struct shell_parser *s, struct str *text)
{
	str_addc(text, '$');
	s->p++;
	if (*s->p == '(' && s->p[1] == '(') {
		s->p += 2;
		shell_arithmetic(s);
	} else if (*s->p == '(') {
		s->p++;
		shell_parens(s);
	} else if (*s->p == '{') {
		s->p++;
		shell_braces(s);
	} else if (*s->p == '[') {
		shell_break(s);		/* $[...], the old arithmetic */
	} else {
		if (*s->p && strchr("?#@*!$-0123456789", *s->p))
			str_addc(text, *s->p++);
		while (isalnum((unsigned char)*s->p) || *s->p == '_')
			str_addc(text, *s->p++);
	}
}

/* p is behind the opening double quote; goes behind the closing one. */
static void
shell_double(struct shell_parser *s, struct shell_word *w, struct str *text)
{
	while (*s->p && *s->p != '"') {
		if (*s->p == '\\' && s->p[1] == '\n') {
			/* "$\newline(x)" runs x */
			if (s->p[-1] == '$')
				shell_break(s);
			else
				s->p += 2;
		} else if (*s->p == '\\' && s->p[1] &&
		    strchr("\"\\$`", s->p[1])) {
			str_addc(text, s->p[1]);
			s->p += 2;
		} else if (*s->p == '`') {
			w->dynamic = true;
			s->p++;
			shell_backquote(s);
		} else if (*s->p == '$' && (isalnum((unsigned char)s->p[1]) ||
		    (s->p[1] && strchr("({_?#@*!$-[", s->p[1])))) {
			w->dynamic = true;
			shell_dollar(s, text);
		} else {
			str_addc(text, *s->p++);
		}
	}
	if (*s->p)
		s->p++;
	else
		shell_break(s);
}

/* p is behind `$'`: C escapes up to the closing quote. */
static void
shell_ansi(struct shell_parser *s, struct str *text)
{
	static const char from[] = "abefnrtv\\'\"?", to[] =
	    "\a\b\033\f\n\r\t\v\\'\"?";
	const char *at;
	unsigned v;
	int n, base;
	bool bytes;

	while (*s->p && *s->p != '\'') {
		if (*s->p != '\\' || !s->p[1]) {
			str_addc(text, *s->p++);
			continue;
		}
		s->p++;
		if ((at = strchr(from, *s->p)) != NULL) {
			str_addc(text, to[at - from]);
			s->p++;
			continue;
		}
		base = *s->p == 'x' || *s->p == 'u' || *s->p == 'U' ? 16 : 8;
		if (base == 8 && (*s->p < '0' || *s->p > '7')) {
			shell_break(s);	/* \cx and what is not known */
			return;
		}
		n = *s->p == 'x' ? 2 : *s->p == 'u' ? 4 : *s->p == 'U' ? 8 :
		    3;
		bytes = n < 4;
		s->p += base == 16;
		for (v = 0; n-- > 0 && isxdigit((unsigned char)*s->p) &&
		    (base == 16 || (*s->p >= '0' && *s->p <= '7')); s->p++)
			v = v * (unsigned)base + (unsigned)(isdigit(
			    (unsigned char)*s->p) ? *s->p - '0' :
			    (*s->p | 32) - 'a' + 10);
		/* a NUL ends the text in some shells and not in others */
		if (!v || (base == 8 && v > 255)) {
			shell_break(s);
			return;
		}
		if (v < 128 || bytes)
			str_addc(text, (char)v);
		else
			text_put(text, v);
	}
	if (*s->p)
		s->p++;
	else
		shell_break(s);
}

/* Names of commands, not patterns. */
static bool
shell_is_bracket(const char *text)
{
	return !strcmp(text, "[") || !strcmp(text, "[[");
}

/* Reads one word at p; false: there is none. */
static bool
shell_word(struct shell_parser *s, struct shell_word *w)
{
	const char *from = s->p;
	struct str text;

	memset(w, 0, sizeof(*w));
	str_init(&text, 0);
	w->tilde = *s->p == '~';
	while (!shell_is_end(*s->p) || ((*s->p == '<' || *s->p == '>') &&
	    s->p[1] == '(' && s->p == from)) {
		if (s->p[0] == '\\' && s->p[1] == '\n') {
			/* Within a word it could hide what the word is. */
			if (!shell_is_blank(s->p[2]))
				shell_break(s);
			break;
		}
		switch (*s->p) {
		case '<':
		case '>':
			w->dynamic = true;
			s->p += 2;
			shell_parens(s);
			break;
		case '\\':
			s->p++;
			if (*s->p)
				str_addc(&text, *s->p++);
			w->quoted = true;
			break;
		case '\'':
			w->quoted = true;
			for (s->p++; *s->p && *s->p != '\''; s->p++)
				str_addc(&text, *s->p);
			if (*s->p)
				s->p++;
			else
				shell_break(s);
			break;
		case '"':
			w->quoted = true;
			s->p++;
			shell_double(s, w, &text);
			break;
		case '`':
			w->dynamic = true;
			s->p++;
			shell_backquote(s);
			break;
		case '$':
			if (s->p[1] == '\'') {
				w->quoted = true;
				s->p += 2;
				shell_ansi(s, &text);
			} else if (s->p[1] == '"') {
				w->quoted = true;
				s->p += 2;
				shell_double(s, w, &text);
			} else {
				w->dynamic |= s->p[1] && !shell_is_end(
				    s->p[1]);
				w->dynamic |= s->p[1] == '(';
				shell_dollar(s, &text);
			}
			break;
		case '*':
		case '?':
		case '[':
		case '{':
			w->glob |= *s->p != '{' || (s->p[1] && s->p[1] != '}' &&
			    !shell_is_end(s->p[1]));
			/* FALLTHROUGH */
		default:
			str_addc(&text, *s->p++);
		}
	}
	if (s->p == from) {
		str_clear(&text);
		return false;
	}
	w->text = str_detach(&text);
	w->glob &= !shell_is_bracket(w->text);
	w->source = core_memdup(from, (size_t)(s->p - from));
	return true;
}

/*
 * Passes over the bodies of the here-documents that begin after this line.
 * One that runs commands is not taken apart.
 */
static void
shell_heredocs(struct shell_parser *s)
{
	const char *line, *body;
	size_t n, skip;
	bool last;
	int i;

	for (i = 0; i < s->nheredocs; i++) {
		body = s->p;
		for (last = false; *s->p && !last;) {
			line = s->p;
			n = strcspn(line, "\n");
			s->p += n + (line[n] == '\n');
			skip = s->heredoc_tabs[i] ? strspn(line, "\t") : 0;
			last = skip <= n && n - skip ==
			    strlen(s->heredocs[i]) && !memcmp(line + skip,
			    s->heredocs[i], n - skip);
		}
		for (; !s->heredoc_quoted[i] && body < s->p; body++) {
			/* joined lines: where it ends is another matter */
			s->out->broken |= *body == '\\' && body[1] == '\n';
			if (*body == '\\' && body[1])
				body++;
			else if (*body == '`' || (*body == '$' &&
			    body[1] && strchr("({[", body[1])))
				s->out->broken = true;
		}
		free(s->heredocs[i]);
	}
	s->nheredocs = 0;
}

/* p is at < or >, or & before >; digits in front are gone already. */
static void
shell_redirect(struct shell_parser *s, struct shell_command *c)
{
	struct shell_redirect *r;
	struct shell_word w;
	bool write, dup, here = false, text = false, tabs = false;

	if (*s->p == '&')
		s->p++;
	write = *s->p == '>';
	if (!write && s->p[1] == '<') {
		here = true;
		s->p += 2;
		if (*s->p == '<') {
			text = true;	/* <<< word */
			here = false;
			s->p++;
		} else if (*s->p == '-') {
			tabs = true;
			s->p++;
		}
	} else {
		s->p++;
		if (*s->p == '>' || *s->p == '|') {
			write = true;
			s->p++;
		}
	}
	dup = *s->p == '&';
	s->p += dup;
	if (*s->p == '\\' && s->p[1] == '\n')
		shell_break(s);		/* the operator may go on */
	while (shell_is_blank(*s->p) || (*s->p == '\\' && s->p[1] == '\n'))
		s->p += 1 + (*s->p == '\\');
	if (!shell_word(s, &w)) {
		shell_break(s);
		return;
	}
	if (here) {
		if (s->nheredocs == (int)LENGTH(s->heredocs) || w.dynamic ||
		    strchr(w.source, '$')) {
			shell_break(s);
		} else {
			s->heredoc_quoted[s->nheredocs] = w.quoted;
			s->heredoc_tabs[s->nheredocs] = tabs;
			s->heredocs[s->nheredocs++] = core_strdup(w.text);
		}
	}
	if (here || text || (dup && (!strcmp(w.text, "-") ||
	    w.text[strspn(w.text, "0123456789")] == 0))) {
		shell_word_clear(&w);
		return;
	}
	c->redirects = core_grow(c->redirects, c->nredirects,
	    &c->cap_redirects, sizeof(*c->redirects));
	r = &c->redirects[c->nredirects++];
	r->write = write;
	r->word = w;
}

/* NAME=... or NAME+=... */
static bool
shell_is_assignment(const char *source)
{
	size_t n = 0;

	while (isalnum((unsigned char)source[n]) || source[n] == '_')
		n++;
	if (!n || isdigit((unsigned char)source[0]))
		return false;
	return source[n] == '=' || (source[n] == '+' && source[n + 1] == '=');
}

/* Words in front of a command that only steer. */
static bool
shell_is_prefix(const struct shell_word *w)
{
	static const char *const words[] = { "if", "then", "elif", "else",
	    "while", "until", "do", "!", "{", "time" };
	size_t i;

	for (i = 0; i < LENGTH(words); i++)
		if (!strcmp(w->source, words[i]))
			return true;
	return false;
}

static bool
shell_is_closing(const struct shell_word *w)
{
	return !strcmp(w->source, "fi") || !strcmp(w->source, "done") ||
	    !strcmp(w->source, "}");
}

/*
 * `for x in a b`: up to the separator, no command.  Other forms are not taken
 * apart, nor are names like PATH.
 */
static void
shell_for(struct shell_parser *s)
{
	struct shell_word w;
	bool fine = true;
	int n = 0;

	while (fine && *s->p && *s->p != ';' && *s->p != '\n') {
		if (shell_is_blank(*s->p)) {
			s->p++;
		} else if (*s->p != '#' && *s->p != '\\' &&
		    shell_word(s, &w)) {
			n++;
			fine = n == 1 ? !w.source[strspn(w.source,
			    "abcdefghijklmnopqrstuvwxyz_")] :
			    n > 2 || !strcmp(w.source, "in");
			shell_word_clear(&w);
		} else {
			fine = false;	/* for ((;;)) and the like */
		}
	}
	if (!fine || n < 2)
		shell_break(s);
}

/*
 * `[[ ... ]]`: operators in it are words.  A subscript, even a quoted one,
 * is evaluated and may run commands: 'a[$(x)]'; so are the names that -v and
 * the comparisons of numbers take.
 */
static bool
shell_test_evaluates(const char *text)
{
	static const char *const words[] = { "-v", "-R", "-eq", "-ne", "-lt",
	    "-le", "-gt", "-ge" };
	size_t i;

	for (i = 0; i < LENGTH(words); i++)
		if (!strcmp(text, words[i]))
			return true;
	return strchr(text, '[') != NULL;
}

static void
shell_test(struct shell_parser *s)
{
	struct shell_word w;
	bool end = false;

	while (*s->p && !end) {
		if (strchr("#\n\\;", *s->p)) {
			shell_break(s);
		} else if (shell_word(s, &w)) {
			end = !strcmp(w.source, "]]");
			if (shell_test_evaluates(w.text))
				shell_break(s);
			shell_word_clear(&w);
		} else {
			s->p++;
		}
	}
	if (!end)
		shell_break(s);
}

/* The keyword `time` has an option that is no word of the command. */
static void
shell_time(struct shell_parser *s)
{
	while (shell_is_blank(*s->p))
		s->p++;
	if (s->p[0] == '-' && s->p[1] == 'p' && shell_is_end(s->p[2]))
		s->p += 2;
}

static void
shell_keep(struct shell_parser *s, struct shell_command *c)
{
	struct shell *o = s->out;

	if ((!c->nwords && !c->nredirects) || o->n >= SHELL_COMMANDS) {
		o->broken |= o->n >= SHELL_COMMANDS;
		shell_command_clear(c);
	} else {
		o->c = core_grow(o->c, o->n, &o->cap, sizeof(*o->c));
		o->c[o->n++] = *c;
	}
	memset(c, 0, sizeof(*c));
}

/* Takes the next word of a command; handles what only steers. */
static void
shell_take(struct shell_parser *s, struct shell_command *c)
{
	static const char *const hard[] = { "case", "select", "function",
	    "coproc", "esac" };
	struct shell_word w;
	size_t i;

	if (!shell_word(s, &w)) {
		shell_break(s);
		return;
	}
	if (c->nwords == c->nassign) {
		for (i = 0; i < LENGTH(hard); i++)
			if (!strcmp(w.source, hard[i]))
				shell_break(s);
		/* Shells differ on keywords behind these. */
		if ((c->nassign || c->nredirects) && (shell_is_prefix(&w) ||
		    shell_is_closing(&w) || !strcmp(w.source, "for") ||
		    !strcmp(w.source, "[[")))
			shell_break(s);
		if (shell_is_prefix(&w) || shell_is_closing(&w)) {
			if (!strcmp(w.source, "time"))
				shell_time(s);
			shell_word_clear(&w);
			return;
		}
		if (!strcmp(w.source, "for") || !strcmp(w.source, "[[")) {
			if (w.source[0] == 'f')
				shell_for(s);
			else
				shell_test(s);
			shell_word_clear(&w);
			return;
		}
		c->nassign += shell_is_assignment(w.source);
	}
	/* 2>file: the number belongs to the redirection */
	if ((*s->p == '<' || *s->p == '>') && w.source[0] &&
	    !w.source[strspn(w.source, "0123456789")]) {
		shell_word_clear(&w);
		return;
	}
	c->words = core_grow(c->words, c->nwords, &c->cap_words,
	    sizeof(*c->words));
	c->words[c->nwords++] = w;
}

/* A list of commands up to `end` (0: the end of the text). */
static void
shell_list(struct shell_parser *s, char end)
{
	struct shell_command c = { 0 };

	while (*s->p && *s->p != end) {
		switch (*s->p) {
		case ' ':
		case '\t':
			s->p++;
			break;
		case '\n':
			if (s->outer) {
				shell_break(s);	/* whose body follows? */
				break;
			}
			s->p++;
			shell_keep(s, &c);
			shell_heredocs(s);
			break;
		case '#':
			s->p += strcspn(s->p, "\n");
			break;
		case '&':
			if (s->p[1] == '>') {
				shell_redirect(s, &c);
				break;
			}
			/* FALLTHROUGH */
		case ';':
		case '|':
			s->p++;
			shell_keep(s, &c);
			break;
		case '<':
		case '>':
			if (s->p[1] == '(')
				shell_take(s, &c);
			else
				shell_redirect(s, &c);
			break;
		case '(':
			if (c.nwords == 1 && s->p[1] == ')') {
				s->p += 2;	/* f() { ...; } */
				shell_keep(s, &c);
				break;
			}
			if (c.nwords) {
				shell_break(s);	/* a=(...), extglob */
				break;
			}
			s->p++;
			if (*s->p == '(') {
				s->p++;
				shell_arithmetic(s);
			} else {
				shell_parens(s);
			}
			break;
		case ')':
			shell_break(s);
			break;
		case '\\':
			if (s->p[1] == '\n') {
				s->p += 2;
				break;
			}
			/* FALLTHROUGH */
		default:
			shell_take(s, &c);
		}
	}
	shell_keep(s, &c);
	if (s->nheredocs && !end)
		shell_heredocs(s);
}

/* Takes a command line apart; the caller clears s. */
static void
shell_parse(const char *text, struct shell *s)
{
	struct shell_parser p = { .out = s, .p = text };

	memset(s, 0, sizeof(*s));
	if (strlen(text) > SHELL_MAX)
		s->broken = true;
	else
		shell_list(&p, 0);
}

/*=== [perm] may this call run: modes, rules, the words of a command =========
 * uses: core str log text json file conf shell
 *
 * A pure decision that explains itself: deny rules, then ask rules, then
 * what the mode lets pass, then allow rules; what is left asks.  A deny
 * holds where any reading of the call matches it, an allow only where every
 * part does.  Looks at the file system to resolve links and for nothing
 * else.  Source: reference agents-and-tools.md section 4.
 *==========================================================================*/

enum perm_decision {
	PERM_ALLOW,
	PERM_ASK,
	PERM_DENY
};

/* A compiled rule: Tool or Tool(spec). */
struct perm_rule {
	const struct conf_rule *from;
	char *tool;
	char *spec;		/* NULL: every call */
};

struct perm {
	const struct conf *conf;
	struct perm_rule *rules;
	size_t nrules, cap;
	bool denies_reads;	/* a deny rule names a path to read */
};

struct perm_call {
	const struct tool *tool;
	const cJSON *input;
	const char *cwd;
	enum perm_mode mode;
	const struct strv *dirs;	/* working directories, real */
};

struct perm_verdict {
	enum perm_decision decision;
	struct str rule;	/* that decided; "" */
	struct str reason;	/* for people */
	struct str message;	/* for the model */
};

static const struct {
	const char *name;
	enum perm_mode mode;
} perm_modes[] = {
	{ "default", MODE_DEFAULT },
	{ "manual", MODE_DEFAULT },
	{ "auto", MODE_DEFAULT },	/* its classifier is not to be had */
	{ "acceptEdits", MODE_ACCEPT_EDITS },
	{ "plan", MODE_PLAN },
	{ "dontAsk", MODE_DONT_ASK },
	{ "bypassPermissions", MODE_BYPASS },
};

static int
perm_mode_parse(const char *s, enum perm_mode *mode)
{
	size_t i;

	for (i = 0; i < LENGTH(perm_modes); i++) {
		if (!strcmp(s, perm_modes[i].name)) {
			*mode = perm_modes[i].mode;
			return 0;
		}
	}
	return -1;
}

static const char *
perm_mode_name(enum perm_mode mode)
{
	size_t i;

	for (i = 0; perm_modes[i].mode != mode; i++)
		continue;
	return perm_modes[i].name;
}

static void
perm_verdict_init(struct perm_verdict *v)
{
	v->decision = PERM_ASK;
	str_init(&v->rule, 0);
	str_init(&v->reason, 0);
	str_init(&v->message, 0);
}

static void
perm_verdict_clear(struct perm_verdict *v)
{
	str_clear(&v->rule);
	str_clear(&v->reason);
	str_clear(&v->message);
}

/*--- rules -----------------------------------------------------------------*/

/* `*` matches anything, also "/" and nothing; all else is literal. */
static bool
perm_wild(const char *pat, const char *s)
{
	const char *star = NULL, *back = NULL;

	while (*s) {
		if (*pat == '*') {
			star = ++pat;
			back = s;
		} else if (*pat == *s) {
			pat++;
			s++;
		} else if (star) {
			pat = star;
			s = ++back;
		} else {
			return false;
		}
	}
	while (*pat == '*')
		pat++;
	return !*pat;
}

/* Names of other times in rules. */
static const char *
perm_tool_name(const char *name)
{
	static const char *const old[][2] = { { "Task", "Agent" },
	    { "MultiEdit", "Edit" }, { "KillShell", "TaskStop" },
	    { "KillBash", "TaskStop" } };
	size_t i;

	for (i = 0; i < LENGTH(old); i++)
		if (!strcmp(name, old[i][0]))
			return old[i][1];
	return name;
}

/* A path rule for a tool that is gated by Edit or Read. */
static bool
perm_is_idle(const struct perm_rule *r)
{
	static const char *const idle[] = { "Write", "NotebookEdit", "Glob",
	    "Grep" };
	size_t i;

	for (i = 0; r->spec && i < LENGTH(idle); i++)
		if (!strcmp(r->tool, idle[i]))
			return true;
	return false;
}

/*
 * Takes a rule apart.  A broken deny or ask rule counts for the whole tool,
 * a broken allow rule for nothing.
 */
static bool
perm_compile(struct perm_rule *r, const struct conf_rule *from)
{
	bool allow = from->list == CONF_ALLOW, broken;
	struct slice t = text_trim(str_of(from->text));
	const char *open = t.n ? memchr(t.p, '(', t.n) : NULL;
	size_t n = open ? (size_t)(open - t.p) : t.n;
	char *name = core_memdup(t.p, n);
	const char *star, *server;

	memset(r, 0, sizeof(*r));
	r->from = from;
	r->tool = core_strdup(perm_tool_name(name));
	free(name);
	broken = !n || (open && t.p[t.n - 1] != ')');
	if (open && !broken)
		r->spec = core_memdup(open + 1, t.n - n - 2);
	if (r->spec && (!*r->spec || !strcmp(r->spec, "*"))) {
		free(r->spec);
		r->spec = NULL;
	}
	if (allow && (star = strchr(r->tool, '*')) != NULL) {
		server = strncmp(r->tool, "mcp__", 5) ? NULL :
		    strstr(r->tool + 5, "__");
		broken |= !server || server == r->tool + 5 ||
		    star < server + 2;
	}
	if (broken)
		log_warn("%s: the rule '%.100s' is broken: %s", from->origin,
		    from->text, allow ? "ignored" :
		    "it counts for the whole tool");
	else if (perm_is_idle(r))
		log_warn("%s: the rule '%.100s' is never looked at: use "
		    "Edit(...) or Read(...)", from->origin, from->text);
	return !(broken && (allow || !n)) && !perm_is_idle(r);
}

static struct perm *
perm_new(const struct conf *conf, struct err *e)
{
	struct perm *p = core_zalloc(sizeof(*p));
	struct perm_rule r;
	size_t i;

	(void)e;
	p->conf = conf;
	for (i = 0; i < conf->nrules; i++) {
		if (!perm_compile(&r, &conf->rules[i])) {
			free(r.tool);
			free(r.spec);
			continue;
		}
		p->rules = core_grow(p->rules, p->nrules, &p->cap, sizeof(r));
		p->rules[p->nrules++] = r;
		p->denies_reads |= r.from->list == CONF_DENY && r.spec &&
		    !strcmp(r.tool, "Read");
	}
	return p;
}

static void
perm_free(struct perm *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < p->nrules; i++) {
		free(p->rules[i].tool);
		free(p->rules[i].spec);
	}
	free(p->rules);
	free(p);
}

/* Whether the rule's name part means this tool. */
static bool
perm_names(const struct perm_rule *r, const char *tool)
{
	size_t n = strlen(r->tool);

	/* mcp__server means all of its tools */
	if (!strncmp(r->tool, "mcp__", 5) && !strncmp(tool, r->tool, n) &&
	    !strncmp(tool + n, "__", 2))
		return true;
	return perm_wild(r->tool, tool);
}

/* A deny rule without a specifier takes the tool out of the pool. */
static bool
perm_removes(const struct perm *p, const char *tool, const char **rule)
{
	size_t i;

	for (i = 0; i < p->nrules; i++) {
		if (p->rules[i].from->list != CONF_DENY || p->rules[i].spec ||
		    !perm_names(&p->rules[i], tool))
			continue;
		if (rule)
			*rule = p->rules[i].from->text;
		return true;
	}
	return false;
}

/*--- paths -----------------------------------------------------------------*/

/* A path as written (made absolute) and where it really is. */
struct perm_path {
	struct str link, real;
};

static void
perm_path_init(struct perm_path *p, const char *cwd, const char *text)
{
	const char *home = file_home();
	struct str s;

	str_init(&p->link, 0);
	str_init(&p->real, 0);
	str_init(&s, 0);
	if (home && text[0] == '~' && (!text[1] || text[1] == '/'))
		str_addf(&s, "%s%s", home, text + 1);
	else
		str_adds(&s, text);
	file_norm(cwd, s.p, &p->link);
	/* not normalised: ".." behind a link leaves the link's target */
	if (file_real(cwd, s.p, &p->real, NULL) < 0) {
		str_reset(&p->real);
		str_addl(&p->real, str_slice(&p->link));
	}
	str_clear(&s);
}

static void
perm_path_clear(struct perm_path *p)
{
	str_clear(&p->link);
	str_clear(&p->real);
}

/* Whether the pattern of a rule matches one absolute path. */
static bool
perm_path_is(const struct perm_rule *r, const char *start, const char *path)
{
	const char *pat = r->spec, *anchor = start, *slash;
	const char *home = file_home();
	struct str s;
	bool hit;

	str_init(&s, 0);
	if (pat[0] == '/' && pat[1] == '/') {
		anchor = "/";
		pat += 1;
	} else if (pat[0] == '~' && (!pat[1] || pat[1] == '/')) {
		anchor = home ? home : "/nonexistent";
		pat += 1;
	} else if (pat[0] == '/') {
		anchor = r->from->anchor ? r->from->anchor : start;
	} else {
		while (pat[0] == '.' && pat[1] == '/') {
			str_reset(&s);
			str_addc(&s, '/');
			pat += 2;
		}
		/* src/...: a deny means a src at any depth */
		slash = strchr(pat, '/');
		if (!s.len && slash && slash[1] == '*' &&
		    r->from->list != CONF_ALLOW)
			str_adds(&s, "**/");
		while (!strncmp(pat, "../", 3) && anchor == start) {
			/* above the start: from the root */
			str_clear(&s);
			file_norm(start, pat, &s);
			hit = text_gitignore(s.p, path + 1, false);
			str_clear(&s);
			return hit;
		}
	}
	str_adds(&s, *pat ? pat : "**");
	hit = file_inside(anchor, path) && (!strcmp(anchor, path) ?
	    !strcmp(s.p, "**") || !strcmp(s.p, "/**") || !strcmp(s.p, "/") :
	    text_gitignore(s.p, file_relative(anchor, path), false));
	str_clear(&s);
	return hit;
}

/* Deny and ask: link or target; allow: both. */
static bool
perm_path_match(const struct perm *p, const struct perm_rule *r,
    const struct perm_path *path)
{
	bool link, real;

	if (!r->spec)
		return true;
	link = perm_path_is(r, p->conf->start_dir, path->link.p);
	real = perm_path_is(r, p->conf->start_dir, path->real.p);
	return r->from->list == CONF_ALLOW ? link && real : link || real;
}

/* Inside one of the working directories, by name and really. */
static bool
perm_is_inside(const struct strv *dirs, const struct perm_path *path)
{
	size_t i;

	for (i = 0; i < dirs->n; i++)
		if (file_inside(dirs->v[i], path->real.p))
			return true;
	return false;
}

/*
 * The first rule of a list that covers a path.  write: Edit rules, else Read
 * rules; a Read deny also covers writing, an Edit allow also reading.
 */
static const struct perm_rule *
perm_path_rule(const struct perm *p, enum conf_list list, bool write,
    const char *tool, const struct perm_path *path)
{
	const struct perm_rule *r;
	bool edit, read;
	size_t i;

	for (i = 0; i < p->nrules; i++) {
		r = &p->rules[i];
		if (r->from->list != list)
			continue;
		edit = !strcmp(r->tool, "Edit");
		read = !strcmp(r->tool, "Read");
		if (!((write && edit) || (!write && read) ||
		    (write && read && r->spec && list == CONF_DENY) ||
		    (!write && edit && list == CONF_ALLOW) ||
		    (tool && perm_names(r, tool))))
			continue;
		if (perm_path_match(p, r, path))
			return r;
	}
	return NULL;
}

/* Whether any deny rule could hide a file from Read, Grep and Glob. */
static bool
perm_denies_reads(const struct perm *p)
{
	return p && p->denies_reads;
}

/* For a walk: a file that no tool may show. */
static bool
perm_read_denied(const struct perm *p, const char *path, const char *cwd)
{
	struct perm_path pp;
	bool denied;

	if (!perm_denies_reads(p))
		return false;
	perm_path_init(&pp, cwd, path);
	denied = perm_path_rule(p, CONF_DENY, false, NULL, &pp) != NULL;
	perm_path_clear(&pp);
	return denied;
}

/* Writing there is never approved without a person. */
static bool
perm_is_protected(const char *path)
{
	static const char *const dirs[] = { ".git", ".vscode", ".idea",
	    ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn",
	    ".claude" };
	static const char *const files[] = { ".gitconfig", ".gitmodules",
	    ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases",
	    ".bash_logout", ".zshrc", ".zprofile", ".zshenv", ".zlogin",
	    ".zlogout", ".profile", ".envrc", ".npmrc", ".yarnrc",
	    ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs",
	    "bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazelversion",
	    ".bazeliskrc", ".pre-commit-config.yaml", "lefthook.yml",
	    "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
	    "gradle-wrapper.properties", "maven-wrapper.properties",
	    ".devcontainer.json", ".ripgreprc", "pyrightconfig.json",
	    ".mcp.json", ".claude.json" };
	struct slice part, before = { "", 0 }, rest;
	size_t i;

	for (rest = str_of(path); text_item(&rest, '/', &part); before = part) {
		for (i = 0; i < LENGTH(dirs); i++)
			if (part.n == strlen(dirs[i]) &&
			    !strncasecmp(part.p, dirs[i], part.n) &&
			    !(str_eq(part, ".claude") && rest.p &&
			    !strncmp(rest.p, "worktrees/", 10)))
				return true;
		if (str_eq(part, "git") && str_eq(before, ".config"))
			return true;
		for (i = 0; !rest.p && i < LENGTH(files); i++)
			if (part.n == strlen(files[i]) &&
			    !strncasecmp(part.p, files[i], part.n))
				return true;
	}
	return false;
}

/*--- the verdict -----------------------------------------------------------*/

static void __attribute__((format(printf, 4, 5)))
perm_say(struct perm_verdict *v, enum perm_decision d,
    const struct perm_rule *rule, const char *fmt, ...)
{
	va_list ap;
	char buf[1024];

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	v->decision = d;
	str_reset(&v->rule);
	str_reset(&v->reason);
	if (rule) {
		str_adds(&v->rule, rule->from->text);
		str_addf(&v->reason, "%s (%s rule '%s' of %s)", buf,
		    rule->from->list == CONF_DENY ? "deny" :
		    rule->from->list == CONF_ASK ? "ask" : "allow",
		    rule->from->text, rule->from->origin);
	} else {
		str_adds(&v->reason, buf);
	}
}

static void __attribute__((format(printf, 2, 3)))
perm_tell(struct perm_verdict *v, const char *fmt, ...)
{
	va_list ap;
	char buf[2048];

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	str_reset(&v->message);
	text_utf8_fix(str_of(buf), &v->message);
}

/* Tool(param:value) against a scalar of the input; deny and ask only. */
static bool
perm_param_match(const struct perm_rule *r, const struct perm_call *c)
{
	const char *colon = r->spec ? strchr(r->spec, ':') : NULL;
	const cJSON *v;
	char *key, num[40];
	bool hit = false;

	if (!colon || r->from->list == CONF_ALLOW || colon == r->spec ||
	    !strcmp(colon, ":*"))
		return false;
	key = core_memdup(r->spec, (size_t)(colon - r->spec));
	v = json_get(c->input, key);
	if (c->tool->subject_key && !strcmp(key, c->tool->subject_key))
		v = NULL;
	if (cJSON_IsString(v)) {
		hit = perm_wild(colon + 1, v->valuestring);
	} else if (cJSON_IsBool(v)) {
		hit = perm_wild(colon + 1, cJSON_IsTrue(v) ? "true" :
		    "false");
	} else if (cJSON_IsNumber(v)) {
		snprintf(num, sizeof(num), "%.15g", v->valuedouble);
		hit = perm_wild(colon + 1, num);
	}
	free(key);
	return hit;
}

/* The host of a URL, lower case, without a dot at its end. */
static void
perm_host(const char *url, struct str *host)
{
	const char *p = strstr(url, "://"), *end;
	size_t i, n;

	p = p ? p + 3 : url;
	n = strcspn(p, "/?#");
	end = memrchr(p, '@', n);
	if (end) {
		n -= (size_t)(end + 1 - p);
		p = end + 1;
	}
	n = *p == '[' ? strcspn(p, "]") + 1 : strcspn(p, ":/?#") < n ?
	    strcspn(p, ":/?#") : n;
	for (i = 0; i < n && p[i]; i++)
		str_addc(host, (char)tolower((unsigned char)p[i]));
	while (host->len && host->p[host->len - 1] == '.')
		str_cut(host, host->len - 1);
}

/* domain:host, *.host (any depth below), or * within a label. */
static bool
perm_domain_match(const char *spec, const char *host)
{
	char *pat, *name, *p;
	bool hit;

	if (strncmp(spec, "domain:", 7))
		return false;
	if (!strcmp(spec + 7, "*"))
		return true;
	if (!strncmp(spec + 7, "*.", 2) && !strchr(spec + 9, '*'))
		return strlen(host) > strlen(spec + 8) &&
		    !strcasecmp(host + strlen(host) - strlen(spec + 8),
		    spec + 8);
	/* labels as path segments: * stays within one */
	pat = core_strdup(spec + 7);
	name = core_strdup(host);
	for (p = pat; *p; p++)
		*p = *p == '.' ? '/' : (char)tolower((unsigned char)*p);
	for (p = name; *p; p++)
		*p = *p == '.' ? '/' : *p;
	hit = text_glob(pat, name);
	free(pat);
	free(name);
	return hit;
}

/*--- commands --------------------------------------------------------------*/

/* One command line being judged. */
struct perm_bash {
	const struct perm *p;
	const struct perm_call *c;
	struct perm_verdict *v;
	struct shell sh;
	struct str base;	/* where relative paths start; "": unknown */
	bool moved;		/* a cd came before */
	bool git;		/* a git command is among them */
	int depth;		/* of sh -c inside */
	int work;		/* readings made of it, see PERM_WORK */
};

/* More readings of one command line than that count as not understood. */
#define PERM_WORK 1000

/*
 * A command pattern: `*` anywhere; ` *` or `:*` at the end also matches
 * nothing more, at a word's end only.
 */
static bool
perm_command_match(const char *spec, const char *text)
{
	size_t n = strlen(spec);
	char *head;
	bool hit;

	if (n >= 2 && (!strcmp(spec + n - 2, ":*") ||
	    !strcmp(spec + n - 2, " *"))) {
		head = core_memdup(spec, n - 2);
		hit = perm_wild(head, text);
		if (!hit) {
			head = core_realloc(head, n + 1);
			memcpy(head + n - 2, " *", 3);
			hit = perm_wild(head, text);
		}
		free(head);
		return hit;
	}
	return perm_wild(spec, text);
}

/* Words from..end, joined by blanks: as written, or with quotes off. */
static void
perm_join(const struct shell_command *c, size_t from, bool source,
    bool base_name, struct str *out)
{
	const char *w;
	size_t i;

	str_reset(out);
	for (i = from; i < c->nwords; i++) {
		w = source ? c->words[i].source : c->words[i].text;
		if (i == from && base_name)
			w = file_name(w);
		if (i > from)
			str_addc(out, ' ');
		str_adds(out, w);
	}
}

static bool
perm_is_word(const struct shell_command *c, size_t i, const char *const *set)
{
	if (i >= c->nwords)
		return false;
	for (; *set; set++)
		if (!strcmp(file_name(c->words[i].text), *set))
			return true;
	return false;
}

/* Wrappers that run what follows: by name alone, ./nice is anything. */
static bool
perm_is_wrapper(const struct shell_command *c, size_t i,
    const char *const *set)
{
	return perm_is_word(c, i, set) && !strchr(c->words[i].text, '/');
}

/* Where what they run begins; with what options they still count. */
static size_t
perm_unwrap(const struct shell_command *c, size_t i)
{
	static const char *const plain[] = { "nohup", "builtin", "noglob",
	    "command", "xargs", "time", NULL };
	static const char *const timeout[] = { "timeout", NULL };
	static const char *const nice[] = { "nice", "stdbuf", NULL };
	size_t from;

	for (from = i; i < c->nwords; from = i) {
		if (perm_is_wrapper(c, i, plain)) {
			i++;
			if (i < c->nwords && c->words[i].text[0] == '-')
				return from;	/* command -v, xargs -n1 */
		} else if (perm_is_wrapper(c, i, timeout)) {
			for (i++; i < c->nwords &&
			    c->words[i].text[0] == '-'; i++)
				continue;
			i++;	/* the duration */
		} else if (perm_is_wrapper(c, i, nice)) {
			for (i++; i < c->nwords &&
			    c->words[i].text[0] == '-'; i++)
				if (!strcmp(c->words[i].text, "-n"))
					i++;
		} else {
			return i;
		}
	}
	return from < c->nwords ? from : c->nwords;	/* `timeout` alone */
}

/* Variables that change nothing but looks. */
static bool
perm_is_safe_env(const struct shell_word *w)
{
	static const char *const safe[] = { "NODE_ENV", "LANG", "LC_ALL",
	    "LC_CTYPE", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM",
	    "COLUMNS", "LINES", "CI", "DEBUG", "RUST_BACKTRACE", "RUST_LOG",
	    "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE" };
	size_t n = strcspn(w->text, "="), i;

	for (i = 0; i < LENGTH(safe) && !w->dynamic; i++)
		if (n == strlen(safe[i]) && !memcmp(w->text, safe[i], n))
			return true;
	return false;
}

/* Commands that run the commands in their arguments. */
static const char *const perm_runners[] = { "env", "sudo", "doas", "watch",
    "ionice", "setsid", "flock", "xargs", "busybox", "exec", "eval", "find",
    "parallel", "nice", "nohup", "timeout", "time", "stdbuf", "command",
    "builtin", "noglob", "chroot", "unshare", "strace", "script", "su",
    "runuser", "nsenter", "taskset", "chrt", "setarch", "prlimit", "fakeroot",
    "systemd-run", "ltrace", "valgrind", "trap", "coproc", "fd", "fdfind",
    NULL };
/* Commands that take a script as a word. */
static const char *const perm_shells[] = { "sh", "bash", "zsh", "dash",
    "ash", "ksh", "rbash", "eval", "trap", "watch", "script", "su", "runuser",
    "flock", "parallel", "env", NULL };

static const struct perm_rule *perm_bash_rule(struct perm_bash *b,
    enum conf_list list, const struct shell *sh);	/* recursion */

/* A rule with a specifier that could have matched a part we cannot see. */
static const struct perm_rule *
perm_any_spec(const struct perm_bash *b, enum conf_list list)
{
	size_t i;

	for (i = 0; i < b->p->nrules; i++)
		if (b->p->rules[i].from->list == list && b->p->rules[i].spec &&
		    perm_names(&b->p->rules[i], b->c->tool->name))
			return &b->p->rules[i];
	return NULL;
}

/* A deny or ask rule on one reading of a command, from word i on. */
static const struct perm_rule *
perm_reading_rule(struct perm_bash *b, enum conf_list list,
    const struct shell_command *c, size_t i)
{
	const struct perm_rule *r;
	struct str text[3];
	bool hit = false;
	size_t k, t;

	if (++b->work > PERM_WORK)
		return perm_any_spec(b, list);
	for (t = 0; t < 3; t++)
		str_init(&text[t], 0);
	perm_join(c, i, true, false, &text[0]);
	perm_join(c, i, false, false, &text[1]);
	perm_join(c, i, false, true, &text[2]);
	for (k = 0, r = NULL; k < b->p->nrules && !hit; k++) {
		r = &b->p->rules[k];
		if (r->from->list != list || !r->spec ||
		    !perm_names(r, b->c->tool->name))
			continue;
		for (t = 0; t < 3 && !hit; t++)
			hit = perm_command_match(r->spec, text[t].p);
	}
	for (t = 0; t < 3; t++)
		str_clear(&text[t]);
	return hit ? r : NULL;
}

/* The script of `sh -c SCRIPT` or `eval ...`, taken apart in its turn. */
static const struct perm_rule *
perm_script_rule(struct perm_bash *b, enum conf_list list,
    const struct shell_command *c, size_t i)
{
	static const char *const eval[] = { "eval", NULL };
	const struct perm_rule *r = NULL;
	struct shell sh;
	struct str text;
	size_t k;

	if (!perm_is_word(c, i, perm_shells))
		return NULL;
	if (b->depth == 4)
		return perm_any_spec(b, list);
	b->depth++;
	str_init(&text, 0);
	if (perm_is_word(c, i, eval)) {
		perm_join(c, i + 1, false, false, &text);
		shell_parse(text.p, &sh);
		r = perm_bash_rule(b, list, &sh);
		shell_clear(&sh);
	}
	for (k = i + 1; k < c->nwords && !r; k++) {
		shell_parse(c->words[k].text, &sh);
		r = perm_bash_rule(b, list, &sh);
		shell_clear(&sh);
	}
	str_clear(&text);
	b->depth--;
	return r;
}

/* A word that stands for any name: $x, {rm,x}, /bin/r?. */
static bool
perm_is_any_name(const struct shell_command *c, size_t i)
{
	return i < c->nwords && (c->words[i].dynamic || c->words[i].glob);
}

/* Any deny or ask rule that any part of the command line matches. */
static const struct perm_rule *
perm_bash_rule(struct perm_bash *b, enum conf_list list,
    const struct shell *sh)
{
	const struct perm_rule *r;
	const struct shell_command *c;
	size_t i, k;

	if (sh->broken && b->depth)
		return perm_any_spec(b, list);
	for (i = 0; i < sh->n; i++) {
		c = &sh->c[i];
		if (perm_is_any_name(c, c->nassign) || (perm_is_word(c,
		    c->nassign, perm_runners) && perm_is_any_name(c,
		    perm_unwrap(c, c->nassign))))
			return perm_any_spec(b, list);
		/* with its assignments, and behind them */
		if (c->nassign && (r = perm_reading_rule(b, list, c, 0)))
			return r;
		for (k = c->nassign; k < c->nwords; k++) {
			if ((r = perm_reading_rule(b, list, c, k)) ||
			    (r = perm_script_rule(b, list, c, k)))
				return r;
			if (!perm_is_word(c, c->nassign, perm_runners))
				break;
		}
	}
	return NULL;
}

/*--- what may run without a rule -------------------------------------------*/

enum {
	READ_PATHS = 1,		/* operands are paths */
	READ_PATTERN = 2,	/* the first operand is none */
	READ_GLOB = 4		/* no unquoted glob: it has flags that write */
};

/* Commands that only read, with the flags that would write or run. */
static const struct {
	const char *name;
	const char *never;	/* blank-separated; "-x" also within "-ax" */
	unsigned flags;
} perm_readers[] = {
	{ "ls", "", READ_PATHS },
	{ "cat", "", READ_PATHS },
	{ "echo", "", 0 },
	{ "pwd", "", 0 },
	{ "head", "", READ_PATHS },
	{ "tail", "", READ_PATHS },
	{ "grep", "", READ_PATHS | READ_PATTERN },
	{ "egrep", "", READ_PATHS | READ_PATTERN },
	{ "fgrep", "", READ_PATHS | READ_PATTERN },
	{ "find", "-exec -execdir -ok -okdir -delete -fprint -fprint0 "
	    "-fprintf -fls -files0-from", READ_PATHS | READ_GLOB },
	{ "wc", "--files0-from", READ_PATHS },
	{ "which", "", 0 },
	{ "diff", "--to-file --from-file", READ_PATHS },
	{ "stat", "", READ_PATHS },
	{ "du", "--files0-from -X", READ_PATHS },
	{ "file", "-C -m -f --compile --magic-file --files-from",
	    READ_PATHS },
	{ "cd", "", READ_PATHS },
	{ "true", "", 0 },
	{ "false", "", 0 },
	{ ":", "", 0 },
	/* -v 'a[$(x)]' runs x */
	{ "test", "-v", READ_PATHS },
	{ "[", "-v", READ_PATHS },
	{ "lsof", "-r -D", 0 },
	{ "pgrep", "", 0 },
	{ "tput", "", 0 },
	{ "ss", "-K --kill -D --diag", 0 },
	{ "fd", "-x -X --exec --exec-batch -C --base-directory --search-path "
	    "--ignore-file", READ_PATHS | READ_PATTERN | READ_GLOB },
	{ "fdfind", "-x -X --exec --exec-batch -C --base-directory "
	    "--search-path --ignore-file", READ_PATHS | READ_PATTERN |
	    READ_GLOB },
};

/* git and docker sub-commands that only read. */
static const struct {
	const char *name, *sub, *never;
	bool bare;		/* no operand at all: it would change things */
} perm_subs[] = {
	{ "git", "status", "", false },
	{ "git", "log", "--output --ext-diff", false },
	{ "git", "diff", "--output --ext-diff --no-index", false },
	{ "git", "show", "--output --ext-diff", false },
	{ "git", "blame", "--contents", false },
	{ "git", "ls-files", "", false },
	{ "git", "ls-tree", "", false },
	{ "git", "rev-parse", "", false },
	{ "git", "rev-list", "", false },
	{ "git", "describe", "", false },
	{ "git", "shortlog", "--output", false },
	{ "git", "cat-file", "--textconv --filters", false },
	{ "git", "branch", "-d -D -m -M -c -C -f -u --delete --move --copy "
	    "--force --set-upstream-to --unset-upstream "
	    "--edit-description --track --create-reflog", true },
	{ "git", "remote", "", true },
	{ "git", "tag", "-a -s -u -f -d -m -F -e --delete --force --sign "
	    "--annotate --message --file --edit", true },
	{ "docker", "ps", "", false },
	{ "docker", "images", "", false },
	{ "docker", "logs", "", false },
	{ "docker", "inspect", "", false },
	{ "docker", "version", "", false },
	{ "docker", "info", "", false },
};

/* Whether an argument is one of the flags, also with =value or glued. */
static bool
perm_is_flag(const char *arg, const char *flags)
{
	struct slice list = str_of(flags), f;
	size_t n = strcspn(arg, "=");

	while (text_item(&list, ' ', &f)) {
		if (!f.n)
			continue;
		if (f.n == n && !memcmp(f.p, arg, n))
			return true;
		/* --out for --output: GNU takes any beginning */
		if (n > 2 && !strncmp(arg, "--", 2) && n < f.n &&
		    !memcmp(f.p, arg, n))
			return true;
		/* -ax and -xVALUE: a single letter anywhere */
		if (f.n == 2 && arg[0] == '-' && arg[1] != '-' &&
		    strchr(arg + 1, f.p[1]))
			return true;
	}
	return false;
}

/* Whether what a glob or braces stand for may lie above their folder. */
static bool
perm_glob_climbs(const char *text)
{
	const char *glob = text + strcspn(text, "*?[{"), *brace, *name;

	if (strstr(glob, ".."))
		return true;
	/* .? and .* can be .. */
	for (name = glob; name > text && name[-1] != '/'; name--)
		continue;
	if (name[0] == '.' && name < glob && glob[0] != '{')
		return true;
	for (name = glob; (name = strstr(name, "/.")) != NULL; name += 2)
		return true;
	/* *.{c,h}, but not {a,/etc} */
	brace = strchr(text, '{');
	if (!brace)
		return false;
	for (name = brace; name > text && name[-1] != '/'; name--)
		continue;
	return strpbrk(brace, "/.~") || name + strspn(name, ".~") == brace;
}

/* The folders where a relative path may start: a cd may have failed, too. */
static size_t
perm_bases(const struct perm_bash *b, const char *bases[2])
{
	bases[0] = b->base.len ? b->base.p : b->c->cwd;
	bases[1] = b->c->cwd;
	return !strcmp(bases[0], bases[1]) ? 1 : 2;
}

/* A path among the words: inside, readable, and known for sure? */
static bool
perm_operand(struct perm_bash *b, const struct shell_word *w,
    const char *text)
{
	const char *bases[2];
	struct perm_path path;
	bool ok = true;
	size_t i, n;

	if (w->dynamic || (!b->base.len && text[0] != '/') ||
	    (w->glob && perm_glob_climbs(text)))
		return false;
	/* ~user, and "~", which is a name like others */
	if (text[0] == '~' && (!w->tilde || strcspn(text, "/") > 1))
		return false;
	/* A glob is judged by the folder in front of it. */
	for (i = 0, n = perm_bases(b, bases); i < n && ok; i++) {
		perm_path_init(&path, bases[i], text);
		ok = perm_is_inside(b->c->dirs, &path);
		perm_path_clear(&path);
	}
	return ok;
}

static bool
perm_has_flag(const struct shell_command *c, size_t i, const char *never)
{
	for (; i < c->nwords; i++)
		if (c->words[i].dynamic || perm_is_flag(c->words[i].text,
		    never))
			return true;
	return false;
}

/* All words from i on that are no flags lie in the working directories. */
static bool
perm_operands(struct perm_bash *b, const struct shell_command *c, size_t i,
    bool pattern)
{
	const char *t;
	bool only = false;

	/* With these, wherever they stand, every operand is a file. */
	pattern = pattern && !perm_has_flag(c, i, "-e -f --regexp --file");
	for (; i < c->nwords; i++) {
		t = c->words[i].text;
		if (!only && !strcmp(t, "--")) {
			only = true;
			continue;
		}
		if (!only && t[0] == '-') {
			if (strchr(t, '/') && !perm_operand(b, &c->words[i],
			    strchr(t, '/')))
				return false;
			if (c->words[i].dynamic)
				return false;
			continue;
		}
		if (pattern) {
			pattern = false;
			continue;
		}
		if (!perm_operand(b, &c->words[i], t))
			return false;
	}
	return true;
}

static bool
perm_has_glob(const struct shell_command *c, size_t i)
{
	for (; i < c->nwords; i++)
		if (c->words[i].glob)
			return true;
	return false;
}

/* git SUB and docker SUB, without options in front but harmless ones. */
static bool
perm_sub_reads(struct perm_bash *b, const struct shell_command *c, size_t i)
{
	const char *name = c->words[i].text, *sub;
	size_t k;

	i++;
	while (i < c->nwords && (!strcmp(c->words[i].text, "--no-pager") ||
	    !strcmp(c->words[i].text, "-P")))
		i++;
	if (i >= c->nwords || perm_has_glob(c, i))
		return false;
	/* git diff takes files from anywhere, too */
	for (k = i; k < c->nwords; k++)
		if (c->words[k].tilde || c->words[k].text[0] == '/' ||
		    strstr(c->words[k].text, "../") ||
		    strstr(c->words[k].text, "=/") ||
		    !strcmp(c->words[k].text, "..") ||
		    str_ends(c->words[k].text, "/.."))
			return false;
	b->git |= !strcmp(name, "git");
	sub = c->words[i].text;
	for (k = 0; k < LENGTH(perm_subs); k++)
		if (!strcmp(perm_subs[k].name, name) &&
		    !strcmp(perm_subs[k].sub, sub))
			break;
	if (k == LENGTH(perm_subs) ||
	    perm_has_flag(c, i + 1, perm_subs[k].never))
		return false;
	for (i++; i < c->nwords && perm_subs[k].bare; i++)
		if (c->words[i].text[0] != '-')
			return false;
	return true;
}

/*
 * Where the command proper begins; false where the words in front of it do
 * not tell what it works on: xargs, or variables that could change it.
 */
static bool
perm_plain_start(const struct shell_command *c, size_t *start)
{
	size_t i;

	*start = perm_unwrap(c, c->nassign);
	for (i = 0; i < c->nassign; i++)
		if (!perm_is_safe_env(&c->words[i]))
			return false;
	for (; i < *start; i++)
		if (!strcmp(file_name(c->words[i].text), "xargs"))
			return false;
	return true;
}

/* A read that could bring up a file which a deny rule hides. */
static bool
perm_may_hit_denied(struct perm_bash *b, const struct shell_command *c,
    size_t i)
{
	static const char *const greps[] = { "grep", "egrep", "fgrep", NULL };

	if (!perm_denies_reads(b->p))
		return false;
	return perm_has_glob(c, i) || (perm_is_word(c, i, greps) &&
	    perm_has_flag(c, i + 1, "-r -R --recursive "
	    "--dereference-recursive -d --directories"));
}

/* Whether a simple command only reads, and only what may be read. */
static bool
perm_only_reads(struct perm_bash *b, const struct shell_command *c)
{
	const char *name;
	size_t i, k;

	if (!perm_plain_start(c, &i))
		return false;
	if (i >= c->nwords)
		return !c->nassign;	/* redirections alone */
	if (perm_may_hit_denied(b, c, i))
		return false;
	if (c->words[i].dynamic || c->words[i].glob)
		return false;
	name = c->words[i].text;
	if (!strcmp(name, "git") || !strcmp(name, "docker"))
		return perm_sub_reads(b, c, i);
	for (k = 0; k < LENGTH(perm_readers); k++)
		if (!strcmp(perm_readers[k].name, name))
			break;
	if (k == LENGTH(perm_readers))
		return false;
	if (*perm_readers[k].never &&
	    perm_has_flag(c, i + 1, perm_readers[k].never))
		return false;
	if ((perm_readers[k].flags & READ_GLOB) && perm_has_glob(c, i + 1))
		return false;
	/* find's expression has words that are no paths */
	if (!strcmp(name, "find")) {
		for (i++; i < c->nwords && (!strcmp(c->words[i].text, "-L") ||
		    !strcmp(c->words[i].text, "-H") ||
		    !strcmp(c->words[i].text, "-P")); i++)
			continue;
		if (i < c->nwords && (!strncmp(c->words[i].text, "-O", 2) ||
		    !strcmp(c->words[i].text, "-D") ||
		    !strcmp(c->words[i].text, "--")))
			return false;
		for (; i < c->nwords && c->words[i].text[0] != '-' &&
		    c->words[i].text[0] != '(' && c->words[i].text[0] != '!';
		    i++)
			if (!perm_operand(b, &c->words[i], c->words[i].text))
				return false;
		return true;
	}
	return !(perm_readers[k].flags & READ_PATHS) || perm_operands(b, c,
	    i + 1, perm_readers[k].flags & READ_PATTERN);
}

/* A sed script that only substitutes: s/a/b/ with harmless flags. */
static bool
perm_sed_is_plain(const char *s)
{
	char d = s[0] == 's' ? s[1] : 0;
	int parts = 0;

	if (!d || isalnum((unsigned char)d) || d == '\\' || d == '\n')
		return false;
	for (s += 2; *s && parts < 2; s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (*s == d)
			parts++;
		else if (*s == '\n')
			return false;
	}
	return parts == 2 && !s[strspn(s, "gIip0123456789")];
}

/* What acceptEdits lets pass inside, and plan mode never. */
static const char *const perm_editors[] = { "mkdir", "touch", "rm", "rmdir",
    "mv", "cp", "sed", NULL };

/* acceptEdits: simple file commands on paths inside. */
static bool
perm_only_edits(struct perm_bash *b, const struct shell_command *c)
{
	const char *bases[2];
	struct perm_path path;
	bool sed, ok = true;
	size_t i, k, n;

	if (!perm_plain_start(c, &i) || i >= c->nwords ||
	    !perm_is_word(c, i, perm_editors) || strchr(c->words[i].text,
	    '/') || !b->base.len)
		return false;
	sed = !strcmp(c->words[i].text, "sed");
	for (i++; i < c->nwords && ok; i++) {
		if (c->words[i].dynamic || (sed && c->words[i].glob &&
		    !c->words[i].quoted))
			return false;
		if (c->words[i].text[0] == '-') {
			ok = !sed || !strcmp(c->words[i].text, "-i") ||
			    !strcmp(c->words[i].text, "-E") ||
			    !strcmp(c->words[i].text, "-n");
			/* --target-directory=.., and -t with it glued on */
			if (c->words[i].text[strspn(c->words[i].text, "-"
			    "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] ||
			    (c->words[i].text[1] != '-' &&
			    strchr(c->words[i].text, 't') &&
			    strlen(c->words[i].text) > 2))
				ok = false;
			continue;
		}
		if (sed) {
			if (!perm_sed_is_plain(c->words[i].text))
				return false;
			sed = false;	/* the rest are files */
			continue;
		}
		if (!perm_operand(b, &c->words[i], c->words[i].text))
			return false;
		for (k = 0, n = perm_bases(b, bases); k < n && ok; k++) {
			perm_path_init(&path, bases[k], c->words[i].text);
			ok = !perm_is_protected(path.real.p) &&
			    !perm_is_protected(path.link.p);
			perm_path_clear(&path);
		}
	}
	return ok;
}

/* An allow rule for one simple command. */
static const struct perm_rule *
perm_allow_rule(struct perm_bash *b, const struct shell_command *c)
{
	static const char *const whole[] = { "watch", "setsid", "ionice",
	    "flock", NULL };
	const struct perm_rule *r;
	struct str text;
	size_t i, k, from;
	bool safe = true, exact, hit = false;

	for (i = 0; i < c->nassign; i++)
		safe &= perm_is_safe_env(&c->words[i]);
	from = perm_unwrap(c, c->nassign);
	exact = perm_is_word(c, from, whole) || (from < c->nwords &&
	    !strcmp(file_name(c->words[from].text), "find") &&
	    perm_has_flag(c, from + 1, perm_readers[9].never));
	str_init(&text, 0);
	for (k = 0, r = NULL; k < b->p->nrules && !hit; k++) {
		r = &b->p->rules[k];
		if (r->from->list != CONF_ALLOW ||
		    !perm_names(r, b->c->tool->name))
			continue;
		if (!r->spec) {
			hit = true;
			break;
		}
		if (exact && strchr(r->spec, '*'))
			continue;
		perm_join(c, 0, true, false, &text);
		hit = perm_command_match(r->spec, text.p);
		if (!hit && safe && c->nassign) {
			perm_join(c, c->nassign, true, false, &text);
			hit = perm_command_match(r->spec, text.p);
		}
		if (!hit && safe && from > c->nassign && from < c->nwords) {
			perm_join(c, from, true, false, &text);
			hit = perm_command_match(r->spec, text.p);
		}
		/* A name that is only known when it runs needs a star. */
		if (hit && c->nassign < c->nwords &&
		    (c->words[c->nassign].dynamic ||
		    c->words[c->nassign].glob) && r->spec[0] != '*')
			hit = false;
	}
	str_clear(&text);
	return hit ? r : NULL;
}

/* $HOME or ${HOME}, quoted or not, with nothing but / and * behind it. */
static bool
perm_is_home(const char *source)
{
	const char *p = source + strspn(source, "\"");

	if (!strncmp(p, "$HOME", 5))
		p += 5;
	else if (!strncmp(p, "${HOME}", 7))
		p += 7;
	else
		return false;
	return !p[strspn(p, "\"/*.")];
}

/* A folder that nobody wants removed: /x, home, here or above. */
static bool
perm_is_critical_path(const struct perm_bash *b, const char *text, bool glob)
{
	const char *home = file_home(), *bases[2];
	struct perm_path path;
	bool bad = false;
	size_t i, k, n;

	for (i = 0, n = perm_bases(b, bases); i < n && !bad; i++) {
		perm_path_init(&path, bases[i], text);
		bad = !strchr(path.real.p + 1, '/') ||
		    (home && !strcmp(path.real.p, home)) ||
		    file_inside(path.real.p, b->c->cwd);
		for (k = 0; k < b->c->dirs->n && glob && !bad; k++)
			bad = !strcmp(path.real.p, b->c->dirs->v[k]);
		perm_path_clear(&path);
	}
	return bad;
}

/* What rm is given: a critical path, all that is in one, "$X"/... */
static bool
perm_is_critical_word(const struct perm_bash *b, const struct shell_word *w)
{
	const char *t = w->text;
	size_t n = strlen(t);
	struct str dir;
	bool bad;

	if (t[0] == '-')
		return false;
	/* everything, where the variable is empty */
	if (w->dynamic)
		return perm_is_home(w->source) || (n > 1 &&
		    (!strcmp(t + n - 2, "/*") || t[n - 1] == '/'));
	if (w->glob && (strstr(t, "{/") || strstr(t, ",/") ||
	    strstr(t, "{~") || strstr(t, ",~")))
		return true;
	str_init(&dir, 0);
	str_adds(&dir, t);
	/* what is below it is as bad as the folder */
	while (w->glob && dir.len && strchr("*/.?", dir.p[dir.len - 1]))
		str_cut(&dir, dir.len - 1);
	if (!dir.len)
		str_addc(&dir, t[0] == '/' ? '/' : '.');
	bad = perm_is_critical_path(b, dir.p, w->glob && dir.len < n);
	str_clear(&dir);
	return bad;
}

/* Removing what nobody wants removed, also in the script of a shell. */
static bool
perm_is_critical(struct perm_bash *b, const struct shell_command *c)
{
	static const char *const names[] = { "rm", "rmdir", NULL };
	bool bad = false, rm = false, script;
	struct shell sh;
	size_t i, k;

	script = perm_is_word(c, c->nassign, perm_shells) && b->depth < 4;
	b->depth++;
	for (k = c->nassign; k < c->nwords && !bad; k++) {
		bad = rm && perm_is_critical_word(b, &c->words[k]);
		rm |= perm_is_word(c, k, names);
		if (!script || bad)
			continue;
		shell_parse(c->words[k].text, &sh);
		for (i = 0; i < sh.n && !bad; i++)
			bad = perm_is_critical(b, &sh.c[i]);
		shell_clear(&sh);
	}
	b->depth--;
	return bad;
}

/* `cd x`: relative paths start there from now on. */
static void
perm_follow_cd(struct perm_bash *b, const struct shell_command *c)
{
	size_t i = perm_unwrap(c, c->nassign);
	struct perm_path path;

	if (i >= c->nwords || (strcmp(c->words[i].text, "cd") &&
	    strcmp(c->words[i].text, "pushd") &&
	    strcmp(c->words[i].text, "popd")))
		return;
	b->moved = true;
	if (i + 2 == c->nwords && !strcmp(c->words[i].text, "cd") &&
	    !c->words[i + 1].dynamic && !c->words[i + 1].glob &&
	    c->words[i + 1].text[0] != '-' && b->base.len) {
		perm_path_init(&path, b->base.p, c->words[i + 1].text);
		str_take(&b->base, &path.real);
		/* link/..: the shell's way back is another than the kernel's */
		if (strstr(c->words[i + 1].text, "..") &&
		    strcmp(b->base.p, path.link.p))
			str_reset(&b->base);
		perm_path_clear(&path);
	} else {
		str_reset(&b->base);
	}
}

/* Why a file may not be read or written by a redirection; "" if it may. */
static const char *
perm_redirect_path(struct perm_bash *b, bool write, bool any,
    const struct perm_path *path)
{
	const struct perm_rule *allow = perm_path_rule(b->p, CONF_ALLOW,
	    write, NULL, path);
	bool inside = perm_is_inside(b->c->dirs, path);

	if (write && (perm_is_protected(path->real.p) ||
	    perm_is_protected(path->link.p)))
		return "it writes to a protected file";
	if (any)
		return "";
	if (!write)
		return allow || inside ? "" :
		    "it reads a file outside the working folders";
	return (allow && b->c->mode != MODE_PLAN) ||
	    (b->c->mode == MODE_ACCEPT_EDITS && inside) ? "" :
	    "it writes a file";
}

/*
 * Why a redirection may not go through; "" if it may.  any: the command is
 * allowed whatever it does, which does not open protected files.
 */
static const char *
perm_redirect(struct perm_bash *b, const struct shell_redirect *r, bool any)
{
	static const char *const free_ones[] = { "/dev/null", "/dev/stdout",
	    "/dev/stderr", "/dev/stdin", "/dev/tty" };
	const char *bases[2], *why = "";
	struct perm_path path;
	size_t i, n;

	for (i = 0; i < LENGTH(free_ones); i++)
		if (!strcmp(r->word.text, free_ones[i]))
			return "";
	if (r->word.dynamic || r->word.glob || r->word.tilde || !b->base.len)
		return any ? "" : "the target of a redirection is not known";
	for (i = 0, n = perm_bases(b, bases); i < n && !*why; i++) {
		perm_path_init(&path, bases[i], r->word.text);
		why = perm_redirect_path(b, r->write, any, &path);
		perm_path_clear(&path);
	}
	return why;
}

/* A path rule of a list for a word that may be a path. */
static const struct perm_rule *
perm_word_rule(struct perm_bash *b, enum conf_list list, bool read,
    bool edit, const char *text)
{
	const struct perm_rule *r = NULL;
	const char *bases[2];
	struct perm_path path;
	size_t i, n;

	if (!*text)
		return NULL;
	for (i = 0, n = perm_bases(b, bases); i < n && !r; i++) {
		perm_path_init(&path, bases[i], text);
		if (read)
			r = perm_path_rule(b->p, list, false, NULL, &path);
		if (edit && !r)
			r = perm_path_rule(b->p, list, true, NULL, &path);
		perm_path_clear(&path);
	}
	return r;
}

/* A path rule of a list for what a command reads, edits or redirects. */
static const struct perm_rule *
perm_file_rule(struct perm_bash *b, enum conf_list list,
    const struct shell_command *c)
{
	static const char *const edits[] = { "rm", "rmdir", "mv", "cp", "tee",
	    "touch", "mkdir", "sed", "truncate", "ln", "chmod", "chown",
	    "install", "dd", NULL };
	static const char *const reads[] = { "cat", "head", "tail", "grep",
	    "egrep", "fgrep", "sed", "awk", "less", "more", "nl", "od", "xxd",
	    "sort", "uniq", "cut", "wc", "diff", "cmp", "strings", "base64",
	    "cp", "mv", "ln", "tar", "zip", "tac", "rev", "find", "stat",
	    "file", "source", ".", "rg", "jq", "hexdump", "dd", NULL };
	const struct perm_rule *r = NULL;
	bool edit = false, read = false;
	const char *t;
	size_t i;

	for (i = c->nassign; i < c->nwords && !edit && !read; i++) {
		edit |= perm_is_word(c, i, edits);
		read |= perm_is_word(c, i, reads);
		if (!perm_is_word(c, i, perm_runners))
			break;
	}
	for (i = c->nassign; i < c->nwords && !r && (edit || read); i++) {
		t = c->words[i].text;
		r = perm_word_rule(b, list, read, edit, t);
		if (!r && strchr(t, '='))	/* if=x, --file=x */
			r = perm_word_rule(b, list, read, edit,
			    strchr(t, '=') + 1);
		if (!r && t[0] == '-' && t[1] && t[1] != '-')	/* -fx */
			r = perm_word_rule(b, list, read, edit, t + 2);
	}
	for (i = 0; i < c->nredirects && !r; i++)
		r = perm_word_rule(b, list, !c->redirects[i].write,
		    c->redirects[i].write, c->redirects[i].word.text);
	return r;
}

/* Bare rules of a list that name the tool. */
static const struct perm_rule *
perm_bare_rule(const struct perm *p, enum conf_list list,
    const struct perm_call *c)
{
	size_t i;

	for (i = 0; i < p->nrules; i++)
		if (p->rules[i].from->list == list &&
		    perm_names(&p->rules[i], c->tool->name) &&
		    (!p->rules[i].spec || perm_param_match(&p->rules[i], c)))
			return &p->rules[i];
	return NULL;
}

/* Deny and ask rules on all parts; true: v is final. */
static bool
perm_bash_barred(struct perm_bash *b, const char *cmd)
{
	static const enum conf_list lists[] = { CONF_DENY, CONF_ASK };
	const struct perm_rule *r;
	size_t i, k;

	for (i = 0; i < LENGTH(lists); i++) {
		b->work = 0;
		r = perm_bash_rule(b, lists[i], &b->sh);
		str_reset(&b->base);
		str_adds(&b->base, b->c->cwd);
		for (k = 0; k < b->sh.n && !r; k++) {
			r = perm_file_rule(b, lists[i], &b->sh.c[k]);
			perm_follow_cd(b, &b->sh.c[k]);
		}
		if (!r && b->sh.broken)
			r = perm_any_spec(b, lists[i]);
		if (!r)
			continue;
		perm_say(b->v, lists[i] == CONF_DENY ? PERM_DENY : PERM_ASK,
		    r, "%s", b->sh.broken ? "the command cannot be taken "
		    "apart, and a part of it may match" :
		    "a part of the command matches");
		perm_tell(b->v, "Permission to use Bash with command %.1000s "
		    "has been denied.", cmd);
		return true;
	}
	return false;
}

/* Every part must be allowed by itself. */
static void
perm_bash_parts(struct perm_bash *b, const char *cmd)
{
	const struct perm_rule *r, *last = NULL;
	const struct shell_command *c;
	struct str parts, text;
	const char *why = "";
	size_t i, k, bad = 0;
	bool reads, git_moved = false;

	str_init(&parts, 0);
	str_init(&text, 0);
	str_reset(&b->base);
	str_adds(&b->base, b->c->cwd);
	b->moved = false;
	for (i = 0; i < b->sh.n; i++) {
		c = &b->sh.c[i];
		b->git = false;
		r = perm_allow_rule(b, c);
		if (r && b->c->mode == MODE_PLAN && perm_is_word(c,
		    perm_unwrap(c, c->nassign), perm_editors))
			r = NULL;
		reads = !r && perm_only_reads(b, c);
		git_moved = b->git && b->moved && !r;
		if (r)
			last = r;
		else if ((!reads && !(b->c->mode == MODE_ACCEPT_EDITS &&
		    perm_only_edits(b, c))) || git_moved)
			why = "no rule allows it";
		else
			why = "";
		/* A bare rule covers what the command does with files. */
		for (k = 0; k < c->nredirects && !(!r && *why); k++) {
			if (*(why = perm_redirect(b, &c->redirects[k],
			    r && !r->spec)))
				break;
			why = "";
		}
		if (*why && (!r || k < c->nredirects)) {
			perm_join(c, 0, true, false, &text);
			str_addf(&parts, "%s%s", bad++ ? ", " : "",
			    text.len ? text.p : "a redirection");
			if (k < c->nredirects)
				str_addf(&parts, " %s %s",
				    c->redirects[k].write ? ">" : "<",
				    c->redirects[k].word.source);
		}
		perm_follow_cd(b, c);
	}
	for (i = 0; i < b->p->nrules && b->sh.broken; i++) {
		r = &b->p->rules[i];
		if (r->from->list == CONF_ALLOW && !r->spec &&
		    perm_names(r, b->c->tool->name)) {
			last = r;	/* it allows whatever that is */
			b->sh.broken = false;
		}
	}
	if (!bad && !b->sh.broken) {
		perm_say(b->v, PERM_ALLOW, last, "%s", last ?
		    "every part of the command is allowed" :
		    b->c->mode == MODE_ACCEPT_EDITS ? "the command reads, or "
		    "edits inside the working folders" :
		    "the command only reads");
	} else if (b->sh.broken) {
		perm_say(b->v, PERM_ASK, NULL, "the command cannot be taken "
		    "apart safely");
		perm_tell(b->v, "Claude requested permissions to use Bash, "
		    "but you haven't granted it yet. The command is too "
		    "complex to be checked: use simpler ones.");
	} else {
		perm_say(b->v, PERM_ASK, NULL, "no rule allows: %.700s",
		    parts.p);
		if (b->sh.n > 1)
			perm_tell(b->v, "This Bash command contains multiple "
			    "operations. The following parts require "
			    "approval: %.1500s", parts.p);
		else
			perm_tell(b->v, "Claude requested permissions to use "
			    "Bash, but you haven't granted it yet. A rule "
			    "such as Bash(%.200s) would allow it.", cmd);
	}
	str_clear(&parts);
	str_clear(&text);
}

static void
perm_decide_bash(struct perm_bash *b, const char *cmd)
{
	bool critical = false;
	size_t i;

	shell_parse(cmd, &b->sh);
	str_init(&b->base, 0);
	if (perm_bash_barred(b, cmd))
		goto out;
	str_reset(&b->base);
	str_adds(&b->base, b->c->cwd);
	for (i = 0; i < b->sh.n && !critical; i++) {
		critical = perm_is_critical(b, &b->sh.c[i]);
		perm_follow_cd(b, &b->sh.c[i]);
	}
	if (critical) {
		perm_say(b->v, PERM_ASK, NULL,
		    "it removes a folder that nothing should remove");
		perm_tell(b->v, "Claude requested permissions to use Bash, "
		    "but you haven't granted it yet. No rule can allow the "
		    "removal of such a folder.");
	} else if (b->c->mode == MODE_BYPASS) {
		perm_say(b->v, PERM_ALLOW, NULL,
		    "the mode bypassPermissions");
	} else {
		perm_bash_parts(b, cmd);
	}
out:
	str_clear(&b->base);
	shell_clear(&b->sh);
}

/* Whether a command may run beside others: it only reads, here. */
static bool
perm_command_is_read_only(const char *cmd)
{
	struct strv root = { 0 };
	struct perm_call call = { .cwd = "/", .dirs = &root };
	struct perm_bash b = { .c = &call };
	bool reads = true;
	size_t i;

	str_list_adds(&root, "/");
	shell_parse(cmd, &b.sh);
	str_init(&b.base, 0);
	str_addc(&b.base, '/');
	for (i = 0; i < b.sh.n && reads; i++)
		reads = !b.sh.c[i].nredirects && (!b.sh.c[i].nwords ||
		    strcmp(b.sh.c[i].words[0].text, "cd")) &&
		    perm_only_reads(&b, &b.sh.c[i]);
	reads &= !b.sh.broken && b.sh.n > 0;
	str_clear(&b.base);
	shell_clear(&b.sh);
	str_list_clear(&root);
	return reads;
}

/*--- files, addresses, agents, the rest ------------------------------------*/

static void
perm_decide_path(const struct perm *p, const struct perm_call *c,
    const char *text, struct perm_verdict *v)
{
	bool write = c->tool->subject == SUBJECT_EDIT, inside, outside_barred;
	const char *verb = write ? "write to" : "read from";
	const struct perm_rule *r;
	struct perm_path path;

	perm_path_init(&path, c->cwd, text);
	inside = perm_is_inside(c->dirs, &path);
	outside_barred = !inside && conf_flag(p->conf, write ?
	    "permissions.blockWritesOutsideWorkingDirectories" :
	    "permissions.blockReadsOutsideWorkingDirectories", false);
	perm_tell(v, "Claude requested permissions to %s %s, but you haven't "
	    "granted it yet.", verb, path.link.p);
	if ((r = perm_path_rule(p, CONF_DENY, write, c->tool->name, &path)) ||
	    outside_barred) {
		perm_say(v, PERM_DENY, r, r ? "the path is denied" :
		    "the settings bar paths outside the working folders");
		if (r && write && !strcmp(r->tool, "Read"))
			perm_tell(v, "File is covered by a Read deny rule in "
			    "your permission settings and cannot be %s.",
			    !strcmp(c->tool->name, "Write") ? "written" :
			    "edited");
		else
			perm_tell(v, "File is in a directory that is denied "
			    "by your permission settings.");
	} else if ((r = perm_path_rule(p, CONF_ASK, write, c->tool->name,
	    &path))) {
		perm_say(v, PERM_ASK, r, "the path asks");
	} else if (c->mode == MODE_BYPASS) {
		perm_say(v, PERM_ALLOW, NULL, "the mode bypassPermissions");
	} else if (write && (perm_is_protected(path.real.p) ||
	    perm_is_protected(path.link.p))) {
		perm_say(v, PERM_ASK, NULL, "the path is protected");
	} else if (write && c->mode == MODE_PLAN) {
		perm_say(v, PERM_ASK, NULL, "nothing is edited in plan mode");
	} else if ((r = perm_path_rule(p, CONF_ALLOW, write, c->tool->name,
	    &path))) {
		perm_say(v, PERM_ALLOW, r, "the path is allowed");
	} else if (inside && !write) {
		perm_say(v, PERM_ALLOW, NULL,
		    "it reads inside the working folders");
	} else if (inside && c->mode == MODE_ACCEPT_EDITS) {
		perm_say(v, PERM_ALLOW, NULL, "acceptEdits: it edits inside "
		    "the working folders");
	} else {
		perm_say(v, PERM_ASK, NULL, write ? "no rule allows the "
		    "edit" : "it reads outside the working folders");
		perm_tell(v, "Claude requested permissions to %s %s, but you "
		    "haven't granted it yet. A rule such as %s(/%s) would "
		    "allow it.", verb, path.link.p, write ? "Edit" : "Read",
		    path.link.p);
	}
	perm_path_clear(&path);
}

/* The specifier of a rule against a URL's host or an agent type. */
static bool
perm_other_match(const struct perm_rule *r, const struct perm_call *c)
{
	const char *text = c->tool->subject_key ? json_text(c->input,
	    c->tool->subject_key) : NULL;
	struct str host;
	bool hit;

	if (!r->spec || perm_param_match(r, c))
		return true;
	if (c->tool->subject == SUBJECT_URL && text) {
		str_init(&host, 0);
		perm_host(text, &host);
		hit = perm_domain_match(r->spec, host.p);
		str_clear(&host);
		return hit;
	}
	return c->tool->subject == SUBJECT_AGENT && text &&
	    !strcmp(r->spec, text);
}

static void
perm_decide_other(const struct perm *p, const struct perm_call *c,
    struct perm_verdict *v)
{
	static const enum perm_decision decisions[] = { PERM_DENY, PERM_ASK,
	    PERM_ALLOW };
	size_t list, i;

	perm_tell(v, "Claude requested permissions to use %s, but you "
	    "haven't granted it yet. The rule %s would allow it.",
	    c->tool->name, c->tool->name);
	for (list = CONF_DENY; list < CONF_LISTS; list++) {
		if (list == CONF_ALLOW && c->mode == MODE_BYPASS) {
			perm_say(v, PERM_ALLOW, NULL,
			    "the mode bypassPermissions");
			return;
		}
		for (i = 0; i < p->nrules; i++) {
			if (p->rules[i].from->list != (enum conf_list)list ||
			    !perm_names(&p->rules[i], c->tool->name) ||
			    !perm_other_match(&p->rules[i], c))
				continue;
			perm_say(v, decisions[list], &p->rules[i],
			    "the call matches");
			if (list == CONF_DENY)
				perm_tell(v, "Permission to use %s has been "
				    "denied.", c->tool->name);
			return;
		}
	}
	if (c->tool->flags & TOOL_FREE)
		perm_say(v, PERM_ALLOW, NULL, "%s changes nothing outside "
		    "the run", c->tool->name);
	else
		perm_say(v, PERM_ASK, NULL, "no rule allows it");
}

/* Nobody may be asked: what would ask is denied. */
static void
perm_settle(const struct perm *p, const struct perm_call *c,
    struct perm_verdict *v)
{
	if (v->decision != PERM_ASK)
		return;
	if (c->mode == MODE_DONT_ASK) {
		v->decision = PERM_DENY;
		str_adds(&v->reason, "; dontAsk denies what would ask");
		perm_tell(v, "Permission to use %s has been denied because "
		    "Claude Code is running in don't ask mode. Do not try "
		    "the same in another way; go on without it, or say what "
		    "could not be done.", c->tool->name);
	} else if (conf_flag(p->conf, "permissions.denyInsteadOfPrompting",
	    false)) {
		v->decision = PERM_DENY;
		str_adds(&v->reason, "; the settings deny what would ask");
	}
}

/* The decision on one call; v was initialised by the caller. */
static void
perm_decide(const struct perm *p, const struct perm_call *c,
    struct perm_verdict *v)
{
	struct perm_bash b = { .p = p, .c = c, .v = v };
	const char *text = c->tool->subject_key ? json_text(c->input,
	    c->tool->subject_key) : NULL;
	const struct perm_rule *r;

	if ((r = perm_bare_rule(p, CONF_DENY, c))) {
		perm_say(v, PERM_DENY, r, "the tool is denied");
		perm_tell(v, "Permission to use %s has been denied.",
		    c->tool->name);
	} else if ((r = perm_bare_rule(p, CONF_ASK, c))) {
		perm_say(v, PERM_ASK, r, "the tool asks");
		perm_tell(v, "Claude requested permissions to use %s, but "
		    "you haven't granted it yet.", c->tool->name);
	} else if (c->tool->subject == SUBJECT_COMMAND && text) {
		perm_decide_bash(&b, text);
	} else if (c->tool->subject == SUBJECT_READ ||
	    (c->tool->subject == SUBJECT_EDIT && text)) {
		perm_decide_path(p, c, text ? text : c->cwd, v);
	} else {
		perm_decide_other(p, c, v);
	}
	perm_settle(p, c, v);
}

/*=== [memo] instruction files ===============================================
 * uses: core str log text file conf
 *
 * CLAUDE.md of the machine, the user and every folder from the root down to
 * the start folder, with what they import, as one text for the first user
 * message.  What a repository brings along may only pull in files of its
 * own: an import or a link that leads out of it is passed over.
 *
 * Rules folders (.claude/rules) and files below the start folder belong to a
 * later stage and are not read yet.
 *==========================================================================*/

#define MEMO_FILE (4u << 20)	/* larger files are left out, as documented */
#define MEMO_ALL (8u << 20)	/* of a request's 32 MiB; then we stop */
#define MEMO_HOPS 4		/* imports of imports, as documented */
#define MEMO_TRIES 1000		/* files looked for; an import is one open */
#define MEMO_SPAN 4096		/* longest code span within a line */

enum memo_kind {
	MEMO_MANAGED,
	MEMO_USER,
	MEMO_PROJECT,
	MEMO_LOCAL
};

static const char *const memo_kinds[] = {
	"instructions of this machine's administrator",
	"the user's own instructions, for all projects",
	"instructions of this project",
	"the user's own instructions, for this project",
};

/* A file that was taken; links to it are not taken again. */
struct memo_seen {
	dev_t dev;
	ino_t ino;
};

struct memo {
	const struct conf *conf;
	struct str *out;
	struct memo_seen *seen;
	size_t nseen;
	size_t cap;
	int tries;
	bool full;		/* MEMO_ALL is reached */
	int outside;		/* may imports leave? -1: not looked up */
};

static bool
memo_is_seen(struct memo *m, const struct stat *st)
{
	size_t i;

	for (i = 0; i < m->nseen; i++)
		if (m->seen[i].dev == st->st_dev &&
		    m->seen[i].ino == st->st_ino)
			return true;
	m->seen = core_grow(m->seen, m->nseen, &m->cap, sizeof(*m->seen));
	m->seen[m->nseen++] = (struct memo_seen){ st->st_dev, st->st_ino };
	return false;
}

/* claudeMdExcludes: globs with braces against absolute paths. */
static bool
memo_is_excluded(const struct conf *c, const char *path, const char *real)
{
	struct strv pats = { 0 };
	const cJSON *v;
	size_t i;
	bool hit = false;

	cJSON_ArrayForEach(v, conf_get(c, "claudeMdExcludes"))
		text_braces(v->valuestring, 100, &pats);
	for (i = 0; i < pats.n && !hit; i++)
		hit = text_glob(pats.v[i], path) ||
		    text_glob(pats.v[i], real);
	str_list_clear(&pats);
	return hit;
}

/*
 * Whether a file of this kind may be taken from here.  The user's own may
 * lie anywhere; what a project names must lie in the folder that names it,
 * the start folder or the repository, unless the user approved the imports
 * of this project once (in Claude Code's dialogue).
 */
static bool
memo_is_allowed(struct memo *m, enum memo_kind kind, const char *home,
    const char *real)
{
	const struct conf *c = m->conf;

	if (kind == MEMO_MANAGED || kind == MEMO_USER ||
	    file_inside(c->start_dir, real) || file_inside(home, real) ||
	    (c->git_root && file_inside(c->git_root, real)))
		return true;
	if (m->outside < 0)
		m->outside = conf_state_flag(c,
		    "hasClaudeMdExternalIncludesApproved");
	if (!m->outside)
		log_debug("memo", "'%s' lies outside of the project, not "
		    "read", real);
	return m->outside;
}

/* Length of a run of c at the start. */
static size_t
memo_run(struct slice s, char c)
{
	size_t n = 0;

	while (n < s.n && s.p[n] == c)
		n++;
	return n;
}

/* Whether the line opens or closes a fenced block; *fence is its state. */
static bool
memo_is_fence(struct slice line, char *mark, size_t *len)
{
	size_t indent = memo_run(line, ' '), n;
	char c;

	if (indent > 3 || indent == line.n)
		return false;
	c = line.p[indent];
	line.p += indent;
	line.n -= indent;
	n = memo_run(line, c);
	if ((c != '`' && c != '~') || n < 3)
		return false;
	if (!*mark) {
		if (c == '`' && memchr(line.p + n, '`', line.n - n))
			return false;	/* a code span */
		*mark = c;
		*len = n;
		return true;
	}
	if (c != *mark || n < *len ||
	    !text_is_blank((struct slice){ line.p + n, line.n - n }))
		return false;
	*mark = 0;
	return true;
}

/*
 * Copies Markdown without its block comments (<!-- at the start of a line,
 * outside of fenced code, to -->).  One that is never closed stays.
 */
static void
memo_strip(struct slice text, struct str *out)
{
	struct slice line, rest;
	const char *from, *end;
	char mark = 0;
	size_t len = 0, indent;
	bool open = false;	/* one had no end, so no later one has */

	while (text.n) {
		from = text.p;
		rest = text;
		text_line(&text, &line);
		indent = memo_run(line, ' ');
		if (!memo_is_fence(line, &mark, &len) && !mark && !open &&
		    indent < 4 && line.n - indent >= 4 &&
		    !memcmp(line.p + indent, "<!--", 4)) {
			end = memmem(from + indent + 4, rest.n - indent - 4,
			    "-->", 3);
			if (end) {
				end += 3;
				text.p = end;
				text.n = rest.n - (size_t)(end - from);
				rest = text;
				if (text_line(&rest, &line) &&
				    text_is_blank(line))
					text = rest;
				continue;
			}
			open = true;
		}
		str_add(out, from, (size_t)(text.p - from));
	}
}

/* Takes the path of an import at s (behind the @), `\ ` as a blank. */
static void
memo_path(struct slice s, struct str *path)
{
	size_t i;

	str_reset(path);
	for (i = 0; i < s.n && !text_is_space(s.p[i]); i++) {
		if (s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == ' ')
			i++;
		str_addc(path, s.p[i]);
	}
	str_cut(path, strcspn(path->p, "#"));
}

/* Length of the code span that starts with the run of ` at s. */
static size_t
memo_span(struct slice s)
{
	size_t n = memo_run(s, '`'), k, r;

	/* The bound keeps a line of odd runs from costing its square. */
	for (k = n; k < s.n && k < MEMO_SPAN; k += r ? r : 1) {
		r = memo_run((struct slice){ s.p + k, s.n - k }, '`');
		if (r == n)
			return k + n;
	}
	return n;
}

/* Adds the paths of a line's imports to out; code spans are left out. */
static void
memo_imports(struct slice line, struct strv *out)
{
	struct str path;
	struct slice at;
	size_t i;

	str_init(&path, PATH_MAX - 1);
	for (i = 0; i < line.n && out->n < MEMO_TRIES; i++) {
		at = (struct slice){ line.p + i, line.n - i };
		if (*at.p == '`') {
			i += memo_span(at) - 1;
			continue;
		}
		if (*at.p != '@' || (i && !text_is_space(at.p[-1])))
			continue;
		memo_path((struct slice){ at.p + 1, at.n - 1 }, &path);
		if (path.len && !path.full && (strchr("./~_", path.p[0]) ||
		    isalnum((unsigned char)path.p[0])))
			str_list_adds(out, path.p);
	}
	str_clear(&path);
}

/* Every import of a text, fenced code left out. */
static void
memo_all_imports(struct slice text, struct strv *out)
{
	struct slice line;
	char mark = 0;
	size_t len = 0;

	while (text_line(&text, &line))
		if (!memo_is_fence(line, &mark, &len) && !mark)
			memo_imports(line, out);
}

/* One framed file; nothing where only blanks are left. */
static void
memo_put(struct memo *m, enum memo_kind kind, const char *path,
    struct slice text)
{
	struct str clean;

	if (text_is_blank(text))
		return;
	str_init(&clean, 0);
	text_utf8_fix(text_trim(text), &clean);
	m->full = m->out->len + clean.len > MEMO_ALL;
	if (m->full)
		log_warn("instruction files have more than %u bytes; '%s' and "
		    "what follows is left out", MEMO_ALL, path);
	else
		str_addf(m->out, "Contents of %s (%s):\n\n%s\n\n", path,
		    memo_kinds[kind], clean.p);
	str_clear(&clean);
}

static bool memo_file(struct memo *m, enum memo_kind kind, const char *path,
    const char *home, int hops);	/* recursion */

/* The files that a text imports, each framed like the others. */
static void
memo_follow(struct memo *m, enum memo_kind kind, const char *path,
    const char *home, struct slice text, int hops)
{
	struct strv imports = { 0 };
	const char *user = file_home();
	char *dir = file_dir(path), *full, *s;
	size_t i, n;

	if (hops < MEMO_HOPS)
		memo_all_imports(text, &imports);
	for (i = 0; i < imports.n; i++) {
		s = imports.v[i];
		if (s[0] == '~' && (s[1] != '/' || !user))
			continue;
		full = s[0] == '~' ? file_join(user, s + 2) :
		    file_join(dir, s);
		/* "see @notes.md." ends a sentence, not the name */
		n = strlen(full);
		if (!file_exists(full) && strchr(".,;:!?)", full[n - 1]))
			full[n - 1] = 0;
		memo_file(m, kind, full, home, hops + 1);
		free(full);
	}
	str_list_clear(&imports);
	free(dir);
}

/*
 * One file and what it imports; `home` is the folder that it may lie in.
 * True: it was there, taken or not.  A missing one is no error.
 */
static bool
memo_file(struct memo *m, enum memo_kind kind, const char *path,
    const char *home, int hops)
{
	struct str real, raw, text;
	struct err e = { 0 };
	struct stat st;
	bool there = false;

	str_init(&real, 0);
	str_init(&raw, 0);
	str_init(&text, 0);
	if (m->full || ++m->tries > MEMO_TRIES || stat(path, &st) < 0 ||
	    !S_ISREG(st.st_mode) || file_real("/", path, &real, NULL) < 0)
		goto out;
	there = true;
	if ((kind != MEMO_MANAGED &&
	    memo_is_excluded(m->conf, path, real.p)) ||
	    !memo_is_allowed(m, kind, home, real.p) ||
	    memo_is_seen(m, &st))
		goto out;
	if (file_read(real.p, MEMO_FILE, &raw, &e) < 0) {
		log_warn("instructions left out: %s", e.msg);
		goto out;
	}
	if (memchr(raw.p, 0, raw.len)) {
		log_debug("memo", "'%s' is not text, not read", path);
		goto out;
	}
	memo_strip(str_slice(&raw), &text);
	str_clear(&raw);
	memo_put(m, kind, real.p, str_slice(&text));
	memo_follow(m, kind, real.p, home, str_slice(&text), hops);
out:
	str_clear(&real);
	str_clear(&raw);
	str_clear(&text);
	return there;
}

/* A file by its name in a folder. */
static bool
memo_named(struct memo *m, enum memo_kind kind, const char *dir,
    const char *name)
{
	char *path = file_join(dir, name);
	bool there = memo_file(m, kind, path, dir, 0);

	free(path);
	return there;
}

/*
 * The named files of every folder from the root down to the start folder;
 * true if one was there.  The user's own folder is not a project.
 */
static bool
memo_walk(struct memo *m, const char *const *project, const char *local)
{
	const struct conf *c = m->conf;
	char *dir = core_strdup(c->start_dir);
	const char *const *name;
	size_t i, n = strlen(dir);
	bool any = false;
	char kept;

	for (i = 1; i <= n; i++) {
		if (i > 1 && i < n && dir[i] != '/')
			continue;
		kept = dir[i];
		dir[i] = 0;
		for (name = project; *name; name++)
			if ((c->sources & CONF_PROJECT) &&
			    !(str_starts(*name, ".claude/") &&
			    conf_is_own_dir(c, dir)))
				any |= memo_named(m, MEMO_PROJECT, dir, *name);
		if (local && (c->sources & CONF_LOCAL))
			any |= memo_named(m, MEMO_LOCAL, dir, local);
		dir[i] = kept;
	}
	free(dir);
	return any;
}

/*
 * Appends the framed text of all instruction files, in order of growing
 * weight, or nothing.  managed_only: for agents that ask for none, which
 * still get the administrator's.
 */
static void
memo_load(const struct conf *c, bool managed_only, struct str *out)
{
	static const char *const claude[] = { "CLAUDE.md",
	    ".claude/CLAUDE.md", NULL };
	static const char *const agents[] = { "AGENTS.md",
	    ".claude/AGENTS.md", NULL };
	struct memo m = { .conf = c, .outside = -1 };
	const char *text = conf_text(c, "claudeMd");
	struct str all;

	if (c->bare || conf_env_on("CLAUDE_CODE_DISABLE_CLAUDE_MDS"))
		return;
	str_init(&all, 0);
	m.out = &all;
	memo_named(&m, MEMO_MANAGED, c->managed_dir, "CLAUDE.md");
	if (text)
		memo_put(&m, MEMO_MANAGED, conf_origin(c, "claudeMd"),
		    str_of(text));
	if (!managed_only && c->config_dir && (c->sources & CONF_USER))
		memo_named(&m, MEMO_USER, c->config_dir, "CLAUDE.md");
	/* AGENTS.md counts only where no project has a CLAUDE.md at all. */
	if (!managed_only && !memo_walk(&m, claude, "CLAUDE.local.md"))
		memo_walk(&m, agents, NULL);
	if (m.tries > MEMO_TRIES)
		log_warn("more than %d instruction files and imports; the "
		    "rest is left out", MEMO_TRIES);
	if (all.len) {
		str_adds(out, "Instruction files for this place follow. Keep "
		    "to them where they bear on the task; where two differ, "
		    "the later one counts.\n\n");
		str_addl(out, text_trim(str_slice(&all)));
		str_addc(out, '\n');
	}
	str_clear(&all);
	free(m.seen);
}
/*=== [msg] the conversation as frozen bytes; marks; pairs ===================
 * uses: core str err text json
 *
 * A message is kept as the exact JSON text that is sent; what was sent once
 * is never rendered again.  Beside the bytes stand the places of the blocks,
 * so that cache marks are added while writing and are no part of what is
 * kept.  Work per turn goes with the new bytes, not with the history.
 *==========================================================================*/

enum msg_kind {
	MSG_TEXT,
	MSG_IMAGE,
	MSG_TOOL_USE,
	MSG_TOOL_RESULT,
	MSG_THINKING,		/* and redacted_thinking: never marked */
	MSG_OTHER
};

struct msg_block {
	size_t off;		/* in conv.bytes */
	size_t len;
	enum msg_kind kind;
	uint64_t id;		/* hash of a tool_use's id; 0: none */
};

struct msg_item {
	bool assistant;
	size_t off;		/* in conv.bytes, of the comma before it */
	size_t block;		/* index of its first block */
	size_t nblocks;
};

#define MSG_NO_BLOCK SIZE_MAX

struct conv {
	struct str bytes;	/* messages joined by commas */
	struct msg_block *blocks;
	size_t nblocks, cap_blocks;
	struct msg_item *items;
	size_t nitems, cap_items;
	size_t checked;		/* items whose pairs were found right */
	size_t mark_fork;	/* block with the fork point's mark */
	size_t mark_last;	/* block that carried the moving mark */
};

static struct conv *
msg_new(void)
{
	struct conv *c = core_zalloc(sizeof(*c));

	str_init(&c->bytes, 0);
	c->mark_fork = c->mark_last = MSG_NO_BLOCK;
	return c;
}

static void
msg_free(struct conv *c)
{
	if (!c)
		return;
	str_clear(&c->bytes);
	free(c->blocks);
	free(c->items);
	free(c);
}

/* Adds `,` between blocks that are collected in one str. */
static void
msg_comma(struct str *blocks)
{
	if (blocks->len)
		str_addc(blocks, ',');
}

/* A text block; blank text is left out, since the API refuses it. */
static void
msg_put_text(struct str *blocks, struct slice text)
{
	if (text_is_blank(text))
		return;
	msg_comma(blocks);
	str_adds(blocks, "{\"type\":\"text\",\"text\":");
	json_put(blocks, text);
	str_addc(blocks, '}');
}

/*
 * A tool_result block.  raw, if not empty, holds comma-joined content blocks
 * and goes in as it is; else text does, or a note where that is blank.
 */
static void
msg_put_result(struct str *blocks, struct slice id, struct slice text,
    struct slice raw, bool is_error)
{
	msg_comma(blocks);
	str_adds(blocks, "{\"type\":\"tool_result\",\"tool_use_id\":\"");
	str_addl(blocks, id);
	str_adds(blocks, "\",\"content\":");
	if (raw.n) {
		str_addc(blocks, '[');
		str_addl(blocks, raw);
		str_addc(blocks, ']');
	} else {
		json_put(blocks, text_is_blank(text) ?
		    str_of("(no output)") : text);
	}
	str_adds(blocks, is_error ? ",\"is_error\":true}" : "}");
}

static enum msg_kind
msg_kind_of(struct slice raw)
{
	static const struct {
		const char *type;
		enum msg_kind kind;
	} kinds[] = {
		{ "text", MSG_TEXT },
		{ "image", MSG_IMAGE },
		{ "document", MSG_IMAGE },
		{ "tool_use", MSG_TOOL_USE },
		{ "tool_result", MSG_TOOL_RESULT },
		{ "thinking", MSG_THINKING },
		{ "redacted_thinking", MSG_THINKING },
	};
	struct slice type;
	size_t i;

	if (json_raw_string(raw, "type", &type))
		for (i = 0; i < LENGTH(kinds); i++)
			if (str_eq(type, kinds[i].type))
				return kinds[i].kind;
	return MSG_OTHER;
}

/* The id that pairs a tool_use with its result, still escaped. */
static bool
msg_id(struct slice raw, enum msg_kind kind, struct slice *id)
{
	return (kind == MSG_TOOL_USE && json_raw_string(raw, "id", id)) ||
	    (kind == MSG_TOOL_RESULT &&
	    json_raw_string(raw, "tool_use_id", id));
}

static struct slice
msg_raw(const struct conv *c, size_t block)
{
	return (struct slice){ c->bytes.p + c->blocks[block].off,
	    c->blocks[block].len };
}

/*
 * Appends one message whose content is the comma-joined blocks (checked
 * JSON objects, at least one).
 */
static void
msg_append(struct conv *c, bool assistant, struct slice blocks)
{
	struct json_iter it;
	struct msg_block *b;
	struct msg_item *item;
	struct slice id;
	size_t off = c->bytes.len, from;

	if (c->nitems)
		str_addc(&c->bytes, ',');
	str_adds(&c->bytes, assistant ?
	    "{\"role\":\"assistant\",\"content\":[" :
	    "{\"role\":\"user\",\"content\":[");
	from = c->bytes.len;
	str_addl(&c->bytes, blocks);
	str_adds(&c->bytes, "]}");
	if (c->bytes.full)
		core_die("the conversation is larger than %zu bytes",
		    c->bytes.max);

	c->items = core_grow(c->items, c->nitems, &c->cap_items,
	    sizeof(*c->items));
	item = &c->items[c->nitems++];
	*item = (struct msg_item){ assistant, off, c->nblocks, 0 };
	/* The bracket in front makes it an array to walk. */
	if (!json_iter_init(&it, (struct slice){ c->bytes.p + from - 1,
	    blocks.n + 2 }))
		BUG("message content");
	while (json_iter_next(&it)) {
		c->blocks = core_grow(c->blocks, c->nblocks, &c->cap_blocks,
		    sizeof(*c->blocks));
		b = &c->blocks[c->nblocks++];
		b->off = (size_t)(it.value.p - c->bytes.p);
		b->len = it.value.n;
		b->kind = msg_kind_of(it.value);
		b->id = msg_id(it.value, b->kind, &id) ?
		    core_hash(id.p, id.n, 0) : 0;
		item->nblocks++;
	}
	if (!item->nblocks)
		BUG("message without content");
}

/* Whether the content of a tool_result is a list with more than text. */
static bool
msg_has_image(struct slice result)
{
	struct json_iter it;
	struct slice content;

	if (!json_raw(result, "content", &content) ||
	    !json_iter_init(&it, content) || it.object)
		return false;
	while (json_iter_next(&it))
		if (msg_kind_of(it.value) == MSG_IMAGE)
			return true;
	return false;
}

/*
 * Puts a note in the place of each picture of the last message, which the
 * API has refused: nothing that was taken changes.  false: it has none.
 */
static bool
msg_drop_images(struct conv *c)
{
	struct slice note = str_of("[The API refused this file; it was taken "
	    "out of the conversation.]"), id, raw;
	struct msg_item item;
	struct str blocks;
	bool found = false;
	size_t i;

	if (!c->nitems)
		return false;
	item = c->items[c->nitems - 1];
	str_init(&blocks, 0);
	for (i = item.block; i < item.block + item.nblocks; i++) {
		raw = msg_raw(c, i);
		if (c->blocks[i].kind == MSG_IMAGE) {
			msg_put_text(&blocks, note);
			found = true;
		} else if (msg_has_image(raw) &&
		    msg_id(raw, c->blocks[i].kind, &id)) {
			msg_put_result(&blocks, id, note,
			    (struct slice){ "", 0 }, true);
			found = true;
		} else {
			msg_comma(&blocks);
			str_addl(&blocks, raw);
		}
	}
	if (found) {
		c->nitems--;
		c->nblocks = item.block;
		str_cut(&c->bytes, item.off);
		msg_append(c, item.assistant, str_slice(&blocks));
	}
	str_clear(&blocks);
	return found;
}

/* Whether item i answers each tool_use of the item before it, and first. */
static bool
msg_answers(const struct conv *c, size_t i)
{
	const struct msg_item *use = &c->items[i - 1], *res = NULL;
	const struct msg_block *b = c->blocks;
	size_t k, j, uses = 0, found;

	if (i < c->nitems && !c->items[i].assistant)
		res = &c->items[i];
	for (k = 0; k < use->nblocks; k++) {
		if (b[use->block + k].kind != MSG_TOOL_USE)
			continue;
		uses++;
		for (j = found = 0; res && j < res->nblocks; j++)
			found += b[res->block + j].kind == MSG_TOOL_RESULT &&
			    b[res->block + j].id == b[use->block + k].id;
		if (found != 1)
			return false;
	}
	/* No result for anything else, and none behind another block. */
	for (j = 0; res && j < res->nblocks; j++)
		if ((b[res->block + j].kind == MSG_TOOL_RESULT) != (j < uses))
			return false;
	return true;
}

/*
 * Before each request: every tool_use has its one result, first in the next
 * message, and the last message is the user's (or the assistant's, where a
 * paused turn goes on).  Only what is new is looked at.  A fault here would
 * be refused by the API for ever.
 */
static int
msg_check(struct conv *c, bool paused, struct err *e)
{
	size_t i;

	for (i = c->checked; i < c->nitems; i++) {
		if (c->items[i].assistant && i + 1 < c->nitems &&
		    !msg_answers(c, i + 1))
			return err_set(e, ERR_PARSE,
			    "message %zu does not answer the tool calls "
			    "before it", i + 1);
		if (!c->items[i].assistant && !i &&
		    c->blocks[c->items[i].block].kind == MSG_TOOL_RESULT)
			return err_set(e, ERR_PARSE,
			    "the conversation starts with a tool result");
	}
	if (!c->nitems || (c->items[c->nitems - 1].assistant && !paused))
		return err_set(e, ERR_PARSE,
		    "the last message is not the user's");
	c->checked = c->nitems - 1;
	return 0;
}

/* The last block that may carry a mark, before block `end`. */
static size_t
msg_markable(const struct conv *c, size_t end)
{
	while (end-- > 0)
		if (c->blocks[end].kind != MSG_THINKING &&
		    c->blocks[end].kind != MSG_OTHER)
			return end;
	return MSG_NO_BLOCK;
}

/* Pieces of a request's messages: bytes, mark, bytes, mark, bytes. */
#define MSG_PIECES 7

/*
 * Fills p with what to write for the messages, with `mark` (a JSON member
 * with its comma in front, or empty) in the fork point, the block of the
 * previous moving mark, and the last block; returns how many pieces.  The
 * caller calls msg_sent() once the API took it.
 */
static size_t
msg_pieces(const struct conv *c, struct slice mark,
    struct slice p[MSG_PIECES])
{
	size_t at[3] = { c->mark_fork, c->mark_last,
	    msg_markable(c, c->nblocks) };
	size_t from = 0, to, n = 0, i;

	for (i = 0; i < LENGTH(at) && mark.n; i++) {
		if (at[i] == MSG_NO_BLOCK ||
		    (i && at[i - 1] != MSG_NO_BLOCK && at[i] <= at[i - 1]))
			continue;
		/* In front of the block's closing brace. */
		to = c->blocks[at[i]].off + c->blocks[at[i]].len - 1;
		if (to < from)
			continue;
		p[n++] = (struct slice){ c->bytes.p + from, to - from };
		p[n++] = mark;
		from = to;
	}
	p[n++] = (struct slice){ c->bytes.p + from, c->bytes.len - from };
	return n;
}

/* The request went through: its moving mark is now the previous one. */
static void
msg_sent(struct conv *c)
{
	c->mark_last = msg_markable(c, c->nblocks);
}

/*
 * What message i is made of, to compare conversations: "user: text",
 * "assistant: thinking, tool_use Bash toolu_1".
 */
static void
msg_shape(const struct conv *c, size_t i, struct str *out)
{
	const struct msg_item *item = &c->items[i];
	struct slice raw, s;
	size_t k;

	str_adds(out, item->assistant ? "assistant:" : "user:");
	for (k = 0; k < item->nblocks; k++) {
		raw = msg_raw(c, item->block + k);
		str_adds(out, k ? ", " : " ");
		if (json_raw_string(raw, "type", &s))
			str_addl(out, s);
		if (c->blocks[item->block + k].kind == MSG_TOOL_USE &&
		    json_raw_string(raw, "name", &s)) {
			str_addc(out, ' ');
			str_addl(out, s);
		}
		if (msg_id(raw, c->blocks[item->block + k].kind, &s)) {
			str_addc(out, ' ');
			str_addl(out, s);
		}
	}
}

/*=== [api] request out, stream in, retry, fall back, count ==================
 * uses: core str err log text json io file proc http sse conf model msg
 *
 * One call of api_turn() is one answer of the model: the frozen conversation
 * goes out, events come in, and only a message that ended with message_stop
 * counts.  What broke on the way is thrown away and the same bytes are sent
 * again; none of its tools ever run.  Facts: Messages API, November 2026.
 *==========================================================================*/

#define API_BLOCKS 4096		/* content blocks of one answer */
#define API_RETRIES 10		/* as Claude Code; at most 15 */
#define API_RETRY_BASE 500	/* ms, doubled each time */
#define API_RETRY_CAP 60000	/* ms between two attempts */
#define API_IDLE 120000		/* ms without a byte; pings keep it alive */
#define API_HEAD 600000		/* ms to the response head */
#define API_OVERLOADED 3	/* 529 answers before the fallback model */
#define API_CONNECT 10000	/* ms: look-up, connection, handshake each */
#define API_HELPER_TTL 300000	/* ms that a helper's key is used */

/* One tool call of an answer.  Owned strings. */
struct api_call {
	char *id;		/* as it came, escapes and all */
	char *name;
	char *input;		/* raw JSON object */
	bool broken;		/* the input was no JSON object */
};

/* One finished answer. */
struct api_msg {
	struct str id, model;
	struct str blocks;	/* raw, comma-joined: what goes back */
	struct str text;	/* of its text blocks, decoded */
	char stop_reason[40];	/* "" where the server sent none */
	char refusal[256];	/* explanation of a refusal */
	struct api_call *calls;
	size_t ncalls, cap_calls;
	struct usage usage;
	bool cut;		/* ends within a tool call */
	bool thinks;		/* has thinking blocks */
};

/* Why a request failed, beside the struct err. */
struct api_fail {
	int status;		/* HTTP; 0: no answer */
	char type[64];		/* "overloaded_error", … */
	int should_retry;	/* x-should-retry: 1, 0, -1 not said */
	int64_t after;		/* ms asked for, -1 not said */
};

struct api {
	struct http *http;
	char *url;
	struct strv headers;	/* all but the credentials */
	char *key, *token;	/* x-api-key, Authorization: Bearer */
	const char *helper;	/* shell command that prints a key */
	int64_t helper_at;	/* when it was run */
	bool caching;
	const char *mark;	/* the cache mark as a member */
	int max_retries;
	int64_t retry_base, idle_ms, head_ms;
	struct api_fail fail;
	const char *fallback;	/* what is left of the list */
	int overloaded;		/* 529 in a row */
	int record;		/* file, -1 */
	bool recording;
	struct str body;	/* raw response, while recording */
	struct strv replay;	/* lines; used if replaying */
	bool replaying;
	size_t exchange;	/* how many are done */
};

/* A block while it streams. */
struct api_block {
	int64_t index;
	struct str start;	/* raw content_block */
	struct str text;	/* text or thinking, inside of a string */
	struct str signature;	/* likewise */
	struct str input;	/* tool input, inside of a string */
	struct str citations;	/* raw, comma-joined */
	bool delta;		/* something came after the start */
};

struct api_stream {
	struct api_msg *m;
	struct api_block *b;
	size_t nb, cap;
	bool started, stopped, failed;
	struct api_fail *fail;
	struct run *r;
};

static void
api_msg_init(struct api_msg *m)
{
	memset(m, 0, sizeof(*m));
	str_init(&m->id, 256);
	str_init(&m->model, 256);
	str_init(&m->blocks, LIM_RESPONSE);
	str_init(&m->text, LIM_RESPONSE);
}

static void
api_msg_clear(struct api_msg *m)
{
	size_t i;

	for (i = 0; i < m->ncalls; i++) {
		free(m->calls[i].id);
		free(m->calls[i].name);
		free(m->calls[i].input);
	}
	free(m->calls);
	str_clear(&m->id);
	str_clear(&m->model);
	str_clear(&m->blocks);
	str_clear(&m->text);
	memset(m, 0, sizeof(*m));
}

/* Copies a JSON string's text into a fixed buffer, cut where it must be. */
static void
api_copy(char *dst, size_t size, struct slice object, const char *key)
{
	struct slice in;
	struct str s;

	if (!json_raw_string(object, key, &in))
		return;
	str_init(&s, 0);
	json_unescape(in, &s);
	str_cut(&s, text_cut(str_slice(&s), size - 1));
	memcpy(dst, s.p, s.len);
	dst[s.len] = 0;
	str_clear(&s);
}

/* A member that is a whole number; false: absent, null or something else. */
static bool
api_count(struct slice object, const char *key, int64_t *out)
{
	struct slice v;

	return json_raw(object, key, &v) &&
	    text_int(v, 0, INT64_MAX / 2, out);
}

/* Usage numbers are cumulative: what is there overwrites. */
static void
api_usage(struct slice raw, struct usage *u)
{
	struct slice sub;

	api_count(raw, "input_tokens", &u->input);
	api_count(raw, "output_tokens", &u->output);
	api_count(raw, "cache_read_input_tokens", &u->cache_read);
	api_count(raw, "cache_creation_input_tokens", &u->cache_write);
	if (json_raw(raw, "cache_creation", &sub)) {
		api_count(sub, "ephemeral_5m_input_tokens",
		    &u->cache_write_5m);
		api_count(sub, "ephemeral_1h_input_tokens",
		    &u->cache_write_1h);
	}
	if (json_raw(raw, "output_tokens_details", &sub))
		api_count(sub, "thinking_tokens", &u->thinking);
	if (json_raw(raw, "server_tool_use", &sub)) {
		api_count(sub, "web_search_requests", &u->web_search);
		api_count(sub, "web_fetch_requests", &u->web_fetch);
	}
}

/* Adds one request's numbers to a sum. */
static void
api_usage_add(struct usage *sum, const struct usage *u)
{
	sum->input += u->input;
	sum->output += u->output;
	sum->cache_read += u->cache_read;
	sum->cache_write += u->cache_write;
	sum->cache_write_5m += u->cache_write_5m;
	sum->cache_write_1h += u->cache_write_1h;
	sum->thinking += u->thinking;
	sum->web_search += u->web_search;
	sum->web_fetch += u->web_fetch;
}

static void
api_block_clear(struct api_block *b)
{
	str_clear(&b->start);
	str_clear(&b->text);
	str_clear(&b->signature);
	str_clear(&b->input);
	str_clear(&b->citations);
}

static void
api_stream_clear(struct api_stream *s)
{
	size_t i;

	for (i = 0; i < s->nb; i++)
		api_block_clear(&s->b[i]);
	free(s->b);
}

static int
api_too_large(struct err *e)
{
	return err_set(e, ERR_LIMIT, "the answer is larger than %u bytes",
	    LIM_RESPONSE);
}

/* A new block; its raw start is kept, since it may be of an unknown type. */
static int
api_block_start(struct api_stream *s, int64_t index, struct slice raw,
    struct err *e)
{
	struct api_block *b;

	if (s->nb == API_BLOCKS)
		return err_set(e, ERR_NET, "the answer has over %d blocks",
		    API_BLOCKS);
	s->b = core_grow(s->b, s->nb, &s->cap, sizeof(*s->b));
	b = &s->b[s->nb++];
	memset(b, 0, sizeof(*b));
	b->index = index;
	str_init(&b->start, LIM_RESPONSE);
	str_init(&b->text, LIM_RESPONSE);
	str_init(&b->signature, LIM_RESPONSE);
	str_init(&b->input, LIM_RESPONSE);
	str_init(&b->citations, LIM_RESPONSE);
	json_fix(raw, &b->start);
	return b->start.full ? api_too_large(e) : 0;
}

/*
 * Where the text of a delta goes; one row per delta type.  Kept as the raw
 * inside of a JSON string: a surrogate pair may be cut between two deltas.
 */
static const struct {
	const char *type, *key;
	size_t field;		/* a struct str of struct api_block */
} api_deltas[] = {
	{ "text_delta", "text", offsetof(struct api_block, text) },
	{ "thinking_delta", "thinking", offsetof(struct api_block, text) },
	{ "signature_delta", "signature",
	    offsetof(struct api_block, signature) },
	{ "input_json_delta", "partial_json",
	    offsetof(struct api_block, input) },
};

static int
api_delta(struct api_block *b, struct slice delta, struct err *e)
{
	struct slice type, in;
	struct str *field;
	size_t i;

	if (!json_raw_string(delta, "type", &type))
		return 0;
	for (i = 0; i < LENGTH(api_deltas); i++) {
		if (!str_eq(type, api_deltas[i].type) ||
		    !json_raw_string(delta, api_deltas[i].key, &in))
			continue;
		field = (struct str *)(void *)((char *)b +
		    api_deltas[i].field);
		str_addl(field, in);
		b->delta |= in.n > 0;
		return field->full ? api_too_large(e) : 0;
	}
	if (str_eq(type, "citations_delta") &&
	    json_raw(delta, "citation", &in)) {
		msg_comma(&b->citations);
		json_fix(in, &b->citations);
	}
	return b->citations.full ? api_too_large(e) : 0;
}

/* The block of that index; servers that leave it out mean the last one. */
static struct api_block *
api_block_find(struct api_stream *s, struct slice data)
{
	int64_t index;
	size_t i;

	if (!api_count(data, "index", &index))
		return s->nb ? &s->b[s->nb - 1] : NULL;
	for (i = s->nb; i-- > 0;)
		if (s->b[i].index == index)
			return &s->b[i];
	return NULL;
}

static int
api_on_start(struct api_stream *s, struct slice data, struct err *e)
{
	struct slice msg, v;

	(void)e;
	s->started = true;
	if (!s->r->answered_ms)
		s->r->answered_ms = core_now();
	if (!json_raw(data, "message", &msg))
		return 0;
	if (json_raw_string(msg, "id", &v))
		json_unescape(v, &s->m->id);
	if (json_raw_string(msg, "model", &v))
		json_unescape(v, &s->m->model);
	if (json_raw(msg, "usage", &v))
		api_usage(v, &s->m->usage);
	return 0;
}

static int
api_on_block(struct api_stream *s, struct slice data, struct err *e)
{
	int64_t index = (int64_t)s->nb;
	struct slice raw;

	api_count(data, "index", &index);
	if (!json_raw(data, "content_block", &raw) || raw.p[0] != '{')
		return err_set(e, ERR_NET, "a content block without content");
	return api_block_start(s, index, raw, e);
}

static int
api_on_delta(struct api_stream *s, struct slice data, struct err *e)
{
	struct api_block *b = api_block_find(s, data);
	struct slice delta;

	if (!b)
		return err_set(e, ERR_NET, "a delta for an unknown block");
	if (!s->r->streamed_ms)
		s->r->streamed_ms = core_now();
	return json_raw(data, "delta", &delta) ? api_delta(b, delta, e) : 0;
}

static int
api_on_message_delta(struct api_stream *s, struct slice data, struct err *e)
{
	struct slice v, details;

	(void)e;
	if (json_raw(data, "delta", &v)) {
		api_copy(s->m->stop_reason, sizeof(s->m->stop_reason), v,
		    "stop_reason");
		if (json_raw(v, "stop_details", &details))
			api_copy(s->m->refusal, sizeof(s->m->refusal),
			    details, "explanation");
	}
	if (json_raw(data, "usage", &v))
		api_usage(v, &s->m->usage);
	return 0;
}

static int
api_on_stop(struct api_stream *s, struct slice data, struct err *e)
{
	(void)data;
	(void)e;
	s->stopped = true;
	return 0;
}

/* Takes type and message out of an error object into fail and e. */
static int
api_error(struct slice data, struct api_fail *f, const char *what,
    struct err *e)
{
	char text[LIM_MSG - 128] = "";
	struct slice error;

	/* {"error":{…}} with or without the outer type; or a bare text */
	if (json_raw(data, "error", &error) && error.p[0] == '{') {
		api_copy(f->type, sizeof(f->type), error, "type");
		api_copy(text, sizeof(text), error, "message");
	} else {
		api_copy(text, sizeof(text), data, "error");
		if (!*text)
			api_copy(text, sizeof(text), data, "message");
	}
	return err_set(e, ERR_API, "%s%s%s%s%s", what, *f->type ? " " : "",
	    f->type, *text ? ": " : "", text);
}

static int
api_on_error(struct api_stream *s, struct slice data, struct err *e)
{
	s->failed = true;
	return api_error(data, s->fail, "the stream ended with an error:", e);
}

/* Events by the type in their data (some servers leave the name out). */
static const struct {
	const char *type;
	int (*take)(struct api_stream *s, struct slice data, struct err *e);
} api_events[] = {
	{ "message_start", api_on_start },
	{ "content_block_start", api_on_block },
	{ "content_block_delta", api_on_delta },
	{ "message_delta", api_on_message_delta },
	{ "message_stop", api_on_stop },
	{ "error", api_on_error },
};

static int
api_event(void *arg, struct slice name, struct slice data, struct err *e)
{
	struct api_stream *s = arg;
	struct slice type;
	size_t i;

	data = text_trim(data);
	if (!data.n || str_eq(data, "[DONE]") || s->stopped)
		return 0;
	if (json_check(data, NULL) < 0)
		return err_set(e, ERR_NET, "an event of the stream is not "
		    "valid JSON");
	if (!json_raw_string(data, "type", &type))
		type = name;
	for (i = 0; i < LENGTH(api_events); i++)
		if (str_eq(type, api_events[i].type))
			return api_events[i].take(s, data, e);
	return 0;	/* ping, and what is not known yet */
}

/* One member of a block that is not written as it started. */
struct api_member {
	const char *key;
	const struct str *raw;	/* NULL: as it started */
};

/*
 * The block's JSON: the members of its start in their order, those of `set`
 * replaced, missing ones added.
 */
static void
api_render(struct slice start, const struct api_member *set, size_t nset,
    struct str *out)
{
	struct json_iter it;
	unsigned done = 0;
	size_t i;

	msg_comma(out);
	str_addc(out, '{');
	json_iter_init(&it, start);
	while (json_iter_next(&it)) {
		for (i = 0; i < nset; i++)
			if (set[i].raw && str_eq(it.key, set[i].key))
				break;
		if (out->p[out->len - 1] != '{')
			str_addc(out, ',');
		str_addc(out, '"');
		str_addl(out, it.key);
		str_adds(out, "\":");
		if (i < nset) {
			str_addl(out, str_slice(set[i].raw));
			done |= 1u << i;
		} else {
			str_addl(out, it.value);
		}
	}
	for (i = 0; i < nset; i++)
		if (set[i].raw && !(done >> i & 1))
			json_put_raw(out, set[i].key, str_slice(set[i].raw));
	str_addc(out, '}');
}

/* `"` + what the start had + what the deltas brought + `"`. */
static void
api_string(struct slice start, const char *key, const struct str *deltas,
    struct str *out)
{
	struct str all;
	struct slice in;

	str_init(&all, 0);
	if (json_raw_string(start, key, &in))
		str_addl(&all, in);
	str_addl(&all, str_slice(deltas));
	str_reset(out);
	str_addc(out, '"');
	json_fix(str_slice(&all), out);
	str_addc(out, '"');
	str_clear(&all);
}

/* Text: rendered unless blank; its decoded text is added to the answer's. */
static void
api_end_text(struct api_stream *s, struct api_block *b)
{
	struct slice start = str_slice(&b->start);
	struct str text, cites, plain;
	struct api_member set[2] = { { "text", &text }, { "citations", NULL } };

	str_init(&text, 0);
	str_init(&cites, 0);
	str_init(&plain, 0);
	api_string(start, "text", &b->text, &text);
	json_unescape((struct slice){ text.p + 1, text.len - 2 }, &plain);
	if (b->citations.len) {
		str_addc(&cites, '[');
		str_addl(&cites, str_slice(&b->citations));
		str_addc(&cites, ']');
		set[1].raw = &cites;
	}
	if (!text_is_blank(str_slice(&plain))) {
		api_render(start, set, 2, &s->m->blocks);
		str_addl(&s->m->text, str_slice(&plain));
	}
	str_clear(&text);
	str_clear(&cites);
	str_clear(&plain);
}

static void
api_end_thinking(struct api_stream *s, struct api_block *b)
{
	struct str text, sign;
	struct api_member set[2] = { { "thinking", &text },
	    { "signature", &sign } };
	struct slice type;

	s->m->thinks = true;
	str_init(&text, 0);
	str_init(&sign, 0);
	api_string(str_slice(&b->start), "thinking", &b->text, &text);
	/* A signature is set, not appended to. */
	str_addc(&sign, '"');
	str_addl(&sign, str_slice(&b->signature));
	str_addc(&sign, '"');
	if (!b->signature.len)
		set[1].raw = NULL;
	/* redacted_thinking has neither: it goes back as it came */
	if (json_raw_string(str_slice(&b->start), "type", &type) &&
	    str_eq(type, "thinking"))
		api_render(str_slice(&b->start), set, 2, &s->m->blocks);
	else
		api_render(str_slice(&b->start), NULL, 0, &s->m->blocks);
	str_clear(&text);
	str_clear(&sign);
}

/* Letters, digits, _ and -: what the API takes back as id or name. */
static bool
api_is_name(struct slice s)
{
	size_t i;

	for (i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '_' &&
		    s.p[i] != '-')
			return false;
	return s.n > 0 && s.n <= 200;
}

/* Notes a call of one of our tools; its id must tell it from the others. */
static int
api_call_add(struct api_stream *s, struct slice start, const struct str *input,
    bool broken, struct err *e)
{
	struct api_call *call;
	struct slice id, name;
	bool good = json_raw_string(start, "id", &id) && api_is_name(id) &&
	    json_raw_string(start, "name", &name) && api_is_name(name);
	size_t i;

	for (i = 0; good && i < s->m->ncalls; i++)
		good = !str_eq(id, s->m->calls[i].id);
	if (!good)
		return err_set(e, ERR_NET,
		    "a tool call without an id or name of its own");
	s->m->calls = core_grow(s->m->calls, s->m->ncalls,
	    &s->m->cap_calls, sizeof(*call));
	call = &s->m->calls[s->m->ncalls++];
	call->id = core_memdup(id.p, id.n);
	call->name = core_memdup(name.p, name.n);
	call->input = core_memdup(input->p, input->len);
	call->broken = broken;
	return 0;
}

/*
 * The input of a call: what the deltas brought, else what the start had.
 * Input that is no JSON object is kept inside one, so that it can be sent
 * back and answered; true then.
 */
static bool
api_input(struct api_block *b, struct str *input)
{
	struct str text;
	struct slice raw;
	bool broken;

	if (!b->delta) {
		if (json_raw(str_slice(&b->start), "input", &raw))
			str_addl(input, raw);
		else
			str_adds(input, "{}");
		return input->p[0] != '{';
	}
	str_init(&text, 0);
	json_unescape(str_slice(&b->input), &text);
	json_fix(text_trim(str_slice(&text)), input);
	if (!input->len)
		str_adds(input, "{}");
	broken = json_check(str_slice(input), NULL) < 0 ||
	    input->p[0] != '{';
	if (broken) {
		str_reset(input);
		str_adds(input, "{\"unparsed_input\":");
		json_put(input, str_slice(&text));
		str_addc(input, '}');
	}
	str_clear(&text);
	return broken;
}

/* A call, of our tools or (ours false) of the server's. */
static int
api_end_tool(struct api_stream *s, struct api_block *b, bool ours,
    struct err *e)
{
	struct slice start = str_slice(&b->start);
	struct str input;
	struct api_member set = { "input", &input };
	bool broken;
	int ret;

	str_init(&input, 0);
	broken = api_input(b, &input);
	ret = ours ? api_call_add(s, start, &input, broken, e) : 0;
	api_render(start, &set, 1, &s->m->blocks);
	str_clear(&input);
	return ret;
}

/* The stream is complete: renders the blocks in their order. */
static int
api_finish(struct api_stream *s, struct err *e)
{
	struct api_block *b;
	struct slice type;
	size_t i;

	for (i = 0; i < s->nb; i++) {
		b = &s->b[i];
		if (!json_raw_string(str_slice(&b->start), "type", &type))
			return err_set(e, ERR_NET, "a block without a type");
		if (str_eq(type, "text"))
			api_end_text(s, b);
		else if (str_eq(type, "thinking") ||
		    str_eq(type, "redacted_thinking"))
			api_end_thinking(s, b);
		else if (str_eq(type, "tool_use") ||
		    str_eq(type, "server_tool_use") ||
		    str_eq(type, "mcp_tool_use")) {
			if (api_end_tool(s, b, str_eq(type, "tool_use"),
			    e) < 0)
				return -1;
		} else
			api_render(str_slice(&b->start), NULL, 0,
			    &s->m->blocks);
	}
	/* Cut by a limit within the last block, which is a call. */
	s->m->cut = (!strcmp(s->m->stop_reason, "max_tokens") ||
	    !strcmp(s->m->stop_reason, "model_context_window_exceeded")) &&
	    s->nb && json_raw_string(str_slice(&s->b[s->nb - 1].start),
	    "type", &type) && str_eq(type, "tool_use");
	return s->m->blocks.full || s->m->text.full ? api_too_large(e) : 0;
}

/* An answer that came as one JSON object, not as a stream. */
static int
api_whole(struct api_stream *s, struct slice body, struct err *e)
{
	struct json_iter it;
	struct str shown;
	struct slice v;

	body = text_trim(body);
	if (json_check(body, NULL) < 0 || !json_raw(body, "content", &v) ||
	    !json_iter_init(&it, v)) {
		str_init(&shown, 0);
		text_utf8_fix((struct slice){ body.p, text_cut(body, 200) },
		    &shown);
		err_set(e, ERR_NET, "the answer is neither a stream nor a "
		    "message: %s", shown.p);
		str_clear(&shown);
		return -1;
	}
	while (json_iter_next(&it))
		if (api_block_start(s, (int64_t)s->nb, it.value, e) < 0)
			return -1;
	if (json_raw_string(body, "id", &v))
		json_unescape(v, &s->m->id);
	if (json_raw_string(body, "model", &v))
		json_unescape(v, &s->m->model);
	if (json_raw(body, "usage", &v))
		api_usage(v, &s->m->usage);
	api_copy(s->m->stop_reason, sizeof(s->m->stop_reason), body,
	    "stop_reason");
	s->stopped = true;
	return 0;
}

/* Runs the key helper; its output is registered as a secret. */
static int
api_helper(struct run *r, struct err *e)
{
	struct api *a = r->api;
	char *sh = proc_find("sh");
	const char *argv[] = { sh, "-c", a->helper, NULL };
	struct proc_job job = { .argv = argv, .keep = 65536,
	    .timeout = 60000, .split_err = true };
	struct proc_result res;
	struct slice key;
	char how[48];
	int ret = -1;

	if (!sh)
		return err_set(e, ERR_API, "apiKeyHelper needs a shell, and "
		    "there is none on PATH");
	proc_result_init(&res);
	if (proc_run(&job, &res, e) < 0)
		goto out;
	key = text_trim(str_slice(&res.out));
	proc_how(res.status, how);
	if (res.aborted)
		err_set(e, ERR_ABORT, "apiKeyHelper was stopped");
	else if (res.timed_out)
		err_set(e, ERR_API, "apiKeyHelper did not end in 60 s");
	else if (res.status)
		err_set(e, ERR_API, "apiKeyHelper failed (%s)", how);
	else if (!key.n || memchr(key.p, '\n', key.n))
		err_set(e, ERR_API, "apiKeyHelper printed no single key");
	else {
		free(a->key);
		free(a->token);
		a->key = core_memdup(key.p, key.n);
		a->token = core_memdup(key.p, key.n);
		log_secret(a->key);
		a->helper_at = core_now();
		ret = 0;
	}
out:
	proc_result_clear(&res);
	free(sh);
	return ret;
}

/* A credential for this request, fresh where a helper makes it. */
static int
api_credentials(struct run *r, struct err *e)
{
	struct api *a = r->api;
	const char *ttl = conf_env("CLAUDE_CODE_API_KEY_HELPER_TTL_MS");
	int64_t ms = API_HELPER_TTL;

	if (a->helper) {
		if (ttl)
			text_int(str_of(ttl), 0, INT64_MAX / 2, &ms);
		if (!a->helper_at || core_now() - a->helper_at >= ms)
			return api_helper(r, e);
		return 0;
	}
	if (a->key || a->token)
		return 0;
	snprintf(a->fail.type, sizeof(a->fail.type), "authentication_error");
	a->fail.should_retry = 0;
	return err_set(e, ERR_API, "no API key: set ANTHROPIC_API_KEY, "
	    "ANTHROPIC_AUTH_TOKEN or the setting apiKeyHelper (a server of "
	    "your own that wants none takes any)");
}

/* `retry-after-ms`, or `retry-after` in seconds or as a date. */
static int64_t
api_retry_after(const struct http_resp *resp)
{
	struct slice v = http_header(resp, "retry-after-ms");
	char buf[64];
	struct tm tm = { 0 };
	double s;
	char *end;

	if (!v.n || v.n >= sizeof(buf)) {
		v = http_header(resp, "retry-after");
		if (!v.n || v.n >= sizeof(buf))
			return -1;
		memcpy(buf, v.p, v.n);
		buf[v.n] = 0;
		s = strtod(buf, &end) * 1000;
		if (end == buf) {
			if (!strptime(buf, "%a, %d %b %Y %H:%M:%S", &tm))
				return -1;
			s = (double)timegm(&tm) * 1000 - (double)core_time();
		}
	} else {
		memcpy(buf, v.p, v.n);
		buf[v.n] = 0;
		s = strtod(buf, NULL);
	}
	return s > 0 && s < 1e12 ? (int64_t)s : -1;
}

/* The response was no 200: what it says, into fail and e. */
static int
api_refused(struct api *a, const struct http_resp *resp, struct slice body,
    struct err *e)
{
	struct slice v = http_header(resp, "x-should-retry");
	struct str shown;
	char what[64];

	a->fail.status = resp->status;
	a->fail.should_retry = str_eq(v, "true") ? 1 :
	    str_eq(v, "false") ? 0 : -1;
	a->fail.after = api_retry_after(resp);
	snprintf(what, sizeof(what), "API error: %d", resp->status);
	if (json_check(text_trim(body), NULL) == 0)
		return api_error(body, &a->fail, what, e);
	/* A proxy's page: its first words say who spoke. */
	str_init(&shown, 0);
	text_utf8_fix((struct slice){ body.p, text_cut(body, 200) }, &shown);
	err_set(e, ERR_API, "%s: %s", what, shown.p);
	str_clear(&shown);
	return -1;
}

/* Pieces of a request: head, tools, system, messages, end. */
#define API_PIECES (MSG_PIECES + 6)

/*
 * The request's body in pieces; `head` holds what is made anew each time.
 * Order of the members does not matter to the API, only their bytes do.
 */
static size_t
api_pieces(struct run *r, struct str *head, struct slice p[API_PIECES])
{
	struct api *a = r->api;
	size_t n = 0;

	str_reset(head);
	str_addc(head, '{');
	json_put_text(head, "model", r->model);
	json_put_int(head, "max_tokens", r->max_tokens);
	str_adds(head, ",\"stream\":true");
	if (r->effort) {
		str_adds(head, ",\"output_config\":{");
		json_put_text(head, "effort", r->effort);
		str_addc(head, '}');
	}
	p[n++] = str_slice(head);
	if (r->tools_json.len) {
		p[n++] = str_of(",\"tools\":");
		p[n++] = str_slice(&r->tools_json);
	}
	if (r->system_json.len) {
		p[n++] = str_of(",\"system\":");
		p[n++] = str_slice(&r->system_json);
	}
	p[n++] = str_of(",\"messages\":[");
	n += msg_pieces(r->conv, str_of(a->caching ? a->mark : ""), p + n);
	p[n++] = str_of("]}");
	return n;
}

/* One exchange as a line of the recording: no headers, so no keys. */
static void
api_record(struct run *r, int status, struct slice body)
{
	struct api *a = r->api;
	struct str line, shape;
	struct err e = { 0 };
	size_t i;

	if (!a->recording)
		return;
	str_init(&line, 0);
	str_init(&shape, 0);
	str_addc(&line, '{');
	json_put_text(&line, "type", "exchange");
	json_put_int(&line, "n", (int64_t)a->exchange + 1);
	json_put_text(&line, "model", r->model);
	if (!a->exchange)
		json_put_text(&line, "prompt", r->prompt);
	json_key(&line, "messages");
	str_addc(&line, '[');
	for (i = 0; i < r->conv->nitems; i++) {
		str_reset(&shape);
		msg_shape(r->conv, i, &shape);
		if (i)
			str_addc(&line, ',');
		json_put(&line, str_slice(&shape));
	}
	str_addc(&line, ']');
	json_put_int(&line, "status", status);
	json_key(&line, "body");
	json_put(&line, body);
	str_adds(&line, "}\n");
	str_reset(&shape);
	log_redact(str_slice(&line), &shape);
	if (io_write(a->record, shape.p, shape.len, &e) < 0) {
		log_warn("the recording is not complete: %s", e.msg);
		a->recording = false;
	}
	str_clear(&line);
	str_clear(&shape);
}

/* What an error response says, as far as it is whole; at most 1 MiB. */
static void
api_body(struct run *r, struct str *out)
{
	char buf[16384];
	ssize_t n;

	while ((n = http_body(r->api->http, buf, sizeof(buf), NULL)) > 0 &&
	    out->len < 1u << 20)
		str_add(out, buf, (size_t)n);
}

/* A first byte that no event stream has: JSON, or somebody's page. */
static bool
api_is_whole(const char *p, size_t n)
{
	struct slice s = text_trim((struct slice){ p, n });

	return s.n && (s.p[0] == '{' || s.p[0] == '<');
}

/*
 * Reads the event stream to message_stop.  Gateways leave out the content
 * type or have another, and some answer with the whole message: the first
 * byte tells.
 */
static int
api_read_stream(struct run *r, struct api_stream *s, struct str *body,
    struct err *e)
{
	struct api *a = r->api;
	struct sse sse;
	char buf[16384];
	bool begun = false;
	ssize_t n = 0;
	int ret = 0;

	sse_init(&sse, LIM_RESPONSE);
	while (!ret && !s->stopped &&
	    (n = http_body(a->http, buf, sizeof(buf), e)) > 0) {
		if (body->len || (!begun && api_is_whole(buf, (size_t)n))) {
			str_add(body, buf, (size_t)n);
			if (body->full)
				ret = api_too_large(e);
			continue;
		}
		begun |= !text_is_blank((struct slice){ buf, (size_t)n });
		if (a->recording)
			str_add(&a->body, buf, (size_t)n);
		ret = sse_feed(&sse, buf, (size_t)n, api_event, s, e);
	}
	if (!ret && !n && body->len)
		ret = api_whole(s, str_slice(body), e);
	sse_clear(&sse);
	if (ret < 0 || n < 0)
		return -1;
	if (!s->stopped)
		return err_set(e, ERR_NET,
		    "the stream ended before the message did");
	/* What follows message_stop is only the end of the framing. */
	while (http_body(a->http, buf, sizeof(buf), NULL) > 0)
		continue;
	return 0;
}

/* The header list for one request; the strings live in `own`. */
static const char **
api_headers(struct api *a, struct strv *own)
{
	const char **h;
	struct str s;
	size_t i;

	for (i = 0; i < a->headers.n; i++)
		str_list_adds(own, a->headers.v[i]);
	str_init(&s, 0);
	if (a->key) {
		str_addf(&s, "x-api-key: %s", a->key);
		str_list_take(own, str_detach(&s));
	}
	if (a->token) {
		str_addf(&s, "Authorization: Bearer %s", a->token);
		str_list_take(own, str_detach(&s));
	}
	h = core_zalloc(core_mul(own->n + 1, sizeof(*h)));
	for (i = 0; i < own->n; i++)
		h[i] = own->v[i];
	return h;
}

/* One attempt over the network. */
static int
api_network(struct run *r, struct api_stream *s, const struct slice *pieces,
    size_t npieces, struct err *e)
{
	struct api *a = r->api;
	struct strv own = { 0 };
	const char **headers = NULL;
	struct http_req req = { .method = "POST", .url = a->url,
	    .body = pieces, .nbody = npieces, .idle_ms = a->idle_ms,
	    .head_ms = a->head_ms, .deadline = r->deadline,
	    .lookup_ms = API_CONNECT, .connect_ms = API_CONNECT,
	    .handshake_ms = API_CONNECT };
	struct http_resp resp = { 0 };
	struct str body;
	int ret = -1;

	str_init(&body, LIM_RESPONSE);
	str_reset(&a->body);
	if (api_credentials(r, e) < 0)
		goto out;
	req.headers = headers = api_headers(a, &own);
	if (http_send(a->http, &req, &resp, e) < 0) {
		if (e && e->code == ERR_USAGE)
			err_wrap(e, "ANTHROPIC_BASE_URL");
		goto out;
	}
	if (resp.status != 200) {
		api_body(r, &body);
		ret = api_refused(a, &resp, str_slice(&body), e);
	} else {
		ret = api_read_stream(r, s, &body, e);
	}
	if (!ret)
		api_record(r, resp.status, body.len ? str_slice(&body) :
		    str_slice(&a->body));
	http_done(a->http);
	http_resp_clear(&resp);
out:
	str_clear(&body);
	free(headers);
	str_list_clear(&own);
	return ret;
}

/* Compares the recording's view of the conversation with ours. */
static int
api_fits(struct run *r, const cJSON *line, struct err *e)
{
	const cJSON *shapes = json_get(line, "messages"), *one;
	const char *prompt = json_text(line, "prompt");
	size_t n = r->api->exchange + 1, i = 0;
	struct str shape;
	int ret = 0;

	if (prompt && r->prompt && strcmp(prompt, r->prompt))
		return err_set(e, ERR_REPLAY, "the recording was made with "
		    "another prompt: '%.200s'", prompt);
	str_init(&shape, 0);
	cJSON_ArrayForEach(one, shapes) {
		str_reset(&shape);
		if (i < r->conv->nitems)
			msg_shape(r->conv, i, &shape);
		else
			str_adds(&shape, "nothing");
		i++;
		if (!ret && (!cJSON_IsString(one) ||
		    strcmp(one->valuestring, shape.p)))
			ret = err_set(e, ERR_REPLAY, "request %zu, message "
			    "%zu: the recording has '%.120s', this run has "
			    "'%.120s'", n, i, cJSON_IsString(one) ?
			    one->valuestring : "?", shape.p);
	}
	if (!ret && i != r->conv->nitems)
		ret = err_set(e, ERR_REPLAY, "request %zu: the recording has "
		    "%zu messages, this run has %zu", n, i, r->conv->nitems);
	str_clear(&shape);
	return ret;
}

/* One attempt out of the recording. */
static int
api_replay(struct run *r, struct api_stream *s, struct err *e)
{
	struct api *a = r->api;
	struct sse sse;
	const char *body;
	cJSON *line;
	int ret = -1;

	if (a->exchange >= a->replay.n)
		return err_set(e, ERR_REPLAY, "the recording ends after %zu "
		    "requests, the run wants another", a->replay.n);
	line = json_parse(str_of(a->replay.v[a->exchange]), e);
	if (!line) {
		err_wrap(e, "the recording's line %zu", a->exchange + 1);
		goto out;
	}
	if (api_fits(r, line, e) < 0)
		goto out;
	body = json_need(line, "body", "recording", e);
	if (!body)
		goto out;
	if (*body == '{') {
		ret = api_whole(s, str_of(body), e);
		goto out;
	}
	sse_init(&sse, LIM_RESPONSE);
	ret = sse_feed(&sse, body, strlen(body), api_event, s, e);
	sse_clear(&sse);
	if (!ret && !s->stopped)
		ret = err_set(e, ERR_REPLAY, "the recording's answer %zu "
		    "has no end", a->exchange + 1);
out:
	cJSON_Delete(line);
	if (ret < 0 && e && e->code != ERR_API)
		e->code = ERR_REPLAY;
	return ret;
}

/* One attempt: a fresh stream into a fresh message. */
static int
api_attempt(struct run *r, struct api_msg *m, const struct slice *pieces,
    size_t npieces, struct err *e)
{
	struct api *a = r->api;
	struct api_stream s = { .m = m, .fail = &a->fail, .r = r };
	int64_t from = core_now();
	int ret;

	if (!r->requested_ms)
		r->requested_ms = from;
	a->fail = (struct api_fail){ .should_retry = -1, .after = -1 };
	ret = a->replaying ? api_replay(r, &s, e) :
	    api_network(r, &s, pieces, npieces, e);
	if (!ret)
		ret = api_finish(&s, e);
	api_stream_clear(&s);
	r->api_ms += core_now() - from;
	if (!ret)
		a->exchange++;
	return ret;
}

/* Whether sending the same bytes again may help. */
static bool
api_may_retry(const struct api_fail *f, const struct err *e)
{
	static const char *const types[] = { "overloaded_error", "api_error",
	    "timeout_error", "rate_limit_error" };
	size_t i;

	if (e->code == ERR_NET || e->code == ERR_TIMEOUT)
		return true;
	if (e->code != ERR_API)
		return false;
	if (f->should_retry >= 0)
		return f->should_retry;
	if (!f->status)		/* an error event in a good response */
		for (i = 0; i < LENGTH(types); i++)
			if (!strcmp(f->type, types[i]))
				return true;
	return f->status == 408 || f->status == 409 || f->status == 429 ||
	    f->status >= 500;
}

static int64_t
api_delay(const struct api *a, int attempt)
{
	uint32_t rnd;
	int64_t ms;

	if (a->fail.after >= 0)
		return a->fail.after;
	core_random(&rnd, sizeof(rnd));
	ms = attempt > 20 ? API_RETRY_CAP : a->retry_base << attempt;
	if (ms > API_RETRY_CAP)
		ms = API_RETRY_CAP;
	return ms - ms * (int64_t)(rnd % 251) / 1000;	/* up to a quarter */
}

/*
 * Overloaded three times, or a model that is not there: the next model of
 * the fallback list, if any.
 */
static bool
api_fall_back(struct run *r)
{
	struct api *a = r->api;
	struct slice list = str_of(a->fallback), name;
	struct str id;
	bool over = a->fail.status == 529 ||
	    !strcmp(a->fail.type, "overloaded_error");

	a->overloaded = over ? a->overloaded + 1 : 0;
	if (!a->fallback || !(a->fail.status == 404 ||
	    a->overloaded >= API_OVERLOADED))
		return false;
	str_init(&id, 256);
	while (a->fallback && text_item(&list, ',', &name)) {
		a->fallback = list.p;
		str_reset(&id);
		char *asked = core_memdup(name.p, name.n);
		bool ok = name.n && model_resolve(r->conf, asked, r->model,
		    &id, NULL) == 0 && strcmp(id.p, r->model);

		free(asked);
		if (!ok)
			continue;
		log_warn("%s: going on with the fallback model '%s'",
		    r->model, id.p);
		free(r->model);
		r->model = str_detach(&id);
		r->effort = model_effort(r->model, r->effort);
		a->overloaded = 0;
		return true;
	}
	str_clear(&id);
	return false;
}

/* Adds one answer's use to the run, its model and its cost. */
static void
api_account(struct run *r, const struct usage *u)
{
	struct model_use *mu = NULL;
	double usd = 0;
	size_t i;

	for (i = 0; i < r->nuses && !mu; i++)
		if (!strcmp(r->uses[i].model, r->model))
			mu = &r->uses[i];
	if (!mu) {
		r->uses = core_realloc(r->uses,
		    core_mul(r->nuses + 1, sizeof(*r->uses)));
		mu = &r->uses[r->nuses++];
		*mu = (struct model_use){ .model = core_strdup(r->model),
		    .priced = true };
	}
	api_usage_add(&mu->usage, u);
	api_usage_add(&r->usage, u);
	if (!model_cost(r->model, u, &usd)) {
		mu->priced = false;
		r->cost_known = false;
	}
	mu->cost += usd;
	r->cost += usd;
}

/*
 * One answer of the model.  paused: the conversation ends with an assistant
 * message on purpose (pause_turn).  -1: api->fail says how it was refused;
 * m is empty then.
 */
static int
api_turn(struct run *r, bool paused, struct api_msg *m, struct err *e)
{
	struct api *a = r->api;
	struct slice pieces[API_PIECES];
	struct str head;
	int attempt, ret = -1;
	bool refreshed = false;
	int64_t delay;
	size_t n;

	if (msg_check(r->conv, paused, e) < 0)
		BUG("the conversation is not well-formed");
	str_init(&head, 0);
	for (attempt = 0;; attempt++) {
		api_msg_init(m);
		n = api_pieces(r, &head, pieces);
		log_debug("api", "request %d, attempt %d: %s, %zu messages, "
		    "%zu bytes of them", r->turns + 1, attempt + 1, r->model,
		    r->conv->nitems, r->conv->bytes.len);
		err_clear(e);
		ret = api_attempt(r, m, pieces, n, e);
		if (!ret)
			break;
		api_msg_clear(m);
		log_debug("api", "attempt %d failed: %s", attempt + 1, e->msg);
		if (e->code == ERR_ABORT || io_stopped())
			break;
		if (a->fail.status == 401 && a->helper && !refreshed) {
			refreshed = true;
			a->helper_at = 0;
			continue;
		}
		if (a->fail.status == 400 && msg_drop_images(r->conv)) {
			log_debug("api", "sending it again without pictures");
			continue;
		}
		if (api_fall_back(r)) {
			attempt = -1;
			continue;
		}
		if (attempt >= a->max_retries ||
		    !api_may_retry(&a->fail, e))
			break;
		delay = api_delay(a, attempt);
		if (r->ops && r->ops->retry)
			r->ops->retry(r, attempt + 1, a->max_retries, delay,
			    e->msg);
		if (io_sleep(delay, e) < 0)
			break;
	}
	str_clear(&head);
	if (!ret) {
		log_debug("api", "answer: %s, %zu calls, tokens in %" PRId64
		    " (cache read %" PRId64 ", written %" PRId64 "), out %"
		    PRId64, m->stop_reason, m->ncalls, m->usage.input,
		    m->usage.cache_read, m->usage.cache_write,
		    m->usage.output);
		a->overloaded = 0;
		msg_sent(r->conv);
		r->turns++;
		api_account(r, &m->usage);
	}
	return ret;
}

/* Whether a header may come from the environment: a token, no framing. */
static bool
api_header_is_allowed(struct slice name)
{
	static const char *const ours[] = { "host", "content-length",
	    "transfer-encoding", "connection", "expect" };
	size_t i;

	for (i = 0; i < name.n; i++)
		if (!isalnum((unsigned char)name.p[i]) &&
		    !strchr("!#$%&'*+-.^_`|~", name.p[i]))
			return false;
	for (i = 0; i < LENGTH(ours); i++)
		if (name.n == strlen(ours[i]) &&
		    !strncasecmp(name.p, ours[i], name.n))
			return false;
	return name.n > 0;
}

/* Adds a header line; one of the same name goes. */
static void
api_header_set(struct api *a, struct slice line, size_t name)
{
	size_t i;

	for (i = 0; i < a->headers.n; i++) {
		if (strncasecmp(a->headers.v[i], line.p, name + 1))
			continue;
		free(a->headers.v[i]);
		a->headers.v[i] = core_memdup(line.p, line.n);
		return;
	}
	str_list_add(&a->headers, line.p, line.n);
}

/* The extra headers of the environment, one "Name: value" a line. */
static void
api_custom_headers(struct api *a)
{
	struct slice all = str_of(conf_env("ANTHROPIC_CUSTOM_HEADERS")), line;
	const char *colon;
	char *value;

	while (text_line(&all, &line)) {
		line = text_trim(line);
		colon = line.n ? memchr(line.p, ':', line.n) : NULL;
		if (!line.n)
			continue;
		if (!colon || !api_header_is_allowed((struct slice){ line.p,
		    (size_t)(colon - line.p) })) {
			log_warn("ANTHROPIC_CUSTOM_HEADERS: a line that is "
			    "no 'Name: value', or one of ours, is ignored");
			continue;
		}
		api_header_set(a, line, (size_t)(colon - line.p));
		/* It may well be a credential. */
		line.n -= (size_t)(colon + 1 - line.p);
		line.p = colon + 1;
		line = text_trim(line);
		value = core_memdup(line.p, line.n);
		if (line.n > 15)
			log_secret(value);
		free(value);
	}
}

static int64_t
api_env_ms(const char *name, int64_t absent)
{
	const char *v = conf_env(name);
	int64_t ms = absent;

	if (v && !text_int(str_of(v), 1, INT32_MAX, &ms))
		log_warn("%s: '%s' is not a number of milliseconds", name, v);
	return ms;
}

/* Opens --record and reads --replay. */
static int
api_recorder(struct api *a, const struct opts *o, struct err *e)
{
	struct slice all, line;
	struct str text;
	int r;

	a->record = -1;
	if (o->record) {
		a->record = open(o->record, O_WRONLY | O_CREAT | O_TRUNC |
		    O_CLOEXEC, 0600);
		if (a->record < 0)
			return err_sys(e, "write the recording '%s'",
			    o->record);
		a->recording = true;
	}
	if (!o->replay)
		return 0;
	a->replaying = true;
	str_init(&text, 0);
	r = file_read(o->replay, LIM_FILE, &text, e);
	all = str_slice(&text);
	while (!r && text_line(&all, &line))
		if (!text_is_blank(line))
			str_list_add(&a->replay, line.p, line.n);
	str_clear(&text);
	return r;
}

static void
api_free(struct api *a)
{
	if (!a)
		return;
	http_free(a->http);
	free(a->url);
	free(a->key);
	free(a->token);
	str_list_clear(&a->headers);
	str_list_clear(&a->replay);
	str_clear(&a->body);
	io_close(&a->record);
	free(a);
}

/* Credentials, address and limits out of environment and settings. */
static struct api *
api_new(const struct conf *conf, struct err *e)
{
	const char *base = conf_env("ANTHROPIC_BASE_URL");
	const char *betas = conf_env("ANTHROPIC_BETAS");
	struct api *a = core_zalloc(sizeof(*a));
	struct str url;
	int64_t n = API_RETRIES;

	str_init(&a->body, LIM_RESPONSE);
	a->http = http_new();
	a->key = core_strdup(conf_env("ANTHROPIC_API_KEY"));
	a->token = core_strdup(conf_env("ANTHROPIC_AUTH_TOKEN"));
	log_secret(a->key);
	log_secret(a->token);
	if (!a->key && !a->token)
		a->helper = conf_text(conf, "apiKeyHelper");
	str_init(&url, 0);
	str_adds(&url, base ? base : "https://api.anthropic.com");
	while (url.len && url.p[url.len - 1] == '/')
		str_cut(&url, url.len - 1);
	str_adds(&url, "/v1/messages");
	a->url = str_detach(&url);
	str_list_adds(&a->headers, "content-type: application/json");
	str_list_adds(&a->headers, "accept: application/json");
	str_list_adds(&a->headers, "anthropic-version: 2023-06-01");
	str_list_adds(&a->headers, "user-agent: subagent/" SA_VERSION);
	if (betas) {
		str_addf(&url, "anthropic-beta: %s", betas);
		str_list_take(&a->headers, str_detach(&url));
	}
	api_custom_headers(a);
	a->caching = !conf_env_on("DISABLE_PROMPT_CACHING");
	a->mark = conf_env_on("ENABLE_PROMPT_CACHING_1H") ?
	    ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}" :
	    ",\"cache_control\":{\"type\":\"ephemeral\"}";
	if (conf_env("CLAUDE_CODE_MAX_RETRIES"))
		text_int(str_of(conf_env("CLAUDE_CODE_MAX_RETRIES")), 0, 15,
		    &n);
	a->max_retries = (int)n;
	a->retry_base = api_env_ms("SUBAGENT_RETRY_BASE_MS", API_RETRY_BASE);
	a->idle_ms = api_env_ms("CLAUDE_STREAM_IDLE_TIMEOUT_MS", API_IDLE);
	a->head_ms = api_env_ms("API_TIMEOUT_MS", API_HEAD);
	a->fallback = conf->opts->fallback_model;
	if (!a->fallback)
		a->fallback = conf_text(conf, "fallbackModel");
	if (api_recorder(a, conf->opts, e) < 0) {
		api_free(a);
		return NULL;
	}
	return a;
}

/*=== [sess] transcripts =====================================================
 * uses: core str err log json io file conf
 *
 * One JSON object a line, in Claude Code's place and format: each line is
 * one write under a lock, and on disk before the next request goes out.  A
 * folder that cannot be written costs the transcript, not the run; that is
 * said once.
 *==========================================================================*/

struct sess {
	int fd;
	char *path;
	char parent[37];	/* uuid of the line before; "" at the start */
	char *branch;		/* git branch or NULL */
	bool broken;		/* said already that lines are missing */
};

/* <cwd with every byte that is no letter or digit as ->, cut at 200> */
static void
sess_project(const char *dir, struct str *out)
{
	const char *p;
	size_t from = out->len;

	for (p = dir; *p; p++)
		str_addc(out, isalnum((unsigned char)*p) ? *p : '-');
	if (out->len - from > 200) {
		str_cut(out, from + 200);
		str_addf(out, "-%016" PRIx64, core_hash(dir, strlen(dir), 0));
	}
}

static void
sess_free(struct sess *s)
{
	if (!s)
		return;
	io_close(&s->fd);
	free(s->path);
	free(s->branch);
	free(s);
}

/* Closes a last line that a crash has cut (the next would join it). */
static void
sess_mend(int fd)
{
	char last = '\n';
	off_t end = lseek(fd, 0, SEEK_END);

	if (end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n' &&
	    write(fd, "\n", 1) != 1)
		return;	/* the next write will say why */
}

/* The branch that HEAD names, read without git; NULL: none. */
static char *
sess_branch(const struct run *r)
{
	static const char prefix[] = "ref: refs/heads/";
	struct str s;
	char *path, *branch = NULL;

	if (!r->git_root)
		return NULL;
	path = file_join(r->git_root, ".git/HEAD");
	str_init(&s, 0);
	if (!file_read(path, 4096, &s, NULL) && str_starts(s.p, prefix)) {
		str_cut(&s, strcspn(s.p, "\r\n"));
		branch = core_strdup(s.p + strlen(prefix));
	}
	str_clear(&s);
	free(path);
	return branch;
}

/* Opens the transcript of the run; NULL: not kept, and said why. */
static struct sess *
sess_open(struct run *r, const struct conf *conf)
{
	struct sess *s;
	struct str dir;
	struct err e = { 0 };

	if (!conf->config_dir || conf_env("CLAUDE_CODE_SKIP_PROMPT_HISTORY"))
		return NULL;
	s = core_zalloc(sizeof(*s));
	s->fd = -1;
	str_init(&dir, PATH_MAX);
	str_addf(&dir, "%s/projects/", conf->config_dir);
	sess_project(r->start_dir, &dir);
	if (file_mkdirs(dir.p, 0700, &e) == 0) {
		str_addf(&dir, "/%s.jsonl", r->session);
		s->path = core_strdup(dir.p);
		s->fd = open(s->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC,
		    0600);
		if (s->fd < 0)
			err_sys(&e, "write '%s'", s->path);
	}
	str_clear(&dir);
	if (s->fd < 0) {
		log_warn("this run is not saved: %s", e.msg);
		sess_free(s);
		return NULL;
	}
	sess_mend(s->fd);
	s->branch = sess_branch(r);
	return s;
}

/* The members that every line has; the object stays open. */
static void
sess_begin(struct run *r, const char *type, struct str *line)
{
	struct sess *s = r->sess;
	char uuid[37], at[25];

	core_uuid(uuid);
	core_iso(core_time(), at);
	str_addc(line, '{');
	json_put_text(line, "parentUuid", *s->parent ? s->parent : NULL);
	json_put_bool(line, "isSidechain", false);
	json_put_text(line, "userType", "external");
	json_put_text(line, "entrypoint", "subagent");
	json_put_text(line, "cwd", r->cwd);
	json_put_text(line, "sessionId", r->session);
	json_put_text(line, "version", SA_VERSION);
	json_put_text(line, "gitBranch", s->branch ? s->branch : "");
	json_put_text(line, "type", type);
	json_put_text(line, "uuid", uuid);
	json_put_text(line, "timestamp", at);
	memcpy(s->parent, uuid, sizeof(uuid));
}

/* Writes the finished line as a whole, under the lock. */
static void
sess_write(struct run *r, struct str *line)
{
	struct sess *s = r->sess;
	struct err e = { 0 };
	struct str clean;
	size_t n;

	str_adds(line, "}\n");
	str_init(&clean, 0);
	if (log_secret_in(str_slice(line), &n)) {
		log_redact(str_slice(line), &clean);
		str_take(line, &clean);
	}
	/* Ending the process is no reason to cut a line. */
	io_hold(1);
	flock(s->fd, LOCK_EX);
	if (io_write(s->fd, line->p, line->len, &e) < 0 && !s->broken) {
		log_warn("the transcript '%s' is not complete: %s", s->path,
		    e.msg);
		s->broken = true;
	}
	flock(s->fd, LOCK_UN);
	io_hold(-1);
	str_clear(&clean);
	str_reset(line);
}

static void
sess_usage(struct str *line, const struct usage *u)
{
	json_key(line, "usage");
	str_addc(line, '{');
	json_put_int(line, "input_tokens", u->input);
	json_put_int(line, "output_tokens", u->output);
	json_put_int(line, "cache_creation_input_tokens", u->cache_write);
	json_put_int(line, "cache_read_input_tokens", u->cache_read);
	str_addc(line, '}');
}

/* One line per content block of an answer, one line for a user message. */
static void
sess_put(struct run *r, const struct notice *n)
{
	struct json_iter it;
	struct str line, all;

	if (!r->sess)
		return;
	str_init(&line, 0);
	str_init(&all, 0);
	str_addc(&all, '[');
	str_addl(&all, n->blocks);
	str_addc(&all, ']');
	if (!n->assistant) {
		sess_begin(r, "user", &line);
		if (n->synthetic)
			json_put_bool(&line, "isMeta", true);
		str_adds(&line, ",\"message\":{\"role\":\"user\",\"content\":");
		str_addl(&line, str_slice(&all));
		str_addc(&line, '}');
		sess_write(r, &line);
	} else if (json_iter_init(&it, str_slice(&all))) {
		while (json_iter_next(&it)) {
			sess_begin(r, "assistant", &line);
			json_key(&line, "message");
			str_addc(&line, '{');
			json_put_text(&line, "id", n->id);
			json_put_text(&line, "type", "message");
			json_put_text(&line, "role", "assistant");
			json_put_text(&line, "model", n->model);
			str_adds(&line, ",\"content\":[");
			str_addl(&line, it.value);
			str_addc(&line, ']');
			json_put_text(&line, "stop_reason", n->stop_reason);
			sess_usage(&line, n->usage);
			str_addc(&line, '}');
			sess_write(r, &line);
		}
	}
	str_clear(&line);
	str_clear(&all);
}

/*=== [tool] look-up, filter, input checks, result limits ====================
 * uses: core str err text json def perm
 *
 * Names no tool.  The pool of a run is what every filter leaves; each tool
 * that goes is recorded with the layer that took it.  Input is checked against
 * the row's schema, leniently where models are known to slip.
 *==========================================================================*/

#define TOOL_ISSUES 10		/* problems of one input that are told */
#define TOOL_QUOTE 80		/* bytes of a foreign name in a message */

/* A tool that is not offered, and why. */
struct tool_removed {
	char *name;
	const char *layer;
	char *reason;
};

static void
tool_out_init(struct tool_out *out)
{
	str_init(&out->text, 0);
	str_init(&out->blocks, 0);
	out->is_error = false;
}

static void
tool_out_clear(struct tool_out *out)
{
	str_clear(&out->text);
	str_clear(&out->blocks);
	out->is_error = false;
}

/* The result is this error alone. */
static void __attribute__((format(printf, 2, 3)))
tool_fail(struct tool_out *out, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		core_die("out of memory");
	str_reset(&out->text);
	str_reset(&out->blocks);
	text_utf8_fix(str_of(text), &out->text);
	out->is_error = true;
	free(text);
}

/* The tool refuses its input: as above, in the tags that models know. */
static void __attribute__((format(printf, 2, 3)))
tool_refuse(struct tool_out *out, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		core_die("out of memory");
	tool_fail(out, "<tool_use_error>%s</tool_use_error>", text);
	free(text);
}

/*
 * Joins head and tail of something longer, `dropped` bytes of it gone
 * already, to at most about max bytes of valid UTF-8 that say what is missing.
 */
static void
tool_join(struct slice head, struct slice tail, uint64_t dropped, size_t max,
    struct str *out)
{
	size_t half = max / 2, at = 0;

	if (!dropped && head.n + tail.n <= max) {
		text_utf8_fix(head, out);
		text_utf8_fix(tail, out);
		return;
	}
	if (head.n > half) {
		at = text_cut(head, half);
		dropped += head.n - at;
		head.n = at;
	}
	if (tail.n > half) {
		at = text_cut_up(tail, tail.n - half);
		dropped += at;
		tail.p += at;
		tail.n -= at;
	}
	text_utf8_fix(head, out);
	str_addf(out, "\n\n... [%" PRIu64 " bytes left out here] ...\n\n",
	    dropped);
	text_utf8_fix(tail, out);
}

/*
 * The last word on a result: valid UTF-8, at most max bytes with head and
 * tail kept, and never blank, which the API refuses.
 */
static void
tool_limit(struct tool_out *out, size_t max)
{
	struct slice s = str_slice(&out->text);
	struct str done;
	size_t half;

	if (s.n > max || !text_utf8_is(s)) {
		str_init(&done, 0);
		half = s.n > max ? text_cut(s, s.n / 2) : s.n;
		tool_join((struct slice){ s.p, half },
		    (struct slice){ s.p + half, s.n - half }, 0, max, &done);
		str_take(&out->text, &done);
	}
	if (!out->blocks.len && text_is_blank(str_slice(&out->text))) {
		str_reset(&out->text);
		str_adds(&out->text, out->is_error ?
		    "(the tool failed and said nothing)" : "(no output)");
	}
}

/*--- the pool --------------------------------------------------------------*/

/* Length of an entry's name: without "(...)". */
static size_t
tool_name_length(const char *entry)
{
	return strcspn(entry, "(");
}

/* Whether a list's entry means this tool. */
static bool
tool_is_named(const char *entry, const char *name)
{
	size_t n = tool_name_length(entry);
	char *bare = core_memdup(entry, n);
	const char *known = def_tool_alias(bare);
	bool hit;

	hit = !strcmp(bare, name) || (known && !strcmp(known, name)) ||
	    (strchr(bare, '*') && text_glob(bare, name));
	free(bare);
	return hit;
}

static bool
tool_is_listed(const struct strv *list, const char *name)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (tool_is_named(list->v[i], name))
			return true;
	return false;
}

/* Whether a list takes the tool away as a whole: `Bash(rm:*)` does not. */
static bool
tool_is_disallowed(const struct strv *list, const char *name)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (!list->v[i][tool_name_length(list->v[i])] &&
		    tool_is_named(list->v[i], name))
			return true;
	return false;
}

/* What the pool is made for. */
struct tool_want {
	struct run *r;
	const struct def *def;
	bool is_child;
	bool background;
};

/* What this machine and the command line leave out. */
static const char *
tool_host_drops(const struct tool_want *w, const struct tool *t,
    const char **layer, struct str *reason)
{
	const struct opts *o = w->r->conf->opts;
	bool all = o->tools.n == 1 && !strcmp(o->tools.v[0], "default");
	bool named = (!all && tool_is_listed(&o->tools, t->name)) ||
	    (w->def && w->def->has_tools &&
	    tool_is_listed(&w->def->tools, t->name));
	const char *rule = NULL;

	*layer = "machine";
	if (t->usable && !t->usable(w->r))
		str_addf(reason, "needs %s, which is not on this machine",
		    t->needs ? t->needs : "something");
	if (reason->len)
		return reason->p;
	*layer = "options";
	if (o->tools_given && !all && !tool_is_listed(&o->tools, t->name))
		str_adds(reason, "not in --tools");
	else if (w->r->conf->bare && !o->tools_given && !named &&
	    !(t->flags & TOOL_BARE))
		str_adds(reason, "--bare");
	else if ((t->flags & TOOL_NAMED) && !named)
		str_adds(reason, "only offered where a list names it");
	if (reason->len)
		return reason->p;
	*layer = "rules";
	if (perm_removes(w->r->perm, t->name, &rule))
		str_addf(reason, "deny rule '%s'", rule ? rule : t->name);
	return reason->len ? reason->p : NULL;
}

/* What the kind of agent and its definition leave out: the three layers. */
static const char *
tool_agent_drops(const struct tool_want *w, const struct tool *t,
    const char **layer)
{
	const struct def *d = w->def;

	*layer = "child";
	if (w->is_child && (t->flags & TOOL_NO_CHILD))
		return "no child agent may have it";
	*layer = "background";
	if (w->background && !(t->flags & TOOL_ASYNC_OK))
		return "an agent in the background may not have it";
	*layer = "definition";
	if (d && tool_is_disallowed(&d->disallowed, t->name))
		return "in the agent's disallowedTools";
	if (d && d->has_tools && !tool_is_listed(&d->tools, t->name))
		return "not in the agent's tools";
	return NULL;
}

/*
 * The agent's own list left nothing: an agent without tools that was meant to
 * have some would only make things up.
 */
static int
tool_pool_empty(const struct tool_want *w, const struct tool *const *all,
    struct err *e)
{
	const struct def *d = w->def;
	struct str odd, known;
	size_t i, k, hits;

	str_init(&odd, 200);
	str_init(&known, 200);
	for (i = 0; i < d->tools.n; i++) {
		for (k = hits = 0; all[k]; k++)
			hits += tool_is_named(d->tools.v[i], all[k]->name);
		str_addf(hits ? &known : &odd, "%s%.*s",
		    (hits ? &known : &odd)->len ? ", " : "", TOOL_QUOTE,
		    d->tools.v[i]);
	}
	err_set(e, ERR_USAGE, "Agent '%.60s' would be spawned with zero tools "
	    "\342\200\224 refusing. Its tools list resolved to nothing: %s%s%s"
	    "%s%s%s%s. Fix the agent's tools frontmatter or pass a different "
	    "subagent_type.", d->name, odd.len ? "unrecognized [" : "", odd.p,
	    odd.len ? "]" : "", odd.len && known.len ? ", " : "",
	    known.len ? "not available here [" : "", known.p,
	    known.len ? "]" : "");
	str_clear(&odd);
	str_clear(&known);
	return -1;
}

/*
 * Fills r->tools (the caller frees it) from `all`, in that order, and the list
 * of what is not in it.  -1: the definition's list leaves no tool at all.
 */
static int
tool_pool(struct run *r, const struct tool *const *all, const struct def *def,
    bool is_child, bool background, struct tool_removed **removed,
    size_t *nremoved, struct err *e)
{
	struct tool_want w = { r, def, is_child, background };
	const char *why, *layer;
	struct str reason;
	size_t i, n, by_host = 0, cap = 0;

	for (n = 0; all[n]; n++)
		continue;
	r->tools = core_zalloc(core_mul(n + 1, sizeof(*r->tools)));
	r->ntools = *nremoved = 0;
	*removed = NULL;
	str_init(&reason, 0);
	for (i = 0; i < n; i++) {
		str_reset(&reason);
		why = tool_agent_drops(&w, all[i], &layer);
		if (!why) {
			why = tool_host_drops(&w, all[i], &layer, &reason);
			by_host += why && strcmp(layer, "machine");
		}
		if (!why) {
			r->tools[r->ntools++] = all[i];
			continue;
		}
		*removed = core_grow(*removed, *nremoved, &cap,
		    sizeof(**removed));
		(*removed)[(*nremoved)++] = (struct tool_removed){
		    core_strdup(all[i]->name), layer, core_strdup(why) };
	}
	str_clear(&reason);
	if (!r->ntools && !by_host && def && def->has_tools && def->tools.n)
		return tool_pool_empty(&w, all, e);
	return 0;
}

/* The tool of that name in the run's pool, old names included; or NULL. */
static const struct tool *
tool_find(const struct run *r, const char *name)
{
	const char *known = def_tool_alias(name);
	size_t i;

	for (i = 0; i < r->ntools; i++)
		if (!strcmp(r->tools[i]->name, name) ||
		    (known && !strcmp(r->tools[i]->name, known)))
			return r->tools[i];
	return NULL;
}

/*--- input checks ----------------------------------------------------------*/

/* Where a check stands: what is wrong with the input so far. */
struct tool_check {
	struct str *problem;
	const char *extra;	/* of the tool; NULL: none */
	int issues;
};

static void __attribute__((format(printf, 2, 3)))
tool_issue(struct tool_check *c, const char *fmt, ...)
{
	char buf[LIM_MSG];
	va_list ap;

	if (++c->issues > TOOL_ISSUES)
		return;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	str_addc(c->problem, '\n');
	text_utf8_fix(str_of(buf), c->problem);
}

static const char *
tool_kind(const cJSON *v)
{
	return cJSON_IsObject(v) ? "object" : cJSON_IsArray(v) ? "array" :
	    cJSON_IsString(v) ? "string" : cJSON_IsNumber(v) ? "number" :
	    cJSON_IsBool(v) ? "boolean" : "null";
}

static bool
tool_is_type(const cJSON *v, const char *type)
{
	if (!strcmp(type, "integer"))
		return cJSON_IsNumber(v) && floor(v->valuedouble) ==
		    v->valuedouble && fabs(v->valuedouble) < 9e15;
	return !strcmp(type, tool_kind(v));
}

/* The text as JSON of another type; NULL where it is none. */
static cJSON *
tool_reread(const char *text, const char *type)
{
	struct slice s = text_trim(str_of(text));
	cJSON *v;

	if (!strcmp(type, "string"))
		return NULL;
	if (!strcmp(type, "boolean") && s.n < 6 &&
	    (!strcasecmp(text, "true") || !strcasecmp(text, "false")))
		return cJSON_CreateBool(!strcasecmp(text, "true"));
	v = json_parse(s, NULL);
	if (v && tool_is_type(v, type))
		return v;
	cJSON_Delete(v);
	return NULL;
}

/*
 * Models send "5" for 5, "true" for true and a list as text: such a value is
 * replaced within its parent by what was meant.
 */
static cJSON *
tool_coerce(cJSON *parent, cJSON *v, const char *type)
{
	cJSON *fixed = cJSON_IsString(v) && parent ?
	    tool_reread(v->valuestring, type) : NULL;

	if (!fixed)
		return v;
	fixed->string = v->string;
	v->string = NULL;
	cJSON_ReplaceItemViaPointer(parent, v, fixed);
	return fixed;
}

static bool
tool_in_enum(const cJSON *v, const cJSON *list, struct str *names)
{
	const cJSON *one;

	cJSON_ArrayForEach(one, list) {
		if (cJSON_Compare(one, v, true))
			return true;
		str_addf(names, "%s`%s`", names->len ? ", " : "",
		    cJSON_IsString(one) ? one->valuestring : "?");
	}
	return false;
}

static void tool_check_value(struct tool_check *, cJSON *, cJSON *,
    const cJSON *, const char *);	/* recursion */

/* Whether the tool takes a member that its schema does not offer. */
static bool
tool_is_extra(const struct tool_check *c, const char *name)
{
	struct slice s = { c->extra, c->extra ? strlen(c->extra) : 0 }, one;

	while (text_item(&s, ' ', &one))
		if (str_eq(one, name))
			return true;
	return false;
}

/* Members: known ones against their schema, others refused. */
static void
tool_check_object(struct tool_check *c, cJSON *o, const cJSON *schema,
    const char *path)
{
	const cJSON *props = json_get(schema, "properties"), *need, *prop;
	bool open = json_flag(schema, "additionalProperties", true);
	cJSON *v, *next;
	char at[128];

	for (v = o->child; v && c->issues <= TOOL_ISSUES; v = next) {
		next = v->next;
		snprintf(at, sizeof(at), "%s%s%.*s", path, *path ? "." : "",
		    TOOL_QUOTE, v->string);
		prop = json_get(props, v->string);
		if (!prop && !*path && tool_is_extra(c, v->string))
			continue;
		if (!prop && !open)
			tool_issue(c, "An unexpected parameter `%s` was "
			    "provided", at);
		else if (json_get(o, v->string) != v)
			tool_issue(c, "The parameter `%s` was provided twice",
			    at);
		else if (cJSON_IsNull(v) && prop)
			cJSON_Delete(cJSON_DetachItemViaPointer(o, v));
		else if (prop)
			tool_check_value(c, o, v, prop, at);
	}
	cJSON_ArrayForEach(need, json_get(schema, "required")) {
		if (!json_get(o, need->valuestring))
			tool_issue(c, "The required parameter `%s%s%s` is "
			    "missing", path, *path ? "." : "",
			    need->valuestring);
	}
}

static void
tool_check_array(struct tool_check *c, cJSON *list, const cJSON *schema,
    const char *path)
{
	const cJSON *items = json_get(schema, "items");
	char at[128];
	cJSON *v, *next;
	int i = 0;

	for (v = list->child; v && items && c->issues <= TOOL_ISSUES;
	    v = next) {
		next = v->next;
		snprintf(at, sizeof(at), "%.100s[%d]", path, i++);
		tool_check_value(c, list, v, items, at);
	}
}

static void
tool_check_value(struct tool_check *c, cJSON *parent, cJSON *v,
    const cJSON *schema, const char *path)
{
	const char *type = json_text(schema, "type");
	const cJSON *choice = json_get(schema, "enum");
	struct str names;

	if (type && !tool_is_type(v, type))
		v = tool_coerce(parent, v, type);
	if (type && !tool_is_type(v, type)) {
		tool_issue(c, "The parameter `%s` type is expected as `%s` "
		    "but provided as `%s`", path, type, tool_kind(v));
		return;
	}
	str_init(&names, 300);
	if (choice && !tool_in_enum(v, choice, &names))
		tool_issue(c, "The parameter `%s` must be one of %s", path,
		    names.p);
	else if (cJSON_IsNumber(v) &&
	    v->valuedouble < json_number(schema, "minimum", -INFINITY))
		tool_issue(c, "The parameter `%s` must be at least %g", path,
		    json_number(schema, "minimum", 0));
	else if (cJSON_IsObject(v))
		tool_check_object(c, v, schema, path);
	else if (cJSON_IsArray(v))
		tool_check_array(c, v, schema, path);
	str_clear(&names);
}

/*
 * Checks a call's input; slips are mended in place.  false: `problem` says
 * what is wrong, for the model.
 */
static bool
tool_check(const struct tool *t, cJSON *in, struct str *problem)
{
	struct tool_check c = { .extra = t->extra };
	cJSON *schema = cJSON_Parse(t->schema);
	struct str text;

	if (!schema)
		BUG("a tool's schema is no JSON");
	str_init(&text, 0);
	c.problem = &text;
	if (cJSON_IsObject(in))
		tool_check_value(&c, NULL, in, schema, "");
	else
		tool_issue(&c, "The input must be an object, not %s",
		    json_kind(in));
	cJSON_Delete(schema);
	if (c.issues)
		str_addf(problem, "InputValidationError: %s failed due to the "
		    "following issue%s:%s%s", t->name, c.issues > 1 ? "s" : "",
		    text.p, c.issues > TOOL_ISSUES ? "\n(and more)" : "");
	str_clear(&text);
	return !c.issues;
}
/*=== [fs] Read, Write, Edit =================================================
 * uses: core str err text json io file conf tool
 *
 * Files are bytes: Read shows them as text, Edit and Write never change a
 * byte that was not asked for.  What was read is remembered with its hash, so
 * that nothing is overwritten that the model has not seen as it is now.
 * Permission was given before any of this runs.
 *==========================================================================*/

#define FS_TOKENS 25000		/* of one Read; an estimate, see below */
#define FS_TOKEN 4		/* bytes that count as one token */
#define FS_WHOLE (256u << 10)	/* bytes of a file shown without a range */
#define FS_LARGE (380u << 10)	/* with allow_large: what a result may hold */
#define FS_SCAN (256 << 20)	/* how far lines are counted, and hashed */
#define FS_HEAD 8192		/* where a NUL shows that a file is binary */
#define FS_IMAGE (5u << 20)	/* bytes; the API takes 10 MB of base64 */
#define FS_SIDE 8000		/* pixels; the API refuses more */
#define FS_PDF (5u << 20)
#define FS_PDF_PAGES 100	/* the API refuses more */
#define FS_QUOTE 2000		/* bytes of old_string in an error */

/*--- what was read ---------------------------------------------------------*/

enum fs_extent {
	FS_PARTIAL,	/* a whole file was wanted and did not fit */
	FS_RANGE,	/* the lines that were asked for */
	FS_FULL
};

struct fs_file {
	char *path;		/* real */
	uint64_t hash;		/* of the content; 0: not known */
	int64_t size;
	int64_t mtime;		/* ns */
	enum fs_extent extent;
	pid_t by;		/* the process that noted it */
};

struct fs_seen {
	struct fs_file *v;
	size_t n;
	size_t cap;
};

static struct fs_file *
fs_seen_get(const struct run *r, const char *path)
{
	size_t i;

	for (i = 0; r->seen && i < r->seen->n; i++)
		if (!strcmp(r->seen->v[i].path, path))
			return &r->seen->v[i];
	return NULL;
}

static int64_t
fs_mtime(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Whether both describe the same content. */
static bool
fs_is_same(const struct fs_file *a, const struct fs_file *b)
{
	if (a->size != b->size)
		return false;
	return a->hash && b->hash ? a->hash == b->hash :
	    a->mtime == b->mtime;
}

/* Notes what was read or written; a smaller view does not replace a larger. */
static void
fs_seen_put(struct run *r, const struct fs_file *now)
{
	struct fs_file *f = fs_seen_get(r, now->path);
	enum fs_extent extent = now->extent;
	char *path;

	if (!r->seen)
		r->seen = core_zalloc(sizeof(*r->seen));
	if (!f) {
		r->seen->v = core_grow(r->seen->v, r->seen->n, &r->seen->cap,
		    sizeof(*r->seen->v));
		f = &r->seen->v[r->seen->n++];
		*f = (struct fs_file){ .path = core_strdup(now->path) };
	} else if (fs_is_same(f, now) && f->extent > extent) {
		extent = f->extent;
	}
	path = f->path;
	*f = *now;
	f->path = path;
	f->extent = extent;
	f->by = core.pid;
}

static void
fs_seen_free(struct fs_seen *s)
{
	size_t i;

	for (i = 0; s && i < s->n; i++)
		free(s->v[i].path);
	if (s)
		free(s->v);
	free(s);
}

/* As JSON: what this process has noted itself.  For fs_seen_import(). */
static void
fs_seen_export(struct run *r, struct str *json)
{
	const struct fs_file *f;
	size_t i;

	str_addc(json, '{');
	for (i = 0; r->seen && i < r->seen->n; i++) {
		f = &r->seen->v[i];
		if (f->by != core.pid || !text_utf8_is(str_of(f->path)))
			continue;
		json_key(json, f->path);
		str_addf(json, "\"%" PRIx64 " %" PRId64 " %" PRId64 " %d\"",
		    f->hash, f->size, f->mtime, (int)f->extent);
	}
	str_addc(json, '}');
}

/* Takes what a worker exported. */
static void
fs_seen_import(struct run *r, const cJSON *json)
{
	struct fs_file f = { 0 };
	const cJSON *v;
	int extent;

	cJSON_ArrayForEach(v, json) {
		if (!cJSON_IsString(v) || !v->string || sscanf(v->valuestring,
		    "%" SCNx64 " %" SCNd64 " %" SCNd64 " %d", &f.hash,
		    &f.size, &f.mtime, &extent) != 4 || extent < FS_PARTIAL ||
		    extent > FS_FULL)
			continue;
		f.path = v->string;
		f.extent = (enum fs_extent)extent;
		fs_seen_put(r, &f);
	}
}

/*--- paths -----------------------------------------------------------------*/

/* The real path that a tool's argument means, as [perm] resolves it. */
static int
fs_resolve(const struct run *r, const char *path, struct str *real,
    struct err *e)
{
	const char *home = file_home();
	char *full = NULL;
	int ret;

	if (!*path)
		return err_set(e, ERR_USAGE, "the path is empty");
	if (path[0] == '~' && (!path[1] || path[1] == '/') && home)
		full = file_join(home, path[1] ? path + 2 : "");
	ret = file_real(r->cwd, full ? full : path, real, e);
	free(full);
	return ret;
}

/* Letters to change, add or drop to make b of a; at most `max` is told. */
static size_t
fs_distance(const char *a, const char *b, size_t max)
{
	size_t row[65], n = strlen(a), m = strlen(b), i, k, diag, up;

	if (n >= LENGTH(row) || m >= LENGTH(row))
		return max;
	for (k = 0; k <= m; k++)
		row[k] = k;
	for (i = 1; i <= n; i++) {
		diag = row[0];
		row[0] = i;
		for (k = 1; k <= m; k++) {
			up = row[k];
			diag += a[i - 1] != b[k - 1];
			if (diag > up + 1)
				diag = up + 1;
			if (diag > row[k - 1] + 1)
				diag = row[k - 1] + 1;
			row[k] = diag;
			diag = up;
		}
	}
	return row[m] < max ? row[m] : max;
}

/* How unlike two names are; 3 and more: not worth a hint. */
static size_t
fs_unlike(const char *want, const char *have)
{
	size_t stem = strcspn(want, ".");

	if (!strcasecmp(want, have))
		return 0;
	if (stem && !strncmp(want, have, stem) && have[stem] == '.')
		return 1;
	return fs_distance(want, have, 3);
}

/* " Did you mean <path>?" where something in the folder has such a name. */
static void
fs_hint(const struct run *r, const char *path, struct str *out)
{
	struct strv names = { 0 };
	char *dir = file_dir(path), *near = NULL;
	const char *name = file_name(path), *best = NULL;
	size_t i, how, least = 3;

	if (!file_list(dir, &names, NULL)) {
		for (i = 0; i < names.n; i++) {
			how = fs_unlike(name, names.v[i]);
			if (how < least) {
				least = how;
				best = names.v[i];
			}
		}
		near = best ? file_join(dir, best) : NULL;
	} else {
		near = file_join(r->cwd, name);
	}
	if (near && file_exists(near))
		str_addf(out, " Did you mean %s?", near);
	free(near);
	free(dir);
	str_list_clear(&names);
}

static void
fs_missing(const struct run *r, const char *real, struct tool_out *out)
{
	struct str hint;

	str_init(&hint, 0);
	fs_hint(r, real, &hint);
	tool_refuse(out, "File does not exist. Note: your current working "
	    "directory is %s.%s", r->cwd, hint.p);
	str_clear(&hint);
}

/* Opens a regular file; what is wrong with it is the tool's result. */
static int
fs_open(const struct run *r, const char *path, struct str *real,
    struct stat *st, struct tool_out *out)
{
	struct err e = { 0 };
	int fd;

	if (fs_resolve(r, path, real, &e) < 0) {
		tool_refuse(out, "%s", e.msg);
		return -1;
	}
	fd = file_open(real->p, st, &e);
	if (fd >= 0)
		return fd;
	if (stat(real->p, st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		fs_missing(r, real->p, out);
	else if (file_is_dir(real->p))
		tool_refuse(out, "%s is a directory, not a file. List it with "
		    "Glob or `ls`.", path);
	else
		tool_refuse(out, "%s", e.msg);
	return -1;
}

/* A command has shown the file: notes it as read. */
static void
fs_seen_mark(struct run *r, const char *path, enum fs_extent extent)
{
	struct fs_file f = { .extent = extent };
	struct str real, data;
	struct stat st;

	str_init(&real, 0);
	str_init(&data, 0);
	if (!fs_resolve(r, path, &real, NULL) && !stat(real.p, &st) &&
	    !file_read(real.p, LIM_FILE, &data, NULL)) {
		f.path = real.p;
		f.size = (int64_t)data.len;
		f.mtime = fs_mtime(&st);
		f.hash = core_hash(data.p, data.len, 0);
		fs_seen_put(r, &f);
	}
	str_clear(&real);
	str_clear(&data);
}

/*--- images and PDFs -------------------------------------------------------*/

static void
fs_base64(struct slice in, struct str *out)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *b = (const unsigned char *)in.p;
	size_t i, n;
	uint32_t v;
	char four[4];

	str_reserve(out, in.n / 3 * 4 + 4);
	for (i = 0; i < in.n; i += 3) {
		n = in.n - i < 3 ? in.n - i : 3;
		v = (uint32_t)b[i] << 16 | (n > 1 ? b[i + 1] : 0u) << 8 |
		    (n > 2 ? b[i + 2] : 0u);
		four[0] = digit[v >> 18];
		four[1] = digit[v >> 12 & 63];
		four[2] = n > 1 ? digit[v >> 6 & 63] : '=';
		four[3] = n > 2 ? digit[v & 63] : '=';
		str_add(out, four, 4);
	}
}

/* An unsigned number of n bytes, the high one first; or the low one. */
static uint32_t
fs_number(const char *p, int n, bool low_first)
{
	uint32_t v = 0;
	int i;

	for (i = 0; i < n; i++)
		v = v << 8 | (unsigned char)p[low_first ? n - 1 - i : i];
	return v;
}

/* Width and height of a JPEG stand in its frame header (SOFn). */
static bool
fs_jpeg_size(struct slice s, uint32_t *w, uint32_t *h)
{
	size_t i = 2;
	unsigned char m;

	while (i + 9 <= s.n && s.p[i] == '\377') {
		m = (unsigned char)s.p[i + 1];
		if (m == 0xff) {
			i++;
		} else if (m == 0x01 || (m >= 0xd0 && m <= 0xd8)) {
			i += 2;
		} else if (m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 &&
		    m != 0xcc) {
			*h = fs_number(s.p + i + 5, 2, false);
			*w = fs_number(s.p + i + 7, 2, false);
			return true;
		} else {
			i += 2 + fs_number(s.p + i + 2, 2, false);
		}
	}
	return false;
}

static bool
fs_webp_size(struct slice s, uint32_t *w, uint32_t *h)
{
	uint32_t v;

	if (s.n < 30)
		return false;
	if (!memcmp(s.p + 12, "VP8X", 4)) {
		*w = fs_number(s.p + 24, 3, true) + 1;
		*h = fs_number(s.p + 27, 3, true) + 1;
	} else if (!memcmp(s.p + 12, "VP8L", 4) && s.p[20] == 0x2f) {
		v = fs_number(s.p + 21, 4, true);
		*w = (v & 0x3fff) + 1;
		*h = (v >> 14 & 0x3fff) + 1;
	} else if (!memcmp(s.p + 12, "VP8 ", 4)) {
		*w = fs_number(s.p + 26, 2, true) & 0x3fff;
		*h = fs_number(s.p + 28, 2, true) & 0x3fff;
	} else {
		return false;
	}
	return true;
}

/* The media type of what starts like this; NULL: shown as text. */
static const char *
fs_media(struct slice s)
{
	static const struct {
		const char *magic;
		size_t n;
		const char *type;
	} rows[] = {
		{ "\x89PNG\r\n\x1a\n", 8, "image/png" },
		{ "\xff\xd8\xff", 3, "image/jpeg" },
		{ "GIF87a", 6, "image/gif" },
		{ "GIF89a", 6, "image/gif" },
		{ "%PDF-", 5, "application/pdf" },
	};
	size_t i;

	for (i = 0; i < LENGTH(rows); i++)
		if (s.n >= rows[i].n && !memcmp(s.p, rows[i].magic, rows[i].n))
			return rows[i].type;
	return s.n >= 12 && !memcmp(s.p, "RIFF", 4) &&
	    !memcmp(s.p + 8, "WEBP", 4) ? "image/webp" : NULL;
}

/* Width and height of an image; false: it is broken or cut. */
static bool
fs_image_size(struct slice s, const char *type, uint32_t *w, uint32_t *h)
{
	bool ok = false;

	*w = *h = 0;
	if (!strcmp(type, "image/jpeg")) {
		ok = fs_jpeg_size(s, w, h);
	} else if (!strcmp(type, "image/webp")) {
		ok = fs_webp_size(s, w, h);
	} else if (!strcmp(type, "image/gif") && s.n >= 10) {
		*w = fs_number(s.p + 6, 2, true);
		*h = fs_number(s.p + 8, 2, true);
		ok = true;
	} else if (!strcmp(type, "image/png") && s.n >= 24) {
		*w = fs_number(s.p + 16, 4, false);
		*h = fs_number(s.p + 20, 4, false);
		ok = !memcmp(s.p + 12, "IHDR", 4);
	}
	return ok && *w && *h;
}

/* Pages of a PDF as far as they stand in plain sight. */
static size_t
fs_pdf_pages(struct slice s)
{
	const char *p = s.p, *end = s.p + s.n;
	size_t n = 0;

	while ((p = memmem(p, (size_t)(end - p), "/Type", 5)) != NULL) {
		p += 5;
		while (p < end && *p == ' ')
			p++;
		if (end - p >= 6 && !memcmp(p, "/Page", 5) && p[5] != 's')
			n++;
	}
	return n;
}

/* false: the API would refuse it, and with it every later request. */
static bool
fs_media_fits(const char *path, const char *type, struct slice data,
    struct tool_out *out)
{
	uint32_t w, h;

	if (!strcmp(type, "application/pdf")) {
		if (fs_pdf_pages(data) <= FS_PDF_PAGES)
			return true;
		tool_refuse(out, "%s has more than %d pages. Take its text "
		    "with `pdftotext` in Bash.", path, FS_PDF_PAGES);
	} else if (!fs_image_size(data, type, &w, &h)) {
		tool_refuse(out, "%s starts like an image (%s) but is broken "
		    "or cut.", path, type);
	} else if (w > FS_SIDE || h > FS_SIDE) {
		tool_refuse(out, "%s has %" PRIu32 "x%" PRIu32 " pixels; at "
		    "most %d a side can be shown. Make a smaller copy first.",
		    path, w, h, FS_SIDE);
	} else {
		return true;
	}
	return false;
}

/* Image or PDF as a content block; the file is open at its start. */
static void
fs_read_media(struct run *r, char *path, int fd, const struct stat *st,
    const char *type, struct tool_out *out)
{
	struct fs_file seen = { .path = path, .extent = FS_FULL,
	    .mtime = fs_mtime(st) };
	bool pdf = !strcmp(type, "application/pdf");
	size_t max = pdf ? FS_PDF : FS_IMAGE;
	struct err e = { 0 };
	struct str data;

	str_init(&data, 0);
	if (st->st_size > (off_t)max ||
	    file_read_fd(fd, path, max, &data, &e) < 0) {
		if (st->st_size > (off_t)max || e.code == ERR_LIMIT)
			tool_refuse(out, "%s has %lld bytes; at most %zu can "
			    "be shown. %s", path, (long long)st->st_size, max,
			    pdf ? "Take its text with `pdftotext` in Bash." :
			    "Make a smaller copy first.");
		else
			tool_refuse(out, "%s", e.msg);
	} else if (fs_media_fits(path, type, str_slice(&data), out)) {
		str_addf(&out->blocks, "{\"type\":\"%s\",\"source\":{\"type\":"
		    "\"base64\",\"media_type\":\"%s\",\"data\":\"",
		    pdf ? "document" : "image", type);
		fs_base64(str_slice(&data), &out->blocks);
		str_adds(&out->blocks, "\"}}");
		seen.size = (int64_t)data.len;
		seen.hash = core_hash(data.p, data.len, 0);
		fs_seen_put(r, &seen);
	}
	str_clear(&data);
}

/*--- Read ------------------------------------------------------------------*/

/* The lines of a text file on their way into a result. */
struct fs_page {
	int64_t first;		/* line to start at */
	int64_t limit;		/* lines, or INT64_MAX */
	size_t budget;		/* bytes of the result */
	struct str *out;
	struct str part;	/* of the line being read, up to budget */
	uint64_t part_n;	/* its true length */
	int64_t line;		/* its number */
	int64_t last;		/* the last line that is shown; 0: none */
	uint64_t wanted;	/* bytes of all lines that were asked for */
	uint64_t bytes;		/* of the file, so far */
	uint64_t hash;
	bool full;		/* the budget is used up */
	bool cut;		/* the only line shown is not all of it */
	bool odd;		/* something is no UTF-8 */
	bool end;		/* the whole file was seen */
};

/* Adds a line as it is shown: no CR at the end, no byte-order mark, no NUL. */
static void
fs_page_put(struct fs_page *p, struct slice s)
{
	size_t at = p->out->len, i;

	if (s.n && s.p[s.n - 1] == '\r')
		s.n--;
	if (p->line == 1 && s.n >= 3 && !memcmp(s.p, "\357\273\277", 3)) {
		s.p += 3;
		s.n -= 3;
	}
	p->odd |= !text_utf8_is(s);
	str_addf(p->out, "%" PRId64 "\t", p->line);
	text_utf8_fix(s, p->out);
	for (i = at; i < p->out->len; i++)
		if (!p->out->p[i])
			p->out->p[i] = '?';
	str_addc(p->out, '\n');
	p->last = p->line;
}

/* The line is complete. */
static void
fs_page_line(struct fs_page *p)
{
	struct slice s = str_slice(&p->part);
	bool inside = p->line >= p->first && p->line - p->first < p->limit;

	if (inside) {
		p->wanted += p->part_n + 1;
		if (!p->full && p->out->len + p->part_n <= p->budget) {
			fs_page_put(p, s);
		} else if (!p->full && !p->last) {
			/* A line longer than a page: no range would help. */
			s.n = text_cut(s, p->budget);
			fs_page_put(p, s);
			p->cut = p->full = true;
		} else {
			p->full = true;
		}
	}
	str_reset(&p->part);
	p->part_n = 0;
	p->line++;
}

/* More bytes of the file. */
static void
fs_page_feed(struct fs_page *p, const char *b, size_t n)
{
	const char *end = b + n, *nl;
	size_t k, room;

	p->hash = core_hash(b, n, p->hash);
	p->bytes += n;
	while (b < end) {
		nl = memchr(b, '\n', (size_t)(end - b));
		k = nl ? (size_t)(nl - b) : (size_t)(end - b);
		room = p->full || p->line < p->first ||
		    p->line - p->first >= p->limit ? 0 :
		    p->budget + 4 - p->part.len;
		str_add(&p->part, b, k < room ? k : room);
		p->part_n += k;
		b += k + (nl ? 1 : 0);
		if (nl)
			fs_page_line(p);
	}
}

/* Reads on to the end, or as far as lines are counted. */
static int
fs_page_read(struct fs_page *p, int fd, const char *path, struct tool_out *out)
{
	char buf[32768];
	ssize_t n;

	while (p->bytes < FS_SCAN || !(p->full || p->line - p->first >=
	    p->limit)) {
		n = io_stopped() ? -1 : io_read(fd, buf, sizeof(buf));
		if (n < 0) {
			tool_refuse(out, "cannot read %s: %s", path,
			    io_stopped() ? "stopped" : strerror(errno));
			return -1;
		}
		if (!n) {
			p->end = true;
			if (p->part_n)
				fs_page_line(p);
			return 0;
		}
		fs_page_feed(p, buf, (size_t)n);
	}
	return 0;
}

/* What the reader of a page must know beside its lines. */
static void
fs_page_notes(const struct fs_page *p, const struct stat *st, struct str *out)
{
	int64_t lines = p->line - 1;

	if (!p->bytes) {
		str_adds(out, "<system-reminder>Warning: the file exists but "
		    "the contents are empty.</system-reminder>");
	} else if (!p->last) {
		str_addf(out, "<system-reminder>Warning: the file exists but "
		    "is shorter than the provided offset (%" PRId64 "). The "
		    "file has %" PRId64 " lines.</system-reminder>", p->first,
		    lines);
	} else if (p->cut) {
		str_addf(out, "<system-reminder>PARTIAL view: line %" PRId64
		    " is longer than what can be shown at once; the rest of "
		    "it is left out. Use Grep with -o, or `cut -c` in Bash."
		    "</system-reminder>\n", p->last);
	} else if (p->full) {
		str_addf(out, "<system-reminder>PARTIAL view: lines %" PRId64
		    "-%" PRId64 " of %s%" PRId64 " are shown (the file has "
		    "%lld bytes). Read on with offset %" PRId64 " and a limit, "
		    "or look for what you need with Grep.</system-reminder>\n",
		    p->first, p->last, p->end ? "" : "more than ", lines,
		    (long long)st->st_size, p->last + 1);
	}
	if (p->odd)
		str_adds(out, "<system-reminder>Some bytes are no UTF-8 and "
		    "are shown as U+FFFD; Edit leaves them as they are."
		    "</system-reminder>\n");
	if (out->len && out->p[out->len - 1] == '\n')
		str_cut(out, out->len - 1);
}

/* Notes the view in r->seen. */
static void
fs_page_note(struct run *r, const struct fs_page *p, char *real,
    const struct stat *st)
{
	struct fs_file f = { .path = real, .size = st->st_size,
	    .mtime = fs_mtime(st), .hash = p->end ? p->hash : 0 };

	if (p->bytes && !p->last)
		return;		/* nothing was shown */
	if (p->cut || (p->full && p->limit == INT64_MAX && p->first == 1))
		f.extent = FS_PARTIAL;
	else if (p->first == 1 && p->end && p->last == p->line - 1)
		f.extent = FS_FULL;
	else
		f.extent = FS_RANGE;
	/* Content that grew while we read is not what fstat said. */
	if (p->end && p->bytes != (uint64_t)st->st_size)
		f.size = (int64_t)p->bytes;
	fs_seen_put(r, &f);
}

/* How many bytes a view may have. */
static size_t
fs_budget(const cJSON *in, bool ranged)
{
	int64_t tokens = conf_env_int(
	    "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", 100, 1000000,
	    FS_TOKENS);
	size_t n = (size_t)tokens * FS_TOKEN;

	if (json_flag(in, "allow_large", false))
		return FS_LARGE;
	if (!ranged && n > FS_WHOLE)
		n = FS_WHOLE;
	return n < FS_LARGE ? n : FS_LARGE;
}

static void
fs_read_text(struct run *r, const cJSON *in, int fd, struct str *real,
    const struct stat *st, struct tool_out *out)
{
	bool ranged = json_get(in, "limit") != NULL;
	struct fs_page p = { .first = json_int(in, "offset", 1),
	    .limit = json_int(in, "limit", INT64_MAX), .line = 1,
	    .out = &out->text };

	if (p.first < 1)
		p.first = 1;
	if (p.limit < 1) {
		tool_refuse(out, "limit must be at least 1.");
		return;
	}
	p.budget = fs_budget(in, ranged || p.first > 1);
	str_init(&p.part, 0);
	if (fs_page_read(&p, fd, real->p, out) < 0)
		goto out;
	if (ranged && p.full && !p.cut) {
		tool_refuse(out, "File content (%" PRIu64 " tokens) exceeds "
		    "maximum allowed tokens (%zu). Please use offset and limit "
		    "parameters to read specific portions of the file, or "
		    "Grep to search it.", p.wanted / FS_TOKEN,
		    p.budget / FS_TOKEN);
		goto out;
	}
	fs_page_note(r, &p, real->p, st);
	fs_page_notes(&p, st, &out->text);
out:
	str_clear(&p.part);
}

static void
fs_read_run(struct run *r, const cJSON *in, struct tool_out *out)
{
	const char *path = json_text(in, "file_path"), *type;
	const char *pages = json_text(in, "pages");
	char head[FS_HEAD];
	struct stat st;
	struct str real;
	ssize_t n;
	int fd;

	str_init(&real, 0);
	fd = fs_open(r, path, &real, &st, out);
	if (fd < 0)
		goto out;
	n = io_read(fd, head, sizeof(head));
	if (n < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		tool_refuse(out, "cannot read %s: %s", path, strerror(errno));
		goto out;
	}
	type = fs_media((struct slice){ head, (size_t)n });
	if (type && pages && *pages && !strcmp(type, "application/pdf"))
		tool_refuse(out, "Ranges of pages are not supported. Read the "
		    "PDF without `pages`, or take its text with `pdftotext` in "
		    "Bash.");
	else if (type)
		fs_read_media(r, real.p, fd, &st, type, out);
	else if (n >= 2 && (!memcmp(head, "\377\376", 2) ||
	    !memcmp(head, "\376\377", 2)))
		tool_refuse(out, "%s is UTF-16 text. Convert it with `iconv` "
		    "in Bash.", path);
	else if (memchr(head, 0, (size_t)n))
		tool_refuse(out, "%s is a binary file (%lld bytes); it cannot "
		    "be shown as text.", path, (long long)st.st_size);
	else
		fs_read_text(r, in, fd, &real, &st, out);
out:
	if (fd >= 0)
		close(fd);
	str_clear(&real);
}

static const struct tool fs_read = {
	.name = "Read",
	.desc = "Reads a file. Text comes as `line number<TAB>line`; images "
	    "(png, jpg, gif, webp) and PDFs come as such. A large file comes "
	    "in part: go on with offset and limit. Read a file before you "
	    "change it. Folders cannot be read.",
	.schema = "{\"type\":\"object\",\"properties\":{"
	    "\"file_path\":{\"type\":\"string\",\"description\":"
	    "\"Absolute path\"},"
	    "\"offset\":{\"type\":\"number\",\"description\":"
	    "\"First line, from 1\"},"
	    "\"limit\":{\"type\":\"number\",\"description\":"
	    "\"Number of lines\"},"
	    "\"allow_large\":{\"type\":\"boolean\",\"description\":"
	    "\"Show more than 25,000 tokens at once\"}},"
	    "\"required\":[\"file_path\"],\"additionalProperties\":false}",
	.extra = "pages",
	.flags = TOOL_READ_ONLY | TOOL_ASYNC_OK | TOOL_BARE,
	.subject = SUBJECT_READ,
	.subject_key = "file_path",
	.run = fs_read_run
};

/*--- Write and Edit --------------------------------------------------------*/

#define FS_STALE "File has been modified since read, either by the user or " \
    "by a linter. Read it again before attempting to write it."
#define FS_UNREAD "File has not been read yet. Read it first before writing " \
    "to it."
#define FS_DONE "The file %s has been updated successfully.%s (file state is " \
    "current in your context \342\200\224 no need to Read it back)"

/* A file that is about to be changed. */
struct fs_target {
	const char *path;	/* as it was given */
	struct str real;
	struct str data;	/* its content */
	struct stat st;
	bool exists;
	bool changed;		/* since it was read */
	const struct fs_file *seen; /* NULL: it was not */
};

static void
fs_target_init(struct fs_target *t, const char *path)
{
	memset(t, 0, sizeof(*t));
	t->path = path;
	str_init(&t->real, 0);
	str_init(&t->data, 0);
}

static void
fs_target_clear(struct fs_target *t)
{
	str_clear(&t->real);
	str_clear(&t->data);
}

/* Resolves the path and reads what is there.  -1: the result says why. */
static int
fs_target_load(struct run *r, struct fs_target *t, struct tool_out *out)
{
	struct fs_file now = { 0 };
	struct err e = { 0 };

	if (fs_resolve(r, t->path, &t->real, &e) < 0) {
		tool_refuse(out, "%s", e.msg);
		return -1;
	}
	t->exists = !stat(t->real.p, &t->st);
	if (!t->exists && errno != ENOENT && errno != ENOTDIR) {
		tool_refuse(out, "cannot look at %s: %s", t->path,
		    strerror(errno));
		return -1;
	}
	if (t->exists && S_ISDIR(t->st.st_mode)) {
		tool_refuse(out, "%s is a directory.", t->path);
		return -1;
	}
	t->seen = fs_seen_get(r, t->real.p);
	if (!t->exists)
		return 0;
	if (file_read(t->real.p, LIM_FILE, &t->data, &e) < 0) {
		tool_refuse(out, "%s", e.msg);
		return -1;
	}
	now.size = (int64_t)t->data.len;
	now.mtime = fs_mtime(&t->st);
	now.hash = core_hash(t->data.p, t->data.len, 0);
	t->changed = t->seen && !fs_is_same(t->seen, &now);
	return 0;
}

/* Writes the new content and notes that it is known. */
static int
fs_store(struct run *r, struct fs_target *t, struct slice data,
    enum fs_extent extent, struct tool_out *out)
{
	struct fs_file now = { .path = t->real.p, .extent = extent };
	char *dir = file_dir(t->real.p);
	struct err e = { 0 };
	struct stat st;
	int ret;

	ret = t->exists ? 0 : file_mkdirs(dir, 0777, &e);
	if (!ret)
		ret = file_replace(t->real.p, data, &e);
	if (ret < 0) {
		tool_refuse(out, "%s", e.msg);
	} else if (!stat(t->real.p, &st)) {
		now.size = (int64_t)data.n;
		now.mtime = fs_mtime(&st);
		now.hash = core_hash(data.p, data.n, 0);
		fs_seen_put(r, &now);
	}
	free(dir);
	return ret;
}

static void
fs_write_run(struct run *r, const cJSON *in, struct tool_out *out)
{
	struct slice data = str_of(json_text(in, "content"));
	struct fs_target t;

	fs_target_init(&t, json_text(in, "file_path"));
	if (fs_target_load(r, &t, out) < 0)
		goto out;
	if (t.data.len && !t.seen)
		tool_refuse(out, FS_UNREAD);
	else if (t.data.len && t.seen->extent != FS_FULL)
		tool_refuse(out, "File has only been read in part. Read all of "
		    "it before you overwrite it, or use Edit.");
	else if (t.data.len && t.changed)
		tool_refuse(out, FS_STALE);
	else if (!fs_store(r, &t, data, FS_FULL, out) && t.exists)
		str_addf(&out->text, FS_DONE, t.path, "");
	else if (!out->is_error)
		str_addf(&out->text, "File created successfully at: %s (file "
		    "state is current in your context \342\200\224 no need to "
		    "Read it back)", t.path);
out:
	fs_target_clear(&t);
}

static const struct tool fs_write = {
	.name = "Write",
	.desc = "Writes a whole file and makes missing folders. An existing "
	    "file must have been read in full. To change a part, use Edit.",
	.schema = "{\"type\":\"object\",\"properties\":{"
	    "\"file_path\":{\"type\":\"string\",\"description\":"
	    "\"Absolute path\"},"
	    "\"content\":{\"type\":\"string\"}},"
	    "\"required\":[\"file_path\",\"content\"],"
	    "\"additionalProperties\":false}",
	.flags = TOOL_ASYNC_OK,
	.subject = SUBJECT_EDIT,
	.subject_key = "file_path",
	.run = fs_write_run
};

/* Copies with each CRLF as LF. */
static void
fs_unix(struct slice in, struct str *out)
{
	const char *p = in.p, *end = in.p + in.n, *cr;

	while ((cr = memmem(p, (size_t)(end - p), "\r\n", 2)) != NULL) {
		str_add(out, p, (size_t)(cr - p));
		p = cr + 1;
	}
	str_add(out, p, (size_t)(end - p));
}

/* Copies with each line end as CRLF. */
static void
fs_dos(struct slice in, struct str *out)
{
	struct slice line;
	bool ended;

	while (in.n) {
		text_line(&in, &line);
		ended = line.p[line.n] == '\n';
		if (line.n && line.p[line.n - 1] == '\r' && ended)
			line.n--;
		str_addl(out, line);
		if (ended)
			str_adds(out, "\r\n");
	}
}

/*
 * An edit.  Texts are compared with line ends made equal, since Read shows
 * none; offsets of `text` are turned back into those of the file, so that
 * nothing outside a match is ever touched.
 */
struct fs_edit {
	struct slice file;
	struct str text;	/* file with LF, where it has any CRLF */
	struct str old;		/* with LF */
	struct str fresh;	/* new_string with LF */
	struct str fresh_dos;	/* and with CRLF */
	size_t from;		/* offset in file ... */
	size_t at;		/* ... that belongs to this one in text */
	size_t hits;
};

static void
fs_edit_init(struct fs_edit *d, struct slice file, const char *old,
    const char *fresh)
{
	memset(d, 0, sizeof(*d));
	d->file = file;
	str_init(&d->text, 0);
	str_init(&d->old, 0);
	str_init(&d->fresh, 0);
	str_init(&d->fresh_dos, 0);
	fs_unix(file, &d->text);
	fs_unix(str_of(old), &d->old);
	/* In a file without CRLF one is only put where it is asked for. */
	str_adds(&d->fresh, fresh);
	fs_dos(str_of(fresh), &d->fresh_dos);
}

static void
fs_edit_clear(struct fs_edit *d)
{
	str_clear(&d->text);
	str_clear(&d->old);
	str_clear(&d->fresh);
	str_clear(&d->fresh_dos);
}

/* The next match in text at or behind `at`; false: none. */
static bool
fs_edit_next(const struct fs_edit *d, size_t at, size_t *hit)
{
	const char *p = memmem(d->text.p + at, d->text.len - at, d->old.p,
	    d->old.len);

	*hit = p ? (size_t)(p - d->text.p) : 0;
	return p != NULL;
}

static void
fs_edit_count(struct fs_edit *d)
{
	size_t at = 0, hit;

	for (d->hits = 0; fs_edit_next(d, at, &hit); at = hit + d->old.len)
		d->hits++;
}

/* The offset in file of an offset in text; calls must not go back. */
static size_t
fs_edit_map(struct fs_edit *d, size_t at)
{
	for (; d->at < at; d->at++)
		d->from += d->text.p[d->at] == '\n' &&
		    d->file.p[d->from] == '\r' ? 2 : 1;
	return d->from;
}

/*
 * Whether the line that holds the offset ends in CRLF; the last one, where it
 * has no end, is taken to be like the one before.
 */
static bool
fs_is_dos(struct slice file, size_t from)
{
	const char *nl = memchr(file.p + from, '\n', file.n - from);

	if (!nl)
		nl = memrchr(file.p, '\n', from);
	return nl && nl > file.p && nl[-1] == '\r';
}

/* The file with the first match, or all, replaced. */
static void
fs_edit_apply(struct fs_edit *d, bool all, struct str *out)
{
	size_t at = 0, hit, from, to, done = 0;

	while (fs_edit_next(d, at, &hit)) {
		from = fs_edit_map(d, hit);
		to = fs_edit_map(d, hit + d->old.len);
		str_add(out, d->file.p + done, from - done);
		str_addl(out, str_slice(fs_is_dos(d->file, from) ?
		    &d->fresh_dos : &d->fresh));
		done = to;
		at = hit + d->old.len;
		if (!all)
			break;
	}
	str_add(out, d->file.p + done, d->file.n - done);
}

/* "<text>" for an error, not too long. */
static struct slice
fs_quote(const char *text)
{
	struct slice s = str_of(text);

	s.n = text_cut(s, FS_QUOTE);
	return s;
}

/* Whether the file may be edited as far as it was read; else says why not. */
static bool
fs_edit_may(const struct fs_target *t, const char *old, const char *fresh,
    struct tool_out *out)
{
	if (!strcmp(old, fresh))
		tool_refuse(out, "No changes to make: old_string and "
		    "new_string are exactly the same.");
	else if (!*old && t->data.len)
		tool_refuse(out, "Cannot create new file - file already "
		    "exists. Give the text to replace in old_string.");
	else if (t->data.len && !t->seen)
		tool_refuse(out, FS_UNREAD);
	else if (t->data.len && t->seen->extent == FS_PARTIAL)
		tool_refuse(out, "File has only been read in part (PARTIAL "
		    "view). Read the lines you want to change with offset and "
		    "limit first.");
	else
		return true;
	return false;
}

static void
fs_edit_run(struct run *r, const cJSON *in, struct tool_out *out)
{
	const char *old = json_text(in, "old_string");
	const char *fresh = json_text(in, "new_string");
	bool all = json_flag(in, "replace_all", false);
	struct slice quote = fs_quote(old);
	struct fs_target t;
	struct fs_edit d;
	struct str done;

	fs_target_init(&t, json_text(in, "file_path"));
	str_init(&done, (size_t)LIM_FILE + 1);
	memset(&d, 0, sizeof(d));
	if (fs_target_load(r, &t, out) < 0)
		goto out;
	if (!t.exists && *old) {
		fs_missing(r, t.real.p, out);
		goto out;
	}
	if (!fs_edit_may(&t, old, fresh, out))
		goto out;
	fs_edit_init(&d, str_slice(&t.data), old, fresh);
	if (*old)
		fs_edit_count(&d);
	if (!*old)
		str_adds(&done, fresh);
	else if (!d.hits && t.changed)
		tool_refuse(out, FS_STALE);
	else if (!d.hits)
		tool_refuse(out, "String to replace not found in file.\n"
		    "String: %.*s", (int)quote.n, quote.p);
	else if (d.hits > 1 && !all)
		tool_refuse(out, "Found %zu matches of the string to replace, "
		    "but replace_all is false. To replace all of them set "
		    "replace_all to true; to replace one give more of the text "
		    "around it.\nString: %.*s", d.hits, (int)quote.n, quote.p);
	else
		fs_edit_apply(&d, all, &done);
	if (out->is_error)
		goto out;
	if (done.full) {
		tool_refuse(out, "The file would have more than %u bytes.",
		    LIM_FILE);
	} else if (fs_store(r, &t, str_slice(&done), t.seen && *old ?
	    t.seen->extent : FS_FULL, out) < 0) {
		goto out;
	} else if (!t.exists) {
		str_addf(&out->text, "File created successfully at: %s",
		    t.path);
	} else {
		str_addf(&out->text, FS_DONE, t.path, t.changed ? " It had "
		    "changed since you read it; the other changes were kept." :
		    "");
	}
out:
	if (d.text.max)
		fs_edit_clear(&d);
	str_clear(&done);
	fs_target_clear(&t);
}

static const struct tool fs_edit = {
	.name = "Edit",
	.desc = "Replaces text in a file that has been read. old_string must "
	    "be exactly what the file has (without the line numbers) and occur "
	    "once, unless replace_all is true. An empty old_string makes a new "
	    "file.",
	.schema = "{\"type\":\"object\",\"properties\":{"
	    "\"file_path\":{\"type\":\"string\",\"description\":"
	    "\"Absolute path\"},"
	    "\"old_string\":{\"type\":\"string\"},"
	    "\"new_string\":{\"type\":\"string\"},"
	    "\"replace_all\":{\"type\":\"boolean\",\"description\":"
	    "\"Default false\"}},"
	    "\"required\":[\"file_path\",\"old_string\",\"new_string\"],"
	    "\"additionalProperties\":false}",
	.flags = TOOL_ASYNC_OK | TOOL_BARE,
	.subject = SUBJECT_EDIT,
	.subject_key = "file_path",
	.run = fs_edit_run
};
/*=== [find] Glob, and the walk that Grep shares =============================
 * uses: core str text json io file conf perm tool fs
 *
 * One walk, in the order of names, that never follows a link below its start
 * and leaves out version control's own folders.  Ignore files are honoured as
 * ripgrep does (.ignore over .gitignore over .git/info/exclude over the
 * user's), but only where the caller wants that: Grep does, Glob does not.
 *==========================================================================*/

#define FIND_SECONDS 20		/* then what was found is the result */
#define FIND_SHOWN 100		/* files that Glob names */
#define FIND_IGNORE (1u << 20)	/* bytes of an ignore file */
#define FIND_BRANCHES 1000	/* patterns that braces may make */

/*--- patterns --------------------------------------------------------------*/

enum find_shape {
	FIND_LITERAL,
	FIND_SUFFIX,		/* a star, then a literal: most there are */
	FIND_GLOB
};

/* One pattern of an ignore file, a glob or a file type. */
struct find_rule {
	char *pat;
	enum find_shape shape;
	bool negated;
	bool dir_only;
	bool anchored;		/* against the path, else the name */
};

struct find_rules {
	struct find_rule *v;
	size_t n;
	size_t cap;
};

static bool
find_is_literal(const char *s)
{
	return !s[strcspn(s, "*?[\\")];
}

/* Adds a pattern without `!`; empty ones are passed over. */
static void
find_rules_add(struct find_rules *rules, struct slice pat, bool negated)
{
	struct find_rule r = { .negated = negated };

	if (pat.n && pat.p[pat.n - 1] == '/') {
		r.dir_only = true;
		pat.n--;
	}
	r.anchored = pat.n && memchr(pat.p, '/', pat.n) != NULL;
	if (pat.n && pat.p[0] == '/') {
		pat.p++;
		pat.n--;
	}
	/* "**" + "/x" is x at any depth, which its name alone tells. */
	if (pat.n > 3 && !memcmp(pat.p, "**/", 3) &&
	    !memchr(pat.p + 3, '/', pat.n - 3)) {
		pat.p += 3;
		pat.n -= 3;
		r.anchored = false;
	}
	if (!pat.n)
		return;
	r.pat = core_memdup(pat.p, pat.n);
	r.shape = find_is_literal(r.pat) ? FIND_LITERAL :
	    !r.anchored && r.pat[0] == '*' && find_is_literal(r.pat + 1) ?
	    FIND_SUFFIX : FIND_GLOB;
	rules->v = core_grow(rules->v, rules->n, &rules->cap,
	    sizeof(*rules->v));
	rules->v[rules->n++] = r;
}

static void
find_rules_clear(struct find_rules *rules)
{
	size_t i;

	for (i = 0; i < rules->n; i++)
		free(rules->v[i].pat);
	free(rules->v);
	*rules = (struct find_rules){ 0 };
}

/* Whether it matches; rel is the path below the rule's folder. */
static bool
find_rule_hits(const struct find_rule *r, const char *rel, const char *name,
    bool is_dir)
{
	size_t n, m;

	if (r->dir_only && !is_dir)
		return false;
	if (r->shape == FIND_LITERAL)
		return !strcmp(r->pat, r->anchored ? rel : name);
	if (r->shape == FIND_GLOB)
		return text_glob(r->pat, r->anchored ? rel : name);
	n = strlen(name);
	m = strlen(r->pat) - 1;
	return n >= m && !memcmp(name + n - m, r->pat + 1, m);
}

/* The last rule that matches decides: 1 yes, -1 negated, 0 none matches. */
static int
find_rules_decide(const struct find_rules *rules, const char *rel,
    const char *name, bool is_dir)
{
	size_t i;

	for (i = rules->n; i-- > 0;)
		if (find_rule_hits(&rules->v[i], rel, name, is_dir))
			return rules->v[i].negated ? -1 : 1;
	return 0;
}

/* One line of an ignore file, as gitignore(5) reads it. */
static void
find_rules_line(struct find_rules *rules, struct slice s)
{
	bool negated;

	if (s.n && s.p[s.n - 1] == '\r')
		s.n--;
	while (s.n && s.p[s.n - 1] == ' ' && !(s.n > 1 &&
	    s.p[s.n - 2] == '\\'))
		s.n--;
	if (!s.n || s.p[0] == '#')
		return;
	negated = s.p[0] == '!';
	s.p += negated;
	s.n -= negated;
	find_rules_add(rules, s, negated);
}

/* Adds the rules of dir/name; a file that cannot be read has none. */
static void
find_rules_load(struct find_rules *rules, const char *dir, const char *name)
{
	char *path = file_join(dir, name);
	struct slice s, line;
	struct str text;

	str_init(&text, 0);
	if (!file_read(path, FIND_IGNORE, &text, NULL)) {
		s = str_slice(&text);
		if (s.n >= 3 && !memcmp(s.p, "\357\273\277", 3)) {
			s.p += 3;
			s.n -= 3;
		}
		while (text_line(&s, &line))
			find_rules_line(rules, line);
	}
	str_clear(&text);
	free(path);
}

/*--- the walk --------------------------------------------------------------*/

/* A folder on the way from "/" to where the walk is. */
struct find_level {
	const struct find_level *up;
	size_t base;		/* length of its path */
	bool repo;		/* has .git: rules above it do not reach in */
	bool in_repo;		/* here or above */
	struct find_rules plain; /* .ignore */
	struct find_rules git;	/* the user's, .git/info/exclude, .gitignore */
};

struct find_walk {
	struct run *r;
	struct str path;	/* where it is, absolute */
	size_t root;		/* length of the start's path */
	bool ignores;		/* honour ignore files */
	bool no_hidden;		/* leave out names with a leading dot */
	bool guarded;		/* some rule denies reading some path */
	int64_t deadline;
	bool timed_out;
	bool ended;		/* `file` has enough, or a stop signal came */
	unsigned unread;	/* folders that could not be listed */
	/* Whether to go into the folder w->path. */
	bool (*enter)(struct find_walk *w, void *arg);
	/* 1: this file is wanted whatever is ignored; 0: if not; -1: no. */
	int (*pick)(struct find_walk *w, void *arg, const char *name);
	/* A file, w->path; false: enough. */
	bool (*file)(struct find_walk *w, void *arg);
	void *arg;
};

/* The walk's place relative to its start. */
static const char *
find_rel(const struct find_walk *w)
{
	return w->path.p + w->root + (w->path.p[w->root] == '/');
}

static void
find_level_init(struct find_level *l, const struct find_level *up,
    size_t base, bool repo)
{
	memset(l, 0, sizeof(*l));
	l->up = up;
	l->base = base;
	l->repo = repo;
	l->in_repo = repo || (up && up->in_repo);
}

static void
find_level_clear(struct find_level *l)
{
	find_rules_clear(&l->plain);
	find_rules_clear(&l->git);
}

/* Reads the ignore files of the folder that are there. */
static void
find_level_load(struct find_level *l, const char *dir, bool plain, bool git)
{
	const char *xdg = conf_env("XDG_CONFIG_HOME"), *home = file_home();

	if (plain)
		find_rules_load(&l->plain, dir, ".ignore");
	if (l->repo) {
		if (xdg)
			find_rules_load(&l->git, xdg, "git/ignore");
		else if (home)
			find_rules_load(&l->git, home, ".config/git/ignore");
		find_rules_load(&l->git, dir, ".git/info/exclude");
	}
	if (git && l->in_repo)
		find_rules_load(&l->git, dir, ".gitignore");
}

/* Whether the walk's place is ignored by the files of l and above. */
static bool
find_is_ignored(const struct find_walk *w, const struct find_level *l,
    const char *name, bool is_dir)
{
	const struct find_level *at;
	const char *path = w->path.p;
	int hit = 0;

	for (at = l; at && !hit; at = at->up)
		hit = find_rules_decide(&at->plain, path + at->base + 1, name,
		    is_dir);
	for (at = l; at && !hit; at = at->up) {
		hit = find_rules_decide(&at->git, path + at->base + 1, name,
		    is_dir);
		if (at->repo)
			break;
	}
	return hit > 0;
}

/* What version control keeps for itself. */
static bool
find_is_vcs(const char *name)
{
	static const char *const names[] = { ".git", ".svn", ".hg", ".bzr",
	    ".jj", ".sl" };
	size_t i;

	for (i = 0; i < LENGTH(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* The entries of a folder: a letter for the kind, the name, zero. */
struct find_list {
	struct str bytes;
	char **v;
	size_t n;
	size_t cap;
	bool plain, git, repo;	/* .ignore, .gitignore, .git is there */
};

static void
find_list_clear(struct find_list *l)
{
	str_clear(&l->bytes);
	free(l->v);
}

/* f file, d folder; anything else is of no interest. */
static char
find_kind(int fd, const char *name, unsigned char type)
{
	struct stat st;

	if (type == DT_REG)
		return 'f';
	if (type == DT_DIR)
		return 'd';
	if (type != DT_UNKNOWN || fstatat(fd, name, &st,
	    AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return S_ISREG(st.st_mode) ? 'f' : S_ISDIR(st.st_mode) ? 'd' : 0;
}

static void
find_list_add(struct find_list *l, int fd, const char *name,
    unsigned char type)
{
	char kind = find_kind(fd, name, type);

	l->plain |= !strcmp(name, ".ignore");
	l->git |= !strcmp(name, ".gitignore");
	l->repo |= !strcmp(name, ".git");
	if (!kind || find_is_vcs(name) || !strcmp(name, ".") ||
	    !strcmp(name, ".."))
		return;
	str_addc(&l->bytes, kind);
	str_add(&l->bytes, name, strlen(name) + 1);
	l->n++;
}

static int
find_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a + 1, *(char *const *)b + 1);
}

/* Lists a folder in the order of names. */
static int
find_list_read(struct find_list *l, const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	size_t i, at;

	memset(l, 0, sizeof(*l));
	str_init(&l->bytes, 0);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while ((e = readdir(d)) != NULL)
		find_list_add(l, fd, e->d_name, e->d_type);
	closedir(d);
	l->v = core_alloc(core_mul(l->n, sizeof(*l->v)));
	for (i = at = 0; i < l->n; i++) {
		l->v[i] = l->bytes.p + at;
		at += strlen(l->v[i]) + 1;
	}
	if (l->n > 1)
		qsort(l->v, l->n, sizeof(*l->v), find_by_name);
	return 0;
}

static bool
find_is_over(struct find_walk *w)
{
	if (io_stopped())
		w->ended = true;
	else if (core_now() >= w->deadline)
		w->timed_out = true;
	return w->ended || w->timed_out;
}

static void find_folder(struct find_walk *,
    const struct find_level *);		/* recursion */

/* One entry, w->path. */
static void
find_entry(struct find_walk *w, const struct find_level *l, const char *name,
    bool is_dir)
{
	int pick = is_dir ? 0 : w->pick(w, w->arg, name);

	if (pick < 0 || (w->no_hidden && name[0] == '.') ||
	    (!pick && w->ignores && find_is_ignored(w, l, name, is_dir)))
		return;
	if (is_dir) {
		if (w->enter(w, w->arg))
			find_folder(w, l);
	} else if (!w->guarded || !perm_read_denied(w->r->perm, w->path.p,
	    w->r->cwd)) {
		w->ended |= !w->file(w, w->arg);
	}
}

/* The folder w->path and all below; w->path is the same afterwards. */
static void
find_folder(struct find_walk *w, const struct find_level *up)
{
	struct find_level l;
	struct find_list list;
	size_t i, base = w->path.len == 1 ? 0 : w->path.len;

	if (find_is_over(w))
		return;
	if (find_list_read(&list, w->path.p) < 0) {
		w->unread++;
		find_list_clear(&list);
		return;
	}
	find_level_init(&l, up, base, list.repo);
	if (w->ignores)
		find_level_load(&l, w->path.p, list.plain, list.git);
	for (i = 0; i < list.n && !w->ended && !w->timed_out; i++) {
		str_cut(&w->path, base);
		str_addc(&w->path, '/');
		str_adds(&w->path, list.v[i] + 1);
		if (!w->path.full && w->path.len < PATH_MAX)
			find_entry(w, &l, list.v[i] + 1, *list.v[i] == 'd');
	}
	str_cut(&w->path, base ? base : 1);
	find_level_clear(&l);
	find_list_clear(&list);
}

/*
 * Walks what is below the folder w->path; levels for the folders above it are
 * made first, since their ignore files reach in.
 */
static void
find_walk(struct find_walk *w)
{
	struct find_level *up = NULL, *l;
	size_t i, n = 0;
	char *dir, *git;

	w->root = w->path.len == 1 ? 0 : w->path.len;
	for (i = 0; w->ignores && i < w->root; i++)
		n += w->path.p[i] == '/';
	l = core_alloc(core_mul(n, sizeof(*l)));
	for (i = n = 0; w->ignores && i < w->root; i++) {
		if (w->path.p[i] != '/')
			continue;
		dir = core_memdup(w->path.p, i ? i : 1);
		git = file_join(dir, ".git");
		find_level_init(&l[n], up, i, file_exists(git));
		find_level_load(&l[n], dir, true, true);
		up = &l[n++];
		free(git);
		free(dir);
	}
	find_folder(w, up);
	while (n > 0)
		find_level_clear(&l[--n]);
	free(l);
}

/*--- what both tools need --------------------------------------------------*/

/*
 * The real path of what a tool is to search: `path`, or where Bash stands.
 * false: it is not there, and the result says so.
 */
static bool
find_start(struct run *r, const char *path, struct str *real, struct stat *st,
    struct tool_out *out)
{
	struct err e = { 0 };

	if (fs_resolve(r, path && *path ? path : r->cwd, real, &e) < 0) {
		tool_refuse(out, "%s", e.msg);
		return false;
	}
	if (stat(real->p, st) < 0) {
		tool_refuse(out, "Directory does not exist: %s. Note: your "
		    "current working directory is %s.", path ? path : r->cwd,
		    r->cwd);
		return false;
	}
	return true;
}

/* The walk's defaults; deny rules are only asked where there are any. */
static void
find_walk_init(struct find_walk *w, struct run *r, const char *start)
{
	int64_t s = conf_env_int("CLAUDE_CODE_GLOB_TIMEOUT_SECONDS", 1, 3600,
	    FIND_SECONDS);

	memset(w, 0, sizeof(*w));
	w->r = r;
	str_init(&w->path, PATH_MAX);
	str_adds(&w->path, start);
	w->deadline = io_in(s * 1000);
	w->guarded = perm_denies_reads(r->perm);
}

/* How a path is shown: relative to where Bash stands, if below that. */
static const char *
find_shown(const struct run *r, const char *path)
{
	return file_relative(r->cwd, path);
}

/* What the result must say about a walk that is not complete. */
static void
find_notes(const struct find_walk *w, struct str *out)
{
	if (w->timed_out)
		str_addf(out, "\n(The search ran out of time; these results "
		    "are partial. Use a narrower path or pattern.)");
	if (w->unread)
		str_addf(out, "\n(%u folder%s could not be read.)", w->unread,
		    w->unread > 1 ? "s" : "");
}

/*--- Glob ------------------------------------------------------------------*/

struct find_hit {
	char *path;
	int64_t mtime;
};

struct find_glob_state {
	struct find_rules rules;
	struct find_hit *v;	/* pruned to the newest now and then */
	size_t n;
	size_t cap;
	bool more;		/* some were dropped */
};

/*
 * Whether something below the folder `dir` may match the anchored pattern:
 * its segments match the pattern's as far as they go.
 */
static bool
find_may_hold(const char *pat, const char *dir)
{
	char seg[NAME_MAX + 1], want[PATH_MAX];
	size_t n, m;

	for (;; dir += n + (dir[n] == '/'), pat += m + 1) {
		if (!*dir)
			return true;
		n = strcspn(dir, "/");
		m = strcspn(pat, "/");
		if (m == 2 && !memcmp(pat, "**", 2))
			return true;
		if (!pat[m] || n >= sizeof(seg) || m >= sizeof(want))
			return false;
		memcpy(seg, dir, n);
		seg[n] = 0;
		memcpy(want, pat, m);
		want[m] = 0;
		if (!text_glob(want, seg))
			return false;
	}
}

static bool
find_glob_enter(struct find_walk *w, void *arg)
{
	struct find_glob_state *g = arg;
	size_t i;

	for (i = 0; i < g->rules.n; i++)
		if (!g->rules.v[i].anchored ||
		    find_may_hold(g->rules.v[i].pat, find_rel(w)))
			return true;
	return false;
}

static int
find_glob_pick(struct find_walk *w, void *arg, const char *name)
{
	struct find_glob_state *g = arg;

	return find_rules_decide(&g->rules, find_rel(w), name, false) > 0 ?
	    0 : -1;
}

/* Newest first, then by path. */
static int
find_by_age(const void *a, const void *b)
{
	const struct find_hit *x = a, *y = b;

	if (x->mtime != y->mtime)
		return x->mtime < y->mtime ? 1 : -1;
	return strcmp(x->path, y->path);
}

/* Sorts, and drops what is behind the first `keep`. */
static void
find_glob_prune(struct find_glob_state *g, size_t keep)
{
	if (g->n > 1)
		qsort(g->v, g->n, sizeof(*g->v), find_by_age);
	while (g->n > keep) {
		free(g->v[--g->n].path);
		g->more = true;
	}
}

static bool
find_glob_file(struct find_walk *w, void *arg)
{
	struct find_glob_state *g = arg;
	struct stat st;

	if (lstat(w->path.p, &st) < 0)
		return true;	/* gone meanwhile */
	g->v = core_grow(g->v, g->n, &g->cap, sizeof(*g->v));
	g->v[g->n++] = (struct find_hit){ core_strdup(w->path.p),
	    fs_mtime(&st) };
	if (g->n >= 16 * FIND_SHOWN)
		find_glob_prune(g, FIND_SHOWN);
	return true;
}

/* Whether a segment of the pattern is "..". */
static bool
find_climbs(const char *pat)
{
	size_t n;

	for (;; pat += n + 1) {
		n = strcspn(pat, "/");
		if (n == 2 && !memcmp(pat, "..", 2))
			return true;
		if (!pat[n])
			return false;
	}
}

/*
 * The pattern's branches as rules.  It must stay below the start: that is
 * the path that permission was asked for.
 */
static bool
find_glob_rules(struct find_glob_state *g, const char *pat, const char *root,
    struct tool_out *out)
{
	struct strv list = { 0 };
	struct slice s;
	size_t i;
	bool whole;

	if (*pat == '/' && !file_inside(root, pat)) {
		tool_refuse(out, "The pattern must be relative. Give the "
		    "folder as `path`.");
		return false;
	}
	if (*pat == '/')
		pat = file_relative(root, pat);
	while (pat[0] == '.' && pat[1] == '/')
		pat += 1 + strspn(pat + 1, "/");
	whole = text_braces(pat, FIND_BRANCHES, &list);
	for (i = 0; i < list.n; i++) {
		s = str_of(list.v[i]);
		if (find_climbs(s.p)) {
			tool_refuse(out, "The pattern must not go up with "
			    "`..`. Give the folder as `path`.");
			break;
		}
		if (s.n && s.p[s.n - 1] == '/') {
			/* A folder: all that is in it. */
			str_list_take(&list, file_join(s.p, "**"));
			continue;
		}
		find_rules_add(&g->rules, s, false);
	}
	if (!out->is_error && (!g->rules.n || !whole))
		tool_refuse(out, "The pattern %s.", whole ? "is empty" :
		    "has too many alternatives");
	str_list_clear(&list);
	return !out->is_error;
}

static void
find_glob_print(struct run *r, const struct find_walk *w,
    struct find_glob_state *g, struct str *out)
{
	size_t i;

	find_glob_prune(g, FIND_SHOWN);
	for (i = 0; i < g->n; i++)
		str_addf(out, "%s%s", i ? "\n" : "",
		    find_shown(r, g->v[i].path));
	if (!g->n)
		str_adds(out, "No files found");
	if (g->more)
		str_adds(out, "\n(Results are truncated. Consider using a more "
		    "specific path or pattern.)");
	find_notes(w, out);
}

static void
find_glob_run(struct run *r, const cJSON *in, struct tool_out *out)
{
	const char *ignore = conf_env("CLAUDE_CODE_GLOB_NO_IGNORE");
	const char *hidden = conf_env("CLAUDE_CODE_GLOB_HIDDEN");
	struct find_glob_state g = { 0 };
	struct find_walk w;
	struct stat st;
	struct str real;
	size_t i;

	str_init(&real, 0);
	if (!find_start(r, json_text(in, "path"), &real, &st, out))
		goto out;
	if (!S_ISDIR(st.st_mode)) {
		tool_refuse(out, "%s is not a directory.", real.p);
		goto out;
	}
	if (!find_glob_rules(&g, json_text(in, "pattern"), real.p, out))
		goto out;
	find_walk_init(&w, r, real.p);
	w.ignores = ignore && text_bool(ignore) == 0;
	w.no_hidden = hidden && text_bool(hidden) == 0;
	w.enter = find_glob_enter;
	w.pick = find_glob_pick;
	w.file = find_glob_file;
	w.arg = &g;
	find_walk(&w);
	find_glob_print(r, &w, &g, &out->text);
	str_clear(&w.path);
out:
	for (i = 0; i < g.n; i++)
		free(g.v[i].path);
	free(g.v);
	find_rules_clear(&g.rules);
	str_clear(&real);
}

static const struct tool find_glob = {
	.name = "Glob",
	.desc = "Finds files by name: `*.ts`, `src/**/*.{c,h}`. Newest first, "
	    "at most 100; hidden and ignored files too, but nothing in .git.",
	.schema = "{\"type\":\"object\",\"properties\":{"
	    "\"pattern\":{\"type\":\"string\"},"
	    "\"path\":{\"type\":\"string\",\"description\":"
	    "\"Folder; default: current\"}},"
	    "\"required\":[\"pattern\"],\"additionalProperties\":false}",
	.flags = TOOL_READ_ONLY | TOOL_ASYNC_OK,
	.subject = SUBJECT_READ,
	.subject_key = "path",
	.run = find_glob_run
};
/*=== [grep] Grep ============================================================
 * uses: core str err text json io file proc perm tool fs find
 *
 * Searches whole buffers with PCRE2's machine code and only then looks for
 * the bounds of lines; a plain text is searched without it.  The outcome is
 * ripgrep's: lines, ignore files, hidden files but not .git, no binaries.
 * Large trees are searched by processes side by side; their answers are put
 * together in the order of the walk, so the outcome is always the same.
 *==========================================================================*/

#define GREP_WINDOW (256u << 10) /* bytes of a file in memory ... */
#define GREP_LINE (64u << 20)	/* ... and at most, for a line or multiline */
#define GREP_COLUMNS 2000	/* bytes of a line that are shown */
#define GREP_CONTEXT 1000	/* lines of -A, -B, -C */
#define GREP_LIMIT 250		/* lines or files shown unless asked for */
#define GREP_TEXT (4u << 20)	/* bytes of matching lines that are kept */
#define GREP_HEAD 8192		/* a NUL in here: a binary file */
#define GREP_BATCH 32		/* files of one message to a worker ... */
#define GREP_BATCH_BYTES 4096	/* ... and bytes of their paths */
#define GREP_ALONE 256		/* files searched before workers start */
#define GREP_WORKERS 4		/* at most, and no more than processors */
#define GREP_AHEAD 2		/* batches that a worker has to itself */

enum grep_mode {
	GREP_FILES,
	GREP_CONTENT,
	GREP_COUNT
};

/* A call as it was asked for, compiled. */
struct grep {
	struct run *r;
	enum grep_mode mode;
	bool icase, multiline, numbers, only;
	int64_t before, after;
	int64_t limit, offset;	/* limit 0: none */
	uint64_t want;		/* lines of text that can be needed */
	const char *start;	/* real path, a folder or a file */
	int64_t deadline;
	struct find_rules include, exclude, types;

	pcre2_code *code;	/* for bytes, and text that is all ASCII */
	pcre2_code *utf;	/* for other text; NULL: not needed or yet */
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	bool jit, utf_jit;
	bool needs_utf;		/* a character may have several bytes */
	struct str pattern;	/* as compiled */
	struct str literal;	/* the pattern is only this text */
	size_t rare[2];		/* offsets of its rarest bytes */
};

/*--- the pattern -----------------------------------------------------------*/

/*
 * Outside multiline, a pattern sees one line at a time, as with ripgrep; we
 * search whole buffers.  So what could match a line end is narrowed: [^a] to
 * [^\na], \s to [^\S\n], \W and \D likewise.  What still crosses one (a
 * positive class with \s in it) is found and tried again on its line alone.
 */
struct grep_rewrite {
	const char *p;
	struct str *out;
	bool narrow;
	bool needs_utf;
	bool newline;		/* asks for a line end by name */
};

/* Goes behind a class that starts at w->p, copying it. */
static void
grep_rewrite_class(struct grep_rewrite *w)
{
	const char *p = w->p + 1;
	const char *end;

	str_addc(w->out, '[');
	if (*p == '^') {
		w->needs_utf = true;
		str_adds(w->out, w->narrow ? "^\\n" : "^");
		p++;
	}
	/* Where they come first, these two mean themselves. */
	if (*p == ']' || *p == '-') {
		str_addc(w->out, '\\');
		str_addc(w->out, *p++);
	}
	while (*p && *p != ']') {
		if (*p == '[' && (p[1] == ':' || p[1] == '.' || p[1] == '=') &&
		    (end = strchr(p + 2, ']')) != NULL && end[-1] == p[1]) {
			str_add(w->out, p, (size_t)(end - p) + 1);
			p = end + 1;
			continue;
		}
		if (*p == '\\' && p[1]) {
			w->needs_utf |= isalpha((unsigned char)p[1]) != 0;
			w->newline |= p[1] == 'n' && w->narrow &&
			    w->p[1] != '^';
			str_addc(w->out, *p++);
		}
		w->needs_utf |= (unsigned char)*p >= 0x80;
		str_addc(w->out, *p++);
	}
	w->p = p;
	if (*p) {
		str_addc(w->out, ']');
		w->p++;
	}
}

/* An escape outside a class, at w->p. */
static void
grep_rewrite_escape(struct grep_rewrite *w)
{
	static const struct { char letter; const char *narrow; } rows[] = {
		{ 's', "[^\\S\\n]" }, { 'W', "[^\\w\\n]" },
		{ 'D', "[^\\d\\n]" }, { 'H', "[^\\h\\n]" },
	};
	const char *end;
	size_t i;

	if (w->p[1] == 'Q') {
		end = strstr(w->p, "\\E");
		i = end ? (size_t)(end - w->p) + 2 : strlen(w->p);
		w->needs_utf = true;
		str_add(w->out, w->p, i);
		w->p += i;
		return;
	}
	w->needs_utf |= isalpha((unsigned char)w->p[1]) != 0;
	w->newline |= w->p[1] == 'n';
	for (i = 0; i < LENGTH(rows) && w->narrow; i++) {
		if (w->p[1] == rows[i].letter) {
			str_adds(w->out, rows[i].narrow);
			w->p += 2;
			return;
		}
	}
	str_add(w->out, w->p, w->p[1] ? 2 : 1);
	w->p += w->p[1] ? 2 : 1;
}

static void
grep_rewrite(struct grep_rewrite *w)
{
	while (*w->p) {
		if (*w->p == '[') {
			grep_rewrite_class(w);
		} else if (*w->p == '\\') {
			grep_rewrite_escape(w);
		} else {
			w->needs_utf |= *w->p == '.' ||
			    (unsigned char)*w->p >= 0x80;
			w->newline |= *w->p == '\n';
			str_addc(w->out, *w->p++);
		}
	}
}

/* The text that a pattern without operators stands for; false: it has some. */
static bool
grep_literal(const char *p, struct str *out)
{
	for (; *p; p++) {
		if (*p == '\\' && p[1] && ispunct((unsigned char)p[1]))
			p++;
		else if (strchr("\\^$.[]|()?*+{}\n", *p))
			return false;
		str_addc(out, *p);
	}
	return out->len > 0;
}

/* The higher, the rarer a byte is in source text. */
static int
grep_rarity(unsigned char c)
{
	static const char common[] = " etaoinsrlcdpumfhgb_yvwkx\t\n(),.;=-/*\"";
	const char *at = c ? strchr(common, c) : NULL;

	return at ? (int)(at - common) : c >= 'a' && c <= 'z' ? 40 :
	    c >= 0x80 ? 45 : 60;
}

static void
grep_pick_rare(struct grep *g)
{
	const char *s = g->literal.p;
	size_t i, n = g->literal.len, a = 0, b = n > 1;

	for (i = 0; i < n; i++) {
		if (grep_rarity((unsigned char)s[i]) >
		    grep_rarity((unsigned char)s[a])) {
			b = a;
			a = i;
		} else if (i != a && (a == b ||
		    grep_rarity((unsigned char)s[i]) >
		    grep_rarity((unsigned char)s[b]))) {
			b = i;
		}
	}
	g->rare[0] = a;
	g->rare[1] = b;
}

/*
 * One of the two programs, as machine code where *jit says so afterwards (jit
 * NULL: only to see).  NULL: the pattern is wrong, *error and *at say how.
 */
static pcre2_code *
grep_compile_one(const struct grep *g, bool utf, bool *jit, int *error,
    size_t *at)
{
	/* ^ also where a line is empty and we look at nothing behind it. */
	uint32_t flags = PCRE2_MULTILINE | PCRE2_ALT_CIRCUMFLEX |
	    PCRE2_NEVER_BACKSLASH_C;
	pcre2_compile_context *c = pcre2_compile_context_create(NULL);
	pcre2_code *code;

	if (!c)
		core_die("out of memory");
	pcre2_set_newline(c, PCRE2_NEWLINE_LF);
	flags |= utf ? PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF :
	    PCRE2_NEVER_UTF;
	if (g->icase)
		flags |= PCRE2_CASELESS;
	if (g->multiline)
		flags |= PCRE2_DOTALL;
	code = pcre2_compile((PCRE2_SPTR)g->pattern.p, g->pattern.len, flags,
	    error, at, c);
	pcre2_compile_context_free(c);
	if (jit)
		*jit = code && !pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	return code;
}

/* The program for text with other than ASCII, made when it is first met. */
static pcre2_code *
grep_utf(struct grep *g)
{
	int error;
	size_t at;

	if (!g->utf)
		g->utf = grep_compile_one(g, true, &g->utf_jit, &error, &at);
	return g->utf;
}

/* "regex parse error", with the place. */
static void
grep_complain(const char *pattern, int error, size_t at, struct tool_out *out)
{
	PCRE2_UCHAR why[160];

	if (pcre2_get_error_message(error, why, LENGTH(why)) < 0)
		why[0] = 0;
	if (at > strlen(pattern))
		at = strlen(pattern);
	tool_refuse(out, "regex parse error at offset %zu: %s\n    %s\n    "
	    "%*s^\nThe syntax is Perl's; quote literal brackets, braces and "
	    "other operators with a backslash.", at, (const char *)why,
	    pattern, (int)at, "");
}

static bool
grep_compile(struct grep *g, const char *pattern, struct tool_out *out)
{
	struct grep_rewrite w = { .p = pattern, .out = &g->pattern,
	    .narrow = !g->multiline };
	int error;
	size_t at;

	if (!g->icase && grep_literal(pattern, &g->literal)) {
		grep_pick_rare(g);
		return true;
	}
	str_reset(&g->literal);
	/* As it was written first: errors then name the right offset. */
	str_adds(&g->pattern, pattern);
	g->code = grep_compile_one(g, true, NULL, &error, &at);
	if (!g->code) {
		grep_complain(pattern, error, at, out);
		return false;
	}
	pcre2_code_free(g->code);
	str_reset(&g->pattern);
	grep_rewrite(&w);
	if (w.newline && !g->multiline) {
		tool_refuse(out, "The pattern has a line end in it; set "
		    "multiline to true for that.");
		g->code = NULL;
		return false;
	}
	g->needs_utf = w.needs_utf;
	g->code = grep_compile_one(g, false, &g->jit, &error, &at);
	if (!g->code && !(g->code = grep_compile_one(g, true, &g->jit, &error,
	    &at))) {
		grep_complain(g->pattern.p, error, at, out);
		return false;
	}
	g->match = pcre2_match_data_create(1, NULL);
	g->context = pcre2_match_context_create(NULL);
	g->stack = pcre2_jit_stack_create(32768, 1 << 20, NULL);
	if (!g->match || !g->context)
		core_die("out of memory");
	if (g->stack)
		pcre2_jit_stack_assign(g->context, NULL, g->stack);
	return true;
}

/*--- searching a buffer ----------------------------------------------------*/

typedef unsigned char grep_vec __attribute__((vector_size(16)));

static bool
grep_vec_any(grep_vec v)
{
	uint64_t half[2];

	memcpy(half, &v, sizeof(half));
	return (half[0] | half[1]) != 0;
}

/*
 * Where the literal is in p[0..n): both of its rarest bytes are compared with
 * sixteen places at a time.  GCC's vectors are SSE2 or NEON.
 */
static const char *
grep_find_literal(const struct grep *g, const char *p, size_t n)
{
	const char *s = g->literal.p;
	size_t m = g->literal.len, a = g->rare[0], b = g->rare[1], i, k;
	grep_vec va, vb, x, y;

	if (n < m)
		return NULL;
	memset(&va, s[a], sizeof(va));
	memset(&vb, s[b], sizeof(vb));
	for (i = 0; i + 16 + m - 1 <= n; i += 16) {
		memcpy(&x, p + i + a, sizeof(x));
		memcpy(&y, p + i + b, sizeof(y));
		x = (grep_vec)(x == va) & (grep_vec)(y == vb);
		if (!grep_vec_any(x))
			continue;
		for (k = 0; k < 16; k++)
			if (x[k] && !memcmp(p + i + k, s, m))
				return p + i + k;
	}
	return memmem(p + i, n - i, s, m);
}

static bool
grep_is_ascii(const char *p, size_t n)
{
	uint64_t v, all = 0;
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		memcpy(&v, p + i, 8);
		all |= v;
		if ((i & 4095) == 4088 && (all & 0x8080808080808080u))
			return false;
	}
	for (; i < n; i++)
		all |= (uint64_t)(unsigned char)p[i] << 56;
	return !(all & 0x8080808080808080u);
}

static size_t
grep_count_lines(const char *p, size_t n)
{
	size_t i = 0, lines = 0, k;
	grep_vec nl, x, sum;
	unsigned rounds;

	memset(&nl, '\n', sizeof(nl));
	while (i + 16 <= n) {
		memset(&sum, 0, sizeof(sum));
		for (rounds = 0; rounds < 255 && i + 16 <= n; rounds++) {
			memcpy(&x, p + i, sizeof(x));
			sum -= (grep_vec)(x == nl);
			i += 16;
		}
		for (k = 0; k < 16; k++)
			lines += sum[k];
	}
	for (; i < n; i++)
		lines += p[i] == '\n';
	return lines;
}

/* A file being searched; offsets in what follows count from its start. */
struct grep_scan {
	struct grep *g;
	const char *name;	/* as it is shown */
	struct str *out;	/* the lines that match */
	pcre2_code *code;
	bool jit;
	const char *buf;	/* the window */
	uint64_t base;		/* where it starts */
	size_t len;
	uint64_t counted;	/* line numbers are known up to here ... */
	uint64_t line;		/* ... where this many line ends were passed */
	uint64_t printed;	/* end of what was printed; 0: nothing yet */
	int64_t after;		/* lines still to print behind it */
	uint64_t hits;		/* lines that match */
	uint64_t lines;		/* lines in out */
	int error;		/* PCRE2's */
	bool full;		/* enough lines */
};

/* The next match in buf[from, to); true: at *ms to *me. */
static bool
grep_match(struct grep_scan *s, size_t from, size_t to, size_t *ms,
    size_t *me)
{
	struct grep *g = s->g;
	const char *hit;
	size_t *v;
	int rc;

	if (g->literal.len) {
		hit = grep_find_literal(g, s->buf + from, to - from);
		if (!hit)
			return false;
		*ms = (size_t)(hit - s->buf);
		*me = *ms + g->literal.len;
		return true;
	}
	rc = (s->jit ? pcre2_jit_match : pcre2_match)(s->code,
	    (PCRE2_SPTR)s->buf, to, from, 0, g->match, g->context);
	if (rc < 0) {
		if (rc != PCRE2_ERROR_NOMATCH)
			s->error = rc;
		return false;
	}
	v = pcre2_get_ovector_pointer(g->match);
	*ms = v[0];
	*me = v[1] > v[0] ? v[1] : v[0];
	return true;
}

/* Start of the line that holds the offset, not before `low`. */
static size_t
grep_line_start(const struct grep_scan *s, size_t low, size_t at)
{
	const char *nl = at > low ? memrchr(s->buf + low, '\n', at - low) :
	    NULL;

	return nl ? (size_t)(nl - s->buf) + 1 : low;
}

/* End of that line: its newline, or `high`. */
static size_t
grep_line_end(const struct grep_scan *s, size_t at, size_t high)
{
	const char *nl = at < high ? memchr(s->buf + at, '\n', high - at) :
	    NULL;

	return nl ? (size_t)(nl - s->buf) : high;
}

/* A line's text, no longer than can be read, around the match at ms. */
static void
grep_put_text(struct grep_scan *s, size_t from, size_t to, size_t ms)
{
	struct slice t = { s->buf + from, to - from };
	size_t at = s->out->len, skip = 0, i;

	if (t.n && t.p[t.n - 1] == '\r')
		t.n--;
	if (t.n > GREP_COLUMNS) {
		skip = ms - from > GREP_COLUMNS / 2 ?
		    text_cut_up(t, ms - from - GREP_COLUMNS / 2) : 0;
		if (skip > t.n)
			skip = t.n;
		t.p += skip;
		t.n -= skip;
		t.n = text_cut(t, GREP_COLUMNS);
		if (skip)
			str_adds(s->out, "[...]");
	}
	text_utf8_fix(t, s->out);
	for (i = at; i < s->out->len; i++)
		if (!s->out->p[i])
			s->out->p[i] = '?';
	if (to - from > GREP_COLUMNS + 1)
		str_addf(s->out, "[... line of %zu bytes cut]", to - from);
	str_addc(s->out, '\n');
	s->full |= ++s->lines >= s->g->want || s->out->len > GREP_TEXT;
}

/* "path:12:" or, for context, "path-12-". */
static void
grep_put_place(struct grep_scan *s, size_t at, char sep)
{
	uint64_t abs = s->base + at;

	str_adds(s->out, s->name);
	str_addc(s->out, sep);
	if (!s->g->numbers)
		return;
	s->line += grep_count_lines(s->buf + (s->counted - s->base),
	    (size_t)(abs - s->counted));
	s->counted = abs;
	str_addf(s->out, "%" PRIu64 "%c", s->line + 1, sep);
}

/* Prints the line [from, to) whole. */
static void
grep_put_line(struct grep_scan *s, size_t from, size_t to, size_t ms,
    char sep)
{
	if (s->full)
		return;
	grep_put_place(s, from, sep);
	grep_put_text(s, from, to, ms);
	s->printed = s->base + to + 1;
}

/* Lines behind the last printed one, as far as they are due, up to `to`. */
static void
grep_put_after(struct grep_scan *s, size_t to)
{
	size_t at, end;

	while (s->after > 0 && s->printed < s->base + to) {
		at = (size_t)(s->printed - s->base);
		end = grep_line_end(s, at, to);
		grep_put_line(s, at, end, at, '-');
		s->after--;
		if (s->full)
			return;
	}
}

/* Lines before the match in the line at ls, and the mark of a gap. */
static void
grep_put_before(struct grep_scan *s, size_t ls)
{
	size_t low = s->printed > s->base ? (size_t)(s->printed - s->base) : 0;
	size_t at = ls, end;
	int64_t n;

	for (n = s->g->before; n > 0 && at > low; n--)
		at = grep_line_start(s, low, at - 1);
	if ((s->g->before || s->g->after) && s->printed &&
	    s->base + at > s->printed) {
		str_adds(s->out, "--\n");
		s->full |= ++s->lines >= s->g->want;
	}
	for (; at < ls; at = end + 1) {
		end = grep_line_end(s, at, ls);
		grep_put_line(s, at, end, at, '-');
	}
}

/* Each match of the line on a line of its own. */
static void
grep_put_only(struct grep_scan *s, size_t ls, size_t le, size_t ms, size_t me)
{
	size_t next, n;

	do {
		if (me > ms && !s->full) {
			grep_put_place(s, ls, ':');
			grep_put_text(s, ms, me, ms);
			s->printed = s->base + le + 1;
		}
		n = text_utf8(s->buf + me, le > me ? le - me : 0);
		next = me > ms ? me : me + (n ? n : 1);
	} while (!s->full && next < le && grep_match(s, next, le, &ms, &me));
}

/* A match in the lines [ls, le). */
static void
grep_hit(struct grep_scan *s, size_t ls, size_t le, size_t ms, size_t me)
{
	size_t at, end;

	s->hits++;
	if (s->g->mode != GREP_CONTENT)
		return;
	if (s->g->only) {
		grep_put_only(s, ls, le, ms, me);
		return;
	}
	grep_put_after(s, ls);
	grep_put_before(s, ls);
	for (at = ls; at <= le && !s->full; at = end + 1) {
		end = s->g->multiline ? grep_line_end(s, at, le) : le;
		grep_put_line(s, at, end, at <= ms ? ms : at, ':');
	}
	s->after = s->g->after;
}

/*
 * All matches in buf[from, to), which ends behind a line end or with the
 * file.  In multiline mode that is the whole file.
 */
static void
grep_window(struct grep_scan *s, size_t from, size_t to)
{
	size_t at = from, ms, me, ls, le;

	while (at < to && !s->full && grep_match(s, at, to, &ms, &me)) {
		if (ms >= to && s->buf[to - 1] == '\n')
			break;		/* empty, behind the last line */
		ls = grep_line_start(s, at, ms);
		le = grep_line_end(s, s->g->multiline && me > ms ? me - 1 : ms,
		    to);
		/* Across lines: does the line match by itself? */
		if (!s->g->multiline && me > le &&
		    (!grep_match(s, ls, le, &ms, &me) || s->error)) {
			at = le + 1;
			continue;
		}
		grep_hit(s, ls, le, ms, me);
		if (s->g->mode == GREP_FILES)
			return;
		at = le + 1;
	}
	if (s->g->mode == GREP_CONTENT)
		grep_put_after(s, to);
}

/*--- files -----------------------------------------------------------------*/

/* A worker's memory of its own; the buffer serves all its files. */
struct grep_buffer {
	char *p;
	size_t cap;
	size_t len;
	bool bad;		/* the file could not be read to its end */
};

/* What a batch of files gave, beside the records. */
struct grep_report {
	int32_t error;		/* PCRE2's; the search is over then */
	uint32_t large;		/* files too large for multiline */
	uint32_t binary;
	uint32_t unread;
	uint32_t late;		/* time ran out within a file */
};

/* One file with matches; its path and text follow. */
struct grep_record {
	int64_t mtime;		/* ns */
	uint64_t hits;
	uint32_t path;		/* bytes */
	uint32_t text;
	uint32_t lines;
	uint32_t full;		/* there may be more */
};

/* Fills the buffer from fd; false at the end of the file (or a fault). */
static bool
grep_fill(struct grep_buffer *b, int fd)
{
	ssize_t n;

	if (b->len == b->cap) {
		b->cap = b->cap ? core_mul(b->cap, 2) : GREP_WINDOW;
		b->p = core_realloc(b->p, b->cap);
	}
	while (b->len < b->cap) {
		n = io_read(fd, b->p + b->len, b->cap - b->len);
		b->bad |= n < 0 && errno != EAGAIN;
		if (n <= 0)
			return false;
		b->len += (size_t)n;
	}
	return true;
}

static void
grep_choose(struct grep_scan *s)
{
	struct grep *g = s->g;

	s->code = g->code;
	s->jit = g->jit;
	if (g->literal.len || !g->needs_utf || grep_is_ascii(s->buf, s->len) ||
	    !grep_utf(g))
		return;
	s->code = g->utf;
	s->jit = g->utf_jit;
}

/* Lines to keep in the window for -B when it moves on from `to`. */
static size_t
grep_keep_from(const struct grep_scan *s, size_t to)
{
	size_t at = to;
	int64_t n;

	for (n = s->g->mode == GREP_CONTENT ? s->g->before : 0; n > 0 && at;
	    n--)
		at = grep_line_start(s, 0, at - 1);
	return at;
}

/*
 * Searches an open file, window by window.  What was searched leaves the
 * window, but for the lines that -B may still want.  Whether some was left.
 */
static bool
grep_stream(struct grep_scan *s, struct grep_buffer *b, int fd, bool more)
{
	size_t from = 0, to, keep;

	for (;; more = grep_fill(b, fd)) {
		if (more && s->g->multiline && b->cap < GREP_LINE)
			continue;
		s->buf = b->p;
		s->len = b->len;
		to = more ? grep_line_start(s, from, b->len) : b->len;
		if (to == from && more && b->cap < GREP_LINE)
			continue;	/* a line longer than the window */
		if (to == from)
			to = b->len;
		grep_choose(s);
		grep_window(s, from, to);
		keep = grep_keep_from(s, to);
		if (s->g->mode == GREP_CONTENT && s->counted < s->base + keep) {
			s->line += grep_count_lines(b->p + (s->counted -
			    s->base), (size_t)(s->base + keep - s->counted));
			s->counted = s->base + keep;
		}
		memmove(b->p, b->p + keep, b->len - keep);
		b->len -= keep;
		s->base += keep;
		from = to - keep;
		if (!more || s->full || s->error || io_stopped() ||
		    (s->g->mode == GREP_FILES && s->hits) ||
		    core_now() >= s->g->deadline)
			return more;
	}
}

/* Searches one file and adds its record where something matches. */
static void
grep_file(struct grep *g, struct grep_buffer *b, const char *path,
    struct str *records, struct grep_report *report)
{
	struct grep_record rec = { 0 };
	struct grep_scan s = { .g = g, .name = find_shown(g->r, path) };
	struct stat st;
	struct str text;
	bool more;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
	    O_NOCTTY);

	if (fd < 0) {
		report->unread += errno != ENOENT && errno != ELOOP;
		return;
	}
	b->len = 0;
	b->bad = false;
	str_init(&text, 2 * GREP_TEXT);
	s.out = &text;
	more = grep_fill(b, fd);
	if (memchr(b->p, 0, b->len < GREP_HEAD ? b->len : GREP_HEAD)) {
		report->binary++;
	} else if (g->multiline && !fstat(fd, &st) &&
	    st.st_size > (off_t)GREP_LINE) {
		report->large++;
	} else if (b->len && grep_stream(&s, b, fd, more)) {
		report->late |= core_now() >= g->deadline;
	}
	report->unread += b->bad;
	if (s.error)
		report->error = s.error;
	if (s.hits && !fstat(fd, &st)) {
		rec.mtime = fs_mtime(&st);
		rec.hits = s.hits;
		rec.path = (uint32_t)strlen(path);
		rec.text = (uint32_t)text.len;
		rec.lines = (uint32_t)s.lines;
		rec.full = s.full;
		str_add(records, &rec, sizeof(rec));
		str_add(records, path, rec.path);
		str_addl(records, str_slice(&text));
	}
	str_clear(&text);
	close(fd);
}

/* Searches the files of a batch (paths, each with its zero). */
static void
grep_batch(struct grep *g, struct grep_buffer *b, struct slice paths,
    struct str *records, struct grep_report *report)
{
	size_t n;

	for (; paths.n && !report->error && !io_stopped(); paths.p += n,
	    paths.n -= n) {
		n = strlen(paths.p) + 1;
		grep_file(g, b, paths.p, records, report);
	}
}

/*--- side by side ----------------------------------------------------------*/

/* Head of a message, either way; the batch's paths or records follow. */
struct grep_head {
	uint32_t batch;
	uint32_t bytes;
	struct grep_report report;
};

struct grep_worker {
	struct proc_child c;
	struct str in;
	int pending;
};

/* What came of a batch. */
struct grep_answer {
	struct str records;
	uint64_t lines;
	bool have;
};

/* The search of a tree on its way. */
struct grep_pool {
	struct grep *g;
	struct find_walk *walk;
	struct grep_buffer buffer;	/* for what we search ourselves */
	struct str batch;	/* being filled */
	size_t files;		/* in it */
	size_t total;		/* all so far */
	struct grep_worker w[GREP_WORKERS];
	int workers;
	struct grep_answer *answer;	/* by batch */
	size_t n;
	size_t cap;
	size_t whole;		/* batches from the first on that are there */
	uint64_t lines;		/* and the lines they have */
	uint64_t bytes;
	struct grep_report report;
	struct err e;		/* a worker broke off */
};

/* Whether the records are whole; counts their lines. */
static bool
grep_count_records(struct slice s, uint64_t *lines)
{
	struct grep_record rec;

	while (s.n >= sizeof(rec)) {
		memcpy(&rec, s.p, sizeof(rec));
		s.p += sizeof(rec);
		s.n -= sizeof(rec);
		if (s.n < rec.path || s.n - rec.path < rec.text)
			return false;
		s.p += rec.path + rec.text;
		s.n -= rec.path + rec.text;
		*lines += rec.lines;
	}
	return !s.n;
}

/* Takes in the answer to a batch; ends the walk where enough is known. */
static void
grep_take(struct grep_pool *p, size_t batch, struct str *records,
    const struct grep_report *report)
{
	uint64_t lines = 0;
	struct grep_answer *a;

	if (batch >= p->n || p->answer[batch].have ||
	    !grep_count_records(str_slice(records), &lines)) {
		err_set(&p->e, ERR_PARSE, "a part of the search gave a broken "
		    "answer");
		return;
	}
	str_take(&p->answer[batch].records, records);
	p->answer[batch].have = true;
	if (report->error)
		p->report.error = report->error;
	p->report.large += report->large;
	p->report.binary += report->binary;
	p->report.unread += report->unread;
	p->walk->timed_out |= report->late != 0;
	p->answer[batch].lines = lines;
	for (; p->whole < p->n && p->answer[p->whole].have; p->whole++) {
		a = &p->answer[p->whole];
		p->bytes += a->records.len;
		p->lines += a->lines;
	}
	if (p->report.error || (p->g->mode == GREP_CONTENT &&
	    (p->lines >= p->g->want || p->bytes >= GREP_TEXT)))
		p->walk->ended = true;
}

/* In a worker: answers batches until its end of the socket closes. */
static int
grep_worker(void *arg, int fd)
{
	struct grep *g = arg;
	struct grep_buffer b = { 0 };
	struct grep_head h;
	struct str in, records;
	char buf[16384];
	ssize_t n;

	str_init(&in, 0);
	str_init(&records, 0);
	while (io_wait1(fd, POLLIN, IO_FOREVER, NULL) > 0 &&
	    (n = io_read(fd, buf, sizeof(buf))) > 0) {
		str_add(&in, buf, (size_t)n);
		while (in.len >= sizeof(h)) {
			memcpy(&h, in.p, sizeof(h));
			if (in.len - sizeof(h) < h.bytes)
				break;
			str_reset(&records);
			grep_batch(g, &b, (struct slice){ in.p + sizeof(h),
			    h.bytes }, &records, &h.report);
			str_remove(&in, 0, sizeof(h) + h.bytes);
			h.bytes = (uint32_t)records.len;
			if (io_write(fd, &h, sizeof(h), NULL) < 0 ||
			    io_write(fd, records.p, records.len, NULL) < 0)
				return 1;
		}
	}
	return 0;
}

/* Starts as many workers as there are processors, if more than one. */
static void
grep_start(struct grep_pool *p)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	struct grep_worker *w;

	if (n > GREP_WORKERS)
		n = GREP_WORKERS;
	for (; n > 1 && p->workers < n; p->workers++) {
		w = &p->w[p->workers];
		if (proc_fork(&w->c, grep_worker, p->g, NULL) < 0)
			return;
		str_init(&w->in, 0);
	}
}

/* Reads what a worker has to say. */
static void
grep_listen(struct grep_pool *p, struct grep_worker *w)
{
	struct grep_head h;
	struct str records;
	char buf[65536], how[48];
	ssize_t n;

	while ((n = io_read(w->c.fd, buf, sizeof(buf))) > 0)
		str_add(&w->in, buf, (size_t)n);
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		io_close(&w->c.fd);
		proc_end(&w->c);
		proc_how(w->c.status, how);
		err_set(&p->e, ERR_IO, "a part of the search broke off (%s)",
		    how);
		p->walk->ended = true;
	}
	while (w->in.len >= sizeof(h)) {
		memcpy(&h, w->in.p, sizeof(h));
		if (w->in.len - sizeof(h) < h.bytes)
			return;
		str_init(&records, 0);
		str_add(&records, w->in.p + sizeof(h), h.bytes);
		str_remove(&w->in, 0, sizeof(h) + h.bytes);
		w->pending--;
		grep_take(p, h.batch, &records, &h.report);
		str_clear(&records);
	}
}

/* Waits for news of the workers; false: time is up. */
static bool
grep_wait(struct grep_pool *p)
{
	struct io_want want[GREP_WORKERS];
	int i;

	for (i = 0; i < p->workers; i++)
		want[i] = (struct io_want){ p->w[i].c.fd, POLLIN, 0 };
	if (io_wait(want, (size_t)p->workers, p->walk->deadline, NULL) <= 0) {
		find_is_over(p->walk);
		return false;
	}
	for (i = 0; i < p->workers; i++)
		if (want[i].ready && p->w[i].c.fd >= 0)
			grep_listen(p, &p->w[i]);
	return !p->e.code;
}

/* The worker with the least to do; NULL: all have enough. */
static struct grep_worker *
grep_idlest(struct grep_pool *p)
{
	struct grep_worker *best = NULL;
	int i;

	for (i = 0; i < p->workers; i++)
		if (p->w[i].c.fd >= 0 && p->w[i].pending < GREP_AHEAD &&
		    (!best || p->w[i].pending < best->pending))
			best = &p->w[i];
	return best;
}

/* Has the batch searched, here or by a worker. */
static void
grep_dispatch(struct grep_pool *p)
{
	struct grep_head h = { .batch = (uint32_t)p->n,
	    .bytes = (uint32_t)p->batch.len };
	struct grep_worker *w = NULL;
	struct str records;

	if (!p->batch.len)
		return;
	p->answer = core_grow(p->answer, p->n, &p->cap, sizeof(*p->answer));
	memset(&p->answer[p->n], 0, sizeof(*p->answer));
	str_init(&p->answer[p->n++].records, 0);
	if (!p->workers && p->total >= GREP_ALONE)
		grep_start(p);
	while (p->workers && !(w = grep_idlest(p)) && grep_wait(p))
		continue;
	if (w) {
		w->pending++;
		if (io_write(w->c.fd, &h, sizeof(h), &p->e) < 0 ||
		    io_write(w->c.fd, p->batch.p, p->batch.len, &p->e) < 0)
			p->walk->ended = true;
	} else if (!p->workers) {
		str_init(&records, 0);
		grep_batch(p->g, &p->buffer, str_slice(&p->batch), &records,
		    &h.report);
		grep_take(p, h.batch, &records, &h.report);
		str_clear(&records);
	}
	str_reset(&p->batch);
	p->files = 0;
}

/* A file that the walk has come to. */
static bool
grep_found(struct find_walk *w, void *arg)
{
	struct grep_pool *p = arg;

	str_add(&p->batch, w->path.p, w->path.len + 1);
	p->total++;
	if (++p->files >= GREP_BATCH || p->batch.len >= GREP_BATCH_BYTES)
		grep_dispatch(p);
	return !w->ended;
}

/* Waits for the rest, unless enough is known, and ends the workers. */
static void
grep_finish(struct grep_pool *p)
{
	int i;

	if (!p->walk->ended && !p->walk->timed_out)
		grep_dispatch(p);
	while (p->workers && p->whole < p->n && !p->walk->ended &&
	    !p->walk->timed_out && grep_wait(p))
		continue;
	for (i = 0; i < p->workers; i++) {
		proc_end(&p->w[i].c);
		str_clear(&p->w[i].in);
	}
}

static void
grep_pool_clear(struct grep_pool *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		str_clear(&p->answer[i].records);
	free(p->answer);
	free(p->buffer.p);
	str_clear(&p->batch);
}

/*--- which files -----------------------------------------------------------*/

/* Names of the usual file types, as ripgrep has them. */
static const struct { const char *name, *globs; } grep_types[] = {
	{ "asm", "*.asm *.s *.S" },
	{ "bazel", "*.bazel *.bzl BUILD WORKSPACE" },
	{ "c", "*.c *.h *.C *.H" },
	{ "clojure", "*.clj *.cljc *.cljs *.cljx" },
	{ "cmake", "*.cmake CMakeLists.txt" },
	{ "cpp", "*.C *.H *.cc *.cpp *.cxx *.hh *.hpp *.hxx *.inl *.h" },
	{ "cs", "*.cs" },
	{ "csharp", "*.cs" },
	{ "css", "*.css *.scss" },
	{ "csv", "*.csv" },
	{ "cuda", "*.cu *.cuh" },
	{ "dart", "*.dart" },
	{ "docker", "*Dockerfile*" },
	{ "elixir", "*.ex *.exs *.eex *.heex *.leex" },
	{ "elm", "*.elm" },
	{ "erlang", "*.erl *.hrl" },
	{ "fortran", "*.f *.F *.f77 *.f90 *.F90 *.f95 *.pfo" },
	{ "fsharp", "*.fs *.fsx *.fsi" },
	{ "go", "*.go" },
	{ "gradle", "*.gradle *.gradle.kts gradle.properties" },
	{ "graphql", "*.graphql *.graphqls" },
	{ "groovy", "*.groovy *.gradle" },
	{ "h", "*.h *.hh *.hpp" },
	{ "haskell", "*.hs *.lhs *.cpphs *.c2hs *.hsc" },
	{ "html", "*.htm *.html *.ejs" },
	{ "java", "*.java *.jsp *.jspx *.properties" },
	{ "js", "*.js *.jsx *.mjs *.cjs *.vue" },
	{ "json", "*.json composer.lock *.sarif" },
	{ "jsonl", "*.jsonl" },
	{ "julia", "*.jl" },
	{ "jupyter", "*.ipynb *.jpynb" },
	{ "kotlin", "*.kt *.kts" },
	{ "less", "*.less" },
	{ "lisp", "*.el *.lisp *.lsp *.jl *.sc *.scm" },
	{ "log", "*.log" },
	{ "lua", "*.lua" },
	{ "make", "[Mm]akefile GNUmakefile [Mm]akefile.* *.mk *.mak" },
	{ "markdown", "*.md *.markdown *.mdown *.mdx *.mkd" },
	{ "md", "*.md *.markdown *.mdown *.mdx *.mkd" },
	{ "nix", "*.nix" },
	{ "objc", "*.h *.m" },
	{ "ocaml", "*.ml *.mli *.mll *.mly" },
	{ "perl", "*.pl *.pm *.PL *.plh *.plx *.t" },
	{ "php", "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.phtml *.pht" },
	{ "protobuf", "*.proto" },
	{ "ps", "*.ps1 *.psm1 *.psd1 *.cdxml *.ps1xml" },
	{ "py", "*.py *.pyi" },
	{ "python", "*.py *.pyi" },
	{ "r", "*.R *.r *.Rmd *.rmd *.Rnw" },
	{ "ruby", "*.rb *.gemspec *.rbw Gemfile Rakefile config.ru" },
	{ "rust", "*.rs" },
	{ "sass", "*.sass *.scss" },
	{ "scala", "*.scala *.sbt" },
	{ "sh", "*.sh *.bash *.zsh *.ksh *.csh *.tcsh .bashrc .bash_profile "
	    ".profile .zshrc .zshenv" },
	{ "solidity", "*.sol" },
	{ "sql", "*.sql *.psql" },
	{ "svelte", "*.svelte" },
	{ "swift", "*.swift" },
	{ "tcl", "*.tcl" },
	{ "tex", "*.tex *.ltx *.cls *.sty *.bib *.dtx *.ins" },
	{ "tf", "*.tf *.tfvars *.tf.json *.tfrc terraform.rc" },
	{ "toml", "*.toml Cargo.lock" },
	{ "ts", "*.ts *.tsx *.cts *.mts" },
	{ "txt", "*.txt" },
	{ "typescript", "*.ts *.tsx *.cts *.mts" },
	{ "vim", "*.vim .vimrc vimrc .gvimrc gvimrc" },
	{ "vue", "*.vue" },
	{ "xml", "*.xml *.dtd *.xsd *.xsl *.xslt *.rng *.sch *.xhtml "
	    "*.xml.dist" },
	{ "yaml", "*.yaml *.yml" },
	{ "zig", "*.zig" },
};

/* The type's globs; false: there is no such type, and the result says so. */
static bool
grep_use_type(struct grep *g, const char *name, struct tool_out *out)
{
	struct slice s, one;
	size_t i;

	for (i = 0; i < LENGTH(grep_types); i++) {
		if (strcmp(grep_types[i].name, name))
			continue;
		s = str_of(grep_types[i].globs);
		while (text_item(&s, ' ', &one))
			find_rules_add(&g->types, one, false);
		return true;
	}
	tool_refuse(out, "unrecognized file type: %s. Use `glob` instead.",
	    name);
	return false;
}

/* Length of the glob at s: up to a blank or comma outside braces. */
static size_t
grep_glob_length(const char *s)
{
	size_t i;
	int depth = 0;

	for (i = 0; s[i]; i++) {
		if (s[i] == '\\' && s[i + 1])
			i++;
		else if (s[i] == '{' || s[i] == '[')
			depth++;
		else if (s[i] == '}' || s[i] == ']')
			depth--;
		else if (depth <= 0 && (s[i] == ',' || text_is_space(s[i])))
			break;
	}
	return i;
}

/* Globs to include, and with `!` to exclude. */
static bool
grep_use_globs(struct grep *g, const char *s, struct tool_out *out)
{
	struct strv list;
	struct slice one;
	char *glob;
	size_t i, n;
	bool not;

	for (; *s; s += n + (s[n] != 0)) {
		n = grep_glob_length(s);
		not = *s == '!';
		glob = core_memdup(s + not, n - not);
		list = (struct strv){ 0 };
		if (!text_braces(glob, FIND_BRANCHES, &list))
			tool_refuse(out, "The glob has too many "
			    "alternatives.");
		for (i = 0; i < list.n; i++) {
			one = str_of(list.v[i]);
			if (one.n > 2 && !memcmp(one.p, "./", 2)) {
				one.p += 2;
				one.n -= 2;
			}
			if (one.n > 1 && one.p[one.n - 1] == '/') {
				str_list_take(&list, file_join(one.p, "**"));
				continue;
			}
			find_rules_add(not ? &g->exclude : &g->include, one,
			    false);
		}
		str_list_clear(&list);
		free(glob);
	}
	return !out->is_error;
}

/* Globs with a slash may count from the start or from where Bash stands. */
static bool
grep_globbed(const struct grep *g, const struct find_rules *rules,
    const struct find_walk *w, const char *name)
{
	return find_rules_decide(rules, find_rel(w), name, false) > 0 ||
	    find_rules_decide(rules, file_relative(g->r->cwd, w->path.p),
	    name, false) > 0;
}

static int
grep_pick(struct find_walk *w, void *arg, const char *name)
{
	const struct grep *g = ((struct grep_pool *)arg)->g;

	if ((g->exclude.n && grep_globbed(g, &g->exclude, w, name)) ||
	    (g->include.n && !grep_globbed(g, &g->include, w, name)) ||
	    (g->types.n && !find_rules_decide(&g->types, "", name, false)))
		return -1;
	return g->include.n > 0;
}

static bool
grep_enter(struct find_walk *w, void *arg)
{
	const struct grep *g = ((struct grep_pool *)arg)->g;

	return !g->exclude.n || !grep_globbed(g, &g->exclude, w,
	    file_name(w->path.p));
}

/*--- results ---------------------------------------------------------------*/

/* Every record of the batches that are there, in order. */
struct grep_iter {
	const struct grep_pool *p;
	size_t batch;
	struct slice s;
	struct grep_record rec;
	const char *path;	/* not terminated */
	const char *text;
};

static bool
grep_next(struct grep_iter *it)
{
	while (it->s.n < sizeof(it->rec)) {
		if (it->batch >= it->p->n)
			return false;
		it->s = str_slice(&it->p->answer[it->batch++].records);
	}
	memcpy(&it->rec, it->s.p, sizeof(it->rec));
	it->path = it->s.p + sizeof(it->rec);
	it->text = it->path + it->rec.path;
	it->s.n -= sizeof(it->rec) + it->rec.path + it->rec.text;
	it->s.p = it->text + it->rec.text;
	return true;
}

/* Whether the k-th line or file (from 0) is on the page that is shown. */
static bool
grep_on_page(const struct grep *g, uint64_t k)
{
	return k >= (uint64_t)g->offset &&
	    (!g->limit || k - (uint64_t)g->offset < (uint64_t)g->limit);
}

static void
grep_put_page(const struct grep *g, bool cut, struct str *out)
{
	if (cut || g->offset)
		str_addf(out, "\n[Showing results with pagination = limit: "
		    "%" PRId64 ", offset: %" PRId64 "]", g->limit, g->offset);
}

/* The lines that match; how many there were before the page was cut. */
static void
grep_print_lines(const struct grep_pool *p, struct str *out)
{
	const struct grep *g = p->g;
	struct grep_iter it = { .p = p };
	struct slice s, line;
	uint64_t k = 0;
	bool more = false;

	while (grep_next(&it)) {
		s = (struct slice){ it.text, it.rec.text };
		if ((g->before || g->after) && k) {
			/* a gap, as within a file */
			if (out->len && grep_on_page(g, k))
				str_adds(out, "--\n");
			k++;
		}
		while (text_line(&s, &line)) {
			if (grep_on_page(g, k)) {
				str_addl(out, line);
				str_addc(out, '\n');
			} else {
				more |= k >= (uint64_t)g->offset;
			}
			k++;
		}
	}
	if (!out->len)
		str_adds(out, k ? "No entries at this offset" :
		    "No matches found");
	else
		str_cut(out, out->len - 1);
	if (p->bytes >= GREP_TEXT && !more)
		str_adds(out, "\n(There are more matches than are kept; use a "
		    "narrower pattern or path.)");
	if (k)
		grep_put_page(g, more, out);
}

static int
grep_by_age(const void *a, const void *b)
{
	const struct grep_iter *x = a, *y = b;
	size_t n = x->rec.path < y->rec.path ? x->rec.path : y->rec.path;
	int r;

	if (x->rec.mtime != y->rec.mtime)
		return x->rec.mtime < y->rec.mtime ? 1 : -1;
	r = memcmp(x->path, y->path, n);
	return r ? r : x->rec.path < y->rec.path ? -1 :
	    x->rec.path > y->rec.path;
}

/* Files with matches, the newest first; or each with its count, in order. */
static void
grep_print_files(const struct grep_pool *p, struct str *out)
{
	const struct grep *g = p->g;
	struct grep_iter it = { .p = p }, *v = NULL;
	size_t n = 0, cap = 0, i;
	uint64_t hits = 0;
	char *path;

	while (grep_next(&it)) {
		v = core_grow(v, n, &cap, sizeof(*v));
		v[n++] = it;
		hits += it.rec.hits;
	}
	if (g->mode == GREP_FILES && n > 1)
		qsort(v, n, sizeof(*v), grep_by_age);
	if (n && g->mode == GREP_FILES)
		str_addf(out, "Found %zu file%s", n, n > 1 ? "s" : "");
	for (i = 0; i < n; i++) {
		if (!grep_on_page(g, i))
			continue;
		path = core_memdup(v[i].path, v[i].rec.path);
		str_addf(out, "%s%s", out->len ? "\n" : "",
		    find_shown(g->r, path));
		if (g->mode == GREP_COUNT)
			str_addf(out, ":%" PRIu64, v[i].rec.hits);
		free(path);
	}
	if (!n) {
		str_adds(out, g->mode == GREP_FILES ? "No files found" :
		    "No matches found");
	} else {
		if ((uint64_t)g->offset >= n)
			str_addf(out, "%sNo entries at this offset",
			    out->len ? "\n" : "");
		if (g->mode == GREP_COUNT)
			str_addf(out, "\n\nFound %" PRIu64 " total occurrence%s"
			    " across %zu file%s.", hits, hits > 1 ? "s" : "",
			    n, n > 1 ? "s" : "");
		grep_put_page(g, g->limit && n > (uint64_t)(g->offset +
		    g->limit), out);
	}
	free(v);
}

static void
grep_print(const struct grep_pool *p, bool one_file, struct tool_out *out)
{
	PCRE2_UCHAR why[160];

	if (p->report.error) {
		if (pcre2_get_error_message(p->report.error, why,
		    LENGTH(why)) < 0)
			why[0] = 0;
		tool_refuse(out, "The search was given up: %s. Make the "
		    "pattern simpler: nested repeats like (a+)+ need too many "
		    "tries.", (const char *)why);
		return;
	}
	if (p->e.code && p->e.code != ERR_ABORT) {
		tool_refuse(out, "%s", p->e.msg);
		return;
	}
	if (p->g->mode == GREP_CONTENT)
		grep_print_lines(p, &out->text);
	else
		grep_print_files(p, &out->text);
	if (one_file && p->report.binary)
		str_adds(&out->text, "\n(The file is binary and was not "
		    "searched.)");
	if (p->report.large)
		str_addf(&out->text, "\n(%u files over %u MiB were left out; "
		    "they can be searched without multiline.)",
		    p->report.large, GREP_LINE >> 20);
	if (p->report.unread)
		str_addf(&out->text, "\n(%u file%s could not be read.)",
		    p->report.unread, p->report.unread > 1 ? "s" : "");
	find_notes(p->walk, &out->text);
	tool_limit(out, LIM_RESULT);
}

/*--- the tool --------------------------------------------------------------*/

static int64_t
grep_number(const cJSON *in, const char *key, int64_t absent, int64_t max)
{
	int64_t v = json_int(in, key, absent);

	return v < 0 ? 0 : v > max ? max : v;
}

/* Reads the call; false: the result says what is wrong with it. */
static bool
grep_parse(struct grep *g, const cJSON *in, struct tool_out *out)
{
	const char *mode = json_text(in, "output_mode");
	const char *type = json_text(in, "type");
	const char *glob = json_text(in, "glob");
	int64_t around = grep_number(in, "-C", grep_number(in, "context", 0,
	    GREP_CONTEXT), GREP_CONTEXT);

	g->mode = !mode || !strcmp(mode, "files_with_matches") ? GREP_FILES :
	    !strcmp(mode, "count") ? GREP_COUNT : GREP_CONTENT;
	g->icase = json_flag(in, "-i", false);
	g->multiline = json_flag(in, "multiline", false);
	g->numbers = json_flag(in, "-n", true);
	g->only = json_flag(in, "-o", false);
	g->before = grep_number(in, "-B", around, GREP_CONTEXT);
	g->after = grep_number(in, "-A", around, GREP_CONTEXT);
	g->limit = grep_number(in, "head_limit", GREP_LIMIT, 1000000);
	g->offset = grep_number(in, "offset", 0, 1000000000);
	if (g->only)
		g->before = g->after = 0;
	/* One more than is shown tells that there are more. */
	g->want = g->limit ? (uint64_t)(g->offset + g->limit + 1) :
	    UINT64_MAX;
	if ((glob && !grep_use_globs(g, glob, out)) ||
	    (type && *type && !grep_use_type(g, type, out)))
		return false;
	return grep_compile(g, json_text(in, "pattern"), out);
}

static void
grep_clear(struct grep *g)
{
	find_rules_clear(&g->include);
	find_rules_clear(&g->exclude);
	find_rules_clear(&g->types);
	pcre2_code_free(g->code);
	pcre2_code_free(g->utf);
	pcre2_match_data_free(g->match);
	pcre2_match_context_free(g->context);
	pcre2_jit_stack_free(g->stack);
	str_clear(&g->pattern);
	str_clear(&g->literal);
}

/* Searches a tree or one file and prints what came of it. */
static void
grep_search(struct grep *g, bool is_dir, struct tool_out *out)
{
	struct grep_pool *p = core_zalloc(sizeof(*p));
	struct find_walk w;

	find_walk_init(&w, g->r, g->start);
	w.ignores = true;
	w.enter = grep_enter;
	w.pick = grep_pick;
	w.file = grep_found;
	w.arg = p;
	p->g = g;
	p->walk = &w;
	g->deadline = w.deadline;
	str_init(&p->batch, 0);
	if (is_dir)
		find_walk(&w);
	else if (!w.guarded || !perm_read_denied(g->r->perm, g->start,
	    g->r->cwd))
		grep_found(&w, p);
	grep_finish(p);
	grep_print(p, !is_dir, out);
	grep_pool_clear(p);
	str_clear(&w.path);
	free(p);
}

static void
grep_run(struct run *r, const cJSON *in, struct tool_out *out)
{
	struct grep g = { .r = r };
	struct stat st;
	struct str real;

	str_init(&real, 0);
	str_init(&g.pattern, 0);
	str_init(&g.literal, 0);
	if (find_start(r, json_text(in, "path"), &real, &st, out) &&
	    grep_parse(&g, in, out)) {
		g.start = real.p;
		if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))
			grep_search(&g, S_ISDIR(st.st_mode), out);
		else
			tool_refuse(out, "%s is neither a folder nor a "
			    "regular file.", real.p);
	}
	grep_clear(&g);
	str_clear(&real);
}

static const struct tool grep_tool = {
	.name = "Grep",
	.desc = "Searches file contents for a regular expression (Perl syntax; "
	    "quote literal braces and brackets). Leaves out binary files, "
	    ".git and what .gitignore names, unless `path` is that file.",
	.schema = "{\"type\":\"object\",\"properties\":{"
	    "\"pattern\":{\"type\":\"string\"},"
	    "\"path\":{\"type\":\"string\",\"description\":"
	    "\"Folder or file; default: current folder\"},"
	    "\"glob\":{\"type\":\"string\",\"description\":"
	    "\"Files to search: *.{ts,tsx}\"},"
	    "\"type\":{\"type\":\"string\",\"description\":"
	    "\"File type: js, py, go...\"},"
	    "\"output_mode\":{\"type\":\"string\",\"enum\":["
	    "\"files_with_matches\",\"content\",\"count\"],\"description\":"
	    "\"Default files_with_matches\"},"
	    "\"-A\":{\"type\":\"number\",\"description\":\"Lines after\"},"
	    "\"-B\":{\"type\":\"number\",\"description\":\"Lines before\"},"
	    "\"-C\":{\"type\":\"number\",\"description\":\"Both\"},"
	    "\"context\":{\"type\":\"number\",\"description\":\"As -C\"},"
	    "\"-n\":{\"type\":\"boolean\",\"description\":"
	    "\"Line numbers; default true\"},"
	    "\"-i\":{\"type\":\"boolean\",\"description\":\"Ignore case\"},"
	    "\"-o\":{\"type\":\"boolean\",\"description\":"
	    "\"Only what matched\"},"
	    "\"head_limit\":{\"type\":\"number\",\"description\":"
	    "\"Lines or files shown; default 250, 0: all\"},"
	    "\"offset\":{\"type\":\"number\",\"description\":"
	    "\"Lines or files to skip\"},"
	    "\"multiline\":{\"type\":\"boolean\",\"description\":"
	    "\"Match across lines; . matches line ends\"}},"
	    "\"required\":[\"pattern\"],\"additionalProperties\":false}",
	.flags = TOOL_READ_ONLY | TOOL_ASYNC_OK,
	.subject = SUBJECT_READ,
	.subject_key = "path",
	.run = grep_run
};
/*=== [bash] Bash ============================================================
 * uses: core str text json file proc conf tool fs
 *
 * Each command is a shell of its own, in a session of its own, without a
 * terminal and without input.  Only the folder it ends in is carried over, and
 * only within the working folders; it tells that folder through a descriptor
 * that is not its output.  No start-up file of any shell is read.
 *==========================================================================*/

#define BASH_TIMEOUT 120000	/* ms */
#define BASH_TIMEOUT_MAX 600000
#define BASH_FAILED 10000	/* bytes of output shown of what failed */
#define BASH_RAW 4		/* times what is shown: kept before cleaning */

/* A shell that was found. */
struct bash_shell {
	char *path;
	bool busybox;		/* to be called as `busybox sh` */
	int fd;			/* where it tells its folder */
};

/* Whether the path is of a shell whose syntax models write. */
static bool
bash_is_known(const char *path)
{
	return !strcmp(file_name(path), "bash") ||
	    !strcmp(file_name(path), "zsh");
}

/* Finds a shell; false: there is none.  The path is the caller's. */
static bool
bash_find(struct bash_shell *s)
{
	const char *asked = conf_env("CLAUDE_CODE_SHELL");
	const char *login = conf_env("SHELL");
	struct rlimit rl;

	*s = (struct bash_shell){ 0 };
	if (asked)
		s->path = proc_find(asked);
	if (!s->path)
		s->path = proc_find("bash");
	if (!s->path && login && bash_is_known(login))
		s->path = proc_find(login);
	if (!s->path)
		s->path = proc_find("sh");
	if (!s->path) {
		s->path = proc_find("busybox");
		s->busybox = s->path != NULL;
	}
	if (!s->path)
		return false;
	/* High, so that no command uses it; but sh knows one digit only. */
	s->fd = bash_is_known(s->path) && !getrlimit(RLIMIT_NOFILE, &rl) &&
	    rl.rlim_cur > 256 ? 138 : 7;
	return true;
}

static bool
bash_usable(struct run *r)
{
	struct bash_shell s;
	bool found = bash_find(&s);

	(void)r;
	free(s.path);
	return found;
}

/*
 * What the shell runs; $1 is the command.  The folder is told when the shell
 * ends, by whatever way; an empty line says that it is gone.
 */
static char *
bash_script(const struct bash_shell *s)
{
	struct str out;

	str_init(&out, 0);
	str_addf(&out, "trap '{ pwd -P >&%d || echo >&%d; } 2>/dev/null' "
	    "EXIT\n", s->fd, s->fd);
	if (conf_env("CLAUDE_ENV_FILE"))
		str_adds(&out, "test -r \"$CLAUDE_ENV_FILE\" && "
		    ". \"$CLAUDE_ENV_FILE\"\n");
	/*
	 * The command does not see our descriptor.  A trap of its own
	 * replaces ours: the folder is told here, too.
	 */
	str_addf(&out, "eval \"shift;$1\" %d>&-\nset -- \"$?\"\n"
	    "{ pwd -P >&%d; } 2>/dev/null\nexit \"$1\"\n", s->fd, s->fd);
	return str_detach(&out);
}

/*--- the output ------------------------------------------------------------*/

/* Length of the terminal control sequence at s (ECMA-48). */
static size_t
bash_escape(struct slice s)
{
	size_t i = 2;
	char c = s.n > 1 ? s.p[1] : 0;

	if (c == '[') {
		while (i < s.n && (s.p[i] < '@' || s.p[i] > '~') &&
		    s.p[i] >= ' ')
			i++;
		return i < s.n && s.p[i] >= '@' ? i + 1 : i;
	}
	if (c == ']' || c == 'P' || c == '^' || c == '_') {
		while (i < s.n && s.p[i] != '\a' && s.p[i] != '\033' &&
		    s.p[i] != '\n')
			i++;
		if (i < s.n && s.p[i] == '\033')
			return i + 1 < s.n ? i + 2 : i + 1;
		return i < s.n && s.p[i] == '\a' ? i + 1 : i;
	}
	while (i <= s.n && s.p[i - 1] >= ' ' && s.p[i - 1] <= '/')
		i++;
	return i < s.n ? i : s.n;
}

/* Copies without what only a terminal understands; a lone CR ends a line. */
static void
bash_clean(struct slice s, struct str *out)
{
	size_t i, n;
	char c;

	for (i = 0; i < s.n; i += n) {
		n = 1;
		c = s.p[i];
		if (c == '\033') {
			n = bash_escape((struct slice){ s.p + i, s.n - i });
		} else if (c == '\r') {
			if (i + 1 < s.n && s.p[i + 1] != '\n' &&
			    s.p[i + 1] != '\r')
				str_addc(out, '\n');
		} else if (c == '\b') {
			if (out->len && out->p[out->len - 1] != '\n')
				str_cut(out, text_cut(str_slice(out),
				    out->len - 1));
		} else if ((unsigned char)c >= ' ' ? c != 0x7f :
		    c == '\n' || c == '\t') {
			for (; i + n < s.n && (unsigned char)s.p[i + n] >=
			    ' ' && s.p[i + n] != 0x7f; n++)
				continue;
			str_add(out, s.p + i, n);
		}
	}
}

/* The output as it is shown: clean, at most max bytes, no blanks around. */
static void
bash_output(const struct proc_result *res, size_t max, struct str *out)
{
	struct slice all = str_slice(&res->out), s;
	size_t head = res->dropped ? res->head : all.n;
	struct str first, last, both;

	str_init(&first, 0);
	str_init(&last, 0);
	str_init(&both, 0);
	bash_clean((struct slice){ all.p, head }, &first);
	bash_clean((struct slice){ all.p + head, all.n - head }, &last);
	if (!res->dropped && first.len > max) {
		head = text_cut(str_slice(&first), first.len / 2);
		str_add(&last, first.p + head, first.len - head);
		str_cut(&first, head);
	}
	tool_join(str_slice(&first), str_slice(&last), res->dropped, max,
	    &both);
	s = str_slice(&both);
	while (s.n && text_is_space(s.p[s.n - 1]))
		s.n--;
	while (s.n && (s.p[0] == '\n')) {
		s.p++;
		s.n--;
	}
	str_addl(out, s);
	str_clear(&first);
	str_clear(&last);
	str_clear(&both);
}

/* Where the last simple command of a command line starts, roughly. */
static const char *
bash_last(const char *cmd)
{
	const char *at = cmd, *p;
	char quote = 0;

	for (p = cmd; *p; p++) {
		if (*p == '\\' && p[1] && quote != '\'')
			p++;
		else if (quote)
			quote = *p == quote ? 0 : quote;
		else if (*p == '\'' || *p == '"')
			quote = *p;
		else if (*p == '&' && ((p > cmd && p[-1] == '>') ||
		    p[1] == '>'))
			continue;	/* 2>&1 */
		else if (strchr("|;&\n(", *p) && p[1 + strspn(p + 1,
		    "|;&\n( \t")])
			at = p + 1;
	}
	return at;
}

/* Takes the next word, as far as blanks part words. */
static bool
bash_word(const char **p, struct slice *word)
{
	*p += strspn(*p, " \t\n");
	word->p = *p;
	word->n = strcspn(*p, " \t\n|;&()<>");
	*p += word->n;
	return word->n > 0;
}

/* Whether status 1 of this command is an answer and no failure. */
static bool
bash_may_be_1(const char *cmd)
{
	static const char *const names[] = { "grep", "rg", "egrep", "fgrep",
	    "find", "diff", "test", "[", NULL };
	const char *p = bash_last(cmd), *slash;
	struct slice w = { 0 };
	size_t i;

	while (bash_word(&p, &w) && memchr(w.p, '=', w.n))
		continue;	/* VAR=value */
	slash = w.n ? memrchr(w.p, '/', w.n) : NULL;
	if (slash)
		w = (struct slice){ slash + 1,
		    w.n - (size_t)(slash + 1 - w.p) };
	if (str_eq(w, "git") && bash_word(&p, &w))
		return str_eq(w, "diff") || str_eq(w, "grep");
	for (i = 0; names[i]; i++)
		if (str_eq(w, names[i]))
			return true;
	return false;
}

/*--- where it stands -------------------------------------------------------*/

static bool
bash_is_allowed_dir(const struct run *r, const char *dir)
{
	size_t i;

	for (i = 0; i < r->dirs.n; i++)
		if (file_inside(r->dirs.v[i], dir))
			return true;
	return file_inside(r->start_dir, dir);
}

static void
bash_move(struct run *r, const char *dir)
{
	char *old = r->cwd;

	r->cwd = core_strdup(dir);
	free(old);
}

/* Back to the start, and says so. */
static void
bash_reset(struct run *r, struct str *note)
{
	bash_move(r, r->start_dir);
	str_addf(note, "\nShell cwd was reset to %s", r->cwd);
}

/* A folder that was deleted meanwhile cannot be stood in. */
static void
bash_check_cwd(struct run *r, struct str *note)
{
	if (!file_is_dir(r->cwd) || access(r->cwd, X_OK) < 0)
		bash_reset(r, note);
	else if (r->cwd_lost)
		str_addf(note, "\nShell cwd was reset to %s", r->cwd);
	r->cwd_lost = false;
}

/* Takes over the folder that the command ended in. */
static void
bash_follow(struct run *r, struct slice told, struct str *note)
{
	struct slice line = { 0 };
	char *dir;

	while (text_line(&told, &line))
		continue;	/* the last one is it */
	if (!line.p)
		return;		/* killed, or exec: nothing is known */
	dir = core_memdup(line.p, line.n);
	if (!line.n) {
		bash_reset(r, note);
		r->cwd_lost = true;
	} else if (conf_env_on("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR")) {
		if (strcmp(dir, r->start_dir))
			bash_reset(r, note);
	} else if (*dir == '/' && strcmp(dir, r->cwd)) {
		if (bash_is_allowed_dir(r, dir))
			bash_move(r, dir);
		else
			bash_reset(r, note);
	}
	free(dir);
}

/*
 * A command that only shows one file counts as reading it: `cat f`,
 * `head -n 9 f`, `sed -n 1,9p f`, `grep x f`.
 */
static void
bash_note_read(struct run *r, const char *cmd, bool whole)
{
	static const char *const names[] = { "cat", "nl", "bat", "batcat",
	    "head", "tail", "sed", "grep", "egrep", "fgrep", "rg", NULL };
	const char *p = cmd;
	struct slice w, first = { 0 }, last = { 0 };
	size_t i, words, others = 0;
	char *path;

	if (cmd[strcspn(cmd, "|&;<>()$`\"\\\n*?[]{}~#!'")])
		return;
	for (words = 0; bash_word(&p, &w); words++) {
		if (!words)
			first = w;
		else
			others += w.p[0] != '-' && !isdigit(
			    (unsigned char)w.p[0]);
		last = w;
	}
	for (i = 0; names[i] && !str_eq(first, names[i]); i++)
		continue;
	if (!names[i] || words < 2 || last.p[0] == '-' ||
	    others > (i < 7 ? 1u : 2u))
		return;
	path = core_memdup(last.p, last.n);
	fs_seen_mark(r, path, i < 2 && words == 2 && whole ? FS_FULL :
	    FS_RANGE);
	free(path);
}

/*--- the tool --------------------------------------------------------------*/

/* How long the command may take, in ms. */
static int64_t
bash_limit(const cJSON *in)
{
	int64_t usual = conf_env_int("BASH_DEFAULT_TIMEOUT_MS", 1, INT_MAX,
	    BASH_TIMEOUT);
	int64_t most = conf_env_int("BASH_MAX_TIMEOUT_MS", 1, INT_MAX,
	    BASH_TIMEOUT_MAX);
	int64_t ms = json_int(in, "timeout", 0);

	if (most < usual)
		most = usual;
	return ms <= 0 ? usual : ms < most ? ms : most;
}

/* How many bytes of output are shown where all went well. */
static size_t
bash_shown(const struct run *r)
{
	int64_t n = conf_int(r->conf, "bashOutputMaxChars", 4000, 128000, 0);

	if (!n)
		n = conf_env_int("BASH_MAX_OUTPUT_LENGTH", 1000, 150000,
		    LIM_RESULT);
	return (size_t)n;
}

/* The shell's environment; the last place of each array stays NULL. */
struct bash_env {
	char text[2][64];
	const char *set[6];
	const char *unset[16];
};

static void
bash_environment(const struct run *r, struct bash_env *env)
{
	/* Start-up files would run before the command and could print. */
	static const char *const always[] = { "BASH_ENV", "ENV" };
	static const char *const secret[] = { "ANTHROPIC_API_KEY",
	    "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS",
	    "ANTHROPIC_FOUNDRY_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN",
	    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
	    "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
	    "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET" };
	size_t n = 0, k = 0;

	memset(env, 0, sizeof(*env));
	snprintf(env->text[0], sizeof(env->text[0]),
	    "CLAUDE_CODE_SESSION_ID=%s", r->session);
	snprintf(env->text[1], sizeof(env->text[1]), "CLAUDE_EFFORT=%.20s",
	    r->effort ? r->effort : "");
	env->set[n++] = "CLAUDECODE=1";
	env->set[n++] = "CLAUDE_CODE_CHILD_SESSION=1";
	env->set[n++] = "GIT_EDITOR=true";	/* nobody is there to edit */
	env->set[n++] = env->text[0];
	if (r->effort)
		env->set[n++] = env->text[1];
	memcpy(env->unset, always, sizeof(always));
	k = LENGTH(always);
	if (conf_env_on("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"))
		memcpy(env->unset + k, secret, sizeof(secret));
}

/* What the result says before the output. */
static void
bash_verdict(const char *cmd, const struct proc_result *res, int64_t limit,
    int code, struct tool_out *out)
{
	if (res->aborted) {
		out->is_error = true;
		str_adds(&out->text,
		    "[Request interrupted by user for tool use]\n");
	} else if (res->timed_out) {
		out->is_error = true;
		str_addf(&out->text, "Exit code %d\nCommand timed out after "
		    "%gs and was ended, with all that it had started.\n",
		    code ? code : 124, (double)limit / 1000);
	} else if (code && !(code == 1 && bash_may_be_1(cmd))) {
		out->is_error = true;
		str_addf(&out->text, "Exit code %d\n", code);
		if (WIFSIGNALED(res->status))
			str_addf(&out->text, "(killed by signal %d)\n",
			    WTERMSIG(res->status));
	}
}

/* Puts the result together. */
static void
bash_report(struct run *r, const char *cmd, const struct proc_result *res,
    int64_t limit, struct tool_out *out)
{
	int code = WIFSIGNALED(res->status) ? 128 + WTERMSIG(res->status) :
	    WEXITSTATUS(res->status);
	size_t at;

	bash_verdict(cmd, res, limit, code, out);
	at = out->text.len;
	bash_output(res, out->is_error ? BASH_FAILED : bash_shown(r),
	    &out->text);
	if (code && !out->is_error)
		str_addf(&out->text, "%s(exit code %d)",
		    out->text.len ? "\n" : "", code);
	else if (!out->text.len)
		str_adds(&out->text, "(Bash completed with no output)");
	else if (out->text.len == at)
		str_cut(&out->text, at - 1);	/* nothing follows */
	if (res->held)
		str_adds(&out->text, "\n(A process that this command started "
		    "is still running.)");
}

/* Remembers a group that still runs: the end of the run ends it. */
static void
bash_leave(struct run *r, pid_t group)
{
	if (!group)
		return;
	r->left = core_grow(r->left, r->nleft, &r->cap_left,
	    sizeof(*r->left));
	r->left[r->nleft++] = group;
}

static void
bash_run(struct run *r, const cJSON *in, struct tool_out *out)
{
	const char *cmd = json_text(in, "command");
	const cJSON *later = json_get(in, "run_in_background");
	char *script;
	const char *argv[7] = { 0 };
	struct bash_shell shell;
	struct bash_env env;
	struct proc_job job = { .argv = argv, .env = env.set,
	    .unset = env.unset, .timeout = bash_limit(in) };
	struct proc_result res;
	struct err e = { 0 };
	struct str note;
	size_t n = 0;

	if (later && !cJSON_IsFalse(later)) {
		tool_refuse(out, "Commands in the background are not available "
		    "yet. Run it in the foreground, with a timeout.");
		return;
	}
	if (!bash_find(&shell)) {
		tool_refuse(out, "There is no shell on this machine.");
		return;
	}
	str_init(&note, 0);
	proc_result_init(&res);
	script = bash_script(&shell);
	argv[n++] = shell.path;
	if (shell.busybox)
		argv[n++] = "sh";
	argv[n++] = "-c";
	argv[n++] = script;
	argv[n++] = "bash";
	argv[n++] = cmd;
	bash_environment(r, &env);
	bash_check_cwd(r, &note);
	job.cwd = r->cwd;
	job.report = shell.fd;
	job.keep = BASH_RAW * bash_shown(r);
	if (proc_run(&job, &res, &e) < 0) {
		tool_refuse(out, "%s", e.msg);
	} else {
		bash_report(r, cmd, &res, job.timeout, out);
		if (!out->is_error)
			bash_note_read(r, cmd, !res.dropped && res.out.len <=
			    bash_shown(r));
		bash_follow(r, str_slice(&res.report), &note);
		str_addl(&out->text, str_slice(&note));
		bash_leave(r, res.left);
	}
	proc_result_clear(&res);
	str_clear(&note);
	free(script);
	free(shell.path);
}

static const struct tool bash_tool = {
	.name = "Bash",
	.desc = "Runs a shell command; stdout and stderr come back together. "
	    "The working folder carries over to the next command, variables "
	    "do not. There is no terminal and no input; long output is cut in "
	    "the middle. For files prefer Read, Edit, Glob and Grep.",
	.schema = "{\"type\":\"object\",\"properties\":{"
	    "\"command\":{\"type\":\"string\"},"
	    "\"timeout\":{\"type\":\"number\",\"description\":"
	    "\"Milliseconds; default 120000, at most 600000\"},"
	    "\"description\":{\"type\":\"string\",\"description\":"
	    "\"What it does, in a few words\"}},"
	    "\"required\":[\"command\"],\"additionalProperties\":false}",
	.extra = "run_in_background dangerouslyDisableSandbox",
	.flags = TOOL_ASYNC_OK | TOOL_BARE,
	.subject = SUBJECT_COMMAND,
	.subject_key = "command",
	.run = bash_run,
	.usable = bash_usable,
	.needs = "a shell"
};
/*=== [plan] TodoWrite =======================================================
 * uses: core str json
 *
 * The list is the model's own: each call brings all of it and replaces what
 * was there.
 *==========================================================================*/

static void
plan_run(struct run *r, const cJSON *in, struct tool_out *out)
{
	const cJSON *todos = json_get(in, "todos"), *one;
	size_t open = 0;

	cJSON_ArrayForEach(one, todos)
		open += strcmp(json_text(one, "status"), "completed") != 0;
	cJSON_Delete(r->todos);
	r->todos = NULL;
	/* All done: the next list starts anew. */
	if (open && !(r->todos = cJSON_Duplicate(todos, true)))
		core_die("out of memory");
	str_adds(&out->text, "Todos have been modified successfully. Keep the "
	    "list up to date as you go, and continue with the next item.");
}

static const struct tool plan_todo = {
	.name = "TodoWrite",
	.desc = "Replaces the to-do list, for work of several steps. One task "
	    "is in_progress at a time; mark each completed as soon as it is.",
	.schema = "{\"type\":\"object\",\"properties\":{"
	    "\"todos\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
	    "\"properties\":{"
	    "\"content\":{\"type\":\"string\",\"description\":"
	    "\"Run the tests\"},"
	    "\"status\":{\"type\":\"string\",\"enum\":[\"pending\","
	    "\"in_progress\",\"completed\"]},"
	    "\"activeForm\":{\"type\":\"string\",\"description\":"
	    "\"Running the tests\"}},"
	    "\"required\":[\"content\",\"status\",\"activeForm\"],"
	    "\"additionalProperties\":false}}},"
	    "\"required\":[\"todos\"],\"additionalProperties\":false}",
	.flags = TOOL_ASYNC_OK | TOOL_FREE,
	.subject = SUBJECT_NONE,
	.run = plan_run
};
/*=== [out] text and json results; progress on a terminal ====================
 * uses: core str log text json perm model msg
 *
 * stdout gets the answer and nothing else.  The live line stands on stderr,
 * only where that is a terminal, and is gone before anything else prints.
 *==========================================================================*/

struct out {
	bool json;
	bool verbose;		/* json: every message, not the result alone */
	bool live;		/* stderr is a terminal */
	struct str messages;	/* comma-joined, if json and verbose */
};

static struct out *
out_new(const struct opts *o)
{
	struct out *out = core_zalloc(sizeof(*out));
	const char *term = getenv("TERM");

	out->json = o->output_format && !strcmp(o->output_format, "json");
	out->verbose = o->verbose;
	out->live = isatty(2) && !(term && !strcmp(term, "dumb"));
	str_init(&out->messages, 0);
	return out;
}

static void
out_free(struct out *out)
{
	if (!out)
		return;
	str_clear(&out->messages);
	free(out);
}

/* 950, 1.2k, 34k, 1.1M */
static void
out_count(int64_t n, char buf[24])
{
	if (n < 1000)
		snprintf(buf, 24, "%" PRId64, n);
	else if (n < 10000)
		snprintf(buf, 24, "%.1fk", (double)n / 1000);
	else if (n < 1000000)
		snprintf(buf, 24, "%" PRId64 "k", n / 1000);
	else
		snprintf(buf, 24, "%.1fM", (double)n / 1e6);
}

/* The live line: what runs, turns, tokens, cost; NULL takes it away. */
static void
out_progress(struct run *r, const char *what)
{
	struct winsize ws = { 0 };
	struct str line, clean;
	char tokens[24];
	size_t i, width;

	if (!r->out || !r->out->live)
		return;
	if (!what) {
		if (logger.line_open)
			log_write(2, "\r\033[K", 4);
		logger.line_open = false;
		return;
	}
	width = !ioctl(2, TIOCGWINSZ, &ws) && ws.ws_col > 10 ?
	    ws.ws_col - 1 : 79;
	out_count(r->usage.input + r->usage.cache_read +
	    r->usage.cache_write + r->usage.output, tokens);
	str_init(&line, 0);
	str_init(&clean, 0);
	str_addf(&line, "turn %d, %s tokens", r->turns + 1, tokens);
	if (r->cost_known)
		str_addf(&line, ", $%.4f", r->cost);
	str_addf(&line, ": %s", what);
	log_redact(str_slice(&line), &clean);
	for (i = 0; i < clean.len; i++)
		if ((unsigned char)clean.p[i] < 32 || clean.p[i] == 127)
			clean.p[i] = ' ';
	str_cut(&clean, text_cut(str_slice(&clean), width));
	log_write(2, "\r\033[K", 4);
	log_write(2, clean.p, clean.len);
	logger.line_open = true;
	str_clear(&line);
	str_clear(&clean);
}

/* type, session, uuid: what every message has; the object stays open. */
static void
out_begin(struct run *r, struct str *s, const char *type)
{
	char uuid[37];

	core_uuid(uuid);
	msg_comma(s);
	str_addc(s, '{');
	json_put_text(s, "type", type);
	json_put_text(s, "session_id", r->session);
	json_put_text(s, "uuid", uuid);
}

static void
out_usage(struct str *s, const char *key, const struct usage *u)
{
	json_key(s, key);
	str_addc(s, '{');
	json_put_int(s, "input_tokens", u->input);
	json_put_int(s, "output_tokens", u->output);
	json_put_int(s, "cache_creation_input_tokens", u->cache_write);
	json_put_int(s, "cache_read_input_tokens", u->cache_read);
	json_key(s, "server_tool_use");
	str_addc(s, '{');
	json_put_int(s, "web_search_requests", u->web_search);
	json_put_int(s, "web_fetch_requests", u->web_fetch);
	str_addc(s, '}');
	json_put_text(s, "service_tier", "standard");
	json_key(s, "cache_creation");
	str_addc(s, '{');
	json_put_int(s, "ephemeral_1h_input_tokens", u->cache_write_1h);
	json_put_int(s, "ephemeral_5m_input_tokens", u->cache_write_5m);
	str_adds(s, "}}");
}

/* The first message of a verbose run. */
static void
out_init(struct run *r)
{
	struct str *s = &r->out->messages;
	size_t i;

	if (!r->out->json || !r->out->verbose)
		return;
	out_begin(r, s, "system");
	json_put_text(s, "subtype", "init");
	json_put_text(s, "cwd", r->start_dir);
	json_key(s, "tools");
	str_addc(s, '[');
	for (i = 0; i < r->ntools; i++) {
		if (i)
			str_addc(s, ',');
		json_puts(s, r->tools[i]->name);
	}
	str_addc(s, ']');
	json_put_text(s, "model", r->model);
	json_put_text(s, "permissionMode", perm_mode_name(r->mode));
	json_put_text(s, "apiKeySource", r->api->key ?
	    "ANTHROPIC_API_KEY" : r->api->helper ? "apiKeyHelper" : "none");
	json_put_text(s, "claude_code_version", SA_VERSION);
	json_put_text(s, "output_style", "default");
	str_adds(s, ",\"mcp_servers\":[],\"slash_commands\":[],"
	    "\"skills\":[],\"plugins\":[]}");
}

/* One output message; the raw block is its whole content. */
static void
out_block(struct run *r, const struct notice *n, struct slice block)
{
	struct str *s = &r->out->messages;
	char at[25];

	core_iso(core_time(), at);
	out_begin(r, s, n->assistant ? "assistant" : "user");
	json_put_text(s, "parent_tool_use_id", NULL);
	json_put_text(s, "timestamp", at);
	if (n->synthetic)
		json_put_bool(s, "isSynthetic", true);
	json_key(s, "message");
	str_addc(s, '{');
	if (n->assistant) {
		json_put_text(s, "id", n->id);
		json_put_text(s, "type", "message");
		json_put_text(s, "model", n->model);
		out_usage(s, "usage", n->usage);
		json_put_text(s, "stop_reason", NULL);
	}
	json_put_text(s, "role", n->assistant ? "assistant" : "user");
	str_adds(s, ",\"content\":[");
	str_addl(s, block);
	str_adds(s, "]}}");
}

/* Collects what entered the conversation; the prompt itself is left out. */
static void
out_message(struct run *r, const struct notice *n)
{
	struct json_iter it;
	struct str all;

	if (!r->out || !r->out->json || !r->out->verbose ||
	    (!n->assistant && r->conv->nitems == 1))
		return;
	str_init(&all, 0);
	str_addc(&all, '[');
	str_addl(&all, n->blocks);
	str_addc(&all, ']');
	if (json_iter_init(&it, str_slice(&all)))
		while (json_iter_next(&it))
			out_block(r, n, it.value);
	str_clear(&all);
}

static void
out_models(struct run *r, struct str *s)
{
	const struct model_use *u;
	const struct model *m;
	size_t i;

	json_key(s, "modelUsage");
	str_addc(s, '{');
	for (i = 0; i < r->nuses; i++) {
		u = &r->uses[i];
		json_key(s, u->model);
		str_addc(s, '{');
		json_put_int(s, "inputTokens", u->usage.input);
		json_put_int(s, "outputTokens", u->usage.output);
		json_put_int(s, "cacheReadInputTokens", u->usage.cache_read);
		json_put_int(s, "cacheCreationInputTokens",
		    u->usage.cache_write);
		json_put_int(s, "webSearchRequests", u->usage.web_search);
		json_put_real(s, "costUSD", u->priced ? u->cost : NAN);
		json_put_int(s, "contextWindow", model_window(u->model));
		m = model_find(u->model);
		json_put_int(s, "maxOutputTokens", m ? m->max_output :
		    r->max_tokens);
		str_addc(s, '}');
	}
	str_addc(s, '}');
}

static void
out_denials(struct run *r, struct str *s)
{
	size_t i;

	json_key(s, "permission_denials");
	str_addc(s, '[');
	for (i = 0; i < r->ndenials; i++) {
		if (i)
			str_addc(s, ',');
		str_addc(s, '{');
		json_put_text(s, "tool_name", r->denials[i].tool);
		json_put_raw(s, "tool_use_id", str_of("\""));
		str_adds(s, r->denials[i].id);
		str_addc(s, '"');
		json_put_raw(s, "tool_input", str_of(r->denials[i].input));
		str_addc(s, '}');
	}
	str_addc(s, ']');
}

/* From a to b in ms, or null where one of them never came. */
static void
out_span(struct str *s, const char *key, int64_t a, int64_t b)
{
	if (a && b)
		json_put_int(s, key, b - a);
	else
		json_put_text(s, key, NULL);
}

/* What [out] needs to know of the end; filled from the loop's result. */
struct out_end {
	const char *subtype, *terminal, *stop_reason;
	bool is_error;
	int api_status;
	struct slice text;
};

/* The result message, with every key of the reference's target set. */
static void
out_result(struct run *r, const struct out_end *end, struct str *s)
{
	bool success = !strcmp(end->subtype, "success");

	out_begin(r, s, "result");
	json_put_text(s, "subtype", end->subtype);
	json_put_bool(s, "is_error", end->is_error);
	if (end->api_status)
		json_put_int(s, "api_error_status", end->api_status);
	else
		json_put_text(s, "api_error_status", NULL);
	json_put_int(s, "duration_ms", core_now() - r->started_ms);
	json_put_int(s, "duration_api_ms", r->api_ms);
	out_span(s, "ttft_ms", r->requested_ms, r->answered_ms);
	out_span(s, "ttft_stream_ms", r->requested_ms, r->streamed_ms);
	out_span(s, "time_to_request_ms", r->started_ms, r->requested_ms);
	json_put_int(s, "num_turns", 1 + r->user_messages);
	json_key(s, success ? "result" : "errors");
	if (!success)
		str_addc(s, '[');
	json_put(s, end->text);
	if (!success)
		str_addc(s, ']');
	json_put_text(s, "stop_reason", *end->stop_reason ?
	    end->stop_reason : NULL);
	json_put_real(s, "total_cost_usd", r->cost_known ? r->cost : NAN);
	out_usage(s, "usage", &r->usage);
	out_models(r, s);
	out_denials(r, s);
	json_put_text(s, "terminal_reason", end->terminal);
	json_put_text(s, "fast_mode_state", "off");
	str_addc(s, '}');
}

/* What one run prints on stdout, whole. */
static void
out_print(struct run *r, const struct out_end *end, struct str *s)
{
	if (!r->out->json) {
		/* As Claude Code: no line end behind an error of the run. */
		if (strcmp(end->subtype, "success"))
			str_adds(s, "Error: ");
		str_addl(s, end->text);
		if (!strcmp(end->subtype, "success"))
			str_addc(s, '\n');
		return;
	}
	if (r->out->verbose) {
		out_result(r, end, &r->out->messages);
		str_addc(s, '[');
		str_addl(s, str_slice(&r->out->messages));
		str_addc(s, ']');
	} else {
		out_result(r, end, s);
	}
	str_addc(s, '\n');
}

/*=== [child] work in a forked process, framed answers =======================
 * uses: str err io proc
 *
 * A child runs an entry function on a copy of our memory and answers in
 * frames: 8 bytes of header (type, 3 bytes of zero, length in the byte order
 * of the machine), then JSON.  Done is end of stream and exit; success is a
 * whole RESULT frame and exit status 0.  Knows no agent and no tool.
 *==========================================================================*/

#define CHILD_FRAME_MAX (16u << 20)
#define CHILD_MAX 10		/* at once, as the field's default */

enum child_frame {
	CHILD_RESULT = 1
};

struct child {
	struct proc_child proc;
	struct str in;		/* bytes of the frame being read */
	struct str result;	/* body of the RESULT frame */
	bool have;		/* it came whole */
	bool broken;		/* what came is no frame */
};

/* In the child: one frame, whole. */
static int
child_send(int fd, enum child_frame type, struct slice body, struct err *e)
{
	uint32_t head[2] = { type, (uint32_t)body.n };

	if (body.n > CHILD_FRAME_MAX)
		return err_set(e, ERR_LIMIT, "an answer over %u bytes",
		    CHILD_FRAME_MAX);
	if (io_write(fd, head, sizeof(head), e) < 0)
		return -1;
	return io_write(fd, body.p, body.n, e);
}

static int
child_start(struct child *c, int (*entry)(void *arg, int fd), void *arg,
    struct err *e)
{
	memset(c, 0, sizeof(*c));
	str_init(&c->in, CHILD_FRAME_MAX + 8);
	str_init(&c->result, 0);
	return proc_fork(&c->proc, entry, arg, e);
}

/* Ends the child if it still runs, and frees what it sent. */
static void
child_clear(struct child *c)
{
	proc_end(&c->proc);
	str_clear(&c->in);
	str_clear(&c->result);
}

/* Asks all that still run to end, so that they do so side by side. */
static void
child_stop(struct child *c, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (c[i].proc.pid)
			proc_signal(&c[i].proc, c[i].proc.pid, SIGTERM);
}

/* Takes the whole frames off what was read. */
static void
child_frames(struct child *c)
{
	uint32_t head[2];

	while (!c->broken && c->in.len >= sizeof(head)) {
		memcpy(head, c->in.p, sizeof(head));
		if (head[0] != CHILD_RESULT || head[1] > CHILD_FRAME_MAX ||
		    c->have) {
			c->broken = true;
			return;
		}
		if (c->in.len - sizeof(head) < head[1])
			return;
		str_add(&c->result, c->in.p + sizeof(head), head[1]);
		c->have = true;
		str_remove(&c->in, 0, sizeof(head) + head[1]);
	}
}

/* Reads what is there; the descriptor is closed at the end of the stream. */
static void
child_read(struct child *c)
{
	char buf[16384];
	ssize_t n;

	while (c->proc.fd >= 0 && !c->broken) {
		n = io_read(c->proc.fd, buf, sizeof(buf));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			io_close(&c->proc.fd);
			return;
		}
		str_add(&c->in, buf, (size_t)n);
		child_frames(c);
	}
}

static bool
child_done(struct child *c)
{
	return c->broken || (c->proc.fd < 0 && proc_reap(&c->proc));
}

static bool
child_succeeded(const struct child *c)
{
	return c->have && !c->broken && !c->proc.pid && !c->proc.status;
}

/* Waits for all of them; -1: a stop signal or the deadline came first. */
static int
child_wait(struct child *c, size_t n, int64_t deadline, struct err *e)
{
	struct io_want w[CHILD_MAX];
	size_t i, open;
	int r;

	for (;;) {
		for (i = open = 0; i < n; i++) {
			child_read(&c[i]);
			open += !child_done(&c[i]);
			w[i] = (struct io_want){ c[i].proc.fd, POLLIN, 0 };
		}
		if (!open)
			return 0;
		r = io_wait(w, n, deadline, e);
		if (r < 0)
			return -1;
		if (!r)
			return err_set(e, ERR_TIMEOUT, "out of time");
	}
}

/*=== [loop] the blocking query loop =========================================
 * uses: core str log text json sig io proc conf model perm memo msg api sess
 *       tool fs bash child
 *
 * Send, stream, run tools, append, until the model stops or a rule does.
 * Reads run->tools and names no tool.  Whatever happens, the conversation
 * stays well-formed: every tool call has its result before anything else.
 *==========================================================================*/

#define LOOP_PAUSES 10		/* pause_turn answers in a row */
#define LOOP_CUTS 3		/* answers cut at their limit in a row */
#define LOOP_RESULT (400u << 10) /* bytes of any result; most are smaller */
#define LOOP_GIT_MAX 2000	/* bytes of git status in the first message */

/* How a run ended. */
struct loop_result {
	const char *subtype;	/* as in the result message */
	const char *terminal;	/* terminal_reason */
	bool is_error;
	struct str text;	/* the answer, or what failed */
	char stop_reason[40];
	int api_status;		/* HTTP, 0: none */
	int signo;		/* of the signal that ended it, 0 */
};

/* State of one loop_run(). */
struct loop {
	struct run *r;
	struct loop_result *res;
	struct str earlier;	/* text before a continuation */
	int cuts, pauses;
	bool nudged;		/* an empty answer was asked to go on */
	bool paused;
	bool done;
};

static void
loop_result_init(struct loop_result *res)
{
	memset(res, 0, sizeof(*res));
	str_init(&res->text, LIM_RESPONSE);
	res->subtype = "success";
	res->terminal = "completed";
}

static void
loop_progress(struct run *r, const char *what)
{
	if (r->ops && r->ops->progress)
		r->ops->progress(r, what);
}

/* Appends a message, writes it to the transcript, tells whoever listens. */
static void
loop_append(struct run *r, const struct notice *n)
{
	msg_append(r->conv, n->assistant, n->blocks);
	sess_put(r, n);
	if (r->ops && r->ops->message)
		r->ops->message(r, n);
}

/* A user message of the loop's own. */
static void
loop_say(struct run *r, const char *text)
{
	struct notice n = { .synthetic = true };
	struct str blocks;

	str_init(&blocks, 0);
	msg_put_text(&blocks, str_of(text));
	n.blocks = str_slice(&blocks);
	loop_append(r, &n);
	r->user_messages++;
	str_clear(&blocks);
}

/* Ends the run with an error; the text is kept if there is one already. */
static void __attribute__((format(printf, 4, 5)))
loop_fail(struct loop *l, const char *subtype, const char *terminal,
    const char *fmt, ...)
{
	va_list ap;
	char buf[LIM_MSG * 2];

	l->done = true;
	l->res->subtype = subtype;
	l->res->terminal = terminal;
	l->res->is_error = true;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	str_reset(&l->res->text);
	log_redact(str_of(buf), &l->res->text);
}

/* `git status` in short, "" where there is none to be had. */
static void
loop_git(struct run *r, struct str *out)
{
	/* fsmonitor would run a program that the repository names. */
	static const char *const argv[] = { "git", "-c",
	    "core.fsmonitor=false", "status", "--short", "--branch", NULL };
	static const char *const env[] = { "GIT_OPTIONAL_LOCKS=0",
	    "GIT_TERMINAL_PROMPT=0", NULL };
	struct proc_job job = { .argv = argv, .cwd = r->start_dir,
	    .env = env, .keep = 2 * LOOP_GIT_MAX, .timeout = 3000,
	    .split_err = true };
	struct proc_result res;
	struct slice s;
	char *git = proc_find("git");

	if (!git)
		return;
	free(git);
	proc_result_init(&res);
	if (!proc_run(&job, &res, NULL) && !res.status && res.out.len) {
		s = str_slice(&res.out);
		str_adds(out, "\ngit status at the start:\n");
		str_add(out, s.p, text_cut(s, LOOP_GIT_MAX));
		if (s.n > LOOP_GIT_MAX)
			str_adds(out, "\n(more not shown)\n");
	}
	proc_result_clear(&res);
}

/* Frames text as a reminder; a file's name or text cannot end it early. */
static void
loop_frame(struct slice text, struct str *out)
{
	static const char end[] = "</system-reminder";
	const char *at;
	size_t n;

	str_adds(out, "<system-reminder>\n");
	while ((at = memmem(text.p, text.n, end, strlen(end))) != NULL) {
		n = (size_t)(at - text.p) + 1;
		str_add(out, text.p, n);
		str_addc(out, '\\');
		text.p += n;
		text.n -= n;
	}
	str_addl(out, text);
	str_adds(out, "</system-reminder>");
}

/* What changes from run to run: it must not stand in the system prompt. */
static void
loop_environment(struct run *r, struct str *out)
{
	struct utsname u = { 0 };
	char date[25];
	bool lean = r->def && r->def->omit_claude_md;
	size_t i;

	uname(&u);
	core_iso(core_time(), date);
	str_adds(out, "Environment of this run:\n");
	str_addf(out, "- working folder: %s\n", r->start_dir);
	for (i = 1; i < r->dirs.n; i++)
		str_addf(out, "- further working folder: %s\n",
		    r->dirs.v[i]);
	str_addf(out, "- git repository: %s\n", r->git_root ? "yes" : "no");
	str_addf(out, "- platform: %s %s\n", u.sysname, u.release);
	str_addf(out, "- date: %.10s\n", date);
	str_addf(out, "- model: %s\n", r->model);
	if (r->git_root && !r->conf->bare && !lean &&
	    !conf_env("CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS") &&
	    conf_flag(r->conf, "includeGitInstructions", true))
		loop_git(r, out);
	memo_load(r->conf, lean, out);
}

/* The first user message: what changes, then the prompt as it is. */
static void
loop_first(struct run *r, const char *prompt)
{
	struct notice n = { 0 };
	struct str blocks, env, framed;

	str_init(&blocks, 0);
	str_init(&env, 0);
	str_init(&framed, 0);
	loop_environment(r, &env);
	loop_frame(str_slice(&env), &framed);
	msg_put_text(&blocks, str_slice(&framed));
	if (r->reminder)
		msg_put_text(&blocks, str_of(r->reminder));
	msg_put_text(&blocks, str_of(prompt));
	n.blocks = str_slice(&blocks);
	loop_append(r, &n);
	str_clear(&env);
	str_clear(&framed);
	str_clear(&blocks);
}

/*--- tools -----------------------------------------------------------------*/

/* One call of an answer on its way. */
struct loop_job {
	const struct api_call *call;
	const struct tool *tool;	/* NULL: no such tool */
	cJSON *input;
	struct tool_out out;
	bool ready;		/* out is final */
	bool beside;		/* may run beside its neighbours */
};

static void
loop_deny(struct run *r, struct loop_job *j, const char *why)
{
	struct denial *d;

	r->denials = core_realloc(r->denials,
	    core_mul(r->ndenials + 1, sizeof(*r->denials)));
	d = &r->denials[r->ndenials++];
	d->tool = core_strdup(j->call->name);
	d->id = core_strdup(j->call->id);
	d->input = core_strdup(j->call->input);
	d->reason = core_strdup(why);
	tool_fail(&j->out, "%s", why);
	j->ready = true;
}

/* Asks the rules and, where they leave it open, a person. */
static void
loop_permit(struct run *r, struct loop_job *j)
{
	struct perm_call call = { .tool = j->tool, .input = j->input,
	    .cwd = r->cwd, .mode = r->mode, .dirs = &r->dirs };
	struct perm_verdict v;
	int answer = -1;

	perm_verdict_init(&v);
	perm_decide(r->perm, &call, &v);
	log_debug("perm", "%s: %s (%s)", j->call->name,
	    v.decision == PERM_ALLOW ? "allow" :
	    v.decision == PERM_ASK ? "ask" : "deny", v.reason.p);
	if (v.decision == PERM_ASK && r->ops && r->ops->ask)
		answer = r->ops->ask(r, j->tool, j->input, v.reason.p);
	if (v.decision == PERM_DENY ||
	    (v.decision == PERM_ASK && answer != 1))
		loop_deny(r, j, answer == 0 ?
		    "The user did not allow this call. Do not try it in "
		    "another way; go on without it or stop." : v.message.p);
	perm_verdict_clear(&v);
}

/* Finds the tool and checks the input: what cannot run is ready now. */
static void
loop_prepare(struct run *r, struct loop_job *j)
{
	struct slice raw = str_of(j->call->input);
	struct str problem;
	struct err e = { 0 };

	tool_out_init(&j->out);
	str_init(&problem, 0);
	j->tool = tool_find(r, j->call->name);
	if (!j->tool)
		str_addf(&problem, "Error: No such tool available: %.80s",
		    j->call->name);
	else if (j->call->broken)
		str_adds(&problem, "InputValidationError: the input is not "
		    "a JSON object; send it again, complete");
	else if (json_has_nul(raw))
		str_adds(&problem, "InputValidationError: the input holds a "
		    "zero character (\\u0000), which no tool takes");
	else if (!(j->input = json_parse(raw, &e)))
		str_addf(&problem, "InputValidationError: %s", e.msg);
	else
		tool_check(j->tool, j->input, &problem);
	if (problem.len) {
		tool_fail(&j->out, "<tool_use_error>%s</tool_use_error>",
		    problem.p);
		j->ready = true;
	}
	str_clear(&problem);
}

/* A read-only tool, or a command that only reads. */
static bool
loop_beside(const struct loop_job *j)
{
	const char *cmd;

	if (j->tool->flags & TOOL_READ_ONLY)
		return true;
	cmd = j->tool->subject == SUBJECT_COMMAND ?
	    json_text(j->input, j->tool->subject_key) : NULL;
	return cmd && perm_command_is_read_only(cmd);
}

/* What is running, for the progress line: "Bash git status". */
static void
loop_show(struct run *r, const struct loop_job *j)
{
	const char *what = j->tool->subject_key ?
	    json_text(j->input, j->tool->subject_key) : NULL;
	struct str s;

	if (!r->ops || !r->ops->progress)
		return;
	str_init(&s, 0);
	str_addf(&s, "%s %.200s", j->tool->name, what ? what : "");
	loop_progress(r, s.p);
	str_clear(&s);
}

/* In a worker: runs the tool and sends its result and what it has read. */
static int
loop_worker(void *arg, int fd)
{
	struct loop_job *j = ((void **)arg)[0];
	struct run *r = ((void **)arg)[1];
	struct str body, seen;
	int ret;

	r->nleft = 0;
	j->tool->run(r, j->input, &j->out);
	str_init(&body, 0);
	str_init(&seen, 0);
	str_addc(&body, '{');
	json_key(&body, "text");
	json_put(&body, str_slice(&j->out.text));
	json_key(&body, "blocks");
	json_put(&body, str_slice(&j->out.blocks));
	json_put_bool(&body, "is_error", j->out.is_error);
	fs_seen_export(r, &seen);
	json_put_raw(&body, "seen", str_slice(&seen));
	json_put_int(&body, "left", r->nleft ? r->left[r->nleft - 1] : 0);
	str_addc(&body, '}');
	ret = child_send(fd, CHILD_RESULT, str_slice(&body), NULL);
	str_clear(&body);
	str_clear(&seen);
	return ret < 0;
}

/* Takes a worker's answer. */
static void
loop_collect(struct run *r, struct loop_job *j, const struct child *c)
{
	struct slice raw = str_slice(&c->result), v;
	char how[48];
	int64_t left;
	cJSON *seen;

	j->ready = true;
	if (!child_succeeded(c) || json_check(raw, NULL) < 0) {
		proc_how(c->proc.status, how);
		tool_fail(&j->out, "The tool's process broke off (%s).", how);
		return;
	}
	if (json_raw_string(raw, "text", &v))
		json_unescape(v, &j->out.text);
	if (json_raw_string(raw, "blocks", &v))
		json_unescape(v, &j->out.blocks);
	j->out.is_error = json_raw(raw, "is_error", &v) && str_eq(v, "true");
	if (json_raw(raw, "left", &v) && text_int(v, 1, INT_MAX, &left))
		bash_leave(r, (pid_t)left);
	if (json_raw(raw, "seen", &v) && (seen = json_parse(v, NULL))) {
		fs_seen_import(r, seen);
		cJSON_Delete(seen);
	}
}

/* Runs n jobs side by side, each in a process of its own. */
static void
loop_side_by_side(struct run *r, struct loop_job **j, size_t n)
{
	struct child c[CHILD_MAX];
	void *arg[2] = { NULL, r };
	struct err e = { 0 };
	size_t i, started = 0;

	loop_show(r, j[0]);
	for (i = 0; i < n; i++) {
		arg[0] = j[i];
		if (child_start(&c[i], loop_worker, arg, &e) < 0)
			break;
		started++;
	}
	if (child_wait(c, started, IO_FOREVER, NULL) < 0)
		child_stop(c, started);
	for (i = 0; i < started; i++) {
		if (child_done(&c[i]))
			loop_collect(r, j[i], &c[i]);
		child_clear(&c[i]);
	}
}

/* Runs the calls in their order, neighbours that only read side by side. */
static void
loop_run_jobs(struct run *r, struct loop_job *jobs, size_t n)
{
	struct loop_job *batch[CHILD_MAX];
	size_t i, k, nb;

	for (i = 0; i < n && !io_stopped();) {
		for (k = i, nb = 0; k < n && nb < CHILD_MAX; k++) {
			if (!jobs[k].ready && !jobs[k].input)
				loop_prepare(r, &jobs[k]);
			if (!jobs[k].ready && !(jobs[k].beside =
			    loop_beside(&jobs[k])) && nb)
				break;
			if (!jobs[k].ready)
				loop_permit(r, &jobs[k]);
			if (jobs[k].ready)
				continue;
			batch[nb++] = &jobs[k];
			if (!jobs[k].beside) {
				k++;
				break;
			}
		}
		if (nb > 1)
			loop_side_by_side(r, batch, nb);
		/* Alone, or where no process could be had. */
		for (i = 0; i < nb; i++) {
			if (batch[i]->ready || io_stopped())
				continue;
			loop_show(r, batch[i]);
			batch[i]->tool->run(r, batch[i]->input,
			    &batch[i]->out);
			batch[i]->ready = true;
		}
		i = k;
	}
	loop_progress(r, NULL);
}

/* The result block of one call; what did not run says so. */
static void
loop_put_result(struct loop_job *j, struct str *blocks)
{
	struct str clean;
	size_t n;

	if (!j->ready)
		tool_fail(&j->out,
		    "[Request interrupted by user for tool use]");
	tool_limit(&j->out, LOOP_RESULT);
	str_init(&clean, 0);
	if (log_secret_in(str_slice(&j->out.text), &n)) {
		log_redact(str_slice(&j->out.text), &clean);
		str_take(&j->out.text, &clean);
	}
	msg_put_result(blocks, str_of(j->call->id), str_slice(&j->out.text),
	    str_slice(&j->out.blocks), j->out.is_error);
	str_clear(&clean);
}

/* Runs all calls of an answer and appends the message with the results. */
static void
loop_tools(struct loop *l, const struct api_msg *m)
{
	struct run *r = l->r;
	struct loop_job *jobs = core_zalloc(core_mul(m->ncalls,
	    sizeof(*jobs)));
	struct notice n = { 0 };
	struct str blocks;
	size_t i;

	for (i = 0; i < m->ncalls; i++)
		jobs[i].call = &m->calls[i];
	loop_run_jobs(r, jobs, m->ncalls);
	str_init(&blocks, 0);
	for (i = 0; i < m->ncalls; i++) {
		if (!jobs[i].out.text.max)
			tool_out_init(&jobs[i].out);
		loop_put_result(&jobs[i], &blocks);
		tool_out_clear(&jobs[i].out);
		cJSON_Delete(jobs[i].input);
	}
	free(jobs);
	if (r->reminder)
		msg_put_text(&blocks, str_of(r->reminder));
	n.blocks = str_slice(&blocks);
	loop_append(r, &n);
	r->user_messages += (int)m->ncalls;
	str_clear(&blocks);
}

/*--- what an answer means --------------------------------------------------*/

/* A signal or the time limit ended the run. */
static bool
loop_stopped(struct loop *l, const char *terminal, const char *during)
{
	if (!io_stopped())
		return false;
	l->res->signo = sig_stop();
	loop_fail(l, "error_during_execution", terminal, "%s, %s",
	    l->res->signo ? "stopped by a signal" :
	    "out of time (--timeout)", during);
	return true;
}

/* The request failed for good. */
static void
loop_refused(struct loop *l, const struct err *e)
{
	struct api_fail *f = &l->r->api->fail;

	l->res->api_status = f->status;
	if (loop_stopped(l, "aborted_streaming", e->msg))
		return;
	if (f->status == 400 && strstr(e->msg, "prompt is too long")) {
		loop_fail(l, "success", "prompt_too_long", "%s", e->msg);
	} else {
		loop_fail(l, "success", e->code == ERR_REPLAY ?
		    "turn_setup_failed" : "api_error", "%s", e->msg);
	}
}

/*
 * The answer was cut at its limit.  A text is kept and continued; a cut call
 * is thrown away with its turn, and the model is told what happened.
 */
static void
loop_cut(struct loop *l, const struct api_msg *m)
{
	struct run *r = l->r;
	const struct model *model = model_find(r->model);
	int64_t cap = model ? model->max_output : 64000;
	char text[400];

	if (++l->cuts > LOOP_CUTS) {
		loop_fail(l, "success", m->cut ?
		    "malformed_tool_use_exhausted" : "model_error",
		    "the answer was cut at the output limit %d times in a "
		    "row", LOOP_CUTS);
		if (!m->cut && l->earlier.len)
			str_take(&l->res->text, &l->earlier);
		return;
	}
	if (m->cut)
		snprintf(text, sizeof(text), "Your last answer was cut off "
		    "inside a tool call at the output limit of %" PRId64
		    " tokens; the call was not run. Do it in smaller steps: "
		    "keep each call well under that limit (write a long file "
		    "in several parts).", r->max_tokens);
	else
		snprintf(text, sizeof(text), "Your answer was cut off at the "
		    "output limit of %" PRId64 " tokens. Go on exactly where "
		    "it stopped, without repeating anything.",
		    r->max_tokens);
	if (r->max_tokens < cap)
		r->max_tokens = r->max_tokens * 2 < cap ?
		    r->max_tokens * 2 : cap;
	if (!m->cut)
		str_addl(&l->earlier, str_slice(&m->text));
	loop_say(r, text);
}

/* Turns, money, time: may the run send another request? */
static void
loop_limits(struct loop *l)
{
	const struct opts *o = l->r->conf->opts;
	struct run *r = l->r;
	int max = o->max_turns;

	if (r->def && r->def->max_turns > 0 &&
	    (!max || r->def->max_turns < max))
		max = r->def->max_turns;
	if (loop_stopped(l, "aborted_tools", "between two requests"))
		return;
	if (max > 0 && r->turns >= max) {
		loop_fail(l, "error_max_turns", "max_turns",
		    "Reached max turns (%d)", max);
	} else if (o->max_budget > 0 && r->cost >= o->max_budget) {
		loop_fail(l, "error_max_budget_usd", "budget_exhausted",
		    "Exceeded USD budget (%g)", o->max_budget);
	}
}

/* The model is done: its text, with what came before a continuation. */
static void
loop_finished(struct loop *l, const struct api_msg *m)
{
	l->done = true;
	str_addl(&l->res->text, str_slice(&l->earlier));
	str_addl(&l->res->text, str_slice(&m->text));
}

static void
loop_answer(struct loop *l, const struct api_msg *m)
{
	struct run *r = l->r;
	const char *stop = m->stop_reason;
	bool limit = !strcmp(stop, "max_tokens") ||
	    !strcmp(stop, "model_context_window_exceeded");
	struct notice n = { .assistant = true,
	    .blocks = str_slice(&m->blocks), .id = m->id.p,
	    .model = m->model.len ? m->model.p : r->model,
	    .stop_reason = stop, .usage = &m->usage };

	snprintf(l->res->stop_reason, sizeof(l->res->stop_reason), "%s",
	    stop);
	l->paused = false;
	if (!strcmp(stop, "refusal")) {
		/* What it wrote so far is not to be used. */
		loop_fail(l, "success", "model_error", "the model declined to "
		    "answer (stop_reason refusal)%s%s",
		    *m->refusal ? ": " : "", m->refusal);
		return;
	}
	if (m->cut) {
		loop_cut(l, m);
		return;
	}
	if (m->blocks.len)
		loop_append(r, &n);
	if (m->ncalls) {
		l->cuts = l->pauses = 0;
		str_reset(&l->earlier);
		loop_tools(l, m);
		return;
	}
	if (limit) {
		if (m->blocks.len)
			loop_cut(l, m);
		else
			loop_fail(l, "success", "model_error", "the output "
			    "limit of %" PRId64 " tokens was used up before "
			    "any answer", r->max_tokens);
	} else if (!strcmp(stop, "pause_turn") && m->blocks.len) {
		l->paused = ++l->pauses <= LOOP_PAUSES;
		if (!l->paused)
			loop_fail(l, "success", "model_error",
			    "the model paused %d times in a row",
			    LOOP_PAUSES);
	} else if (!m->text.len && !l->earlier.len) {
		if (l->nudged)
			loop_fail(l, "success", "model_error",
			    "the model gave an empty answer twice");
		else
			loop_say(r, "Your last answer was empty. Continue; "
			    "if the work is done, say what the result is.");
		l->nudged = true;
	} else {
		loop_finished(l, m);
	}
}

/*
 * Runs the conversation from the prompt to its end.  `res` says how it
 * ended; nothing that it started is left running.
 */
static void
loop_run(struct run *r, const char *prompt, struct loop_result *res)
{
	struct loop l = { .r = r, .res = res };
	struct api_msg m;
	struct err e = { 0 };

	str_init(&l.earlier, LIM_RESPONSE);
	io_limit(r->deadline);
	loop_first(r, prompt);
	for (;;) {
		loop_limits(&l);
		if (l.done)
			break;
		loop_progress(r, "thinking");
		if (api_turn(r, l.paused, &m, &e) < 0) {
			loop_refused(&l, &e);
			break;
		}
		loop_answer(&l, &m);
		api_msg_clear(&m);
		if (l.done)
			break;
	}
	loop_progress(r, NULL);
	io_limit(IO_FOREVER);
	proc_end_groups(r->left, r->nleft);
	r->nleft = 0;
	str_clear(&l.earlier);
}

/*=== [main] tools, options, sub-commands, exit statuses =====================
 * uses: core arena str err log text json sig io file tls conf model def perm
 *       msg api sess tool fs find grep bash plan out loop
 *
 * The only place that knows all tools.  Options, sub-commands and exit
 * statuses are tables; --help is made from them.
 *==========================================================================*/

/* Every tool, in the order in which they are sent (it must never change). */
static const struct tool *const main_tools[] = {
	&bash_tool,
	&fs_edit,
	&find_glob,
	&grep_tool,
	&fs_read,
	&plan_todo,
	&fs_write,
	NULL
};

enum {
	EXIT_DONE = 0,		/* the run finished */
	EXIT_RUN = 1,		/* it failed; the result says why */
	EXIT_USAGE = 2,		/* the command line or a file is wrong */
	EXIT_ASK = 3,		/* permit: would ask */
	EXIT_DENY = 4		/* permit: denied */
};

enum main_kind {
	OPT_FLAG,		/* bool */
	OPT_TEXT,		/* const char * */
	OPT_LIST,		/* struct strv: arguments up to the next
				   option, split as rules */
	OPT_PATHS,		/* struct strv: one path each, may repeat */
	OPT_INT,		/* int, not negative */
	OPT_USD,		/* double, positive */
	OPT_TIME,		/* int64_t ms: 90, 90s, 5m, 1h */
	OPT_FILTER,		/* bool, with an optional =filter */
	OPT_NONE,		/* taken and of no meaning here */
	OPT_NONE_ARG		/* the same, with an argument */
};

struct main_option {
	const char *name, *also;
	char letter;
	enum main_kind kind;
	size_t off;		/* in struct opts */
	const char *arg, *help;	/* help NULL: not shown */
};

#define OPT(member) offsetof(struct opts, member)

static const struct main_option main_options[] = {
	{ "print", NULL, 'p', OPT_FLAG, OPT(print), NULL,
	    "one shot: print the answer and exit (always the case)" },
	{ "agent", NULL, 0, OPT_TEXT, OPT(agent), "NAME",
	    "run as this agent: its prompt, tools, model, mode" },
	{ "agents", NULL, 0, OPT_TEXT, OPT(agents), "JSON|FILE",
	    "further agent definitions, by name" },
	{ "model", NULL, 0, OPT_TEXT, OPT(model), "MODEL",
	    "opus, sonnet, haiku, fable, or a full id" },
	{ "fallback-model", NULL, 0, OPT_TEXT, OPT(fallback_model), "LIST",
	    "models to go on with when one is overloaded or unknown" },
	{ "effort", NULL, 0, OPT_TEXT, OPT(effort), "LEVEL",
	    "low, medium, high, xhigh or max" },
	{ "output-format", NULL, 0, OPT_TEXT, OPT(output_format), "FORMAT",
	    "text (the answer) or json (one result object)" },
	{ "verbose", NULL, 0, OPT_FLAG, OPT(verbose), NULL,
	    "with json: an array of all messages" },
	{ "max-turns", NULL, 0, OPT_INT, OPT(max_turns), "N",
	    "stop after N requests; 0: no limit" },
	{ "max-budget-usd", NULL, 0, OPT_USD, OPT(max_budget), "USD",
	    "stop when the run has cost that much" },
	{ "timeout", NULL, 0, OPT_TIME, OPT(timeout_ms), "TIME",
	    "stop after that time: 90, 90s, 5m, 1h" },
	{ "allowedTools", "allowed-tools", 0, OPT_LIST, OPT(allowed),
	    "RULE...", "calls that run without asking: Edit 'Bash(git *)'" },
	{ "disallowedTools", "disallowed-tools", 0, OPT_LIST,
	    OPT(disallowed), "RULE...",
	    "tools taken away, or calls that are denied" },
	{ "tools", NULL, 0, OPT_LIST, OPT(tools), "NAME...",
	    "the tools that exist: names, \"\" for none, default" },
	{ "permission-mode", NULL, 0, OPT_TEXT, OPT(permission_mode), "MODE",
	    "default, acceptEdits, plan, dontAsk, bypassPermissions" },
	{ "dangerously-skip-permissions", NULL, 0, OPT_FLAG,
	    OPT(skip_permissions), NULL,
	    "the mode bypassPermissions; refused as root" },
	{ "system-prompt", NULL, 0, OPT_TEXT, OPT(system_prompt), "TEXT",
	    "instead of the agent's system prompt" },
	{ "system-prompt-file", NULL, 0, OPT_TEXT, OPT(system_prompt_file),
	    "FILE", "the same from a file" },
	{ "append-system-prompt", NULL, 0, OPT_TEXT,
	    OPT(append_system_prompt), "TEXT", "added to the system prompt" },
	{ "append-system-prompt-file", NULL, 0, OPT_TEXT,
	    OPT(append_system_prompt_file), "FILE", "the same from a file" },
	{ "input", NULL, 0, OPT_TEXT, OPT(input), "FILE|-",
	    "add this file, or standard input to its end, to the prompt" },
	{ "settings", NULL, 0, OPT_TEXT, OPT(settings), "JSON|FILE",
	    "further settings, above the files of folder and user" },
	{ "setting-sources", NULL, 0, OPT_TEXT, OPT(setting_sources), "LIST",
	    "of user, project, local: which files are read; \"\": none" },
	{ "add-dir", NULL, 0, OPT_PATHS, OPT(add_dirs), "DIR...",
	    "further working folders" },
	{ "bare", NULL, 0, OPT_FLAG, OPT(bare), NULL,
	    "no agents or instructions from files; few tools" },
	{ "no-session-persistence", NULL, 0, OPT_FLAG, OPT(no_session), NULL,
	    "keep no transcript" },
	{ "record", NULL, 0, OPT_TEXT, OPT(record), "FILE",
	    "write the exchanges with the model to FILE" },
	{ "replay", NULL, 0, OPT_TEXT, OPT(replay), "FILE",
	    "take the model's answers from FILE; tools run for real" },
	{ "debug", NULL, 'd', OPT_FILTER, OPT(debug), NULL,
	    "write a debug log (to debug.log, or --debug-file)" },
	{ "debug-file", NULL, 0, OPT_TEXT, OPT(debug_file), "FILE",
	    "write the debug log there" },
	{ "json", NULL, 0, OPT_FLAG, OPT(json), NULL,
	    "sub-commands: print JSON" },
	{ "background", NULL, 0, OPT_FLAG, OPT(background), NULL,
	    "tools: as for a background agent" },
	{ "licenses", NULL, 0, OPT_FLAG, OPT(licenses), NULL,
	    "print the notices of everything linked in" },
	{ "version", NULL, 'v', OPT_FLAG, OPT(version), NULL,
	    "print the version" },
	{ "help", NULL, 'h', OPT_FLAG, OPT(help), NULL, "print this" },
	/* Of the interactive program: harmless here. */
	{ "ide", NULL, 0, OPT_NONE, 0, NULL, NULL },
	{ "chrome", NULL, 0, OPT_NONE, 0, NULL, NULL },
	{ "no-chrome", NULL, 0, OPT_NONE, 0, NULL, NULL },
	{ "brief", NULL, 0, OPT_NONE, 0, NULL, NULL },
	{ "ax-screen-reader", NULL, 0, OPT_NONE, 0, NULL, NULL },
	{ "autocompact", NULL, 0, OPT_NONE_ARG, 0, NULL, NULL },
};

/* All that one command works on; cleared by main_close(). */
struct main_app {
	struct opts opts;
	struct conf conf;
	struct defs defs;
	struct run run;
	struct arena arena;
	struct tool_removed *removed;
	size_t nremoved;
	struct strv args;	/* what is no option */
	bool conf_open, defs_open;
};

/*--- options ---------------------------------------------------------------*/

/* Splits at commas and blanks outside parentheses. */
static void
main_split(const char *text, struct strv *out)
{
	size_t i, from = 0;
	int depth = 0;
	char c;

	for (i = 0;; i++) {
		c = text[i];
		if (c == '(')
			depth++;
		else if (c == ')' && depth)
			depth--;
		if (c && (depth || (c != ',' && !text_is_space(c))))
			continue;
		if (i > from)
			str_list_add(out, text + from, i - from);
		from = i + 1;
		if (!c)
			return;
	}
}

/* 90, 90s, 5m, 1h */
static bool
main_time(const char *s, int64_t *ms)
{
	static const struct { char unit; int64_t ms; } units[] =
	    { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 } };
	size_t n = strlen(s), i;
	int64_t scale = 1000;

	for (i = 0; n && i < LENGTH(units); i++) {
		if (s[n - 1] == units[i].unit) {
			scale = units[i].ms;
			n--;
			break;
		}
	}
	if (!text_int((struct slice){ s, n }, 1, 1000000, ms))
		return false;
	*ms *= scale;
	return true;
}

static const struct main_option *
main_find(const char *name, size_t n)
{
	size_t i;
	struct slice s = { name, n };

	for (i = 0; i < LENGTH(main_options); i++)
		if (str_eq(s, main_options[i].name) ||
		    (main_options[i].also && str_eq(s, main_options[i].also)))
			return &main_options[i];
	return NULL;
}

static bool
main_takes_value(enum main_kind k)
{
	return k != OPT_FLAG && k != OPT_FILTER && k != OPT_NONE;
}

static int
main_set(struct main_app *a, const struct main_option *o, const char *v,
    struct err *e)
{
	void *at = (char *)&a->opts + o->off;
	int64_t n;
	char *end;

	switch (o->kind) {
	case OPT_FLAG:
	case OPT_FILTER:
		*(bool *)at = true;
		break;
	case OPT_TEXT:
		*(const char **)at = v;
		break;
	case OPT_LIST:
		main_split(v, at);
		break;
	case OPT_PATHS:
		if (*v)
			str_list_adds(at, v);
		break;
	case OPT_INT:
		if (!text_int(str_of(v), 0, 1000000, &n))
			return err_set(e, ERR_USAGE, "--%s: '%.60s' is not a "
			    "whole number from 0 on", o->name, v);
		*(int *)at = (int)n;
		break;
	case OPT_USD:
		*(double *)at = strtod(v, &end);
		if (end == v || *end || !(*(double *)at > 0) ||
		    *(double *)at > 1e9)
			return err_set(e, ERR_USAGE, "--%s: '%.60s' is not an "
			    "amount over 0", o->name, v);
		break;
	case OPT_TIME:
		if (!main_time(v, at))
			return err_set(e, ERR_USAGE, "--%s: '%.60s' is not a "
			    "time such as 90, 90s, 5m or 1h", o->name, v);
		break;
	case OPT_NONE:
	case OPT_NONE_ARG:
		break;
	}
	if (o->off == OPT(tools))
		a->opts.tools_given = true;
	return 0;
}

/* One option at argv[i]; returns the index of the last argument it took. */
static int
main_option(struct main_app *a, int argc, char **argv, int i, struct err *e)
{
	const char *name = argv[i] + 2, *eq = strchr(name, '=');
	const struct main_option *o = main_find(name, eq ?
	    (size_t)(eq - name) : strlen(name));

	if (!o)
		return err_set(e, ERR_USAGE, "unknown option '%.80s' "
		    "(--help lists them)", argv[i]);
	if (!main_takes_value(o->kind)) {
		if (eq && o->kind == OPT_FLAG)
			return err_set(e, ERR_USAGE,
			    "--%s takes no value", o->name);
		return main_set(a, o, "", e) < 0 ? -1 : i;
	}
	if (eq)
		return main_set(a, o, eq + 1, e) < 0 ? -1 : i;
	if (i + 1 >= argc || (argv[i + 1][0] == '-' && argv[i + 1][1] &&
	    o->kind != OPT_TEXT))
		return err_set(e, ERR_USAGE, "--%s needs a value (%s)",
		    o->name, o->arg ? o->arg : "VALUE");
	do {
		if (main_set(a, o, argv[++i], e) < 0)
			return -1;
	} while ((o->kind == OPT_LIST || o->kind == OPT_PATHS) &&
	    i + 1 < argc && argv[i + 1][0] != '-');
	return i;
}

/* Fills a->opts and a->args; argv stays in use. */
static int
main_parse(struct main_app *a, int argc, char **argv, struct err *e)
{
	const struct main_option *o;
	const char *p;
	size_t k;
	int i;

	for (i = 1; i < argc; i++) {
		if (argv[i][0] != '-' || !argv[i][1]) {
			str_list_adds(&a->args, argv[i]);
		} else if (!strcmp(argv[i], "--")) {
			while (++i < argc)
				str_list_adds(&a->args, argv[i]);
		} else if (argv[i][1] == '-') {
			i = main_option(a, argc, argv, i, e);
			if (i < 0)
				return -1;
		} else {
			for (p = argv[i] + 1; *p; p++) {
				for (o = NULL, k = 0; k < LENGTH(
				    main_options); k++)
					if (main_options[k].letter == *p)
						o = &main_options[k];
				if (!o)
					return err_set(e, ERR_USAGE, "unknown "
					    "option '-%c' (--help lists "
					    "them)", *p);
				main_set(a, o, "", e);
			}
		}
	}
	return 0;
}

/* Values that must be one of a few words. */
static int
main_check_words(const struct opts *o, struct err *e)
{
	enum perm_mode mode;

	if (o->output_format && strcmp(o->output_format, "text") &&
	    strcmp(o->output_format, "json"))
		return err_set(e, ERR_USAGE, "--output-format: '%.60s' is "
		    "not text or json", o->output_format);
	if (o->permission_mode && perm_mode_parse(o->permission_mode, &mode))
		return err_set(e, ERR_USAGE, "--permission-mode: '%.60s' is "
		    "none of default, acceptEdits, plan, dontAsk, "
		    "bypassPermissions", o->permission_mode);
	if (o->record && o->replay)
		return err_set(e, ERR_USAGE,
		    "--record and --replay exclude each other");
	return 0;
}

/*--- a run -----------------------------------------------------------------*/

/* A file's text that lives as long as the app. */
static const char *
main_file_text(struct main_app *a, const char *option, const char *path,
    struct err *e)
{
	struct str s, fixed;
	const char *text = NULL;

	str_init(&s, 0);
	str_init(&fixed, 0);
	if (file_read(path, LIM_STDIN, &s, e) < 0) {
		err_wrap(e, "--%s", option);
		if (e)
			e->code = ERR_USAGE;
	} else {
		text_utf8_fix(str_slice(&s), &fixed);
		text = arena_dup(&a->arena, fixed.p, fixed.len);
	}
	str_clear(&s);
	str_clear(&fixed);
	return text;
}

/* The definition that --agent or the setting names. */
static int
main_agent(struct main_app *a, struct err *e)
{
	const char *name = a->opts.agent;
	struct run *r = &a->run;

	if (!name)
		name = conf_text(&a->conf, "agent");
	if (!name || r->def)
		return 0;
	r->def = def_find(&a->defs, name);
	if (!r->def)
		return def_missing(&a->defs, name, e);
	r->agent = r->def->name;
	def_warn(r->def);
	return 0;
}

/*
 * A repository's agent file is not the user's word: it never brings the mode
 * bypassPermissions along, and no looser one where the repository's own
 * settings chose the agent, unless the folder is trusted.
 */
static bool
main_mode_counts(struct main_app *a)
{
	const struct def *d = a->run.def;

	if (!d->source || strcmp(d->source, "project") ||
	    conf_trust(&a->conf) || (d->mode != MODE_BYPASS &&
	    (d->mode != MODE_ACCEPT_EDITS || a->opts.agent)))
		return true;
	log_warn("%s: permissionMode %s is not used: this folder is not "
	    "trusted (--permission-mode sets it)", d->path,
	    perm_mode_name(d->mode));
	return false;
}

/* The mode: option, then the agent's, then the settings'. */
static int
main_mode(struct main_app *a, struct err *e)
{
	struct run *r = &a->run;
	const struct opts *o = &a->opts;
	const char *given = o->skip_permissions ? "bypassPermissions" :
	    o->permission_mode;
	const char *off = conf_text(&a->conf,
	    "permissions.disableBypassPermissionsMode");

	r->mode = MODE_DEFAULT;
	if (given)
		perm_mode_parse(given, &r->mode);
	else if (r->def && r->def->has_mode && main_mode_counts(a))
		r->mode = r->def->mode;
	else if (conf_text(&a->conf, "permissions.defaultMode"))
		perm_mode_parse(conf_text(&a->conf,
		    "permissions.defaultMode"), &r->mode);
	if (r->mode != MODE_BYPASS)
		return 0;
	if (off)
		return err_set(e, ERR_USAGE, "the mode bypassPermissions is "
		    "switched off by '%s'", conf_origin(&a->conf,
		    "permissions.disableBypassPermissionsMode"));
	if (!geteuid() && !conf_env("IS_SANDBOX"))
		return err_set(e, ERR_USAGE, "bypassPermissions cannot be "
		    "used with root privileges (in a sandbox, set "
		    "IS_SANDBOX=1)");
	return 0;
}

static int
main_model(struct main_app *a, struct err *e)
{
	struct run *r = &a->run;
	struct str id;

	str_init(&id, 256);
	if (model_main(&a->conf, r->def ? r->def->model : NULL, &id, e) < 0) {
		str_clear(&id);
		return -1;
	}
	r->model = str_detach(&id);
	if (a->opts.max_budget > 0 && !model_find(r->model))
		return err_set(e, ERR_USAGE, "--max-budget-usd: no price is "
		    "known for the model '%s'", r->model);
	r->effort = model_effort(r->model, model_effort_asked(&a->conf, NULL,
	    r->def ? r->def->effort : NULL));
	r->max_tokens = model_max_tokens(r->model);
	return 0;
}

/* The system prompt, rendered once, with the mark that ends the prefix. */
static int
main_system(struct main_app *a, struct err *e)
{
	const struct opts *o = &a->opts;
	struct run *r = &a->run;
	const char *text = o->system_prompt, *more;
	struct str s;

	if (!text && o->system_prompt_file &&
	    !(text = main_file_text(a, "system-prompt-file",
	    o->system_prompt_file, e)))
		return -1;
	if (!text)
		text = r->def ? r->def->prompt : def_default_prompt(&a->defs);
	str_init(&s, 0);
	str_adds(&s, text);
	more = o->append_system_prompt;
	if (more)
		str_addf(&s, "\n\n%s", more);
	if (o->append_system_prompt_file) {
		more = main_file_text(a, "append-system-prompt-file",
		    o->append_system_prompt_file, e);
		if (!more) {
			str_clear(&s);
			return -1;
		}
		str_addf(&s, "\n\n%s", more);
	}
	if (!text_is_blank(str_slice(&s))) {
		str_adds(&r->system_json, "[{\"type\":\"text\",\"text\":");
		json_put(&r->system_json, str_slice(&s));
		if (r->api->caching)
			str_adds(&r->system_json, r->api->mark);
		str_adds(&r->system_json, "}]");
	}
	str_clear(&s);
	return 0;
}

/* The tool list, rendered once. */
static void
main_tools_json(struct run *r)
{
	struct str *s = &r->tools_json;
	size_t i;

	for (i = 0; i < r->ntools; i++) {
		str_addc(s, i ? ',' : '[');
		str_addc(s, '{');
		json_put_text(s, "name", r->tools[i]->name);
		json_put_text(s, "description", r->tools[i]->desc);
		json_put_raw(s, "input_schema", str_of(r->tools[i]->schema));
		str_addc(s, '}');
	}
	if (r->ntools)
		str_addc(s, ']');
}

/* Settings and definitions; what `agents` and `check` need. */
static int
main_load(struct main_app *a, struct err *e)
{
	if (conf_load(&a->conf, &a->opts, e) < 0)
		return -1;
	a->conf_open = true;
	if (def_load_all(&a->defs, &a->conf, e) < 0)
		return -1;
	a->defs_open = true;
	return 0;
}

/* Everything a run needs but the conversation; see main_close(). */
static int
main_open(struct main_app *a, struct err *e)
{
	struct run *r = &a->run;
	size_t i;

	if (main_load(a, e) < 0)
		return -1;
	r->conf = &a->conf;
	r->started_ms = core_now();
	r->cost_known = true;
	r->deadline = IO_FOREVER;
	core_uuid(r->session);
	r->start_dir = core_strdup(a->conf.start_dir);
	r->cwd = core_strdup(a->conf.start_dir);
	r->git_root = core_strdup(a->conf.git_root);
	for (i = 0; i < a->conf.dirs.n; i++)
		str_list_adds(&r->dirs, a->conf.dirs.v[i]);
	str_init(&r->tools_json, 0);
	str_init(&r->system_json, 0);
	r->conv = msg_new();
	if (main_agent(a, e) < 0 || main_mode(a, e) < 0 ||
	    main_model(a, e) < 0)
		return -1;
	r->perm = perm_new(&a->conf, e);
	if (!r->perm)
		return -1;
	if (tool_pool(r, main_tools, r->def, false, a->opts.background,
	    &a->removed, &a->nremoved, e) < 0)
		return -1;
	r->api = api_new(&a->conf, e);
	if (!r->api)
		return -1;
	if (main_system(a, e) < 0)
		return -1;
	main_tools_json(r);
	if (r->def)
		r->reminder = core_strdup(r->def->critical_reminder);
	return 0;
}

static void
main_close(struct main_app *a)
{
	struct run *r = &a->run;
	size_t i;

	for (i = 0; i < a->nremoved; i++) {
		free(a->removed[i].name);
		free(a->removed[i].reason);
	}
	free(a->removed);
	for (i = 0; i < r->ndenials; i++) {
		free(r->denials[i].tool);
		free(r->denials[i].id);
		free(r->denials[i].input);
		free(r->denials[i].reason);
	}
	free(r->denials);
	for (i = 0; i < r->nuses; i++)
		free(r->uses[i].model);
	free(r->uses);
	free(r->tools);
	free(r->left);
	free(r->start_dir);
	free(r->cwd);
	free(r->git_root);
	free(r->model);
	free(r->reminder);
	str_clear(&r->tools_json);
	str_clear(&r->system_json);
	str_list_clear(&r->dirs);
	cJSON_Delete(r->todos);
	fs_seen_free(r->seen);
	msg_free(r->conv);
	sess_free(r->sess);
	api_free(r->api);
	perm_free(r->perm);
	out_free(r->out);
	if (a->defs_open)
		def_clear_all(&a->defs);
	if (a->conf_open)
		conf_clear(&a->conf);
	str_list_clear(&a->opts.allowed);
	str_list_clear(&a->opts.disallowed);
	str_list_clear(&a->opts.tools);
	str_list_clear(&a->opts.add_dirs);
	str_list_clear(&a->args);
	arena_clear(&a->arena);
	memset(a, 0, sizeof(*a));
}

/*--- the prompt ------------------------------------------------------------*/

#define MAIN_STDIN_WAIT 400	/* ms for the first byte beside a prompt */

/*
 * Standard input beside a prompt: a file is read; a pipe may be one that
 * nobody ever closes, so it gets a short time to begin, and that is said.
 */
static int
main_stdin_beside(struct str *out, struct err *e)
{
	struct stat st;
	int r;

	if (fstat(0, &st) < 0 || S_ISDIR(st.st_mode) || isatty(0))
		return 0;
	if (S_ISCHR(st.st_mode))
		return 0;	/* /dev/null and the like */
	if (!S_ISREG(st.st_mode)) {
		r = io_wait1(0, POLLIN, io_in(MAIN_STDIN_WAIT), e);
		if (r < 0)
			return -1;
		if (!r) {
			log_warn("standard input is open but silent: going "
			    "on without it (--input - waits for it)");
			return 0;
		}
	}
	return file_read_fd(0, "standard input", LIM_STDIN, out, e);
}

/* Argument, --input and standard input make one prompt. */
static int
main_prompt(struct main_app *a, struct str *out, struct err *e)
{
	const struct opts *o = &a->opts;
	const char *initial = a->run.def ? a->run.def->initial_prompt : NULL;
	const char *given = a->args.n && strcmp(a->args.v[0], "-") ?
	    a->args.v[0] : "";
	struct str in, fixed;
	int r = 0;

	if (a->args.n > 1)
		return err_set(e, ERR_USAGE, "more than one prompt: '%.40s' "
		    "and '%.40s' (quote it; options with lists end at --)",
		    a->args.v[0], a->args.v[1]);
	str_init(&in, 0);
	str_init(&fixed, 0);
	if (initial)
		str_addf(out, "%s\n", initial);
	if (o->input && strcmp(o->input, "-"))
		r = file_read(o->input, LIM_STDIN, &in, e);
	else if (o->input || (a->args.n && !*given) ||
	    (!*given && !isatty(0)))
		r = file_read_fd(0, "standard input", LIM_STDIN, &in, e);
	else
		r = main_stdin_beside(&in, e);
	if (r < 0 && e && e->code != ERR_ABORT)
		e->code = ERR_USAGE;
	text_utf8_fix(str_of(given), &fixed);
	if (fixed.len && in.len)
		str_addc(&fixed, '\n');
	text_utf8_fix(str_slice(&in), &fixed);
	if (!r && text_is_blank(str_slice(&fixed)) && !initial)
		r = err_set(e, ERR_USAGE, "Input must be provided either "
		    "through stdin or as a prompt argument when using "
		    "--print");
	str_addl(out, str_slice(&fixed));
	str_clear(&in);
	str_clear(&fixed);
	return r;
}

/*--- a person at the terminal ----------------------------------------------*/

/* Reads a line from the terminal; -1: stopped. */
static int
main_tty_line(int fd, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t r;

	while (n + 1 < size) {
		if (io_wait1(fd, POLLIN, IO_FOREVER, NULL) < 0)
			return -1;
		r = io_read(fd, buf + n, 1);
		if (r <= 0 || buf[n] == '\n')
			break;
		n++;
	}
	buf[n] = 0;
	return 0;
}

/* Shows text from the model without what a terminal would obey. */
static void
main_tty_show(int fd, const char *text)
{
	struct str raw, s;
	size_t i;

	str_init(&raw, 0);
	str_init(&s, 0);
	log_redact(str_of(text), &raw);
	text_utf8_fix(str_slice(&raw), &s);
	for (i = 0; i < s.len; i++)
		if (((unsigned char)s.p[i] < 32 && s.p[i] != '\n' &&
		    s.p[i] != '\t') || s.p[i] == 127)
			s.p[i] = '?';
	log_write(fd, s.p, s.len);
	str_clear(&raw);
	str_clear(&s);
}

/* The question; only where a person can see it and answer. */
static int
main_ask(struct run *r, const struct tool *t, const cJSON *in,
    const char *why)
{
	char answer[16];
	char *text;
	int fd, ret = -1;

	if (!isatty(2) || (fd = open("/dev/tty", O_RDWR | O_CLOEXEC |
	    O_NOCTTY)) < 0)
		return -1;
	out_progress(r, NULL);
	text = cJSON_Print(in);
	log_write(fd, "\n", 1);
	main_tty_show(fd, t->name);
	log_write(fd, " ", 1);
	main_tty_show(fd, text ? text : "");
	log_write(fd, "\n", 1);
	main_tty_show(fd, why);
	log_write(fd, "\nAllow this once? [y/N] ", 24);
	if (!main_tty_line(fd, answer, sizeof(answer)))
		ret = answer[0] == 'y' || answer[0] == 'Y';
	free(text);
	close(fd);
	return ret;
}

static void
main_retry(struct run *r, int attempt, int max, int64_t delay,
    const char *why)
{
	char what[LIM_MSG + 64];

	snprintf(what, sizeof(what), "attempt %d of %d in %" PRId64 " ms: %s",
	    attempt + 1, max + 1, delay, why);
	if (r->out && r->out->verbose && !r->out->live)
		log_warn("%s", what);
	out_progress(r, what);
}

static const struct run_ops main_ops = {
	.ask = main_ask,
	.retry = main_retry,
	.message = out_message,
	.progress = out_progress,
};

/*--- the commands ----------------------------------------------------------*/

/* Writes the answer; what a closed reader does not want is no error. */
static int
main_write(struct slice s)
{
	struct err e = { 0 };

	io_hold(1);
	if (io_write(1, s.p, s.n, &e) < 0 && errno != EPIPE)
		log_error("standard output: %s", e.msg);
	else
		err_clear(&e);
	io_hold(-1);
	return e.code ? EXIT_RUN : EXIT_DONE;
}

/* The exit status of a run that a signal ended (reference 1.6). */
static int
main_signal_status(int signo)
{
	return signo == SIGINT ? 0 : 128 + signo;
}

static int
main_command_run(struct main_app *a, struct err *e)
{
	struct run *r = &a->run;
	struct loop_result res;
	struct out_end end;
	struct str prompt, text;
	int status = EXIT_USAGE;

	str_init(&prompt, 0);
	str_init(&text, 0);
	loop_result_init(&res);
	if (main_open(a, e) < 0 || main_prompt(a, &prompt, e) < 0)
		goto out;
	r->out = out_new(&a->opts);
	r->ops = &main_ops;
	r->prompt = prompt.p;
	if (a->opts.timeout_ms)
		r->deadline = io_in(a->opts.timeout_ms);
	if (!a->opts.no_session)
		r->sess = sess_open(r, &a->conf);
	out_init(r);
	loop_run(r, prompt.p, &res);
	if (res.signo) {
		status = main_signal_status(res.signo);
		goto out;
	}
	end = (struct out_end){ res.subtype, res.terminal, res.stop_reason,
	    res.is_error, res.api_status, str_slice(&res.text) };
	out_print(r, &end, &text);
	status = main_write(str_slice(&text));
	if (!status && res.is_error)
		status = EXIT_RUN;
out:
	str_clear(&res.text);
	str_clear(&prompt);
	str_clear(&text);
	return status;
}

static int
main_command_agents(struct main_app *a, struct err *e)
{
	struct str s;
	int status;

	if (main_load(a, e) < 0)
		return EXIT_USAGE;
	str_init(&s, 0);
	if (a->opts.json) {
		def_print_json(&a->defs, &s);
		def_warn_all(&a->defs);
	} else {
		def_print(&a->defs, &s);
	}
	status = main_write(str_slice(&s));
	str_clear(&s);
	return status;
}

static int
main_command_check(struct main_app *a, struct err *e)
{
	struct str s;
	bool bad = false;
	int status;
	size_t i;

	if (a->args.n < 2) {
		err_set(e, ERR_USAGE, "check needs the agent files to check");
		return EXIT_USAGE;
	}
	str_init(&s, 0);
	for (i = 1; i < a->args.n; i++)
		bad |= !def_check(a->args.v[i], &s);
	status = main_write(str_slice(&s));
	str_clear(&s);
	return status ? status : bad ? EXIT_RUN : EXIT_DONE;
}

static int
main_command_tools(struct main_app *a, struct err *e)
{
	struct run *r = &a->run;
	bool json = a->opts.json;
	struct str s;
	size_t i;
	int status;

	if (main_open(a, e) < 0)
		return EXIT_USAGE;
	str_init(&s, 0);
	if (json)
		str_adds(&s, "{\"tools\":[");
	for (i = 0; i < r->ntools; i++) {
		if (json && i)
			str_addc(&s, ',');
		if (json)
			json_puts(&s, r->tools[i]->name);
		else
			str_addf(&s, "%s\n", r->tools[i]->name);
	}
	if (json)
		str_adds(&s, "],\"removed\":[");
	for (i = 0; i < a->nremoved; i++) {
		if (!json) {
			str_addf(&s, "- %s: %s: %s\n", a->removed[i].name,
			    a->removed[i].layer, a->removed[i].reason);
			continue;
		}
		if (i)
			str_addc(&s, ',');
		str_addc(&s, '{');
		json_put_text(&s, "name", a->removed[i].name);
		json_put_text(&s, "layer", a->removed[i].layer);
		json_put_text(&s, "reason", a->removed[i].reason);
		str_addc(&s, '}');
	}
	if (json)
		str_adds(&s, "]}\n");
	status = main_write(str_slice(&s));
	str_clear(&s);
	return status;
}

/* The tool a permit question is about; it need not be in the pool. */
static const struct tool *
main_permit_tool(const char *name, struct tool *other)
{
	const char *known = def_tool_alias(name);
	size_t i;

	for (i = 0; main_tools[i]; i++)
		if (!strcmp(main_tools[i]->name, known && *known ? known :
		    name))
			return main_tools[i];
	*other = (struct tool){ .name = name };
	return other;
}

static int
main_command_permit(struct main_app *a, struct err *e)
{
	static const char *const words[] = { "allow", "ask", "deny" };
	static const int statuses[] = { EXIT_DONE, EXIT_ASK, EXIT_DENY };
	struct perm_call call = { 0 };
	struct perm_verdict v;
	struct tool other;
	struct str s;
	cJSON *in;
	int status;

	if (a->args.n != 3) {
		err_set(e, ERR_USAGE,
		    "permit needs a tool's name and its input as JSON");
		return EXIT_USAGE;
	}
	if (main_open(a, e) < 0)
		return EXIT_USAGE;
	in = json_parse(str_of(a->args.v[2]), e);
	if (!in || !cJSON_IsObject(in)) {
		err_set(e, ERR_USAGE, "the input is not a JSON object");
		err_wrap(e, "permit");
		cJSON_Delete(in);
		return EXIT_USAGE;
	}
	call.tool = main_permit_tool(a->args.v[1], &other);
	call.input = in;
	call.cwd = a->run.cwd;
	call.mode = a->run.mode;
	call.dirs = &a->run.dirs;
	perm_verdict_init(&v);
	perm_decide(a->run.perm, &call, &v);
	str_init(&s, 0);
	if (a->opts.json) {
		str_addc(&s, '{');
		json_put_text(&s, "decision", words[v.decision]);
		json_put_text(&s, "rule", v.rule.len ? v.rule.p : NULL);
		json_put_text(&s, "reason", v.reason.p);
		str_adds(&s, "}\n");
	} else {
		str_addf(&s, "%s: %s\n", words[v.decision], v.reason.p);
	}
	status = main_write(str_slice(&s));
	if (!status)
		status = statuses[v.decision];
	perm_verdict_clear(&v);
	str_clear(&s);
	cJSON_Delete(in);
	return status;
}

/* The first request's body, appended to out. */
static int
main_request(struct main_app *a, const char *prompt, struct str *out,
    struct err *e)
{
	struct slice p[API_PIECES];
	struct str head;
	size_t n, i;

	loop_first(&a->run, prompt);
	if (msg_check(a->run.conv, false, e) < 0)
		return -1;
	str_init(&head, 0);
	n = api_pieces(&a->run, &head, p);
	for (i = 0; i < n; i++)
		str_addl(out, p[i]);
	str_clear(&head);
	return 0;
}

static int
main_command_request(struct main_app *a, struct err *e)
{
	struct str prompt, s;
	int status = EXIT_USAGE;

	free(a->args.v[0]);
	a->args.n--;
	memmove(a->args.v, a->args.v + 1,
	    (a->args.n + 1) * sizeof(*a->args.v));
	str_init(&prompt, 0);
	str_init(&s, 0);
	if (!main_open(a, e) && !main_prompt(a, &prompt, e) &&
	    !main_request(a, prompt.p, &s, e)) {
		str_addc(&s, '\n');
		status = main_write(str_slice(&s));
	}
	str_clear(&prompt);
	str_clear(&s);
	return status;
}

static const struct {
	const char *name, *args, *help;
	int (*run)(struct main_app *a, struct err *e);
} main_commands[] = {
	{ "agents", "", "every agent definition, and which one wins",
	    main_command_agents },
	{ "check", " FILE...", "problems of agent files, with their lines",
	    main_command_check },
	{ "tools", "", "the tools of a run, and why others are missing",
	    main_command_tools },
	{ "permit", " TOOL JSON", "whether a call may run: exit 0 allow, "
	    "3 ask, 4 deny", main_command_permit },
	{ "request", " PROMPT", "the first request's body, sent nowhere",
	    main_command_request },
};

static void
main_help(struct str *s)
{
	const struct main_option *o;
	char left[64];
	size_t i;

	str_adds(s, "subagent " SA_VERSION " - runs agents\n\n"
	    "usage: subagent [options] [prompt]\n"
	    "       subagent COMMAND [options] [arguments]\n\n"
	    "The prompt comes from the argument, from standard input, or "
	    "both.\n\ncommands\n");
	for (i = 0; i < LENGTH(main_commands); i++) {
		snprintf(left, sizeof(left), "%s%s", main_commands[i].name,
		    main_commands[i].args);
		str_addf(s, "  %-26s %s\n", left, main_commands[i].help);
	}
	str_adds(s, "\noptions (--x v or --x=v)\n");
	for (i = 0; i < LENGTH(main_options); i++) {
		o = &main_options[i];
		if (!o->help)
			continue;
		snprintf(left, sizeof(left), "%s%c%s--%s%s%s",
		    o->letter ? "-" : "", o->letter ? o->letter : ' ',
		    o->letter ? ", " : "   ", o->name, o->arg ? " " : "",
		    o->arg ? o->arg : "");
		if (strlen(left) > 30)
			str_addf(s, "  %s\n  %-30s %s\n", left, "", o->help);
		else
			str_addf(s, "  %-30s %s\n", left, o->help);
	}
	str_adds(s, "\nexit status: 0 done, 1 the run failed (the result "
	    "says why), 2 usage;\nSIGTERM 143, SIGHUP 129\n");
}

/* --version, --help, --licenses: need nothing else. */
static bool
main_static(const struct opts *o, int *status)
{
	struct str s;
	bool is = o->version || o->help || o->licenses;

	if (!is)
		return false;
	str_init(&s, 0);
	if (o->version)
		str_adds(&s, SA_VERSION " (subagent)\n");
	else if (o->help)
		main_help(&s);
	else
		str_adds(&s, embed_licenses);
	*status = main_write(str_slice(&s));
	str_clear(&s);
	return true;
}

/*
 * Descriptors 0 to 2 must be taken, or the next file that is opened would
 * be written to by a warning.  A pipe stands in where there is no /dev.
 */
static void
main_descriptors(void)
{
	int fd, p[2];

	for (fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		p[0] = open("/dev/null", fd ? O_RDONLY : O_RDONLY);
		if (p[0] < 0 && !pipe(p))
			close(p[1]);
	}
}

static int
main_command(struct main_app *a, struct err *e)
{
	size_t i;

	if (main_check_words(&a->opts, e) < 0)
		return EXIT_USAGE;
	if (a->opts.debug_file || a->opts.debug) {
		if (log_open(a->opts.debug_file ? a->opts.debug_file :
		    "debug.log", e) < 0)
			return EXIT_USAGE;
	}
	for (i = 0; a->args.n && !a->opts.print &&
	    i < LENGTH(main_commands); i++)
		if (!strcmp(a->args.v[0], main_commands[i].name))
			return main_commands[i].run(a, e);
	return main_command_run(a, e);
}

/* Returns the exit status. */
static int
main_program(int argc, char **argv)
{
	struct main_app a;
	struct err e = { 0 };
	struct slice lines, line;
	int status = EXIT_USAGE;

	main_descriptors();
	core_init();
	memset(&a, 0, sizeof(a));
	if (main_parse(&a, argc, argv, &e) < 0)
		goto out;
	if (main_static(&a.opts, &status))
		goto out;
	if (sig_init(&e) < 0)
		goto out;
	status = main_command(&a, &e);
	if (e.code == ERR_ABORT && sig_stop())
		status = main_signal_status(sig_stop());
out:
	/* A message of several lines has a problem a line. */
	lines = str_of(e.code == ERR_ABORT && sig_stop() ? "" : e.msg);
	while (text_line(&lines, &line))
		log_error("%.*s", (int)line.n, line.p);
	main_close(&a);
	return status;
}

#ifndef SA_LIBRARY
#ifdef SA_TESTING
int __attribute__((weak))
#else
int
#endif
main(int argc, char **argv)
{
#ifdef SA_BOOTSTRAP
	if (argc > 1 && !strcmp(argv[1], "--gen-roots"))
		return tls_gen_roots(argc - 2, argv + 2);
#endif
	return main_program(argc, argv);
}
#endif

/*=== [lib] the functions of subagent.h ======================================
 * uses: core str err log text sig io file def sess out loop main
 *
 * The contracts stand in subagent.h.  A run of the library is a run of the
 * command with other callbacks; what the command prints is returned.
 *==========================================================================*/

struct sa_agent {
	struct def def;
	struct strv warnings;
};

/* A heap text for the caller of the library; NULL is returned. */
static void *
lib_fail(struct err *e, char **error)
{
	struct str s;

	str_init(&s, 0);
	log_redact(str_of(e->msg), &s);
	if (error)
		*error = str_detach(&s);
	str_clear(&s);
	return NULL;
}

static struct sa_agent *
lib_agent(struct slice text, const char *name, char **error)
{
	struct sa_agent *a = core_zalloc(sizeof(*a));
	struct err e = { 0 };
	struct str s;
	size_t i;

	if (def_parse(text, name, "flag", &a->def, &e) < 0) {
		free(a);
		return lib_fail(&e, error);
	}
	str_init(&s, 0);
	for (i = 0; i < a->def.nwarnings; i++) {
		str_addf(&s, "line %d: %s: %s", a->def.warnings[i].line,
		    a->def.warnings[i].code, a->def.warnings[i].message);
		str_list_take(&a->warnings, str_detach(&s));
	}
	return a;
}

struct sa_agent *
sa_agent_load(const char *path, char **error)
{
	struct sa_agent *a = NULL;
	struct err e = { 0 };
	struct str s;

	str_init(&s, 0);
	if (file_read(path, LIM_DEF, &s, &e) < 0)
		lib_fail(&e, error);
	else
		a = lib_agent(str_slice(&s), path, error);
	str_clear(&s);
	return a;
}

struct sa_agent *
sa_agent_parse(const char *text, size_t n, const char *name, char **error)
{
	return lib_agent((struct slice){ text, n }, name ? name : "agent",
	    error);
}

const char *
sa_agent_name(const struct sa_agent *a)
{
	return a->def.name;
}

const char *
sa_agent_description(const struct sa_agent *a)
{
	return a->def.description;
}

const char *
sa_agent_prompt(const struct sa_agent *a)
{
	return a->def.prompt;
}

const char *
sa_agent_check(const struct sa_agent *a, size_t i)
{
	return i < a->warnings.n ? a->warnings.v[i] : NULL;
}

void
sa_agent_free(struct sa_agent *a)
{
	if (!a)
		return;
	def_clear(&a->def);
	str_list_clear(&a->warnings);
	free(a);
}

static void
lib_list(const char *const *from, struct strv *to)
{
	for (; from && *from; from++)
		str_list_adds(to, *from);
}

/* The options as the command line would have given them. */
static void
lib_options(struct main_app *a, const struct sa_options *o)
{
	struct opts *p = &a->opts;

	memset(a, 0, sizeof(*a));
	p->agent = o->definition ? NULL : o->agent;
	p->model = o->model;
	p->fallback_model = o->fallback_model;
	p->effort = o->effort;
	p->system_prompt = o->system_prompt;
	p->append_system_prompt = o->append_system_prompt;
	p->permission_mode = o->permission_mode;
	p->settings = o->settings;
	p->setting_sources = o->setting_sources;
	p->record = o->record;
	p->replay = o->replay;
	p->max_turns = o->max_turns > 0 ? o->max_turns : 0;
	p->max_budget = o->max_budget_usd > 0 ? o->max_budget_usd : 0;
	p->timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : 0;
	p->bare = o->bare;
	p->no_session = o->no_transcript;
	p->tools_given = o->tools != NULL;
	lib_list(o->allow, &p->allowed);
	lib_list(o->deny, &p->disallowed);
	lib_list(o->tools, &p->tools);
	if (o->definition) {
		a->run.def = &o->definition->def;
		a->run.agent = o->definition->def.name;
	}
}

static int
lib_ask(struct run *r, const struct tool *t, const cJSON *in,
    const char *why)
{
	const struct sa_options *o = r->ops_arg;
	char *text = cJSON_PrintUnformatted(in);
	int answer = o->permission(o->user, t->name, text ? text : "{}", why);

	free(text);
	return answer == 1;
}

static void
lib_message(struct run *r, const struct notice *n)
{
	const struct sa_options *o = r->ops_arg;
	struct str s;

	str_init(&s, 0);
	str_addc(&s, '[');
	str_addl(&s, n->blocks);
	str_addc(&s, ']');
	o->message(o->user, n->assistant ? "assistant" : "user", s.p);
	str_clear(&s);
}

static struct sa_result *
lib_result(struct main_app *a, const struct loop_result *res)
{
	struct sa_result *r = core_zalloc(sizeof(*r));
	struct out_end end = { res->subtype, res->terminal, res->stop_reason,
	    res->is_error, res->api_status, str_slice(&res->text) };
	struct str json;

	str_init(&json, 0);
	out_result(&a->run, &end, &json);
	r->is_error = res->is_error;
	r->subtype = core_strdup(res->subtype);
	r->terminal_reason = core_strdup(res->terminal);
	r->text = core_memdup(res->text.p, res->text.len);
	r->json = str_detach(&json);
	r->session_id = core_strdup(a->run.session);
	r->turns = a->run.turns;
	r->input_tokens = a->run.usage.input;
	r->output_tokens = a->run.usage.output;
	r->cache_read_tokens = a->run.usage.cache_read;
	r->cache_write_tokens = a->run.usage.cache_write;
	r->cost_usd = a->run.cost_known ? a->run.cost : -1;
	r->denials = (int)a->run.ndenials;
	return r;
}

/* Goes to the options' folder; returns a descriptor of the old one. */
static int
lib_enter(const struct sa_options *o, struct err *e)
{
	int back;

	if (o->size != sizeof(*o))
		return err_set(e, ERR_USAGE, "sa_options.size is %zu, this "
		    "library was built with %zu", o->size, sizeof(*o));
	/* Where the current folder is gone, the way back leads to "/". */
	back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (back < 0)
		back = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (back >= 0 && o->cwd && chdir(o->cwd) < 0) {
		err_sys(e, "change to '%s'", o->cwd);
		close(back);
		return -1;
	}
	return back;
}

static void
lib_leave(int back)
{
	if (fchdir(back) < 0)
		log_debug("lib", "the folder before the run is gone");
	close(back);
}

static struct sa_result *
lib_run(struct main_app *a, const struct sa_options *o, const char *prompt,
    struct err *e)
{
	struct run_ops ops = { .ask = o->permission ? lib_ask : NULL,
	    .message = o->message ? lib_message : NULL };
	struct sa_result *result = NULL;
	struct loop_result res;
	struct str clean;

	if (main_check_words(&a->opts, e) < 0 || main_open(a, e) < 0)
		return NULL;
	loop_result_init(&res);
	str_init(&clean, 0);
	text_utf8_fix(str_of(prompt), &clean);
	if (text_is_blank(str_slice(&clean))) {
		err_set(e, ERR_USAGE, "the prompt is empty");
	} else {
		a->run.ops = &ops;
		a->run.ops_arg = (void *)(uintptr_t)o;
		a->run.prompt = clean.p;
		if (a->opts.timeout_ms)
			a->run.deadline = io_in(a->opts.timeout_ms);
		if (!a->opts.no_session)
			a->run.sess = sess_open(&a->run, &a->conf);
		loop_run(&a->run, clean.p, &res);
		result = lib_result(a, &res);
	}
	str_clear(&clean);
	str_clear(&res.text);
	return result;
}

struct sa_result *
sa_run(const struct sa_options *o, const char *prompt, char **error)
{
	struct main_app a;
	struct sa_result *result = NULL;
	struct sig_saved saved;
	struct err e = { 0 };
	int back;

	core_init();
	if ((back = lib_enter(o, &e)) < 0)
		return lib_fail(&e, error);
	if (sig_borrow(&saved, &e) == 0) {
		lib_options(&a, o);
		result = lib_run(&a, o, prompt, &e);
		main_close(&a);
		sig_return(&saved);
	}
	lib_leave(back);
	return result ? result : lib_fail(&e, error);
}

void
sa_result_free(struct sa_result *r)
{
	if (!r)
		return;
	free((char *)(uintptr_t)r->subtype);
	free((char *)(uintptr_t)r->terminal_reason);
	free((char *)(uintptr_t)r->text);
	free((char *)(uintptr_t)r->json);
	free((char *)(uintptr_t)r->session_id);
	free(r);
}

char *
sa_request(const struct sa_options *o, const char *prompt, char **error)
{
	struct main_app a;
	struct err e = { 0 };
	struct str s;
	int back, r;

	core_init();
	if ((back = lib_enter(o, &e)) < 0)
		return lib_fail(&e, error);
	lib_options(&a, o);
	str_init(&s, 0);
	r = main_check_words(&a.opts, &e);
	if (!r)
		r = main_open(&a, &e);
	if (!r)
		r = main_request(&a, prompt, &s, &e);
	main_close(&a);
	lib_leave(back);
	if (r < 0) {
		str_clear(&s);
		return lib_fail(&e, error);
	}
	return str_detach(&s);
}

void
sa_stop(void)
{
	sig_ask_stop();
}

