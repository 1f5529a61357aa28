/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/check.h"
#include "daemon/state.h"

struct batch *batch_create(void)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	CHECK(batch);
	arena_init(&batch->arena, (size_t)512 << 20);
	return batch;
}

void batch_destroy(struct batch *batch)
{
	if (!batch)
		return;
	for (uint32_t i = 0; i < batch->blob_count; i++)
		buf_deinit(&batch->blobs[i].sealed);
	free(batch->records);
	free(batch->blobs);
	free(batch->replies);
	buf_deinit(&batch->texts);
	arena_deinit(&batch->arena);
	free(batch);
}

static void *grown(void *array, uint32_t count, uint32_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? *room * 2 : 16;
	void *larger = reallocarray(array, *room, size);
	CHECK(larger);
	return larger;
}

void batch_record(struct batch *batch, const struct event *event)
{
	batch->records = grown(batch->records, batch->record_count, &batch->record_room,
			       sizeof(*batch->records));
	size_t at = batch->texts.size;
	event_encode(event, &batch->texts);
	batch->records[batch->record_count++] = (struct batch_record){
		.seq = event->seq,
		.time_ms = event->time_ms,
		.kind = event->kind,
		.must = event_info(event->kind)->must_understand,
		.at = at,
		.size = batch->texts.size - at,
	};
}

void batch_reply(struct batch *batch, struct command *command, const struct command_reply *reply)
{
	batch->replies = grown(batch->replies, batch->reply_count, &batch->reply_room,
			       sizeof(*batch->replies));
	batch->replies[batch->reply_count++] = (struct batch_reply){ command, *reply };
}

void batch_blob(struct batch *batch, struct command *command, const struct digest *name,
		struct buf *sealed)
{
	batch->blobs =
		grown(batch->blobs, batch->blob_count, &batch->blob_room, sizeof(*batch->blobs));
	batch->blobs[batch->blob_count++] = (struct batch_blob){ command, *name, *sealed };
	*sealed = BUF_INIT;
}
