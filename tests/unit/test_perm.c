/* [perm]: rules, modes and paths, and ways around them. */
#include "internals.h"
#include "place.h"

static struct place place;
static struct conf conf;
static struct opts opts;

static const struct tool tools[] = {
	{ .name = "Bash", .subject = SUBJECT_COMMAND,
	    .subject_key = "command" },
	{ .name = "Read", .subject = SUBJECT_READ,
	    .subject_key = "file_path" },
	{ .name = "Grep", .subject = SUBJECT_READ, .subject_key = "path" },
	{ .name = "Write", .subject = SUBJECT_EDIT,
	    .subject_key = "file_path" },
	{ .name = "Edit", .subject = SUBJECT_EDIT,
	    .subject_key = "file_path" },
	{ .name = "WebFetch", .subject = SUBJECT_URL, .subject_key = "url" },
	{ .name = "Agent", .subject = SUBJECT_AGENT,
	    .subject_key = "subagent_type" },
	{ .name = "TodoWrite", .flags = TOOL_FREE },
	{ .name = "mcp__git__push" },
};

static int
setup(void **state)
{
	(void)state;
	place_make(&place);
	opts = (struct opts){ 0 };
	assert_int_equal(sig_init(NULL), 0);
	core_init();
	assert_true(place_shell("cd project && mkdir sub sub/deep && "
	    "echo x >secret.txt && ln -s secret.txt s && ln -s . d && "
	    "ln -s /etc etc && ln -s sub/deep up && mkdir .git"));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	place_remove(&place);
	return 0;
}

/*
 * Rules are separated by "|", with "+" allow, "?" ask, "-" deny in front.
 * The verdict's first letter, like "ask"; `v` has the rest.
 */
static const char *
decide(const char *rules, enum perm_mode mode, const char *tool,
    const char *key, const char *value, struct perm_verdict *v)
{
	static const char *const words[] = { "allow", "ask", "deny" };
	struct strv dirs = { 0 };
	struct perm_call call = { .input = NULL, .mode = mode };
	struct slice list = str_of(rules), one;
	cJSON *in = cJSON_CreateObject(), *all[3];
	struct str settings;
	struct perm *p;
	char *text;
	size_t i;

	for (i = 0; i < 3; i++)
		all[i] = cJSON_CreateArray();
	while (text_item(&list, '|', &one)) {
		if (!one.n)
			continue;
		text = core_memdup(one.p + 1, one.n - 1);
		cJSON_AddItemToArray(all[*one.p == '-' ? 2 : *one.p == '?'],
		    cJSON_CreateString(text));
		free(text);
	}
	str_init(&settings, 0);
	str_adds(&settings, "{\"permissions\":{");
	for (i = 0; i < 3; i++) {
		text = cJSON_PrintUnformatted(all[i]);
		str_addf(&settings, "%s\"%s\":%s", i ? "," : "", words[i],
		    text);
		free(text);
		cJSON_Delete(all[i]);
	}
	str_adds(&settings, "}}");
	opts.settings = settings.p;
	place_catch(&place);
	assert_int_equal(conf_load(&conf, &opts, NULL), 0);
	p = perm_new(&conf, NULL);
	place_caught(&place);
	assert_non_null(p);
	cJSON_AddStringToObject(in, key, value);
	call.input = in;
	call.cwd = place_path("project");
	str_list_adds(&dirs, call.cwd);
	call.dirs = &dirs;
	for (i = 0; i < LENGTH(tools); i++)
		if (!strcmp(tools[i].name, tool))
			call.tool = &tools[i];
	assert_non_null(call.tool);
	perm_verdict_init(v);
	perm_decide(p, &call, v);
	perm_free(p);
	conf_clear(&conf);
	str_clear(&settings);
	str_list_clear(&dirs);
	cJSON_Delete(in);
	return words[v->decision];
}

