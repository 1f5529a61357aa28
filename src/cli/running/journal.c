/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal, read directly from the data folder: works with and without a daemon, and changes
 * nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/client.h"
#include "cli/table/commands.h"
#include "cli/output/output.h"
#include "cli/output/problem.h"
#include "core/model/event.h"
#include "store/journal.h"

struct damage {
	uint64_t count;
};

static void say_damage(void *context, uint64_t seq, const char *what)
{
	struct damage *damage = context;

	damage->count++;
	if (seq)
		notice("record %llu: %s", (unsigned long long)seq, what);
	else
		notice("%s", what);
}

static int open_journal(struct invocation *in, struct damage *damage, struct journal **ret,
			struct err *err)
{
	const struct journal_options options = { .folder = client_data_folder(in),
						 .read_only = true,
						 .damaged_context = damage,
						 .damaged = damage ? say_damage : NULL };
	int rc = client_may_read_folder(in, err);

	return rc < 0 ? rc : journal_open(&options, ret, err);
}

static const char *kind_text(uint32_t kind, char out[24])
{
	const struct event_info *info = event_info(kind);

	if (info)
		return info->name;
	snprintf(out, 24, "kind-%u", kind);
	return out;
}

/* verify */

struct walk {
	struct damage damage; /* first: the context of say_damage too */
	uint64_t records, first, last;
	int64_t first_ms, last_ms;
	struct digest hash;
};

static int count_record(void *context, const struct record *record, const struct digest *hash)
{
	struct walk *walk = context;

	if (!walk->records++) {
		walk->first = record->seq;
		walk->first_ms = record->time_ms;
	}
	walk->last = record->seq;
	walk->last_ms = record->time_ms;
	walk->hash = *hash;
	return 0;
}

static void show_walk(struct invocation *in, const struct walk *walk, uint64_t damaged)
{
	char hex[DIGEST_HEX_MAX];
	struct output output;
	AUTO_BUF out = BUF_INIT;
	json_t *answer;

	digest_format(&walk->hash, hex);
	answer =
		json_pack("{s:b, s:I, s:I, s:I, s:I, s:s}", "ok", damaged == 0, "records",
			  (json_int_t)walk->records, "damaged", (json_int_t)damaged, "first_seq",
			  (json_int_t)walk->first, "last_seq", (json_int_t)walk->last, "hash", hex);
	output_init(&output, in);
	if (!output_value(&output, answer, "hash")) {
		if (walk->records) {
			buf_addf(&out, "%llu records, %llu to %llu, from ",
				 (unsigned long long)walk->records, (unsigned long long)walk->first,
				 (unsigned long long)walk->last);
			say_time(&out, walk->first_ms);
			buf_adds(&out, " to ");
			say_time(&out, walk->last_ms);
			buf_addf(&out, "\nhash of the chain: %s\n", hex);
		} else {
			buf_adds(&out, "The journal is empty.\n");
		}
		buf_adds(&out, damaged ? "Damage was found; what is readable is kept.\n"
				       : "Every record is as it was written.\n");
		output_buf(&out);
	}
	json_decref(answer);
}

static int run_verify(struct invocation *in, struct err *err)
{
	struct journal *journal = NULL;
	struct walk walk = { 0 };
	const struct journal_reader reader = { .context = &walk,
					       .take = count_record,
					       .damaged = say_damage };
	struct journal_state state;
	int rc = open_journal(in, &walk.damage, &journal, err);

	if (rc < 0)
		return rc;
	journal_state(journal, &state);
	rc = journal_read(journal, 1, 0, true, &reader, err);
	journal_close(journal);
	if (rc < 0)
		return rc;
	if (state.damaged && !walk.damage.count)
		walk.damage.count = state.set_aside ? state.set_aside : 1;
	show_walk(in, &walk, walk.damage.count);
	return walk.damage.count ? err_code_exit(ERR_CORRUPT) : 0;
}

const struct command command_journal_verify = {
	.name = "journal verify",
	.arguments = "",
	.summary = "check every record of the journal against the chain of hashes",
	.about =
		"Reads the data folder itself, also while a daemon runs there; nothing is changed. The exit status is 10 when a record is "
		"damaged or missing; its number and what is wrong are on stderr. What the daemon set aside earlier lies in quarantine/.",
	.examples = "fairlead journal verify\n"
		    "fairlead journal verify --data /backup/fairlead\ta backup",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_verify,
};

/* show */

struct show {
	struct damage damage; /* first, as above */
	struct buf out;
	bool json;
	int64_t kind, job; /* wanted; 0 = all */
	uint64_t left; /* records still to show */
	const char *job_text;
};

/* Whether the record says "job":N. Texts are compact JSON of ours, so this needs no parsing. */
static bool is_about(const struct record *record, const char *job_text)
{
	const char *found = memmem(record->text, record->size, job_text, strlen(job_text));

	return found && (found[strlen(job_text)] == ',' || found[strlen(job_text)] == '}');
}

