/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/slices.h"

#include <string.h>

#include "base/check.h"

static const struct {
	uint8_t compute, memory;
} kinds[SLICE_KINDS] = {
	[SLICE_1G] = { 1, 1 }, [SLICE_1G_MEDIA] = { 1, 1 }, [SLICE_1G_WIDE] = { 1, 2 },
	[SLICE_2G] = { 2, 2 }, [SLICE_2G_MEDIA] = { 2, 2 }, [SLICE_3G] = { 3, 4 },
	[SLICE_4G] = { 4, 4 }, [SLICE_7G] = { 7, 8 },
};

uint32_t slice_compute(uint32_t kind)
{
	return kind < SLICE_KINDS ? kinds[kind].compute : 0;
}

uint32_t slice_memory(uint32_t kind)
{
	return kind < SLICE_KINDS ? kinds[kind].memory : 0;
}

uint32_t layout_mask(uint32_t layout)
{
	uint32_t mask = 0;

	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++)
		mask |= ((UINT32_C(1) << slice_memory(layout_kind(layout, start))) - 1) << start;
	return mask;
}

bool layout_is_sound(uint32_t layout)
{
	uint32_t end = 0;

	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++) {
		uint32_t kind = layout_kind(layout, start);

		if (kind == SLICE_NONE)
			continue;
		if (kind >= SLICE_KINDS || start < end || start + slice_memory(kind) > LAYOUT_SLOTS)
			return false;
		end = start + slice_memory(kind);
	}
	return true;
}

/* Up to three digits, without a zero in front. */
static bool number_read(const char **text, uint32_t *ret)
{
	uint32_t count = 0;

	*ret = 0;
	for (; **text >= '0' && **text <= '9' && count < 4; (*text)++, count++)
		*ret = *ret * 10 + (uint32_t)(**text - '0');
	return count && count < 4 && *ret;
}

static bool word_read(const char **text, const char *word)
{
	size_t size = strlen(word);

	if (strncmp(*text, word, size) != 0)
		return false;
	*text += size;
	return true;
}

bool slice_wish_parse(const char *text, uint32_t *ret)
{
	struct slice_wish wish = { 0 };

	if (!number_read(&text, &wish.compute) || !word_read(&text, "g.") ||
	    !number_read(&text, &wish.gigabytes) || !word_read(&text, "gb"))
		return false;
	wish.media = word_read(&text, "+me");
	if (*text || wish.compute > 7)
		return false;
	*ret = slice_wish_number(wish);
	return true;
}

static char *number_put(char *to, uint32_t number)
{
	char text[10];
	uint32_t count = 0;

	do
		text[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*to++ = text[--count];
	return to;
}

static char *text_put(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	*to = '\0';
	return to;
}

const char *slice_wish_text(uint32_t number, char ret[SLICE_TEXT_MAX])
{
	struct slice_wish wish = slice_wish_of(number);
	char *to = text_put(number_put(ret, wish.compute), "g.");

	to = text_put(number_put(to, wish.gigabytes), wish.media ? "gb+me" : "gb");
	CHECK(to < ret + SLICE_TEXT_MAX);
	return ret;
}
