/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/conf.h"

static int read_whole(const char *path, struct arena *arena, const char **ret, size_t *ret_size,
		      struct err *err)
{
	char *text = arena_alloc(arena, CONF_BYTES_MAX + 2);
	FILE *file = fopen(path, "re");
	size_t size;
	int failed;

	if (!file)
		return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
				 "can't open %s", path);
	errno = 0;
	size = fread(text, 1, CONF_BYTES_MAX + 1, file);
	failed = ferror(file) ? errno : 0;
	fclose(file);
	if (failed)
		return err_errno(err, ERR_IO, failed, "can't read %s", path);
	if (size > CONF_BYTES_MAX)
		return err_set(err, ERR_TOO_LARGE, "%s is larger than the limit of %d bytes", path,
			       CONF_BYTES_MAX);
	*ret = text;
	*ret_size = size;
	return 0;
}

static void check_twice(const struct scenario_file *file, size_t at)
{
	struct scenario_document *d = &file->documents[at];

	for (size_t i = 0; i < at && d->rc == 0; i++)
		if (strcmp(file->documents[i].name, d->name) == 0)
			d->rc = err_at(&d->err, ERR_INVALID, file->path, d->scenario.line, 1,
				       "two scenarios of this file are named \"%.100s\"", d->name);
}

int scenario_file_read(const char *path, bool daemon, struct arena *arena,
		       struct scenario_file *ret, struct err *err)
{
	struct conf **documents;
	const char *text = "";
	size_t size = 0;
	int rc;

	*ret = (struct scenario_file){ .path = path };
	rc = read_whole(path, arena, &text, &size, err);
	if (rc == 0)
		rc = conf_parse(path, text, size, arena, &documents, &ret->count, err);
	if (rc < 0)
		return rc;
	if (ret->count == 0)
		return err_at(err, ERR_INVALID, path, 1, 1, "there is no scenario in this file");
	ret->documents = arena_new_array(arena, struct scenario_document, ret->count);
	for (size_t i = 0; i < ret->count; i++) {
		struct scenario_document *d = &ret->documents[i];

		d->name = scenario_title(documents[i], arena);
		d->rc = scenario_read(path, documents[i], daemon, arena, &d->scenario, &d->err);
		check_twice(ret, i);
	}
	return 0;
}

static int read_one(const char *path, struct arena *arena, const struct conf **ret, struct err *err)
{
	struct conf **documents;
	const char *text = "";
	size_t size = 0, count = 0;
	int rc = read_whole(path, arena, &text, &size, err);

	if (rc == 0)
		rc = conf_parse(path, text, size, arena, &documents, &count, err);
	if (rc < 0)
		return rc;
	if (count != 1)
		return err_at(err, ERR_INVALID, path, 1, 1,
			      "there are %zu documents in this file; wanted is one", count);
	*ret = documents[0];
	return 0;
}

int scenario_site_file_read(const char *path, struct arena *arena, struct scenario *ret,
			    struct err *err)
{
	const struct conf *document = NULL;
	int rc = read_one(path, arena, &document, err);

	return rc < 0 ? rc : scenario_read_site(path, document, arena, ret, err);
}

int scenario_rules_file_read(const char *path, struct arena *arena, struct scenario *site,
			     struct err *err)
{
	const struct conf *document = NULL;
	int rc = read_one(path, arena, &document, err);

	return rc < 0 ? rc : scenario_read_rules(path, document, arena, site, err);
}
