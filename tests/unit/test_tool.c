/* [tool]: the pool and its filters, input checks, result limits; [plan]. */
#include "internals.h"
#include "place.h"

static bool
never(struct run *r)
{
	(void)r;
	return false;
}

static const struct tool a_read = { .name = "Read", .flags = TOOL_READ_ONLY |
    TOOL_ASYNC_OK | TOOL_BARE, .schema = "{}" };
static const struct tool a_write = { .name = "Write",
    .flags = TOOL_ASYNC_OK, .schema = "{}" };
static const struct tool a_shell = { .name = "Bash", .flags = TOOL_BARE |
    TOOL_ASYNC_OK, .schema = "{}", .usable = never };
static const struct tool a_agent = { .name = "Agent", .schema = "{}" };
static const struct tool a_plan = { .name = "ExitPlanMode",
    .flags = TOOL_NO_CHILD, .schema = "{}" };
static const struct tool a_rare = { .name = "Rare", .flags = TOOL_NAMED,
    .schema = "{}" };
static const struct tool *const all[] = { &a_read, &a_write, &a_shell,
    &a_agent, &a_plan, &a_rare, NULL };

struct scene {
	struct opts opts;
	struct conf conf;
	struct run run;
	struct def def;
	bool has_def, is_child, background;
	struct tool_removed *removed;
	size_t nremoved;
	struct err e;
};

static void
scene_make(struct scene *s, struct place *p)
{
	memset(s, 0, sizeof(*s));
	place_make(p);
}

/* Words to a list. */
static void
words(struct strv *v, const char *text)
{
	struct slice s = str_of(text), one;

	while (text_item(&s, ' ', &one))
		if (one.n)
			str_list_add(v, one.p, one.n);
}

/* The pool's names, blank-separated; or the error. */
static const char *
scene_pool(struct scene *s)
{
	static char text[1024];
	size_t i, at = 0;
	int r;

	s->conf.trust = -1;
	assert_int_equal(conf_load(&s->conf, &s->opts, NULL), 0);
	s->run.conf = &s->conf;
	s->run.perm = perm_new(&s->conf, NULL);
	assert_non_null(s->run.perm);
	s->def.name = "rev";
	r = tool_pool(&s->run, all, s->has_def ? &s->def : NULL, s->is_child,
	    s->background, &s->removed, &s->nremoved, &s->e);
	*text = 0;
	for (i = 0; i < s->run.ntools; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
		    i ? " " : "", s->run.tools[i]->name);
	assert_int_equal(s->run.ntools + s->nremoved, LENGTH(all) - 1);
	assert_null(s->run.tools[s->run.ntools]);
	return r < 0 ? s->e.msg : text;
}

/* The layer that took the tool; "" where it is in the pool. */
static const char *
scene_layer(const struct scene *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->nremoved; i++)
		if (!strcmp(s->removed[i].name, name)) {
			assert_true(*s->removed[i].reason);
			return s->removed[i].layer;
		}
	return "";
}

static void
scene_remove(struct scene *s, struct place *p)
{
	size_t i;

	for (i = 0; i < s->nremoved; i++) {
		free(s->removed[i].name);
		free(s->removed[i].reason);
	}
	free(s->removed);
	free(s->run.tools);
	perm_free(s->run.perm);
	str_list_clear(&s->opts.tools);
	str_list_clear(&s->opts.disallowed);
	str_list_clear(&s->def.tools);
	str_list_clear(&s->def.disallowed);
	conf_clear(&s->conf);
	place_remove(p);
}

static void
test_pool(void **state)
{
	struct scene s;
	struct place p;

	(void)state;
	scene_make(&s, &p);
	assert_string_equal(scene_pool(&s), "Read Write Agent ExitPlanMode");
	assert_string_equal(scene_layer(&s, "Bash"), "machine");
	assert_string_equal(scene_layer(&s, "Rare"), "options");
	assert_ptr_equal(tool_find(&s.run, "Task"), &a_agent);
	assert_ptr_equal(tool_find(&s.run, "Read"), &a_read);
	assert_null(tool_find(&s.run, "read"));
	assert_null(tool_find(&s.run, "Bash"));
	assert_null(tool_find(&s.run, "LS"));
	scene_remove(&s, &p);

	scene_make(&s, &p);
	s.is_child = s.background = true;
	assert_string_equal(scene_pool(&s), "Read Write");
	assert_string_equal(scene_layer(&s, "ExitPlanMode"), "child");
	assert_string_equal(scene_layer(&s, "Agent"), "background");
	scene_remove(&s, &p);
}

