/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/facts.h"

#include <string.h>

#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/edit.h"
#include "core/model/roles.h"

_Static_assert(TASKS_MAX <= 1 << 15, "free_tasks has a list for runs of 1, 2, 4 ... 2^15 rows");

static const struct policy first_policy = {
	.min_runtime_ms = 600000,
	.grace_ms = 120000,
	.rejoin_ms = 600000,
	.default_limit_ms = 86400000,
	.blackhole_window_ms = 60000,
	.collect_after_ms = 3600000,
	.half_life_ms = 604800000,
	.packing = 1,
	.blackhole_failures = 3,
	.allow_critical_burst = 0,
	.backfill_depth = 32,
	.defragment = DEFRAGMENT_ON_DEMAND,
	.keep_ended_ms = CLIENT_KEY_MS,
	.share_gpus = SHARE_GPUS_TEAM,
	.defragment_moves = 20,
	.defragment_work_ms = 600000,
	.patience = 10,
	.take_turns = 1,
	.reserve_unsure_ms = INT64_C(14) * 86400000,
	.spot_notice_ms = 30000,
};

void facts_init(struct facts *f)
{
	memset(f, 0, sizeof(*f));
	f->policy = first_policy;
#define T(member, type) table_init(&f->member, sizeof(type));
	FACTS_TABLES(T)
#undef T
}

void facts_deinit(struct facts *f)
{
#define T(member, type) table_deinit(&f->member);
	FACTS_TABLES(T)
#undef T
	memset(f, 0, sizeof(*f));
}

void facts_freeze(const struct facts *f, struct facts *ret)
{
	*ret = *f;
#define T(member, type) table_freeze(&f->member, &ret->member);
	FACTS_TABLES(T)
#undef T
}

/* --- linear hashing ------------------------------------------------------------------------------ */

struct lookup {
	struct table *slots, *links;
};

static struct lookup name_lookup(struct facts *f)
{
	return (struct lookup){ &f->name_slots, &f->name_links };
}

static struct lookup shape_lookup(struct facts *f)
{
	return (struct lookup){ &f->shape_slots, &f->shape_links };
}

static struct lookup key_lookup(struct facts *f)
{
	return (struct lookup){ &f->key_slots, &f->key_links };
}

static uint32_t name_hash(const char *text, size_t size)
{
	return (uint32_t)bytes_hash(text, size);
}

/* Without roles the part before them is all there is. */
static uint32_t shape_hash(const struct shape *shape)
{
	return (uint32_t)bytes_hash(shape, shape->role_count ? sizeof(*shape)
							     : offsetof(struct shape, role));
}

static uint32_t key_hash(const uint8_t key[32])
{
	return (uint32_t)bytes_hash(key, 32);
}

/* Largest power of two that is not above n; n > 0. */
static uint32_t power_below(uint32_t n)
{
	return UINT32_C(1) << (31 - __builtin_clz(n));
}

/* The slot (from 1) of a hash among `count` slots: by as many low bits as give one that exists. */
static uint32_t slot_of(uint32_t hash, uint32_t count)
{
	uint32_t power = power_below(count), slot = hash & (2 * power - 1);

	return 1 + (slot < count ? slot : slot & (power - 1));
}

static uint32_t slot_first(const struct table *slots, uint32_t hash)
{
	if (!slots->count)
		return 0;
	return *(const uint32_t *)table_get(slots, slot_of(hash, slots->count));
}

static const struct link *link_get(const struct table *links, uint32_t row)
{
	return table_get(links, row);
}

/* Writes only what changes: a write to a chunk that a reader shares copies it. */
static void link_set(const struct lookup *l, uint32_t row, uint32_t next)
{
	if (link_get(l->links, row)->next != next)
		((struct link *)table_edit(l->links, row))->next = next;
}

static void slot_set(const struct lookup *l, uint32_t slot, uint32_t row)
{
	if (*(const uint32_t *)table_get(l->slots, slot) != row)
		*(uint32_t *)table_edit(l->slots, slot) = row;
}

/* The end of a chain that is being built: behind `row`, or in the slot when that is 0. */
static void chain_set(const struct lookup *l, uint32_t slot, uint32_t row, uint32_t next)
{
	if (row)
		link_set(l, row, next);
	else
		slot_set(l, slot, next);
}

