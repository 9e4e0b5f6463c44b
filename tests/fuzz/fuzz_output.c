/*
 * Output of commands, and files that claim to be images: any bytes.  What is
 * shown must be valid UTF-8 without control characters, within its limit.
 */
#include "internals.h"

#define DEMAND(x) do { if (!(x)) __builtin_trap(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct slice s = { (const char *)data, n };
	struct proc_result res;
	struct str out;
	const char *type = fs_media(s);
	uint32_t w, h;
	size_t i;

	if (type && str_starts(type, "image/") &&
	    fs_image_size(s, type, &w, &h))
		DEMAND(w && h);
	fs_pdf_pages(s);
	proc_result_init(&res);
	str_init(&out, 0);
	str_addl(&res.out, s);
	res.head = n ? data[0] % (n + 1) : 0;
	res.dropped = n > 1 ? data[1] & 1 : 0;
	bash_output(&res, 40, &out);
	DEMAND(text_utf8_is(str_slice(&out)));
	DEMAND(out.len <= 40 * 3 + 60);
	for (i = 0; i < out.len; i++)
		DEMAND((unsigned char)out.p[i] >= 32 || out.p[i] == '\n' ||
		    out.p[i] == '\t');
	str_clear(&out);
	proc_result_clear(&res);
	return 0;
}
