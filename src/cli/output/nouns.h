/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the commands of queues, nodes, users, teams and tokens have in common: a list, a change, a
 * removal.
 */
#include "cli/client.h"
#include "cli/output/output.h"

/* GETs a list and shows it; says on stderr when something simulated is in it. */
int show_noun(struct client *client, const struct output *output, const char *path,
	      const char *list, const struct column *columns, const char *name, struct err *err)
	MUST_CHECK;
/* "12.50", "12.50_EUR", "0.000125": an amount as the API gives it (six decimals), with two or as many as it has. */
void cell_money(const char *amount, const char *currency, struct buf *out);
void say_money(struct buf *out, const char *amount, const char *currency); /* in a sentence */
/* Sends a change and says "WHAT DONE". */
int change_noun(struct client *client, const char *method, const char *path, const json_t *body,
		const char *done, const char *what, struct err *err) MUST_CHECK;
/* DELETE of the path with the first argument in it. */
int delete_noun(struct invocation *in, const char *path, const char *noun, struct err *err)
	MUST_CHECK;
/* Sends the same change of one member of body for each argument. */
int change_each(struct invocation *in, const char *path, const json_t *body, const char *done,
		const char *noun, struct err *err) MUST_CHECK;
