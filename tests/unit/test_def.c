/* Agent definitions: what each file means, where they come from, who wins. */
#include "internals.h"
#include "place.h"

static struct place place;
static struct conf conf;
static struct opts opts;
static struct defs defs;
static struct err error;

static int
setup(void **state)
{
	(void)state;
	place_make(&place);
	unsetenv("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS");
	unsetenv("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS");
	opts = (struct opts){ 0 };
	error = (struct err){ 0 };
	assert_int_equal(sig_init(NULL), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	def_clear_all(&defs);
	conf_clear(&conf);
	str_list_clear(&opts.add_dirs);
	place_remove(&place);
	return 0;
}

/* Loads anew for the settings and options that are set. */
static int
reload(void)
{
	int r;

	def_clear_all(&defs);
	conf_clear(&conf);
	err_clear(&error);
	assert_int_equal(conf_load(&conf, &opts, &error), 0);
	place_catch(&place);
	r = def_load_all(&defs, &conf, &error);
	assert_string_equal(place_caught(&place), "");
	return r;
}

static void
load(void)
{
	if (reload() < 0)
		fail_msg("def_load_all: %s", error.msg);
}

/* The listed one whose path ends so; NULL. */
static const struct def *
at(const char *path)
{
	size_t i;

	for (i = 0; i < defs.n; i++)
		if (defs.list[i].path && str_ends(defs.list[i].path, path))
			return &defs.list[i];
	return NULL;
}

/* Codes of a definition's warnings, joined; "none". */
static const char *
codes(const struct def *d)
{
	static struct str s;
	size_t i;

	str_reset(&s);
	if (!s.cap)
		str_init(&s, 0);
	for (i = 0; i < d->nwarnings; i++)
		str_addf(&s, "%s%s", i ? "," : "", d->warnings[i].code);
	return s.len ? s.p : "none";
}

/* A file of a header and a prompt, read from memory. */
static struct def
parse(const char *header)
{
	struct def d;
	struct str s;

	str_init(&s, 0);
	str_addf(&s, "---\nname: it\ndescription: d\n%s---\nhi\n", header);
	err_clear(&error);
	if (def_parse(str_slice(&s), "it.md", "project", &d, &error) < 0)
		fail_msg("%s", error.msg);
	str_clear(&s);
	return d;
}

/*--- the tables of tests/conform -------------------------------------------*/

/* One row, split at tabs. */
static size_t
split(char *line, char **column, size_t max)
{
	size_t n = 0;

	while (n < max && line)
		column[n++] = strsep(&line, "\t");
	return n;
}

/* \n, \t and \\ in a column are escapes. */
static void
unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1])
			*to++ = *++s == 'n' ? '\n' : *s == 't' ? '\t' : *s;
		else
			*to++ = *s;
	}
	*to = 0;
}

static void
join(const struct strv *v, struct str *out)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		str_addf(out, "%s%s", i ? "|" : "", v->v[i]);
}

static void
check_row(const char *dir, char **column, size_t n)
{
	char *path = file_join(dir, column[0]);
	struct str file, text, tools;
	struct def d = { 0 };
	struct arena a = { 0 };

	str_init(&file, 0);
	str_init(&text, 0);
	str_init(&tools, 0);
	if (file_read(path, LIM_DEF, &file, &error) < 0)
		fail_msg("%s", error.msg);
	def_read(str_slice(&file), path, "project", true, &a, &text, &d);
	if (d.error && strcmp(column[1], "no"))
		fail_msg("%s: %s: %s", column[0], d.error, d.error_message);
	if (!d.error && strcmp(column[1], "yes"))
		fail_msg("%s loads", column[0]);
	if (d.error && strcmp(d.error, column[5]))
		fail_msg("%s: %s, not %s", column[0], d.error, column[5]);
	if (strcmp(column[2], "-"))
		assert_string_equal(d.name, column[2]);
	if (d.error)
		goto out;
	join(&d.tools, &tools);
	if (strcmp(!d.has_tools ? "inherit" : tools.len ? tools.p : "none",
	    column[3]))
		fail_msg("%s: tools %s", column[0], tools.p);
	assert_string_equal(d.model ? d.model : "inherit", column[4]);
	if (strcmp(codes(&d), column[5]))
		fail_msg("%s: warnings %s, not %s", column[0], codes(&d),
		    column[5]);
	if (n > 8 && strcmp(column[6], "-"))
		assert_string_equal(d.description, column[6]);
	if (n > 8 && strcmp(column[7], "-"))
		assert_string_equal(d.prompt, column[7]);
	assert_null(strchr(d.description, '\r'));
	assert_null(strchr(d.prompt, '\r'));
out:
	def_clear(&d);
	arena_clear(&a);
	free(path);
	str_clear(&file);
	str_clear(&text);
	str_clear(&tools);
}

