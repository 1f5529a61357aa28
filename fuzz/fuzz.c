/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/parse.h"

bool fuzz_accepted;

void fuzz_check_refusal(int rc, const struct err *err)
{
	const size_t size = strnlen(err->text, sizeof(err->text));
	AUTO_BUF shown = BUF_INIT;

	CHECK(rc < 0 && rc == -(int)err->code);
	CHECK(err->code > ERR_NONE && err->code < ERR_CODE_COUNT);
	CHECK(size > 0 && size < sizeof(err->text));
	/* What the text quotes is escaped where it leaves the program: by this for terminals and logs. */
	text_for_terminal(&shown, err->text, size);
	CHECK(text_is_utf8(shown.data, shown.size));
	for (size_t i = 0; i < shown.size; i++)
		CHECK((unsigned char)shown.data[i] >= 0x20 && shown.data[i] != 0x7f);
}

void fuzz_check_place(int rc, const struct err *err, const char *text, size_t size)
{
	int lines = 1;

	fuzz_check_refusal(rc, err);
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n' || text[i] == '\r';
	/* A text over its limit is refused before anyone looks at its lines. */
	CHECK(err->code == ERR_TOO_LARGE || (err->line >= 1 && err->column >= 1));
	CHECK(err->line <= lines + 1 && (size_t)err->column <= size + 2);
}

bool fuzz_line(const char **text, size_t *size, const char **ret_line, size_t *ret_size)
{
	const char *end;

	if (*size == 0)
		return false;
	end = memchr(*text, '\n', *size);
	*ret_line = *text;
	*ret_size = end ? (size_t)(end - *text) : *size;
	*size -= *ret_size + (end ? 1 : 0);
	*text += *ret_size + (end ? 1 : 0);
	return true;
}

bool fuzz_number(const char **text, size_t *size, uint32_t *ret)
{
	uint32_t digits = 0;

	*ret = 0;
	while (*size && **text >= '0' && **text <= '9' && digits < 10) {
		*ret = *ret * 10 + (uint32_t)(**text - '0');
		digits++;
		(*text)++;
		(*size)--;
	}
	if (digits == 0 || digits > 9 || *size == 0 || **text != ' ')
		return false;
	(*text)++;
	(*size)--;
	return true;
}
