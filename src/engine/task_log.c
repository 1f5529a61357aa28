/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/task_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"
#include "engine/own_folder.h"

enum { SPACE_LOOK_BYTES = 4 << 20, RESERVE_PERCENT = 5, OFFSET_DIGITS = 20, READ_TRIES = 3 };
#define RESERVE_MAX_BYTES ((uint64_t)256 << 20)

/* --- writing --- */

static const char *suffix_of(enum task_stream stream)
{
	return stream == TASK_ORDER ? "order" : stream == TASK_STDERR ? "err" : "out";
}

void task_log_init(struct task_log *log, int folder, uint32_t rank, enum task_stream stream,
		   int64_t cap_bytes)
{
	if (cap_bytes == 0)
		cap_bytes = TASK_LOG_CAP_DEFAULT;
	if (cap_bytes < TASK_LOG_CAP_MIN)
		cap_bytes = TASK_LOG_CAP_MIN;
	*log = (struct task_log){
		.folder = folder,
		.head_bytes = cap_bytes / 4,
		.part_bytes = cap_bytes / 8,
		.fd = -1,
		.in_head = true,
		.room = cap_bytes / 4,
	};
	snprintf(log->name, sizeof(log->name), "%u.%s", rank, suffix_of(stream));
}

static void part_name(const struct task_log *log, uint64_t offset, char out[TASK_LOG_NAME_MAX])
{
	snprintf(out, TASK_LOG_NAME_MAX, "%.20s.%0*" PRIu64, log->name, OFFSET_DIGITS, offset);
}

static void close_file(struct task_log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
}

static void drop_oldest(struct task_log *log)
{
	char name[TASK_LOG_NAME_MAX];

	part_name(log, log->parts[0].offset, name);
	unlinkat(log->folder, name, 0);
	log->part_count--;
	memmove(log->parts, log->parts + 1, log->part_count * sizeof(log->parts[0]));
}

/* O_EXCL: a name that exists already is not ours; O_NOFOLLOW is implied by it. */
static int create_file(int folder, const char *name)
{
	return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
}

/* An empty part at the offset reached. It costs no space, but for what a name takes; where there is none even for that, the
 * reader sees no gap. */
static void mark_gap(struct task_log *log)
{
	char old[TASK_LOG_NAME_MAX], name[TASK_LOG_NAME_MAX];

	part_name(log, log->mark, old);
	part_name(log, log->offset, name);
	if (log->marked && renameat(log->folder, old, log->folder, name) < 0)
		log->marked = false;
	if (!log->marked) {
		int fd = create_file(log->folder, name);

		log->marked = fd >= 0;
		if (fd >= 0)
			close(fd);
	}
	log->mark = log->offset;
}

static void remove_mark(struct task_log *log)
{
	char name[TASK_LOG_NAME_MAX];

	part_name(log, log->mark, name);
	if (log->marked)
		unlinkat(log->folder, name, 0);
	log->marked = false;
}

void task_log_deinit(struct task_log *log)
{
	close_file(log);
	if (log->marked && log->mark != log->offset)
		mark_gap(log);
}

static bool open_next(struct task_log *log)
{
	char name[TASK_LOG_NAME_MAX];

	remove_mark(log);
	if (log->in_head && log->offset == 0) {
		log->fd = create_file(log->folder, log->name);
		log->room = log->head_bytes;
		return log->fd >= 0;
	}
	log->in_head = false;
	if (log->part_count == TASK_LOG_PARTS)
		drop_oldest(log);
	part_name(log, log->offset, name);
	log->fd = create_file(log->folder, name);
	if (log->fd < 0)
		return false;
	log->parts[log->part_count++] = (struct task_log_part){ .offset = log->offset };
	log->room = log->part_bytes;
	return true;
}

/* Looks at the free space now and then: statvfs costs a microsecond, output comes in pieces of 64
 * KiB. */
static bool has_space(struct task_log *log, size_t size)
{
	struct statvfs fs;

	log->check_in -= (int64_t)size;
	if (log->check_in > 0)
		return !log->starved;
	log->check_in = SPACE_LOOK_BYTES;
	if (fstatvfs(log->folder, &fs) < 0)
		return true;
	uint64_t reserve = (uint64_t)fs.f_blocks * fs.f_frsize / 100 * RESERVE_PERCENT;
	if (reserve > RESERVE_MAX_BYTES)
		reserve = RESERVE_MAX_BYTES;
	log->starved = (uint64_t)fs.f_bavail * fs.f_frsize < reserve;
	return !log->starved;
}

/* A gap follows: the file is left as it is, and the next byte opens a new one under its own offset. The mark moves each time
 * that the space was looked at. */
static void drop(struct task_log *log, size_t size)
{
	close_file(log);
	log->in_head = false;
	log->offset += size;
	log->dropped += size;
	if (!log->marked || log->check_in == SPACE_LOOK_BYTES)
		mark_gap(log);
}

void task_log_write(struct task_log *log, const void *data, size_t size)
{
	const char *at = data;

	if (!has_space(log, size)) {
		drop(log, size);
		return;
	}
	while (size) {
		if (log->fd >= 0 && log->room <= 0)
			close_file(log);
		if (log->fd < 0 && !open_next(log)) {
			drop(log, size);
			return;
		}
		size_t part = (int64_t)size < log->room ? size : (size_t)log->room;
		ssize_t n = write(log->fd, at, part);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			log->check_in = 0;
			drop(log, size);
			return;
		}
		at += n;
		size -= (size_t)n;
		log->room -= n;
		log->offset += (uint64_t)n;
	}
}

/* --- reading --- */