/* Every row of a folder's EXPECTED.tsv; how many there were. */
static int
check_table(const char *dir)
{
	char *path = file_join(dir, "EXPECTED.tsv"), *line, *rest;
	char *column[10];
	struct str table;
	int rows = 0;
	size_t n, i;

	str_init(&table, 0);
	if (file_read(path, LIM_DEF, &table, &error) < 0)
		fail_msg("%s", error.msg);
	for (rest = table.p; (line = strsep(&rest, "\n"));) {
		if (!*line || *line == '#' || str_starts(line, "file\t"))
			continue;
		n = split(line, column, LENGTH(column));
		assert_true(n >= 7);
		for (i = 6; i < n; i++)
			unescape(column[i]);
		check_row(dir, column, n);
		rows++;
	}
	free(path);
	str_clear(&table);
	return rows;
}

static char start[PATH_MAX];	/* where the tests were started */

static void
test_corpus(void **state)
{
	char *dir = file_join(start, "tests/conform/agents");

	(void)state;
	assert_true(check_table(dir) >= 34);
	free(dir);
}

static void
test_rules(void **state)
{
	char *dir = file_join(start, "tests/conform/rules");

	(void)state;
	assert_true(check_table(dir) >= 130);
	free(dir);
}

/*--- fields ----------------------------------------------------------------*/

static void
test_all_fields(void **state)
{
	struct def d = parse("model: claude-opus-4-6\ntools: Read, Bash\n"
	    "disallowedTools: [Write]\npermissionMode: acceptEdits\n"
	    "maxTurns: 12\neffort: high\nmemory: project\n"
	    "isolation: worktree\ncolor: red\nskills: a, /b\n"
	    "background: true\nomitClaudeMd: yes\ninitialPrompt: go\n"
	    "criticalSystemReminder_EXPERIMENTAL: mind\n"
	    "mcpServers:\n  - github\n  - own: {type: stdio, command: x}\n"
	    "hooks:\n  Stop:\n    - hooks:\n      - type: command\n"
	    "        command: x\n        timeout: 5\n");

	(void)state;
	assert_string_equal(codes(&d), "none");
	assert_string_equal(d.name, "it");
	assert_string_equal(d.prompt, "hi");
	assert_string_equal(d.path, "it.md");
	assert_string_equal(d.model, "claude-opus-4-6");
	assert_int_equal(d.tools.n, 2);
	assert_int_equal(d.disallowed.n, 1);
	assert_true(d.has_mode && d.mode == MODE_ACCEPT_EDITS);
	assert_int_equal(d.max_turns, 12);
	assert_string_equal(d.effort, "high");
	assert_string_equal(d.memory, "project");
	assert_string_equal(d.isolation, "worktree");
	assert_string_equal(d.color, "red");
	assert_string_equal(d.skills.v[1], "/b");
	assert_true(d.background && d.omit_claude_md);
	assert_string_equal(d.initial_prompt, "go");
	assert_string_equal(d.critical_reminder, "mind");
	assert_int_equal(cJSON_GetArraySize(d.mcp_servers), 2);
	assert_int_equal(json_int(cJSON_GetArrayItem(json_get(
	    cJSON_GetArrayItem(json_get(d.hooks, "Stop"), 0), "hooks"), 0),
	    "timeout", 0), 5);
	def_clear(&d);
}

static void
test_lines_of_warnings(void **state)
{
	struct def d = parse("hooks:\n  pre: x\neffort: 8h\n\n"
	    "tools: Nope\nmax_turns: 3\n");

	(void)state;
	assert_string_equal(codes(&d),
	    "unknown-tool,hooks-ignored,value-ignored,key-alias");
	assert_int_equal(d.warnings[0].line, 8);
	assert_int_equal(d.warnings[1].line, 4);
	assert_int_equal(d.warnings[2].line, 6);
	assert_int_equal(d.warnings[3].line, 9);
	def_clear(&d);
}

