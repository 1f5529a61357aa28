/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshot records: {"row":7,"sub":2, ...} with the fields of records.c that are not empty. Loading takes them in the
 * order in which they were saved: a row's id is the next one of its table, and what belongs to a job or attempt
 * comes right behind it. All references are checked at the end, before anything follows them.
 */
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/json.h"
#include "core/model/apply.h"
#include "core/model/edit.h"
#include "core/model/likes.h"
#include "core/model/records.h"

/* --- saving --------------------------------------------------------------------------------------------- */

static void encode_hex(struct buf *out, const unsigned char *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";

	buf_addc(out, '"');
	for (size_t i = 0; i < count; i++) {
		buf_addc(out, digits[bytes[i] >> 4]);
		buf_addc(out, digits[bytes[i] & 15]);
	}
	buf_addc(out, '"');
}

static void encode_element(const struct facts *f, const struct field *field, const void *row,
			   uint32_t at, bool readable, struct buf *out)
{
	int64_t value = field_int(field, row, at);
	const char *text;

	if (field->type == FIELD_REASON || (readable && field->type == FIELD_NAME)) {
		text = field->type == FIELD_REASON
			       ? facts_text(f, (struct text_id){ (uint32_t)value })
			       : facts_name(f, (struct name_id){ (uint32_t)value });
		buf_add_json(out, text, strlen(text));
	} else {
		buf_addi(out, value);
	}
}

static void encode_value(const struct facts *f, const struct field *field, const void *row,
			 bool readable, struct buf *out)
{
	const char *at = (const char *)row + field->offset;

	if (field->type == FIELD_BYTES) {
		encode_hex(out, (const unsigned char *)at, field->count);
	} else if (field->type == FIELD_TEXT) {
		buf_add_json(out, at, strlen(at));
	} else if (field_is_list(field)) {
		buf_addc(out, '[');
		for (uint32_t i = 0; i < field->count; i++) {
			if (i)
				buf_addc(out, ',');
			encode_element(f, field, row, i, readable, out);
		}
		buf_addc(out, ']');
	} else {
		encode_element(f, field, row, 0, readable, out);
	}
}

void record_encode(const struct facts *f, const struct record_row *row, bool readable,
		   struct buf *out)
{
	buf_adds(out, "{\"row\":");
	buf_addu(out, row->id);
	if (row->sub) {
		buf_adds(out, ",\"sub\":");
		buf_addu(out, row->sub);
	}
	for (const struct field *field = row->fields; field->name; field++) {
		if (field_is_empty(field, row->row))
			continue;
		buf_add(out, ",\"", 2);
		buf_adds(out, field->name);
		buf_add(out, "\":", 2);
		encode_value(f, field, row->row, readable, out);
	}
	buf_addc(out, '}');
}

struct saver {
	const struct facts *f;
	struct buf text;
	void *context;
	int (*write)(void *context, uint32_t kind, const char *text, size_t size);
};

static int save_row(void *context, const struct record_row *row)
{
	struct saver *saver = context;

	buf_clear(&saver->text);
	record_encode(saver->f, row, false, &saver->text);
	return saver->write(saver->context, row->kind, saver->text.data, saver->text.size);
}

int facts_save(const struct facts *f, void *context,
	       int (*write)(void *context, uint32_t kind, const char *text, size_t size))
{
	struct saver saver = { f, BUF_INIT, context, write };
	int result = facts_walk(f, &saver, save_row);

	buf_deinit(&saver.text);
	return result;
}

/* --- reading one record ------------------------------------------------------------------------------------ */

struct loaded {
	uint32_t id, sub;
	_Alignas(8) unsigned char row[RECORD_ROW_MAX];
};

static void load_u32(struct json_reader *r, uint32_t *ret)
{
	int64_t value;

	pull_int(r, &value);
	if (value < 0 || value > UINT32_MAX)
		pull_fail(r, "this number is out of range");
	*ret = clamp_u32(value);
}

