/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets: how large they are, where they lie, and what it takes to bring them elsewhere. */
#include <string.h>

#include "core/model/apply.h"
#include "core/model/edit.h"

const struct data_set *facts_data_find(const struct facts *f, struct name_id name)
{
	for (uint32_t row = 1; name.v && row <= f->data_sets.count; row++) {
		const struct data_set *d = table_get(&f->data_sets, row);

		if (name_same(d->name, name))
			return d->size_mib ? d : NULL;
	}
	return NULL;
}

static uint32_t data_row(const struct facts *f, struct name_id name)
{
	for (uint32_t row = 1; row <= f->data_sets.count; row++)
		if (name_same(((const struct data_set *)table_get(&f->data_sets, row))->name, name))
			return row;
	return 0;
}

/* Rows are not used again: there are as many as data sets were ever known. */
void apply_data_set(struct facts *f, const struct event_data_set *e)
{
	struct data_set made = { .size_mib = clamp_u32(e->size_mib) };
	uint32_t row;

	if (!*e->name ||
	    !names_sorted(f, made.size_mib ? e->places : "", "", made.place, DATA_PLACES_MAX))
		return;
	made.name = facts_intern(f, e->name);
	row = data_row(f, made.name);
	if (!row && f->data_sets.count >= DATA_SETS_MAX)
		return;
	row = row ? row : table_add(&f->data_sets);
	*(struct data_set *)table_edit(&f->data_sets, row) = made;
}

void apply_transfer_set(struct facts *f, const struct event_transfer_set *e)
{
	struct transfer made = { .micro_per_gb = e->micro_per_gb < 0 ? -1 : e->micro_per_gb,
				 .mbps = clamp_u32(e->mbps) };
	uint32_t row = 1;

	if (!*e->from || !*e->to)
		return;
	made.micro_per_gb =
		made.micro_per_gb > TRANSFER_PRICE_MAX ? TRANSFER_PRICE_MAX : made.micro_per_gb;
	made.mbps = made.mbps > RATE_MAX_MBPS ? RATE_MAX_MBPS : made.mbps;
	made.from = facts_intern(f, e->from);
	made.to = facts_intern(f, e->to);
	for (; row <= f->transfers.count; row++) {
		const struct transfer *t = table_get(&f->transfers, row);

		if (name_same(t->from, made.from) && name_same(t->to, made.to))
			break;
	}
	if (row > f->transfers.count && f->transfers.count >= TRANSFERS_MAX)
		return;
	row = row > f->transfers.count ? table_add(&f->transfers) : row;
	*(struct transfer *)table_edit(&f->transfers, row) = made;
}