static void
test_parse_fails_with_a_place(void **state)
{
	struct def d;
	const char *text = "---\nname: it\ndescription: d\n"
	    "permissionMode: never\n---\nhi\n";

	(void)state;
	assert_int_equal(def_parse(str_of(text), "x/it.md", "flag", &d,
	    &error), -1);
	assert_int_equal(error.code, ERR_PARSE);
	assert_true(str_starts(error.msg, "x/it.md:4: permissionMode: "));
	assert_null(d.name);
	assert_null(d.warnings);
}

static void
test_servers_in_any_form(void **state)
{
	static const char *const good[] = { "a, b", "[a, b]", "{a: {}, b: {}}",
	    "[a, {b: {}}]" };
	static const char *const bad[] = { "3", "[3]", "[{a: 1}]", "[[]]",
	    "[{}]" };
	struct str s;
	struct def d;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(good); i++) {
		str_reset(&s);
		str_addf(&s, "mcpServers: %s\n", good[i]);
		d = parse(s.p);
		assert_string_equal(codes(&d), "none");
		assert_int_equal(cJSON_GetArraySize(d.mcp_servers), 2);
		def_clear(&d);
	}
	for (i = 0; i < LENGTH(bad); i++) {
		str_reset(&s);
		str_addf(&s, "mcpServers: %s\n", bad[i]);
		d = parse(s.p);
		assert_string_equal(codes(&d), "value-ignored");
		assert_null(d.mcp_servers);
		def_clear(&d);
	}
	str_clear(&s);
}

static void
test_tool_names(void **state)
{
	static const char *const same[] = { "Agent", "Read", "Write", "Edit",
	    "NotebookEdit", "Bash", "Glob", "Grep", "WebFetch", "WebSearch",
	    "TodoWrite", "Skill", "ToolSearch", "PowerShell", "Monitor",
	    "AskUserQuestion", "ExitPlanMode", "SendMessage", "TaskStop",
	    "mcp__a__b", "propose_skills" };
	static const char *const gone[] = { "MultiEdit", "LS", "TodoRead",
	    "NotebookRead", "BashOutput", "TaskOutput" };
	static const char *const moved[][2] = { { "Task", "Agent" },
	    { "KillShell", "TaskStop" }, { "KillBash", "TaskStop" },
	    { "SlashCommand", "Skill" }, { "ListPeers", "ListAgents" },
	    { "Brief", "SendUserMessage" }, { "ProposeGoal", "SetGoal" },
	    { "ListMcpResources", "ListMcpResourcesTool" } };
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(same); i++)
		assert_string_equal(def_tool_alias(same[i]), same[i]);
	for (i = 0; i < LENGTH(gone); i++)
		assert_string_equal(def_tool_alias(gone[i]), "");
	for (i = 0; i < LENGTH(moved); i++)
		assert_string_equal(def_tool_alias(moved[i][0]), moved[i][1]);
	assert_null(def_tool_alias("read"));
	assert_null(def_tool_alias(""));
	assert_string_equal(def_tool_hint("webfetch"), "WebFetch");
	assert_null(def_tool_hint("editFiles"));
	assert_true(def_tool_is_known("Bash(git diff:*)"));
	assert_true(def_tool_is_known("Web*"));
	assert_true(def_tool_is_known("mcp__*"));
	assert_false(def_tool_is_known("Nope*"));
}

/* Many bad names: one warning, of bounded length. */
static void
test_many_unknown_tools(void **state)
{
	struct str s;
	struct def d;
	int i;

	(void)state;
	str_init(&s, 0);
	str_adds(&s, "tools: ");
	for (i = 0; i < 500; i++)
		str_addf(&s, "\303\244\303\266%d, ", i);
	str_addc(&s, '\n');
	d = parse(s.p);
	assert_string_equal(codes(&d), "unknown-tool");
	assert_true(strlen(d.warnings[0].message) < LIM_MSG);
	assert_true(text_utf8_is(str_of(d.warnings[0].message)));
	assert_int_equal(d.tools.n, 500);
	def_clear(&d);
	str_clear(&s);
}

/*--- sources ---------------------------------------------------------------*/

#define AGENT(name, text) "---\nname: " name "\ndescription: d\n---\n" text