/* Adds slot n and gives it the rows of slot n - 2^k (2^k <= n) whose next bit is set. Both keep their order. */
static void lookup_split(const struct lookup *l)
{
	uint32_t added = table_add(l->slots), power, from, keep = 0, move = 0, next;

	if (added == 1)
		return;
	power = power_below(added - 1);
	from = added - power;
	for (uint32_t row = *(const uint32_t *)table_get(l->slots, from); row; row = next) {
		const struct link *link = link_get(l->links, row);

		next = link->next;
		if (link->hash & power) {
			chain_set(l, added, move, row);
			move = row;
		} else {
			chain_set(l, from, keep, row);
			keep = row;
		}
	}
	chain_set(l, from, keep, 0);
	chain_set(l, added, move, 0);
}

/* The rows between the last one added and this one are found by nothing. `rows`: how many there are with it. */
static void lookup_add(const struct lookup *l, uint32_t row, uint32_t hash, uint32_t rows)
{
	uint32_t slot;

	if (l->slots->count < rows)
		lookup_split(l);
	while (l->links->count < row)
		table_add(l->links);
	slot = slot_of(hash, l->slots->count);
	*(struct link *)table_edit(l->links, row) =
		(struct link){ *(const uint32_t *)table_get(l->slots, slot), hash };
	slot_set(l, slot, row);
}

void facts_link_name(struct facts *f, uint32_t id)
{
	const char *text = facts_name(f, (struct name_id){ id });
	struct lookup l = name_lookup(f);

	lookup_add(&l, id, name_hash(text, strlen(text)), f->names.count);
}

void facts_link_shape(struct facts *f, uint32_t id)
{
	struct lookup l = shape_lookup(f);

	lookup_add(&l, id, shape_hash(shape_get(f, (struct shape_id){ id })), f->shapes.count);
}

void facts_link_body(struct facts *f, uint32_t id)
{
	const struct body *body = table_get(&f->bodies, id);
	struct lookup l = key_lookup(f);

	lookup_add(&l, id, key_hash(body->client_key), ++f->keyed);
}

/* Slots are never taken away: later rows fill them again. */
void facts_unlink_body(struct facts *f, uint32_t id)
{
	const struct body *body = table_get(&f->bodies, id);
	struct lookup l = key_lookup(f);
	uint32_t slot = slot_of(key_hash(body->client_key), l.slots->count), before = 0;
	uint32_t row = *(const uint32_t *)table_get(l.slots, slot);

	while (row != id) {
		CHECK(row);
		before = row;
		row = link_get(l.links, row)->next;
	}
	chain_set(&l, slot, before, link_get(l.links, id)->next);
	memset(table_edit(l.links, id), 0, sizeof(struct link));
	table_trim(l.links, id);
	f->keyed--;
}

void facts_link_dependent(struct facts *f, uint32_t row)
{
	struct depend *depend = table_edit(&f->depends, row);
	struct job *job = job_edit(f, (struct job_id){ depend->job });

	depend->next_dependent = job->dependents;
	job->dependents = row;
}

/* Every row in the chain of its hash, and each once. */
static bool lookup_is_right(const struct table *slots, const struct table *links, uint32_t count)
{
	uint64_t rows = 0;

	for (uint32_t slot = 1; slot <= slots->count; slot++) {
		uint32_t row = *(const uint32_t *)table_get(slots, slot);

		for (; row; row = link_get(links, row)->next, rows++)
			if (row > links->count || rows >= slots->count ||
			    slot_of(link_get(links, row)->hash, slots->count) != slot)
				return false;
	}
	return rows == count && count <= slots->count;
}

bool facts_lookups_are_right(const struct facts *f)
{
	return lookup_is_right(&f->name_slots, &f->name_links, f->names.count) &&
	       lookup_is_right(&f->shape_slots, &f->shape_links, f->shapes.count) &&
	       lookup_is_right(&f->key_slots, &f->key_links, f->keyed);
}

/* --- names ------------------------------------------------------------------------------------------ */

const char *facts_name(const struct facts *f, struct name_id id)
{
	return id.v ? ((const struct name *)table_get(&f->names, id.v))->text : "";
}

/* Bytes 10xxxxxx continue a character. */
size_t text_cut(const char *text, size_t size, size_t most)
{
	if (size <= most)
		return size;
	size = most;
	while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
		size--;
	return size;
}

