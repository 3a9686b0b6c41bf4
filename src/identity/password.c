#include "identity/password.h"

#include <stdio.h>
#include <string.h>

#include <argon2.h>

#include "base/assert.h"

enum { HASH_BYTES = 32 };

#define KIND "$argon2id$"

const struct bh_password_cost bh_password_cost = { 19 * 1024, 2, 1 };

static bool
is_length_good(const char *password)
{
    return password[0] && strnlen(password, BH_PASSWORD_MAX + 1) <= BH_PASSWORD_MAX;
}

static enum bh_identity_fault
fault_of(int code)
{
    if (code == ARGON2_OK)
        return BH_FAULT_NONE;
    if (code == ARGON2_VERIFY_MISMATCH)
        return BH_FAULT_PASSWORD_WRONG;
    return code == ARGON2_MEMORY_ALLOCATION_ERROR ? BH_FAULT_PASSWORD_MEMORY : BH_FAULT_PASSWORD_STORED;
}

enum bh_identity_fault
bh_password_hash(const char *password, const uint8_t salt[BH_PASSWORD_SALT],
                 const struct bh_password_cost *cost, char ret_stored[BH_PASSWORD_TEXT])
{
    char stored[BH_PASSWORD_TEXT];
    int code;

    if (!is_length_good(password))
        return BH_FAULT_PASSWORD_LENGTH;
    code = argon2id_hash_encoded(cost->passes, cost->memory_kib, cost->lanes, password, strlen(password),
                                 salt, BH_PASSWORD_SALT, HASH_BYTES, stored, sizeof stored);
    BH_ASSERT(code == ARGON2_OK || code == ARGON2_MEMORY_ALLOCATION_ERROR);
    if (code == ARGON2_OK)
        memcpy(ret_stored, stored, sizeof stored);
    return fault_of(code);
}

/* As much work as checking a password takes. */
static enum bh_identity_fault
refuse_unknown(const char *password, const struct bh_password_cost *cost)
{
    static const uint8_t salt[BH_PASSWORD_SALT];
    char unused[BH_PASSWORD_TEXT];
    enum bh_identity_fault fault = bh_password_hash(password, salt, cost, unused);

    return fault == BH_FAULT_NONE ? BH_FAULT_PASSWORD_WRONG : fault;
}

enum bh_identity_fault
bh_password_check(const char *stored, const char *password, const struct bh_password_cost *cost)
{
    if (!is_length_good(password))
        return BH_FAULT_PASSWORD_LENGTH;
    if (!stored)
        return refuse_unknown(password, cost);
    if (strncmp(stored, KIND, strlen(KIND)) != 0)
        return BH_FAULT_PASSWORD_STORED;
    return fault_of(argon2id_verify(stored, password, strlen(password)));
}

bool
bh_password_is_stale(const char *stored, const struct bh_password_cost *cost)
{
    char want[64];

    snprintf(want, sizeof want, KIND "v=%d$m=%u,t=%u,p=%u$", ARGON2_VERSION_13, cost->memory_kib,
             cost->passes, cost->lanes);
    return strncmp(stored, want, strlen(want)) != 0;
}
