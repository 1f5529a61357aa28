/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding conditions: a device that has to be attached to its node, say, is given away before it is there. Its slice names the conditions that
 * must be true before a pod is bound, and those that say that it failed. The allocation repeats them, and whoever prepares the device sets
 * them in the claim's status.
 */
#include <string.h>

#include "engine/kubernetes/devices/device.h"

/* Of that name, true; NULL = there is none. */
static const struct dra_condition *condition_true(const struct dra_device_status *status,
						  const char *type)
{
	for (uint32_t i = 0; i < status->condition_count; i++)
		if (strcmp(status->conditions[i].type, type) == 0)
			return status->conditions[i].is ? &status->conditions[i] : NULL;
	return NULL;
}

static const struct dra_device_status *status_of(const struct dra_claim *claim,
						 const struct dra_result *result)
{
	for (uint32_t i = 0; i < claim->status_count; i++) {
		const struct dra_device_status *status = &claim->statuses[i];

		if (strcmp(status->device, result->device) == 0 &&
		    strcmp(status->pool, result->pool) == 0 &&
		    strcmp(status->driver, result->driver) == 0)
			return status;
	}
	return NULL;
}

enum dra_binding dra_claim_binding(const struct dra_claim *claim, const char **ret_device,
				   const char **ret_text)
{
	static const struct dra_device_status nothing;
	enum dra_binding found = DRA_BIND_NOW;

	*ret_device = *ret_text = "";
	for (uint32_t i = 0; claim->allocated && i < claim->result_count; i++) {
		const struct dra_result *result = &claim->results[i];
		const struct dra_device_status *status = status_of(claim, result);

		status = status ? status : &nothing;
		for (uint32_t k = 0; result->binding_count && k < result->failure_count; k++) {
			const struct dra_condition *failed =
				condition_true(status, result->failures[k]);

			if (!failed)
				continue;
			*ret_device = result->device;
			*ret_text = *failed->text ? failed->text : failed->type;
			return DRA_BIND_FAILED;
		}
		for (uint32_t k = 0; found == DRA_BIND_NOW && k < result->binding_count; k++) {
			if (condition_true(status, result->binding[k]))
				continue;
			found = DRA_BIND_WAIT;
			*ret_device = result->device;
			*ret_text = result->binding[k];
		}
	}
	return found;
}
