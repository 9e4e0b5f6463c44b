/* Models: names, prices, limits, what settings permit. */
#include "internals.h"
#include "place.h"

static struct place place;
static struct conf conf;
static struct opts opts;
static struct err error;
static struct str id;

static int
setup(void **state)
{
	(void)state;
	place_make(&place);
	opts = (struct opts){ 0 };
	error = (struct err){ 0 };
	str_init(&id, 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	conf_clear(&conf);
	str_clear(&id);
	place_remove(&place);
	return 0;
}

static void
settings(const char *text)
{
	conf_clear(&conf);
	opts.settings = text;
	place_catch(&place);
	assert_int_equal(conf_load(&conf, &opts, &error), 0);
	place_caught(&place);
}

/* What a name becomes; "" where it is refused. */
static const char *
resolved(const char *asked, const char *parent)
{
	int r;

	err_clear(&error);
	place_catch(&place);
	r = model_resolve(&conf, asked, parent, &id, &error);
	place_caught(&place);
	if (r < 0) {
		assert_int_equal(error.code, ERR_USAGE);
		return "";
	}
	return id.p;
}

static const char *
mainly(const char *def)
{
	int r;

	err_clear(&error);
	place_catch(&place);
	r = model_main(&conf, def, &id, &error);
	place_caught(&place);
	return r < 0 ? "" : id.p;
}

static void
test_find(void **state)
{
	static const char *const same[] = { "claude-haiku-4-5",
	    "claude-haiku-4-5-20251001", "claude-haiku-4-5[1m]",
	    "claude-haiku-4-5-20251001[1M]" };
	static const char *const none[] = { "", "haiku", "claude-haiku",
	    "claude-haiku-4", "claude-haiku-4-55", "-20251001",
	    "claude-haiku-4-5-2025100", "claude-haiku-4-5-10251001",
	    "xclaude-haiku-4-5", "gpt-5", "[1m]", "20251001" };
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(same); i++) {
		assert_non_null(model_find(same[i]));
		assert_string_equal(model_find(same[i])->id,
		    "claude-haiku-4-5");
	}
	for (i = 0; i < LENGTH(none); i++)
		assert_null(model_find(none[i]));
	assert_int_equal(model_window("claude-opus-5-5"), 1000000);
	assert_int_equal(model_window("claude-opus-4-5-20251101"), 200000);
	assert_int_equal(model_window("llama"), 200000);
}

