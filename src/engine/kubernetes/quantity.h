/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Amounts as Kubernetes writes them: "2", "500m", "1.5", "64Gi", "12e6". In thousandths, rounded up as the API server does where a part of
 * one is left; what does not fit is the largest number.
 */
#include <stdint.h>
#include "base/err.h"

int quantity_parse(const char *text, int64_t *ret_milli) MUST_CHECK;