static void load_element(struct json_reader *r, const struct facts *f, const struct field *field,
			 void *row, uint32_t at)
{
	int64_t value;

	pull_int(r, &value);
	if (field->type == FIELD_NAME && (value < 0 || value > (int64_t)f->names.count))
		pull_fail(r, "there is no name of this number");
	else if (!field_set_int(field, row, at, value))
		pull_fail(r, "this number is out of range");
}

static void load_bytes(struct json_reader *r, const struct field *field, void *row)
{
	char text[65] = "";
	struct json_slice slice;

	CHECK(field->count == 32);
	pull_string(r, &slice);
	pull_copy(r, &slice, text, sizeof(text));
	if (!hex_parse(text, (uint8_t *)row + field->offset))
		pull_fail(r, "64 hexadecimal digits are expected here");
}

static void load_reason(struct json_reader *r, struct facts *f, const struct field *field,
			void *row)
{
	char text[REASON_MAX_BYTES + 1] = "";
	struct json_slice slice;

	pull_string(r, &slice);
	pull_copy(r, &slice, text, sizeof(text));
	if (*text && field_is_empty(field, row))
		field_set_int(field, row, 0, facts_put_text(f, (struct text_id){ 0 }, text).v);
}

static void load_value(struct json_reader *r, struct facts *f, const struct field *field, void *row)
{
	struct json_slice slice;

	if (field->type == FIELD_REASON) {
		load_reason(r, f, field, row);
		return;
	}
	if (field->type == FIELD_BYTES) {
		load_bytes(r, field, row);
	} else if (field->type == FIELD_TEXT) {
		pull_string(r, &slice);
		pull_copy(r, &slice, (char *)row + field->offset, field->count);
	} else if (field_is_list(field)) {
		pull_array(r);
		for (uint32_t i = 0; pull_element(r); i++)
			load_element(r, f, field, row, i);
	} else {
		load_element(r, f, field, row, 0);
	}
}

static const struct field *field_find(const struct field *fields, const struct field *next,
				      const struct json_slice *key)
{
	for (const struct field *field = next; field->name; field++)
		if (pull_key_is(key, field->name))
			return field;
	for (const struct field *field = fields; field < next; field++)
		if (pull_key_is(key, field->name))
			return field;
	return NULL;
}

static int load_json(struct facts *f, uint32_t kind, const char *text, size_t size,
		     struct loaded *ret, void *row, struct err *err)
{
	const struct field *fields = record_fields(kind), *next = fields, *field;
	struct json_reader r;
	struct json_slice key;

	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		field = field_find(fields, next, &key);
		if (pull_key_is(&key, "row")) {
			load_u32(&r, &ret->id);
		} else if (pull_key_is(&key, "sub")) {
			load_u32(&r, &ret->sub);
		} else if (field) {
			load_value(&r, f, field, row);
			next = field + 1;
		} else {
			pull_skip(&r);
		}
	}
	if (pull_finish(&r, err) < 0)
		return err_prefix(err, "snapshot record \"%s\" %u", record_name(kind), ret->id);
	return 0;
}

/* --- putting it in its place ---------------------------------------------------------------------------------- */

static int out_of_order(uint32_t kind, const struct loaded *loaded, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       "snapshot record \"%s\" %u (%u) does not follow the one before",
		       record_name(kind), loaded->id, loaded->sub);
}

static int place_next(struct table *table, uint32_t kind, const struct loaded *loaded,
		      struct err *err)
{
	if (loaded->id != table->count + 1 || loaded->sub)
		return out_of_order(kind, loaded, err);
	memcpy(table_edit(table, table_add(table)), loaded->row, table->record_bytes);
	return 0;
}

/* A row behind others that are empty; `rows` are given in all. */
static int place_spaced(struct table *table, uint32_t rows, uint32_t kind,
			const struct loaded *loaded, struct err *err)
{
	if (loaded->id > rows)
		return out_of_order(kind, loaded, err);
	while (table->count + 1 < loaded->id)
		table_add(table);
	return place_next(table, kind, loaded, err);
}

