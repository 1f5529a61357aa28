/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks of nodes that an engine makes (docs/decisions/0016) become events: what changed of each. After a start the engine tells each mask
 * whole, and the difference to what the journal has is the event; and it tells the names of all, so that masks of earlier days end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "api/jobfile/jobfile.h"
#include "core/model/roles.h"
#include "daemon/state.h"

#define MASKS_OF_PODS "pods-" /* how the names of an engine's masks begin */

/* --- on the way ------------------------------------------------------------------------------------------------- */

static char **names_copy(const char *const *names, uint32_t count)
{
	char **copy = calloc(count + 1, sizeof(*copy));

	CHECK(copy);
	for (uint32_t i = 0; i < count; i++) {
		copy[i] = strdup(names[i]);
		CHECK(copy[i]);
	}
	return copy;
}

static void names_free(char **names, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

static struct mask_message *message_new(int kind)
{
	struct mask_message *message = calloc(1, sizeof(*message));

	CHECK(message);
	message->message.kind = kind;
	return message;
}

void masks_report(void *daemon, const struct engine_mask *mask)
{
	struct daemon *d = daemon;
	struct mask_message *message = message_new(CORE_MASK);

	message->name = strdup(mask->name);
	message->why = strdup(mask->why);
	CHECK(message->name && message->why);
	message->whole = mask->whole;
	message->ended = mask->ended;
	message->in = names_copy(mask->in, mask->in_count);
	message->in_count = mask->in_count;
	message->out = names_copy(mask->out, mask->out_count);
	message->out_count = mask->out_count;
	mailbox_send(&d->core_box, &message->message);
}

void masks_report_all(void *daemon, const char *const *names, uint32_t count)
{
	struct daemon *d = daemon;
	struct mask_message *message = message_new(CORE_MASKS);

	message->in = names_copy(names, count);
	message->in_count = count;
	mailbox_send(&d->core_box, &message->message);
}

void mask_message_destroy(struct mask_message *message)
{
	names_free(message->in, message->in_count);
	names_free(message->out, message->out_count);
	free(message->name);
	free(message->why);
	free(message);
}

/* --- in the core's thread ---------------------------------------------------------------------------------------- */

static void admit(struct daemon *d, struct batch *batch, struct event *event)
{
	struct err err = { 0 };

	if (core_admit_own(d, batch, event, &err) < 0)
		log_line(LOG_WARN, "which nodes are left for pods of a kind is not taken: %s",
			 err.text);
	batch->essential = true;
}

/* --- who made them ------------------------------------------------------------------------------------------------ */

static bool mask_is_there(const struct daemon *d, const char *name)
{
	return facts_mask_find(&d->facts, facts_name_find(&d->facts, name)) != 0;
}

static bool is_own(const char *name)
{
	return strncmp(name, JOBFILE_OWN_MASK, strlen(JOBFILE_OWN_MASK)) == 0;
}

/* In its own row, a free one, or that of a mask that has ended: there are no more of them than rows. */
static void maker_note(struct daemon *d, const char *mask, const char *user)
{
	struct mask_maker *found = NULL;

	for (uint32_t i = 0; i < MASKS_MAX; i++) {
		struct mask_maker *maker = &d->mask_makers[i];

		if (strcmp(maker->mask, mask) == 0) {
			found = maker;
			break;
		}
		if (!found && (!maker->mask[0] || !mask_is_there(d, maker->mask)))
			found = maker;
	}
	CHECK(found);
	snprintf(found->mask, sizeof(found->mask), "%s", mask);
	snprintf(found->user, sizeof(found->user), "%s", user);
}

static void maker_read(struct daemon *d, const struct job *job,
		       uint32_t seen[static MASKS_MAX / 32])
{
	const struct facts *f = &d->facts;
	const struct shape *shape = shape_get(f, job->shape);
	struct name_id mask;

	for (uint32_t at = 0; (mask = shape_mask_next(shape, &at)).v;) {
		const uint32_t row = is_own(facts_name(f, mask)) ? facts_mask_find(f, mask) : 0;

		if (!row || seen[(row - 1) / 32] >> (row - 1) % 32 & 1)
			continue;
		seen[(row - 1) / 32] |= UINT32_C(1) << (row - 1) % 32;
		maker_note(d, facts_name(f, mask), facts_name(f, job->user));
	}
}

/* What the journal has of days before: each belongs to the first of its jobs that is not over. */
static void makers_read(struct daemon *d)
{
	uint32_t seen[MASKS_MAX / 32] = { 0 };

	if (d->mask_makers_known)
		return;
	d->mask_makers_known = true;
	for (uint32_t id = 1; id <= d->facts.jobs.count; id++) {
		const struct job *job = job_get(&d->facts, (struct job_id){ id });

		if (!job_state_is_final(job->state))
			maker_read(d, job, seen);
	}
}

static uint32_t masks_made_by(const struct daemon *d, const char *user)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < MASKS_MAX; i++)
		count += d->mask_makers[i].mask[0] && strcmp(d->mask_makers[i].user, user) == 0 &&
			 mask_is_there(d, d->mask_makers[i].mask);
	return count;
}

static void name_add(const struct daemon *d, struct masks_made *names, const char *name,
		     size_t size)
{
	char *to = names->name[names->count];

	if (names->count == ARRAY_SIZE(names->name) || size > NAME_MAX_BYTES)
		return;
	memcpy(to, name, size);
	to[size] = '\0';
	for (uint32_t i = 0; i < names->count; i++)
		if (strcmp(names->name[i], to) == 0)
			return;
	names->count += is_own(to) && !mask_is_there(d, to);
}

