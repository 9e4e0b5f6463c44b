/*
 * Command lines of any bytes.  Besides an end in time: each word is kept as
 * it was written; what is understood stays so, with the same parts, when it
 * is put in parentheses or in front of other commands; and a command behind
 * it is never hidden, unless the line is not understood.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* All of the commands, as text. */
static void
dump(const struct shell *sh, struct str *out)
{
	size_t i, k;

	for (i = 0; i < sh->n; i++) {
		DEMAND(sh->c[i].nassign <= sh->c[i].nwords);
		for (k = 0; k < sh->c[i].nwords; k++)
			str_addf(out, "%s ", sh->c[i].words[k].text);
		for (k = 0; k < sh->c[i].nredirects; k++)
			str_addf(out, ">%s ", sh->c[i].redirects[k].word.text);
		str_addc(out, '\n');
	}
}

/* Whether a command of that name is among them. */
static bool
runs(const struct shell *sh, const char *name)
{
	size_t i;

	for (i = 0; i < sh->n; i++)
		if (sh->c[i].nassign < sh->c[i].nwords &&
		    !strcmp(sh->c[i].words[sh->c[i].nassign].text, name))
			return true;
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = core_memdup(data, n);
	struct shell sh, more;
	struct str line, before, after;
	size_t i, k;

	str_init(&line, 0);
	str_init(&before, 0);
	str_init(&after, 0);
	shell_parse(text, &sh);
	dump(&sh, &before);
	for (i = 0; i < sh.n; i++)
		for (k = 0; k < sh.c[i].nwords; k++)
			DEMAND(*sh.c[i].words[k].source);
	str_addf(&line, "%s\nzzz", text);
	shell_parse(line.p, &more);
	/* the body of a here-document that lacks its end takes all */
	DEMAND(more.broken || runs(&more, "zzz") || strstr(text, "<<") ||
	    strchr(text, '\\') || strchr(text, '`') || strstr(text, "for") ||
	    sh.broken);
	shell_clear(&more);
	str_reset(&line);
	str_addf(&line, "zzz;%s", text);
	shell_parse(line.p, &more);
	DEMAND(more.broken || (runs(&more, "zzz") && more.n == sh.n + 1));
	dump(&more, &after);
	DEMAND(more.broken || (after.len == before.len + 5 &&
	    !strcmp(after.p + 5, before.p)));
	shell_clear(&more);
	shell_clear(&sh);
	str_clear(&line);
	str_clear(&before);
	str_clear(&after);
	free(text);
	return 0;
}