static void
expect(const char *rules, enum perm_mode mode, const char *tool,
    const char *key, const char *value, const char *want)
{
	struct perm_verdict v;
	const char *got = decide(rules, mode, tool, key, value, &v);

	if (strcmp(got, want))
		fail_msg("%s of '%.300s' under '%s': %s, not %s (%s)", tool,
		    value, rules, got, want, v.reason.p);
	assert_true(v.reason.len > 0);
	assert_true(v.decision == PERM_ALLOW || v.message.len > 0);
	perm_verdict_clear(&v);
}

static void
expect_all(const char *rules, enum perm_mode mode, const char *want,
    const char *const *commands)
{
	for (; *commands; commands++)
		expect(rules, mode, "Bash", "command", *commands, want);
}

/* Bug cases B08 and B09, and how a deny rule could be gone around. */
static void
test_deny(void **state)
{
	static const char *const denied[] = { "rm x", "rm", "/bin/rm x",
	    "r\\m x", "r''m x", "\"rm\" x", "$'rm' x", "A=1 rm x", "ls; rm x",
	    "ls && (cd sub; rm -r x)", "true | xargs rm x", "ls\nrm x",
	    "if true; then rm x; fi", "echo $(rm x)", "echo `rm x`",
	    "cat <(rm x)", "sudo rm x", "sudo -u a rm x", "env A=1 rm x",
	    "env -i rm", "timeout -s KILL 5 rm x", "nice -n 5 rm x",
	    "stdbuf -o L rm x", "nohup rm x", "command rm x", "exec rm x",
	    "find . -exec rm {} ;", "find . -exec rm {} \\;", "time -p rm x",
	    "sh -c 'rm x'", "bash -c \"ls; rm x\"", "eval rm x",
	    "eval 'rm x'", "sudo sh -c 'rm x'", "env -S 'rm x'",
	    "watch 'rm x'", "su -c 'rm x'", "trap 'rm x' EXIT",
	    "flock f -c 'rm x'", "script -c 'rm x' f", "busybox rm x",
	    "sh -c 'case x in x) rm x;; esac'", "taskset 1 rm x",
	    "sh -c 'sh -c \"sh -c \\\"sh -c rm\\\"\"'",
	    "eval eval eval eval eval eval rm x", "x=rm; $x y", "$(echo rm) x",
	    "${x:-rm} y", "{rm,x}", "/bin/r? x", "env $x y", "rm\tx",
	    "case x in x) rm x;; esac", "x\r#; rm x", "</dev/null rm x",
	    "2>&1 rm x", "cat <<E\nE\nrm x\nE", "ls 'a", NULL };
	static const char *const other[] = { "ls", "echo rm", "rmdir x",
	    "git rm", "./rm.sh", "[ -f x ] && ls", "ls # rm x",
	    "cat <<E\nrm x\nE", "echo '; rm x'", NULL };

	(void)state;
	expect_all("+Bash|-Bash(rm:*)", MODE_DEFAULT, "deny", denied);
	expect_all("-Bash(rm:*)", MODE_BYPASS, "deny", denied);
	expect_all("+Bash|?Bash(rm *)", MODE_BYPASS, "ask", denied);
	expect_all("+Bash|-Bash(rm:*)", MODE_DEFAULT, "allow", other);
}

