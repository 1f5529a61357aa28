/* SPDX-License-Identifier: Apache-2.0 */
/* Zone files of this machine, and names like one that is not there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/parse.h"
#include "base/zone.h"

enum { FILE_MAX = 65536, PATH_ROOM = 4096, NAMES_MAX = 2048, DEPTH_MAX = 3 };

static const char *zone_folder(void)
{
	const char *given = getenv("TZDIR");

	return given && *given ? given : "/usr/share/zoneinfo";
}

/* --- names ------------------------------------------------------------------------------------------------ */

struct names {
	char name[NAMES_MAX][ZONE_NAME_MAX + 1];
	const char *list[NAMES_MAX];
	uint32_t count;
};

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Names of zones begin with a capital letter at each step; tables and other trees of the folder do not. */
static void names_collect(struct names *names, const char *prefix, int depth)
{
	char path[PATH_ROOM], name[ZONE_NAME_MAX + 1];
	struct dirent *entry;
	DIR *folder;

	if (snprintf(path, sizeof(path), "%s/%s", zone_folder(), prefix) >= (int)sizeof(path))
		return;
	folder = opendir(path);
	while (folder && names->count < NAMES_MAX && (entry = readdir(folder))) {
		if (entry->d_name[0] < 'A' || entry->d_name[0] > 'Z' ||
		    snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "/" : "",
			     entry->d_name) >= (int)sizeof(name) ||
		    !zone_name_is_sound(name))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", zone_folder(), name) >= (int)sizeof(path))
			continue;
		if (!is_folder(path))
			memcpy(names->name[names->count++], name, strlen(name) + 1);
		else if (depth < DEPTH_MAX)
			names_collect(names, name, depth + 1);
	}
	if (folder)
		closedir(folder);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* "berlin", "Berlin" and "europe/berlin" are Europe/Berlin; else the one with the fewest letters to change. */
static const char *name_like(struct names *names, const char *name)
{
	for (uint32_t i = 0; i < names->count; i++) {
		const char *whole = names->name[i], *last = strrchr(whole, '/');

		if (strcasecmp(whole, name) == 0 || (last && strcasecmp(last + 1, name) == 0))
			return whole;
		names->list[i] = whole;
	}
	return spelling_hint(name, names->list, names->count);
}

static int unknown(const char *name, struct err *err)
{
	struct names *names = calloc(1, sizeof(*names));
	const char *hint;
	int rc;

	CHECK(names);
	names_collect(names, "", 1);
	qsort(names->name, names->count, sizeof(names->name[0]), by_text);
	hint = name_like(names, name);
	if (!names->count)
		rc = err_set(err, ERR_NOT_FOUND,
			     "time zone \"%.60s\": this machine has no zone files in %s; "
			     "install tzdata, or write \"utc+1\"",
			     name, zone_folder());
	else if (hint)
		rc = err_set(err, ERR_NOT_FOUND,
			     "there is no time zone \"%.60s\"; did you mean \"%s\"?", name, hint);
	else
		rc = err_set(err, ERR_NOT_FOUND,
			     "there is no time zone \"%.60s\"; names are like \"Europe/Berlin\"",
			     name);
	free(names);
	return rc;
}

/* --- the file ---------------------------------------------------------------------------------------------- */

static ssize_t file_read(const char *path, char *room, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t got = 1;

	if (fd < 0)
		return -1;
	while (have < size && got > 0) {
		got = read(fd, room + have, size - have);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			have += (size_t)got;
	}
	close(fd);
	return got < 0 ? -1 : (ssize_t)have;
}

int zone_read(const char *name, struct zone_rules *ret, struct err *err)
{
	char path[PATH_ROOM], *room;
	struct err why;
	ssize_t size;
	int rc;

	if (!zone_name_is_sound(name))
		return unknown(name, err);
	if (snprintf(path, sizeof(path), "%s/%s", zone_folder(), name) >= (int)sizeof(path))
		return unknown(name, err);
	room = malloc(FILE_MAX);
	CHECK(room);
	size = file_read(path, room, FILE_MAX);
	if (size < 0)
		rc = unknown(name, err);
	else if (zone_parse(room, (size_t)size, ret, &why) < 0)
		rc = err_set(err, ERR_INVALID,
			     "time zone \"%s\": the file %s is not understood: %s", name, path,
			     why.text);
	else
		rc = 0;
	free(room);
	return rc;
}
