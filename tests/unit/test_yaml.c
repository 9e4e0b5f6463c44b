/* Frontmatter: strict YAML, the two re-reads, and the file around it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

static const struct yaml_field fields[] = {
	{ "name", YAML_NEED },
	{ "description", YAML_TEXT | YAML_NEED },
	{ "tools", YAML_GUARD },
	{ "hooks", YAML_GUARD },
	{ "model", 0 },
	{ NULL, 0 }
};

/* What a strict read gives as JSON; "error: LINE: ..." where it fails. */
static const char *
strict(const char *text)
{
	static char out[4096];
	struct yaml y = { 0 };
	struct err e = { 0 };
	char *s;

	if (yaml_read(str_of(text), 1, &y, &e) < 0) {
		snprintf(out, sizeof(out), "error: %d: %s", y.line, e.msg);
	} else {
		s = cJSON_PrintUnformatted(y.root);
		snprintf(out, sizeof(out), "%s", s);
		free(s);
	}
	yaml_clear(&y);
	return out;
}

static void
test_strict(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "{}" },
		{ "# only a comment\n", "{}" },
		{ "a: b\n", "{\"a\":\"b\"}" },
		{ "a: b", "{\"a\":\"b\"}" },
		{ "a:   b  \n\nc: \"d \"\n", "{\"a\":\"b\",\"c\":\"d \"}" },
		{ "a: it's, (well) \"so\" [x] {y} & * ! | > ' % @ `\n",
		    "{\"a\":\"it's, (well) \\\"so\\\" [x] {y} & * ! | > ' % @ "
		    "`\"}" },
		{ "a: https://x:80/#y\n", "{\"a\":\"https://x:80/#y\"}" },
		{ "a:\n- b\n-   c\n", "{\"a\":[\"b\",\"c\"]}" },
		{ "a: [b, \"c\",\n  d,]\n", "{\"a\":[\"b\",\"c\",\"d\"]}" },
		{ "a: {b: {c: [d]}}\n", "{\"a\":{\"b\":{\"c\":[\"d\"]}}}" },
		{ "a: |\n  b: c # d\n  e\n", "{\"a\":\"b: c # d\\ne\\n\"}" },
		{ "a: >-\n  b\n  c\n\n  d\n", "{\"a\":\"b c\\nd\"}" },
		{ "a: b\n  c\n", "{\"a\":\"b c\"}" },
		{ "a: 'b''c'\n", "{\"a\":\"b'c\"}" },
		{ "a: \"\\u00e9\\x41\\n\"\n", "{\"a\":\"\303\251A\\n\"}" },
		{ "a: b # c\n", "{\"a\":\"b\"}" },
		{ "'a': b\n", "{\"a\":\"b\"}" },
		{ "<<: {a: b}\n", "{\"<<\":{\"a\":\"b\"}}" },
		{ "a: b\na: c\n", "{\"a\":\"c\"}" },
		{ "a: {b: 1, b: 2}\n", "{\"a\":{\"b\":2}}" },
		{ "a: b\n...\n", "{\"a\":\"b\"}" },
		{ "b\n", "error: 1: not a map of keys and values" },
		{ "- b\n", "error: 1: not a map of keys and values" },
		{ "a: b: c\n", "error: 1: mapping values are not allowed in "
		    "this context" },
		{ "a: &b c\n", "error: 1: anchors and tags are not taken" },
		{ "a: &b [c]\n", "error: 1: anchors and tags are not taken" },
		{ "a: !!str c\n", "error: 1: anchors and tags are not taken" },
		{ "a: !!map {}\n", "error: 1: anchors and tags are not taken" },
		{ "x: y\na: *b\n", "error: 2: aliases are not taken" },
		{ "a: b\n--- c\n", "error: 2: more than one document" },
		{ "%YAML 1.1\n--- a\n", "error: 1: directives are not taken" },
		{ "? [a]\n: b\n", "error: 1: a key must be a text" },
		{ "a: \"b\\0c\"\n", "error: 1: a zero byte" },
		{ "x: y\na: \"b\nc: d\"\n", "error: 2: quotes or brackets that "
		    "go on at the start of a line" },
		{ "a: {b: c,\nd: e}\n", "error: 2: quotes or brackets that go "
		    "on at the start of a line" },
		{ "a:\n\t- b\n", "error: 2: found character that cannot start "
		    "any token" },
		{ "  a: b\nc: d\n", "error: 2: did not find expected "
		    "<document start>" },
		{ "x: y\na: \177\n", "error: 2: control characters are not "
		    "allowed" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++)
		if (strcmp(strict(cases[i].text), cases[i].want))
			fail_msg("%s: %s, not %s", cases[i].text,
			    strict(cases[i].text), cases[i].want);
}

