/* [proc], [io], [sig], [child]: output, limits, ends, no leftovers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

static void
run(const char *script, size_t keep, int64_t timeout, struct slice input,
    struct proc_result *r)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct proc_job job = { .argv = argv, .keep = keep,
	    .timeout = timeout, .input = input };

	proc_result_init(r);
	assert_int_equal(proc_run(&job, r, NULL), 0);
}

#define NONE ((struct slice){ NULL, 0 })

static void
test_output_and_status(void **state)
{
	struct proc_result r;
	char how[48];

	(void)state;
	run("echo out; echo err >&2; exit 3", 1000, 5000, NONE, &r);
	assert_string_equal(r.out.p, "out\nerr\n");
	proc_how(r.status, how);
	assert_string_equal(how, "exit status 3");
	assert_false(r.timed_out || r.held || r.aborted);
	proc_result_clear(&r);
	run("kill -9 $$", 1000, 5000, NONE, &r);
	assert_true(WIFSIGNALED(r.status));
	proc_result_clear(&r);
}

static void
test_head_and_tail(void **state)
{
	struct proc_result r;
	size_t i;

	(void)state;
	run("i=0; while [ $i -lt 3000 ]; do printf '%06d\n' $i; "
	    "i=$((i+1)); done", 1400, 20000, NONE, &r);
	assert_int_equal(r.out.len, 1400);
	assert_int_equal(r.head, 700);
	assert_int_equal(r.dropped, 3000 * 7 - 1400);
	assert_memory_equal(r.out.p, "000000\n", 7);
	assert_memory_equal(r.out.p + r.out.len - 7, "002999\n", 7);
	for (i = 0; i < r.out.len; i++)
		assert_true(r.out.p[i] == '\n' ||
		    isdigit((unsigned char)r.out.p[i]));
	proc_result_clear(&r);
}

static void
test_stdin(void **state)
{
	struct proc_result r;
	struct str big;

	(void)state;
	run("cat; echo after", 100, 5000, NONE, &r);
	assert_string_equal(r.out.p, "after\n");
	proc_result_clear(&r);
	/* more than a pipe holds, and a reader that never reads it */
	str_init(&big, 0);
	while (big.len < 300000)
		str_adds(&big, "0123456789");
	run("wc -c", 100, 20000, str_slice(&big), &r);
	assert_int_equal(strtol(r.out.p, NULL, 10), 300000);
	proc_result_clear(&r);
	run("exec <&-; echo done", 100, 5000, str_slice(&big), &r);
	assert_string_equal(r.out.p, "done\n");
	proc_result_clear(&r);
	str_clear(&big);
}

static void
test_left_behind(void **state)
{
	struct proc_result r;
	int64_t from = core_now();
	pid_t pid;

	(void)state;
	run("sleep 60 & echo $!", 100, 20000, NONE, &r);
	assert_true(r.held);
	assert_int_equal(r.status, 0);
	assert_true(core_now() - from < 10000);
	pid = (pid_t)strtol(r.out.p, NULL, 10);
	assert_int_equal(kill(pid, 0), 0);	/* it was meant to go on */
	kill(pid, SIGKILL);
	proc_result_clear(&r);
}

static void
test_time_out_kills_the_group(void **state)
{
	struct proc_result r;
	pid_t pid;

	(void)state;
	run("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 100' & "
	    "echo started; sleep 100", 1000, 300, NONE, &r);
	assert_true(r.timed_out);
	assert_non_null(strstr(r.out.p, "started"));
	pid = (pid_t)strtol(r.out.p + strspn(r.out.p, "started\n"), NULL, 10);
	proc_result_clear(&r);
	assert_true(pid > 1);
	/* killed; it may take a moment until init has reaped it */
	for (int i = 0; i < 100 && !kill(pid, 0); i++)
		io_sleep(20, NULL);
	assert_int_equal(kill(pid, 0), -1);
}