/* B08: every part must be allowed by itself. */
static void
test_allow(void **state)
{
	static const char *const allowed[] = { "git log -1", "git log",
	    "git log '; touch x'", "git log && git log -2", "ls; git log",
	    "LANG=C git log", "timeout 5 git log", "make", "npm run a b",
	    "git log 2>/dev/null", "git log 2>&1 | head", "xargs git log",
	    NULL };
	static const char *const asked[] = { "git log -1; touch x",
	    "git log && touch x", "git log || touch x", "git log | touch x",
	    "git log |& touch x", "git log & touch x", "git log\ntouch x",
	    "git log \"$(touch x)\"", "git log `touch x`",
	    "git log <(touch x)", "git logx", "make -j", "git log >x",
	    "git log >.git/config", "LD_PRELOAD=x git log", "A=1 git log",
	    "./git log", "/bin/git log", "$x log",
	    "npm runx", "./timeout 5 git log", "git log $'a", "find . -delete",
	    "find . -exec a ;", "find $x", "setsid npm run", "watch npm run",
	    NULL };

	(void)state;
	expect_all("+Bash(git log:*)|+Bash(make)|+Bash(npm run *)"
	    "|+Bash(find:*)|+Bash(setsid:*)|+Bash(watch *)", MODE_DEFAULT,
	    "allow", allowed);
	expect_all("+Bash(git log:*)|+Bash(make)|+Bash(npm run *)"
	    "|+Bash(find:*)|+Bash(setsid:*)|+Bash(watch *)", MODE_DEFAULT,
	    "ask", asked);
	expect("+Bash(find . -delete)", MODE_DEFAULT, "Bash", "command",
	    "find . -delete", "allow");
	/* A bare rule opens no protected file, wherever it is named from. */
	expect("+Bash", MODE_DEFAULT, "Bash", "command",
	    "echo x >.git/config", "ask");
	expect("+Bash", MODE_DEFAULT, "Bash", "command",
	    "cd .git && echo x >config", "ask");
	expect("+Bash", MODE_DEFAULT, "Bash", "command", "echo x >a", "allow");
}

/* What needs no rule, and what only looks like that. */
static void
test_reads(void **state)
{
	static const char *const free_ones[] = { "ls -la", "cat secret.txt",
	    "echo $HOME \"$(pwd)\"", "grep -rn 'a b' . | wc -l",
	    "grep /usr/x secret.txt", "grep -e a -e b sub", "head -n 5 s",
	    "find . -name '*.c' -type f", "find -L sub -name x", "cd sub && ls",
	    "git status", "git log --oneline -5", "git diff HEAD~1 -- sub",
	    "git branch -a", "docker ps -a", "[ -f x ] && echo y",
	    "[[ -d sub ]] && ls sub", "for f in a b; do echo $f; done",
	    "ls *.c sub/*.{c,h}", "NO_COLOR=1 ls", "timeout 5 ls",
	    "ls 2>/dev/null", "ls >/dev/null 2>&1", "echo $((1 + 2))",
	    "timeout", "timeout -s", "nice -n", "cat <<E\nx $y\nE",
	    "test -e x || echo no", "cat < secret.txt",
	    NULL };
	static const char *const asked[] = { "touch x", "ls > x", "ls /etc",
	    "cat /etc/passwd", "cat ../x", "cat etc/passwd", "cat ~root/x",
	    "cat {secret.txt,/etc/passwd}", "cat {,/etc/}passwd",
	    "cat .{.,x}/y", "cat .?/x", "cat .*/x", "cat sub/.?/../x",
	    "cat $x", "cat < /etc/passwd", "cat \"~/x\"",
	    /* the pattern's place is not where it seems */
	    "grep -ie. /etc/passwd", "grep /etc/passwd -e .",
	    "grep --regex=. /etc/passwd", "grep --file /etc/passwd x",
	    "grep -rf /etc/passwd .", "grep -f/etc/passwd x",
	    "find -L /etc", "find -H -P /etc", "find . -exec rm {} ;",
	    "find . -delete", "find . -fprint x", "find . -exe*",
	    "find . -exec{,} x", "fd --base-directory /etc", "fd -xrm",
	    "fd . --exec=rm", "file -C -m x", "file --comp -m x",
	    /* a cd that may not have happened */
	    "(cd sub/deep); cat ../../x", "cd sub/deep | ls; cat ../../x",
	    "false && cd sub; cat ../x", "cd up/../.. && cat x",
	    "cd /etc && cat passwd", "cd - && cat x", "cd sub && git status",
	    "cd $x && ls", "pushd sub",
	    /* programs of the project */
	    "./ls", "sudo timeout", "./timeout 5 ls", "./nice ls",
	    "sub/nohup ls",
	    "PATH=. ls", "GIT_DIR=x git status", "LANG=$(x) ls",
	    "git -C sub status", "git -c a=b status", "git diff --output=x",
	    "git diff --outp=x", "git diff --no-index a /etc/passwd",
	    "git diff a ..", "git diff a sub/../..", "git log --o=x",
	    "git branch x", "git branch -D x", "git tag x",
	    "git remote add x y",
	    "git commit -m x", "git diff --ext-diff", "docker -H x ps",
	    "docker run x", "xargs cat", "ls | xargs cat",
	    /* values that are evaluated */
	    ": ${X:=a[\\$(touch\\ p)]}; echo $((X))",
	    "for X in 'a[$(touch p)]'; do echo $((X)); done",
	    "for x in 'a[$(touch p)]'; do [[ x -eq 1 ]]; done",
	    "for x in 'a[$(touch p)]'; do echo ${!x}; done",
	    "[ -v 'a[$(touch p)]' ]", "test -v \"a[\\$(touch p)]\"",
	    "for PATH in /tmp; do ls; done", "echo ${x@P}", "A=1",
	    "echo \"$\\\n(touch p)\"", "echo $((touch p) )", "ls\r#;touch p",
	    "ls 'a", "lsof -D b", "sort -o x y", "sed -n 1p secret.txt",
	    "du --files0-from=x", NULL };

	(void)state;
	expect_all("", MODE_DEFAULT, "allow", free_ones);
	expect_all("", MODE_PLAN, "allow", free_ones);
	expect_all("", MODE_DONT_ASK, "allow", free_ones);
	expect_all("", MODE_DEFAULT, "ask", asked);
	expect_all("", MODE_DONT_ASK, "deny", asked);
}

