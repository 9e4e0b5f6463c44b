/* Settings: who wins, what is refused, what trust changes. */
#include "internals.h"
#include "place.h"

#define USER "home/.claude/settings.json"
#define PROJECT "project/.claude/settings.json"
#define LOCAL "project/.claude/settings.local.json"
#define MANAGED "managed/managed-settings.json"
#define TRUSTED "{\"projects\":{\"%s\":{\"hasTrustDialogAccepted\":true}}}"

static struct place place;
static struct conf conf;
static struct opts opts;
static struct err error;

static int
setup(void **state)
{
	(void)state;
	place_make(&place);
	opts = (struct opts){ 0 };
	error = (struct err){ 0 };
	assert_int_equal(sig_init(NULL), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	place_remove(&place);
	str_list_clear(&opts.allowed);
	str_list_clear(&opts.disallowed);
	str_list_clear(&opts.add_dirs);
	return 0;
}

/* Loads; fails the test where that fails.  What stderr got. */
static const char *
load(void)
{
	int r;

	err_clear(&error);
	place_catch(&place);
	r = conf_load(&conf, &opts, &error);
	place_caught(&place);
	if (r < 0)
		fail_msg("conf_load: %s", error.msg);
	return place.err;
}

/* Loads what must not load; the message. */
static const char *
refused(void)
{
	int r;

	err_clear(&error);
	place_catch(&place);
	r = conf_load(&conf, &opts, &error);
	place_caught(&place);
	assert_int_equal(r, -1);
	assert_int_equal(error.code, ERR_USAGE);
	assert_null(conf.merged);
	return error.msg;
}

#define HAS(text, piece) do { \
	const char *t_ = (text); \
	if (!strstr(t_, piece)) \
		fail_msg("'%s' is not in: %s", piece, t_); \
} while (0)

static void
quiet_load(void)
{
	assert_string_equal(load(), "");
}

static void
trust(const char *path)
{
	char text[1024];

	snprintf(text, sizeof(text), TRUSTED, path);
	place_write("home/.claude.json", text);
}

static size_t
rules(enum conf_list list)
{
	size_t i, n = 0;

	for (i = 0; i < conf.nrules; i++)
		n += conf.rules[i].list == list;
	return n;
}

static const struct conf_rule *
rule(const char *text)
{
	size_t i;

	for (i = 0; i < conf.nrules; i++)
		if (!strcmp(conf.rules[i].text, text))
			return &conf.rules[i];
	return NULL;
}

static void
test_nothing(void **state)
{
	(void)state;
	quiet_load();
	assert_string_equal(conf.start_dir, place_path("project"));
	assert_string_equal(conf.config_dir, place_path("home/.claude"));
	assert_null(conf.git_root);
	assert_null(conf.main_root);
	assert_int_equal(conf.sources, CONF_ALL);
	assert_int_equal(conf.dirs.n, 1);
	assert_string_equal(conf.dirs.v[0], conf.start_dir);
	assert_int_equal(conf.nrules, 0);
	assert_null(conf_text(&conf, "model"));
	assert_null(conf_origin(&conf, "model"));
	assert_true(conf_flag(&conf, "respectGitignore", true));
	assert_int_equal(conf_int(&conf, "bashOutputMaxChars", 1, 9, 5), 5);
	assert_false(conf_trust(&conf));
	assert_false(conf.bare);
	conf_clear(&conf);
	conf_clear(&conf);	/* twice is fine */
}

static void
test_scalars(void **state)
{
	(void)state;
	place_write(USER, "{\"model\":\"u\",\"agent\":\"ua\","
	    "\"effortLevel\":\"low\"}");
	quiet_load();
	assert_string_equal(conf_text(&conf, "model"), "u");
	assert_string_equal(conf_origin(&conf, "model"), place_path(USER));
	conf_clear(&conf);
	place_write(PROJECT, "{\"model\":\"p\"}");
	quiet_load();
	assert_string_equal(conf_text(&conf, "model"), "p");
	assert_string_equal(conf_text(&conf, "agent"), "ua");
	conf_clear(&conf);
	place_write(LOCAL, "{\"model\":\"l\"}");
	quiet_load();
	assert_string_equal(conf_text(&conf, "model"), "l");
	conf_clear(&conf);
	opts.settings = " {\"model\":\"f\"}";
	quiet_load();
	assert_string_equal(conf_text(&conf, "model"), "f");
	assert_string_equal(conf_origin(&conf, "model"), "--settings");
	conf_clear(&conf);
	place_write(MANAGED, "{\"model\":\"m\"}");
	quiet_load();
	assert_string_equal(conf_text(&conf, "model"), "m");
	assert_int_equal(conf.from[conf_row("model")].level,
	    CONF_MANAGED_LEVEL);
	assert_string_equal(conf_text(&conf, "agent"), "ua");
	assert_string_equal(conf_text(&conf, "effortLevel"), "low");
	conf_clear(&conf);
}

