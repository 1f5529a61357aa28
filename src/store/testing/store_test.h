/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the tests of the store share: a folder for each test, and records whose content follows from their number. */
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "store/journal.h"

enum { STORE_TEST_TEXT_MAX = 1024 };

struct store_test_folder {
	char path[64];
};

/* cmocka set-up and teardown: *state is a struct store_test_folder, removed with all in it afterwards. */
int store_test_setup(void **state);
int store_test_teardown(void **state);
void store_test_remove(const char *path); /* a folder and all in it */

/* The record with this number: text of 20 to 700 bytes, kind 1 to 40, one second apart, a new month every 500. */
void store_test_record(uint64_t seq, char text[STORE_TEST_TEXT_MAX], struct record *ret);
/* The same with a text of exactly `size` bytes. */
void store_test_record_sized(uint64_t seq, size_t size, char text[STORE_TEST_TEXT_MAX],
			     struct record *ret);

/* A reader that expects the records of store_test_record in order from `next`; damage is counted and must be about
 * the number that comes next. Anything else is counted in `wrong`. */
struct store_test_reading {
	uint64_t next;
	uint64_t damaged, wrong;
	size_t size; /* 0: store_test_record; else store_test_record_sized */
	struct digest last_hash;
};
int store_test_take(void *context, const struct record *record, const struct digest *hash);
void store_test_damaged(void *context, uint64_t seq, const char *what);
