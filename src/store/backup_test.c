/* SPDX-License-Identifier: Apache-2.0 */
/* A backup is taken while records are appended, unpacked with the system's tar, and opened as a data folder. */
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/journal.h"
#include "store/seal.h"
#include "store/snapshot.h"
#include "store/testing/store_test.h"

extern char **environ;

struct appending {
	struct journal *journal;
	atomic_bool stop;
	atomic_uint_fast64_t acknowledged;
};

static void append_one(struct journal *journal, uint64_t seq)
{
	char text[STORE_TEST_TEXT_MAX];
	struct record record;
	struct err err;
	store_test_record(seq, text, &record);
	if (journal_append(journal, &record, 1, NULL, 0, false, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
}

static void *append_main(void *context)
{
	struct appending *a = context;
	for (uint64_t seq = atomic_load(&a->acknowledged) + 1; !atomic_load(&a->stop) && seq < 5000;
	     seq++) {
		append_one(a->journal, seq);
		atomic_store(&a->acknowledged, seq);
	}
	return NULL;
}

static void unpack(const char *file, const char *to)
{
	char *const argv[] = { "tar", "-xf", (char *)(uintptr_t)file, "-C", (char *)(uintptr_t)to,
			       NULL };
	pid_t pid;
	int status;
	assert_int_equal(mkdir(to, 0700), 0);
	assert_int_equal(posix_spawnp(&pid, "tar", NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void take_a_snapshot(const char *folder, struct journal *journal)
{
	struct journal_state now;
	struct snapshot_writer *w;
	struct err err;
	journal_state(journal, &now);
	struct snapshot_head head = { .seq = now.last_seq,
				      .chain = now.last_hash,
				      .build = "test" };
	assert_int_equal(snapshot_create(folder, NULL, &head, &w, &err), 0);
	assert_int_equal(snapshot_write(w, 1, "{}", 2, &err), 0);
	assert_int_equal(snapshot_commit(w, &err), 0);
}

static int take_nothing(void *context, uint32_t kind, const char *text, size_t size)
{
	(void)context;
	(void)kind;
	(void)text;
	(void)size;
	return 0;
}

static void expect_restored(const char *folder, uint64_t least, struct digest sealed_name)
{
	struct journal *journal;
	struct seal_key *key = NULL;
	struct err err;
	struct journal_state now;
	struct snapshot_head head;
	struct journal_options options = { .folder = folder };
	if (journal_open(&options, &journal, &err) < 0 ||
	    seal_key_open(folder, false, &key, &err) < 0)
		fail_msg("%s", err.text);
	journal_state(journal, &now);
	assert_true(now.last_seq >= least);
	assert_false(now.damaged);
	struct store_test_reading reading = { .next = 1 };
	struct journal_reader reader = { &reading, store_test_take, store_test_damaged };
	assert_int_equal(journal_read(journal, 1, 0, true, &reader, &err), 0);
	assert_int_equal(reading.wrong, 0);
	assert_int_equal(reading.damaged, 0);
	assert_int_equal(reading.next, now.last_seq + 1);
	void *data;
	size_t size;
	AUTO_BUF plain = BUF_INIT;
	assert_int_equal(journal_blob(journal, &sealed_name, &data, &size, &err), 0);
	assert_int_equal(seal_open_bytes(key, data, size, &plain, &err), 0);
	assert_string_equal(buf_text(&plain), "the body");
	free(data);
	assert_int_equal(
		snapshot_load(folder, NULL, now.last_seq, &head, NULL, take_nothing, NULL, &err),
		0);
	append_one(journal, now.last_seq + 1);
	seal_key_close(key);
	journal_close(journal);
}

static void a_backup_taken_while_appending_is_a_whole_data_folder(void **state)
{
	struct store_test_folder *folder = *state;
	struct appending a = { 0 };
	struct err err;
	struct seal_key *key = NULL;
	AUTO_BUF sealed = BUF_INIT;
	struct digest name;
	char data[80], file[80], to[90];
	snprintf(data, sizeof(data), "%s/data", folder->path);
	snprintf(file, sizeof(file), "%s/backup.tar", folder->path);
	struct journal_options options = {
		.folder = data, .create = true, .segment_bytes = 20000, .reserve_bytes = -1
	};
	if (journal_open(&options, &a.journal, &err) < 0 ||
	    seal_key_open(data, true, &key, &err) < 0)
		fail_msg("%s", err.text);
	seal_close_bytes(key, "the body", 8, &sealed, &name);
	struct blob blob = { name, sealed.data, sealed.size };
	char text[STORE_TEST_TEXT_MAX];
	struct record record;
	store_test_record(1, text, &record);
	assert_int_equal(journal_append(a.journal, &record, 1, &blob, 1, false, &err), 0);
	atomic_store(&a.acknowledged, 1);
	take_a_snapshot(data, a.journal);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, append_main, &a), 0);
	for (int i = 0; i < 5; i++) {
		uint64_t least = atomic_load(&a.acknowledged);
		if (journal_backup(data, file, &err) != 0)
			fail_msg("%s", err.text);
		struct stat st;
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		snprintf(to, sizeof(to), "%s/restored%d", folder->path, i);
		unpack(file, to);
		expect_restored(to, least, name);
	}
	atomic_store(&a.stop, true);
	pthread_join(thread, NULL);
	seal_key_close(key);
	journal_close(a.journal);
}

static void a_backup_of_nothing_is_refused_and_leaves_no_file(void **state)
{
	struct store_test_folder *folder = *state;
	struct err err;
	char file[80];
	snprintf(file, sizeof(file), "%s/backup.tar", folder->path);
	assert_true(journal_backup(folder->path, file, &err) < 0);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_not_equal(access(file, F_OK), 0);
	snprintf(file, sizeof(file), "%s/backup.tar.tmp", folder->path);
	assert_int_not_equal(access(file, F_OK), 0);
	assert_true(journal_backup(folder->path, "/nowhere/backup.tar", &err) < 0);
	assert_int_equal(err.code, ERR_IO);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, store_test_setup, store_test_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_backup_taken_while_appending_is_a_whole_data_folder),
		CASE(a_backup_of_nothing_is_refused_and_leaves_no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
