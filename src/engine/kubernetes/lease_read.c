/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/lease_read.h"

#include <stdio.h>

#include "base/json.h"

/* Of a text, or of null. */
static void read_text(struct json_reader *r, char *out, size_t room)
{
	struct json_slice text;

	if (pull_peek(r) != PULL_STRING) {
		pull_skip(r);
		return;
	}
	pull_string(r, &text);
	if (text.escaped && text.size < room)
		pull_copy(r, &text, out, room);
	else
		snprintf(out, room, "%.*s", (int)text.size, text.data);
}

static void read_number(struct json_reader *r, int64_t *ret)
{
	if (pull_peek(r) == PULL_NUMBER)
		pull_int(r, ret);
	else
		pull_skip(r);
}

static void read_annotations(struct json_reader *r, struct lease_seen *ret)
{
	struct json_slice key;

	pull_object(r);
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "fairlead.dev/address"))
			read_text(r, ret->address, sizeof(ret->address));
		else
			pull_skip(r);
	}
}

static void read_metadata(struct json_reader *r, struct lease_seen *ret)
{
	struct json_slice key;

	pull_object(r);
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "resourceVersion"))
			read_text(r, ret->version, sizeof(ret->version));
		else if (pull_key_is(&key, "annotations"))
			read_annotations(r, ret);
		else
			pull_skip(r);
	}
}

static void read_spec(struct json_reader *r, struct lease_seen *ret)
{
	struct json_slice key;
	int64_t lasts_s = 0;

	pull_object(r);
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "holderIdentity"))
			read_text(r, ret->holder, sizeof(ret->holder));
		else if (pull_key_is(&key, "acquireTime"))
			read_text(r, ret->acquired, sizeof(ret->acquired));
		else if (pull_key_is(&key, "renewTime"))
			read_text(r, ret->renewed, sizeof(ret->renewed));
		else if (pull_key_is(&key, "leaseDurationSeconds"))
			read_number(r, &lasts_s);
		else if (pull_key_is(&key, "leaseTransitions"))
			read_number(r, &ret->transitions);
		else
			pull_skip(r);
	}
	/* An hour is more than anybody means. */
	ret->lasts_ms = lasts_s < 0 ? 0 : lasts_s > 3600 ? 3600000 : lasts_s * 1000;
}

int lease_read(const char *text, size_t size, struct lease_seen *ret, struct err *err)
{
	struct json_slice key;
	struct json_reader r;

	*ret = (struct lease_seen){ .exists = true };
	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_metadata(&r, ret);
		else if (pull_key_is(&key, "spec"))
			read_spec(&r, ret);
		else
			pull_skip(&r);
	}
	return pull_finish(&r, err);
}