/* The type is of plain scalars alone; the characters stay. */
static void
test_types(void **state)
{
	static const struct {
		const char *text;
		int type;
		const char *chars;
	} cases[] = {
		{ "42", cJSON_Number, "42" },
		{ "1.10", cJSON_Number, "1.10" },
		{ "-1e3", cJSON_Number, "-1e3" },
		{ "+.5", cJSON_Number, "+.5" },
		{ "1.", cJSON_Number, "1." },
		{ "007", cJSON_Number, "007" },
		{ "0x1f", cJSON_String, "0x1f" },
		{ "1e", cJSON_String, "1e" },
		{ ".", cJSON_String, "." },
		{ "-", cJSON_String, NULL },
		{ "1e999", cJSON_String, "1e999" },
		{ ".inf", cJSON_String, ".inf" },
		{ "9007199254740993", cJSON_Number, "9007199254740993" },
		{ "12345678901234567890", cJSON_String,
		    "12345678901234567890" },
		{ "8h", cJSON_String, "8h" },
		{ "7:30", cJSON_String, "7:30" },
		{ "true", cJSON_True, "true" },
		{ "False", cJSON_False, "False" },
		{ "tRue", cJSON_String, "tRue" },
		{ "yes", cJSON_String, "yes" },
		{ "null", cJSON_NULL, "null" },
		{ "~", cJSON_NULL, "~" },
		{ "", cJSON_NULL, "" },
		{ "\"42\"", cJSON_String, "42" },
		{ "'true'", cJSON_String, "true" },
		{ "\"\"", cJSON_String, "" },
	};
	struct yaml y = { 0 };
	const cJSON *v;
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(cases); i++) {
		if (!cases[i].chars)
			continue;
		str_reset(&s);
		str_addf(&s, "k: %s\n", cases[i].text);
		if (yaml_read(str_slice(&s), 1, &y, NULL) < 0)
			fail_msg("%s", s.p);
		v = json_get(y.root, "k");
		if ((v->type & 0xff) != cases[i].type)
			fail_msg("%s: type %d", s.p, v->type);
		assert_string_equal(v->valuestring, cases[i].chars);
	}
	yaml_clear(&y);
	str_clear(&s);
}

