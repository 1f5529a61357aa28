/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "engine/engine.h"
#include "engine/failpoint.h"
#include "engine/local/fact_file.h"
#include "store/io.h"

void place_name(char out[PLACE_NAME_MAX], uint32_t rank, uint32_t launch)
{
	if (launch)
		snprintf(out, PLACE_NAME_MAX, "%u.%u", rank, launch);
	else
		snprintf(out, PLACE_NAME_MAX, "%u", rank);
}

bool place_path(char out[PATH_MAX], const char *attempts, uint64_t attempt, uint32_t rank,
		uint32_t launch)
{
	char name[PLACE_NAME_MAX];

	place_name(name, rank, launch);
	return snprintf(out, PATH_MAX, "%s/%" PRIu64 "/%s", attempts, attempt, name) < PATH_MAX;
}

int place_read(int folder, const char *name, struct buf *out, struct err *err)
{
	char piece[16384];
	ssize_t n;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	buf_clear(out);
	if (fd < 0 && errno == ENOENT)
		return 1;
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "could not open a task's file \"%s\"", name);
	while ((n = read(fd, piece, sizeof(piece))) > 0 && out->size < PLACE_FILE_MAX)
		buf_add(out, piece, (size_t)n);
	int saved = errno;
	close(fd);
	if (n < 0)
		return err_errno(err, ERR_IO, saved, "could not read a task's file \"%s\"", name);
	return 0;
}