static int place_level(struct facts *f, const struct loaded *loaded, struct err *err)
{
	if (loaded->id > LEVELS_MAX || loaded->sub)
		return out_of_order(RECORD_LEVEL, loaded, err);
	memcpy(&f->fabric.level[loaded->id], loaded->row, sizeof(struct level_speed));
	return 0;
}

static int place_make(struct facts *f, const struct loaded *loaded, struct err *err)
{
	if (loaded->id != f->fabric.make_count + 1 || loaded->id > MAKES_MAX || loaded->sub)
		return out_of_order(RECORD_MAKE, loaded, err);
	memcpy(&f->fabric.make[f->fabric.make_count++], loaded->row, sizeof(struct make));
	return 0;
}

static int place_node(struct facts *f, const struct loaded *loaded, struct err *err)
{
	if (place_next(&f->nodes, RECORD_NODE, loaded, err) < 0)
		return -(int)ERR_CORRUPT;
	for (int i = 0; i < NODE_GPUS_MAX; i++)
		table_add(&f->gpus);
	return 0;
}

static int place_gpu(struct facts *f, const struct loaded *loaded, struct err *err)
{
	if (!id_exists(&f->nodes, loaded->id) || loaded->sub >= NODE_GPUS_MAX)
		return out_of_order(RECORD_GPU, loaded, err);
	memcpy(table_edit(&f->gpus, (loaded->id - 1) * NODE_GPUS_MAX + loaded->sub + 1),
	       loaded->row, sizeof(struct gpu_record));
	return 0;
}

/* What belongs to the job loaded last is linked behind the row added last: rows are only ever added here. */
static int place_depend(struct facts *f, const struct loaded *loaded, struct err *err)
{
	struct depend *depend;
	struct job *job;
	uint32_t row;

	if (!loaded->id || loaded->id != f->jobs.count)
		return out_of_order(RECORD_DEPEND, loaded, err);
	row = table_add(&f->depends);
	depend = table_edit(&f->depends, row);
	memcpy(depend, loaded->row, sizeof(*depend));
	depend->owner = loaded->id;
	job = job_edit(f, (struct job_id){ loaded->id });
	if (job->depends)
		((struct depend *)table_edit(&f->depends, row - 1))->next = row;
	else
		job->depends = row;
	return 0;
}

static int place_promise(struct facts *f, const struct loaded *loaded, struct err *err)
{
	struct job *job;
	uint32_t row;

	if (!loaded->id || loaded->id != f->jobs.count)
		return out_of_order(RECORD_PROMISE, loaded, err);
	row = table_add(&f->promises);
	memcpy(table_edit(&f->promises, row), loaded->row, sizeof(struct promise));
	job = job_edit(f, (struct job_id){ loaded->id });
	if (job->promise)
		((struct promise *)table_edit(&f->promises, row - 1))->next = row;
	else
		job->promise = row;
	return 0;
}

static int place_checkpoint(struct facts *f, const struct loaded *loaded, struct err *err)
{
	struct checkpoint *checkpoint;
	struct job *job;

	if (!loaded->id || loaded->id != f->jobs.count || !loaded->sub)
		return out_of_order(RECORD_CHECKPOINT, loaded, err);
	job = job_edit(f, (struct job_id){ loaded->id });
	if (!job->checkpoint)
		job->checkpoint = facts_take_checkpoints(f);
	checkpoint =
		table_edit(&f->checkpoints, job->checkpoint + (loaded->sub - 1) % CHECKPOINTS_KEPT);
	memcpy(checkpoint, loaded->row, sizeof(*checkpoint));
	checkpoint->number = loaded->sub;
	return 0;
}

static int place_task(struct facts *f, const struct loaded *loaded, struct err *err)
{
	struct attempt *attempt;

	if (!loaded->id || loaded->id != f->attempts.count)
		return out_of_order(RECORD_TASK, loaded, err);
	attempt = attempt_edit(f, (struct attempt_id){ loaded->id });
	if (loaded->sub >= attempt->tasks || attempt->tasks > TASKS_MAX)
		return out_of_order(RECORD_TASK, loaded, err);
	if (!attempt->first_task)
		attempt->first_task = facts_take_tasks(f, attempt->tasks);
	memcpy(table_edit(&f->tasks, attempt->first_task + loaded->sub), loaded->row,
	       sizeof(struct task));
	return 0;
}

