/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal/head: 80 bytes beside the segments.
 *
 *	"FLHEAD1\0" | id of the journal, 16 | seq 8 | time_ms 8 | hash 32 | XXH3-64 of these 8
 *
 * SQLite takes a damaged write-ahead log for a shorter one, and a damaged page may hide rows; neither says
 * anything. The head tells: it is written after each commit, so a head beyond the last record means that
 * acknowledged records are gone. It is synced when the log has been copied into the segment: then it covers
 * all rows that are there and no longer in the log, also after a power loss.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <xxhash.h>

#include "store/guard.h"
#include "store/journal_internal.h"

enum { HEAD_BYTES = 80 };
static const char head_magic[8] = "FLHEAD1";

static void head_format(const struct journal *journal, uint8_t out[HEAD_BYTES])
{
	memcpy(out, head_magic, 8);
	memcpy(out + 8, journal->manifest.id, JOURNAL_ID_BYTES);
	put_be64(out + 24, journal->state.last_seq);
	put_be64(out + 32, (uint64_t)journal->state.last_time_ms);
	memcpy(out + 40, journal->state.last_hash.bytes, DIGEST_BYTES);
	put_be64(out + 72, XXH3_64bits(out, 72));
}

int head_read(const struct journal *journal, struct journal_head *ret)
{
	char path[PATH_MAX];
	uint8_t bytes[HEAD_BYTES];
	struct io_file *file;
	journal_file(journal, "head", path);
	if (journal->io->open(journal->io, path, O_RDONLY, 0, &file) < 0)
		return HEAD_NONE;
	int64_t got = journal->io->read(journal->io, file, bytes, sizeof(bytes), 0);
	journal->io->close(journal->io, file);
	if (got == 0)
		return HEAD_NONE; /* made, and not written yet */
	if (got != HEAD_BYTES || memcmp(bytes, head_magic, 8) != 0 ||
	    get_be64(bytes + 72) != XXH3_64bits(bytes, 72) ||
	    memcmp(bytes + 8, journal->manifest.id, JOURNAL_ID_BYTES) != 0)
		return HEAD_BAD;
	ret->seq = get_be64(bytes + 24);
	ret->time_ms = (int64_t)get_be64(bytes + 32);
	memcpy(ret->hash.bytes, bytes + 40, DIGEST_BYTES);
	return 0;
}

int head_write(struct journal *journal)
{
	uint8_t bytes[HEAD_BYTES];
	if (!journal->head) {
		char path[PATH_MAX];
		journal_file(journal, "head", path);
		int result = journal->io->open(journal->io, path, O_RDWR | O_CREAT, 0600,
					       &journal->head);
		if (result < 0)
			return result;
	}
	head_format(journal, bytes);
	return journal->io->write(journal->io, journal->head, bytes, sizeof(bytes), 0);
}

int head_sync(struct journal *journal)
{
	return journal->head ? journal->io->sync(journal->io, journal->head) : 0;
}

void head_close(struct journal *journal)
{
	if (journal->head)
		journal->io->close(journal->io, journal->head);
	journal->head = NULL;
}
