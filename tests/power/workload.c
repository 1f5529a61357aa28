/* SPDX-License-Identifier: Apache-2.0 */
#include "workload.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/journal.h"
#include "store/seal.h"
#include "store/snapshot.h"
#include "store/testing/store_test.h"

enum { GROUP_MAX = 8, BODY_MAX = 256, SNAPSHOT_RECORDS = 5, WAL_BYTES = 48 << 10 };

static const char sealed_text[] = "canary: the key must open this";

uint64_t campaign_factor(void)
{
	const char *text = getenv("FAIRLEAD_CAMPAIGN");
	unsigned long long factor = text ? strtoull(text, NULL, 10) : 1;
	return factor ? factor : 1;
}

static uint64_t chance(struct workload *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return w->random >> 33;
}

static int problem_at(char problem[VIOLATION_MAX], const char *format, ...) PRINTF_LIKE(2, 3);
static int problem_at(char problem[VIOLATION_MAX], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(problem, VIOLATION_MAX, format, args);
	va_end(args);
	return -1;
}

/* Small, so that thousands of commits and checks of them fit a test. */
static void small_record(uint64_t seq, char text[STORE_TEST_TEXT_MAX], struct record *ret)
{
	store_test_record_sized(seq, 20 + (size_t)(seq % 30), text, ret);
}

static bool has_body(uint64_t seq)
{
	return seq % 4 == 0 && seq != 4; /* 4's is the sealed one */
}

static void body_of(uint64_t seq, uint8_t data[BODY_MAX], struct blob *ret)
{
	size_t size = 30 + (size_t)(seq * 13 % 200);
	uint64_t mix = seq;
	for (size_t i = 0; i < size; i++) {
		mix = mix * 6364136223846793005u + 1442695040888963407u;
		data[i] = (uint8_t)(mix >> 56);
	}
	*ret = (struct blob){ .digest = digest_of(data, size), .data = data, .size = size };
}

static bool is_erased(const struct promise *promise, uint64_t seq)
{
	return promise->erased[seq / 8] >> (seq % 8) & 1;
}

void workload_init(struct workload *w, struct io_disk *disk, uint64_t seed)
{
	*w = (struct workload){ .disk = disk, .random = seed * 0x9e3779b97f4a7c15u + 1 };
}

static void on_damage(void *context, uint64_t seq, const char *what)
{
	struct workload *w = context;
	w->reports++;
	snprintf(w->problem, sizeof(w->problem), "damage reported (record %llu): %s",
		 (unsigned long long)seq, what);
}

static int fail_with(struct workload *w, const struct err *err)
{
	snprintf(w->problem, sizeof(w->problem), "%s", err->text);
	return -1;
}

int workload_open(struct workload *w)
{
	struct err err;
	struct io *io = io_disk_io(w->disk);
	struct journal_options options = {
		.folder = WORKLOAD_FOLDER,
		.io = io,
		.create = !w->promise.opened,
		.inline_checkpoint = true,
		.wal_bytes = WAL_BYTES,
		.reserve_bytes = 256 << 10,
		.segment_bytes = 64 << 10,
		.damaged_context = w,
		.damaged = on_damage,
	};
	if (journal_open(&options, &w->journal, &err) < 0)
		return fail_with(w, &err);
	w->promise.opened = true;
	w->promise.version++;
	if (seal_key_open_io(WORKLOAD_FOLDER, io, !w->promise.keyed, &w->key, &err) < 0)
		return fail_with(w, &err);
	return 0;
}

void workload_close(struct workload *w)
{
	journal_close(w->journal);
	w->journal = NULL;
	seal_key_close(w->key);
	w->key = NULL;
}

void workload_deinit(struct workload *w)
{
	workload_close(w);
	io_disk_destroy(w->disk);
}

