/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of several daemons on one journal: one leads, the others stand by.
 *
 * Who leads is elected by a Lease (engine/kubernetes/lease_rule.h has the rule), and fenced by the journal's epoch:
 *
 *	stands by   follows the journal: facts, view, read models, the stream; answers reads, refuses changes with the leader's name
 *	            Lease free -> takes it -> raises the epoch (who wrote before can write no more) -> follows to the end -> leads
 *	leads       commits name the epoch; requests to the cluster leave only inside the Lease's time by this machine's clock
 *	            Lease seen with another one, or epoch raised -> ends; whoever started it starts it again, and it stands by
 *
 * The Lease can be in two hands for a moment in which one of them sleeps; the epoch never is. So nothing is lost or written twice, and what
 * the sleeper sends to the cluster when it wakes is held back: its time has run out.
 *
 * What the stand-by has to do in the end is to list the cluster and decide: it has read everything before.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/http/http.h"
#include "base/log.h"
#include "daemon/ending.h"
#include "daemon/state.h"
#include "engine/kubernetes/lease.h"

enum {
	FOLLOW_MS = 100,
	WATCH_MS = 200,
	KEY_JOBS = 64 /* so many of the newest are tried for one whose body is there */
};

/* --- the key of bodies -------------------------------------------------------------------------------------------- */

int stand_by_key(struct daemon *d, struct err *err)
{
	struct buf text = BUF_INIT;
	uint32_t id = d->facts.jobs.count;
	bool other = false;

	for (uint32_t tried = 0; !d->key_known && !other && id && tried < KEY_JOBS; tried++, id--) {
		struct err why = { 0 };

		if (!job_is_there(&d->facts, id) ||
		    !job_get(&d->facts, (struct job_id){ id })->body)
			continue;
		d->key_known =
			d->backend.body(d, &d->facts, (struct job_id){ id }, &text, &why) == 0;
		other = !d->key_known && why.code == ERR_CORRUPT;
	}
	buf_deinit(&text);
	if (!other)
		return 0;
	return err_set(
		err, ERR_CONFLICT,
		"%s/keys/body.key is not the key that bodies in this journal are sealed with (job %u could not be opened): copy keys/body.key from the data folder of a daemon that leads, or led",
		d->folder, id + 1);
}

/* --- following ------------------------------------------------------------------------------------------------------ */

enum { LOOKED, LOOK_LATER };

static int look_failed(struct daemon *d, const struct err *err)
{
	if (err->code != ERR_UNAVAILABLE && err->code != ERR_IO)
		return -(int)err->code;
	if (!d->unreadable)
		log_line(LOG_WARN, "the journal can't be followed, which is tried again: %s",
			 err->text);
	d->unreadable = true;
	daemon_problem(d, err->text);
	return LOOK_LATER;
}

static int look(struct daemon *d, bool promote, struct err *err)
{
	const uint64_t before = d->facts.seq;

	if (recover_follow(d, promote, err) < 0)
		return look_failed(d, err);
	if (d->unreadable)
		log_line(LOG_INFO, "the journal is followed again");
	d->unreadable = false;
	daemon_problem(d, "");
	atomic_store(&d->followed_ms, clock_boot_ms());
	atomic_store(&d->leader_epoch, d->epoch);
	atomic_store(&d->event_now_ms, d->facts.now_ms);
	if (d->facts.seq == before)
		return LOOKED;
	gate_publish(d);
	gate_snapshot(d);
	return promote ? 0 : stand_by_key(d, err);
}

/* Says it when somebody else leads. */
static void note_leader(const struct lease_view *view, char known[LEASE_HOLDER_MAX])
{
	if (strcmp(view->holder, known) == 0)
		return;
	snprintf(known, LEASE_HOLDER_MAX, "%s", view->holder);
	if (view->holder[0] && !view->leads)
		log_line(LOG_INFO, "stands by: %s leads, %s", view->holder, view->address);
}

