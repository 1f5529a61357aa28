/* SPDX-License-Identifier: Apache-2.0 */
#include "api/event_words.h"

#include <inttypes.h>
#include <string.h>

#include "api/tally.h"
#include "base/check.h"
#include "base/json.h"
#include "core/model/event.h"

enum { NAMES_SHOWN = 4, FIELD_ROOM = 32, LIST_READ = 4096 };

static const struct {
	bool bookkeeping;
	const char *words;
} table[EVENT_KIND_LIMIT] = {
#define WORDS(kind, text) [EVENT_##kind] = { false, text },
#define BOOKKEEPING(kind, text) [EVENT_##kind] = { true, text },
#include "api/event_words.def"
#undef WORDS
#undef BOOKKEEPING
};

bool event_is_bookkeeping(uint32_t kind)
{
	return kind < EVENT_KIND_LIMIT && table[kind].bookkeeping;
}

/* --- fields ---------------------------------------------------------------------------------------------------------- */

/* Stands at the value of the field; false: it has none, as zero and empty ones. */
static bool field_find(const struct event_text *e, const char *name, struct json_reader *r)
{
	struct json_slice key;

	pull_init(r, e->text, e->size);
	pull_object(r);
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, name))
			return true;
		pull_skip(r);
	}
	return false;
}

static int64_t field_number(const struct event_text *e, const char *name)
{
	struct json_reader r;
	int64_t value = 0;

	if (field_find(e, name, &r) && pull_peek(&r) == PULL_NUMBER)
		pull_int(&r, &value);
	return value;
}

static const char *field_text(const struct event_text *e, const char *name, struct arena *arena)
{
	struct json_reader r;
	struct json_slice slice = { 0 };
	const char *text;

	if (!field_find(e, name, &r) || pull_peek(&r) != PULL_STRING)
		return "";
	pull_string(&r, &slice);
	text = pull_text(&r, &slice, arena);
	return text ? text : "";
}

static size_t field_list(const struct event_text *e, const char *name, uint64_t *ret, size_t room)
{
	struct json_reader r;
	size_t count = 0;

	if (!field_find(e, name, &r) || pull_peek(&r) != PULL_ARRAY)
		return 0;
	pull_array(&r);
	while (pull_element(&r)) {
		uint64_t value = 0;

		pull_uint(&r, &value);
		if (ret && count < room)
			ret[count] = value;
		count++;
	}
	return count;
}

static bool field_is_set(const struct event_text *e, const char *name, struct arena *arena)
{
	return field_number(e, name) || *field_text(e, name, arena) || field_list(e, name, NULL, 0);
}

/* --- names ----------------------------------------------------------------------------------------------------------- */

uint32_t event_job(const struct facts *f, const struct event_text *e)
{
	const int64_t job = field_number(e, "job"), attempt = field_number(e, "attempt");

	if (job > 0)
		return (uint32_t)job;
	return attempt > 0 && attempt_is_there(f, attempt)
		       ? attempt_get(f, (struct attempt_id){ (uint32_t)attempt })->job.v
		       : 0;
}

static void job_add(const struct facts *f, uint32_t id, const char *name, struct buf *out)
{
	if (!id) {
		buf_adds(out, "a job");
		return;
	}
	if (!*name && job_is_there(f, id))
		name = facts_name(f, job_get(f, (struct job_id){ id })->name);
	buf_addf(out, *name ? "job %u (%s)" : "job %u", id, name);
}

static void attempt_add(const struct facts *f, const struct event_text *e, struct buf *out)
{
	const int64_t id = field_number(e, "attempt");
	const uint32_t job = event_job(f, e);
	uint32_t number = 0;

	if (job && job_is_there(f, job))
		number = job_attempt_number(f, job_get(f, (struct job_id){ job }), (uint32_t)id);
	if (number)
		buf_addf(out, "%u", number);
	else
		buf_addf(out, "with id %" PRId64, id);
}

static void node_add(const struct facts *f, uint64_t id, struct buf *out)
{
	if (id && id <= f->nodes.count)
		buf_adds(out, facts_name(f, node_get(f, (struct node_id){ (uint32_t)id })->name));
	else
		buf_addf(out, "node %" PRIu64, id);
}