static int show_record(void *context, const struct record *record, const struct digest *hash)
{
	struct show *show = context;
	char unknown[24], hex[DIGEST_HEX_MAX], time[LOCAL_TIME_MAX];

	if ((show->kind && record->kind != show->kind) ||
	    (show->job && !is_about(record, show->job_text)))
		return 0;
	if (show->json) {
		buf_addf(
			&show->out,
			"{\"seq\":%llu,\"time_ms\":%lld,\"kind\":\"%s\",\"hash\":\"%s\",\"record\":",
			(unsigned long long)record->seq, (long long)record->time_ms,
			kind_text(record->kind, unknown), digest_format(hash, hex));
		buf_add(&show->out, record->text, record->size);
		buf_adds(&show->out, "}\n");
	} else {
		buf_addf(&show->out, "%7llu  %s  %-20s  ", (unsigned long long)record->seq,
			 clock_format_local(record->time_ms, time),
			 kind_text(record->kind, unknown));
		text_for_terminal(&show->out, record->text, record->size);
		buf_addc(&show->out, '\n');
	}
	if (show->out.size > 1 << 20)
		output_buf(&show->out);
	return --show->left == 0;
}

static int find_kind(const char *name, int64_t *ret, struct err *err)
{
	const char *names[EVENT_KIND_LIMIT], *hint;
	size_t count = 0;

	for (uint32_t kind = 1; kind < EVENT_KIND_LIMIT; kind++) {
		const struct event_info *info = event_info(kind);

		if (!info)
			continue;
		names[count++] = info->name;
		if (strcmp(info->name, name) == 0) {
			*ret = kind;
			return 0;
		}
	}
	hint = spelling_hint(name, names, count);
	return err_set(err, ERR_INVALID,
		       hint ? "--kind: there is no kind \"%.60s\"; did you mean \"%s\"?"
			    : "--kind: there is no kind \"%.60s\"",
		       name, hint);
}

static int run_show(struct invocation *in, struct err *err)
{
	struct journal *journal = NULL;
	struct show show = { 0 };
	const struct journal_reader reader = { .context = &show,
					       .take = show_record,
					       .damaged = say_damage };
	struct output output;
	int64_t from, limit;
	int rc = arg_number(in, "from", 1, INT64_MAX, 1, &from, err);

	if (rc >= 0)
		rc = arg_number(in, "limit", 1, INT64_MAX, INT64_MAX, &limit, err);
	if (rc >= 0)
		rc = arg_number(in, "job", 1, UINT32_MAX, 0, &show.job, err);
	if (rc >= 0 && arg_has(in, "kind"))
		rc = find_kind(arg_flag(in, "kind"), &show.kind, err);
	if (rc >= 0)
		rc = open_journal(in, &show.damage, &journal, err);
	if (rc < 0)
		return rc;
	output_init(&output, in);
	show.json = output.form == OUTPUT_JSON;
	show.left = (uint64_t)limit;
	show.job_text = arena_printf(in->arena, "\"job\":%lld", (long long)show.job);
	rc = journal_read(journal, (uint64_t)from, 0, false, &reader, err);
	journal_close(journal);
	output_buf(&show.out);
	buf_deinit(&show.out);
	return rc < 0 ? rc : 0;
}

static const struct flag show_flags[] = {
	{ "from", 0, "SEQ", "start at this record; default the first", false },
	{ "limit", 0, "N", "at most so many", false },
	{ "kind", 0, "NAME", "only records of this kind, such as job-submitted", false },
	{ "job", 0, "ID", "only records that name this job", false },
	{ "output", 'o', "table|json", "json: one object in each line", false },
	{ 0 },
};

const struct command command_journal_show = {
	.name = "journal show",
	.arguments = "",
	.summary = "print the journal's records",
	.about =
		"Reads the data folder itself, also while a daemon runs there. Commands and environments of jobs are not in the records, only "
		"the names of their sealed bodies.",
	.flags = show_flags,
	.examples = "fairlead journal show --limit 20\n"
		    "fairlead journal show --job 12\tall that names job 12\n"
		    "fairlead journal show --kind attempt-ended -o json\tfor programs",
	.shares = SHARES_DAEMON,
	.run = run_show,
};

/* backup */

static int run_backup(struct invocation *in, struct err *err)
{
	const char *folder = client_data_folder(in), *file = in->args[0];
	struct stat info;
	int rc = client_may_read_folder(in, err);

	if (rc >= 0)
		rc = journal_backup(folder, file, err);
	if (rc < 0)
		return rc;
	if (stat(file, &info) < 0)
		return err_errno(err, ERR_IO, errno, "the backup \"%.200s\" can't be looked at",
				 file);
	printf("%s holds the journal, the snapshots and the key of %s (%lld KiB).\n", file, folder,
	       (long long)(info.st_size + 1023) / 1024);
	notice("who has this file can read the commands and secrets of all jobs in it: keep it as safe as the folder");
	return 0;
}

const struct command command_journal_backup = {
	.name = "journal backup",
	.arguments = "FILE",
	.summary = "write a consistent copy of the data folder, also of one in use",
	.about =
		"FILE becomes a tar archive of mode 0600 with the journal, the snapshots and the key for sealed bodies; it appears whole or not "
		"at all, and replaces an older one of that name. Checkpoints and logs of jobs are not in it. Restore it into an empty folder with "
		"tar, and start a daemon there.",
	.examples =
		"fairlead journal backup /backup/fairlead.tar\n"
		"mkdir NEW && tar -xf /backup/fairlead.tar -C NEW && fairlead up --data NEW\trestore it",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.run = run_backup,
};
