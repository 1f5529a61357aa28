/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden journals: events written by an earlier release, and the hashes of the states they lead to. Each release
 * leaves a pair vN.jsonl, vN.hash in tests/golden/events, and every later one must read the events, write them
 * the same, and reach the same states.
 */
#include "base/testing.h"

#include <dirent.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "core/model/facts.h"

static const char *folder;

struct line {
	uint64_t seq;
	int64_t time_ms;
	uint64_t kind;
	const char *event;
	size_t size;
};

static void line_read(const char *text, size_t size, struct line *ret)
{
	struct json_reader r;
	struct json_slice key;
	struct err err;

	memset(ret, 0, sizeof(*ret));
	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "seq")) {
			pull_uint(&r, &ret->seq);
		} else if (pull_key_is(&key, "time_ms")) {
			pull_int(&r, &ret->time_ms);
		} else if (pull_key_is(&key, "kind")) {
			pull_uint(&r, &ret->kind);
		} else if (pull_key_is(&key, "event")) {
			ret->event = r.at;
			pull_skip(&r);
			ret->size = (size_t)(r.at - ret->event);
		} else {
			pull_skip(&r);
		}
	}
	if (pull_finish(&r, &err) < 0)
		fail_msg("%.*s: %s", (int)size, text, err.text);
	assert_non_null(ret->event);
}

static void replay_line(struct facts *f, struct arena *arena, const char *text, size_t size)
{
	AUTO_BUF again = BUF_INIT;
	struct event event;
	struct line line;
	struct err err;

	line_read(text, size, &line);
	if (event_decode((uint32_t)line.kind, line.seq, line.time_ms, line.event, line.size, arena,
			 &event, &err) < 0)
		fail_msg("%s", err.text);
	event_encode(&event, &again);
	assert_int_equal(again.size, line.size);
	assert_memory_equal(again.data, line.event, line.size);
	apply(f, &event);
}

static FILE *open_golden(const char *name, const char *ending)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%.*s%s", folder, (int)strcspn(name, "."), name, ending);
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s can't be opened", path);
	return file;
}

static void replay_file(const char *name)
{
	FILE *events = open_golden(name, ".jsonl"), *hashes = open_golden(name, ".hash");
	uint64_t seq = 0, hash = 0;
	uint32_t compared = 0;
	struct arena arena;
	struct facts f;
	char *text = NULL;
	size_t room = 0;
	ssize_t size;

	arena_init(&arena, 1 << 20);
	facts_init(&f);
	while ((size = getline(&text, &room, events)) > 0) {
		arena_reset(&arena);
		replay_line(&f, &arena, text, (size_t)size);
		if (f.seq > seq && fscanf(hashes, "%" SCNu64 " %" SCNx64, &seq, &hash) != 2)
			seq = UINT64_MAX;
		if (f.seq != seq)
			continue;
		if (facts_hash(&f) != hash)
			fail_msg("%s: after event %" PRIu64 " the state's hash is %016" PRIx64
				 ", not %016" PRIx64,
				 name, seq, facts_hash(&f), hash);
		compared++;
	}
	assert_true(seq == f.seq);
	assert_true(compared > 10);
	facts_verify(&f);
	free(text);
	facts_deinit(&f);
	arena_deinit(&arena);
	fclose(events);
	fclose(hashes);
}

static void golden_events_lead_to_the_same_states(void **state)
{
	DIR *dir = opendir(folder);
	uint32_t files = 0;

	(void)state;
	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (!strstr(entry->d_name, ".jsonl"))
			continue;
		replay_file(entry->d_name);
		files++;
	}
	closedir(dir);
	assert_true(files > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_events_lead_to_the_same_states),
	};

	folder = argc > 1 ? argv[1] : "tests/golden/events";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