static void
test_edits(void **state)
{
	static const char *const allowed[] = { "touch x", "mkdir -p a/b",
	    "rm x", "rm -rf sub", "cp secret.txt sub", "mv a b",
	    "sed -i s/a/b/g x", "sed -i 's|a|b|' x y", "echo a > x",
	    "mkdir a && touch a/b", "LANG=C touch x", "timeout 5 touch x",
	    "cp -t sub x", "touch sub/*", "ls >> x 2>&1", NULL };
	static const char *const asked[] = { "touch /etc/x", "touch ../x",
	    "rm etc/passwd", "cp /etc/passwd x", "cp x /etc", "rm -rf .git",
	    "touch .bashrc", "touch .GIT/config", "touch .claude/x",
	    "mv x sub/.envrc", "echo >.git/config", "echo >/etc/x",
	    "echo >../x", "echo > \\\n /etc/x", "echo >$x", "echo >~/x",
	    "echo >a*", "echo >etc/x", "sed -i 's/a/b/e' x",
	    "sed -i 's/a/b/w y' x", "sed -i '1e id' x", "sed -i.bak s/a/b/ x",
	    "sed -f x y", "sed -i 's/a/b/\nw y' x", "rm $x", "touch {a,/etc/x}",
	    "cp --target-directory=.. x", "cp -t.. x", "cp -rtetc x",
	    "cp -t etc x", "cp --target-directory=/etc x", "chmod 777 x",
	    "ln -s /etc x", "./touch x", "(cd sub/deep); touch ../../x",
	    "cd nowhere; touch ../x", "cd sub/deep | ls; echo >../../x",
	    "cd up/../.. && touch x", "cd .git && touch x", "cd sub; rm -rf ..",
	    "python3 x", "touch x; curl y", "A=1 touch x", "tee x",
	    "dd of=x", NULL };

	(void)state;
	expect_all("", MODE_ACCEPT_EDITS, "allow", allowed);
	expect_all("", MODE_ACCEPT_EDITS, "ask", asked);
	expect_all("", MODE_DEFAULT, "ask", allowed);
	/* plan mode: not even with a rule */
	expect("+Bash(touch:*)", MODE_PLAN, "Bash", "command", "touch x",
	    "ask");
}

