/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the readers of this folder share. Texts go into the arena; null, and what is of another type, reads as none. */
#include "base/json.h"
#include "engine/kubernetes/devices/device.h"

/* A list that grows in an arena. */
struct grown {
	void *items;
	uint32_t count, room;
};
/* The next item, zeroed; NULL when there are `most` already: the reader fails then. */
void *grow(struct json_reader *r, struct arena *arena, struct grown *list, size_t size,
	   uint32_t most);

/* Never NULL; "" = none. */
const char *dra_text(struct json_reader *r, struct arena *arena);
/* The value that comes next, as it stands there. */
const char *dra_raw(struct json_reader *r, struct arena *arena);
const char *dra_key(struct json_reader *r, struct arena *arena, const struct json_slice *key);
void dra_texts(struct json_reader *r, struct arena *arena, const char *const **ret, uint32_t *count,
	       uint32_t most);
/* nodeName, nodeSelector, allNodes: false = the key is none of them, and nothing was read. */
bool dra_where_key(struct json_reader *r, struct arena *arena, const struct json_slice *key,
		   struct dra_where *where);
void dra_node_selector(struct json_reader *r, struct arena *arena, struct dra_where *where);
/* "domain/id": domain NULL where there is none. */
void dra_split(struct arena *arena, const char *name, const char **ret_domain, const char **ret_id);
/* selectors: [{"cel":{"expression":...}}] */
void dra_selectors(struct json_reader *r, struct arena *arena, const struct dra_selector **ret,
		   uint32_t *count);
/* config: [{"requests":[...],"opaque":{...}}]; another kind is a problem. */
void dra_configs(struct json_reader *r, struct arena *arena, const struct dra_config **ret,
		 uint32_t *count, const char **problem);
int dra_finish(struct json_reader *r, size_t size, const char *what, const char *name,
	       struct err *err) MUST_CHECK;