size_t name_cut(const char *text, size_t size)
{
	return text_cut(text, size, NAME_MAX_BYTES);
}

static struct name_id name_find(const struct facts *f, const char *text, size_t size)
{
	uint32_t id = size ? slot_first(&f->name_slots, name_hash(text, size)) : 0;

	while (id) {
		const struct name *name = table_get(&f->names, id);

		if (memcmp(name->text, text, size) == 0 && !name->text[size])
			break;
		id = link_get(&f->name_links, id)->next;
	}
	return (struct name_id){ id };
}

const char *names_text(const struct facts *f, const struct name_id *names, uint32_t room,
		       char ret[EVENT_TEXT_MAX + 1])
{
	size_t at = 0;

	for (uint32_t i = 0; i < room && names[i].v; i++) {
		const char *text = facts_name(f, names[i]);
		size_t size = strlen(text);

		if (at + size + 1 > EVENT_TEXT_MAX)
			break;
		if (at)
			ret[at++] = ',';
		memcpy(ret + at, text, size);
		at += size;
	}
	ret[at] = '\0';
	return ret;
}

struct name_id facts_name_find(const struct facts *f, const char *text)
{
	return name_find(f, text, name_cut(text, strlen(text)));
}

struct name_id facts_intern(struct facts *f, const char *text)
{
	char copy[NAME_MAX_BYTES + 1] = "";
	size_t size = name_cut(text, strlen(text));
	struct name_id id;

	memcpy(copy, text, size); /* the text may be one of ours, and adding moves rows */
	id = name_find(f, copy, size);
	if (id.v || !size)
		return id;
	id.v = table_add(&f->names);
	memcpy(name_edit(f, id)->text, copy, sizeof(copy));
	facts_link_name(f, id.v);
	return id;
}

static const struct name *name_get(const struct facts *f, const char *text)
{
	static const struct name nobody;
	struct name_id id = facts_name_find(f, text);

	return id.v ? table_get(&f->names, id.v) : &nobody;
}

struct node_id facts_node_find(const struct facts *f, const char *name)
{
	return (struct node_id){ name_get(f, name)->node };
}

struct queue_id facts_queue_find(const struct facts *f, const char *name)
{
	struct queue_id id = { name_get(f, name)->queue };

	return id.v && queue_get(f, id)->removed ? (struct queue_id){ 0 } : id;
}

uint32_t facts_user_find(const struct facts *f, const char *name)
{
	uint32_t id = name_get(f, name)->user;

	return id && ((const struct user *)table_get(&f->users, id))->removed ? 0 : id;
}

const char *facts_default_queue(const struct facts *f, uint32_t user, const char *team)
{
	const struct name_id own = ((const struct user *)table_get(&f->users, user))->queue,
			     of = facts_name_find(f, team);
	struct queue_id found = { 0 };
	uint32_t count = 0;

	for (uint32_t id = 1; of.v && id <= f->queues.count; id++) {
		const struct queue *queue = queue_get(f, (struct queue_id){ id });

		if (queue->removed || !name_same(queue->team, of))
			continue;
		found.v = id;
		count++;
	}
	if (count == 1)
		return facts_name(f, queue_get(f, found)->name);
	return facts_queue_find(f, facts_name(f, own)).v ? facts_name(f, own) : "default";
}

uint32_t facts_token_user(const struct facts *f, const struct token *token)
{
	if (!token->owner)
		return facts_user_find(f, facts_name(f, token->user));
	return ((const struct user *)table_get(&f->users, token->owner))->removed ? 0
										  : token->owner;
}

static void count_in_queue(struct facts *f, struct name *name, uint32_t queue, int step)
{
	uint32_t row = name->waiting;
	struct waiting *w;

	while (row && ((const struct waiting *)table_get(&f->waitings, row))->queue != queue)
		row = ((const struct waiting *)table_get(&f->waitings, row))->next;
	if (!row) {
		row = table_add(&f->waitings);
		w = table_edit(&f->waitings, row);
		w->queue = queue;
		w->next = name->waiting;
		name->waiting = row;
	}
	w = table_edit(&f->waitings, row);
	w->jobs += (uint32_t)step;
}