/* Rows behind the last one that is not empty. */
static void rows_end(struct table *table, uint32_t rows)
{
	while (table->count < rows)
		table_add(table);
}

static int place_like(struct facts *f, const struct loaded *loaded, struct err *err)
{
	if (!loaded->id || loaded->id > LIKE_SETS * LIKE_WAYS || loaded->sub)
		return out_of_order(RECORD_LIKE, loaded, err);
	rows_end(&f->likes, LIKE_SETS * LIKE_WAYS);
	memcpy(table_edit(&f->likes, loaded->id), loaded->row, sizeof(struct like));
	return 0;
}

static int place_reservation(struct facts *f, const struct loaded *loaded, struct err *err)
{
	struct reservation_fact *r;

	if (!loaded->id || loaded->sub || f->reservation_count != f->reservations.count ||
	    (f->reservation_count && reservation_get(f, f->reservation_count)->job >= loaded->id))
		return out_of_order(RECORD_RESERVATION, loaded, err);
	f->reservation_count = table_add(&f->reservations);
	r = table_edit(&f->reservations, f->reservation_count);
	memcpy(r, loaded->row, sizeof(*r));
	r->job = loaded->id;
	return 0;
}

static int place_reserved(struct facts *f, const struct loaded *loaded, struct err *err)
{
	struct reservation_fact *r;
	uint32_t row;

	if (!f->reservation_count || reservation_get(f, f->reservation_count)->job != loaded->id)
		return out_of_order(RECORD_RESERVED, loaded, err);
	row = table_add(&f->promises);
	memcpy(table_edit(&f->promises, row), loaded->row, sizeof(struct promise));
	r = table_edit(&f->reservations, f->reservation_count);
	if (r->tasks++)
		((struct promise *)table_edit(&f->promises, row - 1))->next = row;
	else
		r->first = row;
	return 0;
}

static int place(struct facts *f, uint32_t kind, const struct loaded *loaded, struct err *err)
{
	switch ((enum record_kind)kind) {
	case RECORD_HEAD:
	case RECORD_POLICY:
	case RECORD_END: return 0; /* read into its place already */
	case RECORD_NAME: return place_next(&f->names, kind, loaded, err);
	case RECORD_NODE: return place_node(f, loaded, err);
	case RECORD_GPU: return place_gpu(f, loaded, err);
	case RECORD_QUEUE: return place_next(&f->queues, kind, loaded, err);
	case RECORD_TEAM: return place_next(&f->teams, kind, loaded, err);
	case RECORD_USER: return place_next(&f->users, kind, loaded, err);
	case RECORD_TOKEN: return place_next(&f->tokens, kind, loaded, err);
	case RECORD_SHAPE: return place_next(&f->shapes, kind, loaded, err);
	case RECORD_BODY: return place_spaced(&f->bodies, f->body_ids, kind, loaded, err);
	case RECORD_JOB: return place_spaced(&f->jobs, f->job_ids, kind, loaded, err);
	case RECORD_DEPEND: return place_depend(f, loaded, err);
	case RECORD_CHECKPOINT: return place_checkpoint(f, loaded, err);
	case RECORD_PROMISE: return place_promise(f, loaded, err);
	case RECORD_ATTEMPT: return place_spaced(&f->attempts, f->attempt_ids, kind, loaded, err);
	case RECORD_TASK: return place_task(f, loaded, err);
	case RECORD_LIKE: return place_like(f, loaded, err);
	case RECORD_PRICE: return place_next(&f->prices, kind, loaded, err);
	case RECORD_LEVEL: return place_level(f, loaded, err);
	case RECORD_MAKE: return place_make(f, loaded, err);
	case RECORD_POOL: return place_next(&f->pools, kind, loaded, err);
	case RECORD_ZONE: return place_next(&f->zones, kind, loaded, err);
	case RECORD_PAST: return place_next(&f->pasts, kind, loaded, err);
	case RECORD_DATA: return place_next(&f->data_sets, kind, loaded, err);
	case RECORD_TRANSFER: return place_next(&f->transfers, kind, loaded, err);
	case RECORD_MASK: return place_next(&f->masks, kind, loaded, err);
	case RECORD_BOOKING: return place_next(&f->bookings, kind, loaded, err);
	case RECORD_RESERVATION: return place_reservation(f, loaded, err);
	case RECORD_RESERVED: return place_reserved(f, loaded, err);
	}
	UNREACHABLE();
}

