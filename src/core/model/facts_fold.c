/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts_fold SEED STEPS [EVERY]		random events through apply; prints "SEQ HASH" after every EVERY-th step (1)
 * facts_fold --events SEED STEPS	prints the events as lines of JSON, the form of tests/golden/events/
 *
 * Two builds that print the same have the same core; scripts compare gcc -O0, gcc -O2 and clang this way.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "core/model/random_events.h"

static void print_event(const struct event *event)
{
	AUTO_BUF text = BUF_INIT;

	event_encode(event, &text);
	printf("{\"seq\":%" PRIu64 ",\"time_ms\":%" PRId64
	       ",\"kind\":%d,\"name\":\"%s\",\"event\":%s}\n",
	       event->seq, event->time_ms, (int)event->kind, event_info(event->kind)->name,
	       buf_text(&text));
}

static void fold(uint64_t seed, uint64_t steps, uint64_t every, bool events)
{
	struct random random = { seed };
	struct arena arena;
	struct facts facts;

	arena_init(&arena, 1 << 20);
	facts_init(&facts);
	for (uint64_t step = 1; step <= steps; step++) {
		struct event event;

		arena_reset(&arena);
		event = random_event(&random, &facts, &arena);
		apply(&facts, &event);
		if (events)
			print_event(&event);
		else if (step % every == 0)
			printf("%" PRIu64 " %016" PRIx64 "\n", facts.seq, facts_hash(&facts));
	}
	facts_verify(&facts);
	facts_deinit(&facts);
	arena_deinit(&arena);
}

int main(int argc, char **argv)
{
	bool events = argc > 1 && strcmp(argv[1], "--events") == 0;
	uint64_t numbers[3] = { 0, 0, 1 };

	argv += events;
	argc -= events;
	if (argc < 3 || argc > 4 - events) {
		fputs("usage: facts_fold SEED STEPS [EVERY]\n       facts_fold --events SEED STEPS\n",
		      stderr);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		numbers[i - 1] = strtoull(argv[i], NULL, 10);
	fold(numbers[0], numbers[1], numbers[2] ? numbers[2] : 1, events);
	return 0;
}