/* To write into it, it must be the daemon's own; a reader gets what is there. */
static int open_folder(int parent, const char *name, bool make)
{
	struct err err;
	int fd;

	if (!make)
		return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = own_folder_at(parent, name, 0750, OWN_FOLDER_KEEP, &err);
	if (fd >= 0)
		return fd;
	errno = err.code == ERR_CONFLICT ? EPERM : errno;
	return -1;
}

static int open_steps(const char *logs_folder, uint64_t job, uint64_t attempt, bool make)
{
	char name[24];
	int logs = open(logs_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (logs < 0)
		return -1;
	snprintf(name, sizeof(name), "%" PRIu64, job);
	int of_job = open_folder(logs, name, make);
	int saved = errno;
	close(logs);
	errno = saved;
	if (of_job < 0)
		return -1;
	snprintf(name, sizeof(name), "%" PRIu64, attempt);
	int of_attempt = open_folder(of_job, name, make);
	saved = errno;
	close(of_job);
	errno = saved;
	return of_attempt;
}

int task_log_folder(const char *logs_folder, uint64_t job, uint64_t attempt, struct err *err)
{
	int fd = open_steps(logs_folder, job, attempt, true);

	if (fd < 0)
		return err_errno(err, ERR_IO, errno,
				 "could not make the log folder of job %" PRIu64
				 ", attempt %" PRIu64,
				 job, attempt);
	return fd;
}

struct found {
	uint64_t offset, size;
};

enum {
	FOUND_MAX = TASK_LOG_PARTS + 4
}; /* a part being made and one being dropped may both be seen */

/* "3.out" is the head, "3.out.DIGITS" a part; anything else is not of this stream. */
static bool part_of(const char *name, const char *stream, uint64_t *ret_offset)
{
	size_t length = strlen(stream);

	if (strncmp(name, stream, length) != 0)
		return false;
	if (name[length] == '\0') {
		*ret_offset = 0;
		return true;
	}
	if (name[length] != '.' || strlen(name + length + 1) != OFFSET_DIGITS)
		return false;
	char *end;
	*ret_offset = strtoull(name + length + 1, &end, 10);
	return *end == '\0';
}

static int by_offset(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static size_t find_parts(int folder, const char *stream, struct found found[FOUND_MAX])
{
	size_t count = 0;
	struct dirent *entry;
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return 0;
	}
	while (count < FOUND_MAX && (entry = readdir(dir))) {
		struct stat st;

		if (!part_of(entry->d_name, stream, &found[count].offset))
			continue;
		if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		found[count++].size = (uint64_t)st.st_size;
	}
	closedir(dir);
	qsort(found, count, sizeof(found[0]), by_offset);
	return count;
}

/* A part may be dropped between listing and opening: -ENOENT, and the caller lists again. */
static int read_part(int folder, const char *stream, uint64_t part, uint64_t offset, void *data,
		     size_t room, size_t *ret_size)
{
	char name[TASK_LOG_NAME_MAX];

	if (part)
		snprintf(name, sizeof(name), "%.20s.%0*" PRIu64, stream, OFFSET_DIGITS, part);
	else
		snprintf(name, sizeof(name), "%.20s", stream);
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	ssize_t n = pread(fd, data, room, (off_t)(offset - part));
	int result = n < 0 ? -errno : 0;
	close(fd);
	*ret_size = n < 0 ? 0 : (size_t)n;
	return result;
}

static int read_once(int folder, const char *stream, uint64_t offset, void *data, size_t room,
		     struct task_log_piece *ret)
{
	struct found found[FOUND_MAX];
	size_t count = find_parts(folder, stream, found), i = 0;

	*ret = (struct task_log_piece){ .offset = offset };
	if (count == 0)
		return 0;
	ret->end = found[count - 1].offset + found[count - 1].size;
	while (i < count && found[i].offset + found[i].size <= offset)
		i++;
	if (i == count) {
		if (ret->end > offset)
			ret->offset = ret->end; /* all up to here was dropped */
		return 0;
	}
	ret->offset = offset > found[i].offset ? offset : found[i].offset;
	return read_part(folder, stream, found[i].offset, ret->offset, data, room, &ret->size);
}

int task_log_read(const char *logs_folder, uint64_t job, uint64_t attempt, uint32_t rank,
		  enum task_stream stream, uint64_t offset, void *data, size_t room,
		  struct task_log_piece *ret, struct err *err)
{
	char name[TASK_LOG_NAME_MAX];
	int folder = open_steps(logs_folder, job, attempt, false), result = -ENOENT;

	*ret = (struct task_log_piece){ .offset = offset };
	if (folder < 0 && errno == ENOENT)
		return 0;
	if (folder < 0)
		return err_errno(err, ERR_IO, errno,
				 "could not open the log of job %" PRIu64 ", attempt %" PRIu64, job,
				 attempt);
	snprintf(name, sizeof(name), "%u.%s", rank, suffix_of(stream));
	for (int i = 0; i < READ_TRIES && result == -ENOENT; i++)
		result = read_once(folder, name, offset, data, room, ret);
	close(folder);
	if (result == -ENOENT)
		*ret = (struct task_log_piece){ .offset = offset };
	if (result < 0 && result != -ENOENT)
		return err_errno(err, ERR_IO, -result,
				 "could not read log %s of job %" PRIu64 ", attempt %" PRIu64, name,
				 job, attempt);
	return 0;
}

int task_log_tail(const char *logs_folder, uint64_t job, uint64_t attempt, uint32_t rank,
		  enum task_stream stream, uint64_t bytes, uint64_t *ret_offset, struct err *err)
{
	struct task_log_piece piece;
	char nothing[1];

	if (task_log_read(logs_folder, job, attempt, rank, stream, UINT64_MAX / 2, nothing, 1,
			  &piece, err) < 0)
		return -1;
	*ret_offset = piece.end > bytes ? piece.end - bytes : 0;
	return 0;
}