int workload_append(struct workload *w, unsigned group)
{
	struct record records[GROUP_MAX];
	struct blob blobs[GROUP_MAX];
	char texts[GROUP_MAX][STORE_TEST_TEXT_MAX];
	uint8_t bodies[GROUP_MAX][BODY_MAX];
	size_t blob_count = 0;
	AUTO_BUF sealed = BUF_INIT;
	struct err err;
	struct promise *promise = &w->promise;
	CHECK(promise->last_seq + group < WORKLOAD_SEQ_MAX);
	for (unsigned i = 0; i < group; i++) {
		uint64_t seq = promise->last_seq + 1 + i;
		small_record(seq, texts[i], &records[i]);
		if (has_body(seq))
			body_of(seq, bodies[i], &blobs[blob_count++]);
		if (seq == 4) {
			seal_close_bytes(w->key, sealed_text, sizeof(sealed_text), &sealed,
					 &promise->sealed_name);
			blobs[blob_count++] =
				(struct blob){ promise->sealed_name, sealed.data, sealed.size };
		}
	}
	promise->trying_seq = promise->last_seq + group;
	promise->version++;
	int result =
		journal_append(w->journal, records, group, blobs, blob_count, w->essential, &err);
	if (result < 0)
		return fail_with(w, &err);
	if (result == JOURNAL_FULL) {
		w->full++;
		promise->trying_seq = promise->last_seq;
	} else {
		promise->last_seq = promise->trying_seq;
		promise->keyed = promise->keyed || promise->last_seq >= 4;
	}
	promise->version++;
	return 0;
}

int workload_snapshot(struct workload *w)
{
	struct err err;
	struct snapshot_writer *writer;
	struct journal_state state;
	char text[STORE_TEST_TEXT_MAX];
	struct record record;
	journal_state(w->journal, &state);
	struct snapshot_head head = { .seq = state.last_seq,
				      .time_ms = state.last_time_ms,
				      .chain = state.last_hash,
				      .state_hash = state.last_seq * 3,
				      .build = "test" };
	if (snapshot_create(WORKLOAD_FOLDER, io_disk_io(w->disk), &head, &writer, &err) < 0)
		return fail_with(w, &err);
	for (uint64_t i = 0; i < SNAPSHOT_RECORDS; i++) {
		small_record(state.last_seq + i, text, &record);
		if (snapshot_write(writer, record.kind, record.text, record.size, &err) < 0) {
			snapshot_abandon(writer);
			return fail_with(w, &err);
		}
	}
	if (snapshot_commit(writer, &err) < 0)
		return fail_with(w, &err);
	w->promise.snapshot_seq = state.last_seq;
	w->promise.version++;
	return 0;
}

int workload_seal(struct workload *w)
{
	struct err err;
	return journal_seal(w->journal, &err) < 0 ? fail_with(w, &err) : 0;
}

static int workload_erase(struct workload *w)
{
	struct promise *promise = &w->promise;
	uint64_t seq = chance(w) % (promise->last_seq + 1) / 4 * 4;
	struct err err;
	struct blob body;
	uint8_t data[BODY_MAX];
	if (seq == 0 || !has_body(seq) || is_erased(promise, seq))
		return 0;
	body_of(seq, data, &body);
	promise->erasing = seq;
	promise->version++;
	if (journal_blob_erase(w->journal, &body.digest, &err) < 0)
		return fail_with(w, &err);
	promise->erased[seq / 8] = (uint8_t)(promise->erased[seq / 8] | 1u << (seq % 8));
	promise->erasing = 0;
	promise->last_erased = seq;
	promise->version++;
	return 0;
}

int workload_step(struct workload *w)
{
	uint64_t dice = chance(w) % 100;
	if (dice < 86 || w->promise.last_seq < 8)
		return workload_append(w, 1 + (unsigned)(chance(w) % 4));
	if (dice < 91)
		return workload_snapshot(w);
	if (dice < 93)
		return workload_seal(w);
	if (dice < 97)
		return workload_erase(w);
	workload_close(w);
	return workload_open(w);
}

/* ---- the check ---- */

struct check {
	uint64_t next;
	uint64_t damaged;
	bool wrong;
	const struct snapshot_head *head;
	uint64_t snapshot_records;
	char *problem;
};