static void
test_precedence(void **state)
{
	const struct def *d;

	(void)state;
	place_write("home/.claude/agents/a.md", AGENT("Explore", "user"));
	load();
	d = def_find(&defs, "Explore");
	assert_string_equal(d->source, "user");
	place_shell("git -C project init -q; mkdir -p project/sub/deep");
	place_write("project/.claude/agents/a.md", AGENT("Explore", "root"));
	place_write("project/sub/.claude/agents/a.md",
	    AGENT("Explore", "near"));
	assert_int_equal(chdir(place_path("project/sub/deep")), 0);
	load();
	assert_string_equal(def_find(&defs, "Explore")->prompt, "near");
	assert_ptr_equal(at("home/.claude/agents/a.md")->winner,
	    def_find(&defs, "Explore"));
	opts.agents = "{\"Explore\":{\"description\":\"d\",\"prompt\":"
	    "\"flag\"}}";
	load();
	assert_string_equal(def_find(&defs, "Explore")->prompt, "flag");
	place_write("managed/.claude/agents/a.md",
	    AGENT("Explore", "managed"));
	load();
	d = def_find(&defs, "Explore");
	assert_string_equal(d->prompt, "managed");
	assert_string_equal(d->source, "managed");
	assert_string_equal(codes(d), "name-style");
	opts.bare = true;
	load();
	assert_string_equal(def_find(&defs, "Explore")->prompt, "flag");
}

static void
test_setting_sources(void **state)
{
	(void)state;
	place_write("home/.claude/agents/u.md", AGENT("u", "x"));
	place_write("project/.claude/agents/p.md", AGENT("p", "x"));
	opts.setting_sources = "user";
	load();
	assert_non_null(def_find(&defs, "u"));
	assert_null(def_find(&defs, "p"));
	opts.setting_sources = "project";
	load();
	assert_null(def_find(&defs, "u"));
	assert_non_null(def_find(&defs, "p"));
	opts.setting_sources = "";
	load();
	assert_null(def_find(&defs, "u"));
	assert_null(def_find(&defs, "p"));
	assert_non_null(def_find(&defs, "Plan"));
}

/* Outside a repository the folders above are nobody's. */
static void
test_no_repository(void **state)
{
	(void)state;
	place_write(".claude/agents/out.md", AGENT("out", "x"));
	place_write("project/.claude/agents/in.md", AGENT("in", "x"));
	load();
	assert_null(def_find(&defs, "out"));
	assert_non_null(def_find(&defs, "in"));
}

/* Running in the home: its folder is the user's, not a project's. */
static void
test_home_as_project(void **state)
{
	(void)state;
	place_write("home/.claude/agents/u.md", AGENT("u", "x"));
	assert_int_equal(chdir(place_path("home")), 0);
	load();
	assert_string_equal(def_find(&defs, "u")->source, "user");
	assert_string_equal(codes(def_find(&defs, "u")), "none");
}

static void
test_add_dir_and_worktree(void **state)
{
	(void)state;
	assert_true(place_shell("cd project && git init -q && "
	    "git -c user.name=a -c user.email=a@b commit -q --allow-empty "
	    "-m x && git worktree add -q ../tree"));
	place_write("project/.claude/agents/m.md", AGENT("main", "x"));
	place_write("more/.claude/agents/x.md", AGENT("more", "x"));
	str_list_adds(&opts.add_dirs, "../more");
	str_list_adds(&opts.add_dirs, ".");
	assert_int_equal(chdir(place_path("tree")), 0);
	load();
	assert_string_equal(def_find(&defs, "main")->source, "project");
	assert_string_equal(def_find(&defs, "more")->source, "project");
	assert_string_equal(codes(def_find(&defs, "main")), "none");
}

static void
test_same_name_in_one_folder(void **state)
{
	struct str s;

	(void)state;
	place_write("project/.claude/agents/b.md", AGENT("x", "b"));
	place_write("project/.claude/agents/a/z.md", AGENT("x", "deep"));
	place_write("project/.claude/agents/a-z.md", AGENT("x", "flat"));
	load();
	/* By the bytes of the path: "a-z.md", "a/z.md", "b.md". */
	assert_string_equal(def_find(&defs, "x")->prompt, "flat");
	assert_string_equal(codes(def_find(&defs, "x")), "dup-name");
	assert_string_equal(codes(at("a/z.md")), "dup-name");
	assert_string_equal(codes(at("b.md")), "dup-name");
	str_init(&s, 0);
	def_print(&defs, &s);
	assert_non_null(strstr(s.p, "comes first by its path"));
	str_clear(&s);
}