static void
test_pool_definition(void **state)
{
	static const struct { const char *tools, *not, *want; } rows[] = {
		{ "Read Write", "", "Read Write" },
		{ "Task MultiEdit LS Read", "", "Read Agent" },
		{ "*", "", "Read Write Agent ExitPlanMode Rare" },
		{ "Read Rare", "", "Read Rare" },
		{ "Read(./src/**) Nope", "", "Read" },
		{ NULL, "Write Task", "Read ExitPlanMode" },
		{ NULL, "Write(./x) Read", "Write Agent ExitPlanMode" },
		{ "Read Write", "Read", "Write" },
		{ "", "", "" },
	};
	struct scene s;
	struct place p;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		scene_make(&s, &p);
		s.has_def = true;
		s.def.has_tools = rows[i].tools != NULL;
		words(&s.def.tools, rows[i].tools ? rows[i].tools : "");
		words(&s.def.disallowed, rows[i].not);
		assert_string_equal(scene_pool(&s), rows[i].want);
		scene_remove(&s, &p);
	}
}

/* A list that leaves nothing is refused, whatever took the tools. */
static void
test_pool_empty(void **state)
{
	static const struct { const char *tools, *not, *want; } rows[] = {
		{ "read bash", "", "unrecognized [read, bash]" },
		{ "Bash", "", "not available here [Bash]" },
		{ "Read", "Read", "not available here [Read]" },
		{ "Bash editFiles", "", "unrecognized [editFiles], not "
		    "available here [Bash]" },
	};
	char want[512];
	struct scene s;
	struct place p;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		scene_make(&s, &p);
		s.has_def = s.def.has_tools = true;
		words(&s.def.tools, rows[i].tools);
		words(&s.def.disallowed, rows[i].not);
		snprintf(want, sizeof(want), "Agent 'rev' would be spawned "
		    "with zero tools \342\200\224 refusing. Its tools list "
		    "resolved to nothing: %s. Fix the agent's tools "
		    "frontmatter or pass a different subagent_type.",
		    rows[i].want);
		assert_string_equal(scene_pool(&s), want);
		assert_int_equal(s.e.code, ERR_USAGE);
		scene_remove(&s, &p);
	}
}

static void
test_pool_options(void **state)
{
	static const struct {
		const char *tools, *deny, *want;
		bool given, bare;
	} rows[] = {
		{ "Read Rare", "", "Read Rare", true, false },
		{ "", "", "", true, false },
		{ "default", "", "Read Write Agent ExitPlanMode", true,
		    false },
		{ "", "Write Agent", "Read ExitPlanMode", false, false },
		{ "", "Write(/x/**)", "Read Write Agent ExitPlanMode", false,
		    false },
		{ "", "", "Read", false, true },
		{ "Write", "", "Write", true, true },
		{ "default", "", "Read Write Agent ExitPlanMode", true, true },
	};
	struct scene s;
	struct place p;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		scene_make(&s, &p);
		s.opts.tools_given = rows[i].given;
		s.opts.bare = rows[i].bare;
		words(&s.opts.tools, rows[i].tools);
		words(&s.opts.disallowed, rows[i].deny);
		assert_string_equal(scene_pool(&s), rows[i].want);
		if (!strcmp(rows[i].deny, "Write Agent"))
			assert_string_equal(scene_layer(&s, "Write"), "rules");
		scene_remove(&s, &p);
	}
	/* what the person at the keyboard took away is no broken agent */
	scene_make(&s, &p);
	s.has_def = s.def.has_tools = s.opts.tools_given = true;
	words(&s.def.tools, "Read");
	assert_string_equal(scene_pool(&s), "");
	scene_remove(&s, &p);
}