/* Each once, in their order. */
static void nodes_add(const struct facts *f, const struct event_text *e, struct arena *arena,
		      struct buf *out)
{
	uint64_t *ids = arena_new_array(arena, uint64_t, LIST_READ);
	size_t count = field_list(e, "nodes", ids, LIST_READ), named = 0;

	if (count > LIST_READ)
		count = LIST_READ;
	for (size_t i = 0; i < count; i++) {
		size_t before = 0;

		while (before < i && ids[before] != ids[i])
			before++;
		if (before < i || named++ >= NAMES_SHOWN)
			continue;
		buf_adds(out, named > 1 ? ", " : "");
		node_add(f, ids[i], out);
	}
	if (named > NAMES_SHOWN)
		buf_addf(out, " and %zu more", named - NAMES_SHOWN);
}

static uint64_t gpus_count(const struct event_text *e, struct arena *arena)
{
	uint64_t *masks = arena_new_array(arena, uint64_t, LIST_READ), gpus = 0;
	size_t count = field_list(e, "masks", masks, LIST_READ);

	if (!count)
		return (uint64_t)__builtin_popcountll((uint64_t)field_number(e, "mask"));
	for (size_t i = 0; i < count && i < LIST_READ; i++)
		gpus += (uint64_t)__builtin_popcountll(masks[i]);
	return gpus;
}

static void gpus_add(uint64_t gpus, struct buf *out)
{
	buf_addf(out, "%" PRIu64 " GPU%s", gpus, gpus == 1 ? "" : "s");
}

static void ranks_add(size_t ranks, struct buf *out)
{
	buf_addf(out, "%zu rank%s", ranks, ranks == 1 ? "" : "s");
}

static void array_add(int64_t jobs, struct buf *out)
{
	if (jobs > 1)
		buf_addf(out, ", an array of %" PRId64 " jobs,", jobs);
}

static const char *requeue_text(int64_t why)
{
	static const char *const texts[] = {
		[REQUEUE_EVICTED] = "it made room for others",
		[REQUEUE_FAILED] = "it failed and is tried again",
		[REQUEUE_NODE] = "its node takes no work",
		[REQUEUE_LOST] = "it was lost",
		[REQUEUE_WINDOW] = "its hours are over",
		[REQUEUE_MOVED] = "it moves",
	};

	return why >= 0 && why < (int64_t)ARRAY_SIZE(texts) ? texts[why] : "stopped";
}

/* The words for numbers of fields; NULL: the placeholder is no such word. */
static const char *word_of(const struct event_text *e, const char *name)
{
	if (!strcmp(name, "why"))
		return stop_why_name((uint8_t)field_number(e, "why"));
	if (!strcmp(name, "requeue"))
		return requeue_text(field_number(e, "why"));
	if (!strcmp(name, "state"))
		return job_state_name((uint8_t)field_number(e, "state"));
	if (!strcmp(name, "node_state"))
		return node_state_name((uint8_t)field_number(e, "state"));
	if (!strcmp(name, "cause"))
		return task_cause_name((uint8_t)field_number(e, "cause"));
	if (!strcmp(name, "role"))
		return role_name((uint8_t)field_number(e, "role"));
	return NULL;
}

/* --- sentences ------------------------------------------------------------------------------------------------------- */

static void place_fill(const struct facts *f, const struct event_text *e, const char *name,
		       struct arena *arena, struct buf *out)
{
	const char *word = word_of(e, name);

