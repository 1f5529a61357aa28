/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/guard.h"
#include "store/testing/store_test.h"

static struct journal *open_it(const struct journal_options *options)
{
	struct journal *journal;
	struct err err;
	if (journal_open(options, &journal, &err) < 0)
		fail_msg("%s", err.text);
	return journal;
}

/* n records in groups of `group`, each with the text that store_test_text gives for its number. */
static void append_many(struct journal *journal, uint64_t n, size_t group)
{
	struct journal_state state;
	struct record records[64];
	struct err err;
	char texts[64][STORE_TEST_TEXT_MAX];
	journal_state(journal, &state);
	for (uint64_t done = 0; done < n; done += group) {
		for (size_t i = 0; i < group; i++)
			store_test_record(state.last_seq + done + i + 1, texts[i], &records[i]);
		if (journal_append(journal, records, group, NULL, 0, false, &err) != 0)
			fail_msg("%s", err.text);
		assert_int_equal(records[group - 1].seq, state.last_seq + done + group);
	}
}

static void expect_all(struct journal *journal, uint64_t from, uint64_t last)
{
	struct store_test_reading reading = { .next = from };
	struct journal_reader reader = { &reading, store_test_take, store_test_damaged };
	struct err err;
	if (journal_read(journal, from, 0, true, &reader, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(reading.damaged, 0);
	assert_int_equal(reading.next, last + 1);
}

static void records_come_back_as_they_were_appended(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	append_many(journal, 640, 64);
	append_many(journal, 7, 1);
	expect_all(journal, 1, 647);
	expect_all(journal, 300, 647);
	journal_close(journal);
	options.create = false;
	journal = open_it(&options);
	expect_all(journal, 1, 647);
	append_many(journal, 3, 3);
	journal_close(journal);
	journal = open_it(&options);
	expect_all(journal, 1, 650);
	journal_close(journal);
}

static void the_hash_is_the_documented_one(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	struct record record = {
		.time_ms = 1000, .kind = 7, .must_understand = true, .text = "{}", .size = 2
	};
	struct err err;
	assert_int_equal(journal_append(journal, &record, 1, NULL, 0, false, &err), 0);
	uint8_t bytes[32 + 32 + 2] = { [39] = 1, [46] = 1000 >> 8, [47] = 1000 & 255, [55] = 7,
				       [63] = 1, [64] = '{',       [65] = '}' };
	struct digest expected = digest_of(bytes, sizeof(bytes));
	struct journal_state now;
	journal_state(journal, &now);
	assert_true(digest_equal(&expected, &now.last_hash));
	assert_int_equal(now.last_seq, 1);
	assert_int_equal(now.last_time_ms, 1000);
	journal_close(journal);
}

static void expect_error(const struct journal_options *options, enum err_code code,
			 const char *part)
{
	struct journal *journal;
	struct err err;
	assert_true(journal_open(options, &journal, &err) < 0);
	if (err.code != code || !strstr(err.text, part))
		fail_msg("%s: %s", err_code_name(err.code), err.text);
}

static void file_of(const struct store_test_folder *folder, const char *name, char out[128])
{
	snprintf(out, 128, "%s/%s", folder->path, name);
}

static void a_second_daemon_is_refused_and_told_which_process_has_it(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	char part[64];
	snprintf(part, sizeof(part), "in use by process %ld", (long)getpid());
	expect_error(&options, ERR_CONFLICT, part);
	journal_close(journal);
	journal_close(open_it(&options));
}

static void the_lock_ends_with_the_process_that_held_it(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct journal *journal;
		struct err err;
		bool opened = journal_open(&options, &journal, &err) == 0;
		_exit(opened && write(ready[1], "x", 1) == 1 ? pause() : 1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	char part[64];
	snprintf(part, sizeof(part), "in use by process %ld", (long)child);
	expect_error(&options, ERR_CONFLICT, part);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	journal_close(open_it(&options));
}

static void a_folder_of_another_owner_is_refused(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	if (geteuid() != 0)
		skip();
	journal_close(open_it(&options));
	char path[128];
	file_of(folder, "journal", path);
	assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
	expect_error(&options, ERR_FORBIDDEN, "12345");
	options.read_only = true;
	options.create = false;
	journal_close(open_it(&options));
}

static void replace_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void a_folder_of_another_format_is_refused_with_the_remedy(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	char path[128];
	journal_close(open_it(&options));
	file_of(folder, "journal/manifest", path);
	replace_file(path, "fairlead-journal 2\nwhatever comes then\n");
	expect_error(&options, ERR_UNSUPPORTED, "format 2");
	expect_error(&options, ERR_UNSUPPORTED, "--data");
}

static void a_missing_segment_or_journal_is_refused_not_begun_anew(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	char path[128], other[128];
	struct journal *journal = open_it(&options);
	append_many(journal, 10, 10);
	journal_close(journal);
	file_of(folder, "journal/000001.sqlite", path);
	file_of(folder, "elsewhere", other);
	assert_int_equal(rename(path, other), 0);
	expect_error(&options, ERR_CORRUPT, "000001.sqlite is missing");
	assert_int_equal(rename(other, path), 0);
	journal = open_it(&options);
	expect_all(journal, 1, 10);
	journal_close(journal);
	/* The whole journal gone, and a snapshot says that there was one. */
	file_of(folder, "snapshots", path);
	assert_int_equal(mkdir(path, 0700), 0);
	file_of(folder, "snapshots/00000000000000000005.snap", path);
	replace_file(path, "x");
	file_of(folder, "journal", path);
	assert_int_equal(rename(path, other), 0);
	expect_error(&options, ERR_CORRUPT, "its journal is missing");
	options.create = false;
	file_of(folder, "nothing", path);
	options.folder = path;
	expect_error(&options, ERR_NOT_FOUND, "has no journal");
}

static void limits_hold_and_one_more_is_refused(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	struct err err;
	char *big = calloc(1, BLOB_MAX + 1);
	memset(big, 'x', BLOB_MAX + 1);
	struct record record = { .kind = 1, .text = big, .size = RECORD_TEXT_MAX };
	struct blob blob = { .digest = digest_of(big, BLOB_MAX), .data = big, .size = BLOB_MAX };
	assert_int_equal(journal_append(journal, &record, 1, &blob, 1, false, &err), 0);
	record.seq = 0;
	record.size = RECORD_TEXT_MAX + 1;
	assert_true(journal_append(journal, &record, 1, NULL, 0, false, &err) < 0);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	record.size = 1;
	blob.size = BLOB_MAX + 1;
	assert_true(journal_append(journal, &record, 1, &blob, 1, false, &err) < 0);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	record.seq = 7;
	assert_true(journal_append(journal, &record, 1, NULL, 0, false, &err) < 0);
	assert_int_equal(err.code, ERR_CONFLICT);
	/* None of these made it fail. */
	record.seq = 2;
	assert_int_equal(journal_append(journal, &record, 1, NULL, 0, false, &err), 0);
	void *data;
	size_t size;
	blob.size = BLOB_MAX;
	assert_int_equal(journal_blob(journal, &blob.digest, &data, &size, &err), 0);
	assert_int_equal(size, BLOB_MAX);
	assert_memory_equal(data, big, size);
	free(data);
	free(big);
	journal_close(journal);
}

static void segments_are_sealed_by_size_and_by_month(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path,
					   .create = true,
					   .segment_bytes = 100000 };
	struct journal *journal = open_it(&options);
	struct journal_state now;
	append_many(journal, 400, 20);
	journal_state(journal, &now);
	assert_true(now.segments >= 2 && now.segments <= 4);
	uint32_t before = now.segments;
	append_many(journal, 20, 20);
	append_many(journal, 100, 1); /* number 500 is in the next month */
	journal_state(journal, &now);
	assert_true(now.segments > before);
	struct err err;
	before = now.segments;
	assert_int_equal(journal_seal(journal, &err), 0);
	assert_int_equal(journal_seal(journal, &err), 0); /* an empty one is not sealed */
	journal_state(journal, &now);
	assert_int_equal(now.segments, before + 1);
	expect_all(journal, 1, 520);
	expect_all(journal, 399, 520);
	journal_close(journal);
	journal = open_it(&options);
	expect_all(journal, 1, 520);
	append_many(journal, 5, 5);
	expect_all(journal, 515, 525);
	journal_close(journal);
}

static void a_reader_sees_what_is_committed_across_seals(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *writer = open_it(&options);
	append_many(writer, 30, 10);
	struct journal_options reading = { .folder = folder->path, .read_only = true };
	struct journal *reader = open_it(&reading);
	expect_all(reader, 1, 30);
	append_many(writer, 10, 10);
	expect_all(reader, 1, 40);
	struct err err;
	assert_int_equal(journal_seal(writer, &err), 0);
	append_many(writer, 10, 1);
	expect_all(reader, 1, 50);
	expect_all(reader, 45, 50);
	struct record record = { .kind = 1, .text = "{}", .size = 2 };
	assert_true(journal_append(reader, &record, 1, NULL, 0, false, &err) < 0);
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	journal_close(reader);
	append_many(writer, 10, 1);
	journal_close(writer);
	reader = open_it(&reading);
	expect_all(reader, 1, 60);
	journal_close(reader);
}

static int stop_at_third(void *context, const struct record *record, const struct digest *hash)
{
	(void)record;
	(void)hash;
	int *count = context;
	return ++*count == 3 ? 33 : 0;
}

static void reading_stops_at_the_limit_or_when_told(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	struct err err;
	append_many(journal, 20, 20);
	struct store_test_reading reading = { .next = 6 };
	struct journal_reader reader = { &reading, store_test_take, store_test_damaged };
	assert_int_equal(journal_read(journal, 6, 4, true, &reader, &err), 0);
	assert_int_equal(reading.next, 10);
	assert_int_equal(reading.wrong, 0);
	int count = 0;
	struct journal_reader stopping = { &count, stop_at_third, NULL };
	assert_int_equal(journal_read(journal, 1, 0, true, &stopping, &err), 33);
	assert_int_equal(count, 3);
	journal_close(journal);
}

static bool files_hold(const struct store_test_folder *folder, const void *bytes, size_t size)
{
	char command[64 + sizeof(folder->path)];
	static const char *const names[] = { "000001.sqlite", "000001.sqlite-wal", "000002.sqlite",
					     "000002.sqlite-wal" };
	bool found = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(command, sizeof(command), "%s/journal/%s", folder->path, names[i]);
		int fd = open(command, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		struct stat st;
		assert_int_equal(fstat(fd, &st), 0);
		char *data = malloc((size_t)st.st_size + 1);
		assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
		found = found || memmem(data, (size_t)st.st_size, bytes, size);
		free(data);
		close(fd);
	}
	return found;
}

static struct blob make_body(char text[100], int number)
{
	int size = snprintf(text, 100, "the body of number %d, which nobody else has %d", number,
			    number * 7919);
	return (struct blob){ .digest = digest_of(text, (size_t)size),
			      .data = text,
			      .size = (size_t)size };
}

static void expect_body(struct journal *journal, const struct blob *blob)
{
	void *data;
	size_t size;
	struct err err;
	if (journal_blob(journal, &blob->digest, &data, &size, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(size, blob->size);
	assert_memory_equal(data, blob->data, size);
	free(data);
}

static void bodies_are_found_in_all_segments_and_can_be_erased_for_good(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path,
					   .create = true,
					   .inline_checkpoint = true };
	struct journal *journal = open_it(&options);
	char texts[40][100];
	struct blob blobs[40];
	struct err err;
	struct record record = { .kind = 1, .text = "{}", .size = 2 };
	for (int i = 0; i < 40; i++)
		blobs[i] = make_body(texts[i], i);
	record.seq = 0;
	assert_int_equal(journal_append(journal, &record, 1, blobs, 10, false, &err), 0);
	expect_body(journal,
		    &blobs[3]); /* the table of names is made here and kept up from now on */
	for (int i = 10; i < 30; i++) {
		record.seq = 0;
		assert_int_equal(journal_append(journal, &record, 1, &blobs[i], 1, false, &err), 0);
		if (i == 20)
			assert_int_equal(journal_seal(journal, &err), 0);
	}
	struct journal_options reading = { .folder = folder->path, .read_only = true };
	struct journal *reader = open_it(&reading);
	for (int i = 0; i < 30; i++) {
		expect_body(journal, &blobs[i]);
		expect_body(reader, &blobs[i]);
	}
	journal_close(reader);
	void *data;
	size_t size;
	assert_true(journal_blob(journal, &blobs[35].digest, &data, &size, &err) < 0);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	static const int erased[] = { 5, 25 }; /* one in a sealed segment, one in the open one */
	for (int i = 0; i < 2; i++) {
		const struct blob *blob = &blobs[erased[i]];
		assert_true(files_hold(folder, blob->data, blob->size));
		if (journal_blob_erase(journal, &blob->digest, &err) != 0)
			fail_msg("%s", err.text);
		assert_false(files_hold(folder, blob->data, blob->size));
		assert_true(journal_blob(journal, &blob->digest, &data, &size, &err) < 0);
		assert_int_equal(err.code, ERR_NOT_FOUND);
	}
	expect_body(journal, &blobs[4]);
	expect_body(journal, &blobs[26]);
	struct store_test_reading counted = { .next = 1 };
	struct journal_reader all = { &counted, store_test_take, store_test_damaged };
	assert_int_equal(journal_read(journal, 1, 0, true, &all, &err), 0);
	assert_int_equal(counted.damaged, 0);
	journal_close(journal);
	journal = open_it(&options);
	expect_body(journal, &blobs[29]);
	assert_true(journal_blob(journal, &blobs[25].digest, &data, &size, &err) < 0);
	journal_close(journal);
}

static void the_log_stays_small_while_appends_go_on(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = {
		.folder = folder->path, .create = true, .wal_bytes = 128 << 10, .reserve_bytes = -1
	};
	struct journal *journal = open_it(&options);
	char path[128];
	struct stat st;
	/* All of one month, so that they stay in one segment: 6 MiB, through a log of 128 KiB. */
	struct record records[64];
	struct err err;
	static char text[600];
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 150; i++) {
		for (int k = 0; k < 64; k++)
			records[k] = (struct record){
				.time_ms = 1, .kind = 1, .text = text, .size = sizeof(text)
			};
		assert_int_equal(journal_append(journal, records, 64, NULL, 0, false, &err), 0);
	}
	file_of(folder, "journal/000001.sqlite-wal", path);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size < 8 * options.wal_bytes);
	journal_close(journal);
}

static void the_reserve_is_on_disk(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path,
					   .create = true,
					   .reserve_bytes = 1 << 20 };
	struct journal *journal = open_it(&options);
	struct journal_state now;
	struct stat st;
	char path[128];
	file_of(folder, "journal/reserve", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 1 << 20);
	assert_true(st.st_blocks * 512 >= 1 << 20);
	journal_state(journal, &now);
	assert_false(now.full);
	journal_close(journal);
}

