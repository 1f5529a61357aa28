/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frozen data folder in tests/golden/journal: every later release reads it and finds what records.txt lists.
 * The folder is copied first; the frozen files never change. `FAIRLEAD_GOLDEN_MAKE=FOLDER` makes a new one of the
 * format of today (for a release that changes it; the old one stays).
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/check.h"
#include "store/io.h"
#include "store/journal.h"
#include "store/seal.h"
#include "store/snapshot.h"
#include "store/testing/store_test.h"

enum { RECORDS = 60, SEAL_AFTER = 25, SNAPSHOT_AT = 40, FILE_MAX = 16 << 20 };

static const char body_text[] = "{\"env\":{\"WANDB_MODE\":\"offline\"}}";

static void copy_file(const char *from, const char *to)
{
	char *data;
	size_t size;
	assert_int_equal(io_read_file(io_real(), from, FILE_MAX, &data, &size), 0);
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
	free(data);
}

/* Files and folders below, with the modes that a data folder has. */
static void copy_folder(const char *from, const char *to)
{
	DIR *folder = opendir(from);
	struct dirent *entry;
	assert_non_null(folder);
	(void)mkdir(to, 0700);
	while ((entry = readdir(folder))) {
		char source[512], target[512];
		struct stat st;
		if (entry->d_name[0] == '.')
			continue;
		snprintf(source, sizeof(source), "%s/%s", from, entry->d_name);
		snprintf(target, sizeof(target), "%s/%s", to, entry->d_name);
		assert_int_equal(stat(source, &st), 0);
		if (S_ISDIR(st.st_mode))
			copy_folder(source, target);
		else
			copy_file(source, target);
	}
	closedir(folder);
}

/* "seq time kind must hash text" for each record, and the last hash. */
static int list_record(void *context, const struct record *record, const struct digest *hash)
{
	struct buf *list = context;
	char hex[DIGEST_HEX_MAX];
	buf_addf(list, "%" PRIu64 " %" PRId64 " %" PRIu32 " %d %s ", record->seq, record->time_ms,
		 record->kind, record->must_understand, digest_format(hash, hex));
	buf_add(list, record->text, record->size);
	buf_addc(list, '\n');
	return 0;
}

static void list_damage(void *context, uint64_t seq, const char *what)
{
	buf_addf(context, "damaged %" PRIu64 " %s\n", seq, what);
}

static int list_snapshot(void *context, uint32_t kind, const char *text, size_t size)
{
	struct buf *list = context;
	buf_addf(list, "snapshot record %" PRIu32 " ", kind);
	buf_add(list, text, size);
	buf_addc(list, '\n');
	return 0;
}