	if (word)
		buf_adds(out, word);
	else if (!strcmp(name, "job"))
		job_add(f, event_job(f, e),
			e->kind == EVENT_JOB_SUBMITTED ? field_text(e, "name", arena) : "", out);
	else if (!strcmp(name, "for_job"))
		job_add(f, (uint32_t)field_number(e, name), "", out);
	else if (!strcmp(name, "attempt"))
		attempt_add(f, e, out);
	else if (!strcmp(name, "node"))
		node_add(f, (uint64_t)field_number(e, name), out);
	else if (!strcmp(name, "nodes"))
		nodes_add(f, e, arena, out);
	else if (!strcmp(name, "gpus"))
		gpus_add(gpus_count(e, arena), out);
	else if (!strcmp(name, "array"))
		array_add(field_number(e, "array_count"), out);
	else if (!strcmp(name, "ranks"))
		ranks_add(field_list(e, name, NULL, 0), out);
	else if (name[0] == '#')
		buf_addf(out, "%zu", field_list(e, name + 1, NULL, 0));
	else if (*field_text(e, name + 1, arena))
		buf_adds(out, field_text(e, name + 1, arena));
	else
		buf_addf(out, "%" PRId64, field_number(e, name + 1));
}

/* "{name" up to its bracket, or "[name " up to the blank behind it; the place behind that. */
static const char *name_read(const char *at, char end, char out[FIELD_ROOM])
{
	const char *stop = strchr(at, end);

	CHECK(stop && stop - at < FIELD_ROOM);
	memcpy(out, at, (size_t)(stop - at));
	out[stop - at] = '\0';
	return stop + 1;
}

static bool ends_with_words(const struct buf *out, const char *text)
{
	const size_t size = strlen(text);

	return size && out->size > size && out->data[out->size - size - 1] == ' ' &&
	       !memcmp(out->data + out->size - size, text, size);
}

/* Is the part that depends on the field shown? A text that repeats the word before it is not. */
static bool part_is_shown(const struct event_text *e, const char *name, bool negated,
			  struct arena *arena, const struct buf *out)
{
	return field_is_set(e, name, arena) != negated &&
	       (negated || !ends_with_words(out, field_text(e, name, arena)));
}

/* The person behind the event, where the sentence does not begin with that name. */
static void actor_add(const struct event_text *e, struct arena *arena, struct buf *out)
{
	const char *actor = field_text(e, "actor", arena);

	if (*actor && strcmp(actor, "fairlead") != 0 && strcmp(actor, "engine") != 0 &&
	    e->kind != EVENT_JOB_SUBMITTED)
		buf_addf(out, " (by %s)", actor);
}

void event_sentence(const struct facts *f, const struct event_text *e, struct arena *arena,
		    struct buf *out)
{
	const char *at = e->kind < EVENT_KIND_LIMIT ? table[e->kind].words : NULL;
	const struct event_info *info = event_info(e->kind);
	char name[FIELD_ROOM];

	if (!at) {
		buf_adds(out, info ? info->name : "unknown");
		return;
	}
	while (*at) {
		if (*at == '{') {
			at = name_read(at + 1, '}', name);
			place_fill(f, e, name, arena, out);
		} else if (*at == '[') {
			const bool negated = at[1] == '!';

			at = name_read(at + 1 + negated, ' ', name);
			if (!part_is_shown(e, name, negated, arena, out))
				at = strchr(at, ']') + 1;
		} else {
			if (*at != ']')
				buf_addc(out, *at);
			at++;
		}
	}
	actor_add(e, arena, out);
}

const char *event_job_state(const struct event_text *e)
{
	switch (e->kind) {
	case EVENT_JOB_SUBMITTED: return field_number(e, "held") ? "held" : "queued";
	case EVENT_JOB_HELD: return "held";
	case EVENT_JOB_RELEASED: return "queued";
	case EVENT_ATTEMPT_PLACED:
		return field_number(e, "resume_number") ? "resuming" : "starting";
	case EVENT_ATTEMPT_RELEASED:
	case EVENT_ATTEMPT_SPARED: return "running";
	case EVENT_ATTEMPT_WARNED: return "checkpointing";
	case EVENT_ATTEMPT_UNREACHABLE:
		return field_number(e, "unreachable") ? "unreachable" : "running";
	case EVENT_JOB_REQUEUED:
		return field_number(e, "why") == REQUEUE_EVICTED ? "preempted" : "queued";
	case EVENT_JOB_ENDED: return job_state_name((uint8_t)field_number(e, "state"));
	default: return NULL;
	}
}
