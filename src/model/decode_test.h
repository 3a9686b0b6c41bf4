#ifndef BH_MODEL_DECODE_TEST_H
#define BH_MODEL_DECODE_TEST_H

#include "base/json.h"
#include "base/test.h"
#include "base/yaml.h"

/* Read what an administrator or submitter writes into the struct that `fields` describe. */
static inline bh_rc
bh_test_decode(const char *yaml, const struct bh_fields *fields, void *ret_struct, struct bh_arena *arena,
               struct bh_err *err)
{
    struct bh_buf json;
    bh_rc rc;

    bh_buf_init(&json, BH_JSON_BYTES_MAX);
    rc = bh_yaml_to_json(yaml, strlen(yaml), &json, err);
    if (rc == BH_OK)
        rc = bh_json_decode(json.bytes, json.length, fields, ret_struct, arena, err);
    bh_buf_fini(&json);
    return rc;
}

#endif