/* Objects merge, lists add up, two lists do not, one flag stays. */
static void
test_merge(void **state)
{
	const cJSON *v;

	(void)state;
	place_write(USER, "{\"env\":{\"CONF_A\":\"u\",\"CONF_B\":\"u\"},"
	    "\"claudeMdExcludes\":[\"u\"],\"fallbackModel\":[\"x\",\"y\"],"
	    "\"availableModels\":[\"opus\"],\"permissions\":{"
	    "\"blockReadsOutsideWorkingDirectories\":true}}");
	place_write(PROJECT, "{\"env\":{\"CONF_B\":\"p\",\"CONF_C\":1.5,"
	    "\"CONF_D\":true},\"claudeMdExcludes\":[\"p\"],"
	    "\"availableModels\":[\"haiku\"],\"permissions\":{"
	    "\"blockReadsOutsideWorkingDirectories\":false}}");
	quiet_load();
	assert_string_equal(getenv("CONF_A"), "u");
	assert_string_equal(getenv("CONF_B"), "p");
	assert_string_equal(getenv("CONF_C"), "1.5");
	assert_string_equal(getenv("CONF_D"), "true");
	v = conf_get(&conf, "claudeMdExcludes");
	assert_int_equal(cJSON_GetArraySize(v), 2);
	assert_string_equal(cJSON_GetArrayItem(v, 0)->valuestring, "u");
	assert_int_equal(cJSON_GetArraySize(conf_get(&conf,
	    "availableModels")), 2);
	assert_string_equal(conf_text(&conf, "fallbackModel"), "x,y");
	assert_true(conf_flag(&conf,
	    "permissions.blockReadsOutsideWorkingDirectories", false));
	assert_string_equal(conf_origin(&conf,
	    "permissions.blockReadsOutsideWorkingDirectories"),
	    place_path(USER));
	conf_clear(&conf);
	opts.settings = "{\"fallbackModel\":\"z\"}";
	place_write(MANAGED, "{\"availableModels\":[\"fable\"]}");
	quiet_load();
	assert_string_equal(conf_text(&conf, "fallbackModel"), "z");
	v = conf_get(&conf, "availableModels");
	assert_int_equal(cJSON_GetArraySize(v), 1);
	assert_string_equal(v->child->valuestring, "fable");
	conf_clear(&conf);
	unsetenv("CONF_A");
	unsetenv("CONF_B");
	unsetenv("CONF_C");
	unsetenv("CONF_D");
}

static void
test_sources(void **state)
{
	static const struct {
		const char *list;
		const char *model;
	} cases[] = {
		{ NULL, "l" }, { "user,project,local", "l" },
		{ "user,project", "p" }, { " project , user ", "p" },
		{ "user", "u" }, { "", NULL }, { ",", NULL },
		{ "local", "l" },
	};
	size_t i;

	(void)state;
	place_write(USER, "{\"model\":\"u\"}");
	place_write(PROJECT, "{\"model\":\"p\"}");
	place_write(LOCAL, "{\"model\":\"l\"}");
	for (i = 0; i < LENGTH(cases); i++) {
		opts.setting_sources = cases[i].list;
		quiet_load();
		if (cases[i].model)
			assert_string_equal(conf_text(&conf, "model"),
			    cases[i].model);
		else
			assert_null(conf_text(&conf, "model"));
		conf_clear(&conf);
	}
	opts.setting_sources = "user,projekt";
	HAS(refused(), "'projekt' is not one of user, project, local");
}

/* A source that is left out is not even looked at. */
static void
test_sources_skip_broken(void **state)
{
	(void)state;
	place_write(PROJECT, "{");
	HAS(refused(), "--setting-sources user,local");
	opts.setting_sources = "user,local";
	quiet_load();
	conf_clear(&conf);
	place_write(MANAGED, "{");
	opts.setting_sources = "";
	HAS(refused(), "administrator");
}

/* Files that may hold a deny rule that we cannot see. */
static void
test_broken(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{ "{", ":1:2: JSON ends too early" },
		{ "{\n  \"a\": 1,\n}", ":3:1: not valid JSON" },
		{ "{\"permissions\":{\"deny\":[\"Bash\",]}}",
		    ":1:32: not valid JSON" },
		{ "// comment\n{}", ":1:1: not valid JSON" },
		{ "", "is empty" }, { " \n", "is empty" },
		{ "[]", "not a JSON object" }, { "null", "not a JSON object" },
		{ "{} {}", ":1:4: not valid JSON" },
		{ "\377\376{\0", "is UTF-16" },
		{ "{\"permissions\":{\"deny\":[\"Bash(rm\\u0000x)\"]}}",
		    "\\u0000" },
	};
	static const char *const files[] = { USER, PROJECT, LOCAL, MANAGED };
	char where[PATH_MAX + 32];
	size_t i, k;

	(void)state;
	for (k = 0; k < LENGTH(files); k++) {
		for (i = 0; i < LENGTH(cases); i++) {
			place_write(files[k], cases[i].text);
			HAS(refused(), cases[i].says);
			HAS(error.msg, place_path(files[k]));
		}
		unlink(place_path(files[k]));
	}
	for (i = 0; i < LENGTH(cases); i++) {
		if (cases[i].text[0] != '{')
			continue;
		opts.settings = cases[i].text;
		snprintf(where, sizeof(where), "--settings%s",
		    cases[i].says[0] == ':' ? cases[i].says : "");
		HAS(refused(), where);
	}
}

