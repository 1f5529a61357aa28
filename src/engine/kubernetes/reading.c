/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/reading.h"

#include <stdio.h>
#include <string.h>

#include "engine/kubernetes/quantity.h"

enum { AMOUNT_MAX = 64 };

struct json_slice value_skip(struct json_reader *r)
{
	const char *from;

	(void)pull_peek(r); /* behind blanks */
	from = r->at;
	pull_skip(r);
	return (struct json_slice){ from, (size_t)(r->at - from), false };
}

int object_parts_read(const char *json, size_t size, struct object_parts *ret, struct err *err)
{
	struct json_reader r;
	struct json_slice key;

	pull_init(&ret->metadata, "{}", 2);
	pull_init(&ret->spec, "{}", 2);
	pull_init(&ret->status, "{}", 2);
	pull_init(&r, json, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		struct json_reader *to = pull_key_is(&key, "metadata") ? &ret->metadata
					 : pull_key_is(&key, "spec")   ? &ret->spec
					 : pull_key_is(&key, "status") ? &ret->status
								       : NULL;
		struct json_slice value = value_skip(&r);

		if (to)
			pull_init(to, value.data, value.size);
	}
	return pull_finish(&r, err) < 0 ? -(int)ERR_INVALID : 0;
}

bool enter_object(struct json_reader *r)
{
	if (pull_peek(r) == PULL_NULL) {
		pull_null(r);
		return false;
	}
	pull_object(r);
	return !r->problem;
}

bool enter_array(struct json_reader *r)
{
	if (pull_peek(r) == PULL_NULL) {
		pull_null(r);
		return false;
	}
	pull_array(r);
	return !r->problem;
}

/* Behind the last whole character that fits. */
static size_t whole_characters(const char *text, size_t size, size_t room)
{
	if (size < room)
		return size;
	for (size = room - 1; size && ((unsigned char)text[size] & 0xc0) == 0x80;)
		size--;
	return size;
}

void read_cut(struct json_reader *r, char *out, size_t room)
{
	struct json_slice slice = { 0 };
	char text[4096];
	size_t size;

	out[0] = '\0';
	if (pull_peek(r) == PULL_NULL) {
		pull_null(r);
		return;
	}
	pull_string(r, &slice);
	if (r->problem)
		return;
	if (!slice.escaped) {
		size = whole_characters(slice.data, slice.size, room);
		memcpy(out, slice.data, size);
		out[size] = '\0';
		return;
	}
	if (slice.size >= sizeof(text))
		return; /* long and escaped: a text for people, and we do without */
	pull_copy(r, &slice, text, sizeof(text));
	size = whole_characters(text, strlen(text), room);
	memcpy(out, text, size);
	out[size] = '\0';
}

/* Days since 1970 of a day of the Gregorian calendar, with years that begin in March. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month > 2 ? year : year - 1, m = (month + 9) % 12;

	return 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719468;
}

int64_t read_time(struct json_reader *r)
{
	char text[KUBE_WORD_MAX];
	int year, month, day, hour, minute, second, size = 0;

	read_cut(r, text, sizeof(text));
	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second,
		   &size) != 6 ||
	    (text[size] != 'Z' && text[size] != '.'))
		return 0;
	return days_of(year, month, day) * 86400 + (int64_t)hour * 3600 + (int64_t)minute * 60 +
	       second;
}

static int64_t add(int64_t a, int64_t b)
{
	return b > INT64_MAX - a ? INT64_MAX : a + b;
}

static int64_t whole(int64_t amount, int64_t unit, bool down)
{
	return amount <= 0 ? 0 : down ? amount / unit : (amount - 1) / unit + 1;
}

void read_resources(struct json_reader *r, struct kube_use *use, int64_t *pods)
{
	struct json_slice key, text;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		char amount[AMOUNT_MAX] = "";
		int64_t milli = 0;

		if (pull_peek(r) == PULL_STRING) {
			read_cut(r, amount, sizeof(amount));
		} else {
			const char *from = r->at;

			pull_skip(r);
			text = (struct json_slice){ from, (size_t)(r->at - from), false };
			if (!r->problem && text.size < sizeof(amount))
				memcpy(amount, text.data, text.size);
		}
		if (r->problem || quantity_parse(amount, &milli) < 0 || milli < 0)
			continue;
		if (pull_key_is(&key, KUBE_GPU))
			use->gpus = add(use->gpus, whole(milli, 1000, pods));
		else if (pull_key_is(&key, "cpu"))
			use->cpu_milli = add(use->cpu_milli, milli);
		else if (pull_key_is(&key, "memory"))
			use->memory_mib =
				add(use->memory_mib, whole(milli, INT64_C(1048576000), pods));
		else if (pods && pull_key_is(&key, "pods"))
			*pods = milli / 1000;
	}
}
