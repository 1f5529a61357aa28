/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A list of process ids, and reading small files of /proc. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pid_list {
	pid_t *pids;
	size_t count, room;
};

void pid_list_add(struct pid_list *list, pid_t pid); /* twice is once */
void pid_list_deinit(struct pid_list *list);
/* Each number in a text of numbers and white space. */
void pid_list_add_text(struct pid_list *list, const char *text);

#define AUTO_PIDS __attribute__((cleanup(pid_list_deinit))) struct pid_list

/* Reads up to room-1 bytes of a file, NUL behind them. Bytes read, or -1 with errno. */
ssize_t small_file_read(const char *path, char *out, size_t room);
/* Writes text into an existing file in one call. 0 or -errno. */
int small_file_write(const char *path, const char *text);
/* A whole file of /proc, whatever its size up to 4 MiB; malloc'd, NULL when it can't be read. */
char *proc_file_read(const char *path);
