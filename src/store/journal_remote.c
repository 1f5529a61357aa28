/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal whose records are in PostgreSQL. The folder still holds the lock, snapshots, keys, what is set aside, and in the file
 * `store` where the records are:
 *
 *	fairlead-store 1
 *	journal 0f3a...			the database's journal must be this one
 *	address postgresql://...
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "store/journal_internal.h"

enum { STORE_MAX = 8192, PORTION = 4096 };
static const char first_line[] = "fairlead-store 1\n";

static void id_text(const uint8_t id[JOURNAL_ID_BYTES], char out[2 * JOURNAL_ID_BYTES + 1])
{
	for (int i = 0; i < JOURNAL_ID_BYTES; i++)
		snprintf(out + (size_t)2 * (size_t)i, 3, "%02x", id[i]);
}

/* --- the file `store` ---------------------------------------------------------------------------------------------- */

/* The rest of the line that begins with the word, malloc'd; NULL when there is none. */
static char *line_of(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at ? strndup(at + strlen(word), strcspn(at + strlen(word), "\n")) : NULL;
}

/* 0 with both NULL: there is no such file. */
static int store_read(struct journal *journal, char **ret_id, char **ret_address, struct err *err)
{
	char path[PATH_MAX], *text, *with_end;
	size_t size;
	int rc;

	*ret_id = *ret_address = NULL;
	journal_file(journal, "store", path);
	rc = io_read_file(journal->io, path, STORE_MAX, &text, &size);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_errno(err, ERR_IO, -rc, "can't read %s", path);
	with_end = strndup(text, size);
	CHECK(with_end);
	free(text);
	text = with_end;
	if (strncmp(text, first_line, strlen(first_line)) == 0) {
		*ret_id = line_of(text, "\njournal ");
		*ret_address = line_of(text, "\naddress ");
	}
	free(text);
	if (*ret_id && *ret_address)
		return 0;
	free(*ret_id);
	free(*ret_address);
	*ret_id = *ret_address = NULL;
	return err_set(
		err, ERR_CORRUPT,
		"%s does not say where the journal is: its lines are \"fairlead-store 1\", \"journal ID\", \"address ADDRESS\"",
		path);
}

static int store_write(struct journal *journal, const char *address, struct err *err)
{
	char path[PATH_MAX], id[2 * JOURNAL_ID_BYTES + 1];
	AUTO_BUF text = BUF_INIT;
	int rc;

	id_text(journal->head_row.id, id);
	buf_addf(&text, "%sjournal %s\naddress %s\n", first_line, id, address);
	journal_file(journal, "store", path);
	rc = io_replace_file(journal->io, path, text.data, text.size, 0600);
	return rc < 0 ? err_errno(err, ERR_IO, -rc, "can't write %s", path) : 0;
}

static int find_files(void *context, const char *name)
{
	const size_t length = strlen(name);
	bool *found = context;

	if (strcmp(name, "manifest") == 0 ||
	    (length > 7 && strcmp(name + length - 7, ".sqlite") == 0))
		*found = true;
	return 0;
}

/* Segments whose manifest is lost are a journal too. */
static bool has_files(struct journal *journal)
{
	bool found = false;

	(void)journal->io->list(journal->io, journal->path, &found, find_files);
	return found;
}

static int address_check(const struct journal_options *options, struct err *err)
{
	if (strlen(options->address) > STORE_MAX / 2 || strpbrk(options->address, "\n\r"))
		return err_set(
			err, ERR_INVALID,
			"the address of the database is a line of at most %d bytes, like postgresql://user@host/name",
			STORE_MAX / 2);
	return postgres_address_check(options->address, err);
}

int remote_address(struct journal *journal, const struct journal_options *options,
		   char **ret_address, struct err *err)
{
	char *id = NULL;
	int rc = options->address ? address_check(options, err) : 0;

	*ret_address = NULL;
	if (rc == 0)
		rc = store_read(journal, &id, ret_address, err);
	if (rc < 0)
		return rc;
	free(id);
	if (!options->address)
		return 0;
	if (!*ret_address && has_files(journal))
		return err_set(
			err, ERR_CONFLICT,
			"data folder \"%s\" keeps its journal in files, and records do not move: begin with an empty folder, or leave the database out",
			journal->folder);
	free(*ret_address);
	*ret_address = strdup(options->address);
	CHECK(*ret_address);
	return 0;
}

