/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real files. Every call finishes its work or says why not: interrupted calls go on, short writes
 * are completed. Nothing is retried after an error, least of all a sync: after a failed one the kernel may
 * have dropped the pages and would call the next one good.
 */
#include "store/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"

struct io_file {
	int fd;
};

static int real_open(struct io *io, const char *path, int flags, unsigned mode,
		     struct io_file **ret)
{
	(void)io;
	int fd;
	do
		fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	struct io_file *file = malloc(sizeof(*file));
	CHECK(file);
	file->fd = fd;
	*ret = file;
	return 0;
}

static void real_close(struct io *io, struct io_file *file)
{
	(void)io;
	if (!file)
		return;
	close(file->fd);
	free(file);
}

static int64_t real_read(struct io *io, struct io_file *file, void *data, size_t size,
			 int64_t offset)
{
	(void)io;
	size_t done = 0;
	while (done < size) {
		ssize_t n = pread(file->fd, (char *)data + done, size - done,
				  (off_t)(offset + (int64_t)done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (int64_t)done;
}

static int real_write(struct io *io, struct io_file *file, const void *data, size_t size,
		      int64_t offset)
{
	(void)io;
	size_t done = 0;
	while (done < size) {
		ssize_t n = pwrite(file->fd, (const char *)data + done, size - done,
				   (off_t)(offset + (int64_t)done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

static int real_sync(struct io *io, struct io_file *file)
{
	(void)io;
	return fdatasync(file->fd) < 0 ? -errno : 0;
}

static void real_begin_write(struct io *io, struct io_file *file)
{
	(void)io;
	/* An error is the coming sync's to tell. */
	(void)sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static int real_truncate(struct io *io, struct io_file *file, int64_t size)
{
	(void)io;
	int rc;
	do
		rc = ftruncate(file->fd, (off_t)size);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

static int64_t real_size(struct io *io, struct io_file *file)
{
	(void)io;
	struct stat st;
	return fstat(file->fd, &st) < 0 ? -errno : (int64_t)st.st_size;
}

static int real_rename(struct io *io, const char *from, const char *to)
{
	(void)io;
	return rename(from, to) < 0 ? -errno : 0;
}

static int real_unlink(struct io *io, const char *path)
{
	(void)io;
	return unlink(path) < 0 ? -errno : 0;
}

static int real_mkdir(struct io *io, const char *path, unsigned mode)
{
	(void)io;
	return mkdir(path, (mode_t)mode) < 0 ? -errno : 0;
}

static int real_sync_folder(struct io *io, const char *path)
{
	(void)io;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return result;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names first, then `take`: it may change the folder. */
static int real_list(struct io *io, const char *path, void *context,
		     int (*take)(void *context, const char *name))
{
	(void)io;
	DIR *folder = opendir(path);
	if (!folder)
		return -errno;
	char **names = NULL;
	size_t count = 0, room = 0;
	struct dirent *entry;
	while (errno = 0, (entry = readdir(folder))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (count == room) {
			room = room ? room * 2 : 64;
			names = reallocarray(names, room, sizeof(*names));
			CHECK(names);
		}
		names[count] = strdup(entry->d_name);
		CHECK(names[count]);
		count++;
	}
	int result = errno ? -errno : 0;
	closedir(folder);
	if (count)
		qsort(names, count, sizeof(*names), compare_names);
	for (size_t i = 0; i < count; i++) {
		if (result == 0)
			result = take(context, names[i]);
		free(names[i]);
	}
	free(names);
	return result;
}

static int64_t real_free_bytes(struct io *io, const char *path)
{
	(void)io;
	struct statvfs st;
	if (statvfs(path, &st) < 0)
		return -errno;
	return (int64_t)st.f_bavail * (int64_t)st.f_frsize;
}

static int real_allocate(struct io *io, struct io_file *file, int64_t size)
{
	int rc;
	do
		rc = fallocate(file->fd, 0, 0, (off_t)size);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	/* A file system without reservation: written zeroes take the space as well. */
	static const char zeroes[65536];
	for (int64_t at = 0; at < size; at += (int64_t)sizeof(zeroes)) {
		int64_t left = size - at;
		size_t part = left < (int64_t)sizeof(zeroes) ? (size_t)left : sizeof(zeroes);
		int result = real_write(io, file, zeroes, part, at);
		if (result < 0)
			return result;
	}
	return 0;
}

struct io *io_real(void)
{
	static struct io real = {
		.open = real_open,
		.close = real_close,
		.read = real_read,
		.write = real_write,
		.sync = real_sync,
		.begin_write = real_begin_write,
		.truncate = real_truncate,
		.size = real_size,
		.rename = real_rename,
		.unlink = real_unlink,
		.mkdir = real_mkdir,
		.sync_folder = real_sync_folder,
		.list = real_list,
		.free_bytes = real_free_bytes,
		.allocate = real_allocate,
		.real_paths = true,
	};
	return &real;
}

void io_folder_of(const char *path, char *out, size_t room)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		snprintf(out, room, ".");
	else if (slash == path)
		snprintf(out, room, "/");
	else
		snprintf(out, room, "%.*s", (int)(slash - path), path);
}

int io_read_file(struct io *io, const char *path, size_t limit, char **ret_data, size_t *ret_size)
{
	struct io_file *file;
	int result = io->open(io, path, O_RDONLY, 0, &file);
	if (result < 0)
		return result;
	int64_t size = io->size(io, file);
	if (size < 0 || (uint64_t)size > limit) {
		io->close(io, file);
		return size < 0 ? (int)size : -EFBIG;
	}
	char *data = malloc((size_t)size + 1);
	CHECK(data);
	int64_t got = io->read(io, file, data, (size_t)size, 0);
	io->close(io, file);
	if (got < 0) {
		free(data);
		return (int)got;
	}
	data[got] = '\0';
	*ret_data = data;
	*ret_size = (size_t)got;
	return 0;
}

int io_replace_file(struct io *io, const char *path, const void *data, size_t size, unsigned mode)
{
	char temporary[PATH_MAX], folder[PATH_MAX];
	if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	io_folder_of(path, folder, sizeof(folder));
	struct io_file *file;
	int result = io->open(io, temporary, O_RDWR | O_CREAT | O_TRUNC, mode, &file);
	if (result < 0)
		return result;
	result = io->write(io, file, data, size, 0);
	if (result == 0)
		result = io->sync(io, file);
	io->close(io, file);
	if (result == 0)
		result = io->rename(io, temporary, path);
	if (result < 0) {
		(void)io->unlink(io, temporary);
		return result;
	}
	return io->sync_folder(io, folder);
}
