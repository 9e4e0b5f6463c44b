/*
 * spawn.c - starts programs in turns and prints what each took, so that no
 * interpreter's own cost hides the difference.
 *
 *   spawn ROUNDS PROGRAM ARG... [-- PROGRAM ARG...]...
 *
 * One line for each program: wall and CPU (with the children it waited for)
 * in microseconds, each the lower quartile, as other work on the machine only
 * adds to it; and how many times it failed.  Their stdout goes to /dev/null.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROGRAMS 8
#define MAX_ROUNDS 10000

static long wall[MAX_PROGRAMS][MAX_ROUNDS];
static long cpu[MAX_PROGRAMS][MAX_ROUNDS];

static long
microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static long
spent(const struct timeval *t)
{
	return t->tv_sec * 1000000 + t->tv_usec;
}

/* Runs argv once; 0 if it ended well. */
static int
run(char **argv, long *wall_us, long *cpu_us)
{
	struct rusage u;
	long start = microseconds();
	int status;
	pid_t pid = vfork();

	if (!pid) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &u) < 0)
		return -1;
	*wall_us = microseconds() - start;
	*cpu_us = spent(&u.ru_utime) + spent(&u.ru_stime);
	return status;
}

static int
compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static long
quartile(long *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	return v[n / 4];
}

int
main(int argc, char **argv)
{
	char **programs[MAX_PROGRAMS];
	int failed[MAX_PROGRAMS] = { 0 };
	int rounds = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
	int out = fcntl(1, F_DUPFD_CLOEXEC, 3), n = 0, i, r;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 2;
	for (i = 1; i < argc && n < MAX_PROGRAMS; i++) {
		if (i > 1 && strcmp(argv[i], "--"))
			continue;
		argv[i] = NULL;
		programs[n++] = argv + i + 1;
	}
	if (out < 0 || dup2(null, 1) < 0)
		return 1;
	for (r = 0; r < rounds; r++)
		for (i = 0; i < n; i++)
			failed[i] += run(programs[i], &wall[i][r],
			    &cpu[i][r]) != 0;
	for (i = 0; i < n; i++)
		dprintf(out, "%ld %ld %d\n", quartile(wall[i], rounds),
		    quartile(cpu[i], rounds), failed[i]);
	return 0;
}
