/* [bash]: commands, their output, status, folder and end. */
#include "internals.h"
#include "stage.h"

static const char *
sh(struct stage *s, const char *command)
{
	struct str in;
	struct slice text = str_of(command);
	cJSON *v;

	str_init(&in, 0);
	str_adds(&in, "{\"command\":");
	json_put(&in, text);
	str_addc(&in, '}');
	v = cJSON_Parse(in.p);
	assert_non_null(v);
	str_clear(&in);
	tool_out_clear(&s->out);
	bash_run(&s->run, v, &s->out);
	cJSON_Delete(v);
	return s->out.text.p;
}

static void
test_output(void **state)
{
	static const struct {
		const char *command, *want;
		bool error;
	} rows[] = {
		{ "echo hi", "hi", false },
		{ "true", "(Bash completed with no output)", false },
		{ "echo; echo", "(Bash completed with no output)", false },
		{ "echo a; echo b >&2; echo c", "a\nb\nc", false },
		{ "exit 3", "Exit code 3", true },
		{ "echo x; false", "Exit code 1\nx", true },
		{ "printf 'a\\n\\nb\\n\\n\\n'", "a\n\nb", false },
		{ "printf '\\n\\n  a'", "  a", false },
		{ "printf 'caf\\351'", "caf\357\277\275", false },
		{ "printf 'a\\0b'", "ab", false },
		{ "printf '\\033[1;31mred\\033[0m\\033]0;t\\007!\\033(Bx'",
		    "red!x", false },
		{ "printf '\\033]8;;u\\033\\\\link\\033]8;;\\033\\\\'", "link",
		    false },
		{ "printf 'a\\r\\nb\\rc\\r\\n'", "a\nb\nc", false },
		{ "printf 'N\\bNA\\bA'", "NA", false },
		{ "printf '\\033'", "(Bash completed with no output)", false },
		{ "printf '\\033[12'", "(Bash completed with no output)",
		    false },
		{ "grep zzz /dev/null", "(exit code 1)", false },
		{ "cd / && grep zzz /dev/null 2>&1", NULL, false },
		{ "echo a | grep -c b", "0\n(exit code 1)", false },
		{ "test 1 = 2", "(exit code 1)", false },
		{ "X=1 [ -e /nope ]", "(exit code 1)", false },
		{ "/bin/grep -q x /dev/null", "(exit code 1)", false },
		{ "grep x /nope", NULL, true },
		{ "grep x /dev/null; exit 1", "Exit code 1", true },
		{ "kill -9 $$", "Exit code 137\n(killed by signal 9)", true },
		{ "nosuchcommand-x", NULL, true },
		{ "echo \"$1|$#|$0\"", "|0|bash", false },
		{ "echo 'it'\"'\"'s'", "it's", false },
		{ "# only a comment", "(Bash completed with no output)",
		    false },
		{ "cat <<E\nhere $((1+1))\nE", "here 2", false },
		{ "set -e; false; echo not", "Exit code 1", true },
		{ "set -u; echo ok", "ok", false },
		{ "trap 'echo bye' EXIT; echo hi", "hi\nbye", false },
		{ "exec echo gone", "gone", false },
		{ "(exit 4)", "Exit code 4", true },
		{ "echo $CLAUDECODE", "1", false },
		{ "echo 'unclosed", NULL, true },
		{ "tty; test -t 0 || echo no", "not a tty\nno", false },
	};
	struct stage s;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	setenv("BASH_ENV", "/dev/stdin", 1);
	setenv("ENV", "/dev/stdin", 1);
	for (i = 0; i < LENGTH(rows); i++) {
		sh(&s, rows[i].command);
		if (s.out.is_error != rows[i].error || (rows[i].want &&
		    strcmp(s.out.text.p, rows[i].want)))
			fail_msg("%s: %d %s", rows[i].command, s.out.is_error,
			    s.out.text.p);
	}
	stage_remove(&s);
}

