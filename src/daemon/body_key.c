/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of bodies. Each start writes its fingerprint into the journal, so another key is noticed before anything is sealed with it.
 *
 *	journal has none	an older release wrote it: this start adds it
 *	the same		go on
 *	another, or no file	refused; with --accept-loss the daemon goes on, and jobs whose body does not open are held
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/backend.h"
#include "base/log.h"
#include "daemon/state.h"
#include "store/io.h"

static void note(struct daemon *d, const char *what)
{
	struct losses found = { 0 };

	losses_add(&found, 0, 0, what);
	damage_note(d, &found);
	losses_deinit(&found);
}

/* A file that is no key of this journal is kept under another name. */
static int set_aside(struct daemon *d, struct err *err)
{
	char path[PATH_MAX], to[PATH_MAX];
	struct io *io = daemon_io(d);

	if (snprintf(path, sizeof(path), "%s/keys/body.key", d->folder) >= (int)sizeof(path) ||
	    snprintf(to, sizeof(to), "%s/keys/body.key.%lld", d->folder,
		     (long long)clock_wall_ms()) >= (int)sizeof(to))
		return err_set(err, ERR_INVALID, "the name of the data folder is too long");
	int error = io->rename(io, path, to);
	if (error < 0 && error != -ENOENT)
		return err_errno(err, ERR_IO, -error, "cannot rename %s to %s", path, to);
	if (error == 0)
		log_line(LOG_WARN, "%s is now %s", path, to);
	return 0;
}

static bool is_known(const struct daemon *d)
{
	return !d->known.key[0] || strcmp(d->known.key, d->key_print) == 0;
}

static int refuse(struct daemon *d, const struct err *why, struct err *err)
{
	char what[ERR_TEXT_MAX];

	snprintf(what, sizeof(what), "%s", why->text);
	note(d, what);
	return err_set(
		err, why->code,
		"%.400s; or start with --accept-loss: jobs whose body this key does not open are held",
		what);
}

int body_key_open(struct daemon *d, struct err *err)
{
	struct err why = { 0 };
	const bool accepts = d->store.loss == JOURNAL_LOSS_ACCEPT;
	int result = seal_key_open(d->folder, d->facts.seq == 0, &d->key, &why);

	if (result == 0)
		seal_key_print(d->key, d->key_print);
	if (result == 0 && is_known(d))
		return 0;
	if (result == 0)
		err_set(&why, ERR_CONFLICT,
			"%s/keys/body.key is not the key of this journal: its fingerprint is %s, and the journal has %s; restore the key from a backup",
			d->folder, d->key_print, d->known.key);
	if (why.code != ERR_NOT_FOUND && why.code != ERR_CORRUPT && why.code != ERR_CONFLICT) {
		*err = why; /* it cannot be read, or others can read it: nothing is lost */
		return -(int)err->code;
	}
	if (!accepts)
		return refuse(d, &why, err);
	note(d, why.text);
	if (result == 0)
		return 0; /* another key serves as well as a new one */
	if (set_aside(d, err) < 0)
		return -1;
	result = seal_key_open(d->folder, true, &d->key, err);
	if (result == 0)
		seal_key_print(d->key, d->key_print);
	return result;
}

static void held_done(void *context, const struct command_reply *reply)
{
	(void)context;
	if (reply->err.code != ERR_NONE)
		log_line(LOG_WARN, "a job whose body cannot be read could not be held: %s",
			 reply->err.text);
}

void body_key_hold(struct daemon *d, struct job_id job, const char *why, char reason[BODY_TEXT_MAX])
{
	struct event event = event_make(EVENT_JOB_HELD, 0, "fairlead");

	snprintf(
		reason, BODY_TEXT_MAX,
		"its command cannot be read (%.80s): restore keys/body.key or the journal, and release the job",
		why);
	event.job_held.job = job.v;
	event.job_held.reason = reason;
	struct command *command = command_create(&event, NULL, 0);
	command->done = held_done;
	d->backend.send(d, command);
	log_line(LOG_ERROR, "job %u is held: %s", job.v, reason);
}
