/*
 * Ignore files: lines of rules, an empty line, a path (with a slash behind
 * it: a folder).  Rule by rule, the walk's matcher, which sees a path only
 * when nothing above it is ignored, must agree with text_gitignore(), which
 * looks at what is above by itself.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Whether the rule hits the path or a folder above it. */
static bool
hits(const struct find_rule *r, const char *path, bool is_dir)
{
	char part[300];
	size_t i;

	for (i = 0; path[i]; i++) {
		if (path[i] != '/' || !i)
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (find_rule_hits(r, part, file_name(part), true))
			return true;
	}
	return find_rule_hits(r, path, file_name(path), is_dir);
}

/* Segments that are empty do not occur in paths. */
static bool
is_path(const char *s)
{
	return *s && *s != '/' && !strstr(s, "//") && !str_ends(s, "/");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct find_rules rules = { 0 };
	struct slice s = { (const char *)data, n }, line, pattern;
	char *path = NULL, *pat;
	bool is_dir, negated;
	size_t before;

	while (text_line(&s, &line) && line.n) {
		before = rules.n;
		find_rules_line(&rules, line);
		if (rules.n == before)
			continue;
		DEMAND(rules.n == before + 1);
	}
	if (s.n > 250)
		s.n = 250;
	path = core_memdup(s.p, s.n);
	is_dir = str_ends(path, "/");
	if (is_dir)
		path[strlen(path) - 1] = 0;
	if (is_path(path)) {
		find_rules_decide(&rules, path, file_name(path), is_dir);
		s = (struct slice){ (const char *)data, n };
		while (text_line(&s, &line) && line.n) {
			before = rules.n;
			find_rules_line(&rules, line);
			/*
			 * How a line ends is the walk's own affair; and half a
			 * character is none to a glob.
			 */
			if (rules.n == before || !text_utf8_is(line) ||
			    memchr(line.p, 0, line.n) ||
			    memchr(line.p, '\\', line.n) ||
			    memchr(line.p, '\r', line.n) ||
			    memchr(line.p, ' ', line.n))
				continue;
			pattern = line;
			negated = pattern.n && pattern.p[0] == '!';
			pattern.p += negated;
			pattern.n -= negated;
			pat = core_memdup(pattern.p, pattern.n);
			if (!strstr(pat, "//"))
				DEMAND(hits(&rules.v[before], path, is_dir) ==
				    text_gitignore(pat, path, is_dir));
			free(pat);
		}
	}
	free(path);
	find_rules_clear(&rules);
	return 0;
}
