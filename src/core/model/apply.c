/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/apply.h"

#include <string.h>

#include "base/check.h"
#include "core/model/edit.h"

void apply(struct facts *f, const struct event *event)
{
	if (event->seq > f->seq + 1)
		facts_pass_over(f, event->seq - 1);
	f->seq = event->seq;
	if (event->time_ms > f->now_ms)
		f->now_ms = event->time_ms;
	if (f->searched && event->kind != EVENT_SEARCHED && event->kind != EVENT_DECIDED &&
	    event->kind != EVENT_RESERVATIONS_REVIEWED)
		f->search_stale = true;
	moves_follow(f, event->kind);
	switch (event->kind) {
	case EVENT_NONE:
	case EVENT_KIND_LIMIT: return;
#define EVENT(number, NAME, name, text, must)                                                      \
	case EVENT_##NAME: apply_##name(f, &event->name); return;
#define INT(f)
#define TEXT(f)
#define INTS(f)
#define END
#include "core/model/events.def"
#undef EVENT
#undef INT
#undef TEXT
#undef INTS
#undef END
	}
}

/* --- helpers of all kinds ------------------------------------------------------------------------ */

uint32_t clamp_u32(int64_t value)
{
	return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

int32_t clamp_i32(int64_t value)
{
	return value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

uint16_t clamp_u16(int64_t value)
{
	return value < 0 ? 0 : value > UINT16_MAX ? UINT16_MAX : (uint16_t)value;
}

uint8_t clamp_u8(int64_t value, uint8_t most)
{
	return value < 0 ? 0 : value > most ? most : (uint8_t)value;
}

int64_t clamp_positive(int64_t value)
{
	return value < 0 ? 0 : value;
}

int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

bool list_next(const char **text, char ret[NAME_MAX_BYTES + 1])
{
	const char *start = *text, *end;
	size_t size;

	if (!start || !*start)
		return false;
	end = memchr(start, ',', strlen(start));
	size = name_cut(start, end ? (size_t)(end - start) : strlen(start));
	memcpy(ret, start, size);
	ret[size] = '\0';
	*text = end ? end + 1 : NULL;
	return true;
}

bool names_sorted(struct facts *f, const char *list, const char *prefix, struct name_id *ret,
		  uint32_t room)
{
	char part[NAME_MAX_BYTES + 1], whole[2 * NAME_MAX_BYTES + 1];
	size_t before = strlen(prefix);
	uint32_t count = 0, at;

	memcpy(whole, prefix, before);
	while (list_next(&list, part)) {
		struct name_id name;

		if (!*part)
			continue;
		memcpy(whole + before, part, strlen(part) + 1);
		whole[name_cut(whole, strlen(whole))] = '\0';
		name = facts_intern(f, whole);
		for (at = 0; at < count && strcmp(facts_name(f, ret[at]), facts_name(f, name)) < 0;
		     at++)
			;
		if (at < count && name_same(ret[at], name))
			continue;
		if (count == room)
			return false;
		memmove(&ret[at + 1], &ret[at], (count - at) * sizeof(name));
		ret[at] = name;
		count++;
	}
	return true;
}

enum { HEX_DIGIT = 0x10 }; /* marks a digit in the table: 0 is one too */

static const uint8_t hex_values[256] = {
	['0'] = HEX_DIGIT,      ['1'] = HEX_DIGIT | 1,  ['2'] = HEX_DIGIT | 2,
	['3'] = HEX_DIGIT | 3,  ['4'] = HEX_DIGIT | 4,  ['5'] = HEX_DIGIT | 5,
	['6'] = HEX_DIGIT | 6,  ['7'] = HEX_DIGIT | 7,  ['8'] = HEX_DIGIT | 8,
	['9'] = HEX_DIGIT | 9,  ['a'] = HEX_DIGIT | 10, ['b'] = HEX_DIGIT | 11,
	['c'] = HEX_DIGIT | 12, ['d'] = HEX_DIGIT | 13, ['e'] = HEX_DIGIT | 14,
	['f'] = HEX_DIGIT | 15,
};

/* Each submission has three of them, read twice: no branch for a digit. */
bool hex_parse(const char *text, uint8_t ret[32])
{
	uint8_t all = strlen(text) == 64 ? HEX_DIGIT : 0;

	for (size_t i = 0; all && i < 32; i++) {
		uint8_t high = hex_values[(uint8_t)text[2 * i]],
			low = hex_values[(uint8_t)text[2 * i + 1]];

		all &= high & low;
		ret[i] = (uint8_t)(high << 4 | (low & 15));
	}
	if (!all)
		memset(ret, 0, 32);
	return all != 0;
}

/* --- the daemon and the journal itself ------------------------------------------------------------- */

void apply_daemon_started(struct facts *f, const struct event_daemon_started *e)
{
	(void)f;
	(void)e;
}

void apply_decided(struct facts *f, const struct event_decided *e)
{
	(void)f;
	(void)e;
}

void apply_searched(struct facts *f, const struct event_searched *e)
{
	f->searched = clamp_u32(e->count);
	f->search_stale = f->searched && (f->search_stale || e->stale);
}

void apply_clock_ticked(struct facts *f, const struct event_clock_ticked *e)
{
	(void)f;
	(void)e;
}

static void policy_set(int64_t *ret, int64_t value)
{
	if (value >= 0)
		*ret = value;
}

void apply_policy_set(struct facts *f, const struct event_policy_set *e)
{
	struct policy *p = &f->policy;

	/* What was used until now fades as it did. */
	if (e->half_life_ms >= 0 && e->half_life_ms != p->half_life_ms)
		for (uint32_t id = 1; id <= f->queues.count; id++)
			queue_past_change(f, (struct queue_id){ id }, 0);
	if (e->half_life_ms >= 0 && e->half_life_ms != p->half_life_ms)
		for (uint32_t row = 1; row <= f->pasts.count; row++) {
			const struct past past = *(const struct past *)table_get(&f->pasts, row);

			user_past_change(f, past.queue, past.user, 0);
		}
	policy_set(&p->min_runtime_ms, e->min_runtime_ms);
	policy_set(&p->grace_ms, e->grace_ms);
	policy_set(&p->rejoin_ms, e->rejoin_ms);
	policy_set(&p->default_limit_ms, e->default_limit_ms);
	policy_set(&p->packing, e->packing);
	policy_set(&p->blackhole_failures, e->blackhole_failures);
	policy_set(&p->blackhole_window_ms, e->blackhole_window_ms);
	policy_set(&p->allow_critical_burst, e->allow_critical_burst);
	policy_set(&p->backfill_depth, e->backfill_depth);
	policy_set(&p->collect_after_ms, e->collect_after_ms);
	policy_set(&p->half_life_ms, e->half_life_ms);
	policy_set(&p->order_deadline, e->order_deadline);
	policy_set(&p->order_efficiency, e->order_efficiency);
	policy_set(&p->order_age, e->order_age);
	policy_set(&p->order_user, e->order_user);
	policy_set(&p->order_budget, e->order_budget);
	policy_set(&p->budget_warns, e->budget_warns);
	policy_set(&p->patience, e->patience);
	policy_set(&p->take_turns, e->take_turns);
	policy_set(&p->reserve_unsure_ms, e->reserve_unsure_ms);
	if (e->spot_notice_ms > 0)
		p->spot_notice_ms = e->spot_notice_ms;
	if (e->keep_ended_ms > 0)
		p->keep_ended_ms = e->keep_ended_ms;
	if (e->max_slowdown > 0)
		p->max_slowdown = e->max_slowdown;
	if (e->share_gpus >= SHARE_GPUS_TEAM && e->share_gpus <= SHARE_GPUS_OFF)
		p->share_gpus = e->share_gpus;
	if (e->defragment >= DEFRAGMENT_ON_DEMAND && e->defragment <= DEFRAGMENT_OFF)
		p->defragment = e->defragment;
	if (e->defragment_moves > 0)
		p->defragment_moves = e->defragment_moves;
	if (e->defragment_work_ms > 0)
		p->defragment_work_ms = e->defragment_work_ms;
}