static bool parse_body_name(const char *folder, struct digest *ret)
{
	char path[512], *text;
	size_t size;
	snprintf(path, sizeof(path), "%s/body.name", folder);
	if (io_read_file(io_real(), path, 4096, &text, &size) < 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	bool good = digest_parse(text, ret);
	free(text);
	return good;
}

/* Everything in a data folder as text. */
static void list_all(const char *folder, struct buf *ret)
{
	struct journal *journal;
	struct seal_key *key = NULL;
	struct err err;
	struct snapshot_head head;
	struct journal_options options = { .folder = folder,
					   .reserve_bytes = -1,
					   .wal_bytes = 64 << 10 };
	struct journal_reader reader = { ret, list_record, list_damage };
	if (journal_open(&options, &journal, &err) < 0 ||
	    journal_read(journal, 1, 0, true, &reader, &err) != 0 ||
	    seal_key_open(folder, false, &key, &err) < 0)
		fail_msg("%s", err.text);
	struct digest name;
	struct journal_state now;
	void *data;
	size_t size;
	AUTO_BUF plain = BUF_INIT;
	journal_state(journal, &now);
	assert_false(now.damaged);
	assert_true(parse_body_name(folder, &name));
	if (journal_blob(journal, &name, &data, &size, &err) < 0 ||
	    seal_open_bytes(key, data, size, &plain, &err) < 0)
		fail_msg("%s", err.text);
	buf_addf(ret, "body %s\n", buf_text(&plain));
	free(data);
	if (snapshot_load(folder, NULL, UINT64_MAX, &head, ret, list_snapshot, NULL, &err) != 0)
		fail_msg("the snapshot cannot be loaded");
	char hex[DIGEST_HEX_MAX];
	buf_addf(ret, "snapshot %" PRIu64 " %" PRId64 " %s %016" PRIx64 " %s\n", head.seq,
		 head.time_ms, digest_format(&head.chain, hex), head.state_hash, head.build);
	seal_key_close(key);
	journal_close(journal);
}

static void make_records(struct journal *journal, const struct blob *body, const char *folder)
{
	struct err err;
	char text[STORE_TEST_TEXT_MAX];
	struct record record;
	struct journal_state now;
	for (uint64_t seq = 1; seq <= RECORDS; seq++) {
		store_test_record_sized(seq, 20 + (size_t)(seq % 30), text, &record);
		assert_int_equal(journal_append(journal, &record, 1, body, seq == 3, false, &err),
				 0);
		if (seq == SEAL_AFTER)
			assert_int_equal(journal_seal(journal, &err), 0);
		if (seq != SNAPSHOT_AT)
			continue;
		struct snapshot_writer *w;
		journal_state(journal, &now);
		struct snapshot_head head = { .seq = seq,
					      .time_ms = now.last_time_ms,
					      .chain = now.last_hash,
					      .state_hash = 0x0123456789abcdef,
					      .build = "0.1.0" };
		assert_int_equal(snapshot_create(folder, NULL, &head, &w, &err), 0);
		for (uint32_t kind = 1; kind <= 3; kind++)
			assert_int_equal(snapshot_write(w, kind, "{\"id\":1}", 8, &err), 0);
		assert_int_equal(snapshot_commit(w, &err), 0);
	}
}

static void make_folder(const char *folder)
{
	struct journal *journal;
	struct seal_key *key = NULL;
	struct err err;
	AUTO_BUF sealed = BUF_INIT;
	AUTO_BUF list = BUF_INIT;
	struct blob body;
	char path[512], hex[DIGEST_HEX_MAX + 1];
	struct journal_options options = {
		.folder = folder, .create = true, .reserve_bytes = -1, .wal_bytes = 64 << 10
	};
	if (journal_open(&options, &journal, &err) < 0 ||
	    seal_key_open(folder, true, &key, &err) < 0)
		fail_msg("%s", err.text);
	seal_close_bytes(key, body_text, sizeof(body_text) - 1, &sealed, &body.digest);
	body.data = sealed.data;
	body.size = sealed.size;
	make_records(journal, &body, folder);
	journal_close(journal);
	seal_key_close(key);
	digest_format(&body.digest, hex);
	snprintf(path, sizeof(path), "%s/body.name", folder);
	hex[64] = '\n';
	assert_int_equal(io_replace_file(io_real(), path, hex, 65, 0644), 0);
	list_all(folder, &list);
	snprintf(path, sizeof(path), "%s/records.txt", folder);
	assert_int_equal(io_replace_file(io_real(), path, list.data, list.size, 0644), 0);
	/* What a start makes anew is not frozen. */
	static const char *const passing[] = { "lock",
					       "head",
					       "000001.sqlite-wal",
					       "000001.sqlite-shm",
					       "000002.sqlite-wal",
					       "000002.sqlite-shm" };
	for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
		snprintf(path, sizeof(path), "%s/journal/%s", folder, passing[i]);
		(void)unlink(path);
	}
}

static void the_frozen_journal_reads_as_on_the_day_it_was_made(void **state)
{
	struct store_test_folder *folder = *state;
	char path[512], *expected;
	size_t size;
	AUTO_BUF list = BUF_INIT;
	copy_folder(GOLDEN_FOLDER, folder->path);
	list_all(folder->path, &list);
	snprintf(path, sizeof(path), "%s/records.txt", GOLDEN_FOLDER);
	assert_int_equal(io_read_file(io_real(), path, FILE_MAX, &expected, &size), 0);
	assert_true(size > 1000);
	assert_string_equal(buf_text(&list), expected);
	free(expected);
}

static void the_format_of_today_lists_the_same(void **state)
{
	struct store_test_folder *folder = *state;
	char path[512], *expected;
	size_t size;
	AUTO_BUF list = BUF_INIT;
	make_folder(folder->path);
	list_all(folder->path, &list);
	snprintf(path, sizeof(path), "%s/records.txt", GOLDEN_FOLDER);
	assert_int_equal(io_read_file(io_real(), path, FILE_MAX, &expected, &size), 0);
	assert_string_equal(buf_text(&list), expected);
	free(expected);
}

int main(void)
{
	const char *make = getenv("FAIRLEAD_GOLDEN_MAKE");
	if (make) {
		make_folder(make);
		return 0;
	}
#define CASE(name) cmocka_unit_test_setup_teardown(name, store_test_setup, store_test_teardown)
	const struct CMUnitTest tests[] = {
		CASE(the_frozen_journal_reads_as_on_the_day_it_was_made),
		CASE(the_format_of_today_lists_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
