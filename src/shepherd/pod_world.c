/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who belongs to the attempt, in a pod: what the daemon says with a lease becomes what the local engine writes (engine/local/local_resize.c),
 *
 *	HOME/world		for the task to read; it is there before the task begins
 *	world.N in the place	the notice for who listens on the report socket, and whether this rank leaves
 */
#include "shepherd/pod.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "engine/local/place.h"

enum {
	NOTICE_RANKS_MAX = 256, /* more are read from the file */
	NOTICE_HOSTS_BYTES = 2048 /* likewise; a line that nobody reads waits in a small buffer */
};

struct lists {
	struct json_slice ranks, hosts; /* as they stand there */
};

struct json_slice pod_value_skip(struct json_reader *r)
{
	struct json_slice value = { 0 };

	(void)pull_peek(r);
	value.data = r->at;
	pull_skip(r);
	value.size = (size_t)(r->at - value.data);
	return value;
}

static int world_read(const struct json_slice *world, struct pod_world *ret, struct lists *lists,
		      struct err *err)
{
	struct json_reader r;
	struct json_slice key;

	ret->generation = ret->size = -1;
	pull_init(&r, world->data, world->size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "generation"))
			pull_int(&r, &ret->generation);
		else if (pull_key_is(&key, "size"))
			pull_int(&r, &ret->size);
		else if (pull_key_is(&key, "ranks"))
			lists->ranks = pod_value_skip(&r);
		else if (pull_key_is(&key, "hosts"))
			lists->hosts = pod_value_skip(&r);
		else
			pull_skip(&r);
	}
	if (!r.problem && (ret->generation < 0 || ret->size < 0 || ret->rank < -1))
		pull_fail(&r, "world has a generation and a size");
	return pull_finish(&r, err);
}

static int file_put(const char *home, const struct json_slice *world, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	int folder = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return err_errno(err, ERR_IO, errno, "could not open the folder %.200s", home);
	buf_add(&text, world->data, world->size);
	buf_addc(&text, '\n');
	int result = place_put(folder, "world", text.data, text.size, err);
	close(folder);
	return result;
}

static void list_add(const char *name, const struct json_slice *list, struct buf *out)
{
	if (!list->data)
		return;
	buf_addf(out, ", \"%s\": ", name);
	buf_add(out, list->data, list->size);
}

int pod_world_put(const char *home, int folder, const struct json_slice *world,
		  struct pod_world *ret, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	char name[40];
	struct lists lists = { 0 };
	int result = world_read(world, ret, &lists, err);

	if (result == 0)
		result = file_put(home, world, err);
	if (result < 0 || !ret->generation)
		return result;
	snprintf(name, sizeof(name), "world.%" PRId64, ret->generation);
	buf_addf(&text, "%" PRId64 " %d\n{\"notice\": \"resize\"", ret->leave_ms, ret->rank < 0);
	buf_addf(&text, ", \"generation\": %" PRId64 ", \"size\": %" PRId64, ret->generation,
		 ret->size);
	if (ret->size <= NOTICE_RANKS_MAX)
		list_add("ranks", &lists.ranks, &text);
	if (lists.hosts.size <= NOTICE_HOSTS_BYTES)
		list_add("hosts", &lists.hosts, &text);
	buf_addf(&text, ", \"rank\": %" PRId64, ret->rank);
	if (ret->rank < 0)
		buf_addf(&text, ", \"grace_ms\": %" PRId64, ret->leave_ms);
	buf_adds(&text, "}\n");
	return place_put(folder, name, text.data, text.size, err);
}
