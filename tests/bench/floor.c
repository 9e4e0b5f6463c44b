/*
 * floor.c - the least that the main job takes: prompt, answer with one shell
 * call, the call, answer with a text, the text on stdout.  No checks, no
 * rules, no files, plain HTTP on the loop-back.  What subagent takes more is
 * what it does more.
 *
 *   floor PORT PROMPT [FILLER]     FILLER: spaces sent along in each request
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char answer[1 << 20];

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static int
dial(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
	    .sin_port = htons((unsigned short)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		fail("connect");
	return fd;
}

static void
put(int fd, const char *p, size_t n)
{
	ssize_t w;

	for (; n; p += w, n -= (size_t)w)
		if ((w = write(fd, p, n)) <= 0)
			fail("write");
}

/* Sends the messages, reads the whole chunked answer. */
static void
ask(int fd, const char *messages, const char *filler)
{
	static const char end[] = "\r\n0\r\n\r\n";
	static const char before[] = "{\"model\":\"m\",\"max_tokens\":1024,"
	    "\"stream\":true,\"messages\":[";
	char head[256];
	size_t n = 0;
	ssize_t r;

	snprintf(head, sizeof(head), "POST /v1/messages HTTP/1.1\r\n"
	    "Host: localhost\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\n\r\n%s", strlen(before) +
	    strlen(messages) + strlen(filler) + 2, before);
	put(fd, head, strlen(head));
	put(fd, messages, strlen(messages));
	put(fd, filler, strlen(filler));
	put(fd, "]}", 2);
	do {
		if ((r = read(fd, answer + n, sizeof(answer) - 1 - n)) <= 0)
			fail("read");
		answer[n += (size_t)r] = 0;
	} while (n < 7 || strcmp(answer + n - 7, end));
}

/* The string that follows `key` in the answer, its escapes undone. */
static char *
find(const char *key)
{
	char *s = strstr(answer, key), *out, *w;

	if (!s)
		fail(key);
	w = out = strdup(s + strlen(key));
	for (s = out; *s && *s != '"'; s++) {
		if (*s == '\\')
			s++;
		*w++ = *s;
	}
	*w = 0;
	return out;
}

static pid_t
start(const char *command, int out)
{
	pid_t pid = vfork();

	if (!pid) {
		dup2(out, 1);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* Runs a command; its output, without the last newline. */
static void
run(const char *command, char *out, size_t max)
{
	int p[2];
	size_t n = 0;
	ssize_t r;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0 || (pid = start(command, p[1])) < 0)
		fail("start");
	close(p[1]);
	while (n < max - 1 && (r = read(p[0], out + n, max - 1 - n)) > 0)
		n += (size_t)r;
	out[n - (n && out[n - 1] == '\n')] = 0;
	waitpid(pid, NULL, 0);
}

int
main(int argc, char **argv)
{
	char *filler, *messages, *command, output[4096];
	size_t spaces = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	int fd;

	if (argc < 3)
		return 2;
	filler = malloc(spaces + 1);
	memset(filler, ' ', spaces);
	filler[spaces] = 0;
	fd = dial(atoi(argv[1]));
	if (asprintf(&messages, "{\"role\":\"user\",\"content\":\"%s\"}",
	    argv[2]) < 0)
		return 1;
	ask(fd, messages, filler);
	command = strchr(find("\"partial_json\":\""), ':') + 2;
	command[strcspn(command, "\"")] = 0;
	run(command, output, sizeof(output));
	if (asprintf(&messages, "%s,{\"role\":\"assistant\",\"content\":["
	    "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Bash\",\"input\":"
	    "{\"command\":\"%s\"}}]},{\"role\":\"user\",\"content\":["
	    "{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":"
	    "\"%s\"}]}", messages, command, output) < 0)
		return 1;
	ask(fd, messages, filler);
	puts(find("\"text_delta\",\"text\":\""));
	return 0;
}
