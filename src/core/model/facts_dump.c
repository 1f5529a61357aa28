/* SPDX-License-Identifier: Apache-2.0 */
/* The one file of the model that knows a FILE: for a person at a debugger or a failing test. */
#include "base/buf.h"
#include "core/model/records.h"

struct dumper {
	const struct facts *f;
	FILE *out;
};

static int dump_row(void *context, const struct record_row *row)
{
	const struct dumper *dumper = context;
	AUTO_BUF text = BUF_INIT;

	if (row->kind == RECORD_NAME)
		return 0;
	buf_adds(&text, record_name(row->kind));
	buf_addc(&text, ' ');
	record_encode(dumper->f, row, true, &text);
	buf_addc(&text, '\n');
	fwrite(text.data, 1, text.size, dumper->out);
	return 0;
}

void facts_dump(const struct facts *f, FILE *out)
{
	struct dumper dumper = { f, out };

	facts_walk(f, &dumper, dump_row);
}
