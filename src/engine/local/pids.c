/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/pids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"

enum { PROC_FILE_MAX = 4 << 20 };

void pid_list_add(struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pids[i] == pid)
			return;
	if (list->count == list->room) {
		list->room = list->room ? list->room * 2 : 64;
		list->pids = reallocarray(list->pids, list->room, sizeof(*list->pids));
		CHECK(list->pids);
	}
	list->pids[list->count++] = pid;
}

void pid_list_deinit(struct pid_list *list)
{
	free(list->pids);
	*list = (struct pid_list){ 0 };
}

void pid_list_add_text(struct pid_list *list, const char *text)
{
	for (;;) {
		char *end;
		long pid = strtol(text, &end, 10);

		if (end == text)
			return;
		if (pid > 0)
			pid_list_add(list, (pid_t)pid);
		text = end;
	}
}

static int open_file(const char *path, int flags)
{
	int fd;

	do
		fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
	while (fd < 0 && errno == EINTR);
	return fd;
}

static ssize_t read_some(int fd, char *out, size_t room)
{
	ssize_t n;

	do
		n = read(fd, out, room);
	while (n < 0 && errno == EINTR);
	return n;
}

ssize_t small_file_read(const char *path, char *out, size_t room)
{
	int fd = open_file(path, O_RDONLY);
	size_t size = 0;
	ssize_t n = -1;

	out[0] = '\0';
	if (fd < 0)
		return -1;
	while (size < room - 1 && (n = read_some(fd, out + size, room - 1 - size)) > 0)
		size += (size_t)n;
	int saved = errno;
	close(fd);
	errno = saved;
	out[size] = '\0';
	return n < 0 ? -1 : (ssize_t)size;
}

int small_file_write(const char *path, const char *text)
{
	int fd = open_file(path, O_WRONLY), result = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		result = -errno;
	close(fd);
	return result;
}

char *proc_file_read(const char *path)
{
	int fd = open_file(path, O_RDONLY);
	struct buf text = BUF_INIT;
	char piece[8192];
	ssize_t n;

	if (fd < 0)
		return NULL;
	while ((n = read_some(fd, piece, sizeof(piece))) > 0 && text.size < PROC_FILE_MAX)
		buf_add(&text, piece, (size_t)n);
	close(fd);
	if (n < 0) {
		buf_deinit(&text);
		return NULL;
	}
	return buf_take(&text);
}