static void
test_limits(void **state)
{
	struct yaml y = { 0 };
	struct err e = { 0 };
	struct str s;
	int i;

	(void)state;
	str_init(&s, 0);
	str_adds(&s, "a: ");
	for (i = 0; i < 100000; i++)
		str_addc(&s, '[');
	str_addc(&s, '\n');
	assert_int_equal(yaml_read(str_slice(&s), 1, &y, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	str_cut(&s, 60000);
	err_clear(&e);
	assert_int_equal(yaml_read(str_slice(&s), 1, &y, &e), -1);
	assert_string_equal(e.msg, "nested too deeply");
	/* Brackets in quotes hide the nesting; its depth is still limited. */
	str_reset(&s);
	str_adds(&s, "a: ");
	for (i = 0; i < 9000; i++)
		str_adds(&s, "[\"]\",");
	err_clear(&e);
	assert_int_equal(yaml_read(str_slice(&s), 1, &y, &e), -1);
	assert_string_equal(e.msg, "nested too deeply");
	/* Blocks, too. */
	str_reset(&s);
	str_adds(&s, "a:\n  ");
	for (i = 0; i < 30000; i++)
		str_adds(&s, "- ");
	err_clear(&e);
	assert_int_equal(yaml_read(str_slice(&s), 1, &y, &e), -1);
	assert_string_equal(e.msg, "nested too deeply");
	str_reset(&s);
	for (i = 0; i < 5000; i++)
		str_addf(&s, "k%d:\n", i);
	err_clear(&e);
	assert_int_equal(yaml_read(str_slice(&s), 1, &y, &e), -1);
	assert_string_equal(e.msg, "too many keys");
	yaml_clear(&y);
	str_clear(&s);
}

static void
test_lines_twice_and_cut(void **state)
{
	struct yaml y = { 0 };
	const char *text = "a: b # x\n\nc:\n  - d # y\ne: \"f\" # z\na: g\n"
	    "h: i#j\n\303\251: k # x\n";

	(void)state;
	assert_int_equal(yaml_read(str_of(text), 10, &y, NULL), 0);
	assert_int_equal(yaml_line(&y, "c"), 12);
	assert_int_equal(yaml_line(&y, "e"), 14);
	assert_int_equal(yaml_line(&y, "a"), 15);
	assert_int_equal(yaml_line(&y, "none"), 0);
	assert_int_equal(y.twice.n, 1);
	assert_string_equal(y.twice.v[0], "a");
	assert_int_equal(y.cut.n, 2);
	assert_string_equal(y.cut.v[0], "a");
	assert_string_equal(y.cut.v[1], "\303\251");
	yaml_clear(&y);
}

/* A header as JSON, then its line and loose keys; "error: LINE: ...". */
static const char *
header(const char *text)
{
	static char out[4096];
	struct yaml y = { 0 };
	struct err e = { 0 };
	size_t i, n;
	char *s;

	if (yaml_header(str_of(text), 2, fields, &y, &e) < 0) {
		snprintf(out, sizeof(out), "error: %d: %s", y.line, e.msg);
		yaml_clear(&y);
		return out;
	}
	s = cJSON_PrintUnformatted(y.root);
	n = (size_t)snprintf(out, sizeof(out), "%s", s);
	if (y.lenient)
		n += (size_t)snprintf(out + n, sizeof(out) - n, " %d",
		    y.line);
	for (i = 0; i < y.loose.n; i++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, " %s",
		    y.loose.v[i]);
	free(s);
	yaml_clear(&y);
	return out;
}

#define ND "name: n\ndescription: "
#define J "{\"name\":\"n\",\"description\":"

static void
test_lenient(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ ND "d\n", J "\"d\"}" },
		/* Single lines as text. */
		{ ND "a: b\ntools: [x]\n",
		    J "\"a: b\",\"tools\":[\"x\"]} 3 description" },
		{ ND "it's \"so\": a\n", J "\"it's \\\"so\\\": a\"} 3 "
		    "description" },
		{ ND "d\ntools: *\n", J "\"d\",\"tools\":\"*\"} 4 tools" },
		{ ND "d\ntools: * # all\n",
		    J "\"d\",\"tools\":\"*\"} 4 tools" },
		{ ND "d\ntools: [a, b\nmodel: 'x' # y\n", J "\"d\",\"tools\":"
		    "\"[a, b\",\"model\":\"x\"} 4 tools" },
		{ ND "|x: y\ntools: >-\n  a\n",
		    J "\"|x: y\",\"tools\":\"a\"} 3 description" },
		{ ND "&a b\nmore: @c\n", J "\"&a b\",\"more\":\"@c\"} 3 "
		    "description more" },
		/* Field by field. */
		{ ND "a: b\n c: d\ntools:\n  - x\nmodel: \"y\"\n",
		    J "\"a: b\\nc: d\",\"tools\":[\"x\"],\"model\":\"y\"} 3 "
		    "description" },
		{ ND "a\n<b>\nuser: \"x\" y\n\ntools: z\n",
		    J "\"a\\n<b>\\nuser: \\\"x\\\" y\",\"tools\":\"z\"} 4 "
		    "description" },
		{ "name: n\nmore: a: b\n  c\ndescription: d\n",
		    "{\"name\":\"n\",\"more\":null,\"description\":\"d\"} 3 "
		    "more" },
		{ ND "d\ntools:x, y\n", J "\"d\",\"tools\":\"x, y\"} 4 tools" },
		{ ND "d\n\"tools\": [a\nb: c\nmodel: m\n", J "\"d\",\"tools\":"
		    "\"[a\",\"b\":\"c\",\"model\":\"m\"} 4 tools" },
		{ "# c\nname: a\tb: c\n d\n# e\ndescription: f\n",
		    "{\"name\":\"a\\tb: c d\",\"description\":\"f\"} 3 name" },
		{ "no keys at all\n", "{} 2" },
		{ "[\n", "{} 2" },
		/* Never lost. */
		{ ND "a: b\n c\n tools: x\n", "error: 5: 'tools' stands in "
		    "text of a header that is not valid YAML; put it at the "
		    "start of a line" },
		{ ND "a: b\n c\n? tools\n: x\n", "error: 5: 'tools' stands in "
		    "text of a header that is not valid YAML; put it at the "
		    "start of a line" },
		{ ND "a: b\n c\n hooks: y\n tools: x\ntools: z\n", "error: 5: "
		    "'hooks' stands in text of a header that is not valid "
		    "YAML; put it at the start of a line" },
		{ ND "a: b\n c\ntools: x\ntools: y\n", "error: 6: 'tools' is "
		    "there twice, in a header that is not valid YAML" },
		{ ND "a: b\n c\n tools: x\ntools: z\n", J "\"a: b\\nc\\ntools: "
		    "x\",\"tools\":\"z\"} 3 description" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++)
		if (strcmp(header(cases[i].text), cases[i].want))
			fail_msg("%s: %s, not %s", cases[i].text,
			    header(cases[i].text), cases[i].want);
}

/* Cutting any header anywhere neither crashes nor widens. */
static void
test_cut_anywhere(void **state)
{
	static const char text[] = ND "\"a: b\" c\ntools:\n  - x\n  - 'y'\n"
	    "hooks: {a: [b, {c: d}]}\nmodel: >\n  m\n";
	struct yaml y = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(text); i++) {
		char *copy = core_memdup(text, i);

		if (!yaml_header((struct slice){ copy, i }, 2, fields, &y,
		    NULL) && strstr(copy, "tools:"))
			assert_non_null(json_get(y.root, "tools"));
		free(copy);
	}
	yaml_clear(&y);
}