static void
test_strict_types(void **state)
{
	static const char *const bad[] = {
		"{\"permissions\":[]}", "{\"permissions\":null}",
		"{\"permissions\":{\"deny\":\"Bash\"}}",
		"{\"permissions\":{\"deny\":[\"Bash\",1]}}",
		"{\"permissions\":{\"deny\":null}}",
		"{\"permissions\":{\"ask\":{}}}",
		"{\"permissions\":{\"defaultMode\":\"plna\"}}",
		"{\"permissions\":{\"defaultMode\":true}}",
		"{\"permissions\":{\"disableBypassPermissionsMode\":true}}",
		"{\"permissions\":{\"denyInsteadOfPrompting\":\"yes\"}}",
		"{\"permissions\":{\"blockReadsOutsideWorkingDirectories\":1}}",
		"{\"permissions\":{\"blockWritesOutsideWorkingDirectories\":"
		    "\"true\"}}",
		"{\"allowManagedPermissionRulesOnly\":1}",
		"{\"availableModels\":\"opus\"}", "{\"deniedModels\":[[]]}",
		"{\"hooks\":[]}", "{\"sandbox\":true}",
		/* twice: one of the two would be lost */
		"{\"permissions\":{\"deny\":[\"A\"]},\"permissions\":{}}",
		"{\"permissions\":{\"deny\":[\"A\"],\"deny\":[]}}",
		"{\"p\\u0065rmissions\":{},\"permissions\":{}}",
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(bad); i++) {
		place_write(USER, bad[i]);
		HAS(refused(), place_path(USER));
	}
	place_write(USER, "{\n \"permissions\": {\n  \"deny\": 3}}");
	HAS(refused(), "settings.json:3:11: permissions.deny: a list of text "
	    "expected, not a number");
	place_write(USER, "{\"permissions\": {\"defaultMode\": \"plna\"}}");
	HAS(refused(), "or bypassPermissions expected, not plna; ");
	place_write(USER, "{\"permissions\": {\"deny\": \"x\"}}");
	HAS(refused(), "a list of text expected, not text; ");
}

/* What does not restrict only loses that key, with one warning. */
static void
test_loose_types(void **state)
{
	static const char *const bad[] = {
		"\"model\":1", "\"env\":[]", "\"fallbackModel\":[1]",
		"\"effortLevel\":null", "\"agent\":{}", "\"apiKeyHelper\":[]",
		"\"includeGitInstructions\":\"no\"", "\"claudeMd\":3",
		"\"claudeMdExcludes\":\"*\"", "\"respectGitignore\":0",
		"\"bashOutputMaxChars\":\"many\"",
		"\"permissions\":{\"allow\":\"Bash\"}",
		"\"permissions\":{\"additionalDirectories\":[0]}",
		"\"claudeMd\":\"not from here\"",
		"\"agent\":\"a\",\"agent\":\"b\"",
	};
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(bad); i++) {
		snprintf(text, sizeof(text), "{%s,\"permissions\":{\"deny\":"
		    "[\"Read\"]}}", bad[i]);
		if (strstr(bad[i], "permissions"))
			snprintf(text, sizeof(text), "{%.*s,\"deny\":"
			    "[\"Read\"]}}", (int)strlen(bad[i]) - 1, bad[i]);
		place_write(USER, text);
		load();
		assert_int_equal(place_count(place.err, "warning"), 1);
		assert_int_equal(rules(CONF_DENY), 1);
		assert_int_equal(rules(CONF_ALLOW), 0);
		conf_clear(&conf);
	}
	/* the last of two counts, as in JSON everywhere */
	load();
	assert_string_equal(conf_text(&conf, "agent"), "b");
	conf_clear(&conf);
}

static void
test_unknown_is_quiet(void **state)
{
	(void)state;
	place_write(USER, "{\"statusLine\":{},\"theme\":\"x\","
	    "\"permissions\":{\"future\":[1]},\"$schema\":\"y\"}");
	quiet_load();
	conf_clear(&conf);
	/* unless it looks like something that restricts */
	place_write(USER, "{\"deny\":[\"Bash\"],\"permissions\":{\"Ask\":[]}}");
	load();
	HAS(place.err, "is 'permissions.deny' meant?");
	HAS(place.err, "is 'permissions.ask' meant?");
	conf_clear(&conf);
}

static void
test_mark_and_size(void **state)
{
	char *big = core_alloc(LIM_SETTINGS + 64);
	size_t n, i;
	struct str s;

	(void)state;
	place_write(USER, "\357\273\277{\"model\":\"u\"}");
	quiet_load();
	assert_string_equal(conf_text(&conf, "model"), "u");
	conf_clear(&conf);

	memset(big, ' ', LIM_SETTINGS + 64);
	big[0] = '{';
	big[LIM_SETTINGS - 1] = '}';
	place_write_bytes(USER, big, LIM_SETTINGS);
	quiet_load();
	conf_clear(&conf);
	place_write_bytes(USER, big, LIM_SETTINGS + 1);
	HAS(refused(), "is larger than 2097152 bytes");
	free(big);

	/* deeply nested, and wide enough to make look-ups slow */
	str_init(&s, 0);
	str_adds(&s, "{\"x\":");
	for (i = 0; i < 1000; i++)
		str_addc(&s, '[');
	place_write(USER, s.p);
	HAS(refused(), "nested too deeply");
	for (n = CONF_MEMBERS; n <= CONF_MEMBERS + 1; n++) {
		str_reset(&s);
		str_adds(&s, "{\"env\":{");
		for (i = 0; i < n; i++)
			str_addf(&s, "%s\"\":0", i ? "," : "");
		str_adds(&s, "}}");
		place_write(USER, s.p);
		if (n == CONF_MEMBERS) {
			load();
			conf_clear(&conf);
		} else {
			HAS(refused(), "too many members");
		}
	}
	str_clear(&s);
	unlink(place_path(USER));
}

