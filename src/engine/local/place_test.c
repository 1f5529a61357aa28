/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/local/fact_file.h"
#include "engine/local/place.h"
#include "store/testing/io_disk.h"

enum { SEEDS = 6 };

static const struct engine_fact ending = { .kind = ENGINE_EXITED,
					   .attempt = 4,
					   .rank = 2,
					   .cause = ENGINE_CAUSE_EXIT,
					   .code = 7,
					   .step = -1 };

/* --- power loss --- */

/* What a crash may leave of "/d/exit": nothing, or the record whole. 1 = it is there, 0 = not, -1 =
 * torn. */
static int look(struct io_disk *disk)
{
	struct engine_fact fact;
	char *text;
	size_t size;
	int result = io_read_file(io_disk_io(disk), "/d/exit", 1 << 20, &text, &size);

	if (result < 0)
		return 0;
	result = fact_parse(text, size, &fact, NULL) == 0 && fact.kind == ENGINE_EXITED &&
				 fact.code == 7
			 ? 1
			 : -1;
	free(text);
	return result;
}

struct trial {
	struct io_disk *disk;
	bool done; /* the record was acknowledged */
	unsigned wrong; /* torn, or acknowledged and gone */
	unsigned crashes;
};

static void crash(struct trial *trial)
{
	for (int how = 0; how < IO_CRASHES; how++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct io_disk *after =
				io_disk_crash(trial->disk, (enum io_crash)how, seed);
			int found = look(after);

			trial->wrong += found < 0 || (trial->done && found == 0);
			trial->crashes++;
			io_disk_destroy(after);
		}
}

static void crash_before(void *trial, enum io_call call, const char *path)
{
	(void)call;
	(void)path;
	crash(trial);
}

/* A record's way with a crash before each call and after the last; `skip` leaves out the syncs of
 * that kind. */
static unsigned wrongs_without(int skip, const char *pattern, unsigned *ret_crashes)
{
	struct trial trial = { .disk = io_disk_create() };
	struct io *io = io_disk_io(trial.disk);

	assert_int_equal(place_reserve_exit(io, "/d", NULL), 0);
	if (skip >= 0)
		io_disk_skip(trial.disk, (enum io_call)skip, IO_SKIP_ALL, pattern);
	io_disk_watch(trial.disk, &trial, crash_before);
	assert_int_equal(place_put_exit(io, "/d", &ending, NULL), 0);
	io_disk_watch(trial.disk, NULL, NULL);
	trial.done = true;
	crash(&trial);
	io_disk_destroy(trial.disk);
	*ret_crashes = trial.crashes;
	return trial.wrong;
}

static void an_exit_record_survives_power_loss_whole_or_not_at_all(void **state)
{
	unsigned crashes;

	(void)state;
	assert_int_equal(wrongs_without(-1, NULL, &crashes), 0);
	assert_true(crashes >= 5 * IO_CRASHES * SEEDS);
}

/* Each sync is needed: without it the test above would fail. */
static void without_either_sync_a_record_is_torn_or_lost(void **state)
{
	unsigned crashes;

	(void)state;
	assert_true(wrongs_without(IO_SYNC, "*", &crashes) > 0);
	assert_true(wrongs_without(IO_SYNC_FOLDER, "*", &crashes) > 0);
}

static void every_failing_call_is_told_and_the_next_try_succeeds(void **state)
{
	static const enum io_call calls[] = { IO_OPEN, IO_WRITE,  IO_TRUNCATE,
					      IO_SYNC, IO_RENAME, IO_SYNC_FOLDER };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct trial trial = { .disk = io_disk_create() };
		struct io *io = io_disk_io(trial.disk);
		struct err err = { 0 };

		assert_int_equal(place_reserve_exit(io, "/d", NULL), 0);
		io_disk_fail(trial.disk, calls[i], 1, EIO);
		assert_true(place_put_exit(io, "/d", &ending, &err) < 0);
		assert_true(io_disk_failed(trial.disk) && err.text[0]);
		assert_int_equal(place_put_exit(io, "/d", &ending, &err), 0);
		trial.done = true;
		crash(&trial);
		assert_int_equal(trial.wrong, 0);
		io_disk_destroy(trial.disk);
	}
}