static int check_record(void *context, const struct record *record, const struct digest *hash)
{
	struct check *check = context;
	char text[STORE_TEST_TEXT_MAX];
	struct record expected;
	(void)hash;
	small_record(record->seq, text, &expected);
	if (record->seq != check->next || record->time_ms != expected.time_ms ||
	    record->kind != expected.kind || record->must_understand != expected.must_understand ||
	    record->size != expected.size || memcmp(record->text, text, expected.size) != 0) {
		check->wrong = true;
		problem_at(check->problem, "record %llu came back changed, or instead of %llu",
			   (unsigned long long)record->seq, (unsigned long long)check->next);
	}
	check->next = record->seq + 1;
	return 0;
}

static void check_damage(void *context, uint64_t seq, const char *what)
{
	struct check *check = context;
	check->damaged++;
	problem_at(check->problem, "record %llu: %s", (unsigned long long)seq, what);
}

static int check_body(const struct promise *promise, struct journal *journal, uint64_t seq,
		      char *problem)
{
	struct blob body;
	uint8_t bytes[BODY_MAX];
	void *data;
	size_t size;
	struct err err;
	if (!has_body(seq))
		return 0;
	body_of(seq, bytes, &body);
	int result = journal_blob(journal, &body.digest, &data, &size, &err);
	if (result < 0 && err.code == ERR_NOT_FOUND &&
	    (is_erased(promise, seq) || promise->erasing == seq))
		return 0;
	if (result < 0)
		return problem_at(problem, "body of record %llu: %s", (unsigned long long)seq,
				  err.text);
	bool equal = size == body.size && memcmp(data, bytes, size) == 0;
	free(data);
	if (is_erased(promise, seq))
		return problem_at(problem, "body of record %llu came back after it was erased",
				  (unsigned long long)seq);
	return equal ? 0
		     : problem_at(problem, "body of record %llu came back changed",
				  (unsigned long long)seq);
}

static int check_sealed(const struct promise *promise, const struct workload *w, char *problem)
{
	void *data;
	size_t size;
	struct err err;
	AUTO_BUF plain = BUF_INIT;
	if (!promise->keyed)
		return 0;
	if (journal_blob(w->journal, &promise->sealed_name, &data, &size, &err) < 0)
		return problem_at(problem, "the sealed body: %s", err.text);
	int result = seal_open_bytes(w->key, data, size, &plain, &err);
	free(data);
	if (result < 0)
		return problem_at(problem, "the sealed body: %s", err.text);
	return plain.size == sizeof(sealed_text)
		       ? 0
		       : problem_at(problem, "the sealed body came back changed");
}

static int take_snapshot_record(void *context, uint32_t kind, const char *text, size_t size)
{
	struct check *check = context;
	char expected_text[STORE_TEST_TEXT_MAX];
	struct record expected;
	small_record(check->head->seq + check->snapshot_records++, expected_text, &expected);
	if (kind != expected.kind || size != expected.size ||
	    memcmp(text, expected_text, size) != 0)
		check->wrong = true;
	return 0;
}

static void snapshot_passed_over(void *context, const char *name, const char *why)
{
	struct check *check = context;
	check->wrong = true;
	problem_at(check->problem, "snapshot %s: %s", name, why);
}

static int check_snapshot(const struct promise *promise, struct io_disk *disk, uint64_t last,
			  char *problem)
{
	struct snapshot_head head = { 0 };
	struct err err;
	struct check check = { .problem = problem,
			       .head = &head }; /* the head comes before the records */
	int result = snapshot_load(WORKLOAD_FOLDER, io_disk_io(disk), UINT64_MAX, &head, &check,
				   take_snapshot_record, snapshot_passed_over, &err);
	if (result < 0)
		return problem_at(problem, "snapshot: %s", err.text);
	if (check.wrong)
		return problem_at(problem, "a snapshot is wrong");
	if (result == SNAPSHOT_NONE && promise->snapshot_seq == 0)
		return 0;
	if (result == SNAPSHOT_NONE || head.seq < promise->snapshot_seq)
		return problem_at(problem, "snapshot %llu was acknowledged and is gone",
				  (unsigned long long)promise->snapshot_seq);
	if (head.seq > last || check.snapshot_records != SNAPSHOT_RECORDS ||
	    head.state_hash != head.seq * 3)
		return problem_at(problem, "snapshot %llu is wrong", (unsigned long long)head.seq);
	return 0;
}