/* There, but not to be read: never passed over. */
static void
test_unreadable(void **state)
{
	(void)state;
	place_dirs(USER);
	assert_int_equal(symlink("/nowhere/at/all", place_path(USER)), 0);
	HAS(refused(), "cannot open");
	unlink(place_path(USER));
	assert_int_equal(symlink("settings.json", place_path(USER)), 0);
	HAS(refused(), "cannot open");
	unlink(place_path(USER));
	assert_int_equal(mkfifo(place_path(USER), 0666), 0);
	HAS(refused(), "not a regular file");
	unlink(place_path(USER));
	assert_int_equal(mkdir(place_path(USER), 0777), 0);
	HAS(refused(), "is a folder");
	rmdir(place_path(USER));
	/* `.claude` is a file: there can be no settings in it */
	place_write("project/.claude", "x");
	quiet_load();
	conf_clear(&conf);
	if (geteuid() == 0)
		return;
	place_write(USER, "{}");
	chmod(place_path(USER), 0);
	HAS(refused(), "Permission denied");
}

static void
test_rules(void **state)
{
	(void)state;
	trust(place_path("project"));
	place_write(USER, "{\"permissions\":{\"allow\":[\"u1\",\" \"],"
	    "\"deny\":[\"u2\"]}}");
	place_write(PROJECT, "{\"permissions\":{\"allow\":[\"p1\"],"
	    "\"ask\":[\"p2\"]}}");
	place_write(LOCAL, "{\"permissions\":{\"allow\":[\"l1\"]}}");
	place_write("project/sub/s.json",
	    "{\"permissions\":{\"deny\":[\"f1\"]}}");
	place_write(MANAGED, "{\"permissions\":{\"deny\":[\"m1\"]}}");
	opts.settings = "sub/../sub/s.json";
	str_list_adds(&opts.allowed, "c1");
	str_list_adds(&opts.disallowed, "c2");
	load();
	HAS(place.err, "empty permission rule");
	assert_int_equal(conf.nrules, 9);
	assert_int_equal(rules(CONF_DENY), 4);
	assert_int_equal(rules(CONF_ASK), 1);
	assert_string_equal(rule("u1")->anchor, place_path("home/.claude"));
	assert_string_equal(rule("u1")->origin, place_path(USER));
	assert_string_equal(rule("p1")->anchor, place_path("project"));
	assert_int_equal(rule("p1")->level, CONF_PROJECT_LEVEL);
	assert_string_equal(rule("l1")->anchor, place_path("project"));
	assert_string_equal(rule("f1")->anchor, place_path("project/sub"));
	assert_string_equal(rule("f1")->origin,
	    place_path("project/sub/s.json"));
	assert_string_equal(rule("m1")->anchor, place_path("managed"));
	assert_string_equal(rule("c1")->origin, "--allowedTools");
	assert_int_equal(rule("c2")->list, CONF_DENY);
	assert_int_equal(rule("c2")->level, CONF_CLI);
	conf_clear(&conf);
}