static void
test_max_tokens(void **state)
{
	(void)state;
	assert_int_equal(model_max_tokens("claude-opus-5-5"), 32000);
	assert_int_equal(model_max_tokens("llama"), 32000);
	setenv("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "100000", 1);
	assert_int_equal(model_max_tokens("claude-opus-5-5"), 100000);
	assert_int_equal(model_max_tokens("claude-haiku-4-5"), 64000);
	assert_int_equal(model_max_tokens("llama"), 100000);
	setenv("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "", 1);
	assert_int_equal(model_max_tokens("llama"), 32000);
	unsetenv("CLAUDE_CODE_MAX_OUTPUT_TOKENS");
}

static void
test_aliases(void **state)
{
	static const struct {
		const char *asked;
		const char *parent;
		const char *id;
	} cases[] = {
		{ "sonnet", NULL, "claude-sonnet-5-5" },
		{ "Opus", NULL, "claude-opus-5-5" },
		{ "haiku", NULL, "claude-haiku-5-5" },
		{ "fable", NULL, "claude-fable-5-2" },
		{ "best", NULL, "claude-fable-5-2" },
		{ "opusplan", NULL, "claude-sonnet-5-5" },
		{ "opus[1m]", NULL, "claude-opus-5-5" },
		{ "claude-opus-5[1m]", NULL, "claude-opus-5" },
		{ "default", NULL, "claude-sonnet-5-5" },
		{ "default", "claude-opus-5", "claude-sonnet-5-5" },
		{ NULL, NULL, "claude-sonnet-5-5" },
		{ "", NULL, "claude-sonnet-5-5" },
		{ "inherit", NULL, "claude-sonnet-5-5" },
		{ "inherit", "my-gateway/opus", "my-gateway/opus" },
		{ "Inherit", "x", "x" },
		{ NULL, "claude-opus-4-6", "claude-opus-4-6" },
		/* the parent's own id where the family is the same */
		{ "opus", "claude-opus-4-6", "claude-opus-4-6" },
		{ "opus", "us.anthropic.claude-opus-5-v1:0",
		    "us.anthropic.claude-opus-5-v1:0" },
		{ "haiku", "claude-opus-4-6", "claude-haiku-5-5" },
		/* names that are no alias go as they are */
		{ "claude-3-opus", NULL, "claude-3-opus" },
		{ "gpt-5.4", "claude-opus-5", "gpt-5.4" },
		{ "anthropic/claude-sonnet-5", NULL,
		    "anthropic/claude-sonnet-5" },
		{ "sonnet-5", NULL, "sonnet-5" },
		{ "arn:aws:bedrock:eu-west-1:1:inference-profile/a.b-c", NULL,
		    "arn:aws:bedrock:eu-west-1:1:inference-profile/a.b-c" },
		{ " opus-x ", NULL, "opus-x" },
		{ "Claude Sonnet 4.5 (copilot)", NULL, "" },
		{ "caf\303\251", NULL, "" }, { "a\"b", NULL, "" },
		{ "a\nb", NULL, "" }, { "[1m]x", NULL, "[1m]x" },
		{ "   ", NULL, "" },
	};
	char longer[400];
	size_t i;

	(void)state;
	settings(NULL);
	for (i = 0; i < LENGTH(cases); i++) {
		assert_string_equal(resolved(cases[i].asked,
		    cases[i].parent), cases[i].id);
		assert_string_equal(place.err, "");
	}
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	assert_string_equal(resolved(longer, NULL), "");
	longer[256] = 0;
	assert_string_equal(resolved(longer, NULL), longer);
}

static void
test_environment(void **state)
{
	(void)state;
	settings(NULL);
	setenv("ANTHROPIC_DEFAULT_OPUS_MODEL", "my-opus[1m]", 1);
	assert_string_equal(resolved("opus", NULL), "my-opus");
	assert_string_equal(resolved("opus", "claude-haiku-5-5"), "my-opus");
	assert_string_equal(resolved("opus", "claude-opus-5"),
	    "claude-opus-5");
	setenv("ANTHROPIC_DEFAULT_OPUS_MODEL", "", 1);
	assert_string_equal(resolved("opus", NULL), "claude-opus-5-5");
	unsetenv("ANTHROPIC_DEFAULT_OPUS_MODEL");
	setenv("ANTHROPIC_DEFAULT_MODEL", "haiku", 1);
	assert_string_equal(resolved(NULL, NULL), "claude-haiku-5-5");
	unsetenv("ANTHROPIC_DEFAULT_MODEL");
}

/* --model, the agent's, ANTHROPIC_MODEL, settings, the default. */
static void
test_main_order(void **state)
{
	(void)state;
	settings(NULL);
	assert_string_equal(mainly(NULL), "claude-sonnet-5-5");
	setenv("ANTHROPIC_DEFAULT_MODEL", "d", 1);
	assert_string_equal(mainly(NULL), "d");
	settings("{\"model\":\"s\"}");
	assert_string_equal(mainly(NULL), "s");
	setenv("ANTHROPIC_MODEL", "e", 1);
	assert_string_equal(mainly(NULL), "e");
	assert_string_equal(mainly("inherit"), "e");
	assert_string_equal(mainly(""), "e");
	assert_string_equal(mainly("opus"), "claude-opus-5-5");
	opts.model = "";
	assert_string_equal(mainly(NULL), "e");
	opts.model = "o";
	assert_string_equal(mainly("opus"), "o");
	unsetenv("ANTHROPIC_MODEL");
	unsetenv("ANTHROPIC_DEFAULT_MODEL");
}

static void
test_opusplan(void **state)
{
	(void)state;
	settings("{\"permissions\":{\"defaultMode\":\"plan\"}}");
	assert_string_equal(resolved("opusplan", NULL), "claude-opus-5-5");
	opts.permission_mode = "default";
	assert_string_equal(resolved("OpusPlan", NULL), "claude-sonnet-5-5");
	settings(NULL);
	opts.permission_mode = "plan";
	assert_string_equal(resolved("opusplan", NULL), "claude-opus-5-5");
	opts.skip_permissions = true;
	assert_string_equal(resolved("opusplan", NULL), "claude-sonnet-5-5");
}

static void
test_matches(void **state)
{
	static const struct {
		const char *entry;
		const char *id;
		bool is;
	} cases[] = {
		{ "opus", "claude-opus-4-6", true },
		{ "opus", "us.anthropic.claude-opus-5-v1:0", true },
		{ "opus", "claude-sonnet-5", false },
		{ "claude-opus-5", "claude-opus-5", true },
		/* an id is that model, not its successors */
		{ "claude-opus-5", "claude-opus-5-5", false },
		{ "opus-5", "claude-opus-5-5", false },
		{ "opus-5", "claude-opus-5", true },
		{ "claude-haiku-4-5", "claude-haiku-4-5-20251001", true },
		{ "claude-haiku-4-5-20251001", "claude-haiku-4-5", true },
		/* the start of an id */
		{ "claude-opus-4", "claude-opus-4-8", true },
		{ "opus-4", "claude-opus-4-8", true },
		{ "claude-op", "claude-opus-4-8", false },
		{ "", "claude-opus-4-8", false },
		{ "llama", "llama", true }, { "llama", "llama-3", true },
		{ "llama", "llama3", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++)
		if (model_matches(cases[i].entry, cases[i].id) !=
		    cases[i].is)
			fail_msg("%s, %s", cases[i].entry, cases[i].id);
}

static void
test_permitted(void **state)
{
	(void)state;
	settings("{\"availableModels\":[\"opus-4-8\",\"haiku\"]}");
	assert_string_equal(resolved("haiku", NULL), "claude-haiku-5-5");
	assert_string_equal(place.err, "");
	/* an alias: the newest permitted of the family */
	assert_string_equal(resolved("opus", NULL), "claude-opus-4-8");
	assert_non_null(strstr(place.err, "'opus' is not permitted by "
	    "--settings; 'claude-opus-4-8' is used"));
	/* an id: the parent's */
	assert_string_equal(resolved("claude-fable-5", "claude-haiku-4-5"),
	    "claude-haiku-4-5");
	/* a parent that may not be used itself is no way out */
	assert_string_equal(resolved("claude-fable-5", "claude-opus-5"),
	    "claude-opus-4-8");
	/* nobody to inherit from: something permitted, and said so */
	assert_string_equal(mainly(NULL), "claude-opus-4-8");
	assert_int_equal(place_count(place.err, "warning"), 1);
	settings("{\"availableModels\":[]}");
	assert_string_equal(mainly(NULL), "claude-sonnet-5-5");
	assert_string_equal(resolved("opus", NULL), "claude-sonnet-5-5");
	settings("{\"deniedModels\":[\"claude-opus-5-5\"]}");
	assert_string_equal(resolved("opus", NULL), "claude-opus-5");
	settings("{\"availableModels\":[\"llama\"]}");
	assert_string_equal(resolved("llama", NULL), "llama");
	assert_string_equal(resolved("opus", NULL), "");
	settings("{\"deniedModels\":[\"sonnet\",\"opus\",\"haiku\",\"fable\","
	    "\"mythos\"]}");
	assert_string_equal(mainly(NULL), "");
}

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-12)

static double
cost(const char *model, struct usage u)
{
	double usd = -1;

	assert_true(model_cost(model, &u, &usd));
	return usd;
}

static void
test_cost(void **state)
{
	double usd = -1;

	(void)state;
	NEAR(cost("claude-opus-5-5", (struct usage){ 0 }), 0);
	NEAR(cost("claude-opus-5-5", (struct usage){ .input = 1000000 }), 4);
	NEAR(cost("claude-opus-5-5", (struct usage){ .output = 1000 }), 0.02);
	NEAR(cost("claude-opus-5-5", (struct usage){ .cache_read = 1000000 }),
	    0.2);
	/* writes: split by lifetime, or all of them short */
	NEAR(cost("claude-opus-5-5", (struct usage){ .cache_write = 1000 }),
	    0.005);
	NEAR(cost("claude-opus-5-5", (struct usage){ .cache_write = 1000,
	    .cache_write_1h = 1000 }), 0.008);
	NEAR(cost("claude-opus-5-5", (struct usage){ .cache_write = 3000,
	    .cache_write_5m = 1000, .cache_write_1h = 2000 }), 0.021);
	NEAR(cost("claude-opus-5-5", (struct usage){ .cache_write_5m = 1000 }),
	    0.005);
	NEAR(cost("claude-sonnet-4-5-20250929", (struct usage){ .input = 100,
	    .output = 10, .web_search = 3 }), 0.0003 + 0.00015 + 0.03);
	/* thinking is part of output already */
	NEAR(cost("claude-opus-5-5", (struct usage){ .output = 1000,
	    .thinking = 900 }), 0.02);
	assert_false(model_cost("llama", &(struct usage){ .input = 9 },
	    &usd));
	assert_true(usd == 0);
}

/* Above 100,000 tokens of prompt all of a request costs five times more. */
static void
test_tier(void **state)
{
	const char *h = "claude-haiku-5-5";

	(void)state;
	NEAR(cost(h, (struct usage){ .input = 100000 }), 0.01);
	NEAR(cost(h, (struct usage){ .input = 100001 }), 0.0500005);
	NEAR(cost(h, (struct usage){ .input = 1, .cache_read = 100000,
	    .output = 1000 }), (0.5 + 0.05 * 100000 + 2500) / 1e6);
	NEAR(cost(h, (struct usage){ .cache_write = 100001 }),
	    0.625 * 100001 / 1e6);
	NEAR(cost(h, (struct usage){ .output = 200000 }), 0.1);
	NEAR(cost("claude-haiku-4-5", (struct usage){ .input = 200000 }),
	    0.2);
}

static void
test_effort(void **state)
{
	static const struct {
		const char *id;
		const char *asked;
		const char *sent;
	} cases[] = {
		{ "claude-opus-5-5", "xhigh", "xhigh" },
		{ "claude-opus-5-5", "MAX", "max" },
		{ "claude-opus-5-5", NULL, NULL },
		{ "claude-opus-5-5", "auto", NULL },
		{ "claude-opus-5-5", "8h", NULL },
		{ "claude-opus-4-6", "xhigh", "high" },
		{ "claude-opus-4-6", "max", "max" },
		{ "claude-opus-4-5", "max", "high" },
		{ "claude-opus-4-5", "low", "low" },
		{ "claude-haiku-4-5", "low", NULL },
		{ "claude-sonnet-4-5", "max", NULL },
		{ "llama", "xhigh", "xhigh" },
	};
	const char *sent;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		sent = model_effort(cases[i].id, cases[i].asked);
		if (!cases[i].sent)
			assert_null(sent);
		else
			assert_string_equal(sent, cases[i].sent);
	}
}

static void
test_effort_order(void **state)
{
	(void)state;
	settings("{\"effortLevel\":\"low\"}");
	place_catch(&place);
	assert_string_equal(model_effort_asked(&conf, NULL, NULL), "low");
	opts.effort = "medium";
	assert_string_equal(model_effort_asked(&conf, NULL, NULL), "medium");
	assert_string_equal(model_effort_asked(&conf, NULL, "high"), "high");
	assert_string_equal(model_effort_asked(&conf, "max", "high"), "max");
	setenv("CLAUDE_CODE_EFFORT_LEVEL", "auto", 1);
	assert_string_equal(model_effort_asked(&conf, "max", NULL), "auto");
	unsetenv("CLAUDE_CODE_EFFORT_LEVEL");
	assert_string_equal(place_caught(&place), "");
	opts.effort = "hihg";
	place_catch(&place);
	assert_string_equal(model_effort_asked(&conf, NULL, NULL), "low");
	place_caught(&place);
	assert_non_null(strstr(place.err, "--effort: 'hihg' is not one of"));
	settings(NULL);
	opts.effort = NULL;
	assert_null(model_effort_asked(&conf, NULL, NULL));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(test_find), T(test_max_tokens), T(test_aliases),
		T(test_environment), T(test_main_order), T(test_opusplan),
		T(test_matches), T(test_permitted), T(test_cost),
		T(test_tier), T(test_effort), T(test_effort_order),
	};

	core_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