/* B15: what is kept is bounded, head and tail of it. */
static void
test_long_output(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	sh(&s, "echo start; yes | head -c 300000000; echo end");
	assert_false(s.out.is_error);
	assert_true(s.out.text.len < 30200 && s.out.text.len > 29000);
	assert_true(str_starts(s.out.text.p, "start\ny\ny\n"));
	assert_true(str_ends(s.out.text.p, "y\nend"));
	stage_has(s.out.text.p, "bytes left out here]");
	sh(&s, "echo start; yes | head -c 50000; echo end; exit 2");
	assert_true(s.out.is_error);
	assert_true(s.out.text.len < 10200 && s.out.text.len > 9800);
	assert_true(str_starts(s.out.text.p, "Exit code 2\nstart\n"));
	assert_true(str_ends(s.out.text.p, "end"));
	sh(&s, "yes x | head -c 30000");
	stage_lacks(s.out.text.p, "left out");
	setenv("BASH_MAX_OUTPUT_LENGTH", "2000", 1);
	sh(&s, "yes | head -c 50000");
	assert_true(s.out.text.len < 2100);
	unsetenv("BASH_MAX_OUTPUT_LENGTH");
	/* dropping must not cut a character in two */
	sh(&s, "i=0; while [ $i -lt 40000 ]; do printf '\303\251'; "
	    "i=$((i+1)); done");
	assert_true(text_utf8_is(str_slice(&s.out.text)));
	stage_lacks(s.out.text.p, "\357\277\275");
	stage_remove(&s);
}

/* B13: the limit ends the whole group, and says so. */
static void
test_timeout(void **state)
{
	struct stage s;
	int64_t at;

	(void)state;
	stage_make(&s, NULL);
	at = core_now();
	stage_call(&s, bash_run, "{'command':'echo $$ > pid; echo begun; "
	    "(while :; do :; done) & sleep 100 | tee log','timeout':300}");
	assert_true(core_now() - at < 5000);
	assert_true(s.out.is_error);
	assert_true(str_starts(s.out.text.p, "Exit code 143\nCommand timed "
	    "out after 0.3s"));
	stage_has(s.out.text.p, "\nbegun");
	assert_true(place_shell("sleep 0.1; cat /proc/[0-9]*/stat 2>/dev/null "
	    "| awk -v g=$(cat project/pid) '$5 == g && $3 != \"Z\" { n++ } "
	    "END { exit n > 0 }'"));
	/* one that does not listen */
	at = core_now();
	stage_call(&s, bash_run, "{'command':'trap : TERM; while :; do sleep "
	    "0.1; done','timeout':200}");
	assert_true(s.out.is_error && core_now() - at < 6000);
	setenv("BASH_DEFAULT_TIMEOUT_MS", "200", 1);
	stage_has(sh(&s, "sleep 9"), "timed out after 0.2s");
	setenv("BASH_MAX_TIMEOUT_MS", "300", 1);
	stage_has(stage_call(&s, bash_run,
	    "{'command':'sleep 9','timeout':5000}"), "timed out after 0.3s");
	unsetenv("BASH_DEFAULT_TIMEOUT_MS");
	unsetenv("BASH_MAX_TIMEOUT_MS");
	stage_remove(&s);
}

/* B12 and B14: nobody is waited for but the shell, and nobody waits for us. */
static void
test_background_and_input(void **state)
{
	static const char *const commands[] = { "sleep 60 & echo done",
	    "exec 3>&1; sleep 60 >/dev/null 2>&1 3>&3 & echo done",
	    "sleep 60 </dev/zero & disown; echo done" };
	struct stage s;
	int64_t at;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	for (i = 0; i < LENGTH(commands); i++) {
		struct str cmd;

		str_init(&cmd, 0);
		str_addf(&cmd, "echo $$ > pid; %s", commands[i]);
		at = core_now();
		sh(&s, cmd.p);
		assert_true(core_now() - at < 3000);
		assert_false(s.out.is_error);
		assert_string_equal(s.out.text.p, "done\n(A process that this "
		    "command started is still running.)");
		assert_true(place_shell("kill -s KILL -- -$(cat project/pid)"));
		str_clear(&cmd);
	}
	at = core_now();
	assert_string_equal(sh(&s, "cat; echo after"), "after");
	assert_string_equal(sh(&s, "read x; echo \"[$x]\""), "[]");
	assert_true(core_now() - at < 2000);
	stage_has(stage_call(&s, bash_run, "{'command':'true',"
	    "'run_in_background':true}"), "not available yet");
	assert_true(s.out.is_error);
	stage_call(&s, bash_run, "{'command':'true',"
	    "'run_in_background':false}");
	assert_false(s.out.is_error);
	stage_remove(&s);
}