/* --- opening ------------------------------------------------------------------------------------------------------- */

/* Jobs of another folder run on another machine perhaps: without its folder nobody here could know, and they would run twice. */
static int is_new(struct journal *journal, const char *address, struct err *err)
{
	struct postgres_head head;
	struct postgres *postgres;
	int rc = postgres_open(address, POSTGRES_READ, 0, &postgres, &head, err);

	if (rc < 0)
		return err->code == ERR_NOT_FOUND ? 0 : rc;
	if (head.last_seq)
		rc = err_set(
			err, ERR_CONFLICT,
			"%s holds the journal of another data folder, which knows what runs: start with that folder (--data), or copy it whole in place of \"%s\" once its daemon and its machine are gone for good",
			postgres_name(postgres), journal->folder);
	postgres_close(postgres);
	return rc;
}

/* --- what this folder knows of the journal's end ------------------------------------------------------------------- */

static void state_follow(struct journal *journal)
{
	journal->state.epoch = journal->head_row.epoch;
	journal->state.last_seq = journal->head_row.last_seq;
	journal->state.last_hash = journal->head_row.last_hash;
	journal->state.last_time_ms = journal->head_row.last_time_ms;
}

/* Beside the records, as with a journal in files (journal_head.c). Not being able to is no reason to stop: a later start knows less. */
static void head_note(struct journal *journal)
{
	memcpy(journal->manifest.id, journal->head_row.id, JOURNAL_ID_BYTES);
	(void)head_write(journal);
}

struct known {
	struct journal_head head;
	bool contradicted;
};

/* A damaged row contradicts nothing: it is set aside when it is read. */
static int compare_known(void *context, const struct segment_row *row)
{
	struct known *known = context;

	known->contradicted = row->good && !digest_equal(&row->hash, &known->head.hash);
	return 0;
}

/*
 * A server that was promoted before it had everything, or one that was restored, lacks records that somebody was answered for, and work that
 * they name runs. Looked at before anything is taken over.
 */
static int has_what_was_written(struct journal *journal, struct postgres *postgres,
				const struct postgres_head *now, struct err *err)
{
	struct known known = { 0 };
	int rc = 0;

	memcpy(journal->manifest.id, now->id, JOURNAL_ID_BYTES);
	if (head_read(journal, &known.head) != 0 || !known.head.seq)
		return 0;
	if (known.head.seq <= now->last_seq)
		rc = postgres_rows(postgres, known.head.seq, known.head.seq, 1, compare_known,
				   &known, err);
	if (rc < 0 || (known.head.seq <= now->last_seq && !known.contradicted))
		return rc;
	return err_set(
		err, ERR_CONFLICT,
		"%s does not have what data folder \"%s\" knows to be written: the folder knows record %" PRIu64
		", and the journal ends at %" PRIu64
		"%s. Was a stand-by promoted, or a backup restored, that had not everything? Work may run that this journal does not know. To go on from it all the same, remove %s/head",
		postgres_name(postgres), journal->folder, known.head.seq, now->last_seq,
		known.contradicted ? " with another one under that number" : "", journal->path);
}

/*
 * The folder's snapshots belong to one journal: another one under the same address would make them lies. Looked at before anything is
 * taken over.
 */
static int is_the_same(struct journal *journal, const char *address, bool join, struct err *err)
{
	struct postgres_head head;
	struct postgres *postgres;
	char *id, *known, is[2 * JOURNAL_ID_BYTES + 1];
	int rc = store_read(journal, &id, &known, err);

	if (rc < 0)
		return rc;
	if (!id)
		return join ? 0 : is_new(journal, address, err);
	rc = postgres_open(address, POSTGRES_READ, 0, &postgres, &head, err);
	if (rc == 0) {
		id_text(head.id, is);
		if (strcmp(id, is) != 0)
			rc = err_set(
				err, ERR_CONFLICT,
				"%s holds the journal %s, and data folder \"%s\" belongs to %s: give each database a data folder of its own",
				postgres_name(postgres), is, journal->folder, id);
		else if (!journal->read_only)
			rc = has_what_was_written(journal, postgres, &head, err);
		postgres_close(postgres);
	}
	free(id);
	free(known);
	return rc;
}