/* --settings <(program) */
static void
test_flag_pipe(void **state)
{
	static const char text[] = "{\"model\":\"p\"}";
	char path[32];
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], text, strlen(text)), strlen(text));
	close(p[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", p[0]);
	opts.settings = path;
	quiet_load();
	assert_string_equal(conf_text(&conf, "model"), "p");
	conf_clear(&conf);
	HAS(refused(), "is empty");
	close(p[0]);
	opts.settings = "/dev/zero";
	HAS(refused(), "larger than");
	opts.settings = ".";
	HAS(refused(), "cannot read");
}

static void
test_flag(void **state)
{
	struct str big;

	(void)state;
	opts.settings = "missing.json";
	HAS(refused(), "missing.json");
	opts.settings = "";
	HAS(refused(), "--settings");
	str_init(&big, 0);
	str_adds(&big, "{\"x\":\"");
	while (big.len <= LIM_SETTINGS)
		str_adds(&big, "0123456789abcdef");
	str_adds(&big, "\"}");
	opts.settings = big.p;
	HAS(refused(), "--settings: more than");
	str_clear(&big);
}

/* What came with the folder gives no rights until the folder is trusted. */
static void
test_untrusted(void **state)
{
	(void)state;
	mkdir(place_path("extra"), 0777);
	place_write(PROJECT, "{\"permissions\":{\"allow\":[\"a\",\"b\"],"
	    "\"ask\":[\"c\"],\"deny\":[\"d\"],\"additionalDirectories\":"
	    "[\"../extra\"]},\"apiKeyHelper\":\"steal\","
	    "\"disableAllHooks\":true}");
	load();
	HAS(place.err, "Ignoring 2 permissions.allow entries and 1 "
	    "permissions.additionalDirectories entry from ");
	HAS(place.err, "this workspace has not been trusted");
	HAS(place.err, "apiKeyHelper is not used");
	assert_int_equal(place_count(place.err, "warning"), 3);
	assert_int_equal(conf.nrules, 2);
	assert_int_equal(rules(CONF_ALLOW), 0);
	assert_int_equal(conf.dirs.n, 1);
	assert_null(conf_text(&conf, "apiKeyHelper"));
	conf_clear(&conf);

	trust(place_path("project"));
	quiet_load();
	assert_int_equal(rules(CONF_ALLOW), 2);
	assert_int_equal(conf.dirs.n, 2);
	assert_string_equal(conf.dirs.v[1], place_path("extra"));
	assert_string_equal(conf_text(&conf, "apiKeyHelper"), "steal");
	assert_true(conf_trust(&conf));
	conf_clear(&conf);

	/* a parent's trust is not this folder's */
	trust(place_path(""));
	load();
	assert_int_equal(rules(CONF_ALLOW), 0);
	conf_clear(&conf);
}

/* Only a plain true in a sound file is trust. */
static void
test_state_file(void **state)
{
	static const char *const no[] = {
		"", "[]", "{\"projects\":[]}", "{\"projects\":{\"%s\":true}}",
		"{\"projects\":{\"%s\":{}}}",
		"{\"projects\":{\"%s\":{\"hasTrustDialogAccepted\":1}}}",
		"{\"projects\":{\"%s\":{\"hasTrustDialogAccepted\":\"true\"}}}",
		"{\"projects\":{\"%s\":{\"hasTrustDialogAccepted\":false}}}",
		"{\"projects\":{\"%s/\":{\"hasTrustDialogAccepted\":true}}}",
		"{\"projects\":{\"%s\\u0000\":"
		    "{\"hasTrustDialogAccepted\":true}}}",
		"{\"projects\":{\"%s\":{\"x\":{\"hasTrustDialogAccepted\":"
		    "true}}}}",
		"{\"projects\":{\"%s\":{\"hasTrustDialogAccepted\":tru",
	};
	static const char *const yes[] = {
		TRUSTED,
		"{\"a\":[1,{}],\"projects\":{\"/x\":{},\"%s\":"
		    "{\"y\":[],\"hasTrustDialogAccepted\" : true}}}",
		"{\"projects\":{\"\\u002f%s\":"
		    "{\"hasTrustDialogAccepted\":true}}}",
	};
	char text[1024];
	size_t i;

	(void)state;
	place_write(PROJECT, "{\"permissions\":{\"allow\":[\"a\"]}}");
	for (i = 0; i < LENGTH(no); i++) {
		snprintf(text, sizeof(text), no[i], place_path("project"));
		place_write("home/.claude.json", text);
		load();
		assert_int_equal(conf.nrules, 0);
		conf_clear(&conf);
	}
	for (i = 0; i < LENGTH(yes); i++) {
		snprintf(text, sizeof(text), yes[i], place_path("project") +
		    (strstr(yes[i], "u002f") ? 1 : 0));
		place_write("home/.claude.json", text);
		quiet_load();
		assert_int_equal(conf.nrules, 1);
		conf_clear(&conf);
	}
	/* CLAUDE_CONFIG_DIR moves the state file as well */
	setenv("CLAUDE_CONFIG_DIR", "../cfg", 1);
	load();
	assert_int_equal(conf.nrules, 0);
	assert_string_equal(conf.config_dir, place_path("cfg"));
	conf_clear(&conf);
	assert_true(place_shell("mkdir cfg && cp home/.claude.json cfg/"));
	quiet_load();
	assert_int_equal(conf.nrules, 1);
	conf_clear(&conf);
	unsetenv("CLAUDE_CONFIG_DIR");
}

static void
test_env(void **state)
{
	static const char *const risky[] = { "LD_PRELOAD", "LD_LIBRARY_PATH",
	    "PATH", "BASH_ENV", "ENV", "NODE_OPTIONS", "GIT_SSH_COMMAND",
	    "GIT_PAGER", "PAGER", "MANPAGER", "https_proxy", "HTTPS_PROXY",
	    "No_Proxy", "ALL_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
	    "NODE_TLS_REJECT_UNAUTHORIZED", "ANTHROPIC_BASE_URL",
	    "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_API_KEY",
	    "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CONFIG_DIR", "HOME",
	    "XDG_CONFIG_HOME", "PYTHONPATH", "IS_SANDBOX", "SA_FAULT",
	    "CLAUDE_CODE_SHELL_PREFIX", "SSH_AUTH_SOCK", "SUDO_ASKPASS" };
	static const char *const fine[] = { "MY_APP", "NODE_ENV", "CI",
	    "ANTHROPIC_MODEL", "PATHX", "XPATH", "ENVIRONMENT",
	    "BASH_DEFAULT", "ANTHROPIC_DEFAULT_OPUS_MODEL", "DEBUG", "TZ",
	    "CARGO_TERM_COLOR", "MAX_THINKING_TOKENS" };
	char name[300];
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(risky); i++)
		if (!conf_is_risky(risky[i]))
			fail_msg("%s is not risky", risky[i]);
	for (i = 0; i < LENGTH(fine); i++)
		if (conf_is_risky(fine[i]) && strcmp(fine[i], "BASH_DEFAULT"))
			fail_msg("%s is risky", fine[i]);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_true(conf_is_risky(name));

	setenv("CONF_E", "outside", 1);
	place_write(PROJECT, "{\"env\":{\"ANTHROPIC_BASE_URL\":\"http://evil\","
	    "\"http_proxy\":\"x\",\"CONF_E\":\"project\",\"CONF_F\":[],"
	    "\"A=B\":\"1\",\"\":\"2\",\"CONF_G\":\"\"}}");
	load();
	HAS(place.err, "env.ANTHROPIC_BASE_URL is not used: it could");
	HAS(place.err, "env.http_proxy is not used");
	HAS(place.err, "env.CONF_F is not used: text expected");
	assert_int_equal(place_count(place.err, "this is not a name"), 2);
	assert_int_equal(place_count(place.err, "warning"), 5);
	assert_null(getenv("ANTHROPIC_BASE_URL"));
	assert_null(getenv("http_proxy"));
	assert_string_equal(getenv("CONF_E"), "project");
	assert_string_equal(getenv("CONF_G"), "");
	assert_null(conf_env("CONF_G"));
	conf_clear(&conf);

	/* the user's own file may do all that; so may a trusted folder */
	place_write(PROJECT, "{\"env\":{\"CONF_PROXY\":\"p\"}}");
	place_write(USER, "{\"env\":{\"CONF_CA_BUNDLE\":\"u\"}}");
	trust(place_path("project"));
	quiet_load();
	assert_string_equal(getenv("CONF_PROXY"), "p");
	assert_string_equal(getenv("CONF_CA_BUNDLE"), "u");
	conf_clear(&conf);
	for (i = 0; i < 7; i++) {
		static const char *const names[] = { "CONF_E", "CONF_F",
		    "CONF_G", "CONF_PROXY", "CONF_CA_BUNDLE", "A", "B" };

		unsetenv(names[i]);
	}
}

