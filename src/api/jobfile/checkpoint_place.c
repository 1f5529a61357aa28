/* SPDX-License-Identifier: Apache-2.0 */
#include "api/jobfile/checkpoint_place.h"

#include <string.h>

static bool is_within(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	while (length && folder[length - 1] == '/')
		length--;
	return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/');
}

static const char *text_at(const struct conf *map, const char *key)
{
	const struct conf *found = map && map->type == CONF_MAP ? conf_find(map, key) : NULL;

	return found && found->type == CONF_SCALAR ? found->text : NULL;
}

/* The volume whose path is the nearest above; NULL = none. */
static const struct conf *volume_of(const struct conf *volumes, const char *path)
{
	const struct conf *found = NULL;
	size_t longest = 0;

	for (size_t i = 0; volumes && volumes->type == CONF_MAP && i < volumes->count; i++) {
		const struct conf *item = volumes->items[i];
		const char *at = item->type == CONF_MAP ? text_at(item, "path") : item->text;

		if (at && is_within(path, at) && strlen(at) >= longest) {
			longest = strlen(at);
			found = item;
		}
	}
	return found;
}

static const struct conf *member(const struct conf *map, const char *key)
{
	return map && map->type == CONF_MAP ? conf_find(map, key) : NULL;
}

/* What the overlay mounts into any container, it may also mount for checkpoints. */
static bool overlay_has(const struct conf *document, const char *path)
{
	const struct conf *spec = member(conf_find(document, "kubernetes"), "spec");
	const struct conf *containers = member(spec, "containers");

	for (size_t i = 0; containers && containers->type == CONF_LIST && i < containers->count;
	     i++) {
		const struct conf *mounts = member(containers->items[i], "volumeMounts");

		for (size_t k = 0; mounts && mounts->type == CONF_LIST && k < mounts->count; k++) {
			const char *at = text_at(mounts->items[k], "mountPath");

			if (at && is_within(path, at))
				return true;
		}
	}
	return false;
}

const char *checkpoint_place_text(const struct conf *document, struct arena *arena)
{
	const char *path = text_at(conf_find(document, "checkpoint"), "path");
	const struct conf *volume = path ? volume_of(conf_find(document, "volumes"), path) : NULL;
	const char *read_only = text_at(volume, "read_only");

	if (!path)
		return "It names no checkpoint.path, so its pods have no FAIRLEAD_CHECKPOINT_DIR: what it saves is there for its next start only on a volume, reported by its full path";
	if (overlay_has(document, path))
		return "";
	if (!volume)
		return arena_printf(
			arena,
			"Its checkpoint.path %.200s is on none of its volumes: unless its image has something mounted there, what it saves goes with the pod",
			path);
	if (member(volume, "empty") || member(volume, "secret") || member(volume, "config") ||
	    (read_only && strcmp(read_only, "true") == 0))
		return arena_printf(
			arena,
			"Its checkpoint.path %.200s is on the volume %.63s, which keeps nothing for its next start",
			path, volume->key);
	return "";
}
