/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/rebuild.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

enum { STEP_CAP = 1 << 30 };

struct loading {
	struct facts *facts;
	struct err *err;
};

static int load_record(void *context, uint32_t kind, const char *text, size_t size)
{
	struct loading *loading = context;

	return facts_load_record(loading->facts, kind, text, size, loading->err) < 0 ? -1 : 0;
}

void decisions_encode(const struct decisions *decisions, struct buf *out)
{
	for (uint32_t i = 0; i < decisions->count; i++) {
		const struct event *e = &decisions->events[i];

		buf_addf(out, "%lld %s ", (long long)e->time_ms, event_info(e->kind)->name);
		event_encode(e, out);
		buf_addc(out, '\n');
	}
	buf_addf(out, "more %d wake %lld\n", decisions->more, (long long)decisions->wake_ms);
}

/* The first line in which two texts differ, as "x" instead of "y". */
static int difference(const char *is, const char *was, struct err *err)
{
	size_t same = 0;

	while (is[same] && is[same] == was[same])
		same++;
	while (same && is[same - 1] != '\n')
		same--;
	return err_set(err, ERR_INTERNAL,
		       "after save, load and rebuild the core decides \"%.*s\" instead of \"%.*s\"",
		       (int)strcspn(is + same, "\n"), is + same, (int)strcspn(was + same, "\n"),
		       was + same);
}

static int compare(const struct facts *facts, const struct facts *loaded,
		   const struct decisions *decided, uint64_t budget, struct err *err)
{
	AUTO_BUF was = BUF_INIT;
	AUTO_BUF is = BUF_INIT;
	struct decisions again;
	struct arena step;
	struct view *view;
	int rc = 0;

	if (facts_hash(facts) != facts_hash(loaded))
		return err_set(err, ERR_INTERNAL,
			       "after save and load the facts have another hash");
	arena_init(&step, STEP_CAP);
	view = view_create(loaded);
	decide(loaded, view, budget, &step, &again);
	decisions_encode(decided, &was);
	decisions_encode(&again, &is);
	if (strcmp(buf_text(&was), buf_text(&is)) != 0)
		rc = difference(buf_text(&is), buf_text(&was), err);
	view_destroy(view);
	arena_deinit(&step);
	return rc;
}

int rebuild_check(const struct facts *facts, const struct decisions *decided, uint64_t budget,
		  struct err *err)
{
	struct facts loaded;
	struct loading loading = { .facts = &loaded, .err = err };
	int rc;

	facts_init(&loaded);
	rc = facts_save(facts, &loading, load_record) != 0 ? -(int)ERR_INTERNAL
							   : facts_load_finish(&loaded, err);
	if (rc == 0)
		rc = compare(facts, &loaded, decided, budget, err);
	facts_deinit(&loaded);
	return rc;
}
