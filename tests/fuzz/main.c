/*
 * main.c - runs a fuzz target on files instead of under a fuzzer, so that the
 * seeds are plain tests: target FILE...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
run(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0) {
		perror(path);
		return 1;
	}
	rewind(f);
	/* Exactly as large as the input: one byte further is a finding. */
	data = malloc((size_t)size);
	if (size && (!data || fread(data, (size_t)size, 1, f) != 1)) {
		perror(path);
		return 1;
	}
	fclose(f);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	return 0;
}

int
main(int argc, char **argv)
{
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 1; i < argc; i++) {
		printf("%s\n", argv[i]);	/* the last one, if it dies */
		if (run(argv[i]))
			return 1;
	}
	printf("%d seeds\n", argc - 1);
	return argc > 1 ? 0 : 1;
}
