/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the API server says when it refuses: an object of kind Status with a message for people and a reason, one word, for programs. Several
 * reasons share a number: 409 is AlreadyExists for a name that is taken, and Conflict for a quota or a pod that changed meanwhile.
 */
#include <stdbool.h>

struct kube_answer;

enum { REFUSAL_REASON_MAX = 64, REFUSAL_TEXT_MAX = 256 };

struct kube_refusal {
	char reason[REFUSAL_REASON_MAX]; /* "" = it says none */
	char text[REFUSAL_TEXT_MAX]; /* its message, else the answer's number */
};

void refusal_read(const struct kube_answer *answer, struct kube_refusal *ret);
bool refusal_is(const struct kube_refusal *refusal, const char *reason);
static inline bool status_is_done(int status)
{
	return status >= 200 && status < 300;
}
