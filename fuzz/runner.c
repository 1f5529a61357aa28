/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target as an ordinary test: `TARGET FOLDER MUTATIONS [SEED]` gives the target every file of its corpus, then
 * that many changed copies of them, the same ones for the same seed.
 *
 * A file's name is a promise: what begins with "ok-" must be taken, what begins with "no-" must be refused. (Files that
 * libFuzzer found have other names and promise nothing.) Fewer than CORPUS_LEAST files, or no promise kept, is a failure: a
 * test over an empty folder would pass for ever.
 *
 * When the target aborts, the input stands in ./crash-TARGET.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "fuzz/fuzz.h"

enum { CORPUS_LEAST = 15, FILES_MAX = 20000, INPUT_MAX = 64 << 10 };

struct input {
	char *name;
	uint8_t *data;
	size_t size;
};

static struct input corpus[FILES_MAX];
static size_t corpus_count;
static uint64_t dice;

/* What the target is working on, for the handler. */
static const uint8_t *volatile current_data;
static volatile size_t current_size;
static char crash_path[128];

static void on_abort(int number)
{
	int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd >= 0) {
		(void)!write(fd, current_data, current_size);
		close(fd);
	}
	signal(number, SIG_DFL);
	raise(number);
}

/* splitmix64 */
static uint32_t roll(uint32_t below)
{
	uint64_t z = dice += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) >> 32) % below;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct input *)a)->name, ((const struct input *)b)->name);
}

static void file_read(const char *folder, const char *name)
{
	struct input *input = &corpus[corpus_count];
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	CHECK(file && corpus_count < FILES_MAX);
	input->name = strdup(name);
	input->data = malloc(INPUT_MAX);
	CHECK(input->name && input->data);
	input->size = fread(input->data, 1, INPUT_MAX, file);
	CHECK(!ferror(file) && input->size < INPUT_MAX);
	fclose(file);
	corpus_count++;
}

static void corpus_read(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	if (!dir) {
		fprintf(stderr, "can't open the corpus %s: %s\n", folder, strerror(errno));
		exit(2);
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			file_read(folder, entry->d_name);
	closedir(dir);
	qsort(corpus, corpus_count, sizeof(corpus[0]), by_name);
}

/* The target gets memory of exactly the input's size, so that a sanitizer sees a read behind its end. */
static void give(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	CHECK(exact != NULL);
	if (size)
		memcpy(exact, data, size);
	current_data = exact;
	current_size = size;
	fuzz_accepted = false;
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static int promises_check(void)
{
	size_t kept = 0, broken = 0;

	for (size_t i = 0; i < corpus_count; i++) {
		const bool ok = strncmp(corpus[i].name, "ok-", 3) == 0,
			   no = strncmp(corpus[i].name, "no-", 3) == 0;

		give(corpus[i].data, corpus[i].size);
		if (!ok && !no)
			continue;
		if (fuzz_accepted == ok) {
			kept++;
			continue;
		}
		broken++;
		fprintf(stderr, "%s was %s\n", corpus[i].name, fuzz_accepted ? "taken" : "refused");
	}
	if (corpus_count < CORPUS_LEAST || kept == 0) {
		fprintf(stderr,
			"%zu inputs, %zu of them with a verdict: at least %d are expected\n",
			corpus_count, kept, CORPUS_LEAST);
		return 1;
	}
	return broken ? 1 : 0;
}

static size_t insert(uint8_t *data, size_t size, size_t at, const uint8_t *from, size_t count)
{
	if (size + count > INPUT_MAX)
		return size;
	memmove(data + at + count, data + at, size - at);
	memcpy(data + at, from, count);
	return size + count;
}

static size_t mutate_once(uint8_t *data, size_t size)
{
	static const char *const words[] = { "\"",
					     "\\",
					     "{",
					     "}",
					     "[",
					     "]",
					     ":",
					     ",",
					     "\n",
					     "\r\n",
					     " ",
					     "\t",
					     "\xff",
					     "\xc3",
					     "\xe2\x82",
					     "\x1b[2J",
					     "-1",
					     "0",
					     "9223372036854775807",
					     "-9223372036854775808",
					     "18446744073709551616",
					     "4294967295",
					     "2147483648",
					     "1e9",
					     "null",
					     "true",
					     "\\u0000",
					     "\\ud800",
					     "..",
					     "/",
					     "%2e",
					     "- ",
					     "&a ",
					     "*a",
					     "!!str ",
					     "<<: ",
					     "---\n",
					     "|\n",
					     "'",
					     "#" };
	const size_t at = size ? roll((uint32_t)size) : 0;
	const struct input *other = &corpus[roll((uint32_t)corpus_count)];
	uint8_t piece[64];
	size_t count;

	switch (size ? roll(8) : 5) {
	case 0: data[at] ^= (uint8_t)(1u << roll(8)); return size;
	case 1: data[at] = (uint8_t)roll(256); return size;
	case 2: data[at] = (uint8_t)(data[at] + roll(3) - 1); return size;
	case 3: /* cut a piece out */
		count = 1 + roll(size - at < 16 ? (uint32_t)(size - at) : 16);
		memmove(data + at, data + at + count, size - at - count);
		return size - count;
	case 4: return at; /* cut off */
	case 5: { /* a word that means something somewhere */
		const char *word = words[roll(ARRAY_SIZE(words))];

		return insert(data, size, at, (const uint8_t *)word, strlen(word));
	}
	case 6: /* twice */
		count = 1 + roll(size - at < sizeof(piece) ? (uint32_t)(size - at) : sizeof(piece));
		memcpy(piece, data + at, count);
		return insert(data, size, at, piece, count);
	default: /* the end of another */
		if (!other->size)
			return size;
		count = roll((uint32_t)other->size);
		return insert(data, at, at, other->data + count, other->size - count);
	}
}

static void mutations_run(unsigned long count)
{
	uint8_t *data = malloc(2 * INPUT_MAX);

	CHECK(data != NULL);
	for (unsigned long i = 0; i < count; i++) {
		const struct input *input = &corpus[roll((uint32_t)corpus_count)];
		size_t size = input->size;

		memcpy(data, input->data, size);
		for (uint32_t times = 1 + roll(4); times; times--)
			size = mutate_once(data, size);
		give(data, size);
	}
	free(data);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	unsigned long mutations;
	int rc;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: %s FOLDER MUTATIONS [SEED]\n", name);
		return 2;
	}
	mutations = strtoul(argv[2], NULL, 10);
	dice = argc == 4 ? strtoull(argv[3], NULL, 10) : 1;
	snprintf(crash_path, sizeof(crash_path), "crash-%.100s", name);
	signal(SIGABRT, on_abort);
	printf("%s: %lu changed inputs from seed %llu\n", name, mutations,
	       (unsigned long long)dice);
	corpus_read(argv[1]);
	rc = promises_check();
	if (rc == 0 && corpus_count)
		mutations_run(mutations);
	for (size_t i = 0; i < corpus_count; i++) {
		free(corpus[i].name);
		free(corpus[i].data);
	}
	return rc;
}