/* Removals that no rule and no mode lets pass. */
static void
test_critical(void **state)
{
	static const char *const asked[] = { "rm -rf /", "rm -rf /*",
	    "rm -rf /etc", "rm -r ~", "rm -rf ~/", "rm -rf ~/*",
	    "rm -rf $HOME", "rm -rf \"$HOME\"/", "rm -rf ${HOME}/*",
	    "rm -rf .", "rm -rf ./", "rm -rf ..", "rm -rf *", "rm -rf ./*",
	    "rm -rf \"$x\"/*", "rm -rf $x/", "rm -rf sub/..", "rmdir /x",
	    "sudo rm -rf /", "ls; rm -rf /", "echo $(rm -rf /)",
	    "cd / && rm -rf *", "bash -c 'rm -rf /'", "sh -c 'cd /; rm -r *'",
	    "rm -rf {/etc,/usr}", "rm -rf /etc/../usr", "rm -rf -- /",
	    "cd nowhere; rm -rf *", NULL };
	static const char *const fine[] = { "rm -rf sub", "rm x*",
	    "rm -rf sub/*", "rm -f *.o", "rm -rf /tmp/a/b", NULL };

	(void)state;
	expect_all("", MODE_BYPASS, "ask", asked);
	expect_all("+Bash", MODE_ACCEPT_EDITS, "ask", asked);
	expect_all("", MODE_BYPASS, "allow", fine);
	expect("+Bash", MODE_DONT_ASK, "Bash", "command", "rm -rf /", "deny");
	expect("-Bash(rm:*)", MODE_BYPASS, "Bash", "command", "rm -rf /",
	    "deny");
}

/* B10, B11: a denied file, by any name, for tools and file commands. */
static void
test_denied_files(void **state)
{
	static const char *const paths[] = { "secret.txt", "s", "d/secret.txt",
	    "d/s", "x/../secret.txt", "./secret.txt" };
	static const char *const commands[] = { "cat secret.txt", "cat s",
	    "cat d/secret.txt", "head -5 ./secret.txt", "cat <secret.txt",
	    "grep -f secret.txt x", "grep -fsecret.txt x", "cp secret.txt x",
	    "sudo cat secret.txt", "ls; cat 's'", "dd if=secret.txt",
	    "cd sub && cat ../secret.txt", "cd sub; cat secret.txt",
	    "(cd sub); cat secret.txt", "builtin cd d && cat secret.txt",
	    "find . -name secret.txt -exec cat {} +", NULL };
	static const char *const asked[] = { "grep -r x .", "cat sec*",
	    "cat *", "grep --recur x .", NULL };
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(paths); i++) {
		expect("-Read(./secret.txt)", MODE_BYPASS, "Read", "file_path",
		    paths[i], "deny");
		expect("+Edit|-Read(secret.txt)", MODE_DEFAULT, "Edit",
		    "file_path", paths[i], "deny");
	}
	expect_all("-Read(./secret.txt)", MODE_BYPASS, "deny", commands);
	expect_all("-Read(./secret.txt)", MODE_DEFAULT, "ask", asked);
	expect("-Bash(cat:*)", MODE_BYPASS, "Bash", "command", "cat a",
	    "deny");
	expect("-Bash(cat:*)", MODE_BYPASS, "Bash", "command",
	    "/bin/cat /etc/hostname", "deny");
	expect("-Bash(cat:*)", MODE_BYPASS, "Bash", "command", "c''at a",
	    "deny");
}