void facts_count_waiting(struct facts *f, const struct job *job, int step)
{
	struct body *body = job->body ? table_edit(&f->bodies, job->body) : NULL;
	struct name *name = job->user.v ? name_edit(f, job->user) : NULL;

	if (name)
		name->waiting_jobs += (uint32_t)step;
	if (name)
		count_in_queue(f, name, job->queue.v, step);
	if (!body)
		return;
	if (name && body->waiting == (step > 0 ? 0 : 1))
		name->waiting_bytes += step * (int64_t)body->bytes;
	body->waiting = (uint16_t)(body->waiting + step);
}

bool user_owns_job(const struct user *user, struct job_id id, const struct job *job)
{
	return user->name.v && !job->external && name_same(user->name, job->user) &&
	       id.v >= user->first_job;
}

bool job_owner_is_removed(const struct facts *f, struct job_id id, const struct job *job)
{
	const uint32_t row =
		job->user.v ? ((const struct name *)table_get(&f->names, job->user.v))->user : 0;
	const struct user *user = row ? table_get(&f->users, row) : NULL;

	return user && !job->external && (user->removed || id.v < user->first_job);
}

uint32_t facts_team_find(const struct facts *f, const char *name)
{
	uint32_t id = name_get(f, name)->team;

	return id && ((const struct team *)table_get(&f->teams, id))->removed ? 0 : id;
}

uint32_t facts_token_find(const struct facts *f, const char *id)
{
	return name_get(f, id)->token;
}

struct job_id facts_key_find(const struct facts *f, const uint8_t client_key[32])
{
	uint32_t id = slot_first(&f->key_slots, key_hash(client_key));

	while (id) {
		const struct body *body = table_get(&f->bodies, id);

		if (memcmp(body->client_key, client_key, 32) == 0)
			return (struct job_id){ body->job };
		id = link_get(&f->key_links, id)->next;
	}
	return (struct job_id){ 0 };
}

/* --- shapes ------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct shape) == 14 * 4 + 4 + (4 + 3 * 8) * 4 + 9 * 4 + 8 * 2 + 8 * 4 +
					       (3 + 6 * 8) * 4 + 3 * 4 + 12 * 4 + 9 * 4,
	       "no holes: shapes are compared as bytes");

struct shape_id facts_shape_find(const struct facts *f, const struct shape *shape)
{
	uint32_t id = slot_first(&f->shape_slots, shape_hash(shape));

	while (id) {
		const struct shape *known = table_get(&f->shapes, id);

		if (memcmp(known, shape, sizeof(*shape)) == 0)
			break;
		id = link_get(&f->shape_links, id)->next;
	}
	return (struct shape_id){ id };
}

struct shape_id facts_intern_shape(struct facts *f, const struct shape *shape)
{
	struct shape_id id = facts_shape_find(f, shape);

	if (id.v)
		return id;
	id.v = table_add(&f->shapes);
	memcpy(table_edit(&f->shapes, id.v), shape, sizeof(*shape));
	facts_link_shape(f, id.v);
	return id;
}

__extension__ typedef __int128 wide;

struct gpu_part shape_part(const struct shape *shape, uint32_t gpu_memory_mib)
{
	uint64_t share;

	if (!shape->gpu_part_mib)
		return (struct gpu_part){ shape->gpu_part,
					  (uint32_t)((uint64_t)gpu_memory_mib * shape->gpu_part /
						     GPU_SHARE) };
	if (shape->gpu_part_mib > gpu_memory_mib)
		return (struct gpu_part){ 0, shape->gpu_part_mib };
	share = (uint64_t)shape->gpu_part_mib * GPU_SHARE / gpu_memory_mib;
	return (struct gpu_part){ share ? (uint32_t)share : 1, shape->gpu_part_mib };
}

int64_t attempt_share(const struct facts *f, const struct attempt *attempt)
{
	if (attempt->parts_share)
		return attempt->parts_share;
	return attempt_gpus(f, attempt, shape_get(f, job_get(f, attempt->job)->shape)) * GPU_SHARE;
}

int64_t share_gpu_ms(int64_t share, int64_t ms)
{
	int64_t gpus = share / GPU_SHARE, whole;

	if (gpus * GPU_SHARE == share && !__builtin_mul_overflow(gpus, ms, &whole))
		return whole; /* whole GPUs, mostly: without 128 bits */
	return (int64_t)((wide)share * ms / GPU_SHARE);
}