static void
test_check(void **state)
{
	static const struct tool t = { .name = "T", .extra = "more odd",
	    .schema = "{\"type\":\"object\",\"properties\":{"
	    "\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"number\"},"
	    "\"i\":{\"type\":\"integer\",\"minimum\":0},"
	    "\"b\":{\"type\":\"boolean\"},"
	    "\"e\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]},"
	    "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
	    "\"properties\":{\"k\":{\"type\":\"string\"}},"
	    "\"required\":[\"k\"],\"additionalProperties\":false}},"
	    "\"o\":{\"type\":\"object\"}},"
	    "\"required\":[\"s\"],\"additionalProperties\":false}" };
	static const struct { const char *in, *after, *problem; } rows[] = {
		{ "{\"s\":\"x\"}", "{\"s\":\"x\"}", NULL },
		{ "{\"s\":\"\",\"n\":\"5\",\"b\":\"true\"}",
		    "{\"s\":\"\",\"n\":5,\"b\":true}", NULL },
		{ "{\"s\":\"\",\"n\":\" -2.5 \",\"b\":\"False\"}",
		    "{\"s\":\"\",\"n\":-2.5,\"b\":false}", NULL },
		{ "{\"s\":\"\",\"i\":\"3\"}", "{\"s\":\"\",\"i\":3}", NULL },
		{ "{\"s\":\"5\"}", "{\"s\":\"5\"}", NULL },
		{ "{\"s\":\"\",\"n\":null}", "{\"s\":\"\"}", NULL },
		{ "{\"s\":\"\",\"l\":\"[{\\\"k\\\":\\\"v\\\"}]\"}",
		    "{\"s\":\"\",\"l\":[{\"k\":\"v\"}]}", NULL },
		{ "{\"s\":\"\",\"o\":\"{}\"}", "{\"s\":\"\",\"o\":{}}", NULL },
		{ "{\"s\":\"\",\"more\":1,\"odd\":[2]}",
		    "{\"s\":\"\",\"more\":1,\"odd\":[2]}", NULL },
		{ "{\"s\":\"\",\"e\":\"y\",\"l\":[]}",
		    "{\"s\":\"\",\"e\":\"y\",\"l\":[]}", NULL },
		{ "{}", NULL, "The required parameter `s` is missing" },
		{ "{\"s\":null}", NULL, "The required parameter `s` is "
		    "missing" },
		{ "{\"s\":5}", NULL, "The parameter `s` type is expected as "
		    "`string` but provided as `number`" },
		{ "{\"s\":\"\",\"n\":\"abc\"}", NULL, "The parameter `n` type "
		    "is expected as `number` but provided as `string`" },
		{ "{\"s\":\"\",\"n\":\"5 6\"}", NULL, "The parameter `n` type "
		    "is expected as `number` but provided as `string`" },
		{ "{\"s\":\"\",\"i\":1.5}", NULL, "The parameter `i` type is "
		    "expected as `integer` but provided as `number`" },
		{ "{\"s\":\"\",\"i\":-1}", NULL, "The parameter `i` must be "
		    "at least 0" },
		{ "{\"s\":\"\",\"b\":\"yes\"}", NULL, "The parameter `b` type "
		    "is expected as `boolean` but provided as `string`" },
		{ "{\"s\":\"\",\"e\":\"z\"}", NULL, "The parameter `e` must "
		    "be one of `x`, `y`" },
		{ "{\"s\":\"\",\"zz\":1}", NULL, "An unexpected parameter "
		    "`zz` was provided" },
		{ "{\"s\":\"\",\"s\":\"b\"}", NULL, "The parameter `s` was "
		    "provided twice" },
		{ "{\"s\":\"\",\"l\":[{\"k\":\"v\"},{}]}", NULL, "The "
		    "required parameter `l[1].k` is missing" },
		{ "{\"s\":\"\",\"l\":[{\"k\":1}]}", NULL, "The parameter "
		    "`l[0].k` type is expected as `string` but provided as "
		    "`number`" },
		{ "{\"s\":\"\",\"l\":[{\"k\":\"\",\"more\":1}]}", NULL, "An "
		    "unexpected parameter `l[0].more` was provided" },
		{ "{\"s\":\"\",\"l\":[3]}", NULL, "The parameter `l[0]` type "
		    "is expected as `object` but provided as `number`" },
		{ "[]", NULL, "The input must be an object, not a list" },
	};
	struct str problem;
	cJSON *in;
	char *after;
	size_t i;

	(void)state;
	str_init(&problem, 0);
	for (i = 0; i < LENGTH(rows); i++) {
		str_reset(&problem);
		in = cJSON_Parse(rows[i].in);
		assert_non_null(in);
		assert_int_equal(tool_check(&t, in, &problem),
		    !rows[i].problem);
		if (rows[i].problem) {
			assert_true(str_starts(problem.p,
			    "InputValidationError: T failed due to the "
			    "following issue"));
			if (!strstr(problem.p, rows[i].problem))
				fail_msg("%s: %s", rows[i].in, problem.p);
		} else {
			after = cJSON_PrintUnformatted(in);
			assert_string_equal(after, rows[i].after);
			free(after);
			assert_string_equal(problem.p, "");
		}
		cJSON_Delete(in);
	}
	/* very many faults: a few of them are told */
	str_reset(&problem);
	in = cJSON_CreateObject();
	for (i = 0; i < 100000; i++) {
		cJSON *v = cJSON_CreateTrue();

		v->string = core_strdup("x");
		cJSON_AddItemToArray(in, v);
	}
	assert_false(tool_check(&t, in, &problem));
	assert_true(problem.len < 2000);
	assert_non_null(strstr(problem.p, "issues:"));
	cJSON_Delete(in);
	str_clear(&problem);
}