bool place_has(int folder, const char *name)
{
	return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool place_is_deleted(int folder)
{
	struct stat st;

	return fstat(folder, &st) == 0 && st.st_nlink == 0;
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

int place_put(int folder, const char *name, const void *data, size_t size, struct err *err)
{
	char temporary[64];
	int result;

	snprintf(temporary, sizeof(temporary), "%s.tmp", name);
	int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "could not make a task's file \"%s\"", name);
	result = write_all(fd, data, size);
	close(fd);
	if (result == 0 && renameat(folder, temporary, folder, name) < 0)
		result = -errno;
	if (result < 0)
		return err_errno(err, ERR_IO, -result, "could not write a task's file \"%s\"",
				 name);
	return 0;
}

/* write, sync, rename, sync of the folder: each step a failpoint, "spec-write", "exit-sync" and so
 * on. */
#ifdef FAIRLEAD_FAILPOINTS
static bool step_fails(const char *name, const char *step)
{
	char point[64];

	snprintf(point, sizeof(point), "%s-%s", name, step);
	return failpoint_hit(point, FAILPOINT_NO_RANK);
}
#else
#define step_fails(name, step) ((void)(name), false)
#endif

static int write_and_sync(struct io *io, const char *path, const char *name, const void *data,
			  size_t size)
{
	struct io_file *file;
	int result = step_fails(name, "write") ? -EIO
					       : io->open(io, path, O_RDWR | O_CREAT, 0600, &file);

	if (result < 0)
		return result;
	result = io->write(io, file, data, size, 0);
	if (result == 0)
		result = io->truncate(io, file, (int64_t)size);
	if (result == 0)
		result = step_fails(name, "sync") ? -EIO : io->sync(io, file);
	io->close(io, file);
	return result;
}

int place_put_durable(struct io *io, const char *path, const char *name, const void *data,
		      size_t size, struct err *err)
{
	char temporary[PATH_MAX], final[PATH_MAX];
	int result;

	if (snprintf(temporary, sizeof(temporary), "%s/%s.tmp", path, name) >= PATH_MAX ||
	    snprintf(final, sizeof(final), "%s/%s", path, name) >= PATH_MAX)
		return err_set(err, ERR_TOO_LARGE, "the path of a task's file \"%s\" is too long",
			       name);
	result = write_and_sync(io, temporary, name, data, size);
	/* A failed sync leaves pages that the kernel calls clean: the next try must be a new file. */
	if (result < 0)
		(void)io->unlink(io, temporary);
	if (result == 0)
		result = step_fails(name, "rename") ? -EIO : io->rename(io, temporary, final);
	if (result == 0)
		result = step_fails(name, "folder-sync") ? -EIO : io->sync_folder(io, path);
	if (result < 0)
		return err_errno(err, ERR_IO, -result, "could not write a task's file \"%s\"",
				 name);
	return 0;
}

/* Without a sync: what is wanted is the space, and a written page has it. */
int place_reserve_exit(struct io *io, const char *path, struct err *err)
{
	char temporary[PATH_MAX], spaces[PLACE_EXIT_BYTES];
	struct io_file *file;

	if (snprintf(temporary, sizeof(temporary), "%s/exit.tmp", path) >= PATH_MAX)
		return err_set(err, ERR_TOO_LARGE, "the path of a task's folder is too long");
	memset(spaces, ' ', sizeof(spaces));
	int result = step_fails("reserve", "write")
			     ? -ENOSPC
			     : io->open(io, temporary, O_RDWR | O_CREAT, 0600, &file);
	if (result == 0) {
		result = io->write(io, file, spaces, sizeof(spaces), 0);
		io->close(io, file);
	}
	if (result < 0)
		return err_errno(err, ERR_IO, -result,
				 "could not take the space for a task's exit record");
	return 0;
}

/* --- facts --- */

int place_read_fact(int folder, const char *name, struct engine_fact *ret, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	int result = place_read(folder, name, &text, err);

	if (result != 0)
		return result;
	if (fact_parse(buf_text(&text), text.size, ret, err) < 0)
		return err_prefix(err, "a task's file \"%s\"", name);
	return 0;
}

int place_put_fact(int folder, const char *name, const struct engine_fact *fact, struct err *err)
{
	AUTO_BUF text = BUF_INIT;

	fact_format(&text, fact);
	return place_put(folder, name, text.data, text.size, err);
}

int place_put_exit(struct io *io, const char *path, const struct engine_fact *fact, struct err *err)
{
	AUTO_BUF text = BUF_INIT;

	fact_format(&text, fact);
	while (text.size < PLACE_EXIT_BYTES)
		buf_addc(&text, ' ');
	return place_put_durable(io, path, "exit", text.data, text.size, err);
}

/* --- commands --- */

int place_put_command(int folder, const char *command, uint64_t number, int64_t grace_ms,
		      struct err *err)
{
	char name[64], text[64];

	snprintf(name, sizeof(name), "%s.%" PRIu64, command, number);
	int n = snprintf(text, sizeof(text), "{\"grace_ms\":%" PRId64 "}\n", grace_ms);
	return place_put(folder, name, text, (size_t)n, err);
}

uint64_t place_command_number(const char *name, const char *command)
{
	size_t length = strlen(command);
	char *end;

	if (strncmp(name, command, length) != 0 || name[length] != '.')
		return 0;
	unsigned long long number = strtoull(name + length + 1, &end, 10);
	return *end == '\0' ? number : 0;
}

int64_t place_read_grace(int folder, const char *name)
{
	AUTO_BUF text = BUF_INIT;
	struct json_reader r;
	struct json_slice key;
	int64_t grace = 0;

	if (place_read(folder, name, &text, NULL) != 0)
		return 0;
	pull_init(&r, buf_text(&text), text.size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "grace_ms"))
			pull_int(&r, &grace);
		else
			pull_skip(&r);
	}
	return pull_finish(&r, NULL) < 0 || grace < 0 ? 0 : grace;
}

uint64_t place_newest_command(int folder, const char *command)
{
	uint64_t newest = 0;
	struct dirent *entry;
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);

	while (dir && (entry = readdir(dir))) {
		uint64_t number = place_command_number(entry->d_name, command);

		if (number > newest)
			newest = number;
	}
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
	return newest;
}

void place_wake(int folder)
{
	int fd = openat(folder, "wake", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return; /* nobody listens */
	if (write(fd, "!", 1) < 0) {
		/* full: it is awake already */
	}
	close(fd);
}

/* --- the lock --- */

int place_lock(int folder, struct err *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "could not make a task's lock");
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return fd;
	int saved = errno;
	close(fd);
	if (saved == EAGAIN || saved == EACCES)
		return err_set(err, ERR_CONFLICT, "the task has a shepherd already");
	return err_errno(err, ERR_IO, saved, "could not take a task's lock");
}

bool place_is_locked(int folder)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(folder, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno != ENOENT; /* out of descriptors, say: nobody may be taken for dead */
	bool held = fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
	close(fd);
	return held;
}
