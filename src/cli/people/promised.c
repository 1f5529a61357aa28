/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/people/promised.h"

#include <stdlib.h>
#include <string.h>

#include "cli/jobs/jobs.h"

struct look {
	struct arena *arena;
	json_t *promised, *there; /* GPUs by model */
	double all_promised, all_there;
	void *context;
	void (*tell)(void *context, const char *text);
	int told;
};

static void amount_add(json_t *amounts, const char *model, double gpus)
{
	gpus += json_number_value(json_object_get(amounts, model));
	json_object_set_new(amounts, model, json_real(gpus));
}

/* "H100-80GB=8,any=4": what is promised of any model is told of by the sum of all alone. */
static void models_add(struct look *look, const char *list)
{
	char *copy = arena_strdup(look->arena, list), *rest = copy, *part;

	while ((part = strsep(&rest, ",")) != NULL) {
		char *equals = strrchr(part, '=');

		if (!equals)
			continue;
		*equals = '\0';
		if (strcmp(part, "any") != 0)
			amount_add(look->promised, part, strtod(equals + 1, NULL));
	}
}

static int queues_read(struct look *look, struct client *client, struct err *err)
{
	json_t *rows = NULL, *row;
	size_t index;
	int rc = fetch_list(client, "/api/v1/queues", "queues", &rows, err);

	json_array_foreach(rows, index, row)
	{
		if (*get_text(row, "parent"))
			continue;
		look->all_promised += json_number_value(json_object_get(row, "promised_gpus"));
		models_add(look, get_text(row, "guarantee_models"));
	}
	json_decref(rows);
	return rc;
}

static int nodes_read(struct look *look, struct client *client, struct err *err)
{
	json_t *rows = NULL, *row;
	size_t index;
	int rc = fetch_list(client, "/api/v1/nodes", "nodes", &rows, err);

	json_array_foreach(rows, index, row)
	{
		double gpus = (double)get_int(json_object_get(row, "gpus"), "total");

		if (strcmp(get_text(row, "state"), "gone") == 0)
			continue;
		look->all_there += gpus;
		amount_add(look->there, get_text(row, "model"), gpus);
	}
	json_decref(rows);
	return rc;
}

static void amounts_tell(struct look *look)
{
	const char *model;
	json_t *promised;

	if (look->all_promised > look->all_there) {
		look->told++;
		look->tell(
			look->context,
			arena_printf(
				look->arena,
				"all guarantees together are %.6g GPUs, and there are %.6g: not every queue can have what it is promised at the same time",
				look->all_promised, look->all_there));
	}
	json_object_foreach(look->promised, model, promised)
	{
		double gpus = json_number_value(promised),
		       there = json_number_value(json_object_get(look->there, model));

		if (gpus <= there)
			continue;
		look->told++;
		look->tell(
			look->context,
			there > 0
				? arena_printf(
					  look->arena,
					  "the guarantees of %s come to %.6g GPUs, and there are %.6g of that model",
					  model, gpus, there)
				: arena_printf(
					  look->arena,
					  "%s is guaranteed, and no node has that model (`fairlead nodes` shows which there are)",
					  model));
	}
}

int promised_look(struct client *client, struct arena *arena, void *context,
		  void (*tell)(void *context, const char *text), struct err *err)
{
	struct look look = { .arena = arena,
			     .promised = json_object(),
			     .there = json_object(),
			     .context = context,
			     .tell = tell };
	int rc = queues_read(&look, client, err);

	if (rc >= 0)
		rc = nodes_read(&look, client, err);
	if (rc >= 0)
		amounts_tell(&look);
	json_decref(look.promised);
	json_decref(look.there);
	return rc < 0 ? rc : look.told;
}
