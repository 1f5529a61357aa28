/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who leads, by a Lease of Kubernetes (coordination.k8s.io/v1). This is the rule without the requests, a function of answers and of one's own
 * clock: times that stand in the Lease are of another machine's clock and are for people.
 *
 *	holder      renews every 2 s. From the moment at which it SENT a renewal that was taken, it may write for 6 s.
 *	others      count from the moment at which they SAW the Lease change. When it has not changed for 8 s they may take it.
 *
 * A renewal is sent before it is taken, and taken before it is seen: so the holder has stopped for at least 2 s when somebody else begins,
 * whatever their clocks show, as long as a second is about as long on both. The 2 s are for requests that are on their way. That a holder
 * was stopped in between and does not know (SIGSTOP, a machine that sleeps) changes nothing: the clock runs on, and the clock is asked.
 *
 * Each write names the version that was seen; of two that take it at once the API server lets one. A holder whose time has run out without
 * anybody taking the Lease may renew it and go on. One that sees another holder has lost it for good.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LEASE_LASTS_MS = 8000,
	LEASE_RENEW_MS = 2000, /* after each renewal */
	LEASE_MAY_WRITE_MS = 6000, /* after sending one that was taken */
	LEASE_LOOK_MS = 500, /* of those that wait */
	LEASE_HOLDER_MAX = 128,
	LEASE_ADDRESS_MAX = 256,
	LEASE_TEXT_MAX = 64
};

/* What an answer says of it. */
struct lease_seen {
	bool exists;
	char holder[LEASE_HOLDER_MAX]; /* "" = given back */
	char address[LEASE_ADDRESS_MAX]; /* where the holder answers */
	char version[LEASE_TEXT_MAX]; /* resourceVersion */
	char acquired[LEASE_TEXT_MAX]; /* acquireTime, as it stands there */
	char renewed
		[LEASE_TEXT_MAX]; /* renewTime, likewise: for people; no rule goes by another machine's clock */
	int64_t lasts_ms, transitions;
};

enum lease_step { LEASE_WAIT, LEASE_LOOK, LEASE_WRITE, LEASE_GIVE_BACK };

struct lease_rule {
	char me[LEASE_HOLDER_MAX];
	struct lease_seen seen;
	bool known; /* an answer came */
	bool vanished; /* it was there, and somebody removed it: its holder may not know yet */
	int64_t changed_ms; /* when `seen` was seen to change */
	int64_t sent_ms; /* of our newest write that was taken */
	int64_t asked_ms; /* newest request */
	bool soon; /* the next one need not wait */
	bool held; /* a write of ours was taken, and nobody else was seen since */
	bool lost; /* was held, and another one was seen */
	bool stale; /* a write was refused: look before writing again */
};

void lease_rule_init(struct lease_rule *rule, const char *me);
/* What to do now; `want`: take it when it is free, and keep it. */
enum lease_step lease_rule_step(const struct lease_rule *rule, bool want, int64_t now_ms);
/* Until then there is nothing to do. */
int64_t lease_rule_next_ms(const struct lease_rule *rule, bool want, int64_t now_ms);
void lease_rule_asked(struct lease_rule *rule, int64_t now_ms); /* a request is sent */
/* An answer to a look. */
void lease_rule_saw(struct lease_rule *rule, const struct lease_seen *seen, int64_t now_ms);
/* Our write was taken, and this is what stands there now; sent_ms: when it was sent. */
void lease_rule_wrote(struct lease_rule *rule, const struct lease_seen *seen, int64_t sent_ms,
		      int64_t now_ms);
void lease_rule_let_go(struct lease_rule *rule); /* it is being given back */
void lease_rule_refused(struct lease_rule *rule); /* 409: somebody else wrote */
bool lease_rule_may_write(const struct lease_rule *rule, int64_t now_ms);
