/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json_out.h"

#include <string.h>
#include "core/model/facts.h"

static void begin(struct buf *out, const char *key)
{
	const char last = out->size ? out->data[out->size - 1] : '{';

	if (last != '{' && last != '[' && last != ':')
		buf_addc(out, ',');
	if (!key)
		return;
	buf_add_json(out, key, strlen(key));
	buf_addc(out, ':');
}

void out_object(struct buf *out, const char *key)
{
	if (out->size || key)
		begin(out, key);
	buf_addc(out, '{');
}

void out_list(struct buf *out, const char *key)
{
	begin(out, key);
	buf_addc(out, '[');
}

void out_end(struct buf *out, char closing)
{
	buf_addc(out, closing);
}

void out_text(struct buf *out, const char *key, const char *text)
{
	begin(out, key);
	buf_add_json(out, text ? text : "", text ? strlen(text) : 0);
}

void out_int(struct buf *out, const char *key, int64_t number)
{
	begin(out, key);
	buf_addi(out, number);
}

void out_bool(struct buf *out, const char *key, bool value)
{
	begin(out, key);
	buf_adds(out, value ? "true" : "false");
}

void out_time(struct buf *out, const char *key, int64_t ms)
{
	char text[40] = "";
	const time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (ms > 0 && gmtime_r(&seconds, &tm)) {
		const size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);

		snprintf(text + size, sizeof text - size, ".%03dZ", (int)(ms % 1000));
	}
	out_text(out, key, text);
}

void out_share(struct buf *out, const char *key, int64_t share)
{
	const int64_t milli = (share * 1000 + GPU_SHARE / 2) / GPU_SHARE;
	char text[40];
	size_t size = (size_t)snprintf(text, sizeof text, "%lld.%03d", (long long)(milli / 1000),
				       (int)(milli % 1000));

	while (text[size - 1] == '0')
		size--;
	if (text[size - 1] == '.')
		size--;
	out_raw(out, key, text, size);
}

void out_raw(struct buf *out, const char *key, const char *json, size_t size)
{
	begin(out, key);
	buf_add(out, json, size);
}
