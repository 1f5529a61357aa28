/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The account from a program that the kubeconfig names (`exec`): the protocol of client-go's credential plugins, client.authentication.k8s.io/v1
 * and v1beta1. The program is told what it is for by KUBERNETES_EXEC_INFO and prints an ExecCredential with a token, a client
 * certificate, or both.
 *
 * A thread of its own runs it: at first, shortly before what it gave expires, and when the API server did not take that (401). What it gave
 * holds until it expires, also while the program fails. It has EXEC_MOST_MS for its answer; nobody can type into it.
 *
 * Where the server refuses what has just been given, again and again, running it more often helps nobody, and may cost its maker (a cloud counts
 * calls): pauses double up to a minute, each with a random part. Meanwhile the newest one goes on to be used, for it may be the server
 * that is not well.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "engine/kubernetes/access.h"

enum {
	EXEC_MOST_MS = 60000,
	EXEC_TOKEN_MAX = 32768, /* bytes, as all of these */
	EXEC_PEM_MAX = 65536,
	EXEC_OUTPUT_MAX = 1 << 20
};

struct credential_text {
	char token[EXEC_TOKEN_MAX]; /* "" = none */
	char certificate[EXEC_PEM_MAX], key[EXEC_PEM_MAX]; /* PEM; "" = none */
	int64_t expires_ms; /* since 1970; 0 = not said */
};

/* What the program printed. `now_ms`: since 1970. */
int credential_parse(const struct access_exec *exec, const char *text, size_t size, int64_t now_ms,
		     struct credential_text *ret, struct err *err) MUST_CHECK;

struct credential;
/* Negative: the program is not there. `changed` is told from the thread when there is something new or it has failed. */
int credential_create(const struct access_exec *exec, void (*changed)(void *context), void *context,
		      struct credential **ret, struct err *err) MUST_CHECK;
void credential_destroy(struct credential *credential);

enum credential_state {
	CREDENTIAL_COMES, /* it is being asked for */
	CREDENTIAL_IS,
	CREDENTIAL_FAILS /* it is tried again; `problem` says why it is not there */
};
/* *serial: of the one that the caller has, 0 = none. When there is a newer one it is copied, and *serial set. */
enum credential_state credential_now(struct credential *credential, uint64_t *serial,
				     struct credential_text *ret, char problem[256]);
/* From one run of the program to the next when what it gave was refused so many times on end; random: any number. */
int64_t credential_pause_ms(uint32_t refusals, uint64_t random);
/* The API server did not take the one of this serial. */
void credential_refused(struct credential *credential, uint64_t serial);