/* A refused file keeps the built-in of its name from being used. */
static void
test_refused_file_bars(void **state)
{
	(void)state;
	place_write("project/.claude/agents/a.md", "---\nname: "
	    "general-purpose\ndescription: d\ntools: {read: true}\n---\nx\n");
	load();
	assert_null(def_find(&defs, "general-purpose"));
	assert_int_equal(def_missing(&defs, "general-purpose", &error), -1);
	assert_int_equal(error.code, ERR_USAGE);
	assert_non_null(strstr(error.msg, "a.md:4: tools: "));
	assert_non_null(strstr(error.msg, "Available agents: "));
	place_write("project/.claude/agents/a.md", "---\nname: "
	    "general-purpose\ntools: Read\n---\nx\n");
	load();
	assert_string_equal(def_find(&defs, "general-purpose")->source,
	    "built-in");
	assert_int_equal(def_missing(&defs, "a", &error), -1);
}

static void
test_odd_entries(void **state)
{
	struct stat st;

	(void)state;
	place_write("project/.claude/agents/README.md", "# no agent\n");
	place_write("project/.claude/agents/deep/er/a.md", AGENT("a", "x"));
	place_write("project/.claude/agents/b.txt", AGENT("b", "x"));
	place_write("project/.claude/agents/.c.md", AGENT("c", "x"));
	place_write("elsewhere/d.md", AGENT("d", "x"));
	place_write("elsewhere/e.md", AGENT("e", "x"));
	assert_true(place_shell("cd project/.claude/agents && mkfifo f.md && "
	    "ln -s /dev/zero z.md && ln -s . loop && ln -s nowhere gone.md && "
	    "ln -s self.md self.md && ln -s ../../../elsewhere/d.md d.md && "
	    "ln -s ../../../elsewhere other && "
	    "head -c 1100000 /dev/zero > big.md"));
	load();
	assert_non_null(def_find(&defs, "a"));
	assert_null(def_find(&defs, "b"));
	assert_null(def_find(&defs, "c"));
	assert_non_null(def_find(&defs, "d"));
	assert_non_null(def_find(&defs, "e"));
	assert_null(at("/f.md"));
	assert_null(at("/z.md"));
	assert_string_equal(at("gone.md")->error, "unreadable");
	assert_string_equal(at("self.md")->error, "unreadable");
	assert_string_equal(at("agents/loop")->error, "unreadable");
	assert_string_equal(at("big.md")->error, "too-large");
	assert_string_equal(at("README.md")->error, "no-name");
	assert_int_equal(stat(place_path("project/.claude/agents/f.md"), &st),
	    0);
}

static void
test_many_files(void **state)
{
	char name[64], text[96];
	int i, ours = 0;
	int64_t t;

	(void)state;
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name),
		    "project/.claude/agents/%d/a%d.md", i % 7, i);
		snprintf(text, sizeof(text), AGENT("a%d", "x"), i);
		place_write(name, text);
	}
	t = core_now();
	load();
	printf("# 1000 files: %d ms\n", (int)(core_now() - t));
	for (i = 0; i < (int)defs.n; i++)
		ours += defs.list[i].active && !strcmp(defs.list[i].source,
		    "project");
	assert_int_equal(ours, 1000);
	assert_non_null(def_find(&defs, "a999"));
}

static void
test_find_is_tolerant(void **state)
{
	(void)state;
	place_write("project/.claude/agents/a.md", AGENT("Code Reviewer",
	    "x"));
	place_write("project/.claude/agents/b.md", AGENT("one-two", "x"));
	place_write("project/.claude/agents/c.md", AGENT("one_two", "x"));
	load();
	assert_string_equal(def_find(&defs, "code-reviewer")->name,
	    "Code Reviewer");
	assert_string_equal(def_find(&defs, "explore")->name, "Explore");
	assert_string_equal(def_find(&defs, "one_two")->name, "one_two");
	assert_null(def_find(&defs, "onetwo"));	/* which one? */
	assert_null(def_find(&defs, ""));
	assert_null(def_find(&defs, "code-reviewers"));
}