/* --- rows that are used again --------------------------------------------------------------------------- */

/* Runs hold 2^i rows. A free run is linked through `reports` of its first row; free rows are zero otherwise. */
static uint32_t run_index(uint32_t count)
{
	return count > 1 ? 32 - (uint32_t)__builtin_clz(count - 1) : 0;
}

static uint32_t task_link(const struct facts *f, uint32_t row)
{
	return ((const struct task *)table_get(&f->tasks, row))->reports;
}

uint32_t facts_take_tasks(struct facts *f, uint32_t count)
{
	uint32_t index = run_index(count), first;

	CHECK(count >= 1 && count <= TASKS_MAX);
	first = f->free_tasks[index];
	if (first) {
		f->free_tasks[index] = task_link(f, first);
		((struct task *)table_edit(&f->tasks, first))->reports = 0;
		return first;
	}
	first = table_add(&f->tasks);
	for (uint32_t i = 1; i < UINT32_C(1) << index; i++)
		table_add(&f->tasks);
	return first;
}

void facts_give_tasks(struct facts *f, uint32_t first, uint32_t count)
{
	uint32_t index = run_index(count);

	for (uint32_t i = 0; i < count; i++)
		memset(table_edit(&f->tasks, first + i), 0, sizeof(struct task));
	((struct task *)table_edit(&f->tasks, first))->reports = f->free_tasks[index];
	f->free_tasks[index] = first;
}

uint32_t facts_take_promise(struct facts *f)
{
	uint32_t row = f->free_promises;

	if (!row)
		return table_add(&f->promises);
	f->free_promises = ((const struct promise *)table_get(&f->promises, row))->next;
	memset(table_edit(&f->promises, row), 0, sizeof(struct promise));
	return row;
}

void facts_give_promises(struct facts *f, uint32_t first)
{
	uint32_t next;

	for (uint32_t row = first; row; row = next) {
		struct promise *promise = table_edit(&f->promises, row);

		next = promise->next;
		*promise = (struct promise){ .next = f->free_promises };
		f->free_promises = row;
	}
}

const char *facts_text(const struct facts *f, struct text_id id)
{
	return id.v ? ((const struct text *)table_get(&f->texts, id.v))->text : "";
}

struct text_id facts_put_text(struct facts *f, struct text_id old, const char *text)
{
	size_t size = text_cut(text, strlen(text), REASON_MAX_BYTES);
	char copy[REASON_MAX_BYTES + 1] = ""; /* it may lie in a row that moves */
	struct text *row;

	if (!size && old.v) {
		row = table_edit(&f->texts, old.v);
		memset(row, 0, sizeof(*row));
		row->next = f->free_texts;
		f->free_texts = old.v;
	}
	if (!size)
		return (struct text_id){ 0 };
	memcpy(copy, text, size);
	if (!old.v && f->free_texts) {
		old.v = f->free_texts;
		f->free_texts = ((const struct text *)table_get(&f->texts, old.v))->next;
	} else if (!old.v) {
		old.v = table_add(&f->texts);
	}
	row = table_edit(&f->texts, old.v);
	row->next = 0;
	memcpy(row->text, copy, sizeof(copy));
	return old;
}

/* Of an array the counts say whether it is so; only then its jobs are looked at. */
static uint32_t array_with(const struct facts *f, uint32_t first, bool ended)
{
	const struct job *job = job_get(f, (struct job_id){ first });

	for (uint32_t id = first; id < first + job->array_count; id++) {
		uint8_t state = job_get(f, (struct job_id){ id })->state;

		if (state != JOB_SUCCEEDED && state != JOB_NONE &&
		    (!ended || job_state_is_final(state)))
			return id;
	}
	return first;
}

uint32_t depend_open(const struct facts *f, const struct depend *depend)
{
	const struct job *job = job_get(f, (struct job_id){ depend->job });
	const struct body *body;

	if (!depend->whole)
		return job->state == JOB_SUCCEEDED ? 0 : depend->job;
	body = table_get(&f->bodies, job->body);
	return body->succeeded == job->array_count ? 0 : array_with(f, depend->job, false);
}