static void
test_limit(void **state)
{
	struct tool_out out;
	size_t i;

	(void)state;
	tool_out_init(&out);
	tool_limit(&out, 100);
	assert_string_equal(out.text.p, "(no output)");
	str_reset(&out.text);
	str_adds(&out.text, " \n\t");
	tool_limit(&out, 100);
	assert_string_equal(out.text.p, "(no output)");
	str_reset(&out.text);
	str_adds(&out.text, "caf\351");
	tool_limit(&out, 100);
	assert_string_equal(out.text.p, "caf\357\277\275");
	str_reset(&out.text);
	for (i = 0; i < 1000; i++)
		str_adds(&out.text, "\303\251");
	str_adds(&out.text, "end");
	tool_limit(&out, 101);
	assert_true(text_utf8_is(str_slice(&out.text)));
	assert_true(out.text.len < 200);
	assert_true(str_starts(out.text.p, "\303\251\303\251"));
	assert_true(str_ends(out.text.p, "\303\251end"));
	assert_non_null(strstr(out.text.p, "[1904 bytes left out here]"));
	/* blocks stand for themselves */
	str_reset(&out.text);
	str_adds(&out.blocks, "{}");
	tool_limit(&out, 100);
	assert_string_equal(out.text.p, "");
	tool_refuse(&out, "no: %s", "caf\351");
	assert_string_equal(out.text.p,
	    "<tool_use_error>no: caf\357\277\275</tool_use_error>");
	assert_true(out.is_error);
	assert_int_equal(out.blocks.len, 0);
	tool_out_clear(&out);
}

static void
test_todo(void **state)
{
	struct run r = { 0 };
	struct tool_out out;
	cJSON *in;

	(void)state;
	tool_out_init(&out);
	in = cJSON_Parse("{\"todos\":[{\"content\":\"a\",\"status\":"
	    "\"completed\",\"activeForm\":\"A\"},{\"content\":\"b\","
	    "\"status\":\"pending\",\"activeForm\":\"B\"}]}");
	plan_run(&r, in, &out);
	assert_false(out.is_error);
	assert_true(str_starts(out.text.p,
	    "Todos have been modified successfully."));
	assert_int_equal(cJSON_GetArraySize(r.todos), 2);
	cJSON_Delete(in);
	in = cJSON_Parse("{\"todos\":[{\"content\":\"a\",\"status\":"
	    "\"completed\",\"activeForm\":\"A\"}]}");
	plan_run(&r, in, &out);
	assert_null(r.todos);
	cJSON_Delete(in);
	tool_out_clear(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_pool_definition),
		cmocka_unit_test(test_pool_empty),
		cmocka_unit_test(test_pool_options),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_todo),
	};

	return cmocka_run_group_tests_name("tool", tests, NULL, NULL);
}