/* Prompts stay in their files until somebody asks for one. */
static void
test_prompt_is_fetched(void **state)
{
	static const char file[] = "project/.claude/agents/a.md";

	(void)state;
	place_write(file, AGENT("a", "old"));
	load();
	assert_null(at("agents/a.md")->prompt);
	place_write(file, AGENT("a", "new\r\nline"));
	assert_string_equal(def_find(&defs, "a")->prompt, "new\nline");
	load();
	place_write(file, "---\nname: a\ndescription: d\ntools: Read\n---\nx");
	place_catch(&place);
	assert_null(def_find(&defs, "a"));
	assert_non_null(strstr(place_caught(&place), "was changed"));
	assert_true(place_shell("rm project/.claude/agents/a.md"));
	place_catch(&place);
	assert_null(def_find(&defs, "a"));
	assert_non_null(strstr(place_caught(&place), "a.md"));
}

static void
test_trust(void **state)
{
	static const char text[] = "---\nname: x\ndescription: d\n"
	    "permissionMode: bypassPermissions\nhooks:\n  Stop:\n"
	    "    - hooks: []\nmcpServers: [a, {b: {}}]\n---\nhi\n";
	const struct def *d;
	struct str s;

	(void)state;
	place_write("project/.claude/agents/x.md", text);
	load();
	d = def_find(&defs, "x");
	assert_false(d->has_mode);
	assert_null(d->hooks);
	assert_null(d->mcp_servers);
	assert_string_equal(codes(d), "value-ignored");
	str_init(&s, 0);
	str_addf(&s, "{\"projects\":{\"%s\":{\"hasTrustDialogAccepted\":true"
	    "}}}", place_path("project"));
	place_write("home/.claude.json", s.p);
	str_clear(&s);
	load();
	d = def_find(&defs, "x");
	assert_true(d->has_mode && d->mode == MODE_BYPASS);
	assert_non_null(d->hooks);
	assert_non_null(d->mcp_servers);
	/* The user's own need no trust. */
	place_write("home/.claude.json", "{}");
	place_write("home/.claude/agents/y.md", text);
	opts.setting_sources = "user";
	load();
	assert_true(def_find(&defs, "x")->has_mode);
}

/*--- --agents --------------------------------------------------------------*/

static void
test_json(void **state)
{
	const struct def *d;

	(void)state;
	opts.agents = " {\"rev\":{\"description\":\"d\",\"prompt\":\" p \","
	    "\"tools\":[\"Read\",\"Bash(a, b)\"],\"model\":\"Haiku\","
	    "\"maxTurns\":3,\"permissionMode\":\"plan\",\"background\":true,"
	    "\"unknown\":1,\"effort\":\"low\"},"
	    "\"none\":{\"description\":\"d\",\"prompt\":\"p\",\"tools\":[]}}";
	load();
	d = def_find(&defs, "rev");
	assert_string_equal(d->source, "flag");
	assert_null(d->path);
	assert_string_equal(d->prompt, "p");
	assert_int_equal(d->tools.n, 2);
	assert_string_equal(d->model, "haiku");
	assert_int_equal(d->max_turns, 3);
	assert_int_equal(d->mode, MODE_PLAN);
	assert_true(d->background);
	assert_string_equal(codes(d), "none");
	d = def_find(&defs, "none");
	assert_true(d->has_tools && !d->tools.n);
	place_write("project/list.json", opts.agents);
	opts.agents = "list.json";
	load();
	assert_true(str_ends(def_find(&defs, "rev")->path,
	    "project/list.json"));
}