static void
test_not_there(void **state)
{
	const char *argv[] = { "no-such-program-here", NULL };
	struct proc_job job = { .argv = argv, .keep = 1000,
	    .timeout = 5000 };
	struct proc_result r;

	(void)state;
	proc_result_init(&r);
	assert_int_equal(proc_run(&job, &r, NULL), 0);
	assert_int_equal(WEXITSTATUS(r.status), 127);
	assert_non_null(strstr(r.out.p, "no-such-program-here"));
	proc_result_clear(&r);
	assert_null(proc_find("no-such-program-here"));
}

static void
test_descriptors(void **state)
{
	struct proc_result r;
	int fd = open("/dev/null", O_RDONLY);	/* without close-on-exec */

	(void)state;
	run("ls /proc/self/fd | sort -n | tr '\\n' ' '", 100, 5000, NONE, &r);
	assert_string_equal(r.out.p, "0 1 2 3 ");	/* 3: the listing */
	proc_result_clear(&r);
	close(fd);
}

static int
answer(void *arg, int fd)
{
	return child_send(fd, CHILD_RESULT, str_of(arg), NULL) < 0;
}

static int
half_a_frame(void *arg, int fd)
{
	uint32_t head[2] = { CHILD_RESULT, 100 };

	(void)arg;
	return write(fd, head, sizeof(head)) < 0;
}

static int
unknown_frame(void *arg, int fd)
{
	uint32_t head[2] = { 77, 0 };

	(void)arg;
	return write(fd, head, sizeof(head)) < 0;
}

static int
crash(void *arg, int fd)
{
	answer(arg, fd);
	raise(SIGKILL);
	return 0;
}

static int
hang(void *arg, int fd)
{
	(void)arg;
	(void)fd;
	for (;;)
		io_sleep(1000, NULL);
}

static void
test_children(void **state)
{
	static int (*const entry[])(void *, int) = { answer, half_a_frame,
	    unknown_frame, crash };
	struct child c[LENGTH(entry)];
	char text[] = "{\"a\":1}";
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(entry); i++)
		assert_int_equal(child_start(&c[i], entry[i], text, NULL), 0);
	assert_int_equal(child_wait(c, LENGTH(entry), io_in(10000), NULL), 0);
	assert_true(child_succeeded(&c[0]));
	assert_string_equal(c[0].result.p, "{\"a\":1}");
	assert_false(child_succeeded(&c[1]));
	assert_false(child_succeeded(&c[2]));
	assert_false(child_succeeded(&c[3]));	/* whole, but it crashed */
	for (i = 0; i < LENGTH(entry); i++)
		child_clear(&c[i]);
}

static void
test_child_that_hangs(void **state)
{
	struct child c;
	pid_t pid;

	(void)state;
	assert_int_equal(child_start(&c, hang, NULL, NULL), 0);
	pid = c.proc.pid;
	assert_int_equal(child_wait(&c, 1, io_in(50), NULL), -1);
	child_clear(&c);
	assert_int_equal(kill(pid, 0), -1);
}

static void
test_stop_ends_every_wait(void **state)
{
	struct err e = { 0 };
	struct proc_result r;

	(void)state;
	raise(SIGTERM);
	assert_int_equal(io_sleep(60000, &e), -1);
	assert_int_equal(e.code, ERR_ABORT);
	io_hold(1);
	assert_int_equal(io_sleep(1, NULL), 0);	/* clean-up may wait */
	io_hold(-1);
	run("sleep 60", 100, 60000, NONE, &r);
	assert_true(r.aborted);
	proc_result_clear(&r);
	sig_forked(NULL);	/* as a child would: flags are off again */
	assert_int_equal(sig_stop(), 0);
}

static void
test_time_limit_of_the_run(void **state)
{
	struct err e = { 0 };

	(void)state;
	io_limit(io_in(20));
	assert_int_equal(io_sleep(60000, &e), -1);
	assert_int_equal(e.code, ERR_ABORT);
	assert_string_equal(e.msg, "out of time");
	io_limit(IO_FOREVER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output_and_status),
		cmocka_unit_test(test_head_and_tail),
		cmocka_unit_test(test_stdin),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_time_out_kills_the_group),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_child_that_hangs),
		cmocka_unit_test(test_stop_ends_every_wait),
		cmocka_unit_test(test_time_limit_of_the_run),
	};

	core_init();
	if (sig_init(NULL) < 0)
		return 1;
	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
