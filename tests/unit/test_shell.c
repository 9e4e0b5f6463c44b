/* [shell]: which commands a line runs, and what is not understood. */
#include "internals.h"
#include "place.h"

/* "a b; c >f": words with quotes off; "?" in front: not understood. */
static void
dump(const char *text, struct str *out)
{
	const struct shell_command *c;
	struct shell sh;
	size_t i, k;

	shell_parse(text, &sh);
	str_reset(out);
	if (sh.broken)
		str_addc(out, '?');
	for (i = 0; i < sh.n; i++) {
		c = &sh.c[i];
		str_adds(out, i ? "; " : "");
		for (k = 0; k < c->nwords; k++)
			str_addf(out, "%s%s", k ? " " : "",
			    c->words[k].text);
		for (k = 0; k < c->nredirects; k++)
			str_addf(out, " %c%s", c->redirects[k].write ? '>' :
			    '<', c->redirects[k].word.text);
	}
	shell_clear(&sh);
}

static const struct {
	const char *text, *parts;
} taken[] = {
	{ "", "" },
	{ "ls", "ls" },
	{ "  ls\t-la  ", "ls -la" },
	{ "a && b || c; d | e |& f & g\nh", "a; b; c; d; e; f; g; h" },
	{ "A=1 B+=2 c", "A=1 B+=2 c" },
	{ "a 'b c' \"d $e\" f\\ g h''i", "a b c d $e f g hi" },
	{ "r''m \\rm \"rm\" 'r'm", "rm rm rm rm" },
	{ "a $'\\x72\\155\\n\\u00e9\\''", "a rm\n\303\251'" },
	{ "a # b; c\nd#e", "a; d#e" },
	{ "(a; b) && { c; d; }", "a; b; c; d" },
	{ "if a; then b; elif c; then d; else e; fi", "a; b; c; d; e" },
	{ "while a; do b; done; until ! c; do d; done", "a; b; c; d" },
	{ "for x in 1 2 *; do a $x; done", "a $x" },
	{ "time -p a; time b", "a; b" },
	{ "f() { a; }; f", "f; a; f" },
	{ "a $(b `c`) \"$(d \"e\")\" <(f) >(g)", "c; b ; d e; f; g; "
	    "a $ $  " },
	{ "a $((1 + 2)) ((3))", "?" },
	{ "a $((b)) c", "?" },
	{ "((1 + (2))); a $((3))", "a $" },
	{ "a >b 2>c >>d &>e <f 2>&1 >&2 <&- >|g <>h",
	    "a >b >c >d >e <f >g >h" },
	{ ">a", " >a" },
	{ "a > \\\n b", "a >b" },
	{ "a <<E; b\nrm x $y\nE\nc", "a; b; c" },
	{ "a <<-'E'\n\t$(b)\n\tE\nc", "a; c" },
	{ "a <<E <<F\n1\nE\n2\nF\nc", "a; c" },
	{ "a <<<'b c' d", "a d" },
	{ "a &&\\\n  b \\\n  c", "a; b c" },
	{ "[[ -f a && b < c ]] && d", "d" },
	{ "[ -f a ] && [[ -n b ]]", "[ -f a ]" },
	{ "a ${b} ${b:-c} ${#b} ${b%.c} $1 $@", "a $ $ $ $ $1 $@" },
	{ "a {b,c} {} [d] e*", "a {b,c} {} [d] e*" },
	{ "a \377\376 \303", "a \377\376 \303" },
	{ "a\rb # c", "a\rb" },
};

static void
test_taken_apart(void **state)
{
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(taken); i++) {
		dump(taken[i].text, &s);
		/* "?" alone: only that it is not understood */
		if (strcmp(taken[i].parts, "?") ? strcmp(s.p, taken[i].parts) :
		    s.p[0] != '?')
			fail_msg("%s\n  is %s\n  not %s", taken[i].text, s.p,
			    taken[i].parts);
	}
	str_clear(&s);
}