static void
test_env_words(void **state)
{
	(void)state;
	setenv("CONF_X", "", 1);
	assert_null(conf_env("CONF_X"));
	assert_false(conf_env_on("CONF_X"));
	setenv("CONF_X", "YES", 1);
	assert_true(conf_env_on("CONF_X"));
	setenv("CONF_X", "0", 1);
	assert_false(conf_env_on("CONF_X"));
	setenv("CONF_X", " 12 ", 1);
	assert_int_equal(conf_env_int("CONF_X", 1, 20, 5), 12);
	place_catch(&place);
	assert_int_equal(conf_env_int("CONF_X", 1, 11, 5), 5);
	setenv("CONF_X", "1e3", 1);
	assert_int_equal(conf_env_int("CONF_X", 1, 11, 5), 5);
	assert_int_equal(place_count(place_caught(&place), "warning"), 2);
	unsetenv("CONF_X");
	assert_int_equal(conf_env_int("CONF_X", 1, 11, 5), 5);
}

/* Which start modes a file may set. */
static void
test_modes(void **state)
{
	static const struct {
		const char *mode;
		bool user, local, trusted, untrusted;
	} cases[] = {
		{ "default", true, true, true, false },
		{ "plan", true, true, true, true },
		{ "dontAsk", true, true, true, true },
		{ "acceptEdits", true, true, true, false },
		{ "auto", true, false, false, false },
		{ "bypassPermissions", true, true, false, false },
	};
	static const char *const files[] = { USER, LOCAL, PROJECT, PROJECT };
	char text[128];
	const char *got;
	size_t i, k;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		bool want[] = { cases[i].user, cases[i].local,
		    cases[i].trusted, cases[i].untrusted };

		snprintf(text, sizeof(text), "{\"permissions\":"
		    "{\"defaultMode\":\"%s\"}}", cases[i].mode);
		for (k = 0; k < LENGTH(files); k++) {
			trust(place_path(k == 2 ? "project" : "other"));
			place_write(files[k], text);
			load();
			got = conf_text(&conf, "permissions.defaultMode");
			if (!!got != want[k])
				fail_msg("%s, %zu", cases[i].mode, k);
			assert_int_equal(place_count(place.err, "warning"),
			    !want[k]);
			conf_clear(&conf);
			unlink(place_path(files[k]));
		}
	}
}

static void
test_managed(void **state)
{
	(void)state;
	place_write(MANAGED, "{\"model\":\"base\",\"agent\":\"base\","
	    "\"claudeMd\":\"hello\"}");
	place_write("managed/managed-settings.d/10-a.json",
	    "{\"model\":\"a\",\"permissions\":{\"allow\":[\"ma\"]}}");
	place_write("managed/managed-settings.d/20-b.json",
	    "{\"model\":\"b\",\"allowManagedPermissionRulesOnly\":true}");
	place_write("managed/managed-settings.d/30-c.txt", "{");
	place_write("managed/managed-settings.d/.d.json", "{");
	place_write(USER, "{\"permissions\":{\"allow\":[\"u\"]},"
	    "\"allowManagedPermissionRulesOnly\":false}");
	str_list_adds(&opts.allowed, "c");
	load();
	HAS(place.err, "allowManagedPermissionRulesOnly is not used: only "
	    "managed settings may set it");
	HAS(place.err, "2 permission rules are not used");
	assert_string_equal(conf_text(&conf, "model"), "b");
	assert_string_equal(conf_text(&conf, "agent"), "base");
	assert_string_equal(conf_text(&conf, "claudeMd"), "hello");
	assert_int_equal(conf.nrules, 1);
	assert_string_equal(conf.rules[0].text, "ma");
	conf_clear(&conf);
	place_write("managed/managed-settings.d/40-e.json", "nope");
	HAS(refused(), "40-e.json:1:1: not valid JSON");
}

static void
test_own_only(void **state)
{
	(void)state;
	place_write(LOCAL,
	    "{\"permissions\":{\"denyInsteadOfPrompting\":false}}");
	place_write(USER,
	    "{\"permissions\":{\"denyInsteadOfPrompting\":true}}");
	load();
	HAS(place.err, "project and local settings may not set it");
	assert_true(conf_flag(&conf, "permissions.denyInsteadOfPrompting",
	    false));
	conf_clear(&conf);
}

