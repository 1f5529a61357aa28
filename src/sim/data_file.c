/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/data_file.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/fabric/describe.h"

struct list {
	struct event *at;
	uint32_t count;
};

static struct event *list_add(struct list *list, enum event_kind kind)
{
	list->at[list->count] = event_make(kind, 0, "");
	return &list->at[list->count++];
}

/* --- data sets ------------------------------------------------------------------------------------------- */

static int places_read(const char *file, const struct conf *c, struct arena *arena,
		       const char **ret, struct err *err)
{
	const char *text = "";

	*ret = "";
	if (!c)
		return 0;
	if (c->type == CONF_SCALAR) {
		*ret = c->text;
		return 0;
	}
	for (size_t i = 0; c->type == CONF_LIST && i < c->count; i++) {
		if (c->items[i]->type != CONF_SCALAR)
			return conf_error(err, file, c->items[i],
					  "the name of a domain is expected");
		text = arena_printf(arena, "%s%s%s", text, i ? "," : "", c->items[i]->text);
	}
	if (c->type != CONF_LIST)
		return conf_error(err, file, c,
				  "at must be the name of a domain or a list of them");
	if (c->count > DATA_PLACES_MAX)
		return conf_error(err, file, c, "%zu places are given; the limit is %d", c->count,
				  DATA_PLACES_MAX);
	*ret = text;
	return 0;
}

static int data_read(const char *file, const struct conf *c, struct arena *arena,
		     struct event_data_set *ret, struct err *err)
{
	static const char *const known[] = { "size", "at" };
	const struct conf *size;
	int rc;

	if (c->type != CONF_MAP)
		return conf_error(err, file, c,
				  "data set \"%.63s\" must be a map: {size: 150GB, at: [eu]}",
				  c->key);
	rc = conf_only(err, file, c, "data set", known, ARRAY_SIZE(known));
	size = conf_find(c, "size");
	if (rc == 0 && !size)
		return conf_error(err, file, c, "data set \"%.63s\" needs a size, such as 150GB",
				  c->key);
	if (rc == 0)
		rc = conf_size_mib(err, file, size, "size", &ret->size_mib);
	if (rc == 0 && (ret->size_mib < 1 || ret->size_mib > UINT32_MAX))
		return conf_error(err, file, size, "size must be between 1MiB and 4095TiB");
	ret->name = c->key;
	return rc < 0 ? rc : places_read(file, conf_find(c, "at"), arena, &ret->places, err);
}

static int all_data(const char *file, const struct conf *data, const struct facts *facts,
		    struct arena *arena, struct list *list, struct err *err)
{
	int rc = 0;

	if (data->type != CONF_MAP)
		return conf_error(err, file, data, "data must be a map of data sets by name");
	for (uint32_t row = 1; row <= facts->data_sets.count; row++) {
		const struct data_set *d = table_get(&facts->data_sets, row);

		if (d->size_mib && !conf_find(data, facts_name(facts, d->name)))
			list_add(list, EVENT_DATA_SET)->data_set.name =
				arena_strdup(arena, facts_name(facts, d->name));
	}
	for (size_t i = 0; i < data->count && rc == 0; i++)
		rc = data_read(file, data->items[i], arena,
			       &list_add(list, EVENT_DATA_SET)->data_set, err);
	return rc;
}

/* --- transfers --------------------------------------------------------------------------------------------- */

static int place_read(const char *file, const struct conf *map, const char *key, const char **ret,
		      struct err *err)
{
	const struct conf *c = conf_find(map, key);

	*ret = "any";
	return c ? conf_text(err, file, c, key, NAME_MAX_BYTES, ret) : 0;
}

static int transfer_read(const char *file, const struct conf *c, struct event_transfer_set *ret,
			 struct err *err)
{
	static const char *const known[] = { "from", "to", "price", "bandwidth" };
	const struct conf *price, *bandwidth;
	struct err why = { 0 };
	uint64_t mbps = 0;
	int rc;

