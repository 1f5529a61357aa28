/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rights that the account lacks at present, by what the API server answered: said in the log when one is missed and when it is there. Of the
 * client's thread.
 *
 * 403 has other causes as well (a quota, a webhook, the level of a namespace): those are about one object, and no right mends them.
 */
#include <stdbool.h>
#include <stdint.h>

struct kube_answer;

enum { RIGHTS_MAX = 64, RIGHT_WORD_MAX = 16, RIGHT_NAME_MAX = 128 };

/* What a request asks for, as roles say it. */
struct right {
	char verb[RIGHT_WORD_MAX];
	char group[RIGHT_NAME_MAX]; /* "" = the core's */
	char resource[RIGHT_NAME_MAX]; /* "pods", "pods/binding" */
	char namespace[RIGHT_NAME_MAX]; /* "" = of the cluster */
};

struct rights {
	struct right lacking[RIGHTS_MAX]; /* more are not kept */
	uint32_t count;
};

/* From method and path, with query, without the server. False: it is no object's. */
bool right_of(const char *method, const char *path, struct right *ret);
/* Refused for want of a right. */
bool right_is_lacking(const struct kube_answer *answer);
enum rights_change { RIGHTS_SAME, RIGHTS_LACKS, RIGHTS_GRANTED };
/* What an answer says of rights: said in the log where it is news. */
enum rights_change rights_note(struct rights *rights, const char *method, const char *path,
			       const struct kube_answer *answer);