static void
test_sandbox(void **state)
{
	(void)state;
	place_write(USER, "{\"sandbox\":{\"enabled\":true}}");
	load();
	HAS(place.err, "sandbox.enabled has no effect");
	conf_clear(&conf);
	place_write(USER, "{\"sandbox\":{\"enabled\":true,"
	    "\"failIfUnavailable\":true}}");
	HAS(refused(), "asks for a sandbox");
}

static void
test_bare(void **state)
{
	(void)state;
	place_write(USER, "{\"apiKeyHelper\":\"u\",\"model\":\"m\","
	    "\"permissions\":{\"deny\":[\"d\"]}}");
	opts.bare = true;
	load();
	HAS(place.err, "with --bare only --settings may set it");
	assert_null(conf_text(&conf, "apiKeyHelper"));
	assert_int_equal(conf.nrules, 1);
	conf_clear(&conf);
	opts.settings = "{\"apiKeyHelper\":\"f\"}";
	load();
	assert_string_equal(conf_text(&conf, "apiKeyHelper"), "f");
	conf_clear(&conf);
	opts = (struct opts){ 0 };
	setenv("CLAUDE_CODE_SIMPLE", "1", 1);
	load();
	assert_true(conf.bare);
	conf_clear(&conf);
	unsetenv("CLAUDE_CODE_SIMPLE");
}

/* In the home folder the user's file is not also a project's. */
static void
test_in_home(void **state)
{
	(void)state;
	place_write(USER, "{\"permissions\":{\"allow\":[\"a\"]}}");
	assert_int_equal(chdir(place_path("home")), 0);
	quiet_load();
	assert_int_equal(conf.nrules, 1);
	assert_int_equal(conf.rules[0].level, CONF_USER_LEVEL);
	conf_clear(&conf);
}

static void
test_homeless(void **state)
{
	(void)state;
	setenv("CLAUDE_CONFIG_DIR", "/", 1);
	quiet_load();
	assert_string_equal(conf.config_dir, "/");
	assert_string_equal(conf.state_file, "/.claude.json");
	conf_clear(&conf);
	unsetenv("CLAUDE_CONFIG_DIR");
	setenv("HOME", "/", 1);
	quiet_load();
	assert_string_equal(conf.config_dir, "/.claude");
	conf_clear(&conf);
	setenv("HOME", place_path("home"), 1);
	if (geteuid() == 0)
		return;
	chmod(place_path("home"), 0);
	quiet_load();
	assert_null(conf.config_dir);
	conf_clear(&conf);
}

static void
test_deleted_start(void **state)
{
	(void)state;
	assert_int_equal(rmdir(place_path("project")), 0);
	assert_int_equal(conf_load(&conf, &opts, &error), -1);
	assert_int_equal(error.code, ERR_IO);
	HAS(error.msg, "the current folder was deleted");
}

static void
test_dirs(void **state)
{
	(void)state;
	mkdir(place_path("one"), 0777);
	mkdir(place_path("home/two"), 0777);
	assert_int_equal(symlink("one", place_path("link")), 0);
	place_write(USER, "{\"permissions\":{\"additionalDirectories\":"
	    "[\"~/two\",\"../link\",\"nowhere\"]}}");
	str_list_adds(&opts.add_dirs, place_path("one"));
	str_list_adds(&opts.add_dirs, ".");
	load();
	HAS(place.err, "the folder 'nowhere' is not there");
	assert_int_equal(conf.dirs.n, 3);
	assert_string_equal(conf.dirs.v[1], place_path("home/two"));
	assert_string_equal(conf.dirs.v[2], place_path("one"));
	conf_clear(&conf);
}

static void
test_git_root(void **state)
{
	(void)state;
	place_write("project/.git/HEAD", "ref: refs/heads/main\n");
	place_write("project/a/b/x", "");
	place_write("project/.claude/settings.local.json",
	    "{\"model\":\"root\",\"agent\":\"root\"}");
	place_write("project/.claude/settings.json", "{\"model\":\"no\"}");
	place_write("project/a/b/.claude/settings.local.json",
	    "{\"model\":\"here\"}");
	assert_int_equal(chdir(place_path("project/a/b")), 0);
	quiet_load();
	assert_string_equal(conf.git_root, place_path("project"));
	assert_string_equal(conf.main_root, conf.git_root);
	assert_string_equal(conf_text(&conf, "model"), "here");
	assert_string_equal(conf_text(&conf, "agent"), "root");
	assert_string_equal(conf.dirs.v[0], place_path("project/a/b"));
	conf_clear(&conf);
	/* trust is the repository's */
	place_write("project/a/b/.claude/settings.json",
	    "{\"permissions\":{\"allow\":[\"x\"]}}");
	load();
	assert_int_equal(conf.nrules, 0);
	conf_clear(&conf);
	trust(place_path("project"));
	quiet_load();
	assert_int_equal(conf.nrules, 1);
	conf_clear(&conf);
}

