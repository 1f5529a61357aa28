/* SPDX-License-Identifier: Apache-2.0 */
/* What a start would find of a data folder, without being one: for `fairlead doctor` while no daemon runs. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "store/data_check.h"
#include "store/io.h"
#include "store/journal.h"
#include "store/losses.h"
#include "store/seal.h"
#include "store/snapshot.h"

struct look {
	struct losses *found;
	uint64_t last_seq;
};

static void note_snapshot(void *context, const char *name, const char *why)
{
	struct look *look = context;
	char what[LOSS_TEXT_MAX];

	snprintf(what, sizeof(what), "snapshot %s is not used: %.250s", name, why);
	losses_add(look->found, 0, 0, what);
}

static void look_at_snapshots(struct look *look, const char *folder, struct io *io)
{
	struct snapshot_head head;
	struct err err = { 0 };

	if (snapshot_load(folder, io, look->last_seq, &head, look, NULL, note_snapshot, &err) < 0)
		losses_add(look->found, 0, 0, err.text);
}

static void look_at_key(struct look *look, const char *folder, struct io *io)
{
	struct seal_key *key;
	struct err err;

	if (!look->last_seq)
		return;
	if (seal_key_open_io(folder, io, false, &key, &err) < 0)
		losses_add(look->found, 0, 0, err.text);
	else
		seal_key_close(key);
}

int data_check(const char *folder, struct io *io, struct losses *found, struct err *err)
{
	const struct journal_options options = {
		.folder = folder, .io = io, .read_only = true, .loss = JOURNAL_LOSS_ACCEPT
	};
	struct look look = { .found = found };
	struct journal *journal;
	struct journal_state state;

	if (journal_open(&options, &journal, err) < 0)
		return -(int)err->code;
	journal_check(journal);
	journal_state(journal, &state);
	look.last_seq = state.last_seq;
	const struct losses *lost = journal_losses(journal);
	for (size_t i = 0; i < lost->count; i++)
		if (!losses_accepted(&lost->items[i], journal_accepted(journal)))
			losses_add(found, lost->items[i].first, lost->items[i].last,
				   lost->items[i].what);
	journal_close(journal);
	look_at_snapshots(&look, folder, io);
	look_at_key(&look, folder, io);
	return 0;
}
