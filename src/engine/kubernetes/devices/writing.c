/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to a ResourceClaim, as JSON. */
#include <string.h>

#include "engine/kubernetes/devices/writing.h"

void claim_add_text(struct buf *out, const char *text)
{
	buf_add_json(out, text, strlen(text));
}

static const struct dra_choice *choice_of(const struct dra_claim *claim,
					  const struct dra_choice_made *made)
{
	return &claim->requests[made->request].choices[made->choice];
}

static void add_results(struct buf *out, const struct dra_claim *claim,
			const struct dra_allocation *allocation)
{
	buf_adds(out, "\"results\":[");
	for (uint32_t i = 0; i < allocation->count; i++) {
		const struct dra_choice_made *made = &allocation->made[i];
		const struct dra_choice *choice = choice_of(claim, made);

		buf_adds(out, i ? ",{" : "{");
		buf_add_json_member(out, "request", choice->name);
		buf_addc(out, ',');
		buf_add_json_member(out, "driver", made->slice->driver);
		buf_addc(out, ',');
		buf_add_json_member(out, "pool", made->slice->pool);
		buf_addc(out, ',');
		buf_add_json_member(out, "device", made->device->name);
		if (choice->tolerations_json)
			buf_addf(out, ",\"tolerations\":%s", choice->tolerations_json);
		if (made->device->binding_json)
			buf_addf(out, ",\"bindingConditions\":%s", made->device->binding_json);
		if (made->device->failures_json)
			buf_addf(out, ",\"bindingFailureConditions\":%s",
				 made->device->failures_json);
		buf_addc(out, '}');
	}
	buf_addc(out, ']');
}

static void add_config(struct buf *out, const char *source, const char *const *requests,
		       uint32_t count, const char *opaque, bool *first)
{
	buf_adds(out, *first ? "{" : ",{");
	*first = false;
	buf_add_json_member(out, "source", source);
	buf_adds(out, ",\"requests\":[");
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			buf_addc(out, ',');
		claim_add_text(out, requests[i]);
	}
	buf_addf(out, "],\"opaque\":%s}", opaque);
}

/* The choice that a request was met by; a request for all devices that got none has none. */
static const struct dra_choice *met_by(const struct dra_claim *claim,
				       const struct dra_allocation *allocation, uint32_t request)
{
	for (uint32_t i = 0; i < allocation->count; i++)
		if (allocation->made[i].request == request)
			return choice_of(claim, &allocation->made[i]);
	return NULL;
}

/* Configurations of classes, with the requests that are of the class; then those of the claim. */
static void add_configs(struct engine *engine, struct buf *out, const struct dra_claim *claim,
			const struct dra_allocation *allocation)
{
	const char *done[DRA_REQUESTS_MAX], *requests[DRA_REQUESTS_MAX];
	uint32_t done_count = 0;
	bool first = true;

	buf_adds(out, ",\"config\":[");
	for (uint32_t i = 0; i < claim->request_count; i++) {
		const struct dra_choice *choice = met_by(claim, allocation, i), *other;
		const struct dra_class *class =
			choice ? dra_class_find(&engine->devices->inventory, choice->class) : NULL;
		bool again = false;
		uint32_t count = 0;

		for (uint32_t j = 0; class && j < done_count; j++)
			again |= strcmp(done[j], class->name) == 0;
		if (!class || again)
			continue;
		done[done_count++] = class->name;
		for (uint32_t j = i; j < claim->request_count; j++) {
			other = met_by(claim, allocation, j);
			if (other && strcmp(other->class, class->name) == 0)
				requests[count++] = other->name;
		}
		for (uint32_t j = 0; j < class->config_count; j++)
			add_config(out, "FromClass", requests, count, class->configs[j].opaque,
				   &first);
	}
	for (uint32_t i = 0; i < claim->config_count; i++) {
		const struct dra_config *config = &claim->configs[i];
		bool concerns = !config->request_count;

		for (uint32_t j = 0; j < config->request_count; j++)
			for (uint32_t k = 0; k < claim->request_count; k++) {
				const struct dra_choice *choice = met_by(claim, allocation, k);

				concerns |=
					strcmp(config->requests[j], claim->requests[k].name) == 0 ||
					(choice && strcmp(config->requests[j], choice->name) == 0);
			}
		if (concerns)
			add_config(out, "FromClaim", config->requests, config->request_count,
				   config->opaque, &first);
	}
	buf_addc(out, ']');
}

/* Devices that all nodes have can be used anywhere, unless they are brought to the one; others only there. */
static bool is_everywhere(const struct dra_allocation *allocation)
{
	for (uint32_t i = 0; i < allocation->count; i++) {
		const struct dra_choice_made *made = &allocation->made[i];

		if (made->device->binds_to_node ||
		    !(made->slice->by_device ? made->device->where.all : made->slice->where.all))
			return false;
	}
	return true;
}

void claim_add_allocation(struct engine *engine, const struct dra_claim *claim,
			  const struct dra_allocation *allocation, const char *node,
			  struct buf *out)
{
	buf_adds(out, "{\"devices\":{");
	add_results(out, claim, allocation);
	add_configs(engine, out, claim, allocation);
	buf_addc(out, '}');
	if (!is_everywhere(allocation)) {
		buf_adds(
			out,
			",\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[");
		claim_add_text(out, node);
		buf_adds(out, "]}]}]}");
	}
	buf_addc(out, '}');
}

/* Who it is reserved for: with the rank's pod, or without. */
void claim_add_reserved(struct buf *out, const struct dra_claim *claim,
			const struct rank_state *state, bool with)
{
	bool first = true;

	buf_adds(out, "\"reservedFor\":[");
	for (uint32_t i = 0; i < claim->consumer_count; i++) {
		const struct dra_consumer *c = &claim->consumers[i];

		if (strcmp(c->uid, state->uid) == 0)
			continue;
		buf_adds(out, first ? "{" : ",{");
		first = false;
		if (*c->group) {
			buf_add_json_member(out, "apiGroup", c->group);
			buf_addc(out, ',');
		}
		buf_add_json_member(out, "resource", c->resource);
		buf_addc(out, ',');
		buf_add_json_member(out, "name", c->name);
		buf_addc(out, ',');
		buf_add_json_member(out, "uid", c->uid);
		buf_addc(out, '}');
	}
	if (with) {
		buf_adds(out, first ? "{" : ",{");
		buf_add_json_member(out, "resource", "pods");
		buf_addc(out, ',');
		buf_add_json_member(out, "name", state->name);
		buf_addc(out, ',');
		buf_add_json_member(out, "uid", state->uid);
		buf_addc(out, '}');
	}
	buf_addc(out, ']');
}

void claim_add_head(struct buf *out, const struct dra_claim *claim)
{
	buf_adds(out, "{\"metadata\":{");
	buf_add_json_member(out, "uid", claim->uid);
	buf_addc(out, ',');
	buf_add_json_member(out, "resourceVersion", claim->version);
}