/*
 * Each of these runs rm in bash, or may.  It must be seen, or the line must
 * count as not understood.
 */
static const char *const hiding[] = {
	"rm", "a;rm", "a|rm", "a&rm", "a\nrm", "(rm)", "{ rm; }", "! rm",
	"`rm`", "\"`rm`\"", "$(rm)", "\"$(rm)\"", "<(rm)", "a<(rm)", "a >(rm)",
	"a=$(rm)", "a $(b $(c $(rm)))", "a \"$(b \"$(rm)\")\"",
	"a ${b:-$(rm)}", "a ${b:-`rm`}", "a \"${b:-$(rm)}\"",
	"a ${b:-${c:-$(rm)}}", "if rm; then :; fi", "while rm; do a; done",
	"for x in $(rm); do a; done", "f() { rm; }; f", "f() (rm); f",
	"a && (b; rm)", "a <<E\n$(rm)\nE", "a <<E\n`rm`\nE", "a <<<$(rm)",
	"a >$(rm)", "[[ -n $(rm) ]]", "a $((b[$(rm)]))", "((a[$(rm)]))",
	"r\\m", "r''m", "$'rm'", "$'\\162m'", "$'\\x72m'", "$\"rm\"",
	/* a carriage return is no blank, so this # is no comment */
	"a\r# ;rm", "a \r#;rm",
	/* a comment's quote opens nothing */
	"a # '\nrm # '", "for x in a # '\ndo rm; done # '",
	"[[ a # '\n]]; rm # '", "for x in a \\\n# '\ndo rm; done # '",
	/* lines joined within a word or an operator */
	"i\\\nf rm; then a; fi", "wh\\\nile rm; do a; done",
	"fo\\\nr x in a; do rm; done", "a \"$\\\n(rm)\"", "a $\\\n(rm)",
	"a <\\\n(rm)", "a <\\\n<E\n'\nE\nrm\n: '", "a <<\\\n-E\nE\nrm\n-E",
	"a `b \\\n`; rm",
	/* where a here-document ends */
	"a <<E\nE\nrm\nE", "a <<E\nE\\\n\nrm\nE", "a <<EF\nE\\\nF\nrm\nEF",
	"a <<EF\nb\\\nEF\n'\nEF\nrm\n: '", "a <<$(x)\n$(x)\nrm\n$",
	"a <<$x\n$x\nrm\n$x", "a $(b <<E)\nrm\nE\n)",
	"a <<E $(b\nE\n) c\nE\nrm", "a <<'E'\nE\nrm\nE", "a <<\"\"\n\nrm",
	"a <<-E\n\tE\nrm\nE",
	/* no arithmetic after all */
	"a $((rm) )", "((rm) )", "a $((rm); b)", "((rm); (b))",
	/* values that are evaluated */
	"for x in 'a[$(rm)]'; do b $((x)); done",
	"for x in 'a[$(rm)]'; do ((x)); done",
	"for x in 'a[$(rm)]'; do b $[x]; done",
	"for x in 'a[$(rm)]'; do [[ x -eq 1 ]]; done",
	"for x in 'a[$(rm)]'; do [[ -v $x ]]; done",
	"for x in 'a[$(rm)]'; do b ${!x}; done",
	"for x in 'a[$(rm)]'; do b ${c:x}; done",
	"for x in 'a[$(rm)]'; do b ${c[x]}; done",
	"for x in '$(rm)'; do b ${x@P}; done",
	": ${x:=a[\\$(rm)]}; b $((x))", "b \"${x=a[\\$(rm)]}\"",
	"[[ -v 'a[$(rm)]' ]]", "for PATH in /evil; do a; done",
	/* keywords at other places */
	"A=1 [[ x; rm; ]]", "</dev/null [[ x; rm; ]]", ">x for y in a; rm",
	"time -p rm", "for x do rm; done", "set -- a; for x do rm; done",
	"for x { rm; }", "case x in x) rm;; esac", "select x in a; do rm; done",
	"function f { rm; }; f", "coproc rm", "for ((;;)); do rm; done",
	/* a NUL in a text */
	"$'r\\0'm", "$'rm\\0a'", "$'\\400'rm", "$'\\cx'rm",
	"a \"`b \\\"; rm; \\\"`\"",
	/* unbalanced */
	"a 'b", "a \"b", "a `b", "a $(b", "(a", "a)", "a ${b", "a $((1", "((1",
	"[[ a", "a <", "a >;rm", "a=(rm)", "a (rm)",
};