static void
test_json_is_refused(void **state)
{
	static const struct {
		const char *json, *piece;
	} cases[] = {
		{ "{", "line 1, column" },
		{ "[]", "--agents" },
		{ "", "--agents" },
		{ "no-such-file", "no-such-file" },
		{ "{\"a\":1}", "a: an object expected, not a number" },
		{ "{\"a\":{\"prompt\":\"p\"}}",
		    "\na.description: text expected, not nothing" },
		{ "{\"a\":{\"prompt\":\"p\",\"description\":\" \"}}",
		    "\na.description: " },
		{ "{\"a\":{\"description\":\"d\"}}",
		    "\na.prompt: text expected, not nothing" },
		{ "{\"a\":{\"description\":1,\"prompt\":[]}}",
		    "\na.prompt: text expected, not a list\n"
		    "a.description: text expected, not a number" },
		{ "{\"a\":{\"description\":\"d\",\"prompt\":\"p\","
		    "\"tools\":3}}", "\na.tools: " },
		{ "{\"a\":{\"description\":\"d\",\"prompt\":\"p\","
		    "\"tools\":[1]}}", "\na.tools: " },
		{ "{\"a\":{\"description\":\"d\",\"prompt\":\"p\","
		    "\"permissionMode\":\"x\"}}", "\na.permissionMode: " },
		{ "{\"-a\":{\"description\":\"d\",\"prompt\":\"p\"}}",
		    "hyphen" },
		{ "{\"a:b\":{\"description\":\"d\",\"prompt\":\"p\"}}",
		    "colon" },
		{ "{\"\":{\"description\":\"d\",\"prompt\":\"p\"}}",
		    "empty" },
		{ "{\"a\":{\"description\":\"d\",\"prompt\":\"p\"},"
		    "\"a\":{\"description\":\"d\",\"prompt\":\"p\"}}",
		    "a: is there twice" },
		{ "{\"a\":{\"description\":\"d\\u0000\",\"prompt\":\"p\"}}",
		    "zero byte" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		opts.agents = cases[i].json;
		if (!reload())
			fail_msg("taken: %s", cases[i].json);
		assert_int_equal(error.code, ERR_USAGE);
		if (!strstr(error.msg, cases[i].piece) ||
		    !strstr(error.msg, "--agents"))
			fail_msg("%s: %s", cases[i].json, error.msg);
		assert_int_equal(defs.n, 0);
	}
}

/* More problems than a message holds. */
static void
test_json_many_problems(void **state)
{
	struct str s;
	int i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < 100; i++)
		str_addf(&s, "%s\"agent%d\":{}", i ? "," : "{", i);
	str_addc(&s, '}');
	opts.agents = s.p;
	assert_int_equal(reload(), -1);
	assert_true(str_ends(error.msg, "\n..."));
	str_clear(&s);
}

/*--- built-in --------------------------------------------------------------*/

static void
test_built_in(void **state)
{
	static const char *const names[] = { "general-purpose", "Explore",
	    "Plan", "verification" };
	const struct def *d;
	size_t i;

	(void)state;
	load();
	for (i = 0; i < LENGTH(names); i++) {
		d = def_find(&defs, names[i]);
		assert_non_null(d);
		assert_string_equal(d->source, "built-in");
		assert_null(d->path);
		assert_string_equal(codes(d), "none");
		assert_true(strlen(d->prompt) > 200);
		assert_true(strlen(d->prompt) < 2560);
		assert_false(d->has_tools);
		assert_null(d->model);
		if (i) {
			assert_true(str_list_has(&d->disallowed, "Write"));
			assert_true(str_list_has(&d->disallowed, "Edit"));
			assert_true(str_list_has(&d->disallowed, "Agent"));
		}
		assert_int_equal(d->omit_claude_md, i == 1 || i == 2);
	}
	assert_non_null(def_find(&defs, "verification")->critical_reminder);
	assert_null(def_find(&defs, "default"));
	assert_true(str_starts(def_default_prompt(&defs),
	    "You are an agent run by subagent, a command-line agent "
	    "runner."));
	assert_true(strlen(def_default_prompt(&defs)) < 2560);
	assert_int_not_equal(def_default_prompt(&defs)[strlen(
	    def_default_prompt(&defs)) - 1], '\n');
	setenv("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS", "1", 1);
	load();
	assert_null(def_find(&defs, "Plan"));
	assert_non_null(def_find(&defs, "verification"));
	setenv("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", "true", 1);
	load();
	assert_int_equal(defs.n, 0);
	assert_true(strlen(def_default_prompt(&defs)) > 200);
}

/*--- printing --------------------------------------------------------------*/

