/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row is named by the hash of its likeness, 64 bits; that two likenesses share one is not worth a thought among 4,096 rows.
 * Rows of set s are s * LIKE_WAYS + 1 and those behind it. The table grows to its end with the first job that ended.
 */
#include "core/model/likes.h"

#include <string.h>

#include "core/model/edit.h"
#include "core/model/roles.h"

/* The name with each run of digits as one '#'. */
static void name_fold(const char *name, char ret[NAME_MAX_BYTES + 1])
{
	size_t size = 0, end = name_cut(name, strlen(name));

	for (size_t i = 0; i < end; i++) {
		bool digit = name[i] >= '0' && name[i] <= '9';

		if (!digit)
			ret[size++] = name[i];
		else if (!size || ret[size - 1] != '#')
			ret[size++] = '#';
	}
	ret[size] = '\0';
}

static size_t key_add(char *key, size_t size, const char *text)
{
	size_t length = name_cut(text, strlen(text)); /* as a name in the facts is */

	memcpy(key + size, text, length);
	key[size + length] = '\0';
	return size + length + 1;
}

/* Never 0, which is an empty row's. */
int64_t like_key(const struct like_wish *wish, enum like_level level)
{
	char key[3 * (NAME_MAX_BYTES + 1) + 16], folded[NAME_MAX_BYTES + 1] = "";
	size_t size = 0;
	uint64_t hash;

	key[size++] = (char)level;
	if (level == LIKE_QUEUE)
		size = key_add(key, size, wish->queue);
	if (level >= LIKE_USER)
		size = key_add(key, size, wish->user);
	if (level == LIKE_NAME) {
		name_fold(wish->name, folded);
		size = key_add(key, size, folded);
	}
	for (uint32_t i = 0; i < 4 && (level == LIKE_QUEUE || level == LIKE_USER); i++)
		key[size++] = (char)(wish->gpus >> 8 * i);
	for (uint32_t i = 0; i < 8 && wish->program; i++)
		key[size++] = (char)((uint64_t)wish->program >> 8 * i);
	hash = bytes_hash(key, size) >> 1;
	return hash ? (int64_t)hash : 1;
}

static uint32_t set_first(int64_t key)
{
	return (uint32_t)(key % LIKE_SETS) * LIKE_WAYS + 1;
}

static const struct like *row_get(const struct facts *f, uint32_t row)
{
	return table_get(&f->likes, row);
}

static uint32_t row_find(const struct facts *f, int64_t key)
{
	uint32_t first = set_first(key);

	for (uint32_t row = first; f->likes.count && row < first + LIKE_WAYS; row++)
		if (row_get(f, row)->key == key)
			return row;
	return 0;
}

/* An empty row of the set, or the one that learned nothing for longest, made empty. */
static uint32_t row_make(struct facts *f, int64_t key)
{
	uint32_t first = set_first(key), worst = first;
	struct like *like;

	while (f->likes.count < LIKE_SETS * LIKE_WAYS)
		table_add(&f->likes);
	for (uint32_t row = first; row < first + LIKE_WAYS && row_get(f, worst)->key; row++)
		if (!row_get(f, row)->key || row_get(f, row)->seq < row_get(f, worst)->seq)
			worst = row;
	like = table_edit(&f->likes, worst);
	memset(like, 0, sizeof(*like));
	like->key = key;
	return worst;
}

void likes_learn(struct facts *f, const struct like_wish *wish, int64_t run_ms)
{
	for (int level = LIKE_ALL; level < LIKE_LEVELS; level++) {
		int64_t key = like_key(wish, (enum like_level)level);
		uint32_t row = row_find(f, key);
		struct like *like;

		if (!row)
			row = row_make(f, key);
		like = table_edit(&f->likes, row);
		like->run_ms[like->runs % LIKE_RUNS] = run_ms;
		like->runs = like->runs == UINT32_MAX ? UINT32_MAX - LIKE_RUNS + 1 : like->runs + 1;
		like->seq = (int64_t)f->seq;
	}
}

static int64_t program_of(const struct facts *f, const struct job *job)
{
	return job->body ? ((const struct body *)table_get(&f->bodies, job->body))->program : 0;
}

struct like_wish like_wish_of(const struct facts *f, const struct job *job)
{
	const struct shape *shape = shape_get(f, job->shape);

	return (struct like_wish){ .user = facts_name(f, job->user),
				   .name = facts_name(f, job->name),
				   .queue = facts_name(f, queue_get(f, job->queue)->name),
				   .gpus = (uint32_t)shape_gpus(shape, shape->tasks_min),
				   .program = program_of(f, job) };
}

bool run_says_something(const struct facts *f, const struct job *job, uint8_t state, int64_t run_ms)
{
	const int64_t grace_ms = job->grace_ms == UINT32_MAX ? f->policy.grace_ms : job->grace_ms;

	if (program_of(f, job) && (state == JOB_FAILED || state == JOB_CANCELLED) &&
	    run_ms < grace_ms)
		return false;
	return run_ms > 0;
}

static void runs_take(const struct like *like, struct like_runs *ret)
{
	ret->count = like->runs < LIKE_RUNS ? like->runs : LIKE_RUNS;
	for (uint32_t i = 0; i < ret->count; i++) {
		uint32_t at = i;

		for (; at && ret->ms[at - 1] > like->run_ms[i]; at--)
			ret->ms[at] = ret->ms[at - 1];
		ret->ms[at] = like->run_ms[i];
	}
}

/* A name that is a number says nothing: folded, all of them are one. */
static bool says_something(const char *name)
{
	while (*name >= '0' && *name <= '9')
		name++;
	return *name != '\0';
}

enum like_level like_closest(const struct like_wish *wish)
{
	return says_something(wish->name) ? LIKE_NAME : LIKE_USER;
}

void likes_find(const struct facts *f, const struct like_wish *wish, struct like_runs *ret)
{
	int level = (int)like_closest(wish);

	ret->count = 0;
	ret->level = LIKE_ALL;
	for (; level >= LIKE_ALL && f->likes.count; level--) {
		uint32_t row = row_find(f, like_key(wish, (enum like_level)level));

		if (!row || row_get(f, row)->runs < LIKE_LEAST)
			continue;
		ret->level = (enum like_level)level;
		runs_take(row_get(f, row), ret);
		return;
	}
}

int64_t like_runs_quantile(const struct like_runs *runs, uint32_t per_cent)
{
	uint32_t rank = (runs->count * per_cent + 99) / 100;

	return runs->ms[rank ? rank - 1 : 0];
}
