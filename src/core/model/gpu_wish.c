/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/gpu_wish.h"

#include <string.h>

#include "base/check.h"
#include "core/model/facts.h"

/* Up to five digits; false when there are none, or more. */
static bool digits_read(const char **text, uint32_t *ret, uint32_t *ret_count)
{
	uint32_t count = 0;

	*ret = 0;
	for (; **text >= '0' && **text <= '9' && count < 6; (*text)++, count++)
		*ret = *ret * 10 + (uint32_t)(**text - '0');
	*ret_count = count;
	return count >= 1 && count <= 5;
}

static int refuse(const char *text, struct err *err)
{
	return err_set(
		err, ERR_INVALID,
		"\"%.40s\" is neither a number of GPUs up to %d nor a part of one: write 2, 0.5 or 1/7 (three decimals at most)",
		text, NODE_GPUS_MAX);
}

int gpu_wish_parse(const char *text, struct gpu_wish *ret, struct err *err)
{
	static const uint32_t scales[] = { 1, 10, 100, 1000 };
	const char *p = text;
	char sign;
	uint32_t first, second = 0, count, share = 0;

	if (!digits_read(&p, &first, &count))
		return refuse(text, err);
	if (!*p) {
		*ret = (struct gpu_wish){ .gpus = first };
		return first <= NODE_GPUS_MAX ? 0 : refuse(text, err);
	}
	if (*p != '.' && *p != '/')
		return refuse(text, err);
	sign = *p++;
	if (!digits_read(&p, &second, &count) || *p)
		return refuse(text, err);
	if (sign == '/') {
		if (first == 0 || second <= first)
			return refuse(text, err);
		share = (uint32_t)((uint64_t)first * GPU_SHARE / second);
	} else {
		if (first || !second || count > 3)
			return refuse(text, err);
		share = second * (GPU_SHARE / scales[count]);
	}
	if (!share)
		return refuse(text, err);
	*ret = (struct gpu_wish){ .gpus = 1, .part = share };
	return 0;
}

static char *number_put(char *to, uint32_t number, uint32_t digits)
{
	char text[10];
	uint32_t count = 0;

	do
		text[count++] = (char)('0' + number % 10);
	while ((number /= 10) || count < digits);
	while (count)
		*to++ = text[--count];
	return to;
}

static char *fraction_put(char *to, uint32_t above, uint32_t below)
{
	to = number_put(to, above, 1);
	*to++ = '/';
	return number_put(to, below, 1);
}

const char *gpu_wish_text(const struct gpu_wish *wish, char ret[GPU_WISH_TEXT_MAX])
{
	uint32_t milli = GPU_SHARE / 1000, part = wish->part;
	char *to = ret;

	if (!part) {
		to = number_put(to, wish->gpus, 1);
	} else if (part % milli && GPU_SHARE % part == 0) {
		to = fraction_put(to, 1, GPU_SHARE / part);
	} else if (part % milli && part % (GPU_SHARE / 7) == 0) {
		to = fraction_put(to, part / (GPU_SHARE / 7), 7);
	} else {
		*to++ = '0';
		*to++ = '.';
		to = number_put(to, part / milli, 3);
		while (to[-1] == '0' && to[-2] != '.')
			to--;
	}
	CHECK(to < ret + GPU_WISH_TEXT_MAX);
	*to = '\0';
	return ret;
}
