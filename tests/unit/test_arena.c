/* [arena]: alignment, large blocks, everything freed at once. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "internals.h"

static void
test_alloc_is_zeroed_and_aligned(void **state)
{
	struct arena a = { NULL };
	size_t n, i;

	(void)state;
	for (n = 0; n < 10000; n = n * 3 + 1) {
		unsigned char *p = arena_alloc(&a, n);

		assert_int_equal((uintptr_t)p % 16, 0);
		for (i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
	}
	arena_clear(&a);
}

static void
test_text(void **state)
{
	struct arena a = { NULL };

	(void)state;
	assert_string_equal(arena_strdup(&a, "abc"), "abc");
	assert_string_equal(arena_printf(&a, "%s-%d", "x", 7), "x-7");
	arena_clear(&a);
	arena_clear(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alloc_is_zeroed_and_aligned),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