/* Those that it names and that are not there, each once. */
static void names_find(const struct daemon *d, const struct event_job_submitted *e,
		       struct masks_made *ret)
{
	ret->count = 0;
	name_add(d, ret, e->mask, strlen(e->mask));
	for (const char *list = e->role_masks; *list;) {
		const size_t size = strcspn(list, ",");

		name_add(d, ret, list, size);
		list += size;
		list += *list == ',';
	}
	name_add(d, ret, e->together, strlen(e->together));
}

static int mask_make(struct daemon *d, struct batch *batch, const char *name, const char *user,
		     struct err *err)
{
	struct event event = event_make(EVENT_NODE_MASK, 0, "engine");

	event.node_mask.name = name;
	event.node_mask.why = "which nodes can give its pods what they ask for is being looked up";
	if (core_admit_own(d, batch, &event, NULL) < 0)
		return err_set(
			err, ERR_QUOTA,
			"%d different sets of what pods ask of nodes beside GPUs are in use, which is the most; submit it when some of those jobs have ended",
			MASKS_MAX);
	batch->essential = true;
	maker_note(d, name, user);
	return 0;
}

/* A mask that a submission names first has no nodes until the engine tells them. Negative: its user, or all together, have too many, as `err` says. */
int masks_for_submission(struct daemon *d, struct batch *batch, const struct event *submission,
			 struct masks_made *ret, struct err *err)
{
	struct masks_made names = { 0 };
	const char *user;

	ret->count = 0;
	if (submission->kind == EVENT_JOB_SUBMITTED)
		names_find(d, &submission->job_submitted, &names);
	if (!names.count)
		return 0;
	user = submission->job_submitted.user;
	makers_read(d);
	if (masks_made_by(d, user) + names.count > OWN_MASKS_OF_USER)
		return err_set(
			err, ERR_QUOTA,
			"jobs of user \"%.60s\" that are not over ask for %u different sets of claims, volumes and extended resources already, this one for %u more, and %d are the most for one user; "
			"submit it when some of them have ended, or as an array: its jobs ask for the same",
			user, masks_made_by(d, user), names.count, OWN_MASKS_OF_USER);
	for (uint32_t i = 0; i < names.count; i++) {
		const int rc = mask_make(d, batch, names.name[i], user, err);

		if (rc < 0) {
			masks_unmake(d, batch, ret);
			return rc;
		}
		memcpy(ret->name[ret->count++], names.name[i], sizeof(names.name[i]));
	}
	return 0;
}

void masks_unmake(struct daemon *d, struct batch *batch, const struct masks_made *made)
{
	for (uint32_t i = 0; i < made->count; i++)
		mask_ends(d, batch, made->name[i]);
}

void mask_ends(struct daemon *d, struct batch *batch, const char *name)
{
	struct event event = event_make(EVENT_NODE_MASK, 0, "engine");
	char copy[NAME_MAX_BYTES + 1];

	snprintf(copy, sizeof(copy), "%s", name);
	event.node_mask.name = copy;
	event.node_mask.why = "";
	event.node_mask.ended = 1;
	admit(d, batch, &event);
}

static uint32_t ids_of(const struct facts *facts, char *const *names, uint32_t count, int64_t *ret)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct node_id id = facts_node_find(facts, names[i]);

		if (id.v)
			ret[found++] = id.v;
	}
	return found;
}

/* Those that are in it and were not named. */
static uint32_t others_of(const struct facts *facts, const struct mask_message *message,
			  struct arena *arena, const int64_t *in, uint32_t in_count, int64_t *ret)
{
	uint32_t row = facts_mask_find(facts, facts_name_find(facts, message->name)), found = 0;
	bool *named = arena_new_array(arena, bool, facts->nodes.count + 1);

	for (uint32_t i = 0; i < in_count; i++)
		named[in[i]] = true;
	for (uint32_t id = 1; row && id <= facts->nodes.count; id++)
		if (!named[id] && node_is_in(node_get(facts, (struct node_id){ id }), row))
			ret[found++] = id;
	return found;
}

void take_mask(struct daemon *d, struct batch *batch, struct mask_message *message)
{
	struct event event = event_make(EVENT_NODE_MASK, 0, "engine");
	struct event_node_mask *e = &event.node_mask;
	uint32_t room = d->facts.nodes.count + message->in_count + message->out_count + 1;
	int64_t *in = arena_new_array(&batch->arena, int64_t, room),
		*out = arena_new_array(&batch->arena, int64_t, room);

	if (message->ended) {
		mask_ends(d, batch, message->name);
		mask_message_destroy(message);
		return;
	}
	e->name = message->name;
	e->why = message->why;
	e->in = in;
	e->in_count = ids_of(&d->facts, message->in, message->in_count, in);
	e->out = out;
	e->out_count = message->whole
			       ? others_of(&d->facts, message, &batch->arena, in, e->in_count, out)
			       : ids_of(&d->facts, message->out, message->out_count, out);
	admit(d, batch, &event);
	mask_message_destroy(message);
}

static bool is_named(const struct mask_message *message, const char *name)
{
	for (uint32_t i = 0; i < message->in_count; i++)
		if (strcmp(message->in[i], name) == 0)
			return true;
	return false;
}

void take_masks(struct daemon *d, struct batch *batch, struct mask_message *message)
{
	for (uint32_t row = 1; row <= d->facts.masks.count; row++) {
		const char *name = facts_name(&d->facts, mask_get(&d->facts, row)->name);

		if (strncmp(name, MASKS_OF_PODS, strlen(MASKS_OF_PODS)) == 0 &&
		    !is_named(message, name))
			mask_ends(d, batch, name);
	}
	mask_message_destroy(message);
}
