/*
 * Inputs of tools: any JSON against a schema that has one of each.  What
 * passes must have the types that tools count on, and pass again unchanged;
 * what does not must say why.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const struct tool tool = { .name = "T", .extra = "more",
    .schema = "{\"type\":\"object\",\"properties\":{"
    "\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"number\"},"
    "\"i\":{\"type\":\"integer\",\"minimum\":0},"
    "\"b\":{\"type\":\"boolean\"},"
    "\"e\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]},"
    "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"properties\":{\"k\":{\"type\":\"string\"},"
    "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}}},"
    "\"required\":[\"k\"],\"additionalProperties\":false}},"
    "\"o\":{\"type\":\"object\"}},"
    "\"required\":[\"s\"],\"additionalProperties\":false}" };

static void
look(const cJSON *in)
{
	const cJSON *v, *one;

	DEMAND(json_text(in, "s"));
	cJSON_ArrayForEach(v, in) {
		DEMAND(strlen(v->string) == 1 || !strcmp(v->string, "more"));
		switch (v->string[0]) {
		case 's':
			DEMAND(cJSON_IsString(v));
			break;
		case 'i':
			DEMAND(v->valuedouble >= 0);
			/* fall through */
		case 'n':
			DEMAND(cJSON_IsNumber(v));
			break;
		case 'b':
			DEMAND(cJSON_IsBool(v));
			break;
		case 'e':
			DEMAND(!strcmp(v->valuestring, "x") ||
			    !strcmp(v->valuestring, "y"));
			break;
		case 'l':
			DEMAND(cJSON_IsArray(v));
			cJSON_ArrayForEach(one, v)
				DEMAND(json_text(one, "k"));
			break;
		case 'o':
			DEMAND(cJSON_IsObject(v));
			break;
		default:
			DEMAND(!strcmp(v->string, "more"));
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	cJSON *in = json_parse((struct slice){ (const char *)data, n }, NULL);
	struct str problem;
	char *first, *again;

	if (!in)
		return 0;
	str_init(&problem, 0);
	if (tool_check(&tool, in, &problem)) {
		DEMAND(!problem.len);
		look(in);
		first = cJSON_PrintUnformatted(in);
		DEMAND(tool_check(&tool, in, &problem));
		again = cJSON_PrintUnformatted(in);
		DEMAND(!strcmp(first, again));
		free(first);
		free(again);
	} else {
		DEMAND(str_starts(problem.p, "InputValidationError: T "));
		DEMAND(text_utf8_is(str_slice(&problem)));
		DEMAND(problem.len < 8000);
	}
	str_clear(&problem);
	cJSON_Delete(in);
	return 0;
}
