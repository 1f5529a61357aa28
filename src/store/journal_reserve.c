/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reserve: a file of JOURNAL_RESERVE_BYTES whose only use is to be given back. When the disk is full,
 * facts of running work (an exit, a loss) take its space; ordinary appends are refused until it is whole again.
 */
#include <errno.h>
#include <fcntl.h>

#include "store/journal_internal.h"

/* Want of space is what the reserve is for; anything else is somebody's to mend. */
static void note_unusable(struct journal *journal, const char *path, int error)
{
	struct err why;
	if (error == -ENOSPC || error == -EDQUOT)
		return;
	if (error == -EISDIR)
		err_set(&why, ERR_CONFLICT,
			"%s is a folder, and the journal keeps a file of that name: remove it",
			path);
	else
		err_errno(&why, ERR_IO, -error,
			  "%s, which the journal keeps in reserve, can't be opened", path);
	snprintf(journal->reserve_problem, sizeof(journal->reserve_problem), "%s", why.text);
}

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
	journal->reserve_problem[0] = '\0';
	int error = io->open(io, path, O_RDWR | O_CREAT, 0600, &file);
	if (error < 0) {
		note_unusable(journal, path, error);
		return;
	}
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