static void note_problem(const struct lease_view *view, char known[256])
{
	if (strcmp(view->problem, known) == 0)
		return;
	if (view->problem[0])
		log_line(LOG_WARN, "%s", view->problem);
	else
		log_line(LOG_INFO, "the Lease can be read again");
	snprintf(known, 256, "%s", view->problem);
}

int stand_by_wait(struct daemon *d, struct err *err)
{
	char leader[LEASE_HOLDER_MAX] = "", problem[256] = "";
	struct lease_view view;
	int result;

	for (int64_t wait_ms = 0;; wait_ms = FOLLOW_MS) {
		if (ending_wait(wait_ms))
			return STAND_BY_ENDS;
		lease_look(d->lease, &view);
		note_leader(&view, leader);
		note_problem(&view, problem);
		if (view.lost)
			return err_set(err, ERR_CONFLICT,
				       "the Lease was lost to %s before this daemon led",
				       view.holder);
		result = look(d, view.may_write, err);
		if (result < 0)
			return result;
		/* Who can't read the journal can't lead. */
		lease_want(d->lease, result == LOOKED);
		if (view.may_write && result == LOOKED) {
			log_line(LOG_INFO, "leads from record %lu on, epoch %ld",
				 (unsigned long)d->facts.seq, (long)d->epoch);
			return STAND_BY_LEADS;
		}
	}
}

/* --- leading -------------------------------------------------------------------------------------------------------- */

void stand_by_lead(struct daemon *d)
{
	struct lease_view view;
	bool late = false;

	while (!ending_wait(WATCH_MS)) {
		lease_look(d->lease, &view);
		if (view.lost) {
			/* At once: threads that wait for this or that might do a little more of it. */
			log_line(
				LOG_ERROR,
				"this daemon leads no more, and ends: %s has the Lease; running jobs go on",
				view.holder[0] ? view.holder : "nobody");
			_exit(EXIT_FAILURE);
		}
		if (!view.may_write && !late)
			log_line(
				LOG_WARN,
				"the Lease could not be renewed in time: nothing is sent to the cluster until it is; %s",
				view.problem);
		if (view.may_write && late)
			log_line(LOG_INFO, "the Lease is renewed again");
		late = !view.may_write;
	}
}

/* --- begin ---------------------------------------------------------------------------------------------------------- */

int stand_by_open(struct daemon *d, struct lease **ret, struct err *err)
{
	char name[64], holder[LEASE_HOLDER_MAX], address[LEASE_ADDRESS_MAX], host[64] = "";
	char journal[JOURNAL_NAME_MAX];
	uint32_t random = 0;
	const char *listens = http_address(d->server);

	journal_name(d->journal, journal);
	snprintf(name, sizeof(name), "fairlead-%.12s", journal);
	if (gethostname(host, sizeof(host) - 1) != 0 || !host[0])
		snprintf(host, sizeof(host), "unknown");
	if (getrandom(&random, sizeof(random), 0) < 0)
		return err_set(err, ERR_INTERNAL, "the system gives no random numbers");
	/* Another one after each start: what an earlier process of this place has sent is not this one's. */
	snprintf(holder, sizeof(holder), "%s_%08x", host, random);
	if (*listens)
		snprintf(address, sizeof(address), "http://%s on %s", listens, host);
	else
		snprintf(address, sizeof(address), "%s:%.150s/fairlead.sock", host, d->folder);
	return lease_open(&(struct lease_options){ .cluster = d->kubernetes,
						   .name = name,
						   .holder = holder,
						   .address = address },
			  ret, err);
}

void stand_by_live(struct daemon *d)
{
	struct err err = { 0 };

	if (!d->kubernetes)
		return;
	if (stand_by_open(d, &d->life, &err) < 0)
		log_line(LOG_WARN, "no Lease says that this daemon is there: %s", err.text);
	else
		lease_want(d->life, true);
}