	if (c->type != CONF_MAP)
		return conf_error(
			err, file, c,
			"a transfer must be a map: {from: eu, to: us, price: 0.09, bandwidth: 10Gb/s}");
	rc = conf_only(err, file, c, "transfer", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = place_read(file, c, "from", &ret->from, err);
	if (rc == 0)
		rc = place_read(file, c, "to", &ret->to, err);
	price = conf_find(c, "price");
	bandwidth = conf_find(c, "bandwidth");
	if (rc == 0 && !price && !bandwidth)
		return conf_error(err, file, c, "a transfer needs a price, a bandwidth, or both");
	if (rc == 0 && price &&
	    (price->type != CONF_SCALAR || !parse_money(price->text, &ret->micro_per_gb) ||
	     ret->micro_per_gb > TRANSFER_PRICE_MAX))
		return conf_error(
			err, file, price,
			"price must be that of a GB, at most 1000 and with at most six decimals, such as 0.09");
	if (rc == 0 && bandwidth &&
	    (bandwidth->type != CONF_SCALAR || fabric_parse_rate(bandwidth->text, &mbps, &why) < 0))
		return conf_error(err, file, bandwidth, "%s",
				  bandwidth->type == CONF_SCALAR ? why.text
								 : "bandwidth must be a value");
	ret->mbps = (int64_t)mbps;
	return rc;
}

static bool transfer_is(const struct event_transfer_set *e, const char *from, const char *to)
{
	return strcmp(e->from, from) == 0 && strcmp(e->to, to) == 0;
}

static int all_transfers(const char *file, const struct conf *transfers, const struct facts *facts,
			 struct arena *arena, struct list *list, struct err *err)
{
	uint32_t first = list->count, end;
	int rc = 0;

	if (transfers->type != CONF_LIST)
		return conf_error(err, file, transfers, "transfers must be a list");
	for (size_t i = 0; i < transfers->count && rc == 0; i++) {
		struct event_transfer_set *e = &list_add(list, EVENT_TRANSFER_SET)->transfer_set;

		rc = transfer_read(file, transfers->items[i], e, err);
		for (uint32_t k = first; rc == 0 && k + 1 < list->count; k++)
			if (transfer_is(&list->at[k].transfer_set, e->from, e->to))
				return conf_error(err, file, transfers->items[i],
						  "the transfer from %s to %s is described twice",
						  e->from, e->to);
	}
	end = list->count;
	for (uint32_t row = 1; rc == 0 && row <= facts->transfers.count; row++) {
		const struct transfer *t = table_get(&facts->transfers, row);
		const char *from = facts_name(facts, t->from), *to = facts_name(facts, t->to);
		bool named = t->micro_per_gb < 0;

		for (uint32_t k = first; k < end; k++)
			named = named || transfer_is(&list->at[k].transfer_set, from, to);
		if (named)
			continue;
		list->at[list->count] = event_make(EVENT_TRANSFER_SET, 0, "");
		list->at[list->count].transfer_set.from = arena_strdup(arena, from);
		list->at[list->count].transfer_set.to = arena_strdup(arena, to);
		list->at[list->count++].transfer_set.micro_per_gb = -1;
	}
	return rc;
}

int data_file_read(const char *file, const struct conf *data, const struct conf *transfers,
		   const struct facts *facts, struct arena *arena, struct event **ret,
		   uint32_t *ret_count, struct err *err)
{
	size_t most = (size_t)facts->data_sets.count + facts->transfers.count +
		      (data ? data->count : 0) + (transfers ? transfers->count : 0) + 1;
	struct list list = { .at = arena_new_array(arena, struct event, most) };
	int rc = 0;

	if (data)
		rc = all_data(file, data, facts, arena, &list, err);
	if (rc == 0 && transfers)
		rc = all_transfers(file, transfers, facts, arena, &list, err);
	*ret = list.at;
	*ret_count = list.count;
	return rc;
}