static void
test_input(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *want;	/* NULL: refused */
		bool fixed;
	} cases[] = {
		{ "a\nb", 3, "a\nb", false },
		{ "a long line of ASCII\r\n\r\rx\r", 26,
		    "a long line of ASCII\n\n\nx\n", false },
		{ "\357\273\277a\303\251", 6, "a\303\251", false },
		{ "12345678\351", 9, "12345678\357\277\275", true },
		{ "", 0, "", false },
		{ "\r", 1, "\n", false },
		{ "\377\376a\0", 4, NULL, false },
		{ "\376\377\0a", 4, NULL, false },
		{ "12345678a\0b", 11, NULL, false },
	};
	struct err e;
	struct str s;
	bool fixed;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(cases); i++) {
		str_reset(&s);
		err_clear(&e);
		if (yaml_input((struct slice){ cases[i].bytes, cases[i].n },
		    &s, &fixed, &e) < 0) {
			assert_null(cases[i].want);
			assert_non_null(strstr(e.msg, "UTF-16"));
			continue;
		}
		assert_string_equal(s.p, cases[i].want);
		assert_int_equal(fixed, cases[i].fixed);
	}
	str_clear(&s);
}

static void
test_split(void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *header, *body;
		int line;
		bool late, long_fence;
	} cases[] = {
		{ "---\na\n---\nb\n", 1, "a\n", "b", 2, 0, 0 },
		{ "---\n---\n", 1, "", "", 2, 0, 0 },
		{ "---\na\n---", 1, "a\n", "", 2, 0, 0 },
		{ "\n \n--- \na\n---\t\n b \n", 1, "a\n", "b", 4, 1, 0 },
		{ "---\na\n-----\nb\n---\nc", 1, "a\n", "b\n---\nc", 2, 0, 1 },
		{ "---\na\n ---\n--\n---x\n", -1, "", "", 2, 0, 0 },
		{ "---\n", -1, "", "", 2, 0, 0 },
		{ "----\na\n---\n", 0, NULL, "----\na\n---", 0, 0, 0 },
		{ " ---\na\n---\n", 0, NULL, NULL, 0, 0, 0 },
		{ "x\n---\na\n---\n", 0, NULL, NULL, 0, 0, 0 },
		{ "", 0, NULL, "", 0, 0, 0 },
		{ "\n\n", 0, NULL, "", 0, 0, 0 },
	};
	struct yaml_front f;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(cases); i++) {
		assert_int_equal(yaml_split(str_of(cases[i].text), &f),
		    cases[i].r);
		if (cases[i].r > 0) {
			assert_true(str_eq(f.header, cases[i].header));
			assert_int_equal(f.line, cases[i].line);
			assert_int_equal(f.late, cases[i].late);
			assert_int_equal(f.long_fence, cases[i].long_fence);
		}
		if (cases[i].r >= 0 && cases[i].body)
			assert_true(str_eq(f.body, cases[i].body));
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_lines_twice_and_cut),
		cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_input),
		cmocka_unit_test(test_split),
	};

	core_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
