/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/away.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "engine/checkpoint.h"

void away_init(struct away *away)
{
	memset(away, 0, sizeof(*away));
	CHECK(pthread_mutex_init(&away->lock, NULL) == 0);
}

static struct away_row *row_of(struct away *away, uint32_t job)
{
	for (uint32_t i = 0; i < AWAY_MOST; i++)
		if (away->rows[i].job == job)
			return &away->rows[i];
	return NULL;
}

void away_note(struct away *away, uint32_t job, uint32_t number, enum away_why why)
{
	struct away_row *row;

	pthread_mutex_lock(&away->lock);
	row = row_of(away, job);
	if (!row) {
		row = &away->rows[away->next];
		away->next = (away->next + 1) % AWAY_MOST;
		*row = (struct away_row){ .job = job };
	}
	if (row->number != number)
		row->given_back = false;
	row->number = number;
	row->why = why;
	pthread_mutex_unlock(&away->lock);
}

void away_give_back(struct away *away, uint32_t job, uint32_t number)
{
	struct away_row *row;

	pthread_mutex_lock(&away->lock);
	row = row_of(away, job);
	if (row && row->number == number)
		row->given_back = true;
	pthread_mutex_unlock(&away->lock);
}

bool away_was_given_back(struct away *away, uint32_t job, uint32_t number)
{
	const struct away_row *row;
	bool was;

	pthread_mutex_lock(&away->lock);
	row = row_of(away, job);
	was = row && row->number == number && row->given_back;
	pthread_mutex_unlock(&away->lock);
	return was;
}

void away_end(struct away *away, uint32_t job)
{
	struct away_row *row;

	pthread_mutex_lock(&away->lock);
	row = row_of(away, job);
	if (row)
		*row = (struct away_row){ 0 };
	pthread_mutex_unlock(&away->lock);
}

bool away_say(struct away *away, uint32_t job, bool starts, char text[AWAY_TEXT_MAX])
{
	static const char *const why[] = {
		[AWAY_FORBIDDEN] = "the job's account may not read it",
		[AWAY_FAILS] = "it gives errors",
		[AWAY_UNREACHABLE] = "the folder in which it lies gives errors, too",
	};
	const int minutes = CHECKPOINT_AWAY_MS / 60000;
	struct away_row row = { 0 };
	const struct away_row *found;

	pthread_mutex_lock(&away->lock);
	found = job ? row_of(away, job) : NULL;
	if (found)
		row = *found;
	pthread_mutex_unlock(&away->lock);
	if (!row.job || (!starts && !row.given_back))
		return false;
	if (!starts)
		snprintf(
			text, AWAY_TEXT_MAX,
			"checkpoint %u could not be read when it was to begin (%s): it is kept, and tried again with the next place",
			row.number, why[row.why]);
	else if (row.why == AWAY_UNREACHABLE)
		snprintf(
			text, AWAY_TEXT_MAX,
			"checkpoint %u can't be read now (%s): it is looked at each second for %d minutes; then the place is given back, and the checkpoint is kept",
			row.number, why[row.why], minutes);
	else
		snprintf(
			text, AWAY_TEXT_MAX,
			"checkpoint %u can't be read now (%s): it is looked at each second for %d minutes; then it is void, and the one before is taken",
			row.number, why[row.why], minutes);
	return true;
}
