/* SPDX-License-Identifier: Apache-2.0 */
#include "store/testing/store_test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

int store_test_setup(void **state)
{
	struct store_test_folder *folder = calloc(1, sizeof(*folder));
	CHECK(folder);
	snprintf(folder->path, sizeof(folder->path), "/tmp/fairlead-store-XXXXXX");
	CHECK(mkdtemp(folder->path));
	*state = folder;
	return 0;
}

void store_test_remove(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		char below[512];
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (unlink(below) < 0)
			store_test_remove(below);
	}
	if (folder)
		closedir(folder);
	rmdir(path);
}

int store_test_teardown(void **state)
{
	struct store_test_folder *folder = *state;
	store_test_remove(folder->path);
	free(folder);
	return 0;
}

void store_test_record_sized(uint64_t seq, size_t size, char text[STORE_TEST_TEXT_MAX],
			     struct record *ret)
{
	CHECK(size >= 20 && size < STORE_TEST_TEXT_MAX);
	int at = snprintf(text, STORE_TEST_TEXT_MAX, "{\"n\":%llu,\"x\":\"",
			  (unsigned long long)seq);
	uint64_t mix = seq * 0x9e3779b97f4a7c15u;
	for (size_t i = (size_t)at; i < size; i++) {
		mix = mix * 6364136223846793005u + 1442695040888963407u;
		text[i] = (char)('a' + (mix >> 60));
	}
	if (size > (size_t)at + 2) {
		text[size - 2] = '"';
		text[size - 1] = '}';
	}
	text[size] = '\0';
	*ret = (struct record){
		.time_ms =
			1700000000000 + (int64_t)seq * 1000 + (int64_t)(seq / 500) * 31 * 86400000,
		.kind = (uint32_t)(seq % 40) + 1,
		.must_understand = seq % 3 == 0,
		.text = text,
		.size = size,
	};
}

void store_test_record(uint64_t seq, char text[STORE_TEST_TEXT_MAX], struct record *ret)
{
	store_test_record_sized(seq, 20 + (size_t)(seq * 37 % 680), text, ret);
}

int store_test_take(void *context, const struct record *record, const struct digest *hash)
{
	struct store_test_reading *reading = context;
	char text[STORE_TEST_TEXT_MAX];
	struct record expected;
	if (reading->size)
		store_test_record_sized(record->seq, reading->size, text, &expected);
	else
		store_test_record(record->seq, text, &expected);
	if (record->seq != reading->next || record->time_ms != expected.time_ms ||
	    record->kind != expected.kind || record->must_understand != expected.must_understand ||
	    record->size != expected.size || memcmp(record->text, text, expected.size) != 0)
		reading->wrong++;
	reading->next = record->seq + 1;
	reading->last_hash = *hash;
	return 0;
}

void store_test_damaged(void *context, uint64_t seq, const char *what)
{
	struct store_test_reading *reading = context;
	CHECK(what && *what);
	reading->damaged++;
	if (seq == reading->next)
		reading->next++;
	else if (seq + 1 != reading->next)
		reading->wrong++;
}