static int last_row(void *context, const struct segment_row *row)
{
	struct segment_row *last = context;

	*last = *row;
	last->record.text = NULL;
	return 0;
}

/* The newest record is the one that the head names. */
static int end_check(struct journal *journal, struct err *err)
{
	const struct postgres_head *head = &journal->head_row;
	struct segment_row last = { .wrong = "it is missing" };
	int rc = 0;

	if (head->last_seq)
		rc = postgres_rows(journal->postgres, head->last_seq, head->last_seq, 1, last_row,
				   &last, err);
	if (rc < 0 || !head->last_seq)
		return rc;
	if (last.good && !digest_equal(&last.hash, &head->last_hash))
		last.wrong = "its hash is not the one that the head has for it";
	if (!last.good || last.wrong) {
		journal_lost(journal, head->last_seq, head->last_seq, last.wrong);
	}
	return 0;
}

int remote_open(struct journal *journal, const struct journal_options *options, const char *address,
		struct err *err)
{
	const enum postgres_mode mode = journal->read_only ? POSTGRES_READ
					: options->create  ? POSTGRES_CREATE
							   : POSTGRES_WRITE;
	struct postgres_head *head = &journal->head_row;
	int rc = is_the_same(journal, address, options->join || journal->read_only, err);

	if (rc == 0)
		rc = postgres_open(address, mode,
				   options->follow ? POSTGRES_FOLLOWS : options->epoch,
				   &journal->postgres, head, err);
	if (rc == 0 && !journal->read_only)
		rc = store_write(journal, address, err);
	if (rc == 0)
		rc = end_check(journal, err);
	if (rc < 0)
		return rc;
	journal->inline_checkpoint = true; /* there is no log to copy */
	journal->state.following = options->follow && !journal->read_only;
	state_follow(journal);
	if (!journal->read_only)
		head_note(journal);
	return 0;
}

/* --- writing ------------------------------------------------------------------------------------------------------- */