static void a_full_disk_still_takes_the_exit_record(void **state)
{
	struct trial trial = { .disk = io_disk_create() };
	struct io *io = io_disk_io(trial.disk);

	(void)state;
	assert_int_equal(place_reserve_exit(io, "/d", NULL), 0);
	io_disk_capacity(trial.disk, io_disk_used(trial.disk));
	assert_true(place_put_durable(io, "/d", "other", "x", 1, NULL) < 0);
	assert_int_equal(place_put_exit(io, "/d", &ending, NULL), 0);
	assert_int_equal(look(trial.disk), 1);
	io_disk_destroy(trial.disk);
}

/* --- real folders --- */

static int set_up(void **state)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/fairlead-place-XXXXXX");
	assert_non_null(mkdtemp(path));
	*state = path;
	return 0;
}

static int tear_down(void **state)
{
	char *const words[] = { "rm", "-r", *state, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		execvp("rm", words);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	return 0;
}

static int open_folder(void **state)
{
	int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void a_lock_is_seen_while_its_holder_lives_and_not_after(void **state)
{
	int folder = open_folder(state), ready[2];
	char byte;

	assert_true(place_is_locked(-1)); /* it can't be looked at: nobody may be taken for dead */
	assert_false(place_is_locked(folder));
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (place_lock(folder, NULL) < 0 || write(ready[1], "!", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(place_is_locked(folder));
	struct err err;
	assert_int_equal(place_lock(folder, &err), -(int)ERR_CONFLICT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(place_is_locked(folder));
	close(ready[0]);
	close(ready[1]);
	close(folder);
}

/* The engine locks, the shepherd inherits: the engine's end does not free it. */
static void a_lock_handed_over_outlives_the_one_who_took_it(void **state)
{
	int folder = open_folder(state), lock = place_lock(folder, NULL);

	assert_true(lock >= 0);
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	close(lock);
	assert_true(place_is_locked(folder));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(place_is_locked(folder));
	close(folder);
}

static void commands_are_numbered(void **state)
{
	int folder = open_folder(state);

	assert_int_equal(place_newest_command(folder, "stop"), 0);
	assert_int_equal(place_put_command(folder, "stop", 2, 30000, NULL), 0);
	assert_int_equal(place_put_command(folder, "stop", 11, 5, NULL), 0);
	assert_int_equal(place_put_command(folder, "warn", 40, 1, NULL), 0);
	assert_int_equal(place_newest_command(folder, "stop"), 11);
	assert_int_equal(place_read_grace(folder, "stop.2"), 30000);
	assert_int_equal(place_read_grace(folder, "stop.3"), 0);
	assert_int_equal(place_command_number("stop.7", "stop"), 7);
	assert_int_equal(place_command_number("stop.7.tmp", "stop"), 0);
	assert_int_equal(place_command_number("stops.7", "stop"), 0);
	assert_int_equal(place_command_number("warn.7", "stop"), 0);
	close(folder);
}

static void files_are_not_read_through_links_and_pipes_do_not_block(void **state)
{
	int folder = open_folder(state);
	AUTO_BUF text = BUF_INIT;

	assert_int_equal(symlinkat("/etc/passwd", folder, "exit"), 0);
	assert_true(place_read(folder, "exit", &text, NULL) < 0);
	assert_int_equal(place_read(folder, "none", &text, NULL), 1);
	assert_int_equal(mkfifoat(folder, "ready", 0600), 0);
	assert_int_equal(place_read(folder, "ready", &text, NULL), 0);
	assert_int_equal(text.size, 0);
	close(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exit_record_survives_power_loss_whole_or_not_at_all),
		cmocka_unit_test(without_either_sync_a_record_is_torn_or_lost),
		cmocka_unit_test(every_failing_call_is_told_and_the_next_try_succeeds),
		cmocka_unit_test(a_full_disk_still_takes_the_exit_record),
		cmocka_unit_test_setup_teardown(a_lock_is_seen_while_its_holder_lives_and_not_after,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_lock_handed_over_outlives_the_one_who_took_it,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(commands_are_numbered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			files_are_not_read_through_links_and_pipes_do_not_block, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