static void a_folder_in_place_of_the_reserve_is_named(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path,
					   .create = true,
					   .reserve_bytes = 1 << 20 };
	char path[128], text[STORE_TEST_TEXT_MAX];
	struct journal *journal = open_it(&options), *other = NULL;
	struct record record;
	struct err err = { 0 };
	file_of(folder, "journal/reserve", path);
	journal_close(journal);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(journal_open(&options, &other, &err), -ERR_CONFLICT);
	assert_non_null(strstr(err.text, "journal/reserve is a folder"));
	assert_int_equal(rmdir(path), 0);
	/* While it is open: once the reserve was given back, it can't be put there again. */
	options.reserve_bytes = (int64_t)1 << 60;
	journal = open_it(&options);
	(void)unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	store_test_record(1, text, &record);
	err = (struct err){ 0 };
	assert_int_equal(journal_append(journal, &record, 1, NULL, 0, false, &err), JOURNAL_FULL);
	assert_non_null(strstr(err.text, "journal/reserve is a folder"));
	assert_false(journal_has_room(journal));
	assert_int_equal(journal_append(journal, &record, 1, NULL, 0, true, &err), 0);
	journal_close(journal);
}

/* Changes a closed journal's first segment behind its back. */
static void tamper(const struct store_test_folder *folder, const char *sql, int64_t number,
		   const void *bytes, size_t size)
{
	char path[128];
	sqlite3 *db;
	sqlite3_stmt *statement;
	file_of(folder, "journal/000001.sqlite", path);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	if (number)
		sqlite3_bind_int64(statement, 1, number);
	if (size)
		sqlite3_bind_blob(statement, 2, bytes, (int)size, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
	assert_int_equal(sqlite3_changes(db), 1);
	sqlite3_finalize(statement);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

struct damage_list {
	uint64_t read, damaged[8];
	char what[8][80];
	size_t count;
};

static int count_read(void *context, const struct record *record, const struct digest *hash)
{
	(void)record;
	(void)hash;
	((struct damage_list *)context)->read++;
	return 0;
}

static void note_damage(void *context, uint64_t seq, const char *what)
{
	struct damage_list *list = context;
	assert_true(list->count < 8);
	list->damaged[list->count] = seq;
	snprintf(list->what[list->count++], sizeof(list->what[0]), "%s", what);
}

static struct damage_list read_damaged(const struct journal_options *options, bool verify)
{
	struct damage_list list = { 0 };
	struct journal_reader reader = { &list, count_read, note_damage };
	struct journal *journal = open_it(options);
	struct err err;
	if (journal_read(journal, 1, 0, verify, &reader, &err) != 0)
		fail_msg("%s", err.text);
	journal_close(journal);
	return list;
}

/* Someone who can write the file changes a record and mends its checksum; only the chain shows it. */
static void a_record_changed_with_its_checksum_mended_breaks_the_chain(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	append_many(journal, 200, 20);
	struct damage_list list = { 0 };
	journal_close(journal);
	/* Kind 21 instead of 31; the checksum is made with the hash as it is. */
	char text[STORE_TEST_TEXT_MAX];
	struct record record;
	struct digest prev = { 0 };
	for (uint64_t seq = 1; seq <= 30; seq++) {
		store_test_record(seq, text, &record);
		record.seq = seq;
		prev = record_hash(&prev, &record);
	}
	record.kind = 21;
	tamper(folder, "UPDATE record SET kind = 21, guard = ?1 WHERE seq = 30",
	       record_guard(&record, &prev), NULL, 0);
	list = read_damaged(&options, true);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.damaged[0], 30);
	assert_non_null(strstr(list.what[0], "does not follow"));
	assert_int_equal(list.read, 199);
	/* Without verifying nobody asked. */
	list = read_damaged(&options, false);
	assert_int_equal(list.count, 0);
	assert_int_equal(list.read, 200);
	/* One that is simply changed, and one that is gone. */
	tamper(folder, "UPDATE record SET time_ms = time_ms + 1 WHERE seq = 40", 0, NULL, 0);
	tamper(folder, "DELETE FROM record WHERE seq = 50", 0, NULL, 0);
	list = read_damaged(&options, true);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.damaged[1], 40);
	assert_non_null(strstr(list.what[1], "checksum"));
	assert_int_equal(list.damaged[2], 50);
	assert_non_null(strstr(list.what[2], "missing"));
	assert_int_equal(list.read, 197);
	/* The bytes of the two that are there are kept aside. */
	char path[128];
	file_of(folder, "quarantine/record-00000000000000000030", path);
	assert_int_equal(access(path, F_OK), 0);
	file_of(folder, "quarantine/record-00000000000000000040", path);
	assert_int_equal(access(path, F_OK), 0);
}