/* A linked worktree is the main checkout's, but only by git's own word. */
static void
test_worktree(void **state)
{
	char text[PATH_MAX + 16];

	(void)state;
	place_write("main/.git/worktrees/w/commondir", "../..\n");
	snprintf(text, sizeof(text), "%s\n", place_path("project/.git"));
	place_write("main/.git/worktrees/w/gitdir", text);
	snprintf(text, sizeof(text), "gitdir: %s\n",
	    place_path("main/.git/worktrees/w"));
	place_write("project/.git", text);
	place_write("main/.claude/settings.local.json",
	    "{\"agent\":\"main\"}");
	place_write(PROJECT, "{\"permissions\":{\"allow\":[\"x\"]}}");
	trust(place_path("main"));
	quiet_load();
	assert_string_equal(conf.git_root, place_path("project"));
	assert_string_equal(conf.main_root, place_path("main"));
	assert_string_equal(conf_text(&conf, "agent"), "main");
	assert_int_equal(conf.nrules, 1);
	conf_clear(&conf);
	/* the record names another worktree: the claim is not believed */
	place_write("main/.git/worktrees/w/gitdir", "/elsewhere/.git\n");
	load();
	assert_string_equal(conf.main_root, place_path("project"));
	assert_int_equal(conf.nrules, 0);
	conf_clear(&conf);
	/* nor without the record, or with half of it */
	place_write("main/.git/worktrees/w/gitdir", "");
	load();
	assert_string_equal(conf.main_root, place_path("project"));
	conf_clear(&conf);
	snprintf(text, sizeof(text), "%s\n", place_path("project/.git"));
	place_write("main/.git/worktrees/w/gitdir", text);
	unlink(place_path("main/.git/worktrees/w/commondir"));
	load();
	assert_string_equal(conf.main_root, place_path("project"));
	conf_clear(&conf);
	place_write("main/.git/worktrees/w/commondir", "../..");
	snprintf(text, sizeof(text), "gitdia: %s\n",
	    place_path("main/.git/worktrees/w"));
	place_write("project/.git", text);
	load();
	assert_string_equal(conf.main_root, place_path("project"));
	conf_clear(&conf);
	place_write("project/.git", "gitdir:\n");
	load();
	assert_string_equal(conf.main_root, place_path("project"));
	conf_clear(&conf);
	place_write("project/.git", "");
	load();
	assert_string_equal(conf.main_root, place_path("project"));
	conf_clear(&conf);
}

/* A local file is the user's own unless git has it. */
static void
test_tracked(void **state)
{
	(void)state;
	place_write(LOCAL, "{\"permissions\":{\"allow\":[\"x\"]},"
	    "\"apiKeyHelper\":\"h\"}");
	quiet_load();
	assert_int_equal(conf.nrules, 1);
	conf_clear(&conf);
	if (!place_shell("cd project && git init -q"))
		skip();
	quiet_load();
	assert_int_equal(conf.nrules, 1);
	conf_clear(&conf);
	assert_true(place_shell("cd project && git add -f ."));
	load();
	assert_int_equal(place_count(place.err, "warning"), 2);
	assert_int_equal(conf.nrules, 0);
	assert_null(conf_text(&conf, "apiKeyHelper"));
	conf_clear(&conf);
	/* what the repository configures does not run */
	assert_true(place_shell("cd project && git config core.fsmonitor "
	    "'touch ../ran; false'"));
	load();
	assert_int_equal(access(place_path("ran"), F_OK), -1);
	conf_clear(&conf);
	/* nor do the user's variables lead git to another index */
	setenv("GIT_INDEX_FILE", "/nowhere", 1);
	load();
	assert_int_equal(conf.nrules, 0);
	unsetenv("GIT_INDEX_FILE");
	conf_clear(&conf);
	/* git is broken here: no proof that the file is the user's */
	assert_true(place_shell("rm -r project/.git/objects"));
	load();
	assert_int_equal(conf.nrules, 0);
	conf_clear(&conf);
}

static void
test_tracked_link(void **state)
{
	(void)state;
	place_write("project/hidden/settings.local.json",
	    "{\"permissions\":{\"allow\":[\"x\"]}}");
	assert_int_equal(symlink("hidden", place_path("project/.claude")), 0);
	load();
	assert_int_equal(conf.nrules, 0);
	conf_clear(&conf);
}

/* A failing read is never taken for an absent file. */
static void
test_faults(void **state)
{
	char fault[32];
	int n, status = 0;
	pid_t pid;

	(void)state;
	place_write(USER, "{\"permissions\":{\"deny\":[\"d\"]}}");
	place_write(PROJECT, "{\"permissions\":{\"deny\":[\"d\"]}}");
	for (n = 1; n < 50; n++) {
		snprintf(fault, sizeof(fault), "read:%d", n);
		setenv("SA_FAULT", fault, 1);
		fflush(NULL);
		pid = fork();
		if (!pid) {
			core_init();
			if (conf_load(&conf, &opts, &error) < 0)
				_exit(error.code == ERR_USAGE ? 1 : 2);
			status = conf.nrules == 2 ? 0 : 3;
			conf_clear(&conf);
			_exit(status);
		}
		assert_true(pid > 0);
		waitpid(pid, &status, 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
		if (!WEXITSTATUS(status))
			break;
	}
	unsetenv("SA_FAULT");
	assert_int_equal(n, 3);		/* one read each, then none left */
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(test_nothing), T(test_scalars), T(test_merge),
		T(test_sources), T(test_sources_skip_broken), T(test_broken),
		T(test_strict_types), T(test_loose_types),
		T(test_unknown_is_quiet), T(test_mark_and_size),
		T(test_unreadable), T(test_rules), T(test_flag),
		T(test_flag_pipe),
		T(test_untrusted), T(test_state_file), T(test_env),
		T(test_env_words), T(test_modes), T(test_managed),
		T(test_own_only), T(test_sandbox), T(test_bare),
		T(test_in_home), T(test_homeless), T(test_deleted_start),
		T(test_dirs), T(test_git_root), T(test_worktree),
		T(test_tracked), T(test_tracked_link), T(test_faults),
	};

	core_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