static void
test_print_json(void **state)
{
	cJSON *root;
	const cJSON *v;
	struct str s;

	(void)state;
	place_write("project/.claude/agents/a.md", "---\nname: a\n"
	    "description: \"x \\e[31m \\\"y\\\"\"\ntools: []\n"
	    "effort: 8h\n---\nhi\n");
	place_write("project/.claude/agents/b.md", "---\nname: b\n---\nx\n");
	setenv("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", "1", 1);
	load();
	str_init(&s, 0);
	def_print_json(&defs, &s);
	root = json_parse(str_slice(&s), &error);
	assert_non_null(root);
	assert_int_equal(cJSON_GetArraySize(root), 2);
	v = cJSON_GetArrayItem(root, 0);
	assert_int_equal(cJSON_GetArraySize(v), 9);
	assert_string_equal(json_text(v, "name"), "a");
	assert_string_equal(json_text(v, "source"), "project");
	assert_true(str_ends(json_text(v, "path"), "agents/a.md"));
	assert_string_equal(json_text(v, "description"), "x \33[31m \"y\"");
	assert_true(cJSON_IsArray(json_get(v, "tools")));
	assert_int_equal(cJSON_GetArraySize(json_get(v, "tools")), 0);
	assert_true(cJSON_IsArray(json_get(v, "disallowedTools")));
	assert_string_equal(json_text(v, "model"), "inherit");
	assert_true(json_flag(v, "active", false));
	v = cJSON_GetArrayItem(json_get(v, "warnings"), 0);
	assert_string_equal(json_text(v, "code"), "value-ignored");
	assert_int_equal(json_int(v, "line", 0), 5);
	v = cJSON_GetArrayItem(root, 1);
	assert_int_equal(cJSON_GetArraySize(v), 3);
	assert_false(json_flag(v, "active", true));
	assert_string_equal(json_text(json_get(v, "error"), "code"),
	    "no-description");
	cJSON_Delete(root);
	str_reset(&s);
	def_print(&defs, &s);
	assert_null(strchr(s.p, '\33'));
	assert_non_null(strstr(s.p, "tools none"));
	assert_non_null(strstr(s.p, "not loaded:\n"));
	str_clear(&s);
}

static void
test_check(void **state)
{
	struct str s;

	(void)state;
	place_write("project/a.md", AGENT("a", "x"));
	place_write("project/b.md", AGENT("B", "x"));
	place_write("project/c.md", "---\nname: c\ndescription: d\n");
	str_init(&s, 0);
	assert_true(def_check("a.md", &s));
	assert_string_equal(s.p, "");
	assert_true(def_check("b.md", &s));
	assert_true(str_starts(s.p, "b.md:2: name-style: "));
	str_reset(&s);
	assert_false(def_check("c.md", &s));
	assert_string_equal(s.p, "c.md:1: unclosed: the header is not closed: "
	    "a line --- is missing\n");
	str_reset(&s);
	assert_false(def_check("none.md", &s));
	assert_true(str_starts(s.p, "none.md: unreadable: "));
	str_reset(&s);
	assert_false(def_check(".", &s));
	str_clear(&s);
}

static void
test_warn(void **state)
{
	const char *text;

	(void)state;
	place_write("project/.claude/agents/a.md",
	    "---\nname: a\ndescription: x: y\n---\nhi\n");
	place_write("project/.claude/agents/b.md", "---\nname: b\n---\nx\n");
	place_write("project/.claude/agents/c.md", "# nothing\n");
	load();
	place_catch(&place);
	def_warn(def_find(&defs, "a"));
	text = place_caught(&place);
	assert_int_equal(place_count(text, "\n"), 1);
	assert_non_null(strstr(text, "agents/a.md:3: "));
	place_catch(&place);
	def_warn_all(&defs);
	text = place_caught(&place);
	assert_int_equal(place_count(text, "\n"), 2);
	assert_non_null(strstr(text, "agents/b.md:2: "));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_corpus),
		TEST(test_rules),
		TEST(test_all_fields),
		TEST(test_lines_of_warnings),
		TEST(test_parse_fails_with_a_place),
		TEST(test_servers_in_any_form),
		TEST(test_tool_names),
		TEST(test_many_unknown_tools),
		TEST(test_precedence),
		TEST(test_setting_sources),
		TEST(test_no_repository),
		TEST(test_home_as_project),
		TEST(test_add_dir_and_worktree),
		TEST(test_same_name_in_one_folder),
		TEST(test_refused_file_bars),
		TEST(test_odd_entries),
		TEST(test_many_files),
		TEST(test_find_is_tolerant),
		TEST(test_prompt_is_fetched),
		TEST(test_trust),
		TEST(test_json),
		TEST(test_json_is_refused),
		TEST(test_json_many_problems),
		TEST(test_built_in),
		TEST(test_print_json),
		TEST(test_check),
		TEST(test_warn),
	};

	core_init();
	if (!getcwd(start, sizeof(start)))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
