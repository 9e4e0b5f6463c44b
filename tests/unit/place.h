/*
 * place.h - a home, a project and a machine folder of their own for tests
 * that read files, and what they print on stderr.
 *
 *   struct place p;
 *   place_make(&p);            chdir to the project; HOME; no settings
 *   place_write("home/.claude/settings.json", "{}");
 *   place_catch(&p); ...; place_caught(&p)   what went to stderr
 *   place_remove(&p);
 */
#ifndef PLACE_H
#define PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct place {
	char root[64];		/* holds home, project, managed */
	char err[16384];
	int saved;		/* the real stderr while it is caught */
	int file;
};

static char place_root[64];

/* Full path of a name below the root; the last eight stay valid. */
static inline const char *
place_path(const char *name)
{
	static char path[8][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 8];

	snprintf(p, PATH_MAX, "%s%s%s", place_root, *name ? "/" : "", name);
	return p;
}

/* Makes the folders above a name. */
static inline void
place_dirs(const char *name)
{
	char path[PATH_MAX], *s;

	snprintf(path, sizeof(path), "%s", place_path(name));
	for (s = path + strlen(place_root) + 1; (s = strchr(s, '/')); s++) {
		*s = 0;
		mkdir(path, 0777);
		*s = '/';
	}
}

static inline void
place_write_bytes(const char *name, const void *p, size_t n)
{
	FILE *f;

	place_dirs(name);
	f = fopen(place_path(name), "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static inline void
place_write(const char *name, const char *text)
{
	place_write_bytes(name, text, strlen(text));
}

/* A shell command in the root; true: it went well. */
static inline bool
place_shell(const char *command)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		dup2(null, 2);
		if (chdir(place_root) < 0)
			_exit(99);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(98);
	}
	assert_true(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static inline void
place_make(struct place *p)
{
	static const char *const unset[] = { "CLAUDE_CONFIG_DIR",
	    "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_DISABLE_CLAUDE_MDS",
	    "ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_MODEL",
	    "ANTHROPIC_DEFAULT_OPUS_MODEL", "CLAUDE_CODE_EFFORT_LEVEL",
	    "CLAUDE_CODE_MAX_OUTPUT_TOKENS", NULL };
	const char *const *s;
	char real[PATH_MAX];

	*p = (struct place){ .saved = -1, .file = -1 };
	snprintf(p->root, sizeof(p->root), "/tmp/place.XXXXXX");
	assert_non_null(mkdtemp(p->root));
	assert_non_null(realpath(p->root, real));
	assert_true(strlen(real) < sizeof(p->root));
	snprintf(p->root, sizeof(p->root), "%.63s", real);
	memcpy(place_root, p->root, sizeof(place_root));
	assert_int_equal(mkdir(place_path("home"), 0777), 0);
	assert_int_equal(mkdir(place_path("project"), 0777), 0);
	assert_int_equal(mkdir(place_path("managed"), 0777), 0);
	assert_int_equal(chdir(place_path("project")), 0);
	for (s = unset; *s; s++)
		unsetenv(*s);
	setenv("HOME", place_path("home"), 1);
	setenv("SA_MANAGED_DIR", place_path("managed"), 1);
}

/* From here on stderr goes into a file. */
static inline void
place_catch(struct place *p)
{
	fflush(stderr);
	p->saved = dup(2);
	p->file = memfd_create("stderr", MFD_CLOEXEC);
	assert_true(p->saved >= 0 && p->file >= 0);
	dup2(p->file, 2);
}

/* Ends the catch; what was written meanwhile. */
static inline const char *
place_caught(struct place *p)
{
	ssize_t n;

	dup2(p->saved, 2);
	close(p->saved);
	n = pread(p->file, p->err, sizeof(p->err) - 1, 0);
	assert_true(n >= 0);
	p->err[n] = 0;
	close(p->file);
	p->saved = p->file = -1;
	return p->err;
}

static inline void
place_remove(struct place *p)
{
	if (p->saved >= 0)
		place_caught(p);
	assert_int_equal(chdir("/"), 0);
	assert_true(place_shell("chmod -R u+rwx . && rm -rf \"$PWD\""));
}

/* How often a piece occurs in a text. */
static inline int
place_count(const char *text, const char *piece)
{
	int n = 0;

	for (; (text = strstr(text, piece)); text += strlen(piece))
		n++;
	return n;
}

#endif
