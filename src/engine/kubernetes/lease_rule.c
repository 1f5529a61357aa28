/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/lease_rule.h"

#include <stdio.h>
#include <string.h>

void lease_rule_init(struct lease_rule *rule, const char *me)
{
	*rule = (struct lease_rule){ .soon = true };
	snprintf(rule->me, sizeof(rule->me), "%s", me);
}

/* How long after its last change others may take it. What the holder says of its own counts where it is more. */
static int64_t free_ms(const struct lease_rule *rule)
{
	const int64_t lasts_ms =
		rule->seen.lasts_ms > LEASE_LASTS_MS ? rule->seen.lasts_ms : LEASE_LASTS_MS;

	return rule->changed_ms + lasts_ms;
}

static bool is_free(const struct lease_rule *rule, int64_t now_ms)
{
	if (rule->seen.exists &&
	    (!rule->seen.holder[0] || strcmp(rule->seen.holder, rule->me) == 0))
		return true;
	return (!rule->seen.exists && !rule->vanished) || now_ms >= free_ms(rule);
}

/* A request that got no answer is not waited for: another one is sent. */
static int64_t pause_ms(const struct lease_rule *rule)
{
	return rule->held && !rule->stale ? LEASE_RENEW_MS : LEASE_LOOK_MS;
}

enum lease_step lease_rule_step(const struct lease_rule *rule, bool want, int64_t now_ms)
{
	if (rule->lost)
		return LEASE_WAIT;
	if (rule->held && !want && !rule->stale)
		return LEASE_GIVE_BACK;
	if (rule->soon || now_ms - rule->asked_ms >= pause_ms(rule))
		return rule->known && !rule->stale &&
				       (rule->held || (want && is_free(rule, now_ms)))
			       ? LEASE_WRITE
			       : LEASE_LOOK;
	/* Nobody waits longer than it takes for it to be free. */
	if (want && rule->known && !rule->held && !rule->stale && rule->asked_ms < free_ms(rule) &&
	    now_ms >= free_ms(rule))
		return LEASE_WRITE;
	return LEASE_WAIT;
}

int64_t lease_rule_next_ms(const struct lease_rule *rule, bool want, int64_t now_ms)
{
	int64_t next_ms = rule->soon ? now_ms : rule->asked_ms + pause_ms(rule);

	if (want && rule->known && !rule->held && free_ms(rule) > now_ms && free_ms(rule) < next_ms)
		next_ms = free_ms(rule);
	return next_ms;
}

void lease_rule_asked(struct lease_rule *rule, int64_t now_ms)
{
	rule->asked_ms = now_ms;
	rule->soon = false;
}

static void see(struct lease_rule *rule, const struct lease_seen *seen, int64_t now_ms)
{
	if (!rule->known || seen->exists != rule->seen.exists ||
	    strcmp(seen->version, rule->seen.version) != 0)
		rule->changed_ms = now_ms;
	rule->vanished = !seen->exists && (rule->vanished || (rule->known && rule->seen.exists));
	rule->seen = *seen;
	rule->known = true;
	rule->stale = false;
}

void lease_rule_saw(struct lease_rule *rule, const struct lease_seen *seen, int64_t now_ms)
{
	see(rule, seen, now_ms);
	if (!rule->held || (seen->exists && strcmp(seen->holder, rule->me) == 0))
		return;
	rule->held = false;
	rule->lost = true;
}

void lease_rule_wrote(struct lease_rule *rule, const struct lease_seen *seen, int64_t sent_ms,
		      int64_t now_ms)
{
	if (rule->lost)
		return;
	see(rule, seen, now_ms);
	if (!rule->held || sent_ms > rule->sent_ms)
		rule->sent_ms = sent_ms;
	rule->held = strcmp(seen->holder, rule->me) == 0;
}

void lease_rule_let_go(struct lease_rule *rule)
{
	rule->held = false;
}

void lease_rule_refused(struct lease_rule *rule)
{
	rule->stale = true;
	rule->soon = true;
}

bool lease_rule_may_write(const struct lease_rule *rule, int64_t now_ms)
{
	return rule->held && !rule->lost && now_ms - rule->sent_ms < LEASE_MAY_WRITE_MS;
}