static int check_records(const struct promise *promise, struct workload *w, uint64_t from,
			 uint64_t *ret_last, char *problem)
{
	struct journal_state state;
	struct err err;
	journal_state(w->journal, &state);
	*ret_last = state.last_seq;
	if (w->reports || state.damaged)
		return problem_at(problem, "%s", w->problem);
	if (state.last_seq != promise->last_seq && state.last_seq != promise->trying_seq)
		return problem_at(
			problem, "last record is %llu; %llu was acknowledged, %llu under way",
			(unsigned long long)state.last_seq, (unsigned long long)promise->last_seq,
			(unsigned long long)promise->trying_seq);
	struct check check = { .next = from, .problem = problem };
	struct journal_reader reader = { &check, check_record, check_damage };
	if (journal_read(w->journal, from, 0, true, &reader, &err) != 0)
		return problem_at(problem, "reading: %s", err.text);
	if (check.damaged || check.wrong)
		return -1;
	if (state.last_seq >= from && check.next != state.last_seq + 1)
		return problem_at(problem, "reading ended at record %llu of %llu",
				  (unsigned long long)check.next - 1,
				  (unsigned long long)state.last_seq);
	return 0;
}

static int check_all(const struct promise *promise, struct workload *w, enum promise_part part,
		     uint64_t *ret_last, char *problem)
{
	enum { END = 12 };
	uint64_t from = part != PROMISE_ALL && promise->last_seq > END
	? promise->last_seq - END : 1;
	int result = check_records(promise, w, from, ret_last, problem);
	for (uint64_t seq = from; seq <= *ret_last && result == 0; seq++)
		if (part == PROMISE_ALL || !is_erased(promise, seq))
			result = check_body(promise, w->journal, seq, problem);
	if (result == 0 && part == PROMISE_ALL)
		result = check_sealed(promise, w, problem);
	if (result == 0 && part != PROMISE_END)
		result = check_snapshot(promise, w->disk, *ret_last, problem);
	return result;
}

int promise_check(const struct promise *promise, struct io_disk *disk, enum promise_part part,
		  uint64_t *ret_last, char problem[VIOLATION_MAX])
{
	struct workload w;
	workload_init(&w, disk, 1);
	w.promise.opened = promise->opened;
	w.promise.keyed = promise->keyed;
	int result = workload_open(&w);
	*ret_last = 0;
	if (result < 0)
		problem_at(problem, "opening: %s", w.problem);
	else
		result = check_all(promise, &w, part, ret_last, problem);
	workload_close(&w);
	return result;
}

/* What a start found and may act on is kept, even if the power goes at once. */
static int check_belief(const struct promise *promise, struct io_disk *disk, uint64_t seed,
			uint64_t last, char *problem)
{
	struct promise believed = *promise;
	believed.last_seq = believed.trying_seq = last;
	struct io_disk *crashed = io_disk_crash(disk, IO_FORGET, seed);
	int result = promise_check(&believed, crashed, PROMISE_END, &last, problem);
	io_disk_destroy(crashed);
	return result;
}

int promise_check_on(const struct promise *promise, struct io_disk *disk, uint64_t seed,
		     char problem[VIOLATION_MAX])
{
	struct workload w;
	uint64_t last;
	workload_init(&w, disk, seed);
	w.promise = *promise;
	int result = workload_open(&w);
	if (result < 0)
		return problem_at(problem, "opening: %s", w.problem);
	result = check_all(promise, &w, PROMISE_END, &last, problem);
	if (result == 0)
		result = check_belief(promise, disk, seed, last, problem);
	w.promise.last_seq = w.promise.trying_seq = last;
	for (int i = 0; i < 3 && result == 0; i++) {
		result = workload_append(&w, 1 + (unsigned)(seed % 3));
		if (result < 0)
			problem_at(problem, "going on: %s", w.problem);
	}
	struct io_disk *again = io_disk_crash(disk, IO_FORGET, seed);
	workload_close(&w);
	if (result == 0)
		result = promise_check(&w.promise, again, PROMISE_END, &last, problem);
	io_disk_destroy(again);
	return result;
}