static bool
shows(const char *text, const char *name)
{
	struct shell sh;
	size_t i, k;
	bool seen;

	shell_parse(text, &sh);
	seen = sh.broken;
	for (i = 0; i < sh.n; i++) {
		k = sh.c[i].nassign;
		seen |= k < sh.c[i].nwords && (sh.c[i].words[k].dynamic ||
		    !strcmp(sh.c[i].words[k].text, name));
	}
	shell_clear(&sh);
	return seen;
}

static void
test_nothing_hides(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(hiding); i++)
		if (!shows(hiding[i], "rm"))
			fail_msg("hidden: %s", hiding[i]);
}

/* The flags of the second word. */
static void
test_words(void **state)
{
	static const struct {
		const char *text;
		bool dynamic, glob, tilde, quoted;
	} rows[] = {
		{ "a b", false, false, false, false },
		{ "a $b", true, false, false, false },
		{ "a \"$b\"", true, false, false, true },
		{ "a '$b'", false, false, false, true },
		{ "a \\$b", false, false, false, true },
		{ "a b$", false, false, false, false },
		{ "a \"b$\"", false, false, false, true },
		{ "a b*", false, true, false, false },
		{ "a 'b*'", false, false, false, true },
		{ "a [b]", false, true, false, false },
		{ "a [", false, false, false, false },
		{ "a {b,c}", false, true, false, false },
		{ "a {}", false, false, false, false },
		{ "a ~/b", false, false, true, false },
		{ "a '~/b'", false, false, false, true },
		{ "a `b`", true, false, false, false },
	};
	const struct shell_word *w;
	struct shell sh;
	size_t i;

	(void)state;
	for (i = 0; i < LENGTH(rows); i++) {
		shell_parse(rows[i].text, &sh);
		assert_true(sh.n > 0 && !sh.broken);
		w = &sh.c[sh.n - 1].words[1];
		if (w->dynamic != rows[i].dynamic || w->glob != rows[i].glob ||
		    w->tilde != rows[i].tilde || w->quoted != rows[i].quoted)
			fail_msg("%s", rows[i].text);
		shell_clear(&sh);
	}
}

/* Much of anything: an end, soon, and nothing missed. */
static void
test_much(void **state)
{
	static const char *const pieces[] = { "(", "$(", "`", "${", "\"$(",
	    "{ ", "((", "<(", "a;", "a <<E ", "'", "\\", "[[ ", "if ",
	    "$((", "f() " };
	int64_t start = core_now();
	struct shell sh;
	struct str s;
	size_t i;

	(void)state;
	str_init(&s, 0);
	for (i = 0; i < LENGTH(pieces); i++) {
		str_reset(&s);
		while (s.len + strlen(pieces[i]) < SHELL_MAX - 2)
			str_adds(&s, pieces[i]);
		str_adds(&s, "rm");
		if (strcmp(pieces[i], "\\") && !shows(s.p, "rm"))
			fail_msg("hidden behind many %s", pieces[i]);
	}
	str_reset(&s);
	for (i = 0; i < SHELL_MAX; i++)
		str_addc(&s, ' ');
	str_adds(&s, "a");
	shell_parse(s.p, &sh);
	assert_true(sh.broken);
	shell_clear(&sh);
	str_clear(&s);
	assert_true(core_now() - start < 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken_apart),
		cmocka_unit_test(test_nothing_hides),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
