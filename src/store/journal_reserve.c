/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reserve: a file of JOURNAL_RESERVE_BYTES whose only use is to be given back. When the disk is full,
 * facts of running work (an exit, a loss) take its space; ordinary appends are refused until it is whole again.
 */
#include <fcntl.h>

#include "store/journal_internal.h"

void reserve_restore(struct journal *journal)
{
	struct io *io = journal->io;
	char path[PATH_MAX];
	struct io_file *file;
	if (journal->reserve_bytes <= 0) {
		journal->reserve_whole = true;
		return;
	}
	journal_file(journal, "reserve", path);
	if (io->open(io, path, O_RDWR | O_CREAT, 0600, &file) < 0)
		return;
	/* Never the last bytes of the disk: the journal must grow beside it. */
	int64_t free_bytes = io->free_bytes(io, journal->path);
	if (io->size(io, file) >= journal->reserve_bytes)
		journal->reserve_whole = true;
	else if (free_bytes < 0 || free_bytes > journal->reserve_bytes + journal->reserve_bytes / 8)
		journal->reserve_whole = io->allocate(io, file, journal->reserve_bytes) == 0;
	if (!journal->reserve_whole)
		(void)io->truncate(io, file, 0);
	io->close(io, file);
}

bool reserve_release(struct journal *journal)
{
	struct io *io = journal->io;
	char path[PATH_MAX];
	struct io_file *file;
	if (journal->reserve_bytes <= 0 || !journal->reserve_whole)
		return false;
	journal->reserve_whole = false;
	journal_file(journal, "reserve", path);
	if (io->open(io, path, O_RDWR, 0, &file) < 0)
		return false;
	bool released = io->truncate(io, file, 0) == 0;
	io->close(io, file);
	return released;
}