int remote_append(struct journal *journal, struct record *records, size_t count,
		  const struct blob *blobs, size_t blob_count, struct err *err)
{
	int rc;

	journal_hash(journal, records, count);
	rc = postgres_append(journal->postgres, &journal->head_row, records, journal->hashes, count,
			     blobs, blob_count, err);
	if (rc == POSTGRES_FULL)
		return JOURNAL_FULL;
	if (rc < 0 && err->code == ERR_TOO_LARGE)
		return rc;
	if (rc < 0) {
		journal->state.taken_over = err->code == ERR_CONFLICT;
		return journal_fail(journal, err);
	}
	state_follow(journal);
	head_note(journal);
	return 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

struct rows {
	struct reading *reading;
	uint32_t count;
};

static int take_one(void *context, const struct segment_row *row)
{
	struct rows *rows = context;
	struct reading *r = rows->reading;

	rows->count++;
	if (!r->left)
		return 0;
	while (r->next < row->record.seq)
		reading_missing(r, "it is missing");
	return reading_row(r, row);
}

static int row_before(void *context, const struct segment_row *row)
{
	struct reading *r = context;

	if (row->good) {
		r->candidates = 1;
		r->candidate[0] = row->hash;
	}
	return 0;
}

/* The next ones, up to `to`. */
static int read_page(struct reading *r, uint64_t to, struct err *err)
{
	struct rows rows = { .reading = r };
	int rc = postgres_rows(r->journal->postgres, r->next, to,
			       r->left < PORTION ? (uint32_t)r->left : PORTION, take_one, &rows,
			       err);

	while (rc == 0 && r->left && !rows.count && r->next <= to)
		reading_missing(r, "it is missing");
	return rc;
}

int remote_read(struct reading *r, struct err *err)
{
	struct journal *journal = r->journal;
	uint64_t to = journal->state.last_seq;
	struct postgres_head now;
	int rc = 0;

	if (journal->read_only) {
		rc = postgres_head(journal->postgres, &now, err);
		to = rc == 0 ? now.last_seq : 0;
	}
	r->candidates = r->next == 1 ? 1 : 0; /* the first one follows from zeroes */
	if (rc == 0 && r->next > 1 && r->verify)
		rc = postgres_rows(journal->postgres, r->next - 1, r->next - 1, 1, row_before, r,
				   err);
	while (rc == 0 && r->left && r->next <= to)
		rc = read_page(r, to, err);
	return rc;
}

/* --- following ------------------------------------------------------------------------------------------------------ */

static int fell_back(struct journal *journal, const struct postgres_head *now, struct err *err)
{
	return err_set(
		err, ERR_CONFLICT,
		"%s does not have what was read from it before: record %" PRIu64
		" was there, and now the journal ends at %" PRIu64
		", or has another one under that number. Was a stand-by of the server promoted that had not everything?",
		postgres_name(journal->postgres), journal->state.last_seq, now->last_seq);
}

/* Is the record that was followed last still the same? */
static int still_there(struct journal *journal, const struct postgres_head *now, struct err *err)
{
	struct known known = { .head = { .hash = journal->state.last_hash } };
	const uint64_t last = journal->state.last_seq;
	int rc = 0;

	if (now->last_seq < last ||
	    (now->last_seq == last && !digest_equal(&now->last_hash, &known.head.hash)))
		return fell_back(journal, now, err);
	if (last && now->last_seq > last)
		rc = postgres_rows(journal->postgres, last, last, 1, compare_known, &known, err);
	return rc == 0 && known.contradicted ? fell_back(journal, now, err) : rc;
}

/* Up to `now`. The state moves on page by page: what was handed over is not handed over again, should the next page not come. */
static int follow_to(struct journal *journal, const struct postgres_head *now,
		     const struct journal_reader *reader, struct err *err)
{
	struct reading r = { .journal = journal,
			     .reader = reader,
			     .next = journal->state.last_seq + 1,
			     .left = UINT64_MAX,
			     .verify = true,
			     .candidates = 1,
			     .candidate = { journal->state.last_hash } };
	int rc = still_there(journal, now, err);

	while (rc == 0 && r.next <= now->last_seq) {
		rc = read_page(&r, now->last_seq, err);
		journal->state.last_seq = r.next - 1;
		journal->state.last_hash = r.candidate[0];
	}
	if (rc != 0)
		return rc;
	journal->head_row = *now;
	state_follow(journal);
	head_note(journal);
	return 0;
}

int remote_follow(struct journal *journal, const struct journal_reader *reader, struct err *err)
{
	struct postgres_head now;
	int rc = postgres_head(journal->postgres, &now, err);

	return rc == 0 ? follow_to(journal, &now, reader, err) : rc;
}

int remote_promote(struct journal *journal, const struct journal_reader *reader, struct err *err)
{
	struct postgres_head now;
	int rc = postgres_take_over(journal->postgres, &now, err);

	if (rc == 0)
		rc = follow_to(journal, &now, reader, err);
	if (rc == 0)
		journal->state.following = false;
	return rc;
}

int remote_blob(struct journal *journal, const struct digest *digest, void **ret_data,
		size_t *ret_size, struct err *err)
{
	char hex[DIGEST_HEX_MAX];
	struct digest is;
	int rc = postgres_blob(journal->postgres, digest, ret_data, ret_size, err);

	if (rc == SEGMENT_END)
		return err_set(err, ERR_NOT_FOUND, "body %s is not in the journal, or was erased",
			       digest_format(digest, hex));
	if (rc < 0)
		return rc;
	is = digest_of(*ret_data, *ret_size);
	if (digest_equal(&is, digest))
		return 0;
	free(*ret_data);
	*ret_data = NULL;
	return err_set(err, ERR_CORRUPT, "body %s in %s is damaged: its bytes have another digest",
		       digest_format(digest, hex), postgres_name(journal->postgres));
}

int remote_erase(struct journal *journal, const struct digest *digest, struct err *err)
{
	char hex[DIGEST_HEX_MAX];
	int rc = postgres_erase(journal->postgres, journal->head_row.epoch, digest, err);

	return rc == SEGMENT_END ? err_set(err, ERR_NOT_FOUND, "body %s is not in the journal",
					   digest_format(digest, hex))
				 : rc;
}
