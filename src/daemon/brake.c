/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/brake.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

void brake_deinit(struct brake *brake)
{
	free(brake->slots);
	*brake = (struct brake){ 0 };
}

bool brake_release(struct brake *brake)
{
	bool was = brake->pause_ms > 0;

	if (brake->used) {
		brake->age++;
		brake->used = 0;
	}
	brake->calls = brake->stale = 0;
	brake->happened = false;
	brake->pause_ms = brake->until_ms = 0;
	brake->text[0] = '\0';
	return was;
}

bool brake_happened(struct brake *brake)
{
	bool was = brake->rested && brake_release(brake);

	brake->happened = true;
	brake->until_ms = 0;
	return was;
}

bool brake_rest(struct brake *brake)
{
	bool was = brake->happened && brake_release(brake);

	brake->rested = true;
	return was;
}

/* How often this was decided before. */
static uint32_t seen(struct brake *brake, uint64_t key)
{
	uint32_t at = (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 48) % BRAKE_SLOTS;
	struct brake_slot *slot = &brake->slots[at];

	for (; slot->age == brake->age && slot->key != key; slot = &brake->slots[at])
		at = (at + 1) % BRAKE_SLOTS;
	if (slot->age != brake->age) {
		*slot = (struct brake_slot){ .key = key, .age = brake->age };
		brake->used++;
	}
	return slot->count++;
}

static bool is_new(struct brake *brake, const struct event *events, uint32_t count, uint32_t most)
{
	bool any = false;

	for (uint32_t i = 0; i < count; i++) {
		if (brake->used > BRAKE_SLOTS / 2) {
			brake->age++;
			brake->used = 0;
		}
		any |= seen(brake, (uint64_t)event_subject(&events[i]) << 8 | events[i].kind) <
		       most;
	}
	return any;
}

static void slots_make(struct brake *brake)
{
	if (brake->slots)
		return;
	brake->slots = calloc(BRAKE_SLOTS, sizeof(*brake->slots));
	CHECK(brake->slots);
	brake->age = 1;
}

static void pause_begin(struct brake *brake, int64_t now_ms)
{
	brake->pause_ms = brake->pause_ms ? 2 * brake->pause_ms : BRAKE_PAUSE_FIRST_MS;
	if (brake->pause_ms > BRAKE_PAUSE_MOST_MS)
		brake->pause_ms = BRAKE_PAUSE_MOST_MS;
	brake->until_ms = now_ms + brake->pause_ms;
	brake->on_ms = now_ms;
}

bool brake_note(struct brake *brake, const struct event *events, uint32_t count, int64_t now_ms)
{
	bool on = brake->pause_ms > 0,
	     soon = brake->on_ms && now_ms - brake->on_ms <= BRAKE_WINDOW_MS;

	if (!count)
		return false;
	brake->last_ms = now_ms;
	brake->rested = false;
	if (brake->calls < BRAKE_FREE && !soon) {
		brake->calls++;
		return false;
	}
	slots_make(brake);
	if (is_new(brake, events, count, soon ? BRAKE_SEEN_SOON : BRAKE_SEEN))
		return false;
	if (!on && now_ms - brake->window_ms > BRAKE_WINDOW_MS) {
		brake->window_ms = now_ms;
		brake->stale = 0;
	}
	if (!on && ++brake->stale < (soon ? BRAKE_CALLS_SOON : BRAKE_CALLS))
		return false;
	pause_begin(brake, now_ms);
	if (!on)
		snprintf(
			brake->text, sizeof(brake->text),
			"the same is decided again and again although nothing has happened, as \"%s\" of %lld: there are pauses between, each of which "
			"ends when something happens; this is a defect of Fairlead, please report it",
			event_info(events[0].kind)->name, (long long)event_subject(&events[0]));
	return !on;
}

int64_t brake_left_ms(const struct brake *brake, int64_t now_ms)
{
	return brake->until_ms > now_ms ? brake->until_ms - now_ms : 0;
}

bool brake_is_over(const struct brake *brake, int64_t now_ms)
{
	return brake->pause_ms && now_ms - brake->last_ms > BRAKE_WINDOW_MS;
}