static void
test_folder(void **state)
{
	static const struct { const char *command, *cwd; } rows[] = {
		{ "cd a", "a" }, { "cd b; exit 3", "a/b" },
		{ "set -e; cd ..; false; cd b", "a" },
		{ "(cd b)", "a" }, { "cd b | cat", "a" },
		{ "cd b; trap 'true' EXIT", "a/b" },
		{ "cd ..; trap 'true' EXIT; exit 1", "a/b" },
		{ "cd ..; exec true", "a/b" },
		{ "cd ../..; kill -9 $$", "a/b" },
		{ "exec >/dev/null; cd ..", "a" },
		{ "cd 'x y'", "a/x y" }, { "cd ..; exec >&- 2>&-", "a" },
		{ "cd link", "a/b" }, { "cd -P . ; pwd() { echo /; }", "a/b" },
	};
	struct stage s;
	struct str want;
	size_t i;

	(void)state;
	stage_make(&s, NULL);
	str_init(&want, 0);
	place_write("project/a/b/f", "");
	place_write("project/a/x y/f", "");
	assert_true(place_shell("ln -s b project/a/link"));
	for (i = 0; i + 1 < LENGTH(rows); i++) {
		sh(&s, rows[i].command);
		str_reset(&want);
		str_addf(&want, "%s/%s", s.run.start_dir, rows[i].cwd);
		if (strcmp(s.run.cwd, want.p))
			fail_msg("%s: %s", rows[i].command, s.run.cwd);
		stage_lacks(s.out.text.p, s.run.start_dir);
	}
	/* the next one starts there */
	assert_string_equal(sh(&s, "pwd -P"), s.run.cwd);
	/* out of the working folders: back to the start */
	stage_has(sh(&s, "cd /; pwd"), "/\nShell cwd was reset to ");
	assert_string_equal(s.run.cwd, s.run.start_dir);
	sh(&s, "cd a");
	setenv("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "1", 1);
	stage_has(sh(&s, "pwd"), "/a\nShell cwd was reset to ");
	stage_lacks(sh(&s, "pwd"), "reset");
	unsetenv("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR");
	str_clear(&want);
	stage_remove(&s);
}

/* B16: a folder that goes away under the shell. */
static void
test_lost_folder(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	stage_has(sh(&s, "mkdir t && cd t && rmdir ../t"),
	    "Shell cwd was reset to ");
	assert_false(s.out.is_error);
	sh(&s, "pwd");
	assert_true(str_starts(s.out.text.p, s.run.start_dir));
	stage_has(s.out.text.p, "\nShell cwd was reset to ");
	assert_string_equal(sh(&s, "pwd"), s.run.start_dir);
	sh(&s, "mkdir u && cd u");
	assert_true(place_shell("rmdir project/u"));
	sh(&s, "pwd");
	assert_true(str_starts(s.out.text.p, s.run.start_dir));
	stage_has(s.out.text.p, "\nShell cwd was reset to ");
	stage_remove(&s);
}

static void
test_shells(void **state)
{
	char *old = core_strdup(getenv("PATH"));
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	setenv("CLAUDE_CODE_SHELL", "/bin/sh", 1);
	assert_string_equal(sh(&s, "echo $((1+1))"), "2");
	sh(&s, "mkdir d && cd d; exit 5");
	assert_true(str_starts(s.out.text.p, "Exit code 5"));
	assert_true(str_ends(s.run.cwd, "/d"));
	assert_string_equal(sh(&s, "ulimit -n 30; cd .."),
	    "(Bash completed with no output)");
	assert_string_equal(s.run.cwd, s.run.start_dir);
	unsetenv("CLAUDE_CODE_SHELL");
	/* none at all */
	setenv("PATH", "/nowhere", 1);
	unsetenv("SHELL");
	assert_false(bash_usable(&s.run));
	stage_has(sh(&s, "echo"), "no shell");
	setenv("SHELL", "/bin/bash", 1);
	assert_true(bash_usable(&s.run));
	setenv("PATH", old, 1);
	free(old);
	stage_remove(&s);
}

static void
test_environment(void **state)
{
	struct stage s;

	(void)state;
	stage_make(&s, NULL);
	setenv("ANTHROPIC_API_KEY", "k-123456", 1);
	s.run.effort = "low";
	assert_string_equal(sh(&s, "echo \"$ANTHROPIC_API_KEY $CLAUDE_EFFORT "
	    "$CLAUDE_CODE_CHILD_SESSION ${#CLAUDE_CODE_SESSION_ID}\""),
	    "k-123456 low 1 36");
	setenv("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "1", 1);
	assert_string_equal(sh(&s, "echo \"[$ANTHROPIC_API_KEY]\""), "[]");
	unsetenv("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB");
	unsetenv("ANTHROPIC_API_KEY");
	place_write("home/env", "FROM_FILE=yes\n");
	setenv("CLAUDE_ENV_FILE", place_path("home/env"), 1);
	assert_string_equal(sh(&s, "echo $FROM_FILE"), "yes");
	unsetenv("CLAUDE_ENV_FILE");
	/* nothing of ours is open in a command */
	assert_string_equal(sh(&s, "ls /proc/self/fd | wc -l"), "4");
	stage_remove(&s);
}

/* `cat f` counts as reading f. */
static void
test_reading(void **state)
{
	static const struct { const char *command; int extent; } rows[] = {
		{ "cat f", FS_FULL }, { "nl f", FS_FULL },
		{ "head -n 1 f", FS_RANGE }, { "tail -1 f", FS_RANGE },
		{ "sed -n 1,2p f", FS_RANGE }, { "grep a f", FS_RANGE },
		{ "cat f g", -1 }, { "cat f | head", -1 }, { "ls f", -1 },
		{ "cat", -1 }, { "cat -n", -1 }, { "cat nope", -1 },
		{ "cat f > h", -1 }, { "cat $(echo f)", -1 },
	};
	struct stage s;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		stage_make(&s, NULL);
		place_write("project/f", "a\nb\n");
		place_write("project/g", "a\n");
		sh(&s, rows[i].command);
		if (rows[i].extent < 0)
			assert_null(s.run.seen);
		else
			assert_int_equal(s.run.seen->v[0].extent,
			    rows[i].extent);
		stage_remove(&s);
	}
}

/* A stop signal ends the command and what it started. */
static void
test_stop(void **state)
{
	struct stage s;
	int64_t at = core_now();
	pid_t pid, parent = getpid();

	(void)state;
	stage_make(&s, NULL);
	pid = fork();
	if (!pid) {
		usleep(300000);
		kill(parent, SIGINT);
		_exit(0);
	}
	sh(&s, "echo begun; sleep 60");
	assert_true(core_now() - at < 5000);
	assert_true(s.out.is_error);
	assert_string_equal(s.out.text.p,
	    "[Request interrupted by user for tool use]\nbegun");
	assert_int_equal(sig_forked(NULL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	stage_remove(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_long_output),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_background_and_input),
		cmocka_unit_test(test_folder),
		cmocka_unit_test(test_lost_folder),
		cmocka_unit_test(test_shells),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_reading),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests_name("bash", tests, NULL, NULL);
}