/* Anchors and shapes of path patterns (the rules are of --settings). */
static void
test_paths(void **state)
{
	static const struct {
		const char *rule, *path, *want;
	} rows[] = {
		{ "-Read(.env)", "a/b/.env", "deny" },
		{ "-Read(.env)", ".env.x", "allow" },
		{ "-Read(./.env)", ".env", "deny" },
		{ "-Read(/.env)", ".env", "deny" },
		{ "-Read(/.env)", "sub/.env", "allow" },
		{ "-Read(sub/**)", "sub/deep/x", "deny" },
		{ "-Read(sub/**)", "a/sub/x", "deny" },
		{ "-Read(sub)", "sub/x", "deny" },
		{ "-Read(*.key)", "sub/a.key", "deny" },
		{ "-Read(//etc/**)", "/etc/passwd", "deny" },
		{ "-Read(//etc/**)", "etc/passwd", "deny" },
		{ "-Read(~/x)", "~/x", "deny" },
		{ "-Read(**)", "x", "deny" },
		{ "-Read(../home/**)", "../home/x", "deny" },
		{ "+Read(//etc/**)", "/etc/passwd", "allow" },
		{ "+Read(//etc/**)", "etc/passwd", "ask" },
		{ "+Read(//etc/**)", "/etc/../var/x", "ask" },
		{ "+Read(~/x/**)", "~/x/y", "allow" },
		{ "+Read(~/x/**)", "~/y", "ask" },
		{ "+Edit(//etc/**)", "/etc/hosts", "allow" },
		{ "+Read", "/etc/passwd", "allow" },
		{ "+Read(passwd)", "/etc/passwd", "ask" },
		{ "", "/etc/passwd", "ask" },
		{ "", "sub/x", "allow" },
		{ "", "etc/passwd", "ask" },
		{ "?Read(sub/**)", "sub/x", "ask" },
		{ "-Read(", "x", "deny" },
		{ "+Read(//etc", "/etc/x", "ask" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++)
		expect(rows[i].rule, MODE_DEFAULT, "Read", "file_path",
		    rows[i].path, rows[i].want);
}

static void
test_writes(void **state)
{
	static const struct {
		const char *rule;
		enum perm_mode mode;
		const char *path, *want;
	} rows[] = {
		{ "", MODE_DEFAULT, "x", "ask" },
		{ "", MODE_ACCEPT_EDITS, "x", "allow" },
		{ "", MODE_ACCEPT_EDITS, "../x", "ask" },
		{ "", MODE_ACCEPT_EDITS, "etc/x", "ask" },
		{ "", MODE_ACCEPT_EDITS, "sub/../../x", "ask" },
		{ "", MODE_PLAN, "x", "ask" },
		{ "", MODE_DONT_ASK, "x", "deny" },
		{ "", MODE_BYPASS, "/etc/x", "allow" },
		{ "", MODE_BYPASS, ".git/config", "allow" },
		{ "+Edit", MODE_DEFAULT, "x", "allow" },
		{ "+Write", MODE_DEFAULT, "x", "allow" },
		{ "+Edit(sub/**)", MODE_DEFAULT, "sub/x", "allow" },
		{ "+Edit(sub/**)", MODE_DEFAULT, "a/sub/x", "ask" },
		{ "+Edit(sub/**)", MODE_DEFAULT, "sub/../x", "ask" },
		{ "+Write(x)", MODE_DEFAULT, "x", "ask" },
		{ "+Edit", MODE_PLAN, "x", "ask" },
		{ "+Edit", MODE_DEFAULT, ".git/config", "ask" },
		{ "+Edit", MODE_DEFAULT, "sub/.Git/config", "ask" },
		{ "+Edit", MODE_ACCEPT_EDITS, ".bashrc", "ask" },
		{ "+Edit", MODE_DEFAULT, ".config/git/x", "ask" },
		{ "+Edit", MODE_DEFAULT, ".claude/settings.json", "ask" },
		{ "+Edit", MODE_DEFAULT, ".claude/worktrees/a/x", "allow" },
		{ "+Edit", MODE_DEFAULT, ".claude/worktrees/a/.git/x", "ask" },
		{ "+Edit", MODE_DEFAULT, ".gitignore", "allow" },
		{ "-Edit(sub/**)", MODE_BYPASS, "sub/x", "deny" },
		{ "-Edit(sub/**)", MODE_BYPASS, "up/x", "deny" },
		{ "-Read(x)", MODE_BYPASS, "x", "deny" },
		{ "?Edit(x)", MODE_BYPASS, "x", "ask" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++)
		expect(rows[i].rule, rows[i].mode, "Write", "file_path",
		    rows[i].path, rows[i].want);
}

static void
test_other_tools(void **state)
{
	static const struct {
		const char *rule, *tool, *key, *value, *want;
	} rows[] = {
		{ "", "WebFetch", "url", "https://a.com/", "ask" },
		{ "+WebFetch(domain:a.com)", "WebFetch", "url",
		    "https://A.com./x", "allow" },
		{ "+WebFetch(domain:a.com)", "WebFetch", "url",
		    "https://b.a.com/", "ask" },
		{ "+WebFetch(domain:a.com)", "WebFetch", "url",
		    "https://a.com@evil.com/", "ask" },
		{ "+WebFetch(domain:a.com)", "WebFetch", "url",
		    "https://x@a.com@evil.com/", "ask" },
		{ "+WebFetch(domain:a.com)", "WebFetch", "url",
		    "https://evil.com/?://a.com", "ask" },
		{ "+WebFetch(domain:a.com)", "WebFetch", "url",
		    "https://a.com:8443/", "allow" },
		{ "+WebFetch(domain:*.a.com)", "WebFetch", "url",
		    "https://c.b.a.com/", "allow" },
		{ "+WebFetch(domain:*.a.com)", "WebFetch", "url",
		    "https://a.com/", "ask" },
		{ "+WebFetch(domain:*.a.com)", "WebFetch", "url",
		    "https://xa.com/", "ask" },
		{ "+WebFetch(domain:a.*.com)", "WebFetch", "url",
		    "https://a.b.c.com/", "ask" },
		{ "+WebFetch(domain:*)", "WebFetch", "url", "https://x/",
		    "allow" },
		{ "-WebFetch(domain:a.com)", "WebFetch", "url",
		    "https://a.com", "deny" },
		{ "+Agent(x)", "Agent", "subagent_type", "x", "allow" },
		{ "-Agent(x)", "Agent", "subagent_type", "x", "deny" },
		{ "-Task(x)", "Agent", "subagent_type", "x", "deny" },
		{ "+Agent(x)", "Agent", "subagent_type", "xy", "ask" },
		{ "-Agent(model:op*)", "Agent", "model", "opus", "deny" },
		{ "+Agent(model:opus)", "Agent", "model", "opus", "ask" },
		{ "-Agent(model:opus)", "Agent", "other", "opus", "ask" },
		{ "", "TodoWrite", "a", "b", "allow" },
		{ "-Todo*", "TodoWrite", "a", "b", "deny" },
		{ "-*", "Bash", "command", "ls", "deny" },
		{ "", "mcp__git__push", "a", "b", "ask" },
		{ "+mcp__git", "mcp__git__push", "a", "b", "allow" },
		{ "+mcp__git__*", "mcp__git__push", "a", "b", "allow" },
		{ "+mcp__git__pu*", "mcp__git__push", "a", "b", "allow" },
		{ "+mcp__g*", "mcp__git__push", "a", "b", "ask" },
		{ "+mcp__gi*", "mcp__git__push", "a", "b", "ask" },
		{ "+mcp__*", "mcp__git__push", "a", "b", "ask" },
		{ "+*", "mcp__git__push", "a", "b", "ask" },
		{ "-mcp__g*", "mcp__git__push", "a", "b", "deny" },
		{ "+Grep", "Grep", "path", "/etc", "allow" },
		{ "", "Grep", "path", "/etc", "ask" },
		{ "-Bash(run_in_background:true)", "Bash", "run_in_background",
		    "true", "deny" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++)
		expect(rows[i].rule, MODE_DEFAULT, rows[i].tool, rows[i].key,
		    rows[i].value, rows[i].want);
}

/* What Bash patterns match. */
static void
test_patterns(void **state)
{
	static const struct {
		const char *rule, *command, *want;
	} rows[] = {
		{ "+Bash(xy *)", "xy", "allow" },
		{ "+Bash(xy *)", "xy -a b", "allow" },
		{ "+Bash(xy *)", "xyz", "ask" },
		{ "+Bash(xy:*)", "xyz", "ask" },
		{ "+Bash(xy*)", "xyz", "allow" },
		{ "+Bash(xy)", "xy a", "ask" },
		{ "+Bash(* --help)", "xy --help", "allow" },
		{ "+Bash(xy * z)", "xy a b z", "allow" },
		{ "+Bash(xy:a)", "xy a", "ask" },
		{ "+Bash(*)", "xy", "allow" },
		{ "+Bash()", "xy", "allow" },
		{ "+Bash(xy", "xy", "ask" },
		{ "-Bash(xy", "ls", "deny" },
		{ "+bash", "xy", "ask" },
		{ "?Bash(ls *)", "ls", "ask" },
		{ "+Bash|?Bash(xy *)|-Bash(xy a)", "xy a", "deny" },
		{ "+Bash|?Bash(xy *)|-Bash(xy a)", "xy b", "ask" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++)
		expect(rows[i].rule, MODE_DEFAULT, "Bash", "command",
		    rows[i].command, rows[i].want);
}

/* Long and deep commands end soon, and are not allowed. */
static void
test_much(void **state)
{
	static const char *const pieces[] = { "eval ", "sudo ", "sh -c ",
	    "env 'a b' ", "xargs ", "a;", "eval 'a' ", "cd a;", "rm * ",
	    "watch 'eval a' ", "$(" };
	int64_t start = core_now();
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(pieces); i++) {
		str_reset(&s);
		while (s.len < 9900)
			str_adds(&s, pieces[i]);
		str_adds(&s, "rm x");
		expect("-Bash(rm x)|-Bash(a*b*c*d*e)", MODE_BYPASS, "Bash",
		    "command", s.p, strchr(pieces[i], '*') ? "ask" : "deny");
	}
	str_clear(&s);
	assert_true(core_now() - start < 10000);
}

static void
test_read_only(void **state)
{
	(void)state;
	assert_true(perm_command_is_read_only("ls -la | head"));
	assert_true(perm_command_is_read_only("git status"));
	assert_false(perm_command_is_read_only("ls >x"));
	assert_false(perm_command_is_read_only("cd x; ls"));
	assert_false(perm_command_is_read_only("touch x"));
	assert_false(perm_command_is_read_only("ls 'x"));
	assert_false(perm_command_is_read_only(""));
}

/* The messages of reference 4.7. */
static void
test_messages(void **state)
{
	struct perm_verdict v;

	(void)state;
	decide("-Bash(rm:*)", MODE_DEFAULT, "Bash", "command", "rm x", &v);
	assert_string_equal(v.message.p, "Permission to use Bash with command "
	    "rm x has been denied.");
	assert_string_equal(v.rule.p, "Bash(rm:*)");
	perm_verdict_clear(&v);
	decide("", MODE_DEFAULT, "Bash", "command", "ls; a b; c", &v);
	assert_string_equal(v.message.p, "This Bash command contains multiple "
	    "operations. The following parts require approval: a b, c");
	perm_verdict_clear(&v);
	decide("", MODE_DONT_ASK, "Bash", "command", "a", &v);
	assert_true(str_starts(v.message.p, "Permission to use Bash has been "
	    "denied because Claude Code is running in don't ask mode."));
	perm_verdict_clear(&v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deny),
		cmocka_unit_test(test_allow),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_critical),
		cmocka_unit_test(test_denied_files),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_other_tools),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_much),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
