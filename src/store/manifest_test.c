/* SPDX-License-Identifier: Apache-2.0 */
#include "store/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store/testing/io_disk.h"

static const char path[] = "/d/manifest";

static void fill(struct manifest *manifest)
{
	manifest_init(manifest);
	for (size_t i = 0; i < JOURNAL_ID_BYTES; i++)
		manifest->id[i] = (uint8_t)(i * 17);
	for (uint32_t number = 1; number <= 3; number++) {
		struct manifest_segment *s = manifest_add(manifest, number, number * 100);
		if (number == 3)
			break;
		s->last = number * 100 + 99;
		s->hash.bytes[0] = (uint8_t)number;
		s->state = number == 2 ? SEGMENT_DAMAGED : SEGMENT_SEALED;
	}
}

static int load_text(const char *text, size_t size, struct manifest *ret, struct err *err)
{
	struct io_disk *disk = io_disk_create();
	assert_int_equal(io_replace_file(io_disk_io(disk), path, text, size, 0600), 0);
	manifest_init(ret);
	int result = manifest_load(io_disk_io(disk), path, ret, err);
	io_disk_destroy(disk);
	return result;
}

static char *saved_text(size_t *ret_size)
{
	struct io_disk *disk = io_disk_create();
	struct manifest manifest;
	char *text;
	fill(&manifest);
	assert_int_equal(manifest_save(io_disk_io(disk), path, &manifest), 0);
	assert_int_equal(io_read_file(io_disk_io(disk), path, 4096, &text, ret_size), 0);
	manifest_deinit(&manifest);
	io_disk_destroy(disk);
	return text;
}

static void it_comes_back_as_it_was_saved(void **state)
{
	(void)state;
	struct manifest expected, got;
	struct err err;
	size_t size;
	char *text = saved_text(&size);
	assert_true(strncmp(text, "fairlead-journal 1\nid 00112233", 30) == 0);
	assert_int_equal(load_text(text, size, &got, &err), 0);
	fill(&expected);
	assert_int_equal(got.count, expected.count);
	assert_memory_equal(got.id, expected.id, JOURNAL_ID_BYTES);
	for (uint32_t i = 0; i < got.count; i++) {
		assert_int_equal(got.segments[i].number, expected.segments[i].number);
		assert_int_equal(got.segments[i].first, expected.segments[i].first);
		assert_int_equal(got.segments[i].last, expected.segments[i].last);
		assert_int_equal(got.segments[i].state, expected.segments[i].state);
		assert_true(digest_equal(&got.segments[i].hash, &expected.segments[i].hash));
	}
	manifest_deinit(&got);
	manifest_deinit(&expected);
	free(text);
}

static void every_cut_and_flip_shows(void **state)
{
	(void)state;
	size_t size;
	char *text = saved_text(&size);
	struct manifest got;
	struct err err;
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(load_text(text, i, &got, &err), MANIFEST_BAD);
		manifest_deinit(&got);
		for (int bit = 0; bit < 8; bit++) {
			text[i] = (char)(text[i] ^ 1 << bit);
			int result = load_text(text, size, &got, &err);
			/* A letter of the check itself in upper case is the same check; a higher format is refused as such. */
			if (result != MANIFEST_BAD &&
			    !(result < 0 && err.code == ERR_UNSUPPORTED) &&
			    !(result == 0 && i > size - 66))
				fail_msg("byte %zu, bit %d: %d", i, bit, result);
			manifest_deinit(&got);
			text[i] = (char)(text[i] ^ 1 << bit);
		}
	}
	free(text);
}

static void a_missing_file_is_an_outcome(void **state)
{
	(void)state;
	struct io_disk *disk = io_disk_create();
	struct manifest got;
	struct err err;
	manifest_init(&got);
	assert_int_equal(manifest_load(io_disk_io(disk), path, &got, &err), MANIFEST_NONE);
	io_disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_back_as_it_was_saved),
		cmocka_unit_test(every_cut_and_flip_shows),
		cmocka_unit_test(a_missing_file_is_an_outcome),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
