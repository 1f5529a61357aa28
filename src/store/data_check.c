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

/* Kinds of records that name the key: daemon/recover.c, core/model/events.def. */
enum { CLOCK_KIND = 2000, STARTED_KIND = 1 };

struct look {
	struct losses *found;
	uint64_t last_seq;
	char key[SEAL_PRINT_MAX]; /* fingerprint that the journal has; "" = none */
};

/* Of a record of a snapshot's clock or of a daemon's start: both name it last. */
static void take_key(struct look *look, const char *text, size_t size)
{
	static const char member[] = "\"key\":\"";
	const char *at = memmem(text, size, member, sizeof(member) - 1);

	if (!at || (size_t)(text + size - at) < sizeof(member) - 1 + sizeof(look->key))
		return;
	at += sizeof(member) - 1;
	if (strspn(at, "0123456789abcdef") != sizeof(look->key) - 1)
		return;
	memcpy(look->key, at, sizeof(look->key) - 1);
}

static int take_clock(void *context, uint32_t kind, const char *text, size_t size)
{
	if (kind == CLOCK_KIND)
		take_key(context, text, size);
	return 0;
}

static int take_record(void *context, const struct record *record, const struct digest *hash)
{
	(void)hash;
	if (record->kind == STARTED_KIND)
		take_key(context, record->text, record->size);
	return 0;
}

static void note_snapshot(void *context, const char *name, const char *why)
{
	losses_add_snapshot(((struct look *)context)->found, name, why);
}

/* The sequence of the newest one that is good; 0: there is none. */
static uint64_t look_at_snapshots(struct look *look, const char *folder, struct io *io)
{
	struct snapshot_head head = { 0 };
	struct err err = { 0 };
	int result = snapshot_load(folder, io, look->last_seq, &head, look, take_clock,
				   note_snapshot, &err);

	if (result < 0)
		losses_add(look->found, 0, 0, err.text);
	snapshot_check(folder, io, look, note_snapshot);
	return result == 0 ? head.seq : 0;
}

static void look_at_key(struct look *look, const char *folder, struct io *io)
{
	struct seal_key *key;
	char print[SEAL_PRINT_MAX];
	struct err err;

	if (!look->last_seq)
		return;
	if (seal_key_open_io(folder, io, false, &key, &err) < 0)
		losses_add(look->found, 0, 0, err.text);
	else {
		seal_key_print(key, print);
		seal_key_close(key);
		if (*look->key && strcmp(print, look->key) != 0)
			losses_add(
				look->found, 0, 0,
				"keys/body.key is not the key of this journal: restore it from a backup");
	}
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
	const struct journal_reader reader = { .context = &look, .take = take_record };
	struct err ignored; /* what cannot be read was reported above */
	(void)!journal_read(journal, look_at_snapshots(&look, folder, io) + 1, 0, false, &reader,
			    &ignored);
	journal_close(journal);
	look_at_key(&look, folder, io);
	return 0;
}