int facts_load_record(struct facts *f, uint32_t kind, const char *text, size_t size,
		      struct err *err)
{
	struct loaded loaded;
	void *row = loaded.row;
	int result;

	if (!record_fields(kind))
		return err_set(
			err, ERR_UNSUPPORTED,
			"the snapshot holds records of kind %u, which this release does not know: use the release that wrote it or a later one",
			kind);
	memset(&loaded, 0, sizeof(loaded));
	if (kind == RECORD_HEAD)
		row = f;
	if (kind == RECORD_POLICY) {
		memset(&f->policy, 0, sizeof(f->policy));
		f->policy.keep_ended_ms = CLIENT_KEY_MS;
		f->policy.share_gpus = SHARE_GPUS_TEAM;
		row = &f->policy;
	}
	result = load_json(f, kind, text, size, &loaded, row, err);
	return result < 0 ? result : place(f, kind, &loaded, err);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void link_names(struct facts *f)
{
	for (uint32_t id = 1; id <= f->names.count; id++)
		facts_link_name(f, id);
	for (uint32_t id = 1; id <= f->nodes.count; id++)
		if (node_get(f, (struct node_id){ id })->name.v)
			name_edit(f, node_get(f, (struct node_id){ id })->name)->node = id;
	for (uint32_t id = 1; id <= f->queues.count; id++)
		name_edit(f, queue_get(f, (struct queue_id){ id })->name)->queue = id;
	for (uint32_t id = 1; id <= f->teams.count; id++)
		name_edit(f, ((const struct team *)table_get(&f->teams, id))->name)->team = id;
	for (uint32_t id = 1; id <= f->users.count; id++)
		name_edit(f, ((const struct user *)table_get(&f->users, id))->name)->user = id;
	for (uint32_t id = 1; id <= f->tokens.count; id++)
		name_edit(f, ((const struct token *)table_get(&f->tokens, id))->id)->token = id;
	for (uint32_t row = 1; row <= f->pasts.count; row++)
		facts_link_past(f, row);
}

static void link_bodies(struct facts *f)
{
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });
		struct body *body = job->body ? table_edit(&f->bodies, job->body) : NULL;

		if (job_state_waits(job->state))
			facts_count_waiting(f, job, 1);
		if (!body)
			continue;
		body->jobs++;
		if (job->state == JOB_SUCCEEDED)
			body->succeeded++;
		else if (job_state_is_final(job->state))
			body->failed++;
	}
	for (uint32_t id = 1; id <= f->bodies.count; id++)
		if (((const struct body *)table_get(&f->bodies, id))->keyed)
			facts_link_body(f, id);
}

int facts_load_finish(struct facts *f, struct err *err)
{
	int result;

	rows_end(&f->jobs, f->job_ids);
	rows_end(&f->attempts, f->attempt_ids);
	rows_end(&f->bodies, f->body_ids);
	result = facts_check_references(f, err);

	if (result < 0)
		return result;
	link_names(f);
	for (uint32_t id = 1; id <= f->shapes.count; id++)
		facts_link_shape(f, id);
	link_bodies(f);
	for (uint32_t row = 1; row <= f->depends.count; row++)
		facts_link_dependent(f, row);
	return facts_check(f, err);
}