uint32_t depend_dead(const struct facts *f, const struct depend *depend)
{
	const struct job *job = job_get(f, (struct job_id){ depend->job });

	if (!depend->whole)
		return job_state_is_final(job->state) && job->state != JOB_SUCCEEDED ? depend->job
										     : 0;
	return ((const struct body *)table_get(&f->bodies, job->body))->failed
		       ? array_with(f, depend->job, true)
		       : 0;
}

uint32_t facts_take_depend(struct facts *f)
{
	uint32_t row = f->free_depends;

	if (!row)
		return table_add(&f->depends);
	f->free_depends = ((const struct depend *)table_get(&f->depends, row))->next;
	memset(table_edit(&f->depends, row), 0, sizeof(struct depend));
	return row;
}

void facts_give_depend(struct facts *f, uint32_t row)
{
	*(struct depend *)table_edit(&f->depends, row) = (struct depend){ .next = f->free_depends };
	f->free_depends = row;
}

static uint32_t checkpoints_link(const struct facts *f, uint32_t first)
{
	return ((const struct checkpoint *)table_get(&f->checkpoints, first))->attempt;
}

uint32_t facts_take_checkpoints(struct facts *f)
{
	uint32_t first = f->free_checkpoints;

	if (first) {
		f->free_checkpoints = checkpoints_link(f, first);
		((struct checkpoint *)table_edit(&f->checkpoints, first))->attempt = 0;
		return first;
	}
	first = table_add(&f->checkpoints);
	for (int i = 1; i < CHECKPOINTS_KEPT; i++)
		table_add(&f->checkpoints);
	return first;
}

void facts_give_checkpoints(struct facts *f, uint32_t first)
{
	for (uint32_t i = 0; i < CHECKPOINTS_KEPT; i++) {
		struct checkpoint *row = table_edit(&f->checkpoints, first + i);

		facts_put_text(f, row->why, "");
		memset(row, 0, sizeof(*row));
	}
	((struct checkpoint *)table_edit(&f->checkpoints, first))->attempt = f->free_checkpoints;
	f->free_checkpoints = first;
}

/* --- questions -------------------------------------------------------------------------------------------- */

const struct task *task_get(const struct facts *f, const struct attempt *attempt, uint32_t rank)
{
	CHECK(rank < attempt->tasks);
	return attempt->first_task ? table_get(&f->tasks, attempt->first_task + rank) : NULL;
}

/* Checkpoint n of a job lies in row (n - 1) % CHECKPOINTS_KEPT of its run. */
const struct checkpoint *job_checkpoint_kept(const struct facts *f, const struct job *job,
					     uint32_t number)
{
	const struct checkpoint *row;

	if (!job->checkpoint || !number)
		return NULL;
	row = table_get(&f->checkpoints, job->checkpoint + (number - 1) % CHECKPOINTS_KEPT);
	return row->number == number ? row : NULL;
}

const struct checkpoint *job_checkpoint(const struct facts *f, const struct job *job, uint32_t upto)
{
	uint32_t number = upto && upto < job->checkpoints_made ? upto : job->checkpoints_made;

	for (uint32_t i = 0; i < CHECKPOINTS_KEPT && number; i++, number--) {
		const struct checkpoint *row = job_checkpoint_kept(f, job, number);

		if (row && !row->is_void)
			return row;
	}
	return NULL;
}

bool job_state_is_final(uint8_t state)
{
	return state == JOB_NONE || state >= JOB_SUCCEEDED;
}

bool job_is_there(const struct facts *f, int64_t id)
{
	return id_exists(&f->jobs, id) &&
	       job_get(f, (struct job_id){ (uint32_t)id })->state != JOB_NONE;
}

bool attempt_is_there(const struct facts *f, int64_t id)
{
	return id_exists(&f->attempts, id) &&
	       attempt_get(f, (struct attempt_id){ (uint32_t)id })->state != ATTEMPT_FREE;
}

struct node_id facts_node_next(const struct facts *f, const char *name)
{
	struct node_id id = facts_node_find(f, name);

	for (uint32_t row = 1; f->lost && !id.v && row <= f->nodes.count; row++)
		if (!node_get(f, (struct node_id){ row })->name.v)
			id.v = row;
	if (!id.v)
		id.v = f->nodes.count + 1;
	return id;
}

bool job_is_waiting(const struct job *job)
{
	return job->state == JOB_QUEUED || job->state == JOB_PREEMPTED;
}

bool job_is_live(const struct job *job)
{
	return job->attempt.v != 0;
}