static void a_changed_body_is_an_error(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	char text[100];
	struct blob blob = make_body(text, 1);
	struct record record = { .kind = 1, .text = "{}", .size = 2 };
	struct err err;
	assert_int_equal(journal_append(journal, &record, 1, &blob, 1, false, &err), 0);
	journal_close(journal);
	tamper(folder, "UPDATE blob SET data = ?2 WHERE id = ?1", 1, "other bytes", 11);
	journal = open_it(&options);
	void *data;
	size_t size;
	assert_true(journal_blob(journal, &blob.digest, &data, &size, &err) < 0);
	assert_int_equal(err.code, ERR_CORRUPT);
	journal_close(journal);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, store_test_setup, store_test_teardown)
	const struct CMUnitTest tests[] = {
		CASE(records_come_back_as_they_were_appended),
		CASE(the_hash_is_the_documented_one),
		CASE(a_second_daemon_is_refused_and_told_which_process_has_it),
		CASE(the_lock_ends_with_the_process_that_held_it),
		CASE(a_folder_of_another_owner_is_refused),
		CASE(a_folder_of_another_format_is_refused_with_the_remedy),
		CASE(a_missing_segment_or_journal_is_refused_not_begun_anew),
		CASE(limits_hold_and_one_more_is_refused),
		CASE(segments_are_sealed_by_size_and_by_month),
		CASE(a_reader_sees_what_is_committed_across_seals),
		CASE(reading_stops_at_the_limit_or_when_told),
		CASE(bodies_are_found_in_all_segments_and_can_be_erased_for_good),
		CASE(a_record_changed_with_its_checksum_mended_breaks_the_chain),
		CASE(a_changed_body_is_an_error),
		CASE(the_log_stays_small_while_appends_go_on),
		CASE(the_reserve_is_on_disk),
		CASE(a_folder_in_place_of_the_reserve_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
